"""From a part of a log to rows of the equation of motion: filtered coordinates, rates and
accelerations, the columns of the unknowns, and the forces that they must give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.drives.machine_forces import passive_forces, passive_text
from ramify.identify.closed_rows import reduced_rows, whole_motion
from ramify.identify.filters import LowPass
from ramify.identify.log_checks import Mask
from ramify.identify.measured_log import Log
from ramify.identify.unknowns import Unknowns
from ramify.model.dynamic_parameters import dynamic_parameters
from ramify.model.robot import Robot

SLOW: Final = 0.1
"""rad/s or m/s, or this share of the usual rate where that is less: rows of slower drives are left
out, since the sign of their rate is not certain."""
SLOW_STRIBECK: Final = 0.02
"""The share where friction at low speeds is identified."""
STILL: Final = 1e-3
"""rad/s or m/s: a slower drive may stick, with any friction."""
LONGEST_DELAY: Final = 0.012
"""s, or this number of samples where these are longer: see ``PAD``."""
PAD: Final = 12


class SampledRows:
    """Rows of one part of a log under a filter. ``names``: of the rows, coordinates of v."""

    def __init__(self, unknowns: Unknowns, part: Log, clipped: Mask, cutoff: float) -> None:
        self.unknowns, self.part = unknowns, part
        self.filter = LowPass(cutoff, part.dt)
        robot, count = unknowns.robot, len(part)
        self.pad = int(min(PAD, max(2, round(LONGEST_DELAY / part.dt))))
        first = self.filter.reach + self.filter.half + self.pad + 1
        self.centres = np.arange(first, count - first, self.filter.stride, dtype=np.intp)
        if len(self.centres) < 3:
            raise StateError(
                f"{part.name}: {part.t[-1] - part.t[0]:.3g} s are too short for a filter of "
                f"{cutoff:g} Hz; record at least {3.0 * 2 * first * part.dt:.2g} s without a gap"
            )
        self.t = part.t[self.centres]
        self._smooth()
        self.forces = _forces(part)
        self.rows = _rows_of(unknowns, part)
        self.names = tuple(robot.velocities[j] for j in self.rows)
        self.keep = self._keep(clipped)
        self.fixed_forces = self._of_fixed_elements()

    def _smooth(self) -> None:
        """Filtered coordinates, rates and accelerations at the centres, and the rates of the drives
        at every sample.
        """
        robot, part, low = self.unknowns.robot, self.part, self.filter
        taps = [low.derivative_taps(order) for order in range(3)]
        q = np.full((len(self.centres), robot.nq), np.nan)
        v, a = np.full((2, len(self.centres), robot.nv), np.nan)
        where = robot.layout
        plain_q, plain_v = list(where.plain_q), list(where.plain_v)
        coordinates = part.q[:, plain_q]
        q[:, plain_q] = low.at(coordinates, taps[0], self.centres)
        v[:, plain_v] = low.at(coordinates, taps[1], self.centres)
        a[:, plain_v] = low.at(coordinates, taps[2], self.centres)
        for i, j in where.balls:
            turns, rates = _turning(robot, part, i, j)
            filtered = low.at(turns, taps[0], self.centres)
            q[:, i : i + 4] = filtered / np.linalg.norm(filtered, axis=1, keepdims=True)
            v[:, j : j + 3] = low.at(rates, taps[0], self.centres)
            a[:, j : j + 3] = low.at(rates, taps[1], self.centres)
        to_q = dict(zip(plain_v, plain_q, strict=True))
        driven = part.q[:, [to_q[j] for j in self.unknowns.drives]]
        self.driven_rates = low.everywhere(driven, taps[1])
        """(T - 2 reach, drives) at every sample."""
        self.q, self.v, self.a = whole_motion(robot, self.unknowns.drives, q, v, a, part.name)

    def _keep(self, clipped: Mask) -> Mask:
        """Rows (centres, rows) that are used."""
        unknowns, low = self.unknowns, self.filter
        keep = np.ones((len(self.centres), len(self.rows)), dtype=bool)
        here = self.centres - low.reach
        if "coulomb" in unknowns.kinds:
            share = SLOW_STRIBECK if "stribeck" in unknowns.kinds else SLOW
            usual = np.sqrt(np.mean(self.driven_rates**2, axis=0))
            slow = np.abs(self.driven_rates) < np.maximum(share * np.minimum(1.0, usual), STILL)
            reach = 0.4 if "stribeck" in unknowns.kinds else 1.0
            near = _widened(slow, round(reach / (low.cutoff * low.dt)))
            for k, j in enumerate(unknowns.drives):
                if j in self.rows:
                    keep[:, self.rows.index(j)] &= ~near[here, k]
        saturated = _widened(clipped, low.half + self.pad)
        for r, j in enumerate(self.rows):
            keep[:, r] &= ~saturated[self.centres, j]
        return keep

    def _of_fixed_elements(self) -> Array:
        """The forces (centres, rows) of what the robot has and the unknowns have not: rotors,
        damping and friction that are not identified, springs, tendons, gravity compensation.
        """
        unknowns, robot = self.unknowns, self.unknowns.robot
        drives, count = list(unknowns.drives), len(self.centres)
        nominal = dynamic_parameters(robot)[unknowns.bodies :].reshape(3, robot.nv)[:, drives]
        forces = np.zeros((count, robot.nv))
        values = (self.a[:, drives], self.v[:, drives], self.sign)
        for kind, x, size in zip(("armature", "damping", "coulomb"), values, nominal, strict=True):
            if kind not in unknowns.kinds:
                forces[:, drives] += size * x
        others = {"spring", "tendon", "gravity_compensation"} & set(
            passive_text(robot, False).parts
        )
        if others:
            passive = passive_forces(robot, self.q, self.v, stops=False).parts
            forces -= sum(passive[part] for part in others)
        return reduced_rows(robot, self.q, forces[..., None], self.rows)[..., 0]

    @cached_property
    def sign(self) -> Array:
        """The filtered signs (centres, drives) of the drives' rates."""
        return self._again(np.sign(self.driven_rates))

    def stribeck(self, speeds: Array) -> Array:
        """The filtered signs, times exp(-(v / speed)^2)."""
        x = self.driven_rates / speeds
        return self._again(np.sign(self.driven_rates) * np.exp(-x * x))

    def _again(self, signal: Array) -> Array:
        return self.filter.at(signal, self.filter.taps(), self.centres - self.filter.reach)

    def columns(self, speeds: Array | None = None) -> Array:
        """(centres, rows, unknowns); ``speeds``: of Stribeck friction at the drives."""
        rigid = self._rigid
        drives = list(self.unknowns.drives)
        falling = np.zeros_like(self.sign) if speeds is None else self.stribeck(speeds)
        machine = self.unknowns.drive_columns(
            self.v[:, drives], self.a[:, drives], self.sign, falling
        )
        whole = np.concatenate([rigid, machine], axis=-1)
        return reduced_rows(self.unknowns.robot, self.q, whole, self.rows)

    @cached_property
    def _rigid(self) -> Array:
        return self.unknowns.rigid_columns(self.q, self.v, self.a)

    def targets(self, delay: float = 0.0) -> Array:
        """The measured forces (centres, rows), taken ``delay`` s later than the coordinates."""
        taps = self.filter.taps(-delay, self.pad)
        measured = self.filter.at(self.forces[:, list(self.rows)], taps, self.centres)
        return np.asarray(measured - self.fixed_forces)


def _rows_of(unknowns: Unknowns, part: Log) -> tuple[int, ...]:
    """The coordinates of v whose forces are known: those measured, and a free base's, on which only
    the wrenches act.
    """
    robot = unknowns.robot
    if robot.loops:
        return unknowns.drives
    measured: Mask = np.asarray(np.isfinite(part.tau).all(axis=0))
    floating = [j for j in range(robot.nv) if j not in unknowns.drives]
    return tuple(j for j in range(robot.nv) if measured[j] or j in floating)


def _forces(part: Log) -> Array:
    """The generalized forces (T, nv) of drives and wrenches; those that were not measured are zero
    (a free base has no drive).
    """
    forces = np.nan_to_num(part.tau)
    return forces if part.wrench_forces is None else forces + part.wrench_forces


def _turning(robot: Robot, part: Log, i: int, j: int) -> tuple[Array, Array]:
    """The unit quaternions (T, 4) from place i without jumps of sign, and their angular velocities
    (T, 3) by central differences.
    """
    turns = np.array(part.q[:, i : i + 4])
    flips = np.sign(np.sum(turns[1:] * turns[:-1], axis=1))
    turns[1:] *= np.cumprod(np.where(flips == 0.0, 1.0, flips))[:, None]
    rates = np.zeros((len(turns), 3))
    rates[1:-1] = robot.difference(part.q[:-2], part.q[2:])[:, j : j + 3] / (2.0 * part.dt)
    return turns, rates


def _widened(marks: Mask, by: int) -> Mask:
    """Marks (T, n) within ``by`` samples of a mark."""
    count = np.cumsum(np.pad(marks.astype(np.int64), ((by + 1, by), (0, 0))), axis=0)
    return np.asarray(count[2 * by + 1 :] > count[: -2 * by - 1], dtype=bool)


@dataclass(frozen=True)
class Group:
    """Rows of one coordinate in one log, which share their noise."""

    log: int
    name: str
