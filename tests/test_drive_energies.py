"""What each drive gave and took back: closed forms, every way to make a run, several runs in one
table.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.core.arrays import Array
from ramify.plant.shared_code import sharing
from ramify.scenario_files.scenario import read_scenario
from ramify.studies.batch import run_batch, steps_of

INERTIA = np.array([2.0, 0.5, 1.25])
"""kg m^2 of three wheels that do not touch each other."""


def wheels(actuated: tuple[bool, ...] = (True, True, True), **machine: Any) -> rf.Model:
    b = rf.Builder("wheels", gravity=(0, 0, 0))
    for i, (moment, driven) in enumerate(zip(INERTIA, actuated, strict=True)):
        solid = {"mass": 1.0, "inertia": (moment, moment, moment)}
        b.link(f"w{i}", axis=(0, 0, 1), actuated=driven, **solid, **machine)
    return b.model()


def kinetic_energy_gained(r: rf.Result) -> Array:
    """J (T, nv) of each wheel by itself: the work of its drive, whatever the drive does."""
    return np.asarray(0.5 * INERTIA * (r.v**2 - r.v[0] ** 2))


def net(table: Any) -> list[float]:
    return [row.energy - row.regenerated for row in table]


# ---- closed forms ----


def test_a_hoist_that_brakes() -> None:
    """350 kg sink at 1 m/s under a constant force of 3733 N, stop and rise again."""
    mass, force = 350.0, 3733.0
    b = rf.Builder("hoist").link("hook", joint="prismatic", axis=(0, 0, 1), mass=mass)
    rise = force / mass - 9.81
    r = rf.simulate(b.model(), 1.5 / rise, v0=[-1.0], control=rf.control.Torque([force]))
    row = r.drives()["hook"]
    close(row.braking_peak, 3733.0, 1e-12, of="peak braking power")
    close(row.power_peak, 3733.0 * 0.5, 1e-6, of="peak driving power")
    close(row.regenerated, force * 0.5 / rise, 1e-6, of="energy taken back")
    close(row.energy, force * 0.125 / rise, 1e-6, of="energy given")
    assert "peak braking, W" in str(r.drives())


@pytest.mark.parametrize("dt_out", [0.02, 0.05, 0.1])
def test_energies_of_a_sinusoid_do_not_depend_on_the_rows(dt_out: float) -> None:
    """A wheel of 2 kg m^2 follows sin(3 t) over two periods: P = -27 sin(6 t), so that it gives and
    takes back 9 J four times. The power changes sign between rows.
    """
    b = rf.Builder("wheel", gravity=(0, 0, 0)).link("rim", mass=1.0, inertia=(2, 2, 2))
    motion = rf.motion.Harmonic([0.0], [1.0], [3.0 / (2.0 * math.pi)])
    law = rf.control.Prescribed(motion)
    r = rf.simulate(b.model(), 4.0 * math.pi / 3.0, v0=[3.0], control=law, dt_out=dt_out)
    row = r.drives()["rim"]
    close(row.energy, 4 * 9.0, 1e-3 * (dt_out / 0.1) ** 3, of="energy given")
    close(row.energy - row.regenerated, 0.0, atol=1e-6, of="work")
    close([row.power_peak, row.braking_peak], 27.0, 0.5 * (6 * dt_out) ** 2 / 2, of="peak powers")


def test_drives_that_chatter() -> None:
    """Each wheel is thrown forth and back by all that its drive has: ten jumps between two rows. What
    stays is its kinetic energy.
    """
    model = wheels(effort=40.0)

    def switch(t: float, q: Array, v: Array) -> Array:
        return np.asarray(-1e6 * (v - np.array([1.0, -2.0, 0.5]) * math.sin(t)))

    control = rf.control.Function(switch, rate_hz=1000.0)
    with pytest.warns(RuntimeWarning, match="jumps between both ends of its effort"):
        r = rf.simulate(model, 1.0, control=control, dt_out=0.0103)
    by_rows = np.trapezoid(r.tau * r.v, r.t, axis=0)
    gained = kinetic_energy_gained(r)[-1]
    assert np.abs(by_rows - gained).max() > 0.2  # what a sum over the rows would say
    close(net(r.drives()), gained, 1e-6, 1e-9, "work of each drive")
    close(sum(net(r.drives())), r.work.actuator[-1], 1e-12, 1e-12, "work of all drives")
    stayed = np.maximum(np.diff(r.drive_work, axis=0), 0.0).sum()  # over each row as a whole
    swung = np.trapezoid(np.abs(r.tau * r.v), r.t, axis=0).sum()
    assert sum(row.energy for row in r.drives()) < 3.0 * stayed < 0.2 * swung
    still = rf.simulate(model, 1.0, control=rf.control.Torque([1.0, 0.0, -1.0]))
    steady = still.drives()
    assert steady["w1"].energy == steady["w1"].regenerated == 0.0


# ---- every way to make a run ----

LAW = rf.control.PD(rf.motion.Hold([1.0, -0.5, 0.25]), kp=30.0, kd=1.0)
V0 = np.array([0.5, -1.0, 2.0])


def by_simulate(**how: Any) -> Callable[[], rf.Result]:
    return lambda: rf.simulate(wheels(), 0.8, **{"v0": V0, "control": LAW, **how})


def by_rollout(**how: Any) -> Callable[[], rf.Result]:
    def run() -> rf.Result:
        q, v = np.zeros((2, 3)), np.stack([0 * V0, V0])
        return rf.rollout(wheels(), q, v, dt=1e-3, steps=400, every=10, **how).result(1)

    return run


def by_study() -> tuple[rf.Result, rf.Result]:
    text = (
        "name: x\nrobot: planar_3r\nt_end: 0.2\nmethod: rk4\nstep: 0.001\n"
        "motion: {type: hold, q: [1, 0, 0]}\ncontrol: {type: pd, kp: 30, kd: 3}\n"
    )
    scenario = read_scenario(text)
    steps = steps_of(scenario)
    assert steps is not None
    with sharing():
        (found,) = run_batch([scenario], steps)
    assert found is not None
    return found, scenario.run()


WAYS: dict[str, tuple[Callable[[], rf.Result], float]] = {
    "dop853": (by_simulate(), 1e-7),
    "lsoda": (by_simulate(method="lsoda"), 1e-5),
    "rk4": (by_simulate(step=1e-3, method="rk4"), 1e-9),
    "ab4": (by_simulate(step=1e-3, method="ab4"), 1e-6),
    "implicit": (by_simulate(step=1e-4, method="implicit_extrapolation"), 1e-7),
    "function": (by_simulate(control=lambda t, q, v: 2.0 * np.sin(5.0 * t) - q), 1e-7),
    "sampled": (
        by_simulate(control=rf.control.Function(lambda t, q, v: -8.0 * q - v, rate_hz=50.0)), 1e-7
    ),
    "prescribed": (
        by_simulate(
            control=rf.control.Prescribed(rf.motion.Cycloid([0.0] * 3, [1.0, 2.0, 3.0], 0.8)), v0=None
        ), 1e-6,
    ),
    "table": (by_rollout(tau=np.sin(np.arange(1200.0)).reshape(400, 3)), 1e-9),
    "rollout": (by_rollout(control=LAW), 1e-9),
    "implicit_rollout": (by_rollout(control=LAW, method="implicit_extrapolation"), 1e-5),
    "parameters": (by_rollout(control=LAW, parameters={"w0.mass": [1.0, 3.0]}), 1e-9),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_every_run_knows_the_work_of_each_drive(way: str, tmp_path: Path) -> None:
    make, tolerance = WAYS[way]
    r = make()
    assert r.drive_work is not None
    close(r.drive_work.sum(axis=1), r.work.actuator, 1e-13, 1e-13, "work of all drives")
    size = np.abs(r.drive_work).max()
    close(r.drive_work, kinetic_energy_gained(r), 0.0, tolerance * size, "work of each drive")
    close(net(r.drives()), r.drive_work[-1], 1e-12, 1e-12 * size, "net energies of the table")
    r.save(tmp_path / "r.nc")
    again = rf.Result.open(tmp_path / "r.nc")
    assert again.drives().rows == r.drives().rows
    figures = again.audit.to_dict()["machine"]["work"]
    close(list(figures.values()), r.drive_work[-1][r.drive_work[-1] != 0.0], 1e-12, of="audit")


def test_runs_of_a_study_know_it_too() -> None:
    r, alone = by_study()
    close(r.drive_work, alone.drive_work, 1e-9, 1e-12, "work of each drive")
    close(sum(net(r.drives())), r.work.actuator[-1], 1e-12, of="work of all drives")


# ---- which drives, and where the table goes ----


def test_a_joint_that_only_the_controller_calls_actuated_is_a_drive() -> None:
    model = wheels(actuated=(True, False, False))
    law = rf.control.Function(lambda t, q, v: [3.0, -4.0], actuated=["w0", "w2"])
    r = rf.simulate(model, 1.0, control=law)
    assert [row.name for row in r.drives()] == ["w0", "w2"]
    close(net(r.drives()), [4.5 / INERTIA[0], 8.0 / INERTIA[2]], 1e-8, of="work")
    close(sum(net(r.drives())), r.work.actuator[-1], 1e-12, of="work of all drives")
    assert len(r.plot("drives").axes) == 2
    idle = rf.simulate(model, 0.1)
    assert [row.name for row in idle.drives()] == ["w0"]


def test_one_table_over_several_runs() -> None:
    """A duty cycle of unequal phases: RMS over the whole time, peaks of any, sums of energies."""
    model = wheels()
    laws = [rf.control.Torque(tau) for tau in ([3.0, 0.0, -1.0], [-6.0, 2.0, -1.0])]
    one, two = (
        rf.simulate(model, t, v0=V0, control=law)
        for t, law in zip((0.5, 1.5), laws, strict=True)
    )  # fmt: skip
    whole, first, second = one.drives(two), one.drives(), two.drives()
    close(whole["w0"].force_rms, math.sqrt((9.0 * 0.5 + 36.0 * 1.5) / 2.0), 1e-12, of="RMS")
    for a, b, c in zip(first, second, whole, strict=True):
        close(c.energy, a.energy + b.energy, 1e-12, 1e-12, "energy")
        close(c.regenerated, a.regenerated + b.regenerated, 1e-12, 1e-12, "regenerated")
        close(c.power_mean, (0.5 * a.power_mean + 1.5 * b.power_mean) / 2.0, 1e-12, 1e-12, "mean")
        assert c.force_peak == max(a.force_peak, b.force_peak)
        assert c.braking_peak == max(a.braking_peak, b.braking_peak)
        assert c.power_peak == max(a.power_peak, b.power_peak)
    with pytest.raises(rf.RamifyError, match="same joints in each: 'wheels' and 'planar_3r'"):
        one.drives(rf.simulate(rf.load("planar_3r"), 0.1))
    with pytest.raises(rf.RamifyError, match="takes runs"):
        one.drives([two])  # type: ignore[arg-type]


def test_the_table_as_a_file_and_in_a_report(tmp_path: Path) -> None:
    r = rf.simulate(wheels(), 0.5, v0=V0, control=rf.control.Torque([3.0, -2.0, -1.0]))
    r.drives().to_csv(tmp_path / "drives.csv")
    with (tmp_path / "drives.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row, drive in zip(rows, r.drives(), strict=True):
        assert row["name"] == drive.name
        for key in ("power_peak", "braking_peak", "energy", "regenerated", "force_rms"):
            assert float(row[key]) == getattr(drive, key)
        assert row["current_peak"] == ""
    r.to_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="", encoding="utf-8") as file:
        columns = list(csv.DictReader(file))
    for i in range(3):
        found = [float(row[f"drive_work w{i} [J]"]) for row in columns]
        assert np.array_equal(found, r.drive_work[:, i])
    page = r.report(tmp_path / "r.html").read_text()
    assert "peak driving, W" in page
    assert "peak braking, W" in page
    assert f"{r.drives()['w2'].braking_peak:.4g}" in page
