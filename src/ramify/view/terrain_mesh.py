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
    surface = _surface(terrain)
    if surface is None:
        return scene, 0.0
    first, last = low.min(axis=0)[:2] - 1.2 * scene.size, high.max(axis=0)[:2] + 1.2 * scene.size
    x, y = np.meshgrid(
        *(np.linspace(a, b, NODES) for a, b in zip(first, last, strict=True)), indexing="ij"
    )
    flat = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    world = flat @ scene.up  # a place of the robot's own world
    depth, normal = surface.under(Vec3(world[:, 0], world[:, 1], world[:, 2]))
    up = scene.up[2]
    heights = np.broadcast_to(
        np.asarray(
            depth / (normal.x * up[0] + normal.y * up[1] + normal.z * up[2]), dtype=np.float64
        ),
        x.size,
    )
    corner = (np.arange(NODES - 1)[:, None] * NODES + np.arange(NODES - 1)).ravel()
    faces = np.concatenate(
        [
            np.stack([corner, corner + NODES, corner + NODES + 1], axis=1),
            np.stack([corner, corner + NODES + 1, corner + 1], axis=1),
        ]
    )
    points = np.stack([flat[:, 0], flat[:, 1], heights], axis=1) @ scene.up
    patch = ScenePart(-1, "ground", smooth_normals(points, faces))
    return replace(scene, parts=(*scene.parts, patch)), float(heights.min()) - 0.05 * scene.size


def _surface(terrain: Mapping[str, Any]) -> Any:
    """The terrain of a description; None for a kind that is not known here."""
    if terrain.get("kind") not in TERRAINS:
        return None
    return TERRAINS.read(terrain, (), Reading(Mistakes("terrain")))
