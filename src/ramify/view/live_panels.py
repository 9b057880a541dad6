"""The panels of the live viewer, and what they offer for a robot: sliders, a first pose, grounds
and controllers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Any, Final

import numpy as np

from ramify.contact import LAWS
from ramify.contact.touching_points import can_touch, touching_points
from ramify.control.computed_torque import ComputedTorque
from ramify.control.controller import Controller
from ramify.control.gravity_compensation import GravityCompensation
from ramify.control.pd import PD
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.kernels.queries import kinematics
from ramify.model.robot import Robot, joint_entries
from ramify.motion.hold import Hold
from ramify.view.robot_solids import is_unattached, rest

GROUNDS: Final = ("none", *LAWS)


def hold(kind: Any) -> Callable[[Robot, Array], Controller]:
    """A controller that keeps the driven joints where they are."""

    def hold(model: Robot, q: Array) -> Controller:
        driven = [joint.name for joint in model.joints if joint.actuated and joint.dof]
        places = [i for name in driven for i in joint_entries(model, name, "q")]
        found: Controller = kind(Hold(q[places]))
        return found

    return hold


CONTROLS: Final[dict[str, Callable[[Any, Array], Any]]] = {
    "none": lambda model, q: None,
    "gravity compensation": lambda model, q: GravityCompensation(kd=0.0),
    "hold this pose: PD": hold(PD),
    "hold this pose: computed torque": hold(ComputedTorque),
}
"""Controllers on offer, by name: from the robot and the pose at which the run starts."""


def standing(model: Robot) -> Array:
    """q (nq): every joint at zero, loops closed; a floating robot with contact points stands on the
    lowest of them.
    """
    q = rest(model)
    root = model.bodies[0].joint
    points = touching_points(model, None) if can_touch(model) else []
    if points and any(model.gravity) and is_unattached(model) and root.kind != "planar":
        R, r = kinematics(model, q)
        up = -np.array(model.gravity) / np.linalg.norm(model.gravity)
        least = min(
            float((R[point.body] @ np.array(point.place) + r[point.body]) @ up) - point.radius
            for point in points
        )
        q[:3] += root.placement.rotation.T @ (-least * up)
    return q


def dials(model: Robot) -> list[tuple[str, float, float]]:
    """(name, least, largest) of a slider per degree of freedom: the joint's limits, else half a
    turn or a size of the robot.
    """
    ranges = []
    for joint in model.joints:
        plain = len(joint.limits) == joint.dof == joint.nq
        for k, (name, step) in enumerate(zip(joint.velocities, joint.steps, strict=True)):
            low, high = joint.limits[k] if plain else (-math.inf, math.inf)
            slide = 2.0 if joint.moves_base else 1.0
            reach = round(math.pi, 4) if step.rho else slide
            least = low if math.isfinite(low) else min(-reach, high - reach)
            most = high if math.isfinite(high) else max(reach, low + reach)
            ranges.append((name, least, most if most > least else least + 1e-3))
    return ranges


class Panels:
    """The title, the panel of simulations and, after ``add_playback``, those of playback and of
    what is shown; ``gui`` is viser's.
    """

    def __init__(self, gui: Any) -> None:
        self.gui = gui
        self.title = gui.add_html("")
        self.notice = gui.add_html("", visible=False)
        with gui.add_folder("Simulation"):
            self.control = gui.add_dropdown("control", list(CONTROLS))
            self.duration = gui.add_number("seconds", 3.0, min=0.01, max=600.0, step=0.5)
            hint = "what the robot's contact points stand on"
            self.ground = gui.add_dropdown("ground", GROUNDS, hint=hint)
            hint = "N m s/rad or N s/m in every joint"
            self.friction = gui.add_number("damping", 0.0, min=0.0, step=0.05, hint=hint)
            self.run_button = gui.add_button("Run from this pose", icon=_icon("PLAYER_PLAY"))
            self.stop_button = gui.add_button("Stop", icon=_icon("PLAYER_STOP"), disabled=True)
            self.status = gui.add_html(small("no run yet"))

    @property
    def chosen_ground(self) -> str | None:
        return None if self.ground.value == "none" else str(self.ground.value)

    def add_playback(self) -> None:
        """Add the panels below that of live runs."""
        gui = self.gui
        with gui.add_folder("Playback"):
            self.clock = gui.add_slider("time, s", 0.0, 1.0, 0.001, 0.0, disabled=True)
            self.play_button = gui.add_button("Play or pause", icon=_icon("PLAYER_PLAY"))
            speeds = ["0.1", "0.25", "0.5", "1", "2", "4"]
            self.speed = gui.add_dropdown("speed", speeds, initial_value="1")
            self.loop = gui.add_checkbox("loop", True)
        with gui.add_folder("Show"):
            self.frames = gui.add_checkbox("frames", False)
            self.ellipsoids = gui.add_checkbox("inertia ellipsoids", False)
            self.modules = gui.add_checkbox("modules in colour", True)
            self.grid = gui.add_checkbox("floor", True)
            self.forces = gui.add_checkbox("contact forces", True)
            self.mass = gui.add_checkbox("centre of mass and support", False)
            self.limits = gui.add_checkbox("joint limits", False)
            self.collisions = gui.add_checkbox("shapes that collide", False)
            hint = "shadows and reflections; they need a graphics card"
            self.shadows = gui.add_checkbox("shadows", False, hint=hint)
        self.styles = (
            self.frames, self.ellipsoids, self.modules, self.grid, self.mass, self.limits,
            self.collisions,
        )  # fmt: skip


def viser_module() -> Any:
    """viser. Raises RamifyError where it is missing."""
    try:
        import viser
    except ImportError:
        raise RamifyError(
            "the live viewer needs viser; install it with: pip install 'ramify[view]'"
        ) from None
    return viser


def _icon(name: str) -> Any:
    return getattr(viser_module().Icon, name, None)


def small(text: str) -> str:
    """A text in small letters."""
    look = "padding:0 1em;font-size:0.85em;overflow-wrap:anywhere"
    return f'<div style="{look}">{escape(text)}</div>'
