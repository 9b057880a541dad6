"""URDF files with xacro macros, expanded by the ``xacro`` package (the extra ``ramify[xacro]``).

xacro evaluates expressions and reads the files that a macro includes: expand only files that you
trust.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from lxml import etree

from ramify.core.errors import ModelError


def first_macro(root: etree._Element) -> etree._Element | None:
    """The first element of xacro in a document."""
    return next((e for e in root.iter(etree.Element) if _is_macro(str(e.tag))), None)


def _is_macro(tag: str) -> bool:
    space, brace, _ = tag.rpartition("}")
    return "xacro" in space if brace else tag.startswith("xacro:")


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
