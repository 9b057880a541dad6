"""The values of ReDySim's ``inputs.m``: its parsed statements evaluated by a table of allowed
operations, within limits.

A value is a float or a two-dimensional array, as in MATLAB. Vectors grow when an element beyond
their end is assigned, and a new one is a row unless it is assigned as ``x(i,1)``. Every operation
is paid from one budget, so that no file runs for long.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.bounds import LARGEST
from ramify.core.messages import near
from ramify.documents.expression import CONSTANTS, FUNCTIONS
from ramify.files.redysim.matlab_text import Expression, MatlabProgram, Statement
from ramify.files.redysim.matlab_tokens import wrong

MAX_ELEMENTS: Final = 100_000
"""Numbers in one vector or matrix."""

BUDGET: Final = 200_000
"""Operations of a file; one on a long vector counts as several."""
_TOO_MUCH: Final = f"more than {BUDGET} operations; write the vectors out, or the loops shorter"

Value = float | Array
LoadMat = Callable[[str], Mapping[str, Array]]
"""The variables of a file by its name. Raises ValueError where it cannot be read."""
_BINARY: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
}
_BY_ELEMENT: Final = {
    name: FUNCTIONS[name] for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "abs")
} | {
    "deg2rad": math.radians,
    "rad2deg": math.degrees,
}
_SIZED: Final = {"zeros": 0.0, "ones": 1.0}
_WHOLE: Final[Mapping[str, Callable[[Array], float]]] = {
    "length": lambda a: float(max(a.shape) if a.size else 0),
    "numel": lambda a: float(a.size),
}
_BY_COLUMN: Final[Mapping[str, Callable[..., Any]]] = {"sum": np.sum, "max": np.max, "min": np.min}
_MORE: Final = ("atan2", "linspace", "repmat")
KNOWN: Final = (*_BY_ELEMENT, *_SIZED, *_WHOLE, *_BY_COLUMN, *_MORE)
"""Functions that an ``inputs.m`` may call."""


class _RefusedError(ValueError):
    """An operation that has no value; the statement is named where it is caught."""


def run(
    program: MatlabProgram,
    file: str,
    load: LoadMat | None = None,
    names: Mapping[str, Array] | None = None,
    inputs: Mapping[str, Array] | None = None,
) -> dict[str, Value]:
    """The variables that the statements leave behind. ``load`` reads the files that they name,
    ``names`` are known at the start, ``inputs`` is what ``[n ...] = inputs()`` gives. Raises
    ModelError with file, line and statement where one has no value.
    """
    evaluation = Evaluation(file, load, inputs)
    evaluation.names |= {name: _plain(value) for name, value in (names or {}).items()}
    return evaluation.block(program.statements)


class Evaluation:
    """The names of a file and their values, statement by statement."""

    def __init__(
        self,
        file: str,
        load: LoadMat | None = None,
        inputs: Mapping[str, Array] | None = None,
    ) -> None:
        self.file, self.load, self.inputs = file, load, inputs
        self.loaded: dict[str, dict[str, Value]] = {}  # files by the name they are loaded into
        self.names: dict[str, Value] = dict(CONSTANTS)
        self.spent = 0.0
        self.last: list[int] = []  # what ``end`` means, innermost index last

    def block(self, statements: Sequence[Statement]) -> dict[str, Value]:
        for statement in statements:
            try:
                if statement.body is None:
                    self.assign(statement)
                    continue
                turns = _matrix(self.value(statement.value)).T
            except _RefusedError as error:
                said = str(error)
            except RecursionError:
                said = "too many operations in one expression"
            except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
                said = f"has no value ({error})"
            else:
                for column in turns:
                    self.names[statement.target] = _plain(column.reshape(-1, 1))
                    self.spent += 10.0
                    if self.spent > BUDGET:
                        wrong(self.file, statement.line, _TOO_MUCH, statement.text)
                    self.block(statement.body)
                continue
            wrong(self.file, statement.line, said, statement.text)
        return self.names

    def pay(self, price: float) -> None:
        self.spent += price
        if self.spent > BUDGET:
            raise _RefusedError(_TOO_MUCH)

    def make_room(self, height: int, width: int) -> None:
        """Refuse a matrix that is too large, and pay for it."""
        if height < 0 or width < 0 or height * width > MAX_ELEMENTS:
            raise _RefusedError(f"{height} x {width} numbers; a vector has 0 to {MAX_ELEMENTS}")
        self.pay(height * width / 100.0)

    # ---- assignments ----

    def assign(self, statement: Statement) -> None:
        name, index = statement.target, statement.index
        if statement.value[:2] == ("call", "inputs") and not name:
            if self.inputs is None:
                raise _RefusedError("inputs() is not available here")
            wanted = [str(word) for _, word in statement.value[2]]
            self.names |= {w: _plain(self.inputs[w]) for w in wanted if w in self.inputs}
            return
        if statement.value[:2] == ("call", "load") and index is None:
            values = self.file_of(statement.value[2])
            if name:
                self.loaded[name] = values
            else:
                self.names |= values
            return
        value = self.value(statement.value)
        if index is None:
            self.names[name] = value
            return
        if name not in self.names and name in KNOWN:
            raise _RefusedError(f"{name!r} is a function")
        if name not in self.names and ("all",) in index:
            raise _RefusedError(
                f"{name!r} does not exist yet, so a colon says nothing about its size; write "
                f"{name} = … , or make it first, with {name} = zeros(1, n)"
            )
        held = _matrix(self.names.get(name, np.zeros((0, 0))))
        where = self.places(index, held)
        if len(where) == 1:
            if min(held.shape) > 1:
                raise _RefusedError(f"{name!r} is a matrix; give row and column")
            upright = held.shape[1] == 1 and held.shape[0] > 1
            where = [*where, [0]] if upright else [[0], *where]
        rows, columns = where
        height, width = (
            max([size, *(i + 1 for i in places)])
            for size, places in zip(held.shape, (rows, columns), strict=True)
        )
        self.make_room(height, width)
        grown = np.zeros((height, width))
        grown[: held.shape[0], : held.shape[1]] = held
        given = _matrix(value)
        if given.size != 1 and given.size != len(rows) * len(columns):
            raise _RefusedError(f"{given.size} numbers for {len(rows) * len(columns)} places")
        grown[np.ix_(rows, columns)] = (
            given if given.size == 1 else given.reshape(len(rows), len(columns))
        )
        self.names[name] = grown

    def file_of(self, arguments: Sequence[Expression]) -> dict[str, Value]:
        """The variables of the file that ``load`` names, or those of them that it names, too."""
        words = [str(word[1]) for word in arguments if word[0] == "text" and word[1] != "-mat"]
        if not words or any(w[0] != "text" for w in arguments) or any(w[:1] == "-" for w in words):
            raise _RefusedError("load takes a file and variables, such as load('inputs.mat', 'n')")
        name, *wanted = words
        if self.load is None:
            raise _RefusedError(
                f"it loads {name!r}, which is not available here; load that file instead"
            )
        self.pay(100.0)
        found = {key: _plain(value) for key, value in self.load(name).items()}
        if missing := [word for word in wanted if word not in found]:
            raise _RefusedError(f"{name!r} has no variable {missing[0]!r}")
        return {key: found[key] for key in wanted or found}

    def places(self, index: Sequence[Expression], held: Array) -> list[list[int]]:
        """Zero-based places of an index, by row and column or one for the whole."""
        if not 1 <= len(index) <= 2:
            raise _RefusedError(f"{len(index)} indices; there are one or two")
        sizes = [held.size] if len(index) == 1 else list(held.shape)
        out = []
        for expression, size in zip(index, sizes, strict=True):
            if expression[0] == "all":
                out.append(list(range(size)))
                continue
            self.last.append(size)
            numbers = _matrix(self.value(expression)).ravel(order="F")
            self.last.pop()
            within = (numbers >= 1) & (numbers <= MAX_ELEMENTS) & (numbers == np.floor(numbers))
            if not within.all():
                wanted = f"a whole number from 1 to {MAX_ELEMENTS}"
                raise _RefusedError(f"the index {numbers[~within][0]:g} is not {wanted}")
            out.append([int(x) - 1 for x in numbers])
        return out

    # ---- expressions ----

    def value(self, e: Expression) -> Value:
        self.pay(1.0)
        kind = e[0]
        if kind == "number":
            return float(e[1])
        if kind == "name":
            return self.named(str(e[1]))
        if kind == "call":
            return self.called(str(e[1]), e[2])
        if kind == "field":
            held = self.loaded.get(str(e[1]))
            if held is None or e[2] not in held:
                raise _RefusedError(f"no file was loaded that gives {e[1]}.{e[2]}")
            return held[str(e[2])]
        if kind == "text":
            raise _RefusedError("a text has no value here; only load takes one")
        if kind == "negative":
            return -self.value(e[1])
        if kind == "transpose":
            value = self.value(e[1])
            return value if isinstance(value, float) else value.T
        if kind == "range":
            return self.range([_number(self.value(part)) for part in e[1:]])
        if kind == "matrix":
            return self.matrix(e[1:])
        if kind == "end":
            return float(self.last[-1])
        if kind == "all":
            raise _RefusedError("a colon by itself is allowed only in an index")
        return self.checked(self.binary(str(kind), self.value(e[1]), self.value(e[2])))

    def binary(self, op: str, left: Value, right: Value) -> Value:
        if isinstance(left, float) and isinstance(right, float):
            if op[-1:] == "^" and (abs(right) > 1000.0 or (left < 0.0 and right != int(right))):
                raise _RefusedError(f"{left:g} ^ {right:g} is not a real number of sensible size")
            return float(_BINARY[op[-1:]](left, right))
        if op == "^" or (op == "/" and not isinstance(right, float)):
            text = f"{op} is meant for matrices here, which is not known"
            raise _RefusedError(f"{text}; write .{op} to go by elements")
        if not isinstance(left, float) and not isinstance(right, float):
            if op == "*":
                return self.product(left, right)
            if left.shape != right.shape:
                shapes = " and ".join(f"{a.shape[0]} x {a.shape[1]}" for a in (left, right))
                raise _RefusedError(f"vectors of {shapes} have different shapes")
        with np.errstate(all="ignore"):
            return np.asarray(_BINARY[op[-1:]](left, right), dtype=np.float64)

    def product(self, left: Array, right: Array) -> Value:
        """The product of two matrices, of a row and a column among them."""
        (height, inner), (other, width) = left.shape, right.shape
        if inner != other:
            text = f"a {height} x {inner} and a {other} x {width} matrix have no product"
            raise _RefusedError(f"{text}; write .* to go by elements")
        self.make_room(height, width)
        self.pay(height * inner * width / 100.0)
        with np.errstate(all="ignore"):
            return _plain(np.asarray(left @ right, dtype=np.float64))

    def checked(self, value: Value) -> Value:
        if isinstance(value, float):
            good = abs(value) <= LARGEST
        else:
            self.pay(value.size / 100.0)
            good = bool((np.abs(value) <= LARGEST).all())
        if not good:
            raise _RefusedError(f"a number that is not finite, or above {LARGEST:.0e}")
        return value

    def named(self, name: str) -> Value:
        if name not in self.names:
            raise _RefusedError(f"{name!r} is not defined here{near(name, list(self.names))}")
        return self.names[name]

    def called(self, name: str, arguments: Sequence[Expression]) -> Value:
        if name in self.names:
            held = _matrix(self.names[name])
            where = self.places(arguments, held) if arguments else None
            return self.names[name] if where is None else self.element(name, held, where)
        if name not in KNOWN:
            raise _RefusedError(
                f"no variable or function {name!r} is known here; functions are {', '.join(KNOWN)}"
            )
        values = [self.value(argument) for argument in arguments]
        if name in _SIZED and 1 <= len(values) <= 2:
            sizes = [_number(value) for value in values] * (3 - len(values))
            height, width = (int(x) if x == math.floor(x) else -1 for x in sizes)
            self.make_room(height, width)
            return _plain(np.full((height, width), _SIZED[name]))
        if name in _WHOLE and len(values) == 1:
            return _WHOLE[name](_matrix(values[0]))
        if name in _BY_COLUMN and len(values) == 1:
            a = _matrix(values[0])
            columns = a if min(a.shape) > 1 else a.reshape(-1, 1)  # also a row is one run
            self.pay(a.size / 100.0)
            return self.checked(_plain(_BY_COLUMN[name](columns, axis=0, keepdims=True)))
        if name in _BY_ELEMENT and len(values) == 1:
            a = _matrix(values[0])
            self.pay(a.size / 2.0)
            out = [_BY_ELEMENT[name](float(x)) for x in a.ravel()]
            return self.checked(_plain(np.array(out).reshape(a.shape)))
        if name == "atan2" and len(values) == 2:
            y, x = np.broadcast_arrays(*map(_matrix, values))
            self.pay(y.size / 2.0)
            return _plain(np.arctan2(y, x))
        if name == "linspace" and 2 <= len(values) <= 3:
            first, last, count = [*map(_number, values), 100.0][:3]
            self.make_room(1, int(count))
            return _plain(np.linspace(first, last, int(count)).reshape(1, -1))
        if name == "repmat" and 2 <= len(values) <= 3:
            a, times = _matrix(values[0]), [int(_number(value)) for value in values[1:]]
            times = times * (3 - len(times))
            self.make_room(a.shape[0] * times[0], a.shape[1] * times[1])
            return _plain(np.tile(a, times))
        raise _RefusedError(f"{name} does not take {len(values)} arguments here")

    def element(self, name: str, held: Array, where: list[list[int]]) -> Value:
        sizes = [held.size] if len(where) == 1 else list(held.shape)
        for places, size in zip(where, sizes, strict=True):
            if places and max(places) >= size:
                raise _RefusedError(
                    f"{name}({max(places) + 1}) does not exist; {name!r} has {held.shape[0]} x "
                    f"{held.shape[1]} numbers"
                )
        if len(where) == 2:
            return _plain(held[np.ix_(*where)])
        picked = held.ravel(order="F")[where[0]]
        return _plain(picked.reshape((-1, 1) if held.shape[1] == 1 else (1, -1)))

    def range(self, ends: Sequence[float]) -> Value:
        first, step, last = (ends[0], 1.0, ends[1]) if len(ends) == 2 else ends
        if step == 0.0 or not all(math.isfinite(x) for x in (first, step, last)):
            raise _RefusedError("a range needs a step that is not zero")
        count = max(0.0, math.floor((last - first) / step + 1e-10) + 1.0)
        if count > MAX_ELEMENTS:
            raise _RefusedError(f"a range of {count:.3g} numbers; there are at most {MAX_ELEMENTS}")
        return _plain(
            np.array(first + step * np.arange(int(count)), dtype=np.float64).reshape(1, -1)
        )

    def matrix(self, rows: Sequence[Sequence[Expression]]) -> Value:
        parts = []
        for row in rows:
            values = [_matrix(self.value(entry)) for entry in row]
            values = [v for v in values if v.size] or values[:1]
            if len({v.shape[0] for v in values}) > 1:
                raise _RefusedError("a row holds columns of different length")
            parts.append(np.hstack(values))
        parts = [p for p in parts if p.size] or parts[:1]
        if len({p.shape[1] for p in parts}) > 1:
            raise _RefusedError("the rows have different lengths")
        out = np.vstack(parts) if parts else np.zeros((0, 0))
        self.make_room(*out.shape)
        return _plain(out)


def _matrix(value: Value) -> Array:
    return np.array([[value]]) if isinstance(value, float) else value


def _plain(value: Array) -> Value:
    return float(value[0, 0]) if value.shape == (1, 1) else value


def _number(value: Value) -> float:
    if not isinstance(value, float):
        raise _RefusedError(f"expected a number, not {value.shape[0]} x {value.shape[1]} of them")
    return value
