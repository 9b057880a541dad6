"""How many digits forward dynamics keeps: the recursions beside a factorised inertia matrix.

The claim of S. K. Saha (1999) is that solving U D U' q'' = phi body by body is numerically stable
where the inertia matrix is ill conditioned. Chains of rods show it. Forces act on a chain at rest
without gravity, so that q'' = I^-1 tau and nothing else; the same recursion with 50 digits says
what is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_WRENCH
from ramify.dynamics.forward import forward_dynamics
from ramify.dynamics.tree import tree_of
from ramify.formulations import elimination
from ramify.formulations.chain import chain_of
from ramify.kernels.make import kernel
from ramify.model.dh import from_dh
from ramify.model.robot import Robot

DIGITS: Final = 50
MOST: Final = 400
UNROLLED: Final = 32
"""Rods of a chain, and of one that gets an unrolled kernel."""


@dataclass(frozen=True)
class Errors:
    """Largest error of the accelerations by the largest acceleration, for a chain of n rods whose
    inertia matrix has the condition number ``condition``.

    ``recursion``: forward dynamics as written, twists at the joint origins; ``mass_centre``:
    RFDSIM, twists at the mass centres; ``unrolled``, ``rolled``: the compiled kernels of the first,
    NaN where the chain is too long for unrolled code; ``cholesky``: the inertia matrix factorised
    as a whole.
    """

    case: str
    n: int
    condition: float
    recursion: float
    mass_centre: float
    unrolled: float
    rolled: float
    cholesky: float


@dataclass(frozen=True)
class _Case:
    words: str
    mass: Callable[[int], float]
    random_posture: bool


CASES: Final = {
    "equal": _Case("equal rods, bent", lambda i: 1.0, True),
    "line": _Case("equal rods in a line", lambda i: 1.0, False),
    "doubling": _Case("masses doubling outward, bent", lambda i: 2.0**i, True),
    "halving": _Case("masses halving outward, bent", lambda i: 0.5**i, True),
}
"""The chains: rods of 1 m, the first of 1 kg."""


def chain_errors(case: str, n: int, seed: int = 0) -> Errors:
    """The errors of a chain; ``seed`` chooses forces and angles. RamifyError for an unknown case, n
    out of range, or without mpmath.
    """
    if case not in CASES:
        raise RamifyError(f"there is no case {case!r}; choose one of {', '.join(CASES)}")
    if not 1 <= n <= MOST:
        raise RamifyError(f"n is {n}; give 1 to {MOST} rods")
    chosen = CASES[case]
    rng = np.random.default_rng(seed)
    q, tau = (rng.uniform(-1.0, 1.0, n) for _ in range(2))
    q = q if chosen.random_posture else np.zeros(n)
    robot = _rods(n, chosen.mass)
    right = _exact(robot, q, tau)
    M = kernel(robot, "mass_matrix")(q)
    still = np.zeros(n)
    answers = {"rolled": kernel(robot, "forward_dynamics", tier="rolled")(q, still, tau)}
    if n <= UNROLLED:
        answers["unrolled"] = kernel(robot, "forward_dynamics", tier="unrolled")(q, still, tau)
    columns = (q.tolist(), still.tolist(), tau.tolist(), [NO_WRENCH] * n)
    answers["recursion"] = np.array(forward_dynamics(tree_of(robot), *columns), dtype=np.float64)
    bodies = elimination.bodies_at(chain_of(robot), q.tolist())
    answers["mass_centre"] = np.array(
        elimination.solve_by_elimination(bodies, tau.tolist()), dtype=np.float64
    )
    L = np.linalg.cholesky(M)
    answers["cholesky"] = np.linalg.solve(L.T, np.linalg.solve(L, tau))
    errors = {"unrolled": np.nan} | {name: _error(a, right) for name, a in answers.items()}
    return Errors(case, n, float(np.linalg.cond(M)), **errors)


def _rods(n: int, mass: Callable[[int], float]) -> Robot:
    """n slender rods of 1 m on parallel axes, without gravity."""
    m = [mass(i) for i in range(n)]
    rows = [(0.0 if i == 0 else 1.0, 0.0, 0.0, 0.0) for i in range(n)]
    thick = [(1e-3 * x, x / 12.0, x / 12.0) for x in m]
    return from_dh(rows, m, [(0.5, 0.0, 0.0)] * n, thick, gravity=(0.0, 0.0, 0.0))


def _exact(robot: Robot, q: Array, tau: Array) -> list[Scalar]:
    """Accelerations with 50 digits, as mpmath's numbers."""
    try:
        import mpmath
    except ImportError:
        raise RamifyError(
            "the reference needs mpmath; install it with: pip install 'ramify[symbolic]'"
        ) from None
    with mpmath.workdps(DIGITS):
        angles, forces = ([mpmath.mpf(float(x)) for x in column] for column in (q, tau))
        return elimination.solve_by_elimination(
            elimination.bodies_at(chain_of(robot), angles), forces
        )


def _error(a: Array, right: list[Any]) -> float:
    """The largest difference by the largest entry."""
    import mpmath

    with mpmath.workdps(DIGITS):
        off = max(abs(mpmath.mpf(float(x)) - y) for x, y in zip(a, right, strict=True))
        return float(off / max(abs(y) for y in right))
