"""The libraries that functions of a robot are made for, each loaded at its first use."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ramify.core.errors import RamifyError
from ramify.interop.named_functions import named_function
from ramify.model.robot import Robot

_NAMES = {"jax": "JAX", "torch": "PyTorch", "casadi": "CasADi"}


def library_function(
    robot: Robot, library: str, name: str, options: dict[str, Any], **how: Any
) -> Any:
    """A function of a robot for a library; RamifyError where the library is not installed."""
    if find_spec(library) is None:
        raise RamifyError(
            f"model.{library} needs {_NAMES[library]}; install it with: "
            f"pip install 'ramify[{library}]'"
        )
    make = import_module(f"ramify.interop.{library}_functions").make
    return make(named_function(robot, name, options), **how)
