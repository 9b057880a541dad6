"""The base of a robot whose root joint is free: as a quaternion, as Euler angles, in a plane, or
held.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.model.build import point_of
from ramify.model.edits import R, with_locked
from ramify.model.frame import align_z
from ramify.model.robot import Robot

BASES: Final = ("fixed", "free", "free_euler", "planar")
"""Ways to give a robot's base."""

_PARALLEL: Final = 1e-6


def with_base(model: R, base: str) -> R:
    """The model with another joint between the world and its one root.

    base: "free" (unit quaternion), "free_euler" (three Euler angles, YXZ where the file names
    none), "planar" (two slides and the angle in the plane in which the robot moves), or "fixed"
    (held at the neutral posture). The plane is that of the joints: all turn about its normal. The
    second slide points up where gravity acts in the plane. Raises ModelError for any other word,
    for a robot whose root joint is none of the first three, and for "planar" where the joints turn
    about several directions.
    """
    if not isinstance(base, str) or base not in BASES:
        listed = ", ".join(map(repr, BASES))
        raise ModelError(f"base {shown(base)} is not known; choose one of {listed}")
    roots = [body for body in model.bodies if body.parent < 0]
    root = roots[0].joint
    if len(roots) != 1 or root.kind not in BASES[1:]:
        if base == "fixed":
            return model
        one = f"stands on a {root.kind} joint {root.name!r}"
        what = one if len(roots) == 1 else f"has {len(roots)} roots"
        raise ModelError(
            f"base {base!r}: {model.name} {what}; only a root joint that is free, free_euler or "
            "planar can be changed"
        )
    if base == root.kind:
        return model
    if base == "fixed":
        return with_locked(model, root.name)
    axis = (0.0, 0.0, 1.0)
    if base == "planar":
        axis = point_of(root.placement.rotation.T @ _plane_normal(model))
    joint = replace(root, kind=base, sequence="", limits=(), axis=axis)
    moved = (replace(b, joint=joint) if b.joint is root else b for b in model.bodies)
    return replace(model, bodies=tuple(moved))


def _plane_normal(model: Robot) -> Array:
    """The normal, in the world, of the plane in which a robot moves at its neutral posture."""
    turns, slides = _axes(model)
    gravity = np.array(model.gravity)
    if turns:
        normal = turns[0]
    else:  # slides alone, or one body: the plane that they and gravity span
        spans = (np.cross(u, w) for u, w in combinations([*slides, gravity, np.eye(3)[0]], 2))
        normal = next((n for n in spans if np.linalg.norm(n) > _PARALLEL), np.eye(3)[2])
        normal = normal / np.linalg.norm(normal)
    if any(np.linalg.norm(np.cross(normal, turn)) > _PARALLEL for turn in turns) or any(
        abs(normal @ slide) > _PARALLEL for slide in slides
    ):
        raise ModelError(
            f"base 'planar': the joints of {model.name} do not move in one plane; choose 'free' or "
            "'free_euler'"
        )
    normal = normal * np.sign(normal[np.abs(normal).argmax()])
    up = -float(align_z(normal)[:, 1] @ gravity)
    normal = -normal if up < -_PARALLEL * np.linalg.norm(gravity) else normal
    return np.where(np.abs(normal) < 1e-12, 0.0, normal)


def _axes(model: Robot) -> tuple[list[Array], list[Array]]:
    """Directions in the world, at the neutral posture, about which the joints behind the root turn
    and along which they slide.
    """
    turns: list[Array] = []
    slides: list[Array] = []
    frames: list[Array] = []
    for body in model.bodies:
        R = (frames[body.parent] if body.parent >= 0 else np.eye(3)) @ body.joint.placement.rotation
        frames.append(R @ body.joint.outlet.rotation)
        for step in body.joint.steps if body.parent >= 0 else ():
            if step.rho:
                turns.append(R @ np.array(step.axis))
            if step.eta:
                slides.append(R @ np.array(step.axis))
    return turns, slides
