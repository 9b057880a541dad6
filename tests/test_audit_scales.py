"""Errors are measured by the energy and momentum that take part in them: nothing that spins or
travels beside a small body hides what is wrong with it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from reference_runs import changed

import ramify as rf
from ramify.api.result import Result

ROD: dict[str, Any] = {"mass": 1.0, "com": (0.25, 0, 0), "inertia": (0.001, 0.02, 0.02)}
SMALL: dict[str, Any] = {"mass": 0.2, "com": (0.1, 0, 0), "inertia": (1e-4, 8e-4, 8e-4)}
WHEEL: dict[str, Any] = {"mass": 5.0, "inertia": (0.02, 0.02, 0.04)}


def arm(start: rf.Builder, root: str | None, wheel: str | None = "world") -> rf.Model:
    """Two rods, the second small; a wheel on the world, on the first rod or on the root."""
    b = start.link("upper", root, axis=(0, 1, 0), **ROD)
    b = b.link("small", "upper", axis=(0, 1, 0), at=(0.5, 0, 0), **SMALL)
    if wheel is None:
        return b.model()
    parent = None if wheel == "world" else wheel
    return b.link("wheel", parent, axis=(0, 0, 1), **WHEEL).model()


def base(name: str, joint: str, mass: float = 50.0, **more: Any) -> rf.Builder:
    inertia = {"inertia": (4.0, 5.0, 6.0)} if joint != "prismatic" else {}
    gravity = more.pop("gravity", (0.0, 0.0, 0.0))
    start = rf.Builder(name, gravity=gravity)
    return start.link("base", joint=joint, mass=mass, **inertia, **more)


def start(model: rf.Model, rates: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Rods bent, some rates; others 0.5 rad/s at the rods."""
    q, v = model.neutral(), np.zeros(model.nv)
    q[list(model.coordinates).index("small")] = 0.7
    q[list(model.coordinates).index("upper")] = 0.3
    for name, rate in {"upper": 0.5, "small": -0.8, **rates}.items():
        v[list(model.velocities).index(name)] = rate
    return q, v


EARTH = (0.0, 0.0, -9.81)
RUNS: dict[str, tuple[Any, dict[str, float]]] = {
    "flywheel beside the arm": (lambda: arm(rf.Builder("a"), None), {"wheel": 600.0}),
    "flywheel on the arm": (lambda: arm(rf.Builder("b"), None, "upper"), {"wheel": 600.0}),
    "fast flywheel, y up": (
        lambda: arm(rf.Builder("c", gravity=(0, -9.81, 0)), None), {"wheel": 5000.0}),
    "spacecraft": (lambda: arm(base("d", "free"), "base", None), {}),
    "spacecraft with a wheel": (lambda: arm(base("e", "free"), "base", "base"), {"wheel": 600.0}),
    "spacecraft in orbit": (
        lambda: arm(base("f", "free"), "base", "base"), {"base.x": 7500.0, "wheel": 300.0}),
    "arm on a fast train": (
        lambda: arm(base("g", "prismatic", 5e4, axis=(1, 0, 0), gravity=EARTH), "base", None),
        {"base": 80.0}),
    "arm with a flywheel on a fast train": (
        lambda: arm(base("h", "prismatic", 5e4, axis=(1, 0, 0), gravity=EARTH), "base", "base"),
        {"base": 80.0, "wheel": 600.0}),
    "thrown robot": (
        lambda: arm(base("i", "free", gravity=EARTH), "base", "base"),
        {"base.z": 50.0, "base.y": 30.0, "wheel": 400.0}),
    "spacecraft that spins fast": (
        lambda: arm(base("k", "free"), "base", "base"), {"base.wz": 30.0, "wheel": 600.0}),
    "arm on a turntable": (
        lambda: arm(rf.Builder("l").link("base", axis=(0, 0, 1), mass=500.0, inertia=(50, 50, 100)), "base", None),
        {"base": 20.0}),
    "sled": (
        lambda: arm(base("j", "planar", axis=(0, 0, 1), gravity=EARTH), "base", "base"),
        {"base.x": 40.0, "wheel": 600.0}),
}  # fmt: skip


@cache
def sound(name: str, **options: Any) -> Result:
    make, rates = RUNS[name]
    model = make()
    return rf.simulate(model, 1.0, *start(model, rates), dt_out=0.02, **options)


@pytest.mark.parametrize("name", RUNS)
def test_sound_runs_pass(name: str) -> None:
    assert sound(name).audit.passed, str(sound(name).audit)


def rate_off(run: Result) -> Result:
    v = np.array(run.v)
    v[:, list(run.model.velocities).index("small")] *= 1.01
    return changed(run, v=v)


def place_off(run: Result) -> Result:
    q = np.array(run.q)
    q[:, list(run.model.coordinates).index("small")] *= 1.01
    return changed(run, q=q)


def mass_off(run: Result) -> Result:
    return changed(run, model=rf.with_parameters(run.model, {"small.mass": 1.01 * 0.2}))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("plant", [rate_off, place_off, mass_off])
def test_one_percent_in_a_small_body_is_found(name: str, plant: Any) -> None:
    """A wheel at 600 rad/s or a train at 80 m/s hid it: they were in the scale of every error."""
    found = plant(sound(name)).audit
    assert not found.passed, str(found)


@pytest.mark.parametrize("rate", [0.0, 600.0])
def test_steps_that_are_too_long_are_found_beside_a_wheel(rate: float) -> None:
    model = arm(rf.Builder("coarse"), None)
    q, v = start(model, {"wheel": rate})
    run = rf.simulate(model, 2.0, q, v, method="rk4", step=0.05, dt_out=0.05)
    assert not run.audit.passed, str(run.audit)
    fine = rf.simulate(model, 2.0, q, v, method="rk4", step=1e-3, dt_out=0.05)
    assert fine.audit.passed, str(fine.audit)


@pytest.mark.parametrize("speed", [0.0, 1.0, 80.0])
def test_the_internal_energy_is_the_same_in_every_steady_frame(speed: float) -> None:
    """A coarse step on a train at rest and at speed: the same error, the same scale, the same
    verdict.
    """
    model = RUNS["arm on a fast train"][0]()
    q, v = start(model, {"base": speed})
    run = rf.simulate(model, 2.0, q, v, method="rk4", step=0.05, dt_out=0.05)
    still = rf.simulate(model, 2.0, *start(model, {}), method="rk4", step=0.05, dt_out=0.05)
    (here,), (there,) = run.audit.internal, still.audit.internal
    assert not here.passed
    assert here.scale == pytest.approx(there.scale, rel=1e-9)
    assert here.largest == pytest.approx(there.largest, rel=1e-3)


def test_a_free_top_that_keeps_its_energy_passes() -> None:
    """All energy stays as it is, but the body tumbles: that is motion, and errors are measured by
    it.
    """
    body = {"mass": 3.0, "inertia": (0.1, 0.2, 0.28), "com": (0.02, 0.0, 0.01)}
    model = rf.Builder("top", gravity=(0, 0, 0)).link("top", joint="free", **body).model()
    run = rf.simulate(model, 5.0, v0=[0, 0, 0, 0.1, 8.0, 0.1], dt_out=0.05)
    assert run.audit.passed, str(run.audit)
    assert not changed(run, v=run.v * (1.0 + 1e-3 * run.t[:, None])).audit.passed


@pytest.mark.parametrize("name", ["flywheel beside the arm", "spacecraft with a wheel"])
def test_far_from_the_origin_the_verdicts_are_the_same(name: str) -> None:
    """The base moved by 10^4 m."""
    model = RUNS[name][0]()
    far = (1e4, -1e4, 1e4)
    roots = {body.joint.name for body in model.bodies if body.parent < 0}
    bodies = tuple(
        replace(body, joint=replace(
            body.joint, placement=replace(body.joint.placement, position=np.array(far))))
        if body.joint.name in roots else body
        for body in model.bodies
    )  # fmt: skip
    moved = rf.Model.of(replace(model, bodies=bodies))
    run = rf.simulate(moved, 1.0, *start(moved, RUNS[name][1]), dt_out=0.02)
    assert run.audit.passed, str(run.audit)
    assert not rate_off(run).audit.passed


TIP: dict[str, Any] = {"mass": 0.01, "com": (0, 0, -0.1), "inertia": (3e-5, 3e-5, 1e-6)}
HEAVY: dict[str, Any] = {"mass": 1e3, "inertia": (100.0, 150.0, 200.0)}


def tips(start: rf.Builder, root: str | None) -> rf.Model:
    """Two bodies of 10 g, about crossed axes."""
    b = start.link("upper", root, axis=(0, 1, 0), at=(0.5, 0.2, 0.1), **TIP)
    return b.link("small", "upper", axis=(1, 0, 0), at=(0, 0, -0.2), **TIP).model()


def car(**more: Any) -> rf.Model:
    more = {"mass": 1e4, "inertia": (1, 1, 1), "axis": (1, 0, 0), "actuated": False, **more}
    return tips(rf.Builder("car").link("base", joint="prismatic", **more), "base")


def heavy(gravity: tuple[float, ...] = (0, 0, 0), com: tuple[float, ...] = (0, 0, 0)) -> rf.Model:
    start = rf.Builder("heavy", gravity=gravity)
    return tips(start.link("base", joint="free", com=com, **HEAVY), "base")


def disc(root: str | None) -> rf.Model:
    wheel = {"axis": (0, 0, 1), "mass": 50.0, "inertia": (2.0, 2.0, 4.0)}
    return tips(rf.Builder("disc").link("wheel", **wheel), root)


OFF = (0.2, 0.1, 0.3)
BESIDE: dict[str, tuple[Any, dict[str, float]]] = {
    "10 t at rest": (car, {}),
    "10 t at 80 m/s": (car, {"base": 80.0}),
    "10 t at 300 m/s": (car, {"base": -300.0}),
    "4 kg m^2 at 1000 rad/s": (lambda: disc(None), {"wheel": 1000.0}),
    "1 t at 300 m/s": (heavy, {"base.x": 300.0}),
    "1 t at 300 m/s off its origin": (lambda: heavy(com=OFF), {"base.y": 300.0}),
    "1 t under gravity": (lambda: heavy(EARTH), {}),
    "1 t under gravity, y up": (lambda: heavy((0, -9.81, 0), OFF), {"base.x": 300.0}),
    "1 t at 1 rad/s": (heavy, {"base.wz": 1.0}),
    "1 t at 1 rad/s about y": (lambda: heavy(com=OFF), {"base.wy": 1.0}),
    "1 t at 1 rad/s and 300 m/s under gravity": (
        lambda: heavy(EARTH), {"base.wx": 1.0, "base.x": 300.0}),
}  # fmt: skip


@cache
def beside(name: str) -> Result:
    make, rates = BESIDE[name]
    model = make()
    q, v = start(model, {"upper": 3.0, "small": -4.0, **rates})
    return rf.simulate(model, 1.0, q, v, dt_out=0.02)


@pytest.mark.parametrize("name", BESIDE)
def test_sound_runs_of_a_small_body_on_a_heavy_one_pass(name: str) -> None:
    assert beside(name).audit.passed, str(beside(name).audit)


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("what", ["mass", "inertia", "com"])
def test_one_percent_in_ten_grams_on_a_heavy_body_is_found(name: str, what: str) -> None:
    """What atol allows was measured by the momentum of the heavy body, however steadily it moved.
    The energy alone must find it, by far.
    """
    run = beside(name)
    value = 1.01 * np.array(rf.parameters(run.model)[f"small.{what}"].nominal)
    wrong = rf.with_parameters(
        run.model, {f"small.{what}": value.item() if what == "mass" else value}
    )
    audit = changed(run, model=wrong).audit
    sharpest = audit.internal[0] if audit.internal else audit.energy
    assert sharpest.largest > 10.0 * sharpest.limit, str(audit)


@pytest.mark.parametrize("speed", [80.0, 300.0])
def test_limits_of_the_internal_energy_are_the_same_in_every_steady_frame(speed: float) -> None:
    """Also what rounding and atol add to them."""
    model = car()
    wrong = rf.with_parameters(model, {"small.mass": 0.0101})
    runs = [rf.simulate(model, 1.0, *start(model, {"base": v}), dt_out=0.02) for v in (0.0, speed)]
    for pair in (runs, [changed(run, model=wrong) for run in runs]):
        (still,), (moving,) = (run.audit.internal for run in pair)
        assert moving.limit == pytest.approx(still.limit, rel=1e-3)
        assert moving.passed == still.passed


def test_the_rotor_of_a_sliding_root_pushes_on_the_world() -> None:
    """So momentum is not conserved, and a sound run passes."""
    model = car(mass=2.0, armature=1.0)
    run = rf.simulate(model, 1.0, *start(model, {"base": 3.0}), dt_out=0.02)
    assert run.audit.passed, str(run.audit)
    assert not run.audit.momentum
    assert not run.audit.internal
