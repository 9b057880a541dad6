"""Grounds around a run: ReDySim's, commands, files, tables, documentation, scenario files, and what
is refused.
"""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redysim_data import variables
from test_contact import LAWS, TERRAINS, G, ball

import ramify as rf
from ramify.api.builders import as_model
from ramify.contact import ContactText, Dusty, Firm, Flat, HeightField, HuntCrossley, Slope
from ramify.core.spatial import Vec3
from ramify.files.redysim.redysim_robot import from_variables
from ramify.integrate.integrators import scheme_of
from ramify.integrate.text_steps import text_step
from ramify.plant.make_field import PlantOptions, make_field
from ramify.runs.energy_blame import shares_of

from_variables = as_model(from_variables)


@pytest.fixture(scope="module")
def quadruped() -> rf.Model:
    return rf.load("quadruped")


# ---- other ways ----


@pytest.mark.parametrize(
    ("name", "mass"), [("legged_biped", 9.4), ("legged_quadruped", 12.0), ("legged_hexapod", 14.0)]
)
def test_the_ground_of_redysim(name: str, mass: float) -> None:
    model = from_variables(variables(name))
    ground = Firm.of_redysim(model).fitted(model)
    assert model.mass == pytest.approx(mass)
    zeta = Firm(stiffness=ground.stiffness, overdamping=10.0).fitted(model)
    assert ground.damping == pytest.approx(zeta.damping, rel=1e-12)
    assert ground.terrain.axes[2] == (0.0, 1.0, 0.0)
    assert np.isfinite(rf.simulate(model, 0.02, ground=ground).q).all()
    with pytest.raises(rf.ModelError, match="no ground of its own"):
        Firm.of_redysim(ball())


@pytest.mark.filterwarnings("ignore:.*starts inside the ground")
def test_commands_take_a_ground(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ramify.cli import main

    monkeypatch.chdir(tmp_path)
    for arguments in (
        [
            "simulate",
            "planar_biped",
            "--ground",
            "{law: dusty, terrain: {height: 0.1}}",
            "--t-end",
            "0.05",
            "--out",
            "run.nc",
        ],
        ["simulate", "biped_fall", "--ground", "none", "--t-end", "0.05", "--audit"],
        ["export", "planar_biped", "--format", "c", "--ground", "firm"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert not stop.value.code, capsys.readouterr().err
    assert rf.Result.open("run.nc").options["ground"]["law"] == "dusty"
    assert "planar_biped_contact_forces" in (tmp_path / "planar_biped.h").read_text()
    with pytest.raises(SystemExit) as stop:
        main(["simulate", "planar_biped", "--ground", "soft"])
    assert stop.value.code
    assert "no ground is called 'soft'" in capsys.readouterr().err


def test_symbols_and_other_scalars_run_through_a_ground() -> None:
    import casadi
    import sympy

    law = Firm(terrain=TERRAINS[4]).fitted(ball())
    numbers = [0.1, -0.2, -0.03, 0.4, 0.2, -0.3]
    wanted = law.reaction(Vec3(*numbers[:3]), Vec3(*numbers[3:])).force
    assert wanted.z > 0.0
    x = casadi.SX.sym("x", 6)
    felt = law.reaction(Vec3(x[0], x[1], x[2]), Vec3(x[3], x[4], x[5])).force
    found = casadi.Function("f", [x], [casadi.vertcat(felt.x, felt.y, felt.z)])(numbers)
    assert np.allclose(np.array(found).ravel(), [wanted.x, wanted.y, wanted.z], rtol=1e-12)
    names = sympy.symbols("a:6")
    flat = HuntCrossley().fitted(ball()).reaction(Vec3(*names[:3]), Vec3(*names[3:])).force.z
    value = float(flat.subs(dict(zip(names, numbers, strict=True))))
    assert value == pytest.approx(
        HuntCrossley().fitted(ball()).reaction(Vec3(*numbers[:3]), Vec3(*numbers[3:])).force.z
    )


def test_a_long_chain_and_a_sampled_controller_meet_the_ground() -> None:
    """Beyond the size that is written out, and with forces held between samples."""
    chain = rf.load("chain", n=90)
    tip = rf.with_contact_points(chain, {chain.bodies[-1].name: {"tip": (0.1, 0.0, 0.0)}})
    above = float(rf.contact.forces(tip, "firm", tip.neutral(), np.zeros(90)).penetration[0])
    ground = HuntCrossley(stiffness=1e4, terrain=Flat(height=1e-3 - above))
    felt = rf.contact.forces(tip, ground, tip.neutral(), np.zeros(90))
    assert felt.penetration == pytest.approx(1e-3)
    run = rf.simulate(tip, 2e-5, ground=ground, method="rk4", step=1e-5, dt_out=1e-5)
    assert np.allclose(run.contacts.force[0], felt.force)
    expected = tip.forward_dynamics(run.q[0], run.v[0], np.zeros(90), felt.wrenches(tip, run.q[0]))
    assert np.allclose(run.a[0], expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    model = rf.load("planar_biped")
    q = model.neutral()
    q[2] = 1.25
    hold = rf.control.PD(rf.motion.Hold(np.zeros(6)), kp=20.0, kd=0.05, rate_hz=1000.0)
    stood = rf.simulate(model, 0.05, q, ground="firm", control=hold)
    assert stood.audit.passed
    assert stood.contacts.touching[-1].any()


# ---- results ----


def test_contacts_are_kept_in_files_and_tables(tmp_path: Path) -> None:
    run = rf.scenario("quadruped_fall").run(t_end=0.5, dt_out=0.02)
    run.save(tmp_path / "run.nc")
    again = rf.Result.open(tmp_path / "run.nc")
    for name in ("force", "position", "penetration", "slip", "stored", "dissipated"):
        assert np.array_equal(getattr(again.contacts, name), getattr(run.contacts, name))
    assert (again.contacts.names, again.contacts.bodies, again.contacts.up) == (
        run.contacts.names, run.contacts.bodies, run.contacts.up,
    )  # fmt: skip
    assert again.audit.energy.largest == run.audit.energy.largest
    assert again.options["ground"]["law"] == "firm"
    data = run.to_xarray()
    assert data["contact_force"].dims == ("time", "contact", "axis")
    found = data["contact_force"].sel(contact="rear_left_foot", axis="z").values
    assert np.array_equal(found, run.contacts["rear_left_foot"][:, 2])
    run.to_csv(tmp_path / "run.csv")
    header = (tmp_path / "run.csv").read_text().splitlines()[0].split(",")
    assert {"contact_force rear_left_foot z [N]", "ground_stored [J]"} <= set(header)
    figure = run.plot("contacts")
    figure.savefig(tmp_path / "contacts.png", dpi=40)
    assert figure.axes[0].get_title(loc="left") == "upward force"
    run.plot("energy").savefig(tmp_path / "energy.png", dpi=40)
    with pytest.raises(rf.RamifyError, match="no contacts"):
        rf.scenario("gripper_free_fall").run(t_end=0.01).plot("contacts")


def test_every_body_has_its_balance_on_a_ground(quadruped: rf.Model) -> None:
    q = quadruped.neutral()
    q[2] = 0.3 * (math.cos(0.4) + 1.0)
    q[7::3], q[8::3] = -0.4, 0.4
    run = rf.simulate(
        quadruped,
        0.3,
        q,
        ground=HuntCrossley(stiffness=2e4, exponent=1, dissipation=0.5),
        dt_out=0.001,
    )
    assert run.contacts.touching[1:].any()
    shares, _ = shares_of(run, len(run) - 1)
    assert run.audit.passed
    assert np.abs(shares).max() < 1e-5 * run.energy.kinetic.max()
    heavier = replace(
        run, model=rf.with_payload(run.model, "front_left_shank", 0.3, (0.0, 0.0, -0.15))
    )
    assert heavier.audit.first_break is not None
    assert heavier.audit.first_break.body in (
        "front_left_shank",
        "trunk",
    )  # the free base has to carry what is not there


def test_defaults_are_announced_and_scale_with_the_robot() -> None:
    light, heavy = ball(mass=1.0), ball(mass=4.0)
    for law in LAWS:
        small, large = law.fitted(light), law.fitted(heavy)
        assert large.stiffness == pytest.approx(4.0 * small.stiffness)  # type: ignore[attr-defined]
    run = rf.simulate(light, 0.01, ground="firm")
    told = run.options["ground"]
    assert told["chosen"] == ["stiffness", "damping", "horizontal_damping", "full_depth"]
    assert told["stiffness"] == pytest.approx(G / 0.05)
    assert run.options["max_step"] == 0.01


@pytest.mark.parametrize("terrain", TERRAINS, ids=lambda t: type(t).__name__)
def test_the_record_of_a_ground_gives_it_again(terrain: Any, tmp_path: Path) -> None:
    model = ball()
    for law in LAWS:
        run = rf.simulate(model, 0.01, ground=replace(law, terrain=terrain, points=["tip"]))
        run.save(tmp_path / "run.nc")
        again = rf.simulate(
            model, 0.01, ground=rf.Result.open(tmp_path / "run.nc").options["ground"]
        )
        assert np.array_equal(again.q, run.q)
        assert again.options["ground"] == {**run.options["ground"], "chosen": []}


def test_a_law_that_changes_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A law of one's own is known by what it computes, not by its repr."""
    text = (
        "from dataclasses import dataclass\nfrom ramify.contact import Ground, "
        "Normal\n\n\n@dataclass(frozen=True, kw_only=True)\n"
        "class Own(Ground):\n    def normal(self, depth, rate):\n        return Normal({0}, {0}, "
        "0.0)\n\n"
        "    def grip(self, load, slip_squared):\n        return 0.0\n\n    def scaled(self, mass, "
        "weight):\n        return self\n"
    )
    found = []
    for push in (3.0, 5.0):
        names: dict[str, Any] = {"__name__": "own_law"}
        exec(text.format(push), names)
        monkeypatch.setitem(sys.modules, "own_law", types.ModuleType("own_law"))
        ground = names["Own"]()
        run = rf.simulate(ball(), 0.01, ground=ground)
        found.append((run.contacts.force[0, 0, 2], run.a[0, 2]))
    assert np.allclose(found, [(3.0, 3.0 / 2.0 - G), (5.0, 5.0 / 2.0 - G)])


def test_points_may_be_added_anywhere() -> None:
    arm = rf.with_contact_points(rf.load("planar_3r"), {"link3": {"tip": (1.0, 0.0, 0.0)}})
    assert ContactText(arm, Firm()).names == ("tip",)
    twice = rf.with_contact_points(
        arm, {"link3": {"tip": (0.5, 0.0, 0.0)}, "link1": {"tip": (1.0, 0.0, 0.0)}}
    )
    assert ContactText(twice, Firm()).names == ("link1.tip", "link3.tip")
    assert ContactText(twice, Firm(points="link3.tip")).places == ((0.5, 0.0, 0.0),)


def test_a_start_inside_the_ground_is_warned_of() -> None:
    ball = rf.Builder("ball").link(
        "ball", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1), com=(0, 0, 0.1),
        points={"top": (0, 0, 0.2), "sole": (0, 0, 0)},
    )  # fmt: skip
    m = ball.model()
    q = np.tile(m.neutral(), (3, 1))
    q[:, 2] = 0.0, -0.3, -0.001
    ground = rf.contact.HuntCrossley()
    text = "starts inside the ground{}: 'sole' is 0.3 m deep, .*; raise its start"
    with pytest.warns(RuntimeWarning, match=text.format(" in state 1")):
        rf.rollout(m, q, np.zeros(6), steps=2, dt=1e-4, ground=ground)
    rf.rollout(m, q, np.zeros(6), steps=2, dt=1e-4, ground=ground)  # once
    with pytest.warns(RuntimeWarning, match=text.format("")):
        rf.simulate(m, 1e-3, q[1], ground=ground)
    rf.simulate(m, 1e-3, q[2], ground=ground)


def two_tips() -> rf.Model:
    made = rf.Builder("two")
    for name in "ab":
        made = made.link(
            name,
            joint="free",
            mass=1.0,
            inertia=(0.1, 0.1, 0.1),
            parent=None,
            points={"tip": (0, 0, 0)},
        )
    return made.model()


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: Firm(stiffness=-1.0), "stiffness is -1"),
    (lambda: Firm(stiffness="hard"), "stiffness is 'hard'; it must be a finite number > 0"),
    (lambda: Firm(damping=1.0, overdamping=2.0), "say the same"),
    (lambda: Firm(top_speed=1.0, full_depth=0.1), "say the same"),
    (lambda: HuntCrossley(exponent=1.7), "choose 1, 1.5"),
    (lambda: Dusty(friction=math.nan), "friction is nan"),
    (lambda: Firm(terrain="flat"), "terrain must be"),
    (lambda: Firm(points=3), "points must be a list of names"),
    (lambda: Firm(points=[1, 2]), "points must be a list of names"),
    (lambda: Slope(angle=2.0), "quarter turn"),
    (lambda: Slope(angle=0.1, normal=(0, 0, 1)), "give one"),
    (lambda: Slope(normal=(0, 0, 0)), "not all zero"),
    (lambda: Flat(height=math.inf), "height is inf; it must be a finite number"),
    (lambda: HeightField(heights=[[0.0, 1.0]], spacing=1.0), "at least 2 each way"),
    (lambda: HeightField(heights=np.zeros((4, 4)), spacing=0.0), "spacing"),
    (lambda: rf.simulate(ball(), 0.1, ground=3), "ground must be a law"),
    (lambda: rf.simulate(ball(), 0.1, ground="frim"), "did you mean 'firm'"),
    (
        lambda: rf.simulate(ball(), 0.1, ground={"law": "firm", "stiff": 2}),
        "did you mean 'stiffness'",
    ),
    (lambda: rf.simulate(ball(), 0.1, ground=Firm(points=["toe"])), "no contact point 'toe'"),
    (lambda: rf.simulate(rf.load("planar_3r"), 0.1, ground="firm"), "has no contact points"),
    (lambda: rf.simulate(ball(), 0.1, ground="firm", method="energy", step=0.01), "off the ground"),
    (lambda: rf.with_contact_points(ball(), {"block": {"a": (0, 0)}}), "three finite numbers"),
    (lambda: rf.with_contact_points(ball(), {"brick": {"a": (0, 0, 0)}}), "brick"),
    (
        lambda: rf.simulate(ball(), 0.1, ground=Firm(terrain=Slope(normal=(0, 0, -1)))),
        "turn its sign",
    ),
    (
        lambda: rf.simulate(ball(), 0.1, ground=Firm(terrain=Slope(normal=(1, 0, 0)))),
        "normal [1.0, 0.0, 0.0] does not point up",
    ),
    (
        lambda: rf.simulate(ball(), 0.1, ground=Firm(terrain=Flat(up=(0, 0, -1)))),
        "up [0.0, 0.0, -1.0] does not point up",
    ),
    (
        lambda: rf.simulate(ball(), 0.1, ground={"law": "firm", "terrain": {"slop_deg": 10}}),
        "did you mean 'slope_deg'",
    ),
    (
        lambda: rf.simulate(ball(), 0.1, ground={"law": "firm", "terrain": {"height_s": [[0]]}}),
        "did you mean 'height",
    ),
    (
        lambda: HeightField(heights=[[0, 0], [0]], spacing=1.0),
        "heights[1] has 1 entries, heights[0] has 2",
    ),
    (lambda: HeightField(heights=[[0, "a"], [0, 0]], spacing=1.0), "must be numbers"),
    (lambda: HeightField(heights=[[0, 0], [0, math.nan]], spacing=1.0), "heights[1][1] is nan"),
    (
        lambda: rf.contact.forces(two_tips(), "firm", two_tips().neutral(), [0] * 12)["tip"],
        "say which: a.tip, b.tip",
    ),
    (lambda: rf.contact.forces(ball(), None, [0] * 7, [0] * 6), "there is no ground"),
]


@pytest.mark.parametrize(("made", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_input_is_refused_with_a_reason(made: Callable[[], Any], said: str) -> None:
    with pytest.raises(rf.RamifyError) as error:
        made()
    assert said in str(error.value)


def test_mistakes_of_scenario_files_have_their_line(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: x\nrobot: quadruped\nt_end: 1\nground:\n  law: firm\n  stiff: 3\n  friction: -1\n  "
        "terrain: {slope_deg: steep}\n"
    )
    with pytest.raises(rf.ModelError) as error:
        rf.scenario(path)
    lines = str(error.value).splitlines()
    assert [line.split(":")[1] for line in lines] == ["6", "7", "8"]
    assert all(
        key in line
        for key, line in zip(("ground.stiff", "ground.friction", "slope_deg"), lines, strict=True)
    )


@pytest.mark.filterwarnings("ignore:.*starts inside the ground")
def test_grounds_of_scenarios_and_overrides(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: x\nrobot: quadruped\nt_end: 0.01\nground: {law: hunt_crossley, terrain: {slope_deg: "
        "10, heading_deg: 90}}\n"
    )
    scenario = rf.scenario(path)
    told = scenario.run().options["ground"]
    assert told["terrain"]["slope"] == pytest.approx(math.radians(10.0))
    assert told["terrain"]["heading"] == pytest.approx(math.radians(90.0))
    assert scenario.run(ground="none").contacts is None
    assert scenario.run(ground=None).contacts is None
    assert scenario.run(ground=Dusty()).options["ground"]["law"] == "dusty"
    run = scenario.run(ground="{law: firm, terrain: {heights: [[0, 0.1], [0, 0.2]], spacing: 2}}")
    assert run.options["ground"]["terrain"]["heights"] == [[0.0, 0.1], [0.0, 0.2]]
    assert np.array_equal(rf.Scenario.again(run).q, run.q)


def test_what_the_ground_has_dissipated_never_falls() -> None:
    """Under gains too hard for the step, extrapolation of a whole and two half steps took up to
    0.1 J back. What the audit counts as lost by the steps gets smaller, not larger. The same in
    compiled steps and in Python.
    """
    b = rf.Builder("leg")
    b.link("body", joint="prismatic", axis=(0, 0, 1), mass=5.0, actuated=False)
    b.link("thigh", "body", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.15), inertia=(0.01,) * 3)
    b.link(
        "shin", "thigh", axis=(0, 1, 0), at=(0, 0, -0.3), mass=0.5, com=(0, 0, -0.15),
        inertia=(0.005,) * 3, points={"foot": (0, 0, -0.3)}, friction=0.5,
    )  # fmt: skip
    m, method, dt = b.model(), "implicit_extrapolation", 4e-3
    law = rf.control.PD(rf.motion.Hold([0.5, -1.0]), kp=3000.0, kd=30.0)
    start = [0.55, 0.5, -1.0]
    r = rf.simulate(m, 0.4, start, control=law, ground="firm", method=method, step=dt, dt_out=dt)
    assert np.diff(r.contacts.dissipated).min() >= 0.0
    assert r.contacts.dissipated[-1] > 0.5
    assert 0.0 < r.audit.own_dissipation < 0.9
    field = make_field(m, law, PlantOptions(ground="firm", implicit=True))
    y, u, heat = field.start(np.array(start), np.zeros(3)), np.zeros(field.input_size), [0.0]
    for k in range(100):
        y = text_step(field, scheme_of(method), field.text, k * dt, y, u, dt)
        heat.append(float(y[field.of_heat][0]))
    np.testing.assert_allclose(heat, r.contacts.dissipated, rtol=1e-6, atol=1e-9)
