"""Documents of controllers, motions, grounds and terrains: what is written is read as an equal one,
every field off its default, and what cannot be written says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from test_kinds import Drift, Push, Rubber, Waves, added

import ramify as rf
from ramify.contact import LAWS, TERRAINS
from ramify.control import CONTROLLERS, SENSORS, Controller
from ramify.control.controller import ControlForces
from ramify.documents.forms import (
    ByName,
    Choice,
    Flag,
    Form,
    Listed,
    Name,
    NameList,
    Number,
    Numbers,
    Rows,
    Surrounding,
)
from ramify.documents.kinds import Key, OneOf, Registry, keys_of
from ramify.motion import MOTIONS, CoordinateReader
from ramify.motion.coordinate_reader import AnyLength
from ramify.scenario_files.scenario import Scenario, read_scenario
from ramify.scenario_files.scenario_control import TorquesOfMotion
from ramify.view.repeated_run import object_code, scenario_again, simulate_again

REGISTRIES: dict[str, Registry[Any]] = {
    "controller": CONTROLLERS, "motion": MOTIONS, "ground": LAWS, "terrain": TERRAINS,
    "sensor": SENSORS,
}  # fmt: skip
START, END = [0.1, -0.2], [0.7, 0.4]
LEGS = (
    rf.motion.Leg("left", (0.0, 0.1, -0.05), 0.5, 0.45, "XY", "Y", 0.02, (1.0, -1.0, 1.0, 1.0), (0.1, 0.0, 0.2, 0.0), (0.0, 0.1, -0.9)),
    rf.motion.Leg("right", (0.0, -0.1, -0.05), 0.5, 0.45, "XY", "Y", 0.02),
)  # fmt: skip
WHOLE: dict[str, dict[str, Any]] = {
    "sequence": {"parts": (rf.motion.Cycloid(START, END), rf.motion.Hold(END, 2.0), rf.motion.Hold(END))},
    "spline": {"ends": "clamped", "start_rate": (0.1, 0.2), "end_rate": (0.0, -0.1)},
    "planar_line": {"start": (0.5, 0.1), "end": (0.2, 0.6), "lengths": (0.6, 0.5)},
    "inverse": {"limits": None, "rate_hz": None, "sensor": None},
    "firm": {"overdamping": None, "top_speed": None, "terrain": rf.contact.Flat(height=0.2)},
    "dusty": {"overdamping": None, "terrain": rf.contact.Flat(height=0.2)},
    "hunt_crossley": {"exponent": 2.0},
    "slope": {"normal": None},
}  # fmt: skip
"""Fields whose values must fit each other; None where another one excludes them."""


def other_than(one: Key, name: str) -> Any:
    """A value that the form of a key takes, other than its default."""
    form: Form = one.form
    while isinstance(form, AnyLength):
        form = form.of
    values: dict[type[Form], Callable[[Any], Any]] = {
        Number: lambda f: 3 if f.whole else 0.75 if one.default != 0.75 else 0.5,
        Flag: lambda f: one.default is False,
        Choice: lambda f: next(x for x in f.values if x != one.default),
        Name: lambda f: "some",
        NameList: lambda f: ("one", "two"),
        Rows: lambda f: ((0.1, 0.2), (0.3, -0.4), (0.2, 0.3)),
        Listed: lambda f: (some(f.of.registry, 0), some(f.of.registry, 1)),
        OneOf: lambda f: some(f.registry, 1),
        CoordinateReader: lambda f: START if name in ("start", "offset", "q") else END,
        ByName: lambda f: {"lift": 0.4, "turn": rf.motion.Harmonic(0.1, 0.2, 3.0)},
    }
    if isinstance(form, Numbers):
        if name == "times":
            return (0.5, 0.75, 1.5)
        return tuple(0.25 + 0.5 * i for i in range(form.size or 2))
    if isinstance(form, Surrounding):
        return rf.motion.Cycloid(START, END, 2.0, 0.5)
    return next(make(form) for kind, make in values.items() if isinstance(form, kind))


def some(registry: Registry[Any], i: int) -> Any:
    return {
        "controller": [rf.control.GravityCompensation(2.0, rate_hz=0.75), rf.control.Torque(START)],
        "motion": [rf.motion.Hold(START, 2.0), rf.motion.Cycloid(START, END)],
        "terrain": [rf.contact.Flat(height=0.1), rf.contact.Slope(angle=0.2)],
        "sensor": [rf.control.Encoder(noise=0.1), rf.control.Encoder(0.01, seed=2)],
    }[registry.what][i]  # fmt: skip


def every_field_set(registry: Registry[Any], word: str) -> Any:
    """An instance of a kind with all fields off their defaults."""
    kind, keys = registry[word], registry.keys_of(word)
    if word == "per_joint":
        return rf.motion.PerJoint([rf.motion.Hold(0.2), rf.motion.Cycloid(START, END)])
    if word == "gait":
        pendulum = rf.motion.InvertedPendulum(0.8, 0.6, 0.1, 0.09, 3.7)
        turned = ((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
        return rf.motion.Gait(LEGS, pendulum, 0.05, ("right",), 7, 0.3, False, turned, (0.1, 0, 0))
    values = {name: other_than(one, name) for name, one in keys.items()} | WHOLE.get(word, {})
    return kind(**values)


KINDS = [
    (name, word) for name, registry in REGISTRIES.items() for word, kind in registry.items()
    if kind is not TorquesOfMotion  # it becomes a TorqueTable
]  # fmt: skip


@pytest.mark.parametrize(("name", "word"), KINDS)
def test_what_is_written_is_read_as_an_equal_one(name: str, word: str) -> None:
    registry = REGISTRIES[name]
    thing = every_field_set(registry, word)
    for f in fields(thing):
        allowed = f.name in {k for k, x in WHOLE.get(word, {}).items() if x is None}
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        assert allowed or getattr(thing, f.name) != default, f"{f.name} is as by default"
    document = registry.write(thing)
    assert document[registry.key] == word
    assert registry.from_document(document) == thing
    stored = json.loads(json.dumps(document, allow_nan=False))
    assert stored == document, "plain data"
    assert registry.write(registry.from_document(stored)) == document
    if word not in ("per_joint", "gait"):
        for one in keys_of(type(thing)).values():
            assert (one.name in document) != (one.name in WHOLE.get(word, {}) and WHOLE[word][one.name] is None)  # fmt: skip


@pytest.mark.parametrize(
    ("registry", "thing"),
    [
        (MOTIONS, rf.motion.Hold(0.3)),  # endless
        (MOTIONS, rf.motion.Harmonic(START, 0.1, 2.0)),
        (MOTIONS, rf.motion.Table(np.linspace(0, 1, 400), np.random.default_rng(1).normal(size=(400, 3)))),
        (CONTROLLERS, rf.control.PD(rf.motion.Hold(START), limits=[np.inf, 3.0], actuated="joint1")),
        (CONTROLLERS, rf.control.Torque(2.0, actuated=1)),
        (CONTROLLERS, rf.control.Torque([2.0, 1.0], actuated=["b", 0])),
        (CONTROLLERS, rf.control.TorqueTable([0.0], [[1.0, 2.0]])),
        (CONTROLLERS, rf.control.Commands({"lift": rf.motion.Hold(0.2), "turn": 3})),
        (CONTROLLERS, None),
        (TERRAINS, rf.contact.Slope(normal=(0.1, 0.0, 1.0))),
        (TERRAINS, rf.contact.HeightField(heights=[[0, 1], [2, 3]], spacing=(0.5, 0.25))),
        (LAWS, rf.contact.Firm(overdamping=1.5, top_speed=0.4)),
        (LAWS, rf.contact.Dusty(overdamping=1.5)),
        (LAWS, rf.contact.Firm(points="toe")),
    ],
)  # fmt: skip
def test_plain_things_too(registry: Registry[Any], thing: Any) -> None:
    assert registry.from_document(registry.write(thing)) == thing


@pytest.mark.parametrize(("name", "word"), [kind for kind in KINDS if kind[0] != "terrain"])
def test_the_python_of_a_thing_makes_an_equal_one(name: str, word: str) -> None:
    """What "Repeat it" of a report lists."""
    thing = every_field_set(REGISTRIES[name], word)
    code = object_code(REGISTRIES[name], REGISTRIES[name].write(thing))
    assert code is not None
    assert eval(code, {"rf": rf}) == thing


def test_a_kind_of_a_user_is_repeated_by_its_document() -> None:
    with added(CONTROLLERS, "push", Push):
        first = rf.simulate(rf.load("planar_3r"), 0.05, control=Push(force=0.3, mode="soft"))
        listing = simulate_again(first)
        wanted = "    control={'type': 'push', 'force': 0.3, 'mode': 'soft'},"
        assert wanted in listing.splitlines()
        scope: dict[str, Any] = {"m": first.model}
        exec(listing.replace('m = rf.load("robot.yaml")  # the file below', ""), scope)
        assert np.array_equal(scope["r"].q, first.q)
    with pytest.raises(rf.ModelError, match="no controller is called 'push'"):
        rf.simulate(first.model, 0.05, control=first.options["control"])


def test_kinds_of_users_are_written_without_more_code() -> None:
    with added(LAWS, "rubber", Rubber), added(TERRAINS, "waves", Waves):
        ground = Rubber(stiffness=300.0, terrain=Waves(amplitude=0.3, up=(0, 0, 1)), points=["toe"])
        document = LAWS.write(ground)
        assert document == {
            "law": "rubber", "stiffness": 300.0, "points": ["toe"],
            "terrain": {"kind": "waves", "amplitude": 0.3, "up": [0.0, 0.0, 1.0]},
        }  # fmt: skip
        assert LAWS.from_document(document) == ground
    with added(MOTIONS, "drift", Drift), added(CONTROLLERS, "push", Push):
        servo = rf.control.Sum([rf.control.PD(Drift(START)), Push(mode="soft", force=2.0)])
        assert CONTROLLERS.from_document(CONTROLLERS.write(servo)) == servo


@dataclass(frozen=True)
class Hidden(Controller):
    """A controller with a field that files do not have."""

    gain: float = 1.0
    table: Any = field(default=None, metadata={"ramify": None})
    mode: Literal["soft", "hard"] | None = "soft"

    def law(self, robot: Any, driven: Any, t: Any, q: Any, v: Any, z: Any) -> ControlForces:
        return [self.gain for _ in driven.v], []


def test_what_cannot_be_written_says_so_and_is_refused() -> None:
    def swing(t: float, q: Any, v: Any) -> Any:
        return -v

    control = CONTROLLERS.write(rf.control.Function(swing, rate_hz=50.0))
    assert control["type"] == "python"
    assert control["object"] == "Function"
    assert control["f"] == {"type": "python", "object": swing.__qualname__}
    assert control["rate_hz"] == 50.0
    moved = CONTROLLERS.write(rf.control.PD(rf.motion.TimeFunction(lambda t: 2.0 * t)))
    parts = CONTROLLERS.write(rf.control.Sum([rf.control.Torque(1.0), rf.control.Function(swing)]))
    law = LAWS.write(Rubber(stiffness=300.0))
    assert law == {"law": "python", "object": "Rubber", "stiffness": 300.0, "terrain": {"kind": "flat", "height": 0.0}}  # fmt: skip
    for registry, document, named in (
        (CONTROLLERS, control, "the controller 'Function' is an object of Python"),
        (CONTROLLERS, moved, "motion: the motion 'TimeFunction' is an object of Python"),
        (CONTROLLERS, parts, "parts.1: the controller 'Function' is an object of Python"),
        (LAWS, law, "the ground 'Rubber' is an object of Python"),
    ):
        with pytest.raises(rf.ModelError) as caught:
            registry.from_document(document)
        assert named in str(caught.value)
        assert "give the object itself" in str(caught.value)
    with added(CONTROLLERS, "hidden", Hidden):
        assert CONTROLLERS.write(Hidden(gain=2.0))["type"] == "hidden"
        for lost in (Hidden(table=(1.0,)), Hidden(mode=None)):
            assert CONTROLLERS.write(lost)["type"] == "python"


@pytest.mark.parametrize("word", ["none", "python"])
def test_words_with_a_meaning_are_not_kinds(word: str) -> None:
    with pytest.raises(rf.RamifyError, match="choose another word"):
        CONTROLLERS.add(word)(Hidden)


def test_a_document_without_a_robot_has_no_joints_by_name() -> None:
    for motion in (
        {"type": "hold", "q": {"joint1": 0.3}},
        {"type": "per_joint", "joints": {"joint1": {"type": "hold", "q": 0.3}}},
        {"type": "gait", "height": 0.8, "period": 0.5, "stride": 0.1, "lift": 0.05},
    ):
        with pytest.raises(rf.ModelError, match="robot"):
            MOTIONS.from_document(motion)
    with pytest.raises(rf.ModelError, match="q: is missing"):
        MOTIONS.from_document("hold")
    assert MOTIONS.from_document({"type": "hold", "q_deg": [90.0]}) == rf.motion.Hold(np.pi / 2)


SCENARIO = """
name: two
robot: planar_3r
t_end: 0.05
motion: {type: hold, q: [0.1, 0.2, 0.3]}
control: {type: pd, kp: 30, actuated: [joint2], motion: {type: cycloid, start: 0, end: [0.4]}}
"""


def test_a_controller_in_a_file_may_have_its_own_motion() -> None:
    """Of the joints that it drives."""
    made = read_scenario(SCENARIO)
    wanted = rf.control.PD(rf.motion.Cycloid([0.0], [0.4]), kp=30.0, actuated=["joint2"])
    assert made.control == wanted
    with pytest.raises(rf.ModelError, match="2 entries"):
        read_scenario(SCENARIO.replace("[0.4]", "[0.4, 0.5]"))
    with pytest.raises(rf.ModelError, match="no joint 'joint9'"):
        read_scenario(SCENARIO.replace("[joint2]", "[joint9]"))
    tau = read_scenario(
        SCENARIO.split("motion")[0] + "control: {type: torque, actuated: joint3, tau: {joint3: 2}}"
    )
    assert tau.control == rf.control.Torque(2.0, actuated=["joint3"])


def test_simulate_takes_the_controller_that_a_result_records() -> None:
    model = rf.load("planar_3r")
    servo = rf.control.PD(rf.motion.Cycloid([0.0], [0.4]), kp=30.0, actuated="joint2")
    first = rf.simulate(model, 0.05, control=servo)
    again = rf.simulate(model, 0.05, control=first.options["control"])
    assert np.array_equal(again.q, first.q)
    assert again.options["control"] == first.options["control"]


def test_a_scenario_repeats_overrides_that_were_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = read_scenario(SCENARIO)
    leg = rf.motion.Cycloid([0.1, 0.2, 0.3], [0.3, 0.2, 0.1])
    for overrides in (
        {"control": rf.control.ComputedTorque(leg, kp=9.0)},
        {"control": rf.control.ComputedTorque(leg), "motion": leg},
        {"control": None},
    ):
        first = made.run(**overrides)
        again = Scenario.again(first)
        assert np.array_equal(again.q, first.q)
        assert again.options == first.options
    (tmp_path / "run.yaml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    first = made.run(control=rf.control.ComputedTorque(leg), motion=leg, t_end=0.03)
    listing = scenario_again(first.options["scenario"], robot=False)
    scope: dict[str, Any] = {}
    exec(listing, scope)
    assert np.array_equal(scope["r"].q, first.q)
    lost = made.run(control=lambda t, q, v: -v)
    assert scenario_again(lost.options["scenario"], robot=False).startswith("# not the whole run")
    with pytest.raises(rf.SimulationError, match="control was given as an object of Python"):
        Scenario.again(lost)
