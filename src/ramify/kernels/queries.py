"""Questions that take more than a call of one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, flag, numbers, real, together, unknown_states
from ramify.core.errors import StateError
from ramify.core.names import one_of
from ramify.dynamics.parameters import packed, rigid_parameters
from ramify.kernels.make import kernel
from ramify.model.answers import UDU, Energy, FrameMotion, FramePose, Kinematics, Momentum
from ramify.model.configuration import checked, configuration
from ramify.model.robot import Robot
from ramify.runtime.kernel import Kernel


class FramePoses(dict[str, tuple[Kernel, Array] | None]):
    """By the name of a link or frame: the kernel of poses on its body, and the frame there; None on
    the base.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def __missing__(self, name: str) -> tuple[Kernel, Array] | None:
        body, frame = self._robot.attachment(name)
        at = np.concatenate([frame.rotation.ravel(), frame.position])
        entry = (kernel(self._robot, "frame_pose", which=body), at) if body >= 0 else None
        self[name] = entry
        return entry


class Jacobians(dict[str, tuple[Kernel, Array] | None]):
    """By the name of a link: the kernel of its body's Jacobian, and the link's origin in the body;
    None for links of the base.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def __missing__(self, link: str) -> tuple[Kernel, Array] | None:
        body, at = body_point(self._robot, link, ORIGIN)
        entry = (kernel(self._robot, "jacobian", which=body), at) if body >= 0 else None
        self[link] = entry
        return entry


ORIGIN: Final = (0.0, 0.0, 0.0)


def body_point(model: Robot, link: str, point: ArrayLike) -> tuple[int, Array]:
    """Body and point in its frame for a point of a link, which may be merged into its body."""
    body, frame = model.attachment(link)
    at = real("point", point)
    if at.shape[-1:] != (3,):
        raise StateError(
            f"point has shape {at.shape}; it must be (..., 3), in m, in the frame of {link!r}"
        )
    return body, at @ frame.rotation.T + frame.position


def jacobian(
    model: Robot,
    q: ArrayLike,
    link: str,
    point: ArrayLike = ORIGIN,
    parameters: Mapping[str, ArrayLike] | None = None,
) -> Array:
    """See Model.jacobian."""
    body, at = body_point(model, link, point)
    if body < 0:
        at_q = configuration(model, "q", q, True)
        lead = together(q=at_q.shape[:-1], point=at.shape[:-1])
        return _of_the_base(np.zeros((*lead, 6, model.nv)), at_q)
    if parameters is None:
        return kernel(model, "jacobian", which=body)(q, at)
    names, values = packed(rigid_parameters(model), parameters, model.name)
    return kernel(model, "jacobian", which=body, parameters=names)(q, at, values)


def jacobian_rate(
    model: Robot, q: ArrayLike, v: ArrayLike, link: str, point: ArrayLike = ORIGIN
) -> Array:
    """See Model.jacobian_rate."""
    body, at = body_point(model, link, point)
    if body < 0:
        state = configuration(model, "q", q, True), checked(model, "v", v, model.nv, True)
        lead = together(q=state[0].shape[:-1], v=state[1].shape[:-1])
        return _of_the_base(np.zeros((*lead, 6)), *state)
    return kernel(model, "jacobian_rate", which=body)(q, v, at)


def frame_motion(
    model: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    link: str,
    point: ArrayLike = ORIGIN,
) -> FrameMotion:
    """See Model.frame_motion."""
    body, at = body_point(model, link, point)
    if body < 0:
        tau = inverse_dynamics(model, q, v, a, None)  # shapes and numbers are checked
        still = np.where(unknown_states(tau)[..., None], np.nan, np.zeros(6))
        return FrameMotion(still, still.copy())
    return kernel(model, "frame_motion", which=body)(q, v, a, at)


def energy(model: Robot, q: ArrayLike, v: ArrayLike) -> Energy:
    """See Model.energy."""
    return kernel(model, "energy")(q, v)


def momentum(model: Robot, q: ArrayLike, v: ArrayLike) -> Momentum:
    """See Model.momentum."""
    return kernel(model, "momentum")(q, v)


def kinematics(model: Robot, q: ArrayLike) -> Kinematics:
    """See Model.kinematics."""
    return kernel(model, "kinematics")(q)


def pose(model: Robot, q: ArrayLike, name: str) -> FramePose:
    """See Model.pose."""
    entry = FramePoses(model)[name]
    if entry is None:
        frame, at_q = model.attachment(name).frame, configuration(model, "q", q, True)
        lead = at_q.shape[:-1]
        R, p = (np.broadcast_to(x, (*lead, *x.shape)) for x in (frame.rotation, frame.position))
        return FramePose(*(_of_the_base(np.array(x), at_q) for x in (R, p)))
    return entry[0](q, entry[1])


def _of_the_base(answer: Array, *state: Array) -> Array:
    """What does not depend on the state (..., n), NaN where a state of a batch is not known."""
    answer[unknown_states(*state)] = np.nan
    return answer


def varied(model: Robot, name: str, parameters: Mapping[str, ArrayLike], *inputs: ArrayLike) -> Any:
    """The result of an algorithm with other values of the robot's constants, one per state."""
    names, values = packed(rigid_parameters(model), parameters, model.name)
    return kernel(model, name, parameters=names)(*inputs, values)


def applied_wrenches(model: Robot, wrenches: Mapping[str, ArrayLike], q: ArrayLike) -> Array:
    """External wrenches by link (..., links, 6) from wrenches by name; one on a merged link is
    moved to its body's origin.
    """
    if not isinstance(wrenches, Mapping):
        raise StateError(
            f"wrenches must map body names to arrays (..., 6); it is a {type(wrenches).__name__}"
        )
    applied: list[tuple[int, Array]] = []
    for name, value in wrenches.items():
        body, frame = model.attachment(name)
        w = numbers(f"the wrench on {name!r}", value, 6, "[moment; force]", unknown=True)
        if body < 0:
            continue  # the base does not move
        if frame.position.any():
            arm = kinematics(model, q).rotation[..., body, :, :] @ frame.position
            n, f = np.broadcast_arrays(w[..., :3] + np.cross(arm, w[..., 3:]), w[..., 3:])
            w = np.concatenate([n, f], axis=-1)
        applied.append((model.skeleton.last[body], w))
    batch = together(**{f"wrench {i}": w.shape[:-1] for i, (_, w) in enumerate(applied)})
    out = np.zeros((*batch, len(model.skeleton.links), 6))
    for link, w in applied:
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
    return kernel(model, "reactions")(
        q, v, a, applied_wrenches(model, {} if wrenches is None else wrenches, q)
    )


def udu(model: Robot, q: ArrayLike, level: Literal["joint", "module"]) -> UDU:
    """See Model.udu."""
    factors: UDU = kernel(model, "udu")(q)
    if _level(level) == "joint":
        return factors
    # the part of U inside the modules: block D is within D within', block U is U within^-1
    within = factors.U * _module_blocks(model)
    U = _solved(within.swapaxes(-1, -2), factors.U.swapaxes(-1, -2)).swapaxes(-1, -2)
    return UDU(U, within @ factors.D @ within.swapaxes(-1, -2))


def udu_inverse(model: Robot, q: ArrayLike, level: Literal["joint", "module"]) -> UDU:
    """See Model.udu_inverse."""
    factors: UDU = kernel(model, "udu_inverse")(q)
    if _level(level) == "joint":
        return factors
    within = factors.U * _module_blocks(model)
    return UDU(_solved(within, factors.U), within.swapaxes(-1, -2) @ factors.D @ within)


def _solved(A: Array, B: Array) -> Array:
    return np.linalg.solve(A, B).astype(np.float64, copy=False)


def _level(level: str) -> str:
    one_of("level", level, ("joint", "module"))
    return level


def _module_blocks(model: Robot) -> Array:
    """(nv, nv): one where two coordinates belong to the same module."""
    of_body = {b: module.index for module in model.modules for b in module.bodies}
    index = np.array(
        [of_body[b] for b, body in enumerate(model.bodies) for _ in range(body.joint.dof)]
    )
    return (index[:, None] == index[None, :]).astype(np.float64)


def regressor(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, drives: bool = False
) -> Array:
    """See Model.regressor."""
    Y: Array = kernel(model, "regressor")(q, v, a)
    with_drives = flag("drives", drives)
    if not (with_drives or any(model.armature)):
        return Y
    lead, unknown = Y.shape[:-1], np.isnan(Y[..., 0])

    def diagonal(name: str, of: ArrayLike) -> Array:
        entries = np.broadcast_to(checked(model, name, of, model.nv, True), lead)
        return np.where(unknown, np.nan, entries)[..., None] * np.eye(model.nv)

    columns = [Y, diagonal("a", a)]
    if with_drives:
        columns += [
            diagonal("v", v),
            diagonal("v", np.sign(checked(model, "v", v, model.nv, True))),
        ]
    return np.concatenate(columns, axis=-1)
