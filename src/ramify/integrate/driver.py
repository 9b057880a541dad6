"""The loop in time: every run and every rollout goes through ``drive``.

Steps advance a motion by one chunk at a time; observers set what acts on it and see what comes of
it: samples of a controller, pushes, events, loops, limits, failures, progress, records. To watch
runs from outside, derive from ``Observer`` and add a function that makes one for each run to
``OBSERVERS``, under a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ramify.core.registry import NamedEntries


class TimeSteps(Protocol):
    """A motion on its way. ``at_boundary``: what acts on it may change now."""

    @property
    def finished(self) -> bool: ...

    @property
    def at_boundary(self) -> bool: ...

    def advance(self) -> Any:
        """Make some steps; gives a chunk of them, which does not count until it is accepted."""

    def accept(self, chunk: Any) -> None:
        """Take the end of the chunk as the state from which to go on."""

    def settle(self) -> None:
        """Prepare the next chunk."""


class Observer:
    """Sees a motion between its steps. What it does not need it leaves out."""

    hooks: frozenset[str] = frozenset()
    """The names of the methods that a kind of observer has."""

    def __init_subclass__(cls) -> None:
        names = [name for kind in cls.__mro__[:-2] for name in vars(kind)]
        cls.hooks = frozenset(names) & {"before", "check", "after"}

    def before(self, steps: Any) -> None:
        """At a boundary: set what acts from now on, and limit the next steps."""

    def check(self, steps: Any, chunk: Any) -> None:
        """Refuse the steps just made, or end the motion within them."""

    def after(self, steps: Any, chunk: Any) -> None:
        """The steps count: record them, or end the motion."""


def drive(steps: TimeSteps, observers: Sequence[Observer]) -> None:
    """Advance a motion to its end."""
    before = [observer.before for observer in observers if "before" in observer.hooks]
    check = [observer.check for observer in observers if "check" in observer.hooks]
    after = [observer.after for observer in observers if "after" in observer.hooks]
    while not steps.finished:
        if before and steps.at_boundary:
            for act in before:
                act(steps)
            if steps.finished:  # as one of them decided
                return
        chunk = steps.advance()
        for look in check:
            look(steps, chunk)
        steps.accept(chunk)
        for look in after:
            look(steps, chunk)
        steps.settle()


def _name_of(make: Callable[[Any], Observer]) -> tuple[str, ...]:
    return (getattr(make, "__qualname__", repr(make)),)


OBSERVERS: Final[NamedEntries[Callable[[Any], Observer]]] = NamedEntries(
    "observer", names_of=_name_of
)
"""``make(field)`` gives an observer for each run of ``simulate`` that begins from now on."""


def registered(field: Any) -> list[Observer]:
    """A new observer of each kind for a run of this right-hand side."""
    return [make(field) for make in OBSERVERS.values()]
