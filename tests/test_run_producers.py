"""Whoever computes a run, alone, as a scenario, in a study or in a rollout, leaves the same record,
the same energy balance, and a listing that repeats it to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from closed_systems import parallelogram
from comparing import close, same
from packages import package

import ramify as rf
from ramify.api.result import Result
from ramify.runs import run_recording as running
from ramify.runs.run_options import OPTIONS
from ramify.runtime import kernel as kernels
from ramify.studies.outputs import Keep, energies_without_kernel
from ramify.studies.work import run_row
from ramify.view.controllers import controller_rows
from ramify.view.curves import energy_curves as energy_chart
from ramify.view.live_machine import LiveMachine
from ramify.view.repeated_run import simulate_again


def arm() -> rf.Model:
    """Limits, damping, friction, LuGre friction, a spring, an effort."""
    made = rf.Builder("arm")
    made.link("upper", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01), limits=(-0.5, 0.3), damping=0.1, friction=0.2)  # fmt: skip
    made.link("lower", "upper", "revolute", axis=(0, 1, 0), at=(0.4, 0, 0), mass=0.5, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.01), spring={"stiffness": 30.0}, effort=5.0)  # fmt: skip
    made.link("hand", "lower", "revolute", axis=(0, 1, 0), at=(0.2, 0, 0), mass=0.3, com=(0.05, 0, 0), inertia=(0.01, 0.01, 0.01), friction={"coulomb": 0.1, "lugre": {"stiffness": 50.0}})  # fmt: skip
    return made.model()


def foot() -> rf.Model:
    """A floating foot with two points, and a rotor on a spring."""
    made = rf.Builder("foot").link("sole", joint="free", mass=2.0, inertia=(0.1, 0.1, 0.1), points={"toe": (0.1, 0, 0), "heel": (-0.1, 0, 0)})  # fmt: skip
    made.link("ankle", "sole", "revolute", axis=(0, 1, 0), mass=0.4, com=(0, 0, 0.1), spring={"stiffness": 8.0, "rest": 0.4})  # fmt: skip
    return made.model()


def pendulum() -> rf.Model:
    """A robot of another project, with limits, efforts and damping."""
    where = "double_pendulum_description/urdf/double_pendulum.urdf"
    return rf.load(package("example-robot-data") / where)


@dataclass(frozen=True)
class Case:
    """A robot, keys of a scenario file, and whether fixed steps run in the lanes of a study."""

    robot: rf.Model
    keys: Mapping[str, Any]
    lanes: bool = True


PD = {"type": "pd", "kp": 50.0, "kd": 2.0}
TILTED = [0.0, 0.0, 0.02, 0.8, 0.6, 0.0, 0.0, 0.1]
START = {"initial": {"q": [0.25, 0.2, 0.1]}}
FALLING = {"initial": {"q": TILTED, "v": [0, 0, -2.0, 0, 0, 0, 0]}}
MOVED = {"motion": {"type": "cycloid", "end": [0.3, 0.4, 0.1], "duration": 0.1}, "control": PD}
CASES = {
    "control": lambda: Case(arm(), {**START, **MOVED, "damping": 0.1}),
    "stop": lambda: Case(
        arm(), {"initial": {"q": [0.28, 0.2, 0.1], "v": [1.0, 0.0, 2.0]}, "efforts": False}
    ),
    "open": lambda: Case(arm(), {**START, "stops": False, "passive": False}),
    "pushed": lambda: Case(arm(), {**START, "wrenches": {"hand": [0, 0, 0, 1, 0, 2]}}, False),
    "ground": lambda: Case(foot(), {**FALLING, "ground": "firm"}, False),
    "hard": lambda: Case(foot(), {**FALLING, "contact": "hard", "step": 1e-3}, False),
    "loops": lambda: Case(
        rf.load("four_bar"),
        {"damping": 0.01, "stabilisation": 20.0, "at_singularity": "pass"},
        False,
    ),
    "world": lambda: Case(
        pendulum(), {"control": {"type": "torque", "tau": [0.1, 0.0]}, "initial": {"q": [0.3, 0.2]}}
    ),
}
OF_ROLLOUT = ("ground", "contact", "wrenches", "damping", "stops", "passive", "efforts", "stabilisation", "method")  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning", "ignore:.*:UserWarning")


@pytest.fixture(autouse=True)
def kernels_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel is replaced by a faster one, whose last bits differ, between two runs."""
    monkeypatch.setattr(kernels, "_promote_later", lambda x: None)


def written(name: str, folder: Path, fixed: bool) -> tuple[Case, rf.Scenario, rf.Study]:
    """A case, its scenario from a file, and a study of it."""
    case = CASES[name]()
    case.robot.save(folder / "robot.yaml")
    keys: dict[str, Any] = {"name": name, "robot": "robot.yaml", "t_end": 0.1, **case.keys}
    if fixed:
        keys |= {"step": 1e-3} | ({"method": "rk4"} if case.lanes else {})
    (folder / "run.yaml").write_text("".join(f"{k}: {_yaml(v)}\n" for k, v in keys.items()))
    study = rf.study(
        name=name, scenario=str(folder / "run.yaml"), vary={"dt_out": [0.01, 0.02]},
        ledger=folder / "run.db", metrics=["energy_error", "max_kinetic"],
    )  # fmt: skip
    return case, rf.scenario(folder / "run.yaml"), study


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).replace("'", "")


def producers(name: str, folder: Path, fixed: bool) -> dict[str, Result]:
    """One run by everybody who can compute it."""
    case, scenario, study = written(name, folder, fixed)
    parts = {"q0": scenario.q0, "v0": scenario.v0, "control": scenario.control}
    made = {
        "alone": rf.simulate(case.robot, **{**scenario.options, **parts}),
        "scenario": scenario.run(),
        "study": run_row(study.recipe, [0.01]),
    }
    if fixed:
        own = {k: x for k, x in scenario.options.items() if k in OF_ROLLOUT}
        rolled = rf.rollout(
            case.robot, np.stack([scenario.q0, scenario.q0]), np.stack([0 * scenario.v0, scenario.v0]),
            control=scenario.control, steps=100, dt=1e-3, every=10, **own,
        )  # fmt: skip
        made["rollout"] = rolled.result(1)
    return made


def record(result: Result) -> dict[str, Any]:
    """What a result keeps beside its arrays, without what is measured anew each time."""
    options = {k: x for k, x in result.metadata["options"].items() if k != "scenario"}
    options["q0"] = [round(x, 12) for x in options["q0"] or result.q[0].tolist()]
    measured = ("wall_time", "machine_losses", "thrown_by_loops", "hard_losses", "scheme_work")
    stats = {k: x for k, x in result.stats.items() if k not in measured}
    return {
        "options": options, "stats": stats, "status": result.status,
        "counted": {k: sorted(x) if isinstance(x, Mapping) else () for k, x in result.stats.items()},
        "parts": {
            part: getattr(result, part) is not None
            for part in ("desired", "contacts", "loops", "bristles", "wrenches")
        },
        "controller": controller_rows(result),
        "metadata": sorted(result.metadata),
    }  # fmt: skip


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("name", CASES)
def test_the_record_does_not_depend_on_who_computed_the_run(
    name: str, fixed: bool, tmp_path: Path
) -> None:
    """Catches: runs in the lanes of a study had neither control, damping, q0, v0, wrenches, events
    nor max_step in their options; a rollout had no tolerances and no stabilisation.
    """
    made = producers(name, tmp_path, fixed)
    alone = made.pop("alone")
    assert list(alone.options)[: len(OPTIONS) - 1] == [n for n in OPTIONS if n != "progress"]
    for who, run in made.items():
        same(record(run), record(alone), of=who)
        for quantity in ("t", "q", "v", "a", "tau"):
            close(getattr(run, quantity), getattr(alone, quantity), 1e-7, 1e-7, f"{who}.{quantity}")
        for quantity in ("actuator", "dissipated"):
            close(getattr(run.work, quantity), getattr(alone.work, quantity), 1e-7, 1e-9, who)
        for part in ("contacts", "wrenches"):
            ours, theirs = getattr(run, part), getattr(alone, part)
            if ours is not None:
                field = "dissipated" if part == "contacts" else "work"
                close(getattr(ours, field), getattr(theirs, field), 1e-7, 1e-9, part)


def test_lanes_are_among_the_producers(tmp_path: Path) -> None:
    from ramify.studies.batch import steps_of

    for name in CASES:
        case, scenario, _ = written(name, tmp_path, True)
        assert (steps_of(scenario) is not None) == case.lanes, name


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "adaptive"])
@pytest.mark.parametrize("name", CASES)
def test_one_balance_for_audit_study_plot_and_export(
    name: str, fixed: bool, tmp_path: Path
) -> None:
    """Catches: the metric energy_error left out what springs, stops and the ground store."""
    keep = Keep(metrics=("energy_error",), history=("energy",))
    for who, run in producers(name, tmp_path, fixed).items():
        error, scale = run.audit.error, np.abs(run.energy.total).max() + 1.0
        kinetic, potential = energies_without_kernel(run)
        close(kinetic, run.energy.kinetic, 1e-12, 1e-13 * scale, f"{who}: kinetic")
        close(potential, run.energy.potential, 1e-12, 1e-13 * scale, f"{who}: potential")
        close(keep.numbers(run)[-1], run.audit.energy.largest, 1e-6, 1e-13 * scale, who)
        close(keep.rows(run)[:, 2], run.energy.potential, 1e-12, 1e-13 * scale, f"{who}: history")
        same(run.energy_balance.error, error, of=f"{who}: balance")
        shown = {curve.name: curve.y for curve in energy_chart(run).curves}
        close(shown["balance"] - shown["balance"][0], error, 0, 1e-13 * scale, f"{who}: plot")
        floating = [joint.kind for joint in run.model.joints].count("free")
        if not floating:
            run.to_redysim(tmp_path / who)
            total = np.loadtxt(tmp_path / who / "envar.dat")[:, 3]
            close(total, run.energy_balance.conserved, 2e-6, 1e-6, f"{who}: TE")


def test_the_balance_holds_where_the_parts_matter(tmp_path: Path) -> None:
    """Each part of the balance is large in some case, and without it the balance would not hold."""
    largest: dict[str, float] = {}
    for name in CASES:
        run = written(name, tmp_path, False)[1].run()
        assert run.audit.passed, name
        for part, x in run.energy_balance._asdict().items():
            largest[part] = max(largest.get(part, 0.0), float(np.ptp(x)))
            without = run.energy_balance._replace(**{part: np.zeros_like(x)})
            if np.ptp(x) > 0.01:
                assert np.abs(without.error).max() > 0.005, (name, part)
    assert min(largest.values()) > 0.01, largest


def test_the_progress_bar_shows_the_error_of_the_balance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        """A second passes with each look at it."""

        now = 0.0

        def perf_counter(self) -> float:
            self.now += 1.0
            return self.now

    for name in ("stop", "ground", "pushed"):
        said: list[str] = []
        monkeypatch.setattr(running, "time", Clock())
        monkeypatch.setattr(running.Bar, "update", lambda bar, t, text, to=said: to.append(text))
        monkeypatch.setattr(running.Bar, "close", lambda bar: None)
        run = written(name, tmp_path, False)[1].run(progress=True, rtol=1e-4, atol=1e-6)
        last = re.fullmatch(r"t = 0\.100 s, energy error (.*) J", said[-1])
        assert last is not None, said[-1]
        close(float(last[1]), abs(run.audit.error[-1]), 0.06, 1e-13, name)


@pytest.mark.parametrize("name", CASES)
def test_a_file_written_again_is_the_same(name: str, tmp_path: Path) -> None:
    for who, run in producers(name, tmp_path, True).items():
        first, second = tmp_path / f"{who}.nc", tmp_path / f"{who} again.nc"
        run.save(first)
        opened = rf.Result.open(first)
        opened.save(second)
        assert first.read_bytes() == second.read_bytes(), who
        same(dict(opened.metadata), dict(run.metadata), of=who)
        assert simulate_again(opened) == simulate_again(run)
        same(opened.energy_balance, run.energy_balance, of=who)


SERVO = rf.control.PD(rf.motion.Hold((0.0, 0.5, 0.1)), 200.0, 2.0)
REPEATED: dict[str, tuple[str, dict[str, Any]]] = {
    "t_end": ("arm", {"t_end": 0.13}),
    "q0": ("foot", {"q0": [*TILTED[:3], 0.8 + 2e-7, *TILTED[4:]]}),
    "v0": ("arm", {"v0": [1.0, -2.0, 0.3]}),
    "control": ("arm", {"control": SERVO}),
    "ground": ("foot", {"q0": TILTED, "ground": rf.contact.HuntCrossley(friction=0.5)}),
    "contact": ("foot", {"q0": TILTED, "contact": rf.contact.Hard(friction=0.5), "step": 2e-3}),
    "method": ("arm", {"method": "radau"}),
    "rtol": ("arm", {"rtol": 1e-5}),
    "atol": ("arm", {"atol": 1e-6, "rtol": 1e-12}),
    "dt_out": ("arm", {"dt_out": 0.03}),
    "step": ("arm", {"step": 2e-3}),
    "max_step": ("arm", {"max_step": 1e-3}),
    "damping": ("arm", {"damping": [0.1, 0.3, 0.0]}),
    "stabilisation": ("bar", {"stabilisation": 20.0}),
    "at_singularity": ("flat", {"at_singularity": "pass", "t_end": 1.2}),
    "passive": ("arm", {"passive": False}),
    "stops": ("arm", {"stops": False, "v0": [5.0, 0.0, 0.0]}),
    "efforts": ("arm", {"efforts": False, "control": SERVO}),
    "wrenches": ("arm", {"wrenches": [(0.02, 0.05, {"hand": [0, 0, 0, 1, 0, 2]})]}),
}

ROBOTS = {"arm": arm, "foot": foot, "bar": lambda: rf.load("four_bar"), "flat": parallelogram}


@pytest.mark.parametrize("name", REPEATED)
def test_a_listing_repeats_a_run_with_each_option(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches: at_singularity was never recorded; quaternions and closed loops started from
    numbers that had been rounded once more.
    """
    monkeypatch.chdir(tmp_path)
    robot, options = REPEATED[name]
    model = ROBOTS[robot]()
    if robot == "flat":
        q, v, _ = model.assemble({"crank": 1.0}, {"crank": 2.0})
        options = {"q0": q, "v0": v, **options}
    first = rf.simulate(model, **{"t_end": 0.1, **options})
    assert first.options[name] not in (None, OPTIONS[name].default)
    model.save("robot.yaml")
    listing, found = simulate_again(first), dict[str, Any]()
    assert f"\n    {name}=" in listing
    assert "#" not in listing.replace("# the file below", "")
    exec(listing.replace("print(r.audit)", ""), found)
    again = found["r"]
    for quantity in ("t", "q", "v", "a", "tau", "work", "desired", "contacts", "wrenches", "loops"):
        same(getattr(again, quantity), getattr(first, quantity), of=quantity)
    own = {k: x for k, x in record(first)["options"].items() if k != "ground"}
    same({k: record(again)["options"][k] for k in own}, own, of="the options")
    usual = {k: x for k, x in options.items() if k != name}
    if name != "at_singularity":
        other = rf.simulate(model, **{"t_end": 0.1, **usual})
        assert other.q.shape != first.q.shape or (other.q != first.q).any(), "it changes nothing"


def test_every_option_that_is_recorded_is_repeated() -> None:
    recorded = {name for name, row in OPTIONS.items() if row.record is not None}
    assert set(REPEATED) == recorded - {"events"}  # functions of Python


def test_a_rollout_records_its_wrenches_as_simulate_takes_them(tmp_path: Path) -> None:
    model, start = arm(), ([0.2, 0.1, 0.1], [0.0, 0.0, 0.0])
    cases: dict[str, Any] = {
        "constant": {"hand": [0, 0, 0, 1.0, 0, 2.0]},
        "pushes": [(0.02, 0.05, {"hand": [0, 0, 0, 1.0, 0, 2.0]})],
        "table": {"hand": np.linspace(0, 1, 120)[:, None] * np.ones(6)},
    }
    for name, given in cases.items():
        r = rf.rollout(model, *start, steps=120, dt=1e-3, every=10, wrenches=given, method="rk4")
        run = r.result()
        listing = simulate_again(run)
        assert listing.startswith("# not the whole run") == (name == "table")
        if name != "table":
            found: dict[str, Any] = {"m": model}
            code = listing.replace('m = rf.load("robot.yaml")  # the file below', "")
            exec(code.replace("print(r.audit)", ""), found)
            close(found["r"].q, run.q, 1e-12, 1e-13, name)


def test_a_rollout_records_when_it_met_a_singular_posture() -> None:
    """Seen to the tenth of a radian between two looks: at (pi - 1) / 2 s and 2 rad/s."""
    model = parallelogram()
    q, v, _ = model.assemble({"crank": 1.0}, {"crank": 2.0})
    start = np.stack([q, q]), np.stack([0.1 * v, v])
    rolled = rf.rollout(model, *start, steps=1200, dt=1e-3, every=100)
    assert rolled.result(0).stats["singular_postures"] == []
    (time,) = rolled.result(1).stats["singular_postures"]
    alone = rf.simulate(model, 1.2, q, v, at_singularity="pass")
    assert 0.0 <= time - alone.stats["singular_postures"][0] < 0.11
    assert rolled.result(1).options["at_singularity"] == "pass"


def test_numbers_with_a_new_meaning_have_new_keys() -> None:
    """A ledger must not mix energies with and without what springs store."""
    plain, energy = Keep(metrics=("max_speed",)), Keep(metrics=("energy_error",))
    assert len(plain.facts) == 5
    assert len(energy.facts) == len(Keep(history=("energy",)).facts) == 6


def test_a_live_machine_records_what_acted() -> None:
    """Catches: its recording had no controller, no ground, and a method that does not exist."""
    model = foot()
    q = np.array([0, 0, 0.0, 1, 0, 0, 0, 0.1])
    live = LiveMachine(model, q, rf.control.GravityCompensation(), "firm", 0.3)
    live.advance(3)
    run = Result.of(live.recording())
    expected = rf.simulate(
        model, 0.05, q, control=rf.control.GravityCompensation(), ground="firm", damping=0.3,
        step=1.0 / 720.0, dt_out=1.0 / 60.0,
    )  # fmt: skip
    ours, theirs = record(run)["options"], record(expected)["options"]
    times = {"t_end", "step", "dt_out"}
    same({k: ours[k] for k in theirs if k not in times}, {k: x for k, x in theirs.items() if k not in times})  # fmt: skip
    close([ours[k] for k in times], [theirs[k] for k in times])
    close(run.q, expected.q, 1e-9, 1e-11, "q")
    close(run.tau, expected.tau, 1e-6, 1e-8, "tau")
    assert run.contacts is not None
    assert np.isnan(run.work.actuator).all()
    assert "# parameters" not in simulate_again(run)
    live.scale("ankle.mass", 2.0)
    live.scale("ankle.mass", 1.0)
    assert "# parameters: changed while it ran: ankle.mass" in simulate_again(live.recording())


def test_an_error_of_the_balance_where_forces_are_not_known_is_not_a_number() -> None:
    run = rf.simulate(arm(), 0.05)
    tau = np.array(run.tau)
    tau[2] = np.nan
    broken = replace(run, tau=tau)
    assert np.isnan(broken.energy_balance.error[2])
    assert np.isfinite(np.delete(broken.energy_balance.error, 2)).all()
    assert np.isnan(broken.audit.error[2])
