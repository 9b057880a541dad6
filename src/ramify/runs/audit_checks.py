"""The checks of an audit: the balance of energy, loops that stay closed, and momentum where nothing
can change it; what each is measured by, and the error it may have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ramify.contact.hard import Hard, as_contact
from ramify.core.arrays import Array
from ramify.dynamics.closure import ROUNDED, rounding
from ramify.kernels.queries import kinematics
from ramify.loops.constraints import row_sizes
from ramify.model.frame import align_z
from ramify.model.loop import Loop
from ramify.model.robot import Robot, joint_entries
from ramify.runs.audit_scales import Scales
from ramify.runs.energy_blame import damping_of
from ramify.runs.run_record import Run

CEILING: Final = 1e-3
"""The loosest default tolerance, and the one for methods without rtol: what the book accepts of its
own simulations.
"""
FLOOR: Final = 1e-12
FEWEST_STEPS: Final = 50
STEP_SHARE: Final = 0.01
"""The share of the energy that moved which steps of hard contact themselves may add or take, and of
the momentum: they are of the first order.
"""


@dataclass(frozen=True, eq=False)
class Check:
    """A quantity that should not change: its ``error`` (T,), the ``scale`` that measures it and the
    ``limit`` it must keep.
    """

    name: str
    unit: str
    error: Array
    scale: float
    limit: float

    @property
    def worst(self) -> int:
        """The row of the largest error; the first that is not finite, where there is one."""
        bad = np.flatnonzero(~np.isfinite(self.error))
        return int(bad[0]) if bad.size else int(np.argmax(np.abs(self.error)))

    @property
    def largest(self) -> float:
        """The largest error."""
        return abs(float(self.error[self.worst]))

    @property
    def relative(self) -> float:
        """The largest error by the scale; zero where nothing moved and nothing changed."""
        return self.largest / self.scale if self.scale else math.inf if self.largest else 0.0

    @property
    def first(self) -> int | None:
        """The first row beyond the limit."""
        broken = np.flatnonzero(~(np.abs(self.error) <= self.limit))
        return int(broken[0]) if broken.size else None

    @property
    def passed(self) -> bool:
        return self.first is None


def allowed(result: Run) -> tuple[float, float, str]:
    """Default tolerance; the error in a coordinate that atol lets through; where both come from."""
    rtol, atol = (_positive(result.options.get(key)) for key in ("rtol", "atol"))
    counted = _positive(result.stats.get("steps"))
    steps = max(FEWEST_STEPS, int(counted) if counted is not None else len(result))
    absolute = 2.0 * steps * (atol or 0.0)
    if rtol is None or result.options.get("step") is not None:
        return CEILING, 0.0, "the method has no rtol"
    found = 2.0 * steps * rtol
    note = "" if FLOOR <= found <= CEILING else f", kept within {FLOOR:g} and {CEILING:g}"
    return min(max(found, FLOOR), CEILING), absolute, f"2 x {steps} steps x rtol {rtol:.3g}{note}"


def energy_check(result: Run, scales: Scales, tolerance: float, absolute: float) -> Check:
    """The energy balance."""
    balance, (work, lost) = result.energy_balance, result.work
    potential = balance.potential - balance.potential[0]
    moved = [np.abs(x) for x in (potential, work, lost, balance.wrenches)] + [balance.ground]
    with np.errstate(invalid="ignore"):
        scale = float(np.nanmax(moved, initial=scales.kinetic()))
    limit = tolerance * scale + scales.rounding * scales.largest_energy
    return _with_atol(Check("energy", "J", balance.error, scale, limit), scales, absolute)


def step_checks(result: Run, energy: Check, scales: Scales) -> tuple[Check, ...]:
    """The energy that steps of hard contact themselves have added or taken; ``energy``: the
    balance, with the scale of the energy that moved.
    """
    work = np.asarray(result.energy_balance.scheme)
    if not result.hard or not np.isfinite(work).any():  # not counted in this run
        return ()
    law = as_contact(result.options["contact"]) or Hard()
    missed = 0.5 * result.model.mass * law.tolerance**2
    limit = STEP_SHARE * energy.scale + scales.rounding * scales.largest_energy + missed
    return (Check("work of steps", "J", work, energy.scale, limit),)


def internal_check(
    result: Run, scales: Scales, tolerance: float, absolute: float
) -> tuple[Check, ...]:
    """The energy balance without the motion of the centre of mass along axes along which nothing
    but gravity acts: the same in every frame that moves steadily.
    """
    free = free_directions(result)
    if free is None or not result.model.mass > 0.0 or result.hard:
        return ()  # what hard steps have added is counted as a whole
    along, _ = free
    fall = result.model.mass * (scales.centre(along) @ (np.array(result.model.gravity) @ along))
    kinetic, potential = scales.internal_kinetic(along), result.energy.potential + fall
    error = result.energy_balance._replace(kinetic=kinetic, potential=potential).error
    moved = [np.abs(potential - potential[0]), np.abs(result.work.actuator)]
    moved += [np.abs(result.work.dissipated)]
    with np.errstate(invalid="ignore"):
        scale = float(np.nanmax(moved, initial=scales.kinetic(along)))
    largest = float((kinetic + np.abs(result.energy.potential) + np.abs(fall)).max())
    limit = tolerance * scale + scales.rounding * (largest + scales.carried(along))
    check = Check("internal energy", "J", error, scale, limit)
    return (_with_atol(check, scales, absolute, along),)


def _with_atol(check: Check, scales: Scales, absolute: float, free: Array | None = None) -> Check:
    """A check that fails, with what errors of the size of atol can do added to its limit."""
    if check.passed or not absolute:
        return check
    return replace(check, limit=check.limit + scales.by_errors(absolute, free))


def loop_checks(result: Run) -> tuple[Check, ...]:
    """The largest gap at each row of a run, in m, of the constraints that are open most, relative
    to what rounded data may miss by.
    """
    if result.loops is None or not result.model.loops:
        return ()
    limits = rounding(result.model)
    gap = np.abs(result.loops.gap * row_sizes(result.model))
    finite = np.where(np.isfinite(gap), gap, np.inf)
    limit = limits[int(np.argmax((finite / limits).max(axis=0)))]
    alike = gap[:, limits == limit].max(axis=1, initial=0.0)
    return (Check("closed loops", "m", alike, limit / ROUNDED, limit),)


def momentum_checks(
    result: Run, scales: Scales, tolerance: float, absolute: float
) -> tuple[Check, ...]:
    """Linear and angular momentum, where they are conserved."""
    free = free_directions(result)
    if free is None:
        return ()
    tolerance = max(tolerance, STEP_SHARE) if result.hard else tolerance
    model, t = result.model, result.t
    p, h = result.momentum
    by_gravity = model.mass * np.outer(t - t[0], model.gravity)
    size = _radius_of_gyration(model, result.q[0])
    rows = (
        ("linear momentum", "kg m/s", p - by_gravity, free[0], scales.linear, 1.0),
        ("angular momentum", "kg m^2/s", h, free[1], scales.angular, size),
    )
    checks = []
    for name, unit, x, axes, measured, arm in rows:
        if axes.size:
            drift = np.linalg.norm((x - x[0]) @ axes, axis=1)
            scale, rounding = measured(axes)
            limit = tolerance * scale + rounding + absolute * model.mass * arm
            checks.append(Check(name, unit, drift, scale, limit))
    return tuple(checks)


def free_directions(result: Run) -> tuple[Array, Array] | None:
    """World axes, as columns, along which and about which nothing acts on the robot but gravity;
    None where there are none.
    """
    model, damping = result.model, damping_of(result)
    fixed = any(_holds_on_to_the_base(model, loop) for loop in model.loops)
    outside = any(result.options.get(key) is not None for key in ("ground", "wrenches"))
    if fixed or outside or may_have_touched(result) or damping is None:
        return None
    roots = [body.joint for body in model.bodies if body.parent < 0]
    if result.hard and not all(joint.floating for joint in roots):
        return None  # stops and dry friction of other roots act on the world
    for joint in roots:
        held = model.joint_slice(joint.name)
        forces = result.tau[:, held], damping[held], result.passive.total[:, held]
        if any(force.any() for force in forces) or any(joint.armature):
            return None
    if {"tendon", "gravity_compensation"} & set(result.passive.parts):
        return None
    if roots and all(joint.floating for joint in roots):
        return np.eye(3), np.eye(3)
    if len(roots) == 1 and roots[0].kind == "planar":
        axes = roots[0].placement.rotation @ align_z(np.array(roots[0].axis))
        return axes[:, :2], axes[:, 2:]
    if len(roots) == 1 and roots[0].kind == "prismatic":
        axis = roots[0].placement.rotation @ np.array(roots[0].axis, dtype=np.float64)
        return axis[:, None] / np.linalg.norm(axis), np.zeros((3, 0))
    return None


def may_have_touched(result: Run) -> bool:
    """Whether something could touch the robot during a run. Of hard contact, whose forces are
    recorded for one step of each row, it could not where nothing was lost to it, and every gap was
    wider than it changed between two rows.
    """
    contacts = result.contacts
    if contacts is None or not result.hard:
        return contacts is not None
    losses = result.stats.get("hard_losses", {"contact impact": math.nan})
    if any(losses[kind] for kind in losses if kind.startswith("contact")):
        return True
    changes = np.abs(np.diff(contacts.gap, axis=0)).max(axis=0, initial=0.0)
    return not bool((contacts.gap.min(axis=0) > changes).all())


def _holds_on_to_the_base(model: Robot, loop: Loop) -> bool:
    """Whether a loop's forces come from the base. Gears and couplings act between the bodies of the
    joints and tendons that they relate.
    """
    if not loop.couples:
        return None in (loop.first.link, loop.second.link)
    tendons = [tendon for tendon in model.tendons if tendon.name in loop.tendons]
    related = {*loop.joints, *(name for tendon in tendons for name, _ in tendon.joints)}
    frames = {name for tendon in tendons for _, way in tendon.branches for name in way}
    roots = [body.joint.name for body in model.bodies if body.parent < 0]
    on_base = {model.velocities[k] for name in roots for k in joint_entries(model, name)}
    return bool(related & on_base) or any(model.attachment(name).body < 0 for name in frames)


def _radius_of_gyration(model: Robot, q: Array) -> float:
    """About the centre of mass, m: sqrt(tr J / 2 m) with J the inertia of the robot frozen at q."""
    R, r = kinematics(model, q)
    m = np.array([body.mass for body in model.bodies])
    c = r + np.einsum("bij,bj->bi", R, [body.com for body in model.bodies])
    c = c - m @ c / m.sum()
    own = sum(float(np.trace(body.inertia)) for body in model.bodies)
    return math.sqrt((float(m @ (c * c).sum(axis=1)) + 0.5 * own) / m.sum())


def _positive(value: Any) -> float | None:
    """The largest of some numbers, where it is positive and finite."""
    try:
        largest = float(np.max(np.asarray(value, dtype=np.float64)))
    except (TypeError, ValueError):
        return None
    return largest if math.isfinite(largest) and largest > 0.0 else None
