"""Studies run in this process: what is kept, what is repeated, what comes out."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.studies import work as working
from ramify.studies.ledger import Ledger
from ramify.studies.ledger_tables import row_digest
from ramify.studies.recipe import result_versions
from ramify.studies.sensitivity_indices import first_order_index, pareto, rank_correlation
from ramify.studies.study_units import column_unit, parameter_unit
from ramify.studies.work import Outcome

SWING = {
    "name": "swing",
    "robot": "two_link",
    "t_end": 0.2,
    "rtol": 1e-7,
    "initial": {"q_deg": [10, 20]},
}
LINK = rf.load("two_link").bodies[-1].name
FIRST, SECOND = rf.load("two_link").coordinates


def study(ledger: Path, runs: int = 6, **changed: Any) -> rf.Study:
    parts: dict[str, Any] = {
        "name": "swings",
        "scenario": SWING,
        "vary": {
            f"payload.{LINK}.mass": {"uniform": [0.1, 2]},
            f"initial.q_deg.{FIRST}": {"uniform": [-40, 40]},
        },
        "points": {"runs": runs, "seed": 5},
        "keep": {
            "metrics": ["max_speed", f"max_speed.{SECOND}", "energy_error", f"position.{LINK}"],
            "history": {"of": ["q", "energy"]},
        },
    }
    return rf.study(ledger=ledger, **(parts | changed))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> rf.Study:
    s = study(tmp_path_factory.mktemp("study") / "swings.db")
    count = s.run(engine="serial")
    assert (count.planned, count.done, count.waiting) == (6, 6, 0)
    return s


def test_rows_are_the_runs_of_the_scenario(done: rf.Study) -> None:
    table = done.table()
    for number in (0, 4):
        mass, angle = done.points[number]
        robot = rf.with_payload(rf.load("two_link"), LINK, mass)
        r = rf.simulate(robot, 0.2, np.deg2rad([angle, 20]), rtol=1e-7)
        assert table[f"final.q.{FIRST}"][number] == r.q[-1, 0]
        assert table[f"final.v.{SECOND}"][number] == r.v[-1, 1]
        assert table["max_speed"][number] == np.abs(r.v).max()
        assert table[f"max_speed.{SECOND}"][number] == np.abs(r.v[:, 1]).max()
        place = robot.kinematics(r.q[-1]).position[-1]
        assert [table[f"position.{LINK}.{x}"][number] for x in "xyz"] == pytest.approx(
            place, abs=1e-12
        )
        assert table["energy_error"][number] == pytest.approx(
            np.abs(r.energy.total - r.energy.total[0]).max(), abs=1e-10
        )
        columns, rows = done.history(number)
        assert columns == ["t", f"q.{FIRST}", f"q.{SECOND}", "energy.kinetic", "energy.potential"]
        assert np.array_equal(rows[:, 1:3], r.q)
        assert rows[:, 3] == pytest.approx(r.energy.kinetic, abs=1e-12)


def test_a_run_is_made_again_from_its_row(done: rf.Study) -> None:
    r = done.result(3)
    _, rows = done.history(3)
    assert np.array_equal(r.q, rows[:, 1:3])
    again = rf.Scenario.again(r)
    assert np.array_equal(again.q, r.q)
    with pytest.raises(rf.SimulationError, match="no run 6; its runs are 0 to 5"):
        done.result(6)


def test_open_needs_the_ledger_alone(done: rf.Study) -> None:
    s = rf.Study.open(done.ledger)
    assert np.array_equal(s.points, done.points)
    assert s.columns == done.columns
    assert s.run(engine="serial").done == 6
    assert np.array_equal(s.result(2).q, done.result(2).q)


def test_finished_runs_are_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = working._outcomes

    def counted(recipe: Any, task: Any) -> Any:
        made.extend(task.numbers)
        return original(recipe, task)

    monkeypatch.setattr(working, "_outcomes", counted)
    study(tmp_path / "s.db", 4).run(engine="serial")
    assert made == [0, 1, 2, 3]
    assert study(tmp_path / "s.db", 7).run(engine="serial").planned == 7  # extended
    assert made[4:] == [4, 5, 6]
    changed = study(tmp_path / "s.db", 7, set={"damping": 0.1})  # another study in the same ledger
    assert changed.run(engine="serial").done == 7
    assert len(made) == 14
    study(tmp_path / "s.db", 5).run(engine="serial")  # and back
    assert len(made) == 14


def test_equal_points_are_run_once(tmp_path: Path) -> None:
    s = study(tmp_path / "s.db", vary={"damping": [0.1, 0.2, 0.1]}, points={})
    assert s.run(engine="serial").done == 3
    found = s.table()[f"final.q.{FIRST}"]
    assert found[0] == found[2] != found[1]
    with Ledger(s.ledger) as ledger:
        assert ledger._file.db.execute("SELECT count(*) FROM runs").fetchone() == (2,)


def test_a_run_that_fails_is_recorded(tmp_path: Path) -> None:
    def fussy(result: rf.Result) -> float:
        if result.q[0, 0] > 0:
            raise ValueError("not from there")
        return 1.0

    s = study(tmp_path / "s.db", metrics={"fussy": fussy})
    bad = np.flatnonzero(s.points[:, 1] > 0)
    count = s.run(engine="serial")
    assert (count.failed, count.done) == (len(bad), 6 - len(bad))
    assert [(number, status) for number, status, _ in s.errors()] == [(i, "failed") for i in bad]
    assert s.errors()[0][2] == "ValueError: not from there"
    s.page(tmp_path / "s.html", reports=[int(bad[0])])
    failed = (tmp_path / "s.html").read_text(encoding="utf-8").partition("<h2>Failed runs</h2>")[2]
    mark = s.recipe.key(s.points[bad[0]]).hex()[:12]
    assert f"<td><a href='s_runs/run_{bad[0]}_{mark}.html'>" in failed.partition("</table>")[0]
    assert np.isnan(s.table()["fussy"][bad]).all()
    assert s.run(engine="serial").failed == len(bad)
    opened = rf.Study.open(s.ledger)
    assert (
        opened.run(engine="serial").done == count.done
    )  # nothing to do: the function is not needed
    with pytest.raises(
        rf.SimulationError, match=r"metrics fussy; pass them, unchanged, to Study.open\(metrics=\)"
    ):
        opened.run(engine="serial", again=["failed"])
    assert rf.Study.open(s.ledger, metrics={"fussy": fussy}).run(
        engine="serial", again=["failed"]
    ).failed == len(bad)


def test_values_that_are_impossible_together_fail_by_themselves(tmp_path: Path) -> None:
    vary = {"t_end": [0.05, 0.1], "dt_out": [0.01, 1e-10]}
    scenario = SWING | {"t_end": 0.005}  # each value by itself will do
    s = study(tmp_path / "s.db", scenario=scenario, vary=vary, points={}, keep={})
    s.run(engine="serial")
    assert s.table()["status"].tolist() == ["done", "failed", "done", "failed"]
    assert "too many to hold" in s.errors()[0][2]


def test_robots_with_quaternions_share_their_code(tmp_path: Path) -> None:
    robot = rf.load("space_3_link", base="free")
    link, joint = robot.bodies[-1].name, robot.velocities[-1]
    scenario = {
        "robot": {"name": "space_3_link", "base": "free"},
        "t_end": 0.3,
        "initial": {"v": {joint: 1.0}},
    }
    for number, more in enumerate(({}, {"method": "rk4", "step": 0.01})):
        vary = {
            f"payload.{link}.mass": {"uniform": [0.1, 2]},
            f"initial.v.{joint}": {"uniform": [-2, 2]},
        }
        s = study(tmp_path / f"{number}.db", 3, scenario=scenario | more, vary=vary, keep={})
        assert s.run(engine="serial").done == 3
        table = s.table()
        r = rf.simulate(
            rf.with_payload(robot, link, s.points[1, 0]),
            0.3,
            v0=np.eye(robot.nv)[-1] * s.points[1, 1],
            **more,
        )
        found = [table[f"final.q.{name}"][1] for name in robot.coordinates]
        assert found == (pytest.approx(r.q[-1], abs=1e-13) if more else r.q[-1].tolist())


def test_a_study_of_one_run(tmp_path: Path) -> None:
    s = study(tmp_path / "s.db", vary={}, points={}, keep={"metrics": ["steps"]})
    assert s.run(engine="serial").done == 1
    assert s.table()["steps"][0] == s.result(0).stats["steps"]
    assert rf.Study.open(s.ledger).points.shape == (1, 0)
    s.page(tmp_path / "s.html")


@pytest.mark.parametrize("part", ["vary", "set"])
def test_robots_of_another_size_are_refused(tmp_path: Path, part: str) -> None:
    scenario = {"robot": {"name": "chain", "parameters": {"n": 2}}, "t_end": 0.02}
    how = (
        {"vary": {"robot.parameters.n": [2, 3]}}
        if part == "vary"
        else {"vary": {}, "set": {"robot.parameters.n": 3}}
    )
    with pytest.raises(
        rf.ModelError,
        match=rf"{part}.robot.parameters.n: with 3 the robot has 3 degrees of .* 2; the runs",
    ):
        study(tmp_path / "s.db", scenario=scenario, points={}, keep={}, **how)


def test_robots_of_other_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    from ramify.files.urdf_writer import to_urdf

    Path("arm.urdf").write_text(to_urdf(rf.load("two_link")), encoding="utf-8")
    s = study(
        tmp_path / "s.db",
        scenario=SWING | {"robot": "arm.urdf"},
        vary={f"robot.links.{LINK}.mass": [3.25]},
        points={},
        keep={},
    )
    assert s.scenario(0).robot.bodies[-1].mass == 3.25 if s.run(engine="serial").done else False


# ---- fixed steps: lanes ----

FIXED = SWING | {"method": "rk4", "step": 0.002, "t_end": 0.3}


def test_lanes_agree_with_single_runs(tmp_path: Path) -> None:
    control = {"type": "pd", "kp": 30, "kd": 4}
    motion = {"type": "cycloid", "end_deg": 40, "duration": 0.25}
    scenario = FIXED | {"control": control, "motion": motion, "damping": 0.1}
    vary = {
        f"payload.{LINK}.mass": {"uniform": [0.1, 2]},
        "control.kp": {"uniform": [10, 90]},
        "motion.duration": {"uniform": [0.1, 0.3]},
    }
    s = study(
        tmp_path / "s.db",
        11,
        scenario=scenario,
        vary=vary,
        keep={"metrics": ["work", "loss", "max_error", "max_torque"]},
    )
    s.run(engine="serial")
    table = s.table()
    for number in (0, 10):
        r = s.scenario(number).run()
        assert table[f"final.q.{FIRST}"][number] == pytest.approx(r.q[-1, 0], abs=1e-12)
        assert table["work"][number] == pytest.approx(r.work.actuator[-1], abs=1e-12)
        assert table["loss"][number] == pytest.approx(r.work.dissipated[-1], abs=1e-12)
        assert table["max_error"][number] == pytest.approx(
            np.abs(r.q - r.desired.q).max(), abs=1e-12
        )  # type: ignore[union-attr]
        assert table["max_torque"][number] == pytest.approx(np.abs(r.tau).max(), abs=1e-11)
        again = s.result(number)  # by itself in the lanes: the same bits
        assert again.q[-1, 0] == table[f"final.q.{FIRST}"][number]
        np.testing.assert_allclose(again.a, r.a, atol=1e-9 * np.abs(r.a).max())
        assert np.array_equal(again.t, r.t) or np.allclose(again.t, r.t, rtol=1e-14)


def test_a_run_that_leaves_the_bounds_hurts_no_other(tmp_path: Path) -> None:
    vary = {f"initial.v.{FIRST}": [0.0, 3e6, 1.0]}
    keep = {"final": True}
    s = study(tmp_path / "s.db", scenario=FIXED, vary=vary, points={}, keep=keep)
    count = s.run(engine="serial")
    assert (count.done, count.failed) == (2, 1)
    alone = study(
        tmp_path / "t.db", scenario=FIXED, vary={f"initial.v.{FIRST}": [1.0]}, points={}, keep=keep
    )
    alone.run(engine="serial")
    name = f"final.q.{SECOND}"
    assert alone.table()[name][0] == s.table()[name][2]
    assert "t = " in s.errors()[0][2]


# ---- out of the ledger ----


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".zarr", ".nc"])
def test_exports_hold_every_number(done: rf.Study, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out{suffix}"
    done.export(target)
    done.export(target)  # over the old one
    wanted = done.table()
    names = [*done.parameters, *done.columns]
    if suffix == ".csv":
        with open(target, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        found: Any = {name: np.array([float(row[name]) for row in rows]) for name in names}
    elif suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.read_table(target)
        found = {name: table[name].to_numpy() for name in names}
        assert table["history.energy.kinetic"][2].as_py() == done.history(2)[1][:, 3].tolist()
    else:
        import xarray

        data = (
            xarray.open_zarr(target)
            if suffix == ".zarr"
            else xarray.open_dataset(target, engine="scipy")
        )
        found = {name: data[name].values for name in names}
        assert np.array_equal(data["history"].values[2], done.history(2)[1])
        data.close()
    for name in names:
        assert np.array_equal(found[name], wanted[name])
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_tables_of_other_libraries(done: rf.Study) -> None:
    frame = done.to_pandas()
    assert frame.shape[0] == 6
    assert np.array_equal(frame["max_speed"], done.table()["max_speed"])
    assert done.to_xarray()["history"].dims == ("run", "row", "column")


def test_unknown_formats_and_numbers_are_refused(done: rf.Study, tmp_path: Path) -> None:
    with pytest.raises(rf.SimulationError, match=r"one of \.csv, \.parquet, \.zarr, \.nc"):
        done.export(tmp_path / "x.xls")
    with pytest.raises(rf.SimulationError, match="did you mean 'max_speed'"):
        done.plot(["max_sped"])


def test_pictures(done: rf.Study) -> None:
    figure = done.plot()
    shown = [
        text.get_text()
        for panel in figure.axes
        for text in (panel.title, panel.xaxis.label, panel._left_title)
    ]
    assert any("energy_error [J]" in text for text in shown)
    assert f"max_speed.{SECOND} [rad/s]" in shown
    assert f"payload.{LINK}.mass [kg]" in shown
    assert f"initial.q_deg.{FIRST} [deg]" in shown


@pytest.mark.parametrize(
    ("robot", "name", "unit"),
    [
        ("two_link", "max_speed", "rad/s"),
        ("stanford_arm", "max_speed", "rad/s or m/s"),
        ("stanford_arm", "max_torque.joint3", "N"),
        ("stanford_arm", "max_torque.joint1", "N m"),
        ("quadruped", "position.trunk.x", "m"),
        ("two_link", "work", "J"),
        ("two_link", "steps", ""),
        ("stanford_arm", "final.v.joint3", "m/s"),
        ("two_link", "final.q.joint1", "rad"),
    ],
)
def test_units_of_columns(robot: str, name: str, unit: str) -> None:
    assert column_unit(name, rf.load(robot)) == unit


@pytest.mark.parametrize(
    ("robot", "path", "unit"),
    [
        ("two_link", "payload.link2.mass", "kg"),
        ("two_link", "payload.link2.com.x", "m"),
        ("two_link", "robot.links.link1.inertia.0", "kg m^2"),
        ("two_link", "robot.links.link1.dh.alpha_deg", "deg"),
        ("two_link", "robot.gravity.z", "m/s^2"),
        ("two_link", "initial.q.joint1", "rad"),
        ("two_link", "initial.v_deg.joint1", "deg/s"),
        ("stanford_arm", "initial.v.joint3", "m/s"),
        ("two_link", "t_end", "s"),
        ("two_link", "damping", "N m s/rad"),
        ("two_link", "rtol", ""),
    ],
)
def test_units_of_parameters(robot: str, path: str, unit: str) -> None:
    assert parameter_unit(path, rf.load(robot)) == unit


@pytest.mark.parametrize(
    ("robot", "control", "path", "unit"),
    [
        ("two_link", "pd", "control.kp", "N m/rad"),
        ("two_link", "pd", "control.kd", "N m s/rad"),
        ("two_link", "computed_torque", "control.kp", "1/s^2"),
        ("stanford_arm", "pd", "control.kp", "N m/rad or N/m"),
        ("stanford_arm", "pd", "control.kp.2", "N/m"),
        ("stanford_arm", "pid", "control.ki.joint1", "N m/(rad s)"),
        ("two_link", "pd", "control.rate_hz", "Hz"),
        ("two_link", "pd", "control.none", ""),
    ],
)
def test_units_of_controllers(robot: str, control: str, path: str, unit: str) -> None:
    """By the type of the controller and the kind of joint, where there is only one."""
    assert parameter_unit(path, rf.load(robot), control) == unit


def test_sensitivity_indices() -> None:
    """y = 3 a + b + 0 c of independent uniform numbers: the shares are 0.9, 0.1 and 0."""
    rng = np.random.default_rng(3)
    a, b, c = rng.uniform(-1, 1, (3, 4000))
    y = 3.0 * a + b
    for x, share in ((a, 0.9), (b, 0.1), (c, 0.0)):
        assert first_order_index(x, y) == pytest.approx(share, abs=0.02)
    assert first_order_index(a, np.abs(a)) > 0.95  # no trend, and yet everything
    assert abs(rank_correlation(a, np.abs(a))) < 0.05
    assert rank_correlation(a, a**3) == pytest.approx(1.0)
    assert rank_correlation(a, -np.exp(a)) == pytest.approx(-1.0)
    two = np.repeat([0.0, 1.0], 10)
    assert first_order_index(two, 5.0 * two) == pytest.approx(1.0)
    assert np.isnan(first_order_index(a, np.ones(4000)))
    assert np.isnan(rank_correlation(two, np.ones(20)))


def test_the_pareto_front() -> None:
    points = np.array([[0, 3], [1, 1], [2, 2], [3, 0], [0, 4], [1, 1]], dtype=float)
    assert sorted(pareto(points).tolist()) == [0, 1, 3, 5]  # equals do not better one another
    rng = np.random.default_rng(0)
    cloud = rng.uniform(size=(200, 2))
    front = set(pareto(cloud).tolist())
    for i, p in enumerate(cloud):
        bettered = ((cloud <= p).all(axis=1) & (cloud < p).any(axis=1)).any()
        assert (i in front) == (not bettered)


def test_the_page_shows_what_matters(tmp_path: Path) -> None:
    s = study(tmp_path / "s.db", 9)
    s.run(engine="serial")
    s.page(tmp_path / "s.html")
    text = (tmp_path / "s.html").read_text(encoding="utf-8")
    assert "<h2>Sensitivity</h2>" in text
    assert "<h2>Trade-offs</h2>" in text
    section = text.partition("<h2>Sensitivity</h2>")[2].partition("</table>")[0]
    assert "max_speed [rad/s]" in section
    assert "Failed runs" not in text


def test_the_page_is_whole_and_escaped(tmp_path: Path) -> None:
    s = study(tmp_path / "s.db", 2, name="a<b", description="<script>alert(1)</script>")
    s.run(engine="serial")
    s.page(tmp_path / "s.html", reports=[1])
    text = (tmp_path / "s.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http:" not in text.replace("http://www.w3.org", "")
    mark = s.recipe.key(s.points[1]).hex()[:12]
    assert f"href='s_runs/run_1_{mark}.html'" in text
    assert "run_0_" not in text
    assert (
        "<html" in (tmp_path / "s_runs" / f"run_1_{mark}.html").read_text(encoding="utf-8").lower()
    )
    changed = study(tmp_path / "s.db", 2, set={"damping": 0.1})
    changed.run(engine="serial")
    changed.page(tmp_path / "s.html")
    assert "href=" not in (tmp_path / "s.html").read_text(
        encoding="utf-8"
    )  # that report is of another run


def test_another_plan_is_never_taken_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = study(tmp_path / "s.db", 2)
    s.run(engine="serial")
    before = s.result(1)
    other = study(tmp_path / "s.db", vary={"damping": [0.1, 0.2]}, points={})
    same_shape = study(tmp_path / "s.db", 2, set={"damping": 0.1})
    for wrong in (other, same_shape):
        with pytest.raises(rf.SimulationError, match="contains another plan than this study"):
            wrong.result(1)
    other.run(engine="serial")
    for ask in (s.result, s.scenario):
        with pytest.raises(
            rf.SimulationError, match=r"another plan .* open the ledger's study with rf.Study.open"
        ):
            ask(1)
    s.page(tmp_path / "s.html")  # what the ledger holds
    assert "damping" in (tmp_path / "s.html").read_text(encoding="utf-8")
    s.run(engine="serial")
    monkeypatch.setattr("ramify.studies.study.result_versions", lambda: {"ramify": "99"})
    monkeypatch.setattr("ramify.studies.recipe.result_versions", lambda: {"ramify": "99"})
    later = rf.Study.open(tmp_path / "s.db")
    assert np.array_equal(
        later.result(1).q, before.q
    )  # the plan is the same one, made with other versions
    assert later.other_versions() == {"ramify": (rf.__version__, "99")}


def test_reports_are_made_when_they_are_asked_for(
    done: rf.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ramify.studies.serve import server

    made = server(done.ledger)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        base = f"http://127.0.0.1:{made.server_port}"
        assert made.server_address[0] == "127.0.0.1"
        link = f"/run/4/{done.recipe.key(done.points[4]).hex()[:12]}"
        summary = urllib.request.urlopen(base).read().decode()
        (token,) = set(re.findall(r"\?token=([\w-]+)'", summary))
        assert f"href='{link}?token={token}'" in summary
        proof = f"?token={token}"
        assert "<html" in urllib.request.urlopen(base + link + proof).read().decode().lower()
        assert "<html" in urllib.request.urlopen(f"{base}/run/4{proof}").read().decode().lower()
        for wrong in (f"/run/99{proof}", "/run/x", f"/run/4/abcdef{proof}", "/../etc"):
            with pytest.raises(urllib.error.HTTPError, match="404") as caught:
                urllib.request.urlopen(base + wrong)
            caught.value.close()
        with monkeypatch.context() as without_work:  # what another site can send starts nothing
            without_work.setattr(
                "ramify.studies.serve.write_run_of_study",
                lambda *_: pytest.fail("work was started"),
            )
            for forged in ("/run/4", link, f"{link}?token=", f"{link}?token={token[:-1]}"):
                with pytest.raises(urllib.error.HTTPError, match="403") as caught:
                    urllib.request.urlopen(base + forged)
                caught.value.close()
        assert (
            "href='/run/4/"
            in urllib.request.urlopen(f"http://localhost:{made.server_port}/").read().decode()
        )
        for host in (
            "evil.example",
            f"evil.example:{made.server_port}",
            "127.0.0.1.evil.example",
            "",
        ):
            with pytest.raises(urllib.error.HTTPError, match="403") as caught:
                urllib.request.urlopen(urllib.request.Request(base, headers={"Host": host}))
            caught.value.close()

        def broken(*_: object) -> None:
            raise ZeroDivisionError("at once")

        monkeypatch.setattr("ramify.studies.serve.page", broken)
        with pytest.raises(urllib.error.HTTPError, match="500") as caught:
            urllib.request.urlopen(base)
        assert caught.value.read() == b"cannot write this page: ZeroDivisionError: at once\n"
        caught.value.close()
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


# ---- documentation ----

ROOT = Path(__file__).resolve().parent.parent


def test_the_example_is_sound() -> None:
    assert len(rf.study(ROOT / "examples" / "payload_study.yaml")) == 256


# ---- the command line ----


def command(*words: str) -> int:
    from ramify.cli import main

    with pytest.raises(SystemExit) as caught:
        main(words)
    return int(caught.value.code or 0)


FILE = f"""name: swings
scenario: swing.yaml
vary:
  payload.{LINK}.mass: [0.5, 1.5]
"""


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "swing.yaml").write_text(json.dumps(SWING), encoding="utf-8")
    (tmp_path / "s.yaml").write_text(FILE, encoding="utf-8")
    file, ledger = str(tmp_path / "s.yaml"), str(tmp_path / "s.db")
    assert command("sweep", file, "--check") == 0
    assert "swings: 2 runs" in capsys.readouterr().out
    assert not Path(ledger).exists()
    assert command("sweep", file, "--engine", "serial", "--json") == 0
    assert json.loads(capsys.readouterr().out)["done"] == 2
    (tmp_path / "s.yaml").unlink()
    (tmp_path / "swing.yaml").unlink()
    assert command("sweep", "resume", ledger, "--jobs", "1") == 0
    assert "2 of 2 runs done" in capsys.readouterr().out
    assert command("sweep", "status", ledger, "--check", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["done"], said["integrity"]) == (2, "ok")
    for words in (
        ("export", ledger, "x.csv"),
        ("plot", ledger, "x.svg"),
        ("plot", ledger, "x.html"),
        ("report", ledger, "1", "x.nc"),
    ):
        assert command("sweep", *words[:-1], str(tmp_path / words[-1])) == 0
        assert (tmp_path / words[-1]).stat().st_size > 100
    assert len(rf.Result.open(tmp_path / "x.nc")) == 21
    assert command("sweep", "report", ledger, "0") == 0
    (made,) = (tmp_path / "s_runs").iterdir()
    assert made.name.startswith("run_0_")
    capsys.readouterr()
    assert command("sweep", "status", str(tmp_path / "no.db")) == 1
    assert "there is no such ledger" in capsys.readouterr().err
    assert command("sweep", "report", str(tmp_path), "2") == 1
    assert "there is no such ledger" in capsys.readouterr().err
    assert command("sweep", "plot", ledger, str(tmp_path / "x.foo")) == 1
    assert "x.foo: a summary is written as .html, .svg, .png, .pdf" in capsys.readouterr().err
    with sqlite3.connect(ledger) as db:
        text = json.dumps({**result_versions(), "numpy": "0.1"})
        db.execute(
            "UPDATE facts SET value = ?, digest = ? WHERE name = 'versions'",
            (text, row_digest("facts", "versions", text)),
        )
    db.close()
    assert command("sweep", "resume", ledger, "--engine", "serial") == 0
    assert "was made with numpy 0.1 (now " in capsys.readouterr().err


def test_a_wrong_file_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "swing.yaml").write_text(json.dumps(SWING), encoding="utf-8")
    (tmp_path / "s.yaml").write_text(
        FILE.replace("mass: [0.5, 1.5]", "mass: {from: 0, to: 1, count: 1000000000}"),
        encoding="utf-8",
    )
    assert command("sweep", str(tmp_path / "s.yaml")) == 1
    assert "s.yaml:4:3: vary: 1000000000 = 1,000,000,000 runs" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.yaml", "swing.yaml"]


def test_engines_that_are_not_there(
    done: rf.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = study(tmp_path / "s.db", 2)
    for engine, more, said in (
        ("slurm", {}, "choose one of serial, processes, dask, ray"),
        ("serial", {"scheduler": "tcp://x"}, "option of the engines dask and ray, not of serial"),
        ("processes", {"jobs": 0}, "must be a whole number"),
        ("dask", {}, "needs the address of its scheduler"),
    ):
        with pytest.raises(rf.SimulationError, match=said):
            s.run(engine=engine, **more)
    monkeypatch.setattr("ramify.studies.engines.find_spec", lambda name: None)
    with pytest.raises(rf.SimulationError, match=r"needs joblib.* pip install 'ramify\[study\]'"):
        s.run(2)
    assert not list(tmp_path.iterdir())  # no ledger was written


def test_the_base_is_part_of_a_runs_key(tmp_path: Path) -> None:
    """The texts of robot and scenario are the same; only the base differs."""
    keys = set()
    for base in ("free", "free_euler"):
        scenario = {"robot": {"name": "planar_biped", "base": base}, "t_end": 0.02}
        made = rf.study(scenario=scenario, vary={"damping": [0.1]}, ledger=tmp_path / "s.db")
        keys.add(made.recipe.key([0.1]))
    assert len(keys) == 2


def test_a_history_ends_with_the_last_row(tmp_path: Path) -> None:
    """0.2 s in steps of 0.01 s are rows 0 to 20; every 7th of them are 0, 7, 14, and the last."""
    keep = {"history": {"of": "q", "every": 7}}
    s = study(tmp_path / "s.db", 1, keep=keep)
    s.run(engine="serial")
    _, rows = s.history(0)
    assert rows[:, 0] == pytest.approx([0.0, 0.07, 0.14, 0.2])
    assert np.array_equal(rows[-1, 1:], s.result(0).q[-1])


def test_a_done_run_is_never_overwritten(tmp_path: Path) -> None:
    def outcome(status: str, number: float) -> Outcome:
        return Outcome(0, status, "", np.array([number]).tobytes(), b"", 1.0, "here")

    with Ledger(tmp_path / "s.db", writer=True) as ledger:
        facts = {"parameters": ["x"], "columns": ["y"], "history": []}
        ledger.replan(facts, [b"key"], np.zeros((1, 1)))
        for status, number, wanted in (
            ("killed", 1.0, ("killed", 1.0)),
            ("failed", 2.0, ("failed", 2.0)),
            ("done", 3.0, ("done", 3.0)),
            ("failed", 4.0, ("done", 3.0)),
            ("done", 5.0, ("done", 3.0)),
        ):
            ledger.record([(b"key", outcome(status, number))])
            row = ledger.row(0)
            assert (row.status, row.numbers[0]) == wanted
