"""The table of the options of a run: every place that knows them has the same, and an option that is
added to the table is in all of them.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ramify as rf
from ramify.cli import main
from ramify.envs.vector_env import RobotVectorEnv
from ramify.plant.make_field import make_field
from ramify.runs import rollout as rolling
from ramify.runs import simulate as running
from ramify.runs.run_options import OPTIONS

OTHER: dict[str, Any] = {
    "t_end": 0.03, "method": "rk5", "rtol": 1e-7, "atol": 1e-9, "dt_out": 0.015, "step": 0.005,
    "max_step": 0.004, "damping": 0.25, "stabilisation": 12.5, "at_singularity": "pass",
    "passive": False, "stops": False, "efforts": False,
}  # fmt: skip
"""A value that is not the default, of every option that is a number, a word or a switch."""
PARTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "control": (
        "{type: torque, tau: [1, 2]}",
        lambda x: x == {"type": "torque", "tau": [1.0, 2.0]},
    ),
    "ground": ("firm", lambda x: x["law"] == "firm"),
    "contact": ("hard", lambda x: x["law"] == "hard"),
    "wrenches": ("{shank: [0, 0, 0, 1, 0, 0]}", lambda x: x == {"shank": [0, 0, 0, 1, 0, 0]}),
}


def leg() -> rf.Model:
    """A leg on a rail with a point that may touch a ground."""
    made = rf.Builder("leg").link("rail", joint="prismatic", mass=1.0)
    made.link("shank", "rail", "revolute", axis=(0, 1, 0), mass=0.5, com=(0, 0, -0.2), points={"toe": (0, 0, -0.4)})  # fmt: skip
    return made.model()


def recorded(name: str, value: Any, options: Any) -> bool:
    if name in PARTS:
        return PARTS[name][1](options[name])
    expected = [value] * 2 if name == "damping" else value
    return bool(options[name] == expected)


def test_simulate_takes_the_options_of_the_table() -> None:
    found = dict(inspect.signature(running.simulate).parameters)
    del found["model"]
    assert list(found) == list(OPTIONS)
    for name, row in OPTIONS.items():
        assert found[name].default == (inspect.Parameter.empty if row.required else row.default)
    assert {*OTHER, *PARTS} == {name for name, row in OPTIONS.items() if row.in_files}


@pytest.mark.parametrize("function", [rolling.rollout, make_field, RobotVectorEnv, rf.linearize])
def test_shared_options_have_the_same_default(function: Callable[..., Any]) -> None:
    shared = [p for p in inspect.signature(function).parameters.values() if p.name in OPTIONS]
    assert {"control", "damping", "ground"} & {p.name for p in shared}
    for p in shared:
        if p.default not in (p.empty, None):
            assert p.default == OPTIONS[p.name].default, p.name


def scenario_text(folder: Path, **keys: str) -> str:
    leg().save(folder / "leg.yaml")
    words = {"name": "fall", "robot": "leg.yaml", "t_end": "0.02", "initial": "{q: [0.5, 0.1]}"}
    return "".join(f"{key}: {value}\n" for key, value in {**words, **keys}.items())


@pytest.mark.parametrize("name", [*OTHER, *PARTS])
def test_a_scenario_file_and_its_run_take_every_option(name: str, tmp_path: Path) -> None:
    """Catches: stabilisation and at_singularity were in none of these places."""
    value = OTHER.get(name) if name in OTHER else PARTS[name][0]
    word = str(value).lower() if isinstance(value, bool) else str(value)
    fixed = name in ("method", "contact")
    more = {"step": "0.005"} if fixed else {"method": "rk5"} if name == "step" else {}
    (tmp_path / "plain.yaml").write_text(scenario_text(tmp_path))
    (tmp_path / "fall.yaml").write_text(scenario_text(tmp_path, **{name: word, **more}))
    told = rf.scenario(tmp_path / "fall.yaml").run()
    assert recorded(name, value, told.options)
    overrides = {key: OTHER[key] for key in more} | {name: value}
    again = rf.scenario(tmp_path / "plain.yaml").run(**overrides)
    assert recorded(name, value, again.options)
    assert (again.q == told.q).all()
    assert (rf.Scenario.again(again).q == again.q).all()
    if name in OTHER and name != "step":  # which has no default
        usual = rf.scenario(tmp_path / "plain.yaml").run(**{key: OTHER[key] for key in more})
        assert not recorded(name, value, usual.options)


@pytest.mark.parametrize("name", [*OTHER, *PARTS])
def test_the_command_line_takes_every_option(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: no --max-step, --stabilisation and --at-singularity."""
    monkeypatch.chdir(tmp_path)
    leg().save("leg.yaml")
    value = OTHER.get(name) if name in OTHER else PARTS[name][0]
    option = name.replace("_", "-")
    words = [f"--no-{option}"] if value is False else [f"--{option}", str(value)]
    words += ["--step", "0.005"] if name in ("method", "contact") else []
    words += ["--method", "rk5"] if name == "step" else []
    words += [] if name == "t_end" else ["--t-end", "0.02"]
    with pytest.raises(SystemExit) as stop:
        main(["simulate", "leg.yaml", "--initial", "0.5", "0.1", "--out", "run.nc", *words])
    assert not stop.value.code
    assert recorded(name, value, rf.Result.open("run.nc").options)


def test_values_that_cannot_be_right_are_refused_whatever_the_robot() -> None:
    """Catches: ways to close loops that do not exist, of a robot that has none."""
    model, start = leg(), ([0.5, 0.1], [0.0, 0.0])
    with pytest.raises(rf.SimulationError, match="at_singularity must be 'stop' or 'pass'"):
        rf.simulate(model, 0.1, at_singularity="go")
    for call in (
        lambda: rf.simulate(model, 0.1, stabilisation="projecton"),
        lambda: rf.rollout(model, *start, steps=1, dt=0.01, stabilisation="projecton"),
    ):
        with pytest.raises(rf.SimulationError, match="stabilisation 'projecton' must be"):
            call()
    with pytest.raises(rf.SimulationError, match=r"max_step 0 must be a number > 0.*, in s"):
        rf.simulate(model, 0.1, max_step=0)


def test_mistakes_in_files_name_the_key(tmp_path: Path) -> None:
    text = scenario_text(
        tmp_path, stabilisation="project", at_singularity="go", max_step="-1", q0="[0, 0]"
    )
    (tmp_path / "fall.yaml").write_text(text)
    with pytest.raises(rf.ModelError) as error:
        rf.scenario(tmp_path / "fall.yaml")
    lines = str(error.value).splitlines()
    for key, said in (
        ("stabilisation", "'project' must be 'projection', 'none', or a finite number > 0"),
        ("at_singularity", "'go' must be 'stop' or 'pass'"),
        ("max_step", "-1 must be a number > 0 or .inf"),
        ("q0", "unknown key"),
    ):
        assert any(key in line and said in line for line in lines), (key, lines)


def test_an_export_names_what_it_leaves_out_of_a_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    more = {"stops": "false", "passive": "true", "damping": "0.1", "rtol": "1e-6"}
    Path("fall.yaml").write_text(scenario_text(tmp_path, **more))
    with pytest.raises(SystemExit) as stop:
        main(["export", "leg.yaml", "--format", "c", "--scenario", "fall.yaml", "--out", "c"])
    assert not stop.value.code
    assert "warning: stops of the scenario 'fall' cannot be exported" in capsys.readouterr().err


ADDED = '''
import sys
from functools import wraps
import ramify as rf
from ramify.documents.forms import Number
from ramify.scenario_files import scenario
from ramify.runs import simulate as running
from ramify.runs.run_options import OPTIONS, RunOption

OPTIONS["pace"] = RunOption("Times real time.", Number(above=0.0), 1.0, command_line=float)
plain = scenario.simulate
seen = []

def simulate(model, *args, pace=1.0, **options):
    """What a release with the option would do: it acts, and is recorded with the others."""
    seen.append(pace)
    checked = running.checked_options
    running.checked_options = lambda arguments: checked({**arguments, "pace": pace})
    try:
        return plain(model, *args, **options)
    finally:
        running.checked_options = checked

scenario.simulate = simulate

made = scenario.read_scenario("name: x\\nrobot: planar_3r\\nt_end: 0.01\\npace: 2.5\\n")
r = made.run()
assert r.options["pace"] == 2.5, r.options
assert made.run(pace=3.0).options["pace"] == 3.0
try:
    made.run(pace=-1.0)
except rf.SimulationError as error:
    assert "pace -1.0 must be a finite number > 0" in str(error), error
else:
    raise AssertionError("a wrong value was taken")
try:
    scenario.read_scenario("name: x\\nrobot: planar_3r\\nt_end: 0.01\\npace: -1\\n")
except rf.ModelError as error:
    assert "x.yaml" in str(error) or "pace" in str(error)
else:
    raise AssertionError("a wrong value in a file was taken")
from ramify.studies.batch import steps_of
fixed = "name: x\\nrobot: planar_3r\\nt_end: 0.01\\nmethod: rk4\\nstep: 0.001\\n"
assert steps_of(scenario.read_scenario(fixed)) is not None
assert steps_of(scenario.read_scenario(fixed + "pace: 2\\n")) is None  # lanes do not know it
from ramify.view.repeated_run import simulate_again
assert "    pace=2.5,\\n" in simulate_again(r), simulate_again(r)
r.save("run.nc")
assert rf.Result.open("run.nc").options["pace"] == 2.5
from ramify.cli import app
seen.clear()
app(["simulate", "planar_3r", "--t-end", "0.01", "--pace", "4", "--out", "cli.nc"], result_action="return_value")
assert seen == [4.0] and rf.Result.open("cli.nc").options["pace"] == 4.0
print("everywhere")
'''


def test_an_option_that_is_added_to_the_table_is_everywhere(tmp_path: Path) -> None:
    """A row and the lines where it acts: files, overrides, studies, the command line, the record,
    files of results and listings then have the option.
    """
    path = os.pathsep.join([str(Path(rf.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", ADDED], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("everywhere\n")
