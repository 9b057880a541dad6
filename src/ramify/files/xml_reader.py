"""What the readers of URDF and SDF share: mistakes at elements, inertia tensors, limits, and the
report of what was not needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, ClassVar, Final

import numpy as np
from lxml import etree

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.names import is_name
from ramify.documents.mistakes import Mistakes, Position
from ramify.documents.xml_text import parse_xml
from ramify.files.import_report import ImportReport
from ramify.files.xml_values import XmlValues
from ramify.model.build import LinkSpec, build
from ramify.model.floating_base import with_base
from ramify.model.frame import Frame
from ramify.model.loop import Loop
from ramify.model.robot import Robot

MAX_BYTES: Final = 8 << 20
"""Bytes of a file."""
UNLIMITED: Final = 1e9
"""A limit of so many radians or metres is no limit."""
SIZES: Final = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
}
"""Attributes of the shapes, and how many numbers each has."""
BASES: Final = ("fixed", "free", "free_euler", "planar")


class XmlReader(ABC):
    """Reads the robot of a document; ``FORMAT`` is its name in messages."""

    FORMAT: ClassVar[str]

    def __init__(self, root: etree._Element, file: str, report: ImportReport) -> None:
        self.root, self.file, self.report = root, file, report
        self.mistakes = Mistakes(file)
        self.values = XmlValues(self.mistakes, report)
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
            size, most = (n / 1e6 for n in (len(data), MAX_BYTES))
            raise ModelError(
                f"{file}: {size:.1f} MB; a {cls.FORMAT} file has at most {most:.1f} MB"
            )
        report = ImportReport(file)
        root = parse_xml(
            data, file, lambda line, text: report.note(f"line {line}", text, doubt=True)
        )
        reader = cls(root, file, report)
        return with_base(reader.robot("free"), base) if base == "planar" else reader.robot(base)

    def wrong(self, element: etree._Element, text: str) -> None:
        """Note a mistake at an element."""
        self.wrong_at(element.sourceline or 1, text)

    def wrong_at(self, line: int, text: str) -> None:
        self.mistakes.add((), text, at=Position(line, 0))

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
            listed = ", ".join(
                f"<{tag}>" + (f" × {n}" if n > 1 else "") for tag, n in self.unused.most_common(20)
            )
            self.report.ignored("elements", f"not needed for dynamics: {listed}")


def symmetric(moments: Sequence[float]) -> Array:
    """The tensor of xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def turned(tensor: Array, frame: Frame) -> Array:
    """A tensor of a frame, seen from the one around it."""
    found = frame.rotation @ tensor @ frame.rotation.T
    return 0.5 * (found + found.T)


def finite_limits(low: float, high: float) -> tuple[tuple[float, float], ...]:
    """A pair of limits, an end beyond ``UNLIMITED`` being infinite; () where both are."""
    low, high = low if low > -UNLIMITED else -math.inf, high if high < UNLIMITED else math.inf
    return ((low, high),) if math.isfinite(low) or math.isfinite(high) else ()
