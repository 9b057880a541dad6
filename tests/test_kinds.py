"""Kinds that files name by a word: each is one class, also one from outside the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import pytest
from test_contact import ball

import ramify as rf
from ramify.cli import app
from ramify.contact import LAWS, TERRAINS, Ground, Normal, Terrain
from ramify.control import CONTROLLERS, Controller
from ramify.control.controller import ControlForces
from ramify.core.scalar import Scalar, select, sin
from ramify.core.spatial import Vec3
from ramify.documents.forms import Number, Reading
from ramify.documents.kinds import Registry, key, read_part
from ramify.documents.mistakes import Mistakes
from ramify.motion import MOTIONS, CoordinateReader, Trajectory
from ramify.motion.trajectory import Texts, row, span
from ramify.scenario_files.scenario import read_scenario


@contextmanager
def added(registry: Registry[Any], word: str, kind: type) -> Iterator[None]:
    registry.add(word)(kind)
    try:
        yield
    finally:
        registry.remove(word)


@dataclass(frozen=True, kw_only=True)
class Rubber(Ground):
    """A linear spring without damping. A law of the test."""

    stiffness: float = field(default=2000.0, metadata=key(Number(above=0.0), unit="N/m"))

    def normal(self, depth: Scalar, rate: Scalar) -> Normal:
        d = select(depth > 0.0, depth, 0.0)
        return Normal(self.stiffness * d, self.stiffness * d, 0.5 * self.stiffness * d * d)

    def grip(self, load: Scalar, slip_squared: Scalar) -> Scalar:
        return 0.0

    def scaled(self, mass: float, weight: float) -> Self:
        return self


@dataclass(frozen=True, kw_only=True)
class Waves(Terrain):
    """Waves along x."""

    amplitude: float = 0.1

    def under(self, place: Vec3) -> tuple[Scalar, Vec3]:
        return self.amplitude * sin(place.x) - place.z, Vec3(0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Drift(Trajectory):
    """Constant rates."""

    rate: Any = field(metadata=key(CoordinateReader(needed=True), unit="rad/s"))
    duration: float = 1.0
    begin: float = 0.0

    def __post_init__(self) -> None:
        begin, duration = span(self.begin, self.duration)
        rates = row("rate", self.rate)
        for name, value in (("rate", rates), ("begin", begin), ("duration", duration)):
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        return len(self.rate)

    def inside(self, t: Scalar) -> Texts:
        since = t - self.begin
        return [r * since for r in self.rate], list(self.rate), [0.0] * self.n


@dataclass(frozen=True)
class Push(Controller):
    """A force that grows with time."""

    force: float = 1.0
    mode: Literal["soft", "hard"] = "hard"

    def law(self, robot: Any, driven: Any, t: Any, q: Any, v: Any, z: Any) -> ControlForces:
        return [self.force * (1.0 + t) for _ in driven.v], []


def test_a_law_from_outside_is_one_class(capsys: pytest.CaptureFixture[str]) -> None:
    model = ball()
    start = model.neutral()
    start[2] = -0.01
    with added(LAWS, "rubber", Rubber):
        run = rf.simulate(model, 0.2, start, ground="rubber", dt_out=0.05)
        w = np.sqrt(2000.0 / 2.0)
        rest = -2.0 * 9.81 / 2000.0
        up = run.q[:, 2]
        inside = up < 0.0
        wanted = rest + (start[2] - rest) * np.cos(w * run.t)
        assert inside.sum() == len(up)  # it never leaves: an undamped spring about its rest
        assert np.abs(up - wanted).max() < 1e-7
        assert run.options["ground"]["law"] == "rubber"
        text = "name: x\nrobot: quadruped\nt_end: 0.01\nground: {law: rubber, stiffness: 3 * 1e4}"
        text += "\ninitial: {q: {base.z: 1}}"
        again = read_scenario(text).run()
        assert again.options["ground"]["stiffness"] == 3e4
        assert np.array_equal(rf.Scenario.again(again).q, again.q)
        with pytest.raises(rf.ModelError, match=r"run.yaml:4:34: ground.stiffness: -1 must be a"):
            read_scenario(text.replace("3 * 1e4", "-1"), "run.yaml")
        app(["kinds", "ground"], result_action="return_value")
        assert "A linear spring without damping" in capsys.readouterr().out
        app(["kinds", "ground", "rubber"], result_action="return_value")
        told = capsys.readouterr().out
        assert "stiffness" in told
        assert "> 0, N/m" in told
    with pytest.raises(rf.ModelError, match="no ground is called 'rubber'"):
        rf.simulate(model, 0.1, ground="rubber")


def test_a_terrain_from_outside_is_one_class() -> None:
    with added(TERRAINS, "waves", Waves):
        ground = {"law": "firm", "terrain": {"kind": "waves", "amplitude": 0.3, "up": [0, 0, 1]}}
        run = rf.simulate(ball(), 0.01, ground=ground)
        assert run.options["ground"]["terrain"]["kind"] == "waves"
        assert run.options["ground"]["terrain"]["amplitude"] == 0.3
        guessed = rf.contact.as_ground("{law: dusty, terrain: {amplitude: 0.2}}", ball())
        assert guessed is not None
        assert isinstance(guessed.terrain, Waves)


def test_a_motion_from_outside_is_one_class() -> None:
    head = "name: x\nrobot: planar_3r\nt_end: 0.1\ncontrol: inverse\n"
    with added(MOTIONS, "drift", Drift):
        s = read_scenario(head + "motion: {type: drift, rate_deg: {joint2: 90}, duration: 2}")
        r = s.run()
        assert r.q[-1].tolist() == pytest.approx([0.0, np.pi / 20, 0.0])
        two = "{type: sequence, parts: [{type: drift, rate: 1}, {type: cycloid, start: 1, end: 0}]}"
        both = read_scenario(f"{head}motion: {two}").motion
        assert both is not None
        assert both.at(1.0).q.tolist() == pytest.approx([1.0] * 3)
        with pytest.raises(rf.ModelError, match=r"motion.raet: unknown key; did you mean 'rate'"):
            read_scenario(head + "motion: {type: drift, raet: 1}")
        with pytest.raises(rf.ModelError, match="one of rate, rate_deg is missing"):
            read_scenario(head + "motion: drift")


def test_a_controller_from_outside_is_one_class() -> None:
    head = "name: x\nrobot: planar_3r\nt_end: 0.1\n"
    with added(CONTROLLERS, "push", Push):
        s = read_scenario(head + "control: {type: push, force: 2 + 1, limits: 2}")
        assert isinstance(s.control, Push)
        assert s.control.force == 3.0
        assert set(np.abs(s.run().tau).ravel()) == {2.0}
        two = "control: {type: sum, parts: [push, {type: push, mode: soft}]}"
        assert read_scenario(head + two).run().tau[-1].tolist() == pytest.approx([2.2] * 3)
        with pytest.raises(rf.ModelError, match="mode: 'weak' must be 'soft' or 'hard'"):
            read_scenario(head + "control: {type: push, mode: weak}")


def test_a_word_belongs_to_one_kind() -> None:
    with pytest.raises(rf.RamifyError, match=r"'firm' exists already: ramify\.contact\.firm\.Firm"):
        LAWS.add("firm")(Rubber)
    with pytest.raises(rf.RamifyError, match="must be a dataclass"):

        @MOTIONS.add("plain")
        class Plain(Trajectory):
            pass

    assert "plain" not in MOTIONS
    with added(LAWS, "rubber", Rubber):
        LAWS.add("rubber")(Rubber)  # the same class once more, as a notebook's cell does


@dataclass(frozen=True)
class Odd:
    size: int
    names: tuple[float, ...] = ()
    flag: bool = False
    label: str | None = None
    angle: float = field(default=0.0, metadata=key(Number(degrees=True)))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"size": 1.5}, "size: 1.5 must be a whole number"),
        ({"size": "many"}, "size: no parameter is named 'many'; it must be a whole number"),
        ({}, "size: is missing"),
        ({"size": 1, "names": [1, "x y", 3]}, "names.1: 'x y' is not a number"),
        ({"size": 1, "flag": 1}, "flag: 1 must be true or false"),
        ({"size": 1, "label": 3}, "label: 3 is not a text"),
        ({"size": 1, "angle": 1, "angle_deg": 2}, "angle and angle_deg say the same"),
        ({"size": 1, "flags": True}, "flags: unknown key; did you mean 'flag'?"),
        ([], "an empty list must be a mapping"),
    ],
)
def test_keys_follow_from_types(raw: object, text: str) -> None:
    from ramify.documents.forms import NotedError

    reading = Reading(Mistakes("odd.yaml"))
    with pytest.raises(NotedError):
        read_part(Odd, raw, (), reading)
    with pytest.raises(rf.ModelError) as error:
        reading.mistakes.raise_if_any()
    assert text in str(error.value)


def test_values_arrive_as_their_types_say() -> None:
    reading = Reading(Mistakes("odd.yaml"))
    made = read_part(Odd, {"size": "2 * 3", "names": 1, "angle_deg": 180}, (), reading)
    assert made == Odd(6, 1.0, angle=np.pi)  # type: ignore[arg-type]
    assert isinstance(made.size, int)
