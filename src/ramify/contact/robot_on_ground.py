"""A robot on a ground, as texts over any scalar and as kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from ramify.contact.ground import Ground, Reaction
from ramify.contact.touching_points import touching_points
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.core.messages import shown
from ramify.core.records import flatten, ships_with_ramify
from ramify.core.scalar import Scalar, Scalars
from ramify.core.spatial import Vec3
from ramify.dynamics.contact_points import RoundPoint, contact_dynamics, contact_wrenches
from ramify.dynamics.tree import tree_of
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.text_kernel import text_kernel
from ramify.model.pivots import determined
from ramify.model.robot import Robot
from ramify.runtime.cache_keys import digest
from ramify.runtime.kernel import Kernel
from ramify.trace.program import Port, Program

What = Literal["contact_forces", "contact_dynamics"]


class ContactText:
    """The contact of a model with a ground that is fitted to it.

    ``names`` and ``bodies`` say which points touch, in the order of the bodies; ``points`` has for
    every link those in its frame, balls for those of spheres and capsules. q has ``nq`` entries, v
    and tau ``nv``.
    """

    def __init__(self, model: Robot, ground: Ground) -> None:
        self.model, self.ground = model, ground.fitted(model)
        chosen = touching_points(model, ground.points)
        self.names = tuple(point.name for point in chosen)
        self.bodies = tuple(model.bodies[point.body].name for point in chosen)
        self.places = tuple(point.place for point in chosen)
        links: list[list[Vec3 | RoundPoint]] = [[] for _ in model.skeleton.links]
        for point in chosen:
            k = model.skeleton.last[point.body]
            place = model.skeleton.links[k].seat.point(Vec3(*point.place))
            links[k].append(RoundPoint(place, point.radius) if point.radius else place)
        self.points = [tuple(points) for points in links]
        self._tree = tree_of(model)

    @property
    def size(self) -> int:
        """The number of points."""
        return len(self.names)

    @cached_property
    def fingerprint(self) -> str:
        """All that the contact adds to what the robot's own fingerprint says."""
        return digest(repr(self.ground), repr(self.points))

    def _columns(self, q: Scalars, v: Scalars) -> tuple[list[Any], list[Any]]:
        return self.model.skeleton.coordinates(list(q), (1.0, 0.0, 0.0, 0.0)), list(v)

    def forward_dynamics(
        self, q: Scalars, v: Scalars, tau: Scalars
    ) -> tuple[list[Scalar], list[Reaction]]:
        """(a, reactions): accelerations (nv) under joint forces tau and the ground; the ground's
        answer to every point.
        """
        a, felt = contact_dynamics(
            self._tree, *self._columns(q, v), list(tau), self.points, self.ground.reaction,
            self.ground.terrain.unit_normal,
        )  # fmt: skip
        return list(a), [r for rs in felt for r in rs]

    def reactions(self, q: Scalars, v: Scalars) -> tuple[list[Vec3], list[Reaction], list[Scalar]]:
        """(places, reactions, wrenches): the place of every point and the reaction at it; of every
        link [n; f], 6 nv in all, as forward_dynamics_wrenches takes them: at the body's origin, in
        the axes of the world.
        """
        moving, answers, wrenches = contact_wrenches(
            self._tree, *self._columns(q, v), self.points, self.ground.reaction,
            self.ground.terrain.unit_normal,
        )  # fmt: skip
        return (
            [p for items in moving for p, _ in items],
            [r for rs in answers for r in rs],
            flatten(list(wrenches)),
        )

    # ---- kernels ----

    def kernel(self, what: What, tier: str | None = None) -> Kernel:
        """A compiled function of this robot on this ground; see ``rf.contact.kernel``."""
        if not isinstance(what, str) or what not in _PORTS:
            raise RamifyError(
                f"there is no kernel {shown(what)} of a ground; choose one of {', '.join(_PORTS)}"
            )
        inputs = [Port("q", (self.model.nq,)), Port("v", (self.model.nv,))]
        inputs += [Port("tau", (self.model.nv,))] * (what == "contact_dynamics")
        outputs = [Port(name, shape) for name, shape in _PORTS[what](self.model.nv, self.size)]
        text = self._forces if what == "contact_forces" else self._dynamics

        def key(program: Callable[[], Program]) -> str:
            """A law written elsewhere may change while its repr does not."""
            own = self.fingerprint if ships_with_ramify(self.ground) else program().digest
            return digest(robot_key(self.model), own, what)

        return text_kernel(self.model, what, text, inputs, outputs, key, tier)

    @cached_property
    def forces(self) -> Kernel:
        """The kernel "contact_forces"."""
        return self.kernel("contact_forces")

    def _forces(self, q: Scalars, v: Scalars) -> list[list[Scalar]]:
        places, reactions, wrenches = self.reactions(q, v)
        return [
            flatten(places),
            flatten([r.force for r in reactions]),
            [r.depth for r in reactions],
            flatten([r.slip for r in reactions]),
            [r.stored for r in reactions],
            [r.loss for r in reactions],
            wrenches,
        ]

    def _dynamics(self, q: Scalars, v: Scalars, tau: Scalars) -> list[list[Scalar]]:
        with determined(self.model, "contact_dynamics"):
            a, felt = self.forward_dynamics(q, v, tau)
        return [a, flatten([r.force for r in felt])]


_PORTS: dict[str, Any] = {
    "contact_forces": lambda nv, n: (
        ("place", (n, 3)),
        ("force", (n, 3)),
        ("depth", (n,)),
        ("slip", (n, 3)),
        ("stored", (n,)),
        ("loss", (n,)),
        ("wrenches", (nv, 6)),
    ),
    "contact_dynamics": lambda nv, n: (("a", (nv,)), ("force", (n, 3))),
}
