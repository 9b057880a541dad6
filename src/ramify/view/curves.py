"""The curves of a run, as the report plots them: joints, energies, audit, contacts, loops and phase
planes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.messages import pretty
from ramify.kernels.queries import kinematics
from ramify.model.robot import joint_entries
from ramify.runs.audit import audited
from ramify.runs.run_record import Run
from ramify.view.scene import Point

MOST_PATHS: Final = 8
"""Points whose paths are plotted."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Values (T,) under a name; over time, or over ``x`` (T,). ``wanted`` is what was desired,
    where something was.
    """

    name: str
    y: Array
    x: Array | None = None
    wanted: Array | None = None
    wanted_x: Array | None = None
    dashed: bool = False


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves that share their axes. ``groups`` are the tabs that show it; ``across`` names the axis
    of ``x``; ``fit`` is the range (low, high) that the vertical axis shows, by default all of it.
    """

    title: str
    unit: str
    groups: tuple[str, ...]
    curves: tuple[Curve, ...]
    log: bool = False
    limit: float = 0.0
    across: tuple[str, str] | None = None
    fit: tuple[float, float] | None = None


def charts(result: Run) -> list[Chart]:
    """All charts of a run, the most wanted first."""
    return [
        *_joints(result, "q", "Joint coordinates", ("Overview", "Coordinates")),
        *_joints(result, "v", "Joint velocities", ("Velocities",)),
        *_joints(result, "a", "Joint accelerations", ("Accelerations",)),
        *_joints(result, "tau", "Joint forces", ("Overview", "Forces")),
        energy_curves(result),
        *_contacts(result),
        *_loops(result),
        *momenta(result),
        *_limits(result),
        *_phase(result),
        *_audit(result),
    ]


def by_unit(units: Sequence[str]) -> dict[str, list[int]]:
    """The columns of each unit."""
    return {u: [i for i, unit in enumerate(units) if unit == u] for u in dict.fromkeys(units)}


def _joints(result: Run, what: str, title: str, groups: tuple[str, ...]) -> list[Chart]:
    """A chart for each unit among the columns of q, v, a or tau."""
    values: Array = getattr(result, what)
    wanted = desired_columns(result, what)
    names, charts = result.columns[what], []
    for unit, columns in by_unit(result.units[what]).items():
        if what == "tau":  # a free base has no drives
            columns = [i for i in columns if np.any(values[:, i])]
        if what in ("tau", "a") and not np.any(values[:, columns]):
            continue
        curves = tuple(Curve(names[i], values[:, i], wanted=_column(wanted, i)) for i in columns)
        charts.append(Chart(title, pretty(unit), groups, curves))
    return charts


def desired_columns(result: Run, what: str) -> Array | None:
    """The desired q, v or a, in the columns of a run; None where there is none."""
    wanted: Array | None = getattr(result.desired, what, None) if what in ("q", "v", "a") else None
    return wanted if wanted is not None and wanted.shape == getattr(result, what).shape else None


def _column(wanted: Array | None, column: int) -> Array | None:
    some = wanted is not None and np.isfinite(wanted[:, column]).any()
    return wanted[:, column] if wanted is not None and some else None


def energy_curves(result: Run) -> Chart:
    balance = result.energy_balance
    first = balance.potential[0]
    parts = {
        "work of actuators": result.work.actuator,
        "dissipated": balance.dissipated,
        "stored in the ground": balance.ground,
        "work of wrenches": balance.wrenches,
    }
    curves = [
        Curve("kinetic", balance.kinetic),
        Curve("potential, from the start", balance.potential - first),
        *(Curve(name, x) for name, x in parts.items() if np.any(x)),
        Curve("balance", balance.conserved - first, dashed=True),
    ]
    return Chart("Energy", "J", ("Overview", "Energy"), tuple(curves))


def _audit(result: Run) -> list[Chart]:
    charts = []
    for check in audited(result).checks:
        scale = check.scale or 1.0
        unit = "error / scale" if check.scale else f"error, {pretty(check.unit)}"
        verdict = "passed" if check.passed else "failed"
        error = Curve("error", np.abs(check.error) / scale)
        title = f"Audit, {check.name}: {verdict}; the dashed line is the limit"
        charts.append(Chart(title, unit, ("Audit",), (error,), log=True, limit=check.limit / scale))
    return charts


def _phase(result: Run) -> list[Chart]:
    rate, desired = result.model.layout.to_v, result.desired
    charts = []
    for unit, columns in by_unit(result.units["q"]).items():
        curves = []
        for i in columns:
            if i in rate:
                wanted = (
                    () if desired is None else (_column(desired.v, rate[i]), _column(desired.q, i))
                )
                name, v = result.columns["q"][i], result.v[:, rate[i]]
                curves.append(Curve(name, v, result.q[:, i], *wanted))
        if curves:
            unit, title = pretty(unit), "Phase plane: v over q"
            chart = Chart(title, f"{unit}/s", ("Phase",), tuple(curves), across=("q", unit))
            charts.append(chart)
    return charts


def _contacts(result: Run) -> list[Chart]:
    """Forces and depths of the points that touch the ground at some time, and the centre of
    pressure.
    """
    contacts = result.contacts
    if contacts is None:
        return []
    touched = np.flatnonzero(contacts.touching.any(axis=0))
    shown = touched if len(touched) else np.arange(len(contacts))
    all_touch = len(touched) == len(contacts)
    some = "" if all_touch else f", {len(touched)} of {len(contacts)} points touch"
    along = contacts.force - contacts.load[..., None] * np.array(contacts.up)
    depth = 1e3 * contacts.penetration
    deepest = max(float(depth[:, shown].max(initial=0.0)), 0.1)
    rows = (
        ("Contact forces, upward", "N", contacts.load, ("Overview", "Contacts"), None),
        ("Contact forces, level", "N", np.linalg.norm(along, axis=2), ("Contacts",), None),
        ("Penetration", "mm", depth, ("Contacts",), (-0.6 * deepest, deepest)),
    )
    charts = []
    for title, unit, values, groups, fit in rows:
        curves = tuple(Curve(contacts.names[i], values[:, i]) for i in shown)
        charts.append(Chart(title + some, unit, groups, curves, fit=fit))
    centre = pressed(result)
    if centre is not None:
        curves = tuple(Curve("xyz"[i], centre[:, i]) for i in range(3))
        charts.append(Chart("Centre of pressure", "m", ("Contacts",), curves))
    return charts


def pressed(result: Run) -> Array | None:
    """The centre of pressure (T, 3) as plots show it: NaN where the ground bears under a thousandth
    of the weight, since a first touch has a centre that means nothing. None for a run without one.
    """
    if result.contacts is None:
        return None
    borne = result.contacts.total_force @ np.array(result.contacts.up)
    weight = result.model.mass * float(np.linalg.norm(result.model.gravity))
    centre = result.contacts.center_of_pressure
    return np.where((borne > 1e-3 * weight)[:, None], centre, np.nan)


def _loops(result: Run) -> list[Chart]:
    """The multipliers of closed loops, and their gaps: what the constraints are off by."""
    loops, charts = result.loops, []
    if loops is None:
        return []
    for title, units, values, log in (
        ("Forces of the loops", loops.forces, loops.multipliers, False),
        ("Gaps of the loops", loops.units, np.abs(loops.gap), True),
    ):
        for unit, columns in by_unit(units).items():
            curves = tuple(Curve(loops.names[i], values[:, i]) for i in columns)
            charts.append(Chart(title, pretty(unit), ("Loops",), curves, log))
    return charts


def momenta(result: Run) -> list[Chart]:
    """Linear and angular momentum of the robot, along the world's axes."""
    linear, angular = result.momentum
    rows = (
        ("Linear momentum", "kg m/s", linear),
        ("Angular momentum about the centre of mass", "kg m²/s", angular),
    )
    return [
        Chart(title, unit, ("Momentum",), tuple(Curve("xyz"[i], x[:, i]) for i in range(3)))
        for title, unit, x in rows
    ]


def _limits(result: Run) -> list[Chart]:
    """How far limited coordinates are from the nearer of their limits; negative: beyond it."""
    by_unit: dict[str, list[Curve]] = {}
    for joint in result.model.joints:
        if len(joint.limits) != joint.nq:
            continue
        columns = joint_entries(result.model, joint.name, "q")
        for i, (low, high) in zip(columns, joint.limits, strict=True):
            if np.isfinite(low) or np.isfinite(high):
                room = np.minimum(result.q[:, i] - low, high - result.q[:, i])
                curve = Curve(result.columns["q"][i], room)
                by_unit.setdefault(result.units["q"][i], []).append(curve)
    title = "Distance to the nearer joint limit"
    return [Chart(title, pretty(u), ("Limits",), tuple(curves)) for u, curves in by_unit.items()]


def paths(result: Run, points: Sequence[Point], up: Array) -> list[Chart]:
    """Where points of bodies are over time, z up, and their paths seen from the side; the first
    ones, and none where there are no points.
    """
    R, r = kinematics(result.model, result.q)
    places = [
        (point.name, (R[:, point.body] @ np.array(point.at) + r[:, point.body]) @ up.T)
        for point in points[:MOST_PATHS]
    ]
    if not places:
        return []
    positions = []
    for k, axis in enumerate("xyz"):
        curves = tuple(Curve(name, at[:, k]) for name, at in places)
        positions.append(Chart(f"Positions of points, {axis}", "m", ("Paths",), curves))
    level = int(np.argmax([max(np.ptp(at[:, k]) for _, at in places) for k in (0, 1)]))
    side = tuple(Curve(name, at[:, 2], x=at[:, level]) for name, at in places)
    across = ("xy"[level], "m")
    return [*positions, Chart("Paths from the side, z", "m", ("Paths",), side, across=across)]
