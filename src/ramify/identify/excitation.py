"""Motions that show a robot's parameters: Fourier series within the limits, chosen for the smallest
standard errors, which are predicted before anything moves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, positive, whole
from ramify.core.bar import Bar
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.documents.writing import write_whole
from ramify.identify.base_parameters import BaseParameters
from ramify.identify.fitting import base_of
from ramify.identify.motion_planner import (
    STARTS,
    STATES,
    TRIALS,
    Planner,
    bounds_of,
    fourier_basis,
    motion_columns,
)
from ramify.identify.unknowns import Unknowns
from ramify.model.robot import Robot, the_robot
from ramify.motion.table import Table


class Predicted(NamedTuple):
    """A base parameter and the standard error that a fit of the motion will have."""

    name: str
    value: float
    error: float
    unit: str


@dataclass(frozen=True, eq=False, repr=False)
class Excitation:
    """A periodic motion q = centre + sum of harmonics, which begins and ends at rest.

    ``sin`` and ``cos`` (n, harmonics) are amplitudes of the rates, rad/s or m/s; ``noise`` (n,) the
    standard deviation of each torque sample that the predictions assume.
    """

    robot: Robot
    base: BaseParameters
    period: float
    centre: Array
    sin: Array
    cos: Array
    noise: Array
    rate: float
    repeats: int = 1

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, v, a (T, nv) at the times t."""
        B = fourier_basis(np.asarray(t, dtype=np.float64), self.period, self.sin.shape[1])
        coefficients = np.hstack([self.sin, self.cos]).T
        q, v, a = (b @ coefficients for b in B)
        return self.centre + q, v, a

    @property
    def duration(self) -> float:
        return self.period * self.repeats

    @cached_property
    def t(self) -> Array:
        """The times of all samples, s."""
        return np.arange(round(self.duration * self.rate) + 1) / self.rate

    @property
    def motion(self) -> Table:
        """The motion as a trajectory that controllers follow."""
        t = np.linspace(0.0, self.duration, max(50, round(50 * self.duration)) + 1)
        return Table(t, self.at(t)[0])

    @cached_property
    def torques(self) -> Array:
        """Torques (T, nv) of the nominal robot along the motion."""
        t = np.linspace(0.0, self.period, 4 * STATES, endpoint=False)
        q, v, a = self.at(t)
        return motion_columns(self.base.unknowns, q, v, a, soft=False) @ self.base.unknowns.nominal

    @cached_property
    def predicted(self) -> tuple[Predicted, ...]:
        """The base parameters of the nominal robot and the standard errors of a fit."""
        errors = np.sqrt(np.diag(np.linalg.pinv(self.information, rcond=1e-13, hermitian=True)))
        rows = zip(
            self.base.short_names,
            self.base.nominal.tolist(),
            errors.tolist(),
            self.base.units,
            strict=True,
        )
        return tuple(Predicted(*row) for row in rows)

    @property
    def information(self) -> Array:
        """The information matrix of all samples."""
        t = np.linspace(0.0, self.period, 4 * STATES, endpoint=False)
        q, v, a = self.at(t)
        Y = motion_columns(self.base.unknowns, q, v, a, soft=False)[..., list(self.base.columns)]
        weighted = (Y / self.noise[:, None]).reshape(-1, len(self.base))
        samples = self.duration * self.rate / len(t)
        return np.asarray(weighted.T @ weighted * samples)

    @property
    def reached(self) -> dict[str, Array]:
        """The largest speed and torque of each coordinate, and the range of q."""
        t = np.linspace(0.0, self.period, 4 * STATES, endpoint=False)
        q, v, _ = self.at(t)
        return {
            "lower": q.min(axis=0), "upper": q.max(axis=0), "v": np.abs(v).max(axis=0),
            "tau": np.abs(self.torques).max(axis=0),
        }  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write t, q, v and a of all samples as a CSV file."""
        names = self.robot.velocities
        header = ["t", *(f"{key}_{name}" for key in "qva" for name in names)]
        rows = np.column_stack([self.t, *self.at(self.t)])
        lines = [",".join(header), *(",".join(f"{x:.9g}" for x in row) for row in rows.tolist())]
        write_whole(path, "\n".join(lines) + "\n", StateError)

    def __str__(self) -> str:
        reached, robot = self.reached, self.robot
        lines = [
            f"Excitation of {robot.name}: {self.period:g} s, {self.repeats} times, "
            f"{self.rate:g} samples a second; begins and ends at rest",
            f"{'joint':24} {'lower':>9} {'upper':>9} {'|v|':>9} {'|tau|':>9}",
        ]
        columns = zip(
            robot.velocities,
            *(reached[k].tolist() for k in ("lower", "upper", "v", "tau")),
            strict=True,
        )
        lines += [
            f"{name[:24]:24} {a:9.3f} {b:9.3f} {v:9.3f} {tau:9.3g}"
            for name, a, b, v, tau in columns
        ]
        lines.append(f"{'parameter':32} {'nominal':>12} {'predicted error':>16}  unit")
        lines += [
            f"{x.name[:32]:32} {x.value:12.5g} {x.error:16.2g}  {x.unit}" for x in self.predicted
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ramify.identify.Excitation of {self.robot.name!r}: {self.duration:g} s>"


def excite(
    model: Robot,
    period: float = 10.0,
    *,
    friction: str = "coulomb",
    limits: Mapping[str, ArrayLike] | None = None,
    noise: ArrayLike | None = None,
    rate: float = 1000.0,
    repeats: int = 2,
    seed: int = 0,
    allowed: Callable[[Array], ArrayLike] | None = None,
    progress: bool | Callable[[float], None] = False,
) -> Excitation:
    """A motion within the limits of the robot whose fit has small standard errors.

    The joints follow Fourier series of five harmonics of 1 / period, at rest at the beginning. What
    is minimised is minus the logarithm of the determinant of the information on the base
    parameters, by L-BFGS with exact derivatives.

    - limits: {"lower", "upper", "velocity", "effort"}: arrays (nv,) in place of the model's own.
    - noise: standard deviation (nv,) of a torque sample; by default 1 % of the torques.
    - rate: samples a second of the log; repeats: how many periods are played.
    - allowed: a function of q (T, nv) that is negative where a posture must not be, e.g. the
      distance to an obstacle or between links; it is called for the postures of a motion.
    - progress: whether to show a bar, or a function that is called with the share that is done.

    Raises StateError where the robot has loops or a free base, or where no motion fits.
    """
    the_robot(model)
    if model.loops or model.nq != model.nv:
        raise StateError(
            "excite plans motions of trees of single joints on a fixed base; for closed loops and "
            "free bases choose a motion yourself"
        )
    unknowns = Unknowns(model, friction)
    bounds = bounds_of(model, limits or {})
    problem = Planner(base_of(unknowns), bounds, positive("period", period), noise, allowed)
    with _bar(progress) as show:
        x = problem.optimised(problem.best_random(TRIALS, seed, STARTS), show)
    sin, cos = problem.amplitudes(x)
    return Excitation(
        model, problem.base, problem.period, problem.centre, sin, cos, problem.noise,
        positive("rate", rate), whole("repeats", repeats, 1),
    )  # fmt: skip


@contextmanager
def _bar(progress: bool | Callable[[float], None]) -> Iterator[Callable[[float], None]]:
    """What is called with the share of a plan that is done."""
    if callable(progress):
        yield progress
    elif progress:
        bar = Bar("planning", 1.0, transient=True)
        try:
            yield lambda share: bar.update(share, f"{100 * share:.0f} %")
        finally:
            bar.close()
    else:
        yield lambda share: None
