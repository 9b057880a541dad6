"""Links that matter could have: all unknowns from the base parameters, every body with a positive
definite pseudo-inertia, drives with positive armature and friction.

    min 1/2 |R (G pi - beta)|^2 + gamma (sum_i D(J_i | J_i0) + sum_k D(x_k | x_k0))

D is the log-det divergence from the nominal robot, J = [Sigma h; h' m] with Sigma = tr(I)/2 - I.
gamma is followed down to a tenth; each step of Newton is a least-squares problem in coordinates in
which the present J is the identity. No semidefinite solver is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.identify.base_parameters import BaseParameters
from ramify.identify.unknowns import Unknowns
from ramify.model.dynamic_parameters import PER_BODY

_LAST: Final = 0.1
_STEPS: Final = 80
_POSITIVE: Final = ("armature", "damping", "coulomb")
_PAIRS: Final = [(i, j) for i in range(4) for j in range(i, 4)]
_HALF: Final = np.sqrt(2.0)


def _pseudo_inertia_map() -> Array:
    """(16, 10): the pseudo-inertia, row by row, of the ten numbers of a body."""
    out = np.zeros((4, 4, PER_BODY))
    xx, yy, zz, xy, yz, xz = range(4, 10)
    for i, (plus, minus) in enumerate((((yy, zz), xx), ((xx, zz), yy), ((xx, yy), zz))):
        out[i, i, list(plus)], out[i, i, minus] = 0.5, -0.5
    for i, j, k in ((0, 1, xy), (1, 2, yz), (0, 2, xz)):
        out[i, j, k] = out[j, i, k] = -1.0
    for i in range(3):
        out[i, 3, 1 + i] = out[3, i, 1 + i] = 1.0
    out[3, 3, 0] = 1.0
    return out.reshape(16, PER_BODY)


MAP: Final = _pseudo_inertia_map()
_INVERSE: Final = np.linalg.pinv(MAP)


def pseudo_inertia(ten: Array) -> Array:
    """J (..., 4, 4) of the ten numbers of bodies."""
    return np.asarray((ten @ MAP.T).reshape(*ten.shape[:-1], 4, 4))


def ten_of(J: Array) -> Array:
    """The ten numbers of pseudo-inertias (..., 4, 4)."""
    return np.asarray(J.reshape(*J.shape[:-2], 16) @ _INVERSE.T)


@dataclass(frozen=True, eq=False)
class ConsistentLinks:
    """All unknowns (size,), by how much chi2 grows from the base parameters' own minimum, the
    smallest eigenvalue of each body's pseudo-inertia over that of the nominal one, and the number
    of steps.
    """

    unknowns: Array
    chi2_increase: float
    smallest: Array
    steps: int


def nominal_inertias(unknowns: Unknowns) -> Array:
    """J0 (nb, 4, 4), positive definite: a body whose file has none gets that of a small ball."""
    robot = unknowns.robot
    J = pseudo_inertia(unknowns.nominal[: unknowns.bodies].reshape(-1, PER_BODY))
    masses = [body.mass for body in robot.bodies if body.mass > 0.0] or [1.0]
    out = np.empty_like(J)
    for b, here in enumerate(J):
        m = here[3, 3] if here[3, 3] > 0.0 else 0.05 * float(np.mean(masses))
        c = here[:3, 3] / m if here[3, 3] > 0.0 else np.zeros(3)
        about = here[:3, :3] - m * np.outer(c, c)
        moments, axes = np.linalg.eigh(0.5 * (about + about.T))
        radius = max(float(np.sqrt(max(moments.max(), 0.0) / m)), 0.02)
        moments = np.maximum(moments, m * (0.15 * radius) ** 2)
        sigma = axes @ np.diag(moments) @ axes.T + m * np.outer(c, c)
        out[b, :3, :3], out[b, :3, 3], out[b, 3, :3], out[b, 3, 3] = sigma, m * c, m * c, m
    return out


class _ConsistencyProblem:
    """The objective and its Newton step; x are the logarithm-free values of positive drives."""

    def __init__(self, base: BaseParameters, root: Array, beta: Array) -> None:
        self.base, self.beta = base, beta
        unknowns = base.unknowns
        self.J0 = nominal_inertias(unknowns)
        self.L0 = np.linalg.cholesky(self.J0)
        self.positive = [c for kind in _POSITIVE for c in unknowns.columns_of(kind)]
        self.free = [c for kind in ("stribeck", "offset") for c in unknowns.columns_of(kind)]
        self.x0 = self._scales(unknowns, root)
        self.RG = root @ base.grouping
        self.target = root @ beta

    def _scales(self, unknowns: Unknowns, root: Array) -> Array:
        """Where positive unknowns start: nominal where the file has them, else as estimated."""
        x = np.array(unknowns.nominal[self.positive])
        spread = np.linalg.pinv(root)
        error = np.sqrt(np.sum(spread * spread, axis=1))
        place = {c: i for i, c in enumerate(self.base.columns)}
        for kind in _POSITIVE:
            columns = [c for c in unknowns.columns_of(kind) if c in place]
            sizes = [abs(self.beta[place[c]]) + error[place[c]] for c in columns]
            usual = float(np.median(sizes)) if sizes else 1.0
            for c in unknowns.columns_of(kind):
                k = self.positive.index(c)
                if x[k] <= 0.0:
                    estimate = self.beta[place[c]] if c in place else usual
                    x[k] = estimate if estimate > 0.0 else 0.1 * usual
        return np.maximum(x, 1e-9)

    def unknowns(self, J: Array, x: Array, free: Array) -> Array:
        pi = np.zeros(self.base.unknowns.size)
        pi[: self.base.unknowns.bodies] = ten_of(J).ravel()
        pi[self.positive], pi[self.free] = x, free
        return pi

    def misfit(self, pi: Array) -> Array:
        return np.asarray(self.RG @ pi - self.target)

    def value(self, pi: Array, J: Array, x: Array, gamma: float) -> float:
        K = np.linalg.solve(self.L0, np.linalg.solve(self.L0, J).swapaxes(-1, -2))
        trace = np.trace(K, axis1=-2, axis2=-1)
        ratio = x / self.x0
        D = np.sum(trace - np.linalg.slogdet(K)[1] - 4.0) + np.sum(ratio - np.log(ratio) - 1.0)
        r = self.misfit(pi)
        return float(0.5 * r @ r + gamma * D)

    def step(self, J: Array, x: Array, free: Array, gamma: float) -> tuple[Array, Array, Array]:
        """Changes E (nb, 4, 4) in coordinates where J is one, e of log x, and of the free ones."""
        nb, P, F = len(J), len(self.positive), len(self.free)
        L = np.linalg.cholesky(J)
        body = np.zeros((nb, PER_BODY, len(_PAIRS)))
        goal = np.zeros((nb, len(_PAIRS)))
        for k, (i, j) in enumerate(_PAIRS):
            unit = np.zeros((4, 4))
            unit[i, j] = unit[j, i] = 1.0 if i == j else 1.0 / _HALF
            body[:, :, k] = ten_of(L @ unit @ L.swapaxes(-1, -2))
        inner = np.linalg.solve(self.L0, L)
        slope = inner.swapaxes(-1, -2) @ inner - np.eye(4)
        for k, (i, j) in enumerate(_PAIRS):
            goal[:, k] = slope[:, i, j] * (1.0 if i == j else _HALF)
        A = np.zeros((len(self.RG), nb * PER_BODY + P + F))
        for b in range(nb):
            here = slice(PER_BODY * b, PER_BODY * (b + 1))
            A[:, here] = self.RG[:, here] @ body[b]
        A[:, nb * PER_BODY : nb * PER_BODY + P] = self.RG[:, self.positive] * x
        A[:, nb * PER_BODY + P :] = self.RG[:, self.free]
        barrier = np.concatenate([goal.ravel(), x / self.x0 - 1.0])
        root = np.sqrt(gamma)
        rows = np.hstack([root * np.eye(len(barrier)), np.zeros((len(barrier), F))])
        r = self.misfit(self.unknowns(J, x, free))
        e = np.linalg.lstsq(
            np.vstack([A, rows]), np.concatenate([-r, -root * barrier]), rcond=None
        )[0]
        E = np.zeros((nb, 4, 4))
        parts = e[: nb * PER_BODY].reshape(nb, -1)
        for k, (i, j) in enumerate(_PAIRS):
            E[:, i, j] = E[:, j, i] = parts[:, k] / (1.0 if i == j else _HALF)
        return (
            L @ E @ L.swapaxes(-1, -2),
            e[nb * PER_BODY : nb * PER_BODY + P],
            e[nb * PER_BODY + P :],
        )


def consistent_links(base: BaseParameters, root: Array, beta: Array) -> ConsistentLinks:
    """The unknowns nearest the nominal robot among those that fit beta and that matter could have;
    root: R with R'R the information of beta.
    """
    problem = _ConsistencyProblem(base, root, beta)
    J, x = np.array(problem.J0), np.array(problem.x0)
    place = {c: i for i, c in enumerate(base.columns)}
    free = np.array([beta[place[c]] if c in place else 0.0 for c in problem.free])
    pi = problem.unknowns(J, x, free)
    start = float(np.sum(problem.misfit(pi) ** 2))
    gamma = max(start / (4.0 * len(J) + len(x)), _LAST)
    steps = 0
    while steps < _STEPS:
        dJ, e, df = problem.step(J, x, free, gamma)
        steps += 1
        scale = _longest(J, dJ, e)
        before = problem.value(pi, J, x, gamma)
        for _ in range(30):
            new = J + scale * dJ, x * (1.0 + scale * e), free + scale * df
            pi_new = problem.unknowns(*new)
            after = problem.value(pi_new, new[0], new[1], gamma)
            if after <= before:
                break
            scale *= 0.5
        else:
            break
        (J, x, free), pi = new, pi_new
        small = (
            before - after < 1e-3 * max(1.0, abs(before))
            if gamma > _LAST
            else before - after < 1e-6
        )
        if small:
            if gamma <= _LAST:
                break
            gamma = max(0.1 * gamma, _LAST)
    increase = float(np.sum(problem.misfit(pi) ** 2))
    K = np.linalg.solve(problem.L0, np.linalg.solve(problem.L0, J).swapaxes(-1, -2))
    return ConsistentLinks(pi, increase, np.linalg.eigvalsh(K)[:, 0], steps)


def _longest(J: Array, dJ: Array, e: Array) -> float:
    """The longest step, at most one, that leaves a tenth of what is positive."""
    L = np.linalg.cholesky(J)
    E = np.linalg.solve(L, np.linalg.solve(L, dJ).swapaxes(-1, -2))
    least = min(float(np.linalg.eigvalsh(E).min()), float(e.min(initial=0.0)))
    return min(1.0, 0.9 / -least) if least < 0.0 else 1.0
