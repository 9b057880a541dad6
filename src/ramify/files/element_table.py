"""Tables of the elements of foreign formats: what becomes of each attribute and child of an element
when a file is read.

A format has one table. Whatever a file says that its table does not know may change the motion, so
that it is reported as such: a newer version of a format is never read in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from lxml import etree

from ramify.files.import_report import ImportReport

Fate = Literal["carried", "drawn", "harmless", "softness", "contact", "moves"]
FATES: Final[tuple[Fate, ...]] = ("carried", "drawn", "harmless", "softness", "contact", "moves")
"""What becomes of something in a file.

carried: it is part of the robot. drawn: it is for pictures alone. harmless: it changes nothing that
moves (names of solvers, sensors, users' own data). softness: how much a stop, a loop or friction
gives way, which is our own law here. contact: it belongs to contacts, which have laws of our own,
and is left out. moves: it changes the motion and is left out, with a warning.
"""


@dataclass(frozen=True)
class ElementRow:
    """The names of an element's attributes and children, by their fates. ``moves`` has the values
    with which a name changes nothing ("": with none); None: the reader itself finds out whether it
    does.
    """

    carried: str = ""
    drawn: str = ""
    harmless: str = ""
    softness: str = ""
    contact: str = ""
    moves: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def fates(self) -> dict[str, Fate]:
        """The fate of every name."""
        return {name: fate for fate in FATES for name in _names(getattr(self, fate))}


def _names(said: str | Mapping[str, str | None]) -> list[str]:
    return said.split() if isinstance(said, str) else list(said)


def whole_element(fate: Fate) -> ElementRow:
    """An element of one fate with all that is in it."""
    said: dict[str, Any] = {fate: {"*": None} if fate == "moves" else "*"}
    return ElementRow(**said)


class _Omission(NamedTuple):
    """A name in a document that is left out, with its fate; None: the table does not know it."""

    name: str
    fate: Fate | None
    line: int


class ElementTable:
    """The rows of a format by the tags of elements; ``parent/tag`` where a tag has several
    meanings. ``children``: whether rows also name children, or attributes alone. ``stand_ins``:
    roots of files that are included where their children belong.
    """

    def __init__(
        self, rows: Mapping[str, ElementRow], children: bool, stand_ins: tuple[str, ...] = ()
    ) -> None:
        self.rows, self.children, self.stand_ins = rows, children, stand_ins
        self._fates = {key: row.fates for key, row in rows.items()}

    def key(self, parent: str, element: etree._Element) -> str:
        """The key of an element's row. Where the parent stands for another element, as the root of
        an included file does, the first row that knows all its attributes.
        """
        tag = local(element)
        if parent in self.stand_ins:
            keys = [tag, *(key for key in self.rows if key.endswith(f"/{tag}"))]
            names = [str(name) for name in element.attrib]
            fits = (key for key in keys if all(self.fate(key, name) for name in names))
            return next(fits, tag)
        return f"{parent}/{tag}" if f"{parent}/{tag}" in self.rows else tag

    def fate(self, key: str, name: str) -> Fate | None:
        """What becomes of a name in an element; None where the table does not know."""
        fates = self._fates.get(key, {})
        return fates.get("*") or fates.get(name)

    def needless(self, key: str, element: etree._Element) -> bool:
        """Whether a child of an element can be passed over: the report does not name it."""
        tag = local(element)
        fate = self.fate(key, tag)
        if fate == "carried":
            inside = self._left_out(element, self.key(key, element), ())
            return all(part.fate == "softness" for part in inside)
        return fate not in (None, "moves")

    def report(
        self,
        root: etree._Element,
        report: ImportReport,
        file: str = "",
        leave_out: Sequence[etree._Element] = (),
    ) -> None:
        """Report all in a document that changes the motion and is left out, or that the table does
        not know; once for each name, with the first line and the number of places. One more line
        names all softness that is left out. ``file``: a name for the document, if it is not the one
        that is read; ``leave_out``: elements that are not part of the robot.
        """
        counts: Counter[tuple[str, Fate | None]] = Counter()
        lines: dict[tuple[str, Fate | None], int] = {}
        for name, fate, line in self._left_out(root, local(root), leave_out):
            counts[name, fate] += 1
            lines.setdefault((name, fate), line)
        for (name, fate), n in counts.items():
            times = f", {n} times" if n > 1 else ""
            why = "is left out" if fate else "is not known to this version, so it is left out"
            where = f"{file}{', ' * bool(file)}line {lines[name, fate]}"
            if fate != "softness":
                report.ignored(where, f"{name} {why}{times}", moves=True)
        if soft := [name for name, fate in counts if fate == "softness"]:
            where = f"{file}{', ' * bool(file)}softness"
            report.ignored(where, f"{', '.join(soft)}: stops, loops and friction have laws of ours")

    def _left_out(
        self, element: etree._Element, key: str, leave_out: Sequence[etree._Element]
    ) -> Iterator[_Omission]:
        """What is left out in an element."""
        line = element.sourceline or 1
        if key not in self.rows:
            yield _Omission(f"<{key[:40]}>", None, line)
            return
        if "*" in self._fates[key]:
            return
        neutral = self.rows[key].moves
        for name, value in element.attrib.items():
            yield from self._one(key, str(name).rpartition("}")[2], str(value), neutral, line)
        for child in element.iterchildren(etree.Element):
            tag = local(child)
            if "xacro" in str(child.tag) or child in leave_out:
                continue  # macros are reported by themselves
            if self.children:
                text = (child.text or "").strip()
                yield from self._one(key, tag, text, neutral, child.sourceline or 1, "<{}>")
            inner = self.key(key, child)
            text_alone = self.children and inner not in self.rows
            if not self.children or (self.fate(key, tag) == "carried" and not text_alone):
                yield from self._left_out(child, inner, leave_out)

    def _one(
        self,
        key: str,
        name: str,
        value: str,
        neutral: Mapping[str, str | None],
        line: int,
        said: str = "{}",
    ) -> Iterator[_Omission]:
        fate = self.fate(key, name)
        if fate is None:
            yield _Omission(f"{said.format(name[:40])} of <{key}>", None, line)
        elif fate == "softness":
            yield _Omission(f"{said.format(name)} of <{key}>", fate, line)
        elif fate == "moves" and neutral[name] is not None:
            unmoved = (neutral[name] or "").split()
            if not unmoved or not all(_among(word, unmoved) for word in value.split()):
                yield _Omission(f"{said.format(name)} {value[:40]} of <{key}>", fate, line)


def _among(word: str, values: list[str]) -> bool:
    """Whether a word is one of some values, as a text or as a number."""
    try:
        return word in values or float(word) in [float(x) for x in values if x[:1].isdigit()]
    except ValueError:
        return False


def local(element: etree._Element) -> str:
    """The tag of an element without its namespace."""
    return str(element.tag).replace("}", ":").rpartition(":")[2]
