"""What pictures, films and reports draw, against formulas written out here: solids by their volume and
normals, sizes, floors, cameras, arrows, colours, corners and packed numbers.
"""

from __future__ import annotations

import math
from base64 import b64decode
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.model.body import Shape
from ramify.model.frame import Frame, rotation_about
from ramify.view import geometry, report, robot_solids, surroundings
from ramify.view.comparison import compared
from ramify.view.geometry import Triangles
from ramify.view.robot_solids import extent, foot, is_unattached, rod, upright
from ramify.view.scene import BASE, GROUND, JOINT, MODULES, PLAIN, make_scene

TURN = rotation_about((0.6, 0.0, 0.8), 0.7)
PLACE = Frame(TURN, np.array([0.3, -0.2, 0.5]))


def volume(t: Triangles) -> float:
    a, b, c = (t.points[t.faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0


def faces_look_along_their_normals(t: Triangles) -> None:
    a, b, c = (t.points[t.faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)
    for k in range(3):
        assert (np.einsum("ij,ij->i", flat, t.normals[t.faces[:, k]]) > 0.0).all()
    close(np.linalg.norm(t.normals, axis=1), 1.0, 1e-12)


SHAPES = [
    (Shape("box", (0.3, 0.5, 0.7), PLACE), 0.3 * 0.5 * 0.7, (0.15, 0.25, 0.35)),
    (Shape("cylinder", (0.2, 0.9), PLACE), math.pi * 0.2**2 * 0.9, (0.2, 0.2, 0.45)),
    (Shape("sphere", (0.4,), PLACE), 4 / 3 * math.pi * 0.4**3, (0.4, 0.4, 0.4)),
    (Shape("capsule", (0.2, 0.9), PLACE), math.pi * 0.2**2 * (0.9 + 4 / 3 * 0.2), (0.2, 0.2, 0.65)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "content", "half"), SHAPES, ids=lambda x: getattr(x, "kind", ""))
def test_solids_have_their_volume_size_and_place(shape: Shape, content: float, half: Any) -> None:
    solid = geometry.shape_triangles(shape, around=64)
    close(volume(solid), content, 6e-3)
    faces_look_along_their_normals(solid)
    own = (solid.points - PLACE.position) @ TURN
    close(own.min(axis=0), np.negative(half), 2e-3)
    close(own.max(axis=0), half, 2e-3)
    close(robot_solids._half(shape), half, 1e-12)
    coarse = geometry.shape_triangles(shape, around=8)
    assert len(coarse.faces) < len(solid.faces) or shape.kind == "box"
    assert volume(coarse) <= volume(solid) + 1e-12


def test_solids_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(rf.ModelError, match="a shape 'plane' with 0 lengths cannot be drawn"):
        geometry.shape_triangles(Shape("plane", ()))
    with pytest.raises(rf.ModelError, match="a shape is a 'cone'; choose among sphere, capsule"):
        Shape("cone", (0.1, 0.2))


def test_curved_sides_have_the_normals_of_the_curve() -> None:
    ball = geometry.shape_triangles(Shape("sphere", (0.5,)), around=48)
    close(ball.normals, ball.points / 0.5, atol=0.07)
    drum = geometry.shape_triangles(Shape("cylinder", (0.5, 2.0)), around=48)
    side = np.abs(drum.normals[:, 2]) < 0.5
    close(drum.normals[side, :2], drum.points[side, :2] / 0.5, atol=1e-9)
    close(np.abs(drum.normals[~side]), [[0, 0, 1]] * int((~side).sum()), atol=1e-9)


def test_the_arrow_is_thin_with_a_head() -> None:
    arrow = geometry.arrow(32)
    faces_look_along_their_normals(arrow)
    radius = np.hypot(arrow.points[:, 0], arrow.points[:, 1])
    close((radius.max(), arrow.points[:, 2].max(), arrow.points[:, 2].min()), (0.06, 1.0, 0.0), 1e-9, 1e-12)  # fmt: skip
    close(radius[np.abs(arrow.points[:, 2]) < 1e-9].max(), 0.022, 1e-9)
    assert set(np.round(arrow.points[:, 2], 9)) == {0.0, 0.8, 1.0}


def test_a_rod_goes_from_point_to_point() -> None:
    a, b = np.array([0.1, 0.2, 0.3]), np.array([0.7, -0.2, 0.6])
    length = np.linalg.norm(b - a)
    thin = rod(a, b, 0.01, 32)
    along = (thin.points - a) @ (b - a) / length
    close((along.min(), along.max()), (-0.01, length + 0.01), 1e-6, 1e-9)
    aside = np.linalg.norm(thin.points - a - np.outer(along, (b - a) / length), axis=1)
    close(aside.max(), 0.01, 1e-3)
    thick = rod(a, b, 9.0, 32)  # never thicker than a fifth of its length
    along = (thick.points - a) @ (b - a) / length
    close(along.max() - along.min(), 1.4 * length, 1e-6)


def test_creases_and_soft_edges() -> None:
    """Two faces share the normal of their edge where each is within 55 degrees of it."""
    for angle, normals in ((40.0, 4), (108.0, 4), (112.0, 6)):
        a = math.radians(angle)
        points = np.array([[0, 0, 0], [0, 1, 0], [1, 0.5, 0], [-math.cos(a), 0.5, -math.sin(a)]])
        smooth = geometry.smooth_normals(points, np.array([[0, 2, 1], [0, 1, 3], [0, 0, 1]]))
        assert len(smooth.points) == normals
        assert len(smooth.faces) == 2
        faces_look_along_their_normals(smooth)


def test_thinning_keeps_the_surface() -> None:
    ball = geometry.shape_triangles(Shape("sphere", (0.5,)), around=96)
    points, faces = geometry.thinned(ball.points, ball.faces, 900)
    assert 300 < len(faces) <= 900
    a, b, c = (points[faces[:, k]] for k in range(3))
    close(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6, 4 / 3 * math.pi * 0.125, 0.12)
    whole, all_faces = geometry.thinned(ball.points, ball.faces, 10**6)
    assert len(all_faces) == len(geometry.merge_near_points(ball.points, ball.faces, 1e-6)[1])
    close(volume(Triangles(whole, whole, all_faces)), volume(ball), 1e-9)
    same = np.full((3, 3), 0.5)
    assert geometry.thinned(same, np.array([[0, 1, 2]]), 9)[1].shape == (0, 3)


def test_joined_triangles_keep_their_corners() -> None:
    parts = [geometry.box(1, 2, 3), geometry.box(4, 5, 6).seen_from(PLACE)]
    whole = geometry.join_triangles(parts)
    close(volume(whole), 6 + 120, 1e-12)
    assert geometry.join_triangles([]).faces.shape == (0, 3)


def test_directions_and_quaternions() -> None:
    yaw, pitch = 0.7, 0.4
    close(geometry.direction_by_angles(yaw, pitch), [math.cos(0.4) * math.cos(0.7), math.cos(0.4) * math.sin(0.7), math.sin(0.4)], 1e-14)  # fmt: skip
    axis = np.array([0.6, 0.0, 0.8])
    close(geometry.unit_quaternions(rotation_about((0.6, 0.0, 0.8), 0.9)), [math.cos(0.45), *(math.sin(0.45) * axis)], 1e-12, 1e-14)  # fmt: skip


def lamp(**more: Any) -> rf.Model:
    """Two links with shapes, paint and points; gravity along no axis."""
    b = rf.Builder("lamp", gravity=(1.0, -2.0, -9.0))
    box = Shape("box", (0.1, 0.2, 0.6), Frame(TURN, np.array([0.0, 0.1, 0.3])), "#aa5500")
    b.link("stem", at=(0.1, 0.2, 0.0), axis=(0, 1, 0), mass=2.0, com=(0.05, 0, 0.3), inertia=(0.1, 0.2, 0.3), shapes=[box])  # fmt: skip
    b.link("head", "stem", at=(0.2, 0.1, 0.7), axis=(1, 0, 0), mass=1.0, com=(0.2, 0, 0.1), inertia=(0.1, 0.2, 0.3), points={"tip": (0.5, 0.1, 0.2)}, **more)  # fmt: skip
    return b.model()


def test_the_size_of_a_robot() -> None:
    m = lamp()
    R, r = m.kinematics([0.0, 0.0])
    half = np.array([0.05, 0.1, 0.3])
    ends = [TURN @ (s * half) + (0.0, 0.1, 0.3) for s in (-1, 1)]
    points = [np.zeros(3), *r, R[0] @ m.bodies[0].com + r[0], R[1] @ m.bodies[1].com + r[1], R[1] @ (0.5, 0.1, 0.2) + r[1]]  # fmt: skip
    points += [R[0] @ end + r[0] for end in ends]
    close(extent(m), np.linalg.norm(np.ptp(points, axis=0)), 1e-12)
    close(upright(m) @ (np.array(m.gravity) / np.linalg.norm(m.gravity)), [0, 0, -1], 1e-12, 1e-14)
    assert not is_unattached(m)
    flying = rf.Builder("fly").link("a", joint="free", mass=1.0, inertia=(1, 1, 1)).model()
    assert is_unattached(flying)
    assert extent(flying) == 0.01
    weightless = rf.Builder("calm", gravity=(0, 0, 0)).link("a", mass=1.0).model()
    close(upright(weightless), np.eye(3), 0)


def test_parts_of_a_scene_and_their_colours() -> None:
    scene = make_scene(lamp())
    kinds = [(part.body, part.kind, part.paint) for part in scene.parts]
    assert kinds[0] == (0, "link", "#aa5500")
    assert (1, "link", "") in kinds
    assert (1, "joint", "") in kinds
    assert (-1, "base", "") in kinds
    assert [p.name for p in scene.points] == ["tip of head", "stem", "head"]
    assert scene.points[0].at == (0.5, 0.1, 0.2)
    assert scene.depth == [0, 1]
    by_kind = {part.kind: part for part in scene.parts}
    assert scene.colour(by_kind["joint"]) == JOINT
    assert scene.colour(by_kind["base"]) == BASE
    assert scene.colour(replace(by_kind["base"], kind="ground")) == GROUND
    assert scene.colour(scene.parts[0]) == "#aa5500"
    assert scene.module_colour(scene.parts[0]) == MODULES[scene.module_of[0] % 8]
    head = next(part for part in scene.parts if part.body == 1 and part.kind == "link")
    red, green, blue = (int(MODULES[scene.module_of[1] % 8][k : k + 2], 16) for k in (1, 3, 5))
    paler = "#" + "".join(f"{round(0.62 * x + 0.38 * 255):02x}" for x in (red, green, blue))
    assert scene.module_colour(head) == paler
    painted = replace(scene, parts=(scene.parts[0], replace(head, triangles=geometry.box(1, 1, 1))))  # fmt: skip
    half = 12
    assert len(painted.parts[0].triangles.faces) == len(painted.parts[1].triangles.faces) == half
    assert not painted.painted  # half of it is not most of it
    more = replace(painted, parts=(*painted.parts, painted.parts[0]))
    assert more.painted
    assert more.colour(more.parts[1]) == PLAIN


def test_ends_of_chains_are_points() -> None:
    b = rf.Builder("arm").link("a", mass=1.0, com=(0.2, 0.1, 0.3))
    m = b.link("b", "a", at=(0.5, 0, 0), mass=1.0, com=(0.1, 0.2, 0.4)).model()
    scene = make_scene(m)
    assert [p.name for p in scene.points] == ["end of b", "a", "b"]
    close(scene.points[0].at, [0.2, 0.4, 0.8], 1e-12)
    close(report._tips(scene)[0].at, [0.2, 0.4, 0.8], 1e-12)
    assert len(report._tips(scene)) == 1


def test_corners_hold_every_point() -> None:
    """The boxes around the parts contain all of their points, and touch them where unturned."""
    m = lamp()
    scene = make_scene(m)
    q = np.array([[0.0, 0.0], [0.4, -0.7], [1.1, 0.3]])
    R, r = scene.poses(q)
    K, k = m.kinematics(q)
    close(R, scene.up @ K, 1e-12, 1e-12)
    close(r, k @ scene.up.T, 1e-12, 1e-12)
    low, high = scene.corners(R, r)
    assert low.shape == high.shape == (3, 3)
    for t in range(3):
        boxes = []
        for part in scene.parts:
            turn, shift = scene.part_pose(part, R[t], r[t])
            points = part.triangles.points
            ends = np.array([points.min(axis=0), points.max(axis=0)])
            corners = [(ends[i, 0], ends[j, 1], ends[n, 2]) for i in (0, 1) for j in (0, 1) for n in (0, 1)]  # fmt: skip
            boxes.append(np.array(corners) @ turn.T + shift)
            placed = points @ turn.T + shift
            assert (placed >= low[t] - 1e-12).all()
            assert (placed <= high[t] + 1e-12).all()
        close(low[t], np.concatenate(boxes).min(axis=0), 1e-12, 1e-12)
        close(high[t], np.concatenate(boxes).max(axis=0), 1e-12, 1e-12)
    bare = replace(scene, parts=())
    low, high = bare.corners(R, r)
    close(low, r.min(axis=1), 0)
    close(high, r.max(axis=1), 0)


def test_bodies_without_shapes() -> None:
    """Rods to what they carry, drums, slides and balls for joints."""
    b = rf.Builder("plain")
    b.link("a", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0))
    b.link("b", "a", joint="prismatic", axis=(0, 0, 1), at=(0.5, 0, 0), mass=1.0, com=(0, 0, 0.2), limits=(-0.1, 0.4))  # fmt: skip
    b.link("c", "b", joint="ball", at=(0, 0, 0.3), mass=1.0)
    m = b.model()
    size = 2.0
    radius = 0.012 * size
    rods, hinge = robot_solids.plain_body(m, 0, size, 32)
    (one,) = rods
    close(one.points[:, 0].max(), 0.5 + radius, 1e-6)
    close(one.points[:, 0].min(), -radius, 1e-6)
    assert hinge is not None
    rail = hinge.points
    close((rail[:, 2].max(), rail[:, 0].max()), (0.4 + 0.4 * radius, 0.5 + 0.4 * radius), 1e-3)
    close(np.abs(rail[:, 1]).max(), 2.0 * radius, 1e-6)  # the drum along y
    _, slide = robot_solids.plain_body(m, 1, size, 32)
    assert slide is not None
    close(slide.points.max(axis=0), [1.6 * radius, 1.6 * radius, 3.0 * radius], 1e-9)
    rods, ball = robot_solids.plain_body(m, 2, size, 32)
    assert ball is not None
    close(ball.points[:, 2].max(), 1.9 * radius, 1e-6)
    close(rods[0].points.max(), 1.8 * radius, 1e-6)  # a ball for the mass at the joint
    base = foot(m.bodies[0], size, np.eye(3))
    close(base.points.max(axis=0), [0.026 * size, 0.011 * size, 0.026 * size], 1e-2)
    cart = rf.Builder("cart").link("a", joint="prismatic", axis=(1, 0, 0), at=(0.1, 0.2, 0.3), mass=1.0)  # fmt: skip
    disc = foot(cart.model().bodies[0], size, np.eye(3))
    close(disc.points.mean(axis=0), [0.1, 0.2, 0.3], 0.05)
    close(np.ptp(disc.points, axis=0)[2], 0.022 * size, 1e-9)


def test_ties_join_shapes_to_joints() -> None:
    m = lamp()
    size = 1.0
    found = list(robot_solids.ties(m, 0, size, 16))
    half, centre = np.array([0.05, 0.1, 0.3]), np.array([0.0, 0.1, 0.3])
    for end in (np.zeros(3), np.array([0.2, 0.1, 0.7])):
        near = TURN @ np.clip(TURN.T @ (end - centre), -half, half) + centre
        gap = np.linalg.norm(near - end)
        lengths = [np.linalg.norm(np.ptp(t.points, axis=0)) for t in found]
        assert any(abs(x - gap) < 0.05 for x in lengths) == (gap > 0.015 * size)


GROUNDED: list[tuple[float | None, Any, Any, bool, float]] = [
    (0.3, [-1.0, -2.0], [1.0, 1.0], False, 0.3),
    (None, [-0.02, 0.5], [1.0, 1.0], False, 0.0),  # it stands on zero
    (None, [-0.5, 0.5], [1.5, 1.5], False, 0.0),  # above it for the most part
    (None, [-0.5, -1.5], [0.2, 0.3], False, -1.5 - 0.02 * 2.0),
    (None, [-0.5, -1.5], [0.2, 0.3], True, -0.5 - 0.02 * 2.0),  # where it started
    (None, [-0.5, -1.5], [5.0, 5.0], True, -0.5 - 0.02 * 2.0),
    (None, [0.5, -1.5], [0.9, 0.3], True, 0.0),
]


@pytest.mark.parametrize(("ground", "low", "high", "flies", "floor"), GROUNDED)
def test_where_the_floor_is(ground: Any, low: Any, high: Any, flies: bool, floor: float) -> None:
    joint = "free" if flies else "revolute"
    m = rf.Builder("x").link("a", joint=joint, mass=1.0, inertia=(1, 1, 1)).model()
    scene = replace(make_scene(m), size=2.0)
    close(surroundings.floor_height(scene, np.array(low), np.array(high), ground), floor, 1e-12)


@pytest.mark.parametrize(
    ("low", "high", "axis", "up", "yaw", "pitch"),
    [
        ((-1, -2, 0), (1, 2, 3), (0, 0, 1), None, -1.02, 0.26),  # nothing flat
        ((-1, -0.1, 0), (1, 0.1, 3), (0, 0, 1), None, 0.22 - math.pi / 2, 0.13),  # flat along y
        ((-0.1, -2, 0), (0.1, 2, 3), (0, 0, 1), None, 0.22, 0.13),  # flat along x
        ((-1, -2, 0), (1, 2, 3), (0, 1, 0), None, 0.22 - math.pi / 2, 0.13),  # hinges along y
        ((-1, -2, 0), (1, 2, 3), (1, 0, 0), None, 0.22, 0.13),
        ((-1, -2, 0), (1, 2, 3), (0, 1, 0), 1.0, 0.22 + math.pi / 2, 0.13),  # z comes out along +y
        ((-1, -2, 0), (1, 2, 3), (1, 0, 0), -1.0, 0.22 + math.pi, 0.13),
    ],
)
def test_where_a_run_is_seen_from(
    low: Any, high: Any, axis: Any, up: float | None, yaw: float, pitch: float
) -> None:
    m = rf.Builder("x").link("a", axis=axis, mass=1.0, com=(0.4, 0.3, 0.2)).model()
    scene = replace(make_scene(m), size=1.0)
    if up is not None:  # the sign of z of the file's world along the axis that is looked along
        turn = scene.up.copy()
        turn[int(axis[1]), 2] = up
        object.__setattr__(scene, "up", turn)
        object.__setattr__(m, "gravity", m.gravity)
        hinge = surroundings._hinge_axis
        surroundings._hinge_axis = lambda scene: int(axis[1])
        try:
            seen = surroundings.camera(scene, np.array([low, low], float), np.array([high, high], float), 0.7)  # fmt: skip
        finally:
            surroundings._hinge_axis = hinge
    else:
        seen = surroundings.camera(scene, np.array([low, np.add(low, 0.01)], float), np.array([high, np.subtract(high, 0.01)], float), 0.7)  # fmt: skip
    size = np.linalg.norm(np.subtract(high, low))
    close((seen.yaw, seen.pitch, seen.floor), (yaw, pitch, 0.7), 1e-12)
    close(seen.target, np.add(low, high) / 2, 1e-12)
    close(seen.size, size, 1e-12)
    cells = [k * 10.0**p for p in range(-4, 5) for k in (1, 2, 5)]
    close(seen.cell, min(cells, key=lambda c: abs(math.log(c) - math.log(0.12 * size))), 1e-12)


@pytest.mark.parametrize("size", [0.011, 0.1, 0.25, 0.5, 1.1, 8.0, 30.0, 260.0])
def test_squares_of_the_floor_are_round_numbers(size: float) -> None:
    m = rf.Builder("x").link("a", mass=1.0).model()
    scene = replace(make_scene(m), size=0.001)
    seen = surroundings.camera(scene, np.zeros((1, 3)), np.array([[size, 0, 0]]))
    close(seen.size, size, 1e-12)
    digit = seen.cell / 10.0 ** math.floor(math.log10(seen.cell) + 1e-9)
    assert round(digit, 9) in (1.0, 2.0, 5.0)
    assert 0.6 < seen.cell / (0.12 * size) < 1.7


def test_a_small_motion_is_seen_from_half_the_size_of_the_robot() -> None:
    m = rf.Builder("x").link("a", mass=1.0).model()
    scene = replace(make_scene(m), size=3.0)
    assert surroundings.camera(scene, np.zeros((2, 3)), np.full((2, 3), 0.01)).size == 1.5
    flying = rf.Builder("fly").link("a", joint="free", mass=1.0, inertia=(1, 1, 1)).model()
    scene = replace(make_scene(flying), size=0.1)
    low, high = np.array([[0, 0, 0], [5, 5, 5.0]]), np.array([[1, 2, 3], [9, 9, 9.0]])
    seen = surroundings.camera(scene, low, high)  # around it as it starts
    close(seen.target, [0.5, 1.0, 1.5], 1e-12)
    close(seen.size, math.sqrt(14.0), 1e-12)


def test_arrows_are_a_third_of_the_size_under_the_weight() -> None:
    m = lamp()
    scene = replace(make_scene(m), size=1.2)
    weight = 3.0 * math.sqrt(86.0)
    force = np.zeros((2, 3, 3))
    force[0, 0], force[0, 1], force[1, 2] = (0, 0, weight), (0, 0, 30 * weight), (0, np.nan, 1e-4)
    close(surroundings.arrow_scale(scene, force), 1.2 / (3.0 * weight), 1e-12)
    drawn = surroundings.Arrows(("a", "b", "c"), np.zeros((2, 3, 3)), force).drawn(scene)
    close(drawn[0, 0], [0, 0, 0.4], 1e-12)
    close(drawn[0, 1], [0, 0, 0.9 * 1.2], 1e-12)
    close(drawn[1, 2], 0.0, 0)
    calm = rf.Builder("calm", gravity=(0, 0, 0)).link("a", mass=1.0).model()
    still = replace(make_scene(calm), size=1.2)
    force = np.array([[[0, 3.0, 4.0]]])
    close(surroundings.arrow_scale(still, force), 0.5 * 1.2 / 5.0, 1e-12)


def sled(ground: Any) -> rf.Result:
    b = rf.Builder("sled").link(
        "body", joint="free", mass=1.0, inertia=(0.1, 0.2, 0.3), points={"a": (0.1, 0, -0.1), "b": (-0.1, 0, -0.1)},
    )  # fmt: skip
    return rf.simulate(b.model(), 0.03, [0, 0, 0.4, 1, 0, 0, 0], ground=ground)


def test_the_ground_of_a_run() -> None:
    firm = rf.contact.Firm
    slope = sled(firm(terrain=rf.contact.Slope(angle=0.2, height=-0.1)))
    scene = make_scene(slope.model)
    low, high = np.array([[-0.3, -0.4, 0.0]]), np.array([[0.5, 0.6, 1.0]])
    drawn, floor = surroundings.grounded(scene, slope, low, high)
    patch = drawn.parts[-1]
    assert (patch.body, patch.kind, len(drawn.parts)) == (-1, "ground", len(scene.parts) + 1)
    points = patch.triangles.points
    around = 1.2 * scene.size
    close(points.min(axis=0)[:2], low[0, :2] - around, 1e-9)
    close(points.max(axis=0)[:2], high[0, :2] + around, 1e-9)
    close(points[:, 2], math.tan(0.2) * points[:, 0] - 0.1, 1e-9, 1e-9)
    assert floor is not None
    close(floor, points[:, 2].min() - 0.05 * scene.size, 1e-9)
    flat = sled(firm(terrain=rf.contact.Flat(height=-0.25)))
    same, floor = surroundings.grounded(scene, flat, low, high)
    assert (same, floor) == (scene, -0.25)
    none = rf.simulate(slope.model, 0.02)
    assert surroundings.grounded(scene, none, low, high) == (scene, None)
    assert surroundings.contact_arrows(None, scene.up) is None
    arrows = surroundings.contact_arrows(slope.contacts, TURN)
    assert arrows is not None
    assert slope.contacts is not None
    close(arrows.position, slope.contacts.position @ TURN.T, 1e-12)
    close(arrows.force, slope.contacts.force @ TURN.T, 1e-12)
    assert arrows.names == slope.contacts.names


def numbers(text: str, kind: str) -> Any:
    return np.frombuffer(b64decode(text), kind)


def test_packed_triangles_come_back() -> None:
    box = geometry.shape_triangles(Shape("box", (0.3, 0.5, 0.7), PLACE))
    data = report.triangles(box)
    scale, *centre = data["scale"]
    points = numbers(data["points"], "<i2").reshape(-1, 4)
    assert not points[:, 3].any()
    close(points[:, :3] * scale + centre, box.points, atol=2 * scale)
    assert np.abs(points).max() == 32767
    normals = numbers(data["normals"], "i1").reshape(-1, 4)
    close(normals[:, :3] / 127.0, box.normals, atol=0.5 / 127 + 1e-9)
    close(numbers(data["faces"], "<u2").reshape(-1, 3), box.faces, 0)
    assert data["wide"] is False
    none = report.triangles(geometry.join_triangles([]))
    assert none["points"] == ""
    many = Triangles(np.random.default_rng(0).random((65536, 3)), np.zeros((65536, 3)), np.array([[0, 1, 65535]]))  # fmt: skip
    wide = report.triangles(many)
    assert wide["wide"] is True
    close(numbers(wide["faces"], "<u4"), [0, 1, 65535], 0)


@pytest.mark.parametrize(("count", "most"), [(10, 10), (11, 10), (100, 30), (7, 3), (1, 5)])
def test_rows_are_picked_evenly_with_the_last(count: int, most: int) -> None:
    rows = report._picked(count, most)
    assert (rows[0], rows[-1]) == (0, count - 1)
    assert len(rows) <= most + 1
    steps = np.diff(rows)
    assert (steps[:-1] == steps[:1].repeat(max(len(steps) - 1, 0))).all()
    if count <= most:
        assert len(rows) == count


def test_what_a_report_is_made_of() -> None:
    m = lamp()
    r = rf.simulate(m, 0.05, [0.2, 0.3])
    scene = make_scene(m)
    data = report.report_data(r, scene)
    close(numbers(data["t"], "<f8"), r.t, 0)
    assert data["frames"]["bodies"] == 2
    world = np.reshape(data["world"], (4, 4)).T
    close(world[:3, :3], scene.up, 1e-12)
    close(world[3], [0, 0, 0, 1], 0)
    assert (data["floats"], data["ghost"], data["forces"]) == (False, None, None)
    assert data["view"]["level"] is False
    assert [p["name"] for p in data["points"]] == [p.name for p in scene.points]
    assert [(p["body"], p["kind"]) for p in data["parts"]] == [
        (p.body, p.kind) for p in scene.parts
    ]
    assert data["parts"][0]["colour"] == "#aa5500"
    assert data["parts"][0]["module"] == scene.module_colour(scene.parts[0])
    small = report.report_data(r, scene, inline=True, plots=False)
    assert small["plots"] == []
    subtitle = report._subtitle(replace(r, t=r.t + 2.0))
    assert subtitle == "lamp · 2 bodies · 2 degrees of freedom · 3 kg · 0.05 s"
    assert report._badges(r).startswith('<span class="badge good">audit ')
    broken = replace(r, status="failed: it broke <b>")
    assert report._badges(broken).endswith('<span class="badge bad">failed: it broke &lt;b&gt;</span>')  # fmt: skip
    assert report._badges(replace(r, status="interrupted")).endswith('<span class="badge ">interrupted</span>')  # fmt: skip
    page = report.report_page(r, title="A & B")
    assert "<title>A &amp; B: a run of lamp</title>" in page
    assert "Differences</h2>" not in page
    beside = report.report_page(r, compare=rf.simulate(m, 0.05, [0.25, 0.3]))
    assert "Differences are first minus second" in beside


def test_long_reports_are_thinned_and_say_so() -> None:
    m = rf.load("two_link")
    r = rf.simulate(m, 0.02, [0.1, 0.2])
    long = rf.simulate(m, 0.5, [0.1, 0.2], dt_out=1e-4)
    (said,) = report._thinning(long)
    shown, frames = report._most_rows(long), report._most_frames(long)
    assert shown == min(report.MOST_ROWS, 200_000 // 36)
    assert frames == min(report.MOST_FRAMES, 10_000)
    picked = [len(report._picked(5001, n)) for n in (shown, frames)]
    assert said.startswith(
        f"Of 5001 rows the plots show {picked[0]} and the animation {picked[1]},"
    )
    assert report._thinning(r) == []


def test_runs_of_quaternions_are_compared_on_the_sphere() -> None:
    b = rf.Builder("bob").link("bob", joint="ball", mass=1.5, com=(0.1, 0.2, -1), inertia=(0.1, 0.2, 0.25))  # fmt: skip
    m = b.model()
    first = rf.simulate(m, 0.2, [1, 0, 0, 0], [2.0, 1.0, -3.0], dt_out=0.02)
    second = rf.simulate(m, 0.15, [1, 0, 0, 0], [2.0, 1.0, -3.0], dt_out=0.05)
    both = compared(first, second)
    close(both.t, first.t[first.t <= 0.15 + 1e-12], 0)
    close(np.linalg.norm(both.second_at["q"], axis=1), 1.0, 1e-12)
    ghost = both.ghost(np.array([-1.0, 0.025, 9.0]))
    middle = (second.q[0] + second.q[1]) / 2
    close(ghost, [second.q[0], middle / np.linalg.norm(middle), second.q[-1]], 1e-9)
    close(both.second_at["v"][1], second.v[0] + 0.4 * (second.v[1] - second.v[0]), 1e-9)
    with pytest.raises(rf.RamifyError, match="no time in common"):
        compared(first, replace(second, t=second.t + 3.0))
    with pytest.raises(rf.RamifyError, match="bob and two_link have different coordinates"):
        compared(first, rf.simulate(rf.load("two_link"), 0.02))
    touching = compared(first, replace(second, t=second.t + first.t[-1]))
    assert len(touching.t) == 1
    gone = replace(first, tau=np.full_like(first.tau, np.nan))
    assert {d.what for d in compared(gone, second).differences} == {"q", "v"}
    text = str(both).split("\n")
    assert len(text) == 1 + len(both.differences)
    assert text[1].split()[:2] == ["q", first.columns["q"][0]]


def test_hinges_along_different_axes_are_seen_from_the_corner() -> None:
    for axes, yaw in (
        (((0, 1, 0), (1, 0, 0)), -1.02),
        (((0, 1, 0), (0, 1, 0)), 0.22 - math.pi / 2),
    ):
        b = rf.Builder("x").link("a", axis=axes[0], mass=1.0)
        m = b.link("b", "a", axis=axes[1], at=(0.3, 0, 0), mass=1.0).model()
        scene = replace(make_scene(m), size=1.0)
        seen = surroundings.camera(scene, np.array([[-1, -2, 0.0]]), np.array([[1, 2, 3.0]]))
        close(seen.yaw, yaw, 1e-12)


@pytest.mark.parametrize(("size", "cell"), [(1e-4, 1e-4), (4e6, 5e4), (1.0, 0.1), (2.0, 0.2)])
def test_squares_have_ends(size: float, cell: float) -> None:
    m = rf.Builder("x").link("a", mass=1.0).model()
    scene = replace(make_scene(m), size=1e-9)
    seen = surroundings.camera(scene, np.zeros((1, 3)), np.array([[size, 0, 0]]))
    close(seen.cell, cell, 1e-12)
