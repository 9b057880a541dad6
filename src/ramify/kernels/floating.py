"""Floating robots: hybrid dynamics with any joints prescribed, and the zero-moment point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array, numbers, one_number, real, together
from ramify.core.errors import ModelError, StateError
from ramify.core.names import names_of
from ramify.kernels.make import kernel
from ramify.kernels.queries import applied_wrenches
from ramify.model.answers import Hybrid
from ramify.model.robot import Robot


def hybrid_dynamics(
    model: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a_joints: ArrayLike,
    prescribed: Sequence[str] | None,
    tau: ArrayLike | None,
    wrenches: Mapping[str, ArrayLike] | None,
) -> Hybrid:
    """See Model.hybrid_dynamics."""
    names, mask = _in_order(model, prescribed), prescribed_coordinates(model, prescribed)
    a = _entries(model, "a_joints", a_joints, mask, "prescribed")
    forces = _entries(
        model, "tau", np.zeros(int((~mask).sum())) if tau is None else tau, ~mask, "free"
    )
    x = np.empty((*together(a_joints=a.shape[:-1], tau=forces.shape[:-1]), model.nv))
    x[..., mask], x[..., ~mask] = a, forces
    if wrenches is None:
        y = kernel(model, "hybrid_dynamics", which=names)(q, v, x)
    else:
        y = kernel(model, "hybrid_dynamics_wrenches", which=names)(
            q, v, x, applied_wrenches(model, wrenches, q)
        )
    return Hybrid(y[..., ~mask], y[..., mask])


def prescribed_coordinates(model: Robot, prescribed: Sequence[str] | None) -> NDArray[np.bool_]:
    """Which velocities (nv,) belong to the prescribed joints: those given, or all but the first."""
    mask = np.zeros(model.nv, dtype=bool)
    for name in _in_order(model, prescribed):
        mask[model.joint_slice(name)] = True
    return mask


def _in_order(model: Robot, prescribed: Sequence[str] | None) -> tuple[str, ...]:
    """The prescribed joints in the model's order: those given, or all but the first."""
    if prescribed is None:
        return tuple(joint.name for joint in model.joints[1:])
    if isinstance(prescribed, str):
        raise ModelError(f"prescribed must be a list of joint names; got the text {prescribed!r}")
    names = names_of("prescribed", prescribed)
    for i, name in enumerate(names):
        model.joint(name)
        if name in names[:i]:
            raise ModelError(f"prescribed names joint {name!r} twice")
    return tuple(joint.name for joint in model.joints if joint.name in names)


def _entries(
    model: Robot, name: str, value: ArrayLike, mask: NDArray[np.bool_], kind: str
) -> Array:
    """An array with an entry for each coordinate of a kind."""
    a = real(f"hybrid_dynamics: {name}", value)
    wanted = int(mask.sum())
    if a.shape[-1:] != (wanted,):
        which = ", ".join([n for n, m in zip(model.velocities, mask, strict=True) if m][:8])
        raise StateError(
            f"hybrid_dynamics: {name} has shape {a.shape}; it must be (..., {wanted}), an entry "
            f"per {kind} coordinate: {which}"
        )
    return numbers(f"hybrid_dynamics: {name}", a, wanted, model.name, unknown=True)


def zero_moment_point(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, height: float
) -> Array:
    """See Model.zero_moment_point: p = (u x n + h f) / (u . f), the solution of u x (n - p x f) = 0
    and u . p = h.
    """
    g = np.array(model.gravity)
    size = float(np.linalg.norm(g))
    if size == 0.0:
        raise ModelError(
            f"{model.name!r} has no gravity: no plane to stand on; see rf.with_gravity"
        )
    up = -g / size
    wrench = kernel(model, "required_wrench")(q, v, a)
    n, f = wrench[..., :3], wrench[..., 3:]
    lift = f @ up
    if not math.isfinite(one_number(height)):
        raise StateError(f"zero_moment_point: height {height!r} must be a finite number of metres")
    carried = lift > 1e-9 * model.mass * size  # less is rounding: nothing to stand on
    if (pulls := ~carried & np.isfinite(lift)).any():
        state = f" of state {int(np.flatnonzero(pulls.ravel())[0])}" if lift.ndim else ""
        least = float(np.min(lift[pulls] if lift.ndim else lift))
        raise StateError(
            f"zero_moment_point: the ground would have to pull{state} ({least:.4g} N "
            "along the normal); "
            "the robot is in free fall there and no point of the ground can carry it"
        )
    return (np.cross(up, n) + float(height) * f) / lift[..., None]
