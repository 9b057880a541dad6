"""Equality constraints of MJCF as loops: connect, weld, and joints coupled in proportion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from ramify.core.names import fresh, is_name
from ramify.files.import_report import ImportReport
from ramify.files.mjcf_geoms import frame_of
from ramify.model.frame import Frame
from ramify.model.loop import Loop, LoopEnd

_CONNECT, _WELD, _JOINT = 0, 1, 2  # mjtEq
_SITE: Final = 6  # mjtObj


def equalities(
    m: Any, bodies: Sequence[str], joints: Sequence[str], report: ImportReport
) -> list[Loop]:
    """The loops that the equality constraints of a compiled model make; what cannot be one is
    reported in the report.
    """
    found: list[Loop] = []
    taken: set[str] = set()
    for i in range(m.neq):
        given = str(m.eq(i).name)
        name = fresh(given if is_name(given) else f"equality{i}", taken)
        taken.add(name)
        who = f"equality {name!r}"
        if not m.eq_active0[i]:
            report.ignored(who, "it is not active")
            continue
        if _idle(m, i):
            report.ignored(who, "its bodies are fixed to each other anyway")
            continue
        kind, made = int(m.eq_type[i]), None
        if kind == _JOINT:
            made = _coupled(m, i, name, joints)
        elif kind in (_CONNECT, _WELD):
            made = _joined(m, i, name, bodies)
        if made is None:
            text = "a loop is made of connect, weld, and joint with a linear polynomial"
            report.ignored(who, f"constraints: {text} of two joints", moves=True)
            continue
        found.append(made)
        text = f"is the loop {name!r}, rigid: its softness (solref, solimp) is not kept"
        report.note(who, f"{text}; model.tree is without it")
    return found


def _idle(m: Any, i: int) -> bool:
    """Whether a constraint holds two bodies together that are one."""
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


def _coupled(m: Any, i: int, name: str, joints: Sequence[str]) -> Loop | None:
    """y - y0 = c0 + c1 (x - x0) of two joints with one coordinate each."""
    follower, master = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    data = np.asarray(m.eq_data[i], dtype=np.float64)
    if master < 0 or data[2:5].any() or any(int(m.jnt_type[j]) < 2 for j in (follower, master)):
        return None
    y0, x0 = (float(m.qpos0[m.jnt_qposadr[j]]) for j in (follower, master))
    ratio, ends = float(data[1]), (joints[master], joints[follower])
    offset = y0 + float(data[0]) - ratio * x0
    return Loop(name, "gear", joints=ends, ratio=ratio, offset=offset)
