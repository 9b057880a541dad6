"""What the loops of a robot leave free: residuals, Jacobian, rank, mobility, and which constraints
say nothing new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, largest_magnitude
from ramify.core.cached import cached_property
from ramify.core.errors import LoopError
from ramify.dynamics.closure import closures, constraint_names, reach, rounding
from ramify.dynamics.redundancy import redundancy
from ramify.kernels.closed import slip_share
from ramify.kernels.make import kernel
from ramify.model.robot import Robot, once

_CLOSED = 1e-9  # share of the size below which a row counts as closed in notes
_PLACE = ("x", "y", "z")  # rows of one position


@dataclass(frozen=True, eq=False)
class Constraints:
    """The constraints at a state (or a batch of them).

    residual (..., nc), in m or as a sine (see ``units``), zero where the loops are closed; J (...,
    nc, nv) with J v its rate; Jdot_v (..., nc) the rest of its second derivative; ``names`` a name
    per row. ``rank`` of J and ``mobility`` = nv - rank, each an int, or an array (...). ``margin``
    (...): the smallest singular value that counts, by the largest, lengths measured in the robot's
    own size: it goes to zero towards a singular posture; NaN, with a rank of 0, for states of a
    batch that are not known. ``scaled`` is J without units, ``sizes`` (nc) are m per unit of each
    row, ``rounding`` (nc) is what each may miss by, in m, and ``tolerance`` the share of the
    largest singular value from which one counts.
    """

    residual: Array
    J: Array
    Jdot_v: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    rank: Any
    mobility: Any
    margin: Any
    scaled: Array
    sizes: Array
    rounding: Array
    tolerance: float

    @cached_property
    def redundant(self) -> tuple[str, ...]:
        """Rows that follow from those before them, by name; of one state."""
        independent = set(independent_rows(self.scaled, self.tolerance))
        return tuple(name for i, name in enumerate(self.names) if i not in independent)

    @cached_property
    def conflicting(self) -> tuple[str, ...]:
        """Redundant rows that contradict those they follow from: these cannot all be closed near
        this posture; of one state.
        """
        independent = independent_rows(self.scaled, self.tolerance)
        r = self.residual * self.sizes
        rest = [i for i in range(len(r)) if i not in independent]
        if not rest:
            return ()
        shares = np.linalg.lstsq(self.scaled[independent].T, self.scaled[rest].T, rcond=None)[0].T
        apart = np.abs(r[rest] - shares @ r[independent]) > self.rounding[rest]
        return tuple(self.names[i] for i, open_ in zip(rest, apart, strict=True) if open_)

    @property
    def gap(self) -> float:
        """The largest residual."""
        return float(np.abs(self.residual).max(initial=0.0))


def constraints(model: Robot, q: ArrayLike, v: ArrayLike | None = None) -> Constraints:
    """See Model.constraints."""
    refuse_none(model)
    residual, flat, bias = kernel(model, "constraints")(q, np.zeros(model.nv) if v is None else v)
    J = flat.reshape(*flat.shape[:-1], residual.shape[-1], model.nv)
    scaled = scaled_jacobian(model, J)
    unknown = np.asarray(np.isnan(scaled).any(axis=(-2, -1)))
    known: Array = np.where(unknown[..., None, None], 0.0, scaled)
    values = np.linalg.svd(known, compute_uv=False)
    tolerance = redundancy(model).tolerance
    counted = values > tolerance * np.maximum(values[..., :1], 1e-300)
    rank = counted.sum(axis=-1)
    last = np.take_along_axis(values, np.maximum(rank - 1, 0)[..., None], axis=-1)[..., 0]
    margins = np.where(unknown, np.nan, last / np.maximum(values[..., 0], 1e-300))
    margin = margins if J.ndim > 2 else float(margins)
    if J.ndim == 2:
        rank = int(rank)
    return Constraints(
        residual, J, bias, constraint_names(model), row_units(model),
        rank, model.nv - rank, margin, scaled, row_sizes(model), rounding(model), tolerance,
    )  # fmt: skip


def refuse_none(model: Robot) -> None:
    """Refuse a model without loops."""
    if not model.loops:
        raise LoopError(
            f"{model.name} has no loops; give it some under loops: in its file, or with "
            "Builder.loop"
        )


@once
def row_units(model: Robot) -> tuple[str, ...]:
    """A unit per row of the residual; of a gear or coupling that of its second coordinate, or of
    the length of its second tendon.
    """
    steps = [step for joint in model.joints for step in joint.steps]
    of = dict(zip(model.velocities, (step.unit for step in steps), strict=True))
    for tendon in model.tendons:
        units = {of[rate] for rate, _ in tendon.joints} or {"m"}
        of[tendon.name] = units.pop() if len(units) == 1 else "1"
    return tuple(
        of.get(loop.related[-1], "1") if loop.couples else unit
        for loop in model.loops
        for unit in loop.units
    )


def open_by(model: Robot, gaps: Array) -> str:
    """The row that is open most, and by how much, of gaps (..., nc) whose rows are in m.
    Orientations are named as a whole, with their angle: at half a turn no row of them is the
    culprit.
    """
    size = np.fmax.reduce(np.abs(gaps).reshape(-1, gaps.shape[-1]), axis=0)
    worst = int(np.argmax(size))
    name = constraint_names(model)[worst]
    return (
        f"{name[:-2] if _turns(name) else name} is off by {gap_of_row(model, worst, size[worst])}"
    )


def gap_of_row(model: Robot, row: int, gap: float) -> str:
    """A gap of a row, given in m, with its unit: a length, a coordinate's, or an angle."""
    own = float(gap) / float(row_sizes(model)[row])
    if _turns(constraint_names(model)[row]):  # a sine; beyond a quarter turn 2 - sine
        angle = np.arcsin(min(1.0, own)) if own <= 1.0 else np.pi - np.arcsin(max(0.0, 2 - own))
        return f"{np.degrees(angle):.3g} degrees"
    return f"{own:.3g} rad" if row_units(model)[row] == "rad" else f"{gap:.3g} m"


@dataclass(frozen=True)
class LoopGap:
    """What is open in a loop: ``row`` most, with the other rows of its ``group`` that describe the
    same position; ``open_rows`` are those that matter. ``size`` is the length of the gap, m.
    """

    loop: str
    row: int
    group: tuple[int, ...]
    open_rows: tuple[str, ...]
    size: float

    @property
    def rows(self) -> str:
        """The names of the rows that matter."""
        return ", ".join(self.open_rows)

    def text(self, model: Robot) -> str:
        """The size with its unit."""
        return gap_of_row(model, self.row, self.size)


def gap_of_loop(model: Robot, gaps: Array, row: int) -> LoopGap:
    """The gap to which a row belongs, of gaps (nc,) in m: x, y and z of a loop are one distance,
    which does not depend on the axes in which they are written.
    """
    loop, _, what = constraint_names(model)[row].rpartition(".")
    places = (
        {f"{loop}.{place}" for place in _PLACE}
        if what in _PLACE
        else {constraint_names(model)[row]}
    )
    group = tuple(i for i, name in enumerate(constraint_names(model)) if name in places)
    size = float(np.linalg.norm(gaps[list(group)]))
    rows = tuple(constraint_names(model)[i] for i in group if abs(gaps[i]) >= 0.1 * size)
    return LoopGap(loop, row, group, rows, size)


def loop_gaps(model: Robot, gaps: Array, least: float) -> list[LoopGap]:
    """The gaps with a row above ``least`` (m), the largest row first, of gaps (nc,) in m."""
    found: list[LoopGap] = []
    for row in np.argsort(-np.abs(gaps)):
        if abs(gaps[row]) > least and not any(row in other.group for other in found):
            found.append(gap_of_loop(model, gaps, int(row)))
    return found


def rounded_rows(model: Robot, residual: Array) -> str:
    """The rows that follow from others and are not closed, for a note; "" where all are. residual
    (nc,) of a posture at which all others are.
    """
    gaps = np.abs(residual * row_sizes(model))
    open_rows = [constraint_names(model)[i] for i in np.flatnonzero(gaps > _CLOSED * reach(model))]
    if not open_rows:
        return ""
    most = gap_of_row(model, int(np.argmax(gaps)), gaps.max())
    return f"{', '.join(open_rows[:6])} follow from other rows and miss by {most}: rounded data"


def rate_of_row(model: Robot, row: int, rate: float, per: str) -> str:
    """The speed or acceleration of a row, given in m per ``per``, with its unit."""
    if _turns(constraint_names(model)[row]) or row_units(model)[row] == "rad":
        return f"{rate / float(row_sizes(model)[row]):.3g} rad/{per}"
    return f"{rate:.3g} m/{per}"


def _turns(name: str) -> bool:
    return name.rpartition(".")[2].startswith(("turn_", "tilt_"))


@once
def row_sizes(model: Robot) -> Array:
    """(nc,), m per unit of each row."""
    return np.array([size for closure in closures(model) for size in closure.sizes])


@once
def column_sizes(model: Robot) -> Array:
    """(nv,), m per unit of each velocity: the robot's size for angles."""
    size = reach(model)
    return np.array([size if step.rho else 1.0 for joint in model.joints for step in joint.steps])


def may_open(model: Robot, x: ArrayLike, v: ArrayLike | None = None) -> float:
    """m/s: how fast loops with rounded data may open under rates x, a share of the motion; or
    m/s^2, under accelerations x at rates v.
    """
    size = reach(model)
    moved, speed = (
        largest_magnitude(np.asarray(y) * column_sizes(model)) for y in (x, 0.0 if v is None else v)
    )
    return slip_share(model) * (moved + speed * speed / size) + 1e-9 * size


def scaled_jacobian(model: Robot, J: Array) -> Array:
    """J (..., nc, nv) without units: lengths measured in the robot's size."""
    return J * row_sizes(model)[:, None] / column_sizes(model)


def independent_rows(scaled: Array, tolerance: float) -> list[int]:
    """Rows of a matrix of which more than a share of the longest does not follow from those before
    them.
    """
    independent: list[int] = []
    basis: list[Array] = []
    largest = float(np.sqrt((scaled**2).sum(axis=1).max(initial=0.0)))
    for i, row in enumerate(scaled):
        u = np.array(row)
        for _ in range(2):
            for e in basis:
                u = u - (e @ u) * e
        length = float(np.linalg.norm(u))
        if length > tolerance * largest:
            basis.append(u / length)
            independent.append(i)
    return independent
