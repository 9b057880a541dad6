"""What would explain residuals that are not noise: a sign, swapped joints, a tilted mount, a scale.
Each is tried on the log itself, and the one that leaves the least is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.identify.least_squares import solve_least_squares
from ramify.identify.log_checks import Mask, Segments
from ramify.identify.measured_log import Log
from ramify.identify.regression import Regression, regression
from ramify.kernels.queries import regressor
from ramify.lint.finding import Finding
from ramify.model.edits import with_gravity
from ramify.model.robot import Robot

_NARROW: Final = 5.0  # Hz: enough to tell
_GAIN: Final = 0.1  # by which the mean logarithm of the noise must fall
_GEARS: Final = np.log(300.0)
_TILT: Final = 0.3  # degrees
_ROUNDS: Final = 8


def explanation(problem: Regression) -> Finding | None:
    """The best explanation, or None where none leaves much less than the fit itself."""
    narrow = _again(problem, lambda part: part)
    before = _level(narrow)
    best: tuple[float, Finding] | None = None
    for level, finding in (*_changes(problem), *_tilted(narrow), *_scaled(narrow)):
        if best is None or level < best[0]:
            best = level, finding
    if best is None or before - best[0] < _GAIN:
        return None
    return best[1]


def _level(problem: Regression) -> float:
    """The mean logarithm of the noise of the rows."""
    keep = problem.keep
    return _noise_level(problem.X[keep], problem.y[keep], problem.group[keep])


def _noise_level(X: Array, y: Array, group: NDArray[np.intp]) -> float:
    solution = solve_least_squares(X, y, group, rounds=3)
    count = np.bincount(group, minlength=len(solution.noise))
    return float(count @ np.log(np.maximum(solution.noise, 1e-300)) / count.sum())


def _again(problem: Regression, change: Callable[[Log], Log]) -> Regression:
    """The problem in a narrow band with changed logs."""
    logs: dict[int, list[tuple[Log, Mask]]] = {}
    for part, log in zip(problem.parts, problem.logs, strict=True):
        clipped = np.zeros(part.part.tau.shape, dtype=bool)
        logs.setdefault(log, []).append((change(part.part), clipped))
    parts = [
        Segments(tuple(p for p, _ in log), tuple(c for _, c in log), ()) for log in logs.values()
    ]
    new = regression(problem.base, parts, min(_NARROW, problem.cutoff), problem.delay)
    return replace(new, speeds=problem.speeds)


def _changes(problem: Regression) -> Iterator[tuple[float, Finding]]:
    """Signs and swaps of the columns of the log."""
    robot = problem.base.unknowns.robot
    if robot.loops or robot.nq != robot.nv:
        return
    drives = problem.base.unknowns.drives
    for j in drives:
        sign = np.ones(robot.nv)
        sign[j] = -1.0
        for of_q, of_tau, what in (
            (False, True, "the torque"),
            (True, False, "q"),
            (True, True, "q and torque"),
        ):

            def flipped(part: Log, q: bool = of_q, tau: bool = of_tau, s: Array = sign) -> Log:
                return replace(
                    part, q=part.q * s if q else part.q, tau=part.tau * s if tau else part.tau
                )

            text = f"with the opposite sign of {what} the log fits: this sign is wrong"
            finding = Finding("error", robot.velocities[j], "sign", text)
            yield _level(_again(problem, flipped)), finding
    for i, j in combinations(drives, 2):
        order = list(range(robot.nv))
        order[i], order[j] = j, i
        for of_q, of_tau, what in (
            (False, True, "torques"),
            (True, False, "coordinates"),
            (True, True, "columns"),
        ):

            def swapped(part: Log, q: bool = of_q, tau: bool = of_tau, o: list[int] = order) -> Log:
                return replace(
                    part, q=part.q[:, o] if q else part.q, tau=part.tau[:, o] if tau else part.tau
                )

            names = f"{robot.velocities[i]} and {robot.velocities[j]}"
            text = f"with the {what} of {names} exchanged the log fits: they are swapped"
            yield _level(_again(problem, swapped)), Finding("error", names, "swapped", text)


def _tilted(problem: Regression) -> Iterator[tuple[float, Finding]]:
    """Gravity in another direction, as of a robot whose base is tilted or hangs."""
    unknowns = problem.base.unknowns
    robot, columns = unknowns.robot, list(problem.base.columns)
    g = np.array(robot.gravity)
    size = float(np.linalg.norm(g))
    if robot.loops or not size or robot.nq != robot.nv:
        return
    still = with_gravity(robot, (0.0, 0.0, 0.0))
    units = [with_gravity(robot, tuple(e)) for e in np.eye(3).tolist()]

    def rigid(of: Robot) -> Array:
        arrays = []
        for part in problem.parts:
            Y = regressor(of, part.q, part.v, part.a, drives=True)
            whole = np.zeros((len(part.t), len(part.rows), unknowns.size))
            whole[..., : unknowns.bodies] = Y[:, list(part.rows), : unknowns.bodies]
            arrays.append(whole)
        return problem.rows_of(arrays)[problem.keep]

    none = rigid(still)
    by_axis = [(rigid(unit) - none) for unit in units]
    whole = problem.rows_of(problem.all_columns)[problem.keep]
    moving = whole - sum(x * part for x, part in zip(g, by_axis, strict=True))
    y, group = problem.y[problem.keep], problem.group[problem.keep]
    noise = problem.solution.noise[group]

    def columns_at(direction: Array) -> Array:
        X: Array = moving + sum(x * part for x, part in zip(direction, by_axis, strict=True))
        return X[:, columns]

    for start in (
        g,
        -g,
        *(size * np.cross(g / size, e) for e in np.eye(3) if abs(e @ g) < 0.9 * size),
    ):
        if np.linalg.norm(start) < 0.5 * size:
            continue
        direction = size * start / np.linalg.norm(start)
        for _ in range(_ROUNDS):
            X = columns_at(direction) / noise[:, None]
            beta = np.linalg.lstsq(X, y / noise, rcond=1e-10)[0]
            slopes = np.column_stack([(part[:, columns] @ beta) / noise for part in by_axis])
            across = np.linalg.svd(direction[None])[2][1:]
            step = np.linalg.lstsq(np.hstack([X, slopes @ across.T]), y / noise, rcond=1e-10)[0][
                -2:
            ]
            length = float(np.linalg.norm(step))
            step *= min(1.0, 0.5 * size / length) if length else 1.0
            direction = direction + across.T @ step
            direction *= size / np.linalg.norm(direction)
        angle = float(np.degrees(np.arccos(np.clip(direction @ g / size**2, -1.0, 1.0))))
        if angle > _TILT:
            listed = ", ".join(f"{x:.3g}" for x in direction)
            text = (
                f"with gravity ({listed}) m/s^2, {angle:.3g} degrees from the file's, the log "
                "fits: the base is tilted or upside down; see rf.with_gravity"
            )
            yield (
                _noise_level(columns_at(direction), y, group),
                Finding("error", robot.name, "gravity", text),
            )


def _scaled(problem: Regression) -> Iterator[tuple[float, Finding]]:
    """The torque of one joint by another factor than those of the others."""
    keep = problem.keep
    X, y, group = problem.X[keep], problem.y[keep], problem.group[keep]
    if len({g.name for g in problem.groups}) < 2:
        return
    for name in dict.fromkeys(g.name for g in problem.groups):
        rows = np.isin(group, [i for i, g in enumerate(problem.groups) if g.name == name])
        share = float(np.mean(rows))

        def level(size: float, rows: Mask = rows, share: float = share) -> float:
            scale = float(np.exp(size))
            return _noise_level(X, np.where(rows, y * scale, y), group) - share * size

        size = float(min(np.linspace(-_GEARS, _GEARS, 17), key=level))
        step = _GEARS / 8
        for _ in range(5):
            step *= 0.5
            size = min((size - step, size, size + step), key=level)
        scale = float(np.exp(size))
        if 0.8 < scale < 1.25:
            continue
        text = (
            f"with its torque times {scale:.3g} the log fits: a gear ratio or torque constant is "
            "wrong"
        )
        yield level(size), Finding("error", name, "gear", text)
