"""Readers of meshes against files written by hand, in every dialect that programs write: the same
shape, a pyramid on a square, with its colours.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from comparing import close

from ramify.view.meshes import READERS, read_dae, read_obj, read_stl

CORNERS = np.array([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [1, 1, 3]], dtype=float)
SIDES = [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
SQUARE = [(0, 3, 2), (0, 2, 1)]
TRIANGLES = CORNERS[np.array([*SIDES, *SQUARE])]
"""(6, 3, 3): their corners point by point, counter-clockwise from outside."""


def same(surface: tuple[Any, Any, Any], scale: float = 1.0, moved: Any = (0, 0, 0)) -> None:
    """The six triangles, in any order and from any corner, but each the same way round."""
    points, faces, paint = surface
    assert len(paint) == len(faces) == len(TRIANGLES)

    def turned(triangle: Any) -> tuple[Any, ...]:
        rows = [tuple(np.round(row, 9) + 0.0) for row in triangle]
        first = rows.index(min(rows))
        return tuple(rows[first:] + rows[:first])

    found = sorted(turned(triangle) for triangle in points[faces])
    close(found, sorted(turned(t) for t in scale * TRIANGLES + np.array(moved)), 0.0, 1e-6)


VERTICES = "\n".join(f"v {x:g} {y:g} {z:g}" for x, y, z in CORNERS) + "\n"
POLYGONS = [*SIDES, (0, 3, 2, 1)]
WAYS = {
    "from the first": lambda i: f"{i + 1}",
    "from the last": lambda i: f"{i - 5}",
    "with textures": lambda i: f"{i + 1}/{i + 1}",
    "with normals": lambda i: f"{i + 1}//1",
    "with both, from the last": lambda i: f"{i - 5}/-1/-1",
}


@pytest.mark.parametrize("way", list(WAYS))
def test_obj(way: str) -> None:
    faces = "\n".join("f " + " ".join(map(WAYS[way], polygon)) for polygon in POLYGONS)
    head = "# by hand\nmtllib none.mtl\no pyramid\ng one\ns off\n"
    same(read_obj(f"{head}{VERTICES}vn 0 0 1\nvt 0 0\n{faces}\n".encode()))
    same(read_obj(f"{head}{VERTICES}vn 0 0 1\nvt 0 0\n{faces}\n".replace("\n", "\r\n").encode()))


def test_obj_counts_back_from_where_the_face_stands() -> None:
    """Vertices that follow a face do not change which it means."""
    lines = [f"v {x:g} {y:g} {z:g} 0.1 0.2 0.3" for x, y, z in CORNERS]  # colours of vertices
    text = "\n".join(
        [*lines[:4], "f -4 -1 -2 -3", lines[4], *("f " + " ".join(str(i - 5) for i in side) for side in SIDES), "v 9 9 9"]
    )  # fmt: skip
    same(read_obj(text.encode()))


def test_obj_materials_of_faces() -> None:
    rows = [f"usemtl m{k}\nf " + " ".join(str(i + 1) for i in p) for k, p in enumerate(POLYGONS)]
    paint = read_obj((VERTICES + "\n".join(rows)).encode())[2]
    assert paint.tolist() == ["m0", "m1", "m2", "m3", "m4", "m4"]


def ascii_stl(name: str = "pyramid") -> str:
    facets = (
        "facet normal 0 0 0\n outer loop\n"
        + "".join(f"  vertex {x:e} {y:e} {z:e}\n" for x, y, z in triangle)
        + " endloop\nendfacet\n"
        for triangle in TRIANGLES
    )
    return f"solid {name}\n{''.join(facets)}endsolid {name}\n"


def binary_stl(head: bytes) -> bytes:
    rows = (struct.pack("<12fH", 0, 0, 0, *t.ravel(), 7) for t in TRIANGLES)
    return head.ljust(80, b"\0") + struct.pack("<I", len(TRIANGLES)) + b"".join(rows)


@pytest.mark.parametrize(
    "data",
    [
        ascii_stl().encode(),
        ascii_stl("").replace("\n", "\r\n").encode(),
        ("\n  " + ascii_stl("a b c")).encode(),
        binary_stl(b"by hand"),
        binary_stl(b"solid of a program that begins so all the same"),
        binary_stl(b"by hand") + b"more",
    ],
    ids=["ascii", "ascii, CRLF", "ascii, indented", "binary", "binary solid", "binary, longer"],
)
def test_stl(data: bytes) -> None:
    same(read_stl(data))
    assert set(read_stl(data)[2].tolist()) == {""}


def test_stl_that_is_cut_short() -> None:
    for end in (-1, 300, 83, 0):
        with pytest.raises(ValueError, match="cut short"):
            read_stl(binary_stl(b"by hand")[:end])


def dae(faces: str, node: str = "", asset: str = "", space: bool = True) -> bytes:
    numbers = " ".join(f"{x:g}" for x in CORNERS.ravel())
    xmlns = ' xmlns="http://www.collada.org/2005/11/COLLADASchema"' if space else ""
    return f"""<?xml version="1.0"?>
<COLLADA{xmlns} version="1.4.1"><asset>{asset}</asset>
<library_effects><effect id="e"><profile_COMMON><technique sid="c"><lambert><diffuse>
<color>1 0.5 0 1</color></diffuse></lambert></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="n"><float_array id="na" count="3">0 0 1</float_array></source>
<source id="p"><float_array id="pa" count="15">{numbers}</float_array></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
{faces}
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="a">{node}<instance_geometry url="#g">
<bind_material><technique_common><instance_material symbol="S" target="#m"/></technique_common>
</bind_material></instance_geometry></node></visual_scene></library_visual_scenes></COLLADA>
""".encode()


INPUT = '<input semantic="VERTEX" source="#v" offset="0"/>'
TWO = '<input semantic="NORMAL" source="#n" offset="0"/><input semantic="VERTEX" source="#v" offset="1"/>'
SIX = [*SIDES, *SQUARE]


def flat(polygons: Any, normals: bool = False) -> str:
    return " ".join((f"0 {i}" if normals else f"{i}") for polygon in polygons for i in polygon)


FACES = {
    "triangles": f'<triangles count="6" material="S">{INPUT}<p>{flat(SIX)}</p></triangles>',
    "triangles with normals": f'<triangles count="6" material="S">{TWO}<p>{flat(SIX, True)}</p></triangles>',
    "polylist": f'<polylist count="5" material="S">{INPUT}<vcount>3 3 3 3 4</vcount><p>{flat(POLYGONS)}</p></polylist>',
    "polygons": f'<polygons count="5" material="S">{INPUT}{"".join(f"<p>{flat([p])}</p>" for p in POLYGONS)}</polygons>',
    "two groups": f'<triangles count="4" material="S">{INPUT}<p>{flat(SIDES)}</p></triangles>'
    f'<polylist count="1" material="S">{TWO}<vcount>4</vcount><p>{flat([POLYGONS[-1]], True)}</p></polylist>',
}  # fmt: skip


@pytest.mark.parametrize("space", [True, False], ids=["namespace", "none"])
@pytest.mark.parametrize("kind", list(FACES))
def test_dae(kind: str, space: bool) -> None:
    found = read_dae(dae(FACES[kind], space=space))
    same(found)
    assert set(found[2].tolist()) == {"#ff8000"}


MOVES: dict[str, tuple[str, Any, Any]] = {
    "translate": ("<translate>1 2 3</translate>", np.eye(3), (1, 2, 3)),
    "rotate": ("<rotate>0 0 2 90</rotate>", [[0, -1, 0], [1, 0, 0], [0, 0, 1]], (0, 0, 0)),
    "scale": ("<scale>2 3 4</scale>", np.diag([2, 3, 4]), (0, 0, 0)),
    "mirror": ("<scale>1 1 -1</scale>", np.diag([1, 1, -1]), (0, 0, 0)),
    "matrix": ("<matrix>0 -1 0 5 1 0 0 6 0 0 1 7 0 0 0 1</matrix>", [[0, -1, 0], [1, 0, 0], [0, 0, 1]], (5, 6, 7)),
    "both": ("<translate>1 2 3</translate><scale>2 2 2</scale>", 2 * np.eye(3), (1, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("move", list(MOVES))
def test_dae_nodes_are_moved(move: str) -> None:
    """A mirror turns the faces round, so that they still look outward."""
    node, R, r = MOVES[move]
    asset = '<unit name="cm" meter="0.01"/><up_axis>Y_UP</up_axis>'
    points, faces, _ = read_dae(dae(FACES["triangles"], node, asset))
    close(points, 0.01 * (CORNERS @ np.array(R, dtype=float).T + np.array(r)), 0.0, 1e-12, "points")
    a, b, c = (points[faces[:, k]] for k in range(3))
    volume = np.einsum("ni,ni->n", a, np.cross(b, c)).sum() / 6.0
    assert volume == pytest.approx(1e-6 * 4.0 * abs(np.linalg.det(np.array(R))), rel=1e-9)


def test_every_reader_is_tested_here() -> None:
    assert {*READERS} == {".stl", ".obj", ".dae"}
