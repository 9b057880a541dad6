"""Linear systems of machines: against differences of the motion and of rollouts, closed forms, and
a balance that only works with the right numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from peers import random_model, states, worst
from scipy.linalg import solve_continuous_are

import ramify as rf
from ramify.core.arrays import Array
from ramify.core.scalar import atan2, floor, select, sqrt
from ramify.model.configuration import coordinate_rates
from ramify.plant.make_field import PlantOptions, make_field
from ramify.trace.differentiate import adjoint, tangent
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace


def differences(function: Callable[[float], Array], step: float = 1e-3) -> Array:
    """The derivative at 0 from eight neighbours."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    pairs = ((k * step, w) for k, w in enumerate(weights, 1))
    return sum(w * (function(h) - function(-h)) for h, w in pairs) / step  # type: ignore[no-any-return]


def numbers(x: list[Any]) -> list[list[Any]]:
    a, b, c = x
    s = select(a < b, sqrt(a * a + c * c), b / c)
    return [[atan2(s, c) * b, s - floor(a) * c, -a / (b * b), 2.0]]


def test_programs_that_differentiate() -> None:
    program = trace("numbers", numbers, [Port("x", (3,))], [Port("y", (4,))])
    rng = np.random.default_rng(0)
    x, d, w = rng.uniform(0.2, 2.0, (50, 3)), rng.normal(size=(50, 3)), rng.normal(size=(50, 4))
    along = interpret(tangent(program, (0,)), [x, d])[0]
    wanted = differences(lambda h: interpret(program, [x + h * d])[0], 1e-4)
    assert worst(along, wanted) < 1e-9
    back = interpret(adjoint(program, (0,)), [x, w])[0]
    assert np.allclose((back * d).sum(1), (along * w).sum(1), rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_adjoint_of_forward_dynamics(seed: int) -> None:
    """w' (J d) = (J' w)' d, on trees and on a closed chain with its several results."""
    model = rf.load("four_bar") if seed == 0 else random_model(seed, ["revolute", "helical"], 4)
    name = "forward_dynamics_multipliers" if model.loops else "forward_dynamics"
    program = model.kernel(name).program
    q, v, tau = states(model.tree, 4, seed)
    rng = np.random.default_rng(seed)
    d = [rng.normal(size=x.shape) for x in (q, v, tau)]
    w = [rng.normal(size=(4, port.size)) for port in program.outputs]
    along = interpret(tangent(program, (0, 1, 2)), [q, v, tau, *d])
    back = interpret(adjoint(program, (0, 1, 2)), [q, v, tau, *w])
    forward = sum((x * y).sum(1) for x, y in zip(along, w, strict=True))
    assert np.allclose(forward, sum((x * y).sum(1) for x, y in zip(back, d, strict=True)))
    assert np.abs(forward).max() > 1e-3


def cart_pole() -> rf.Model:
    made = rf.Builder("cart_pole").link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    made.link("pole", "cart", axis=(0, 1, 0), mass=0.2, com=(0, 0, 0.5))
    return made.model()


def test_dry_friction_at_rest_is_reported_and_can_be_left_out() -> None:
    """v' = (u - c v - F s) / m: the slope of F s at rest is F / slip."""
    made = rf.Builder("sled").link(
        "sled", joint="prismatic", axis=(1, 0, 0), mass=2.0, damping=3.0,
        friction={"coulomb": 5.0, "slip_speed": 0.01},
    )  # fmt: skip
    sled, rest = made.model(), np.zeros(1)
    text = r"'sled' of 'sled' is slower .* damper of 500 N s/m, .*friction=False"
    with pytest.warns(RuntimeWarning, match=text):
        A, _ = rf.linearize(sled, rest, rest, rest)
    assert np.allclose(A[1, 1], -(3.0 + 500.0) / 2.0)
    for v, options in ((0.0, {"friction": False}), (100.0, {})):  # no warning
        A, _ = rf.linearize(sled, rest, [v], rest, **options)
        assert np.allclose(A[1, 1], -1.5)
    A, _ = rf.linearize(sled, rest, rest, rest, friction=False, dt=0.1, method="rk4")
    assert np.allclose(A[1, 1], np.exp(-0.15), atol=1e-6)


def test_all_joints_with_dry_friction_at_rest_are_named() -> None:
    made = rf.Builder("arm")
    for name in "abcde":
        friction = {"coulomb": 5.0, "slip_speed": 0.01}
        made.link(name, axis=(0, 1, 0), mass=1.0, com=(0, 0, 0.5), friction=friction)
    model, v = made.model(), [0.0, 9.0, 0.0, 0.0, 0.0]
    text = (
        "'a', 'c', 'd' and 1 more of 'arm' are slower than the slip speed of their dry friction, "
        "0.01 rad/s, 0.01 rad/s, 0.01 rad/s; near rest that is linearised as a damper of "
        "500 N m s/rad, 500 N m s/rad, 500 N m s/rad, which"
    )
    with pytest.warns(RuntimeWarning, match=re.escape(text)):
        rf.linearize(model, np.zeros(5), v, np.zeros(5))


def test_closed_form_of_a_cart_pole() -> None:
    """M, m, l: x'' = (u - m g θ) / M, θ'' = ((M + m) g θ - u) / (M l) about the upright."""
    model = cart_pole()
    A, B = rf.linearize(model, [0, 0], [0, 0], [0, 0])
    M, m, length, g = 1.0, 0.2, 0.5, -model.gravity[2]
    wanted = np.zeros((4, 4))
    wanted[0, 2] = wanted[1, 3] = 1.0
    wanted[2, 1], wanted[3, 1] = -m * g / M, (M + m) * g / (M * length)
    assert np.allclose(A, wanted, atol=1e-12)
    assert np.allclose(B[:, 0], [0, 0, 1 / M, -1 / (M * length)], atol=1e-12)


def test_a_regulator_balances_a_cart_pole() -> None:
    model = cart_pole()
    A, B = rf.linearize(model, [0, 0], [0, 0], [0, 0])
    push = B[:, :1]
    K = push.T @ solve_continuous_are(A, push, np.eye(4), np.eye(1))
    assert np.linalg.eigvals(A - push @ K).real.max() < -0.5

    def control(t: float, q: Array, v: Array) -> list[float]:
        return [*(-K @ [*q, *v]), 0.0]

    run = rf.simulate(model, t_end=10.0, q0=[0.1, 0.25], v0=[0, 0], control=control)
    assert np.abs(run.q[-1]).max() < 5e-3
    fall = rf.simulate(model, t_end=2.0, q0=[0.1, 0.25], v0=[0, 0])
    assert np.abs(fall.q[:, 1]).max() > 1.5


def machine(name: str) -> tuple[rf.Model, dict[str, Any], Array, Array, Array]:
    """A robot, what acts on it, and a state."""
    options: dict[str, Any] = {}
    if name == "four bar":
        model = rf.load("four_bar")
        state = model.assemble({model.joints[0].name: 0.4}, {model.joints[0].name: 1.0})
        return model, options, state.q, state.v, np.zeros(model.nv)
    if name == "driven loop":
        model = rf.load("slider_crank")
        crank = model.joints[0].name
        state = model.assemble({crank: 0.7}, {crank: 1.0})
        hold = rf.control.PD(rf.motion.Hold([0.9]), kp=20.0, kd=2.0, actuated=[crank])
        return model, {"control": hold}, state.q, state.v, 0.1 * state.v
    made = rf.Builder("machine")
    if name in LAWS:
        return walker(name)
    if name == "ground":
        made.link(
            "ball", joint="free", mass=1.0, inertia=(0.1, 0.2, 0.15), points={"foot": (0, 0, -0.1)}
        )
        made.link("tail", "ball", at=(0.2, 0, 0), axis=(0, 1, 0), mass=0.3, com=(0.1, 0, 0))
        options["ground"] = "hunt_crossley"
    else:
        made.link(
            "upper",
            axis=(0, 1, 0),
            mass=1.0,
            com=(0, 0, -0.3),
            damping=0.3,
            spring={"stiffness": 5.0, "rest": 0.1},
        )
        made.link("lower", "upper", at=(0, 0, -0.5), axis=(0, 1, 0), mass=0.5, com=(0, 0, -0.2),
                  friction={"coulomb": 0.4, "slip_speed": 0.5}, armature=0.05)  # fmt: skip
    model = made.model()
    if name == "control":
        options["control"] = rf.control.PD(rf.motion.Hold([0.3, -0.2]), kp=20.0, kd=2.0)
    rng = np.random.default_rng(2)
    q, v = model.random(1)
    if name == "ground":
        q[:3] = (0.0, 0.0, 0.09)
        q[3:7] = (0.995, 0.05, 0.06, 0.0) / np.linalg.norm((0.995, 0.05, 0.06, 0.0))
    return model, options, q, v + 0.5, rng.normal(size=model.nv)


def walker(law: str) -> tuple[rf.Model, dict[str, Any], Array, Array, Array]:
    """A trunk on one leg whose foot presses on a ground: rotors, friction, a spring, and a servo
    beside it that is near its effort.
    """
    made = rf.Builder("walker").link("trunk", joint="free", mass=4.0, inertia=(0.1, 0.2, 0.15))
    made.link("thigh", "trunk", at=(0.1, 0.05, 0), axis=(0, 1, 0), mass=0.8, com=(0, 0, -0.1),
              inertia=(0.01, 0.01, 0.002), armature=0.03, damping=0.2, effort=60.0,
              friction={"coulomb": 0.5, "slip_speed": 0.4})  # fmt: skip
    made.link("shank", "thigh", at=(0, 0, -0.2), axis=(0, 1, 0), mass=0.4, com=(0, 0, -0.1),
              inertia=(0.01, 0.01, 0.002), armature=0.02, points={"foot": (0, 0, -0.2)},
              friction={"coulomb": 0.3, "slip_speed": 0.4},
              spring={"stiffness": 8.0, "rest": -0.5})  # fmt: skip
    model = made.model()
    hold = rf.control.PD(rf.motion.Hold([0.4, -0.7]), kp=60.0, kd=2.0)
    q = np.array([0.0, 0.0, 0.36, 0.99, 0.05, 0.1, 0.0, 0.5, -0.8])
    q[3:7] /= np.linalg.norm(q[3:7])
    q[2] -= model.pose(q, "shank").rotation[2] @ (0, 0, -0.2) + model.pose(q, "shank").position[2]
    q[2] -= 0.004  # m, under the ground
    v = np.array([0.3, 0.1, -0.05, 0.2, -0.1, 0.3, 0.4, 0.6])
    return model, {"control": hold, "ground": law}, q, v, np.full(8, 0.5)


def moved(model: rf.Model, q: Array, v: Array, tau: Array, i: int, h: float) -> list[Array]:
    """The state with a deviation h of [q, v, u] number i."""
    n = model.nv
    d = np.zeros(3 * n)
    d[i] = h
    return [model.integrate(q, d[:n], 1.0), v + d[n : 2 * n], tau + d[2 * n :]]


LAWS = ["hunt_crossley", "firm", "dusty"]
MACHINES = ["drives", "control", "ground", "four bar", "driven loop", *LAWS]


@pytest.mark.parametrize("name", MACHINES)
def test_accelerations_of_machines(name: str) -> None:
    model, options, q, v, tau = machine(name)
    n = model.nv
    A, B = rf.linearize(model, q, v, tau, **options)
    field = make_field(model, options.get("control"), PlantOptions(ground=options.get("ground")))

    def accelerations(q: Array, v: Array, tau: Array) -> Array:
        y = field.start(q, v)
        return np.array(field.text(0.0, y.tolist(), tau.tolist())[model.nq : model.nq + n])

    for i in range(3 * n):
        slope = differences(lambda h, i=i: accelerations(*moved(model, q, v, tau, i, h)), 2e-4)
        found = (A[n:, i] if i < 2 * n else B[n:, i - 2 * n])[:n]
        assert worst(found, slope) < 1e-8
    assert np.abs(A[n:, :n]).max() > 1e-2


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, method) for name in MACHINES[:3] for method in ("rk4", "semi_implicit_euler")),
        ("ground", "implicit_extrapolation"),
    ],
)
def test_steps_are_those_of_a_rollout(name: str, method: str) -> None:
    model, options, q, v, tau = machine(name)
    n, dt = model.nv, 2e-3
    A, B = rf.linearize(model, q, v, tau, dt=dt, method=method, **options)

    def after(q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        run = rf.rollout(model, q, v, steps=1, dt=dt, tau=tau, method=method, **options)
        return run.q, run.v

    end, _ = after(q, v, tau)
    for i in range(3 * n):

        def off(h: float, i: int = i) -> Array:
            there, rate = after(*moved(model, q, v, tau, i, h))
            return np.concatenate([model.difference(end, there), rate])

        found = A[:, i] if i < 2 * n else B[:, i - 2 * n]
        assert worst(found, differences(off, 2e-4)) < 1e-8


def test_rotations_turn_with_the_body() -> None:
    """A free body: the deviation of its orientation in its own axes changes with -w x."""
    model = rf.Builder("top").link("top", joint="free", mass=1.0, inertia=(0.1, 0.2, 0.3)).model()
    q, v = model.random(3)
    A, _ = rf.linearize(model, q, v, np.zeros(6))
    h, rng = 1e-4, np.random.default_rng(0)
    d = rng.normal(size=12)

    def later(s: float, t: float) -> Array:
        there = model.integrate(q, s * d[:6], 1.0), v + s * d[6:]
        return model.integrate(*there, t)

    def deviation(t: float) -> Array:
        return differences(lambda s: model.difference(later(0.0, t), later(s, t)), 1e-2)

    assert worst(A[:6] @ d, differences(deviation, h)) < 1e-6


def test_a_step_with_held_forces_is_exact() -> None:
    model = cart_pole()
    whole = rf.linearize(model, [0, 0.2], [0, 0], [0, 0], dt=0.02)
    half = rf.linearize(model, [0, 0.2], [0, 0], [0, 0], dt=0.01)
    assert np.allclose(half.A @ half.A, whole.A, atol=1e-12)
    assert np.allclose(half.A @ half.B + half.B, whole.B, atol=1e-12)


@pytest.mark.filterwarnings("ignore:'lower' of 'machine' is slower")
def test_batches() -> None:
    model, options, *_ = machine("control")
    q, v, tau = states(model, 6, 1)
    A, B = rf.linearize(model, q.reshape(2, 3, 2), v.reshape(2, 3, 2), tau[0], **options)
    assert A.shape == (2, 3, 4, 4)
    assert B.shape == (2, 3, 4, 2)
    one = rf.linearize(model, q[4], v[4], tau[0], **options)
    assert np.allclose(A[1, 1], one.A)
    assert np.allclose(B[1, 1], one.B)


def test_what_is_refused() -> None:
    model = cart_pole()
    zero = np.zeros(2)
    with pytest.raises(rf.SimulationError, match="give dt"):
        rf.linearize(model, zero, zero, zero, method="rk4")
    with pytest.raises(rf.SimulationError, match="dt is -1"):
        rf.linearize(model, zero, zero, zero, dt=-1)
    with pytest.raises(rf.SimulationError, match="continuous law"):
        rf.linearize(model, zero, zero, zero, control=lambda t, q, v: zero)
    assert coordinate_rates(model, [0, 0], [1, 2]) == [1, 2]
