"""Whether rows of a robot's loops follow from others where the loops are closed, in numbers.

Data are rounded. A linkage that moves although its rows say it is locked then closes but for its
last digits, and its rows follow from each other but for these: a singular value of J that should be
zero is a small one. What tells it from one that counts is the motion along it: that leads on, with
the loops closed but for rounding and the singular value as small as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ramify.core.arrays import Array
from ramify.core.scalar import number
from ramify.dynamics.closure import Closure, closures, loop_sizes, reach, rounding
from ramify.dynamics.constraint_kinematics import loop_constraints
from ramify.dynamics.independent_rows import Redundancy
from ramify.dynamics.linear import RANK
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import tree_of
from ramify.model.robot import Robot, once

_SMALL = 1e-3  # largest share of a singular value, or of a row, that rounding can make of zero
_MARGIN = 10.0  # how much more than at the postures looked at it may be elsewhere
_CLOSED = 1e-9  # share of the size at which a posture counts as closed here
_AWAY = 0.2  # rad, or share of the size: how far a motion is followed
_STARTS, _STEPS, _LOOKS = 5, 60, 2
_FARTHER, _ALIKE = 0.5, 2.0  # how far these are followed, and how much larger theirs may get
_COARSE = 100.0  # times what rounded data may miss by: up to there coarser ones are the reason
_NEARLY = 3e-2  # largest share of a singular value that data of two digits make of zero


@once
def redundancy(model: Robot) -> Redundancy:
    """Whether rows of a robot's loops follow from others, judged where the loops are closed: near
    its guess, and from other postures, always the same ones. One closed posture at which all rows
    count is enough to say no.
    """
    text = _LoopResiduals(model, closures(model))
    tolerance, looks = RANK, 0
    for q in text.starts():
        for posture in text.postures(text.closest(q)):
            if posture.regular:
                return Redundancy(False, RANK, text.size)
            tolerance = max(tolerance, _MARGIN * posture.rounded)
            looks += 1
        if looks >= _LOOKS:
            break
    return Redundancy(True, min(tolerance, text.small), text.size)


@dataclass(frozen=True)
class NearMotion:
    """A motion that loops nearly allow: ``pull`` (nc,) is the share of each row in what stops it,
    ``opening`` (nc,), in m, what the rows open by along it, over ``distance`` (rad, or share of the
    size).
    """

    pull: Array
    opening: Array
    distance: float


def near_motions(model: Robot, q: Array) -> list[NearMotion]:
    """The motions that the loops at a closed posture q would allow but for data that are rounded
    more than ``redundancy`` makes up for: each leads on, both ways, with the loops closed but for
    little and the singular values much as they were. Close to a dead centre they are not.
    """
    text = _LoopResiduals(model, closures(model), _NEARLY)
    posture, least = _LoopPosture(text, q), redundancy(model).tolerance
    motions = []
    for i in (i for i in posture.between if posture.shares[i] > least):
        ways = [text.followed(posture, i, away) for away in (_FARTHER, -_FARTHER)]
        opening = np.maximum(*(np.abs(ahead.r) for ahead in ways))
        if (opening <= _COARSE * text.limits).all() and all(
            ahead.counted == posture.counted and ahead.shares[i] < _ALIKE * posture.shares[i]
            for ahead in ways
        ):
            motions.append(NearMotion(np.abs(posture.u[:, i]), opening, _FARTHER))
    return motions


class _LoopPosture:
    """A posture with its residual (nc,) in m and J (nc, nv) without units, by singular values."""

    def __init__(self, text: _LoopResiduals, q: Array) -> None:
        self.q, (self.r, self.A) = q, text.at(q)
        self.u, s, self.vt = np.linalg.svd(self.A, full_matrices=False)
        self.largest = float(s[0]) if len(s) else 0.0
        self.s = s
        self.shares = s / (self.largest or 1.0)
        self.gap = float(np.abs(self.r).max(initial=0.0)) / text.size
        self.closed = bool((np.abs(self.r) <= text.limits).all())
        self.counted = int((self.shares > text.small).sum())
        self.between = [i for i, x in enumerate(self.shares) if RANK < x <= text.small]
        self.regular = self.counted == len(self.A) and self.gap <= _CLOSED

    @property
    def rounded(self) -> float:
        """The largest share that rounding seems to have made of zero."""
        between = max((float(self.shares[i]) for i in self.between), default=0.0)
        return max(between, self.gap if self.gap > _CLOSED else 0.0)


class _LoopResiduals:
    """Residuals and J of a robot's loops in numbers."""

    def __init__(self, model: Robot, loops: Sequence[Closure], small: float = _SMALL) -> None:
        self.model, self.loops, self.tree = model, loops, tree_of(model)
        self.size, self.limits = reach(model), rounding(model)
        self.columns = np.array([self.size if link.p.rho else 1.0 for link in self.tree.links])
        self.small = small * min(1.0, min(loop_sizes(model)) / self.size)

    def starts(self) -> list[Array]:
        """Postures to close the loops from."""
        q = self.model.neutral()
        for name, value in (self.model.guess or {}).items():
            if name in self.model.coordinates:
                q[self.model.coordinates.index(name)] = float(value)
        return [q, *(self.model.tree.random(seed)[0] for seed in range(_STARTS))]

    def at(self, q: Array) -> tuple[Array, Array]:
        """Residual (nc,) in m, J (nc, nv) without units."""
        column = self.model.skeleton.coordinates([float(x) for x in q], (1.0, 0.0, 0.0, 0.0))
        x = displacements(self.tree, column)
        rows = loop_constraints(self.tree, self.loops, column, x, None, facing=True)
        J = np.zeros((len(rows), self.model.nv))
        r = np.array([number(row.value) * row.size for row in rows])
        for i, row in enumerate(rows):
            for k, entry in row.entries.items():
                J[i, k] = number(entry) * row.size
        return r, J / self.columns

    def postures(self, posture: _LoopPosture) -> Iterator[_LoopPosture]:
        """Those that tell: none where the loops are open. Where small singular values may be
        rounded zeros, those that the motion along them leads to; if it leads nowhere, they count.
        """
        if not posture.closed:
            return
        ahead = [self.followed(posture, i) for i in posture.between]
        if all(x.closed and x.counted == posture.counted for x in ahead):
            yield posture
            yield from ahead
            return
        yield from (x for x in ahead if x.regular)
        posture.between = []
        count = int((posture.shares > RANK).sum())
        posture.regular = count == len(posture.A) and posture.gap <= _CLOSED
        yield posture

    def followed(self, posture: _LoopPosture, i: int, away: float = _AWAY) -> _LoopPosture:
        """The posture that a motion along a singular value leads to, closed as far as those that
        count allow.
        """
        way = posture.vt[i] / self.columns
        length = float(np.abs(way * self.columns).max()) / self.size
        found = _LoopPosture(self, self.model.integrate(posture.q, way * (away / length), 1.0))
        for _ in range(8):
            n = found.counted
            back = -(found.vt[:n].T @ ((found.u[:, :n].T @ found.r) / found.s[:n])) / self.columns
            found = _LoopPosture(self, self.model.integrate(found.q, back, 1.0))
        return found

    def closest(self, q: Array) -> _LoopPosture:
        """Where Levenberg and Marquardt's steps end."""
        now = _LoopPosture(self, q)
        damping = 1e-3
        for _ in range(_STEPS):
            if now.gap <= 1e-13:
                break
            ease = damping * max(now.largest, 1e-100) ** 2
            step = -(now.vt.T @ ((now.u.T @ now.r) * now.s / (now.s * now.s + ease))) / self.columns
            longest = float(np.abs(step * self.columns).max(initial=0.0)) / self.size
            new = _LoopPosture(self, self.model.integrate(now.q, step / max(1.0, longest), 1.0))
            before, after = float(now.r @ now.r), float(new.r @ new.r)
            if after < before:
                now, damping = new, max(damping * 0.1, 1e-15)
                if 1.0 - after / before < 1e-9:
                    break
            else:
                damping *= 10.0
                if damping > 1e3:
                    break
        return now
