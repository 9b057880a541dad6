"""Loads on the joints that the robot's file does not describe: wind on a sail, a magnet, cogging.

A load is a text over any scalar, added once; it then acts in every run, rollout, study and
export of the robots that it concerns. Its power counts as a loss, so that audits balance::

    from ramify.plant.joint_loads import JOINT_LOADS, JointLoad

    class Wind(JointLoad):
        name = "wind"

        def acts(self, model):
            return "sail" in model.velocities

        def forces(self, model, q, v):
            return [-0.3 * rate * (name == "sail") for name, rate in zip(model.velocities, v)]

    JOINT_LOADS.add(Wind())
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from ramify.core.errors import ModelError
from ramify.core.registry import NamedEntries
from ramify.core.scalar import Scalar, Scalars
from ramify.model.robot import Robot


class JointLoad(ABC):
    """Forces on the joints of some robots, from their state."""

    name: str

    @abstractmethod
    def acts(self, model: Robot) -> bool:
        """Whether it acts on this robot."""

    @abstractmethod
    def forces(self, model: Robot, q: Scalars, v: Scalars) -> list[Scalar]:
        """Joint forces (nv), N m or N, from q (nq) and v (nv), over any scalar."""


JOINT_LOADS: Final[NamedEntries[JointLoad]] = NamedEntries("load", error=ModelError)
"""The loads that act in all runs that begin from now on."""


def loads_on(model: Robot) -> tuple[JointLoad, ...]:
    """The loads that act on a robot, in the order they were added."""
    return tuple(load for load in JOINT_LOADS.values() if load.acts(model))
