"""The parts of a machine as texts over lists of scalars of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ramify.contact.ground import Reaction
from ramify.core.scalar import Scalar, Scalars
from ramify.kernels.closed import stabilised_forward_dynamics
from ramify.kernels.make import algorithm_of
from ramify.kernels.text import plain_text
from ramify.plant.plant import Plant
from ramify.plant.right_hand_side import MachineState, PassivePart


class TextParts:
    """See ``right_hand_side.MachineParts``."""

    def __init__(self, plant: Plant) -> None:
        self.plant, self.damping, self.drives = plant, plant.damping, plant.drives
        self.prescribed = plant.prescribed is not None

    def state(self, t: Scalar, y: Scalars) -> MachineState:
        of_q, of_v, of_z, _ = self.plant.state_slices
        q, v = self.plant.apply_prescribed_motion(t, y[of_q], y[of_v])
        z = y[of_z]
        return MachineState(q, v, z, list(self.plant.bristles(z)))

    def torque(self, t: Scalar, state: MachineState) -> tuple[list[Scalar] | None, list[Scalar]]:
        if self.plant.control is None or self.plant.sampled:
            return None, [0.0] * self.plant.controlled
        return self.plant.torque(t, *state[:3])

    def outside(self, u: Scalars) -> list[Scalar]:
        return list(u[: self.plant.model.nv])

    def limited(self, tau: Scalars) -> list[Scalar]:
        return self.plant.driven_within(tau)

    def pushes(self, q: Scalars, u: Scalars) -> list[Scalar] | None:
        return self.plant.pushes(q, u) if self.plant.pushed else None

    def loads(self, q: Scalars, v: Scalars) -> Sequence[list[Scalar]]:
        return [load.forces(self.plant.model, q, v) for load in self.plant.loads]

    def passive(self, q: Scalars, v: Scalars, bristles: Scalars) -> PassivePart:
        text = self.plant.passive_forces
        answer = text(q, v, bristles)
        return PassivePart(answer.total if text else None, list(answer.loss.values()), answer.rates)

    def dynamics(self, q: Scalars, v: Scalars, net: Scalars) -> tuple[list[Scalar], list[Scalar]]:
        contact = self.plant.contact
        if contact is None:
            return self._forward(q, v, net)[0], []
        if self.plant.model.loops:
            _, reactions, wrenches = contact.reactions(q, v)
            (a,) = self._forward(q, v, net, wrenches)
        else:
            a, reactions = contact.forward_dynamics(q, v, net)
        return a, [_losses(reactions)]

    @property
    def _forward(self) -> Callable[..., list[list[Scalar]]]:
        """Forward dynamics, under wrenches where there is a ground."""
        plant, wrenches = self.plant, self.plant.contact is not None
        name = "forward_dynamics_wrenches" if wrenches else "forward_dynamics"
        algorithm = algorithm_of(plant.model, name)
        if plant.baumgarte:
            algorithm = stabilised_forward_dynamics(plant.model, plant.baumgarte, wrenches)
        return plain_text(algorithm, plant.model, ())

    def prescribed_dynamics(
        self, t: Scalar, q: Scalars, v: Scalars, forces: Scalars
    ) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
        plant = self.plant
        assert plant.prescribed is not None
        a, tau = plant.prescribed.solve(plant.robot_text, t, q, v, forces)
        ground = [] if plant.contact is None else [_losses(plant.contact.reactions(q, v)[1])]
        return a, tau, ground


def _losses(reactions: Sequence[Reaction]) -> Scalar:
    """The power that the ground dissipates."""
    heat: Scalar = 0.0
    for reaction in reactions:
        heat = heat + reaction.loss
    return heat
