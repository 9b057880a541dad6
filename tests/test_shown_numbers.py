"""What plots and tables show are the numbers of the run, in the unit that stands beside them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from comparing import close
from test_run_plots import sled

import ramify as rf
from ramify.api.result import Result
from ramify.cli.count_command import _best
from ramify.model.machine import dc_motor
from ramify.view.curves import energy_curves, pressed
from ramify.view.torque_speed import envelope


@pytest.fixture(scope="module")
def sliding() -> Result:
    return sled(0)


def test_depths_are_in_the_unit_of_their_panel(sliding: Result) -> None:
    contacts = sliding.contacts
    assert contacts is not None
    panels = {p.get_title(loc="left"): p for p in sliding.plot("contacts").axes}
    (depth,) = (p for title, p in panels.items() if "depth" in title)
    assert "mm" in depth.get_title(loc="left") + depth.get_ylabel()
    touching = [k for k in range(len(contacts)) if contacts.touching[:, k].any()]
    for line, k in zip(depth.lines, touching, strict=False):
        close(line.get_ydata(), 1e3 * np.maximum(contacts.penetration[:, k], 0.0), of="depth, mm")


def test_the_balance_in_the_plot_is_that_of_the_audit() -> None:
    """Under wrenches, friction, springs and on a ground: every work and loss is in it."""
    made = rf.Builder("mass").link("mass", joint="prismatic", mass=2.0, damping=1.0, spring={"stiffness": 30.0})  # fmt: skip
    pushed = rf.simulate(made.model(), 0.5, [0.1], wrenches={"mass": [0, 0, 0, 0, 0, 9.0]}, control=rf.control.Torque([2.0]))  # fmt: skip
    assert pushed.wrenches is not None
    assert abs(pushed.wrenches.work[-1]) > 0.1
    for r in (pushed, sled(0)):
        (balance,) = (c for c in energy_curves(r).curves if c.name == "balance")
        close(balance.y - balance.y[0], r.audit.error, atol=1e-9, of="balance")


def test_a_centre_of_pressure_is_shown_from_a_thousandth_of_the_weight_on(sliding: Result) -> None:
    contacts, weight = sliding.contacts, sliding.model.mass * 9.81
    assert contacts is not None
    for share, visible in ((0.9e-3, False), (1.1e-3, True)):
        force = np.zeros_like(contacts.force)
        force[:, 0, 2] = share * weight
        shown = pressed(replace(sliding, contacts=replace(contacts, force=force)))
        assert shown is not None
        assert np.isfinite(shown).all() == visible


def test_the_border_of_a_dc_motor_is_its_law_at_full_voltage() -> None:
    """Each corner is the force that the actuator gives at that speed under + or - the voltage."""
    K, R, volts, gear = 0.05, 0.8, 24.0, 30.0
    made = rf.Builder("arm").link(
        "arm", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=(1, 1, 1)
    )
    model = made.model()
    drive = dc_motor("drive", "arm", K, R, volts, gear)
    model = replace(model, machine=replace(model.machine, actuators=(drive,)))
    r = rf.simulate(model, 0.05, control=rf.control.Commands({"drive": 5.0}))
    border = envelope(r, 0, "arm", model.joints[0].machine[0])
    assert border is not None
    n = (len(border) - 1) // 2
    for rows, u in ((border[:n], volts), (border[n:-1], -volts)):
        law = [model.actuator_forces([0.0], [speed], [u])[0] for speed, _ in rows]
        close(rows[:, 1], np.ravel(law), 1e-9, 1e-9, f"force at {u:g} V")


def test_the_share_saved_counts_divisions_as_multiplications() -> None:
    row: dict[str, Any] = {
        "mul": 60, "add": 40, "div": 20, "published": [{"who": "A", "mul": 120, "add": 80}],
    }  # fmt: skip
    assert _best(row) == ("120M 80A, A", "40%")


def test_times_of_the_bench_are_in_the_units_of_their_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ramify.cli import measure_commands
    from ramify.kernels import timing

    row = SimpleNamespace(
        algorithm="mass_matrix", tier="rolled", prepare=0.5, single=2e-6, batch=5e-7
    )
    monkeypatch.setattr(timing, "measure", lambda *_: [row])
    seen: list[Any] = []
    monkeypatch.setattr(measure_commands, "print_table", lambda *table: seen.append(table))
    measure_commands.bench("two_link")
    cells = dict(zip(seen[0][1], seen[0][2][0], strict=True))
    close(cells["one call, us"], 2.0, of="one call, us")
    close(cells["in a batch, us"], 0.5, of="in a batch, us")
    assert cells["states a second"] == "2,000,000"
