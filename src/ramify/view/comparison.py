"""Two runs of one robot beside one another: the second at the times of the first, and by how much
they differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.html import html_table
from ramify.core.messages import pretty
from ramify.runs.run_record import Run, the_run
from ramify.view.curves import Chart, Curve, by_unit

WHAT: Final = {"q": "coordinates", "v": "velocities", "tau": "forces"}


@dataclass(frozen=True)
class Difference:
    """The largest difference of a column (first minus second), when it occurs, and the root mean
    square over the common time.
    """

    what: str
    name: str
    largest: float
    time: float
    rms: float
    unit: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """A ``first`` and a ``second`` run of robots with the same coordinates. ``t`` (T,): the times
    of the first that the second covers too; ``second_at`` (T, …) are q, v and tau of the second at
    these times, interpolated linearly.
    """

    first: Run
    second: Run
    t: Array
    rows: Any
    second_at: dict[str, Array]

    def difference(self, what: str) -> Array:
        """First minus second (T, …) of "q", "v" or "tau"."""
        found: Array = getattr(self.first, what)[self.rows] - self.second_at[what]
        return found

    @property
    def differences(self) -> list[Difference]:
        """One for each column of q, v and tau."""
        rows = []
        for what in WHAT:
            apart = self.difference(what)
            for i, name in enumerate(self.first.columns[what]):
                size = np.abs(apart[:, i])
                if not np.isfinite(size).any():
                    continue
                k = int(np.nanargmax(size))
                rms = float(np.sqrt(np.nanmean(size**2)))
                unit = self.first.units[what][i]
                rows.append(Difference(what, name, float(apart[k, i]), float(self.t[k]), rms, unit))
        return rows

    def __str__(self) -> str:
        head = f"{'':4} {'column':24} {'largest':>12} {'at, s':>9} {'RMS':>12}  unit"
        rows = [
            f"{d.what:4} {d.name[:24]:24} {d.largest:12.4g} {d.time:9.4g} {d.rms:12.4g}  {d.unit}"
            for d in self.differences
        ]
        return "\n".join([head, *rows])

    def _repr_html_(self) -> str:
        columns = ("quantity", "column", "largest difference", "unit", "at, s", "RMS")
        rows = [
            (d.what, d.name, d.largest, pretty(d.unit), d.time, d.rms) for d in self.differences
        ]
        return html_table(columns, rows, right=(2, 4, 5))

    def charts(self) -> list[Chart]:
        """The differences over time, a chart for each unit; NaN where the second run has ended."""
        charts = []
        for what, word in WHAT.items():
            apart = np.full_like(getattr(self.first, what), np.nan)
            apart[self.rows] = self.difference(what)
            names, title = self.first.columns[what], f"Difference of joint {word}, first − second"
            for unit, columns in by_unit(self.first.units[what]).items():
                curves = tuple(Curve(names[i], apart[:, i]) for i in columns)
                charts.append(Chart(title, pretty(unit), ("Differences",), curves))
        return charts

    def ghost(self, times: Array) -> Array:
        """q (T, nq) of the second run at times; before its start and after its end it stands."""
        return _at(self.second, "q", times)


def compared(first: Run, second: Run) -> Comparison:
    """Two runs beside one another. Raises RamifyError where their robots have other coordinates, or
    the runs no time in common.
    """
    the_run(second)
    for what in ("q", "v"):
        if first.columns[what] != second.columns[what]:
            raise RamifyError(
                f"{first.model.name} and {second.model.name} have different coordinates; two runs "
                "are compared only where these are the same"
            )
    rows = np.flatnonzero((first.t >= second.t[0]) & (first.t <= second.t[-1]))
    if not len(rows):
        raise RamifyError(
            f"the runs have no time in common: {first.t[0]:g} … {first.t[-1]:g} s and "
            f"{second.t[0]:g} … {second.t[-1]:g} s"
        )
    t = first.t[rows]
    return Comparison(first, second, t, rows, {what: _at(second, what, t) for what in WHAT})


def _at(run: Run, what: str, times: Array) -> Array:
    """Columns of a run at other times; quaternions are of unit length again."""
    values: Array = getattr(run, what)
    found = np.stack([np.interp(times, run.t, column) for column in values.T], axis=1)
    if what == "q":
        for i, _ in run.model.layout.balls:
            part = found[:, i : i + 4]
            found[:, i : i + 4] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return found
