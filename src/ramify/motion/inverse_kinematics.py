"""Joint positions that bring points and frames of a robot where they are wanted: damped least
squares.

For any robot and any number of targets at once, whole batches of them together. Legs of two links
have a closed form (``leg``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, positive, together, whole
from ramify.core.errors import StateError
from ramify.kernels.make import kernel
from ramify.kernels.queries import kinematics
from ramify.model.configuration import configuration
from ramify.model.robot import Robot, the_robot
from ramify.motion.ik_tasks import IkTask, ReadyTask, ready_tasks
from ramify.motion.targets import RowIndices, bounds, moving_entries

Flags = np.ndarray[Any, np.dtype[np.bool_]]
_SOFTEST: Final = 1e-12
_HARDEST: Final = 1e8
_GAIN: Final = 1e-7
"""Share of the squared error that an iteration must win: one that wins less has come as near as it
gets.
"""
_AGAIN: Final = 40
"""Iterations of a search from a random posture: another posture helps more than further ones."""
_LOOPS: Final = 30.0
"""Weight of the loops beside targets of weight one: where not all can be met, loops come first."""


@dataclass(frozen=True, eq=False)
class Posture:
    """What was found: ``q`` (..., nq); ``converged`` (...): all targets within the tolerance;
    ``position_error`` (..., targets) in m and ``rotation_error`` (..., targets) in rad, what
    remains (zero where nothing was asked); ``loop_error`` (...): by how much loops are open, the
    largest residual in m or as a sine (zero for a robot without loops); ``iterations`` (...).
    """

    q: Array
    converged: Flags
    position_error: Array
    rotation_error: Array
    iterations: RowIndices = field(repr=False)
    loop_error: Array


def inverse_kinematics(
    model: Robot,
    targets: IkTask | Iterable[IkTask] | Mapping[str, ArrayLike],
    guess: ArrayLike | None = None,
    *,
    joints: Iterable[str] | None = None,
    limits: bool | ArrayLike = True,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    restarts: int = 16,
    strict: bool = True,
) -> Posture:
    """Configurations at which a robot meets its targets, by Levenberg and Marquardt's damped least
    squares.

    Each iteration solves (J' J + mu I) dq = J' e for the weighted errors e of all targets; mu falls
    with success and grows without. Among many answers one near the guess is found. Loops are
    targets like the others: they are closed at the answer, also at the nearest posture to a target
    out of reach.

    targets: a ``Target`` or another task (``CenterOfMass``, ``RelativePose``, ``KeepPosture``),
    several, or {link: position (..., 3)}; a batch of them is solved at once. A posture is kept as
    far as the others allow.
    guess (..., nq): where the search starts, by default neutral and near the loops' own guess.
    joints: those that may move, by default all but a floating base. limits: True for the joints'
    own, False for none, or (nq, 2).
    tolerance: m and rad, positive. restarts: how many random postures (always the same ones) are
    tried where the search from the guess fails. strict: whether a target that is not met is an
    error.

    Raises StateError for shapes that do not fit, and where a target is not met: which, how far it
    is, and for which state.
    """
    the_robot(model)
    tolerance = positive("tolerance", tolerance)
    max_iterations = whole("max_iterations", max_iterations, 1)
    restarts = whole("restarts", restarts, 0)
    wanted = ready_tasks(model, targets)
    start = configuration(model, "guess", _near_loops(model) if guess is None else guess)
    lead = together(
        **{f"target {i}": shape for i, one in enumerate(wanted) for shape in [one.lead]},
        guess=start.shape[:-1],
    )
    rows = int(np.prod(lead, dtype=np.int64))
    problem = IkProblem(
        model,
        [one.spread(lead, rows) for one in wanted],
        moving_entries(model, joints),
        bounds(model, limits),
        tolerance,
    )
    entire = problem
    q = problem.inside(np.broadcast_to(start, (*lead, model.nq)).reshape(rows, model.nq).copy())
    every = np.arange(rows)
    q, error, iterations = problem.search(q, every, max_iterations)
    if any(one.soft for one in problem.targets):
        problem = problem.without(lambda one: one.soft)
        q, error, count = problem.search(q, every, max_iterations)
        iterations += count
    rng = np.random.default_rng(0)
    for _ in range(restarts):
        left = np.flatnonzero(error > tolerance)
        if not left.size:
            break
        again = min(max_iterations, _AGAIN)
        tried, far, count = problem.search(problem.elsewhere(q[left], rng), left, again)
        iterations[left] += count
        better = far < error[left]
        q[left[better]], error[left[better]] = tried[better], far[better]
    left = np.flatnonzero(error > tolerance)
    if left.size and model.loops:  # as near as loops that are closed let it come
        closed = problem.without(lambda one: True)
        q[left], _, count = closed.search(q[left], left, max_iterations)
        iterations[left] += count
    away, turned = entire.remaining(q, every)
    found = Posture(
        q.reshape(*lead, model.nq),
        (error <= tolerance).reshape(lead),
        away.reshape(*lead, len(wanted)),
        turned.reshape(*lead, len(wanted)),
        iterations.reshape(lead),
        problem.gaps(q).reshape(lead),
    )
    if strict and not found.converged.all():
        _refuse(entire, away, turned, error, lead, tolerance)
    return found


ik = inverse_kinematics
"""The same under the name that users of other programs look for."""


def _near_loops(model: Robot) -> Array:
    """The neutral configuration, with the coordinates that the robot's loops are guessed from."""
    q = model.neutral()
    for name, value in model.guess.items():
        q[model.coordinates.index(name)] = value
    return q


def _refuse(
    problem: IkProblem,
    away: Array,
    turned: Array,
    error: Array,
    lead: tuple[int, ...],
    tolerance: float,
) -> None:
    row = int(np.flatnonzero(error > tolerance)[0])
    hard = [not one.soft for one in problem.targets]
    worst = int(np.argmax((away[row] + turned[row]) * hard))
    parts = [
        f"{x:.4g} {unit}"
        for x, unit in ((away[row, worst], "m"), (turned[row, worst], "rad"))
        if x > 0.1 * tolerance
    ]
    state = (
        f" of state {row if len(lead) == 1 else tuple(int(i) for i in np.unravel_index(row, lead))}"
        if lead
        else ""
    )
    moving = set(problem.moving.tolist())
    fixed = [
        repr(j.name)
        for j in problem.model.joints
        if j.kind in ("free", "free_euler")
        and not moving & set(range(problem.model.nv)[problem.model.joint_slice(j.name)])
    ]
    base = (
        f"The floating base {', '.join(fixed)} does not move by default; joints= can name it. "
        if fixed
        else ""
    )
    loops = " with the loops closed" if problem.model.loops else ""
    raise StateError(
        f"inverse kinematics: target {worst} ({problem.targets[worst].name}){state} is not met"
        f"{loops}, {' and '.join(parts)} remain; it "
        f"may be out of reach of the {len(problem.moving)} coordinates that move and their limits. "
        f"{base}Try another guess, or "
        "strict=False for the nearest posture"
    )


# ---- one problem ----


class IkProblem:
    """Errors, Jacobians and steps of rows of configurations."""

    def __init__(
        self,
        model: Robot,
        targets: Sequence[ReadyTask],
        moving: RowIndices,
        bounds: tuple[Array, Array],
        tolerance: float,
    ) -> None:
        self.model, self.targets, self.moving, self.tolerance = model, targets, moving, tolerance
        self.low, self.high = bounds
        self.loops = kernel(model, "constraints") if model.loops else None
        plain = dict(zip(model.layout.plain_v, model.layout.plain_q, strict=True))
        self.places = [plain.get(int(j), -1) for j in moving]

    def without(self, left_out: Callable[[ReadyTask], bool]) -> IkProblem:
        """The same with fewer targets; loops stay."""
        kept = [one for one in self.targets if not left_out(one)]
        return IkProblem(self.model, kept, self.moving, (self.low, self.high), self.tolerance)

    def residual(self, q: Array) -> tuple[Array, Array]:
        """Residuals (rows, nc) of the loops, and their Jacobian (rows, nc, moving)."""
        if self.loops is None:
            return np.zeros((len(q), 0)), np.zeros((len(q), 0, len(self.moving)))
        found, flat, _ = self.loops(q, np.zeros(self.model.nv))
        J = flat.reshape(len(q), found.shape[-1], self.model.nv)
        return found, J[:, :, self.moving]

    def gaps(self, q: Array) -> Array:
        """(rows,): by how much loops are open."""
        found: Array = np.abs(self.residual(q)[0]).max(axis=1, initial=0.0)
        return found

    def inside(self, q: Array) -> Array:
        """The configurations with their moving coordinates within the limits."""
        places = [i for i in self.places if i >= 0]
        q[:, places] = np.clip(q[:, places], self.low[places], self.high[places])
        return q

    def elsewhere(self, q: Array, rng: np.random.Generator) -> Array:
        """Random configurations: the moving coordinates anywhere within their limits, or within
        half a turn or a metre.
        """
        step = np.zeros((len(q), self.model.nv))
        step[:, self.moving] = rng.uniform(-np.pi, np.pi, size=(len(q), len(self.moving)))
        moved = self.model.integrate(q, step, 1.0)
        for i in (i for i in self.places if i >= 0 and np.isfinite(self.high[i] - self.low[i])):
            moved[:, i] = rng.uniform(self.low[i], self.high[i], size=len(q))
        return self.inside(moved)

    def errors(self, q: Array, rows: RowIndices) -> list[tuple[Array | None, Array | None]]:
        """For every target: what is missing in position (rows, 3) and as a rotation vector of the
        world (rows, 3).
        """
        poses = kinematics(self.model, q)
        return [one.errors(self.model, q, poses, rows) for one in self.targets]

    def remaining(self, q: Array, rows: RowIndices) -> tuple[Array, Array]:
        """Sizes (rows, targets) of position and rotation errors."""
        found = self.errors(q, rows)
        zero = np.zeros(len(q))
        sizes = [[zero if e is None else np.linalg.norm(e, axis=1) for e in pair] for pair in found]
        return np.stack([s[0] for s in sizes], axis=1), np.stack([s[1] for s in sizes], axis=1)

    def weighted(self, q: Array, rows: RowIndices) -> tuple[Array, Array]:
        """Weighted errors (rows, m), and the largest of the plain ones (rows,)."""
        found = self.errors(q, rows)
        open_by = self.residual(q)[0]
        plain = [np.linalg.norm(e, axis=1) for pair in found for e in pair if e is not None]
        plain.append(np.abs(open_by).max(axis=1, initial=0.0))
        weights = [one.weights for one in self.targets]
        pairs = [
            (w, e)
            for ws, es in zip(weights, found, strict=True)
            for w, e in zip(ws, es, strict=True)
        ]
        parts = [*(w * e for w, e in pairs if e is not None), -_LOOPS * open_by]
        return np.concatenate(parts, axis=1), np.max(plain, axis=0)

    def jacobian(self, q: Array) -> Array:
        """(rows, m, moving)."""
        poses = kinematics(self.model, q)
        missing = self.errors(q[:1], np.zeros(1, dtype=np.int64))  # which parts are asked for
        parts: list[Array] = []
        for one, asked in zip(self.targets, missing, strict=True):
            found = one.jacobians(self.model, q, poses)
            for weight, J, part in zip(one.weights, found, asked, strict=True):
                if part is not None and J is not None:
                    parts.append(weight * J[:, :, self.moving])
        return np.concatenate([*parts, _LOOPS * self.residual(q)[1]], axis=1)

    def search(self, q: Array, rows: RowIndices, most: int) -> tuple[Array, Array, Any]:
        """(q, largest error, iterations) of the rows after damped least squares from q."""
        e, error = self.weighted(q, rows)
        mu, count = np.full(len(q), 1e-2), np.zeros(len(q), dtype=np.int64)
        going = error > self.tolerance
        for _ in range(most):
            if not going.any():
                break
            at = np.flatnonzero(going)
            count[at] += 1
            step = self.step(q[at], e[at], mu[at])
            tried = self.inside(self.model.integrate(q[at], step, 1.0))
            e_new, error_new = self.weighted(tried, rows[at])
            old, new = (e[at] ** 2).sum(axis=1), (e_new**2).sum(axis=1)
            better = new < old
            good = at[better]
            q[good], e[good], error[good] = tried[better], e_new[better], error_new[better]
            mu[at] = np.clip(np.where(better, mu[at] * 0.1, mu[at] * 5.0), _SOFTEST, _HARDEST)
            stuck = (np.abs(step).max(axis=1) < 1e-14) | (better & (old - new < _GAIN * old))
            going[at] = (error[at] > self.tolerance) & (mu[at] < _HARDEST) & ~stuck
        return q, error, count

    def step(self, q: Array, e: Array, mu: Array) -> Array:
        """The damped step (rows, nv); coordinates that stand at a limit and would leave it stay."""
        J = self.jacobian(q)
        pull = np.einsum("rmn,rm->rn", J, e)
        for k, i in enumerate(self.places):
            if i >= 0:
                held = ((q[:, i] <= self.low[i]) & (pull[:, k] < 0.0)) | (
                    (q[:, i] >= self.high[i]) & (pull[:, k] > 0.0)
                )
                J[held, :, k], pull[held, k] = 0.0, 0.0
        normal = np.einsum("rmn,rmk->rnk", J, J) + mu[:, None, None] * np.eye(len(self.moving))
        out = np.zeros((len(q), self.model.nv))
        out[:, self.moving] = np.linalg.solve(normal, pull[..., None])[..., 0]
        size = np.abs(out).max(axis=1, keepdims=True)
        return out * np.minimum(
            1.0, 1.0 / np.maximum(size, 1e-300)
        )  # no joint further than a radian or a metre at once
