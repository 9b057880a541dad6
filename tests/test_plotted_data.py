"""Every plot of a run shows the arrays that it names: each line's numbers, its label,
the unit at its axis and the scale.
"""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import pytest
from comparing import close
from scipy.spatial.transform import Rotation
from test_run_plots import sled

import ramify as rf
from ramify.api.result import Result
from ramify.runs.audit import audited
from ramify.runs.run_record import Work
from ramify.view.comparison import compared
from ramify.view.curves import charts
from ramify.view.torque_speed import drive_charts


class Line(NamedTuple):
    label: str
    x: Any
    y: Any


class Panel(NamedTuple):
    """What a panel must show."""

    title: str
    xlabel: str
    ylabel: str
    lines: list[Line]
    log: bool = False


def shows(figure: Any, expected: list[Panel]) -> None:
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    axes = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title(loc="left") for panel in axes] == [panel.title for panel in expected]
    for panel, want in zip(axes, expected, strict=True):
        assert panel.get_xlabel() == want.xlabel
        assert panel.get_ylabel() == want.ylabel, want.title
        assert (panel.get_yscale() == "log") == want.log, want.title
        labels = [line.get_label() for line in panel.lines]
        assert labels == [line.label for line in want.lines], want.title
        for line, (label, x, y) in zip(panel.lines, want.lines, strict=True):
            of = f"{want.title}, {label}"
            close(line.get_xdata(), x, 0.0, 0.0, f"x of {of}", equal_nan=True)
            close(line.get_ydata(), y, 1e-12, 1e-14, f"y of {of}", equal_nan=True)
        if want.xlabel == "t, s":
            t = want.lines[0].x
            assert panel.get_xlim() == (t[0], t[-1]), want.title


@pytest.fixture(scope="module")
def linkage() -> Result:
    """A closed loop under a controller, with limits, a rated drive and damping."""
    b = rf.Builder("linkage")
    solid: dict[str, Any] = {"axis": (0, 1, 0), "inertia": (0.01, 0.01, 0.01)}
    b.link("crank", mass=1.0, com=(0.1, 0, 0), damping=0.1, effort=40.0, velocity=9.0, limits=(-3.0, 3.0), **solid)  # fmt: skip
    b.link("rod", "crank", at=(0.2, 0, 0), mass=1.0, com=(0.2, 0, 0), actuated=False, **solid)
    b.link("slider", joint="prismatic", axis=(1, 0, 0), mass=2.0, effort=60.0)
    b.loop("pin", "revolute", ("rod", (0.4, 0, 0)), ("slider", (0, 0, 0)), axis=(0, 1, 0))
    model = b.model()
    start = model.assemble({"crank": 0.4})
    control = rf.control.PD(rf.motion.Cycloid([0.4, 0.55], [0.9, 0.45], 0.3), kp=30.0, kd=3.0)
    return rf.simulate(model, 0.3, start.q, control=control, dt_out=0.01)


@pytest.fixture(scope="module")
def sliding() -> Result:
    return sled(0)


UNITS = {
    "q": ("rad", "rad", "m"),
    "v": ("rad/s", "rad/s", "m/s"),
    "a": ("rad/s²", "rad/s²", "m/s²"),
    "tau": ("N m", "N m", "N"),
}


@pytest.mark.parametrize("what", list(UNITS))
def test_coordinates_rates_and_forces(linkage: Result, what: str) -> None:
    r, names = linkage, ("crank", "rod", "slider")
    values, desired = getattr(r, what), getattr(r.desired, what, None)
    expected = []
    for k, name in enumerate(names):
        if what == "tau" and name == "rod":  # nothing drives it
            assert not r.tau[:, k].any()
            continue
        lines = [Line("simulated", r.t, values[:, k])]
        if desired is not None and np.isfinite(desired[:, k]).any():
            lines.insert(0, Line("desired", r.t, desired[:, k]))
        expected.append(Panel(name, "t, s", f"{what}, {UNITS[what][k]}", lines))
    shows(r.plot(what), expected)  # type: ignore[arg-type]
    shows(r.plot(what, joints=["slider"]), expected[-1:])  # type: ignore[arg-type]


def test_phase_portraits(linkage: Result) -> None:
    r, expected = linkage, []
    assert r.desired is not None
    for k, name in enumerate(("crank", "rod", "slider")):
        q, v = r.q[:, k], r.v[:, k]
        lines = [
            Line("desired", r.desired.q[:, k], r.desired.v[:, k]),
            Line("simulated", q, v),
            Line("start", q[:1], v[:1]),
        ]
        expected.append(Panel(name, f"q, {UNITS['q'][k]}", f"v, {UNITS['v'][k]}", lines))
    shows(r.plot("phase"), expected)


def test_energies(linkage: Result, sliding: Result) -> None:
    for r, stored in ((linkage, "work of actuators"), (sliding, "stored in the ground")):
        b = r.energy_balance
        rows = {
            "kinetic": b.kinetic,
            "potential, from the start": b.potential - b.potential[0],
            "work of actuators": r.work.actuator,
            "dissipated": b.dissipated,
            "stored in the ground": b.ground,
        }
        lines = [Line(name, r.t, y) for name, y in rows.items() if np.any(y)]
        assert stored in [line.label for line in lines]
        total = b.conserved - b.potential[0]
        lines.append(Line("balance: should not change", r.t, total))
        shows(r.plot("energy"), [Panel("", "t, s", "energy, J", lines)])


def test_momenta(sliding: Result) -> None:
    linear, angular = sliding.momentum
    panels = [
        Panel(title, "t, s", unit, [Line("xyz"[i], sliding.t, x[:, i]) for i in range(3)])
        for title, unit, x in (
            ("Linear momentum", "kg m/s", linear),
            ("Angular momentum about the centre of mass", "kg m²/s", angular),
        )
    ]
    shows(sliding.plot("momentum"), panels)


def test_audits(linkage: Result) -> None:
    expected = []
    for check in audited(linkage).checks:
        assert check.passed
        error = np.abs(check.error) / check.scale
        ends = np.array([0.0, 1.0])  # of a line right across the panel
        limit = Line("limit", ends, np.full(2, check.limit / check.scale))
        lines = [Line("error", linkage.t, np.where(error == 0.0, np.nan, error)), limit]
        expected.append(Panel(f"{check.name}: passed", "t, s", "error / scale", lines, log=True))
    assert expected
    shows(linkage.plot("audit"), expected)


def test_contacts(sliding: Result) -> None:
    r, c = sliding, sliding.contacts
    assert c is not None
    level = np.linalg.norm(c.force[..., :2], axis=2)
    rows = (
        ("upward force", "N", c.force[..., 2]),
        ("force along the level", "N", level),
        ("depth in the ground", "mm", 1e3 * np.maximum(c.penetration, 0.0)),
    )
    touch = [k for k in range(len(c)) if c.force[:, k].any()]
    assert len(touch) > 2
    expected = [
        Panel(title, "t, s", unit, [Line(c.names[k], r.t, y[:, k]) for k in touch])
        for title, unit, y in rows
    ]
    borne = c.force[..., 2].sum(axis=1) > 1e-3 * r.model.mass * 9.81
    centre = np.where(borne[:, None], c.center_of_pressure, np.nan)
    lines = [Line("xy"[i], r.t, centre[:, i]) for i in range(2)]
    shows(r.plot("contacts"), [*expected, Panel("centre of pressure", "t, s", "m", lines)])


def test_loops(linkage: Result) -> None:
    r, loops = linkage, linkage.loops
    assert loops is not None
    assert len(loops.names) == 5
    forces = [Line(name, r.t, loops.multipliers[:, i]) for i, name in enumerate(loops.names)]
    gap = np.abs(loops.gap).max(axis=1)
    gaps = [Line("pin", r.t, np.where(gap > 0.0, gap, np.nan))]
    assert (gap > 0.0).any()
    figure = r.plot("loops")
    shows(
        figure,
        [
            Panel("", "t, s", "multiplier, N or N m", forces),
            Panel("", "t, s", "gap, m or 1", gaps, log=True),
        ],
    )
    legends = {box.get_title().get_text(): [t.get_text() for t in box.get_texts()] for box in figure.legends}  # fmt: skip
    assert legends == {"multipliers": list(loops.names), "gaps": ["pin"]}


def test_drives(linkage: Result) -> None:
    """A rated speed closes the border; without one there are two lines, a tenth beyond the run."""
    r, (crank, slider) = linkage, (0, 2)
    box = np.array([(-9, -40), (9, -40), (9, 40), (-9, 40), (-9, -40)], dtype=float)
    most = 1.1 * np.abs(r.v[:, slider]).max()
    bars = np.array([(-most, -60), (most, -60), (np.nan, np.nan), (-most, 60), (most, 60)])
    expected = []
    for k, name, unit, force, border in (
        (crank, "crank", "rad/s", "N m", box), (slider, "slider", "m/s", "N", bars)
    ):  # fmt: skip
        lines = [Line("limits", *border.T), Line("run", r.v[:, k], r.tau[:, k])]
        expected.append(Panel(name, f"speed, {unit}", f"force, {force}", lines))
    shows(r.plot("drives"), expected)
    *over_speed, power = drive_charts(r)
    for chart, (k, unit, force) in zip(over_speed, ((crank, "rad/s", "N m"), (slider, "m/s", "N")), strict=True):  # fmt: skip
        assert (chart.unit, chart.across) == (force.replace(" ", "·"), ("v", unit))
        assert chart.curves[0].x is not None
        close(chart.curves[0].x, r.v[:, k], 0.0, 0.0)
        close(chart.curves[0].y, r.tau[:, k], 0.0, 0.0)
    assert (power.unit, [c.name for c in power.curves]) == ("W", ["crank", "slider"])
    for curve, k in zip(power.curves, (crank, slider), strict=True):
        close(curve.y, r.v[:, k] * r.tau[:, k], 1e-12)


def test_walks(sliding: Result) -> None:
    r, c = sliding, sliding.contacts
    assert c is not None
    _, tilt, loads, pressure = r.plot("walk").axes
    R = Rotation.from_quat(r.q[:, 3:7], scalar_first=True)
    turned = np.degrees((R * R[0].inv()).as_rotvec())
    for k, line in enumerate(tilt.lines):
        assert line.get_label() == f"about {'xyz'[k]}"
        close(line.get_ydata(), turned[:, k], 1e-6, 1e-6, "tilt")
    assert len(tilt.lines) == 3
    assert [line.get_label() for line in loads.lines] == ["box"]
    close(loads.lines[0].get_ydata(), c["box"][:, 2], 1e-12, 1e-12, "load")
    bearing = c.force[..., 2].sum(axis=1) > 1.0
    shown = pressure.lines[0].get_ydata()
    close(shown[bearing], c.center_of_pressure[bearing, 0], 1e-12, 1e-12, "centre of pressure")
    (support,) = pressure.collections
    corners = support.get_paths()[0].vertices
    places = np.where(c.touching, c.position[..., 0], np.nan)[c.touching.any(axis=1)]
    close([corners[:, 1].min(), corners[:, 1].max()], [np.nanmin(places), np.nanmax(places)])
    titles = [p.get_title(loc="left") for p in (tilt, loads, pressure)]
    assert titles == ["tilt of the trunk, degrees", "load on the feet, N", "along x, m"]


def test_a_run_of_one_row_stands_in_the_middle() -> None:
    from ramify.view.film import still

    panel = rf.Result.of(still(rf.load("two_link"))).plot("q").axes[0]
    assert panel.get_xlim() == (-0.5, 0.5)


def test_charts_of_a_report(linkage: Result, sliding: Result) -> None:
    """The report's own curves, chart by chart."""
    for r in (linkage, sliding):
        drawn: dict[str, list[Any]] = {}
        for chart in charts(r):
            drawn.setdefault(chart.title, []).append(chart)
        for title, what in (
            ("Joint coordinates", "q"), ("Joint velocities", "v"), ("Joint accelerations", "a"),
            ("Joint forces", "tau"),
        ):  # fmt: skip
            curves = {c.name: (c, p.unit) for p in drawn.get(title, ()) for c in p.curves}
            for k, name in enumerate(r.columns[what]):
                if what == "tau" and not r.tau[:, k].any():
                    assert name not in curves
                    continue
                curve, unit = curves[name]
                own = r.units[what][k]
                assert unit == ("–" if own == "1" else own.replace("^2", "²").replace(" ", "·"))
                close(curve.y, getattr(r, what)[:, k], 0.0, 0.0, f"{title}, {name}")
                wanted = getattr(r.desired, what, None)
                if wanted is None or np.isnan(wanted[:, k]).all():
                    assert curve.wanted is None
                else:
                    close(curve.wanted, wanted[:, k], 0.0, 0.0, f"desired {what}, {name}")
        (energy,) = drawn["Energy"]
        assert energy.unit == "J"
        assert [c.name for c in energy.curves if c.dashed] == ["balance"]
        assert sum(title.startswith("Audit, ") for title in drawn) == len(audited(r).checks)
    limits = [c for c in charts(linkage) if c.title == "Distance to the nearer joint limit"]
    (room,) = limits[0].curves
    assert (limits[0].unit, room.name) == ("rad", "crank")
    close(room.y, 3.0 - np.abs(linkage.q[:, 0]), 0.0, 1e-15)
    contacts = sliding.contacts
    assert contacts is not None
    (depth,) = (c for c in charts(sliding) if c.title.startswith("Penetration"))
    deepest = 1e3 * contacts.penetration.max()
    close(depth.fit, (-0.6 * deepest, deepest), 1e-12)
    drawn_log = {c.title for c in charts(linkage) if c.log and "Audit" not in c.groups}
    assert drawn_log == {"Gaps of the loops"}
    loops = linkage.loops
    assert loops is not None
    for title, values, units in (
        ("Gaps of the loops", np.abs(loops.gap), loops.units),
        ("Forces of the loops", loops.multipliers, loops.forces),
    ):
        panels = [c for c in charts(linkage) if c.title == title]
        curves = {c.name: (c.y, p.unit) for p in panels for c in p.curves}
        assert {*curves} == {*loops.names}
        for i, name in enumerate(loops.names):
            close(curves[name][0], values[:, i], 0.0, 0.0, name)
            assert curves[name][1] == ("–" if units[i] == "1" else units[i].replace(" ", "·"))


def test_comparisons(linkage: Result) -> None:
    """Of a run with one that has other rows, ends earlier and is off by a known amount."""
    r = linkage
    rows = np.arange(0, 21, 2)
    off = {"q": 1e-3, "v": -2e-3, "tau": 0.5}
    moved = {what: getattr(r, what)[rows] - x * r.t[rows, None] for what, x in off.items()}
    cut = {name: getattr(r, name)[rows] for name in ("t", "a")}
    works = Work(r.work.actuator[rows], r.work.dissipated[rows])
    other = Result(r.model, cut["t"], moved["q"], moved["v"], cut["a"], moved["tau"], works)
    shown = compared(r, other)
    assert shown.t[-1] == r.t[20]
    for d in shown.differences:
        k = r.columns[d.what].index(d.name)
        there = np.interp(r.t[:21], r.t[rows], moved[d.what][:, k])
        apart = getattr(r, d.what)[:21, k] - there
        worst = int(np.argmax(np.abs(apart)))
        close([d.largest, d.time], [apart[worst], r.t[worst]], 1e-12, 1e-15, d.name)
        close(d.rms, np.sqrt(np.mean(apart**2)), 1e-12, 0.0, d.name)
        assert d.unit == r.units[d.what][k]
        cells = next(x for x in str(shown).splitlines() if x.split()[:2] == [d.what, d.name])
        assert cells.split()[2:5] == [f"{d.largest:.4g}", f"{d.time:.4g}", f"{d.rms:.4g}"]
    for chart in shown.charts():
        for curve in chart.curves:
            assert np.isnan(curve.y[21:]).all()
            assert np.isfinite(curve.y[:21]).all()


@pytest.mark.parametrize(("joints", "panels"), [(12, 12), (13, 1)])
def test_more_than_twelve_coordinates_share_a_panel(joints: int, panels: int) -> None:
    chain = rf.load("chain", n=joints)
    r = rf.simulate(chain, 0.02, 0.1 * np.arange(joints), dt_out=0.01)
    axes = [panel for panel in r.plot("q").axes if panel.get_visible()]
    assert len(axes) == panels
    lines = [line for panel in axes for line in panel.lines]
    close([line.get_ydata() for line in lines], r.q.T, 0.0, 0.0, "q")
    if panels == 1:
        assert axes[0].get_ylabel() == "rad"
        assert axes[0].get_title(loc="left").startswith("13 coordinates")
    assert r.plot("q", title="mine").get_suptitle() == "mine"
    assert r.plot("q").get_suptitle() == f"{chain.name}: joint coordinates"


def test_phase_charts_of_a_report(linkage: Result) -> None:
    r = linkage
    assert r.desired is not None
    curves = {c.name: c for chart in charts(r) if chart.groups == ("Phase",) for c in chart.curves}
    for k, name in enumerate(("crank", "rod", "slider")):
        curve = curves[name]
        close(curve.x, r.q[:, k], 0.0, 0.0, "q")
        close(curve.y, r.v[:, k], 0.0, 0.0, "v")
        if name == "rod":  # no motion leads it
            assert curve.wanted is None
            continue
        close(curve.wanted_x, r.desired.q[:, k], 0.0, 0.0, "desired q")
        close(curve.wanted, r.desired.v[:, k], 0.0, 0.0, "desired v")


def test_gaps_of_three_loops() -> None:
    r = rf.simulate(rf.load("robotic_leg"), 0.05, dt_out=0.01, method="rk4", step=0.001)
    loops = r.loops
    assert loops is not None
    assert len(r.model.loops) == 3
    gaps, start = r.plot("loops").axes[1], 0
    for loop, line in zip(r.model.loops, gaps.lines, strict=True):
        gap = np.abs(loops.gap[:, start : start + len(loop.rows)]).max(axis=1)
        np.testing.assert_array_equal(line.get_ydata(), np.where(gap > 0.0, gap, np.nan))
        start += len(loop.rows)
    assert start == len(loops.names)


def test_the_ground_of_a_walk_is_at_its_height() -> None:
    ball = rf.Builder("ball").link(
        "ball", joint="free", mass=1.0, inertia=(0.004,) * 3,
        points={"a": (0.1, 0.0, -0.1), "b": (-0.1, 0.1, -0.1), "c": (-0.1, -0.1, -0.1)},
    ).model()  # fmt: skip
    start, moving = [0.0, 0.0, 0.8, 1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    ground = rf.contact.HuntCrossley(terrain=rf.contact.Flat(height=0.7))
    side = rf.simulate(ball, 0.2, start, moving, ground=ground).plot("walk").axes[0]
    level = [line for line in side.lines if list(line.get_xdata()) == [0, 1]]
    assert [list(line.get_ydata()) for line in level] == [[0.7, 0.7]]


@pytest.mark.parametrize("robot", ["gripper", "planar_biped", "kuka_kr5"])
def test_tables_of_a_robot_number_modules_as_the_book_does(robot: str) -> None:
    from lxml import html

    m = rf.load(robot)
    _, *rows = html.fromstring(m._repr_html_()).xpath("//table[.//th[text()='module']]//tr")
    cells = [[cell.text_content() for cell in row.xpath("./td")] for row in rows]
    assert [int(row[2]) for row in cells] == list(m.module_numbers)
    assert [row[0] for row in cells] == [body.name for body in m.bodies]
