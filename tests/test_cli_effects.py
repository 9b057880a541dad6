"""Every option of every command has the effect that it promises, and the tables that are printed
have the numbers of the JSON and of the Python calls. An option without its test here is a failure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.cli import common, main, output
from ramify.files.robot_writer import save

Run = Callable[..., "Answer"]
TESTED: set[tuple[str, str]] = set()


def effect_of(command: str, *options: str) -> Callable[[Any], Any]:
    TESTED.update((command, option) for option in options)
    return lambda test: test


def _commands(app: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    for name in app:
        if not name.startswith("-"):
            yield f"{words} {name}".strip(), app[name]
            yield from _commands(app[name], f"{words} {name}".strip())


def test_every_option_is_tested() -> None:
    offered = {
        (command, argument.name)
        for command, app in _commands(common.app)
        for argument in app.assemble_argument_collection()
        if argument.name.startswith("--")
    }
    elsewhere = {("view", "--port"), ("view", "--browser"), ("sweep serve", "--port")}
    positional = {"--robot", "--source", "--target", "--first", "--second"}
    missing = {pair for pair in offered - TESTED - elsewhere if pair[1] not in positional}
    assert not missing
    assert offered >= TESTED


class Printed(list[Any]):
    """Tables that a command printed: (title, columns, rows)."""

    def table(self, start: str = "") -> tuple[list[str], list[list[Any]]]:
        (answer,) = [(c, rows) for title, c, rows in self if title.startswith(start)]
        return answer

    def columns(self, start: str = "") -> dict[str, list[Any]]:
        names, rows = self.table(start)
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Printed:
    """What ``print_table`` is told, by every module that has it."""
    import sys

    tables, original = Printed(), output.print_table

    def spy(title: str, columns: Any, rows: Any) -> None:
        filled = [list(row) for row in rows]
        tables.append((title, list(columns), filled))
        original(title, columns, filled)

    for name, module in list(sys.modules.items()):
        if name.startswith("ramify.cli.") and hasattr(module, "print_table"):
            monkeypatch.setattr(module, "print_table", spy)
    return tables


class Answer(str):
    code: int
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Callable[..., Answer]:
    """Run a command in a folder with three robots of no symmetry."""
    monkeypatch.chdir(tmp_path)
    solid = {"inertia": (0.3, 0.2, 0.15)}
    b = rf.Builder("arm", gravity=(0.4, -0.7, -9.3))
    b.link("upper", mass=2.3, com=(0.21, 0.03, -0.02), spring={"stiffness": 3.1, "rest": 0.2}, damping=0.7,
           limits=[(-2.0, 2.5)], effort=31.0, velocity=4.5, armature=0.11, **solid)  # fmt: skip
    b.link("slide", "upper", joint="prismatic", axis=(0, 1, 0), at=(0.4, 0.1, 0.0), mass=1.1,
           com=(0.05, 0.1, 0.2), damping=1.9, friction=0.6, limits=[(-0.7, 0.3)], **solid)  # fmt: skip
    b.link("hand", "slide", axis=(1, 0, 0), at=(0.1, 0.3, 0.2), mass=0.7, com=(0.1, -0.2, 0.1),
           friction=0.25, effort=12.0, **solid)  # fmt: skip
    save(b.model(), tmp_path / "arm.yaml")
    f = rf.Builder("flyer", gravity=(0.0, 0.0, -1.3))
    f.link("trunk", joint="free_euler", mass=9.0, com=(0.1, 0.2, -0.1), inertia=(1.2, 1.1, 0.9))
    f.link("arm", "trunk", axis=(0, 1, 0), at=(0.3, 0.1, 0.2), mass=1.7, com=(0.2, 0.1, 0.3),
           spring={"stiffness": 40.0, "rest": -0.3}, damping=2.2, **solid)  # fmt: skip
    save(f.model(), tmp_path / "flyer.yaml")

    def call(*arguments: object, code: int = 0) -> Answer:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        answer = Answer(said.out)
        answer.err, answer.code = said.err, int(stop.value.code or 0)  # type: ignore[arg-type]
        assert answer.code == code, said.err
        return answer

    return call


def csv_of(path: str) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)


# ---- id, fd ----


@effect_of("id", "--from", "--to", "--duration", "--steps", "--out", "--plot", "--no-plot")
@effect_of("id", "--passive", "--json")
def test_torques_along_the_motion(run: Run, printed: Printed) -> None:
    m = rf.load("arm.yaml")
    q0, q1 = [0.3, -0.2, 0.5], [-0.4, 0.15, 1.1]
    way = rf.motion.cycloid(q0, q1, 1.7, 9)
    words = ("id", "arm.yaml", "--from", *q0, "--to", *q1, "--duration", 1.7, "--steps", 8)
    for passive in (False, True):
        tau = m.inverse_dynamics(way.q, way.v, way.a, passive=passive, stops=False)
        switches = ("--passive",) * passive
        told = run(*words, "--out", "x.csv", "--no-plot", *switches, "--json").json
        np.testing.assert_allclose(csv_of("x.csv"), np.c_[way.t, tau], rtol=1e-12)
        assert (told["passive"], told["duration"], told["rows"]) == (passive, 1.7, 9)
        assert [c["name"] for c in told["coordinates"]] == list(m.coordinates)
        assert [c["unit"] for c in told["coordinates"]] == ["N m", "N", "N m"]
        for k, c in enumerate(told["coordinates"]):
            assert (c["start"], c["end"]) == pytest.approx((q0[k], q1[k]))
            assert c["max"] == pytest.approx(np.abs(tau[:, k]).max(), rel=1e-12)
            assert c["time"] == pytest.approx(way.t[np.abs(tau[:, k]).argmax()])
    run(*words, "--plot", "y.png", "--passive")
    assert Path("y.png").read_bytes()[1:4] == b"PNG"
    _, rows = printed.table("arm: cycloidal motion in 1.7 s")
    wanted = [list(c.values()) for c in told["coordinates"]]
    for row, (name, unit, start, end, most, time) in zip(rows, wanted, strict=True):
        assert row == [name, start, end, pytest.approx(most), unit, time]


@effect_of("id", "--base")
def test_passive_forces_on_a_free_base(run: Run) -> None:
    """The base is free: the joint's spring and damper act on trunk and arm alike."""
    m = rf.load("flyer.yaml")
    torques = {}
    for passive in (False, True):
        words = ("--from", 0.2, "--to", 0.9, "--duration", 0.8, "--steps", 4, "--no-plot")
        run("id", "flyer.yaml", *words, *("--passive",) * passive, "--out", "t.csv")
        torques[passive] = csv_of("t.csv")[:, 1]
    way = rf.motion.cycloid([0.2], [0.9], 0.8, 5)
    lost = 40.0 * (way.q[:, 0] + 0.3) + 2.2 * way.v[:, 0]
    np.testing.assert_allclose(torques[True] - torques[False], lost, rtol=1e-6)
    moved = run("id", "flyer.yaml", "--base", "moved", "--steps", 4, "--no-plot", "--json").json
    assert moved["base"] == "moved"
    assert len(moved["coordinates"]) == m.nv


@effect_of("fd", "--q", "--v", "--tau", "--json")
def test_accelerations(run: Run, printed: Printed) -> None:
    m = rf.load("arm.yaml")
    q, v, tau = [0.3, -0.2, 0.5], [0.7, 0.4, -1.1], [2.0, -3.0, 0.5]
    a = m.forward_dynamics(q, v, tau)
    words = ("fd", "arm.yaml", "--q", *q, "--v", *v, "--tau", *tau)
    told = run(*words, "--json").json
    assert (told["q"], told["v"], told["tau"]) == (q, v, tau)
    np.testing.assert_allclose(told["a"], a, rtol=1e-12)
    run(*words)
    shown = printed.columns("arm: forward dynamics")
    assert (shown["q"], shown["v"], shown["tau"]) == (q, v, tau)
    assert shown["unit"] == ["rad", "m", "rad"]
    np.testing.assert_allclose(shown["acceleration"], a, rtol=1e-12)


SETTINGS = {
    "id": ("--steps", 2, "--no-plot", "--json"),
    "fd": ("--json",),
    "info": ("--json",),
    "equations": ("--part", "M", "--json"),
    "simulate": ("--t-end", 0.01, "--json"),
    "bench": ("--algorithm", "bias", "--states", 2, "--json"),
    "export": ("--out", "made", "--json"),
    "count": ("--algorithm", "bias", "--json"),
    "check": (),
}


@effect_of("id", "--set")
@effect_of("fd", "--set")
@effect_of("info", "--set")
@effect_of("equations", "--set")
@effect_of("simulate", "--set")
@effect_of("bench", "--set")
@effect_of("export", "--set")
@effect_of("count", "--set")
@effect_of("check", "--set", "--json")
@pytest.mark.parametrize("command", SETTINGS)
def test_parameters_of_the_robot(run: Run, command: str) -> None:
    said = run(command, "chain", "--set", "n=3", *SETTINGS[command])
    three = {
        "id": lambda d: len(d["coordinates"]),
        "fd": lambda d: len(d["a"]),
        "info": lambda d: d["nv"],
        "equations": lambda d: ("M33" in d["text"] and "M44" not in d["text"]) * 3,
        "simulate": lambda d: len(d["last"]["q"]),
        "bench": lambda d: d["nv"],
        "export": lambda d: rf.load(d["files"][0]).nv,
        "count": lambda d: d[0]["nv"],
    }
    if command == "check":
        assert run("check", "chain", "--set", "n=3", "--json").json == []
    else:
        assert three[command](said.json) == 3


@effect_of("loops", "--set")
def test_parameters_that_a_robot_does_not_have(run: Run) -> None:
    assert "length" in run("loops", "four_bar", "--set", "length=3", code=1).err


# ---- simulate ----


def simulated(run: Run, *words: object) -> rf.Result:
    run("simulate", "arm.yaml", "--initial", 0.3, -0.2, 0.5, "--t-end", 0.2, *words,
        "--out", "r.nc")  # fmt: skip
    return rf.Result.open("r.nc")


EFFECTS: dict[str, tuple[tuple[object, ...], dict[str, Any]]] = {
    "--control": (("{type: pd, kp: 20, kd: 3, motion: {type: hold, q: 0.1}}",),
                  {"control": rf.control.PD(rf.motion.Hold([0.1] * 3), 20.0, 3.0)}),
    "--method": (("rk4", "--step", 0.002), {"method": "rk4", "step": 0.002}),
    "--step": ((0.0025, "--method", "ode5"), {"method": "ode5", "step": 0.0025}),
    "--rtol": ((1e-3,), {"rtol": 1e-3}),
    "--atol": ((1e-3, "--rtol", 1e-2), {"atol": 1e-3, "rtol": 1e-2}),
    "--dt-out": ((0.05,), {"dt_out": 0.05}),
    "--max-step": ((0.003,), {"max_step": 0.003}),
    "--damping": ((1.3,), {"damping": 1.3}),
    "--no-passive": ((), {"passive": False}),
    "--wrenches": (("{hand: [0.3, 0.1, -0.2, 3, 1, -2]}",),
                   {"wrenches": {"hand": [0.3, 0.1, -0.2, 3.0, 1.0, -2.0]}}),
}  # fmt: skip


@effect_of("simulate", "--control", "--method", "--step", "--rtol", "--atol", "--dt-out")
@effect_of("simulate", "--max-step", "--damping", "--passive", "--wrenches", "--t-end", "--initial")
@effect_of("simulate", "--out")
@pytest.mark.parametrize("option", EFFECTS)
def test_options_of_a_run(run: Run, option: str) -> None:
    words, options = EFFECTS[option]
    r = simulated(run, option, *words)
    plain = rf.simulate(rf.load("arm.yaml"), 0.2, [0.3, -0.2, 0.5])
    same = rf.simulate(rf.load("arm.yaml"), 0.2, [0.3, -0.2, 0.5], **options)
    np.testing.assert_array_equal(r.q, same.q)
    assert len(r.q) != len(plain.q) or np.abs(r.q - plain.q).max() > 0.0 or option == "--max-step"
    assert r.stats["steps"] == same.stats["steps"]


@effect_of("simulate", "--contact")
@effect_of("simulate", "--stops", "--efforts", "--ground", "--stabilisation", "--at-singularity")
def test_switches_of_a_run(run: Run) -> None:
    m = rf.load("arm.yaml")
    run("simulate", "arm.yaml", "--initial", 0.3, 0.29, 0.5, 0.0, 2.0, 0.0, "--t-end", 0.3,
        "--no-stops", "--control", "{type: pd, kp: 900, kd: 2, motion: {type: hold, q: 0.1}}",
         "--no-efforts", "--out", "r.nc")  # fmt: skip
    r = rf.Result.open("r.nc")
    start = [0.3, 0.29, 0.5], [0.0, 2.0, 0.0]
    same = rf.simulate(
        m,
        0.3,
        *start,
        stops=False,
        efforts=False,
        control=rf.control.PD(rf.motion.Hold([0.1] * 3), 900.0, 2.0),
    )
    np.testing.assert_array_equal(r.q, same.q)
    assert (r.options["stops"], r.options["efforts"]) == (False, False)
    assert np.abs(r.tau[:, 2]).max() > 12.0
    words = ("--t-end", 0.05, "--stabilisation", 30, "--at-singularity", "pass", "--out", "c.nc")
    run("simulate", "four_bar", *words)
    closed = rf.Result.open("c.nc").options
    assert (closed["stabilisation"], closed["at_singularity"]) == (30.0, "pass")
    words = ("--t-end", 0.02, "--initial", "{q: {base: [0, 0, 0.9, 0, 0, 0]}}", "--out", "g.nc")
    run("simulate", "quadruped", *words, "--ground", "{law: firm, friction: 0.37}")
    r = rf.Result.open("g.nc")
    assert r.contacts is not None
    assert r.options["contact"] is None
    run(
        "simulate", "quadruped", *words, "--contact", "{law: hard, friction: 0.41}", "--step", 0.002
    )
    assert rf.Result.open("g.nc").options["contact"]["friction"] == 0.41
    assert r.options["ground"]["friction"] == 0.37


@effect_of("simulate", "--trajectory", "--audit", "--json", "--plot", "--report", "--redysim")
@effect_of("simulate", "--animate")
def test_what_is_said_of_a_run(run: Run, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    films: list[Path] = []
    monkeypatch.setattr(rf.Result, "animate", lambda r, path: films.append(path) or path)
    motion = "{type: cycloid, end: {upper: -0.9, slide: 0.2, hand: 0.7}}"
    words = ("simulate", "arm.yaml", "--t-end", 0.7, "--trajectory", motion, "--audit",
             "--control", "{type: pd, kp: 300, kd: 20}")  # fmt: skip
    files = ("--out", "r.csv", "--plot", "p.svg", "--report", "r.html", "--redysim", "dat",
             "--animate", "f.gif")  # fmt: skip
    told = run(*words, *files)
    assert films == [Path("f.gif")]
    assert "<svg" in Path("p.svg").read_text()
    assert "<html" in Path("r.html").read_text()
    assert Path("dat/statevar.dat").is_file()
    for path in ("r.csv", "p.svg", "r.html", "f.gif", "dat"):
        assert f"written: {path}" in told
    data = run(*words, "--out", "r.nc", "--json").json
    r = rf.Result.open("r.nc")
    shown = printed.columns()
    errors = np.abs(r.q - r.desired.q).max(axis=0)
    assert (errors != (r.q - r.desired.q).max(axis=0)).any()  # some err below
    np.testing.assert_allclose(shown["largest error"], errors, rtol=1e-12)
    np.testing.assert_allclose(shown["at the start"], r.q[0])
    np.testing.assert_allclose(shown["at the end"], r.q[-1])
    assert (shown["coordinate"], shown["unit"]) == (list(m_names(r)), ["rad", "m", "rad"])
    assert data["last"] == {"t": 0.7, "q": r.q[-1].tolist(), "v": r.v[-1].tolist()}
    assert (data["rows"], data["method"]) == (len(r), r.options["method"])
    assert data["energy_error"] == r.audit.energy.relative
    assert data["audit"]["passed"] is True
    assert data["files"] == {"run": "r.nc"}
    assert data["stats"]["steps"] == r.stats["steps"]
    assert str(r.audit).splitlines()[0] in told


def m_names(r: rf.Result) -> tuple[str, ...]:
    return r.model.coordinates


# ---- compare, info, robots, scenarios, kinds, check ----


@effect_of("compare", "--report", "--json")
def test_two_runs_side_by_side(run: Run, printed: Printed) -> None:
    m = rf.load("arm.yaml")
    first, second = (rf.simulate(m, 0.4, [0.3, -0.2, x]) for x in (0.5, 0.9))
    first.save("a.nc"), second.save("b.nc")
    data = run("compare", "a.nc", "b.nc", "--json").json
    run("compare", "a.nc", "b.nc", "--report", "c.html")
    assert "<html" in Path("c.html").read_text()
    shown = printed.columns("a.nc minus b.nc")
    assert shown["column"][:3] == list(m.coordinates)
    for key, column in {"largest": "largest difference", "time": "at, s", "rms": "RMS",
                        "unit": "unit", "what": ""}.items():  # fmt: skip
        assert shown[column] == [row[key] for row in data]
    off = first.q - second.q
    for k, row in enumerate(data[:3]):
        at = np.abs(off[:, k]).argmax()
        assert abs(row["largest"]) == pytest.approx(abs(off[at, k]))
        assert row["time"] == pytest.approx(first.t[at])
        assert row["rms"] == pytest.approx(np.sqrt((off[:, k] ** 2).mean()))


@effect_of("info", "--json")
def test_a_robot_in_numbers(run: Run, printed: Printed) -> None:
    m = rf.load("arm.yaml")
    data = run("info", "arm.yaml", "--json").json
    said = run("info", "arm.yaml")
    assert data["gravity"] == [0.4, -0.7, -9.3]
    assert data["mass"] == pytest.approx(4.1)
    assert "gravity (0.4, -0.7, -9.3) m/s^2" in said
    assert "4.1 kg" in said
    for i, (b, body) in enumerate(zip(data["bodies"], m.bodies, strict=True)):
        assert (b["name"], b["mass"], b["com"]) == (body.name, body.mass, body.com.tolist())
        assert b["parent"] == (None, "upper", "slide")[i]
        assert b["inertia"] == body.inertia.tolist()
        assert b["module"] == m.module_numbers[i]
    slide = data["bodies"][1]
    assert slide["coordinates"] == [{"name": "slide", "unit": "m"}]
    assert slide["velocities"][0]["unit"] == "m/s"
    assert slide["limits"] == [[-0.7, 0.3]]
    assert data["bodies"][0]["velocity"] == [4.5]
    assert data["bodies"][2]["effort"] == [12.0]
    names, rows = next((c, rows) for _, c, rows in printed if "mass, kg" in c)
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    assert table["body"] == ["upper", "slide", "hand"]
    assert table["parent"] == ["(base)", "upper", "slide"]
    assert table["module"] == list(m.module_numbers)
    assert table["mass, kg"] == [2.3, 1.1, 0.7]
    assert table["mass centre, m"][2] == "(0.1, -0.2, 0.1)"
    limits = printed.columns("limits and ratings")
    assert limits["lower"] == [-2.0, -0.7, "–"]
    assert limits["upper"] == [2.5, 0.3, "–"]
    assert limits["effort"] == [31.0, "–", 12.0]
    assert limits["velocity"] == [4.5, "–", "–"]


@effect_of("robots", "--json")
@effect_of("scenarios", "--json")
@effect_of("kinds", "--json")
def test_lists(run: Run, printed: Printed) -> None:
    data = run("robots", "--json").json
    run("robots")
    shown = printed.columns("Built-in robots")
    for row, name, bodies, freedoms, mass in zip(
        data,
        *(shown[k] for k in ("robot", "bodies", "degrees of freedom", "mass, kg")),
        strict=True,
    ):
        m = rf.load(row["name"])
        assert (name, bodies, freedoms) == (m.name, len(m.bodies), m.degrees_of_freedom)
        assert mass == row["mass"] == m.mass
        assert (row["nq"], row["nv"]) == (m.nq, m.nv)
    data = run("scenarios", "--json").json
    run("scenarios")
    _, rows = printed.table("Scenarios")
    assert rows == [list(d.values()) for d in data]
    for row in data[:3]:
        s = rf.scenario(row["name"])
        assert row["t_end"] == s.options["t_end"]
    data = run("kinds", "terrain", "--json").json
    assert {d["thing"] for d in data} == {"terrain"}
    assert [d["word"] for d in data] == list(rf.contact.TERRAINS)
    run("kinds", "terrain")
    assert printed.table("Kinds")[1] == [list(d.values()) for d in data]
    keys = run("kinds", "controller", "pd", "--json").json["keys"]
    run("kinds", "controller", "pd")
    shown = printed.columns("pd")
    assert [k.split(", ")[0] for k in shown["key"]] == list(keys)
    assert shown["takes"] == list(keys.values())


# ---- loops ----


@effect_of("loops", "--at", "--q", "--svg", "--json")
def test_loops_in_numbers(run: Run, printed: Printed) -> None:
    m = rf.load("four_bar")
    crank = next(
        name for name, joint in zip(m.coordinates, m.joints, strict=False) if joint.actuated
    )
    data = run("loops", "four_bar", "--at", f"{crank}=0.4", "--json").json
    assert data["q"][crank] == pytest.approx(0.4)
    assert data["gap"] < 1e-9
    c = m.constraints(list(data["q"].values()))
    assert (data["rank"], data["mobility"], data["margin"]) == (c.rank, c.mobility, c.margin)
    open_posture = run("loops", "four_bar", "--q", 0.3, 0.2, -0.1, "--json").json
    c = m.constraints([0.3, 0.2, -0.1])
    assert open_posture["gap"] == c.gap > 0.01
    assert [x["residual"] for x in open_posture["constraints"]] == c.residual.tolist()
    assert {x["name"] for x in data["constraints"] if x["redundant"]} == {*data["redundant"]}
    run("loops", "four_bar", "--svg", "g.svg")
    assert "<svg" in Path("g.svg").read_text()
    assert [row[0] for row in printed.table("Subsystems")[1]] == [
        ", ".join(s["bodies"]) for s in data["subsystems"]
    ]


@pytest.mark.parametrize("robot", ["four_bar", "three_rrr", "stewart_platform", "robotic_leg",
                                   "slider_crank", "spatial_four_bar"])  # fmt: skip
def test_the_better_cut_is_named_where_there_is_one(run: Run, robot: str) -> None:
    data = run("loops", robot, "--json").json
    better = data["least_cdof_cut"] and {*data["least_cdof_cut"]} != {*data["cut"]}
    said = run("loops", robot)
    assert ("minimum cumulative degree of freedom would cut" in said) == bool(better)
    whole = data["solved_as_a_whole_because"]
    assert ("solves all equations as a whole" in said) == bool(whole)
    assert ("multipliers are found in the order" in said) == (not whole)


# ---- count, bench, stability, equations, cache ----


@effect_of("count", "--algorithm", "--how", "--general", "--plot", "--json")
def test_counts(run: Run, printed: Printed) -> None:
    m = rf.load("puma_560")
    for how in ("compiled", "written"):
        words = ("count", "puma_560", "--algorithm", "mass_matrix", "--how", how)
        (row,) = run(*words, "--json").json
        c = m.op_count("mass_matrix", how)
        numbers = [c.mul, c.add, c.div, c.sqrt, c.sincos]
        assert [row[k] for k in ("mul", "add", "div", "sqrt", "sincos")] == numbers
        run(*words)
        assert printed.table(f"Operations, as {how}")[1][0][3:8] == numbers
    general = run("count", "--general", 5, "--json").json
    for row in general:
        ours = rf.formulations.general_count(row["formulation"], 5)
        assert (row["mul"], row["add"], row["n"]) == (ours.mul, ours.add, 5)
    run("count", "--general", 5)
    assert [r[:4] for r in printed.table("A general robot of 5")[1]] == [
        [r["formulation"], r["what"], r["mul"], r["add"]] for r in general
    ]
    run("count", "--plot", "growth.svg")
    assert "<svg" in Path("growth.svg").read_text()


@effect_of("bench", "--algorithm", "--states", "--threads", "--json")
def test_timings(run: Run, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.kernels import timing

    asked: list[Any] = []
    measure = timing.measure

    def spy(m: Any, names: Any, states: Any = None) -> Any:
        asked.append((list(names), states))
        return measure(m, names, states)

    monkeypatch.setattr(timing, "measure", spy)
    before = rf.threads()
    try:
        words = ("bench", "arm.yaml", "--algorithm", "bias", "--states", 12, "--threads", 1)
        data = run(*words, "--json").json
        assert (data["states"], data["threads"]) == (12, 1)
        run(*words)
    finally:
        rf.threads(before)
    assert asked == [(["bias"], 12)] * 2
    (row,) = printed.table("arm: 3 degrees of freedom, batches of 12")[1]
    assert row[0] == "bias"
    assert float(row[5].replace(",", "")) == pytest.approx(1e6 / row[4], rel=0.01)


@effect_of("stability", "--n", "--plot", "--json")
def test_rounding_errors(run: Run, printed: Printed) -> None:
    from ramify.formulations.stability import CASES

    data = run("stability", "--n", 3, "--json").json
    run("stability", "--n", 3, "--plot", "s.svg")
    assert "<svg" in Path("s.svg").read_text()
    assert [row["case"] for row in data] == list(CASES)
    columns, rows = printed.table("Forward dynamics of 3 rods")
    assert len(columns) == len(rows[0])
    assert [r[0] for r in rows] == [c.words for c in CASES.values()]
    for row, shown in zip(data, rows, strict=True):
        numbers = list(row.values())[2:]
        assert shown[1:] == ["–" if x is None else f"{x:.1e}" for x in numbers]


@effect_of(
    "equations", "--format", "--symbols", "--part", "--steps", "--seconds", "--out", "--json"
)
def test_equations(run: Run) -> None:
    data = run("equations", "two_link", "--part", "M", "g", "--symbols", "--json").json
    assert data["parts"] == ["M", "g"]
    assert data["parameters"]
    forms = rf.formulations.equations(rf.load("two_link"), symbols=True)
    assert data["text"] == forms.text(("M", "g"))
    for form in ("latex", "python", "sympy"):
        plain = rf.formulations.equations(rf.load("two_link"))
        text = run("equations", "two_link", "--format", form, "--part", "M", "--json").json["text"]
        assert text == getattr(plain, form)(("M",))
    run("equations", "two_link", "--part", "M", "--out", "m.txt")
    assert (
        Path("m.txt").read_text().strip()
        == rf.formulations.equations(rf.load("two_link")).text(("M",)).strip()
    )
    steps = run("equations", "two_link", "--steps", "forward_dynamics", "--json").json
    assert steps["algorithm"] == "forward_dynamics"
    assert steps["steps"]
    late = run("equations", "puma_560", "--part", "inverse", "--seconds", 1e-3, code=1)
    assert "inverse is left out" in late.err


@effect_of("cache", "--clear", "--json")
def test_the_cache(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.runtime import cache

    before = cache.state()
    data = run("cache", "--json").json
    assert data["folder"] == str(before.folder)
    assert data["limit_bytes"] == before.limit
    kinds: list[float] = []
    monkeypatch.setattr(cache, "shrink", lambda limit: kinds.append(limit) or cache.state())
    cleared = run("cache", "--clear", "--json").json
    assert kinds == [0]
    assert "removed_entries" in cleared


# ---- export, convert, demo ----


@effect_of("export", "--format", "--algorithm", "--ground", "--scenario", "--frame", "--step")
@effect_of("export", "--derivatives", "--dtype", "--out", "--force", "--json")
def test_code_and_files(run: Run) -> None:
    words = ("export", "arm.yaml", "--format", "c", "--algorithm", "mass_matrix", "passive_forces")
    files = run(*words, "--frame", "hand", "--step", "rk4", "--derivatives", "--out", "c", "--json")
    header = Path(files.json["files"][0]).read_text()
    for name in ("mass_matrix", "passive_forces", "pose", "jacobian", "step"):
        assert name in header
    assert "double" in header
    assert "inverse_dynamics" not in header
    assert "derivative" in header or "jacobian" in header
    assert "already there" in run(*words, "--out", "c", code=1).err
    run(*words, "--out", "c", "--force", "--dtype", "float")
    assert "float" in Path(files.json["files"][0]).read_text()
    assert "step" not in Path(files.json["files"][0]).read_text().replace("steps", "")
    run("export", "arm.yaml", "--out", "here")
    assert rf.load("here/arm.yaml").mass == pytest.approx(4.1)


def test_ground_replaces_that_of_the_scenario(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.interop import c_export

    asked: list[dict[str, Any]] = []
    original = c_export.c_programs

    def spy(*words: Any, **parts: Any) -> Any:
        asked.append(parts)
        return original(*words, **parts)

    monkeypatch.setattr(c_export, "c_programs", spy)
    name = next(s for s in rf.scenarios() if rf.scenario(s).options.get("ground") is not None)
    robot = rf.scenario(name).robot.name
    run("export", robot, "--format", "c", "--scenario", name, "--out", "a")
    own = asked[-1]["ground"]
    run(
        "export",
        robot,
        "--format",
        "c",
        "--scenario",
        name,
        "--out",
        "b",
        "--ground",
        "{law: firm, friction: 0.123}",
    )
    assert asked[-1]["ground"] != own
    assert "0.123" in str(asked[-1]["ground"])
    assert asked[-1]["control"] == asked[0]["control"]


@effect_of("export", "--fmi", "--platform")
def test_mock_up_units(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(rf, "to_fmu", lambda m, path, **options: asked.append((path, options)))
    run("export", "arm.yaml", "--format", "fmu")
    run("export", "arm.yaml", "--format", "fmu", "--fmi", "2.0", "--platform", "x86_64-windows",
        "--frame", "hand", "slide", "--ground", "firm", "--out", "u")  # fmt: skip
    assert asked[0] == (Path("arm.fmu"), {"version": "3.0", "frames": None, "platforms": "auto"})
    assert asked[1] == (Path("u/arm.fmu"), {"version": "2.0", "frames": ["hand", "slide"],
                                            "platforms": ["x86_64-windows"], "ground": "firm"})  # fmt: skip


@effect_of("convert", "--base", "--force", "--json")
@effect_of("demo", "--out", "--json")
def test_converted_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = run("convert", "flyer.yaml", "out.yaml", "--base", "free", "--json").json
    assert data["files"] == ["out.yaml"]
    assert rf.load("out.yaml").nq == 8
    assert "already there" in run("convert", "flyer.yaml", "out.yaml", code=1).err
    run("convert", "flyer.yaml", "out.yaml", "--force")
    assert rf.load("out.yaml").nq == 7
    from ramify.cli import demo_page

    monkeypatch.setattr(demo_page, "write_demo", lambda out, progress: out / "index.html")
    assert run("demo", "--out", "there", "--json").json == {"page": "there/index.html"}


# ---- sweep ----

STUDY = """\
name: falls
scenario: fall.yaml
vary:
  initial.q.hand: [0.5, 0.8, 1.1]
keep:
  metrics: [max_speed, energy_error]
"""


@pytest.fixture
def study(run: Run) -> str:
    Path("fall.yaml").write_text(
        "name: fall\nrobot: arm.yaml\nt_end: 0.05\ninitial: {q: {upper: 0.3, slide: -0.2, hand: 0.5}}\n"
    )
    Path("study.yaml").write_text(STUDY)
    return "study.yaml"


@effect_of("sweep", "--ledger", "--jobs", "--engine", "--scheduler", "--keep-going", "--check")
@effect_of("sweep", "--json")
@effect_of("sweep resume", "--jobs", "--engine", "--scheduler", "--keep-going", "--failed")
@effect_of("sweep resume", "--damaged", "--json")
def test_what_a_study_is_told(run: Run, study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ramify.studies.ledger import Count

    data = run("sweep", study, "--check", "--json").json
    assert data["runs"] == 3
    assert data["parameters"] == ["initial.q.hand"]
    assert not list(Path().glob("*.db"))
    run("sweep", study, "--ledger", "my.db", "--engine", "serial")
    asked: list[dict[str, Any]] = []
    count = {"done": 3, "planned": 3, "failed": 0, "killed": 0}

    def answer(study: Any, **options: Any) -> Any:
        asked.append(options)
        return Count(**{name: count.get(name, 0) for name in Count._fields})

    monkeypatch.setattr(rf.Study, "run", answer)
    plain = {
        "jobs": None,
        "engine": "processes",
        "scheduler": None,
        "keep_going": False,
        "progress": False,
    }
    more = ("--jobs", 2, "--engine", "dask", "--scheduler", "tcp://h:1", "--keep-going")
    chosen = {
        "jobs": 2,
        "engine": "dask",
        "scheduler": "tcp://h:1",
        "keep_going": True,
        "progress": False,
    }
    run("sweep", study, "--ledger", "my.db")
    run("sweep", study, "--ledger", "my.db", *more)
    run("sweep", "resume", "my.db", *more, "--failed")
    run("sweep", "resume", "my.db", "--damaged")
    again = [("killed",), ("killed",), ("killed", "failed"), ("killed", "damaged")]
    wanted = zip((plain, chosen, chosen, plain), again, strict=True)
    assert asked == [options | {"again": which} for options, which in wanted]
    for done, failed, killed, code in ((3, 0, 0, 0), (2, 1, 0, 1), (2, 0, 1, 1), (1, 0, 0, 1)):
        count.update(done=done, failed=failed, killed=killed)
        said = run("sweep", study, "--ledger", "my.db", "--json", code=code).json
        assert (said["done"], said["failed"], said["killed"]) == (done, failed, killed)
        assert run("sweep", "resume", "my.db", "--json", code=code).json["done"] == done


@effect_of("sweep status", "--check", "--json")
@effect_of("sweep export", "--out")
@effect_of("sweep plot", "--out", "--columns", "--reports")
@effect_of("sweep report", "--out")
def test_what_a_study_says(run: Run, study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("sweep", study, "--ledger", "my.db", "--engine", "serial")
    assert "3 of 3 runs done, 0 failed, 0 killed" in said
    data = run("sweep", "status", "my.db", "--check", "--json").json
    assert (data["done"], data["planned"], data["integrity"]) == (3, 3, "ok")
    assert "ledger: ok" in run("sweep", "status", "my.db", "--check")
    assert "ledger: " not in run("sweep", "status", "my.db").replace("; ledger ", "")
    run("sweep", "export", "my.db", "--out", "all.csv")
    assert len(Path("all.csv").read_text().splitlines()) == 4
    run("sweep", "plot", "my.db", "--out", "p.svg", "--columns", "energy_error")
    assert "<svg" in Path("p.svg").read_text()
    pages: list[Any] = []
    monkeypatch.setattr(
        rf.Study, "page", lambda s, out, reports: pages.append((out, list(reports)))
    )
    run("sweep", "plot", "my.db", "--out", "p.html", "--reports", 1, 2)
    assert pages == [(Path("p.html"), [1, 2])]
    run("sweep", "report", "my.db", 1, "--out", "one.nc")
    assert rf.Result.open("one.nc").q[0].tolist() == [0.3, -0.2, 0.8]


PROBLEM = """
import ramify as rf
from ramify.optimal import Problem, weighted

cart = rf.Builder("cart", gravity=(0, 0, 0)).link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0).model()
problem = Problem(cart, 0.05, 20, lambda s: weighted(1e-2, [s.u[0], 1.0 - s.q[0] * s.q[0]]), lambda s: [3.0 * s.v[0]])
start = ([0.1], [0.2])
"""


@effect_of("optimise", "--iterations", "--tolerance", "--report", "--out", "--json")
def test_options_of_optimise(run: Run) -> None:
    Path("move.py").write_text(PROBLEM)
    full = run("optimise", "move.py", "--json").json
    assert full["reason"] == "converged"
    assert full["iterations"] > 2
    few = run("optimise", "move.py", "--json", "--iterations", 1).json
    assert few["reason"] == "iterations"
    assert few["iterations"] == 1
    fine = run("optimise", "move.py", "--json", "--tolerance", 1e-14).json
    assert fine["iterations"] > full["iterations"]
    said = run("optimise", "move.py", "--report", "move.html", "--out", "move.npz")
    assert "report: move.html" in said
    assert Path("move.html").stat().st_size > 10_000
    with np.load("move.npz") as stored:
        assert stored["q"].shape == (21, 1)


@effect_of("identify", "--more", "--validate", "--friction", "--band", "--units", "--report")
@effect_of("identify", "--save", "--set", "--json")
@effect_of("identify plan", "--out", "--period", "--repeats", "--rate", "--friction", "--seed")
@effect_of("identify plan", "--set", "--json")
@effect_of("identify payload", "--link", "--friction", "--band", "--units", "--set", "--json")
def test_what_identification_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option arrives where the Python call takes it; what is written is listed."""
    asked: list[Any] = []

    class Answer:
        passed, verdicts, band = True, (), 7.0
        mass, mass_error = 2.0, 0.1
        com = com_error = np.array([0.1, 0.2, 0.3])
        inertia = inertia_error = np.diag([1.0, 2.0, 3.0])
        reached, predicted = {"v": np.array([1.5])}, ()

        def validate(self, log: Any, units: Any) -> Any:
            asked.append(("validate", log, units))
            return ()

        def report(self, path: Path, log: Any) -> Path:
            asked.append(("report", path, log))
            return path

        @property
        def robot(self) -> Any:
            return self

        def save(self, path: Path) -> None:
            asked.append(("save", path))

    def call(name: str) -> Callable[..., Answer]:
        def spy(first: Any, *words: Any, **options: Any) -> Answer:
            options.pop("progress", None)
            asked.append((name, getattr(first, "nv", "a fit"), *words, options))
            return Answer()

        return spy

    for name in ("fit", "excite", "payload"):
        monkeypatch.setattr(rf.identify, name, call(name))
    monkeypatch.setattr("ramify.cli.identify_commands._data", lambda answer: {"band": answer.band})
    chain = ("chain", "--set", "n=4")
    fitted = ("--friction", "stribeck", "--band", 6.5, "--units", "deg")
    wanted = {"friction": "stribeck", "band": 6.5, "units": "deg"}
    files = ("--report", "r.html", "--save", "r.yaml")
    more = ("--more", "b.csv", "c.csv", "--validate", "d.csv")
    said = run("identify", "a.csv", *chain, *fitted, *more, *files, "--json").json
    assert said == {
        "band": 7.0, "files": {"report": "r.html", "robot": "r.yaml"}, "validation": [],
    }  # fmt: skip
    logs = [Path(f"{x}.csv") for x in "abc"]
    assert asked == [
        ("fit", 4, logs, wanted), ("validate", Path("d.csv"), "deg"),
        ("report", Path("r.html"), Path("d.csv")), ("save", Path("r.yaml")),
    ]  # fmt: skip
    asked.clear()
    words = ("--period", 6.0, "--repeats", 3, "--rate", 250.0, "--friction", "viscous", "--seed", 9)
    plan = run("identify", "plan", *chain, *words, "--out", "p.csv", "--json").json
    assert plan == {"file": "p.csv", "reached": {"v": [1.5]}, "predicted": []}
    options = {"friction": "viscous", "rate": 250.0, "repeats": 3, "seed": 9}
    assert asked == [("excite", 4, 6.0, options), ("save", Path("p.csv"))]
    asked.clear()
    words = ("full.csv", "empty.csv", *chain, "--link", "tip", *fitted, "--json")
    load = run("identify", "payload", *words).json
    assert (load["link"], load["mass"], load["mass_error"]) == ("tip", 2.0, 0.1)
    assert load["com"] == [0.1, 0.2, 0.3]
    assert load["inertia"][2] == [0.0, 0.0, 3.0]
    assert asked == [
        ("fit", 4, [Path("empty.csv")], wanted), ("payload", "a fit", Path("full.csv"), "tip", "deg", {}),
    ]  # fmt: skip
