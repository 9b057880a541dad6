"""Robots of other projects, with limits, friction and drives, through everything that users do with
a robot: rollouts, environments, derivatives, C code, reports, FMUs.

Accelerations and inverse dynamics are compared with Pinocchio's, derivatives with differences of
these, C code with the same, and what a report embeds with the arrays of the run. A robot is loaded
once.
"""

from __future__ import annotations

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from comparing import close
from packages import package
from peers import pinocchio_of
from test_c_export import compiler
from test_fmi import difference
from test_report import data_of, unpacked

import ramify as rf
from ramify import envs
from ramify.core.arrays import Array
from ramify.model.driven import driven

URDF = (
    "ur_description/urdf/ur5_joint_limited_robot.urdf",
    "ur_description/urdf/ur3_gripper.urdf",
    "panda_description/urdf/panda.urdf",
    "kinova_description/robots/kinova.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "z1_description/urdf/z1.urdf",
    "so_arm_description/urdf/so101.urdf",
    "finger_edu_description/robots/finger_edu.urdf",
    "asr_twodof_description/urdf/TwoDofs.urdf",
    "borinot_description/urdf/borinot_flying_arm_2.urdf",
    "talos_data/robots/talos_left_arm.urdf",
    "bolt_description/robots/bolt.urdf",
    "quadruped_description/urdf/quadruped.urdf",
    "solo_description/robots/solo12.urdf",
    "a1_description/urdf/a1.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
)
GYMNASIUM = ("hopper", "walker2d", "half_cheetah", "swimmer", "reacher", "ant", "pusher")
ROBOSUITE = ("panda", "sawyer", "jaco")
ROBOTS: dict[str, tuple[str, str]] = {
    **{Path(file).stem: ("example-robot-data", file) for file in URDF},
    **{f"{x}.xml": ("gymnasium", f"gymnasium/envs/mujoco/assets/{x}.xml") for x in GYMNASIUM},
    **{
        f"robosuite_{x}.xml": ("robosuite", f"robosuite/models/assets/robots/{x}/robot.xml")
        for x in ROBOSUITE
    },
}
"""Package and file by name."""
STEP = 1e-4  # s: explicit steps of light wrists with damping

pytestmark = pytest.mark.filterwarnings(
    "ignore:(?s).*(left out, which changes the motion|check the file|contact):UserWarning",
    "ignore:.*(dry friction|too long for):RuntimeWarning",
)
each = pytest.mark.parametrize("name", ROBOTS)


class World(NamedTuple):
    """A robot, two states within its limits of which the second asks its drives for more than they
    have, and the forces that act.
    """

    model: rf.Model
    q: Array
    v: Array
    asked: Array
    net: Array
    a: Array
    """Accelerations by Pinocchio under the net forces."""


@cache
def world(name: str) -> World:
    where, file = ROBOTS[name]
    model = rf.load(package(where) / file).tree
    rng = np.random.default_rng(1)
    q, v = (np.array(x) for x in zip(*(model.random(seed) for seed in (1, 2)), strict=True))
    asked = 5.0 * rng.normal(size=(2, model.nv))
    limited = np.isfinite(model.effort)
    asked[1, limited] = 3.0 * model.effort[limited]
    net = np.clip(asked, -model.effort, model.effort) + model.passive_forces(q, v).total
    return World(model, q, v, asked, net, accelerations(model, q, v, net))


def accelerations(model: rf.Model, q: Array, v: Array, tau: Array) -> Array:
    """(..., nv): Pinocchio's, for velocities as ours are."""
    peer = pinocchio_of(model)
    peer.armature = np.array(model.armature)
    data = peer.createData()
    rows = zip(q.reshape(-1, model.nq), v.reshape(-1, model.nv), tau.reshape(-1, model.nv), strict=True)  # fmt: skip
    return np.array([_acceleration(peer, data, model, *row) for row in rows]).reshape(v.shape)


def _acceleration(peer: Any, data: Any, model: rf.Model, q: Array, v: Array, tau: Array) -> Array:
    if model.nq == model.nv:
        return np.array(pin.aba(peer, data, q, v, tau))
    # a free base first: Pinocchio's q has w last, its velocities of the base stand in the body
    there = np.concatenate([q[:3], q[4:7], q[3:4], q[7:]])
    R = pin.Quaternion(there[3:7]).toRotationMatrix()
    X = np.eye(model.nv)
    X[:3, :3] = R.T
    a = pin.aba(peer, data, there, X @ v, X @ tau)
    a[:3] += np.cross(v[3:6], R.T @ v[:3])
    return np.array(X.T @ a)


def test_these_robots_have_limits_drives_damping_and_friction() -> None:
    have = dict.fromkeys(("limits", "efforts", "damping", "friction", "armature"), 0)
    for name in ROBOTS:
        m = world(name).model
        parts = m.passive_forces(world(name).q, world(name).v).parts
        have["limits"] += any(np.isfinite(joint.limits).any() for joint in m.joints)
        have["efforts"] += bool(np.isfinite(m.effort).any()) or len(m.actuators) > 0
        have["armature"] += bool(m.armature.any())
        for part in ("damping", "friction"):
            have[part] += part in parts and bool(np.abs(parts[part]).max() > 0.0)
    least = {"limits": 24, "efforts": 24, "damping": 10, "friction": 3, "armature": 6}
    assert all(have[key] >= count for key, count in least.items()), have


@each
def test_a_step_of_a_rollout(name: str) -> None:
    """v + h a, with forces clipped at the efforts, damping, friction and stops."""
    w = world(name)
    run = rf.rollout(
        w.model, w.q, w.v, steps=3, dt=STEP, tau=w.asked[:, None], every=1,
        method="semi_implicit_euler",
    )  # fmt: skip
    size = 1.0 + np.abs(w.a).max()
    close(run.v[:, 0], w.v + STEP * w.a, atol=1e-11 * size, of="v")
    close(run.q[:, 0], w.model.integrate(w.q, run.v[:, 0], STEP), atol=1e-6 * size, of="q")
    again = rf.rollout(
        w.model, w.q[1], w.v[1], steps=3, dt=STEP, tau=w.asked[1], method="semi_implicit_euler"
    )
    close(again.v, run.v[1, -1], 1e-12, 1e-12, "v of the second state alone")


@pytest.mark.parametrize("name", [name for name in ROBOTS if name.endswith(".xml")])
def test_a_step_under_the_actuators_of_the_file(name: str) -> None:
    w = world(name)
    m = w.model
    command = dict.fromkeys((actuator.name for actuator in m.actuators), 0.4)
    run = rf.rollout(
        m, w.q, w.v, steps=1, dt=STEP, control=rf.control.Commands(command),
        method="semi_implicit_euler",
    )  # fmt: skip
    acting = m.actuator_forces(w.q, w.v, np.full(len(command), 0.4)).tau
    assert np.abs(acting).max() > 0.0
    a = accelerations(m, w.q, w.v, acting + m.passive_forces(w.q, w.v).total)
    close(run.v, w.v + STEP * a, atol=1e-11 * (1.0 + np.abs(a).max()), of="v")


@each
def test_an_environment(name: str) -> None:
    """Actions beyond ±1 are cut, scaled, and drive the driven joints alone."""
    w = world(name)
    joints = list(driven(w.model).v)
    action = np.random.default_rng(0).uniform(-1.5, 1.5, (2, len(joints)))
    env = envs.RobotVectorEnv(
        w.model, 2, reward=lambda before, after: after.v.sum(axis=1), scale=2.0, dt=STEP,
        substeps=1, start=lambda rng, n: (w.q, w.v), method="semi_implicit_euler",
    )  # fmt: skip
    observation, reward, *_ = env.step(action)
    tau = np.zeros((2, w.model.nv))
    tau[:, joints] = 2.0 * np.clip(action, -1.0, 1.0)
    net = np.clip(tau, -w.model.effort, w.model.effort) + w.model.passive_forces(w.q, w.v).total
    v = w.v + STEP * accelerations(w.model, w.q, w.v, net)
    close(observation[:, w.model.nq :], v, 1e-9, 1e-9 * (1.0 + np.abs(v).max()), "v")
    close(reward, observation[:, w.model.nq :].sum(axis=1), 1e-12, 1e-12, "reward")


@each
def test_derivatives(name: str) -> None:
    """The linear machine along a direction against differences of Pinocchio's accelerations with
    our passive forces.
    """
    w = world(name)
    m, nv = w.model, w.model.nv
    A, B = rf.linearize(m, w.q, w.v, np.zeros(nv))
    d = np.random.default_rng(3).normal(size=(2, nv))

    def rate(x: float) -> Array:
        q, v = m.integrate(w.q, d[0] * x, 1.0), w.v + x * d[1]
        return accelerations(m, q, v, m.passive_forces(q, v).total)

    h = 1e-6
    slope = (rate(h) - rate(-h)) / (2.0 * h)
    size = np.abs(slope).max() + np.abs(w.a).max()
    found = np.einsum("nij,j->ni", A[:, nv:], np.concatenate([d[0], d[1]]))
    close(found, slope, 1e-5, 3e-6 * size, "da")
    by_tau = accelerations(m, w.q, w.v, w.net + d[0]) - w.a
    close(np.einsum("nij,j->ni", B[:, nv:], d[0]), by_tau, 1e-7, 1e-7 * np.abs(by_tau).max(), "B")


@each
def test_c_code(name: str, tmp_path: Path) -> None:
    """Inverse dynamics and the acceleration of the machine, compiled by the system's compiler."""
    w = world(name)
    m = w.model
    _, source = rf.to_c(m, tmp_path, algorithms=["inverse_dynamics", "acceleration"])
    library = tmp_path / "robot.so"
    command = [compiler(), "-O0", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    code = ctypes.CDLL(str(library))

    def call(algorithm: str, *given: Array) -> Array:
        out = np.empty(m.nv)
        arrays = [np.ascontiguousarray(x, dtype=np.float64) for x in given]
        function = next(f for f in header if f.endswith(f"_{algorithm}"))
        getattr(code, function)(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, out)))
        return out

    words = source.read_text().replace("(", " ").split()
    header = {word for word in words if word.endswith(("_inverse_dynamics", "_acceleration"))}
    for q, v, asked, net, a in zip(w.q, w.v, w.asked, w.net, w.a, strict=True):
        size = 1.0 + np.abs(a).max()
        close(call("acceleration", q, v, asked), a, 1e-8, 1e-9 * size, "acceleration")
        force = call("inverse_dynamics", q, v, a)
        close(force, net, 1e-6, 1e-7 * (1.0 + np.abs(net).max()), "inverse dynamics")


@each
def test_a_report_embeds_the_numbers_of_its_run(name: str, tmp_path: Path) -> None:
    w = world(name)
    run = rf.rollout(
        w.model, w.q, w.v, steps=3, dt=STEP, tau=w.asked[:, None], every=1,
        method="semi_implicit_euler",
    ).result(1)  # fmt: skip
    limit = w.model.effort
    close(run.tau[:-1], np.clip(w.asked[1], -limit, limit), 1e-9, 1e-9, "tau")
    run.report(tmp_path / "run.html")
    data = data_of((tmp_path / "run.html").read_text(encoding="utf-8"))
    arrays = [unpacked(text, "<f4") for text in data["arrays"]]
    columns = {
        **{("Joint coordinates", x): run.q[:, k] for k, x in enumerate(run.columns["q"])},
        **{("Joint forces", x): run.tau[:, k] for k, x in enumerate(run.columns["tau"])},
    }
    seen = 0
    for plot in data["plots"]:
        for curve in plot["curves"]:
            wanted = columns.get((plot["title"], curve["name"]))
            if wanted is not None:
                scale = np.degrees(1.0) if plot["unit"] in ("deg", "°") else 1.0
                close(arrays[curve["y"]], scale * wanted, 1e-6, 1e-6, f"{plot['title']}, {curve['name']}")  # fmt: skip
                seen += 1
    assert seen >= min(2, w.model.nv)


@pytest.mark.parametrize("name", ["ur5_joint_limited_robot", "hopper.xml"])
def test_an_fmu(name: str, tmp_path: Path) -> None:
    m = world(name).model
    start = world(name).q[0]
    unit = rf.to_fmu(m, tmp_path / "robot.fmu", q0=start, derivatives=False)
    wanted = rf.simulate(m, 0.05, start)
    assert difference(unit, "CoSimulation", wanted, output_interval=0.01) < 1e-6
