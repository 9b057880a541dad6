"""Rollouts: many states at once give what single runs give, whatever drives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_runs import pendulum

import ramify as rf
from ramify.core.arrays import Array
from ramify.emit.stepper import Scheme
from ramify.integrate.integrators import integrators

STEPS, DT = 40, 0.005
SCHEMES = [i.name for i in integrators() if isinstance(i.method, Scheme) and not i.method.implicit]


@pytest.fixture(scope="module")
def arm() -> rf.Model:
    return rf.load("planar_3r")


def starts(model: rf.Model, count: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random(seed=seed + i)[0] for i in range(count)])
    return q, 0.5 * rng.normal(size=(count, model.nv))


@pytest.mark.parametrize("method", SCHEMES)
@pytest.mark.parametrize("count", [1, 3, 8, 21])
def test_a_batch_is_its_single_runs(arm: rf.Model, method: str, count: int) -> None:
    q0, v0 = starts(arm, count)
    batch = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, method=method)
    assert batch.q.shape == (count, 3)
    for i in range(count):
        one = rf.rollout(arm, q0[i], v0[i], steps=STEPS, dt=DT, method=method)
        assert np.allclose(batch.q[i], one.q, rtol=0.0, atol=1e-12)
        assert np.allclose(batch.v[i], one.v, rtol=0.0, atol=1e-11)
    run = rf.simulate(arm, STEPS * DT, q0[0], v0[0], method=method, step=DT, dt_out=STEPS * DT)
    assert np.allclose(batch.q[0], run.q[-1], rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "rk5", "semi_implicit_euler"])
def test_quaternions_stay_of_length_one_and_agree(method: str) -> None:
    model = rf.load("space_3_link", base="free")
    q0, v0 = starts(model, 9, 3)
    batch = rf.rollout(model, q0, v0, steps=STEPS, dt=DT, method=method)
    assert np.abs(np.linalg.norm(batch.q[:, 3:7], axis=1) - 1.0).max() < 1e-14
    for i in (0, 8):
        run = rf.simulate(
            model, STEPS * DT, q0[i], v0[i], method=method, step=DT, dt_out=STEPS * DT
        )
        assert np.abs(model.difference(batch.q[i], run.q[-1])).max() < 1e-10


def test_rollouts_converge_to_the_adaptive_run(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 4)
    fine = [
        rf.simulate(arm, 0.4, q, v, rtol=1e-12, atol=1e-13, dt_out=0.4).q[-1]
        for q, v in zip(q0, v0, strict=True)
    ]
    for method, order in (("euler", 1), ("semi_implicit_euler", 1), ("rk4", 4), ("rk5", 5)):
        coarse = 0.02 if order > 1 else 0.002
        off = [
            np.abs(
                rf.rollout(arm, q0, v0, steps=round(0.4 / dt), dt=dt, method=method).q - fine
            ).max()
            for dt in (coarse, coarse / 2)
        ]
        assert order - 0.5 < np.log2(off[0] / off[1]) < order + 1.0, method


# ---- histories and shapes ----


def test_histories(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 5)
    full = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, every=1, t0=2.0)
    assert full.q.shape == (5, STEPS, 3)
    assert full.t == pytest.approx(2.0 + DT * np.arange(1, STEPS + 1))
    some = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, every=7)
    assert np.array_equal(some.q, full.q[:, 6::7])
    last = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT)
    assert np.array_equal(last.q, full.q[:, -1])
    assert last.t.shape == (1,)


def test_leading_shapes_broadcast(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 6)
    grid = rf.rollout(arm, q0.reshape(2, 3, 3), v0[0], steps=5, dt=DT, every=5)
    assert grid.q.shape == (2, 3, 1, 3)
    flat = rf.rollout(arm, q0, np.broadcast_to(v0[0], (6, 3)), steps=5, dt=DT)
    assert np.allclose(grid.q.reshape(6, 3), flat.q, rtol=0.0, atol=1e-13)
    assert rf.rollout(arm, np.zeros((0, 3)), np.zeros(3), steps=5, dt=DT).q.shape == (0, 3)
    assert np.array_equal(rf.rollout(arm, q0, v0, steps=0, dt=DT).q, q0)


def test_threads_change_nothing(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 200)
    before = rf.threads()
    try:
        rf.threads(1)
        one = rf.rollout(arm, q0, v0, steps=10, dt=DT)
        rf.threads(2)
        two = rf.rollout(arm, q0, v0, steps=10, dt=DT)
    finally:
        rf.threads(before)
    assert np.allclose(one.q, two.q, rtol=0.0, atol=1e-13)


# ---- what drives them ----


def test_torques_constant_per_step_and_per_state(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 5)
    rng = np.random.default_rng(1)
    each = rng.normal(size=(5, STEPS, 3))
    found = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, tau=each)
    for i in range(5):
        own = rf.rollout(arm, q0[i], v0[i], steps=STEPS, dt=DT, tau=each[i])
        assert np.allclose(found.q[i], own.q, rtol=0.0, atol=1e-12)
    shared = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, tau=each[0])
    assert np.allclose(shared.q[0], found.q[0], rtol=0.0, atol=1e-12)
    constant = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, tau=each[0, 0])
    repeated = rf.rollout(
        arm, q0, v0, steps=STEPS, dt=DT, tau=np.broadcast_to(each[0, 0], (STEPS, 3))
    )
    assert np.allclose(constant.q, repeated.q, rtol=0.0, atol=1e-13)
    run = rf.simulate(
        arm,
        STEPS * DT,
        q0[2],
        v0[2],
        method="rk4",
        step=DT,
        control=rf.control.Torque(each[0, 0]),
        dt_out=1.0,
    )
    assert np.allclose(constant.q[2], run.q[-1], rtol=0.0, atol=1e-12)


def test_a_table_is_held_during_each_step() -> None:
    tau = np.array([[1.0], [-2.0], [3.0]])
    found = rf.rollout(pendulum(), [0.3], [0.0], steps=3, dt=0.01, tau=tau)
    q, v = np.array([0.3]), np.array([0.0])
    for force in tau:
        step = rf.rollout(pendulum(), q, v, steps=1, dt=0.01, tau=force)
        q, v = step.q, step.v
    assert np.array_equal(found.q, q)


def test_controllers_compiled_and_called_agree(arm: rf.Model) -> None:
    motion = rf.motion.Cycloid(0.0, [0.5, 0.6, 0.7], STEPS * DT)
    q0, v0 = starts(arm, 11)

    def law(t: Any, q: Any, v: Any) -> Any:
        m = motion.at(t)
        return arm.inverse_dynamics(q, v, m.a + 49.0 * (m.q - q) + 14.0 * (m.v - v))

    compiled = rf.rollout(
        arm, q0, v0, steps=STEPS, dt=DT, control=rf.control.ComputedTorque(motion)
    )
    called = rf.rollout(
        arm, q0, v0, steps=STEPS, dt=DT, control=rf.control.Function(law, vectorized=True)
    )
    one_by_one = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, control=rf.control.Function(law))
    assert np.abs(compiled.q - called.q).max() < 1e-10
    assert np.array_equal(called.q, one_by_one.q) or np.abs(called.q - one_by_one.q).max() < 1e-13
    run = rf.simulate(
        arm,
        STEPS * DT,
        q0[4],
        v0[4],
        method="rk4",
        step=DT,
        control=rf.control.ComputedTorque(motion),
        dt_out=1.0,
    )
    assert np.abs(compiled.q[4] - run.q[-1]).max() < 1e-11


def test_a_controller_with_states(arm: rf.Model) -> None:
    control = rf.control.PID(rf.motion.Hold([0.1, 0.2, 0.3]), kp=50.0, ki=30.0, kd=10.0)
    q0, v0 = starts(arm, 3)
    batch = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, control=control)
    run = rf.simulate(
        arm, STEPS * DT, q0[1], v0[1], method="rk4", step=DT, control=control, dt_out=1.0
    )
    assert np.abs(batch.q[1] - run.q[-1]).max() < 1e-11


def test_sampled_control_is_that_of_simulate(arm: rf.Model) -> None:
    control = rf.control.PD(rf.motion.Hold([0.1, 0.2, 0.3]), rate_hz=50.0)
    q0, v0 = starts(arm, 3)
    batch = rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, control=control)
    run = rf.simulate(
        arm, STEPS * DT, q0[1], v0[1], method="rk4", step=DT, control=control, dt_out=1.0
    )
    assert np.abs(batch.q[1] - run.q[-1]).max() < 1e-11


def test_floating_base_with_a_function() -> None:
    model = rf.load("space_3_link", base="free")
    q0, v0 = starts(model, 4)
    law = rf.control.Function(lambda t, q, v: np.r_[np.zeros(6), -0.2 * v[6:]])
    called = rf.rollout(model, q0, v0, steps=20, dt=DT, control=law)
    damped = rf.rollout(
        model, q0, v0, steps=20, dt=DT, damping=np.r_[np.zeros(6), np.full(model.nv - 6, 0.2)]
    )
    assert np.abs(called.q - damped.q).max() < 1e-10


def test_large_robots_go_batch_by_batch() -> None:
    chain = rf.load("chain", n=90)
    q0, v0 = np.full((2, 90), 0.01), np.zeros(90)
    found = rf.rollout(chain, q0, v0, steps=3, dt=1e-3)
    run = rf.simulate(chain, 3e-3, q0[0], v0, method="rk4", step=1e-3, dt_out=1.0)
    assert np.abs(found.q[0] - run.q[-1]).max() < 1e-11


# ---- what goes wrong ----


@pytest.mark.parametrize("rate", [None, 100.0])
def test_forces_that_are_not_numbers_fail_their_state_alone(
    arm: rf.Model, rate: float | None
) -> None:
    def law(t: float, q: Array, v: Array) -> Array:
        return np.where((np.arange(len(q)) == 1)[:, None] & (t > 0.015), np.nan, -v)

    q0, v0 = starts(arm, 3)
    control = law if rate is None else rf.control.Function(law, vectorized=True, rate_hz=rate)
    with pytest.warns(RuntimeWarning, match="1 of 3 states failed.*controller gave nan for") as w:
        run = rf.rollout(arm, q0, v0, steps=30, dt=1e-3, control=control, every=1)
    assert "smaller dt" not in str(w[0].message)
    assert run.status.failed.tolist() == [False, True, False]
    assert np.isfinite(run.q[[0, 2]]).all()
    assert np.isnan(run.q[1, -1]).all()
    alone = rf.rollout(arm, q0[[0, 2]], v0[[0, 2]], steps=30, dt=1e-3, control=lambda t, q, v: -v)
    if rate is None:
        assert np.array_equal(run.q[[0, 2], -1], alone.q)
    with pytest.raises(rf.SimulationError, match=r"1 of 1 states failed; .*controller gave nan"):
        rf.rollout(arm, q0[0], v0[0], steps=3, dt=1e-3, control=lambda t, q, v: np.full(3, np.nan))


class _Tensor:
    """What PyTorch's tensors of parameters do."""

    def __init__(self, value: Array, clean: bool = False) -> None:
        self.value, self.clean = value, clean

    def detach(self) -> _Tensor:
        return _Tensor(self.value, clean=True)

    def double(self) -> _Tensor:
        return _Tensor(self.value.astype(np.float64), self.clean)

    def cpu(self) -> _Tensor:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if not self.clean:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.value


def test_tensors_that_require_gradients_are_forces(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 3)

    def law(t: float, q: Array, v: Array) -> Any:
        return _Tensor(np.asarray(-v, dtype=np.float32))

    every = rf.control.Function(law, vectorized=True, rate_hz=1000.0)
    found = [rf.rollout(arm, q0, v0, steps=3, dt=1e-3, control=c).q for c in (law, every)]
    assert np.isfinite(found).all()
    assert np.array_equal(*found)
    assert np.isfinite(rf.simulate(arm, 0.01, q0[0], v0[0], control=law).q).all()


def test_a_function_of_one_state_is_named_only_where_the_shape_may_be_wrong(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 3)
    for law, hinted in (
        (lambda t, q, v: q @ np.ones(4), True),
        (lambda t, q, v: {}["gain"], False),
    ):
        with pytest.raises(rf.SimulationError, match="the controller raised") as error:
            rf.rollout(arm, q0, v0, steps=1, dt=1e-3, control=law)
        assert ("state by state" in str(error.value)) == hinted


def test_a_state_that_diverges_does_not_stop_a_function_of_the_others(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 3)
    q0[1] = 1e5
    for options in ({}, {"rate_hz": 100.0}):
        control = rf.control.Function(lambda t, q, v: 1e3 * q - v, **options)
        with pytest.warns(RuntimeWarning, match="1 of 3 states failed"):
            run = rf.rollout(arm, q0, v0, steps=30, dt=1e-3, control=control)
        assert run.status.failed.tolist() == [False, True, False]


@pytest.mark.parametrize("every", [None, 1, 7])
@pytest.mark.parametrize("count", [4, 30])
def test_a_state_that_diverges_is_marked_and_the_others_go_on(
    arm: rf.Model, count: int, every: int | None
) -> None:
    q0, v0 = starts(arm, count)
    v0[2] = 5e4
    options: dict[str, Any] = {"steps": 50, "dt": 0.02, "method": "euler", "every": every}
    with pytest.warns(RuntimeWarning, match=rf"1 of {count} states failed; state 2 at t = "):
        found = rf.rollout(arm, q0, v0, **options)
    assert np.flatnonzero(found.status.failed).tolist() == [2]
    (failure,) = found.status.failures
    assert failure.index == (2,)
    assert "runs away" in failure.reason or "million radians" in failure.reason
    assert np.isnan(found.q[2].reshape(-1, 3)[-1]).all()
    alone = rf.rollout(arm, np.delete(q0, 2, 0), np.delete(v0, 2, 0), **options)
    assert alone.status.ok
    assert np.allclose(np.delete(found.q, 2, 0), alone.q, rtol=0.0, atol=1e-12)
    # The time is that of the first step after which the state is not finite, or out of range.
    step = round(failure.t / 0.02)
    assert failure.t == pytest.approx(0.02 * step)
    before = rf.rollout(arm, q0[2], v0[2], steps=step - 1, dt=0.02, method="euler")
    assert np.isfinite(before.q).all()
    with pytest.raises(rf.SimulationError, match=r"1 of 1 states failed"):
        rf.rollout(arm, q0[2], v0[2], steps=step + 1, dt=0.02, method="euler")


def test_a_function_may_give_anything_for_states_that_failed() -> None:
    """The rows of such a state are NaN, and so is what a function makes of them, at joints without
    a drive too.
    """
    made = rf.Builder("crane").link("cart", joint="prismatic", axis=(1, 0, 0), mass=5.0)
    made.link("rope", "cart", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1), actuated=False)
    m = made.model()
    v0 = np.zeros((3, 2))
    v0[1] = 5e4

    def policy(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.stack([-q[:, 0] - v[:, 0], 0.0 * q[:, 1]], axis=1)

    with pytest.warns(RuntimeWarning, match="1 of 3 states failed"):
        run = rf.rollout(m, v0 * 0.0, v0, steps=40, dt=0.02, method="euler", control=policy)
    assert run.status.failed.tolist() == [False, True, False]
    assert np.isfinite(run.q[[0, 2]]).all()


def test_divergence_is_an_error_on_request_and_where_all_fail(arm: rf.Model) -> None:
    q0, v0 = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    v0[1, 2] = 1e5
    options: dict[str, Any] = {"steps": 50, "dt": 0.02, "method": "euler"}
    with pytest.raises(rf.SimulationError, match=r"1 of 6 states failed; state \(1, 2\) at t = "):
        rf.rollout(arm, q0, v0, on_failure="raise", **options)
    with pytest.raises(rf.SimulationError, match=r"6 of 6 states failed"):
        rf.rollout(arm, q0, v0 + 1e5, **options)
    with pytest.raises(rf.SimulationError, match=r"on_failure must be .*got 'shrug'"):
        rf.rollout(arm, q0, v0, on_failure="shrug", **options)  # type: ignore[arg-type]


def test_a_function_that_fails_one_state_leaves_the_others(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 5)
    v0[3] = 1e5
    with pytest.warns(RuntimeWarning, match="1 of 5 states failed; state 3"):
        found = rf.rollout(
            arm, q0, v0, steps=40, dt=0.01, method="euler", control=lambda t, q, v: -0.1 * v
        )
    assert np.isfinite(np.delete(found.q, 3, 0)).all()
    assert np.isnan(found.q[3]).all()


def test_a_function_gives_forces_of_driven_coordinates_that_lie_apart() -> None:
    """One per driven coordinate, or one per velocity, with a table of other forces beside them."""
    m, driven = rf.load("three_rrr"), [0, 3, 5]
    q, v = np.tile(m.assemble().q, (9, 1)), np.zeros((9, m.nv))
    table = 0.01 * np.arange(4.0 * m.nv).reshape(4, m.nv)

    def few(t: float, q: Any, v: Any) -> Any:
        return np.cos(q[:, driven]) + t

    def whole(t: float, q: Any, v: Any) -> Any:
        out = np.zeros_like(v)
        out[:, driven] = few(t, q, v)
        return out

    one, other = (rf.rollout(m, q, v, steps=4, dt=1e-3, control=f, tau=table) for f in (few, whole))
    assert np.abs(one.v).max() > 1e-4
    np.testing.assert_array_equal(one.q, other.q)
    np.testing.assert_array_equal(one.v, other.v)


@pytest.mark.parametrize("states", [1, 3])
def test_a_function_may_give_nothing_where_nothing_is_driven(states: int) -> None:
    m = rf.Builder("pendulum").link("rod", mass=1.0, com=(0.1, 0, 0), actuated=False).model()
    q, v = np.full((states, 1), 0.3), np.zeros((states, 1))
    run = rf.rollout(m, q, v, steps=3, dt=1e-3, control=lambda t, q, v: v[:, :0])
    np.testing.assert_array_equal(run.q, rf.rollout(m, q, v, steps=3, dt=1e-3).q)


def test_a_function_is_asked_once_a_step_with_the_whole_batch(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 6)
    asked: list[tuple[float, Any, Any]] = []

    def policy(t: float, q: Any, v: Any) -> Any:
        asked.append((t, q.shape, v.shape))
        return -2.0 * v + np.array([1.0, 0.0, 0.0])

    found = rf.rollout(
        arm, q0.reshape(2, 3, 3), v0.reshape(2, 3, 3), steps=7, dt=DT, control=policy
    )
    assert asked == [(pytest.approx(DT * i), (2, 3, 3), (2, 3, 3)) for i in range(7)]
    q, v = q0, v0
    for _ in range(7):  # held during a step, like a table
        one = rf.rollout(arm, q, v, steps=1, dt=DT, tau=(-2.0 * v + [1.0, 0.0, 0.0])[:, None])
        q, v = one.q, one.v
    assert np.allclose(found.q.reshape(6, 3), q, rtol=0.0, atol=1e-14)
    with pytest.raises(
        rf.SimulationError, match=r"forces of shape \(2,\) at t = 0 s; it must give"
    ):
        rf.rollout(arm, q0, v0, steps=7, dt=DT, control=lambda t, q, v: [1.0, 2.0])


def test_bad_controllers_are_reported_with_time_and_state(arm: rf.Model) -> None:
    q0, v0 = starts(arm, 3)

    def nan(t: float, q: Any, v: Any) -> Any:
        return [0.0, np.nan if t > 0.049 else 0.0, 0.0]

    with pytest.raises(
        rf.SimulationError, match=r"state 0 at t = 0\.05 s: .* gave nan for 'joint2'"
    ):
        rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, control=nan)

    def angry(t: float, q: Any, v: Any) -> Any:
        raise RuntimeError("no")

    with pytest.raises(rf.SimulationError, match=r"raised RuntimeError\('no'\) at t = 0 s"):
        rf.rollout(arm, q0, v0, steps=STEPS, dt=DT, control=angry)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"steps": -1}, "steps -1"),
    ({"steps": 1.5}, "steps 1.5"),
    ({"steps": True}, "steps True"),
    ({"dt": 0.0}, "dt 0.0"),
    ({"dt": "0.1"}, "dt '0.1'"),
    ({"t0": float("inf")}, "t0 inf"),
    ({"every": 0}, "every 0"),
    ({"method": "dop853"}, "not a fixed-step scheme"),
    ({"tau": np.zeros((2, 3))}, "tau has shape (2, 3)"),
    ({"tau": [1.0]}, "tau"),
    ({"damping": -1.0}, "damping"),
    ({"q0": np.zeros(2)}, "q0"),
    ({"q0": "zero"}, "q0"),
    ({"v0": [np.nan] * 3}, "v0"),
    ({"ground": 1}, "ground"),
]


@pytest.mark.parametrize(
    ("options", "said"), BAD, ids=[f"{next(iter(o))}{i}" for i, (o, _) in enumerate(BAD)]
)
def test_bad_arguments_are_refused(arm: rf.Model, options: dict[str, Any], said: str) -> None:
    given = {"q0": np.zeros(3), "v0": np.zeros(3), "steps": 5, "dt": 0.01, **options}
    with pytest.raises(rf.RamifyError) as error:
        rf.rollout(arm, **given)
    assert said in str(error.value)


def test_a_quaternion_must_have_length_one() -> None:
    model = rf.load("space_3_link", base="free")
    with pytest.raises(rf.StateError, match="length"):
        rf.rollout(model, 2.0 * model.neutral(), np.zeros(model.nv), steps=1, dt=0.1)


ARM = rf.load("planar_3r")


@given(
    st.integers(1, 12),
    st.integers(0, 9),
    st.sampled_from(sorted(SCHEMES)),
    st.none() | st.integers(1, 4),
    st.booleans(),
    st.integers(0, 99),
)
def test_any_shape_agrees_with_single_runs(
    count: int, steps: int, method: str, every: int | None, table: bool, seed: int
) -> None:
    q0, v0 = starts(ARM, count, seed)
    tau = np.random.default_rng(seed).normal(size=(count, steps, 3)) if table and steps else None
    batch = rf.rollout(ARM, q0, v0, steps=steps, dt=DT, method=method, every=every, tau=tau)
    i = seed % count
    one = rf.rollout(
        ARM,
        q0[i],
        v0[i],
        steps=steps,
        dt=DT,
        method=method,
        every=every,
        tau=None if tau is None else tau[i],
    )
    assert batch.q[i].shape == one.q.shape
    assert np.allclose(batch.q[i], one.q, rtol=0.0, atol=1e-12)


def test_threads_that_meet_a_new_stepper_compile_it_once() -> None:
    """A second copy would free the code that the first thread is running."""
    from ramify.integrate.stepping import Stepper

    made: list[int] = []
    original = Stepper._text

    def counted(self: Stepper, width: int) -> str:
        made.append(width)
        return original(self, width)

    m = rf.load("planar_3r")
    before = rf.threads()
    rf.threads(4)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stepper, "_text", counted)
            q = np.zeros((512, m.nv))
            rf.rollout(
                m, q, q, steps=200, dt=1e-3, control=rf.control.PD(rf.motion.Hold(q[0]), 7.0, 1.5)
            )
    finally:
        rf.threads(before)
    assert len(made) == 1


@pytest.mark.parametrize("steps", [40, 500])
def test_slides_that_run_away_are_marked(steps: int) -> None:
    """No angle, so no sine can raise an alarm: a spring far too stiff for the step."""
    slide = {"joint": "prismatic", "axis": (1, 0, 0), "mass": 0.01, "spring": {"stiffness": 1e6}}
    model = rf.Builder("stiff").link("a", **slide).model()
    long = pytest.warns(RuntimeWarning, match="too long for rk4")
    with pytest.warns(RuntimeWarning, match="1 of 2 states failed"), long:
        end = rf.rollout(model, [[0.1], [0.0]], [0.0], steps=steps, dt=1e-3, method="rk4")
    assert end.status.failed.tolist() == [True, False]
    assert "the rate of 'a' exceeds" in end.status.failures[0].reason or steps == 500
    assert np.isnan(end.q[0]).all()
    assert np.isfinite(end.q[1]).all()


@pytest.mark.parametrize("control", ["servo", "policy"])
def test_states_that_failed_in_an_earlier_rollout_stay_failed_and_the_others_go_on(
    arm: rf.Model, control: str
) -> None:
    """A loop of rollouts: NaN rows come back as NaN, without a word; the rest is as without them."""
    law: Any = rf.control.PD(rf.motion.Hold(np.zeros(3)), kp=30.0, kd=3.0)
    if control == "policy":
        law = lambda t, q, v: -30.0 * q - 3.0 * v  # noqa: E731
    rng = np.random.default_rng(4)
    q, v, tau = (rng.normal(size=(5, 3)) for _ in range(3))
    bad, good = [1, 3], [0, 2, 4]
    lost = [np.array(x) for x in (q, v, tau)]
    for x in lost:
        x[bad] = np.nan
    given = {"steps": 6, "dt": 1e-3, "every": 2, "control": law}
    run = rf.rollout(arm, lost[0], lost[1], tau=lost[2][:, None], **given)
    want = rf.rollout(arm, q[good], v[good], tau=tau[good][:, None], **given)
    assert np.array_equal(run.q[good], want.q)
    assert np.isnan(run.q[bad]).all()
    assert run.status.failed.tolist() == [False, True, False, True, False]
    assert run.status.failures[0].reason == "it had failed before"
    last = rf.rollout(arm, run.q[:, -1], run.v[:, -1], **{**given, "every": None})
    assert np.isnan(last.q).any(axis=1).tolist() == run.status.failed.tolist()
    half = np.array(q)
    half[1, 0] = np.nan
    with pytest.raises(rf.StateError, match=r"q0\[0\] of state 1 is nan"):
        rf.rollout(arm, half, v, **given)
    with pytest.raises(rf.StateError, match="is nan"):
        rf.rollout(arm, np.full((2, 3), np.nan), np.zeros((2, 3)), **given)


def test_where_all_fail_samples_that_were_kept_can_be_looked_at(arm: rf.Model) -> None:
    given = {"steps": 40, "dt": 1e-2, "control": lambda t, q, v: 1e4 * v}
    start, rate = np.zeros((2, 3)), np.full((2, 3), 0.1)
    with pytest.raises(rf.SimulationError, match="2 of 2 states failed"):
        rf.rollout(arm, start, rate, **given)
    with pytest.warns(RuntimeWarning, match="2 of 2 states failed"):
        run = rf.rollout(arm, start, rate, every=1, **given)
    r = run.result(1)
    assert r.status.startswith("failed: the motion runs away")
    assert 1 < len(r) < 40
