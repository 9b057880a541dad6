"""What a robot is made of: bodies on joints, parents first, and their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, Literal, Self, TypeVar

from numpy.typing import ArrayLike

from ramify.core.arrays import Array, constant
from ramify.core.cached import Memo, cached_property
from ramify.core.errors import ModelError, about
from ramify.core.messages import near, shown
from ramify.core.names import one_of
from ramify.model import configuration
from ramify.model.answers import Attachment, NamedFrames
from ramify.model.body import Body
from ramify.model.collisions import (
    WORLD,
    Collisions,
    ShapePlace,
    refuse_surfaces,
    refuse_upside_down,
    shape_places,
)
from ramify.model.joint import Joint
from ramify.model.loop import Loop, check_loops
from ramify.model.machine import ANY, Actuator, Keyframe, Machine, Tendon
from ramify.model.modules import Module, check_modules, find_modules
from ramify.model.skeleton import Skeleton, build_skeleton


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as data: what all other layers work on. Users hold it as ``ramify.Model``, which adds
    a method per question.

    ``attached`` maps every link's name, merged ones too, to its body and frame. ``gravity`` is an
    acceleration in the world frame. ``loops`` are the joints that close loops, ``guess``
    coordinates near which these are closed: see ``assemble``. ``machine``: frames, tendons,
    actuators and keyframes. ``collisions``: shapes of the world, and what collides with what.
    """

    name: str
    bodies: tuple[Body, ...]
    gravity: tuple[float, float, float]
    attached: Mapping[str, Attachment]
    module_groups: tuple[tuple[int, ...], ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    guess: Mapping[str, float] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    collisions: Collisions = field(default_factory=Collisions)

    def __post_init__(self) -> None:
        _ = self.modules  # given modules are checked at once
        if self.loops or self.guess:
            plain = [self.coordinates[i] for i in self.layout.plain_q]
            turns = [self.coordinates[i : i + 4] for i, _ in self.layout.balls]
            tendons = {t.name: [rate for rate, _ in t.joints] for t in self.tendons}
            check_loops(self.name, self.loops, self.guess, plain, turns, self.attached, tendons)
        self.machine.check(self.joints, self.velocities, self.frames)
        for body in self.bodies:
            refuse_surfaces(body.name, body.shapes)
        if self.collisions:
            refuse_upside_down(self.collisions.world, self.gravity)
            names = {x for place in self.shapes for x in (place.name, place.shape.name)}
            self.collisions.check([*self.attached, *sorted(names - {""}), WORLD])

    @classmethod
    def of(cls, robot: Robot) -> Self:
        """A robot as an instance of this class."""
        the_robot(robot)
        return robot if type(robot) is cls else cls(**robot.__getstate__())

    @cached_property
    def memo(self) -> Memo:
        """What upper layers have made for this robot, compiled kernels above all; copies start
        without.
        """
        return Memo()

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
        names = [body.name for body in self.bodies]
        with about("modules"):
            return check_modules(self.module_groups, self.parents, names)

    @property
    def module_numbers(self) -> tuple[int, ...]:
        """The module of every body as the book counts them: from 1, a floating base being 0."""
        floating = self.bodies[0].joint.floating and self.parents.count(-1) == 1
        later = 1 - (floating and len(self.modules[0].bodies) == 1)
        own = enumerate(module_of(self))
        return tuple(0 if floating and b == 0 else module + later for b, module in own)

    @cached_property
    def shapes(self) -> tuple[ShapePlace, ...]:
        """All shapes, those of the world last: the name of each, its body (-1: the world), and the
        shape.
        """
        links = [(body.name, body.shapes) for body in self.bodies]
        return shape_places(links, self.collisions.world)

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
        """The places of plain entries and of quaternions in q and v."""
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

    @cached_property
    def armature(self) -> Array:
        """Reflected inertia of the rotors (nv), kg m^2 or kg."""
        return constant([x for joint in self.joints for x in joint.armature])

    @cached_property
    def lower(self) -> Array:
        """The lower limits of the coordinates (nq), rad or m; -infinity where there is none."""
        return self._limits[:, 0]

    @cached_property
    def upper(self) -> Array:
        """The upper limits of the coordinates (nq), rad or m; infinity where there is none."""
        return self._limits[:, 1]

    @property
    def _limits(self) -> Array:
        pairs = [pair for joint in self.joints for pair in joint.limits or [ANY] * joint.nq]
        return constant(pairs).reshape(-1, 2)

    @cached_property
    def effort(self) -> Array:
        """The most that each drive can give (nv), N m or N; infinity where that is not known."""
        return constant([element.effort for joint in self.joints for element in joint.machine])

    @cached_property
    def rated_velocity(self) -> Array:
        """The rated speeds (nv), rad/s or m/s; infinity where there is none."""
        return constant([element.velocity for joint in self.joints for element in joint.machine])

    @property
    def frames(self) -> Mapping[str, Attachment]:
        """Every named frame: links, merged ones too, and the frames of the machine."""
        return NamedFrames(
            {**self.machine.frames, **self.attached}, [body.name for body in self.bodies]
        )

    @property
    def tendons(self) -> tuple[Tendon, ...]:
        return self.machine.tendons

    @property
    def actuators(self) -> tuple[Actuator, ...]:
        return self.machine.actuators

    @property
    def keyframes(self) -> tuple[Keyframe, ...]:
        return self.machine.keyframes

    @cached_property
    def tree(self) -> Self:
        """The robot with its loops opened."""
        return replace(self, loops=(), guess={}) if self.loops else self

    # ---- states ----

    def neutral(self) -> Array:
        """q (nq): every joint at zero, every quaternion at one."""
        return configuration.neutral(self)

    def random(self, seed: int = 0) -> tuple[Array, Array]:
        """(q, v): a repeatable random state; q within the limits where there are some, else within
        +-pi or +-1 m. Gears (mimic joints) and couplings of joints are honoured; other loops are
        not closed: see ``assemble``.
        """
        return configuration.random(self, seed)

    def integrate(self, q: ArrayLike, v: ArrayLike, dt: float) -> Array:
        """The configuration (..., nq) after moving with constant v for the time dt."""
        return configuration.integrate(self, q, v, dt)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The velocity (..., nv) that takes q0 to q1 in unit time."""
        return configuration.difference(self, q0, q1)

    # ---- parts by name ----

    def body(self, name: str) -> Body:
        """The body of that name."""
        return self.bodies[self.body_index(name)]

    def body_index(self, name: str) -> int:
        """Index of the body of that name; ModelError where there is none."""
        names = [body.name for body in self.bodies]
        if isinstance(name, str) and name in names:
            return names.index(name)
        some = ", ".join(names[:20])
        raise ModelError(f"{self.name} has no moving body {shown(name)}; its bodies are {some}")

    def attachment(self, link: str) -> Attachment:
        """Body and frame of a link, also of one merged into its parent by a fixed joint, or of a
        named frame.
        """
        try:
            return self.attached[link] if link in self.attached else self.machine.frames[link]
        except (KeyError, TypeError):  # also what is no key at all, such as a list
            names = [*self.machine.frames, *self.attached]
            if not isinstance(link, str):
                raise ModelError(
                    f"{self.name}: give one link or frame by its name, as a text; got {shown(link)}"
                ) from None
            raise ModelError(
                f"{self.name} has no link or frame {shown(link)}{near(str(link), names)}"
            ) from None

    def joint(self, name: str) -> Joint:
        """The joint of that name."""
        for joint in self.joints:
            if isinstance(name, str) and joint.name == name:
                return joint
        some = ", ".join(joint.name for joint in self.joints[:20])
        raise ModelError(f"{self.name} has no joint {shown(name)}; its joints are {some}")

    def joint_slice(self, name: str, of: Literal["q", "v"] = "v") -> slice:
        """The places of a joint's entries in v (or in q)."""
        one_of("of", of, ("q", "v"), ModelError)
        wanted, start = self.joint(name), 0
        for joint in self.joints:
            size = joint.dof if of == "v" else joint.nq
            if joint is wanted:
                break
            start += size
        return slice(start, start + size)


def module_of(robot: Robot) -> list[int]:
    """The index of the module of every body."""
    found = {b: module.index for module in robot.modules for b in module.bodies}
    return [found[b] for b in range(len(robot.bodies))]


def joint_entries(robot: Robot, joint: str, of: Literal["q", "v"] = "v") -> range:
    """The places of a joint's entries in v (or in q), one by one."""
    return range(robot.nv if of == "v" else robot.nq)[robot.joint_slice(joint, of)]


def the_robot(value: object) -> None:
    """Refuse what is not a robot where one is expected, such as its name."""
    if not isinstance(value, Robot):
        raise ModelError(f"give a model, such as rf.load('kuka_kr5'); got {shown(value)}")


T = TypeVar("T")


def once(ask: Callable[[Robot], T]) -> Callable[[Robot], T]:
    """A question about a robot that is answered once for each, and forgotten with it."""
    key = f"{ask.__module__}.{ask.__qualname__}"

    @wraps(ask)
    def answer(robot: Robot) -> T:
        return robot.memo.remember(key, lambda: ask(robot))

    return answer


def known_answer(robot: Robot, ask: Callable[[Robot], T], answer: T) -> None:
    """Settle what a question of ``once`` will answer for a robot."""
    robot.memo[f"{ask.__module__}.{ask.__qualname__}"] = answer
