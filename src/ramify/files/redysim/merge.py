"""Massless links of ReDySim that stand for one joint of several degrees of freedom, merged back
into that joint.

ReDySim builds such a joint as a run of links of one degree of freedom each, without mass or length
between them (the book's Euler-angle joints, chapter 3). A run is merged where its axes at q = 0 are
those of a joint type, in the same order and with the same signs, so that q, v and torques keep
their meaning; constant rotations go into the joint's placement and outlet. Other runs stay
as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.files.import_report import ImportReport
from ramify.model.build import LinkSpec
from ramify.model.frame import Frame
from ramify.model.joint import Joint

_TOLERANCE: Final = 1e-12


@dataclass(frozen=True)
class _MergedAxis:
    """A joint axis at q = 0, in the frame of the link that carries the run."""

    direction: Array
    origin: Array


def merge(links: Sequence[LinkSpec], report: ImportReport) -> list[LinkSpec]:
    """The links with every run of massless ones merged that is a joint of several degrees of
    freedom.
    """
    children = Counter(link.parent for link in links)
    runs: list[list[LinkSpec]] = []
    for link in links:
        last = runs[-1][-1] if runs else None
        if last and link.parent == last.name and _massless(last) and children[last.name] == 1:
            runs[-1].append(link)
        else:
            runs.append([link])
    out: list[LinkSpec] = []
    for run in runs:
        joint = None if len(run) == 1 else _joint(run)
        names = " ".join(link.name for link in run)
        if joint is not None:
            out.append(replace(run[-1], parent=run[0].parent, joint=joint))
            kind = f"{joint.kind} {joint.sequence}".strip()
            text = f"massless links merged into one joint ({kind})"
            report.note(names, f"{text}; its coordinates keep their order and zeros")
            continue
        out.extend(run)
        if len(run) > 1:
            text = "massless links kept: no joint type has these axes with these zeros"
            report.note(names, text)
    return out


def _massless(link: LinkSpec) -> bool:
    movable = link.joint.kind in ("revolute", "prismatic")
    return movable and link.mass == 0.0 and not link.inertia.any()


def _joint(run: Sequence[LinkSpec]) -> Joint | None:
    """The joint that a run of one-degree links forms, or None."""
    kinds = "".join(link.joint.kind[0].upper() for link in run)
    if kinds not in _TYPES or len({link.joint.actuated for link in run}) > 1:
        return None
    frame = Frame()
    axes = []
    for link in run:
        frame = frame @ link.joint.placement
        axes.append(_MergedAxis(frame.rotation[:, 2], frame.position))
    found = _TYPES[kinds](axes)
    if found is None:
        return None
    kind, sequence, placement = found
    first, last = (link.joint.name.removeprefix("joint") for link in (run[0], run[-1]))
    outlet, driven = placement.inverse() @ frame, run[0].joint.actuated
    name = f"joint{first}_{last}"
    return Joint(name, kind, placement, outlet, sequence=sequence, actuated=driven)


_Found = tuple[str, str, Frame] | None


def _universal(axes: Sequence[_MergedAxis]) -> _Found:
    """Two axes that meet at a right angle: ZX."""
    first, second = axes[:2]
    if not (_orthogonal(first, second) and _same(first.origin, second.origin)):
        return None
    return "universal", "ZX", _frame(first.direction, second.direction, first.origin)


def _spherical(axes: Sequence[_MergedAxis]) -> _Found:
    """Three axes that meet, the third along the first at q = 0: ZXZ."""
    first, _, third = axes
    placed = _universal(axes)
    if placed is None or not (
        _same(first.direction, third.direction) and _same(first.origin, third.origin)
    ):
        return None
    return "spherical", "ZXZ", placed[2]


def _cylindrical(axes: Sequence[_MergedAxis]) -> _Found:
    """A turn, then a slide along the same line."""
    turn, slide = axes
    apart = np.cross(slide.origin - turn.origin, turn.direction)
    if not (_same(turn.direction, slide.direction) and _same(apart, np.zeros(3))):
        return None
    across = np.eye(3)[int(np.argmin(np.abs(turn.direction)))]
    x = np.cross(across, turn.direction)
    return "cylindrical", "", _frame(turn.direction, x / np.linalg.norm(x), turn.origin)


def _planar(axes: Sequence[_MergedAxis]) -> _Found:
    """Two slides at right angles, then a turn about the normal x × y of their plane."""
    x, y, turn = axes
    if not (_orthogonal(x, y) and _same(np.cross(x.direction, y.direction), turn.direction)):
        return None
    return "planar", "", _frame(turn.direction, x.direction, turn.origin)


_TYPES: Final[dict[str, Callable[[Sequence[_MergedAxis]], _Found]]] = {
    "RR": _universal, "RRR": _spherical, "RP": _cylindrical, "PPR": _planar,
}  # fmt: skip


def _frame(z: Array, x: Array, origin: Array) -> Frame:
    return Frame(np.column_stack([x, np.cross(z, x), z]), origin)


def _orthogonal(a: _MergedAxis, b: _MergedAxis) -> bool:
    return bool(abs(a.direction @ b.direction) < _TOLERANCE)


def _same(a: Array, b: Array) -> bool:
    return bool(np.abs(a - b).max() < _TOLERANCE)
