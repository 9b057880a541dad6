"""Plots of a run, as Matplotlib figures: what was simulated beside what was desired, energies, the
audit, phase portraits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError, RamifyError
from ramify.core.names import one_of
from ramify.sim.audit import audited
from ramify.sim.run_record import Run
from ramify.view.curves import desired_columns, energies, momenta, pressed
from ramify.view.figures import (
    THEMES,
    Theme,
    flatten,
    legend,
    logarithmic,
    over_time,
    panels,
    short,
    stroke,
    style,
    together,
    unit_text,
)
from ramify.view.plots import PANELS
from ramify.view.torque_speed import torque_speed
from ramify.view.walking import walk

TITLES: Final = {
    "q": "joint coordinates",
    "v": "joint velocities",
    "a": "joint accelerations",
    "tau": "joint forces",
}


What = Literal[
    "q", "v", "a", "tau", "energy", "momentum", "audit", "phase", "contacts", "loops", "walk",
    "drives",
]  # fmt: skip
"""The plots that a run offers."""


def plot(
    result: Run,
    what: str,
    *,
    joints: Sequence[str] | None = None,
    theme: str = "light",
    title: str | None = None,
) -> Any:
    """See Result.plot. Raises RamifyError for an unknown plot, theme or joint, and where Matplotlib
    is missing.
    """
    drawers: dict[str, Callable[[Run, list[int], Theme], Any]] = {
        "energy": _energy,
        "momentum": _momentum,
        "audit": _audit,
        "phase": _phase,
        "contacts": _contacts,
        "loops": _loops,
        "walk": walk,
        "drives": torque_speed,
    }
    known = [*TITLES, *drawers]
    if not isinstance(what, str) or what not in known:
        raise RamifyError(f"there is no plot {what!r}; choose one of {', '.join(known)}")
    one_of("theme", theme, tuple(THEMES))
    colours = THEMES[theme]
    chosen = _chosen(result, joints, "q" if what in ("q", "phase") else "v")
    if what == "tau" and joints is None:  # joints that nothing drives show nothing
        chosen = np.flatnonzero((result.tau != 0.0).any(axis=0)).tolist() or chosen
    with style(colours):
        figure = (
            drawers[what](result, chosen, colours)
            if what in drawers
            else _series(result, what, chosen, colours)
        )
        words = f"{short(result.model.name)}: {TITLES.get(what, _WORDS.get(what, what))}"
        figure.suptitle(title if title is not None else words)
    return figure


_WORDS: Final = {
    "phase": "phase portraits",
    "audit": "energy audit",
    "energy": "energy",
    "momentum": "momentum",
    "contacts": "contact with the ground",
    "loops": "closed loops",
    "walk": "walk",
    "drives": "force over speed of the drives",
}


def _chosen(result: Run, joints: Sequence[str] | None, of: str) -> list[int]:
    """Columns of q or v that belong to some joints, or all."""
    model = result.model
    if joints is None:
        return list(range(model.nq if of == "q" else model.nv))
    if isinstance(joints, str):
        raise ModelError(f"joints must be a list of names; got the text {joints!r}")
    if not joints:
        raise ModelError("joints is empty; name at least one, or leave it out to draw all")
    every = range(model.nq if of == "q" else model.nv)
    return [
        i for name in joints for i in every[model.joint_slice(name, of="q" if of == "q" else "v")]
    ]


def _series(result: Run, what: str, chosen: list[int], theme: Theme) -> Any:
    """A panel per column over time, the desired motion dashed; many columns share one panel."""
    values: Array = getattr(result, what)
    wanted = desired_columns(result, what)
    names, units = result.columns[what], result.units[what]
    if len(chosen) > PANELS:
        figure, panel = together(result.t, values[:, chosen], theme.map, 0.1, 0.9)
        words = "coordinates, from the first (blue) to the last (yellow)"
        panel.set_title(f"{len(chosen)} {words}", loc="left")
        shown = dict.fromkeys(unit_text(units[i]) for i in chosen)
        panel.set_ylabel(", ".join(shown))
        return figure
    figure, axes = panels(len(chosen))
    for panel, i in zip(axes, chosen, strict=True):
        if wanted is not None and np.isfinite(wanted[:, i]).any():
            panel.plot(
                result.t,
                wanted[:, i],
                color=theme.lines[1],
                linewidth=2.4,
                linestyle=(0, (3, 2)),
                label="desired",
            )
        panel.plot(result.t, values[:, i], color=theme.lines[0], linewidth=1.4, label="simulated")
        panel.set_title(short(names[i]), loc="left")
        panel.set_ylabel(f"{what}, {unit_text(units[i])}")
        panel.set_xlabel("t, s")
        panel.margins(x=0.0)
        flatten(panel, values[:, i])
    if wanted is not None and axes:
        legend(axes[0])
    return figure


def _phase(result: Run, chosen: list[int], theme: Theme) -> Any:
    """v over q, a panel per coordinate; quaternions, which have no such rate, are left out."""
    rate = dict(zip(result.model.layout.plain_q, result.model.layout.plain_v, strict=True))
    drawn = [i for i in chosen if i in rate]
    if not drawn:
        raise RamifyError(
            "a phase portrait needs a coordinate that has a rate; quaternions have none"
        )
    if len(drawn) > PANELS:
        raise RamifyError(
            f"{len(drawn)} phase portraits are too many for a figure; name up to {PANELS} joints: "
            "plot('phase', joints=[…])"
        )
    figure, axes = panels(len(drawn))
    for panel, i in zip(axes, drawn, strict=True):
        j = rate[i]
        if result.desired is not None:
            panel.plot(
                result.desired.q[:, i],
                result.desired.v[:, j],
                color=theme.lines[1],
                linestyle=(0, (3, 2)),
                label="desired",
            )
        panel.plot(
            result.q[:, i], result.v[:, j], color=theme.lines[0], linewidth=1.3, label="simulated"
        )
        panel.plot(
            result.q[:1, i], result.v[:1, j], "o", color=theme.ink, markersize=4, label="start"
        )
        panel.set_title(short(result.columns["q"][i]), loc="left")
        panel.set_xlabel(f"q, {unit_text(result.units['q'][i])}")
        panel.set_ylabel(f"v, {unit_text(result.units['v'][j])}")
    legend(axes[0])
    return figure


# ---- contact ----


def _contacts(result: Run, chosen: list[int], theme: Theme) -> Any:
    """What the contact points felt: upward force, friction, depth (negative: above the ground), and
    the centre of pressure.
    """
    contacts = result.contacts
    if contacts is None:
        raise RamifyError("this run has no contacts: it had no ground")
    up = np.array(contacts.up)
    aside = contacts.force - contacts.load[..., None] * up
    figure, axes = panels(4, across=2)
    shown = [
        ("upward force", "N", contacts.load),
        ("force along the level", "N", np.linalg.norm(aside, axis=2)),
        ("depth in the ground", "mm", 1e3 * np.maximum(contacts.penetration, 0.0)),
    ]
    for panel, (name, unit, values) in zip(axes, shown, strict=False):
        for k, point in enumerate(contacts.names):
            if contacts.touching[:, k].any():
                panel.plot(
                    result.t, values[:, k], linewidth=1.2, label=short(point), **stroke(theme, k)
                )
        over_time(panel, result, unit, name)
    centre = pressed(result)
    for k, axis in enumerate("xyz"):
        if centre is not None and abs(up[k]) < 0.9:
            axes[3].plot(result.t, centre[:, k], color=theme.lines[k], linewidth=1.2, label=axis)
    over_time(axes[3], result, "m", "centre of pressure")
    if contacts.touching.any():
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    legend(axes[3])
    return figure


# ---- energy ----


def _energy(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Kinetic energy, potential energy and work since the start, and the balance, which should be
    constant.
    """
    figure, (panel,) = panels(1)
    figure.set_size_inches(8.0, 4.5)
    chart = energies(result)
    for k, curve in enumerate(chart.curves):
        look = stroke(theme, k) | {"linewidth": 1.5, "label": curve.name}
        if curve.dashed:
            look |= {"color": theme.ink, "linestyle": (0, (4, 2)), "linewidth": 1.2}
            look |= {"label": f"{curve.name}: should not change"}
        panel.plot(result.t, curve.y, **look)
    panel.set_xlabel("t, s")
    panel.set_ylabel(f"energy, {chart.unit}")
    panel.margins(x=0.0)
    legend(panel)
    return figure


def _momentum(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Linear momentum, and angular momentum about the centre of mass, along the world's axes."""
    found = momenta(result)
    figure, axes = panels(len(found))
    for panel, chart in zip(axes, found, strict=True):
        for k, curve in enumerate(chart.curves):
            panel.plot(result.t, curve.y, linewidth=1.3, label=curve.name, **stroke(theme, k))
        over_time(panel, result, chart.unit, chart.title)
        legend(panel)
    return figure


def _loops(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Multipliers over time, and how far the loops are open, loop by loop."""
    loops = result.loops
    if loops is None:
        raise RamifyError(f"{result.model.name} has no loops to plot")
    figure, (forces, gaps) = panels(2)
    for i, name in enumerate(loops.names):
        forces.plot(
            result.t, loops.multipliers[:, i], linewidth=1.3, label=short(name), **stroke(theme, i)
        )
    start = 0
    for k, loop in enumerate(result.model.loops):
        gap = np.abs(loops.gap[:, start : start + len(loop.rows)]).max(axis=1)
        shown = np.where(gap > 0.0, gap, np.nan)  # a logarithm has no place for an exact zero
        gaps.plot(result.t, shown, linewidth=1.2, label=short(loop.name), **stroke(theme, k))
        start += len(loop.rows)
    if gaps.lines and any(np.isfinite(line.get_ydata()).any() for line in gaps.lines):
        logarithmic(gaps)
    over_time(forces, result, "multiplier, N or N m")
    over_time(gaps, result, "gap, m or 1")
    lines = (len(loops.names) if len(loops.names) <= 20 else 0) + len(result.model.loops)
    figure.set_size_inches(
        10.2, max(2.8, 0.19 * (lines + 4))
    )  # room beside the panels, where legends lie over no curve
    if len(loops.names) <= 20:
        figure.legend(
            *forces.get_legend_handles_labels(), loc="outside right upper", title="multipliers"
        )
    if len(result.model.loops) <= 12:
        figure.legend(*gaps.get_legend_handles_labels(), loc="outside right lower", title="gaps")
    return figure


def _audit(result: Run, chosen: list[int], theme: Theme) -> Any:
    """The error of each check as a share of its scale, with its limit and the row where it first
    breaks.
    """
    checks = audited(result).checks
    figure, axes = panels(len(checks))
    if len(checks) == 1:
        figure.set_size_inches(8.0, 4.0)
    for panel, check in zip(axes, checks, strict=True):
        scale = check.scale or 1.0
        what = "error / scale" if check.scale else f"error, {unit_text(check.unit)}"
        # a logarithm has no place for an exact zero
        shown = np.where(check.error == 0.0, np.nan, np.abs(check.error) / scale)
        panel.plot(result.t, shown, color=theme.lines[0], linewidth=1.2, label="error")
        panel.axhline(
            check.limit / scale, color=theme.lines[2], linestyle=(0, (4, 2)), label="limit"
        )
        if check.first is not None:
            panel.axvline(
                result.t[check.first],
                color=theme.alarm,
                linewidth=1.2,
                label=f"breaks at {result.t[check.first]:.4g} s",
            )
        if np.isfinite(shown).any() or check.limit > 0.0:
            logarithmic(panel)
        over_time(panel, result, what, f"{check.name}: {'passed' if check.passed else 'failed'}")
        legend(panel)
    return figure
