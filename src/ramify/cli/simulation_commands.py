"""Runs: scenarios, simulate."""

from __future__ import annotations

import json as text_of
import os
import sys
from dataclasses import asdict, dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import (
    AsJson,
    RobotOrScenario,
    Settings,
    Switch,
    Words,
    app,
    file_name,
    load_model,
    named_numbers,
)
from ramify.cli.output import print_error, print_json, print_line, print_table
from ramify.documents.mistakes import DocumentError, Mistake
from ramify.runs.run_options import OPTIONS

if TYPE_CHECKING:
    from ramify.api.result import Result
    from ramify.scenario_files.scenario import Scenario

WRITERS: Final = {".nc": "save", ".csv": "to_csv"}
"""Methods of a result that write its file, by suffix."""


def _run_options() -> type:
    """A dataclass of the options of a run that the command line offers, None where not given."""
    return make_dataclass(
        "RunChanges",
        [
            (name, Annotated[row.command_line | None, Parameter(help=row.about)], None)
            for name, row in OPTIONS.items()
            if row.command_line is not None
        ],
        frozen=True,
    )


@Parameter(name="*")
@dataclass(frozen=True)
class Changes(_run_options()):  # type: ignore[misc]
    """What replaces parts and options of a scenario."""

    motion: Annotated[str | None, Parameter(name="--trajectory")] = None
    """The motion, as in a scenario file: "{type: cycloid, end_deg: 60}"; with slides, by joint:
    "{type: cycloid, end_deg: {joint1: 45}, end: {joint3: 0.1}}"."""
    initial: Words = None
    """The start: numbers q, or q and v; or "{q_deg: {joint2: 90}}"."""

    def options(self, scenario: Scenario) -> dict[str, Any]:
        """What was given, as ``Scenario.run`` takes it."""
        given = asdict(self) | {"initial": _start(self.initial, scenario)}
        return {name: value for name, value in given.items() if value is not None}


@Parameter(name="*")
@dataclass(frozen=True)
class Outputs:
    """The files of a run."""

    out: Path | None = None
    """File of the run: .nc (everything), or .csv."""
    plot: Path | None = None
    """Plot of the coordinates: .svg, .png or .pdf."""
    report: Path | None = None
    """Report of the run: one .html file with animation, plots and tables."""
    animate: Path | None = None
    """Film of the run: .mp4 or .gif."""
    redysim: Path | None = None
    """Folder for ReDySim's files: statevar.dat, tor.dat and others."""

    def check(self) -> None:
        """Refuse, before the work, files that could not be written after it."""
        from ramify.view.folders import must_have_folder

        for option, path, suffixes in (
            ("--out", self.out, tuple(WRITERS)),
            ("--report", self.report, (".html", ".htm")),
            ("--animate", self.animate, (".mp4", ".gif")),
        ):
            if path is not None and path.suffix.lower() not in suffixes:
                raise rf.SimulationError(
                    f"{option} {path}: the file must end in {' or '.join(suffixes)}"
                )
            if path is not None and option != "--out":
                must_have_folder(path)

    def write(self, result: Result) -> dict[str, str]:
        """Write what was asked for; the paths by what they hold."""
        files: dict[str, str] = {}
        if self.out is not None:
            getattr(result, WRITERS[self.out.suffix.lower()])(self.out)
            files["run"] = str(self.out)
        if self.plot is not None:
            from ramify.view.figures import save_picture

            save_picture(result.plot("q"), self.plot)
            files["plot"] = str(self.plot)
        if self.report is not None:
            files["report"] = str(result.report(self.report))
        if self.animate is not None:
            files["film"] = str(result.animate(self.animate))
        if self.redysim is not None:
            result.to_redysim(self.redysim)
            files["redysim"] = str(self.redysim)
        return files


@app.command
def scenarios(*, json: AsJson = False) -> None:
    """List the scenarios that come with ramify."""
    from ramify.scenario_files.shipped import summaries

    data = summaries()
    if json:
        print_json(data)
        return
    columns = ("scenario", "robot", "until, s", "", "source")
    print_table("Scenarios", columns, [tuple(d.values()) for d in data])


@app.command
def simulate(
    what: RobotOrScenario,
    /,
    *,
    changes: Changes = Changes(),
    outputs: Outputs = Outputs(),
    audit: Switch = False,
    settings: Settings = None,
    json: AsJson = False,
) -> int:
    """Simulate a robot or a scenario. What was computed is kept where the run fails or is
    interrupted with Ctrl-C.

    Args:
        audit: Print the audit; exit code 1 where it fails.
    """
    outputs.check()
    scenario = _scenario(what, settings)
    failure: rf.SimulationError | None = None
    try:
        result = scenario.run(**changes.options(scenario), progress=sys.stderr.isatty())
    except DocumentError as error:
        raise rf.ModelError("\n".join(_line(x, changes) for x in error.mistakes)) from None
    except rf.SimulationError as error:
        failure, result = error, error.result  # type: ignore[assignment]
        if result is None or len(result) < 2:  # nothing was computed
            raise
    files = outputs.write(result)
    if json:
        print_json(_data(scenario, result, files, audit))
    else:
        _tell(scenario, result, files, audit)
    end, out = f"t = {result.t[-1]:g} s", outputs.out
    if failure is not None:
        kept = f"; what was computed until {end} is in {out}" if out is not None else ""
        print_error(f"{failure}{kept}")
        return 1
    if result.status == "interrupted":
        kept = f", and is in {out}" if out is not None else ""
        print_error(f"interrupted; the run ends at {end}{kept}")
        return 130
    return int(audit and not result.audit.passed)


def _line(mistake: Mistake, changes: Changes) -> str:
    """A mistake, at its option where the command line gave the part."""
    part, *where = map(str, mistake.path or ("",))
    if getattr(changes, part, None) is None:
        return mistake.line
    option = "--trajectory" if part == "motion" else f"--{part}"
    return ": ".join(filter(None, (option, ".".join(where), mistake.text)))


def _scenario(what: str, settings: list[str] | None) -> Scenario:
    """The scenario of that name or file, or one of a robot at rest for a second."""
    from ramify.scenario_files.scenario import read_scenario
    from ramify.scenario_files.shipped import is_scenario

    if is_scenario(what):
        if settings:
            text = f"{what} is a scenario, whose file has robot: {{parameters: ...}}"
            raise rf.ModelError(f"--set belongs to a robot; {text}")
        return rf.scenario(what)
    parameters = named_numbers(settings)
    if not Path(what).suffix and not os.path.exists(what) and what not in rf.robots():
        from ramify.core.messages import near

        hint = near(what, [*rf.scenarios(), *rf.robots()])
        raise rf.ModelError(f"no robot and no scenario is named {what!r}{hint}")
    robot, given = load_model(what, settings), {"name": what, "parameters": parameters}
    words = {"name": file_name(robot), "robot": given, "t_end": 1}
    return read_scenario(text_of.dumps(words), "command line", robot=robot)


def _start(words: list[str] | None, scenario: Scenario) -> Any:
    """--initial as the part of a scenario: numbers q, q and v, or YAML text."""
    if not words:
        return None
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return " ".join(words)
    nq, nv = scenario.robot.nq, scenario.robot.nv
    if len(numbers) not in (1, nq, nq + nv):
        raise rf.StateError(
            f"--initial has {len(numbers)} numbers; give 1 for all of q, {nq} for q, or {nq + nv} "
            "for q and v"
        )
    if len(numbers) == 1:
        return {"q": numbers[0]}
    return {"q": numbers[:nq]} | ({"v": numbers[nq:]} if len(numbers) > nq else {})


def _data(scenario: Scenario, result: Result, files: dict[str, str], audit: bool) -> dict[str, Any]:
    last = {"t": float(result.t[-1]), "q": result.q[-1].tolist(), "v": result.v[-1].tolist()}
    shown = {
        "scenario": scenario.name,
        "robot": result.model.name,
        "status": result.status,
        "rows": len(result),
        "last": last,
        "method": result.options["method"],
        "stats": dict(result.stats),
        "energy_error": result.audit.energy.relative,
        "files": files,
    }
    return shown | ({"audit": result.audit.to_dict()} if audit else {})


def _tell(scenario: Scenario, result: Result, files: dict[str, str], audit: bool) -> None:
    m, stats = result.model, result.stats
    print_line(f"{scenario.name}: {m.name}, {result.t[-1]:g} s, {result.status}")
    took = f"{stats['steps']} steps, {stats['wall_time']:.2f} s"
    print_line(f"{result.options['method']}, {took}; {len(result)} rows")
    columns = ["coordinate", "unit", "at the start", "at the end"]
    ends = (result.q[k].tolist() for k in (0, -1))
    rows = [list(row) for row in zip(result.columns["q"], result.units["q"], *ends, strict=True)]
    if result.desired is not None:
        import numpy as np

        columns.append("largest error")
        off = np.abs(result.q - result.desired.q).max(axis=0).tolist()
        led = np.isfinite(result.desired.q)  # the motion may lead only some of them
        rows = [
            [*row, x if led[:, k].all() else "not prescribed"]
            for k, (row, x) in enumerate(zip(rows, off, strict=True))
        ]
    print_table("", columns, rows)
    if audit:
        print_line(str(result.audit))
    else:
        energy = result.audit.energy
        error = f"largest error {energy.largest:.3g} J, {energy.relative:.2g} of what moved"
        print_line(f"energy: {error}")
    for path in files.values():
        print_line(f"written: {path}")
