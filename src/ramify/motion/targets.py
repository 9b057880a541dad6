"""What inverse kinematics is asked for: targets, the joints that may move, and their limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, positive, real, together
from ramify.core.errors import ModelError, StateError
from ramify.core.names import names_of
from ramify.model.configuration import checked, configuration
from ramify.model.frame import Frame, from_quaternion
from ramify.model.robot import Robot, joint_entries, once
from ramify.model.skeleton import path_to_base
from ramify.motion.ik_text import PoseForm, TaskForm

_ONE = np.eye(3)
_FARTHEST: Final = 1e12
RowIndices = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


@dataclass(frozen=True, eq=False)
class Target:
    """Where a point of a body is to be, and how the body is to be turned; one of them may be left
    out.

    body: a link; point: in its frame, m; position (..., 3): of that point in the world, m; rotation
    (..., 3, 3), or one unit quaternion (4,), w first: from the link's frame to the world; weights:
    of position errors (1/m) and of rotation errors (1/rad).
    """

    body: str
    position: ArrayLike | None = None
    rotation: ArrayLike | None = None
    point: ArrayLike = (0.0, 0.0, 0.0)
    weight: float = 1.0
    rotation_weight: float = 1.0


@dataclass(frozen=True, eq=False)
class ReadyTask:
    """A task for one robot: its form, and the numbers (..., size) of the goal (see ``ik_text``), of
    which the first two are weights. ``soft``: it bends where others need it to.
    """

    name: str
    form: TaskForm
    numbers: Array
    soft: bool = False


def side_by_side(*parts: Array) -> Array:
    """Numbers side by side, with a common batch."""
    if all(part.ndim == 1 for part in parts):
        return np.concatenate(parts)
    lead = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(p, (*lead, p.shape[-1])) for p in parts], axis=-1)


def posture(model: Robot, name: str, q: ArrayLike) -> Array:
    """Configurations (..., nq). Raises StateError for others, and for those beyond any robot."""
    return _near(name, configuration(model, name, q), "rad or m")


def target_positions(model: Robot, name: str, position: ArrayLike) -> Array:
    """Positions (..., 3). Raises StateError for others, and for places beyond any robot."""
    return _near(name, checked(model, name, position, 3), "m")


def _near(name: str, place: Array, unit: str) -> Array:
    if np.abs(place).max(initial=0.0) > _FARTHEST:
        raise StateError(f"{name} must be within {_FARTHEST:g} {unit}")
    return place


def pose_task(model: Robot, i: int, target: Any, reference: str | None = None) -> ReadyTask:
    """A target made ready, as seen from a reference or the world. Raises StateError naming it and
    what does not fit.
    """
    if not isinstance(target, Target):
        raise StateError(
            f"target {i} is a {type(target).__name__}; give a Target or another task of "
            "rf.motion, or {link: position}"
        )
    if target.position is None and target.rotation is None:
        raise StateError(
            f"target {i} ({target.body!r}) has no goal; give it a position or a rotation"
        )
    body, frame = _moving_body(model, i, target.body)
    name = f"target {i} ({target.body!r})"
    p = (
        None
        if target.position is None
        else target_positions(model, f"{name}: position", target.position)
    )
    R = None if target.rotation is None else real(f"{name}: rotation", target.rotation)
    if R is not None and R.shape == (4,) and abs(float(R @ R) - 1.0) < 1e-4:
        R = from_quaternion(*R.tolist())
    if R is not None and not _rotations(R):
        raise StateError(
            f"{name}: rotation must be (..., 3, 3) with columns of length one at right angles, and "
            "no reflection (determinant +1), or one unit quaternion (4,), w first; got shape "
            f"{R.shape}; scipy.spatial.transform.Rotation makes matrices of other forms"
        )
    if p is not None and R is not None and p.ndim + R.ndim > 3:
        together(position=p.shape[:-1], rotation=R.shape[:-2])
    weights = np.array(
        [positive(f"{name}: {key}", getattr(target, key)) for key in ("weight", "rotation_weight")]
    )
    own = target_positions(model, f"{name}: point", target.point)
    if own.shape != (3,):
        raise StateError(f"{name}: point must be (3,), in the frame of the link; got {own.shape}")
    point = frame.rotation @ own + frame.position
    form, parts = PoseForm(body, -1, p is not None, R is not None), [weights, point]
    turn = None
    if reference is not None:
        other, seat = _moving_body(model, i, reference)
        form, turn = replace(form, reference=other), seat.rotation
        parts.append(seat.position)
    if p is not None:
        parts.append(p if turn is None else p @ turn.T)
    if R is not None:
        R = R @ frame.rotation.T if turn is None else turn @ R @ frame.rotation.T
        parts.append(R.reshape(*R.shape[:-2], 9))
    return ReadyTask(repr(target.body), form, side_by_side(*parts))


def _moving_body(model: Robot, i: int, name: str) -> tuple[int, Frame]:
    body, frame = model.attachment(name)
    if body < 0:
        raise StateError(
            f"target {i}: {name!r} is part of the base of {model.name} and does not move"
        )
    return body, frame


def _rotations(R: Array) -> bool:
    if R.shape[-2:] != (3, 3) or not (np.abs(R) < 2.0).all():
        return False
    off = R @ R.swapaxes(-1, -2) - _ONE
    third = np.cross(R[..., 0, :], R[..., 1, :]) if R.ndim > 2 else _cross(R[0], R[1])
    return bool(
        np.abs(off).max(initial=0.0) <= 1e-6 and ((third * R[..., 2, :]).sum(-1) > 0.0).all()
    )


def _cross(a: Array, b: Array) -> Array:
    """As np.cross, without its overhead for one pair."""
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


def moving_entries(model: Robot, joints: Iterable[str] | None) -> tuple[int, ...]:
    """The entries of v that may change: those of ``joints``, or of all but a floating base. A free
    joint inside a loop, as that of a Stewart platform, does not count as one.
    """
    names = None if joints is None else tuple(names_of("joints", joints))
    entries = _known_entries(model)
    if names not in entries:
        chosen = _own_joints(model) if names is None else names
        places = {j for name in chosen for j in joint_entries(model, name)}
        if not places:
            raise ModelError(
                f"inverse kinematics: nothing of {model.name} may move; name its joints with "
                "joints="
            )
        entries[names] = tuple(sorted(places))
    return entries[names]


@once
def _known_entries(model: Robot) -> dict[tuple[str, ...] | None, tuple[int, ...]]:
    """What was asked before, by the names of the joints."""
    return {}


def _own_joints(model: Robot) -> list[str]:
    """All joints but a floating base."""
    inside = _inside_loops(model)
    return [
        body.joint.name
        for i, body in enumerate(model.bodies)
        if not body.joint.floating or i in inside
    ]


def bounds(model: Robot, limits: Any) -> tuple[Array, Array]:
    """Lower and upper limits (nq) of the coordinates."""
    if limits is False:
        return np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    if limits is True:
        return model.lower, model.upper
    table = real("limits", limits)
    if table.shape != (model.nq, 2) or not (table[:, 0] <= table[:, 1]).all():
        raise StateError(
            f"limits must be ({model.nq}, 2), lower ≤ upper per coordinate; got shape {table.shape}"
        )
    return table[:, 0], table[:, 1]


def _inside_loops(model: Robot) -> set[int]:
    """Bodies whose joints are part of a loop: between its ends and where their branches meet."""
    inside: set[int] = set()
    for loop in model.loops:
        if not loop.couples:
            links = (loop.first.link, loop.second.link)
            ends = (-1 if link is None else model.attachment(link).body for link in links)
            first, second = (set(path_to_base(model.parents, body)) for body in ends)
            inside |= first ^ second
    return inside
