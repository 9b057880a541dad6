"""The ground: laws that never pull and never give energy, blocks on slopes, drops, falls, and the
same numbers on every way.
"""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify as rf
from ramify.contact import ContactText, Dusty, Firm, Flat, Ground, HeightField, HuntCrossley, Slope
from ramify.contact.terrain import ROUNDING
from ramify.core.spatial import Vec3
from ramify.integrate.batch_steps import BatchSteps
from ramify.trace.interpret import interpret

G = 9.81
LAWS = [Firm(), Dusty(), HuntCrossley()]
NAMES = ["firm", "dusty", "hunt_crossley"]
BUMPS = [[0.02 * math.sin(1.3 * i + 0.7 * j) for j in range(5)] for i in range(6)]
TERRAINS = [
    Flat(height=0.03),
    Slope(angle=0.2, heading=0.5, height=-0.02),
    Slope(normal=(0.1, -0.2, 1.0)),
    HeightField(heights=BUMPS, spacing=(0.4, 0.3), origin=(-1.0, -0.6)),
    HeightField(heights=BUMPS, spacing=0.4, origin=(-1.0, -0.8), kind="cubic"),
]


def body(
    points: dict[str, Any],
    mass: float = 2.0,
    gravity: tuple[float, ...] = (0.0, 0.0, -G),
    size: float = 0.2,
) -> rf.Model:
    """A free block with contact points."""
    made = rf.Builder("block", gravity=gravity)
    return made.link(
        "block", joint="free", mass=mass, inertia=[mass * size**2 / 6.0] * 3, points=points
    ).model()


def ball(**options: Any) -> rf.Model:
    return body({"tip": (0.0, 0.0, 0.0)}, **options)


def raised(model: rf.Model, height: float) -> Any:
    q = model.neutral()
    q[2] = height
    return q


CORNERS = {f"corner{i}{j}": (0.1 * i, 0.1 * j, 0.0) for i in (-1, 1) for j in (-1, 1)}


@pytest.fixture(scope="module")
def quadruped() -> rf.Model:
    return rf.load("quadruped")


def near_ground(model: rf.Model, count: int, seed: int = 1) -> tuple[Any, Any]:
    """States in which some contact points are in the ground and some are not."""
    rng = np.random.default_rng(seed)
    q, v = 0.4 * rng.normal(size=(count, model.nq)), rng.normal(size=(count, model.nv))
    q[:, 2] = rng.uniform(-0.1, 0.6, size=count)
    return q, v


# ---- laws ----

finite = st.floats(-1e3, 1e3)
grounds = st.sampled_from(
    [
        *LAWS,
        Firm(full_depth=0.02, friction=0.0),
        Dusty(dust=0.0),
        HuntCrossley(exponent=1),
        HuntCrossley(exponent=2.5),
    ]
)


@given(law=grounds, depth=st.floats(-1.0, 1.0), rate=finite, slip=st.tuples(finite, finite))
def test_a_ground_never_pulls_and_never_gives_power(
    law: Ground, depth: float, rate: float, slip: tuple[float, float]
) -> None:
    ground = law.fitted(ball())
    felt = ground.reaction(Vec3(0.3, -0.2, -depth), Vec3(slip[0], slip[1], -rate))
    tangential = math.hypot(felt.force.x, felt.force.y)
    assert felt.force.z >= 0.0
    assert tangential <= law.friction * felt.force.z * (1.0 + 1e-12)
    assert felt.force.x * slip[0] + felt.force.y * slip[1] <= 0.0
    assert felt.loss >= 0.0
    assert felt.stored >= 0.0
    if depth <= 0.0:
        assert (felt.force.z, tangential, felt.stored, felt.loss) == (0.0, 0.0, 0.0, 0.0)


@given(terrain=st.sampled_from(TERRAINS), x=st.floats(-3.0, 3.0), y=st.floats(-3.0, 3.0))
def test_the_normal_is_the_gradient_of_the_depth(terrain: Any, x: float, y: float) -> None:
    h = 1e-6
    _, normal = terrain.under(Vec3(x, y, 0.1))
    found = []
    for step in (Vec3(h, 0.0, 0.0), Vec3(0.0, h, 0.0), Vec3(0.0, 0.0, h)):
        (a, _), (b, _) = (terrain.under(Vec3(x, y, 0.1) + step * s) for s in (1.0, -1.0))
        found.append(-(a - b) / (2.0 * h))
    bend = (
        1e-5 if isinstance(terrain, HeightField) else 1e-8
    )  # its second derivative may jump: h times half of that jump
    assert np.allclose(found, [normal.x, normal.y, normal.z], rtol=0.0, atol=bend)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_a_height_field_goes_through_its_nodes_and_a_tilted_one_is_a_slope(kind: Any) -> None:
    field = HeightField(heights=BUMPS, spacing=(0.4, 0.3), origin=(-1.0, -0.6), kind=kind)
    nodes = np.pad(BUMPS, 1, mode="edge")
    if (
        kind == "linear"
    ):  # rounding moves a node by a quarter of its part of the second difference, each way
        nodes = nodes + 0.25 * ROUNDING * np.pad(np.diff(nodes, 2, axis=0), ((1, 1), (0, 0)))
        nodes = nodes + 0.25 * ROUNDING * np.pad(np.diff(nodes, 2, axis=1), ((0, 0), (1, 1)))
    for i, row in enumerate(BUMPS):
        for j in range(len(row)):
            depth, _ = field.under(Vec3(-1.0 + 0.4 * i, -0.6 + 0.3 * j, 0.0))
            assert depth == pytest.approx(nodes[i + 1, j + 1], abs=1e-14)
    tilted = HeightField(
        heights=[[0.3 * i - 0.1 * j for j in range(6)] for i in range(6)], spacing=1.0, kind=kind
    )
    depth, normal = tilted.under(Vec3(2.3, 2.7, 0.2))
    assert depth == pytest.approx(0.3 * 2.3 - 0.1 * 2.7 - 0.2, abs=1e-14)
    assert np.allclose([normal.x, normal.y, normal.z], [-0.3, 0.1, 1.0], atol=1e-14)
    beyond, level = tilted.under(Vec3(-5.0, 9.0, 0.0))
    assert (beyond, level.x, level.y) == (pytest.approx(-0.5, abs=1e-14), 0.0, 0.0)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_slopes_of_a_height_field_do_not_jump(kind: Any) -> None:
    """Neither at grid lines nor at edges: on a crease the direction of the force would jump from
    step to step.
    """
    field = HeightField(heights=BUMPS, spacing=(0.4, 0.3), origin=(-1.0, -0.6), kind=kind)
    for x in -1.0 + 0.4 * np.arange(6):
        for y in -0.6 + 0.3 * np.arange(5):
            normals = [
                field.under(Vec3(x + a, y + b, 0.0))[1]
                for a in (-1e-7, 0.0, 1e-7)
                for b in (-1e-7, 0.0, 1e-7)
            ]
            assert np.ptp([[n.x, n.y, n.z] for n in normals], axis=0).max() < 2e-6


@pytest.mark.parametrize("kind", ["linear", "cubic"])
@pytest.mark.parametrize("law", LAWS, ids=NAMES)
@pytest.mark.filterwarnings("ignore:.*starts inside the ground")
def test_feet_may_stand_on_the_grid_lines_of_a_height_field(
    quadruped: rf.Model, law: Ground, kind: Any
) -> None:
    edge = HeightField(
        heights=[[0.0, 0.0], [0.0, 0.1]], spacing=1.0, origin=(-0.5, -0.5), kind=kind
    )
    feet = [name for b in quadruped.bodies for name, _ in b.points if name.endswith("foot")]
    run = rf.simulate(
        quadruped, 0.1, raised(quadruped, 0.6), ground=replace(law, terrain=edge, points=feet)
    )
    assert run.audit.passed
    assert run.contacts.touching[-1].any()
    assert run.stats["evaluations"] < 20_000


def test_damping_of_firm_ground_follows_the_corrected_equations() -> None:
    law = Firm(stiffness=1000.0, damping=50.0, full_depth=0.1).fitted(ball())
    assert law.normal(0.04, 2.0).force == pytest.approx(
        1000.0 * 0.04 + 50.0 * 2.0
    )  # sinking, (D.1), (D.2)
    rising = 50.0 * (3 * 0.4**2 - 2 * 0.4**3)  # (D.3)
    assert law.normal(0.04, -0.5).force == pytest.approx(1000.0 * 0.04 - rising * 0.5)
    assert law.normal(0.3, -0.5).force == pytest.approx(1000.0 * 0.3 - 50.0 * 0.5)
    assert Firm(stiffness=2000.0, overdamping=10.0).fitted(ball(mass=9.4)).damping == pytest.approx(
        2742.2618401604173
    )  # ReDySim
    dusty = Dusty(stiffness=1000.0, damping=50.0, dust=0.01).fitted(ball())
    assert dusty.normal(0.005, 2.0).force == pytest.approx(
        100.0
    )  # (D.6): in the dust only the damper
    assert dusty.normal(0.03, 2.0).force == pytest.approx(1000.0 * 0.02 + 100.0)
    assert dusty.normal(0.03, -2.0).force == pytest.approx(1000.0 * 0.02)


def test_friction_is_viscous_at_slow_and_coulomb_at_fast_slip() -> None:
    law = Firm(friction=0.6, horizontal_damping=300.0).fitted(ball())
    assert law.grip(100.0, 1e-12) == pytest.approx(300.0, rel=1e-6)
    assert law.grip(100.0, 1e6) * 1e3 == pytest.approx(60.0, rel=1e-3)
    speed = 0.1
    book = 60.0 * 2.0 / math.pi * math.atan(300.0 * speed / 60.0 * math.pi / 2.0)  # (D.5)
    assert law.grip(100.0, speed**2) * speed == pytest.approx(book, rel=1e-12)


def test_friction_of_each_axis_by_itself() -> None:
    """(D.5) as printed: along an axis the same force, along a diagonal sqrt(2) of it; power lost."""
    plain, printed = (
        Firm(friction=0.6, horizontal_damping=300.0, per_axis=each).fitted(ball())
        for each in (False, True)
    )
    place = Vec3(0.0, 0.0, -0.1)
    for x, y in ((0.2, 0.0), (0.0, -3.0), (50.0, 50.0), (0.3, -0.1)):
        a, b = (law.reaction(place, Vec3(x, y, 0.0)) for law in (plain, printed))
        load = 0.6 * b.force.z
        for force, slip in ((b.force.x, x), (b.force.y, y)):
            book = -load * 2.0 / math.pi * math.atan(0.5 * math.pi * 300.0 * slip / load)
            assert force == pytest.approx(book, rel=1e-9, abs=1e-9)
        assert b.loss == pytest.approx(-b.force.x * x - b.force.y * y)
        if x and y:
            assert math.hypot(b.force.x, b.force.y) > math.hypot(a.force.x, a.force.y)
        else:
            assert (a.force.x, a.force.y) == pytest.approx((b.force.x, b.force.y), abs=1e-9)
    with pytest.raises(rf.StateError, match="per_axis is for level ground"):
        Firm(per_axis=True, terrain=Slope(angle=0.1))
    m = ball()
    start = [1.0, 1.0, *np.zeros(m.nv - 2)]
    r = rf.simulate(m, 0.05, m.neutral(), start, ground="{law: firm, per_axis: true}")
    assert r.audit.passed
    assert r.options["ground"]["per_axis"]


# ---- a block on a slope ----


@pytest.mark.parametrize("steepness", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_friction_on_a_steep_field_is_that_of_its_normal_force(
    law: Ground, steepness: float
) -> None:
    """The normal of a field is longer than one on a slope, and so is the load that friction feels:
    at fast slip friction is mu times the whole normal force, at any angle.
    """
    heights = [[0.0, 0.0], [steepness, steepness]]
    field = HeightField(heights=heights, spacing=1.0)
    ground = replace(law, terrain=field, friction=0.4).fitted(ball())
    place = Vec3(0.5, 0.5, 0.5 * steepness - 0.02)
    normal = np.array((-steepness, 0.0, 1.0)) / math.hypot(1.0, steepness)
    felt = ground.reaction(place, Vec3(0.0, 1e5, 0.0))
    force = np.array((felt.force.x, felt.force.y, felt.force.z))
    across = force @ normal
    assert across > 0.0
    assert force[1] == pytest.approx(-0.4 * across, rel=1e-3)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_a_large_height_field_is_memory_not_code(kind: Any) -> None:
    """The same waves on grids of two sizes: as many operations, and a kernel that agrees with the
    closed form of the waves as well as the spacing allows.
    """
    sizes = {}
    for n in (20, 300):
        x, y = np.meshgrid(*[np.linspace(0.0, 6.0, n)] * 2, indexing="ij")
        spacing = 6.0 / (n - 1)
        field = HeightField(
            heights=0.1 * np.sin(x) * np.cos(y), spacing=spacing, origin=(-3.0, -3.0), kind=kind
        )
        kernel = rf.contact.kernel(ball(), HuntCrossley(terrain=field), "contact_forces")
        sizes[n] = len(kernel.program.order)
        q = np.tile(ball().neutral(), (64, 1))
        q[:, :2] = np.random.default_rng(0).uniform(-2.5, 2.5, size=(64, 2))
        depth = kernel(q, np.zeros((64, 6)))[2][:, 0]
        want = 0.1 * np.sin(q[:, 0] + 3.0) * np.cos(q[:, 1] + 3.0)
        assert np.abs(depth - want).max() < 0.1 * spacing**2
    assert len(repr(field)) < 500
    assert sizes[20] == sizes[300]


SLOPE_LAWS = [
    Firm(friction=0.5, horizontal_damping=1e5),
    Dusty(friction=0.5, horizontal_damping=1e5),
    HuntCrossley(friction=0.5, slip_speed=1e-3),
]


def on_slope(law: Ground, angle: float, t_end: float) -> Any:
    """A block that starts at rest on a slope rising along x, as deep as it will stand."""
    model = body(CORNERS)
    ground = replace(law, terrain=Slope(angle=angle))
    weight = 2.0 * G * math.cos(angle) / 4.0
    numbers = ground.fitted(model)
    depth = (weight / numbers.stiffness) ** (1.0 / getattr(numbers, "exponent", 1.0)) + getattr(
        numbers, "dust", 0.0
    )  # type: ignore[attr-defined]
    q = model.neutral()
    q[:3] = -depth * np.array([-math.sin(angle), 0.0, math.cos(angle)])
    q[3:7] = math.cos(angle / 2), 0.0, -math.sin(angle / 2), 0.0
    return rf.simulate(
        model, t_end, q, ground=ground, dt_out=0.05, method="lsoda", rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize("law", SLOPE_LAWS, ids=NAMES)
def test_a_block_slides_above_the_friction_angle(law: Ground) -> None:
    angle = math.atan(0.5) + 0.15
    run = on_slope(law, angle, 1.0)
    down = np.array([-math.cos(angle), 0.0, -math.sin(angle)])
    along = run.v[:, :3] @ down
    found = (along[-1] - along[-11]) / (run.t[-1] - run.t[-11])
    assert found == pytest.approx(G * (math.sin(angle) - 0.5 * math.cos(angle)), rel=2e-5)
    assert run.audit.passed


@pytest.mark.parametrize("law", SLOPE_LAWS, ids=NAMES)
def test_a_block_sticks_below_the_friction_angle_but_for_the_creep_of_its_law(law: Ground) -> None:
    angle = math.atan(0.5) - 0.15
    run = on_slope(law, angle, 1.0)
    speed = np.linalg.norm(run.contacts.slip[-1], axis=1)
    share = math.tan(angle) / 0.5
    load = 2.0 * G * math.cos(angle) / 4.0
    if isinstance(law, HuntCrossley):
        creep = law.slip_speed * share / math.sqrt(1.0 - share**2)
    else:
        creep = 2.0 * 0.5 * load / (math.pi * 1e5) * math.tan(0.5 * math.pi * share)
    assert np.allclose(speed, creep, rtol=0.2)  # corners share the load unevenly
    assert speed.max() < 1e-3 * G  # what free sliding would reach within a millisecond
    assert np.linalg.norm(run.q[-1, :3] - run.q[0, :3]) < 2e-3


# ---- drops ----


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_a_dropped_mass_never_gains_energy_and_comes_to_rest(law: Ground) -> None:
    model = ball()
    run = rf.simulate(
        model, 1.5, raised(model, 0.3), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], ground=law, dt_out=0.002
    )
    total = run.energy.total + run.contacts.stored
    assert np.diff(total).max() < 1e-7
    assert np.diff(run.contacts.dissipated).min() > -1e-9
    assert run.audit.passed
    assert run.audit.energy.relative < 1e-6
    assert np.abs(run.v[-1]).max() < 0.03
    assert run.contacts.load[-1, 0] == pytest.approx(2.0 * G, rel=2e-3)


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_impulse_is_change_of_momentum(law: Ground) -> None:
    """Of every explicit Euler step to rounding, and of an accurate run within the resolution of its
    output.
    """
    model, dt = ball(), 1e-4
    start = raised(model, 0.001), np.array([0.7, 0.0, -1.0, 0.0, 0.0, 0.0])
    steps = rf.rollout(model, *start, steps=400, dt=dt, ground=law, method="euler", every=1)
    felt = rf.contact.forces(model, law, steps.q[:-1], steps.v[:-1])
    gained = 2.0 * np.diff(steps.v[:, :3], axis=0)
    assert np.allclose(
        gained, (felt.total_force + 2.0 * np.array(model.gravity)) * dt, rtol=0.0, atol=1e-12
    )
    run = rf.simulate(model, 0.04, *start, ground=law, dt_out=1e-5)
    force = run.contacts.total_force + 2.0 * np.array(model.gravity)
    impulse = np.trapezoid(force, run.t, axis=0)
    jump = np.abs(np.diff(force, axis=0)).max() * 1e-5
    assert np.allclose(impulse, 2.0 * (run.v[-1, :3] - run.v[0, :3]), rtol=0.0, atol=jump + 1e-7)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_a_springy_bowl_without_friction_keeps_all_energy(kind: Any) -> None:
    grid = [
        [0.5 * ((0.2 * i - 1.0) ** 2 + (0.2 * j - 1.0) ** 2) for j in range(11)] for i in range(11)
    ]
    bowl = HeightField(heights=grid, spacing=0.2, origin=(-1.0, -1.0), kind=kind)
    ground = HuntCrossley(stiffness=2e4, exponent=1, dissipation=0.0, friction=0.0, terrain=bowl)
    model = ball()
    q = raised(model, 0.5)
    q[:2] = 0.55, 0.31
    run = rf.simulate(model, 1.0, q, ground=ground, rtol=1e-9, atol=1e-11)
    assert run.contacts.touching.any()
    assert np.ptp(run.q[:, 0]) > 0.1  # it rolls down and up
    assert np.abs(run.contacts.dissipated).max() < 1e-12
    assert np.ptp(run.energy.total + run.contacts.stored) < 1e-6 * run.energy.kinetic.max()


def test_up_is_against_gravity() -> None:
    """The same drop in a world whose y points up."""
    upright, other = ball(), ball(gravity=(0.0, -G, 0.0))
    a = rf.simulate(
        upright, 0.5, raised(upright, 0.1), [0.5, 0.2, 0.0, 0.0, 0.0, 0.0], ground="firm"
    )
    q = other.neutral()
    q[1] = 0.1
    b = rf.simulate(other, 0.5, q, [0.5, 0.0, -0.2, 0.0, 0.0, 0.0], ground="firm")
    assert b.contacts.up == (0.0, 1.0, 0.0)
    assert np.allclose(b.q[:, [0, 1]], a.q[:, [0, 2]], rtol=0.0, atol=1e-9)
    assert np.allclose(b.q[:, 2], -a.q[:, 1], rtol=0.0, atol=1e-9)


# ---- one text, every way ----


@pytest.mark.parametrize("terrain", TERRAINS, ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_floats_interpreter_and_compiled_code_agree(
    quadruped: rf.Model, law: Ground, terrain: Any
) -> None:
    ground = replace(
        law, terrain=terrain, points=("rear_left_foot", "front_right_foot", "front_left_corner")
    )
    text = ContactText(quadruped, ground)
    q, v = near_ground(quadruped, 9)
    compiled = text.kernel("contact_forces")(q, v)
    plain = text.kernel("contact_forces", "numpy")(q, v)
    meant = interpret(text.kernel("contact_forces").program, [q, v])
    single = text.kernel("contact_forces")(q[3], v[3])
    assert compiled[1].any()
    for a, b, c, one in zip(compiled, plain, meant, single, strict=True):
        scale = max(1.0, float(np.abs(b).max()))
        assert np.allclose(a, b, rtol=0.0, atol=1e-11 * scale)
        assert np.allclose(a.reshape(9, -1), c, rtol=0.0, atol=1e-11 * scale)
        assert np.allclose(a[3], one, rtol=0.0, atol=1e-12 * scale)
    _, felt, _ = text.reactions(q[3].tolist(), v[3].tolist())
    assert np.allclose(
        [[r.force.x, r.force.y, r.force.z] for r in felt], compiled[1][3], rtol=1e-11, atol=1e-9
    )


@pytest.mark.parametrize("base", ["free_euler", "free"])
def test_dynamics_on_a_ground_obey_the_equations_of_motion(base: Any) -> None:
    """I a + h = tau + sum J' f, with the Jacobians that the algorithm itself never forms; Newton
    for the whole robot.
    """
    model = rf.load("quadruped", base=base) if base == "free" else rf.load("quadruped")
    rng = np.random.default_rng(3)
    q, v = model.random(seed=3)
    q[2], tau = 0.1, rng.normal(size=model.nv)
    a, force = rf.contact.kernel(model, "firm")(q, v, tau)
    felt = rf.contact.forces(model, "firm", q, v)
    assert np.allclose(felt.force, force, rtol=1e-12, atol=1e-9)
    assert felt.touching.any()
    pushed = model.mass_matrix(q) @ a + model.bias(q, v) - tau
    points = {name: (b.name, place) for b in model.bodies for name, place in b.points}
    for name, f in zip(felt.names, felt.force, strict=True):
        pushed = pushed - model.jacobian(q, *points[name])[3:].T @ f
    assert np.abs(pushed).max() < 1e-8 * np.abs(felt.force).max()
    assert np.allclose(
        a, model.forward_dynamics(q, v, tau, felt.wrenches(model, q)), rtol=1e-9, atol=1e-7
    )


def test_the_centre_of_pressure_is_the_zero_moment_point(quadruped: rf.Model) -> None:
    ground = HuntCrossley(friction=0.3)
    q = quadruped.neutral()
    q[2] = 0.6
    q[[7, 8]] = 0.1, -0.2
    run = rf.simulate(quadruped, 0.15, q, ground=ground, dt_out=0.01)
    held = run.contacts.load.sum(axis=1) > 20.0
    assert held.sum() > 5
    for row in np.flatnonzero(held):
        zmp = quadruped.zero_moment_point(run.q[row], run.v[row], run.a[row])
        p, f = run.contacts.position[row], run.contacts.force[row]
        about = np.cross(p, f).sum(axis=0)  # of the ground's forces, about the origin
        assert np.allclose(
            zmp[:2], [-about[1] / f[:, 2].sum(), about[0] / f[:, 2].sum()], rtol=0.0, atol=1e-9
        )
        depth = run.contacts.penetration[row].max()  # friction acts that far below the plane
        assert (
            np.abs(run.contacts.center_of_pressure[row, :2] - zmp[:2]).max() <= 0.3 * depth + 1e-9
        )
    assert np.isnan(run.contacts.center_of_pressure[run.contacts.load.sum(axis=1) == 0.0]).all()


@pytest.mark.filterwarnings("ignore:.*starts inside the ground")
def test_a_function_as_controller_meets_the_same_ground(quadruped: rf.Model) -> None:
    """Without compiled right-hand side, alone and in batches."""
    q, v = near_ground(quadruped, 5)
    options: dict[str, Any] = {
        "steps": 20, "dt": 1e-4, "ground": HuntCrossley(), "method": "rk4",
    }  # fmt: skip
    compiled = rf.rollout(quadruped, q, v, **options)
    called = rf.rollout(quadruped, q, v, **options, control=lambda t, q, v: np.zeros_like(v))
    assert np.allclose(called.v, compiled.v, rtol=0.0, atol=1e-8)
    alone: dict[str, Any] = {"ground": HuntCrossley(), "method": "rk4", "step": 1e-4}
    runs = [rf.simulate(quadruped, 0.002, q[0], v[0], **alone, control=c) for c in (None, _nothing)]
    assert np.allclose(runs[0].q[-1], compiled.q[0], rtol=0.0, atol=1e-10)
    assert np.allclose(runs[1].q[-1], compiled.q[0], rtol=0.0, atol=1e-10)
    assert runs[1].contacts.dissipated[-1] == pytest.approx(
        runs[0].contacts.dissipated[-1], rel=1e-9
    )


def _nothing(t: float, q: Any, v: Any) -> Any:
    return np.zeros_like(v)


def test_4096_quadrupeds_roll_out_compiled(
    quadruped: rf.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchSteps, "_in_python", _refuse)
    feet = [f"{leg}_foot" for leg in ("rear_right", "rear_left", "front_right", "front_left")]
    ground = HuntCrossley(points=feet)
    rng = np.random.default_rng(0)
    q = np.tile(quadruped.neutral(), (4096, 1))
    q[:, 2] = 0.6
    q[:, 6:] += 0.2 * rng.normal(size=(4096, 12))
    found = rf.rollout(quadruped, q, np.zeros((4096, 18)), steps=50, dt=1e-3, ground=ground)
    assert np.isfinite(found.q).all()
    one = rf.simulate(quadruped, 0.05, q[17], ground=ground, step=1e-3, dt_out=0.05)
    assert np.allclose(found.q[17], one.q[-1], rtol=0.0, atol=1e-9)


def _refuse(*args: Any) -> Any:
    raise AssertionError("this rollout must be compiled")


def test_c_code_of_a_robot_on_a_ground(quadruped: rf.Model, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler here")
    kernel = rf.contact.kernel(quadruped, Firm(terrain=TERRAINS[3]))
    header, source = kernel.c_source()
    (tmp_path / "quadruped_contact_dynamics.h").write_text(header)
    (tmp_path / "q.c").write_text(source)
    library = tmp_path / "q.so"
    flags = ["-std=c99", "-O1", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(tmp_path / "q.c"), "-o", str(library), "-lm"], check=True)
    run = ctypes.CDLL(str(library)).quadruped_contact_dynamics
    q, v = near_ground(quadruped, 4)
    a, force = np.empty(18), np.empty((12, 3))
    for i in range(4):
        run(
            *(
                x.ctypes.data_as(ctypes.c_void_p)
                for x in (q[i].copy(), v[i].copy(), np.zeros(18), a, force)
            )
        )
        wanted = kernel(q[i], v[i], np.zeros(18))
        assert np.allclose(a, wanted[0], rtol=1e-9, atol=1e-7)
        assert np.allclose(force, wanted[1], rtol=1e-10, atol=1e-8)


# ---- stiff contact ----


def test_steps_too_long_for_the_ground_are_warned_of() -> None:
    """The estimate tells the steps at which a standing biped stays still from those at which it
    chatters.
    """
    model = rf.load("planar_biped")
    ground = Firm(
        stiffness=2000.0,
        horizontal_damping=1000.0,
        points=["leg1_toe", "leg1_heel", "leg2_toe", "leg2_heel"],
    )
    q = raised(model, 1.251)
    options: dict[str, Any] = {"ground": ground, "damping": 0.02, "method": "rk4"}
    fine = rf.rollout(model, q, np.zeros(12), steps=2000, dt=2.5e-5, **options)
    assert np.abs(fine.v).max() < 0.02
    with pytest.warns(RuntimeWarning, match="needs steps below 3.*e-05 s"):
        coarse = rf.rollout(model, q, np.zeros(12), steps=500, dt=1e-4, **options)
    assert np.abs(coarse.v).max() > 0.5
    with pytest.warns(RuntimeWarning, match="semi_implicit_euler in steps of 0.0002 s"):
        rf.simulate(model, 0.0002, q, ground=ground, method="semi_implicit_euler", step=2e-4)


def test_a_bouncing_ball_keeps_the_part_of_its_speed_that_the_law_says() -> None:
    model = ball(gravity=(0.0, 0.0, 0.0))
    ground = HuntCrossley(stiffness=1e5, dissipation=0.05)
    run = rf.simulate(
        model, 0.2, raised(model, 0.01), [0.0, 0.0, -1.0, 0.0, 0.0, 0.0], ground=ground
    )
    assert run.v[-1, 2] == pytest.approx(1.0 - 2.0 / 3.0 * 0.05, abs=2e-3)


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_stiff_and_explicit_methods_find_the_same_motion(law: Ground) -> None:
    model = rf.load("planar_biped")
    q = model.neutral()
    q[2] = 1.245
    q[[6, 7, 9, 10]] = -0.3, 0.6, -0.2, 0.4
    methods = ["auto", "dop853", "rk45", "lsoda", "bdf", "radau"]
    try:
        import sksundae  # noqa: F401

        methods.append("cvode")
    except ImportError:
        pass
    options: dict[str, Any] = {
        "ground": law,
        "damping": 0.05,
        "rtol": 1e-8,
        "atol": 1e-10,
        "dt_out": 0.1,
    }
    runs = {method: rf.simulate(model, 0.1, q, method=method, **options) for method in methods}
    for name, run in runs.items():
        assert run.contacts.touching.any(), name
        assert np.allclose(run.q[-1], runs["dop853"].q[-1], rtol=0.0, atol=2e-6), name
        assert run.audit.passed, name


@pytest.mark.parametrize("name", ["biped_fall", "quadruped_fall"])
def test_falls_end_at_rest_with_all_energy_accounted_for(name: str) -> None:
    run = rf.scenario(name).run(dt_out=0.02)
    assert run.audit.passed
    assert (
        run.audit.energy.largest < 1e-5
    )  # J; the book's simulations: 6.28e-5 (quadruped) to 8.48e-4 (planar biped)
    assert run.energy.kinetic[-1] < 1e-3
    assert run.contacts.total_force[-1, 2] == pytest.approx(run.model.mass * G, rel=1e-3)
    bodies = {b for b, on in zip(run.contacts.bodies, run.contacts.touching[-1], strict=True) if on}
    assert "trunk" in bodies
    assert len(bodies) > 3
