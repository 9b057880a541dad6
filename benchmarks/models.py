"""The robots of the benchmark, built once in ramify; ``programs`` converts them for the other
programs: real ones of the package example-robot-data, a walker with springs, and chains.
"""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import ramify as rf

FILES = {
    "UR5": "ur_description/urdf/ur5_robot.urdf",
    "Panda": "panda_description/urdf/panda.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "ANYmal": "anymal_b_simple_description/robots/anymal.urdf",
    "G1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "Talos": "talos_data/robots/talos_reduced.urdf",
}
ARMS = ("UR5", "Panda")
"""Robots on a fixed base; the others stand on a free joint."""
CHOSEN = ("UR5", "solo12", "G1")
"""An arm, a quadruped, a humanoid: those that goals are set for."""


def real(name: str) -> rf.Model:
    """A robot of example-robot-data, gears that couple joints left open."""
    files = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data")
    path = Path(str(files)) / "robots" / FILES[name]
    model = rf.load(str(path), base="fixed" if name in ARMS else "free")
    return depth_first(model.tree if model.loops else model)


def depth_first(model: rf.Model) -> rf.Model:
    """The same robot, its bodies numbered limb by limb, as Pinocchio needs them."""
    order: list[int] = []

    def visit(parent: int) -> None:
        for i, body in enumerate(model.bodies):
            if body.parent == parent:
                order.append(i)
                visit(i)

    visit(-1)
    place = {-1: -1, **{i: k for k, i in enumerate(order)}}
    bodies = (replace(model.bodies[i], parent=place[model.bodies[i].parent]) for i in order)
    return replace(model, bodies=tuple(bodies))


def driven(model: rf.Model) -> int:
    """Coordinates that a controller drives: all but those of a free base."""
    return model.nv - (6 if model.layout.balls else 0)


def walker() -> rf.Model:
    """18 degrees of freedom: a trunk on a free joint and four legs of three links on round feet
    that stand on the ground.
    """
    made = rf.Builder("walker").link("trunk", joint="free", mass=6.0, inertia=(0.05, 0.2, 0.22))
    for leg, x, y in (
        ("front_left", 0.2, 0.12),
        ("front_right", 0.2, -0.12),
        ("hind_left", -0.2, 0.12),
        ("hind_right", -0.2, -0.12),
    ):
        side = math.copysign(0.06, y)
        made.link(
            f"{leg}_hip",
            "trunk",
            at=(x, y, 0.0),
            axis=(1, 0, 0),
            mass=0.6,
            com=(0, side / 2, 0),
            inertia=(1e-3, 1e-3, 1e-3),
        )
        made.link(
            f"{leg}_thigh",
            f"{leg}_hip",
            at=(0, side, 0),
            axis=(0, 1, 0),
            mass=0.9,
            com=(0, 0, -0.1),
            inertia=(5e-3, 5e-3, 1e-3),
        )
        made.link(
            f"{leg}_shank",
            f"{leg}_thigh",
            at=(0, 0, -0.2),
            axis=(0, 1, 0),
            mass=0.3,
            com=(0, 0, -0.1),
            inertia=(2e-3, 2e-3, 1e-4),
            points={f"{leg}_foot": (0, 0, -0.2)},
        )
    return made.model()


FOOT = 0.02  # m, radius of the walker's feet
STANCE = (0.0, 0.6, -1.2) * 4  # rad, held by springs and dampers in its joints
SPRING, DAMPER = 60.0, 1.0  # N m/rad, N m s/rad


def held() -> rf.control.PD:
    """The walker's springs and dampers."""
    return rf.control.PD(rf.motion.Hold(STANCE), kp=SPRING, kd=DAMPER)


def standing(model: rf.Model, count: int) -> tuple[np.ndarray, np.ndarray]:
    """q and v of walkers near their stance, each a little different."""
    rng = np.random.default_rng(1)
    q = np.tile(model.neutral(), (count, 1))
    q[:, 7:] = np.array(STANCE) + 0.05 * rng.normal(size=(count, 12))
    q[:, 2] = 0.4 * math.cos(0.6) + FOOT
    return q, 0.1 * rng.normal(size=(count, model.nv))


def chain(n: int) -> rf.Model:
    """n equal links on parallel axes."""
    return rf.load("chain", n=n)
