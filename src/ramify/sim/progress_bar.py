"""The progress bar of a run: its time and the error of its energy."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class ProgressBar:
    """Shown at the first ``update``, at most ten times a second; ``close`` takes it away."""

    def __init__(self, title: str, t_end: float) -> None:
        self._title, self._t_end = title, t_end
        self._bar: Any = None
        self._shown = 0.0

    def update(self, t: float, energy_error: Callable[[], float]) -> None:
        if time.perf_counter() - self._shown < 0.1:
            return
        if self._bar is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                TimeRemainingColumn(),
                transient=True,
            )
            self._task = self._bar.add_task(self._title, total=self._t_end, state="")
            self._bar.start()
        self._shown = time.perf_counter()
        state = f"t = {t:.3f} s, energy error {energy_error():.1e} J"
        self._bar.update(self._task, completed=t, state=state)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
