"""Identification: a robot's parameters from logs of its motion, with standard errors and verdicts.

``excite`` plans a motion, ``fit`` reads what was measured, ``payload`` what the hand holds.
"""

from ramify.identify.excitation import Excitation, excite
from ramify.identify.fit_result import Estimate, Fit
from ramify.identify.fit_validation import JointError, Validation
from ramify.identify.fitting import fit
from ramify.identify.log_reader import read_log
from ramify.identify.measured_log import Log
from ramify.identify.payloads import Payload, payload

__all__ = [
    "Estimate", "Excitation", "Fit", "JointError", "Log", "Payload", "Validation", "excite", "fit",
    "payload", "read_log",
]  # fmt: skip
