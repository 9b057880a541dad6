"""What the steps of hard contact hold: contacts, stops, dry friction and loops, one slot each."""

from __future__ import annotations

from typing import Final

import numpy as np

from ramify.contact.hard import Hard
from ramify.contact.hard_rows import RECOVERY, HardContact, least_speed
from ramify.contact.hard_system import SingleRow
from ramify.core.scalar import Scalar, Scalars, select
from ramify.drives.machine_forces import passive_text
from ramify.drives.rotation import direction_or_zero, log, smooth_length
from ramify.dynamics.closure import closures, constraint_count
from ramify.dynamics.constraint_kinematics import loop_constraints
from ramify.dynamics.motion import displacements
from ramify.dynamics.tree import tree_of
from ramify.model.robot import Robot
from ramify.runtime.cache_keys import digest

STOP, DRY, LOOP = "stop", "dry friction", "loop"
RECORDED: Final = ("passes", "residual", "step", "failed")
"""Of each step: passes of the solver, m/s by which rows are missed, its length (s), and how many
steps so far have not converged.
"""
LOSSES: Final = ("contact friction", "contact impact", STOP, DRY, LOOP)
"""Where impulses take energy."""


class HardSlots:
    """The slots of a robot under a law; ``stops``: its joints stop at their limits; ``passive``:
    dry friction acts.
    """

    def __init__(self, model: Robot, law: Hard, stops: bool, passive: bool) -> None:
        self.model, self.contact = model, HardContact(model, law)
        self.stopped = passive_text(model).limits if stops else ()
        elements = [e for joint in model.joints for e in joint.machine]
        self.cones = tuple(
            (i, j, elements[j].cone)
            for i, j in model.layout.balls
            if stops and elements[j].cone < np.inf
        )
        self._law = passive_text(model, False, passive)
        self.dry = tuple(j for j in range(model.nv) if self._law.dry_level(j, 0.0) is not None)

    @property
    def labels(self) -> list[str]:
        """The kind of every single row, in their order."""
        stops = len(self.stopped) + len(self.cones)
        return [STOP] * stops + [DRY] * len(self.dry) + [LOOP] * constraint_count(self.model)

    @property
    def rows(self) -> int:
        """The number of impulses."""
        return 3 * self.contact.size + len(self.labels)

    @property
    def recorded(self) -> int:
        """Numbers in y: impulses, the modes of the contacts, and what is recorded of each step."""
        return self.rows + self.contact.size + len(RECORDED)

    @property
    def fingerprint(self) -> str:
        """All that the slots add to what robot and passive forces say."""
        own = self.stopped, self.cones, self.dry, self._law.fingerprint
        return digest(self.contact.fingerprint, repr(own))

    def singles(self, q: Scalars, v: Scalars, h: Scalar) -> tuple[SingleRow, ...]:
        """Stops, dry friction and loops as rows of a step of h seconds."""
        rows: list[SingleRow] = []
        for i, j, low, high in self.stopped:
            below, above = q[i] - low, high - q[i]
            sign: Scalar = 1.0
            gap = below
            if not np.isfinite(low):
                sign, gap = -1.0, above
            elif np.isfinite(high):
                nearer = below < above
                sign, gap = select(nearer, 1.0, -1.0), select(nearer, below, above)
            rows.append(SingleRow({j: sign}, least_speed(gap, h), low=0.0))
        for i, j, cone in self.cones:
            angle = log(q[i : i + 4])
            turned = smooth_length(angle)
            axis = direction_or_zero(angle, turned)
            entries = {j + k: -x for k, x in enumerate((axis.x, axis.y, axis.z))}
            rows.append(SingleRow(entries, least_speed(cone - turned, h), low=0.0))
        for j in self.dry:
            level = self._law.dry_level(j, v[j])
            assert level is not None
            rows.append(SingleRow({j: 1.0}, 0.0, low=-h * level[0], high=h * level[1]))
        return (*rows, *self._loops(q, h))

    def _loops(self, q: Scalars, h: Scalar) -> list[SingleRow]:
        if not self.model.loops:
            return []
        tree = tree_of(self.model)
        own = self.model.skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0))
        rows = []
        for row in loop_constraints(
            tree, closures(self.model), own, displacements(tree, own), None
        ):
            speed = -row.value / h
            speed = select(speed < -RECOVERY, -RECOVERY, speed)
            rows.append(SingleRow(row.entries, select(speed > RECOVERY, RECOVERY, speed)))
        return rows
