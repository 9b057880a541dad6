"""Registries: the entries of a kind by name, open to those of other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ramify.core.errors import RamifyError

T = TypeVar("T")


def _name_of(entry: Any) -> tuple[str, ...]:
    return (entry.name,)


class NamedEntries(dict[str, T]):
    """The entries of a kind by name; an entry may have several names.

    what: how messages call a name; names_of: the names of an entry, by default its ``name``, may
    refuse it; error: what is raised for a name that exists.
    """

    def __init__(
        self,
        what: str,
        entries: Iterable[T] = (),
        names_of: Callable[[T], tuple[str, ...]] = _name_of,
        error: type[RamifyError] = RamifyError,
    ) -> None:
        super().__init__()
        self._what, self._names_of, self._error = what, names_of, error
        for entry in entries:
            self.add(entry)

    def add(self, entry: T, *names: str) -> T:
        """Add an entry under its names, or under those given here; one that exists is refused."""
        names = names or self._names_of(entry)
        for name in names:
            if name in self:
                raise self._error(f"the {self._what} {name!r} exists already; choose another one")
        self.update(dict.fromkeys(names, entry))
        return entry

    def remove(self, entry: T) -> None:
        """Take an entry out, with all its names."""
        for name in [name for name, one in self.items() if one is entry]:
            del self[name]
