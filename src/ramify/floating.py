"""What a floating robot asks for: hybrid dynamics with any joints prescribed, the centroidal map, the zero-moment point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ramify.compute import applied_wrenches, kernel_for
from ramify.errors import ModelError, StateError
from ramify.model.frame import Array
from ramify.model.model import Hybrid

if TYPE_CHECKING:
    from ramify.model.model import Model


def hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a_joints: ArrayLike,
    prescribed: Sequence[str] | None,
    tau: ArrayLike | None,
    wrenches: Mapping[str, ArrayLike] | None,
) -> Hybrid:
    """See Model.hybrid_dynamics."""
    names = _in_order(model, prescribed)
    held = np.zeros(model.nv, dtype=bool)
    for name in names:
        held[model.joint_slice(name)] = True
    a = _entries(model, "a_joints", a_joints, held, "prescribed")
    forces = _entries(model, "tau", np.zeros(int((~held).sum())) if tau is None else tau, ~held, "free")
    if model.loops:
        from ramify.loops.solve import refuse_overdriven

        refuse_overdriven(model, q, held)
    x = np.empty((*np.broadcast_shapes(a.shape[:-1], forces.shape[:-1]), model.nv))
    x[..., held], x[..., ~held] = a, forces
    if wrenches is None:
        y = kernel_for(model, "hybrid_dynamics", names)(q, v, x)
    else:
        y = kernel_for(model, "hybrid_dynamics_wrenches", names)(q, v, x, applied_wrenches(model, wrenches, q))
    return Hybrid(y[..., ~held], y[..., held])


def _in_order(model: Model, prescribed: Sequence[str] | None) -> tuple[str, ...]:
    """The prescribed joints in the model's order: those given, or all but the first."""
    if prescribed is None:
        return tuple(joint.name for joint in model.joints[1:])
    if isinstance(prescribed, str):
        raise ModelError(f"prescribed must be a list of joint names; got the text {prescribed!r}")
    given = list(prescribed)
    for i, name in enumerate(given):
        model.joint(name)
        if name in given[:i]:
            raise ModelError(f"prescribed names joint {name!r} twice")
    return tuple(joint.name for joint in model.joints if joint.name in given)


def _entries(model: Model, name: str, value: ArrayLike, mask: Array, kind: str) -> Array:
    """An array with an entry for each coordinate of a kind."""
    try:
        a = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StateError(f"hybrid_dynamics: {name} must be an array of real numbers; {error}") from None
    wanted = int(mask.sum())
    if a.shape[-1:] != (wanted,):
        which = ", ".join([n for n, m in zip(model.velocities, mask, strict=True) if m][:8])
        raise StateError(
            f"hybrid_dynamics: {name} has shape {a.shape}; it must be (..., {wanted}), an entry per {kind} coordinate: {which}"
        )
    if not np.isfinite(a).all():
        raise StateError(f"hybrid_dynamics: {name} must be finite; got {a[~np.isfinite(a)][0]}")
    return a


def centroidal_momentum_matrix(model: Model, q: ArrayLike) -> Array:
    """See Model.centroidal_momentum_matrix."""
    return np.swapaxes(model.kernel("centroidal_momentum_matrix")(q), -1, -2)


def zero_moment_point(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, height: float) -> Array:
    """See Model.zero_moment_point: p = (u x n + h f) / (u . f), the solution of u x (n - p x f) = 0 and u . p = h."""
    g = np.array(model.gravity)
    size = float(np.linalg.norm(g))
    if size == 0.0:
        raise ModelError(f"{model.name!r} has no gravity: no plane to stand on; see rf.with_gravity")
    up = -g / size
    wrench = model.kernel("required_wrench")(q, v, a)
    n, f = wrench[..., :3], wrench[..., 3:]
    lift = f @ up
    if not math.isfinite(height):
        raise StateError(f"zero_moment_point: height {height!r} must be a finite number of metres")
    carried = lift > 1e-9 * model.mass * size  # less is rounding: nothing to stand on
    if not carried.all():
        state = f" of state {int(np.flatnonzero(~carried.ravel())[0])}" if lift.ndim else ""
        raise StateError(
            f"zero_moment_point: the ground would have to pull{state} ({float(np.min(lift)):.4g} N along the normal); "
            "the robot is in free fall there and no point of the ground can carry it"
        )
    return (np.cross(up, n) + float(height) * f) / lift[..., None]
