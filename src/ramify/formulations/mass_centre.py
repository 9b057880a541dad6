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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, is_index
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError
from ramify.formulations.denoc import Denoc, Quantity, meanings, text_table
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
_ALONE = ("T", "M_dot", "U", "D")
"""Those that the book does not have, or not of links."""
_ITEMS = meanings("""
B | B_{} | 13 | twist propagation [[1, 0], [c x 1, 1]] from mass centre to mass centre
p | p_{} | 13, 15 | joint-rate propagation [e; e x d] (turning) or [0; e] (sliding)
E | E_{} | 41, 44 | elementary matrix that clears column {} above the diagonal
L | L_{} | 40, 45 | the GIM with the columns from {} on cleared above the diagonal
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
        pivot = L[k - 1, k - 1]
        if pivot <= 0.0:
            raise ModelError(f"the pivot of column {k} is {pivot:.3g}; joint {k} moves no inertia")
        if k == 1:
            break
        alpha = np.zeros(n)
        alpha[: k - 1] = L[: k - 1, k - 1] / pivot
        each_E[k] = np.eye(n) - np.outer(alpha, np.eye(n)[k - 1])
        L = each_E[k] @ L
        L[: k - 1, k - 1] = 0.0  # what rounding leaves
        each_L[k] = L
        U[:, k - 1] += alpha  # the inverse of (44) has +alpha (52); the columns do not mix
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

    def _item(self, name: str, value: Array, *indices: int) -> Quantity:
        symbol, equation, meaning = (text.format(_joined(indices)) for text in _ITEMS[name])
        return Quantity(symbol, equation, meaning, value)

    def B(self, i: int, j: int) -> Quantity:
        """B_ij (13): from the twist of link j to what it gives link i; links count from 1, as in
        the paper.
        """
        self._check("B", i, j)
        return self._item("B", self.N_l[6 * i - 6 : 6 * i, 6 * j - 6 : 6 * j], i, j)

    def p(self, i: int) -> Quantity:
        """p_i (13), (15): the twist that joint i gives its link at unit rate."""
        self._check("p", i)
        return self._item("p", self.N_d[6 * i - 6 : 6 * i, i - 1], i)

    def _check(self, name: str, *links: int) -> None:
        n = len(self.I)
        if not all(is_index(i, 1, n + 1) for i in links):
            raise ModelError(f"{name}_{_joined(links)}: {self.origin.robot} has links 1 to {n}")

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
        return self._step("E", self.elimination.E, k)

    def L(self, k: int) -> Quantity:
        """L_k = E_k L_(k+1) (45)."""
        return self._step("L", self.elimination.L, k)

    def _step(self, name: str, steps: dict[int, Array], k: int) -> Quantity:
        n = len(self.I)
        if not is_index(k, 0, n + 2) or k not in steps:
            raise ModelError(f"{name}_{k}: the elimination of {n} columns has steps {n} to 2")
        return self._item(name, steps[k], k)

    @cached_property
    def articulated(self) -> tuple[Array, ...]:
        """M^_i of every link (50): those of the joint-origin form, moved to the mass centres."""
        own = [slice(6 * i, 6 * i + 6) for i in range(len(self.I))]
        back = [np.linalg.inv(self.T[rows, rows]) for rows in own]
        return tuple(T.T @ M @ T for T, M in zip(back, self.origin.articulated, strict=True))

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
            book = "" if name in _ALONE else f"({self.origin[name].equation})"
            paper = f"({x.equation})" if x.equation else ""
            rows.append((x.symbol, paper, x.shape, book, x.meaning))
        links = f"{len(self.I)} links"
        return text_table(
            f"DeNOC matrices of {self.origin.robot} at the mass centres: {links}", rows
        )


def _joined(indices: Sequence[int]) -> str:
    return ",".join(map(str, indices))


def mass_centre_matrices(model: Robot, q: ArrayLike, v: ArrayLike) -> MassCentre:
    """Saha's matrices at q (n), v (n). ModelError for joints with quaternions and for closed loops;
    StateError for wrong shapes.
    """
    d = denoc_matrices(model, q, v)
    T, inverse = np.eye(len(d.M)), np.eye(len(d.M))
    T_dot, M_dot = np.zeros_like(T), np.zeros_like(T)
    for k in range(0, len(T), 6):
        own, corner = d.M[k : k + 6, k : k + 6], np.s_[k + 3 : k + 6, k : k + 3]
        if own[5, 5] > 0.0:
            d_vector = np.array([own[2, 4], own[0, 5], own[1, 3]]) / own[5, 5]  # from m d x 1
            inverse[corner] = cross_tensor(d_vector)
            T[corner] = -inverse[corner]
            T_dot[corner] = -cross_tensor(np.cross(d.t[k : k + 3], d_vector))
    M = inverse.T @ d.M @ inverse
    for k in range(0, len(T), 6):
        turning = np.s_[k : k + 3, k : k + 3]
        M_dot[turning] = cross_tensor(d.t[k : k + 3]) @ M[turning]
    N_l, N_d = T @ d.N_l @ inverse, T @ d.N_d
    N, N_dot = T @ d.N, T_dot @ d.N + T @ d.N_dot
    I, C = N.T @ M @ N, N.T @ (M @ N_dot + M_dot @ N)  # noqa: E741
    return MassCentre(d, T, N_l, N_d, N, N_dot, N @ d.v, M, M_dot, I, C, N_l.T @ M @ N_l)
