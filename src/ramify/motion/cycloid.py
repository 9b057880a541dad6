"""The cycloidal motion of eq. (6.14): from rest to rest, with zero acceleration at both ends."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.errors import ModelError, StateError
from ramify.model.model import Model

Array = NDArray[np.float64]


class Motion(NamedTuple):
    """A motion of n coordinates at T times: ``t`` (T,) in s; ``q``, ``v``, ``a`` (T, n), v and a the exact derivatives of q."""

    t: Array
    q: Array
    v: Array
    a: Array


def cycloid(start: ArrayLike, end: ArrayLike, duration: float = 1.0, rows: int = 1001) -> Motion:
    """Move every coordinate from ``start`` to ``end``, both (n,) or a number, within ``duration`` seconds.

    With s = t / T, the share of the way that lies behind is s - sin(2 pi s) / (2 pi); the rates and accelerations are its exact
    derivatives. ``rows`` times are spread evenly from 0 to T, both included.

    Raises StateError where a value is not finite, shapes do not fit, the duration is not positive or there are fewer than two rows.
    """
    q0, q1 = (_coordinates(name, value) for name, value in (("start", start), ("end", end)))
    try:
        q0, q1 = np.broadcast_arrays(q0, q1)
    except ValueError:
        raise StateError(f"start has {q0.size} coordinates, end has {q1.size}; give as many or a single number") from None
    if not (math.isfinite(duration) and duration > 0.0):
        raise StateError(f"duration {duration} s must be finite and positive")
    if rows < 2:
        raise StateError(f"a motion needs at least 2 rows, its start and its end; got {rows}")
    s = np.linspace(0.0, 1.0, rows)
    turn = 2.0 * np.pi * s
    way = q1 - q0
    q = q0 + np.outer(s - np.sin(turn) / (2.0 * np.pi), way)
    v = np.outer((1.0 - np.cos(turn)) / duration, way)
    a = np.outer(2.0 * np.pi * np.sin(turn) / duration**2, way)
    return Motion(s * duration, q, v, a)


_TABLE_6_5 = {"gripper": ((0.0, 0.0, 0.0, 90.0), (60.0, 80.0, 80.0, 120.0))}


def example_ends(model: Model) -> tuple[Array, Array]:
    """(start, end), each (nv,): where the book's examples move a robot.

    The built-in gripper has ends of its own (table 6.5); any other robot goes from zero to 60 degrees, slides to 0.1 m.

    Raises ModelError for a robot with quaternions, whose coordinates cannot move one by one.
    """
    if model.nq != model.nv:
        raise ModelError(f"{model.name} has quaternions among its coordinates; a cycloid moves angles and slides, one by one")
    if model.name in _TABLE_6_5 and model.nv == 4:
        start, end = _TABLE_6_5[model.name]
        return np.deg2rad(start), np.deg2rad(end)
    reach = [np.pi / 3 if step.rho else 0.1 for joint in model.joints for step in joint.steps]
    return np.zeros(model.nv), np.array(reach)


def _coordinates(name: str, value: ArrayLike) -> Array:
    array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if array.ndim != 1:
        raise StateError(f"{name} has shape {array.shape}; it must be a number or (n,)")
    if not np.isfinite(array).all():
        raise StateError(f"{name}[{int(np.argmin(np.isfinite(array)))}] is {array[~np.isfinite(array)][0]}; it must be finite")
    return array
