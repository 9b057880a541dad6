"""What looks wrong in the loops of a model, for the linter."""

from __future__ import annotations

from collections.abc import Iterator

from ramify.core.errors import LoopError
from ramify.core.messages import degrees
from ramify.kernels.closed import inertia_weight
from ramify.lint.finding import Finding
from ramify.loops.assemble import assemble
from ramify.loops.constraints import constraints, rounded_rows
from ramify.loops.doubtful_start import far_from_guess, lost_freedoms
from ramify.model.driven import driven
from ramify.model.robot import Robot

_NEAR = 1e-4


def loop_findings(model: Robot) -> Iterator[Finding]:
    """Loops that cannot be closed, constraints that say nothing new, drives too many or too few."""
    if not model.loops:
        return
    try:
        q = assemble(model).q
    except LoopError as error:
        yield Finding("error", model.name, "loops-open", str(error))
        return
    c = constraints(model, q)
    missed = rounded_rows(model, c.residual)
    if missed:
        text = f"near its guess {missed}; these rows hold nothing"
        yield Finding("warning", model.name, "rounded-loops", text)
    if c.redundant:
        listed = ", ".join(c.redundant[:6]) + (" …" if len(c.redundant) > 6 else "")
        counted = f"{len(c.redundant)} of {len(c.names)} constraints"
        text = f"{counted} follow from the others: {listed}"
        yield Finding("note", model.name, "redundant-constraints", text)
    if c.margin < _NEAR:
        text = f"near its guess the mechanism stands within {c.margin:.1e} of a singular posture"
        yield Finding("warning", model.name, "singular-loops", f"{text}; give another guess")
    if lost := lost_freedoms(model, q):
        yield Finding("warning", model.name, "locked-loops", f"near its guess {lost}")
    if far := far_from_guess(model, q):
        yield Finding("warning", model.name, "far-from-guess", far)
    drives = len(driven(model).v)
    if drives != c.mobility:
        text = "fewer than needed; inverse dynamics refuses what they cannot give"
        if drives > c.mobility:
            text = "more than needed; inverse dynamics gives the shortest forces"
        actuated = f"{drives} actuated coordinate{'' if drives == 1 else 's'}"
        text = f"{actuated} for {degrees(c.mobility)}, {text}"
        yield Finding("note", model.name, "actuation", text)


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
