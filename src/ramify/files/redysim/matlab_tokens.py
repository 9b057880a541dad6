"""ReDySim's ``inputs.m``: from text to tokens.

Tokens know their line and whether a space stands before them, for inside brackets ``[1 -2]`` has
two entries and ``[1 - 2]`` one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from ramify.core.errors import ModelError

MAX_TOKENS: Final = 50_000
"""Lines, numbers, names and signs in a file."""

_TOKEN: Final = re.compile(
    r"(?P<number>(?:\d+(?:\.(?![*/^\\']|\.\.)\d*)?|\.\d+)(?:[eEdD][+-]?\d+)?)|(?P<name>[A-Za-z]\w*)|(?P<op>\.\*|\./|\.\^|\.\\|\.'|==|~=|<=|>=|&&|\|\||[-+*/^()\[\],;:=<>&|~.{}@!\\])",
    re.ASCII,
)
_BLANK: Final = re.compile(r"[ \t\f\v]*")


@dataclass(frozen=True)
class Token:
    """``kind`` is number, name, text, op or end (of a statement); ``space``: whether a blank stands
    before it.
    """

    kind: str
    text: str
    line: int
    space: bool


def wrong(file: str, line: int, text: str, statement: str = "") -> NoReturn:
    """Raise ModelError at a line, with the statement."""
    shown = statement.strip()
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    raise ModelError(f"{file}:{line}: {text}" + (f": {shown}" if shown else ""))


def tokens(source: str, file: str) -> list[Token]:
    """The tokens of a file: comments and continued lines gone, ``end`` tokens at the ends of
    statements.
    """
    out: list[Token] = []
    depth = 0
    for number, line in _code_lines(source):
        at, continued = 0, False
        while True:
            blank = _BLANK.match(line, at)
            assert blank is not None
            space, at = blank.end() > at or at == 0, blank.end()
            if at >= len(line) or line[at] in "%#":
                break
            if len(out) + number >= MAX_TOKENS:
                text = f"more than {MAX_TOKENS} lines, numbers, names and signs"
                wrong(file, number, f"{text}; a robot takes some thousand")
            if line.startswith("...", at):
                continued = True
                break
            if line[at] in "'\"":
                last = out[-1] if out else Token("end", "", 0, False)
                quote = _transpose(line[at], space, last, number)
                out.append(quote or _quoted(line, at, number, space, file))
                at += len(out[-1].text)
                continue
            match = _TOKEN.match(line, at)
            if match is None:
                wrong(file, number, f"{line[at]!r} is not understood", line)
            text = match.group()
            depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(text, 0)
            ends = depth <= 0 and text in (";", ",")
            out.append(Token("end" if ends else str(match.lastgroup), text, number, space))
            at = match.end()
        if not continued and depth <= 0:
            out.append(Token("end", "", number, False))
        elif not continued and not (out and out[-1].text in (";", "[", ",")):
            out.append(Token("op", ";", number, False))  # unless after another separator
    return out


def _code_lines(source: str) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the lines that are not blank and not in a block comment."""
    comment = 0
    for number, line in enumerate(source.splitlines(), start=1):
        stripped = line.strip()
        if stripped in ("%{", "%}"):
            comment = max(0, comment + (1 if stripped == "%{" else -1))
        elif stripped and not comment:
            yield number, line


def _transpose(mark: str, space: bool, last: Token, number: int) -> Token | None:
    """The operator ', which follows a value without a space; None where a text begins."""
    value = last.kind in ("number", "name") or last.text in (")", "]", "'", ".'")
    return Token("op", "'", number, False) if mark == "'" and not space and value else None


def _quoted(line: str, at: int, number: int, space: bool, file: str) -> Token:
    """The text in quotation marks that begins at a place of a line."""
    close = line.find(line[at], at + 1)
    if close < 0:
        wrong(file, number, "a text that does not end", line)
    return Token("text", line[at : close + 1], number, space)
