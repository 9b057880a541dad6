"""Walking: hips that move like an inverted pendulum, feet that swing, joints in closed form
(appendix B).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, one_number
from ramify.core.errors import StateError
from ramify.core.jet import Jet, parts, value
from ramify.core.names import names_of
from ramify.core.records import settle
from ramify.core.scalar import Scalar, cos, floor, select
from ramify.documents.forms import Flag, Listed, NameList, Number, Numbers, Reading
from ramify.documents.kinds import PartForm, key
from ramify.model.driven import driven
from ramify.model.robot import Robot, the_robot
from ramify.motion.coordinate_reader import about_robot
from ramify.motion.leg import Leg, reaches, walking_legs
from ramify.motion.pendulum import InvertedPendulum
from ramify.motion.trajectory import (
    BEGIN,
    MOTIONS,
    Motion,
    Texts,
    Trajectory,
    is_one_number,
    moments,
    stacked,
)

Coordinates3 = tuple[Scalar, Scalar, Scalar]
LEVEL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
"""Axes of a world whose X is ahead and whose Z is up."""


@dataclass(frozen=True)
class Gait(Trajectory):
    """Two groups of legs that carry the robot by turns, step after step: bipeds, trotting
    quadrupeds, tripod hexapods.

    A step lasts T = ``pendulum.period``. While one group stands, the hips follow the pendulum over
    it at constant height, the trunk upright, and the feet of the other group swing from one stride
    behind to one ahead of where they stand beside it (B.10):

        x_a = -stride cos(pi u / T),   z_a = lift / 2 (1 - cos(2 pi u / T)),

    u being the time since the step began.

    They leave and reach the ground at height zero and without velocity. Then the groups change.
    Positions and rates of all joints are continuous; accelerations jump where the groups change, as
    those of the pendulum and of the swinging feet do.

    legs: see ``Leg``; support: the names of those that stand first; steps: how many steps, without
    end by default (the motion is then held); base: whether the six coordinates [x y z, three
    angles] of a free_euler base come first; axes: ahead, left and up in the world; attitude: the
    angles of that base, rad. The base starts stride/2 behind the feet that stand first, whose place
    is x = 0. With a ``pendulum.sway`` the two feet of a biped keep that distance from the middle
    and the hips sway between them; without, each foot stands below its hip.

    Rates and accelerations are exact derivatives. ``Gait.of`` reads the legs from a robot. Raises
    StateError where names do not fit or a foot cannot be reached.
    """

    legs: tuple[Leg, ...]
    pendulum: InvertedPendulum
    lift: float
    support: tuple[str, ...]
    steps: float = math.inf
    begin: float = 0.0
    base: bool = True
    axes: tuple[tuple[float, ...], ...] = LEVEL
    attitude: tuple[float, ...] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        settle(
            self, legs=tuple(self.legs), support=tuple(names_of("support", self.support)),
            axes=tuple(map(tuple, self.axes)), attitude=tuple(self.attitude),
        )  # fmt: skip
        if not (is_one_number(self.lift) and self.lift > 0.0):
            raise StateError(f"lift {self.lift!r} must be a finite and positive number, in m")
        steps = one_number(self.steps)
        if not (steps >= 1.0 and (steps == math.inf or steps.is_integer())):
            raise StateError(
                f"steps {self.steps!r} must be a whole number of at least 1, or infinity"
            )
        if not is_one_number(self.begin):
            raise StateError(f"begin {self.begin!r} must be a finite number, in s")
        settle(self, lift=float(self.lift), begin=float(self.begin))
        names = [leg.name for leg in self.legs]
        for name in self.support:
            if name not in names:
                raise StateError(
                    f"support: there is no leg {name!r}; the legs are {', '.join(names)}"
                )
        if len(set(self.support)) != len(self.support) or not 0 < len(self.support) < len(names):
            raise StateError(
                f"support must name some legs once, not none and not all {len(names)}: "
                f"{', '.join(names)}"
            )
        if self.pendulum.sway and len(names) != 2:
            raise StateError(
                f"sway {self.pendulum.sway} m is for two legs; with {len(names)} the feet stand "
                "below the hips"
            )
        heights = {leg.hip[2] for leg in self.legs}
        if len(heights) > 1:
            raise StateError(
                f"the hips are {len(heights)} different heights in the trunk; a gait needs them "
                "level"
            )
        self._check_reach()

    @classmethod
    def of(
        cls,
        model: Robot,
        *,
        height: float,
        period: float,
        stride: float,
        lift: float,
        sway: float = 0.0,
        support: Sequence[str] | str | None = None,
        steps: float = math.inf,
        begin: float = 0.0,
        attitude: Sequence[float] | None = None,
    ) -> Gait:
        """The gait of a robot with a floating trunk and legs of two links (see ``legs``).

        height: of the hips over the ground (z_h), m; period: of a step (T), s; stride: the way of a
        step (l_s), m; lift: how high a foot is lifted (h_f), m; sway: of a biped's feet from the
        middle (abs(y_h(0))), m; support: the legs that stand first, each by the name of one of its
        joints or bodies; every other leg by default (diagonals, tripods); attitude: the three
        angles of a free_euler base that walks upright, rad, zero by default. ReDySim's biped, whose
        trunk lies along X at zero, walks at (-pi/2, 0, 0).

        Raises ModelError where the robot's legs are of another kind, StateError where a number does
        not fit.
        """
        turned = _attitude(model, attitude)
        legs, frame = walking_legs(model, turned)
        axes = tuple(tuple(map(float, column)) for column in frame.T)
        size = float(np.linalg.norm(model.gravity))
        hips = [support] if isinstance(support, str) else support
        standing = _alternate(legs) if hips is None else _named(model, legs, hips)
        base = model.joints[0].kind == "free_euler"
        pendulum = InvertedPendulum(height, period, stride, sway, size)
        return cls(legs, pendulum, lift, standing, steps, begin, base, axes, turned)

    # ---- a trajectory ----

    @property
    def n(self) -> int:
        return 6 * self.base + sum(leg.dof for leg in self.legs)

    @property
    def duration(self) -> float:  # type: ignore[override]
        return self.steps * self.pendulum.period

    def inside(self, t: Scalar) -> Texts:
        trunk, ankles = self._moved(t)
        found = [*self._world(trunk), *self.attitude] if self.base else []
        for leg, ankle in zip(self.legs, ankles, strict=True):
            seen = (p - (b + h) for p, b, h in zip(ankle, trunk, leg.hip, strict=True))
            found += leg.angles(*seen)
        return parts(found)

    def _world(self, place: Coordinates3) -> Coordinates3:
        """A place in level axes, in the world's."""
        if self.axes == LEVEL:
            return place
        x, y, z = (
            sum((c * p for c, p in zip(row, place, strict=True) if c), start=0.0)
            for row in zip(*self.axes, strict=True)
        )
        return x, y, z

    def _moved(self, t: Scalar) -> tuple[Coordinates3, list[Coordinates3]]:
        """Places of the trunk's origin and of all ankles in level axes, m, as jets."""
        p = self.pendulum
        step, first = self._step(t)
        u = (t - self.begin) - step * p.period
        now = Jet(u, 1.0)
        x, y = p.hip(u)
        here = step * p.stride  # where the standing feet are
        phase = now * (math.pi / p.period)
        swing = (here - p.stride * cos(phase), (0.5 * self.lift) * (1.0 - cos(2.0 * phase)))
        side = select(first, self._side(True), self._side(False)) if p.sway else 0.0
        trunk = (x + here, (1.0 - y) * side if p.sway else 0.0, p.height - self.legs[0].hip[2])
        ankles: list[Coordinates3] = []
        for leg in self.legs:
            stands = leg.name in self.support
            ahead, up = (
                _either(first, a, b, stands) for a, b in zip((here, 0.0), swing, strict=True)
            )
            ankles.append((ahead + leg.hip[0], self._aside(leg), up + leg.sole))
        return trunk, ankles

    def _step(self, t: Scalar) -> tuple[Scalar, Scalar]:
        """(number of the step at a time, whether the legs of ``support`` carry it)."""
        step = floor((t - self.begin) * (1.0 / self.pendulum.period))
        if not math.isinf(self.steps):  # the end belongs to the last step
            step = select(step < self.steps, step, self.steps - 1.0)
        return step, step - 2.0 * floor(0.5 * step) < 0.5

    def _aside(self, leg: Leg) -> float:
        """How far left of the middle a foot stands, m."""
        return math.copysign(self.pendulum.sway, leg.hip[1]) if self.pendulum.sway else leg.hip[1]

    def _side(self, first: bool) -> float:
        """How far left the foot of the first, or the second, step of a swaying biped stands, m."""
        return next(self._aside(leg) for leg in self.legs if (leg.name in self.support) == first)

    def _check_reach(self) -> None:
        lateral = {
            leg.name: abs(self._aside(leg) - leg.hip[1])
            for leg in self.legs
            if "XY" not in leg.hips
        }
        if any(lateral.values()):
            raise StateError(
                f"sway {self.pendulum.sway} m: the hips {', '.join(lateral)} do not turn about X "
                "before Y; leave it out"
            )
        p = self.pendulum
        times = self.begin + np.linspace(0.0, 2.0 if self.steps > 1 else 1.0, 201) * p.period
        trunk, *ankles = (  # in level axes
            stacked([value(x) for x in place], times.shape)
            for place in (self._moved(times)[0], *self._moved(times)[1])
        )
        hips = trunk[:, None] + np.array([leg.hip for leg in self.legs])
        away = np.stack(ankles, axis=-2) - hips
        for t, row in zip(times.tolist(), away.tolist(), strict=True):
            for leg, place in zip(self.legs, row, strict=True):
                if not reaches(leg, *place):
                    far = math.sqrt(sum(x * x for x in place))
                    side = "above" if place[2] > 0.0 else "below"
                    why = f" and {abs(place[2]):.4g} m {side} it, which is too high"
                    right = "lower the lift, or raise the height"
                    if far >= leg.reach:
                        why = f"; the leg is {leg.reach:.4g} m long and must stay bent"
                        right = "lower the height, the stride or the lift"
                    when = f"{t - self.begin:.3g} s after the start"
                    raise StateError(
                        f"{leg.name} cannot reach its foot {when}: it is {far:.4g} m from the "
                        f"hip{why}: {right}"
                    )

    # ---- what a walk is judged by ----

    def trunk(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Desired place, velocity and acceleration of the trunk's origin at the times t (...):
        (..., 3) each, in m and s.
        """
        times = moments(t)
        trunk = self._world(self._moved(times)[0])
        x, dx, ddx = (stacked(part, times.shape) for part in parts(trunk))
        return x, dx, ddx

    def ankles(self, t: ArrayLike) -> Array:
        """Desired places (..., legs, 3) of the ankles at the times t (...), m."""
        times = moments(t)
        places = [[value(x) for x in self._world(place)] for place in self._moved(times)[1]]
        return np.stack([stacked(place, times.shape) for place in places], axis=-2)

    def standing(self, t: ArrayLike) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which legs stand at the times t (...): (..., legs)."""
        first = np.asarray(self._step(moments(t))[1])
        chosen = [leg.name in self.support for leg in self.legs]
        return np.stack([first if stands else ~first for stands in chosen], axis=-1)

    def start(self, model: Robot) -> tuple[Array, Array]:
        """(q0, v0) of a robot on this gait at its begin: joints, and the trunk upright with the
        pendulum's velocity.
        """
        m = self.whole(model, self.begin)
        return m.q, m.v

    def whole(self, model: Robot, t: ArrayLike) -> Motion:
        """The motion of the whole robot, its floating base included: q (..., nq), v and a (..., nv)
        at the times t (...).

        Raises StateError where the robot has other joints, or no floating base.
        """
        the_robot(model)
        m = self.at(t)
        if self.n == model.nv == model.nq:
            return m
        chosen = driven(model)
        joints = self.n - 6 * self.base
        if len(chosen) != joints or not model.joints[0].floating:
            raise StateError(
                f"the gait moves {joints} joints on a floating trunk; {model.name} has "
                f"{len(chosen)} to drive"
            )
        q = np.broadcast_to(model.neutral(), (*m.t.shape, model.nq)).copy()
        v, a = np.zeros((2, *m.t.shape, model.nv))
        q[..., list(chosen.q)], v[..., list(chosen.v)], a[..., list(chosen.v)] = (
            x[..., -joints:] for x in (m.q, m.v, m.a)
        )
        for part, moved in zip((q, v, a), self.trunk(m.t), strict=True):
            part[..., :3] = moved
        return Motion(m.t, q, v, a)


@MOTIONS.add("gait")
@dataclass(frozen=True)
class WalkingGait:
    """A gait by its numbers, as ``Gait.of`` takes them. The legs are the robot's, and so are the
    axes ahead, left and up, whether the base is among the coordinates, and gravity; a gait with
    ``legs`` of its own gives all of these.
    """

    builds: ClassVar[type] = Gait

    height: float = field(metadata=key(Number(above=0.0), unit="m"))
    period: float = field(metadata=key(Number(above=0.0), unit="s"))
    stride: float = field(metadata=key(Number(above=0.0), unit="m"))
    lift: float = field(metadata=key(Number(above=0.0), unit="m"))
    sway: float = field(default=0.0, metadata=key(Number(least=0.0), unit="m"))
    support: Sequence[str] | None = field(default=None, metadata=key(NameList()))
    steps: float = field(default=math.inf, metadata=key(Number(least=1, whole=True, endless=True)))
    begin: float = field(default=0.0, metadata=BEGIN)
    attitude: Sequence[float] | None = field(default=None, metadata=key(Numbers(3), unit="rad"))
    legs: Sequence[Leg] | None = field(default=None, metadata=key(Listed(PartForm(Leg))))
    axes: Sequence[Sequence[float]] = field(default=LEVEL, metadata=key(Listed(Numbers(3), size=3)))
    base: bool = field(default=True, metadata=key(Flag()))
    gravity: float = field(default=9.81, metadata=key(Number(above=0.0), unit="m/s^2"))

    @classmethod
    def recipe(cls, gait: Gait) -> WalkingGait:
        return cls(
            **{f.name: getattr(gait.pendulum, f.name) for f in fields(gait.pendulum)},
            **{f.name: getattr(gait, f.name) for f in fields(gait) if f.name != "pendulum"},
        )

    def build(self, reading: Reading) -> Gait:
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        geometry = {name: values.pop(name) for name in ("legs", "axes", "base", "gravity")}
        if self.legs is None:
            return Gait.of(about_robot(reading).robot, **values)
        legs = tuple(self.legs)
        pendulum = InvertedPendulum(
            self.height, self.period, self.stride, self.sway, geometry["gravity"]
        )
        return Gait(
            legs, pendulum, self.lift, tuple(self.support or _alternate(legs)), self.steps,
            self.begin, self.base, geometry["axes"], tuple(self.attitude or (0.0, 0.0, 0.0)),
        )  # fmt: skip


def _attitude(model: Robot, angles: Sequence[float] | None) -> tuple[float, float, float]:
    """Three angles of the base, rad. Raises StateError for other numbers, and for angles where the
    base has none.
    """
    if angles is None:
        return 0.0, 0.0, 0.0
    listed = isinstance(angles, (Sequence, np.ndarray)) and not isinstance(angles, str)
    if not listed or len(angles) != 3 or not all(is_one_number(x) for x in angles):
        raise StateError(f"attitude {angles!r} must be three finite angles of the base, in rad")
    if any(angles) and model.joints[0].kind != "free_euler":
        raise StateError(
            f"attitude: the base of {model.name} has no three angles; load it with "
            "base='free_euler', or turn it in its file"
        )
    x, y, z = map(float, angles)
    return x, y, z


def _either(first: Scalar, standing: Scalar, swinging: Scalar, stands: bool) -> Jet:
    """The place of a foot of the group that stands first, or of the other, as a jet."""
    pairs = parts((standing, swinging) if stands else (swinging, standing))
    return Jet(*(select(first, a, b) for a, b in pairs))


def _alternate(legs: tuple[Leg, ...]) -> tuple[str, ...]:
    """Legs in turn along each side, the sides against each other: one of two, a diagonal of four, a
    tripod of six.
    """
    sides: dict[bool, list[Leg]] = {True: [], False: []}
    for i, leg in enumerate(legs):
        sides[leg.hip[1] > 0.0 if leg.hip[1] else i % 2 == 1].append(leg)
    left, right = (sorted(sides[side], key=lambda leg: leg.hip[0]) for side in (True, False))
    chosen = {leg.name for leg in (*left[1::2], *right[::2])}
    return tuple(leg.name for leg in legs if leg.name in chosen)


def _named(model: Robot, legs: tuple[Leg, ...], names: Sequence[str]) -> tuple[str, ...]:
    """Legs by the names of their joints or bodies."""
    names = names_of("support", names)
    hips = [leg.name for leg in legs]
    owner: dict[str, str] = {}
    leg = ""
    for body in model.bodies:
        leg = body.joint.name if body.joint.name in hips else leg
        if leg:
            owner |= {body.name: leg, body.joint.name: leg}
    unknown = next((name for name in names if name not in owner), None)
    if unknown is not None:
        raise StateError(
            f"support: no leg of {model.name} has a joint or body {unknown!r}; the legs are "
            f"{', '.join(hips)}"
        )
    return tuple(owner[name] for name in names)
