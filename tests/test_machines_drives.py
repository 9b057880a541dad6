"""Choosing drives: the table, commands to actuators, findings, and the Puma 560 as published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_machines_files import ARM

import ramify as rf
from ramify.drives.machine_forces import passive_forces
from ramify.files.robot_writer import to_yaml
from ramify.runs.drive_table import Drives
from ramify.view.torque_speed import drive_charts

QN = np.array([0.0, np.pi / 4, np.pi, 0.0, np.pi / 4, 0.0])
"""The Robotics Toolbox's posture qn."""


def test_the_puma_has_its_published_inertia_and_gravity_torques() -> None:
    """gravload(qn) and inertia(qn) as printed in P. Corke, Robotics, Vision and Control, and in the
    tests of his Robotics Toolbox for Python (tests/test_DHRobot.py).
    """
    m = rf.load("puma_560")
    assert_allclose(m.gravity_forces(QN), [0.0, 31.6399, 6.0351, 0.0, 0.0283, 0.0], atol=6e-5)
    wanted = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0.0000, -0.0000],
        [-0.4044, 4.4137, 0.3509, 0.0000, 0.0024, 0.0000],
        [0.1006, 0.3509, 0.9378, 0.0000, 0.0015, 0.0000],
        [-0.0025, 0.0000, 0.0000, 0.1925, 0.0000, 0.0000],
        [0.0000, 0.0024, 0.0015, 0.0000, 0.1713, 0.0000],
        [-0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.1941],
    ]
    assert_allclose(m.mass_matrix(QN), wanted, atol=6e-5)


ONES, NONE = np.ones(6), np.zeros(6)
PUBLISHED = [
    (NONE, NONE, 9.81, [0.0, 31.6399, 6.0351, 0.0, 0.0283, 0.0]),
    (NONE, ONES, 9.81, [3.35311, 36.0025, 7.42596, 0.190043, 0.203441, 0.194133]),
    (ONES, ONES, 9.81, [32.4952, 60.867, 17.7436, 1.45452, 1.29911, 0.713781]),
    (ONES, NONE, 9.81, [29.1421, 56.5044, 16.3528, 1.26448, 1.12392, 0.519648]),
    (ONES, ONES, 0.0, [32.4952, 29.2271, 11.7085, 1.45452, 1.27086, 0.713781]),
    (NONE, [1, 2, 3, 1, 2, 3], 0.0, [3.1500, 9.4805, 3.6189, 0.1901, 0.3519, 0.5823]),
]
"""v, a, gravity and tau: rne and itorque at qn in tests/test_DHRobot.py of the Robotics Toolbox for
Python."""


def sharp_puma() -> rf.Model:
    """The Puma with dry friction that is hardly smoothed at standstill, as the Toolbox has it."""
    m, bodies = rf.load("puma_560"), []
    for body in m.bodies:
        (own,) = body.joint.elements
        assert own.friction is not None
        own = replace(own, friction=replace(own.friction, slip_speed=1e-5))
        bodies.append(replace(body, joint=replace(body.joint, elements=(own,))))
    return replace(m, bodies=tuple(bodies))


@pytest.mark.parametrize(("v", "a", "gravity", "tau"), PUBLISHED)
def test_the_puma_has_its_published_torques(
    v: np.ndarray, a: np.ndarray, gravity: float, tau: list[float]
) -> None:
    """Rotors, gears, viscous and dry friction by direction included. qn is beyond a limit: without
    stops.
    """
    m = rf.with_gravity(sharp_puma(), (0.0, 0.0, -gravity))
    found = m.inverse_dynamics(QN, v, a, passive=True, stops=False)
    assert_allclose(found, tau, atol=6e-5)
    back = passive_forces(m, QN, -ONES, stops=False).parts["friction"][0]
    assert_allclose(back, 62.6111 * 0.435, rtol=1e-4)


def test_the_puma_has_its_published_accelerations_and_coriolis_forces() -> None:
    """accel and coriolis at qn in tests/test_DHRobot.py of the Robotics Toolbox for Python."""
    m, v = sharp_puma(), np.array([0.1, 0.2, 0.8, 0.2, 0.5, 1.0])
    tau = np.array([1.0, 3.2, 1.8, 0.1, 0.7, 4.6])
    wanted = [-7.4102, -9.8432, -10.9694, -4.4314, -0.9881, 21.0228]
    found = m.forward_dynamics(QN, v, tau, passive=True, stops=False)
    assert_allclose(found, wanted, atol=6e-5)
    v = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    C = [
        [-0.1735, -2.0494, -0.1178, -0.0002, -0.0045, 0.0001],
        [0.6274, 1.1572, 1.9287, -0.0015, -0.0003, -0.0000],
        [-0.3608, -0.7734, -0.0018, -0.0009, -0.0064, -0.0000],
        [0.0011, 0.0005, -0.0001, 0.0002, 0.0002, -0.0001],
        [-0.0002, 0.0028, 0.0046, -0.0002, -0.0000, -0.0000],
        [0.0001, 0.0000, 0.0000, 0.0000, 0.0000, 0.0],
    ]
    assert_allclose(m.bias(QN, v) - m.gravity_forces(QN), np.array(C) @ v, atol=1e-3)


def test_the_shipped_puma_smooths_its_friction() -> None:
    """What docs/machines.md says of the robot as shipped: rne off by 1.5e-3 N m, accel by 0.044
    rad/s^2 against tests/test_DHRobot.py of the Robotics Toolbox for Python.
    """
    m, v = rf.load("puma_560"), np.array([0.1, 0.2, 0.8, 0.2, 0.5, 1.0])
    tau = m.inverse_dynamics(QN, ONES, ONES, passive=True, stops=False)
    assert_allclose(np.abs(tau - PUBLISHED[2][3]).max(), 1.54e-3, rtol=0.02)
    applied = np.array([1.0, 3.2, 1.8, 0.1, 0.7, 4.6])
    wanted = [-7.4102, -9.8432, -10.9694, -4.4314, -0.9881, 21.0228]
    off = np.abs(m.forward_dynamics(QN, v, applied, passive=True, stops=False) - wanted).max()
    assert_allclose(off, 0.0437, rtol=0.02)


def test_a_table_of_drives_in_closed_form() -> None:
    """A wheel of 2 kg m^2 swings by sin t: every figure follows from one quarter of a sine."""
    b = rf.Builder("wheel", gravity=(0, 0, 0))
    b.link("rim", mass=1.0, inertia=(1, 1, 2.0), effort=4.0, velocity=2.0)
    motion = rf.motion.Harmonic(offset=[0.0], amplitude=[1.0], frequency=[1.0 / (2.0 * np.pi)])
    r = rf.simulate(
        b.model(), 2 * np.pi, v0=[1.0], control=rf.control.Prescribed(motion), dt_out=0.002
    )
    row = r.drives()["rim"]
    amplitude, speed = np.abs(r.tau).max(), np.abs(r.v).max()
    assert_allclose([row.force_peak, row.speed_peak], [amplitude, speed])
    assert_allclose(row.force_rms, amplitude / np.sqrt(2.0), rtol=1e-4)
    assert_allclose(row.speed_mean, speed * 2.0 / np.pi, rtol=1e-4)
    assert_allclose([row.power_peak, row.power_mean], [amplitude * speed / 2.0, 0.0], atol=1e-4)
    assert_allclose([row.energy, row.regenerated], amplitude * speed, rtol=1e-4)
    assert_allclose(row.gear_load, amplitude * 0.25 ** (1 / 3), rtol=1e-4)
    assert_allclose([row.force_share, row.speed_share], [amplitude / 4.0, speed / 2.0])
    assert "peak force" in str(r.drives())
    assert "of effort" in str(r.drives())
    bare = Drives((row._replace(force_share=np.nan),))
    assert "of effort" not in str(bare)  # columns without a figure are left out
    assert "rim    N m, rad/s" in str(r.drives())
    assert r.drives().to_dict()["rim"]["unit"] == "N m"


def swinging(**machine: object) -> rf.Model:
    """A wheel of 2 kg m^2 that a rotor of its own drives."""
    b = rf.Builder("wheel", gravity=(0, 0, 0))
    b.link("rim", mass=1.0, inertia=(1, 1, 2.0), velocity=2.0, **machine)
    return b.model()


def test_drives_at_the_motor_in_closed_form(tmp_path: Path) -> None:
    """Through a gear of -50 with a rotor of 4e-4 kg m^2: 1 kg m^2 of 3 at the joint."""
    m = swinging(rotor={"inertia": 4e-4, "gear": -50.0}, effort=4.0)
    file = tmp_path / "wheel.yaml"
    data = "constant: 0.1, resistance: 2, voltage: 9"
    motor = f"{{name: m, kind: dc_motor, joint: rim, gear: -50, {data}}}"
    file.write_text(f"{to_yaml(m)}\nactuators: [{motor}]\n")
    again = rf.load(file)
    assert again.joints[0].machine[0].gear == -50.0
    motion = rf.motion.Harmonic(offset=[0.0], amplitude=[1.0], frequency=[1.0 / (2.0 * np.pi)])
    control = rf.control.Prescribed(motion)
    for robot in (m, again):
        r = rf.simulate(robot, 2 * np.pi, v0=[1.0], control=control, dt_out=0.002)
        row, a, v = r.drives()["rim"], np.abs(r.a).max(), np.abs(r.v).max()
        assert_allclose([row.force_peak, row.output_peak], [3.0 * a, 2.0 * a], rtol=1e-9)
        assert_allclose([row.motor_peak, row.motor_speed], [3.0 * a / 50, 50 * v], rtol=1e-9)
        assert_allclose(row.motor_rms, row.force_rms / 50)
        assert_allclose(row.gear_load, 2.0 * a * 0.25 ** (1 / 3), rtol=1e-4)
    current = 3.0 * a / 50 / 0.1
    assert_allclose(row.current_peak, current, rtol=1e-9)
    assert_allclose(row.copper_loss, 2.0 * current**2 / 2.0 * 2 * np.pi, rtol=1e-4)
    assert_allclose(row.voltage_peak, np.hypot(2.0 * current, 0.1 * 50 * v), rtol=1e-4)
    assert "peak current" in str(r.drives())
    with pytest.raises(rf.RamifyError, match="no drive 'rims'; did you mean 'rim'"):
        r.drives()["rims"]


def test_force_over_speed_against_the_limits(tmp_path: Path) -> None:
    m = swinging(rotor={"inertia": 4e-4, "gear": 50.0}, effort=4.0, backward_effort=3.0)
    r = rf.simulate(m, 1.0, control=rf.control.Torque([3.5]), dt_out=0.01)
    (axes,) = r.plot("drives").axes
    limits, run = axes.get_lines()
    assert_allclose(limits.get_xydata().min(axis=0), [-2.0, -3.0])
    assert_allclose(limits.get_xydata().max(axis=0), [2.0, 4.0])
    assert_allclose(run.get_xydata(), np.c_[r.v[:, 0], r.tau[:, 0]])
    chart, power = drive_charts(r)
    assert (chart.groups, chart.across) == (("Drives",), ("v", "rad/s"))
    corners = {
        (float(x), float(y)) for x, y in zip(chart.curves[1].x, chart.curves[1].y, strict=True)
    }
    assert corners == {(-2.0, -3.0), (2.0, -3.0), (2.0, 4.0), (-2.0, 4.0)}
    assert_allclose(power.curves[0].y, r.tau[:, 0] * r.v[:, 0])
    unrated = rf.Builder("wheel").link("rim", mass=1.0, inertia=(1, 1, 2.0), effort=4.0).model()
    (axes,) = rf.simulate(unrated, 0.1, control=rf.control.Torque([3.5])).plot("drives").axes
    sides = np.diff(axes.get_lines()[0].get_xydata(), axis=0)
    assert not sides[np.isfinite(sides).all(axis=1), 1].any()  # no speed is a limit
    page = r.report(tmp_path / "r.html").read_text()
    assert "<h2>Drives</h2>" in page
    assert '"Drives"' in page


def test_the_audit_has_a_line_for_rotors_and_each_drive() -> None:
    """A constant torque on a wheel with a rotor of its own inertia, beside one that is braked."""
    b = rf.Builder("wheels", gravity=(0, 0, 0))
    solid = {"mass": 1.0, "inertia": (1.0, 1.0, 2.0)}
    b.link("free", armature=2.0, **solid)
    b.link("braked", armature=3.0, **solid)
    r = rf.simulate(b.model(), 1.0, v0=[0.0, 2.0], control=rf.control.Torque([8.0, -1.0]))
    figures = r.audit.to_dict()["machine"]
    assert_allclose(figures["rotors"], [6.0, 0.5 * 2.0 * 2.0**2 + 0.5 * 3.0 * 1.8**2], rtol=1e-8)
    assert_allclose([figures["work"][k] for k in ("free", "braked")], [8.0, -1.9], rtol=1e-6)
    text = str(r.audit)
    assert "kinetic energy of rotors 6 J at the start, 8.86 J at the end" in text
    assert "work by drive: free 8 J, braked -1.9 J" in text


def test_commands_drive_the_actuators(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").write_text(ARM)
    m = rf.load(tmp_path / "arm.yaml")
    r = rf.simulate(m, 0.5, control=rf.control.Commands.to(m, {"elbow": 0.5, "winch": 3.0}))
    assert r.audit.passed
    w = 3.0 * (1.0 - np.exp(-r.t / 0.1))  # the winch's filter
    u = np.tile([0.0, 0.5, 3.0], (len(r.t), 1))
    found = m.actuator_forces(r.q, r.v, u, w[:, None])
    assert_allclose(r.tau, found.tau, atol=1e-6)
    with pytest.raises(rf.StateError, match="no actuator 'elbo'; did you mean 'elbow'"):
        rf.simulate(m, 0.1, control=rf.control.Commands.to(m, {"elbo": 1.0}))
    with pytest.raises(rf.StateError, match=r"use Commands\.to"):
        rf.simulate(m, 0.1, control=rf.control.Commands({"elbow": 1.0}))


def test_the_linter_knows_typical_mistakes() -> None:
    b = rf.Builder("arm")
    b.link(
        "a", mass=1.0, com=(0.2, 0, 0), limits=[(-1, 1)], friction=5.0, effort=2.0, armature=40.0,
        spring={"stiffness": [1.0, 3.0, 1.0], "rest": 2.0},
    )  # fmt: skip
    codes = {finding.code for finding in b.model().check()}
    assert {"friction-effort", "armature-large", "rest-outside", "spring-sign"} <= codes
    b = rf.Builder("arm").link("a", mass=1.0, com=(1, 0, 0), spring={"stiffness": [-1.0, 0, 0]})
    assert "spring-sign" in {finding.code for finding in b.model().check()}


def test_saturated_actuators_and_cones_are_reported(tmp_path: Path) -> None:
    """A servo that is far from its goal gives 8 N m until it is near; a ball hangs in its cone."""
    (tmp_path / "arm.yaml").write_text(ARM)
    m = rf.load(tmp_path / "arm.yaml")
    r = rf.simulate(m, 0.5, control=rf.control.Commands.to(m, {"elbow": 0.5}))
    (found,) = [reached for reached in r.limits_reached if reached.what == "force range"]
    assert (found.name, found.since) == ("elbow", 0.0)
    assert_allclose(found.share, np.mean(np.abs(r.tau[:, 1]) >= 8.0 - 1e-9))
    assert "'elbow' at its force range from t = 0 s" in str(r.audit)
    r.save(tmp_path / "run.nc")
    assert rf.Result.open(tmp_path / "run.nc").limits_reached == r.limits_reached
    b = rf.Builder("ball")
    b.link("a", joint="ball", mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01), cone=0.5)
    r = rf.simulate(b.model(), 1.0)
    (found,) = r.limits_reached
    angle = 2.0 * np.arccos(np.abs(r.q[:, 0])) - 0.5
    assert (found.name, found.what) == ("a", "cone")
    assert_allclose([found.share, found.most], [np.mean(angle > 0.0), angle.max()], rtol=1e-6)
