"""One iteration of damped least squares for inverse kinematics, over any scalar, and the kernels of
a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ramify.core.scalar import Scalar, Scalars, select, sqrt
from ramify.dynamics.tree import Tree, tree_of
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.text_kernel import text_kernel
from ramify.kernels.tier_policy import MAX_LINKS
from ramify.model.robot import Robot
from ramify.motion.ik_text import (
    IkProblem,
    Row,
    TaskPart,
    moved_by_step,
    task_parts,
    weighted_errors_and_rows,
)
from ramify.runtime.cache_keys import digest
from ramify.runtime.kernel import Kernel
from ramify.trace.program import Port

SOFTEST: Final = 1e-12
HARDEST: Final = 1e8
_TINY: Final = 1e-14


def iteration(
    robot: Robot, tree: Tree, problem: IkProblem, q: Scalars, mu: Scalar, goal: Scalars
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """(q, [mu, largest error, whether to go on, whether this iteration searched], size of every
    part at the q that was given).

    (J' J + mu 1) dq = J' e; the step is taken where it makes e smaller. A q within the tolerance
    stays as it is. Coordinates at a limit that would leave it stay; no joint moves further than a
    radian or a metre at once.
    """
    parts = task_parts(robot, tree, problem, q, goal)
    sizes, error, square = _sizes(parts, robot)
    n, limited = len(problem.limited), problem.limited
    low = dict(zip(limited, goal[2:], strict=False))
    high = dict(zip(limited, goal[2 + n :], strict=False))
    e, J = weighted_errors_and_rows(parts, problem.moving)
    step = _damped(problem, q, low, high, e, J, mu)
    largest: Scalar = 0.0
    for x in step.values():
        size = select(x < 0.0, -x, x)
        largest = select(size > largest, size, largest)
    scale = 1.0 / select(largest > 1.0, largest, 1.0)
    tried = moved_by_step(robot, q, {j: x * scale for j, x in step.items()})
    for i in limited:
        x = select(tried[i] < low[i], low[i], tried[i])
        tried[i] = select(x > high[i], high[i], x)
    _, error_then, square_then = _sizes(task_parts(robot, tree, problem, tried, goal), robot)
    searched = error > goal[0]
    better = square_then < square
    taken = select(searched, select(better, 1.0, 0.0), 0.0) > 0.5
    after = select(taken, error_then, error)
    eased, raised = mu * 0.1, mu * 5.0
    eased = select(eased < SOFTEST, SOFTEST, eased)
    new_mu = select(taken, eased, select(raised > HARDEST, HARDEST, raised))
    slow = select(better, select(square - square_then < goal[1] * square, 1.0, 0.0), 0.0)
    stopped = slow + select(largest < _TINY, 1.0, 0.0) + select(new_mu < HARDEST, 0.0, 1.0)
    going = select(after > goal[0], select(stopped > 0.5, 0.0, 1.0), 0.0)
    q_new = [select(taken, a, b) for a, b in zip(tried, q, strict=True)]
    return q_new, [new_mu, after, going, select(searched, 1.0, 0.0)], sizes


def _sizes(
    parts: Sequence[tuple[TaskPart | None, TaskPart | None]], robot: Robot
) -> tuple[list[Scalar], Scalar, Scalar]:
    """Sizes of position and rotation errors of every task (and of the loops), the largest of those
    that count, and the sum of the weighted squares.
    """
    sizes: list[Scalar] = []
    error: Scalar = 0.0
    total: Scalar = 0.0
    for k, pair in enumerate(parts):
        for part in pair:
            size: Scalar = 0.0
            if part is not None:
                square: Scalar = 0.0
                for x in part.errors:
                    square = square + x * x
                total = total + (part.weight * part.weight) * square
                if robot.loops and k == len(parts) - 1:  # the largest residual
                    for x in part.errors:
                        amount = select(x < 0.0, -x, x)
                        size = select(amount > size, amount, size)
                else:
                    size = sqrt(square)
                counts = select(part.weight > 0.0, size, 0.0)
                error = select(counts > error, counts, error)
            sizes.append(size)
    return sizes, error, total


def _damped(
    problem: IkProblem, q: Scalars, low: Row, high: Row, e: list[Scalar], J: list[Row], mu: Scalar
) -> Row:
    """The damped step of the entries that move: from n equations, or from as many as there are
    errors, dq = J' (J J' + mu 1)^-1 e, whichever are fewer.
    """
    place = dict(zip(problem.moving, problem.places, strict=True))
    pull: dict[int, Scalar] = dict.fromkeys(problem.moving, 0.0)
    for error, row in zip(e, J, strict=True):
        for k, x in row.items():
            pull[k] = pull[k] + x * error
    free: dict[int, Scalar] = {}
    for k, i in place.items():
        if i >= 0:
            below = select(q[i] <= low[i], select(pull[k] < 0.0, 0.0, 1.0), 1.0)
            free[k] = select(q[i] >= high[i], select(pull[k] > 0.0, 0.0, 1.0), below)
    rows = [{k: x * free.get(k, 1.0) for k, x in row.items()} for row in J]
    if len(e) < len(problem.moving):
        pairs = {(i, j): _dot(a, rows[j]) for i, a in enumerate(rows) for j in range(i + 1)}
        for i in range(len(e)):
            pairs[i, i] = _plus(pairs[i, i], mu)
        y = symmetric_solve(pairs, dict(enumerate(e)))
        step: dict[int, Scalar] = dict.fromkeys(problem.moving, 0.0)
        for i, row in enumerate(rows):
            for k, x in row.items():
                step[k] = step[k] + x * y[i]
        return step
    normal: dict[tuple[int, int], Scalar | None] = {(k, k): mu for k in problem.moving}
    for row in rows:
        for k, x in row.items():
            for j, z in row.items():
                if j <= k:
                    normal[k, j] = _plus(normal.get((k, j)), x * z)
    return symmetric_solve(normal, {k: pull[k] * free.get(k, 1.0) for k in problem.moving})


def _dot(a: Row, b: Row) -> Scalar | None:
    """The product of two rows; None where they share nothing."""
    out: Scalar | None = None
    for k in sorted(a.keys() & b.keys()):
        out = _plus(out, a[k] * b[k])
    return out


def _plus(a: Scalar | None, b: Scalar) -> Scalar:
    return b if a is None else a + b


def symmetric_solve(
    A: dict[tuple[int, int], Scalar | None], b: dict[int, Scalar]
) -> dict[int, Scalar]:
    """A x = b for a positive A given by the entries (i, j), j <= i, that are not zero beforehand:
    L D L', the unknown with fewest neighbours first.
    """
    near: dict[int, dict[int, Scalar]] = {i: {} for i in b}
    pivots: dict[int, Scalar] = {}
    for (i, j), entry in A.items():
        if entry is not None and i != j:
            near[i][j] = near[j][i] = entry
        elif entry is not None:
            pivots[i] = entry
    least = {i: pivot * _TINY for i, pivot in pivots.items()}
    x: dict[int, Scalar] = dict(b)
    shares: dict[int, dict[int, Scalar]] = {}
    order: list[tuple[int, Scalar]] = []
    while near:
        i = min(near, key=lambda k: (len(near[k]), k))
        d = 1.0 / select(pivots[i] > least[i], pivots[i], least[i])
        column = near.pop(i)
        shares[i] = {j: a * d for j, a in column.items()}
        order.append((i, d))
        for j, share in shares[i].items():
            del near[j][i]
            x[j] = x[j] - share * x[i]
            pivots[j] = pivots[j] - share * column[j]
            for k in column:
                if k < j:
                    old = near[j].get(k, 0.0)
                    near[j][k] = near[k][j] = old - share * column[k]
    out: dict[int, Scalar] = {}
    for i, d in reversed(order):
        value = x[i] * d
        for j, share in shares[i].items():
            value = value - share * out[j]
        out[i] = value
    return out


# ---- kernels ----


def iteration_kernel(robot: Robot, problem: IkProblem) -> Kernel:
    """(q, mu (1), goal) -> (q, state (4), sizes): see ``iteration``."""

    def text(q: Scalars, mu: Scalars, goal: Scalars) -> list[list[Scalar]]:
        return list(iteration(robot, tree_of(robot), problem, q, mu[0], goal))

    parts = 2 * (len(problem.forms) + bool(robot.loops))
    inputs = [Port("q", (robot.nq,)), Port("mu", (1,)), Port("goal", (problem.starts[-1],))]
    outputs = [Port("q", (robot.nq,)), Port("state", (4,)), Port("sizes", (parts,))]
    return _kernel(robot, "ik_iteration", problem, text, inputs, outputs)


def rows_kernel(robot: Robot, problem: IkProblem) -> Kernel:
    """(q, goal) -> (weighted errors (m), their Jacobian (m, moving))."""

    def text(q: Scalars, goal: Scalars) -> list[list[Scalar]]:
        parts = task_parts(robot, tree_of(robot), problem, q, goal)
        e, J = weighted_errors_and_rows(parts, problem.moving)
        return [e, [row.get(k, 0.0) for row in J for k in problem.moving]]

    m = sum(form.rows for form in problem.forms) + sum(len(loop.rows) for loop in robot.loops)
    inputs = [Port("q", (robot.nq,)), Port("goal", (problem.starts[-1],))]
    outputs = [Port("errors", (m,)), Port("J", (m, len(problem.moving)))]
    return _kernel(robot, "ik_rows", problem, text, inputs, outputs)


def _kernel(
    robot: Robot, name: str, problem: IkProblem, text: Any, inputs: list[Port], outputs: list[Port]
) -> Kernel:
    def make() -> Kernel:
        key = digest(name, robot_key(robot), repr(problem))
        tier = "numpy" if len(robot.skeleton.links) > MAX_LINKS else None
        return text_kernel(robot, name, text, inputs, outputs, lambda _: key, tier)

    return robot.memo.remember((__name__, name, problem), make)
