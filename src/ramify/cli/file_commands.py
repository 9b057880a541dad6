"""Robots as files: export, convert; and the demonstration page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ramify.cli.common import COUNTED, AsJson, RobotName, Settings, app, file_name, load
from ramify.cli.output import print_json, print_line
from ramify.core.errors import SimulationError
from ramify.documents.writing import write_together


@app.command
def export(
    robot: RobotName,
    *,
    format: Annotated[
        Literal["yaml", "c"], Parameter(help="A robot file, or C99 code without dependencies.")
    ] = "yaml",
    algorithm: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, negative="", help="Algorithms to write as C."),
    ] = None,
    ground: Annotated[
        str | None,
        Parameter(
            help="With C: also contact_forces and contact_dynamics on a ground, a word or mapping."
        ),
    ] = None,
    out: Annotated[Path, Parameter(help="Directory to write to.")] = Path("."),
    force: Annotated[bool, Parameter(negative="", help="Replace files that exist.")] = False,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Write a robot as a YAML file, or its algorithms as one C99 header and source file."""
    m = load(robot, settings)
    texts: dict[Path, str] = {}
    if format == "yaml" and ground is not None:
        raise SimulationError("--ground belongs to --format c: a robot file has no ground")
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
        header, source = c_library(programs, m.name, stem)
        texts |= {out / f"{stem}.h": header, out / f"{stem}.c": source}
    present = [str(path) for path in texts if path.exists()]
    if present and not force:
        raise FileExistsError(f"{', '.join(present)}: already there; --force replaces it")
    out.mkdir(parents=True, exist_ok=True)
    write_together({path: [text.encode()] for path, text in texts.items()})
    if json:
        print_json({"robot": m.name, "files": [str(path) for path in texts]})
        return
    for path in texts:
        print_line(f"written: {path}")


@app.command
def convert(
    source: RobotName,
    target: Annotated[
        Path, Parameter(help="The file to write: .yaml, or .urdf where it can express the robot.")
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
