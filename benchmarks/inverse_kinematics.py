"""Inverse kinematics beside pink, mink and placo: ``python benchmarks/inverse_kinematics.py
[POSES]``, for those installed (``pip install pin-pink mink placo quadprog daqp``).

The poses of the last link of a Panda at random postures within its limits, from the neutral
posture and from one 0.1 rad away, to 1e-6 m and rad within the limits. The others are libraries of
differential inverse kinematics: here they take steps towards the target, as their examples do, at
most 200, and have no restarts. *One step*: one call of their solver, as in a control loop, beside
``rf.differential_ik``. Times are medians, of the processor, one thread.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from report import Table

import ramify as rf

TIP, NEAR, STEPS, CLOSE = "panda_link7", 0.1, 200, 1e-6
Step = Callable[[Any, Any, Any], Any]
"""(q, position, rotation) -> the next q."""


def panda() -> tuple[rf.Model, str]:
    """The robot, and its file."""
    files = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data")
    path = Path(str(files)) / "robots" / "panda_description" / "urdf" / "panda.urdf"
    return rf.load(str(path)), str(path)


def pink_step(file: str, q: Any) -> Step:
    """As pink's examples do it: a frame task, quadprog."""
    import pinocchio as pin
    from pink import Configuration, solve_ik
    from pink.tasks import FrameTask

    model = pin.buildModelFromUrdf(file)
    setup = Configuration(model, model.createData(), np.array(q))
    task = FrameTask(TIP, position_cost=1.0, orientation_cost=1.0)

    def step(q: Any, position: Any, rotation: Any) -> Any:
        setup.update(np.array(q))
        task.set_target(pin.SE3(rotation, position))
        return setup.integrate(solve_ik(setup, [task], 1.0, solver="quadprog"), 1.0)

    return step


def mink_step(file: str, q: Any) -> Step:
    """As mink's examples do it: a frame task, daqp, limits of the configuration."""
    import mink
    import mujoco

    text = Path(file).read_text(encoding="utf-8")
    model = mujoco.MjModel.from_xml_string(_without_meshes(text))
    setup = mink.Configuration(model)
    limits = [mink.ConfigurationLimit(model)]
    task = mink.FrameTask(TIP, "body", position_cost=1.0, orientation_cost=1.0)

    def step(q: Any, position: Any, rotation: Any) -> Any:
        setup.update(np.array(q))
        turn = mink.SO3.from_matrix(rotation)
        task.set_target(mink.SE3.from_rotation_and_translation(turn, np.array(position)))
        v = mink.solve_ik(setup, [task], 1.0, solver="daqp", limits=limits)
        return setup.integrate(v, 1.0)

    return step


def placo_step(file: str, q: Any) -> Step:
    """As placo's examples do it: a frame task, its own solver, joint limits."""
    import placo

    text = _without_meshes(Path(file).read_text(encoding="utf-8"))
    robot = placo.RobotWrapper("", placo.Flags.ignore_collisions, text)
    solver = placo.KinematicsSolver(robot)
    solver.mask_fbase(True)
    solver.enable_joint_limits(True)
    names = list(robot.joint_names())
    task = solver.add_frame_task(TIP, np.eye(4))
    task.configure("tip", "soft", 1.0, 1.0)
    solver.add_regularization_task(1e-6)

    def step(q: Any, position: Any, rotation: Any) -> Any:
        for name, x in zip(names, q, strict=True):
            robot.set_joint(name, float(x))
        robot.update_kinematics()
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = rotation, position
        task.T_world_frame = T
        solver.solve(True)
        robot.update_kinematics()
        return np.array([robot.get_joint(name) for name in names])

    return step


def _without_meshes(text: str) -> str:
    """A URDF whose shapes are left out: only its joints count here."""
    from lxml import etree

    root = etree.fromstring(text.encode())
    for element in [*root.iter("visual"), *root.iter("collision")]:
        element.getparent().remove(element)
    config = etree.SubElement(etree.SubElement(root, "mujoco"), "compiler")
    config.set("fusestatic", "false")
    return str(etree.tostring(root, encoding="unicode"))


def ours_step(model: rf.Model, joints: list[str]) -> Step:
    def step(q: Any, position: Any, rotation: Any) -> Any:
        target = rf.motion.Target(TIP, position, rotation)
        return model.integrate(q, rf.differential_ik(model, q, target, 1.0, joints=joints), 1.0)

    return step


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rf.threads(1)
    model, file = panda()
    joints = [f"panda_joint{i}" for i in range(1, 8)]
    limits = np.array([joint.limits[0] for joint in model.joints[:7]])
    rng = np.random.default_rng(5)
    q = np.tile(model.neutral(), (10_000, 1))
    q[:, :7] = rng.uniform(limits[:, 0], limits[:, 1], size=(len(q), 7))
    near = q + 0.0
    near[:, :7] += NEAR * rng.uniform(-1.0, 1.0, size=(len(q), 7))
    near[:, :7] = np.clip(near[:, :7], limits[:, 0] + 1e-6, limits[:, 1] - 1e-6)
    wanted = model.pose(q, TIP)
    middle = model.neutral()
    middle[:7] = np.clip(0.0, limits[:, 0] + 1e-3, limits[:, 1] - 1e-3)

    def met(found: Any, i: int) -> bool:
        at = model.pose(np.array(found), TIP)
        off = np.abs(at.position - wanted.position[i]).max()
        turned = np.abs(at.rotation - wanted.rotation[i]).max()
        inside = (found[:7] >= limits[:, 0] - 1e-6).all() and (
            found[:7] <= limits[:, 1] + 1e-6
        ).all()
        return bool(max(off, turned) < CLOSE and inside)

    def searched(step: Step, start: Any, i: int) -> Any:
        at = np.array(start)
        for _ in range(STEPS):
            following = step(at, wanted.position[i], wanted.rotation[i])
            if np.abs(following - at).max() < 1e-9:
                return following
            at = following
        return at

    def whole(start: Any, i: int) -> Any:
        target = rf.motion.Target(TIP, wanted.position[i], wanted.rotation[i])
        return rf.ik(model, target, start, joints=joints, tolerance=CLOSE, strict=False).q

    table = Table(
        f"One pose at a time, {count} poses",
        ("", "from 0.1 rad away", "solved", "from the neutral posture", "solved", "one step"),
    )
    steps: dict[str, Callable[[], Step]] = {
        "ramify": lambda: ours_step(model, joints),
        "pink": lambda: pink_step(file, middle),
        "mink": lambda: mink_step(file, middle),
        "placo": lambda: placo_step(file, middle),
    }
    for name, make in steps.items():
        if name != "ramify" and find_spec(name) is None:
            print(f"{name} is not installed")
            continue
        step, row = make(), []
        for starts in (near, np.tile(middle, (len(q), 1))):
            times, good = [], 0
            for i in range(count + 3):
                begin = process_time()
                try:
                    found = (
                        whole(starts[i], i) if name == "ramify" else searched(step, starts[i], i)
                    )
                except Exception:  # a solver that found no answer
                    found = starts[i]
                times.append(process_time() - begin)
                good += i >= 3 and met(found, i)
            row += [f"{1e3 * float(np.median(times[3:])):.2f} ms", f"{100 * good / count:.0f} %"]
        times = []
        for i in range(3, count + 3):
            begin = process_time()
            step(near[i], wanted.position[i], wanted.rotation[i])
            times.append(process_time() - begin)
        table.add(name, *row, f"{1e3 * float(np.median(times)):.2f} ms")
    print(table.markdown())
    target = rf.motion.Target(TIP, wanted.position, wanted.rotation)
    rf.ik(model, rf.motion.Target(TIP, wanted.position[:64]), joints=joints, strict=False)
    begin = process_time()
    found = rf.ik(model, target, joints=joints, strict=False)
    spent = (process_time() - begin) / len(q)
    inside = (found.q[:, :7] >= limits[:, 0]) & (found.q[:, :7] <= limits[:, 1])
    good = int((found.converged & inside.all(axis=1)).sum())
    print(f"a batch of {len(q)} from the neutral posture, to 1e-10: {good} solved within limits, "
          f"{1e6 * spent:.0f} µs a pose")  # fmt: skip


if __name__ == "__main__":
    main()
