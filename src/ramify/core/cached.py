"""What is computed once and remembered: properties of an object, and values by key."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 (as functools writes it)
        """A property that is computed when it is first asked for, without a lock.

        Python 3.11 holds one lock for all instances of a class while it computes; a child forked at
        that moment would wait for it forever. Two threads that ask at once may both compute the
        value; both get the one that is ready first.
        """

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname in values:
                return values[self.attrname]
            value = values[self.attrname] = self.func(instance)
            return value


class Memo(dict[Any, Any]):
    """Values by key, each made when it is first asked for; of more than ``most`` the oldest go.

    Two threads that ask at once may both make a value; both get the one that is ready first.
    """

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made now if there is none."""
        if key in self:
            value: T = self[key]
            return value
        return self.keep(key, make())

    def keep(self, key: Hashable, value: T) -> T:
        """Remember a value unless another one is remembered for this key; gives that one."""
        value = self.setdefault(key, value)
        while self._most is not None and len(self) > self._most:
            self.pop(next(iter(self)), None)
        return value
