"""The progress of a study: finished runs, their rate, the time left."""

from __future__ import annotations

import time

from ramify.core.bar import Bar


class StudyProgress:
    """A bar on the terminal or in a notebook, or nothing."""

    def __init__(self, name: str, total: int, shown: bool) -> None:
        self._name, self._total, self._shown = name, total, shown
        self._bar: Bar | None = None
        self._made = self._aside = 0
        self._started = time.perf_counter()

    def __enter__(self) -> StudyProgress:
        if self._shown:
            self._bar = Bar(self._name, self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    @property
    def rate(self) -> float:
        """Runs per second since the start."""
        return self._made / max(time.perf_counter() - self._started, 1e-9)

    def add(self, made: int, aside: int) -> None:
        """Count runs that have ended, and those of them that failed or were killed."""
        self._made += made
        self._aside += aside
        if self._bar is not None:
            failed = f", {self._aside} failed" if self._aside else ""
            text = f"{self._made}/{self._total}, {self.rate:.1f} runs/s{failed}"
            self._bar.update(self._made, text)
