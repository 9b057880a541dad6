"""Elements of a URDF file: the children that matter, and names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lxml import etree

from ramify.core.names import NAME, is_name
from ramify.files.import_report import ImportReport
from ramify.files.xml_values import XmlValues, shown

_USED: Final[Mapping[str, frozenset[str]]] = {
    "robot": frozenset(["link", "joint", "transmission"]),
    "link": frozenset(["inertial", "visual"]),
    "inertial": frozenset(["origin", "mass", "inertia"]),
    "joint": frozenset(["origin", "parent", "child", "axis", "limit", "dynamics", "mimic"]),
}


@dataclass(frozen=True)
class UrdfElements:
    """The elements of a file whose root is ``root``; ``unused`` counts those passed over."""

    root: etree._Element
    values: XmlValues
    report: ImportReport
    unused: Counter[str]

    def used(self, element: etree._Element) -> list[etree._Element]:
        """The children that matter here; the others are counted."""
        found = []
        for child in element:
            if child.tag in _USED[str(element.tag)]:
                found.append(child)
            elif isinstance(child.tag, str):
                self.unused[re.split("[:}]", child.tag)[-1][:40]] += 1
        return found

    def children(self, element: etree._Element, who: str) -> dict[str, etree._Element]:
        """The children that matter by their tags, each of which may stand once."""
        found: dict[str, etree._Element] = {}
        for child in self.used(element):
            if child.tag in found and child.tag != "visual":
                first = found[child.tag]
                text = f"a second <{child.tag}>; the first is in line {first.sourceline}"
                if dict(child.attrib) == dict(first.attrib) and not len(child) + len(first):
                    self.report.note(f"{who}, line {child.sourceline}", f"{text} and says the same")
                else:
                    self.values.note(child, f"{who}: {text}, keep one of them")
            found.setdefault(str(child.tag), child)
        return found

    def own_name(self, element: etree._Element, what: str, lines: dict[str, int]) -> str:
        """The name of a link or a joint, noted in ``lines``; empty where it is wrong or taken."""
        name = element.get("name", "")
        if not name:
            self.values.note(element, f"a {what} has no name; give every {what} a non-empty one")
        elif not is_name(name):
            self.values.note(element, f"a {what} is named {shown(name)}; {NAME}")
        elif name in lines:
            text = f"two {what}s are named {name!r}, the first in line {lines[name]}"
            self.values.note(element, f"{text}; names must differ")
        else:
            lines[name] = element.sourceline or 1
            return name
        return ""
