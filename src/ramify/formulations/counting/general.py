"""Operations that a formulation executes on a general robot, as written; and what is published."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import whole
from ramify.core.errors import ModelError, RamifyError
from ramify.core.messages import shown
from ramify.formulations import elimination, lin, quasi, renaud, saha
from ramify.formulations.chain import Chain, chain_of, general_chain, rotations
from ramify.formulations.counting.book import Recursion, is_floating_recursion, run
from ramify.formulations.counting.book_tree import general_tree, general_tree_like
from ramify.formulations.counting.tally import Counted, OperationLedger, Tally
from ramify.formulations.quasi_chain import general_quasi_chain
from ramify.model.link import Turn
from ramify.model.robot import Robot
from ramify.trace.op_count import OpCount


def _inputs(chain: Chain) -> tuple[Tally, list[Counted], list[Counted], list[Counted]]:
    """A tally, and run-time numbers for q, v and a."""
    tally = Tally()
    q, v, a = (
        [tally.number(start + 0.1 * i) for i in range(len(chain.links))]
        for start in (0.3, 0.2, 0.5)
    )
    return tally, q, v, a


def _less(a: OpCount, b: OpCount) -> OpCount:
    return OpCount(*(x - y for x, y in zip(astuple(a), astuple(b), strict=True)))


def _inertia(text: Callable[..., object]) -> Callable[[Chain], OpCount]:
    """Counts ``text(chain, R, q)``, rotations given: Lin charges them to the bias vector."""

    def count(chain: Chain) -> OpCount:
        tally, q, _, _ = _inputs(chain)
        R = rotations(chain, q)
        before = tally.count()
        text(chain, R, q)
        return _less(tally.count(), before)

    return count


def _lin_bias(chain: Chain) -> OpCount:
    """What the bias vector takes in addition to the inertia matrix."""
    tally, q, v, _ = _inputs(chain)
    lin.equations_of_motion(chain, q, v)
    return _less(tally.count(), _inertia(lin.lin_inertia)(chain))


def ridim_steps(chain: Chain) -> tuple[OpCount, OperationLedger]:
    """RIDIM on a chain: operations in all and by step."""
    tally, q, v, a = _inputs(chain)
    ledger = OperationLedger(tally)
    tip = Turn(math.cos(0.7), math.sin(0.7))  # alpha_n of a general DH table
    saha.ridim(chain, q, v, a, ledger, tip)
    return tally.count(), ledger


def rfdsim_steps(chain: Chain) -> tuple[OpCount, OperationLedger]:
    """The three steps of RFDSIM on a chain: operations in all and by step, beyond what RIDIM does
    to give phi (and with it c).
    """
    tally, q, phi, _ = _inputs(chain)
    ledger = OperationLedger(tally)
    bodies = elimination.bodies_at(chain, q)
    before = tally.count()
    elimination.solve_by_elimination(bodies, phi, ledger)
    return _less(tally.count(), before), ledger


def _chain_like(model: Robot) -> Chain:
    """A general chain with the joints of a serial model; ModelError where it is not serial."""
    return general_chain(
        model.nv, "".join("R" if link.rotational else "P" for link in chain_of(model).links)
    )


def _quasi(coordinates: quasi.CoordinateKind) -> Callable[[Chain], OpCount]:
    """The control problem in quasi-coordinates, from joint motion to joint torques."""

    def count(chain: Chain) -> OpCount:
        tally, q, v, a = _inputs(chain)
        quasi.control(general_quasi_chain(chain), q, v, a, coordinates)
        return tally.count()

    return count


Coefficients = tuple[float, float, float]


@dataclass(frozen=True)
class Formulation:
    """A row of the table: what is counted, ``count(n)`` on a general robot of n revolute joints,
    and what is published.

    ``mul`` and ``add`` are the published coefficients of n^2, n and 1 for n >= 2, None where
    nothing is published. ``of(model)`` counts on a general robot with the joints and branches of a
    model; ModelError where the formulation has no place for them.
    """

    name: str
    what: str
    source: str
    count: Callable[[int], OpCount]
    mul: Coefficients | None
    add: Coefficients | None
    of: Callable[[Robot], OpCount]


def _book(
    name: Recursion, what: str, source: str, mul: tuple[float, float], add: tuple[float, float]
) -> Formulation:
    def of(model: Robot) -> OpCount:
        tree = general_tree_like(model)
        if (tree.base is not None) != is_floating_recursion(name):
            base = "a fixed" if tree.base is None else "a floating"
            raise ModelError(f"{model.name} has {base} base, for which {name} is not made")
        return run(tree, name)[0]

    return Formulation(
        name, what, source, lambda n: run(general_tree([1] * n, floating=is_floating_recursion(name)), name)[0],
        (0.0, *mul), (0.0, *add), of,
    )  # fmt: skip


def _serial(
    name: str, what: str, source: str, text: Callable[[Chain], OpCount], *published: Coefficients
) -> Formulation:
    mul, add = published or (None, None)
    count, of = (lambda n: text(general_chain(n))), (lambda model: text(_chain_like(model)))
    return Formulation(name, what, source, count, mul, add, of)


_ROWS: Final = (
    _book("denoc_inverse", "the book's inverse dynamics, fixed base", "book, tables 6.8, 6.11", (94.0, -81.0), (82.0, -75.0)),
    _book("denoc_forward", "the book's forward dynamics, φ given", "book, tables 6.9, 6.12", (135.0, -116.0), (131.0, -123.0)),
    _book(
        "denoc_floating_inverse", "the book's inverse dynamics, floating base",
        "book, tables 7.3, 7.6", (164.0, 60.0), (156.0, 66.0)
    ),
    _book(
        "denoc_floating_forward", "the book's forward dynamics, floating base",
        "book, tables 7.4, 7.7", (209.0, 60.0), (201.0, 72.0)
    ),
    _serial(
        "ridim", "Saha's inverse dynamics", "Saha 1999, table 1", lambda chain: ridim_steps(chain)[0],
        (0.0, 120.0, -44.0), (0.0, 97.0, -55.0),
    ),
    _serial(
        "rfdsim", "Saha's forward dynamics, φ given", "Saha 1999, table 2", lambda chain: rfdsim_steps(chain)[0],
        (0.0, 201.0, -335.0), (0.0, 193.0, -361.0),
    ),
    _serial(
        "lin_inertia", "Lin's inertia matrix, rotations given", "Lin 1991, table I", _inertia(lin.lin_inertia),
        (10.5, 38.5, -85.0), (6.0, 39.0, -70.0),
    ),
    _serial("lin_bias", "Lin's bias vector, in addition", "Lin 1991, table II", _lin_bias, (12.5, 5.5, 3.0), (9.0, 1.0, 0.0)),
    _serial(
        "renaud_inertia", "Renaud's inertia matrix, rotations given", "Lin 1991, table I", _inertia(renaud.renaud_inertia),
        (13.5, 22.5, -68.0), (9.0, 26.0, -64.0),
    ),
    _serial(
        "quasi_inertial", "inverse dynamics, inertial quasi-coordinates", "Quinn & Chang 1991", _quasi("inertial")
    ),
    _serial(
        "quasi_relative", "inverse dynamics, relative quasi-coordinates", "Quinn & Chang 1991", _quasi("relative")
    ),
)  # fmt: skip

FORMULATIONS: Final = {row.name: row for row in _ROWS}
"""All formulations that are counted, by name."""


MOST: Final = 200
"""The most joints of a general robot: each operation is executed, and some grow with n²."""


def _row(name: str, n: int) -> Formulation:
    if not isinstance(name, str) or name not in FORMULATIONS:
        raise RamifyError(
            f"no formulation is called {shown(name)}; choose one of {', '.join(FORMULATIONS)}"
        )
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
        raise RamifyError(f"n is {n!r}; the number of joints is an integer")
    if n < 2:
        raise RamifyError(f"n is {n}; the counts are for robots of two revolute joints or more")
    if n > MOST:
        raise RamifyError(
            f"n is {n}; robots of up to {MOST} joints are counted: from 3 on the counts are "
            "polynomials in n"
        )
    return FORMULATIONS[name]


def general_count(name: str, n: int) -> OpCount:
    """Operations of a formulation on a general robot of n revolute joints, 2 to 200, each executed
    operation counted.

    ``mul`` holds × and ÷, ``add`` + and −; :mod:`ramify.formulations.counting.tally` gives the
    rules. RamifyError for an unknown name or another n.
    """
    return _row(name, n).count(n)


def crossover(cheaper: str, dearer: str, most: int = 40) -> int | None:
    """The least n from which on one formulation takes fewer operations, M + A, than another; None
    where it does not up to ``most`` joints.
    """
    sizes = range(2, whole("most", most, 2, RamifyError, MOST) + 1)
    less = [_total(cheaper, n) < _total(dearer, n) for n in sizes]
    if not less[-1]:
        return None
    last = max((i for i, x in enumerate(less) if not x), default=-1)
    return sizes[last + 1]


def _total(name: str, n: int) -> int:
    count = general_count(name, n)
    return count.mul + count.add


def published_count(name: str, n: int) -> OpCount | None:
    """The count that the source documents print; None where they print nothing."""
    row = _row(name, n)
    if row.mul is None or row.add is None:
        return None
    mul, add = (round(a * n * n + b * n + c) for a, b, c in (row.mul, row.add))
    return OpCount(mul, add, 0, 0, general_count(name, 2).sincos * n // 2)  # in proportion to n
