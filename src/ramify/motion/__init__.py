"""Motions of the joints over time: texts over any scalar, with exact rates and accelerations."""

from typing import Any

from ramify.core.warning import warn
from ramify.motion.coordinate_reader import CoordinateReader
from ramify.motion.cycloid import Cycloid, cycloid, example_ends
from ramify.motion.differential import differential_ik
from ramify.motion.gait import Gait
from ramify.motion.harmonic import Harmonic
from ramify.motion.hold import Hold
from ramify.motion.ik_tasks import CenterOfMass, KeepPosture, RelativePose
from ramify.motion.inverse_kinematics import Posture, inverse_kinematics
from ramify.motion.leg import Leg, legs
from ramify.motion.line import PlanarLine
from ramify.motion.pendulum import InvertedPendulum
from ramify.motion.per_joint import PerJoint
from ramify.motion.quintic import Quintic
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
from ramify.motion.time_function import TimeFunction
from ramify.motion.trajectory import MOTIONS, Motion, Trajectory

__all__ = [
    "MOTIONS", "Balance", "CenterOfMass", "CoordinateReader", "Cycloid", "Gait", "Harmonic",
    "Hold", "InvertedPendulum", "KeepPosture", "Leg", "Motion", "PerJoint", "PlanarLine",
    "Posture", "Quintic", "RelativePose", "Sequence", "Spline", "Table", "Target", "TimeFunction",
    "Trajectory", "cycloid", "differential_ik", "example_ends", "inverse_kinematics", "legs",
    "measured_balance", "planned_balance", "support_margin", "support_polygon",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name != "Function":
        raise AttributeError(f"module 'ramify.motion' has no attribute {name!r}")
    warn("motion.Function is now motion.TimeFunction; the old name goes in 0.3", DeprecationWarning)
    return TimeFunction
