"""A rollout as a table for notebooks: the spread of each coordinate over its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.html import Markup, facts, scrolled, sparkline, table

MOST_COORDINATES: Final = 12
MOST_SAMPLES: Final = 100


def rollout_html(t: Array, q: Array, status: str, lead: int, names: Sequence[str]) -> str:
    """Facts, and for the first coordinates the least, median and largest number at the end, with
    curves of the three over time where there is a history. q (..., samples, nq) or (..., nq), with
    ``lead`` axes of states.
    """
    rows = q.reshape(-1, t.size, q.shape[-1]) if q.ndim > lead + 1 else None
    last = q.reshape(-1, q.shape[-1]) if rows is None else rows[:, -1]
    said = facts({"states": len(last), "until": f"{t.flat[-1]:.6g} s", "status": status})
    good = np.isfinite(last).all(axis=1)
    if not good.any():
        return said
    cells = []
    for k, name in enumerate(names[:MOST_COORDINATES]):
        low, middle, high = np.quantile(last[good, k], [0.0, 0.5, 1.0]).tolist()
        curves: Markup | str = ""
        if rows is not None and t.size > 1:
            kept = np.linspace(0, t.size - 1, min(t.size, MOST_SAMPLES)).astype(int)
            spread = np.quantile(rows[good][:, kept, k], [0.0, 0.5, 1.0], axis=0)
            curves = sparkline(*spread.tolist())
        cells.append((name, low, middle, high, curves))
    columns = ("coordinate", "least", "median", "largest", "over time")
    more = len(names) - len(cells)
    note = f"<p>and {more} coordinates more</p>" if more > 0 else ""
    return said + scrolled(table(columns, cells, (1, 2, 3))) + note
