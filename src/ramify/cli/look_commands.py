"""Looking at robots and runs: robots, info, check, compare, view."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import ramify as rf
from ramify.cli.common import AsJson, RobotName, Settings, app, load, summary
from ramify.cli.output import print_json, print_line, print_table, several, vector

if TYPE_CHECKING:
    from ramify.model.joint import Joint


@app.command
def robots(*, json: AsJson = False) -> None:
    """List the built-in robots."""
    data = [summary(load(name)) for name in rf.robots()]
    if json:
        print_json(data)
        return
    keys = ("name", "bodies", "degrees_of_freedom", "mass", "description")
    columns = ("robot", "bodies", "degrees of freedom", "mass, kg", "")
    print_table("Built-in robots", columns, [[d[key] for key in keys] for d in data])


@app.command
def info(robot: RobotName, *, settings: Settings = None, json: AsJson = False) -> None:
    """Show a robot's bodies, joints, modules, masses and coordinates."""
    import numpy as np

    from ramify.loops.mobility import freedom_text

    m = load(robot, settings)
    module_of = m.module_numbers
    bodies = [
        {
            "name": body.name,
            "parent": m.bodies[body.parent].name if body.parent >= 0 else None,
            "joint": body.joint.name,
            "type": " ".join((body.joint.kind, body.joint.sequence)).strip(),
            "coordinates": _with_units(body.joint.coordinates, _coordinate_units(body.joint)),
            "velocities": _with_units(
                body.joint.velocities, [f"{step.unit}/s" for step in body.joint.steps]
            ),
            "actuated": body.joint.actuated,
            "limits": [list(pair) for pair in body.joint.limits],
            "effort": [element.effort for element in body.joint.machine],
            "velocity": [element.velocity for element in body.joint.machine],
            "module": module_of[i],
            "mass": body.mass,
            "com": body.com.tolist(),
            "inertia": body.inertia.tolist(),
        }
        for i, body in enumerate(m.bodies)
    ]
    if json:
        print_json(
            summary(m) | {"gravity": list(m.gravity), "bodies": bodies, "links": list(m.attached)}
        )
        return
    parts = (
        f"{several(len(m.bodies), 'body', 'bodies')} in {several(len(set(module_of)), 'module')}"
    )
    print_line(f"{m.name}: {parts}, {freedom_text(m)}, {m.mass:.6g} kg")
    print_line(f"gravity {vector(m.gravity)} m/s^2")
    rows = [
        (
            i + 1,
            b["name"],
            b["parent"] or "(base)",
            b["module"],
            b["joint"],
            b["type"],
            ", ".join(f"{c['name']} [{c['unit']}]".replace(" []", "") for c in b["coordinates"]),
            b["mass"],
            vector(b["com"]),
        )
        for i, b in enumerate(bodies)
    ]
    columns = ("body", "parent", "module", "joint", "type", "coordinates", "mass, kg")
    print_table("", ("", *columns, "mass centre, m"), rows)
    rated = np.stack([m.effort, m.rated_velocity])
    if m.nq == m.nv and (np.isfinite(rated).any() or np.isfinite([m.lower, m.upper]).any()):
        ratings = zip(m.coordinates, m.lower, m.upper, *rated, strict=True)
        print_table(
            "limits and ratings, SI units",
            ("coordinate", "lower", "upper", "effort", "velocity"),
            [(name, *(x if np.isfinite(x) else "–" for x in row)) for name, *row in ratings],
        )
    merged = [
        name
        for name, place in m.attached.items()
        if place.body < 0 or m.bodies[place.body].name != name
    ]
    if merged:
        print_line(f"links merged into others by fixed joints: {', '.join(merged)}")


@app.command
def check(robot: RobotName, *, settings: Settings = None, json: AsJson = False) -> int:
    """Look for mistakes in a robot. Exit code 1 where there is an error among the findings."""
    m = load(robot, settings)
    findings = m.check()
    if json:
        keys = ("level", "where", "code", "message")
        print_json([{key: getattr(f, key) for key in keys} for f in findings])
    elif findings:
        rows = [(f.level, f.where, f.code, f.message) for f in findings]
        print_table(f"{m.name}: findings", ("level", "where", "code", "what"), rows)
    else:
        print_line(f"{m.name}: nothing to complain about")
    return int(any(f.level == "error" for f in findings))


@app.command
def compare(first: Path, second: Path, *, report: Path | None = None, json: AsJson = False) -> None:
    """Compare two runs: the largest difference of each coordinate, velocity and force.

    Args:
        first: File of a run (.nc).
        second: File of another run of the same robot (.nc).
        report: Report of the first run with the second as a ghost: .html.
    """
    run, other = rf.Result.open(first), rf.Result.open(second)
    found = run.compare(other)
    if report is not None:
        run.report(report, compare=other)
    if json:
        print_json([asdict(row) for row in found.differences])
        return
    rows = [(d.what, d.name, d.largest, d.unit, d.time, d.rms) for d in found.differences]
    columns = ("", "column", "largest difference", "unit", "at, s", "RMS")
    print_table(f"{first.name} minus {second.name}", columns, rows)
    if report is not None:
        print_line(f"report: {report}")


@app.command
def view(robot: RobotName, *, port: int = 8080, browser: bool = True) -> None:
    """Show a robot in the browser: sliders, simulations, playback. A robot file is read again when
    it changes. Ctrl-C ends it.

    Args:
        port: Port on this machine; the next free one where it is in use.
        browser: Open a window of the browser.
    """
    from ramify.view.live import view as show

    with show(robot, port=port, browser=browser) as viewer, suppress(KeyboardInterrupt):
        print_line(f"{viewer.model.name}: {viewer.url} (Ctrl-C ends it)")
        sys.stdout.flush()
        viewer.wait()


def _coordinate_units(joint: Joint) -> list[str]:
    """A unit per entry of q; quaternions have none."""
    return ["" if step.ball else step.unit for step in joint.steps for _ in step.positions]


def _with_units(names: Iterable[str], units: Iterable[str]) -> list[dict[str, str]]:
    return [{"name": name, "unit": unit} for name, unit in zip(names, units, strict=True)]
