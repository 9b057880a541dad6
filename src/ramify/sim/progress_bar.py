"""The progress bar of a run: its time and the error of its energy."""

from __future__ import annotations

import time
from collections.abc import Callable

from ramify.core.bar import Bar


class ProgressBar:
    """Shown at the first ``update``, at most ten times a second; ``close`` takes it away."""

    def __init__(self, title: str, t_end: float) -> None:
        self._title, self._t_end = title, t_end
        self._bar: Bar | None = None
        self._shown = 0.0

    def update(self, t: float, energy_error: Callable[[], float]) -> None:
        if time.perf_counter() - self._shown < 0.1:
            return
        if self._bar is None:
            self._bar = Bar(self._title, self._t_end, transient=True)
        self._shown = time.perf_counter()
        self._bar.update(t, f"t = {t:.3f} s, energy error {energy_error():.1e} J")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
