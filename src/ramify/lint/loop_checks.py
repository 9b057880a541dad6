"""What looks wrong in the loops of a model, for the linter."""

from __future__ import annotations

from collections.abc import Iterator

from ramify.core.errors import LoopError
from ramify.core.messages import degrees
from ramify.kernels.closed import inertia_weight
from ramify.lint.finding import Level
from ramify.loops.assemble import assemble
from ramify.loops.constraints import constraints
from ramify.model.driven import driven
from ramify.model.robot import Robot

_NEAR = 1e-4


def loop_findings(model: Robot) -> Iterator[tuple[Level, str, str]]:
    """(level, code, message): loops that cannot be closed, constraints that say nothing new, drives
    too many or too few.
    """
    if not model.loops:
        return
    try:
        q = assemble(model).q
    except LoopError as error:
        yield "error", "loops-open", str(error)
        return
    c = constraints(model, q)
    if c.redundant:
        listed = ", ".join(c.redundant[:6]) + (" …" if len(c.redundant) > 6 else "")
        yield (
            "note",
            "redundant-constraints",
            f"{len(c.redundant)} of {len(c.names)} constraints follow from the others: {listed}",
        )
    if c.margin < _NEAR:
        text = (
            f"near its guess the mechanism stands within {c.margin:.1e} of a singular posture; "
            "give another guess"
        )
        yield "warning", "singular-loops", text
    drives = len(driven(model).v)
    if drives != c.mobility:
        many = "more" if drives > c.mobility else "fewer"
        then = (
            "inverse dynamics gives the shortest forces"
            if drives > c.mobility
            else "inverse dynamics refuses what they cannot give"
        )
        yield (
            "note",
            "actuation",
            f"{drives} actuated coordinate{'' if drives == 1 else 's'} for {degrees(c.mobility)}, "
            f"{many} than needed; {then}",
        )


def carried_by_loops(model: Robot) -> bool:
    """Whether what moves no mass of its own is held by the loops, so that forward dynamics has an
    answer.
    """
    if not model.loops:
        return False
    try:
        return inertia_weight(model) > 0.0
    except LoopError:
        return False
