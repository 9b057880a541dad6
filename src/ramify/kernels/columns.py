"""The extra columns of an algorithm: which body or joints are meant, as ones and zeros over the
links.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ramify.core.errors import RamifyError
from ramify.kernels.algorithms import Algorithm
from ramify.model.locks import Lock, locks
from ramify.model.robot import Robot

Which = int | tuple[str, ...] | None
"""A body's index, the names of joints, or the usual choice."""


def extra_columns(model: Robot, algorithm: Algorithm, which: Which) -> list[tuple[float, ...]]:
    """The extra columns of an algorithm; RamifyError if they need a body and none was chosen."""
    chosen = [CHOICES[column](model, which) for column in algorithm.extras]
    links = range(len(model.skeleton.links))
    columns = [tuple(float(k in meant) for k in links) for meant in chosen if meant is not None]
    if len(columns) < len(chosen):
        raise RamifyError(
            f"the kernel of {algorithm.name} belongs to one body; call model.{algorithm.name}(…) "
            "instead"
        )
    return columns


def _target(model: Robot, body: Which) -> set[int] | None:
    return {model.skeleton.last[body]} if isinstance(body, int) else None


def _support(model: Robot, body: Which) -> set[int] | None:
    return set(model.skeleton.support(body)) if isinstance(body, int) else None


def _prescribed(model: Robot, joints: Which) -> set[int]:
    """Links of the joints whose accelerations are given: by default all but the first joint's."""
    names = joints if isinstance(joints, tuple) else [joint.name for joint in model.joints[1:]]
    return {k for name in names for k in range(model.nv)[model.joint_slice(name)]}


CHOICES: Final[dict[str, Callable[[Robot, Which], set[int] | None]]] = {
    "target": _target,
    "support": _support,
    "prescribed": _prescribed,
}
"""The links at which each extra column is one (see ramify.dynamics.jacobian and
ramify.dynamics.hybrid).
"""


def watched_locks(model: Robot, algorithm: Algorithm, which: Which) -> tuple[Lock, ...]:
    """The gimbal locks that matter: those of joints by whose inertia the algorithm divides."""
    if not algorithm.divides:
        return ()
    prescribed = _prescribed(model, which) if "prescribed" in algorithm.extras else set()
    return tuple(
        lock for lock in locks(model) if model.joint_slice(lock.joint).start not in prescribed
    )
