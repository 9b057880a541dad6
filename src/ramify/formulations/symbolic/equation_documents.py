"""Equations of motion as documents: text, LaTeX, a Python module; and as matrices of SymPy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ramify.core.errors import RamifyError
from ramify.formulations.symbolic.closed_forms import (
    Coordinate,
    LatexStyle,
    PythonStyle,
    SympyStyle,
    TextStyle,
)
from ramify.formulations.symbolic.waves import (
    Factors,
    Number,
    Quotient,
    Wave,
    Waves,
    factors_of_waves,
    squares,
)

ClosedEntry = Waves | Quotient
_MANY = 12


@dataclass(frozen=True)
class ClosedForms:
    """What is written out: parts of a robot's equations, by rows; D is one row, g one column."""

    robot: str
    coordinates: tuple[Coordinate, ...]
    parameters: dict[str, float]
    parts: dict[str, list[list[ClosedEntry]]]

    @property
    def entries(self) -> list[ClosedEntry]:
        return _flat(*self.parts.values())

    @property
    def plain_name(self) -> str:
        """The robot's name within a Python string."""
        return "".join(
            c if c.isascii() and (c.isalnum() or c in " _-.") else "_" for c in self.robot
        )


def _flat(*parts: list[list[ClosedEntry]]) -> list[ClosedEntry]:
    return [x for rows in parts for row in rows for x in row]


def _used_waves(entries: Iterable[ClosedEntry]) -> list[tuple[Wave, bool]]:
    """The cosines and sines of some closed forms as they are written."""
    waves: set[tuple[Wave, bool]] = set()
    for entry in entries:
        for x in (entry.numerator, entry.denominator) if isinstance(entry, Quotient) else (entry,):
            rest, squared = squares(x)
            terms = (*x.terms, *rest.terms, *(term for term, _ in squared))
            waves |= {(wave, odd) for wave, odd, _ in terms if any(wave)}
    return sorted(waves, key=lambda item: (item[1], sum(map(abs, item[0])), [-k for k in item[0]]))


class Denominators:
    """The primitive parts of several terms in denominators, each written once, under a name."""

    def __init__(self, entries: Iterable[ClosedEntry], style: TextStyle) -> None:
        self.denominators: list[Waves] = []
        self.style = style
        for entry in entries:
            if isinstance(entry, Quotient):
                rest = factors_of_waves(entry.denominator).rest
                if len(rest.terms) > 1 and not self._number(rest):
                    self.denominators.append(rest)

    def _number(self, x: Waves) -> int:
        numbered = enumerate(self.denominators, start=1)
        return next((i for i, other in numbered if other.terms == x.terms), 0)

    def _rest(self, x: Factors, brackets: bool) -> list[str]:
        if x.alone:
            return []
        number = self._number(x.rest)
        text = self.style.delta(number) if number else self.style.written(x.rest)
        return [text if number or not brackets or len(x.rest.terms) == 1 else f"({text})"]

    def entry(self, x: ClosedEntry) -> str:
        """An entry, written out."""
        style = self.style
        if isinstance(x, Waves):
            return style.written(x)
        if not x.numerator.terms:
            return "0"
        names = x.numerator.space.variables
        top, bottom = factors_of_waves(x.numerator), factors_of_waves(x.denominator)
        if bottom.alone and not bottom.variables and not self._number(top.rest):
            return style.written(x.numerator * (1 / bottom.number))
        ratio = top.number / bottom.number
        above, below = abs(ratio), Fraction(1)
        if isinstance(ratio, Fraction):
            above, below = Fraction(abs(ratio.numerator)), Fraction(ratio.denominator)
        lower = style.product(below, bottom.variables, self._rest(bottom, True), names)
        upper_rest = self._rest(top, above != 1 or bool(top.variables))
        upper = style.product(above, top.variables, upper_rest, names)
        sign = "-" if ratio < 0 else ""
        if isinstance(style, LatexStyle):
            return f"{sign}\\frac{{{upper}}}{{{lower}}}"
        if lower == "1":
            return f"{sign}{upper}"
        several = len(top.rest.terms) > 1 and not self._number(top.rest)
        if several and [upper] == upper_rest:
            upper = f"({upper})"
        single = " " not in lower and "*" not in lower
        return f"{sign}{upper} / {lower if single else f'({lower})'}"

    def definitions(self, equals: str = " = ") -> list[str]:
        """The denominators and what they stand for."""
        return [
            f"{self.style.delta(i)}{equals}{self.style.written(x)}"
            for i, x in enumerate(self.denominators, start=1)
        ]


def _labelled(
    part: str, rows: list[list[ClosedEntry]]
) -> list[tuple[list[tuple[int, ...]], ClosedEntry]]:
    """Entries with their index pairs: symmetric ones once, none below the diagonal of U."""
    if part in ("g", "D"):
        return [([(i,)], x) for i, x in enumerate(_flat(rows), start=1)]
    return [
        ([(i + 1, k + 1), *([(k + 1, i + 1)] if part in ("M", "inverse") and i != k else [])], x)
        for i, row in enumerate(rows)
        for k, x in enumerate(row)
        if part == "C" or k >= i + (part == "U")
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


def _lines(part: str, rows: list[list[ClosedEntry]], dens: Denominators, shape: str) -> list[str]:
    """The entries of a part; ``shape`` is how an index and the sign of equality are written."""
    index, equals = shape.split("|")
    out = []
    for places, entry in _labelled(part, rows):
        marks = [("," if dens.style.wide else "").join(map(str, pair)) for pair in places]
        left = " = ".join(_SYMBOL.get(part, part) + index.format(mark) for mark in marks)
        out.append(f"  {left}{equals}{dens.entry(entry)}")
    return out


def equations_text(forms: ClosedForms) -> str:
    """See Equations.text."""
    style = TextStyle(forms.coordinates)
    lines = [f"{forms.robot}: M(q) q̈ + C(q, q̇) q̇ + g(q) = τ"]
    lines.append("q: " + ", ".join(f"{style.name(x.q)} = {x.joint}" for x in forms.coordinates))
    if forms.parameters:
        values = (f"{style.name(k)} = {x:.6g}" for k, x in forms.parameters.items())
        lines.append("parameters: " + ", ".join(values))
    sums = [w for w, _ in _used_waves(forms.entries) if len(style.angles(w)) > 1]
    plain = [w for w in dict.fromkeys(sums) if style.indices(w) is not None]
    if plain:
        meaning = ", ".join(
            f"c{style.indices(w)} = cos({style.sum_of_angles(w)})" for w in plain[:_MANY]
        )
        more = " and so on" if len(plain) > _MANY else ""
        lines.append(f"c, s: cosine and sine; {meaning}{more}")
    dens = Denominators(forms.entries, style)
    for part, rows in forms.parts.items():
        lines += ["", _TITLES[part], *_lines(part, rows, dens, "{}| = ")]
    named = [f"  {line}" for line in dens.definitions()]
    return "\n".join([*lines, *(["", "denominators", *named] if named else [])])


def as_latex(forms: ClosedForms) -> str:
    """See Equations.latex."""
    dens = Denominators(forms.entries, LatexStyle(forms.coordinates))
    blocks = [_lines(part, rows, dens, "_{{{}}}| &= ") for part, rows in forms.parts.items()]
    blocks.append([f"  {line}" for line in dens.definitions(" &= ")])
    aligned = (" \\\\\n".join(lines) for lines in blocks if lines)
    return "\n\n".join(f"\\begin{{align*}}\n{lines}\n\\end{{align*}}" for lines in aligned)


_FUNCTIONS: Final = {
    "M": ("mass_matrix", "Inertia matrix (n, n)."),
    "C": ("coriolis_matrix", "Coriolis and centrifugal matrix (n, n), of Christoffel symbols."),
    "g": ("gravity_forces", "Joint forces (n,) that hold gravity."),
    "U": ("upper_factor", "U (n, n) of M = U D U'."),
    "D": ("diagonal_factor", "The diagonal (n,) of D in M = U D U'."),
    "inverse": ("mass_matrix_inverse", "Inverse of the inertia matrix (n, n)."),
}


def as_python(forms: ClosedForms) -> str:
    """See Equations.python."""
    head = (
        f'"""Equations of motion of {forms.plain_name} in closed form, SI units: M q\'\' + C '
        'q\' + g = tau."""'
    )
    blocks = [f"{head}\n\nfrom math import cos, sin\n\nimport numpy as np"]
    given = "".join(f", {name}={value!r}" for name, value in forms.parameters.items())
    given = f", *{given}" if given else ""
    end = "," if len(forms.coordinates) == 1 else ""
    for part, rows in forms.parts.items():
        name, meaning = _FUNCTIONS[part]
        lines = [f"def {name}(q{', v' if part == 'C' else ''}{given}):", f'    """{meaning}"""']
        for x in "qv" if part == "C" else "q":
            lines.append(f"    {', '.join(getattr(c, x) for c in forms.coordinates)}{end} = {x}")
        defined, dens = _defined(_flat(rows), PythonStyle(forms.coordinates))
        lines += [f"    {line}" for line in defined]
        texts = [[dens.entry(x) for x in row] for row in rows]
        if part in ("g", "D"):
            body = "".join(f"        {text},\n" for row in texts for text in row)
        else:
            body = "".join(
                "        [\n" + "".join(f"            {text},\n" for text in row) + "        ],\n"
                for row in texts
            )
        lines.append(f"    return np.array([\n{body}    ], dtype=float)")
        blocks.append("\n".join(lines))
    return "\n\n\n".join(blocks) + "\n"


def _defined(entries: Sequence[ClosedEntry], style: TextStyle) -> tuple[list[str], Denominators]:
    """The assignments that some entries need, cosines and sines first, and their denominators."""
    lines = [
        f"{style.wave(wave, odd)} = {'sin' if odd else 'cos'}({style.sum_of_angles(wave)})"
        for wave, odd in _used_waves(entries)
    ]
    dens = Denominators(entries, style)
    return lines + dens.definitions(), dens


# ---- SymPy ----


def as_sympy(forms: ClosedForms) -> str:
    """See Equations.sympy."""
    rates = [x.v for x in forms.coordinates if "C" in forms.parts]
    names = [*(x.q for x in forms.coordinates), *rates, *forms.parameters]
    defined, dens = _defined(forms.entries, SympyStyle(forms.coordinates))
    lines = [
        f'"""Equations of motion of {forms.plain_name} in closed form, for SymPy."""',
        "",
        "from sympy import Matrix, Rational, cos, diag, sin, symbols",
        "",
        f"{', '.join(names)} = symbols({' '.join(names)!r}, real=True)",
        *defined,
    ]
    for part, rows in forms.parts.items():
        texts = [", ".join(map(dens.entry, row)) for row in rows]
        if part == "D":
            lines.append(f"D = diag({texts[0]})")
        else:
            body = "".join(f"    [{row}],\n" for row in texts)
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


def sympy_matrix(rows: Sequence[Sequence[ClosedEntry]], coordinates: Sequence[Coordinate]) -> Any:
    """A matrix of SymPy's expressions over real symbols."""
    sp, style = _library(), TextStyle(coordinates)

    def number(x: Number) -> Any:
        return sp.Rational(x.numerator, x.denominator) if isinstance(x, Fraction) else sp.Float(x)

    def expression(x: Waves) -> Any:
        symbols = [sp.Symbol(name, real=True) for name in x.space.variables]
        terms = []
        for (wave, odd, variables), k in x.terms.items():
            angle = sp.Add(*(j * sp.Symbol(c.q, real=True) for j, c in style.angles(wave)))
            turned = (sp.sin(angle) if odd else sp.cos(angle)) if any(wave) else sp.Integer(1)
            terms.append(sp.Mul(number(k), *(symbols[i] for i in variables), turned))
        return sp.Add(*terms)

    def entry(x: ClosedEntry) -> Any:
        if isinstance(x, Waves):
            return expression(x)
        return expression(x.numerator) / expression(x.denominator)

    return sp.Matrix([[entry(x) for x in row] for row in rows])
