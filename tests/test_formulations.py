"""Lin's and Renaud's composite bodies and the DeNOC matrices against the recursions; operation
counts against the papers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_trees import random_bodies, random_case

import ramify as rf
from ramify.api.model import Model
from ramify.core.scalar import cos, sin, sqrt
from ramify.core.spatial import Sym3, Vec3
from ramify.formulations import (
    FORMULATIONS,
    crossover,
    denoc_matrices,
    elimination,
    floating_denoc,
    general_count,
    lin,
    published_count,
    quasi,
    renaud,
    saha,
)
from ramify.formulations.chain import chain_of, general_chain, in_store, rotations
from ramify.formulations.counting import written
from ramify.formulations.counting.book_tree import tree_of
from ramify.formulations.counting.tables import filled
from ramify.formulations.counting.tally import Counted, Tally, stored
from ramify.formulations.mass_centre import mass_centre_matrices, reverse_gaussian_elimination
from ramify.formulations.quasi_chain import general_quasi_chain, joint_motions
from ramify.formulations.stability import chain_errors

DOCS = sorted((Path(__file__).resolve().parent.parent / "docs" / "formulations").glob("*.md"))
QUARTERS = (0.0, np.pi / 2, -np.pi / 2, np.pi)


def serial_robot(seed: int, joints: str = "") -> tuple[Model, Any, Any, Any]:
    """A random arm of 1-8 revolute and prismatic joints, general or with right angles, in either DH
    convention, and a state.
    """
    rng = np.random.default_rng(seed)
    n = len(joints) or int(rng.integers(1, 9))
    right = seed % 3 == 0
    rows = []
    for _ in range(n):
        alpha = float(rng.choice(QUARTERS)) if right else rng.uniform(-np.pi, np.pi)
        a, b = 0.4 * rng.normal(size=2) * (rng.integers(0, 2, size=2) if right else 1)
        rows.append((a, alpha, b, rng.uniform(-np.pi, np.pi)))
    spread = 0.3 * rng.normal(size=(n, 3, 3))
    moments = spread @ spread.transpose(0, 2, 1)
    inertia = [np.trace(x) * np.eye(3) - x for x in moments]
    joints = joints or "".join(rng.choice(list("RRP"), size=n))
    convention = ("modified", "classical")[seed % 2]
    mass, com, gravity = (
        rng.uniform(0.1, 2.0, n),
        0.2 * rng.normal(size=(n, 3)),
        6.0 * rng.normal(size=3),
    )
    model = rf.from_dh(
        rows, mass, com, inertia, joints=joints, convention=convention, gravity=gravity
    )
    return model, *rng.normal(size=(3, n))


def error(got: Any, right: Any) -> float:
    """Largest difference, relative to the largest entry."""
    right = np.asarray(right)
    return float(np.abs(np.asarray(got, dtype=np.float64) - right).max() / np.abs(right).max())


# ---- the same answers ----


@pytest.mark.parametrize("block", range(4))
def test_serial_robots(block: int) -> None:
    """48 random arms: Lin, Renaud, DeNOC and Saha give the matrix, the forces and the
    accelerations of the recursions.
    """
    for seed in range(12 * block, 12 * block + 12):
        m, q, v, a = serial_robot(seed)
        M, h = m.mass_matrix(q), m.bias(q, v)
        assert error(lin.mass_matrix(m, q), M) < 1e-11
        assert error(renaud.mass_matrix(m, q), M) < 1e-11
        if np.abs(h).max() > 1e-9:
            assert error(lin.bias_forces(m, q, v), h) < 1e-11
        d, tau = denoc_matrices(m, q, v), m.inverse_dynamics(q, v, a)
        assert error(d.I, M) < 1e-11
        assert error(d.forces(a), tau) < 1e-11
        assert error(saha.inverse_dynamics(m, q, v, a), tau) < 1e-11
        assert error(saha.forward_dynamics(m, q, v, tau), a) < 1e-11


@pytest.mark.parametrize(
    "joints", ["P", "R", "PP", "PPP", "PPR", "PRP", "PRR", "RPP", "RPR", "RRP", "PPRRP"]
)
def test_where_the_first_turning_joint_is(joints: str) -> None:
    """The texts skip what joints before the first turning one do not need."""
    m, q, v, a = serial_robot(1, joints)
    assert error(lin.mass_matrix(m, q), m.mass_matrix(q)) < 1e-11
    assert error(renaud.mass_matrix(m, q), m.mass_matrix(q)) < 1e-11
    assert error(lin.bias_forces(m, q, v), m.bias(q, v)) < 1e-11
    assert error(saha.forward_dynamics(m, q, v, m.inverse_dynamics(q, v, a)), a) < 1e-11


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("level", ["link", "module"])
def test_denoc_of_trees(block: int, level: Any) -> None:
    """40 random trees of all joints without quaternions, at both levels."""
    for seed in range(10 * block, 10 * block + 10):
        case = random_case(seed, 1 + seed % 7)
        m = Model("tree", case.bodies, tuple(case.gravity), {})
        q, v, a = map(np.array, (case.q, case.v, case.a))
        d = denoc_matrices(m, q, v, level)
        assert error(d.I, m.mass_matrix(q)) < 1e-11
        assert error(d.forces(a), m.inverse_dynamics(q, v, a)) < 1e-11
        assert error(d.C @ v + d.gravity, m.bias(q, v)) < 1e-11 * max(
            1.0, np.abs(d.C @ v).max() / np.abs(m.bias(q, v)).max()
        )
        assert error(d.N_d.T @ d.M_tilde @ d.N_d, d.I) < 1e-11  # (5.16)
        for g in range(len(d.groups)):
            assert error(d.composite[g], d.block("M_tilde", g, g)) < 1e-10  # (5.17), (5.19)


@pytest.mark.parametrize("level", ["link", "module"])
def test_articulated_inertias_give_the_pivots(level: Any) -> None:
    """N-' M^ N- is a diagonal block of D (5.34)."""
    for seed in range(12):
        case = random_case(seed, 1 + seed % 7)
        m = Model("tree", case.bodies, tuple(case.gravity), {})
        d = denoc_matrices(m, case.q, case.v, level)
        D = m.udu(case.q, level="joint" if level == "link" else "module").D
        for g, group in enumerate(d.groups):
            P = d.block("N_d", g, g)
            assert error(P.T @ d.articulated[g] @ P, D[np.ix_(group, group)]) < 1e-9


def test_rate_of_the_complement() -> None:
    """dN/dt against central differences; both levels have the same N."""
    case = random_case(5, 6)
    m = Model("tree", case.bodies, tuple(case.gravity), {})
    q, v, step = np.array(case.q), np.array(case.v), 1e-6
    d = denoc_matrices(m, q, v)
    slope = (denoc_matrices(m, q + step * v, v).N - denoc_matrices(m, q - step * v, v).N) / (
        2.0 * step
    )
    np.testing.assert_allclose(d.N_dot, slope, atol=1e-7)
    by_module = denoc_matrices(m, q, v, "module")
    np.testing.assert_allclose(by_module.N, d.N, atol=1e-12)
    np.testing.assert_allclose(by_module.N_dot, d.N_dot, atol=1e-12)
    np.testing.assert_allclose(d.t, d.N @ v)


def test_structure_at_module_level() -> None:
    """The gripper of section 4.4.1: sizes of (4.30), (4.31), and the zero block between the
    fingers.
    """
    m = rf.load("gripper")
    d = denoc_matrices(m, *m.random(1), level="module")
    assert d.parents == (-1, 0, 0)
    assert d.N_l.shape == (24, 24)
    assert d.N_d.shape == (24, 4)
    assert d.block("N_l", 1, 0).shape == (12, 6)
    assert d.block("N_d", 1, 1).shape == (12, 2)
    assert not d.block("N_l", 2, 1).any()
    np.testing.assert_array_equal(d.block("N_l", 1, 1), np.eye(12))


def test_floating_base_as_a_chain() -> None:
    m = rf.load("spatial_biped")
    q, v = m.random(2)
    d = denoc_matrices(m, q, v, "module")
    a = np.linspace(-1.0, 1.0, m.nv)
    assert error(d.I, m.mass_matrix(q)) < 1e-11
    assert error(d.forces(a), m.inverse_dynamics(q, v, a)) < 1e-11


def test_chains_with_joints_of_several_degrees_of_freedom() -> None:
    """Universal, spherical and cylindrical joints and a floating base are runs of revolute and
    prismatic ones.
    """
    rng = np.random.default_rng(8)
    kinds = ("universal", "spherical", "cylindrical", "planar", "free_euler")
    bodies = tuple(
        replace(random_bodies(rng, 1, kinds=(kind,))[0], name=kind, parent=i - 1)
        for i, kind in enumerate(kinds)
    )
    m = Model("chain", bodies, (1.0, 2.0, -9.0), {})
    q, v = rng.normal(size=(2, m.nv))
    assert error(lin.mass_matrix(m, q), m.mass_matrix(q)) < 1e-11
    assert error(renaud.mass_matrix(m, q), m.mass_matrix(q)) < 1e-11
    assert error(lin.bias_forces(m, q, v), m.bias(q, v)) < 1e-11
    tau = m.inverse_dynamics(q, v, q)
    assert error(saha.inverse_dynamics(m, q, v, q), tau) < 1e-11
    assert (
        error(saha.forward_dynamics(m, q, v, tau), q) < 1e-9
    )  # long light chains are less well conditioned


@pytest.mark.parametrize("joints", ["RRR", "RPR", "PRPR", "RRPRRR", "PPR"])
def test_rate_coefficients_are_the_christoffel_symbols_of_the_inertia_matrix(joints: str) -> None:
    """D_mkj of (31) against differences of H, the bias that they sum up to, and (32)-(34)."""
    m, q, v, _ = serial_robot(5, joints)
    D = np.array(lin.rate_coefficients(m, q), float)
    h = 1e-6
    slope = np.stack(  # dH[m, k] / dq_j
        [(m.mass_matrix(q + h * e) - m.mass_matrix(q - h * e)) / (2.0 * h) for e in np.eye(m.nv)],
        axis=2,
    )
    christoffel = 0.5 * (slope + slope.transpose(0, 2, 1) - slope.transpose(2, 0, 1))
    scale = np.abs(christoffel).max()
    np.testing.assert_allclose(D, christoffel, atol=1e-7 * max(scale, 1.0))
    rates = np.einsum("mkj,k,j->m", D, v, v)
    assert error(rates + m.gravity_forces(q), m.bias(q, v)) < 1e-11
    np.testing.assert_array_equal(D, D.transpose(0, 2, 1))  # (32)
    for k in range(m.nv):
        for j in range(k, m.nv):
            assert D[j, k, j] == 0.0  # (33)
            for i in range(k, m.nv):
                np.testing.assert_allclose(D[j, k, i], -D[i, k, j], atol=1e-12)  # (34)


def test_counts_of_a_chain_with_a_slide() -> None:
    """The DH angle of a prismatic joint is a general constant, not zero: RRPRRR by the appendix of
    Lin's paper (500M 388A), and the same numbers as the kernels on that very chain.
    """
    arm = rf.load("stanford_arm")  # RRPRRR
    for name, mul, add in (("renaud_inertia", 500, 388), ("lin_inertia", 479, 348)):
        count = arm.op_count(name, how="written")
        assert (count.mul, count.add) == (mul, add)
    chain = general_chain(6, "RRPRRR")
    assert [link.theta0.s != 0.0 for link in chain.links] == [not r.rotational for r in chain.links]
    q = np.linspace(0.1, 1.2, 6)
    R = rotations(chain, q)
    H = np.array(renaud.renaud_inertia(chain, R, q), float)
    assert error(lin.equations_of_motion(chain, q, [0.0] * 6)[0], H) < 1e-12
    by_quasi, zero = general_quasi_chain(chain), [0.0] * 6
    joints = joint_motions(by_quasi, q, zero, zero)
    assert error(quasi.inertia_matrix(by_quasi, joints, quasi.inertial_rates(joints)), H) < 1e-12
    slide = rf.Builder("rail").link("cart", joint="prismatic", mass=1.0).model()
    assert written.general_links(slide).links[0].theta0.s != 0.0


def test_the_pivots_of_saha() -> None:
    """m^_i are the diagonal of D in I = U D U' (54)."""
    m, q, _, _ = serial_robot(4)
    joints = elimination.articulated_bodies(elimination.bodies_at(chain_of(m), q)).joints
    D = np.diag(m.udu(q).D)
    np.testing.assert_allclose([float(joint.pivot) for joint in joints], D, rtol=1e-10)
    np.testing.assert_allclose([float(joint.reciprocal) for joint in joints], 1.0 / D, rtol=1e-10)


def test_any_scalar() -> None:
    """Columns of NumPy arrays give a batch; SymPy's symbols give expressions."""
    import sympy as sp

    m, _, _, _ = serial_robot(3)
    q, v = np.random.default_rng(0).normal(size=(2, 5, m.nv))
    H, b = lin.equations_of_motion(chain_of(m), list(q.T), list(v.T))
    for i in range(5):
        np.testing.assert_allclose(
            [[np.broadcast_to(x, 5)[i] for x in row] for row in H], m.mass_matrix(q[i]), atol=1e-12
        )
        np.testing.assert_allclose(
            [np.broadcast_to(x, 5)[i] for x in b], m.bias(q[i], v[i]), atol=1e-11
        )
    arm = rf.from_dh(
        [(0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)],
        [1, 1],
        [(0.5, 0, 0)] * 2,
        [(0, 1 / 12, 1 / 12)] * 2,
    )
    x, y = sp.symbols("x y")
    for rows in (lin.mass_matrix(arm, [x, y]), renaud.mass_matrix(arm, [x, y])):
        assert (
            sp.simplify(
                sp.nsimplify(rows[0][0], rational=True, tolerance=1e-12)
                - (sp.Rational(5, 3) + sp.cos(y))
            )
            == 0
        )


# ---- what is refused ----


def test_what_is_no_chain() -> None:
    gripper = rf.load("gripper")
    with pytest.raises(rf.ModelError, match="branches at"):
        lin.mass_matrix(gripper, gripper.neutral())
    screw = rf.Builder("jack").link("nut", joint="helical", pitch=0.1, mass=1.0).model()
    with pytest.raises(rf.ModelError, match="neither revolute nor prismatic"):
        renaud.mass_matrix(screw, [0.0])
    arm = rf.load("stanford_arm")
    with pytest.raises(rf.StateError, match=r"v has 5 entries; .* takes 6"):
        lin.bias_forces(arm, [0.0] * 6, [0.0] * 5)


FORMS: dict[str, Any] = {
    "lin.mass_matrix": lambda m, q: lin.mass_matrix(m, q),
    "lin.bias_forces": lambda m, q: lin.bias_forces(m, q, [0.1] * m.nv),
    "renaud.mass_matrix": lambda m, q: renaud.mass_matrix(m, q),
    "saha.inverse_dynamics": lambda m, q: saha.inverse_dynamics(m, q, [0.1] * m.nv, [0.2] * m.nv),
    "saha.forward_dynamics": lambda m, q: saha.forward_dynamics(m, q, [0.1] * m.nv, [0.2] * m.nv),
    "quasi.mass_matrix": lambda m, q: quasi.mass_matrix(m, q),
    "quasi.forward_dynamics": lambda m, q: quasi.forward_dynamics(m, q, [0.1] * m.nv, [0.2] * m.nv),
}
BAD_STATES: list[tuple[Any, str]] = [
    ([0.0, np.nan, 0.0], r"q\[1\] is nan, which is not finite"),
    (np.array([0.0, 0.0, np.inf]), r"q\[2\] is inf"),
    ([0.0, 0.0, np.array([1.0, np.nan])], r"q\[2\] is nan at \[1\] of its batch"),
    (np.zeros((3, 3)), r"q has shape \(3, 3\); .* list\(q.T\)"),
    (np.zeros((3, 1)), r"q has shape \(3, 1\)"),
    (np.array(1.0), r"q has shape \(\)"),
    ([[0.0], [0.0], [0.0]], r"q\[0\] is \[0.0\], which is not a scalar"),
    ([0.0, "1", 0.0], r"q\[1\] is '1', which is not a scalar"),
    ([0.0, None, 0.0], r"q\[1\] is None"),
    ("abc", "q is 'abc'; .* takes a list of 3 scalars"),
    (1.0, "q is 1.0; .* takes a list of 3 scalars"),
    ({0: 1.0, 1: 1.0, 2: 1.0}, "q is a dictionary"),
    ([0.0, 0.0], "q has 2 entries; planar_3r takes 3"),
    ([0.0, np.zeros(2), np.zeros(3)], "batches of different shapes"),
    ([np.array(["a"]), 0.0, 0.0], r"q\[0\] is an array of <U1"),
]


@pytest.mark.parametrize("form", FORMS)
def test_bad_states_are_named(form: str) -> None:
    m = rf.load("planar_3r")
    for q, message in BAD_STATES:
        with pytest.raises(rf.StateError, match=message):
            FORMS[form](m, q)


def test_symbols_and_batches_are_scalars() -> None:
    """What computes passes: SymPy's symbols, traced expressions, integers; a batch is a list of its
    columns.
    """
    import sympy as sp

    m = rf.load("planar_3r")
    q = np.random.default_rng(3).normal(size=(4, 3))
    for form in FORMS.values():
        form(m, list(sp.symbols("x y z")))
        form(m, [1, np.float64(2.0), np.int64(3)])
        np.testing.assert_allclose(
            np.array(form(m, list(q[0])), float), np.array(form(m, q[0]), float)
        )
    H = lin.mass_matrix(m, list(q.T))
    np.testing.assert_allclose(np.broadcast_to(H[0][0], 4), m.mass_matrix(q)[:, 0, 0], atol=1e-12)


def test_closed_loops_are_not_dropped() -> None:
    m = rf.load("four_bar")
    q, v = m.tree.neutral(), np.zeros(3)
    texts = [
        lambda: denoc_matrices(m, q, v),
        lambda: mass_centre_matrices(m, q, v),
        lambda: tree_of(m),
        lambda: chain_of(m),
        lambda: m.op_count("inverse_dynamics", how="written"),
        lambda: m.op_count("denoc_inverse", how="written"),
    ]
    for text in [*texts, *(partial(form, m, q) for form in FORMS.values())]:
        with pytest.raises(rf.ModelError, match=r"closed loops.*m\.tree"):
            text()
    assert m.tree.op_count("inverse_dynamics", how="written").mul > 0


def test_denoc_says_what_is_wrong() -> None:
    m = rf.load("gripper")
    q, v = m.random(0)
    free = rf.load("quadruped", base="free")
    with pytest.raises(rf.ModelError, match="quaternion"):
        denoc_matrices(free, *free.random(0))
    with pytest.raises(rf.ModelError, match="'link' or 'module'"):
        denoc_matrices(m, q, v, "body")  # type: ignore[arg-type]
    with pytest.raises(rf.StateError, match="v must be 4 finite numbers"):
        denoc_matrices(m, q, v[:3])
    with pytest.raises(rf.StateError, match="a must be"):
        denoc_matrices(m, q, v).forces([np.nan] * 4)
    with pytest.raises(rf.ModelError, match="no DeNOC matrix is called 'K'"):
        _ = denoc_matrices(m, q, v)["K"]
    with pytest.raises(rf.StateError, match=r"v\[2\] is nan"):
        denoc_matrices(m, q, [0.0, 0.0, np.nan, 0.0])
    with pytest.raises(rf.StateError, match="q must be an array of real numbers"):
        denoc_matrices(m, ["a", "b", "c", "d"], v)
    for i, j in ((9, 9), (0, 4), (-1, 0)):
        with pytest.raises(rf.ModelError, match="gripper has links 0 to 3"):
            denoc_matrices(m, q, v).block("N_l", i, j)
    with pytest.raises(rf.ModelError, match="t is a vector"):
        denoc_matrices(m, q, v).block("t", 0, 0)
    x = mass_centre_matrices(m, q, v)
    for outside in (lambda: x.B(9, 1), lambda: x.B(1, 0), lambda: x.p(5), lambda: x.alpha(1, 5)):
        with pytest.raises(rf.ModelError, match="gripper has links 1 to 4"):
            outside()


def test_a_joint_that_moves_no_inertia() -> None:
    arm = (
        rf.Builder("arm")
        .link("rod", mass=1.0, com=(1, 0, 0))
        .link("tip", "rod", at=(1, 0, 0))
        .model()
    )
    d = denoc_matrices(arm, [0.1, 0.2], [0.0, 0.0])
    assert d.I[1, 1] == 0.0
    with pytest.raises(rf.ModelError, match="tip moves no inertia"):
        _ = d.articulated
    assert "moves no inertia" in str(d)


def test_print() -> None:
    m = rf.load("gripper")
    d = denoc_matrices(m, *m.random(0))
    text = str(d)
    for expected in (
        "link level: 4 links, 4 joint rates",
        "N_l",
        "(4.27)",
        "24 x 24",
        "generalized inertia matrix",
        "M~_4",
        "M^_1",
    ):
        assert expected in text
    assert str(d["C"]).startswith(
        "C = N'(M dN/dt + Omega M E N), eq. (5.13), 4 x 4: matrix of convective inertia (MCI)\n[["
    )
    assert len(d.quantities) == 12 + 4


# ---- Saha's mass-centre form ----


def test_mass_centre_form() -> None:
    """40 random arms: the same inertia matrix and forces, M block diagonal, U D U' by elimination
    and by articulated bodies.
    """
    for seed in range(40):
        m, q, v, a = serial_robot(seed)
        x = mass_centre_matrices(m, q, v)
        n = m.nv
        assert error(x.I, m.mass_matrix(q)) < 1e-11
        assert error(x.I @ a + x.C @ v + x.origin.gravity, m.inverse_dynamics(q, v, a)) < 1e-11
        assert error(x.N_l @ x.N_d, x.N) < 1e-11
        for k in range(n):
            own = x.M[6 * k : 6 * k + 6, 6 * k : 6 * k + 6]
            np.testing.assert_allclose(own[3:, 3:], m.bodies[k].mass * np.eye(3), atol=1e-12)
            np.testing.assert_allclose(own[:3, 3:], 0.0, atol=1e-12)
        E = np.eye(n)
        for k in range(n, 1, -1):
            E = x.E(k).value @ E
            np.testing.assert_allclose(E @ x.I, x.L(k).value, atol=1e-10)
            assert not np.triu(x.L(k).value, 1)[:, k - 1 :].any()
        U, D = m.udu(q)
        np.testing.assert_allclose(x.U @ x.D @ x.U.T, x.I, atol=1e-10)
        np.testing.assert_allclose(x.D, D, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(x.U, U, rtol=1e-8, atol=1e-8)
        for k in range(2, n + 1):
            for i in range(1, k):
                assert x.alpha(i, k) == pytest.approx(x.U[i - 1, k - 1], rel=1e-8, abs=1e-8)


def test_the_blocks_of_the_mass_centre_form() -> None:
    """(12)-(15): c leads from mass centre to mass centre, p is [e; e x d] or [0; e]; twists are
    those of the mass centres.
    """
    m = rf.load("stanford_arm")
    q, v = m.random(5)
    x = mass_centre_matrices(m, q, v)
    poses = m.kinematics(q)
    centre = [poses.rotation[k] @ body.com + poses.position[k] for k, body in enumerate(m.bodies)]
    R = np.array(m.skeleton.root.rotation)
    c = R.T @ (centre[0] - centre[3])
    B = x.B(4, 1).value
    np.testing.assert_allclose(
        B[3:, :3] @ np.array([1.0, 2.0, 3.0]), np.cross(c, [1.0, 2.0, 3.0]), atol=1e-12
    )
    np.testing.assert_allclose(B @ x.B(1, 1).value, B, atol=1e-12)
    assert not x.p(3).value[:3].any()  # the sliding joint
    for k, body in enumerate(m.bodies):
        point = m.jacobian(q, body.name, body.com) @ v
        np.testing.assert_allclose(R @ x.t[6 * k + 3 : 6 * k + 6], point[3:], atol=1e-12)
    assert "eq. (41, 44), 6 x 6: elementary matrix that clears column 6" in str(x.E(6))
    assert "(2, 4)" in str(x)
    assert len(x.quantities) == 13
    with pytest.raises(rf.ModelError, match="has steps 6 to 2"):
        x.E(1)
    with pytest.raises(rf.ModelError, match="no matrix of the mass-centre form is called 'Q'"):
        x["Q"]


def test_elimination_of_a_singular_matrix() -> None:
    with pytest.raises(rf.ModelError, match="the pivot of column 2 is 0; joint 2 moves no inertia"):
        reverse_gaussian_elimination([[1.0, 0.0], [0.0, 0.0]])


# ---- counts ----


@pytest.mark.parametrize("name", ["lin_inertia", "lin_bias", "renaud_inertia"])
@pytest.mark.parametrize("n", range(2, 9))
def test_counts_meet_the_published_ones(name: str, n: int) -> None:
    got, right = general_count(name, n), published_count(name, n)
    assert (got.mul, got.add, got.div) == (right.mul, right.add, 0)


def test_published_figures() -> None:
    """Tables I and II of Lin and table 1 of Saha for six joints."""
    figures = {
        "lin_inertia": (524, 380),
        "renaud_inertia": (553, 416),
        "lin_bias": (486, 330),
        "ridim": (676, 527),
    }
    for name, pair in figures.items():
        count = published_count(name, 6)
        assert (count.mul, count.add) == pair


@pytest.mark.parametrize("n", range(2, 9))
def test_ridim_and_rfdsim(n: int) -> None:
    """The figures of the page on Saha's recursions: multiplications as published, the additions
    near it.
    """
    count, paper = general_count("ridim", n), published_count("ridim", n)
    assert (count.mul, count.add, count.sincos) == (paper.mul, 92 * n - 39, n)
    if n > 2:
        count, paper = general_count("rfdsim", n), published_count("rfdsim", n)
        assert (count.mul, count.add) == (paper.mul, paper.add + 2)
    else:
        count = general_count("rfdsim", n)
        assert (count.mul, count.add) == (76, 50)


def test_where_the_published_additions_of_ridim_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's table: vectors turned by matrices with given entries, then also a base at rest
    whose zeros are known.
    """

    def entries(link: saha.MassCentreLink) -> list[list[Any]]:
        (c, s), (ca, sa) = (link.theta.c, link.theta.s), (link.alpha.c, link.alpha.s)
        before = c.tally.mul
        rows = [[c, s, 0.0], [-s * ca, c * ca, sa], [s * sa, -(c * sa), ca]]
        c.tally.mul = before  # given
        return rows

    def turned(rows: Any, u: Vec3, like: Any) -> Vec3:
        return in_store(Vec3(*(a * u.x + b * u.y + c * u.z for a, b, c in rows)), like)

    monkeypatch.setattr(
        saha.MassCentreLink, "outward", lambda x, u: turned(entries(x), u, x.theta.c)
    )
    monkeypatch.setattr(
        saha.MassCentreLink,
        "inward",
        lambda x, u: turned(zip(*entries(x), strict=True), u, x.theta.c),
    )
    for n in (3, 6):
        count = general_count("ridim", n)
        assert (count.mul, count.add) == (120 * n - 44, 97 * n - 41)
    monkeypatch.setattr(
        saha, "in_store", lambda record, like: (*record[:2], in_store(record[2], like))
    )
    for n in (3, 6):
        count = general_count("ridim", n)
        assert (count.mul, count.add) == (120 * n - 58, 97 * n - 55)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_general_robots_stay_general(name: str) -> None:
    """No constant of a long chain happens to be 0 or 1: the counts are the polynomials of short
    ones.
    """
    sizes = np.array([3.0, 4.0, 5.0])
    for part in ("mul", "add"):
        exact = np.polyfit(sizes, [getattr(general_count(name, int(n)), part) for n in sizes], 2)
        for n in (40, 64):
            assert getattr(general_count(name, n), part) == round(float(np.polyval(exact, n)), 4)


def test_counts_of_unknown_things() -> None:
    with pytest.raises(rf.RamifyError, match="no formulation is called 'kane'"):
        general_count("kane", 6)
    with pytest.raises(rf.RamifyError, match="two revolute joints or more"):
        general_count("lin_bias", 1)
    with pytest.raises(rf.RamifyError, match="up to 200 joints"):
        general_count("ridim", 100_000_000)
    for bad in (2.5, "6", None, True):
        with pytest.raises(rf.RamifyError, match="the number of joints is an integer"):
            general_count("lin_inertia", bad)  # type: ignore[arg-type]
    with pytest.raises(rf.RamifyError, match=r"lin_inertia is a formulation.*how='written'"):
        rf.load("kuka_kr5").op_count("lin_inertia")


def test_parts_of_the_count() -> None:
    """The costs that figure 3 of the paper prints beside its steps."""
    tally = Tally()
    R = rotations(general_chain(1), [tally.number(0.4)])[0]
    assert (tally.mul, tally.add, len(tally.angles)) == (4, 0, 1)
    u = Vec3(*map(tally.number, (1.1, 2.2, 3.3)))
    J = Sym3(*map(tally.number, (1.1, 2.2, 3.3, 0.4, 0.5, 0.6)))
    steps = {
        (8, 4): [lambda: R.outward(u), lambda: R.inward(u)],
        (5, 2): [lambda: R.outward_flat(u.x, u.y)],
        (37, 19): [lambda: R.similarity(J)],
        (12, 8): [lambda: R.corner(J)],
    }
    for cost, texts in steps.items():
        for text in texts:
            before = tally.mul, tally.add
            text()
            assert (tally.mul - before[0], tally.add - before[1]) == cost
    assert float(R.similarity(J).zz) == pytest.approx(float(R.corner(J)), rel=1e-14)


def test_rules_of_counting() -> None:
    tally = Tally()
    x, y = tally.number(3.0), tally.number(4.0)
    free = (
        x * 0.0,
        0 * x,
        x * 1.0,
        -1.0 * x,
        x + 0.0,
        0.0 + x,
        x - 0,
        0.0 - x,
        x / 1.0,
        x / -1.0,
        0.0 / x,
        -x,
        0.5 * 2.0,
    )
    assert (tally.mul, tally.add) == (0, 0)
    assert [float(value) for value in free] == [0, 0, 3, -3, 3, 3, 3, -3, 3, -3, 0, -3, 1]
    assert free[0] == 0.0
    assert not isinstance(free[0], Counted)  # a known zero again
    paid = (x * y, x / y, x * 2.0, 2.0 * x, x / 2.0, 2.0 / x, x + y, x - y, x + 1.0, 1.0 - x)
    assert (tally.mul, tally.add) == (6, 4)
    assert [float(value) for value in paid] == [12, 0.75, 6, 6, 1.5, 2 / 3, 7, -1, 4, -2]
    assert float(sqrt(sin(x) * sin(x) + cos(x) * cos(x))) == pytest.approx(1.0)
    assert (tally.sqrt, len(tally.angles)) == (1, 1)
    assert repr(x) == "Counted(3.0)"
    assert str(tally.count()) == "8M 5A 0D 1S 1 sincos"
    with pytest.raises(TypeError, match="must not branch"):
        bool(x)


def test_stored_constants_count() -> None:
    assert stored(2.0, 1.0) == 2.0
    known, kept = Tally(), Tally()
    _ = 2.0 * 3.0 * known.number(1.0)
    q = kept.number(1.0)
    _ = stored(2.0, q) * 3.0 * q
    assert (known.mul, kept.mul) == (1, 2)


# ---- the pages ----


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_pages(page: Path) -> None:
    """Blocks run one after the other; links lead somewhere."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / target).exists(), target


def test_there_are_pages() -> None:
    assert {page.stem for page in DOCS} >= {
        "book-counts",
        "counting",
        "denoc",
        "equations",
        "lin",
        "quasi",
        "renaud",
        "saha",
        "steps",
    }


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_tables_of_the_pages_are_in_step_with_the_code(page: Path) -> None:
    """Write them anew with: python -m ramify.formulations.counting.tables docs/formulations/*.md"""
    text = page.read_text(encoding="utf-8")
    assert filled(text) == text


# ---- digits ----


@pytest.mark.parametrize(
    ("case", "n", "lost"), [("equal", 24, 1e-13), ("line", 96, 1e-10), ("doubling", 24, 1e-8)]
)
def test_the_recursions_keep_digits_that_a_factorised_matrix_loses(
    case: str, n: int, lost: float
) -> None:
    """Against 50 digits, as Saha (1999) claims; of the tiers the unrolled one keeps them, too."""
    found = chain_errors(case, n)
    assert found.recursion < 2e-14
    assert found.mass_centre < 1e-14
    assert found.cholesky > lost
    assert n > 32 or found.unrolled < 2e-14


def test_where_the_recursion_gains_nothing() -> None:
    """Masses that halve outward: an ill conditioned matrix whose factors keep all digits."""
    found = chain_errors("halving", 24)
    assert found.condition > 1e8
    assert found.cholesky < 1e-13


def test_stability_refuses() -> None:
    with pytest.raises(rf.RamifyError, match="there is no case 'heavy'; choose one of equal, line"):
        chain_errors("heavy", 3)
    with pytest.raises(rf.RamifyError, match="n is 0; give 1 to 400 rods"):
        chain_errors("equal", 0)


def test_crossovers() -> None:
    """Lin's table I: his inertia matrix is cheaper than Renaud's from four joints on."""
    assert crossover("lin_inertia", "renaud_inertia") == 4
    assert crossover("renaud_inertia", "lin_inertia") is None


# ---- the base as module M0 ----


@pytest.mark.parametrize(
    ("robot", "size", "n"), [("planar_biped", 42, 12), ("spatial_biped", 78, 18), ("hexapod", 0, 0)]
)
def test_the_base_as_a_module(robot: str, size: int, n: int) -> None:
    """Sizes of section 4.4, N = N_l N_d, I = N' M N, dN/dt, and no entries between legs."""
    m = rf.load(robot)
    q, v = m.random(3)
    d = floating_denoc(m, q, v)
    assert size == 0 or (d.N_l.shape, d.N_d.shape) == ((size, size), (size, n))
    assert error(d.N_l @ d.N_d, d.N) < 1e-12
    assert error(d.N.T @ d.M @ d.N, m.mass_matrix(q)) < 1e-11
    assert error(d.N_d.T @ d.M_tilde @ d.N_d, d.I) < 1e-11  # (5.16)
    assert error(d.N @ v, d.t) < 1e-12
    h = 1e-6
    later, before = (floating_denoc(m, q + s * h * v, v).N for s in (1.0, -1.0))
    np.testing.assert_allclose(d.N_dot, (later - before) / (2.0 * h), atol=1e-6)
    assert d.modules[0] == (0,)
    for i, one in enumerate(d.modules[1:], 1):
        for k, other in enumerate(d.modules[1:], 1):
            block = d.N_l[6 * one[0] : 6 * one[-1] + 6, 6 * other[0] : 6 * other[-1] + 6]
            assert block.any() == (i == k)  # legs do not carry each other
    np.testing.assert_array_equal(d.P_0[:3, 3:], 0.0)
    np.testing.assert_allclose(d.P_0[3:, 3:], np.eye(3), atol=1e-15)
    np.testing.assert_allclose(d.P_0[3:, :3], 0.0, atol=1e-15)
    np.testing.assert_allclose(d.t[:3], d.L_0 @ v[3:6], atol=1e-12)


def test_module_m0_needs_a_floating_base() -> None:
    for name, options in (("kuka_kr5", {}), ("planar_biped", {"base": "free"})):
        m = rf.load(name, **options)  # type: ignore[arg-type]
        with pytest.raises(rf.ModelError, match=r"module M0 is a base on one free_euler joint"):
            floating_denoc(m, m.neutral(), np.zeros(m.nv))
