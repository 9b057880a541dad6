"""What a run has around its robot: the ground, the floor, contact forces as arrows, and where it
is seen from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ramify.contact.contact_record import Contacts
from ramify.contact.terrain import TERRAINS
from ramify.core.arrays import Array
from ramify.core.spatial import Vec3
from ramify.documents.forms import Reading
from ramify.documents.mistakes import Mistakes
from ramify.runs.run_record import Run
from ramify.view.geometry import smooth_normals
from ramify.view.robot_solids import is_unattached, rest
from ramify.view.scene import Scene, ScenePart

NODES: Final = 61
"""Nodes of a patch, along each side."""


def described_surroundings(result: Run) -> Mapping[str, Any] | None:
    """The terrain in the record of a run; None where it had no ground."""
    ground = result.options.get("ground") or result.options.get("contact")
    found = ground.get("terrain") if isinstance(ground, Mapping) else None
    return found if isinstance(found, Mapping) else None


def grounded(scene: Scene, result: Run, low: Array, high: Array) -> tuple[Scene, float | None]:
    """(scene, height): the scene with the ground of a run where it is not level, and the height of
    its floor; None: no ground.

    low, high (T, 3): the corners around the robot over time, z up.
    """
    terrain = described_surroundings(result)
    if terrain is None:
        return scene, 0.0 if result.contacts is not None else None
    if terrain.get("kind") == "flat":
        return scene, float(terrain.get("height", 0.0))
    if terrain.get("kind") not in TERRAINS:
        return scene, 0.0
    surface = TERRAINS.read(terrain, (), Reading(Mistakes("terrain")))
    first, last = low.min(axis=0)[:2] - 1.2 * scene.size, high.max(axis=0)[:2] + 1.2 * scene.size
    sides = (np.linspace(a, b, NODES) for a, b in zip(first, last, strict=True))
    x, y = (side.ravel() for side in np.meshgrid(*sides, indexing="ij"))
    world = np.stack([x, y, np.zeros(x.size)], axis=1) @ scene.up  # the robot's own world
    depth, normal = surface.under(Vec3(*world.T))
    rise = np.asarray(depth / normal.dot(Vec3(*scene.up[2])), dtype=np.float64)
    heights = np.broadcast_to(rise, x.size)
    corner = (np.arange(NODES - 1)[:, None] * NODES + np.arange(NODES - 1)).ravel()[:, None]
    halves = (0, NODES, NODES + 1), (0, NODES + 1, 1)
    faces = np.concatenate([np.add(corner, half) for half in halves])
    points = np.stack([x, y, heights], axis=1) @ scene.up
    patch = ScenePart(-1, "ground", smooth_normals(points, faces))
    return replace(scene, parts=(*scene.parts, patch)), float(heights.min()) - 0.05 * scene.size


LONGEST: Final = 0.9
"""The longest arrow of a force, in sizes of the robot."""


@dataclass(frozen=True, eq=False)
class Arrows:
    """Forces to draw, z up: names (n), positions (T, n, 3) in m and forces (T, n, 3) in N."""

    names: tuple[str, ...]
    position: Array
    force: Array

    def drawn(self, scene: Scene) -> Array:
        """The forces as arrows (T, n, 3) in m: none where they are tiny, shorter where they would
        leave the picture.
        """
        arrows = arrow_scale(scene, self.force) * np.nan_to_num(self.force)
        length = np.linalg.norm(arrows, axis=-1, keepdims=True)
        longest = LONGEST * scene.size
        fit = np.minimum(1.0, longest / np.maximum(length, 1e-300))
        found: Array = np.where(length > 1e-3 * scene.size, fit * arrows, 0.0)
        return found


def arrow_scale(scene: Scene, force: Array) -> float:
    """Metres per newton: the robot's weight is an arrow of a third of its size; without gravity the
    largest force a half.
    """
    weight = scene.model.mass * float(np.linalg.norm(scene.model.gravity))
    largest = float(np.linalg.norm(np.nan_to_num(force), axis=-1).max(initial=0.0))
    return scene.size / (3.0 * weight) if weight > 0.0 else 0.5 * scene.size / max(largest, 1e-9)


def contact_arrows(contacts: Contacts | None, up: Array) -> Arrows | None:
    """The contact forces of a run, where it has any."""
    if contacts is None or not len(contacts):
        return None
    return Arrows(contacts.names, contacts.position @ up.T, contacts.force @ up.T)


def floor_height(scene: Scene, low: Array, high: Array, ground: float | None) -> float:
    """Where the floor is drawn, m: on the ground where there is one; at zero for a robot that is
    above it for the most part.

    Else under the robot. low, high (T,): its lowest and highest point over time. A robot that falls
    without a ground has its floor where it started.
    """
    if ground is not None:
        return ground
    flies = is_unattached(scene.model)
    least = float(low[0] if flies else low.min())
    standing = least > -0.03 * scene.size or (not flies and float(np.mean(low + high)) > 0.0)
    return 0.0 if standing else least - 0.02 * scene.size


@dataclass(frozen=True)
class Camera:
    """Where a scene is seen from: ``yaw`` and ``pitch`` (rad) around a ``target`` (m); ``size`` is
    what must be seen, m.

    ``floor`` is the floor's height and ``cell`` the width of its squares, m.
    """

    target: tuple[float, float, float]
    size: float
    yaw: float
    pitch: float
    floor: float
    cell: float


def _hinge_axis(scene: Scene) -> int | None:
    """The level axis (0: x, 1: y) along which all hinges of a robot lie, at rest; None: there is
    none.
    """
    R, _ = scene.poses(rest(scene.model))
    joints = ((b, body.joint) for b, body in enumerate(scene.model.bodies))
    axes = [
        R[b] @ joint.outlet.inverse().rotation @ np.array(joint.axis)
        for b, joint in joints
        if joint.kind == "revolute"
    ]
    sizes = np.abs(axes).min(axis=0) if axes else np.zeros(3)
    best = int(sizes.argmax())
    return best if best < 2 and sizes[best] > 0.99 else None


def camera(scene: Scene, low: Array, high: Array, ground: float | None = None) -> Camera:
    """The camera of a run: around the robot as it starts where it floats, else around all that it
    does.

    low, high (T, 3): the corners around the robot over time; ground: the height of the ground,
    where there is one.
    """
    first, last = (
        (low[0], high[0]) if is_unattached(scene.model) else (low.min(axis=0), high.max(axis=0))
    )
    extent = last - first
    size = max(float(np.linalg.norm(extent)), 0.5 * scene.size)
    yaw, pitch = -1.02, 0.26
    flat = [k for k in (0, 1) if extent[k] < 0.2 * extent.max()]
    across = _hinge_axis(scene)
    if across is not None or flat:
        # a robot that moves in a vertical plane is seen from where z of its file's world comes out
        axis = flat[-1] if across is None else across
        front = np.sign(scene.up[axis, 2]) or (-1.0 if axis else 1.0)
        yaw = 0.22 + (front * np.pi / 2 if axis else (0.0 if front > 0 else np.pi))
        pitch = 0.13
    cells = (k * 10.0**p for p in range(-4, 5) for k in (1, 2, 5))
    cell = min(cells, key=lambda c: abs(math.log(c / (0.12 * size))))
    x, y, z = ((first + last) / 2).tolist()
    floor = floor_height(scene, low[:, 2], high[:, 2], ground)
    return Camera((x, y, z), size, float(yaw), pitch, floor, cell)
