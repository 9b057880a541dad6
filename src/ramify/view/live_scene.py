"""A robot's scene inside viser: meshes below a frame for every body, which is all that moves; and
marks: its centre of mass, the support polygon of the points that touch the ground, and the limits
of its joints as arcs.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.model.body import Body
from ramify.model.frame import Frame, align_z
from ramify.model.shape import Shape, rgb
from ramify.motion.support import support_polygon
from ramify.runs.run_record import Run
from ramify.view.geometry import Triangles, direction_by_angles, shape_triangles, unit_quaternions
from ramify.view.scene import MODULES, PLAIN, Scene, collision_parts
from ramify.view.surroundings import Arrows, camera, contact_arrows, grounded

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


FORCE: Final = "#e0483e"
CORNERS: Final = 12  # of round shapes: without a graphics card, every one takes time


class Stage:
    """What a viser server shows of a scene, placed at q (nq) first. Names of nodes are numbers: a
    robot's own may hold anything.
    """

    def __init__(self, server: Any, scene: Scene, q: Array) -> None:
        self.server, self.scene = server, scene
        world = server.scene
        world.reset()
        world.set_up_direction("+z")
        self.lights = [
            world.add_light_hemisphere("/lights/sky", ground_color=(150, 150, 160), intensity=2.2),
            world.add_light_directional("/lights/sun", position=(4.0, -3.0, 8.0), intensity=1.8),
        ]
        R, r = scene.poses(q)
        low, high = scene.corners(R[None], r[None])
        view = camera(scene, low, high)
        self.floor = world.add_grid(
            "/floor", infinite_grid=True, cell_size=view.cell, section_size=5 * view.cell,
            position=(0.0, 0.0, view.floor), fade_distance=30 * view.size, shadow_opacity=0.25,
        )  # fmt: skip
        length = 0.1 * scene.size
        thick = {"axes_length": length, "axes_radius": 0.04 * length}
        thick["origin_radius"] = 0.07 * length
        self.nodes = [
            world.add_frame(f"/robot/{b}", show_axes=False, **thick)
            for b in range(len(scene.model.bodies))
        ]
        base = world.add_frame("/robot/base", show_axes=False, wxyz=unit_quaternions(scene.up))
        self.base = base
        self.marks = Marks(world, scene, self.nodes, base)
        self.touching = np.zeros((0, 3))
        self.extras: list[Any] = []
        self.arrows: Arrows | None = None
        self.pushes: Array = np.zeros((0, 0, 3))
        self.forces: Any = None
        self.pulled: Any = None
        self.parts, self.blobs = [], []
        for k, part in enumerate(scene.parts):
            node = self.nodes[part.body] if part.body >= 0 else base
            mesh = _mesh(world, f"{node.name}/part{k}", part.triangles, scene.colour(part))
            self.parts.append((part, mesh))
        for b, body in enumerate(scene.model.bodies):
            blob = ellipsoid(body)
            if blob is not None:
                colour = MODULES[scene.module_of[b] % len(MODULES)]
                self.blobs.append(_mesh(world, f"/robot/{b}/inertia", blob, colour, opacity=0.45))
        self.solids = []
        for k, part in enumerate(collision_parts(scene.model, CORNERS)):
            name = f"/robot/{part.body}/collision{k}"
            self.solids.append(_mesh(world, name, part.triangles, FORCE, opacity=0.35))
        away = 1.5 * view.size * direction_by_angles(view.yaw, view.pitch)
        server.initial_camera.position = tuple(np.array(view.target) + away)
        server.initial_camera.look_at = view.target

    def light(self, rich: bool) -> None:
        """Light the scene with shadows and reflections, or plainly, which any computer does at 60
        pictures a second.
        """
        world = self.server.scene
        world.configure_environment_map("warehouse" if rich else None)
        world.configure_default_lights(rich, cast_shadow=rich)
        for lamp in self.lights:
            lamp.visible = not rich

    def style(
        self, frames: bool, ellipsoids: bool, modules: bool, floor: bool, mass: bool, limits: bool,
        collisions: bool,
    ) -> None:  # fmt: skip
        """Show frames, inertia ellipsoids (the robot goes pale then), the colours of the modules,
        the floor, the centre of mass over its support, the joints' limits, the shapes that collide
        (pale, too).
        """
        self.marks.style(mass, limits)
        for node in self.nodes:
            node.show_axes = frames
        for blob in self.blobs:
            blob.visible = ellipsoids
        for solid in self.solids:
            solid.visible = collisions
        for part, mesh in self.parts:
            plain = self.scene.painted or part.kind != "link"
            own = self.scene.colour(part) if plain else PLAIN
            mesh.color = rgb(self.scene.module_colour(part) if modules else own)
            mesh.opacity = 0.25 if ellipsoids or collisions else None
        self.floor.visible = floor

    def equip(self, result: Run) -> None:
        """Add what a run has beside the robot: its ground where that is not level, its floor's
        height, and arrows of the contact forces.
        """
        self.bare()
        R, r = self.scene.poses(result.q)
        low, high = self.scene.corners(R, r)
        scene, height = grounded(self.scene, result, low, high)
        world = self.server.scene
        for k, part in enumerate(scene.parts[len(self.scene.parts) :]):
            name = f"{self.base.name}/ground{k}"
            self.extras.append(_mesh(world, name, part.triangles, scene.colour(part)))
        if height is not None:
            self.floor.position = (0.0, 0.0, height)
        self._feel(result.contacts)

    def feel(self, contacts: Contacts | None, show: bool, pull: Array | None) -> None:
        """Arrows of the contact forces of one moment, and of a pull (2, 3) from a point to its
        target, z up.
        """
        up = self.scene.up
        if self.pulled is None:
            self.pulled = self.server.scene.add_line_segments(
                "/pull", NOTHING, rgb(FORCE), thickness=0.01
            )
            self.extras.append(self.pulled)
        self.pulled.visible = pull is not None
        if pull is not None:
            self.pulled.points = (pull @ up.T)[None].astype(np.float32)
        if contacts is not None:
            self._feel(contacts)
            self.push(0 if show else None)

    def _feel(self, contacts: Contacts | None) -> None:
        """Take over contact forces, and add their arrows to the scene."""
        self.arrows = contact_arrows(contacts, self.scene.up)
        if self.arrows is None:
            return
        self.pushes = self.arrows.drawn(self.scene)
        if self.forces is None:
            size = self.scene.size
            self.forces = self.server.scene.add_arrows(
                "/forces", NOTHING, rgb(FORCE), visible=False,
                shaft_radius=0.01 * size, head_radius=0.03 * size, head_length=0.05 * size,
            )  # fmt: skip
            self.extras.append(self.forces)

    def bare(self) -> None:
        """Take away what a run added."""
        for node in self.extras:
            node.remove()
        self.extras, self.arrows, self.forces, self.pulled = [], None, None, None
        self.touching = np.zeros((0, 3))

    def push(self, row: int | None) -> None:
        """Show the contact forces at a row of the run; None: none."""
        if self.arrows is None or self.forces is None:
            return
        k = 0 if row is None else row
        self.touching = self.arrows.position[k][self.arrows.force[k].any(axis=-1)]
        pressed = self.pushes[k].any(axis=-1) & (row is not None)
        if pressed.any():
            start = self.arrows.position[k][pressed]
            ends = np.stack([start, start + self.pushes[k][pressed]], axis=1)
            self.forces.points = ends.astype(np.float32)
        self.forces.visible = bool(pressed.any())

    def pose(self, q: Array) -> None:
        """Put every body where it is at q."""
        R, r = self.scene.poses(q)
        turns = unit_quaternions(R)
        for b, node in enumerate(self.nodes):
            node.wxyz, node.position = turns[b], r[b]
        self.marks.place(q, float(self.floor.position[2]), self.touching)


def ellipsoid(body: Body) -> Triangles | None:
    """The uniform ellipsoid of a body's mass and inertia; None for a massless one. A thin one keeps
    a sliver of width.
    """
    if body.mass <= 0.0:
        return None
    moments, axes = np.linalg.eigh(body.inertia)
    squares = 2.5 * (moments.sum() - 2.0 * moments) / body.mass
    half = np.sqrt(np.maximum(squares, 0.0))
    if not half.any():
        return None
    half = np.maximum(half, 0.02 * half.max())
    axes = axes if np.linalg.det(axes) > 0 else -axes
    ball = shape_triangles(Shape("sphere", (1.0,)), around=20)
    normals = ball.normals / half
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return Triangles(ball.points * half, normals, ball.faces).seen_from(Frame(axes, body.com))


def _mesh(world: Any, name: str, of: Triangles, colour: str, opacity: float | None = None) -> Any:
    points, faces = of.points.astype(np.float32), of.faces.astype(np.uint32)
    look = {"color": rgb(colour), "opacity": opacity, "side": "double"}
    return world.add_mesh_simple(name, points, faces, **look)
