"""Frames and numbers of robot files: positions, rotations, and the forms that other parts share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import numpy as np

from ramify.documents.forms import Listed, Number, Numbers, Reading
from ramify.documents.kinds import Alternatives
from ramify.documents.mistakes import Path
from ramify.model.frame import Frame, from_rpy

FINITE, POSITIVE, NOT_NEGATIVE = Number(), Number(above=0.0), Number(least=0.0)
TRIPLE: Final = Numbers(3)
ROWS: Final = Listed(TRIPLE, size=3, said="a list of three rows of three numbers")

Triple = tuple[float, float, float]
Vector = Annotated[Triple, TRIPLE]
ZERO: Final[Triple] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Rotated:
    """A frame: origin in m, and one of roll-pitch-yaw (Rz Ry Rx, as in URDF) or a rotation
    matrix.
    """

    alternatives: ClassVar[Alternatives] = {("rpy", "rpy_deg", "rotation"): False}

    xyz: Vector = ZERO
    rpy: Vector | None = None
    rpy_deg: Vector | None = None
    rotation: Annotated[Any, ROWS] = None

    def to_frame(self, path: Path, reading: Reading) -> Frame:
        """The frame; the identity, with a mistake noted, for a matrix that is not a rotation."""
        position = np.array(self.xyz)
        if self.rotation is not None:
            R = np.array(self.rotation)
            off = np.abs(R @ R.T - np.eye(3)).max()
            if np.abs(R).max() > 1.1 or off > 1e-6 or np.linalg.det(R) < 0.0:
                text = "its rows must have length 1, stand at right angles and be right-handed"
                reading.refuse((*path, "rotation"), f"no rotation matrix: {text}")
                return Frame()
            return Frame(R, position)
        angles = self.rpy if self.rpy_deg is None else tuple(map(radians, self.rpy_deg))
        if angles is None:
            return Frame(position=position)
        return Frame(from_rpy(*angles), position, max(angles, key=abs))


def radians(degrees: float) -> float:
    """Degrees, beyond a turn without whole turns, in radians."""
    return math.radians(degrees if abs(degrees) <= 360.0 else math.remainder(degrees, 360.0))
