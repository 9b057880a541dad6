"""What an MJCF file may ask for, looked at before MuJoCo reads it: no DTD, no path out of its folder, no text that unfolds into millions."""

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

MAX_BYTES: Final = 32 << 20
MAX_FILES: Final = 100
MAX_COPIES: Final = 20_000
MAX_PIXELS: Final = 1 << 24
MAX_SIZE: Final = 1_000_000
"""Limits of an MJCF model: bytes of one file, files, what ``count`` makes, pixels of a texture or height field, sizes of arrays."""

_ROOTS: Final = ("mujoco", "mujocoinclude")
_MODELS: Final = ("include", "model")
_COPIERS: Final = ("replicate", "composite", "flexcomp")
_AREAS: Final = (("texture", "width", "height"), ("hfield", "ncol", "nrow"))
_NOT_FINITE: Final = re.compile(r"(?<![\w.])[+-]?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE)
_NAMES: Final = frozenset(["name", "class", "childclass", "file", "prefix", "model", "content_type", "data", "instance", "value", "key"])


def check_mjcf(path: str | os.PathLike[str]) -> etree._Element:
    """The root of an MJCF file that passed, with all it includes. Raises ModelError naming file and line of what did not."""
    main = Path(path)
    return _Gate(main.parent).file(main, os.fspath(path))


class _Gate:
    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder.resolve()
        self.seen: set[Path] = set()

    def file(self, path: Path, shown: str) -> etree._Element:
        self.seen.add(path.resolve())
        if len(self.seen) > MAX_FILES:
            raise ModelError(f"{shown}: the model includes more than {MAX_FILES} files")
        root = parse_xml(read_bytes(path, MAX_BYTES), shown)
        if root.tag == "robot":
            raise ModelError(f"{shown}: this is a URDF robot, not MJCF; name the file .urdf")
        if root.tag not in _ROOTS:
            raise ModelError(f"{shown}:{root.sourceline}: the root element is <{root.tag}>; that of an MJCF file is <mujoco>")
        for element in root.iter(etree.Element):
            self.element(element, path.parent, f"{shown}:{element.sourceline}")
        return root

    def element(self, element: etree._Element, beside: Path, where: str) -> None:
        for name, value in element.attrib.items():
            key, text = str(name), str(value)
            if key.startswith("file") or (element.tag == "compiler" and key.endswith("dir")):
                self.path(element, text, beside, where)
            elif key not in _NAMES and _NOT_FINITE.search(text):
                raise ModelError(f"{where}: {key}={text!r} of <{element.tag}> is not finite; give finite numbers")
            elif element.tag in ("size", "numeric") and _whole(text) > MAX_SIZE:
                raise ModelError(f"{where}: {key}={text!r} of <{element.tag}> is too large; at most {MAX_SIZE}")
        if element.tag in _COPIERS:
            copies = math.prod(_count(e) for e in (element, *element.iterancestors(*_COPIERS)))
            if copies > MAX_COPIES:
                raise ModelError(f"{where}: <{element.tag}> would make {copies} copies; at most {MAX_COPIES}")
        for tag, *sides in _AREAS:
            if element.tag == tag and math.prod(max(1, _whole(element.get(side, "1"))) for side in sides) > MAX_PIXELS:
                raise ModelError(f"{where}: this <{tag}> has more than {MAX_PIXELS} entries")

    def path(self, element: etree._Element, name: str, beside: Path, where: str) -> None:
        """A path below the model's folder; models are looked at in their turn."""
        candidates = {(base / name) for base in (self.folder, beside)} if inside(f"./{name}/x") and "://" not in name else set()
        if not candidates or not all(c.resolve().is_relative_to(self.home) for c in candidates):
            raise ModelError(f"{where}: <{element.tag}> names {name!r}, outside the folder of the model; keep all its files below that folder")
        if element.tag in _MODELS:
            for candidate in sorted(candidates):
                if candidate.is_file() and candidate.resolve() not in self.seen:
                    self.file(candidate, os.fspath(candidate))


def _whole(text: str) -> int:
    """A whole number; 0 where it is something else, which MuJoCo will refuse or which asks for nothing."""
    return int(text) if re.fullmatch(r"\s*\d{1,18}\s*", text) else 10**18 if re.fullmatch(r"\s*\d+\s*", text) else 0


def _count(element: etree._Element) -> int:
    return math.prod(max(1, _whole(part)) for part in (element.get("count") or "1").split())
