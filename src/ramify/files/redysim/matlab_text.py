"""ReDySim's ``inputs.m``: from tokens to statements. A parser for the few MATLAB forms that such
files use.

Expressions become nested tuples, ``("+", left, right)``, which
:mod:`ramify.files.redysim.matlab_values` evaluates; nothing is ever executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ramify.files.redysim.matlab_tokens import Token, tokens, wrong

MAX_DEPTH: Final = 40
"""Brackets, minus signs and loops inside each other."""

Expression = tuple[Any, ...]


@dataclass(frozen=True)
class Statement:
    """An assignment of ``value`` to ``target`` or a part of it (``index``); with a ``body``, a loop
    over columns of ``value``.
    """

    line: int
    text: str
    target: str
    index: tuple[Expression, ...] | None
    value: Expression
    body: tuple[Statement, ...] | None = None


@dataclass(frozen=True)
class MatlabProgram:
    """A parsed file: the names it hands out, in order, its statements, and the commands such as
    ``disp`` that were passed over.
    """

    outputs: tuple[str, ...]
    statements: tuple[Statement, ...]
    skipped: tuple[str, ...] = ()


def parse(source: str, file: str) -> MatlabProgram:
    """The program that a file is. Raises ModelError with line and statement where it is none of the
    forms known here.
    """
    parser = _Parser(tokens(source, file), source.splitlines(), file)
    return parser.program()


def assignment(stream: Sequence[Token], lines: Sequence[str], file: str) -> Statement:
    """The assignment that some tokens are. Raises ModelError for any other statement."""
    return _Parser(stream, lines, file).statement(stream[0])


_IGNORED: Final = frozenset(
    ["clc", "clear", "close", "format", "disp", "hold", "global", "fprintf"]
)
_UNKNOWN: Final = frozenset(
    [
        "while",
        "if",
        "switch",
        "try",
        "parfor",
        "break",
        "continue",
        "else",
        "elseif",
        "case",
        "otherwise",
    ]
)
_LEVELS: Final = ((":",), ("+", "-"), ("*", "/", ".*", "./"))


class _Parser:
    def __init__(self, stream: Sequence[Token], lines: Sequence[str], file: str) -> None:
        self.stream, self.lines, self.file = stream, lines, file
        self.at = 0
        self.depth = 0
        self.inside: list[str] = []  # the brackets that are open
        self.outputs: tuple[str, ...] = ()
        self.skipped: dict[str, None] = {}

    # ---- statements ----

    def program(self) -> MatlabProgram:
        statements = list(self.block(top=True))
        return MatlabProgram(self.outputs, tuple(statements), tuple(self.skipped))

    def block(self, top: bool) -> Iterator[Statement]:
        functions = 0
        while True:
            token = self.peek()
            if token is None:
                if not top:
                    self.fail("a loop without its end")
                return
            if token.kind == "end":
                self.at += 1
            elif token.text == "end":
                self.at += 1
                if not top:
                    return
            elif token.text == "function":
                functions += 1
                if functions > 1 or not top:
                    return  # further functions are not called here
                self.header()
            elif token.text in ("save", "return") and token.kind == "name":
                self.save(token)
                if token.text == "return" and not top:
                    self.fail("a return inside a loop is not understood", token)
                if token.text == "return":
                    return
            elif token.text in _IGNORED and token.kind == "name" and not self.assigns():
                self.skipped[token.text] = None
                self.skip()
            elif token.text == "[" and not self.depth:
                yield self.outputs_of_inputs(token)
            elif token.text == "load" and token.kind == "name":
                yield self.load(token)
            else:
                yield self.statement(token)

    def header(self) -> None:
        """function [a b c] = inputs(), or without outputs."""
        self.at += 1
        names: list[str] = []
        if self.accept("["):
            while not self.accept("]"):
                token = self.next()
                if token.kind == "name":
                    names.append(token.text)
                elif token.text not in (",", ";"):
                    self.fail("expected a list of output names", token)
            self.outputs = tuple(names)
        self.skip()

    def save(self, token: Token) -> None:
        """``save inputs.mat n dof ...`` names the variables as well; nothing is written."""
        self.at += 1
        names = [t.text for t in self.skip() if t.kind == "name" and t.space]
        if token.text == "save" and not self.outputs and len(names) > 1:
            self.outputs = tuple(names[1:])

    def outputs_of_inputs(self, token: Token) -> Statement:
        """``[n dof ... al] = inputs()``, as ReDySim's other functions begin."""
        words = [t.text for t in self.skip()]
        close = words.index("]") if "]" in words else 0
        if words[close + 1 :] not in (["=", "inputs", "(", ")"], ["=", "inputs"]):
            self.fail("only assignments and for loops are understood", token)
        names = tuple(("name", word) for word in words[1:close] if word not in (",", ";"))
        return Statement(
            token.line, self.lines[token.line - 1], "", None, ("call", "inputs", names)
        )

    def load(self, token: Token) -> Statement:
        """``load inputs -mat`` or ``load('inputs.mat')``: the variables of a file, no target."""
        self.at += 1
        if self.sees("("):
            arguments = self.arguments()
            self.finish(token)
        else:
            words = "".join(" " * t.space + t.text for t in self.skip()).split()
            arguments = tuple(("text", word.strip("'\"")) for word in words)
        value = ("call", "load", arguments)
        return Statement(token.line, self.lines[token.line - 1], "", None, value)

    def assigns(self) -> bool:
        """Whether the name here is a variable that is assigned, not a command: ``hold = 2``."""
        return self.at + 1 < len(self.stream) and self.stream[self.at + 1].text == "="

    def skip(self) -> list[Token]:
        start = self.at
        while (token := self.peek()) is not None and token.kind != "end":
            self.at += 1
        return list(self.stream[start : self.at])

    def statement(self, first: Token) -> Statement:
        text = self.lines[first.line - 1]
        if first.kind != "name" or first.text in _UNKNOWN:
            self.fail("only assignments and for loops are understood", first)
        if first.text == "for":
            return self.loop(first, text)
        self.at += 1
        index: tuple[Expression, ...] | None = None
        if self.sees("("):
            index = self.arguments()
        if not self.accept("="):
            self.fail("only assignments and for loops are understood", first)
        value = self.expression(0)
        self.finish(first)
        return Statement(first.line, text, first.text, index, value)

    def loop(self, first: Token, text: str) -> Statement:
        self.at += 1
        bracket = self.accept("(")
        name = self.next()
        if name.kind != "name" or not self.accept("="):
            self.fail("a loop reads: for i = 1:n", first)
        value = self.expression(0)
        if bracket and not self.accept(")"):
            self.fail("a bracket is not closed", first)
        self.finish(first)
        self.depth += 1
        self.check_depth(first)
        body = tuple(self.block(top=False))
        self.depth -= 1
        return Statement(first.line, text, name.text, None, value, body)

    def finish(self, first: Token) -> None:
        token = self.peek()
        if token is not None and token.kind != "end":
            self.fail(f"{token.text!r} is not understood here", first)

    # ---- expressions ----

    def expression(self, level: int) -> Expression:
        """Ranges, then sums, then products, then signs, then powers. ``a:b:c`` is ("range", a, b,
        c).
        """
        if level == len(_LEVELS):
            return self.signed()
        left = self.expression(level + 1)
        parts = [left]
        while (
            (token := self.peek()) is not None
            and token.kind == "op"
            and token.text in _LEVELS[level]
        ):
            if self.starts_entry(token):
                break
            self.at += 1
            right = self.expression(level + 1)
            parts.append(right)
            left = ("range", *parts) if level == 0 else (token.text, left, right)
            if level == 0 and len(parts) > 3:
                self.fail("a range reads first:last or first:step:last", token)
        return left

    def starts_entry(self, token: Token) -> bool:
        """Within brackets, a sign with a space before it and none after starts a new entry."""
        following = self.stream[self.at + 1] if self.at + 1 < len(self.stream) else None
        in_list = bool(self.inside) and self.inside[-1] == "["
        return (
            in_list
            and token.text in ("+", "-")
            and token.space
            and following is not None
            and not following.space
        )

    def signed(self) -> Expression:
        token = self.peek()
        if token is not None and token.kind == "op" and token.text in ("+", "-"):
            self.at += 1
            self.depth += 1
            self.check_depth(token)
            value = self.signed()
            self.depth -= 1
            return ("negative", value) if token.text == "-" else value
        return self.power()

    def power(self) -> Expression:
        left = self.primary()
        while (
            (token := self.peek()) is not None and token.kind == "op" and token.text in ("^", ".^")
        ):
            self.at += 1
            sign = self.peek()
            negative = (
                sign is not None
                and sign.kind == "op"
                and sign.text == "-"
                and bool(self.accept("-"))
            )
            right = self.primary()
            left = (token.text, left, ("negative", right) if negative else right)
        return left

    def primary(self) -> Expression:
        token = self.next()
        value: Expression
        if token.kind == "number":
            value = ("number", float(token.text.lower().replace("d", "e")))
        elif token.kind == "name" and token.text != "end":
            following = self.peek()
            apart = (
                bool(self.inside)
                and self.inside[-1] == "["
                and following is not None
                and following.space
            )
            value = (
                ("call", token.text, self.arguments())
                if self.sees("(") and not apart
                else ("field", token.text, self.field())
                if self.accept(".")
                else ("name", token.text)
            )
        elif token.kind == "text":
            value = ("text", token.text[1:-1])
        elif token.text == "end" and "(" in self.inside:
            value = ("end",)
        elif token.text == "(":
            value = self.bracketed(token)
        elif token.text == "[":
            value = self.matrix(token)
        else:
            self.fail(f"{token.text or 'the end of the line'!r} is not understood here", token)
        while (token := self.peek()) is not None and token.text == "'" and token.kind == "op":  # type: ignore[assignment]
            self.at += 1
            value = ("transpose", value)
        return value

    def field(self) -> str:
        """The name after the dot of ``x.n``, x being what ``load`` gave."""
        token = self.next()
        if token.kind != "name":
            self.fail("expected the name of a variable after the dot", token)
        return token.text

    def bracketed(self, token: Token) -> Expression:
        self.enter("(", token)
        value = self.expression(0)
        if not self.accept(")"):
            self.fail("a bracket is not closed", token)
        self.inside.pop()
        return value

    def matrix(self, token: Token) -> Expression:
        """("matrix", row, row, ...), each row a tuple of expressions."""
        self.enter("[", token)
        rows: list[tuple[Expression, ...]] = []
        row: list[Expression] = []
        while not self.accept("]"):
            if self.accept(";"):
                rows.append(tuple(row))
                row = []
            elif not self.accept(","):
                row.append(self.expression(0))
        self.inside.pop()
        rows.append(tuple(row))
        return ("matrix", *(row for row in rows if row))

    def arguments(self) -> tuple[Expression, ...]:
        token = self.next()
        self.enter("(", token)
        out: list[Expression] = []
        while not self.accept(")"):
            if out and not self.accept(","):
                self.fail("expected a comma or a closing bracket", self.peek() or token)
            if [t.text for t in self.stream[self.at : self.at + 2]] in ([":", ","], [":", ")"]):
                self.at += 1
                out.append(("all",))
            else:
                out.append(self.expression(0))
        self.inside.pop()
        return tuple(out)

    # ---- tokens ----

    def enter(self, bracket: str, token: Token) -> None:
        self.inside.append(bracket)
        self.check_depth(token)

    def check_depth(self, token: Token) -> None:
        if self.depth + len(self.inside) > MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} brackets, signs or loops inside each other", token)

    def peek(self) -> Token | None:
        return self.stream[self.at] if self.at < len(self.stream) else None

    def next(self) -> Token:
        token = self.peek()
        if token is None:
            self.fail("the file ends in the middle of a statement")
        self.at += 1
        return token

    def sees(self, text: str) -> bool:
        token = self.peek()
        return token is not None and token.kind == "op" and token.text == text

    def accept(self, text: str) -> bool:
        if self.sees(text):
            self.at += 1
            return True
        return False

    def fail(self, text: str, token: Token | None = None) -> NoReturn:
        line = token.line if token is not None else max(1, len(self.lines))
        wrong(self.file, line, text, self.lines[line - 1] if self.lines else "")
