"""Properties that are computed once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

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
