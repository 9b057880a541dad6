"""Tasks of inverse kinematics besides targets in the world: the centre of mass, the pose of one
body relative to another, and a posture to stay near.

Each task, made ready for a robot, gives its errors at rows of configurations and the Jacobians of
what the errors are measured of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, positive
from ramify.core.errors import StateError
from ramify.core.messages import shown
from ramify.core.names import names_of
from ramify.kernels.make import kernel
from ramify.model.configuration import configuration
from ramify.model.robot import Robot
from ramify.motion.targets import (
    RowIndices,
    Target,
    Wanted,
    place,
    rotation_vector,
    wanted_target,
)

PartErrors = tuple[Array | None, Array | None]
"""What belongs to a position and what belongs to a rotation."""


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
    (..., 3, 3): from ``body`` to ``reference``; weights as for Target.
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


class ReadyTask(Protocol):
    """A task with arrays, for one robot. ``soft``: it bends where others need it to."""

    @property
    def weights(self) -> tuple[float, float]: ...
    @property
    def name(self) -> str: ...
    @property
    def soft(self) -> bool: ...
    @property
    def lead(self) -> tuple[int, ...]: ...
    def spread(self, lead: tuple[int, ...], rows: int) -> ReadyTask: ...
    def errors(self, model: Robot, q: Array, poses: Any, rows: RowIndices) -> PartErrors: ...
    def jacobians(self, model: Robot, q: Array, poses: Any) -> PartErrors: ...


def ready_task(model: Robot, i: int, task: Any) -> ReadyTask:
    """A task made ready. Raises StateError naming the task and what does not fit."""
    if isinstance(task, CenterOfMass):
        return _mass_task(model, i, task)
    if isinstance(task, RelativePose):
        return _relative_task(model, i, task)
    if isinstance(task, KeepPosture):
        return _posture_task(model, i, task)
    return wanted_target(model, i, task)


def ready_tasks(model: Robot, given: Any, soft_alone: bool = False) -> list[ReadyTask]:
    """Tasks made ready: one, several, or {link: position}."""
    if isinstance(given, Mapping):
        given = [Target(body, position) for body, position in given.items()]
    try:
        tasks = [given] if isinstance(given, IkTask) else list(given)
    except TypeError:
        raise StateError(
            f"targets must be tasks of rf.motion or {{link: position}}; got {shown(given)}"
        ) from None
    ready = [ready_task(model, i, one) for i, one in enumerate(tasks)]
    if not ready or (not soft_alone and all(one.soft for one in ready)):
        raise StateError("inverse kinematics needs at least one target that must be met")
    return ready


# ---- the centre of mass ----


@dataclass(frozen=True, eq=False)
class MassTask:
    """See CenterOfMass."""

    name: str
    position: Array
    axes: list[int]
    weights: tuple[float, float]
    soft: bool = False

    @property
    def lead(self) -> tuple[int, ...]:
        return self.position.shape[:-1]

    def spread(self, lead: tuple[int, ...], rows: int) -> MassTask:
        wide = np.broadcast_to(self.position, (*lead, 3)).reshape(rows, 3)
        return replace(self, position=wide)

    def errors(self, model: Robot, q: Array, poses: Any, rows: RowIndices) -> PartErrors:
        at: Array = kernel(model, "center_of_mass")(q)
        return (self.position[rows] - at)[:, self.axes], None

    def jacobians(self, model: Robot, q: Array, poses: Any) -> PartErrors:
        centroidal: Array = kernel(model, "centroidal_momentum_matrix")(q)
        return centroidal[:, 3:][:, self.axes] / model.mass, None


def _mass_task(model: Robot, i: int, task: CenterOfMass) -> MassTask:
    name = f"task {i} (centre of mass)"
    if not isinstance(task.axes, str) or not task.axes or set(task.axes) - set("xyz"):
        raise StateError(f"{name}: axes must name some of 'xyz'; got {shown(task.axes)}")
    axes = ["xyz".index(axis) for axis in dict.fromkeys(task.axes)]
    p = place(model, f"{name}: position", task.position)
    return MassTask(name, p, axes, (positive(f"{name}: weight", task.weight), 1.0))


# ---- relative poses ----


@dataclass(frozen=True, eq=False)
class RelativeTask:
    """See RelativePose. ``first`` and ``second`` are the two bodies as targets without wishes; what
    is wanted is in the axes of the second.
    """

    name: str
    first: Wanted
    second: Wanted
    position: Array | None
    rotation: Array | None
    weights: tuple[float, float]
    soft: bool = False

    @property
    def lead(self) -> tuple[int, ...]:
        return self._wish.lead

    @property
    def _wish(self) -> Wanted:
        return replace(self.first, position=self.position, rotation=self.rotation)

    def spread(self, lead: tuple[int, ...], rows: int) -> RelativeTask:
        wide = self._wish.spread(lead, rows)
        return replace(self, position=wide.position, rotation=wide.rotation)

    def errors(self, model: Robot, q: Array, poses: Any, rows: RowIndices) -> PartErrors:
        (R, r), (Q, s) = self.first.pose(poses), self.second.pose(poses)
        back = Q.transpose(0, 2, 1)
        seen = np.einsum("rij,rj->ri", back, r - s)
        p = None if self.position is None else self.position[rows] - seen
        turn = None if self.rotation is None else rotation_vector(
            self.rotation[rows] @ (back @ R).transpose(0, 2, 1)
        )  # fmt: skip
        return p, turn

    def jacobians(self, model: Robot, q: Array, poses: Any) -> PartErrors:
        (_, r), (Q, s) = self.first.pose(poses), self.second.pose(poses)
        back = Q.transpose(0, 2, 1)
        J, K = (one.jacobian(model, q) for one in (self.first, self.second))
        away = np.cross((r - s)[:, :, None], K[:, :3], axis=1)
        return back @ (J[:, 3:] - K[:, 3:] + away), back @ (J[:, :3] - K[:, :3])


def _relative_task(model: Robot, i: int, task: RelativePose) -> RelativeTask:
    name = f"task {i} ({task.body!r} from {task.reference!r})"
    wish = Target(
        task.body, task.position, task.rotation, weight=task.weight,
        rotation_weight=task.rotation_weight,
    )  # fmt: skip
    wanted = wanted_target(model, i, wish)
    other = wanted_target(model, i, Target(task.reference, np.zeros(3)))
    if wanted.index == other.index:
        raise StateError(f"{name}: both are parts of one body, which cannot move against itself")
    return RelativeTask(name, wanted, other, wanted.position, wanted.rotation, wanted.weights)


# ---- postures ----


@dataclass(frozen=True, eq=False)
class PostureTask:
    """See KeepPosture."""

    name: str
    q: Array
    entries: RowIndices
    weights: tuple[float, float]
    soft: bool = True

    @property
    def lead(self) -> tuple[int, ...]:
        return self.q.shape[:-1]

    def spread(self, lead: tuple[int, ...], rows: int) -> PostureTask:
        wide = np.broadcast_to(self.q, (*lead, self.q.shape[-1])).reshape(rows, -1)
        return replace(self, q=wide)

    def errors(self, model: Robot, q: Array, poses: Any, rows: RowIndices) -> PartErrors:
        return None, model.difference(q, self.q[rows])[:, self.entries]

    def jacobians(self, model: Robot, q: Array, poses: Any) -> PartErrors:
        return None, np.broadcast_to(
            np.eye(model.nv)[self.entries], (len(q), len(self.entries), model.nv)
        )


def _posture_task(model: Robot, i: int, task: KeepPosture) -> PostureTask:
    name = f"task {i} (posture)"
    names = (
        [j.name for j in model.joints] if task.joints is None else names_of("joints", task.joints)
    )
    entries = [k for joint in names for k in range(model.nv)[model.joint_slice(joint)]]
    weight = positive(f"{name}: weight", task.weight)
    q = configuration(model, f"{name}: q", task.q)
    return PostureTask(name, q, np.array(entries, dtype=np.int64), (1.0, weight))
