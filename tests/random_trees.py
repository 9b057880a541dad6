"""Random robots for the tests, and the same robots in Pinocchio.

Bodies hang on one another at random, on every type of joint. Joint frames come in three styles:
anywhere; at right angles with many zeros, as a Denavit-Hartenberg table gives them; and nearly
parallel to the parent's, where the common normal of two axes is ill-defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from ramify.core.arrays import Array
from ramify.core.spatial import Vec3
from ramify.dynamics.tree import Tree
from ramify.model.body import Body
from ramify.model.frame import Frame, from_rpy, rotation_about
from ramify.model.joint import JOINT_KINDS, SPHERICAL_SEQUENCES, UNIVERSAL_SEQUENCES, Joint
from ramify.model.skeleton import Skeleton, as_pose, build_skeleton

KINDS = tuple(
    kind for kind in JOINT_KINDS if kind not in ("fixed", "ball", "free")
)  # coordinates agree with Pinocchio's
STYLES = ("anywhere", "right angles", "nearly parallel")
SEQUENCES = {
    "universal": UNIVERSAL_SEQUENCES,
    "spherical": SPHERICAL_SEQUENCES,
    "free_euler": SPHERICAL_SEQUENCES,
}


def _unit(rng: np.random.Generator) -> Array:
    u = rng.normal(size=3)
    return u / np.linalg.norm(u)


def random_frame(rng: np.random.Generator, style: str = "anywhere") -> Frame:
    """A frame of one of the three styles, some decimetres away."""
    offset = 0.3 * rng.normal(size=3)
    if style == "right angles":
        return Frame(
            from_rpy(*(float(k) * np.pi / 2 for k in rng.integers(-1, 3, size=3))),
            offset * rng.integers(0, 2, size=3),
        )
    if style == "nearly parallel":
        return Frame(rotation_about(_unit(rng), 10.0 ** float(rng.uniform(-14.0, -1.0))), offset)
    return Frame(rotation_about(_unit(rng), float(rng.uniform(-np.pi, np.pi))), offset)


def random_joint(rng: np.random.Generator, name: str, kind: str, style: str) -> Joint:
    """A joint of that type with random frames, axis, pitch and Euler sequence."""
    axis = (
        _unit(rng)
        if style == "anywhere"
        else np.eye(3)[rng.integers(0, 3)]
        if style == "right angles"
        else np.array([0.0, 0.0, 1.0])
    )
    outlet = random_frame(rng, style) if rng.random() < 0.5 else Frame()
    return Joint(
        name,
        kind,
        random_frame(rng, style),
        outlet,
        tuple(axis),
        sequence=str(rng.choice(SEQUENCES[kind])) if kind in SEQUENCES else "",
        pitch=float(rng.uniform(0.02, 0.2)) if kind == "helical" else 0.0,
    )


def random_body(rng: np.random.Generator, name: str, parent: int, joint: Joint) -> Body:
    """A body with mass, an offset mass centre and a full inertia tensor that some rigid body could
    have.
    """
    spread = 0.3 * rng.normal(size=(3, 3))
    moments = spread @ spread.T
    return Body(
        name,
        parent,
        joint,
        rng.uniform(0.1, 2.0),
        0.2 * rng.normal(size=3),
        np.trace(moments) * np.eye(3) - moments,
    )


def random_bodies(
    rng: np.random.Generator,
    n: int,
    depth_first: bool = False,
    kinds: Sequence[str] = KINDS,
    styles: Sequence[str] = STYLES,
) -> tuple[Body, ...]:
    """A tree of n bodies: half of them go on from the last one, the others branch off anywhere, the
    base included.

    ``depth_first``: they branch off the last one's ancestors only, so that every subtree is
    numbered in one run.
    """
    bodies: list[Body] = []
    path = [-1]
    for i in range(n):
        choice = path if depth_first else range(-1, i)
        parent = i - 1 if rng.random() < 0.5 else choice[int(rng.integers(len(choice)))]
        path = [*(path[: path.index(parent) + 1] if parent in path else [-1, parent]), i]
        joint = random_joint(rng, f"joint{i}", str(rng.choice(kinds)), str(rng.choice(styles)))
        bodies.append(random_body(rng, f"body{i}", parent, joint))
    return tuple(bodies)


def tree_of(bodies: tuple[Body, ...], gravity: Any) -> tuple[Tree, Skeleton]:
    """The tree on which the algorithms run, and its skeleton."""
    skeleton = build_skeleton(bodies)
    g = skeleton.root.rotation.T @ np.asarray(gravity, dtype=np.float64)
    return Tree(
        skeleton.links, skeleton.parents, as_pose(skeleton.root), Vec3(*(float(x) for x in g))
    ), skeleton


def se3(frame: Frame) -> pin.SE3:
    return pin.SE3(np.array(frame.rotation), np.array(frame.position))


def _screw(axis: tuple[float, float, float], rho: float, eta: float) -> Any:
    u = np.array(axis)
    if rho and eta:
        return pin.JointModelHelicalUnaligned(u, eta)
    return pin.JointModelRevoluteUnaligned(u) if rho else pin.JointModelPrismaticUnaligned(u)


def to_pinocchio(robot: Any, gravity: Any = None) -> pin.Model:
    """The same robot in Pinocchio: one joint per degree of freedom, one frame per body under the
    body's name.

    ``robot`` is a Model, or bodies with their ``gravity``. Coordinates agree one by one. Beware:
    Pinocchio's ``crba`` and ``computeCoriolisMatrix`` silently lose entries unless every subtree is
    numbered in one run.
    """
    bodies = getattr(robot, "bodies", robot)
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity if gravity is None else gravity, dtype=np.float64)
    ends = {-1: (0, pin.SE3.Identity())}
    for b, body in enumerate(bodies):
        joint, place = ends[body.parent]
        place = place * se3(body.joint.placement)
        for i, step in enumerate(body.joint.steps):
            joint = model.addJoint(
                joint, _screw(step.axis, step.rho, step.eta), place, f"{body.name}.{i}"
            )
            place = pin.SE3.Identity()
        place = place * se3(body.joint.outlet)
        model.appendBodyToJoint(
            joint, pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia)), place
        )
        model.addFrame(pin.Frame(body.name, joint, 0, place, pin.FrameType.OP_FRAME))
        ends[b] = joint, place
    return model


@dataclass(frozen=True)
class Case:
    """A random robot in a random state, with its tree and its double in Pinocchio."""

    bodies: tuple[Body, ...]
    depth_first: bool
    gravity: Array
    tree: Tree
    skeleton: Skeleton
    peer: pin.Model
    q: list[float]
    v: list[float]
    a: list[float]

    @property
    def n(self) -> int:
        return len(self.q)


def random_case(seed: int, n_bodies: int | None = None) -> Case:
    """A repeatable case of 1-25 bodies, or of as many as asked for; two in three are numbered depth
    first.
    """
    rng = np.random.default_rng(seed)
    depth_first = seed % 3 > 0
    bodies = random_bodies(
        rng, int(rng.integers(1, 26)) if n_bodies is None else n_bodies, depth_first
    )
    gravity = 6.0 * rng.normal(size=3)
    tree, skeleton = tree_of(bodies, gravity)
    q, v, a = rng.normal(size=(3, len(skeleton.links))).tolist()
    return Case(
        bodies, depth_first, gravity, tree, skeleton, to_pinocchio(bodies, gravity), q, v, a
    )
