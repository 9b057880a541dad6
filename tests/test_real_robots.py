"""Real robots, read from their URDF files, against Pinocchio and MuJoCo, which read the same files.

Pinocchio's velocities of a floating base stand in the body's frame, ours (and MuJoCo's) stand along
the world's axes; a matrix X and an acceleration c take ours to theirs: v' = X v, a' = X a + c, and
forces go back with X'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from lxml import etree

import ramify as rf
from ramify.core.arrays import Array
from ramify.files.urdf_writer import to_urdf
from ramify.model.frame import from_quaternion

# Tiago's antennas have tensors that no matter has, and Gazebo moves the PR2 otherwise.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(negative principal moment|of <gazebo> is left out)"
)

ROBOTS = {
    # arms and hands
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "so101": "so_arm_description/urdf/so101.urdf",
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    # quadrupeds
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "b1_z1": "b1_description/urdf/b1-z1.urdf",
    # bipeds, humanoids
    "bolt": "bolt_description/robots/bolt.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
    "romeo": "romeo_description/urdf/romeo_small.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "simple_humanoid": "simple_humanoid_description/urdf/simple_humanoid.urdf",
    # robots on wheels
    "tiago": "tiago_description/robots/tiago_no_hand.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
    "centauro": "centauro_description/urdf/centauro.urdf",
}
FEWEST = 12
BASES = ("fixed", "free")
STATES = 3


@cache
def folder() -> Path:
    """The robots of the package example-robot-data."""
    try:
        return Path(
            str(
                distribution("example-robot-data").locate_file(
                    "cmeel.prefix/share/example-robot-data/robots"
                )
            )
        )
    except PackageNotFoundError:
        return Path("/nowhere")


def found() -> list[str]:
    return [name for name, path in ROBOTS.items() if (folder() / path).is_file()]


def test_there_are_enough_robots() -> None:
    print(f"{len(found())} real robots: {', '.join(found())}")
    assert len(found()) >= FEWEST, (
        f"only {found()}; install example-robot-data (dependency group test)"
    )
    assert found() == list(ROBOTS)


@dataclass
class Pair:
    """A robot here and in Pinocchio."""

    ours: rf.Model
    peer: Any
    data: Any


@cache
def pair(name: str, base: str) -> Pair:
    path = folder() / ROBOTS[name]
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    peer = pin.buildModelFromUrdf(str(path), *root)
    return Pair(
        rf.load(path, base=base).tree, peer, peer.createData()
    )  # Pinocchio's reader lets mimic joints move by themselves


@dataclass
class State:
    """A state in both worlds, and the maps between them."""

    q: Array
    v: Array
    a: Array
    peer_q: Array
    X: Array
    c: Array

    @property
    def peer_v(self) -> Array:
        return self.X @ self.v


def states(robot: Pair) -> Iterator[State]:
    for seed in range(STATES):
        q, v = robot.ours.random(seed)
        a = 5.0 * np.random.default_rng(seed).normal(size=robot.ours.nv)
        yield translate(robot, q, v, a)


def translate(robot: Pair, q: Array, v: Array, a: Array) -> State:
    ours, peer = robot.ours, robot.peer
    there, X, c = pin.neutral(peer), np.zeros((peer.nv, ours.nv)), np.zeros(peer.nv)
    for index in range(1, peer.njoints):
        joint, name = peer.joints[index], peer.names[index]
        at, rate = ours.joint_slice(name, "q"), ours.joint_slice(name)
        place, rates = (
            slice(joint.idx_q, joint.idx_q + joint.nq),
            slice(joint.idx_v, joint.idx_v + joint.nv),
        )
        mine = q[at]
        if joint.nq == 7:
            R = from_quaternion(*mine[3:])
            there[place] = [*mine[:3], *mine[4:], mine[3]]
            X[rates, rate] = np.block([[R.T, np.zeros((3, 3))], [np.zeros((3, 3)), np.eye(3)]])
            c[rates][:3] = -np.cross(v[rate][3:], R.T @ v[rate][:3])
        else:
            there[place] = (np.cos(mine[0]), np.sin(mine[0])) if joint.nq == 2 else mine
            X[rates, rate] = 1.0
    return State(q, v, a, there, X, c)


def off(ours: Any, peer: Any) -> float:
    """The largest deviation over the largest number."""
    ours, peer = np.asarray(ours), np.asarray(peer)
    assert ours.shape == peer.shape
    return float(np.abs(ours - peer).max() / max(np.abs(peer).max(), 1e-12))


def errors(robot: Pair, state: State, tier: Any) -> dict[str, float]:
    """Relative deviation of each quantity from Pinocchio's."""
    m, peer, data, X, q, v = robot.ours, robot.peer, robot.data, state.X, state.q, state.v
    pq, pv, pa = state.peer_q, state.peer_v, X @ state.a + state.c
    tau = X.T @ pin.rnea(peer, data, pq, pv, pa)
    out = {
        "inverse dynamics": off(m.kernel("inverse_dynamics", tier)(q, v, state.a), tau),
        "bias": off(m.kernel("bias", tier)(q, v), X.T @ pin.rnea(peer, data, pq, pv, state.c)),
    }
    M = np.triu(pin.crba(peer, data, pq))
    M = X.T @ (M + np.triu(M, 1).T) @ X
    out["mass matrix"] = off(m.kernel("mass_matrix", tier)(q), M)
    there = np.linalg.solve(X, pin.aba(peer, data, pq, pv, np.linalg.solve(X.T, tau)) - state.c)
    out["forward dynamics"] = off(m.kernel("forward_dynamics", tier)(q, v, tau), there)
    kinetic, potential = m.kernel("energy", tier)(q, v)
    out["kinetic energy"] = off(kinetic, pin.computeKineticEnergy(peer, data, pq, pv))
    out["potential energy"] = off(potential, pin.computePotentialEnergy(peer, data, pq))
    out["centre of mass"] = off(
        m.kernel("center_of_mass", tier)(q), pin.centerOfMass(peer, data, pq)
    )
    linear, angular = m.kernel("momentum", tier)(q, v)
    whole = pin.computeCentroidalMomentum(peer, data, pq, pv)
    out["linear momentum"], out["angular momentum"] = (
        off(linear, whole.linear),
        off(angular, whole.angular),
    )
    return out


def jacobian_error(robot: Pair, state: State) -> float:
    """Worst deviation over the frames of all links, merged ones too."""
    pin.computeJointJacobians(robot.peer, robot.data, state.peer_q)
    worst = 0.0
    for link in robot.ours.attached:
        frame = robot.peer.getFrameId(link, pin.FrameType.BODY)
        J = pin.getFrameJacobian(robot.peer, robot.data, frame, pin.LOCAL_WORLD_ALIGNED) @ state.X
        worst = max(worst, off(robot.ours.jacobian(state.q, link), np.roll(J, 3, axis=0)))
    return worst


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", ROBOTS)
def test_agrees_with_pinocchio(name: str, base: str) -> None:
    robot = pair(name, base)
    assert (robot.ours.nv, robot.ours.mass) == (
        robot.peer.nv,
        pytest.approx(pin.computeTotalMass(robot.peer), rel=1e-12),
    )
    worst: dict[str, float] = {}
    for state in states(robot):
        for what, error in errors(robot, state, "rolled").items():
            worst[what] = max(worst.get(what, 0.0), error)
    worst["Jacobians"] = jacobian_error(robot, next(states(robot)))
    print(
        f"{name}, {base} base, {robot.ours.nv} degrees of freedom:",
        ", ".join(f"{k} {e:.0e}" for k, e in worst.items()),
    )
    assert {what: error for what, error in worst.items() if not error < 1e-9} == {}


@pytest.mark.parametrize(("name", "base"), [("ur5", "fixed"), ("solo12", "free")])
def test_straight_line_code_agrees_with_pinocchio(name: str, base: str) -> None:
    robot = pair(name, base)
    worst = errors(robot, next(states(robot)), "unrolled")
    assert {what: error for what, error in worst.items() if not error < 1e-9} == {}


# ---- MuJoCo ----

IN_MUJOCO = (
    "panda",
    "kinova",
    "so101",
    "solo12",
    "a1",
    "go2",
    "talos",
    "g1",
    "simple_humanoid",
    "baxter",
    "centauro",
)
"""Robots that MuJoCo takes once their drawings are gone. It refuses inertias that no matter has and
a link "world" that moves, and drops the inertia of massless links (the feet of bolt).
"""


def without_drawings(path: Path, base: str) -> str:
    """The file's text without visual and collision geometry; with a floating joint below its root
    for a free base.
    """
    robot = etree.parse(str(path), etree.XMLParser(remove_comments=True)).getroot()
    for element in [*robot.iter("visual", "collision", "gazebo", "transmission")]:
        element.getparent().remove(element)
    if base == "free":
        children = {child.get("link") for child in robot.iterfind("joint/child")}
        (root,) = (
            link.get("name") for link in robot.iterfind("link") if link.get("name") not in children
        )
        etree.SubElement(robot, "link", name="the_world")
        joint = etree.SubElement(robot, "joint", name="root_joint", type="floating")
        etree.SubElement(joint, "parent", link="the_world")
        etree.SubElement(joint, "child", link=root)
    return etree.tostring(robot, encoding="unicode")


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", IN_MUJOCO)
def test_agrees_with_mujoco(name: str, base: str) -> None:
    path = folder() / ROBOTS[name]
    ours = rf.load(path, base=base).tree
    peer = mujoco.MjModel.from_xml_string(without_drawings(path, base))
    data = mujoco.MjData(peer)
    assert peer.nv == ours.nv
    for seed in range(STATES):
        q, v = ours.random(seed)
        order = np.empty(ours.nv, dtype=int)
        for joint in ours.joints:
            index = peer.joint(joint.name).id
            start, first = peer.jnt_qposadr[index], peer.jnt_dofadr[index]
            order[ours.joint_slice(joint.name)] = range(first, first + joint.dof)
            data.qpos[start : start + joint.nq] = q[ours.joint_slice(joint.name, "q")]
        data.qvel[order] = v
        mujoco.mj_forward(peer, data)
        M = np.zeros((peer.nv, peer.nv))
        for row, unit in zip(M, np.eye(peer.nv), strict=True):
            mujoco.mj_mulM(peer, data, row, unit)
        assert off(ours.kernel("mass_matrix", "rolled")(q), M[np.ix_(order, order)]) < 1e-9
        assert off(ours.kernel("bias", "rolled")(q, v), data.qfrc_bias[order]) < 1e-9


@pytest.mark.parametrize(
    ("name", "base"), [("panda", "fixed"), ("solo12", "free"), ("talos", "fixed")]
)
def test_pinocchio_reads_what_is_written(name: str, base: str) -> None:
    ours = pair(name, base).ours
    peer = pin.buildModelFromXML(to_urdf(ours))
    robot = Pair(ours, peer, peer.createData())
    worst = errors(robot, next(states(robot)), "rolled")
    assert {what: error for what, error in worst.items() if not error < 1e-9} == {}
