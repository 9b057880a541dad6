"""Overconstrained linkages: they fall freely, whatever the cut and the axes of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from closed_systems import four_bar
from linkages import in_axes, ring

import ramify as rf


def bennett(seed: int, cut: int) -> rf.Model:
    """A Bennett linkage: opposite bars alike, sin(twist) / length the same for all four."""
    rng = np.random.default_rng(seed)
    a, alpha, ratio = rng.uniform(0.3, 0.8), rng.uniform(0.4, 0.8), rng.uniform(0.5, 1.2)
    twist = np.arcsin(ratio * np.sin(alpha))
    bars = [(a, alpha), (ratio * a, twist)] * 2
    return ring("bennett", bars, rng, cut)


@pytest.mark.parametrize(("seed", "cut"), [(0, 2), (0, 4), (1, 3), (2, 4)])
def test_a_bennett_linkage_keeps_its_energy(seed: int, cut: int) -> None:
    """Rows that vanish where others do not made redundant ones look independent: all energy went
    when a hinge passed zero.
    """
    model = bennett(seed, cut)
    start = model.assemble({model.coordinates[0]: 0.8})
    assert model.constraints(start.q).mobility == 1
    run = rf.simulate(in_axes(model, (0.0, 0.0, 0.4)), 3.0, start.q, rtol=1e-10, atol=1e-12)
    total = run.energy.kinetic + run.energy.potential
    assert np.abs(total - total[0]).max() < 1e-7 * max(1.0, run.energy.kinetic.max())


def test_ball_joints_of_plane_linkages_may_be_turned() -> None:
    """The axes of a ball joint's rows mean nothing."""
    model = four_bar(kind="spherical")
    state = model.assemble({"crank": 1.0}, rates={"crank": 2.0})
    a = model.forward_dynamics(state.q, state.v, np.zeros(3))
    for rpy in ((1e-3, 1.5697, 0.2), (1e-4, 0.3, -2e-5), (1.0, 2.0, 3.0)):
        turned = in_axes(model, rpy)
        np.testing.assert_allclose(
            turned.forward_dynamics(state.q, state.v, np.zeros(3)), a, rtol=1e-9, atol=1e-9
        )


def test_a_wheel_elsewhere_does_not_hide_rates_that_open_a_loop() -> None:
    """The tolerance of v0 was a share of the fastest joint, also of one outside the loop."""
    model = rf.load("four_bar")
    state = model.assemble({"crank": 1.0}, rates={"crank": 2.0})
    wheel = rf.Builder("wheel").link("wheel", mass=1.0, inertia=(0.1, 0.1, 0.1)).model()
    both = replace(model, bodies=(*model.bodies, wheel.bodies[0]))
    off = np.append(state.v + np.array([0.0, 0.05, 0.0]), 1000.0)
    with pytest.raises(rf.LoopError, match="v0 of state 0"):
        rf.simulate(both, 0.1, np.append(state.q, 0.0), off)
