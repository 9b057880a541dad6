"""Where the links are and how fast: world poses and twists, by the recursion of eq. (4.2)."""

from __future__ import annotations

from collections.abc import Callable

from ramify.core.scalar import Scalar
from ramify.core.spatial import NO_TWIST, ZERO, Mat3, Twist, Vec3
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Column, Tree
from ramify.model.link import Displacement, Link, Pose


def outward(link: Link, parent: Pose, x: Displacement) -> Pose:
    """R = R_parent Rz(gamma) Rx(alpha) Rz(theta), row by row: a row of R is an axis of the world,
    seen from the link.
    """
    A = link.propagation(x)
    return Pose(Mat3.from_rows(*(A.outward(axis) for axis in parent.R.rows)), parent.point(A.r))


def seat(link: Link, pose: Pose) -> Pose:
    """The user's body frame in the world."""
    to_body = link.seat.R.transposed_times
    return Pose(Mat3.from_rows(*(to_body(axis) for axis in pose.R.rows)), pose.point(link.seat.r))


def twist_step(link: Link, parent: Twist, x: Displacement, v: Scalar) -> Twist:
    """Eq. (4.2): t = A t_parent + p v."""
    t: Twist = link.propagation(x) @ parent + link.p * v
    return t


def poses(tree: Tree, x: Column) -> Column:
    """Pose of every link's frame in the world (rotation; origin in m), at the displacements x."""
    return tree.outward(outward, tree.root, x)


def twists(tree: Tree, x: Column, v: Column) -> Column:
    """Twist [w; v] of every link in its own frame (rad/s; m/s)."""
    return tree.outward(twist_step, NO_TWIST, x, v)


def body_poses(tree: Tree, q: Column) -> Column:
    """Pose of every link's body frame in the world; of a joint's massless links too, where the
    frame is the link's own.
    """
    return tree.each(seat, poses(tree, displacements(tree, q)))


def frame_pose(tree: Tree, q: Column, target: Column, frame: Pose) -> Pose:
    """Pose in the world of a frame of the body whose (last) link is the target."""
    column = body_poses(tree, q)

    def total(place_of: Callable[[Pose], Vec3]) -> Vec3:
        found: Vec3 = tree.total(lambda link, at, here: place_of(at) * here, ZERO, column, target)
        return found

    def row(i: int) -> Vec3:
        return total(lambda at: frame.R.transposed_times(at.R.rows[i]))

    place = total(lambda at: at.point(frame.r))
    return Pose(Mat3.from_rows(row(0), row(1), row(2)), place)
