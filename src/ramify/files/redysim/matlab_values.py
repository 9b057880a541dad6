"""The values of ReDySim's ``inputs.m``: its parsed statements evaluated by a table of allowed
operations, within limits.

A value is a float or a two-dimensional array, as in MATLAB. Vectors grow when an element beyond
their end is assigned, and a new one is a row unless it is assigned as ``x(i,1)``. Every operation
is paid from one budget, so that no file runs for long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.messages import near
from ramify.documents.expression import CONSTANTS
from ramify.files.redysim.matlab_functions import (
    KNOWN,
    RefusedError,
    Value,
    binary,
    bounded,
    float_if_single,
    function,
    is_true,
    matlab_number,
    matrix,
)
from ramify.files.redysim.matlab_text import Expression, MatlabProgram, Statement
from ramify.files.redysim.matlab_tokens import wrong

MAX_ELEMENTS: Final = 100_000
"""Numbers in one vector or matrix."""

BUDGET: Final = 200_000
"""Operations of a file; one on a long vector counts as several."""
_TOO_MUCH: Final = f"more than {BUDGET} operations; write the vectors out, or the loops shorter"

LoadMat = Callable[[str], Mapping[str, Array]]
"""The variables of a file by its name. Raises ValueError where it cannot be read."""


def run_matlab(
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
    evaluation.names |= {name: float_if_single(value) for name, value in (names or {}).items()}
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
                if statement.branches:
                    chosen = self.branch(statement)
                elif statement.body is None:
                    self.assign(statement)
                    continue
                else:
                    turns = matrix(self.value(statement.value)).T
            except RefusedError as error:
                said = str(error)
            except RecursionError:
                said = "too many operations in one expression"
            except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
                said = f"has no value ({error})"
            else:
                if statement.branches:
                    self.block(chosen)
                else:
                    self.turn(statement, turns)
                continue
            wrong(self.file, statement.line, said, statement.text)
        return self.names

    def turn(self, loop: Statement, turns: Array) -> None:
        """The body of a ``for`` loop, once for each column."""
        assert loop.body is not None
        for column in turns:
            self.names[loop.target] = float_if_single(column.reshape(-1, 1))
            self.spent += 10.0
            if self.spent > BUDGET:
                wrong(self.file, loop.line, _TOO_MUCH, loop.text)
            self.block(loop.body)

    def branch(self, statement: Statement) -> Sequence[Statement]:
        """The statements of the first branch whose condition holds."""
        for condition, body in statement.branches:
            if condition is None or is_true(self.value(condition)):
                return body
        return ()

    def pay(self, price: float) -> None:
        self.spent += price
        if self.spent > BUDGET:
            raise RefusedError(_TOO_MUCH)

    def make_room(self, height: int, width: int) -> None:
        """Refuse a matrix that is too large, and pay for it."""
        if height < 0 or width < 0 or height * width > MAX_ELEMENTS:
            raise RefusedError(f"{height} x {width} numbers; a vector has 0 to {MAX_ELEMENTS}")
        self.pay(height * width / 100.0)

    # ---- assignments ----

    def assign(self, statement: Statement) -> None:
        name, index = statement.target, statement.index
        if statement.value[:2] == ("call", "inputs") and not name:
            if self.inputs is None:
                raise RefusedError("inputs() is not available here")
            wanted = [str(word) for _, word in statement.value[2]]
            self.names |= {w: float_if_single(self.inputs[w]) for w in wanted if w in self.inputs}
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
            raise RefusedError(f"{name!r} is a function")
        if name not in self.names and ("all",) in index:
            raise RefusedError(
                f"{name!r} does not exist yet, so a colon says nothing about its size; write "
                f"{name} = … , or make it first, with {name} = zeros(1, n)"
            )
        array = matrix(self.names.get(name, np.zeros((0, 0))))
        where = self.places(index, array)
        if len(where) == 1:
            if min(array.shape) > 1:
                raise RefusedError(f"{name!r} is a matrix; give row and column")
            upright = array.shape[1] == 1 and array.shape[0] > 1
            where = [*where, [0]] if upright else [[0], *where]
        rows, columns = where
        height, width = (
            max([size, *(i + 1 for i in places)])
            for size, places in zip(array.shape, (rows, columns), strict=True)
        )
        self.make_room(height, width)
        grown = np.zeros((height, width))
        grown[: array.shape[0], : array.shape[1]] = array
        numbers = matrix(value)
        if numbers.size != 1 and numbers.size != len(rows) * len(columns):
            raise RefusedError(f"{numbers.size} numbers for {len(rows) * len(columns)} places")
        grown[np.ix_(rows, columns)] = (
            numbers if numbers.size == 1 else numbers.reshape(len(rows), len(columns))
        )
        self.names[name] = grown

    def file_of(self, arguments: Sequence[Expression]) -> dict[str, Value]:
        """The variables of the file that ``load`` names, or those of them that it names, too."""
        words = [str(word[1]) for word in arguments if word[0] == "text" and word[1] != "-mat"]
        if not words or any(w[0] != "text" for w in arguments) or any(w[:1] == "-" for w in words):
            raise RefusedError("load takes a file and variables, such as load('inputs.mat', 'n')")
        name, *wanted = words
        if self.load is None:
            raise RefusedError(
                f"it loads {name!r}, which is not available here; load that file instead"
            )
        self.pay(100.0)
        found = {key: float_if_single(value) for key, value in self.load(name).items()}
        if missing := [word for word in wanted if word not in found]:
            raise RefusedError(f"{name!r} has no variable {missing[0]!r}")
        return {key: found[key] for key in wanted or found}

    def places(self, index: Sequence[Expression], array: Array) -> list[list[int]]:
        """Zero-based places of an index, by row and column or one for the whole."""
        if not 1 <= len(index) <= 2:
            raise RefusedError(f"{len(index)} indices; there are one or two")
        sizes = [array.size] if len(index) == 1 else list(array.shape)
        out = []
        for expression, size in zip(index, sizes, strict=True):
            if expression[0] == "all":
                out.append(list(range(size)))
                continue
            self.last.append(size)
            numbers = matrix(self.value(expression)).ravel(order="F")
            self.last.pop()
            within = (numbers >= 1) & (numbers <= MAX_ELEMENTS) & (numbers == np.floor(numbers))
            if not within.all():
                wanted = f"a whole number from 1 to {MAX_ELEMENTS}"
                raise RefusedError(f"the index {numbers[~within][0]:g} is not {wanted}")
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
            return self.field(str(e[1]), str(e[2]))
        if kind == "text":
            raise RefusedError("a text has no value here; only load takes one")
        if kind == "range":
            return self.range([matlab_number(self.value(part)) for part in e[1:]])
        if kind == "matrix":
            return self.matrix(e[1:])
        if kind == "end":
            return float(self.last[-1])
        if kind == "all":
            raise RefusedError("a colon alone is allowed only in an index")
        return self.operation(e)

    def operation(self, e: Expression) -> Value:
        """The value of an operator on one or two expressions."""
        kind = e[0]
        if kind == "negative":
            return -self.value(e[1])
        if kind == "transpose":
            value = self.value(e[1])
            return value if isinstance(value, float) else value.T
        if kind == "not":
            value = self.value(e[1])
            return float_if_single((matrix(value) == 0.0).astype(np.float64))
        if kind in ("&&", "||"):
            left = is_true(self.value(e[1]))
            done = left == (kind == "||")  # the right side may have no value then
            return float(left if done else is_true(self.value(e[2])))
        return bounded(self, binary(self, str(kind), self.value(e[1]), self.value(e[2])))

    def field(self, name: str, variable: str) -> Value:
        """A variable of a file that was loaded under a name."""
        variables = self.loaded.get(name)
        if variables is None or variable not in variables:
            raise RefusedError(f"no file was loaded that gives {name}.{variable}")
        return variables[variable]

    def named(self, name: str) -> Value:
        if name not in self.names:
            raise RefusedError(f"{name!r} is not defined here{near(name, list(self.names))}")
        return self.names[name]

    def called(self, name: str, arguments: Sequence[Expression]) -> Value:
        if name in self.names:
            array = matrix(self.names[name])
            where = self.places(arguments, array) if arguments else None
            return self.names[name] if where is None else self.element(name, array, where)
        if name not in KNOWN:
            raise RefusedError(
                f"no variable or function {name!r} is known here; functions are {', '.join(KNOWN)}"
            )
        return function(self, name, [self.value(argument) for argument in arguments])

    def element(self, name: str, array: Array, where: list[list[int]]) -> Value:
        sizes = [array.size] if len(where) == 1 else list(array.shape)
        for places, size in zip(where, sizes, strict=True):
            if places and max(places) >= size:
                raise RefusedError(
                    f"{name}({max(places) + 1}) does not exist; {name!r} has {array.shape[0]} x "
                    f"{array.shape[1]} numbers"
                )
        if len(where) == 2:
            return float_if_single(array[np.ix_(*where)])
        picked = array.ravel(order="F")[where[0]]
        return float_if_single(picked.reshape((-1, 1) if array.shape[1] == 1 else (1, -1)))

    def range(self, ends: Sequence[float]) -> Value:
        first, step, last = (ends[0], 1.0, ends[1]) if len(ends) == 2 else ends
        if step == 0.0 or not all(math.isfinite(x) for x in (first, step, last)):
            raise RefusedError("a range needs a step that is not zero")
        count = max(0.0, math.floor((last - first) / step + 1e-10) + 1.0)
        if count > MAX_ELEMENTS:
            raise RefusedError(f"a range of {count:.3g} numbers; there are at most {MAX_ELEMENTS}")
        return float_if_single(
            np.array(first + step * np.arange(int(count)), dtype=np.float64).reshape(1, -1)
        )

    def matrix(self, rows: Sequence[Sequence[Expression]]) -> Value:
        parts = []
        for row in rows:
            values = [matrix(self.value(entry)) for entry in row]
            values = [v for v in values if v.size] or values[:1]
            if len({v.shape[0] for v in values}) > 1:
                raise RefusedError("a row holds columns of different length")
            parts.append(np.hstack(values))
        parts = [p for p in parts if p.size] or parts[:1]
        if len({p.shape[1] for p in parts}) > 1:
            raise RefusedError("the rows have different lengths")
        out = np.vstack(parts) if parts else np.zeros((0, 0))
        self.make_room(*out.shape)
        return float_if_single(out)
