"""Gaits: the pendulum's conditions, feet that land, joints that reproduce hips and ankles, one text
in every reading.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from redysim_data import variables
from test_contact import body as block

import ramify as rf
from ramify.api.model import Model
from ramify.files.redysim.redysim_robot import from_variables
from ramify.motion import (
    Gait,
    InvertedPendulum,
    Leg,
    Trajectory,
    legs,
    measured_balance,
    planned_balance,
    support_margin,
    support_polygon,
)
from ramify.motion.leg import soles
from ramify.runtime.cache_keys import digest
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace

BOOK: dict[str, dict[str, Any]] = {  # tables B.1 and B.2
    "planar_biped": {"height": 0.96, "period": 1.0, "stride": 0.3, "lift": 0.1},
    "spatial_biped": {"height": 0.92, "period": 0.5, "stride": 0.3, "lift": 0.1, "sway": 0.08},
    "quadruped": {"height": 0.5, "period": 1.0, "stride": 0.3, "lift": 0.09},
    "hexapod": {"height": 0.55, "period": 0.5, "stride": 0.4, "lift": 0.08},
}
ROBOTS = pytest.mark.parametrize("name", BOOK)


def gait_of(name: str, **changes: Any) -> tuple[rf.Model, Gait]:
    model = rf.load(name)
    return model, Gait.of(model, **(BOOK[name] | changes))


def step_times(gait: Gait, steps: int = 4, rows: int = 57) -> Any:
    """Times inside of some steps, not at their ends."""
    u = np.linspace(0.0, 1.0, rows + 2)[1:-1]
    return ((np.arange(steps)[:, None] + u) * gait.pendulum.period).ravel()


# ---- the pendulum ----


@ROBOTS
def test_hips_repeat(name: str) -> None:
    p = gait_of(name)[1].pendulum
    (x0, y0), (x1, y1) = p.hip(0.0), p.hip(p.period)
    wrong = [x0.x + x1.x, x0.dx - x1.dx, y0.x - y1.x, y0.dx + y1.dx]  # (B.8)
    assert np.abs(wrong).max() < 1e-12
    assert (x0.x, y0.x) == pytest.approx((-0.5 * p.stride, 1.0), abs=1e-15)
    half = 0.5 * p.rate * p.period
    assert x0.dx == pytest.approx(
        -p.rate * x0.x / math.tanh(half), rel=1e-14
    )  # (B.9), with its minus signs
    assert y0.dx == pytest.approx(-p.rate * y0.x * math.tanh(half), rel=1e-14)


@ROBOTS
def test_hips_are_an_inverted_pendulum(name: str) -> None:
    p = gait_of(name)[1].pendulum
    u = np.linspace(0.0, p.period, 101)
    w = math.sqrt(9.81 / p.height)
    for hip, start in zip(p.hip(u), p.hip(0.0), strict=True):
        np.testing.assert_allclose(hip.ddx, w * w * hip.x, atol=1e-13)  # (B.4)
        solution = start.x * np.cosh(w * u) + start.dx / w * np.sinh(w * u)  # (B.7)
        np.testing.assert_allclose(hip.x, solution, atol=1e-12)


def test_a_pendulum_refuses_what_it_cannot_do() -> None:
    for name, value in (
        ("height", 0.0),
        ("period", -1.0),
        ("stride", math.nan),
        ("sway", -0.1),
        ("gravity", math.inf),
    ):
        with pytest.raises(rf.StateError, match=name):
            InvertedPendulum(**({"height": 1.0, "period": 1.0, "stride": 0.3} | {name: value}))
    with pytest.raises(rf.StateError, match="shorter period"):
        InvertedPendulum(1.0, 20.0, 0.3)


# ---- feet and joints ----


@ROBOTS
def test_joints_reproduce_hips_and_ankles(name: str) -> None:
    model, gait = gait_of(name)
    t = np.concatenate([step_times(gait), np.arange(4) * gait.pendulum.period])
    m = gait.at(t)
    R, r = model.kinematics(m.q)
    np.testing.assert_allclose(r[:, 0], gait.trunk(t)[0], atol=1e-10)
    np.testing.assert_allclose(r[:, 0, 2] + gait.legs[0].hip[2], BOOK[name]["height"], atol=1e-12)
    ankles = gait.ankles(t)
    for leg, b, point in soles(model, gait.legs):
        end = r[:, b] if gait.legs[leg].ankle else r[:, b] + R[:, b] @ point
        np.testing.assert_allclose(end, ankles[:, leg], atol=1e-10)
        if gait.legs[leg].ankle:
            np.testing.assert_allclose(
                R[:, b], np.broadcast_to(np.eye(3), R[:, b].shape), atol=1e-12
            )  # feet stay level


@ROBOTS
def test_feet_land_and_stay(name: str) -> None:
    _, gait = gait_of(name)
    T = gait.pendulum.period
    for k in range(4):
        ends = gait.ankles([k * T, np.nextafter((k + 1) * T, 0.0)])
        np.testing.assert_allclose(ends[..., 2], 0.0, atol=1e-12)
    t = step_times(gait, 2)
    places, stands = gait.ankles(t), gait.standing(t)
    assert np.abs(places[..., 2][stands]).max() < 1e-15
    assert places[..., 2][~stands].max() == pytest.approx(gait.lift, rel=1e-3)
    assert (places[..., 2][~stands] > 0.0).all()
    for leg in range(len(gait.legs)):
        own = places[:, leg][stands[:, leg]]
        assert np.ptp(own, axis=0).max() < 1e-15  # a foot that stands does not move
    swung = gait.ankles([0.0, T, 2.0 * T])[..., 0]
    moved = np.diff(swung, axis=0)
    np.testing.assert_allclose(
        np.sort(np.unique(moved.round(9))), [0.0, 2.0 * gait.pendulum.stride], atol=1e-9
    )


@ROBOTS
def test_rates_are_the_derivatives(name: str) -> None:
    _, gait = gait_of(name)
    t, h = step_times(gait), 1e-5
    m, before, after = gait.at(t), gait.at(t - h), gait.at(t + h)
    for slope, rate in (
        ((after.q - before.q) / (2 * h), m.v),
        ((after.v - before.v) / (2 * h), m.a),
    ):
        np.testing.assert_allclose(slope, rate, atol=2e-8 * (1.0 + np.abs(m.a).max() ** 2))


@ROBOTS
def test_positions_and_rates_are_continuous_where_the_legs_change(name: str) -> None:
    _, gait = gait_of(name)
    T = gait.pendulum.period
    ends, tiny = np.arange(1, 5) * T, 1e-9
    m, before, after = gait.at(ends), gait.at(ends - tiny), gait.at(ends + tiny)
    fastest = np.abs(after.a).max()
    assert np.abs(after.q - before.q - 2.0 * tiny * m.v).max() < 1e-14 + tiny * tiny * fastest
    assert np.abs(after.v - before.v).max() < 4.0 * tiny * fastest
    assert (
        np.abs(after.a - before.a).max() > 1.0
    )  # these jump: those of the pendulum and of the swinging foot do


@ROBOTS
def test_legs_take_turns(name: str) -> None:
    gait = gait_of(name)[1]
    t, T = step_times(gait, 1), gait.pendulum.period
    now, later, much_later = (gait.at(t + k * T) for k in (0, 1, 2))
    np.testing.assert_allclose(now.q[:, 6:], much_later.q[:, 6:], atol=1e-13)
    assert np.allclose(much_later.q[:, 0] - now.q[:, 0], 2.0 * gait.pendulum.stride)
    n = gait.legs[0].dof
    first, second = (m.q[:, 6:].reshape(len(t), -1, n) for m in (now, later))
    partner = {"planar_biped": [1, 0], "spatial_biped": [1, 0]}.get(
        name, [i ^ 1 for i in range(len(gait.legs))]
    )
    mirror = np.array(
        [-1.0 if axis in "XZ" else 1.0 for axis in (*gait.legs[0].hips, "Y", *gait.legs[0].ankle)]
    )
    np.testing.assert_allclose(second, first[:, partner] * mirror, atol=1e-13)


def test_which_legs_stand_first() -> None:
    diagonal, tripod = gait_of("quadruped")[1], gait_of("hexapod")[1]
    assert diagonal.support == ("rear_right_hip", "front_left_hip")
    assert tripod.support == (
        "rear_right_hip",
        "middle_left_hip",
        "front_right_hip",
    )  # modules 1, 4, 5 of figure 7.25
    other = gait_of("quadruped", support=["rear_left_shank", "front_right_knee"])[1]
    assert other.support == ("rear_left_hip", "front_right_hip")


@ROBOTS
def test_every_reading_gives_the_same(name: str) -> None:
    _, gait = gait_of(name)
    t = np.concatenate([step_times(gait, 3, 5), [0.0]])
    wanted = np.array([[x for part in gait.text(float(s)) for x in part] for s in t])
    m = gait.at(t)
    np.testing.assert_allclose(
        np.concatenate([m.q, m.v, m.a], axis=1), wanted, rtol=1e-12, atol=1e-12
    )
    port = Port("z", (3 * gait.n,))
    program = trace(
        "gait",
        lambda s: [[x for part in gait.text(s[0]) for x in part]],
        (Port("t", (1,)),),
        (port,),
    )
    assert len(program.order) < 1200
    np.testing.assert_allclose(interpret(program, [t[:, None]])[0], wanted, rtol=1e-10, atol=1e-10)
    out = np.empty((len(t), port.size))
    assert (
        CompiledProgram("gait", program, digest("test gait", name)).run(
            [t[:, None].copy()], [out], 0, len(t)
        )
        == 0
    )
    np.testing.assert_allclose(out, wanted, rtol=1e-9, atol=1e-9)


def test_a_gait_of_some_steps_ends_and_is_held() -> None:
    _, gait = gait_of("hexapod", steps=3, begin=0.2)
    assert isinstance(gait, Trajectory)
    assert gait.until == pytest.approx(1.7)
    end, after = gait.at(gait.until), gait.at(5.0)
    np.testing.assert_array_equal(end.q, after.q)
    assert not after.v.any()
    assert end.q[0] == pytest.approx(0.2 + 2 * 0.4)
    assert gait.at(0.0).q.tolist() == gait.at(0.2).q.tolist()


@pytest.mark.parametrize("base", ["free", "free_euler"])
def test_a_start_on_any_base(base: str) -> None:
    model = rf.load("spatial_biped", base=base)
    gait = Gait.of(model, **BOOK["spatial_biped"])
    q, v = gait.start(model)
    w = gait.pendulum.rate
    assert v[0] == pytest.approx(w * 0.15 / math.tanh(0.25 * w))
    R, r = model.kinematics(q)
    places = [r[b] + R[b] @ point for _, b, point in soles(model, gait.legs)]
    assert len(places) == 8
    np.testing.assert_allclose(np.array(places)[:, 2], 0.0, atol=1e-12)
    for b, body in enumerate(model.bodies):  # the foot that stands does not move
        if body.name == "right_foot":
            np.testing.assert_allclose(model.jacobian(q, body.name) @ v, 0.0, atol=1e-12)
            assert r[b, 0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("legged_biped", "planar_biped"),
        ("legged_quadruped", "quadruped"),
        ("legged_hexapod", "hexapod"),
    ],
)
def test_legs_of_redysim_walk(name: str, twin: str) -> None:
    """Y up, legs along X at zero, hips of a quadruped about Z before X: the gait of the built-in
    robot, foot by foot, and the torques of its joints where the masses are the same.
    """
    model = Model.of(from_variables(variables(name)))
    lying = twin == "planar_biped"  # the trunk, at zero
    gait = Gait.of(model, **BOOK[twin], attitude=(-np.pi / 2, 0, 0) if lying else None)
    t = step_times(gait, 2, 9)
    m = gait.whole(model, t)
    R, r = model.kinematics(m.q)
    ankles = gait.ankles(t)
    assert np.abs(ankles[..., 1]).max() == pytest.approx(BOOK[twin]["lift"], rel=0.1)  # up is Y
    for leg, b, point in soles(model, gait.legs):
        end = r[:, b] if gait.legs[leg].ankle else r[:, b] + R[:, b] @ point
        np.testing.assert_allclose(end, ankles[:, leg], atol=1e-10)
        foot = r[:, b] + R[:, b] @ point
        assert foot[:, 1].min() > -1e-12
    h = 1e-6
    ahead, behind = gait.whole(model, t + h), gait.whole(model, t - h)
    np.testing.assert_allclose(m.v, (ahead.q - behind.q) / (2 * h), atol=1e-6)
    if twin != "planar_biped":
        return
    q, v = gait.start(model)
    ground = rf.contact.Firm.of_redysim(model)
    run = rf.simulate(model, 1.2, q, v, control=rf.control.Prescribed(gait), ground=ground)
    assert run.audit.passed
    known = rf.load(twin)  # walks alike, Z up, its trunk upright at zero
    other = Gait.of(known, **BOOK[twin])
    same = rf.contact.Firm(
        stiffness=2000.0, damping=ground.damping, friction=0.7, horizontal_damping=1000.0,
        top_speed=4.5,
    )  # fmt: skip
    law = rf.control.Prescribed(other)
    twins = rf.simulate(known, 1.2, *other.start(known), control=law, ground=same)
    np.testing.assert_allclose(run.q[:, [0, 1]], twins.q[:, [0, 2]], atol=1e-6)
    np.testing.assert_allclose(run.q[:, 3] + np.pi / 2, -twins.q[:, 3], atol=1e-6)
    np.testing.assert_allclose(np.abs(run.tau), np.abs(twins.tau), atol=1e-3)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"height": 0.61}, "rear_right_hip cannot reach its foot"),
        ({"stride": 0.8}, "cannot reach"),
        ({"attitude": (1.0, 2.0)}, "attitude .* must be three finite angles"),
        ({"attitude": (math.nan, 0.0, 0.0)}, "attitude .* must be three finite angles"),
        ({"attitude": "abc"}, "attitude 'abc' must be three finite angles"),
        ({"lift": 0.0}, "lift"),
        ({"lift": 0.52}, "m below it, which is too high: lower the lift"),
        ({"lift": 0.496}, "m below it, which is too high: lower the lift"),
        ({"lift": 5.0}, "m above it, which is too high: lower the lift"),
        ({"lift": "a"}, "lift 'a' must be a finite and positive number"),
        ({"height": "a"}, "height 'a' must be a number"),
        ({"period": None}, "period None must be a number"),
        ({"steps": "a"}, "steps 'a'"),
        ({"begin": "a"}, "begin 'a'"),
        ({"steps": 0}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"begin": math.inf}, "begin"),
        ({"sway": 0.1}, "two legs"),
        ({"support": "hip"}, "no leg of quadruped has a joint or body 'hip'"),
        ({"support": ["rear_left_hip"] * 2}, "once"),
        (
            {"support": [f"{x}_{y}_hip" for x in ("rear", "front") for y in ("left", "right")]},
            "not all",
        ),
    ],
)
def test_gaits_that_cannot_be(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(rf.StateError, match=said):
        gait_of("quadruped", **changes)


def test_a_foot_may_be_lifted_almost_to_the_hip() -> None:
    _, gait = gait_of("quadruped", lift=0.49)
    m = gait.at(np.linspace(0.0, 2.0, 4001))
    assert np.abs(np.diff(m.q, axis=0)).max() < 0.1
    assert np.isfinite(m.v).all()


def test_who_stands_is_told_as_the_feet_move() -> None:
    _, gait = gait_of("quadruped", period=0.1)
    t = 0.1 * np.arange(200)  # where rounding decides which step it is
    t = np.unique(np.concatenate([t, np.nextafter(t, np.inf), np.nextafter(t, 0.0)]))
    standing = gait.standing(t)
    for leg in range(len(gait.legs)):
        jump = np.diff(standing[:, leg].astype(int)) != 0
        x, _, z = gait.ankles(t)[:, leg].T
        assert jump.sum() > 100
        assert np.abs(z).max() < 1e-12
        assert np.abs(np.diff(x)[standing[1:, leg] & standing[:-1, leg]]).max() < 1e-12


def test_robots_that_have_no_such_legs() -> None:
    numbers = {"height": 0.5, "period": 1.0, "stride": 0.1, "lift": 0.1}
    with pytest.raises(rf.ModelError, match="inverse_kinematics"):
        Gait.of(rf.load("kuka_kr5"), **numbers)
    with pytest.raises(rf.StateError, match="hips are 3 different heights"):
        Gait.of(rf.with_gravity(rf.load("hexapod"), [9.81, 0.0, 0.0]), **numbers)
    with pytest.raises(rf.StateError, match="no gravity"):
        Gait.of(rf.with_gravity(rf.load("hexapod"), [0.0, 0.0, 0.0]), **numbers)
    with pytest.raises(rf.StateError, match="do not turn about X"):
        gait_of("planar_biped", sway=0.1)


def test_a_leg_in_closed_form() -> None:
    leg = Leg("hip", (0.0, 0.0, 0.0), 0.4, 0.5, "ZXY", "YX")
    angles = leg.angles(0.2, -0.1, -0.7)
    assert angles[3] > 0.0
    model = rf.load("spatial_biped")
    assert [one.name for one in legs(model)] == ["right_hip", "left_hip"]
    assert legs(rf.load("quadruped"))[0] == Leg(
        "rear_right_hip", (-0.5, -0.25, 0.0), 0.3, 0.3, "XY"
    )


# ---- balance ----


def test_support_polygons_and_margins() -> None:
    square = support_polygon(
        [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.0]]
    )
    assert square.tolist() == [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    assert support_margin(square, [0.5, 0.25]) == pytest.approx(0.25)
    assert support_margin(square, [2.0, 2.0]) == pytest.approx(-math.sqrt(2.0))
    line = support_polygon([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    assert len(line) == 2
    assert support_margin(line, [0.5, 0.3]) == pytest.approx(-0.3)
    assert support_margin(support_polygon([[1.0, 2.0]]), [1.0, 0.0]) == pytest.approx(-2.0)
    with pytest.raises(rf.StateError, match="at least one"):
        support_polygon(np.empty((0, 2)))


@pytest.mark.parametrize("up", [0, 1, 2])
def test_balance_asks_gravity_what_is_up(up: int) -> None:
    """One posture, the world's axes renamed: the same margin of a block on four corners."""
    corners = {f"c{i}{j}": (0.2 * i, 0.3 * j, 0.0) for i in (-1, 1) for j in (-1, 1)}
    turn = np.roll(np.eye(3), up + 1, axis=0)  # Z becomes the axis that points up
    points = {name: tuple(turn @ at) for name, at in corners.items()}
    model = block(points, gravity=tuple(-9.81 * turn[:, 2]))
    start = model.neutral()
    start[:3] = turn @ (0.7, -0.4, -0.01)
    r = rf.simulate(model, 0.02, start, ground="firm", dt_out=0.01)
    balance = measured_balance(r)
    assert balance.margin == pytest.approx([0.2] * 3, abs=1e-9)
    assert np.ptp(balance.polygons[0], axis=0).tolist() == pytest.approx(
        [0.6, 0.4] if np.abs(balance.axes[0] @ turn[:, 1]) > 0.5 else [0.4, 0.6]
    )
    assert np.abs(balance.axes @ turn[:, 2]).max() < 1e-12


def test_the_planned_zero_moment_point() -> None:
    model, gait = gait_of("hexapod")
    balance = planned_balance(model, gait, step_times(gait, 2))
    assert balance.margin.min() > 0.02  # a tripod is stable at any moment
    model, gait = gait_of("planar_biped")
    balance = planned_balance(model, gait, step_times(gait, 2))
    feet = np.array([polygon[:, 0] for polygon in balance.polygons])
    assert (balance.point[:, 0] > feet.min(axis=1)).all()  # within the foot that stands
    assert (balance.point[:, 0] < feet.max(axis=1)).all()


def test_a_point_mass_at_the_hips_has_its_zero_moment_point_at_the_foot() -> None:
    """With legs and trunk that weigh next to nothing but at the hips, the pendulum is the robot."""
    model = rf.load("planar_biped", leg_mass=1e-9, foot_mass=1e-9, height=1e-6, width=1e-6)
    gait = Gait.of(model, **BOOK["planar_biped"])
    t = step_times(gait, 2)
    standing = gait.ankles(t)[..., 0][gait.standing(t)]
    np.testing.assert_allclose(planned_balance(model, gait, t).point[:, 0], standing, atol=1e-6)


def test_a_quaternion_takes_no_attitude() -> None:
    with pytest.raises(rf.StateError, match="attitude: the base of quadruped has no three angles"):
        Gait.of(rf.load("quadruped", base="free"), **BOOK["quadruped"], attitude=(0.1, 0, 0))
