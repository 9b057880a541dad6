"""Grounds under shapes: spheres, capsules and boxes stand, roll and slide without contact points."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from packages import files

import ramify as rf
from ramify.api.model import Model
from ramify.contact.touching_points import touching_points
from ramify.core.warning import LeftOutWarning
from ramify.files.load import read_yaml
from ramify.model.collisions import Collisions
from ramify.model.frame import Frame
from ramify.model.shape import Shape

G = 9.81


def block(*shapes: dict[str, object], mass: float = 2.0, inertia: float = 0.032) -> Model:
    """A free body with these shapes, all of which collide; without a ``collides`` of their own."""
    given = [{"collides": True, **shape} for shape in shapes]
    builder = rf.Builder("block")
    builder.link("body", joint="free", mass=mass, inertia=(inertia,) * 3, shapes=given)
    return builder.model()


def at(height: float, quaternion: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)) -> np.ndarray:
    return np.array([0.1, -0.2, height, *quaternion])


BALL = {"sphere": 0.2, "xyz": [0.0, 0.0, 0.05]}


def test_a_ball_touches_below_its_centre_however_it_is_turned() -> None:
    m = block(BALL)
    turned = (0.5, 0.5, -0.5, 0.5)  # takes z to x
    c = rf.contact.forces(m, "firm", at(0.15, turned), np.zeros(6))
    centre = np.array([0.1, -0.2, 0.15]) + m.kinematics(at(0.15, turned)).rotation[0] @ [0, 0, 0.05]
    assert c.position[0] == pytest.approx(centre - [0, 0, 0.2])
    assert c.penetration[0] == pytest.approx(0.2 - centre[2])
    assert c.names == ("body.0",)
    spin = rf.contact.forces(m, "firm", at(0.1), np.array([0.3, 0, 0, 0, 2.0, 0]))
    assert spin.slip[0] == pytest.approx([0.3 - 2.0 * 0.15, 0, 0])  # v + w x r of the lowest point


@pytest.mark.parametrize("tier", ["numpy", "unrolled"])
def test_compiled_forces_are_those_of_the_text(tier: str) -> None:
    m = block(BALL, {"capsule": [0.05, 0.4], "rpy": [0.3, 0.2, 0.1]}, {"box": [0.2, 0.3, 0.4]})
    field = rf.contact.HeightField(heights=[[0.0, 0.1, 0.0]] * 3, spacing=0.3, kind="cubic")
    ground = rf.contact.Firm(terrain=field)
    q, v = (
        np.array([m.random(s)[0] for s in range(9)]),
        np.random.default_rng(0).normal(size=(9, 6)),
    )
    q[:, :3] *= 0.1
    single = rf.contact.ContactText(m, ground).reactions(q[0].tolist(), v[0].tolist())
    results = rf.contact.kernel(m, ground, "contact_forces", tier)(q, v)
    assert results[2][0] == pytest.approx([r.depth for r in single[1]], abs=1e-12)
    assert results[1].shape == (9, 11, 3)
    forces = [[r.force.x, r.force.y, r.force.z] for r in single[1]]
    assert results[1][0] == pytest.approx(np.array(forces, dtype=float), rel=1e-9)


def test_a_ball_rolls_down_a_slope() -> None:
    """5/7 g sin(angle) without slip, but for the creep of regularised friction."""
    angle = 0.2
    m = block({"sphere": 0.2}, mass=2.0, inertia=0.4 * 2.0 * 0.04)
    slope = rf.contact.Slope(angle=angle)
    law = rf.contact.HuntCrossley(
        terrain=slope, stiffness=1e6, exponent=1.0, slip_speed=1e-4, dissipation=0.5
    )
    n = np.array(slope.direction)
    start = np.concatenate([0.2 * n - 2.0 * G / 1e6 * n, [1, 0, 0, 0]])
    r = rf.simulate(m, 1.0, start, ground=law, dt_out=0.1, method="radau", rtol=1e-7)
    speed = np.linalg.norm(r.v[-1][:3])
    assert speed == pytest.approx(5.0 / 7.0 * G * math.sin(angle), rel=2e-3)
    assert abs(speed - 0.2 * np.linalg.norm(r.v[-1][3:])) < 2e-3  # it rolls


def test_energy_closes_under_a_rolling_and_bouncing_ball() -> None:
    m = block(BALL)
    q, v = at(0.5), np.array([1.0, 0.3, 0.0, 3.0, -2.0, 1.0])
    r = rf.simulate(m, 0.8, q, v, ground="hunt_crossley", rtol=1e-10, atol=1e-12)
    assert r.contacts is not None
    assert r.contacts.touching.any()
    assert r.audit.passed, r.audit


def test_a_capsule_and_a_box_carry_their_weight_evenly() -> None:
    lying = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)
    capsule = block({"capsule": [0.1, 0.6]})
    r = rf.simulate(capsule, 1.5, at(0.095, lying), ground="firm", step=0.002, dt_out=0.5)
    assert r.contacts is not None
    assert r.contacts.names == ("body.0.0", "body.0.1")
    assert r.contacts.load[-1] == pytest.approx([G, G], rel=1e-3)
    box = block({"box": [0.2, 0.4, 0.3]})
    c = rf.contact.forces(box, "firm", at(0.14), np.zeros(6))
    assert sorted(c.penetration) == pytest.approx([-0.29] * 4 + [0.01] * 4)
    assert sorted(c.load) == pytest.approx([0.0] * 4 + [max(c.load)] * 4)


def test_declared_points_come_first() -> None:
    m = rf.with_contact_points(block(BALL), {"body": {"foot": (0, 0, -0.1)}})
    assert [point.name for point in touching_points(m, None)] == ["foot"]


def test_points_are_chosen_by_the_names_of_shapes() -> None:
    m = block({**BALL, "name": "head"}, {"capsule": [0.1, 0.2], "name": "rod"})
    names = [point.name for point in touching_points(m, ["rod"])]
    assert names == ["rod.0", "rod.1"]
    assert [point.name for point in touching_points(m, ["rod.1", "head"])] == ["head", "rod.1"]
    with pytest.raises(rf.ModelError, match="no contact point 'rood'; did you mean 'rod'"):
        touching_points(m, ["rood"])


def test_shapes_of_another_group_than_the_floor_do_not_touch() -> None:
    text = """
name: two
links:
  - {name: a, joint: free, frame: {}, mass: 1, inertia: [1, 1, 1], shapes: [
      {name: foot, sphere: 0.1, collides: {group: 2, mask: 0}},
      {name: hat, sphere: 0.1, collides: {group: 4, mask: 4}}, {name: face, sphere: 0.1}]}
world: [{plane: true, collides: {group: 1, mask: 3}}]
"""
    m = read_yaml(text, "two.yaml")
    assert [point.name for point in touching_points(m, None)] == ["foot"]


def test_another_floor_than_the_grounds_is_said() -> None:
    low = replace(Collisions(), world=(Shape("plane", (), Frame(position=np.array([0, 0, -0.4])),
        group=1, mask=1),))  # fmt: skip
    m = replace(block(BALL), collisions=low)
    with pytest.warns(RuntimeWarning, match="a plane in its world, -0.4 m high"):
        rf.simulate(m, 0.01, at(1.0), ground="firm", step=0.001)
    below = rf.contact.Firm(terrain=rf.contact.Flat(height=-0.4))
    rf.simulate(m, 0.01, at(1.0), ground=below, step=0.001)


def test_what_passes_through_the_ground_is_said() -> None:
    with pytest.raises(rf.ModelError, match="no contact points, and no sphere, capsule or box"):
        rf.simulate(block({"cylinder": [0.1, 0.2]}), 0.01, at(1.0), ground="firm")
    mixed = block(BALL, {"cylinder": [0.1, 0.2], "name": "drum"})
    with pytest.warns(LeftOutWarning, match=r"pass through the ground: drum \(cylinder\)"):
        rf.simulate(mixed, 0.01, at(1.0), ground="firm", step=0.001)


def test_too_many_points_are_refused() -> None:
    m = block(*[{"box": [0.1, 0.1, 0.1]}] * 65)
    with pytest.raises(rf.ModelError, match="520 points that may touch the ground, more than 512"):
        rf.simulate(m, 0.01, at(1.0), ground="firm")


def gymnasium_robot(name: str) -> Model:
    path: Path = next(file for file in files("gymnasium", ".xml") if file.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rf.load(path)


HEIGHTS = {"half_cheetah.xml": 0.1, "hopper.xml": 1.25, "ant.xml": 0.5, "humanoid.xml": 1.4}


@pytest.mark.parametrize("name", HEIGHTS)
@pytest.mark.filterwarnings("ignore:.*outside its limits", "ignore:the stop of")
def test_public_robots_land_on_a_ground(name: str) -> None:
    """They fall, and their shapes carry them: after a while the ground's force is their weight."""
    m = gymnasium_robot(name)
    q = m.neutral()
    q[1 if name in ("half_cheetah.xml", "hopper.xml") else 2] += HEIGHTS[name]
    q = np.clip(q, m.lower, m.upper)
    r = rf.simulate(m, 3.0, q, ground="hunt_crossley", step=0.004, dt_out=0.04, damping=1.0)
    assert r.contacts is not None
    late = r.contacts.total_force[-20:] @ np.array([0.0, 0.0, 1.0]) / (m.mass * G)
    assert late.mean() == pytest.approx(1.0, abs=0.1)
    assert r.contacts.penetration[-1].max() < 0.02


@pytest.mark.parametrize("uneven", [False, True])
def test_linearized_contact_is_the_difference_of_its_accelerations(uneven: bool) -> None:
    """Through the lowest points of balls, which move along them as they roll and the normal
    turns.
    """
    builder = rf.Builder("pair").link(
        "body", joint="free_euler", mass=2.0, inertia=(0.03, 0.04, 0.05),
        shapes=[{**BALL, "collides": True}, {"capsule": [0.05, 0.4], "rpy": [0.3, 0.2, 0.1], "collides": True}],
    )  # fmt: skip
    m = builder.link("arm", parent="body", mass=0.5, inertia=(0.01,) * 3).model()
    hills = rf.contact.HeightField(
        heights=[[0, 0.1, 0], [0.05, 0, 0.1], [0, 0, 0]], spacing=0.3, origin=(-0.3, -0.3), kind="cubic"
    )  # fmt: skip
    ground = rf.contact.HuntCrossley(terrain=hills if uneven else rf.contact.Flat())
    x = np.random.default_rng(0).normal(size=m.nq + m.nv) * 0.1
    x[2], tau, h = 0.14, np.zeros(m.nv), 1e-6
    kernel = rf.contact.kernel(m, ground, "contact_dynamics")
    A = rf.linearize(m, x[: m.nq], x[m.nq :], tau, ground=ground).A[m.nv :]
    rows = np.concatenate([x + h * np.eye(len(x)), x - h * np.eye(len(x))])
    a = kernel(rows[:, : m.nq], rows[:, m.nq :], tau)[0]
    differences = (a[: len(x)] - a[len(x) :]).T / (2.0 * h)
    assert pytest.approx(differences, rel=1e-6, abs=1e-8 * np.abs(differences).max()) == A
