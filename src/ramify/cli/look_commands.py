"""Looking at robots, runs and what there is: robots, info, check, compare, view, kinds; and
--install-completion.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.completion.detect import ShellDetectionError

import ramify as rf
from ramify.cli.common import AsJson, RobotName, Settings, app, load_model, summary
from ramify.cli.output import print_json, print_line, print_table, several, vector_to_six_digits

if TYPE_CHECKING:
    from ramify.model.joint import Joint

Thing = Literal["motion", "controller", "sensor", "ground", "contact", "terrain"]


@app.command
def robots(*, json: AsJson = False) -> None:
    """List the built-in robots."""
    data = [summary(load_model(name)) for name in rf.robots()]
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

    m = load_model(robot, settings)
    module_of = m.module_numbers
    bodies: list[dict[str, Any]] = [
        {
            "name": body.name,
            "parent": m.bodies[body.parent].name if body.parent >= 0 else None,
            "joint": body.joint.name,
            "type": " ".join((body.joint.kind, body.joint.sequence)).strip(),
            "coordinates": _with_units(body.joint.coordinates, _coordinate_units(body.joint)),
            "velocities": _with_units(body.joint.velocities, _rate_units(body.joint)),
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
    shapes, pairs, too_many = _collisions(m)
    if json:
        more = {"gravity": list(m.gravity), "bodies": bodies, "links": list(m.attached)}
        print_json(summary(m) | more | {"collisions": shapes, "pairs": pairs})
        return
    counted, modules = (
        several(len(m.bodies), "body", "bodies"),
        several(len({*module_of}), "module"),
    )
    print_line(f"{m.name}: {counted} in {modules}, {freedom_text(m)}, {m.mass:.6g} kg")
    print_line(f"gravity {vector_to_six_digits(m.gravity)} m/s^2")
    rows = []
    for i, b in enumerate(bodies, 1):
        named = (f"{c['name']} [{c['unit']}]".replace(" []", "") for c in b["coordinates"])
        place = (b["name"], b["parent"] or "(base)", b["module"], b["joint"], b["type"])
        rows.append((i, *place, ", ".join(named), b["mass"], vector_to_six_digits(b["com"])))
    columns = ("body", "parent", "module", "joint", "type", "coordinates", "mass, kg")
    print_table("", ("", *columns, "mass centre, m"), rows)
    rated = np.stack([m.effort, m.rated_velocity])
    if m.nq == m.nv and (np.isfinite(rated).any() or np.isfinite([m.lower, m.upper]).any()):
        ratings = zip(m.coordinates, m.lower, m.upper, *rated, strict=True)
        limits = [(name, *(x if np.isfinite(x) else "–" for x in row)) for name, *row in ratings]
        keys = ("coordinate", "lower", "upper", "effort", "velocity")
        print_table("limits and ratings, SI units", keys, limits)
    own = {body.name for body in m.bodies}
    merged = [name for name in m.attached if name not in own]
    if merged:
        print_line(f"links merged into others by fixed joints: {', '.join(merged)}")
    if shapes:
        titles = ("shape", "of", "kind", "size, m", "group", "mask", "friction", "restitution")
        cells = [(row | {"size": vector_to_six_digits(row["size"])}).values() for row in shapes]
        print_table("shapes that collide", titles, cells)
    if too_many:
        print_line(too_many)
    if pairs:
        listed = ", ".join(pair["name"] for pair in pairs[:_SHOWN_PAIRS])
        more_pairs = f", and {len(pairs) - _SHOWN_PAIRS} more" * (len(pairs) > _SHOWN_PAIRS)
        print_line(f"{several(len(pairs), 'pair')}: {listed}{more_pairs}")


_SHOWN_PAIRS = 12


def _collisions(m: rf.Model) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """The shapes that collide, the pairs in which they do, and a message where these are too
    many.
    """
    from ramify.contact.collision_pairs import CollisionPair, all_pairs

    pairs: tuple[CollisionPair, ...] = ()
    too_many = ""
    try:
        pairs = all_pairs(m)
    except rf.ModelError as error:
        too_many = str(error)
    paired = {id(shape) for pair in pairs for shape in (pair.shape, pair.other_shape)}
    shapes = [
        {
            "name": place.name,
            "of": m.bodies[place.body].name if place.body >= 0 else "(world)",
            "kind": place.shape.kind,
            "size": list(place.shape.size),
            "group": place.shape.group,
            "mask": place.shape.mask,
            "friction": place.shape.friction,
            "restitution": place.shape.restitution,
        }
        for place in m.shapes
        if place.shape.collides or id(place.shape) in paired
    ]
    rows = [
        {
            "name": pair.name,
            "friction": pair.friction,
            "restitution": pair.restitution,
            "contacts": pair.contacts,
        }
        for pair in pairs
    ]
    return shapes, rows, too_many


@app.command
def check(robot: RobotName, *, settings: Settings = None, json: AsJson = False) -> int:
    """Look for mistakes in a robot. Exit code 1 where there is an error among the findings."""
    m = load_model(robot, settings)
    findings = m.check()
    found = [asdict(finding) for finding in findings]
    if json:
        print_json(found)
    elif findings:
        columns, rows = ("level", "where", "code", "what"), (row.values() for row in found)
        print_table(f"{m.name}: findings", columns, rows)
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
    comparison = run.compare(other)
    if report is not None:
        run.report(report, compare=other)
    if json:
        print_json([asdict(row) for row in comparison.differences])
        return
    rows = [(d.what, d.name, d.largest, d.unit, d.time, d.rms) for d in comparison.differences]
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


def _rate_units(joint: Joint) -> list[str]:
    return [f"{step.unit}/s" for step in joint.steps]


def _with_units(names: Iterable[str], units: Iterable[str]) -> list[dict[str, str]]:
    return [{"name": name, "unit": unit} for name, unit in zip(names, units, strict=True)]


@app.command
def kinds(
    of: Annotated[
        Thing | None,
        Parameter(
            name="THING",
            help="motion, controller, sensor, ground, contact or terrain; all by default.",
        ),
    ] = None,
    word: Annotated[
        str | None, Parameter(name="WORD", help="One kind: print its keys and what they take.")
    ] = None,
    /,
    *,
    json: AsJson = False,
) -> None:
    """List the motions, controllers, sensors, grounds, contacts and terrains that scenario files
    can name.
    """
    import ramify.scenario_files.scenario_control  # noqa: F401  adds its controller
    from ramify.core.messages import near

    registries: dict[str, Any] = {
        "motion": rf.motion.MOTIONS,
        "controller": rf.control.CONTROLLERS,
        "sensor": rf.control.SENSORS,
        "ground": rf.contact.LAWS,
        "contact": rf.contact.CONTACTS,
        "terrain": rf.contact.TERRAINS,
    }
    if of is not None and word is not None:
        registry = registries[of]
        if word not in registry:
            raise rf.RamifyError(f"no {of} is called {word!r}{near(word, list(registry))}")
        keys = {one.names: one.about for one in registry.keys_of(word).values() if one.names}
        about = _about(registry[word])
        if json:
            first = {names[0]: takes for names, takes in keys.items()}
            print_json({"word": word, "about": about, "keys": first})
            return
        rows = [(", ".join(names), takes) for names, takes in keys.items()]
        print_table(f"{word}: {about}", ("key", "takes"), rows)
        return
    entries = [
        {"thing": thing, "word": one, "about": _about(kind)}
        for thing, registry in registries.items()
        if of in (None, thing)
        for one, kind in registry.items()
    ]
    if json:
        print_json(entries)
        return
    print_table("Kinds", ("", "word", "what it is"), [tuple(row.values()) for row in entries])


def _about(kind: type) -> str:
    """The first sentence of a class's docstring."""
    text = " ".join((kind.__doc__ or "").split())
    return re.split(r"(?<!eq)(?<!eqs)\. ", text)[0].rstrip(".")


@app.command(name="--install-completion")
def install_completion(
    *,
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None,
    out: Path | None = None,
) -> None:
    """Let the shell complete commands, options, and names of robots and scenarios. Where the shell
    needs a line in its start-up file, it is added.

    Args:
        shell: By default the shell that runs this command.
        out: Only write the script to this file; by default where the shell finds it.
    """
    try:
        written = app.install_completion(shell=shell, output=out, add_to_startup=out is None)
    except ShellDetectionError:
        raise rf.RamifyError(
            "the shell was not recognised; name it with --shell bash, zsh, fish or powershell"
        ) from None
    print_line(f"written: {written}")
    if out is None:
        print_line("open a new shell to use it")
        if written.name.startswith("_"):
            print_line("zsh completes if ~/.zshrc has the line: autoload -Uz compinit && compinit")
