"""Gimbal lock: where two axes of an Euler-angle joint fall together (section 3.6).

Three angles about three different axes lock where the second is 90 degrees from zero, those of a
symmetric sequence (ZYZ) where it is 0 or 180 degrees. There the first and the last angle turn the
body about one line: rates are not determined by the motion, the inertia matrix is singular, and
forward dynamics has no answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, finite_number
from ramify.core.errors import StateError
from ramify.core.warning import warn
from ramify.model.configuration import checked
from ramify.model.robot import Robot, once

LOCK_TOLERANCE, NEAR_LOCK = 1e-6, 1e-4
"""rad: within the first of a lock, whatever divides by the inertia of the joints is refused; within
the second a warning says how many digits are lost. A pivot falls with the square of the distance.
"""


class Lock(NamedTuple):
    """An Euler-angle joint's second angle: its place in q, and the half turns (0 or 1/2, and whole
    ones more) at which it locks.
    """

    joint: str
    sequence: str
    place: int
    half_turns: float

    def distance(self, angle: Array) -> Array:
        """How far an angle is from the nearest lock, in rad."""
        turns = angle / math.pi - self.half_turns
        return np.abs(turns - np.rint(turns)) * math.pi


class Singularity(NamedTuple):
    """A joint near gimbal lock: the batch index of the state, the joint, its second angle and the
    distance from lock, in rad.
    """

    state: tuple[int, ...]
    joint: str
    coordinate: str
    angle: float
    distance: float


@once
def locks(model: Robot) -> tuple[Lock, ...]:
    """The angles to watch, one per Euler-angle joint of three angles."""
    watched = []
    i = 0
    for joint in model.joints:
        if len(joint.sequence) == 3:
            symmetric = joint.sequence[0] == joint.sequence[2]
            half_turns = 0.0 if symmetric else 0.5
            watched.append(Lock(joint.name, joint.sequence, i + joint.nq - 2, half_turns))
        i += joint.nq
    return tuple(watched)


def singularities(model: Robot, q: ArrayLike, tolerance: float = 1e-3) -> list[Singularity]:
    """Where the Euler-angle joints of q (..., nq) stand within ``tolerance`` rad of gimbal lock,
    nearest first.
    """
    at, within = (
        checked(model, "q", q, model.nq, True),
        finite_number("tolerance", tolerance, "rad"),
    )
    near_locks = []
    for lock in locks(model):
        angle = at[..., lock.place]
        distance = lock.distance(angle)
        for index in np.argwhere(distance <= within):
            state = tuple(int(i) for i in index)
            name = model.coordinates[lock.place]
            numbers = float(angle[state]), float(distance[state])
            near_locks.append(Singularity(state, lock.joint, name, *numbers))
    return sorted(near_locks, key=lambda one: one.distance)


def check_locks(watched: tuple[Lock, ...], names: tuple[str, ...], q: Array) -> None:
    """Refuse rows of q in gimbal lock, and warn of those near one."""
    for lock in watched:
        distance = lock.distance(q[:, lock.place])
        state = int(np.argmin(distance)) if len(distance) else 0
        if not len(distance) or distance[state] > NEAR_LOCK:
            continue
        locked = distance[state] <= LOCK_TOLERANCE
        state = int(np.flatnonzero(distance <= LOCK_TOLERANCE)[0]) if locked else state
        where = f" of state {state}" if q.shape[0] > 1 else ""
        if locked:
            raise StateError(_words(lock, names, q[state], where))
        warn(
            f"joint {lock.joint!r} is {distance[state]:.2g} rad from gimbal lock (q[{lock.place}]"
            f"{where}): about {math.ceil(-2.0 * math.log10(distance[state]))} of 16 digits of what "
            "divides by its inertia are lost",
            RuntimeWarning,
        )


def explain_singularity(watched: tuple[Lock, ...], names: tuple[str, ...], q: Array) -> str:
    """Why an answer at q (nq) may not be finite: a joint so near to gimbal lock that its inertia is
    lost in rounding, or "".
    """
    near = [(float(lock.distance(q[lock.place])), lock) for lock in watched]
    distance, lock = min(near, default=(math.inf, None))
    return _words(lock, names, q, "") if lock is not None and distance <= NEAR_LOCK else ""


def _words(lock: Lock, names: tuple[str, ...], q: Array, where: str) -> str:
    quaternion = "'free'" if names[lock.place - 2].endswith(".z") else "'ball'"
    return (
        f"joint {lock.joint!r} is in gimbal lock: at its middle angle {names[lock.place]} = "
        f"{q[lock.place]:.9g} rad "
        f"(q[{lock.place}]{where}) the first and last axis of {lock.sequence} coincide and the "
        "inertia matrix is singular; "
        f"use a {quaternion} joint (quaternion) or another sequence"
    )
