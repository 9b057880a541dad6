"""What the pages promise, sentence by sentence: an error, a warning, a bound.

A promise is a page, words that stand on it, and a check. The words are looked up, so that a
sentence that changes is looked at again. Promises that another test file keeps are not repeated.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close
from pages import ROOT

import ramify as rf
from ramify.core import errors
from ramify.core.scalar import Scalar
from ramify.core.spatial import Vec3

Check = Callable[[Path], None]
PROMISES: list[tuple[str, str, Check]] = []


def promise(page: str, words: str) -> Callable[[Check], Check]:
    """The check below keeps this sentence of a page."""

    def add(check: Check) -> Check:
        PROMISES.append((page, words, check))
        return check

    return add


def refused(call: Callable[[], Any], message: str, kind: Any = rf.RamifyError) -> Any:
    """The error of a call, whose message matches."""
    with pytest.raises(kind, match=message) as caught:
        call()
    return caught.value


def arm(**joint: Any) -> rf.Model:
    """A rod on a hinge about y."""
    rod: dict[str, Any] = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.01,) * 3}  # fmt: skip
    return rf.Builder("arm").link("rod", **(rod | joint)).model()


def ball(**points: Any) -> rf.Model:
    """A free body with contact points."""
    body: dict[str, Any] = {"joint": "free", "mass": 2.0, "inertia": (0.1,) * 3}
    return rf.Builder("ball").link("ball", **body, points=points or {"sole": (0, 0, 0)}).model()


# ---- errors, arrays, models ----


@promise("errors.md", "Every error that ramify raises on purpose is an `rf.RamifyError`")
def _(folder: Path) -> None:
    kinds = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Exception)]
    assert len(kinds) >= 5
    assert all(issubclass(kind, rf.RamifyError) and issubclass(kind, ValueError) for kind in kinds)


@promise("errors.md", "no built-in robot is named 'kuka'; did you mean 'kuka_kr5'?")
def _(folder: Path) -> None:
    refused(lambda: rf.load("kuka"), "no built-in robot is named 'kuka'; did you mean 'kuka_kr5'")


@promise("errors.md", "kuka_kr5 has no link or frame 'tool0'")
def _(folder: Path) -> None:
    m = rf.load("kuka_kr5")
    refused(lambda: m.pose(m.neutral(), "tool0"), "kuka_kr5 has no link or frame 'tool0'")


@promise("errors.md", "has no mass, so it has kinematics only")
def _(folder: Path) -> None:
    m = rf.from_dh([[0.0, 0.3, 0.0, 0.0]])
    refused(lambda: m.forward_dynamics([0.0], [0.0], [0.0]), "has no mass, so it has kinematics")
    assert m.pose([0.0], m.bodies[-1].name).position.shape == (3,)


@promise("errors.md", "the inertia matrix is singular there: 'b' moves no inertia")
def _(folder: Path) -> None:
    made = rf.Builder("arm").link("a", axis=(0, 1, 0), mass=1.0, com=(0.3, 0, 0))
    m = made.link("b", "a", axis=(1, 0, 0), mass=1.0, com=(0.2, 0, 0)).model()  # on its own axis
    zeros = np.zeros(2)
    refused(lambda: m.forward_dynamics(zeros, zeros, zeros), "'b' moves no (inertia|mass)")
    assert any("b" in str(finding) for finding in m.check())


@promise("errors.md", "a[0] (joint 'joint1') is nan; it must be finite")
def _(folder: Path) -> None:
    m = rf.load("kuka_kr5")
    a = np.zeros(6)
    a[0] = np.nan
    refused(
        lambda: m.inverse_dynamics(np.zeros(6), np.zeros(6), a),
        r"a\[0\] \(joint 'joint1'\) is nan; it must be finite", rf.StateError,
    )  # fmt: skip


@promise("errors.md", "the quaternion base.qw … base.qz (q[3:7]) has length 0")
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free")
    refused(lambda: m.kinematics(np.zeros(m.nq)), r"the quaternion .*qw … .*qz \(q\[3:7\]\) has length 0")  # fmt: skip


@promise(
    "floating-bases.md", "One whose length is within 10⁻⁴ of 1 is normalised; any other is refused"
)
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free")
    q, _ = m.random(seed=2)
    wanted = m.mass_matrix(q)
    for length, fits in ((1.0 + 0.9e-4, True), (1.0 - 0.9e-4, True), (1.0 + 1.1e-4, False), (1.0 - 1.1e-4, False)):  # fmt: skip
        other = q.copy()
        other[3:7] *= length
        rows = np.stack([q, other])  # the second of a batch
        if fits:
            close(m.mass_matrix(rows)[1], wanted, 1e-12, 1e-12, "M")
        else:
            refused(lambda rows=rows: m.mass_matrix(rows), "length", rf.StateError)


@promise("coming-from-others.md", "A model never changes")
def _(folder: Path) -> None:
    m = rf.load("planar_3r")
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.gravity = (0.0, 0.0, 0.0)  # type: ignore[misc]
    M = m.mass_matrix(m.neutral())
    M[:] = 0.0  # what it gave is not its own memory
    assert m.mass_matrix(m.neutral())[0, 0] > 0.0
    for name in ("effort", "lower", "upper", "armature", "rated_velocity", "inertial_parameters"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(m, name)[0] = 1.0


@promise("architecture.md", "is kept in `robot.memo` and never copied or pickled")
def _(folder: Path) -> None:
    m = rf.load("planar_3r")
    m.mass_matrix(m.neutral())
    assert m.memo
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), copy.copy(m), dataclasses.replace(m)):  # fmt: skip
        assert not other.memo
        close(other.mass_matrix(m.neutral()), m.mass_matrix(m.neutral()), 0.0, 0.0, "M")


@promise(
    "conventions.md",
    "Within a tier a state gives the same answer **bit for bit**, alone or in a batch",
)
def _(folder: Path) -> None:
    m = rf.load("spatial_biped")
    q, v = (np.array(x) for x in zip(*(m.random(seed) for seed in range(300)), strict=True))
    for tier in ("rolled", "unrolled"):
        k = m.kernel("forward_dynamics", tier)
        every = k(q, v, 0.0 * v)
        for i in (0, 1, 7, 129, 299):
            assert (k(q[i], v[i], 0.0 * v[i]) == every[i]).all()
        for count in (1, 2, 3):
            assert (k(q, v, 0.0 * v, threads=count) == every).all()


@promise("conventions.md", "An answer that would not be finite is an error with its reason")
def _(folder: Path) -> None:
    m = rf.load("planar_3r")
    v = np.full(3, 1e200)
    refused(lambda: m.bias(np.zeros(3), v), "overflow|not finite|too large")


@promise("conventions.md", "- Masked arrays with hidden entries are refused")
def _(folder: Path) -> None:
    m = rf.load("planar_3r")
    refused(lambda: m.mass_matrix(np.ma.array(np.zeros(3), mask=[0, 1, 0])), "mask", rf.StateError)


# ---- ground ----


def laws() -> list[Any]:
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for _ in range(20):
        k, c, mu, slip = rng.uniform(100.0, 1e5), rng.uniform(0.0, 1e4), rng.uniform(0, 2), rng.uniform(1e-3, 1)  # fmt: skip
        made += [
            rf.contact.Firm(stiffness=k, damping=c, friction=mu),
            rf.contact.Dusty(stiffness=k, damping=c, friction=mu, dust=float(rng.uniform(0, 0.02))),
            rf.contact.HuntCrossley(stiffness=k, dissipation=c / 100.0, friction=mu, slip_speed=slip),
        ]  # fmt: skip
    return [law.fitted(ball()) for law in made]


def answers() -> list[tuple[Any, Any, Vec3]]:
    """Laws, what they answer and the velocity, at random places and speeds."""
    rng, out = np.random.default_rng(1), []
    for law in laws():
        for _ in range(20):
            place: list[Scalar] = [*rng.normal(size=2), rng.uniform(-0.1, 0.02)]
            velocity = Vec3(*rng.normal(size=3) * 10.0 ** rng.uniform(-4, 1))
            out.append((law, law.reaction(Vec3(*place), velocity), velocity))
    return out


@promise("ground.md", "**the ground never pulls**")
def _(folder: Path) -> None:
    for law, r, _ in answers():
        assert r.force.z >= 0.0, law
        assert r.depth > 0.0 or r.force.z == 0.0, law


@promise("ground.md", "Here it acts against the slip and never exceeds μ N")
def _(folder: Path) -> None:
    for law, r, _ in answers():
        along = np.hypot(r.force.x, r.force.y)
        assert along <= law.friction * r.force.z * (1.0 + 1e-12), law
        assert r.force.x * r.slip.x + r.force.y * r.slip.y <= 0.0, law


@promise("ground.md", "and is never negative, whatever the numbers of the law")
def _(folder: Path) -> None:
    for law, r, velocity in answers():
        assert r.loss >= -1e-9 * (1.0 + abs(r.force.dot(velocity))), law


@promise(
    "ground.md", "ramify warns of a fixed step that is too long and names one that is short enough"
)
def _(folder: Path) -> None:
    m = rf.load("quadruped")
    q = m.neutral()
    q[2] = 0.7
    options: dict[str, Any] = {"ground": "firm", "method": "rk4"}
    with pytest.warns(RuntimeWarning, match="needs steps below") as caught:
        rf.rollout(m, q, np.zeros(m.nv), steps=1, dt=5e-3, **options)
    said = re.search(r"needs steps below (\S+) s", str(caught[0].message))
    assert said is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rf.rollout(m, q, np.zeros(m.nv), steps=1, dt=0.99 * float(said[1]), **options)


@promise("ground.md", "on level ground. `Firm.of_redysim` does")
def _(folder: Path) -> None:
    slope = rf.contact.Slope(angle=0.1)
    refused(lambda: rf.contact.Firm(per_axis=True, terrain=slope), "per_axis is for level ground")


# ---- machines ----


@promise(
    "machines.md", "but at most 1 % of the rated `velocity`, or 0.05 rad/s (m/s) where none is"
)
def _(folder: Path) -> None:
    """At ten times the slip speed friction is whole; so the slip speed is read off the force."""

    def slip(**joint: Any) -> float:
        m = arm(friction=2.0, **joint)
        v = 1e-4
        share = float(-m.passive_forces([0.0], [v]).total[0]) / 2.0
        return v * np.sqrt(1.0 / share**2 - 1.0)

    own = 2.0 / 0.1 * 1e-3  # stops in a millisecond, with an inertia of 0.1 kg m²
    close(slip(), min(own, 0.05), 1e-6, of="without a velocity")
    close(slip(velocity=1.0), 0.01, 1e-6, of="1 % of the velocity")
    close(slip(velocity=100.0), own, 1e-6, of="in a millisecond")


@promise("machines.md", "the weight on the joint presses it in by no more than")
def _(folder: Path) -> None:
    """A heavy rod that hangs on its stop, at rest; the joint of a light one, too."""
    for mass in (0.1, 1.0, 300.0):
        m = arm(mass=mass, limits=(-1.0, 0.2), damping=5.0 * mass)
        r = rf.simulate(m, 6.0, [0.0], dt_out=1.0)
        assert abs(r.v[-1, 0]) < 1e-3
        assert 0.0 < r.q[-1, 0] - 0.2 < 2e-3


@promise("machines.md", "so that there is no jump at touch, and the force never")
def _(folder: Path) -> None:
    m = arm(limits=(-1.0, 0.2))
    q = 0.2 + np.linspace(-0.01, 0.05, 601)[:, None]
    for rate in (-50.0, -1.0, 0.0, 1.0, 50.0):
        force = m.passive_forces(q, np.full_like(q, rate)).total[:, 0]
        assert (force <= 0.0).all()  # it pushes back into the range
        assert (force[q[:, 0] <= 0.2] == 0.0).all()
    tiny = m.passive_forces([[0.2 + 1e-9]], [[1.0]]).total[0, 0]
    deep = m.passive_forces([[0.25]], [[1.0]]).total[0, 0]
    assert abs(tiny) < 1e-4 * abs(deep)


@promise(
    "machines.md", "`rf.simulate`, `rf.rollout` and `rf.linearize` clamp joint forces to `effort`"
)
def _(folder: Path) -> None:
    m = arm(effort=2.0)
    for efforts, most in ((True, 2.0), (False, 9.0)):
        r = rf.simulate(m, 0.01, control=rf.control.Torque([9.0]), efforts=efforts)
        assert r.tau.max() == most
        one = rf.rollout(m, [0.0], [0.0], steps=1, dt=1e-3, tau=[9.0], efforts=efforts, method="euler")  # fmt: skip
        close(one.v, 1e-3 * m.forward_dynamics([0.0], [0.0], [most]), 1e-12, 1e-15, "v")


# ---- control, simulation ----


@promise("control.md", "and never a free base")
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free")
    law = rf.control.PD(rf.motion.Hold(np.full(12, 0.3)), kp=10.0, kd=1.0)
    q, v = m.random(seed=1)
    assert (law.torque(m, 0.0, q, v)[:6] == 0.0).all()


@promise("control.md", "a force there is an error, since nothing could exert it")
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free")
    push = np.zeros(m.nv)
    push[2] = 100.0
    refused(lambda: rf.simulate(m, 0.01, control=lambda t, q, v: push), "base|driven|actuated")


@promise("control.md", "Any other shape is an error that names the one you gave and those that fit")
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free")
    said = str(refused(lambda: rf.simulate(m, 0.01, control=lambda t, q, v: np.zeros(5)), "shape"))
    assert all(shape in said for shape in ("(5,)", "(18,)", "(12,)"))


@promise("simulation.md", "so a motion that ends with a step is never evaluated beyond its end")
def _(folder: Path) -> None:
    asked: list[float] = []

    def law(t: float, q: Any, v: Any) -> Any:
        asked.append(t)
        return np.zeros(2)

    for method in ("rk4", "euler", "dop853"):
        step = {} if method == "dop853" else {"step": 0.01}
        rf.simulate(rf.load("two_link"), 0.1, control=law, method=method, **step)
    assert min(asked) >= 0.0
    assert max(asked) <= 0.1 + 1e-12


@promise("simulation.md", "`every` must not be more than `steps`")
def _(folder: Path) -> None:
    m = rf.load("two_link")
    refused(lambda: rf.rollout(m, [0, 0], [0, 0], steps=3, dt=1e-3, every=4), "every=4 is more than steps=3")  # fmt: skip


@promise("simulation.md", "An event that is zero at the start has not changed its sign")
def _(folder: Path) -> None:
    r = rf.simulate(arm(), 3.0, [0.3], events={"back": lambda t, q, v: q[0] - 0.3})
    assert r.t[-1] > 0.1


@promise(
    "simulation.md", "A controller that raises or gives NaN, a state that grows beyond all bounds"
)
def _(folder: Path) -> None:
    def fails(t: float, q: Any, v: Any) -> Any:
        raise ZeroDivisionError("division by zero") if t > 0.02 else None

    error = refused(
        lambda: rf.simulate(arm(), 0.1, control=lambda t, q, v: [0.0] if t < 0.02 else fails(t + 1.0, q, v)),
        "t = 0.0", rf.SimulationError,
    )  # fmt: skip
    assert error.result.t[-1] <= 0.03
    refused(lambda: rf.simulate(arm(), 5.0, control=lambda t, q, v: 1e4 * v + 1.0), "runs away.*'rod'|'rod'.*runs away|rate of 'rod'", rf.SimulationError)  # fmt: skip


@promise("simulation.md", 'It does not take quaternions: use `base="free_euler"`')
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free")
    refused(lambda: rf.simulate(m, 0.1, method="energy", step=0.01), "free_euler")


@promise("errors.md", "A simulation never mixes")
def _(folder: Path) -> None:
    """Runs before, between and after all kernels of the robot became straight-line code."""
    m = rf.load("kuka_kr5")
    law = rf.control.ComputedTorque(rf.motion.Cycloid(0.0, np.full(6, 0.5), duration=0.2))
    runs = []
    for tier in (None, "rolled", "unrolled"):
        for name in ("forward_dynamics", "inverse_dynamics", "mass_matrix"):
            m.kernel(name, tier)(*(np.zeros(6),) * (1 if name == "mass_matrix" else 3))
        runs.append(rf.simulate(m, 0.2, control=law))
    for run in runs[1:]:
        for name in ("q", "v", "a", "tau"):
            assert (getattr(run, name) == getattr(runs[0], name)).all(), name


# ---- loops, kinematics, motion ----


@promise("loops.md", "refuse a q that is open by more than a thousandth of the robot's size")
def _(folder: Path) -> None:
    m = rf.load("four_bar")
    s = m.assemble({m.coordinates[0]: 0.7})
    zeros = np.zeros(m.nv)
    near, far = s.q.copy(), s.q.copy()
    near[1] += 1e-5
    far[1] += 0.05
    for f in (m.forward_dynamics, m.inverse_dynamics):
        f(near, zeros, zeros)
        refused(lambda f=f: f(np.stack([s.q, far]), zeros, zeros), "open", rf.LoopError)


@promise("errors.md", "four_bar cannot be assembled with rocker = 3")
def _(folder: Path) -> None:
    m = rf.load("four_bar")
    name = m.coordinates[-1]
    refused(lambda: m.assemble({name: 3.0}), f"cannot be assembled with {name} = 3", rf.LoopError)


@promise(
    "hybrid-dynamics.md", "Where u · f ≤ 0 the ground would have to pull, and that is an error"
)
def _(folder: Path) -> None:
    m = ball()
    a = np.zeros(6)
    a[2] = -9.9  # faster than it falls
    refused(lambda: m.zero_moment_point(m.neutral(), np.zeros(6), a), "pull")
    a[2] = -9.7
    close(m.zero_moment_point(m.neutral(), np.zeros(6), a)[:2], [0.0, 0.0], of="point")


@promise("inverse-kinematics.md", "A target that is not met is an error that names it")
def _(folder: Path) -> None:
    m = rf.load("kuka_kr5")
    target = rf.motion.Target("link6", [9.0, 0.0, 0.0])
    said = str(refused(lambda: rf.ik(m, target), "target 0 .*link6.* is not met"))
    left = float(re.search(r"([\d.]+) m remain", said)[1])  # type: ignore[index]
    found = rf.ik(m, target, strict=False)
    close(np.linalg.norm(m.pose(found.q, "link6").position - [9.0, 0, 0]), left, 1e-3, of="m")


@promise(
    "inverse-kinematics.md",
    "Entries of a quaternion by name (`platform.qw`) must be given all four",
)
def _(folder: Path) -> None:
    m = rf.load("stewart_platform")
    name = next(x for x in m.coordinates if x.endswith(".qw"))
    refused(lambda: m.assemble({name: 1.0}), "part of the quaternion of 'platform'; add .*qx")


@promise("inverse-kinematics.md", "such that no joint passes its limits within the period")
def _(folder: Path) -> None:
    m = rf.load("kuka_kr5")
    low, high = np.full(6, -0.5), np.full(6, 0.5)
    rng = np.random.default_rng(0)
    speeds = np.full(6, 2.0)
    for _ in range(10):
        q = rng.uniform(low, high)
        target = rf.motion.Target("link6", m.pose(q, "link6").position + rng.normal(size=3))
        v = rf.differential_ik(m, q, target, 0.3, limits=np.c_[low, high], speeds=speeds)
        assert (np.abs(v) <= speeds * (1.0 + 1e-9)).all()
        after = m.integrate(q, v, 0.3)
        assert (after >= low - 1e-9).all()
        assert (after <= high + 1e-9).all()


@promise("motion.md", "times that do not rise, shapes that do not fit, numbers that are not finite")
def _(folder: Path) -> None:
    points = [[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]]
    motion: Any = rf.motion
    bad: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: motion.Spline([0.0, 2.0, 1.0], points), "rise"),
        (lambda: motion.Spline([0.0, 1.0], points), "shape|points|times"),
        (lambda: motion.Spline([0.0, 1.0, np.nan], points), "finite"),
        (lambda: motion.Cycloid([0.0, 0.0], [1.0, np.inf], duration=1.0), "finite"),
    )
    for call, message in bad:
        refused(call, message, rf.StateError)


@promise("motion.md", "must bring its rates and accelerations, `TimeFunction(q, v, a)`")
def _(folder: Path) -> None:
    refused(lambda: rf.motion.TimeFunction(lambda t: [float(np.sin(t))]).at(0.3), "v|rates")


@promise("errors.md", "joint 'base' is in gimbal lock")
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free_euler")
    (lock,) = {s.joint for s in m.singularities(m.neutral(), tolerance=10.0)}
    rows = np.tile(m.neutral(), (2, 1))
    rows[1, 4] = np.pi / 2  # the second of a batch
    tau = np.zeros(m.nv)
    refused(lambda: m.forward_dynamics(rows, tau, tau), f"{lock}.* is in gimbal lock.*(ball|free)")


@promise("errors.md", "the loops of 'four_bar' are open at q")
def _(folder: Path) -> None:
    m = rf.load("four_bar")
    zeros, far = np.zeros(m.nv), m.assemble().q + 0.2
    refused(lambda: m.forward_dynamics(far, zeros, zeros), "the loops of 'four_bar' are open at q")


@promise("errors.md", "the controller gave nan for 'joint1' at t = 0 s")
def _(folder: Path) -> None:
    m = rf.load("planar_3r")
    refused(
        lambda: rf.simulate(m, 0.1, control=lambda t, q, v: [np.nan, 0.0, 0.0]),
        "the controller gave nan for 'joint1' at t = 0 s", rf.SimulationError,
    )  # fmt: skip


@promise("errors.md", "starts at 0, outside its limits (-3, -0.05)")
def _(folder: Path) -> None:
    m = arm(limits=(-3.0, -0.05))
    other = arm(limits=(-3.0, -0.05))
    for run in (
        lambda: rf.simulate(m, 0.01),
        lambda: rf.rollout(
            other, [[-1.0], [0.0]], np.zeros((2, 1)), steps=1, dt=1e-3
        ),  # the second
    ):
        with pytest.warns(RuntimeWarning, match=r"'rod' starts at 0, outside its limits \(-3, -0.05\)"):  # fmt: skip
            run()
    assert any("limits" in str(finding) for finding in m.check())


@promise("errors.md", "`1 of 4 states failed`** (a warning of `rf.rollout`)")
def _(folder: Path) -> None:
    m = arm()
    q, v = np.zeros((4, 1)), np.zeros((4, 1))
    v[2] = 2e5
    with pytest.warns(RuntimeWarning, match="1 of 4 states failed; state 2"):
        run = rf.rollout(m, q, v, steps=3, dt=1e-3)
    assert run.status.failed.tolist() == [False, False, True, False]
    assert np.isnan(run.q[2]).all()
    assert np.isfinite(run.q[[0, 1, 3]]).all()


@promise("results.md", "so 2 n `rtol`, n at least 50, kept between 1e-12 and 1e-3")
def _(folder: Path) -> None:
    m = arm()
    for rtol in (1e-6, 1e-9):
        r = rf.simulate(m, 1.0, [0.1], rtol=rtol, atol=rtol)
        n = max(50, int(r.stats["steps"]))
        close(r.audit.tolerance, np.clip(2.0 * n * rtol, 1e-12, 1e-3), 1e-9, of="tolerance")


@promise("inverse-kinematics.md", "A posture never spoils the tasks that must be met")
def _(folder: Path) -> None:
    m = rf.load("kuka_kr5")
    goal = m.pose([0.3, 0.4, 0.3, 0.2, 0.3, 0.1], "link6")
    target = rf.motion.Target("link6", goal.position)
    for pull in (np.zeros(6), np.full(6, 1.0), np.full(6, -1.0)):
        found = rf.ik(m, [target, rf.motion.KeepPosture(pull)])
        close(m.pose(found.q, "link6").position, goal.position, 0.0, 1e-6, "position")


@promise("seeing.md", "at most three times the robot's weight")
def _(folder: Path) -> None:
    from ramify.view.live_machine import LiveMachine, Pull

    m = ball()
    machine = LiveMachine(m, m.neutral())
    machine.advance(1, Pull(0, np.zeros(3), np.array([0.0, 0.0, 1e6])))
    machine.advance(30, Pull(0, np.zeros(3), np.array([0.0, 0.0, 1e6])))
    rate = machine.v[2] / machine.time + 9.81
    assert rate <= 3.0 * 9.81 * (1.0 + 1e-9)


# ---- files, exports ----


@promise("mjcf.md", "Pictures and files of height fields are never opened")
def _(folder: Path) -> None:
    text = """<mujoco><asset><texture name="t" type="2d" file="nowhere.png"/>
    <hfield name="h" file="nowhere.bin" size="1 1 1 1"/></asset><worldbody>
    <body name="rod"><joint name="j"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
    (folder / "x.xml").write_text(text)
    assert rf.load(folder / "x.xml").nv == 1


@promise(
    "fmi.md",
    "Python functions as controllers, sampled controllers (`rate_hz`) and prescribed motions are refused",
)
def _(folder: Path) -> None:
    m = rf.load("planar_3r")
    hold = rf.motion.Hold(np.zeros(3))
    for control in (
        lambda t, q, v: 0.0 * v,
        rf.control.PD(hold, kp=1.0, rate_hz=100.0),
        rf.control.Prescribed(hold),
    ):
        refused(lambda control=control: rf.to_fmu(m, folder / "x.fmu", control=control), ".")
        assert not (folder / "x.fmu").exists()


@promise("machines.md", "`coulomb` may be `{forward, backward}`, neither negative")
def _(folder: Path) -> None:
    def sliding(forward: float, backward: float) -> list[float]:
        coulomb = {"coulomb": {"forward": forward, "backward": backward}, "slip_speed": 1e-6}
        m = rf.Builder("r").link("a", mass=1.0, friction=coulomb).model()
        return [float(m.passive_forces([0.0], [v]).total[0]) for v in (1.0, -1.0)]

    np.testing.assert_allclose(sliding(2.0, 0.0), [-2.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(sliding(0.0, 0.0), [0.0, 0.0], atol=1e-9)
    refused(lambda: sliding(2.0, -1.0), "backward")


@promise("urdf.md", "such a model is refused with the names of the joints")
def _(folder: Path) -> None:
    made = rf.Builder("odd").link("nut", joint="helical", pitch=0.1, mass=1.0, inertia=(1, 1, 1))
    m = made.link("wrist", "nut", joint="ball", mass=1.0, inertia=(1, 1, 1)).model()
    said = str(refused(lambda: m.save(folder / "odd.urdf"), "URDF"))
    assert "nut" in said
    assert "wrist" in said


@promise("robot-files.md", "where the joint is: exactly one of them")
def _(folder: Path) -> None:
    text = "name: x\nlinks:\n  - {name: a, mass: 1, inertia: [1, 1, 1], joint: {type: revolute, dh: [0, 0, 0, 0], frame: {xyz: [0, 0, 1]}}}\n"  # fmt: skip
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    refused(lambda: rf.load(folder / "x.yaml"), "dh.*frame|frame.*dh", rf.ModelError)


@promise("robot-files.md", "A file has at most 1 MiB")
def _(folder: Path) -> None:
    head = "name: x\nlinks:\n  - {name: a, mass: 1, inertia: [1, 1, 1], frame: {xyz: [0, 0, 0]}}\n"
    path = folder / "x.yaml"
    path.write_text(head + "#" * (2**20 - len(head)), encoding="utf-8")
    assert rf.load(path).nv == 1
    path.write_text(head + "#" * (2**20 - len(head) + 1), encoding="utf-8")
    refused(lambda: rf.load(path), "at most 1.0 MB", rf.ModelError)


@promise("mjcf.md", "What MuJoCo refuses becomes a `ModelError` with its message")
def _(folder: Path) -> None:
    (folder / "x.xml").write_text("<mujoco><worldbody><body><joint type='hinge'/></body></worldbody></mujoco>")  # fmt: skip
    refused(lambda: rf.load(folder / "x.xml"), "mass|inertia", rf.ModelError)


@promise("urdf.md", "is refused with its line")
def _(folder: Path) -> None:
    for bad in ("<!-- a -- b -->", "<link name='a & b'/>"):
        (folder / "x.urdf").write_text(f"<robot name='r'>\n<link name='a'/>\n{bad}\n</robot>")
        refused(lambda: rf.load(folder / "x.urdf"), "x.urdf:3", rf.ModelError)


@promise("scenarios.md", "A `.xacro` file is refused")
def _(folder: Path) -> None:
    (folder / "r.xacro").write_text("<robot name='r'><link name='a'/></robot>")
    (folder / "s.yaml").write_text("name: s\nrobot: r.xacro\nt_end: 1\n")
    refused(lambda: rf.scenario(folder / "s.yaml"), "xacro", rf.RamifyError)


@promise("results.md", "gives the same numbers, bit for bit")
def _(folder: Path) -> None:
    m = rf.load("quadruped")
    q = m.neutral()
    q[2] = 0.62
    r = rf.simulate(m, 0.05, q, ground="firm")
    r.save(folder / "r.nc")
    again = rf.Result.open(folder / "r.nc")
    for name in ("t", "q", "v", "a", "tau"):
        assert (getattr(again, name) == getattr(r, name)).all(), name
    assert r.contacts is not None
    assert again.contacts is not None
    assert (again.contacts.force == r.contacts.force).all()


# ---- studies, environments ----


@promise("studies.md", "A parameter that changes the number of joints is refused")
def _(folder: Path) -> None:
    refused(
        lambda: rf.study(
            name="s", scenario={"name": "s", "robot": {"name": "chain", "n": 3}, "t_end": 0.01},
            vary={"robot.n": [2, 3, 4]}, ledger=folder / "s.db",
        ).run(engine="serial"),
        "columns|joints|number",
    )  # fmt: skip


@promise("studies.md", "one row of output in `every` and always the last row")
def _(folder: Path) -> None:
    s = rf.study(
        name="s", scenario={"name": "s", "robot": "two_link", "t_end": 0.1, "dt_out": 0.01},
        vary={"initial.q.joint1": [0.1, 0.2]}, keep={"history": {"of": ["q"], "every": 4}},
        ledger=folder / "s.db",
    )  # fmt: skip
    assert s.run(engine="serial").done == 2
    names, rows = s.history(1)
    alone = s.scenario(1).run()
    close(rows[:, names.index("t")], [0.0, 0.04, 0.08, 0.1], of="t")
    close(rows[:, names.index("q.joint1")], alone.q[[0, 4, 8, 10], 0], 1e-9, 1e-9, "q")


@promise("environments.md", "**Actions** lie in [-1, 1], one per driven joint")
def _(folder: Path) -> None:
    from ramify.envs import RobotVectorEnv

    m = rf.load("quadruped", base="free")
    env = RobotVectorEnv(m, 2, reward=lambda a, b: 0.0, scale=1.0, dt=1e-3)
    assert env.single_action_space.shape == (12,)
    assert (env.single_action_space.low == -1.0).all()
    far, edge = (copy.deepcopy(env) for _ in range(2))
    np.testing.assert_array_equal(far.step(np.full((2, 12), 7.0))[0], edge.step(np.ones((2, 12)))[0])  # fmt: skip


@pytest.mark.parametrize(
    ("page", "words", "check"), PROMISES, ids=[f"{page}: {words[:50]}" for page, words, _ in PROMISES]
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*left out, which changes the motion")
def test_the_promise_is_kept(page: str, words: str, check: Check, tmp_path: Path) -> None:
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert " ".join(words.split()) in text, f"docs/{page} no longer says {words!r}"
    check(tmp_path)
