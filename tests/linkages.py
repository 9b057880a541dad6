"""Overconstrained linkages of random size: they move although counting rows says they are locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import ramify as rf
from ramify.core.arrays import Array
from ramify.model.frame import Frame, from_rpy

TAU = 2.0 * np.pi


def bar(a: float, alpha: float, rng: np.random.Generator) -> tuple[Array, dict[str, Any]]:
    """The frame (4, 4) of the next hinge on a link (its z axis), a along x and alpha about it; and
    the mass of the link.
    """
    c, s = np.cos(alpha), np.sin(alpha)
    T = np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])
    m = float(rng.uniform(0.5, 2.0))
    thick = m * 0.02**2
    long = m * (a * a / 12.0 + 0.02**2)
    return T, {"mass": m, "com": (0.5 * a, 0.0, 0.0), "inertia": (thick, long, long)}


def ring(
    name: str, bars: Sequence[tuple[float, float]], rng: np.random.Generator, cut: int,
    guess: dict[str, float] | None = None, gravity: Any = (1.0, 2.0, -9.0),
    axes: Any = None,
) -> rf.Model:  # fmt: skip
    """A closed chain of hinges j1 … jn, link 1 on the ground: bars are (length, twist) from hinge
    to hinge. ``cut``: the hinge that closes the loop; ``axes``: rpy of the frame in which the rows
    of its position are written, as three connected points.
    """
    n = len(bars)
    linkage = rf.Mechanism(name, gravity=gravity)
    frames = []
    for i, (a, alpha) in enumerate(bars):
        T, mass = bar(a, alpha, rng)
        frames.append(T)
        if i:
            linkage.body(f"b{i}", **mass)
    for i in range(n):
        here = None if i == 0 else f"b{i}"  # the body before hinge i + 1
        ahead = None if i == n - 1 else f"b{i + 1}"
        T = frames[i]
        place = Frame(T[:3, :3], T[:3, 3])
        linkage.joint(f"j{i + 1}", (here, place), ahead, actuated=False)
    linkage.near(**{f"j{i}": x for i, x in ((int(k[1:]), v) for k, v in (guess or {}).items())})
    model = linkage.model(cut=[f"j{cut}"])
    return model if axes is None else in_axes(model, axes)


def in_axes(model: rf.Model, rpy: Any) -> rf.Model:
    """The same robot, its hinges that close loops turned about their own axes or, where they are
    ball joints, in any way: the rows are written in other axes.
    """
    loops = []
    for loop in model.loops:
        turn = from_rpy(*rpy) if loop.kind == "spherical" else from_rpy(0.0, 0.0, rpy[2])
        ends = [
            replace(end, frame=Frame(end.frame.rotation @ turn, end.frame.position))
            for end in (loop.first, loop.second)
        ]
        loops.append(replace(loop, first=ends[0], second=ends[1]))
    return replace(model, loops=tuple(loops))
