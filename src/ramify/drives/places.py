"""Places of named frames over any scalar, and the Jacobians of lines and axes at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ramify.core.scalar import Scalar
from ramify.core.spatial import Mat3, Vec3
from ramify.dynamics.kinematics import poses
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import tree_of
from ramify.model.link import Pose, Screw
from ramify.model.robot import Robot
from ramify.model.skeleton import as_pose

Row = dict[int, Scalar]
"""A row of a Jacobian by rate; rates that are not there have zero."""


class Places:
    """A robot at q: where its frames are, and the Jacobians of lines and axes at them."""

    def __init__(self, robot: Robot, q: Sequence[Scalar]) -> None:
        self.robot = robot
        skeleton = robot.skeleton
        tree = tree_of(robot)
        x = displacements(tree, skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0)))
        self._links = poses(tree, x)
        self._tree = tree

    def body(self, name: str) -> int:
        return self.robot.attachment(name).body

    def pose(self, name: str) -> Pose:
        """A frame in the world."""
        b, frame = self.robot.attachment(name)
        local = as_pose(frame)
        if b < 0:
            return local
        k = self.robot.skeleton.last[b]
        at, seat = self._links[k], self._tree.links[k].seat
        R = _times(_times(at.R, seat.R), local.R)
        return Pose(R, at.point(seat.point(local.r)))

    def along(self, name: str, place: Vec3, axis: Vec3) -> Row:
        """How fast a point of a frame's body moves along an axis, per unit of each rate."""
        return {
            k: axis.dot(e * p.eta + (e * p.rho).cross(place - r)) for k, e, p, r in self._axes(name)
        }

    def about(self, name: str, axis: Vec3) -> Row:
        """How fast a frame's body turns about an axis, per unit of each rate."""
        return {k: axis.dot(e) * p.rho for k, e, p, r in self._axes(name)}

    def support(self, name: str) -> set[int]:
        """The rates that move a frame."""
        b = self.body(name)
        return set() if b < 0 else set(self.robot.skeleton.support(b))

    def _axes(self, name: str) -> Iterator[tuple[int, Vec3, Screw, Vec3]]:
        """Rate, axis, screw and place of every joint that moves a frame."""
        for k in sorted(self.support(name)):
            at = self._links[k]
            yield k, at.R.columns[2], self._tree.links[k].p, at.r


def _times(A: Mat3, B: Mat3) -> Mat3:
    return Mat3.from_rows(*(B.transposed_times(row) for row in A.rows))


def plus_row(a: Row, b: Row, scale: Scalar = 1.0) -> Row:
    """a + scale b."""
    out = dict(a)
    for k, x in b.items():
        out[k] = out[k] + x * scale if k in out else x * scale
    return out


def row_times(row: Row, v: Sequence[Scalar]) -> Scalar:
    """row · v."""
    total: Scalar = 0.0
    for k, x in row.items():
        total = total + x * v[k]
    return total
