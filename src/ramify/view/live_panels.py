"""The panels of the live viewer: their buttons, sliders and boxes, without what these do."""

from __future__ import annotations

from html import escape
from typing import Any

from ramify.core.errors import RamifyError
from ramify.view.live_choices import CONTROLS, GROUNDS


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
            hint = "shadows and reflections; they need a graphics card"
            self.shadows = gui.add_checkbox("shadows", False, hint=hint)
        self.styles = (
            self.frames, self.ellipsoids, self.modules, self.grid, self.mass, self.limits,
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
