"""Scenarios: where a run starts, what an override replaces, what a result records, how torques of a
motion are made, and what tells a scenario from a robot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.model.driven import driven
from ramify.scenario_files import scenario as scenario_module
from ramify.scenario_files.scenario import read_scenario
from ramify.scenario_files.shipped import is_scenario, scenarios, summaries

HEAD = "name: mine\nrobot: planar_3r\nt_end: 0.1\n"
MOTION = "motion: {type: cycloid, start: [0.2, 0.3, -0.1], end: [0.5, 0.1, 0.4], duration: 0.08}\n"
PD = "control: {type: pd, kp: 30, kd: 2}\n"


# ---- the start ----


@pytest.mark.parametrize(
    ("text", "q", "v"),
    [
        ("", [0, 0, 0], [0, 0, 0]),
        (MOTION, [0.2, 0.3, -0.1], [0, 0, 0]),
        (MOTION + "initial: {q: [1, 2, 3], v: [4, 5, 6]}\n", [1, 2, 3], [4, 5, 6]),
        (MOTION + "initial: {q: {joint2: 0.9}, v: {joint3: 0.7}}\n", [0.2, 0.9, -0.1], [0, 0, 0.7]),
        (MOTION + "initial: {q_deg: {joint2: 90}, v_deg: {joint1: 180}}\n", [0.2, np.pi / 2, -0.1], [np.pi, 0, 0]),
        ("initial: {v: [4, 5, 6]}\n", [0, 0, 0], [4, 5, 6]),
    ],
)  # fmt: skip
def test_starts(text: str, q: Any, v: Any) -> None:
    s = read_scenario(HEAD + text)
    close(s.q0, q, 1e-14, 1e-15)
    close(s.v0, v, 1e-14, 1e-15)


def test_the_rates_of_a_start_are_those_of_the_motion() -> None:
    text = (
        "motion: {type: quintic, start: [0, 1, 2], end: [1, 2, 4], start_rate: [0.3, 0.5, -0.7]}\n"
    )
    s = read_scenario(HEAD + text)
    assert s.motion is not None
    first = s.motion.at(0.0)
    close(first.v, [0.3, 0.5, -0.7], 1e-12)
    close(s.v0, first.v, 0.0)
    close(s.q0, [0, 1, 2], 1e-14)
    given = read_scenario(f"{HEAD}{text}initial: {{v: {{joint2: 0.25}}}}\n")
    close(given.v0, [first.v[0], 0.25, first.v[2]], 0.0)


def test_the_start_of_driven_joints_on_a_floating_base() -> None:
    text = "name: s\nrobot: {name: space_3_link, base: free}\nt_end: 0.1\n"
    s = read_scenario(text + MOTION)
    neutral = s.robot.neutral()
    close(s.q0[-3:], [0.2, 0.3, -0.1], 0.0)
    close(s.q0[:-3], neutral[:-3], 0.0)


def test_starts_of_loops() -> None:
    m = rf.load("four_bar")
    (crank,) = driven(m).names
    text = "name: s\nrobot: four_bar\nt_end: 0.1\n"
    s = read_scenario(f"{text}initial: {{q: {{{crank}: 0.7}}, v: {{{crank}: 2.0}}}}\n")
    wanted = m.assemble({crank: 0.7}, rates={crank: 2.0})
    close(s.q0, wanted.q, 1e-9, 1e-9)
    close(s.v0, wanted.v, 1e-9, 1e-9)
    both = read_scenario(
        f"{text}initial: {{q: {{{crank}: 0.7, coupler: 0.5}}}}\n"
    )  # the other branch
    branch = m.assemble({crank: 0.7}, guess={"coupler": 0.5})
    assert not np.allclose(branch.q, wanted.q, atol=0.1)
    close(both.q0, branch.q, 1e-9, 1e-9)
    plain = read_scenario(text)
    close(plain.q0, m.assemble().q, 1e-9, 1e-9)
    assert not plain.v0.any()
    other = next(name for name in m.velocities if name != crank)
    with pytest.raises(
        rf.ModelError, match=f"'{other}' is not driven: its rate follows from the loops"
    ):
        read_scenario(f"{text}initial: {{v: {{{other}: 1.0}}}}\n")


# ---- parts ----


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("damping: [1, 2]\n", "damping: 2 entries; give one number, or 3"),
        ("damping: [1, 2, 3]\n", None),
        ("method: rk4\n", "method: rk4 needs a fixed step: add the key step, in s"),
        ("method: rk4\nstep: 0.01\n", None),
        ("method: RK4\nstep: 0.01\n", None),
        ("method: dop853\n", None),
        ("method: auto\n", None),
        ("method: rk99\n", "no method is called 'rk99'"),
        ("wrenches: [[0.1, 0.2, {link3: [1, 2, 3, 4, 5, 6]}]]\n", None),
        ("wrenches: [[0.2, 0.2, {link3: [1, 2, 3, 4, 5, 6]}]]\n", "wrenches\\.0: must be .start, end"),
        ("wrenches: [[0.2, 0.1, {link3: [1, 2, 3, 4, 5, 6]}]]\n", "start < end"),
        ("wrenches: {link9: [1, 2, 3, 4, 5, 6]}\n", "link9"),
        ("wrenches: {link3: [1, 2, 3]}\n", "6 numbers"),
        ("controls: {pd: 3}\n", "controls.pd: 3 must be a mapping with the numbers of pd"),
        ("controls: {pd: {type: pid}}\n", "controls.pd.type: 'pid' contradicts pd; leave the type out"),
        ("controls: {pd: {type: pd, kp: 3}}\n" + MOTION, None),
        ("controls: {magic: {kp: 3}}\n", "no controller is called 'magic'"),
    ],
)  # fmt: skip
def test_what_a_scenario_refuses(text: str, said: str | None) -> None:
    if said is None:
        read_scenario(HEAD + text)
    else:
        with pytest.raises(rf.ModelError, match=said):
            read_scenario(HEAD + text)


def test_wrenches_are_those_of_the_file() -> None:
    one = read_scenario(HEAD + "wrenches: {link3: [1, 2, 3, 4, 5, 6]}\n").options["wrenches"]
    assert {name: tuple(x) for name, x in one.items()} == {"link3": (1, 2, 3, 4, 5, 6)}
    text = "wrenches: [[0.1, 0.2, {link3: [1, 2, 3, 4, 5, 6]}], [0.3, 0.5, {link1: [6, 5, 4, 3, 2, 1]}]]\n"
    first, second = read_scenario(HEAD + text).options["wrenches"]
    assert (first[:2], second[:2]) == ((0.1, 0.2), (0.3, 0.5))
    assert tuple(second[2]["link1"]) == (6, 5, 4, 3, 2, 1)
    assert "wrenches" not in read_scenario(HEAD).options
    assert "ground" not in read_scenario(HEAD).options


def test_controllers_that_a_file_offers() -> None:
    text = HEAD + MOTION + "controls: {pd: {kp: 7}, computed_torque: {kp: 11}}\n"
    assert read_scenario(text).control is None
    for word, number in (("pd", 7.0), ("computed_torque", 11.0)):
        control: Any = read_scenario(f"{text}control: {word}\n").control
        assert type(control).__name__.lower().replace("_", "") == word.replace("_", "")
        close(np.asarray(control.kp), number, 0.0)
    other: Any = read_scenario(f"{text}control: gravity_compensation\n").control
    assert type(other).__name__ == "GravityCompensation"
    other = read_scenario(f"{text}control: {{type: pd, kp: 3}}\n").control
    close(np.asarray(other.kp), 3.0, 0.0)


def test_torques_of_a_motion_are_its_inverse_dynamics() -> None:
    control: Any = read_scenario(
        HEAD + MOTION + "control: {type: torques_of_motion, rows: 5}\n"
    ).control
    s = read_scenario(HEAD + MOTION)
    assert s.motion is not None
    t = np.linspace(0.0, 0.08, 5)
    rows = [s.motion.at(x) for x in t]
    wanted = [s.robot.inverse_dynamics(row.q, row.v, row.a) for row in rows]
    found = [np.asarray(x) for x in vars(control).values() if np.shape(x) == (5, 3)]
    assert len(found) == 1
    close(found[0], wanted, 1e-10, 1e-10)
    with pytest.raises(rf.ModelError, match="needs a motion that ends"):
        read_scenario(HEAD + "motion: {type: hold}\ncontrol: torques_of_motion\n")


# ---- overrides ----


def test_what_an_override_replaces(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = scenario_module.simulate

    def noted(robot: Any, **options: Any) -> Any:
        asked.append(options)
        return real(robot, **options)

    monkeypatch.setattr(scenario_module, "simulate", noted)
    s = read_scenario(HEAD + MOTION + PD + "method: rk4\nstep: 0.01\ndamping: 0.5\n")

    def options(**overrides: Any) -> Any:
        s.run(**overrides)
        return asked[-1]

    plain = options()
    assert (plain["step"], plain["method"], plain["damping"]) == (0.01, "rk4", 0.5)
    close(plain["q0"], s.q0, 0.0)
    assert options(method="dop853").get("step") is None
    assert options(method="auto")["step"] == 0.01
    assert options(method="semi_implicit_euler")["step"] == 0.01
    assert options(method="RK4", step=0.02)["step"] == 0.02
    assert options(damping=0.25)["damping"] == 0.25
    assert options(control=None)["control"] is None
    hold = rf.motion.Hold([0.1, 0.2, 0.3])
    law = options(motion=hold)["control"]  # the same controller follows it
    assert law.motion is hold
    close(np.asarray(law.kp), 30.0, 0.0)
    other = rf.control.PD(rf.motion.Hold([0.0, 0.0, 0.0]), 5.0, 1.0)
    assert options(motion=hold, control=other)["control"] is other
    assert options(control=other)["control"] is other
    kept = options(control="pd")["control"]  # the same kind: its numbers stay
    close(np.asarray(kept.kp), 30.0, 0.0)
    new = options(control="{type: pd, kp: 4}")["control"]
    close(np.asarray(new.kp), 4.0, 0.0)
    assert options(wrenches="{link3: [1, 2, 3, 4, 5, 6]}")["wrenches"].keys() == {"link3"}
    pushes = [(0.0, 0.05, {"link3": (1.0, 0, 0, 0, 0, 0)})]
    assert options(wrenches=pushes)["wrenches"] is pushes
    close(options(initial={"q": [1.0, 2.0, 3.0]})["q0"], [1, 2, 3], 0.0)
    assert s.options["damping"] == 0.5  # the scenario itself stays as it is


def test_what_a_result_records() -> None:
    s = read_scenario(HEAD + MOTION + PD)
    r = s.run(t_end=0.02, damping=0.25)
    record = r.options["scenario"]
    assert (record["name"], record["text"]) == ("mine", s.text)
    assert record["overrides"] == {"t_end": 0.02, "damping": 0.25}
    assert "objects" not in record
    assert r.desired is not None
    assert s.motion is not None
    close(r.desired.q[-1], s.motion.at(0.02).q, 1e-12)
    idle = read_scenario(HEAD + MOTION).run(t_end=0.02)  # no controller knows its motion
    assert idle.desired is not None
    close(idle.desired.q[-1], s.motion.at(0.02).q, 1e-12)
    held = s.run(t_end=0.02, motion=rf.motion.Hold([0.1, 0.2, 0.3]))
    assert held.options["scenario"]["objects"] == ["motion"]
    again = rf.Scenario.again(held)
    close(again.q, held.q, 0.0, 0.0)
    heavy = read_scenario(
        HEAD + PD + MOTION, robot=rf.with_payload(rf.load("planar_3r"), "link3", 5.0)
    )
    close(rf.Scenario.again(heavy.run(t_end=0.02)).q, heavy.run(t_end=0.02).q, 0.0, 0.0)
    failing = read_scenario(HEAD + "initial: {v: [1e9, 0, 0]}\n")
    with pytest.raises(rf.SimulationError) as caught:
        failing.run()
    if isinstance(caught.value.result, rf.Result):
        assert caught.value.result.options["scenario"]["name"] == "mine"


def test_what_is_shown_of_a_scenario() -> None:
    s = read_scenario(HEAD + "description: an arm\n")
    assert repr(s) == "<ramify.Scenario 'mine': planar_3r, 0.1 s>"
    text = s._repr_html_()
    for word in ("mine", "planar_3r", "an arm", "0.1 s"):
        assert word in text
    assert ">source<" not in text


# ---- by name ----


def test_summaries_are_those_of_the_files() -> None:
    rows = summaries()
    assert [row["name"] for row in rows] == scenarios() == sorted(scenarios())
    for row in rows[::4]:
        s = rf.scenario(row["name"])
        assert row["t_end"] == s.options["t_end"]
        assert (row["description"], row["source"]) == (s.description, s.source)
        assert row["robot"] in (s.robot.name, *rf.robots())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("robot: x\n", True), ("t_end: 1\n", True), ("motion: 1\n", True), ("control: 1\n", True),
        ("ground: 1\n", True), ("initial: 1\n", True), ("name: x\n", False), ("links: []\nt_end: 1\n", False),
        ("links: []\n", False), ("- 1\n", False), ("a: [", False),
    ],
)  # fmt: skip
def test_scenarios_and_robots_are_told_apart(text: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert is_scenario(tmp_path / "x.yaml") == found
    (tmp_path / "x.txt").write_text(text)
    assert not is_scenario(tmp_path / "x.txt")


def test_names_that_are_neither() -> None:
    assert is_scenario("kuka_motion")
    assert not is_scenario("kuka_kr5")
    assert not is_scenario("nothing.yaml")
    for name, said in (("kuka_motio", "no scenario is named"), ("x.txt", "is not a scenario file"), ("a/b", "is not a scenario file")):  # fmt: skip
        with pytest.raises(rf.ModelError, match=said):
            rf.scenario(name)
    instead = rf.scenario("kuka_motion", robot="kuka_kr5")
    assert instead.robot.name == "kuka_kr5"
