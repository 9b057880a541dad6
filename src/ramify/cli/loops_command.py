"""Closed loops: loops."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import ramify as rf
from ramify.cli.common import AsJson, NumberList, RobotName, Settings, Words, app, load, settings_of
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

    m = load(robot, settings)
    if not m.loops:
        raise rf.LoopError(f"{m.name} has no loops: it is a tree")
    found = survey(m, _posture(m, at, q))
    if svg is not None:
        write_whole(svg, found.svg)
    data = _data(m, found)
    if json:
        print_json(data | ({"svg": str(svg)} if svg is not None else {}))
        return
    _show(m, found, data)
    if svg is not None:
        print_line(f"written: {svg}")


def _posture(m: Model, at: list[str] | None, q: list[float] | None) -> Any:
    if at and q:
        raise rf.StateError(
            "--at assembles the loops, --q takes them as they are; give one of them"
        )
    if q is not None:
        if len(q) != m.nq:
            raise rf.StateError(
                f"--q has {len(q)} numbers; {m.name} has {m.nq} coordinates: "
                f"{', '.join(m.coordinates)}"
            )
        return q
    if not at:
        return None
    return m.assemble(settings_of(at, "--at", "crank=0.3", rf.StateError)).q


def _data(m: Model, found: Survey) -> dict[str, Any]:
    c, tree = found.constraints, found.tree
    return {
        "robot": m.name,
        "q": dict(zip(m.coordinates, found.q.tolist(), strict=True)),
        "loops": [
            {
                "name": loop.name,
                "type": loop.kind,
                "between": _ends(loop),
                "constraints": list(loop.names),
            }
            for loop in m.loops
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
        "least_cdof_cut": list(found.least),
        "subsystems": [
            {
                "bodies": list(s.bodies),
                "equations": s.equations,
                "torques": list(s.torques),
                "multipliers": list(s.multipliers),
                "determinate": s.determinate,
                "round": s.after,
            }
            for s in found.plan.subsystems
        ],
        "blocks": [list(block) for block in found.blocks],
        "solved_as_a_whole_because": found.plan.refused or None,
    }


def _ends(loop: Any) -> list[str]:
    if loop.joints:
        return list(loop.joints)
    return [end.link or "base" for end in (loop.first, loop.second)]


def _show(m: Model, found: Survey, data: dict[str, Any]) -> None:
    c = found.constraints
    print_line(
        f"{m.name}: {several(len(m.loops), 'loop')}, {several(len(c.names), 'constraint')} of rank "
        f"{c.rank} "
        f"on {m.nv} velocities: mobility {c.mobility}"
    )
    print_line(
        f"gap {c.gap:.3g}; margin {c.margin:.3g} (share of the largest singular value; 0 at a "
        "singular posture)"
    )
    redundant = set(c.redundant)
    rows = [
        (
            loop.name,
            loop.kind + (" (planar)" if loop.planar else ""),
            " - ".join(_ends(loop)),
            _rows(loop, redundant),
        )
        for loop in m.loops
    ]
    print_table("", ("loop", "type", "between", "constraints (redundant in brackets)"), rows)
    print_line(found.text)
    if found.least and set(found.least) != set(data["cut"]):
        print_line(f"minimum cumulative degree of freedom would cut {', '.join(found.least)}")
    print_table(
        "Subsystems",
        ("bodies", "equations", "unknown torques", "unknown multipliers", "determinate", "round"),
        [
            (
                ", ".join(s.bodies),
                s.equations,
                ", ".join(s.torques),
                ", ".join(s.multipliers),
                "yes" if s.determinate else "no",
                s.after,
            )
            for s in found.plan.subsystems
        ],
    )
    if found.plan.refused:
        print_line(f"inverse dynamics solves all equations as a whole: {found.plan.refused}")
    else:
        print_line(
            "multipliers are found in the order: "
            + "; then ".join(", ".join(block) for block in found.blocks)
        )


def _rows(loop: Any, redundant: set[str]) -> str:
    return ", ".join(
        f"({row})" if name in redundant else row
        for row, name in zip(loop.rows, loop.names, strict=True)
    )
