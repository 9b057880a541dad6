"""One step of a plant with hard contact, over any scalar: its equations from the state before it,
and the state after it from their solution.

The step is that of implicit Euler: stiffness and damping of joints, drives and servos act at its
end. Contacts, stops, dry friction and loops are rows of one system: see ``contact.hard_solver``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ramify.contact.hard_solver import (
    SEARCH,
    STATE,
    HardSolver,
    SolverState,
    Weights,
    residual,
    row_rate,
    rules_of,
)
from ramify.contact.hard_system import System, SystemLayout, without_zeros
from ramify.contact.hard_weights import compliances
from ramify.core.cached import cached_property
from ramify.core.errors import SimulationError
from ramify.core.scalar import Scalar, Scalars, select, sqrt
from ramify.dynamics.inertia_matrix import mass_matrix
from ramify.dynamics.inverse import bias
from ramify.dynamics.linear import dot
from ramify.dynamics.tree import tree_of
from ramify.dynamics.tree_factor import symmetric_times
from ramify.emit.lane_programs import Arrays, LaneStatement, Repeat, lane_step
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.text import plain_text
from ramify.loops.stabilise import projection
from ramify.model.configuration import coordinate_rates
from ramify.plant.hard_slots import DRY, LOOP, STOP, HardSlots
from ramify.plant.implicit_rates import (
    ImplicitForces,
    bristle_rates,
    controller_rates,
    drive_terms,
    implicit_forces,
)
from ramify.plant.plant import Plant
from ramify.plant.right_hand_side import counter_rates
from ramify.plant.text_parts import TextParts
from ramify.trace.graph import Graph

REFERENCE_STEP: Final = 2e-3
"""s: the step for which compliances are chosen; another step converges as well."""
_POSTURES: Final = 9
"""Random postures whose compliances are compared."""


class HardStep:
    """One step of a plant with hard contact: ``system`` gives its equations, ``solver`` solves
    them, ``after`` gives the next y. ``text`` does all three on numbers; ``statements`` has the
    same as programs for compiled code. w are the velocities at the end of the step.
    """

    def __init__(self, plant: Plant) -> None:
        if plant.hard_slots is None:
            raise SimulationError("this plant has no hard contact")
        self.plant, self.model = plant, plant.model
        self.slots: HardSlots = plant.hard_slots
        g = float(np.linalg.norm(self.model.gravity))
        self.gravity = g if g > 0.0 else 9.81

    @cached_property
    def solver(self) -> HardSolver:
        contact = self.slots.contact
        rules = rules_of(contact.law.tolerance, float(contact.law.iterations))
        return HardSolver(self.model.nv, contact.frictions, len(self.slots.labels), rules)

    # ---- the equations ----

    def forces(self, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> ImplicitForces:
        """The forces of a step of h seconds from t, under forces and wrenches u from outside."""
        plant, (of_q, of_v, of_z, _) = self.plant, self.plant.state_slices
        q, v, z = list(y[of_q]), list(y[of_v]), list(y[of_z])
        drive = drive_terms(plant, t, q, v, z[: plant.controlled], u[: self.model.nv])
        return implicit_forces(plant, drive, q, v, list(plant.bristles(z)), u, h)

    def system(self, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> System:
        """The equations of a step: A = M + h D + h^2 K, r = A v + h (forces - bias), and rows."""
        of_q, of_v, _, _ = self.plant.state_slices
        q, v = list(y[of_q]), list(y[of_v])
        tree, at = tree_of(self.model), self.link_coordinates(q)
        forces = self.forces(t, y, u, h)
        M = mass_matrix(tree, at)
        A = {(i, j): x for (i, j), x in M.entries.items() if j <= i}
        A |= {(k, k): A[k, k] + x for k, x in enumerate(forces.added_inertia)}
        momentum = symmetric_times(A, v)
        terms = zip(momentum, forces.net, bias(tree, at, v), strict=True)
        r = [p + h * (f - b) for p, f, b in terms]
        contact = self.slots.contact
        contacts = contact.rows(contact.touches(q), v, h, self.gravity)
        speed = sqrt(dot(v, momentum) + 1e-300)
        inverses = [1.0 / A[k, k] for k in range(len(v))]
        return System(A, r, contacts, self.slots.singles(q, v, h), speed, inverses)

    def link_coordinates(self, q: Scalars) -> list[Any]:
        return self.model.skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0))

    @cached_property
    def layout(self) -> SystemLayout:
        """Which numbers of a system are known beforehand."""
        graph, plant = Graph(), self.plant
        y = [graph.symbol(("y", i)) for i in range(plant.size)]
        u = [graph.symbol(("u", i)) for i in range(plant.input_size)]
        system = self.system(graph.symbol("t"), y, u, graph.symbol("h"))
        return SystemLayout(without_zeros(system))

    @cached_property
    def _compliances(self) -> tuple[list[float], float]:
        """(R of each slot, largest inverse inertia): medians over random postures of the joints,
        with floating bases in their neutral pose.
        """
        model = self.model
        bases = [model.joint_slice(j.name, of="q") for j in model.joints if j.floating]
        links = [(slot.body, slot.other) for slot in self.slots.contact.slots]
        of_loops = [label == LOOP for label in self.slots.labels]
        u, still = [0.0] * self.plant.input_size, np.zeros(self.model.nv)
        candidates = []
        for seed in range(_POSTURES):
            q = model.random(seed)[0]
            for base in bases:
                q[base] = model.neutral()[base]
            y = self.plant.start(q, still)
            system = self.system(0.0, y.tolist(), u, REFERENCE_STEP)
            candidates.append(compliances(system, links, of_loops))
        R = np.median([R for R, _ in candidates], axis=0)
        return R.tolist(), float(np.median([most for _, most in candidates]))

    def weights(self, h: Scalar) -> Weights:
        """The numbers of the solver for steps of h seconds."""
        R, most = self._compliances
        return Weights(R, most, float(np.sqrt(self.model.mass)) * self.gravity * h)

    # ---- the state before and after ----

    def begin(self, y: Scalars, h: Scalar) -> SolverState:
        """The state of the solver before its first pass."""
        recorded, n = list(y[self.plant.of_hard]), self.solver.rows
        return self.solver.start(y[self.plant.state_slices[1]], recorded[:n], self.weights(h))

    def after(
        self, t: Scalar, y: Scalars, u: Scalars, h: Scalar, state: SolverState
    ) -> list[Scalar]:
        """y after the step, from a solver that is done."""
        plant = self.plant
        failed = y[plant.of_hard.stop - 1] + state["failed"][0]
        recorded = [  # in the order of HardSlots.recorded
            *state["impulses"], *state["contact_modes"], state["passes"][0], state["residual"][0],
            h, failed,
        ]  # fmt: skip
        missed = state["residual"][0]
        overflow = select(missed < 1e300, 0.0, missed)  # infinite or NaN: the run fails
        w = [x + overflow for x in state["w"]]
        end = [*self.moved_states(t, y, h, w), *recorded]
        if not plant.counted:
            return end
        account = StepAccount(self, t, y, u, h, end)
        return [*end, *account.counters(state["impulses"])]

    def moved_states(self, t: Scalar, y: Scalars, h: Scalar, w: Sequence[Scalar]) -> list[Scalar]:
        """q, v and the states of controller and bristles after h seconds that end with the
        velocities w.
        """
        plant, (of_q, of_v, of_z, _) = self.plant, self.plant.state_slices
        q, v, z = list(y[of_q]), list(y[of_v]), list(y[of_z])
        controlled, bristles = z[: plant.controlled], list(plant.bristles(z))
        rates = [
            *controller_rates(plant, t, q, v, controlled, h),
            *bristle_rates(plant.passive_forces, q, w, bristles, h),
        ]
        states = [x + h * dx for x, dx in zip([*controlled, *bristles], rates, strict=True)]
        return [*self._moved(q, w, h), *w, *states]

    def _moved(self, q: list[Scalar], w: Sequence[Scalar], h: Scalar) -> list[Scalar]:
        """q after h seconds with the velocities w, its quaternions of length one."""
        rates = coordinate_rates(self.model, q, w)
        moved = [x + h * dx for x, dx in zip(q, rates, strict=True)]
        for i, _ in self.model.layout.balls:
            part = moved[i : i + 4]
            scale = 1.0 / sqrt(dot(part, part))
            moved[i : i + 4] = [x * scale for x in part]
        if self.model.loops and not self.plant.baumgarte:
            moved, _ = projection(self.model)(moved, list(w))  # of the second order in h
        return moved

    def potential(self, q: Sequence[Scalar], z: Sequence[Scalar]) -> Scalar:
        """The potential energy of gravity, springs and tendons, J; z: bristle deflections."""
        plant, still = self.plant, [0.0] * self.model.nv
        total = self.energy(q, still)[1]
        if plant.passive_forces:
            for stored in plant.passive_forces(list(q), still, list(z)).stored.values():
                total = total + stored
        return total

    def energy(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
        """The kinetic energy and the potential energy of gravity, J."""
        kinetic, potential = plain_text(ALGORITHMS["energy"], self.model, ())(list(q), list(v))
        return kinetic[0], potential[0]

    def text(self, t: Scalar, y: Scalars, u: Scalars, h: Scalar) -> list[Scalar]:
        """y after a step, with numbers or arrays of them."""
        system = self.system(t, y, u, h)
        state = self.solver.solve(system, self.weights(h), self.begin(y, h))
        return self.after(t, y, u, h, state)

    # ---- programs ----

    def statements(self) -> tuple[LaneStatement, ...]:
        """The step as programs on arrays: times [t, h], y and inputs, the numbers of the
        system, and the state of the solver.
        """
        solver, layout, plant = self.solver, self.layout, self.plant
        sizes = solver.sizes()
        outside = {"times": 2, "y": plant.size, "inputs": plant.input_size}
        numbers = {"numbers": layout.numbers}
        carried = {name: sizes[name] for name in STATE}

        def equations(a: Arrays) -> Arrays:
            t, h = a["times"]
            system = self.system(t, a["y"], a["inputs"], h)
            return {"numbers": layout.packed(system)} | self.begin(a["y"], h)

        def direction(a: Arrays) -> Arrays:
            system = layout.unpacked(a["numbers"])
            return solver.direction(system, self.weights(a["times"][1]), a)

        def search(a: Arrays) -> Arrays:
            return solver.search(layout.unpacked(a["numbers"]), a)

        def finish(a: Arrays) -> Arrays:
            return {"y": self.after(a["times"][0], a["y"], a["inputs"], a["times"][1], a)}

        inner = {name: sizes[name] for name in (*STATE, *SEARCH)}
        to_search = ("multipliers", "rho", "stiff", *SEARCH)
        direction_inputs = {"times": 2, **numbers}
        return (
            lane_step("equations", equations, outside),
            Repeat(
                "open",
                (
                    lane_step("direction", direction, direction_inputs | carried),
                    Repeat(
                        "searching",
                        (lane_step("search", search, numbers | {n: inner[n] for n in to_search}),),
                    ),
                    lane_step(
                        "advance", solver.advance,
                        {n: inner[n] for n in ("w", "d", "alpha", "open", "passes")},
                    ),
                ),
            ),
            lane_step("finish", finish, outside | carried),
        )  # fmt: skip


class StepAccount:
    """The energy of a step from y to ``end`` and what changed it.

    With the mean velocity v' = (v + w) / 2, every impulse p gives p . v', and M (w - v) is the sum
    of all impulses: so kinetic energy changes exactly by the sum of their work, but for the change
    of M. What is left (that change, and what gravity, gyroscopic and elastic forces give beyond
    their energies, because the step takes them at one of its ends) is the work of the scheme
    itself.
    """

    def __init__(
        self, step: HardStep, t: Scalar, y: Scalars, u: Scalars, h: Scalar, end: Sequence[Scalar]
    ) -> None:
        self.step, self.t, self.y, self.u, self.h, self.end = step, t, y, u, h, end
        of_q, of_v, of_z, _ = step.plant.state_slices
        self.q, self.v = list(y[of_q]), list(y[of_v])
        self.moved, self.w = list(end[of_q]), list(end[of_v])
        self.z = list(step.plant.bristles(y[of_z]))
        self.z_end = list(step.plant.bristles(end[of_z]))
        self.mean = [0.5 * (a + b) for a, b in zip(self.v, self.w, strict=True)]
        self.a = [(b - a) / h for a, b in zip(self.v, self.w, strict=True)]

    def counters(self, impulses: Sequence[Scalar]) -> list[Scalar]:
        """The end of y after the step: all counters, then the mean accelerations."""
        plant, h = self.step.plant, self.h
        forces = self.step.forces(self.t, self.y, self.u, h)
        drive = [
            f - i * a
            for f, i, a in zip(forces.drive_force, forces.drive_inertia, self.a, strict=True)
        ]
        powers = [f * x for f, x in zip(drive, self.mean, strict=True)]
        losses = self._losses(impulses)
        machine_losses = list(plant.passive_forces(self.moved, self.w, self.z_end).loss.values())
        heat = [*(x / h for x in losses), *machine_losses]
        rates = counter_rates(TextParts(plant), self.mean, powers, forces.resisting, heat)
        first = plant.state_slices[3].start
        counters = [c + h * r for c, r in zip(self.y[first:], rates, strict=False)]
        scheme = self._energy_of_scheme(forces, drive, impulses, rates, machine_losses)
        return [*counters, self.y[plant.of_step.start] + scheme, *self.a]

    def _losses(self, impulses: Sequence[Scalar]) -> list[Scalar]:
        """J that the impulses take, in the order of ``LOSSES``."""
        slots, contact = self.step.slots, self.step.slots.contact
        totals: dict[str, Scalar] = dict.fromkeys((STOP, DRY, LOOP), 0.0)
        friction: Scalar = 0.0
        impact: Scalar = 0.0
        for c, touch in enumerate(contact.touches(self.q)):
            n, s, t = (row_rate(touch.row(axis), self.mean) for axis in range(3))
            impact = impact - impulses[3 * c] * n
            friction = friction - impulses[3 * c + 1] * s - impulses[3 * c + 2] * t
        rows = slots.singles(self.q, self.v, self.h)
        for row, label, g in zip(rows, slots.labels, impulses[3 * contact.size :], strict=True):
            totals[label] = totals[label] - g * row_rate(row.entries, self.mean)
        return [friction, impact, *totals.values()]

    def _energy_of_scheme(
        self, forces: ImplicitForces, drive: Sequence[Scalar], impulses: Sequence[Scalar],
        rates: Sequence[Scalar], machine_losses: Sequence[Scalar],
    ) -> Scalar:  # fmt: skip
        """The energy that the scheme itself adds in the step, J. ``rates`` as ``counter_rates``
        gives them: [1] are the losses, [2] is the power of the pushes.
        """
        step, plant, h = self.step, self.step.plant, self.h
        tree, at = tree_of(step.model), step.link_coordinates(self.q)
        force = [
            f - i * a - d - b
            for f, i, a, d, b in zip(
                forces.net, forces.added_inertia, self.a, drive, bias(tree, at, self.v), strict=True
            )
        ]  # passive forces and pushes, less the bias
        pushed = rates[2] if plant.pushed else 0.0
        losses: Scalar = rates[1]
        for x in machine_losses:
            losses = losses + x
        gained = step.potential(self.moved, self.z_end) - step.potential(self.q, self.z)
        # kinetic energy by the change of M alone
        kinetic = step.energy(self.moved, self.w)[0] - step.energy(self.q, self.w)[0]
        left = dot(self._residual(forces, impulses), self.mean)
        return kinetic + gained + h * (dot(force, self.mean) + losses - pushed) + left

    def _residual(self, forces: ImplicitForces, impulses: Sequence[Scalar]) -> list[Scalar]:
        """What is left of the equations of the step, N m s or N s."""
        system = self.step.system(self.t, self.y, self.u, self.h)
        momentum = [a - b for a, b in zip(symmetric_times(system.A, self.w), system.r, strict=True)]
        return residual(system.rows, momentum, impulses)
