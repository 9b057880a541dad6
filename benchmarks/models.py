"""The robots of the benchmark, built once in ramify; ``programs`` converts them for the other
programs.

The trees have the geometry of real robots but are nobody's: joints at right angles or parallel to
their parents', with offsets along the axes, and every fifth in general position; every link has
mass, an offset mass centre and a full inertia tensor. Subtrees are numbered without gaps, as
Pinocchio wants them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import ramify as rf
from ramify.model.frame import from_rpy

RIGHT = math.pi / 2


def kuka() -> rf.Model:
    """Six-axis arm, 6 degrees of freedom."""
    return rf.load("kuka_kr5")


def quadruped() -> rf.Model:
    """18 degrees of freedom: a six-link spine from the base carries a trunk with four legs of three
    links.
    """
    tree = _Tree("quadruped", seed=18)
    tree.run("spine", 6, None)
    for leg in ("front_left", "front_right", "hind_left", "hind_right"):
        tree.run(leg, 3, "spine6")
    return tree.model()


def humanoid() -> rf.Model:
    """36 degrees of freedom, on its right foot: legs of six links, torso and neck of three, arms of
    seven with two fingers.
    """
    tree = _Tree("humanoid", seed=36)
    tree.run("right_leg", 6, None)
    tree.run("left_leg", 6, "right_leg6")
    tree.run("torso", 3, "right_leg6")
    tree.run("neck", 3, "torso3")
    for side in ("right", "left"):
        tree.run(f"{side}_arm", 7, "torso3")
        for finger in ("thumb", "finger"):
            tree.run(f"{side}_{finger}", 1, f"{side}_arm7")
    return tree.model()


def free_quadruped() -> rf.Model:
    """18 degrees of freedom: a trunk on a free joint with four legs of three links."""
    tree = _Tree("free_quadruped", seed=12)
    tree.base("trunk")
    for leg in ("front_left", "front_right", "hind_left", "hind_right"):
        tree.run(leg, 3, "trunk")
    return tree.model()


def free_humanoid() -> rf.Model:
    """36 degrees of freedom: a pelvis on a free joint, legs of six links, torso and neck of two,
    arms of seven.
    """
    tree = _Tree("free_humanoid", seed=30)
    tree.base("pelvis")
    for leg in ("right_leg", "left_leg"):
        tree.run(leg, 6, "pelvis")
    tree.run("torso", 2, "pelvis")
    tree.run("neck", 2, "torso2")
    for arm in ("right_arm", "left_arm"):
        tree.run(arm, 7, "torso2")
    return tree.model()


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


ROBOTS = (kuka, quadruped, humanoid, free_quadruped, free_humanoid)
ROLLED_OUT = (kuka, free_quadruped, free_humanoid)


class _Tree:
    """A builder that draws frames and inertias from a seeded generator."""

    def __init__(self, name: str, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._builder = rf.Builder(name)
        self._count = 0

    def base(self, name: str) -> None:
        """A link on a free joint: position and unit quaternion."""
        self._builder.link(name, joint="free", **self._inertia())

    def run(self, name: str, length: int, parent: str | None) -> None:
        """A run of links ``name``1, ``name``2, … from a parent."""
        for i in range(1, length + 1):
            link = f"{name}{i}"
            self._builder.link(link, parent, at=self._frame(), **self._inertia())
            parent = link

    def model(self) -> rf.Model:
        return self._builder.model()

    def _frame(self) -> rf.Frame:
        self._count += 1
        if self._count % 5 == 0:
            return rf.Frame(
                from_rpy(*self._rng.uniform(-math.pi, math.pi, size=3)),
                self._rng.uniform(-0.3, 0.3, size=3),
            )
        twist = float(self._rng.choice((-RIGHT, 0.0, RIGHT), p=(0.4, 0.2, 0.4)))
        offset = self._rng.uniform(-0.3, 0.3, size=3) * self._rng.permutation((1.0, 1.0, 0.0))
        return rf.Frame(from_rpy(twist, 0.0, 0.0), offset)

    def _inertia(self) -> dict[str, float | Sequence[float] | np.ndarray]:
        """A box of mass with unequal sides, turned in its frame."""
        mass = float(self._rng.uniform(0.5, 5.0))
        squares = self._rng.uniform(0.05, 0.3, size=3) ** 2
        turn = from_rpy(*self._rng.uniform(-math.pi, math.pi, size=3))
        tensor = turn @ np.diag(mass / 12.0 * (squares.sum() - squares)) @ turn.T
        return {
            "mass": mass,
            "com": self._rng.uniform(-0.1, 0.1, size=3),
            "inertia": (tensor + tensor.T) / 2.0,
        }
