"""Motions of the joints over time: texts over any scalar, with exact rates and accelerations."""

from ramify.motion.cycloid import Cycloid, cycloid, example_ends
from ramify.motion.function import Function
from ramify.motion.gait import Gait
from ramify.motion.harmonic import Harmonic
from ramify.motion.hold import Hold
from ramify.motion.inverse_kinematics import Posture, inverse_kinematics
from ramify.motion.leg import Leg, legs
from ramify.motion.line import PlanarLine
from ramify.motion.pendulum import InvertedPendulum
from ramify.motion.per_joint import PerJoint
from ramify.motion.quintic import Quintic
from ramify.motion.reading import CoordinateReader
from ramify.motion.sequence import Sequence
from ramify.motion.spline import Spline
from ramify.motion.support import (
    Balance,
    measured_balance,
    planned_balance,
    support_margin,
    support_polygon,
)
from ramify.motion.table import Table
from ramify.motion.targets import Target
from ramify.motion.trajectory import MOTIONS, Motion, Trajectory

__all__ = [
    "MOTIONS", "Balance", "CoordinateReader", "Cycloid", "Function", "Gait", "Harmonic", "Hold",
    "InvertedPendulum", "Leg", "Motion", "PerJoint", "PlanarLine", "Posture", "Quintic", "Sequence",
    "Spline", "Table", "Target", "Trajectory", "cycloid", "example_ends", "inverse_kinematics",
    "legs", "measured_balance", "planned_balance", "support_margin", "support_polygon",
]  # fmt: skip
