"""The input of an assembly: values by name, orientations, a guess."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, one_number, real, refuse_masks
from ramify.core.errors import RamifyError, StateError
from ramify.core.messages import shown
from ramify.loops.far_guess import rotation_vectors
from ramify.model.configuration import configuration, quaternion_exponential
from ramify.model.robot import Robot

ValuesByName = Mapping[str, ArrayLike] | None


def start_of(model: Robot, guess: ArrayLike | ValuesByName) -> tuple[Array, set[int]]:
    """Where assembly starts, the guess on top of the robot's own; the velocities that it names."""
    if guess is not None and not isinstance(guess, Mapping):
        start = configuration(model, "guess", guess)
        if start.ndim != 1:
            raise StateError(f"guess has shape {start.shape}; it must be one q, ({model.nq},)")
        return start, set(range(model.nv))
    to_v = dict(zip(model.layout.plain_q, model.layout.plain_v, strict=True))
    named: set[int] = set()
    q = model.neutral()
    of_robot = {k: x for k, x in model.guess.items() if k.rpartition(".")[0] not in (guess or {})}
    values = {**of_robot, **(guess or {})}
    turns = orientations(model, values, "guess")
    for name, value in values.items():
        place = place_of(model, name, "guess")
        named.add(to_v[place])
        q[place] = one_number(value)
        if not np.isfinite(q[place]):
            raise StateError(f"guess: the value {shown(value)} of {name!r} must be a finite number")
    for i, quaternion in turns.items():
        q[i : i + 4] = quaternion
        j = dict(model.layout.balls)[i]
        named |= {j, j + 1, j + 2}
    return q, named


def place_of(model: Robot, name: str, what: str) -> int:
    """The place of a coordinate in q; StateError lists the coordinates."""
    places = {model.coordinates[i]: i for i in model.layout.plain_q}
    if name not in places:
        choices = [*places, *ball_joints(model)]
        some = ", ".join([*choices[:20], *(["…"] if len(choices) > 20 else [])])
        raise StateError(
            f"{what} names {name!r}, which is not a coordinate of {model.name}; choose among {some}"
        )
    return places[name]


def ball_joints(model: Robot) -> dict[str, tuple[int, int]]:
    """Joints with a quaternion by name: where it begins in q, and its velocities in v."""
    starts = dict(model.layout.balls)
    out: dict[str, tuple[int, int]] = {}
    for joint in model.joints:
        of_q = model.joint_slice(joint.name, "q")
        for i in range(of_q.start, of_q.stop):
            if i in starts:
                out[joint.name] = i, starts[i]
    return out


def orientations(model: Robot, values: dict[str, ArrayLike], what: str) -> dict[int, Array]:
    """Quaternions by their places in q, removed from the values: a joint's name with a unit
    quaternion (4), w first, or a rotation matrix (3, 3); or all four entries by name.
    """
    out: dict[int, Array] = {}
    for joint, (i, _) in ball_joints(model).items():
        entries = model.coordinates[i : i + 4]
        if any(name in values for name in entries):
            missing = [name for name in entries if name not in values]
            if missing:
                raise StateError(
                    f"{what} gives part of the quaternion of {joint!r}; add {', '.join(missing)}"
                )
            parts = [number_of(name, values.pop(name)) for name in entries]
            values[joint] = np.array([x if x.ndim == 0 else np.nan for x in parts])
        if joint not in values:
            continue
        value = values.pop(joint)
        if np.shape(value)[1:] == (4,) or np.ndim(value) == 3:
            raise StateError(
                f"{what}: the orientation of {joint!r} must be one for all rows; where it changes "
                "along a path, assemble row by row, or let rf.ik(model, Target(…, position=…, "
                "rotation=…)) find all rows at once"
            )
        out[i] = quaternion_of(f"{what}: the orientation of {joint!r}", value)
    return out


def quaternion_of(name: str, value: ArrayLike, error: type[RamifyError] = StateError) -> Array:
    """The unit quaternion (4,) that one, or a rotation matrix (3, 3), is."""
    refuse_masks(name, value)
    try:
        x = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        x = np.empty(0)
    orthonormal = x.shape == (3, 3) and np.abs(x @ x.T - np.eye(3)).max() < 1e-6
    if orthonormal and np.linalg.det(x) > 0.0:  # no reflection
        x = quaternion_exponential(rotation_vectors(x))
    length = float(np.linalg.norm(x)) if x.shape == (4,) else 0.0
    if not abs(length - 1.0) < 1e-4:
        raise error(
            f"{name} must be a unit quaternion (4,), w first, or a rotation matrix (3, 3), one for "
            f"all rows; got {value!r:.80}"
        )
    return x / length


def number_of(name: str, value: ArrayLike) -> Array:
    """A finite number, or a row of them."""
    x = real(f"the value of {name!r}", value)
    if x.size == 0:
        raise StateError(
            f"the value of {name!r} has no rows; give a number, or one or more of them"
        )
    if not np.isfinite(x).all():
        raise StateError(
            f"the value {value!r} of {name!r} must be finite, a number or a row of them"
        )
    return x
