"""Constants of a robot as inputs: every state of a batch has a robot of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.kernels.tier_policy import Tier
from ramify.model.body import Body


def _changed(model: rf.Model, name: str, change: Callable[[Body], Body]) -> rf.Model:
    bodies = tuple(change(body) if body.name == name else body for body in model.bodies)
    return replace(model, bodies=bodies)


def _tensor(six: Array) -> Array:
    xx, yy, zz, xy, yz, xz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _rebuilt(model: rf.Model, name: str, value: Array) -> rf.Model:
    """The model with a constant changed in its data."""
    who, _, kind = name.rpartition(".")
    if kind == "gravity":
        return rf.with_gravity(model, value)
    if kind == "payload":
        return rf.with_payload(model, who, float(value[0]))
    if kind in ("mass", "com"):
        new = value if kind == "com" else float(value[0])
        return _changed(model, who, lambda b: replace(b, **{kind: new}))
    if kind == "inertia":
        return _changed(model, who, lambda b: replace(b, inertia=_tensor(value)))
    body = next(b.name for b in model.bodies if b.joint.name == who)
    if kind == "armature":
        return _changed(
            model, body, lambda b: replace(b, joint=replace(b.joint, elements=tuple(
                replace(e, armature=float(x)) for e, x in zip(b.joint.machine, value, strict=True)
            ))),
        )  # fmt: skip
    return _changed(
        model, body, lambda b: replace(b, joint=replace(
            b.joint, placement=replace(b.joint.placement, position=value)
        )),
    )  # fmt: skip


@pytest.mark.parametrize("robot", ["stanford_arm", "quadruped"])
def test_every_kind_of_parameter_acts_like_the_changed_robot(robot: str) -> None:
    """Also with joints and bodies whose frames are turned: a value seen from the wrong frame
    fails.
    """
    m = rf.load(robot)
    m = rf.with_tool(m, m.bodies[2].name, "tip", (0.1, -0.2, 0.3))
    rng = np.random.default_rng(5)
    q, v = m.random(2)
    a = rng.normal(size=m.nv)
    known, body = rf.parameters(m), m.bodies[2]
    joint = body.joint.name
    names = [f"{body.name}.{kind}" for kind in ("mass", "com", "inertia")]
    for name in [*names, "tip.payload", f"{joint}.armature", f"{joint}.position", "gravity"]:
        nominal = np.array(known[name].nominal)
        value = nominal + rng.uniform(0.1, 0.4, nominal.size) * (np.abs(nominal) + 0.1)
        if name.endswith("inertia"):
            value[:3] += 1.0
        other = _rebuilt(m, name, value)
        for ask in ("inverse_dynamics", "forward_dynamics"):
            wanted = getattr(other, ask)(q, v, a)
            found = getattr(m, ask)(q, v, a, parameters={name: value})
            assert np.abs(found - wanted).max() < 1e-9 * np.abs(wanted).max(), name
        wanted = other.kinematics(q).position
        assert np.allclose(m.kinematics(q, parameters={name: value}).position, wanted, atol=1e-12)


def test_a_value_for_every_state_and_compiled_like_interpreted() -> None:
    m = rf.load("planar_3r")
    names = [body.name for body in m.bodies]
    q = np.array([m.random(i)[0] for i in range(20)])
    mass, com = np.linspace(1.0, 3.0, 20), np.array([0.1, 0.2, 0.0])
    given = {f"{names[2]}.mass": mass, f"{names[1]}.com": com}
    rows = np.array(
        [
            rf.Model.mass_matrix(m, q[i], parameters={**given, f"{names[2]}.mass": mass[i]})
            for i in range(20)
        ]
    )
    assert np.allclose(m.mass_matrix(q, parameters=given), rows, atol=1e-13)
    p = np.column_stack([mass, np.broadcast_to(com, (20, 3))])
    tiers: tuple[Tier, ...] = ("numpy", "unrolled")
    for tier in tiers:
        assert np.allclose(kernel(m, "mass_matrix", tier, None, tuple(given))(q, p), rows)


def test_derivatives_by_parameters_are_the_regressor() -> None:
    """The force is linear in the inertial parameters: by mass at a fixed centre, it is the
    regressor times d(pi)/dm.
    """
    m = rf.load("stanford_arm")
    q, v = m.random(4)
    a = np.ones(m.nv)
    body = m.bodies[3]
    at = {f"{body.name}.mass": body.mass, f"{body.name}.com": body.com}
    ((*_, by),) = m.derivatives("inverse_dynamics", q, v, a, parameters=at)
    assert by[f"{body.name}.mass"].shape == (m.nv, 1)
    for name, start in at.items():
        step = 1e-5
        for k in range(np.size(start)):
            moved = [np.array(start, dtype=float).reshape(-1) for _ in range(2)]
            moved[0][k] += step
            moved[1][k] -= step
            ahead, behind = (m.inverse_dynamics(q, v, a, parameters={name: x}) for x in moved)
            assert np.allclose(by[name][:, k], (ahead - behind) / (2 * step), atol=1e-6), name
    tensor = (body.com @ body.com) * np.eye(3) - np.outer(body.com, body.com)
    pi = [1.0, *body.com, *np.diag(tensor), tensor[0, 1], tensor[1, 2], tensor[0, 2]]
    Y = m.regressor(q, v, a)[:, 30:40]
    assert np.allclose(by[f"{body.name}.mass"][:, 0], Y @ np.array(pi), atol=1e-9)


def test_loops_know_parameters() -> None:
    m = rf.load("four_bar")
    state = m.assemble({m.coordinates[0]: 0.4}, {m.coordinates[0]: 1.0})
    name = m.bodies[2].name
    heavy = rf.with_payload(m, name, 2.0)
    tau = np.zeros(m.nv)
    wanted = heavy.forward_dynamics(state.q, state.v, tau, multipliers=True)
    found = m.forward_dynamics(
        state.q, state.v, tau, multipliers=True, parameters={f"{name}.payload": 2.0}
    )
    assert all(np.allclose(x, y, rtol=1e-9) for x, y in zip(found, wanted, strict=True))
    wanted_run = rf.rollout(heavy, state.q, state.v, steps=20, dt=1e-3)
    run = rf.rollout(
        m, state.q, state.v, steps=20, dt=1e-3, parameters={f"{name}.payload": [2.0, 0.0]}
    )
    assert np.allclose(run.q[0], wanted_run.q, atol=1e-10)
    plain = rf.rollout(m, state.q, state.v, steps=20, dt=1e-3)
    assert np.allclose(run.q[1], plain.q, atol=1e-10)
    assert not np.allclose(run.q[1], run.q[0])


def test_rollout_of_many_machines() -> None:
    """Masses, gravity, gains, friction and the ground's law vary in one batch; every state is the
    run of a robot that has these numbers.
    """
    made = rf.Builder("hopper").link("trunk", joint="prismatic", axis=(0, 0, 1), mass=5.0)
    made.link("leg", "trunk", axis=(0, 1, 0), mass=0.5, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.01),
              points={"foot": (0.1, 0, -0.4)})  # fmt: skip
    m = made.model()
    q, v = np.array([0.39, 0.1]), np.array([-0.5, 0.3])
    hold = rf.control.PD(rf.motion.Hold(q[1:]), kp=40.0, kd=2.0, actuated=["leg"])
    law = rf.contact.Firm().fitted(m)
    given = {
        "trunk.mass": np.array([4.0, 6.0]),
        "leg.damping": np.array([0.0, 0.5]),
        "leg.friction": np.array([0.3, 0.0]),
        "gravity": np.array([[0.0, 0.0, -9.81], [0.5, 0.0, -9.0]]),
        "control.kp": np.array([40.0, 55.0]),
        "ground.friction": np.array([0.3, 0.9]),
    }
    known = rf.parameters(m, hold, law)
    assert all(known[name].size == np.shape(x)[-1] for name, x in given.items() if np.ndim(x) > 1)
    run = rf.rollout(m, q, v, steps=60, dt=5e-4, control=hold, ground=law, parameters=given)
    for i in range(2):
        friction = {"coulomb": float(given["leg.friction"][i]), "slip_speed": 0.01}
        leg = m.joint("leg")
        elements = rf.Builder("leg").link("leg", mass=1.0, friction=friction if i == 0 else None,
                                          damping=float(given["leg.damping"][i])).model()  # fmt: skip
        drive = replace(leg, elements=elements.joints[0].machine)
        one = _changed(m, "leg", lambda b, drive=drive: replace(b, joint=drive))  # type: ignore[misc]
        mass = given["trunk.mass"][i]
        one = _changed(one, "trunk", lambda b, mass=mass: replace(b, mass=mass))  # type: ignore[misc]
        wanted = rf.rollout(
            rf.with_gravity(one, given["gravity"][i]), q, v, steps=60, dt=5e-4,
            control=replace(hold, kp=float(given["control.kp"][i])),
            ground=replace(law, friction=float(given["ground.friction"][i])),
        )  # fmt: skip
        assert np.allclose(run.v[i], wanted.v, rtol=1e-9)


def test_robots_with_stops_vary_too() -> None:
    """Stops by default are those of the robot as it was given."""
    made = rf.Builder("arm").link(
        "link1", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), limits=[(-1, 1)]
    )
    m = made.link(
        "link2", "link1", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), limits=[(-1, 1)]
    ).model()
    q, v = np.zeros(2), np.full(2, 0.1)
    masses = np.array([1.0, 30.0])
    run = rf.rollout(m, q, v, steps=20, dt=1e-3, parameters={"link2.mass": masses})
    for i, mass in enumerate(masses):
        one = _changed(m, "link2", lambda b, mass=mass: replace(b, mass=mass))  # type: ignore[misc]
        assert np.allclose(run.v[i], rf.rollout(one, q, v, steps=20, dt=1e-3).v, rtol=1e-9)


def test_units_are_those_of_the_joint() -> None:
    b = rf.Builder("cart").link("cart", None, "prismatic", mass=1.0)
    known = rf.parameters(b.link("arm", "cart", mass=1.0).link("nut", "arm", "cylindrical").model())
    keys = ("armature", "damping", "friction", "stiffness")
    turning, sliding = ("kg m^2", "N m s/rad", "N m", "N m/rad"), ("kg", "N s/m", "N", "N/m")
    assert tuple(known[f"arm.{key}"].unit for key in keys) == turning
    assert tuple(known[f"cart.{key}"].unit for key in keys) == sliding
    assert known["nut.damping"].unit == "N m s/rad or N s/m"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"link9.mass": 1.0}, "no parameter 'link9.mass'"),
        ({"link1.mass": -1.0}, "link1.mass is -1 kg; it must be finite and ≥ 0"),
        ({"link1.com": [0.0, 1.0]}, "it must be (..., 3)"),
        ({"gravity": [0.0, np.nan, 1.0]}, "must be finite"),
        ({"link1.inertia": [1.0, 1.0, -5.0, 0.0, 0.0, 0.0]}, "negative principal moment"),
        ({"link1.mass": [1.0, 2.0, 3.0]}, "do not fit together"),
        ({}, "must map names"),
    ],
)
def test_bad_parameters_are_named(given: dict[str, object], says: str) -> None:
    m = rf.load("planar_3r")
    q = np.zeros((2, 3))
    if any("link1" in name for name in given):
        given = {name.replace("link1", m.bodies[0].name): x for name, x in given.items()}
        says = says.replace("link1", m.bodies[0].name)
    with pytest.raises(rf.RamifyError) as error:
        rf.rollout(m, q, q, steps=1, dt=1e-3, parameters=given)  # type: ignore[arg-type]
    assert says in str(error.value)


def test_gains_have_their_units() -> None:
    m, still = rf.load("planar_3r"), rf.motion.Hold(np.zeros(3))
    laws = [rf.control.PID(still), rf.control.ComputedTorque(still)]
    known = rf.parameters(m, rf.control.Sum(laws))
    units = {name: p.unit for name, p in known.items() if name.startswith("control.")}
    assert units == {
        "control.0.kp": "N m/rad or N/m",
        "control.0.ki": "N m/(rad s) or N/(m s)",
        "control.0.kd": "N m s/rad or N s/m",
        "control.1.kp": "1/s^2",
        "control.1.kd": "1/s",
    }


def test_sampled_controllers_know_the_robot_of_their_state() -> None:
    """Also their own numbers may vary, and a function at a rate goes beside them."""
    m = rf.load("planar_3r")
    last, n = m.bodies[-1].name, 9
    rng = np.random.default_rng(2)
    q0, v0, loads, gains = rng.normal(size=(n, 3)), np.zeros(3), *rng.uniform(1, 9, (2, n))
    law = rf.control.ComputedTorque(rf.motion.Hold(np.zeros(3)), rate_hz=100.0)
    function = rf.control.Function(lambda t, q, v: -0.3 * v, vectorized=True)
    both = rf.control.Sum([replace(law, rate_hz=None), function], rate_hz=100.0)
    for control, name in ((law, "control.kp"), (both, "control.0.kp")):
        given = {f"{last}.payload": loads, name: gains}
        batch = rf.rollout(m, q0, v0, steps=40, dt=2e-3, control=control, parameters=given)
        for i in (0, 5, 8):
            own = replace(law, kp=gains[i], rate_hz=control.rate_hz if control is law else None)
            own = own if control is law else replace(both, parts=(own, function))
            robot = rf.with_payload(m, last, loads[i])
            alone = rf.rollout(robot, q0[i : i + 1], v0, steps=40, dt=2e-3, control=own)
            assert np.abs(batch.q[i] - alone.q[0]).max() < 1e-12


def test_what_cannot_vary_is_refused() -> None:
    m = rf.load("planar_3r")
    q = np.zeros(3)
    sampled = rf.control.PID(rf.motion.Hold(q), rate_hz=100.0)
    name = f"{m.bodies[0].name}.mass"
    with pytest.raises(rf.SimulationError, match="PID is sampled and has states"):
        rf.rollout(m, q, q, steps=1, dt=1e-3, control=sampled, parameters={name: 1.0})
    every_stage = rf.control.Function(lambda t, q, v: -q)
    with pytest.raises(rf.SimulationError, match=r"give the function itself \(control=f\)"):
        rf.rollout(m, q, q, steps=1, dt=1e-3, control=every_stage, parameters={name: 1.0})
    chain = rf.load("chain", n=90)
    still, parameters = np.zeros(90), {f"{chain.bodies[0].name}.mass": 1.0}
    with pytest.raises(rf.SimulationError, match="too large"):
        rf.rollout(chain, still, still, steps=1, dt=1e-3, parameters=parameters)
    law = rf.contact.HuntCrossley()
    ball = rf.Builder("ball").link(
        "ball", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1), points={"sole": (0, 0, 0)}
    )
    q = np.array([0, 0, 0.1, 1, 0, 0, 0])
    with pytest.raises(rf.SimulationError, match="decides how the equations are written"):
        rf.rollout(
            ball.model(), q, np.zeros(6), steps=1, dt=1e-4, ground=law,
            parameters={"ground.exponent": 1.5},
        )  # fmt: skip


def test_derivatives_and_jacobians_of_other_constants() -> None:
    """Each state of a batch is that of a robot with these constants."""
    model = rf.load("kuka_kr5")
    rng = np.random.default_rng(3)
    q, v, x = rng.normal(size=(3, 2, 6))
    tip = model.bodies[-1].name
    payloads = {f"{tip}.payload": np.array([0.0, 4.0])}
    out = [np.zeros((2, 6, 6)) for _ in range(3)]
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        found = getattr(model, name)(q, v, x, parameters=payloads, out=out)
        for i, mass in enumerate(payloads[f"{tip}.payload"]):
            heavy = rf.with_payload(model, tip, mass) if mass else model
            for one, known, filled in zip(
                found, getattr(heavy, name)(q[i], v[i], x[i]), out, strict=True
            ):
                assert np.abs(one[i] - known).max() < 1e-8 * np.abs(known).max()
                assert np.array_equal(one, filled)
    joint = next(key for key in rf.parameters(model) if key.endswith(".position"))
    where = rng.normal(size=(2, 3))
    moved = model.jacobian(q, tip, (0.1, 0.0, 0.2), parameters={joint: where})
    step = 1e-6 * v
    ends = [model.kinematics(q + s * step, parameters={joint: where}) for s in (1.0, -1.0)]
    points = [e.position[:, -1] + e.rotation[:, -1] @ np.array([0.1, 0.0, 0.2]) for e in ends]
    speed = (points[0] - points[1]) / 2e-6
    assert np.allclose(np.einsum("nij,nj->ni", moved[:, 3:], v), speed, atol=1e-7)


def test_who_takes_which_parameters_is_said() -> None:
    b = rf.Builder("crane").link("trolley", joint="prismatic", axis=(1, 0, 0), mass=5.0, damping=2)
    m = b.link("load", "trolley", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1)).model()
    z, given = np.zeros(2), {"trolley.damping": 3.0}
    for ask in (
        lambda: m.inverse_dynamics(z, z, z, parameters=given),
        lambda: m.derivatives("forward_dynamics", z, z, z, parameters=given),
    ):
        with pytest.raises(rf.ModelError, match=r"belongs to the machine of crane.*rf\.rollout"):
            ask()
    with pytest.raises(rf.ModelError, match=r"no parameter 'sled\.damping'; did you mean"):
        rf.rollout(m, z, z, steps=1, dt=0.1, parameters={"sled.damping": 3.0})
    with pytest.raises(rf.RamifyError, match="step takes no parameters"):
        m.casadi("step", dt=0.1, parameters=("load.mass",))
    rows = str(rf.parameters(m)).splitlines()
    assert len(rows) == len(rf.parameters(m))
    assert any(row.split() == ["trolley.damping", "2", "N", "s/m"] for row in rows)
    run = rf.rollout(m, z, z, steps=1, dt=0.1)
    assert run.tangent(v0=[1.0, 0.0])._fields == ("q", "v")


def test_derivatives_of_the_machine_by_name() -> None:
    m = rf.Builder("slide").link("a", joint="prismatic", mass=2.0, damping=3.0).model()
    q = np.zeros(1)
    ((by_q, by_v, by_tau),) = m.derivatives("forward_dynamics", q, q, q, passive=True)
    np.testing.assert_allclose([by_q[0, 0], by_v[0, 0], by_tau[0, 0]], [0.0, -1.5, 0.5])
    with pytest.raises(rf.RamifyError, match="passive=True, stops and efforts are for derivatives"):
        m.derivatives("bias", q, q, passive=True)


def test_dynamics_with_constants_of_the_machine() -> None:
    b = rf.Builder("crane")
    b.link("trolley", joint="prismatic", axis=(1, 0, 0), mass=3.0, friction=0.7)
    b.link(
        "load",
        "trolley",
        axis=(0, 1, 0),
        mass=1.0,
        com=(0, 0, -1),
        damping=0.2,
        gravity_compensation=0.5,
    )
    b.actuator("winch", joint="load", kind="motor")
    m, rng, n = b.model(), np.random.default_rng(5), 6
    q, v, a, tau = rng.normal(size=(4, n, 2))
    known = rf.parameters(m)
    given = {
        name: np.array(p.nominal) * rng.uniform(0.8, 1.2) + rng.uniform(0.1, 0.5, (n, p.size))
        for name, p in known.items()
        if not name.endswith((".inertia", ".gain", ".position"))
    }
    given = {name: x[:, 0] if known[name].size == 1 else x for name, x in given.items()}
    wrench = {"load": rng.normal(size=(n, 6))}
    forces = m.inverse_dynamics(q, v, a, wrench, passive=True, parameters=given)
    moved = m.forward_dynamics(q, v, tau, wrench, passive=True, parameters=given)
    for i in range(n):
        own = rf.with_parameters(m, {name: x[i] for name, x in given.items()})
        push = {"load": wrench["load"][i]}
        alone = own.inverse_dynamics(q[i], v[i], a[i], push, passive=True)
        np.testing.assert_allclose(forces[i], alone, rtol=1e-12)
        alone = own.forward_dynamics(q[i], v[i], tau[i], push, passive=True)
        np.testing.assert_allclose(moved[i], alone, rtol=1e-12)
    one = {"load.damping": 0.9}  # of one state, and of no rigid body
    by_hand = m.inverse_dynamics(q, v, a, passive=True)
    by_hand[:, 1] += (0.9 - 0.2) * v[:, 1]
    found = m.inverse_dynamics(q, v, a, passive=True, parameters=one)
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)
    with pytest.raises(rf.ModelError, match=r"'winch\.gain' is that of an actuator.*rf\.rollout"):
        m.inverse_dynamics(q, v, a, passive=True, parameters={"winch.gain": 1.0})


def _difference(f: Callable[[Any], Any], x: Any, step: float = 1e-5) -> Any:
    """The derivatives (..., size) of f by x (..., size), the same in all states."""
    units = step * np.eye(x.shape[-1])
    return np.stack([(f(x + u) - f(x - u)) / (2.0 * step) for u in units], axis=-1)


@pytest.mark.filterwarnings("ignore:.*beyond its limit")
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_derivatives_by_constants_of_the_machine(name: str) -> None:
    b = rf.Builder("crane")
    b.link("trolley", joint="prismatic", axis=(1, 0, 0), mass=3.0, friction=0.7, limits=(-1, 1))
    b.link("load", "trolley", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1), gravity_compensation=0.5)
    m, rng, n = b.model(), np.random.default_rng(8), 5
    q, v, x = rng.uniform(-1.5, 1.5, size=(3, n, 2))
    v[0, 0] = 1e-4  # within the slip speed of its friction
    given = {
        "load.damping": rng.uniform(0.1, 0.9, n),  # the robot itself has none
        "load.mass": rng.uniform(0.5, 2.0, n),  # of a rigid body, and lifted
        "trolley.friction": rng.uniform(0.1, 0.9, n),
        "load.friction": rng.uniform(0.1, 0.9, n),
        "load.stiffness": rng.uniform(1.0, 2.0, n),
        "trolley.armature": rng.uniform(0.1, 0.3, n),
        "gravity": rng.normal(size=(n, 3)),
    }
    ask = getattr(m, name)
    large = np.abs(ask(q, v, x, passive=True, parameters=given)).max()  # at the stops
    ((by_q, by_v, by_x, by),) = m.derivatives(name, q, v, x, passive=True, parameters=given)
    assert list(by) == list(given)
    for i, found in enumerate((by_q, by_v, by_x)):

        def moved(at: Any, i: int = i) -> Any:
            inputs = [q, v, x]
            inputs[i] = at
            return ask(*inputs, passive=True, parameters=given)

        known = _difference(moved, (q, v, x)[i], 1e-6)
        np.testing.assert_allclose(found, known, rtol=1e-4, atol=1e-9 * large)
    for key, value in given.items():

        def other(at: Any, key: str = key, ndim: int = value.ndim) -> Any:
            changed = given | {key: at[:, 0] if ndim == 1 else at}
            return ask(q, v, x, passive=True, parameters=changed)

        known = _difference(other, value[:, None] if value.ndim == 1 else value)
        assert np.abs(known).max() > 1e-3
        np.testing.assert_allclose(by[key], known, rtol=1e-6, atol=1e-10 * large)
    whole = getattr(m, f"{name}_derivatives")(q, v, x, passive=True, parameters=given)
    for found, known in zip(whole, (by_q, by_v, by_x), strict=True):
        assert np.array_equal(found, known)
    one = {"load.damping": 0.9}  # of one state, and of no rigid body
    ((*by_state, by),) = m.derivatives(name, q[0], v[0], x, passive=True, parameters=one)
    assert [found.shape for found in by_state] == [(n, 2, 2)] * 3
    assert by["load.damping"].shape == (n, 2, 1)
    own = rf.with_parameters(m, one)
    known = getattr(own, f"{name}_derivatives")(q[0], v[0], x, passive=True)
    np.testing.assert_allclose(by_state, known, rtol=1e-9, atol=1e-9)


def test_derivatives_by_constants_of_a_machine_with_loops() -> None:
    m = rf.load("four_bar")
    q, v, _ = m.assemble({"crank": 0.6}, {"crank": 1.5})
    tau, key = np.ones(m.nv), "crank.damping"

    def ask(damping: Any) -> Any:
        return m.forward_dynamics(q, v, tau, passive=True, parameters={key: damping[0]})

    ((*_, by),) = m.derivatives("forward_dynamics", q, v, tau, passive=True, parameters={key: 0.5})
    known = _difference(ask, np.array([0.5]))
    assert np.abs(known).max() > 1e-3
    np.testing.assert_allclose(by[key], known, rtol=1e-6, atol=1e-8)
    with pytest.raises(rf.LoopError, match="derivatives of inverse_dynamics take passive=True or"):
        m.derivatives("inverse_dynamics", q, v, v, passive=True, parameters={key: 0.5})


def test_a_grid_of_states_and_robots_is_made_only_on_request() -> None:
    m = rf.load("planar_biped")
    q, v = np.tile(m.neutral(), (4, 1)), np.zeros((4, m.nv))
    q[:, 2] = 2.0  # above the ground
    options = {"steps": 1, "dt": 1e-4, "ground": "firm"}
    given = {"ground.friction": np.full((4, 4), 0.5)}
    with pytest.raises(
        rf.StateError, match=r"ground.friction has shape \(4, 4\).* must be \(4,\);"
    ):
        rf.rollout(m, q, v, **options, parameters=given)
    grid = rf.rollout(m, q[:, None], v[:, None], **options, parameters=given)
    assert grid.q.shape == (4, 4, m.nq)
    assert grid.method == "implicit_extrapolation"
    assert "by implicit_extrapolation" in repr(grid)
    held = rf.control.PD(rf.motion.Hold(np.zeros(m.nv)), kp=3.0)
    with pytest.raises(rf.StateError, match=r"control.kp .*one number for all joints"):
        rf.rollout(m, q, v, **options, control=held, parameters={"control.kp": np.ones((4, m.nv))})
    with pytest.raises(
        rf.ModelError, match=r"no parameter 'ground.friction'; give ground= with it"
    ):
        rf.rollout(m, q, v, steps=1, dt=1e-4, parameters={"ground.friction": 0.5})
    with pytest.raises(rf.ModelError, match=r"^ground: law: law is missing"):
        rf.rollout(m, q, v, steps=1, dt=1e-4, ground={"type": "firm"})
    units = {name: p.unit for name, p in rf.parameters(m, ground="firm").items()}
    assert (units["ground.stiffness"], units["ground.friction"]) == ("N/m", "1")


def test_constants_that_make_a_method_unstable_are_warned_of() -> None:
    """rk4 is chosen for the nominal robot and gains; a state of its own may be too stiff for it."""
    b = rf.Builder("arm")
    b.link("upper", axis=(0, 1, 0), mass=1.5, com=(0.2, 0, 0), inertia=(0.002, 0.02, 0.02))
    b.link("fore", "upper", axis=(0, 1, 0), at=(0.4, 0, 0), mass=1.0, com=(0.15, 0, 0),
           inertia=(0.001, 0.01, 0.01))  # fmt: skip
    m, n = b.model(), 50
    law = rf.control.PD(rf.motion.Hold(np.zeros(2)), kp=60.0, kd=4.0)
    q = np.random.default_rng(0).uniform(-0.3, 0.3, (n, 2))
    given = {"steps": 3, "dt": 5e-3, "control": law}
    wide = {"control.kd": np.linspace(2, 8, n), "fore.mass": np.linspace(1.5, 0.3, n)}
    with pytest.warns(RuntimeWarning, match=rf"too long for rk4 in state {n - 1}: with its param"):
        assert rf.rollout(m, q, 0 * q, parameters=wide, **given).method == "rk4"
    rf.rollout(m, q, 0 * q, parameters=wide, **given)  # once for a range
    near = {"control.kd": np.linspace(3, 4, n), "fore.mass": np.linspace(1.5, 1.0, n)}
    rf.rollout(m, q, 0 * q, parameters=near, **given)
    rf.rollout(m, q, 0 * q, parameters=wide, **given, method="implicit_extrapolation")
