"""Whether a fixed step is short enough: the same motion in steps of dt, dt/2, dt/4, …"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array, positive, real, whole
from ramify.core.errors import SimulationError, StateError
from ramify.core.messages import shown
from ramify.model.configuration import difference
from ramify.model.robot import Robot, the_robot
from ramify.runs.rollout import RolloutRecord, rollout
from ramify.runs.starts import unknown_starts

MOST_HALVINGS: Final = 12


@dataclass(frozen=True)
class StepCheck:
    """How far answers are off in fixed steps of several lengths.

    dt (n): steps in s, each half the one before; method: the integrator of each; error (n): the
    estimated error with each, compared with ``tolerance``; noise (n): standard errors of these, 0
    where nothing is averaged; unit: of errors and tolerance.

    An error is the difference from the answer in the shortest step, plus that answer's own error,
    which is estimated from the last differences as of first order (contact has kinks). It is
    infinite where the motion diverged.
    """

    dt: Array
    method: tuple[str, ...]
    error: Array
    noise: Array
    tolerance: float
    unit: str

    @property
    def step(self) -> float | None:
        """The longest step (s) that meets the tolerance, all shorter ones doing so, too; None where
        none does.
        """
        good = self.error <= self.tolerance
        count = len(good) if good.all() else int(np.argmin(good[::-1]))
        return float(self.dt[len(good) - count]) if count else None

    @property
    def passed(self) -> bool:
        """Whether the first, longest step meets the tolerance."""
        return self.step == self.dt[0]

    def __str__(self) -> str:
        scale = 100.0 if self.unit == "%" else 1.0
        lines = ["step, error, method"]
        rows = zip(self.dt, self.method, self.error, self.noise, strict=True)
        for dt, method, error, noise in rows:
            more = f" ± {scale * noise:.2g}" if noise else ""
            off = f"{scale * error:.3g}{more} {self.unit}" if np.isfinite(error) else "diverged"
            lines.append(f"{dt * 1e3:.4g} ms, {off}{method and f', {method}'}")
        limit = f"{scale * self.tolerance:.3g} {self.unit}"
        if self.step is None:
            last = f"no step down to {self.dt[-1] * 1e3:.4g} ms is within {limit}; try shorter ones"
        else:
            last = f"the longest step within {limit} is {self.step * 1e3:.4g} ms"
        return "\n".join([*lines, last])


def estimated(distances: Sequence[float]) -> Array:
    """Errors (n) of answers from their distances to the last of them, (n - 1), longest step first.

    Errors of first order are C h, so that a distance is C (h - h_last): the last answer's own error
    is the larger that the two shortest distances let expect. Two answers that agree by chance (a
    landing that falls into the same step) do not make it small.
    """
    to_last = np.array([*distances, 0.0])
    to_last[np.isnan(to_last)] = np.inf
    usual = to_last[-3:-1] / (3.0, 1.0)
    error: Array = to_last + usual[np.isfinite(usual)].max(initial=0.0)
    return error


def step_lengths(dt: float, halvings: int) -> list[float]:
    """dt, dt/2, …, in s."""
    count = whole("halvings", halvings, 2)
    if count > MOST_HALVINGS:
        raise SimulationError(f"halvings must be 2 to {MOST_HALVINGS}; got {halvings}")
    return [positive("dt", dt) / 2**k for k in range(count + 1)]


def check_step(
    model: Robot,
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    dt: float,
    t_end: float,
    tolerance: float = 1e-3,
    halvings: int = 3,
    quantity: Callable[[Array, Array], ArrayLike] | None = None,
    **options: Any,
) -> StepCheck:
    """Whether steps of dt seconds are short enough for a rollout, or for ``simulate`` with
    ``step``: the motion until t_end (s) in steps of dt, dt/2, …, dt / 2^halvings.

    q0 (..., nq), v0 (..., nv); options as in ``rollout`` (ground, control, method, tau, …).
    quantity(q, v): numbers from the last states; by default the coordinates themselves, rad and m,
    rotations compared by their angle. The error is that of the number that is off most, of all
    states. States of NaN, which an earlier rollout left, do not count; with a quantity they are
    refused.

    Returns a StepCheck: print it, or read ``step``, the longest one within the tolerance. Raises
    SimulationError where a state fails in the shortest steps, or t_end is not a multiple of dt.
    """
    if not isinstance(model, Robot) and hasattr(model, "check_step"):
        raise StateError("an environment checks its own step: env.check_step(policy)")
    the_robot(model)
    if quantity is not None and (isinstance(quantity, type) or not callable(quantity)):
        raise StateError(f"quantity must be a function of q and v; got {shown(quantity)}")
    lengths, limit = step_lengths(dt, halvings), positive("tolerance", tolerance)
    steps = round(positive("t_end", t_end) / lengths[0])
    if steps < 1 or abs(steps * lengths[0] - t_end) > 1e-6 * lengths[0]:
        raise SimulationError(f"t_end {shown(t_end)} s must be a multiple of dt, {shown(dt)} s")
    if not (quantity is None or callable(quantity)):
        raise StateError(f"quantity must be a function of q and v; got {shown(quantity)}")
    if "every" in options or "steps" in options:
        raise SimulationError("check_step looks at the end, t_end: leave out every and steps")

    def run_in(k: int) -> RolloutRecord:
        return rollout(model, q0, v0, steps=steps * 2**k, dt=lengths[k], **options)

    last = run_in(halvings)  # first, so that wrong options are reported here
    counted = _counted(q0, v0, last)
    if quantity is not None and not counted.all():
        index = ", ".join(map(str, np.argwhere(~counted)[0].tolist()))
        raise StateError(f"state {index} is NaN, which a quantity cannot leave out: leave it out")
    runs: list[RolloutRecord | None] = []
    for k in range(halvings):
        try:
            runs.append(run_in(k))
        except SimulationError:  # all states diverged
            runs.append(None)

    def apart(run: RolloutRecord | None) -> float:
        if run is None:
            return np.inf
        if quantity is None:
            if (run.status.failed & counted).any():
                return np.inf
            off = difference(model, last.q[counted], run.q[counted])
            return float(np.abs(off).max(initial=0.0))
        ours, fine = (real("quantity", quantity(x.q, x.v)) for x in (run, last))
        return float(np.abs(ours - fine).max(initial=0.0))

    error = estimated([apart(run) for run in runs])
    methods = tuple("" if run is None else run.method for run in [*runs, last])
    unit = "rad or m" if quantity is None else "of the quantity"
    return StepCheck(np.array(lengths), methods, error, np.zeros(len(error)), limit, unit)


def _counted(q0: ArrayLike, v0: ArrayLike, finest: RolloutRecord) -> NDArray[np.bool_]:
    """(...): the states that are compared, all but those that start as NaN. Raises SimulationError
    where one of them failed in the shortest steps: there is nothing to compare with.
    """
    unknown = unknown_starts(real("q0", q0), real("v0", v0))
    counted: NDArray[np.bool_] = ~np.broadcast_to(unknown, finest.status.failed.shape)
    for failure in finest.status.failures:
        if counted[failure.index]:
            raise SimulationError(
                f"in the shortest steps state {failure.index} failed at t = {failure.t:g} s: "
                f"{failure.reason}; give a smaller dt, or more halvings"
            )
    return counted
