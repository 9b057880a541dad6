"""Controllers that are asked by hand, compiled: one call for the forces at a state."""

from __future__ import annotations

import weakref
from typing import Final, Protocol

import numpy as np

from ramify.codegen.cache_keys import digest
from ramify.codegen.kernel import Kernel
from ramify.codegen.target import llvm_available
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array
from ramify.core.scalar import Scalar, Scalars
from ramify.kernels.make import MOST_LINKS
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.text_kernel import text_kernel
from ramify.model.robot import Robot
from ramify.trace.program import Port, trace

FEW: Final = 3
"""Calls for one robot that run on NumPy: compiling pays if you ask more often."""
COMPILED: Final = "ramify.control.compiled"
"""Where a robot keeps them, by the identity of the controller."""


class Law(Protocol):
    """A controller, as ``Controller`` is one."""

    @property
    def states(self) -> int: ...
    @property
    def start(self) -> tuple[float, ...]: ...
    @property
    def traceable(self) -> bool: ...
    def text(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> tuple[list[Scalar], list[Scalar]]: ...


class Asked:
    """A controller that was asked for the forces on a robot: how often, and once it is compiled,
    its kernel (q, v, t (..., 1), and z where it has states) -> tau, with z at the start.
    """

    __slots__ = ("calls", "kernel", "start", "who")

    def __init__(self, who: weakref.ref[Law]) -> None:
        self.who, self.calls = who, 0
        self.kernel: Kernel | None = None
        self.start: Array | None = None


def note(control: Law, robot: Robot) -> None:
    """Note that a controller is asked for the forces on a robot; one that is asked often is
    compiled, if it can be. It is kept on the robot, as long as the controller lives.
    """
    known: dict[int, Asked] = robot.memo.setdefault(COMPILED, {})
    own = id(control)
    asked = known.get(own)
    if asked is None:
        known[own] = asked = Asked(weakref.ref(control, lambda _: known.pop(own, None)))
    asked.calls += 1
    if asked.calls == FEW:
        asked.start = np.array(control.start) if control.states else None
        asked.kernel = _kernel(control, robot)


def _kernel(control: Law, robot: Robot) -> Kernel | None:
    if not control.traceable or not llvm_available() or len(robot.skeleton.links) > MOST_LINKS:
        return None
    algorithms = RobotText(robot)

    alive = weakref.ref(control)  # the robot keeps the kernel, and must not keep the controller

    def text(q: Scalars, v: Scalars, t: Scalars, z: Scalars = ()) -> list[list[Scalar]]:
        law = alive()
        assert law is not None
        return [law.text(algorithms, t[0], q, v, z)[0]]

    try:
        program = trace("torque", text, *_ports(control, robot))
    except (TypeError, ValueError, AttributeError):  # a law that wants numbers, not expressions
        return None

    return text_kernel(
        robot,
        "torque",
        text,
        *_ports(control, robot),
        lambda _: digest(robot_key(robot), program.digest),
    )


def _ports(control: Law, robot: Robot) -> tuple[list[Port], list[Port]]:
    inputs = [Port("q", (robot.nq,)), Port("v", (robot.nv,)), Port("t", (1,))]
    inputs += [Port("z", (control.states,))] if control.states else []
    return inputs, [Port("tau", (robot.nv,))]
