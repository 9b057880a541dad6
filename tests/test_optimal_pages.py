"""The report of a solution, and the command line of rf.optimal."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ramify as rf
from ramify.cli import main
from ramify.optimal import Problem, solve, weighted

PROBLEM = """
import ramify as rf
from ramify.optimal import Problem, weighted

cart = rf.Builder("cart", gravity=(0, 0, 0)).link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0).model()
problem = Problem(
    cart, 0.05, 20, lambda s: weighted(1e-2, s.u, "force"), lambda s: weighted(1e2, [s.q[0] - s.goal[0], s.v[0]], "goal"),
    parameters={"goal": 1}, effort=3.0,
)
start = [0.1]
parameters = {"goal": 0.6}
"""


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(stop.value.code or 0), said.out, said.err


def test_optimise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "move.py"
    path.write_text(PROBLEM)
    code, out, _ = called(capsys, "optimise", path, "--json", "--out", tmp_path / "move.npz")
    assert code == 0
    answer = json.loads(out)
    assert answer["reason"] == "converged"
    assert set(answer["costs"]) == {"force", "final goal"}
    with np.load(tmp_path / "move.npz") as stored:
        assert stored["q"][-1, 0] == pytest.approx(0.6, abs=0.02)
        assert stored["u"].shape == (20, 1)
    code, out, _ = called(capsys, "optimise", path, "--report", tmp_path / "move.html")
    assert code == 0
    assert "converged: the first-order conditions hold" in out
    assert (tmp_path / "move.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "must set problem"),
        (PROBLEM.replace("start = [0.1]", ""), "must set start"),
        (None, "does not exist"),
    ],
)
def test_files_that_are_no_problem(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "move.py"
    if text is not None:
        path.write_text(text)
    code, _, err = called(capsys, "optimise", path, "--json")
    assert code != 0
    assert message in err


def test_report(tmp_path: Path) -> None:
    arm = rf.load("planar_3r")
    tip = arm.bodies[-1].name
    problem = Problem(
        arm, 0.02, 15, lambda s: weighted(1e-3, s.u, "torque <b>"), lambda s: weighted(1e2, s.position_error(tip, s.goal)),
        parameters={"goal": 3}, effort=[50.0, 50.0, 20.0],
    )  # fmt: skip
    solution = solve(problem, [0.2, 0.4, 0.3], goal=arm.pose([0.5, 0.5, 0.3], tip).position)
    page = solution.report(tmp_path / "reach.html", "A reach").read_text(encoding="utf-8")
    for words in (
        "A reach",
        "Cost by term",
        "torque &lt;b&gt;",
        "Progress over the iterations",
        "-20 … 20",
        "converged",
    ):
        assert words in page
    assert "audit failed" not in page
    with pytest.raises(rf.RamifyError, match=r"let its name end in \.html"):
        solution.report(tmp_path / "reach.txt")
    batch = solve(problem, np.array([[0.2, 0.4, 0.3]] * 2), goal=[1.0, 1.0, 0.0])
    with pytest.raises(rf.StateError, match="take one"):
        batch.report(tmp_path / "both.html")
