"""Functional mock-up units: valid for fmpy, and the same motion as rf.simulate."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu

import ramify as rf

VERSIONS = ("2.0", "3.0")


def difference(unit: Path, kind: str, wanted: rf.Result, **options: Any) -> float:
    """The largest difference of coordinates at the rows of a run."""
    names = [f"q.{name}" for name in wanted.model.coordinates]
    end = float(wanted.t[-1])
    rows = fmpy.simulate_fmu(
        str(unit), stop_time=end, fmi_type=kind, output=names, relative_tolerance=1e-9, **options
    )
    found = np.column_stack([rows[name] for name in names])
    at = [int(np.argmin(abs(rows["time"] - t))) for t in wanted.t]  # events add rows of their own
    np.testing.assert_allclose(rows["time"][at], wanted.t, atol=1e-9)
    return float(abs(found[at] - wanted.q).max())


@pytest.mark.parametrize("version", VERSIONS)
def test_an_arm_falls_as_simulated(version: Any, tmp_path: Path) -> None:
    m = rf.load("kuka_kr5")
    unit = rf.to_fmu(m, tmp_path / "arm.fmu", version=version)
    assert validate_fmu(str(unit)) == []
    wanted = rf.simulate(m, 0.5)
    assert difference(unit, "CoSimulation", wanted, output_interval=0.01) < 1e-7
    assert difference(unit, "ModelExchange", wanted, output_interval=0.01) < 1e-5


@pytest.mark.parametrize("version", VERSIONS)
def test_a_closed_loop_stays_closed(version: Any, tmp_path: Path) -> None:
    m = rf.load("slider_crank")
    unit = rf.to_fmu(m, tmp_path / "loop.fmu", version=version)
    assert validate_fmu(str(unit)) == []
    wanted = rf.simulate(m, 1.0)
    assert difference(unit, "CoSimulation", wanted, output_interval=0.01) < 1e-7
    assert difference(unit, "ModelExchange", wanted, output_interval=0.01) < 1e-5


@pytest.mark.parametrize("version", VERSIONS)
def test_a_quadruped_lands(version: Any, tmp_path: Path) -> None:
    scenario = rf.scenario("quadruped_fall")
    m, ground = scenario.robot, scenario.options["ground"]
    parts: dict[str, Any] = {"q0": scenario.q0, "v0": scenario.v0, "ground": ground}
    parts |= {"damping": 0.05}
    where = tmp_path / "quadruped.fmu"
    unit = rf.to_fmu(m, where, version=version, derivatives=False, **parts)
    assert validate_fmu(str(unit)) == []
    wanted = rf.simulate(m, 0.4, dt_out=0.002, **parts)
    assert wanted.contacts is not None
    assert abs(wanted.contacts.force).max() > 1.0, "it must touch the ground"
    assert difference(unit, "CoSimulation", wanted, output_interval=0.002) < 1e-7
    if version == "3.0":
        assert difference(unit, "ModelExchange", wanted, output_interval=0.002) < 1e-5


def test_inputs_outputs_and_names(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    tip = m.bodies[-1].name
    unit = rf.to_fmu(m, tmp_path / "arm.fmu", frames=[tip, tip], q0=[0.3, 0.2, -0.4])
    tau = np.array([0.5, -0.2, 0.1])
    start = {f"force.{name}": x for name, x in zip(m.velocities, tau, strict=True)}
    shown = [f"{tip}.x", f"{tip}.y", f"{tip}.R12"] + [f"drive.{name}" for name in m.velocities]
    shown += [f"der(v.{name})" for name in m.velocities]
    rows = fmpy.simulate_fmu(
        str(unit), stop_time=0.01, fmi_type="CoSimulation", start_values=start, output=shown,
        output_interval=0.01,
    )  # fmt: skip
    pose = m.pose([0.3, 0.2, -0.4], tip)
    first = [float(rows[name][0]) for name in shown]
    a = m.forward_dynamics([0.3, 0.2, -0.4], np.zeros(3), tau)
    expected = [*pose.position[:2], pose.rotation[0, 1], *tau, *a]
    np.testing.assert_allclose(first, expected, rtol=1e-12, atol=1e-14)


def test_commands_of_actuators_their_activations_and_bristles(tmp_path: Path) -> None:
    text = """
name: servo
gravity: [0, 0, -9.81]
links:
  - {name: arm, joint: {type: revolute, axis: y, friction: {coulomb: 2, lugre: {}}}, frame: {},
     mass: 1.0, com: [0, 0, -0.5], inertia: {xx: 0.1, yy: 0.1, zz: 0.01}}
actuators:
  - {name: servo, kind: position, joint: arm, kp: 20, kv: 1, activation: filter, time: 0.05}
"""
    path = tmp_path / "servo.yaml"
    path.write_text(text)
    m = rf.load(path)
    unit = rf.to_fmu(m, tmp_path / "servo.fmu")
    law = rf.control.Commands.to(m, {"servo": 0.7})
    wanted = rf.simulate(m, 1.0, control=law, rtol=1e-10, atol=1e-12)
    start = {"command.servo": 0.7}
    assert difference(unit, "CoSimulation", wanted, output_interval=0.01, start_values=start) < 1e-7


def test_a_saved_state_is_whole(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    unit = rf.to_fmu(m, tmp_path / "arm.fmu", version="2.0", q0=[0.5, 0.1, 0.2])
    description = fmpy.read_model_description(str(unit))
    folder = fmpy.extract(str(unit), str(tmp_path / "unpacked"))
    made = fmpy.fmi2.FMU2Slave(
        guid=description.guid, unzipDirectory=folder, instanceName="a",
        modelIdentifier=description.coSimulation.modelIdentifier,
    )  # fmt: skip
    made.instantiate()
    made.setupExperiment()
    made.enterInitializationMode()
    made.exitInitializationMode()
    made.doStep(0.0, 0.1)
    saved = made.getFMUstate()
    made.doStep(0.1, 0.2)
    once = made.getReal(range(1, 13))
    made.setFMUstate(saved)
    again = made.deSerializeFMUstate(made.serializeFMUstate(saved))
    made.setFMUstate(again)
    made.doStep(0.1, 0.2)
    assert made.getReal(range(1, 13)) == once
    with pytest.raises(fmpy.fmi1.FMICallException):
        made.doStep(0.1, 0.1)  # a step that starts elsewhere
    for length in (-0.1, np.nan, np.inf):
        with pytest.raises(fmpy.fmi1.FMICallException):
            made.doStep(0.3, length)
    made.terminate()
    made.freeInstance()


@pytest.mark.parametrize("version", VERSIONS)
def test_derivatives_are_those_of_the_variables(version: Any, tmp_path: Path) -> None:
    b = rf.Builder("ball")
    b.link("ball", joint="free", mass=2.0, inertia=(0.1, 0.2, 0.3), points={"sole": (0.1, 0, -0.2)})
    b.link("arm", "ball", axis=(0, 1, 0), mass=0.5, com=(0.1, 0, 0), inertia=(0.01, 0.02, 0.02))
    q0 = [0, 0, 0.19, 0.8, 0.1, 0.2, -0.5, 0.3]
    q0[3:7] = np.array(q0[3:7]) / np.linalg.norm(q0[3:7])
    unit = rf.to_fmu(
        b.model(), tmp_path / "ball.fmu", version=version, q0=q0, v0=np.linspace(-0.5, 0.4, 7),
        ground="hunt_crossley", frames=["arm"],
    )  # fmt: skip
    assert validate_fmu(str(unit)) == []
    text = zipfile.ZipFile(unit).read("modelDescription.xml").decode()
    ending = "" if version == "2.0" else "s"
    assert text.count(f'providesDirectionalDerivative{ending}="true"') == 2
    description = fmpy.read_model_description(str(unit))
    kind = fmpy.fmi2.FMU2Model if version == "2.0" else fmpy.fmi3.FMU3Model
    made = kind(
        guid=description.guid, unzipDirectory=fmpy.extract(str(unit), str(tmp_path / "unpacked")),
        instanceName="a", modelIdentifier=description.modelExchange.modelIdentifier,
    )  # fmt: skip
    made.instantiate()
    if version == "2.0":
        made.setupExperiment()
        get, put, along = made.getReal, made.setReal, made.getDirectionalDerivative
    else:
        get, put, along = made.getFloat64, made.setFloat64, made.getDirectionalDerivative
    made.enterInitializationMode()
    made.exitInitializationMode()
    known = [x.valueReference for x in description.modelVariables if x.name[:2] in ("q.", "v.")]
    known += [x.valueReference for x in description.modelVariables if x.causality == "input"]
    unknown = [
        x.valueReference for x in description.modelVariables
        if x.causality == "output" or x.name.startswith(("der(", "depth."))
    ]  # fmt: skip
    at, seed = np.array(get(known)), np.random.default_rng(1).normal(size=len(known))

    def value(k: float) -> np.ndarray:
        put(known, (at + k * seed).tolist())
        return np.array(get(unknown))

    change = (value(1e-6) - value(-1e-6)) / 2e-6
    put(known, at.tolist())
    found = np.array(along(unknown, known, seed.tolist()))
    scale = abs(change).max()
    assert scale > 100.0, "the ground is touched"
    np.testing.assert_allclose(found, change, atol=1e-8 * scale)
    if version == "3.0":
        weights = np.random.default_rng(2).normal(size=len(unknown))
        back = made.getAdjointDerivative(unknown, known, weights.tolist(), len(known))
        assert np.isclose(back @ seed, weights @ found, rtol=1e-12)
    with pytest.raises(fmpy.fmi1.FMICallException):  # a parameter
        along(unknown, [len(description.modelVariables) - 1], [1.0])
    made.terminate()
    made.freeInstance()


def test_the_same_unit_gives_the_same_bytes_and_clean_sources(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    for version in VERSIONS:
        one = rf.to_fmu(m, tmp_path / "one.fmu", version=version, platforms=())  # type: ignore[arg-type]
        two = rf.to_fmu(m, tmp_path / "two.fmu", version=version, platforms=())  # type: ignore[arg-type]
        assert one.read_bytes() == two.read_bytes()
        folder = tmp_path / version
        zipfile.ZipFile(one).extractall(folder)
        sources = sorted(str(path) for path in (folder / "sources").glob("*.c"))
        command = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        subprocess.run([*command, *sources], check=True)


def test_what_a_unit_cannot_hold_is_refused(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    target = tmp_path / "no.fmu"
    with pytest.raises(rf.SimulationError, match="Python function"):
        rf.to_fmu(m, target, control=lambda t, q, v: np.zeros(3))
    with pytest.raises(rf.SimulationError, match="sampled"):
        rf.to_fmu(m, target, control=rf.control.GravityCompensation(rate_hz=100.0))
    twice = rf.Builder("twice").link("x", mass=1.0).link("drive", "x", mass=1.0).model()
    with pytest.raises(rf.ModelError, match=r"the name 'drive\.x'"):
        rf.to_fmu(twice, target, frames=["drive"])
    with pytest.raises(rf.ModelError, match="no link or frame 'tol'") as said:
        rf.to_fmu(m, target, frames=["tol"])
    assert str(said.value).count("link1") == 1  # each once
    with pytest.raises(rf.ModelError, match="no actuators"):
        rf.to_fmu(m, target, inputs="commands")
    with pytest.raises(rf.RamifyError, match="no platform is named 'riscv'"):
        rf.to_fmu(m, target, platforms=["riscv"])
    assert not target.exists()


def test_units_stop_where_simulate_would(tmp_path: Path) -> None:
    arm = rf.to_fmu(rf.load("kuka_kr5"), tmp_path / "arm.fmu", version="2.0")
    with pytest.raises(fmpy.fmi1.FMICallException):  # 100 N m on a wrist run away within ms
        fmpy.simulate_fmu(
            str(arm), stop_time=0.1, fmi_type="CoSimulation", start_values={"force.joint6": 100.0}
        )
    crank = rf.to_fmu(rf.load("slider_crank"), tmp_path / "crank.fmu", version="2.0")
    name = next(x for x in rf.load("slider_crank").coordinates if "rod" in x)
    with pytest.raises(fmpy.fmi1.FMICallException):  # open loops
        fmpy.simulate_fmu(
            str(crank), stop_time=0.1, fmi_type="CoSimulation", start_values={f"q.{name}": 2.0}
        )
