"""What an MJCF file may ask for, checked before MuJoCo reads it.

No DTD, no path but relative ones, nothing but meshes and MJCF files outside the model's folder, no
number that is not finite, no text that unfolds into millions. Everything else is left to MuJoCo's
own parser. Pictures and files of height fields are not checked, for the reader never opens them.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from lxml import etree

from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.documents.reading import read_bytes
from ramify.documents.xml_text import parse_xml

MAX_BYTES: Final = 8 << 20
MAX_FILES: Final = 100
MAX_NAMES: Final = 8_000
"""Limits of the text: bytes of a file, files, places to look for what they name."""

MAX_ASSET: Final = 64 << 20
MAX_ASSETS: Final = 512 << 20
MAX_LATTICE: Final = 256 << 10
"""Bytes of a mesh, of all of them, and of one whose every vertex becomes a body."""

MAX_ELEMENTS: Final = 15_000
MAX_BODIES: Final = 3_000
MAX_COPIES: Final = 4_000
MAX_POINTS: Final = 2_000
MAX_KEYS: Final = 1_000
MAX_CELLS: Final = 1 << 24
MAX_VERTICES: Final = 40_000
MAX_NUMBERS: Final = 1_000_000
"""Limits of the whole model, replicates and attached models written out: elements, bodies, elements
that are copies, points of lattices, keyframes, cells of height fields, vertices of built-in meshes,
numbers of <numeric>.
"""

MAX_SIZE: Final = 10_000
SIZES: Final = {"nstack": 100_000_000, "memory": 1 << 30, "nkey": MAX_KEYS}
"""The largest attribute of <size>, and those with a limit of their own; nuser_... may be a tenth,
for each body has this many numbers.
"""

OUTSIDE: Final = {
    "include": (".xml",),
    "model": (".xml",),
    "mesh": (".stl", ".obj", ".msh"),
    "skin": (".skn",),
}
"""Suffixes of the files that an element may name outside the model's folder."""

_ROOTS: Final = ("mujoco", "mujocoinclude")
_MODELS: Final = ("include", "model")
_LATTICES: Final = ("composite", "flexcomp")
_NEVER_OPENED: Final = ("texture", "hfield")
_LONGEST_NAME: Final = 1000
_UNITS: Final = {unit: 1 << 10 * i for i, unit in enumerate(("", *"KMGTPE"))}
_MACHINE: Final = (
    "joint", "freejoint", "fixed", "spatial", "general", "motor", "position", "velocity",
    "intvelocity", "damper", "cylinder", "muscle", "adhesion", "dcmotor",
)  # fmt: skip
_LOSSES: Final = ("armature", "damping", "frictionloss", "stiffness")
_RANGES: Final = ("range", "actuatorfrcrange", "ctrlrange", "forcerange", "actrange")
_NOT_FINITE: Final = re.compile(r"(?<![\w.])[+-]?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE)
_NAMES: Final = (
    "name", "class", "childclass", "file", "prefix", "model", "content_type", "data", "instance",
    "value", "key",
)  # fmt: skip
_MOST: Final = {
    "copies of elements": MAX_COPIES,
    "points of lattices": MAX_POINTS,
    "bodies": MAX_BODIES,
    "keyframes": MAX_KEYS,
    "elements": MAX_ELEMENTS,
}


def check_mjcf(path: str | os.PathLike[str]) -> list[tuple[str, etree._Element]]:
    """Names and roots of an MJCF file that passed and of all that it includes, itself first. Raises
    ModelError naming file and line of what did not.
    """
    main = Path(path)
    gate = _Gate(main.parent)
    gate.file(main, os.fspath(path))
    gate.check_counts(os.fspath(path))
    for element, beside, where in gate.elements:
        gate.element(element, beside, where)
    return gate.roots


class _Gate:
    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder.resolve()
        self.visited: set[Path] = set()
        self.folders = {folder}
        self.elements: list[tuple[etree._Element, Path, str]] = []
        self.roots: list[tuple[str, etree._Element]] = []
        self.plain, self.factor = 0, 1
        self.totals: Counter[str] = Counter()
        self.names = 0

    def file(self, path: Path, shown: str) -> None:
        self.visited.add(path.resolve())
        if len(self.visited) > MAX_FILES:
            raise ModelError(f"{shown}: the model includes more than {MAX_FILES} files")
        root = parse_xml(read_bytes(path, MAX_BYTES), shown, lambda line, text: None)
        if root.tag == "robot":
            raise ModelError(f"{shown}: this is a URDF robot, not MJCF; name the file .urdf")
        if root.tag not in _ROOTS:
            text = f"the root element is <{root.tag}>; that of an MJCF file is <mujoco>"
            raise ModelError(f"{shown}:{root.sourceline}: {text}")
        self.roots.append((shown, root))
        self.count(root, shown)
        for element in root.iter(etree.Element):
            where = f"{shown}:{element.sourceline}"
            self.elements.append((element, path.parent, where))
            if element.tag == "compiler":
                given = [str(d) for k, d in element.attrib.items() if str(k).endswith("dir")]
                self.folders |= {base / d for d in given for base in (self.folder, path.parent)}
            if element.tag in _MODELS and "file" in element.attrib:
                for model in self.path(element, element.get("file", ""), path.parent, where):
                    if is_file(model) and model.resolve() not in self.visited:
                        self.check_outside(element, model, where)
                        self.file(model, os.fspath(model))

    def count(self, root: etree._Element, shown: str) -> None:
        """How much the text unfolds into: copies within copies, and models attached to models or
        included in a copy.
        """
        attached, included = 0, 1
        times: dict[etree._Element, int] = {}
        for element in root.iter(etree.Element):
            where = f"{shown}:{element.sourceline}"
            above = element.getparent()
            weight = 1 if above is None else times[above]
            copies = _whole(element, "count", where) if element.tag == "replicate" else 1
            times[element] = weight * max(1, copies)
            self.plain += 1
            self.totals["elements"] += weight
            if element.tag in ("body", "key"):
                self.totals["bodies" if element.tag == "body" else "keyframes"] += weight
            elif element.tag == "attach":
                attached += weight
            elif element.tag in _MODELS:
                included = max(included, weight)
            elif element.tag in _LATTICES:
                sizes = element.get("count", "").split()
                points = math.prod(max(1, _integer(size, "count", where)) for size in sizes)
                listed = f"{element.get('point', '')} {element.get('vertex', '')}".split()
                self.totals["points of lattices"] += max(points, len(listed) // 3) * weight
            if self.totals["elements"] > MAX_ELEMENTS:
                break
        self.factor *= included * max(1, attached)
        self.check_counts(shown)

    def check_counts(self, shown: str) -> None:
        """Refuse a model that is too large when all is written out."""
        totals = {what: number * self.factor for what, number in self.totals.items()}
        totals["copies of elements"] = totals["elements"] - self.plain
        for what, most in _MOST.items():
            if totals.get(what, 0) > most:
                text = f"the model would have {totals[what]} {what}; at most {most}"
                raise ModelError(f"{shown}: {text}")

    def add(self, what: str, number: int, most: int, where: str) -> None:
        """Count what has a limit for the whole model."""
        self.totals[what] += number
        if self.totals[what] > most:
            text = f"the model has more than {most} {what}; make them smaller or fewer"
            raise ModelError(f"{where}: {text}")

    def element(self, element: etree._Element, beside: Path, where: str) -> None:
        for name, value in element.attrib.items():
            key, text = str(name), str(value)
            if key.startswith("file"):
                if element.tag not in _NEVER_OPENED:
                    self.asset(element, self.path(element, text, beside, where), where)
            elif element.tag == "compiler" and key.endswith("dir"):
                self.path(element, text, beside, where)
            elif wrong := _wrong_attribute(element, key, text, where):
                raise ModelError(f"{where}: {key}={text[:200]!r} of <{element.tag}> {wrong}")
        if element.tag == "hfield":
            rows, columns = (max(1, _whole(element, side, where)) for side in ("nrow", "ncol"))
            self.add("cells of height fields", rows * columns, MAX_CELLS, where)
        elif element.tag == "numeric":
            count = max(1, _whole(element, "size", where))
            self.add("numbers of <numeric>", count, MAX_NUMBERS, where)
        elif element.tag == "mesh" and "params" in element.attrib:
            given = [_real(word, where) for word in element.get("params", "").split()]
            fine = math.ceil(min(max([0.0, *given]), 1e6))
            self.add("vertices of built-in meshes", fine**2, MAX_VERTICES, where)

    def asset(self, element: etree._Element, candidates: list[Path], where: str) -> None:
        """Refuse what a model may not open: anything but regular files below a limit of size."""
        largest = 0
        for path in candidates:
            try:
                info = path.stat()
                if stat.S_ISDIR(info.st_mode):
                    continue
                if not stat.S_ISREG(info.st_mode):
                    text = f"<{element.tag}> names {shown(path.name)}"
                    raise ModelError(f"{where}: {text}, which is not a regular file")
                largest = max(largest, info.st_size)
                self.check_outside(element, path, where)
            except OSError:  # there is none, or it cannot be read: MuJoCo reports it
                continue
        most = MAX_LATTICE if element.tag in _LATTICES else MAX_ASSET
        if largest > most:
            text = f"a file of {largest / 1e6:.1f} MB; at most {most / 1e6:.1f} MB"
            raise ModelError(f"{where}: <{element.tag}> names {text}")
        self.add("bytes of meshes", largest, MAX_ASSETS, where)

    def check_outside(self, element: etree._Element, path: Path, where: str) -> None:
        """Outside the model's folder (links followed) only meshes and MJCF files may be opened."""
        real = path.resolve()
        if real.is_relative_to(self.home):
            return
        allowed = OUTSIDE.get(str(element.tag), ())
        known = {path.suffix.lower(), real.suffix.lower()} <= set(allowed)
        if not known or "content_type" in element.attrib:
            what = f"only {', '.join(allowed)} files" if allowed else "nothing"
            text = f"<{element.tag}> names {shown(path.name)}, outside the folder of the model"
            raise ModelError(f"{where}: {text}; {what} may be read from there")

    def path(self, element: etree._Element, name: str, beside: Path, where: str) -> list[Path]:
        """What a name may stand for, whatever the compiler's settings."""
        self.names += len(self.folders)
        if self.names > MAX_NAMES:
            text = f"at most {MAX_NAMES} places are searched"
            raise ModelError(f"{where}: the model names too many files and folders; {text}")
        absolute = re.match(r"[/\\~]|[^/\\]*:", name)
        if len(name) > _LONGEST_NAME or not name.isprintable() or absolute:
            text = f"<{element.tag}> names {shown(name)}"
            raise ModelError(f"{where}: {text}; give a path relative to the model's folder")
        last = re.split(r"[/\\]", name)[-1]  # all that compiler strippath leaves
        return sorted({base / given for base in (beside, *self.folders) for given in (name, last)})


def is_file(path: Path) -> bool:
    """Whether there is a regular file; not where the name is one that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def _whole(element: etree._Element, key: str, where: str) -> int:
    """A whole attribute, 0 where it is missing."""
    given = element.get(key)
    return 0 if given is None else _integer(given, key, where)


def _wrong_attribute(element: etree._Element, key: str, text: str, where: str) -> str:
    """What is wrong with an attribute that names no file, among it data that MuJoCo takes and no
    machine has; "" if nothing is.
    """
    if key not in _NAMES and _NOT_FINITE.search(text):
        return "is not finite; give finite numbers"
    if element.tag == "size":
        most = SIZES.get(key, MAX_SIZE // 10 if key.startswith("nuser_") else MAX_SIZE)
        size = _integer(text, key, where, _UNITS if key == "memory" else {"": 1})
        return f"is too large; at most {most}" if size > most else ""
    if element.tag not in _MACHINE:
        return ""
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        return ""  # MuJoCo reports it
    if key in _LOSSES and numbers and numbers[0] < 0.0:
        return "must be ≥ 0"
    if key == "damping" and len(numbers) == 3:
        a, b, c = numbers
        if c < 0.0 or (b < 0.0 and b * b > 4.0 * a * c):
            return "would make energy at some speed"
    if key in _RANGES and len(numbers) == 2 and numbers[0] > numbers[1]:
        return "must have its lower end first"
    one_sided = len(numbers) == 2 and not numbers[0] <= 0.0 <= numbers[1]
    if one_sided and element.tag == "joint" and key == "actuatorfrcrange":
        return "must contain 0: a drive that is off gives no force"
    return "must not be 0: it would drive nothing" if key == "gear" and not any(numbers) else ""


def _integer(
    text: str, key: str, where: str, units: Mapping[str, int] = MappingProxyType({"": 1})
) -> int:
    """A whole number, written as nothing else can read it otherwise."""
    found = re.fullmatch(r"\s*([-+]?[0-9]{1,18})([A-Z]?)\s*", text, re.ASCII)
    if found is None or found[2] not in units:
        raise ModelError(f"{where}: {key}={text[:40]!r} must be a whole number")
    return int(found[1]) * units[found[2]]


def _real(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ModelError(f"{where}: {text[:40]!r} is not a number") from None
