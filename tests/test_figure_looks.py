"""The look of every plot: titles, axes, legends, colours of the theme, dashes and sizes; beside
test_plotted_data, which compares the numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.view import figures, raster
from ramify.view.figures import DASHED, PANELS, THEMES
from ramify.view.film import Studio, _letters, still
from ramify.view.torque_speed import drive_charts


def crane() -> rf.Model:
    b = rf.Builder("crane")
    b.link(
        "turn", axis=(0, 1, 0), mass=2.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.3), effort=30.0
    )
    b.link("slide", "turn", joint="prismatic", axis=(1, 0, 0), at=(0.4, 0, 0), mass=1.0, effort=25.0, velocity=2.5)  # fmt: skip
    return b.model()


@pytest.fixture(scope="module")
def runs() -> dict[str, rf.Result]:
    motion = rf.motion.Cycloid([0.1, 0.0], [0.4, 0.1], 0.2)
    foot = rf.Builder("foot").link("foot", joint="free", mass=1.0, inertia=(0.1, 0.2, 0.3), points={"a": (0.1, 0, -0.1), "b": (-0.1, 0.1, -0.1), "c": (0, -0.1, -0.1)})  # fmt: skip
    return {
        "crane": rf.simulate(crane(), 0.2, [0.15, 0.05], control=rf.control.PD(motion, kp=40, kd=4)),
        "foot": rf.simulate(foot.model(), 0.2, [0, 0, 0.11, 1, 0, 0, 0], [0.3, 0, 0, 0, 0, 0], ground="firm"),
        "loops": rf.simulate(rf.load("four_bar"), 0.1),
    }  # fmt: skip


Panel = tuple[str, str, str, list[str]]  # title, x, y, labels of its own legend
EXPECTED: list[tuple[str, str, str, list[Panel], list[str]]] = [
    ("crane", "q", "joint coordinates",
     [("turn", "t, s", "q, rad", ["desired", "simulated"]), ("slide", "t, s", "q, m", [])], []),
    ("crane", "v", "joint velocities",
     [("turn", "t, s", "v, rad/s", ["desired", "simulated"]), ("slide", "t, s", "v, m/s", [])], []),
    ("crane", "a", "joint accelerations",
     [("turn", "t, s", "a, rad/s²", ["desired", "simulated"]), ("slide", "t, s", "a, m/s²", [])], []),
    ("crane", "tau", "joint forces",
     [("turn", "t, s", "tau, N m", []), ("slide", "t, s", "tau, N", [])], []),
    ("crane", "phase", "phase portraits",
     [("turn", "q, rad", "v, rad/s", ["desired", "simulated", "start"]), ("slide", "q, m", "v, m/s", [])], []),
    ("crane", "drives", "force over speed of the drives",
     [("turn", "speed, rad/s", "force, N m", []), ("slide", "speed, m/s", "force, N", [])], ["limits", "run"]),
    ("crane", "energy", "energy",
     [("", "t, s", "energy, J", ["kinetic", "potential, from the start", "work of actuators", "balance: should not change"])], []),
    ("crane", "audit", "energy audit", [("energy: passed", "t, s", "error / scale", ["error", "limit"])], []),
    ("foot", "momentum", "momentum",
     [("Linear momentum", "t, s", "kg m/s", ["x", "y", "z"]),
      ("Angular momentum about the centre of mass", "t, s", "kg m²/s", ["x", "y", "z"])], []),
    ("foot", "contacts", "contact with the ground",
     [("upward force", "t, s", "N", []), ("force along the level", "t, s", "N", []), ("depth in the ground", "t, s", "mm", []),
      ("centre of pressure", "t, s", "m", ["x", "y"])], ["a", "b", "c"]),
    ("foot", "walk", "walk",
     [("", "", "height, m", []), ("tilt of the trunk, degrees", "t, s", "", ["about x", "about y", "about z"]),
      ("load on the feet, N", "t, s", "", ["foot"]), ("along x, m", "t, s", "", ["support", "centre of pressure"])], []),
    ("loops", "loops", "closed loops",
     [("", "t, s", "multiplier, N or N m", []), ("", "t, s", "gap, m or 1", [])], ["*multipliers", "*gaps"]),
]  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("run", "what", "words", "panels", "beside"), EXPECTED, ids=[x[1] for x in EXPECTED])  # fmt: skip
def test_every_plot_is_labelled(
    runs: dict[str, rf.Result], run: str, what: str, words: str, panels: list[Panel],
    beside: list[str], theme: str,
) -> None:  # fmt: skip
    r, look = runs[run], THEMES[theme]
    figure = r.plot(what, theme=theme)
    assert figure.get_suptitle() == f"{r.model.name}: {words}"
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    assert len(drawn) == len(panels)
    for axes, (title, x, y, labels) in zip(drawn, panels, strict=True):
        assert axes.get_title(loc="left") == title
        assert (axes.get_xlabel(), axes.get_ylabel()) == (x, y)
        own = axes.get_legend()
        assert [text.get_text() for text in own.get_texts()] == labels if own else labels == []
        if x == "t, s" and what != "walk":
            assert axes.get_xlim() == (r.t[0], r.t[-1])
        known = {*look.lines, look.ink, look.alarm}
        assert {line.get_color() for line in axes.lines} <= known
        assert axes.get_facecolor()[:3] == pytest.approx([int(look.paper[k : k + 2], 16) / 255 for k in (1, 3, 5)])  # fmt: skip
        if what != "walk":
            assert axes.xaxis.get_gridlines()[0].get_visible()
    titles = [f"*{x.get_title().get_text()}" for x in figure.legends if x.get_title().get_text()]
    texts = [t.get_text() for x in figure.legends for t in x.get_texts()]
    assert (titles or texts) == beside
    if what == "loops":
        assert r.loops is not None
        assert texts == [*map(figures.short, r.loops.names), *(loop.name for loop in r.model.loops)]
        assert drawn[1].get_yscale() == "log"
    if what == "audit":
        assert drawn[0].get_yscale() == "log"
        check = r.audit.energy
        close(drawn[0].lines[1].get_ydata(), check.limit / check.scale, 1e-12)
    given = r.plot(what, theme=theme, title="Own words")
    assert given.get_suptitle() == "Own words"
    assert r.plot(what, title="").get_suptitle() == ""


def test_desired_motions_and_limits_are_dashed(runs: dict[str, rf.Result]) -> None:
    r, look = runs["crane"], THEMES["light"]
    for axes in r.plot("q").axes:
        desired, simulated = axes.lines
        assert desired.is_dashed()
        assert not simulated.is_dashed()
        assert (desired.get_color(), simulated.get_color()) == (look.lines[1], look.lines[0])
        assert (desired.get_linewidth(), simulated.get_linewidth()) == (2.4, 1.4)
    for axes in r.plot("drives").axes:
        limits, run = axes.lines
        assert limits.is_dashed()
        assert not run.is_dashed()
    first = r.plot("phase").axes[0].lines
    assert first[0].is_dashed()
    assert (first[2].get_marker(), first[2].get_color()) == ("o", look.ink)
    close(first[2].get_xydata(), [[r.q[0, 0], r.v[0, 0]]], 0)
    assert DASHED == {"linestyle": (0, (3, 2))}


def test_a_broken_audit_shows_where() -> None:
    r = rf.simulate(crane(), 0.5, [0.2, 0.05], [3.0, 0.0], method="euler", step=0.05)
    assert not r.audit.passed
    axes = r.plot("audit").axes[0]
    assert axes.get_title(loc="left") == "energy: failed"
    first = r.audit.energy.first
    assert first is not None
    *_, mark = axes.lines
    close(mark.get_xdata(), r.t[first], 0)
    assert mark.get_color() == THEMES["light"].alarm
    assert mark.get_label() == f"breaks at {r.t[first]:.4g} s"


def test_curves_come_again_with_other_dashes() -> None:
    theme = THEMES["dark"]
    looks = [figures.stroke(theme, k) for k in range(25)]
    assert [x["color"] for x in looks] == [theme.lines[k % 5] for k in range(25)]
    dashes = [str(x["linestyle"]) for x in looks]
    assert dashes[:5] == ["-"] * 5
    assert len(set(dashes[:20:5])) == 4
    assert dashes[20] == "-"


def test_long_names_keep_both_ends() -> None:
    name = "abcdefghijklmnopqrstuvwxyz01"
    assert figures.short(name) == name
    assert figures.short(f"{name}2") == "abcdefghijklmn…qrstuvwxyz012"


@pytest.mark.parametrize(("count", "grid"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 3)), (7, (3, 3))])  # fmt: skip
def test_panels_stand_in_rows_of_three(count: int, grid: tuple[int, int]) -> None:
    figure, axes = figures.panels(count)
    assert len(axes) == count
    shape = axes[0].get_subplotspec().get_gridspec().get_geometry()
    assert shape == grid
    rows, across = grid
    close(figure.get_size_inches(), (3.6 * across + (1.4 if across < 3 else 0.0), 2.3 * rows + 0.5), 1e-12)  # fmt: skip
    assert [a.get_visible() for a in figure.axes] == [True] * count + [False] * (rows * across - count)  # fmt: skip


def test_too_many_panels_are_refused() -> None:
    assert PANELS == 12
    figures.refuse_many(12, "drives", "drives")
    with pytest.raises(rf.RamifyError, match=r"13 drives are too many .* up to 12 joints: plot\('phase', joints="):  # fmt: skip
        figures.refuse_many(13, "drives", "phase")


def test_a_notebook_gets_a_picture(runs: dict[str, rf.Result]) -> None:
    data = runs["crane"].plot("q", joints=["turn"])._repr_png_()
    assert data.startswith(b"\x89PNG")
    width, height = (int.from_bytes(data[k : k + 4], "big") for k in (16, 20))
    assert (width, height) == (500, 280)


def test_one_row_has_a_second_around_it() -> None:
    from matplotlib.figure import Figure

    panel = Figure().subplots()
    figures.over_time(panel, np.array([2.0]), "q, rad", "title")
    assert panel.get_xlim() == (1.5, 2.5)
    figures.over_time(panel, np.array([2.0, 4.0]), "q, rad")
    assert panel.get_xlim() == (2.0, 4.0)


def test_constant_curves_are_flat() -> None:
    r = rf.simulate(crane(), 0.05)
    t = r.t
    rows = np.column_stack([np.full(len(t), 2.0) * (1 + 1e-15 * np.arange(len(t))), t])
    figure = replace(r, q=rows, desired=None).plot("q")
    assert figure.axes[0].get_ylim() == (1.0, 3.0)
    low, high = figure.axes[1].get_ylim()
    assert low < 0.001
    assert high < 0.06
    tiny = np.column_stack([1e-14 * np.sin(99 * t), t + 1.0])
    assert replace(r, q=tiny, desired=None).plot("q").axes[0].get_ylim() == (-1.0, 1.0)


def test_joints_are_chosen_by_name(runs: dict[str, rf.Result]) -> None:
    r = runs["crane"]
    for what in ("q", "v", "tau", "phase", "drives"):
        (axes,) = r.plot(what, joints=["slide"]).axes
        assert axes.get_title(loc="left") == "slide"
    for wrong, why in (
        (["slid"], "slid"),
        ([], "joints is empty"),
        ("slide", "got the text 'slide'"),
    ):
        with pytest.raises(rf.RamifyError, match=why):
            r.plot("q", joints=wrong)
    for options, why in (({"theme": "blue"}, "theme"), ({"title": 3}, "title")):
        with pytest.raises(rf.RamifyError, match=why):
            r.plot("q", **options)
    with pytest.raises(rf.RamifyError, match=r"there is no plot 'x'; choose one of q, v, a, tau"):
        r.plot("x")
    fixed = rf.Builder("idle").link("a", mass=1.0, com=(0.1, 0, 0)).link("b", "a", mass=1.0, com=(0.1, 0, 0), actuated=False)  # fmt: skip
    idle = rf.simulate(fixed.model(), 0.02)
    with pytest.raises(rf.RamifyError, match="none of these joints is actuated"):
        idle.plot("drives", joints=["b"])


def test_charts_of_drives(runs: dict[str, rf.Result]) -> None:
    """Each on its own with its border; more than twelve together, by unit."""
    r = runs["crane"]
    turn, slide, power = drive_charts(r)
    assert (turn.title, turn.unit, turn.across) == ("turn: force over speed", "N·m", ("v", "rad/s"))
    assert (slide.unit, slide.across) == ("N", ("v", "m/s"))
    border = slide.curves[1]
    assert (border.name, border.dashed) == ("what it can give", True)
    assert border.x is not None
    corners = {(-2.5, -25.0), (2.5, -25.0), (2.5, 25.0), (-2.5, 25.0)}
    assert {*zip(border.x.tolist(), border.y.tolist(), strict=True)} == corners
    assert (border.x[-1], border.y[-1]) == (border.x[0], border.y[0])
    reached = 1.1 * np.abs(r.v[:, 0]).max()
    gone = turn.curves[1]
    assert gone.x is not None
    close(np.nanmax(gone.x), reached, 1e-12)
    assert {*gone.y[np.isfinite(gone.y)]} == {-30.0, 30.0}
    for j, curve in enumerate(power.curves):
        close(curve.y, r.tau[:, j] * r.v[:, j], 1e-12)
    assert power.unit == "W"
    assert drive_charts(replace(r, tau=np.zeros_like(r.tau))) == []
    b = rf.Builder("chain")
    for k in range(13):
        slides = {"joint": "prismatic", "axis": (1, 0, 0)} if k % 2 else {}
        b.link(f"l{k}", f"l{k - 1}" if k else None, mass=1.0, at=(0.1, 0, 0), com=(0.05, 0, 0), inertia=(0.1, 0.1, 0.1), effort=9.0, **slides)  # fmt: skip
    long = rf.simulate(b.model(), 0.02, control=rf.control.Torque([0.1] * 13))
    first, second, total = drive_charts(long)
    assert (first.title, len(first.curves), len(second.curves)) == ("Force over speed", 7, 6)
    assert {first.unit, second.unit} == {"N·m", "N"}
    assert len(total.curves) == 13


def test_words_in_a_film() -> None:
    """Letters as large as asked for, in the upper left corner, in the ink of the theme."""
    small, large = _letters("0.12 s", 11), _letters("0.12 s", 30)
    assert (small.shape[0], large.shape[0]) == (22, 60)
    assert small.min() == 0.0
    assert large.max() == 1.0
    assert large.shape[1] > 2 * small.shape[1]
    rows = np.flatnonzero(large.any(axis=1))
    assert rows[-1] < 45
    assert rows[-1] - rows[0] > 15
    studio = Studio(still(crane()), 320, 260, "light")
    plain, told = studio.shoot(0, words=False), studio.shoot(0, words=True)
    changed = np.argwhere((plain != told).any(axis=2))
    assert changed.min(axis=0).min() >= 11
    assert changed.max(axis=0)[0] < 11 + 22
    assert changed.max(axis=0)[1] < 120
    darkest = told[changed[:, 0], changed[:, 1], :3].min(axis=0)
    close(darkest, np.array(studio.look.ink) * 255, atol=12)


def test_pictures_look_where_the_camera_looks() -> None:
    """A lens puts its target into the middle, what is higher up and what is nearer larger."""
    target = np.array([0.3, -0.2, 0.5])
    lens = raster.Lens.around(target, 2.0, 0.7, 0.3, 400, 300)
    first, up = lens.pixels(np.array([target, target + np.array([0, 0, 0.2])])).T[:, :2]
    close(first, (200, 150), atol=1.0)
    close(up[0], first[0], atol=1e-6)
    assert up[1] < first[1]
    way = np.array([math.cos(0.3) * math.cos(0.7), math.cos(0.3) * math.sin(0.7), math.sin(0.3)])
    eye = lens.eye - target
    close(eye / np.linalg.norm(eye), way, 1e-9, 1e-9)
    left = np.cross([0, 0, 1.0], way)  # to the right of who looks along -way
    side = lens.pixels((target + 0.2 * left)[None])[:2, 0]
    assert side[0] > first[0]
    near, far = (lens.pixels(np.array([target + s * way, target + s * way + 0.1 * left]))[0] for s in (0.3, -0.3))  # fmt: skip
    assert near[1] - near[0] > far[1] - far[0]


def test_pictures_are_saved_by_their_suffix(runs: dict[str, rf.Result], tmp_path: Path) -> None:
    figure: Any = runs["crane"].plot("q")
    for suffix, head in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        figures.save_picture(figure, tmp_path / f"x{suffix}")
        assert (tmp_path / f"x{suffix}").read_bytes().startswith(head)
    data = (tmp_path / "x.png").read_bytes()
    close(int.from_bytes(data[16:20], "big"), 100 * figure.get_size_inches()[0], atol=1.0)
    svg = (tmp_path / "x.svg").read_text()
    assert "<text" in svg
    assert "<dc:date>" not in svg
    with pytest.raises(rf.RamifyError, match="names no kind of picture; choose one of"):
        figures.save_picture(figure, tmp_path / "x.xyz")


LENS = raster.Lens.around(np.array([0.3, -0.2, 0.5]), 2.0, 0.7, 0.3, 400, 300)
LOOK = raster.LOOKS["light"]


def ray(x: float, y: float) -> Any:
    """The unit vector from the eye through a pixel."""
    right, up, back = LENS.turn
    way = (x - 200) * right - (y - 150) * up - LENS.focus * back
    return way / np.linalg.norm(way)


@pytest.mark.parametrize(("x", "y"), [(200.0, 150.0), (37.0, 220.0), (333.0, 71.0)])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_the_light_on_a_surface(x: float, y: float, side: float) -> None:
    """Sky, sun, gloss and rim, by vectors; both sides of a triangle look alike."""
    settings = raster.shading_settings(LENS, LOOK, np.array([0.3, -0.2, 0.5]), 2.0, -0.4, 0.2)
    planes = np.array([[1e-3, 2e-3, 0.3], [-1e-3, 1e-3, 0.5], [2e-3, -1e-3, 0.7]])
    colour, hides = np.array([0.3, 0.5, 0.2]), 0.8
    record = [*(side * planes).ravel(), *colour, hides, 1.0]
    n = planes @ (x, y, 1.0)
    back = -ray(x, y)
    n *= np.sign(n @ back) / np.linalg.norm(n)
    half = (raster.LIGHT + back) / np.linalg.norm(raster.LIGHT + back)
    light = 0.63 + 0.11 * n[2] + 0.36 * max(n @ raster.LIGHT, 0.0)
    glint = 0.16 * max(n @ half, 0.0) ** 42 + 0.10 * (1.0 - n @ back) ** 3
    (found,) = raster.surface([x, y], settings.tolist(), record)
    close(found, [*np.clip(light * colour + glint, 0.0, 1.0), 1.0 - hides], 1e-9, 1e-12)
    (plain,) = raster.surface([x, y], settings.tolist(), [*record[:13], 0.0])
    close(plain, [*colour, 1.0 - hides], 1e-12)


@pytest.mark.parametrize(
    ("x", "y"), [(200.0, 230.0), (120.0, 280.0), (333.0, 20.0), (300.0, 180.0)]
)
def test_the_floor_behind_all(x: float, y: float) -> None:
    """The plate where a ray meets the floor between the lines, paler with the distance; the sky
    above it.
    """
    centre, floor, cell = np.array([0.3, -0.2, 0.5]), -0.4, 0.2
    settings = raster.shading_settings(LENS, LOOK, centre, 2.0, floor, cell)
    way = ray(x, y)
    (found,) = raster.background([x, y], settings.tolist())
    paper, plate, grid = (np.array(c) for c in (LOOK.paper, LOOK.plate, LOOK.grid))
    if way[2] >= 0.0:
        close(found, paper, 1e-12)
        return
    at = (LENS.eye + way * (floor - LENS.eye[2]) / way[2])[:2]
    share = np.clip((1.0 - np.linalg.norm(at - centre[:2]) / 16.0) / 0.85, 0.0, 1.0)
    fade = share**2 * (3.0 - 2.0 * share)
    steps = []
    for dx, dy in ((1, 0), (0, 1)):  # how far a pixel is on the floor
        ways = [ray(x + s * 0.01 * dx, y + s * 0.01 * dy) for s in (-1, 1)]
        a, b = ((LENS.eye + w * (floor - LENS.eye[2]) / w[2])[:2] for w in ways)
        steps.append(np.abs(b - a) / 0.02)
    wide = np.sum(steps, axis=0)

    def lines(width: float) -> float:
        apart = np.abs(at / width - np.round(at / width)) * width / wide
        dense = np.clip((0.5 - wide.max() / width) / 0.45, 0.0, 1.0)
        return float((1.0 - min(apart.min(), 1.0)) * dense)

    k = max(0.30 * lines(cell), 0.5 * lines(5 * cell)) * fade
    cover = max(k, 0.85 * fade)
    close(found, paper + cover * ((plate - paper) + (grid - plate) * k), 1e-4, 1e-6)


def covered(facets: Any) -> Any:
    canvas = raster.Canvas(400, 300, compile=False)
    canvas._cover(facets, 1)
    return canvas._which[0, :, :400] > 0


def test_shadows_fall_away_from_the_light() -> None:
    points = np.array([[0.1, 0.1, 0.3], [0.5, 0.1, 0.3], [0.1, 0.5, 0.6]])
    floor = -0.4
    fallen = points - raster.LIGHT / raster.LIGHT[2] * (points[:, 2] - floor)[:, None]
    close(fallen[:, 2], floor, 1e-12)
    faces = np.array([[0, 1, 2]])
    drawn = raster.shadow(LENS, points, faces, floor, LOOK)
    plain = raster.facets(LENS, LENS.pixels(fallen), faces, (0.0, 0.0, 0.0))
    assert (covered(drawn) == covered(plain)).mean() > 0.999
    assert covered(drawn).sum() > 100
    close(drawn.records[0, 9:], [0, 0, 0, LOOK.shade, 0], 1e-6)
    below = raster.shadow(LENS, points - np.array([0, 0, 2.0]), faces, floor, LOOK)
    assert len(below.edges) == 0


def test_a_trail_is_a_line_of_its_width() -> None:
    path = np.array([[0.0, -0.5, 0.5], [0.3, 0.1, 0.5], [0.6, 0.1, 0.9]])
    drawn = raster.ribbon(LENS, path, (0.1, 0.2, 0.3), 5.0)
    shown = covered(drawn)
    x, y, _ = LENS.pixels(path)
    rows, columns = np.nonzero(shown)
    here = np.stack([columns + 0.5, rows + 0.5], axis=1)
    off = np.full(len(here), np.inf)
    length = 0.0
    for a, b in ((0, 1), (1, 2)):
        start, end = np.array([x[a], y[a]]), np.array([x[b], y[b]])
        s = np.clip((here - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1)
        off = np.minimum(off, np.linalg.norm(here - start - s[:, None] * (end - start), axis=1))
        length += float(np.linalg.norm(end - start))
    assert off.max() < 4.5
    close(shown.sum(), 5.0 * length, 0.12)
    close(drawn.records[:, 9:12], [[0.1, 0.2, 0.3]] * len(drawn.records), 1e-6)


def test_what_is_behind_the_eye_is_not_drawn() -> None:
    behind = LENS.eye + LENS.turn[2] * 0.5
    points = np.array([behind, behind + [0.1, 0, 0], behind + [0, 0.1, 0]])  # noqa: RUF005
    assert (
        len(raster.facets(LENS, LENS.pixels(points), np.array([[0, 1, 2]]), (1, 1, 1)).edges) == 0
    )


def test_sizes_of_figures_and_widths_of_lines(runs: dict[str, rf.Result]) -> None:
    crane, foot, loops = runs["crane"], runs["foot"], runs["loops"]
    assert loops.loops is not None
    lines = len(loops.loops.names) + len(loops.model.loops)
    for r, what, size, widths in (
        (crane, "q", (3.6 * 2 + 1.4, 2.8), {2.4, 1.4}),
        (crane, "phase", (3.6 * 2 + 1.4, 2.8), {1.5, 1.3}),
        (crane, "energy", (8.0, 4.5), {1.5, 1.2}),
        (crane, "audit", (8.0, 4.0), {1.2, 1.5}),
        (foot, "walk", (9.0, 5.2), {1.4, 0.8}),
        (foot, "momentum", (3.6 * 2 + 1.4, 2.8), {1.2}),
        (foot, "contacts", (3.6 * 2 + 1.4, 5.1), {1.2}),
        (loops, "loops", (10.2, max(2.8, 0.19 * (lines + 4))), {1.2}),
    ):
        figure = r.plot(what)
        close(figure.get_size_inches(), size, 1e-12)
        assert {round(x.get_linewidth(), 3) for x in figure.axes[0].lines} == widths, what
