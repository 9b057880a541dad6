"""Identification: a robot's parameters from logs of its motion, with standard errors and verdicts.

``excite`` plans a motion, ``fit`` reads what was measured, ``payload`` what the hand holds.
"""

from ramify.identify.fit_result import Estimate, Fit, JointError, Validation
from ramify.identify.fitting import fit
from ramify.identify.log_reader import read_log
from ramify.identify.measured_log import Log

__all__ = ["Estimate", "Fit", "JointError", "Log", "Validation", "fit", "read_log"]
