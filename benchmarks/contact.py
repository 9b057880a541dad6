"""Hard contact beside MuJoCo: closed forms at two steps, and the time of many robots.

``python benchmarks/contact.py forms`` prints the error of each closed form; ``… speed`` the time of
a step of 256 robots in one thread, in CPU time, each program with the contact law it has; ``…
compile`` the time until the first step of a humanoid, nothing cached.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout as mujoco_rollout

import ramify as rf
from ramify.contact import Hard, Slope

G = 9.81
STEPS = (2e-3, 5e-3)
STATES = 256

Row = tuple[str, str, Callable[[float], float], Callable[[float], float]]


# ---- closed forms ----


def scene(bodies: str, step: float, friction: float, slope: float = 0.0) -> tuple[Any, Any]:
    """A MuJoCo model of some bodies on a plane that rises ahead by an angle."""
    tilted = f'euler="0 {-math.degrees(slope)} 0"'
    text = f"""<mujoco><option timestep="{step}" gravity="0 0 -{G}" cone="elliptic" impratio="10"/>
    <default><geom friction="{friction} 0 0" condim="3"/></default>
    <worldbody><geom type="plane" size="9 9 1" {tilted}/>{bodies}</worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    return model, mujoco.MjData(model)


def mujoco_run(bodies: str, step: float, t: float, friction: float, slope: float = 0.0,
               v: Any = None) -> Any:  # fmt: skip
    model, data = scene(bodies, step, friction, slope)
    if v is not None:
        data.qvel[:] = v
    for _ in range(round(t / step)):
        mujoco.mj_step(model, data)
    return data


def box_on(slope: float) -> tuple[str, rf.Model, list[float]]:
    n = np.array([-math.sin(slope), 0.0, math.cos(slope)])
    place = " ".join(f"{x:.17g}" for x in 0.1 * n)
    turned = -math.degrees(slope)
    geom = '<geom type="box" size=".1 .1 .1" mass="2"/>'
    body = f'<body pos="{place}" euler="0 {turned} 0"><freejoint/>{geom}</body>'
    made = rf.Builder("box").link(
        "box", joint="free", mass=2.0, inertia=[2.0 * 0.08 / 12.0] * 3,
        shapes=[{"box": [0.2, 0.2, 0.2], "collides": True}],
    )  # fmt: skip
    q = [*(0.1 * n), math.cos(slope / 2), 0.0, -math.sin(slope / 2), 0.0]
    return body, made.model(), q


def ball() -> tuple[str, rf.Model, list[float]]:
    body = '<body pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>'
    made = rf.Builder("ball").link(
        "ball", joint="free", mass=1.0, inertia=[0.004] * 3,
        shapes=[{"sphere": 0.1, "collides": True}],
    )  # fmt: skip
    return body, made.model(), [0, 0, 0.1, 1, 0, 0, 0]


def tower(masses: list[float]) -> tuple[str, rf.Model, list[float]]:
    body, made, q = "", rf.Builder("tower"), []
    for i, m in enumerate(masses):
        z = 0.1 + 0.2 * i
        body += f'<body pos="0 0 {z}"><freejoint/><geom type="sphere" size=".1" mass="{m}"/></body>'
        made.link(
            f"ball{i}", joint="free", mass=m, inertia=[0.004 * m] * 3,
            shapes=[{"sphere": 0.1, "collides": True}],
        )  # fmt: skip
        q += [0, 0, z, 1, 0, 0, 0]
    return body, made.model(), q


def hard(model: rf.Model, t: float, q: Any, step: float, law: Hard, v: Any = None) -> Any:
    return rf.simulate(model, t, q, v, contact=law, step=step, dt_out=t)


def creep(step: float) -> float:
    angle = math.atan(0.5) - math.radians(1.0)
    _, model, q = box_on(angle)
    r = hard(model, 1.0, q, step, Hard(friction=0.5, terrain=Slope(angle=angle)))
    return float(np.abs(r.v[-1, :3]).max())


def mujoco_creep(step: float) -> float:
    angle = math.atan(0.5) - math.radians(1.0)
    data = mujoco_run(box_on(angle)[0], step, 1.0, 0.5, angle)
    return float(np.abs(data.qvel[:3]).max())


def slide(step: float) -> float:
    _, model, q = box_on(0.0)
    r = hard(model, 0.1, q, step, Hard(friction=0.5), [1.0, 0, 0, 0, 0, 0])
    return abs(float(r.v[-1, 0]) - (1.0 - 0.05 * G))


def mujoco_slide(step: float) -> float:
    data = mujoco_run(box_on(0.0)[0], step, 0.1, 0.5, v=[1.0, 0, 0, 0, 0, 0])
    return abs(float(data.qvel[0]) - (1.0 - 0.05 * G))


def roll(step: float) -> float:
    _, model, q = ball()
    r = hard(model, 1.0, q, step, Hard(friction=0.2), [0.5, 0, 0, 0, -20, 0])
    return abs(float(r.v[-1, 0]) - 5.0 / 7.0 * (0.5 - 0.8))


def mujoco_roll(step: float) -> float:
    data = mujoco_run(ball()[0], step, 1.0, 0.2, v=[0.5, 0, 0, 0, -20, 0])
    return abs(float(data.qvel[0]) - 5.0 / 7.0 * (0.5 - 0.8))


def sink(masses: list[float]) -> tuple[Callable[[float], float], Callable[[float], float]]:
    body, model, q = tower(masses)

    def ours(step: float) -> float:
        r = hard(model, 1.0, q, step, Hard(friction=0.5))
        return float(np.abs(r.q[-1].reshape(-1, 7)[:, 2] - q[2::7]).max())

    def theirs(step: float) -> float:
        data = mujoco_run(body, step, 1.0, 0.5)
        return float(np.abs(data.qpos.reshape(-1, 7)[:, 2] - q[2::7]).max())

    return ours, theirs


def forms() -> None:
    rows: list[Row] = [
        ("creep 1° below the friction angle", "m/s", creep, mujoco_creep),
        ("sliding box, change of speed", "m/s", slide, mujoco_slide),
        ("ball with backspin, final speed", "m/s", roll, mujoco_roll),
        ("five balls on top of each other, sink", "m", *sink([1.0] * 5)),
        ("1000 kg on 1 kg, sink", "m", *sink([1.0, 1000.0])),
    ]
    print("| error of | unit | ramify, 2 ms | 5 ms | MuJoCo, 2 ms | 5 ms |")
    print("| --- " * 6 + "|")
    for name, unit, ours, theirs in rows:
        values = [f(step) for f in (ours, theirs) for step in STEPS]
        print(f"| {name} | {unit} | " + " | ".join(f"{x:.1e}" for x in values) + " |", flush=True)


# ---- speed ----


def assets() -> str:
    import gymnasium

    return os.path.join(os.path.dirname(gymnasium.__file__), "envs", "mujoco", "assets")


def speed(names: list[str], steps: int = 200) -> None:
    rf.threads(1)
    print("| robot | step | MuJoCo | ramify | ratio | passes | capped |")
    print("| --- " * 7 + "|")
    for name in names:
        path = f"{assets()}/{name}.xml"
        peer, m = mujoco.MjModel.from_xml_path(path), rf.load(path)
        dt, rng = peer.opt.timestep, np.random.default_rng(0)
        v = 0.1 * rng.normal(size=(STATES, peer.nv))
        q = np.tile(peer.qpos0, (STATES, 1))
        command = rng.uniform(-1.0, 1.0, size=(STATES, steps, peer.nu))
        full = np.zeros((STATES, mujoco.mj_stateSize(peer, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        full[:, 1 : 1 + peer.nq], full[:, 1 + peer.nq : 1 + peer.nq + peer.nv] = q, v
        clock = time.process_time
        began = clock()
        mujoco_rollout.rollout(peer, [mujoco.MjData(peer)], full, command)
        theirs = (clock() - began) / STATES / steps
        tau = np.zeros((STATES, steps, peer.nv))
        for i in range(peer.nu):
            place = peer.jnt_dofadr[peer.actuator_trnid[i, 0]]
            low, high = peer.actuator_ctrlrange[i]
            tau[:, :, place] += np.clip(command[:, :, i], low, high) * peer.actuator_gear[i, 0]
        own = np.tile(lifted(m), (STATES, 1))
        options: dict[str, Any] = {"dt": dt, "contact": "hard"}
        rf.rollout(m, own, v, steps=2, tau=tau[:, :2], **options)
        began = clock()
        rf.rollout(m, own, v, steps=steps, tau=tau, **options)
        ours = (clock() - began) / STATES / steps
        r = rf.rollout(m, own, v, steps=steps, tau=tau, every=1, **options)
        states = r.recorded_states
        recorded = states.history[:, :, states.field.of_hard]
        print(
            f"| {name} | {1e3 * dt:g} ms | {1e6 * theirs:.2f} µs | {1e6 * ours:.2f} µs | "
            f"{theirs / ours:.1f} | {recorded[:, :, -4].mean():.1f} | "
            f"{recorded[:, -1, -1].sum() / STATES / steps:.1e} |",
            flush=True,
        )


def lifted(m: rf.Model) -> Any:
    """The neutral posture with all contacts above the ground."""
    from ramify.contact.hard_rows import HardContact

    q = m.neutral()
    for joint in m.joints:
        part = m.joint_slice(joint.name, of="q")
        if len(joint.limits) == part.stop - part.start:
            q[part] = np.clip(q[part], *np.array(joint.limits).T)
    gap = min(float(t.gap) for t in HardContact(m, Hard()).touches(q.tolist()))
    up = next(i for i, name in enumerate(m.coordinates) if name.endswith("z"))
    q[up] += max(0.0, 0.01 - gap)
    return q


def compile_times(names: list[str]) -> None:
    code = (
        "import sys, time, warnings; warnings.simplefilter('ignore')\n"
        "import ramify as rf, numpy as np\n"
        "m = rf.load(sys.argv[1]); sys.path.insert(0, sys.argv[2]); from contact import lifted\n"
        "t = time.perf_counter(); q = np.tile(lifted(m), (8, 1))\n"
        "rf.rollout(m, q, np.zeros((8, m.nv)), steps=1, dt=2e-3, contact='hard')\n"
        "print(f'{time.perf_counter() - t:.2f} s')"
    )
    for name in names:
        empty = {**os.environ, "RAMIFY_CACHE": "0", "RAMIFY_CACHE_DIR": "/nonexistent"}
        told = subprocess.run(
            [sys.executable, "-c", code, f"{assets()}/{name}.xml", os.path.dirname(__file__)],
            capture_output=True, text=True, env=empty, check=False,
        )  # fmt: skip
        print(name, told.stdout.strip() or told.stderr.strip().splitlines()[-1])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what = sys.argv[1] if len(sys.argv) > 1 else "forms"
    robots = sys.argv[2:] or ["half_cheetah", "hopper", "walker2d"]
    if what == "forms":
        forms()
    else:
        (speed if what == "speed" else compile_times)(robots)
