"""The loop in time: every run and every rollout goes through ``drive``.

A ``TimeSteps`` advances the state by a chunk of steps at a time: ``RunSteps`` for runs,
``BatchSteps`` for rollouts. Observers set what acts and see the result: samples of a controller,
pushes, events, loops, limits, failures, progress, records. For your own, derive a class from
``Observer`` that takes the right-hand side (``Field``) and add it to ``OBSERVERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from ramify.core.registry import NamedEntries


class TimeSteps(Protocol):
    """A run or a rollout that is being computed. ``at_boundary``: the forces from outside may
    change before the next chunk.
    """

    @property
    def finished(self) -> bool: ...

    @property
    def at_boundary(self) -> bool: ...

    def advance(self) -> Any:
        """Make some steps and return a chunk: a ``StepChunk`` of a run, the number of steps of a
        rollout. The time moves on when it is accepted.
        """

    def accept(self, chunk: Any) -> None:
        """Take the end of the chunk as the state from which to go on."""

    def settle(self) -> None:
        """Prepare the next chunk."""


class Observer:
    """Is called between the chunks of a run or a rollout. Override only the methods you need. A
    chunk may be many compiled steps.
    """

    hooks: frozenset[str] = frozenset()
    """The methods among before, check and after that a subclass overrides."""

    def __init_subclass__(cls) -> None:
        names = [name for kind in cls.__mro__[:-2] for name in vars(kind)]
        cls.hooks = frozenset(names) & {"before", "check", "after"}

    def before(self, steps: Any) -> None:
        """At a boundary: set what acts from now on, and limit the next steps."""

    def check(self, steps: Any, chunk: Any) -> None:
        """Before the steps are accepted: raise an error to refuse them, or set ``chunk.reached``
        and call ``steps.end`` to end a run within them.
        """

    def after(self, steps: Any, chunk: Any) -> None:
        """After the steps are accepted: record them, or call ``steps.end`` to end the run."""


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
"""Classes or functions ``make(field)`` that give a new observer for each later run of ``simulate``;
the name of an entry is that of the class or function.
"""


def new_observers(field: Any) -> list[Observer]:
    """A new observer from each entry of ``OBSERVERS``, for a run of this right-hand side."""
    return [make(field) for make in OBSERVERS.values()]
