"""The live viewer: sliders, runs, files that change, browsers that come and go."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import chromium, visit, wait
from test_report import EVIL, evil_robot

import ramify as rf
from ramify.view import live
from ramify.view.live import Viewer
from ramify.view.live_machine import STEP, LiveMachine, Pull
from ramify.view.live_panels import CONTROLS, dials, standing
from ramify.view.live_scene import Stage, ellipsoid, limit_arc, outline
from ramify.view.scene import make_scene
from ramify.view.surroundings import camera

PORT = 8510


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    with rf.view(rf.load("two_link"), port=PORT) as found:
        yield found


def positions(viewer: Viewer) -> Any:
    return np.array([node.position for node in viewer.stage.nodes])


# ---- without a browser ----


def test_sliders_and_poses(viewer: Viewer) -> None:
    assert viewer.server.get_host() == "127.0.0.1"
    assert viewer.url in repr(viewer)
    viewer.dials[0].value = 0.3
    wait(lambda: viewer.q[0] == 0.3)
    expected = viewer.stage.scene.poses(np.array([0.3, 0.0]))[1]
    assert np.allclose(positions(viewer), expected)
    viewer.show([-1.0, 0.5])
    assert [dial.value for dial in viewer.dials] == [-1.0, 0.5]
    assert np.allclose(positions(viewer), viewer.stage.scene.poses(np.array([-1.0, 0.5]))[1])
    with pytest.raises(rf.StateError, match="q"):
        viewer.show([1.0])


def test_what_is_shown(viewer: Viewer) -> None:
    viewer.panels.frames.value = True
    viewer.panels.ellipsoids.value = True
    viewer.panels.modules.value = False
    viewer.panels.grid.value = False
    stage = viewer.stage
    wait(
        lambda: (
            all(node.show_axes for node in stage.nodes)
            and all(blob.visible for blob in stage.blobs)
            and not stage.floor.visible
        )
    )
    wait(lambda: tuple(stage.parts[0][1].color) == (0x8F, 0xA3, 0xB8))


@pytest.mark.parametrize("control", list(CONTROLS))
def test_runs_are_simulated_and_played(viewer: Viewer, control: str) -> None:
    viewer.show([0.5, 0.5])
    viewer.panels.control.value = control
    viewer.panels.duration.value = 0.4
    viewer.run()
    wait(lambda: viewer.result is not None)
    result = viewer.result
    assert result is not None
    assert result.t[-1] == 0.4
    moved = np.abs(result.q[-1] - result.q[0]).max()
    assert (moved < 1e-6) == (
        control in ("gravity compensation", "hold this pose: computed torque")
    )
    wait(lambda: "audit passed" in viewer.panels.status.content)
    start = viewer.panels.clock.value
    wait(lambda: viewer.panels.clock.value != start)  # it plays
    viewer.panels.clock.value = 0.2  # dragged
    wait(
        lambda: (
            not viewer.playing.is_set()
            and np.allclose(viewer.q, result.q[np.searchsorted(result.t, 0.2)])
        )
    )


def test_a_run_can_be_stopped(viewer: Viewer) -> None:
    viewer.show([1.0, 1.0])
    viewer.panels.duration.value = 600.0
    viewer.run()
    time.sleep(0.5)
    viewer.stop()
    wait(lambda: not viewer.panels.run_button.disabled)
    assert viewer.result is None or viewer.result.t[-1] < 600.0
    assert not viewer.playing.is_set()


def test_what_goes_wrong_is_told(viewer: Viewer) -> None:
    viewer.panels.friction.value = -1.0
    viewer.run()
    wait(lambda: "damping" in viewer.panels.status.content)
    assert not viewer.panels.run_button.disabled


def test_what_cannot_be_shown_is_refused() -> None:
    m = rf.load("two_link")
    for port in (99999, -1, 8080.0, True, "8080"):
        with pytest.raises(rf.RamifyError, match="must be a whole number from 0"):
            rf.view(m, port=port)  # type: ignore[arg-type]
    for robot in (3, None):
        with pytest.raises(
            rf.ModelError, match="give the name of a built-in robot or the path of a robot file"
        ):
            rf.view(robot, port=PORT)  # type: ignore[arg-type]


def test_errors_nobody_foresaw_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nothing")

    path = tmp_path / "robot.yaml"
    text = "name: first\nlinks:\n  - {name: a, frame: {}, mass: 1, com: [1, 0, 0]}\n"
    path.write_text(text)
    with rf.view(path, port=PORT) as viewer:
        with monkeypatch.context() as patched:
            patched.setattr("ramify.view.live.simulate", broken)
            viewer.run()
            wait(lambda: "ZeroDivisionError: by nothing" in viewer.panels.status.content)
            assert not viewer.panels.run_button.disabled
        with monkeypatch.context() as patched:
            patched.setattr("ramify.view.live.load", broken)
            path.write_text(text + "# touched\n")
            wait(lambda: "ZeroDivisionError: by nothing" in viewer.message)
        path.write_text(text.replace("mass: 1", "mass: 3"))
        wait(lambda: viewer.model.mass == 3.0)  # the watcher lives


def test_a_result_is_played() -> None:
    run = rf.scenario("gripper_free_fall").run(t_end=0.5)
    with rf.view(run, port=PORT) as viewer:
        assert viewer.panels.clock.max == 0.5
        wait(lambda: viewer.panels.clock.value > 0.0)
    assert "closed" in repr(viewer)


def test_a_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    text = "name: first\nlinks:\n  - {name: a, frame: {}, mass: 1, com: [1, 0, 0]}\n"
    path.write_text(text)
    with rf.view(path, port=PORT) as viewer:
        assert viewer.model.name == "first"
        viewer.show([0.7])
        path.write_text("name: first\nlinks:\n  - {name: a, frame: {}, mass: -1}\n")
        wait(lambda: "mass" in viewer.message)
        assert "last good robot" in viewer.message
        assert "robot.yaml:3" in viewer.message
        assert viewer.panels.notice.visible
        assert viewer.model.mass == 1.0
        path.unlink()
        wait(lambda: "no such file" in viewer.message.lower())
        path.write_text(text.replace("mass: 1", "mass: 3"))
        wait(lambda: viewer.model.mass == 3.0)
        wait(
            lambda: not viewer.panels.notice.visible and viewer.q[0] == 0.7
        )  # the message goes, the pose stays
        path.write_text(
            text.replace("first", "second")
            + "  - {name: b, parent: a, frame: {xyz: [1, 0, 0]}, mass: 1, com: [1, 0, 0]}\n"
        )
        wait(lambda: viewer.model.nv == 2 and len(viewer.dials) == 2)


def test_robots_that_float_stand_on_the_ground() -> None:
    m = rf.load("planar_biped")
    R, r = m.kinematics(standing(m))
    heights = [
        float((R[b] @ np.array(at) + r[b])[2])
        for b, body in enumerate(m.bodies)
        for _, at in body.points
    ]
    assert min(heights) == pytest.approx(0.0, abs=1e-12)
    assert np.array_equal(standing(rf.load("kuka_kr5")), np.zeros(6))
    with rf.view(m, port=PORT) as viewer:
        assert viewer.panels.ground.value == "firm"


def test_sliders_keep_to_limits() -> None:
    builder = rf.Builder("limited").link("a", mass=1.0, com=(1, 0, 0), limits=[(-0.5, 2.0)])
    builder.link("b", "a", "ball", mass=1.0, inertia=(1, 1, 1))
    assert dials(builder.model())[0] == ("a", -0.5, 2.0)
    assert len(dials(builder.model())) == 4
    with rf.view(builder.model(), port=PORT) as viewer:
        viewer.dials[2].value = 0.6
        wait(lambda: bool(np.allclose(viewer.q[1:], [np.cos(0.3), 0.0, np.sin(0.3), 0.0])))


def test_sliders_keep_loops_closed() -> None:
    m = rf.load("four_bar")
    with rf.view(m, port=PORT) as viewer:
        assert np.abs(m.constraints(viewer.q, np.zeros(m.nv)).residual).max() < 1e-8
        before = viewer.q.copy()
        viewer.dials[0].value = float(before[0] + 0.2)
        wait(lambda: viewer.q[0] != before[0])
        assert viewer.q[0] == pytest.approx(before[0] + 0.2)
        assert np.abs(m.constraints(viewer.q, np.zeros(m.nv)).residual).max() < 1e-8
        assert np.abs(viewer.q[1:] - before[1:]).max() > 1e-3  # the others have followed


def test_inertia_ellipsoids_have_the_inertia() -> None:
    """A uniform ellipsoid of semi-axes a, b, c has m/5 (b^2 + c^2) about a, and so on."""
    body = (
        rf.Builder("one")
        .link("a", mass=2.0, com=(0.1, 0.2, 0.3), inertia=(0.4 * 13, 0.4 * 10, 0.4 * 5))
        .model()
        .bodies[0]
    )
    found = ellipsoid(body)
    assert found is not None
    assert np.allclose(found.points.max(axis=0) - body.com, [1.0, 2.0, 3.0], rtol=0.02)


def test_the_command_ends_cleanly() -> None:
    command = [
        sys.executable,
        "-m",
        "ramify",
        "view",
        "two_link",
        "--no-browser",
        "--port",
        str(PORT + 40),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("two_link: http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert out == err == ""


# ---- with browsers ----


def test_browsers_come_and_go() -> None:
    with chromium() as browser, rf.view(evil_robot(), port=PORT) as viewer:
        with visit(browser, viewer.url, width=820, height=200, home=viewer.url) as page:
            page.get_by_text(EVIL).first.wait_for()  # the name, as text
            page.get_by_text("Run from this pose").wait_for()
            with visit(browser, viewer.url, width=820, height=200, home=viewer.url) as other:
                other.get_by_text("Run from this pose").wait_for()
                wait(lambda: len(viewer.server.get_clients()) == 2)
                viewer.panels.duration.value = 2.0
                other.get_by_text("Run from this pose").click()
                wait(lambda: viewer.result is not None)
                viewer.panels.clock.value = 0.5  # and there it stays
                wait(lambda: not viewer.playing.is_set())
            wait(lambda: len(viewer.server.get_clients()) == 1)
            viewer.playing.set()
            before = viewer.panels.clock.value
            wait(
                lambda: viewer.panels.clock.value != before
            )  # goes on without the one that has left
            viewer.playing.clear()
            page.get_by_text("audit passed").wait_for()
        wait(lambda: len(viewer.server.get_clients()) == 0)
        viewer.show([0.1])


def test_the_viewer_talks_to_its_own_page_alone(viewer: Viewer) -> None:
    """As a browser would tell: a WebSocket from another page, or under another name, is refused."""
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    port = viewer.server.get_port()
    for origin, name in (
        ("http://evil.example", f"127.0.0.1:{port}"),
        ("null", f"127.0.0.1:{port}"),
        (f"http://localhost:{port + 1}", f"localhost:{port}"),
        (f"http://evil.example:{port}", f"evil.example:{port}"),
    ):
        with pytest.raises(InvalidStatus, match="403"), _socket(port) as line:
            connect(f"ws://{name}", sock=line, origin=origin)  # type: ignore[arg-type]
    for own in (f"http://127.0.0.1:{port}", None):
        with _socket(port) as line:
            connect(f"ws://127.0.0.1:{port}", sock=line, origin=own).close()  # type: ignore[arg-type]


def _socket(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=5.0)


def test_a_viser_that_cannot_be_guarded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "own_page_only", nullcontext)
    with pytest.raises(rf.RamifyError, match="lets any web page talk to the viewer"):
        rf.view(rf.load("two_link"), port=0)


def test_contact_forces_and_terrain_of_a_run() -> None:
    """Arrows of the forces at the row shown, the slope as a mesh; a slider takes the arrows away."""
    from ramify.contact import Firm, Slope

    fall = rf.scenario("quadruped_trot")
    slope = Firm(terrain=Slope(angle=0.05))
    run = rf.simulate(fall.robot, 0.3, q0=fall.q0, ground=slope, dt_out=0.05)
    assert run.contacts is not None
    row = int(np.linalg.norm(run.contacts.total_force, axis=1).argmax())
    with rf.view(run, port=PORT + 3) as viewer:
        viewer.playing.clear()
        stage = viewer.stage
        assert len(stage.extras) == 2
        pressed = np.linalg.norm(run.contacts.force[row], axis=1) > 1.0
        assert pressed.any()

        def shown() -> bool:  # the player may have been about to show another row
            viewer._seek(float(run.t[row]))
            ends = np.asarray(stage.forces.points)
            lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
            return len(ends) == pressed.sum() and bool((lengths > 1e-3).all())

        wait(shown)
        viewer.dials[6].value = 0.2
        wait(lambda: not stage.forces.visible)
        viewer.panels.forces.value = False
        viewer._seek(0.05)
        assert not stage.forces.visible
        viewer.play(run, start=False)  # again: nothing is left over
        assert len(viewer.stage.extras) == 2


# ---- live ----


def ball() -> Any:
    builder = rf.Builder("ball")
    sole = {"sole": (0.0, 0.0, -0.1)}
    builder.link("ball", joint="free", mass=2.0, inertia=(0.1, 0.1, 0.1), points=sole)
    return builder.model()


def test_a_machine_runs_as_a_rollout_does() -> None:
    m = rf.load("two_link")
    machine = LiveMachine(m, np.array([0.4, -0.2]), damping=0.3)
    machine.advance(30)
    steps = round(0.5 / STEP)
    same = rf.rollout(m, [0.4, -0.2], [0.0, 0.0], steps=steps, dt=STEP, damping=0.3)
    assert machine.time == pytest.approx(0.5)
    np.testing.assert_allclose(machine.q, same.q, atol=1e-12)
    np.testing.assert_allclose(machine.v, same.v, atol=1e-12)
    assert machine.contacts() is None
    found = machine.recording()
    assert len(found) == 31
    np.testing.assert_allclose(found.tau, 0.0)
    own = m.forward_dynamics(found.q, found.v, -0.3 * found.v)
    np.testing.assert_allclose(found.a, own, atol=1e-9)


def test_a_recording_has_accelerations_and_forces() -> None:
    """M a + h = tau + J'f at every row, through a change of mass and gain, a pull, and ground."""
    m = rf.load("quadruped", base="free")
    q = standing(m)
    machine = LiveMachine(m, q, CONTROLS["hold this pose: PD"](m, q), ground="firm")
    machine.advance(2)
    machine.scale("trunk.mass", 1.5)
    machine.scale("control.kp", 0.5)
    machine.advance(2, Pull(0, np.zeros(3), q[:3] + 0.2))
    found = machine.recording()
    assert found.contacts is not None
    trunk = m.bodies[0]
    heavy = rf.with_payload(m, trunk.name, 0.5 * trunk.mass, trunk.com)
    points = [(body.name, np.array(at)) for body in m.bodies for _, at in body.points]
    for row, robot in enumerate([m, m, heavy, heavy, heavy]):
        pushed = [robot.jacobian(found.q[row], name, at)[3:].T for name, at in points]
        felt = sum(J @ f for J, f in zip(pushed, found.contacts.force[row], strict=True))
        pull = {trunk.name: found.wrenches[trunk.name][row]}
        needed = robot.inverse_dynamics(found.q[row], found.v[row], found.a[row], pull)
        np.testing.assert_allclose(found.tau[row] + felt, needed, atol=1e-8)
    assert not found.tau[:, :6].any()
    assert found.wrenches.names == (trunk.name,)
    assert found.wrenches[trunk.name][1, 5] == 0.0
    assert found.wrenches[trunk.name][3, 5] > 10.0  # the pull, N


def test_no_effort_of_the_drives_clips_a_pull() -> None:
    weak = rf.Builder("weak").link(
        "rod", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.0), effort=0.01
    )
    machine = LiveMachine(weak.model(), np.zeros(1))
    machine.advance(20, Pull(0, np.array([0.0, 0.0, -1.0]), np.array([-1.0, 0.0, -0.5])))
    assert machine.q[0] > 0.5


def test_masses_change_and_pulls_act_while_it_runs() -> None:
    m = ball()
    machine = LiveMachine(m, np.array([0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0]), ground="firm")

    def load() -> float:
        contacts = machine.contacts()
        assert contacts is not None
        return float(contacts.force[0, :, 2].sum())

    machine.advance(60)
    assert load() == pytest.approx(2.0 * 9.81, rel=5e-3)
    machine.scale("ball.mass", 1.5)
    machine.advance(60)
    assert load() == pytest.approx(3.0 * 9.81, rel=5e-3)
    lift = Pull(0, np.zeros(3), np.array([0.0, 0.0, 5.0]))
    machine.advance(20, lift)
    assert machine.q[2] > 0.15  # three times its own weight lifts it, though it is heavier now
    assert load() == 0.0
    machine.advance(60)
    assert load() > 0.0


def test_a_machine_that_diverges_is_reported() -> None:
    m = rf.load("two_link")
    machine = LiveMachine(
        m, np.array([0.4, -0.2]), rf.control.PD(rf.motion.Hold((0.0, 0.0)), kp=50.0)
    )
    machine.scale("control.kp", 1e12)
    with pytest.raises(rf.SimulationError, match="the motion diverges at"):
        machine.advance(60)


def test_the_viewer_runs_live(viewer: Viewer) -> None:
    """Start, pull, change, pause, stop; then a body is dragged and the others follow."""
    viewer.show([0.5, 0.5])
    viewer.live.start()
    wait(lambda: viewer.live.pictures > 3)
    assert {slider.label for slider in viewer.live.sliders} == {"link1.mass ×", "link2.mass ×"}
    viewer.live.sliders[1].value = 2.0
    machine = viewer.live.machine
    assert machine is not None
    wait(lambda: machine.scales["link2.mass"] == 2.0)
    viewer.live.drag(1, np.array([1.0, 0.0, 0.0]), np.array([0.0, 3.0, 0.0]))
    wait(lambda: viewer.stage.pulled is not None and viewer.stage.pulled.visible)
    viewer.live.pause.value = True
    time.sleep(0.2)
    before = machine.time
    time.sleep(0.1)
    assert machine.time == before
    viewer.live.stop()
    assert not viewer.live.running
    assert viewer.live.sliders == []
    assert viewer.result is not None
    assert viewer.result.t[-1] == pytest.approx(machine.time)
    viewer.show([0.5, 0.5])
    reach = viewer.stage.scene.poses(np.array([0.3, 0.9]))
    tip = np.array([0.5, 0.0, 0.0])
    target = viewer.stage.scene.up.T @ (reach[0][1] @ tip + reach[1][1])
    viewer.live.drag(1, tip, target)
    assert np.allclose(viewer.q, [0.3, 0.9], atol=1e-3)


def test_marks() -> None:
    limited = rf.Builder("limited").link(
        "a", axis=(0, 1, 0), at=(1, 0, 0), mass=1.0, com=(1, 0, 0), limits=[(-0.5, 2.0)]
    )
    body = limited.model().bodies[0]
    found = limit_arc(body, 0.2)
    assert found is not None
    arc, hand = found
    assert np.allclose(np.linalg.norm(arc[:32] - [1, 0, 0], axis=-1), 0.2)
    first, last = arc[0, 0] - [1, 0, 0], arc[31, 1] - [1, 0, 0]
    assert first @ last == pytest.approx(0.04 * np.cos(2.5))
    assert hand.shape == (1, 2, 3)
    m = ball()
    with rf.view(m, port=PORT) as viewer:
        viewer.panels.mass.value = True
        viewer.panels.limits.value = True
        wait(lambda: viewer.stage.marks.mass.visible)
        viewer.show([0.3, 0.2, 0.5, 1, 0, 0, 0])
        assert np.allclose(viewer.stage.marks.mass.position, [0.3, 0.2, 0.5])
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 0]], dtype=float)
    sides = outline(square)
    assert sides.shape == (4, 2, 3)  # the point inside is no corner
    assert np.linalg.norm(sides[:, 1] - sides[:, 0], axis=1).sum() == pytest.approx(4.0)


@pytest.mark.parametrize(("robot", "across"), [("planar_biped", 1), ("planar_3r", None)])
def test_robots_in_a_plane_are_seen_from_its_side(robot: str, across: int | None) -> None:
    scene = make_scene(rf.load(robot))
    R, r = scene.poses(standing(scene.model))
    view = camera(scene, *scene.corners(R[None], r[None]))
    away = np.abs([np.cos(view.yaw), np.sin(view.yaw)])
    axis = int(away.argmax())
    assert away[axis] > 0.9
    assert across is None or axis == across


def test_the_next_robot_takes_the_place_of_the_last(viewer: Viewer) -> None:
    """Nothing of a longer robot is left on the stage of a shorter one."""
    scenes = [make_scene(rf.load(name)) for name in ("two_link", "kuka_kr5", "two_link")]
    shown = []
    for scene in scenes:
        Stage(viewer.server, scene, np.zeros(scene.model.nq))
        shown.append({*viewer.server.scene._handle_from_node_name})
    assert len(shown[1]) > len(shown[0])
    assert shown[2] == shown[0]
