"""Closed loops: loops."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import ramify as rf
from ramify.cli.common import (
    AsJson,
    NumberList,
    RobotName,
    Settings,
    Words,
    app,
    load_model,
    named_numbers,
)
from ramify.cli.output import print_json, print_line, print_table, several
from ramify.documents.writing import write_whole

if TYPE_CHECKING:
    from ramify.api.model import Model
    from ramify.loops.survey import Survey


@app.command
def loops(
    robot: RobotName,
    *,
    at: Words = None,
    q: NumberList = None,
    svg: Path | None = None,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Show a robot's loops: constraints, rank, redundancy, mobility, gap, where it is cut, and how
    its subsystems are solved.

    Args:
        at: Independent coordinates to assemble at, such as crank=0.3.
        q: All coordinates instead, as they are: the gap is shown, nothing is assembled.
        svg: File for a drawing of the graph.
    """
    from ramify.loops.survey import survey

    m = load_model(robot, settings)
    if not m.loops:
        raise rf.LoopError(f"{m.name} has no loops: it is a tree")
    surveyed = survey(m, _posture(m, at, q))
    if svg is not None:
        write_whole(svg, surveyed.svg)
    data = _data(m, surveyed)
    if json:
        print_json(data | ({"svg": str(svg)} if svg is not None else {}))
        return
    _show(m, surveyed, data)
    if svg is not None:
        print_line(f"written: {svg}")


def _posture(m: Model, at: list[str] | None, q: list[float] | None) -> Any:
    if at and q:
        text = "--at assembles the loops, --q takes them as they are; give one of them"
        raise rf.StateError(text)
    if q is not None and len(q) != m.nq:
        text = f"{m.name} has {m.nq} coordinates: {', '.join(m.coordinates)}"
        raise rf.StateError(f"--q has {len(q)} numbers; {text}")
    return m.assemble(named_numbers(at, "--at", "crank=0.3", rf.StateError)).q if at else q


def _data(m: Model, survey: Survey) -> dict[str, Any]:
    c, tree = survey.constraints, survey.tree
    return {
        "robot": m.name,
        "q": dict(zip(m.coordinates, survey.q.tolist(), strict=True)),
        "loops": [
            {"name": x.name, "type": x.kind, "between": _ends(x), "constraints": list(x.names)}
            for x in m.loops
        ],
        "constraints": [
            {"name": name, "residual": float(r), "unit": unit, "redundant": name in c.redundant}
            for name, r, unit in zip(c.names, c.residual, c.units, strict=True)
        ],
        "rank": c.rank,
        "redundant": list(c.redundant),
        "mobility": c.mobility,
        "gap": c.gap,
        "margin": c.margin,
        "tree": [
            {"body": w.body, "parent": w.parent, "joint": w.joint.name, "cdof": w.cdof}
            for w in tree.ways
        ],
        "cut": [edge.name for edge in tree.cut],
        "least_cdof_cut": list(survey.least),
        "subsystems": [
            {key: getattr(s, field) for key, field in _SUBSYSTEM.items()}
            for s in survey.plan.subsystems
        ],
        "blocks": [list(block) for block in survey.blocks],
        "solved_as_a_whole_because": survey.plan.refused or None,
    }


_SUBSYSTEM = {
    "bodies": "bodies",
    "equations": "equations",
    "torques": "torques",
    "multipliers": "multipliers",
    "determinate": "determinate",
    "round": "after",
}
"""What is shown of a subsystem, and the fields that have it."""


def _ends(loop: Any) -> list[str]:
    if loop.joints:
        return list(loop.joints)
    return [end.link or "base" for end in (loop.first, loop.second)]


def _show(m: Model, survey: Survey, data: dict[str, Any]) -> None:
    c = survey.constraints
    counted = f"{several(len(m.loops), 'loop')}, {several(len(c.names), 'constraint')}"
    rank = f"of rank {c.rank} on {m.nv} velocities: mobility {c.mobility}"
    print_line(f"{m.name}: {counted} {rank}")
    share = "(share of the largest singular value; 0 at a singular posture)"
    print_line(f"gap {c.gap:.3g}; margin {c.margin:.3g} {share}")
    rows = []
    for loop in m.loops:
        parts = zip(loop.rows, loop.names, strict=True)
        listed = ", ".join(f"({row})" if name in c.redundant else row for row, name in parts)
        kind = loop.kind + " (planar)" * loop.planar
        rows.append((loop.name, kind, " - ".join(_ends(loop)), listed))
    print_table("", ("loop", "type", "between", "constraints (redundant in brackets)"), rows)
    print_line(survey.text)
    if survey.least and set(survey.least) != set(data["cut"]):
        print_line(f"minimum cumulative degree of freedom would cut {', '.join(survey.least)}")
    columns = [f"unknown {k}" if k in ("torques", "multipliers") else k for k in _SUBSYSTEM]
    print_table("Subsystems", columns, [map(_cell, s.values()) for s in data["subsystems"]])
    if survey.plan.refused:
        print_line(f"inverse dynamics solves all equations as a whole: {survey.plan.refused}")
    else:
        order = "; then ".join(", ".join(block) for block in survey.blocks)
        print_line(f"multipliers are found in the order: {order}")


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, int) else ", ".join(value)
