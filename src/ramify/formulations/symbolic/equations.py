"""The equations of motion of a robot in closed form: M, C, g, the factors U and D, and the inverse
of M.

The recursions of :mod:`ramify.dynamics` run over ``ramify.formulations.symbolic.waves.Waves``, in
which every expression has one form. U, D and the inverse are quotients of minors of M: reverse
Gaussian elimination leaves D_k = Delta_k / Delta_{k+1}, Delta_k being the minor of rows and columns
k to n, and U_ik the minor of rows {i, k+1 ... n} and columns {k ... n} over Delta_k.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import Any

from ramify.core.arrays import flag, one_number
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError, RamifyError
from ramify.dynamics.tree import Matrix, Tree, tree_of
from ramify.formulations.chain import refuse_loops, refuse_quaternions
from ramify.formulations.symbolic import equation_documents as forms
from ramify.formulations.symbolic.closed_forms import Coordinate
from ramify.formulations.symbolic.named_tree import named_tree, used_variables
from ramify.formulations.symbolic.waves import (
    Quotient,
    Space,
    TooLongError,
    Waves,
    determinant,
    quotient,
    waves,
)
from ramify.kernels.algorithms import ALGORITHMS
from ramify.model.robot import Robot

PARTS = ("M", "C", "g", "U", "D", "inverse")
MOST_SHOWN, MOST_LATEX = 3, 20_000  # degrees of freedom and characters that a notebook shows
WaveRows = list[list[Waves]]
QuotientRows = list[list[Quotient]]


@dataclass(frozen=True, eq=False)
class Equations:
    """M(q) q'' + C(q, q') q' + g(q) = tau of a robot, in closed form.

    ``M``, ``C``, ``g``, ``U``, ``D``, ``inverse`` are SymPy matrices over ``q`` and ``v``, its
    symbols; M = U D U'. ``text()``, ``latex()``, ``python()`` and ``sympy()`` write them out, all
    or the parts named. ``parameters`` are the values of the named parameters. C is the matrix of
    the Christoffel symbols. Each part is worked out when it is asked for and may take ``seconds``;
    RamifyError where that is too short.
    """

    robot: str
    joints: tuple[str, ...]
    coordinates: tuple[Coordinate, ...]
    space: Space
    tree: Tree
    parameters: dict[str, float]
    seconds: float
    _late: set[str] = field(default_factory=set, repr=False)
    _minors: dict[Any, Waves] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        sizes = f"{self.n} degrees of freedom, {len(self.parameters)} named parameters"
        return f"<Equations of {self.robot!r}: {sizes}>"

    def __str__(self) -> str:
        return self.text(("M", "C", "g"))

    def _repr_latex_(self) -> str | None:
        """M, C and g for a notebook, where they are short; else its repr is shown."""
        if self.n > MOST_SHOWN:
            return None
        text = self.latex(("M", "C", "g"))
        return text if len(text) <= MOST_LATEX else None

    @property
    def n(self) -> int:
        return len(self.coordinates)

    # ---- closed forms ----

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        self.space.deadline = time.monotonic() + (0.0 if what in self._late else self.seconds)
        try:
            self.space.check()
            yield
        except TooLongError as error:
            self._late.add(what)
            reason = str(error)
            if time.monotonic() > self.space.deadline:
                reason = f"takes longer than {self.seconds:g} s; give it more with seconds="
            raise TooLongError(
                f"{what} of {self.robot} in closed form {reason}, name the parts that you need, as "
                "in text(('M', 'g')), or ask for numbers: m.mass_matrix and its kin"
            ) from None
        finally:
            self.space.deadline = float("inf")

    def _columns(self) -> tuple[list[Any], list[Any]]:
        angles, q, v = 0, [], []
        for x in self.coordinates:
            q.append(self.space.angle(angles, x.q) if x.turns else self.space.variable(x.q))
            v.append(self.space.variable(x.v))
            angles += x.turns
        return q, v

    def _run(self, name: str, symbol: str, columns: int) -> Any:
        with self._timed(symbol):
            return ALGORITHMS[name].text(self.tree, *self._columns()[:columns])[0]

    def _square(self, matrix: Matrix, like: WaveRows) -> WaveRows:
        flat = waves(self.space, matrix.row_major(), (x for row in like for x in row))
        return [flat[i : i + self.n] for i in range(0, len(flat), self.n)]

    @cached_property
    def inertia_forms(self) -> WaveRows:
        return self._square(self._run("mass_matrix", "M", 1), [])

    @cached_property
    def coriolis_forms(self) -> WaveRows:
        return self._square(self._run("coriolis_matrix", "C", 2), self.inertia_forms)

    @cached_property
    def gravity_forms(self) -> list[Waves]:
        return waves(self.space, self._run("gravity_forces", "g", 1))

    def _minor(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Waves:
        return determinant(self.inertia_forms, rows, columns, self._minors)

    @cached_property
    def diagonal_forms(self) -> list[Quotient]:
        """D_k = Delta_k / Delta_{k+1}."""
        n = len(self.inertia_forms)
        with self._timed("D"):
            tails = [tuple(range(k, n)) for k in range(n + 1)]
            delta = [self._minor(tail, tail) for tail in tails]
            for k in reversed(range(n)):
                if not delta[k].terms:
                    raise ModelError(
                        f"{self.robot}: {self.joints[k]} moves no inertia; M has no factors and no "
                        "inverse"
                    )
            return [quotient(delta[k], delta[k + 1]) for k in range(n)]

    @cached_property
    def factor_forms(self) -> QuotientRows:
        """U, upper unit triangular."""
        _ = self.diagonal_forms  # says which joint moves no inertia
        n, number = range(self.n), self.space.number
        rows = [[Quotient(number(i == k), number(1)) for k in n] for i in n]
        with self._timed("U"):
            for k in n:
                tail = tuple(n[k + 1 :])
                below = self._minor((k, *tail), (k, *tail))
                for i in range(k):
                    rows[i][k] = quotient(self._minor((i, *tail), (k, *tail)), below)
        return rows

    @cached_property
    def inverse_forms(self) -> QuotientRows:
        """The inverse of M: cofactors over the determinant."""
        _ = self.diagonal_forms
        everything = tuple(range(self.n))
        with self._timed("the inverse of M"):
            whole = self._minor(everything, everything)
            rows: QuotientRows = [[Quotient(whole, whole)] * self.n for _ in everything]
            others = [(*everything[:k], *everything[k + 1 :]) for k in everything]
            for i, k in combinations_with_replacement(everything, 2):
                cofactor = self._minor(others[i], others[k]) * (-1) ** (i + k)
                rows[i][k] = rows[k][i] = quotient(cofactor, whole)
            return rows

    # ---- SymPy ----

    @property
    def q(self) -> Any:
        """The coordinates as a SymPy column."""
        return forms.sympy_column(x.q for x in self.coordinates)

    @property
    def v(self) -> Any:
        """The rates as a SymPy column."""
        return forms.sympy_column(x.v for x in self.coordinates)

    def _sympy(self, rows: list[list[Any]]) -> Any:
        return forms.sympy_matrix(rows, self.coordinates)

    @cached_property
    def M(self) -> Any:
        """The inertia matrix (n, n)."""
        return self._sympy(self.inertia_forms)

    @cached_property
    def C(self) -> Any:
        """The matrix (n, n) of the Christoffel symbols: dM/dt - 2 C is skew-symmetric."""
        return self._sympy(self.coriolis_forms)

    @cached_property
    def g(self) -> Any:
        """The joint forces (n, 1) that hold gravity."""
        return self._sympy([[x] for x in self.gravity_forms])

    @cached_property
    def U(self) -> Any:
        """The unit upper triangular factor (n, n) of M = U D U'."""
        return self._sympy(self.factor_forms)

    @cached_property
    def D(self) -> Any:
        """The diagonal factor (n, n) of M = U D U'."""
        column = self._sympy([[x] for x in self.diagonal_forms])
        return column.diag(*column)

    @cached_property
    def inverse(self) -> Any:
        """The inverse of M (n, n)."""
        return self._sympy(self.inverse_forms)

    # ---- written out ----

    def part(self, name: str) -> list[list[forms.ClosedEntry]]:
        """The entries of a part, row by row; D as one row, g as a column."""
        parts: dict[str, Callable[[], Any]] = {
            "M": lambda: self.inertia_forms,
            "C": lambda: self.coriolis_forms,
            "g": lambda: [[x] for x in self.gravity_forms],
            "U": lambda: self.factor_forms,
            "D": lambda: [self.diagonal_forms],
            "inverse": lambda: self.inverse_forms,
        }
        if name not in parts:
            raise RamifyError(
                f"no part of the equations is called {name!r}; choose one of {', '.join(parts)}"
            )
        return parts[name]()

    def _forms(self, parts: tuple[str, ...]) -> forms.ClosedForms:
        found = {name: self.part(name) for name in parts}
        return forms.ClosedForms(self.robot, self.coordinates, self.parameters, found)

    def text(self, parts: tuple[str, ...] | None = None) -> str:
        """Plain text: one line per entry, c12 = cos(θ1 + θ2). By default all parts; where one takes
        too long, the reason stands in its place.
        """
        late: dict[str, str] = {}
        for part in PARTS if parts is None else ():
            try:
                self.part(part)
            except TooLongError as error:
                late[part] = str(error)
        wanted = tuple(x for x in PARTS if x not in late) if parts is None else parts
        return "\n".join([forms.equations_text(self._forms(wanted)), *late.values()])

    def latex(self, parts: tuple[str, ...] = PARTS) -> str:
        """LaTeX, for amsmath: one ``align*`` of the entries per part."""
        return forms.as_latex(self._forms(parts))

    def python(self, parts: tuple[str, ...] = PARTS) -> str:
        """A Python module that needs NumPy alone: one function per part, of q (and v) and the named
        parameters.
        """
        return forms.as_python(self._forms(parts))

    def sympy(self, parts: tuple[str, ...] = PARTS) -> str:
        """A Python module that makes the matrices as SymPy's."""
        return forms.as_sympy(self._forms(parts))


def equations(model: Robot, symbols: bool = False, seconds: float = 30.0) -> Equations:
    """The equations of motion of a robot in closed form.

    ``symbols``: lengths, masses and inertias get names in place of their numbers (l1, m1, I1 ...:
    ``formulations.parameters``). ``seconds``: the time that each part may take. ModelError for
    joints with quaternions and for loops; RamifyError where time is too short.
    """
    refuse_loops(model)
    refuse_quaternions(model)
    if not model.nv:
        raise ModelError(f"{model.name} has no joint that moves; there are no equations of motion")
    if not one_number(seconds) > 0.0:
        raise RamifyError(f"seconds is {seconds!r}; it must be a positive number")
    flag("symbols", symbols, RamifyError)
    coordinates = tuple(
        Coordinate(k, bool(link.p.rho), model.velocities[k - 1])
        for k, link in enumerate(model.skeleton.links, start=1)
    )
    space = Space(sum(x.turns for x in coordinates))
    tree = tree_of(model)
    values: dict[str, float] = {}
    if symbols:
        tree, values = named_tree(model, tree, space)
    joints = tuple(model.velocities)
    found = Equations(model.name, joints, coordinates, space, tree, values, seconds)
    return replace(found, parameters=_matter(found)) if symbols else found


def _matter(equations: Equations) -> dict[str, float]:
    """The parameters that matter; the only moment of inertia of a body is called I1."""
    inertia = [x for row in equations.inertia_forms for x in row]
    used = used_variables(inertia + equations.gravity_forms)
    values = {name: value for name, value in equations.parameters.items() if name in used}
    for name in list(values):
        body = name[3:]
        if name[0] == "I" and sum(other[0] == "I" and other[3:] == body for other in values) == 1:
            equations.space.variables[equations.space.variables.index(name)] = f"I{body}"
            values[f"I{body}"] = values.pop(name)
    names = sorted(values, key=lambda name: (name.rstrip("0123456789"), len(name), name))
    return {name: values[name] for name in names}
