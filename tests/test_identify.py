"""Identification on logs of robots that MuJoCo and Pinocchio moved: standard errors cover the truth,
mistakes in logs have their verdict by name, payloads, loops, free bases, motions, files, commands.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from packages import package
from simulated_logs import (
    Arm,
    Drives,
    arm,
    closed_torques,
    four_bar_coordinates,
    friction,
    measured,
    rigid_torques,
    walking_log,
    with_body,
)

import ramify as rf
from ramify.cli import main
from ramify.identify.consistent_links import pseudo_inertia
from ramify.identify.filters import LowPass
from ramify.identify.fitting import base_of
from ramify.identify.motion_planner import Planner, bounds_of
from ramify.identify.unknowns import Unknowns

T = np.arange(0.0, 16.0, 2e-3)


@cache
def ur10() -> Arm:
    return arm("ur10")


@cache
def clean(seed: int = 1) -> tuple[Any, ...]:
    """t, q, v, a and torque of a motion."""
    q, v, a = ur10().motion(T, seed)
    return T, q, v, a, ur10().torques(q, v, a)


def log(noise: int = 0, motion: int = 1, **options: Any) -> dict[str, Any]:
    t, q, _, _, tau = clean(motion)
    return measured(t, q, tau, noise, **options)


@cache
def fitted() -> Any:
    return rf.identify.fit(ur10().nominal, log())


def solo() -> str:
    return str(package("example-robot-data") / "solo_description/robots/solo12.urdf")


# ---- base parameters ----


def test_the_numbers_of_rigid_base_parameters(tmp_path: Path) -> None:
    robots = {"ur10": (ur10().true, 36), "panda": (arm("panda").true, 43), "kuka": (rf.load("kuka_kr5"), 36),
              "solo12": (rf.load(solo(), base="free"), 94)}  # fmt: skip
    for name, (robot, count) in robots.items():
        base = base_of(Unknowns(robot, "none", rotors=False, offsets=False))
        assert len(base) == base.rigid == count, name
        assert base.least_independent > 1e9 * base.largest_dependent, name


def test_groups_have_link_lengths_as_coefficients() -> None:
    names = dict(zip(fitted().base.short_names, fitted().base.names, strict=True))
    assert names["mz[upper_arm_link]"] == (
        "mz[upper_arm_link] + 0.612 m[forearm_link] + 0.612 m[wrist_1_link] + 0.612 m[wrist_2_link] + "
        "0.612 m[wrist_3_link]"
    )


def test_groups_predict_what_all_unknowns_do() -> None:
    base = fitted().base
    A = (
        ur10()
        .true.regressor(*(x[:50] for x in clean()[1:4]), drives=True)[..., :60]
        .reshape(-1, 60)
    )
    rigid = [i for i, c in enumerate(base.columns) if c < 60]
    columns = [base.columns[i] for i in rigid]
    pi = np.random.default_rng(0).normal(size=60)
    assert np.allclose(
        A[:, columns] @ (base.grouping[rigid, :60] @ pi), A @ pi, rtol=1e-8, atol=1e-9
    )


# ---- fits ----


def test_standard_errors_cover_the_truth() -> None:
    """Which 200 seeds do in the benchmark; a bias of a half or errors of half the size fail here."""
    z = []
    for seed in range(8):
        fit = rf.identify.fit(ur10().nominal, log(seed))
        assert fit.passed
        z.append(
            (fit.solution.beta - fit.base.grouping @ ur10().truth(fit.unknowns))
            / fit.solution.errors
        )
    assert np.mean(np.abs(z) < 3.0) > 0.985
    assert 0.85 < np.sqrt(np.mean(np.square(z))) < 1.2
    assert (
        np.abs(np.mean(z, axis=0)).max() < 1.5
    )  # eight seeds of one trajectory: 4 sigma of their mean


def test_other_logs_are_predicted_down_to_the_noise() -> None:
    _, _, _, _, tau = clean(2)
    size = 0.01 * np.sqrt(np.mean(clean()[4] ** 2, axis=0))
    other = log(99, 2, size=size)
    answer = fitted().validate(other)
    low = LowPass(fitted().band, 2e-3)
    floor = np.sqrt(np.mean(low.everywhere(other["tau"] - tau, low.taps()) ** 2, axis=0))
    assert (np.array([x.rmse for x in answer]) / floor < 1.3).all()
    assert answer.passed
    assert "RMSE/noise" in str(answer)


def test_the_robot_is_made_of_matter() -> None:
    fit = fitted()
    robot = fit.robot
    assert isinstance(robot, rf.Model)
    assert not [finding for finding in robot.check() if finding.level == "error"]
    assert fit.links.chi2_increase < 0.5 * len(fit.base)
    _, q, v, a, tau = (x[::200] for x in clean())
    off = fit.predict(q, v, a) - tau
    assert (np.sqrt(np.mean(off**2, axis=0)) < 0.02 * np.sqrt(np.mean(tau**2, axis=0))).all()
    nearest = (
        np.linalg.pinv(fit.base.grouping) @ (fit.solution.beta - fit.base.nominal)
        + fit.unknowns.nominal
    )
    bodies = nearest[: fit.unknowns.bodies].reshape(-1, 10)
    assert np.linalg.eigvalsh(pseudo_inertia(bodies)).min() < 0.0  # plain least squares is not


def test_a_saved_robot_reads_back(tmp_path: Path) -> None:
    fitted().robot.save(tmp_path / "id.yaml")
    again = rf.load(tmp_path / "id.yaml")
    assert np.allclose(
        again.dynamic_parameters, fitted().robot.dynamic_parameters, rtol=1e-9, atol=1e-12
    )


def test_several_logs_have_smaller_errors_and_agree() -> None:
    both = rf.identify.fit(ur10().nominal, [log(0), log(1, 2)])
    assert np.median(both.solution.errors / fitted().solution.errors) < 0.85
    rows = fitted().compare(both)
    assert abs(rows[0].sigmas) >= abs(rows[-1].sigmas)
    assert abs(rows[0].sigmas) < 4.0


def test_elimination_leaves_out_what_is_zero_within_its_error() -> None:
    fit = rf.identify.fit(ur10().nominal, log(), eliminate=0.3)
    assert fit.passed
    assert len(fit.base) + len(fit.dropped) == len(fitted().base)
    assert all(abs(x.error / x.value) <= 0.3 for x in fit.parameters)
    assert fit.problem.solution.chi2 < fitted().problem.solution.chi2 + 60


def test_friction_laws() -> None:
    a_arm, (t, q, v, a, _) = ur10(), clean()
    n = a_arm.true.nv
    usual, rigid = a_arm.drives, rigid_torques(a_arm.peer, q, v, a)
    skewed = Drives(usual.armature, usual.damping, usual.coulomb, offset=0.2 * usual.coulomb)
    fit = rf.identify.fit(
        a_arm.nominal, measured(t, q, rigid + friction(skewed, v, a), 0), friction="asymmetric"
    )
    law = fit.robot.joint("wrist_3_joint").machine[0].friction
    assert law is not None
    assert abs(law.forward / law.backward - 1.5) < 0.05
    speeds = np.linspace(0.2, 0.3, n)
    falling = Drives(usual.armature, usual.damping, usual.coulomb, 0.5 * usual.coulomb, speeds)
    slow = a_arm.motion(t, 3, 0.25)
    tau = a_arm.torques(*slow, falling)
    fit = rf.identify.fit(a_arm.nominal, measured(t, slow[0], tau, 0), friction="stribeck")
    off = np.array(list(fit.stribeck_speeds.values())) / speeds - 1.0
    assert (np.abs(off[2:]) < 0.05).all()
    assert (np.abs(off) < 0.15).all()
    law = fit.robot.joint("wrist_3_joint").machine[0].friction
    assert law is not None
    assert law.stribeck == "exponential"
    assert law.static > law.forward


def test_friction_that_is_known_is_not_fitted() -> None:
    """Rotors and friction of the file count where they are not unknown."""
    given = ur10().nominal.dynamic_parameters.copy()
    given[60:] = np.concatenate(
        [ur10().drives.armature, ur10().drives.damping, ur10().drives.coulomb]
    )
    robot = rf.with_inertial_parameters(ur10().nominal, given)
    fit = rf.identify.fit(robot, log(), friction="none", rotors=False)
    wanted = fit.base.grouping[:, :60] @ ur10().true.dynamic_parameters[:60]
    z = (fit.solution.beta - wanted) / fit.solution.errors
    assert fit.passed
    assert np.mean(np.abs(z) < 3.0) > 0.95


# ---- verdicts ----


def swapped(x: Any, i: int, j: int) -> Any:
    out = np.array(x)
    out[:, [i, j]] = out[:, [j, i]]
    return out


def scaled(x: Any, j: int, factor: float) -> Any:
    out = np.array(x)
    out[:, j] *= factor
    return out


def late(x: Any, samples: int) -> Any:
    return np.concatenate([x[:1].repeat(samples, axis=0), x[:-samples]])


def warming(base: dict[str, Any]) -> dict[str, Any]:
    t, q, v, _a, tau = clean()
    colder = 0.2 * ur10().drives.coulomb * np.sign(v) * (0.5 - t / t[-1])[:, None]
    return measured(t, q, tau + colder, 0)


def half_late(base: dict[str, Any]) -> dict[str, Any]:
    q, v, a = ur10().motion(T + 1e-3, 1)
    return measured(T, clean()[1], ur10().torques(q, v, a), 0)


def poor(base: dict[str, Any]) -> dict[str, Any]:
    q, v, a = (np.array(x) for x in clean()[1:4])
    q[:, 2:], v[:, 2:], a[:, 2:] = ur10().centre[2:], 0.0, 0.0
    return measured(T, q, ur10().torques(q, v, a), 0)


Change = Callable[[dict[str, Any]], dict[str, Any]]
MISTAKES: dict[str, tuple[Change, str, str, str]] = {
    "delay": (lambda x: x | {"tau": late(x["tau"], 2)}, "warning", "delay", "ur10"),
    "half a sample": (half_late, "note", "half-sample", "ur10"),
    "clipping": (
        lambda x: x | {"tau": np.clip(x["tau"], -np.inf, [99, 99, 99, 99, 1.8, 99])}, "warning", "clipping", "wrist_2_joint",
    ),
    "drift": (warming, "error", "drift", "wrist_1_joint"),
    "one sign": (lambda x: x | {"tau": scaled(x["tau"], 5, -1.0)}, "error", "sign", "wrist_3_joint"),
    "a sign of q": (lambda x: x | {"q": scaled(x["q"], 1, -1.0)}, "error", "sign", "shoulder_lift_joint"),
    "all signs": (lambda x: x | {"tau": -x["tau"]}, "error", "sign", "ur10"),
    "all gears": (lambda x: x | {"tau": x["tau"] / 100.0}, "error", "gear", "ur10"),
    "one gear": (lambda x: x | {"tau": scaled(x["tau"], 3, 0.02)}, "error", "gear", "wrist_1_joint"),
    "swapped torques": (
        lambda x: x | {"tau": swapped(x["tau"], 1, 2)}, "error", "swapped", "shoulder_lift_joint and elbow_joint",
    ),
    "swapped columns": (
        lambda x: x | {"q": swapped(x["q"], 3, 4), "tau": swapped(x["tau"], 3, 4)}, "error", "swapped", "wrist_1_joint and wrist_2_joint",
    ),
    "poor motion": (poor, "error", "poor-motion", "ur10"),
    "coarse encoder": (lambda x: log(bits=12), "warning", "encoder", "ur10"),
    "gap": (lambda x: {k: np.delete(v, slice(3000, 3200), axis=0) for k, v in x.items()}, "warning", "gaps", "log"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_their_verdict(name: str) -> None:
    change, level, code, where = MISTAKES[name]
    fit = rf.identify.fit(ur10().nominal, change(log()))
    verdicts = {(x.level, x.code, x.where) for x in fit.verdicts}
    assert (level, code, where) in verdicts
    assert fit.passed == (level != "error")
    if level == "error":
        with pytest.raises(rf.ModelError, match="not to be trusted"):
            _ = fit.robot
    if level != "error" and code != "encoder":  # what was noticed is corrected: numbers are right
        z = (
            fit.solution.beta - fit.base.grouping @ ur10().truth(fit.unknowns)
        ) / fit.solution.errors
        assert np.mean(np.abs(z) < 3.0) > 0.96


@pytest.mark.parametrize(
    ("gravity", "angle"), [((0.0, 0.0, 9.81), 180.0), ((0.855, 0.0, -9.773), 5.0)]
)
def test_gravity_in_another_direction(gravity: tuple[float, ...], angle: float) -> None:
    fit = rf.identify.fit(rf.with_gravity(ur10().nominal, gravity), log())
    (verdict,) = [x for x in fit.verdicts if x.code == "gravity"]
    assert verdict.level == "error"
    assert f"{angle:.0f}" in verdict.message.split("degrees")[0].split(", ")[-1]


def test_a_clean_log_has_no_doubts() -> None:
    assert {x.code for x in fitted().verdicts} <= {"unseen", "weak"}
    assert abs(fitted().delay.value) < 4.0 * fitted().delay.error


def test_delays_are_measured() -> None:
    fit = rf.identify.fit(ur10().nominal, log() | {"tau": late(log()["tau"], 2)})
    assert abs(fit.delay.value - 4e-3) < 3.5 * fit.delay.error < 1e-3


def test_unphysical_numbers_are_refused() -> None:
    """A third of the torque of a heavy joint is within what files may be wrong, but no matter fits."""
    with pytest.raises(rf.StateError, match="degrees: 'elbow_joint' reaches"):
        rf.identify.fit(ur10().nominal, log() | {"q": np.degrees(log()["q"])})
    fit = rf.identify.fit(ur10().nominal, log() | {"q": np.degrees(log()["q"])}, units="deg")
    assert fit.passed
    assert "degrees" in {x.code for x in fit.verdicts}


# ---- payload, motors ----


def test_payload() -> None:
    mass, com = 2.0, np.array([0.02, -0.03, 0.08])
    inertia = np.array([[0.012, 0.001, -5e-4], [0.001, 0.015, 8e-4], [-5e-4, 8e-4, 0.007]])
    t, q, v, a, _ = clean()
    heavy = with_body(ur10().peer, ur10().peer.nbody - 1, mass, com, inertia)
    tau = rigid_torques(heavy, q, v, a) + friction(ur10().drives, v, a)
    tool = rf.identify.payload(fitted(), measured(t, q, tau, 7), "wrist_3_link")
    assert tool.passed
    assert abs(tool.mass - mass) < min(4.0 * tool.mass_error, 0.004)
    assert (np.abs(tool.com - com) < 4.0 * tool.com_error).all()
    assert tool.com_error.max() < 2e-4
    assert (np.abs(tool.inertia - inertia) < 4.0 * tool.inertia_error).all()
    assert tool.inertia_error.max() < 0.05 * inertia.max()
    assert tool.robot.mass == pytest.approx(fitted().robot.mass + tool.mass)
    assert "mass centre" in str(tool)
    nothing = rf.identify.payload(fitted(), log(3), "wrist_3_link")
    assert not nothing.passed
    assert abs(nothing.mass) < 4.0 * nothing.mass_error
    with pytest.raises(rf.ModelError, match="part of the base"):
        rf.identify.payload(fitted(), log(), "base_link")


def test_currents_show_constants_up_to_a_factor() -> None:
    constants = np.linspace(8.0, 2.0, ur10().true.nv)
    data = log()
    currents = {"t": data["t"], "q": data["q"], "current": data["tau"] / constants}
    fit = rf.identify.fit(ur10().nominal, currents)
    motors = fit.torque_constants
    assert motors is not None
    assert "scale" in {x.code for x in fit.verdicts}
    ratio = np.array(list(motors.values.values()))[:3] / constants[:3]
    assert np.ptp(ratio) < 0.02 * ratio.mean()
    assert 0.5 < ratio.mean() < 2.0
    fit = rf.identify.fit(
        ur10().nominal, currents, torque_constants={"elbow_joint": float(constants[2])}
    )
    motors = fit.torque_constants
    assert motors is not None
    assert fit.passed
    off = np.abs(np.array(list(motors.values.values())) - constants)
    assert (off <= 4.0 * np.array(list(motors.errors.values()))).all()
    with pytest.raises(rf.StateError, match="torque_constants names 'elbow'"):
        rf.identify.fit(ur10().nominal, currents, torque_constants={"elbow": 1.0})


# ---- closed loops, free bases ----


def test_a_four_bar_from_its_crank_alone() -> None:
    m = rf.load("four_bar")
    peer, q_of = four_bar_coordinates(m)
    dt = 4e-3
    t = np.arange(0.0, 12.0, dt)
    crank = (t + 0.8 * np.sin(1.9 * t + 0.4) + 0.35 * np.sin(4.4 * t))[:, None]
    _q, v, tau = closed_torques(peer, q_of, crank, dt, [0])
    drive = Drives(np.array([0.002]), np.array([0.01]), np.array([0.03]))
    tau = tau + friction(drive, v[:, :1], np.gradient(v[:, :1], dt, axis=0))
    cut, z = slice(5, -5), []
    for seed in range(4):
        data = measured(t[cut], crank[cut], tau[cut], seed, bits=20)
        fit = rf.identify.fit(
            m, {"t": data["t"], "q_crank": data["q"][:, 0], "tau_crank": data["tau"][:, 0]}
        )
        assert fit.passed
        assert len(fit.base) == 11
        truth = np.zeros(fit.unknowns.size)
        truth[: fit.unknowns.bodies] = m.dynamic_parameters[: fit.unknowns.bodies]
        truth[fit.unknowns.bodies : fit.unknowns.bodies + 3] = 0.002, 0.01, 0.03
        z.append((fit.solution.beta - fit.base.grouping @ truth) / fit.solution.errors)
    assert (np.abs(z) < 4.0).all()
    assert np.sqrt(np.mean(np.square(z))) < 1.6


def test_a_quadruped_with_forces_on_its_feet() -> None:
    robot = rf.load(solo(), base="free")
    t = np.arange(0.0, 8.0, 4e-3)
    q, tau, wrenches = walking_log(solo(), [joint.name for joint in robot.joints[1:]], t)
    rng = np.random.default_rng(0)
    forces = np.hstack(
        [np.full((len(q), 6), np.nan), tau + 0.01 * tau.std() * rng.normal(size=tau.shape)]
    )
    data = {
        "t": t[8:-8],
        "q": q,
        "tau": forces,
        "wrenches": {k: w * (1 + 0.002 * rng.normal(size=w.shape)) for k, w in wrenches.items()},
    }
    fit = rf.identify.fit(robot, data, friction="none", rotors=False)
    masses = np.zeros(fit.unknowns.size)
    masses[: fit.unknowns.bodies : 10] = 1.0
    row = np.linalg.lstsq(fit.base.grouping.T, masses, rcond=None)[0]
    assert fit.base.rigid == 94
    assert fit.passed
    assert abs(row @ fit.solution.beta / robot.mass - 1.0) < 1e-3
    wanted = (
        fit.base.grouping[:, : fit.unknowns.bodies]
        @ robot.dynamic_parameters[: fit.unknowns.bodies]
    )
    assert np.mean(np.abs((fit.solution.beta - wanted) / fit.solution.errors) < 3.0) > 0.97
    with pytest.raises(rf.StateError, match=r"mass: no force is known.*weighed mass="):
        rf.identify.fit(robot, {"t": data["t"], "q": q, "tau": np.full_like(forces, np.nan)})


# ---- motions ----


def test_planned_motions_stay_within_limits_and_show_more() -> None:
    robot = rf.from_dh(
        [(0.0, 0.0, 0.3, 0.0), (0.0, np.pi / 2, 0.0, 0.0), (0.4, 0.0, 0.0, 0.0)],
        mass=[3.0, 2.0, 1.0], com=[(0, 0, -0.1), (0.2, 0, 0), (0.15, 0, 0)],
        inertia=[(0.02, 0.02, 0.01), (0.005, 0.03, 0.03), (0.002, 0.01, 0.01)],
    )  # fmt: skip
    limits = {"lower": -1.5, "upper": 1.8, "velocity": 2.0, "effort": [30.0, 40.0, 12.0]}
    shares: list[float] = []
    plan = rf.identify.excite(robot, 8.0, limits=limits, progress=shares.append)
    reached = plan.reached
    assert (reached["lower"] >= -1.5).all()
    assert (reached["upper"] <= 1.8).all()
    assert (reached["v"] <= 2.0).all()
    assert (reached["tau"] <= [30.0, 40.0, 12.0]).all()
    assert shares
    assert max(shares) <= 1.0
    q, v, a = plan.at(np.array([0.0, 8.0]))
    assert np.allclose(v, 0.0, atol=1e-9)
    assert np.allclose(a, 0.0, atol=1e-9)
    assert np.allclose(q[0], q[1])
    planner = Planner(base_of(Unknowns(robot)), bounds_of(robot, limits), 8.0, None, None)
    (best,) = planner.best_random(200, 0)
    sin, cos = planner.amplitudes(best)
    other = rf.identify.Excitation(
        robot, plan.base, 8.0, planner.centre, sin, cos, plan.noise, 1000.0, 2
    )
    gain = np.exp(
        np.mean(
            np.log(
                [y.error / x.error for x, y in zip(plan.predicted, other.predicted, strict=True)]
            )
        )
    )
    assert gain > 1.2
    step = 1e-6 * np.random.default_rng(0).normal(size=best.size)
    up, down = planner.value(best + step, 10.0)[0], planner.value(best - step, 10.0)[0]
    assert planner.value(best, 10.0)[1] @ step == pytest.approx(0.5 * (up - down), rel=1e-4)


def test_predicted_errors_are_those_of_the_fit(tmp_path: Path) -> None:
    a_arm = ur10()
    noise = np.array([0.4, 1.0, 0.4, 0.04, 0.03, 0.02])
    limits = {"velocity": 2.0, "lower": -2.0, "upper": 2.0}
    plan = rf.identify.excite(a_arm.nominal, 8.0, limits=limits, rate=500.0, noise=noise)
    t = plan.t
    q, v, a = plan.at(t)
    data = measured(t, q, a_arm.torques(q, v, a), 0, bits=24, size=noise)
    fit = rf.identify.fit(a_arm.nominal, data)
    predicted = {x.name: x.error for x in plan.predicted}
    ratio = np.array([x.error / predicted[x.name] for x in fit.parameters])
    assert (
        0.8 < np.median(ratio) < 1.8
    )  # rows near reversals are left out, which the plan does not know
    plan.save(tmp_path / "motion.csv")
    table = pandas.read_csv(tmp_path / "motion.csv")
    assert list(table.columns[:2]) == ["t", "q_shoulder_pan_joint"]
    assert len(table) == len(t)
    assert np.allclose(plan.motion.at(t[::50]).q, q[::50], atol=1e-5)
    assert "predicted error" in str(plan)


def test_postures_that_are_not_allowed() -> None:
    robot = rf.load("planar_3r")

    def above(q: Any) -> Any:
        return 0.6 - q[:, 0]

    plan = rf.identify.excite(robot, 6.0, limits={"velocity": 2.0}, allowed=above)
    assert plan.at(np.linspace(0.0, 6.0, 500))[0][:, 0].max() < 0.6 + 1e-3


# ---- logs ----


def header(keys: str, names: Any) -> list[str]:
    return ["t", *(f"{key}_{name}" for key in keys.split() for name in names)]


def short_log() -> dict[str, Any]:
    return {key: x[:1500] for key, x in log().items()}


def test_logs_are_read_from_files(tmp_path: Path) -> None:
    m, data = ur10().nominal, short_log()
    columns = np.column_stack([data["t"], data["q"], data["tau"]])
    frame = pandas.DataFrame(columns, columns=header("q tau", m.velocities))
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    np.savez(tmp_path / "log.npz", **data)
    degrees = frame.copy()
    degrees[[f"q_{x}" for x in m.velocities]] *= 180.0 / np.pi
    degrees.columns = [
        "time [s]",
        *(f"q {x} [deg]" for x in m.velocities),
        *(f"effort {i}" for i in range(6)),
    ]
    degrees.to_csv(tmp_path / "degrees.csv", index=False, sep=";")
    for source in (
        frame,
        data,
        *(tmp_path / name for name in ("log.csv", "log.parquet", "log.npz", "degrees.csv")),
    ):
        read = rf.identify.read_log(m, source)
        assert np.allclose(read.q, data["q"], atol=1e-12)
        assert np.allclose(read.tau, data["tau"])
    reversed_columns = frame[["t", *reversed(frame.columns[1:])]]
    assert np.array_equal(rf.identify.read_log(m, reversed_columns).q, data["q"])


def test_results_of_runs_are_logs(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    r = rf.simulate(m, 1.0, [0.3, 0.2, 0.1], dt_out=0.01)
    r.to_csv(tmp_path / "run.csv")
    ours, file = rf.identify.read_log(m, r), rf.identify.read_log(m, tmp_path / "run.csv")
    assert np.array_equal(ours.q, r.q)
    assert np.allclose(file.tau, r.tau)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.rename(columns={"q_elbow_joint": "q_elbow"}), "has no 'elbow'; did you mean 'elbow_joint'"),
        (lambda f: f.drop(columns="t"), None),
        (lambda f: f.drop(columns=[c for c in f if c.startswith("tau")]), "no column is tau of a joint"),
        (lambda f: f.rename(columns={"q_elbow_joint": "q9"}), "counts beyond the 6"),
        (lambda f: f.rename(columns={"tau_elbow_joint": "tau elbow_joint [lbf ft]"}), "the unit 'lbf ft'"),
        (lambda f: f.iloc[::-1], "times must rise"),
        (lambda f: f.iloc[:20], "at least 50 samples"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit(change: Any, message: str | None) -> None:
    data = short_log()
    frame = pandas.DataFrame(
        np.column_stack([data["t"], data["q"], data["tau"]]),
        columns=header("q tau", ur10().nominal.velocities),
    )
    if message is None:  # the index of a frame serves as its time
        assert len(rf.identify.read_log(ur10().nominal, change(frame))) == len(frame)
        return
    with pytest.raises(rf.StateError, match=message):
        rf.identify.read_log(ur10().nominal, change(frame))


def test_uneven_times_are_interpolated() -> None:
    data = log()
    rng = np.random.default_rng(0)
    t = data["t"] + 0.8e-3 * rng.uniform(-1, 1, len(T))
    q, v, a = ur10().motion(t, 1)
    fit = rf.identify.fit(ur10().nominal, measured(t, q, ur10().torques(q, v, a), 0, bits=22))
    assert "uneven-times" in {x.code for x in fit.verdicts}
    z = (fit.solution.beta - fit.base.grouping @ ur10().truth(fit.unknowns)) / fit.solution.errors
    assert np.mean(np.abs(z) < 3.0) > 0.9


def test_options_are_checked() -> None:
    m = ur10().nominal
    for options, message in (
        ({"friction": "sticky"}, "friction"),
        ({"units": "grad"}, "units 'grad'"),
        ({"band": -1.0}, "band"),
    ):
        with pytest.raises(rf.RamifyError, match=message):
            rf.identify.fit(m, log(), **options)  # type: ignore[arg-type]
    with pytest.raises(rf.StateError, match="give at least one log"):
        rf.identify.fit(m, [])
    with pytest.raises(rf.StateError, match="a log is a path"):
        rf.identify.fit(m, 3)
    with pytest.raises(rf.StateError, match=r"poor-motion|too short"):
        rf.identify.fit(m, {k: x[:400] for k, x in log().items()})


# ---- report and commands ----


def test_report(tmp_path: Path) -> None:
    page = fitted().report(tmp_path / "id.html", validate=log(5, 2)).read_text(encoding="utf-8")
    for words in (
        "Identification of ur10",
        "Verdicts",
        "Validation on another log",
        "Base parameters",
        "Links",
        "rank gap",
    ):
        assert words in page
    assert page.count("<img") == 3
    assert "http" not in page.replace("http://www.w3.org", "")
    with pytest.raises(rf.RamifyError, match="let its name end in"):
        fitted().report(tmp_path / "id.pdf")
    assert "passed" in str(fitted())
    assert "<table>" in fitted()._repr_html_()


def test_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    m = ur10().nominal
    m.save("arm.yaml")
    for name, data in (("log.csv", log()), ("bad.csv", log() | {"tau": -log()["tau"]})):
        frame = pandas.DataFrame(
            np.column_stack([data["t"], data["q"], data["tau"]]),
            columns=header("q tau", m.velocities),
        )
        frame.to_csv(name, index=False)

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["identify", *words])
        return int(end.value.code or 0), capsys.readouterr().out

    code, out = run(
        "log.csv",
        "arm.yaml",
        "--validate",
        "log.csv",
        "--report",
        "id.html",
        "--save",
        "id.yaml",
        "--json",
    )
    data = json.loads(out)
    assert code == 0
    assert data["passed"]
    assert len(data["parameters"]) == 58
    assert Path("id.html").exists()
    assert rf.load("id.yaml").mass > 0.0
    assert len(data["validation"]) == 6
    code, out = run("bad.csv", "arm.yaml", "--save", "bad.yaml")
    assert code == 1
    assert "[sign]" in out
    assert not Path("bad.yaml").exists()
    code, out = run("payload", "log.csv", "log.csv", "arm.yaml", "--link", "wrist_3_link", "--json")
    assert code == 1
    assert not json.loads(out)["passed"]


def test_the_command_that_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["identify", "plan", "planar_3r", "--period", "6", "--rate", "100", "--out", "m.csv"])
    assert "predicted error" in capsys.readouterr().out
    assert len(pandas.read_csv("m.csv")) == 1201
