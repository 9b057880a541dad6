"""Which coordinates of a robot are driven: those of its actuated joints, or those that the user
names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ramify.core.errors import StateError
from ramify.core.messages import shown
from ramify.model.robot import Robot, joint_entries, the_robot

Actuated = Iterable[str | int] | str | int | None


@dataclass(frozen=True)
class Driven:
    """The driven entries of v, in order, with their names; ``q`` is the place of each in q, -1 for
    a rate of a quaternion.
    """

    v: tuple[int, ...]
    q: tuple[int, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.v)


def driven(model: Robot, actuated: Actuated = None) -> Driven:
    """The driven coordinates of a model.

    actuated: names of joints or of single velocities ("hip.y1"), or indices of joints. None: all
    joints that the model calls actuated, but never a free base.

    Raises StateError for an unknown or repeated name.
    """
    the_robot(model)
    if actuated is None:
        chosen = [j.name for j in model.joints if j.actuated and not j.floating]
    else:
        items = (actuated,) if isinstance(actuated, str) else joints_of(actuated)
        chosen = [_name(model, item) for item in items]
    places: set[int] = set()
    joints = {joint.name for joint in model.joints}
    for name in chosen:
        entries = (
            {model.velocities.index(name)}
            if name not in joints
            else set(joint_entries(model, name))
        )
        if entries & places:
            raise StateError(f"actuated names {name!r} twice")
        places |= entries
    v = tuple(sorted(places))
    plain = model.layout.to_q
    return Driven(v, tuple(plain.get(j, -1) for j in v), tuple(model.velocities[j] for j in v))


def joints_of(actuated: object) -> tuple[str | int, ...]:
    """Joints that a user gave by name or index, one or several. Raises StateError for others."""
    several = [actuated] if isinstance(actuated, int) else actuated
    try:
        joints: list[Any] = list(several)  # type: ignore[call-overload]
    except TypeError:
        joints = [None]
    if not all(isinstance(item, str | int) for item in joints):
        raise StateError(
            f"actuated must be names of joints, or their indices; got {shown(actuated)}"
        )
    return tuple(joints)


def _name(model: Robot, item: str | int) -> str:
    names = [joint.name for joint in model.joints]
    if isinstance(item, str):
        if item in names or item in model.velocities:
            return item
        raise StateError(
            f"actuated: {model.name} has no joint {item!r}; its joints are {', '.join(names[:20])}"
        )
    if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < len(names):
        raise StateError(
            f"actuated: {item!r} is not a joint of {model.name}; give a name or an index from 0 "
            f"to {len(names) - 1}"
        )
    return names[item]
