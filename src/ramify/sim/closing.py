"""Closed loops in a run: a start that closes them, steps that keep them closed, postures where no motion is determined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.errors import LoopError, SimulationError, StateError
from ramify.model.frame import Array

if TYPE_CHECKING:
    from ramify.model.model import Model
    from ramify.sim.adaptive import Piece
    from ramify.sim.field import Field

STABILISATIONS: Final = ("projection", "none")
"""Ways to keep loops closed by name; a number is Baumgarte's rate in 1/s."""

_NEAR = 1e-3  # share of the robot's size up to which a start is closed instead of refused
_SLOW = 1e-3  # the same for rates
_STRIDE = 0.1  # rad or m between two looks
_SINGULAR = 1e-6  # margin below which a posture counts as singular


@dataclass(frozen=True, eq=False)
class Loops:
    """The loops over a run: ``gap`` (T, nc) the residuals, in ``units``; ``multipliers`` (T, nc), N or N m; ``power`` (T,), W, of
    the constraint forces, which do no work as long as the loops stay closed. ``names`` a name per constraint.

    Raises StateError where an array has the wrong shape.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    gap: Array
    multipliers: Array
    power: Array

    def __post_init__(self) -> None:
        rows, n = len(self.power), len(self.names)
        for name, shape in (("gap", (rows, n)), ("multipliers", (rows, n)), ("power", (rows,))):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != shape:
                raise StateError(f"loops.{name} has shape {values.shape}; it must be {shape}")
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    @property
    def largest_gap(self) -> float:
        """The largest residual of the run."""
        return float(np.abs(self.gap).max(initial=0.0))

    @property
    def forces(self) -> tuple[str, ...]:
        """A unit per multiplier."""
        return tuple("N" if unit == "m" else "N m" for unit in self.units)


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


def refuse_contradiction(field: Field, q: Array) -> None:
    """Refuse a prescribed motion of coordinates that depend on each other through the loops."""
    if field.prescribed is None or not q.size:
        return
    from ramify.control.robot import RobotText
    from ramify.loops.solve import refuse_overdriven

    held = np.zeros(field.model.nv, dtype=bool)
    held[list(field.prescribed.driven(RobotText(field.model)).v)] = True
    refuse_overdriven(field.model, q, held)


def refuse_torn(model: Model, q: Array, v: Array) -> None:
    """Refuse the outcome of a rollout whose loops have come apart."""
    try:
        refuse_open(model, q, v)
    except LoopError as error:
        raise SimulationError(f"at the end of the rollout, {error}; the steps are too long, or lead past a dead centre") from None


class Closing:
    """What a run does for the loops after each step."""

    def __init__(self, model: Model, project: bool, at_singularity: str = "stop") -> None:
        if at_singularity not in ("stop", "pass"):
            raise SimulationError(f"at_singularity {at_singularity!r} must be 'stop' or 'pass'")
        self.model, self.project, self.stop = model, project, at_singularity == "stop"
        self.passed: list[float] = []  # s
        self._frames: tuple[Array, Array] | None = None
        self._volume, self._rank = 0.0, 0

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

    @cached_property
    def _scale(self) -> Array:
        from ramify.loops.report import scaled_jacobian

        return scaled_jacobian(self.model, np.ones((sum(len(loop.rows) for loop in self.model.loops), self.model.nv)))

    def watch_step(self, piece: Piece, before: Array) -> None:
        """Look at the loops within a step, once for every tenth of a radian (or a metre) that a joint moves, and at its end."""
        if self._frames is None:
            self.watch(piece.start, before)
        t, y = piece.end, piece.y(piece.end)
        far = float(np.abs(y - before)[: self.model.nq].max(initial=0.0))
        for k in range(1, min(int(far / _STRIDE), 64) + 1):
            now = piece.start + (t - piece.start) * k / (int(far / _STRIDE) + 1)
            self.watch(now, piece.y(now))
        self.watch(t, y)

    def watch(self, t: float, y: Array) -> None:
        """End a run that meets, or has passed, a posture at which the loops do not determine the motion.

        The directions that the loops leave free, and those in which they pull, are carried along from step to step; where the
        volume of J between them changes its sign, J has lost its rank in between.
        """
        _, flat, _ = self.model.kernel("constraints")(y[: self.model.nq], np.zeros(self.model.nv))
        A = flat.reshape(self._scale.shape) * self._scale
        if self._frames is not None:
            volume = _volume(A, *self._frames)
            if volume > 0.5 * self._volume:
                return
        self._look(t, A)

    def _look(self, t: float, A: Array) -> None:
        """The same by singular values; the frames are renewed."""
        from ramify.loops.report import RANK

        u, s, vt = np.linalg.svd(A)
        rank = int((s > RANK * s[0]).sum())
        margin = float(s[rank - 1] / s[0])
        if self._frames is None:
            self._rank, self._frames = rank, (u[:, :rank].T, vt[rank:])
            if _volume(A, *self._frames) < 0.0:
                self._frames = u[:, :rank].T * np.array([[-1.0], *[[1.0]] * (rank - 1)]), vt[rank:]
            self._volume = _volume(A, *self._frames)
            return
        free = self.model.nv - self._rank
        if rank != self._rank or margin < _SINGULAR:
            self._meet(
                t,
                f"{self.model.name} stands in a singular posture at t = {t:.6g} s (margin {margin:.2g}, {self.model.nv - rank} "
                f"degrees of freedom instead of {free})",
            )
            return
        pulls, slides = _carried(self._frames[0], u[:, :rank].T), _carried(self._frames[1], vt[rank:])
        volume = _volume(A, pulls, slides)
        if volume <= 0.0:
            self._meet(t, f"{self.model.name} has passed a singular posture before t = {t:.6g} s")
            return
        self._frames, self._volume = (pulls, slides), volume

    def _meet(self, t: float, what: str) -> None:
        """Stop at a singular posture, or note it and look anew from there."""
        if self.stop:
            raise SimulationError(
                f"{what}: where loops lose their hold, at a dead centre, the branch that is followed is not theirs to decide; end "
                "the run before it, add what decides (a second crank, a spring), or go on with the velocity: at_singularity='pass'"
            )
        self._frames = None
        if not self.passed or t - self.passed[-1] > 1e-9:
            self.passed.append(t)


def _carried(old: Array, new: Array) -> Array:
    """The frame of the rows of ``new`` that is nearest to that of ``old``."""
    if not len(new):
        return new
    u, _, w = np.linalg.svd(old @ new.T)
    found: Array = u @ w @ new
    return found


def _volume(A: Array, pulls: Array, slides: Array) -> float:
    return float(np.linalg.det(np.vstack([pulls @ A, slides])))


def observed_loops(model: Model, q: Array, v: Array, net: Array, wrenches: Mapping[str, Array] | None = None) -> Loops:
    """The loops at the rows of a run under joint forces ``net`` and wrenches on the bodies; NaN where the forces are not known."""
    c = model.constraints(q, v)
    lam = np.full(c.residual.shape, np.nan)
    known = np.isfinite(net).all(axis=1)
    if known.any():
        felt = None if wrenches is None else {name: w[known] for name, w in wrenches.items()}
        lam[known] = model.forward_dynamics(q[known], v[known], net[known], felt, multipliers=True)[1]
    power = np.einsum("tk,tki,ti->t", np.nan_to_num(lam), c.J, v)
    return Loops(c.names, c.units, c.residual, lam, power)
