"""The built-in closed mechanisms against closed forms, the book's tables and Pinocchio; the
recursion over their subsystems.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mechanisms import MECHANISMS, Peer, consistent
from redysim_data import variables

import ramify as rf
from ramify.core.scalar import cos, sin
from ramify.dynamics.subsystems import plan, solve_blocks, solve_whole
from ramify.loops.far_guess import rotation_vectors
from ramify.model.frame import from_rpy

PRINTED = 5e-5  # the book prints four decimals


# ---- kinematics in closed form ----


def four_bar_angles(
    theta: Any, crank: float, rocker: float, coupler: float, pivot: float, side: float
) -> np.ndarray:
    """(crank, rocker, coupler relative to rocker) by the law of cosines; the rocker turns about
    (pivot, 0).
    """
    tip = np.stack([crank * np.cos(theta) - pivot, crank * np.sin(theta)])
    d = np.hypot(*tip)
    at_pivot = np.arccos((rocker**2 + d**2 - coupler**2) / (2 * rocker * d))
    phi = np.arctan2(tip[1], tip[0]) + side * at_pivot
    along = tip - rocker * np.stack([np.cos(phi), np.sin(phi)])
    return np.stack([theta, phi, np.arctan2(along[1], along[0]) - phi], axis=-1)


def same_angles(a: Any, b: Any, tolerance: float) -> None:
    np.testing.assert_allclose(
        np.abs(np.exp(1j * np.asarray(a)) - np.exp(1j * np.asarray(b))), 0.0, atol=tolerance
    )


@pytest.mark.parametrize(
    ("name", "lengths", "side"),
    [
        ("four_bar", (0.038, 0.1152, 0.1152, -0.0895), 1.0),
        ("hoeken_four_bar", (0.038, 0.1152, 0.1152, -0.0895), 1.0),
        ("redysim_four_bar", (0.05, 0.13, 0.1, 0.15), -1.0),
    ],
)
def test_four_bars_follow_the_law_of_cosines_all_the_way_round(
    name: str, lengths: Any, side: float
) -> None:
    theta = np.linspace(0.0, 2 * np.pi, 73)
    model = rf.load(name)
    state = model.assemble({"crank": theta}, rates={"crank": np.full(73, 2.0)})
    same_angles(state.q, four_bar_angles(theta, *lengths, side), 1e-12)
    step = 1e-5
    ahead, behind = (four_bar_angles(theta + s, *lengths, side) for s in (step, -step))
    rate = np.angle(np.exp(1j * (ahead - behind))) / step
    np.testing.assert_allclose(state.v, rate, atol=1e-8)


def test_the_slider_crank_has_its_closed_form() -> None:
    theta = np.linspace(-np.pi / 2, 3 * np.pi / 2, 50)
    model = rf.load("slider_crank")
    state = model.assemble({"crank": theta}, rates={"crank": np.ones(50)})
    root = np.sqrt(1.5**2 - np.cos(theta) ** 2)
    np.testing.assert_allclose(state.q[:, 2], root - np.sin(theta), atol=1e-12)
    np.testing.assert_allclose(
        state.v[:, 2], np.cos(theta) * np.sin(theta) / root - np.cos(theta), atol=1e-11
    )
    same_angles(state.q[:, 0] + state.q[:, 1], np.arctan2(-root, -np.cos(theta)), 1e-12)


def test_the_spatial_four_bar_keeps_its_lengths() -> None:
    """RSUR: the rocker's sine from the length of the coupler; the crank turns all the way round."""
    theta = np.linspace(0.0, 2 * np.pi, 40)
    state = rf.load("spatial_four_bar").assemble({"crank": theta})
    c, s = 0.1 * np.cos(theta), 0.1 * np.sin(theta)
    sine = (0.3**2 - (0.25 - c) ** 2 - s**2 - 0.2**2) / (2 * 0.2 * (0.25 - c))
    np.testing.assert_allclose(np.sin(state.q[:, 1]), sine, atol=1e-12)
    reach = np.stack([c - 0.25 - 0.2 * sine, s, -0.2 * np.cos(state.q[:, 1])], axis=1) / 0.3
    np.testing.assert_allclose(np.sin(state.q[:, 3]), reach[:, 1], atol=1e-12)
    same_angles(state.q[:, 1] + state.q[:, 2], np.arctan2(-reach[:, 2], reach[:, 0]), 1e-12)


def stewart_legs(position: Any, R: Any) -> np.ndarray:
    """Inverse kinematics in closed form: two angles and the length of every leg (6, 3)."""
    spread, third = np.pi / 12, 2 * np.pi / 3
    ground = np.array(
        [-spread, spread, third - spread, third + spread, 2 * third - spread, 2 * third + spread]
    )
    top = np.array(
        [
            -third / 2 + spread,
            third / 2 - spread,
            third / 2 + spread,
            np.pi - spread,
            np.pi + spread,
            -third / 2 - spread,
        ]
    )
    feet = 0.5 * np.stack([np.cos(ground), np.sin(ground), 0 * ground], axis=1)
    heads = (
        0.25 * np.stack([np.cos(top), np.sin(top), 0 * top], axis=1) @ np.asarray(R).T + position
    )
    d = heads - feet
    length = np.linalg.norm(d, axis=1)
    return np.stack([np.arctan2(d[:, 0], d[:, 2]), -np.arcsin(d[:, 1] / length), length], axis=1)


def test_a_tilted_platform_gives_its_leg_lengths() -> None:
    """The basic task of a Stewart platform: an orientation as quaternion, as matrix, by entries."""
    model = rf.load("stewart_platform")
    R = from_rpy(0.2, -0.15, 0.3)
    turn = rotation_vectors(R)
    half = 0.5 * float(np.linalg.norm(turn))
    quaternion = np.r_[np.cos(half), np.sin(half) * turn / (2.0 * half)]
    place = {"platform.x": 0.02, "platform.y": -0.03, "platform.z": 0.62}
    entries = dict(zip(model.coordinates[3:7], quaternion, strict=True))
    legs = stewart_legs(np.array([0.02, -0.03, 0.62]), R)
    for orientation in ({"platform": quaternion}, {"platform": R.tolist()}, entries):
        state = model.assemble(place | orientation, rates={"platform": [0.3, -0.2, 0.1]}
                               if "platform" in orientation else None)  # fmt: skip
        np.testing.assert_allclose(state.q[7:].reshape(6, 3), legs, atol=1e-11)
        np.testing.assert_allclose(state.q[3:7], quaternion, atol=1e-14)
        assert np.abs(model.constraints(state.q).J @ state.v).max() < 1e-12
        if "platform" in orientation:
            assert state.v[3:6].tolist() == [0.3, -0.2, 0.1]
    free = model.assemble(guess={"platform": quaternion, **place})
    np.testing.assert_allclose(free.q[3:7], quaternion, atol=0.1)  # near the guess
    for wrong in ([1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0], np.ones((3, 3)), "up"):
        with pytest.raises(rf.StateError, match="orientation of 'platform' must be a unit quat"):
            model.assemble({"platform": wrong})
    with pytest.raises(
        rf.StateError, match=r"part of the quaternion of 'platform'; add platform\.q"
    ):
        model.assemble({"platform.qw": 1.0})


def test_the_stewart_platform_has_its_closed_form() -> None:
    model = rf.load("stewart_platform")
    q, _, _ = consistent(model, 3)
    R = model.tree.kinematics(q).rotation[0]
    np.testing.assert_allclose(q[7:].reshape(6, 3), stewart_legs(q[:3], R), atol=1e-12)
    c = model.constraints(q)
    assert (c.rank, c.mobility, c.redundant) == (18, 6, ())


@pytest.mark.parametrize("first", ["rocker", "coupler"])
@pytest.mark.parametrize("angle", [0.7, 2.0, 0.05, 3.1])
def test_a_parallelogram_stays_one(first: str, angle: float) -> None:
    """The loop is led from the guess to the value asked for; the crossed branch is never taken."""
    robot = rf.Builder("parallelogram", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": (1e-4, 1e-2, 1e-2)}
    robot.link("crank", **rod).link("rocker", at=(0.5, 0, 0), actuated=False, **rod)
    robot.link("coupler", "crank", at=(0.2, 0, 0), actuated=False, **rod)
    ends = [("rocker", (0.2, 0, 0)), ("coupler", (0.5, 0, 0))]
    robot.loop("pin", "revolute", *(ends if first == "rocker" else ends[::-1]), planar=True).near(
        crank=1, rocker=1, coupler=-1
    )
    same_angles(robot.model().assemble({"crank": angle}).q, [angle, angle, -angle], 1e-9)


# ---- the book's tables ----


@pytest.mark.parametrize("name", ["four_bar", "hoeken_four_bar"])
def test_the_books_four_bar_starts_as_printed(name: str) -> None:
    """Tables 10.4 and 10.8: 45 rpm at crank angle 0."""
    state = rf.load(name).assemble({"crank": 0.0}, rates={"crank": 45 * 2 * np.pi / 60})
    np.testing.assert_allclose(state.q, [0.0, 0.9844, 4.3144], atol=PRINTED)
    np.testing.assert_allclose(state.v, [4.7124, 1.4045, 0.0], atol=PRINTED)


def test_the_leg_starts_as_redysim_has_it() -> None:
    data = variables("robotic_leg")
    model = rf.load("robotic_leg", **{f"m{k + 1}": m for k, m in enumerate(data["m"])})
    np.testing.assert_allclose(model.assemble({"crank": 0.0}).q, data["th"], atol=PRINTED)
    np.testing.assert_allclose([body.mass for body in model.bodies], data["m"])
    np.testing.assert_allclose(
        [np.diag(body.inertia)[2] for body in model.bodies], data["Iczz"], rtol=1e-12
    )
    assert [body.mass for body in rf.load("robotic_leg").bodies] == [
        0.01,
        0.02,
        0.05,
        0.08,
        0.03,
        0.12,
        0.06,
    ]  # table 8.2


def test_three_rrr_starts_as_redysim_has_it() -> None:
    data = variables("3_rrr_parallel_robot")
    cranks = dict(zip(("crank1", "crank2", "crank3"), np.array(data["th"])[[0, 3, 5]], strict=True))
    state = rf.load("three_rrr").assemble(cranks)
    np.testing.assert_allclose(
        state.q, data["th"], atol=4e-4
    )  # the crank angles are printed to 5e-5 and move the others more


def test_three_rrr_free_fall_starts_near_table_8_4() -> None:
    """The table's angles are rounded to whole degrees and leave the pins 1 cm open; its cranks
    alone give what is near the rest.
    """
    model = rf.load("three_rrr")
    printed = {
        "crank1": 1.0472,
        "coupler1": -0.8727,
        "platform": 3.7525,
        "crank2": 4.1888,
        "crank3": 5.7596,
    }
    platform = 1.0472 - 0.8727 + 3.7525
    printed["coupler2"] = platform + 1.3090 - np.pi - 4.1888  # given from the platform outwards
    printed["coupler3"] = platform + np.pi / 3 + 2.9322 - np.pi - 5.7596
    q = np.array([printed[name] for name in model.coordinates])
    assert 5e-3 < model.constraints(q).gap < 1.5e-2
    state = model.assemble(
        {name: printed[name] for name in ("crank1", "crank2", "crank3")}, guess=q
    )
    assert state.gap < 1e-14
    same_angles(state.q, q, 0.03)


# ---- Pinocchio ----


@pytest.mark.parametrize("name", MECHANISMS)
def test_dynamics_are_pinocchios(name: str) -> None:
    """(8.4) and (8.5) from Pinocchio's inertia matrix, bias and Jacobians."""
    model = rf.load(name)
    peer = Peer(model)
    driven = [
        i
        for i, drives in enumerate(
            joint.actuated for joint in model.joints for _ in range(joint.dof)
        )
        if drives
    ]
    for seed in range(4):
        q, v, a = consistent(model, seed, 3.0)
        assert np.abs(peer.closure(q, v)[0]).max() < 1e-12
        tau, multipliers = peer.inverse(q, v, a)
        found, lam, *_ = model.kernel("inverse_dynamics")(q, v, a)
        scale = max(np.abs(tau).max(), np.abs(multipliers).max())
        np.testing.assert_allclose(found[driven], tau, atol=1e-10 * scale)
        np.testing.assert_allclose(peer.in_world(q, lam), multipliers, atol=1e-10 * scale)
        assert not np.delete(found, driven).any()
        accelerations, again = peer.forward(q, v, found)
        moved, lam2 = model.kernel("forward_dynamics_multipliers")(q, v, found)
        np.testing.assert_allclose(
            peer.at(q, v, moved)[2],
            accelerations,
            atol=1e-9 * max(1.0, np.abs(accelerations).max()),
        )
        np.testing.assert_allclose(moved, a, atol=1e-9 * max(1.0, np.abs(a).max()))
        np.testing.assert_allclose(peer.in_world(q, lam2), again, atol=1e-9 * scale)


def test_the_four_bar_over_a_turn_is_pinocchios() -> None:
    """Torque and multipliers at 45 rpm (figure 8.5), against the full system."""
    model = rf.load("four_bar")
    peer = Peer(model)
    t = np.linspace(0.0, 4 / 3, 41)
    state = model.assemble({"crank": 1.5 * np.pi * t}, rates={"crank": np.full(41, 1.5 * np.pi)})
    tau, lam, *_ = model.kernel("inverse_dynamics")(*state)
    for k in range(41):
        expected, multipliers = peer.inverse(state.q[k], state.v[k], state.a[k])
        np.testing.assert_allclose(tau[k, 0], expected[0], atol=1e-10)
        np.testing.assert_allclose(peer.in_world(state.q[k], lam[k]), multipliers, atol=1e-10)


# ---- subsystems ----


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_recursion_is_the_full_solve_and_costs_less(name: str) -> None:
    model = rf.load(name)
    assert not plan(model).refused
    for seed in range(3):
        state = consistent(model, seed, 2.0)
        by_parts, whole = (
            model.kernel(k)(*state) for k in ("inverse_dynamics", "inverse_dynamics_whole")
        )
        for part, full in zip(by_parts[:2], whole[:2], strict=True):
            np.testing.assert_allclose(part, full, atol=1e-10 * max(1.0, np.abs(full).max()))
    less, more = (model.op_count(k) for k in ("inverse_dynamics", "inverse_dynamics_whole"))
    assert less.mul + less.add < more.mul + more.add
    assert less.div + less.sqrt < more.div + more.sqrt


class Row:
    """A constraint of which only the entries matter."""

    def __init__(self, entries: dict[int, float]) -> None:
        self.entries = entries


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("seed", range(3))
def test_block_by_block_is_one_elimination(name: str, seed: int) -> None:
    work = plan(rf.load(name))
    rng = np.random.default_rng(seed)
    rows: Any = [Row({i: float(rng.normal()) for i in links}) for links in work.pattern]
    phi = [float(x) for x in rng.normal(size=len(work.part))]
    for a, b in zip(solve_blocks(work, rows, phi), solve_whole(work, rows, phi), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    tau, lam = solve_blocks(work, rows, phi)
    J = np.array([[row.entries.get(i, 0.0) for i in range(len(phi))] for row in rows])
    np.testing.assert_allclose(np.array(tau) + J.T @ np.array(lam), phi, atol=1e-9)


def test_subsystems_of_the_book() -> None:
    """Sections 8.3 and 8.4: what is determinate, and in which round the rest becomes so."""
    parts = plan(rf.load("four_bar")).subsystems
    assert [(s.bodies, s.equations, s.determinate, s.after) for s in parts] == [
        (("crank",), 1, False, 2),
        (("rocker", "coupler"), 2, True, 1),
    ]
    leg = plan(rf.load("robotic_leg"))
    assert [
        (len(s.bodies), len(s.torques) + len(s.multipliers), s.determinate, s.after)
        for s in leg.subsystems
    ] == [
        (1, 3, False, 3),
        (2, 4, False, 2),
        (4, 4, True, 1),
    ]
    assert [block.unknowns for block in leg.blocks] == [
        (4, 5),
        (2, 3),
        (0, 1),
    ]  # finer than the book: the pantograph's own pin first


def test_spatial_pins_are_redundant_and_change_nothing(tmp_path: Path, root: Path) -> None:
    text = (root / "src" / "ramify" / "robots" / "four_bar.yaml").read_text()
    path = tmp_path / "spatial.yaml"
    path.write_text(text.replace("{type: revolute, planar: true}", "revolute"))
    model, planar = rf.load(path), rf.load("four_bar")
    state = consistent(planar, 1)
    c = model.constraints(state[0])
    assert (c.rank, c.mobility, c.redundant) == (2, 1, ("pin.z", "pin.tilt_x", "pin.tilt_y"))
    tau, lam, *_ = model.kernel("inverse_dynamics")(*state)
    expected, multipliers, *_ = planar.kernel("inverse_dynamics")(*state)
    np.testing.assert_allclose(tau, expected, atol=1e-12)
    np.testing.assert_allclose(lam, [*multipliers, 0.0, 0.0, 0.0], atol=1e-11)
    np.testing.assert_allclose(model.forward_dynamics(*state[:2], tau), state[2], atol=1e-10)


def test_the_recursion_says_where_it_does_not_apply(tmp_path: Path, root: Path) -> None:
    text = (root / "src" / "ramify" / "robots" / "four_bar.yaml").read_text()
    for old, new, why in (
        ("actuated: false", "actuated: true", "more actuators than needed"),
        (
            "    joint: revolute\n",
            "    joint: {type: revolute, actuated: false}\n",
            "fewer actuators",
        ),
    ):
        path = tmp_path / "other.yaml"
        path.write_text(text.replace(old, new))
        assert why in plan(rf.load(path)).refused


# ---- motion ----


@dataclass(frozen=True)
class Periodic(rf.control.Controller):
    """A torque over a turn as its Fourier series; it knows nothing of the motion but the time."""

    series: Any
    rate: float

    def law(self, robot: Any, driven: Any, t: Any, q: Any, v: Any, z: Any) -> Any:
        total = float(self.series[0].real)
        for k, c in enumerate(self.series[1:], start=1):
            angle = t * (k * self.rate)
            total = total + cos(angle) * (2.0 * float(c.real)) - sin(angle) * (2.0 * float(c.imag))
        return [total], []


def test_the_four_bars_torque_brings_its_motion_back() -> None:
    """Figures 8.5 and 8.6: inverse dynamics over a turn, then the simulation under that torque
    alone.
    """
    model, rate = rf.load("four_bar"), 1.5 * np.pi
    t = np.linspace(0.0, 4 / 3, 128, endpoint=False)
    state = model.assemble({"crank": rate * t}, rates={"crank": np.full(128, rate)})
    control = Periodic(np.fft.rfft(model.inverse_dynamics(*state)[:, 0])[:50] / 128, rate)
    r = rf.simulate(
        model, t_end=4 / 3, q0=state.q[0], v0=state.v[0], control=control, rtol=1e-10, atol=1e-12
    )
    assert np.abs(r["crank"] - rate * r.t).max() < 1e-6
    assert np.abs(r.loops.gap).max() < 1e-14


@pytest.mark.parametrize("name", ["four_bar", "robotic_leg", "three_rrr", "spatial_four_bar"])
def test_computed_torque_leads_the_driven_joints(name: str) -> None:
    """An error at the start dies out as e'' + 14 e' + 49 e = 0 says, whatever the loops do."""
    model = rf.load(name)
    start = model.assemble()
    driven = [i for i, joint in enumerate(model.joints) if joint.actuated]
    motion = rf.motion.Hold(start.q[driven] + 0.05)
    r = rf.simulate(
        model,
        t_end=0.5,
        q0=start.q,
        control=rf.control.ComputedTorque(motion),
        rtol=1e-10,
        atol=1e-12,
    )
    expected = 0.05 * (1.0 + 7.0 * r.t) * np.exp(-7.0 * r.t)
    np.testing.assert_allclose(
        start.q[driven] + 0.05 - r.q[:, driven],
        np.repeat(expected[:, None], len(driven), axis=1),
        atol=1e-8,
    )


def test_gravity_compensation_holds_a_mechanism() -> None:
    model = rf.load("three_rrr")
    start = model.assemble()
    r = rf.simulate(model, t_end=0.5, q0=start.q, control=rf.control.GravityCompensation())
    assert np.abs(r.q - start.q).max() < 1e-9


@pytest.mark.parametrize(
    ("name", "turning"), [("four_bar_turn", True), ("robotic_leg_turn", True), ("robotic_leg_free_fall", False),
                          ("slider_crank_free_fall", False), ("three_rrr_free_fall", False)],
)  # fmt: skip
def test_scenarios_keep_loops_and_energy(name: str, turning: bool) -> None:
    r = rf.scenario(name).run()
    assert r.status == "finished"
    assert r.audit.passed
    assert np.abs(r.loops.gap).max() < 1e-12
    if turning:
        assert np.abs(r["crank"] - 1.5 * np.pi * r.t).max() < 1e-8
    else:
        total = r.energy.kinetic + r.energy.potential
        assert np.abs(total - total[0]).max() < 1e-8 * r.energy.kinetic.max()


def test_redysims_slider_crank_goes_through_its_fold_when_told() -> None:
    """Crank and rod of one length: the swing leads through a posture of two degrees of freedom,
    where the velocity decides.
    """
    model = rf.load("slider_crank", rod=1.0)
    start = model.assemble({"crank": -np.pi / 2})
    with pytest.raises(rf.SimulationError, match="singular posture"):
        rf.simulate(model, t_end=3.0, q0=start.q)
    r = rf.simulate(model, t_end=3.0, q0=start.q, at_singularity="pass", rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        r["slider"], -2.0 * np.sin(r["crank"]), atol=1e-12
    )  # the branch it started on
    total = r.energy.kinetic + r.energy.potential
    assert np.abs(total - total[0]).max() < 1e-8 * r.energy.kinetic.max()


def test_a_scenario_says_why_it_cannot_start() -> None:
    from ramify.scenario_files.scenario import read_scenario

    text = "name: x\nrobot: {name: slider_crank, parameters: {rod: 0.5}}\ninitial: {q: {crank: 0}}\nt_end: 1\n"
    with pytest.raises(
        rf.ModelError,
        match=r"scenario.yaml:3:\d+: initial: slider_crank cannot be assembled with crank = 0: a gap of 0.5 m",
    ):
        read_scenario(text)
    with pytest.raises(
        rf.ModelError,
        match="'coupler' is not driven: its rate follows from the loops; give the rates of crank",
    ):
        read_scenario("name: x\nrobot: four_bar\ninitial: {v: {coupler: 1}}\nt_end: 1\n")
