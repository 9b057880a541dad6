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
from ramify.kernels.queries import jacobian
from ramify.model.configuration import checked
from ramify.model.robot import Robot

RowIndices = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


@dataclass(frozen=True, eq=False)
class Target:
    """Where a point of a body is to be, and how the body is to be turned; one of them may be left
    out.

    body: a link; point: in its frame, m; position (..., 3): of that point in the world, m; rotation
    (..., 3, 3): from the link's frame to the world; weights: of position errors (1/m) and of
    rotation errors (1/rad).
    """

    body: str
    position: ArrayLike | None = None
    rotation: ArrayLike | None = None
    point: ArrayLike = (0.0, 0.0, 0.0)
    weight: float = 1.0
    rotation_weight: float = 1.0


@dataclass(frozen=True, eq=False)
class Wanted:
    """A target with arrays: positions (rows, 3) and rotations (rows, 3, 3), or None."""

    body: str
    index: int
    point: Array
    turn: Array
    position: Array | None
    rotation: Array | None
    weights: tuple[float, float]
    soft: bool = False

    @property
    def name(self) -> str:
        return repr(self.body)

    def pose(self, poses: Any) -> tuple[Array, Array]:
        """Rotation (rows, 3, 3) and place (rows, 3) in the world."""
        R, r = poses
        turned, place = R[:, self.index] @ self.turn, R[:, self.index] @ self.point
        return turned, r[:, self.index] + place

    def jacobian(self, model: Robot, q: Array) -> Array:
        """(rows, 6, nv), angular first."""
        return jacobian(model, q, model.bodies[self.index].name, self.point)

    def errors(
        self, model: Robot, q: Array, poses: Any, rows: RowIndices
    ) -> tuple[Array | None, Array | None]:
        """What is missing in position (rows, 3) and as a rotation vector of the world (rows, 3)."""
        turned, at = self.pose(poses)
        p = None if self.position is None else self.position[rows] - at
        if self.rotation is None:
            return p, None
        return p, rotation_vector(self.rotation[rows] @ turned.transpose(0, 2, 1))

    def jacobians(self, model: Robot, q: Array, poses: Any) -> tuple[Array, Array]:
        """How position and rotation change, each (rows, 3, nv)."""
        J = self.jacobian(model, q)
        return J[:, 3:], J[:, :3]

    @property
    def lead(self) -> tuple[int, ...]:
        p = () if self.position is None else self.position.shape[:-1]
        R = () if self.rotation is None else self.rotation.shape[:-2]
        return together(position=p, rotation=R)

    def spread(self, lead: tuple[int, ...], rows: int) -> Wanted:
        p, R = self.position, self.rotation
        p = None if p is None else np.broadcast_to(p, (*lead, 3)).reshape(rows, 3)
        R = None if R is None else np.broadcast_to(R, (*lead, 3, 3)).reshape(rows, 3, 3)
        return replace(self, position=p, rotation=R)


def rotation_vector(R: Array) -> Array:
    """Rotation vectors (rows, 3) of matrices (rows, 3, 3)."""
    from scipy.spatial.transform import Rotation

    found: Array = Rotation.from_matrix(R).as_rotvec() if len(R) else np.zeros((0, 3))
    return found


_FARTHEST: Final = 1e12


def place(model: Robot, name: str, position: ArrayLike) -> Array:
    """Positions (..., 3). Raises StateError for others, and for places beyond any robot."""
    p = checked(model, name, position, 3)
    if np.abs(p).max(initial=0.0) > _FARTHEST:
        raise StateError(f"{name} must be within {_FARTHEST:g} m")
    return p


def wanted_target(model: Robot, i: int, target: Any) -> Wanted:
    """A target with arrays. Raises StateError naming it and what does not fit."""
    if not isinstance(target, Target):
        raise StateError(
            f"target {i} is a {type(target).__name__}; give a Target or another task of "
            "rf.motion, or {link: position}"
        )
    if target.position is None and target.rotation is None:
        raise StateError(
            f"target {i} ({target.body!r}) has no goal; give it a position or a rotation"
        )
    body = model.attachment(target.body)
    if body.body < 0:
        raise StateError(
            f"target {i}: {target.body!r} is part of the base of {model.name} and does not move"
        )
    name = f"target {i} ({target.body!r})"
    p = None if target.position is None else place(model, f"{name}: position", target.position)
    R = None if target.rotation is None else real(f"{name}: rotation", target.rotation)
    if R is not None and (
        R.shape[-2:] != (3, 3)
        or not (np.abs(R) < 2.0).all()
        or np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0) > 1e-6
        or (np.linalg.det(R) < 0.0).any()
    ):
        raise StateError(
            f"{name}: rotation must be (..., 3, 3) with columns of length one at right angles, and "
            f"no reflection (determinant +1); got shape {R.shape}"
        )
    weights = (
        positive(f"{name}: weight", target.weight),
        positive(f"{name}: rotation_weight", target.rotation_weight),
    )
    seat = place(model, f"{name}: point", target.point)
    if seat.shape != (3,):
        raise StateError(f"{name}: point must be (3,), in the frame of the link; got {seat.shape}")
    point = body.frame.rotation @ seat + body.frame.position
    return Wanted(
        target.body,
        body.body,
        point,
        body.frame.rotation,
        p,
        R,
        weights,
    )


def moving_entries(model: Robot, joints: Iterable[str] | None) -> RowIndices:
    """The entries of v that may change: those of ``joints``, or of all but a floating base. A free
    joint inside a loop, as that of a Stewart platform, is no such base.
    """
    names = (
        [
            body.joint.name
            for i, body in enumerate(model.bodies)
            if body.joint.kind not in ("free", "free_euler") or i in _inside_loops(model)
        ]
        if joints is None
        else names_of("joints", joints)
    )
    places = [j for name in names for j in range(model.nv)[model.joint_slice(name)]]
    if not places:
        raise ModelError(
            f"inverse kinematics: nothing of {model.name} may move; name its joints with joints="
        )
    return np.array(sorted(set(places)))


def bounds(model: Robot, limits: Any) -> tuple[Array, Array]:
    """Lower and upper limits (nq) of the coordinates."""
    if limits is False:
        return np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    if limits is True:
        rows = [
            pair
            for joint in model.joints
            for pair in (joint.limits or [(-np.inf, np.inf)] * joint.nq)
        ]
        table = np.array(rows, dtype=np.float64).reshape(model.nq, 2)
    else:
        table = real("limits", limits)
        if (
            table.shape != (model.nq, 2)
            or np.isnan(table).any()
            or (table[:, 0] > table[:, 1]).any()
        ):
            raise StateError(
                f"limits must be ({model.nq}, 2), lower ≤ upper per coordinate; got shape "
                f"{table.shape}"
            )
    return table[:, 0], table[:, 1]


def _inside_loops(model: Robot) -> set[int]:
    """Bodies whose joints are part of a loop: between its ends and where their branches meet."""
    found: set[int] = set()
    for loop in model.loops:
        branches = [
            _branch(model, -1 if end.link is None else model.attachment(end.link).body)
            for end in (loop.first, loop.second)
            if not loop.joints
        ]
        if branches:
            found |= branches[0] ^ branches[1]
    return found


def _branch(model: Robot, body: int) -> set[int]:
    """A body and those that carry it."""
    found: set[int] = set()
    while body >= 0:
        found.add(body)
        body = model.bodies[body].parent
    return found
