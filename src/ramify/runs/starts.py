"""The states that runs start from: those that an earlier rollout left as NaN, and those that a
prescribed motion replaces.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array, real
from ramify.core.errors import StateError
from ramify.core.warning import warn
from ramify.model.configuration import check_quaternions, checked
from ramify.model.robot import Robot
from ramify.plant.field import Field
from ramify.plant.rates import apply_prescribed_motion

_REPLACED: Final = 1e-6
"""rad or m, also per s, or share of a larger number: a start so near to a motion is on it."""
_NAMED: Final = 3  # joints that a warning names, at most


def checked_starts(
    model: Robot, q0: ArrayLike, v0: ArrayLike, tau: ArrayLike | None
) -> tuple[Array, Array, ArrayLike | None, NDArray[np.bool_]]:
    """(q, v, tau, unknown): the start of a batch, checked. ``unknown`` (...): the states that an
    earlier rollout has left as NaN; in q and v the first good one replaces them, without forces.
    """
    unknown = np.zeros((), dtype=bool)
    try:
        q, v = checked(model, "q0", q0, model.nq), checked(model, "v0", v0, model.nv)
    except StateError as error:
        q, v, tau, unknown = _without_unknown(model, q0, v0, tau, error)
    if model.layout.balls:
        rows = q.reshape(-1, model.nq)
        check_quaternions([i for i, _ in model.layout.balls], model.coordinates, rows)
    return q, v, tau, unknown


def unknown_starts(q: Array, v: Array) -> NDArray[np.bool_]:
    """(...): which states have only NaN as coordinates or only NaN as rates."""
    of_q, of_v = (np.asarray(np.isnan(x).all(axis=-1) & bool(x.shape[-1])) for x in (q, v))
    unknown: NDArray[np.bool_] = np.asarray(of_q | of_v)
    return unknown


def _without_unknown(
    model: Robot, q0: ArrayLike, v0: ArrayLike, tau: ArrayLike | None, error: StateError
) -> tuple[Array, Array, ArrayLike | None, NDArray[np.bool_]]:
    """See ``checked_starts``. Raises the error where its reason is not a state of NaN beside
    others.
    """
    q, v = real("q0", q0), real("v0", v0)
    try:
        unknown = unknown_starts(q, v)
    except (ValueError, IndexError):  # shapes that do not fit together, or single numbers
        raise error from None
    if not unknown.ndim or unknown.all() or not unknown.any():
        raise error
    good = tuple(int(i) for i in np.argwhere(~unknown)[0])
    q, v = (np.broadcast_to(x, (*unknown.shape, x.shape[-1])) for x in (q, v))
    q, v = (np.where(unknown[..., None], x[good], x) for x in (q, v))
    q, v = checked(model, "q0", q, model.nq), checked(model, "v0", v, model.nv)
    if tau is not None and np.ndim(tau) > q.ndim and np.shape(tau)[: q.ndim - 1] == unknown.shape:
        tau = np.array(real("tau", tau))
        tau[unknown] = 0.0
    return q, v, tau, unknown


def warn_of_replaced_start(
    field: Field, t: float, y: Array, of_q: bool = True, of_v: bool = True
) -> None:
    """Warn of states y (N, size) that a prescribed motion replaces at its start, the time t (s).
    ``of_q``, ``of_v``: whether the user gave q0 and v0.
    """
    if field.prescribed is None or not (len(y) and (of_q or of_v)):
        return
    driven, replaced = field.prescribed.driven(field.robot_text), []
    moved = apply_prescribed_motion(field, np.full(len(y), t), y)
    q, v, _, _ = field.state_slices
    for what, part, columns, asked in (("q0", q, driven.q, of_q), ("v0", v, driven.v, of_v)):
        before, after = (x[:, part][:, list(columns)] for x in (y, moved))
        off = np.abs(after - before) > _REPLACED * (1.0 + np.abs(after))
        joints = np.flatnonzero(off.any(axis=0)).tolist() if asked else []
        rows = [int(np.argmax(off[:, i])) for i in joints]
        named = [
            f"{driven.names[i]!r} ({after[row, i]:.4g}, not {before[row, i]:.4g})"
            for i, row in zip(joints[:_NAMED], rows, strict=False)
        ]
        more = [f"{len(joints) - _NAMED} more"] if len(joints) > _NAMED else []
        replaced += [f"{what} of {', '.join([*named, *more])}"] if joints else []
    if replaced:
        warn(
            f"joints start where their prescribed motion is at t = {t:g} s, which replaces "
            f"{' and '.join(replaced)}; start them there, or change the motion",
            RuntimeWarning,
        )
