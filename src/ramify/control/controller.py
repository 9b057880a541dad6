"""The base of controllers: a text that computes joint forces from the time, the state of the robot
and its own states.

A controller drives some coordinates of a robot; on all others it exerts nothing. Its law gives the
forces of the driven ones, the text puts them where they belong and limits them. Written over any
scalar, the same controller runs on floats, on batches of states, and inside a compiled right-hand
side.
"""

from __future__ import annotations

import math
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.grounds import as_ground
from ramify.contact.robot_on_ground import ContactText
from ramify.control.robot_text import RobotText, StillRobot
from ramify.control.sensors import SENSORS, Sensor, check_sensor
from ramify.core.arrays import Array, numbers, one_number, real, together, unknown_states
from ramify.core.errors import RamifyError, SimulationError, StateError
from ramify.core.messages import shown
from ramify.core.records import settle
from ramify.core.scalar import Scalar, Scalars, select
from ramify.documents.forms import NameList, Number, Numbers, Reading
from ramify.documents.kinds import OneOf, Registry, key
from ramify.documents.mistakes import Path
from ramify.kernels.robot_keys import robot_key
from ramify.kernels.text_kernel import text_kernel
from ramify.kernels.tier_policy import MAX_LINKS
from ramify.model.configuration import checked
from ramify.model.driven import Driven, joints_of
from ramify.model.robot import Robot, the_robot
from ramify.motion.coordinate_reader import about_robot
from ramify.motion.trajectory import Row, row, stacked
from ramify.runtime.cache_keys import digest
from ramify.runtime.kernel import Kernel
from ramify.runtime.target import llvm_available
from ramify.trace.program import Port, trace

ControlForces = tuple[list[Scalar], list[Scalar]]
"""Joint forces, and the rates of the controller's own states."""

CONTROLLERS: Final[Registry[Controller]] = Registry("controller", optional=True)
"""Controllers by their words: ``@CONTROLLERS.add("spring")`` above a dataclass adds one."""


@dataclass(frozen=True)
class JointNames(NameList):
    """Joints by name or index: one, or a list of them."""

    def read(self, raw: object, path: Path, reading: Reading) -> list[Any]:
        several = raw if isinstance(raw, list | tuple) else [raw]
        index = Number(least=0, whole=True)
        return [
            (index if isinstance(one, int) else self.of).read(one, (*path, i), reading)
            for i, one in enumerate(several)
        ]


ACTUATED: Final = key(JointNames())
LIMITS: Final = key(Numbers(single=True, of=Number(least=0.0, endless=True)), unit="N m or N")
RATE: Final = key(Number(above=0.0), unit="Hz")
SENSOR: Final = key(OneOf(SENSORS))
"""Metadata of the fields that all controllers have."""
GAINS: Final = Numbers(single=True, of=Number(least=0.0))
"""Form of gains: a number, or one per driven coordinate."""
STIFFNESS: Final = "N m/rad or N/m"
DAMPING: Final = "N m s/rad or N s/m"
"""Units of gains that turn errors and their rates into forces."""
COMPILED: Final = "compiled controllers"
"""The key in a robot's memo under which they are, by the identity of the controller."""
FEW: Final = 3
"""Calls for one robot that run on NumPy: compiling pays for more calls."""


@dataclass(frozen=True, kw_only=True)
class Controller(ABC):
    """Joint forces from time and state. A kind of controller is a frozen dataclass that writes
    ``law``.

    actuated: the joints it drives, by name or index; None: all that the model calls actuated, but
    never a free base. limits: largest absolute force, N m or N: a number, or one per driven
    coordinate, or (nv,); None or infinity: unlimited. rate_hz: None for a continuous law; a number
    for a sampled one, whose forces are constant between samples. sensor: through which it sees the
    robot; None: it knows the state. The fields that a kind adds are its keys in files, once it has
    a word in ``CONTROLLERS``.

    Its repr must say all that the law depends on: compiled code is cached under it.
    """

    actuated: Any = field(default=None, metadata=ACTUATED)
    limits: Any = field(default=None, metadata=LIMITS)
    rate_hz: float | None = field(default=None, metadata=RATE)
    sensor: Sensor | None = field(default=None, metadata=SENSOR)

    def __post_init__(self) -> None:
        """Check what is common to all; a kind that checks more calls this first."""
        if self.actuated is not None:
            one = isinstance(self.actuated, str | int)
            settle(self, actuated=(self.actuated,) if one else joints_of(self.actuated))
        if self.limits is not None:
            limits = row("limits", self.limits, finite=False)
            settle(self, limits=tuple(_limit(i, x) for i, x in enumerate(limits)))
        if self.rate_hz is not None and not 0.0 < one_number(self.rate_hz) < math.inf:
            raise StateError(
                f"rate_hz {shown(self.rate_hz)} must be finite and positive, or None for a "
                "continuous law"
            )
        if self.sensor is not None:
            check_sensor(self.sensor, self.rate_hz)

    def observation(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars
    ) -> tuple[Scalars, Scalars]:
        """(q, v) as the controller sees them."""
        return (q, v) if self.sensor is None else self.sensor.measured(robot, t, q, v)

    @abstractmethod
    def law(
        self, robot: RobotText, driven: Driven, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        """Forces of the driven coordinates, one each, and the rates of z."""

    @property
    def states(self) -> int:
        """Number of the controller's own states z, integrated with the robot's."""
        return 0

    @property
    def start(self) -> Row:
        """z at the start of a run."""
        return (0.0,) * self.states

    def state_count(self, robot: RobotText) -> int:
        """Number of states z for this robot and its ground: ``states``, whatever the robot."""
        return self.states

    def states_at_start(self, robot: RobotText, q: Scalars, v: Scalars) -> list[Scalar]:
        """z of a run that starts at q (nq), v (nv): ``start``, wherever it starts."""
        return list(self.start)

    @property
    def traceable(self) -> bool:
        """Whether the text can be compiled."""
        return True

    @property
    def prescribes(self) -> bool:
        """Whether it moves its coordinates itself instead of pushing them: see ``Prescribed``."""
        return False

    def driven(self, robot: RobotText) -> Driven:
        """The coordinates of the robot that it drives."""
        return robot.driven(self.actuated)

    def text(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars, z: Scalars
    ) -> ControlForces:
        """(tau, dz/dt): forces (nv), limited, zero where nothing is driven; rates of z. t in s; q
        (nq), v (nv), z (states).
        """
        chosen = self.driven(robot)
        forces, rates = self.law(robot, chosen, t, *self.observation(robot, t, q, v), z)
        limits = self.limits_of(robot, chosen)
        tau: list[Scalar] = [0.0] * robot.nv
        for j, force, limit in zip(chosen.v, forces, limits, strict=True):
            tau[j] = within_limit(force, limit)
        return tau, rates

    def limits_of(self, robot: RobotText, driven: Driven) -> Sequence[float]:
        """One limit per driven coordinate."""
        limits = (math.inf,) if self.limits is None else self.limits
        return spread("limits", limits, driven, robot)

    def torque(
        self,
        model: Robot,
        t: ArrayLike,
        q: ArrayLike,
        v: ArrayLike,
        z: ArrayLike | None = None,
        ground: Any = None,
    ) -> Array:
        """tau (..., nv), N m or N, at times t (...), s, and states q (..., nq), v (..., nv); z
        (..., states), or that of a run that starts there; ground: what the robot stands on, as for
        rf.simulate.

        A controller that is called repeatedly for one robot is compiled; a law that cannot be
        traced runs on NumPy. States of a batch with NaN are not known, and their tau is NaN. Raises
        StateError where shapes do not fit or any other number is not finite, and SimulationError
        where the controller gives one that is not.
        """
        if ground is None:
            try:
                uses = model.memo[COMPILED][id(self)]
                kernel = uses.kernel
            except (KeyError, AttributeError):
                kernel = None
            if kernel is None:
                the_robot(model)
                self._count_use(model)
            else:
                call = kernel.call  # looked up and called in one go it takes longer
                time = t if type(t) is float else real("t", t)[..., None]
                try:
                    if uses.start is not None:
                        return call(q, v, time, uses.start if z is None else z)
                    if z is None:
                        return call(q, v, time)
                except RamifyError:
                    pass  # the text says better what is wrong
        return self._torque_on_numpy(model, t, q, v, z, ground)

    def initial_states(self, model: Robot, q: ArrayLike, v: ArrayLike, ground: Any = None) -> Array:
        """z (..., states) of a run that starts at q (..., nq), v (..., nv); ground: what the robot
        stands on, as for rf.simulate. A controller without states gives (..., 0).

        States of a batch with NaN are not known, and their z is NaN. Raises StateError where shapes
        do not fit or any other number is not finite.
        """
        the_robot(model)
        robot = RobotText(model, _contact(model, ground))
        parts = [checked(model, "q", q, model.nq, True), checked(model, "v", v, model.nv, True)]
        batch = together(q=parts[0].shape[:-1], v=parts[1].shape[:-1])
        complete = ~np.broadcast_to(unknown_states(*parts), batch)
        if not complete.all():
            q, v = (np.broadcast_to(x, (*batch, x.shape[-1]))[complete] for x in parts)
            whole = np.full((*batch, self.state_count(robot)), np.nan)
            if complete.any():
                whole[complete] = self.initial_states(model, q, v, ground)
            return whole
        return stacked(self.states_at_start(robot, *_columns(parts, batch)), batch)

    def _count_use(self, robot: Robot) -> None:
        """Count a call for a robot; a controller that is called often is compiled, if possible. The
        kernel stays with the robot as long as the controller lives.
        """
        by_controller: dict[int, _Uses] = robot.memo.remember(COMPILED, dict)
        this = id(self)
        if this not in by_controller:
            by_controller[this] = _Uses(weakref.ref(self, lambda _: by_controller.pop(this, None)))
        uses = by_controller[this]
        uses.calls += 1
        if uses.calls == FEW:
            algorithms = RobotText(robot)
            same_everywhere = self.states == self.state_count(algorithms)
            uses.start = np.array(self.start) if self.states and same_everywhere else None
            uses.kernel = self._kernel(algorithms, uses.start is not None)

    def _kernel(self, algorithms: RobotText, takes_states: bool) -> Kernel | None:
        robot = algorithms.model
        if not self.traceable or not llvm_available() or len(robot.skeleton.links) > MAX_LINKS:
            return None
        alive = weakref.ref(self)  # the robot keeps the kernel alive, but must not the controller

        def text(q: Scalars, v: Scalars, t: Scalars, z: Scalars = ()) -> list[list[Scalar]]:
            law = alive()
            assert law is not None
            states = z if takes_states else law.states_at_start(algorithms, q, v)
            return [law.text(algorithms, t[0], q, v, states)[0]]

        inputs = [Port("q", (robot.nq,)), Port("v", (robot.nv,)), Port("t", (1,))]
        inputs += [Port("z", (self.states,))] if takes_states else []
        ports = inputs, [Port("tau", (robot.nv,))]
        try:
            program = trace("torque", text, *ports)
        except (TypeError, ValueError, AttributeError):  # a law that wants numbers, no expressions
            return None
        key = digest(robot_key(robot), program.digest)
        return text_kernel(robot, "torque", text, *ports, lambda _: key)

    def _torque_on_numpy(
        self, model: Robot, t: ArrayLike, q: ArrayLike, v: ArrayLike, z: ArrayLike | None,
        ground: Any,
    ) -> Array:  # fmt: skip
        times = real("t", t)
        if not (np.isfinite(times) | (np.isnan(times) & (times.ndim > 0))).all():
            raise StateError(f"t must be finite; got {times[~np.isfinite(times)][0]}")
        the_robot(model)
        robot = RobotText(model, _contact(model, ground))
        parts = [checked(model, "q", q, model.nq, True), checked(model, "v", v, model.nv, True)]
        if z is not None:
            parts.append(
                numbers("z", z, self.state_count(robot), type(self).__name__, unknown=True)
            )
        leads = dict(zip("qvz", (x.shape[:-1] for x in parts), strict=False))
        batch = together(t=times.shape, **leads)
        complete = ~np.broadcast_to(unknown_states(times[..., None], *parts), batch)
        if not complete.all():
            whole = np.full((*batch, model.nv), np.nan)
            if complete.any():
                rows = [np.broadcast_to(x, (*batch, x.shape[-1]))[complete] for x in parts]
                now = np.broadcast_to(times, batch)[complete]
                states = None if z is None else rows[2]
                whole[complete] = self._torque_on_numpy(
                    model, now, rows[0], rows[1], states, ground
                )
            return whole
        columns = _columns(parts, batch)
        if z is None:
            columns.append(self.states_at_start(robot, *columns))
        tau, _ = self.text(robot, times if times.ndim else float(times), *columns)
        out = stacked(tau, batch)
        if not np.isfinite(out).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(out))[0])
            state = f" (state {where[0] if len(where) == 2 else where[:-1]})" if batch else ""
            when = float(np.broadcast_to(times, batch)[where[:-1]])
            raise SimulationError(
                f"the controller gave {out[where]} for {model.velocities[where[-1]]!r} at t = "
                f"{when:g} s{state}"
            )
        return out

    def check(self, model: Robot) -> None:
        """Raise StateError where the controller does not fit the robot: lengths of motions, gains
        and limits, names of joints.
        """
        robot, q, v = StillRobot(model), model.neutral().tolist(), [0.0] * model.nv
        self.text(robot, 0.0, q, v, self.states_at_start(robot, q, v))


class _Uses:
    """The uses of a controller for a robot: their number, and once it is compiled, its kernel (q,
    v, t (..., 1), and z where ``start`` is its value for every robot) -> tau.
    """

    __slots__ = ("calls", "kernel", "start", "who")

    def __init__(self, who: weakref.ref[Controller]) -> None:
        self.who, self.calls = who, 0
        self.kernel: Kernel | None = None
        self.start: Array | None = None


def read_controller(raw: object, path: Path, reading: Reading) -> Controller | None:
    """The controller that a part of a file describes, None for none. Raises NotedError once all
    mistakes are noted, also where it does not fit the robot.
    """
    controller: Controller | None = CONTROLLERS.read(raw, path, reading)
    if controller is not None:
        try:
            controller.check(about_robot(reading).robot)
        except RamifyError as error:
            raise reading.refuse(path, str(error)) from error
    return controller


def _contact(model: Robot, ground: Any) -> ContactText | None:
    """The contact of a model with a ground, which may be one already."""
    if ground is None:
        return None
    if isinstance(ground, ContactText):
        return ground
    terrain = as_ground(ground, model)
    return None if terrain is None else ContactText(model, terrain)


def _columns(parts: Sequence[Array], batch: tuple[int, ...]) -> list[list[Scalar]]:
    """The entries of each part as scalars: floats, or an array per entry of a batch."""
    return [[x[..., i] if batch else float(x[i]) for i in range(x.shape[-1])] for x in parts]


# ---- gains and limits ----


def gains(name: str, value: Any) -> Row:
    """Gains as a row of finite numbers, none negative."""
    values = row(name, value)
    for i, k in enumerate(values):
        if k < 0.0:
            raise StateError(f"{name}[{i}] is {k}; a gain must not be negative")
    return values


def spread(name: str, values: Sequence[Any], driven: Driven, robot: RobotText) -> Sequence[Any]:
    """One value per driven coordinate from a single one, from as many, or from one per velocity of
    the robot.
    """
    if len(values) == len(driven):
        return values
    if len(values) == 1:
        return list(values) * len(driven)
    if len(values) == robot.nv:
        return [values[j] for j in driven.v]
    which = f"one per driven coordinate of {robot.model.name}: {', '.join(driven.names[:12])}"
    raise StateError(f"{name} has {len(values)} entries; give 1, or {len(driven)}, {which}")


def within_limit(force: Scalar, limit: float) -> Scalar:
    """The force, but not beyond +-limit."""
    if math.isinf(limit):
        return force
    return select(force > limit, limit, select(force < -limit, -limit, force))


def _limit(i: int, x: float) -> float:
    if not x >= 0.0:
        raise StateError(
            f"limits[{i}] is {x}; a limit must not be negative, and infinity means none"
        )
    return x
