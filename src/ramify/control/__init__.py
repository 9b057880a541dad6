"""Controllers: texts over any scalar that give joint forces from the time and the state."""

from ramify.control.commands import Commands
from ramify.control.computed_torque import ComputedTorque
from ramify.control.controller import CONTROLLERS, Controller
from ramify.control.feedforward import Feedforward, MeasuredFeedforward
from ramify.control.function_controller import Function, as_controller
from ramify.control.gravity_compensation import GravityCompensation
from ramify.control.pd import PD, PID
from ramify.control.prescribed import Prescribed
from ramify.control.robot_text import RobotText
from ramify.control.sensors import SENSORS, Encoder, Sensor
from ramify.control.sum import Sum
from ramify.control.torque import Torque, TorqueTable

__all__ = [
    "CONTROLLERS", "PD", "PID", "SENSORS", "Commands", "ComputedTorque", "Controller", "Encoder",
    "Feedforward", "Function", "GravityCompensation", "MeasuredFeedforward", "Prescribed",
    "RobotText", "Sensor", "Sum", "Torque", "TorqueTable", "as_controller",
]  # fmt: skip
