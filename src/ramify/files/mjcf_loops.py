"""Equality constraints of MJCF as loops: connect, weld, and couplings of joints or tendons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ramify.core.names import fresh, is_name
from ramify.files.import_report import ImportReport
from ramify.files.mjcf_geoms import frame_of
from ramify.model.frame import Frame
from ramify.model.loop import Loop, LoopEnd

_CONNECT, _WELD, _JOINT, _TENDON = range(4)  # mjtEq
_SITE: Final = 6  # mjtObj


def equalities(
    m: Any,
    bodies: Sequence[str],
    joints: Sequence[str],
    tendons: Mapping[int, str],
    report: ImportReport,
) -> list[Loop]:
    """The loops that the equality constraints of a compiled model make; the report
    says which are left out. ``tendons``: names, by their numbers, of those that were read.
    """
    loops: list[Loop] = []
    taken: set[str] = set()
    for i in range(m.neq):
        label = str(m.eq(i).name)
        name = fresh(label if is_name(label) else f"equality{i}", taken)
        taken.add(name)
        who = f"equality {name!r}"
        if not m.eq_active0[i]:
            report.ignored(who, "it is not active")
            continue
        if _idle(m, i):
            report.ignored(who, "its bodies are fixed to each other anyway")
            continue
        kind, loop = int(m.eq_type[i]), None
        if kind in (_JOINT, _TENDON):
            loop = _coupled(m, i, name, dict(enumerate(joints)) if kind == _JOINT else tendons)
        elif kind in (_CONNECT, _WELD):
            loop = _joined(m, i, name, bodies)
        if loop is None:
            text = "its tendon is left out" if kind == _TENDON else "it concerns flexible bodies"
            report.ignored(who, f"constraints: {text}", moves=True)
            continue
        loops.append(loop)
        text = f"is the loop {name!r}, rigid: its softness (solref, solimp) is not kept"
        report.note(who, f"{text}; model.tree is without it")
    return loops


def _idle(m: Any, i: int) -> bool:
    """Whether a constraint joins two bodies that are fixed to each other anyway."""
    if int(m.eq_type[i]) not in (_CONNECT, _WELD):
        return False
    first, second = (int(m.body_weldid[body]) for body, _ in _ends(m, i))
    return first == second


def _joined(m: Any, i: int, name: str, bodies: Sequence[str]) -> Loop:
    """Two bodies (or sites) held together, at a point or as a whole."""
    first, second = _ends(m, i)
    ends = [LoopEnd(None if body == 0 else bodies[body], frame) for body, frame in (first, second)]
    return Loop(name, "spherical" if int(m.eq_type[i]) == _CONNECT else "fixed", ends[0], ends[1])


def _ends(m: Any, i: int) -> Iterator[tuple[int, Frame]]:
    ids = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    data = np.asarray(m.eq_data[i], dtype=np.float64)
    if int(m.eq_objtype[i]) == _SITE:
        for site in ids:
            yield int(m.site_bodyid[site]), frame_of(m.site_pos[site], m.site_quat[site])
    elif int(m.eq_type[i]) == _CONNECT:
        yield ids[0], Frame(position=data[:3])
        yield ids[1], Frame(position=data[3:6])
    else:  # of a weld: its point in the second body, then the second body's pose in the first
        yield ids[0], frame_of(data[3:6], data[6:10])
        yield ids[1], Frame(position=data[:3])


def _coupled(m: Any, i: int, name: str, names: Mapping[int, str]) -> Loop | None:
    """y - y0 = c0 + c1 (x - x0) + … + c4 (x - x0)^4 of two joints or tendons, or y - y0 = c0 of
    one; x0 and y0 are their values at qpos0. None where one of them was not read.
    """
    kind = int(m.eq_type[i])
    follower, master = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    related = [k for k in (master, follower) if k >= 0]
    if not all(k in names for k in related):
        return None
    at_start = m.tendon_length0 if kind == _TENDON else m.qpos0[m.jnt_qposadr]
    data = [float(c) for c in m.eq_data[i][:5]]
    if master < 0:
        data = data[:1]
    curve = _shifted(data, float(at_start[master]) if master >= 0 else 0.0)
    curve[0] += float(at_start[follower])
    while len(curve) > 2 and not curve[-1]:
        curve.pop()
    said = tuple(names[k] for k in related)
    if kind == _JOINT and len(curve) == 2:
        return Loop(name, "gear", joints=said, ratio=curve[1], offset=curve[0])
    sides = (said, ()) if kind == _JOINT else ((), said)
    return Loop(name, "coupling", joints=sides[0], tendons=sides[1], curve=tuple(curve))


def _shifted(c: Sequence[float], x0: float) -> list[float]:
    """The coefficients of c(x - x0) in powers of x."""
    out = list(c)
    for start in range(len(out) - 1):
        for k in range(len(out) - 2, start - 1, -1):
            out[k] -= x0 * out[k + 1]
    return out
