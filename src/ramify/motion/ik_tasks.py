"""Tasks of inverse kinematics besides targets in the world: the centre of mass, the pose of one
body relative to another, and a posture to stay near.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import positive
from ramify.core.errors import ModelError, StateError
from ramify.core.messages import shown
from ramify.core.names import names_of
from ramify.model.robot import Robot, joint_entries
from ramify.motion.ik_text import MassForm, PoseForm, PostureForm
from ramify.motion.targets import (
    ReadyTask,
    Target,
    pose_task,
    posture,
    side_by_side,
    target_positions,
)


@dataclass(frozen=True, eq=False)
class CenterOfMass:
    """Where the centre of mass of the moving bodies is to be.

    position (..., 3): in the world, m; axes: which of "xyz" count; weight: of its errors, 1/m.
    """

    position: ArrayLike
    axes: str = "xyz"
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class RelativePose:
    """The pose of one body (a link or a frame) as seen from another; one of position and rotation
    may be left out.

    position (..., 3): of the origin of ``body`` in the axes of ``reference``, m; rotation
    (..., 3, 3), or one unit quaternion (4,), w first: from ``body`` to ``reference``; weights as
    for Target.
    """

    body: str
    reference: str
    position: ArrayLike | None = None
    rotation: ArrayLike | None = None
    weight: float = 1.0
    rotation_weight: float = 1.0


@dataclass(frozen=True, eq=False)
class KeepPosture:
    """A posture to stay near, as far as the other tasks allow.

    q (..., nq); joints: those that count, by default all that move; weight: of its errors, 1/rad or
    1/m, small beside those of the tasks that must be met.
    """

    q: ArrayLike
    joints: Iterable[str] | None = None
    weight: float = 1e-3


IkTask = Target | CenterOfMass | RelativePose | KeepPosture


def ready_task(model: Robot, i: int, task: Any) -> ReadyTask:
    """A task made ready. Raises StateError naming the task and what does not fit."""
    if isinstance(task, CenterOfMass):
        return _mass_task(model, i, task)
    if isinstance(task, RelativePose):
        wish = Target(
            task.body, task.position, task.rotation, weight=task.weight,
            rotation_weight=task.rotation_weight,
        )  # fmt: skip
        ready = pose_task(model, i, wish, task.reference)
        assert isinstance(ready.form, PoseForm)
        if ready.form.body == ready.form.reference:
            raise StateError(
                f"task {i} ({task.body!r} from {task.reference!r}): both are parts of one body, "
                "which cannot move against itself"
            )
        return replace(ready, name=f"task {i} ({task.body!r} from {task.reference!r})")
    if isinstance(task, KeepPosture):
        return _posture_task(model, i, task)
    return pose_task(model, i, task)


def ready_tasks(model: Robot, targets: Any, soft_alone: bool = False) -> list[ReadyTask]:
    """Tasks made ready: one, several, or {link: position}."""
    if isinstance(targets, Mapping):
        targets = [Target(body, position) for body, position in targets.items()]
    try:
        tasks = [targets] if isinstance(targets, IkTask) else list(targets)
    except TypeError:
        raise StateError(
            f"targets must be tasks of rf.motion or {{link: position}}; got {shown(targets)}"
        ) from None
    ready = [ready_task(model, i, one) for i, one in enumerate(tasks)]
    if not ready or (not soft_alone and all(one.soft for one in ready)):
        raise StateError("inverse kinematics needs at least one target that must be met")
    return ready


def _mass_task(model: Robot, i: int, task: CenterOfMass) -> ReadyTask:
    name = f"task {i} (centre of mass)"
    if not model.mass > 0.0:
        raise ModelError(f"{name}: {model.name!r} has no mass; give its links mass and com")
    if not isinstance(task.axes, str) or not task.axes or set(task.axes) - set("xyz"):
        raise StateError(f"{name}: axes must name some of 'xyz'; got {shown(task.axes)}")
    axes = tuple("xyz".index(axis) for axis in dict.fromkeys(task.axes))
    weight = positive(f"{name}: weight", task.weight)
    p = target_positions(model, f"{name}: position", task.position)
    return ReadyTask(name, MassForm(axes), side_by_side(np.array([weight, 1.0]), p))


def _posture_task(model: Robot, i: int, task: KeepPosture) -> ReadyTask:
    name = f"task {i} (posture)"
    every = [joint.name for joint in model.joints]
    names = every if task.joints is None else names_of("joints", task.joints)
    entries = [k for joint in names for k in joint_entries(model, joint)]
    weight = positive(f"{name}: weight", task.weight)
    q = posture(model, f"{name}: q", task.q)
    form = PostureForm(tuple(entries), model.nq)
    return ReadyTask(name, form, side_by_side(np.array([1.0, weight]), q), soft=True)
