"""Every arm of example-robot-data falls onto its stops: how far it goes beyond its limits, what the
audit says, and where it comes to rest beside MuJoCo with the same limits.

Run: python benchmarks/falling_arms.py [part of a name …]
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Final, NamedTuple

import mujoco
import numpy as np
from programs import to_mujoco

import ramify as rf
from ramify.core.arrays import Array
from ramify.drives.machine_forces import passive_text
from ramify.drives.passive import joint_inertia
from ramify.model.elements import Element, Stop

FOLDERS: Final = (
    "asr_twodof", "baxter", "double_pendulum", "finger_edu", "kinova", "panda", "so_arm",
    "talos_data/robots/talos_left_arm", "tiago", "ur_description", "xarm", "z1",
)  # fmt: skip
"""Robots of the package that are arms, or stand on a base that carries some."""
SECONDS: Final = 1.5
RATE: Final = 10.0  # 1/s: of the damping that brings arms to rest
SAME: Final = 5e-3  # rad or m: rests that are further apart are different ones
SEEDS: Final = (2, 3, 4)
METHOD: Final = "implicit_extrapolation"
LOADED: Final = 1e-2  # share of the largest gravity force from which a joint counts as loaded


class Fall(NamedTuple):
    """``beyond``: the largest depth beyond a limit; ``share``: of what the stop may yield there;
    ``audit``: relative error of the energy; ``stops`` that were reached.
    """

    beyond: float
    share: float
    audit: float
    stops: int


def files(*wanted: str) -> list[Path]:
    """The URDF files of arms whose names contain one of ``wanted``."""
    place = distribution("example-robot-data").locate_file(
        "cmeel.prefix/share/example-robot-data/robots"
    )
    root = Path(str(place))
    return [
        file
        for file in sorted(root.rglob("*.urdf"))
        if str(file.relative_to(root)).startswith(FOLDERS)
        and "<link" in file.read_text()  # ur3.urdf has none
        and (not wanted or any(word in file.stem for word in wanted))
    ]


def arm(file: Path) -> rf.Model:
    """The tree of an arm; mimic joints move freely."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rf.load(file).tree


def fall(m: rf.Model, seed: int = 2) -> Fall:
    """An arm let go in a random posture. A stop of stiffness k that is hit at speed v by an inertia
    I under a load F may yield v sqrt(I / k) + 2 F / k.
    """
    q0 = np.clip(m.random(seed)[0], *_ends(m))
    r = rf.simulate(m, SECONDS, q0=q0, rtol=1e-9, atol=1e-11, dt_out=2e-3)
    text = passive_text(m)
    shown = 1.0 / np.diagonal(m.mass_matrix_inverse(r.q), axis1=1, axis2=2)
    load = np.abs(m.bias(r.q, r.v)).max(axis=0)
    beyond, share, stops = 0.0, 0.0, 0
    for i, j, low, high in text.limits:
        depth = float(np.maximum(r.q[:, i] - high, low - r.q[:, i]).max())
        if depth <= 0.0:
            continue
        k = text.law_of_stop(j)[0]
        speed, inertia = np.abs(r.v[:, j]).max(), shown[:, j].max()
        beyond, stops = max(beyond, depth), stops + 1
        share = max(share, depth / (speed * np.sqrt(inertia / k) + 2.0 * load[j] / k))
    return Fall(beyond, float(share), r.audit.energy.relative, stops)


class Rest(NamedTuple):
    """``apart``: the largest distance, rad or m, between the rests here and in MuJoCo over the
    ``joints`` that gravity loads and that are still; ``seed`` of the posture where both began.
    """

    apart: float
    joints: int
    seed: int


def rest(m: rf.Model, seconds: float = 60.0) -> Rest:
    """Where an arm whose joints are damped alike comes to rest here and in MuJoCo, each by itself
    from the same posture: the first of three from which both fall to the same side.
    """
    damping = RATE * np.array(joint_inertia(m))
    bodies, start = [], 0
    for body in m.bodies:
        own = tuple(
            Element(armature=e.armature, damping=(float(damping[start + k]), 0.0, 0.0))
            for k, e in enumerate(body.joint.machine)
        )
        bodies.append(replace(body, joint=replace(body.joint, elements=own)))
        start += body.joint.dof
    damped = replace(m, bodies=tuple(bodies))
    theirs = _mujoco(damped, damping)
    for seed in SEEDS:
        q0 = np.clip(m.random(seed)[0], *_ends(m))
        data = mujoco.MjData(theirs)
        data.qpos[:] = q0
        while data.time < seconds:
            mujoco.mj_step(theirs, data)
        r = rf.simulate(damped, seconds, q0=q0, method=METHOD, step=1e-3, dt_out=0.5)
        still = np.maximum(np.abs(r.v[-1]), np.abs(data.qvel)) < 1e-3
        weight = np.abs(damped.gravity_forces(r.q)).max(axis=0)
        loaded = (weight > LOADED * weight.max()) & still
        apart = float(np.abs(r.q[-1] - data.qpos)[loaded].max(initial=0.0))
        found = Rest(apart, int(loaded.sum()), seed)
        if apart < SAME:
            break
    return found


def _ends(m: rf.Model) -> Array:
    """(2, nq): limits."""
    pairs = [pair for joint in m.joints for pair in (joint.limits or [(-np.inf, np.inf)])]
    return np.array(pairs).T


def _mujoco(m: rf.Model, damping: Array) -> mujoco.MjModel:
    made = to_mujoco(m)
    made.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    made.opt.timestep = 1e-3
    made.opt.integrator = int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    made.dof_damping[:], made.dof_armature[:] = damping, m.armature
    for _, j, low, high in passive_text(m).limits:
        made.jnt_limited[j] = 1
        made.jnt_range[j] = max(low, -1e9), min(high, 1e9)
        made.jnt_solref[j] = Stop().time, Stop().ratio
    return made


def main() -> None:
    print(f"{'arm':32} dof  stops  beyond    share  audit    rest     joints  seed")
    for file in files(*sys.argv[1:]):
        m = arm(file)
        found = fall(m)
        try:
            apart, joints, seed = rest(m)
        except ValueError as error:  # MuJoCo refuses massless moving bodies
            apart, joints, seed = float("nan"), 0, 0
            print(f"  MuJoCo: {error}")
        print(
            f"{file.stem:32} {m.nv:3}  {found.stops:5}  {found.beyond:.2e}  {found.share:.2f}  "
            f"{found.audit:.1e}  {apart:.1e}  {joints:6}  {seed}",
            flush=True,
        )


if __name__ == "__main__":
    main()
