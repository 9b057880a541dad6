"""Derivatives of rollouts with hard contact against central differences: landing, sticking, sliding,
stops, dry friction, loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.contact import Hard

TIGHT = Hard(friction=0.4, tolerance=1e-10, iterations=1000)
Array = np.ndarray[Any, np.dtype[np.float64]]


def tripod() -> rf.Model:
    """Three feet, so that their loads are determined."""
    feet = {"a": (0.2, 0, -0.1), "b": (-0.1, 0.15, -0.1), "c": (-0.1, -0.15, -0.1)}
    made = rf.Builder("tripod")
    inertia = (0.03, 0.04, 0.05)
    return made.link("body", joint="free", mass=2.0, inertia=inertia, points=feet).model()


def differences(m: rf.Model, q: Array, v: Array, steps: int, eps: float = 1e-6) -> Array:
    """Of the last [q, v] by the first and by constant forces, (2 nv, 3 nv)."""
    n = m.nv
    out = np.zeros((2 * n, 3 * n))
    for j in range(3 * n):
        e = np.zeros(n)
        e[j % n] = eps
        ends = []
        for s in (1.0, -1.0):
            start = m.integrate(q, s * e, 1.0) if j < n else q
            rates = v + s * e if n <= j < 2 * n else v
            tau = s * e if j >= 2 * n else None
            ends.append(rf.rollout(m, start, rates, steps=steps, dt=2e-3, tau=tau, contact=TIGHT))
        moved = m.difference(ends[1].q, ends[0].q)
        out[:, j] = np.concatenate([moved, ends[0].v - ends[1].v]) / (2.0 * eps)
    return out


STARTS = {
    "sticks": ([0, 0, 0.1], [0.0] * 6, 10),
    "slides": ([0, 0, 0.1], [0.8, 0.6, 0, 0, 0, 0.3], 10),
    "lands": ([0, 0, 0.11], [0.8, 0.6, 0, 0.1, 0.2, 0.3], 30),
}


@pytest.mark.parametrize("name", STARTS)
def test_derivatives_of_three_feet(name: str) -> None:
    place, v, steps = STARTS[name]
    m, q, rates = tripod(), np.array([*place, 1.0, 0, 0, 0], dtype=float), np.array(v, dtype=float)
    r = rf.rollout(m, q, rates, steps=steps, dt=2e-3, contact=TIGHT)
    exact, by = differences(m, q, rates, steps), r.sensitivity()
    found = np.concatenate([by.x0, by.tau], axis=1)
    assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()
    weights = np.arange(1.0, 7.0)
    g = r.gradient(q=weights, v=-weights)
    expected = np.concatenate([weights, -weights]) @ found
    assert np.concatenate([g.q0, g.v0, g.tau]) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_stops_friction_and_tau_of_each_step() -> None:
    made = rf.Builder("arm")
    made.link(
        "upper", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), inertia=(0.01,) * 3, limits=(-1, 0.1)
    )
    made.link(
        "lower", "upper", axis=(0, 1, 0), at=(0.4, 0, 0), mass=0.5, com=(0.1, 0, 0),
        inertia=(0.01,) * 3, friction=0.6,
    )  # fmt: skip
    m, q, v = made.model(), np.array([0.05, 0.0]), np.array([0.5, 0.2])
    r = rf.rollout(m, q, v, steps=40, dt=2e-3, contact=TIGHT, every=20)
    by = r.sensitivity()
    exact = differences(m, q, v, 40)
    found = np.concatenate([by.x0, by.tau], axis=1)
    assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()
    tau = 0.1 * np.random.default_rng(0).normal(size=(40, 2))
    weights = np.array([[0.0, 0.0], [1.0, 2.0]])

    def number(tau: Array) -> float:
        end = rf.rollout(m, q, v, steps=40, dt=2e-3, contact=TIGHT, every=20, tau=tau)
        return float((end.q * weights).sum())

    g = rf.rollout(m, q, v, steps=40, dt=2e-3, contact=TIGHT, every=20, tau=tau).gradient(q=weights)
    for k, j in ((0, 0), (7, 1), (30, 1)):
        e = np.zeros_like(tau)
        e[k, j] = 1e-4
        assert g.tau[k, j] == pytest.approx(
            (number(tau + e) - number(tau - e)) / 2e-4, rel=1e-5, abs=1e-9
        )


def test_loops() -> None:
    m = rf.load("four_bar")
    q = m.assemble(independent={m.joints[0].name: 0.7}).q
    r = rf.rollout(m, q, np.zeros(m.nv), steps=20, dt=1e-3, contact=TIGHT)
    along = r.tangent(tau=np.array([0.1, 0.0, 0.0]))
    ends = [
        rf.rollout(m, q, np.zeros(m.nv), steps=20, dt=1e-3, contact=TIGHT, tau=[s, 0.0, 0.0])
        for s in (1e-4, -1e-4)
    ]
    exact = 0.1 * (ends[0].q - ends[1].q) / 2e-4
    assert along.q == pytest.approx(exact, rel=1e-5, abs=1e-9)
