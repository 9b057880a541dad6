"""Joint velocities that follow tasks from one moment to the next, within limits: the differential
inverse kinematics of a control loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, positive, real, together
from ramify.core.errors import StateError
from ramify.model.robot import Robot, the_robot
from ramify.motion.ik_iteration import rows_kernel
from ramify.motion.ik_tasks import IkTask, ready_tasks
from ramify.motion.inverse_kinematics import ik_goal
from ramify.motion.targets import posture

_ROUNDS: Final = 30
"""Changes of the active set before the slow, sure method is asked."""


def differential_ik(
    model: Robot,
    q: ArrayLike,
    tasks: IkTask | Iterable[IkTask] | Mapping[str, ArrayLike],
    dt: float,
    *,
    gain: float = 1.0,
    damping: float = 1e-6,
    joints: Iterable[str] | None = None,
    limits: bool | ArrayLike = True,
    speeds: bool | ArrayLike = True,
) -> Array:
    """Joint velocities (..., nv) that take a robot towards its tasks: the least squares

        sum of weight^2 norm(J v - gain e / dt)^2 + damping norm(v)^2

    within the speeds of the joints and such that no joint passes its limits within dt. Loops stay
    closed. ``model.integrate(q, v, dt)`` is the next posture.

    q (..., nq); tasks: as for rf.ik, of the moment. dt: the period of the loop, s. gain: share of
    the error that a step is to remove, in (0, 1]. damping: keeps v small near singular postures.
    joints: those that move. limits: True for the joints' own, False, or (nq, 2). speeds: True for
    the joints' own, False, or (nv). One state or a batch. Raises StateError for what does not fit.
    """
    the_robot(model)
    dt, gain, damping = (
        positive(name, x) for name, x in (("dt", dt), ("gain", gain), ("damping", damping))
    )
    if gain > 1.0:
        raise StateError(
            f"gain {gain:g} must be at most 1: the share of the error that a step removes"
        )
    ready = ready_tasks(model, tasks, soft_alone=True)
    start = posture(model, "q", q)
    shapes = {f"task {i}": one.numbers.shape[:-1] for i, one in enumerate(ready)}
    lead = together(**shapes, q=start.shape[:-1])
    problem, ends, goal = ik_goal(model, ready, lead, joints, limits, 0.0)
    at = np.broadcast_to(start, (*lead, model.nq)).reshape(len(goal), model.nq)
    one = len(goal) == 1
    e, J = rows_kernel(model, problem)(at[0] if one else at, goal[0] if one else goal)
    e, J = (e[None], J[None]) if one else (e, J)
    moving = list(problem.moving)
    H = J.swapaxes(1, 2) @ J
    H[:, range(len(moving)), range(len(moving))] += damping
    g = (e[:, None, :] @ J)[:, 0] * (gain / dt)
    low, high = _fastest(model, moving, len(goal), speeds)
    limited = [k for k, i in enumerate(problem.places) if i >= 0]
    here = at[:, list(problem.limited)]
    low[:, limited] = np.maximum(low[:, limited], np.minimum((ends[0] - here) / dt, 0.0))
    high[:, limited] = np.minimum(high[:, limited], np.maximum((ends[1] - here) / dt, 0.0))
    out = np.zeros((len(goal), model.nv))
    out[:, moving] = _within(H, g, low, high)
    return out.reshape(*lead, model.nv)


def _fastest(
    model: Robot, moving: list[int], rows: int, speeds: bool | ArrayLike
) -> tuple[Array, Array]:
    """The least and largest velocities (rows, moving) by the speeds of the joints."""
    if speeds is True:
        fastest = model.rated_velocity
    elif speeds is False:
        fastest = np.full(model.nv, np.inf)
    else:
        fastest = real("speeds", speeds)
        if fastest.shape != (model.nv,) or not (fastest >= 0.0).all():
            raise StateError(f"speeds must be ({model.nv},), none negative")
    high = np.tile(fastest[moving], (rows, 1))
    return -high, high


def _within(H: Array, g: Array, low: Array, high: Array) -> Array:
    """Minima of v' H v / 2 - g' v with low <= v <= high, row by row: primal-dual active sets, all
    rows at once, and bounded least squares for a row on which these go round in circles.
    """
    v: Array = np.linalg.solve(H, g[..., None])[..., 0].astype(np.float64, copy=False)
    if ((v >= low) & (v <= high)).all():
        return v
    v = np.clip(v, low, high)
    pull = g - np.einsum("rnk,rk->rn", H, v)
    scale = np.einsum("rnn->rn", H)
    left = np.arange(len(v))
    held = np.full(v.shape, 0)
    for _ in range(_ROUNDS):
        target = v[left] + pull[left] / scale[left]
        now = np.where(target > high[left], 1, np.where(target < low[left], -1, 0))
        same = (now == held[left]).all(axis=1)
        held[left] = now
        left = left[~same]
        if not left.size:
            return v
        now = now[~same]
        fixed = np.where(now > 0, high[left], np.where(now < 0, low[left], 0.0))
        free = now == 0
        A = np.where(free[:, :, None] & free[:, None, :], H[left], 0.0)
        A[:, range(v.shape[1]), range(v.shape[1])] += np.where(free, 0.0, 1.0)
        b = np.where(free, g[left] - np.einsum("rnk,rk->rn", H[left], fixed), fixed)
        v[left] = np.linalg.solve(A, b[..., None])[..., 0]
        pull[left] = g[left] - np.einsum("rnk,rk->rn", H[left], v[left])
    from scipy.optimize import lsq_linear

    for row in left:
        L = np.linalg.cholesky(H[row])
        y = np.linalg.solve(L, g[row])
        room = np.maximum(high[row] - low[row], 1e-12)
        v[row] = lsq_linear(L.T, y, (low[row], low[row] + room), method="bvls").x
    return v
