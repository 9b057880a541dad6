"""Impacts: momentum is conserved, energy is what is left, closed forms of a rod and of a capture."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ramify as rf
from ramify.contact import Hard


def rod(length: float = 1.0) -> rf.Model:
    made = rf.Builder("rod")
    inertia = (length**2 / 12.0, length**2 / 12.0, 1e-6)
    ends = {"low": (0, 0, -0.5 * length), "high": (0, 0, 0.5 * length)}
    return made.link("rod", joint="free", mass=1.0, inertia=inertia, points=ends).model()


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_a_falling_rod_strikes_with_its_end(restitution: float) -> None:
    """A rod at an angle a from the vertical, without friction: p = (1 + e) u / (1 + 3 sin^2 a)."""
    a, m = 0.4, rod()
    q = [0, 0, 0.5 * math.cos(a), math.cos(a / 2), math.sin(a / 2), 0, 0]
    hit = m.impact(q, [0, 0, -2.0, 0, 0, 0], Hard(friction=0.0, restitution=restitution))
    p = (1.0 + restitution) * 2.0 / (1.0 + 3.0 * math.sin(a) ** 2)
    assert hit.impulses["low"] == pytest.approx([0.0, 0.0, p], abs=1e-8)
    assert hit.v[2] == pytest.approx(p - 2.0, abs=1e-8)
    assert list(hit.impulses) == ["low"]
    before, after = (m.energy(q, v).kinetic for v in ([0, 0, -2.0, 0, 0, 0], hit.v))
    assert hit.energy_lost == pytest.approx(before - after, abs=1e-12)
    assert hit.energy_lost == pytest.approx(0.5 * p * 2.0 * (1.0 - restitution), abs=1e-8)


def test_friction_sticks_or_slides() -> None:
    a, m = 0.4, rod()
    q = [0, 0, 0.5 * math.cos(a), math.cos(a / 2), math.sin(a / 2), 0, 0]
    v = [0.3, 0, -2.0, 0, 0, 0]
    rough, slick = (m.impact(q, v, Hard(friction=mu)) for mu in (5.0, 0.02))
    assert rough.mode == {"low": "stick"}
    assert slick.mode == {"low": "slide"}
    J = m.jacobian(q, "rod", (0, 0, -0.5))[3:]
    assert np.abs(J @ rough.v).max() < 1e-8
    along = np.linalg.norm(slick.impulses["low"][:2])
    assert along == pytest.approx(0.02 * slick.impulses["low"][2], rel=1e-8)
    slip = (J @ slick.v)[:2]
    assert slip @ slick.impulses["low"][:2] == pytest.approx(
        -along * np.linalg.norm(slip), rel=1e-6
    )


def test_a_satellite_is_captured() -> None:
    """Two free bodies that a rigid loop joins: their momentum stays to rounding, and they move as
    one afterwards.
    """
    made = rf.Builder("capture", gravity=(0, 0, 0))
    for name, mass in (("chaser", 5.0), ("target", 2.0)):
        made.link(name, joint="free", mass=mass, inertia=(0.3, 0.4, 0.5))
    made.loop("grip", "fixed", ("chaser", (0.5, 0, 0)), ("target", (-0.5, 0, 0)))
    m = made.model()
    q = np.array([0, 0, 0, 1, 0, 0, 0, 1.0, 0, 0, 1, 0, 0, 0], dtype=float)
    v = np.random.default_rng(0).normal(size=12)
    hit = m.impact(q, v, None)
    before, after = m.momentum(q, v), m.momentum(q, hit.v)
    assert after.linear == pytest.approx(before.linear, abs=1e-13)
    assert after.angular == pytest.approx(before.angular, abs=1e-13)
    assert hit.v[3:6] == pytest.approx(hit.v[9:12], abs=1e-9)
    assert np.cross(hit.v[3:6], [1.0, 0, 0]) == pytest.approx(hit.v[6:9] - hit.v[:3], abs=1e-9)
    lost = m.energy(q, v).kinetic - m.energy(q, hit.v).kinetic
    assert hit.energy_lost == pytest.approx(lost, rel=1e-12)
    assert lost > 0.0


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(rf.StateError, match="one state"):
        rod().impact([[0, 0, 1, 1, 0, 0, 0]], [[0.0] * 6])
    with pytest.raises(rf.SimulationError, match="contact must be"):
        rod().impact([0, 0, 1, 1, 0, 0, 0], [0.0] * 6, contact=3)
    apart = rod().impact([0, 0, 1, 1, 0, 0, 0], [0, 0, -1.0, 0, 0, 0])
    assert apart.energy_lost == 0.0
    assert not apart.impulses
