"""What an MJCF file may ask for, looked at before MuJoCo reads it.

No DTD, no path out of its folder, no number that is not finite, no text that unfolds into millions.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Final

from lxml import etree

from ramify.errors import ModelError
from ramify.io.files import read_bytes
from ramify.io.urdf_values import inside
from ramify.io.xml_file import parse_xml

MAX_BYTES: Final = 8 << 20
MAX_FILES: Final = 100
MAX_NAMES: Final = 4_000
MAX_COPIES: Final = 20_000
MAX_PIXELS: Final = 1 << 24
MAX_SIZE: Final = 1_000_000
"""Limits of an MJCF model: bytes of a file, files, places to look, bodies and copies, pixels of a picture, sizes of arrays."""

_ROOTS: Final = ("mujoco", "mujocoinclude")
_MODELS: Final = ("include", "model")
_COPIERS: Final = ("replicate", "composite", "flexcomp")
_AREAS: Final = (("texture", "width", "height"), ("hfield", "ncol", "nrow"))
_NOT_FINITE: Final = re.compile(r"(?<![\w.])[+-]?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE)
_NAMES: Final = frozenset(
    ["name", "class", "childclass", "file", "prefix", "model", "content_type", "data", "instance", "value", "key"]
)


def check_mjcf(path: str | os.PathLike[str]) -> etree._Element:
    """The root of an MJCF file that passed, with all it includes. Raises ModelError naming file and line of what did not."""
    main = Path(path)
    gate = _Gate(main.parent)
    root = gate.file(main, os.fspath(path))
    for element, beside, where in gate.elements:
        gate.element(element, beside, where)
    return root


class _Gate:
    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder.resolve()
        self.seen: set[Path] = set()
        self.folders = {folder}
        self.elements: list[tuple[etree._Element, Path, str]] = []
        self.copies = self.bodies = 1
        self.names = 0

    def file(self, path: Path, shown: str) -> etree._Element:
        self.seen.add(path.resolve())
        if len(self.seen) > MAX_FILES:
            raise ModelError(f"{shown}: the model includes more than {MAX_FILES} files")
        root = parse_xml(read_bytes(path, MAX_BYTES), shown)
        if root.tag == "robot":
            raise ModelError(f"{shown}: this is a URDF robot, not MJCF; name the file .urdf")
        if root.tag not in _ROOTS:
            raise ModelError(f"{shown}:{root.sourceline}: the root element is <{root.tag}>; that of an MJCF file is <mujoco>")
        self.count(root, shown)
        for element in root.iter(etree.Element):
            where = f"{shown}:{element.sourceline}"
            self.elements.append((element, path.parent, where))
            if element.tag == "compiler":
                self.folders |= {
                    base / str(d)
                    for k, d in element.attrib.items()
                    if str(k).endswith("dir")
                    for base in (self.folder, path.parent)
                }
            if element.tag in _MODELS and "file" in element.attrib:
                for model in self.path(element, element.get("file", ""), path.parent, where):
                    if model.is_file() and model.resolve() not in self.seen:
                        self.file(model, os.fspath(model))
        return root

    def count(self, root: etree._Element, shown: str) -> None:
        """How much the text may unfold into: copies within copies, and models attached to models."""
        most = 1
        for element in root.iter(*_COPIERS):
            most = max(most, math.prod(_count(e) for e in (element, *element.iterancestors(*_COPIERS))))
        self.copies *= most * max(1, sum(1 for _ in root.iter("attach")))
        self.bodies += sum(1 for _ in root.iter("body"))
        if self.copies > MAX_COPIES or self.bodies > MAX_COPIES:
            raise ModelError(
                f"{shown}: the model would have {max(self.copies, self.bodies)} bodies or copies; at most {MAX_COPIES}"
            )

    def element(self, element: etree._Element, beside: Path, where: str) -> None:
        for name, value in element.attrib.items():
            key, text = str(name), str(value)
            if key.startswith("file") or (element.tag == "compiler" and key.endswith("dir")):
                self.path(element, text, beside, where)
            elif key not in _NAMES and _NOT_FINITE.search(text):
                raise ModelError(f"{where}: {key}={text!r} of <{element.tag}> is not finite; give finite numbers")
            elif element.tag in ("size", "numeric") and _whole(text) > MAX_SIZE:
                raise ModelError(f"{where}: {key}={text!r} of <{element.tag}> is too large; at most {MAX_SIZE}")
        for tag, *sides in _AREAS:
            if element.tag == tag and math.prod(max(1, _whole(element.get(side, "1"))) for side in sides) > MAX_PIXELS:
                raise ModelError(f"{where}: this <{tag}> has more than {MAX_PIXELS} entries")

    def path(self, element: etree._Element, name: str, beside: Path, where: str) -> list[Path]:
        """What a name may stand for: paths below the model's folder, whatever the compiler's settings."""
        self.names += len(self.folders)
        if self.names > MAX_NAMES:
            raise ModelError(f"{where}: the model names too many files and folders; at most {MAX_NAMES} places are looked at")
        candidates = sorted({base / name for base in (beside, *self.folders)})
        if not (inside(f"./{name}/x") and "://" not in name and all(self.below(c) for c in candidates)):
            told = f"<{element.tag}> names {name[:200]!r}, outside the folder of the model"
            raise ModelError(f"{where}: {told}; keep all its files below that folder")
        return candidates

    def below(self, path: Path) -> bool:
        """Whether a path, its links followed, stays below the folder of the model."""
        try:
            return path.resolve().is_relative_to(self.home) and len(path.name) < 256
        except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
            return False


def _whole(text: str) -> int:
    """A whole number; 0 where it is something else, which MuJoCo will refuse or which asks for nothing."""
    return int(text) if re.fullmatch(r"\s*\d{1,18}\s*", text) else 10**18 if re.fullmatch(r"\s*\d+\s*", text) else 0


def _count(element: etree._Element) -> int:
    return math.prod(max(1, _whole(part)) for part in (element.get("count") or "1").split())
