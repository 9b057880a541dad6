"""Walking: joints prescribed, uncontrolled and under control, against the figures of chapters 7 and
9 and of ReDySim.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.cli import main
from ramify.control import ComputedTorque, Prescribed
from ramify.motion import Cycloid, Gait, Hold, TimeFunction, measured_balance
from ramify.scenario_files.scenario import read_scenario

WALKS = ("planar_biped_walk", "spatial_biped_walk", "quadruped_trot", "hexapod_tripod")


@cache
def run(name: str, control: str, t_end: float) -> rf.Result:
    return rf.scenario(name).run(control=control, t_end=t_end)


def gait_of(name: str) -> Gait:
    motion = rf.scenario(name).motion
    assert isinstance(motion, Gait)
    return motion


def advanced(r: rf.Result) -> float:
    return float(r.q[-1, 0] - r.q[0, 0])


def tilt(r: rf.Result) -> float:
    """Largest of the trunk's Euler angles, in degrees."""
    return float(np.degrees(np.abs(r.q[:, 3:6]).max()))


def energy_error(r: rf.Result) -> float:
    contacts = r.contacts
    assert contacts is not None
    total = r.energy.total + contacts.stored
    return float(np.abs(total - total[0] - r.work.actuator + r.work.dissipated).max())


# ---- inverse dynamics over time (sections 7.2 - 7.4) ----


CHAPTERS = Path(__file__).resolve().parent.parent / "docs" / "companion"


def page_numbers(chapter: int, rows: str, before: str) -> list[float]:
    """The numbers that the row of some figures on the companion's page has behind a word."""
    text = (CHAPTERS / f"chapter-{chapter}.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {rows} |"))
    return [float(x) for x in re.findall(rf"{before} (\d+(?:\.\d+)?)", row)]


POWER = r"(?:(\d)·)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)"


def page_bounds(page: str, rows: str) -> list[float]:
    """The powers of ten, as 2·10⁻⁴ is, that a row of the companion has behind "below"."""
    text = (CHAPTERS / f"{page}.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {rows} |"))
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    return [
        float(k or 1) * 10.0 ** int(power.translate(digits))
        for several in re.findall(rf"below ({POWER}(?:, {POWER})*)", row)
        for k, power in re.findall(POWER, several[0])
    ]


def joints_off(r: rf.Result, name: str) -> float:
    """How far the joints are off the gait at most, in degrees."""
    return float(np.degrees(np.abs(r.q[:, 6:] - gait_of(name).at(r.t).q[:, 6:]).max()))


def walking_row(law: str, name: str) -> str:
    """The row of a law and a walk in docs/walking.md."""
    text = (CHAPTERS.parent / "walking.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(rf"\| [a-z ]*\| {law} \|", line)]
    assert len(rows) == len(WALKS)
    return rows[WALKS.index(name)]


def assert_within_row(r: rf.Result, row: str, off: float) -> None:
    """Advance, attitude, the bound of the joints and that of the energy."""
    *_, way, attitude, joints, energy, _ = row.split(" |")
    assert way == f" {advanced(r):.3f} m"
    assert float(attitude.rstrip("°")) == pytest.approx(tilt(r), abs=0.01)
    assert off < float(joints.strip(" <°"))
    assert energy_error(r) < float(energy.removesuffix(" J"))


@pytest.mark.parametrize(
    ("name", "seconds", "way", "degrees", "joules", "figures"),
    [
        ("planar_biped_walk", 1.0, 0.30, 3.0, 8.48e-4, "figures 7.4, 7.5"),
        ("spatial_biped_walk", 0.5, 0.30, 2.0, 3.6e-3, "figures 7.12, 7.13"),
        ("quadruped_trot", 1.0, 0.30, 2.0, 6.28e-5, "figures 7.19, 7.20"),
        ("hexapod_tripod", 0.5, 0.40, 0.3, 3.31e-2, "figures 7.26, 7.27"),
    ],
)
def test_the_book_s_steps(
    name: str, seconds: float, way: float, degrees: float, joules: float, figures: str
) -> None:
    """As the book has them, with the numbers of the companion's chapter 7."""
    r = run(name, "inverse", seconds)
    assert advanced(r) == pytest.approx(way, rel=0.1)
    assert tilt(r) < degrees
    assert page_numbers(7, figures, "trunk within") == [pytest.approx(tilt(r), abs=0.01)]
    torque = page_numbers(7, figures, "largest torque")
    assert torque == [pytest.approx(np.abs(r.tau).max(), rel=0.02)]
    assert energy_error(r) < joules
    text = (CHAPTERS.parent / "walking.md").read_text(encoding="utf-8")
    row = rf"\| {seconds:g} s \| {advanced(r):.3f} m .*\| (\S+) J \((\S+)\) \|"
    ((bound, printed),) = re.findall(row, text)
    assert energy_error(r) < float(bound)
    assert float(printed) == joules
    assert r.audit.passed
    np.testing.assert_array_equal(
        r.q[:, 6:], gait_of(name).at(r.t).q[:, 6:]
    )  # the joints are where they are told to be
    assert not r.tau[:, :6].any()
    assert r.tau[:, 6:].any(axis=0).sum() >= 6


@pytest.mark.parametrize("name", WALKS)
def test_forces_and_motion_of_a_prescribed_run_fit(name: str) -> None:
    r = run(name, "inverse", 0.5 if name in ("spatial_biped_walk", "hexapod_tripod") else 1.0)
    assert r.contacts is not None
    wrenches = r.contacts.wrenches(r.model, r.q)
    needed = r.model.inverse_dynamics(r.q, r.v, r.a, wrenches)
    scale = np.abs(r.tau).max()
    np.testing.assert_allclose(needed, r.tau, atol=1e-9 * scale)
    assert (r.contacts.load >= 0.0).all()  # the ground never pulls
    balance = measured_balance(r)
    assert np.nanmin(balance.margin) > -1e-9  # the ground presses where the robot touches it


def test_the_hexapod_as_in_redysim() -> None:
    """Its own run of the inverse dynamics: 1.53 m in 2 s, within 0.9 degrees, energy within 2.8e-3
    J.
    """
    r = run("hexapod_tripod", "inverse", 2.0)
    assert advanced(r) >= 1.53
    assert tilt(r) < 0.3
    assert energy_error(r) < 5e-5


# ---- under control (chapter 9) ----


FIGURES_9 = {
    "planar_biped_walk": "figure 9.1, figures 9.3, 9.4",
    "spatial_biped_walk": "figures 9.7, 9.8",
    "quadruped_trot": "figures 9.9, 9.10",
    "hexapod_tripod": "figures 9.11, 9.12",
}


@pytest.mark.parametrize(
    ("name", "seconds", "degrees"),
    [
        ("planar_biped_walk", 4.0, 3.0),
        ("spatial_biped_walk", 2.0, 2.0),
        ("quadruped_trot", 4.0, 2.0),
        ("hexapod_tripod", 2.0, 0.3),
    ],
)
def test_computed_torque_walks_on(name: str, seconds: float, degrees: float) -> None:
    r = run(name, "computed_torque", seconds)
    gait = gait_of(name)
    shown = page_numbers(9, FIGURES_9[name], "trunk within")
    assert shown == [pytest.approx(tilt(r), abs=0.01)]
    assert r.status == "finished"
    assert advanced(r) == pytest.approx(
        seconds / gait.pendulum.period * gait.pendulum.stride, rel=0.06
    )
    assert tilt(r) < degrees
    assert np.ptp(r.q[:, 2]) < 0.02  # it does not fall
    assert joints_off(r, name) < page_bounds("chapter-9", FIGURES_9[name])[0] <= 1e-4
    assert_within_row(r, walking_row("computed torque", name), joints_off(r, name))
    assert r.desired is not None
    if (
        name == "quadruped_trot"
    ):  # ReDySim's own run: 0.58 m in 2 s, within 4.2 degrees, energy within 2.9e-4 J
        assert r.q[r.t <= 2.0 + 1e-9][-1, 0] - r.q[0, 0] >= 0.58


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("planar_biped_walk", 4.0),
        ("spatial_biped_walk", 2.0),
        ("quadruped_trot", 4.0),
        ("hexapod_tripod", 2.0),
    ],
)
def test_feedforward_walks_as_prescribed(name: str, seconds: float) -> None:
    """Law (9.13) with the ground forces of the desired motion: what is off is the integrator's
    error, which grows, for the ground does not draw the robot back.
    """
    r = run(name, "feedforward", seconds)
    planar = name == "planar_biped_walk"
    figures = "figure 9.2, figures 9.5, 9.6" if planar else FIGURES_9[name]
    shown = page_numbers(9, figures, "trunk within" if planar else "feedforward`")
    assert shown[0] == pytest.approx(tilt(r), abs=0.01)
    assert joints_off(r, name) < page_bounds("chapter-9", figures)[-1] <= 0.1
    assert_within_row(r, walking_row("feedforward", name), joints_off(r, name))
    led = run(name, "computed_torque", seconds)
    assert advanced(r) == pytest.approx(advanced(led), abs=2e-3)


@pytest.mark.parametrize(
    ("name", "seconds", "degrees", "off"),
    [
        ("planar_biped_walk", 4.0, 4.46, 4.19),
        ("spatial_biped_walk", 2.0, 1.64, 0.17),
        ("quadruped_trot", 4.0, 1.82, 0.27),
        ("hexapod_tripod", 2.0, 0.13, 0.006),
    ],
)
def test_measured_feedforward_walks_on(
    name: str, seconds: float, degrees: float, off: float
) -> None:
    """The figures of docs/walking.md."""
    r = run(name, "measured_feedforward", seconds)
    assert tilt(r) == pytest.approx(degrees, abs=0.01)
    assert joints_off(r, name) == pytest.approx(off, rel=0.1)
    text = (CHAPTERS.parent / "walking.md").read_text(encoding="utf-8")
    row = f"| | measured feedforward | {'200, 40' if name.startswith('spatial') else '49, '}"
    rows = [line for line in text.splitlines() if line.startswith(row)]
    assert any(f"{advanced(r):.3f} m | {degrees}° | {off}° |" in line for line in rows)
    assert energy_error(r) < 5e-5


@pytest.mark.parametrize(
    ("control", "trunk", "joints"),
    [
        ("computed_torque", 0.29, 0.007),
        ("feedforward", 0.43, 0.77),
        ("measured_feedforward", 0.28, 0.04),
    ],
)
def test_laws_of_a_hexapod_that_starts_off_its_motion(
    control: str, trunk: float, joints: float
) -> None:
    """The last row of the companion's table: all joints 1 degree off, by turns to either side."""
    gait = gait_of("hexapod_tripod")
    q0 = run("hexapod_tripod", "inverse", 2.0).q[0].copy()
    q0[6:] += np.radians(1.0) * (-1.0) ** np.arange(len(q0) - 6)
    r = rf.scenario("hexapod_tripod").run(control=control, t_end=2.0, q0=q0)
    off = np.degrees(np.abs(r.q[:, 6:] - gait.at(r.t).q[:, 6:]))[r.t > 1.0].max()
    assert tilt(r) == pytest.approx(trunk, rel=0.1)
    assert off == pytest.approx(joints, rel=0.1)
    text = (CHAPTERS / "chapter-9.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| hexapod, 2 s |"))
    assert f"| {trunk}°, {joints}° |" in row


@pytest.mark.parametrize(
    ("name", "figures", "which"),
    [
        ("planar_biped_walk", "appendix C, figure C.1", 0),
        ("spatial_biped_walk", "figures C.2, C.3, C.4", 0),
        ("quadruped_trot", "figures C.2, C.3, C.4", 1),
        ("hexapod_tripod", "figures C.2, C.3, C.4", 2),
    ],
)
def test_energy_errors_of_appendix_c(name: str, figures: str, which: int) -> None:
    """The commands of the companion, as they stand there."""
    assert energy_error(rf.scenario(name).run()) < page_bounds("appendices", figures)[which] < 1e-3


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("planar_biped_walk", "figures 7.7, 7.8"),
        ("spatial_biped_walk", "figures 7.14, 7.15"),
        ("quadruped_trot", "figures 7.21, 7.22"),
        ("hexapod_tripod", "figures 7.28, 7.29"),
    ],
)
def test_computed_torque_without_gains(name: str, figures: str) -> None:
    period = gait_of(name).pendulum.period
    r = run(name, "{type: computed_torque, kp: 0, kd: 0}", period)
    assert joints_off(r, name) < page_bounds("chapter-7", figures)[0] <= 1e-4


def test_computed_torque_is_the_prescribed_motion() -> None:
    """With the ground's forces in h (eq. 7.1), errors obey eq. (9.5): from none, none come."""
    one, other = (
        run("hexapod_tripod", "inverse", 0.5),
        run("hexapod_tripod", "computed_torque", 0.5),
    )
    np.testing.assert_allclose(one.q, other.q, atol=1e-6)
    np.testing.assert_allclose(one.tau, other.tau, atol=1e-3 * np.abs(one.tau).max())


def test_without_control_it_falls() -> None:
    r = run("quadruped_trot", "none", 0.4)
    assert not r.tau.any()
    assert r.q[-1, 2] < 0.3
    assert r.audit.passed


@pytest.mark.parametrize(
    ("name", "figures", "after", "end"),
    [
        ("planar_biped_walk", "figures 7.7, 7.8", 0.14, 2.0),
        ("spatial_biped_walk", "figures 7.14, 7.15", 0.11, 2.0),
        ("quadruped_trot", "figures 7.21, 7.22", 0.19, 10.0),
        ("hexapod_tripod", "figures 7.28, 7.29", 0.22, 1.2),
    ],
)
def test_torques_of_the_motion_alone_do_not_do(
    name: str, figures: str, after: float, end: float
) -> None:
    """Section 7.2: stored torques without feedback, 200 rows a step; the spatial biped leaves its
    motion after about 0.1 s, as the companion says.
    """
    s = rf.scenario(name)
    assert "torques_of_motion: {rows: 801}" in s.text
    period = gait_of(name).pendulum.period
    text = re.sub(r"t_end: \d+", f"t_end: {period / 2}", s.text)
    r = read_scenario(text).run(control="{type: torques_of_motion, rows: 101}")
    off = np.degrees(np.abs(r.q[:, 6:] - gait_of(name).at(r.t).q[:, 6:]).max(axis=1))
    assert page_numbers(7, figures, "1° after") == [after]
    assert r.t[np.argmax(off > 1.0)] == pytest.approx(after, abs=0.011)
    assert off[-1] > end  # degrees after half a step


def test_another_ground() -> None:
    r = rf.scenario("hexapod_tripod").run(ground="hunt_crossley", t_end=1.0)
    assert advanced(r) == pytest.approx(0.8, rel=0.06)
    assert tilt(r) < 1.0
    slope = {"law": "firm", "stiffness": 30000, "overdamping": 7, "terrain": {"slope_deg": 3}}
    r = rf.scenario("hexapod_tripod").run(ground=slope, t_end=1.0)
    assert np.degrees(r.q[-1, 3:5]).tolist() == pytest.approx(
        [-3.0, 0.0], abs=0.2
    )  # level with the slope, nose up
    assert r.q[-1, 2] - np.tan(np.radians(3.0)) * r.q[-1, 0] == pytest.approx(0.55, abs=2e-3)


# ---- prescribed motions by themselves ----


def test_a_fixed_base_gives_inverse_dynamics_over_time() -> None:
    model = rf.load("kuka_kr5")
    motion = Cycloid(np.zeros(6), np.full(6, 1.0), 0.5)
    r = rf.simulate(model, 0.5, control=Prescribed(motion), damping=0.3)
    m = motion.at(r.t)
    np.testing.assert_array_equal(r.q, m.q)
    np.testing.assert_allclose(r.tau, model.inverse_dynamics(m.q, m.v, m.a) + 0.3 * m.v, atol=1e-9)
    np.testing.assert_allclose(r.a, m.a, atol=1e-12)
    assert r.audit.passed
    assert r.work.dissipated[-1] > 0.0


def test_a_floating_base_moves_against_its_joints() -> None:
    model = rf.load("space_3_link")
    k = len([joint for joint in model.joints if joint.actuated])
    motion = Cycloid(np.zeros(k), np.linspace(0.5, 1.0, k), 1.0)
    r = rf.simulate(model, 1.0, control=Prescribed(motion), rtol=1e-11, atol=1e-13)
    free = model.nv - k
    found = model.hybrid_dynamics(r.q, r.v, motion.at(r.t).a)
    np.testing.assert_allclose(r.a[:, :free], found.acceleration, atol=1e-9)
    np.testing.assert_allclose(r.tau[:, free:], found.tau, atol=1e-9)
    assert np.abs(r.momentum.linear).max() < 1e-8  # nothing from outside
    assert r.audit.passed


def test_only_some_joints_may_be_prescribed() -> None:
    model = rf.load("planar_3r")
    r = rf.simulate(
        model, 0.5, [0.3, 0.0, 0.0], control=Prescribed(Hold([0.0]), actuated=["joint2"])
    )
    assert not r.q[:, 1].any()
    assert np.abs(r.q[-1, [0, 2]] - [0.3, 0.0]).min() > 0.05
    assert not r.tau[:, [0, 2]].any()
    assert r.audit.passed


def test_prescribed_motions_without_a_compiler_and_in_rollouts() -> None:
    model = rf.load("quadruped")
    plain = Gait.of(model, height=0.5, period=1.0, stride=0.3, lift=0.09)
    untraceable = TimeFunction(
        *(lambda t, i=i: list(np.moveaxis(plain.at(t)[i], -1, 0)) for i in (1, 2, 3))
    )
    assert not untraceable.traceable
    q, v = plain.start(model)
    q[2] -= 1e-3  # all feet in the ground: at its surface rounding decides
    ground = rf.contact.Firm(stiffness=5000.0, overdamping=3.0)
    one = rf.simulate(
        model, 0.01, q, v, control=Prescribed(plain), ground=ground, method="rk4", step=5e-4
    )
    other = rf.simulate(
        model, 0.01, q, v, control=Prescribed(untraceable), ground=ground, method="rk4", step=5e-4
    )
    np.testing.assert_allclose(one.q, other.q, atol=1e-12)
    np.testing.assert_allclose(one.tau, other.tau, atol=1e-9)
    starts = np.tile(q, (9, 1))
    starts[:, 2] -= np.linspace(0.0, 1e-3, 9)
    many = rf.rollout(
        model,
        starts,
        v,
        steps=20,
        dt=5e-4,
        control=Prescribed(plain),
        ground=ground,
        every=10,
        method="rk4",
    )
    np.testing.assert_allclose(many.q[0, -1], one.q[-1], atol=1e-12)
    np.testing.assert_array_equal(
        many.q[:, :, 6:], np.broadcast_to(plain.at(many.t).q[:, 6:], (9, 2, 12))
    )


def test_a_step_on_a_fixed_foot_is_that_of_the_floating_robot() -> None:
    """Section 7.2.2 against 6.2.3: the ground's wrench on the standing foot is what the base lacks,
    and the joints take the torques of the robot that is fixed at that foot.
    """
    floating, standing = rf.load("spatial_biped"), rf.load("standing_biped")
    gait = rf.motion.Gait.of(
        floating,
        height=0.92,
        period=0.5,
        stride=0.3,
        lift=0.1,
        sway=0.08,
        support="right_hip",
        steps=1,
    )
    m = gait.samples(21)
    order, sign = [11, 10, 9, 8, 7, 6, *range(12, 18)], np.repeat([-1.0, 1.0], 6)
    q, v, a = (x[:, order] * sign for x in (m.q, m.v, m.a))
    tau = standing.inverse_dynamics(q, v, a)
    whole = floating.inverse_dynamics(m.q, m.v, m.a)
    J = floating.jacobian(m.q, "right_foot")
    ground = np.linalg.solve(np.swapaxes(J[:, :, :6], 1, 2), whole[:, :6, None])
    felt = whole - np.einsum("tij,ti->tj", J, ground[..., 0])
    np.testing.assert_allclose(felt[:, order] * sign, tau, atol=1e-12 * np.abs(tau).max())
    assert ground[:, 5].min() > 80.0  # it stands: no pull
    step = rf.scenario("biped_step").run(t_end=0.1)
    assert step.audit.passed
    now = gait.at(step.t)
    assert (
        np.abs(step.q - now.q[:, order] * sign).max() < 3e-5
    )  # a spline through points every 25 ms
    top = np.linalg.eigvals(rf.linearize(standing, q[10], v[10], tau[10]).A).real.max()
    assert 29.0 < top < 30.5  # unstable, not indifferent


def test_what_a_prescribed_motion_refuses() -> None:
    model = rf.load("planar_3r")
    with pytest.raises(rf.StateError, match="limits"):
        Prescribed(Hold([0.0] * 3), limits=1.0)
    with pytest.raises(rf.StateError, match="rate_hz"):
        Prescribed(Hold([0.0] * 3), rate_hz=100.0)
    with pytest.raises(rf.StateError, match="trajectory"):
        Prescribed(3.0)  # type: ignore[arg-type]
    with pytest.raises(rf.StateError, match="prescribes"):
        rf.control.Sum([Prescribed(Hold([0.0] * 3)), rf.control.Torque(1.0)])
    with pytest.raises(rf.StateError, match="3 driven"):
        rf.simulate(model, 0.1, control=Prescribed(Hold([0.0] * 2)))


def test_controllers_feel_the_ground() -> None:
    """One step of forward dynamics under computed torque gives exactly the accelerations that the
    law asks for.
    """
    s = rf.scenario("quadruped_trot")
    gait = gait_of("quadruped_trot")
    ground = s.options["ground"]
    law = ComputedTorque(gait)
    q, v = gait.start(s.robot)
    q[2] -= 0.01
    q[7] += 0.02
    tau = law.torque(s.robot, 0.0, q, v, ground=ground)
    felt = rf.contact.forces(s.robot, ground, q, v)
    a = s.robot.forward_dynamics(q, v, tau, felt.wrenches(s.robot, q))
    wanted = gait.at(0.0).a[6:] + 49.0 * (gait.at(0.0).q - q)[6:] + 14.0 * (gait.at(0.0).v - v)[6:]
    np.testing.assert_allclose(a[6:], wanted, atol=1e-8)
    assert np.abs(law.torque(s.robot, 0.0, q, v) - tau).max() > 1.0


# ---- files and the command line ----

SMALL = """name: small
robot: quadruped
motion: {type: gait, height: 0.5, period: 1, stride: 0.3, lift: 0.09}
control: inverse
ground: firm
t_end: 0.05
"""


def test_a_small_file_runs() -> None:
    s = read_scenario(SMALL)
    r = s.run()
    assert r.audit.passed
    np.testing.assert_array_equal(s.q0, gait_of("quadruped_trot").start(s.robot)[0])
    again = rf.Scenario.again(r)
    np.testing.assert_array_equal(again.q, r.q)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lift: 0.09", "lift: 0", "small.yaml:3:"),
        ("stride: 0.3, ", "", "small.yaml:3:9: motion.stride: is missing"),
        ("height: 0.5", "height: 0.59", "small.yaml:3:9: motion: rear_right_hip cannot reach"),
        (
            "lift: 0.09",
            "lift: 0.09, support: [knee]",
            "no leg of quadruped has a joint or body 'knee'",
        ),
        ("lift: 0.09", "lift: 0.09, strid: 1", "small.yaml:3:"),
        ("robot: quadruped", "robot: kuka_kr5", "small.yaml:3:9: motion: leg at 'link2'"),
        (
            "control: inverse",
            "control: inverse\ncontrols: {computed_torque: {kp: -3}}",
            "small.yaml:5:",
        ),
        (
            "control: inverse",
            "control: inverse\ncontrols: {computed_tork: {kp: 3}}",
            "computed_torque",
        ),
        (
            "control: inverse",
            "control: inverse\ncontrols: {pd: 3}",
            "small.yaml:5:16: controls.pd: 3",
        ),
        ("control: inverse", "control: {type: inverse, limits: 3}", "limits"),
        (
            "motion: {type: gait, height: 0.5, period: 1, stride: 0.3, lift: 0.09}\n",
            "",
            "inverse follows a motion",
        ),
    ],
)
def test_mistakes_carry_their_place(old: str, new: str, said: str) -> None:
    with pytest.raises(rf.ModelError) as told:
        read_scenario(SMALL.replace(old, new), "small.yaml")
    assert said in str(told.value)


def test_controls_by_name_have_the_file_s_gains() -> None:
    s = rf.scenario("spatial_biped_walk")
    assert isinstance(s.control, Prescribed)
    r = s.run(control="computed_torque", t_end=0.02)
    assert r.options["control"]["kp"] == [200.0]
    assert r.options["control"]["kd"] == [40.0]
    other = s.run(control="{type: computed_torque, kp: 100}", t_end=0.02)
    assert other.options["control"]["kp"] == [100.0]


def test_a_plot_of_a_walk_needs_a_ground() -> None:
    assert len(run("hexapod_tripod", "inverse", 0.5).plot("walk").axes) == 4
    with pytest.raises(rf.RamifyError, match="no ground"):
        rf.simulate(rf.load("planar_3r"), 0.1).plot("walk")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "simulate",
                "hexapod_tripod",
                "--control",
                "computed_torque",
                "--t-end",
                "0.05",
                "--audit",
                "--json",
            ]
        )
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (stop.value.code or 0) == 0
    assert told["audit"]["passed"] is True
