"""One step of a plant with hard contact, over any scalar: its equations from the state before it,
and the state after it from their solution.

The step is that of implicit Euler: stiffness and damping of joints, drives and servos act at its
end. Contacts, stops, dry friction and loops are rows of one system: see ``contact.hard_solver``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.contact.hard_rows import RECOVERY, HardContact, least_speed
from ramify.contact.hard_solver import HardSolver, Rules, State, Weights
from ramify.contact.hard_system import Layout, SingleRow, System, without_zeros
from ramify.contact.hard_weights import compliances
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.core.scalar import Scalar, Scalars, select, sqrt
from ramify.core.spatial import Vec3
from ramify.drives.machine_forces import passive_text
from ramify.drives.rotation import direction, length, log
from ramify.dynamics.closure import closures
from ramify.dynamics.constraint_kinematics import constraints
from ramify.dynamics.inertia_matrix import mass_matrix
from ramify.dynamics.inverse import bias
from ramify.dynamics.linear import dot
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import tree_of
from ramify.dynamics.tree_factor import Entries, times
from ramify.model.configuration import coordinate_rates
from ramify.plant.implicit_rates import (
    bristle_rates,
    controller_rates,
    drive_terms,
    passive_terms,
)
from ramify.plant.plant import Plant
from ramify.trace.graph import Graph

DRY, STOP, LOOP = "dry friction", "stop", "loop"


@dataclass(frozen=True)
class StepForces:
    """Of a step: joint forces ``net`` and the inertia ``rotors`` that implicit terms add, (nv)
    each.
    """

    net: list[Scalar]
    rotors: list[Scalar]
    drive: list[Scalar]
    servo: list[Scalar]


class HardStep:
    """The texts of a step of a plant, and where its solution is found in y."""

    def __init__(self, plant: Plant) -> None:
        if plant.hard_contact is None:
            raise SimulationError("this plant has no hard contact")
        if plant.prescribed is not None:
            raise SimulationError(
                "hard contact cannot be combined with a prescribed motion; let a controller such "
                "as rf.control.PD follow the motion, or take ground="
            )
        self.plant, self.contact = plant, plant.hard_contact
        self.model = plant.model
        g = float(np.linalg.norm(self.model.gravity))
        self.gravity = g if g > 0.0 else 9.81
        self.stopped = passive_text(self.model).limits if plant.stops else ()
        elements = [e for joint in self.model.joints for e in joint.machine]
        self.cones = tuple(
            (i, j, elements[j].cone)
            for i, j in self.model.layout.balls
            if plant.stops and elements[j].cone < np.inf
        )
        law = passive_text(self.model, False, plant.passive)
        self.dry = tuple(j for j in range(self.model.nv) if law.dry_level(j, 0.0) is not None)
        self._law = law

    @property
    def labels(self) -> list[str]:
        """The kind of every single row, in their order."""
        loops = sum(len(loop.rows) for loop in self.model.loops)
        stops = len(self.stopped) + len(self.cones)
        return [STOP] * stops + [DRY] * len(self.dry) + [LOOP] * loops

    @cached_property
    def solver(self) -> HardSolver:
        law = self.contact.law
        rules = Rules(speed=law.tolerance, passes=float(law.iterations))
        return HardSolver(self.model.nv, self.contact.frictions, len(self.labels), rules)

    # ---- the equations ----

    def forces(self, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> StepForces:
        """The forces of a step of h seconds from t, under forces and wrenches u from outside."""
        plant, model, (of_q, of_v, of_z, _) = self.plant, self.model, self.plant.state_slices
        q, v, z = list(y[of_q]), list(y[of_v]), list(y[of_z])
        drive = drive_terms(plant, t, q, v, z[: plant.controlled], u[: model.nv])
        passive = passive_terms(plant, q, v, list(plant.bristles(z)), h)
        force = passive.force
        if plant.pushed:
            force = [p + f for p, f in zip(force, plant.pushes(q, u), strict=True)]
        driven = [f - h * k * x for f, k, x in zip(drive.force, drive.k, v, strict=True)]
        servo, rest = (
            [h * (d + h * k) for k, d in zip(x.k, x.d, strict=True)] for x in (drive, passive)
        )
        return StepForces(
            [f + p for f, p in zip(driven, force, strict=True)],
            [a + b for a, b in zip(servo, rest, strict=True)], driven, servo,
        )  # fmt: skip

    def system(self, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> System:
        """The equations of a step: A = M + h D + h^2 K, r = A v + h (forces - bias), and rows."""
        of_q, of_v, _, _ = self.plant.state_slices
        q, v = list(y[of_q]), list(y[of_v])
        tree, own = tree_of(self.model), self._own(q)
        forces = self.forces(t, y, u, h)
        A = self._inertia(own, forces.rotors)
        push = bias(tree, own, v)
        momentum = times(A, v)
        r = [
            p + h * (f - b) for p, f, b in zip(momentum, forces.net, push, strict=True)
        ]  # fmt: skip
        touches = self.contact.touches(q)
        contacts = self.contact.rows(touches, v, h, self.gravity)
        speed = sqrt(dot(v, momentum) + 1e-300)
        return System(A, r, contacts, self._singles(q, v, h), speed)

    def _own(self, q: Scalars) -> list[Any]:
        return self.model.skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0))

    def _inertia(self, own: Sequence[Any], rotors: Sequence[Scalar]) -> Entries:
        M = mass_matrix(tree_of(self.model), own)
        A = {(i, j): x for (i, j), x in M.entries.items() if j <= i}
        return A | {(k, k): A[k, k] + w for k, w in enumerate(rotors)}

    def _singles(self, q: Scalars, v: Scalars, h: Scalar) -> tuple[SingleRow, ...]:
        """Stops, dry friction and loops."""
        rows: list[SingleRow] = []
        for i, j, low, high in self.stopped:
            below, above = q[i] - low, high - q[i]
            if not np.isfinite(low):
                sign, gap = -1.0, above
            elif not np.isfinite(high):
                sign, gap = 1.0, below
            else:
                nearer = below < above
                sign, gap = select(nearer, 1.0, -1.0), select(nearer, below, above)
            rows.append(SingleRow({j: sign}, least_speed(gap, h), low=0.0))
        for i, j, cone in self.cones:
            angle = log(q[i : i + 4])
            turned = length(angle)
            axis = direction(angle, turned)
            entries = {j + k: -x for k, x in enumerate((axis.x, axis.y, axis.z))}
            rows.append(SingleRow(entries, least_speed(cone - turned, h), low=0.0))
        for j in self.dry:
            level = self._law.dry_level(j, v[j])
            assert level is not None
            rows.append(SingleRow({j: 1.0}, 0.0, low=-h * level[0], high=h * level[1]))
        if self.model.loops:
            tree, own = tree_of(self.model), self._own(q)
            for row in constraints(tree, closures(self.model), own, displacements(tree, own), None):
                speed = -row.value / h
                speed = select(speed < -RECOVERY, -RECOVERY, speed)
                speed = select(speed > RECOVERY, RECOVERY, speed)
                rows.append(SingleRow(row.entries, speed))
        return tuple(rows)

    @cached_property
    def layout(self) -> Layout:
        """Which numbers of a system are known beforehand."""
        graph, plant = Graph(), self.plant
        y = [graph.symbol(("y", i)) for i in range(plant.size)]
        u = [graph.symbol(("u", i)) for i in range(plant.input_size)]
        system = self.system(graph.symbol("t"), y, u, graph.symbol("h"))
        return Layout(without_zeros(system))

    # ---- the state after it ----

    def after(
        self, t: Scalar, y: Scalars, u: Scalars, h: Scalar, state: State
    ) -> list[Scalar]:
        """y after the step."""
        plant, model, (of_q, of_v, of_z, _) = self.plant, self.model, self.plant.state_slices
        q, v, z = list(y[of_q]), list(y[of_v]), list(y[of_z])
        w = state["w"]
        moved = [x + h * dx for x, dx in zip(q, coordinate_rates(model, q, w), strict=True)]
        for i, _ in model.layout.balls:
            part = moved[i : i + 4]
            scale = 1.0 / sqrt(dot(part, part))
            moved[i : i + 4] = [x * scale for x in part]
        controlled, bristles = z[: plant.controlled], list(plant.bristles(z))
        rates = [
            *controller_rates(plant, t, q, v, controlled, h),
            *bristle_rates(plant.passive_forces, q, w, bristles, h),
        ]
        states = [x + h * dx for x, dx in zip(z, rates, strict=False)]
        return [*moved, *w, *states]

    def weights(self, h: float) -> Weights:
        """The numbers of the solver for steps of h seconds, at the neutral posture."""
        y = self.plant.start(self.model.neutral(), np.zeros(self.model.nv))
        system = self.system(0.0, y.tolist(), [0.0] * self.plant.input_size, h)
        links = [slot.link for slot in self.contact.slots]
        R, most = compliances(system, links, [label == LOOP for label in self.labels])
        return Weights(R, most, float(np.sqrt(self.model.mass)) * self.gravity * h)
