"""Identification: ``python benchmarks/identification.py [SEEDS] [PART ...]``, 200 seeds by default.

Logs are made by MuJoCo (arms) and Pinocchio (loops, a free base), never by ramify: rotors, viscous
and Coulomb friction, torque noise of 1 %, encoders of 17 bits, 1 kHz, 20 s. *Coverage*: how many of
all parameters of all seeds are within three of their standard errors; *held-out*: the error on
other motions over the filtered noise itself. Parts: arms, friction, payload, excitation, loops,
base, peers. Peers are measured where they are installed: ``pip install figaroh``.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # times are those of one thread

import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from report import Table
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from packages import package
from peers import pinocchio_of
from simulated_logs import (
    Arm,
    Drives,
    arm,
    closed_torques,
    four_bar_coordinates,
    friction,
    measured,
    own_stewart,
    rigid_torques,
    stewart_coordinates,
    urdf_path,
    walking_log,
    with_body,
)

import ramify as rf
from ramify.identify.filters import LowPass
from ramify.identify.fitting import base_of
from ramify.identify.motion_planner import Planner, bounds_of
from ramify.identify.unknowns import Unknowns

Array = Any
T = np.arange(0.0, 20.0, 1e-3)
LIMITS = {"velocity": 2.0, "lower": -2.5, "upper": 2.5}
PARTS = ("arms", "friction", "payload", "excitation", "loops", "base", "peers")


def limits_of(a: Arm) -> dict[str, Array]:
    return {
        "velocity": np.minimum(a.true.rated_velocity, 2.0),
        "lower": np.maximum(a.true.lower, -2.5),
        "upper": np.minimum(a.true.upper, 2.5),
    }


def floor_of(noise: Array, band: float, dt: float) -> Array:
    """The noise itself after the filter."""
    low = LowPass(band, dt)
    return np.sqrt(np.mean(low.everywhere(noise, low.taps()) ** 2, axis=0))


def add(table: Table, what: str, seen: str, floor: str, met: bool) -> None:
    table.add(what, seen, floor, "met" if met else "NOT met")
    print(f"{what}: {seen} ({floor}) {'met' if met else 'NOT met'}", flush=True)


def arms(table: Table, seeds: int) -> None:
    """Coverage, held-out errors, times, consistent links and counts of three arms."""
    counts, consistent, slowest = [], [], 0.0
    for name, count in (("ur10", 36), ("kuka", 36), ("panda", 43)):
        a = arm(name, tempfile.mkdtemp())
        plan = rf.identify.excite(a.nominal, 10.0, limits=limits_of(a))
        q, v, acc = plan.at(T)
        tau = a.torques(q, v, acc)
        size = 0.01 * np.sqrt(np.mean(tau**2, axis=0))
        other = a.motion(T, 2)
        other_tau = a.torques(*other)
        z, times, ratios, bands, delays = [], [], [], [], []
        rf.identify.fit(a.nominal, measured(T, q, tau, 10**6))  # compile
        for seed in range(seeds):
            log = measured(T, q, tau, seed)
            begin = perf_counter()
            fit = rf.identify.fit(a.nominal, log)
            solution = fit.solution
            times.append(perf_counter() - begin)
            z.append((solution.beta - fit.base.grouping @ a.truth(fit.unknowns)) / solution.errors)
            bands.append(fit.band)
            delays.append(fit.delay.value)
            if seed < 10:
                begin = perf_counter()
                consistent.append((fit.links.chi2_increase / len(fit.base), fit.passed))
                slowest = max(slowest, perf_counter() - begin)
                held = measured(T, other[0], other_tau, 5000 + seed, size=size)
                rmse = np.array([x.rmse for x in fit.validate(held)])
                ratios.append(rmse / floor_of(held["tau"] - other_tau, fit.band, 1e-3))
        inside = np.abs(z) < 3.0
        rigid = base_of(Unknowns(a.nominal, "none", False, False))
        counts.append(
            (len(rigid), count, np.log10(rigid.least_independent / rigid.largest_dependent))
        )
        worst = inside.mean(axis=0).min()
        ratio = np.mean(ratios, axis=0)
        met = bool(inside.mean() >= 0.99 and worst >= 0.97)
        seen = f"{inside.mean():.4f}, {worst:.3f}"
        add(table, f"{name}: coverage, worst parameter", seen, "0.99, 0.97", met)
        add(
            table,
            f"{name}: held-out error / noise",
            f"{ratio.min():.2f}–{ratio.max():.2f}",
            "1.2",
            ratio.max() <= 1.2,
        )
        seen = f"{np.median(times):.2f}, at most {max(times):.2f}"
        add(table, f"{name}: fit of 20 s at 1 kHz, s", seen, "0.5", bool(np.median(times) <= 0.5))
        worst = 1e3 * float(np.abs(delays).max())
        add(table, f"{name}: delay of none, worst, ms", f"{worst:.2f}", "0.2", worst <= 0.2)
    ours, theirs = (", ".join(str(row[i]) for row in counts) for i in (0, 1))
    add(table, "rigid base parameters", ours, theirs, ours == theirs)
    gap = min(g for _, _, g in counts)
    add(table, "rank gap, decades", f"{gap:.1f}", "9", gap >= 9)
    most = max(x for x, _ in consistent)
    met = all(p for _, p in consistent) and most <= 0.5 and slowest <= 0.5
    seen = f"{sum(p for _, p in consistent)} of {len(consistent)}, {most:.3f}, {slowest:.2f}"
    add(table, "consistent links: passed, Δχ² / parameters, s", seen, "all, 0.5, 0.5", met)


def friction_and_delay(table: Table, seeds: int) -> None:
    a = arm("ur10")
    n = a.true.nv
    speeds = np.linspace(0.2, 0.3, n)
    falling = Drives(
        a.drives.armature, a.drives.damping, a.drives.coulomb, a.drives.coulomb, speeds
    )
    q, v, acc = a.motion(T, 3, 0.25)
    tau = a.torques(q, v, acc, falling)
    off = []
    for seed in range(max(3, seeds // 20)):
        fit = rf.identify.fit(a.nominal, measured(T, q, tau, seed), friction="stribeck")
        off.append(np.array(list(fit.stribeck_speeds.values())) / speeds - 1.0)
    error = np.sqrt(np.mean(np.square(off), axis=0))
    add(
        table,
        "Stribeck speed, RMS error of each joint, %",
        ", ".join(f"{100 * x:.1f}" for x in error),
        "5",
        error.max() <= 0.05,
    )
    q, v, acc = a.motion(T, 1)
    tau = a.torques(q, v, acc)
    late = np.concatenate([tau[:1].repeat(4, axis=0), tau[:-4]])
    delays = [
        rf.identify.fit(a.nominal, measured(T, q, late, s)).delay.value
        for s in range(max(3, seeds // 10))
    ]
    error = 1e3 * float(np.sqrt(np.mean((np.array(delays) - 4e-3) ** 2)))
    add(table, "delay of 4 ms, RMS error, ms", f"{error:.3f}", "0.2", error <= 0.2)


def payload(table: Table, seeds: int) -> None:
    a = arm("ur10")
    plan = rf.identify.excite(a.nominal, 10.0, limits=limits_of(a))
    q, v, acc = plan.at(T)
    com = np.array([0.02, -0.03, 0.08])
    inertia = np.array([[0.012, 0.001, -5e-4], [0.001, 0.015, 8e-4], [-5e-4, 8e-4, 0.007]])
    heavy = with_body(a.peer, a.peer.nbody - 1, 2.0, com, inertia)
    tau = rigid_torques(heavy, q, v, acc) + friction(a.drives, v, acc)
    fit = rf.identify.fit(a.nominal, measured(T, q, a.torques(q, v, acc), 0))
    rows = []
    for seed in range(max(5, seeds // 10)):
        tool = rf.identify.payload(fit, measured(T, q, tau, 100 + seed), "wrist_3_link")
        rows.append(
            (
                abs(tool.mass / 2.0 - 1.0),
                np.abs(tool.com - com).max(),
                np.abs(tool.inertia - inertia).max() / inertia.max(),
            )
        )
    mass, centre, moments = np.max(rows, axis=0)
    met = bool(mass <= 1e-3 and centre <= 1e-4 and moments <= 0.02)
    seen = f"{100 * mass:.3f} %, {1e3 * centre:.3f} mm, {100 * moments:.2f} %"
    what = "payload of 2 kg: mass, centre, inertia, worst"
    add(table, what, seen, "0.1 %, 0.1 mm, 2 %", met)


def excitation(table: Table) -> None:
    for name in ("ur10", "kuka", "panda"):
        a = arm(name, tempfile.mkdtemp())
        begin = perf_counter()
        plan = rf.identify.excite(a.nominal, 10.0, limits=limits_of(a))
        took = perf_counter() - begin
        planner = Planner(
            base_of(Unknowns(a.nominal)), bounds_of(a.nominal, limits_of(a)), 10.0, plan.noise, None
        )
        (best,) = planner.best_random(200, 1)
        sin, cos = planner.amplitudes(best)
        other = rf.identify.Excitation(
            a.nominal, plan.base, 10.0, planner.centre, sin, cos, plan.noise, 1000.0, 2
        )
        gain = np.exp(
            np.mean(
                [
                    np.log(y.error / x.error)
                    for x, y in zip(plan.predicted, other.predicted, strict=True)
                ]
            )
        )
        add(
            table,
            f"{name}: errors, best of 200 random motions / planned; s",
            f"{gain:.2f}; {took:.1f}",
            "1.5; 30",
            gain >= 1.5 and took <= 30,
        )


def coverage_of(
    robot: rf.Model, logs: Any, drives: Drives, truth_of: Any = None
) -> tuple[float, int]:
    z, passed = [], 0
    for log in logs:
        fit = rf.identify.fit(robot, log, band=10.0)
        truth = np.zeros(fit.unknowns.size)
        truth[: fit.unknowns.bodies] = robot.dynamic_parameters[: fit.unknowns.bodies]
        for kind in ("armature", "damping", "coulomb"):
            truth[fit.unknowns.columns_of(kind)] = getattr(drives, kind)
        z.append((fit.solution.beta - fit.base.grouping @ truth) / fit.solution.errors)
        passed += fit.passed
    return float(np.mean(np.abs(z) < 3.0)), passed


def loops(table: Table, seeds: int) -> None:
    count = max(3, seeds // 4)
    m = rf.load("four_bar")
    peer, q_of = four_bar_coordinates(m)
    dt = 2e-3
    t = np.arange(0.0, 20.0, dt)
    crank = (t + 0.8 * np.sin(1.9 * t + 0.4) + 0.35 * np.sin(4.4 * t))[:, None]
    _, v, tau = closed_torques(peer, q_of, crank, dt, [0])
    drive = Drives(np.array([0.002]), np.array([0.01]), np.array([0.03]))
    tau = tau + friction(drive, v[:, :1], np.gradient(v[:, :1], dt, axis=0))
    cut = slice(5, -5)
    logs = (measured(t[cut], crank[cut], tau[cut], s, bits=20) for s in range(count))
    inside, passed = coverage_of(
        m,
        ({"t": x["t"], "q_crank": x["q"][:, 0], "tau_crank": x["tau"][:, 0]} for x in logs),
        drive,
    )
    add(
        table,
        f"four-bar: coverage, {count} seeds, passed",
        f"{inside:.4f}, {passed}",
        "0.99",
        inside >= 0.99,
    )
    m = own_stewart()
    q_of = stewart_coordinates(m)
    dt = 4e-3
    t = np.arange(0.0, 20.0, dt)
    rng = np.random.default_rng(2)
    pose = np.zeros((len(t), 6))
    pose[:, 2] = 0.7
    for k in range(1, 7):
        pose += (
            0.5
            * np.array([0.06, 0.06, 0.05, 0.15, 0.15, 0.2])
            * rng.normal(size=6)
            * np.sin(0.2 * np.pi * k * t[:, None] + rng.uniform(0.0, 6.0, 6))
        )
    legs = [m.velocities.index(f"leg{i}") for i in range(1, 7)]
    q, v, tau = closed_torques(pinocchio_of(m.tree), q_of, pose, dt, legs)
    drive = Drives(np.full(6, 3.0), np.full(6, 20.0), np.full(6, 8.0))
    tau = tau + friction(drive, v[:, legs], np.gradient(v[:, legs], dt, axis=0))
    lengths = q[:, [m.coordinates.index(f"leg{i}") for i in range(1, 7)]]
    header = [*(f"q_leg{i}" for i in range(1, 7)), *(f"tau_leg{i}" for i in range(1, 7))]

    def log(seed: int) -> dict[str, Array]:
        x = measured(t[cut], lengths[cut], tau[cut], seed, bits=20)
        return {"t": x["t"], **dict(zip(header, np.hstack([x["q"], x["tau"]]).T, strict=True))}

    inside, passed = coverage_of(m, (log(s) for s in range(count)), drive)
    add(
        table,
        f"Stewart platform: coverage, {count} seeds, passed",
        f"{inside:.4f}, {passed}",
        "0.99",
        inside >= 0.99,
    )


def free_base(table: Table, seeds: int) -> None:
    path = str(package("example-robot-data") / "solo_description/robots/solo12.urdf")
    robot = rf.load(path, base="free")
    rigid = base_of(Unknowns(robot, "none", False, False))
    t = np.arange(0.0, 10.0, 2e-3)
    q, tau, wrenches = walking_log(path, [joint.name for joint in robot.joints[1:]], t)
    masses, z = [], []
    count = max(3, seeds // 4)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        noisy = tau + 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
        forces = {
            k: w
            + 0.01 * np.sqrt(np.mean(w[:, 3:] ** 2)) * rng.normal(size=w.shape) * [0, 0, 0, 1, 1, 1]
            for k, w in wrenches.items()
        }
        data = {
            "t": t[8:-8],
            "q": q,
            "tau": np.hstack([np.full((len(q), 6), np.nan), noisy]),
            "wrenches": forces,
        }
        fit = rf.identify.fit(robot, data, friction="none", rotors=False, band=10.0)
        bodies = fit.unknowns.bodies
        ones = np.zeros(fit.unknowns.size)
        ones[:bodies:10] = 1.0
        row = np.linalg.lstsq(fit.base.grouping.T, ones, rcond=None)[0]
        masses.append(abs(row @ fit.solution.beta / robot.mass - 1.0))
        wanted = fit.base.grouping[:, :bodies] @ robot.dynamic_parameters[:bodies]
        z.append((fit.solution.beta - wanted) / fit.solution.errors)
    inside = float(np.mean(np.abs(z) < 3.0))
    met = inside >= 0.99 and max(masses) <= 1e-3
    seen = f"{inside:.4f}; {100 * max(masses):.4f} %"
    add(table, f"solo12 on its feet: coverage, {count} seeds; mass", seen, "0.99; 0.1 %", met)
    add(table, "solo12: rigid base parameters", str(len(rigid)), "94", len(rigid) == 94)


def figaroh(a: Arm, log: dict[str, Array], other: tuple[Array, ...]) -> tuple[Array, float]:
    """Held-out torques by figaroh's filters, regressor, base parameters and weighted least squares,
    as its examples chain them, with a band of 10 Hz; and the time.
    """
    import pinocchio as pin
    from figaroh.tools.qrdecomposition import QRDecomposer
    from figaroh.tools.regressor import build_regressor_basic
    from scipy import signal

    robot = pin.RobotWrapper(pin.buildModelFromUrdf(urdf_path("ur10")))
    config = {
        "has_friction": True,
        "has_actuator_inertia": True,
        "has_joint_offset": True,
        "is_joint_torques": True,
        "act_idxv": list(range(a.true.nv)),
    }

    def columns(q: Array, v: Array, acc: Array) -> Array:
        return np.asarray(build_regressor_basic(robot, q, v, acc, config))

    begin = perf_counter()
    b, c = signal.butter(4, 10.0 / 500.0, "low")

    def smooth(x: Array) -> Array:
        return signal.filtfilt(b, c, np.apply_along_axis(signal.medfilt, 0, x, 5), axis=0)

    q = smooth(log["q"])
    v = np.gradient(q, 1e-3, axis=0)
    acc = np.gradient(v, 1e-3, axis=0)
    tau = smooth(log["tau"])
    pick = slice(100, -100, 10)
    W = columns(q[pick], v[pick], acc[pick])
    y = tau[pick].T.ravel()
    use = np.flatnonzero(np.linalg.norm(W, axis=0) > 1e-3)
    names = [str(i) for i in use]
    base = sorted(QRDecomposer()._identify_base_parameters(W[:, use], names)[0])
    columns_used = use[base]
    A = W[:, columns_used]
    phi = np.linalg.lstsq(A, y, rcond=None)[0]
    rows = len(y) // a.true.nv
    noise = np.repeat(
        [np.std((y - A @ phi)[j * rows : (j + 1) * rows]) for j in range(a.true.nv)], rows
    )
    phi = np.linalg.lstsq(A / noise[:, None], y / noise, rcond=None)[0]
    took = perf_counter() - begin
    return (columns(*other)[:, columns_used] @ phi).reshape(a.true.nv, -1).T, took


def peers(table: Table, seeds: int) -> None:
    """One log of a UR10: what each predicts of another motion, over the noise that a sensor of 1 %
    has after a band of 10 Hz.
    """
    a = arm("ur10")
    q, v, acc = rf.identify.excite(a.nominal, 10.0, limits=limits_of(a)).at(T)
    tau = a.torques(q, v, acc)
    log = measured(T, q, tau, 0)
    size = floor_of(log["tau"] - tau, 10.0, 1e-3)
    other = tuple(x[::20] for x in a.motion(T, 2))
    wanted = a.torques(*other)

    def row(name: str, predicted: Array, took: float) -> None:
        ratio = np.sqrt(np.mean((predicted - wanted) ** 2, axis=0) + size**2) / size
        add(
            table,
            f"{name}: held-out error and noise / noise; s",
            f"{ratio.min():.2f}–{ratio.max():.2f}; {took:.2f}",
            "–",
            True,
        )

    rf.identify.fit(a.nominal, log)
    begin = perf_counter()
    fit = rf.identify.fit(a.nominal, log)
    predicted = fit.predict(*other)
    row("ramify", predicted, perf_counter() - begin)
    if find_spec("figaroh") is not None:
        row("figaroh", *figaroh(a, log, other))
    else:
        print("figaroh is not installed")


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    seeds = int(arguments[0]) if arguments and arguments[0].isdigit() else 200
    parts = [x for x in arguments if x in PARTS] or list(PARTS)
    table = Table("Identification", ("what", "measured", "wanted", ""), note=f"{seeds} seeds")
    run = {
        "arms": lambda: arms(table, seeds),
        "friction": lambda: friction_and_delay(table, seeds),
        "payload": lambda: payload(table, seeds),
        "excitation": lambda: excitation(table),
        "loops": lambda: loops(table, seeds),
        "base": lambda: free_base(table, seeds),
        "peers": lambda: peers(table, seeds),
    }
    for part in parts:
        run[part]()
    table.show(Console(width=140))


if __name__ == "__main__":
    main(sys.argv[1:])
