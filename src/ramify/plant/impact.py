"""What happens when contacts, stops or loops close at once: velocities after an impact, impulses,
and the energy that is lost.

The posture stays, forces that are finite have no part in it: M (w - v) = J' g. Contacts and stops
that touch obey Newton's law of restitution and Coulomb's law of friction for impulses; loops are
closed in velocity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.hard import Hard, as_contact
from ramify.contact.hard_solver import OPEN, STICK, HardSolver, Rules, Weights, row_rate
from ramify.contact.hard_system import SingleRow, System
from ramify.contact.hard_weights import compliances
from ramify.core.arrays import Array, one_number
from ramify.core.errors import SimulationError, StateError
from ramify.core.messages import shown
from ramify.core.scalar import number
from ramify.dynamics.inertia_matrix import mass_matrix
from ramify.dynamics.linear import dot
from ramify.dynamics.tree import tree_of
from ramify.dynamics.tree_factor import symmetric_times
from ramify.model.configuration import check_quaternions, checked
from ramify.model.robot import Robot, the_robot
from ramify.plant.hard_slots import DRY, LOOP, HardSlots

TOUCHING: Final = 1e-3
"""m (rad of a stop): gaps up to this are closed."""
_APART: Final = -1e9
"""m/s: contacts that do not touch may close as fast as this."""
_RULES: Final = Rules(speed=1e-9, impulse=1e-9, passes=300.0, updates=100.0, final=True)


class Impact(NamedTuple):
    """``v`` (nv) after the impact; ``impulses``: by contact that took part the impulse (3,) on its
    body, N s in the axes of the world; ``loops`` (nc): multipliers, N s or N m s; ``stops`` by
    coordinate; ``energy_lost``, J; and the ``mode`` of each of these contacts, "stick" or "slide".
    """

    v: Array
    impulses: dict[str, Array]
    loops: Array
    stops: dict[str, float]
    energy_lost: float
    mode: dict[str, str]


def impact(
    model: Robot, q: ArrayLike, v: ArrayLike,
    contact: Hard | str | Mapping[str, Any] | None = "hard", within: float = TOUCHING,
) -> Impact:  # fmt: skip
    """The impact of a robot at the posture q (nq) that moves with v (nv). contact: as in
    ``simulate``, None for loops alone; within: gaps (m) that count as closed.
    """
    the_robot(model)
    law = as_contact(contact)
    at, before = checked(model, "q", q, model.nq), checked(model, "v", v, model.nv)
    if at.ndim != 1 or before.ndim != 1:
        raise StateError("impact takes one state: q (nq) and v (nv)")
    if not 0.0 <= one_number(within) < math.inf:
        raise StateError(f"within {shown(within)} must be a length in m, not negative")
    check_quaternions([i for i, _ in model.layout.balls], model.coordinates, at[None])
    slots = HardSlots(model, law or Hard(points=(), pairs=False), law is not None, False)
    system, touching = _system(slots, at.tolist(), before.tolist(), within, law)
    g = np.linalg.norm(model.gravity) or 9.81
    links = [(slot.body, slot.other) for slot in slots.contact.slots]
    R, most = compliances(system, links, [label == LOOP for label in slots.labels])
    scale = max(number(system.speed), 1e-6 * float(np.sqrt(model.mass) * g))
    solver = HardSolver(model.nv, slots.contact.frictions, len(slots.labels), _RULES)
    weights = Weights(R, most, scale)
    state = solver.solve(
        system, weights, solver.start(before.tolist(), [0.0] * slots.rows, weights)
    )
    if state["failed"][0]:
        raise SimulationError(
            f"the impact of {model.name!r} has no solution to 1e-9: rows are missed by "
            f"{state['residual'][0]:.2g} m/s; contacts that contradict each other, or a very large "
            "ratio of masses"
        )
    return _answer(slots, system, touching, before, state)


def _system(
    slots: HardSlots, q: list[Any], v: list[Any], within: float, law: Hard | None
) -> tuple[System, list[Any]]:
    """M w = M v + J' g with the rows that touch, and the contacts at q."""
    model, contact = slots.model, slots.contact
    links = model.skeleton.coordinates(q, (1.0, 0.0, 0.0, 0.0))
    M = mass_matrix(tree_of(model), links)
    A = {(i, j): x for (i, j), x in M.entries.items() if j <= i}
    momentum = symmetric_times(A, v)
    touches = contact.touches(q)
    contacts = []
    for slot, touch, rows in zip(
        contact.slots, touches, contact.rows(touches, v, 1.0, 1.0), strict=True
    ):
        back = -slot.restitution * number(row_rate(rows.normal, v))
        least = max(back, 0.0) if number(touch.gap) <= within else _APART
        contacts.append(replace(rows, least=least))
    singles = []
    for row, label in zip(slots.singles(q, v, 1.0), slots.labels, strict=True):
        if label == LOOP:
            singles.append(SingleRow(row.entries, 0.0))
        elif label == DRY:
            singles.append(replace(row, low=0.0, high=0.0))
        else:  # its target is minus the gap
            singles.append(replace(row, target=0.0 if number(row.target) >= -within else _APART))
    speed = float(np.sqrt(max(number(dot(v, momentum)), 0.0)))
    inverses = [1.0 / A[k, k] for k in range(len(v))]
    return System(A, momentum, tuple(contacts), tuple(singles), speed, inverses), touches


def _answer(
    slots: HardSlots, system: System, touches: list[Any], before: Array, state: dict[str, list[Any]]
) -> Impact:
    model, contact = slots.model, slots.contact
    w, g = np.array(state["w"]), np.array(state["impulses"])
    impulses, modes = {}, {}
    for c, (name, touch) in enumerate(zip(contact.names, touches, strict=True)):
        mode = state["contact_modes"][c]
        if mode != OPEN:
            axes = np.array([[n.x, n.y, n.z] for n in touch.axes], dtype=np.float64)
            impulses[name] = g[3 * c : 3 * c + 3] @ axes
            modes[name] = "stick" if mode == STICK else "slide"
    rest = g[3 * contact.size :]
    labels = np.array(slots.labels)
    names = [
        model.coordinates[i] for i in [s[0] for s in slots.stopped] + [s[0] for s in slots.cones]
    ]
    stops = {n: float(x) for n, x in zip(names, rest[: len(names)], strict=True) if x > 0.0}
    mean = 0.5 * (w + before)
    rows = zip(system.rows, g, strict=True)
    heat = -sum(x * number(row_rate(row, mean.tolist())) for row, x in rows)
    return Impact(w, impulses, rest[labels == LOOP], stops, float(heat), modes)
