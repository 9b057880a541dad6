"""Films and pictures: what the renderer draws against closed forms, and the files it makes."""

from __future__ import annotations

import math
import signal
import subprocess
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

import ramify as rf
from ramify.api.result import Result
from ramify.files.urdf import parse_urdf
from ramify.files.urdf_writer import to_urdf
from ramify.model.frame import Frame, from_rpy
from ramify.model.shape import Shape
from ramify.view import raster
from ramify.view.film import Studio, picture, still
from ramify.view.geometry import Triangles, arrow, shape_triangles, smooth_normals, thinned
from ramify.view.meshes import read_dae, read_obj, read_stl, robot_meshes
from ramify.view.robot_solids import upright
from ramify.view.scene import PLAIN, make_scene


def volume(found: Triangles) -> float:
    """By the divergence theorem; negative where faces look inwards, wrong where the surface has
    holes.
    """
    a, b, c = np.moveaxis(found.points[found.faces], 1, 0)
    return float((a * np.cross(b, c)).sum() / 6.0)


SOLIDS = [
    (Shape("box", (1.0, 2.0, 3.0)), 6.0, 1e-12),
    (Shape("cylinder", (0.5, 2.0)), math.pi * 0.25 * 2.0, 0.02),
    (Shape("sphere", (0.7,)), 4.0 / 3.0 * math.pi * 0.343, 0.04),
    (Shape("capsule", (0.3, 1.5)), math.pi * 0.09 * 1.5 + 4.0 / 3.0 * math.pi * 0.027, 0.03),
]


@pytest.mark.parametrize(
    ("shape", "expected", "tolerance"), SOLIDS, ids=lambda x: getattr(x, "kind", None)
)
def test_solids_are_closed_and_look_outwards(
    shape: Shape, expected: float, tolerance: float
) -> None:
    frame = Frame(from_rpy(0.3, -0.4, 1.0), np.array([1.0, -2.0, 0.5]))
    found = shape_triangles(Shape(shape.kind, shape.size, frame))
    assert volume(found) == pytest.approx(expected, rel=tolerance)
    assert np.allclose(np.linalg.norm(found.normals, axis=1), 1.0)
    a, b, c = np.moveaxis(found.points[found.faces], 1, 0)
    own = np.cross(b - a, c - a)
    assert ((own * found.normals[found.faces].mean(axis=1)).sum(axis=1) > 0.0).all()


def test_the_arrow_has_unit_length() -> None:
    assert arrow().points[:, 2].min() == 0.0
    assert arrow().points[:, 2].max() == 1.0
    assert volume(arrow()) > 0.0


def drawn(lens: raster.Lens, *facets: raster.Facets, compile: bool = True) -> Any:
    """The picture (h, w, 3) before the light sky alone."""
    settings = raster.shading_settings(lens, raster.LOOKS["light"], np.zeros(3), 1.0, -1e6, 1.0)
    canvas = raster.Canvas(lens.width, lens.height, compile)
    found = canvas.picture(settings, facets)[..., :3].astype(int)
    assert np.ptp(canvas.picture(settings, []), axis=(0, 1)).max() == 0  # nothing is left behind
    return found


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "NumPy"])
def test_a_ball_covers_its_disc(compile: bool) -> None:
    """Seen from a distance d, a ball of radius r is a disc of the angular radius asin(r / d)."""
    lens = raster.Lens.around(np.zeros(3), 1.0, 0.3, 0.4, 203, 201)
    ball = shape_triangles(Shape("sphere", (0.25,)), around=24 if compile else 16)
    seen, faces = lens.pixels(ball.points), ball.faces
    black = drawn(lens, raster.facets(lens, seen, faces, (0.0, 0.0, 0.0)), compile=compile)
    sky = black[0, 0, 0]
    share = 1.0 - black[..., 0] / sky
    radius = lens.focus * math.tan(math.asin(0.25 / raster.DISTANCE))
    assert share.sum() == pytest.approx(math.pi * radius**2, rel=0.04)
    y, x = np.nonzero(share)
    x, y = x + 0.5 - 101.5, y + 0.5 - 100.5
    assert np.hypot(x, y).max() < radius + 1.0
    assert abs(x.mean()) < 0.5
    assert abs(y.mean()) < 0.5
    assert 0.1 < (share > 0.01).sum() / radius - (share > 0.99).sum() / radius < 12.0  # soft rim
    half = np.full((len(faces), 3), 0.5)
    lit = drawn(lens, raster.facets(lens, seen, faces, half, ball.normals), compile=compile)
    rows = np.arange(201) - 100.5
    whole = share > 0.99
    top, bottom = (
        lit[whole & side[:, None]].mean() for side in (rows < -0.6 * radius, rows > 0.6 * radius)
    )
    assert top > bottom + 25.0  # lit from above


def test_compiled_pictures_are_those_of_numpy() -> None:
    """Shadow, floor, arrows, trail and robot."""
    run = rf.scenario("biped_step").run()
    studio = Studio(run, 150, 90, "dark", trail="trunk")
    fast = studio.shoot(len(run) // 2).astype(int)
    studio.canvas = raster.Canvas(150, 90, compile=False)
    slow = studio.shoot(len(run) // 2).astype(int)
    assert (np.abs(fast - slow) > 1).mean() < 1e-3  # samples on an edge may go either way
    assert len(np.unique(fast.reshape(-1, 3), axis=0)) > 300


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "NumPy"])
def test_nearer_triangles_hide_farther_ones(compile: bool) -> None:
    lens = raster.Lens.around(np.zeros(3), 1.0, 0.0, 0.0, 200, 200)  # looks along -x
    square = np.array([[0.0, -0.2, -0.2], [0.0, 0.2, -0.2], [0.0, 0.2, 0.2], [0.0, -0.2, 0.2]])
    ahead = np.array([0.3, 0.0, 0.0])
    seen = lens.pixels(np.concatenate([square - ahead, 0.5 * square + ahead]))
    faces = np.array([[4, 5, 6], [4, 6, 7], [0, 1, 2], [0, 2, 3]])  # the nearer one is given first
    red, blue = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    found = drawn(
        lens, raster.facets(lens, seen, faces, np.array([red, red, blue, blue])), compile=compile
    )
    assert (found[100, 100] == [255, 0, 0]).all()
    assert (found == [0, 0, 255]).all(axis=2).sum() > 1000
    behind = raster.facets(lens, lens.pixels(square + 8.0 * ahead), faces[2:], (0.0, 0.0, 0.0))
    assert len(behind.edges) == 0


@pytest.mark.parametrize("compile", [True, False], ids=["compiled", "NumPy"])
def test_triangles_that_share_an_edge_leave_no_gap(compile: bool) -> None:
    lens = raster.Lens.around(np.zeros(3), 1.0, 0.0, 0.0, 110, 110)
    rng = np.random.default_rng(1)
    nodes = np.stack(np.meshgrid(*[10.0 * np.arange(12)] * 2, indexing="ij"), axis=-1)
    nodes[1:-1, 1:-1] += rng.uniform(-3, 3, (10, 10, 2))
    seen = np.concatenate([nodes.reshape(-1, 2).T, np.ones((1, 144))])
    corner = (12 * np.arange(11)[:, None] + np.arange(11)).ravel()
    faces = np.concatenate(
        [np.stack([corner, corner + 12, corner + 13], axis=1),
         np.stack([corner, corner + 13, corner + 1], axis=1)]
    )  # fmt: skip
    assert (
        drawn(lens, raster.facets(lens, seen, faces, (0.0, 0.0, 0.0)), compile=compile) == 0
    ).all()


# ---- scenes ----


def test_every_built_in_robot_can_be_drawn() -> None:
    for name in rf.robots():
        shot = Studio(still(rf.load(name)), 96, 72).shoot(0, words=False)
        empty = np.abs(shot.astype(int) - shot[0, 0]).max(axis=2) < 12
        assert 0.005 < 1.0 - empty.mean() < 0.9, name


def test_gravity_points_down() -> None:
    for name in ("kuka_kr5", "two_link", "redysim_pppr"):
        m = rf.load(name)
        assert np.allclose(upright(m) @ np.array(m.gravity), [0.0, 0.0, -9.81])


def test_links_whose_joints_meet_are_drawn_through_their_mass() -> None:
    """A leg of two parts: both joints of a part are at its origin."""
    leg = rf.Builder("leg")
    leg.link("cylinder", mass=1.0, com=(0, 0, 0.25))
    leg.link("piston", "cylinder", "prismatic", mass=1.0, com=(0, 0, -0.25))
    scene = make_scene(leg.model())
    reach = [np.ptp(part.triangles.points[:, 2]) for part in scene.parts if part.kind == "link"]
    assert min(reach) > 0.5


def test_robots_without_shapes_get_rods_and_joints() -> None:
    builder = rf.Builder("bare").link("a", mass=1.0, com=(0.5, 0, 0), inertia=(0, 0.1, 0.1))
    builder.link("b", "a", "prismatic", at=(1, 0, 0), axis=(1, 0, 0), mass=1.0, com=(0.2, 0, 0))
    builder.link("c", "b", "spherical", at=(0.4, 0, 0), mass=1.0)
    scene = make_scene(builder.model())
    assert {(part.body, part.kind) for part in scene.parts} >= {
        (0, "link"),
        (0, "joint"),
        (1, "link"),
        (1, "joint"),
        (2, "link"),
        (2, "joint"),
    }
    rod = next(part.triangles for part in scene.parts if (part.body, part.kind) == (0, "link"))
    assert rod.points[:, 0].max() == pytest.approx(1.0, abs=0.05)  # as far as the joint it carries


# ---- meshes ----

CUBE = [[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def obj_cube() -> bytes:
    rows = [f"v {x} {y} {z}" for x, y, z in CUBE] + [
        "f " + " ".join(f"{i + 1}//1" for i in side) for side in SIDES
    ]
    return "\n".join(["# a cube", *rows]).encode()


def stl_cube(binary: bool) -> bytes:
    points, faces, _ = read_obj(obj_cube())
    if binary:
        rows = np.zeros(len(faces), np.dtype([("n", "<f4", 3), ("p", "<f4", (3, 3)), ("a", "<u2")]))
        rows["p"] = points[faces]
        return b"solid it is not".ljust(80) + len(faces).to_bytes(4, "little") + rows.tobytes()
    lines = ["solid cube"]
    for face in points[faces]:
        lines += [
            "facet normal 0 0 0",
            " outer loop",
            *(f"  vertex {x} {y} {z}" for x, y, z in face),
            " endloop",
            "endfacet",
        ]
    return "\n".join([*lines, "endsolid cube"]).encode()


def dae_cube() -> bytes:
    numbers = " ".join(f"{x} {y} {z}" for x, y, z in CUBE)
    corners = " ".join(f"{i} 0" for side in SIDES for i in side)
    return f"""<?xml version="1.0"?><COLLADA xmlns="urn:x" version="1.4.1"><asset><unit meter="0.5"/></asset><library_geometries>
    <geometry id="g"><mesh><source id="p"><float_array count="24">{numbers}</float_array></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <polylist count="6"><input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#n" offset="1"/>
    <vcount>4 4 4 4 4 4</vcount><p>{corners}</p></polylist></mesh></geometry></library_geometries>
    <library_visual_scenes><visual_scene><node><translate>0 0 2</translate><rotate>0 0 1 90</rotate>
    <instance_geometry url="#g"/></node></visual_scene></library_visual_scenes></COLLADA>""".encode()


@pytest.mark.parametrize(
    ("points", "faces", "size", "corner"),
    [
        (*read_obj(obj_cube())[:2], 1.0, (0.0, 0.0, 0.0)),
        (*read_stl(stl_cube(True))[:2], 1.0, (0.0, 0.0, 0.0)),
        (*read_stl(stl_cube(False))[:2], 1.0, (0.0, 0.0, 0.0)),
        (*read_dae(dae_cube())[:2], 0.5, (-0.5, 0.0, 1.0)),
    ],
    ids=["obj", "binary stl", "ascii stl", "dae"],
)
def test_meshes_are_read(points: Any, faces: Any, size: float, corner: tuple[float, ...]) -> None:
    assert np.allclose(points.min(axis=0), corner)
    assert np.allclose(np.ptp(points, axis=0), size)
    assert volume(smooth_normals(*thinned(points, faces, 100))) == pytest.approx(size**3)


def test_fine_meshes_are_thinned() -> None:
    ball = shape_triangles(Shape("sphere", (1.0,)), around=200)
    points, faces = thinned(ball.points, ball.faces, 2000)
    assert 500 < len(faces) <= 2000
    assert volume(Triangles(points, points, faces)) == pytest.approx(4.0 / 3.0 * math.pi, rel=0.05)


def test_materials_of_a_urdf_file(tmp_path: Path) -> None:
    """A visual's own colour, one that the robot defines, those of MTL and COLLADA files, and none;
    what a mesh file says goes before what the URDF file says.
    """
    red = '<material name="red"><color rgba="1 0 0 1"/></material>'
    green = '<material name="green"><color rgba="0 1 0 1"/></material>'
    effect = '<effect id="e"><phong><diffuse><color>0 0 1 1</color></diffuse></phong></effect>'
    blue = dae_cube().replace(
        b"<library_visual_scenes>",
        f'<library_effects>{effect}</library_effects><library_materials><material id="m">'
        '<instance_effect url="#e"/></material></library_materials><library_visual_scenes>'.encode(),
    )
    blue = blue.replace(b"<polylist ", b'<polylist material="s" ').replace(
        b'<instance_geometry url="#g"/>',
        b'<instance_geometry url="#g"><bind_material><technique_common><instance_material '
        b'symbol="s" target="#m"/></technique_common></bind_material></instance_geometry>',
    )
    (tmp_path / "blue.dae").write_bytes(blue)
    half = obj_cube().decode().splitlines()
    half = ["mtllib two.mtl", *half[:9], "usemtl a", *half[9:12], "usemtl b", *half[12:]]
    (tmp_path / "two.obj").write_text("\n".join(half))
    (tmp_path / "two.mtl").write_text("newmtl a\nKd 1 1 0\nnewmtl b\nNs 3\nKd 0 1 1\n")
    box = '<geometry><box size="1 1 1"/></geometry>'
    links = [
        f"{box}{red}", f'{box}<material name="green"/>', box,
        f'<geometry><mesh filename="blue.dae"/></geometry>{red}',
        '<geometry><mesh filename="two.obj"/></geometry>',
    ]  # fmt: skip
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    text = "".join(
        f'<link name="l{k}">{mass}<visual>{part}</visual></link><joint name="j{k}" '
        f'type="continuous"><parent link="base"/><child link="l{k}"/></joint>'
        for k, part in enumerate(links)
    )
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{green}<link name="base"/>{text}</robot>')
    m = rf.load(tmp_path / "r.urdf")
    scene = make_scene(m)
    paints = [{p.paint for p in scene.parts if (p.body, p.kind) == (b, "link")} for b in range(5)]
    assert paints == [{"#ff0000"}, {"#00ff00"}, {""}, {"#0000ff"}, {"#ffff00", "#00ffff"}]
    assert scene.painted
    assert scene.colour(next(p for p in scene.parts if p.body == 2)) == PLAIN
    again = parse_urdf(to_urdf(m))
    assert [body.shapes[0].colour for body in again.bodies[:3]] == ["#ff0000", "#00ff00", ""]
    assert again.metadata["meshes"]["l3"][0].colour == "#ff0000"


def test_meshes_and_colours_of_an_mjcf_file(tmp_path: Path) -> None:
    """Where MuJoCo has them, though it moves the points of a mesh; what it hides is not drawn."""
    import mujoco

    corner = b"v 0 0 0\nv 2 0 0\nv 0 1 0\nv 0 0 0.5\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "corner.obj").write_bytes(corner)
    file = tmp_path / "r.xml"
    file.write_text("""<mujoco><compiler meshdir="parts"/><asset><material name="m" rgba="0 0 1 1"/>
    <mesh file="corner.obj" scale="1 2 1"/></asset><worldbody><body pos="0 0 1"><joint axis="0 1 0"/>
    <geom type="mesh" mesh="corner" material="m" pos="0.1 0.2 0.3" euler="10 20 30"/>
    <geom type="sphere" size="1" group="3"/><body><joint axis="1 0 0"/>
    <geom type="box" size="1 1 1" rgba="1 0 0 1"/></body></body></worldbody></mujoco>""")
    m = rf.load(file)
    scene = make_scene(m)
    (drawn,) = [part for part in scene.parts if (part.body, part.kind) == (0, "link")]
    assert drawn.paint == "#0000ff"
    assert [part.paint for part in scene.parts if (part.body, part.kind) == (1, "link")] == [
        "#ff0000"
    ]
    compiled = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    known = compiled.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    R, r = m.kinematics(m.neutral())
    found = drawn.triangles.points @ R[0].T + r[0]
    apart = np.linalg.norm(found[:, None] - known[None], axis=2)
    assert apart.min(axis=1).max() < 1e-6
    assert apart.min(axis=0).max() < 1e-6


URDF = """<robot name="r"><link name="base"><visual><geometry><mesh filename="package://pack/base.obj"/></geometry></visual></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
<visual><origin xyz="0 0 1"/><geometry><mesh filename="arm.stl" scale="0.1 0.1 -0.1"/></geometry></visual>
<visual><geometry><mesh filename="lost.stl"/></geometry></visual>
<visual><geometry><mesh filename="odd.glb"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def test_meshes_of_a_urdf_file(tmp_path: Path) -> None:
    folder = tmp_path / "pack" / "urdf"
    folder.mkdir(parents=True)
    (folder / "r.urdf").write_text(URDF)
    (folder / "arm.stl").write_bytes(stl_cube(True))
    (folder.parent / "base.obj").write_bytes(obj_cube())
    m = rf.load(folder / "r.urdf")
    notes: list[str] = []
    found = {body: drawn for body, drawn, _ in robot_meshes(m, notes)}
    assert volume(found[-1]) == pytest.approx(1.0)
    assert volume(found[0]) == pytest.approx(
        1e-3
    )  # mirrored by its scale, and still looking outwards
    assert np.allclose(
        [found[0].points.min(axis=0), found[0].points.max(axis=0)], [[0, 0, 0.9], [0.1, 0.1, 1.0]]
    )
    (note,) = notes
    assert note.startswith(
        "2 of 4 meshes are not drawn: lost.stl: no such file or directory; odd.glb: .glb"
    )
    scene = make_scene(m)
    assert {part.body for part in scene.parts} == {-1, 0}
    assert str(tmp_path) not in repr(scene.notes)


# ---- files ----


@pytest.fixture(scope="module")
def biped() -> Result:
    return rf.scenario("biped_controlled").run()


def test_mp4_of_a_biped(biped: Result, tmp_path: Path) -> None:
    path = biped.animate(tmp_path / "run.mp4", size=(321, 181), fps=20)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert frames == 11
    assert seconds == pytest.approx(0.55, abs=0.06)
    read = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-v",
        "error",
        "-i",
        str(path),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    shots = (
        np.frombuffer(subprocess.run(read, capture_output=True, check=True).stdout, np.uint8)
        .reshape(11, 180, 320, 3)
        .astype(int)
    )
    assert np.abs(shots[0] - shots[-1]).max() > 60
    assert len(np.unique(shots[0].reshape(-1, 3), axis=0)) > 100


def test_gif_with_trail_speed_and_theme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = rf.scenario("kuka_motion").run()
    path = run.animate(
        tmp_path / "run.gif",
        size=(160, 100),
        speed=2.0,
        theme="dark",
        trail="flange of link6",
        progress=True,
    )
    assert "run.gif" in capsys.readouterr().err
    with Image.open(path) as film:
        assert film.n_frames == 13  # type: ignore[attr-defined]
        assert film.info["duration"] == 40
        assert film.size == (160, 100)
        film.seek(12)
        last = np.asarray(film.convert("RGB")).astype(int)
    assert last.mean() < 90
    assert ((last[..., 0] > 150) & (last[..., 1] < 120)).sum() > 30  # the trail


def test_picture_of_a_robot(tmp_path: Path) -> None:
    path = picture(still(rf.load("hexapod")), tmp_path / "hexapod.png", size=(200, 120))
    with Image.open(path) as shown:
        assert shown.size == (200, 120)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "run.avi"}, r"run\.avi: a film ends in \.mp4 or \.gif"),
        ({"path": "deep/run.gif"}, "there is no directory '.*deep'; make it first"),
        ({"fps": 0.0}, "fps 0.0 must be a positive number"),
        ({"speed": -1.0}, "speed -1.0 must be a positive number"),
        ({"speed": 1e-6}, "too many for a film"),
        ({"size": (10, 10)}, "10 x 10 is out of range"),
        ({"size": "wide"}, "must be \\(width, height\\) in pixels"),
        ({"theme": "pink"}, "theme must be 'light' or 'dark'; got 'pink'"),
        ({"trail": "nose"}, "no point 'nose' for a trail; there are end of"),
    ],
)
def test_refusals(biped: Result, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = options.pop("path", "run.gif")
    with pytest.raises(rf.RamifyError, match=message):
        biped.animate(tmp_path / path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_film_that_ffmpeg_cannot_finish_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FFmpeg says only at its end that the disk was full."""
    from ramify.documents.writing import whole_path
    from ramify.view.film import _mp4

    resource = pytest.importorskip("resource")  # Windows has none

    shots = [
        np.random.default_rng(k).integers(0, 255, (64, 64, 3), dtype=np.uint8) for k in range(60)
    ]
    monkeypatch.setattr("sys.dont_write_bytecode", True)  # or torn modules stay in Python's cache
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with (
            pytest.raises(rf.RamifyError, match="cannot be written: "),
            whole_path(tmp_path / "run.mp4") as passing,
        ):
            _mp4(passing, shots, (64, 64), 30.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    _mp4(tmp_path / "run.mp4", shots, (64, 64), 30.0)
    assert (tmp_path / "run.mp4").stat().st_size > 20_000


@pytest.mark.parametrize("limits", [(-0.1, 0.6), None])
def test_a_body_slides_on_a_rail(limits: tuple[float, float] | None) -> None:
    """A thin rod on the carrier, as long as the limits allow, where neither has shapes."""
    b = rf.Builder("arm").link("arm", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    options: dict[str, Any] = {"joint": "prismatic", "axis": (0, 0, 1), "limits": limits}
    slide = b.link("slide", parent="arm", at=(0.2, 0, 0), mass=1.0, com=(0, 0, 0.1), **options)
    scene = make_scene(slide.model())
    carrier = next(part for part in scene.parts if (part.body, part.kind) == (0, "joint"))
    z = carrier.triangles.points[:, 2]
    low, high = limits or (0.0, 0.5 * scene.size)
    thin = 0.02 * scene.size
    assert low - 2 * thin < z.min() < low + thin
    assert high - thin < z.max() < high + thin
