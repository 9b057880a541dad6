"""What was measured of a moving robot: times, coordinates, joint forces, and what else there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array, constant
from ramify.core.errors import StateError
from ramify.lint.finding import Finding
from ramify.model.robot import Robot

LEAST_ROWS: Final = 50


@dataclass(frozen=True, eq=False)
class Log:
    """A record of T samples: ``t`` (T,) in s; ``q`` (T, nq), NaN in the columns of coordinates that
    were not measured (of closed loops); ``tau`` (T, nv) in N m or N, NaN where not measured; ``v``
    and ``a`` (T, nv) where there are some; ``current`` (T, nv) of motors in A; ``wrenches``
    {body: (T, 6)}, [moment; force] on it at its origin, world axes. ``name``: of the file.
    ``notes``: what was noticed while reading; ``wrench_forces`` (T, nv): of the wrenches.
    """

    t: Array
    q: Array
    tau: Array
    v: Array | None = None
    a: Array | None = None
    current: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    name: str = "log"
    notes: tuple[Finding, ...] = ()
    wrench_forces: Array | None = None

    def __len__(self) -> int:
        return len(self.t)

    @property
    def dt(self) -> float:
        """The time between samples, s."""
        return float(np.median(np.diff(self.t)))

    def rows(self, start: int, stop: int) -> Log:
        """A part of the log."""

        def cut(x: Array | None) -> Array | None:
            return None if x is None else x[start:stop]

        return replace(
            self, t=self.t[start:stop], q=self.q[start:stop], tau=self.tau[start:stop],
            v=cut(self.v), a=cut(self.a), current=cut(self.current),
            wrenches={body: w[start:stop] for body, w in self.wrenches.items()},
            wrench_forces=cut(self.wrench_forces),
        )  # fmt: skip


def checked_log(robot: Robot, log: Log) -> Log:
    """The log with read-only arrays of the right shapes and rising times; StateError names what is
    wrong with it.
    """
    t = constant(log.t)
    if t.ndim != 1 or len(t) < LEAST_ROWS:
        raise StateError(
            f"{log.name}: t has shape {t.shape}; a log needs at least {LEAST_ROWS} samples"
        )
    if not np.isfinite(t).all():
        raise StateError(f"{log.name}: t[{int(np.argmin(np.isfinite(t)))}] is not a finite number")
    if (np.diff(t) <= 0.0).any():
        i = int(np.argmax(np.diff(t) <= 0.0)) + 1
        raise StateError(
            f"{log.name}: t[{i}] is {t[i]:.9g} s, not after {t[i - 1]:.9g} s; times must rise"
        )
    arrays: dict[str, Any] = {"t": t}
    for key, size in (("q", robot.nq), ("tau", robot.nv), ("v", robot.nv), ("a", robot.nv),
                      ("current", robot.nv)):  # fmt: skip
        value = getattr(log, key)
        if value is None:
            continue
        x = constant(value)
        if x.shape != (len(t), size):
            raise StateError(
                f"{log.name}: {key} has shape {x.shape}; {robot.name} needs ({len(t)}, {size})"
            )
        arrays[key] = x
    wrenches = {}
    for body, value in log.wrenches.items():
        robot.body_index(body)
        wrenches[body] = constant(value)
        if wrenches[body].shape != (len(t), 6):
            raise StateError(
                f"{log.name}: the wrench on {body!r} has shape {wrenches[body].shape}; it must be "
                f"({len(t)}, 6)"
            )
    return replace(log, **arrays, wrenches=wrenches)
