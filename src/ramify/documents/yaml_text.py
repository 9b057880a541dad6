"""YAML 1.2 text to plain data with positions, within limits.

Built on the parser's events with a stack of our own: nesting, size and aliases are bounded before
anything grows, and every key and value keeps its line and column. Scalars follow the core schema of
YAML 1.2 (``1e-3`` is a number, ``yes`` is a text).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from ramify.core.cached import Memo
from ramify.core.errors import ModelError
from ramify.documents.mistakes import Map, Mistakes, Path, Position, Seq
from ramify.documents.reading import read_bytes

MAX_BYTES: Final = 1 << 20
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 32
"""Limits of a robot file: size, scalars and collections (those an alias repeats counted again),
nesting.
"""

ADVICE: Final = "Write parts that repeat once, as a template"

_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL: Final[dict[str, Any]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}


def read_text(path: FilePath) -> str:
    """The text of a file. Raises ModelError where it is missing, no regular file, too large or not
    UTF-8.
    """
    data = read_bytes(path, MAX_BYTES, "a robot file", f". {ADVICE}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        byte = f"byte 0x{data[error.start]:02x}"
        raise ModelError(
            f"{path}:{line}:{column}: {byte} is not UTF-8 text; is this a robot file?"
        ) from None


_EVENTS, _SHORT = Memo(64), 1 << 15
"""Events of short correct texts: robots and scenarios are loaded again and again, and the parser is
slow.
"""


def _build(text: str, builder: _DataBuilder) -> None:
    """Hand the events of a text to the builder, one by one, so that it can stop at its limits."""
    events = []
    for event in _EVENTS.get(text) or YAML(typ="safe", pure=True).parse(text):
        builder.take(event)
        events.append(event)
    if len(text) <= _SHORT:
        _EVENTS.keep(text, events)


def parse_yaml(
    text: str,
    mistakes: Mistakes,
    wanted: str = "a robot file is a mapping with the keys name and links",
) -> Map:
    """The document of a text: nested Map, Seq and scalars. Duplicate keys and the like are noted in
    ``mistakes``.

    wanted: what such a file is, for the message about one that is not.

    Raises ModelError for text that is not YAML, that exceeds a limit, or whose document is not a
    mapping.
    """
    builder = _DataBuilder(mistakes)
    try:
        _build(text, builder)
    except ModelError:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(str(part) for part in (error.context, error.problem) if part)
        mistakes.stop((), f"not YAML: {said}", at=_position(mark) if mark else None)
    except YAMLError as error:
        mistakes.stop((), f"not YAML: {' '.join(str(error).split())[:200]}")
    except Exception as error:  # on damaged text also IndexError, ValueError, AttributeError ...
        mistakes.stop((), f"not YAML: {type(error).__name__} {' '.join(str(error).split())[:200]}")
    if not isinstance(builder.root, Map):
        mistakes.stop((), f"empty: {wanted}" if builder.root is None else wanted, at=Position(1, 1))
    mistakes.root = builder.root
    return builder.root


def scalar(text: str) -> Any:
    """A plain scalar of the core schema: None, bool, int, float or the text itself."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    if not _FLOAT.fullmatch(text):
        return text
    return int(text) if len(text) < 16 and text.lstrip("+-").isdecimal() else float(text)


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


@dataclass
class _Open:
    """A collection whose end has not come yet."""

    value: Map | Seq
    anchor: str | None
    size: int = 1
    key: str | None = None
    key_at: Position = field(default_factory=lambda: Position(1, 1))


class _DataBuilder:
    """Events to data."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes
        self.root: Any = None
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.nodes = 0
        self.documents = 0

    def take(self, event: Event) -> None:
        at = _position(event.start_mark)
        match event:
            case DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    text = "a second document starts here; a robot file has one"
                    self.mistakes.stop((), text, at=at)
            case AliasEvent():
                if event.anchor not in self.anchors:
                    text = f"the alias *{event.anchor} names nothing that is complete before it"
                    self.mistakes.stop(self.path, text, at=at)
                value, size = self.anchors[event.anchor]
                self.count(size, at)
                self.put(value, size, at)
            case ScalarEvent():
                self.begin(event, at)
                value = scalar(event.value) if event.implicit[0] else event.value
                if event.anchor:
                    self.anchors[event.anchor] = (value, 1)
                self.put(value, 1, at, event.value)
            case SequenceStartEvent() | MappingStartEvent():
                self.begin(event, at)
                if len(self.stack) >= MAX_DEPTH:
                    text = f"nested deeper than {MAX_DEPTH} levels"
                    self.mistakes.stop(self.path[:4], text, at=at)
                empty = Seq(at) if isinstance(event, SequenceStartEvent) else Map(at)
                self.stack.append(_Open(empty, event.anchor))
            case SequenceEndEvent() | MappingEndEvent():
                done = self.stack.pop()
                if done.anchor:
                    self.anchors[done.anchor] = (done.value, done.size)
                self.put(done.value, done.size, done.value.at)

    @property
    def path(self) -> Path:
        steps = (len(o.value) if isinstance(o.value, Seq) else o.key for o in self.stack)
        return tuple(step for step in steps if step is not None)

    def begin(self, event: ScalarEvent | CollectionStartEvent, at: Position) -> None:
        self.count(1, at)
        if event.tag is not None and str(event.tag) != "!":
            text = f"the tag {str(event.tag)[:40]!r} has no meaning here"
            self.mistakes.add(self.path, text, at=at)

    def count(self, size: int, at: Position) -> None:
        self.nodes += size
        if self.nodes > MAX_NODES:
            text = f"more than {MAX_NODES} values, aliases written out. {ADVICE}"
            self.mistakes.stop((), text, at=at)

    def put(self, value: Any, size: int, at: Position, text: str | None = None) -> None:
        """Add a finished value to the collection that contains it; keys are texts, whatever they
        look like.
        """
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.size += size
        if isinstance(top.value, Seq):
            top.value.append(value)
            top.value.values_at.append(at)
        elif top.key is None:
            key = value if text is None else text
            if not isinstance(key, str):
                self.mistakes.stop(self.path, "a key must be a plain text", at=at)
            top.key, top.key_at = key, at
        else:
            if top.key in top.value:
                text = f"duplicate key, first in line {top.value.keys_at[top.key].line}"
                self.mistakes.add(self.path, text, at=top.key_at)
            if value is None:
                text = "has no value; give it one or leave out the key"
                self.mistakes.add(self.path, text, at=at)
            else:
                top.value[top.key] = value
                top.value.keys_at[top.key], top.value.values_at[top.key] = top.key_at, at
            top.key = None
