"""Simulation: motions come back under their own torques, other programs agree, and what goes wrong
is told and kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peers import pinocchio_of
from reference_runs import pendulum
from scipy.integrate import solve_ivp

import ramify as rf
from ramify.integrate.integrators import integrators
from ramify.motion import example_ends

FIXED = {name for i in integrators() if i.fixed for name in (i.name, *i.aliases)}
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}


def example_motion(model: rf.Model, duration: float) -> rf.motion.Trajectory:
    start, end = example_ends(model)
    if model.name == "stanford_arm":
        start[1] = np.pi / 2
    return rf.motion.Cycloid(start, end, duration)


# ---- inverse dynamics, then simulation under those torques ----


@pytest.mark.parametrize(
    ("name", "duration"),
    [("stanford_arm", 2.0), ("kuka_kr5", 1.0), ("gripper", 1.0), ("planar_3r", 1.0)],
)
def test_a_motion_comes_back_under_its_torques(name: str, duration: float) -> None:
    model = rf.load(name)
    motion = example_motion(model, duration)

    def torques(t: float, q: Any, v: Any) -> Any:
        m = motion.at(t)
        return model.inverse_dynamics(m.q, m.v, m.a)

    blind = {"a function": torques, "feedforward": rf.control.Feedforward(motion, kp=0.0, kd=0.0)}
    for control in blind.values():
        r = rf.simulate(model, duration, motion.at(0.0).q, control=control, **TIGHT)
        assert np.abs(r.q - motion.at(r.t).q).max() < 1e-6
        assert r.audit.passed


def test_a_table_of_torques_brings_the_motion_back() -> None:
    model = rf.load("planar_3r")
    motion = example_motion(model, 1.0)
    off = []
    for rows in (26, 51):
        m = motion.samples(rows)
        table = rf.control.TorqueTable(m.t, model.inverse_dynamics(m.q, m.v, m.a))
        r = rf.simulate(model, 1.0, motion.at(0.0).q, control=table, rtol=1e-10)
        off.append(np.abs(r.q - motion.at(r.t).q).max())
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.2)  # linear interpolation is of second order


def test_where_the_problem_is_unstable_errors_grow_and_control_cures_it() -> None:
    s = rf.scenario("stanford_motion")
    blind = s.run(control={"type": "feedforward", "kp": 0, "kd": 0}, **TIGHT)
    assert blind.desired is not None
    off = np.abs(blind.q - blind.desired.q).max(axis=1)
    grows = (off > 1e-11) & (off < 1e-3)
    rate = np.polyfit(blind.t[grows], np.log(off[grows]), 1)[0]
    assert 3.0 < rate < 6.0  # 1/s: within the 10 s any error grows beyond all use
    assert off[-1] > 0.1
    seeing = s.run()
    assert seeing.desired is not None
    assert np.abs(seeing.q - seeing.desired.q).max() < 1e-8


# ---- other programs ----


def mujoco_of(model: rf.Model, step: float) -> mujoco.MjModel:
    """A robot of one-degree joints in MuJoCo, without contacts and friction."""
    spec = mujoco.MjSpec()
    spec.option.gravity, spec.option.timestep = model.gravity, step
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    for what in ("CONSTRAINT", "CONTACT", "AUTORESET"):
        spec.option.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}"))
    made = {-1: spec.worldbody}

    def quaternion(rotation: Any) -> Any:
        out = np.empty(4)
        mujoco.mju_mat2Quat(out, np.ascontiguousarray(rotation).ravel())
        return out

    for i, body in enumerate(model.bodies):
        (one,) = body.joint.steps
        frame, inverse = body.joint.placement @ body.joint.outlet, body.joint.outlet.inverse()
        moments, axes = np.linalg.eigh(body.inertia)
        made[i] = made[body.parent].add_body(
            name=body.name, pos=frame.position, quat=quaternion(frame.rotation), explicitinertial=True, mass=body.mass,
            ipos=body.com, inertia=np.maximum(moments, 1e-12), iquat=quaternion(axes * np.linalg.det(axes)),
        )  # fmt: skip
        kind = mujoco.mjtJoint.mjJNT_HINGE if one.rho else mujoco.mjtJoint.mjJNT_SLIDE
        made[i].add_joint(
            name=body.joint.name,
            type=kind,
            axis=inverse.rotation @ np.array(one.axis),
            pos=inverse.position,
        )
    return spec.compile()


FALLS = [
    ("kuka_free_fall", 1.0),
    ("stanford_free_fall", 1.0),
    ("gripper_free_fall", 0.5),
    ("planar_3r_free_fall", 2.0),
]


@pytest.mark.parametrize(("name", "t_end"), FALLS)
def test_mujoco_falls_the_same_way(name: str, t_end: float) -> None:
    s, step = rf.scenario(name), 1e-4
    fine = s.run(t_end=t_end, dt_out=t_end, **TIGHT)
    ours = s.run(t_end=t_end, dt_out=t_end, method="rk4", step=step)
    peer = mujoco_of(s.robot, step)
    data = mujoco.MjData(peer)
    data.qpos[:], data.qvel[:] = s.q0, s.v0
    mujoco.mj_step(peer, data, nstep=round(t_end / step))
    assert data.time == pytest.approx(t_end)
    scale = np.abs(fine.q[-1]).max()
    assert (
        np.abs(ours.q[-1] - data.qpos).max() < 1e-7 * scale
    )  # the same method and step: rounding, and how it grows
    assert np.abs(fine.q[-1] - data.qpos).max() < 1e-5 * scale


@pytest.mark.parametrize(("name", "t_end"), FALLS)
def test_pinocchio_and_scipy_fall_the_same_way(name: str, t_end: float) -> None:
    s = rf.scenario(name)
    r = s.run(t_end=t_end, dt_out=t_end / 20, **TIGHT)
    peer = pinocchio_of(s.robot)
    data, n = peer.createData(), s.robot.nv

    def rates(t: float, y: Any) -> Any:
        return np.concatenate([y[n:], pin.aba(peer, data, y[:n], y[n:], np.zeros(n))])

    theirs = solve_ivp(
        rates, (0.0, t_end), np.r_[s.q0, s.v0], "DOP853", t_eval=r.t, rtol=1e-11, atol=1e-13
    ).y.T
    assert np.abs(r.q - theirs[:, :n]).max() < 1e-7 * np.abs(r.q).max()
    assert np.abs(r.v - theirs[:, n:]).max() < 1e-7 * np.abs(r.v).max()


def test_a_controlled_motion_agrees_with_pinocchio() -> None:
    s = rf.scenario("kuka_motion")
    r = s.run(initial={"q": 0.1}, **TIGHT)
    peer = pinocchio_of(s.robot)
    data, motion = peer.createData(), s.motion
    assert motion is not None

    def rates(t: float, y: Any) -> Any:
        q, v, m = y[:6], y[6:], motion.at(t)
        tau = pin.rnea(peer, data, q, v, m.a + 49.0 * (m.q - q) + 14.0 * (m.v - v))
        return np.concatenate([v, pin.aba(peer, data, q, v, tau)])

    theirs = solve_ivp(
        rates,
        (0.0, 1.0),
        np.r_[np.full(6, 0.1), np.zeros(6)],
        "DOP853",
        t_eval=r.t,
        rtol=1e-10,
        atol=1e-12,
    ).y.T
    assert np.abs(r.q - theirs[:, :6]).max() < 1e-8


# ---- controllers that run beside the robot ----


def test_a_function_and_its_compiled_twin_agree() -> None:
    model = rf.load("planar_3r")
    motion = example_motion(model, 1.0)

    def law(t: float, q: Any, v: Any) -> Any:
        m = motion.at(t)
        return 49.0 * (m.q - q) + 14.0 * (m.v - v)

    one, other = (rf.simulate(model, 0.5, control=c, **TIGHT) for c in (law, rf.control.PD(motion)))
    assert np.abs(one.q - other.q).max() < 1e-9
    assert np.abs(one.tau - other.tau).max() < 1e-6


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_sampled_control_is_held_between_samples(method: str) -> None:
    calls: list[float] = []

    def law(t: float, q: Any, v: Any) -> Any:
        calls.append(t)
        return -20.0 * q - 4.0 * v

    control = rf.control.Function(law, rate_hz=10.0)
    r = rf.simulate(
        pendulum(),
        1.0,
        [0.5],
        control=control,
        method=method,
        step=0.01 if method in FIXED else None,
        dt_out=0.05,
    )
    assert calls == pytest.approx(np.arange(10) / 10.0)
    assert r.tau[0, 0] == pytest.approx(-10.0)
    steps = r.tau[1:, 0].reshape(10, 2)  # rows after 0, 0.1, ...: two of each hold
    assert np.array_equal(steps[:, 0], steps[:, 1])
    assert r.audit.passed
    # By hand: a new torque at every sample, each piece a run of its own.
    q, v = np.array([0.5]), np.array([0.0])
    for _ in range(10):
        piece = rf.simulate(
            pendulum(),
            0.1,
            q,
            v,
            control=rf.control.Torque(float(-20.0 * q[0] - 4.0 * v[0])),
            **TIGHT,
        )
        q, v = piece.q[-1], piece.v[-1]
    assert np.abs(r.q[-1] - q).max() < 1e-6


def test_a_fast_sampled_controller_approaches_the_continuous_one() -> None:
    model = rf.load("planar_3r")
    motion = example_motion(model, 0.4)
    continuous = rf.simulate(model, 0.4, control=rf.control.ComputedTorque(motion))
    off = []
    for rate in (100.0, 400.0):
        sampled = rf.simulate(model, 0.4, control=rf.control.ComputedTorque(motion, rate_hz=rate))
        off.append(np.abs(sampled.q - continuous.q).max())
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.3)


def test_a_controller_with_states_of_its_own() -> None:
    r = rf.simulate(
        pendulum(), 20.0, control=rf.control.PID(rf.motion.Hold([0.7]), kp=60.0, ki=60.0, kd=20.0)
    )
    assert r.q[-1, 0] == pytest.approx(0.7, abs=1e-4)  # no offset is left in spite of gravity
    assert r.tau[-1, 0] == pytest.approx(2.0 * 9.81 * np.sin(0.7), rel=1e-3)


@pytest.mark.parametrize("base", ["free", "free_euler"])
def test_a_number_for_damping_leaves_a_floating_base_alone(base: Any) -> None:
    """Friction between links is inner: a robot in free flight keeps its momentum. Rows of damping
    are taken as they stand.
    """
    model = rf.load("space_3_link", base=base)
    v0 = 0.5 * np.cos(np.arange(model.nv))
    run = rf.simulate(model, 1.0, v0=v0, damping=0.1, **TIGHT)
    assert run.options["damping"] == [0.0] * 6 + [0.1] * (model.nv - 6)
    weight = model.mass * np.array(model.gravity)
    linear = run.momentum.linear - run.t[:, None] * weight
    assert np.abs(linear - linear[0]).max() < 1e-8
    assert run.work.dissipated[-1] > 1e-3
    assert len(run.audit.momentum) == 2
    assert run.audit.passed
    dragged = rf.simulate(model, 1.0, v0=v0, damping=np.full(model.nv, 0.1), **TIGHT)
    assert dragged.options["damping"] == [0.1] * model.nv
    assert np.abs(dragged.momentum.linear[-1] - dragged.momentum.linear[0] - weight).max() > 1e-3
    far = rf.rollout(model, model.neutral(), v0, steps=1000, dt=1e-3, damping=0.1)
    assert np.abs(far.q - run.q[-1]).max() < 1e-8


def test_a_floating_base_with_a_function() -> None:
    """Quaternions leave their length between the stages of a step; neither kernels nor functions
    may see that.
    """
    model = rf.load("space_3_link", base="free")
    v0 = 0.5 * np.cos(np.arange(model.nv))
    joints = model.nv - 6

    def law(t: float, q: Any, v: Any) -> Any:
        assert abs(np.linalg.norm(q[3:7]) - 1.0) < 1e-12
        return np.r_[np.zeros(6), -0.1 * v[6:]]

    one = rf.simulate(model, 1.0, v0=v0, control=law, **TIGHT)
    other = rf.simulate(
        model, 1.0, v0=v0, damping=np.r_[np.zeros(6), np.full(joints, 0.1)], **TIGHT
    )
    assert np.abs(one.q - other.q).max() < 1e-8
    assert one.audit.passed
    assert other.audit.passed
    motion = rf.motion.Cycloid(0.0, np.full(joints, 0.3), 1.0)
    driven = rf.simulate(model, 1.0, control=rf.control.ComputedTorque(motion))
    assert driven.desired is not None
    assert np.isnan(driven.desired.q[:, :7]).all()
    assert np.abs(driven.q[:, 7:] - driven.desired.q[:, 7:]).max() < 1e-6


# ---- events and output ----


@pytest.mark.parametrize("method", ["dop853", "lsoda", "rk4", "rk5", "ab4", "energy"])
def test_events_end_the_run_where_a_function_changes_its_sign(method: str) -> None:
    events = {"hangs": lambda t, q, v: q[0], "late": lambda t, q, v: t - 5.0}
    r = rf.simulate(
        pendulum(),
        3.0,
        [1.0],
        method=method,
        step=0.001 if method in FIXED else None,
        rtol=1e-10,
        atol=1e-12,
        events=events,
    )
    assert r.status == "event: hangs"
    assert abs(r.q[-1, 0]) < 1e-9
    from scipy.special import ellipk

    close = 1e-5 if method == "energy" else 1e-8
    assert r.t[-1] == pytest.approx(ellipk(np.sin(0.5) ** 2) / np.sqrt(9.81), abs=close)
    assert (np.diff(r.t) > 0.0).all()


def test_events_that_fail_are_named() -> None:
    with pytest.raises(
        rf.SimulationError, match=r"the event 'odd' raised ZeroDivisionError.* at t = "
    ):
        rf.simulate(pendulum(), 1.0, events={"odd": lambda t, q, v: 1.0 / 0.0})
    with pytest.raises(rf.SimulationError, match="the event 'odd' gave nan"):
        rf.simulate(pendulum(), 1.0, events={"odd": lambda t, q, v: float("nan")})


@pytest.mark.parametrize("dt_out", [0.01, 0.03, 0.07, 0.5, 2.0])
@pytest.mark.parametrize("method", ["dop853", "rk4", "ab4"])
def test_output_comes_at_every_dt_out_and_at_the_end(dt_out: float, method: str) -> None:
    r = rf.simulate(
        pendulum(), 1.0, [1.0], method=method, step=0.01 if method in FIXED else None, dt_out=dt_out
    )
    wanted = np.append(np.arange(0.0, 1.0 - 1e-9, dt_out), 1.0)
    assert r.t == pytest.approx(wanted, abs=1e-12)


def test_the_result_tells_how_it_came_about() -> None:
    r = rf.simulate(pendulum(), 0.5, [1.0], method="rk4", step=0.01, damping=0.1)
    assert r.options["method"] == "rk4"
    assert r.options["q0"] == [1.0]
    assert r.stats["steps"] == 50
    assert r.stats["evaluations"] == 200
    assert r.work.dissipated[-1] > 0.0
    assert r.audit.passed


# ---- what goes wrong ----


@pytest.mark.parametrize("rate", [None, 50.0])
@pytest.mark.parametrize("method", ["dop853", "rk4", "lsoda"])
def test_a_controller_that_gives_nan_stops_the_run(method: str, rate: float | None) -> None:
    def law(t: float, q: Any, v: Any) -> Any:
        return [0.0, float("nan") if t > 0.3 else 1.0, 0.0]

    with pytest.raises(
        rf.SimulationError, match=r"the controller gave nan for 'joint2' at t = 0\.3"
    ) as stop:
        rf.simulate(
            rf.load("planar_3r"),
            1.0,
            control=rf.control.Function(law, rate_hz=rate),
            method=method,
            step=0.005 if method in FIXED else None,
        )
    r = stop.value.result
    assert isinstance(r, rf.Result)
    assert 0.2 < r.t[-1] < 0.33
    assert r.status.startswith("failed")
    assert np.isfinite(r.q).all()


@pytest.mark.parametrize("rate", [None, 50.0])
def test_a_controller_that_raises_stops_the_run(rate: float | None) -> None:
    def law(t: float, q: Any, v: Any) -> Any:
        if t > 0.3:
            raise KeyError("no table for this posture")
        return np.zeros(3)

    with pytest.raises(
        rf.SimulationError, match=r"the controller raised KeyError.* at t = 0\.3"
    ) as stop:
        rf.simulate(rf.load("planar_3r"), 1.0, control=rf.control.Function(law, rate_hz=rate))
    assert isinstance(stop.value.result, rf.Result)
    assert stop.value.result.t[-1] > 0.2
    assert isinstance(stop.value.__cause__, KeyError)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_a_run_that_stops_between_two_outputs_keeps_its_last_state(method: str) -> None:
    control, step = rf.control.Torque(1e8), None if method == "dop853" else 1e-5
    with pytest.raises(rf.SimulationError, match=r"runs away: .* at t = ") as stop:
        rf.simulate(rf.load("planar_3r"), 1.0, control=control, method=method, step=step)
    r = stop.value.result
    assert isinstance(r, rf.Result)
    assert len(r.t) == 2
    assert 0.0 < r.t[-1] < 0.01
    assert f"at t = {r.t[-1]:g} s" in r.status
    assert np.isfinite(r.a).all()


def test_a_last_state_without_accelerations_is_left_out() -> None:
    """The second step ends in gimbal lock, and the event fails in the third."""
    ball = rf.Builder("ball").link(
        "a", joint="spherical", sequence="YXZ", mass=1.0, inertia=(0.1, 0.1, 0.1)
    )

    def late(t: float, q: Any, v: Any) -> float:
        if t > 0.0045:
            raise KeyError("too late")
        return 1.0

    for start, kept in ((np.pi / 2 - 0.0040005, [0.0]), (0.3, [0.0, 0.004])):
        with pytest.raises(rf.SimulationError, match="'late' raised KeyError") as stop:
            rf.simulate(
                ball.model(), 1.0, [0.0, start, 0.0], [0.0, 1.0, 0.0], events={"late": late},
                method="rk4", step=0.002,
            )  # fmt: skip
        assert isinstance(stop.value.result, rf.Result)
        assert stop.value.result.t.tolist() == kept


def test_a_controller_of_the_wrong_shape_is_told_with_the_time() -> None:
    with pytest.raises(rf.SimulationError, match=r"gives forces of shape \(2,\).*at t = 0"):
        rf.simulate(rf.load("planar_3r"), 1.0, control=lambda t, q, v: [1.0, 2.0])


def test_a_compiled_controller_that_explodes_keeps_its_result() -> None:
    control = rf.control.Torque(1e200)
    with pytest.raises(rf.SimulationError, match="at t = ") as stop:
        rf.simulate(rf.load("planar_3r"), 1.0, control=control, method="rk4", step=0.01)
    assert isinstance(stop.value.result, rf.Result)


def test_ctrl_c_keeps_what_was_computed() -> None:
    def law(t: float, q: Any, v: Any) -> Any:
        if t > 0.25:
            raise KeyboardInterrupt
        return np.zeros(3)

    r = rf.simulate(rf.load("planar_3r"), 1.0, control=law)
    assert r.status == "interrupted"
    assert 0.2 < r.t[-1] <= 0.25


BAD: list[tuple[dict[str, Any], str]] = [
    ({"t_end": 0.0}, "t_end 0.0 must be a finite number > 0, in s"),
    ({"t_end": "1"}, "t_end '1' must be"),
    ({"t_end": float("nan")}, "t_end nan"),
    ({"dt_out": -1.0}, "dt_out"),
    ({"dt_out": 1e-12}, "rows of output are too many"),
    ({"rtol": 1e-20}, "below what 64-bit numbers can do"),
    ({"atol": 0.0}, "atol"),
    ({"method": "magic"}, "method 'magic' is unknown; choose one of auto"),
    ({"method": "rk4"}, "needs a fixed step"),
    ({"method": "rk4", "step": 1e-12}, "steps are too many"),
    ({"step": True}, "step True"),
    ({"max_step": 0.0}, "max_step"),
    ({"q0": [1.0]}, "q0"),
    ({"q0": [0.0, 0.0, float("inf")]}, "q0"),
    ({"v0": np.zeros((2, 3))}, "rf.rollout"),
    ({"damping": -1.0}, "damping"),
    ({"damping": [1.0, 2.0]}, "damping"),
    ({"damping": "honey"}, "damping"),
    ({"control": 3}, "control must be"),
    ({"control": rf.control.Torque([1.0, 2.0])}, "tau has 2 entries"),
    ({"ground": object()}, "ground"),
]


@pytest.mark.parametrize(
    ("options", "said"), BAD, ids=[f"{next(iter(o))}{i}" for i, (o, _) in enumerate(BAD)]
)
def test_bad_arguments_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(rf.RamifyError) as error:
        rf.simulate(rf.load("planar_3r"), **{"t_end": 1.0, **options})
    assert said in str(error.value)


ARM = rf.load("planar_3r")
NUMBERS = (
    st.floats()
    | st.integers(-3, 3)
    | st.none()
    | st.text(max_size=2)
    | st.lists(st.floats(), max_size=4)
)


@given(
    st.dictionaries(
        st.sampled_from(["q0", "v0", "damping", "rtol", "atol", "dt_out", "step", "max_step"]),
        NUMBERS,
        max_size=3,
    )
)
def test_any_argument_is_taken_or_refused_clearly(options: dict[str, Any]) -> None:
    if isinstance(options.get("dt_out"), float) and 0.0 < options["dt_out"] < 1e-4:
        del options["dt_out"]
    if isinstance(options.get("max_step"), float) and 0.0 < options["max_step"] < 1e-4:
        del options["max_step"]
    if isinstance(options.get("step"), float) and 0.0 < options["step"] < 1e-5:
        del options["step"]
    try:
        r = rf.simulate(ARM, 0.01, **options)
    except rf.RamifyError:
        return
    assert np.isfinite(r.q).all()


def test_a_start_in_degrees_is_warned_of() -> None:
    """Whole numbers of more than two turns; slides and what is no whole number are left alone."""
    arm = rf.load("stanford_arm")
    with pytest.warns(RuntimeWarning, match="'joint2' = 90 looks like degrees; .* be 1.571"):
        rf.simulate(arm, 0.01, [0, 90, 0, 0, 0, 0])
    for q0 in ([12.0, 31.4, 100.0, 0, 0, 0], [0.0] * 6):
        rf.simulate(arm, 0.01, q0)


def test_a_quaternion_must_have_length_one() -> None:
    model = rf.load("space_3_link", base="free")
    with pytest.raises(rf.StateError, match="length"):
        rf.simulate(model, 1.0, 2.0 * model.neutral())


def test_a_base_without_mass_is_named(tmp_path: Path) -> None:
    text = """<robot name="kite"><link name="string"/><link name="kite"><inertial><origin xyz="1 0 0"/><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="knot" type="continuous"><parent link="string"/><child link="kite"/></joint></robot>"""
    (tmp_path / "kite.urdf").write_text(text)
    with pytest.raises(rf.SimulationError, match="moves no mass"):
        rf.simulate(rf.load(tmp_path / "kite.urdf", base="free"), 0.1)


@pytest.mark.parametrize("t_end", [0.7, 1.4, 2.3])
def test_the_last_row_is_the_end(t_end: float) -> None:
    assert rf.simulate(rf.load("two_link"), t_end).t[-1] == t_end
