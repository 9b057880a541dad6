"""The DeNOC matrices of a robot at a state, with their symbols, equation numbers and meanings: for
teaching, and as an independent check on the recursions. ``denoc_assembly`` computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ramify.core.arrays import Array, is_index, real
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError, StateError
from ramify.core.messages import shown

Level = Literal["link", "module"]
Groups = tuple[tuple[int, ...], ...]


def meanings(table: str) -> dict[str, tuple[str, str, str]]:
    """Symbol, equation and meaning by name, from lines of four columns."""
    rows = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    return {name: (symbol, equation, text) for name, symbol, equation, text in rows}


_MEANING = meanings("""
N_l | N_l | 4.28, 4.29 | twist propagation from every carrier to what it carries
N_d | N_d | 4.27 | joint-motion propagation, block diagonal
N | N = N_l N_d | 4.28 | natural orthogonal complement: t = N q'
N_dot | dN/dt | 5.13 | rate of N: dt/dt = N q'' + (dN/dt) q'
t | t | 4.25 | twists [w; v] of all links
M | M | 5.10 | mass matrices about the joint origins, block diagonal
Omega | Omega | 5.10 | angular velocities as cross-product tensors, block diagonal
E | E | 5.10 | coupling matrix: picks the angular half of a twist
I | I = N' M N | 5.13 | generalized inertia matrix (GIM)
C | C = N'(M dN/dt + Omega M E N) | 5.13 | matrix of convective inertia (MCI)
gravity | N' M rho | 5.14, table 6.1 | joint forces against gravity; rho is [0; -g] on every link
M_tilde | M~ = N_l' M N_l | 5.16, 5.17 | mass matrices of the composite links or modules
""")
_FACTORS = meanings("""
U | U | 5.30, 5.34 | block upper triangular factor: I = U D U'
D | D | 5.33, 5.34 | block pivots of the reverse elimination
""")
_OF_EACH = meanings("""
composite | M~ | 5.18, 5.19 | composite mass matrix: {level} and all it carries, frozen
articulated | M^ | 5.36 | articulated mass matrix: {level} and all it carries, joints beyond free
Psi | Psi | 5.35 | wrench per unit of joint force, joint free
Phi | Phi | 5.37 | articulated transformation: what a joint lets by
B | B | 5.25 | elementary block upper triangular matrix
""")


def text_table(head: str, rows: Sequence[tuple[str, ...]]) -> str:
    """Rows of cells in columns under a head; the last column is as wide as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join([head, *lines])


@dataclass(frozen=True, eq=False)
class Quantity:
    """A matrix with its symbol, the number of its equation in the book, and what it means; NumPy
    takes it for its array, ``value``.
    """

    symbol: str
    equation: str
    meaning: str
    value: Array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.value, dtype=dtype, copy=copy)

    @property
    def shape(self) -> str:
        return " x ".join(map(str, self.value.shape))

    def __str__(self) -> str:
        numbers = np.array2string(
            self.value, precision=4, suppress_small=True, max_line_width=120, threshold=400
        )
        return f"{self.symbol}, eq. ({self.equation}), {self.shape}: {self.meaning}\n{numbers}"


@dataclass(frozen=True, eq=False)
class Denoc:
    """The matrices at one state; n links (one per degree of freedom), all arrays in SI units, base
    axes.

    N_l, M, Omega, E, M_tilde (6n, 6n); N_d, N, N_dot (6n, n); t (6n); I, C (n, n); gravity (n);
    origins (n, 3), where the twists are taken: links whose axes meet in a joint share theirs.
    ``groups`` are the links of each link or module, ``columns`` its joint rates and ``parents`` the
    group that carries each. U and D, and of each group composite, articulated, Psi, Phi and B, are
    arrays, too. ``print`` shows a table; ``d["N_l"]`` is one entry of it.
    """

    robot: str
    level: Level
    groups: Groups
    columns: Groups
    parents: tuple[int, ...]
    names: tuple[str, ...]
    N_l: Array
    N_d: Array
    N: Array
    N_dot: Array
    t: Array
    M: Array
    Omega: Array
    E: Array
    I: Array  # noqa: E741 - the book's symbol
    C: Array
    gravity: Array
    M_tilde: Array
    v: Array
    origins: Array

    def __getitem__(self, name: str) -> Quantity:
        """A matrix with its symbol, equation number and meaning."""
        known = _MEANING | _FACTORS
        if not isinstance(name, str) or name not in known:
            choices = ", ".join(known)
            raise ModelError(f"no DeNOC matrix is called {shown(name)}; choose one of {choices}")
        return Quantity(*known[name], getattr(self, name))

    def of_each(self, name: str) -> tuple[Quantity, ...]:
        """``composite``, ``articulated``, ``Psi``, ``Phi`` or ``B`` of every link or module with
        symbol, equation number and meaning.
        """
        if not isinstance(name, str) or name not in _OF_EACH:
            raise ModelError(
                f"no matrix of each {self.level} is called {shown(name)}; choose one of "
                f"{', '.join(_OF_EACH)}"
            )
        symbol, equation, meaning = _OF_EACH[name]
        return tuple(
            Quantity(f"{symbol}_{g}", equation, meaning.format(level=self.level), value)
            for g, value in enumerate(getattr(self, name), start=self.first)
        )

    @cached_property
    def composite(self) -> tuple[Array, ...]:
        """M~_i of every link or module, (6 k, 6 k) for one of k links: M~_i = M_i + sum of A-' M~_j
        A- over the children (5.19).
        """
        return self._hand_inward(lambda g, own: own)

    @cached_property
    def articulated(self) -> tuple[Array, ...]:
        """M^_i of every link or module: M^_i = M_i + sum of A-' Phi_j M^_j A- over the children
        (5.36).

        Phi = 1 - psi N-' and psi = M^ N- (N-' M^ N-)^-1 (5.35), (5.37). ModelError where a joint
        moves no inertia.
        """

        def without_free_motion(g: int, M_hat: Array) -> Array:
            psi_hat = M_hat @ self._motion(g)
            return M_hat - psi_hat @ self._over_pivot(g, psi_hat).T

        return self._hand_inward(without_free_motion)

    @cached_property
    def Psi(self) -> tuple[Array, ...]:
        """Psi_i = M^_i N-_i I^_i^-1 of every link or module."""
        return tuple(
            self._over_pivot(g, M @ self._motion(g)) for g, M in enumerate(self.articulated)
        )

    @cached_property
    def Phi(self) -> tuple[Array, ...]:
        """Phi_i = 1 - Psi_i N-_i' of every link or module."""
        return tuple(np.eye(len(x)) - x @ self._motion(g).T for g, x in enumerate(self.Psi))

    @cached_property
    def D(self) -> Array:
        """(n, n): the pivots I^_i = N-_i' M^_i N-_i on the diagonal; I = U D U'."""
        out = np.zeros_like(self.I)
        for g, (own, M) in enumerate(zip(self.columns, self.articulated, strict=True)):
            out[np.ix_(own, own)] = self._motion(g).T @ M @ self._motion(g)
        return out

    @cached_property
    def U(self) -> Array:
        """(n, n): U_ij = N-_i' A-_ji' Psi_j where module i carries j, zero where it does not."""
        out = np.eye(len(self.I))
        for j, psi in enumerate(self.Psi):
            i = self.parents[j]
            while i >= 0:
                handed = self._motion(i).T @ self._propagation(j, i).T @ psi
                out[np.ix_(self.columns[i], self.columns[j])] = handed
                i = self.parents[i]
        return out

    @cached_property
    def B(self) -> tuple[Array, ...]:
        """B_i = 1 - U_i V_i' of every link or module, (n, n): B_1 ... B_s = U^-1."""
        found = tuple(np.eye(len(self.I)) for _ in self.columns)
        for factor, own in zip(found, self.columns, strict=True):
            factor[:, own] = 2.0 * factor[:, own] - self.U[:, own]
        return found

    def _motion(self, g: int) -> Array:
        """N-_i, (6 k, rates)."""
        return self.N_d[np.ix_(rows_of(self.groups[g]), self.columns[g])]

    def _propagation(self, j: int, i: int) -> Array:
        """A-_ji: the motion of i seen at j."""
        return self.N_l[np.ix_(rows_of(self.groups[j]), rows_of(self.groups[i]))]

    def _over_pivot(self, g: int, psi_hat: Array) -> Array:
        """Psi^ I^^-1; ModelError where the pivot is singular."""
        pivot = self._motion(g).T @ psi_hat
        try:
            return np.asarray(np.linalg.solve(pivot.T, psi_hat.T).T, dtype=np.float64)
        except np.linalg.LinAlgError:
            moved = ", ".join(self.names[k] for k in self.columns[g])
            raise ModelError(
                f"{self.robot}: {moved} moves no inertia; no articulated mass matrix below it "
                "exists"
            ) from None

    @property
    def first(self) -> int:
        """The number of the first link or module: 1, or 0 for a floating base as module M0."""
        return 1

    def _hand_inward(self, handed: Callable[[int, Array], Array]) -> tuple[Array, ...]:
        """M_i plus what the children hand over, moved by A-, from the leaves to the base."""
        out = [self.M[np.ix_(rows_of(group), rows_of(group))] for group in self.groups]
        for g in reversed(range(len(out))):
            h = self.parents[g]
            if h >= 0:
                A = self._propagation(g, h)
                out[h] = out[h] + A.T @ handed(g, out[g]) @ A
        return tuple(out)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """All matrices, in the order in which the book builds them."""
        return tuple(self[name] for name in _MEANING) + self.of_each("composite")

    def __str__(self) -> str:
        shown, late = list(self.quantities), []
        try:
            shown += [*self.of_each("articulated"), *(self[name] for name in _FACTORS)]
        except ModelError as error:
            late = [("M^", "(5.36)", "none", str(error))]
        rows = [(x.symbol, f"({x.equation})", x.shape, x.meaning) for x in shown] + late
        sizes = f"{len(self.groups)} {self.level}s, {len(self.v)} joint rates"
        return text_table(f"DeNOC matrices of {self.robot} at {self.level} level: {sizes}", rows)

    def block(self, name: str, i: int, j: int) -> Array:
        """The block of group i (rows) and group j (columns) of a matrix: six rows per link, or one
        column per joint rate.
        """
        matrix = self[name].value
        if matrix.ndim != 2:
            raise ModelError(f"{name} is a vector; only matrices have blocks")
        if not all(is_index(x, 0, len(self.groups)) for x in (i, j)):
            known = f"{self.level}s 0 to {len(self.groups) - 1}"
            raise ModelError(f"{name} has no block {i}, {j}; {self.robot} has {known}")

        def side(g: int, size: int) -> Sequence[int]:
            return self.columns[g] if size == len(self.v) else rows_of(self.groups[g])

        return matrix[np.ix_(*map(side, (i, j), matrix.shape))]

    def forces(self, a: ArrayLike) -> Array:
        """tau (n) = I q'' + C q' + gravity (5.12) for the accelerations a (n)."""
        return self.I @ state_column(a, len(self.v), "a") + self.C @ self.v + self.gravity


def state_column(x: ArrayLike, n: int, name: str) -> Array:
    """n finite numbers. Raises StateError for others."""
    a = real(name, x)
    if a.shape != (n,):
        raise StateError(f"{name} must be {n} finite numbers; its shape is {a.shape}")
    bad = np.flatnonzero(~np.isfinite(a))
    if len(bad):
        raise StateError(f"{name} must be {n} finite numbers; {name}[{bad[0]}] is {a[bad[0]]}")
    return a


def rows_of(group: Sequence[int]) -> list[int]:
    """The rows of a group's links in a stack of six-vectors."""
    return [6 * k + i for k in group for i in range(6)]
