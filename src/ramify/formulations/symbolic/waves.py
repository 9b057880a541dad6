"""Sums of cosines and sines of sums of angles, with polynomials for coefficients: a scalar in which
closed forms come out simple.

Products of waves are turned into sums at once, cos a cos b = (cos(a - b) + cos(a + b)) / 2, so that
every expression has one form: the textbook's c12 = cos(theta1 + theta2). Equal terms meet and
cancel without any search for identities. Numbers are fractions where they are short ones, else
floats.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, reduce
from operator import and_
from typing import Any, TypeAlias

from ramify.core.errors import RamifyError

Number: TypeAlias = Any
"""A Fraction, or a float where no short fraction would do."""
Wave: TypeAlias = tuple[int, ...]
"""How often each angle is in a sum of angles; its first entry that is not zero is positive."""
Term: TypeAlias = tuple[Wave, bool, tuple[int, ...]]
"""A cosine, or a sine where the second entry is True, of a wave; and the variables it is multiplied
by, sorted, each as often.
"""

_LARGEST_DENOMINATOR = 100_000
_DUST = 1e-13
_MOST_TERMS = 500_000  # about 200 MB


class TooLongError(RamifyError):
    """A closed form that takes more time or room than it was given."""


@cache
def exact(x: float) -> Number:
    """The fraction that a float stands for, if a short one is within rounding; else the float."""
    near = Fraction(x).limit_denominator(_LARGEST_DENOMINATOR)
    return near if abs(float(near) - x) <= 4.5e-16 * abs(x) else x


@dataclass
class Space:
    """The angles and variables of a robot's expressions, and the time by which they must be done
    (s, ``time.monotonic``).
    """

    angles: int
    variables: list[str] = field(default_factory=list)
    deadline: float = float("inf")

    def variable(self, name: str) -> Waves:
        """A variable that is not an angle, or an angle outside sines and cosines."""
        if name not in self.variables:
            self.variables.append(name)
        return Waves(self, {(self.still, False, (self.variables.index(name),)): Fraction(1)})

    def angle(self, k: int, name: str) -> Angle:
        """Angle k, of which sine and cosine may be taken."""
        return Angle(self, dict(self.variable(name).terms), k)

    @property
    def still(self) -> Wave:
        return (0,) * self.angles

    def number(self, x: float | Fraction) -> Waves:
        value = x if isinstance(x, Fraction) else exact(float(x))
        return Waves(self, {(self.still, False, ()): value} if value else {})

    def check(self) -> None:
        """TooLongError where the time is over."""
        if time.monotonic() > self.deadline:
            raise TooLongError("takes longer than it may")


def _wave(w: Wave) -> tuple[Wave, int]:
    """The wave with its first entry positive, and the sign that a sine takes; 0 for no angle."""
    for x in w:
        if x:
            return (w, 1) if x > 0 else (tuple(-y for y in w), -1)
    return w, 0


class Waves:
    """A sum of terms, number times variables times cosine or sine; made by a Space."""

    __slots__ = ("space", "terms")

    def __init__(self, space: Space, terms: dict[Term, Number]) -> None:
        self.space, self.terms = space, terms

    def __repr__(self) -> str:
        return f"<Waves of {len(self.terms)} terms>"

    def __bool__(self) -> bool:
        raise TypeError("a closed form has no truth value: a text must not branch on numbers")

    def __add__(self, o: Any) -> Waves:
        other = o if isinstance(o, Waves) else self.space.number(o)
        out = dict(self.terms)
        for term, x in other.terms.items():
            total = out.get(term, 0) + x
            if total:
                out[term] = total
            else:
                del out[term]
        return Waves(self.space, out)

    __radd__ = __add__

    def __sub__(self, o: Any) -> Waves:
        return self + -o

    def __rsub__(self, o: Any) -> Waves:
        return -self + o

    def __neg__(self) -> Waves:
        return Waves(self.space, {term: -x for term, x in self.terms.items()})

    def __mul__(self, o: Any) -> Any:
        if isinstance(o, Waves):
            return self._times(o)
        if o == 0:
            return 0.0
        if o == 1:
            return self
        k = o if isinstance(o, Fraction) else exact(float(o))
        return Waves(self.space, {term: x * k for term, x in self.terms.items()})

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Any:
        if isinstance(o, Waves):
            raise RamifyError("closed forms are divided as pairs, not one by the other")
        return self * (1 / (o if isinstance(o, Fraction) else exact(float(o))))

    def _times(self, o: Waves) -> Waves:
        out: dict[Term, Number] = {}

        def put(wave: Wave, odd: bool, variables: tuple[int, ...], x: Number) -> None:
            wave, sign = _wave(wave)
            if odd:
                if not sign:
                    return
                x = x if sign > 0 else -x
            key = wave, odd, variables
            out[key] = out.get(key, 0) + x

        for (wa, oa, va), x in self.terms.items():
            self.space.check()
            if len(out) > _MOST_TERMS:
                raise TooLongError(f"has an entry of more than {_MOST_TERMS} terms")
            for (wb, ob, vb), y in o.terms.items():
                variables = tuple(sorted(va + vb)) if va and vb else va or vb
                if not any(wa):
                    put(wb, ob, variables, x * y)
                elif not any(wb):
                    put(wa, oa, variables, x * y)
                else:
                    half = x * y / 2
                    plus, minus = tuple(map(int.__add__, wa, wb)), tuple(map(int.__sub__, wa, wb))
                    put(plus, oa != ob, variables, -half if oa and ob else half)
                    put(minus, oa != ob, variables, -half if ob and not oa else half)
        return Waves(self.space, {term: x for term, x in out.items() if x})

    def less(self, variables: Sequence[int]) -> Waves:
        """The waves divided by variables that all their terms have."""
        terms = {
            (w, odd, variables_without(v, variables)): k for (w, odd, v), k in self.terms.items()
        }
        return Waves(self.space, terms)

    @property
    def largest(self) -> Number:
        """The size of its largest number."""
        return max((abs(x) for x in self.terms.values()), default=Fraction(0))

    def tidy(self, largest: Number) -> Waves:
        """The waves without rounding dust: what floats left where exact numbers, up to ``largest``,
        would have cancelled.
        """
        kept = {
            term: exact(x) if isinstance(x, float) else x
            for term, x in self.terms.items()
            if isinstance(x, Fraction) or abs(x) > _DUST * largest
        }
        return Waves(self.space, kept)


class Angle(Waves):
    """A joint angle: a variable whose sine and cosine are waves."""

    __slots__ = ("k",)

    def __init__(self, space: Space, terms: dict[Term, Number], k: int) -> None:
        super().__init__(space, terms)
        self.k = k

    def _unit(self, odd: bool) -> Waves:
        wave = tuple(int(i == self.k) for i in range(self.space.angles))
        return Waves(self.space, {(wave, odd, ()): Fraction(1)})

    @staticmethod
    def _cos_(x: Angle) -> Waves:
        return x._unit(False)

    @staticmethod
    def _sin_(x: Angle) -> Waves:
        return x._unit(True)


# ---- determinants and quotients ----


def waves(space: Space, scalars: Iterable[Any], like: Iterable[Waves] = ()) -> list[Waves]:
    """The scalars that a text gave, plain numbers perhaps, as waves; dust is what is small beside
    all of them and ``like``.
    """
    found = [x if isinstance(x, Waves) else space.number(x) for x in scalars]
    largest = max(x.largest for x in (*found, *like))
    return [x.tidy(largest) for x in found]


def determinant(
    M: list[list[Waves]], rows: tuple[int, ...], columns: tuple[int, ...], minors: dict[Any, Waves]
) -> Waves:
    """A minor, along its first row; smaller ones are ``known`` once they have been met."""
    space = M[0][0].space
    if not rows:
        return space.number(1)
    key = rows, columns
    if key not in minors:
        total, largest = space.number(0), Fraction(0)
        for position, column in enumerate(columns):
            entry = M[rows[0]][column]
            if entry.terms:
                rest = columns[:position] + columns[position + 1 :]
                part = entry * determinant(M, rows[1:], rest, minors)
                total = total + part if position % 2 == 0 else total - part
                largest = max(largest, part.largest)
        minors[key] = total.tidy(largest)
    return minors[key]


@dataclass(frozen=True)
class Quotient:
    """One closed form over another, common variables removed."""

    numerator: Waves
    denominator: Waves


def quotient(a: Waves, b: Waves) -> Quotient:
    """a / b: common variables cancel, and so does the rest of both where it is the same."""
    if not a.terms:
        return Quotient(a, a.space.number(1))
    top, bottom = factors_of_waves(a), factors_of_waves(b)
    if top.rest.terms == bottom.rest.terms:
        a, b = (
            Waves(x.rest.space, {(x.rest.space.still, False, x.variables): x.number})
            for x in (top, bottom)
        )
    common = _common((*a.terms, *b.terms))

    return Quotient(a.less(common), b.less(common))


@dataclass(frozen=True)
class Factors:
    """A closed form as number times variables times a primitive rest, whose numbers and terms have
    nothing more in common.
    """

    number: Number
    variables: tuple[int, ...]
    rest: Waves

    @property
    def alone(self) -> bool:
        """Whether the rest is one."""
        return self.rest.terms == {(self.rest.space.still, False, ()): 1}


def factors_of_waves(x: Waves) -> Factors:
    """Number, variables and rest of a closed form that is not zero."""
    common, number = _common(x.terms), _content(x)
    rest = {term: k / number for term, k in x.less(common).terms.items()}
    return Factors(number, common, Waves(x.space, rest))


def squares(x: Waves) -> tuple[Waves, list[tuple[Term, Number]]]:
    """x as a rest and squares: a - a cos 2w = 2 a sin^2 w, a + a cos 2w = 2 a cos^2 w."""
    still = x.space.still
    rest = dict(x.terms)
    terms: list[tuple[Term, Number]] = []
    for (wave, odd, variables), k in x.terms.items():
        constant = rest.get((still, False, variables), 0)
        if odd or not any(wave) or any(j % 2 for j in wave) or abs(constant) != abs(k):
            continue
        del rest[still, False, variables], rest[wave, False, variables]
        terms.append(((tuple(j // 2 for j in wave), constant != k, variables), 2 * constant))
    return Waves(x.space, rest), terms


def _common(terms: Iterable[Term]) -> tuple[int, ...]:
    """The variables that all terms have, as often as all have them."""
    return tuple(sorted(reduce(and_, (Counter(variables) for _, _, variables in terms)).elements()))


def variables_without(variables: tuple[int, ...], taken: Iterable[int]) -> tuple[int, ...]:
    """Some variables less others that are among them, each as often."""
    left = list(variables)
    for x in taken:
        left.remove(x)
    return tuple(left)


def _content(x: Waves) -> Number:
    """The largest number of which all numbers of x are whole multiples, with the sign of one of
    them; that one for floats.
    """
    lead = x.terms[min(x.terms)]
    numbers = x.terms.values()
    if not all(isinstance(k, Fraction) for k in numbers):
        return lead
    tops, bottoms = (k.numerator for k in numbers), (k.denominator for k in numbers)
    out = Fraction(math.gcd(*tops), math.lcm(*bottoms))
    return out if lead > 0 else -out
