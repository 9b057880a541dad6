"""Whether loops keep their hold on the way from one posture to another: whether J keeps its rank.

With J0 = U S V' at one posture, of rank r, and J at another, E = U' (J - J0) V / S (r, r) tells how
far J has come from J0, measured by what it would take to lose a rank. As long as |E| < 1 none is
lost, by however many loops at once; and on a straight way from J0 to J the part of J that held at
J0 lets go exactly where E has a real eigenvalue of -1 or less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.loops.constraints import scaled_jacobian
from ramify.model.robot import Robot

NEAR = 0.5
"""|E| up to which a posture is followed without looking closer: half of what a loss of rank takes,
as ways are not straight.
"""
SINGULAR = 1e-6
"""Margin below which a posture counts as singular."""


@dataclass(frozen=True)
class RankWatch:
    """J at one posture: ``A`` (nc, n) without units, ``pulls`` U' (r, nc) and ``back`` V / S (n,
    r); ``margin`` is the smallest singular value that counts, as a share of the largest, 1 where
    nothing is held.
    """

    A: Array
    pulls: Array
    back: Array
    margin: float

    @classmethod
    def at(cls, A: Array, tolerance: float) -> RankWatch:
        """The hold of a Jacobian (nc, n) without units: of singular values above a share of the
        largest.
        """
        u, s, vt = np.linalg.svd(A, full_matrices=False)
        largest = float(s[0]) if len(s) else 0.0
        rank = int((s > tolerance * largest).sum())
        margin = float(s[rank - 1] / largest) if rank else 1.0
        return cls(A, u[:, :rank].T, vt[:rank].T / s[:rank], margin)

    @property
    def rank(self) -> int:
        return len(self.pulls)

    def change(self, A: Array) -> Array:
        """E (r, r) towards another Jacobian (..., nc, n)."""
        return self.pulls @ (A - self.A) @ self.back

    def reaches(self, A: Array) -> bool:
        """Whether another Jacobian is so near that no rank is lost on the way."""
        return float(np.linalg.norm(self.change(A))) < NEAR


def lets_go(E: Array) -> Array:
    """(...): whether the hold is lost on a straight way with the changes E (..., r, r)."""
    values = np.linalg.eigvals(E)
    straight = np.abs(values.imag) <= 1e-9 * np.abs(values)
    return (straight & (values.real <= -1.0 + SINGULAR)).any(axis=-1)


def jacobians(model: Robot, q: Array) -> Array:
    """J (..., nc, nv) without units at postures q (..., nq)."""
    _, flat, _ = kernel(model, "constraints")(q, np.zeros((*q.shape[:-1], model.nv)))
    return scaled_jacobian(model, flat.reshape(*flat.shape[:-1], -1, model.nv))
