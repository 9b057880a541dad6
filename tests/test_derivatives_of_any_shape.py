"""Derivatives of rollouts and linear systems for every shape of tau and every time of the start, state
by state: batches whose states differ, tables, segments, machines in which time matters.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.core.arrays import Array

STEPS, DT, T0 = 12, 4e-3, 0.35


def rider() -> rf.Model:
    """A free base with an arm: more coordinates than velocities."""
    b = rf.Builder("rider", gravity=(0.5, -1.0, -9.0))
    b.link("base", joint="free", mass=2.0, com=(0.1, 0.0, 0.2), inertia=(0.2, 0.3, 0.4))
    b.link("arm", "base", at=(0.3, 0.1, 0.0), axis=(0, 1, 0), mass=0.5, com=(0, 0.1, 0.2), damping=0.2,
           spring={"stiffness": 3.0, "rest": 0.4}, inertia=(0.01, 0.02, 0.01))  # fmt: skip
    return b.model()


def swing() -> rf.motion.Trajectory:
    return rf.motion.Quintic([0.2], [0.9], 1.0)


def states(model: rf.Model, count: int = 3) -> tuple[Array, Array]:
    drawn = [model.random(seed=s) for s in range(count)]
    return np.array([x[0] for x in drawn]), np.array([x[1] for x in drawn])


SHAPES = [(7,), (STEPS, 7), (3, 1, 7), (3, STEPS, 7), (1, STEPS, 7), None]


@pytest.mark.parametrize("method", ["rk4", "implicit_euler"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_state_by_state_for_any_shape_of_tau(shape: Any, method: str) -> None:
    """Every entry that tau shares is counted once for each state and step that it acts on; the PD
    follows a motion in time, so that the derivative depends on t0.
    """
    model = rider()
    q, v = states(model)
    rng = np.random.default_rng(1)
    tau = None if shape is None else rng.normal(size=shape)
    follow = rf.control.PID(swing(), kp=20.0, ki=30.0, kd=1.0, actuated=["arm"])
    options: dict[str, Any] = {"steps": STEPS, "dt": DT, "t0": T0, "control": follow, "method": method, "every": 5}  # fmt: skip

    def run(dq: Any = 0.0, dv: Any = 0.0, dtau: Any = 0.0) -> rf.Rollout:
        given = dtau if tau is None else tau + dtau
        given = None if tau is None and np.ndim(dtau) == 0 else given
        start = q if np.ndim(dq) == 0 else model.integrate(q, dq, 1.0)
        return rf.rollout(model, start, v + dv, tau=given, **options)

    made = run()
    assert made.q.shape == (3, 2, model.nq)
    by_q, by_v = rng.normal(size=made.v.shape), rng.normal(size=made.v.shape)
    found = made.gradient(by_q, by_v)
    assert found.tau.shape == ((3, 7) if shape is None else shape)
    again = made.gradient(by_q, by_v, memory=3000)
    for name in ("q0", "v0", "tau"):
        close(getattr(again, name), getattr(found, name), 1e-9, 1e-10, f"{name} in segments")

    def change(**along: Any) -> Array:
        h = 1e-5
        ahead, behind = (run(**{name: s * h * x for name, x in along.items()}) for s in (1, -1))
        rates = by_q * model.difference(behind.q, ahead.q) + by_v * (ahead.v - behind.v)
        return rates.sum(axis=(1, 2)) / (2 * h)

    for k in (0, 4, 6):
        e = np.zeros((3, 7))
        e[:, k] = 1.0
        close(found.q0[:, k], change(dq=e), 2e-5, 2e-5, f"by q0, {k}")
        close(found.v0[:, k], change(dv=e), 2e-5, 2e-5, f"by v0, {k}")
    for _ in range(3):
        if shape is None:
            k = int(rng.integers(7))
            e = np.zeros((3, 1, 7))
            e[..., k] = 1.0
            close(found.tau[:, k], change(dtau=e), 2e-5, 2e-5, f"by a force at {k}")
            continue
        at = tuple(int(rng.integers(n)) for n in shape)
        e = np.zeros(shape)
        e[at] = 1.0
        close(found.tau[at], change(dtau=e).sum(), 2e-5, 2e-5, f"by tau{list(at)}")
    directions = {"q0": rng.normal(size=(3, 7)), "v0": rng.normal(size=(3, 7)), "tau": None if tau is None else rng.normal(size=shape)}  # fmt: skip
    tangent = made.tangent(**directions)
    along = {f"d{name.removesuffix('0')}": x for name, x in directions.items() if x is not None}
    rates = (by_q * tangent.q + by_v * tangent.v).sum(axis=(1, 2))
    close(rates, change(**along), 2e-5, 2e-5, "tangent")


@pytest.mark.parametrize("per_state", [False, True])
def test_sensitivities_are_those_of_each_state(per_state: bool) -> None:
    """By the start, by a constant force and by parameters, one state at a time."""
    model = rider()
    q, v = states(model)
    rng = np.random.default_rng(2)
    tau = rng.normal(size=(3, STEPS, 7) if per_state else (STEPS, 7))
    masses, place = np.array([0.5, 0.6, 0.8]), rng.normal(size=(3, 3)) * 0.1
    follow = rf.control.PD(swing(), kp=20.0, kd=1.0, actuated=["arm"])
    options: dict[str, Any] = {"steps": STEPS, "dt": DT, "t0": T0, "control": follow, "method": "rk4"}  # fmt: skip

    def run(i: int, dq: Any, dv: Any, dtau: Any, dm: float, dc: Any) -> rf.Rollout:
        start = model.integrate(q[i], dq, 1.0)
        forces = (tau[i] if per_state else tau) + dtau
        numbers = {"arm.mass": masses[i] + dm, "arm.com": place[i] + dc}
        return rf.rollout(model, start, v[i] + dv, tau=forces, parameters=numbers, **options)

    made = rf.rollout(model, q, v, tau=tau, parameters={"arm.mass": masses, "arm.com": place}, **options)  # fmt: skip
    found = made.sensitivity()
    assert [*found.parameters] == ["arm.mass", "arm.com"]
    zero, h = np.zeros(7), 1e-6
    for i in range(3):

        def change(i: int = i, **along: Any) -> Array:
            none = {"dq": zero, "dv": zero, "dtau": zero, "dm": 0.0, "dc": np.zeros(3)}
            ahead, behind = (run(i, **none | {k: s * h * x for k, x in along.items()}) for s in (1, -1))  # fmt: skip
            moved = model.difference(behind.q, ahead.q), ahead.v - behind.v
            return np.concatenate(moved, axis=-1) / (2 * h)

        for k in (1, 3, 6):
            e = np.eye(7)[k]
            close(found.x0[i, :, k], change(dq=e), 1e-5, 1e-5, f"state {i} by q0, {k}")
            close(found.x0[i, :, 7 + k], change(dv=e), 1e-5, 1e-5, f"state {i} by v0, {k}")
            close(found.tau[i, :, k], change(dtau=e), 1e-5, 1e-5, f"state {i} by tau, {k}")
        close(found.parameters["arm.mass"][i, :, 0], change(dm=1.0), 1e-5, 1e-5, "by mass")
        for k in range(3):
            by = change(dc=np.eye(3)[k])
            close(found.parameters["arm.com"][i, :, k], by, 1e-5, 1e-5, f"by com {k}")


def test_a_state_that_failed_has_no_gradient_whenever_it_failed() -> None:
    """The first sample is not finite, or only the last one."""
    model = rf.Builder("slide").link("a", joint="prismatic", mass=1.0).model()
    q, v = np.zeros((3, 1)), np.array([[0.1], [0.2], [0.3]])
    tau = np.zeros((3, 6, 1))
    tau[2, 4:] = 1e9
    with pytest.warns(RuntimeWarning, match="1 of 3 states failed; state 2"):
        made = rf.rollout(model, q, v, tau=tau, steps=6, dt=0.1, every=1, method="rk4")
    assert np.isfinite(made.q[2, :4]).all()
    assert np.isnan(made.q[2, 4:]).all()
    with pytest.raises(rf.SimulationError, match="state 2 of the rollout failed"):
        made.gradient(np.ones((3, 6, 1)))


# ---- linear systems ----


def dry(velocity: float = 0.0) -> rf.Model:
    b = rf.Builder("dry")
    b.link("a", mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0.3, 0.0, 0.1), axis=(0, 1, 0), damping=0.5,
           effort=3.0, friction={"coulomb": 0.4, "static": 0.9, "stribeck_speed": 0.3, "slip_speed": 0.02})  # fmt: skip
    b.link("b", "a", "prismatic", at=(0.2, 0, 0), axis=(1, 0, 0), mass=0.7, com=(0.1, 0, 0),
           limits=[(-0.2, 0.3)], spring={"stiffness": 30.0, "rest": 0.1}, friction={"coulomb": 0.3, "slip_speed": 0.05})  # fmt: skip
    return b.model()


def accelerations(model: rf.Model, q: Array, v: Array, tau: Array, **acting: Any) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.forward_dynamics(q, v, tau, **acting)


SWITCHES: list[dict[str, Any]] = [
    {}, {"passive": False}, {"stops": False}, {"efforts": False}, {"passive": False, "stops": True},
]  # fmt: skip


@pytest.mark.parametrize("switch", SWITCHES, ids=str)
@pytest.mark.filterwarnings("ignore:.*beyond its limit")
def test_every_switch_of_a_linear_system_acts(switch: dict[str, Any]) -> None:
    """At states beyond a stop and beyond an effort; stops follow passive unless they are set."""
    model = dry()
    q, v = np.array([[0.3, 0.1], [-0.5, 0.31], [0.9, -0.22]]), np.array([[0.7, -0.6], [-1.1, 0.4], [0.5, 0.9]])  # fmt: skip
    tau = np.array([[1.0, 2.0], [-9.0, 0.5], [5.0, -1.0]])
    found = rf.linearize(model, q, v, tau, **switch)
    acting = {"passive": True, "efforts": True, **switch}
    acting.setdefault("stops", acting["passive"])
    h = 1e-6
    for k, e in enumerate(np.eye(2)):
        slopes = [
            accelerations(model, q + s * h * e, v, tau, **acting) for s in (1, -1)
        ], [accelerations(model, q, v + s * h * e, tau, **acting) for s in (1, -1)], [
            accelerations(model, q, v, tau + s * h * e, **acting) for s in (1, -1)
        ]  # fmt: skip
        by_q, by_v, by_tau = ((a - b) / (2 * h) for a, b in slopes)
        close(found.A[:, 2:, k], by_q, 1e-5, 1e-4, f"by q, {k}")
        close(found.A[:, 2:, 2 + k], by_v, 1e-5, 1e-4, f"by v, {k}")
        close(found.B[:, 2:, k], by_tau, 1e-5, 1e-6, f"by tau, {k}")


def test_slow_joints_of_any_state_are_named_and_fast_ones_are_not() -> None:
    """With the damper that friction is near rest: the larger of both forces over the slip speed."""
    model = dry()
    q, tau = np.zeros((3, 2)), np.zeros((3, 2))
    fast = np.array([[0.5, -0.4], [-0.6, 0.3], [0.4, -0.5]])
    cases = [
        (fast, ""),
        (fast * [[1, 1], [1, 1], [0.01, 1]], "'a' of .* slip speed of its dry friction, 0.02 rad/s; .* damper of 45 N m s/rad, which"),
        (fast * [[1, 1], [1, 0.1], [1, 1]], "'b' of .* slip speed of its dry friction, 0.05 m/s; .* damper of 6 N s/m, which"),
    ]  # fmt: skip
    for v, said in cases:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rf.linearize(model, q, v, tau)
        assert len(caught) == bool(said)
        if said:
            with pytest.warns(RuntimeWarning, match=said):
                rf.linearize(model, q, v, tau)


def test_only_dry_friction_is_left_out() -> None:
    model = dry()
    q, v, tau = np.array([0.3, 0.1]), np.array([0.001, -0.002]), np.zeros(2)
    found = rf.linearize(model, q, v, tau, friction=False)
    h = 1e-6
    b = rf.Builder("plain")
    b.link("a", mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0.3, 0.0, 0.1), axis=(0, 1, 0), damping=0.5, effort=3.0)  # fmt: skip
    b.link("b", "a", "prismatic", at=(0.2, 0, 0), axis=(1, 0, 0), mass=0.7, com=(0.1, 0, 0), limits=[(-0.2, 0.3)], spring={"stiffness": 30.0, "rest": 0.1})  # fmt: skip
    same = rf.linearize(b.model(), q, v, tau)
    close(found.A, same.A, 1e-9, 1e-9, "A")
    ahead, behind = (accelerations(b.model(), q, v + s * h * np.eye(2)[0], tau, passive=True) for s in (1, -1))  # fmt: skip
    close(found.A[2:, 2], (ahead - behind) / (2 * h), 1e-5, 1e-5, "damping stays")


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_unknown_states_of_a_batch_leave_the_others_in_their_rows(method: str) -> None:
    model = rider()
    q, v = states(model, 4)
    tau = np.random.default_rng(3).normal(size=(4, 7))
    alone = [rf.linearize(model, q[i], v[i], tau[i], 2e-3, method) for i in range(4)]
    v[1, 3] = np.nan
    found = rf.linearize(model, q, v, tau, 2e-3, method)
    assert np.isnan(found.A[1]).all()
    for i in (0, 2, 3):
        close(found.A[i], alone[i].A, 1e-9, 1e-9, f"A of state {i}")
        close(found.B[i], alone[i].B, 1e-9, 1e-9, f"B of state {i}")
    step, slow = rf.linearize(model, q, v, tau, 0.02), rf.linearize(model, q, v, tau)
    for i in (0, 2, 3):
        term, B, A = 0.02 * np.eye(14), np.zeros((14, 7)), np.eye(14)
        for k in range(1, 25):  # series of the exponential
            B = B + term @ slow.B[i]
            A = A + term @ slow.A[i]
            term = term @ slow.A[i] * (0.02 / (k + 1))
        close(step.A[i], A, 1e-9, 1e-9, "A over a step")
        close(step.B[i], B, 1e-9, 1e-9, "B over a step")
