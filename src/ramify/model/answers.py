"""What a model answers with: named tuples of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ramify.core.arrays import Array
from ramify.model.frame import Frame


class Attachment(NamedTuple):
    """A named link that is (part of) a body: the body's index (-1: the base) and the link's frame
    in it.
    """

    body: int
    frame: Frame


class NamedFrames(dict[str, Attachment]):
    """Named frames, printed as a table."""

    def __init__(self, attachments: Mapping[str, Attachment], bodies: Sequence[str]) -> None:
        super().__init__(attachments)
        self._bodies = bodies

    def __str__(self) -> str:
        rows = [("frame", "on body", "x, y, z in the body, m")]
        for name, (body, frame) in self.items():
            place = ", ".join(f"{x + 0.0:.6g}" for x in frame.position)
            rows.append((name, self._bodies[body] if body >= 0 else "(base)", place))
        wide = [max(len(row[i]) for row in rows) for i in (0, 1)]
        return "\n".join(f"{a:{wide[0]}}  {b:{wide[1]}}  {c}" for a, b, c in rows)


class Energy(NamedTuple):
    """Kinetic and potential energy in J; the potential is zero at the world's origin."""

    kinetic: Array
    potential: Array


class Momentum(NamedTuple):
    """Linear momentum (kg m/s) and angular momentum (kg m^2/s) about the centre of mass, world
    frame.
    """

    linear: Array
    angular: Array


class Hybrid(NamedTuple):
    """``acceleration`` (..., free) of the free coordinates and ``tau`` (..., prescribed), the
    forces of the others.
    """

    acceleration: Array
    tau: Array


class Kinematics(NamedTuple):
    """World poses of the bodies: ``rotation`` (..., nb, 3, 3) and ``position`` (..., nb, 3)."""

    rotation: Array
    position: Array


class FramePose(NamedTuple):
    """World pose of a frame: ``rotation`` (..., 3, 3) and ``position`` (..., 3), m."""

    rotation: Array
    position: Array


class FrameMotion(NamedTuple):
    """Twist of a frame, ``velocity`` (..., 6), and its rate, ``acceleration`` (..., 6): angular
    first, in the axes of the world.
    """

    velocity: Array
    acceleration: Array


class UDU(NamedTuple):
    """I = U D U': U upper unit triangular (..., nv, nv) in blocks, D (block) diagonal (..., nv,
    nv).
    """

    U: Array
    D: Array
