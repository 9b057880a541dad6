"""Machines from MJCF against MuJoCo: M, bias, passive forces, actuators, smooth accelerations."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose
from packages import files, package

import ramify as rf
from ramify.api.model import Model
from ramify.drives.machine_forces import actuator_text, passive_text
from ramify.files.mjcf_geoms import touching
from ramify.files.mjcf_machine import switched_off
from ramify.model.elements import Stop
from ramify.model.machine import Actuator

FEWEST = 55


def full_matrix(m: Any, d: Any) -> Any:
    M = np.zeros((m.nv, m.nv))
    if hasattr(d, "qM"):
        mujoco.mj_fullM(m, M, d.qM)
    else:
        mujoco.mj_fullM(m, d, M)
    return M


def error(found: Any, wanted: Any) -> float:
    f, w = np.asarray(found, dtype=float), np.asarray(wanted)
    return float(np.abs(f - w).max(initial=0.0) / max(1.0, np.abs(w).max(initial=0.0)))


def worst(robot: Model, file: Path, seeds: range = range(2)) -> dict[str, float]:
    """The largest relative error of each quantity at random states and commands; fluid off."""
    m = mujoco.MjModel.from_xml_path(str(file))
    m.opt.density = m.opt.viscosity = 0.0
    m.opt.wind[:] = 0.0
    d, tree = mujoco.MjData(m), robot.tree
    passive, drives = passive_text(tree, stops=False), actuator_text(tree)
    ours = [a.name for a in drives.actuators]
    assert ours == [m.actuator(i).name or f"actuator{i}" for i in range(m.nu)]
    known = [i for i, a in enumerate(drives.actuators) if not a.dead]  # adhesion: no command
    out: dict[str, float] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        q, v = tree.random(seed)
        d.qpos[:], d.qvel[:] = q, v
        d.ctrl[known] = rng.normal(size=len(known))
        d.act[:] = rng.uniform(-0.2, 0.8, size=m.na)
        mujoco.mj_forward(m, d)
        lists = [[float(x) for x in values] for values in (q, v, d.ctrl[: len(ours)], d.act)]
        parts = passive(*lists[:2]).force
        forces = sum(
            (np.array(f, dtype=float) for n, f in parts.items() if n != "friction"), np.zeros(m.nv)
        )
        found = drives(*lists)
        tau = np.array(found.tau, dtype=float)
        M, h = tree.kernel("mass_matrix", "rolled")(q), tree.kernel("bias", "rolled")(q, v)
        for name, x, y in (
            ("M", M, full_matrix(m, d)),
            ("bias", h, d.qfrc_bias),
            ("passive", forces, d.qfrc_passive),
            ("actuator", tau, d.qfrc_actuator),
            ("force", found.force, d.actuator_force[: len(ours)]),
            ("act_dot", found.rates, d.act_dot),
            ("acceleration", np.linalg.solve(M, tau + forces - h), d.qacc_smooth),
        ):
            out[name] = max(out.get(name, 0.0), error(x, y))
    return out


def test_every_mjcf_robot_of_three_packages_agrees_with_mujoco() -> None:
    agreed, wrong = [], {}
    three = ("dm_control", "gymnasium", "gymnasium-robotics")
    for file in (path for name in three for path in files(name, ".xml")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                robot = rf.load(file)
            except rf.ModelError:
                continue
            found = worst(robot, file)
        if max(found.values()) < 1e-9:
            agreed.append(file.stem)
        else:
            wrong[str(file)] = found
    assert not wrong
    assert len(agreed) >= FEWEST, agreed


def written(tmp_path: Path, world: str, rest: str, options: str = "") -> Path:
    file = tmp_path / "robot.xml"
    file.write_text(f"<mujoco>{options}<worldbody>{world}</worldbody>{rest}</mujoco>")
    return file


CHAIN = """
<site name="origin" pos="0.1 0.2 0.3"/>
<body name="a" gravcomp="0.7">
  <joint name="h" axis="0 1 0" damping="0.3" stiffness="2" springref="20"
    armature="0.02" range="-60 60" limited="true" actuatorfrcrange="-3 2" actuatorfrclimited="true"
    actuatorgravcomp="true"/>
  <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
  <site name="s1" pos="0.1 0 0.05" euler="10 20 30"/>
  <body name="b" pos="0.3 0 0" gravcomp="1.2">
    <joint name="ball" type="ball" stiffness="1.5" damping="0.2"/>
    <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0"/>
    <site name="s2" pos="0.2 0 0.1" euler="40 5 6"/>
    <body name="c" pos="0.25 0 0"><joint name="sl" type="slide" axis="0 0 1" damping="0.1"/>
      <geom size="0.05"/><site name="s3" pos="0 0.02 0.1"/></body></body></body>
<body name="f" pos="1 0 0" gravcomp="0.5"><freejoint name="free"/>
  <geom type="box" size="0.1 0.2 0.05"/>
  <site name="s4" pos="0.1 0.1 0"/></body>
"""
ROWS = """
<tendon>
  <fixed name="line" stiffness="3" damping="0.4" springlength="0.05 0.1">
    <joint joint="h" coef="0.5"/><joint joint="sl" coef="-2"/></fixed>
  <spatial name="rope" stiffness="20" damping="0.7"
    springlength="0.2 0.3" actuatorfrcrange="-0.4 0.4" actuatorfrclimited="true">
    <site site="origin"/><site site="s1"/><site site="s2"/>
    <pulley divisor="2"/><site site="s3"/><site site="s4"/></spatial>
</tendon>
<actuator>
  <motor joint="h" gear="3" ctrlrange="-0.5 0.5" ctrllimited="true"/>
  <position joint="sl" kp="20" kv="2" forcerange="-4 4" forcelimited="true"/>
  <velocity joint="h" kv="0.5"/>
  <intvelocity joint="sl" kp="5" actrange="-1 1"/>
  <general joint="h" dyntype="filter" dynprm="0.1" gainprm="2"
    biastype="affine" biasprm="0.1 -2 -0.3" actearly="true"/>
  <general joint="h" dyntype="filterexact" dynprm="0.05" gainprm="2" actearly="true"/>
  <general joint="h" gaintype="affine" gainprm="1 0.5 -0.2"/>
  <damper joint="sl" kv="2" ctrlrange="0 1"/>
  <motor joint="ball" gear="0.3 -0.2 0.5"/>
  <motor jointinparent="ball" gear="0.3 -0.2 0.5"/>
  <position joint="ball" gear="0 0 1" kp="4"/>
  <motor joint="free" gear="1 2 3 0.1 0.2 0.3"/>
  <motor tendon="line" gear="2"/>
  <motor tendon="rope" gear="1.5"/>
  <motor tendon="rope" gear="0.5"/>
  <motor site="s2" gear="1 2 3 0.1 0.2 0.3"/>
  <position site="s3" refsite="s1" gear="1 0.5 0 0 0 0" kp="3"/>
  <position site="s2" refsite="s1" gear="0 0 0 0 0.2 1" kp="3"/>
  <position site="s4" refsite="origin" gear="0 0 0 1 0 0" kp="3"/>
  <position site="s4" refsite="origin" gear="0.2 0 0 1 0 0.5" kp="3"/>
  <motor cranksite="s2" slidersite="s1" cranklength="0.6" gear="2"/>
</actuator>
<keyframe><key name="home" qpos="0.1 1 0 0 0 0.02 1 0 0 1 0 0 0"/></keyframe>
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return written(tmp_path, CHAIN, ROWS)


def test_every_kind_of_transmission_agrees_with_mujoco(chain: Path) -> None:
    found = worst(rf.load(chain), chain, range(12))
    assert max(found.values()) < 1e-9, found


def test_compiled_answers_are_those_of_the_text(chain: Path) -> None:
    m = rf.load(chain)
    q, v = (np.array(x) for x in zip(*(m.random(i) for i in range(9)), strict=True))
    rng = np.random.default_rng(0)
    u, w = rng.normal(size=(9, len(m.actuators))), rng.normal(size=(9, actuator_text(m).states))
    found = m.actuator_forces(q, v, u, w)
    for i in range(9):
        lists = [[float(x) for x in values[i]] for values in (q, v, u, w)]
        text = actuator_text(m)(*lists)
        assert_allclose(found.tau[i], np.array(text.tau, dtype=float), rtol=1e-10, atol=1e-10)
        assert_allclose(found.force[i], np.array(text.force, dtype=float), rtol=1e-10, atol=1e-10)
        assert_allclose(found.activation_rate[i], text.rates, rtol=1e-12)


def test_frames_keyframes_and_names_arrive(chain: Path) -> None:
    m = rf.load(chain)
    assert {"s1", "s2", "s3", "s4", "origin", "a", "b"} <= set(m.frames)
    assert m.keyframes[0].name == "home"
    assert_allclose(m.keyframes[0].q[:6], [0.1, 1, 0, 0, 0, 0.02])
    assert [t.name for t in m.tendons] == ["line", "rope"]
    peer = mujoco.MjModel.from_xml_path(str(chain))
    d = mujoco.MjData(peer)
    q, v = m.random(1)
    d.qpos[:], d.qvel[:] = q, v
    mujoco.mj_forward(peer, d)
    for name in ("s2", "s4", "origin"):
        pose = m.pose(q, name)
        assert_allclose(pose.position, d.site(name).xpos, atol=1e-12)
        assert_allclose(pose.rotation.ravel(), d.site(name).xmat, atol=1e-12)
        J = np.zeros((2, 3, peer.nv))
        mujoco.mj_jacSite(peer, d, J[1], J[0], peer.site(name).id)
        assert_allclose(m.jacobian(q, name), J.reshape(6, -1), atol=1e-12)


def test_what_is_left_out_is_a_warning_once_and_a_finding(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        CHAIN,
        '<tendon><spatial name="wrap"><site site="s1"/><site site="s3"/></spatial></tendon>'
        '<actuator><muscle name="biceps" tendon="wrap" lengthrange="0.1 1"/></actuator>',
        '<option density="1000"/>',
    )
    with pytest.warns(UserWarning, match="changes the motion: .*fluid.*biceps") as caught:
        m = rf.load(file)
    assert len(caught) == 1
    assert "left-out" in {finding.code for finding in m.check()}


def test_a_tendon_that_moves_nothing_is_left_out(tmp_path: Path) -> None:
    none = '<tendon><fixed name="t"><joint joint="h" coef="0"/></fixed></tendon>'
    with pytest.warns(
        rf.LeftOutWarning, match="tendon 't': it wraps around a geom, or moves nothing"
    ):
        m = rf.load(written(tmp_path, CHAIN, none))
    assert not m.tendons


def test_ball_limits_and_friction_arrive(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '<body><joint name="b" type="ball" range="0 50" limited="true" frictionloss="0.3"/>'
        '<geom size="0.1" pos="0.2 0 0"/></body>',
        "",
    )
    own = rf.load(file).joints[0].elements
    assert_allclose(own[0].cone, np.deg2rad(50))
    assert own[2].friction is not None
    assert own[2].friction.sliding == 0.3


@pytest.mark.parametrize("flag", ["spring", "damper", "actuation"])
def test_switched_off_forces_stay_off(flag: str, tmp_path: Path) -> None:
    file = written(tmp_path, CHAIN, "", f'<option><flag {flag}="disable"/></option>')
    found = worst(rf.load(file), file)
    assert max(found.values()) < 1e-9, found


FLAGGED = """
<body name="a"><joint name="h" axis="0 1 0" range="-30 30" limited="true" frictionloss="0.4"/>
  <geom size="0.1" pos="0.2 0 0"/><site name="a" pos="0.1 0 0"/>
  <body name="b" pos="0.3 0 0"><joint name="ball" type="ball" range="0 40" limited="true"/>
    <geom size="0.1"/></body></body>
"""
DRIVEN = """<tendon><fixed name="t" limited="true" range="-1 1" frictionloss="0.2">
  <joint joint="h" coef="2"/></fixed></tendon>
<actuator><motor joint="h" ctrlrange="-1 1" ctrllimited="true" group="2"/>
  <motor joint="h" gear="3"/><motor tendon="t"/></actuator>"""


@pytest.mark.parametrize("group", ["", 'actuatorgroupdisable="2"'])
@pytest.mark.parametrize("clamp", ["enable", "disable"])
def test_flags_of_actuators_are_honoured(group: str, clamp: str, tmp_path: Path) -> None:
    options = f'<option {group}><flag clampctrl="{clamp}"/></option>'
    file = written(tmp_path, FLAGGED, DRIVEN, options)
    with pytest.warns(UserWarning, match="tendon 't': its limits; tendon 't': its dry friction"):
        robot = rf.load(file)
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    d.ctrl[:] = 3.0, 0.5, 0.2
    mujoco.mj_forward(m, d)
    found = robot.actuator_forces(robot.neutral(), np.zeros(4), d.ctrl)
    assert_allclose(found.tau, d.qfrc_actuator)
    assert ("its group 2 is disabled" in str(robot.metadata["report"])) == bool(group)


def test_the_flag_of_constraints_and_sites_named_like_bodies(tmp_path: Path) -> None:
    options = '<option><flag constraint="disable"/></option>'
    m = rf.load(written(tmp_path, FLAGGED, "", options))
    assert not m.joints[0].limits
    assert all(e.friction is None and e.cone == np.inf for j in m.joints for e in j.machine)
    assert "switched off by the file: contact, equality, frictionloss, limit" in str(
        m.metadata["report"]
    )
    (site,) = m.machine.frames
    assert site != "a"
    assert f"a body has this name; it is {site!r}" in str(m.metadata["report"])
    assert_allclose(m.pose(m.neutral(), site).position, [0.1, 0.0, 0.0])
    on = rf.load(written(tmp_path, FLAGGED, ""))
    assert (on.joints[0].machine[0].friction.sliding, on.joints[1].machine[0].cone) == (
        0.4,
        pytest.approx(np.radians(40)),
    )


@pytest.mark.parametrize(
    ("joint", "rest", "said"),
    [
        ('frictionloss="-1"', "", "frictionloss='-1' of <joint> must be ≥ 0"),
        ('damping="-1 0 0"', "", "damping='-1 0 0' of <joint> must be ≥ 0"),
        ('damping="0 -1 0"', "", "damping='0 -1 0' of <joint> would make energy"),
        ('damping="1 0 -1"', "", "damping='1 0 -1' of <joint> would make energy"),
        ('armature="-.1"', "", "armature='-.1' of <joint> must be ≥ 0"),
        ('range="60 -60"', "", "range='60 -60' of <joint> must have its lower end first"),
        ("", '<motor joint="j" gear="0 0"/>', "gear='0 0' of <motor> must not be 0"),
        ("", '<motor joint="j" ctrlrange="2 1"/>', "ctrlrange='2 1' of <motor> must have"),
        ("", '<motor joint="k"/>', "unknown transmission target 'k' .* line 3"),
    ],
)
def test_wrong_data_is_named_with_file_line_and_key(
    joint: str, rest: str, said: str, tmp_path: Path
) -> None:
    body = f'\n<body><joint name="j" {joint}/><geom size="0.1"/></body>\n'
    file = written(tmp_path, body, f"<actuator>{rest}</actuator>")
    line = ":" if "unknown" in said else ":2: " if joint else ":3: "
    with pytest.raises(rf.ModelError, match=f"robot.xml{line}.*{said}"):
        rf.load(file)


@pytest.mark.parametrize("early", ["true", "false"])
@pytest.mark.parametrize(("drive", "command"), [("integrator", 5.0), ("filter", -3.0)])
def test_activations_stay_in_their_range(
    drive: str, command: float, early: str, tmp_path: Path
) -> None:
    """Catches an integrator that winds up beyond actrange: torque 10 where MuJoCo has 2."""
    world = '<body><joint name="h" axis="0 0 1"/><geom size="0.1" mass="1"/></body>'
    rest = f"""<actuator><general joint="h" dyntype="{drive}" dynprm="0.1" actlimited="true"
        actrange="-1 1" actearly="{early}" gainprm="0.004"/></actuator>"""
    file = written(tmp_path, world, rest, '<option timestep="1e-4"/>')
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    d.ctrl[:] = command
    mujoco.mj_step(m, d, nstep=10_000)
    robot = rf.load(file)
    control = rf.control.Commands.to(robot, {robot.actuators[0].name: command})
    for options in ({}, {"method": "rk4", "step": 1e-3}):
        run = rf.simulate(robot, 1.0, control=control, **options)
        assert_allclose(run.v[-1], d.qvel, atol=2e-3 * abs(d.qvel[0]))
        assert_allclose(run.tau[-1], d.qfrc_actuator, atol=1e-12)


BALL = '<body name="ball" pos="0 0 1"><freejoint/><geom size="0.1"/></body>'
FLOOR = '<geom type="plane" size="1 1 1"/>'


def test_contacts_that_are_left_out_are_a_warning_and_a_finding(tmp_path: Path) -> None:
    """Catches a ball that falls through its floor without a word."""
    with pytest.warns(rf.LeftOutWarning, match=r"contacts: between 2 geoms \(the robot passes"):
        m = rf.load(written(tmp_path, FLOOR + BALL, ""))
    (finding,) = [f for f in m.check() if f.code == "left-out"]
    assert "contacts: between 2 geoms" in finding.message
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rf.LeftOutWarning)
        rf.load(written(tmp_path, FLOOR + BALL, ""))


TWO = """<body name="a"><joint/><geom size="0.1"/><body name="b" pos="1 0 0"><joint/>
<geom size="0.1"/>{}</body></body>"""
FAR = '<body name="c" pos="1 0 0"><joint/><geom size="0.1"/></body>'
APART = '<contact><exclude body1="a" body2="c"/></contact>'


@pytest.mark.parametrize(
    ("world", "rest", "options", "number"),
    [
        (FLOOR + BALL, "", '<option><flag contact="disable"/></option>', 0),
        (FLOOR + BALL, "", '<option><flag constraint="disable"/></option>', 0),
        (FLOOR + BALL.replace("size", 'contype="0" size'), "", "", 2),
        (FLOOR + BALL.replace("size", 'contype="2" conaffinity="2" size'), "", "", 0),
        (TWO.format(""), "", "", 0),
        (TWO.format(""), "", '<option><flag filterparent="disable"/></option>', 2),
        (TWO.format(FAR), "", "", 2),
        (TWO.format(FAR), APART, "", 0),
        (TWO.format("") + FLOOR, "", "", 3),
    ],
)
def test_only_geoms_that_can_touch_are_counted(
    world: str, rest: str, options: str, number: int, tmp_path: Path
) -> None:
    report = str(rf.load(written(tmp_path, world, rest, options)).metadata["report"])
    assert ("contacts: between" in report) == bool(number)
    assert not number or f"between {number} geoms" in report


def test_whatever_touches_in_mujoco_can_touch() -> None:
    touched = 0
    for file in (package("gymnasium") / "gymnasium/envs/mujoco/assets").glob("*.xml"):
        m = mujoco.MjModel.from_xml_path(str(file))
        d, can = mujoco.MjData(m), touching(m, switched_off(m, mujoco.mjtDisableBit))
        for seed in range(5):
            d.qpos[:] = m.qpos0 + np.random.default_rng(seed).normal(size=m.nq)
            mujoco.mj_forward(m, d)
            touched += d.ncon
            assert can[np.ravel(d.contact.geom)].all(), file
    assert touched > 100


@pytest.mark.parametrize("margin", [0.0, 0.4])
@pytest.mark.parametrize(
    ("kind", "limits"), [("hinge", "-90 90"), ("ball", "0 90")], ids=["hinge", "ball"]
)
def test_limits_act_where_their_margin_begins(
    kind: str, limits: str, margin: float, tmp_path: Path
) -> None:
    """Catches a pendulum that comes to rest at its range and not 0.4 rad before it."""
    world = f"""<body><joint name="h" type="{kind}" axis="0 1 0" range="{limits}" limited="true"
      margin="{margin}" damping="0.5"/><geom size="0.1" pos="0 0 0.5" mass="1"/></body>"""
    file = written(tmp_path, world, "", '<compiler angle="degree"/>')
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    d.qvel[m.nv // 2] = 1.0
    mujoco.mj_step(m, d, nstep=3000)
    robot = rf.load(file)
    v = np.zeros(robot.nv)
    v[robot.nv // 2] = 1.0
    run = rf.simulate(robot, 6.0, v0=v)
    assert_allclose(run.q[-1], d.qpos, atol=0.02)
    assert ("its limits act 0.4 early (margin)" in str(robot.metadata["report"])) == bool(margin)


def test_a_margin_that_leaves_no_range_is_a_finding(tmp_path: Path) -> None:
    world = """<body><joint name="h" range="-10 10" limited="true" margin="0.3"/>
      <geom size="0.1"/></body>"""
    with pytest.warns(rf.LeftOutWarning, match="joint 'h': its limits act 0.3 early"):
        m = rf.load(written(tmp_path, world, ""))
    assert_allclose(m.joints[0].limits, [np.deg2rad([-10.0, 10.0])])


def test_actuators_keep_the_order_and_the_size_of_the_command(tmp_path: Path) -> None:
    """Catches commands that move to another actuator where one before it is left out."""
    world = """<body><joint name="a"/><geom size="0.1"/><body pos="1 0 0"><joint name="b"/>
      <geom size="0.1"/></body></body>"""
    rest = """<actuator><motor name="first" joint="a"/><muscle name="biceps" joint="b"
      lengthrange="-1 1"/><motor name="last" joint="a" gear="5"/></actuator>
      <keyframe><key name="home" ctrl="0.1 0.2 0.3"/></keyframe>"""
    file = written(tmp_path, world, rest)
    with pytest.warns(rf.LeftOutWarning, match="'biceps': its gain .* commands keep their place"):
        m = rf.load(file)
    assert [f.code for f in m.check()].count("left-out") == 1
    m.save(tmp_path / "copy.yaml")
    with pytest.warns(rf.LeftOutWarning, match="biceps"):
        copy = rf.load(tmp_path / "copy.yaml")
    peer = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(peer)
    d.ctrl[:] = 0.3, 0.8, -0.5
    mujoco.mj_forward(peer, d)
    for robot in (m, copy):
        assert [a.name for a in robot.actuators] == ["first", "biceps", "last"]
        assert robot.keyframes[0].command == (0.1, 0.2, 0.3)
        found = robot.actuator_forces(robot.neutral(), np.zeros(2), d.ctrl)
        assert_allclose(found.force[[0, 2]], d.actuator_force[[0, 2]])
        assert found.force[1] == 0.0
        assert_allclose(found.tau, [d.qfrc_actuator[0], 0.0])
    control = rf.control.Commands.to(m, {"first": 0.3, "last": -0.5})
    assert_allclose(rf.simulate(m, 0.1, control=control).tau[-1], [-2.2, 0.0])
    with pytest.raises(rf.ModelError, match="give one of joint, tendon, site"):
        Actuator("loose")


FALLING = """<body><joint name="h" axis="0 1 0" range="-0.5 0.5" limited="true" {}/>
  <inertial pos="0.3 0 0" mass="1" diaginertia="1e-6 1e-6 1e-6"/></body>"""
RADIANS = '<compiler angle="radian"/><option timestep="0.0005"/>'


def rests(file: Path, seconds: float) -> tuple[Any, Any]:
    """Where MuJoCo's robot and ours come to rest."""
    m = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(m)
    mujoco.mj_step(m, d, nstep=round(seconds / m.opt.timestep))
    robot = rf.load(file)
    return d.qpos, rf.simulate(robot, seconds).q[-1]


@pytest.mark.parametrize(
    "softness",
    [
        'solreflimit="0.05 1"',
        'solreflimit="0.1 1"',
        'solreflimit="0.1 0.3"',
        'solreflimit="0.05 2"',
        'solreflimit="-500 -20"',
        'solimplimit="0.5 0.5 0.001"',
        'solreflimit="0.05 1" solimplimit="0.5 0.8 0.001"',
        'solreflimit="0.1 -3" solimplimit="0.5 0.8 0.001"',
    ],
)
def test_joints_rest_at_their_stops_as_deep_as_in_mujoco(softness: str, tmp_path: Path) -> None:
    """Catches a time constant that is taken for the stop's own, without the impedance."""
    file = written(tmp_path, FALLING.format(softness), "", RADIANS)
    wanted, found = rests(file, 4.0)
    assert wanted[0] > 0.501
    assert_allclose(found - 0.5, wanted - 0.5, rtol=1e-3)


def test_stops_of_a_chain_and_a_ball_are_as_soft_as_in_mujoco(tmp_path: Path) -> None:
    world = """<body><joint axis="0 1 0" range="-0.5 0.5" solreflimit="0.05 1" damping="0.1"/>
      <inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>
      <body pos="0.4 0 0"><joint axis="0 1 0" range="-0.7 0.7" solreflimit="-800 -40"
        solimplimit="0.8 0.9 0.001" damping="0.1"/>
        <inertial pos="0.3 0 0" mass="0.7" diaginertia="0.01 0.01 0.01"/></body></body>
      <body pos="0 3 0"><joint type="ball" range="0 0.6" solreflimit="0.04 1" damping="0.05"/>
        <inertial pos="0.2 0 0.02" mass="0.5" diaginertia="0.01 0.01 0.01"/></body>"""
    wanted, found = rests(written(tmp_path, world, "", RADIANS), 6.0)
    depths = [
        np.array([q[0] - 0.5, q[1] - 0.7, 2.0 * np.arccos(q[2]) - 0.6]) for q in (wanted, found)
    ]
    assert (depths[0] > 1e-3).all()
    assert_allclose(depths[1], depths[0], rtol=5e-3)


def test_softness_of_stops_that_mujoco_takes_as_its_own_or_not_at_all(tmp_path: Path) -> None:
    def stop(softness: str, flag: str = "enable") -> Any:
        options = f'{RADIANS}<option><flag refsafe="{flag}"/></option>'
        m = rf.load(written(tmp_path, FALLING.format(softness), "", options))
        return m.joints[0].machine[0].stop

    usual = stop("")
    assert usual == stop('solreflimit="0.02 1"') == stop('solreflimit="0.02 -1"') == Stop()
    assert stop('solreflimit="0.0004 1"') == stop('solreflimit="0.001 1"')
    assert stop('solreflimit="0.0004 1"', "disable").stiffness == pytest.approx(
        6.25 * stop('solreflimit="0.001 1"').stiffness
    )
    with pytest.warns(rf.LeftOutWarning, match="joint 'h': its limits have no stiffness"):
        assert stop('solreflimit="0 0"') == Stop()


def test_actuators_of_plugins_keep_their_place_without_a_force(tmp_path: Path) -> None:
    """Catches a PID of a plugin that becomes a motor of gain 1."""
    plugin = """<extension><plugin plugin="mujoco.pid"><instance name="p">
      <config key="kp" value="40"/></instance></plugin></extension>"""
    world = '<body><joint name="a"/><geom size="0.1"/></body>'
    rest = """<actuator><plugin name="servo" joint="a" plugin="mujoco.pid" instance="p"/>
      <motor joint="a" gear="2"/></actuator>"""
    with pytest.warns(rf.LeftOutWarning, match="actuator 'servo': its force comes from a plugin"):
        m = rf.load(written(tmp_path, world, rest, plugin))
    assert_allclose(m.actuator_forces([0.1], [0.0], [0.5, 3.0]).force, [0.0, 3.0])


def test_disabled_actuation_keeps_the_places_of_commands(tmp_path: Path) -> None:
    rest = f'{DRIVEN}<keyframe><key name="home" ctrl="0.1 0.2 0.3"/></keyframe>'
    file = written(tmp_path, FLAGGED, rest, '<option><flag actuation="disable"/></option>')
    with pytest.warns(rf.LeftOutWarning):
        m = rf.load(file)
    assert len(m.actuators) == mujoco.MjModel.from_xml_path(str(file)).nu == 3
    assert m.keyframes[0].command == (0.1, 0.2, 0.3)
    assert not m.actuator_forces(m.neutral(), np.zeros(4), [1.0, 1.0, 1.0]).tau.any()
    assert "actuation is disabled: it gives no force" in str(m.metadata["report"])
