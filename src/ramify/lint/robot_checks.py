"""The linter: what looks wrong in a model, and what would be right.

Each check is a function from a model to findings, listed in ``CHECKS``. Errors are numbers that
cannot be right (no matter has such an inertia, a coordinate moves no mass); warnings are likely
slips (degrees, millimetres, grams); notes are worth knowing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.names import disguise
from ramify.core.scalar import number
from ramify.files.import_report import ImportReport
from ramify.lint.finding import LEVELS, Finding, Level, vector_to_four_digits
from ramify.lint.loop_checks import carried_by_loops, loop_findings
from ramify.lint.machine_checks import machine_findings
from ramify.lint.shape_checks import shape_findings
from ramify.lint.unit_checks import angles, gravity, lengths
from ramify.model.body import Body
from ramify.model.euler import euler_joint
from ramify.model.joint import SPHERICAL_SEQUENCES
from ramify.model.link import Turn
from ramify.model.pivots import SINGULAR, pivots
from ramify.model.robot import Robot


def check(model: Robot) -> list[Finding]:
    """All findings on a model, worst first, in the order of its bodies; an empty list where nothing
    looks wrong.
    """
    found = [finding for one in CHECKS for finding in one(model)]
    order = {
        name: i for i, body in enumerate(model.bodies) for name in (body.joint.name, body.name)
    }
    return sorted(found, key=lambda f: (LEVELS.index(f.level), order.get(f.where, -1)))


# ---- mass and inertia of each body ----

_ROUNDED = 1e-2  # a moment off by less than this may be a rounded number
_EXACT = 1e-6
_DUST = 1e-12  # m^2: a radius of gyration below a micrometre is rounding, not a shape


def _masses(model: Robot) -> Iterator[Finding]:
    for body in model.bodies:
        heaviest = float(np.abs(body.inertia).max())
        if body.mass < 0.0:
            text = f"mass {body.mass:g} kg is negative; it must be zero or more"
            yield Finding("error", body.name, "negative-mass", text)
        elif body.mass == 0.0 and heaviest > 0.0:
            text = f"has moments of inertia up to {heaviest:.3g} kg m^2 but no mass"
            remedy = "give the mass that makes them, in kg"
            yield Finding("warning", body.name, "inertia-without-mass", f"{text}; {remedy}")
        elif body.mass > 0.0 and heaviest <= _DUST * body.mass:
            text = f"has a mass of {body.mass:g} kg but no inertia tensor"
            counts = f"it counts as a point at its com {vector_to_four_digits(body.com)} m"
            yield Finding("note", body.name, "point-mass", f"{text}: {counts}")
    masses = sorted((body.mass, body.name) for body in model.bodies if body.mass > 0.0)
    if masses and masses[-1][0] > 1e6 * masses[0][0]:
        (light, small), (heavy, big) = masses[0], masses[-1]
        text = (
            f"{light:g} kg, while {big!r} has {heavy:g} kg: {heavy / light:.1e} times as much; "
            "expect fast modes and lost digits"
        )
        yield Finding("note", small, "mass-ratio", text)


def _tensors(model: Robot) -> Iterator[Finding]:
    """Principal moments: not negative, and none larger than the sum of the other two."""
    for index, body in enumerate(model.bodies):
        a, b, c = (float(x) for x in np.linalg.eigvalsh(body.inertia))
        scale = max(abs(a), abs(c))
        if scale <= _DUST * body.mass:
            continue
        moments = f"principal moments {a:.4g}, {b:.4g}, {c:.4g} kg m^2"
        negative, excess = -a / scale, (c - a - b) / scale
        if max(negative, excess) <= _EXACT:
            continue
        axes = _turning_axes(model, index)
        if len(axes) <= 1 and all(axis @ body.inertia @ axis >= 0.0 for axis in axes):
            used = "it never turns"
            if axes:
                axis = vector_to_four_digits(axes[0])
                used = f"it turns about {axis} only, so no other moment counts"
            text = f"no rigid body has the {moments}; harmless here, because {used}"
            yield Finding("note", body.name, "inertia-incomplete", text)
        elif negative > _EXACT:
            text = "check the signs of the products of inertia (Ixy = -sum of m x y)"
            text = f"{moments}: the smallest is negative; {text}"
            yield Finding("error", body.name, "inertia-indefinite", text)
        else:
            level: Level = "warning"
            advice = "give the moments with more digits"
            if excess > _ROUNDED:
                level, advice = "error", "raise the smaller ones or lower it to that sum"
            text = f"{moments}: the largest exceeds the sum of the others, {a + b:.4g}"
            text = f"{text}, as no matter can; {advice}"
            yield Finding(level, body.name, "triangle-inequality", text)


def _turning_axes(model: Robot, index: int) -> list[Array]:
    """Directions, in a body's frame, about which the joints between the base and it can turn it:
    none, the only one, or two.
    """
    links = model.skeleton.links
    axes: list[Array] = []
    R: Array = np.array(
        [[getattr(links[model.skeleton.last[index]].seat.R, i + j) for j in "xyz"] for i in "xyz"]
    )
    to_body = R.T
    for k in reversed(model.skeleton.support(index)):
        axis = to_body[:, 2]
        repeated = any(np.linalg.norm(np.cross(axis, other)) < 1e-9 for other in axes)
        if links[k].p.rho and not repeated:
            axes.append(axis)
        if len(axes) > 1:
            break
        gamma, alpha, theta = links[k].gamma, links[k].alpha, links[k].theta0
        to_body = to_body @ _z(theta).T @ _x(alpha).T @ _z(gamma).T
    return axes


def _z(turn: Turn) -> Array:
    c, s = number(turn.c), number(turn.s)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _x(turn: Turn) -> Array:
    c, s = number(turn.c), number(turn.s)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


# ---- coordinates that move no inertia ----


def _singular(model: Robot) -> Iterator[Finding]:
    if all(body.mass <= 0.0 and not body.inertia.any() for body in model.bodies):
        text = (
            "no body has mass or inertia; forward dynamics would divide by zero. Give each link "
            "its mass, com and inertia"
        )
        yield Finding("error", model.name, "massless", text)
        return
    anywhere = np.max([pivots(model, model.random(seed)[0]) for seed in (1, 2, 3)], axis=0)
    at_zero = pivots(model, model.neutral())
    start = 0
    for index, body in enumerate(model.bodies):
        names, here = body.joint.velocities, range(start, start + body.joint.dof)
        start += body.joint.dof
        never = [name for name, k in zip(names, here, strict=True) if anywhere[k] <= SINGULAR]
        if never and carried_by_loops(model):
            text = f"{', '.join(never)} moves no inertia of its own; its loop carries it"
            text = f"{text}, at the cost of a dense factorization"
            yield Finding("note", body.joint.name, "massless-in-loop", text)
        elif never:
            text = _no_inertia(model, index, never)
            yield Finding("error", body.joint.name, "zero-inertia", text)
        elif any(at_zero[k] <= SINGULAR for k in here) and not _symmetric(body):
            text = "at q = 0 this coordinate moves no inertia, and forward dynamics divides by zero"
            text = f"{text}: start from another posture"
            yield Finding("warning", body.joint.name, "singular-at-zero", text)


def _no_inertia(model: Robot, index: int, coordinates: list[str]) -> str:
    carried = [index]
    for k in range(index + 1, len(model.bodies)):
        if model.parents[k] in carried:
            carried.append(k)
    moved = [model.bodies[k] for k in carried]
    which = ", ".join(coordinates)
    if all(body.mass <= 0.0 and not body.inertia.any() for body in moved):
        links = ", ".join(repr(body.name) for body in moved[:5])
        ending = "forward dynamics would divide by zero. Give them mass, or fix the joint"
        return f"coordinate {which} moves only massless links ({links}); {ending}"
    advice = "give it a moment of inertia about the joint's axis, or a com off that axis"
    name = model.bodies[index].name
    return (
        f"coordinate {which} moves no inertia in any posture; forward dynamics would divide by "
        f"zero. Look at {name!r}: {advice}"
    )


def _symmetric(body: Body) -> bool:
    return (
        body.joint.sequence in SPHERICAL_SEQUENCES
        and euler_joint(body.joint.sequence).singular_at_zero
    )


def _sequences(model: Robot) -> Iterator[Finding]:
    for body in filter(_symmetric, model.bodies):
        low, high = body.joint.limits[-2] if body.joint.limits else (-math.inf, math.inf)
        if low <= 0.0 <= high:
            text = (
                f"Euler sequence {body.joint.sequence} is singular where its second angle is 0, as "
                "at q = 0: two axes coincide; "
                "a sequence of three different axes, such as YXZ, is singular at 90 degrees only"
            )
            yield Finding("warning", body.joint.name, "euler-singular", text)


def _frames(model: Robot) -> Iterator[Finding]:
    for joint in model.joints:
        off = max(
            float(np.abs(f.rotation @ f.rotation.T - np.eye(3)).max())
            for f in (joint.placement, joint.outlet)
        )
        if not off < 1e-9:
            level: Level = "warning" if off < 1e-6 else "error"
            text = f"its rotation matrix is orthonormal only to {off:.1g}"
            text = f"{text}; give more digits, or angles"
            yield Finding(level, joint.name, "rotation-skewed", text)


def _names(model: Robot) -> Iterator[Finding]:
    """Names that are not what a reader sees."""
    parts = [(part.name, part.joint.name) for part in model.bodies]
    names = dict.fromkeys([*(x for pair in parts for x in pair), *(x.name for x in model.loops)])
    for name in names:
        if hidden := disguise(name):
            yield Finding("warning", name, "disguised-name", f"{hidden}; rename it")


def _left_out(model: Robot) -> Iterator[Finding]:
    """What an importer left out although it changes the motion, and what it doubts."""
    report = model.metadata.get("report")
    for entry in report if isinstance(report, ImportReport) else ():
        if entry.moves:
            text = f"left out on import, which changes the motion: {entry.where}: {entry.message}"
            yield Finding("warning", model.name, "left-out", text)
        elif entry.doubt:
            yield Finding("warning", model.name, "file-doubt", f"{entry.where}: {entry.message}")


CHECKS: Final[tuple[Callable[[Robot], Iterator[Finding]], ...]] = (
    _masses,
    _tensors,
    _frames,
    _singular,
    _sequences,
    _names,
    angles,
    lengths,
    gravity,
    loop_findings,
    _left_out,
    machine_findings,
    shape_findings,
)
