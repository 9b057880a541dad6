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


def fourier(t: Array, centre: Array, sin: Array, cos: Array, base: float) -> tuple[Array, Array, Array]:
    """q, v, a (T, n) of a Fourier series; sin, cos (n, harmonics) are amplitudes of the rates."""
    w = 2.0 * np.pi * base * np.arange(1, sin.shape[1] + 1)
    angle = np.outer(t, w)
    s, c = np.sin(angle), np.cos(angle)
    q = centre + s @ (sin / w).T - c @ (cos / w).T
    return q, c @ sin.T + s @ cos.T, -s @ (sin * w).T + c @ (cos * w).T


def random_motion(n: int, t: Array, seed: int, rate: float = 0.45, centre: Array = 0.0, base: float = 0.1) -> tuple[Array, Array, Array]:
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
    return drives.armature * a + drives.damping * v + (drives.coulomb + falling) * np.sign(v) + drives.offset


def measured(t: Array, q: Array, tau: Array, seed: int, noise: float = 0.01, bits: int = 17) -> dict[str, Array]:
    """The log of a clean motion: noisy torques and an encoder of some bits per turn."""
    rng = np.random.default_rng(1000 + seed)
    size = noise * np.sqrt(np.mean(tau**2, axis=0))
    step = 2.0 * np.pi / 2**bits
    return {"t": t, "q": np.round(q / step) * step, "tau": tau + size * rng.normal(size=tau.shape)}
