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
    over columns of ``value``; with ``branches``, pairs of a condition (None: else) and statements,
    the first of which counts whose condition holds.
    """

    line: int
    text: str
    target: str
    index: tuple[Expression, ...] | None
    value: Expression
    body: tuple[Statement, ...] | None = None
    branches: tuple[tuple[Expression | None, tuple[Statement, ...]], ...] = ()


@dataclass(frozen=True)
class MatlabProgram:
    """A parsed file: the names it hands out, in order, its statements, and the commands such as
    ``disp`` that were passed over.
    """

    outputs: tuple[str, ...]
    statements: tuple[Statement, ...]
    skipped: tuple[str, ...] = ()


def parse_matlab(source: str, file: str) -> MatlabProgram:
    """The program in a file. Raises ModelError with line and statement for forms that are
    not known here.
    """
    parser = _Parser(tokens(source, file), source.splitlines(), file)
    statements = tuple(parser.block(top=True))
    return MatlabProgram(parser.outputs, statements, tuple(parser.skipped))


def assignment(stream: Sequence[Token], lines: Sequence[str], file: str) -> Statement:
    """The assignment that some tokens form. Raises ModelError for any other statement."""
    return _Parser(stream, lines, file).statement()


_IGNORED: Final = frozenset(
    ["clc", "clear", "close", "format", "disp", "hold", "global", "fprintf"]
)
_UNKNOWN: Final = frozenset(
    ["while", "switch", "try", "parfor", "break", "continue", "else", "elseif", "case", "otherwise"]
)  # fmt: skip
_LEVELS: Final = (
    ("||",), ("&&",), ("|",), ("&",), ("<", "<=", ">", ">=", "==", "~="), (":",), ("+", "-"),
    ("*", "/", "\\", ".*", "./", ".\\"),
)  # fmt: skip
_RANGES: Final = _LEVELS.index((":",))
_ONLY: Final = "only assignments, for loops and if are understood"


class _Parser:
    def __init__(self, stream: Sequence[Token], lines: Sequence[str], file: str) -> None:
        self.stream = [*stream, Token("stop", "", max(1, len(lines)), False)]
        self.lines, self.file = lines, file
        self.at = self.depth = 0
        self.inside: list[str] = []  # the brackets that are open
        self.outputs: tuple[str, ...] = ()
        self.skipped: dict[str, None] = {}

    # ---- statements ----

    def block(self, top: bool) -> Iterator[Statement]:
        functions = 0
        while (token := self.token).kind != "stop":
            if token.kind == "end":
                self.at += 1
            elif token.text == "end" or (token.text in ("else", "elseif") and not top):
                if not top:
                    return
                self.at += 1
            elif token.text == "function":
                functions += 1
                if functions > 1 or not top:
                    return  # further functions are not called here
                self.header()
            elif token.kind == "name" and token.text == "return":
                self.skip()
                if not top:
                    self.fail("a return inside a loop is not understood", token)
                return
            else:
                yield from self.command()
        if not top:
            self.fail("a loop or an if without its end", token)

    def command(self) -> Iterator[Statement]:
        """The next statement; none for commands that save, print or draw."""
        token = self.token
        command = token.text if token.kind == "name" else ""
        if command == "save":
            self.save()
        elif command in _IGNORED and self.stream[self.at + 1].text != "=":
            self.skipped[command] = None
            self.skip()
        elif token.text == "[" and not self.depth:
            yield self.outputs_of_inputs()
        elif command == "load":
            yield self.load()
        else:
            yield self.statement()

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

    def save(self) -> None:
        """``save inputs.mat n dof ...`` names the variables as well; nothing is written."""
        self.next()
        names = [t.text for t in self.skip() if t.kind == "name" and t.space]
        if not self.outputs and len(names) > 1:
            self.outputs = tuple(names[1:])

    def outputs_of_inputs(self) -> Statement:
        """``[n dof ... al] = inputs()``, as ReDySim's other functions begin."""
        first, words = self.token, [t.text for t in self.skip()]
        close = words.index("]") if "]" in words else 0
        if words[close + 1 :] not in (["=", "inputs", "(", ")"], ["=", "inputs"]):
            self.fail(_ONLY, first)
        names = tuple(("name", word) for word in words[1:close] if word not in (",", ";"))
        return self.make_statement(first, "", None, ("call", "inputs", names))

    def load(self) -> Statement:
        """``load inputs -mat`` or ``load('inputs.mat')``: the variables of a file, no target."""
        first = self.next()
        if self.sees("("):
            arguments = self.arguments()
            self.finish(first)
        else:
            words = "".join(" " * t.space + t.text for t in self.skip()).split()
            arguments = tuple(("text", word.strip("'\"")) for word in words)
        return self.make_statement(first, "", None, ("call", "load", arguments))

    def skip(self) -> list[Token]:
        start = self.at
        while self.token.kind not in ("end", "stop"):
            self.at += 1
        return self.stream[start : self.at]

    def statement(self) -> Statement:
        first = self.token
        if first.kind != "name" or first.text in _UNKNOWN:
            self.fail(_ONLY, first)
        self.at += 1
        if first.text == "for":
            return self.loop(first)
        if first.text == "if":
            return self.condition(first)
        index = self.arguments() if self.sees("(") else None
        if not self.accept("="):
            self.fail(_ONLY, first)
        value = self.expression(0)
        self.finish(first)
        return self.make_statement(first, first.text, index, value)

    def loop(self, first: Token) -> Statement:
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
        if self.next().text != "end":
            self.fail("a for loop ends with end, not with else", first)
        self.depth -= 1
        return self.make_statement(first, name.text, None, value, body)

    def condition(self, first: Token) -> Statement:
        """if ... elseif ... else ... end; statements may follow a condition in the same line."""
        self.depth += 1
        self.check_depth(first)
        branches: list[tuple[Expression | None, tuple[Statement, ...]]] = []
        word = "if"
        while word != "end":
            test = None if word == "else" else self.expression(0)
            branches.append((test, tuple(self.block(top=False))))
            if branches[-2:-1] and branches[-2][0] is None:
                self.fail("nothing but end follows an else", first)
            word = self.next().text
        self.depth -= 1
        return self.make_statement(first, "", None, ("number", 1.0), None, tuple(branches))

    def make_statement(self, first: Token, target: str, *rest: Any) -> Statement:
        return Statement(first.line, self.lines[first.line - 1], target, *rest)

    def finish(self, first: Token) -> None:
        if self.token.kind not in ("end", "stop"):
            self.fail(f"{self.token.text!r} is not understood here", first)

    # ---- expressions ----

    def expression(self, level: int) -> Expression:
        """Conditions, then ranges, then sums, then products, then signs, then powers. ``a:b:c`` is
        ("range", a, b, c).
        """
        if level == len(_LEVELS):
            return self.signed()
        left = self.expression(level + 1)
        parts = [left]
        while self.sees(*_LEVELS[level]) and not self.starts_entry():
            token = self.next()
            right = self.expression(level + 1)
            parts.append(right)
            left = ("range", *parts) if level == _RANGES else (token.text, left, right)
            if level == _RANGES and len(parts) > 3:
                self.fail("a range reads first:last or first:step:last", token)
        return left

    def starts_entry(self) -> bool:
        """Within brackets, a sign with a space before it and none after starts a new entry."""
        token, following = self.stream[self.at : self.at + 2]
        sign = token.text in ("+", "-") and token.space and following.kind != "stop"
        return self.inside[-1:] == ["["] and sign and not following.space

    def signed(self) -> Expression:
        if not self.sees("+", "-", "~"):
            return self.power()
        token = self.next()
        self.depth += 1
        self.check_depth(token)
        value = self.signed()
        self.depth -= 1
        return {"-": ("negative", value), "~": ("not", value)}.get(token.text, value)

    def power(self) -> Expression:
        left = self.primary()
        while self.sees("^", ".^"):
            sign = self.next().text
            negative = self.accept("-")
            right = self.primary()
            left = (sign, left, ("negative", right) if negative else right)
        return left

    def primary(self) -> Expression:
        token = self.next()
        value: Expression
        if token.kind == "number":
            value = ("number", float(token.text.lower().replace("d", "e")))
        elif token.kind == "name" and token.text != "end":
            value = self.named(token)
        elif token.kind == "text":
            value = ("text", token.text[1:-1])
        elif token.text == "end" and "(" in self.inside:
            value = ("end",)
        elif token.text == "(":
            self.enter("(", token)
            value = self.expression(0)
            if not self.accept(")"):
                self.fail("a bracket is not closed", token)
            self.inside.pop()
        elif token.text == "[":
            value = self.matrix(token)
        else:
            self.fail(f"{token.text or 'the end of the line'!r} is not understood here", token)
        while self.accept("'") or self.accept(".'"):
            value = ("transpose", value)
        return value

    def named(self, token: Token) -> Expression:
        """A variable, a call or element, or a field of what ``load`` gave."""
        apart = self.inside[-1:] == ["["] and self.token.space
        if self.sees("(") and not apart:
            return ("call", token.text, self.arguments())
        if self.accept("."):
            if self.token.kind != "name":
                self.fail("expected the name of a variable after the dot", self.next())
            return ("field", token.text, self.next().text)
        return ("name", token.text)

    def matrix(self, token: Token) -> Expression:
        """("matrix", row, row, ...), each row a tuple of expressions."""
        self.enter("[", token)
        rows: list[list[Expression]] = [[]]
        while not self.accept("]"):
            if self.accept(";"):
                rows.append([])
            elif not self.accept(","):
                rows[-1].append(self.expression(0))
        self.inside.pop()
        return ("matrix", *(tuple(row) for row in rows if row))

    def arguments(self) -> tuple[Expression, ...]:
        token = self.next()
        self.enter("(", token)
        out: list[Expression] = []
        while not self.accept(")"):
            if out and not self.accept(","):
                self.fail("expected a comma or a closing bracket", self.token)
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

    @property
    def token(self) -> Token:
        return self.stream[self.at]

    def next(self) -> Token:
        token = self.token
        if token.kind == "stop":
            self.fail("the file ends in the middle of a statement", token)
        self.at += 1
        return token

    def sees(self, *texts: str) -> bool:
        return self.token.kind == "op" and self.token.text in texts

    def accept(self, text: str) -> bool:
        found = self.sees(text)
        self.at += found
        return found

    def fail(self, text: str, token: Token) -> NoReturn:
        wrong(self.file, token.line, text, self.lines[token.line - 1] if self.lines else "")
