"""Questions that take more than a call of one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, numbers, real, together
from ramify.core.errors import RamifyError, StateError
from ramify.kernels.make import kernel
from ramify.model.answers import UDU, Energy, Kinematics, Momentum, Pose
from ramify.model.configuration import checked, configuration
from ramify.model.robot import Robot


def energy(model: Robot, q: ArrayLike, v: ArrayLike) -> Energy:
    """See Model.energy."""
    return Energy(*kernel(model, "energy")(q, v))


def momentum(model: Robot, q: ArrayLike, v: ArrayLike) -> Momentum:
    """See Model.momentum."""
    return Momentum(*kernel(model, "momentum")(q, v))


def _point_of(model: Robot, link: str, point: ArrayLike) -> tuple[int, Array]:
    """Body and point in its frame for a point of a link, which may be merged into its body."""
    body, frame = model.attachment(link)
    at = real("point", point)
    if at.shape[-1:] != (3,):
        raise StateError(
            f"point has shape {at.shape}; it must be (..., 3), in m, in the frame of {link!r}"
        )
    return body, at @ frame.rotation.T + frame.position


def jacobian(model: Robot, q: ArrayLike, link: str, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """See Model.jacobian."""
    body, at = _point_of(model, link, point)
    if body < 0:
        lead = together(q=configuration(model, "q", q).shape[:-1], point=at.shape[:-1])
        return np.zeros((*lead, 6, model.nv))
    return np.swapaxes(kernel(model, "jacobian", which=body)(q, at), -1, -2)


def jacobian_rate(
    model: Robot, q: ArrayLike, v: ArrayLike, link: str, point: ArrayLike = (0.0, 0.0, 0.0)
) -> Array:
    """See Model.jacobian_rate."""
    body, at = _point_of(model, link, point)
    if body < 0:
        lead = together(
            q=configuration(model, "q", q).shape[:-1], v=checked(model, "v", v, model.nv).shape[:-1]
        )
        return np.zeros((*lead, 6))
    found: Array = kernel(model, "jacobian_rate", which=body)(q, v, at)
    return found


def kinematics(model: Robot, q: ArrayLike) -> Kinematics:
    """See Model.kinematics."""
    poses = kernel(model, "kinematics")(q)[..., list(model.skeleton.last), :]
    return Kinematics(poses[..., :9].reshape(*poses.shape[:-1], 3, 3), poses[..., 9:])


def pose(model: Robot, q: ArrayLike, name: str) -> Pose:
    """See Model.pose."""
    body, frame = model.attachment(name)
    if body < 0:
        lead = configuration(model, "q", q).shape[:-1]
        R, p = (np.broadcast_to(x, (*lead, *x.shape)) for x in (frame.rotation, frame.position))
        return Pose(np.array(R), np.array(p))
    at = kernel(model, "kinematics")(q)[..., model.skeleton.last[body], :]
    R = at[..., :9].reshape(*at.shape[:-1], 3, 3)
    return Pose(R @ frame.rotation, R @ frame.position + at[..., 9:])


def applied_wrenches(model: Robot, wrenches: Mapping[str, ArrayLike], q: ArrayLike) -> Array:
    """External wrenches by link (..., links, 6) from wrenches by name; one on a merged link is
    moved to its body's origin.
    """
    if not isinstance(wrenches, Mapping):
        raise StateError(
            f"wrenches must map body names to arrays (..., 6); it is a {type(wrenches).__name__}"
        )
    given: list[tuple[int, Array]] = []
    for name, value in wrenches.items():
        body, frame = model.attachment(name)
        w = numbers(f"the wrench on {name!r}", value, 6, "[moment; force]")
        if body < 0:
            continue  # the base does not move
        if frame.position.any():
            arm = kinematics(model, q).rotation[..., body, :, :] @ frame.position
            n, f = np.broadcast_arrays(w[..., :3] + np.cross(arm, w[..., 3:]), w[..., 3:])
            w = np.concatenate([n, f], axis=-1)
        given.append((model.skeleton.last[body], w))
    batch = together(**{f"wrench {i}": w.shape[:-1] for i, (_, w) in enumerate(given)})
    out = np.zeros((*batch, len(model.skeleton.links), 6))
    for link, w in given:
        out[..., link, :] += w
    return out


def inverse_dynamics(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Mapping[str, ArrayLike] | None
) -> Array:
    """tau of a tree under external wrenches: see Model.inverse_dynamics."""
    if not wrenches:
        return kernel(model, "inverse_dynamics")(q, v, a)
    return kernel(model, "inverse_dynamics_wrenches")(q, v, a, applied_wrenches(model, wrenches, q))


def reactions(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Mapping[str, ArrayLike] | None
) -> Array:
    """See Model.reactions."""
    found: Array = kernel(model, "reactions")(q, v, a, applied_wrenches(model, wrenches or {}, q))
    return found[..., list(model.skeleton.last), :]


def udu(model: Robot, q: ArrayLike, level: Literal["joint", "module"]) -> UDU:
    """See Model.udu."""
    U, d = kernel(model, "udu")(q)
    if _level(level) == "joint":
        return UDU(U, _diagonal(d))
    blocks = _module_blocks(model)
    within = (
        U * blocks
    )  # the part of U inside the modules: block D is within D within', block U is U within^-1
    return UDU(
        np.linalg.solve(np.swapaxes(within, -1, -2), np.swapaxes(U, -1, -2)).swapaxes(-1, -2),
        (within * d[..., None, :]) @ within.swapaxes(-1, -2),
    )


def udu_inverse(model: Robot, q: ArrayLike, level: Literal["joint", "module"]) -> UDU:
    """See Model.udu_inverse."""
    U, d = kernel(model, "udu_inverse")(q)
    if _level(level) == "joint":
        return UDU(U, _diagonal(d))
    within = U * _module_blocks(model)
    return UDU(np.linalg.solve(within, U), (within.swapaxes(-1, -2) * d[..., None, :]) @ within)


def _level(level: str) -> str:
    if level not in ("joint", "module"):
        raise RamifyError(f"level {level!r} must be 'joint' or 'module'")
    return level


def _diagonal(d: Array) -> Array:
    return d[..., :, None] * np.eye(d.shape[-1])


def _module_blocks(model: Robot) -> Array:
    """(nv, nv): one where two coordinates belong to the same module."""
    of_body = {b: module.index for module in model.modules for b in module.bodies}
    index = np.array(
        [of_body[b] for b, body in enumerate(model.bodies) for _ in range(body.joint.dof)]
    )
    return (index[:, None] == index[None, :]).astype(np.float64)
