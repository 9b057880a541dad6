"""Geoms of MJCF as shapes that are drawn and collide, and meshes to draw, from MuJoCo's compiled
arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np

from ramify.core.names import fresh, is_name
from ramify.files.mesh import Mesh
from ramify.model.frame import Frame, from_quaternion
from ramify.model.shape import ALL_GROUPS, Shape, hex_colour

_SHAPES: Final[dict[int, tuple[str, Callable[[Any], tuple[float, ...]]]]] = {
    2: ("sphere", lambda s: (s[0],)),
    3: ("capsule", lambda s: (s[0], 2.0 * s[1])),
    5: ("cylinder", lambda s: (s[0], 2.0 * s[1])),
    6: ("box", lambda s: (2.0 * s[0], 2.0 * s[1], 2.0 * s[2])),
}
"""Geoms that are shapes here, by mjtGeom: MuJoCo gives half lengths."""
_PLANE, _FIELD = range(2)
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
    not drawn; ``passing``: how many of a kind touch something in MuJoCo and nothing here.
    ``folder``: of the model's file; ``below``: where it keeps its meshes, which older releases of
    MuJoCo leave out of their names. ``off``: see ``switched_off``; ``taken``: names of bodies and
    joints; ``unread``: height fields whose file is not opened.
    """

    def __init__(
        self, m: Any, folder: Path, below: str, off: frozenset[str], taken: Collection[str],
        unread: Collection[int],
    ) -> None:  # fmt: skip
        self.m, self.folder, self.below, self.unread = m, folder, below, unread
        self.meshes: dict[int, list[Mesh]] = {}
        self.dropped: Counter[str] = Counter()
        self.passing: Counter[str] = Counter()
        self.touches = touching(m, off)
        self.names = _geom_names(m, self.touches, set(taken))

    def of_body(self, b: int) -> range:
        """The geoms of a body."""
        first = int(self.m.body_geomadr[b])
        return range(first, first + int(self.m.body_geomnum[b]))

    def shapes(self, b: int) -> tuple[Shape, ...]:
        """The shapes of a body: those that MuJoCo shows (all, where it shows none), and those that
        collide. Meshes and what else has no shape here are kept aside.
        """
        geoms = self.of_body(b)
        visible = [g for g in geoms if self.m.geom_group[g] < _HIDDEN] or list(geoms)
        shapes = []
        for g in geoms:
            kind, drawn = int(self.m.geom_type[g]), g in visible
            shape = self.shape(g, drawn) if drawn or self.touches[g] else None
            if shape is not None:
                shapes.append(shape)
                self.passing[shape.kind] += bool(self.touches[g]) and shape.kind == "cylinder"
                continue
            mesh = self.mesh(g) if kind == _MESH and drawn else None
            name = _GEOMS[kind] if kind < len(_GEOMS) else f"geom of type {kind}"
            if mesh is not None:
                self.meshes.setdefault(b, []).append(mesh)
            elif drawn:
                self.dropped[name] += b > 0
            self.passing[name] += bool(self.touches[g])
        return tuple(shapes)

    def shape(self, g: int, drawn: bool = True) -> Shape | None:
        """A geom as a shape; None where there is no such shape, or it has no size."""
        m, kind = self.m, int(self.m.geom_type[g])
        heights: tuple[tuple[float, ...], ...] = ()
        if kind in _SHAPES:
            name, size_of = _SHAPES[kind]
            size = tuple(float(x) for x in size_of(m.geom_size[g]))
        elif kind == _PLANE and self.touches[g]:
            name, size = "plane", ()
        elif kind == _FIELD and self.touches[g]:
            name, (size, heights) = "height_field", self.height_field(int(m.geom_dataid[g]))
        else:
            return None
        if not all(x > 0.0 for x in size) or (kind == _FIELD and not heights):
            return None
        bits = [int(x[g]) & ALL_GROUPS for x in (m.geom_contype, m.geom_conaffinity)]
        group, mask = bits if self.touches[g] else (0, 0)
        frame = frame_of(m.geom_pos[g], m.geom_quat[g])
        if not self.touches[g]:
            return Shape(name, size, frame, self.colour(g))
        return Shape(
            name, size, frame, self.colour(g), self.names[g], drawn, group, mask,
            float(m.geom_friction[g][0]), 0.0, int(m.geom_priority[g]), int(m.geom_condim[g]) == 1,
            heights,
        )  # fmt: skip

    def height_field(self, i: int) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
        """Spacing and heights (nx, ny) of a height field; no heights where they are in a file."""
        m = self.m
        nrow, ncol = int(m.hfield_nrow[i]), int(m.hfield_ncol[i])
        x, y, top, _ = (float(size) for size in m.hfield_size[i])
        start = int(m.hfield_adr[i])
        rows = np.asarray(m.hfield_data[start : start + nrow * ncol], dtype=float)
        heights = top * rows.reshape(nrow, ncol).T
        spacing = 2.0 * x / (ncol - 1), 2.0 * y / (nrow - 1)
        return spacing, () if i in self.unread else tuple(map(tuple, heights.tolist()))

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


def _geom_names(m: Any, touches: np.ndarray[Any, np.dtype[np.bool_]], taken: set[str]) -> list[str]:
    """The names of the geoms that touch. Those without one, or with one that cannot be a name, get
    another where a pair or an exclude needs it.
    """
    needed = {int(g) for pairs in (m.pair_geom1, m.pair_geom2) for g in pairs}
    apart = {b for s in m.exclude_signature for b in (int(s) >> 16, int(s) & 0xFFFF)}
    names = [m.geom(g).name if touches[g] else "" for g in range(m.ngeom)]
    names = [name if is_name(name) else "" for name in names]
    taken |= set(names)
    for g in np.flatnonzero(touches).tolist():
        if not names[g] and (g in needed or int(m.geom_bodyid[g]) in apart):
            names[g] = fresh(f"geom{g}", taken)
            taken.add(names[g])
    return names
