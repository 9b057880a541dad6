"""The operations of a graph: one row each, with all that any part of ramify needs to know of it.

Texts reach a function through ``ramify.core.scalar.apply``. To add an operation, add a row to
``OPS``: floats, the interpreter, derivatives, C, Python, compiled code and counts then support it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from ramify.core.lookup import LookupTable
from ramify.core.registry import NamedEntries
from ramify.core.scalar import Scalar, atan2, cos, floor, lookup, select, sin, sqrt


class InstructionWriter(Protocol):
    """Writes LLVM instructions on vectors: takes and gives the names of values."""

    def const(self, x: float, /) -> str: ...
    def binary(self, op: str, a: str, b: str, /) -> str: ...
    def negated(self, a: str, /) -> str: ...
    def call(self, intrinsic: str, /, *args: str) -> str: ...
    def compare(self, test: str, a: str, b: str, /) -> str: ...
    def pick(self, condition: str, a: str, b: str, /) -> str: ...
    def sine_cosine(self, x: str, /) -> tuple[str, str]: ...
    def angle_of(self, y: str, x: str, /) -> str: ...
    def lookup(self, table: LookupTable, place: str, /) -> str: ...


def _no_partials(value: Scalar, *args: Scalar) -> tuple[Scalar, ...]:
    return ()


def _leaf(*_: Any) -> NoReturn:
    raise TypeError("a number or a symbol has no operands")


@dataclass(frozen=True)
class Op:
    """An operation.

    - ``arity``: its operands.
    - ``meaning``: a function of scalars of any kind.
    - ``partials``: its derivatives by the operands, as a function of its value and the operands;
      none for an operation that counts as constant.
    - ``c``, ``python``: its text, with ``{0}``, ``{1}`` … for the operands. C also has ``{f}``, the
      suffix of functions of floats.
    - ``on_floats``: the function that the Python text calls by the name of the operation.
    - ``llvm``: writes its instructions, from a writer and the operands.
    - ``cost``: the field of ``OpCount`` that counts it; "" for one that is not counted.
    - ``is_truth``: it gives a condition, not a number.
    - ``has_table``: it reads a table, the payload of its nodes. ``meaning`` and ``llvm`` take the
      table before the operands; the texts have its name as ``{table}``, and C its last index as
      ``{last}``.
    - ``turn``: 0 for sine and 1 for cosine, which compiled code computes together.
    """

    name: str
    arity: int
    meaning: Callable[..., Scalar]
    partials: Callable[..., tuple[Scalar, ...]] = _no_partials
    c: str = ""
    python: str = ""
    on_floats: Callable[..., Scalar] | None = None
    llvm: Callable[..., str] = _leaf
    cost: str = ""
    is_truth: bool = False
    has_table: bool = False
    turn: int | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it has no operands: a number or a symbol."""
        return self.arity == 0

    @property
    def may_be_skipped(self) -> bool:
        """Whether code may branch around it. Sines are shared and guarded; both they and tables are
        written where they are first needed.
        """
        return self.arity > 0 and self.turn is None and not self.has_table


def _by_angle(value: Scalar, y: Scalar, x: Scalar) -> tuple[Scalar, ...]:
    k = 1.0 / (x * x + y * y)
    return x * k, -(y * k)


_ROWS: Final = (
    Op("const", 0, _leaf),
    Op("symbol", 0, _leaf),
    Op(
        "add", 2, lambda a, b: a + b, lambda value, a, b: (1.0, 1.0),
        c="{0} + {1}", python="{0}+{1}", cost="add",
        llvm=lambda w, a, b: w.binary("fadd", a, b),
    ),
    Op(
        "sub", 2, lambda a, b: a - b, lambda value, a, b: (1.0, -1.0),
        c="{0} - {1}", python="{0}-{1}", cost="add",
        llvm=lambda w, a, b: w.binary("fsub", a, b),
    ),
    Op(
        "mul", 2, lambda a, b: a * b, lambda value, a, b: (b, a),
        c="{0} * {1}", python="{0}*{1}", cost="mul",
        llvm=lambda w, a, b: w.binary("fmul", a, b),
    ),
    Op(
        "neg", 1, lambda a: -a, lambda value, a: (-1.0,),
        c="-{0}", python="-{0}",
        llvm=lambda w, a: w.negated(a),
    ),
    Op(
        "recip", 1, lambda a: 1.0 / a, lambda value, a: (-(value * value),),
        c="1.0{f} / {0}", python="1.0/{0}", cost="div",
        llvm=lambda w, a: w.binary("fdiv", w.const(1.0), a),
    ),
    Op(
        "sqrt", 1, sqrt, lambda value, a: (0.5 / value,),
        c="sqrt{f}({0})", python="sqrt({0})", on_floats=math.sqrt, cost="sqrt",
        llvm=lambda w, a: w.call("sqrt", a),
    ),
    Op(
        "floor", 1, floor,
        c="floor{f}({0})", python="floor({0})", on_floats=floor,
        llvm=lambda w, a: w.call("floor", a),
    ),
    Op(
        "sin", 1, sin, lambda value, a: (cos(a),),
        c="sin{f}({0})", python="sin({0})", on_floats=math.sin, cost="sincos",
        llvm=lambda w, a: w.sine_cosine(a)[0], turn=0,
    ),
    Op(
        "cos", 1, cos, lambda value, a: (-sin(a),),
        c="cos{f}({0})", python="cos({0})", on_floats=math.cos, cost="sincos",
        llvm=lambda w, a: w.sine_cosine(a)[1], turn=1,
    ),
    Op(
        "atan2", 2, atan2, _by_angle,
        c="atan2{f}({0}, {1})", python="atan2({0},{1})", on_floats=math.atan2,
        llvm=lambda w, y, x: w.angle_of(y, x),
    ),
    Op(
        "lt", 2, lambda a, b: a < b,
        c="{0} < {1}", python="{0}<{1}", is_truth=True,
        llvm=lambda w, a, b: w.compare("olt", a, b),
    ),
    Op(
        "le", 2, lambda a, b: a <= b,
        c="{0} <= {1}", python="{0}<={1}", is_truth=True,
        llvm=lambda w, a, b: w.compare("ole", a, b),
    ),
    # its derivative is that of the branch it takes: see ramify.trace.differentiate
    Op(
        "select", 3, select,
        c="{0} ? {1} : {2}", python="({1} if {0} else {2})",
        llvm=lambda w, condition, a, b: w.pick(condition, a, b),
    ),
    Op(
        "lookup", 1, lookup,
        c="{table}[(long)({0} > 0.0{f} ? ({0} < {last} ? {0} : {last}) : 0.0{f})]",
        python="lookup({table},{0})", on_floats=lookup, has_table=True,
        llvm=lambda w, table, place: w.lookup(table, place),
    ),
)  # fmt: skip

OPS: Final = NamedEntries("operation", _ROWS)
"""The operations by name."""
