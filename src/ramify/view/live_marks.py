"""What the live viewer draws about a robot: its centre of mass, the support polygon of the points
that touch the ground, and the limits of its joints as arcs.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.model.body import Body
from ramify.model.frame import align_z
from ramify.motion.support import support_polygon
from ramify.view.scene import Scene

MASS: Final = (214, 64, 54)
SUPPORT: Final = (31, 111, 196)
LIMIT: Final = (120, 66, 160)
NOTHING: Final = np.zeros((1, 2, 3), dtype=np.float32)


class Marks:
    """The marks of a scene inside viser, hidden at first. ``nodes`` are the frames of the bodies,
    ``base`` that of the world.
    """

    def __init__(self, world: Any, scene: Scene, nodes: list[Any], base: Any) -> None:
        self.scene, size = scene, scene.size
        self.shown = False
        ball = {"radius": 0.02 * size, "color": MASS, "visible": False}
        self.mass = world.add_icosphere("/marks/mass", **ball)
        thick = {"thickness": 0.006 * size, "visible": False}
        self.plumb = world.add_line_segments("/marks/plumb", NOTHING, MASS, **thick)
        self.support = world.add_line_segments("/marks/support", NOTHING, SUPPORT, **thick)
        self.arcs = []
        for b, body in enumerate(scene.model.bodies):
            parent = nodes[body.parent] if body.parent >= 0 else base
            found = limit_arc(body, 0.07 * size) or ()
            for node, name, lines in zip((parent, nodes[b]), "ab", found, strict=False):
                place, points = f"{node.name}/limit{b}{name}", lines.astype(np.float32)
                self.arcs.append(world.add_line_segments(place, points, LIMIT, **thick))

    def style(self, mass: bool, limits: bool) -> None:
        self.shown = mass
        for node in (self.mass, self.plumb, self.support):
            node.visible = mass
        for arc in self.arcs:
            arc.visible = limits

    def place(self, q: Array, floor: float, touching: Array) -> None:
        """Move the marks to a posture; touching (n, 3): points that press on the ground, z up."""
        if not self.shown:
            return
        at = self.scene.up @ kernel(self.scene.model, "center_of_mass")(q)
        self.mass.position = at
        low = np.array([at[0], at[1], floor])
        self.plumb.points = np.array([[at, low]], dtype=np.float32)
        self.support.points = outline(touching)


def outline(points: Array) -> NDArray[np.float32]:
    """The sides (k, 2, 3) of the support polygon, at the height of the points."""
    if len(points) < 2:
        return NOTHING
    corners = support_polygon(points[:, :2])
    corners = np.column_stack([corners, np.full(len(corners), points[:, 2].mean())])
    return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1).astype(np.float32)


def limit_arc(body: Body, radius: float) -> tuple[Array, Array] | None:
    """The range of a hinge as an arc (k, 2, 3) in the parent's frame, and a hand (1, 2, 3) in the
    body's, which points at the angle; None where the joint has no limits.
    """
    joint = body.joint
    if joint.kind != "revolute" or len(joint.limits) != 1:
        return None
    low, high = joint.limits[0]
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return None
    turn = align_z(np.array(joint.axis))  # its z is the axis, its x where zero is drawn
    angle = np.linspace(low, high, 33)
    rim = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros(33)], axis=1) @ turn.T
    inlet = joint.outlet.inverse()
    rim = rim @ joint.placement.rotation.T + joint.placement.position
    centre = joint.placement.position
    arc = np.concatenate(
        [np.stack([rim[:-1], rim[1:]], axis=1), [[centre, rim[0]], [rim[-1], centre]]]
    )
    hand = inlet.rotation @ turn @ np.array([1.15 * radius, 0.0, 0.0]) + inlet.position
    return arc, np.array([[inlet.position, hand]])
