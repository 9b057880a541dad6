"""Runs: scenarios, simulate."""

from __future__ import annotations

import json as text_of
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import (
    AsJson,
    RobotOrScenario,
    Settings,
    app,
    file_name,
    load,
    settings_of,
)
from ramify.cli.output import print_json, print_line, print_table, printable

if TYPE_CHECKING:
    from ramify.api.result import Result
    from ramify.scenario_files.scenario import Scenario

WRITERS: Final = {".nc": "save", ".csv": "to_csv"}
"""Methods of a result that write its file, by suffix."""

Words = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]
Seconds = Annotated[float | None, Parameter()]


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
    trajectory: Annotated[
        str | None,
        Parameter(help='The motion, as in a scenario file: "{type: cycloid, end_deg: 60}".'),
    ] = None,
    control: Annotated[
        str | None,
        Parameter(help='The controller: a word such as computed_torque, or "{type: pd, kp: 100}".'),
    ] = None,
    ground: Annotated[
        str | None,
        Parameter(
            help='The ground: firm, none, "{law: firm, terrain: {slope_deg: 10}}"; '
            "see ramify kinds."
        ),
    ] = None,
    initial: Annotated[
        Words, Parameter(help='The start: numbers q, or q and v; or "{q_deg: {joint2: 90}}".')
    ] = None,
    t_end: Annotated[
        Seconds,
        Parameter(help="Seconds to simulate; 1 for a robot, as the scenario says otherwise."),
    ] = None,
    method: Annotated[
        str | None,
        Parameter(help="auto, dop853, ode45, radau, ode15s, lsoda, rk4, ode5, ab4, energy, ..."),
    ] = None,
    step: Annotated[Seconds, Parameter(help="Step of a fixed-step method, s.")] = None,
    rtol: Annotated[
        float | None, Parameter(help="Relative tolerance of an adaptive method.")
    ] = None,
    atol: Annotated[
        float | None, Parameter(help="Absolute tolerance of an adaptive method.")
    ] = None,
    dt_out: Annotated[Seconds, Parameter(help="Seconds between rows of output.")] = None,
    damping: Annotated[
        float | None,
        Parameter(help="Viscous friction in the joints, not of a floating base: N m s/rad, N s/m."),
    ] = None,
    passive: Annotated[
        bool | None, Parameter(help="Springs, damping, friction and tendons of the machine act.")
    ] = None,
    stops: Annotated[bool | None, Parameter(help="Joints stop at their limits.")] = None,
    efforts: Annotated[
        bool | None, Parameter(help="Drives give no more than their effort.")
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="File of the run: .nc (everything), or .csv.")
    ] = None,
    audit: Annotated[
        bool, Parameter(negative="", help="Print the audit; exit code 1 where it fails.")
    ] = False,
    plot: Annotated[
        Path | None, Parameter(help="Plot of the coordinates: .svg, .png or .pdf.")
    ] = None,
    report: Annotated[
        Path | None,
        Parameter(help="Report of the run: one .html file with animation, plots and tables."),
    ] = None,
    animate: Annotated[Path | None, Parameter(help="Film of the run: .mp4 or .gif.")] = None,
    settings: Settings = None,
    json: AsJson = False,
) -> int:
    """Simulate a robot or a scenario. What was computed is kept where the run fails or is
    interrupted with Ctrl-C.
    """
    from ramify.view.folders import must_have_folder

    if out is not None and out.suffix not in WRITERS:
        raise rf.SimulationError(f"--out {out}: the file must end in {' or '.join(WRITERS)}")
    for option, path, suffixes in (
        ("--report", report, (".html", ".htm")),
        ("--animate", animate, (".mp4", ".gif")),
    ):
        if path is not None and path.suffix.lower() not in suffixes:
            raise rf.SimulationError(
                f"{option} {path}: the file must end in {' or '.join(suffixes)}"
            )
        if path is not None:
            must_have_folder(path)
    scenario = _scenario(what, settings)
    given = {
        "t_end": t_end,
        "method": method,
        "step": step,
        "rtol": rtol,
        "atol": atol,
        "dt_out": dt_out,
        "damping": damping,
        "passive": passive,
        "stops": stops,
        "efforts": efforts,
    }
    given |= {
        "motion": trajectory,
        "control": control,
        "ground": ground,
        "initial": _start(initial, scenario),
    }
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    failure: rf.SimulationError | None = None
    try:
        result = scenario.run(**options, progress=sys.stderr.isatty())
    except rf.SimulationError as error:
        failure, result = error, error.result  # type: ignore[assignment]
        if result is None or len(result) < 2:  # nothing was computed
            raise
    files = _write(result, out, plot, report, animate)
    if json:
        print_json(_data(scenario, result, files, audit))
    else:
        _tell(scenario, result, files, audit)
    if failure is not None:
        kept = (
            f"; what was computed until t = {result.t[-1]:g} s is in {out}"
            if out is not None
            else ""
        )
        print(f"ramify: {printable(str(failure))}{kept}", file=sys.stderr)
        return 1
    if result.status == "interrupted":
        kept = f", and is in {out}" if out is not None else ""
        print(f"ramify: interrupted; the run ends at t = {result.t[-1]:g} s{kept}", file=sys.stderr)
        return 130
    return int(audit and not result.audit.passed)


def _scenario(what: str, settings: list[str] | None) -> Scenario:
    """The scenario of that name or file, or one of a robot at rest for a second."""
    from ramify.scenario_files.scenario import read_scenario
    from ramify.scenario_files.shipped import is_scenario

    if is_scenario(what):
        if settings:
            raise rf.ModelError(
                f"--set belongs to a robot; {what} is a scenario, whose file has robot: "
                f"{{parameters: ...}}"
            )
        return rf.scenario(what)
    parameters = settings_of(settings)
    if not Path(what).suffix and not os.path.exists(what) and what not in rf.robots():
        from ramify.core.messages import near

        raise rf.ModelError(
            "no robot and no scenario is named "
            f"{what!r}{near(what, [*rf.scenarios(), *rf.robots()])}"
        )
    robot = load(what, settings)
    words = {
        "name": file_name(robot),
        "robot": {"name": what, "parameters": parameters},
        "t_end": 1,
    }
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


def _write(
    result: Result, out: Path | None, plot: Path | None, report: Path | None, animate: Path | None
) -> dict[str, str]:
    files: dict[str, str] = {}
    if out is not None:
        getattr(result, WRITERS[out.suffix])(out)
        files["run"] = str(out)
    if plot is not None:
        from ramify.view.figures import save_picture

        save_picture(result.plot("q"), plot)
        files["plot"] = str(plot)
    if report is not None:
        files["report"] = str(result.report(report))
    if animate is not None:
        files["film"] = str(result.animate(animate))
    return files


def _data(scenario: Scenario, result: Result, files: dict[str, str], audit: bool) -> dict[str, Any]:
    energy = result.audit.energy
    last = {"t": float(result.t[-1]), "q": result.q[-1].tolist(), "v": result.v[-1].tolist()}
    shown = {
        "scenario": scenario.name,
        "robot": result.model.name,
        "status": result.status,
        "rows": len(result),
        "last": last,
    }
    shown |= {
        "method": result.options["method"],
        "stats": dict(result.stats),
        "energy_error": energy.relative,
        "files": files,
    }
    return shown | ({"audit": result.audit.to_dict()} if audit else {})


def _tell(scenario: Scenario, result: Result, files: dict[str, str], audit: bool) -> None:
    m, stats = result.model, result.stats
    print_line(f"{scenario.name}: {m.name}, {result.t[-1]:g} s, {result.status}")
    print_line(
        f"{result.options['method']}, {stats['steps']} steps, {stats['wall_time']:.2f} s; "
        f"{len(result)} rows"
    )
    columns = ["coordinate", "unit", "at the start", "at the end"]
    rows = [
        [*row]
        for row in zip(
            result.columns["q"],
            result.units["q"],
            result.q[0].tolist(),
            result.q[-1].tolist(),
            strict=True,
        )
    ]
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
        print_line(
            f"energy: largest error {energy.largest:.3g} J, {energy.relative:.2g} of what moved"
        )
    for path in files.values():
        print_line(f"written: {path}")
