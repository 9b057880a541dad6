"""The constants in a MATLAB function that is otherwise user code.

``for_kine.m`` and ``initials.m`` mix data (where links hang on the ground, the angles at the start)
with code. Their assignments are evaluated one after the other with what is known so far. A name
whose value is not arithmetic on constants is unknown from there on, and so is what uses it; so is
all that a loop or a branch assigns, which may run or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.files.redysim.matlab_functions import Value
from ramify.files.redysim.matlab_text import Statement, assignment
from ramify.files.redysim.matlab_tokens import Token, tokens
from ramify.files.redysim.matlab_values import Evaluation

_OPENING: Final = frozenset(["for", "while", "if", "switch", "try", "parfor"])
_CONTROL: Final = _OPENING | {"elseif", "case", "catch", "return", "break", "continue"}
_CLOSING: Final = frozenset(["end", "endif", "endfor", "endwhile", "endswitch", "end_try_catch"])
_BARE: Final = _CLOSING | {"else", "try", "otherwise"}
"""Words that a statement may follow without a separator."""
_NO_VALUE: Final = (ModelError, ArithmeticError, ValueError, TypeError, RecursionError)


class Constants:
    """The assignments of a function, evaluated; ``names`` are known at the end.

    ``so``, if given, is filled by the assignments to its entries; NaN where there are none.
    ``unread`` holds the lines that assign to it what is not a constant, by column (None: any).
    """

    def __init__(
        self, text: str, file: str, inputs: Mapping[str, Array], so: Array | None = None
    ) -> None:
        self.evaluation = Evaluation(file, inputs=inputs)
        self.names: dict[str, Value] = self.evaluation.names
        for name, value in inputs.items():
            if name != "th":  # a state here
                self.names[name] = float(value.item()) if value.size == 1 else value
        self.file, self.lines, self.so = file, text.splitlines(), so
        self.unread: dict[int | None, str] = {}
        for words, nested in self._statements(text):
            self._statement(words, nested)

    def _statements(self, text: str) -> Iterator[tuple[list[Token], bool]]:
        """The statements of the first function up to its ``return``, and whether each is inside a
        loop or a branch, or after a ``return`` in one.
        """
        depth, functions, left = 0, 0, False
        words: list[Token] = []
        for token in [*tokens(text, self.file), Token("end", "", 0, False)]:
            if token.kind != "end":
                words.append(token)
            while words and token.kind == "end":
                first = words[0].text
                functions += first == "function"
                depth = max(0, depth + (first in _OPENING) - (first in _CLOSING))
                if functions > 1 or (first == "return" and not depth):
                    return
                left = left or "return" in (word.text for word in words)
                if first not in _BARE:
                    yield words, left or depth > 0
                    words = []
                else:
                    words = words[1:]

    def _statement(self, words: Sequence[Token], nested: bool) -> None:
        first = words[0]
        if first.text == "function":
            return
        if first.text == "[" or first.text in _CONTROL:
            self._many(words)
            return
        try:
            statement = assignment(words, self.lines, self.file)
        except ModelError:
            statement = None
        if first.text == "so" and self.so is not None:
            self._hinge(first.line, statement, nested)
            return
        before = self.names.pop(first.text, None)
        try:
            if statement is None:
                return
            if before is not None and statement.index is not None:
                self.names[first.text] = before
            self.evaluation.assign(statement)
        except _NO_VALUE:
            self.names.pop(first.text, None)
            return
        if nested:
            del self.names[first.text]

    def _many(self, words: Sequence[Token]) -> None:
        """``[a b] = f(...)``, ``for i = ...``, ``if ...``: what they assign, or a statement that
        follows in the same words, is unknown.
        """
        texts = [word.text for word in words]
        if "=" not in texts:
            return
        end = texts.index("=")
        if texts[0] == "[" and texts[end + 1 : end + 2] == ["inputs"]:
            return
        alone = texts[0] == "[" or (texts[0] == "for" and texts.count("=") == 1)
        for word in words[:end] if alone else words:
            if word.kind == "name":
                self.names.pop(word.text, None)
            if word.text == "so" and self.so is not None:
                self._leave(None, word.line)

    # ---- so ----

    def _hinge(self, line: int, statement: Statement | None, nested: bool) -> None:
        assert self.so is not None
        value = self._value(statement)
        if statement is None or statement.index is None:
            if value is None:
                self._leave(None, line)
            elif value.any():  # zeros only make room
                width = min(value.shape[1], self.so.shape[1])
                self._put(line, range(3), range(width), value[:, :width], nested)
            return
        try:
            where = self.evaluation.places(statement.index, self.so)
        except _NO_VALUE:
            if value is not None and (value.any() or np.nan_to_num(self.so).any()):
                self._leave(None, line)
            return  # so(:,i) = so(:,bt(i)) + ...: the links that other links carry
        if len(where) == 2:
            self._put(line, where[0], where[1], value, nested)
        else:
            self._leave(None, line)

    def _put(
        self, line: int, rows: Sequence[int], columns: Sequence[int], value: Array | None,
        nested: bool,
    ) -> None:  # fmt: skip
        assert self.so is not None
        size = len(rows) * len(columns)
        for j, k in enumerate(columns):
            fits = k < self.so.shape[1] and max(rows) <= 2
            if value is not None and value.size in (1, size) and fits:
                given = value if value.size == 1 else value.reshape(len(rows), len(columns))[:, j]
                self.so[rows, k] = given.ravel()
                if not nested:
                    continue
            self._leave(k, line)

    def _value(self, statement: Statement | None) -> Array | None:
        try:
            value = None if statement is None else self.evaluation.value(statement.value)
        except _NO_VALUE:
            return None
        found = np.atleast_2d(np.asarray(np.nan if value is None else value, dtype=np.float64))
        return found if np.isfinite(found).all() else None

    def _leave(self, column: int | None, line: int) -> None:
        self.unread.setdefault(column, self.lines[line - 1].strip())


def hinges(
    text: str, inputs: Mapping[str, Array], ground: Sequence[int], n: int
) -> tuple[dict[int, Array], list[str]]:
    """Where the links of ``ground`` hang on the ground, by link from 0: the columns of ``so`` that
    are constants in a ``for_kine.m``; and the lines that give them otherwise.
    """
    so = np.full((3, n), np.nan)
    unread = Constants(text, "for_kine.m", inputs, so).unread
    positions = {
        k: np.nan_to_num(so[:, k])
        for k in ground
        if k not in unread and None not in unread and np.isfinite(so[:, k]).any()
    }
    return positions, [line for k, line in unread.items() if k is None or k in ground]


class InitialState(NamedTuple):
    """What an ``initials.m`` says of a run: q and its rates, one number per variable, and where
    they are constants its end ``tf`` and the time ``incr`` between rows, s.
    """

    q: tuple[float, ...]
    rates: tuple[float, ...]
    run: Mapping[str, float]


def initial_state(
    text: str, inputs: Mapping[str, Array], variables: int, base: int
) -> InitialState | None:
    """The state at which an ``initials.m`` starts a robot with ``variables`` coordinates, the
    first ``base`` of which are those of a floating base; None where it is not constant.

    ReDySim's state vector y0 (yo) is [q; dq] and the energy of the actuators, on a ground also
    that of the ground and, for a feedforward, the desired motion of the base. Without it, q and dq
    count, or th and dth, and of a floating base all four.
    """
    names = Constants(text, "initials.m", inputs).names

    def numbers(*words: str, size: int) -> list[float]:
        for word in words:
            values = np.asarray(names.get(word, ()), dtype=np.float64).ravel()
            if values.size >= size and np.isfinite(values).all():
                return list(values.tolist())
        return []

    run = {word: numbers(word, size=1)[0] for word in ("tf", "incr") if numbers(word, size=1)}
    y = numbers("y0", "yo", size=2 * variables)
    if len(y) - 2 * variables in (0, 1, 2, 14):
        return InitialState(tuple(y[:variables]), tuple(y[variables : 2 * variables]), run)
    if base:
        q = numbers("q", size=base) + numbers("th", size=variables - base)
        rates = numbers("dq", size=base) + numbers("dth", size=variables - base)
    else:
        q, rates = numbers("q", "th", size=variables), numbers("dq", "dth", size=variables)
    if len(q) != variables:
        return None
    still = [0.0] * variables
    return InitialState(tuple(q), tuple(rates if len(rates) == variables else still), run)
