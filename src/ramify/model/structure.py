"""What a robot is made of: bodies on joints, parents first, and their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from ramify.errors import ModelError
from ramify.model import configuration
from ramify.model.answers import Attachment
from ramify.model.body import Body
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.modules import Module, check_modules, find_modules
from ramify.model.skeleton import Skeleton, build_skeleton


@dataclass(frozen=True, eq=False)
class Structure:
    """What a robot is made of.

    ``attached`` maps every link's name, merged ones too, to its body and frame. ``gravity`` is an acceleration in the world frame.
    ``loops`` are the joints that close loops, ``guess`` coordinates near which these are closed: see ``assemble``.
    """

    name: str
    bodies: tuple[Body, ...]
    gravity: tuple[float, float, float]
    attached: Mapping[str, Attachment]
    module_groups: tuple[tuple[int, ...], ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    guess: Mapping[str, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles carry the robot, not its compiled kernels."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    # ---- what it is made of ----

    @property
    def joints(self) -> tuple[Joint, ...]:
        return tuple(body.joint for body in self.bodies)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        return tuple(body.parent for body in self.bodies)

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """Kinematic modules (section 4.1): found, or as given."""
        if self.module_groups is None:
            return find_modules(self.parents)
        return check_modules(self.module_groups, self.parents, [body.name for body in self.bodies])

    @cached_property
    def skeleton(self) -> Skeleton:
        """The links in Denavit-Hartenberg frames on which the recursions run."""
        return build_skeleton(self.bodies)

    @cached_property
    def nv(self) -> int:
        """Number of velocities."""
        return sum(body.joint.dof for body in self.bodies)

    @cached_property
    def nq(self) -> int:
        """Number of coordinates: one more than velocities for every quaternion."""
        return sum(body.joint.nq for body in self.bodies)

    @cached_property
    def layout(self) -> configuration.Layout:
        """Where plain entries and quaternions stand in q and v."""
        return configuration.layout(self)

    @cached_property
    def mass(self) -> float:
        """Mass of all moving bodies, kg."""
        return sum(body.mass for body in self.bodies)

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """A name per entry of q."""
        return tuple(name for joint in self.joints for name in joint.coordinates)

    @cached_property
    def velocities(self) -> tuple[str, ...]:
        """A name per entry of v."""
        return tuple(name for joint in self.joints for name in joint.velocities)

    def body(self, name: str) -> Body:
        """The body of that name."""
        return self.bodies[self.body_index(name)]

    def body_index(self, name: str) -> int:
        """Index of the body of that name; ModelError where there is none."""
        for i, body in enumerate(self.bodies):
            if body.name == name:
                return i
        raise ModelError(f"{self.name} has no moving body {name!r}; its bodies are {', '.join(b.name for b in self.bodies[:20])}")

    def attachment(self, link: str) -> Attachment:
        """Body and frame of a link, also of one merged into its parent by a fixed joint."""
        try:
            return self.attached[link]
        except KeyError:
            raise ModelError(f"{self.name} has no link {link!r}; its links are {', '.join(list(self.attached)[:20])}") from None

    def joint(self, name: str) -> Joint:
        """The joint of that name."""
        for joint in self.joints:
            if joint.name == name:
                return joint
        raise ModelError(f"{self.name} has no joint {name!r}; its joints are {', '.join(j.name for j in self.joints[:20])}")

    def joint_slice(self, name: str, of: Literal["q", "v"] = "v") -> slice:
        """Where a joint's entries stand in v (or in q)."""
        start = 0
        for joint in self.joints:
            size = joint.dof if of == "v" else joint.nq
            if joint.name == name:
                return slice(start, start + size)
            start += size
        self.joint(name)
        raise AssertionError
