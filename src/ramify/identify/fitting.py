"""From logs to base parameters: ``fit``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np

from ramify.core.arrays import Array, flag, positive
from ramify.core.errors import StateError
from ramify.identify.base_parameters import (
    STATES,
    BaseParameters,
    base_parameters,
    independent_columns,
)
from ramify.identify.closed_rows import consistent_states, reduced_rows
from ramify.identify.fit_result import Fit
from ramify.identify.fit_verdicts import verdicts
from ramify.identify.least_squares import Knowledge
from ramify.identify.log_checks import Segments, segments
from ramify.identify.log_reader import read_log
from ramify.identify.measured_log import Log
from ramify.identify.motor_currents import (
    TorqueConstants,
    as_torques,
    checked_constants,
    identified_constants,
    scale_verdict,
)
from ramify.identify.regression import (
    CUTOFFS,
    Band,
    Delay,
    Regression,
    best_delay,
    regression,
    stribeck_speeds,
    widest_band,
)
from ramify.identify.unknowns import Unknowns
from ramify.model.robot import Robot, once, the_robot

R = TypeVar("R", bound=Robot)
SHOWN: Final = 1e-4
"""What must remain of a column, normalised, beside the earlier ones for a log to show it."""
_WEIGHED: Final = 1e-4  # share of a weighed mass by which it may be wrong


def fit(
    model: R,
    logs: object,
    *,
    friction: str = "coulomb",
    rotors: bool = True,
    offsets: bool = True,
    delay: bool | float = True,
    band: float | None = None,
    units: str | None = None,
    eliminate: float = 0.0,
    mass: float | None = None,
    torque_constants: dict[str, float] | None = None,
) -> Fit[R]:
    """The parameters of a robot from logs of its motion, with standard errors and verdicts.

    logs: one or a list of: a path (.csv, .npz, .parquet), a mapping {"t", "q", "tau"} of arrays, a
    pandas frame, a result of ``rf.simulate``. Several logs have their own noise each. Closed loops
    need q of the drives alone; a free base needs ``wrenches`` {body: (T, 6)} of the ground, or the
    weighed ``mass`` (kg).

    - friction: "none", "viscous", "coulomb" (with viscous), "asymmetric" or "stribeck".
    - rotors: whether armatures are unknown. offsets: whether torques have constant errors.
    - delay: whether torques may be recorded later than coordinates; a number is that time in s.
    - band: cutoff of the filter in Hz, by default the widest that the encoders allow.
    - units: "rad" or "deg" of the angles.
    - eliminate: parameters with a larger relative error are set to zero, one after the other, e.g.
      0.3; 0 for none.
    - torque_constants: {joint: N m/A} where the log has currents; those not named are unknown.

    Raises StateError for logs that cannot be used. What is doubtful is in ``Fit.verdicts``; with
    one of level "error" the fit has no robot.
    """
    the_robot(model)
    band = None if band is None else positive("band", band)
    unknowns = Unknowns(model, friction, flag("rotors", rotors), flag("offsets", offsets))
    measured = [read_log(model, log, units) for log in _listed(logs)]
    base = base_of(unknowns)
    measured, motors = _driven_by_currents(base, measured, torque_constants or {}, band)
    parts = [segments(model, log) for log in measured]
    if mass is None:
        _refuse_flight(parts)
    base, hidden = shown_by(base, parts, band)
    knowledge = None if mass is None else weighed(base, positive("mass", mass))
    chosen = _in_band(base, parts, band, knowledge)
    problem = chosen.problem
    problem, late = _delayed(problem, delay)
    if "stribeck" in unknowns.kinds:
        problem = stribeck_speeds(problem)
        problem, late = _delayed(problem, delay)
    problem, dropped = _eliminated(problem, eliminate)
    notes = [note for part in parts for note in part.notes]
    found = verdicts(problem, late, chosen, hidden, parts)
    if motors is not None:
        notes.append(scale_verdict(model, motors.scale, motors.values))
    return Fit(model, problem, late, (*notes, *found), dropped, tuple(parts), motors)


def _driven_by_currents(
    base: BaseParameters, logs: list[Log], constants: dict[str, float], band: float | None
) -> tuple[list[Log], TorqueConstants | None]:
    """The logs with torques: as they are, or from currents."""
    if not any(log.current is not None and not np.isfinite(log.tau).any() for log in logs):
        return logs, None
    robot, drives = base.unknowns.robot, base.unknowns.drives
    constants_by_drive = checked_constants(robot, drives, constants)
    units = as_torques(logs, dict.fromkeys(drives, 1.0))
    parts = [segments(robot, log) for log in units]
    problem = _in_band(shown_by(base, parts, band)[0], parts, band).problem
    places = [robot.velocities.index(group.name) for group in problem.groups]
    row = np.array(places)[problem.group[problem.keep]]
    values, errors, scale = identified_constants(
        problem.base,
        problem.X[problem.keep],
        problem.y[problem.keep],
        row,
        constants_by_drive,
        problem.base.nominal,
    )

    def named(numbers: dict[int, float]) -> dict[str, float]:
        return {robot.velocities[j]: x for j, x in numbers.items()}

    errors = {j: errors.get(j, 0.0) for j in values}
    return as_torques(logs, values), TorqueConstants(named(values), named(errors), scale)


def _listed(logs: object) -> Sequence[object]:
    listed = logs if isinstance(logs, (list, tuple)) else [logs]
    if not listed:
        raise StateError("give at least one log")
    return listed


def base_of(unknowns: Unknowns) -> BaseParameters:
    """The base parameters that motions of the robot can show."""
    key = (unknowns.friction, unknowns.rotors, unknowns.offsets)
    bases = _bases(unknowns.robot)
    if key not in bases:
        A = random_columns(unknowns)
        bases[key] = base_parameters(unknowns, A)
    return bases[key]


@once
def _bases(robot: Robot) -> dict[tuple[str, bool, bool], BaseParameters]:
    return {}


def random_columns(unknowns: Unknowns) -> Array:
    """Columns (rows, unknowns) of the equation of motion at random states."""
    robot, rng = unknowns.robot, np.random.default_rng(0)
    if robot.loops:
        q, v, a = consistent_states(robot, unknowns.drives, STATES)
    else:
        q = np.array([robot.random(seed)[0] for seed in range(STATES)])
        v, a = rng.normal(size=(2, STATES, robot.nv))
    drives = list(unknowns.drives)
    rates = v[:, drives]
    sign = np.sign(rates)
    machine = unknowns.drive_columns(rates, a[:, drives], sign, sign * np.exp(-(rates**2)))
    whole = np.concatenate([unknowns.rigid_columns(q, v, a), machine], axis=-1)
    rows = unknowns.drives if robot.loops else range(robot.nv)
    return reduced_rows(robot, q, whole, list(rows)).reshape(-1, unknowns.size)


def shown_by(
    base: BaseParameters, logs: Sequence[Segments], band: float | None
) -> tuple[BaseParameters, tuple[str, ...]]:
    """The base parameters that these logs show, and the names of those that they do not."""
    narrow = min(
        CUTOFFS[1] if band is None else band, 0.2 / max(p.dt for x in logs for p in x.parts)
    )
    problem = regression(base, logs, narrow)
    columns = problem.rows_of(problem.all_columns)[problem.keep]
    size = np.array(
        [np.sqrt(np.mean(problem.y[problem.group == g] ** 2)) for g in range(len(problem.groups))]
    )
    weight = 1.0 / np.where(size > 0.0, size, 1.0)[problem.group[problem.keep]]
    A = columns * weight[:, None]
    kept, _, _, _ = independent_columns(A[:, list(base.columns)], list(range(len(base))), SHOWN)
    if len(kept) == len(base):
        return base, ()
    hidden = tuple(name for i, name in enumerate(base.short_names) if i not in set(kept))
    return base_parameters(base.unknowns, A, SHOWN), hidden


def _in_band(
    base: BaseParameters, logs: Sequence[Segments], band: float | None,
    knowledge: Knowledge | None = None,
) -> Band:  # fmt: skip
    if band is None:
        return widest_band(base, logs, knowledge)
    return Band(replace(regression(base, logs, band), knowledge=knowledge))


def _delayed(problem: Regression, delay: bool | float) -> tuple[Regression, Delay]:
    if isinstance(delay, bool):
        late = best_delay(problem) if delay else Delay(0.0, 0.0)
    else:
        late = Delay(float(delay), 0.0)
    sure = abs(late.value) > 3.0 * late.error
    return problem.with_delay(late.value if sure else 0.0), late


def weighed(base: BaseParameters, mass: float) -> tuple[Array, Array]:
    """The row of the robot's mass; StateError where the base parameters do not contain it."""
    masses = np.zeros(base.unknowns.size)
    masses[: base.unknowns.bodies : 10] = 1.0
    row = np.linalg.lstsq(base.grouping.T, masses, rcond=None)[0]
    if np.abs(row @ base.grouping - masses).max() > 1e-9:
        raise StateError("mass: the total mass of this robot does not act on its motion")
    error = _WEIGHED * mass
    return np.asarray(row[None] / error, dtype=np.float64), np.array([mass / error])


def _refuse_flight(logs: Sequence[Segments]) -> None:
    """Refuse a free base without any force: its equations are homogeneous in the parameters."""
    forces = (np.nan_to_num(part.tau).any() or part.wrenches for log in logs for part in log.parts)
    if not any(forces):
        raise StateError(
            "mass: no force is known, so that all masses could be multiplied by any number: in "
            "flight the mass cannot be seen; give tau, wrenches of the ground, or the weighed mass="
        )


def _eliminated(problem: Regression, most: float) -> tuple[Regression, tuple[str, ...]]:
    """The problem without parameters of a larger relative error, the worst first: these are zero
    within their errors.
    """
    dropped: list[str] = []
    while most > 0.0 and len(problem.base) > 1:
        solution = problem.solution
        relative = solution.errors / np.maximum(np.abs(solution.beta), 1e-300)
        worst = int(np.argmax(relative))
        if relative[worst] <= most:
            break
        dropped.append(problem.base.short_names[worst])
        problem = _without(problem, worst)
    return problem, tuple(dropped)


def _without(problem: Regression, i: int) -> Regression:
    """The problem with base parameter i at zero."""
    base = problem.base
    rest = [k for k in range(len(base)) if k != i]
    fewer = replace(
        base, columns=tuple(base.columns[k] for k in rest), grouping=base.grouping[rest]
    )
    knowledge = problem.knowledge
    if knowledge is not None:
        knowledge = knowledge[0][:, rest], knowledge[1]
    return replace(problem, base=fewer, knowledge=knowledge)
