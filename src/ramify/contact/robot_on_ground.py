"""A robot on a ground, as texts over any scalar and as kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ramify.contact.ground import Ground, Reaction
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError, RamifyError
from ramify.core.messages import near, shown
from ramify.core.records import flatten, ships_with_ramify
from ramify.core.scalar import Scalar, Scalars
from ramify.core.spatial import Vec3
from ramify.dynamics.contact_points import contact_dynamics, contact_wrenches
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
    every link those in its frame. q has ``nq`` entries, v and tau ``nv``.
    """

    def __init__(self, model: Robot, ground: Ground) -> None:
        self.model, self.ground = model, ground.fitted(model)
        chosen = chosen_points(model, ground.points)
        self.names = tuple(name for name, _, _ in chosen)
        self.bodies = tuple(model.bodies[b].name for _, b, _ in chosen)
        self.places = tuple(place for _, _, place in chosen)
        links: list[list[Vec3]] = [[] for _ in model.skeleton.links]
        for _, b, place in chosen:
            k = model.skeleton.last[b]
            links[k].append(model.skeleton.links[k].seat.point(Vec3(*place)))
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
            self._tree, *self._columns(q, v), list(tau), self.points, self.ground.reaction
        )
        return list(a), [r for rs in felt for r in rs]

    def reactions(self, q: Scalars, v: Scalars) -> tuple[list[Vec3], list[Reaction], list[Scalar]]:
        """(places, reactions, wrenches): the place of every point and the reaction at it; of every
        link [n; f], 6 nv in all, as forward_dynamics_wrenches takes them: at the body's origin, in
        the axes of the world.
        """
        moving, felt, wrenches = contact_wrenches(
            self._tree, *self._columns(q, v), self.points, self.ground.reaction
        )
        return (
            [p for items in moving for p, _ in items],
            [r for rs in felt for r in rs],
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


def chosen_points(
    model: Robot, selected: Sequence[str] | None
) -> list[tuple[str, int, tuple[float, float, float]]]:
    """(name, body, place in its frame) of the points that touch, all or those with the selected
    names; a name that two bodies share is preceded by its body.
    """
    bodies = enumerate(model.bodies)
    points = [(name, b, place) for b, body in bodies for name, place in body.points]
    if not points:
        raise ModelError(
            f"{model.name} has no contact points; give its links some: rf.with_contact_points, or "
            "points: in its file"
        )
    counts = Counter(name for name, _, _ in points)
    named = [
        (name if counts[name] == 1 else f"{model.bodies[b].name}.{name}", b, place)
        for name, b, place in points
    ]
    if selected is None:
        return named
    names = {name for name, _, _ in named}
    for name in selected:
        if name not in names:
            raise ModelError(
                f"{model.name} has no contact point {name!r}{near(str(name), sorted(names))}"
            )
    if not selected:
        raise ModelError("points is empty; name some, or leave it out for all")
    return [point for point in named if point[0] in selected]
