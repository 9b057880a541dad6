"""What a cost or a constraint sees of one knot: state, controls, frames and parameters, over any
scalar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar, Scalars
from ramify.core.spatial import Mat3, Vec3
from ramify.dynamics.energy import center_of_mass
from ramify.dynamics.kinematics import poses, seat
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import tree_of
from ramify.kernels.text import IDENTITY
from ramify.model.answers import FramePose
from ramify.model.link import Pose
from ramify.model.robot import Robot
from ramify.motion.ik_text import rotation_vector, velocity_between


class Knot:
    """One knot of a problem.

    ``q`` (nq), ``v`` (nv) and ``u`` are lists of scalars: coordinates, velocities, and the forces
    of the driven joints; ``dt`` is the length of the step. The last knot has no ``u``. A parameter
    of the problem is an attribute: a list of as many scalars as the problem says.
    """

    def __init__(
        self,
        robot: Robot,
        q: Scalars,
        v: Scalars,
        u: Scalars | None,
        dt: Scalar,
        parameters: Mapping[str, Scalars],
    ) -> None:
        self.robot = robot
        self.q, self.v, self.dt = list(q), list(v), dt
        self._u, self._parameters = u, dict(parameters)

    @property
    def u(self) -> list[Scalar]:
        """The forces of the driven joints, N m or N."""
        if self._u is None:
            raise StateError(
                "the last knot has no controls: final= must not use s.u; put it into cost="
            )
        return list(self._u)

    def __getattr__(self, name: str) -> list[Scalar]:
        parameters = self.__dict__.get("_parameters", {})
        if name in parameters:
            return list(parameters[name])
        named = ", ".join(parameters) or "none"
        raise AttributeError(
            f"a knot has no {name!r}; the parameters of this problem: {named}. Declare one by "
            f"parameters={{{name!r}: its size}}"
        )

    # ---- frames ----

    @cached_property
    def _links(self) -> Any:
        tree = tree_of(self.robot)
        return poses(tree, displacements(tree, self.robot.skeleton.coordinates(self.q, IDENTITY)))

    def _frame(self, name: str) -> tuple[int, Pose]:
        """The body of a frame, and the pose of the frame in the world."""
        body, frame = self.robot.attachment(name)
        if body < 0:
            return body, Pose(
                Mat3.from_rows(*(Vec3(*row) for row in frame.rotation.tolist())),
                Vec3(*frame.position.tolist()),
            )
        k = self.robot.skeleton.last[body]
        at = seat(tree_of(self.robot).links[k], self._links[k])
        turn = Mat3.from_rows(*(Vec3(*row) for row in frame.rotation.tolist()))
        rows = (turn.transposed_times(row) for row in at.R.rows)
        return body, Pose(Mat3.from_rows(*rows), at.point(Vec3(*frame.position.tolist())))

    def pose(self, name: str) -> FramePose:
        """(rotation, position) in the world of a link or a named frame: three rows of three
        scalars, and three scalars, m.
        """
        _, at = self._frame(name)
        rows = [[row.x, row.y, row.z] for row in at.R.rows]
        return FramePose(rows, [at.r.x, at.r.y, at.r.z])  # type: ignore[arg-type]

    def position(self, name: str) -> list[Scalar]:
        """The origin of a frame in the world (3), m."""
        return list(self.pose(name).position)

    def velocity(self, name: str) -> list[Scalar]:
        """The twist of a frame (6), angular first, at its origin in the axes of the world."""
        body, at = self._frame(name)
        turn, slide = Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)
        links = tree_of(self.robot).links
        for k in self.robot.skeleton.support(body) if body >= 0 else ():
            axis, screw, rate = self._links[k].R.columns[2], links[k].p, self.v[k]
            spin = axis * (screw.rho * rate)
            turn = turn + spin
            slide = slide + axis * (screw.eta * rate) + spin.cross(at.r - self._links[k].r)
        return [turn.x, turn.y, turn.z, slide.x, slide.y, slide.z]

    def center_of_mass(self) -> list[Scalar]:
        """The centre of mass in the world (3), m."""
        c = center_of_mass(tree_of(self.robot), self.robot.skeleton.coordinates(self.q, IDENTITY))
        return [c.x, c.y, c.z]

    # ---- errors ----

    def position_error(self, name: str, goal: Scalars) -> list[Scalar]:
        """The way from a goal (3) to the origin of a frame, m."""
        return [a - b for a, b in zip(self.position(name), _sized("goal", goal, 3), strict=True)]

    def pose_error(self, name: str, goal: Scalars) -> list[Scalar]:
        """Rotation vector (3, rad) and way (3, m) from a goal to a frame, in the axes of the world.
        The goal has 12 numbers: the rows of the rotation, then the position, as ``model.pose``
        gives them. The angle is at most pi: beyond half a turn the error wraps, and an optimum near
        there may be a local one.
        """
        numbers = _sized("goal", goal, 12)
        _, at = self._frame(name)
        wanted = Mat3.from_rows(*(Vec3(*numbers[i : i + 3]) for i in (0, 3, 6)))
        rest = Mat3.from_rows(*(wanted @ row for row in at.R.rows))  # R wanted'
        turn = rotation_vector(rest)
        way = [a - b for a, b in zip((at.r.x, at.r.y, at.r.z), numbers[9:], strict=True)]
        return [turn.x, turn.y, turn.z, *way]

    def posture_error(self, goal: Scalars) -> list[Scalar]:
        """The way (nv) from a configuration (nq) to q, as velocities move it."""
        return velocity_between(self.robot, _sized("goal", goal, self.robot.nq), self.q)

    # ---- constraints, each at most zero ----

    def joint_limits(self, margin: float = 0.0) -> list[Scalar]:
        """Constraints that keep q a margin inside the limits of the joints."""
        out: list[Scalar] = []
        i = 0
        for joint in self.robot.joints:
            for k, (low, high) in enumerate(joint.limits):
                if low > -float("inf"):
                    out.append(low + margin - self.q[i + k])
                if high < float("inf"):
                    out.append(self.q[i + k] - (high - margin))
            i += joint.nq
        return out

    def speed_limits(self, most: float | Sequence[float]) -> list[Scalar]:
        """Constraints that keep the speeds below a limit, one for all or one for each velocity: two
        for each speed.
        """
        limits = [most] * len(self.v) if isinstance(most, (float, int)) else list(most)
        return [
            sign * x - limit
            for x, limit in zip(self.v, _sized("most", limits, len(self.v)), strict=True)
            for sign in (1.0, -1.0)
        ]

    def outside_ball(self, name: str, center: Scalars, radius: Scalar) -> list[Scalar]:
        """The constraint that keeps the origin of a frame out of a ball, in m: positive inside."""
        way = self.position_error(name, center)
        square = way[0] * way[0] + way[1] * way[1] + way[2] * way[2]
        return [(radius * radius - square) / (2.0 * radius)]


def _sized(name: str, values: Any, size: int) -> list[Scalar]:
    numbers = list(values)
    if len(numbers) != size:
        raise StateError(f"{name} has {len(numbers)} numbers; it needs {size}")
    return numbers
