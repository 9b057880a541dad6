"""Options in pairs, and batches whose second state is the one that matters: what is right alone or
for the first state must be right together and for every state.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.contact import Firm
from ramify.model.machine import Actuator


def wheel(**machine: Any) -> rf.Model:
    """A wheel of 2 kg m^2 about a horizontal axis through its mass centre."""
    made = rf.Builder("wheel").link("rim", axis=(0, 1, 0), mass=1.0, inertia=(2, 2, 2), **machine)
    return made.model()


# ---- pairs of options ----


@pytest.mark.parametrize("scenario", ["kuka_motion", "planar_biped_walk", "four_bar_turn"])
def test_torques_of_a_motion_are_interpolated_as_the_file_says(scenario: str) -> None:
    """On a fixed base, on a floating one and with loops: held forces take few values, others many."""
    steps = {}
    for way in ("hold", "linear"):
        control = {"type": "torques_of_motion", "rows": 11, "interpolate": way}
        r = rf.scenario(scenario).run(control=control, t_end=0.02, dt_out=2e-4)
        steps[way] = np.count_nonzero(np.abs(np.diff(r.tau, axis=0)).max(axis=1) > 0.0)
    assert steps["hold"] <= 10
    assert steps["linear"] > 50


def test_a_wrench_function_is_asked_for_the_time_of_a_later_start() -> None:
    """One rollout is two of half its length, the second with t0."""
    model = wheel()
    how: dict[str, Any] = {"dt": 0.01, "wrenches": lambda t: {"rim": [0, 10.0 * t, 0, 0, 0, 0]}}
    whole = rf.rollout(model, [0.0], [0.0], steps=20, **how)
    first = rf.rollout(model, [0.0], [0.0], steps=10, **how)
    second = rf.rollout(model, first.q, first.v, steps=10, t0=0.1, **how)
    close(second.v, whole.v, 1e-12, of="v after both halves")
    close(whole.v, 0.5 * 10.0 * 0.2**2 / 2.0, 1e-12, of="v, closed form")


@pytest.mark.parametrize("t0", [0.0, 0.05, -0.2])
def test_pushes_of_a_rollout_begin_at_their_own_time(t0: float) -> None:
    """A push of 4 N m from 0.1 to 0.15 s gives its impulse to a rollout from any start."""
    pushes = [(0.1, 0.15, {"rim": [0, 4.0, 0, 0, 0, 0]})]
    r = rf.rollout(wheel(), [0.0], [0.0], dt=0.01, steps=40, t0=t0, wrenches=pushes, every=1)
    t = t0 + 0.01 * np.arange(1, 41)
    close(r.v[:, 0], 4.0 * np.clip(t - 0.1, 0.0, 0.05) / 2.0, 1e-9, 1e-12, "v")


@pytest.mark.parametrize("inside", [True, False])
def test_without_passive_forces_a_limit_has_no_slope(inside: bool) -> None:
    """The linearised wheel turns freely, also beyond its limit."""
    model = wheel(limits=[(-1.0, 1.0)], damping=3.0)
    A, _ = rf.linearize(model, [0.5 if inside else 1.2], [0.0], [0.0], passive=False)
    close(A, [[0.0, 1.0], [0.0, 0.0]], atol=1e-12, of="A")


def filtered() -> rf.Model:
    drive = Actuator("drive", "rim", activation="filter", time=0.2)
    model = wheel()
    return replace(model, machine=replace(model.machine, actuators=(drive,)))


def test_activations_at_the_start_are_those_of_the_parts_of_a_sum() -> None:
    """A drive that starts active acts at once, alone and in a sum."""
    alone = rf.control.Commands({"drive": 0.0}, activation=(3.0,))
    both = rf.control.Sum([rf.control.Torque([0.0]), alone])
    assert both.start == alone.start == (3.0,)
    one, two = (rf.simulate(filtered(), 0.2, control=law) for law in (alone, both))
    close(one.tau[0], [3.0], of="tau at the start")
    close(two.tau, one.tau, 1e-6, 1e-8, "tau of the sum")


@pytest.mark.parametrize(("asked", "gives"), [(9.0, 4.0), (-9.0, -1.5), (-1.0, -1.0)])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_drive_gives_less_backward_than_forward(
    asked: float, gives: float, compiled: bool
) -> None:
    model = wheel(effort=4.0, backward_effort=1.5)
    law: Any = rf.control.Torque([asked]) if compiled else (lambda t, q, v: [asked])
    r = rf.simulate(model, 0.2, control=law)
    close(r.tau, gives, 1e-12, of="tau")
    close(r.v[-1], gives * 0.2 / 2.0, 1e-6, of="v")


@pytest.mark.parametrize("locked", ["joint2", "joint3"])
def test_a_gear_with_an_offset_locks_both_joints_where_it_has_them(locked: str) -> None:
    model = rf.load("planar_3r")
    geared = rf.with_loop(
        model, "gear", "gear", joints=("joint2", "joint3"), ratio=-2.0, offset=0.3
    )
    second = 0.4
    third = -2.0 * second + 0.3
    found = rf.with_locked(geared, locked, second if locked == "joint2" else third)
    expected = rf.with_locked(rf.with_locked(model, "joint2", second), "joint3", third)
    close(found.gravity_forces([0.7]), expected.gravity_forces([0.7]), 1e-12, of="gravity force")


def test_ground_without_damping_is_not_ground_with_the_default() -> None:
    ball = rf.Builder("ball").link("ball", joint="free", mass=2.0, inertia=(1, 1, 1), points={"p": (0, 0, 0)}).model()  # fmt: skip
    for damping in (0.0, 7.0):
        assert Firm(stiffness=900.0, damping=damping).fitted(ball).damping == damping
    default = Firm(stiffness=900.0).fitted(ball).damping
    ten = Firm(stiffness=900.0, overdamping=10.0).fitted(ball).damping
    close(ten, 2.0 * 10.0 * math.sqrt(900.0 * 2.0), 1e-12, of="damping")
    assert default > 0.0


# ---- the second state, the second call ----


@pytest.mark.parametrize("slow", [0, 1])
def test_dry_friction_at_rest_is_reported_for_any_state_of_a_batch(slow: int) -> None:
    model = wheel(friction={"coulomb": 5.0, "slip_speed": 0.01})
    v = np.full((2, 1), 50.0)
    v[slow] = 0.0
    with pytest.warns(RuntimeWarning, match="'rim' of 'wheel' is slower"):
        rf.linearize(model, np.zeros((2, 1)), v, np.zeros((2, 1)))


def test_the_method_of_a_batch_follows_the_gains_of_each_call() -> None:
    """Soft gains first, then stiff ones at the same step: the second batch must not run away."""
    model = wheel()
    for kp in (1.0, 2e7):
        law = rf.control.PD(rf.motion.Hold([0.0]), kp=kp, kd=0.0)
        r = rf.rollout(
            model, np.full((3, 1), 0.1), np.zeros((3, 1)), dt=1e-3, steps=100, control=law
        )
        assert np.abs(r.q).max() < 0.2, f"kp = {kp:g}: |q| up to {np.abs(r.q).max():.3g}"
