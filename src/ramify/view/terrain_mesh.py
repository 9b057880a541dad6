"""The ground under a run: the height of a level one, or a patch of triangles of one that slopes or
rises and falls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ramify.contact.terrain import TERRAINS
from ramify.core.arrays import Array
from ramify.core.spatial import Vec3
from ramify.documents.forms import Reading
from ramify.documents.mistakes import Mistakes
from ramify.sim.run_record import Run
from ramify.view.geometry import smooth_normals
from ramify.view.scene import Scene, ScenePart

NODES: Final = 61
"""Nodes of a patch, along each side."""


def described(result: Run) -> Mapping[str, Any] | None:
    """The terrain in the record of a run; None where it had no ground."""
    ground = result.options.get("ground")
    found = ground.get("terrain") if isinstance(ground, Mapping) else None
    return found if isinstance(found, Mapping) else None


def grounded(scene: Scene, result: Run, low: Array, high: Array) -> tuple[Scene, float | None]:
    """(scene, height): the scene with the ground of a run where it is not level, and the height of
    its floor; None: no ground.

    low, high (T, 3): the corners around the robot over time, z up.
    """
    terrain = described(result)
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
