"""The built-in robots: what they are, and that those from ReDySim are ReDySim's (Pinocchio on its
own tables).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from redysim_data import variables

import ramify as rf
from ramify.core.spatial import NO_WRENCH, Vec3
from ramify.dynamics.inverse import inverse_dynamics
from ramify.dynamics.tree import Tree
from ramify.files.robot_writer import to_yaml
from ramify.model.skeleton import as_pose

FACTS: dict[str, tuple[int, int, float]] = {  # bodies, degrees of freedom, kg
    "chain": (20, 20, 1.0),
    "four_bar": (3, 3, 9.5),
    "gripper": (4, 4, 1.0),
    "hoeken_four_bar": (3, 3, 9.5),
    "kuka_kr5": (6, 6, 39.869),
    "planar_3r": (3, 3, 3.0),
    "puma_560": (6, 6, 23.45),
    "redysim_2_link": (2, 2, 0.9),
    "redysim_3_link": (3, 3, 1.2),
    "redysim_four_bar": (3, 3, 9.5),
    "redysim_pendulum": (2, 2, 2.1176),
    "redysim_pppr": (4, 4, 2.0),
    "redysim_rp": (2, 2, 1.0),
    "robotic_leg": (7, 7, 0.37),
    "slider_crank": (3, 3, 2.5),
    "spatial_biped_fixed": (10, 12, 9.2),
    "spatial_double_pendulum": (2, 4, 2.0),
    "spatial_four_bar": (3, 4, 3.0),
    "standing_biped": (6, 12, 9.2),
    "stanford_arm": (6, 6, 21.1),
    "stewart_platform": (13, 24, 28.0),
    "three_rrr": (7, 7, 29.0),
    "two_link": (2, 2, 3.508),
}
REDYSIM = {
    "chain": "large_dof_chain",
    "four_bar": "hoken_fourbar",
    "gripper": "robotic_gripper",
    "hoeken_four_bar": "hoken_fourbar",
    "kuka_kr5": "kuka_kr5",
    "redysim_2_link": "2_link_robot",
    "redysim_3_link": "3_link_robot",
    "redysim_four_bar": "fourbar_mechanism",
    "redysim_pendulum": "merioitt_lebnitz_pendulum",
    "redysim_pppr": "pppr_robot",
    "redysim_rp": "rp_robot",
    "slider_crank": "slider_crank",
    "spatial_biped_fixed": "spatial_biped_fordyn",
    "three_rrr": "3_rrr_parallel_robot",
}


OWN = {"slider_crank": {"rod": 1.0}}
"""Parameters with which a robot is ReDySim's own."""


def torques(model: rf.Model, q: Any, v: Any, a: Any) -> Any:
    """Inverse dynamics on plain floats."""
    skeleton = model.skeleton
    gravity = skeleton.root.rotation.T @ np.array(model.gravity)
    tree = Tree(
        skeleton.links, skeleton.parents, as_pose(skeleton.root), Vec3(*map(float, gravity))
    )
    rows = [[float(x) for x in u] for u in (q, v, a)]
    return np.array(inverse_dynamics(tree, *rows, [NO_WRENCH] * model.nv))


def redysim_in_pinocchio(data: dict[str, Any]) -> Any:
    """ReDySim's table in Pinocchio. The joint's own column (theta or b) is the coordinate, so it is
    left at zero.
    """
    model = pin.Model()
    model.gravity.linear = np.array(data["g"], dtype=float)
    ids = [0]
    for k in range(data["n"]):
        turns = data["r"][k] == 1
        alpha, a = data["alp"][k], data["a"][k]
        b, theta = (data["b"][k], 0.0) if turns else (0.0, data["th"][k])
        R = pin.rpy.rpyToMatrix(alpha, 0.0, 0.0) @ pin.rpy.rpyToMatrix(0.0, 0.0, theta)
        place = pin.SE3(R, np.array([a, -b * np.sin(alpha), b * np.cos(alpha)]))
        joint = pin.JointModelRZ() if turns else pin.JointModelPZ()
        ids.append(model.addJoint(ids[data["bt"][k]], joint, place, f"j{k}"))
        xx, yy, zz, xy, yz, zx = (data[f"Ic{e}"][k] for e in ("xx", "yy", "zz", "xy", "yz", "zx"))
        com = np.array([data[f"d{e}"][k] for e in "xyz"], dtype=float)
        tensor = np.array([[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]], dtype=float)
        model.appendBodyToJoint(
            ids[-1], pin.Inertia(float(data["m"][k]), com, tensor), pin.SE3.Identity()
        )
    return model


def test_every_built_in_robot_is_listed() -> None:
    assert set(FACTS) <= set(rf.robots())
    assert rf.robots() == sorted(rf.robots())


@pytest.mark.parametrize("name", FACTS)
def test_facts(name: str) -> None:
    model = rf.load(name)
    bodies, nv, mass = FACTS[name]
    assert (model.name, len(model.bodies), model.nv) == (name, bodies, nv)
    assert model.mass == pytest.approx(mass, rel=1e-12)
    assert np.linalg.norm(model.gravity) == pytest.approx(9.81)
    assert model.metadata["source"]
    assert model.metadata["description"]
    assert all(body.shapes for body in model.bodies if body.mass > 0.0)


@pytest.mark.parametrize("name", FACTS)
def test_every_file_names_its_source_in_a_comment(name: str, root: Path) -> None:
    text = (root / "src" / "ramify" / "robots" / f"{name}.yaml").read_text()
    assert "Source:" in "".join(line for line in text.splitlines() if line.startswith("#"))


@pytest.mark.parametrize(("name", "file"), REDYSIM.items())
def test_torques_are_those_of_redysims_table(name: str, file: str) -> None:
    data = variables(file)
    reference = redysim_in_pinocchio(data)
    model = rf.load(name, **OWN.get(name, {}))
    assert model.nv == reference.nv
    assert [int(joint.actuated) for joint in model.joints for _ in range(joint.dof)] == data["aj"]
    rng = np.random.default_rng(7)
    for _ in range(5):
        q, v, a = rng.normal(size=(3, model.nv))
        expected = pin.rnea(reference, reference.createData(), q, v, a)
        np.testing.assert_allclose(
            torques(model, q, v, a), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
        )


def test_stanford_arm_against_newton_euler_in_distal_frames() -> None:
    """Table 3 read independently: bodies in their distal frames, mass centre at -r."""
    rows = [
        (0, 0.2, -90),
        (0, 0.1, -90),
        (0, 0, 0),
        (0, 0.6, 90),
        (0, 0, -90),
        (0, 0, 0),
    ]  # a, b, alpha
    r = [(0, -0.1, 0), (0, 0, 0), (0, 0, 0), (0, -0.1, 0), (0, 0, 0), (0, 0, 0)]
    mass = [9, 6, 4, 1, 0.6, 0.5]
    moments = [
        (0.01, 0.02, 0.01),
        (0.05, 0.06, 0.01),
        (0.4, 0.4, 0.01),
        (1e-3, 1e-3, 5e-4),
        (5e-4, 5e-4, 2e-4),
        (0.003, 0.001, 0.002),
    ]
    model = pin.Model()
    joint, distal = 0, pin.SE3.Identity()
    for k, (a, b, alpha) in enumerate(rows):
        joint = model.addJoint(
            joint, pin.JointModelPZ() if k == 2 else pin.JointModelRZ(), distal, f"j{k}"
        )
        distal = pin.SE3(
            pin.rpy.rpyToMatrix(np.deg2rad(alpha), 0.0, 0.0), np.array([a, 0.0, b], dtype=float)
        )
        model.appendBodyToJoint(
            joint,
            pin.Inertia(float(mass[k]), -np.array(r[k], dtype=float), np.diag(moments[k])),
            distal,
        )
    rng = np.random.default_rng(3)
    q, v, a_ = rng.normal(size=(3, 6))
    expected = pin.rnea(model, model.createData(), q, v, a_)
    np.testing.assert_allclose(
        torques(rf.load("stanford_arm"), q, v, a_),
        expected,
        rtol=0,
        atol=1e-12 * np.abs(expected).max(),
    )


def test_planar_3r_holds_its_own_weight() -> None:
    """Stretched along X, joint k carries the moments of the rods beyond it: g m l (4.5, 2, 0.5)."""
    zero = np.zeros(3)
    np.testing.assert_allclose(
        torques(rf.load("planar_3r"), zero, zero, zero),
        9.81 * np.array([4.5, 2.0, 0.5]),
        rtol=1e-14,
    )
    np.testing.assert_allclose(
        torques(rf.load("planar_3r", length=2.0, mass=3.0), zero, zero, zero),
        6 * 9.81 * np.array([4.5, 2.0, 0.5]),
        rtol=1e-14,
    )


def test_two_link_inertia_is_that_of_two_rods() -> None:
    model, unit = rf.load("two_link"), np.eye(2)
    q = np.array([0.3, 0.8])
    rest = torques(model, q, np.zeros(2), np.zeros(2))
    M = np.array([torques(model, q, np.zeros(2), unit[k]) - rest for k in range(2)])
    ml2, c = 1.754 * 0.915**2, np.cos(0.8)
    expected = ml2 * np.array([[5 / 3 + c, 1 / 3 + c / 2], [1 / 3 + c / 2, 1 / 3]])
    np.testing.assert_allclose(M, expected, rtol=1e-12)


def test_double_pendulum_hangs_at_rest() -> None:
    np.testing.assert_allclose(
        torques(rf.load("spatial_double_pendulum"), *np.zeros((3, 4))), np.zeros(4), atol=1e-14
    )


def test_the_biped_stands_on_its_foot() -> None:
    """With the support leg upright the mass is above the ground: gravity points from the trunk to
    the foot.
    """
    model = rf.load("spatial_biped_fixed")
    assert model.gravity == (-9.81, 0.0, 0.0)
    assert [joint.kind for joint in model.joints].count("universal") == 2


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_chain_of_any_length(n: int) -> None:
    model = rf.load("chain", n=n)
    assert model.nv == n
    assert model.parents == tuple(range(-1, n - 1))
    assert model.bodies[-1].name == f"link{n}"
    assert model.mass == pytest.approx(0.05 * n)
    assert len(model.modules) == 1


@pytest.mark.parametrize("n", [0, -3, 1.5, 10**9, float("nan"), float("inf"), "three"])
def test_chain_of_impossible_length(n: Any) -> None:
    with pytest.raises(rf.ModelError, match=r"chain\.yaml:\d+:\d+: "):
        rf.load("chain", n=n)


@pytest.mark.parametrize("name", FACTS)
def test_written_out_and_read_back_to_the_last_bit(name: str, tmp_path: Path) -> None:
    model = rf.load(name)
    path = tmp_path / "again.yaml"
    path.write_text(to_yaml(model))
    again = rf.load(path)
    assert again.skeleton == model.skeleton
    assert again.joints == model.joints
    assert [body.shapes for body in again.bodies] == [body.shapes for body in model.bodies]
    assert (again.modules, again.gravity, dict(again.metadata)) == (
        model.modules,
        model.gravity,
        dict(model.metadata),
    )
    assert (again.loops, again.guess) == (model.loops, model.guess)
    assert to_yaml(again) == to_yaml(model)
