"""The live part of the viewer: the machine runs as time passes, the mouse pulls at bodies, masses
and gains have sliders. While nothing runs, a body that is dragged is followed by the others.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.model.robot import Robot
from ramify.motion.inverse_kinematics import inverse_kinematics
from ramify.motion.targets import Target
from ramify.runs.run_record import Run
from ramify.view.live_machine import PICTURES, LiveMachine, Pull
from ramify.view.live_panels import CONTROLS, Panels
from ramify.view.live_scene import Stage

LATE: Final = 6  # pictures: what is later is not made up for; the machine runs slower then


class Shown(Protocol):
    """What a live run needs of the viewer that shows it."""

    server: Any
    lock: Any
    model: Robot
    q: Array
    stage: Stage
    panels: Panels
    closed: threading.Event

    def stop(self) -> None: ...
    def show(self, q: ArrayLike) -> None: ...
    def play(self, result: Run, start: bool = True) -> None: ...
    def tell(self, text: str, alarm: bool = False) -> None: ...
    def show_live(self, q: Array, contacts: Contacts | None, pull: Pull | None) -> None: ...


def words_of(error: Exception) -> str:
    """What an error says to a user."""
    known = isinstance(error, RamifyError | OSError)
    return str(error) if known else f"{type(error).__name__}: {error}"


class LiveRun:
    """The panel "Live" of a viewer, and the thread that runs the machine."""

    def __init__(self, viewer: Shown) -> None:
        self.viewer = viewer
        gui = viewer.server.gui
        self.folder = gui.add_folder("Live")
        with self.folder:
            hint = "simulate as time passes; drag a body to pull at it"
            self.start_button = gui.add_button("Start or stop", hint=hint)
            self.pause = gui.add_checkbox("pause", False)
            self.status = gui.add_markdown("")
        self.start_button.on_click(lambda _: self.stop() if self.running else self.start())
        self.sliders: list[Any] = []
        self.machine: LiveMachine | None = None
        self.pull: Pull | None = None
        self.thread: threading.Thread | None = None
        self.ending = threading.Event()
        self.pictures = 0

    @property
    def running(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    # ---- the mouse ----

    def attach(self) -> None:
        """Let the bodies of the scene be dragged."""
        for part, mesh in self.viewer.stage.parts:
            if part.body >= 0:
                mesh.on_drag(self._dragging(part.body))

    def _dragging(self, body: int) -> Any:
        grip: dict[str, Array] = {}

        async def dragged(event: Any) -> None:  # asynchronous, so that the phases keep their order
            up = self.viewer.stage.scene.up
            if event.phase == "start":
                R, r = self.viewer.stage.scene.poses(self.viewer.q)
                grip["at"] = R[body].T @ (np.array(event.start_position) - r[body])
            if event.phase == "end" or "at" not in grip:
                grip.clear()
                self.pull = None
            else:
                self.drag(body, grip["at"], np.array(event.end_position) @ up)

        return dragged

    def drag(self, body: int, at: Array, target: Array) -> None:
        """Draw a point of a body, in its frame, to a target of the world: by a force while the
        machine runs, else by inverse kinematics.
        """
        if self.running:
            self.pull = Pull(body, at, target)
            return
        viewer = self.viewer
        goal = Target(viewer.model.bodies[body].name, position=target, point=at)
        try:
            posture = inverse_kinematics(
                viewer.model, goal, viewer.q, tolerance=1e-5, max_iterations=15, restarts=0,
                strict=False,
            )  # fmt: skip
        except RamifyError as error:
            viewer.tell(str(error), alarm=True)
            return
        viewer.show(posture.q)

    # ---- the machine ----

    def start(self) -> None:
        """Run the machine from the posture shown, at rest."""
        viewer = self.viewer
        with viewer.lock:
            if self.running:
                return
            viewer.stop()
            self.ending.clear()
            self.status.content = "compiling …"
            p = viewer.panels
            chosen = str(p.control.value), p.chosen_ground, float(p.friction.value)
            parts = (viewer.model, viewer.q.copy(), *chosen)
            self.thread = threading.Thread(target=self._run, args=parts, daemon=True)
            self.thread.start()

    def stop(self) -> None:
        """End it; the last minute is a run that can be played."""
        self.ending.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(timeout=5.0)

    def _run(self, model: Any, q: Array, control: str, ground: str | None, damping: float) -> None:
        words = ""
        try:
            self.machine = LiveMachine(model, q, CONTROLS[control](model, q), ground, damping)
            self.machine.advance()  # compiles
            self._add_sliders(self.machine)
            self._loop(self.machine)
        except Exception as error:  # whatever it was, it is shown, and it may be started again
            words = words_of(error)
        viewer, machine = self.viewer, self.machine
        with viewer.lock:
            for slider in self.sliders:
                slider.remove()
            self.sliders, self.machine, self.pull = [], None, None
            self.status.content = words
            if machine is not None and model is viewer.model and not viewer.closed.is_set():
                viewer.play(machine.recording(), start=False)

    def _add_sliders(self, machine: LiveMachine) -> None:
        with self.viewer.lock, self.folder:
            for name in machine.scales:
                slider = self.viewer.server.gui.add_slider(f"{name} ×", 0.1, 4.0, 0.05, 1.0)
                slider.on_update(lambda _, n=name, s=slider: machine.scale(n, float(s.value)))
                self.sliders.append(slider)

    def _loop(self, machine: LiveMachine) -> None:
        viewer, size = self.viewer, self.viewer.stage.scene.size
        due = shown = time.perf_counter()
        count, begun = 0, machine.time
        while not self.ending.is_set() and not viewer.closed.is_set():
            now = time.perf_counter()
            if self.pause.value:
                due = now
                self.ending.wait(0.05)
                continue
            pictures = int((now - due) * PICTURES)
            if pictures < 1:
                self.ending.wait(max(due + 1.0 / PICTURES - now, 0.0))
                continue
            due = due + pictures / PICTURES if pictures <= LATE else now
            machine.advance(min(pictures, LATE), self.pull, size)
            viewer.show_live(machine.q, machine.contacts(), self.pull)
            self.pictures += 1
            count += 1
            if now - shown > 1.0:
                speed = (machine.time - begun) / (now - shown)
                rate = f"{count / (now - shown):.0f} pictures/s"
                self.status.content = f"{machine.time:.1f} s, {speed:.0%} of real time, {rate}"
                viewer.show(machine.q)  # the sliders of the joints too
                count, begun, shown = 0, machine.time, now
