"""Options and arrays of inverse kinematics, of texts and of other libraries' functions that make no
sense: one error that names the culprit; an empty batch gives an empty answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi
import numpy as np
import pytest

import ramify as rf
from ramify.envs import RobotEnv, RobotVectorEnv
from ramify.model.frame import Frame, rotation_about

ARM = rf.load("planar_3r")
TIP = ARM.bodies[-1].name
Q = np.array([0.3, 0.4, 0.5])
GOAL = ARM.pose(Q, TIP)
M = rf.motion
NAN, INF = float("nan"), float("inf")


def ik(targets: Any = None, **options: Any) -> Any:
    return rf.ik(ARM, {TIP: GOAL.position} if targets is None else targets, Q + 0.1, **options)


def velocities(**options: Any) -> Any:
    given: dict[str, Any] = {"q": Q, "tasks": {TIP: GOAL.position}, "dt": 0.01, **options}
    return rf.differential_ik(ARM, **given)


POSITIVE = r"must be finite and positive \(1e-15 to 1e\+15\)"
NUMBERS = (-1, 0, NAN, INF, "a", None, [1, 2], 1j, 1e300, True, np.ma.masked)


@pytest.mark.parametrize("x", NUMBERS)
def test_numbers_that_must_be_positive(x: Any) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "tolerance": lambda: ik(tolerance=x),
        "weight": lambda: ik(M.Target(TIP, GOAL.position, weight=x)),
        "rotation_weight": lambda: ik(M.Target(TIP, GOAL.position, rotation_weight=x)),
        r"task 0 \(centre of mass\): weight": lambda: ik(M.CenterOfMass([0, 0, 0], weight=x)),
        r"task 0 \(posture\): weight": lambda: ik([M.KeepPosture(Q, weight=x)]),
        "dt": lambda: velocities(dt=x),
        "gain": lambda: velocities(gain=x),
        "damping": lambda: velocities(damping=x),
    }
    for name, call in calls.items():
        with pytest.raises(rf.StateError, match=f"{name}.*{POSITIVE}"):
            call()


@pytest.mark.parametrize("x", [-1, 1.5, "a", None, NAN, True])
def test_counts(x: Any) -> None:
    for name, least in (("restarts", 0), ("max_iterations", 1)):
        with pytest.raises(rf.StateError, match=f"{name} .* must be a whole number ≥ {least}"):
            ik(**{name: x})


WRONG: dict[str, tuple[str, Callable[[], Any]]] = {
    "a far target": ("position must be within 1e\\+12 m", lambda: ik({TIP: [1e300, 0, 0]})),
    "a target of NaN": (r"position\[0\] is nan", lambda: ik({TIP: [NAN, 0, 0]})),
    "a far point": ("point must be within", lambda: ik(M.Target(TIP, Q, point=[1e200, 0, 0]))),
    "many points": (r"point must be \(3,\)", lambda: ik(M.Target(TIP, Q, point=np.zeros((2, 3))))),
    "angles": (r"rotation must be \(\.\.\., 3, 3\).*got shape \(3,\)", lambda: ik(M.Target(TIP, rotation=[1, 0, 0]))),
    "no unit quaternion": (r"or one unit quaternion.*got shape \(4,\)", lambda: ik(M.Target(TIP, rotation=[1, 1, 0, 0]))),
    "a zero rotation": ("rotation must be", lambda: ik(M.Target(TIP, rotation=np.zeros((3, 3))))),
    "a huge rotation": ("rotation must be", lambda: ik(M.Target(TIP, rotation=1e200 * np.eye(3)))),
    "a rotation of NaN": ("rotation must be", lambda: ik(M.Target(TIP, rotation=NAN * np.eye(3)))),
    "a complex rotation": ("real numbers", lambda: ik(M.Target(TIP, rotation=1j * np.eye(3)))),
    "no such frame": ("no link or frame 'nosuch'", lambda: ik({"nosuch": Q})),
    "a list as a frame": ("give one link or frame by its name", lambda: ik(M.Target(["a"], Q))),
    "no targets": ("targets must be tasks of rf.motion or {link: position}; got 5", lambda: ik(5)),
    "a function as targets": ("targets must be", lambda: velocities(tasks=ik)),
    "joints": ("joints must be names, as a list of texts; got 5", lambda: ik(joints=5)),
    "joints of a posture": ("joints must be names", lambda: ik([M.KeepPosture(Q, joints=5)])),
    "a far guess": ("guess must be within", lambda: rf.ik(ARM, {TIP: Q}, [1e200, 0, 0])),
    "a far posture": ("q must be within", lambda: ik([M.KeepPosture([1e200, 0, 0])])),
    "a far state": ("q must be within", lambda: velocities(q=[1e200, 0, 0])),
    "strict": ("strict must be True or False; got 'no'", lambda: ik(strict="no")),
    "many restarts": ("restarts .* must be at most 100000", lambda: ik(restarts=10**9)),
    "limits the wrong way": ("lower ≤ upper", lambda: ik(limits=[[1, -1]] * 3)),
    "axes": ("axes must name some of 'xyz'; got 5", lambda: ik(M.CenterOfMass([0, 0, 0], axes=5))),
    "gain": ("gain 2 must be at most 1", lambda: velocities(gain=2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_of_inverse_kinematics(name: str) -> None:
    says, call = WRONG[name]
    with pytest.raises(rf.RamifyError, match=says):
        call()


def test_a_quaternion_of_no_length() -> None:
    stewart = rf.load("stewart_platform")
    with pytest.raises(rf.StateError, match="has length 0; it must be 1"):
        rf.ik(stewart, {"platform": [0, 0, 0.6]}, np.zeros(stewart.nq))


def test_empty_batches_of_inverse_kinematics() -> None:
    for targets, guess in (
        ({TIP: np.zeros((0, 3))}, Q),
        (M.Target(TIP, rotation=np.zeros((0, 3, 3))), Q),
        ({TIP: GOAL.position}, np.zeros((0, 3))),
    ):
        found = rf.ik(ARM, targets, guess)
        assert found.q.shape == (0, 3)
        assert found.converged.shape == (0,)
        assert found.position_error.shape == (0, 1)
        assert rf.differential_ik(ARM, guess, targets, 0.01).shape == (0, 3)


# ---- environments ----

ENV: dict[str, Any] = {"reward": lambda before, after: 0.0, "scale": 1.0}
WRONG_ENV: dict[str, tuple[str, dict[str, Any]]] = {
    "count": ("num_envs 1.5 must be a whole number ≥ 1", {"num_envs": 1.5}),
    "substeps": ("substeps 0 must be a whole number", {"substeps": 0}),
    "dt": ("dt nan must be finite and positive", {"dt": NAN}),
    "scale": ("scale must be a finite number or 3 of them", {"scale": [1.0, 2.0]}),
    "complex scale": ("scale must be an array of real numbers", {"scale": 1j}),
    "kp": ("kp must be an array of real numbers", {"kp": "a"}),
    "negative kp": ("kp must be finite and ≥ 0", {"kp": -1.0}),
    "reward": ("reward must be a function; got 5", {"reward": 5}),
    "reward of objects": ("reward must be an array of real", {"reward": lambda a, b: [None, 1]}),
    "start": (r"start must give \(q, v\)", {"start": lambda rng, n: np.zeros((n, 3))}),
    "observation": (r"observation gave \(3,\)", {"observation": lambda s: np.zeros(3)}),
    "parameters": (r"parameters must be \{name: \(low, high\)\}", {"parameters": [1]}),
    "range": (r"low of 'link1.mass' exceeds high", {"parameters": {"link1.mass": (2.0, 1.0)}}),
    "ends": ("two finite ends", {"parameters": {"link1.mass": (NAN, 1.0)}}),
    "size": (r"size must be \(width, height\)", {"size": 5}),
    "render_mode": ("render_mode must be 'rgb_array'", {"render_mode": "human"}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_ENV)
def test_wrong_options_of_environments(name: str) -> None:
    says, options = WRONG_ENV[name]
    with pytest.raises(rf.RamifyError, match=says):
        RobotVectorEnv(ARM, **{"num_envs": 2, **ENV, **options}).step(np.zeros((2, 3)))


def test_what_environments_are_asked_for() -> None:
    env = RobotVectorEnv(ARM, 2, **ENV)
    one = RobotEnv(RobotVectorEnv(ARM, 1, **ENV))
    for asked in (env, one):
        with pytest.raises(rf.StateError, match="reset takes no options; got a mapping"):
            asked.reset(options={"q": [0, 0, 0]})
    for seed in (-1, 1.5, "a"):
        with pytest.raises(rf.StateError, match="seed must be a whole number ≥ 0"):
            env.reset(seed=seed)
    for says, bad in (
        ("masked entries", np.ma.masked_array(np.zeros((2, 3)), np.ones((2, 3)))),
        ("real numbers", np.zeros((2, 3), complex)),
        ("real numbers", np.full((2, 3), None)),
        ("shape", np.zeros((3, 2))),
        ("shape", np.zeros((0, 3))),
        ("finite", np.full((2, 3), NAN)),
    ):
        with pytest.raises(rf.StateError, match=says):
            env.step(bad)
        with pytest.raises(rf.StateError, match=says):
            one.step(bad[0] if len(bad) else bad)


# ---- texts and functions of other libraries ----


@pytest.mark.parametrize("lengths", [(3, 3, 4), (4, 3, 3), (2, 3, 3), (3, 3), (3, 3, 3, 3), ()])
def test_texts_take_as_many_scalars_as_the_robot_has(lengths: tuple[int, ...]) -> None:
    text = ARM.kernel("forward_dynamics").text
    given = ", ".join(map(str, lengths)) or "none"
    with pytest.raises(rf.StateError, match=f"q 3, v 3, tau 3; it was given {given}$"):
        text(*([0.0] * n for n in lengths))
    with pytest.raises(rf.StateError, match="no list, 3, 3"):
        text(0.0, Q, Q)


NO_MATRIX: dict[str, tuple[str, Any]] = {
    "complex": ("real numbers", Q * 1j),
    "objects": ("real numbers", np.array([None] * 3)),
    "masked": ("masked entries", np.ma.masked_array(Q, [0, 1, 0])),
    "a text": ("real numbers", "abc"),
    "nothing": ("real numbers", None),
    "short": (r"q has shape \(2,\)", Q[:2]),
    "rows": (r"q has shape \(5, 3\); needed: \(3, [14]\), one state in each column", np.zeros((5, 3))),
    "an empty batch of rows": (r"q has shape \(0, 3\)", np.zeros((0, 3))),
    "an empty batch": (r"q has shape \(3, 0\), which is empty", np.zeros((3, 0))),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_MATRIX)
@pytest.mark.parametrize("horizon", [None, 4])
def test_casadi_gets_no_arrays_that_it_would_misread(name: str, horizon: int | None) -> None:
    says, x = NO_MATRIX[name]
    f = ARM.casadi("bias", **({} if horizon is None else {"horizon": horizon}))
    with pytest.raises(rf.StateError, match=says):
        f(x, Q)
    with pytest.raises(rf.StateError, match=says):
        f(q=x, v=Q)


def test_casadi_functions_still_take_what_casadi_takes() -> None:
    f, own = ARM.casadi("bias"), ARM.bias(Q, Q)
    assert isinstance(f, casadi.Function)
    np.testing.assert_allclose(f(Q.tolist(), casadi.DM(Q)).full()[:, 0], own)
    np.testing.assert_allclose(f(Q[:, None], Q[None]).full()[:, 0], own)
    np.testing.assert_allclose(f(q=Q, v=Q)[f.name_out(0)].full()[:, 0], own)
    assert f(np.tile(Q, (4, 1)).T, Q).shape == (3, 4)
    assert f(casadi.SX.sym("q", 3), casadi.SX.sym("v", 3)).shape == (3, 1)
    with pytest.raises(rf.StateError, match=re.escape("bias takes 2 matrices (q, v)")):
        f(Q)


# ---- what messages name ----


def test_a_massless_leaf_is_named() -> None:
    robot = rf.Builder("arm").link("a", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    model = robot.link("leaf", "a", at=(0.5, 0, 0)).model()
    with pytest.raises(rf.SimulationError, match="'leaf' of 'arm' moves no mass"):
        rf.simulate(model, 0.1)


def test_angles_that_stay_open_are_no_lengths() -> None:
    arm = rf.Builder("arm").link("a", axis=(0, 0, 1), mass=1.0, inertia=(1, 1, 1))
    turned = Frame(rotation_about((1, 0, 0), 0.5))
    model = arm.loop("weld", "fixed", ("a", (0, 0, 0)), (None, turned)).model()
    with pytest.raises(rf.LoopError, match=r"weld\.turn_x misses by 28\.6 degrees"):
        model.assemble()


def test_a_lost_force_names_where_to_drive() -> None:
    def push(t: float, q: Any, v: Any) -> Any:
        return [0.0, 1.0]

    cart = rf.Builder("cart").link("cart", joint="prismatic", mass=1.0)
    model = cart.link("pole", "cart", mass=1.0, com=(0, 0, 1), actuated=False).model()
    with pytest.raises(rf.RamifyError, match=r"rf\.control\.Function\(f, actuated=…\)"):
        rf.simulate(model, 0.1, control=push)


def test_frames_of_one_name_in_c_are_refused(tmp_path: Path) -> None:
    """Otherwise the functions of one of them would be missing without a word."""
    body = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": (1, 1, 1)}
    robot = rf.Builder("r").link("a b", **body).link("a_b", "a b", at=(1, 0, 0), **body)
    with pytest.raises(rf.RamifyError, match="'a_b' and 'a b' have one name in C, pose_a_b"):
        rf.to_c(robot.model(), tmp_path, frames=["a b", "a_b"])


# ---- what is no model, no flag, no count ----

ELSEWHERE: dict[str, tuple[str, Callable[[], Any]]] = {
    "simulate": ("give a model.*got 'arm'", lambda: rf.simulate("arm", 1.0)),
    "rollout": ("give a model", lambda: rf.rollout(None, Q, Q, steps=1, dt=0.1)),
    "linearize": ("give a model", lambda: rf.linearize("arm", Q, Q, Q)),
    "parameters of": ("give a model", lambda: rf.parameters("arm")),
    "ik": ("give a model", lambda: rf.ik("arm", {})),
    "differential_ik": ("give a model", lambda: rf.differential_ik("arm", Q, {}, 0.1)),
    "to_fmu": ("give a model", lambda: rf.to_fmu("arm", "arm.fmu")),
    "to_c": ("give a model", lambda: rf.to_c("arm", "arm")),
    "with_gravity": ("give a model", lambda: rf.with_gravity("arm", [0, 0, 0])),
    "with_locked": ("give a model", lambda: rf.with_locked("arm", "joint1")),
    "passive": ("passive must be True or False; got 'no'", lambda: rf.simulate(ARM, 0.1, passive="no")),
    "stops": ("stops must be True or False", lambda: rf.rollout(ARM, Q, Q, steps=1, dt=0.1, stops=1.0)),
    "steps": ("steps .* must be at most", lambda: rf.rollout(ARM, Q, Q, steps=2**70, dt=0.1)),
    "seed": ("seed -1 must be a whole number ≥ 0", lambda: ARM.random(-1)),
    "base": ("base .* is not known", lambda: rf.load("quadruped", base=Q)),
    "near": ("near: a must be a finite number", lambda: rf.Builder("r").near(a=NAN)),
    "near an orientation": ("near: the orientation a must be a unit quaternion", lambda: rf.Builder("r").near(a=[1, 2, 3])),
    "tier": ("tier must be 'unrolled'.* got ndarray", lambda: ARM.kernel("bias", Q)),
    "kernel": ("there is no algorithm", lambda: ARM.kernel(Q)),
    "dtype": ("dtype must be 'float64'", lambda: ARM.kernel("bias", dtype=Q)),
    "of": ("of must be 'q' or 'v'", lambda: ARM.joint_slice("joint1", of=Q)),
    "on_failure": ("on_failure must be 'warn'", lambda: rf.rollout(ARM, Q, Q, steps=1, dt=0.1, on_failure=Q)),
    "method": ("is not a fixed-step scheme", lambda: rf.rollout(ARM, Q, Q, steps=1, dt=0.1, method=Q)),
    "every": ("every=3 is more than steps=2", lambda: rf.rollout(ARM, Q, Q, steps=2, dt=0.1, every=3)),
    "level": ("level must be 'joint' or", lambda: ARM.udu(Q, level=Q)),
    "how": ("how must be 'compiled' or", lambda: ARM.op_count("bias", how=Q)),
    "convention": ("convention must be", lambda: rf.from_dh([(0, 0, 0, 0)], convention=Q)),
    "pose of several": ("give one link or frame by its name, as a text; got a list", lambda: ARM.pose(Q, ["link1"])),
    "jacobian of several": ("give one link or frame by its name", lambda: ARM.jacobian(Q, ["link1"])),
    "derivatives of a pose": ("of the pose of a link is its Jacobian", lambda: ARM.derivatives("pose", Q)),
    "derivatives of what is none": (
        "there are inverse_dynamics, forward_dynamics, inverse_dynamics_derivatives",
        lambda: ARM.derivatives("zzz", Q),
    ),
    "derivatives of several": ("there is no algorithm", lambda: ARM.derivatives(Q, Q)),
    "near a text": ("near: a must be an array of real", lambda: rf.Builder("r").near(a="x")),
    "contact points": ("points must be {link", lambda: rf.with_contact_points(ARM, 5)),
    "scenario": ("name of a scenario or the path of its file; got 5", lambda: rf.scenario(5)),
    "metrics": ("metrics must be names", lambda: rf.study(scenario="kuka_free_fall", vary={"t_end": [0.1]}, metrics=5)),
    "algorithms of C": ("algorithms must be names", lambda: rf.to_c(ARM, "c", algorithms=5)),
    "frames of C": ("frames must be names", lambda: rf.to_c(ARM, "c", frames=[5])),
    "derivatives of C": ("derivatives must be True or", lambda: rf.to_c(ARM, "c", derivatives="x")),
    "q0 of a unit": ("one row each", lambda: rf.to_fmu(ARM, "arm.fmu", q0=np.zeros((2, 3)))),
    "derivatives": ("derivatives must be True or False", lambda: rf.to_fmu(ARM, "a.fmu", derivatives=Q)),
    "frame": ("a frame has a rotation", lambda: rf.Frame(np.eye(4))),
    "platforms": ("platforms must be names", lambda: rf.to_fmu(ARM, "arm.fmu", platforms=5)),
    "version": ("version must be '2.0' or '3.0'; got", lambda: rf.to_fmu(ARM, "arm.fmu", version=Q)),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_does_not_fit_elsewhere(name: str) -> None:
    says, call = ELSEWHERE[name]
    with pytest.raises(rf.RamifyError, match=says):
        call()


@pytest.mark.parametrize("what", ["independent", "rates", "accelerations"])
def test_arrays_in_the_place_of_values_by_name_are_refused(what: str) -> None:
    """They ended in NumPy's "truth value of an array"."""
    with pytest.raises(rf.StateError, match=f"{what} must be values by name"):
        rf.load("four_bar").assemble(**{what: np.zeros(3)})


def test_an_order_of_joints_is_names() -> None:
    arm = rf.load("planar_3r")
    for wrong in (True, "universe", 3):
        with pytest.raises(rf.StateError, match="order must be names"):
            arm.to_pinocchio(arm.neutral(), order=wrong)  # type: ignore[arg-type]
