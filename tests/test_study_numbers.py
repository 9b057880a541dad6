"""What a study keeps and draws, against NumPy over the runs themselves: every metric, its unit, and
every line, bar and label of its plots.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.studies.outputs import METRICS, WHOLE
from ramify.studies.sensitivity_indices import first_order_index, pareto
from ramify.studies.study_plots import drawn, trade_offs
from ramify.studies.study_units import column_unit

PER_JOINT = {name: ["turn", "slide"] for name in METRICS}


def crane() -> rf.Model:
    """One joint that turns, one that slides; both rub."""
    b = rf.Builder("crane")
    b.link("turn", axis=(0, 1, 0), mass=2.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.1), damping=0.5)
    b.link("slide", "turn", joint="prismatic", axis=(1, 0, 0), mass=1.0, spring={"stiffness": 20.0})
    return b.model()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> rf.Study:
    """Sixty runs under a controller that follows a motion."""
    folder: Path = tmp_path_factory.mktemp("study")
    crane().save(folder / "crane.yaml")
    scenario = {
        "name": "lift",
        "robot": str(folder / "crane.yaml"),
        "t_end": 0.1,
        "dt_out": 0.02,
        "initial": {"q": [0.1, 0.05]},
        "motion": {"type": "cycloid", "start": [0.1, 0.0], "end": [0.4, 0.1], "duration": 0.1},
        "control": {"type": "pd", "kp": 20.0, "kd": 2.0},
    }
    metrics = [*METRICS, *WHOLE, "position.slide"]
    metrics += [f"{name}.{joint}" for name, joints in PER_JOINT.items() for joint in joints]
    study = rf.study(
        name="lifts",
        scenario=scenario,
        vary={"damping": [0.0, 0.5], "initial.v.turn": {"uniform": [-1.0, 2.0]}},
        points={"runs": 30, "seed": 3},
        keep={"metrics": metrics},
        ledger=folder / "lifts.db",
    )
    assert study.run(engine="serial").done == 60
    return study


def by_hand(r: rf.Result) -> dict[str, float]:
    """All metrics of a run."""
    assert r.desired is not None
    off, found = r.q - r.desired.q, {}
    for end, j in (("", slice(None)), (".turn", slice(0, 1)), (".slide", slice(1, 2))):
        found |= {
            f"max_abs_q{end}": np.abs(r.q[:, j]).max(),
            f"max_speed{end}": np.abs(r.v[:, j]).max(),
            f"max_torque{end}": np.abs(r.tau[:, j]).max(),
            f"rms_torque{end}": np.sqrt((r.tau[:, j] ** 2).mean()),
            f"max_error{end}": np.abs(off[:, j]).max(),
            f"rms_error{end}": np.sqrt((off[:, j] ** 2).mean()),
            f"final_error{end}": np.abs(off[-1, j]).max(),
            f"final_speed{end}": np.abs(r.v[-1, j]).max(),
        }
    place = r.model.pose(r.q[-1], "slide").position
    return found | {
        "work": r.work.actuator[-1],
        "loss": r.work.dissipated[-1],
        "max_kinetic": r.energy.kinetic.max(),
        "final_kinetic": r.energy.kinetic[-1],
        "energy_error": np.abs(r.audit.error).max(),
        "t_end": r.t[-1],
        "steps": r.stats["steps"],
        "final.q.turn": r.q[-1, 0],
        "final.q.slide": r.q[-1, 1],
        "final.v.turn": r.v[-1, 0],
        "final.v.slide": r.v[-1, 1],
        **dict(zip(("position.slide.x", "position.slide.y", "position.slide.z"), place, strict=True)),
    }  # fmt: skip


def test_every_metric_is_that_of_the_run(done: rf.Study) -> None:
    table = done.table()
    for number in (0, 17, 59):
        r = done.result(number)
        close(r.v[0, 0], table["initial.v.turn"][number], 0.0, 0.0, "v of the start")
        expected = by_hand(r)
        assert set(expected) == {*table} - {"run", "status", "seconds", "damping", "initial.v.turn"}
        for name, value in expected.items():
            close(table[name][number], value, 1e-9, 1e-9, f"{name} of run {number}")


UNITS = {
    "max_abs_q": ("rad", "m"), "max_speed": ("rad/s", "m/s"), "max_torque": ("N m", "N"),
    "rms_torque": ("N m", "N"), "max_error": ("rad", "m"), "rms_error": ("rad", "m"),
    "final_error": ("rad", "m"), "final_speed": ("rad/s", "m/s"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(METRICS))
def test_units_of_metrics_are_those_of_their_joints(name: str) -> None:
    turning, sliding = UNITS[name]
    robot = crane()
    assert column_unit(f"{name}.turn", robot) == turning
    assert column_unit(f"{name}.slide", robot) == sliding
    assert column_unit(name, robot) == f"{turning} or {sliding}"
    assert column_unit(name, rf.load("two_link")) == turning
    cart = rf.Builder("cart").link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0).model()
    assert column_unit(name, cart) == sliding


def test_the_plot_of_a_study(done: rf.Study) -> None:
    names = ["max_speed.turn", "work", "t_end"]
    figure = done.plot(columns=names)
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    table = done.table()
    grid = np.array(figure.axes).reshape(3, 3)
    heads = ["max_speed.turn [rad/s]", "work [J]", "t_end [s]"]
    assert figure.get_suptitle() == "lifts: 60 runs"
    parameters = {"damping": "damping [N m s/rad or N s/m]", "initial.v.turn": "initial.v.turn [rad/s]"}  # fmt: skip
    for row, name, head in zip(grid, names, heads, strict=True):
        assert row[0].get_title(loc="left") == head
        values = table[name]
        if np.ptp(values) == 0.0:
            assert [text.get_text() for text in row[0].texts] == ["0.1 in all runs"]
        else:
            heights, _ = np.histogram(values, bins=7)  # the root of 60
            assert [bar.get_height() for bar in row[0].patches] == heights.tolist()
        for panel, parameter in zip(row[1:], parameters, strict=True):
            dots, *_ = panel.lines
            close(dots.get_xdata(), table[parameter], 0.0, 0.0, parameter)
            close(dots.get_ydata(), values, 0.0, 0.0, name)
        groups = np.unique(table["damping"])
        middle = [np.median(values[table["damping"] == x]) for x in groups]
        close(row[1].lines[1].get_xdata(), groups, 0.0, 0.0, "groups")
        close(row[1].lines[1].get_ydata(), middle, 1e-12, 0.0, "medians")
        x = table["initial.v.turn"]
        tenths = np.argsort(x).reshape(10, 6)
        close(row[2].lines[1].get_ydata(), np.median(values[tenths], axis=1), 1e-12, 0.0, "tenths")
        close(row[2].lines[1].get_xdata(), np.median(x[tenths], axis=1), 1e-12, 0.0, "tenths")
    assert [panel.get_xlabel() for panel in grid[-1][1:]] == list(parameters.values())


def test_the_trade_offs_of_a_study(done: rf.Study) -> None:
    shown = drawn(done.ledger, ["max_speed.turn", "rms_error", "t_end"])
    figure = trade_offs(shown)
    table = done.table()
    axes = ["damping", "initial.v.turn", "max_speed.turn", "rms_error"]  # t_end does not vary
    rows = np.stack([table[name] for name in axes], axis=1)
    low, high = rows.min(axis=0), rows.max(axis=0)
    runs, front = figure.axes
    lines = [line for line in runs.lines if len(line.get_xdata()) == 4]
    close([line.get_ydata() for line in lines], (rows - low) / (high - low), 1e-12, 1e-15, "runs")
    ticks = [label.get_text().split("\n") for label in runs.get_xticklabels()]
    assert [tick[0].split(" ")[0] for tick in ticks] == axes
    assert [tick[1] for tick in ticks] == [f"{a:.3g} … {b:.3g}" for a, b in zip(low, high, strict=True)]  # fmt: skip
    a, b = rows[:, 2], rows[:, 3]
    best = [i for i in np.argsort(a) if not ((a <= a[i]) & (b <= b[i]) & ((a < a[i]) | (b < b[i]))).any()]  # fmt: skip
    close(front.lines[1].get_xydata(), rows[best][:, 2:], 0.0, 0.0, "front")
    assert front.get_xlabel() == "max_speed.turn [rad/s]"
    assert front.get_ylabel() == "rms_error [rad or m]"


def test_equal_points_are_all_on_the_front() -> None:
    points = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 0.5], [2.0, 1.0], [0.5, 3.0], [0.5, 3.0]])
    assert sorted(pareto(points).tolist()) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("count", [200, 2000])
def test_indices_of_a_sum_are_the_shares_of_its_variance(count: int) -> None:
    """y = x1 + 2 x2 + 3 x3 of independent, equally spread x: 1/14, 4/14, 9/14."""
    x = np.random.default_rng(5).uniform(size=(count, 3))
    y = x @ [1.0, 2.0, 3.0]
    found = [first_order_index(column, y) for column in x.T]
    close(found, np.array([1.0, 4.0, 9.0]) / 14.0, 0.0, 2.5 / np.sqrt(count), "index")


@pytest.mark.parametrize(("count", "groups"), [(36, 4), (144, 8), (324, 12), (900, 20), (3600, 20)])
def test_the_number_of_groups_follows_the_number_of_runs(count: int, groups: int) -> None:
    """As many runs as values: a saw with a tooth for every group has equal means in all of them; of
    a saw of half as many teeth, every mean is a quarter off.
    """
    x = (np.arange(count) + 0.5) / count
    assert first_order_index(x, np.mod(groups * x, 1.0)) < 1e-3
    assert first_order_index(x, np.mod(groups / 2 * x, 1.0)) == pytest.approx(0.75, abs=0.1)
