"""Logs of robots that MuJoCo or Pinocchio moved: what the tests and the benchmark of identification
are given. Nothing here is computed by ramify but the names of joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from lxml import etree
from packages import package

Array = Any

ARMS = {
    "ur10": "ur_description/urdf/ur10_robot.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "iiwa": "iiwa_description/urdf/iiwa14.urdf",
}


def urdf_path(name: str) -> str:
    return str(package("example-robot-data") / ARMS.get(name, name))


def mujoco_of(path: str, lock: tuple[str, ...] = ()) -> mujoco.MjModel:
    """The rigid bodies of a URDF in MuJoCo, without meshes; joints to lock become fixed."""
    root = etree.parse(path).getroot()
    for kind in ("visual", "collision"):
        for element in root.findall(f".//{kind}"):
            element.getparent().remove(element)
    for joint in root.findall("joint"):
        if joint.get("name") in lock:
            joint.set("type", "fixed")
    for old in root.findall("mujoco"):
        root.remove(old)
    extra = etree.SubElement(root, "mujoco")
    etree.SubElement(extra, "compiler", discardvisual="true", fusestatic="true", strippath="true")
    model = mujoco.MjModel.from_xml_string(etree.tostring(root).decode())
    for field in (model.dof_damping, model.dof_frictionloss, model.dof_armature):
        field[:] = 0.0  # what drives have is added by ``friction``
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


@dataclass
class Drives:
    """Armature, viscous damping, Coulomb friction of each joint; Stribeck excess and speed."""

    armature: Array
    damping: Array
    coulomb: Array
    excess: Array = 0.0
    speed: Array = 1.0
    offset: Array = 0.0

    @classmethod
    def usual(cls, n: int) -> Drives:
        size = np.linspace(1.0, 0.15, n)
        return cls(0.8 * size, 1.5 * size, 4.0 * size)


def fourier(
    t: Array, centre: Array, sin: Array, cos: Array, base: float
) -> tuple[Array, Array, Array]:
    """q, v, a (T, n) of a Fourier series; sin, cos (n, harmonics) are amplitudes of the rates."""
    w = 2.0 * np.pi * base * np.arange(1, sin.shape[1] + 1)
    angle = np.outer(t, w)
    s, c = np.sin(angle), np.cos(angle)
    q = centre + s @ (sin / w).T - c @ (cos / w).T
    return q, c @ sin.T + s @ cos.T, -s @ (sin * w).T + c @ (cos * w).T


def random_motion(
    n: int, t: Array, seed: int, rate: float = 0.45, centre: Array = 0.0, base: float = 0.1
) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    sin, cos = rng.normal(size=(2, n, 5)) * rate
    return fourier(t, centre, sin, cos, base)


def rigid_torques(model: mujoco.MjModel, q: Array, v: Array, a: Array) -> Array:
    """Torques of MuJoCo's inverse dynamics, without friction."""
    data = mujoco.MjData(model)
    out = np.empty_like(v)
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[i], v[i], a[i]
        mujoco.mj_inverse(model, data)
        out[i] = data.qfrc_inverse
    return out


def friction(drives: Drives, v: Array, a: Array) -> Array:
    falling = drives.excess * np.exp(-((v / drives.speed) ** 2))
    return (
        drives.armature * a
        + drives.damping * v
        + (drives.coulomb + falling) * np.sign(v)
        + drives.offset
    )


def measured(
    t: Array, q: Array, tau: Array, seed: int, bits: int = 17, size: Array | None = None
) -> dict[str, Array]:
    """The log of a clean motion: torques with noise (of a standard deviation ``size``, by default
    1 % of each torque) and an encoder of some bits per turn.
    """
    rng = np.random.default_rng(1000 + seed)
    size = 0.01 * np.sqrt(np.mean(tau**2, axis=0)) if size is None else size
    step = 2.0 * np.pi / 2**bits
    zero = step * rng.uniform(0.0, 1.0, q.shape[1])  # where the encoder's steps lie
    coarse = np.round((q + zero) / step) * step - zero
    return {"t": t, "q": coarse, "tau": tau + size * rng.normal(size=tau.shape)}


@dataclass
class Arm:
    """A robot as its file has it, one with other masses and mass centres as a user would start
    from, MuJoCo's model of the first, and what its drives have.
    """

    true: Any
    nominal: Any
    peer: mujoco.MjModel
    drives: Drives

    @property
    def centre(self) -> Array:
        return 0.5 * (np.clip(self.true.lower, -3, 3) + np.clip(self.true.upper, -3, 3))

    def motion(self, t: Array, seed: int, rate: float = 0.45) -> tuple[Array, Array, Array]:
        return random_motion(self.true.nv, t, seed, rate, self.centre)

    def torques(self, q: Array, v: Array, a: Array, drives: Drives | None = None) -> Array:
        return rigid_torques(self.peer, q, v, a) + friction(drives or self.drives, v, a)

    def truth(self, unknowns: Any) -> Array:
        """The unknowns of the robot that moved."""
        out = np.zeros(unknowns.size)
        out[: unknowns.bodies] = self.true.dynamic_parameters[: unknowns.bodies]
        for kind in ("armature", "damping", "coulomb"):
            if kind in unknowns.kinds:
                out[unknowns.columns_of(kind)] = getattr(self.drives, kind)
        return out


def arm(name: str, folder: Any = None) -> Arm:
    """ "ur10", "panda" with closed fingers, or "kuka" (written as URDF into a folder)."""
    import ramify as rf

    lock: tuple[str, ...] = ()
    if name == "kuka":
        true = rf.load("kuka_kr5")
        path = f"{folder}/kuka.urdf"
        true.save(path)
        true = rf.load(path)
    else:
        path = urdf_path(name)
        true = rf.load(path)
    if name == "panda":
        lock = tuple(joint.name for joint in true.joints if "finger" in joint.name)
        true = rf.with_locked(true, list(lock))
    rng, changes = np.random.default_rng(5), {}
    for body in true.bodies:
        changes[f"{body.name}.mass"] = max(body.mass, 0.05) * rng.uniform(0.8, 1.25)
        changes[f"{body.name}.com"] = body.com + 0.01 * rng.normal(size=3)
    true = rf.with_inertial_parameters(
        true,
        np.concatenate([true.dynamic_parameters[: 10 * len(true.bodies)], np.zeros(3 * true.nv)]),
    )
    return Arm(
        true, rf.with_parameters(true, changes), mujoco_of(path, lock), Drives.usual(true.nv)
    )


def with_body(
    peer: mujoco.MjModel, body: int, mass: float, com: Array, inertia: Array
) -> mujoco.MjModel:
    """A copy of the model with a payload (in the body's frame) on a body."""
    from copy import copy

    other = copy(peer)
    R = np.empty(9)
    mujoco.mju_quat2Mat(R, peer.body_iquat[body])
    R = R.reshape(3, 3)
    old, centre = float(peer.body_mass[body]), np.array(peer.body_ipos[body])
    both = (old * centre + mass * com) / (old + mass)

    def about(m: float, r: Array) -> Array:
        return m * (r @ r * np.eye(3) - np.outer(r, r))

    tensor = R @ np.diag(peer.body_inertia[body]) @ R.T + about(old, centre - both)
    tensor = tensor + inertia + about(mass, com - both)
    moments, axes = np.linalg.eigh(tensor)
    axes[:, 0] *= np.sign(np.linalg.det(axes))
    turn = np.empty(4)
    mujoco.mju_mat2Quat(turn, axes.ravel())
    other.body_mass[body], other.body_ipos[body] = old + mass, both
    other.body_inertia[body], other.body_iquat[body] = moments, turn
    mujoco.mj_setConst(other, mujoco.MjData(other))
    return other


def walking_log(
    path: str, names: Any, t: Array, seed: int = 0
) -> tuple[Array, Array, dict[str, Array]]:
    """q (T, 7 + n), joint torques (T, n) and forces on feet (T, 6) of a quadruped that Pinocchio
    moves: the forces of its feet carry the base.
    """
    import pinocchio as pin

    peer = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer())
    data, rng, n = peer.createData(), np.random.default_rng(seed), len(names)
    order = [peer.joints[peer.getJointId(name)].idx_q for name in names]
    size = np.r_[np.full(3, 0.05), np.full(3, 0.25), np.full(n, 0.35)]
    S = np.zeros((len(t), 6 + n))
    S[:, 2] = 0.3
    for k in range(1, 9):
        for c in range(6 + n):
            phase = rng.uniform(0.0, 6.0)
            S[:, c] += 0.5 * size[c] * rng.normal() * np.sin(0.4 * np.pi * k * t + phase)
    q = np.zeros((len(t), peer.nq))
    q[:, :3], q[:, order] = S[:, :3], S[:, 6:]
    q[:, 3:7] = [pin.Quaternion(pin.exp3(x)).coeffs() for x in S[:, 3:6]]
    dt = t[1] - t[0]

    def central(k: int) -> Array:
        return np.array(
            [pin.difference(peer, q[i - k], q[i + k]) for i in range(4, len(q) - 4)]
        ) / (2 * k * dt)

    v = np.zeros((len(t), peer.nv))
    v[4:-4] = (45 * central(1) - 18 * central(2) * 1.0 + 3 * central(3)) / 30
    a = np.zeros_like(v)
    a[6:-6] = (v[4:-8] - 8 * v[5:-7] + 8 * v[7:-5] - v[8:-4]) / (12 * dt)
    feet = ("FL_LOWER_LEG", "FR_LOWER_LEG", "HL_LOWER_LEG", "HR_LOWER_LEG")
    tau, wrenches = np.zeros((len(t), n)), {foot: np.zeros((len(t), 6)) for foot in feet}
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for i in range(len(t)):
        whole = pin.rnea(peer, data, q[i], v[i], a[i])
        pin.computeJointJacobians(peer, data, q[i])
        pin.updateFramePlacements(peer, data)
        J = [pin.getFrameJacobian(peer, data, peer.getFrameId(foot), world)[:3] for foot in feet]
        force = np.linalg.lstsq(np.hstack([x[:, :6].T for x in J]), whole[:6], rcond=None)[
            0
        ].reshape(4, 3)
        rest = whole - sum(x.T @ f for x, f in zip(J, force, strict=True))
        tau[i] = rest[6:][[o - 7 for o in order]]
        for foot, f in zip(feet, force, strict=True):
            wrenches[foot][i, 3:] = f
    ours = np.column_stack([q[:, :3], q[:, 6], q[:, 3:6], q[:, order]])
    cut = slice(8, -8)
    return ours[cut], tau[cut], {foot: x[cut] for foot, x in wrenches.items()}


def closed_torques(
    peer: Any, q_of: Any, motion: Array, dt: float, drives: list[int]
) -> tuple[Array, Array, Array]:
    """Coordinates (T, nq) and rates (T, nv) of Pinocchio, and the forces (T, drives) of a closed
    mechanism: its tree's inverse dynamics by virtual power along ``q_of``, from independent numbers
    (T, m) to all coordinates.
    """
    import pinocchio as pin

    data = peer.createData()
    q = q_of(motion)

    def between(first: Array, second: Array) -> Array:
        return np.array([pin.difference(peer, x, y) for x, y in zip(first, second, strict=True)])

    h = 1e-5
    V = np.stack(
        [
            between(q_of(motion - h * e), q_of(motion + h * e)) / (2 * h)
            for e in np.eye(motion.shape[1])
        ],
        axis=2,
    )
    rate = np.gradient(motion, dt, axis=0, edge_order=2)
    rate[2:-2] = (motion[:-4] - 8 * motion[1:-3] + 8 * motion[3:-1] - motion[4:]) / (12 * dt)
    v = np.einsum("tij,tj->ti", V, rate)
    a = np.gradient(v, dt, axis=0, edge_order=2)
    a[2:-2] = (v[:-4] - 8 * v[1:-3] + 8 * v[3:-1] - v[4:]) / (12 * dt)
    tree = np.array([pin.rnea(peer, data, *row) for row in zip(q, v, a, strict=True)])
    forces = np.einsum("tij,ti->tj", V, tree)
    by_drives = np.stack([V[:, j] for j in drives], axis=1)
    return q, v, np.linalg.solve(by_drives.swapaxes(1, 2), forces[..., None])[..., 0]


def four_bar_coordinates(m: Any) -> Any:
    """crank → crank, rocker, coupler of the built-in four-bar, in closed form."""
    import pinocchio as pin
    from peers import pinocchio_of

    peer = pinocchio_of(m.tree)
    data = peer.createData()
    loop = m.loops[0]
    ends = {x.name: i for i, x in enumerate(m.bodies)}

    def point(q: Array, end: Any) -> Array:
        pin.framesForwardKinematics(peer, data, q)
        frame = data.oMf[peer.getFrameId(m.bodies[ends[end.link]].name)]
        return frame.act(np.asarray(end.frame.position))

    def q_of(crank: Array) -> Array:
        out = np.empty((len(crank), 3))
        q = np.array([m.guess[name] for name in m.coordinates])
        for i, (angle,) in enumerate(crank):
            q[0] = angle
            for _ in range(30):
                gap = (point(q, loop.first) - point(q, loop.second))[:2]
                if np.abs(gap).max() < 1e-14:
                    break
                J = np.empty((2, 2))
                for k in (1, 2):
                    other = q.copy()
                    other[k] += 1e-6
                    J[:, k - 1] = (
                        (point(other, loop.first) - point(other, loop.second))[:2] - gap
                    ) / 1e-6
                q[1:] -= np.linalg.solve(J, gap)
            out[i] = q
        return out

    return peer, q_of


def _ring(radius: float, degrees: list[float]) -> Array:
    angle = np.deg2rad(degrees)
    return radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)])


FEET = _ring(0.6, [-15, 15, 105, 135, 225, 255])
TOPS = _ring(0.3, [-45, 45, 75, 165, 195, 285])


def own_stewart() -> Any:
    """A Stewart platform on universal joints, driven by the lengths of its legs."""
    import ramify as rf

    own = rf.Mechanism("stewart")
    own.body("platform", mass=25.0, com=(0.02, -0.01, 0.05), inertia=(0.8, 0.9, 1.5))
    own.joint("pose", None, "platform", "free", actuated=False)
    for i, (foot, top) in enumerate(zip(FEET, TOPS, strict=True), start=1):
        own.body(f"lower{i}", mass=2.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.001))
        own.body(f"upper{i}", mass=1.0, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.001))
        own.joint(f"foot{i}", (None, foot), f"lower{i}", "universal", actuated=False)
        own.joint(f"leg{i}", f"lower{i}", f"upper{i}", "prismatic", limits=(0.55, 1.05))
        own.joint(f"ball{i}", ("platform", top), f"upper{i}", "spherical", actuated=False)
        own.near(**{f"leg{i}": 0.8})
    own.near(pose=[1, 0, 0, 0], **{"pose.z": 0.7})
    return own.model()


def stewart_coordinates(m: Any) -> Any:
    """x y z and rotation vector of the platform → all coordinates of Pinocchio, in closed form."""
    import pinocchio as pin

    start, k = {}, 0
    for joint in m.joints:
        start[joint.name] = k
        k += joint.nq

    def q_of(poses: Array) -> Array:
        out = np.zeros((len(poses), m.nq))
        for row, pose in zip(out, poses, strict=True):
            R, p = pin.exp3(pose[3:]), pose[:3]
            o = start["pose"]
            row[o : o + 3], row[o + 3 : o + 7] = p, pin.Quaternion(R).coeffs()
            for i, (foot, top) in enumerate(zip(FEET, TOPS, strict=True), start=1):
                leg = p + R @ top - foot
                length = np.linalg.norm(leg)
                x, y, z = leg / length
                o = start[f"foot{i}"]
                row[o], row[o + 1] = np.arctan2(x, z), np.arcsin(-y)
                row[start[f"leg{i}"]] = length
        return out

    return q_of
