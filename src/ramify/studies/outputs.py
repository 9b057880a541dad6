"""What is kept of a run: the last state, metrics, and a history, as rows of numbers with names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ramify.api.model import Model
from ramify.api.result import Result
from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.drives.machine_forces import passive_text
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.text import plain_text
from ramify.runs.run_record import energy_balance
from ramify.studies.digest import function_digest

HISTORIES: Final = ("q", "v", "a", "tau", "energy")
"""Quantities that a history may hold."""
UNKNOWN: Final = float("nan")


ColumnChoice = slice | int | None
CustomMetric = Callable[[Result], float]
"""A custom metric."""


# ---- metrics: numbers of a run, of all joints together or of one ----


def _largest(values: Array) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def _off(result: Result) -> Array:
    """The error of q, zero where no motion was desired; NaN without a desired motion."""
    if result.desired is None:
        return np.full_like(result.q, UNKNOWN)
    return np.nan_to_num(result.q - result.desired.q)


def energies_without_kernel(result: Result) -> tuple[Array, Array]:
    """(kinetic, potential), each (T,), J, as ``Result.energy`` has them, but without a kernel: a
    robot that runs once needs none.
    """
    model, q, v = result.model, list(result.q.T), list(result.v.T)
    found = plain_text(ALGORITHMS["energy"], model, ())(q, v)
    kinetic, potential = (
        np.broadcast_to(np.asarray(x[0], dtype=np.float64), result.t.shape) for x in found
    )
    machine = passive_text(model, *(bool(result.options[key]) for key in ("stops", "passive")))
    if machine:
        bristles = None if result.bristles is None else list(result.bristles.T)
        for stored in machine(q, v, bristles).stored.values():
            potential = np.asarray(potential + stored, dtype=np.float64)
    return kinetic, potential


def _energy_error(result: Result, _: ColumnChoice) -> float:
    """The largest error of the energy balance, as the audit has it."""
    return _largest(energy_balance(result, *energies_without_kernel(result)).error)


Metric = Callable[[Result, ColumnChoice], float]

METRICS: Final[Mapping[str, tuple[str, Metric]]] = {
    "max_abs_q": ("rad or m", lambda r, j: _largest(r.q[:, j])),
    "max_speed": ("rad/s or m/s", lambda r, j: _largest(r.v[:, j])),
    "max_torque": ("N m or N", lambda r, j: _largest(r.tau[:, j])),
    "rms_torque": ("N m or N", lambda r, j: _rms(r.tau[:, j])),
    "max_error": ("rad or m", lambda r, j: _largest(_off(r)[:, j])),
    "rms_error": ("rad or m", lambda r, j: _rms(_off(r)[:, j])),
    "final_error": ("rad or m", lambda r, j: _largest(_off(r)[-1:, j])),
    "final_speed": ("rad/s or m/s", lambda r, j: _largest(r.v[-1:, j])),
}
"""Metrics of all joints, or of one as in ``max_speed.joint2``: unit, and a function of the result
and the columns of the joints.
"""

WHOLE: Final[Mapping[str, tuple[str, Metric]]] = {
    "work": ("J", lambda r, _: float(r.work.actuator[-1])),
    "loss": ("J", lambda r, _: float(r.work.dissipated[-1])),
    "max_kinetic": ("J", lambda r, _: _largest(energies_without_kernel(r)[0])),
    "final_kinetic": ("J", lambda r, _: float(energies_without_kernel(r)[0][-1])),
    "energy_error": ("J", _energy_error),
    "t_end": ("s", lambda r, _: float(r.t[-1])),
    "steps": ("", lambda r, _: float(r.stats["steps"])),
}
"""Metrics of the run as a whole."""


def position(result: Result, link: str) -> Array:
    """The origin (3,) of a link in the world at the end, m."""
    model = result.model
    body, frame = model.attachment(link)
    if body < 0:
        return np.asarray(frame.position, dtype=np.float64)
    (flat,) = plain_text(ALGORITHMS["kinematics"], model, ())(result.q[-1].tolist())
    pose = np.array(flat, dtype=np.float64).reshape(-1, 12)[model.skeleton.last[body]]
    return pose[:9].reshape(3, 3) @ frame.position + pose[9:]


@dataclass(frozen=True)
class Keep:
    """final: the last q and v; metrics: names of ``METRICS``, ``WHOLE``, ``position.LINK``;
    functions: custom metrics; history: quantities kept over time, of one row of output in
    ``every``.
    """

    final: bool = True
    metrics: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    every: int = 1
    functions: Mapping[str, CustomMetric] = field(default_factory=dict)

    @property
    def facts(self) -> list[object]:
        """All of it as plain data."""
        codes = {name: metric_code(f) for name, f in self.functions.items()}
        energies = "energy_error" in self.metrics or "energy" in self.history
        meaning = ["stored energy is included"] if energies else []  # once it was not
        return [self.final, self.metrics, self.history, self.every, codes, *meaning]

    def columns(self, model: Model) -> list[str]:
        """Names of the numbers. Raises ModelError for an unknown metric."""
        names = []
        if self.final:
            names += [f"final.q.{name}" for name in model.coordinates]
            names += [f"final.v.{name}" for name in model.velocities]
        for name in self.metrics:
            names += metric(name, model)[0]
        return names + list(self.functions)

    def numbers(self, result: Result) -> Array:
        """The numbers of a run, in the order of ``columns``."""
        row = [*result.q[-1], *result.v[-1]] if self.final else []
        for name in self.metrics:
            row += metric(name, result.model)[1](result)
        row += [float(f(result)) for f in self.functions.values()]
        return np.array(row, dtype=np.float64)

    def history_columns(self, model: Model) -> list[str]:
        """Names of the columns of a history; none where no history is kept."""
        names = [
            f"{what}.{name}"
            for what in self.history
            if what != "energy"
            for name in (model.coordinates if what == "q" else model.velocities)
        ]
        names += ["energy.kinetic", "energy.potential"] if "energy" in self.history else []
        return ["t", *names] if names else []

    def rows(self, result: Result) -> Array:
        """The history (rows, columns) of a run, the last row always included."""
        if not self.history:
            return np.empty((0, 0))
        chosen = np.unique(np.append(np.arange(0, len(result.t), self.every), len(result.t) - 1))
        parts = [result.t, *(getattr(result, what) for what in self.history if what != "energy")]
        if "energy" in self.history:
            parts += energies_without_kernel(result)
        return np.ascontiguousarray(np.column_stack([part[chosen] for part in parts]))


def metric(name: str, model: Model) -> tuple[list[str], Callable[[Result], list[float]]]:
    """The columns of a metric, and the function that gives its numbers. Raises ModelError where it
    does not exist for a robot.
    """
    stem, _, joint = name.partition(".")
    if stem == "position" and joint:
        model.attachment(joint)
        return [f"{name}.{axis}" for axis in "xyz"], lambda r: position(r, joint).tolist()
    if name in WHOLE:
        return [name], lambda r: [WHOLE[name][1](r, None)]
    if name in METRICS:
        return [name], lambda r: [METRICS[name][1](r, slice(None))]
    of_q = ("max_abs_q", "max_error", "rms_error", "final_error")
    names = model.coordinates if stem in of_q else model.velocities
    if stem in METRICS and joint in names:
        return [name], lambda r: [METRICS[stem][1](r, names.index(joint))]
    known = [*METRICS, *WHOLE, f"position.{model.bodies[-1].name}"]
    if stem in METRICS:
        known = [f"{stem}.{one}" for one in names]
    raise ModelError(f"there is no metric {name!r}{near(name, known)}")


@dataclass(frozen=True)
class Versioned:
    """A custom metric that is identified by a version instead of its code."""

    function: CustomMetric
    version: str

    def __call__(self, result: Result) -> float:
        return self.function(result)


@dataclass(frozen=True)
class Missing:
    """Stands for a custom metric that was not given; ``code`` identifies it."""

    code: str

    def __call__(self, result: Result) -> float:
        raise ModelError("this custom metric was not given to Study.open(metrics=)")


def metric_code(function: CustomMetric) -> str:
    """What identifies a custom metric, so that a changed one counts as another: its version, or a
    digest of its code. Raises ModelError where there is no digest.
    """
    if isinstance(function, Versioned):
        return f"version {function.version}"
    return function.code if isinstance(function, Missing) else function_digest(function)
