"""Meshes that a robot file names: found below its folder or package, read (STL, OBJ, DAE) with the
colours of their materials, and made small enough to draw.

A mesh that is missing, too large or not understood is left out with a note; it never stops a
drawing.
"""

from __future__ import annotations

import math
import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.model.frame import rotation_about
from ramify.model.robot import Robot
from ramify.model.shape import hex_colour
from ramify.view.geometry import Indices, Triangles, smooth_normals, thinned

MAX_BYTES: Final = 64 << 20
"""The largest file that is read."""
MOST: Final = 40_000
"""Triangles of all meshes of a robot together."""
FEWEST: Final = 200


Surface = tuple[Array, Indices, NDArray[np.str_]]
"""Points (n, 3), faces (m, 3), and the colour or the material of every face (m,)."""


class _UnreadError(Exception):
    """Why a mesh is left out."""


def robot_meshes(model: Robot, notes: list[str]) -> list[tuple[int, Triangles, str]]:
    """(body, triangles in the body's frame, colour) of every mesh of a robot; what is left out is
    said in ``notes``. The colour is "#rrggbb", of the mesh's own material, else the robot file's,
    else empty.
    """
    named = model.metadata.get("meshes", {})
    folder = model.metadata.get("folder")
    wanted = [(link, mesh) for link in named if link in model.attached for mesh in named[link]]
    if not wanted:
        return []
    if folder is None:
        why = "the robot does not know its file's folder"
        notes.append(f"{len(wanted)} meshes are not drawn: {why}")
        return []
    most = max(FEWEST, MOST // len(wanted))
    drawings, missing = [], []
    for link, mesh in wanted:
        place = model.attached[link]
        try:
            groups = _read(locate_mesh(mesh.filename, Path(folder)), most)
        except _UnreadError as reason:
            missing.append(f"{Path(mesh.filename).name}: {reason}")
            continue
        for points, faces, colour in groups:
            scaled = points * np.array(mesh.scale)
            turned = faces if math.prod(mesh.scale) > 0 else faces[:, ::-1]
            drawn = smooth_normals(scaled, turned).seen_from(place.frame @ mesh.frame)
            drawings.append((place.body, drawn, colour or mesh.colour))
    if missing:
        reasons = list(dict.fromkeys(missing))
        shown = "; ".join(reasons[:4]) + (" …" if len(reasons) > 4 else "")
        notes.append(f"{len(missing)} of {len(wanted)} meshes are not drawn: {shown}")
    return drawings


def locate_mesh(filename: str, folder: Path) -> Path:
    """The file of a mesh: below the robot's folder, or below its package: a folder around it or in
    ROS_PACKAGE_PATH.
    """
    scheme, colon, rest = filename.replace("\\", "/").partition("://")
    if not colon:
        return folder / scheme
    if scheme != "package":
        raise _UnreadError(f"{scheme}:// is not followed")
    package, _, path = rest.partition("/")
    around = [folder, *folder.parents]
    listed = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    roots = [parent for parent in around if parent.name == package]
    places = around + [Path(entry) for entry in listed if entry]
    for root in roots + [place / package for place in places]:
        if (root / path).is_file():
            return root / path
    raise _UnreadError(
        f"package {package!r} is not found around the robot's file or in ROS_PACKAGE_PATH"
    )


@cache
def _read(path: Path, most: int) -> list[tuple[Array, Indices, str]]:
    """Points (n, 3) and faces (m, 3) of a file for each colour in it, ``most`` faces at most."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise _UnreadError(f"{path.suffix or 'no suffix'}; {', '.join(READERS)} can be read")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _UnreadError(f"larger than {MAX_BYTES >> 20} MB")
        points, faces, paint = reader(path.read_bytes())
        if path.suffix.lower() == ".obj":
            known = _mtl_colours(path)
            paint = np.array([known.get(name, "") for name in paint.tolist()])
    except OSError as error:
        raise _UnreadError(str(error.strerror or error).lower()) from None
    except (ValueError, IndexError, KeyError, UnicodeDecodeError, OverflowError) as error:
        raise _UnreadError(f"not understood ({str(error)[:60]})") from None
    sound = len(faces) and np.isfinite(points).all()
    if not (sound and faces.min() >= 0 and faces.max() < len(points)):
        raise _UnreadError("no triangles in it, or wrong ones")
    found = []
    for colour in dict.fromkeys(paint.tolist()):
        own = faces[paint == colour]
        few = max(FEWEST // 2, most * len(own) // len(faces))
        found.append((*thinned(points, own, few), str(colour)))
    return found


def _mtl_colours(path: Path) -> dict[str, str]:
    """The diffuse colours of the materials that an OBJ file names, from files beside it."""
    colours: dict[str, str] = {}
    for line in path.read_text("utf-8", "replace").splitlines():
        head, _, name = line.strip().partition(" ")
        library = path.with_name(Path(name.strip()).name or "none")
        if head != "mtllib" or not library.is_file() or library.stat().st_size > MAX_BYTES:
            continue
        material = ""
        for row in library.read_text("utf-8", "replace").splitlines():
            word, _, rest = row.strip().partition(" ")
            material = rest.strip() if word == "newmtl" else material
            if word == "Kd":
                colours[material] = hex_colour([float(x) for x in rest.split()[:3]])
    return colours


def read_stl(data: bytes) -> Surface:
    """Binary or ASCII STL, which has no colours."""
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if len(data) == 84 + 50 * count or data.lstrip()[:5] != b"solid":
        if count < 0 or len(data) < 84 + 50 * count:
            raise ValueError("a binary STL file that is cut short")
        rows = np.frombuffer(
            data, np.dtype([("n", "<f4", 3), ("p", "<f4", (3, 3)), ("a", "<u2")]), count, 84
        )
        points = rows["p"].reshape(-1, 3).astype(np.float64)
    else:
        lines = data.decode("ascii", "replace").splitlines()
        words = [line.split()[1:4] for line in lines if line.strip().startswith("vertex")]
        points = np.array(words, dtype=np.float64).reshape(-1, 3)
    faces = np.arange(len(points) // 3 * 3).reshape(-1, 3)
    return points, faces, np.full(len(faces), "")


def read_obj(data: bytes) -> Surface:
    """Vertices and polygons of a Wavefront OBJ file, with the names of their materials."""
    points: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    material, paint = "", []
    for line in data.decode("utf-8", "replace").splitlines():
        head, _, rest = line.strip().partition(" ")
        if head == "v":
            points.append([float(word) for word in rest.split()[:3]])
        elif head == "f":
            corners = [int(word.split("/")[0]) for word in rest.split()]
            corners = [i - 1 if i > 0 else len(points) + i for i in corners]
            faces += [(corners[0], a, b) for a, b in pairwise(corners[1:])]
            paint += [material] * (len(corners) - 2)
        elif head == "usemtl":
            material = rest.strip()
    return (
        np.array(points, dtype=np.float64).reshape(-1, 3),
        np.array(faces, dtype=np.int64).reshape(-1, 3),
        np.array(paint, dtype=np.str_),
    )


def read_dae(data: bytes) -> Surface:
    """The triangles and polygons of a COLLADA file, where its scene puts them, with the diffuse
    colours of their materials; textures and animations are not read.
    """
    from ramify.documents.xml_text import parse_xml

    try:
        root = parse_xml(data, "mesh")
    except ModelError as error:
        raise ValueError(str(error)) from None
    for element in root.iter():  # names without their namespace
        if isinstance(element.tag, str):
            element.tag = element.tag.rpartition("}")[2]
    meshes = {
        geometry.get("id", ""): _dae_mesh(geometry)
        for geometry in root.iterfind("library_geometries/geometry")
    }
    unit = root.find("asset/unit")
    scale = float(unit.get("meter", "1")) if unit is not None else 1.0
    # <up_axis> is not heeded: programs that read URDF leave the axes as they are
    world = _pose(scale * np.eye(3))
    colours = _dae_colours(root)
    points: list[Array] = []
    faces: list[Indices] = []
    paint: list[str] = []

    def visit(node: object, pose: Array, depth: int) -> None:
        if depth > 64:
            raise ValueError("nodes nested too deeply")
        for child in node:  # type: ignore[attr-defined]
            if child.tag in _DAE_MOVES:
                pose = pose @ _DAE_MOVES[child.tag](_numbers(child.text))
            elif child.tag == "node":
                visit(child, pose, depth + 1)
            elif child.tag == "instance_geometry" and (child.get("url") or "#")[1:] in meshes:
                vertices, groups = meshes[(child.get("url") or "#")[1:]]
                bound = {
                    entry.get("symbol", ""): entry.get("target", "#")[1:]
                    for entry in child.iter("instance_material")
                }
                start = sum(map(len, points))
                for symbol, triangles in groups:
                    outward = np.linalg.det(pose[:3, :3]) > 0
                    faces.append((triangles if outward else triangles[:, ::-1]) + start)
                    paint.extend([colours.get(bound.get(symbol, symbol), "")] * len(triangles))
                points.append(vertices @ pose[:3, :3].T + pose[:3, 3])

    for scene in root.iterfind("library_visual_scenes/visual_scene"):
        visit(scene, world, 0)
    if not faces:
        raise ValueError("no geometry in its scene")
    return np.concatenate(points), np.concatenate(faces), np.array(paint, dtype=np.str_)


def _dae_colours(root: Any) -> dict[str, str]:
    """The diffuse colours of materials, by their id."""
    effects = {}
    for effect in root.iterfind("library_effects/effect"):
        diffuse = next((entry.find("color") for entry in effect.iter("diffuse")), None)
        if diffuse is not None:
            effects[effect.get("id", "")] = hex_colour([float(x) for x in diffuse.text.split()[:3]])
    return {
        material.get("id", ""): effects.get(entry.get("url", "#")[1:], "")
        for material in root.iterfind("library_materials/material")
        for entry in material.iterfind("instance_effect")
    }


def _dae_mesh(geometry: object) -> tuple[Array, list[tuple[str, Indices]]]:
    """Points, and the faces of each material."""
    mesh = geometry.find("mesh")  # type: ignore[attr-defined]
    if mesh is None:
        return np.zeros((0, 3)), []
    inputs = mesh.iterfind("vertices/input")
    source = next(e.get("source", "#")[1:] for e in inputs if e.get("semantic") == "POSITION")
    array = next(entry for entry in mesh.iterfind("source") if entry.get("id") == source)
    points = _numbers(array.findtext("float_array")).reshape(-1, 3)
    groups: list[tuple[str, Indices]] = []
    for kind in ("triangles", "polylist", "polygons"):
        for group in mesh.iterfind(kind):
            offsets = [
                (int(entry.get("offset", "0")), entry.get("semantic"))
                for entry in group.findall("input")
            ]
            stride = 1 + max(offset for offset, _ in offsets)
            at = next(offset for offset, semantic in offsets if semantic == "VERTEX")
            runs = [
                _numbers(p.text, np.int64).reshape(-1, stride)[:, at] for p in group.iterfind("p")
            ]
            if kind == "polylist":
                counts = _numbers(group.findtext("vcount"), np.int64)
                runs = np.split(runs[0], np.cumsum(counts)[:-1]) if len(counts) else []
            if kind == "triangles":
                faces = [run.reshape(-1, 3) for run in runs]
            else:
                fans = (run for run in runs if len(run) > 2)
                faces = [
                    np.stack([np.full(len(r) - 2, r[0]), r[1:-1], r[2:]], axis=1) for r in fans
                ]
            if faces:
                groups.append((group.get("material", ""), np.concatenate(faces)))
    return points, groups


def _numbers(text: str | None, kind: Any = np.float64) -> Any:
    return np.array((text or "").split(), dtype=kind)


def _pose(rotation: ArrayLike, position: ArrayLike = 0.0) -> Array:
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, position
    return pose


def _about(u: Array) -> Array:
    return _pose(rotation_about(u[:3] / np.linalg.norm(u[:3]), math.radians(u[3])))


_DAE_MOVES: Final = {
    "matrix": lambda numbers: numbers.reshape(4, 4),
    "translate": lambda numbers: _pose(np.eye(3), numbers),
    "scale": lambda numbers: _pose(np.diag(numbers)),
    "rotate": _about,
}

READERS: Final = {".stl": read_stl, ".obj": read_obj, ".dae": read_dae}
