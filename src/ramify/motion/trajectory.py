"""What every trajectory is: a text that gives positions, rates and accelerations at a time.

A trajectory moves n coordinates, angles (rad) or slides (m), from ``begin`` for ``duration``
seconds. Before and after they are held: positions stay, rates and accelerations are zero. The text
is written over any scalar, so the same trajectory runs on a float, on an array of times, and inside
a compiled right-hand side.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, finite_number, one_number, real, whole
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.lookup import repr_with_digests
from ramify.core.memory import refuse_too_large
from ramify.core.messages import shown
from ramify.core.records import settle
from ramify.core.scalar import Scalar, select
from ramify.documents.forms import Number
from ramify.documents.kinds import Registry, key

MOTIONS: Final[Registry[Trajectory]] = Registry("motion")
"""Motions by their words: ``@MOTIONS.add("sway")`` above a dataclass adds one."""
BEGIN: Final = key(Number(), unit="s")
DURATION: Final = key(Number(above=0.0), unit="s")
ENDLESS: Final = key(Number(above=0.0, endless=True), unit="s")
"""Metadata of the fields ``begin`` and ``duration``; of one that may be infinite."""

Texts = tuple[list[Scalar], list[Scalar], list[Scalar]]
"""Positions, rates and accelerations: n scalars each."""


class Motion(NamedTuple):
    """A motion of n coordinates at T times: ``t`` (T,) in s; ``q``, ``v``, ``a`` (T, n), v and a
    the exact derivatives of q.
    """

    t: Array
    q: Array
    v: Array
    a: Array


class Trajectory(ABC):
    """n coordinates that move from the time ``begin`` for ``duration`` (both s, the duration may be
    infinite).

    A family is a frozen dataclass with these two; it writes ``inside``, its formula between begin
    and end. Its fields are its keys in files, once it has a word in ``MOTIONS``. Its
    repr must say all that the formula depends on: compiled code is kept under it.
    """

    begin: float
    duration: float

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.inside(self.begin)[0])

    @abstractmethod
    def inside(self, t: Scalar) -> Texts:
        """(q, v, a) at a time between begin and end, over any scalar."""

    @property
    def traceable(self) -> bool:
        """Whether the text can be compiled."""
        return True

    @property
    def until(self) -> float:
        """The time at which the motion ends, s."""
        return self.begin + self.duration

    def text(self, t: Scalar) -> Texts:
        """(q, v, a), n scalars each, at the time t (s) over any scalar; held before the begin and
        after the end.
        """
        before = t < self.begin
        s, moving = select(before, self.begin, t), select(before, 0.0, 1.0)
        if math.isfinite(self.until):
            after = t > self.until
            s, moving = select(after, self.until, s), select(after, 0.0, moving)
        q, v, a = self.inside(s)
        return list(q), [x * moving for x in v], [x * moving for x in a]

    def at(self, t: ArrayLike) -> Motion:
        """The motion at the times t (...), s: a Motion whose q, v, a are (..., n). StateError where
        a time is not finite.
        """
        times = moments(t)
        q, v, a = (
            stacked(part, times.shape) for part in self.text(times if times.ndim else float(times))
        )
        return Motion(times, q, v, a)

    def samples(self, rows: int = 1001) -> Motion:
        """The motion at ``rows`` times spread evenly from begin to end, both included.

        Raises StateError for fewer than two rows and for a motion that does not end.
        """
        if whole("rows", rows, 0) < 2:
            raise StateError(f"a motion needs at least 2 rows, its start and its end; got {rows}")
        refuse_too_large("the motion", (rows, 3 * self.n), "ask for fewer rows")
        if not math.isfinite(self.duration):
            raise StateError(
                "this motion does not end; give it a duration, or choose the times with at(t)"
            )
        return self.at(self.begin + np.linspace(0.0, 1.0, rows) * self.duration)


class Sampled(Trajectory):
    """A motion through rows at the rising ``times`` (T,), s; ``ROWS`` names the field with the
    rows (T, n).
    """

    ROWS: ClassVar[str]
    times: Any

    def __repr__(self) -> str:
        return self._shown

    @cached_property
    def _shown(self) -> str:
        return repr_with_digests(self, "times", self.ROWS)

    @property
    def n(self) -> int:
        return len(getattr(self, self.ROWS)[0])

    @property
    def begin(self) -> float:  # type: ignore[override]
        return float(self.times[0])

    @property
    def duration(self) -> float:  # type: ignore[override]
        return float(self.times[-1] - self.times[0])

    @property
    def until(self) -> float:
        return float(self.times[-1])


def transposed(rows: Iterable[tuple[Scalar, Scalar, Scalar]]) -> Texts:
    """Positions, rates and accelerations from a triple per coordinate."""
    q, v, a = map(list, zip(*rows, strict=True))
    return q, v, a


def stacked(scalars: Sequence[Scalar], shape: tuple[int, ...]) -> Array:
    """(*shape, n) from n numbers or arrays that broadcast to the shape."""
    if not scalars:
        return np.empty((*shape, 0))
    columns = (np.asarray(x, dtype=np.float64) for x in scalars)
    return np.stack([np.broadcast_to(x, shape) for x in columns], axis=-1)


# ---- what a user gives ----

Row = tuple[float, ...]


def row(name: str, value: ArrayLike, finite: bool = True) -> Row:
    """A number or (n,) as a row of floats, finite by default."""
    array = np.atleast_1d(real(name, value))
    if array.ndim != 1 or not array.size:
        raise StateError(f"{name} has shape {array.shape}; it must be a number or (n,)")
    if finite and not np.isfinite(array).all():
        i = int(np.argmin(np.isfinite(array)))
        raise StateError(f"{name}[{i}] is {array[i]}; it must be finite")
    return tuple(array.tolist())


def rows_of_one_length(**values: ArrayLike) -> tuple[Row, ...]:
    """Rows of one length: single numbers serve all coordinates."""
    rows = {name: row(name, value) for name, value in values.items()}
    first = max(rows, key=lambda name: len(rows[name]) > 1)  # the first that is not a single number
    n = len(rows[first])
    for name, r in rows.items():
        if len(r) not in (1, n):
            raise StateError(
                f"{first} has {n} coordinates, {name} has {len(r)}; give as many or a single number"
            )
    return tuple(r if len(r) == n else r * n for r in rows.values())


def timed_rows(
    name: str, times: ArrayLike, values: ArrayLike, least: int
) -> tuple[Row, tuple[Row, ...]]:
    """Rising times (T,), and values (T,) or (T, n) as rows of finite floats."""
    t = row("times", times)
    late = int(np.argmax(np.diff(t) <= 0.0)) + 1 if len(t) > 1 else 0
    if late and t[late] <= t[late - 1]:
        raise StateError(
            f"times[{late}] is {t[late]} s, not after times[{late - 1}], {t[late - 1]} s; times "
            "must rise"
        )
    if len(t) < least:
        raise StateError(f"times has {len(t)} entries; at least {least} are needed")
    array = real(name, values)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[0] != len(t) or not array.shape[1]:
        raise StateError(
            f"{name} has shape {array.shape}; it must be ({len(t)}, n), a row for each time"
        )
    if not np.isfinite(array).all():
        i, j = (int(x) for x in np.argwhere(~np.isfinite(array))[0])
        raise StateError(f"{name}[{i}, {j}] is {array[i, j]}; it must be finite")
    return t, tuple(map(tuple, array.tolist()))


def moments(t: ArrayLike) -> Array:
    """Finite times (...), s."""
    times = real("t", t)
    if not np.isfinite(times).all():
        raise StateError(f"t must be finite; got {times[~np.isfinite(times)][0]}")
    return times


SHORTEST: Final = 1e-30
"""s: a shorter motion has accelerations beyond all numbers."""
LONGEST: Final = 1e30
"""s: powers of a longer duration are beyond all numbers."""


def span(begin: float, duration: float, endless: bool = False) -> tuple[float, float]:
    """A finite begin and a positive duration, which may be infinite for a motion that never
    ends.
    """
    start, length = finite_number("begin", begin, "s"), one_number(duration)
    if not (length >= SHORTEST and (endless or math.isfinite(length))):
        raise StateError(
            f"duration {shown(duration)} s must be {'' if endless else 'finite and '}positive"
        )
    if math.isfinite(length) and length > LONGEST:
        raise StateError(f"duration {shown(duration)} s must be at most {LONGEST:g} s")
    return start, length


def settle_rows(motion: Any, *names: str, endless: bool = False) -> None:
    """Settle the fields of a motion that ``rows_of_one_length`` and ``span`` check."""
    rows = rows_of_one_length(**{name: getattr(motion, name) for name in names})
    begin, duration = span(motion.begin, motion.duration, endless)
    settle(motion, begin=begin, duration=duration, **dict(zip(names, rows, strict=True)))


def is_one_number(value: Any) -> bool:
    """Whether a user gave one finite number."""
    return math.isfinite(one_number(value))
