"""Many robots of a rollout in one picture: a cell each, drawn as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.api.rollouts import Rollout
from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.model.robot import Robot

COLUMNS, ROWS, CELL, FINE = 12, 6, (80, 100), 2
"""Cells of the picture, their size in pixels, and how much finer they are drawn."""
LOOKS: Final = {
    "light": ("#f6f7f9", "#b9c2cc", "#1f6fc4", "#c2571a"),
    "dark": ("#12161b", "#4c5967", "#6db1f5", "#f0a35e"),
}
"""Background, ground, limbs to the left, limbs to the right."""


def herd_frames(robot: Robot, run: Rollout, theme: str, frames: int) -> Iterator[NDArray[np.uint8]]:
    """Pictures of the first robots of a rollout with a history, over its samples."""
    from PIL import Image, ImageDraw

    back, ground, *colours = LOOKS[theme]
    shown = COLUMNS * ROWS
    (w, h), samples = CELL, run.q.shape[1]
    for row in np.linspace(0, samples - 1, frames).round().astype(int):
        lines = _lines(robot, run.q[:shown, row])
        picture = Image.new("RGB", (FINE * w * COLUMNS, FINE * h * ROWS), back)
        draw = ImageDraw.Draw(picture)
        for i in range(min(shown, len(run.q))):
            left, base = FINE * w * (i % COLUMNS), FINE * h * (i // COLUMNS + 0.86)
            draw.line([left + 4, base, left + FINE * w - 4, base], fill=ground, width=FINE)
            place = np.array([left + FINE * w / 2, base])
            for line, side in lines:
                ends = place + FINE * w * 0.55 * line[i] * (1.0, -1.0)
                draw.line([*map(tuple, ends)], fill=colours[side], width=3 * FINE)
        yield np.asarray(picture.resize((w * COLUMNS // 2, h * ROWS // 2), Image.Resampling.BOX))


def _lines(robot: Robot, q: Array) -> list[tuple[Array, int]]:
    """The links as lines (N, 2, 2) to the right and up, seen from ahead and aside, and their
    colours. A line goes from a body to the next, or to a point of its last one.
    """
    pose: Any = kernel(robot, "kinematics")(q)
    R, r = pose.rotation, pose.position
    middle = r[:, 0, :2].copy()

    def seen(at: Array) -> Array:
        x, y = (at[:, :2] - middle).T
        return np.stack([0.8 * x - 0.45 * y, at[:, 2] - 0.12 * x - 0.2 * y], axis=1)

    found = []
    for k, body in enumerate(robot.bodies):
        start = r[:, k]
        children = [j for j, other in enumerate(robot.bodies) if other.parent == k]
        ends = [r[:, j] for j in children]
        if not children:
            ends = [start + R[:, k] @ np.array(point) for _, point in body.points[-1:]]
        found += [(np.stack([seen(start), seen(end)], axis=1), k % 2) for end in ends]
    return found
