"""Terrains, laws and warnings of grounds against formulas written anew: with any upward direction, on
unequal grids, in batches whose states differ, and on both sides of every threshold.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import close
from scipy.spatial.transform import Rotation
from test_closest import random_frame, random_shape

import ramify as rf
from ramify.contact import ContactText, Dusty, Firm, Flat, HeightField, HuntCrossley, Slope
from ramify.contact.closest import CONTACTS, closest, pose_of
from ramify.contact.step_limits import damping_rate, warn_of_long_steps, warn_of_start_in_ground
from ramify.contact.touching_points import warn_of_passing_shapes
from ramify.core.arrays import Array
from ramify.core.spatial import Vec3
from ramify.core.warning import LeftOutWarning
from ramify.dynamics.closure import reach
from ramify.model.collisions import Collisions
from ramify.model.frame import Frame
from ramify.model.shape import Shape

UPS = [(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.95, 0.2, -0.1), (0.3, -0.4, 0.8)]  # fmt: skip
"""Upward directions; where x points up or down, ahead is along y."""
PLACES = np.array([[0.3, -0.2, 0.5], [-0.7, 0.4, 0.1], [0.2, 0.9, -0.6]])
HEIGHTS = np.array([[0.1, -0.2, 0.3, 0.05], [0.4, 0.15, -0.1, 0.2], [-0.3, 0.25, 0.35, -0.15]])
"""More nodes to the left than ahead."""


def numbers(vector: Vec3) -> Array:
    return np.array([vector.x, vector.y, vector.z], dtype=np.float64)


def level(up: Any) -> tuple[Array, Array, Array]:
    """(ahead, left, up): x, or y where x is steeper than about 64 degrees, made level."""
    u = np.array(up) / np.linalg.norm(up)
    x = np.eye(3)[1 if abs(u[0]) > 0.9 else 0]
    ahead = np.cross(np.cross(u, x), u)
    ahead /= np.linalg.norm(ahead)
    return ahead, np.cross(u, ahead), u


# ---- terrains ----


@pytest.mark.parametrize("up", UPS)
def test_planes_rise_towards_their_heading_from_their_height(up: Any) -> None:
    angle, heading, height = 0.4, 0.7, 0.35
    ahead, left, u = level(up)
    uphill = math.cos(heading) * ahead + math.sin(heading) * left
    normal = math.cos(angle) * u - math.sin(angle) * uphill
    planes = [
        (Flat(height=height, up=up), u),
        (Slope(angle=angle, heading=heading, height=height, up=up), normal),
        (Slope(normal=normal * 3.0, height=height, up=up), normal),
    ]
    for terrain, n in planes:
        for place in PLACES:
            depth, along = terrain.under(Vec3(*place))
            close(numbers(along), n, 1e-12, 1e-12, "normal")
            close(float(depth), -n @ (place - height * u), 1e-12, 1e-12, "depth")


def catmull_rom(values: Array, u: float) -> tuple[Array, Array]:
    """Of values (n, …) at whole u, mirrored at both ends, and the derivative; level beyond."""
    n = len(values)
    x = min(max(u, 0.0), n - 1.0)
    i = min(int(x), n - 2)
    s = x - i
    padded = np.concatenate([values[1:2], values, values[-2:-1]])[i : i + 4]
    matrix = 0.5 * np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]])
    value = np.tensordot(np.array([1.0, s, s * s, s**3]) @ matrix, padded, 1)
    slope = np.tensordot(np.array([0.0, 1.0, 2 * s, 3 * s * s]) @ matrix, padded, 1)
    return value, slope if 0.0 < u < n - 1.0 else 0.0 * slope


def straight(values: Array, u: float) -> tuple[Array, Array]:
    n = len(values)
    x = min(max(u, 0.0), n - 1.0)
    i = min(int(x), n - 2)
    slope = values[i + 1] - values[i]
    return values[i] + (x - i) * slope, slope if 0.0 < u < n - 1.0 else 0.0 * slope


@pytest.mark.parametrize(("kind", "between"), [("linear", straight), ("cubic", catmull_rom)])
@pytest.mark.parametrize("up", UPS)
def test_height_fields_over_unequal_grids(kind: Any, between: Any, up: Any) -> None:
    """Inside and beyond each edge, away from the creases of a linear field."""
    spacing, origin = (0.5, 0.2), (-0.3, 0.15)
    field = HeightField(heights=HEIGHTS, spacing=spacing, origin=origin, kind=kind, up=up)
    ahead, left, u = level(up)
    for i in (-0.8, 0.3, 0.6, 1.7, 2.9):
        for j in (-0.4, 0.25, 1.6, 2.35, 3.7):
            x, y = origin[0] + i * spacing[0], origin[1] + j * spacing[1]
            columns = [between(HEIGHTS[:, k], i) for k in range(4)]
            height, by_y = between(np.array([c[0] for c in columns]), j)
            by_x = between(np.array([c[1] for c in columns]), j)[0]
            depth, normal = field.under(Vec3(*(x * ahead + y * left + 0.9 * u)))
            close(float(depth), height - 0.9, 1e-12, 1e-12, f"depth at {i}, {j}")
            slope = u - ahead * by_x / spacing[0] - left * by_y / spacing[1]
            close(numbers(normal), slope, 1e-10, 1e-10, f"normal at {i}, {j}")


def test_a_given_upward_direction_stays_and_an_open_one_is_that_against_gravity() -> None:
    tilted = (0.1, 0.2, 0.9)
    for terrain in (Flat(height=0.2), Slope(angle=0.1, height=0.2)):
        fixed = replace(terrain, up=tilted)
        assert terrain.fitted((0.0, 1.0, 0.0)).up == (0.0, 1.0, 0.0)
        close(fixed.fitted((0.0, 0.0, 1.0)).up, level(tilted)[2], 1e-12)
        with pytest.raises(rf.StateError, match="does not point up"):
            fixed.fitted((0.0, 0.0, -1.0))


# ---- laws on a terrain ----

STEEP = HeightField(heights=HEIGHTS * 3.0, spacing=(0.5, 0.2), origin=(-0.3, 0.15), up=(0.3, -0.4, 0.8))  # fmt: skip
LAWS = [
    Firm(stiffness=800.0, damping=90.0, friction=0.6, horizontal_damping=40.0, full_depth=0.7),
    Dusty(stiffness=700.0, damping=30.0, friction=0.4, horizontal_damping=25.0, dust=0.1),
    HuntCrossley(stiffness=900.0, exponent=2.0, dissipation=0.3, friction=0.5, slip_speed=0.2),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("terrain", [Slope(angle=0.5, heading=0.4, height=0.2), STEEP], ids=["slope", "field"])  # fmt: skip
@pytest.mark.parametrize("load", [None, 37.0])
def test_reactions_and_resistances_by_hand(law: Any, terrain: Any, load: float | None) -> None:
    law = replace(law, terrain=terrain)
    place = np.array([0.31, 0.37, -0.45])
    for velocity in np.array([[0.4, -0.3, 0.2], [-0.2, 0.5, -0.6], [0.03, 0.02, 0.7]]):
        depth, normal = terrain.under(Vec3(*place))
        N = numbers(normal)
        assert depth > 0.1
        assert load is None or terrain is not STEEP or abs(np.linalg.norm(N) - 1.0) > 0.1
        sinking = -N @ velocity
        force, _, stored = law.normal(depth, sinking)
        unit = N / np.linalg.norm(N)
        slip = velocity - (unit @ velocity) * unit
        pressed = (force if load is None else load) * np.linalg.norm(N)
        size = np.linalg.norm(slip)
        if isinstance(law, HuntCrossley):
            rubbing = law.friction * pressed / math.hypot(size, law.slip_speed)
        else:
            limit, c = law.friction * pressed, law.horizontal_damping
            rubbing = limit * 2.0 / math.pi * math.atan(0.5 * math.pi * c * size / limit) / size
        found = law.reaction(Vec3(*place), Vec3(*velocity), load)
        close(numbers(found.force), N * force - rubbing * slip, 1e-9, 1e-9, "force")
        close(numbers(found.slip), slip, 1e-10, 1e-12, "slip")
        close([found.depth, found.stored], [depth, stored], 1e-12, 1e-12, "depth, stored")
        h = 1e-6
        ahead, behind = (
            law.normal(terrain.under(Vec3(*(place + s * h * velocity)))[0], 0.0).stored
            for s in (1, -1)
        )
        power = -(N * force - rubbing * slip) @ velocity
        close(found.loss, power - (ahead - behind) / (2 * h), 1e-6, 1e-6, "loss")
        resisting = law.resistance(Vec3(*place), Vec3(*velocity), load)
        slopes = [
            (law.normal(depth + a * h, sinking + b * h).force
             - law.normal(depth - a * h, sinking - b * h).force) / (2 * h)
            for a, b in ((1, 0), (0, 1))
        ]  # fmt: skip
        close(resisting[1:4], [*np.maximum(slopes, 0.0), rubbing], 1e-6, 1e-6, "resistance")
        close(float(resisting[4]), float(force), 1e-12, 1e-12, "normal force")


# ---- robots ----

GRAVITIES = [(0.0, 0.0, -9.81), (0.0, -3.7, 0.0), (-2.0, 1.0, -8.0)]


def walker(gravity: Any) -> rf.Model:
    """A free body and a leg, with points away from their origins; one name on both."""
    b = rf.Builder("walker", gravity=gravity)
    b.link(
        "body", joint="free", mass=3.0, com=(0.1, 0.0, 0.05), inertia=(0.2, 0.3, 0.4),
        points={"tip": (0.2, -0.1, 0.3), "back": (-0.3, 0.2, -0.1)},
    )  # fmt: skip
    b.link(
        "leg", parent="body", joint="revolute", axis=(0.0, 1.0, 0.0), at=(0.1, 0.2, -0.2), mass=1.0,
        com=(0.0, 0.0, -0.2), inertia=(0.03, 0.02, 0.01), points={"tip": (0.05, 0.02, -0.4)},
    )  # fmt: skip
    return b.model()


def places_of(model: rf.Model, q: Array) -> Array:
    """(N, 3, 3): the three points in the world, from the poses of the bodies."""
    at = model.kinematics(q)
    local = [("body", (0.2, -0.1, 0.3)), ("body", (-0.3, 0.2, -0.1)), ("leg", (0.05, 0.02, -0.4))]
    bodies = [body.name for body in model.bodies]
    parts = [
        at.position[:, bodies.index(b)] + at.rotation[:, bodies.index(b)] @ np.array(place)
        for b, place in local
    ]
    return np.stack(parts, axis=1)


def postures(model: rf.Model, up: Any, heights: Any) -> tuple[Array, Array]:
    states = [model.random(seed=s) for s in range(len(heights))]
    q, v = (np.array([state[k] for state in states]) for k in (0, 1))
    q[:, :3] = 0.1 * q[:, :3] + np.outer(heights, up)
    return q, v


@pytest.mark.parametrize("gravity", GRAVITIES)
def test_contacts_of_several_states_by_hand(gravity: Any) -> None:
    model, up = walker(gravity), level(-np.array(gravity))[2]
    ground = Firm(terrain=Slope(angle=0.2, heading=0.5, height=0.1), friction=0.4)
    q, v = postures(model, up, [0.0, -0.4, -0.2, 5.0])
    found = rf.contact.forces(model, ground, q, v)
    assert found.names == ("body.tip", "back", "leg.tip")
    fitted = ground.fitted(model)
    weight = model.mass * np.linalg.norm(gravity)
    close(fitted.stiffness, weight / 0.05, 1e-12, 0.0, "stiffness")
    assert fitted.described(ground)["chosen"] == [
        "stiffness",
        "damping",
        "horizontal_damping",
        "full_depth",
    ]
    places, h = places_of(model, q), 1e-6
    moved = [
        places_of(
            model, np.array([model.integrate(a, s * b, h) for a, b in zip(q, v, strict=True)])
        )
        for s in (1, -1)
    ]
    speeds = (moved[0] - moved[1]) / (2 * h)
    close(found.position, places, 1e-9, 1e-9, "position")
    forces = np.zeros_like(places)
    stored = np.zeros(len(q))
    for n in range(len(q)):
        for k in range(3):
            reaction = fitted.reaction(Vec3(*places[n, k]), Vec3(*speeds[n, k]))
            forces[n, k] = numbers(reaction.force)
            stored[n] += reaction.stored
            close(found.penetration[n, k], float(reaction.depth), 1e-8, 1e-8, "penetration")
            close(found.slip[n, k], numbers(reaction.slip), 1e-6, 1e-6, "slip")
    close(found.force, forces, 1e-5, 1e-4, "force")
    close(found.stored, stored, 1e-7, 1e-8, "stored")
    assert np.isnan(found.dissipated).all()
    close(found.load, found.force @ up, 1e-12, 1e-12, "load")
    normal = numbers(fitted.terrain.unit_normal(Vec3(0.0, 0.0, 0.0)))
    close(found.normal_load, found.force @ normal, 1e-9, 1e-9, "normal load")
    assert np.array_equal(found.touching, (found.force != 0.0).any(axis=2))
    assert not found.touching[3].any()
    assert np.isnan(found.center_of_pressure[3]).all()
    loads = found.normal_load[:3]
    pressure = np.einsum("nk,nki->ni", loads, places[:3]) / loads.sum(axis=1)[:, None]
    close(found.center_of_pressure[:3], pressure, 1e-9, 1e-9, "centre of pressure")
    close(found.total_force, found.force.sum(axis=1), 1e-12, 1e-12, "total")
    close(found["body"], found.force[:, :2].sum(axis=1), 1e-12, 1e-12, "body")
    close(found["leg.tip"], found.force[:, 2], 0.0, 0.0, "leg.tip")
    wrenches = found.wrenches(model, q)
    origins = model.kinematics(q).position
    for b, (name, mine) in enumerate((("body", [0, 1]), ("leg", [2]))):
        moment = sum(np.cross(places[:, k] - origins[:, b], found.force[:, k]) for k in mine)
        expected = np.concatenate([moment, found.force[:, mine].sum(axis=1)], axis=1)
        close(wrenches[name], expected, 1e-8, 1e-8, f"wrench on {name}")


@pytest.mark.parametrize("gravity", GRAVITIES)
def test_the_fastest_decay_is_that_of_the_worst_posture(gravity: Any) -> None:
    """Whichever of the first postures that is."""
    model = walker(gravity)
    contact = ContactText(model, Firm())
    up = level(-np.array(gravity))[2]
    q, _ = postures(model, up, [0.0, 0.3, 0.1])
    q[:, -1] = 0.3, 2.1, -1.0
    rates = []
    for row in q:
        columns = []
        for k in range(model.nv):
            e, h = np.eye(model.nv)[k], 1e-6
            plus, minus = (
                places_of(model, model.integrate(row, s * e, h)[None])[0] for s in (1, -1)
            )
            columns.append((plus - minus) @ up / (2 * h))
        J = np.array(columns).T
        damped = np.linalg.solve(model.mass_matrix(row), contact.ground.damping * J.T @ J)
        rates.append(float(np.linalg.eigvals(damped).real.max()))
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        close(damping_rate(contact, q[order]), max(rates), 1e-6, 0.0, "rate")
    close([damping_rate(contact, row[None]) for row in q], rates, 1e-6, 0.0, "rates")
    assert damping_rate(ContactText(model, HuntCrossley()), q) == 0.0
    limit, rate = 2.785, max(rates)
    said = f"decays at {rate:.3g} 1/s, which needs steps below {limit / rate:.2g} s"
    with pytest.warns(RuntimeWarning, match=re.escape(said)):
        warn_of_long_steps(contact, q, "rk4", 1.01 * limit / rate, limit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_long_steps(contact, q, "rk4", 0.99 * limit / rate, limit)


@pytest.mark.parametrize("share", [0.98, 1.02])
def test_starts_in_the_ground_are_measured_by_all_springs_of_the_worst_state(share: float) -> None:
    """The springs of both points throw the robot; the point named is the deepest of that state."""
    b = rf.Builder("rod", gravity=(0.0, -5.0, 0.0))
    b.link(
        "rod", joint="free", mass=2.0, com=(0.3, 0.0, 0.0), inertia=(0.1, 0.2, 0.3),
        points={"left": (0.0, 0.0, 0.0), "right": (1.0, 0.0, 0.0)},
    )  # fmt: skip
    model = b.model()
    ground = Firm(stiffness=400.0, damping=1.0)
    contact = ContactText(model, ground)
    q = np.tile(model.neutral(), (3, 1))
    deep = math.sqrt(share * reach(model) * 2.0 * 5.0 / (0.5 * 400.0 * (1.0 + 0.6**2)))
    q[:, 1] = -0.3 * deep, 0.1, -deep
    turn = Rotation.from_rotvec([0.0, 0.0, math.asin(-0.4 * deep)])
    q[2, 3:] = turn.inv().as_quat(scalar_first=True)  # the right end is less deep
    q[0, 3:] = Rotation.from_rotvec([0.0, 0.0, -0.3 * deep]).as_quat(scalar_first=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_start_in_ground(contact, q)
    said = [str(w.message) for w in caught]
    if share < 1.0:
        assert not said
        return
    assert len(said) == 1
    assert f"in state 2: 'left' is {deep:.3g} m deep" in said[0]
    assert f"throw the robot up by {share * reach(model):.2g} m" in said[0]
    with pytest.warns(RuntimeWarning, match="starts inside the ground: 'left'"):
        warn_of_start_in_ground(contact, q[2:])


def test_a_plane_of_the_world_is_the_ground_only_if_it_is_tilted_alike() -> None:
    up, tilt = (0.0, 1.0, 0.0), 0.3
    ahead, left, u = level(up)
    normal = math.cos(tilt) * u - math.sin(tilt) * ahead
    axes = np.stack([math.cos(tilt) * ahead + math.sin(tilt) * u, left, normal], axis=1)
    same = axes @ Rotation.from_rotvec([0.0, 0.0, 0.7]).as_matrix()
    ground = Firm(terrain=Slope(angle=tilt, height=0.6))
    base = walker((0.0, -9.81, 0.0))
    q = base.neutral()[None].copy()
    q[:, :3] = 5.0 * u

    def warned(rotation: Array, height: float) -> list[str]:
        frame = Frame(rotation, height * u)
        floor = (Shape("plane", (), frame, group=1, mask=1),)
        model = replace(base, collisions=replace(Collisions(), world=floor))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_start_in_ground(ContactText(model, ground), q)
        return [str(w.message) for w in caught]

    assert not warned(same, 0.6)
    for rotation, height in ((same, 0.4), (same.T, 0.6), (np.stack([left, u, ahead], 1).T, 0.6)):
        (said,) = warned(rotation, height)
        assert f"a plane in its world, {height:.3g} m high" in said
        assert f"Flat(height={height:.3g})" in said


def test_shapes_that_pass_through_the_ground_are_counted() -> None:
    def drums(count: int) -> rf.Model:
        b = rf.Builder("drums")
        shapes: list[Any] = [{"sphere": 0.1, "collides": True, "name": "ball"}]
        shapes += [
            {"cylinder": [0.1, 0.2], "collides": True, "name": f"d{i}"} for i in range(count)
        ]
        b.link("a", joint="free", mass=1.0, inertia=(1.0, 1.0, 1.0), shapes=shapes)
        return b.model()

    for count, said in ((3, "d0 .*, d1 .*, d2 .cylinder.; give"), (6, "d3 .cylinder. and 2 more;")):
        with pytest.warns(LeftOutWarning, match=said):
            warn_of_passing_shapes(drums(count))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_passing_shapes(drums(0))
        warn_of_passing_shapes(rf.with_contact_points(drums(2), {"a": {"foot": (0, 0, 0)}}))


# ---- pairs of shapes ----


def outside(shape: Shape, at: Frame, point: Array) -> float:
    """How far a point is outside a sphere, a capsule, a box or a plane, m."""
    x = (at @ shape.frame).inverse()
    p = x.rotation @ point + x.position
    if shape.kind == "sphere":
        return float(np.linalg.norm(p) - shape.size[0])
    if shape.kind == "capsule":
        p[2] -= np.clip(p[2], -0.5 * shape.size[1], 0.5 * shape.size[1])
        return float(np.linalg.norm(p) - shape.size[0])
    if shape.kind == "box":
        return float(np.linalg.norm(np.maximum(np.abs(p) - 0.5 * np.array(shape.size), 0.0)))
    return float(p[2])


@pytest.mark.parametrize("kinds", [k for k in CONTACTS if "height_field" not in k], ids="-".join)
def test_closest_points_are_on_their_shapes(kinds: tuple[str, str]) -> None:
    rng, apart = np.random.default_rng(5), 0
    while apart < 20:
        first, second = (random_shape(kind, rng) for kind in kinds)
        a, b = random_frame(rng), random_frame(rng)
        for pair in ((first, a, second, b), (second, b, first, a)):
            contacts = closest(pair[0], pose_of(pair[1]), pair[2], pose_of(pair[3]))
            nearest = min(contacts, key=lambda c: float(c.gap))  # type: ignore[arg-type]
            if float(nearest.gap) <= 1e-3:  # type: ignore[arg-type]
                continue
            apart += 1
            on = numbers(nearest.on_first), numbers(nearest.on_second)
            ends = [outside(pair[0], pair[1], on[0]), outside(pair[2], pair[3], on[1])]
            close(ends, [0.0, 0.0], 0.0, 1e-9, "distances of the points from their shapes")
