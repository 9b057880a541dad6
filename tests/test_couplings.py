"""Couplings of coordinates and tendons by polynomials, straight and spatial: against MuJoCo's
equality constraints, closed forms, differences, and their round trips.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from comparing import close, same
from test_c_export import build

import ramify as rf
from ramify.api.model import Model
from ramify.core.arrays import Array
from ramify.files.urdf_writer import to_urdf
from ramify.kernels.robot_keys import robot_key

WORLD = """
<mujoco model="coupled"><option gravity="0.3 0 -9.81" timestep="0.0002" integrator="RK4"/><compiler angle="radian"/>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody><site name="post" pos="0.1 -0.3 0.2"/>
  <body name="a"><joint name="a" axis="0 1 0" ref="0.2"/><site name="sa" pos="0.3 0 0.05"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0.4 0 0"/>
    <body name="b" pos="0.4 0 0"><joint name="b" axis="0 1 0" ref="-0.1"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.4 0 0"/><site name="sb" pos="0.1 0.02 0.1"/>
      <body name="c" pos="0.4 0 0"><joint name="c" type="slide" axis="1 0 0"/>
        <geom size="0.06"/><site name="sc" pos="0 0 0.07"/></body></body></body>
  <body name="d" pos="0 0.5 0"><joint name="d" axis="1 0 0"/><site name="sd" pos="0 0.3 0.02"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0.4 0"/></body></worldbody>
<tendon><fixed name="f"><joint joint="a" coef="1"/><joint joint="b" coef="-0.5"/></fixed>
  <fixed name="g"><joint joint="d" coef="0.7"/></fixed>
  <spatial name="s"><site site="sa"/><site site="sb"/><site site="sc"/><pulley divisor="2"/>
    <site site="post"/><site site="sa"/><site site="sd"/></spatial></tendon>
<equality>{}</equality></mujoco>"""
STIFF = 'solref="0.0008 1" solimp="0.9999 0.99999 0.001"'
EQUALITIES = {
    "polynomial": '<joint joint1="b" joint2="a" polycoef="0.1 0.5 -0.7 0.3 0.2" {}/>',
    "slide on an angle": '<joint joint1="c" joint2="d" polycoef="0 0 0.3 0 -0.1" {}/>',
    "held": '<joint joint1="d" polycoef="0.3 1 1 1 1" {}/>',
    "fixed tendons": '<tendon tendon1="f" tendon2="g" polycoef="0 0.5 0.4 0.1 0" {}/>',
    "tendon held": '<tendon tendon1="f" {}/>',
    "spatial": '<tendon tendon1="s" {}/>',
    "spatial and fixed": '<tendon tendon1="s" tendon2="f" polycoef="0 0.05 0.1 0 0" {}/>',
    "fixed and spatial": '<tendon tendon1="f" tendon2="s" polycoef="0 1.5 0.4 0 0.2" {}/>',
}


@pytest.fixture(params=EQUALITIES)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "coupled.xml"
    path.write_text(WORLD.format(EQUALITIES[request.param].format(STIFF)))
    return path


def state(m: Model, seed: int = 0) -> tuple[Array, Array]:
    """A closed posture, and velocities that keep it closed."""
    q = m.assemble().q
    v = np.random.default_rng(seed).normal(size=m.nv)
    J = m.constraints(q).J
    return q, v - np.linalg.pinv(J) @ (J @ v)


def rows_of(peer: Any, d: Any) -> Array:
    """MuJoCo's Jacobian of its constraints."""
    J = np.zeros((d.nefc, peer.nv))
    if mujoco.mj_isSparse(peer):
        mujoco.mju_sparse2dense(J, d.efc_J, d.efc_J_rownnz, d.efc_J_rowadr, d.efc_J_colind)
        return J
    return np.array(d.efc_J).reshape(J.shape)


def test_residual_and_jacobian_are_mujocos(file: Path) -> None:
    m = rf.load(file)
    assert len(m.loops) == 1
    assert not [entry for entry in m.metadata["report"] if entry.moves]
    peer = mujoco.MjModel.from_xml_path(str(file))
    d = mujoco.MjData(peer)
    for seed in range(3):
        q, v = np.random.default_rng(seed).normal(size=(2, m.nv)) * 0.5
        d.qpos[:], d.qvel[:] = q, v
        mujoco.mj_forward(peer, d)
        c = m.constraints(q, v)
        close(c.residual, d.efc_pos, atol=1e-14, rtol=0.0, of="residual")
        close(c.J, rows_of(peer, d), atol=2e-14, rtol=0.0, of="J")
        ahead, back = (m.constraints(m.integrate(q, v, h), v).J for h in (1e-6, -1e-6))
        close(c.Jdot_v, (ahead - back) @ v / 2e-6, atol=1e-8, rtol=0.0, of="Jdot_v")


def test_the_motion_is_that_of_mujocos_stiff_constraint(file: Path) -> None:
    m = rf.load(file)
    q, v = state(m)
    r = rf.simulate(m, 0.2, q, v, dt_out=0.1)
    assert r.audit.passed, r.audit
    r.save(file.with_suffix(".nc"))
    again = rf.Result.open(file.with_suffix(".nc"))
    same(again.loops.multipliers, r.loops.multipliers, "multipliers")
    peer = mujoco.MjModel.from_xml_path(str(file))
    peer.opt.tolerance, peer.opt.iterations = 1e-14, 100
    d = mujoco.MjData(peer)
    d.qpos[:], d.qvel[:] = q, v
    for _ in range(1000):
        mujoco.mj_step(peer, d)
    assert np.abs(r.q[-1] - q).max() > 0.3
    close(r.q[-1], d.qpos, atol=2e-5, rtol=0.0, of="q after 0.2 s")
    free = rf.simulate(m.tree, 0.2, q, v, dt_out=0.1).q[-1]
    assert np.abs(free - d.qpos).max() > 1e-3  # without the constraint it goes elsewhere


def test_dynamics_are_the_textbook_equations(file: Path) -> None:
    """I a + h = tau + J' lambda and J a + J' v = 0; inverse dynamics gives tau back."""
    m = rf.load(file)
    q, v = state(m, 1)
    tau = np.random.default_rng(2).normal(size=m.nv)
    a, lam = m.forward_dynamics(q, v, tau, multipliers=True)
    c = m.constraints(q, v)
    close(c.J @ a + c.Jdot_v, 0.0, atol=1e-9, rtol=0.0, of="row acceleration")
    want = m.tree.inverse_dynamics(q, v, a) - tau
    close(c.J.T @ lam, want, atol=1e-9, rtol=1e-9, of="forces of the coupling")
    inverse = m.inverse_dynamics(q, v, a)
    again = m.forward_dynamics(q, v, inverse)
    close(again, a, atol=1e-9, rtol=1e-9, of="accelerations")


def test_bearings_carry_the_tension_of_a_tendon(tmp_path: Path) -> None:
    """As a force along the tendon on the body it pulls at would load them."""
    path = tmp_path / "rope.xml"
    rope = '<spatial name="r"><site site="post"/><site site="sb"/></spatial></tendon>'
    text = WORLD.format('<tendon tendon1="r"/>').replace("</tendon>", rope, 1)
    path.write_text(text)
    m = rf.load(path)
    q, v = state(m, 5)
    a, lam = m.forward_dynamics(q, v, np.zeros(m.nv), multipliers=True)
    site = m.pose(q, "sb").position
    along = site - m.pose(q, "post").position
    force = lam[0] * along / np.linalg.norm(along)
    moment = np.cross(site - m.pose(q, "b").position, force)
    want = m.tree.bearing_forces(q, v, a, wrenches={"b": np.concatenate([moment, force])})
    found = m.bearing_forces(q, v, a, multipliers=lam)
    assert abs(lam[0]) > 0.1
    for name in want:
        close(found[name], want[name], atol=1e-9, rtol=1e-9, of=name)


def test_derivatives_are_differences(file: Path) -> None:
    m = rf.load(file)
    q, v = state(m, 3)
    tau = np.random.default_rng(4).normal(size=m.nv)
    found = m.forward_dynamics_derivatives(q, v, tau)
    h = 1e-6
    for k, e in enumerate(np.eye(m.nv) * h):
        pairs = (
            ("q", (q + e, v, tau), (q - e, v, tau)),
            ("v", (q, v + e, tau), (q, v - e, tau)),
            ("tau", (q, v, tau + e), (q, v, tau - e)),
        )
        for (by, one, other), slopes in zip(pairs, found, strict=True):
            change = (_accelerations(m, *one) - _accelerations(m, *other)) / (2 * h)
            close(slopes[..., k], change, rtol=1e-5, atol=1e-5, of=f"da/d{by}[{k}]")


def _accelerations(m: Model, q: Array, v: Array, tau: Array) -> Array:
    """Forward dynamics at a posture that may be a little open."""
    return np.asarray(m.kernel("forward_dynamics")(q, v, tau))


def test_files_keep_them_and_c_computes_them(file: Path, tmp_path: Path) -> None:
    m = rf.load(file)
    m.save(tmp_path / "coupled.yaml")
    again = rf.load(tmp_path / "coupled.yaml")
    same(again.loops, m.loops, "loops")
    again.save(tmp_path / "second.yaml")
    assert (tmp_path / "second.yaml").read_text() == (tmp_path / "coupled.yaml").read_text()
    q, v = state(m)
    tau = np.arange(1.0, 1.0 + m.nv)
    want = m.forward_dynamics(q, v, tau)
    close(again.forward_dynamics(q, v, tau), want, rtol=1e-10, of="accelerations")


def test_c_has_the_coupling(tmp_path: Path) -> None:
    path = tmp_path / "coupled.xml"
    path.write_text(WORLD.format(EQUALITIES["spatial and fixed"].format(STIFF)))
    m = rf.load(path)
    q, v = state(m)
    tau = np.arange(1.0, 1.0 + m.nv)
    call = build(m, tmp_path, algorithms=["forward_dynamics"])
    (found,) = call("forward_dynamics", q, v, tau, out=(m.nv,))
    close(found, m.forward_dynamics(q, v, tau), rtol=1e-10, of="accelerations in C")


def scotch_yoke(curve: tuple[float, ...]) -> Model:
    """A wheel whose angle lifts a load of 2 kg by a curve, with a spring in the wheel's joint."""
    b = rf.Builder("cam")
    b.link("wheel", axis=(0, 1, 0), mass=1.0, inertia=(0.1, 0.2, 0.1))
    b.link("load", joint="prismatic", mass=2.0)
    return b.loop("cam", "coupling", joints=("wheel", "load"), curve=curve).model()


def test_a_cam_in_closed_form() -> None:
    """(I + m s'^2) a = tau - m s' (s'' w^2 + g)."""
    c = (0.1, 0.2, -0.3, 0.05)
    m = scotch_yoke(c)
    s = np.polynomial.Polynomial(c)
    x, w, tau = 0.4, 1.5, 0.7
    at = m.assemble({"wheel": x}, {"wheel": w})
    close(at.q, [x, s(x)], atol=1e-12, of="q")
    close(at.v, [w, s.deriv()(x) * w], atol=1e-12, of="v")
    slope, bend = s.deriv()(x), s.deriv(2)(x)
    want = (tau - 2.0 * slope * (bend * w * w + 9.81)) / (0.2 + 2.0 * slope**2)
    a = m.forward_dynamics(at.q, at.v, [tau, 0.0])
    close(a, [want, slope * want + bend * w * w], rtol=1e-12, of="a")


def test_robots_that_differ_in_a_coupling_alone_differ_in_their_key(tmp_path: Path) -> None:
    """Curves, coefficients, divisors and places of tendons are constants of a kernel."""
    path = tmp_path / "coupled.xml"
    text = WORLD.format(EQUALITIES["spatial and fixed"].format(STIFF))
    keys = []
    for old, new in (
        ("", ""), ('polycoef="0 0.05', 'polycoef="0 0.06'), ('divisor="2"', 'divisor="3"'),
        ('coef="-0.5"', 'coef="-0.6"'), ('pos="0.3 0 0.05"', 'pos="0.3 0 0.06"'),
    ):  # fmt: skip
        assert old in text
        path.write_text(text.replace(old, new, 1) if old else text)
        keys.append(robot_key(rf.load(path)))
    assert len(set(keys)) == len(keys)


def test_random_states_lie_on_the_curve_and_chains_follow() -> None:
    b = rf.Builder("chain of cams")
    for name in ("a", "b", "c"):
        b.link(name, mass=1.0, inertia=(1, 1, 1))
    b.loop("second", "coupling", joints=("b", "c"), curve=(0.0, 0.5, 0.1))
    b.loop("first", "coupling", joints=("a", "b"), curve=(0.1, 0.3, 0.0, 0.02))
    m = b.model()
    for seed in range(3):
        q, v = m.random(seed)
        c = m.constraints(q, v)
        close(c.residual, 0.0, atol=1e-12, of="residual")
        close(c.J @ v, 0.0, atol=1e-12, of="rates")
    assert m.constraints(*m.random(0)).mobility == 1


def test_locking_the_leader_locks_the_follower_on_the_curve() -> None:
    b = rf.Builder("cam and arm")
    b.link("wheel", mass=1.0, inertia=(1, 1, 1))
    b.link("load", joint="prismatic", mass=2.0)
    b.link("arm", parent="load", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    m = b.loop("cam", "coupling", joints=("wheel", "load"), curve=(0.1, 0.2, -0.3)).model()
    locked = rf.with_locked(m, "wheel", 0.5)
    assert locked.coordinates == ("arm",)
    close(locked.pose([0.0], "load").position, [0, 0, 0.1 + 0.1 - 0.075], atol=1e-15)
    with pytest.raises(rf.ModelError, match="lock 'wheel' instead"):
        rf.with_locked(m, "load", 0.1)


def wrong() -> Iterator[tuple[dict[str, Any], str]]:
    yield {"curve": (0.0, 1.0)}, "relates two coordinates, or two tendons"
    yield {"joints": ("a", "b")}, "must be finite coefficients"
    yield {"joints": ("a", "b"), "curve": (np.inf,)}, "must be finite coefficients"
    yield {"joints": ("a", "b"), "tendons": ("t",), "curve": (0.0,)}, "two coordinates, or two"
    yield {"joints": ("a",), "curve": (0.0, 1.0)}, "curve of one number"
    yield {"joints": ("a", "a"), "curve": (0.0, 1.0)}, "geared to itself"
    yield {"joints": ("a", "x"), "curve": (0.0, 1.0)}, "no coordinate 'x'"
    yield {"tendons": ("t", "x"), "curve": (0.0, 1.0)}, "no tendon 'x'"
    yield {"joints": ("a", "b"), "curve": (0.0, 1.0), "ratio": 2.0}, "belong to gears"


@pytest.mark.parametrize(("options", "text"), list(wrong()))
def test_wrong_couplings_are_refused(options: dict[str, Any], text: str) -> None:
    b = rf.Builder("pair")
    b.link("a", mass=1.0, inertia=(1, 1, 1)).link("b", mass=1.0, inertia=(1, 1, 1))
    b.tendon("t", joints={"a": 1.0})
    with pytest.raises(rf.ModelError, match=text):
        b.loop("pair", "coupling", **options).model()


def test_a_file_reports_where_its_coupling_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(
        "name: pair\nlinks:\n  - {name: a, frame: {}, mass: 1, inertia: [1, 1, 1]}\n"
        "tendons:\n  - {name: t, joints: {a: 1}}\n"
        "loops:\n  - {name: hold, joint: {type: coupling, tendons: [u], curve: [0]}}\n"
    )
    with pytest.raises(rf.ModelError, match=r"robot.yaml:7:.*no tendon 'u'"):
        rf.load(path)


def test_the_equality_of_a_wrapping_tendon_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "wrapped.xml"
    text = WORLD.format('<tendon tendon1="w"/>').replace(
        "</tendon>",
        '<spatial name="w"><site site="sa"/><geom geom="ball"/><site site="sc"/></spatial></tendon>',
    )
    path.write_text(text.replace('<geom size="0.06"/>', '<geom name="ball" size="0.06"/>'))
    with pytest.warns(rf.LeftOutWarning, match="equality0.*its tendon is left out"):
        m = rf.load(path)
    assert "left-out" in {finding.code for finding in m.check()}


def test_drives_on_both_ends_of_a_coupling_beside_a_free_slide(tmp_path: Path) -> None:
    """Catches a margin that is not a number: the drives leave nothing but the slide, which the
    coupling does not hold.
    """
    path = tmp_path / "two_drives.xml"
    path.write_text("""<mujoco><default><geom contype="0" conaffinity="0"/></default><worldbody>
      <body><joint name="ja" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/><body pos="0.3 0 0">
        <joint name="jb" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0"/></body></body>
      <body><joint name="jc" type="slide"/><geom size="0.1"/></body></worldbody>
      <actuator><motor joint="ja"/><motor joint="jb"/></actuator>
      <equality><joint joint1="jb" joint2="ja" polycoef="0 -1 0 0 0"/></equality></mujoco>""")
    m = rf.load(path)
    assert m.check() == []
    found = m.assemble()
    assert (found.margin, found.branch, found.gap) == (0.0, 0, 0.0)
    assert "1 left free" in found.note
    moved = m.assemble({"ja": 0.3, "jc": 0.1}, {"ja": 2.0, "jc": 1.0})
    close(moved.q, [0.3, -0.3, 0.1])
    close(moved.v, [2.0, -2.0, 1.0])
    assert moved.margin == 1.0


def test_urdf_has_linear_couplings_of_two_joints_alone() -> None:
    def coupled(joints: tuple[str, ...], curve: tuple[float, ...]) -> rf.Model:
        b = rf.Builder("r").link("a", mass=1.0).link("b", "a", mass=1.0)
        return b.loop("l", "coupling", joints=joints, curve=curve).model()

    assert '<mimic joint="a" multiplier="2.0" offset="0.5"/>' in to_urdf(
        coupled(("a", "b"), (0.5, 2.0))
    )
    for joints, curve in ((("a", "b"), (0.5, 2.0, 3.0)), (("b",), (0.1,))):
        with pytest.raises(rf.ModelError, match="URDF has no <loop 'l': coupling"):
            to_urdf(coupled(joints, curve))
