"""Coordinates of other programs: q, v, a and tau to and from those of Pinocchio and MuJoCo, joint
by joint, exactly and in batches.

One-degree-of-freedom joints agree everywhere. They differ at these (R: rotation matrix of the
joint; ours first, then theirs):

    free   q = [p, qw qx qy qz]   v = [dp/dt, w]     Pinocchio: [p, qx qy qz qw], [R' dp/dt, w]
                                  a = dv/dt          Pinocchio: [R' d2p/dt2 - w x R' dp/dt, dw/dt]
    ball   q = [qw qx qy qz]      v = w in the body  Pinocchio: [qx qy qz qw], w
    planar q = [x, y, angle]      v = dq/dt          Pinocchio: [x, y, cos, sin], velocity seen from the body

MuJoCo's free and ball joints are ours. Forces follow from equal power. A joint takes another *form*
on the other side where asked for: a revolute one (cos, sin) ("cos_sin"), an Euler-angle one a
quaternion ("quaternion"), a planar one three plain coordinates ("plain").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, numbers, together, unknown_states
from ramify.core.errors import ModelError, StateError
from ramify.core.names import mapping_of, names_of, one_of
from ramify.model import quaternions
from ramify.model.configuration import UNIT_TOLERANCE
from ramify.model.joint import Joint
from ramify.model.robot import Robot

PeerProgram = Literal["pinocchio", "mujoco"]
Given = ArrayLike | None


class Coordinates(NamedTuple):
    """``q`` (..., nq), and where they were given ``v``, ``a`` and ``tau`` (..., nv)."""

    q: Array
    v: Array | None = None
    a: Array | None = None
    tau: Array | None = None


# ---- one joint ----


JointMap = Callable[[Joint, Coordinates], Coordinates]


def _of_q(f: Callable[[Array], Array]) -> JointMap:
    """A map that leaves velocities and forces alone."""
    return lambda joint, x: x._replace(q=f(x.q))


def _to_free(joint: Joint, x: Coordinates) -> Coordinates:
    """Velocities and forces at the origin go along the axes of the body; a_lin is the rate of v_lin
    as the body sees it.
    """
    R = quaternions.rotation(x.q[..., 3:])
    q = np.concatenate([x.q[..., :3], _w_last(x.q[..., 3:])], axis=-1)
    return Coordinates(q, *_seen_from(np.swapaxes(R, -1, -2), x, 3, back=False))


def _from_free(joint: Joint, x: Coordinates) -> Coordinates:
    q = np.concatenate([x.q[..., :3], _w_first(x.q[..., 3:])], axis=-1)
    return Coordinates(q, *_seen_from(quaternions.rotation(q[..., 3:]), x, 3, back=True))


def _to_planar(joint: Joint, x: Coordinates) -> Coordinates:
    angle = x.q[..., 2:]
    q = np.concatenate([x.q[..., :2], np.cos(angle), np.sin(angle)], axis=-1)
    return Coordinates(q, *_seen_from(_turn(-angle[..., 0]), x, 2, back=False))


def _from_planar(joint: Joint, x: Coordinates) -> Coordinates:
    angle = np.arctan2(x.q[..., 3:], x.q[..., 2:3])
    q = np.concatenate([x.q[..., :2], angle], axis=-1)
    return Coordinates(q, *_seen_from(_turn(angle[..., 0]), x, 2, back=True))


def _turn(angle: Array) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)


def _seen_from(
    R: Array, x: Coordinates, n: int, back: bool
) -> tuple[Array | None, Array | None, Array | None]:
    """v, a and tau with their linear parts (the first n) turned by R; the body's own turning is
    taken off a, or put back.
    """

    def turned(u: Array) -> Array:
        return np.concatenate([(R @ u[..., :n, None])[..., 0], u[..., n:]], axis=-1)

    v, tau = (None if u is None else turned(u) for u in (x.v, x.tau))
    if x.a is None or x.v is None or v is None:
        return v, x.a, tau
    local = x.v if back else v  # the velocity as the body sees it
    swept = _cross(local[..., n:], local[..., :n])
    if back:
        a = turned(np.concatenate([x.a[..., :n] + swept, x.a[..., n:]], axis=-1))
    else:
        a = turned(x.a)
        a[..., :n] -= swept
    return v, a, tau


def _cross(w: Array, u: Array) -> Array:
    if w.shape[-1] == 1:  # in the plane
        return w * np.stack([-u[..., 1], u[..., 0]], axis=-1)
    return np.cross(w, u)


def _w_last(q: Array) -> Array:
    return np.roll(q, -1, axis=-1)


def _w_first(q: Array) -> Array:
    return np.roll(q, 1, axis=-1)


def _to_quaternion(joint: Joint, x: Coordinates) -> Coordinates:
    """Euler angles to a quaternion (w first) and the angular velocity in the body: w = E dq/dt, and
    n = E^-T tau.
    """
    angles = x.q[..., -3:]
    E = quaternions.euler_rates(joint.sequence, angles)
    v = _map(lambda u: (E @ u[..., None])[..., 0], x.v)
    tau = _map(
        lambda u: quaternions.solve_euler_rates(joint, angles, np.swapaxes(E, -1, -2), u), x.tau
    )
    a = None
    if x.a is not None and x.v is not None:
        swept = quaternions.euler_bias(E, x.v[..., -3:])
        a = _map(lambda u: (E @ u[..., None])[..., 0] + swept, x.a)
    turned = quaternions.from_euler(joint.sequence, angles)
    return Coordinates(np.concatenate([x.q[..., :-3], turned], axis=-1), v, a, tau)


def _from_quaternion(joint: Joint, x: Coordinates) -> Coordinates:
    """The reverse, with the second angle in (-pi/2, pi/2), or in (0, pi) for a symmetric
    sequence.
    """
    angles = quaternions.to_euler(joint.sequence, quaternions.rotation(x.q[..., -4:]))
    E = quaternions.euler_rates(joint.sequence, angles)
    v = _map(lambda u: quaternions.solve_euler_rates(joint, angles, E, u), x.v)
    a = None
    if x.a is not None and v is not None:
        swept = quaternions.euler_bias(E, v[..., -3:])
        a = _map(lambda u: quaternions.solve_euler_rates(joint, angles, E, u - swept), x.a)
    tau = _map(lambda u: (np.swapaxes(E, -1, -2) @ u[..., None])[..., 0], x.tau)
    return Coordinates(np.concatenate([x.q[..., :-4], angles], axis=-1), v, a, tau)


def _map(f: Callable[[Array], Array], x: Array | None) -> Array | None:
    """A map of the last three entries, those of a rotation, where there are any."""
    return None if x is None else np.concatenate([x[..., :-3], f(x[..., -3:])], axis=-1)


def _then(first: JointMap, second: JointMap) -> JointMap:
    return lambda joint, x: second(joint, first(joint, x))


class Codec(NamedTuple):
    """How a joint's entries change: further entries of q on the other side, and the two maps."""

    more: int
    to: JointMap
    back: JointMap


_SAME: Final = Codec(0, _of_q(lambda q: q), _of_q(lambda q: q))
_EULER: Final = Codec(1, _to_quaternion, _from_quaternion)
_COS_SIN: Final = Codec(
    1,
    _of_q(lambda q: np.concatenate([np.cos(q), np.sin(q)], axis=-1)),
    _of_q(lambda q: np.arctan2(q[..., 1:], q[..., :1])),
)
_BALL: Final = Codec(0, _of_q(_w_last), _of_q(_w_first))
CODECS: Final[Mapping[tuple[PeerProgram, str, str], Codec]] = {
    ("pinocchio", "revolute", "cos_sin"): _COS_SIN,
    ("pinocchio", "planar", "cos_sin"): Codec(1, _to_planar, _from_planar),
    ("pinocchio", "free", "quaternion"): Codec(0, _to_free, _from_free),
    ("pinocchio", "ball", "quaternion"): _BALL,
    ("pinocchio", "free_euler", "quaternion"): Codec(
        1, _then(_to_quaternion, _to_free), _then(_from_free, _from_quaternion)
    ),
    ("pinocchio", "spherical", "quaternion"): Codec(
        1, _then(_to_quaternion, _BALL.to), _then(_BALL.back, _from_quaternion)
    ),
    ("mujoco", "free", "quaternion"): _SAME,
    ("mujoco", "ball", "quaternion"): _SAME,
    ("mujoco", "free_euler", "quaternion"): _EULER,
    ("mujoco", "spherical", "quaternion"): _EULER,
}
"""The forms of a joint on the other side, by program and kind; "plain" is ours."""
_USUAL: Final = {
    ("pinocchio", "planar"): "cos_sin",
    **{(p, k): "quaternion" for p in ("pinocchio", "mujoco") for k in ("free", "ball")},
}


# ---- a robot ----


class _ConvertedJoint(NamedTuple):
    joint: Joint
    codec: Codec
    q: slice
    v: slice
    their_q: slice
    their_v: slice


@dataclass(frozen=True)
class Converter:
    """Coordinates of a model and of another program's: ``to(q, v, a, tau)`` gives theirs,
    ``back(...)`` ours; ``nq`` is theirs.
    """

    robot: str
    program: PeerProgram
    parts: tuple[_ConvertedJoint, ...]
    nq: int

    def to(self, q: ArrayLike, v: Given = None, a: Given = None, tau: Given = None) -> Coordinates:
        """Ours to theirs. Each (..., nq) or (..., nv); ``a`` needs ``v``."""
        return self._run(q, v, a, tau, ours=True)

    def back(
        self, q: ArrayLike, v: Given = None, a: Given = None, tau: Given = None
    ) -> Coordinates:
        """Theirs to ours."""
        return self._run(q, v, a, tau, ours=False)

    def _run(self, q: ArrayLike, v: Given, a: Given, tau: Given, ours: bool) -> Coordinates:
        if a is not None and v is None:
            raise StateError("accelerations cannot be converted without velocities; give v with a")
        nv = sum(part.joint.dof for part in self.parts)
        our_nq = sum(part.joint.nq for part in self.parts)
        nq, out_nq = (our_nq, self.nq) if ours else (self.nq, our_nq)
        whose = self.robot if ours else f"{self.robot} in {self.program}"
        sizes = {"q": (q, nq), "v": (v, nv), "a": (a, nv), "tau": (tau, nv)}
        checked = {
            name: numbers(name, x, n, whose, unknown=True)
            for name, (x, n) in sizes.items()
            if x is not None
        }
        batch = together(**{name: x.shape[:-1] for name, x in checked.items()})
        arrays = [
            np.broadcast_to(checked[name], (*batch, n)) if name in checked else None
            for name, (_, n) in sizes.items()
        ]
        out = [
            None if x is None else np.empty((*batch, n))
            for x, n in zip(arrays, (out_nq, nv, nv, nv), strict=True)
        ]
        for part in self.parts:
            here, there = ((part.q, part.v), (part.their_q, part.their_v))[:: 1 if ours else -1]
            parts = [None if g is None else g[..., here[min(i, 1)]] for i, g in enumerate(arrays)]
            x = Coordinates(*parts)  # type: ignore[arg-type]
            _check_unit(part, x.q, ours)
            found = (part.codec.to if ours else part.codec.back)(part.joint, x)
            for i, (o, f) in enumerate(zip(out, found, strict=True)):
                if o is not None:
                    o[..., there[min(i, 1)]] = f
        unknown = unknown_states(*checked.values())
        for o in out:
            if o is not None:
                o[unknown] = np.nan
        return Coordinates(*out)  # type: ignore[arg-type]


def _check_unit(part: _ConvertedJoint, q: Array, ours: bool) -> None:
    joint = part.joint
    theirs = not ours and part.codec.more and len(joint.sequence) == 3
    if not theirs and joint.kind not in ("free", "ball"):
        return
    length = np.sqrt((q[..., -4:] ** 2).sum(axis=-1))
    off = np.abs(length - 1.0)
    if (off > UNIT_TOLERANCE).any():
        raise StateError(
            f"the quaternion of joint {joint.name!r} has length "
            f"{float(length.flat[np.nanargmax(off)]):.6g}; it must be 1"
        )


def converter(
    model: Robot,
    program: PeerProgram,
    *,
    order: Iterable[str] | None = None,
    forms: Mapping[str, str] | None = None,
) -> Converter:
    """The converter of a model's coordinates to and from those of "pinocchio" or "mujoco".

    order: the joints' names in the other program's order (``pinocchio_model.names``; "universe" is
    passed over, "root_joint" is our first joint). forms: {joint: form} where a joint is not as
    usual over there, see the module's text; the names in ``model.metadata["continuous"]`` are (cos,
    sin) in Pinocchio.
    """
    one_of("program", program, ("pinocchio", "mujoco"), ModelError)
    ours = {joint.name for joint in model.joints}  # some that the file had may be locked by now
    endless = model.metadata.get("continuous", ()) if program == "pinocchio" else ()
    chosen = {name: "cos_sin" for name in endless if name in ours} | {**mapping_of("forms", forms)}
    for name in chosen:
        model.joint(name)
    parts: list[_ConvertedJoint] = []
    i = j = 0
    for name in _order(model, order):
        joint = model.joint(name)
        form = chosen.get(name, _USUAL.get((program, joint.kind), "plain"))
        codec = CODECS.get((program, joint.kind, form)) or (
            _SAME if form == "plain" and joint.kind not in ("free", "ball") else None
        )
        if codec is None:
            known = ["plain", *(f for p, k, f in CODECS if (p, k) == (program, joint.kind))]
            raise ModelError(
                f"joint {name!r} ({joint.kind}) has no form {form!r} in {program}; choose "
                f"{' or '.join(map(repr, known))}"
            )
        size = joint.nq + codec.more
        own = model.joint_slice(name, "q"), model.joint_slice(name)
        theirs = slice(i, i + size), slice(j, j + joint.dof)
        parts.append(_ConvertedJoint(joint, codec, *own, *theirs))
        i, j = i + size, j + joint.dof
    return Converter(model.name, program, tuple(parts), i)


def _order(model: Robot, order: Iterable[str] | None) -> Sequence[str]:
    ours = [joint.name for joint in model.joints]
    if order is None:
        return ours
    if isinstance(order, str):
        raise StateError(f"order must be names of joints; got {order!r}")
    names = [name for name in names_of("order", order, StateError) if name != "universe"]
    if "root_joint" in names and "root_joint" not in ours and ours[0] not in names:
        names[names.index("root_joint")] = ours[0]
    missing, extra = [n for n in ours if n not in names], [n for n in names if n not in ours]
    if missing or extra or len(names) != len(ours):
        text = [f"lacks {', '.join(missing[:8])}"] * bool(missing) + [
            f"names unknown {', '.join(extra[:8])}"
        ] * bool(extra) or ["names a joint twice"]
        raise ModelError(
            f"the order {' and '.join(text)}; it must name each joint of {model.name!r} once"
        )
    return names
