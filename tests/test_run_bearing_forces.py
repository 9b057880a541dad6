"""Forces in the joints of a run under all its loads: Newton's and Euler's balance of every body by
hand, and refusals where a load is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.core.arrays import Array


def acceleration(model: rf.Model, r: rf.Result, name: str) -> tuple[Array, Array, Array, Array]:
    """Of a body: that of its mass centre (T, 3), the rate of its angular momentum about it, the
    rotation and the place of the centre.
    """
    b = model.body_index(name)
    body, pose = model.bodies[b], model.kinematics(r.q)
    tree = model.tree
    R, centre = pose.rotation[:, b], pose.position[:, b] + pose.rotation[:, b] @ body.com
    motion = tree.frame_motion(r.q, r.v, r.a, name, body.com)
    w, alpha = motion.velocity[:, :3], motion.acceleration[:, :3]
    inertia = R @ body.inertia @ np.swapaxes(R, -1, -2)
    spin = np.einsum("tij,tj->ti", inertia, w)
    moment = np.einsum("tij,tj->ti", inertia, alpha) + np.cross(w, spin)
    return motion.acceleration[:, 3:], moment, R, centre


def balance(model: rf.Model, r: rf.Result, loads: dict[str, list[tuple[Array, Array]]]) -> None:
    """Every body: its joints, loads [(wrench (T, 6), point (T, 3)), …] and its weight give it the
    acceleration of the run. Joints connect origins here.
    """
    forces = r.bearing_forces()
    pose = model.kinematics(r.q)
    size = max(np.abs(f).max() for f in forces.values())
    acting: dict[str, list[tuple[Array, Array]]] = {body.name: [] for body in model.bodies}
    for b, body in enumerate(model.bodies):
        joint = (forces[body.joint.name], pose.position[:, b])
        acting[body.name].append(joint)
        if body.parent >= 0:
            acting[model.bodies[body.parent].name].append((-joint[0], joint[1]))
    for loop in model.loops:
        point = model.pose(r.q, loop.second.link).position
        point = point + model.pose(r.q, loop.second.link).rotation @ loop.second.frame.position
        acting[loop.second.link].append((forces[loop.name], point))
        acting[loop.first.link].append((-forces[loop.name], point))
    for name, more in loads.items():
        acting[name] += more
    for body in model.bodies:
        a, moment, _, centre = acceleration(model, r, body.name)
        force = body.mass * (a - np.array(model.gravity))
        for wrench, point in acting[body.name]:
            force = force - wrench[:, 3:]
            moment = moment - wrench[:, :3] - np.cross(point - centre, wrench[:, 3:])
        close(force, 0.0, atol=1e-9 * size, of=f"force missing at {body.name}")
        close(moment, 0.0, atol=1e-9 * size, of=f"moment missing at {body.name}")


# ---- a slider-crank under gas pressure ----

GAS = -2.56e4  # N


def gas(t: float) -> dict[str, list[float]]:
    return {"slider": [0.0, 0.0, 0.0, 0.0, GAS * np.cos(30.0 * t), 0.0]}


@pytest.fixture(scope="module")
def engine() -> rf.Result:
    model = rf.load("slider_crank")
    start = model.assemble({"crank": 0.6}, {"crank": 20.0})
    return rf.simulate(model, 0.1, start.q, start.v, wrenches=gas, dt_out=0.005)


def test_pistons_carry_no_force_along_their_bore(engine: rf.Result) -> None:
    """Newton by hand: 0.5 kg of piston under gas, wrist pin and bore."""
    model, forces = engine.model, engine.bearing_forces()
    pushed = engine.wrenches["slider"][:, 3:]
    assert np.abs(pushed).max() > 2e4
    slide = model.joint("slider")
    a = engine.a[:, 2:] * (slide.placement.rotation @ slide.axis)
    weight = 0.5 * np.array(model.gravity)
    sign = 1.0 if model.loops[0].second.link == "slider" else -1.0
    bore = 0.5 * a - weight - pushed - sign * forces["pin"][:, 3:]
    close(forces["slider"][:, 3:], bore, 1e-12, 1e-7, "force of the bore")
    close(forces["slider"][:, 4], 0.0, atol=1e-7, of="force along the bore")
    close(forces["crank"][:, 2], 0.0, atol=1e-7, of="torque of an idle crank")
    assert np.abs(forces["slider"][:, 3]).max() > 1e3  # the side force


def test_every_body_of_the_engine_is_in_balance(engine: rf.Result) -> None:
    place = engine.model.pose(engine.q, "slider").position
    balance(engine.model, engine, {"slider": [(engine.wrenches["slider"], place)]})


def test_damping_of_a_run_is_in_the_joints() -> None:
    """Viscous friction of ``damping=`` acts along the free directions of a closed robot."""
    model = rf.load("slider_crank")
    start = model.assemble({"crank": 0.6}, {"crank": 20.0})
    r = rf.simulate(model, 0.05, start.q, start.v, wrenches=gas, damping=0.8, dt_out=0.005)
    place = model.pose(r.q, "slider").position
    balance(model, r, {"slider": [(r.wrenches["slider"], place)]})
    forces = r.bearing_forces()
    slide = model.joint("slider").placement.rotation @ model.joint("slider").axis
    close(forces["slider"][:, 3:] @ slide, -0.8 * r.v[:, 2], 1e-9, 1e-6, "along the bore")
    close(forces["crank"][:, 2], -0.8 * r.v[:, 0], 1e-9, 1e-6, "about the crank")


def test_a_load_that_is_left_out_is_refused(engine: rf.Result) -> None:
    """Without the gas, the slide would have to carry it."""
    model, lam = engine.model, engine.loops.multipliers
    with pytest.raises(rf.StateError, match=r"'slider' .* state 0 takes 2\.56e\+04 N along it"):
        model.bearing_forces(engine.q, engine.v, engine.a, multipliers=lam)
    pushes = {
        "slider": np.where(np.arange(len(engine))[:, None] == 1, 0, engine.wrenches["slider"])
    }
    with pytest.raises(rf.StateError, match=r"state 1 takes .*r\.bearing_forces\(\)"):
        model.bearing_forces(engine.q, engine.v, engine.a, pushes, lam)
    found = model.bearing_forces(
        engine.q, engine.v, engine.a, {"slider": engine.wrenches["slider"]}, lam
    )
    for name, wrench in engine.bearing_forces().items():
        close(found[name], wrench, 1e-9, 1e-6, name)


def test_runs_in_files_carry_the_same(engine: rf.Result, tmp_path: Path) -> None:
    engine.save(tmp_path / "r.nc")
    again = rf.Result.open(tmp_path / "r.nc").bearing_forces()
    for name, wrench in engine.bearing_forces().items():
        assert np.array_equal(again[name], wrench)


# ---- an arm with everything ----


def arm(**machine: Any) -> rf.Model:
    b = rf.Builder("arm")
    solid: dict[str, Any] = {"mass": 2.0, "com": (0.2, 0.01, 0), "inertia": (0.01, 0.03, 0.02)}
    b.link("upper", axis=(0, 1, 0), **solid, **machine)
    b.link("fore", "upper", at=(0.4, 0, 0), axis=(0, 1, 0), **solid, actuated=False, **machine)
    return b.model()


LAWS: dict[str, Callable[[], dict[str, Any]]] = {
    "torque": lambda: {"control": rf.control.Torque([15.0, 0.0])},
    "function": lambda: {
        "control": rf.control.Function(
            lambda t, q, v: [10.0 - v[0], -2.0 * v[1]], actuated=["upper", "fore"]
        )
    },
    "sampled": lambda: {"control": rf.control.Function(lambda t, q, v: [12.0], rate_hz=50.0)},
    "damping": lambda: {"damping": 0.7},
    "implicit": lambda: {"damping": 0.7, "step": 1e-3, "method": "implicit_euler"},
}
MACHINES: dict[str, dict[str, Any]] = {
    "ideal": {},
    "springs": {"spring": {"stiffness": 20.0}, "damping": 0.4, "friction": 0.3},
    "bristles": {"friction": {"coulomb": 0.4, "lugre": {}}},
    "stops": {"limits": [(-0.2, 0.3)]},
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("law", LAWS)
def test_an_arm_with_a_push(law: str, machine: str) -> None:
    model = arm(**MACHINES[machine])
    push = {"fore": [1.0, 2.0, -1.0, 30.0, -20.0, 10.0]}
    r = rf.simulate(model, 0.3, wrenches=[(0.05, 0.2, push)], **LAWS[law]())
    place = model.pose(r.q, "fore").position
    balance(model, r, {"fore": [(r.wrenches["fore"], place)]})
    damping = 0.7 if "damping" in LAWS[law]() else 0.0
    along = r.tau + r.passive.total - damping * r.v
    for j, name in enumerate(model.velocities):
        found = r.bearing_forces()[name][:, 1]
        close(found, along[:, j], 1e-9, 1e-8, f"moment about the axis of {name}")


def test_a_held_arm_by_hand() -> None:
    """At rest, the shoulder carries all weights less the push."""
    model = arm()
    hold = rf.control.Prescribed(rf.motion.Hold([0.3, -0.2]), actuated=["upper", "fore"])
    push = np.array([0.0, 0.0, 0.0, 30.0, -20.0, 10.0])
    r = rf.simulate(model, 0.1, [0.3, -0.2], control=hold, wrenches={"fore": push})
    forces = r.bearing_forces()
    close(forces["fore"][:, 3:], [-30.0, 20.0, 2.0 * 9.81 - 10.0], 1e-9, 1e-9, "elbow")
    close(forces["upper"][:, 3:], [-30.0, 20.0, 4.0 * 9.81 - 10.0], 1e-9, 1e-9, "shoulder")


def test_rotors_take_their_share_before_the_joint() -> None:
    """2 kg m^2 of rotor and 2 kg m^2 of wheel under 8 N m: the joint hands on 4."""
    b = rf.Builder("wheel", gravity=(0, 0, 0))
    b.link("rim", axis=(0, 0, 1), mass=1.0, inertia=(2, 2, 2), armature=2.0)
    r = rf.simulate(b.model(), 0.2, control=rf.control.Torque([8.0]))
    close(r.bearing_forces()["rim"][:, 2], 4.0, 1e-9, of="moment about the axis")


# ---- on the ground ----


def test_a_block_on_the_ground() -> None:
    """Its base carries nothing; a mast on it carries its own weight."""
    b = rf.Builder("block")
    points = {
        f"p{i}": (x, y, -0.1) for i, (x, y) in enumerate(((1, 1), (-1, 1), (1, -1), (-1, -1)))
    }
    b.link("block", joint="free", mass=10.0, inertia=(3, 3, 3), points=points)
    b.link(
        "mast", "block", at=(0, 0, 0.1), axis=(0, 1, 0), mass=2.0, com=(0, 0, 0.4),
        inertia=(0.1, 0.1, 0.1), damping=1.0, actuated=False,
    )  # fmt: skip
    model = b.model()
    q0 = np.array([0.0, 0, 0.1, 1, 0, 0, 0, 0.05])
    r = rf.simulate(model, 0.5, q0, ground="firm")
    forces = r.bearing_forces()
    size = 12.0 * 9.81
    close(forces["block"], 0.0, atol=1e-9 * size, of="wrench of the free joint")
    close(forces["mast"][:, 1], -1.0 * r.v[:, 6], 1e-9, 1e-9, "friction of the mast")
    places = r.contacts.position
    loads = [
        (np.concatenate([0 * f, f], axis=-1), places[:, i])
        for i, f in enumerate(np.moveaxis(r.contacts.force, 1, 0))
    ]
    balance(model, r, {"block": loads})
    with pytest.raises(rf.StateError, match=r"'block\.z' of 'block' moves freely"):
        model.bearing_forces(r.q, r.v, r.a)
