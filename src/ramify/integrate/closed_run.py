"""Closed loops in a run: steps that keep them closed, postures where no motion is determined."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ramify.control.computed_torque import ComputedTorque
from ramify.control.robot_text import RobotText
from ramify.control.sum import parts_of
from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.core.messages import degrees
from ramify.core.warning import warn
from ramify.dynamics.closure import rounding
from ramify.dynamics.redundancy import redundancy
from ramify.integrate.run_segments import LoopClosing, StepChunk
from ramify.integrate.thrown_rates import LEAST, ThrownRates
from ramify.kernels.make import kernel
from ramify.loops.constraints import open_by, row_sizes, scaled_jacobian
from ramify.loops.rank import SINGULAR, RankWatch, jacobians
from ramify.loops.stabilise import projector
from ramify.model.robot import Robot
from ramify.plant.field import Field

_STRIDE = 0.1  # rad or m between two checks
_CLOSE = 1e-2  # margin below which the error of a failed run mentions a dead centre
_TOUCHED = 1e-4, 1e-3  # bounds of the margin below which a drive touches a dead centre


class LoopMonitor:
    """Keeps the loops of a run closed after each step, and watches for singular postures.

    ``driven``: the velocities that a drive determines, whatever the loops do (see
    ``driven_velocities``). The loops alone must then determine the others; where they do not, the
    drive is at a dead centre of its own. A motion that turns back there only touches it: steps of
    a tolerance ``rtol`` then come within a margin of about its square root, and no nearer.
    """

    def __init__(
        self, model: Robot, project: bool, at_singularity: str, driven: Sequence[int], rtol: float
    ) -> None:
        self.model, self.project, self.stop = model, project, at_singularity == "stop"
        self.passed: list[float] = []  # s
        self.driven = driven
        self._least = float(np.clip(math.sqrt(rtol), *_TOUCHED)) if driven else SINGULAR
        self._left = [k for k in range(model.nv) if k not in self.driven]
        self._tolerance = redundancy(model).tolerance
        self._rates, self._fastest = ThrownRates(model, max(LEAST, 100.0 * rtol)), 0.0
        self._anchor: RankWatch | None = None
        self._last: tuple[float, Array] | None = None  # time of the last check, J there
        self._rank, self._sure, self._clear = 0, False, True

    @cached_property
    def _projector(self) -> Callable[[Array], Array]:
        return projector(self.model)

    @property
    def closing(self) -> LoopClosing | None:
        """How a run closes the loops, where it projects."""
        if not self.project:
            return None
        return LoopClosing(self.project_step, self.closed_state, self.compare)

    def closed_state(self, y: Array) -> Array:
        """The state, projected onto the closed loops."""
        if not self.project:
            return y
        n = self.model.nq + self.model.nv
        out = np.array(y)
        out[:n] = self._projector(np.ascontiguousarray(y[:n]))
        return out

    def project_step(self, y: Array) -> Array:
        """The state after a step, projected onto the closed loops; its rates are compared."""
        out, n = self.closed_state(y), self.model.nq + self.model.nv
        self.compare(y[None, self.model.nq : n], out[None, self.model.nq : n])
        return out

    def compare(self, v: Array, closed: Array) -> None:
        """Note rates that closing the loops has changed by more than an integrator's error: of
        steps in a row, v (N, nv) before it and after.
        """
        fastest = np.maximum.accumulate(np.append(self._fastest, self._rates.speeds(v)))
        self._fastest = float(fastest[-1])
        self._rates.compare(v, closed, fastest[1:])

    @property
    def thrown(self) -> int:
        """The number of steps after which closing the loops has changed rates by too much."""
        return self._rates.count

    def warn(self) -> None:
        """Warn of rates that projection has changed."""
        if self.thrown:
            warn(
                f"{self._rates.text(f'{self.thrown} times')}; r.audit tells what energy that took; "
                "shorter steps (step, rtol, max_step) help where steps were too long",
                RuntimeWarning,
            )

    @cached_property
    def _scale(self) -> Array:
        return scaled_jacobian(
            self.model, np.ones((sum(len(loop.rows) for loop in self.model.loops), self.model.nv))
        )

    def _jacobian(self, t: float, y: Array) -> Array:
        """J without units and driven columns; loops that projection does not close are refused."""
        residual, flat, _ = kernel(self.model, "constraints")(
            y[: self.model.nq], np.zeros(self.model.nv)
        )
        if self.project:
            self._refuse_torn(t, residual)
        return (flat.reshape(self._scale.shape) * self._scale)[:, self._left]

    def _refuse_torn(self, t: float, residual: Array) -> None:
        gap = np.abs(residual * row_sizes(self.model))
        if not (gap <= rounding(self.model)).all():
            why = "the steps are too long, or the desired motion is out of reach"
            if redundancy(self.model).redundant:
                why += ", or rows that follow from others contradict these there"
            raise SimulationError(
                f"the loops of {self.model.name!r} do not close any more at t = {t:.6g} s: "
                f"{open_by(self.model, gap)}; {why}"
            )

    def watch_step(self, chunk: StepChunk, before: Array) -> None:
        """End a run that meets, or has passed, a posture at which the loops do not determine the
        motion.

        J is checked once for every tenth of a radian (or a metre) that a joint moves, at the end of
        the step, and in shorter intervals wherever it has changed so much since the last check that
        it may have lost its rank in between (see loops/rank.py).
        """
        t, y = chunk.end, chunk.y(chunk.end)
        if self._last is None:
            self._begin(chunk.start, before)
        far = min(int(float(np.abs(y - before)[: self.model.nq].max(initial=0.0)) / _STRIDE), 64)
        try:
            for k in range(1, far + 1):
                now = chunk.start + (t - chunk.start) * k / (far + 1)
                self._watch(chunk, now, self._jacobian(now, chunk.y(now)))
            self._watch(chunk, t, self._jacobian(t, y))
        except _SingularError as met:
            self._meet(met)

    def _begin(self, t: float, y: Array) -> None:
        A = self._jacobian(t, y)
        self._anchor, self._last = RankWatch.at(A, self._tolerance), (t, A)
        self._rank, self._sure = self._anchor.rank, False

    def _watch(self, chunk: StepChunk, t: float, A: Array) -> None:
        """From the last check to the state at t, in ever shorter steps where need be."""
        assert self._anchor is not None
        assert self._last is not None
        ahead = [(t, A)]
        while ahead:
            t, A = ahead[-1]
            near = self.driven and self._anchor.margin < 4.0 * self._least
            if self._sure and not near and self._anchor.reaches(A):
                self._last = ahead.pop()
                continue
            before, last = self._last
            self._renew(before, last)
            if self._anchor.reaches(A):
                self._last = ahead.pop()
                self._renew(t, A)
                self._sure = True
            elif t - before <= 1e-12 * max(1.0, abs(t)) or len(ahead) > 60:
                raise _SingularError(t, f"has passed a singular posture before t = {t:.6g} s")
            else:
                middle = 0.5 * (before + t)
                ahead.append((middle, self._jacobian(middle, chunk.y(middle))))

    def _renew(self, t: float, A: Array) -> None:
        """Take the state at t as the new reference, or raise where it is singular."""
        watch = RankWatch.at(A, self._tolerance)
        if watch.rank == self._rank and watch.margin >= self._least:
            self._anchor, self._clear = watch, self._clear or watch.margin > _CLOSE
            return
        why, where = f"margin {watch.margin:.2g}", "is at"
        if watch.rank != self._rank:
            now, usual = (len(self._left) - rank for rank in (watch.rank, self._rank))
            why = f"margin 0, {degrees(now)} instead of {usual}"
        elif watch.margin >= SINGULAR:
            where = "comes too close to"
        raise _SingularError(t, f"{where} a singular posture at t = {t:.6g} s ({why})")

    def _meet(self, met: _SingularError) -> None:
        """Stop at a singular posture, or note it and continue after the step."""
        if self.stop:
            driven = ", ".join(repr(self.model.velocities[k]) for k in self.driven)
            whose = f" where the loops do not follow the drive of {driven}" if driven else ""
            raise SingularPostureError(
                f"{self.model.name} {met.what}{whose}: at a dead centre the loops do not "
                "determine which branch the motion follows; end the run before it, add what does "
                "determine it (a second crank, a spring), or go on with the velocity: "
                "at_singularity='pass'"
            )
        self._last = None
        if self._clear:  # once, however long it takes to get away
            self.passed.append(met.t)
        self._clear = False

    @property
    def suspicion(self) -> str:
        """A hint for a run that fails: a dead centre, where the last check was close to one."""
        if self.passed and not self._clear:
            return f"; it has passed a dead centre at t = {self.passed[-1]:.6g} s"
        if self._last is None:
            return ""
        margin = RankWatch.at(self._last[1], self._tolerance).margin
        near = margin < _CLOSE
        return f"; it is close to a dead centre, with a margin of {margin:.2g}" if near else ""


class SingularPostureError(SimulationError):
    """A run that stops where the loops do not determine the motion."""


class _SingularError(Exception):
    """A singular posture: its time and a description."""

    def __init__(self, t: float, what: str) -> None:
        super().__init__(what)
        self.t, self.what = t, what


def driven_velocities(field: Field, q: Array) -> tuple[int, ...]:
    """The velocities whose accelerations the controller determines, as far as the loops leave them
    free at q: those of a prescribed motion and of computed torque; none where the controller only
    adds forces, or drives coordinates that depend on each other.
    """
    robot = RobotText(field.model)
    driven: set[int] = set()
    for part in parts_of(field.control):
        if part.prescribes or isinstance(part, ComputedTorque):
            driven.update(part.driven(robot).v)
    A, tolerance = jacobians(field.model, q), redundancy(field.model).tolerance
    left = [k for k in range(field.model.nv) if k not in driven]
    ranks = [RankWatch.at(part, tolerance).rank for part in (A[:, left], A)]
    free = driven and ranks[0] == ranks[1]
    return tuple(sorted(driven)) if free else ()
