"""Closest features of shapes: against coal, brute force and differences, and where directions
vanish.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import coal
import numpy as np
import pytest

from ramify.contact.closest import CONTACTS, Closest, closest, contact_count, ground_points, pose_of
from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.records import flatten
from ramify.core.spatial import Mat3, Vec3
from ramify.model.frame import Frame, from_quaternion, point_seen, rotation_about
from ramify.model.link import Pose
from ramify.model.shape import SIZES, Shape
from ramify.runtime.cache_keys import digest
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.differentiate import tangent
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace

PAIRS = [kinds for kinds in CONTACTS if "height_field" not in kinds]
NAMES = ["-".join(kinds) for kinds in PAIRS]
HEIGHTS = ((0.0, 0.1, 0.0), (0.05, 0.2, 0.1), (0.0, 0.1, 0.3))


def random_shape(kind: str, rng: np.random.Generator) -> Shape:
    size = tuple(rng.uniform(0.05, 0.4, len(SIZES[kind])).tolist())
    frame = Frame() if kind == "plane" else random_frame(rng)
    return Shape(kind, size, frame, heights=HEIGHTS if kind == "height_field" else ())


def random_frame(rng: np.random.Generator) -> Frame:
    return Frame(from_quaternion(*rng.normal(size=4)), rng.uniform(-0.6, 0.6, 3))


def array(v: Vec3) -> Array:
    return np.array([v.x, v.y, v.z], dtype=np.float64)


def at(first: Shape, a: Frame, second: Shape, b: Frame) -> tuple[Closest, ...]:
    return closest(first, pose_of(a), second, pose_of(b))


def peer(shape: Shape) -> object:
    makers = {"sphere": coal.Sphere, "capsule": coal.Capsule, "box": coal.Box}
    if shape.kind in makers:
        return makers[shape.kind](*shape.size)
    return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0)


def peer_gap(first: Shape, a: Frame, second: Shape, b: Frame) -> float:
    seats = [frame @ shape.frame for frame, shape in ((a, first), (b, second))]
    poses = [coal.Transform3s(seat.rotation, seat.position) for seat in seats]
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = 1e-10
    distance = coal.distance(
        peer(first), poses[0], peer(second), poses[1], request, coal.DistanceResult()
    )
    return float(distance)


@pytest.mark.parametrize("kinds", PAIRS, ids=NAMES)
def test_gaps_are_those_of_coal(kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(7)
    for _ in range(300):
        first, second = (random_shape(kind, rng) for kind in kinds)
        a, b = random_frame(rng), random_frame(rng)
        gap = min(float(c.gap) for c in at(first, a, second, b))  # type: ignore[arg-type]
        if kinds == ("capsule", "box") and gap < 1e-9 - first.size[0]:
            continue  # the axis itself is inside: the depth is that of its points, see below
        assert gap == pytest.approx(peer_gap(first, a, second, b), abs=1e-9)


@pytest.mark.parametrize("kinds", [*CONTACTS], ids="-".join)
def test_points_and_normal_belong_together(kinds: tuple[str, str]) -> None:
    """The gap lies between the points, along the unit normal; on planes and boxes the second point
    is on the surface.
    """
    rng = np.random.default_rng(3)
    for _ in range(50):
        first, second = (random_shape(kind, rng) for kind in kinds)
        a, b = random_frame(rng), random_frame(rng)
        contacts = at(first, a, second, b)
        assert len(contacts) == contact_count(first, second) == contact_count(second, first)
        for c in contacts:
            n = array(c.normal)
            assert n @ n == pytest.approx(1.0, abs=1e-12)
            apart = array(c.on_first) - array(c.on_second)
            assert apart == pytest.approx(n * c.gap, abs=1e-12)
        swapped = at(second, b, first, a)
        for c, d in zip(contacts, swapped, strict=True):
            assert (c.gap, array(c.on_first).tolist()) == (d.gap, array(d.on_second).tolist())
            assert array(c.normal) == pytest.approx(-array(d.normal))


def test_a_capsule_at_a_box_is_closest_where_a_search_finds_it() -> None:
    rng = np.random.default_rng(11)
    fine = np.linspace(-0.5, 0.5, 20001)
    for _ in range(60):
        capsule, box = random_shape("capsule", rng), random_shape("box", rng)
        a, b = random_frame(rng), random_frame(rng)
        seat = (b @ box.frame).inverse() @ a @ capsule.frame
        along = seat.position + np.outer(fine * capsule.size[1], seat.rotation[:, 2])
        beyond = np.maximum(np.abs(along) - 0.5 * np.array(box.size), 0.0)
        distance = np.linalg.norm(beyond, axis=1).min()
        gap = at(capsule, a, box, b)[0].gap
        if distance > 1e-3:
            assert gap == pytest.approx(distance - capsule.size[0], abs=1e-6)


@pytest.mark.parametrize("kinds", [*CONTACTS], ids="-".join)
def test_floats_arrays_traced_and_compiled_code_agree(kinds: tuple[str, str]) -> None:
    """Numbers and their derivatives: those of the traced text are central differences."""
    rng = np.random.default_rng(5)
    first, second = (random_shape(kind, rng) for kind in kinds)
    frames = [(random_frame(rng), random_frame(rng)) for _ in range(16)]
    rows = np.array([[*(f.rotation.ravel()), *f.position] for pair in frames for f in pair])
    rows = rows.reshape(len(frames), 24)

    def text(x: Any) -> list[list[Any]]:
        poses = [Pose(Mat3(*x[k : k + 9]), Vec3(*x[k + 9 : k + 12])) for k in (0, 12)]
        return [flatten(list(closest(first, poses[0], second, poses[1])))]

    single = np.array([text(row.tolist())[0] for row in rows], dtype=np.float64)
    batch = np.array([np.broadcast_to(x, len(rows)) for x in text(list(rows.T))[0]]).T
    assert batch == pytest.approx(single, abs=1e-13)
    ports = (Port("x", (24,)),), (Port("y", (single.shape[1],)),)
    program = trace("closest", text, *ports)
    assert interpret(program, [rows])[0] == pytest.approx(single, abs=1e-13)
    compiled = np.empty_like(single)
    CompiledProgram("closest", program, digest(program.digest)).run([rows], [compiled], 0, 16)
    assert compiled == pytest.approx(single, abs=1e-13)
    along, h = rng.normal(size=rows.shape), 1e-6
    slopes = interpret(tangent(program, [0]), [rows, along])[0]
    ahead, behind = (interpret(program, [rows + side * h * along])[0] for side in (1.0, -1.0))
    assert slopes == pytest.approx((ahead - behind) / (2.0 * h), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kinds", PAIRS, ids=NAMES)
def test_the_rate_of_the_gap_is_that_of_its_points(kinds: tuple[str, str]) -> None:
    """d(gap)/dt = n . (v_first - v_second) of the material points, by central differences."""
    rng = np.random.default_rng(2)
    h = 1e-6
    for _ in range(40):
        first, second = (random_shape(kind, rng) for kind in kinds)
        a, b = random_frame(rng), random_frame(rng)
        w, v = rng.normal(size=3), rng.normal(size=3)
        size = float(np.linalg.norm(w))

        def moved(dt: float, a: Frame = a, w: Array = w, v: Array = v, size: float = size) -> Frame:
            turn = rotation_about(w / size, size * dt)
            return Frame(turn @ a.rotation, a.position + v * dt)

        now = at(first, a, second, b)
        before, after = at(first, moved(-h), second, b), at(first, moved(h), second, b)
        for c, back, ahead in zip(now, before, after, strict=True):
            rate = array(c.normal) @ (v + np.cross(w, array(c.on_first) - a.position))
            slope = (ahead.gap - back.gap) / (2.0 * h)
            assert slope == pytest.approx(rate, abs=2e-5)


def finite(contacts: tuple[Closest, ...]) -> bool:
    numbers = [
        x
        for c in contacts
        for x in (c.gap, *array(c.normal), *array(c.on_first), *array(c.on_second))
    ]
    return bool(np.isfinite(np.array(numbers, dtype=np.float64)).all())


@pytest.mark.parametrize("kinds", PAIRS, ids=NAMES)
def test_coincident_shapes_have_a_direction(kinds: tuple[str, str]) -> None:
    for turn in (np.eye(3), rotation_about((1, 0, 0), np.pi / 2), rotation_about((0, 1, 0), 0.3)):
        first, second = (Shape(kind, (0.1, 0.3, 0.2)[: len(SIZES[kind])]) for kind in kinds)
        contacts = at(first, Frame(turn), second, Frame())
        assert finite(contacts)
        for c in contacts:
            assert array(c.normal) @ array(c.normal) == pytest.approx(1.0)


def test_parallel_capsules_touch_in_the_middle_of_their_overlap() -> None:
    long, short = Shape("capsule", (0.05, 1.0)), Shape("capsule", (0.05, 0.2))
    for tilt in (0.0, 1e-13, -1e-13, 1e-8, -1e-6):
        b = Frame(rotation_about((0, 1, 0), tilt), np.array([0.2, 0.0, 0.3]))
        (c,) = at(long, Frame(), short, b)
        assert c.gap == pytest.approx(0.1 - 0.1 * abs(tilt), abs=1e-9)
        if abs(tilt) < 1e-12:  # rounding does not move the point
            assert array(c.on_first) == pytest.approx([0.05, 0.0, 0.3], abs=1e-5)
    (c,) = at(long, Frame(), short, Frame(position=np.array([0.0, 0.3, 0.9])))
    assert c.gap == pytest.approx(np.hypot(0.3, 0.3) - 0.1)


def test_a_capsule_lies_on_a_face_with_both_ends() -> None:
    capsule, box = Shape("capsule", (0.1, 0.6)), Shape("box", (2.0, 2.0, 0.4))
    flat = Frame(rotation_about((0, 1, 0), np.pi / 2), np.array([0.0, 0.0, 0.29]))
    middle, *ends = at(capsule, flat, box, Frame())
    assert [c.gap for c in (middle, *ends)] == pytest.approx([-0.01] * 3)
    assert middle.on_first.x == pytest.approx(0.0, abs=1e-9)
    assert sorted(float(c.on_first.x) for c in ends) == pytest.approx([-0.3, 0.3])  # type: ignore[arg-type]
    for c in (middle, *ends):
        assert array(c.normal) == pytest.approx([0, 0, 1])


def test_a_ball_inside_a_box_leaves_through_the_nearest_face() -> None:
    ball, box = Shape("sphere", (0.1,)), Shape("box", (1.0, 2.0, 3.0))
    (c,) = at(ball, Frame(position=np.array([-0.4, 0.3, 0.2])), box, Frame())
    assert (c.gap, array(c.normal).tolist()) == (pytest.approx(-0.2), [-1.0, 0.0, 0.0])
    assert array(c.on_second) == pytest.approx([-0.5, 0.3, 0.2])


def test_ground_points_carry_the_shape() -> None:
    """The lowest of the balls about the points is the lowest point of the shape, whatever its
    posture.
    """
    rng = np.random.default_rng(1)
    plane = Shape("plane", ())
    for kind, number in (("sphere", 1), ("capsule", 2), ("box", 8)):
        shape, a = random_shape(kind, rng), random_frame(rng)
        points = ground_points(shape)
        assert len(points) == number
        lowest = min(point_seen(a, place)[2] - radius for place, radius in points)
        assert lowest == pytest.approx(peer_gap(shape, a, plane, Frame()), abs=1e-9)
    assert ground_points(Shape("cylinder", (0.1, 0.2))) == ()


def test_a_level_height_field_is_a_plane_and_a_ramp_has_its_normal() -> None:
    field = Shape("height_field", (0.5, 0.5), heights=((0.1,) * 4,) * 3)
    plane = Shape("plane", (), Frame(position=np.array([0.0, 0.0, 0.1])))
    box = Shape("box", (0.1, 0.2, 0.3))
    rng = np.random.default_rng(4)
    for _ in range(10):
        a = random_frame(rng)
        for c, d in zip(at(box, a, field, Frame()), at(box, a, plane, Frame()), strict=True):
            assert c.gap == pytest.approx(d.gap)
            assert array(c.on_second) == pytest.approx(array(d.on_second))
    ramp = Shape("height_field", (1.0, 1.0), heights=((0.0,) * 3, (0.5,) * 3, (1.0,) * 3))
    ball = Shape("sphere", (0.2,))
    (c,) = at(ball, Frame(position=np.array([0.5, 0.0, 1.25])), ramp, Frame())
    n = np.array([-0.5, 0.0, 1.0]) / np.hypot(0.5, 1.0)
    assert array(c.normal) == pytest.approx(n)
    assert c.gap == pytest.approx(0.5 * n[2] - 0.2)


def test_kinds_without_a_text_are_named() -> None:
    box = Shape("box", (1.0, 1.0, 1.0))
    assert contact_count(box, box) == 0
    with pytest.raises(ModelError, match="no contact of a box with a box"):
        at(box, Frame(), box, Frame())
    for kinds in product(("cylinder",), ("sphere", "plane")):
        first, second = (Shape(kind, (1.0, 1.0, 1.0)[: len(SIZES[kind])]) for kind in kinds)
        assert not contact_count(first, second)
