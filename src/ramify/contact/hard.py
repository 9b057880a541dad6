"""Hard contact: bodies do not enter the ground, and friction sticks. What a user may choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from ramify.contact.ground import upward
from ramify.contact.law_reader import law_of_argument, law_of_part
from ramify.contact.terrain import TERRAINS, Terrain
from ramify.core.errors import SimulationError, StateError
from ramify.core.records import settle
from ramify.documents.forms import Flag, NameList, Number
from ramify.documents.kinds import OneOf, Registry, check_numbers, key
from ramify.model.robot import Robot

CONTACTS: Final[Registry[Hard]] = Registry("contact", key="law", optional=True)
"""Contact laws that are solved in every step, by their words."""


@CONTACTS.add("hard")
@dataclass(frozen=True, kw_only=True)
class Hard:
    """Signorini's and Coulomb's laws, solved exactly in every fixed step.

    friction: Coulomb's coefficient everywhere, None for those of the shapes (0.7 at contact
    points); restitution: of the normal velocity on touch, 0 to 1, None for that of the shapes;
    terrain: the ground, None for the planes and height fields of the robot's world, or where it has
    none a level plane at height 0; points: names of the contact points and shapes that may touch
    it, None for all, [] for none; pairs: whether shapes that collide touch each other; tolerance
    (m/s): by how much a contact may miss its velocity in a step, in motion (at rest impulses
    decide, and it is many times less); below 1e-4 impulses are as much closer; iterations: passes
    of Newton's method at most in a step.
    """

    friction: float | None = field(default=None, metadata=key(Number(least=0.0)))
    restitution: float | None = field(default=None, metadata=key(Number(least=0.0)))
    terrain: Terrain | None = field(default=None, metadata=key(OneOf(TERRAINS)))
    points: Any = field(default=None, metadata=key(NameList()))
    pairs: bool = field(default=True, metadata=key(Flag()))
    tolerance: float = field(default=1e-4, metadata=key(Number(above=0.0), unit="m/s"))
    iterations: int = field(default=60, metadata=key(Number(least=1.0, whole=True)))

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.restitution is not None and self.restitution > 1.0:
            raise StateError(f"Hard: restitution {self.restitution:g} must be between 0 and 1")
        if not isinstance(self.pairs, bool):
            raise StateError(f"Hard: pairs {self.pairs!r} must be True or False")
        if self.terrain is not None and not isinstance(self.terrain, Terrain):
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
        if self.terrain is None:
            return self
        return replace(self, terrain=self.terrain.fitted(upward(model, self.terrain)))

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
    return law_of_argument(
        "contact", contact, "{law: hard}",
        lambda raw, reading: law_of_part(CONTACTS, raw, (), reading),
    )  # fmt: skip
