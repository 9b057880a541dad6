"""The degrees of freedom of a robot: its joint coordinates, less what closed loops take of them."""

from __future__ import annotations

from ramify.core.errors import RamifyError
from ramify.loops.assemble import assemble
from ramify.loops.constraints import constraints
from ramify.model.robot import Robot, once


@once
def degrees_of_freedom(model: Robot) -> int:
    """nv without loops; with them the mobility nv - rank J where the loops are closed, or at q = 0
    where they cannot be.
    """
    if not model.loops:
        return model.nv
    try:
        q = assemble(model).q
    except RamifyError:
        q = model.neutral()
    return int(constraints(model, q).mobility)


def freedom_text(model: Robot) -> str:
    """Degrees of freedom as a report says them, for closed robots with the joint coordinates."""
    n = degrees_of_freedom(model)
    text = f"{n} degree{'s' * (n != 1)} of freedom"
    return f"{text} ({model.nv} joint coordinates in closed loops)" if model.loops else text
