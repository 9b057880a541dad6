"""Closed forms written out: how formats spell names, numbers, waves, products and sums."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any

from ramify.formulations.symbolic.waves import Number, Term, Wave, Waves, squares, variables_without

_LARGEST = 9999  # fractions of larger numbers are written as decimals
_HUNDRED = 100
_SUPER = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Coordinate:
    """Coordinate k = 1, 2 ...: an angle theta or a slide d; ``joint`` is its name in the robot."""

    k: int
    turns: bool
    joint: str

    @property
    def q(self) -> str:
        return f"{'theta' if self.turns else 'd'}{self.k}"

    @property
    def v(self) -> str:
        return f"{self.q}_dot"


def _split(name: str) -> tuple[str, str, bool]:
    """Letters, index, and whether it is a rate."""
    found = re.fullmatch(r"([A-Za-z]+?)(\d*)(_dot)?", name)
    assert found is not None
    return found[1], found[2], bool(found[3])


def _short(x: Number) -> bool:
    """Whether a number reads better as a fraction: 5/3, not 981/40."""
    if not isinstance(x, Fraction) or x.denominator > 144:
        return False
    ends = x.denominator in (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100, 125, 128)
    return abs(x.numerator) <= (99 if ends and x.denominator > 1 else _LARGEST)


SignedText = tuple[bool, str]
"""Whether a term is negative, and its text without sign."""


def sum_of_terms(pieces: Sequence[SignedText]) -> str:
    """A sum of signed terms."""
    text = ""
    for negative, piece in pieces:
        sign = (" - " if negative else " + ") if text else ("-" if negative else "")
        text += sign + piece
    return text


class TextStyle:
    """Closed forms over some coordinates as plain text; other formats spell some differently."""

    times = " "
    over = True  # 2 l1/3 rather than 2/3 l1

    def __init__(self, coordinates: Sequence[Coordinate]) -> None:
        self.coordinates = coordinates
        self.wide = any(x.k > 9 for x in coordinates)

    # ---- names, numbers, waves ----

    def name(self, name: str) -> str:
        letters, index, rate = _split(name)
        letters = {"theta": "θ"}.get(letters, letters)
        return letters + ("\N{COMBINING DOT ABOVE}" if rate else "") + index

    def power(self, x: str, k: int) -> str:
        return f"{x}{str(k).translate(_SUPER)}"

    def number(self, x: Number) -> str:
        return str(x) if _short(x) else f"{float(x):.6g}"

    def delta(self, i: int) -> str:
        """The name of denominator i."""
        return f"δ{i}"

    def wave(self, wave: Wave, odd: bool) -> str:
        """c12 = cos(theta1 + theta2), or the cosine or sine itself."""
        plain = self.indices(wave)
        if plain is not None:
            return ("s" if odd else "c") + plain
        return f"{'sin' if odd else 'cos'}({self.sum_of_angles(wave)})"

    def angles(self, wave: Wave) -> list[tuple[int, Coordinate]]:
        """The angles of a wave and how often each is in it."""
        turning = [x for x in self.coordinates if x.turns]
        return [(k, x) for k, x in zip(wave, turning, strict=True) if k]

    def indices(self, wave: Wave) -> str | None:
        """The joined indices of a plain sum of angles; None for multiples and differences."""
        parts = self.angles(wave)
        if any(k != 1 for k, _ in parts):
            return None
        return ("_" if self.wide else "").join(str(x.k) for _, x in parts)

    def sum_of_angles(self, wave: Wave) -> str:
        def term(k: int, x: Coordinate) -> SignedText:
            return k < 0, (f"{abs(k)}{self.times}" if abs(k) > 1 else "") + self.name(x.q)

        return sum_of_terms([term(k, x) for k, x in self.angles(wave)])

    # ---- sums ----

    def written(self, x: Waves) -> str:
        """A closed form: terms of one mass together, and rates that share all else in brackets."""
        names = x.space.variables
        groups: dict[str, dict[Term, Number]] = {}
        for term, k in x.terms.items():
            masses = [names[i] for i in term[2] if re.fullmatch(r"m\d+", names[i])]
            groups.setdefault(masses[0] if len(masses) == 1 else "", {})[term] = k
        pieces: list[SignedText] = []
        for mass, terms in sorted(groups.items(), key=lambda g: (not g[0], len(g[0]), g[0])):
            whole = self._pieces(Waves(x.space, terms))
            if not mass or len(whole) == 1:
                pieces += whole
                continue
            lead = [mass]
            if "g" in names and all(names.index("g") in term[2] for term in terms):
                lead.append("g")
            taken = [names.index(name) for name in lead]
            parts = self._pieces(Waves(x.space, terms).less(taken))
            negative = all(sign for sign, _ in parts)
            text = self.total([(sign != negative, part) for sign, part in parts])
            factors = [*map(self.name, lead), f"({text})" if len(parts) > 1 else text]
            pieces.append((negative, self.times.join(factors)))
        return self.total(pieces) if pieces else "0"

    def total(self, pieces: Sequence[SignedText]) -> str:
        return sum_of_terms(pieces)

    def _pieces(self, x: Waves) -> list[SignedText]:
        """Signed terms; those that differ only by rate and number are one, rates in brackets."""
        names = x.space.variables
        rest, squared = squares(x)
        shared: dict[tuple[int, Term], list[tuple[str, Number]]] = {}
        plain = [(1, item) for item in rest.terms.items()]
        for power, ((wave, odd, variables), k) in plain + [(2, item) for item in squared]:
            rates = [i for i in variables if names[i].endswith("_dot")]
            own = rates if len(rates) == 1 else []
            rate = names[rates[0]] if own else ""
            shared.setdefault((power, (wave, odd, variables_without(variables, own))), []).append(
                (rate, k)
            )
        out = []
        for (power, term), rated in sorted(shared.items(), key=lambda item: _order(item[0][1])):
            first = rated[0][1]
            more = [self._rates(rated)] if rated[0][0] else []
            if any(term[0]):
                turned = self.wave(term[0], term[1])
                more.insert(0, turned if power == 1 else self.power(turned, power))
            out.append((first < 0, self.product(abs(first), term[2], more, names)))
        return out

    def _rates(self, rates: Sequence[tuple[str, Number]]) -> str:
        first = rates[0][1]
        parts = []
        for name, k in sorted(rates, key=lambda r: _split(r[0])[1].zfill(9)):
            share = k / first
            size = "" if abs(share) == 1 else f"{self.number(abs(share))}{self.times}"
            parts.append((share < 0, size + self.name(name)))
        return (
            sum_of_terms(parts)
            if len(parts) == 1 and not parts[0][0]
            else f"({sum_of_terms(parts)})"
        )

    def product(
        self, size: Number, variables: Sequence[int], more: Sequence[str], names: Sequence[str]
    ) -> str:
        """A positive number times variables times what is written already."""
        powers = ((names[i], len(list(same))) for i, same in groupby(sorted(variables)))
        parts = [
            self.name(name) if k == 1 else self.power(self.name(name), k)
            for name, k in sorted(powers, key=_reading_order)
        ] + list(more)
        if size == 1 and parts:
            return self.times.join(parts)
        if self.over and _short(size) and parts:
            top = self.times.join(([str(size.numerator)] if size.numerator != 1 else []) + parts)
            return top if size.denominator == 1 else f"{top}/{size.denominator}"
        return self.times.join([self.number(size), *parts])


class LatexStyle(TextStyle):
    over = False

    def name(self, name: str) -> str:
        letters, index, rate = _split(name)
        letters, more = ("\\theta", "") if letters == "theta" else (letters[0], letters[1:])
        low = f"_{{{more}{index}}}" if more or index else ""
        return (f"\\dot {letters}" if rate else letters) + low

    def power(self, x: str, k: int) -> str:
        return f"{x}^{{{k}}}"

    def number(self, x: Number) -> str:
        if _short(x) and x.denominator > 1:
            return f"\\tfrac{{{x.numerator}}}{{{x.denominator}}}"
        text = super().number(x)
        return re.sub(r"e([+-]\d+)$", lambda e: f" \\cdot 10^{{{int(e[1])}}}", text)

    def delta(self, i: int) -> str:
        return f"\\delta_{{{i}}}"

    def wave(self, wave: Wave, odd: bool) -> str:
        plain = self.indices(wave)
        if plain is None:
            return f"\\{super().wave(wave, odd)}"
        return f"{'s' if odd else 'c'}_{{{plain.replace('_', ',')}}}"


class PythonStyle(TextStyle):
    times = "*"

    def name(self, name: str) -> str:
        return name

    def power(self, x: str, k: int) -> str:
        return f"{x}**{k}"

    def number(self, x: Number) -> str:
        return str(x) if _short(x) else repr(float(x))

    def delta(self, i: int) -> str:
        return f"delta{i}"

    def wave(self, wave: Wave, odd: bool) -> str:
        """A local variable: c12, or c_2x1_m3 for the cosine of 2 theta1 - theta3."""
        plain = self.indices(wave)
        if plain is None:
            plain = "".join(
                f"_{'m' if k < 0 else ''}{f'{abs(k)}x' if abs(k) > 1 else ''}{x.k}"
                for k, x in self.angles(wave)
            )
        return ("s" if odd else "c") + plain

    def total(self, pieces: Sequence[SignedText]) -> str:
        """By hundreds: sums of thousands of terms are too deep for Python's parser."""
        while len(pieces) > _HUNDRED:
            pieces = [
                (False, f"({sum_of_terms(pieces[i : i + _HUNDRED])})")
                for i in range(0, len(pieces), _HUNDRED)
            ]
        return sum_of_terms(pieces)


class SympyStyle(PythonStyle):
    def number(self, x: Number) -> str:
        """Exact: a quotient of two of Python's whole numbers would be a float."""
        if not isinstance(x, Fraction) or x.denominator == 1:
            return repr(float(x)) if isinstance(x, float) else str(x)
        return f"Rational({x.numerator}, {x.denominator})"


def _order(term: Term) -> Any:
    wave, odd, variables = term
    return any(wave), sum(map(abs, wave)), [-abs(k) for k in wave], odd, variables


def _reading_order(item: tuple[str, int]) -> Any:
    """Masses and gravity, then inertias and lengths, each by index."""
    letters, index, _ = _split(item[0])
    return "mgI".find(letters[0]) % 9, letters, index.zfill(9)
