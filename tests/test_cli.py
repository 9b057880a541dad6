"""The command line: what it prints, writes and returns."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redysim_data import published, times

import ramify as rf
from ramify.cli import main
from ramify.files.robot_writer import save

Run = Callable[..., "Answer"]


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Answer:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        code = stop.value.code
        said = capsys.readouterr()
        return Answer(code if isinstance(code, int) else int(bool(code)), said.out, said.err)

    return call


def good(answer: Answer) -> Answer:
    assert answer.code == 0, answer.err
    assert answer.err == ""
    return answer


def test_version(run: Run) -> None:
    assert good(run("--version")).out.strip() == rf.__version__


def test_help_names_the_commands(run: Run) -> None:
    text = good(run("--help")).out
    for command in ("robots", "info", "check", "id", "fd", "count", "export", "demo"):
        assert command in text
        assert good(run(command, "--help")).out


def test_robots(run: Run) -> None:
    listed = good(run("robots", "--json")).json
    assert [robot["name"] for robot in listed] == list(rf.robots())
    assert "kuka_kr5" in good(run("robots")).out


def test_info(run: Run) -> None:
    told = good(run("info", "kuka_kr5", "--json")).json
    m = rf.load("kuka_kr5")
    assert told["nv"] == 6
    assert told["mass"] == m.mass
    assert [body["name"] for body in told["bodies"]] == [body.name for body in m.bodies]
    assert [c["name"] for body in told["bodies"] for c in body["coordinates"]] == list(
        m.coordinates
    )
    text = good(run("info", "kuka_kr5")).out
    assert all(body.name in text for body in m.bodies)


@pytest.mark.parametrize(
    ("robot", "numbers"),
    [("planar_biped", [0, 1, 1, 1, 2, 2, 2]), ("space_3_link", [0, 1, 1, 1]), ("gripper", [1, 2, 2, 3])],
)  # fmt: skip
def test_modules_are_counted_as_in_the_book(run: Run, robot: str, numbers: list[int]) -> None:
    """A floating base is M0, also where it carries one branch only."""
    told = good(run("info", robot, "--json")).json
    assert [body["module"] for body in told["bodies"]] == numbers


def test_chain_of_any_length(run: Run) -> None:
    assert good(run("info", "chain", "--set", "n=7", "--json")).json["nv"] == 7


def test_check_is_content_with_the_built_in_robots(run: Run) -> None:
    """But for the Puma 560: the moments published for its third link are no body's."""
    for name in rf.robots():
        if name != "puma_560":
            found = good(run("check", name, "--json")).json
            assert all(finding["level"] != "error" for finding in found)
    errors = [f for f in run("check", "puma_560", "--json").json if f["level"] == "error"]
    assert [(f["where"], f["code"]) for f in errors] == [("link3", "triangle-inequality")]


IMPOSSIBLE = """\
name: impossible
links:
  - {name: rod, frame: {xyz: [0, 0, 0]}, mass: 1, inertia: [1, 1, 5]}
  - {name: tip, parent: rod, frame: {xyz: [1, 0, 0]}, mass: 1, com: [0.1, 0, 0], inertia: [1, 1, 5], joint: universal}
"""


def test_check_fails_on_errors(run: Run, tmp_path: Path) -> None:
    (tmp_path / "impossible.yaml").write_text(IMPOSSIBLE)
    answer = run("check", "impossible.yaml", "--json")
    assert answer.code == 1
    assert any(finding["level"] == "error" and finding["where"] == "tip" for finding in answer.json)
    answer = run("check", "impossible.yaml")
    assert answer.code == 1
    assert "tip" in answer.out


def read_csv(path: Path) -> tuple[list[str], np.ndarray]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, dtype=float)


def test_info_shows_limits_and_ratings(run: Run, tmp_path: Path) -> None:
    b = rf.Builder("arm").link("a", limits=[(-0.1, 0.5)], effort=7.25, mass=1.0)
    save(b.link("b", "a", mass=1.0).model(), tmp_path / "arm.yaml")
    told = good(run("info", "arm.yaml")).out
    rows = [line.split() for line in told.split("\n")]
    assert ["a", "-0.1", "0.5", "7.25", "–"] in rows
    assert ["b", "–", "–", "–", "–"] in rows
    assert good(run("info", "arm.yaml", "--json")).json["bodies"][0]["effort"] == [7.25]


def test_id_meets_the_published_torques(run: Run, tmp_path: Path) -> None:
    """Rows that ReDySim printed for the cycloid of eq. (6.14)."""
    good(run("id", "kuka_kr5"))
    header, rows = read_csv(tmp_path / "kuka_kr5_torques.csv")
    assert header[0] == "t [s]"
    assert all(text.endswith("[N m]") for text in header[1:])
    assert rows.shape == (1001, 7)
    rows = rows[::100]
    assert np.abs(rows[:, 0] - times("kuka_kr5_invdyn")).max() < 1e-6
    torques = published("kuka_kr5_invdyn", "tor")
    assert np.abs(rows[:, 1:] - torques).max() < 1e-4


def test_id_writes_what_it_is_told(run: Run, tmp_path: Path) -> None:
    m = rf.load("redysim_rp")
    ends = ("--from", -0.5, "--to", 1.0, -2.0)
    files = ("--out", "a.csv", "--plot", "b.png")
    told = good(
        run("id", "redysim_rp", *ends, "--duration", 2, "--steps", 10, *files, "--json")
    ).json
    assert told["files"] == {"csv": "a.csv", "plot": "b.png"}
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    header, rows = read_csv(tmp_path / "a.csv")
    assert [text.rsplit(" [")[0] for text in header[1:]] == list(m.coordinates)
    assert {text.rsplit(" [")[1] for text in header[1:]} == {"N m]", "N]"}
    assert rows[[0, -1], 0].tolist() == [0.0, 2.0]
    assert np.allclose(rows[0, 1:], m.gravity_forces([-0.5, -0.5]))
    assert np.allclose(rows[-1, 1:], m.gravity_forces([1.0, -2.0]))
    assert [c["max"] for c in told["coordinates"]] == np.abs(rows[:, 1:]).max(axis=0).tolist()


def test_id_reports_what_it_leaves_out(run: Run, tmp_path: Path) -> None:
    solid = {"mass": 1.0, "com": (0.2, 0, 0), "inertia": (0.1, 0.1, 0.1)}
    b = rf.Builder("arm").link("a", limits=[(-0.1, 0.5)], friction=2.0, damping=0.3, **solid)
    m = b.link("b", "a", **solid).model()
    save(m, tmp_path / "arm.yaml")
    words = ("id", "arm.yaml", "--steps", 20, "--no-plot")
    told = good(run(*words)).out
    assert "Left out of these torques: damping, friction; --passive adds them." in told
    assert "a leaves its range (-0.1, 0.5): it goes to 1.047." in told
    _, plain = read_csv(tmp_path / "arm_torques.csv")
    assert "Left out" not in good(run(*words, "--passive")).out
    _, whole = read_csv(tmp_path / "arm_torques.csv")
    way = rf.motion.cycloid([0.0] * 2, [np.pi / 3] * 2, 1.0, 21)
    parts = m.passive_forces(way.q, way.v).parts
    assert np.allclose((plain - whole)[:, 1:], parts["damping"] + parts["friction"])
    assert good(run(*words, "--json")).json["outside_limits"] == ["a"]


def test_id_plots_svg_by_default_and_not_at_all_if_told(run: Run, tmp_path: Path) -> None:
    good(run("id", "gripper", "--steps", 20))
    assert "<svg" in (tmp_path / "gripper_torques.svg").read_text()
    good(run("id", "planar_3r", "--no-plot"))
    assert (tmp_path / "planar_3r_torques.csv").exists()
    assert not (tmp_path / "planar_3r_torques.svg").exists()


def test_plots_are_repeatable(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        good(run("id", "planar_3r", "--steps", 5, "--plot", f"{name}.svg"))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_many_joints_share_a_plot(run: Run) -> None:
    good(run("id", "chain", "--set", "n=20", "--steps", 5))


def test_fd_takes_negative_numbers(run: Run) -> None:
    q, v, tau = [-0.5, 1.2, -3e-1, 0, 0.1, -1], [-1, 0, 0, 0, 0, 2], [0.5, -0.5, 1, 2, -3, -4]
    told = good(run("fd", "kuka_kr5", "--q", *q, "--v", *v, "--tau", *tau, "--json")).json
    assert told["q"] == q
    assert np.allclose(told["a"], rf.load("kuka_kr5").forward_dynamics(q, v, tau), rtol=1e-9)
    assert "acceleration" in good(run("fd", "kuka_kr5", "--q", *q)).out


def test_fd_starts_from_the_neutral_state(run: Run) -> None:
    m = rf.load("planar_3r")
    o = m.neutral()
    assert np.allclose(
        good(run("fd", "planar_3r", "--json")).json["a"], m.forward_dynamics(o, o, o), rtol=1e-9
    )
    assert good(run("fd", "planar_3r", "--q", -0.25, "--json")).json["q"] == [-0.25] * 3


BALL = """\
name: ball
links:
  - {name: bob, joint: ball, frame: {xyz: [0, 0, 0]}, mass: 1, com: [0, 0, -1], inertia: [0.1, 0.1, 0.1]}
"""


def test_inverse_dynamics_on_a_free_base(run: Run, tmp_path: Path) -> None:
    """Section 7.1.1: the torques that ReDySim printed for its free-flying arm."""
    ends = ("--from", 0.3803, -0.6198, 1.2867, "--to", -np.pi / 2)
    words = ("id", "space_3_link", *ends, "--duration", 20, "--steps", 10)
    told = good(run(*words, "--no-plot"))
    assert "The base floats from rest" in told.out
    rows = np.loadtxt(tmp_path / "space_3_link_torques.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(
        rows[:, 1:], published("floating_3_link_invdyn", "tor"), rtol=0, atol=2e-6
    )
    assert good(run(*words, "--no-plot", "--json")).json["base"] == "free"
    moved = good(run("id", "space_3_link", "--base", "moved", "--steps", 5, "--no-plot", "--json"))
    assert len(moved.json["coordinates"]) == 9
    assert moved.json["base"] == "moved"
    (tmp_path / "alone.yaml").write_text(BALL.replace("joint: ball", "joint: free_euler"))
    assert "no joint is driven" in run("id", "alone.yaml").err
    assert good(run("id", "alone.yaml", "--base", "moved", "--steps", 5, "--no-plot")).out


def test_robots_with_quaternions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ball.yaml").write_text(BALL)
    told = good(run("info", "ball.yaml", "--json")).json
    assert (told["nq"], told["nv"]) == (4, 3)
    assert [c["unit"] for c in told["bodies"][0]["coordinates"]] == [""] * 4
    q, tau = [0.5, -0.5, 0.5, 0.5], [1, -2, 0]
    told = good(run("fd", "ball.yaml", "--q", *q, "--tau", *tau, "--json")).json
    assert np.allclose(
        told["a"], rf.load("ball.yaml").forward_dynamics(q, [0, 0, 0], tau), rtol=1e-9
    )
    assert "ball" in good(run("fd", "ball.yaml")).out
    assert "quaternions" in run("id", "ball.yaml").err


def test_count(run: Run) -> None:
    told = good(
        run(
            "count",
            "kuka_kr5",
            "gripper",
            "--algorithm",
            "inverse_dynamics",
            "mass_matrix",
            "--json",
        )
    ).json
    pairs = [
        (name, algorithm)
        for name in ("kuka_kr5", "gripper")
        for algorithm in ("inverse_dynamics", "mass_matrix")
    ]
    assert [(row["robot"], row["algorithm"]) for row in told] == pairs
    for row in told:
        c = rf.load(row["robot"]).op_count(row["algorithm"])
        assert (row["mul"], row["add"], row["div"], row["sqrt"], row["sincos"]) == (
            c.mul,
            c.add,
            c.div,
            c.sqrt,
            c.sincos,
        )
    assert "forward_dynamics" in good(run("count", "kuka_kr5")).out
    assert {"who": "Saha 1999", "mul": 676, "add": 527} in told[0]["published"]
    assert {"who": "Lin 1991", "mul": 524, "add": 380} in told[1]["published"]


def test_count_as_written(run: Run) -> None:
    told = good(
        run("count", "gripper", "--how", "written", "--algorithm", "denoc_inverse", "--json")
    ).json
    assert (told[0]["how"], told[0]["mul"], told[0]["add"]) == ("written", 294, 252)
    assert "94n₁ + 58n₂ + 46n₃ − 81" in good(run("count", "gripper")).out
    assert "hybrid_dynamics" in good(run("count", "quadruped")).out
    told = good(run("count", "--general", 6, "--json")).json
    (lin,) = (row for row in told if row["formulation"] == "lin_inertia")
    assert (lin["mul"], lin["add"], lin["published"]["mul"]) == (524, 380, 524)
    assert "as written" in good(run("count", "--general", 3)).out
    answer = run("count", "--plot", "growth.xyz")
    assert answer.code == 1
    assert "names no kind of picture" in answer.err


def test_count_compares_like_with_like(run: Run) -> None:
    """No published formula is for closed loops or for joints that slide; one convention for the
    percentage.
    """
    for robot, why in (("four_bar", "closed loops"), ("stanford_arm", "is prismatic")):
        told = good(run("count", robot, "--json")).json
        assert all(row["published"] == [] for row in told)
        answer = good(run("count", robot))
        assert f"{robot} is compared with nothing" in answer.out
        assert why in answer.out
        assert "Published;" not in answer.out
    answer = good(run("count", "kuka_kr5", "--algorithm", "inverse_dynamics"))
    assert "fewer by" in answer.out
    assert "41%" in answer.out  # as in the documentation


def test_export_yaml_comes_back_as_it_was(run: Run, tmp_path: Path) -> None:
    assert good(run("export", "spatial_biped_fixed", "--out", "robots", "--json")).json["files"]
    path = tmp_path / "robots" / "spatial_biped_fixed.yaml"
    m, again = rf.load("spatial_biped_fixed"), rf.load(str(path))
    q, v = m.random(seed=1)
    assert again.coordinates == m.coordinates
    assert np.allclose(again.bias(q, v), m.bias(q, v), rtol=1e-12, atol=1e-12)


def test_export_keeps_what_is_there(run: Run, tmp_path: Path) -> None:
    good(run("export", "planar_3r"))
    path = tmp_path / "planar_3r.yaml"
    path.write_text("mine")
    answer = run("export", "planar_3r")
    assert answer.code == 1
    assert "--force" in answer.err
    assert path.read_text() == "mine"
    good(run("export", "planar_3r", "--force"))
    assert path.read_text() != "mine"


def test_export_c(run: Run, tmp_path: Path) -> None:
    files = good(
        run("export", "kuka_kr5", "--format", "c", "--algorithm", "inverse_dynamics", "--json")
    ).json["files"]
    assert sorted(Path(name).suffix for name in files) == [".c", ".h"]
    header, source = sorted(
        (tmp_path / name for name in files), key=lambda path: path.suffix, reverse=True
    )
    assert f'#include "{header.name}"' in source.read_text()


def test_export_c_writes_one_pair_per_robot(run: Run, tmp_path: Path) -> None:
    files = good(run("export", "kuka_kr5", "--format", "c", "--json")).json["files"]
    assert sorted(files) == ["kuka_kr5.c", "kuka_kr5.h"]
    header = (tmp_path / "kuka_kr5.h").read_text()
    for name in ("inverse_dynamics", "forward_dynamics"):
        assert f"void kuka_kr5_{name}(" in header


def test_demo(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command writes where it is asked to; what it writes is looked at in test_demo."""
    from ramify.cli import demo_page

    monkeypatch.setattr(demo_page, "PANELS", ())
    assert "index.html" in good(run("demo", "--out", "there")).out
    page = (tmp_path / "there" / "index.html").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in page
    assert "$" not in page


def test_names_in_pages_are_escaped() -> None:
    from ramify.core.html import html_table

    assert "<b>" not in html_table(["<b>"], [["<b>&"]])


BAD = [
    (["info", "no_such_robot"], "no_such_robot"),
    (["info", "no_such_file.yaml"], "no_such_file.yaml"),
    (["fd", "kuka_kr5", "--q", "1", "2"], "--q has 2 numbers"),
    (["fd", "kuka_kr5", "--q", "nan"], "nan"),
    (["fd", "kuka_kr5", "--tau", "inf"], "inf"),
    (["fd", "kuka_kr5", "--q", "one"], "one"),
    (["info", "chain", "--set", "n=many"], "n=many"),
    (["info", "chain", "--set", "length=3", "m"], "--set m"),
    (["info", "chain", "--set", "nonsense=3"], "nonsense"),
    (["id", "kuka_kr5", "--steps", "0"], "rows"),
    (["id", "kuka_kr5", "--duration", "-1"], "duration"),
    (["id", "kuka_kr5", "--out", "no/such/place.csv"], "no/such/place.csv"),
    (["id", "kuka_kr5", "--steps", "2", "--plot", "torques.xyz"], "torques.xyz"),
    (["count", "kuka_kr5", "--algorithm", "magic"], "magic"),
    (["count", "kuka_kr5", "--algorithm", "denoc_forward"], "--how written"),
    (["count", "four_bar", "--how", "written"], "closed loops"),
    (["count", "--general", "100000000"], "up to 200 joints"),
    (["count", "--general", "6", "kuka_kr5"], "leave out robots"),
    (["count", "--general", "6", "--how", "written"], "leave out --how"),
    (["count", "--plot", "no/such/growth.svg"], "no/such/growth.svg"),
    (
        ["equations", "planar_3r", "--steps", "inverse_dynamics", "--part", "M"],
        "leave out --part",
    ),
    (
        ["equations", "planar_3r", "--steps", "inverse_dynamics", "--symbols"],
        "leave out --symbols",
    ),
    (["export", "kuka_kr5", "--format", "c", "--algorithm", "magic"], "magic"),
    (["export", "kuka_kr5", "--format", "pascal"], "pascal"),
    (["nonsense"], "nonsense"),
]


@pytest.mark.parametrize(
    ("arguments", "culprit"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD]
)
def test_mistakes_are_named_on_stderr(run: Run, arguments: list[str], culprit: str) -> None:
    answer = run(*arguments)
    assert answer.code != 0
    assert culprit in answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err


def test_a_terminal_does_not_obey_a_robot_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(
        'name: "[red]x"\nlinks:\n  - {name: "[bold]a", frame: {xyz: [0, 0, 0]}, mass: 1, com: [1, 0, 0]}\n'
    )
    text = good(run("info", "r.yaml")).out
    assert "[red]x" in text
    assert "[bold]a" in text


def test_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ramify", "fd", "nothing"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ramify: ")
    assert "Traceback" not in done.stderr


def test_a_reader_may_leave_early() -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "ramify", "robots"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    program.stdout.close()
    assert program.stderr is not None
    assert program.stderr.read() == ""
    program.stderr.close()
    assert program.wait(timeout=60) != 0


def test_bench_times_a_robot(run: Run) -> None:
    data = good(run("bench", "planar_3r", "--algorithm", "bias", "--states", 64, "--json")).json
    (row,) = data["timings"]
    assert row["algorithm"] == "bias"
    assert row["tier"] == "unrolled"
    assert row["batch"] > 0.0
    refused = run("bench", "planar_3r", "--algorithm", "jacobian")
    assert refused.code == 1
    assert "choose among" in refused.err


def test_closed_robots_have_their_mobility_as_degrees_of_freedom(run: Run) -> None:
    shown = run("info", "four_bar").out
    assert "1 degree of freedom (3 joint coordinates in closed loops)" in shown
    assert rf.load("stewart_platform").degrees_of_freedom == 6
    assert rf.load("kuka_kr5").degrees_of_freedom == 6
    assert "24 joint coordinates in closed loops" in repr(rf.load("stewart_platform"))


def test_stability(run: Run, tmp_path: Path) -> None:
    rows = json.loads(run("stability", "--n", 6, "--json", "--plot", "digits.svg").out)
    assert [row["case"] for row in rows] == ["equal", "line", "doubling", "halving"]
    assert all(row["recursion"] < 1e-14 for row in rows)
    picture = (tmp_path / "digits.svg").read_text(encoding="utf-8")
    assert "masses doubling outward, bent" in picture
    assert "Cholesky of M" in picture
    assert "equal rods in a line" in run("stability", "--n", 3).out
