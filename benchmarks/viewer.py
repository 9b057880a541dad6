"""The live viewer: a quadruped on the ground, pushed by the mouse, in a browser without a screen.

Run ``python benchmarks/viewer.py [SECONDS] [WIDTHxHEIGHT]`` (10 s, 960x540). It prints how many
pictures the server computes and the page draws in a second, how much of real time passes in the
machine, and the milliseconds of processor time that a picture costs. Chromium is the system's, or
the one in RAMIFY_BROWSER; without a graphics card it draws in software, on the same cores. The last
line is the bound: the same window with a single moving frame in it, and no robot.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import viser
from scipy.spatial.transform import Rotation

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browsing import chromium, wait

import ramify as rf

COUNT = (
    "(() => { window.drawn = 0; const f = () => { drawn++; requestAnimationFrame(f); }; f(); })()"
)


def cpu_of_children() -> float:
    """Seconds of processor time of all processes below this one (Linux)."""
    times: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        times[int(entry.parent.name)] = int(fields[1]), used
    below, found = {os.getpid()}, 0.0
    while new := {pid for pid, (parent, _) in times.items() if parent in below} - below:
        found += sum(times[pid][1] for pid in new)
        below |= new
    return found


def pixel(viewer: Any, width: int, height: int) -> tuple[float, float]:
    """Where the page shows the trunk."""
    camera = next(iter(viewer.server.get_clients().values())).camera
    _, r = viewer.stage.scene.poses(viewer.q)
    turn = Rotation.from_quat(camera.wxyz, scalar_first=True)
    x, y, z = turn.inv().apply(r[0] - camera.position)
    far = 0.5 * height / np.tan(0.5 * camera.fov)
    return 0.5 * width + far * x / z, 0.5 * height + far * y / z


def push(page: Any, viewer: Any, width: int, height: int, end: float) -> int:
    """Drag the robot about with the mouse until a time; how many pushes have held it."""
    held = 0
    while time.perf_counter() < end:
        x, y = pixel(viewer, width, height)
        page.mouse.move(x, y)
        page.mouse.down()
        for k in range(1, 4):
            page.mouse.move(x + 5 * k, y - 5 * k)
            page.wait_for_timeout(150)
        held += viewer.live.pull is not None
        page.mouse.up()
        page.wait_for_timeout(400)
    return held


def bound(width: int, height: int, seconds: float) -> tuple[float, float]:
    """Pictures per second of a page with one moving frame, and the milliseconds that each takes."""
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    frame = server.scene.add_frame("/frame")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(f"http://127.0.0.1:{server.get_port()}")
        page.wait_for_timeout(3000)
        page.evaluate(COUNT)
        begin, drawn, used = time.perf_counter(), page.evaluate("drawn"), cpu_of_children()
        while (t := time.perf_counter() - begin) < seconds:
            frame.position = (0.0, 0.0, t)
            time.sleep(1 / 60)
        drawn = page.evaluate("drawn") - drawn
        used = cpu_of_children() - used
    server.stop()
    return drawn / t, 1e3 * used / drawn


def main(seconds: float = 10.0, size: str = "960x540") -> None:
    width, height = map(int, size.split("x"))
    robot = rf.load("quadruped", base="free")
    with chromium() as browser, rf.view(robot, port=0) as viewer:
        viewer.panels.control.value = "hold this pose: PD"
        live = viewer.live
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(viewer.url)
        page.get_by_text("Run from this pose").wait_for()
        live.start()
        wait(lambda: live.pictures > 60)
        machine = live.machine
        assert machine is not None
        page.evaluate(COUNT)

        def now() -> tuple[float, ...]:
            drawn = float(page.evaluate("drawn"))
            server, others = time.process_time(), cpu_of_children()
            return time.perf_counter(), live.pictures, machine.time, drawn, server, others

        begin = now()
        held = push(page, viewer, width, height, time.perf_counter() + seconds)
        t, pictures, lived, drawn, own, others = (b - a for a, b in zip(begin, now(), strict=True))
    print(f"quadruped on the ground, {held} pushes in {t:.1f} s, window {size}")
    print(f"machine: {lived / t:.2f} of real time")
    print(f"server:  {pictures / t:.1f} pictures/s, {1e3 * own / pictures:.1f} ms of CPU each")
    print(f"page:    {drawn / t:.1f} pictures/s, {1e3 * others / max(drawn, 1):.1f} ms of CPU each")
    rate, each = bound(width, height, seconds)
    print(f"one moving frame in the same window: {rate:.1f} pictures/s, {each:.1f} ms of CPU each")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((float, str), sys.argv[1:], strict=False)))
