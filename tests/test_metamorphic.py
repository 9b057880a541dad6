"""The same robot, described differently, moves alike: with a wheel that spins elsewhere, in a turned
world, ten kilometres away, in other units of mass, length and time. Robots of other projects and
closed ones, with limits, friction, damping and springs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from comparing import close
from packages import package
from reference_runs import changed
from scipy.spatial.transform import Rotation

import ramify as rf
from ramify.core.arrays import Array
from ramify.model.elements import Element, Friction, Spring
from ramify.model.frame import Frame
from ramify.model.joint import Joint, Step

pytestmark = pytest.mark.filterwarnings(
    "ignore:(?s).*(check the file|outside its limits):UserWarning",
    "ignore:.*(outside its limits|stops are soft|beyond):RuntimeWarning",
)
FILES = {
    "panda": ("panda_description/urdf/panda.urdf", None),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", None),
    "solo12": ("solo_description/robots/solo12.urdf", "free"),
}
CLOSED = ("four_bar", "three_rrr", "stewart_platform")


def resisted(joint: Joint) -> Joint:
    """With friction, damping and a spring at joints of one freedom, and limits that are met."""
    if len(joint.steps) != 1:
        return joint
    (element,) = joint.machine or (Element(),)
    element = replace(
        element, damping=(0.2, 0.01, 0.003), armature=0.02,
        friction=Friction(0.05, 0.07, static=0.1, stribeck_speed=0.1, slip_speed=0.02),
        spring=Spring((1.5, 0.0, 0.4), (0.1,)),
    )  # fmt: skip
    return replace(joint, elements=(element,), limits=joint.limits or ((-30.0, 30.0),))


@cache
def robot(name: str) -> rf.Model:
    if name in CLOSED:
        model = rf.load(name)
    else:
        file, base = FILES[name]
        model = rf.load(package("example-robot-data") / file, base=base)
    bodies = tuple(replace(body, joint=resisted(body.joint)) for body in model.bodies)
    return replace(model, bodies=bodies)


@cache
def state(name: str) -> tuple[Array, Array, Array]:
    """(q, v, tau): loops closed; without loops the last joint beyond its limit."""
    model, rng = robot(name), np.random.default_rng(3)
    tau = rng.normal(size=model.nv)
    q, v = model.neutral(), 0.3 * rng.normal(size=model.nv)
    for joint in model.joints:
        if len(joint.steps) == 1 and np.ptp(joint.limits[0]) < 50.0:
            (low, high), i = joint.limits[0], model.coordinates.index(joint.name)
            q[i] = low + (high - low) * rng.uniform(0.3, 0.7)
    if model.loops:
        q = model.assemble(guess=None if name in CLOSED else q).q
        free = np.linalg.svd(model.constraints(q).J)[2][model.constraints(q).rank :]
        return q, rng.normal(size=len(free)) @ free, tau
    q[-1] = model.joints[-1].limits[0][1] + 0.02
    return q, v, tau


@dataclass(frozen=True)
class Change:
    """Another description: the robot, and how its states, forces and accelerations are written in
    it; ``time`` is the factor of times.
    """

    model: rf.Model
    q: Callable[[Array], Array]
    v: Callable[[Array], Array]
    tau: Callable[[Array], Array]
    a: Callable[[Array], Array]
    time: float = 1.0


def with_wheel(model: rf.Model) -> Change:
    """Far away on the same base."""
    wheel = (
        rf.Builder("w")
        .link("wheel", at=(3e4, 0, 0), mass=3.0, axis=(1, 2, 3), inertia=(0.1, 0.1, 0.1))
        .model()
    )
    place = wheel.attached["wheel"]._replace(body=len(model.bodies))
    attached = {**model.attached, "wheel": place}
    more = replace(model, bodies=(*model.bodies, wheel.bodies[0]), attached=attached)
    add = [lambda x, y=y: np.append(x, y) for y in (0.0, 1000.0, 0.0, 0.0)]
    return Change(more, *add)


def moved(model: rf.Model, place: Frame) -> Change:
    """All that is fixed to the world at another place in it, gravity turned too."""
    R, r = place.rotation, place.position
    bodies = []
    for body in model.bodies:
        if body.parent < 0 and body.joint.kind != "free":
            joint = replace(body.joint, placement=place @ body.joint.placement)
            body = replace(body, joint=joint)
        bodies.append(body)
    ends = [
        [replace(end, frame=place @ end.frame) if end.link is None else end for end in pair]
        for pair in ((loop.first, loop.second) for loop in model.loops)
    ]
    loops = tuple(
        replace(loop, first=first, second=second)
        for loop, (first, second) in zip(model.loops, ends, strict=True)
    )
    gravity = tuple(float(x) for x in R @ np.array(model.gravity))
    other = replace(model, bodies=tuple(bodies), loops=loops, gravity=gravity)
    free = [joint.name for joint in model.joints if joint.kind == "free"]

    def q(x: Array) -> Array:
        x = np.array(x)
        for name in free:
            i = model.coordinates.index(f"{name}.x")
            turn = Rotation.from_matrix(R) * Rotation.from_quat(x[i + 3 : i + 7], scalar_first=True)
            x[i : i + 7] = [*(R @ x[i : i + 3] + r), *turn.as_quat(scalar_first=True)]
        return x

    def turned(x: Array) -> Array:
        x = np.array(x)
        for name in free:
            k = model.velocities.index(f"{name}.x")
            x[k : k + 3] = R @ x[k : k + 3]
        return x

    return Change(other, q, turned, turned, turned)


def in_units(model: rf.Model, k: float, mu: float, s: float) -> Change:
    """Lengths times k, masses times mu, times times s."""
    steps = [step for joint in model.joints for step in joint.steps]
    length = np.array([1.0 if step.rho else k for step in steps])
    coordinates = np.ones(model.nq)
    for i, name in enumerate(model.coordinates):
        if name in model.velocities and not steps[model.velocities.index(name)].rho:
            coordinates[i] = k
    force = mu * k * k / (s * s) / length

    def element(step: Step, x: Element) -> Element:
        unit = 1.0 if step.rho else k
        f, rate = mu * k * k / (s * s) / unit, unit / s
        dry = x.friction
        if dry is not None:
            dry = replace(
                dry, forward=dry.forward * f, backward=dry.backward * f, static=dry.static * f,
                stribeck_speed=dry.stribeck_speed * rate, slip_speed=(dry.slip_speed or 0.0) * rate,
            )  # fmt: skip
        c1, c2, c3 = x.damping
        spring = x.spring
        if spring is not None:
            cubic = tuple(y * f / unit**i for i, y in enumerate(spring.stiffness, 1))
            spring = Spring(cubic, tuple(unit * y for y in spring.rest))  # type: ignore[arg-type]
        return replace(
            x, armature=x.armature * mu * k * k / unit**2,
            damping=(c1 * f / rate, c2 * f / rate**2, c3 * f / rate**3), friction=dry, spring=spring,
            stop=replace(x.stop, time=x.stop.time * s), effort=x.effort * f, velocity=x.velocity * rate,
        )  # fmt: skip

    def frame(x: Frame) -> Frame:
        return Frame(x.rotation, k * x.position)

    bodies = []
    for body in model.bodies:
        joint = body.joint
        units = [1.0 if step.rho else k for step in joint.steps]
        joint = replace(
            joint, placement=frame(joint.placement), outlet=frame(joint.outlet),
            elements=tuple(element(step, x) for step, x in zip(joint.steps, joint.elements, strict=False)),
            limits=tuple((u * low, u * high) for u, (low, high) in zip(units, joint.limits, strict=False)),
        )  # fmt: skip
        bodies.append(
            replace(body, joint=joint, mass=mu * body.mass, com=k * body.com, inertia=mu * k * k * body.inertia)
        )  # fmt: skip
    loops = tuple(
        replace(
            loop,
            first=replace(loop.first, frame=frame(loop.first.frame)),
            second=replace(loop.second, frame=frame(loop.second.frame)),
            length=k * loop.length,
        )
        for loop in model.loops
    )
    gravity = tuple(k / (s * s) * x for x in model.gravity)
    other = replace(model, bodies=tuple(bodies), loops=loops, gravity=gravity, guess={})
    return Change(
        other, lambda x: coordinates * x, lambda x: length / s * x, lambda x: force * x,
        lambda x: length / (s * s) * x, s,
    )  # fmt: skip


TURN = Rotation.from_euler("xyz", [0.7, -1.9, 2.4]).as_matrix()
CHANGES: dict[str, Callable[[rf.Model], Change]] = {
    "a wheel elsewhere": with_wheel,
    "a turned world": lambda model: moved(model, Frame(TURN)),
    "ten kilometres away": lambda model: moved(model, Frame(np.eye(3), np.array([1e4, -1e4, 5e3]))),
    "other units": lambda model: in_units(model, 10.0, 1e3, 0.2),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [*FILES, *CLOSED])
def test_accelerations_are_the_same(name: str, change: str) -> None:
    model, (q, v, tau) = robot(name), state(name)
    if change == "other units" and not model.loops:  # default stops are laws in SI units
        q = np.append(q[:-1], model.joints[-1].limits[0][1] - 0.02)
    a = model.forward_dynamics(q, v, tau, passive=True)
    other = CHANGES[change](model)
    got = other.model.forward_dynamics(other.q(q), other.v(v), other.tau(tau), passive=True)
    expected = other.a(a)
    scale = np.abs(expected).max()
    close(got / scale, expected / scale, rtol=1e-9, atol=1e-9, of=f"a of {name}")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["ur5", "four_bar", "three_rrr"])
def test_runs_and_audits_are_the_same(name: str, change: str) -> None:
    """Also the verdict on a run whose last joint is 1 % too fast in its rows."""
    model, (q, v, _) = robot(name), state(name)
    options = {"rtol": 1e-10, "atol": 1e-12}
    run = rf.simulate(model, 0.2, q, v, dt_out=0.02, **options)
    other = CHANGES[change](model)
    s = other.time
    same = rf.simulate(other.model, 0.2 * s, other.q(q), other.v(v), dt_out=0.02 * s, **options)
    for i in (5, 10):
        expected = other.q(run.q[i])
        close(same.q[i][: model.nq], expected[: model.nq], rtol=1e-6, atol=1e-6, of=f"q of {name}")
    for found in (run, same):
        assert found.audit.passed, str(found.audit)
        rates = np.array(found.v)
        rates[:, model.nv - 1] *= 1.01
        assert not changed(found, v=rates).audit.passed, str(changed(found, v=rates).audit)
