"""Robots as files: export, convert; and the demonstration page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import (
    COUNTED,
    AsJson,
    RobotName,
    ScenarioName,
    Settings,
    Switch,
    Words,
    app,
    file_name,
    load_model,
    warnings_in_a_line,
)
from ramify.cli.output import print_error, print_json, print_line
from ramify.core.errors import SimulationError
from ramify.documents.writing import write_together
from ramify.runs.run_options import OPTIONS

if TYPE_CHECKING:
    from ramify.api.model import Model


@app.command
def export(
    robot: RobotName,
    *,
    format: Literal["yaml", "c", "fmu"] = "yaml",
    algorithm: Words = None,
    ground: str | None = None,
    scenario: ScenarioName = None,
    frame: Words = None,
    step: str | None = None,
    derivatives: Switch = False,
    dtype: Literal["double", "float"] = "double",
    fmi: Literal["2.0", "3.0"] = "3.0",
    platform: Words = None,
    out: Path = Path("."),
    force: Switch = False,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Write a robot as a YAML file; algorithms, controller and steps as one C99 header and source
    file; or the whole machine as a functional mock-up unit for Simulink, Modelica tools and others.

    Args:
        format: A robot file, C99 code without dependencies, or a mock-up unit (FMI).
        algorithm: With C: algorithms; also acceleration (of the whole machine), passive_forces,
            actuator_forces.
        ground: A word or mapping: what the machine stands on. With C also contact_forces and
            contact_dynamics.
        scenario: Take controller, ground and damping (with fmu also the start) from a scenario.
            With C the controller's law is written as control.
        frame: Links and frames: with C pose and jacobian of each; with fmu poses that are outputs.
        step: With C: also a step of the machine by this fixed-step method.
        derivatives: With C: also all derivatives of each function.
        dtype: With C: the type of all numbers.
        fmi: With fmu: the version of FMI.
        platform: With fmu: compile for these, such as x86_64-windows; by default for this one.
        out: Directory to write to.
        force: Replace files that exist.
    """
    for option, chosen, kinds in (
        ("--ground", ground, ("c", "fmu")), ("--scenario", scenario, ("c", "fmu")),
        ("--frame", frame, ("c", "fmu")), ("--platform", platform, ("fmu",)),
        ("--algorithm", algorithm, ("c",)), ("--step", step, ("c",)),
        ("--derivatives", derivatives, ("c",)), ("--dtype", dtype != "double", ("c",)),
        ("--fmi", fmi != "3.0", ("fmu",)),
    ):  # fmt: skip
        if chosen and format not in kinds:
            raise SimulationError(f"{option} belongs to --format {' or '.join(kinds)}")
    m = load_model(robot, settings)
    parts = _machine(scenario, m) if scenario is not None else {}
    if ground is not None:
        parts["ground"] = ground
    if format == "fmu":
        target = out / f"{file_name(m)}.fmu"
        _make_room([target], force)
        rf.to_fmu(m, target, version=fmi, frames=frame, platforms=platform or "auto", **parts)
        _say(m, [target], json)
        return
    if format == "yaml":
        from ramify.files.robot_writer import robot_file

        texts = {f"{file_name(m)}.yaml": robot_file(m)}
    else:
        from ramify.interop.c_export import c_programs, c_texts

        for start in ("q0", "v0"):
            parts.pop(start, None)
        names = algorithm or COUNTED[:2]
        programs = c_programs(m, names, frame or (), step=step, **parts)
        texts = c_texts(m, programs, derivatives, dtype)
    paths = [out / name for name in texts]
    _make_room(paths, force)
    write_together({out / name: [text.encode()] for name, text in texts.items()})
    _say(m, paths, json)


def _machine(scenario: str, m: Model) -> dict[str, Any]:
    """Controller, start and surroundings of a scenario."""
    loaded = rf.scenario(scenario, robot=m)
    chosen = {name: x for name, x in loaded.options.items() if OPTIONS[name].of_machine}
    parts = {name: chosen.pop(name) for name in ("ground", "damping") if name in chosen}
    omitted = [name for name, x in chosen.items() if x != OPTIONS[name].default]
    if omitted:
        text = f"{', '.join(omitted)} of the scenario {loaded.name!r}"
        print_error(f"warning: {text} cannot be exported; the machine acts as by default")
    return parts | {"control": loaded.control, "q0": loaded.q0, "v0": loaded.v0}


def _make_room(paths: Sequence[Path], force: bool) -> None:
    """Refuse to replace files without --force, and make their directory."""
    present = [str(path) for path in paths if path.exists()]
    if present and not force:
        raise FileExistsError(f"{', '.join(present)}: already there; --force replaces it")
    paths[0].parent.mkdir(parents=True, exist_ok=True)


def _say(m: Model, paths: Sequence[Path], json: bool) -> None:
    if json:
        print_json({"robot": m.name, "files": [str(path) for path in paths]})
        return
    for path in paths:
        print_line(f"written: {path}")


@app.command
def convert(
    source: RobotName,
    target: Annotated[Path, Parameter(alias="--out")],
    *,
    base: str | None = None,
    force: Switch = False,
    json: AsJson = False,
) -> None:
    """Convert a robot file (URDF, MJCF, ReDySim's inputs.mat or inputs.m, YAML) and say what was
    ignored or assumed.

    Args:
        target: The file to write: .yaml, or .urdf where it can express the robot.
        base: fixed, free, free_euler or planar; by default as the file says.
        force: Replace a file that exists.
    """
    from ramify.files.load import convert as converted

    if target.exists() and not force:
        raise FileExistsError(f"{target}: already there; --force replaces it")
    with warnings_in_a_line():
        m = converted(source, target, base=base)
    remarks = [str(entry) for entry in m.metadata.get("report", ())]
    if json:
        print_json({"robot": m.name, "files": [str(target)], "report": remarks})
        return
    for line in (*remarks, f"written: {target}"):
        print_line(line)


@app.command
def demo(*, out: Path = Path("out"), json: AsJson = False) -> None:
    """Simulate an arm, a gripper with drives, a closed leg, a trotting quadruped and 4096
    quadrupeds at once; write out/index.html with what was computed and how fast, and reports.

    Args:
        out: Directory to write to.
    """
    import sys

    from ramify.cli.demo_page import write_demo

    def report(text: str) -> None:
        print(f"{text} …", file=sys.stderr, flush=True)

    page = write_demo(out, progress=report if sys.stderr.isatty() else None)
    if json:
        print_json({"page": str(page)})
    else:
        print_line(f"written: {page}")
        print_line(f"open it in a browser: {page.resolve().as_uri()}")
