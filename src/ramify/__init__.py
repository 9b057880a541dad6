"""ramify: the dynamics of tree-type robots, each algorithm written once and compiled for the robot
at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ramify.core.errors import LoopError, ModelError, RamifyError, SimulationError, StateError
from ramify.core.forks import imported
from ramify.core.version import __version__ as __version__
from ramify.core.warning import LeftOutWarning

if TYPE_CHECKING:
    from ramify import contact, control, formulations, identify, motion, optimal, view
    from ramify.api.builders import Builder, Mechanism, from_dh, load
    from ramify.api.model import Model
    from ramify.api.result import Result, simulate
    from ramify.api.rollouts import Rollout, rollout
    from ramify.files.load import robots
    from ramify.fmi import to_fmu
    from ramify.interop.c_export import to_c
    from ramify.model.dynamic_parameters import with_inertial_parameters
    from ramify.model.edits import (
        with_contact_points,
        with_gravity,
        with_locked,
        with_loop,
        with_payload,
        with_tool,
    )
    from ramify.model.euler import euler_joint, euler_joints
    from ramify.model.frame import Frame
    from ramify.motion.differential import differential_ik
    from ramify.motion.inverse_kinematics import ik
    from ramify.plant.changed_robot import with_parameters
    from ramify.plant.varied_field import parameters
    from ramify.runs.step_check import StepCheck, check_step
    from ramify.runtime.threads import threads
    from ramify.scenario_files.scenario import Scenario, scenario
    from ramify.scenario_files.shipped import scenarios
    from ramify.sensitivity.linearize import linearize
    from ramify.studies.study import Study, study

_LAZY = {
    "Builder": "ramify.api.builders",
    "Frame": "ramify.model.frame",
    "Mechanism": "ramify.api.builders",
    "Model": "ramify.api.model",
    "Result": "ramify.api.result",
    "Rollout": "ramify.api.rollouts",
    "Scenario": "ramify.scenario_files.scenario",
    "euler_joint": "ramify.model.euler",
    "euler_joints": "ramify.model.euler",
    "from_dh": "ramify.api.builders",
    "load": "ramify.api.builders",
    "robots": "ramify.files.load",
    "differential_ik": "ramify.motion.differential",
    "ik": "ramify.motion.inverse_kinematics",
    "linearize": "ramify.sensitivity.linearize",
    "parameters": "ramify.plant.varied_field",
    "rollout": "ramify.api.rollouts",
    "scenario": "ramify.scenario_files.scenario",
    "scenarios": "ramify.scenario_files.shipped",
    "simulate": "ramify.api.result",
    "StepCheck": "ramify.runs.step_check",
    "Study": "ramify.studies.study",
    "check_step": "ramify.runs.step_check",
    "study": "ramify.studies.study",
    "threads": "ramify.runtime.threads",
    "to_c": "ramify.interop.c_export",
    "to_fmu": "ramify.fmi",
    "with_contact_points": "ramify.model.edits",
    "with_gravity": "ramify.model.edits",
    "with_inertial_parameters": "ramify.model.dynamic_parameters",
    "with_locked": "ramify.model.edits",
    "with_loop": "ramify.model.edits",
    "with_parameters": "ramify.plant.changed_robot",
    "with_payload": "ramify.model.edits",
    "with_tool": "ramify.model.edits",
}

_MODULES = ("contact", "control", "formulations", "identify", "motion", "optimal", "view")

__all__ = [
    "Builder", "Frame", "LeftOutWarning", "LoopError", "Mechanism", "Model", "ModelError",
    "RamifyError", "Result", "Rollout", "Scenario", "SimulationError", "StateError",
    "StepCheck", "Study", "check_step", "contact", "control", "differential_ik", "euler_joint",
    "euler_joints", "formulations", "from_dh", "identify", "ik", "linearize", "load", "motion",
    "optimal", "parameters", "robots", "rollout", "scenario", "scenarios", "simulate", "study",
    "threads", "to_c", "to_fmu", "view", "with_contact_points", "with_gravity",
    "with_inertial_parameters", "with_locked", "with_loop", "with_parameters", "with_payload",
    "with_tool",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = globals()[name] = getattr(imported(_LAZY[name]), name)
        return value
    if name in _MODULES:
        return imported(f"ramify.{name}")
    raise AttributeError(f"module 'ramify' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
