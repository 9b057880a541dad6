"""Meshes that a robot file names: never opened by its reader, drawn by the viewer."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from ramify.model.frame import Frame


class Mesh(NamedTuple):
    """A mesh to draw: its name as the file gives it (never opened here), its scale, its frame in
    the link's, and its colour "#rrggbb"; empty: none is given.
    """

    filename: str
    scale: tuple[float, ...]
    frame: Frame
    colour: str = ""


def inside(mesh: str) -> bool:
    """Whether the name of a mesh stays below its package (``package://name/…``) or below the file's
    folder.
    """
    scheme, colon, rest = mesh.partition("://")
    if colon and scheme != "package":
        return False
    path = (rest if colon else mesh).replace("\\", "/")
    parts = path.split("/")
    if not mesh.isprintable() or {"%", ":"} & set(path) or path.startswith(("/", "~")):
        return False
    if colon and parts[0] in (".", ".."):
        return False
    depths = accumulate(
        {"..": -1, ".": 0, "": 0}.get(part, 1) for part in (parts[1:] if colon else parts)
    )
    return all(depth >= 0 for depth in depths) and parts[-1] not in ("", ".", "..")
