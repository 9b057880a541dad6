"""The live viewer: a robot in the browser, with a slider for every degree of freedom, simulations
and playback. Built on viser.

The server listens on this machine only, and talks to its own page only. Everything a browser shows
is kept here, so any number of them may come and go.
"""

from __future__ import annotations

import io
import os
import threading
import time
from contextlib import redirect_stdout, suppress
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.contact_record import Contacts
from ramify.contact.touching_points import can_touch
from ramify.core.arrays import Array, flag
from ramify.core.errors import RamifyError, SimulationError, StateError
from ramify.core.file_path import path_of
from ramify.files.load import load
from ramify.kernels.queries import kinematics
from ramify.loops.assemble import assemble
from ramify.loops.mobility import freedom_text
from ramify.model.configuration import checked
from ramify.model.robot import Robot
from ramify.runs.audit import audited
from ramify.runs.run_record import Run, the_run
from ramify.runs.simulate import simulate
from ramify.view.live_machine import Pull
from ramify.view.live_origin import must_refuse_strangers, own_page_only
from ramify.view.live_panels import CONTROLS, Panels, dials, small, standing, viser_module
from ramify.view.live_run import LiveRun, words_of
from ramify.view.live_scene import CORNERS, Stage
from ramify.view.robot_solids import is_unattached
from ramify.view.scene import make_scene

HOST: Final = "127.0.0.1"
RATE: Final = 30.0  # pictures per second of playback
LOOK: Final = 0.4  # s between looks at the robot's file


class Viewer:
    """A robot in the browser at ``url``. ``show`` poses it, ``play`` plays a run, ``close`` ends
    it; also a context manager.
    """

    def __init__(self, robot: Robot | str | os.PathLike[str], *, port: int = 8080) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
            raise RamifyError(
                f"port {port!r} must be a whole number from 0 (any free port) to 65535"
            )
        viser = viser_module()
        self.path = path_of(robot) if isinstance(robot, str | os.PathLike) else None
        # before the file is read, so that no change is missed
        self.stamp = _stamp(self.path) if self.path is not None else None
        self.model = robot if isinstance(robot, Robot) else load(robot)
        self.lock = threading.RLock()
        self.closed, self.stopping, self.playing = (threading.Event() for _ in range(3))
        self.worker: threading.Thread | None = None
        self.result: Run | None = None
        self.q = standing(self.model)
        self.silent = False  # while values are set from here, their own callbacks stay quiet
        self.message = ""
        with redirect_stdout(io.StringIO()), own_page_only():  # viser prints a banner
            self.server = viser.ViserServer(host=HOST, port=port, label="ramify", verbose=False)
            try:
                must_refuse_strangers(HOST, self.server.get_port())
            except BaseException:
                self.server.stop()
                raise
        self.server.gui.configure_theme(
            show_logo=False, show_share_button=False, control_width="medium"
        )
        self._build_panels()
        self._load(self.model)
        self.threads = [threading.Thread(target=self._play_loop, daemon=True)]
        if self.path is not None and self.path.is_file():
            self.threads.append(threading.Thread(target=self._watch_loop, daemon=True))
        for thread in self.threads:
            thread.start()

    # ---- what others call ----

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server.get_port()}"

    def show(self, q: ArrayLike) -> None:
        """Pose the robot. Raises StateError where q does not fit."""
        posture = checked(self.model, "q", q, self.model.nq)
        if posture.ndim != 1:
            raise StateError(f"q has shape {posture.shape}; one posture is shown at a time")
        self._pose(posture)

    def play(self, result: Run, start: bool = True) -> None:
        """Put a run on the time slider, and play it."""
        the_run(result)
        self.live.stop()
        with self.lock:
            if result.model is not self.model:
                self._load(result.model)
            self.result = result
            with self.server.atomic():
                self.stage.equip(result)
            self._set(self.panels.clock, "max", max(float(result.t[-1]), 1e-3))
            self._set(self.panels.clock, "disabled", False)
            self._seek(float(result.t[0]))
        if start:
            self.playing.set()

    def show_live(self, q: Array, contacts: Contacts | None, pull: Pull | None) -> None:
        """Pose the robot as a machine that runs has it, with what it feels."""
        with self.lock, self.server.atomic():
            self.q = np.array(q, dtype=np.float64)
            self.stage.pose(self.q)
            ends = None
            if pull is not None:
                R, r = kinematics(self.model, self.q)
                ends = np.stack([R[pull.body] @ pull.at + r[pull.body], pull.target])
            self.stage.feel(contacts, bool(self.panels.forces.value), ends)

    def wait(self) -> None:
        """Stay until the viewer is closed or Ctrl-C is pressed, which closes it."""
        with suppress(KeyboardInterrupt), self:
            while not self.closed.wait(0.5):
                pass

    def close(self) -> None:
        """End the server and all that runs."""
        if self.closed.is_set():
            return
        self.closed.set()
        self.stopping.set()
        self.playing.clear()
        self.live.stop()
        for thread in [*self.threads, *([self.worker] if self.worker else [])]:
            if thread is not threading.current_thread():
                thread.join(timeout=5.0)
        with redirect_stdout(io.StringIO()):
            self.server.stop()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self.closed.is_set() else self.url
        return f"<ramify.Viewer {self.model.name!r}: {where}>"

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank">{escape(self.model.name)}: {self.url}</a>'

    # ---- panels ----

    def _build_panels(self) -> None:
        p = self.panels = Panels(self.server.gui)
        self.live = LiveRun(self)
        p.add_playback()
        self.joints: Any = None
        p.run_button.on_click(lambda _: self.run())
        p.stop_button.on_click(lambda _: self.stop())
        p.play_button.on_click(
            lambda _: self.playing.clear() if self.playing.is_set() else self.playing.set()
        )
        p.clock.on_update(lambda _: self._dragged())
        for box in p.styles:
            box.on_update(lambda _: self._restyle())
        p.forces.on_update(lambda _: self._seek(float(p.clock.value)))
        p.shadows.on_update(lambda _: self.stage.light(bool(p.shadows.value)))

    def _load(self, model: Robot) -> None:
        """Show a robot: its parts and its sliders, at the pose the last one had where it fits."""
        with self.lock, self.server.atomic():
            scene = make_scene(model, CORNERS)
            same = model.coordinates == self.model.coordinates
            self.model, self.result = model, None
            self.playing.clear()
            self.stage = Stage(self.server, scene, standing(model))
            self._set(self.panels.modules, "value", not scene.painted)
            self.stage.light(bool(self.panels.shadows.value))
            self.live.attach()
            self._restyle()
            if self.joints is not None:
                self.joints.remove()
            self.joints = self.server.gui.add_folder("Joints", expand_by_default=True)
            with self.joints:
                self.zero_button = self.server.gui.add_button("Zero")
                self.random_button = self.server.gui.add_button("Random")
                self.dials = [self._dial(*row) for row in dials(model)]
            self.zero_button.on_click(lambda _: self._pose(standing(self.model)))
            self.random_button.on_click(
                lambda _: self._pose(self.model.random(int(time.time_ns() % 2**31))[0])
            )
            facts = f"{len(model.bodies)} bodies, {freedom_text(model)}, {model.mass:.4g} kg"
            words = f"<b>{escape(model.name)}</b><br>{escape(facts)}"
            self.panels.title.content = f'<div style="padding:0.2em 1em">{words}</div>'
            self._set(self.panels.clock, "disabled", True)
            ground = self.panels.ground
            ground.disabled = not can_touch(model)
            stands = is_unattached(model) and not ground.disabled and any(model.gravity)
            self._set(ground, "value", "firm" if stands else "none")
            self.tell("; ".join(scene.notes))
        self._pose(self.q if same else standing(model))

    def _dial(self, name: str, low: float, high: float) -> Any:
        step = max((high - low) / 1000.0, 1e-4)
        dial = self.server.gui.add_slider(name, low, high, step, min(max(0.0, low), high))
        dial.on_update(lambda _: self._dialled())
        return dial

    def tell(self, text: str, alarm: bool = False) -> None:
        """A message above the panels; none where the text is empty."""
        colour = "#c62828" if alarm else "#5d6a79"
        look = f"padding:0.2em 1em;color:{colour};white-space:pre-wrap;overflow-wrap:anywhere"
        self.panels.notice.content = f'<div style="{look}">{escape(text)}</div>'
        self.panels.notice.visible = bool(text)
        self.message = text

    def _set(self, handle: Any, name: str, value: Any) -> None:
        """Set a value from here: its own callback stays quiet."""
        with self.lock:
            before, self.silent = self.silent, True
            try:
                if getattr(handle, name) != value:
                    setattr(handle, name, value)
            finally:
                self.silent = before

    # ---- the scene ----

    def _restyle(self) -> None:
        with self.lock, self.server.atomic():
            self.stage.style(*(box.value for box in self.panels.styles))
            if len(self.q) == self.model.nq:
                self.stage.pose(self.q)

    def _pose(self, q: Array, dials_too: bool = True) -> None:
        with self.lock, self.server.atomic():
            self.q = np.array(q, dtype=np.float64)
            self.stage.pose(self.q)
            if dials_too:
                for dial, value in zip(self.dials, self._along(), strict=True):
                    self._set(dial, "value", float(min(max(value, dial.min), dial.max)))

    def _along(self) -> Array:
        """How far the pose is from the neutral one along every degree of freedom: what the sliders
        show.
        """
        return self.model.difference(self.model.neutral(), self.q)

    def _dialled(self) -> None:
        """A slider was moved: the pose is the neutral one, moved along every degree of freedom by
        its slider's value.
        """
        with self.lock:
            if self.silent:
                return
            self.playing.clear()
            self.stage.push(None)
            x = np.array([dial.value for dial in self.dials])
            if self.model.loops:
                self._close(x)
            else:
                self._pose(self.model.integrate(self.model.neutral(), x, 1.0), dials_too=False)

    def _close(self, x: Array) -> None:
        """Pose a robot with loops by its sliders: the one that moved leads, and the other
        coordinates follow as the loops require.
        """
        ends = np.array([(dial.min, dial.max) for dial in self.dials])
        leader = int(np.abs(x - np.clip(self._along(), *ends.T)).argmax())
        try:
            lead = {self.model.velocities[leader]: float(x[leader])}
            q = np.asarray(assemble(self.model, lead, guess=self.q).q)
            self.tell("")
        except RamifyError as error:
            self.tell(str(error), alarm=True)
            q = self.q
        self._pose(q)

    # ---- runs ----

    def run(self) -> None:
        """Simulate from the pose shown, with the controller chosen, and play what comes out."""
        self.live.stop()
        with self.lock:
            if self.worker is not None and self.worker.is_alive():
                return
            self.stopping.clear()
            self.playing.clear()
            p = self.panels
            p.stop_button.disabled, p.run_button.disabled = False, True
            p.status.content = small("simulating …")
            model, q, name = self.model, self.q.copy(), str(p.control.value)
            options = {"damping": float(p.friction.value), "t_end": float(p.duration.value)}
            job = (model, q, name, options | {"ground": p.chosen_ground})
            self.worker = threading.Thread(target=self._simulate, args=job, daemon=True)
            self.worker.start()

    def stop(self) -> None:
        """End the simulation, keeping what was computed, and the playback."""
        self.stopping.set()
        self.playing.clear()

    def _simulate(self, model: Robot, q: Array, name: str, options: dict[str, Any]) -> None:
        def stopped(t: float, q: Array, v: Array) -> float:
            if self.stopping.is_set():
                raise KeyboardInterrupt  # which ends a simulation and keeps its rows so far
            return 1.0

        result, words = None, ""
        try:
            control = CONTROLS[name](model, q)
            options |= {"dt_out": 0.02, "rtol": 1e-6, "atol": 1e-8, "events": {"stop": stopped}}
            result = simulate(model, q0=q, control=control, **options)
        except SimulationError as error:
            result, words = error.result, str(error)  # type: ignore[assignment]
        except Exception as error:  # whatever it was, it is shown, and another run may be started
            words = words_of(error)
        with self.lock:
            self.panels.stop_button.disabled, self.panels.run_button.disabled = True, False
            if result is not None and model is self.model and not self.closed.is_set():
                self.play(result, start=not self.stopping.is_set())
                took = f"{result.t[-1]:.4g} s in {result.stats['wall_time']:.2f} s"
                words = words or f"{result.status}: {took}, audit {audited(result).verdict}"
            self.panels.status.content = small(words or "the robot has changed; run again")

    def _seek(self, t: float) -> None:
        result = self.result
        if result is None:
            return
        k = int(np.searchsorted(result.t, t).clip(0, len(result) - 1))
        self._set(self.panels.clock, "value", float(min(max(t, 0.0), self.panels.clock.max)))
        self._pose(result.q[k])
        self.stage.push(k if self.panels.forces.value else None)

    def _dragged(self) -> None:
        with self.lock:
            if not self.silent:
                self.playing.clear()
                self._seek(float(self.panels.clock.value))

    def _play_loop(self) -> None:
        before = time.perf_counter()
        while not self.closed.is_set():
            if not self.playing.wait(timeout=0.2):
                before = time.perf_counter()
                continue
            now = time.perf_counter()
            with self.lock:
                if self.result is None:
                    self.playing.clear()
                    continue
                t = float(self.panels.clock.value) + (now - before) * float(self.panels.speed.value)
                end = float(self.result.t[-1])
                if t > end and self.panels.loop.value:
                    t = 0.0
                elif t > end:
                    t = end
                    self.playing.clear()
                self._seek(t)
            before = now
            self.closed.wait(1.0 / RATE)

    # ---- the robot's file ----

    def _watch_loop(self) -> None:
        assert self.path is not None
        while not self.closed.wait(LOOK):
            now = _stamp(self.path)
            if now != self.stamp:
                self.stamp = now
                self.reload()

    def reload(self) -> None:
        """Read the robot's file again. Where it has mistakes they are shown, and the last good
        robot stays.
        """
        assert self.path is not None
        try:
            model = load(self.path)
        except Exception as error:  # whatever it was, it is shown, and the file is watched on
            words = "The file was not taken over; the last good robot is shown."
            self.tell(f"{words}\n{words_of(error)}", alarm=True)
            return
        self.stop()
        self.live.stop()
        try:
            self._load(model)
        except Exception as error:
            words = "The file was read, but the robot cannot be shown."
            self.tell(f"{words}\n{words_of(error)}", alarm=True)


def view(
    robot: Robot | Run | str | os.PathLike[str],
    *,
    port: int = 8080,
    browser: bool = False,
    block: bool = False,
) -> Viewer:
    """Show a robot, or a run, in the browser: a server on this machine only, whose address is
    ``viewer.url``.

    robot: a model, a result, a built-in name, or a robot file, which is read again whenever it
    changes on disk. port: the next free one where it is in use; 0 for any. browser: open a window.
    block: stay until Ctrl-C; otherwise the viewer runs beside the program until ``viewer.close()``.
    Needs the extra ``ramify[view]``; RamifyError without it, and for an impossible port.
    """
    flag("browser", browser, RamifyError)
    flag("block", block, RamifyError)
    viewer = Viewer(robot.model if isinstance(robot, Run) else robot, port=port)
    if isinstance(robot, Run):
        viewer.play(robot)
    if browser:
        import webbrowser

        webbrowser.open(viewer.url)
    if block:
        viewer.wait()
    return viewer


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
