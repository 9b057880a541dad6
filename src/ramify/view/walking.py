"""A walk at a glance: the robot from the side, its trunk, what its feet bear, and where the ground
presses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.kernels.questions import kinematics
from ramify.motion.support import measured_balance
from ramify.sim.record import Run
from ramify.view.curves import pressed

if TYPE_CHECKING:
    from ramify.view.run_plots import Theme

FRAMES: Final = 7
"""Postures in the side view."""


def walk(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Four panels of a run on a ground: side view; the trunk's tilt; the feet's loads; centre of
    pressure and support along x.

    Raises RamifyError where the run had no ground.
    """
    from matplotlib.figure import Figure

    if result.contacts is None:
        raise RamifyError(
            "this run had no ground, so there is no walk to plot; see rf.simulate's ground="
        )
    figure = Figure(figsize=(9.0, 5.2), layout="constrained")
    grid = figure.add_gridspec(2, 3)
    _side(figure.add_subplot(grid[0, :]), result, theme)
    _tilt(figure.add_subplot(grid[1, 0]), result, theme)
    _loads(figure.add_subplot(grid[1, 1]), result, theme)
    _pressure(figure.add_subplot(grid[1, 2]), result, theme)
    return figure


def _side(axes: Any, result: Run, theme: Theme) -> None:
    """Postures side by side, seen along y: sticks from every body to those it carries and to its
    points of contact.
    """
    model = result.model
    R, r = kinematics(model, result.q[:1])
    long, high = (float(np.ptp(r[0, :, i])) + 0.1 for i in (0, 2))
    frames = int(np.clip(FRAMES * high / long, 4, FRAMES))  # as many as fit beside each other
    rows = np.unique(np.linspace(0, len(result.t) - 1, frames).round().astype(int))
    R, r = kinematics(model, result.q[rows])
    sticks: list[tuple[int, int, Array | None]] = [
        (b, c, None) for c, child in enumerate(model.bodies) if (b := child.parent) >= 0
    ]
    sticks += [
        (b, b, np.array(point)) for b, body in enumerate(model.bodies) for _, point in body.points
    ]
    lines = np.array(
        [
            [r[:, b], r[:, c] if point is None else r[:, c] + R[:, c] @ point]
            for b, c, point in sticks
        ]
    )
    lines = lines - r[None, None, :, 0] * [1.0, 0.0, 0.0]
    apart = 1.15 * float(np.ptp(lines[..., 0]))
    for (b, c, _), ends in zip(sticks, lines, strict=True):
        colour = theme.ink if b == 0 else theme.lines[_branch(model.parents, c) % 2]
        for k in range(len(rows)):
            axes.plot(
                ends[:, k, 0] + k * apart,
                ends[:, k, 2],
                color=colour,
                linewidth=1.4,
                solid_capstyle="round",
            )
    axes.axhline(0.0, color=theme.ink, linewidth=0.8)
    axes.set_aspect("equal")
    axes.set_xticks(
        [k * apart for k in range(len(rows))], [f"{result.t[row]:.3g} s" for row in rows]
    )
    axes.set_ylabel("z, m")


def _branch(parents: Sequence[int], body: int) -> int:
    """Which of the chains on the first body a body belongs to."""
    while parents[body] > 0:
        body = parents[body]
    return [c for c, parent in enumerate(parents) if parent == 0].index(body)


def _tilt(axes: Any, result: Run, theme: Theme) -> None:
    """Turns of the first body away from where it started, as rotation vectors, in degrees."""
    from scipy.spatial.transform import Rotation

    R = kinematics(result.model, result.q).rotation[:, 0]
    turned: Array = np.degrees(Rotation.from_matrix(R @ R[0].T).as_rotvec())
    for i, name in enumerate("xyz"):
        axes.plot(result.t, turned[:, i], color=theme.lines[i], label=f"about {name}")
    _finish(axes, "tilt of the trunk, degrees")


def _loads(axes: Any, result: Run, theme: Theme) -> None:
    from ramify.view.run_plots import short, stroke

    contacts = result.contacts
    assert contacts is not None
    touched = contacts.touching.any(axis=0)
    bodies = list(
        dict.fromkeys(
            body for body, touches in zip(contacts.bodies, touched, strict=True) if touches
        )
    )
    for i, body in enumerate(bodies):
        own = np.array([b == body for b in contacts.bodies])
        axes.plot(
            result.t,
            contacts.load[:, own].sum(axis=1),
            label=short(body),
            linewidth=1.0,
            **stroke(theme, i),
        )
    _finish(axes, "load on the feet, N")


def _pressure(axes: Any, result: Run, theme: Theme) -> None:
    balance = measured_balance(result)
    ends = np.array([(polygon[:, 0].min(), polygon[:, 0].max()) for polygon in balance.polygons])
    axes.fill_between(
        result.t,
        ends[:, 0],
        ends[:, 1],
        color=theme.lines[0],
        alpha=0.25,
        linewidth=0.0,
        label="support",
    )
    centre = pressed(result)
    assert centre is not None
    axes.plot(
        result.t, centre[:, 0], color=theme.lines[1], linewidth=1.0, label="centre of pressure"
    )
    _finish(axes, "along x, m")


def _finish(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel("t, s")
    axes.grid(True)
    axes.margins(x=0.0)
    axes.legend(
        fontsize="x-small",
        frameon=True,
        framealpha=0.6,
        edgecolor="none",
        labelspacing=0.2,
        borderpad=0.2,
    )
