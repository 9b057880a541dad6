"""What a robot has besides bodies and joints: named frames, tendons, actuators, keyframes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ramify.core.errors import ModelError
from ramify.core.messages import near
from ramify.core.names import twins
from ramify.model.answers import Attachment
from ramify.model.elements import NONE, Cubic
from ramify.model.joint import Joint

Range = tuple[float, float]
ANY: Final[Range] = (-math.inf, math.inf)
Affine = tuple[float, float, float]
"""(a, b, c) of a + b l + c dl/dt, l being the length of a transmission."""
Activation = Literal["", "integrator", "filter", "filterexact"]


def _check_ranges(who: str, **ranges: Range) -> None:
    for what, (low, high) in ranges.items():
        if not low <= high:
            text = f"{who}: the lower end {low:g} of {what} exceeds {high:g}"
            raise ModelError(text, key=(what,))


@dataclass(frozen=True)
class Tendon:
    """A length: the sum of ``joints``, (name of a rate, coefficient), or of straight pieces through
    frames: ``branches`` are (divisor, frame names).

    Spring -(a + b x + c x^2) x, with x beyond the slack range ``rest`` (m); damping as in a joint;
    ``effort``: the largest sum of the forces of its actuators, N.
    """

    name: str
    joints: tuple[tuple[str, float], ...] = ()
    branches: tuple[tuple[float, tuple[str, ...]], ...] = ()
    stiffness: Cubic = NONE
    damping: Cubic = NONE
    rest: Range = (0.0, 0.0)
    effort: Range = ANY

    def __post_init__(self) -> None:
        _check_ranges(f"tendon {self.name!r}", rest=self.rest, effort=self.effort)
        if bool(self.joints) == bool(self.branches):
            raise ModelError(
                f"tendon {self.name!r}: give it joints or branches, so that it has a length"
            )
        for rate, factor in self.joints:
            if not factor:
                raise ModelError(
                    f"tendon {self.name!r}: the coefficient of {rate!r} is 0", key=("joints", rate)
                )


@dataclass(frozen=True)
class Actuator:
    """A drive: force = gain x + bias, x being the command u or the activation, limited, through a
    transmission.

    It acts on a ``joint``, a ``tendon``, or a frame ``site`` (relative to the frame ``reference``,
    or as the crank of a rod of length ``rod`` on the slider frame ``slider``). ``gear``: of a
    scalar joint or tendon its first entry counts; of a ball the axis; of a free joint and a site
    [force; moment]. ``in_parent``: axes of the joint's parent. ``activation``: "" (none),
    "integrator" dw/dt = u, "filter" and "filterexact" dw/dt = (u - w) / time. ``early``: the force
    uses the activation after a step of ``step`` s. One without a target and with the force range
    (0, 0) is ``dead``: it has a place among the commands and gives no force.
    """

    name: str
    joint: str = ""
    tendon: str = ""
    site: str = ""
    reference: str = ""
    slider: str = ""
    rod: float = 0.0
    gear: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    in_parent: bool = False
    gain: Affine = (1.0, 0.0, 0.0)
    bias: Affine = (0.0, 0.0, 0.0)
    command: Range = ANY
    force: Range = ANY
    activation: Activation = ""
    time: float = 0.0
    activations: Range = ANY
    early: bool = False
    step: float = 0.0

    def __post_init__(self) -> None:
        targets = [x for x in (self.joint, self.tendon, self.site) if x]
        if len(targets) != 1 and not (self.dead and self.force == (0.0, 0.0)):
            raise ModelError(f"actuator {self.name!r}: give one of joint, tendon, site")
        if not any(self.gear):
            raise ModelError(f"actuator {self.name!r}: gear is 0, so that it drives nothing")
        ranges = {key: getattr(self, key) for key in ("command", "force", "activations")}
        _check_ranges(f"actuator {self.name!r}", **ranges)
        if self.slider and not self.rod > 0.0:
            raise ModelError(f"actuator {self.name!r}: rod {self.rod:g} m must be above 0")
        if self.activation.startswith("filter") and not self.time > 0.0:
            raise ModelError(f"actuator {self.name!r}: time {self.time:g} s must be above 0")

    @property
    def dead(self) -> bool:
        """Whether it acts on nothing."""
        return not (self.joint or self.tendon or self.site)


def dead_actuator(name: str) -> Actuator:
    """A place among the commands, without a force."""
    return Actuator(name, gain=(0.0, 0.0, 0.0), force=(0.0, 0.0))


def motor(name: str, joint: str, gear: float = 1.0, limit: float = math.inf) -> Actuator:
    """A force gear · u at a joint, |u| ≤ limit."""
    return Actuator(name, joint, gear=(gear, 0, 0, 0, 0, 0), command=(-limit, limit))


def position_servo(name: str, joint: str, kp: float, kv: float = 0.0) -> Actuator:
    """kp (u - q) - kv v: N m/rad and N m s/rad."""
    return Actuator(name, joint, gain=(kp, 0.0, 0.0), bias=(0.0, -kp, -kv))


def velocity_servo(name: str, joint: str, kv: float) -> Actuator:
    """kv (u - v)."""
    return Actuator(name, joint, gain=(kv, 0.0, 0.0), bias=(0.0, 0.0, -kv))


def dc_motor(
    name: str, joint: str, constant: float, resistance: float, voltage: float, gear: float = 1.0
) -> Actuator:
    """A DC motor behind a gear, its current settled: K i with i = (u - K gear v) / R; the command u
    is a voltage up to ±``voltage``. ``constant`` K in N m/A = V s/rad, ``resistance`` R in ohm.
    """
    if not (constant > 0.0 and resistance > 0.0 and voltage > 0.0):
        raise ModelError(
            f"actuator {name!r}: constant, resistance and voltage must be finite and above 0"
        )
    gain, back = constant / resistance, constant * constant / resistance
    return Actuator(
        name, joint, gear=(gear, 0, 0, 0, 0, 0), gain=(gain, 0.0, 0.0), bias=(0.0, 0.0, -back),
        command=(-voltage, voltage),
    )  # fmt: skip


@dataclass(frozen=True)
class Keyframe:
    """A named state: q (nq), v (nv), commands and activations of the actuators, time in s."""

    name: str
    q: tuple[float, ...]
    v: tuple[float, ...] = ()
    command: tuple[float, ...] = ()
    activation: tuple[float, ...] = ()
    time: float = 0.0


@dataclass(frozen=True)
class Machine:
    """What a robot has besides bodies and joints, by kind."""

    frames: Mapping[str, Attachment] = field(default_factory=dict)
    tendons: tuple[Tendon, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    keyframes: tuple[Keyframe, ...] = ()

    def check(
        self, joints: Iterable[Joint], rates: Collection[str], frames: Collection[str]
    ) -> None:
        """Raise ModelError for the first of ``mistakes``."""
        for kind, name, text in self.mistakes(joints, rates, frames):
            raise ModelError(f"{kind} {name!r}: {text}")

    def mistakes(
        self, joints: Iterable[Joint], rates: Collection[str], frames: Collection[str]
    ) -> Iterator[tuple[str, str, str]]:
        """(kind, name, text) of every name that the robot does not have, of duplicate names
        and of names that look alike.
        """
        declared: dict[str, Collection[str]] = {
            "joint": [joint.name for joint in joints],
            "rate": rates,
            "frame": frames,
            "tendon": [tendon.name for tendon in self.tendons],
        }
        for kind, name, uses in self._uses():
            for what, used in uses:
                if used not in declared[what]:
                    hint = near(used, list(declared[what]))
                    yield kind, name, f"there is no {what} {used!r}{hint}"
        tendons, actuators, keyframes = (
            [item.name for item in items]
            for items in (self.tendons, self.actuators, self.keyframes)
        )
        for kind, names in (("tendon", tendons), ("actuator", actuators)):
            for i, name in enumerate(names):
                if name in names[:i]:
                    yield kind, name, "duplicate name; names must differ"
        links = [name for name in frames if name not in self.frames]
        for kind, names in (
            ("tendon", tendons),
            ("actuator", actuators),
            ("keyframe", keyframes),
            ("frame", [*links, *self.frames]),
        ):
            for other, name in twins(names):
                yield kind, name, f"its name looks like {other!a}; rename one of them"

    def _uses(self) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
        for tendon in self.tendons:
            places = [("frame", name) for _, names in tendon.branches for name in names]
            yield "tendon", tendon.name, [*(("rate", name) for name, _ in tendon.joints), *places]
        for a in self.actuators:
            uses = [("joint", a.joint), ("tendon", a.tendon), ("frame", a.site)]
            uses += [("frame", a.reference), ("frame", a.slider)]
            yield "actuator", a.name, [(what, name) for what, name in uses if name]
