"""Numbers of the companion pages where the documents plot curves and print none: Pinocchio, SciPy's
integrator, the power of the drives and ReDySim's stored walks in their place.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import Peer
from peers import pinocchio_of
from redysim_data import variables
from scipy.integrate import solve_ivp
from test_companion import PAGES

import ramify as rf
from ramify.api.model import Model
from ramify.core.arrays import Array
from ramify.files.redysim.redysim_robot import from_variables
from ramify.formulations import general_count, lin, quasi, saha

SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def row(page: str, start: str) -> str:
    return next(line for line in PAGES[page].splitlines() if line.startswith(f"| {start} |"))


def said(text: str, before: str, after: str = "") -> float:
    """A power of ten that a row gives between two words, as 6·10⁻¹² is."""
    found = re.search(rf"{before}(?:(\d(?:\.\d)?)·)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+){after}", text)
    assert found is not None, (before, text)
    return float(found[1] or 1.0) * 10.0 ** int(found[2].translate(SUPERSCRIPTS))


def peer_torques(model: rf.Model, q: Array, v: Array, a: Array) -> Array:
    peer = pinocchio_of(model)
    data = peer.createData()
    states = zip(q, v, a, strict=True)
    return np.array([pin.rnea(peer, data, *model.to_pinocchio(*x)[:3]) for x in states])


# ---- chapters 1, 2 and 7: data ----


def test_robots_of_the_first_chapters() -> None:
    text = PAGES["book"]
    assert f"{len(rf.robots())} built-in robots" in text
    puma, stanford = (rf.load(name).mass for name in ("puma_560", "stanford_arm"))
    assert f"{puma:.4g} and {stanford:.3g} kg" in text
    gripper = rf.load("gripper")
    assert f"{len(gripper.bodies)} bodies in {len(gripper.modules)} modules" in text
    assert rf.load("stewart_platform").degrees_of_freedom == 6
    assert [rf.load(name).nv for name in ("hexapod", "spatial_biped")] == [18, 18]


@pytest.mark.parametrize(
    ("scenario", "rows"),
    [
        ("planar_biped_walk", "figures 7.2, 7.3"),
        ("spatial_biped_walk", "figures 7.9–7.11"),
        ("quadruped_trot", "figures 7.16–7.18"),
        ("hexapod_tripod", "figures 7.23–7.25"),
    ],
)
def test_walks_have_the_printed_parameters(scenario: str, rows: str) -> None:
    """T, the start, the height, the stride and the lift of the feet as printed."""
    gait, text = rf.scenario(scenario).motion, row("chapter-7", rows)
    assert isinstance(gait, rf.motion.Gait)
    hips = gait.pendulum
    half = f"{hips.stride / 2:g}"
    assert f"hips from −{half} to {half} m at {hips.height:g} m" in text
    assert f"T = {hips.period:g} s, x₀(0) = −{hips.stride / 2:.2f}" in text
    assert f"l_s = {hips.stride:g}" in text
    assert f" {gait.lift:g} m up" in text


# ---- chapter 6 ----


def test_torques_of_the_gripper() -> None:
    gripper = rf.load("gripper")
    motion = rf.motion.cycloid(*rf.motion.example_ends(gripper), 1.0)
    tau = gripper.inverse_dynamics(motion.q, motion.v, motion.a)
    text = row("chapter-6", "table 6.5, figures 6.1, 6.2")
    largest = re.search(r"largest ([\d., ]+) N m", text)
    assert largest is not None
    expected = [float(x) for x in largest[1].split(", ")]
    np.testing.assert_allclose(np.abs(tau).max(axis=0), expected, atol=6e-4)
    apart = np.abs(tau - peer_torques(gripper, motion.q, motion.v, motion.a)).max()
    assert apart < 10 * said(text, "Pinocchio's torques to ")


@pytest.mark.parametrize(
    ("scenario", "page", "rows", "joints"),
    [
        ("gripper_free_fall", "chapter-6", "figures 6.3, 6.4", {0: -108.93, 1: 1.29, 2: -5.74, 3: -7.17}),
        ("kuka_free_fall", "chapter-6", "figures 6.7, 6.8", {1: -149.78, 2: -86.59}),
        ("planar_3r_free_fall", "saha-serial", "figure 6, free fall", {}),
        ("stanford_free_fall", "saha-serial", "figure 9, free fall", {}),
    ],
)  # fmt: skip
def test_falls_against_another_program(
    scenario: str, page: str, rows: str, joints: dict[int, float]
) -> None:
    """The scenario's run, and Pinocchio's accelerations through SciPy's DOP853."""
    r = rf.scenario(scenario).run()
    peer, n = pinocchio_of(r.model), r.model.nv
    data, still = peer.createData(), np.zeros(n)

    def rates(t: float, y: Array) -> Array:
        return np.concatenate([y[n:], pin.aba(peer, data, y[:n], y[n:], still)])

    start = np.concatenate([r.q[0], r.v[0]])
    other = solve_ivp(rates, (0.0, r.t[-1]), start, method="DOP853", rtol=1e-12, atol=1e-13)
    text = row(page, rows)
    assert np.abs(other.y[:n, -1] - r.q[-1]).max() < 2 * said(text, "a run with Pinocchio to ")
    for j, degrees in joints.items():
        assert np.degrees(r.q[-1, j]) == pytest.approx(degrees, abs=0.006)
        assert f"{degrees:.2f}°".replace("-", "−") in text


def test_torques_of_the_standing_biped() -> None:
    standing, floating = rf.load("standing_biped"), rf.load("spatial_biped")
    sides: dict[str, Any] = {"sway": 0.08, "support": "right_hip", "steps": 1}
    gait = rf.motion.Gait.of(floating, height=0.92, period=0.5, stride=0.3, lift=0.1, **sides)
    order, sign = [11, 10, 9, 8, 7, 6, *range(12, 18)], np.repeat([-1.0, 1.0], 6)
    m = gait.samples(51)
    q, v, a = (x[:, order] * sign for x in (m.q, m.v, m.a))
    apart = np.abs(standing.inverse_dynamics(q, v, a) - peer_torques(standing, q, v, a)).max()
    assert apart < 5 * said(row("chapter-6", "figure 6.12"), "Pinocchio's to ")


def test_growth_of_the_counts() -> None:
    """Figures 6.15, 6.16: what one more variable costs, from the recursions as they are counted."""
    text = row("chapter-6", "figures 6.15, 6.16")
    more = [
        general_count(f"denoc_{kind}", 9).mul - general_count(f"denoc_{kind}", 8).mul
        for kind in ("inverse", "forward")
    ]
    assert [f"{more[0]}M 82A" in text, f"{more[1]}M 131A" in text] == [True, True]


# ---- chapter 8 ----


@pytest.mark.parametrize(
    ("scenario", "rows", "largest"),
    [
        ("four_bar_turn", "figures 8.4–8.6", 69.5),
        ("robotic_leg_turn", "table 8.2, figures 8.9–8.11", 24.1),
    ],
)
def test_drives_and_multipliers_of_loops(scenario: str, rows: str, largest: float) -> None:
    r, text = rf.scenario(scenario).run(), row("chapter-8", rows)
    assert r.loops is not None
    peer, drives, multipliers = Peer(r.model), [0.0], [0.0]
    for k in range(0, len(r.t), 10):
        tau, lam = peer.inverse(r.q[k], r.v[k], r.a[k])
        drives.append(abs(tau[0] - r.tau[k, 0]))
        multipliers.append(np.abs(peer.in_world(r.q[k], r.loops.multipliers[k]) - lam).max())
    assert max(drives) < 5 * said(text, "Pinocchio's τ_a to ")
    assert max(multipliers) < 5 * said(text, f"up to {largest} N, to ")
    assert np.abs(r.loops.multipliers).max() == pytest.approx(largest, abs=0.06)
    opened = r.model.tree.inverse_dynamics(r.q, r.v, r.a)
    power = np.einsum("ti,ti->t", opened, r.v)  # of the tree: the loops give none
    np.testing.assert_allclose(r.tau[:, 0] * r.v[:, 0], power, atol=1e-13)


def test_the_fall_of_the_3_rrr() -> None:
    r, text = rf.scenario("three_rrr_free_fall").run(), row("chapter-8", "table 8.4, figure 8.16")
    peer = Peer(r.model)
    states = range(0, len(r.t), 10)
    apart = max(np.abs(peer.forward(r.q[k], r.v[k], np.zeros(7))[0] - r.a[k]).max() for k in states)
    assert apart < 5 * said(text, "Pinocchio's matrices gives them, to ")
    assert np.abs(r.a).max() == pytest.approx(355.0, abs=1.0)
    assert np.ptp(r.energy.total) < said(text, "energy kept to ")
    assert r.model.mass == pytest.approx(2 * 3 + 3 + 3 * 4 + 8)  # table 8.3
    assert rf.load("robotic_leg").mass == pytest.approx(0.37)  # table 8.2


# ---- the papers ----


def test_torques_of_the_serial_arms() -> None:
    """Figures 5 and 8 of Saha 1999, the line of Quinn and Chang: every formulation."""
    arm = rf.load("planar_3r")
    motion = rf.motion.cycloid(np.zeros(3), np.full(3, np.pi / 3), 10.0)
    tau = arm.inverse_dynamics(motion.q, motion.v, motion.a)
    limit = said(row("saha-serial", "figure 5, torques"), "Pinocchio agree to ")
    assert np.abs(tau - peer_torques(arm, motion.q, motion.v, motion.a)).max() < limit
    for q, v, a, right in list(zip(motion.q, motion.v, motion.a, tau, strict=True))[::20]:
        by_lin = lin.mass_matrix(arm, q) @ a + lin.bias_forces(arm, q, v)
        ways = (saha.inverse_dynamics(arm, q, v, a), quasi.inverse_dynamics(arm, q, v, a), by_lin)
        assert max(np.abs(np.asarray(way) - right).max() for way in ways) < limit
    r = rf.scenario("stanford_motion").run()
    limit = said(row("saha-serial", "figure 8, torques and force"), "Pinocchio's to ")
    assert np.abs(r.tau - peer_torques(r.model, r.q, r.v, r.a)).max() < limit
    r = rf.scenario("two_link_line").run()
    assert r.model.gravity == (0.0, 0.0, 0.0)
    right = r.model.inverse_dynamics(r.q, r.v, r.a)
    limit = said(row("quinn-chang", "example one, the line"), "Pinocchio, to ")
    assert np.abs(right - peer_torques(r.model, r.q, r.v, r.a)).max() < limit
    for q, v, a, tau in list(zip(r.q, r.v, r.a, right, strict=True))[::20]:
        assert np.abs(np.asarray(quasi.inverse_dynamics(r.model, q, v, a)) - tau).max() < limit


# ---- ReDySim's stored walks ----

HEXAPOD = {  # base.dat of its inverse dynamics: x, y, z, phi, theta, psi
    0.5: (0.1897532, 0.5495632, -1.717043e-4, 1.49627e-4, 4.067187e-4, 1.756837e-3),
    0.9: (0.4850288, 0.5458206, 3.330492e-3, -2.642264e-3, 7.15603e-3, 1.19265e-3),
    2.0: (1.325768, 0.5495919, -1.312005e-3, 1.0681e-4, -2.729955e-4, -1.326636e-4),
}
QUADRUPED = {  # statevar.dat of its run under computed torque
    2.0: (-3.496007e-4, 0.4983759, 0.427204, 3.371627e-4, 4.247223e-4, -6.052335e-5),
}


@pytest.mark.parametrize(
    ("name", "gait", "law", "stored", "metres", "radians"),
    [
        ("legged_hexapod", (0.55, 0.5, 0.4, 0.08), "Prescribed", HEXAPOD, 2.2e-4, 2e-5),
        ("legged_quadruped", (0.5, 1.0, 0.3, 0.09), "ComputedTorque", QUADRUPED, 5e-5, 5e-5),
    ],
)
def test_stored_walks_are_met(
    name: str,
    gait: tuple[float, ...],
    law: str,
    stored: dict[float, tuple[float, ...]],
    metres: float,
    radians: float,
) -> None:
    """On ReDySim's own ground, g_prop; the page says how far apart the trunks are."""
    model = Model.of(from_variables(variables(name)))
    words = ("height", "period", "stride", "lift")
    walk = rf.motion.Gait.of(model, **dict(zip(words, gait, strict=True)))
    control = getattr(rf.control, law)(walk)
    ground = rf.contact.Firm.of_redysim(model)
    r = rf.simulate(model, 2.0, *walk.start(model), control=control, ground=ground, dt_out=0.1)
    for t, trunk in stored.items():
        apart = np.abs(r.q[round(t / 0.1), :6] - trunk)
        assert apart[:3].max() < metres
        assert apart[3:].max() < radians
    assert max(stored) == 2.0
    page = PAGES["chapter-7"]
    assert f"{metres * 1e4:.2g}·10⁻⁴ m" in page or f"{metres * 1e5:.1g}·10⁻⁵ m" in page
