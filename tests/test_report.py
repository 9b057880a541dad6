"""Reports: what the file holds, what it does not, and how it behaves in a browser."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from browsing import chromium, keep, pixels, settled, until, visit
from reference_runs import changed

import ramify as rf
from ramify.api.model import Model
from ramify.api.result import Result
from ramify.contact.contact_record import Contacts
from ramify.control import CONTROLLERS, Controller
from ramify.loops.loop_record import Loops
from ramify.runs.run_record import Work
from ramify.view.controllers import controller_rows
from ramify.view.curves import charts
from ramify.view.repeated_run import simulate_again
from ramify.view.report import MOST_FRAMES, MOST_ROWS, embedded, quaternions, report_page
from ramify.view.robot_solids import upright

EVIL = "<script>alert(1)</script>"


def moving(model: Model, t_end: float, dt: float = 0.01, **more: Any) -> Result:
    """A run that nobody integrated: every coordinate swings by itself."""
    t = np.arange(0.0, t_end + dt / 2, dt)
    w = 1.0 + 0.3 * np.arange(model.nv)
    x, v, a = (
        np.stack([f(w[i] * t) * w[i] ** k for i in range(model.nv)], axis=1)
        for k, f in enumerate((np.sin, np.cos, _minus_sin))
    )
    q = (
        np.stack([model.integrate(model.neutral(), row, 1.0) for row in x])
        if model.nq != model.nv
        else model.neutral() + x
    )
    zero = np.zeros(len(t))
    return Result(model, t, q, v, a, model.inverse_dynamics(q, v, a), Work(zero, zero), **more)


def _minus_sin(x: Any) -> Any:
    return -np.sin(x)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def unpacked(text: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(text), kind)


@pytest.fixture(scope="module")
def kuka() -> Result:
    return rf.scenario("kuka_motion").run()


@pytest.fixture(scope="module")
def kuka_page(kuka: Result) -> str:
    return report_page(kuka)


# ---- the file ----


class Reader(HTMLParser):
    """Tags that are closed in order, and all that leads out of the file."""

    void = frozenset({"meta", "input", "br", "path", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.leads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.leads += [
            value or ""
            for name, value in attrs
            if name in {"src", "href", "srcset", "action"} or name.startswith("on")
        ]
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["script"]:
            self.text += data


def test_one_file_that_stands_alone(kuka: Result, kuka_page: str, tmp_path: Path) -> None:
    path = kuka.report(tmp_path / "run.html")
    assert path.read_text(encoding="utf-8") == kuka_page
    reader = Reader()
    reader.feed(kuka_page)
    assert reader.open == []
    assert reader.leads == []
    assert "http://" not in kuka_page
    assert "https://" not in kuka_page
    assert "audit passed" in reader.text
    assert 'rf.scenario("run.yaml", robot="robot.yaml").run()' in reader.text
    assert len(kuka_page) < 300_000


def test_what_it_says_repeats_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario that names a robot file: the report holds both files, and its lines run with those
    alone.
    """
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    (home / "mybot.yaml").write_text(
        "name: bot\nlinks:\n  - {name: a, frame: {}, mass: 1.25, com: [0.3, 0, 0]}\n"
    )
    (home / "fall.yaml").write_text(
        "name: fall\nrobot: {name: mybot.yaml, gravity: [1.62, 1, 0]}\nt_end: 0.5\n"
    )
    first = rf.scenario(home / "fall.yaml").run()
    page = report_page(first)
    shown = {
        key: unescape(text)
        for key, text in re.findall(r'<pre id="(\w+)">(.*?)</pre>', page, re.DOTALL)
    }
    (away / "run.yaml").write_text(shown["scenario"])
    (away / "robot.yaml").write_text(shown["robot"])
    (away / "again.py").write_text(shown["again"] + '\nprint(*r.q[-1], sep=",")\n')
    monkeypatch.chdir(away)
    said = subprocess.run(
        [sys.executable, "again.py"], capture_output=True, text=True, check=True
    ).stdout
    assert [float(x) for x in said.splitlines()[-1].split(",")] == first.q[-1].tolist()


REPEATED: dict[str, dict[str, Any]] = {
    "sum": {
        "control": rf.control.Sum(
            [
                rf.control.PD(rf.motion.Quintic([0, 0], [1, 1], 1.0), kp=[9, 8], limits=[5, 6]),
                rf.control.GravityCompensation(),
            ]
        ),
        "wrenches": {"link2": [0, 0, 0, 1, 2, 0]},
        "stops": False,
    },
    "prescribed": {"control": rf.control.Prescribed(rf.motion.Hold([0.3, 0.4]))},
    "pushed": {
        "control": rf.control.ComputedTorque(
            rf.motion.Spline([0, 1], [[0, 0], [1, 1]]), rate_hz=100
        ),
        "wrenches": [(0.01, 0.05, {"link2": [0, 0, 0, 1, 2, 0]})],
        "step": 0.005,
    },
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_call_of_simulate_is_repeated_with_all_that_acts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    m = rf.load("two_link")
    start = [0.3, 0.4] if name == "prescribed" else [0.1, 0.2]
    first = rf.simulate(m, 0.2, start, **REPEATED[name])
    m.save(tmp_path / "robot.yaml")
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    exec(simulate_again(first), known)
    assert np.array_equal(known["r"].q, first.q)


def test_what_a_listing_cannot_repeat_is_said() -> None:
    m = rf.load("two_link")
    r = rf.simulate(m, 0.02, control=lambda t, q, v: -v)
    said = simulate_again(r)
    assert said.startswith("# not the whole run: see the comments")
    assert "\n    # control: {'type': 'python', 'object': 'Function', " in said
    run = rf.rollout(m, [0, 0], [0, 0], steps=10, dt=0.01, tau=[20.0, 5.0], every=1, t0=3.0)
    said = simulate_again(run.result())
    assert "\n    # tau: given, 10 rows of 0.01 s; with the rollout's own tau, add" in said
    servo = rf.control.PD(rf.motion.Hold([0.3, 0.5]), kp=100.0, kd=20.0)
    for tau, missing in (([20.0, 5.0], True), (None, False)):
        run = rf.rollout(m, [0, 0], [0, 0], steps=4, dt=0.01, control=servo, tau=tau, every=2)
        assert simulate_again(run.result()).startswith("# not the whole run") == missing
    assert "\n    # the run began at t = 3 s" in said
    there = rf.Builder("ball").link("ball", joint="free", mass=1.0, inertia=(0.1,) * 3).model()
    there = rf.with_contact_points(there, {"ball": {"low": (0, 0, -0.1)}})
    fall = rf.simulate(there, 0.1, [0, 0, 0.11, 1, 0, 0, 0], ground=rf.contact.HuntCrossley())
    found = re.search(r"ground=({.*}),\n", simulate_again(fall))
    assert found is not None
    again = rf.simulate(there, 0.1, fall.q[0], ground=ast.literal_eval(found[1]))
    assert np.array_equal(again.q, fall.q)


def test_only_its_own_script_may_run(kuka_page: str) -> None:
    script = kuka_page[kuka_page.rindex("<script>") + 8 : kuka_page.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in kuka_page


def test_poses_are_those_of_the_run(kuka: Result, kuka_page: str) -> None:
    frames = data_of(kuka_page)["frames"]
    R, r = kuka.model.kinematics(kuka.q)
    place = unpacked(frames["place"], "<f4").reshape(r.shape)
    turn = unpacked(frames["turn"], "<i2").reshape(len(kuka), -1, 4) / 32767.0
    assert np.array_equal(unpacked(frames["t"], "<f8"), kuka.t)
    assert np.allclose(place, r, atol=1e-6)
    w, x, y, z = np.moveaxis(turn, -1, 0)
    third = np.stack(
        [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=-1
    )  # R e3
    assert np.allclose(third, R[..., 2], atol=2e-4)


def test_quaternions_do_not_jump() -> None:
    from ramify.model.frame import rotation_about

    R = np.stack([rotation_about((0.6, 0.0, 0.8), angle) for angle in np.linspace(0.0, 20.0, 400)])[
        :, None
    ]
    q = quaternions(R)
    assert np.abs(np.diff(q, axis=0)).max() < 0.06
    assert np.allclose(np.abs(q[:, 0, 0]), np.abs(np.cos(np.linspace(0.0, 10.0, 400))))


def test_curves_are_those_of_the_run(kuka: Result, kuka_page: str) -> None:
    data = data_of(kuka_page)
    arrays = [unpacked(text, "<f4") for text in data["arrays"]]
    plots = {plot["title"]: plot for plot in data["plots"]}
    forces = plots["Joint forces"]
    assert forces["unit"] == "N·m"
    for k, curve in enumerate(forces["curves"]):
        assert curve["name"] == kuka.columns["tau"][k]
        assert np.array_equal(arrays[curve["y"]], kuka.tau[:, k].astype("<f4"))
    desired = arrays[plots["Joint coordinates"]["curves"][0]["wanted"]]
    assert kuka.desired is not None
    assert np.array_equal(desired, kuka.desired.q[:, 0].astype("<f4"))
    balance = next(curve for curve in plots["Energy"]["curves"] if curve["name"] == "balance")
    assert np.abs(arrays[balance["y"]]).max() < 1e-5
    phase = plots["Phase plane: v over q"]
    assert phase["x"] == {"name": "q", "unit": "rad"}
    assert np.array_equal(arrays[phase["curves"][0]["x"]], kuka.q[:, 0].astype("<f4"))


@pytest.mark.parametrize(
    ("robot", "options", "seconds", "dt"),
    [
        ("quadruped", {}, 30.0, 0.01),
        ("two_link", {}, 100.0, 0.01),
        ("chain", {"n": 100}, 6.0, 0.03),
    ],
)
def test_long_runs_stay_small(
    robot: str, options: dict[str, Any], seconds: float, dt: float
) -> None:
    """Below 2 MB without meshes, however long the run and large the robot."""
    run = moving(rf.load(robot, **options), seconds, dt)
    page = report_page(run)
    assert len(page.encode()) < 2_000_000
    data = data_of(page)
    assert len(unpacked(data["t"], "<f8")) <= MOST_ROWS + 1
    frames = unpacked(data["frames"]["t"], "<f8")
    assert len(frames) <= MOST_FRAMES + 1
    assert frames[-1] == pytest.approx(seconds)
    assert (f"Of {len(run)} rows the plots show" in page) == (len(frames) < len(run))


def test_names_are_text(tmp_path: Path) -> None:
    page = report_page(moving(evil_robot(), 0.2))
    assert EVIL not in page
    assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in page
    assert "\\u003cscript\\u003ealert(1)" in page
    assert data_of(page)["plots"][0]["curves"][0]["name"] == EVIL
    assert "</" not in embedded({"a": "</script><!--"})
    for shown in (
        evil_robot()._repr_html_(),
        moving(evil_robot(), 0.1).audit._repr_html_(),
        moving(evil_robot(), 0.1)._repr_html_(),
    ):
        assert "&lt;script&gt;" in shown
        assert EVIL not in shown


def evil_robot() -> Model:
    builder = rf.Builder(EVIL)
    builder.link(
        EVIL,
        joint_name=EVIL,
        mass=1.0,
        com=(0.5, 0.0, 0.0),
        inertia=(0.0, 0.1, 0.1),
        axis=(0, 1, 0),
        points={EVIL: (1, 0, 0)},
    )
    return builder.model()


def test_only_what_acts_is_shown() -> None:
    """No curves of a base without drives, no tolerances of fixed steps."""
    m = rf.load("space_3_link", base="free")
    law = rf.control.Function(lambda t, q, v: np.sin(t + np.arange(3.0)))
    for options, shown in (({"step": 1e-3, "method": "rk4"}, "rk4, step 0.001"), ({}, "rtol")):
        run = rf.simulate(m, 0.1, control=law, **options)
        forces = [chart for chart in charts(run) if chart.title == "Joint forces"]
        names = [curve.name for chart in forces for curve in chart.curves]
        assert names == list(run.columns["tau"][6:])
        page = report_page(run)
        assert shown in page
        assert ("rtol 1e-08" in page) == (not options)


def test_contact_forces_and_loops() -> None:
    m = rf.load("planar_biped")
    run = moving(m, 0.5)
    force = np.zeros((len(run), 2, 3))
    force[:, 1, 2] = 9.0
    place = np.tile([0.3, 0.0, 0.0], (len(run), 2, 1))
    zero, none = np.zeros(len(run)), np.zeros((len(run), 2, 3))
    depth = force[..., 2] * 1e-4
    contacts = Contacts(
        ("toe", "heel"), ("foot",) * 2, force, force[..., 2], place, depth, none, zero, zero
    )
    gap, pull = np.full((len(run), 1), 1e-9), np.full((len(run), 1), 5.0)
    run = changed(run, contacts=contacts, loops=Loops(("pin.x",), ("m",), gap, pull, zero))
    found = {chart.title: chart for chart in charts(run)}
    upward = found["Contact forces, upward, 1 of 2 points touch"]
    assert [curve.name for curve in upward.curves] == ["heel"]
    assert np.array_equal(upward.curves[0].y, np.full(len(run), 9.0))
    assert np.allclose(found["Penetration, 1 of 2 points touch"].curves[0].y, 0.9)
    assert found["Gaps of the loops"].curves[0].y.max() == 1e-9
    assert found["Gaps of the loops"].unit == "m"
    assert found["Forces of the loops"].unit == "N"


def test_ground_is_drawn() -> None:
    from ramify.contact import Firm, Slope

    fall = rf.scenario("biped_fall")
    slope = Firm(terrain=Slope(angle=0.2))
    run = rf.simulate(fall.robot, 0.05, q0=fall.q0, ground=slope)
    data = data_of(report_page(run))
    assert data["forces"]["count"] == len(run.contacts.names)  # type: ignore[union-attr]
    (patch,) = [part for part in data["parts"] if part["kind"] == "ground"]
    scale, *centre = patch["scale"]
    points = unpacked(patch["points"], "<i2").reshape(-1, 4)[:, :3] * scale + centre
    assert np.allclose(points[:, 2], np.tan(0.2) * points[:, 0], atol=1e-3)
    assert data["view"]["level"]


def test_refusals(kuka: Result, tmp_path: Path) -> None:
    with pytest.raises(rf.RamifyError, match=r"there is no directory '.*deep'; make it first"):
        kuka.report(tmp_path / "deep" / "run.html")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(
        rf.RamifyError, match=r"folder\.html is a directory; give the name of a file in it"
    ):
        kuka.report(tmp_path / "folder.html")
    with pytest.raises(rf.RamifyError, match="title 3 is not a text"):
        kuka.report(tmp_path / "run.html", title=3)  # type: ignore[arg-type]
    with pytest.raises(rf.RamifyError, match=r"run\.pdf: a report is an HTML file"):
        kuka.report(tmp_path / "run.pdf")


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def file(kuka: Result, tmp_path_factory: pytest.TempPathFactory) -> str:
    return kuka.report(tmp_path_factory.mktemp("report") / "run.html").as_uri()


RESET = """report.play(false); report.scene.options.trail = -1; report.scene.reset();
  document.getElementById("speed").value = "1"; report.page.speed = 1; document.getElementById("trail").value = "-1";
  if (document.getElementById("frames").checked) document.getElementById("frames").click();
  delete document.documentElement.dataset.theme; document.activeElement.blur();
  document.querySelector("#tabs button").click(); report.page.seek(0);"""


@pytest.fixture(scope="module")
def opened(browser: Any, file: str) -> Iterator[Any]:
    with visit(browser, file, width=1000, height=700) as page:
        ready(page)
        yield page


@pytest.fixture
def page(opened: Any) -> Any:
    """The report of the arm, opened once, as it opens."""
    opened.evaluate(RESET)
    settled(opened)
    return opened


def ready(page: Any) -> None:
    until(page, "window.report && report.scene")


def scene_pixels(page: Any) -> Any:
    """What the WebGL canvas holds."""
    settled(page)
    text = page.evaluate("(report.scene.draw(), document.getElementById('scene').toDataURL())")
    return pixels(base64.b64decode(text.partition(",")[2])).astype(int)


def time_of(page: Any) -> float:
    return float(page.evaluate("report.page.now.time"))


def test_animation_plays_and_scrubs(page: Any) -> None:
    first = scene_pixels(page)
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 200  # neither blank nor flat
    blue = (first[..., 2] > first[..., 0] + 50).mean()
    assert 0.005 < blue < 0.5
    page.click("#play")
    until(page, "report.page.now.time > 0.1")
    page.click("#play")
    stopped = time_of(page)
    settled(page)
    assert time_of(page) == stopped
    assert np.abs(scene_pixels(page) - first).max() > 60
    page.locator("#time").fill("0.5")
    assert time_of(page) == pytest.approx(0.5)
    until(page, "document.getElementById('clock').textContent == '0.50 s'")
    assert page.get_attribute("#time", "aria-valuetext") == "0.500 seconds of 1.000"


def test_keyboard(page: Any) -> None:
    page.keyboard.press("End")
    assert time_of(page) == 1.0
    page.keyboard.press("ArrowLeft")
    assert time_of(page) == pytest.approx(0.99)
    page.keyboard.press("Shift+ArrowLeft")
    assert time_of(page) == pytest.approx(0.89)
    page.keyboard.press("Home")
    assert time_of(page) == 0.0
    page.focus("#time")
    page.keyboard.press("ArrowRight")
    assert time_of(page) == pytest.approx(0.01)
    page.keyboard.press("Space")
    assert page.evaluate("report.page.playing")
    page.keyboard.press("Space")
    assert not page.evaluate("report.page.playing")
    page.keyboard.press("j")
    assert page.is_checked("#frames")
    page.keyboard.press("+")
    assert page.evaluate("report.page.speed") == 2
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.focus("#play")
    page.keyboard.press("Space")  # once, not twice
    assert page.evaluate("report.page.playing")
    page.click("#tabs button >> nth=1")
    page.keyboard.press("Space")  # the tab has the focus now
    assert not page.evaluate("report.page.playing")


def test_keys_open_over_the_page(page: Any) -> None:
    page.keyboard.press("?")
    box = page.locator("#keys").bounding_box()
    assert 0 <= box["y"] < 300  # in sight without scrolling
    assert "one row" in page.inner_text("#keys")
    keep(page, "report_keys")
    page.keyboard.press("Space")  # the page behind it keeps still
    assert not page.evaluate("report.page.playing")
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")
    page.click("#help")
    assert page.is_visible("#keys")
    page.click("#close-keys")
    assert not page.is_visible("#keys")


def test_plots_are_saved_as_svg_and_csv(kuka: Result, page: Any) -> None:
    found = {}
    for kind in ("SVG", "CSV"):
        with page.expect_download() as saved:
            page.locator("figure.plot .save button", has_text=kind).first.click()
        assert saved.value.suggested_filename == f"joint_coordinates.{kind.lower()}"
        found[kind] = Path(saved.value.path()).read_text(encoding="utf-8")
    header, *rows = csv.reader(found["CSV"].splitlines())
    assert header[:3] == ["t [s]", "joint1 [rad]", "joint1 desired [rad]"]
    numbers = np.array(rows, dtype=float)
    np.testing.assert_allclose(numbers[:, 0], kuka.t)
    np.testing.assert_allclose(numbers[:, 1], kuka.q[:, 0], atol=1e-6)
    picture = ElementTree.fromstring(found["SVG"])
    names = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Joint coordinates, rad", "joint1", "joint6"} <= set(names)
    curves = [p.get("d") for p in picture.iter("{http://www.w3.org/2000/svg}path")]
    assert max(d.count("L") for d in curves if d) == len(kuka.t) - 1
    settled(page)
    screen = page.evaluate("report.plots[0].frame.right")
    assert screen == page.evaluate(
        "report.plots[0].canvas.getBoundingClientRect().width - 10"
    )  # the page's own plot is as it was


def test_the_controller_is_a_table(kuka_page: str) -> None:
    """With units, from the document that the run records."""
    card = kuka_page[kuka_page.index("<h2>Controller</h2>") :].partition("</section>")[0]
    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", card)]
    rows = [tuple(cells[k : k + 3]) for k in range(0, len(cells), 3)]
    assert ("controller", "computed_torque", "") in rows
    assert ("kp", "49", "1/s²") in rows
    assert ("end", "1.047, all 6", "rad") in rows
    assert ("duration", "1", "s") in rows


@pytest.mark.parametrize(
    ("control", "rows"),
    [
        (rf.control.PD(rf.motion.Hold([1.0, 2.0]), kp=9.0, kd=2.0), [("controller", "pd", ""), ("kp", "9", "N m/rad"), ("kd", "2", "N m s/rad"), ("motion", "hold", ""), ("q", "1, 2", "rad"), ("begin", "0", "s")]),
        (rf.control.ComputedTorque(rf.motion.Hold([1.0, 2.0]), rate_hz=50.0), [("kp", "49", "1/s²"), ("rate", "50", "Hz"), ("passive", "no", "")]),
        (rf.control.Sum([rf.control.Torque(1.0), rf.control.Torque(2.0)]), [("controller", "sum", ""), ("parts 2", "torque", ""), ("tau", "2", "N m")]),
        (rf.control.Function(np.sin, limits=[3.0]), [("controller", "Function (Python)", ""), ("f", "sin (Python)", ""), ("limits", "3", "N m")]),
        (rf.control.TorqueTable(np.arange(151.0), np.arange(151.0)), [("values", "151 numbers, 0 … 150", "N m"), ("interpolate", "linear", "")]),
        (rf.control.Commands({"lift": 2.0, "turn": rf.motion.Hold(0.5)}), [("lift", "2", ""), ("turn", "hold", ""), ("q", "0.5", "rad")]),
        ("PD(motion=Hold(q=(1.0, 2.0)), kp=(9.0,))", [("controller", "PD(motion=Hold(q=(1.0, 2.0)), kp=(9.0,))", "")]),
        ({"type": "one of another program", "gain": 3}, [("controller", "one of another program", ""), ("gain", "3", "")]),
    ],
)  # fmt: skip
def test_controllers_as_rows(control: Any, rows: list[tuple[str, str, str]]) -> None:
    model = rf.load("planar_3r")
    recorded = CONTROLLERS.write(control) if isinstance(control, Controller) else control
    found = moving(model, 0.1, options={"control": recorded})
    shown = [(name.strip(), value, unit) for name, value, unit in controller_rows(found)]
    for row in rows:
        assert row in shown
    assert simulate_again(found).startswith("# not the whole run") == (
        not isinstance(control, Controller) or recorded["type"] == "python"
    )


def test_penetration_fits_what_touches(browser: Any, tmp_path: Path) -> None:
    """A point a metre above the ground leaves millimetres to be seen, and has no curve."""
    r = rf.scenario("planar_biped_walk").run(t_end=0.4)
    assert r.contacts is not None
    deepest = 1e3 * r.contacts.penetration.max()
    path = r.report(tmp_path / "walk.html")
    with visit(browser, path.as_uri()) as page:
        ready(page)
        page.locator("#tabs button", has_text="Contacts").click()
        settled(page)
        keep(page, "report_contacts", full_page=True)
        plot = "report.plots.find((p) => p.data.title.startsWith('Penetration'))"
        low, high = page.evaluate(f"{plot}.limits()")
        assert deepest <= high < 1.3 * deepest
        assert -deepest < low < 0.0
        names = page.evaluate(f"{plot}.curves.map((c) => c.name)")
        touched = r.contacts.touching.any(axis=0)
        assert names == [n for n, t in zip(r.contacts.names, touched, strict=True) if t]
        cut = "[...document.querySelectorAll('.legend')].filter((e) => e.scrollHeight > e.clientHeight + 1).length"
        assert page.evaluate(cut) == 0


def test_plots_follow_the_cursor(page: Any) -> None:
    marked = """(k) => { const c = report.plots[k].marks, copy = new OffscreenCanvas(c.width, c.height);
      const on = copy.getContext('2d', { willReadFrequently: true }); on.drawImage(c, 0, 0);
      const d = on.getImageData(0, 0, c.width, c.height).data;
      const sums = new Array(c.width).fill(0); for (let i = 0; i < d.length; i += 4) if (d[i + 3]) sums[(i / 4) % c.width]++;
      return sums.indexOf(Math.max(...sums)) / c.width; }"""
    seen = []
    for time in (0.0, 0.5, 1.0):
        page.evaluate("(t) => report.page.seek(t)", time)
        until(page, f"document.getElementById('clock').textContent == '{time:.2f} s'")
        seen.append(page.evaluate(marked, 0))
    assert seen[0] < 0.15
    assert 0.4 < seen[1] < 0.7
    assert seen[2] > 0.9
    box = page.locator("figure.plot .marks").first.bounding_box()
    page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 0.5 * box["height"])
    clicked = time_of(page)
    assert 0.6 < clicked < 0.85
    values = page.evaluate("report.plots[0].curves.map((c) => c.value.textContent)")
    page.keyboard.press("Home")
    settled(page)
    assert page.evaluate("report.plots[0].curves.map((c) => c.value.textContent)") != values


def test_legend_tabs_trail_and_camera(page: Any) -> None:
    button = page.locator("figure.plot .legend button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert not page.evaluate("report.plots[0].curves[0].shown")
    button.click()
    for tab in page.locator("#tabs button").all():
        tab.click()
        assert page.locator("figure.plot:visible").count() >= 1
    page.focus("#tabs button >> nth=0")
    page.keyboard.press("ArrowRight")
    assert page.locator("#tabs [aria-selected=true]").inner_text() == "Coordinates"
    page.evaluate("report.page.seek(1)")
    before = scene_pixels(page)
    page.select_option("#trail", label="flange of link6")
    assert np.abs(scene_pixels(page) - before).max() > 60
    box = page.locator("#scene").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    yaw = page.evaluate("report.scene.camera.yaw")
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 240)
    page.mouse.up()
    assert page.evaluate("report.scene.camera.yaw") == pytest.approx(yaw - 0.8)
    far = page.evaluate("report.scene.camera.far")
    page.mouse.wheel(0, 200)
    until(page, f"report.scene.camera.far > {far}")
    page.click("[data-view=home]")
    assert page.evaluate("report.scene.camera.far") == pytest.approx(far)


def drawn_plots(paper: bytes) -> int:
    """How many plots the pages show: strong colours that reach, as curves do, over most of half a
    page.
    """
    import pypdfium2
    from scipy.ndimage import binary_dilation, find_objects, label

    found = 0
    for sheet in pypdfium2.PdfDocument(paper):
        colours = sheet.render(scale=2).to_numpy()[..., :3].astype(int)
        areas = label(binary_dilation(np.ptp(colours, axis=2) > 60, iterations=5))[0]
        middle = areas.shape[1] // 2
        for half in (areas[:, :middle], areas[:, middle:]):
            tall = [
                down
                for down, across in filter(None, find_objects(half))
                if across.stop - across.start > 0.6 * middle
            ]
            found += len(tall) - sum(
                b.start < a.stop + 80 for a, b in pairwise(tall)
            )  # a limit and its error
    return found


def test_print_shows_everything(browser: Any, file: str, tmp_path: Path) -> None:
    with visit(browser, file, width=720, height=1000, scheme="dark") as page:
        ready(page)
        count = page.evaluate("report.plots.length")
        paper = page.pdf()
        assert paper.startswith(b"%PDF")
        assert drawn_plots(paper) == count
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#strip img").count() == 6
        assert page.locator("figure.plot:visible").count() == page.evaluate("report.plots.length")
        settled(page)
        assert (
            keep(page, "report-print", full_page=True).mean() > 200
        )  # dark on white, whatever the screen had
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("#strip img").count() == 0


def test_two_runs_in_one_report(browser: Any, tmp_path: Path) -> None:
    """Differences in a tab and a table; the second run as a ghost that can be switched off."""
    m = rf.load("two_link")
    first = rf.simulate(m, 0.5, [0.4, 0.2], dt_out=0.01)
    second = rf.simulate(m, 0.4, [0.9, 0.2], dt_out=0.02)
    found = first.compare(second)
    assert found.t[-1] == pytest.approx(0.4)
    apart = {d.name: d for d in found.differences if d.what == "q"}
    largest = apart[m.coordinates[0]]
    k = int(np.searchsorted(first.t, largest.time))
    there = np.interp(largest.time, second.t, second.q[:, 0])
    assert largest.largest == pytest.approx(first.q[k, 0] - there)
    assert abs(largest.largest) >= largest.rms > 0.0
    assert m.coordinates[0] in str(found)
    assert max(abs(d.largest) for d in first.compare(first).differences) == 0.0
    path = first.report(tmp_path / "both.html", compare=second)
    ghost = data_of(path.read_text(encoding="utf-8"))["ghost"]
    place = unpacked(ghost["place"], "<f4").reshape(len(first), -1, 3)
    assert np.allclose(place[-1], m.kinematics(second.q[-1]).position @ upright(m).T, atol=1e-5)
    with visit(browser, path.as_uri(), width=900, height=500) as page:
        ready(page)
        assert page.locator("h2", has_text="Differences").count() == 1
        page.locator("#tabs button", has_text="Differences").click()
        assert page.locator("figure.plot:visible").count() == 3
        with_ghost = scene_pixels(page)
        keep(page, "report_compare", full_page=True)
        page.keyboard.press("g")
        until(page, "!report.scene.options.ghost")
        settled(page)
        assert (np.abs(scene_pixels(page) - with_ghost).max(axis=2) > 20).sum() > 200
    with pytest.raises(rf.RamifyError, match="have different coordinates"):
        first.compare(rf.simulate(rf.load("planar_3r"), 0.1))
    with pytest.raises(rf.RamifyError, match="no time in common"):
        first.compare(changed(second, t=second.t + 9.0))


def test_links_remember_time_tab_and_camera(browser: Any, file: str) -> None:
    with visit(browser, file, width=900, height=500) as page:
        ready(page)
        page.evaluate("report.page.seek(0.25)")
        page.locator("#tabs button", has_text="Paths").click()
        until(page, "location.hash.includes('t=0.25&tab=Paths&view=')")
        before = page.evaluate("location.hash")
        page.evaluate("report.scene.turn(0.3, 0.1); report.page.seek(0.25)")
        until(page, f"location.hash !== {before!r}")
        link = page.evaluate("location.href")
        camera = page.evaluate("report.scene.camera")
    with visit(browser, link, width=900, height=500) as page:
        ready(page)
        assert time_of(page) == pytest.approx(0.25)
        assert page.locator("#tabs [aria-selected=true]").inner_text() == "Paths"
        again = page.evaluate("report.scene.camera")
        assert again["yaw"] == pytest.approx(camera["yaw"], abs=1e-3)
        assert again["target"] == pytest.approx(camera["target"], abs=1e-3)
        page.keyboard.press("s")
        assert not page.is_visible(".cards")
        assert page.is_visible("#scene")
        keep(page, "report_slide")


def test_paths_are_those_of_the_points(kuka: Result, kuka_page: str) -> None:
    data = data_of(kuka_page)
    arrays = [unpacked(text, "<f4") for text in data["arrays"]]
    plots = {plot["title"]: plot for plot in data["plots"]}
    curve = plots["Positions of points, z"]["curves"][0]
    body, _, at = next(
        (b.name, name, np.array(place)) for b in kuka.model.bodies for name, place in b.points
    )
    R, r = kuka.model.kinematics(kuka.q)
    k = [b.name for b in kuka.model.bodies].index(body)
    z = (R[:, k] @ at + r[:, k])[:, 2]
    assert np.allclose(arrays[curve["y"]], z, atol=1e-6)
    assert plots["Paths from the side, z"]["x"]["unit"] == "m"


def test_scripts_in_names_do_not_run(browser: Any, tmp_path: Path) -> None:
    path = moving(evil_robot(), 0.3).report(tmp_path / "evil.html")
    with visit(browser, path.as_uri()) as page:
        ready(page)
        assert page.title().startswith(EVIL)
        assert page.locator("h1").inner_text() == EVIL
        assert page.locator("figure.plot .legend button span").first.inner_text() == EVIL
        assert page.locator("#trail option").nth(1).inner_text() == f"{EVIL} of {EVIL}"


def test_without_webgl_the_plots_still_work(browser: Any, file: str) -> None:
    without = """const own = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind === "webgl2" ? null : own.call(this, kind, ...rest); };"""
    with visit(browser, file, before=without) as page:
        until(page, "window.report")
        assert "WebGL 2" in page.locator("#nogl").inner_text()
        page.keyboard.press("End")
        assert time_of(page) == 1.0
        assert page.locator("figure.plot:visible").count() == 3


def test_big_run_opens(browser: Any, tmp_path: Path) -> None:
    path = moving(rf.load("quadruped"), 10.0).report(tmp_path / "big.html")
    with visit(browser, path.as_uri()) as page:
        ready(page)
        page.locator("#time").fill("1")
        assert time_of(page) == pytest.approx(10.0)


def test_a_robot_at_rest_opens(browser: Any, tmp_path: Path) -> None:
    from ramify.view.film import still

    with visit(
        browser, rf.Result.of(still(rf.load("hexapod"))).report(tmp_path / "still.html").as_uri()
    ) as page:
        ready(page)
        page.keyboard.press("Space")
        page.keyboard.press("End")
        assert time_of(page) == 0.0
        assert len(np.unique(scene_pixels(page).reshape(-1, 3), axis=0)) > 200


def test_contact_forces_are_drawn(browser: Any, tmp_path: Path) -> None:
    run = rf.scenario("biped_fall").run(t_end=0.2)
    path = run.report(tmp_path / "fall.html")
    with visit(browser, path.as_uri()) as page:
        ready(page)
        page.evaluate("report.page.seek(0.15)")
        settled(page)
        keep(page, "report-contact")
        shown = scene_pixels(page)
        page.click("#forces")
        assert np.abs(shown - scene_pixels(page)).max() > 60
