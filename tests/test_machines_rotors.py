"""Rotors: reflected inertia in every algorithm and tier, against Pinocchio; read and written."""

from __future__ import annotations

import ctypes
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from peers import pinocchio_of, random_model, states

import ramify as rf
from ramify.api.model import Model
from ramify.files.robot_writer import to_yaml
from ramify.files.urdf_writer import to_urdf
from ramify.formulations import denoc_matrices, equations
from ramify.model.elements import Element
from ramify.trace.interpret import interpret

SERIAL = ["revolute", "prismatic", "helical"]


def with_rotors(model: Model, seed: int) -> Model:
    rng = np.random.default_rng(seed)
    return replace(
        model,
        bodies=tuple(
            replace(
                body,
                joint=replace(
                    body.joint,
                    elements=tuple(Element(armature=x) for x in rng.uniform(0, 3, body.joint.dof)),
                ),
            )
            for body in model.bodies
        ),
    )


def rotors(model: Model) -> np.ndarray:
    return np.array([link.rotor for link in model.skeleton.links])


@pytest.mark.parametrize("seed", range(6))
def test_pinocchio_with_the_same_armature_agrees(seed: int) -> None:
    m = with_rotors(random_model(seed, SERIAL), seed)
    peer = pinocchio_of(m)
    peer.armature = rotors(m)
    data = peer.createData()
    for q, v, a in zip(*states(m, 3, seed), strict=True):
        tau = m.inverse_dynamics(q, v, a)
        wanted = pin.rnea(peer, data, q, v, a)
        assert_allclose(tau, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
        assert_allclose(m.forward_dynamics(q, v, tau), a, rtol=1e-10, atol=1e-11)
        found = pin.aba(peer, data, q, v, tau)
        assert_allclose(
            m.forward_dynamics(q, v, tau), found, rtol=1e-12, atol=1e-12 * np.abs(found).max()
        )
        M = pin.crba(peer, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        assert_allclose(m.mass_matrix(q), M, rtol=1e-12, atol=1e-12 * np.abs(M).max())
        U, D = m.udu(q)
        assert_allclose(U @ D @ U.T, M, rtol=1e-12, atol=1e-12 * np.abs(M).max())
        assert_allclose(m.mass_matrix_inverse(q) @ M, np.eye(m.nv), atol=1e-11)
        assert_allclose(m.energy(q, v).kinetic, 0.5 * v @ M @ v, rtol=1e-12)
        for ours, theirs in (
            (
                m.inverse_dynamics_derivatives(q, v, a),
                pin.computeRNEADerivatives(peer, data, q, v, a),
            ),
            (
                m.forward_dynamics_derivatives(q, v, tau),
                pin.computeABADerivatives(peer, data, q, v, tau),
            ),
        ):
            for x, y in zip(ours, theirs, strict=True):
                y = np.triu(y) + np.triu(y, 1).T if y is theirs[2] else y
                assert_allclose(x, y, rtol=1e-12, atol=2e-12 * np.abs(y).max())
        assert_allclose(
            m.regressor(q, v, a) @ m.inertial_parameters,
            tau,
            rtol=1e-11,
            atol=1e-11 * np.abs(tau).max(),
        )
        hybrid = m.hybrid_dynamics(q, v, a[1:])
        free = m.forward_dynamics(q, v, np.r_[0.0, hybrid.tau])
        assert_allclose(free, np.r_[hybrid.acceleration, a[1:]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kinds", [SERIAL, ["ball", "revolute"], ["universal", "free", "planar"]])
def test_every_tier_gives_the_same(kinds: list[str]) -> None:
    m = with_rotors(random_model(11, kinds, 5), 4)
    q, v, a = states(m, 9, 2)
    for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "udu", "energy"):
        given = (q, v, a)[: {"mass_matrix": 1, "udu": 1, "energy": 2}.get(name, 3)]
        plain = m.kernel(name, "numpy")(*given)
        for tier in ("unrolled", "rolled"):
            for x, y in zip(
                np.atleast_1d(m.kernel(name, tier)(*given))
                if not isinstance(plain, tuple)
                else m.kernel(name, tier)(*given),
                plain,
                strict=True,
            ):
                assert_allclose(x, y, rtol=1e-9, atol=1e-10 * np.abs(np.asarray(y)).max())
    M, ideal = m.mass_matrix(q), with_rotors(m, 4)
    bare = replace(
        ideal, bodies=tuple(replace(b, joint=replace(b.joint, elements=())) for b in m.bodies)
    )
    assert_allclose(
        M - bare.mass_matrix(q), np.broadcast_to(np.diag(rotors(m)), M.shape), atol=1e-12
    )


def test_the_interpreter_and_c_give_the_same(tmp_path: Path) -> None:
    m = with_rotors(rf.load("kuka_kr5"), 1)
    q, v = m.random(3)
    tau = np.arange(6.0)
    kernel = m.kernel("forward_dynamics", "unrolled")
    wanted = kernel(q, v, tau)
    (found,) = interpret(kernel.program, [q[None], v[None], tau[None]])
    assert_allclose(found[0], wanted, rtol=1e-12)
    header, text = kernel.c_source()
    (tmp_path / "kuka_kr5_forward_dynamics.h").write_text(header)
    source, library = tmp_path / "fd.c", tmp_path / "fd.so"
    source.write_text(text)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    entry = ctypes.CDLL(str(library)).kuka_kr5_forward_dynamics
    out = np.zeros(6)
    entry(*(ctypes.c_void_p(np.ascontiguousarray(x).ctypes.data) for x in (q, v, tau, out)))
    assert_allclose(out, wanted, rtol=1e-12)


def test_a_robot_without_rotors_costs_nothing_more() -> None:
    m = rf.load("kuka_kr5")
    ideal = m.op_count("inverse_dynamics")
    geared = with_rotors(m, 0).op_count("inverse_dynamics")
    assert (geared.add - ideal.add, geared.mul - ideal.mul) == (6, 6)


def test_a_rotor_behind_a_gear_turns_a_pendulum() -> None:
    """The joint's inertia is m l^2 + J G^2: the small oscillation's frequency in closed form."""
    mass, length, inertia, gear = 2.0, 0.5, 3e-4, -60.0
    b = rf.Builder("pendulum", gravity=(0, -9.81, 0))
    b.link("bob", mass=mass, com=(0, -length, 0), rotor={"inertia": inertia, "gear": gear})
    m = b.model()
    whole = mass * length**2 + inertia * gear**2
    assert_allclose(m.mass_matrix([0.3]), [[whole]], rtol=1e-15)
    assert_allclose(
        m.forward_dynamics([0.3], [0.0], [0.0]), [-mass * 9.81 * length * np.sin(0.3) / whole]
    )


def test_files_carry_rotors(tmp_path: Path) -> None:
    m = with_rotors(random_model(3, ["universal", "revolute"], 4), 2)
    (tmp_path / "m.yaml").write_text(to_yaml(m))
    again = rf.load(tmp_path / "m.yaml")
    assert [j.elements for j in again.joints] == [j.elements for j in m.joints]
    xml = tmp_path / "m.xml"
    xml.write_text(
        '<mujoco><worldbody><body><joint name="j" armature="0.2"/><geom size="0.1"/></body>'
        '</worldbody><actuator><motor joint="j" gear="3" armature="0.5"/></actuator></mujoco>'
    )
    assert rf.load(xml).joints[0].armature == (0.2 + 9 * 0.5,)


def test_from_dh_takes_rotors() -> None:
    m = rf.from_dh([(0, 0, 0, 0)], [1.0], [(0.1, 0, 0)], [(0, 0, 0.1)], machine=[{"armature": 0.7}])
    assert m.joints[0].armature == (0.7,)


def test_equations_name_the_rotors_and_formulations_refuse_them() -> None:
    m = with_rotors(rf.load("planar_3r"), 0)
    assert "J2" in equations(m, symbols=True).parameters
    with pytest.raises(rf.ModelError, match="has a rotor"):
        denoc_matrices(m, np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("armature: -1", "armature.* -1 "),
        ("rotor: {inertia: 1, gear: 0}", "rotor.gear is 0"),
        ("rotor: {inertia: 1}\n      armature: 2", "exclude each other"),
        ("friction: -2", "friction.* -2 "),
        ("friction: {coulomb: 3, static: 1, stribeck_speed: 0.1}", "below the sliding friction 3"),
        ("friction: {coulomb: 3, lugre: {stiffness: 0}}", "lugre.*stiffness.* 0"),
        ("friction: {coulomb: 0, static: 1, stribeck_speed: 1, lugre: {}}", "lugre needs"),
        ("damping: {linear: 1, quadratic: -3, cubic: 1}", "would make energy"),
        ("damping: [1, 2]", "2 entries for 1 coordinate of"),
        ("spring: {stiffnes: 2}", "stiffnes.*unknown key"),
        ("stop: {time: 0.01, stiffness: 100}", "give one pair"),
        ("effort: -5", "effort.* -5 "),
    ],
)
def test_wrong_data_is_named_with_file_line_and_key(line: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "robot.yaml"
    file.write_text(
        f"name: r\nlinks:\n  - name: a\n    joint:\n      {line}\n    frame: {{}}\n    mass: 1\n"
    )
    with pytest.raises(rf.ModelError, match=words) as found:
        rf.load(file)
    assert f"{file}:5" in str(found.value) or f"{file}:6" in str(found.value)


def test_urdf_files_name_a_transmission_for_every_gear_and_for_nothing_else() -> None:
    b = rf.Builder("two")
    solid = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    b.link("geared", rotor={"inertia": 1e-3, "gear": 30.0}, **solid)
    b.link("direct", "geared", rotor={"inertia": 1e-3, "gear": 1.0}, **solid)
    b.link("plain", "direct", joint="prismatic", **solid)
    text = to_urdf(b.model())
    assert re.findall(r'<transmission name="(.*?)">', text) == ["geared_transmission"]
    assert re.findall(r"<mechanicalReduction>(.*?)<", text) == ["30.0"]
