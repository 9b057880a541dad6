"""The waiting runs of a study, divided into tasks for the workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ramify.studies.work import Outcome, Task

TASK_SECONDS: Final = 0.5
TASK_BYTES: Final = 4 << 20
MOST_IN_TASK: Final = 256
"""Limits of a task: its computing time, the size of what it returns, its number of runs."""


class Tasks:
    """Waiting runs divided into tasks: small ones first, then about half a second each, small again
    towards the end.
    """

    def __init__(
        self, rows: Sequence[tuple[int, bytes, bytes]], parameters: int, token: str
    ) -> None:
        self.total, self.lanes, self._token = len(rows), 1, token
        self._numbers = [number for number, _, _ in rows]
        self._values = np.frombuffer(b"".join(row for _, _, row in rows), dtype=np.float64).reshape(
            len(rows), parameters
        )
        self._next, self._lock = 0, threading.Lock()
        self._made, self._seconds, self._bytes = 0, 0.0, 0

    def __iter__(self) -> Iterator[Task]:
        return self

    def __next__(self) -> Task:
        with self._lock:
            first, left = self._next, self.total - self._next
            if not left:
                raise StopIteration
            size = min(self._size(), max(1, left // (2 * self.lanes)))
            self._next += size
        return Task(
            self._token,
            tuple(self._numbers[first : first + size]),
            self._values[first : first + size],
        )

    def _size(self) -> int:
        if not self._made:
            return 8
        seconds, kept = max(self._seconds / self._made, 1e-6), max(self._bytes / self._made, 1.0)
        wanted = max(TASK_SECONDS, 0.02 * self.lanes)
        return int(max(1, min(wanted / seconds, TASK_BYTES / kept, MOST_IN_TASK)))

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Learn how long runs take and how much they return."""
        with self._lock:
            self._made += len(outcomes)
            self._seconds += sum(o.seconds for o in outcomes)
            self._bytes += sum(len(o.numbers) + len(o.history) for o in outcomes)
