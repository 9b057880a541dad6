"""The curves of a run, as the report plots them: joints, energies, audit, contacts, loops and phase
planes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.messages import pretty
from ramify.sim.audit import audited
from ramify.sim.record import Run


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
    """Curves that share their axes. ``groups`` are the headings under which it stands; ``across``
    names the axis of ``x``.
    """

    title: str
    unit: str
    groups: tuple[str, ...]
    curves: tuple[Curve, ...]
    log: bool = False
    limit: float = 0.0
    across: tuple[str, str] | None = None


def charts(result: Run) -> list[Chart]:
    """All charts of a run, the most wanted first."""
    return [
        *_joints(result, "q", "Joint coordinates", ("Overview", "Coordinates")),
        *_joints(result, "v", "Joint velocities", ("Velocities",)),
        *_joints(result, "a", "Joint accelerations", ("Accelerations",)),
        *_joints(result, "tau", "Joint forces", ("Overview", "Forces")),
        _energy(result),
        *_contacts(result),
        *_loops(result),
        *_phase(result),
        *_audit(result),
    ]


def _by_unit(units: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, unit in enumerate(units):
        found.setdefault(unit, []).append(i)
    return found


def _joints(result: Run, what: str, title: str, groups: tuple[str, ...]) -> list[Chart]:
    """A chart for each unit among the columns of q, v, a or tau."""
    values: Array = getattr(result, what)
    wanted: Any = getattr(result.desired, what, None) if what in ("q", "v", "a") else None
    wanted = wanted if np.shape(wanted) == values.shape else None
    names, found = result.columns[what], []
    for unit, columns in _by_unit(result.units[what]).items():
        curves = tuple(Curve(names[i], values[:, i], wanted=_seen(wanted, i)) for i in columns)
        if what in ("tau", "a") and not np.any(values[:, columns]):
            continue
        found.append(Chart(title, pretty(unit), groups, curves))
    return found


def _seen(wanted: Array | None, column: int) -> Array | None:
    return (
        wanted[:, column] if wanted is not None and np.isfinite(wanted[:, column]).any() else None
    )


def _energy(result: Run) -> Chart:
    kinetic, potential, total = result.energy
    work, lost = result.work
    curves = [
        Curve("kinetic", kinetic),
        Curve("potential, from the start", potential - potential[0]),
    ]
    curves += [Curve("work of actuators", work)] if np.any(work) else []
    curves += [Curve("dissipated", lost)] if np.any(lost) else []
    stored = np.asarray(getattr(result.contacts, "stored", 0.0))
    curves += [Curve("stored in the ground", stored)] if stored.any() else []
    curves.append(Curve("balance", total - potential[0] - work + lost + stored, dashed=True))
    return Chart("Energy", "J", ("Overview", "Energy"), tuple(curves))


def _audit(result: Run) -> list[Chart]:
    found = []
    for check in audited(result).checks:
        scale = check.scale or 1.0
        unit = "error / scale" if check.scale else f"error, {pretty(check.unit)}"
        verdict = "passed" if check.passed else "failed"
        error = Curve("error", np.abs(check.error) / scale)
        title = f"Audit, {check.name}: {verdict}; the dashed line is the limit"
        found.append(Chart(title, unit, ("Audit",), (error,), log=True, limit=check.limit / scale))
    return found


def _phase(result: Run) -> list[Chart]:
    rate = dict(zip(result.model.layout.plain_q, result.model.layout.plain_v, strict=True))
    found = []
    for unit, columns in _by_unit(result.units["q"]).items():
        curves = [
            Curve(
                result.columns["q"][i],
                result.v[:, rate[i]],
                x=result.q[:, i],
                wanted=_seen(result.desired.v, rate[i]) if result.desired is not None else None,
                wanted_x=_seen(result.desired.q, i) if result.desired is not None else None,
            )
            for i in columns
            if i in rate
        ]
        if curves:
            found.append(
                Chart(
                    "Phase plane: v over q",
                    f"{pretty(unit)}/s",
                    ("Phase",),
                    tuple(curves),
                    across=("q", pretty(unit)),
                )
            )
    return found


def _contacts(result: Run) -> list[Chart]:
    """Normal and tangential contact forces and penetrations; "up" is against gravity."""
    contacts: Any = result.contacts
    force = getattr(contacts, "force", None)
    if force is None or np.ndim(force) != 3 or np.shape(force)[0] != len(result):
        return []
    force = np.asarray(force, dtype=np.float64)
    names = [str(name) for name in getattr(contacts, "names", range(force.shape[1]))]
    g = np.array(result.model.gravity)
    up = -g / np.linalg.norm(g) if np.any(g) else np.array([0.0, 0.0, 1.0])
    normal = force @ up
    along = np.linalg.norm(force - normal[..., None] * up, axis=2)
    rows = [
        ("Contact forces, normal", "N", normal),
        ("Contact forces, along the ground", "N", along),
    ]
    depth: Any = getattr(contacts, "penetration", None)
    if np.shape(depth) == normal.shape:
        rows.append(("Penetration", "mm", 1e3 * np.asarray(depth)))
    found = []
    for title, unit, values in rows:
        groups = ("Overview", "Contacts") if values is normal else ("Contacts",)
        found.append(
            Chart(
                title,
                unit,
                groups,
                tuple(Curve(name, values[:, i]) for i, name in enumerate(names)),
            )
        )
    centre = pressed(result)
    if centre is not None:
        curves = tuple(Curve("xyz"[i], centre[:, i]) for i in range(min(3, centre.shape[1])))
        found.append(Chart("Centre of pressure", "m", ("Contacts",), curves))
    return found


def pressed(result: Run) -> Array | None:
    """The centre of pressure (T, 3) as plots show it: NaN where the ground bears under a thousandth
    of the weight, since a first touch has a centre that means nothing. None for a run without one.
    """
    centre = np.asarray(getattr(result.contacts, "center_of_pressure", ()), dtype=np.float64)
    if result.contacts is None or centre.ndim != 2 or centre.shape[0] != len(result):
        return None
    borne = result.contacts.total_force @ np.array(result.contacts.up)
    weight = result.model.mass * float(np.linalg.norm(result.model.gravity))
    return np.where((borne > 1e-3 * weight)[:, None], centre, np.nan)


def _loops(result: Run) -> list[Chart]:
    """The gaps of closed loops: what the constraints are off by."""
    gap = getattr(result.loops, "gap", None)
    if gap is None or not len(np.shape(gap)) or np.shape(gap)[0] != len(result):
        return []
    values = np.abs(np.asarray(gap, dtype=np.float64)).reshape(len(result), -1)
    names = [str(name) for name in getattr(result.loops, "names", ())]
    names = (
        names if len(names) == values.shape[1] else [f"gap {i + 1}" for i in range(values.shape[1])]
    )
    gaps = tuple(Curve(name, values[:, i]) for i, name in enumerate(names))
    found = [Chart("Gaps of the loops", "m or 1", ("Loops",), gaps, log=True)]
    forces: Any = getattr(result.loops, "multipliers", None)
    if np.shape(forces) == values.shape:
        units = getattr(result.loops, "forces", ("N or N m",) * len(names))
        for unit, columns in _by_unit(units).items():
            curves = tuple(Curve(names[i], forces[:, i]) for i in columns)
            found.insert(0, Chart("Forces of the loops", pretty(unit), ("Loops",), curves))
    return found
