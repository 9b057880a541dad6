"""URDF files with xacro macros, expanded by the ``xacro`` package (the extra ``ramify[xacro]``).

xacro evaluates expressions and reads the files that a macro includes: only files that end in
``.xacro`` are expanded, and you should trust them.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

from lxml import etree

from ramify.core.errors import ModelError
from ramify.core.messages import shown

_UNREAD: Final = ("visual", "collision", "gazebo", "transmission", "material", "sensor")
"""Elements of URDF in which an expression changes nothing that moves."""


def unexpanded(root: etree._Element) -> tuple[int, str] | None:
    """Line and text of the first attribute with an expression ``${…}`` where the robot needs a name
    or a number.
    """
    for value in root.xpath("descendant-or-self::*/@*[contains(., '${')]"):
        element = value.getparent()
        above = [element, *element.iterancestors()]
        if not any(macro_name(one) or one.tag in _UNREAD for one in above):
            text = f"<{element.tag}> {value.attrname}={shown(str(value))}"
            return element.sourceline or 1, text
    return None


def leftover(root: etree._Element) -> dict[str, tuple[int, int]]:
    """The elements of xacro that are not inside others, by name: the line of the first, and how
    many there are.
    """
    tags: dict[str, tuple[int, int]] = {}
    for element in root.iter(etree.Element):
        name = macro_name(element)
        if name and not any(macro_name(one) for one in element.iterancestors()):
            line, n = tags.get(name, (element.sourceline or 1, 0))
            tags[name] = line, n + 1
    return tags


def macro_name(element: etree._Element) -> str:
    """The name of an element of xacro without its prefix; "" for any other element."""
    space, _, name = str(element.tag).replace("}", ":").rpartition(":")
    return name if "xacro" in space else ""


def expanded(path: str | os.PathLike[str]) -> bytes:
    """The URDF text that a xacro file stands for. Raises ModelError where xacro is not installed or
    refuses the file.
    """
    file = os.fspath(path)
    if find_spec("xacro") is None:
        raise ModelError(
            f"{file} is a xacro file; install xacro (pip install 'ramify[xacro]') or expand it "
            "first (xacro robot.xacro > robot.urdf) and load the .urdf file"
        )
    import xacro

    try:
        text: str = xacro.process_file(file).toxml()
    except (Exception, SystemExit) as error:  # a file's own expressions raise what they like
        said = " ".join(str(error).split())[:300] or type(error).__name__
        hint = (
            '; declare xmlns:xacro="http://www.ros.org/wiki/xacro" in <robot>, or take the '
            "left-over tags out"
            if "unbound prefix" in said
            else ""
        )
        raise ModelError(f"{file}: xacro refuses it: {said}{hint}") from None
    return text.encode()
