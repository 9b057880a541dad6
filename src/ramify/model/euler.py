"""Euler-angle joints (sections 3.3-3.7): universal and spherical joints as Denavit-Hartenberg rows.

A rotation about successive axes is a run of revolute joints that meet in a point. A modified DH row
is Rx(alpha) Rz(theta): it turns about z only. So each letter becomes a turn about z between
constant quarter turns (eqs. 3.6, 3.7),

    Z: Rz(q)        Y: Rx(-90) Rz(q) Rx(90)        X: Rz(90) Rx(90) Rz(q) Rx(-90) Rz(-90),

and what stands between two letters is brought to the form Rz Rx Rz: the outer two join the angles
on either side, the inner one is the row's alpha. A leading Rz(90) (X first) and a trailing rest (X
or Y last) find no row to join: the constant rows of table 3.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.model.frame import rotation_about
from ramify.model.joint import SPHERICAL_SEQUENCES, UNIVERSAL_SEQUENCES

SEQUENCES: Final = SPHERICAL_SEQUENCES + UNIVERSAL_SEQUENCES


@dataclass(frozen=True)
class EulerRow:
    """One DH row Rx(alpha) Rz(angle + offset), in degrees; the angle of a constant row is zero."""

    alpha: int
    offset: int

    def rotation(self, angle: float = 0.0) -> Array:
        """Rotation matrix (3, 3) of the row; angle in rad. The quarter turns are exact."""
        alpha, offset = (np.deg2rad(x) for x in (self.alpha, self.offset))
        turned = rotation_about((0, 0, 1), angle) @ rotation_about((0, 0, 1), offset)
        return rotation_about((1, 0, 0), alpha) @ turned


# The change from one letter to the next, Rz(before) Rx(alpha) Rz(after): the quarter turns that end
# the one and start the other. Between X and Y they are Rx Rz Rx, which equals Rz Rx Rz for quarter
# turns of one sense (fig. 3.7).
_CHANGE: Final = {
    "XY": (-90, -90, -90),
    "YX": (90, 90, 90),
    "XZ": (0, -90, -90),
    "ZX": (90, 90, 0),
    "YZ": (0, 90, 0),
    "ZY": (0, -90, 0),
}
_FIRST_ALPHA: Final = {"X": 90, "Y": -90, "Z": 0}
_HEAD: Final = {"X": EulerRow(0, 90)}
_TAIL: Final = {"X": EulerRow(-90, -90), "Y": EulerRow(90, 0)}


@dataclass(frozen=True)
class EulerJoint:
    """A sequence as DH rows: head, one row per angle, tail. ``head`` and ``tail`` are constant
    rows, None where none is needed.
    """

    sequence: str
    head: EulerRow | None
    rows: tuple[EulerRow, ...]
    tail: EulerRow | None

    @property
    def before(self) -> Array:
        """Constant rotation (3, 3) before the first row."""
        return self.head.rotation() if self.head else np.eye(3)

    @property
    def after(self) -> Array:
        """Constant rotation (3, 3) after the last row."""
        return self.tail.rotation() if self.tail else np.eye(3)

    @property
    def constant(self) -> Literal["none", "beginning", "end", "both"]:
        """Where constant rows are needed: the columns of table 3.7."""
        if self.head:
            return "both" if self.tail else "beginning"
        return "end" if self.tail else "none"

    @property
    def singular_at_zero(self) -> bool:
        """Whether the first and the last axis coincide when all angles are zero (section 3.6): the
        symmetric sequences.
        """
        return len(self.sequence) == 3 and self.sequence[0] == self.sequence[2]

    def rotation(self, angles: Sequence[float]) -> Array:
        """Rotation matrix (3, 3) of the rows at the Euler angles, in rad: R_a R_b or R_a R_b
        R_c.
        """
        if len(angles) != len(self.rows):
            raise ModelError(f"{self.sequence} takes {len(self.rows)} angles; got {len(angles)}")
        R = self.before
        for row, angle in zip(self.rows, angles, strict=True):
            R = R @ row.rotation(angle)
        return R @ self.after

    def __str__(self) -> str:
        lines = [f"{self.sequence}  k  alpha  theta"]
        for k, row in enumerate((self.head, *self.rows, self.tail)):
            if row is not None:
                own = f"q{k}{f' {row.offset:+d}' if row.offset else ''}"
                fixed = f"{row.offset:d} (constant)"
                moves = 0 < k <= len(self.rows)
                lines.append(f"     {k}  {row.alpha:5d}  {own if moves else fixed}")
        return "\n".join(lines)


class EulerTable(dict[str, EulerJoint]):
    """Sequences by name; prints as a table, one line per sequence, angles in degrees."""

    def __str__(self) -> str:
        lines = [
            "sequence  alpha            offset of the angle  before  after        singular at 0"
        ]
        for name, joint in self.items():
            alpha = " ".join(f"{row.alpha:4d}" for row in joint.rows)
            offset = " ".join(f"{row.offset:4d}" for row in joint.rows)
            before = "Rz 90" if joint.head else "-"
            after = {None: "-", _TAIL["Y"]: "Rx 90", _TAIL["X"]: "Rx-90 Rz-90"}[joint.tail]
            lines.append(
                f"{name:8}  {alpha:15}  {offset:19}  {before:6}  {after:11}  "
                f"{'yes' if joint.singular_at_zero else 'no'}"
            )
        return "\n".join(lines)


def euler_joint(sequence: str) -> EulerJoint:
    """The DH rows of a universal (two letters) or spherical (three letters) sequence, such as
    "YXZ"; ModelError for any other.
    """
    name = str(sequence).upper()
    if name not in SEQUENCES:
        raise ModelError(
            f"{sequence!r} is not an Euler sequence; choose one of {', '.join(SEQUENCES)}"
        )
    changes = [_CHANGE[a + b] for a, b in pairwise(name)]
    alphas = [_FIRST_ALPHA[name[0]], *(alpha for _, alpha, _ in changes)]
    lead = [0, *(after for _, _, after in changes)]
    trail = [*(before for before, _, _ in changes), 0]
    rows = tuple(EulerRow(alpha, a + b) for alpha, a, b in zip(alphas, lead, trail, strict=True))
    return EulerJoint(name, _HEAD.get(name[0]), rows, _TAIL.get(name[-1]))


def euler_joints() -> EulerTable:
    """All 12 spherical and 6 universal sequences, by name; print it to read it."""
    return EulerTable((name, euler_joint(name)) for name in SEQUENCES)
