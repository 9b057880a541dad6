"""Coordinates of Pinocchio and MuJoCo: the same motion has the same poses, energy and power over
there; and what explain says.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from peers import pinocchio_of, random_model, states, worst

import ramify as rf
from ramify.api.model import Model
from ramify.model import quaternions
from ramify.model.foreign_coordinates import converter
from ramify.model.joint import JOINT_KINDS, SPHERICAL_SEQUENCES

KINDS = tuple(kind for kind in JOINT_KINDS if kind != "fixed")
CHOICES = {
    "revolute": ("plain", "cos_sin"),
    "planar": ("plain", "cos_sin"),
    "spherical": ("plain", "quaternion"),
    "free_euler": ("plain", "quaternion"),
}


def random_forms(model: Model, rng: np.random.Generator) -> dict[str, str]:
    return {
        joint.name: str(rng.choice(CHOICES[joint.kind]))
        for joint in model.joints
        if joint.kind in CHOICES
    }


def random_order(model: Model, rng: np.random.Generator) -> list[int]:
    """Bodies in another order, parents first."""
    left, order = set(range(len(model.bodies))), []
    while left:
        ready = [b for b in left if model.parents[b] < 0 or model.parents[b] in order]
        order.append(int(rng.choice(ready)))
        left.remove(order[-1])
    return order


@pytest.mark.parametrize("seed", range(40))
def test_the_same_motion_in_pinocchio(seed: int) -> None:
    """Poses, kinetic energy, inverse dynamics and the way back, in every form and order of joints."""
    rng = np.random.default_rng(seed)
    model = random_model(seed, KINDS, 8, ("", "free", "free_euler", "planar")[seed % 4])
    forms, order = random_forms(model, rng), random_order(model, rng)
    peer = pinocchio_of(model, forms, order)
    data = peer.createData()
    q, v, a = states(model, 3, seed)
    options: dict[str, Any] = {"forms": forms, "order": [model.joints[b].name for b in order]}
    tau = model.inverse_dynamics(q, v, a)
    theirs = model.to_pinocchio(q, v, a, tau, **options)
    assert theirs.q.shape == (3, peer.nq)
    kinetic, poses = model.energy(q, v).kinetic, model.kinematics(q)
    for i in range(3):
        their_q, their_v, their_a, their_tau = (np.asarray(x)[i] for x in theirs)
        assert worst(pin.rnea(peer, data, their_q, their_v, their_a), their_tau) < 1e-11
        assert worst(pin.computeKineticEnergy(peer, data, their_q, their_v), kinetic[i]) < 1e-12
        pin.framesForwardKinematics(peer, data, their_q)
        for b, body in enumerate(model.bodies):
            placed = data.oMf[peer.getFrameId(body.name)]
            assert_allclose(placed.rotation, poses.rotation[i, b], atol=1e-12)
            assert_allclose(placed.translation, poses.position[i, b], atol=1e-12)
    back = model.from_pinocchio(*theirs, **options)
    assert worst(model.kinematics(back.q).rotation, poses.rotation) < 1e-12
    for found, given in zip(back[1:], (v, a, tau), strict=True):
        assert worst(found, given) < 1e-9


PAIR = """
<mujoco><option gravity="0 0.5 -9.81"/><worldbody>
  <body name="drone"><freejoint name="flight"/><geom type="box" size="0.2 0.1 0.05" pos="0.02 0 0" mass="2"/>
    <body name="rod" pos="0 0 -0.1"><joint name="hang" type="ball"/>
      <geom type="capsule" fromto="0 0 0 0.05 0 -0.5" size="0.02" mass="0.5"/></body></body>
  <body name="wheel" pos="1 0 0"><joint name="axle" axis="0 1 0"/>
    <geom type="cylinder" size="0.3 0.05" pos="0.1 0 0" mass="3"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize("sequence", ["YXZ", "ZYZ"])
def test_the_same_motion_in_mujoco(sequence: str) -> None:
    """Our robot on Euler angles, in another order, is MuJoCo's on quaternions."""
    m = mujoco.MjModel.from_xml_string(PAIR)
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    m.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
    d = mujoco.MjData(m)

    def solid(name: str) -> dict[str, Any]:
        b = m.body(name).id
        R = quaternions.rotation(m.body_iquat[b])
        return {
            "mass": m.body_mass[b],
            "com": m.body_ipos[b],
            "inertia": R @ np.diag(m.body_inertia[b]) @ R.T,
        }

    builder = rf.Builder("pair", gravity=m.opt.gravity)
    builder.link(
        "wheel", at=(1.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0), joint_name="axle", **solid("wheel")
    )
    builder.link(
        "drone", joint="free_euler", sequence=sequence, joint_name="flight", **solid("drone")
    )
    builder.link(
        "rod",
        "drone",
        joint="spherical",
        sequence=sequence,
        at=(0.0, 0.0, -0.1),
        joint_name="hang",
        **solid("rod"),
    )
    model = builder.model()
    options: dict[str, Any] = {
        "order": ["flight", "hang", "axle"],
        "forms": {"flight": "quaternion", "hang": "quaternion"},
    }
    q, v, a = states(model, 5, 1)
    tau = model.inverse_dynamics(q, v, a)
    theirs = model.to_mujoco(q, v, a, tau, **options)
    assert theirs.q.shape == (5, m.nq)
    for i in range(5):
        d.qpos[:], d.qvel[:], d.qacc[:], their_tau = (np.asarray(x)[i] for x in theirs)
        mujoco.mj_inverse(m, d)
        assert worst(d.qfrc_inverse, their_tau) < 1e-10
        mujoco.mj_energyPos(m, d)
        mujoco.mj_energyVel(m, d)
        assert_allclose(d.energy[1], model.energy(q[i], v[i]).kinetic, rtol=1e-11)
        assert_allclose(d.energy[0], model.energy(q[i], v[i]).potential, rtol=1e-11, atol=1e-11)
    back = model.from_mujoco(*theirs, **options)
    for found, given in zip(back[1:], (v, a, tau), strict=True):
        assert worst(found, given) < 1e-11


def test_metadata_names_continuous_joints() -> None:
    model = (
        rf.Builder("wheels")
        .link("a", mass=1.0, inertia=(1, 1, 1))
        .link("b", "a", mass=1.0, inertia=(1, 1, 1))
        .model()
    )
    turning = rf.Model(
        model.name, model.bodies, model.gravity, model.attached, None, {"continuous": ["b"]}
    )
    theirs = turning.to_pinocchio([0.1, 4.0])
    assert_allclose(theirs.q, [0.1, np.cos(4.0), np.sin(4.0)])
    assert theirs.v is None
    assert_allclose(turning.from_pinocchio(theirs.q).q, [0.1, 4.0 - 2.0 * np.pi])
    assert_allclose(turning.to_mujoco([0.1, 4.0]).q, [0.1, 4.0])


def test_batches_broadcast() -> None:
    model = random_model(2, ("revolute", "ball"), 5, "free")
    q, v, _ = states(model, 4, 2)
    theirs = model.to_pinocchio(q[0], v.reshape(2, 2, -1))
    assert theirs.q.shape == (2, 2, model.nq)
    assert theirs.v is not None
    assert theirs.v.shape == (2, 2, model.nv)
    assert worst(theirs.v[1, 1], model.to_pinocchio(q[0], v[3]).v) < 1e-15


def test_the_root_joint_and_the_universe() -> None:
    model = (
        rf.Builder("robot")
        .link("base", joint="free", mass=1.0)
        .link("arm", "base", mass=1.0)
        .model()
    )
    made = converter(model, "pinocchio", order=["universe", "root_joint", "arm"])
    assert [part.joint.name for part in made.parts] == ["base", "arm"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": ["arm"]}, "the order lacks base; it must name each joint"),
        ({"order": ["base", "arm", "arm"]}, "the order names a joint twice"),
        ({"order": ["base", "leg"]}, "the order lacks arm and names unknown leg"),
        ({"forms": {"leg": "plain"}}, "no joint 'leg'"),
        (
            {"forms": {"arm": "quaternion"}},
            r"joint 'arm' \(revolute\) has no form 'quaternion' in pinocchio; choose 'plain' or 'cos_sin'",
        ),
        ({"forms": {"base": "plain"}}, r"joint 'base' \(free\) has no form 'plain'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    model = (
        rf.Builder("robot")
        .link("base", joint="free", mass=1.0)
        .link("arm", "base", mass=1.0)
        .model()
    )
    with pytest.raises(rf.ModelError, match=message):
        model.to_pinocchio(model.neutral(), **options)


def test_wrong_arrays_are_named() -> None:
    model = (
        rf.Builder("robot")
        .link("base", joint="free_euler", mass=1.0)
        .link("arm", "base", mass=1.0)
        .model()
    )
    q = model.neutral()
    with pytest.raises(rf.StateError, match="give v with a"):
        model.to_pinocchio(q, a=np.zeros(7))
    with pytest.raises(rf.StateError, match=r"v has shape \(3,\); 'robot' needs \(..., 7\)"):
        model.to_pinocchio(q, np.zeros(3))
    with pytest.raises(rf.StateError, match=r"q\[0\] is nan"):
        model.to_mujoco(q * np.nan)
    with pytest.raises(
        rf.StateError, match=r"q has shape \(7,\); 'robot in mujoco' needs \(..., 8\)"
    ):
        model.from_mujoco(q, forms={"base": "quaternion"})
    with pytest.raises(
        rf.StateError, match="quaternion of joint 'base' has length 2; it must be 1"
    ):
        model.from_mujoco([0, 0, 0, 2.0, 0, 0, 0, 0], forms={"base": "quaternion"})
    with pytest.raises(rf.ModelError, match=r"program must be .*got 'drake'"):
        converter(model, "drake")  # type: ignore[arg-type]
    locked = [0, 0, 0, np.sqrt(0.5), np.sqrt(0.5), 0, 0, 0]
    with pytest.raises(rf.StateError, match="joint 'base' is in gimbal lock"):
        model.from_mujoco(locked, np.ones(7), forms={"base": "quaternion"})


@pytest.mark.parametrize("sequence", SPHERICAL_SEQUENCES)
def test_euler_angles_and_their_rates(sequence: str) -> None:
    """Angles come back from the matrix; E is the map of the rates, by a complex-free central
    difference.
    """
    rng = np.random.default_rng(7)
    second = rng.uniform(0.3, 2.8, 20) if sequence[0] == sequence[2] else rng.uniform(-1.4, 1.4, 20)
    angles = np.stack([rng.uniform(-3, 3, 20), second, rng.uniform(-3, 3, 20)], axis=-1)
    assert_allclose(
        quaternions.to_euler(
            sequence, quaternions.rotation(quaternions.from_euler(sequence, angles))
        ),
        angles,
        atol=1e-13,
    )
    assert_allclose(
        quaternions.rotation(quaternions.from_euler(sequence, angles))[0],
        rf.euler_joint(sequence).rotation(angles[0]),
        atol=1e-14,
    )
    rates, h = rng.normal(size=(20, 3)), 1e-5
    R = quaternions.rotation(quaternions.from_euler(sequence, angles))
    ahead, behind = (
        quaternions.rotation(quaternions.from_euler(sequence, angles + s * h * rates))
        for s in (1, -1)
    )
    spin = np.swapaxes(R, -1, -2) @ (ahead - behind) / (2 * h)
    E = quaternions.euler_rates(sequence, angles)
    assert_allclose(
        (E @ rates[..., None])[..., 0],
        np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1),
        atol=1e-8,
    )
    turned = (
        quaternions.euler_rates(sequence, angles + h * rates)
        - quaternions.euler_rates(sequence, angles - h * rates)
    ) / (2 * h)
    assert_allclose(
        quaternions.euler_bias(E, rates), (turned @ rates[..., None])[..., 0], atol=1e-7
    )


# ---- explain ----


def test_explain_reads_as_a_table() -> None:
    builder = rf.Builder("robot").link("base", joint="free", mass=1.0)
    builder.link("arm", "base", axis=(0, -1, 0), at=(0, 0, 1), mass=1.0).link(
        "hip", "arm", joint="spherical", sequence="ZYX", mass=1.0
    )
    builder.link("nut", "hip", joint="helical", pitch=0.1, axis=(1, 1, 0)).link(
        "plate", "nut", joint="planar", outlet=(1, 0, 0)
    )
    builder.link("end", "plate", joint="ball", outlet=(0, 0, 1)).link(
        "rail", "end", joint="prismatic"
    )
    model = builder.model()
    q, v = model.random(1)
    told = model.explain(q, v)
    assert len(told) == model.nq + model.nv
    assert [e.name for e in told] == [*model.coordinates, *model.velocities]
    assert [e.value for e in told] == [*q, *v]
    by = {(e.array, e.name): e for e in told}
    assert by["q", "base.qw"].meaning == "unit quaternion, scalar part w (w first)"
    assert by["v", "base.x"].frame == "world"
    assert by["v", "base.x"].meaning == "velocity of the body's origin along x"
    assert by["v", "base.wx"].frame == "body base"
    assert by["v", "end.wz"].frame == "moved frame of end"
    assert by["q", "arm"].meaning == "angle about -y"
    assert by["q", "arm"].frame == "joint frame on base"
    assert by["q", "hip.y2"].meaning == "second Euler angle of ZYX, about y as moved so far"
    assert by["q", "nut"].meaning == "angle about (0.7071, 0.7071, 0), sliding 0.1 m per rad"
    assert by["q", "rail"].unit == "m"
    assert by["v", "rail"].unit == "m/s"
    lines = str(told).splitlines()
    assert len(lines) == 1 + len(told)
    assert lines[0].split() == ["joint", "type", "meaning", "frame", "unit", "value"]
    assert lines[4].startswith("q[3]")
    assert "print it" in repr(told)


def test_explain_without_arrays_and_in_part() -> None:
    model = rf.Builder("robot").link("base", mass=1.0).model()
    assert [e.value for e in model.explain()] == [None, None]
    assert "value" not in str(model.explain())
    assert [e.array for e in model.explain([0.5])] == ["q"]
    assert model.explain([[0.5], [0.6]])[0].value is None
    with pytest.raises(rf.StateError, match="q has shape"):
        model.explain([0.5, 0.6])
