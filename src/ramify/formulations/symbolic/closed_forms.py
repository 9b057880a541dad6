"""Closed forms written out: how text, LaTeX and Python spell names, numbers, waves, products and
sums.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Any, Final

from ramify.formulations.symbolic.waves import Number, Term, Wave, Waves, squares, without

_LARGEST = 9999  # fractions of larger numbers are written as decimals
_HUNDRED = 100
_SUPER = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Coordinate:
    """Coordinate k, counted from one: an angle theta or a slide d, with its rate; ``joint`` is its
    name in the robot.
    """

    k: int
    turns: bool
    joint: str

    @property
    def q(self) -> str:
        return f"{'theta' if self.turns else 'd'}{self.k}"

    @property
    def v(self) -> str:
        return f"{self.q}_dot"


# ---- how the formats spell things ----


@dataclass(frozen=True)
class Style:
    """A format: product sign, and how names, powers, numbers and waves are spelt."""

    times: str
    name: Callable[[str], str]
    power: Callable[[str, int], str]
    number: Callable[[Number], str]
    delta: Callable[[int], str]
    wave: Callable[[Wave, bool, Sequence[Coordinate]], str]


def _split(name: str) -> tuple[str, str, bool]:
    """Letters, index, and whether it is a rate."""
    found = re.fullmatch(r"([A-Za-z]+?)(\d*)(_dot)?", name)
    assert found is not None
    return found[1], found[2], bool(found[3])


def text_name(name: str) -> str:
    letters, index, rate = _split(name)
    letters = {"theta": "θ"}.get(letters, letters)
    return letters + ("\N{COMBINING DOT ABOVE}" if rate else "") + index


def _latex_name(name: str) -> str:
    letters, index, rate = _split(name)
    letters, more = ("\\theta", "") if letters == "theta" else (letters[0], letters[1:])
    return (f"\\dot {letters}" if rate else letters) + (
        f"_{{{more}{index}}}" if more or index else ""
    )


def _decimal(x: Number, digits: int) -> str:
    return f"{float(x):.{digits}g}"


def _short(x: Number) -> bool:
    """Whether a number reads better as a fraction: 5/3, not 981/40."""
    if not isinstance(x, Fraction) or x.denominator > 144:
        return False
    ends = x.denominator in (1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100, 125, 128)
    return abs(x.numerator) <= (99 if ends and x.denominator > 1 else _LARGEST)


def _text_number(x: Number) -> str:
    return str(x) if _short(x) else _decimal(x, 6)


def _latex_number(x: Number) -> str:
    if isinstance(x, Fraction) and _short(x) and x.denominator > 1:
        return f"\\tfrac{{{x.numerator}}}{{{x.denominator}}}"
    text = _text_number(x)
    return re.sub(r"e([+-]\d+)$", lambda e: f" \\cdot 10^{{{int(e[1])}}}", text)


def _python_number(x: Number) -> str:
    if isinstance(x, Fraction) and _short(x):
        return str(x.numerator) if x.denominator == 1 else f"{x.numerator}/{x.denominator}"
    return repr(float(x))


def _sympy_number(x: Number) -> str:
    """Exact: a quotient of two of Python's whole numbers would be a float."""
    if isinstance(x, Fraction):
        return (
            str(x.numerator) if x.denominator == 1 else f"Rational({x.numerator}, {x.denominator})"
        )
    return repr(float(x))


def angles(wave: Wave, coordinates: Sequence[Coordinate]) -> list[tuple[int, Coordinate]]:
    """The angles of a wave and how often each is in it."""
    turning = [x for x in coordinates if x.turns]
    return [(k, x) for k, x in zip(wave, turning, strict=True) if k]


def indices(wave: Wave, coordinates: Sequence[Coordinate]) -> str | None:
    """The joined indices of a plain sum of angles; None where an angle is taken twice or
    subtracted.
    """
    parts = angles(wave, coordinates)
    if any(k != 1 for k, _ in parts):
        return None
    wide = any(x.k > 9 for x in coordinates)
    return ("_" if wide else "").join(str(x.k) for _, x in parts)


def sum_of_angles(
    wave: Wave, coordinates: Sequence[Coordinate], name: Callable[[str], str], times: str
) -> str:
    out = ""
    for k, x in angles(wave, coordinates):
        sign = (" - " if k < 0 else " + ") if out else ("-" if k < 0 else "")
        out += sign + (f"{abs(k)}{times}" if abs(k) > 1 else "") + name(x.q)
    return out


def _text_wave(wave: Wave, odd: bool, coordinates: Sequence[Coordinate]) -> str:
    joined_indices = indices(wave, coordinates)
    if joined_indices is not None:
        return ("s" if odd else "c") + joined_indices
    return f"{'sin' if odd else 'cos'}({sum_of_angles(wave, coordinates, text_name, ' ')})"


def _latex_wave(wave: Wave, odd: bool, coordinates: Sequence[Coordinate]) -> str:
    joined_indices = indices(wave, coordinates)
    if joined_indices is not None:
        return f"{'s' if odd else 'c'}_{{{joined_indices.replace('_', ',')}}}"
    return f"\\{'sin' if odd else 'cos'}({sum_of_angles(wave, coordinates, _latex_name, ' ')})"


def python_wave(wave: Wave, odd: bool, coordinates: Sequence[Coordinate]) -> str:
    """A local variable: c12, or c_2x1_m3 for the cosine of 2 theta1 - theta3."""
    parts = angles(wave, coordinates)
    plain = indices(wave, coordinates)
    if plain is not None:
        return ("s" if odd else "c") + plain
    return ("s" if odd else "c") + "".join(
        f"_{'m' if k < 0 else ''}{f'{abs(k)}x' if abs(k) > 1 else ''}{x.k}" for k, x in parts
    )


TEXT: Final = Style(
    " ",
    text_name,
    lambda x, k: f"{x}{str(k).translate(_SUPER)}",
    _text_number,
    lambda i: f"δ{i}",
    _text_wave,
)
LATEX: Final = Style(
    " ",
    _latex_name,
    lambda x, k: f"{x}^{{{k}}}",
    _latex_number,
    lambda i: f"\\delta_{{{i}}}",
    _latex_wave,
)
PYTHON: Final = Style(
    "*", str, lambda x, k: f"{x}**{k}", _python_number, lambda i: f"delta{i}", python_wave
)

SYMPY: Final = Style("*", str, PYTHON.power, _sympy_number, PYTHON.delta, python_wave)


# ---- sums ----


def written(x: Waves, style: Style, coordinates: Sequence[Coordinate]) -> str:
    """A closed form: terms of one mass together, and rates that share all else in brackets."""
    names = x.space.variables
    groups: dict[str, dict[Term, Number]] = {}
    for term, k in x.terms.items():
        masses = [names[i] for i in term[2] if re.fullmatch(r"m\d+", names[i])]
        groups.setdefault(masses[0] if len(masses) == 1 else "", {})[term] = k
    pieces: list[SignedText] = []
    for mass, terms in sorted(groups.items(), key=lambda g: (not g[0], len(g[0]), g[0])):
        whole = _pieces(Waves(x.space, terms), style, coordinates)
        lead = [mass] if mass and len(whole) > 1 else []
        if lead and "g" in names and all(names.index("g") in term[2] for term in terms):
            lead.append("g")
        if not lead:
            pieces += whole
            continue
        taken = [names.index(name) for name in lead]
        parts = _pieces(
            Waves(x.space, {(w, odd, without(v, taken)): k for (w, odd, v), k in terms.items()}),
            style,
            coordinates,
        )
        negative = all(sign for sign, _ in parts)
        text = _total([(sign != negative, part) for sign, part in parts], style)
        pieces.append(
            (
                negative,
                style.times.join([*map(style.name, lead), f"({text})" if len(parts) > 1 else text]),
            )
        )
    return _total(pieces, style) if pieces else "0"


SignedText = tuple[bool, str]
"""Whether a term is negative, and its text without sign."""


def joined(pieces: Sequence[SignedText]) -> str:
    """A sum of signed terms."""
    text = ""
    for negative, piece in pieces:
        text += (
            (" - " if negative else " + ") + piece if text else ("-" if negative else "") + piece
        )
    return text


def _total(pieces: Sequence[SignedText], style: Style) -> str:
    """The same; in Python by hundreds: sums of thousands of terms are too deep for its parser."""
    while style in (PYTHON, SYMPY) and len(pieces) > _HUNDRED:
        pieces = [
            (False, f"({joined(pieces[i : i + _HUNDRED])})")
            for i in range(0, len(pieces), _HUNDRED)
        ]
    return joined(pieces)


def _pieces(x: Waves, style: Style, coordinates: Sequence[Coordinate]) -> list[SignedText]:
    """Signed terms; those that differ by their rate and number alone become one, with the rates in
    brackets.
    """
    names = x.space.variables
    rest, squared = squares(x)
    shared: dict[tuple[int, Term], list[tuple[str, Number]]] = {}
    for power, ((wave, odd, variables), k) in [(1, item) for item in rest.terms.items()] + [
        (2, item) for item in squared
    ]:
        rates = [i for i in variables if names[i].endswith("_dot")]
        own = rates if len(rates) == 1 else []
        rate = names[rates[0]] if own else ""
        shared.setdefault((power, (wave, odd, without(variables, own))), []).append((rate, k))
    out = []
    for (power, term), rates_of_term in sorted(shared.items(), key=lambda item: _order(item[0][1])):
        first = rates_of_term[0][1]
        more = [_rates(rates_of_term, style)] if rates_of_term[0][0] else []
        if any(term[0]):
            turned = style.wave(term[0], term[1], coordinates)
            more.insert(0, turned if power == 1 else style.power(turned, power))
        out.append((first < 0, product(abs(first), term[2], more, names, style)))
    return out


def _rates(rates: Sequence[tuple[str, Number]], style: Style) -> str:
    ordered = sorted(rates, key=lambda r: _split(r[0])[1].zfill(9))
    first = rates[0][1]
    parts = []
    for name, k in ordered:
        share = k / first
        size = "" if abs(share) == 1 else f"{style.number(abs(share))}{style.times}"
        parts.append((share < 0, size + style.name(name)))
    return joined(parts) if len(parts) == 1 and not parts[0][0] else f"({joined(parts)})"


def _order(term: Term) -> Any:
    wave, odd, variables = term
    return any(wave), sum(map(abs, wave)), [-abs(k) for k in wave], odd, variables


def product(
    size: Number, variables: Sequence[int], more: Sequence[str], names: Sequence[str], style: Style
) -> str:
    """A positive number times variables times what is written already."""
    named = sorted(
        ((names[i], len(list(same))) for i, same in groupby(sorted(variables))), key=_reading_order
    )
    parts = [
        style.name(name) if k == 1 else style.power(style.name(name), k) for name, k in named
    ] + list(more)
    if size == 1 and parts:
        return style.times.join(parts)
    if (
        style is not LATEX and isinstance(size, Fraction) and _short(size) and parts
    ):  # 2 l1 / 3 rather than 2/3 l1
        top = style.times.join(([str(size.numerator)] if size.numerator != 1 else []) + parts)
        return top if size.denominator == 1 else f"{top}/{size.denominator}"
    return style.times.join([style.number(size), *parts])


def _reading_order(item: tuple[str, int]) -> Any:
    """Masses and gravity, then inertias and lengths, each by index."""
    letters, index, _ = _split(item[0])
    return "mgI".find(letters[0]) % 9, letters, index.zfill(9)
