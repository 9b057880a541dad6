"""Forces in all joints of a mechanism: Newton's and Euler's balance of every body, and the same
forces whichever joint is cut.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from comparing import close
from given_whole import PIN, bar, four_bar, six_bar, spatial
from linkages import LINKAGES

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


SPACE = {"planar": False}


def leaning(made: rf.Mechanism) -> rf.Mechanism:
    """Its weight also acts across its plane."""
    made.gravity = (0.0, -9.81, 3.0)
    return made


INDETERMINATE = {
    "four_bar_with_pins_of_space": (
        lambda: leaning(four_bar(A=SPACE, B=SPACE, O2=SPACE)), (["A"], ["B"], ["O2"])
    ),
    "leaning_four_bar": (lambda: leaning(four_bar()), (["A"], ["B"], ["O2"])),
    "leaning_six_bar": (lambda: leaning(six_bar()), (None, ["a", "d"], ["b", "c"], ["o2", "o3"])),
    "leaning_six_bar_with_damping": (
        lambda: leaning(six_bar(damping=0.1)), (None, ["a", "d"], ["b", "c"])
    ),
}  # fmt: skip
ALL = MAKERS | INDETERMINATE


def forces_in(name: str, model: rf.Model, state: Any) -> dict[str, Array]:
    """Bearing forces; with a warning where rigid bodies do not determine them, else without."""
    if name in INDETERMINATE:
        with pytest.warns(RuntimeWarning, match=r"statically indeterminate.*\(mx my fz\)"):
            return model.bearing_forces(*state)
    return model.bearing_forces(*state)


def turning(model: rf.Model, angle: Any = 0.5) -> Any:
    return model.assemble({"motor": angle}, {"motor": 3.0}, None, {"motor": 0.0})


@pytest.mark.parametrize("name", ALL)
def test_forces_do_not_depend_on_the_cut(name: str) -> None:
    make, cuts = ALL[name]
    models = [make().model(cut=cut) for cut in cuts]
    found = [forces_in(name, m, turning(m)) for m in models]
    named = {joint.name for joint in make().joints}
    for forces in found:
        assert {joint for joint in forces if not joint.startswith("weld")} == named
        for joint in named:
            np.testing.assert_allclose(forces[joint], found[0][joint], atol=1e-10)


@pytest.mark.parametrize("name", ALL)
def test_every_body_is_in_balance(name: str) -> None:
    """Accelerations by differences of poses; forces of the joints as they are listed, gravity."""
    make, cuts = ALL[name]
    made, model = make(), make().model(cut=cuts[0])
    h = 1e-4
    path = turning(model, 0.5 + 3.0 * h * np.arange(-2, 3))
    pose = model.kinematics(path.q)
    forces = forces_in(name, model, path)
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


# ---- what rigid bodies do not determine ----


@pytest.mark.parametrize("name", ["bennett_0", "bennett_2", "sarrus_0", "goldberg_1", "plane_0"])
def test_forces_of_overconstrained_linkages_do_not_depend_on_the_cut(name: str) -> None:
    """At the start and at the end of a fall."""
    (linkage,) = (x for x in LINKAGES if str(x) == name)
    found = []
    for cut in range(2, linkage.hinges + 1):
        model = linkage.model(cut)
        run = rf.simulate(model, 0.2, linkage.start_of(model), rtol=1e-11, atol=1e-12, dt_out=0.1)
        with pytest.warns(RuntimeWarning, match=r"indeterminate at 3 of 3 states.* j2 \("):
            found.append(run.bearing_forces())
    size = max(np.abs(wrench).max() for wrench in found[0].values())
    assert size > 1.0
    for forces in found[1:]:
        for joint, wrench in forces.items():
            close(wrench, found[0][joint], rtol=0.0, atol=1e-7 * size, of=joint)


def indeterminate(message: str) -> dict[str, list[str]]:
    return {joint: parts.split() for joint, parts in re.findall(r"(\w+) \(([mfxyz ]+)\)", message)}


@pytest.mark.parametrize("cut", ["A", "B", "O2"])
@pytest.mark.parametrize("pins", [{}, SPACE])
def test_what_is_determined_is_as_in_the_plane(pins: dict[str, Any], cut: str) -> None:
    """A load across the plane changes nothing in it, and nothing of a plane load is across it."""
    options = dict.fromkeys(("A", "B", "O2"), pins)
    plane, model = four_bar().model(cut=["A"]), four_bar(**options).model(cut=[cut])
    exact = plane.bearing_forces(*turning(plane))
    for joint, wrench in model.bearing_forces(*turning(model)).items():
        close(wrench, exact[joint], rtol=0.0, atol=1e-10, of=joint)
    side = {"coupler": [0.0, 0.0, 0.0, 0.0, 0.0, 10.0]}
    with pytest.warns(RuntimeWarning) as raised:
        found = model.bearing_forces(*turning(model), wrenches=side)
    parts = indeterminate(str(raised[0].message))
    assert parts == {joint: ["mx", "my", "fz"] for joint in ("motor", "A", "B", "O2")}
    for joint, wrench in found.items():
        close(wrench[2:5], exact[joint][2:5], rtol=0.0, atol=1e-10, of=joint)
    close(found["motor"][5] + found["O2"][5], -10.0, of="both pivots together")


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("cut", ["A", "B", "C", "D"])
def test_a_load_in_the_middle_is_shared_by_halves(cut: str, planar: bool) -> None:
    """A rectangle and its load are their own mirror images."""
    made = rf.Mechanism("rectangle", gravity=(0, 0, 0))
    for name, length in (("left", 0.2), ("top", 0.5), ("right", 0.2)):
        made.body(name, **bar(length, 1.0))
    pin = {"actuated": False, "planar": planar}
    made.joint("A", None, "left", **pin).joint("B", ("left", (0.2, 0, 0)), "top", **pin)
    made.joint("C", ("top", (0.5, 0, 0)), ("right", (0.2, 0, 0)), **pin)
    made.joint("D", (None, (0.5, 0, 0)), "right", **pin)
    up = {"A": 0.5 * np.pi, "B": -0.5 * np.pi, "C": 0.5 * np.pi, "D": 0.5 * np.pi}
    model = made.near(**up).model(cut=[cut])
    q = [up[name] for name in model.coordinates]
    load = {"top": [0.0, -2.5, 0.0, 0.0, 0.0, 10.0]}  # 10 N at 0.25 m
    rest = np.zeros(model.nv)
    with pytest.warns(RuntimeWarning, match="statically indeterminate"):
        found = model.bearing_forces(q, rest, rest, load)
    close([found["A"][5], found["D"][5]], -5.0, atol=1e-12, of="pivots")
    close(found["A"][0], found["D"][0], atol=1e-12, of="moments about x")
    close(found["A"][1], -found["D"][1], atol=1e-12, of="moments about y")


def test_states_that_are_not_known_stay_so() -> None:
    """And change nothing in the others, nor does what moves outside of the loop."""
    model = leaning(four_bar(A=SPACE)).model(cut=["A"])
    q, v, a = (np.stack([x, np.nan * x]) for x in turning(model))
    with pytest.warns(RuntimeWarning, match="at 1 of 2 states"):
        found = model.bearing_forces(q, v, a)
    with pytest.warns(RuntimeWarning, match="statically indeterminate: rigid"):
        alone = model.bearing_forces(*turning(model))
    for joint, wrench in found.items():
        close(wrench[0], alone[joint], rtol=0.0, atol=1e-12, of=joint)
        assert np.isnan(wrench[1]).all()


def test_missing_loads_are_among_the_reasons() -> None:
    model = four_bar(motor={"actuated": False}).model()
    with pytest.raises(rf.LoopError, match=r"give the loads as wrenches=…"):
        model.bearing_forces(*turning(model))
