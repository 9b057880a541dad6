"""Robots as files: export, convert; and the demonstration page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import COUNTED, AsJson, RobotName, Settings, app, file_name, load
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
        Parameter(consume_multiple=True, negative="", help="Algorithms to write as C."),
    ] = None,
    ground: Annotated[
        str | None,
        Parameter(
            help="A word or mapping. With C: also contact_forces and contact_dynamics; with fmu: "
            "what the machine stands on."
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        Parameter(help="With fmu: take controller, ground, damping and start from a scenario."),
    ] = None,
    fmi: Annotated[Literal["2.0", "3.0"], Parameter(help="With fmu: the version of FMI.")] = "3.0",
    frame: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, negative="", help="With fmu: poses that are outputs."),
    ] = None,
    platform: Annotated[
        list[str] | None,
        Parameter(
            consume_multiple=True,
            negative="",
            help="With fmu: compile for these, such as x86_64-windows; by default for this one.",
        ),
    ] = None,
    step: Annotated[
        str | None,
        Parameter(help="With C: also a step of this fixed-step method, on the ground if given."),
    ] = None,
    out: Annotated[Path, Parameter(help="Directory to write to.")] = Path("."),
    force: Annotated[bool, Parameter(negative="", help="Replace files that exist.")] = False,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Write a robot as a YAML file, its algorithms as one C99 header and source file, or the whole
    machine as a functional mock-up unit for Simulink, Modelica tools and others.
    """
    m = load(robot, settings)
    texts: dict[Path, str] = {}
    if format == "fmu":
        target = out / f"{file_name(m)}.fmu"
        _refuse_present([target], force)
        out.mkdir(parents=True, exist_ok=True)
        parts = _machine(scenario, m) if scenario is not None else {}
        if ground is not None:
            parts["ground"] = ground
        rf.to_fmu(m, target, version=fmi, frames=frame, platforms=platform or "auto", **parts)
        _say(m, [target], json)
        return
    if format == "yaml" and ground is not None:
        raise SimulationError("--ground belongs to --format c: a robot file has no ground")
    if format != "c" and step is not None:
        raise SimulationError("--step belongs to --format c")
    if format == "yaml":
        from ramify.files.robot_writer import to_yaml

        texts[out / f"{file_name(m)}.yaml"] = to_yaml(m)
    else:
        from ramify.codegen.c99 import c_library, identifier

        stem = identifier(m.name)
        programs = [m.kernel(name).program for name in dict.fromkeys(algorithm or COUNTED[:2])]
        if ground is not None:
            from ramify.contact import kernel

            programs += [
                kernel(m, ground, "contact_forces").program,
                kernel(m, ground, "contact_dynamics").program,
            ]
        if step is not None:
            from ramify.interop.step_text import step_program
            from ramify.sim.integrators import scheme_of
            from ramify.sim.make_field import make_field

            scheme = scheme_of(step)
            field = make_field(m, ground=ground, implicit=scheme.implicit, counted=False)
            programs.append(step_program(field, scheme))
        header, source = c_library(programs, m.name, stem)
        texts |= {out / f"{stem}.h": header, out / f"{stem}.c": source}
    _refuse_present(list(texts), force)
    out.mkdir(parents=True, exist_ok=True)
    write_together({path: [text.encode()] for path, text in texts.items()})
    _say(m, list(texts), json)


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
    """Simulate a biped, an arm, a hexapod and a robotic leg; write their reports and a page of what
    ramify does: out/index.html.
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
