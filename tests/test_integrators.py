"""Integrators against closed forms: the pendulum, a torque-free body, a projectile; and against
SciPy's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_runs import pendulum
from scipy.integrate import DOP853
from scipy.special import ellipj, ellipk

import ramify as rf
from ramify.cli import main
from ramify.integrate import run_segments
from ramify.integrate.compiled_dop853 import CompiledDop853
from ramify.integrate.dop853 import Dop853
from ramify.integrate.integrators import (
    find_integrator,
    forget,
    integrators,
    method_names,
    register,
    scheme_of,
    tableau,
)
from ramify.plant.make_field import PlantOptions, make_field
from ramify.plant.rates import Rates

FIXED, ADAPTIVE = (
    [name for i in integrators() if i.fixed == fixed for name in (i.name, *i.aliases)]
    for fixed in (True, False)
)
ORDERS = {
    "euler": 1,
    "semi_implicit_euler": 1,
    "energy": 2,
    "implicit_euler": 1,
    "implicit_extrapolation": 2,
    "rk4": 4,
    "ab4": 4,
    "rk5": 5,
    "ode5": 5,
}
EXPLICIT = {"rk23": 3, "rk45": 5, "ode45": 5, "dop853": 8}
START = 2.0
"""Angle from which the pendulum falls, rad."""


def swing(t: Any) -> tuple[Any, Any]:
    """(q, v) of the pendulum of 1 m after it was let go at START: sin(q / 2) = k sn(K - w t)."""
    w, k = np.sqrt(9.81), np.sin(START / 2.0)
    sn, cn, _, _ = ellipj(ellipk(k**2) - w * np.asarray(t), k**2)
    return 2.0 * np.arcsin(k * sn), -2.0 * w * k * cn


def measured(error: Callable[[float], float], step: float, halvings: int = 2) -> float:
    """The order seen between two steps."""
    return float(np.log2(error(step) / error(step / 2**halvings)) / halvings)


def test_every_method_is_looked_at() -> None:
    assert set(ORDERS) == set(FIXED)
    assert set(EXPLICIT) | {"radau", "bdf", "ode15s", "lsoda", "cvode"} == set(ADAPTIVE)


# ---- the pendulum ----


@pytest.mark.parametrize("method", ORDERS)
def test_order_of_fixed_steps(method: str) -> None:
    model = pendulum()
    exact = np.array(swing(1.0))

    def error(step: float) -> float:
        r = rf.simulate(model, 1.0, [START], method=method, step=step, dt_out=1.0)
        return float(np.abs(np.r_[r.q[-1], r.v[-1]] - exact).max())

    assert measured(error, 0.02) == pytest.approx(ORDERS[method], abs=0.25)


@pytest.mark.parametrize("method", EXPLICIT)
def test_order_of_adaptive_methods_held_to_a_step(method: str) -> None:
    model = pendulum()
    exact = np.array(swing(3.0))

    def error(step: float) -> float:
        r = rf.simulate(
            model, 3.0, [START], method=method, rtol=1.0, atol=10.0, max_step=step, dt_out=3.0
        )
        return float(np.abs(np.r_[r.q[-1], r.v[-1]] - exact).max())

    found = measured(error, 0.2 if method == "dop853" else 0.05, 1)
    assert EXPLICIT[method] - 0.5 < found < EXPLICIT[method] + 1.5


@pytest.mark.parametrize("method", ["auto", *ADAPTIVE])
def test_adaptive_methods_keep_their_tolerance(method: str) -> None:
    for rtol in (1e-5, 1e-8):
        r = rf.simulate(
            pendulum(), 2.0, [START], method=method, rtol=rtol, atol=0.01 * rtol, dt_out=0.05
        )
        q, v = swing(r.t)
        assert np.abs(r.q[:, 0] - q).max() < 500.0 * rtol
        assert np.abs(r.v[:, 0] - v).max() < 2000.0 * rtol
        assert r.audit.passed


@pytest.mark.parametrize("method", ["rk4", "rk5", "ab4"])
def test_output_between_steps_is_of_fourth_order(method: str) -> None:
    def error(step: float) -> float:
        r = rf.simulate(pendulum(), 1.0, [START], method=method, step=step, dt_out=0.0171)
        return float(np.abs(r.q[:, 0] - swing(r.t)[0]).max())

    assert measured(error, 0.05, 1) > 3.5


def test_dop853_is_scipys() -> None:
    def rates(t: float, y: Any) -> Any:
        return np.array([y[1], -np.sin(y[0]) + 0.1 * np.cos(3.0 * t), y[0] * y[2]])

    ours, theirs = (
        kind(rates, 0.3, np.array([1.0, 0.0, 2.0]), 9.0, rtol=1e-7, atol=1e-9, max_step=np.inf)
        for kind in (Dop853, DOP853)
    )
    while theirs.status == "running":
        ours.step()
        theirs.step()
        assert ours.t == theirs.t
        assert np.array_equal(ours.y, theirs.y)
        middle = 0.3 * theirs.t_old + 0.7 * theirs.t
        assert np.allclose(
            ours.dense_output()(middle), theirs.dense_output()(middle), rtol=1e-15, atol=1e-15
        )
    assert ours.status == theirs.status == "finished"


# ---- a body that turns freely ----

MOMENTS = (3.0, 2.0, 1.0)
W0 = (0.8, 0.0, 1.3)
"""Principal moments, kg m^2, and the angular velocity at the start, rad/s."""


def body(kind: str, gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> rf.Model:
    return rf.with_gravity(
        rf.Builder("body").link("brick", joint=kind, mass=2.0, inertia=MOMENTS).model(), gravity
    )


def euler_top(t: Any) -> Any:
    """Angular velocity in the body (T, 3) by Jacobi's functions, from w2 = 0 (Landau and Lifshitz,
    Mechanics, section 37).
    """
    a, b, c = MOMENTS
    x, _, z = W0
    twice, square = (
        a * x * x + c * z * z,
        (a * x) ** 2 + (c * z) ** 2,
    )  # of the energy; of the momentum
    assert square > twice * b  # this branch: the momentum goes round the first axis
    rate = np.sqrt((a - b) * (square - twice * c) / (a * b * c))
    k2 = (b - c) * (twice * a - square) / ((a - b) * (square - twice * c))
    sn, cn, dn, _ = ellipj(rate * np.asarray(t), k2)
    return np.stack([x * dn, -np.sqrt((twice * a - square) / (b * (a - b))) * sn, z * cn], axis=-1)


@pytest.mark.parametrize("kind", ["free", "ball"])
@pytest.mark.parametrize("method", ["rk4", "rk5", "semi_implicit_euler", "ab4"])
def test_order_on_the_torque_free_body(kind: str, method: str) -> None:
    model = body(kind)
    v0 = np.r_[np.zeros(model.nv - 3), W0]
    fine = rf.simulate(model, 2.0, v0=v0, method="dop853", rtol=1e-13, atol=1e-14, dt_out=2.0)

    def error(step: float) -> float:
        r = rf.simulate(model, 2.0, v0=v0, method=method, step=step, dt_out=2.0)
        assert np.linalg.norm(r.q[-1, -4:]) == pytest.approx(1.0, abs=1e-14)
        turned = np.abs(model.difference(r.q[-1], fine.q[-1])).max()
        return max(float(np.abs(r.v[-1, -3:] - euler_top(2.0)).max()), float(turned))

    assert measured(error, 0.05) == pytest.approx(ORDERS[method], abs=0.4)


@pytest.mark.parametrize("method", ["dop853", "ode45", "lsoda", "radau", "cvode"])
def test_the_torque_free_body_turns_as_jacobi_says(method: str) -> None:
    model = body("free")
    r = rf.simulate(
        model, 20.0, v0=np.r_[0.3, -0.2, 0.1, W0], method=method, rtol=1e-9, atol=1e-11, dt_out=0.1
    )
    assert np.abs(r.v[:, 3:] - euler_top(r.t)).max() < 1e-5
    assert np.abs(np.linalg.norm(r.q[:, 3:], axis=1) - 1.0).max() < 1e-14
    assert np.abs(r.q[:, :3] - np.outer(r.t, [0.3, -0.2, 0.1])).max() < 1e-7
    assert r.audit.passed


@pytest.mark.parametrize(
    "method", ["dop853", "ode45", "rk4", "rk5", "ab4", "radau", "bdf", "lsoda"]
)
@pytest.mark.parametrize("kind", ["free", "free_euler"])
def test_a_thrown_base_flies_along_a_parabola(kind: str, method: str) -> None:
    g = (0.0, 0.3, -9.81)
    model = body(kind, g)
    q0 = model.neutral()
    q0[:3] = 0.1, 0.2, 0.3
    r = rf.simulate(
        model,
        1.0,
        q0,
        np.r_[1.0, 2.0, 5.0, 0.0, 0.4, 0.0],
        method=method,
        step=0.01 if method in FIXED else None,
        dt_out=0.1,
    )
    t = r.t[:, None]
    close = 1e-12 if method in FIXED or method in ("dop853", "ode45") else 1e-5
    assert np.abs(r.q[:, :3] - (q0[:3] + t * [1.0, 2.0, 5.0] + 0.5 * t**2 * g)).max() < close
    assert np.abs(r.v[:, :3] - ([1.0, 2.0, 5.0] + t * g)).max() < close


def test_euler_methods_on_the_parabola() -> None:
    """Both have errors of g h t / 2, of opposite signs."""
    model, h = body("free", (0.0, 0.0, -9.81)), 0.01
    for method, sign in (("euler", 1.0), ("semi_implicit_euler", -1.0)):
        r = rf.simulate(model, 1.0, method=method, step=h, dt_out=0.25)
        assert np.allclose(
            r.q[:, 2] + 0.5 * 9.81 * r.t**2, sign * 0.5 * 9.81 * h * r.t, rtol=0.0, atol=1e-12
        )


# ---- energy ----


def test_energy_of_the_falling_kuka() -> None:
    r = rf.scenario("kuka_free_fall").run()
    total = r.energy.total
    assert np.abs(total - total[0]).max() <= 1e-9 * np.ptp(r.energy.kinetic)
    assert r.t[-1] == 1.0
    assert r.audit.passed


def test_the_double_pendulum_keeps_its_energy() -> None:
    r = rf.simulate(rf.load("two_link"), 20.0, [1.0, 0.5], method="energy", step=0.01, dt_out=0.1)
    off = np.abs(r.energy.total - r.energy.total[0]) / np.ptp(r.energy.kinetic)
    assert off.max() < 1e-10
    assert off[-100:].max() < 1e-10  # bounded: no worse at the end
    assert np.ptp(r.q[:, 1]) > 3.0  # it does move


def test_the_energy_method_says_what_it_cannot_do() -> None:
    model = rf.load("two_link")
    with pytest.raises(rf.SimulationError, match="without control and damping"):
        rf.simulate(model, 1.0, method="energy", step=0.01, damping=0.1)
    with pytest.raises(rf.SimulationError, match="not quaternions"):
        rf.simulate(body("free"), 1.0, method="energy", step=0.01)
    with pytest.raises(rf.SimulationError, match="does not converge") as stop:
        rf.simulate(model, 2.0, [1.0, 2.0], [30.0, -60.0], method="energy", step=0.5)
    assert isinstance(stop.value.result, rf.Result)


# ---- stiffness ----


def stiff(rate: float) -> Any:
    """A pendulum in honey: friction of a rate far above its own frequency."""
    return rf.simulate(
        pendulum(mass=1.0), 2.0, [1.0], damping=rate, rtol=1e-6, atol=1e-9, dt_out=0.1
    )


def test_auto_notices_stiff_motion() -> None:
    r = stiff(2e5)
    assert "lsoda" in r.options["method"]
    assert "stiff" in r.options["method"]
    assert r.stats["steps"] < 2000
    assert np.abs(r.q[:, 0] - 1.0).max() < 1e-3
    assert r.audit.passed


def test_auto_stays_explicit_where_nothing_is_stiff() -> None:
    assert stiff(1.0).options["method"] == "dop853"
    long = rf.simulate(
        pendulum(), 300.0, [0.5], rtol=1e-8, dt_out=1.0
    )  # thousands of steps are not stiffness
    assert long.options["method"] == "dop853"
    assert long.stats["steps"] > 1000


# ---- the registry ----

HEUN = tableau("heun", [[], [1.0]], [0.5, 0.5], order=2, doc="Heun's scheme", aliases=("improved",))
SCENARIO = """
name: swing
robot: {name: two_link}
initial: {q: [1.0, 0.5]}
t_end: 0.5
method: heun
step: 0.01
dt_out: 0.5
"""


def test_an_integrator_from_outside_serves_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, q0 = rf.load("two_link"), [1.0, 0.5]
    fine = rf.simulate(model, 0.5, q0, rtol=1e-12, dt_out=0.5).q[-1]
    path = tmp_path / "swing.yaml"
    path.write_text(SCENARIO)
    with pytest.raises(rf.RamifyError, match="no method is called 'heun'"):
        rf.scenario(path)
    register(HEUN)
    try:
        run = rf.simulate(model, 0.5, q0, method="improved", step=0.01, dt_out=0.5)
        assert run.options["method"] == "heun"
        assert run.stats["evaluations"] == 100
        rolled = rf.rollout(model, q0, [0.0, 0.0], steps=50, dt=0.01, method="heun")
        from_file = rf.scenario(path).run()
        with pytest.raises(SystemExit) as stop:
            main(["simulate", "two_link", "--initial", "1.0", "0.5", "--t-end", "0.5", "--method",
                  "heun", "--step", "0.01", "--json"])  # fmt: skip
        assert not stop.value.code
        told = json.loads(capsys.readouterr().out)
        ends = [run.q[-1], rolled.q, from_file.q[-1], told["last"]["q"]]
        assert np.ptp(np.array(ends), axis=0).max() < 1e-14
        off = [
            np.abs(
                rf.rollout(model, q0, [0.0, 0.0], steps=n, dt=0.5 / n, method="heun").q - fine
            ).max()
            for n in (100, 200)
        ]
        assert np.log2(off[0] / off[1]) == pytest.approx(2.0, abs=0.1)
        with pytest.raises(rf.SimulationError, match="'heun' exists already"):
            register(HEUN)
    finally:
        forget(HEUN)
    assert "heun" not in method_names()


def test_a_new_table_under_an_old_name_is_compiled_anew() -> None:
    """Compiled steps are kept on disk: their key holds the numbers of the table."""
    ends = []
    for weights in ([0.5, 0.5], [0.25, 0.75]):
        one = register(tableau("two_stages", [[], [1.0]], weights, order=1))
        try:
            found = rf.rollout(pendulum(), [1.0], [0.0], steps=10, dt=0.05, method="two_stages")
        finally:
            forget(one)
        ends.append(found.q[0])
    assert abs(ends[0] - ends[1]) > 1e-3


@pytest.mark.parametrize(
    ("name", "limit"),
    [("euler", 2.0), ("rk4", 2.785293563405282), ("rk5", 3.3065678926347633)],
)
def test_the_limit_of_stability_follows_from_the_table(name: str, limit: float) -> None:
    assert scheme_of(name).stability == pytest.approx(limit, rel=1e-9)


def test_compiled_dop853_takes_the_same_steps() -> None:
    """Against the method in NumPy, on a robot with quaternions and a controller, output between
    the steps included.
    """
    model = rf.load("space_3_link", base="free")
    motion = rf.motion.Cycloid(0.0, np.full(model.nv - 6, 0.3), 1.0)
    rates = Rates(make_field(model, rf.control.ComputedTorque(motion), PlantOptions(0.1)))
    y0 = rates.field.start(model.neutral(), 0.5 * np.cos(np.arange(model.nv)))
    given = {"rtol": 1e-9, "atol": 1e-11, "max_step": 0.5}
    ours, plain = (kind(rates, 0.0, y0, 1.0, **given) for kind in (CompiledDop853, Dop853))
    grid = np.linspace(0.0, 1.0, 34)[1:]
    wanted, times = [], [0.0]
    while plain.status == "running":
        plain.step()
        times.append(plain.t)
        at = plain.dense_output()
        wanted += [at(float(t)) for t in grid if plain.t_old < t <= plain.t]
    rows, steps, message = ours.advance(grid, 1e5, 15)
    assert (ours.status, message, steps) == ("finished", None, len(times) - 1)
    assert np.allclose(rows, np.array(wanted), rtol=0.0, atol=1e-12)
    assert np.allclose(ours.y, plain.y, rtol=0.0, atol=1e-12)
    single = CompiledDop853(rates, 0.0, y0, 1.0, **given)
    for t in times[1:]:
        assert single.step() is None
        assert single.t == pytest.approx(t, rel=1e-6)
    assert single.status == "finished"


def test_compiled_steps_go_on_where_the_kernel_refuses_an_angle() -> None:
    """Beyond a million radians the kernel's own sine ends, and the text's takes over."""
    model = pendulum()
    far = 2.0 * np.pi * 159155.0  # whole turns: 1.00000...e6 rad, crossed by a swing about it
    for method, step in (("dop853", None), ("rk4", 1e-3)):
        near, there = (
            rf.simulate(model, 1.0, [START + turns], method=method, step=step, dt_out=0.05)
            for turns in (0.0, far)
        )
        assert np.abs(there.q - far - near.q).max() < 1e-6
        assert np.abs(there.q).min() < 1e6 < np.abs(there.q).max()


def test_stages_stay_within_their_step() -> None:
    """A motion ends with the last step, and is followed to its end: beyond it there is none."""
    errors = []
    for step in (0.05, 0.025):
        r = rf.scenario("two_link_line").run(method="rk4", step=step)
        assert r.desired is not None
        errors.append(np.abs(r.v - r.desired.v).max())
    assert errors[0] < 1e-7
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.15)
    seen: list[float] = []

    def law(t: float, q: Any, v: Any) -> Any:
        seen.append(t)
        return np.zeros(1)

    rf.simulate(pendulum(), 0.3, control=law, method="rk4", step=0.1, dt_out=0.3)
    assert max(seen) <= 0.3  # 3 * 0.1 is more
    assert min(seen[4:12]) >= 0.1  # the second and the third step


@pytest.mark.parametrize("method", sorted(set(method_names()) - {"energy", "implicit_euler"}))
def test_no_method_asks_a_controller_after_the_end(method: str) -> None:
    """Also where the last steps are long."""
    seen: list[float] = []

    def law(t: float, q: Any, v: Any) -> Any:
        seen.append(t)
        return -2.0 * v - 5.0 * q

    step = {"step": 0.013} if method != "auto" and find_integrator(method).fixed else {}
    rf.simulate(pendulum(), 0.7, [0.3], control=law, method=method, dt_out=0.3, **step)
    assert max(seen) <= 0.7


def test_a_run_that_gets_nowhere_is_stopped_with_what_was_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_segments, "_WINDOW", 100)
    monkeypatch.setattr(run_segments, "_HOPELESS", 10_000)

    def rattling(t: float, q: Any, v: Any) -> Any:
        return [1e4 * np.sin(1e5 * t) if t > 0.2 else 0.0]

    with pytest.raises(rf.SimulationError, match=r"makes no progress: its last \d+ steps") as stop:
        rf.simulate(pendulum(), 5.0, [1.0], control=rattling, method="dop853", dt_out=0.05)
    found = stop.value.result
    assert isinstance(found, rf.Result)
    assert 0.1 < found.t[-1] < 0.5
    assert found.status.startswith("failed: the run makes no progress")


def test_a_run_of_tiny_steps_is_stopped_unless_its_method_was_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on ground a million times too stiff, which takes hours; one slow stretch alone stops
    nothing.
    """
    monkeypatch.setattr(run_segments, "_WINDOW", 100)
    monkeypatch.setattr(run_segments, "_SLOW", 2000)

    def rattling(until: float) -> Any:
        return lambda t, q, v: [1e4 * np.sin(1e6 * t) if 0.02 < t < until else 0.0]

    def run(until: float, **method: Any) -> rf.Result:
        return rf.simulate(pendulum(), 0.05, [1.0], control=rattling(until), **method)

    with pytest.raises(rf.SimulationError, match=r"no progress.*method='\w+' goes on") as stop:
        run(0.05)
    found = stop.value.result
    assert isinstance(found, rf.Result)
    assert 0.02 <= found.t[-1] < 0.03
    assert run(0.0202).t[-1] == 0.05
    monkeypatch.setattr(run_segments, "_HOPELESS", 5000)
    with pytest.raises(rf.SimulationError, match=r"may help$"):
        run(0.05, method="dop853")
