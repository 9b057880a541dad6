"""Plots of a run, as Matplotlib figures: what was simulated beside what was desired, energies, the
audit, phase portraits; and the torques that a motion takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import ModelError, RamifyError
from ramify.core.names import a_text, names_of, one_of
from ramify.model.robot import joint_entries
from ramify.runs.audit import audited
from ramify.runs.run_record import Run
from ramify.view.curves import desired_columns, energy_curves, momenta, pressed
from ramify.view.figures import (
    DASHED,
    PANELS,
    SVG,
    THEMES,
    Theme,
    blank,
    legend,
    logarithmic,
    over_time,
    panels,
    refuse_many,
    save_picture,
    short,
    stroke,
    style,
    unit_text,
)
from ramify.view.torque_speed import torque_speed
from ramify.view.walking import walk

What = Literal[
    "q", "v", "a", "tau", "energy", "momentum", "audit", "phase", "contacts", "loops", "walk",
    "drives",
]  # fmt: skip
"""The plots that a run offers."""


def plot_run(
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
    if not isinstance(what, str) or what not in PLOTS:
        raise RamifyError(f"there is no plot {what!r}; choose one of {', '.join(PLOTS)}")
    one_of("theme", theme, tuple(THEMES))
    a_text("title", title)
    chosen = _chosen(result, joints, "q" if what in ("q", "phase") else "v")
    if what == "tau" and joints is None:  # joints that nothing drives show nothing
        chosen = np.flatnonzero((result.tau != 0.0).any(axis=0)).tolist() or chosen
    words, draw = PLOTS[what]
    with style(THEMES[theme]):
        figure = draw(result, chosen, THEMES[theme])
        figure.suptitle(title if title is not None else f"{short(result.model.name)}: {words}")
    return figure


def plot_torques(
    t: ArrayLike,
    tau: ArrayLike,
    names: Sequence[str],
    units: Sequence[str],
    path: str | Path,
    *,
    title: str = "",
) -> None:
    """Write a plot of joint torques tau (T, n) over the times t (T,) in s. The file's suffix names
    the format.
    """
    values = np.asarray(tau, dtype=np.float64)
    with style(more=SVG):
        figure = _columns(np.asarray(t), values, names, units, THEMES["light"])
        figure.suptitle(title)
        save_picture(figure, path, dpi=150)


def _chosen(result: Run, joints: Sequence[str] | None, of: Literal["q", "v"]) -> list[int]:
    """Columns of q or v that belong to some joints, or all."""
    model = result.model
    if joints is None:
        return list(range(model.nq if of == "q" else model.nv))
    if isinstance(joints, str):
        raise ModelError(f"joints must be a list of names; got the text {joints!r}")
    names = names_of("joints", joints)
    if not names:
        raise ModelError("joints is empty; name at least one, or leave it out to draw all")
    return [i for name in names for i in joint_entries(model, name, of)]


def _series(what: str) -> Callable[[Run, list[int], Theme], Any]:
    def draw(result: Run, chosen: list[int], theme: Theme) -> Any:
        wanted = desired_columns(result, what)
        names, units = ([of[what][i] for i in chosen] for of in (result.columns, result.units))
        values: Array = getattr(result, what)[:, chosen]
        desired = None if wanted is None else wanted[:, chosen]
        return _columns(result.t, values, names, units, theme, f"{what}, ", desired)

    return draw


def _columns(
    t: Array, values: Array, names: Sequence[str], units: Sequence[str], theme: Theme,
    what: str = "", wanted: Array | None = None,
) -> Any:  # fmt: skip
    """A panel per column over time, the desired motion dashed; many columns share one panel."""
    if len(names) > PANELS:
        from matplotlib import colormaps

        figure = blank(9.0, 4.5)
        panel = figure.subplots()
        for k, column in enumerate(values.T):
            colour = colormaps[theme.map](0.1 + 0.8 * k / (len(names) - 1))
            panel.plot(t, column, color=colour, linewidth=0.9)
        words = "coordinates, from the first (dark) to the last (light)"
        over_time(
            panel, t, ", ".join(dict.fromkeys(map(unit_text, units))), f"{len(names)} {words}"
        )
        panel.grid(True)
        return figure
    figure, axes = panels(len(names))
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    for k, panel in enumerate(axes):
        if wanted is not None and np.isfinite(wanted[:, k]).any():
            look = DASHED | {"color": theme.lines[1], "linewidth": 2.4}
            panel.plot(t, wanted[:, k], label="desired", **look)
        panel.plot(t, values[:, k], color=theme.lines[0], linewidth=1.4, label="simulated")
        over_time(panel, t, f"{what}{unit_text(units[k])}", short(names[k]))
        _flatten(panel, values[:, k], largest)
    if wanted is not None and axes:
        legend(axes[0])
    return figure


def _flatten(panel: Any, values: Array, largest: float) -> None:
    """A curve that is constant but for rounding, its own or that of the largest, is drawn flat."""
    low, high = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
    size = max(abs(low), abs(high))
    if np.isfinite(values[0]) and (high - low <= 1e-12 * size or size <= 1e-12 * largest):
        middle = float(values[0]) if size > 1e-12 * largest else 0.0
        panel.set_ylim(middle - 1.0, middle + 1.0)


def _phase(result: Run, chosen: list[int], theme: Theme) -> Any:
    """v over q, a panel per coordinate; quaternions, which have no such rate, are left out."""
    rate = result.model.layout.to_v
    drawn = [i for i in chosen if i in rate]
    if not drawn:
        raise RamifyError(
            "a phase portrait needs a coordinate that has a rate; quaternions have none"
        )
    refuse_many(len(drawn), "phase portraits", "phase")
    figure, axes = panels(len(drawn))
    for panel, i in zip(axes, drawn, strict=True):
        j = rate[i]
        if result.desired is not None:
            desired = result.desired.q[:, i], result.desired.v[:, j]
            panel.plot(*desired, color=theme.lines[1], label="desired", **DASHED)
        q, v = result.q[:, i], result.v[:, j]
        panel.plot(q, v, color=theme.lines[0], linewidth=1.3, label="simulated")
        panel.plot(q[:1], v[:1], "o", color=theme.ink, markersize=4, label="start")
        panel.set_title(short(result.columns["q"][i]), loc="left")
        panel.set_xlabel(f"q, {unit_text(result.units['q'][i])}")
        panel.set_ylabel(f"v, {unit_text(result.units['v'][j])}")
    legend(axes[0])
    return figure


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
                panel.plot(result.t, values[:, k], label=short(point), **stroke(theme, k))
        over_time(panel, result.t, unit, name)
    centre = pressed(result)
    for k, axis in enumerate("xyz"):
        if centre is not None and abs(up[k]) < 0.9:
            axes[3].plot(result.t, centre[:, k], color=theme.lines[k], linewidth=1.2, label=axis)
    over_time(axes[3], result.t, "m", "centre of pressure")
    if contacts.touching.any():
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    legend(axes[3])
    return figure


def _energy(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Kinetic energy, potential energy and work since the start, and the balance, which should be
    constant.
    """
    figure, (panel,) = panels(1)
    figure.set_size_inches(8.0, 4.5)
    chart = energy_curves(result)
    for k, curve in enumerate(chart.curves):
        look = stroke(theme, k) | {"linewidth": 1.5, "label": curve.name}
        if curve.dashed:
            label = f"{curve.name}: should not change"
            look |= {"color": theme.ink, "linestyle": (0, (4, 2)), "linewidth": 1.2, "label": label}
        panel.plot(result.t, curve.y, **look)
    over_time(panel, result.t, f"energy, {chart.unit}")
    legend(panel)
    return figure


def _momentum(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Linear momentum, and angular momentum about the centre of mass, along the world's axes."""
    found = momenta(result)
    figure, axes = panels(len(found))
    for panel, chart in zip(axes, found, strict=True):
        for k, curve in enumerate(chart.curves):
            panel.plot(result.t, curve.y, label=curve.name, **stroke(theme, k))
        over_time(panel, result.t, chart.unit, chart.title)
        legend(panel)
    return figure


def _loops(result: Run, chosen: list[int], theme: Theme) -> Any:
    """Multipliers over time, and how far the loops are open, loop by loop."""
    loops = result.loops
    if loops is None:
        raise RamifyError(f"{result.model.name} has no loops to plot")
    figure, (forces, gaps) = panels(2)
    for i, name in enumerate(loops.names):
        forces.plot(result.t, loops.multipliers[:, i], label=short(name), **stroke(theme, i))
    start = 0
    for k, loop in enumerate(result.model.loops):
        gap = np.abs(loops.gap[:, start : start + len(loop.rows)]).max(axis=1)
        shown = np.where(gap > 0.0, gap, np.nan)  # a logarithm has no place for an exact zero
        gaps.plot(result.t, shown, label=short(loop.name), **stroke(theme, k))
        start += len(loop.rows)
    if gaps.lines and any(np.isfinite(line.get_ydata()).any() for line in gaps.lines):
        logarithmic(gaps)
    over_time(forces, result.t, "multiplier, N or N m")
    over_time(gaps, result.t, "gap, m or 1")
    lines = (len(loops.names) if len(loops.names) <= 20 else 0) + len(result.model.loops)
    # room beside the panels, where legends lie over no curve
    figure.set_size_inches(10.2, max(2.8, 0.19 * (lines + 4)))
    for panel, side, title, most in (
        (forces, "upper", "multipliers", 20), (gaps, "lower", "gaps", 12)
    ):  # fmt: skip
        if len(panel.lines) <= most:
            place = f"outside right {side}"
            figure.legend(*panel.get_legend_handles_labels(), loc=place, title=title)
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
        limit = {"color": theme.lines[2], "linestyle": (0, (4, 2)), "label": "limit"}
        panel.axhline(check.limit / scale, **limit)
        if check.first is not None:
            at = result.t[check.first]
            panel.axvline(at, color=theme.alarm, linewidth=1.2, label=f"breaks at {at:.4g} s")
        if np.isfinite(shown).any() or check.limit > 0.0:
            logarithmic(panel)
        verdict = "passed" if check.passed else "failed"
        over_time(panel, result.t, what, f"{check.name}: {verdict}")
        legend(panel)
    return figure


PLOTS: Final[dict[str, tuple[str, Callable[[Run, list[int], Theme], Any]]]] = {
    "q": ("joint coordinates", _series("q")),
    "v": ("joint velocities", _series("v")),
    "a": ("joint accelerations", _series("a")),
    "tau": ("joint forces", _series("tau")),
    "energy": ("energy", _energy),
    "momentum": ("momentum", _momentum),
    "audit": ("energy audit", _audit),
    "phase": ("phase portraits", _phase),
    "contacts": ("contact with the ground", _contacts),
    "loops": ("closed loops", _loops),
    "walk": ("walk", walk),
    "drives": ("force over speed of the drives", torque_speed),
}
"""The plots by name: a title, and what draws them."""
