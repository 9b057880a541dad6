"""What a run says of itself: the audit in words, in HTML and as data, the table of its drives and its
warnings, each number computed here from the arrays of the run.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.core.messages import pretty
from ramify.runs.audit import audit_table
from ramify.runs.audit_checks import CEILING, FLOOR, Check, allowed
from ramify.runs.drive_table import AT_JOINT, AT_MOTOR, Drive, Drives, _flows, driven_rates
from ramify.runs.limits_reached import (
    _beyond,
    limits_reached,
    warn_beyond_stops,
    warn_of_chatter,
    warn_of_degrees,
    warn_of_soft_stops,
)  # fmt: skip


def crane(**more: Any) -> rf.Model:
    b = rf.Builder("crane")
    b.link("turn", axis=(0, 1, 0), mass=2.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.3), damping=0.5, **more)  # fmt: skip
    b.link("slide", "turn", joint="prismatic", axis=(1, 0, 0), at=(0.4, 0, 0), mass=1.0, spring={"stiffness": 20.0}, effort=30.0, velocity=2.5)  # fmt: skip
    return b.model()


def runs() -> dict[str, rf.Result]:
    lifted = rf.control.Torque([2.0, -3.0])
    foot = rf.Builder("foot").link("foot", joint="free", mass=1.0, inertia=(0.1, 0.2, 0.3), points={"a": (0.1, 0, -0.1), "b": (-0.1, 0.1, -0.1), "c": (0, -0.1, -0.1)})  # fmt: skip
    return {
        "driven": rf.simulate(crane(), 0.2, [0.2, 0.05], [1.0, -0.5], control=lifted),
        "pushed": rf.simulate(crane(), 0.1, [0.2, 0.05], wrenches={"slide": [0, 0.3, 0, 4.0, 0, 1.0]}),
        "ground": rf.simulate(foot.model(), 0.3, [0, 0, 0.12, 1, 0, 0, 0], ground="firm"),
        "loops": rf.simulate(rf.load("four_bar"), 0.1),
        "implicit": rf.simulate(crane(), 0.1, [0.2, 0.05], method="implicit_euler", step=0.01),
        "coarse": rf.simulate(crane(), 0.5, [0.2, 0.05], [3.0, 0.0], method="euler", step=0.05),
        "free": rf.simulate(foot.model(), 0.1, [0, 0, 1, 1, 0, 0, 0], [1, 2, 3, 0.4, 0.5, 0.6]),
    }  # fmt: skip


@pytest.fixture(scope="module")
def every() -> dict[str, rf.Result]:
    return runs()


NAMES = ["driven", "pushed", "ground", "loops", "implicit", "coarse", "free"]


@pytest.mark.parametrize("name", NAMES)
def test_the_words_of_an_audit(every: dict[str, rf.Result], name: str) -> None:
    r = every[name]
    a = r.audit
    lines = str(a).split("\n")
    verdict = "PASS" if a.passed else "FAIL"
    head = f"audit of {r.model.name!r}: {verdict} (tolerance {a.tolerance:.3g}: {a.basis})"
    assert lines[0] == head
    for check in a.checks:
        error = np.abs(check.error)
        row = int(error.argmax())
        mark = "ok" if (error <= check.limit).all() else "BROKEN"
        share = f"{error[row] / check.scale:.2g} of {check.scale:.4g} {check.unit}"
        said = f"  {check.name:16} {mark:6}  largest error {error[row]:.3g} {check.unit} at t = {r.t[row]:.6g} s, {share}"  # fmt: skip
        assert said in lines
    close(a.kinetic, r.model.energy(r.q, r.v).kinetic, 1e-9, 1e-12)
    assert f"  kinetic energy {a.kinetic[0]:.6g} J at the start, {a.kinetic[-1]:.6g} J at the end" in lines  # fmt: skip
    assert f"  potential energy {a.potential[0]:.6g} J at the start, {a.potential[-1]:.6g} J at the end" in lines  # fmt: skip
    work, lost = r.work.actuator[-1], r.work.dissipated[-1]
    assert f"  work of the actuators {work:.6g} J, dissipated {lost:.6g} J" in lines
    told = {
        "wrenches": f"  work of external wrenches {r.wrenches.work[-1]:.6g} J" if r.wrenches else None,
        "ground": f"  in the ground {r.contacts.dissipated[-1]:.6g} J dissipated; {r.contacts.stored[0]:.6g} J stored at the start, {r.contacts.stored[-1]:.6g} J at the end" if r.contacts else None,
        "loops": f"  constraint forces have a power of {np.abs(r.loops.power).max():.2g} W at most" if r.loops else None,
    }  # fmt: skip
    starts = {
        "wrenches": "  work of external", "ground": "  in the ground", "loops": "  constraint forces"
    }  # fmt: skip
    for part, line in told.items():
        assert [x for x in lines if x.startswith(starts[part])] == ([line] if line else [])
    conserved = name == "free"
    assert ("  momentum         not conserved in this run, not checked" in lines) != conserved
    by_steps = [line for line in lines if "the implicit steps themselves" in line]
    assert bool(by_steps) == (name == "implicit")
    if by_steps:
        loss = -float(a.error[-1])
        word = "added" if loss < 0 else "dissipated"
        assert by_steps == [f"  the implicit steps themselves {word} {abs(loss):.6g} J, not part of the balance"]  # fmt: skip
    first = a.first_break
    assert (first is None) == a.passed
    if first is not None:
        row = min(
            int(np.flatnonzero(np.abs(c.error) > c.limit)[0]) for c in a.checks if not c.passed
        )
        assert (first.row, first.time) == (row, r.t[row])
        assert lines[-1] == f"  {first.quantity} first breaks at t = {r.t[row]:.6g} s (row {row}): {first.reason}"  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_table_and_the_data_of_an_audit(every: dict[str, rf.Result], name: str) -> None:
    r = every[name]
    a, data = r.audit, r.audit.to_dict()
    html = audit_table(a)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html)).replace("&#x27;", "'")
    for check, row in zip(a.checks, data["checks"], strict=True):
        k = check.worst
        word = "passed" if check.passed else "failed"
        said = f"{check.name} {word} {check.largest:.3g} {pretty(check.unit)} {r.t[k]:.5g} s {check.relative:.2g}"  # fmt: skip
        assert said in text
        assert (row["quantity"], row["unit"], row["passed"]) == (
            check.name,
            check.unit,
            check.passed,
        )
        close((row["largest_error"], row["at"], row["relative_error"]), (check.largest, r.t[k], check.largest / check.scale), 1e-12)  # fmt: skip
        close((row["scale"], row["limit"]), (check.scale, check.limit), 0)
    assert f"kinetic energy {a.kinetic[0]:.6g} → {a.kinetic[-1]:.6g} J" in text
    assert f"potential energy {a.potential[0]:.6g} → {a.potential[-1]:.6g} J" in text
    assert f"work of the actuators {r.work.actuator[-1]:.6g} J dissipated {r.work.dissipated[-1]:.6g} J" in text  # fmt: skip
    assert f"tolerance {a.tolerance:.3g} ({a.basis})" in text
    assert ("work of external wrenches" in text) == (name == "pushed")
    assert ("implicit steps themselves" in text) == (name == "implicit")
    assert ("not conserved in this run" in text) == (name != "free")
    assert ("first break" in text) == (not a.passed)
    assert html.count("<td") > 0
    numeric = re.findall(r'<td class="(?:right|number|num)"', html) or re.findall(
        r"<td class=", html
    )
    assert len(numeric) >= 3 * len(a.checks)
    assert data["passed"] == a.passed
    assert data["tolerance"] == a.tolerance
    assert data["basis"] == a.basis
    close(data["kinetic"], a.kinetic[[0, -1]], 0)
    close(data["potential"], a.potential[[0, -1]], 0)
    assert (data["actuator_work"], data["dissipated"]) == (
        r.work.actuator[-1],
        r.work.dissipated[-1],
    )
    assert data["wrench_work"] == (r.wrenches.work[-1] if r.wrenches else None)
    assert (data["ground"] is None) == (name != "ground")
    if r.contacts is not None:
        close(data["ground"]["stored"], r.contacts.stored[[0, -1]], 0)
        assert data["ground"]["dissipated"] == r.contacts.dissipated[-1]
    assert (data["dissipated_by_steps"] is None) == (name != "implicit")
    assert (data["loop_gap"] is None) == (name != "loops")
    if r.loops is not None:
        close(data["constraint_power"], np.abs(r.loops.power).max(), 0)
    assert a.verdict.startswith("passed" if a.passed else "failed")
    assert f"audit of {r.model.name}: " in a._repr_html_()


def test_an_audit_of_part_of_a_run(every: dict[str, rf.Result]) -> None:
    cut = replace(every["driven"], status="interrupted")
    said = f"  the run ended at t = {cut.t[-1]:.6g} s (interrupted); audited is what was computed"
    assert said in str(cut.audit).split("\n")
    assert "the run ended" not in str(every["driven"].audit)


def test_tolerances_follow_from_the_options(every: dict[str, rf.Result]) -> None:
    r = every["driven"]
    for steps, rtol, atol, share, note in (
        (80, 1e-8, 1e-9, 2 * 80 * 1e-8, ""),
        (7, 1e-8, 1e-9, 2 * 50 * 1e-8, ""),
        (80, 1e-3, 1e-9, CEILING, ", kept within 1e-12 and 0.001"),
        (80, 1e-16, 1e-9, FLOOR, ", kept within 1e-12 and 0.001"),
    ):
        options = {**r.options, "rtol": rtol, "atol": atol, "step": None}
        made = replace(r, options=options, stats={**r.stats, "steps": steps})  # fmt: skip
        found, absolute, basis = allowed(made)
        close(found, share, 1e-12)
        close(absolute, 2 * max(steps, 50) * atol, 1e-12)
        assert basis == f"2 x {max(steps, 50)} steps x rtol {rtol:.3g}{note}"
        fixed = replace(r, options=options | {"step": 0.1})
        assert allowed(fixed) == (CEILING, 0.0, "the method has no rtol")


def test_checks_find_their_worst_and_first_row() -> None:
    check = Check("x", "J", np.array([0.0, -3.0, 2.0, 1.0]), 4.0, 1.5)
    assert (check.worst, check.largest, check.relative, check.first, check.passed) == (1, 3.0, 0.75, 1, False)  # fmt: skip
    assert replace(check, limit=3.0).passed
    assert replace(check, limit=2.0).first == 1
    lost = replace(check, error=np.array([0.0, 9.0, np.nan, 1.0]), limit=99.0)
    assert (lost.worst, lost.first) == (2, 2)
    assert replace(check, scale=0.0).relative == math.inf
    assert replace(check, scale=0.0, error=np.zeros(3)).relative == 0.0


def test_energies_through_a_change_of_sign() -> None:
    """A line through zero: the triangles on both sides; a jump: their difference alone."""
    t, power = np.array([0.0, 0.5, 1.5]), np.array([3.0, -1.0, -2.0])
    up, down = 0.5 * 3.0 * 0.375, 0.5 * 1.0 * 0.125
    work = np.array([0.0, up - down, up - down - 1.5])
    close(_flows(t, work, power), (up, down + 1.5), 1e-12)
    jumped = work + np.array([0.0, 0.3, 0.3])
    close(_flows(t, jumped, power), (up - down + 0.3, 1.5), 1e-12)


def test_the_table_of_drives(every: dict[str, rf.Result], tmp_path: Path) -> None:
    r = every["driven"]
    table = r.drives()
    assert len(table) == 2
    assert [row.name for row in table] == ["turn", "slide"]
    for j, row in enumerate(table):
        tau, v = r.tau[:, j], r.v[:, j]
        span = r.t[-1] - r.t[0]
        assert row.unit == ("N m", "N")[j]
        close((row.force_peak, row.speed_peak), (np.abs(tau).max(), np.abs(v).max()), 1e-12)
        close(row.force_rms, math.sqrt(np.trapezoid(tau**2, r.t) / span), 1e-12)
        close(row.speed_mean, np.trapezoid(np.abs(v), r.t) / span, 1e-12)
        close((row.power_peak, row.braking_peak), (max((tau * v).max(), 0), max(-(tau * v).min(), 0)), 1e-12)  # fmt: skip
        assert r.drive_work is not None
        close(row.energy - row.regenerated, r.drive_work[-1, j], 1e-9, 1e-12)
        close(row.power_mean, r.drive_work[-1, j] / span, 1e-9)
        cubic = np.trapezoid(np.abs(v) * np.abs(tau) ** 3, r.t) / np.trapezoid(np.abs(v), r.t)
        close(row.gear_load, cubic ** (1 / 3), 1e-9)
    assert math.isnan(table["turn"].force_share)
    close((table["slide"].force_share, table["slide"].speed_share), (np.abs(r.tau[:, 1]).max() / 30.0, np.abs(r.v[:, 1]).max() / 2.5), 1e-12)  # fmt: skip
    with pytest.raises(rf.RamifyError, match="there is no drive 'slid'; did you mean 'slide'"):
        table["slid"]
    heads, rows = table.tables[0]
    assert [*heads] == [*AT_JOINT]
    assert len(table.tables) == 1
    assert [row[1] for row in rows] == ["N m, rad/s", "N, m/s"]
    assert rows[0][-1] == "–"
    lines = str(table).split("\n")
    assert len({len(line) for line in lines[1:]}) <= 2
    assert lines[1].split()[0] == "turn"
    start = lines[0].index("units")
    assert lines[1][start:].startswith("N m, rad/s")
    close(float(rows[1][2]), table["slide"].force_peak, 1e-3)
    table.to_csv(tmp_path / "d.csv")
    head, first, *_ = (tmp_path / "d.csv").read_text().split("\n")
    assert head.split(",") == [*Drive._fields]
    assert float(first.split(",")[2]) == table["turn"].force_peak
    assert table.to_dict()["turn"]["force_share"] is None
    html = table._repr_html_()
    assert html.count("<tr") == 3


def test_small_energies_are_rounding() -> None:
    row = Drive("a", "N m", 1.0, 1.0, 1.0, 1.0, 2.0, 1.5e-6, 1e-9, 3.0, 2.5e-6, 1.0, math.nan, math.nan)  # fmt: skip
    heads, cells = Drives((row,)).tables[0]
    said = dict(zip(heads, cells[0], strict=True))
    assert said["peak braking, W"] == "0"
    assert said["mean power, W"] == "0"
    assert said["regenerated, J"] == "0"
    assert said["energy, J"] == "3"
    assert "of effort" not in said
    kept = row._replace(braking_peak=2.1e-6, power_mean=-2.1e-6, regenerated=3.1e-6)
    said = dict(zip(*(lambda t: (t[0], t[1][0]))(Drives((kept,)).tables[0]), strict=True))
    assert (said["peak braking, W"], said["mean power, W"], said["regenerated, J"]) == ("2.1e-06", "-2.1e-06", "3.1e-06")  # fmt: skip


def test_motors_behind_gears() -> None:
    """Current, voltage and copper loss from the joint's torque and speed."""
    b = rf.Builder("arm").link(
        "a", axis=(0, 1, 0), mass=2.0, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.3)
    )
    b.link("b", "a", joint="universal", at=(0.3, 0, 0), mass=0.5, com=(0.1, 0.2, 0), inertia=(0.1, 0.1, 0.1))  # fmt: skip
    b.link(
        "c", "b", at=(0.3, 0, 0), axis=(0, 0, 1), mass=0.5, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1)
    )
    b.actuator(
        "m", kind="dc_motor", joint="c", gear=20.0, constant=0.05, resistance=0.8, voltage=24.0
    )
    m = b.model()
    r = rf.simulate(m, 0.1, control=rf.control.Torque([1.0, 0.4, -0.3, 0.2]))
    rates = list(driven_rates(r))
    assert [j for j, *_ in rates] == [0, 1, 2, 3]
    assert [name for _, name, *_ in rates] == [*m.velocities]
    row = r.drives()["c"]
    current = r.tau[:, 3] / (20.0 * 0.05)
    close(row.current_peak, np.abs(current).max(), 1e-9)
    close(row.voltage_peak, np.abs(0.8 * current + 0.05 * 20.0 * r.v[:, 3]).max(), 1e-9)
    close(row.copper_loss, 0.8 * np.trapezoid(current**2, r.t), 1e-9)
    close((row.gear, row.motor_peak, row.motor_speed), (20.0, row.force_peak / 20, row.speed_peak * 20), 1e-12)  # fmt: skip
    heads, rows = r.drives().tables[1]
    assert {*heads} <= {*AT_MOTOR}
    assert [cells[0] for cells in rows] == ["c"]


def test_limits_by_their_rows() -> None:
    t = np.linspace(0.0, 1.0, 11)
    excess = np.array([-1, -0.5, 0, 0.2, 0.5, 0.1, -0.2, -1, 0, -1, -1])
    (at,) = _beyond("x", "effort", t, excess, True)
    assert (at.since, at.share, at.most) == (t[2], 5 / 11, 0.5)
    (over,) = _beyond("x", "upper stop", t, excess)
    assert (over.since, over.share) == (t[3], 3 / 11)
    assert _beyond("x", "effort", t, excess - 1.0, True) == []
    b = rf.Builder("bob").link("a", limits=(-0.2, 0.3), mass=1.0)
    b.link("b", "a", joint="ball", mass=1.0, inertia=(1, 1, 1), cone=0.4)
    b.link("c", "b", limits=(-0.5, 0.6), effort=7.0, velocity=2.0, mass=1.0)
    m = b.model()
    half = 0.5 * np.array([0.1, 0.3, -0.5])
    turn = np.outer(np.sin(half), [0.0, 0.6, 0.8])
    q = np.column_stack([[-0.25, 0.1, 0.45], np.cos(half), turn, [0.7, -0.55, 0.0]])
    v = np.column_stack([np.zeros((3, 4)), [1.0, -2.5, 0.5]])
    tau = np.column_stack([np.zeros((3, 4)), [7.0, -7.5, 0.5]])
    said = {(x.name, x.what): x for x in limits_reached(m, t[:3], q, v, tau)}
    close(said["a", "lower stop"].most, 0.05, 1e-9)
    close(said["a", "upper stop"].most, 0.15, 1e-9)
    close((said["b", "cone"].most, said["b", "cone"].since), (0.1, t[2]), 1e-9)
    close((said["c", "upper stop"].most, said["c", "lower stop"].most), (0.1, 0.05), 1e-9)
    close((said["c", "effort"].share, said["c", "effort"].most), (2 / 3, 0.5), 1e-9)
    close((said["c", "velocity"].since, said["c", "velocity"].most), (t[1], 0.5), 1e-9)
    assert len(said) == 7
    open_ = {x.what for x in limits_reached(m, t[:3], q, v, tau, stops=False) if x.name == "a"}
    assert open_ == {"lower limit", "upper limit"}


def said_by(call: Any, *arguments: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments)
    return [str(w.message) for w in caught]


def test_warnings_of_starts_and_stops() -> None:
    b = rf.Builder("arm").link("a", limits=(-0.2, 0.3), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))  # fmt: skip
    b.link("b", "a", limits=(-1.0, 0.5), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    m = b.model()
    assert said_by(warn_beyond_stops, m, np.array([0.3, -1.0]), 1e-9) == []
    (words,) = said_by(warn_beyond_stops, m, np.array([[0.0, 0.0], [0.4, -1.5]]), 1e-3)
    assert words.startswith("'b' starts at -1.5, outside its limits (-1, 0.5): its stop throws")
    assert said_by(warn_beyond_stops, m, np.array([0.4, -1.5]), 1e-3) == []  # once each
    rows = np.array([[0.35, 0.0], [0.0, 0.8]])
    assert said_by(warn_of_soft_stops, m, rows[:1]) == []
    (words,) = said_by(warn_of_soft_stops, m, rows + np.array([0, 0.1]))
    assert words.startswith("the stop of 'b' gave way by 0.4, its range is 1.5: its stiffness, ")
    (words,) = said_by(warn_of_soft_stops, m, np.array([[-0.31, 0.0]]))
    assert words.startswith("the stop of 'a' gave way by 0.11, its range is 0.5")
    (words,) = said_by(warn_of_degrees, m, np.array([0.5, 90.0]))
    assert words == "q0: 'b' = 90 looks like degrees; in rad it would be 1.571 (np.deg2rad)"
    for q in ([90.5, 0], [12, 0], [721, 0]):
        assert said_by(warn_of_degrees, m, np.array(q, float)) == []
    assert said_by(warn_of_degrees, m, np.array([-13.0, 720.0])) != []
    assert said_by(warn_of_degrees, m, np.array([0.0, 720.0])) != []


def test_warnings_of_chatter() -> None:
    m = rf.Builder("arm").link("a", effort=3.0, mass=1.0).model()
    flips = np.where(np.arange(60) % 2, 3.0, -3.0)[:, None]
    (words,) = said_by(warn_of_chatter, m, flips)
    assert words.startswith(
        "the drive of 'a' jumps between both ends of its effort (-3, 3): reduce"
    )
    assert said_by(warn_of_chatter, m, 0.99 * flips) == []
    assert said_by(warn_of_chatter, m, flips[:9]) == []  # eight jumps are few
    assert said_by(warn_of_chatter, m, flips[:10]) != []
    seldom = np.full((200, 1), 3.0)
    seldom[:20:2] = -3.0
    assert said_by(warn_of_chatter, m, seldom[:189]) != []
    assert said_by(warn_of_chatter, m, np.vstack([seldom, seldom[20:]])) == []
