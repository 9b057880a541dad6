"""Operations that a formulation executes, as written, on a general robot of n revolute joints; and what the papers publish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ramify.errors import RamifyError
from ramify.formulations import lin, quasi, renaud, saha
from ramify.formulations.chain import Chain, general_chain, rotations
from ramify.formulations.counting import Counted, Tally
from ramify.formulations.quasi_chain import general_quasi_chain
from ramify.trace.count import OpCount


def _numbers(tally: Tally, n: int, start: float) -> list[Counted]:
    return [tally.number(start + 0.1 * i) for i in range(n)]


def _beyond_rotations(text: Callable[..., object], chain: Chain, n: int) -> OpCount:
    """What ``text(chain, R, q)`` executes when the rotation matrices are there already: Lin charges them to the bias vector."""
    tally = Tally()
    q = _numbers(tally, n, 0.3)
    R = rotations(chain, q)
    before = tally.count()
    text(chain, R, q)
    return _less(tally.count(), before)


def _less(a: OpCount, b: OpCount) -> OpCount:
    return OpCount(a.mul - b.mul, a.add - b.add, a.div - b.div, a.sqrt - b.sqrt, a.sincos - b.sincos)


def _lin_inertia(n: int) -> OpCount:
    return _beyond_rotations(lin.inertia, general_chain(n), n)


def _lin_bias(n: int) -> OpCount:
    """What the bias vector takes in addition to the inertia matrix."""
    tally = Tally()
    lin.equations_of_motion(general_chain(n), _numbers(tally, n, 0.3), _numbers(tally, n, 0.2))
    return _less(tally.count(), _lin_inertia(n))


def _renaud_inertia(n: int) -> OpCount:
    return _beyond_rotations(renaud.inertia, general_chain(n), n)


def _ridim(n: int) -> OpCount:
    tally = Tally()
    saha.ridim(general_chain(n), _numbers(tally, n, 0.3), _numbers(tally, n, 0.2), _numbers(tally, n, 0.5))
    return tally.count()


def _quasi(coordinates: quasi.Coordinates) -> Callable[[int], OpCount]:
    """The control problem in quasi-coordinates, from joint motion to joint torques."""

    def count(n: int) -> OpCount:
        tally = Tally()
        chain = general_quasi_chain(general_chain(n))
        quasi.control(chain, _numbers(tally, n, 0.3), _numbers(tally, n, 0.2), _numbers(tally, n, 0.5), coordinates)
        return tally.count()

    return count


@dataclass(frozen=True)
class Formulation:
    """A row of the table: what is counted, ``count(n)`` on a general robot of n revolute joints, and what is published.

    ``mul`` and ``add`` are the published coefficients of n^2, n and 1 for n >= 2, None where nothing is published.
    """

    name: str
    what: str
    source: str
    count: Callable[[int], OpCount]
    mul: tuple[float, float, float] | None = None
    add: tuple[float, float, float] | None = None


_ROWS: Final = (
    Formulation("ridim", "Saha's inverse dynamics", "Saha 1999, table 1", _ridim, (0.0, 120.0, -44.0), (0.0, 97.0, -55.0)),
    Formulation(
        "lin_inertia", "Lin's inertia matrix, rotations given", "Lin 1991, table I", _lin_inertia,
        (10.5, 38.5, -85.0), (6.0, 39.0, -70.0),
    ),
    Formulation(
        "lin_bias", "Lin's bias vector, in addition", "Lin 1991, table II", _lin_bias, (12.5, 5.5, 3.0), (9.0, 1.0, 0.0)
    ),
    Formulation(
        "renaud_inertia", "Renaud's inertia matrix, rotations given", "Lin 1991, table I", _renaud_inertia,
        (13.5, 22.5, -68.0), (9.0, 26.0, -64.0),
    ),
    Formulation("quasi_inertial", "inverse dynamics in inertial quasi-coordinates", "Quinn and Chang 1991", _quasi("inertial")),
    Formulation("quasi_relative", "inverse dynamics in relative quasi-coordinates", "Quinn and Chang 1991", _quasi("relative")),
)  # fmt: skip

FORMULATIONS: Final = {row.name: row for row in _ROWS}
"""All formulations that are counted, by name."""


def _row(name: str, n: int) -> Formulation:
    if name not in FORMULATIONS:
        raise RamifyError(f"no formulation is called {name!r}; choose one of {', '.join(FORMULATIONS)}")
    if n < 2:
        raise RamifyError(f"n is {n}; the counts are for robots of two revolute joints or more")
    return FORMULATIONS[name]


def general_count(name: str, n: int) -> OpCount:
    """Operations of a formulation on a general robot of n >= 2 revolute joints, each executed operation counted.

    ``mul`` holds × and ÷, ``add`` + and −; :mod:`ramify.formulations.counting` gives the rules. RamifyError for an unknown name.
    """
    return _row(name, n).count(n)


def published_count(name: str, n: int) -> OpCount | None:
    """The same as the source documents print it; None where they print nothing."""
    row = _row(name, n)
    if row.mul is None or row.add is None:
        return None
    mul, add = (round(a * n * n + b * n + c) for a, b, c in (row.mul, row.add))
    return OpCount(mul, add, 0, 0, general_count(name, n).sincos)
