"""Robots as users make them: every way ends in a ``Model``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Final, ParamSpec, Self

import numpy as np
from numpy.typing import ArrayLike

from ramify.api.model import Model
from ramify.core.arrays import finite_number, flag, real, refuse_masks
from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.core.names import a_text
from ramify.documents.forms import Reading
from ramify.documents.mistakes import Mistakes
from ramify.files import load as files
from ramify.files.formats import imported_function
from ramify.files.link_reader import ANGULAR
from ramify.loops.given_values import quaternion_of
from ramify.model import dh
from ramify.model.build import (
    EARTH,
    LinkSpec,
    axis_of,
    build,
    loop_between,
    point_of,
    tensor_of,
    understood,
)
from ramify.model.elements import elements_of
from ramify.model.frame import as_frame
from ramify.model.joint import Joint, limit_pairs
from ramify.model.loop import Loop, between_bodies
from ramify.model.mechanism import WholeJoint, end_of, guess_without, opened, spanned
from ramify.model.mechanism_graph import SpanningTree
from ramify.model.robot import Robot
from ramify.model.shape import Shape

P = ParamSpec("P")


def as_model(make: Callable[P, Robot]) -> Callable[P, Model]:
    """``make`` with a ``Model`` in place of the robot that it returns."""

    @wraps(make)
    def make_model(*args: P.args, **options: P.kwargs) -> Model:
        return Model.of(make(*args, **options))

    make_model.__annotations__ = {**make_model.__annotations__, "return": "Model"}
    return make_model


load = as_model(files.load)
load_named = as_model(files.load_named)
from_dh = as_model(dh.from_dh)


class _Guessing:
    """What both builders have: a name, gravity, coordinates near which loops are closed, and what a
    robot has besides bodies and joints.
    """

    def __init__(self, name: str, gravity: Sequence[float]) -> None:
        self.name, self.gravity = name, gravity
        self.guess: dict[str, float] = {}
        self._machine: dict[str, list[Mapping[str, Any]]] = {}

    def frame(self, name: str, link: str | None = None, at: Any = (0.0, 0.0, 0.0)) -> Self:
        """Add a named frame ``at`` a Frame, 4 x 4 matrix or offset in the frame of a link, None:
        of the base.
        """
        with understood(f"frame {name!r}"):
            made = as_frame(at)
        place = {"xyz": made.position.tolist(), "rotation": made.rotation.tolist()}
        return self._add("frames", name=name, **({} if link is None else {"link": link}), **place)

    def tendon(self, name: str, **keys: Any) -> Self:
        """Add a tendon by the keys of robot files: joints or frames, stiffness, damping, rest,
        effort.
        """
        return self._add("tendons", name=name, **keys)

    def actuator(self, name: str, **keys: Any) -> Self:
        """Add an actuator by the keys of robot files: kind, joint or tendon or site, gear, kp, …"""
        return self._add("actuators", name=name, **keys)

    def keyframe(self, name: str, q: Sequence[float], **keys: Any) -> Self:
        """Add a named state: q (nq), and v (nv), command, activation, time."""
        return self._add("keyframes", name=name, q=q, **keys)

    def _add(self, where: str, /, **keys: Any) -> Self:
        self._machine.setdefault(where, []).append({k: _listed(x) for k, x in keys.items()})
        return self

    def _equipped(self, robot: Robot, loops: Sequence[Loop] = ()) -> Model:
        """The robot with its machine, and all its loops; ModelError lists all that is wrong."""
        loops = tuple(loops) or robot.loops
        if not self._machine:
            return Model.of(replace(robot, loops=loops))
        reading = Reading(Mistakes(self.name, with_positions=False))
        read = imported_function("ramify.files.machine_reader:read_machine")
        machine = read(self._machine, robot, reading)
        reading.mistakes.raise_if_any()
        return Model.of(replace(robot, loops=loops, machine=machine))

    def near(self, **coordinates: ArrayLike) -> Self:
        """Coordinates near which the loops are closed, by name: where ``assemble`` starts. The
        orientation of a ball or free joint goes under the joint's name: a unit quaternion (4,), w
        first, or a rotation matrix (3, 3).
        """
        for name, value in coordinates.items():
            numbers = real(f"near: {name}", value, ModelError)
            if numbers.shape:
                turn = quaternion_of(f"near: the orientation {name}", numbers, ModelError)
                parts = zip(("qw", "qx", "qy", "qz"), turn.tolist(), strict=True)
                self.guess.update({f"{name}.{part}": x for part, x in parts})
                continue
            if not np.isfinite(numbers):
                raise ModelError(f"near: {name} must be a finite number; got {shown(value)}")
            self.guess[name] = float(numbers)
        return self


class Builder(_Guessing):
    """A tree, link by link.

    ::

        robot = rf.Builder("gripper")
        robot.link("palm", joint="revolute", mass=0.4, com=(0.05, 0, 0), inertia=(0, 3e-4, 3e-4))
        robot.link("finger", parent="palm", joint="revolute", at=(0.1, 0, 0), mass=0.2)
        model = robot.model()
    """

    def __init__(self, name: str, gravity: Sequence[float] = EARTH) -> None:
        super().__init__(name, gravity)
        self.links: list[LinkSpec] = []
        self.loops: list[Loop] = []

    def link(
        self,
        name: str,
        parent: str | None = None,
        joint: str = "revolute",
        *,
        at: Any = (0.0, 0.0, 0.0),
        axis: Sequence[float] = (0.0, 0.0, 1.0),
        sequence: str = "",
        pitch: float = 0.0,
        outlet: Any = (0.0, 0.0, 0.0),
        mass: float = 0.0,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        inertia: Any = (0.0, 0.0, 0.0),
        limits: Sequence[tuple[float, float]] | tuple[float, float] | None = (),
        actuated: bool = True,
        joint_name: str = "",
        shapes: Sequence[Shape | Mapping[str, Any]] = (),
        points: Mapping[str, Sequence[float]] | None = None,
        gravity_compensation: float = 0.0,
        **machine: object,
    ) -> Self:
        """Add a link on a joint placed ``at`` a Frame, 4 x 4 matrix or offset (m) in the parent's
        frame. Returns the builder.

        name of the link, joint_name of its joint (the link's by default); parent None: the base.
        joint: a type such as "revolute", "prismatic", "ball", "free", with its axis (3), sequence
        of Euler angles or pitch (m/rad). outlet: the link's frame in the moved joint's. mass in
        kg; com (3) in m; inertia about it, three moments or 3 x 3, in kg m^2. limits: (lower,
        upper), rad or m, or a list with one such pair per coordinate; limits_deg in degrees
        instead. actuated: whether
        controllers drive it. shapes to draw, as in robot files: [{"capsule": [0.03, 0.5], "xyz":
        [0, 0, 0.25]}]; points of contact {name: (3,)} in m.
        gravity_compensation: the share of the link's weight that is carried.

        machine: what the joint has besides, by the keys of robot files: armature, rotor, damping,
        spring, friction, stop, effort, velocity; a list has one entry per coordinate.
        """
        with understood(f"link {name!r}"):
            limits = _limits(joint, limits, machine)
            link_joint = Joint(
                joint_name or name,
                joint,
                as_frame(at),
                as_frame(outlet),
                axis_of(name, axis),
                sequence,
                pitch,
                limits,
                flag(f"link {name!r}: actuated", actuated, ModelError),
            )
            elements = elements_of(
                f"link {name!r}", link_joint.dof, machine, ("limits", "limits_deg")
            )
            link_joint = replace(link_joint, elements=elements)
            spec = _spec(name, parent, link_joint, mass, com, inertia, shapes, points)
            share = float(real("gravity_compensation", gravity_compensation, ModelError))
            if not np.isfinite(share):
                raise ModelError(f"link {name!r}: gravity_compensation {share} must be finite")
            x, y, z = map(float, spec.com)
            self.links.append(replace(spec, lift=(share * spec.mass, (x, y, z))) if share else spec)
        return self

    def loop(
        self,
        name: str,
        joint: str = "revolute",
        first: tuple[str | None, Any] = (None, (0.0, 0.0, 0.0)),
        second: tuple[str | None, Any] = (None, (0.0, 0.0, 0.0)),
        **options: Any,
    ) -> Self:
        """Close a loop of that name by a joint between two frames, first and second, each (link,
        Frame or matrix or offset in m), the link None for the base.

        options are those of ``ramify.model.loop.Loop``: axis, sequence, planar, length; joints,
        ratio, offset of a gear; joints or tendons, curve of a coupling.
        """
        self.loops.append(loop_between(name, joint, first, second, options))
        return self

    def model(self) -> Model:
        """The finished, checked model."""
        loops = between_bodies(self.loops)
        robot = build(self.name, self.links, self.gravity, loops=loops, guess=self.guess)
        return self._equipped(robot, self.loops)


_OF_JOINT: Final = ("axis", "sequence", "pitch", "limits", "actuated", "planar")


def _limits(
    kind: str, limits: Sequence[Any] | None, options: dict[str, Any]
) -> tuple[tuple[float, float], ...]:
    """The limits of a joint, or ``limits_deg`` of its options, which is taken out."""
    refuse_masks("limits", limits, ModelError)
    degrees = options.pop("limits_deg", None)
    if degrees is None:
        return () if limits is None else limit_pairs(limits)
    if limits:
        raise ModelError("limits and limits_deg exclude each other; give one")
    if kind not in ANGULAR:
        raise ModelError(f"limits_deg is for joints whose coordinates are angles, not for {kind}")
    refuse_masks("limits_deg", degrees, ModelError)
    return tuple((math.radians(a), math.radians(b)) for a, b in limit_pairs(degrees))


class Mechanism(_Guessing):
    """A closed system, body by body and joint by joint; ramify finds the tree.

    ::

        linkage = rf.Mechanism("four_bar", gravity=(0, -9.81, 0))
        linkage.body("crank", mass=1.5, com=(0.019, 0, 0), inertia=(1e-5, 2e-4, 2e-4))
        ...
        linkage.joint("pivot", None, "crank")
        linkage.joint("pin", ("crank", (0.038, 0, 0)), "coupler", actuated=False)
        ...
        model = linkage.model()
    """

    def __init__(self, name: str, gravity: Sequence[float] = EARTH) -> None:
        super().__init__(name, gravity)
        self.bodies: list[LinkSpec] = []
        self.joints: list[WholeJoint] = []

    def body(
        self,
        name: str,
        *,
        mass: float = 0.0,
        com: Sequence[float] = (0.0, 0.0, 0.0),
        inertia: Any = (0.0, 0.0, 0.0),
        shapes: Sequence[Shape | Mapping[str, Any]] = (),
        points: Mapping[str, Sequence[float]] | None = None,
    ) -> Self:
        """Add a body of that name: mass in kg, com in m, inertia about it in kg m^2 (three moments
        or 3 x 3), shapes to draw (as in robot files), points of contact {name: (3,)} in m. Returns
        the mechanism.
        """
        with understood(f"body {name!r}"):
            fixed = Joint(name, "fixed")
            self.bodies.append(_spec(name, None, fixed, mass, com, inertia, shapes, points))
        return self

    def joint(
        self, name: str, first: Any, second: Any, kind: str = "revolute", **options: Any
    ) -> Self:
        """Add a joint between two ends, first and second: a body's name (None: the base), or (body,
        frame or offset in m). kind: its type, as in ``Builder.link``. Returns the mechanism.

        options: axis, sequence, pitch, limits or limits_deg, actuated (by default True), planar;
        of the machine: armature, rotor, damping, spring, friction, stop, effort, velocity.
        """
        with understood(f"joint {name!r}"):
            if "axis" in options:
                refuse_masks("axis", options["axis"], ModelError)
                options["axis"] = tuple(options["axis"])
            options["limits"] = _limits(kind, options.pop("limits", None), options)
            given = {key: options.pop(key) for key in _OF_JOINT if key in options}
            made = WholeJoint(name, kind, end_of(first), end_of(second), **given)
            known = (*_OF_JOINT, "limits_deg")
            own = elements_of(f"joint {name!r}", made.edge.dof, options, known)
            self.joints.append(replace(made, elements=own))
        return self

    def spanning_tree(self, cut: Sequence[str] | None = None) -> SpanningTree:
        """The tree and the joints to cut, before a model is made."""
        return spanned([spec.name for spec in self.bodies], self.joints, cut)

    def model(self, cut: Sequence[str] | None = None) -> Model:
        """The finished, checked model; cut names the joints to cut, by default those of minimum
        cumulative degree of freedom. One with limits, friction, a drive or the like keeps its
        coordinate: its body is split instead, into halves that a loop joins.
        """
        links, loops = opened(self.bodies, self.joints, cut)
        guess = guess_without(self.guess, loops)
        return self._equipped(build(self.name, links, self.gravity, loops=loops, guess=guess))


def _listed(value: Any) -> Any:
    """A value as files have it: tuples and arrays are lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _listed(x) for key, x in value.items()}
    return [_listed(x) for x in value] if isinstance(value, (tuple, list)) else value


def _spec(
    name: str,
    parent: str | None,
    joint: Joint,
    mass: float,
    com: Sequence[float],
    inertia: Any,
    shapes: Sequence[Shape | Mapping[str, Any]],
    points: Mapping[str, Sequence[float]] | None,
) -> LinkSpec:
    """A link from the values of ``Builder.link`` and ``Mechanism.body``."""
    named = tuple((key, point_of(point)) for key, point in (points or {}).items())
    centre = real("com", com, ModelError)
    drawn = tuple(
        shape
        if isinstance(shape, Shape)
        else imported_function("ramify.files.shape_schema:shape_of")(_listed(shape))
        for shape in shapes
    )
    a_text(f"link {name!r}: parent", parent, ModelError)
    weight = finite_number("mass", mass, "kg", ModelError)
    return LinkSpec(name, parent, joint, weight, centre, tensor_of(inertia), drawn, named)
