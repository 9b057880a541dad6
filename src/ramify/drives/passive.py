"""Forces on a robot that need no command: springs, damping, friction, stops, tendons, gravity
compensation, over any scalar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.core.scalar import Scalar, Scalars, may_be_nonzero
from ramify.core.spatial import Vec3
from ramify.drives import element_laws as laws
from ramify.drives.element_laws import BristleLaw, StopLaw
from ramify.drives.joint_elements import JOINT_PARTS, JointLaw, at_joint
from ramify.drives.places import Places, row_times
from ramify.drives.rotation import between, direction_or_zero, log, smooth_length
from ramify.drives.tendons import pull, tendon_length
from ramify.dynamics.tree import Tree, tree_of
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.make import kernel
from ramify.kernels.text import plain_text
from ramify.model.elements import Element, Stop
from ramify.model.robot import Robot, once
from ramify.model.skeleton import rigid_inertia
from ramify.runtime.cache_keys import digest

PARTS: Final = ("spring", "damping", "friction", "stop", "tendon", "gravity_compensation")
LOSSES: Final = ("damping", "friction", "stop", "tendon")
"""Parts that turn energy to heat."""
_SLIP_TIME: Final = 1e-3  # s in which dry friction alone would stop a joint at its slip speed
_SLIP_SHARE: Final = 0.01  # of the rated speed: no default slip speed is larger
_SLIP_MOST: Final = 0.05  # rad/s or m/s: the same where no speed is rated
_TOUCH_SPEED: Final = 0.1  # rad/s or m/s: a stop's damper is at work beyond the depth reached so
_POSTURES: Final = 24
_SAG: Final = 2e-3
"""rad or m: how far a default stop yields at most under the weight that it may have to carry."""


def _postures(robot: Robot) -> Array:
    """(N, nq): random postures within the limits. Each of several trees on the base is drawn as if
    it were alone, so that the others do not matter.
    """
    bodies = robot.bodies
    root = list(range(len(bodies)))
    for b, body in enumerate(bodies):
        root[b] = b if body.parent < 0 else root[body.parent]
    columns = [root[b] for b, body in enumerate(bodies) for _ in range(body.joint.nq)]
    q = np.empty((_POSTURES, robot.nq))
    for r in sorted(set(root)):
        members = [b for b in range(len(bodies)) if root[b] == r]
        parents = {-1: -1, **{b: i for i, b in enumerate(members)}}
        members_alone = tuple(replace(bodies[b], parent=parents[bodies[b].parent]) for b in members)
        alone = Robot(robot.name, members_alone, robot.gravity, {})
        q[:, [x == r for x in columns]] = [alone.random(seed)[0] for seed in range(_POSTURES)]
    return q


@once
def joint_inertia(robot: Robot) -> tuple[float, ...]:
    """The least inertia (nv) that each coordinate shows over random postures within its limits:
    1 / (I^-1)_ii, kg m^2 or kg.
    """
    tree, q = robot.tree, _postures(robot)
    try:
        inverse = kernel(tree, "mass_matrix_inverse")(q)
        shown = 1.0 / np.diagonal(inverse, axis1=-2, axis2=-1).max(axis=0)
    except RamifyError:  # a massless part: take the diagonal of I, all other joints fixed
        shown = np.diagonal(kernel(tree, "mass_matrix")(q), axis1=-2, axis2=-1).min(axis=0)
    return tuple(float(x) for x in np.maximum(shown, 1e-9))


@once
def joint_load(robot: Robot) -> tuple[float, ...]:
    """The largest gravity force (nv) that each coordinate carries over the same postures."""
    load = np.abs(kernel(robot.tree, "gravity_forces")(_postures(robot))).max(axis=0)
    return tuple(float(x) for x in load)


@dataclass
class Forces:
    """Joint forces (nv) by part, what is stored by part (J), the power lost by part (W), and the
    rates of the bristles.
    """

    force: dict[str, list[Scalar]]
    stored: dict[str, Scalar]
    loss: dict[str, Scalar]
    rates: list[Scalar]

    @property
    def total(self) -> list[Scalar]:
        parts = list(self.force.values())
        return [sum(column[1:], column[0]) for column in zip(*parts, strict=True)]


class PassiveText:
    """The passive forces of a robot; ``stops`` False leaves its limits open, ``rest`` False leaves
    out all but them, ``dry`` False leaves out dry friction but that of bristles.
    """

    def __init__(
        self, robot: Robot, stops: bool = True, rest: bool = True, dry: bool = True
    ) -> None:
        self.robot, self.stops, self.rest, self.dry = robot, stops, rest, dry
        self._elements = [element for joint in robot.joints for element in joint.machine]
        present = {
            "spring": any(e.spring for e in self._elements),
            "damping": any(map(may_be_nonzero, (x for e in self._elements for x in e.damping))),
            "friction": any(self._smooth(e) for e in self._elements),
            "stop": stops and (bool(self.limits) or any(e.cone < math.inf for e in self._elements)),
            "tendon": any(any(t.stiffness) or any(t.damping) for t in robot.tendons),
            "gravity_compensation": any(body.lift[0] for body in robot.bodies)
            and any(robot.gravity),
        }
        self.parts = tuple(p for p in PARTS if present[p] and (rest or p == "stop"))
        frictions = enumerate(e.friction for e in self._elements if rest)
        self.bristles = tuple(j for j, f in frictions if f is not None and f.bristles is not None)
        """The rates whose friction has bristles, in the order of their states."""

    def __bool__(self) -> bool:
        return bool(self.parts)

    def _smooth(self, element: Element) -> bool:
        """Whether friction at a coordinate is one of these forces."""
        law = element.friction
        return law is not None and (self.dry or law.bristles is not None)

    def dry_level(self, j: int, v: Scalar) -> tuple[Scalar, Scalar] | None:
        """Dry friction at rate j: the largest forces, N m or N, against forward and backward
        motion at the rate v; None where there is none, or where it has bristles.
        """
        law = self._elements[j].friction
        if not self.rest or law is None or law.bristles is not None:
            return None
        excess: Scalar = 0.0
        if law.static:
            more = law.static - law.sliding
            excess = laws.stribeck(more, v / law.stribeck_speed, laws.falls_exponentially(law))
        return law.forward + excess, law.backward + excess

    @cached_property
    def losses(self) -> tuple[str, ...]:
        """The parts whose power is integrated: those that lose energy, and gravity compensation
        where drives give a share of it.
        """
        lifted = any(element.lifts for element in self._elements)
        return tuple(p for p in self.parts if p in LOSSES or (p == PARTS[-1] and lifted))

    @cached_property
    def fingerprint(self) -> str:
        """All that the passive forces depend on besides the rigid robot."""
        if not self:
            return ""
        limits = [joint.limits for joint in self.robot.joints]
        inertia = joint_inertia(self.robot) if {"friction", "stop"} & set(self.parts) else ()
        load = joint_load(self.robot) if "stop" in self.parts else ()
        frames = [
            (name, body, frame.rotation.tolist(), frame.position.tolist())
            for name, (body, frame) in self.robot.frames.items()
            if self.robot.tendons
        ]
        return digest(
            repr((self.parts, self.dry, self._elements, limits, inertia, load)),
            repr((self.robot.tendons, frames, [body.lift for body in self.robot.bodies])),
        )

    @cached_property
    def limits(self) -> tuple[tuple[int, int, float, float], ...]:
        """(place in q, place in v, lower, upper) of the coordinates that have stops; an
        empty range does not count.
        """
        out = []
        plain = dict(zip(self.robot.layout.plain_q, self.robot.layout.plain_v, strict=True))
        start = 0
        for joint in self.robot.joints:
            for i, (low, high) in enumerate(joint.limits):
                ends = low < high and (math.isfinite(low) or math.isfinite(high))
                if start + i in plain and ends:
                    out.append((start + i, plain[start + i], low, high))
            start += joint.nq
        return tuple(out)

    def law_of_stop(self, j: int) -> tuple[float, float, float]:
        """(stiffness, damping, ramp) of the stop at rate j."""
        m, s = joint_inertia(self.robot)[j], self._elements[j].stop
        if s.stiffness is not None:
            return s.stiffness, s.damping or 0.0, _TOUCH_SPEED * math.sqrt(m / s.stiffness)
        k = m / s.time**2
        if s == Stop():
            k = max(k, joint_load(self.robot)[j] / _SAG)
        return k, 2.0 * s.ratio * math.sqrt(m * k), _TOUCH_SPEED * math.sqrt(m / k)

    def slip(self, j: int) -> float:
        """The slip speed of dry friction at rate j: by default the speed that friction alone
        stops in a millisecond, but small enough for full friction at working speed.
        """
        f, rated = self._elements[j].friction, self._elements[j].velocity
        assert f is not None
        if f.slip_speed is not None:
            return f.slip_speed
        speed = max(f.sliding, f.static) * _SLIP_TIME / joint_inertia(self.robot)[j]
        return min(speed, _SLIP_SHARE * rated if 0.0 < rated < math.inf else _SLIP_MOST)

    @property
    def without_slack(self) -> PassiveText:
        """These forces with tendons that have no slack."""
        if not any(t.rest[0] < t.rest[1] for t in self.robot.tendons):
            return self
        tendons = tuple(replace(t, rest=(t.rest[1], t.rest[1])) for t in self.robot.tendons)
        machine = replace(self.robot.machine, tendons=tendons)
        robot = replace(self.robot, machine=machine)
        return PassiveText(robot, self.stops, self.rest, self.dry)

    @cached_property
    def joint_laws(self) -> list[JointLaw]:
        """The elements of every single coordinate."""
        ends = {j: (low, high) for _, j, low, high in self.limits} if self.stops else {}
        return [self._joint_law(j, e, ends.get(j)) for j, e in enumerate(self._elements)]

    def _joint_law(self, j: int, e: Element, ends: tuple[float, float] | None) -> JointLaw:
        law = JointLaw()
        if self.rest:
            law = replace(law, damping=e.damping)
            if e.friction is not None and self._smooth(e):
                law = replace(law, friction=laws.dry(e.friction, self.slip(j)))
            if j in self.bristles:
                law = replace(law, has_bristles=1.0, bristles=self.law_of_bristles(j))
            plain = j in self.robot.layout.plain_v
            if e.spring is not None and plain and len(e.spring.rest) == 1:
                law = replace(law, spring=e.spring.stiffness, rest=e.spring.rest[0])
        return law if ends is None else replace(law, stop=self._stop_law(j, *ends))

    def _stop_law(self, j: int, low: float, high: float) -> StopLaw:
        stiffness, damping, ramp = self.law_of_stop(j)
        return StopLaw(low, high, stiffness, damping, 1.0 / ramp)

    @cached_property
    def by_joint(self) -> bool:
        """Whether every force is that of a single coordinate."""
        vectors = any(e.cone < math.inf for e in self._elements) or any(
            e.spring is not None and len(e.spring.rest) > 1 for e in self._elements
        )
        return set(self.parts) <= set(JOINT_PARTS) and not vectors

    def law_of_bristles(self, j: int) -> BristleLaw:
        """The bristles at rate j."""
        f, m = self._elements[j].friction, joint_inertia(self.robot)[j]
        assert f is not None
        assert f.bristles is not None
        b = f.bristles
        stiffness = m / b.time**2 if b.stiffness is None else b.stiffness
        damping = 2.0 * math.sqrt(m * stiffness) if b.damping is None else b.damping
        per_speed = 1.0 / f.stribeck_speed if f.static else 0.0
        most = f.sliding / (stiffness * b.time)
        return BristleLaw(
            f.forward, f.backward, f.static, per_speed, stiffness, damping, most,
            laws.falls_exponentially(f),
        )  # fmt: skip

    def bristles_at_start(self, v: Scalars) -> list[Scalar]:
        """The deflections of the bristles of joints that have moved at v (nv) for long."""
        out = []
        for j in self.bristles:
            f = self._elements[j].friction
            assert f is not None
            sliding = laws.friction(laws.dry(f, self.slip(j)), v[j]).force
            out.append(-sliding / self.law_of_bristles(j).stiffness)
        return out

    # ---- the text ----

    def __call__(self, q: Scalars, v: Scalars, z: Scalars | None = None) -> Forces:
        """All parts at q (nq), v (nv) and deflections z of the bristles; None: friction is that of
        joints that slide steadily.
        """
        out = self.of_several(q, v)
        waiting = iter(() if z is None else z)
        plain = dict(zip(self.robot.layout.plain_v, self.robot.layout.plain_q, strict=True))
        for j, law in enumerate(self.joint_laws):
            has_state = z is not None and j in self.bristles
            x = q[plain[j]] if j in plain else 0.0
            parts = at_joint(law, x, v[j], next(waiting) if has_state else None)
            for part, answer in parts.items():
                self._add(out, part, j, answer)
            if has_state:
                out.rates.append(parts["friction"].rate)
        return out

    def of_several(self, q: Scalars, v: Scalars) -> Forces:
        """What concerns more than a single coordinate: springs and stops of rotations and
        places, tendons, gravity compensation.
        """
        out = Forces(
            {part: [0.0] * self.robot.nv for part in self.parts},
            dict.fromkeys(self.parts, 0.0),
            dict.fromkeys(self.losses, 0.0),
            [],
        )
        self._vector_joints(out, q, v)
        if "tendon" in self.parts:
            self._tendons(out, q, v)
        if "gravity_compensation" in self.parts:
            self._lift(out, q, v)
        return out

    def _add(self, out: Forces, part: str, j: int, answer: laws.Answer) -> None:
        out.force[part][j] = out.force[part][j] + answer.force
        out.stored[part] = out.stored[part] + answer.stored
        if part in out.loss:
            out.loss[part] = out.loss[part] + answer.loss

    def _vector_joints(self, out: Forces, q: Scalars, v: Scalars) -> None:
        """Springs and stops of quaternions, and springs of the place of free joints."""
        for i, j in self.robot.layout.balls:
            element = self._elements[j]
            if self.rest and element.spring is not None and len(element.spring.rest) == 4:
                r = between(element.spring.rest, q[i : i + 4])
                self._vector_spring(out, j, element, r)
            if "stop" in self.parts and element.cone < math.inf:
                r = log(q[i : i + 4])
                size = smooth_length(r)
                u = direction_or_zero(r, size)
                law = self._stop_law(j, -math.inf, element.cone)
                found = laws.stop(law, size, u.dot(Vec3(*v[j : j + 3])))
                for k, x in enumerate((u.x, u.y, u.z)):
                    force = replace(found, force=found.force * x)
                    self._add(out, "stop", j + k, force if k == 0 else laws.Answer(force.force))
            if j >= 3 and i >= 3:
                place = self._elements[j - 3]
                if self.rest and place.spring is not None and len(place.spring.rest) == 3:
                    r = Vec3(*q[i - 3 : i]) - Vec3(*place.spring.rest)
                    self._vector_spring(out, j - 3, place, r)

    def _vector_spring(self, out: Forces, j: int, element: Element, r: Vec3) -> None:
        assert element.spring is not None
        a, b, c = element.spring.stiffness
        size = smooth_length(r) if b or c else 0.0
        found = laws.spring((a, b, c), size) if b or c else None
        factor = a + size * (b + size * c)
        stored = found.stored if found is not None else 0.5 * a * r.dot(r)
        for k, x in enumerate((r.x, r.y, r.z)):
            self._add(out, "spring", j + k, laws.Answer(-factor * x, stored if k == 0 else 0.0))

    def _tendons(self, out: Forces, q: Scalars, v: Scalars) -> None:
        spatial = any(t.branches for t in self.robot.tendons)
        places = Places(self.robot, q) if spatial else None
        for tendon in self.robot.tendons:
            if not (any(tendon.stiffness) or any(tendon.damping)):
                continue
            L, row = tendon_length(self.robot, tendon, q, places)
            spring, damper = pull(tendon, L, row_times(row, v))
            for k, x in row.items():
                self._add(out, "tendon", k, laws.Answer(x * (spring.force + damper.force)))
            out.stored["tendon"] = out.stored["tendon"] + spring.stored
            out.loss["tendon"] = out.loss["tendon"] + damper.loss

    def _lift(self, out: Forces, q: Scalars, v: Scalars) -> None:
        """The weight of what is carried: gravity forces of a robot of these masses alone."""
        forces = self.compensation(q)
        driven = [element.lifts for element in self._elements]
        out.force["gravity_compensation"] = [
            0.0 if through else force for force, through in zip(forces, driven, strict=True)
        ]
        if any(driven):
            given = zip(out.force["gravity_compensation"], v, strict=True)
            out.loss["gravity_compensation"] = -sum(f * w for f, w in given)
            return
        potential = plain_text(ALGORITHMS["energy"], self.robot, (), self._carried)
        out.stored["gravity_compensation"] = -potential(list(q), [0.0] * self.robot.nv)[1][0]

    def compensation(self, q: Scalars) -> list[Scalar]:
        """(nv): the joint forces that carry the compensated masses."""
        hold = plain_text(ALGORITHMS["gravity_forces"], self.robot, (), self._carried)
        return hold(list(q))[0]

    @cached_property
    def _carried(self) -> Tree:
        tree, links = tree_of(self.robot), list(tree_of(self.robot).links)
        nothing = rigid_inertia(0.0, np.zeros(3), np.zeros((3, 3)))
        links = [replace(link, M=nothing, rotor=0.0) for link in links]
        for b, body in enumerate(self.robot.bodies):
            k = self.robot.skeleton.last[b]
            mass, com = body.lift
            at = links[k].seat.point(Vec3(*com))
            M = rigid_inertia(mass, np.array([at.x, at.y, at.z]), np.zeros((3, 3)))
            links[k] = replace(links[k], M=M)
        return replace(tree, links=tuple(links))
