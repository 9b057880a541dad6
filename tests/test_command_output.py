"""What the commands say: each printed cell and each entry of the JSON is computed here from the API,
each option changes what it names, and each refusal has its reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.cli import common, demo_page, look_commands, main, sweep_commands
from ramify.loops.survey import survey

Run = Callable[..., tuple[int, str, str]]
Cells = list[list[str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return call


def printed(run: Run, *words: object) -> str:
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    return out


def cells(text: str) -> Cells:
    """The words of each line, apart by two spaces or more."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.split("\n") if line.strip()]


def shown(x: Any) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)


def rail() -> rf.Model:
    """A slide, a hinge, a universal joint and a fixed tool: every number differs."""
    b = rf.Builder("rail", gravity=(0.3, -0.7, -9.6))
    b.link(
        "cart", joint="prismatic", axis=(1, 0, 0), mass=3.5, com=(0.11, 0.02, -0.03),
        inertia=(0.21, 0.22, 0.23), limits=(-0.6, 0.05), effort=41.0, velocity=1.7,
    )  # fmt: skip
    b.link("arm", "cart", at=(0, 0.2, 0.1), mass=1.25, com=(0.3, 0, 0.01), inertia=(0.04, 0.05, 0.06), damping=0.4)  # fmt: skip
    b.link("hand", "arm", joint="universal", at=(0.5, 0, 0), mass=0.75, com=(0.1, 0.02, 0), inertia=(0.007, 0.008, 0.009))  # fmt: skip
    b.link("tool", "hand", joint="fixed", at=(0, 0, 0.2), mass=0.2)
    return b.model()


@pytest.fixture
def rail_file(tmp_path: Path) -> str:
    rail().save(tmp_path / "rail.yaml")
    return "rail.yaml"


def test_what_info_prints(run: Run, rail_file: str) -> None:
    m = rf.load(rail_file)
    text = printed(run, "info", rail_file)
    rows = cells(text)
    assert rows[0] == [f"rail: 3 bodies in 1 module, 4 degrees of freedom, {m.mass:.6g} kg"]
    assert rows[1] == ["gravity (0.3, -0.7, -9.6) m/s^2"]
    parents = ["(base)", "cart", "arm"]
    names = ["cart [m]", "arm [rad]", ", ".join(f"{c} [rad]" for c in m.joints[2].coordinates)]
    types = [f"{j.kind} {j.sequence}".strip() for j in m.joints]
    for i, body in enumerate(m.bodies):
        com = "(" + ", ".join(f"{x + 0.0:.6g}" for x in body.com) + ")"
        row = [i + 1, body.name, parents[i], 1, body.joint.name, types[i], names[i], body.mass, com]
        assert [*map(shown, row)] in rows
    assert "links merged into others by fixed joints: tool" in text
    told = json.loads(printed(run, "info", rail_file, "--json"))
    assert told["links"] == [*m.attached]
    close(told["gravity"], m.gravity, 0, 0)
    for i, body in enumerate(told["bodies"]):
        joint = m.joints[i]
        rates = [{"name": n, "unit": "m/s" if i == 0 else "rad/s"} for n in joint.velocities]
        assert body["velocities"] == rates
        assert (body["parent"] or "(base)", body["joint"]) == (parents[i], joint.name)
        assert (body["type"], body["actuated"]) == (types[i], joint.actuated)
        assert body["limits"] == ([[-0.6, 0.05]] if i == 0 else [])
        rated = [element.effort for element in joint.machine]
        assert body["effort"] == [x if np.isfinite(x) else None for x in rated]
        assert len(body["velocity"]) == len(rated)
    assert (told["bodies"][0]["effort"], told["bodies"][0]["velocity"]) == ([41.0], [1.7])


def test_the_list_of_robots_has_their_numbers(run: Run) -> None:
    data = json.loads(printed(run, "robots", "--json"))
    rows = cells(printed(run, "robots"))
    for one in data:
        m = rf.load(one["name"])
        assert one["bodies"] == len(m.bodies)
        for key in ("degrees_of_freedom", "nv", "nq", "mass"):
            assert one[key] == getattr(m, key)
        assert one["description"] == m.metadata.get("description", "")
        row = next(row for row in rows if row[0] == m.name)
        assert row[1:4] == [*map(shown, (len(m.bodies), m.degrees_of_freedom, m.mass))]


def test_findings_are_printed(run: Run, rail_file: str) -> None:
    findings = rf.load("puma_560").check()
    code, out, _ = run("check", "puma_560")
    assert code == 1
    for f in findings:
        assert any(row[:3] == [f.level, f.where, f.code] for row in cells(out))
        assert f.message[:40] in out
    clean = next(name for name in rf.robots() if not rf.load(name).check())
    assert printed(run, "check", clean) == f"{clean}: nothing to complain about\n"
    assert json.loads(printed(run, "check", clean, "--json")) == []


def test_the_cycloid_of_id(run: Run, rail_file: str, tmp_path: Path) -> None:
    """From where it starts 0.1 m or 60 degrees on, in the time and rows that are asked for."""
    m = rf.load(rail_file)
    words = ("id", rail_file, "--from", 0.02, "--duration", 1.6, "--steps", 8, "--no-plot")
    told = json.loads(printed(run, *words, "--json"))
    way = rf.motion.cycloid(np.full(4, 0.02), 0.02 + np.array([0.1, *[np.pi / 3] * 3]), 1.6, 9)
    tau = m.inverse_dynamics(way.q, way.v, way.a)
    rows = np.loadtxt("rail_torques.csv", delimiter=",", skiprows=1)
    close(rows, np.column_stack([way.t, tau]), 1e-12, 1e-12)
    assert (told["robot"], told["base"], told["duration"], told["rows"]) == ("rail", "fixed", 1.6, 9)  # fmt: skip
    assert (told["passive"], told["outside_limits"]) == (False, ["cart"])
    text = printed(run, *words)
    table = cells(text)
    assert table[0] == ["rail: cycloidal motion in 1.6 s"]
    for j, one in enumerate(told["coordinates"]):
        size = np.abs(tau[:, j])
        assert (one["name"], one["unit"]) == (m.coordinates[j], "N" if j == 0 else "N m")
        close((one["start"], one["end"]), way.q[[0, -1], j], 1e-14)
        close((one["max"], one["time"]), (size.max(), way.t[size.argmax()]), 1e-12)
        row = [one["name"], one["start"], one["end"], one["max"], one["unit"], one["time"]]
        assert [*map(shown, row)] in table
    assert "Left out of these torques: damping; --passive adds them." in text
    assert "cart leaves its range (-0.6, 0.05): it goes to 0.12." in text
    assert json.loads(printed(run, *words, "--to", 0.04, "--json"))["outside_limits"] == []
    back = printed(run, *words, "--to", -0.9)
    assert "cart leaves its range (-0.6, 0.05): it goes to -0.9." in back
    passive = json.loads(printed(run, *words, "--passive", "--json"))
    assert passive["passive"] is True
    damped = np.loadtxt("rail_torques.csv", delimiter=",", skiprows=1)[:, 1:]
    close(damped, tau + np.outer(way.v[:, 1], [0, 0.4, 0, 0]), 1e-9, 1e-12)


def test_the_cycloid_of_a_linkage(run: Run) -> None:
    """The driven joint moves, the others follow; its torque alone does the work."""
    m = rf.load("slider_crank")
    told = json.loads(printed(run, "id", "slider_crank", "--steps", 4, "--no-plot", "--json"))
    home = m.assemble().q
    rows = np.loadtxt("slider_crank_torques.csv", delimiter=",", skiprows=1)
    driven = [j for j, joint in enumerate(m.joints) if joint.actuated]
    for j, one in enumerate(told["coordinates"]):
        close(one["start"], home[j], 1e-8, 1e-10)
        if j in driven:
            step = np.pi / 3 if m.joints[j].kind == "revolute" else 0.1
            close(one["end"], home[j] + step, 1e-8)
        else:
            assert not rows[:, 1 + j].any()


def test_what_fd_prints(run: Run, rail_file: str) -> None:
    m = rf.load(rail_file)
    q, v, tau = [0.02, -0.3, 0.7, 0.4], [1.1, -0.6, 0.5, 0.9], [3.0, -2.0, 0.6, 0.1]
    a = m.forward_dynamics(q, v, tau).tolist()
    rows = cells(printed(run, "fd", rail_file, "--q", *q, "--v", *v, "--tau", *tau))
    assert rows[0] == ["rail: forward dynamics, SI units"]
    assert rows[1] == ["coordinate", "unit", "q", "v", "tau", "acceleration"]
    for j in range(4):
        row = [m.velocities[j], "m" if j == 0 else "rad", q[j], v[j], tau[j], a[j]]
        assert [*map(shown, row)] in rows
    told = json.loads(printed(run, "fd", rail_file, "--q", *q, "--v", *v, "--tau", *tau, "--json"))
    assert (told["robot"], told["coordinates"]) == ("rail", [*m.coordinates])
    assert (told["velocities"], told["v"], told["tau"]) == ([*m.velocities], v, tau)
    b = rf.Builder("bob").link("bob", joint="ball", mass=1.5, com=(0.1, 0.2, -1), inertia=(0.1, 0.2, 0.25))  # fmt: skip
    b.model().save("bob.yaml")
    rows = cells(printed(run, "fd", "bob.yaml", "--q", 0.5, -0.5, 0.5, 0.5, "--tau", 1, -2, 3))
    ball = rf.load("bob.yaml")
    assert rows[0] == ["bob: configuration"]
    for name, x in zip(ball.coordinates, ("0.5", "-0.5", "0.5", "0.5"), strict=True):
        assert [name, x] in rows
    a = ball.forward_dynamics([0.5, -0.5, 0.5, 0.5], [0, 0, 0], [1, -2, 3]).tolist()
    for name, tau_, a_ in zip(ball.velocities, (1.0, -2.0, 3.0), a, strict=True):
        assert [name, "rad", "0", shown(tau_), shown(a_)] in rows


def test_fd_of_a_linkage_closes_it(run: Run) -> None:
    m = rf.load("four_bar")
    told = json.loads(printed(run, "fd", "four_bar", "--tau", 0.5, "--json"))
    q = m.assemble().q
    close(told["q"], q, 1e-12, 1e-14)
    close(told["a"], m.forward_dynamics(q, np.zeros(3), np.full(3, 0.5)), 1e-9)
    code, _, err = run("fd", "four_bar", "--q", 0.1, 0.2, 0.9)
    assert code == 1
    assert "loop" in err


@pytest.mark.parametrize("robot", ["four_bar", "stewart_platform", "robotic_leg", "three_rrr"])
def test_what_loops_prints(run: Run, robot: str) -> None:
    m = rf.load(robot)
    seen = survey(m)
    c = seen.constraints
    told = json.loads(printed(run, "loops", robot, "--json"))
    close([*told["q"].values()], seen.q, 1e-12, 1e-14)
    assert [*told["q"]] == [*m.coordinates]
    for one, loop in zip(told["loops"], m.loops, strict=True):
        assert (one["name"], one["type"]) == (loop.name, loop.kind)
        assert one["constraints"] == [*loop.names]
        assert one["between"] == [end.link or "base" for end in (loop.first, loop.second)]
    assert [row["name"] for row in told["constraints"]] == [*c.names]
    assert [row["unit"] for row in told["constraints"]] == [*c.units]
    assert [row["redundant"] for row in told["constraints"]] == [n in c.redundant for n in c.names]
    for key in ("rank", "mobility", "gap", "margin"):
        close(told[key], getattr(c, key), 1e-9, 1e-12)
    assert told["redundant"] == [*c.redundant]
    assert [way["body"] for way in told["tree"]] == [way.body for way in seen.tree.ways]
    assert [way["cdof"] for way in told["tree"]] == [way.cdof for way in seen.tree.ways]
    assert [(way["parent"], way["joint"]) for way in told["tree"]] == [
        (way.parent, way.joint.name) for way in seen.tree.ways
    ]
    assert told["cut"] == [edge.name for edge in seen.tree.cut]
    assert told["least_cdof_cut"] == [*seen.least]
    assert told["blocks"] == [[*block] for block in seen.blocks]
    assert told["solved_as_a_whole_because"] == (seen.plan.refused or None)
    for one, s in zip(told["subsystems"], seen.plan.subsystems, strict=True):
        assert (one["bodies"], one["torques"]) == ([*s.bodies], [*s.torques])
        assert one["multipliers"] == [*s.multipliers]
        assert (one["equations"], one["determinate"], one["round"]) == (
            s.equations if isinstance(s.equations, int) else [*s.equations], s.determinate, s.after,
        )  # fmt: skip
    text = printed(run, "loops", robot, "--svg", "graph.svg")
    assert Path("graph.svg").read_text() == seen.svg
    assert text.endswith("written: graph.svg\n")
    s, t = ("s" * (len(x) != 1) for x in (m.loops, c.names))
    head = f"{robot}: {len(m.loops)} loop{s}, {len(c.names)} constraint{t} of rank {c.rank}"
    assert text.startswith(f"{head} on {m.nv} velocities: mobility {c.mobility}\ngap ")
    assert f"margin {c.margin:.3g} (share" in text
    assert seen.text in text
    rows = cells(text)
    for loop in m.loops:
        listed = [f"({r})" if n in c.redundant else r for r, n in zip(loop.rows, loop.names, strict=True)]  # fmt: skip
        ends = " - ".join(end.link or "base" for end in (loop.first, loop.second))
        kind = loop.kind + (" (planar)" if loop.planar else "")
        assert [loop.name, kind, ends, ", ".join(listed)] in rows
    whole = "inverse dynamics solves all equations as a whole: "
    if seen.plan.refused:
        assert whole + seen.plan.refused in text
    else:
        order = "; then ".join(", ".join(block) for block in seen.blocks)
        assert f"multipliers are found in the order: {order}" in text
        assert whole not in text
    least = f"minimum cumulative degree of freedom would cut {', '.join(seen.least)}"
    assert (least in text) == bool(seen.least and {*seen.least} != {*told["cut"]})
    first = seen.plan.subsystems[0]
    assert any(row[0] == ", ".join(first.bodies) and ("yes" if first.determinate else "no") in row for row in rows)  # fmt: skip


def test_postures_of_loops(run: Run) -> None:
    m = rf.load("four_bar")
    told = json.loads(printed(run, "loops", "four_bar", "--at", f"{m.coordinates[0]}=0.4", "--json"))  # fmt: skip
    close(told["q"][m.coordinates[0]], 0.4, 1e-9)
    assert told["gap"] < 1e-9
    q = [0.1, 0.2, 0.9]
    open_ = json.loads(printed(run, "loops", "four_bar", "--q", *q, "--json"))
    assert [*open_["q"].values()] == q
    close(open_["gap"], m.constraints(q).gap, 1e-12)
    assert open_["gap"] > 1e-3
    for words, why in (
        (("--q", 0.1, 0.2), "--q has 2 numbers; four_bar has 3 coordinates"),
        (("--q", 0.1, 0.2, 0.3, "--at", "crank=0.3"), "give one of them"),
        (("--at", "crank"), "--at crank: give NAME=NUMBER, such as crank=0.3"),
    ):
        code, _, err = run("loops", "four_bar", *words)
        assert code == 1
        assert why in err
    assert "it is a tree" in run("loops", "two_link")[2]


def test_what_simulate_prints(run: Run) -> None:
    words = ("--t-end", 0.3, "--dt-out", 0.05, "--initial", 0.3, -0.4, 0.7, 0.2)
    text = printed(run, "simulate", "two_link", *words, "--out", "run.nc")
    r = rf.Result.open("run.nc")
    assert r.q[0].tolist() == [0.3, -0.4]
    assert r.v[0].tolist() == [0.7, 0.2]
    rows = cells(text)
    assert rows[0] == [f"two_link: two_link, 0.3 s, {r.status}"]
    assert rows[1][0].startswith(f"{r.options['method']}, {r.stats['steps']} steps, ")
    assert rows[1][0].endswith(f"; {len(r)} rows")
    for j in range(2):
        row = [r.columns["q"][j], r.units["q"][j], float(r.q[0, j]), float(r.q[-1, j])]
        assert [*map(shown, row)] in rows
    energy = r.audit.energy
    said = f"energy: largest error {energy.largest:.3g} J, {energy.relative:.2g} of what moved"
    assert [said] in rows
    assert rows[-1] == ["written: run.nc"]
    full = printed(run, "simulate", "two_link", *words, "--audit")
    assert "energy: largest error" not in full
    assert str(r.audit).split("\n")[0] in full
    told = json.loads(printed(run, "simulate", "two_link", *words, "--json"))
    assert (told["scenario"], told["robot"], told["status"]) == ("two_link", "two_link", r.status)
    assert (told["rows"], told["method"], told["files"]) == (len(r), r.options["method"], {})
    assert told["last"] == {"t": 0.3, "q": r.q[-1].tolist(), "v": r.v[-1].tolist()}
    assert told["energy_error"] == energy.relative
    assert told["stats"]["steps"] == r.stats["steps"]
    assert "audit" not in told


def test_errors_of_a_motion_are_printed(run: Run) -> None:
    text = printed(
        run, "simulate", "two_link", "--trajectory", "{type: cycloid, end_deg: {joint1: 20, joint2: -35}}",
        "--control", "{type: pd, kp: 30, kd: 2}", "--t-end", 0.5, "--out", "run.nc",
    )  # fmt: skip
    r = rf.Result.open("run.nc")
    assert r.desired is not None
    off = np.abs(r.q - r.desired.q).max(axis=0).tolist()
    for j in range(2):
        ends = [float(r.q[0, j]), float(r.q[-1, j]), off[j]]
        assert [r.columns["q"][j], "rad", *map(shown, ends)] in cells(text)


@pytest.mark.parametrize(
    ("words", "q", "v"),
    [
        ([0.25], [0.25, 0.25], [0, 0]),
        ([0.25, -0.5], [0.25, -0.5], [0, 0]),
        (["{q_deg: {joint2: 90}, v: {joint1: 0.5}}"], [0, np.pi / 2], [0.5, 0]),
        (["{q_deg:", "{joint1: 45}}"], [np.pi / 4, 0], [0, 0]),
    ],
)
def test_starts_on_the_command_line(run: Run, words: list[Any], q: Any, v: Any) -> None:
    printed(run, "simulate", "two_link", "--initial", *words, "--t-end", 0.02, "--out", "run.nc")
    r = rf.Result.open("run.nc")
    close(r.q[0], q, 1e-14)
    close(r.v[0], v, 1e-14)


def test_files_of_a_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is written where it is asked for, and is said once."""
    written: dict[str, Any] = {}
    monkeypatch.setattr(rf.Result, "report", lambda self, path: written.update(report=path) or path)
    monkeypatch.setattr(rf.Result, "animate", lambda self, path: written.update(film=path) or path)
    words = ("--out", "x.csv", "--plot", "x.svg", "--report", "x.html", "--animate", "x.mp4", "--redysim", "old")  # fmt: skip
    told = json.loads(printed(run, "simulate", "two_link", "--t-end", 0.02, *words, "--json"))
    files = {"run": "x.csv", "plot": "x.svg", "report": "x.html", "film": "x.mp4", "redysim": "old"}
    assert told["files"] == files
    assert written == {"report": Path("x.html"), "film": Path("x.mp4")}
    assert Path("old/tor.dat").is_file()
    for option, path, why in (
        ("--out", "x.svg", "the file must end in .nc or .csv"),
        ("--report", "x.pdf", "the file must end in .html or .htm"),
        ("--animate", "x.avi", "the file must end in .mp4 or .gif"),
    ):
        code, _, err = run("simulate", "two_link", option, path)
        assert code == 1
        assert f"{option} {path}: {why}" in err
    assert "no/such" in run("simulate", "two_link", "--report", "no/such/x.html")[2]


def test_runs_compared_in_a_table(run: Run) -> None:
    m = rf.load("two_link")
    runs = [rf.simulate(m, 0.2, [angle, 0.2]) for angle in (0.4, 0.45)]
    for name, r in zip("ab", runs, strict=True):
        r.save(f"{name}.nc")
    text = printed(run, "compare", "a.nc", "b.nc", "--report", "both.html")
    assert "report: both.html" in text
    assert Path("both.html").is_file()
    rows = cells(text)
    assert rows[0] == ["a.nc minus b.nc"]
    told = json.loads(printed(run, "compare", "a.nc", "b.nc", "--json"))
    for one in told:
        name, j = one["what"], [*runs[0].columns[one["what"]]].index(one["name"])
        gap = getattr(runs[0], name)[:, j] - getattr(runs[1], name)[:, j]
        close(one["largest"], gap[np.abs(gap).argmax()], 1e-9, 1e-12)
        close(one["time"], runs[0].t[np.abs(gap).argmax()], 1e-9)
        close(one["rms"], np.sqrt(np.mean(gap**2)), 1e-6, 1e-12)
        keys = ("what", "name", "largest", "unit", "time", "rms")
        assert [shown(one[key]) for key in keys] in rows


def test_kinds_are_listed_with_their_keys(run: Run) -> None:
    registries = {
        "motion": rf.motion.MOTIONS, "controller": rf.control.CONTROLLERS,
        "ground": rf.contact.LAWS, "terrain": rf.contact.TERRAINS,
    }  # fmt: skip
    every = json.loads(printed(run, "kinds", "--json"))
    table = printed(run, "kinds")
    for thing, registry in registries.items():
        listed = [one for one in every if one["thing"] == thing]
        assert [one["word"] for one in listed] == [*registry]
        assert json.loads(printed(run, "kinds", thing, "--json")) == listed
        for word in registry:
            about = next(one["about"] for one in listed if one["word"] == word)
            doc = " ".join((registry[word].__doc__ or "").split())
            assert doc.startswith(about)
            assert not about.endswith(".")
            told = json.loads(printed(run, "kinds", thing, word, "--json"))
            assert (told["word"], told["about"]) == (word, about)
            keys = {k.names[0]: k.about for k in registry.keys_of(word).values() if k.names}
            assert told["keys"] == keys
        assert any(row[:2] == [thing, next(iter(registry))] for row in cells(table))
    rows = cells(printed(run, "kinds", "controller", "pd"))
    assert rows[0][0].startswith("pd: ")
    assert {"kp", "kd"} <= {row[0].split(", ")[0] for row in rows}
    code, _, err = run("kinds", "ground", "firn")
    assert code == 1
    assert "no ground is called 'firn'; did you mean 'firm'?" in err


def test_scenarios_in_a_table(run: Run) -> None:
    rows = cells(printed(run, "scenarios"))
    for one in json.loads(printed(run, "scenarios", "--json")):
        s = rf.scenario(one["name"])
        assert one["robot"] == s.robot.name or one["robot"] in rf.robots()
        assert any(row[0] == one["name"] and row[1] == one["robot"] for row in rows)


def test_counts_in_a_table(run: Run) -> None:
    rows = cells(printed(run, "count", "gripper", "--algorithm", "bias", "mass_matrix"))
    assert rows[0] == ["Operations, as compiled"]
    m = rf.load("gripper")
    for name in ("bias", "mass_matrix"):
        c = m.op_count(name)
        start = ["gripper", m.nv, name, c.mul, c.add, c.div, c.sqrt, c.sincos]
        assert any(row[:8] == [*map(shown, start)] for row in rows)
    told = json.loads(printed(run, "count", "gripper", "--json"))
    assert [row["algorithm"] for row in told] == [*common.COUNTED]
    whole = json.loads(printed(run, "count", "quadruped", "--algorithm", "hybrid_dynamics", "--json"))  # fmt: skip
    c = rf.load("quadruped").op_count("hybrid_dynamics")
    assert (whole[0]["mul"], whole[0]["sincos"], whole[0]["nv"]) == (c.mul, c.sincos, 18)
    for name, option in (("--algorithm", "bias"), ("--set", "n=3")):
        code, _, err = run("count", "--general", 5, name, option)
        assert code == 1
        assert f"leave out {name}" in err


def test_general_counts_in_a_table(run: Run) -> None:
    from ramify.formulations import FORMULATIONS, crossover, general_count, published_count

    text = printed(run, "count", "--general", 5)
    rows = cells(text)
    assert rows[0] == ["A general robot of 5 revolute joints, as written"]
    for one in json.loads(printed(run, "count", "--general", 5, "--json")):
        name = one["formulation"]
        ours, paper = general_count(name, 5), published_count(name, 5)
        assert (one["n"], one["mul"], one["add"]) == (5, ours.mul, ours.add)
        assert one["what"] == FORMULATIONS[name].what
        row = next(row for row in rows if row[0] == name)
        assert row[2:4] == [str(ours.mul), str(ours.add)]
        if paper is None:
            assert one["published"] is None
        else:
            source = FORMULATIONS[name].source
            assert one["published"] == {"mul": paper.mul, "add": paper.add, "source": source}
            assert row[4:6] == [str(paper.mul), str(paper.add)]
    for pair in (("lin_inertia", "renaud_inertia"), ("denoc_inverse", "ridim"), ("denoc_forward", "rfdsim")):  # fmt: skip
        start = crossover(*pair)
        said = f"{pair[0]} takes fewer operations than {pair[1]} from n = {start} on"
        assert (said in text) == (start is not None)


def test_what_is_left_out_of_counts_as_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rf, "robots", lambda: ["two_link", "four_bar"])
    words = ("count", "--how", "written", "--algorithm", "inverse_dynamics", "--json")
    code, out, err = run(*words)
    assert code == 0
    assert [row["robot"] for row in json.loads(out)] == ["two_link"]
    assert err == "ramify: left out because of their closed loops: four_bar\n"
    told = json.loads(printed(run, "count", "--algorithm", "inverse_dynamics", "--json"))
    assert [row["robot"] for row in told] == ["two_link", "four_bar"]


def test_timings_in_a_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.kernels import timing

    before, asked = rf.threads(), []
    row = timing.Timing("bias", "unrolled", 0.25, 3.5e-6, 4e-8)

    def measure(m: Any, names: Any, states: int) -> list[Any]:
        asked.append((m.name, tuple(names), states, rf.threads()))
        return [row]

    monkeypatch.setattr(timing, "measure", measure)
    try:
        text = printed(run, "bench", "two_link", "--states", 17, "--threads", 1)
        told = json.loads(printed(run, "bench", "two_link", "--algorithm", "bias", "--json"))
    finally:
        rf.threads(before)
    assert asked[0] == ("two_link", tuple(timing.MEASURED), 17, 1)
    assert asked[1][:3] == ("two_link", ("bias",), 4096)
    assert told["timings"] == [asdict(row)]
    assert (told["robot"], told["nv"], told["states"], told["threads"]) == ("two_link", 2, 4096, 1)
    assert cells(text)[0] == ["two_link: 2 degrees of freedom, batches of 17"]
    assert ["bias", "unrolled", "0.25", "3.5", "0.04", "25,000,000"] in cells(text)
    code, _, err = run("bench", "two_link", "--states", 0)
    assert code == 1
    assert "--states 0: a batch has at least one state" in err
    assert run("bench", "two_link", "--states", 1)[0] == 0


def test_rounding_errors_in_a_table(run: Run) -> None:
    from ramify.formulations.stability import CASES

    told = json.loads(printed(run, "stability", "--n", 5, "--json"))
    rows = cells(printed(run, "stability", "--n", 5))
    assert rows[0][0].startswith("Forward dynamics of 5 rods: ")
    for one in told:
        assert one["n"] == 5
        numbers = [*one.values()][2:]
        said = ["–" if x is None else f"{x:.1e}" for x in numbers]
        assert [CASES[one["case"]].words, *said] in rows


def test_equations_are_printed_or_written(run: Run) -> None:
    forms = rf.formulations.equations(rf.load("two_link"))
    assert printed(run, "equations", "two_link", "--part", "g") == f"{forms.text(('g',))}\n"
    assert printed(run, "equations", "two_link", "--part", "M", "g", "--format", "latex", "--out", "e.tex") == "written: e.tex\n"  # fmt: skip
    assert Path("e.tex").read_text().rstrip("\n") == forms.latex(("M", "g")).rstrip("\n")
    assert Path("e.tex").read_text().endswith("\n")
    told = json.loads(printed(run, "equations", "two_link", "--part", "g", "--format", "python", "--symbols", "--json"))  # fmt: skip
    named = rf.formulations.equations(rf.load("two_link"), symbols=True)
    assert (told["robot"], told["parts"], told["format"]) == ("two_link", ["g"], "python")
    assert told["text"] == named.python(("g",))
    assert told["parameters"] == dict(named.parameters)
    table = rf.formulations.step_table(rf.load("two_link"), "forward_dynamics")
    words = ("equations", "two_link", "--steps", "forward_dynamics")
    assert printed(run, *words) == f"{table}\n"
    assert printed(run, *words, "--format", "latex").rstrip() == table.latex().rstrip()
    told = json.loads(printed(run, *words, "--json"))
    assert (told["robot"], told["algorithm"]) == ("two_link", "forward_dynamics")
    assert len(told["steps"]) == len(table.sweeps)
    for more, why in (
        (("--json", "--out", "x"), "--json prints, --out writes a file; leave one out"),
        (("--steps", "forward_dynamics", "--seconds", 3), "leave out --seconds"),
        (("--steps", "forward_dynamics", "--format", "sympy"), "--format text, --format latex"),
    ):
        code, _, err = run("equations", "two_link", *more)
        assert code == 1
        assert why in err
    code, _, err = run("equations", "quadruped")
    assert code == 1
    assert "quadruped has 18 degrees of freedom" in err
    code, out, err = run("equations", "four_bar", "--part", "D")
    assert code == 0
    assert "the loops of four_bar are opened" in err
    assert out == f"{rf.formulations.equations(rf.load('four_bar').tree).text(('D',))}\n"


def test_parts_that_take_too_long_are_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = rf.formulations.equations, []

    def equations(m: Any, **options: Any) -> Any:
        asked.append(options)
        forms = real(m, **options)

        def part(name: str) -> Any:
            if name in ("C", "inverse"):
                raise rf.RamifyError(f"{name} takes more than seconds=3")
            return forms.part(name)

        texts = {kind: getattr(forms, kind) for kind in ("text", "latex", "python", "sympy")}
        return SimpleNamespace(part=part, parameters=forms.parameters, **texts)

    monkeypatch.setattr(rf.formulations, "equations", equations)
    code, out, err = run("equations", "two_link", "--seconds", 3, "--json")
    assert code == 1
    assert json.loads(out)["parts"] == ["M", "g", "U", "D"]
    assert "ramify: C is left out: C takes more than --seconds3\n" in err
    assert asked == [{"symbols": False, "seconds": 3.0}]
    assert run("equations", "two_link", "--part", "g")[0] == 0
    assert asked[-1] == {"symbols": False, "seconds": 20.0}


def test_the_cache_as_json(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ramify.runtime import cache

    rf.load("two_link").kernel("bias", "unrolled")
    now = cache.state()
    told = json.loads(printed(run, "cache", "--json"))
    assert told == {"folder": str(now.folder), "entries": now.entries, "bytes": now.size, "limit_bytes": now.limit}  # fmt: skip
    gone = SimpleNamespace(folder=None, entries=0, size=0, limit=5)
    monkeypatch.setattr(cache, "state", lambda: gone)
    monkeypatch.setattr(cache, "shrink", lambda size: SimpleNamespace(entries=7, size=2_500_000))
    assert json.loads(printed(run, "cache", "--json"))["folder"] is None
    told = json.loads(printed(run, "cache", "--clear", "--json"))
    assert (told["removed_entries"], told["removed_bytes"]) == (7, 2_500_000)
    text = printed(run, "cache", "--clear")
    assert text.startswith("removed 7 entries, 2.5 MB\nThere is no cache: ")


def test_exports_take_their_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def to_fmu(m: Any, target: Path, **options: Any) -> None:
        asked.append((m.name, target, options))

    monkeypatch.setattr(rf, "to_fmu", to_fmu)
    words = ("export", "two_link", "--format", "fmu", "--out", "units")
    assert printed(run, *words) == f"written: {Path('units/two_link.fmu')}\n"
    plain = {"version": "3.0", "frames": None, "platforms": "auto"}
    assert asked == [("two_link", Path("units/two_link.fmu"), plain)]
    told = json.loads(printed(run, *words, "--fmi", "2.0", "--frame", "link2", "--platform", "x86_64-linux", "--ground", "firm", "--json"))  # fmt: skip
    assert told == {"robot": "two_link", "files": [str(Path("units/two_link.fmu"))]}
    chosen = {
        "version": "2.0",
        "frames": ["link2"],
        "platforms": ["x86_64-linux"],
        "ground": "firm",
    }
    assert asked[-1][2] == chosen
    Path("units/two_link.fmu").touch()
    assert "already there; --force replaces it" in run(*words)[2]
    assert run(*words, "--force")[0] == 0
    for option, value, kinds in (
        ("--ground", "firm", "c or fmu"), ("--scenario", "kuka_motion", "c or fmu"),
        ("--frame", "link2", "c or fmu"), ("--platform", "x", "fmu"), ("--algorithm", "bias", "c"),
        ("--step", "rk4", "c"), ("--derivatives", None, "c"), ("--dtype", "float", "c"),
        ("--fmi", "2.0", "fmu"),
    ):  # fmt: skip
        more = (option,) if value is None else (option, value)
        code, _, err = run("export", "two_link", *more)
        assert code == 1
        assert err == f"ramify: {option} belongs to --format {kinds}\n"
        other = {"c": "fmu", "fmu": "c"}.get(kinds)
        if other:
            assert run("export", "two_link", "--format", other, "--out", "z", *more)[0] == 1


def test_c_code_takes_its_options(run: Run) -> None:
    from ramify.interop.c_export import c_programs, c_texts

    m = rf.load("two_link")
    words = ("export", "two_link", "--format", "c", "--force")
    cases: list[tuple[tuple[str, ...], tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
        ((), (common.COUNTED[:2], ()), {}, (False, "double")),
        (("--algorithm", "bias"), (["bias"], ()), {}, (False, "double")),
        (("--frame", "link2"), (common.COUNTED[:2], ["link2"]), {}, (False, "double")),
        (("--step", "rk4"), (common.COUNTED[:2], ()), {"step": "rk4"}, (False, "double")),
        (("--derivatives", "--algorithm", "bias"), (["bias"], ()), {}, (True, "double")),
        (("--dtype", "float"), (common.COUNTED[:2], ()), {}, (False, "float")),
    ]
    for more, names, parts, how in cases:
        printed(run, *words, *more)
        texts = c_texts(m, c_programs(m, *names, **({"step": None} | parts)), *how)
        for name, text in texts.items():
            assert Path(name).read_text() == text, more


def test_machines_of_scenarios_are_exported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ground and damping go along; what cannot is said where it is not the default."""
    asked: list[Any] = []
    monkeypatch.setattr(rf, "to_fmu", lambda m, target, **options: asked.append(options))
    b = rf.Builder("foot").link("a", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.3))
    b.link("b", "a", mass=1.0, at=(0.4, 0, 0), inertia=(0.1, 0.2, 0.3), points={"tip": (0.3, 0, 0)})
    b.model().save("foot.yaml")
    start = "robot: foot.yaml\nt_end: 0.5\ninitial: {q: [0.3, 0.4], v: [0.5, 0.6]}\n"
    more = "damping: 0.7\nground: firm\ncontrol: {type: torque, tau: 2.5}\n"
    Path("s.yaml").write_text(f"name: s\n{start}{more}stops: false\npassive: true\n")
    code, _, err = run("export", "foot.yaml", "--format", "fmu", "--scenario", "s.yaml")
    assert code == 0
    assert err == "ramify: warning: stops of the scenario 's' cannot be exported; the machine acts as by default\n"  # fmt: skip
    options = asked[0]
    close(options["q0"], [0.3, 0.4], 0)
    close(options["v0"], [0.5, 0.6], 0)
    close(options["damping"], 0.7, 0)
    assert options["ground"] is not None
    assert isinstance(options["control"], rf.control.Torque)


def test_conversions_say_what_they_left_out(run: Run, tmp_path: Path) -> None:
    Path("a.urdf").write_text(
        '<robot name="a"><link name="base"/><link name="tip"><inertial><mass value="2"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="tip"/>'
        '<axis xyz="0 0 1"/></joint><transmission name="odd"><type>x</type></transmission></robot>'
    )
    code, out, _ = run("convert", "a.urdf", "a.yaml", "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["robot"], told["files"]) == ("a", ["a.yaml"])
    code, text, _ = run("convert", "a.urdf", "--out", "b.yaml")
    assert text.split("\n") == [*told["report"], "written: b.yaml", ""]
    assert "already there; --force replaces it" in run("convert", "a.urdf", "a.yaml")[2]
    assert run("convert", "a.urdf", "a.yaml", "--base", "free", "--force")[0] == 0
    assert rf.load("a.yaml").nv == 7


def test_the_demo_reports_its_page(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    page = Path("there/index.html")
    monkeypatch.setattr(
        demo_page, "write_demo", lambda out, progress: asked.append((out, progress)) or page
    )
    assert json.loads(printed(run, "demo", "--out", "there", "--json")) == {"page": str(page)}
    text = printed(run, "demo")
    assert text == f"written: {page}\nopen it in a browser: {page.resolve().as_uri()}\n"
    assert asked == [(Path("there"), None), (Path("out"), None)]


def test_the_viewer_is_started_as_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.view import live

    asked: list[Any] = []

    class Shown:
        model, url = rf.load("two_link"), "http://localhost:1"

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            asked.append("closed")

        def wait(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(live, "view", lambda robot, **more: asked.append((robot, more)) or Shown())
    assert printed(run, "view", "two_link") == "two_link: http://localhost:1 (Ctrl-C ends it)\n"
    printed(run, "view", "two_link", "--port", 81, "--no-browser")
    first, second = ("two_link", {"port": 8080, "browser": True}), ("two_link", {"port": 81, "browser": False})  # fmt: skip
    assert asked == [first, "closed", second, "closed"]


def test_completion_scripts_are_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--install-completion", "--shell", "bash", "--out", "done.sh")
    assert printed(run, *words) == f"written: {Path('done.sh').resolve()}\n"
    assert "ramify" in Path("done.sh").read_text()
    asked: list[Any] = []

    def install(self: Any, **options: Any) -> Path:
        asked.append(options)
        return Path("_ramify" if options["shell"] == "zsh" else "ramify")

    monkeypatch.setattr(type(look_commands.app), "install_completion", install)
    text = printed(run, "--install-completion", "--shell", "zsh")
    assert text.startswith("written: _ramify\nopen a new shell to use it\nzsh completes if")
    text = printed(run, "--install-completion", "--shell", "fish")
    assert text == "written: ramify\nopen a new shell to use it\n"
    assert asked[0] == {"shell": "zsh", "output": None, "add_to_startup": True}

    def unknown(self: Any, **_: Any) -> Path:
        raise look_commands.ShellDetectionError

    monkeypatch.setattr(type(look_commands.app), "install_completion", unknown)
    assert "name it with --shell bash" in run("--install-completion")[2]


STUDY = """\
name: few
scenario: {robot: two_link, t_end: 0.02}
vary: {initial.q.joint1: [0.1, 0.2, 0.4]}
keep: {metrics: [max_speed]}
"""


def test_a_study_from_the_command_line(run: Run) -> None:
    Path("few.yaml").write_text(STUDY)
    assert printed(run, "sweep", "few.yaml", "--check") == "few: 3 runs over initial.q.joint1\n"
    told = json.loads(printed(run, "sweep", "few.yaml", "--check", "--json"))
    assert (told["study"], told["runs"]) == ("few", 3)
    assert told["parameters"] == ["initial.q.joint1"]
    assert told["columns"] == rf.study("few.yaml").columns
    assert not list(Path(".").glob("*.db"))
    told = json.loads(printed(run, "sweep", "few.yaml", "--ledger", "x.db", "--engine", "serial", "--json"))  # fmt: skip
    assert (told["done"], told["planned"], told["study"], told["ledger"]) == (3, 3, "few", "x.db")
    text = printed(run, "sweep", "few.yaml", "--ledger", "x.db", "--engine", "serial")
    assert text.startswith("few: 3 of 3 runs done, 0 failed, 0 killed\n0 to do; ")
    assert text.rstrip().endswith("ledger x.db")
    assert printed(run, "sweep", "export", "x.db", "x.csv") == "written: x.csv\n"
    assert len(Path("x.csv").read_text().strip().split("\n")) == 4
    assert printed(run, "sweep", "plot", "x.db", "x.svg", "--columns", "max_speed") == "written: x.svg\n"  # fmt: skip
    assert printed(run, "sweep", "plot", "x.db", "x.html", "--reports", 1) == "written: x.html\n"
    assert "a summary is written as .html, .svg, .png, .pdf" in run("sweep", "plot", "x.db", "x.csv")[2]  # fmt: skip
    assert printed(run, "sweep", "report", "x.db", 2, "two.csv") == "written: two.csv\n"
    first = float(Path("two.csv").read_text().split("\n")[1].split(",")[1])
    assert first in (0.1, 0.2, 0.4)
    said = printed(run, "sweep", "report", "x.db", 1)
    assert Path(said.removeprefix("written: ").strip()).is_file()


def test_how_a_study_is_computed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("few.yaml").write_text(STUDY)
    printed(run, "sweep", "few.yaml", "--ledger", "x.db", "--engine", "serial")
    asked: list[Any] = []
    count = rf.Study.open("x.db").status()

    def compute(self: Any, **options: Any) -> Any:
        asked.append(options)
        if options["jobs"] == 7:
            raise KeyboardInterrupt
        return count._replace(done=2) if options["jobs"] == 6 else count

    monkeypatch.setattr(rf.Study, "run", compute)
    plain = {"jobs": None, "engine": "processes", "scheduler": None, "keep_going": False, "progress": False}  # fmt: skip
    for words, changed in (
        (("few.yaml", "--ledger", "x.db"), {"again": ("killed",)}),
        (("resume", "x.db"), {"again": ("killed",)}),
        (("resume", "x.db", "--failed"), {"again": ("killed", "failed")}),
        (("resume", "x.db", "--damaged", "--jobs", 3), {"again": ("killed", "damaged"), "jobs": 3}),
        (("resume", "x.db", "--keep-going"), {"again": ("killed",), "keep_going": True}),
        (("resume", "x.db", "--engine", "dask", "--scheduler", "tcp://a:1"), {"again": ("killed",), "engine": "dask", "scheduler": "tcp://a:1"}),
    ):  # fmt: skip
        assert run("sweep", *words)[0] == 0
        assert asked[-1] == plain | changed
    assert run("sweep", "resume", "x.db", "--jobs", 6)[0] == 1
    code, out, err = run("sweep", "resume", "x.db", "--jobs", 7)
    assert (code, out) == (130, "")
    assert err == "ramify: interrupted; 3 of 3 runs are in x.db\n"
    others = {"ramify": ("0.1", "0.2")}
    monkeypatch.setattr(rf.Study, "other_versions", lambda self: others)
    _, _, err = run("sweep", "resume", "x.db")
    assert "x.db was made with ramify 0.1 (now 0.2); results may differ" in err


def test_runs_set_aside_are_listed(run: Run) -> None:
    """The number, status and reason of each."""
    text = STUDY.replace("t_end: 0.02}", "t_end: 0.02, method: rk4, step: 0.002}")
    text = text.replace("initial.q.joint1: [0.1, 0.2, 0.4]", "initial.v.joint1: [0.1, 1.0e29, 0.4]")
    Path("few.yaml").write_text(text)
    code, out, _ = run(
        "sweep", "few.yaml", "--ledger", "x.db", "--engine", "serial", "--keep-going"
    )
    study = rf.Study.open("x.db")
    ((number, status, why),) = study.errors()
    assert (code, status) == (1, "failed")
    assert "2 of 3 runs done, 1 failed, 0 killed" in out
    assert any(row[:2] == [str(number), status] for row in cells(out))
    assert why[:30] in out


def test_a_study_is_served(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.studies import serve

    asked: list[Any] = []

    class Server:
        server_port = 4321

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            asked.append("closed")

        def serve_forever(self) -> None:
            asked.append("served")

    monkeypatch.setattr(serve, "server", lambda *words: asked.append(words) or Server())
    assert printed(run, "sweep", "serve", "x.db") == "http://127.0.0.1:4321/  (Ctrl-C ends it)\n"
    printed(run, "sweep", "serve", "x.db", "--port", 99)
    assert asked == [(Path("x.db"), 0), "served", "closed", (Path("x.db"), 99), "served", "closed"]
    assert sweep_commands.PICTURES == (".svg", ".png", ".pdf")


def test_interrupts_and_closed_pipes_have_exit_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ramify.cli._run", interrupted)
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 130


def test_settings_are_numbers_by_name() -> None:
    assert common.named_numbers(["n=7", "a=b=0.5"]) == {"n": 7.0, "a=b": 0.5}
    assert common.named_numbers(None) == {}
    for word in ("n", "=3", "n=x"):
        with pytest.raises(rf.ModelError, match=re.escape(f"--set {word}: give NAME=NUMBER, such as n=7")):  # fmt: skip
            common.named_numbers([word])
    close(common.fill("--q", [0.5], np.zeros(3)), [0.5] * 3, 0)
    close(common.fill("--q", None, np.array([1.0, 2.0])), [1, 2], 0)
    with pytest.raises(rf.StateError, match="--q has 2 numbers; give 3, or one for all"):
        common.fill("--q", [1, 2], np.zeros(3))
    robot = SimpleNamespace(name="a b-Ω.1")
    assert common.file_name(robot) == "a_b___1"  # type: ignore[arg-type]
    assert common.path_with_robot_name(Path("x/{robot}_t.csv"), robot) == Path("x/a_b___1_t.csv")  # type: ignore[arg-type]


HEADS = [
    (("robots",), ["robot", "bodies", "degrees of freedom", "mass, kg"]),
    (("scenarios",), ["scenario", "robot", "until, s", "source"]),
    (("info", "kuka_kr5"), ["body", "parent", "module", "joint", "type", "coordinates", "mass, kg", "mass centre, m"]),
    (("check", "puma_560"), ["level", "where", "code", "what"]),
    (("id", "two_link", "--steps", "4", "--no-plot"), ["coordinate", "from", "to", "max |tau|", "at t, s"]),
    (("fd", "two_link"), ["coordinate", "unit", "q", "v", "tau", "acceleration"]),
    (("loops", "four_bar"), ["loop", "type", "between", "constraints (redundant in brackets)"]),
    (("loops", "four_bar"), ["bodies", "equations", "unknown torques", "unknown multipliers", "determinate", "round"]),
    (("simulate", "two_link", "--t-end", "0.02"), ["coordinate", "unit", "at the start", "at the end"]),
    (("simulate", "kuka_motion", "--t-end", "0.02"), ["coordinate", "unit", "at the start", "at the end", "largest error"]),
    (("count", "two_link", "--algorithm", "bias"), ["robot", "dof", "algorithm", "x", "+", "/", "sqrt", "sin & cos", "fewest published", "fewer by"]),
    (("count", "--general", "3"), ["formulation", "x and /", "+", "published x", "+", "where"]),
    (("stability", "--n", "3"), ["chain", "condition", "recursion", "mass centre", "unrolled", "rolled", "Cholesky of M"]),
    (("kinds", "ground"), ["word", "what it is"]),
    (("kinds", "ground", "firm"), ["key", "takes"]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "heads"), HEADS, ids=[f"{w[0]}-{h[0]}" for w, h in HEADS])
def test_tables_have_their_heads(run: Run, words: tuple[str, ...], heads: list[str]) -> None:
    _, out, _ = run(*words)
    assert heads in cells(out)


def test_conversions_to_urdf_warn_of_what_it_cannot_say(run: Run, tmp_path: Path) -> None:
    rf.Builder("a").link("knee", mass=1.0, spring={"stiffness": 2.0}).model().save("k.yaml")
    code, out, err = run("convert", "k.yaml", "k.urdf")
    assert (code, out) == (0, "written: k.urdf\n")
    assert "warning: a: URDF cannot say" in err
    assert "spring of knee" in err
