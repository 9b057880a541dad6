"""Forms: how a file writes a value, and which values are right.

A form reads a value of a document and notes every mistake with its place, and writes a value as a
document that reads back as the same. Numbers may be arithmetic. Forms are kept in the types or the
metadata of dataclass fields: see ``ramify.documents.kinds``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from ramify.core.messages import near, shown
from ramify.core.names import NAME, is_name
from ramify.documents.expression import ExpressionError, evaluate
from ramify.documents.mistakes import Mistakes, Path


class NotedError(Exception):
    """The mistakes of a value are noted; there is nothing to go on with."""


class _Unset:
    def __repr__(self) -> str:
        return "<not given>"


UNSET: Final = _Unset()
"""In place of a value that a file does not give."""
PYTHON: Final = "python"
"""The word for an object that no document can hold, such as a function."""


def python_document(thing: object, key: str = "type") -> dict[str, Any]:
    """The document of an object that cannot be written: that it is one of Python, and its name."""
    name = getattr(thing, "__qualname__", type(thing).__qualname__)
    return {key: PYTHON, "object": name}


def holds_python(document: object) -> bool:
    """Whether a document has an object of Python, or the text that older versions wrote for it."""
    if isinstance(document, Mapping):
        words = [document.get(key) for key in ("type", "law", "kind")]
        return PYTHON in words or any(map(holds_python, document.values()))
    if isinstance(document, list | tuple):
        return any(map(holds_python, document))
    return isinstance(document, str) and document.startswith("<object")


def plain_document(value: object) -> Any:
    """A value as JSON and YAML hold it: sequences and arrays as lists, infinite numbers as "inf",
    anything unknown as a document that says so.
    """
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy, which is not loaded here
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain_document(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_document(item) for item in value]
    return python_document(value)


@dataclass(frozen=True, eq=False)
class Reading:
    """A file that is being read: where mistakes go, and ``context``, what its parts may use besides
    their own keys; ``NotedError`` there stands for something whose mistakes are noted already.
    ``names``: numbers that its arithmetic may use; ``link``: the one that is read, for messages.
    """

    mistakes: Mistakes
    context: Mapping[str, object] = field(default_factory=dict, kw_only=True)
    names: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    link: str = field(default="", kw_only=True)

    def refuse(self, path: Path, text: str, *, key: bool = False) -> NotedError:
        """Note a mistake; raise what this gives."""
        self.mistakes.add(path, text, link=self.link, key=key)
        return NotedError(text)


@dataclass(frozen=True, eq=False)
class GivenPart:
    """A ``part`` of a document whose fields are being read; ``done``: those read already."""

    part: Mapping[str, object]
    path: Path
    reading: Reading
    done: dict[str, Any] = field(default_factory=dict)

    def keys(self, names: Iterable[str]) -> list[str]:
        """Those of some keys that the part has."""
        return [name for name in names if self.part.get(name) is not None]

    def refuse(self, text: str, *below: str | int) -> NotedError:
        """Note a mistake of the part, or of a key in it; raise what this gives."""
        return self.reading.refuse((*self.path, *below), text)

    def one_of(self, names: tuple[str, ...], needed: bool = False) -> NotedError | None:
        """Note several of keys that exclude each other, or none where one is needed."""
        some = self.keys(names)
        if len(some) > 1:
            text = f"{' and '.join(some)} exclude each other; give one of {', '.join(names)}"
            return self.refuse(text, some[1])
        return self.refuse(f"one of {', '.join(names)} is missing") if needed and not some else None


class Form(ABC):
    """How a value is written. With ``degrees`` it may also be given in degrees, under the key with
    ``_deg`` behind it.
    """

    degrees: bool = False

    @property
    @abstractmethod
    def wanted(self) -> str:
        """What it must be, as messages and lists of keys say it."""

    @abstractmethod
    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        """The value. Raises NotedError once its mistakes are noted."""

    def write(self, value: Any) -> Any:
        """The document of a value, which ``read`` reads as an equal one."""
        return plain_document(value)

    @property
    def absent(self) -> str:
        """What holds where the key is left out, if the form decides that."""
        return ""

    def names(self, name: str) -> tuple[str, ...]:
        """The keys that this form reads for a field that files call ``name``."""
        return (name, f"{name}_deg") if self.degrees else (name,)

    def take(self, name: str, section: GivenPart) -> Any:
        """The value of a field that files call ``name``, or UNSET."""
        keys = section.keys(self.names(name))
        if len(keys) > 1:
            raise section.refuse(f"{' and '.join(keys)} say the same; give one", keys[1])
        if not keys:
            return UNSET
        value = self.read(section.part[keys[0]], (*section.path, keys[0]), section.reading)
        return value if keys == [name] else _radians(value)


def _radians(x: Any) -> Any:
    return [_radians(one) for one in x] if isinstance(x, list) else math.radians(x)


_ENDLESS: Final = ("inf", "-inf")
"""Infinite numbers in JSON, which has no word for them."""


@dataclass(frozen=True)
class Number(Form):
    """A number, finite unless ``endless``: ``above`` or at ``least`` a bound, at ``most`` another,
    ``whole``; with ``degrees`` an angle.
    """

    above: float | None = None
    least: float | None = None
    whole: bool = False
    endless: bool = False
    degrees: bool = False
    most: float | None = None

    @property
    def wanted(self) -> str:
        text = "a whole number" if self.whole else "a number" if self.endless else "a finite number"
        bounds = [f"> {self.above:g}"] if self.above is not None else []
        bounds += [f"≥ {self.least:g}"] if self.least is not None else []
        bounds += [f"≤ {self.most:.10g}"] if self.most is not None else []
        bounded = " ".join([text, *[" and ".join(bounds)] * bool(bounds)])
        return bounded + (" or .inf" if self.endless else "")

    def accepts(self, x: float) -> bool:
        """Whether a number is right."""
        if math.isnan(x) or (math.isinf(x) and not self.endless):
            return False
        if self.whole and math.isfinite(x) and x != int(x):
            return False
        low = self.above is not None and not x > self.above
        high = self.most is not None and not x <= self.most
        return not (low or high or (self.least is not None and not x >= self.least))

    def read(self, raw: object, path: Path, reading: Reading) -> float | int:
        try:
            endless = self.endless and raw in _ENDLESS
            x = float(str(raw)) if endless else evaluate(raw, reading.names)
        except ExpressionError as error:
            hint = "" if error.hinted else f"; it must be {self.wanted}"
            raise reading.refuse(path, f"{error}{hint}") from None
        if not self.accepts(x):
            value = shown(raw) + (f" = {x}" if isinstance(raw, str) else "")
            raise reading.refuse(path, f"{value} must be {self.wanted}")
        return int(x) if self.whole and math.isfinite(x) else x


@dataclass(frozen=True)
class Numbers(Form):
    """A list of numbers, or a tuple of ``size`` of them; also a single number where ``single``;
    ``said``: what they are.
    """

    size: int | None = None
    single: bool = False
    of: Number = Number()
    said: str = ""

    @property
    def wanted(self) -> str:
        many = "a list of such numbers" if self.size is None else f"a list of {self.size} numbers"
        if self.single:
            return f"{self.of.wanted}, or {many}"
        return self.said or ("a list of numbers" if self.size is None else many)

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        if self.single and not isinstance(raw, (list, tuple)):
            return self.of.read(raw, path, reading)
        found = read_items(
            raw, path, reading, self.of, self.wanted, self.size, at_least=0 if self.single else 1
        )
        return found if self.size is None else tuple(found)


@dataclass(frozen=True)
class Rows(Form):
    """A table: a list of rows of numbers, all of one length, one for each entry of ``per``."""

    wanted: ClassVar[str] = "a list of rows of numbers"
    degrees: bool = False
    per: str = ""

    def read(self, raw: object, path: Path, reading: Reading) -> list[list[float]]:
        rows: list[list[float]] = read_items(raw, path, reading, Numbers(), self.wanted)
        odd = next((i for i, row in enumerate(rows) if len(row) != len(rows[0])), None)
        if odd is not None:
            text = f"{len(rows[odd])} numbers; the first row has {len(rows[0])}"
            raise reading.refuse((*path, odd), text)
        return rows

    def write(self, value: Any) -> list[list[float]]:
        return [[float(x) for x in row] for row in value]

    def take(self, name: str, section: GivenPart) -> Any:
        rows, times = super().take(name, section), section.done.get(self.per)
        if isinstance(times, list) and rows is not UNSET and len(times) != len(rows):
            (key,) = section.keys(self.names(name))
            raise section.refuse(f"{len(rows)} rows for {len(times)} {self.per}", key)
        return rows


@dataclass(frozen=True)
class Name(Form):
    """A name: one line of text. Any text at all where ``prose``."""

    prose: bool = False

    @property
    def wanted(self) -> str:
        return "a text" if self.prose else "a name"

    def read(self, raw: object, path: Path, reading: Reading) -> str:
        if not isinstance(raw, str):
            text = f"{shown(raw)} is not a text; put it in quotes if it is meant as one"
            raise reading.refuse(path, text)
        if not self.prose and not is_name(raw):
            raise reading.refuse(path, f"{shown(raw)} is not a name; {NAME}")
        return raw


@dataclass(frozen=True)
class OneWord(Form):
    """The name of one of some ``words`` for a thing (``what``)."""

    what: str
    words: Collection[str]

    @property
    def wanted(self) -> str:
        return f"a {self.what}"

    def read(self, raw: object, path: Path, reading: Reading) -> str:
        if not isinstance(raw, str) or raw not in self.words:
            text = f"no {self.what} is called {shown(raw)}{near(str(raw), list(self.words))}"
            raise reading.refuse(path, text)
        return raw


@dataclass(frozen=True)
class Choice(Form):
    """One of some values."""

    values: tuple[object, ...]

    @property
    def wanted(self) -> str:
        head, last = [repr(value) for value in self.values[:-1]], repr(self.values[-1])
        return f"{', '.join(head)} or {last}" if head else last

    def read(self, raw: object, path: Path, reading: Reading) -> object:
        if isinstance(raw, bool) or raw not in self.values:
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        return raw


@dataclass(frozen=True)
class Flag(Form):
    """True or false."""

    wanted: ClassVar[str] = "true or false"

    def read(self, raw: object, path: Path, reading: Reading) -> bool:
        if not isinstance(raw, bool):
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        return raw


@dataclass(frozen=True)
class ByName(Form):
    """A mapping from names to values of one form."""

    of: Form

    @property
    def wanted(self) -> str:
        return f"a mapping from names, each to {self.of.wanted}"

    def read(self, raw: object, path: Path, reading: Reading) -> dict[str, Any]:
        if not isinstance(raw, Mapping):
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        named = {str(name): value for name, value in raw.items()}
        for name in named:
            if not is_name(name):
                raise reading.refuse((*path, name), f"this is not a name; {NAME}", key=True)
        return dict(zip(named, _read_all(named.items(), path, reading, self.of), strict=True))

    def write(self, value: Any) -> dict[str, Any]:
        """value: a mapping, or its pairs."""
        return {name: self.of.write(item) for name, item in dict(value).items()}


@dataclass(frozen=True)
class Listed(Form):
    """A list of values of one form, ``size`` of them or at least ``least``; ``said``: what they
    are.
    """

    of: Form
    least: int = 1
    size: int | None = None
    said: str = ""

    @property
    def wanted(self) -> str:
        if self.said:
            return self.said
        if self.least > 1 or isinstance(self.of, Anything):
            many = "one entry" if self.least == 1 else f"{self.least} entries"
            return f"a list with at least {many}"
        return f"a list, each entry {self.of.wanted}"

    def read(self, raw: object, path: Path, reading: Reading) -> list[Any]:
        return read_items(raw, path, reading, self.of, self.wanted, self.size, self.least)

    def write(self, value: Any) -> list[Any]:
        return [self.of.write(item) for item in value]


@dataclass(frozen=True)
class Many(Form):
    """A value of one form, or a list of them: a list in any case."""

    of: Form

    @property
    def wanted(self) -> str:
        return f"{self.of.wanted}, or a list with such entries"

    def read(self, raw: object, path: Path, reading: Reading) -> list[Any]:
        if not isinstance(raw, (list, tuple)):
            return [self.of.read(raw, path, reading)]
        return _read_all(enumerate(raw), path, reading, self.of)

    def write(self, value: Any) -> list[Any]:
        several = value if isinstance(value, list | tuple) else [value]
        return [self.of.write(item) for item in several]


@dataclass(frozen=True)
class NameList(Many):
    """Names: one, or a list of them."""

    wanted: ClassVar[str] = "a name or a list of names"
    of: Form = Name()


@dataclass(frozen=True)
class Either(Form):
    """A plain value, or a mapping."""

    plain: Form
    part: Form

    @property
    def wanted(self) -> str:
        return f"{self.plain.wanted} or a mapping"

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        if isinstance(raw, list):
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        return (self.part if isinstance(raw, Mapping) else self.plain).read(raw, path, reading)

    def write(self, value: Any) -> Any:
        simple = isinstance(value, str | bool | int | float) or hasattr(value, "tolist")
        return (self.plain if simple else self.part).write(value)


@dataclass(frozen=True)
class Anything(Form):
    """A value that is looked at elsewhere."""

    wanted: ClassVar[str] = "a value"

    def read(self, raw: object, path: Path, reading: Reading) -> object:
        return raw


@dataclass(frozen=True)
class Surrounding(Form):
    """What the file gives elsewhere under ``name``, such as the motion of a scenario; with a form
    ``of`` it, a part may also have its own under that key.
    """

    name: str
    use: str
    """How a kind uses it, for the message where there is none: "follows a motion"."""
    of: Form | None = None

    @property
    def wanted(self) -> str:
        return f"the {self.name} of the file"

    @property
    def absent(self) -> str:
        return self.wanted

    def names(self, name: str) -> tuple[str, ...]:
        return (name,) if self.of is not None else ()

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        assert self.of is not None, "not a key"
        return self.of.read(raw, path, reading)

    def write(self, value: Any) -> Any:
        return plain_document(value) if self.of is None else self.of.write(value)

    def take(self, name: str, section: GivenPart) -> Any:
        if section.keys(self.names(name)):
            return super().take(name, section)
        value = section.reading.context.get(self.name)
        if value is NotedError:
            raise NotedError
        if value is None:
            word = section.part.get("type", "this part")
            raise section.refuse(f"{word} {self.use}; add the key {self.name}")
        return value


def read_items(
    raw: object,
    path: Path,
    reading: Reading,
    of: Form,
    wanted: str,
    size: int | None = None,
    at_least: int = 1,
) -> list[Any]:
    """The items of a list, each of one form; all their mistakes are noted."""
    if not isinstance(raw, (list, tuple)) or (not raw and at_least):
        raise reading.refuse(path, f"{shown(raw)} must be {wanted}")
    if len(raw) < at_least or (size is not None and len(raw) != size):
        raise reading.refuse(path, f"{len(raw)} entries; it must be {wanted}")
    return _read_all(enumerate(raw), path, reading, of)


def _read_all(
    items: Iterable[tuple[str | int, object]], path: Path, reading: Reading, of: Form
) -> list[Any]:
    """The values of some items by their keys. Raises NotedError once all mistakes are noted."""
    out: list[Any] = []
    failed: NotedError | None = None
    for key, item in items:
        try:
            out.append(of.read(item, (*path, key), reading))
        except NotedError as error:
            failed = error
    if failed is not None:
        raise failed
    return out
