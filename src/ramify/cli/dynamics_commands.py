"""Dynamics at a state or along a motion: id, fd."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import (
    AsJson,
    NumberList,
    RobotName,
    Settings,
    Switch,
    app,
    fill,
    load_model,
    path_with_robot_name,
    plots_are_possible,
)
from ramify.cli.output import print_json, print_line, print_table, write_csv

if TYPE_CHECKING:
    from ramify.api.model import Model
    from ramify.core.arrays import Array
    from ramify.motion.trajectory import Motion


@app.command(name="id")
def inverse_dynamics(
    robot: RobotName,
    *,
    start: Annotated[NumberList, Parameter(name="--from")] = None,
    end: Annotated[NumberList, Parameter(name="--to")] = None,
    duration: float = 1.0,
    steps: int = 1000,
    out: Path = Path("{robot}_torques.csv"),
    plot: Path | None = None,
    no_plot: Switch = False,
    base: Literal["free", "moved"] = "free",
    passive: Switch = False,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Inverse dynamics along a cycloidal motion (eq. 6.14): writes the joint torques as CSV and as
    a plot.

    Of a robot with loops the driven coordinates move so, and the others follow. On a floating base
    the joints move so and the base is free (section 7.1.1): its motion is integrated.

    Args:
        start: Coordinates at the start, rad or m: one, or one each.
        end: Coordinates at the end; by default 60 degrees or 0.1 m on.
        duration: Seconds from start to end.
        steps: Time steps; one row more is written.
        out: CSV file of the torques.
        plot: Plot of the torques, by default {robot}_torques.svg; or .png, .pdf.
        no_plot: Write no plot.
        base: A floating base: free, or moved like a joint, by forces of its own.
        passive: Add what springs, damping and friction take.
    """
    from ramify.drives.machine_forces import passive_text
    from ramify.model.units import robot_units

    m = load_model(robot, settings)
    floats = base == "free" and m.joints[0].floating and not m.loops
    motion, tau, at = _torques(m, floats, start, end, duration, steps, passive)
    left = [] if floats else _ranges_left(m, motion)
    units = [robot_units(m)["tau"][j] for j in at]
    names = [m.velocities[j] for j in at] if floats else m.coordinates
    files = {"csv": path_with_robot_name(out, m)}
    header = [f"{m.velocities[j]} [{unit}]" for j, unit in zip(at, units, strict=True)]
    write_csv(files["csv"], ["t [s]", *header], [motion.t, *tau.T])
    if not no_plot and (plot or plots_are_possible()):
        from ramify.view.run_plots import plot_torques

        files["plot"] = path_with_robot_name(plot or Path("{robot}_torques.svg"), m)
        plot_torques(motion.t, tau, names, units, files["plot"], title=f"{m.name}: joint torques")
    ends = zip(names, units, motion.q[0], motion.q[-1], abs(tau).T, strict=True)
    data = [
        {"name": name, "unit": unit, "start": a, "end": b, "max": float(size.max()),
         "time": float(motion.t[size.argmax()])}
        for name, unit, a, b, size in ends
    ]  # fmt: skip
    if json:
        how = "free" if floats else "moved" if base == "moved" else "fixed"
        about = {"robot": m.name, "base": how, "duration": duration, "rows": len(motion.t)}
        about |= {"passive": passive, "outside_limits": [name for name, *_ in left]}
        paths = {key: str(path) for key, path in files.items()}
        print_json(about | {"coordinates": data, "files": paths})
        return
    rows = [(d["name"], d["start"], d["end"], d["max"], d["unit"], d["time"]) for d in data]
    columns = ("coordinate", "from", "to", "max |tau|", "", "at t, s")
    print_table(f"{m.name}: cycloidal motion in {duration:g} s", columns, rows)
    if floats:
        text = "The base floats from rest, moved by the joints and gravity (section 7.1.1)"
        print_line(f"{text}; --base moved moves it as well, by forces of its own.")
    ignored = [] if passive else [p for p in passive_text(m).parts if p != "stop"]
    if ignored:
        parts = ", ".join(ignored).replace("_", " ")
        print_line(f"Left out of these torques: {parts}; --passive adds them.")
    for name, low, high, worst in left:
        print_line(f"{name} leaves its range ({low:.4g}, {high:.4g}): it goes to {worst:.4g}.")
    for path in files.values():
        print_line(f"written: {path}")


def _torques(
    m: Model,
    floats: bool,
    start: NumberList,
    end: NumberList,
    duration: float,
    steps: int,
    passive: bool,
) -> tuple[Motion, Array, list[int]]:
    """The cycloidal motion, the forces along it, and the rates that they belong to: all, or the
    driven ones on a floating base.
    """
    import numpy as np

    from ramify.model.driven import driven
    from ramify.motion import cycloid, example_ends

    if floats:
        reach = [np.pi / 3 if step.rho else 0.1 for joint in m.joints for step in joint.steps]
        first, last = np.zeros(m.nv), np.array(reach)
    else:
        first, last = example_ends(m)
    chosen = driven(m)
    if (m.loops or floats) and not chosen.q:
        remedy = {
            "free": "m.inverse_dynamics(q, v, a) in Python gives the wrench on its base",
            "free_euler": "--base moved moves its base by forces of its own",
        }.get(m.joints[0].kind, "set actuated: true for a joint")
        raise rf.ModelError(f"{m.name}: no joint is driven, so no torque is sought; {remedy}")
    if m.loops or floats:
        home = m.assemble().q if m.loops else m.neutral()
        first, last = home[list(chosen.q)], home[list(chosen.q)] + (last - first)[list(chosen.v)]
    q0 = fill("--from", start, first)
    q1 = fill("--to", end, q0 + (last - first))
    motion = cycloid(q0, q1, duration, steps + 1)
    if floats:
        motion, tau = _free_base(m, motion, q0, q1, passive)
        return motion, tau[:, list(chosen.v)], list(chosen.v)
    if m.loops:
        led = [dict(zip(chosen.names, x.T, strict=True)) for x in (motion.q, motion.v, motion.a)]
        q, v, a = m.assemble(led[0], rates=led[1], accelerations=led[2])
        motion = motion._replace(q=q, v=v, a=a)
    # a stop would hide all else where a joint leaves its range
    tau = m.inverse_dynamics(motion.q, motion.v, motion.a, passive=passive, stops=False)
    return motion, tau, list(range(m.nv))


def _ranges_left(m: Model, motion: Motion) -> list[tuple[str, float, float, float]]:
    """(name, lower, upper, furthest) of the coordinates that leave their range."""
    beyond = []
    for name, low, high, x in zip(m.coordinates, m.lower, m.upper, motion.q.T, strict=True):
        least, most = float(x.min()), float(x.max())
        worst = least if low - least > most - high else most
        if low < high and not low - 1e-9 <= worst <= high + 1e-9:
            beyond.append((name, float(low), float(high), worst))
    return beyond


def _free_base(
    m: Model, motion: Motion, q0: Array, q1: Array, passive: bool
) -> tuple[Motion, Array]:
    """The joints on the motion, the base integrated from rest: section 7.1.1, table 7.1."""
    from ramify.control import Prescribed
    from ramify.motion import Cycloid

    duration = float(motion.t[-1])
    rows = len(motion.t) - 1
    lead = Prescribed(Cycloid(q0, q1, duration))
    r = rf.simulate(m, duration, control=lead, dt_out=duration / rows, passive=passive, stops=False)
    return motion._replace(t=r.t), r.tau


@app.command(name="fd")
def forward_dynamics(
    robot: RobotName,
    *,
    q: NumberList = None,
    v: NumberList = None,
    tau: NumberList = None,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Accelerations at a state under joint forces; what is not given is zero (of a robot with
    loops, q closes them).

    Args:
        q: Coordinates, rad or m: one for all, or one each.
        v: Rates, rad/s or m/s.
        tau: Joint torques and forces, N m or N.
    """
    import numpy as np

    from ramify.integrate.closed_start import refuse_open_states

    m = load_model(robot, settings)
    still = np.zeros(m.nv)
    state = [
        fill("--q", q, m.assemble().q if m.loops else m.neutral()),
        fill("--v", v, still),
        fill("--tau", tau, still),
    ]
    if m.loops:
        refuse_open_states(m, state[0][None], state[1][None])
    values = [x.tolist() for x in (*state, m.forward_dynamics(*state))]
    if json:
        names = {"robot": m.name, "coordinates": m.coordinates, "velocities": m.velocities}
        print_json(names | dict(zip(("q", "v", "tau", "a"), values, strict=True)))
        return
    units = [step.unit for joint in m.joints for step in joint.steps]
    columns = ["coordinate", "unit", "q", "v", "tau", "acceleration"]
    if m.nq != m.nv:
        coordinates = zip(m.coordinates, values[0], strict=True)
        print_table(f"{m.name}: configuration", ("coordinate", "q"), coordinates)
        del columns[2], values[0]
    rows = zip(m.velocities, units, *values, strict=True)
    print_table(f"{m.name}: forward dynamics, SI units", columns, rows)
