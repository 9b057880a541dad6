"""What a study keeps, exports and shows of runs of several kinds at once (done, failed, killed and
waiting), and which runs go through the compiled lanes, against what is computed here.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.plant.shared_code import sharing
from ramify.scenario_files.scenario import Scenario, read_scenario
from ramify.studies import page
from ramify.studies import study as study_module
from ramify.studies.batch import Steps, run_batch, steps_of
from ramify.studies.ledger import Ledger
from ramify.studies.outputs import Keep, Versioned, metric
from ramify.studies.page import write_run_of_study
from ramify.studies.recipe import Recipe
from ramify.studies.sensitivity_indices import first_order_index, rank_correlation
from ramify.studies.work import Outcome, run_row

SWING: dict[str, Any] = {
    "name": "swing", "robot": "two_link", "t_end": 0.1, "rtol": 1e-7, "initial": {"q": [0.3, -0.2]},
}  # fmt: skip
FIRST, SECOND = rf.load("two_link").coordinates


def swings(folder: Path, **changed: Any) -> rf.Study:
    parts: dict[str, Any] = {
        "name": "swings", "scenario": SWING, "vary": {f"initial.v.{FIRST}": {"uniform": [-1, 2]}},
        "points": {"runs": 3, "seed": 5}, "ledger": folder / "swings.db",
    }  # fmt: skip
    return rf.study(**(parts | changed))


# ---- a ledger of four kinds of runs, written by hand ----

PLAN = np.array([[0.5, 3.0], [1.5, -2.0], [2.5, 1.0], [3.5, 7.0], [4.5, 5.0], [5.5, 0.25]])
KEPT = {0: [2.0, -7.0], 1: [11.0, np.nan], 4: [3.0, 4.0]}
PAST = {0: [[0.0, 1.0], [0.1, 2.0], [0.2, 3.0]], 1: [[0.0, 9.0]], 4: [[0.0, 5.0], [0.3, 6.0]]}
STATUS = ["done", "done", "failed", "killed", "done", "waiting"]
SECONDS = [1.0, 2.0, 4.0, 8.0, 16.0, 0.0]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Six runs: three done, one failed, one killed, one waiting."""
    path = tmp_path / "mixed.db"
    s = swings(
        tmp_path, ledger=path, name="mixed", description="a & b",
        vary={f"initial.v.{FIRST}": [1, 2], f"initial.q.{SECOND}": [0.1]}, points={},
        keep={"final": False, "metrics": ["max_speed", "work"], "history": {"of": "energy"}},
    )  # fmt: skip
    facts = s._facts() | {"history": ["t", "energy.kinetic"]}
    keys = [bytes([i]) * 32 for i in range(6)]
    with Ledger(path, writer=True) as made:
        made.replan(facts, keys, PLAN)
        for i, status in enumerate(STATUS[:5]):
            numbers, past = (np.array(x.get(i, []), dtype=float).tobytes() for x in (KEPT, PAST))
            error = "" if status == "done" else f"reason <{i}>"
            made.record([(keys[i], Outcome(i, status, error, numbers, past, SECONDS[i], "here"))])
    return path


def expected_columns() -> dict[str, np.ndarray[Any, Any]]:
    numbers = np.array([KEPT.get(i, [np.nan, np.nan]) for i in range(6)])
    return {
        "run": np.arange(6), "status": np.array(STATUS), "seconds": np.array(SECONDS),
        f"initial.v.{FIRST}": PLAN[:, 0], f"initial.q.{SECOND}": PLAN[:, 1],
        "max_speed": numbers[:, 0], "work": numbers[:, 1],
    }  # fmt: skip


def test_the_table_of_runs_of_every_status(ledger: Path) -> None:
    s = rf.Study.open(ledger)
    table = s.table()
    assert list(table) == list(expected_columns())
    for name, values in expected_columns().items():
        np.testing.assert_array_equal(table[name], values)
    assert s.status() == (6, 3, 1, 1, 1, 31.0)
    assert s.errors() == [(2, "failed", "reason <2>"), (3, "killed", "reason <3>")]
    assert s.errors(1) == [(2, "failed", "reason <2>")]
    assert s.errors(0) == []
    frame = s.to_pandas()
    assert (frame.index.name, list(frame.index)) == ("run", list(range(6)))
    for number, said in ((2, "failed, reason <2>"), (3, "killed, reason <3>"), (5, "waiting$")):
        with pytest.raises(rf.SimulationError, match=f"run {number} has no history: it is {said}"):
            s.history(number)
    assert s.history(4)[0] == ["t", "energy.kinetic"]
    np.testing.assert_array_equal(s.history(4)[1], PAST[4])
    with Ledger(ledger) as reader, pytest.raises(rf.SimulationError, match="its runs are 0 to 5"):
        reader.row(6)


def test_the_dataset_of_histories_of_different_length(ledger: Path) -> None:
    data = rf.Study.open(ledger).to_xarray()
    full = np.full((6, 3, 2), np.nan)
    for i, rows in PAST.items():
        full[i, : len(rows)] = rows
    assert data["history"].dims == ("run", "row", "column")
    np.testing.assert_array_equal(data["history"].values, full)
    assert data["column"].values.tolist() == ["t", "energy.kinetic"]
    assert data["run"].values.tolist() == list(range(6))
    units = {name: data[name].attrs.get("units") for name in data.data_vars}
    assert units == {
        "status": None, "seconds": "s", f"initial.v.{FIRST}": "rad/s", f"initial.q.{SECOND}": "rad",
        "max_speed": "rad/s", "work": "J", "history": None,
    }  # fmt: skip
    assert data.attrs["study"] == "mixed"
    assert '"max_speed"' in data.attrs["text"]


@pytest.mark.parametrize("suffix", [".nc", ".zarr", ".PARQUET", ".csv"])
def test_exports_of_runs_of_every_status(ledger: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out{suffix}"
    rf.Study.open(ledger).export(target)
    if suffix == ".csv":
        lines = target.read_text(encoding="utf-8").splitlines()
        assert lines[0].split(",") == list(expected_columns())
        assert lines[1] == "0,done,1.0,0.5,3.0,2.0,-7.0"
        assert [line.split(",")[1] for line in lines[1:]] == STATUS
        assert lines[6] == "5,waiting,0.0,5.5,0.25,nan,nan"
        return
    if suffix == ".PARQUET":
        from pyarrow import parquet

        table = parquet.read_table(target)
        assert table["status"].to_pylist() == STATUS
        assert table["history.t"].to_pylist() == [[0.0, 0.1, 0.2], [0.0], [], [], [0.0, 0.3], []]
        assert table["history.energy.kinetic"][0].as_py() == [1.0, 2.0, 3.0]
        said = table.schema.metadata
        assert said[b"study"] == b"mixed"
        assert b'"max_speed"' in said[b"text"]
        return
    import xarray

    engine = "zarr" if suffix == ".zarr" else "scipy"
    with xarray.open_dataset(target, engine=engine) as data:
        texts = [x.decode() if isinstance(x, bytes) else str(x) for x in data["status"].values]
        assert texts == STATUS


# ---- its page ----


def cells(text: str, label: str) -> list[list[str]]:
    """The rows of a table of a page, its head first, without tags."""
    table = text.partition(f"aria-label='{label}'")[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    plain = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in row] for row in plain]


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("plot_study", "trade_offs"):
        monkeypatch.setattr(page, name, lambda *_: "")
    monkeypatch.setattr(page, "_picture", lambda *_: "")


@pytest.mark.usefixtures("without_pictures")
def test_the_page_of_runs_of_every_status(ledger: Path, tmp_path: Path) -> None:
    """Numbers of runs that are not done are not counted, and no number that is not finite."""
    s = rf.Study.open(ledger)
    folder = tmp_path / "mixed_runs"
    folder.mkdir()
    for number in (2, 4):
        (folder / f"run_{number}_{bytes([number]).hex() * 6}.html").write_text("x")
    (tmp_path / "below").mkdir()
    s.page(tmp_path / "below" / "page.html")
    text = (tmp_path / "below" / "page.html").read_text(encoding="utf-8")
    assert "<p>3 of 6 runs done, 1 failed, 1 killed, 1 waiting; 31.0 s of computing." in text
    assert "<p>a &amp; b</p>" in text
    assert "Robot: two_link. Made with ramify " in text
    speeds, works = np.array([2.0, 11.0, 3.0]), np.array([-7.0, 4.0])

    def row(name: str, x: np.ndarray[Any, Any]) -> list[str]:
        ordered = np.sort(x)
        middle = 0.5 * (ordered[(len(x) - 1) // 2] + ordered[len(x) // 2])
        mean = sum(x) / len(x)
        spread = (sum((x - mean) ** 2) / len(x)) ** 0.5
        return [name, *(f"{y:.5g}" for y in (ordered[0], middle, mean, ordered[-1], spread))]

    assert cells(text, "Summary") == [
        ["number", "minimum", "median", "mean", "maximum", "standard deviation"],
        row("max_speed [rad/s]", speeds), row("work [J]", works),
    ]  # fmt: skip
    assert cells(text, "Failed runs") == [
        ["run", "status", "error"], ["2", "failed", "reason <2>"], ["3", "killed", "reason <3>"],
    ]  # fmt: skip
    runs = cells(text, "Runs")
    assert runs[0] == [
        "run", "status", f"initial.v.{FIRST} [rad/s]", f"initial.q.{SECOND} [rad]",
        "max_speed [rad/s]", "work [J]",
    ]  # fmt: skip
    assert runs[1] == ["0", "done", "0.5", "3", "2", "-7"]
    assert runs[6] == ["5", "waiting", "5.5", "0.25", "nan", "nan"]
    links = re.findall(r"<a href='([^']*)'>(\d)</a>", text)
    addresses = {n: f"../mixed_runs/run_{n}_{bytes([int(n)]).hex() * 6}.html" for n in "24"}
    assert links == [(addresses["2"], "2"), (addresses["2"], "2"), (addresses["4"], "4")]
    assert "and " not in text.rpartition("</table>")[2].partition("<h2>")[0]  # all runs are there
    assert "<h2>Sensitivity</h2>" not in text  # too few runs
    for rows, said in ((6, None), (4, "<p>and 2 more: see"), (5, "<p>and 1 more: see")):
        with pytest.MonkeyPatch.context() as fewer:
            fewer.setattr(page, "MOST_ROWS", rows)
            text = page.page(ledger, lambda number, mark: None)
        assert len(cells(text, "Runs")) == 1 + min(rows, 6)
        assert (said is None) == ("more: see" not in text)
        assert said is None or said in text
    asked = []
    page.page(ledger, lambda number, mark: asked.append((number, mark)))  # type: ignore[func-returns-value]
    marks = [(i, bytes([i]).hex() * 6 * 1) for i in (2, 3, *range(6))]
    assert asked == marks


@pytest.mark.usefixtures("without_pictures")
def test_the_sensitivities_on_a_page(tmp_path: Path) -> None:
    s = swings(
        tmp_path, name="many", points={"runs": 8, "seed": 2},
        vary={f"initial.v.{FIRST}": {"uniform": [-1, 2]}, f"initial.q.{SECOND}": {"uniform": [0, 1]}},
        keep={"final": False, "metrics": ["max_speed", "work"]},
    )  # fmt: skip
    rng = np.random.default_rng(4)
    numbers = rng.normal(size=(8, 2))
    numbers[3, 1] = np.nan  # seven are left of the second number: too few
    keys = [s.recipe.key(row) for row in s.points]
    with Ledger(s.ledger, writer=True) as made:
        made.replan(s._facts(), keys, s.points)
        made.record(
            (key, Outcome(i, "done", "", row.tobytes(), b"", 0.5, "here"))
            for i, (key, row) in enumerate(zip(keys, numbers, strict=True))
        )
    s.page(tmp_path / "page.html")
    found = cells((tmp_path / "page.html").read_text(encoding="utf-8"), "Sensitivity")
    share, trend = (
        [f(x, numbers[:, 0]) for x in s.points.T] for f in (first_order_index, rank_correlation)
    )
    assert found == [
        ["number", *s.parameters],
        ["max_speed [rad/s]", *(f"{a:.2f} ({b:+.2f})" for a, b in zip(share, trend, strict=True))],
    ]
    with Ledger(s.ledger, writer=True) as made:  # a number that is the same in all runs
        made.replan(s._facts() | {"columns": ["max_speed", "work"]}, [b"k" * 32] * 8, s.points)
        made.record([(b"k" * 32, Outcome(0, "done", "", np.ones(2).tobytes(), b"", 0.5, ""))])
    s.page(tmp_path / "page.html")
    found = cells((tmp_path / "page.html").read_text(encoding="utf-8"), "Sensitivity")
    assert [row[1:] for row in found[1:]] == [["–", "–"], ["–", "–"]]


def test_a_run_of_a_study_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = swings(tmp_path)
    s.run(engine="serial")
    r = s.result(2)
    write_run_of_study(s.ledger, 2, tmp_path / "new" / "run.nc")
    close(rf.Result.open(tmp_path / "new" / "run.nc").q, r.q, 0.0, 0.0)
    write_run_of_study(s.ledger, 2, tmp_path / "run.csv")
    head, first, *_ = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()
    assert head.startswith("t")
    assert float(first.split(",")[1]) == r.q[0, 0]
    drawn: list[Any] = []
    monkeypatch.setattr(rf.Result, "plot", lambda self, what: drawn.append((self, what)))
    monkeypatch.setattr("ramify.studies.page.save_picture", lambda *_: None)
    write_run_of_study(s.ledger, 2, tmp_path / "run.png")
    ((run, what),) = drawn
    assert what == "q"
    close(run.q, r.q, 0.0, 0.0)
    half = s.result(1)  # as if it were what was computed until a run fails

    def fails(*_: Any) -> Any:
        error = rf.SimulationError("it fails")
        error.result = half if partial else None
        raise error

    monkeypatch.setattr("ramify.studies.page.run_row", fails)
    for partial in (True, False):
        if partial:
            write_run_of_study(s.ledger, 2, tmp_path / "run.svg")
            assert drawn[-1][0] is half
        else:
            with pytest.raises(rf.SimulationError, match="it fails"):
                write_run_of_study(s.ledger, 2, tmp_path / "run.svg")


# ---- metrics of a robot whose q and v differ in length ----


def flyer() -> rf.Model:
    """A free body with an arm of two joints; its tool is turned and displaced."""
    b = rf.Builder("flyer")
    b.link("trunk", joint="free", mass=2.0, com=(0.1, 0.0, -0.05), inertia=(0.1, 0.2, 0.25))
    b.link("upper", "trunk", at=(0, 0.2, 0), axis=(0, 0, 1), mass=0.5, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.03))  # fmt: skip
    b.link("lower", "upper", at=(0.4, 0, 0), axis=(1, 0, 0), mass=0.3, com=(0, 0.1, 0), inertia=(0.01, 0.02, 0.03))  # fmt: skip
    b.link("tool", "lower", joint="fixed", at=(0.05, 0.3, -0.1), mass=0.1, inertia=(1e-3, 1e-3, 1e-3))  # fmt: skip
    b.link("mast", joint="fixed", at=(0.7, -0.6, 0.4), mass=1.0, inertia=(0.1, 0.1, 0.1))
    return b.model()


def test_metrics_of_one_joint_read_its_own_column() -> None:
    m = flyer()
    q0, v0 = m.random(seed=3)
    r = rf.simulate(m, 0.04, q0, v0, dt_out=0.01)
    rng = np.random.default_rng(1)
    desired = replace(r.desired, q=r.q + rng.normal(size=r.q.shape)) if r.desired else None
    if desired is None:
        from ramify.motion.trajectory import Motion

        desired = Motion(r.t, r.q + rng.normal(size=r.q.shape), r.v, r.a)
    run = replace(r, desired=desired)
    off = run.q - desired.q
    for name in ("upper", "lower"):
        i, j = m.coordinates.index(name), m.velocities.index(name)
        assert i != j
        for stem, value in {
            "max_abs_q": np.abs(r.q[:, i]).max(), "max_speed": np.abs(r.v[:, j]).max(),
            "max_torque": np.abs(r.tau[:, j]).max(), "rms_torque": np.sqrt((r.tau[:, j] ** 2).mean()),
            "max_error": np.abs(off[:, i]).max(), "rms_error": np.sqrt((off[:, i] ** 2).mean()),
            "final_error": abs(off[-1, i]), "final_speed": abs(r.v[-1, j]),
        }.items():  # fmt: skip
            close(metric(f"{stem}.{name}", m)[1](run), [value], 1e-12, 1e-15, f"{stem}.{name}")
    for link in ("lower", "tool", "mast", "trunk"):
        expected = m.pose(r.q[-1], link).position
        close(metric(f"position.{link}", m)[1](r), expected, 1e-12, 1e-12, link)
    with pytest.raises(rf.ModelError, match=r"max_abs_q.lowe'.*max_abs_q\.lower"):
        metric("max_abs_q.lowe", m)
    with pytest.raises(rf.ModelError, match=r"there is no metric 'max_speed\.trunk\.qw'"):
        metric("max_speed.trunk.qw", m)


@pytest.mark.parametrize(
    "change",
    [{"final": False}, {"metrics": ("work",)}, {"history": ("q",)}, {"every": 2},
     {"functions": {"mine": Versioned(len, "2")}}],
)  # fmt: skip
def test_what_is_kept_is_part_of_a_key(change: dict[str, Any]) -> None:
    plain = Keep(functions={"mine": Versioned(len, "1")})
    assert plain.facts != replace(plain, **change).facts
    assert plain.facts == replace(plain, functions={"mine": Versioned(max, "1")}).facts


def test_what_counts_stored_energy_has_other_keys_than_before() -> None:
    assert "stored energy is included" not in Keep(metrics=("work",), history=("q",)).facts
    assert "stored energy is included" in Keep(metrics=("energy_error",)).facts
    assert "stored energy is included" in Keep(history=("energy",)).facts


# ---- lanes ----

FIXED = {**SWING, "step": 1e-3, "t_end": 0.06, "dt_out": 0.02, "method": "rk4", "damping": 0.3}
FIXED.pop("rtol")


def scenario(**changes: Any) -> Scenario:
    document = {key: x for key, x in (FIXED | changes).items() if x is not None}
    return read_scenario(json.dumps(document))


MOTION = {"type": "cycloid", "end": [0.5, 0.2], "duration": 0.1}
PD = {"type": "pd", "kp": 30.0, "kd": 2.0}


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({}, (60, 1e-3, 20)),
        ({"method": None}, (60, 1e-3, 20)),
        ({"method": "auto", "step": 0.0007, "t_end": 0.0042, "dt_out": 0.0014}, (6, 0.0007, 2)),
        ({"step": 0.0011, "t_end": 0.01, "dt_out": 0.005}, (10, 1e-3, 5)),  # ten, to end in time
        ({"dt_out": None}, (60, 1e-3, 10)),
        ({"motion": MOTION, "control": PD}, (60, 1e-3, 20)),
        ({"step": None, "method": None}, None),
        ({"t_end": 0.07}, None),  # its end is no multiple of dt_out
        ({"dt_out": 0.0015}, None),
        ({"dt_out": 0.0004}, None),
        ({"method": "implicit_extrapolation"}, None),
        ({"method": "ab4"}, None),
        ({"motion": MOTION, "control": {**PD, "rate_hz": 100.0}}, None),
        ({"motion": MOTION, "control": "inverse"}, None),
        ({"robot": "four_bar", "initial": None}, None),
        ({"method": "auto", "damping": 4000.0}, None),  # too stiff: an implicit method runs it
        ({"method": "rk4", "damping": 4000.0}, (60, 1e-3, 20)),
    ],
)  # fmt: skip
def test_which_runs_go_through_lanes(changes: dict[str, Any], steps: Any) -> None:
    found = steps_of(scenario(**changes))
    if steps is None:
        assert found is None
    else:
        assert found is not None
        assert (found.scheme.name, found.count, found.every) == ("rk4", steps[0], steps[2])
        close(found.dt, steps[1], 1e-14)


def test_robots_without_unrolled_code_run_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramify.studies.batch.unrolls", lambda robot: False)
    assert steps_of(scenario()) is None


def test_runs_beside_each_other_are_those_of_single_runs() -> None:
    """Three starts, gains and dampings; the second diverges."""
    starts = ([0.3, -0.2], [-0.4, 0.1], [0.9, 0.6])
    some = [
        scenario(initial={"q": q, "v": [0.5 * k, -1.0]}, damping=0.1 + 0.2 * k, motion=MOTION,
                 control={**PD, "kp": 20.0 + 10.0 * k})
        for k, q in enumerate(starts)
    ]  # fmt: skip
    some.append(scenario(initial={"q": [0.1, 0.2], "v": [5e7, 0.0]}, motion=MOTION, control=PD))
    steps = steps_of(some[0])
    assert isinstance(steps, Steps)
    with sharing():
        *good, bad = run_batch(some, steps)
    assert bad is None
    for one, r in zip(some, good, strict=False):
        alone = one.run()
        assert r is not None
        for name in ("t", "q", "v", "tau", "a"):
            close(getattr(r, name), getattr(alone, name), 1e-9, 1e-9, name)
        close(r.work.actuator, alone.work.actuator, 1e-9, 1e-12)
        assert r.stats["steps"] == 60
        assert r.stats["evaluations"] == 240
        assert r.stats["wall_time"] > 0.0
        for name in ("q0", "v0", "damping", "t_end", "step"):
            np.testing.assert_array_equal(r.options[name], alone.options[name])
        assert r.options["scenario"]["name"] == "swing"
        assert r.desired is not None
        assert alone.desired is not None
        close(r.desired.q, alone.desired.q, 1e-12, 1e-12)


def test_quaternions_of_lanes_are_unit() -> None:
    """Rows of output are states of the robot: a quaternion is one."""
    change = {"robot": {"name": "planar_biped", "base": "free"}, "initial": None, "t_end": 0.04}
    base = scenario(**change)
    q, v = base.robot.random(seed=2)
    one = replace(base, q0=q, v0=5.0 * v)
    steps = steps_of(one)
    assert steps is not None
    with sharing():
        (r,) = run_batch([one], steps)
    assert r is not None
    close(np.linalg.norm(r.q[:, 3:7], axis=1), 1.0, 1e-14)


# ---- from Python ----


def test_metrics_are_added_to_those_of_keep(tmp_path: Path) -> None:
    keep = {"final": False, "metrics": ["work"]}
    s = swings(tmp_path, keep=keep, metrics=["max_speed", "t_end"])
    assert s.columns == ["work", "max_speed", "t_end"]
    assert keep == {"final": False, "metrics": ["work"]}
    assert swings(tmp_path, metrics="work").columns[-1] == "work"


def test_a_study_of_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "robots").mkdir()
    rf.load("two_link").save(tmp_path / "robots" / "mine.yaml")
    text = "{name: mine, robot: mine.yaml, t_end: 0.05, initial: {q: [0.3, -0.2]}}"
    (tmp_path / "robots" / "mine_scenario.yaml").write_text(text)
    one = rf.scenario(tmp_path / "robots" / "mine_scenario.yaml")
    s = swings(tmp_path, scenario=one)  # its robot is found beside it
    s.run(engine="serial")
    r = s.result(1)
    alone = rf.simulate(rf.load("two_link"), 0.05, [0.3, -0.2], [s.points[1, 0], 0.0])
    close(r.q[-1], alone.q[-1], 1e-6, 1e-8)
    other = replace(one, robot=rf.with_payload(one.robot, "link2", 2.0))
    with pytest.raises(rf.ModelError, match="the robot of 'mine' is not the one in its file"):
        swings(tmp_path, scenario=other)


def test_ledgers_are_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert swings(tmp_path, ledger=None).ledger == Path("swings.db")
    assert swings(tmp_path, ledger="other.db").ledger == Path("other.db")
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "file.yaml"
    file.write_text(swings(tmp_path).text)
    assert rf.study(file).ledger == tmp_path / "sub" / "file.db"
    assert rf.study(file, ledger="x.db").ledger == Path("x.db")


def test_which_runs_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = swings(tmp_path)
    keys = [s.recipe.key(row) for row in s.points]
    with Ledger(s.ledger, writer=True) as made:
        made.replan(s._facts(), keys, s.points)
        for i, status in enumerate(("killed", "failed")):
            made.record([(keys[i], Outcome(i, status, "why", b"", b"", 1.0, "here"))])
    computed: list[Any] = []
    real = study_module.survivors

    def noted(by: Any, recipe: Recipe, tasks: Any) -> Any:
        assert tasks.lanes == by.lanes == 1
        for some in real(by, recipe, tasks):
            computed.extend(o.number for o in some)
            yield some

    monkeypatch.setattr(study_module, "survivors", noted)
    assert s.run(engine="serial") == (3, 2, 1, 0, 0, s.status().seconds)
    assert computed == [0, 2]
    s.run(engine="serial")
    assert computed == [0, 2]
    s.run(engine="serial", again=())
    assert s.run(engine="serial", again=("failed",)).done == 3
    assert computed == [0, 2, 1]


def test_a_bar_and_a_common_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []

    class Bar:
        def __init__(self, name: str, total: int) -> None:
            said.append((name, total))

        def update(self, done: int, text: str) -> None:
            said.append((done, re.sub(r"[\d.]+ runs/s", "R", text)))

        def close(self) -> None:
            said.append("closed")

    monkeypatch.setattr(study_module, "Bar", Bar)
    swings(tmp_path).run(engine="serial", progress=True)
    assert said[0] == ("swings", 3)
    assert said[-2:] == [(3, "3/3, R"), "closed"]

    def fails(result: Any) -> float:
        raise ZeroDivisionError("at once")

    def doomed(runs: int, name: str) -> rf.Study:
        return swings(
            tmp_path, points={"runs": runs}, ledger=tmp_path / name, metrics={"mine": fails},
            metrics_version="1",
        )  # fmt: skip

    said.clear()
    assert doomed(8, "eight.db").run(engine="serial", progress=True).failed == 8
    assert said[-2] == (8, "8/8, R, 8 failed")
    with pytest.raises(rf.SimulationError, match=r"its first 8 runs all failed .* 3 runs were not"):
        doomed(11, "more.db").run(engine="serial")
    assert doomed(11, "more.db").run(engine="serial", keep_going=True).failed == 11
    later = rf.Study.open(tmp_path / "eight.db", {"mine": fails}, "1")
    assert later.recipe.key(later.points[0]) == doomed(8, "eight.db").recipe.key(later.points[0])
    without = rf.Study.open(tmp_path / "eight.db")
    assert without.run(engine="serial").failed == 8  # nothing waits, so no metric is missing
    with pytest.raises(rf.SimulationError, match="custom metrics mine; pass them"):
        without.run(engine="serial", again=("failed",))


def test_what_a_notebook_shows_of_a_study(tmp_path: Path) -> None:
    s = swings(tmp_path, points={"runs": 12}, keep={"metrics": ["work"]})
    assert "not run yet" in s._repr_html_()
    assert repr(s) == f"<ramify.Study 'swings': 12 runs over initial.v.{FIRST}>"
    with Ledger(s.ledger, writer=True) as made:
        made.replan(s._facts(), [s.recipe.key(row) for row in s.points], s.points)
    text = s._repr_html_()
    assert text.count("waiting") == 1 + 10  # the status, and the first ten rows
    assert "planned 12, waiting 12" in text
    assert "killed" not in text


@pytest.mark.parametrize(
    ("fixed", "path", "value", "expected"),
    [
        ({"payload.link2.mass": 1.5}, "payload.link2.com.y", 0.3,
         lambda m: rf.with_payload(m, "link2", 1.5, com=(0.0, 0.3, 0.0))),
        ({"payload.link2.mass": 1.5}, "payload.link2.com.z", 0.3,
         lambda m: rf.with_payload(m, "link2", 1.5, com=(0.0, 0.0, 0.3))),
        ({"payload.link1.mass": 0.7}, "payload.link2.mass", 0.9,
         lambda m: rf.with_payload(rf.with_payload(m, "link1", 0.7), "link2", 0.9)),
        ({}, "payload.link2.inertia", 0.2, None),
    ],
)  # fmt: skip
def test_payloads_are_those_of_the_model(
    tmp_path: Path, fixed: Any, path: str, value: float, expected: Any
) -> None:
    s = swings(tmp_path, set=fixed, vary={path: [value, value + 0.1]}, points={})
    m = s.recipe.scenario([value]).robot
    q, _v = m.random(seed=1)
    plain = rf.load("two_link")
    if expected is None:
        assert not np.allclose(m.mass_matrix(q), plain.mass_matrix(q))
    else:
        close(m.mass_matrix(q), expected(plain).mass_matrix(q), 1e-12)
        close(m.gravity_forces(q), expected(plain).gravity_forces(q), 1e-12)
    trial = s.recipe.trial(path, value)  # the values under set count there, too
    close(trial.mass_matrix(q), m.mass_matrix(q), 1e-12)


def test_gravity_and_starts_of_a_scenario(tmp_path: Path) -> None:
    given = {**SWING, "robot": {"name": "two_link", "gravity": [1.0, -2.0, 0.5]}}
    for start, other, names in (
        ({"q": [0.3, -0.2]}, -0.2, "q"), ({"q": 0.4}, 0.4, "q"),
        ({"q_deg": [10.0, 20.0]}, np.radians(20.0), "q_deg"), ({"q_deg": [10.0, 20.0]}, np.radians(20.0), "q"),
        ({"v": [0.3, -0.2]}, -0.2, "v"),
    ):  # fmt: skip
        path = f"initial.{names}.{FIRST}"
        s = swings(
            tmp_path, scenario={**given, "initial": start}, vary={path: [0.7, 0.8]}, points={}
        )
        one = s.recipe.scenario([0.7])
        close(one.robot.gravity, [1.0, -2.0, 0.5], 0.0)
        state = one.v0 if names == "v" else one.q0
        close(state, [np.radians(0.7) if names.endswith("_deg") else 0.7, other], 1e-12)
    s = swings(tmp_path, scenario={**SWING, "motion": MOTION, "control": "computed_torque"},
               vary={"control.kp": [40.0, 50.0]}, points={})  # fmt: skip
    assert s.recipe.control == "computed_torque"
    close(np.asarray(s.recipe.scenario([40.0]).control.kp), 40.0, 0.0)  # type: ignore[union-attr]


def test_a_row_is_run_as_in_the_study(tmp_path: Path) -> None:
    s = swings(tmp_path)
    before = rf.threads()
    r = run_row(s.recipe, s.points[0].tolist())
    assert rf.threads() == before
    close(r.v[0], [s.points[0, 0], 0.0], 0.0)
