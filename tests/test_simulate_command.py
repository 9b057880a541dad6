"""The commands scenarios and simulate: what they print and write, their exit codes, and what is
kept of runs that end badly.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return call


def test_scenarios_are_listed(run: Run) -> None:
    code, out, _ = run("scenarios", "--json")
    assert code == 0
    assert [entry["name"] for entry in json.loads(out)] == rf.scenarios()
    assert "kuka_motion" in run("scenarios")[1]


def test_simulate_a_scenario(run: Run) -> None:
    code, out, err = run(
        "simulate", "kuka_free_fall", "--audit", "--out", "run.nc", "--plot", "run.svg", "--json"
    )
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["audit"]["passed"] is True
    r = rf.Result.open("run.nc")
    assert r.q[-1].tolist() == told["last"]["q"]
    assert r.metadata["options"]["scenario"]["name"] == "kuka_free_fall"
    assert Path("run.svg").stat().st_size > 1000
    code, out, _ = run("simulate", "kuka_motion", "--t-end", "0.1", "--audit")
    assert code == 0
    assert "PASS" in out
    assert "largest error" in out
    _, out, _ = run("simulate", "four_bar_turn", "--t-end", "0.02")  # the motion leads the crank
    assert "nan" not in out
    assert out.count("not prescribed") == 2


def test_simulate_a_robot(run: Run) -> None:
    code, out, _ = run(
        "simulate", "kuka_kr5", "--trajectory", "{type: cycloid, end_deg: 60}", "--control", "{type: computed_torque, kp: 100}",
        "--t-end", 0.5, "--dt-out", 0.1, "--json", "--out", "run.csv", "--redysim", "old",
    )  # fmt: skip
    assert code == 0
    told = json.loads(out)
    assert told["rows"] == 6
    assert np.loadtxt("old/tor.dat").shape == (6, 6)
    assert (
        Path("run.csv").read_text().startswith("t [s]") or "t" in Path("run.csv").read_text()[:20]
    )
    wanted = rf.motion.Cycloid(0.0, np.pi / 3).at(0.5).q[0]
    assert told["last"]["q"] == pytest.approx([wanted] * 6, abs=1e-6)
    code, out, _ = run(
        "simulate",
        "planar_3r",
        "--initial",
        "-0.5",
        "0.2",
        "0.3",
        "0",
        "0",
        "1",
        "--t-end",
        0.01,
        "--json",
    )
    assert code == 0
    assert (
        run(
            "simulate", "chain", "--set", "n=4", "--t-end", 0.01, "--method", "rk4", "--step", 0.001
        )[0]
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["kuka_fre_fall"], "did you mean 'kuka_free_fall'"),
        (["planar_3r", "--method", "magic"], "'magic' is unknown"),
        (["planar_3r", "--method", "rk4"], "step"),
        (["planar_3r", "--t-end", "0"], "t_end"),
        (["planar_3r", "--control", "pd"], "add the key motion"),
        (["planar_3r", "--initial", "1", "2"], "--initial has 2 numbers"),
        (
            ["stanford_arm", "--trajectory", "{type: cycloid, end_deg: 60}"],
            "ramify: --trajectory: end_deg: not all coordinates are angles",
        ),
        (["planar_3r", "--control", "{type: pd, kx: 1}"], "\n--control: kx: unknown key"),
        (["planar_3r", "--out", "run.txt"], "must end in .nc or .csv"),
        (["planar_3r", "--rtol", "1e-99"], "rtol"),
        (["kuka_motion", "--set", "n=3"], "--set belongs to a robot"),
        (["nowhere.yaml"], "no such file"),
    ],
)
def test_failures_have_an_exit_code(run: Run, arguments: list[str], said: str) -> None:
    code, _, err = run("simulate", *arguments)
    assert code != 0
    assert said in err


def test_the_audit_sets_the_exit_code(run: Run) -> None:
    coarse = ["simulate", "planar_3r_free_fall", "--method", "euler", "--step", "0.02"]
    assert run(*coarse)[0] == 0
    code, out, _ = run(*coarse, "--audit")
    assert code == 1
    assert "FAIL" in out


def test_a_run_that_fails_midway_keeps_what_it_has(run: Run) -> None:
    code, out, err = run("simulate", "planar_3r", "--control", "{type: torque, tau: 1e29}", "--t-end", "1", "--method", "rk4",
                         "--step", "0.01", "--out", "run.nc", "--json")  # fmt: skip
    assert code == 1
    assert "what was computed until t =" in err
    r = rf.Result.open("run.nc")
    assert r.status.startswith("failed")
    assert json.loads(out)["status"] == r.status


def _start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ramify", "simulate", *arguments], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ,
    )  # fmt: skip


def test_ctrl_c_keeps_what_was_computed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.runs.run_recording import Recording

    kept, rows = Recording.keep, []

    def keep(self: Any, *row: Any) -> None:
        kept(self, *row)
        rows.append(row)
        if len(rows) == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(Recording, "keep", keep)
    code, _, err = run("simulate", "two_link", "--initial", "1", "1", "--t-end", "1000", "--method", "rk4", "--step", "0.0005",
                       "--out", "run.nc", "--json")  # fmt: skip
    assert code == 130
    assert "interrupted; the run ends at t =" in err
    r = rf.Result.open("run.nc")
    assert r.status == "interrupted"
    assert len(r) == sum(len(times) for _, times, _ in rows)
    assert r.t[-1] < 1000.0


def test_sigkill_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    short = ("planar_3r", "--t-end", "2", "--dt-out", "0.0005", "--out", "run.nc")
    first = _start(tmp_path, *short, "--initial", "0")
    first.communicate(timeout=60)
    assert first.returncode == 0
    old = (tmp_path / "run.nc").read_bytes()
    for delay in (0.7, 1.1, 1.4):
        process = _start(tmp_path, *short, "--initial", "0.5")
        time.sleep(delay)
        process.kill()
        process.communicate()
        kept = rf.Result.open(tmp_path / "run.nc")  # whole, whichever it is
        assert kept.q[0, 0] in (0.0, 0.5)
        if kept.q[0, 0] == 0.0:
            assert (tmp_path / "run.nc").read_bytes() == old


def test_two_runs_are_compared(run: Run) -> None:
    m = rf.load("two_link")
    for name, angle in (("a", 0.4), ("b", 0.5)):
        rf.simulate(m, 0.2, [angle, 0.2]).save(f"{name}.nc")
    code, out, _ = run("compare", "a.nc", "b.nc", "--report", "both.html", "--json")
    assert code == 0
    first = json.loads(out)[0]
    assert (first["what"], first["name"], first["unit"]) == ("q", m.coordinates[0], "rad")
    assert first["largest"] == pytest.approx(-0.1, abs=0.05)
    assert "ghost" in Path("both.html").read_text(encoding="utf-8")
    assert "a.nc minus b.nc" in run("compare", "a.nc", "b.nc")[1]
    code, _, err = run("compare", "a.nc", "lost.nc")
    assert code != 0
    assert "lost.nc" in err
