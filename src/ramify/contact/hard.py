"""Hard contact: bodies do not enter the ground, and friction sticks. What a user may choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np

from ramify.contact.terrain import TERRAINS, Flat, Terrain
from ramify.core.errors import SimulationError, StateError
from ramify.core.records import settle
from ramify.documents.forms import NameList, NotedError, Number, Reading
from ramify.documents.kinds import OneOf, Registry, check_numbers, key
from ramify.documents.mistakes import Mistakes
from ramify.model.robot import Robot, the_robot

CONTACTS: Final[Registry[Hard]] = Registry("contact", key="law", optional=True)
"""Contact laws that are solved in every step, by their words."""


@CONTACTS.add("hard")
@dataclass(frozen=True, kw_only=True)
class Hard:
    """Signorini's and Coulomb's laws, solved exactly in every fixed step.

    friction: Coulomb's coefficient; restitution: of the normal velocity on touch, 0 to 1; terrain:
    the surface; points: names of the contact points that may touch, None for all of the model's;
    tolerance (m/s): by how much a contact, a stop or a loop may miss its velocity in a step, in
    motion (at rest impulses decide, and it is many times less); iterations: passes of Newton's
    method at most in a step.
    """

    friction: float = field(default=0.8, metadata=key(Number(least=0.0)))
    restitution: float = field(default=0.0, metadata=key(Number(least=0.0)))
    terrain: Terrain = field(default_factory=Flat, metadata=key(OneOf(TERRAINS)))
    points: Any = field(default=None, metadata=key(NameList()))
    tolerance: float = field(default=1e-4, metadata=key(Number(above=0.0), unit="m/s"))
    iterations: int = field(default=60, metadata=key(Number(least=1.0, whole=True)))

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.restitution > 1.0:
            raise StateError(f"Hard: restitution {self.restitution:g} must be between 0 and 1")
        if not isinstance(self.terrain, Terrain):
            raise StateError(
                "terrain must be a terrain of rf.contact such as Flat() or Slope(); it is "
                f"{self.terrain!r}"
            )
        if self.points is not None:
            listed = [self.points] if isinstance(self.points, str) else self.points
            if not isinstance(listed, Sequence) or not all(isinstance(n, str) for n in listed):
                raise StateError(
                    f"points must be a list of names, or None for all; it is {self.points!r}"
                )
            settle(self, points=tuple(listed))

    def fitted(self, model: Robot) -> Self:
        """With the terrain's upward direction against the robot's gravity."""
        the_robot(model)
        g = np.array(model.gravity)
        length = float(np.linalg.norm(g))
        up = tuple(float(x) for x in -g / length) if length > 0.0 else self.terrain.axes[2]
        return replace(self, terrain=self.terrain.fitted(up))

    def described(self) -> Mapping[str, Any]:
        """The mapping that gives this contact again."""
        document: Mapping[str, Any] = CONTACTS.write(self)
        return document


def as_contact(contact: Any) -> Hard | None:
    """The contact that a user means: None, "hard", a Hard, a mapping as in scenario files, or its
    text. Raises SimulationError or ModelError naming what is wrong.
    """
    if contact is None or isinstance(contact, Hard):
        return contact
    if not isinstance(contact, (str, Mapping)):
        raise SimulationError(
            f'contact must be "hard", a rf.contact.Hard(…) or a mapping; it is {contact!r}'
        )
    mistakes = Mistakes("contact")
    raw: object = contact
    if isinstance(contact, str) and (contact.lstrip().startswith("{") or ":" in contact):
        from ramify.documents.yaml_text import parse  # the YAML library is heavy

        raw = parse(contact, mistakes, "a contact is a word or a mapping such as {law: hard}")
    else:
        mistakes.with_positions = False
    mistakes.root = raw
    law: Hard | None = None
    with suppress(NotedError):
        law = CONTACTS.read(raw, (), Reading(mistakes))
    mistakes.raise_if_any()
    return law
