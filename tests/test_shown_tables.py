"""Tables of the command line, of reports and of the demo: every cell is the number of the API, in the
unit that its column names, and what is not asked for is not shown.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.cli import demo_page, look_commands, main
from ramify.model.units import force_unit
from ramify.view import html_tables
from ramify.view.named import aligned_columns


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        main([*words])
    assert end.value.code == 0
    return capsys.readouterr().out


Ratings = dict[str, Any]
CASES: dict[str, Ratings] = {
    "nothing": {},
    "limits": {"limits": (-1.5, 2.5)},
    "effort": {"effort": 30.0},
    "velocity": {"velocity": 4.0},
    "all": {"limits": (-1.5, 2.5), "effort": 30.0, "velocity": 4.0},
}


@pytest.mark.parametrize("case", list(CASES))
def test_limits_and_ratings_of_a_robot(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown where there is any of them, with a dash for what is not given."""
    b = rf.Builder("arm")
    b.link("a", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1), **CASES[case])
    b.link("b", "a", joint="prismatic", mass=2.0)
    path = tmp_path / "arm.yaml"
    b.model().save(path)
    data = json.loads(printed(capsys, "info", str(path), "--json"))
    tables: dict[str, Any] = {}
    monkeypatch.setattr(look_commands, "print_table", lambda title, *rest: tables.update({title: rest}))  # fmt: skip
    printed(capsys, "info", str(path))
    m = rf.load(path)
    for body, row, link in zip(data["bodies"], tables[""][1], m.bodies, strict=True):
        assert (body["name"], body["mass"]) == (link.name, link.mass)
        assert row[-2] == link.mass
        close(body["com"], link.com, 0.0, 0.0, "mass centre")
        close(body["inertia"], link.inertia, 0.0, 0.0, "inertia")
    title = "limits and ratings, SI units"
    assert (title in tables) == (case != "nothing")
    if case != "nothing":
        columns, rows = tables[title]
        assert columns == ("coordinate", "lower", "upper", "effort", "velocity")
        has = CASES[case]
        low, high = has.get("limits", ("–", "–"))
        first = ("a", low, high, has.get("effort", "–"), has.get("velocity", "–"))
        assert [tuple(row) for row in rows] == [first, ("b", "–", "–", "–", "–")]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "s.db"
    parts: dict[str, Any] = {
        "scenario": {"robot": "two_link", "t_end": 0.02},
        "vary": {"initial.q.joint1": [0.1, 0.2, 0.4]},
        "keep": {"metrics": ["max_speed", "work"]},
    }
    assert rf.study(name="three", ledger=path, **parts).run(engine="serial").done == 3
    return path


def test_the_status_of_a_study(ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is checked on request alone."""
    count = rf.Study.open(ledger).status()
    plain = json.loads(printed(capsys, "sweep", "status", str(ledger), "--json"))
    assert {name: plain[name] for name in count._fields} == count._asdict()
    assert (plain["study"], plain["errors"]) == ("three", [])
    assert "integrity" not in plain
    checked = json.loads(printed(capsys, "sweep", "status", str(ledger), "--check", "--json"))
    assert checked == plain | {"integrity": "ok"}
    text = printed(capsys, "sweep", "status", str(ledger))
    assert "three: 3 of 3 runs done, 0 failed, 0 killed" in text
    assert "ledger: ok" not in text
    assert "ledger: ok" in printed(capsys, "sweep", "status", str(ledger), "--check")


def test_the_page_of_a_study(ledger: Path, tmp_path: Path) -> None:
    """Both pictures, and the table of runs."""
    rf.Study.open(ledger).page(tmp_path / "s.html")
    text = (tmp_path / "s.html").read_text()
    for head in ("Distributions and dependence", "Trade-offs", "Runs"):
        assert f"<h2>{head}</h2>" in text
    assert text.count("<figure") + text.count("<img") + text.count("<svg") >= 2
    assert "3 of 3 runs done" in text


def test_facts_of_a_run_in_a_report() -> None:
    """Seconds beside the time that it took, and beside nothing else."""
    motion = rf.motion.Cycloid([0.0, 0.0], [0.4, 0.3], 0.1)
    r = rf.simulate(rf.load("two_link"), 0.1, control=rf.control.PD(motion), damping=0.2)
    rows = html_tables._run(r)
    said = dict(text.rsplit(" ", 2 if text.endswith(" s") else 1)[:2] for text in str(rows["steps"]).split(", "))  # fmt: skip
    assert {*said} == {name.replace("_", " ") for name, x in r.stats.items() if isinstance(x, int | float)}  # fmt: skip
    assert said["steps"] == str(r.stats["steps"])
    timed = [text for text in str(rows["steps"]).split(", ") if text.endswith(" s")]
    assert len(timed) == 1
    close(float(timed[0].split()[-2]), r.stats["wall_time"], 1e-2)
    assert rows["time"] == f"0 … 0.1 s, {len(r)} rows"
    assert rows["method"] == f"{r.options['method']}, rtol {r.options['rtol']:g}, atol {r.options['atol']:g}"  # fmt: skip
    assert json.loads(str(rows["damping"])) == [0.2, 0.2]
    assert r.desired is not None
    off = np.abs(r.q - r.desired.q)
    worst = int(off.max(axis=0).argmax())
    expected = f"{off[:, worst].max():.3g} rad, {r.columns['q'][worst]}"
    assert rows["largest error from the desired motion"] == expected


def test_a_named_array_has_its_title_above_it_and_none_where_it_has_none() -> None:
    rows = [("", "x", "yy"), ("first", "1", "2"), ("b", "10", "-3")]
    body = ["        x  yy", "first   1   2", "b      10  -3"]
    assert aligned_columns(rows).split("\n") == body
    assert aligned_columns(rows, "title").split("\n") == ["title", *body]
    arm = rf.load("two_link")
    M = arm.mass_matrix([0.3, 0.4])
    head, columns, *lines = str(arm.named(M, "mass matrix")).split("\n")
    assert (head, columns.split()) == ("mass matrix", list(arm.velocities))
    assert [line.split() for line in lines] == [
        [name, *(f"{x:.5g}" for x in row)] for name, row in zip(arm.velocities, M, strict=True)
    ]
    assert str(arm.named(M)).split("\n") == [columns, *lines]


def test_speeds_of_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds simulated by seconds taken, and a batch beside its arithmetic."""
    r = rf.simulate(rf.load("four_bar"), 0.5)
    words, row = demo_page._run_facts(r, 1.0)
    took = r.stats["wall_time"]
    assert row == ("0.5 s", f"{1e3 * took:.3g} ms", f"{0.5 / took:.3g}×")
    assert f"gap of a loop {r.loops.largest_gap:.1e} m" in words  # type: ignore[union-attr]
    q = np.zeros((8, 2, 19))
    q[2:, -1, 2] = 0.5
    herd: Any = SimpleNamespace(q=q, t=np.array([0.0, 3.0]))
    words, row = demo_page._herd_facts(herd, 0.25)
    assert words == "8 × 18 degrees of freedom; 75% stand at the end"
    assert row == ("8 × 3 s", "250 ms", "96×")
    batch = {"inverse_dynamics": 1e-7, "forward_dynamics": 2e-7}
    timings = [SimpleNamespace(algorithm=name, single=2e-6, batch=x) for name, x in batch.items()]
    monkeypatch.setattr(demo_page, "measure", lambda *_: timings)
    monkeypatch.setattr(demo_page, "arithmetic_rate", lambda: 2e10)
    rows = demo_page._limits()
    assert rows[0] == ("one inverse dynamics", "2.00 µs", "1 ms: a loop at 1 kHz", "0.200%")
    kuka = rf.load("kuka_kr5")
    for row, (name, seconds) in zip(rows[2:], batch.items(), strict=True):
        count = kuka.op_count(name)
        work = count.mul + count.add
        assert row == (
            f"batch, {name.replace('_', ' ')}",
            f"{1e-6 / seconds:.3g} million a second",
            f"{1e-6 * 2e10 / work:.3g}: its + and × alone",
            f"{work / seconds / 2e10:.0%}",
        )


def test_forces_have_the_unit_of_their_coordinate() -> None:
    assert (force_unit("rad"), force_unit("m")) == ("N m", "N")


WRITES: dict[str, tuple[str, ...]] = {
    "id": ("id", "two_link", "--out", "a.csv", "--plot", "a.svg"),
    "simulate": (
        "simulate",
        "two_link",
        "--t-end",
        "0.02",
        "--out",
        "r.nc",
        "--plot",
        "r.svg",
        "--report",
        "r.html",
    ),
    "export": ("export", "two_link", "--out", "robots"),
    "export c": ("export", "two_link", "--format", "c", "--out", "code"),
    "convert": ("convert", "two_link", "b.yaml"),
    "loops": ("loops", "four_bar", "--svg", "g.svg"),
    "equations": ("equations", "two_link", "--part", "M", "--out", "e.txt"),
    "sweep export": ("sweep", "export", "LEDGER", "t.csv"),
    "sweep plot": ("sweep", "plot", "LEDGER", "p.svg"),
    "sweep report": ("sweep", "report", "LEDGER", "1", "r.html"),
    "demo": ("demo", "--out", "out"),
}


@pytest.mark.parametrize("case", list(WRITES))
def test_every_file_that_a_command_writes_is_named(
    case: str,
    ledger: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def page(out: Path, **_: Any) -> Path:
        out.mkdir()
        (out / "index.html").write_text("")
        return out / "index.html"

    monkeypatch.setattr(demo_page, "write_demo", page)
    monkeypatch.chdir(tmp_path)
    text = printed(capsys, *(str(ledger) if word == "LEDGER" else word for word in WRITES[case]))
    named = {Path(line.partition(": ")[2]) for line in text.splitlines() if line.startswith("written: ")}  # fmt: skip
    made = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert made
    assert named == made


def test_the_share_that_long_steps_dissipate() -> None:
    """In the verdict: J, and per cent of the J that moved."""
    b = rf.Builder("swing")
    b.link("mass", joint="prismatic", axis=(1, 0, 0), mass=2.0, spring={"stiffness": 50.0})
    r = rf.simulate(b.model(), 1.0, [0.4], method="implicit_euler", step=0.02)
    lost = 0.5 * 50.0 * 0.4**2 - r.energy.total
    said = re.fullmatch(
        r"failed: the steps dissipated (\S+) J \((\S+) % of (\S+) J\); shorten the step",
        r.audit.verdict,
    )
    assert said is not None
    joules, share, whole = map(float, said.groups())
    close(joules, lost.max(), 1e-2, 0.0, "J")
    close(share, 100.0 * joules / whole, 5e-2, 0.0, "share")
    close(whole, r.audit.energy.scale, 1e-2, 0.0, "whole")
