"""Machines in motion: closed forms, energy, saturation, limits, and what is switched off."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ramify as rf
from ramify.api.model import Model

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import falling_arms

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
WEIGHTLESS = (0.0, 0.0, 0.0)


def wheel(**machine: object) -> Model:
    """A joint of inertia 2 kg m^2 without gravity."""
    limits = machine.pop("limits", ())
    b = rf.Builder("wheel", gravity=WEIGHTLESS)
    b.link("rim", mass=1.0, inertia=(1.0, 1.0, 2.0), limits=limits, **machine)  # type: ignore[arg-type]
    return b.model()


def block(**machine: object) -> Model:
    b = rf.Builder("block", gravity=WEIGHTLESS)
    b.link("mass", None, "prismatic", axis=(1, 0, 0), mass=3.0, **machine)
    return b.model()


def test_a_damped_spring_has_its_frequency_and_decrement() -> None:
    inertia, k, c, rest = 2.0 + 0.5, 40.0, 1.5, 0.3
    m = wheel(armature=0.5, spring={"stiffness": k, "rest": rest}, damping=c)
    r = rf.simulate(m, 3.0, q0=[rest + 0.4], dt_out=0.05, **TIGHT)
    decay = c / (2.0 * inertia)
    w = np.sqrt(k / inertia - decay**2)
    exact = rest + 0.4 * np.exp(-decay * r.t) * (np.cos(w * r.t) + decay / w * np.sin(w * r.t))
    assert_allclose(r.q[:, 0], exact, atol=1e-9)
    assert r.audit.passed
    assert "stored in springs 3.2 J at the start" in str(r.audit)


def test_dry_friction_stops_a_block_after_its_distance() -> None:
    """x = m v^2 / 2 F for the sharp law; the smoothed one creeps on a little (slip_speed)."""
    force, v0, slip = 6.0, 2.0, 1e-5
    m = block(friction={"coulomb": force, "slip_speed": slip})
    r = rf.simulate(m, 1.5, v0=[v0], dt_out=0.01, **TIGHT)
    assert_allclose(r.q[-1, 0], 3.0 * v0**2 / (2.0 * force), rtol=1e-4)
    assert abs(r.v[-1, 0]) < 1e-9
    assert_allclose(r.stats["machine_losses"]["friction"], 0.5 * 3.0 * v0**2, rtol=1e-8)


def test_friction_by_direction_stops_earlier_on_one_side() -> None:
    m = block(friction={"coulomb": {"forward": 6.0, "backward": 3.0}, "slip_speed": 1e-4})
    ahead, back = (rf.simulate(m, 3.0, v0=[v], **TIGHT).q[-1, 0] for v in (1.0, -1.0))
    assert_allclose([ahead, back], [0.25, -0.5], rtol=1e-3)


def slope(load: float, **lugre: float) -> Model:
    """A block of 3 kg on a slope that pulls with a share ``load`` of the sliding friction."""
    b = rf.Builder("slope", gravity=(-9.0, 0.0, 0.0))
    friction = {"coulomb": 27.0 / load, "lugre": lugre}
    b.link("mass", None, "prismatic", axis=(1, 0, 0), mass=3.0, friction=friction)
    return b.model()


def test_lugre_friction_sticks_on_a_slope() -> None:
    """No creep over 100 s, in runs and rollouts; beyond the friction it slides as Coulomb says."""
    m = slope(1 / 1.1)
    r = rf.simulate(m, 100.0, dt_out=1.0, rtol=1e-9, atol=1e-12)
    stiffness = 3.0 / 0.005**2
    assert_allclose(r.q[1:, 0], -27.0 / stiffness, rtol=0.5)
    assert np.ptp(r.q[1:, 0]) < 1e-9
    assert r.audit.passed
    assert_allclose(r.bristles[-1] * stiffness, [-27.0], rtol=1e-6)
    steps = rf.rollout(m, np.zeros(1), np.zeros(1), steps=100_000, dt=1e-3, every=1000)
    assert np.ptp(steps.q) < 1e-9
    smooth = rf.Builder("smooth", gravity=(-9.0, 0.0, 0.0))
    smooth.link("mass", None, "prismatic", axis=(1, 0, 0), mass=3.0, friction=27.0 * 1.1)
    assert np.ptp(rf.simulate(smooth.model(), 5.0).q) > 1e-3  # what the smoothed law does
    sliding = rf.simulate(slope(2.0), 1.0, rtol=1e-9)
    assert_allclose(sliding.v[-1], [-4.5], rtol=1e-2)


def test_lugre_friction_stops_a_block_and_loses_no_energy() -> None:
    force, v0 = 6.0, 2.0
    law = {"static": 9.0, "stribeck_speed": 0.05, "lugre": {"stiffness": 4e4, "damping": 300.0}}
    m = block(friction={"coulomb": {"forward": force, "backward": 3.0}, **law})
    r = rf.simulate(m, 1.5, v0=[v0], dt_out=0.01, **TIGHT)
    assert_allclose(r.q[-1, 0], 3.0 * v0**2 / (2.0 * force), rtol=5e-3)
    assert abs(r.v[-1, 0]) < 1e-9
    assert r.audit.energy.relative < 1e-9
    assert (np.diff(r.work.dissipated) > -1e-12).all()
    back = rf.simulate(m, 1.5, v0=[-1.0], **TIGHT)
    assert_allclose(back.q[-1, 0], -0.5, rtol=4e-2)
    called = rf.simulate(m, 1.5, v0=[v0], dt_out=0.01, control=lambda t, q, v: [0.0], **TIGHT)
    assert_allclose(called.q, r.q, atol=1e-8)
    found = m.passive_forces(r.q, r.v, r.bristles)
    assert_allclose(found.total, 3.0 * r.a, atol=1e-7)
    assert_allclose(m.passive_forces(r.q[:1], r.v[:1]).total, found.total[:1], rtol=1e-2)


def test_runs_with_bristles_are_saved(tmp_path: Path) -> None:
    r = rf.simulate(slope(0.5), 0.1)
    r.save(tmp_path / "run.nc")
    again = rf.Result.open(tmp_path / "run.nc")
    assert (again.bristles == r.bristles).all()
    assert again.model.joints[0].elements == r.model.joints[0].elements
    assert_allclose(again.energy.total, r.energy.total)
    held = rf.simulate(slope(0.5), 0.1, passive=False)
    assert held.bristles is None
    assert_allclose(held.v[-1], [-0.9])


def test_a_stop_turns_a_wheel_back_and_takes_its_energy() -> None:
    """For a ramp that is short the closed form is restitution e^-2 and depth v0 T / e."""
    T, v0 = 0.005, 3.0
    m = wheel(limits=[(-1.0, 1.0)], stop={"time": T, "ratio": 1.0})
    r = rf.simulate(m, 1.0, q0=[0.9], v0=[v0], dt_out=1e-4, **TIGHT)
    assert_allclose(r.q.max() - 1.0, v0 * T / np.e, rtol=0.1)
    assert_allclose(-r.v[-1, 0] / v0, np.exp(-2.0), rtol=0.25)
    total = r.energy.total
    assert (np.diff(total) < 1e-9 * total[0]).all()
    assert r.audit.energy.relative < 1e-6
    (reached,) = r.limits_reached
    assert (reached.name, reached.what) == ("rim", "upper stop")
    assert_allclose(reached.since, 0.1 / v0, atol=2e-4)
    loose = rf.simulate(m, 1.0, q0=[0.9], v0=[v0], stops=False)
    (beyond,) = loose.limits_reached
    assert str(beyond).startswith("'rim' beyond its upper limit from t = ")
    assert "stop" not in str(loose.audit).replace("stops at joint limits", "")


def test_a_drive_gives_no_more_than_its_effort() -> None:
    m = wheel(effort=4.0)
    r = rf.simulate(m, 1.0, control=lambda t, q, v: [10.0], **TIGHT)
    assert_allclose(r.tau, 4.0)
    assert_allclose(r.q[-1], [0.5 * 4.0 / 2.0], rtol=1e-9)
    assert r.limits_reached[0].what == "effort"
    free = rf.simulate(m, 1.0, control=lambda t, q, v: [10.0], efforts=False, **TIGHT)
    assert_allclose(free.q[-1], [2.5], rtol=1e-9)
    assert "switched off: effort limits" in str(free.audit)
    tau = rf.rollout(m, np.zeros((3, 1)), np.zeros((3, 1)), steps=100, dt=0.01, tau=[10.0])
    assert_allclose(tau.q, 1.0, rtol=1e-12)


def test_a_drive_that_chatters_is_warned_of() -> None:
    """Held damping above inertia / dt overshoots zero speed by more at each sample."""
    m = wheel(effort=4.0)

    def run(gain: float) -> rf.Result:
        law = rf.control.Function(lambda t, q, v: -gain * v, rate_hz=100.0)
        return rf.simulate(m, 0.5, v0=[0.1], control=law, step=1e-3)

    with pytest.warns(
        RuntimeWarning, match=r"'rim' jumps between both ends of its effort \(-4, 4\)"
    ):
        run(1000.0)
    assert np.abs(run(100.0).v[-1]).max() < 1e-3


def test_passive_forces_and_stops_are_switched_off_on_request() -> None:
    m = wheel(damping=2.0, limits=[(-1.0, 1.0)])
    off = rf.simulate(m, 1.0, v0=[3.0], passive=False, stops=False, **TIGHT)
    assert_allclose(off.q[-1], [3.0])
    assert "switched off: passive forces of the machine, stops at joint limits" in str(off.audit)
    only = rf.simulate(m, 1.0, v0=[3.0], passive=False, **TIGHT)
    assert only.q.max() < 1.1
    damped = rf.simulate(m, 1.0, v0=[0.5], stops=False, **TIGHT)
    assert_allclose(damped.v[-1], [0.5 * np.exp(-1.0)], rtol=1e-9)
    more = rf.simulate(m, 1.0, v0=[0.5], damping=2.0, **TIGHT)
    assert_allclose(more.v[-1], [0.5 * np.exp(-2.0)], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*beyond its limit")
def test_rollouts_and_runs_of_a_function_are_the_same_machine() -> None:
    b = rf.Builder("arm")
    solid = {"mass": 1.0, "com": (0.3, 0.0, 0.0), "inertia": (0.01, 0.02, 0.02)}
    b.link("a", axis=(0, 1, 0), damping=0.2, friction=0.3, limits=[(-0.5, 1.0)], **solid)
    b.link(
        "b", "a", at=(0.5, 0, 0), axis=(0, 1, 0), spring={"stiffness": 3.0}, armature=0.1, **solid
    )
    m = b.model()
    plain = rf.simulate(m, 0.6, **TIGHT)
    called = rf.simulate(m, 0.6, control=lambda t, q, v: [0.0, 0.0], **TIGHT)
    rolled = rf.rollout(m, np.zeros(2), np.zeros(2), steps=6000, dt=1e-4)
    assert plain.audit.passed
    assert_allclose(called.q[-1], plain.q[-1], atol=1e-8)
    assert_allclose(rolled.q, plain.q[-1], atol=1e-6)
    assert_allclose(
        plain.a, m.forward_dynamics(plain.q, plain.v, plain.tau, passive=True), atol=1e-8
    )


def test_a_prescribed_motion_overcomes_springs_and_friction() -> None:
    m = wheel(spring={"stiffness": 5.0}, damping=0.7)
    motion = rf.motion.Quintic([0.0], [1.0], 1.0)
    r = rf.simulate(m, 1.0, control=rf.control.Prescribed(motion), **TIGHT)
    wanted = 2.0 * r.a[:, 0] + 0.7 * r.v[:, 0] + 5.0 * r.q[:, 0]
    assert_allclose(r.tau[:, 0], wanted, atol=1e-9)
    assert r.audit.passed


def test_a_prescribed_motion_is_not_too_stiff_for_its_steps() -> None:
    m = wheel(damping=1e5)
    r = rf.simulate(
        m, 0.1, control=rf.control.Prescribed(rf.motion.Quintic([0.0], [1.0], 1.0)), step=1e-3
    )
    assert r.options["method"] == "rk4"


def test_a_force_where_nothing_drives_is_refused() -> None:
    b = rf.Builder("cart", gravity=WEIGHTLESS)
    b.link("cart", None, "prismatic", mass=1.0)
    b.link("pole", "cart", mass=1.0, com=(0.1, 0, 0), actuated=False)
    with pytest.raises(rf.SimulationError, match="'pole', which has no drive"):
        rf.simulate(b.model(), 0.1, control=lambda t, q, v: [1.0, 2.0])
    r = rf.simulate(b.model(), 0.1, control=lambda t, q, v: [1.0, 0.0])
    assert r.tau[0, 0] == 1.0


@pytest.mark.parametrize(("name", "stops"), [("panda", 2), ("z1", 1)])
def test_a_falling_arm_stays_within_its_limits(name: str, stops: int) -> None:
    """By no more than its stops may yield; benchmarks/falling_arms.py looks at all arms. Friction
    holds the wrist of the z1.
    """
    found = falling_arms.fall(falling_arms.arm(falling_arms.files(name)[0]))
    assert found.stops >= stops
    assert found.share < 1.2
    assert found.audit < 1e-6


def test_evaluations_count_where_another_method_goes_on() -> None:
    m = wheel(friction={"coulomb": 4.0, "slip_speed": 1e-5})
    method = rf.simulate(m, 2.0, v0=[1.0]).options["method"]
    switched = float(method.removeprefix("dop853 until t = ").removesuffix(
        " s, then lsoda: the motion is stiff"))  # fmt: skip
    first = rf.simulate(m, switched, v0=[1.0], method="dop853")
    r = rf.simulate(m, switched + 1e-4, v0=[1.0])
    assert r.stats["evaluations"] > 0.9 * first.stats["evaluations"]


def test_an_arm_rests_where_it_does_in_mujoco() -> None:
    arm = falling_arms.arm(falling_arms.files("z1")[0])
    found = falling_arms.rest(arm, seconds=12.0)
    assert found.joints == 4
    assert found.apart < 2e-3
    assert found.seed == 2  # from the first posture


def test_a_robot_rests_on_its_stop() -> None:
    b = rf.Builder("flap")
    b.link(
        "flap",
        axis=(0, 1, 0),
        mass=1.0,
        com=(0.5, 0, 0),
        inertia=(0, 0.02, 0.02),
        damping=0.5,
        limits=[(-1.0, 0.7)],
    )
    m = b.model()
    r = rf.simulate(m, 6.0, rtol=1e-9)
    deflection = 9.81 * 0.5 * np.cos(0.7) / (m.mass_matrix([0.0])[0, 0] / 0.005**2)
    assert_allclose(r.q[-1, 0] - 0.7, deflection, rtol=1e-2)


def stiff() -> Model:
    """An arm whose joints decay at some thousand 1/s."""
    b = rf.Builder("stiff")
    solid = {"com": (0.2, 0.0, 0.0), "inertia": (1e-4, 1e-3, 1e-3)}
    b.link("a", axis=(0, 1, 0), mass=1.0, damping=1.0, limits=[(-0.4, 0.3)], **solid)
    b.link(
        "b",
        "a",
        at=(0.3, 0, 0),
        axis=(0, 1, 0),
        mass=0.2,
        damping=5.0,
        spring={"stiffness": 900.0},
        **solid,
    )
    b.link("c", "b", at=(0.3, 0, 0), axis=(0, 0, 1), mass=0.1, damping=30.0, **solid)
    return b.model()


def test_an_unstable_explicit_step_is_warned_of_and_not_the_default() -> None:
    m = stiff()
    r = rf.simulate(m, 0.05, step=1e-3)
    assert r.options["method"] == "implicit_extrapolation"
    assert rf.simulate(m, 0.01, step=1e-5).options["method"] == "rk4"
    with pytest.warns(
        RuntimeWarning, match="a step of 0.001 s is too long for rk4.*implicit_extrapolation"
    ):
        rf.rollout(m, np.zeros(3), np.zeros(3), steps=1, dt=1e-3, method="rk4")
    with pytest.warns(RuntimeWarning, match="too long for euler"):
        rf.simulate(m, 0.01, method="euler", step=1e-3)


STIFF = """
name: two
gravity: [0, 0, 0]
links:
  - {name: a, joint: {type: revolute, JOINT}, frame: {}, mass: 1, inertia: [1, 1, 2]}
  - {name: b, joint: {type: revolute}, frame: {}, mass: 1, inertia: [1, 1, 0.5]}
tendons: [{name: belt, joints: {a: 0.5, b: -1}, BELT}]
actuators: [{name: servo, kind: position, joint: a, kp: KP}]
"""
FAST = 2.0 * 4000.0**2
"""N m/rad at 2 kg m^2: 4000 rad/s."""


@pytest.mark.parametrize(
    ("joint", "belt", "kp"),
    [
        (f"spring: {{stiffness: {FAST}}}", "damping: 0", 1.0),
        ("damping: 8000", "damping: 0", 1.0),
        (f"limits: [-1, 1], stop: {{stiffness: {FAST}}}", "damping: 0", 1.0),
        ("damping: 0", f"stiffness: {FAST / 4.25}, rest: [-1, 1]", 1.0),
        ("damping: 0", "damping: 0", FAST),
        ("friction: {coulomb: 4, slip_speed: 5e-4}", "damping: 0", 1.0),
    ],
    ids=["spring", "damping", "stop", "tendon", "gain", "friction"],
)
def test_whatever_makes_a_step_unstable_is_warned_of(
    joint: str, belt: str, kp: float, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each acts at 4000 1/s (the belt on both wheels: 0.5² / 2 + 1 / 0.5 = 2.125 per kg m^2)."""
    file = tmp_path / "two.yaml"
    text = STIFF.replace("JOINT", joint).replace("BELT", belt).replace("KP", str(kp))
    file.write_text(text)
    m = rf.load(file)
    control = rf.control.Commands.to(m, {})
    start = {"steps": 1, "control": control, "method": "rk4"}
    rf.rollout(m, np.zeros(2), np.zeros(2), dt=0.5e-3, **start)  # 2.0 of 2.785
    what = request.node.callspec.id.replace("gain", "actuator")
    what = what.replace("stop", r"stop \(limits -1 and 1\)")
    text = rf"rk4: the {what} at '[ab]' of 'two' acts at up to 4e\+03 1/s"
    with pytest.warns(RuntimeWarning, match=text):
        rf.rollout(m, np.zeros(2), np.zeros(2), dt=0.7e-3, **start)


def test_servo_gains_that_make_a_step_unstable_are_warned_of() -> None:
    servo = rf.control.PD(rf.motion.Hold([0.0]), kp=FAST, kd=0.0)
    with pytest.warns(RuntimeWarning, match="too long for rk4: the controller at"):
        rf.rollout(
            wheel(), np.zeros(1), np.zeros(1), dt=0.7e-3, steps=1, control=servo, method="rk4"
        )


def test_scenarios_carry_the_switches(tmp_path: Path) -> None:
    file = tmp_path / "fall.yaml"
    file.write_text("name: fall\nrobot: puma_560\nt_end: 0.1\nstops: false\n")
    scenario = rf.scenario(file)
    r = scenario.run()
    assert (r.options["stops"], r.options["passive"]) == (False, True)
    assert scenario.run(passive=False).options["passive"] is False
    assert "friction" in r.stats["machine_losses"]


def test_a_stop_that_gives_way_is_reported() -> None:
    """A finger of 20 g that is pressed with 40 N: the default stop yields by more than its range,
    one of its own by a millimetre.
    """
    for stop, depth in ((None, 0.05), ({"stiffness": 4e4, "damping": 40.0}, 1e-3)):
        b = rf.Builder("finger", gravity=(0, 0, 0))
        own = {} if stop is None else {"stop": stop}
        b.link("finger", joint="prismatic", mass=0.02, limits=(0.0, 0.04), effort=100.0, **own)
        m = b.model()
        push = rf.control.Torque([-40.0])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            r = rf.simulate(m, 0.5, [0.02], control=push)
        np.testing.assert_allclose(-r.q[-1, 0], depth, rtol=1e-3)
        said = [str(w.message) for w in caught if "gave way" in str(w.message)]
        assert len(said) == (stop is None), said
        assert stop is not None or "its range is 0.04" in said[0]


def test_steps_that_pass_a_stop_are_as_accurate_as_others() -> None:
    """The estimate of order 8 can miss a kink; compiled and in Python, the steps see it."""
    b = rf.Builder("two", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.25, 0, 0), "inertia": (0, 0.02, 0.02)}
    m = b.link("a", **rod, limits=(-1, 2)).link("b", "a", at=(0.5, 0, 0), **rod, limits=(-1, 1))
    compiled = rf.simulate(m.model(), 2.0, [0.4, 0.2])
    plain = rf.simulate(m.model(), 2.0, [0.4, 0.2], control=lambda t, q, v: 0.0 * v)
    sharp = rf.simulate(m.model(), 2.0, [0.4, 0.2], rtol=1e-12, atol=1e-13)
    for r in (compiled, plain):
        assert r.audit.energy.relative < 1e-6
        assert np.abs(r.q - sharp.q).max() < 3e-7
    assert abs(compiled.stats["steps"] - plain.stats["steps"]) < 0.05 * plain.stats["steps"]


def test_fixed_steps_of_closed_machines_are_chosen_and_warned_of_as_those_of_trees() -> None:
    """Two light fingers that a gear couples, with friction: rk4 would not settle in 1 ms steps."""
    b = rf.Builder("gripper", gravity=(0, 0, 0))
    finger = {"joint": "prismatic", "axis": (1, 0, 0), "mass": 0.05, "inertia": (1e-5,) * 3}
    b.link("left", **finger, friction=1.0, damping=5.0, velocity=0.2)
    b.link("right", **finger, friction=1.0, damping=5.0, velocity=0.2, actuated=False)
    m = b.loop("gear", "gear", joints=("left", "right")).model()
    start, rate = np.array([0.02, 0.02]), np.array([0.1, 0.1])
    r = rf.simulate(m, 0.1, start, rate, step=1e-3)
    assert r.options["method"] == "implicit_extrapolation"
    assert rf.rollout(m, start, rate, steps=2, dt=1e-3).method == "implicit_extrapolation"
    want = rf.simulate(m, 0.1, start, rate)
    assert_allclose(r.q[-1], want.q[-1], atol=1e-4)
    with pytest.warns(RuntimeWarning, match="too long for rk4: the friction at"):
        rf.simulate(m, 0.01, start, rate, step=1e-3, method="rk4")
    # without friction nothing is stiff
    free = rf.Builder("free").link("left", **finger).link("right", **finger, actuated=False)
    plain = free.loop("gear", "gear", joints=("left", "right")).model()
    assert rf.simulate(plain, 0.01, start, rate, step=1e-3).options["method"] == "rk4"
