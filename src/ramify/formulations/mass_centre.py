"""Saha's DeNOC matrices at the mass centres, and I = U D U' by reverse Gaussian elimination,
written out for teaching.

``denoc`` has the same robot seen from its joint origins. Here the twist of a link is that of its
mass centre, so that its mass matrix is block diagonal; T moves the twists of one form to the other,
and every matrix here is one there between T's. Vectors are taken in the axes of the base frame. A
block of six rows belongs to a link on one screw; a massless link, as joints of several degrees of
freedom have between their axes, has no mass centre and is seen from its joint.

S. K. Saha, Dynamics of serial multibody systems using the decoupled natural orthogonal complement
matrices, J. Applied Mechanics 66 (1999) 986-996; equation numbers are its own. The paper's robots
are serial; what it says holds for trees as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.formulations.denoc import Denoc, Quantity, meanings, table
from ramify.formulations.denoc_assembly import cross_tensor, denoc_matrices
from ramify.model.robot import Robot

_MEANING = meanings("""
T | T |  | twists at the joint origins to twists at the mass centres, block diagonal
N_l | N_l | 17 | twist propagation B from every carrier's mass centre to those it carries
N_d | N_d | 17 | joint-rate propagation p, block diagonal
N | N = N_l N_d | 16 | natural orthogonal complement: t = N q'
N_dot | dN/dt | 20 | rate of N
t | t | 3 | twists [w; v] of all mass centres
M | M | 2, 4 | mass matrices diag(I, m 1), block diagonal
M_dot | dM/dt | 8, 10 | rates of the mass matrices: w x I in the corner
I | I = N' M N | 20 | generalized inertia matrix (GIM)
C | C = N'(M dN/dt + dM/dt N) | 20 | matrix of convective inertia terms
M_tilde | M~ = N_l' M N_l | 21, 22 | mass matrices of the composite bodies: I = N_d' M~ N_d
U | U = E^-1 | 53, 55 | unit upper triangular, alpha_ik above the diagonal
D | D | 54 | pivots m^, diagonal: what a joint feels of the links beyond, these being free
""")


@dataclass(frozen=True, eq=False)
class MassCentreElimination:
    """Reverse Gaussian elimination of an inertia matrix (appendix B.1): last column first.

    ``E[k]`` is the elementary upper triangular matrix (44) that clears column k above the diagonal,
    ``L[k]`` = E_k L_(k+1) what it leaves (45), for k = n ... 2 in the paper's numbers; U D U' is
    the matrix.
    """

    E: dict[int, Array]
    L: dict[int, Array]
    U: Array
    D: Array


def reverse_gaussian_elimination(matrix: ArrayLike) -> MassCentreElimination:
    """E_k = 1 - alpha_k lambda_k' (41), k = n ... 2, of a symmetric matrix (n, n); ModelError where
    a pivot vanishes.
    """
    L = np.array(matrix, dtype=np.float64)
    n = len(L)
    U = np.eye(n)
    each_E: dict[int, Array] = {}
    each_L: dict[int, Array] = {}
    for k in range(n, 0, -1):
        if L[k - 1, k - 1] <= 0.0:
            raise ModelError(
                f"the pivot of column {k} is {L[k - 1, k - 1]:.3g}; joint {k} moves no inertia"
            )
        if k == 1:
            break
        alpha = np.zeros(n)
        alpha[: k - 1] = L[: k - 1, k - 1] / L[k - 1, k - 1]
        each_E[k] = np.eye(n) - np.outer(alpha, np.eye(n)[k - 1])
        L = each_E[k] @ L
        L[: k - 1, k - 1] = 0.0  # what rounding leaves
        each_L[k] = L
        U = U + np.outer(
            alpha, np.eye(n)[k - 1]
        )  # the inverse of (44) has +alpha (52); the columns do not mix
    return MassCentreElimination(each_E, each_L, U, np.diag(np.diag(L)))


@dataclass(frozen=True, eq=False)
class MassCentre:
    """The matrices at one state; n links (one per degree of freedom), all arrays in SI units, base
    axes.

    T, N_l, M, M_dot, M_tilde (6n, 6n); N_d, N, N_dot (6n, n); t (6n); I, C (n, n). ``origin`` is
    the same robot in the book's joint-origin form. ``print`` shows both beside each other;
    ``x["N_l"]`` is one entry.
    """

    origin: Denoc
    T: Array
    N_l: Array
    N_d: Array
    N: Array
    N_dot: Array
    t: Array
    M: Array
    M_dot: Array
    I: Array  # noqa: E741 - the paper's symbol
    C: Array
    M_tilde: Array

    def __getitem__(self, name: str) -> Quantity:
        """A matrix with its symbol, equation number and meaning."""
        try:
            return Quantity(*_MEANING[name], getattr(self, name))
        except KeyError:
            raise ModelError(
                f"no matrix of the mass-centre form is called {name!r}; choose one of "
                f"{', '.join(_MEANING)}"
            ) from None

    def B(self, i: int, j: int) -> Quantity:
        """B_ij (13): from the twist of link j to what it gives link i; links count from 1, as in
        the paper.
        """
        self._check("B", i, j)
        value = self.N_l[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j]
        return Quantity(
            f"B_{i},{j}",
            "13",
            "twist propagation [[1, 0], [c x 1, 1]] from mass centre to mass centre",
            value,
        )

    def p(self, i: int) -> Quantity:
        """p_i (13), (15): the twist that joint i gives its link at unit rate."""
        self._check("p", i)
        value = self.N_d[6 * i - 6 : 6 * i, i - 1]
        return Quantity(
            f"p_{i}",
            "13, 15",
            "joint-rate propagation [e; e x d] (turning) or [0; e] (sliding)",
            value,
        )

    def _check(self, name: str, *links: int) -> None:
        for i in links:
            if not 1 <= i <= len(self.I):
                raise ModelError(
                    f"{name}_{','.join(map(str, links))}: {self.origin.robot} has links 1 to "
                    f"{len(self.I)}"
                )

    @cached_property
    def elimination(self) -> MassCentreElimination:
        """Reverse Gaussian elimination of I with its elementary matrices (40)-(45)."""
        return reverse_gaussian_elimination(self.I)

    @property
    def U(self) -> Array:
        """(53)."""
        return self.elimination.U

    @property
    def D(self) -> Array:
        """(54)."""
        return self.elimination.D

    def E(self, k: int) -> Quantity:
        """E_k (41), (44), k = n ... 2."""
        return Quantity(
            f"E_{k}",
            "41, 44",
            f"elementary matrix that clears column {k} above the diagonal",
            self._of("E", k),
        )

    def L(self, k: int) -> Quantity:
        """L_k = E_k L_(k+1) (45)."""
        return Quantity(
            f"L_{k}",
            "40, 45",
            f"the GIM with the columns from {k} on cleared above the diagonal",
            self._of("L", k),
        )

    def _of(self, which: str, k: int) -> Array:
        steps: dict[int, Array] = getattr(self.elimination, which)
        if k not in steps:
            raise ModelError(
                f"{which}_{k}: the elimination of {len(self.I)} columns has steps {len(self.I)} to "
                "2"
            )
        return steps[k]

    @cached_property
    def articulated(self) -> tuple[Array, ...]:
        """M^_i of every link (50): those of the joint-origin form, moved to the mass centres."""
        out = []
        for i, M in enumerate(self.origin.articulated):
            inverse = np.linalg.inv(self.T[6 * i : 6 * i + 6, 6 * i : 6 * i + 6])
            out.append(inverse.T @ M @ inverse)
        return tuple(out)

    def alpha(self, i: int, k: int) -> float:
        """alpha_ik = p_i' psi_ik (46)-(48) from the articulated body k: the entry (i, k) of U by
        mechanics, not by elimination.
        """
        self._check("alpha", i, k)
        p_k, M = self.p(k).value, self.articulated[k - 1]
        psi = M @ p_k / (p_k @ M @ p_k)
        return float(self.p(i).value @ self.B(k, i).value.T @ psi)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """All matrices, in the order in which the paper builds them."""
        return tuple(self[name] for name in _MEANING)

    def __str__(self) -> str:
        rows = [("", "paper", "", "book", "")]
        for name in _MEANING:
            x = self[name]
            there = name in ("N_l", "N_d", "N", "N_dot", "t", "M", "I", "C", "M_tilde")
            book = f"({self.origin[name].equation})" if there else ""
            paper = f"({x.equation})" if x.equation else ""
            rows.append((x.symbol, paper, x.shape, book, x.meaning))
        links = f"{len(self.I)} links"
        return table(f"DeNOC matrices of {self.origin.robot} at the mass centres: {links}", rows)


def mass_centre_matrices(model: Robot, q: ArrayLike, v: ArrayLike) -> MassCentre:
    """Saha's matrices at q (n), v (n). ModelError for joints with quaternions and for closed loops;
    StateError for wrong shapes.
    """
    d = denoc_matrices(model, q, v)
    size = len(d.M)
    T, inverse, T_dot = np.eye(size), np.eye(size), np.zeros((size, size))
    M_dot = np.zeros((size, size))
    for k in range(0, size, 6):
        own = d.M[k : k + 6, k : k + 6]
        m = own[5, 5]
        if m > 0.0:
            h = np.array([own[2, 4], own[0, 5], own[1, 3]])  # m d, from the corner m d x 1
            centre, w = cross_tensor(h / m), d.t[k : k + 3]
            T[k + 3 : k + 6, k : k + 3], inverse[k + 3 : k + 6, k : k + 3] = -centre, centre
            T_dot[k + 3 : k + 6, k : k + 3] = -cross_tensor(np.cross(w, h / m))
    M = inverse.T @ d.M @ inverse
    for k in range(0, size, 6):
        M_dot[k : k + 3, k : k + 3] = cross_tensor(d.t[k : k + 3]) @ M[k : k + 3, k : k + 3]
    N_l, N_d = T @ d.N_l @ inverse, T @ d.N_d
    N, N_dot = T @ d.N, T_dot @ d.N + T @ d.N_dot
    return MassCentre(
        d,
        T,
        N_l,
        N_d,
        N,
        N_dot,
        N @ d.v,
        M,
        M_dot,
        N.T @ M @ N,
        N.T @ (M @ N_dot + M_dot @ N),
        N_l.T @ M @ N_l,
    )
