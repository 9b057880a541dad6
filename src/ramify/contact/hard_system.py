"""The equations of one step with hard contact: A w = r + J' g, and the law of every row of J.

w are the velocities at the end of the step, g the impulses of the rows. A contact has three rows, a
stop, a joint with dry friction and an equation of a loop have one each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ramify.core.scalar import Scalar
from ramify.dynamics.tree_factor import Entries

Sparse = dict[int, Scalar]
"""Entries of a row of J by link."""


@dataclass(frozen=True)
class ContactRows:
    """A contact: rows along the normal and along two tangents, of the velocity of one surface as
    seen from the other. The normal velocity at the end of the step is at least ``least`` (m/s);
    ``friction`` is Coulomb's coefficient, a number that is known when code is written.
    """

    normal: Sparse
    tangents: tuple[Sparse, Sparse]
    least: Scalar
    friction: float

    @property
    def rows(self) -> tuple[Sparse, ...]:
        return (self.normal, *self.tangents)


@dataclass(frozen=True)
class SingleRow:
    """A row whose velocity is to be ``target`` by an impulse between ``low`` and ``high``, None
    where that is unlimited.
    """

    entries: Sparse
    target: Scalar
    low: Scalar | None = None
    high: Scalar | None = None


@dataclass(frozen=True)
class System:
    """A (its lower triangle), r (nv), the rows, the energy norm ``speed`` = sqrt(v' A v) of the
    velocities before the step, and ``inverses`` (nv) of the diagonal of A.
    """

    A: Entries
    r: list[Scalar]
    contacts: tuple[ContactRows, ...]
    singles: tuple[SingleRow, ...]
    speed: Scalar
    inverses: list[Scalar]

    @property
    def rows(self) -> list[Sparse]:
        """All rows of J: three of each contact, then the others."""
        return [row for c in self.contacts for row in c.rows] + [s.entries for s in self.singles]


def mapped(system: System, change: Callable[[Scalar], Scalar]) -> System:
    """A system with every scalar changed, in a fixed order."""

    def sparse(row: Sparse) -> Sparse:
        return {k: change(x) for k, x in row.items()}

    def bound(x: Scalar | None) -> Scalar | None:
        return None if x is None else change(x)

    A = {place: change(x) for place, x in system.A.items()}
    r = [change(x) for x in system.r]
    contacts = tuple(
        replace(
            c, normal=sparse(c.normal), tangents=(sparse(c.tangents[0]), sparse(c.tangents[1])),
            least=change(c.least),
        )
        for c in system.contacts
    )  # fmt: skip
    singles = tuple(
        SingleRow(sparse(s.entries), change(s.target), bound(s.low), bound(s.high))
        for s in system.singles
    )
    inverses = [change(x) for x in system.inverses]
    return System(A, r, contacts, singles, change(system.speed), inverses)


def without_zeros(system: System) -> System:
    """A system without entries that are known to be zero."""

    def sparse(row: Sparse) -> Sparse:
        return {k: x for k, x in row.items() if not _is_zero(x)}

    contacts = tuple(
        replace(c, normal=sparse(c.normal), tangents=(sparse(c.tangents[0]), sparse(c.tangents[1])))
        for c in system.contacts
    )
    singles = tuple(replace(s, entries=sparse(s.entries)) for s in system.singles)
    A = {place: x for place, x in system.A.items() if place[0] == place[1] or not _is_zero(x)}
    return replace(system, A=A, contacts=contacts, singles=singles)


def _is_zero(x: Scalar) -> bool:
    return isinstance(x, (float, int)) and x == 0.0


@dataclass(frozen=True)
class SystemLayout:
    """Which scalars of a system are known beforehand: from a system of symbols, whose known numbers
    are floats. The others are ``numbers`` of a step.
    """

    template: System
    numbers: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", len(self.packed(self.template)))

    def packed(self, system: System) -> list[Any]:
        """The numbers of a step; a system that has more entries than the template loses them."""
        numbers: list[Any] = []
        constant: list[bool] = []

        def note(x: Scalar) -> Scalar:
            constant.append(isinstance(x, (float, int)))
            return x

        mapped(self.template, note)
        flags = iter(constant)

        def collect(x: Scalar) -> Scalar:
            if not next(flags):
                numbers.append(x)
            return x

        mapped(_fitted(system, self.template), collect)
        return numbers

    def unpacked(self, numbers: Sequence[Scalar]) -> System:
        """The system of these numbers."""
        rest: Iterator[Scalar] = iter(numbers)
        return mapped(self.template, lambda x: x if isinstance(x, (float, int)) else next(rest))


def _fitted(system: System, template: System) -> System:
    """A system with the entries that a template has, in their order."""

    def like(row: Sparse, other: Sparse) -> Sparse:
        return {k: row.get(k, 0.0) for k in other}

    contacts = tuple(
        replace(
            c, normal=like(c.normal, t.normal),
            tangents=(like(c.tangents[0], t.tangents[0]), like(c.tangents[1], t.tangents[1])),
        )
        for c, t in zip(system.contacts, template.contacts, strict=True)
    )  # fmt: skip
    singles = tuple(
        replace(s, entries=like(s.entries, t.entries))
        for s, t in zip(system.singles, template.singles, strict=True)
    )
    A = {place: system.A.get(place, 0.0) for place in template.A}
    return replace(system, A=A, contacts=contacts, singles=singles)
