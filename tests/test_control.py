"""Controllers: the error equations of chapter 9, one text in every reading, limits, subsets, and
what they refuse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from random_trees import random_bodies

import ramify as rf
from ramify.api.model import Model
from ramify.contact.grounds import as_ground
from ramify.contact.robot_on_ground import ContactText
from ramify.control import (
    PD,
    PID,
    ComputedTorque,
    Controller,
    Feedforward,
    Function,
    GravityCompensation,
    MeasuredFeedforward,
    Prescribed,
    RobotText,
    Sum,
    Torque,
    TorqueTable,
    as_controller,
)  # fmt: skip
from ramify.control.controller import COMPILED
from ramify.model.driven import driven
from ramify.motion import Cycloid, Harmonic, Hold, Quintic, Spline
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace


@cache
def arm(seed: int, n: int = 5) -> Model:
    rng = np.random.default_rng(seed)
    bodies = random_bodies(rng, n, kinds=("revolute", "prismatic", "universal", "helical"))
    return Model(
        f"arm {seed}",
        bodies,
        tuple(6.0 * rng.normal(size=3)),
        {b.name: (i, rf.Frame()) for i, b in enumerate(bodies)},
    )


@cache
def floating(kind: str) -> Model:
    """A base with two limbs."""
    robot = rf.Builder(f"robot on {kind}", gravity=(0, 0, -9.81))
    robot = robot.link(
        "trunk",
        joint=kind,
        mass=5.0,
        com=(0.1, 0, 0.05),
        inertia=(0.1, 0.12, 0.09),
        actuated=kind == "planar",
    )
    robot = robot.link(
        "arm",
        parent="trunk",
        axis=(0, 1, 0),
        at=(0, 0.2, 0),
        mass=1.0,
        com=(0.2, 0, 0),
        inertia=(0.01, 0.02, 0.02),
    )
    robot = robot.link(
        "hand",
        parent="arm",
        axis=(1, 0, 0),
        at=(0.4, 0, 0),
        mass=0.5,
        com=(0.1, 0.1, 0),
        inertia=(0.005, 0.005, 0.005),
    )
    robot = robot.link(
        "leg",
        parent="trunk",
        joint="prismatic",
        axis=(0, 0, 1),
        at=(0, -0.2, 0),
        mass=0.7,
        com=(0, 0.1, -0.2),
        inertia=(0.01, 0.01, 0.01),
    )
    return robot.model()


def swing(n: int) -> Harmonic:
    return Harmonic(np.linspace(-0.3, 0.4, n), np.linspace(0.2, 0.5, n), 0.7, np.arange(n))


def state(model: Model, seed: int = 0, count: int | None = None) -> tuple[Any, Any]:
    if count is None:
        return model.random(seed)
    q, v = zip(*(model.random(seed + i) for i in range(count)), strict=True)
    return np.array(q), np.array(v)


def readings(control: Controller, model: Model, count: int = 9) -> np.ndarray:
    """tau of a batch by floats, arrays, the interpreted graph and compiled code: all must agree;
    gives that by arrays.
    """
    t, (q, v) = np.linspace(-0.2, 1.7, count), state(model, 3, count)
    states = control.state_count(RobotText(model))
    z = np.random.default_rng(1).normal(size=(count, states))
    by_array = control.torque(model, t, q, v, z)
    by_float = np.array([control.torque(model, *row) for row in zip(t, q, v, z, strict=True)])
    inputs = tuple(
        Port(name, (size,))
        for name, size in (
            ("t", 1),
            ("q", model.nq),
            ("v", model.nv),
            ("z", max(1, states)),
        )
    )
    outputs = (Port("tau", (model.nv,)), Port("dz", (states,)))
    program = trace(
        "control", lambda t, q, v, z: list(control.text(RobotText(model), t[0], q, v, z[:states])), inputs, outputs
    )  # fmt: skip
    rows = [t[:, None].copy(), q, v, z if states else np.zeros((count, 1))]
    interpreted = interpret(program, rows)
    compiled = [np.empty((count, port.size)) for port in outputs]
    CompiledProgram("control", program, f"test {model.name} {control!r}").run(
        rows, compiled, 0, count
    )
    scale = max(1.0, np.abs(by_array).max())
    for other in (by_float, interpreted[0], compiled[0]):
        assert np.abs(other - by_array).max() < 1e-11 * scale
    if states:
        rates = np.array(
            [
                control.text(RobotText(model), *(x.tolist() for x in row))[1]
                for row in zip(t, q, v, z, strict=True)
            ]
        )
        size = max(1.0, np.abs(rates).max())
        assert np.abs(interpreted[1] - rates).max() < 1e-12 * size
        assert np.abs(compiled[1] - rates).max() < 1e-12 * size
    return by_array


CONTROLLERS: dict[str, Any] = {
    "pd": lambda n: PD(swing(n)),
    "pid": lambda n: PID(swing(n), kp=np.arange(1.0, n + 1.0), ki=3.0, kd=0.5),
    "computed torque": lambda n: ComputedTorque(Cycloid(0.0, np.full(n, 0.7), 1.5)),
    "feedforward": lambda n: Feedforward(Quintic(0.0, np.full(n, 0.7), 1.5)),
    "measured feedforward": lambda n: MeasuredFeedforward(Quintic(0.0, np.full(n, 0.7), 1.5)),
    "gravity": lambda n: GravityCompensation(0.3),
    "limited": lambda n: GravityCompensation(0.3, limits=2.0),
    "constant": lambda n: Torque(np.arange(n) - 1.5),
    "table": lambda n: TorqueTable([0.0, 0.4, 0.5, 1.0], np.arange(4.0 * n).reshape(4, n)),
    "cubic table": lambda n: TorqueTable(
        [0.0, 0.4, 0.5, 1.0], np.arange(4.0 * n).reshape(4, n) ** 1.5, "cubic"
    ),
    "held table": lambda n: TorqueTable(
        [0.0, 0.4, 0.5, 1.0], np.arange(4.0 * n).reshape(4, n), "hold"
    ),
    "sum": lambda n: Sum(
        [GravityCompensation(), PID(Spline([0.0, 0.5, 1.2], np.eye(3, n))), Torque(1.0)],
        limits=30.0,
    ),
}


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize("robot", ["arm", "free", "free_euler"])
def test_one_text_in_every_reading(name: str, robot: str) -> None:
    model = arm(1) if robot == "arm" else floating(robot)
    count = len(driven(model))
    control = CONTROLLERS[name](count)
    tau = readings(control, model)
    assert control.traceable
    control.check(model)
    if robot != "arm":
        assert count == 3
        assert not tau[:, :6].any()


@pytest.mark.parametrize("seed", range(12))
def test_computed_torque_makes_the_error_linear(seed: int) -> None:
    """Forward dynamics under computed torque gives a_des + kd de + kp e (eqs. 9.3-9.5)."""
    model = arm(seed, 1 + seed % 7)
    motion = swing(model.nv)
    rng = np.random.default_rng(seed)
    kp, kd = rng.uniform(1.0, 80.0, size=(2, model.nv))
    (q, v), t = state(model, seed, 6), rng.uniform(0.0, 3.0, size=6)
    control, want = ComputedTorque(motion, kp, kd), motion.at(t)
    found = model.forward_dynamics(q, v, control.torque(model, t, q, v))
    alpha = want.a + kp * (want.q - q) + kd * (want.v - v)
    exact = 1e-10 + 1e-15 * np.linalg.cond(model.mass_matrix(q)).max()
    assert np.abs(found - alpha).max() < exact * max(1.0, np.abs(alpha).max())


@pytest.mark.parametrize(
    ("kind", "covers"), [("free", "joints"), ("free_euler", "joints"), ("free_euler", "all")]
)
def test_computed_torque_on_a_floating_base(kind: str, covers: str) -> None:
    """The joints' errors obey the same equation, and nothing pushes the base (eqs. 9.8-9.11)."""
    model = floating(kind)
    motion = swing(3 if covers == "joints" else model.nv)
    (q, v), t = state(model, 5, 6), np.linspace(0.0, 1.0, 6)
    tau = ComputedTorque(motion).torque(model, t, q, v)
    want, at = motion.at(t), slice(-3, None)
    alpha = want.a[:, at] + 49.0 * (want.q[:, at] - q[:, at]) + 14.0 * (want.v[:, at] - v[:, at])
    assert not tau[:, :6].any()
    assert (
        np.abs(model.forward_dynamics(q, v, tau)[:, 6:] - alpha).max() < 1e-10 * np.abs(alpha).max()
    )
    M, h = model.mass_matrix(q), model.bias(q, v)
    I0, I0t, It = M[:, :6, :6], M[:, 6:, :6], M[:, 6:, 6:]
    reduced = It - I0t @ np.linalg.solve(I0, I0t.transpose(0, 2, 1))
    dense = (
        reduced @ alpha[..., None] + h[:, 6:, None] - I0t @ np.linalg.solve(I0, h[:, :6, None])
    )[..., 0]
    assert np.abs(tau[:, 6:] - dense).max() < 1e-10 * np.abs(dense).max()  # eq. (9.10)


def test_feedforward_on_the_way_is_inverse_dynamics() -> None:
    """Where the robot is as desired, all three controllers that know its dynamics agree (eq. 9.12)."""
    model, t = arm(2), np.linspace(0.0, 1.0, 7)
    motion = swing(model.nv)
    want = motion.at(t)
    tau = model.inverse_dynamics(want.q, want.v, want.a)
    for control in (Feedforward(motion), ComputedTorque(motion)):
        assert (
            np.abs(control.torque(model, t, want.q, want.v) - tau).max() < 1e-11 * np.abs(tau).max()
        )
    off = Feedforward(motion, kp=30.0, kd=4.0).torque(model, t, want.q - 0.1, want.v + 0.2)
    assert np.abs(off - (tau + 30.0 * 0.1 - 4.0 * 0.2)).max() < 1e-11 * np.abs(tau).max()


@pytest.mark.parametrize("covers", ["joints", "all"])
def test_feedforward_on_a_floating_base(covers: str) -> None:
    """tau_ID is the hybrid dynamics of the desired motion; the base is where the motion says, or
    where it is (eq. 9.13).
    """
    model, t = floating("free_euler"), 0.4
    q, v = state(model, 2)
    motion = swing(9 if covers == "all" else 3)
    want = motion.at(t)
    q_star, v_star = (
        (want.q, want.v) if covers == "all" else (np.r_[q[:6], want.q], np.r_[v[:6], want.v])
    )
    expected = (
        model.hybrid_dynamics(q_star, v_star, want.a[-3:]).tau
        + 49.0 * (want.q[-3:] - q[6:])
        + 7.0 * (want.v[-3:] - v[6:])
    )
    for law in (Feedforward, MeasuredFeedforward):
        tau = law(motion).torque(model, t, q, v)
        assert not tau[:6].any()
        assert np.abs(tau[6:] - expected).max() < 1e-11 * np.abs(expected).max()


@pytest.mark.parametrize("base", ["free", "free_euler"])
def test_feedforward_feeds_in_the_desired_motion(base: str) -> None:
    """On a ground tau_ID is what the drives exert while the joints follow the motion exactly
    (eq. 9.13), whatever the robot does meanwhile: the law of a robot that is off is that of the
    prescribed run, corrected; the law that measures feeds in other forces.
    """
    model = rf.load("hexapod", base=base)
    gait = rf.motion.Gait.of(rf.load("hexapod"), height=0.55, period=0.5, stride=0.4, lift=0.08)
    q0, v0 = gait.start(rf.load("hexapod"))
    joints = rf.motion.TimeFunction(*(lambda t, k=k: gait.text(t)[k][6:] for k in range(3)))
    if base == "free":
        q0 = np.r_[q0[:3], 1.0, 0.0, 0.0, 0.0, q0[6:]]
    n, nb = model.nv - 6, model.nq - (model.nv - 6)
    options: dict[str, Any] = {"ground": "firm", "rtol": 1e-8, "atol": 1e-10, "dt_out": 0.05}
    led = rf.simulate(model, 0.2, q0, v0, control=Prescribed(joints), **options)
    off = q0.copy()
    off[nb:] += np.linspace(-0.02, 0.02, n)
    law = Feedforward(joints, kp=20.0, kd=3.0)
    robot = RobotText(model, ContactText(model, as_ground("firm", model)))
    z = np.concatenate([led.q[:, :nb], led.v[:, :6]], axis=1)
    assert law.state_count(robot) == z.shape[1]
    tau = law.torque(model, led.t, off, v0, z, ground="firm")
    if base == "free":  # a quaternion that the integrator left a little too long
        longer = z * np.r_[np.ones(3), np.full(4, 1.001), np.ones(z.shape[1] - 7)]
        same = law.torque(model, led.t, off, v0, longer, ground="firm")
        np.testing.assert_allclose(same, tau, atol=1e-9 * np.abs(tau).max())
    want = gait.at(led.t)
    correction = 20.0 * (want.q[:, 6:] - off[nb:]) + 3.0 * (want.v[:, 6:] - v0[6:])
    scale = np.abs(led.tau).max()
    np.testing.assert_allclose(tau[:, 6:], led.tau[:, 6:] + correction, atol=1e-9 * scale)
    rates = np.array(
        [law.text(robot, t, off.tolist(), v0.tolist(), row.tolist())[1]
         for t, row in zip(led.t.tolist(), z, strict=True)]
    )  # fmt: skip
    np.testing.assert_allclose(rates[:, nb:], led.a[:, :6], atol=1e-9 * np.abs(led.a).max())
    measured = MeasuredFeedforward(joints, kp=20.0, kd=3.0).torque(
        model, led.t, off, v0, ground="firm"
    )
    assert np.abs(measured - tau).max() > 0.05 * scale


def test_feedforward_of_a_run_is_the_prescribed_one() -> None:
    """From a start on the motion no error comes, without gains as well: simulated, in rollouts and
    in a sum with states of its own; the second state of a batch has its own start.
    """
    scenario = rf.scenario("hexapod_tripod")
    tight: dict[str, Any] = {"t_end": 0.1, "rtol": 1e-10, "atol": 1e-12}
    led = scenario.run(control="inverse", **tight)
    run = scenario.run(control={"type": "feedforward", "kp": 0, "kd": 0}, **tight)
    np.testing.assert_allclose(run.q, led.q, atol=1e-8)
    np.testing.assert_allclose(run.tau, led.tau, atol=1e-5 * np.abs(led.tau).max())
    model, motion = floating("free_euler"), swing(3)
    q, v = state(model, 4, 2)
    q[:, 6:], v[:, 6:] = motion.at(0.0).q, motion.at(0.0).v
    both = Sum([PID(motion, 5.0, 1.0, 1.0), Feedforward(motion, 0.0, 0.0)])
    for law in (Feedforward(motion), both):
        rolled = rf.rollout(model, q, v, steps=200, dt=1e-3, control=law, method="rk4")
        for k in range(2):
            alone = rf.simulate(model, 0.2, q[k], v[k], control=Prescribed(motion))
            np.testing.assert_allclose(rolled.q[k], alone.q[-1], atol=1e-7)


def test_feedforward_of_loops_on_a_ground_is_refused() -> None:
    model = rf.load("four_bar")
    law = Feedforward(rf.motion.Hold([0.0]))
    q, v = model.assemble({model.coordinates[0]: 0.0}).q, np.zeros(3)
    assert law.torque(model, 0.0, q, v).any()
    link = model.bodies[0].name
    stands = rf.with_contact_points(model, {link: {"toe": (0.0, 0.0, 0.0)}})
    with pytest.raises(rf.StateError, match=r"stands on a ground.*MeasuredFeedforward"):
        law.torque(stands, 0.0, q, v, ground="firm")


def test_pd_is_redysims() -> None:
    """Table 10.7: kp = 49, kd = 14."""
    model = rf.load("gripper")
    motion = Cycloid(0.0, np.full(4, 1.0))
    (q, v), t = state(model, 1, 5), np.linspace(0.0, 1.0, 5)
    want = motion.at(t)
    assert np.allclose(
        PD(motion).torque(model, t, q, v),
        49.0 * (want.q - q) + 14.0 * (want.v - v),
        rtol=0,
        atol=1e-12,
    )


def test_pid_integrates_the_error() -> None:
    model = arm(4, 3)
    motion = Hold(np.full(model.nv, 0.5))
    control = PID(motion, 2.0, 3.0, 4.0)
    assert control.states == len(control.start) == model.nv
    (q, v), z = state(model, 1), np.arange(1.0, model.nv + 1.0)
    tau, rates = control.text(RobotText(model), 0.0, q.tolist(), v.tolist(), z.tolist())
    assert np.allclose(tau, 2.0 * (0.5 - q) + 3.0 * z - 4.0 * v)
    assert np.allclose(rates, 0.5 - q)
    partly = PID(motion, 2.0, 3.0, 4.0, actuated=[0])
    tau, rates = partly.text(RobotText(model), 0.0, q.tolist(), v.tolist(), z.tolist())
    own = model.joints[0].dof
    assert not any(tau[own:])
    assert not any(rates[own:])
    assert np.allclose(rates[:own], (0.5 - q)[:own])


def test_gravity_compensation_holds() -> None:
    model = arm(3)
    q, v = state(model)
    tau = GravityCompensation().torque(model, 0.0, q, v)
    assert np.abs(model.forward_dynamics(q, np.zeros(model.nv), tau)).max() < 1e-9
    assert np.allclose(GravityCompensation(0.5).torque(model, 0.0, q, v), tau - 0.5 * v)


def test_tables() -> None:
    model = arm(5, 2)
    n = model.nv
    values = np.outer([1.0, 3.0, -1.0], np.ones(n))
    t, (q, v) = [-1.0, 0.0, 0.25, 0.5, 1.0, 2.0], state(model)
    linear, hold = (
        TorqueTable([0.0, 0.5, 1.5], values),
        TorqueTable([0.0, 0.5, 1.5], values, "hold"),
    )
    assert np.allclose(linear.torque(model, t, q, v)[:, 0], [1.0, 1.0, 2.0, 3.0, 1.0, -1.0])
    assert np.allclose(hold.torque(model, t, q, v)[:, 0], [1.0, 1.0, 1.0, 3.0, 3.0, -1.0])
    assert np.allclose(TorqueTable([0.0], values[:1]).torque(model, t, q, v), 1.0)
    times = np.linspace(0.0, 1.5, 7)
    cubic = TorqueTable(times, np.outer(times**3 - times, np.ones(n)), "cubic")
    s = np.clip(t, 0.0, 1.5)
    assert np.allclose(cubic.torque(model, t, q, v)[:, 0], s**3 - s)


def test_the_four_bar_on_stored_torques_stays_on_its_turn() -> None:
    """A spline through 1601 rows for one turn; straight lines between them go astray by 0.6°."""
    model, w = rf.load("four_bar"), 1.5 * np.pi
    t = np.linspace(0.0, 4.0 / 3.0, 1601)
    path = {"crank": w * t}, {"crank": np.full(1601, w)}, None, {"crank": 0.0 * t}
    tau = model.inverse_dynamics(*model.assemble(*path))[:, :1]
    r = rf.scenario("four_bar_turn").run(control=TorqueTable(t, tau, "cubic"))
    assert np.abs(r["crank"] - w * r.t).max() < 1e-8
    word = "{type: torques_of_motion, rows: 9, interpolate: cubic}"
    short = rf.scenario("four_bar_turn").run(control=word, t_end=0.01)
    assert abs(short.tau[0, 0] - tau[0, 0]) < 1e-6


def test_limits() -> None:
    model = floating("free_euler")
    q, v = state(model)
    free = PD(Hold(np.zeros(3)), 1000.0).torque(model, 0.0, q, v)[6:]
    for limits in (3.0, [3.0, 3.0, 3.0], [0.0] * 6 + [3.0] * 3):
        tau = PD(Hold(np.zeros(3)), 1000.0, limits=limits).torque(model, 0.0, q, v)
        assert np.array_equal(tau[6:], np.clip(free, -3.0, 3.0))
        assert not tau[:6].any()
    some = PD(Hold(np.zeros(3)), 1000.0, limits=[np.inf, 1.0, 2.0]).torque(model, 0.0, q, v)[6:]
    assert np.array_equal(some, np.clip(free, [-np.inf, -1.0, -2.0], [np.inf, 1.0, 2.0]))


def test_actuated_subsets() -> None:
    """By name, by index, by single velocity; the rest of an arm then swings freely."""
    model = arm(1)
    name = model.joints[2].name
    place = range(model.nv)[model.joint_slice(name)]
    k = len(place)
    (q, v), t = state(model, 1), 0.3
    by_name = ComputedTorque(swing(k), actuated=[name]).torque(model, t, q, v)
    assert np.array_equal(by_name, ComputedTorque(swing(k), actuated=2).torque(model, t, q, v))
    assert np.array_equal(
        by_name,
        ComputedTorque(swing(k), actuated=(model.velocities[j] for j in place)).torque(
            model, t, q, v
        ),
    )
    want = swing(k).at(t)
    alpha = want.a + 49.0 * (want.q - q[list(place)]) + 14.0 * (want.v - v[list(place)])
    assert (
        np.abs(model.forward_dynamics(q, v, by_name)[list(place)] - alpha).max()
        < 1e-10 * np.abs(alpha).max()
    )
    assert not np.delete(by_name, list(place)).any()


def test_what_the_model_calls_actuated_is_driven() -> None:
    assert driven(floating("free")).q == (7, 8, 9)
    assert driven(floating("planar")).v == tuple(range(6))  # a planar table may have motors
    passive = (
        rf.Builder("acrobot")
        .link("upper", mass=1, com=(1, 0, 0), actuated=False)
        .link("lower", parent="upper", mass=1, com=(1, 0, 0))
    )
    assert driven(passive.model()).names == ("lower",)


def test_functions() -> None:
    model = arm(6, 3)
    seen = []

    def damper(t: Any, q: Any, v: Any) -> Any:
        seen.append((t, q.shape, v.shape))
        return -0.5 * v - t

    q, v = state(model, 0, 4)
    tau = Function(damper).torque(model, 0.25, q, v)
    assert np.allclose(tau, -0.5 * v - 0.25)
    assert seen == [(0.25, (model.nq,), (model.nv,))] * 4
    seen.clear()
    assert np.array_equal(Function(damper, vectorized=True).torque(model, 0.25, q, v), tau)
    assert len(seen) == 1
    assert np.array_equal(Function(damper).torque(model, 0.25, q[0], v[0]), tau[0])
    assert not Function(damper).traceable
    assert not Sum([Function(damper), Torque(0.0)]).traceable
    with pytest.raises(rf.StateError, match="cannot run on a Expr"):
        trace(
            "f",
            lambda q, v: [Function(damper).text(RobotText(model), 0.0, q, v, [])[0]],
            (Port("q", (model.nq,)), Port("v", (model.nv,))),
            (),
        )
    with pytest.raises(rf.StateError, match=r"shape \(1,\)"):
        Function(lambda t, q, v: [1.0]).torque(model, 0.0, q, v)
    with pytest.raises(rf.StateError, match="real numbers"):
        Function(lambda t, q, v: ["push"] * model.nv).torque(model, 0.0, q, v)
    with pytest.raises(rf.StateError, match=r"it must give \(4, "):
        Function(lambda t, q, v: v[0], vectorized=True).torque(model, 0.0, q, v)
    with pytest.raises(
        rf.SimulationError, match=rf"gave nan for '{model.velocities[1]}' at t = 0.5 s \(state 0\)"
    ):
        Function(lambda t, q, v: [0.0, np.nan] + [0.0] * (model.nv - 2)).torque(model, 0.5, q, v)


def test_sums() -> None:
    model = floating("free_euler")
    q, v = state(model)
    pid, limited = (
        PID(Hold(np.zeros(3)), rate_hz=100.0),
        Torque(5.0, limits=2.0, actuated="arm", rate_hz=100.0),
    )
    both = Sum([pid, limited])
    assert both.rate_hz == 100.0
    assert both.states == 3
    assert np.allclose(
        both.torque(model, 0.0, q, v),
        pid.torque(model, 0.0, q, v) + limited.torque(model, 0.0, q, v),
    )
    assert Sum([PD(Hold(0.0)), Torque(0.0)], rate_hz=50.0).rate_hz == 50.0
    pushed = Sum(
        [Torque(1.0, actuated="trunk"), Torque(2.0)]
    )  # drives what its parts drive, the base too
    assert pushed.torque(model, 0.0, q, v).tolist() == [1.0] * 6 + [2.0] * 3
    assert Sum([pushed], actuated="arm").torque(model, 0.0, q, v).tolist() == [0.0] * 6 + [
        2.0,
        0.0,
        0.0,
    ]


def test_states_of_a_sum_stay_with_their_parts() -> None:
    """Each part integrates its own errors and feels its own integral, in the order of the parts."""
    model = arm(6, 3)
    first, second = model.joints[0], model.joints[1]
    parts = [
        PID(Hold(np.full(joint.dof, aim)), 2.0, ki, 4.0, actuated=joint.name)
        for joint, aim, ki in ((first, 0.3, 5.0), (second, -0.7, 11.0))
    ]
    both = Sum(parts)
    q, v = state(model, 3)
    z = np.arange(1.0, both.states + 1.0)
    cut = parts[0].states
    tau, rates = both.text(RobotText(model), 0.0, q.tolist(), v.tolist(), z.tolist())
    own = [model.joint_slice(joint.name) for joint in (first, second)]
    wanted = np.zeros(model.nv)
    for at, aim, ki, integral in zip(
        own, (0.3, -0.7), (5.0, 11.0), (z[:cut], z[cut:]), strict=True
    ):
        wanted[at] = 2.0 * (aim - q[at]) + ki * integral - 4.0 * v[at]
    assert np.allclose(tau, wanted)
    assert np.allclose(rates, np.r_[0.3 - q[own[0]], -0.7 - q[own[1]]])
    assert np.allclose(both.torque(model, 0.0, q, v, z), wanted)


def test_forces_of_a_function_where_nothing_is_driven_are_refused_unless_named() -> None:
    made = rf.Builder("cart_pole").link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    pole = {"mass": 0.5, "com": (0, 0, -0.4), "inertia": (0.01, 0.01, 0.001), "actuated": False}
    model = made.link("pole", parent="cart", joint="revolute", axis=(0, 1, 0), **pole).model()
    start = np.array([0.0, 0.6])

    def spring(t: Any, q: Any, v: Any) -> Any:
        return np.array([0.0, -3.0 * q[1]])

    with pytest.raises(rf.StateError, match="'pole', which has no drive"):
        Sum([Function(spring), Torque(0.0)]).torque(model, 0.0, start, np.zeros(2))
    run = rf.simulate(
        model, 1.0, start, control=Function(spring, actuated=["cart", "pole"]), dt_out=0.1
    )
    driven = PD(Hold(0.0), kp=3.0, kd=0.0, actuated="pole")
    want = rf.simulate(model, 1.0, start, control=driven, dt_out=0.1)
    assert np.abs(run.q - want.q).max() < 1e-7
    assert np.abs(run.q - rf.simulate(model, 1.0, start, dt_out=0.1).q).max() > 0.1


@pytest.mark.parametrize("name", list(CONTROLLERS))
def test_forces_asked_for_again_and_again_are_compiled(name: str) -> None:
    model = floating("free")
    control = CONTROLLERS[name](3)
    (q, v), t = state(model, 2, 5), np.linspace(0.0, 1.0, 5)
    plain = control.torque(model, t, q, v)
    for _ in range(4):
        again = control.torque(model, t, q, v)
    asked = model.memo[COMPILED][id(control)]
    assert (asked.kernel is not None) == control.traceable
    scale = np.abs(plain).max() + 1.0
    assert np.abs(again - plain).max() < 1e-12 * scale
    one = control.torque(model, float(t[3]), q[3], v[3])
    assert np.abs(one - plain[3]).max() < 1e-12 * scale
    if states := control.state_count(RobotText(model)):
        z = np.random.default_rng(0).normal(size=states)
        fresh = replace(control).torque(model, 0.5, q[0], v[0], z)
        assert np.abs(control.torque(model, 0.5, q[0], v[0], z) - fresh).max() < 1e-12 * scale
    with pytest.raises(rf.StateError, match="t must be finite"):
        control.torque(model, np.nan, q, v)
    own = id(control)
    del control
    assert own not in model.memo[COMPILED]  # the robot does not keep a controller alive


@pytest.mark.parametrize("kind", ["linear", "hold", "cubic", "spline"])
def test_long_tables_are_memory_not_code(kind: str) -> None:
    """Twenty times the rows cost a step of the search for each doubling, and nothing else."""
    model = arm(4, 3)
    sizes, rng = {}, np.random.default_rng(0)
    for rows in (300, 6_000):
        times, values = np.linspace(0.0, 1.0, rows), rng.normal(size=(rows, 4)).cumsum(axis=0)
        control = (
            PD(Spline(times, values)) if kind == "spline" else TorqueTable(times, values, kind)
        )
        assert len(repr(control)) < 500
        inputs = [Port("t", (1,)), Port("q", (4,)), Port("v", (4,))]
        program = trace(
            "table", lambda t, q, v, c=control: [c.text(RobotText(model), t[0], q, v, [])[0]],
            inputs, [Port("tau", (4,))],
        )  # fmt: skip
        sizes[rows] = len(program.order)
        t = rng.uniform(-0.1, 1.1, size=40)
        q, v = state(model, 1, 40)
        found = interpret(program, [t[:, None], q, v])[0]
        if kind == "linear":
            want = np.stack([np.interp(t, times, column) for column in values.T], axis=1)
        elif kind == "hold":
            want = values[np.clip(np.searchsorted(times, t, side="right") - 1, 0, rows - 1)]
        else:
            from scipy.interpolate import CubicSpline

            inside, at = ((t >= 0) & (t <= 1))[:, None], np.clip(t, 0.0, 1.0)
            s = CubicSpline(times, values, bc_type="not-a-knot" if kind == "cubic" else "natural")
            want = s(at) if kind == "cubic" else 49.0 * (s(at) - q) + 14.0 * (s(at, 1) * inside - v)
        np.testing.assert_allclose(found, want, atol=1e-9 * np.abs(values).max() * rows)
        out = np.empty((40, 4))
        kernel = CompiledProgram("table", program, program.digest)
        assert kernel.run([t[:, None].copy(), q, v], [out], 0, 40) == 0
        np.testing.assert_allclose(out, found, rtol=0.0, atol=1e-9 * np.abs(found).max())
    assert sizes[6_000] - sizes[300] < 5 * 10


def test_compiled_forces_at_late_times() -> None:
    """Angles beyond the range of our own sine, from the time alone."""
    model = arm(4, 3)
    control = PD(Harmonic(np.zeros(4), 1.0, 1e9), kd=0.0)
    q, v = state(model, 1)
    for _ in range(5):
        tau = control.torque(model, 12345.678, q, v)
    want = 49.0 * (control.motion.at(12345.678).q - q)
    assert np.allclose(tau, want, rtol=0.0, atol=1e-9)
    kernel = model.memo[COMPILED][id(control)].kernel
    assert np.allclose(kernel(q, v, [12345.678]), want, rtol=0.0, atol=1e-9)


def test_laws_that_cannot_be_traced_run_on_numpy() -> None:
    @dataclass(frozen=True)
    class Stepped(Controller):
        def law(self, robot: Any, driven: Any, t: Any, q: Any, v: Any, z: Any) -> Any:
            return [1.0 if t > 0.5 else -1.0 for _ in driven.v], []

    model, control = arm(4, 3), Stepped()
    q, v = state(model, 1)
    found = [control.torque(model, t, q, v)[0] for t in (0.0, 1.0, 0.0, 1.0, 0.0, 1.0)]
    assert found == [-1.0, 1.0] * 3


def test_anything_that_controls() -> None:
    model = arm(6, 3)
    assert as_controller(None, model) is None
    control = GravityCompensation()
    assert as_controller(control, model) is control
    assert isinstance(as_controller(lambda t, q, v: v, model), Function)
    with pytest.raises(rf.StateError, match="it is a str"):
        as_controller("gravity", model)
    with pytest.raises(rf.StateError, match="the motion has 99"):
        as_controller(PD(Hold(np.zeros(99))), model)
    with pytest.raises(rf.StateError, match="the motion has 99"):
        as_controller(Sum([control, PD(Hold(np.zeros(99)))]), model)


def test_numbers_are_kept_exactly_in_the_repr() -> None:
    x = 0.1 + 0.2
    assert repr(x) in repr(ComputedTorque(Hold(0.0), kp=np.full(200, x)))
    assert PD(Hold(0.0), 4.0) == PD(Hold(0.0), [4.0], 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PD(3.0), "motion must be a trajectory"),
        (lambda: PD(Hold(0.0), kp=-1.0), r"kp\[0\] is -1.0; a gain must not be negative"),
        (lambda: PID(Hold(0.0), ki=np.nan), r"ki\[0\] is nan"),
        (lambda: GravityCompensation("much"), "kd must be an array of real numbers"),
        (lambda: Torque(np.inf), r"tau\[0\] is inf"),
        (lambda: Torque(1.0, limits=[1.0, -1.0]), r"limits\[1\] is -1.0"),
        (lambda: Torque(1.0, limits=np.nan), r"limits\[0\] is nan"),
        (lambda: Torque(1.0, rate_hz=0.0), "rate_hz 0.0"),
        (lambda: TorqueTable([0.0, 0.0], [1.0, 2.0]), "times must rise"),
        (lambda: TorqueTable([0.0, 1.0], [1.0]), r"must be \(2, n\)"),
        (lambda: TorqueTable([0.0, 1.0], [1.0, 2.0], "quintic"), "must be .*; got 'quintic'"),
        (lambda: Function(3.0), "f must be a function"),
        (lambda: Sum([]), "at least one"),
        (lambda: Sum([Torque(1.0), 3.0]), "part 1 is a float"),
        (
            lambda: Sum([Torque(1.0, rate_hz=10.0), Torque(1.0)]),
            "part 1 has rate_hz None, not 10.0",
        ),
        (
            lambda: Sum([Torque(1.0, rate_hz=10.0)], rate_hz=20.0),
            "part 0 has rate_hz 10.0, not 20.0",
        ),
    ],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises(rf.StateError, match=message):
        make()


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (
            PD(Hold([0.0, 0.0])),
            "the motion has 2 coordinates; robot on free has 3 driven ones: arm, hand, leg",
        ),
        (PD(Hold(np.zeros(3)), kp=[1.0, 2.0]), "kp has 2 entries; give 1, or 3"),
        (
            PD(Hold(np.zeros(9)), actuated=["trunk", "arm", "hand", "leg"]),
            "belongs to a quaternion",
        ),
        (Torque([1.0, 2.0]), "tau has 2 entries"),
        (TorqueTable([0.0, 1.0], np.zeros((2, 4))), "values has 4 entries"),
        (Torque(1.0, limits=[1.0, 2.0]), "limits has 2 entries"),
        (Function(lambda t, q, v: v, limits=[1.0, 2.0]), "limits has 2 entries"),
        (Torque(1.0, actuated=["tail"]), "has no joint 'tail'"),
        (Torque(1.0, actuated=["arm", "arm"]), "names 'arm' twice"),
        (Torque(1.0, actuated=7), "7 is not a joint"),
        (Torque(1.0, actuated=True), "True is not a joint"),
    ],
)
def test_refused_by_the_robot(control: Controller, message: str) -> None:
    model = floating("free")
    with pytest.raises(rf.StateError, match=message):
        control.check(model)
    if not isinstance(control, Function):
        with pytest.raises(rf.StateError, match=message):
            control.torque(model, 0.0, *state(model))


def test_bad_states() -> None:
    model = floating("free")
    q, v = state(model)
    control = GravityCompensation()
    for arguments, message in (
        ((np.nan, q, v), "t must be finite"),
        ((0.0, q[:-1], v), r"q has shape \(9,\)"),
        ((0.0, q, v * np.inf), "v"),
        ((0.0, q, v, [1.0]), r"z has shape \(1,\); .GravityCompensation. needs \(..., 0\)"),
    ):
        with pytest.raises(rf.StateError, match=message):
            control.torque(model, *arguments)


def test_forces_known_beforehand_are_refused_where_nothing_drives() -> None:
    b = rf.Builder("cart_pole")
    b.link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    b.link("pole", "cart", axis=(0, 1, 0), mass=0.3, com=(0, 0, 0.5), actuated=False)
    model = b.model()
    table = rf.control.TorqueTable([0.0, 1.0], [[0.0, 5.0], [0.0, 5.0]])
    for control in (rf.control.Torque([0.0, 5.0]), table):
        for run in (
            lambda c=control: rf.simulate(model, 0.1, control=c),
            lambda c=control: rf.rollout(model, [0, 0], [0, 0], steps=2, dt=0.01, control=c),
        ):
            with pytest.raises(rf.RamifyError, match="'pole', which has no drive"):
                run()
    rf.simulate(model, 0.1, control=rf.control.Torque([1.0, 0.0]))


def test_masked_entries_of_motions_are_refused() -> None:
    hidden = np.ma.array(np.ones(2), mask=[True, False])
    with pytest.raises(rf.StateError, match="masked entries"):
        rf.motion.Cycloid(0.0, hidden, duration=1.0)


def test_a_sum_follows_the_motion_of_its_one_part() -> None:
    model = arm(1)
    motion = Cycloid(np.zeros(model.nv), 0.1 * np.ones(model.nv), 0.5)
    pushed = Torque(0.0, actuated=[model.joints[0].name])
    with_one = rf.simulate(model, 0.1, control=Sum([pushed, Sum([ComputedTorque(motion)])]))
    assert with_one.desired is not None
    assert np.array_equal(with_one.desired.q, motion.at(with_one.t).q)
    with_two = Sum([PD(motion), PD(Hold(np.zeros(model.nv)))])
    assert rf.simulate(model, 0.1, control=with_two).desired is None


@pytest.mark.parametrize("driven", [True, False])
def test_computed_torque_overcomes_what_the_joints_take(driven: bool) -> None:
    """The driven accelerations are those asked for, though friction and springs act."""
    solid = {"mass": 1.0, "com": (0.2, 0, 0.1), "inertia": (0.1, 0.1, 0.1), "axis": (0, 1, 0)}
    b = rf.Builder("arm").link("a", friction=2.0, damping=0.3, **solid)
    b.link("b", "a", at=(0.4, 0, 0), spring={"stiffness": 7.0}, actuated=driven, **solid)
    model, q, v = b.model(), np.array([0.3, -0.4]), np.array([0.5, 0.6])
    motion = Hold([0.1, 0.2][: 2 if driven else 1])
    law = ComputedTorque(motion, kp=30.0, kd=5.0, passive=True)
    found = model.forward_dynamics(q, v, law.torque(model, 0.0, q, v), passive=True)
    wanted = 30.0 * (np.array([0.1, 0.2]) - q) - 5.0 * v
    joints = slice(0, 2 if driven else 1)
    assert np.allclose(found[joints], wanted[joints])
    run = rf.simulate(model, 0.5, q, control=law)
    assert run.audit.passed


def test_a_sampled_pid_integrates_its_error() -> None:
    """Held for a short period it does what the continuous one does; a PD keeps its offset."""
    model = arm(1, 3)
    start, motion = np.full(3, 0.3), Hold([0.2, -0.1, 0.4])
    ends = {}
    for rate in (None, 500.0):
        law = PID(motion, kp=60.0, ki=80.0, kd=8.0, rate_hz=rate)
        ends[rate] = rf.simulate(model, 3.0, start, control=law, step=1e-3).q[-1]
    bent = rf.simulate(model, 3.0, start, control=PD(motion, kp=60.0, kd=8.0), step=1e-3).q[-1]
    assert np.abs(ends[500.0] - ends[None]).max() < 0.02 * np.abs(bent - ends[None]).max()
    law = PID(motion, kp=60.0, ki=80.0, kd=8.0, rate_hz=500.0)
    batch = rf.rollout(model, np.stack([start] * 3), np.zeros((3, 3)), steps=3000, dt=1e-3,
                       control=law, method="rk4")  # fmt: skip
    alone = rf.simulate(model, 3.0, start, control=law, step=1e-3, method="rk4").q[-1]
    np.testing.assert_allclose(batch.q, np.stack([alone] * 3), atol=1e-9)


def test_initial_states_are_those_of_a_run() -> None:
    """For a state and for a batch, with a ground and without; the first torque of a run."""
    model = rf.load("planar_biped")
    q, v = model.random(seed=2)
    v = 0.01 * v
    law = Feedforward(Hold(q[6:]), limits=50.0)
    z = law.initial_states(model, q, v)
    assert np.array_equal(z, [*q[:6], *v[:6]])
    tau = law.torque(model, 0.0, q, v, z)
    assert np.array_equal(tau, law.torque(model, 0.0, q, v))
    np.testing.assert_allclose(rf.simulate(model, 0.01, q, v, control=law).tau[0], tau, atol=1e-9)
    second = law.initial_states(model, np.stack([q, 2 * q]), v, ground="firm")[1]
    assert np.array_equal(second, [*(2 * q[:6]), *v[:6]])
    both = Sum([PID(Hold(q[6:]), ki=1.0), law])
    zeros = np.zeros(model.nv - 6)
    assert np.array_equal(both.initial_states(model, q, v), [*zeros, *z])
    whole = Feedforward(Hold(q))  # the motion covers the base: no states, but on a ground
    assert whole.initial_states(model, q, v).shape == (0,)
    assert whole.initial_states(model, q, v, ground="firm").shape == (12,)


@pytest.mark.parametrize("call", ["initial_states", "torque"])
def test_batches_that_do_not_fit_together_are_refused(call: str) -> None:
    model = arm(1, 3)
    law, times = PD(Hold(np.zeros(3))), () if call == "initial_states" else (0.0,)
    with pytest.raises(rf.StateError, match=r"batches do not fit together: .*q \(2,\), v \(3,\)"):
        getattr(law, call)(model, *times, np.zeros((2, 3)), np.zeros((3, 3)))
