"""Robots from MJCF, against MuJoCo itself: in its q and v its inertia, bias, accelerations and
energies; and hostile files.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import ramify as rf
from ramify.api.builders import as_model
from ramify.api.model import Model
from ramify.files import mjcf_gate
from ramify.files.mjcf import drop_pictures, read_mjcf

read_mjcf = as_model(read_mjcf)

ARM = """
<mujoco model="arm">
  <compiler angle="degree" autolimits="true"/>
  <option gravity="0.3 -1 -9"/>
  <worldbody>
    <body name="upper" pos="0.1 0.2 0.3" euler="10 20 30">
      <joint name="shoulder" type="hinge" axis="1 2 3" pos="0.05 -0.1 0.02" ref="25" range="-90 90"/>
      <inertial pos="0.1 0.02 0.03" quat="0.5 0.1 -0.3 0.7" mass="2.5" diaginertia="0.03 0.04 0.05"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="fore" pos="0.3 0 0.1" quat="0.9 0.1 0.2 0.3">
        <joint name="slide" type="slide" axis="0 1 1" pos="0.3 0.2 0.1" ref="0.15"/>
        <joint name="elbow" type="hinge" axis="0 1 0" pos="-0.02 0.01 0.03" ref="-10"/>
        <joint name="twist" type="hinge" axis="1 0 0.2" pos="0.1 0 0"/>
        <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0.02" euler="5 6 7" density="800"/>
        <geom type="cylinder" size="0.02 0.1" mass="0.4"/>
        <body name="flange" pos="0.2 0 0">
          <geom type="sphere" size="0.04" mass="0.3"/>
          <body name="tool" pos="0 0.1 0"><joint axis="0 0 1"/><geom type="ellipsoid" size="0.05 0.03 0.02" mass="0.2"/></body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

LEG = """
      <body name="{0}_hip" pos="{1} {2} 0">
        <joint name="{0}_hip" axis="1 0 0"/><joint name="{0}_swing" axis="0 1 0" pos="0 0.02 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.03" mass="0.8"/>
        <body name="{0}_shank" pos="0 0 -0.2"><joint name="{0}_knee" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.05 0 -0.2" size="0.02" mass="0.4"/></body>
      </body>"""
QUADRUPED = (
    '<mujoco model="quadruped"><worldbody><geom type="plane" size="1 1 1"/><body name="trunk" pos="0 0 0.5" euler="0 20 0">'
    '<freejoint name="base"/><geom type="box" size="0.3 0.15 0.05" pos="0.02 0 0.01" mass="8"/>'
    + "".join(
        LEG.format(n, x, y)
        for n, x, y in (
            ("lf", 0.3, 0.15),
            ("rf", 0.3, -0.15),
            ("lh", -0.3, 0.15),
            ("rh", -0.3, -0.15),
        )
    )
    + "</body></worldbody></mujoco>"
)

BALLS = """
<mujoco model="balls">
  <worldbody>
    <body name="float" pos="1 2 3"><freejoint/><inertial pos="0.1 0 0.2" mass="3" fullinertia="0.3 0.4 0.5 0.01 0.02 -0.03"/>
      <body name="arm" pos="0.2 0.1 0" quat="0.7 0.1 0.6 0.2"><joint name="socket" type="ball" pos="0.03 -0.05 0.1"/>
        <geom type="box" size="0.1 0.02 0.03" pos="0.1 0 0"/>
        <body name="hand" pos="0.2 0 0">
          <joint name="pull" type="slide" axis="1 1 0"/><joint name="wrist" type="ball" pos="0 0.02 0"/>
          <geom type="capsule" size="0.02 0.06" pos="0.05 0 0.01" mass="0.5"/></body>
      </body>
    </body>
    <body name="pendulum" pos="0 0 2"><joint name="pivot" type="ball"/><geom type="sphere" size="0.1" pos="0 0.1 -0.5"/></body>
  </worldbody>
</mujoco>
"""

LOADED = """
<mujoco model="loaded">
  <option density="1.2" wind="1 0 0"/>
  <default><joint damping="0.5"/></default>
  <worldbody>
    <body name="crank" gravcomp="1"><joint name="a" armature="0.1" stiffness="2"/><geom name="g" type="box" size="0.1 0.1 0.1"/>
      <body name="rod" pos="0.3 0 0">
        <joint name="b" frictionloss="0.2"/><joint name="c" type="ball" pos="0.2 0 0" range="0 50" limited="true"/>
        <geom type="ellipsoid" size="0.1 0.2 0.1"/><site name="tip"/></body></body>
    <body name="hand" mocap="true" pos="0 0 2"/>
    <body name="table"><geom type="box" size="1 1 0.1" mass="4"/></body>
  </worldbody>
  <tendon><fixed name="cable"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon>
  <equality><joint name="tie" joint1="a" joint2="b"/></equality>
  <actuator><motor name="drive" joint="a" gear="20"/></actuator>
  <keyframe><key name="home"/></keyframe>
</mujoco>
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "robot.xml"
    path.write_text(text, encoding="utf-8")
    return path


def full_inertia(m: Any, d: Any) -> np.ndarray:
    """mj_fullM of MuJoCo 3 and 4, whose arguments differ."""
    M = np.zeros((m.nv, m.nv))
    try:
        mujoco.mj_fullM(m, d, M)
    except TypeError:
        mujoco.mj_fullM(m, M, d.qM)
    return M


def peer(text: str) -> tuple[Any, Any]:
    """The same robot in MuJoCo, with rigid bodies only."""
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    m.jnt_limited[:] = 0
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    return m, mujoco.MjData(m)


def states(model: Model, number: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = (
        np.array(x)
        for x in zip(*(model.random(seed=100 * seed + i) for i in range(number)), strict=True)
    )
    return q, v, rng.normal(size=(number, model.nv))


@pytest.mark.parametrize("text", [ARM, QUADRUPED, BALLS], ids=["arm", "quadruped", "balls"])
@pytest.mark.parametrize("tier", ["numpy", "rolled", "unrolled"])
def test_dynamics_are_mujocos(text: str, tier: Any, tmp_path: Path) -> None:
    """M, bias, forward dynamics, energies and poses agree on random states in the same q and v."""
    model = rf.load(written(tmp_path, text))
    m, d = peer(text)
    assert (model.nq, model.nv) == (m.nq, m.nv)
    assert_allclose(model.gravity, m.opt.gravity)
    q, v, tau = states(model, 8, 3)
    M, h = model.kernel("mass_matrix", tier)(q), model.kernel("bias", tier)(q, v)
    a = model.kernel("forward_dynamics", tier)(q, v, tau)
    kinetic, potential = model.kernel("energy", tier)(q, v)
    poses = model.kinematics(q)
    for i in range(len(q)):
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q[i], v[i], tau[i]
        mujoco.mj_forward(m, d)
        assert_allclose(M[i], full_inertia(m, d), rtol=0.0, atol=1e-10 * np.abs(M[i]).max())
        assert_allclose(h[i], d.qfrc_bias, rtol=0.0, atol=1e-10 * np.abs(h[i]).max())
        assert_allclose(a[i], d.qacc, rtol=0.0, atol=1e-10 * max(1.0, np.abs(a[i]).max()))
        assert_allclose(kinetic[i], d.energy[1], rtol=1e-10)
        mounted = sum(float(m.body_mass[b]) for b in range(1, m.nbody) if m.body_weldid[b] == 0)
        assert mounted == 0.0
        assert_allclose(potential[i], d.energy[0], rtol=1e-10, atol=1e-10)
        for b in range(1, m.nbody):
            body, frame = model.attachment(m.body(b).name)
            R, r = poses.rotation[i, body], poses.position[i, body]
            assert_allclose(R @ frame.rotation, d.xmat[b].reshape(3, 3), atol=1e-12)
            assert_allclose(R @ frame.position + r, d.xpos[b], atol=1e-12)


@pytest.mark.parametrize("text", [ARM, QUADRUPED, BALLS], ids=["arm", "quadruped", "balls"])
def test_moving_on_the_manifold_is_mujocos(text: str, tmp_path: Path) -> None:
    model = rf.load(written(tmp_path, text))
    m, _ = peer(text)
    q, v, _ = states(model, 5, 8)
    for i in range(len(q)):
        moved = q[i].copy()
        mujoco.mj_integratePos(m, moved, v[i], 0.3)
        assert_allclose(model.integrate(q[i], v[i], 0.3), moved, atol=1e-13)
        found = np.zeros(m.nv)
        mujoco.mj_differentiatePos(m, found, 0.3, q[i], moved)
        assert_allclose(model.difference(q[i], moved) / 0.3, found, atol=1e-12)


def test_structure_names_limits_and_shapes(tmp_path: Path) -> None:
    model = rf.load(written(tmp_path, ARM))
    assert model.name == "arm"
    assert [b.name for b in model.bodies] == ["upper", "fore/slide", "fore/elbow", "fore", "tool"]
    assert model.coordinates == ("shoulder", "slide", "elbow", "twist", "tool_joint")
    assert_allclose(model.joint("shoulder").limits, [(-np.pi / 2, np.pi / 2)])
    assert [s.kind for s in model.body("upper").shapes] == ["capsule"]
    assert model.body("upper").shapes[0].size == pytest.approx((0.03, 0.3))
    assert [s.kind for s in model.body("fore").shapes] == [
        "box",
        "cylinder",
        "sphere",
    ]  # the flange is welded to it
    assert model.body("fore").shapes[0].size == pytest.approx((0.2, 0.1, 0.04))
    assert model.attachment("flange").body == 3


def test_the_report_names_what_is_left_out(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the fluid around the robot"):
        model = rf.load(written(tmp_path, LOADED))
    text = str(model.metadata["report"])
    for said in (
        "is the loop 'tie', rigid", "contacts: between", "density", "ellipsoid",
        "mocap), so fixed here: hand",
        "4 kg are fixed to the world",
    ):  # fmt: skip
        assert said in text, said
    assert [j.actuated for j in model.joints] == [True, False, False]


def test_bases(tmp_path: Path) -> None:
    path = written(tmp_path, QUADRUPED)
    free, euler, fixed = (
        rf.load(path),
        rf.load(path, base="free_euler"),
        rf.load(path, base="fixed"),
    )
    assert (free.nq, free.nv) == (19, 18)
    assert (euler.nq, euler.nv) == (18, 18)
    assert (fixed.nq, fixed.nv) == (12, 12)
    assert euler.joints[0].kind == "free_euler"
    assert rf.load(path, base="free").nq == 19
    q = np.zeros(12)
    at = fixed.kinematics(q)
    lifted = free.kinematics(
        np.concatenate([[0, 0, 0.5], mujoco.MjModel.from_xml_string(QUADRUPED).qpos0[3:7], q])
    )
    assert_allclose(at.position[-1], lifted.position[-1], atol=1e-14)
    shoulder = '<joint name="shoulder" type="hinge" axis="1 2 3" pos="0.05 -0.1 0.02" ref="25" range="-90 90"/>'
    assert shoulder in ARM
    still = written(tmp_path, ARM.replace(shoulder, ""))
    floats = rf.load(still, base="free")
    assert floats.joints[0].name == "root_joint"
    assert floats.nv == rf.load(still).nv + 6
    with pytest.raises(rf.ModelError, match="base 'flying' must be one of fixed, free, free_euler"):
        rf.load(path, base="flying")
    with pytest.raises(rf.ModelError, match=r"'planar' must be .*; give the body two slides"):
        rf.load(path, base="planar")
    with pytest.raises(
        rf.ModelError,
        match="base='free' needs one body that is free or fixed to the world; there are 0",
    ):
        rf.load(written(tmp_path, ARM), base="free")


def test_gravity_may_be_switched_off(tmp_path: Path) -> None:
    off = ARM.replace('<option gravity="0.3 -1 -9"/>', '<option><flag gravity="disable"/></option>')
    assert off != ARM
    assert rf.load(written(tmp_path, off)).gravity == (0.0, 0.0, 0.0)


def test_included_files_and_meshes_below_the_folder(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xml").write_text(
        '<mujocoinclude><body name="a"><joint/><geom type="mesh" mesh="tetra"/></body></mujocoinclude>',
        encoding="utf-8",
    )
    (tmp_path / "parts" / "tetra.obj").write_text(TETRA, encoding="utf-8")
    text = (
        '<mujoco><compiler meshdir="parts"/><asset><mesh name="tetra" file="tetra.obj"/></asset>'
        '<worldbody><include file="parts/arm.xml"/></worldbody></mujoco>'
    )
    model = rf.load(written(tmp_path, text))
    assert model.nv == 1
    assert model.mass == pytest.approx(1000 / 6)
    ((mesh,),) = model.metadata["meshes"].values()
    assert mesh.filename.replace("\\", "/").endswith("parts/tetra.obj")


HOSTILE = {
    "entities": ('<!DOCTYPE m [<!ENTITY a "b">]><mujoco>&a;</mujoco>', "document type declaration"),
    "truncated": ("<mujoco><worldbody>", "not well-formed XML"),
    "deep": ("<mujoco><worldbody>" + "<body>" * 5000, "not well-formed XML|depth"),
    "urdf": ('<robot name="x"/>', r"a URDF robot, not MJCF; name the file \.urdf"),
    "other root": ("<html/>", "the root element is <html>"),
    "include": (
        '<mujoco><include file="../secret.xml"/></mujoco>',
        "secret.xml:1: the root element is <password>",
    ),
    "include of a text": (
        '<mujoco><include file="../secret.txt"/></mujoco>',
        "'secret.txt', outside the folder of the model; only .xml files",
    ),
    "mesh of a text": (
        '<mujoco><asset><mesh name="m" file="../secret.txt"/></asset></mujoco>',
        "outside the folder of the model; only .stl, .obj, .msh files",
    ),
    "mesh by type": (
        '<mujoco><asset><mesh name="m" content_type="model/obj" file="../s.stl"/></asset></mujoco>',
        "'s.stl', outside the folder",
    ),
    "lattice outside": (
        '<mujoco><worldbody><flexcomp name="f" type="mesh" file="../s.stl"/></worldbody></mujoco>',
        "'s.stl', outside the folder of the model; nothing may be read",
    ),
    "absolute": (
        '<mujoco><asset><mesh name="m" file="/etc/passwd"/></asset></mujoco>',
        "names '/etc/passwd'; give a path relative",
    ),
    "scheme": (
        '<mujoco><asset><mesh name="m" file="http://x/y.stl"/></asset></mujoco>',
        "give a path relative",
    ),
    "drive": (
        r'<mujoco><asset><mesh name="m" file="C:\\a.stl"/></asset></mujoco>',
        "give a path relative",
    ),
    "folder": ('<mujoco><compiler meshdir="/etc"/></mujoco>', "give a path relative"),
    "folder outside": (
        '<mujoco><compiler assetdir=".."/><asset><mesh name="m" file="secret.txt"/></asset></mujoco>',
        "outside the folder",
    ),
    "link out": (
        '<mujoco><asset><mesh name="m" file="out/secret.txt"/></asset></mujoco>',
        "outside the folder",
    ),
    "link that hides": (
        '<mujoco><asset><mesh name="m" file="hidden.stl"/></asset></mujoco>',
        "outside the folder",
    ),
    "link out of the meshes": (
        '<mujoco><asset><mesh name="m" file="out/secret.txt"/></asset>'
        '<compiler meshdir="assets"/></mujoco>',
        "outside the folder",
    ),
    "names": (
        "<mujoco><asset>" + '<mesh file="a.stl"/>' * 10_000 + "</asset></mujoco>",
        "names too many files",
    ),
    "ring of links": (
        '<mujoco><asset><mesh name="m" file="ring/a.stl"/></asset></mujoco>',
        "refuses it",
    ),
    "long name": (f'<mujoco><include file="{"x" * 5000}"/></mujoco>', "give a path relative"),
    "attached": (
        '<mujoco><worldbody><replicate count="150"><frame>'
        + '<attach model="m"/>' * 150
        + "</frame></replicate></worldbody></mujoco>",
        "would have 2[0-9]+ copies of elements",
    ),
    "nan": (
        '<mujoco><worldbody><body><joint/><inertial mass="nan" pos="0 0 0"/></body></worldbody></mujoco>',
        "mass='nan' of <inertial> is not",
    ),
    "copies": (
        '<mujoco><worldbody><replicate count="1000"><replicate count="1000"><geom size="1"/>'
        "</replicate></replicate></worldbody></mujoco>",
        "would have 100[0-9]+ copies of elements",
    ),
    "sizes": (
        '<mujoco><size nuser_body="99999999"/></mujoco>',
        "nuser_body='99999999' of <size> is too large",
    ),
    "schema": (
        "<mujoco><worldbody><knob/></worldbody></mujoco>",
        "MuJoCo refuses it: .*unrecognized element",
    ),
    "no mass": (
        "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
        "MuJoCo refuses it: .*mass and inertia",
    ),
    "no joints": (
        '<mujoco><worldbody><body><geom size="1"/></body></worldbody></mujoco>',
        "no body moves",
    ),
    "duplicates": (
        '<mujoco><worldbody><body name="a"><joint/><geom size="1"/></body>'
        '<body name="a"><joint/><geom size="1"/></body></worldbody></mujoco>',
        "MuJoCo refuses it: .*repeated name",
    ),
    "huge": (
        '<mujoco><worldbody><body pos="1e400 0 0"><joint/><geom size="1"/></body></worldbody></mujoco>',
        r"robot\.xml",
    ),
    "cycle": ('<mujoco><include file="robot.xml"/></mujoco>', "MuJoCo refuses it"),
}


def asked(text: str) -> str:
    return f'<mujoco>{text}<worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'


def placed(text: str) -> str:
    return f'<mujoco><worldbody><body><joint/><geom size="1"/></body>{text}</worldbody></mujoco>'


GEOM = '<geom size="1"/>'
GREEDY = {
    "keys by number": (
        asked('<size nkey="1000000"/>'),
        "nkey='1000000' of <size> is too large; at most 1000",
    ),
    "keys": (asked(f"<keyframe>{'<key/>' * 100_000}</keyframe>"), "would have [0-9]+ keyframes"),
    "cone": (
        asked('<asset><mesh name="m" builtin="cone" params="20000000 0"/></asset>'),
        "more than 40000 vertices of built-in",
    ),
    "params": (
        asked('<asset><mesh name="m" builtin="cone" params="0x7fffffff 0"/></asset>'),
        "'0x7fffffff' is not a number",
    ),
    "replicate": (
        placed(f'<replicate count="20000">{GEOM}</replicate>'),
        "would have 19999 copies of elements",
    ),
    "replicates": (
        placed(f'<replicate count="15000">{GEOM}</replicate>' * 10),
        "would have [0-9]+ copies of elements",
    ),
    "many replicates": (
        placed(f'<replicate count="1000">{GEOM}</replicate>' * 10),
        "would have 9990 copies of elements",
    ),
    "included copies": (
        placed('<replicate count="3000"><include file="part.xml"/></replicate>'),
        "copies of elements",
    ),
    "lattice": (
        placed('<flexcomp name="f" type="grid" count="20 20 20" dim="3"/>'),
        "would have 8000 points of lattices",
    ),
    "listed lattice": (
        placed(f'<flexcomp name="f" type="direct" point="{"0 " * 9000}"/>'),
        "would have 3000 points of lattices",
    ),
    "cable": (
        placed('<composite type="cable" count="100000 1 1"/>'),
        "would have 100000 points of lattices",
    ),
    "bodies": (placed(f"<body>{GEOM}</body>" * 5000), "would have 5001 bodies"),
    "elements": (placed(GEOM * 100_000), "would have 15001 elements"),
    "height field": (
        asked('<asset><hfield name="h" nrow="+12000" ncol="+12000" size="1 1 1 1"/></asset>'),
        "more than 16777216 cells",
    ),
    "user data": (
        asked('<size nuserdata="+100000000"/>'),
        "nuserdata=.* is too large; at most 10000",
    ),
    "user data per body": (
        asked('<size nuser_body="9999"/>'),
        "nuser_body=.* is too large; at most 1000",
    ),
    "no integer": (asked('<size nuserdata="1e8"/>'), "nuserdata='1e8' must be a whole number"),
    "memory": (asked('<size memory="100G"/>'), "memory='100G' of <size> is too large"),
    "numbers": (
        asked('<custom><numeric name="x" size="2000000" data="0"/></custom>'),
        "more than 1000000 numbers of <numeric>",
    ),
    "pipe": (
        asked('<asset><mesh name="m" file="pipe.stl"/></asset>'),
        "'pipe.stl', which is not a regular file",
    ),
    "included pipe": (
        asked('<include file="pipe.stl"/>'),
        "'pipe.stl', which is not a regular file",
    ),
    "stripped": (
        asked('<compiler strippath="true"/><asset><mesh name="m" file="x/pipe.stl"/></asset>'),
        "'pipe.stl', which is not a regular file",
    ),
    "large mesh": (
        asked('<asset><mesh name="m" file="large.stl"/></asset>'),
        r"a file of 70\.0 MB; at most",
    ),
}


@pytest.mark.parametrize("case", GREEDY)
def test_files_that_ask_for_too_much_are_refused_at_once(case: str, tmp_path: Path) -> None:
    """Before MuJoCo sees them: it would hang, or take gigabytes."""
    text, message = GREEDY[case]
    os.mkfifo(tmp_path / "pipe.stl")
    with open(tmp_path / "large.stl", "wb") as file:
        file.truncate(70_000_000)
    (tmp_path / "part.xml").write_text(
        f"<mujocoinclude>{GEOM}{GEOM}</mujocoinclude>", encoding="utf-8"
    )
    with pytest.raises(rf.ModelError, match=message):
        rf.load(written(tmp_path, text))


PICTURES = {
    "texture": '<texture name="t" builtin="flat" width="+12000" height="+12000"/>',
    "cube": '<texture name="t" type="cube" builtin="flat" width="9000" height="1"/>',
    "large picture": '<texture name="t" type="2d" file="large.png"/><material name="m" texture="t"/>',
    "picture outside": '<texture name="t" type="2d" file="/etc/passwd"/>',
    "pictures of a cube": '<texture name="t" type="cube" fileright="../a.png"/>',
    "height field from a file": '<hfield name="h" file="../a.png" size="1 1 1 1"/>',
    "attached": '<model name="part" file="part.xml"/>',
}


@pytest.mark.parametrize("case", PICTURES)
def test_pictures_are_neither_opened_nor_made(case: str, tmp_path: Path) -> None:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 50_000, 50_000)
    (tmp_path / "large.png").write_bytes(head)
    picture = '<asset><texture name="t" type="2d" builtin="flat" width="30000" height="30000"/>'
    part = f'{picture}</asset><worldbody><body name="b"><joint/>{GEOM}</body></worldbody>'
    (tmp_path / "part.xml").write_text(f"<mujoco>{part}</mujoco>", encoding="utf-8")
    text = asked(f"<asset>{PICTURES[case]}</asset>")
    if case == "attached":
        attach = '<attach model="part" body="b" prefix="x"/></worldbody>'
        text = text.replace("</worldbody>", attach)
    path = written(tmp_path, text)
    assert rf.load(path).nv == (2 if case == "attached" else 1)
    spec = mujoco.MjSpec.from_file(str(path))
    drop_pictures(spec, mujoco)
    compiled = spec.compile()
    assert compiled.ntexdata + compiled.nhfielddata < 100


TETRA = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize(
    ("folder", "name"), [("../meshes", "a.obj"), ("parts/deep", "../../../meshes/a.obj")]
)
def test_meshes_beside_the_folder_are_read(folder: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "a.obj").write_text(TETRA, encoding="utf-8")
    (tmp_path / "model" / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "model" / "body.xml").write_text(
        '<mujocoinclude><body><joint/><geom type="mesh" mesh="a"/></body></mujocoinclude>',
        encoding="utf-8",
    )
    text = (
        f'<mujoco><compiler meshdir="{folder}"/><asset><mesh name="a" file="{name}"/></asset>'
        '<worldbody><include file="body.xml"/></worldbody></mujoco>'
    )
    assert rf.load(written(tmp_path / "model", text)).mass == pytest.approx(1000 / 6)


def test_a_file_that_asks_for_little_is_read(tmp_path: Path) -> None:
    text = (
        '<size nkey="2" memory="10M" nuser_body="-1"/><asset><hfield name="h" nrow="+2" ncol="2" size="1 1 1 1"/>'
        '<texture name="t" type="skybox" builtin="gradient" width="512" height="3072"/></asset><keyframe><key/></keyframe>'
    )
    assert rf.load(written(tmp_path, asked(text))).nv == 1
    many = placed(f'<replicate count="10" offset="1 0 0"><body><joint/>{GEOM}</body></replicate>')
    assert rf.load(written(tmp_path, many)).nv == 11


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_and_broken_files(case: str, tmp_path: Path) -> None:
    text, message = HOSTILE[case]
    (tmp_path / "secret.xml").write_text("<password/>", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "s.stl").write_text("secret", encoding="utf-8")
    home = tmp_path / "home"
    (home / "assets").mkdir(parents=True)
    (home / "out").symlink_to(tmp_path)
    (home / "hidden.stl").symlink_to(tmp_path / "secret.txt")
    (home / "ring").symlink_to(home / "ring")
    (home / "assets" / "out").symlink_to(tmp_path)
    with pytest.raises(rf.ModelError, match=message):
        rf.load(written(home, text))


@given(st.integers(0, 2**32), st.sampled_from([ARM, QUADRUPED, BALLS, LOADED]))
def test_damaged_files_give_a_model_or_a_model_error(seed: int, text: str) -> None:
    """Bytes changed, cut out and doubled."""
    rng = np.random.default_rng(seed)
    data = bytearray(text.encode())
    for _ in range(int(rng.integers(1, 6))):
        i, n = int(rng.integers(len(data))), int(rng.integers(1, 30))
        match int(rng.integers(4)):
            case 0:
                data[i] = int(rng.integers(32, 127))
            case 1:
                del data[i : i + n]
            case 2:
                data[i:i] = data[i : i + n]
            case _:
                data[i:i] = str(rng.choice(["-1", "1e308", "0", '"', "<", "/>", "999999"])).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        path.write_bytes(bytes(data))
        with contextlib.suppress(rf.ModelError):
            assert rf.load(path).nv > 0


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mjcf_gate, "MAX_FILES", 3)
    for i in range(5):
        (tmp_path / f"p{i}.xml").write_text(
            f'<mujocoinclude><include file="p{i + 1}.xml"/></mujocoinclude>', encoding="utf-8"
        )
    with pytest.raises(rf.ModelError, match="more than 3 files"):
        rf.load(written(tmp_path, '<mujoco><include file="p0.xml"/></mujoco>'))


def test_without_mujoco_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(rf.ModelError, match=r"pip install 'ramify\[mjcf\]'"):
        read_mjcf(written(tmp_path, ARM))


def test_warnings_of_mujoco_are_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where warnings are errors: a warning is not a refusal."""
    plain = drop_pictures

    def warning(spec: Any, library: Any) -> None:
        warnings.warn("an attribute is deprecated", DeprecationWarning, stacklevel=1)
        plain(spec, library)

    monkeypatch.setattr("ramify.files.mjcf.drop_pictures", warning)
    model = rf.load(written(tmp_path, asked("")))
    assert "note: MuJoCo: an attribute is deprecated" in str(model.metadata["report"])


def test_constraints_have_numbers_that_a_robot_file_can_hold(tmp_path: Path) -> None:
    bodies = '<body><joint name="a"/><geom size="1"/></body><body><joint name="b"/><geom size="1"/></body>'
    gear = '<equality><joint joint1="a" joint2="b" polycoef="{} 1 0 0 0"/></equality>'
    text = f"<mujoco><worldbody>{bodies}</worldbody>{gear}</mujoco>"
    assert rf.load(written(tmp_path, text.format(0.5))).loops[0].offset == 0.5
    with pytest.raises(rf.ModelError, match=r"equality 0: data .* must be|huge value"):
        rf.load(written(tmp_path, text.format(1e40)))


def test_numbers_beyond_the_bound_are_named_with_it(tmp_path: Path) -> None:
    body = '<body name="b"><joint/><inertial pos="0 0 0" mass="2e30" diaginertia="1 1 1"/></body>'
    (tmp_path / "r.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    says = r"body 'b': mass 2e\+30 must be finite and below 1e\+30"
    with pytest.raises(rf.ModelError, match=says):
        rf.load(tmp_path / "r.xml")


def test_the_report_names_softness_in_one_line_without_a_warning(tmp_path: Path) -> None:
    text = """<mujoco><worldbody><body><joint name="j" frictionloss="1" solreffriction="0.1 1"/>
      <geom size="0.1" solref="0.1 1"/></body></worldbody></mujoco>"""
    report = rf.load(written(tmp_path, text)).metadata["report"]
    (line,) = [entry for entry in report if "softness" in entry.where]
    assert (line.level, line.moves) == ("ignored", False)
    assert "solreffriction of <joint>, solref of <geom>" in line.message
    assert "nothing was ignored" not in str(report)
