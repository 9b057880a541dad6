"""What the readers of URDF and SDF share: numbers and frames from texts, mistakes at elements,
inertia tensors, limits, and the report of what was not needed.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any, ClassVar, Final

import numpy as np
from lxml import etree

from ramify.core.arrays import Array
from ramify.core.bounds import LARGEST, TOO_LARGE
from ramify.core.errors import ModelError
from ramify.core.names import is_name
from ramify.documents.mistakes import Mistakes, Position
from ramify.documents.xml_text import parse_xml
from ramify.files.import_report import ImportReport
from ramify.model.build import LinkSpec, build
from ramify.model.floating_base import with_base
from ramify.model.frame import Frame, beyond_a_turn, from_rpy
from ramify.model.loop import Loop
from ramify.model.robot import Robot

MAX_BYTES: Final = 8 << 20
"""Bytes of a file."""
UNLIMITED: Final = 1e9
"""A limit from this number of radians or metres on counts as none, and so does such a rating."""
SIZES: Final = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}
"""Attributes of the shapes, and how many numbers each has."""
BASES: Final = ("fixed", "free", "free_euler", "planar")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ENDLESS: Final = re.compile(r"[-+]?inf(?:inity)?", re.IGNORECASE)
_LONGEST: Final = 100

NumberTuple = tuple[float, ...]


class XmlValues:
    """Reads attributes. What is wrong is noted as a mistake, and the default or zero put in its
    place.
    """

    def __init__(self, mistakes: Mistakes, report: ImportReport) -> None:
        self.mistakes, self.report = mistakes, report

    def wrong(self, at: etree._Element | int, text: str) -> None:
        """Note a mistake at an element or a line."""
        line = at if isinstance(at, int) else at.sourceline or 1
        self.mistakes.add((), text, at=Position(line, 0))

    def number(
        self,
        element: etree._Element,
        key: str,
        who: str,
        default: float | None = None,
        endless: bool = False,
    ) -> float:
        """One number; with ``endless`` it may also be infinite, or of any size."""
        otherwise = None if default is None else (default,)
        return self.numbers(element, key, 1, who, otherwise, endless)[0]

    def numbers(
        self,
        element: etree._Element,
        key: str,
        count: int,
        who: str,
        default: NumberTuple | None = None,
        endless: bool = False,
    ) -> NumberTuple:
        """The ``count`` numbers of an attribute, with blanks between them."""
        written, otherwise = element.get(key), default or (0.0,) * count
        if written is not None:
            what = f"<{element.tag}> {key}"
            return self.read(element, what, written, count, who, otherwise, endless)
        if default is None:
            text = f'write {key}="{" ".join(["0"] * count)}" or what it is'
            self.wrong(element, f"{who}: <{element.tag}> has no {key}; {text}")
        return otherwise

    def read(
        self,
        element: etree._Element,
        what: str,
        text: str,
        count: int,
        who: str,
        otherwise: NumberTuple,
        endless: bool = False,
    ) -> NumberTuple:
        """The ``count`` numbers of a text; ``what`` names it in messages."""
        words = text.split() if len(text) <= _LONGEST * count else [text]
        if len(words) != count:
            need = "one number" if count == 1 else f"{count} numbers with blanks between them"
            self.wrong(element, f"{who}: {what}={quoted_text(text)} must be {need}{_advice(text)}")
            return otherwise
        faults = [_fault(word, endless) for word in words]
        for word, fault in zip(words, faults, strict=True):
            if fault:
                self.wrong(element, f"{who}: {what}: {quoted_text(word)} {fault}")
        return otherwise if any(faults) else tuple(map(float, words))

    def frame(self, origin: etree._Element | None, who: str) -> Frame:
        """The frame of an ``<origin xyz rpy/>``, the identity where there is none."""
        if origin is None:
            return Frame()
        zero = (0.0, 0.0, 0.0)
        xyz, rpy = (self.numbers(origin, key, 3, who, zero) for key in ("xyz", "rpy"))
        return self.turned(xyz, rpy, who)

    def turned(self, xyz: Sequence[float], rpy: Sequence[float], who: str) -> Frame:
        """A frame from its position and angles; angles of more than a turn are doubted, unless
        they are quarter turns.
        """
        if any(map(beyond_a_turn, rpy)):
            text = f"angles of {' '.join(f'{x:g}' for x in rpy)} rad are more than a turn"
            self.report.note(who, f"{text}; if they are degrees, convert them", doubt=True)
        return Frame(from_rpy(*rpy) if any(rpy) else np.eye(3), np.array(xyz))


def _fault(word: str, endless: bool) -> str:
    """What is wrong with a text that should be a number; empty where it is one."""
    if endless and _ENDLESS.fullmatch(word):
        return ""
    if not _NUMBER.fullmatch(word):
        why = "finite" if word.lower().lstrip("+-") in ("nan", "inf", "infinity") else "a number"
        return f"is not {why}; write it like -0.5 or 1e-3{_advice(word)}"
    return TOO_LARGE if abs(float(word)) > LARGEST and not endless else ""


def _advice(value: str) -> str:
    text = "this is an expression of xacro: expand the file first (xacro robot.xacro > robot.urdf)"
    return f"; {text}" if re.search(r"\$[({]", value) else ""


class XmlReader(XmlValues, ABC):
    """Reads the robot of a document; ``FORMAT`` is its name in messages."""

    FORMAT: ClassVar[str]

    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        super().__init__(Mistakes(file), report)
        self.root, self.file = root, file
        self.unused: Counter[str] = Counter()

    @abstractmethod
    def robot(self, base: str | None) -> Robot:
        """The robot on a base that is not "planar". Raises ModelError with all mistakes."""

    @classmethod
    def parse(cls, data: bytes | str, file: str, base: str | None) -> Robot:
        """The robot in a text."""
        if base is not None and base not in BASES:
            raise ModelError(f"base {base!r} must be one of {', '.join(BASES)}")
        data = data.encode() if isinstance(data, str) else data
        if len(data) > MAX_BYTES:
            size, most = (f"{n / 1e6:.1f} MB" for n in (len(data), MAX_BYTES))
            raise ModelError(f"{file}: {size}; a {cls.FORMAT} file has at most {most}")
        report = ImportReport(file)
        root = parse_xml(
            data, file, lambda line, text: report.note(f"line {line}", text, doubt=True)
        )
        _leave_default_namespace(root)
        reader = cls(root, file, report)
        return with_base(reader.robot("free"), base) if base == "planar" else reader.robot(base)

    def built(
        self,
        name: str | None,
        specs: Sequence[LinkSpec],
        gravity: Sequence[float],
        loops: Sequence[Loop],
        **notes: Any,
    ) -> Robot:
        """The robot of some links; the file's name where it has none that will do."""
        name = name or PurePath(self.file).stem
        source = f"{self.FORMAT} file {PurePath(self.file).name}"
        notes = {"source": source, "report": self.report, **notes}
        try:
            return build(name if is_name(name) else "robot", specs, gravity, None, notes, loops)
        except ModelError as error:
            raise ModelError(f"{self.file}: {error}") from None

    def report_unused(self) -> None:
        """Name the elements that were passed over."""
        if self.unused:
            common = self.unused.most_common(20)
            listed = ", ".join(f"<{tag}>" + (f" × {n}" if n > 1 else "") for tag, n in common)
            self.report.ignored("elements", f"not needed for dynamics: {listed}")


def _leave_default_namespace(root: etree._Element) -> None:
    """Take the namespace off the elements that have no prefix: a default ``xmlns`` says nothing."""
    for element in root.iter(etree.Element):
        if element.prefix is None and str(element.tag).startswith("{"):
            element.tag = etree.QName(element).localname


def quoted_text(text: str) -> str:
    """A text as messages quote it, cut where it is long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def some(names: Iterable[str], most: int = 8) -> str:
    """A few names, and how many more there are."""
    given = list(names)
    more = f" and {len(given) - most} more" if len(given) > most else ""
    return ", ".join(name[:60] for name in given[:most]) + more


def symmetric(moments: Sequence[float]) -> Array:
    """The tensor of xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def tensor_in_outer_frame(tensor: Array, frame: Frame) -> Array:
    """A tensor of a frame, seen from the one around it."""
    found = frame.rotation @ tensor @ frame.rotation.T
    return 0.5 * (found + found.T)


def finite_limits(low: float, high: float) -> tuple[tuple[float, float], ...]:
    """A pair of limits, an end beyond ``UNLIMITED`` being infinite; () where both are."""
    low, high = low if low > -UNLIMITED else -math.inf, high if high < UNLIMITED else math.inf
    return ((low, high),) if math.isfinite(low) or math.isfinite(high) else ()
