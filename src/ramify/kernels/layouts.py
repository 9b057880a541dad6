"""How the numbers of an algorithm make the arrays that users get: by body instead of by link, rows
for columns, a diagonal as a matrix.

A straight-line kernel writes its results in this order at once; the loops' results are rearranged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ramify.core.scalar import Scalar
from ramify.core.spatial import Mat3, Vec3
from ramify.model.link import Pose
from ramify.model.robot import Robot
from ramify.trace.program import Port


@dataclass(frozen=True)
class OutputLayout:
    """A result as users get it: ``places`` of its numbers in an output of the text (the one of
    index ``source``), -1 for a zero.
    """

    port: Port
    source: int
    places: tuple[int, ...]


LayoutOf = Callable[[Robot], tuple[OutputLayout, ...]]


def body_pose_layouts(robot: Robot) -> tuple[OutputLayout, ...]:
    """Rotations and positions of the bodies from twelve numbers per link."""
    last, bodies = robot.skeleton.last, len(robot.bodies)
    return (
        OutputLayout(
            Port("rotation", (bodies, 3, 3)), 0, tuple(12 * k + i for k in last for i in range(9))
        ),
        OutputLayout(
            Port("position", (bodies, 3)), 0, tuple(12 * k + i for k in last for i in range(9, 12))
        ),
    )


def frame_pose_layouts(robot: Robot) -> tuple[OutputLayout, ...]:
    """A rotation and a position from twelve numbers."""
    return (
        OutputLayout(Port("rotation", (3, 3)), 0, tuple(range(9))),
        OutputLayout(Port("position", (3,)), 0, (9, 10, 11)),
    )


def pose_of_numbers(numbers: Sequence[Scalar]) -> Pose:
    """Nine numbers of a rotation, row by row, and three of a place."""
    a, b, c, r = (Vec3(*numbers[i : i + 3]) for i in (0, 3, 6, 9))
    return Pose(Mat3.from_rows(a, b, c), r)


def of_bodies(name: str, count: int) -> LayoutOf:
    """Some numbers per body from as many per link."""

    def layout(robot: Robot) -> tuple[OutputLayout, ...]:
        last = robot.skeleton.last
        places = tuple(count * k + i for k in last for i in range(count))
        return (OutputLayout(Port(name, (len(last), count)), 0, places),)

    return layout


def transposed_rows(name: str, count: int) -> LayoutOf:
    """A matrix (count, nv) from the rows of its transpose."""

    def layout(robot: Robot) -> tuple[OutputLayout, ...]:
        n = robot.nv
        places = tuple(count * k + i for i in range(count) for k in range(n))
        return (OutputLayout(Port(name, (count, n)), 0, places),)

    return layout


def triangle(name: str) -> LayoutOf:
    """The lower triangle of a matrix, row by row."""

    def layout(robot: Robot) -> tuple[OutputLayout, ...]:
        n = robot.nv
        places = tuple(n * i + j for i in range(n) for j in range(i + 1))
        return (OutputLayout(Port(name, (len(places),)), 0, places),)

    return layout


def triangle_and_diagonal(U: str, D: str) -> LayoutOf:
    """A triangular and a diagonal matrix from a matrix and a list."""

    def layout(robot: Robot) -> tuple[OutputLayout, ...]:
        n = robot.nv
        diagonal = tuple(k if k == i else -1 for k in range(n) for i in range(n))
        return (
            OutputLayout(Port(U, (n, n)), 0, tuple(range(n * n))),
            OutputLayout(Port(D, (n, n)), 1, diagonal),
        )

    return layout


def body_columns(name: str, count: int) -> LayoutOf:
    """A matrix (nv, count * bodies) from ``count`` numbers per pair of links."""

    def layout(robot: Robot) -> tuple[OutputLayout, ...]:
        n, last = robot.nv, robot.skeleton.last
        places = (count * (n * row + k) + i for row in range(n) for k in last for i in range(count))
        return (OutputLayout(Port(name, (n, count * len(last))), 0, tuple(places)),)

    return layout
