"""The built-in robots on floating bases: that they are the book's and ReDySim's, and that their
bases agree with each other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from redysim_data import variables

import ramify as rf
from ramify.api.builders import as_model
from ramify.files.redysim.redysim_robot import from_variables
from ramify.files.robot_writer import to_yaml
from ramify.model.floating_base import with_base

from_variables = as_model(from_variables)

FLOATING: dict[str, tuple[int, int, float]] = {  # bodies, degrees of freedom, kg
    "dual_arm": (7, 12, 560.0),
    "hexapod": (13, 18, 16.0),
    "planar_biped": (7, 12, 9.4),
    "quadruped": (9, 18, 12.0),
    "space_3_link": (4, 9, 530.0),
    "space_7_link": (8, 13, 1178.17),
    "spatial_biped": (7, 18, 9.4),
}
SPACE = {
    "space_3_link": "floating_3_link",
    "space_7_link": "floating_7_link",
    "dual_arm": "floating_dual_arm",
}


def test_they_are_built_in() -> None:
    assert set(FLOATING) <= set(rf.robots())


@pytest.mark.parametrize("name", FLOATING)
def test_facts(name: str, root: Path) -> None:
    model = rf.load(name)
    bodies, nv, mass = FLOATING[name]
    assert (model.name, len(model.bodies), model.nv, model.nq) == (name, bodies, nv, nv)
    assert model.mass == pytest.approx(mass, rel=1e-12)
    assert np.linalg.norm(model.gravity) == pytest.approx(0.0 if name in SPACE else 9.81)
    assert (model.joints[0].kind, model.joints[0].sequence) == (
        "free_euler",
        "ZXY" if name in SPACE else "YXZ",
    )
    assert [joint.actuated for joint in model.joints] == [False] + [True] * (bodies - 1)
    assert all(body.shapes for body in model.bodies)
    assert all(finding.level == "note" for finding in model.check())
    assert model.metadata["source"]
    text = (root / "src" / "ramify" / "robots" / f"{name}.yaml").read_text()
    assert "Source:" in "".join(line for line in text.splitlines() if line.startswith("#"))


PLANAR = ("dual_arm", "hexapod", "planar_biped", "space_3_link")
"""Robots whose joints move in one plane."""


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("base", ["free", "free_euler", "planar"])
def test_written_out_and_read_back_to_the_last_bit(name: str, base: str, tmp_path: Path) -> None:
    if base == "planar" and name not in PLANAR:
        with pytest.raises(rf.ModelError, match="do not move in one plane; choose 'free'"):
            rf.load(name, base=base)
        return
    model = rf.load(name, base=base)
    path = tmp_path / "again.yaml"
    path.write_text(to_yaml(model))
    again = rf.load(path)
    assert again.skeleton == model.skeleton
    assert again.joints == model.joints
    assert [(body.shapes, body.points) for body in again.bodies] == [
        (body.shapes, body.points) for body in model.bodies
    ]
    assert to_yaml(again) == to_yaml(model)


@pytest.mark.parametrize(
    ("name", "height", "points"),
    [
        ("planar_biped", -1.25, 4),
        ("spatial_biped", -1.05, 8),
        ("quadruped", -0.6, 4),
        ("hexapod", -0.6, 6),
    ],
)
def test_they_stand_on_their_feet(name: str, height: float, points: int) -> None:
    """At q = 0 the contact points of the feet lie in one plane below all others, and surround the
    mass centre.
    """
    model = rf.load(name)
    poses = model.kinematics(model.neutral())
    at = np.array(
        [
            poses.rotation[i] @ p + poses.position[i]
            for i, body in enumerate(model.bodies)
            for _, p in body.points
        ]
    )
    feet = np.array(
        [
            name.endswith(("foot", "left", "right", "toe", "heel"))
            for body in model.bodies
            for name, _ in body.points
        ]
    )
    assert feet.sum() == points
    assert at[~feet, 2].min() > height + 0.2
    at = at[feet]
    np.testing.assert_allclose(at[:, 2], height, atol=1e-12)
    np.testing.assert_allclose(
        at[:, :2].mean(axis=0), model.center_of_mass(model.neutral())[:2], atol=1e-12
    )


# ---- the same robot on another base ----


def quaternion(R: Any) -> Any:
    """Unit quaternion, w first."""
    x, y, z, w = pin.Quaternion(R).coeffs()
    return np.array([w, x, y, z])


def base_map(model: rf.Model, q: Any, v: Any) -> tuple[Any, Any, Any]:
    """(R, E, e): rotation of the root; its angular velocity in its own frame is E rates, the
    derivative of that E a + e.
    """
    name = model.bodies[0].name
    R = model.kinematics(q).rotation[0]
    return R, R.T @ model.jacobian(q, name)[:3, 3:6], R.T @ model.jacobian_rate(q, v, name)[:3]


def freed(model: rf.Model, q: Any, v: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """The state of a free_euler robot as that of the same robot on a quaternion, and E."""
    R, E, e = base_map(model, q, v)
    q_free = np.concatenate([q[:3], quaternion(R), q[6:]])
    v_free = np.concatenate([v[:3], E @ v[3:6], v[6:]])
    a_free = np.concatenate([a[:3], E @ a[3:6] + e, a[6:]])
    return q_free, v_free, a_free, E


def in_pinocchio(model: rf.Model) -> Any:
    """A robot on a free base, joint by joint, in Pinocchio: a free flyer and chains of one-degree
    joints.
    """
    out = pin.Model()
    out.gravity.linear = np.array(model.gravity)
    ids: list[int] = []
    seats: list[Any] = []
    for body in model.bodies:
        parent, seat = (
            (0, pin.SE3.Identity()) if body.parent < 0 else (ids[body.parent], seats[body.parent])
        )
        place = seat * pin.SE3(
            np.array(body.joint.placement.rotation), np.array(body.joint.placement.position)
        )
        if body.joint.kind == "free":
            parent = out.addJoint(parent, pin.JointModelFreeFlyer(), place, body.joint.name)
        else:
            for step in body.joint.steps:
                axis = np.array(step.axis)
                one = (
                    pin.JointModelRevoluteUnaligned(axis)
                    if step.rho
                    else pin.JointModelPrismaticUnaligned(axis)
                )
                parent = out.addJoint(parent, one, place, f"{body.joint.name}.{step.name}")
                place = pin.SE3.Identity()
        ids.append(parent)
        seats.append(
            pin.SE3(np.array(body.joint.outlet.rotation), np.array(body.joint.outlet.position))
        )
        out.appendBodyToJoint(
            parent, pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia)), seats[-1]
        )
    return out


def pinocchio_torques(peer: Any, R: Any, q: Any, v: Any, a: Any) -> Any:
    """Inverse dynamics in Pinocchio, in and out in ramify's convention for a free base: [in the
    world; in the body].
    """
    q_pin = np.concatenate([q[:3], q[[4, 5, 6, 3]], q[7:]])
    velocity = R.T @ v[:3]
    v_pin = np.concatenate([velocity, v[3:]])
    a_pin = np.concatenate([R.T @ a[:3] - np.cross(v[3:6], velocity), a[3:]])
    tau = pin.rnea(peer, peer.createData(), q_pin, v_pin, a_pin)
    return np.concatenate([R @ tau[:3], tau[3:]])


@pytest.mark.parametrize("name", FLOATING)
def test_quaternion_euler_angles_and_pinocchio_agree(name: str) -> None:
    euler, free = rf.load(name), rf.load(name, base="free")
    assert (free.nq, free.nv) == (euler.nq + 1, euler.nv)
    peer = in_pinocchio(free)
    rng = np.random.default_rng(5)
    for _ in range(3):
        q, v, a = rng.normal(size=(3, euler.nv))
        q[4] = rng.uniform(-1.2, 1.2)  # away from the singular second angle
        q_free, v_free, a_free, E = freed(euler, q, v, a)
        tau = euler.inverse_dynamics(q, v, a)
        tau_free = free.inverse_dynamics(q_free, v_free, a_free)
        size = np.abs(tau_free).max()
        expected = pinocchio_torques(peer, euler.kinematics(q).rotation[0], q_free, v_free, a_free)
        np.testing.assert_allclose(tau_free, expected, rtol=0, atol=1e-12 * size)
        np.testing.assert_allclose(
            tau,
            np.concatenate([tau_free[:3], E.T @ tau_free[3:6], tau_free[6:]]),
            rtol=0,
            atol=1e-12 * size,
        )
        np.testing.assert_allclose(
            euler.forward_dynamics(q, v, tau), a, rtol=0, atol=1e-8 * np.abs(a).max()
        )
        np.testing.assert_allclose(
            free.forward_dynamics(q_free, v_free, tau_free),
            a_free,
            rtol=0,
            atol=1e-8 * np.abs(a_free).max(),
        )
        np.testing.assert_allclose(euler.energy(q, v), free.energy(q_free, v_free), rtol=1e-12)


@pytest.mark.parametrize("name", ["dual_arm", "space_3_link"])
def test_a_planar_base_is_the_free_one_held_in_the_plane(name: str) -> None:
    euler, planar = rf.load(name), rf.load(name, base="planar")
    assert planar.nv == euler.nv - 3
    keep = [0, 1, 3, *range(6, euler.nv)]
    q, v, a = np.zeros((3, euler.nv))
    for i, x in enumerate((q, v, a)):
        x[keep] = np.random.default_rng(i).normal(size=len(keep))
    tau = euler.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        planar.inverse_dynamics(q[keep], v[keep], a[keep]),
        tau[keep],
        rtol=0,
        atol=1e-12 * np.abs(tau).max(),
    )


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), (0.0, 0.0, 9.81), (-9.81, 0.0, 0.0)])
def test_a_planar_biped_stays_in_its_plane_and_feels_gravity(
    gravity: tuple[float, float, float],
) -> None:
    """The base moves in the plane of the legs, its second slide up."""
    euler = rf.with_gravity(rf.load("planar_biped"), gravity)
    planar = with_base(euler, "planar")
    q, v = planar.random(1)
    up = np.array(gravity) / -9.81
    rises = planar.jacobian(q, "trunk")[3:, 1]
    assert abs(rises[1]) < 1e-15
    assert rises @ up == pytest.approx(abs(up[2]), abs=1e-12)
    falling = planar.forward_dynamics(q, 0 * v, 0 * v)
    moving = planar.jacobian(q, "trunk")[3:] @ falling
    assert np.linalg.norm(moving) > 1.0
    # the free base, held in the plane by nothing but symmetry, does the same
    slides = planar.jacobian(q, "trunk")[3:, :2]
    free = np.zeros(euler.nv)
    free[:3] = slides @ q[:2]
    free[3] = q[2] * planar.jacobian(q, "trunk")[1, 2]  # Y is the first Euler angle
    free[6:] = q[3:]
    a = euler.forward_dynamics(free, np.zeros(euler.nv), np.zeros(euler.nv))
    np.testing.assert_allclose(euler.jacobian(free, "trunk")[3:] @ a, moving, atol=1e-10)
    np.testing.assert_allclose(a[6:], falling[3:], atol=1e-9)


def test_planes_of_slides_and_single_bodies() -> None:
    lone = rf.Builder("box").link("box", joint="free", mass=1.0, inertia=(1, 1, 1)).model()
    box = with_base(lone, "planar")
    a = box.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(a, [0, -9.81, 0])
    cart = rf.Builder("cart").link("base", joint="free", mass=1.0, inertia=(1, 1, 1))
    cart.link("slide", "base", joint="prismatic", axis=(0, 1, 0), mass=1.0)
    normal = with_base(cart.model(), "planar").joints[0].axis
    assert np.abs(normal).tolist() == [1.0, 0.0, 0.0]


def test_a_base_may_be_held() -> None:
    held = rf.load("quadruped", base="fixed")
    assert held.nv == 12
    assert held.attachment("trunk").body == -1


@pytest.mark.parametrize(
    ("name", "base"), [("kuka_kr5", "free"), ("quadruped", "wheels"), ("gripper", "planar")]
)
def test_bases_that_cannot_be(name: str, base: str) -> None:
    with pytest.raises(rf.ModelError, match="base"):
        rf.load(name, base=base)


# ---- cross-read with ReDySim ----


def turn(axis: str, degrees: float) -> Any:
    u = np.eye(3)["xyz".index(axis)]
    return pin.AngleAxis(np.deg2rad(degrees), u).toRotationMatrix()


def corrected_biped(data: dict[str, Any]) -> dict[str, Any]:
    data["Icxx"][0] *= data["m"][0]  # the mass that is missing there
    return data


Z_UP = np.array(
    [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
)  # ReDySim's y is up, its z to the right: columns are its axes in ours
SIDEWAYS = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])  # its z is ahead, its x to the left
CROSS: list[
    Any
] = [  # robot, file, options, world axes, trunk of ReDySim where ours is upright, joint sign and offset per leg: ours = s (his - o)
    ("planar_biped", "legged_biped", {}, Z_UP, turn("z", -90), [(-1, 0), (-1, 0), (-1, 90)] * 2),
    ("quadruped", "legged_quadruped", {}, SIDEWAYS, np.eye(3), [(1, -90), (-1, 0), (-1, 0)] * 4),
    (
        "hexapod",
        "legged_hexapod",
        {"trunk_mass": 2.0, "trunk_com": 0.5},
        Z_UP,
        np.eye(3),
        [(-1, -90), (-1, 0)] * 6,
    ),
]


@pytest.mark.parametrize(
    ("name", "file", "options", "W", "upright", "joints"), CROSS, ids=[row[0] for row in CROSS]
)
def test_legged_robots_are_those_of_redysim(
    name: str, file: str, options: Any, W: Any, upright: Any, joints: Any
) -> None:
    data = variables(file)
    his = from_variables(corrected_biped(data) if name == "planar_biped" else data, base="free")
    ours = rf.load(name, base="free", **options)
    B = (W @ upright).T  # our trunk's frame in his
    sign = np.array([s for s, _ in joints])
    offset = np.deg2rad([o for _, o in joints])
    rng = np.random.default_rng(11)
    for _ in range(3):
        q, v, a = rng.normal(size=his.nq), *rng.normal(size=(2, his.nv))
        q[3:7] /= np.linalg.norm(q[3:7])
        R = W @ his.kinematics(q).rotation[0] @ B
        q_ours = np.concatenate([W @ q[:3], quaternion(R), sign * (q[7:] - offset)])
        v_ours, a_ours = (np.concatenate([W @ x[:3], B.T @ x[3:6], sign * x[6:]]) for x in (v, a))
        tau = his.inverse_dynamics(q, v, a)
        expected = np.concatenate([W @ tau[:3], B.T @ tau[3:6], sign * tau[6:]])
        np.testing.assert_allclose(
            ours.inverse_dynamics(q_ours, v_ours, a_ours),
            expected,
            rtol=0,
            atol=1e-12 * np.abs(tau).max(),
        )


@pytest.mark.parametrize(("name", "file"), SPACE.items())
def test_space_robots_are_those_of_redysim(name: str, file: str) -> None:
    his, ours = from_variables(variables(file)), rf.load(name)
    q, v, a = np.random.default_rng(2).normal(size=(3, 4, ours.nv))
    np.testing.assert_allclose(
        ours.inverse_dynamics(q, v, a), his.inverse_dynamics(q, v, a), rtol=1e-11, atol=1e-9
    )


def test_space_3_link_of_the_forward_dynamics() -> None:
    his, ours = (
        from_variables(variables("floating_3_link_fordyn")),
        rf.load("space_3_link", reach=1.5),
    )
    q, v, a = np.random.default_rng(2).normal(size=(3, 4, ours.nv))
    np.testing.assert_allclose(
        ours.inverse_dynamics(q, v, a), his.inverse_dynamics(q, v, a), rtol=1e-11, atol=1e-9
    )
