"""Passive forces: power balance of every part, laws in closed form, tiers, and what files say."""

from __future__ import annotations

import ctypes
import math
import subprocess
import warnings
from dataclasses import replace
from functools import partial
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pages import PAGES
from test_machines_mjcf import CHAIN, ROWS, written

import ramify as rf
from ramify.api.model import Model
from ramify.drives.element_laws import decay
from ramify.drives.machine_forces import (
    actuator_kernel,
    actuator_text,
    machine_dynamics,
    passive_kernel,
    passive_text,
)
from ramify.drives.passive import joint_inertia
from ramify.files.urdf_writer import to_urdf
from ramify.model.elements import Element, Friction
from ramify.model.machine import Actuator
from ramify.plant.joint_gains import machine_gains
from ramify.runtime import backend
from ramify.runtime.kernel import Kernel
from ramify.trace.interpret import interpret


def arm(**friction: object) -> Model:
    """Every element at once: on a hinge, a slide, a ball and a free joint."""
    b = rf.Builder("arm")
    solid = {"mass": 1.3, "com": (0.2, 0.1, 0.05), "inertia": (0.03, 0.04, 0.05)}
    b.link(
        "upper",
        limits=[(-1.0, 1.0)],
        armature=0.1,
        effort=10.0,
        damping={"linear": 0.1, "quadratic": 0.2, "cubic": 0.3},
        friction={
            "coulomb": {"forward": 1.0, "backward": 2.0},
            "static": 4.0,
            "stribeck_speed": 0.2,
            **friction,
        },
        spring={"stiffness": [3.0, 0.4, 0.5], "rest": 0.2},
        **solid,
    )
    b.link(
        "rod",
        "upper",
        "prismatic",
        limits=[(-0.1, 0.2)],
        stop={"stiffness": 900.0, "damping": 30.0},
        friction=0.5,
        **solid,
    )
    rest = [0.8, 0.0, 0.6, 0.0]
    b.link(
        "wrist",
        "rod",
        "ball",
        spring={"stiffness": [2.0, 1.0, 1.0], "rest": rest},
        cone=0.5,
        damping=0.2,
        **solid,
    )
    b.link(
        "flyer",
        None,
        "free",
        spring=[{"stiffness": 5.0, "rest": [0.1, 0.2, 0.3]}] * 3
        + [{"stiffness": 0.7, "rest": rest}] * 3,
        **solid,
    )
    return b.model()


@pytest.mark.parametrize("seed", range(8))
def test_the_power_of_every_part_is_stored_or_lost(seed: int) -> None:
    """F · v = -dV/dt - loss, part by part: a wrong sign, frame or factor breaks it."""
    m = arm()
    q, v = m.random(seed)
    found, h = m.passive_forces(q, v), 1e-6
    q0, q1 = m.integrate(q, v, -h), m.integrate(q, v, h)
    before, after = m.passive_forces(q0, 0 * v).stored, m.passive_forces(q1, 0 * v).stored
    assert set(found.parts) == {"spring", "damping", "friction", "stop"}
    for part, force in found.parts.items():
        rate = (after[part] - before[part]) / (2.0 * h)
        assert_allclose(force @ v, -rate - found.loss[part], rtol=1e-6, atol=1e-6)
        assert found.loss[part] >= 0.0
    assert_allclose(sum(found.parts.values()), found.total)


def test_laws_in_closed_form() -> None:
    m = arm()
    q, v = m.neutral(), np.zeros(m.nv)
    q[0], v[0] = 0.7, -2.0
    parts = m.passive_forces(q, v).parts
    x = 0.5
    assert_allclose(parts["spring"][0], -(3.0 + 0.4 * x + 0.5 * x * x) * x)
    assert_allclose(parts["damping"][0], (0.1 + 0.2 * 2.0 + 0.3 * 4.0) * 2.0)
    g = 1.5 + 2.5 / (1.0 + (2.0 / 0.2) ** 2)
    slip = 4.0e-3 / joint_inertia(m)[0]
    s = -2.0 / np.hypot(2.0, slip)
    assert_allclose(parts["friction"][0], -g * (s - s * s / 3.0))
    assert parts["stop"][0] == 0.0
    v[:], q[1] = 0.0, 0.2 + 0.01
    assert_allclose(m.passive_forces(q, v).parts["stop"][1], -900.0 * 0.01)
    v[1] = -10.0  # leaving: the stop lets go, it does not hold back
    assert m.passive_forces(q, v).parts["stop"][1] == 0.0


@pytest.mark.parametrize("velocity", [None, 2.0])
def test_friction_of_a_light_joint_is_whole_at_working_speed(velocity: float | None) -> None:
    """Though friction alone would stop a hundred times that speed in a millisecond."""
    rated = {} if velocity is None else {"velocity": velocity}
    b = rf.Builder("wrist").link("tool", mass=0.01, inertia=(1e-5,) * 3, friction=1.0, **rated)
    m = b.model()
    most = 0.05 if velocity is None else 0.01 * velocity
    assert passive_text(m).slip(0) == most
    assert_allclose(m.passive_forces([0.0], [most * 10.0]).total, [-1.0], rtol=6e-3)
    heavy = rf.Builder("hip").link("leg", mass=1.0, inertia=(2.0,) * 3, friction=1.0, **rated)
    assert_allclose(passive_text(heavy.model()).slip(0), 1e-3 / 2.0)


def test_a_ball_springs_back_along_the_shortest_way() -> None:
    m = arm()
    q, still = m.neutral(), np.zeros(m.nv)
    ball = m.joint_slice("wrist", "q")
    for sign in (1.0, -1.0):
        q[ball] = sign * np.array([0.8, 0.0, 0.6, 0.0])
        assert_allclose(
            m.passive_forces(q, still).parts["spring"][m.joint_slice("wrist")], 0.0, atol=1e-12
        )


def in_c(kernel: Kernel, inputs: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    """What the C code of a kernel gives for one state."""
    header, text = kernel.c_source()
    name = text.split('#include "')[1].split(".h")[0]
    (folder / f"{name}.h").write_text(header)
    (folder / "k.c").write_text(text)
    library = folder / f"{name}.so"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", folder / "k.c", "-o", library, "-lm"], check=True
    )
    out = [np.zeros(port.shape) for port in kernel.program.outputs]
    arrays = [np.ascontiguousarray(x) for x in inputs] + out
    getattr(ctypes.CDLL(str(library)), name)(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
    return out


def test_all_forms_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreter = NumPy = C = unrolled and rolled kernels of 1 to 8 lanes, every element at
    once.
    """
    m, rng = arm(lugre={"time": 0.01}), np.random.default_rng(5)
    q, v = (np.array([m.random(i)[k] for i in range(11)]) for k in (0, 1))
    z = rng.normal(size=(11, 1)) * 1e-3
    driven = rf.load(written(tmp_path, CHAIN, ROWS))
    states = [driven.random(i) for i in range(11)]
    u = rng.normal(size=(11, len(driven.actuators)))
    w = rng.normal(size=(11, actuator_text(driven).states))

    for made, inputs in (
        (lambda tier: passive_kernel(passive_text(m), tier, True), [q, v, z]),
        (
            lambda tier: actuator_kernel(driven, tier),
            [*(np.array(x) for x in zip(*states, strict=True)), u, w],
        ),
    ):
        plain, fast = made("numpy"), made("unrolled")
        wanted = plain(*inputs)
        for found, want in zip(interpret(fast.program, inputs), wanted, strict=True):
            assert_allclose(found, want, rtol=1e-12, atol=1e-10)
        for found, want in zip(in_c(fast, [x[0] for x in inputs], tmp_path), wanted, strict=True):
            assert_allclose(found, want[0], rtol=1e-11, atol=1e-9)
        for compiled in (fast, made("rolled")):
            agree_at_every_width(compiled, inputs, wanted, monkeypatch)


DRIVES = (
    Actuator("motor", "l0", gear=(3.0,), command=(-0.5, 0.6), force=(-0.4, math.inf)),
    Actuator("shifted", "l2", gain=(1.0, 0.5, -0.2), bias=(0.3, -2.0, -0.3), force=(0.1, 0.5)),
    Actuator("filter", "l3", activation="filter", time=0.1, gear=(-2.0,), early=True, step=0.02),
    Actuator(
        "exact", "l4", activation="filterexact", time=0.05, early=True, step=0.02,
        activations=(-0.3, 0.2), gain=(2.0, 0.0, 0.0),
    ),
    Actuator("integrator", "l5", activation="integrator", command=(-0.1, 0.2), gear=(0.5,)),
    Actuator("second", "l5", gain=(2.0, 0.0, 0.0)),
    Actuator("twist", "l1", gear=(0.3, -0.2, 0.5)),
    Actuator("with effort", "l6", gear=(4.0,)),
    Actuator("two", "l7"),
    Actuator("two more", "l7", gear=(2.0,)),
)  # fmt: skip


def driven_machine(links: int) -> Model:
    """A machine with ``DRIVES``; their fifth and sixth share a joint, the last two its effort."""
    m, bodies = machine(links), []
    for body in m.bodies:
        own = body.joint.machine
        if body.name in ("l6", "l7"):
            own = tuple(replace(e, effort=1.5, backward_effort=1.0) for e in own)
        bodies.append(replace(body, joint=replace(body.joint, elements=own)))
    return replace(m, bodies=tuple(bodies), machine=replace(m.machine, actuators=DRIVES))


def test_loops_drive_what_is_driven_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands, activations, gears, ranges and efforts reach their joints in loops as in NumPy."""
    m, rng = driven_machine(8), np.random.default_rng(3)
    text = actuator_text(m)
    alone = {DRIVES[i].name for i, _ in text.alone.values()}
    assert alone == {"motor", "shifted", "filter", "exact", "integrator", "with effort"}
    q, v = (np.array([m.random(i)[k] for i in range(11)]) for k in (0, 1))
    inputs = [q, v, rng.normal(size=(11, len(DRIVES))), rng.normal(size=(11, text.states))]
    kernel, wanted = actuator_kernel(m, "rolled"), actuator_kernel(m, "numpy")(*inputs)
    assert kernel.tier == "rolled"
    agree_at_every_width(kernel, inputs, wanted, monkeypatch)
    silent = replace(m, machine=replace(m.machine, actuators=DRIVES[:2]))  # none has a state
    inputs = [q, v, inputs[2][:, :2]]
    wanted = actuator_kernel(silent, "numpy")(*inputs)
    agree_at_every_width(actuator_kernel(silent, "rolled"), inputs, wanted, monkeypatch)


def agree_at_every_width(
    kernel: Kernel, inputs: list[np.ndarray], wanted: list[np.ndarray], patch: pytest.MonkeyPatch
) -> None:
    """The same bits with 1 to 8 lanes, and those that are wanted."""
    first = kernel(*inputs)
    for width in (1, 2, 4, 8):
        patch.setattr(backend, "width_for", lambda states, width=width: width)
        for found, same, want in zip(kernel(*inputs), first, wanted, strict=True):
            assert_array_equal(found, same)
            assert_allclose(found, want, rtol=1e-12, atol=1e-10)
    patch.undo()


def machine(links: int) -> Model:
    """A tree with all that a coordinate can have by itself, in varying measure, at every joint."""
    b = rf.Builder("machine")
    for i in range(links):
        slide, k = i % 5 == 3, 1.0 + 0.1 * (i % 7)
        b.link(
            f"l{i}",
            f"l{i - 1 - (i % 3 == 2)}" if i else None,
            "ball" if i == 1 else "prismatic" if slide else "revolute",
            at=(0.1, 0.02, 0.0),
            axis=((0, 0, 1), (0, 1, 0), (1, 0, 0))[i % 3],
            mass=0.5 * k,
            com=(0.05, 0.01, 0.02),
            inertia=(0.003 * k, 0.004, 0.005),
            damping=0.1 * k,
            armature=0.01 * k,
            **(
                {}
                if i == 1
                else {
                    "friction": {"coulomb": {"forward": k, "backward": 0.8}}
                    if i % 2
                    else {"coulomb": 0.4 * k, "static": k, "stribeck_speed": 0.1},
                    "spring": {"stiffness": [2.0 * k, 0.1, 0.3], "rest": 0.1},
                    "limits": [(-0.4 * k, 0.3 * k) if i % 4 else (-np.inf, 0.3)],
                }
            ),
        )
    return b.model()


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_dynamics_of_a_machine_agree_in_every_form(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    m = machine(4)
    q, v = (np.array([m.random(i)[k] for i in range(11)]) for k in (0, 1))
    x = np.random.default_rng(2).normal(size=v.shape)
    forces = m.passive_forces(q, v).total
    wanted = (
        m.inverse_dynamics(q, v, x) - forces
        if name == "inverse_dynamics"
        else m.forward_dynamics(q, v, x + forces)
    )
    rolled, fast, plain = (
        machine_dynamics(m, name, tier) for tier in ("rolled", "unrolled", "numpy")
    )
    size = np.abs(wanted).max()
    for found in (
        getattr(m, name)(q, v, x, passive=True),
        plain(q, v, x),
        interpret(fast.program, [q, v, x])[0],
    ):
        assert_allclose(found, wanted, atol=1e-12 * size)
    assert_allclose(in_c(fast, [q[0], v[0], x[0]], tmp_path)[0], wanted[0], atol=1e-11 * size)
    for kernel in (rolled, fast):
        first = kernel(q, v, x)
        for width in (1, 8):
            monkeypatch.setattr(backend, "width_for", lambda states, width=width: width)
            assert_array_equal(kernel(q, v, x), first)
            assert_allclose(first, wanted, atol=1e-12 * size)
    monkeypatch.undo()
    q, v = np.tile(m.neutral(), (16, 1)), np.full((16, m.nv), 0.1)
    for i, _, _, high in passive_text(m).limits:  # one branch serves all stops
        touching = q.copy()
        touching[8:, i] = high + 0.02  # all lanes of some blocks, no lane of the others
        wanted = plain(touching, v, 0.0 * v)
        assert np.abs(wanted[8:] - wanted[:8]).max() > 1e-3
        assert_allclose(fast(touching, v, 0.0 * v), wanted, atol=1e-11 * np.abs(wanted).max())


def test_a_machine_too_large_for_straight_line_code_answers_by_loops() -> None:
    m = machine(90)
    q, v = m.random(1)
    tau = np.linspace(-1.0, 1.0, m.nv)
    loops = machine_dynamics(m, "forward_dynamics")
    assert loops.tier == passive_kernel(passive_text(m), "rolled").tier == "rolled"
    a = m.forward_dynamics(q, v, tau, passive=True)
    assert_allclose(m.inverse_dynamics(q, v, a, passive=True), tau, atol=1e-6)
    found = passive_kernel(passive_text(m), "rolled")(q, v)
    for one, other in zip(found, passive_kernel(passive_text(m), "numpy")(q, v), strict=True):
        assert_allclose(one, other, rtol=1e-11, atol=1e-9)
    assert_allclose(
        a, m.forward_dynamics(q, v, tau + found[0]), rtol=1e-9, atol=1e-9 * np.abs(a).max()
    )


@pytest.mark.filterwarnings("ignore:.*beyond its limit")
def test_dynamics_take_passive_forces_on_request() -> None:
    m = arm()
    q, v = m.random(3)
    a = np.arange(m.nv) * 0.1
    tau = m.inverse_dynamics(q, v, a, passive=True)
    total = m.passive_forces(q, v).total
    assert_allclose(tau, m.inverse_dynamics(q, v, a) - total)
    assert_allclose(m.forward_dynamics(q, v, tau, passive=True), a, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_small_motions(seed: int) -> None:
    m, h = arm(), 1e-6
    q, v = m.random(seed)
    ((by_q, by_v),) = m.derivatives("passive_forces", q, v)
    for k, e in enumerate(np.eye(m.nv)):
        for found, states in (
            (by_q, [(m.integrate(q, e, x), v) for x in (-h, h)]),
            (by_v, [(q, v - h * e), (q, v + h * e)]),
        ):
            back, ahead = (m.passive_forces(*state).total for state in states)
            wanted = (ahead - back) / (2.0 * h)
            assert_allclose(found[:, k], wanted, rtol=1e-5, atol=1e-6 * np.abs(found).max())
    gains = machine_gains(passive_text(m), q.tolist(), v.tolist(), [])  # what implicit steps take
    assert_allclose(gains[1][1], -by_v[1, 1])
    ideal = rf.load("planar_3r")
    assert not np.any(ideal.derivatives("passive_forces", np.zeros(3), np.zeros(3)))
    with pytest.raises(rf.ModelError, match="has no actuators"):
        ideal.derivatives("actuator_forces", np.zeros(3), np.zeros(3), np.zeros(0))


def test_an_ideal_robot_has_none() -> None:
    m = rf.load("kuka_kr5")
    found = m.passive_forces(np.zeros((3, 6)), np.zeros(6))
    assert found.total.shape == (3, 6)
    assert not found.total.any()
    assert not found.parts


ROBOTS = Path(
    str(
        distribution("example-robot-data").locate_file(
            "cmeel.prefix/share/example-robot-data/robots"
        )
    )
)


def test_urdf_values_arrive_for_all_of_example_robot_data() -> None:
    """Read the XML here by other means and compare; 0 means not given."""
    files, seen = sorted(ROBOTS.rglob("*.urdf")), 0
    for file in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # what files do wrong
                m = rf.load(file)
        except rf.ModelError:
            continue
        moving = {joint.name: joint for joint in m.joints}
        for element in ElementTree.parse(file).getroot().findall("joint"):
            joint = moving.get(element.get("name", ""))
            if joint is None:
                continue
            limit, dynamics = element.find("limit"), element.find("dynamics")
            for own in joint.machine:
                for key in ("effort", "velocity"):
                    given = float(limit.get(key, 0)) if limit is not None else 0.0
                    assert getattr(own, key) == (given if 0 < given < 1e9 else np.inf)
                given = float(dynamics.get("damping", 0)) if dynamics is not None else 0.0
                assert own.damping == (given, 0.0, 0.0)
                given = float(dynamics.get("friction", 0)) if dynamics is not None else 0.0
                assert (own.friction.sliding if own.friction else 0.0) == given
                seen += 1
    assert len(files) > 60
    assert seen > 1000


def test_urdf_is_written_with_its_machine(tmp_path: Path) -> None:
    b = rf.Builder("arm")
    b.link(
        "a",
        mass=1,
        com=(0.1, 0, 0),
        limits=[(-1, 1)],
        damping=0.3,
        friction=0.2,
        effort=5,
        velocity=2,
    )
    b.link("b", "a", mass=1, com=(0.1, 0, 0), armature=0.2, effort=7)
    text = to_urdf(b.model())
    assert 'rotor_inertia="0.2"' in text
    (tmp_path / "arm.urdf").write_text(text)
    again = rf.load(tmp_path / "arm.urdf")
    assert again.joints[0].elements == b.model().joints[0].elements
    assert again.joints[1].machine[0].effort == 7.0


def test_wrong_urdf_data_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf"
    file.write_text(
        '<robot name="r"><link name="a"/><link name="b"/>\n<joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/>\n<dynamics friction="-2"/></joint></robot>'
    )
    with pytest.raises(rf.ModelError, match=r"arm.urdf:3: joint 'j': friction.coulomb -2 must be"):
        rf.load(file)


_TRANSMISSION = """<robot name="r" xmlns:drake="http://drake.mit.edu"><link name="base"/>
<link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<dynamics rotor_inertia="0.5"/></joint>
{}
</robot>"""


@pytest.mark.parametrize(
    ("lines", "gear", "armature"),
    [
        (
            "<type>transmission_interface/SimpleTransmission</type><joint name='hinge'/><actuator "
            "name='m'><mechanicalReduction> -100\n</mechanicalReduction><motorInertia>2e-4"
            "</motorInertia></actuator>",
            -100.0,
            2.5,
        ),
        (
            "<actuator name='m'/><joint name='hinge'/><mechanicalReduction>6</mechanicalReduction>",
            6.0,
            0.5,
        ),
        (
            "<joint name='hinge'/><actuator name='m'><drake:gear_ratio value='10'/>"
            "<drake:rotor_inertia value='0.01'/></actuator>",
            10.0,
            1.5,
        ),
    ],
)
def test_transmissions_of_urdf_give_gears_and_rotors(
    lines: str, gear: float, armature: float, tmp_path: Path
) -> None:
    file = tmp_path / "r.urdf"
    file.write_text(_TRANSMISSION.format(f"<transmission name='t'>{lines}</transmission>"))
    m = rf.load(file)
    assert m.joint("hinge").machine[0].gear == gear
    assert_allclose(m.armature, armature)
    assert_allclose(m.mass_matrix([0.3]), 1.0 + armature)
    file.write_text(to_urdf(m))
    again = rf.load(file)
    assert again.joint("hinge").elements == m.joint("hinge").elements


def test_transmissions_that_are_not_read_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "r.urdf"
    motor = "<actuator name='{}'><mechanicalReduction>{}</mechanicalReduction></actuator>"
    pair = motor.format("a", 3) + motor.format("b", 3)
    lines = f"<transmission name='pair' type='Differential'><joint name='hinge'/>{pair}"
    file.write_text(_TRANSMISSION.format(f"{lines}</transmission>"))
    assert "transmission 'pair': gears" in str(rf.load(file).metadata["report"])
    rotor = "<rotorInertia>1e-3</rotorInertia></transmission>"
    file.write_text(_TRANSMISSION.format(lines + rotor))
    with pytest.warns(UserWarning, match="changes the motion: transmission 'pair'"):
        rf.load(file)
    word = (
        f"<transmission name='t'><joint name='hinge'/>{motor.format('a', 'ratio')}</transmission>"
    )
    file.write_text(_TRANSMISSION.format(word))
    with pytest.warns(
        UserWarning, match="check the file: transmission 't', line .* is not a number"
    ):
        assert rf.load(file).joints[0].machine[0].gear == 1.0
    lost = f"<transmission name='t'><joint name='elbow'/>{motor.format('a', 2)}</transmission>"
    file.write_text(_TRANSMISSION.format(lost))
    with pytest.warns(UserWarning, match="transmission 't', line 6: the file has no joint 'elbow'"):
        rf.load(file)
    none = f"<transmission name='t'><joint name='hinge'/>{motor.format('a', 0)}</transmission>"
    file.write_text(_TRANSMISSION.format(none))
    with pytest.raises(rf.ModelError, match=r"r.urdf:6.*'t': <mechanicalReduction> 0 must not be"):
        rf.load(file)


def _sprung(joint: str, rest: object = None) -> rf.Model:
    spring = {"stiffness": 2.0} if rest is None else {"stiffness": 2.0, "rest": rest}
    body = rf.Builder("one").link("a", joint=joint, mass=1, inertia=(0.1, 0.1, 0.1), spring=spring)
    return body.model()


def test_springs_of_rotations_rest_at_the_neutral_posture_by_default() -> None:
    q, still = [0.8, 0.2, 0.4, 0.4], np.zeros(3)
    angle = 2.0 * np.arccos(0.8)
    wanted = -2.0 * angle * np.array([0.2, 0.4, 0.4]) / 0.6
    for rest in (None, (1.0, 0.0, 0.0, 0.0)):
        found = _sprung("ball", rest).passive_forces(q, still).total
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    free = _sprung("free").passive_forces([1.0, 2.0, 3.0, *q], np.zeros(6)).total
    np.testing.assert_allclose(free, [-2.0, -4.0, -6.0, *wanted], rtol=1e-12)
    slide = _sprung("cylindrical", [0.1, 0.2]).passive_forces([1.0, 2.0], [0.0, 0.0]).total
    np.testing.assert_allclose(slide, [-1.8, -3.6], rtol=1e-12)


@pytest.mark.parametrize(
    ("joint", "rest"),
    [("ball", [0.1, 0.2, 0.3]), ("ball", [2.0, 0, 0, 0]), ("revolute", [1.0, 0, 0, 0])],
)
def test_rests_that_do_not_fit_the_joint_are_refused(joint: str, rest: list[float]) -> None:
    with pytest.raises(rf.ModelError, match=r"spring\.rest of joint 'a' is .*; it must be"):
        _sprung(joint, rest)


@pytest.mark.filterwarnings("ignore:.*beyond its limit")
def test_derivatives_with_passive_forces() -> None:
    """Both ways against central differences, with every element; ``out`` is filled."""
    m = arm()
    q, v = m.random(3)
    x = np.linspace(-1.0, 1.0, m.nv)
    h = 1e-6
    for name in ("inverse_dynamics", "forward_dynamics"):
        ask = partial(getattr(m, name), passive=True)
        out = [np.empty((m.nv, m.nv)) for _ in range(3)]
        found = getattr(m, f"{name}_derivatives")(q, v, x, out, passive=True)
        assert all(a is b for a, b in zip(found, out, strict=True))
        for k in range(m.nv):
            e = np.eye(m.nv)[k]
            by_q = ask(m.integrate(q, e, h), v, x) - ask(m.integrate(q, -e, h), v, x)
            by_v = ask(q, v + h * e, x) - ask(q, v - h * e, x)
            by_x = ask(q, v, x + h * e) - ask(q, v, x - h * e)
            for slope, difference in zip(found, (by_q, by_v, by_x), strict=True):
                scale = 1.0 + np.abs(slope).max()
                np.testing.assert_allclose(slope[:, k], difference / (2 * h), atol=1e-5 * scale)


@pytest.mark.parametrize("name", ["four_bar", "robotic_leg"])
def test_drives_of_a_closed_machine_carry_the_friction_of_joints_that_nothing_drives(
    name: str,
) -> None:
    """Inverse dynamics beside passive forces, against forward dynamics, which adds them to tau, and
    against differences along directions that keep the loops closed.
    """
    rigid = rf.load(name)
    rubbing = Element(damping=(0.2, 0.0, 0.0), friction=Friction(0.05, 0.05))
    bodies = [
        replace(body, joint=replace(body.joint, elements=(rubbing,) * body.joint.dof))
        for body in rigid.bodies
    ]
    m = replace(rigid, bodies=tuple(bodies))
    crank = m.coordinates[0]
    s = m.assemble({crank: 0.4}, {crank: 1.3}, accelerations={crank: 0.7})
    tau = m.inverse_dynamics(*s, passive=True, multipliers=True)[0]
    assert np.abs(tau[1:]).max() == 0.0
    np.testing.assert_array_equal(m.inverse_dynamics(*s, passive=True), tau)
    np.testing.assert_allclose(m.forward_dynamics(s.q, s.v, tau, passive=True), s.a, atol=1e-9)
    lost = -(m.passive_forces(s.q, s.v).total @ s.v)
    rise = (tau - m.inverse_dynamics(*s)) @ s.v
    assert lost > 0.1
    np.testing.assert_allclose(rise, lost, rtol=1e-10)  # the power of the drives alone
    wrenches = {m.bodies[-1].name: np.arange(6.0)}
    pushed = m.inverse_dynamics(*s, wrenches, passive=True) - m.inverse_dynamics(*s, wrenches)
    np.testing.assert_allclose(pushed, tau - m.inverse_dynamics(*s), atol=1e-12)
    h = 1e-6
    ahead, back = (
        m.assemble({crank: 0.4 + x}, {crank: 1.3 + 2 * x}, s.q, {crank: 0.7 - x}) for x in (h, -h)
    )
    differences = (
        m.inverse_dynamics(*ahead, passive=True) - m.inverse_dynamics(*back, passive=True)
    ) / (2 * h)
    by_q, by_v, by_a = m.inverse_dynamics_derivatives(*s, passive=True)
    along = [(x - y) / (2 * h) for x, y in zip(ahead, back, strict=True)]
    np.testing.assert_allclose(
        by_q @ along[0] + by_v @ along[1] + by_a @ along[2], differences, rtol=1e-6, atol=1e-6
    )
    with pytest.raises(rf.LoopError, match="passive=True or parameters, not both"):
        m.inverse_dynamics(*s, passive=True, parameters={f"{m.bodies[0].name}.mass": 1.0})


CURVES = {"rational": lambda x: 1.0 / (1.0 + x * x), "exponential": lambda x: np.exp(-x * x)}


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("bristles", [False, True])
def test_static_friction_falls_by_the_curve_of_the_file(
    curve: str, bristles: bool, tmp_path: Path
) -> None:
    """Force at steady sliding over speeds of both signs, through file, C, derivatives and runs."""
    low, back, high, speed = 2.0, 3.0, 5.0, 0.3
    friction: dict[str, Any] = {
        "coulomb": {"forward": low, "backward": back}, "static": high, "stribeck_speed": speed,
        "stribeck": curve, "slip_speed": 1e-6,
    }  # fmt: skip
    if bristles:
        friction["lugre"] = {"stiffness": 4e4, "damping": 300.0}
    b = rf.Builder("sled", gravity=(0, 0, 0))
    b.link("sled", None, "prismatic", axis=(1, 0, 0), mass=1.5, friction=friction)
    b.link("arm", "sled", mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01), friction=0.4)
    m = b.model()
    m.save(tmp_path / "sled.yaml")
    again = rf.load(tmp_path / "sled.yaml")
    assert again.joints[0].elements == m.joints[0].elements
    v = np.zeros((41, 2))
    v[:, 0] = np.linspace(-3.0, 3.0, 41) * speed + 1e-2
    x = v[:, 0] / speed
    if bristles:  # steady deflection: s = 0, so that the force is g(v)
        sliding = np.where(x > 0, low, back)
        height = sliding + (high - sliding) * CURVES[curve](x)
        z = np.sign(x) * height / 4e4
        force = again.passive_forces(0 * v, v, z[:, None]).total
        assert_allclose(force[:, 0], -np.sign(x) * height, rtol=1e-12)
        for robot in (m, again):  # without a deflection: the same but for the slip speed
            force = robot.passive_forces(0 * v, v).total[:, 0]
            assert_allclose(force, -np.sign(x) * height, rtol=1e-7)
        tau = m.inverse_dynamics(0 * v, v, 0 * v, passive=True)
        tau -= m.inverse_dynamics(0 * v, v, 0 * v)
        assert_allclose(tau[:, 0], np.sign(x) * height, rtol=1e-7)
        return
    mean, skew = 0.5 * (low + back), 0.5 * (low - back)
    height = mean + (high - mean) * CURVES[curve](x)
    s = v[:, 0] / np.sqrt(v[:, 0] ** 2 + 1e-12)
    wanted = -s * height * (1.0 + s * skew / mean)
    for robot in (m, again):
        assert_allclose(robot.passive_forces(0 * v, v).total[:, 0], wanted, rtol=1e-12)
    tau = m.inverse_dynamics(0 * v, v, 0 * v, passive=True) - m.inverse_dynamics(0 * v, v, 0 * v)
    assert_allclose(tau[:, 0], -wanted, rtol=1e-12)
    slope = m.inverse_dynamics_derivatives(0 * v, v, 0 * v, passive=True)[1][:, 0, 0]
    plain = m.inverse_dynamics_derivatives(0 * v, v, 0 * v)[1][:, 0, 0]
    h = np.array([1e-6, 0.0])
    ahead, behind = (m.passive_forces(0 * v, v + i * h).total[:, 0] for i in (1, -1))
    assert_allclose(slope - plain, -(ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)


def test_the_falling_exponential() -> None:
    y = np.concatenate([np.linspace(0.0, 64.0, 2001), [1e-9, 80.0, 1e300]])
    assert_allclose(decay(y), np.exp(-np.minimum(y, 64.0)), rtol=1e-13)
    assert decay(0.0) == 1.0


def test_an_unknown_stribeck_curve_is_refused() -> None:
    with pytest.raises(rf.ModelError, match=r"friction\.stribeck must be rational or exponential"):
        rf.Builder("b").link("a", mass=1.0, friction={"coulomb": 1.0, "stribeck": "gaussian"})


@pytest.mark.parametrize(("forward", "backward"), [(2.0, 2.0), (3.0, 1.0), (0.5, 4.0), (0.0, 1.5)])
@pytest.mark.parametrize("stribeck", [None, "rational", "exponential"])
def test_smoothed_friction_is_the_law_that_the_docs_print(
    forward: float, backward: float, stribeck: str | None
) -> None:
    """Near rest both senses take part: forces, slope at rest, and far from it each sense alone."""
    page = next(page for page in PAGES if page.name == "docs/machines.md")
    (block,) = [x for x in page.blocks("python") if "def friction(" in x]
    printed: dict[str, Any] = {}
    exec(compile(block, page.name, "exec"), printed)
    keys: dict[str, Any] = {"coulomb": {"forward": forward, "backward": backward}}
    keys["slip_speed"], options = 0.02, {}
    if stribeck is not None:
        options = {"static": 5.0, "v_s": 0.1, "stribeck": stribeck}
        keys |= {"static": 5.0, "stribeck_speed": 0.1, "stribeck": stribeck}
    m = rf.Builder("hinge").link("a", mass=1.0, inertia=(1, 1, 1), friction=keys).model()
    v = np.array([-40.0, -1.0, -0.1, -0.02, -1e-3, -1e-6, 0.0, 1e-6, 1e-3, 0.02, 0.1, 1.0, 40.0])
    force = m.passive_forces(np.zeros((len(v), 1)), v[:, None]).parts["friction"][:, 0]
    assert_allclose(force, printed["friction"](v, forward, backward, 0.02, **options), rtol=1e-11)
    assert_allclose(force[[0, -1]], [backward, -forward], rtol=1e-3, atol=1e-3)
    height = 0.5 * (forward + backward) if stribeck is None else 5.0
    assert_allclose((force[7] - force[5]) / 2e-6, -height / 0.02, rtol=1e-6)
