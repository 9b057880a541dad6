"""Joint positions that bring points and frames of a robot where they are wanted: damped least
squares.

For any robot and any number of targets at once, whole batches of them together. Legs of two links
have a closed form (``leg``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, flag, positive, together, whole
from ramify.core.errors import StateError
from ramify.model.robot import Robot, joint_entries, the_robot
from ramify.motion.ik_iteration import iteration_kernel
from ramify.motion.ik_tasks import IkTask, ready_tasks
from ramify.motion.ik_text import IkProblem
from ramify.motion.targets import (
    ReadyTask,
    RowIndices,
    bounds,
    moving_entries,
    posture,
    side_by_side,
)

Flags = np.ndarray[Any, np.dtype[np.bool_]]
_START: Final = 1e-2
"""Damping of the first iteration."""
_IMPATIENT: Final = 1e-3
_PATIENT: Final = 1e-7
"""Share of the squared error that an iteration must win, while other postures can be tried and at
last: one that wins less has come as near as it gets.
"""
_AGAIN: Final = 40
"""Iterations of a search from a random posture: another posture helps more than further ones."""
_TOGETHER: Final = 4
"""Random postures that are tried side by side."""
_UNLIMITED: Final = 1e30
_ANYTHING: Final = 1e300
"""A tolerance that all errors meet."""


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
    restarts: int = 24,
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
    restarts, strict = whole("restarts", restarts, 0, most=10**5), flag("strict", strict)
    wanted = ready_tasks(model, targets)
    start = posture(model, "guess", _near_loops(model) if guess is None else guess)
    shapes = {f"target {i}": one.numbers.shape[:-1] for i, one in enumerate(wanted)}
    lead = together(**shapes, guess=start.shape[:-1])
    rows = math.prod(lead)
    search = IkSearch(model, wanted, lead, joints, limits, tolerance)
    q = np.broadcast_to(start, (*lead, model.nq)).reshape(rows, model.nq).copy()
    q = search.inside(q)
    every = np.arange(rows)
    q, error, iterations = search.run(q, every, max_iterations)
    if any(one.soft for one in wanted):
        search.weigh(lambda one: not one.soft)
        q, error, count = search.run(q, every, max_iterations)
        iterations += count
    left = np.flatnonzero(error > tolerance)
    tries = search.elsewhere(restarts) if left.size else np.zeros((0, model.nv))
    for begin in range(0, restarts if left.size else 0, _TOGETHER):
        some = tries[begin : begin + _TOGETHER]
        found, far, count = search.any_of(q[left], some, left, min(max_iterations, _AGAIN))
        iterations[left] += count
        better = far < error[left]
        q[left[better]], error[left[better]] = found[better], far[better]
        left = np.flatnonzero(error > tolerance)
        if not left.size:
            break
    if left.size:  # as near as it comes; loops are closed in any case
        q[left], error[left], count = search.run(q[left], left, max_iterations, _PATIENT)
        iterations[left] += count
        if model.loops:
            search.weigh(lambda one: False)
            q[left], _, count = search.run(q[left], left, max_iterations, _PATIENT)
            iterations[left] += count
    sizes = search.sizes(q)
    parts = len(wanted)
    found_posture = Posture(
        q.reshape(*lead, model.nq),
        (error <= tolerance).reshape(lead),
        sizes[:, 0 : 2 * parts : 2].reshape(*lead, parts),
        sizes[:, 1 : 2 * parts : 2].reshape(*lead, parts),
        iterations.reshape(lead),
        (sizes[:, -2] if model.loops else np.zeros(rows)).reshape(lead),
    )
    if strict and left.size:
        _refuse(search, found_posture, left, lead)
    return found_posture


ik = inverse_kinematics
"""``inverse_kinematics`` under the name that users of other programs look for."""


def _near_loops(model: Robot) -> Array:
    """The neutral configuration, with the coordinates that the robot's loops are guessed from."""
    q = model.neutral()
    for name, value in model.guess.items():
        q[model.coordinates.index(name)] = value
    return q


def _refuse(search: IkSearch, posture: Posture, left: RowIndices, lead: tuple[int, ...]) -> None:
    row, model, tasks = int(left[0]), search.model, search.tasks
    errors = {"m": posture.position_error, "rad": posture.rotation_error}
    rows = {unit: size.reshape(-1, len(tasks))[row] for unit, size in errors.items()}
    worst = int(np.argmax(sum(rows.values()) * np.array([not one.soft for one in tasks])))
    sizes = {unit: size[worst] for unit, size in rows.items()}
    parts = [f"{x:.4g} {unit}" for unit, x in sizes.items() if x > 0.1 * search.tolerance]
    place = tuple(int(i) for i in np.unravel_index(row, lead)) if lead else ()
    state = f" of state {row if len(lead) == 1 else place}" if lead else ""
    moving = search.problem.moving
    free = [j.name for j in model.joints if j.floating]
    fixed = [repr(j) for j in free if not set(moving) & set(joint_entries(model, j))]
    base = f"The floating base {', '.join(fixed)} does not move by default; joints= can name it. "
    base = base if fixed else ""
    loops = " with the loops closed" if model.loops else ""
    raise StateError(
        f"inverse kinematics: target {worst} ({tasks[worst].name}){state} is not met"
        f"{loops}, {' and '.join(parts)} remain; it "
        f"may be out of reach of the {len(moving)} coordinates that move and their limits. "
        f"{base}Try another guess, or "
        "strict=False for the nearest posture"
    )


# ---- one problem ----


class IkSearch:
    """Rows of configurations on their way to their goals."""

    def __init__(
        self,
        model: Robot,
        tasks: Sequence[ReadyTask],
        lead: tuple[int, ...],
        joints: Iterable[str] | None,
        limits: bool | ArrayLike,
        tolerance: float,
    ) -> None:
        self.model, self.tasks, self.tolerance = model, tasks, tolerance
        self.problem, ends, self.goal = ik_goal(model, tasks, lead, joints, limits, tolerance)
        self.limited, (self.low, self.high) = list(self.problem.limited), ends
        self.kernel = iteration_kernel(model, self.problem)

    def weigh(self, counts: Callable[[ReadyTask], bool]) -> None:
        """Leave tasks out: their weights become zero."""
        for one, begin in zip(self.tasks, self.problem.starts, strict=False):
            if not counts(one):
                self.goal[:, begin : begin + 2] = 0.0

    def inside(self, q: Array) -> Array:
        """The configurations with their moving coordinates within the limits."""
        if self.limited:
            q[:, self.limited] = np.minimum(np.maximum(q[:, self.limited], self.low), self.high)
        return q

    def elsewhere(self, count: int) -> Array:
        """Steps (count, nv) to random postures from any configuration, always the same: within half
        a turn or a metre; ``any_of`` draws coordinates between two limits from these.
        """
        out = np.zeros((count, self.model.nv))
        share = np.random.default_rng(0).uniform(-1.0, 1.0, (count, len(self.problem.moving)))
        out[:, self.problem.moving] = np.pi * share
        return out

    def sizes(self, q: Array) -> Array:
        """(rows, 2 a task, and 2 for the loops): what is missing, unweighted."""
        goal = self.goal.copy()
        goal[:, 0] = _ANYTHING
        mu = np.ones((len(q), 1))
        one = len(q) == 1  # the way of single states is shorter
        given = (x[0] if one else x for x in (q, mu, goal))
        found: Array = self.kernel(*given)[2]
        return found[None] if one else found

    def any_of(
        self, q: Array, steps: Array, rows: RowIndices, most: int
    ) -> tuple[Array, Array, RowIndices]:
        """Searches from several postures for each row, all side by side until one of them succeeds:
        (q, error, iterations) of the best.
        """
        n, k = len(q), len(steps)
        begin = self.model.integrate(np.repeat(q, k, axis=0), np.tile(steps, (n, 1)), 1.0)
        entry = dict(zip(self.problem.places, self.problem.moving, strict=True))
        for i, low, high in zip(self.limited, self.low, self.high, strict=True):
            if high - low < _UNLIMITED:
                share = 0.5 + steps[:, entry[i]] / (2.0 * np.pi)
                begin[:, i] = np.tile(low + share * (high - low), n)
        owner = np.repeat(np.arange(n), k)
        begin, rows = self.inside(begin), np.repeat(rows, k)
        found, error, count = self.run(begin, rows, most, _IMPATIENT, owner)
        best = error.reshape(n, k).argmin(axis=1) + k * np.arange(n)
        return found[best], error[best], count.reshape(n, k).sum(axis=1)

    def run(
        self,
        q: Array,
        rows: RowIndices,
        most: int,
        patience: float = _IMPATIENT,
        owner: RowIndices | None = None,
    ) -> tuple[Array, Array, RowIndices]:
        """(q, largest error, iterations) after damped least squares from q; ``rows``: whose goals
        these are. ``owner``: rows that share one stop when one of them has come home.
        """
        goal = self.goal[rows]
        goal[:, 1] = patience
        if len(q) == 1:
            return self._run_one(q[0], goal[0], most)
        postures, error = q.copy(), np.empty(len(q))
        count, at = np.zeros(len(q), dtype=np.int64), np.arange(len(q))
        mu = np.full((len(q), 1), _START)
        home = None if owner is None else np.zeros(len(q), dtype=bool)
        for _ in range(most):
            q, state, _ = self.kernel(q, mu, goal)
            postures[at], error[at] = q, state[:, 1]
            count[at] += state[:, 3] > 0.5
            going = state[:, 2] > 0.5
            if home is not None and owner is not None:
                home[owner[at[state[:, 1] <= self.tolerance]]] = True
                going &= ~home[owner[at]]
            if not going.any():
                break
            mu = state[:, :1]
            if not going.all():
                at, q, mu, goal = at[going], q[going], mu[going], goal[going]
        return postures, error, count

    def _run_one(self, q: Array, goal: Array, most: int) -> tuple[Array, Array, RowIndices]:
        mu, count, call = np.array([_START]), 0, self.kernel
        for _ in range(most):
            q, state, _ = call(q, mu, goal)
            mu = state[:1]
            if state[3] > 0.5:
                count += 1
            if state[2] < 0.5:
                break
        return q[None], state[1:2], np.array([count])


def ik_goal(
    model: Robot,
    tasks: Sequence[ReadyTask],
    lead: tuple[int, ...],
    joints: Iterable[str] | None,
    limits: bool | ArrayLike,
    tolerance: float,
) -> tuple[IkProblem, list[Array], Array]:
    """The kind of a problem, the lower and upper limits of the coordinates that move, and a goal
    (rows, size) for every state of the batch.
    """
    moving = moving_entries(model, joints)
    low, high = bounds(model, limits)
    places = tuple(model.layout.to_q.get(j, -1) for j in moving)
    problem = IkProblem(tuple(one.form for one in tasks), moving, places)
    limited = list(problem.limited)
    ends = [np.clip(end[limited], -_UNLIMITED, _UNLIMITED) for end in (low, high)]
    goal = side_by_side(np.array([tolerance, 0.0]), *ends, *(one.numbers for one in tasks))
    wide = np.broadcast_to(goal, (*lead, goal.shape[-1]))
    return problem, ends, wide.reshape(math.prod(lead), goal.shape[-1]).copy()
