"""Plots of a run: every kind draws, says names and units, and chokes on no name."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from reference_runs import run

import ramify as rf
from ramify.api.result import Result
from ramify.motion import cycloid


@pytest.fixture(scope="module")
def free() -> Result:
    model = rf.load("space_3_link", base="free")
    return run(model, model.neutral(), 0.4 * np.cos(np.arange(model.nv)), 1.0, rows=21)


PLOTS = ("q", "v", "a", "tau", "energy", "momentum", "audit", "phase")


@pytest.mark.parametrize(
    ("what", "theme"), [*((what, "light") for what in PLOTS), ("q", "dark"), ("audit", "dark")]
)
def test_plots(what: str, theme: str, tmp_path: Path) -> None:
    model = (
        rf.Builder("two <script>")
        .link("$x_1$", mass=1, com=(1, 0, 0), inertia=(1, 1, 1))
        .link("ü & λ", parent="$x_1$", mass=1, com=(1, 0, 0))
        .model()
    )
    r = run(model, [0.1, 0.2], [0.0, 1.0], 0.5, rows=11, desired=cycloid([0, 0], [1, 1], 0.5, 11))
    figure = r.plot(what, theme=theme)  # type: ignore[arg-type]
    figure.savefig(tmp_path / "plot.svg")
    labels = [axes.get_title(loc="left") for axes in figure.axes]
    if what not in ("energy", "momentum", "audit"):
        assert labels[:2] == ["$x_1$", "ü & λ"]
    assert all(
        axes.get_xlabel() and axes.get_ylabel() for axes in figure.axes if axes.get_visible()
    )
    if what in ("q", "v", "phase"):
        assert "desired" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert "<script>" not in (tmp_path / "plot.svg").read_text()


def test_plots_of_chosen_joints_and_of_many(free: Result, tmp_path: Path) -> None:
    for what in ("q", "phase", "audit"):
        free.plot(what).savefig(tmp_path / f"{what}.png", dpi=40)  # type: ignore[arg-type]
    names = [joint.name for joint in free.model.joints]
    assert len([a for a in free.plot("q", joints=names[1:3]).axes if a.get_visible()]) == 2
    chain = rf.load("chain", n=20)
    many = run(chain, np.zeros(20), np.zeros(20), 0.05, rows=3)
    assert len(many.plot("tau").axes) == 1
    with pytest.raises(rf.RamifyError, match="too many"):
        many.plot("phase")
    for wrong in (
        {"what": "nonsense"},
        {"theme": "blue"},
        {"joints": ["nonsense"]},
        {"joints": names[0]},
        {"joints": []},
    ):
        with pytest.raises(rf.RamifyError):
            free.plot(**wrong)  # type: ignore[arg-type]


def test_long_names_are_shortened() -> None:
    """A figure with names of 200 characters still has its panels; Matplotlib's warning that it has
    not would be an error.
    """
    builder = rf.Builder("r" * 200)
    for k in range(3):
        builder.link(
            f"{k}" + "x" * 198 + f"{k}",
            f"{k - 1}" + "x" * 198 + f"{k - 1}" if k else None,
            mass=1.0,
            com=(1, 0, 0),
        )
    run = rf.simulate(builder.model(), t_end=0.1)
    for what in ("q", "phase", "energy", "audit"):
        figure = run.plot(what)
        figure.savefig(io.BytesIO(), format="png")
        assert all(axes.get_position().width > 0.15 for axes in figure.axes if axes.get_visible())
    assert run.plot("q").axes[1].get_title(loc="left") == "1" + "x" * 13 + "…" + "x" * 12 + "1"


def test_curves_of_loops_differ() -> None:
    run = rf.simulate(rf.load("stewart_platform"), t_end=0.02)
    figure = run.plot("loops")
    figure.savefig(io.BytesIO(), format="png")
    boxes = [legend.get_window_extent() for legend in figure.legends]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])
    assert not any(
        "$" in label.get_text()
        for panel in figure.axes
        for label in panel.get_yticklabels(which="both")
    )
    for panel in figure.axes:
        strokes = [(line.get_color(), str(line._unscaled_dash_pattern)) for line in panel.lines]
        assert len(strokes) > 5
        assert len(set(strokes)) == min(len(strokes), 20)
        assert panel.get_legend() is None  # beside the panels


def test_a_run_of_one_row_is_plotted() -> None:
    from ramify.view.film import still

    figure = rf.Result.of(still(rf.load("two_link"))).plot("audit")
    figure.savefig(io.BytesIO(), format="png")
    assert len(figure.axes) == 1


def test_no_centre_of_pressure_without_load() -> None:
    from dataclasses import replace

    from ramify.view.curves import pressed

    run = rf.scenario("biped_fall").run(t_end=0.1)
    assert run.contacts is not None
    force = run.contacts.force.copy()
    force[0] = 0.0
    force[0, 0, 2] = 1e-9
    shown = pressed(replace(run, contacts=replace(run.contacts, force=force)))
    assert shown is not None
    assert np.isnan(shown[0]).all()
    bearing = run.contacts.load.sum(axis=1) > 1.0
    assert bearing.any()
    assert np.array_equal(shown[1:][bearing[1:]], run.contacts.center_of_pressure[1:][bearing[1:]])


def sled(turn: int) -> Result:
    """A box that slides along on four feet; ``turn`` cycles the axes of its world and of its file:
    z is up, then y, then x.
    """
    order = np.roll(np.arange(3), -turn)  # world axis i of the turned run is axis order[i] of z up

    def seen(vector: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(float(vector[k]) for k in order)

    feet = {f"foot{i}": seen((x, y, -0.1)) for i, (x, y) in enumerate(((0.3, 0.1), (0.3, -0.1), (-0.3, 0.1), (-0.2, -0.1)))}  # fmt: skip
    builder = rf.Builder("sled", gravity=seen((0.0, 0.0, -9.81)))
    builder.link("box", joint="free", mass=2.0, inertia=seen((0.02, 0.05, 0.06)), points=feet)
    builder.link("flag", "box", mass=0.1, com=seen((0.0, 0.0, 0.1)), at=seen((0.1, 0.0, 0.2)), axis=seen((0.0, 1.0, 0.0)), inertia=(1e-3,) * 3)  # fmt: skip
    place, half = seen((0.0, 0.0, 0.1)), seen((0.0, 0.02, 0.0))
    q = [*place, 1.0, *half, 0.0]
    q[3] = float(np.sqrt(1.0 - np.dot(half, half)))
    v = [*seen((0.8, 0.1, 0.0)), 0.0, 0.0, 0.0, 0.0]
    return rf.simulate(builder.model(), 0.2, q, v, ground="firm", dt_out=0.01)


@pytest.mark.parametrize(("turn", "name"), [(1, "z"), (2, "y")])
def test_a_walk_looks_the_same_whatever_axis_is_up(turn: int, name: str) -> None:
    upright, turned = (sled(k).plot("walk") for k in (0, turn))
    for k in (0, 2, 3):  # side view, loads, pressure; the tilt is about the world's own axes
        for a, b in zip(upright.axes[k].lines, turned.axes[k].lines, strict=True):
            np.testing.assert_allclose(a.get_xydata(), b.get_xydata(), rtol=1e-5, atol=1e-6)
    heights = np.concatenate([line.get_ydata() for line in turned.axes[0].lines[:-1]])
    assert heights.max() > 0.25
    assert upright.axes[3].get_title(loc="left") == "along x, m"
    assert turned.axes[3].get_title(loc="left") == f"along {name}, m"


def test_forces_of_joints_that_nothing_drives_are_left_out() -> None:
    model = rf.load("four_bar")
    start = model.assemble({"crank": 0.3})
    held = rf.control.PD(rf.motion.Hold([0.0]), kp=1.0, kd=0.1)
    r = rf.simulate(model, 0.05, start.q, control=held)
    assert [panel.get_title(loc="left") for panel in r.plot("tau").axes] == ["crank"]
    assert len(r.plot("tau", joints=["crank", "rocker"]).axes) == 2
    assert len(rf.simulate(model, 0.05, start.q).plot("tau").axes) == 3
