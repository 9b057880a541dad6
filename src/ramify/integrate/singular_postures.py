"""Loops in a rollout: many states are checked at once between its steps, for singular postures and
for rates that closing the loops changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.warning import warn
from ramify.dynamics.redundancy import redundancy
from ramify.integrate.thrown_rates import LEAST, ThrownRates
from ramify.loops.rank import NEAR, SINGULAR, jacobians, lets_go
from ramify.model.robot import Robot

_STRIDE = 0.1  # rad or m between two checks, at the speed of the last one
_FIRST = 0.01  # s until the first check
_APART = 8  # steps, at least, from one of which rates are compared to the next


class Watch:
    """J of a batch of states q (N, nq), check by check; ``met`` (N,): the states that have met a
    singular posture, ``times`` (N,): when that was noticed, s (NaN for the others). States whose
    coordinates are not finite are ignored.

    Between two checks J is taken to change along a straight line (see loops/rank.py): a state that
    passes a singular posture is noticed, and so is one that comes very near to one. ``driven``:
    velocities that a drive determines, see ``closed_run.driven_velocities``.
    """

    def __init__(self, model: Robot, q: Array, driven: Sequence[int], dt: float) -> None:
        self.model, self.dt = model, dt
        self._left = [k for k in range(model.nv) if k not in driven]
        self.met = np.zeros(len(q), dtype=bool)
        self.times = np.full(len(q), np.nan)
        self._ahead = max(1, int(_FIRST / dt))
        A = self._last = self._jacobians(q)
        finite = np.flatnonzero(np.isfinite(q).all(axis=1))
        rows, columns = A.shape[1:]
        k = min(rows, columns)
        self._at, n = np.empty_like(A), len(A)
        self._pulls, self._back = np.empty((n, k, rows)), np.empty((n, columns, k))
        self._rates, self._next = ThrownRates(model, LEAST), 0
        self._fastest, self._largest = np.zeros(len(q)), np.zeros(len(q))
        self._changed = np.zeros((2, len(q), model.nv))  # rates before and after the largest change
        self._usual = 0
        self._anchor(finite, A[finite])

    def _jacobians(self, q: Array) -> Array:
        return jacobians(self.model, np.ascontiguousarray(q))[..., self._left]

    def _anchor(self, which: NDArray[np.intp], A: Array) -> None:
        """Measure some states from where they are now."""
        u, s, vt = np.linalg.svd(A, full_matrices=False)
        counted = s > redundancy(self.model).tolerance * s[:, :1]
        rank = counted.sum(axis=1)
        self._usual = max(self._usual, int(rank.max(initial=0)))
        last = np.take_along_axis(s, np.maximum(rank - 1, 0)[:, None], axis=1)[:, 0]
        self.met[which[(rank < self._usual) | (last < SINGULAR * s[:, 0])]] = True
        weight = np.where(counted, 1.0 / np.where(counted, s, 1.0), 0.0)
        self._at[which], self._pulls[which] = A, u.transpose(0, 2, 1)
        self._back[which] = vt.transpose(0, 2, 1) * weight[:, None]

    def _change(self, which: NDArray[np.intp] | slice, A: Array) -> Array:
        return self._pulls[which] @ (A - self._at[which]) @ self._back[which]

    def check(self, t: float, q: Array) -> None:
        """Follow the states to q at the time t (s); those whose coordinates are not finite are
        ignored.
        """
        self._follow(q)
        self.times[self.met & np.isnan(self.times)] = t

    def _follow(self, q: Array) -> None:
        which = np.flatnonzero(~self.met & np.isfinite(q).all(axis=1))
        if not which.size:
            return
        A = self._jacobians(q[which])
        E = self._change(slice(None) if len(which) == len(q) else which, A)
        far = np.einsum("nij,nij->n", E, E) >= NEAR * NEAR
        some, there = which[far], A[far]
        if some.size:
            self._anchor(some, self._last[some])
            E = self._change(some, there)
            off = np.linalg.norm(E, axis=(1, 2)) >= NEAR
            if off.any():
                self.met[some[off][lets_go(E[off])]] = True
                self._anchor(some[off], there[off])
        self._last[which] = A

    def steps(self, v: Array) -> int:
        """Steps until the next check, from the velocities (N, nv): a tenth of a radian at their
        speed, at most twice as many as before.
        """
        fastest = float(np.abs(v[np.isfinite(v).all(axis=1)]).max(initial=0.0))
        self._ahead = max(1, min(2 * self._ahead, int(_STRIDE / max(fastest * self.dt, 1e-12))))
        return self._ahead

    def compares(self, step: int) -> bool:
        """Whether the rates before and after closing the loops are compared at this step."""
        due = step >= self._next
        self._next = step + _APART if due else self._next
        return due

    def compare(self, v: Array, closed: Array) -> None:
        """Note the largest change of the rates v (N, nv) of each state by closing the loops."""
        self._fastest = np.fmax(self._fastest, self._rates.speeds(v))
        change = self._rates.changes(v, closed).max(axis=1)
        larger = change > self._largest
        self._largest[larger] = change[larger]
        self._changed[:, larger] = v[larger], closed[larger]

    def warn(self) -> None:
        """Warn of the states that met a singular posture, or whose rates were changed by more than
        the error of a step, measured by their fastest ones.
        """
        thrown = self._rates.compare(self._changed[0], self._changed[1], self._fastest)
        if thrown.any():
            times = f"in {int(thrown.sum())} of {len(thrown)} states"
            warn(f"{self._rates.text(times)}; shorter steps (dt) help", RuntimeWarning)
        met = np.flatnonzero(self.met)
        if met.size:
            some = ", ".join(map(str, met[:8])) + (", …" if met.size > 8 else "")
            warn(
                f"{met.size} of {len(self.met)} states of {self.model.name!r} pass a singular "
                "posture of the loops, or come very "
                f"near one (states {some}): at a dead centre the branch that is followed is not "
                "determined; see Rollout.singular",
                RuntimeWarning,
            )
