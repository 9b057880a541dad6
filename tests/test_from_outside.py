"""What a user adds without touching ramify: an observer of runs, a load on the joints, a ground law, an
integrator. Each is one class or function here, registered, and run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.contact import LAWS, Ground, Normal
from ramify.core.scalar import select
from ramify.integrate.driver import OBSERVERS, Observer
from ramify.integrate.integrator import Integrator, Marching
from ramify.integrate.integrators import INTEGRATORS
from ramify.interop.named_functions import named_function
from ramify.plant.joint_loads import JOINT_LOADS, JointLoad


@contextmanager
def registered(registry: Any, entry: Any) -> Iterator[None]:
    registry.add(entry)
    try:
        yield
    finally:
        registry.remove(entry)


def arm() -> rf.Model:
    robot = rf.Builder("arm").link("upper", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0))
    return robot.link("sail", "upper", axis=(0, 1, 0), at=(0.4, 0, 0), mass=0.5, com=(0.1, 0, 0)).model()  # fmt: skip


Q = [0.3, -0.2]

# ---- an observer ----


class Fence(Observer):
    """Counts chunks of steps, and ends a run where the first joint has fallen too far."""

    made: list[Fence] = []  # noqa: RUF012

    def __init__(self, field: Any) -> None:
        self.boundaries, self.times = 0, [0.0]
        self.made.append(self)

    def before(self, steps: Any) -> None:
        self.boundaries += 1

    def after(self, steps: Any, chunk: Any) -> None:
        assert chunk.start == self.times[-1]
        first, last = chunk.y(chunk.start), chunk.y(chunk.end)
        assert (first != last).any()  # states within the chunk are there
        self.times.append(steps.t)
        if steps.y[0] > 1.0:
            steps.end("fallen")


@pytest.mark.parametrize(
    "options",
    [{"method": "rk45"}, {"method": "rk4", "step": 1e-3, "events": {"never": lambda t, q, v: 1.0}}],
    ids=["adaptive", "fixed"],
)
def test_an_observer_sees_every_chunk_and_may_end_the_run(options: dict[str, Any]) -> None:
    with registered(OBSERVERS, Fence):
        run = rf.simulate(arm(), 2.0, Q, **options)
    fence = Fence.made.pop()
    assert run.status == "fallen"
    assert 1.0 < run.q[-1, 0] < 1.2
    assert fence.times[-1] == run.t[-1]
    if "step" not in options:  # of fixed steps, a whole block is computed
        assert len(fence.times) == run.stats["steps"] + 1
    assert fence.boundaries == 1
    assert rf.simulate(arm(), 0.1, Q, **options).status == "finished"  # it is gone


def test_an_observer_sees_the_samples_of_a_controller_as_boundaries() -> None:
    law = rf.control.GravityCompensation(rate_hz=100.0)
    with registered(OBSERVERS, Fence):
        run = rf.simulate(arm(), 0.1, Q, control=law)
    assert run.status == "finished"
    assert Fence.made.pop().boundaries == 10


# ---- a part of the right-hand side ----


class Wind(JointLoad):
    """Drag at the sail, growing with the square of its rate, and a constant push at the first joint."""

    name = "wind"

    def acts(self, model: Any) -> bool:
        return "sail" in model.velocities

    def forces(self, model: Any, q: Any, v: Any) -> list[Any]:
        return [0.4, -0.3 * v[1] * select(v[1] > 0.0, v[1], -v[1])]


def wind(v: Any) -> Any:
    return np.stack([np.full(v.shape[:-1], 0.4), -0.3 * v[..., 1] * np.abs(v[..., 1])], axis=-1)


def test_a_load_acts_in_runs_rollouts_and_exports() -> None:
    """As the same forces given by hand, in every way to evaluate the right-hand side."""
    options: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
    by_hand = rf.simulate(arm(), 0.5, Q, control=lambda t, q, v: wind(v), **options)
    alone = rf.simulate(arm(), 0.5, Q, **options)
    assert np.abs(by_hand.q - alone.q).max() > 1e-2
    with registered(JOINT_LOADS, Wind()):
        m = arm()
        for control in (None, rf.control.Function(lambda t, q, v: 0.0 * v)):  # compiled, by kernels
            run = rf.simulate(m, 0.5, Q, control=control, **options)
            np.testing.assert_allclose(run.q, by_hand.q, rtol=0, atol=1e-8)
            np.testing.assert_allclose(run.a, by_hand.a, rtol=0, atol=1e-6)
            assert run.audit.passed, run.audit
            np.testing.assert_allclose(
                run.work.dissipated[-1], -by_hand.work.actuator[-1], rtol=1e-7, atol=0
            )
        q = np.tile(Q, (9, 1))
        batch = rf.rollout(m, q, np.zeros((9, 2)), steps=500, dt=1e-3, method="rk4")
        np.testing.assert_allclose(batch.q, np.tile(by_hand.q[-1], (9, 1)), rtol=0, atol=1e-7)
        implicit = [rf.rollout(m, q[0], np.zeros(2), steps=n, dt=0.5 / n, method="implicit_extrapolation").q for n in (500, 1000)]  # fmt: skip
        errors = [np.abs(x - by_hand.q[-1]).max() for x in implicit]
        assert 3.0 < errors[0] / errors[1] < 5.0  # second order towards the same motion
        with pytest.raises(rf.SimulationError, match="takes no wrenches or loads"):
            rf.simulate(m, 0.1, Q, method="energy", step=1e-3)
        v = np.array([0.5, -2.0])
        a, *_ = named_function(m, "acceleration", {}).rows(
            [np.array([Q]), v[None], np.zeros((1, 2))]
        )
        np.testing.assert_allclose(a[0], m.forward_dynamics(Q, v, wind(v)), rtol=0, atol=1e-10)
    after = rf.simulate(arm(), 0.5, Q, **options)
    assert after.q.tobytes() == alone.q.tobytes()  # it is gone


# ---- a ground law ----


def test_a_ground_law_is_one_class() -> None:
    @LAWS.add("springboard")
    @dataclass(frozen=True, kw_only=True)
    class Springboard(Ground):
        """A linear spring without damping or friction."""

        stiffness: float = 2000.0

        def normal(self, depth: Any, rate: Any) -> Normal:
            d = select(depth > 0.0, depth, 0.0)
            return Normal(self.stiffness * d, self.stiffness * d, 0.5 * self.stiffness * d * d)

        def grip(self, load: Any, slip_squared: Any) -> Any:
            return 0.0

        def scaled(self, mass: float, weight: float) -> Springboard:
            return self

    try:
        robot = rf.Builder("ball").link("ball", joint="free", mass=2.0, inertia=(0.1, 0.1, 0.1), points={"sole": (0, 0, 0)})  # fmt: skip
        start = [0, 0, 0.1, 1, 0, 0, 0]
        run = rf.simulate(robot.model(), 1.0, start, ground="springboard")
        assert run.audit.passed
        assert abs(run.q[:, 2].max() - 0.1) < 1e-6  # it bounces back to where it started
        assert run.q[:, 2].min() < -0.01
        lower = rf.simulate(robot.model(), 1.0, start, ground={"law": "springboard", "stiffness": 500.0})  # fmt: skip
        assert lower.q[:, 2].min() < 1.5 * run.q[:, 2].min()
    finally:
        LAWS.remove("springboard")


# ---- an integrator ----


def midpoint(
    field: Any, rates: Any, t: float, y: Any, dt: float, correct: Any
) -> Callable[[], Any]:
    """The explicit midpoint rule, as a function that makes a step each time it is called."""

    def step() -> Any:
        nonlocal t, y
        half = y + 0.5 * dt * rates(t, y)
        t, y = t + dt, correct(y + dt * rates(t + 0.5 * dt, half))
        return y

    return step


def test_an_integrator_is_one_function() -> None:
    entry = Integrator("own_midpoint", "the midpoint rule", 2, Marching(midpoint, 2.0, stages=2))
    exact = rf.simulate(arm(), 0.5, Q, rtol=1e-12, atol=1e-13).q[-1]
    with registered(INTEGRATORS, entry):
        errors = []
        for h in (2e-3, 1e-3):
            run = rf.simulate(arm(), 0.5, Q, method="own_midpoint", step=h)
            assert run.stats["evaluations"] == 2 * run.stats["steps"]
            errors.append(np.abs(run.q[-1] - exact).max())
        assert 3.5 < errors[0] / errors[1] < 4.5
        loop = rf.load("four_bar")
        closed = rf.simulate(loop, 0.2, method="own_midpoint", step=5e-4)
        assert np.abs(closed.loops.gap).max() < 1e-12  # corrected after each step
    with pytest.raises(rf.SimulationError, match="is unknown"):
        rf.simulate(arm(), 0.1, Q, method="own_midpoint", step=1e-3)
