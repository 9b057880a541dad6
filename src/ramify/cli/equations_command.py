"""The equations of motion on the command line: equations."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, get_args

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import AsJson, RobotName, Settings, Switch, app, load_model
from ramify.cli.output import print_error, print_json, print_line
from ramify.documents.writing import write_whole

_EquationPart = Literal["M", "C", "g", "U", "D", "inverse"]
_PARTS: tuple[_EquationPart, ...] = get_args(_EquationPart)
_LARGE = 8


@app.command
def equations(
    robot: RobotName,
    *,
    format: Literal["text", "latex", "python", "sympy"] = "text",
    symbols: Switch = False,
    part: Annotated[
        list[_EquationPart] | None, Parameter(consume_multiple=True, negative="")
    ] = None,
    steps: Literal["inverse_dynamics", "forward_dynamics"] | None = None,
    seconds: float | None = None,
    out: Path | None = None,
    settings: Settings = None,
    json: AsJson = False,
) -> int:
    """Write a robot's equations of motion in closed form: M, C, g, M = U D U', the inverse of M; or
    the steps of a recursion.

    Exit code 1 where a part has been left out.

    Args:
        format: How to write them.
        symbols: Names such as l1, m1, I1 in place of the robot's numbers.
        part: Which parts; by default all.
        steps: Instead, the steps of a recursion, between the robot's modules and within them.
        seconds: Seconds for each part, by default 20; a part that needs more is left out.
        out: File to write; by default they are printed.
    """
    if json and out is not None:
        raise rf.RamifyError("--json prints, --out writes a file; leave one out")
    if steps is not None:
        refused = {"--part": part, "--symbols": symbols, "--seconds": seconds is not None}
        for option in (option for option, given in refused.items() if given):
            text = "--steps writes a recursion, not closed forms"
            raise rf.RamifyError(f"{text}; leave out {option}")
    seconds = 20.0 if seconds is None else seconds
    m = load_model(robot, settings)
    if m.loops:
        print_error(f"the loops of {m.name} are opened: what follows is of its tree")
        m = m.tree
    if steps is not None:
        _write_steps(m, steps, format, out, json)
        return 0
    if m.nv > _LARGE and part is None:
        raise rf.RamifyError(
            f"{m.name} has {m.nv} degrees of freedom: its closed forms fill megabytes and hours; "
            "name the parts you want with --part, such as --part M, or take numbers: ramify id, "
            "ramify fd"
        )
    if m.nv > 4 and sys.stderr.isatty():
        print_error(f"{m.nv} degrees of freedom: each part may take up to {seconds:g} s")
    forms = rf.formulations.equations(m, symbols=symbols, seconds=seconds)
    done: list[str] = []
    for name in part or _PARTS:
        try:
            forms.part(name)
            done.append(name)
        except rf.RamifyError as error:
            message = str(error).replace("seconds=", "--seconds")
            print_error(f"{name} is left out: {message}")
    if done:
        text = getattr(forms, format)(tuple(done))
        if json:
            about = {"robot": m.name, "parameters": forms.parameters}
            print_json(about | {"parts": done, "format": format, "text": text})
        else:
            _write(text, out)
    return int(len(done) < len(part or _PARTS))


def _write(text: str, out: Path | None) -> None:
    """Print a text, or write it to a file."""
    if out is None:
        print_line(text)
        return
    write_whole(out, text if text.endswith("\n") else f"{text}\n")
    print_line(f"written: {out}")


def _write_steps(m: rf.Model, name: str, format: str, out: Path | None, json: bool) -> None:
    if format in ("python", "sympy"):
        text = "step tables are written as text or LaTeX: --format text, --format latex"
        raise rf.RamifyError(text)
    table = rf.formulations.step_table(m, name)
    if json:
        about = {"robot": m.name, "algorithm": name, "legend": table.legend}
        print_json(about | {"steps": [asdict(sweep) for sweep in table.sweeps]})
    else:
        _write(table.latex() if format == "latex" else str(table), out)
