"""Geoms of MJCF as shapes and meshes to draw, from MuJoCo's compiled arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np

from ramify.files.mesh import Mesh
from ramify.model.frame import Frame, from_quaternion
from ramify.model.shape import Shape, hex_colour

_SHAPES: Final[dict[int, tuple[str, Callable[[Any], tuple[float, ...]]]]] = {
    2: ("sphere", lambda s: (s[0],)),
    3: ("capsule", lambda s: (s[0], 2.0 * s[1])),
    5: ("cylinder", lambda s: (s[0], 2.0 * s[1])),
    6: ("box", lambda s: (2.0 * s[0], 2.0 * s[1], 2.0 * s[2])),
}
"""Geoms we can draw, by mjtGeom: MuJoCo gives half lengths."""
_GEOMS: Final = (
    "plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf"
)  # fmt: skip
_MESH: Final = 7
_HIDDEN: Final = 3
"""The first of the groups of geoms that MuJoCo does not show by default: those for collisions."""


def frame_of(position: Any, quaternion: Any) -> Frame:
    """A frame at a place, turned by a quaternion."""
    return Frame(from_quaternion(*(float(x) for x in quaternion)), np.array(position))


def touching(m: Any, off: frozenset[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(ngeom,): the geoms that can touch another one: by their bits, on bodies that move relative
    to each other and are not neighbours (unless the file lets these touch), or in a pair. ``off``:
    see ``switched_off``.
    """
    touches = np.zeros(m.ngeom, dtype=bool)
    if "contact" in off:
        return touches
    for pairs in (m.pair_geom1, m.pair_geom2):
        touches[np.asarray(pairs, dtype=int)] = True
    kinds = np.stack([m.geom_bodyid, m.geom_contype, m.geom_conaffinity], axis=1).astype(int)
    rows, of = np.unique(kinds, axis=0, return_inverse=True)
    body, gives, takes = rows.T
    weld = np.asarray(m.body_weldid, dtype=int)[body]
    above = np.asarray(m.body_weldid, dtype=int)[np.asarray(m.body_parentid, dtype=int)[weld]]
    apart = {(int(s) >> 16, int(s) & 0xFFFF) for s in m.exclude_signature}
    for i, (b, w, up) in enumerate(zip(body, weld, above, strict=True)):
        meets = ((gives[i] & takes) | (gives & takes[i]) != 0) & (weld != w)
        if w and "filterparent" not in off:
            meets &= (weld == 0) | ((weld != up) & (above != w))
        for first, second in apart:
            if b in (first, second):
                meets &= body != (second if b == first else first)
        if meets.any():
            touches |= np.ravel(of) == i
    return touches


class Geoms:
    """The geoms of a compiled model ``m``. ``meshes``: by body; ``dropped``: how many of a kind are
    not drawn. ``folder``: of the model's file; ``below``: where it keeps its meshes, which older
    releases of MuJoCo leave out of their names.
    """

    def __init__(self, m: Any, folder: Path, below: str) -> None:
        self.m, self.folder, self.below = m, folder, below
        self.meshes: dict[int, list[Mesh]] = {}
        self.dropped: Counter[str] = Counter()

    def shapes(self, b: int) -> tuple[Shape, ...]:
        m, shapes = self.m, []
        geoms = range(m.body_geomadr[b], m.body_geomadr[b] + m.body_geomnum[b])
        visible = [g for g in geoms if m.geom_group[g] < _HIDDEN]
        for g in visible or geoms:
            kind = int(m.geom_type[g])
            if kind == _MESH and (mesh := self.mesh(g)) is not None:
                self.meshes.setdefault(b, []).append(mesh)
                continue
            if kind not in _SHAPES:
                self.dropped[_GEOMS[kind] if kind < len(_GEOMS) else f"geom of type {kind}"] += 1
                continue
            shape, size_of = _SHAPES[kind]
            size = tuple(float(x) for x in size_of(m.geom_size[g]))
            frame = frame_of(m.geom_pos[g], m.geom_quat[g])
            shapes.append(Shape(shape, size, frame, self.colour(g)))
        return tuple(shapes)

    def mesh(self, g: int) -> Mesh | None:
        """The mesh of a geom, by the name of its file; MuJoCo has moved its points to their
        principal frame. None where the points are in the MJCF file itself.
        """
        m, i = self.m, int(self.m.geom_dataid[g])
        if i < 0 or m.mesh_pathadr[i] < 0:
            return None
        name = bytes(m.paths[m.mesh_pathadr[i] :]).split(b"\0", 1)[0].decode(errors="replace")
        if not (self.folder / name).is_file() and (self.folder / self.below / name).is_file():
            name = str(PurePath(self.below) / name)
        moved = frame_of(m.mesh_pos[i], m.mesh_quat[i])
        frame = frame_of(m.geom_pos[g], m.geom_quat[g]) @ moved.inverse()
        return Mesh(name, tuple(float(x) for x in m.mesh_scale[i]), frame, self.colour(g))

    def colour(self, g: int) -> str:
        """The colour of a geom's material or its own; empty for MuJoCo's default, a grey."""
        m, material = self.m, int(self.m.geom_matid[g])
        rgba = m.mat_rgba[material] if material >= 0 else m.geom_rgba[g]
        plain = material < 0 and np.allclose(rgba, (0.5, 0.5, 0.5, 1.0))
        return "" if plain else hex_colour(rgba.tolist())
