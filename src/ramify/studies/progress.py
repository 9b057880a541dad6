"""The progress of a study: finished runs, their rate, the time left."""

from __future__ import annotations

import time
from typing import Any


class StudyProgress:
    """A bar on the terminal, or nothing."""

    def __init__(self, name: str, total: int, shown: bool) -> None:
        self._name, self._total, self._shown = name, total, shown
        self._bar: Any = None
        self._made = self._aside = 0
        self._started = time.perf_counter()

    def __enter__(self) -> StudyProgress:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task(self._name, total=self._total, rate="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def rate(self) -> float:
        """Runs per second since the start."""
        return self._made / max(time.perf_counter() - self._started, 1e-9)

    def add(self, made: int, aside: int) -> None:
        """Count runs that have ended, and those of them that failed or were killed."""
        self._made += made
        self._aside += aside
        if self._bar is not None:
            text = f"{self.rate:.1f} runs/s" + (f", {self._aside} failed" if self._aside else "")
            self._bar.update(self._task, completed=self._made, rate=text)
