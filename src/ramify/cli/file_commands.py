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
    Settings,
    app,
    file_name,
    load,
    warnings_in_a_line,
)
from ramify.cli.output import print_json, print_line
from ramify.core.errors import SimulationError
from ramify.documents.writing import write_together

if TYPE_CHECKING:
    from ramify.api.model import Model


@app.command
def export(
    robot: RobotName,
    *,
    format: Annotated[
        Literal["yaml", "c", "fmu"],
        Parameter(help="A robot file, C99 code without dependencies, or a mock-up unit (FMI)."),
    ] = "yaml",
    algorithm: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative="",
            help="With C: algorithms; also acceleration (of the whole machine), passive_forces, "
            "actuator_forces.",
        ),
    ] = None,
    ground: Annotated[
        str | None,
        Parameter(
            help="A word or mapping: what the machine stands on. With C also contact_forces and "
            "contact_dynamics."
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        Parameter(
            help="Take controller, ground and damping (with fmu also the start) from a scenario. "
            "With C the controller's law is written as control."
        ),
    ] = None,
    frame: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative="",
            help="Links and frames: with C pose and jacobian of each; with fmu poses that are "
            "outputs.",
        ),
    ] = None,
    step: Annotated[
        str | None, Parameter(help="With C: also a step of the machine by this fixed-step method.")
    ] = None,
    derivatives: Annotated[
        bool, Parameter(negative="", help="With C: also all derivatives of each function.")
    ] = False,
    dtype: Annotated[
        Literal["double", "float"], Parameter(help="With C: the type of all numbers.")
    ] = "double",
    fmi: Annotated[Literal["2.0", "3.0"], Parameter(help="With fmu: the version of FMI.")] = "3.0",
    platform: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative="",
            help="With fmu: compile for these, such as x86_64-windows; by default for this one.",
        ),
    ] = None,
    out: Annotated[Path, Parameter(help="Directory to write to.")] = Path("."),
    force: Annotated[bool, Parameter(negative="", help="Replace files that exist.")] = False,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Write a robot as a YAML file; algorithms, controller and steps as one C99 header and source
    file; or the whole machine as a functional mock-up unit for Simulink, Modelica tools and others.
    """
    for option, given, kinds in (
        ("--ground", ground, ("c", "fmu")), ("--scenario", scenario, ("c", "fmu")),
        ("--frame", frame, ("c", "fmu")), ("--platform", platform, ("fmu",)),
        ("--algorithm", algorithm, ("c",)), ("--step", step, ("c",)),
        ("--derivatives", derivatives, ("c",)), ("--dtype", dtype != "double", ("c",)),
        ("--fmi", fmi != "3.0", ("fmu",)),
    ):  # fmt: skip
        if given and format not in kinds:
            raise SimulationError(f"{option} belongs to --format {' or '.join(kinds)}")
    m = load(robot, settings)
    parts = _machine(scenario, m) if scenario is not None else {}
    if ground is not None:
        parts["ground"] = ground
    if format == "fmu":
        target = out / f"{file_name(m)}.fmu"
        _refuse_present([target], force)
        out.mkdir(parents=True, exist_ok=True)
        rf.to_fmu(m, target, version=fmi, frames=frame, platforms=platform or "auto", **parts)
        _say(m, [target], json)
        return
    if format == "yaml":
        from ramify.files.robot_writer import to_yaml

        texts = {f"{file_name(m)}.yaml": to_yaml(m)}
    else:
        from ramify.interop.c_export import c_programs, c_texts

        for start in ("q0", "v0"):
            parts.pop(start, None)
        names = algorithm or COUNTED[:2]
        programs = c_programs(m, names, frame or (), step=step, **parts)
        texts = c_texts(m, programs, derivatives, dtype)
    paths = [out / name for name in texts]
    _refuse_present(paths, force)
    out.mkdir(parents=True, exist_ok=True)
    write_together({out / name: [text.encode()] for name, text in texts.items()})
    _say(m, paths, json)


def _machine(scenario: str, m: Model) -> dict[str, Any]:
    """Controller, start and surroundings of a scenario."""
    found = rf.scenario(scenario, robot=m)
    parts = {key: found.options[key] for key in ("ground", "damping") if key in found.options}
    return parts | {"control": found.control, "q0": found.q0, "v0": found.v0}


def _refuse_present(paths: Sequence[Path], force: bool) -> None:
    present = [str(path) for path in paths if path.exists()]
    if present and not force:
        raise FileExistsError(f"{', '.join(present)}: already there; --force replaces it")


def _say(m: Model, paths: Sequence[Path], json: bool) -> None:
    if json:
        print_json({"robot": m.name, "files": [str(path) for path in paths]})
        return
    for path in paths:
        print_line(f"written: {path}")


@app.command
def convert(
    source: RobotName,
    target: Annotated[
        Path,
        Parameter(
            alias="--out",
            help="The file to write: .yaml, or .urdf where it can express the robot.",
        ),
    ],
    *,
    base: Annotated[
        str | None,
        Parameter(help="fixed, free, free_euler or planar; by default as the file says."),
    ] = None,
    force: Annotated[bool, Parameter(negative="", help="Replace a file that exists.")] = False,
    json: AsJson = False,
) -> None:
    """Convert a robot file (URDF, MJCF, ReDySim's inputs.mat or inputs.m, YAML) and say what was
    ignored or assumed.
    """
    from ramify.files.convert import convert as converted

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
def demo(
    *,
    out: Annotated[Path, Parameter(help="Directory to write to.")] = Path("out"),
    json: AsJson = False,
) -> None:
    """Simulate an arm, a gripper with drives, a closed leg, a trotting quadruped and 4096
    quadrupeds at once; write out/index.html with what was computed and how fast, and reports.
    """
    import sys

    from ramify.cli.demo_page import write_demo

    report = (
        (lambda text: print(f"{text} …", file=sys.stderr, flush=True))
        if sys.stderr.isatty()
        else None
    )
    page = write_demo(out, progress=report)
    if json:
        print_json({"page": str(page)})
    else:
        print_line(f"written: {page}")
        print_line(f"open it in a browser: {page.resolve().as_uri()}")
