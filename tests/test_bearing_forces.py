"""Forces in all joints of a mechanism: Newton's and Euler's balance of every body, and the same
forces whichever joint is cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_whole import PIN, bar, four_bar, six_bar, spatial

import ramify as rf
from ramify.core.arrays import Array


def slider() -> rf.Mechanism:
    """Both ends of the prismatic joint are away from the body's origin, and it is listed from the
    piston to the base.
    """
    made = rf.Mechanism("slider", gravity=(0, -9.81, 0))
    made.body("crank", **bar(0.2, 1.0)).body("rod", **bar(0.5, 1.0))
    made.body("piston", mass=0.5, inertia=(1e-3, 1e-3, 1e-3))
    made.joint("motor", None, "crank").joint("pin", ("crank", (0.2, 0, 0)), "rod", **PIN)
    made.joint("wrist", ("rod", (0.5, 0, 0)), "piston", **PIN)
    made.joint(
        "bore", ("piston", (0.1, 0.02, 0)), (None, (0.3, 0.02, 0)), "prismatic",
        axis=(-1, 0, 0), actuated=False,
    )  # fmt: skip
    return made.near(motor=1.0, bore=0.3)


MAKERS = {
    "four_bar": (four_bar, (["A"], ["B"], ["O2"])),
    "six_bar": (six_bar, (None, ["a", "d"], ["b", "c"], ["o2", "o3"])),
    "six_bar_with_damping": (lambda: six_bar(damping=0.1), (None, ["a", "d"], ["b", "c"])),
    "spatial": (spatial, (["ball"], ["cross"], ["pivot"])),
    "slider": (slider, (["pin"], ["wrist"], ["bore"])),
}


def turning(model: rf.Model, angle: Any = 0.5) -> Any:
    return model.assemble({"motor": angle}, {"motor": 3.0}, None, {"motor": 0.0})


@pytest.mark.parametrize("name", MAKERS)
def test_forces_do_not_depend_on_the_cut(name: str) -> None:
    make, cuts = MAKERS[name]
    models = [make().model(cut=cut) for cut in cuts]
    found = [m.bearing_forces(*turning(m)) for m in models]
    named = {joint.name for joint in make().joints}
    for forces in found:
        assert {joint for joint in forces if not joint.startswith("weld")} == named
        for joint in named:
            np.testing.assert_allclose(forces[joint], found[0][joint], atol=1e-10)


@pytest.mark.parametrize("name", MAKERS)
def test_every_body_is_in_balance(name: str) -> None:
    """Accelerations by differences of poses; forces of the joints as they are listed, gravity."""
    make, cuts = MAKERS[name]
    made, model = make(), make().model(cut=cuts[0])
    h = 1e-4
    path = turning(model, 0.5 + 3.0 * h * np.arange(-2, 3))
    pose = model.kinematics(path.q)
    forces = model.bearing_forces(*path)
    for spec in made.bodies:
        b = model.body_index(spec.name)
        R, r = pose.rotation[:, b], pose.position[:, b]
        centre = r + R @ spec.com
        rate = np.gradient(R, h, axis=0)
        spin = np.einsum("tij,tkj->tik", rate, R)
        omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)
        world = R @ spec.inertia @ np.swapaxes(R, -1, -2)
        momentum = np.einsum("tij,tj->ti", world, omega)
        force = spec.mass * ((centre[3] - 2 * centre[2] + centre[1]) / h**2 - model.gravity)
        moment = (momentum[3] - momentum[1]) / (2 * h)
        for joint in made.joints:
            wrench = forces[joint.name][2]
            place = joint.second.frame.position
            k = None if joint.second.link is None else model.body_index(joint.second.link)
            point = place if k is None else pose.rotation[2, k] @ place + pose.position[2, k]
            for end, sign in ((joint.second, 1.0), (joint.first, -1.0)):
                if end.link == spec.name:
                    force = force - sign * wrench[3:]
                    arm = np.cross(point - centre[2], wrench[3:])
                    moment = moment - sign * (wrench[:3] + arm)
        np.testing.assert_allclose(force, 0.0, atol=1e-5)
        np.testing.assert_allclose(moment, 0.0, atol=1e-5)


def test_a_free_pin_carries_no_moment_about_its_axis() -> None:
    """The pin 'b' of Watt's linkage is not at the origin of its body."""
    model = six_bar().model()
    path = turning(model, np.linspace(0.0, 6.0, 9))
    forces = model.bearing_forces(*path)
    tau = model.inverse_dynamics(*path)
    for name, wrench in forces.items():
        assert wrench.shape == (9, 6)
        expected = tau[:, model.velocities.index(name)] if name == "motor" else np.zeros(9)
        np.testing.assert_allclose(wrench[:, 2], expected, atol=1e-12)
    single = model.bearing_forces(path.q[3], path.v[3], path.a[3])
    np.testing.assert_allclose(single["b"], forces["b"][3], atol=1e-12)


def test_friction_of_a_run_is_in_the_pins() -> None:
    model = six_bar(damping=0.1).model()
    run = rf.simulate(model, 0.2, model.assemble({"motor": 1.0}).q)
    forces = model.bearing_forces(run.q, run.v, run.a, multipliers=run.loops.multipliers)
    for name in ("a", "b", "c", "d", "o2", "o3"):
        rate = run.v[:, model.velocities.index(name)]
        np.testing.assert_allclose(forces[name][:, 2], -0.1 * rate, atol=1e-9)


def test_trees_have_bearing_forces_too() -> None:
    arm = rf.load("kuka_kr5")
    q, v = arm.random(3)
    push = {"link6": [0.0, 0.0, 0.0, 10.0, 0.0, 0.0]}
    on_bodies: Array = arm.reactions(q, v, 0 * v, push)
    forces = arm.bearing_forces(q, v, 0 * v, push)
    assert list(forces) == [joint.name for joint in arm.joints]
    for b, name in enumerate(forces):
        np.testing.assert_allclose(forces[name][3:], on_bodies[b, 3:])
        axis = (
            arm.kinematics(q).rotation[b]
            @ arm.joints[b].outlet.inverse().rotation
            @ arm.joints[b].axis
        )
        share = axis @ forces[name][:3]
        assert share == pytest.approx(arm.inverse_dynamics(q, v, 0 * v, push)[b], rel=1e-10)
    with pytest.raises(rf.LoopError, match="no multipliers"):
        arm.bearing_forces(q, v, v, multipliers=[1.0])
