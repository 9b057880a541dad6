"""Closed loops in a run: a start that closes them, steps that keep them closed, postures where no motion is determined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.errors import LoopError, SimulationError
from ramify.model.frame import Array

if TYPE_CHECKING:
    from ramify.model.model import Model

STABILISATIONS: Final = ("projection", "none")
"""Ways to keep loops closed by name; a number is Baumgarte's rate in 1/s."""

_NEAR = 1e-3  # share of the robot's size up to which a start is closed instead of refused
_SLOW = 1e-3  # the same for rates
_SINGULAR = 1e-7  # margin below which a posture counts as singular


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops over a run: ``gap`` (T, nc) the residuals, in ``units``; ``multipliers`` (T, nc), N or N m; ``power`` (T,), W, of the
    constraint forces, which do no work as long as the loops stay closed. ``names`` a name per constraint.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    gap: Array
    multipliers: Array
    power: Array


def stabilisation_rate(stabilisation: object) -> float:
    """Baumgarte's rate; 0 for the other ways. SimulationError for what is none."""
    if isinstance(stabilisation, str) and stabilisation in STABILISATIONS:
        return 0.0
    if isinstance(stabilisation, Real) and not isinstance(stabilisation, bool) and 0.0 < float(stabilisation) < np.inf:
        return float(stabilisation)
    raise SimulationError(f"stabilisation {stabilisation!r} must be 'projection', 'none', or a rate in 1/s above 0 (Baumgarte's)")


def closed_start(model: Model, q0: ArrayLike | None, q: Array, v: Array) -> tuple[Array, Array, str]:
    """(q, v, note): a start that closes the loops. Without q0 the model's own guess is assembled; what is given and nearly closed
    is closed, and the note says by how much it moved; the rest is refused with its gap.
    """
    from ramify.loops.stabilise import projector

    note = ""
    if q0 is None:
        q, note = model.assemble().q, "assembled near the model's guess"
    refuse_open(model, q[None], v[None])
    gap = model.constraints(q).gap
    y = np.concatenate([q, v])
    settle, before = projector(model), y
    for _ in range(3):
        y = settle(y)
    shift = float(np.abs((y - before)[: model.nq]).max(initial=0.0)), float(np.abs((y - before)[model.nq :]).max(initial=0.0))
    if max(shift) > 1e-9:
        note = f"q0 moved by {shift[0]:.3g} and v0 by {shift[1]:.3g} to close the loops (gap {gap:.3g})"
    return y[: model.nq], y[model.nq :], note


def refuse_open(model: Model, q: Array, v: Array) -> None:
    """Refuse states (N, nq), (N, nv) whose loops are not closed, or do not stay so; LoopError names the first."""
    from ramify.loops.closure import names, reach
    from ramify.loops.report import column_sizes, row_sizes

    c = model.constraints(q, v)
    rows, size = row_sizes(model), reach(model)
    fastest = np.abs(v * column_sizes(model)).max(axis=1, initial=0.0)
    for what, unit, values, most in (
        ("q0", "m", c.residual * rows, np.full(len(q), _NEAR * size)),
        ("v0", "m/s", np.einsum("tki,ti->tk", c.J, v) * rows, _SLOW * fastest + 1e-9 * size),
    ):
        worst = np.abs(values).max(axis=1, initial=0.0)
        bad = np.flatnonzero(worst > most)
        if bad.size:
            name = names(model)[int(np.argmax(np.abs(values[bad[0]])))]
            raise LoopError(
                f"{what} of state {bad[0]} ({bad.size} of {len(q)} in all) opens the loops of {model.name!r}: {name} by "
                f"{worst[bad[0]]:.4g} {unit}; model.assemble(…) gives states that close them"
            )


class Closing:
    """What a run does for the loops after each step."""

    def __init__(self, model: Model, project: bool) -> None:
        self.model, self.project = model, project
        self._null: Array | None = None
        self._sign, self._rank = 0.0, 0

    @cached_property
    def _settle(self) -> Callable[[Array], Array]:
        from ramify.loops.stabilise import projector

        return projector(self.model)

    def settle(self, y: Array) -> Array:
        """The state, back on the loops."""
        if not self.project:
            return y
        n = self.model.nq + self.model.nv
        out = np.array(y)
        out[:n] = self._settle(np.ascontiguousarray(y[:n]))
        return out

    def gap(self, y: Array) -> float:
        """The largest residual of a state."""
        q, v = y[: self.model.nq], y[self.model.nq : self.model.nq + self.model.nv]
        return float(np.abs(self.model.kernel("constraints")(q, v)[0]).max())

    def watch(self, t: float, y: Array) -> None:
        """End a run that meets, or has passed, a posture at which the loops do not determine the motion.

        The free directions are carried along from step to step; where the volume that they span with the rows of J changes its
        sign, J has lost its rank in between.
        """
        from ramify.loops.report import independent_rows

        c = self.model.constraints(y[: self.model.nq])
        A = c.scaled
        if self._null is None:
            self._rank, self.rows = c.rank, independent_rows(A)
            self._null = np.linalg.svd(A)[2][c.rank :]
            self._sign = np.sign(self._volume(A))
            return
        if c.rank < self._rank or c.margin < _SINGULAR:
            raise SimulationError(
                f"{self.model.name} stands in a singular posture at t = {t:.6g} s (margin {c.margin:.2g}, {c.mobility} degrees of freedom "
                f"instead of {self.model.nv - self._rank}): where it goes from there is not determined"
            )
        kernel = np.linalg.svd(A)[2][c.rank :]
        if len(kernel) == len(self._null):
            u, _, w = np.linalg.svd(self._null @ kernel.T)
            self._null = u @ w @ kernel
        sign = np.sign(self._volume(A))
        if sign != self._sign:
            raise SimulationError(
                f"{self.model.name} has passed a singular posture before t = {t:.6g} s: beyond a dead centre the branch it follows is not "
                "determined; end the run before, or add what decides it (a flywheel of another phase, a spring, a second crank)"
            )

    def _volume(self, A: Array) -> float:
        assert self._null is not None
        M = np.vstack([A[self.rows], self._null])
        return float(np.linalg.det(M)) if M.shape[0] == M.shape[1] else 0.0


def observed_loops(model: Model, q: Array, v: Array, net: Array) -> Loops:
    """The loops at the rows of a run; NaN where the joint forces are not known."""
    c = model.constraints(q, v)
    lam = np.full(c.residual.shape, np.nan)
    known = np.isfinite(net).all(axis=1)
    if known.any():
        lam[known] = model.forward_dynamics(q[known], v[known], net[known], multipliers=True)[1]
    power = np.einsum("tk,tki,ti->t", np.nan_to_num(lam), c.J, v)
    return Loops(c.names, c.units, c.residual, lam, power)


def as_loops(value: Any, rows: int) -> Loops | None:
    """What a result was given as its loops, checked for shape."""
    if value is None:
        return None
    n = len(value.names)
    for name, shape in (("gap", (rows, n)), ("multipliers", (rows, n)), ("power", (rows,))):
        if np.shape(getattr(value, name)) != shape:
            raise SimulationError(f"loops.{name} has shape {np.shape(getattr(value, name))}; this result needs {shape}")
    found: Loops = value
    return found
