"""The tasks of inverse kinematics as a text: the errors of all tasks of a robot, with their
Jacobian, over any scalar.

What is wanted, the weights, the limits and the tolerance are numbers of one list, the *goal*, so
that one kernel serves all targets of the same kind. Angles of rotation are at most pi.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ramify.core.scalar import Scalar, Scalars, atan2, cos, select, sin, sqrt
from ramify.core.spatial import Mat3, Vec3
from ramify.dynamics.centroidal import centroidal_momentum_matrix
from ramify.dynamics.closure import closures
from ramify.dynamics.constraint_kinematics import loop_constraints
from ramify.dynamics.energy import center_of_mass
from ramify.dynamics.kinematics import poses, seat
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import Tree
from ramify.kernels.text import IDENTITY
from ramify.model.link import Pose
from ramify.model.robot import Robot

LOOPS: Final = 30.0
"""Weight of the loops beside targets of weight one: where not all can be met, loops come first."""

Row = dict[int, Scalar]
"""A row of a Jacobian: the entries of v that matter."""


@dataclass(frozen=True)
class PoseForm:
    """A point of a body and its turn, as seen from another body (-1: the base). Its numbers in the
    goal: two weights, the point, the point of the other body unless that is the base, and what is
    wanted of position (3) and rotation (9).
    """

    body: int
    reference: int
    position: bool
    rotation: bool

    @property
    def size(self) -> int:
        return 5 + 3 * (self.reference >= 0) + 3 * self.position + 9 * self.rotation

    @property
    def rows(self) -> int:
        return 3 * self.position + 3 * self.rotation


@dataclass(frozen=True)
class MassForm:
    """The centre of mass along some axes. Its numbers: two weights, the place (3)."""

    axes: tuple[int, ...]
    size: int = 5

    @property
    def rows(self) -> int:
        return len(self.axes)


@dataclass(frozen=True)
class PostureForm:
    """Some entries of v of the way to a configuration. Its numbers: two weights, q."""

    entries: tuple[int, ...]
    nq: int

    @property
    def size(self) -> int:
        return 2 + self.nq

    @property
    def rows(self) -> int:
        return len(self.entries)


TaskForm = PoseForm | MassForm | PostureForm


@dataclass(frozen=True)
class IkProblem:
    """The kind of a problem: its tasks, the entries of v that move, and their entries in q that may
    have limits (-1: none). The goal: tolerance, the least share of the squared error that an
    iteration must win, lower and upper limits, then the numbers of the tasks.
    """

    forms: tuple[TaskForm, ...]
    moving: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def limited(self) -> tuple[int, ...]:
        return tuple(i for i in self.places if i >= 0)

    @property
    def starts(self) -> list[int]:
        """Where the numbers of each task begin in the goal, and where the last ones end."""
        out = [2 + 2 * len(self.limited)]
        for form in self.forms:
            out.append(out[-1] + form.size)
        return out


@dataclass(slots=True)
class TaskPart:
    """Errors of one kind of a task, with the rows of what they are measured of."""

    errors: list[Scalar]
    rows: list[Row]
    weight: Scalar


# ---- errors and Jacobians ----


def task_parts(
    robot: Robot, tree: Tree, problem: IkProblem, q: Scalars, goal: Scalars
) -> list[tuple[TaskPart | None, TaskPart | None]]:
    """For each task what is missing in position and in rotation; for the loops, last, what closes
    them.
    """
    columns = robot.skeleton.coordinates(q, IDENTITY)
    x = displacements(tree, columns)
    at = poses(tree, x)
    out: list[tuple[TaskPart | None, TaskPart | None]] = []
    for form, begin, end in zip(problem.forms, problem.starts, problem.starts[1:], strict=False):
        numbers = goal[begin:end]
        if isinstance(form, PoseForm):
            out.append(_pose_parts(robot, tree, form, at, numbers))
        elif isinstance(form, MassForm):
            out.append((_mass_part(tree, form, columns, numbers), None))
        else:
            out.append((None, _posture_part(robot, form, q, numbers)))
    if robot.loops:
        found = loop_constraints(tree, closures(robot), columns, x, None, facing=True)
        errors, rows = [-row.value for row in found], [row.entries for row in found]
        out.append((TaskPart(errors, rows, LOOPS), None))
    return out


def _pose_parts(
    robot: Robot, tree: Tree, form: PoseForm, at: Any, numbers: Scalars
) -> tuple[TaskPart | None, TaskPart | None]:
    left = iter(numbers)

    def vector() -> Vec3:
        return Vec3(next(left), next(left), next(left))

    weights = next(left), next(left)
    first = _body(robot, tree, form.body, at)
    place = first.point(vector())
    carried = set(robot.skeleton.support(form.body))
    origin, turn, other = Vec3(0.0, 0.0, 0.0), None, set[int]()
    if form.reference >= 0:
        second = _body(robot, tree, form.reference, at)
        origin, turn = second.point(vector()), second.R
        other = set(robot.skeleton.support(form.reference))

    def in_target_axes(u: Vec3) -> Vec3:
        return u if turn is None else turn.transposed_times(u)

    moves = [(k, 1.0 if k in carried else -1.0) for k in sorted(carried ^ other)]
    spins = {k: at[k].R.columns[2] * (tree.links[k].p.rho * sign) for k, sign in moves}
    shift = turned = None
    if form.position:
        slides = {k: at[k].R.columns[2] * (tree.links[k].p.eta * sign) for k, sign in moves}
        ways = {k: in_target_axes(slides[k] + spins[k].cross(place - at[k].r)) for k, _ in moves}
        offset = vector() - in_target_axes(place - origin)
        shift = TaskPart(_entries(offset), _rows(ways), weights[0])
    if form.rotation:
        wanted = Mat3.from_rows(vector(), vector(), vector())
        R = Mat3.from_columns(*(in_target_axes(axis) for axis in first.R.columns))
        rest = Mat3.from_rows(*(R @ row for row in wanted.rows))  # wanted R'
        ways = {k: in_target_axes(spin) for k, spin in spins.items()}
        turned = TaskPart(_entries(rotation_vector(rest)), _rows(ways), weights[1])
    return shift, turned


def _body(robot: Robot, tree: Tree, body: int, at: Any) -> Pose:
    k = robot.skeleton.last[body]
    return seat(tree.links[k], at[k])


def _mass_part(tree: Tree, form: MassForm, q: Any, numbers: Scalars) -> TaskPart:
    total: Scalar = tree.total(lambda link: link.M.m, 0.0)
    columns = centroidal_momentum_matrix(tree, q)
    ways = {k: column.f * (1.0 / total) for k, column in enumerate(columns)}
    errors, rows = _entries(Vec3(*numbers[2:5]) - center_of_mass(tree, q)), _rows(ways)
    return TaskPart([errors[i] for i in form.axes], [rows[i] for i in form.axes], numbers[0])


def _posture_part(robot: Robot, form: PostureForm, q: Scalars, numbers: Scalars) -> TaskPart:
    way = velocity_between(robot, q, numbers[2:])
    return TaskPart([way[j] for j in form.entries], [{j: 1.0} for j in form.entries], numbers[1])


def _entries(u: Vec3) -> list[Scalar]:
    return [u.x, u.y, u.z]


def _rows(ways: dict[int, Vec3]) -> list[Row]:
    return [{k: getattr(u, axis) for k, u in ways.items()} for axis in "xyz"]


def rotation_vector(R: Mat3) -> Vec3:
    """The rotation vector, of angle at most pi, of a rotation: by the largest of the four entries
    of its quaternion, so that no digits are lost near half a turn.
    """
    trace = R.xx + R.yy + R.zz
    w = (1.0 + trace, R.zy - R.yz, R.xz - R.zx, R.yx - R.xy)
    x = (w[1], 1.0 + 2.0 * R.xx - trace, R.yx + R.xy, R.xz + R.zx)
    y = (w[2], x[2], 1.0 + 2.0 * R.yy - trace, R.zy + R.yz)
    z = (w[3], x[3], y[3], 1.0 + 2.0 * R.zz - trace)
    best, size = w, w[0]
    for row, own in ((x, x[1]), (y, y[2]), (z, z[3])):
        larger = own > size
        best = tuple(select(larger, a, b) for a, b in zip(row, best, strict=True))  # type: ignore[assignment]
        size = select(larger, own, size)
    return _logarithm(best)


def _logarithm(q: Sequence[Scalar]) -> Vec3:
    """Rotation vector of a quaternion of any length but zero."""
    sign = select(q[0] < 0.0, -1.0, 1.0)
    v = Vec3(q[1], q[2], q[3]) * sign
    square, w = v.dot(v), q[0] * sign
    small = square < 1e-24 * (w * w)
    sine = sqrt(select(small, 1.0, square))
    return v * select(small, 2.0 / select(small, w, 1.0), 2.0 * atan2(sine, w) / sine)


def _product(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    """Product of quaternions."""
    u, v = Vec3(*a[1:]), Vec3(*b[1:])
    return [a[0] * b[0] - u.dot(v), *_entries(v * a[0] + u * b[0] + u.cross(v))]


def velocity_between(robot: Robot, q0: Scalars, q1: Scalars) -> list[Scalar]:
    """The velocity (nv) that takes q0 to q1 in unit time."""
    way: list[Scalar] = [0.0] * robot.nv
    for i, j in zip(robot.layout.plain_q, robot.layout.plain_v, strict=True):
        way[j] = q1[i] - q0[i]
    for i, j in robot.layout.balls:
        s, x, y, z = q0[i : i + 4]
        way[j : j + 3] = _entries(_logarithm(_product((s, -x, -y, -z), q1[i : i + 4])))
    return way


def moved_by_step(robot: Robot, q: Scalars, step: dict[int, Scalar]) -> list[Scalar]:
    """The configuration after a step of the entries of v."""
    out = list(q)
    for i, j in zip(robot.layout.plain_q, robot.layout.plain_v, strict=True):
        if j in step:
            out[i] = q[i] + step[j]
    for i, j in robot.layout.balls:
        if any(j + k in step for k in range(3)):
            u = Vec3(*(0.5 * step.get(j + k, 0.0) for k in range(3)))
            square = u.dot(u)
            small = square < 1e-24
            half = sqrt(select(small, 1.0, square))
            turn = u * select(small, 1.0, sin(half) / half)
            found = _product(q[i : i + 4], [select(small, 1.0, cos(half)), *_entries(turn)])
            length = sqrt(sum((x * x for x in found), 0.0))
            out[i : i + 4] = [x / length for x in found]
    return out


def weighted_errors_and_rows(
    parts: Sequence[tuple[TaskPart | None, TaskPart | None]], moving: Sequence[int]
) -> tuple[list[Scalar], list[Row]]:
    """Errors times their weights, and the rows of the entries that move."""
    e: list[Scalar] = []
    J: list[Row] = []
    entries = set(moving)
    for part in (part for pair in parts for part in pair if part is not None):
        for error, row in zip(part.errors, part.rows, strict=True):
            e.append(part.weight * error)
            J.append({k: part.weight * x for k, x in row.items() if k in entries})
    return e, J
