"""Equations of motion as documents: text, LaTeX, a Python module; and as matrices of SymPy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Final, Protocol

from ramify.core.errors import RamifyError
from ramify.formulations.symbolic.closed_forms import (
    LATEX,
    PYTHON,
    SYMPY,
    TEXT,
    Coordinate,
    Style,
    angles,
    indices,
    product,
    python_wave,
    sum_of_angles,
    text_name,
    written,
)
from ramify.formulations.symbolic.waves import (
    Factors,
    Number,
    Quotient,
    Wave,
    Waves,
    factors,
    squares,
)


class ClosedForms(Protocol):
    """What is written out: the parts of a robot's equations, entry by entry, as ``Equations`` has
    them.
    """

    @property
    def robot(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def coordinates(self) -> tuple[Coordinate, ...]: ...
    @property
    def parameters(self) -> dict[str, float]: ...
    def part(self, name: str) -> list[list[Waves | Quotient]]: ...


PARTS: Final = ("M", "C", "g", "U", "D", "inverse")
_MANY = 12


def _used_waves(entries: Iterable[Waves | Quotient]) -> list[tuple[Wave, bool]]:
    """The cosines and sines of some closed forms as they are written."""
    found: dict[tuple[Wave, bool], None] = {}
    for entry in entries:
        for x in (entry.numerator, entry.denominator) if isinstance(entry, Quotient) else (entry,):
            rest, squared = squares(x)
            for wave, odd, _ in (*x.terms, *rest.terms, *(term for term, _ in squared)):
                if any(wave):
                    found[wave, odd] = None
    return sorted(found, key=lambda item: (item[1], sum(map(abs, item[0])), [-k for k in item[0]]))


class Denominators:
    """The primitive parts of several terms that denominators have, each written once, under a
    name.
    """

    def __init__(self, entries: Iterable[Waves | Quotient]) -> None:
        self.known: list[Waves] = []
        for entry in entries:
            if isinstance(entry, Quotient):
                rest = factors(entry.denominator).rest
                if len(rest.terms) > 1 and not self._number(rest):
                    self.known.append(rest)

    def _number(self, x: Waves) -> int:
        return next((i for i, other in enumerate(self.known, start=1) if other.terms == x.terms), 0)

    def _rest(
        self, x: Factors, style: Style, coordinates: Sequence[Coordinate], brackets: bool
    ) -> list[str]:
        if x.alone:
            return []
        number = self._number(x.rest)
        text = style.delta(number) if number else written(x.rest, style, coordinates)
        return [text if number or not brackets or len(x.rest.terms) == 1 else f"({text})"]

    def entry(self, x: Waves | Quotient, style: Style, coordinates: Sequence[Coordinate]) -> str:
        """An entry, written out."""
        if isinstance(x, Waves):
            return written(x, style, coordinates)
        if not x.numerator.terms:
            return "0"
        names = x.numerator.space.variables
        top, bottom = factors(x.numerator), factors(x.denominator)
        if bottom.alone and not bottom.variables and not self._number(top.rest):
            return written(x.numerator * (1 / bottom.number), style, coordinates)
        ratio = top.number / bottom.number
        exact = isinstance(ratio, Fraction)
        above, below = (
            (Fraction(abs(ratio.numerator)), Fraction(ratio.denominator))
            if exact
            else (abs(ratio), Fraction(1))
        )
        lower = product(
            below, bottom.variables, self._rest(bottom, style, coordinates, True), names, style
        )
        upper_rest = self._rest(top, style, coordinates, above != 1 or bool(top.variables))
        upper = product(above, top.variables, upper_rest, names, style)
        sign = "-" if ratio < 0 else ""
        if style is LATEX:
            return f"{sign}\\frac{{{upper}}}{{{lower}}}"
        if lower == "1":
            return f"{sign}{upper}"
        whole = (
            upper_rest
            and len(top.rest.terms) > 1
            and not self._number(top.rest)
            and upper == upper_rest[0]
        )
        single = " " not in lower and "*" not in lower
        return f"{sign}{f'({upper})' if whole else upper} / {lower if single else f'({lower})'}"

    def definitions(self, style: Style, coordinates: Sequence[Coordinate]) -> list[tuple[str, str]]:
        """Names of the denominators and what they stand for."""
        return [
            (style.delta(i), written(x, style, coordinates))
            for i, x in enumerate(self.known, start=1)
        ]


def _labelled(part: str, rows: list[list[Any]]) -> list[tuple[list[tuple[int, ...]], Any]]:
    """Entries with the index pairs they stand for: symmetric ones once, zeros below the diagonal of
    U not at all.
    """
    if part == "g":
        return [([(i + 1,)], row[0]) for i, row in enumerate(rows)]
    if part == "D":
        return [([(k + 1,)], x) for k, x in enumerate(rows[0])]
    n = len(rows)
    if part == "C":
        return [([(i + 1, k + 1)], rows[i][k]) for i in range(n) for k in range(n)]
    pairs = [(i, k) for i in range(n) for k in range(i + (part == "U"), n)]
    mirrored = part in ("M", "inverse")
    return [
        ([(i + 1, k + 1), *([(k + 1, i + 1)] if mirrored and i != k else [])], rows[i][k])
        for i, k in pairs
    ]


_TITLES: Final = {
    "M": "inertia matrix M(q), symmetric",
    "C": "Coriolis and centrifugal matrix C(q, q̇), of Christoffel symbols",
    "g": "gravity forces g(q)",
    "U": "unit upper triangular factor U of M = U D Uᵀ",
    "D": "diagonal D of M = U D Uᵀ",
    "inverse": "inverse W = M⁻¹, symmetric",
}
_SYMBOL: Final = {"inverse": "W"}


def as_text(found: ClosedForms, parts: Sequence[str]) -> str:
    """See Equations.text."""
    coordinates = found.coordinates
    rows = {part: found.part(part) for part in parts}
    lines = [f"{found.robot}: M(q) q̈ + C(q, q̇) q̇ + g(q) = τ"]
    lines.append("q: " + ", ".join(f"{text_name(x.q)} = {x.joint}" for x in coordinates))
    if found.parameters:
        lines.append(
            "parameters: "
            + ", ".join(f"{text_name(k)} = {x:.6g}" for k, x in found.parameters.items())
        )
    sums = [
        w
        for w, _ in _used_waves(x for part in rows.values() for row in part for x in row)
        if len(angles(w, coordinates)) > 1
    ]
    plain = [w for w in dict.fromkeys(sums) if indices(w, coordinates) is not None]
    if plain:
        meaning = [
            f"c{indices(w, coordinates)} = cos({sum_of_angles(w, coordinates, text_name, ' ')})"
            for w in plain
        ]
        lines.append(
            "c, s: cosine and sine; "
            + ", ".join(meaning[:_MANY])
            + (" and so on" if len(meaning) > _MANY else "")
        )
    dens = Denominators(x for part in rows.values() for row in part for x in row)
    body: list[str] = []
    for part in parts:
        body += ["", _TITLES[part]]
        for places, entry in _labelled(part, rows[part]):
            left = " = ".join(
                _SYMBOL.get(part, part) + _index(pair, len(coordinates)) for pair in places
            )
            body.append(f"  {left} = {dens.entry(entry, TEXT, coordinates)}")
    named = [f"  {name} = {text}" for name, text in dens.definitions(TEXT, coordinates)]
    return "\n".join([*lines, *body, *(["", "denominators", *named] if named else [])])


def _index(pair: tuple[int, ...], n: int) -> str:
    return ("," if n > 9 else "").join(map(str, pair))


def as_latex(found: ClosedForms, parts: Sequence[str]) -> str:
    """See Equations.latex."""
    coordinates = found.coordinates
    rows = {part: found.part(part) for part in parts}
    dens = Denominators(x for part in rows.values() for row in part for x in row)
    blocks = []
    for part in parts:
        lines = []
        for places, entry in _labelled(part, rows[part]):
            left = " = ".join(
                f"{_SYMBOL.get(part, part)}_{{{_index(pair, len(coordinates))}}}" for pair in places
            )
            lines.append(f"  {left} &= {dens.entry(entry, LATEX, coordinates)}")
        blocks.append("\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}")
    named = [f"  {name} &= {text}" for name, text in dens.definitions(LATEX, coordinates)]
    if named:
        blocks.append("\\begin{align*}\n" + " \\\\\n".join(named) + "\n\\end{align*}")
    return "\n\n".join(blocks)


_FUNCTIONS: Final = {
    "M": ("mass_matrix", "Inertia matrix (n, n)."),
    "C": ("coriolis_matrix", "Coriolis and centrifugal matrix (n, n), of Christoffel symbols."),
    "g": ("gravity_forces", "Joint forces (n,) that hold gravity."),
    "U": ("upper_factor", "U (n, n) of M = U D U'."),
    "D": ("diagonal_factor", "The diagonal (n,) of D in M = U D U'."),
    "inverse": ("mass_matrix_inverse", "Inverse of the inertia matrix (n, n)."),
}


def as_python(found: ClosedForms, parts: Sequence[str]) -> str:
    """See Equations.python."""
    head = (
        f'"""Equations of motion of {_plain(found.robot)} in closed form, SI units: M q\'\' + C '
        'q\' + g = tau."""'
    )
    blocks = [f"{head}\n\nfrom math import cos, sin\n\nimport numpy as np"]
    given = "".join(f", {name}={value!r}" for name, value in found.parameters.items())
    given = f", *{given}" if given else ""
    for part in parts:
        rows = found.part(part)
        name, meaning = _FUNCTIONS[part]
        lines = [f"def {name}(q{', v' if part == 'C' else ''}{given}):", f'    """{meaning}"""']
        lines.append(
            f"    {', '.join(x.q for x in found.coordinates)}{',' if found.n == 1 else ''} = q"
        )
        if part == "C":
            lines.append(
                f"    {', '.join(x.v for x in found.coordinates)}{',' if found.n == 1 else ''} = v"
            )
        defined, dens = _defined(found, [x for row in rows for x in row], PYTHON)
        lines += [f"    {line}" for line in defined]
        texts = [[dens.entry(x, PYTHON, found.coordinates) for x in row] for row in rows]
        if part in ("g", "D"):
            flat = [text for row in texts for text in row]
            body = "".join(f"        {text},\n" for text in flat)
        else:
            body = "".join(
                "        [\n" + "".join(f"            {text},\n" for text in row) + "        ],\n"
                for row in texts
            )
        lines.append(f"    return np.array([\n{body}    ], dtype=float)")
        blocks.append("\n".join(lines))
    return "\n\n\n".join(blocks) + "\n"


def _defined(
    found: ClosedForms, entries: Sequence[Waves | Quotient], style: Style
) -> tuple[list[str], Denominators]:
    """The assignments that some entries need, cosines and sines first, and their denominators."""
    lines = []
    for wave, odd in _used_waves(entries):
        total = sum_of_angles(wave, found.coordinates, str, "*")
        name = python_wave(wave, odd, found.coordinates)
        lines.append(f"{name} = {'sin' if odd else 'cos'}({total})")
    dens = Denominators(entries)
    lines += [f"{name} = {text}" for name, text in dens.definitions(style, found.coordinates)]
    return lines, dens


def _plain(name: str) -> str:
    """A robot's name within a Python string."""
    return "".join(c if c.isascii() and (c.isalnum() or c in " _-.") else "_" for c in name)


# ---- SymPy ----


def as_sympy(found: ClosedForms, parts: Sequence[str]) -> str:
    """See Equations.sympy."""
    rows = {part: found.part(part) for part in parts}
    entries = [x for part in rows.values() for row in part for x in row]
    names = [
        *(x.q for x in found.coordinates),
        *(x.v for x in found.coordinates if "C" in parts),
        *found.parameters,
    ]
    lines = [f'"""Equations of motion of {_plain(found.robot)} in closed form, for SymPy."""', ""]
    lines += ["from sympy import Matrix, Rational, cos, diag, sin, symbols", ""]
    lines.append(f"{', '.join(names)} = symbols({' '.join(names)!r}, real=True)")
    defined, dens = _defined(found, entries, SYMPY)
    lines += defined
    for part, matrix in rows.items():
        texts = [[dens.entry(x, SYMPY, found.coordinates) for x in row] for row in matrix]
        if part == "D":
            lines.append(f"D = diag({', '.join(texts[0])})")
        else:
            body = "".join(f"    [{', '.join(row)}],\n" for row in texts)
            lines.append(f"{_SYMBOL.get(part, part)} = Matrix([\n{body}])")
    return "\n".join(lines) + "\n"


def _library() -> Any:
    try:
        import sympy
    except ImportError:
        raise RamifyError(
            "SymPy is not installed: pip install 'ramify[symbolic]'; text, LaTeX and Python do "
            "without it"
        ) from None
    return sympy


def sympy_column(names: Iterable[str]) -> Any:
    """Real symbols as a column."""
    sp = _library()
    return sp.Matrix([sp.Symbol(name, real=True) for name in names])


def sympy_matrix(
    rows: Sequence[Sequence[Waves | Quotient]], coordinates: Sequence[Coordinate]
) -> Any:
    """A matrix of SymPy's expressions over real symbols."""
    sp = _library()

    def number(x: Number) -> Any:
        return sp.Rational(x.numerator, x.denominator) if isinstance(x, Fraction) else sp.Float(x)

    def expression(x: Waves) -> Any:
        symbols = [sp.Symbol(name, real=True) for name in x.space.variables]
        terms = []
        for (wave, odd, variables), k in x.terms.items():
            angle = sp.Add(*(j * sp.Symbol(c.q, real=True) for j, c in angles(wave, coordinates)))
            turned = (sp.sin(angle) if odd else sp.cos(angle)) if any(wave) else sp.Integer(1)
            terms.append(sp.Mul(number(k), *(symbols[i] for i in variables), turned))
        return sp.Add(*terms)

    def entry(x: Waves | Quotient) -> Any:
        return (
            expression(x)
            if isinstance(x, Waves)
            else expression(x.numerator) / expression(x.denominator)
        )

    return sp.Matrix([[entry(x) for x in row] for row in rows])
