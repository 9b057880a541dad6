"""A walk at a glance: the robot from the side, its trunk, what its feet bear, and where the ground
presses.

Gravity says what is up, and the way the robot goes what is forward: the level axis of its world
along which it travels most, or, where it stays, the one along which it is longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final

import numpy as np

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.kernels.queries import kinematics
from ramify.model.skeleton import path_to_base
from ramify.runs.run_record import Run
from ramify.view.curves import pressed
from ramify.view.figures import Theme, blank, short, stroke
from ramify.view.surroundings import described_surroundings

FRAMES: Final = 7
"""Postures in the side view."""


@dataclass(frozen=True, eq=False)
class Directions:
    """Unit vectors (3,) of the robot's world: ``up``, and ``forward`` on the level, the projection
    of the world's axis ``name``.
    """

    up: Array
    forward: Array
    name: str


def directions(result: Run, contacts: Contacts) -> Directions:
    """Up and forward of a run on a ground."""
    up = np.array(contacts.up, dtype=np.float64)
    axes = np.eye(3) - np.outer(up, up)  # rows: the world's axes, as far as they are level
    lengths = np.linalg.norm(axes, axis=1)
    level = [i for i in range(3) if lengths[i] > 0.5]
    r = kinematics(result.model, result.q).position
    travel, extent = np.ptp(r[:, 0] @ axes.T, axis=0), np.ptp(r[0] @ axes.T, axis=0)
    measure = travel if travel[level].max() > 0.1 * extent[level].max() else extent
    best = max(level, key=lambda i: float(measure[i]))
    return Directions(up, axes[best] / lengths[best], "xyz"[best])


def walk(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Four panels of a run on a ground: side view; the trunk's tilt; the feet's loads; centre of
    pressure and support along the way.

    Raises RamifyError where the run had no ground.
    """
    contacts = result.contacts
    if contacts is None:
        raise RamifyError(
            "this run had no ground, so there is no walk to plot; see rf.simulate's ground="
        )
    way = directions(result, contacts)
    figure = blank(9.0, 5.2)
    grid = figure.add_gridspec(2, 3)
    _side(figure.add_subplot(grid[0, :]), result, way, theme)
    _tilt(figure.add_subplot(grid[1, 0]), result, theme)
    _loads(figure.add_subplot(grid[1, 1]), result, contacts, theme)
    _pressure(figure.add_subplot(grid[1, 2]), result, contacts, way, theme)
    return figure


def _side(axes: Any, result: Run, way: Directions, theme: Theme) -> None:
    """Postures side by side, up over forward: sticks from every body to those it carries and to its
    points of contact.
    """
    model, plane = result.model, np.stack([way.forward, way.up], axis=1)
    long, high = np.ptp(kinematics(model, result.q[0]).position @ plane, axis=0) + 0.1
    frames = int(np.clip(FRAMES * high / long, 4, FRAMES))  # as many as fit beside each other
    rows = np.unique(np.linspace(0, len(result.t) - 1, frames).round().astype(int))
    R, r = kinematics(model, result.q[rows])
    sticks = [(b, c, np.zeros(3)) for c, b in enumerate(model.parents) if b >= 0]
    sticks += [
        (b, b, np.array(point)) for b, body in enumerate(model.bodies) for _, point in body.points
    ]
    lines = np.array([[r[:, b], r[:, c] + R[:, c] @ at] for b, c, at in sticks]) @ plane
    lines[..., 0] -= r[:, 0] @ way.forward
    apart = 1.15 * float(np.ptp(lines[..., 0]))
    for (b, c, _), line in zip(sticks, lines, strict=True):
        colour = theme.ink if b == 0 else theme.lines[_branch(model.parents, c) % 2]
        for k in range(len(rows)):
            x, y = line[:, k, 0] + k * apart, line[:, k, 1]
            axes.plot(x, y, color=colour, linewidth=1.4, solid_capstyle="round")
    terrain = described_surroundings(result) or {"kind": "flat"}
    if terrain.get("kind") == "flat":
        axes.axhline(float(terrain.get("height", 0.0)), color=theme.ink, linewidth=0.8)
    axes.set_aspect("equal")
    axes.set_xticks(apart * np.arange(len(rows)), [f"{t:.3g} s" for t in result.t[rows]])
    axes.set_ylabel("height, m")


def _branch(parents: Sequence[int], body: int) -> int:
    """Which of the chains on the first body a body belongs to."""
    first = next(b for b in path_to_base(parents, body) if parents[b] <= 0)
    return [c for c, parent in enumerate(parents) if parent == 0].index(first)


def _tilt(axes: Any, result: Run, theme: Theme) -> None:
    """Turns of the first body away from where it started, as rotation vectors, in degrees."""
    from scipy.spatial.transform import Rotation

    R = kinematics(result.model, result.q).rotation[:, 0]
    turned: Array = np.degrees(Rotation.from_matrix(R @ R[0].T).as_rotvec())
    for i, name in enumerate("xyz"):
        axes.plot(result.t, turned[:, i], color=theme.lines[i], label=f"about {name}")
    _finish(axes, "tilt of the trunk, degrees")


def _loads(axes: Any, result: Run, contacts: Contacts, theme: Theme) -> None:
    touched = contacts.touching.any(axis=0).tolist()
    for i, body in enumerate(dict.fromkeys(compress(contacts.bodies, touched))):
        own = np.array([b == body for b in contacts.bodies])
        load = contacts.load[:, own].sum(axis=1)
        axes.plot(result.t, load, label=short(body), **stroke(theme, i))
    _finish(axes, "load on the feet, N")


def _pressure(axes: Any, result: Run, contacts: Contacts, way: Directions, theme: Theme) -> None:
    """Centre of pressure between the first and the last point that touches, along the way."""
    places = contacts.position @ way.forward
    aside = np.where(contacts.touching, 0.0, np.inf)
    none = ~contacts.touching.any(axis=1)
    low, high = (places + aside).min(axis=1), (places - aside).max(axis=1)
    low[none] = high[none] = np.nan
    look = {"color": theme.lines[0], "alpha": 0.25, "linewidth": 0.0, "label": "support"}
    axes.fill_between(result.t, low, high, **look)
    centre = pressed(result)
    if centre is not None:
        look = {"color": theme.lines[1], "linewidth": 1.0, "label": "centre of pressure"}
        axes.plot(result.t, centre @ way.forward, **look)
    _finish(axes, f"along {way.name}, m")


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel("t, s")
    axes.grid(True)
    axes.margins(x=0.0)
    look = {"fontsize": "x-small", "framealpha": 0.6, "edgecolor": "none"}
    axes.legend(frameon=True, labelspacing=0.2, borderpad=0.2, **look)
