"""The step tables: the rows of tables 6.3 and 6.4, and every equation of a table worked out with
the DeNOC matrices.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from random_trees import random_case

import ramify as rf
from ramify.api.model import Model
from ramify.formulations import denoc_matrices, floating_denoc, step_table
from ramify.formulations.steps import StepTable

TABLE_6_3 = (
    # step 1, between modules
    "t[1] = N[1] q̇[1]", "ṫ[1] = Ṅ[1] q̇[1] + N[1] q̈[1] + ρ[1]", "w*[1] = M[1] ṫ[1] + Ω[1] M[1] E[1] t[1]",
    "t[2] = A[2,1] t[1] + N[2] q̇[2]", "ṫ[2] = A[2,1] ṫ[1] + Ȧ[2,1] t[1] + Ṅ[2] q̇[2] + N[2] q̈[2]",
    "w*[2] = M[2] ṫ[2] + Ω[2] M[2] E[2] t[2]",
    "t[3] = A[3,1] t[1] + N[3] q̇[3]", "ṫ[3] = A[3,1] ṫ[1] + Ȧ[3,1] t[1] + Ṅ[3] q̇[3] + N[3] q̈[3]",
    "w*[3] = M[3] ṫ[3] + Ω[3] M[3] E[3] t[3]",
    # step 1, within modules
    "t[1¹] = p[1¹] θ̇[1¹]", "ṫ[1¹] = Ω[1¹] p[1¹] θ̇[1¹] + p[1¹] θ̈[1¹] + ρ[1¹]", "w*[1¹] = M[1¹] ṫ[1¹] + Ω[1¹] M[1¹] E[1¹] t[1¹]",
    "t[1²] = A[1²,1¹] t[1¹] + p[1²] θ̇[1²]", "ṫ[1²] = A[1²,1¹] ṫ[1¹] + Ȧ[1²,1¹] t[1¹] + Ω[1²] p[1²] θ̇[1²] + p[1²] θ̈[1²]",
    "w*[1²] = M[1²] ṫ[1²] + Ω[1²] M[1²] E[1²] t[1²]",
    "t[2²] = A[2²,1²] t[1²] + p[2²] θ̇[2²]", "ṫ[2²] = A[2²,1²] ṫ[1²] + Ȧ[2²,1²] t[1²] + Ω[2²] p[2²] θ̇[2²] + p[2²] θ̈[2²]",
    "w*[2²] = M[2²] ṫ[2²] + Ω[2²] M[2²] E[2²] t[2²]",
    "t[1³] = A[1³,1¹] t[1¹] + p[1³] θ̇[1³]", "ṫ[1³] = A[1³,1¹] ṫ[1¹] + Ȧ[1³,1¹] t[1¹] + Ω[1³] p[1³] θ̇[1³] + p[1³] θ̈[1³]",
    "w*[1³] = M[1³] ṫ[1³] + Ω[1³] M[1³] E[1³] t[1³]",
    # step 2, between modules
    "w̃[3] = w*[3]", "τ[3] = N[3]ᵀ w̃[3]", "w̃[2] = w*[2]", "τ[2] = N[2]ᵀ w̃[2]",
    "w̃[1] = w*[1] + A[2,1]ᵀ w̃[2] + A[3,1]ᵀ w̃[3]", "τ[1] = N[1]ᵀ w̃[1]",
    # step 2, within modules
    "w̃[1³] = w*[1³]", "τ[1³] = p[1³]ᵀ w̃[1³]", "w̃[2²] = w*[2²]", "τ[2²] = p[2²]ᵀ w̃[2²]",
    "w̃[1²] = w*[1²] + A[2²,1²]ᵀ w̃[2²]", "τ[1²] = p[1²]ᵀ w̃[1²]",
    "w̃[1¹] = w*[1¹] + A[1²,1¹]ᵀ w̃[1²] + A[1³,1¹]ᵀ w̃[1³]", "τ[1¹] = p[1¹]ᵀ w̃[1¹]",
)  # fmt: skip
"""The book's rows in our notation; its accelerations put the term with the rate of N first."""

TABLE_6_4 = (
    # step 1, between modules
    "φ̂[3] = φ[3]", "φ̃[3] = Î[3]⁻¹ φ̂[3]", "φ̂[2] = φ[2]", "φ̃[2] = Î[2]⁻¹ φ̂[2]",
    "φ̂[1] = φ[1] − N[1]ᵀ η̃[1]", "η̃[1] = A[2,1]ᵀ η[2] + A[3,1]ᵀ η[3]", "η[2] = ψ[2] φ̂[2]", "η[3] = ψ[3] φ̂[3]", "φ̃[1] = Î[1]⁻¹ φ̂[1]",
    # step 1, within modules
    "φ̂[1³] = φ[1³]", "φ̃[1³] = φ̂[1³] / m̂[1³]", "φ̂[2²] = φ[2²]", "φ̃[2²] = φ̂[2²] / m̂[2²]",
    "φ̂[1²] = φ[1²] − p[1²]ᵀ η̃[1²]", "η̃[1²] = A[2²,1²]ᵀ η[2²]", "η[2²] = ψ[2²] φ̂[2²]", "φ̃[1²] = φ̂[1²] / m̂[1²]",
    "φ̂[1¹] = φ[1¹] − p[1¹]ᵀ η̃[1¹]", "η̃[1¹] = A[1²,1¹]ᵀ η[1²] + A[1³,1¹]ᵀ η[1³]", "η[1²] = ψ[1²] φ̂[1²] + η̃[1²]",
    "η[1³] = ψ[1³] φ̂[1³]", "φ̃[1¹] = φ̂[1¹] / m̂[1¹]",
    # step 2, between modules
    "q̈[1] = φ̃[1]", "q̈[2] = φ̃[2] − ψ[2]ᵀ μ̃[2]", "μ̃[2] = A[2,1] μ[1]", "μ[1] = N[1] q̈[1]",
    "q̈[3] = φ̃[3] − ψ[3]ᵀ μ̃[3]", "μ̃[3] = A[3,1] μ[1]",
    # step 2, within modules
    "θ̈[1¹] = φ̃[1¹]", "θ̈[1²] = φ̃[1²] − ψ[1²]ᵀ μ̃[1²]", "μ̃[1²] = A[1²,1¹] μ[1¹]", "μ[1¹] = p[1¹] θ̈[1¹]",
    "θ̈[2²] = φ̃[2²] − ψ[2²]ᵀ μ̃[2²]", "μ̃[2²] = A[2²,1²] μ[1²]", "μ[1²] = p[1²] θ̈[1²] + μ̃[1²]",
    "θ̈[1³] = φ̃[1³] − ψ[1³]ᵀ μ̃[1³]", "μ̃[1³] = A[1³,1¹] μ[1¹]",
)  # fmt: skip
"""The book's rows in our notation; where it prints the sum in the wrench of 1¹ as an equation of
two, the sum is meant.
"""


@pytest.mark.parametrize(
    ("name", "book"), [("inverse_dynamics", TABLE_6_3), ("forward_dynamics", TABLE_6_4)]
)
def test_rows_of_the_book(name: str, book: tuple[str, ...]) -> None:
    table = step_table(rf.load("gripper"), name)
    ours = table.equations(within=False) + table.equations()
    assert [row for row in book if row not in ours] == []
    assert len(set(book)) == len(book)


# ---- a table, worked out ----


def evaluate(equations: list[str], known: dict[str, Any]) -> dict[str, Any]:
    """Every equation in turn: sums of products of named arrays, some transposed, inverted or
    divided by.
    """
    values = dict(known)

    def factor(text: str) -> Any:
        found = re.fullmatch(r"(.+\])(ᵀ|⁻¹|)", text)
        assert found is not None, text
        value = values[found[1]]
        return value.T if found[2] == "ᵀ" else np.linalg.inv(value) if found[2] else value

    def term(text: str) -> Any:
        top, _, bottom = text.partition(" / ")
        product = factor(top.split(" ")[-1])
        for part in reversed(top.split(" ")[:-1]):
            product = factor(part) @ product
        return product / float(factor(bottom).item()) if bottom else product

    for equation in equations:
        left, right = equation.split(" = ")
        assert left not in values, left
        signs = [1.0, *(1.0 if sign == "+" else -1.0 for sign in re.findall(r" ([+−]) ", right))]
        if right.startswith("−"):
            right, signs = right[1:], [-1.0]
        terms = [
            sign * term(text) for sign, text in zip(signs, re.split(r" [+−] ", right), strict=True)
        ]
        values[left] = sum(terms[1:], terms[0])
    return values


def given(
    m: Model, q: Any, v: Any, level: Any, table: StepTable
) -> tuple[dict[str, Any], list[list[int]]]:
    """The matrices that a table names, from the DeNOC matrices; and the joint rates that each label
    has.
    """
    d = denoc_matrices(m, q, v, level)
    higher, lower = (
        denoc_matrices(m, q + 1e-6 * v, v, level),
        denoc_matrices(m, q - 1e-6 * v, v, level),
    )
    if level == "link":
        by_link = [row.link for row in table.sweeps[0].rows]
        order = [k for group in denoc_matrices(m, q, v, "module").groups for k in group]
        labels = [by_link[order.index(k)] for k in range(m.nv)]
    else:
        labels = [str(i + 1) for i in range(len(d.groups))]
    P, rate, dq, ddq = ("p", "Ω p", "θ̇", "θ̈") if level == "link" else ("N", "Ṅ", "q̇", "q̈")
    values: dict[str, Any] = {}
    for g, (label, group) in enumerate(zip(labels, d.groups, strict=True)):
        for name in ("M", "Omega", "E"):
            values[f"{'Ω' if name == 'Omega' else name}[{label}]"] = d.block(name, g, g)
        values[f"{P}[{label}]"] = d.block("N_d", g, g)
        if level == "module":
            values[f"{rate}[{label}]"] = (
                higher.block("N_d", g, g) - lower.block("N_d", g, g)
            ) / 2e-6
        values[f"{dq}[{label}]"] = v[list(group)][:, None]
        R = m.skeleton.root.rotation
        values[f"ρ[{label}]"] = np.tile(
            np.concatenate([np.zeros(3), -R.T @ m.gravity]), len(group)
        )[:, None]
        h = d.parents[g]
        if h >= 0:
            values[f"A[{label},{labels[h]}]"] = d.block("N_l", g, h)
            slope = (higher.block("N_l", g, h) - lower.block("N_l", g, h)) / 2e-6
            values[f"Ȧ[{label},{labels[h]}]"] = slope
    return values | {f"{ddq}[{label}]": None for label in labels}, [
        list(group) for group in d.groups
    ]


def _work_out(m: Model, q: Any, v: Any, a: Any, level: Any) -> None:
    within = level == "link"
    ddq = "θ̈" if within else "q̈"
    table = step_table(m, "inverse_dynamics", base="joint")
    values, groups = given(m, q, v, level, table)
    labels = [key[len(ddq) + 1 : -1] for key in values if key.startswith(f"{ddq}[")]
    for label, group in zip(labels, groups, strict=True):
        values[f"{ddq}[{label}]"] = a[group][:, None]
    out = evaluate(table.equations(within), values)
    tau = m.inverse_dynamics(q, v, a)
    got = np.concatenate([out[f"τ[{label}]"].ravel() for label in labels])
    order = [k for group in groups for k in group]
    assert (
        np.abs(got - tau[order]).max() < 1e-6 * np.abs(tau).max()
    )  # rates of A and N by differences
    for label in labels:
        del values[f"{ddq}[{label}]"]
    h = m.bias(q, v)
    for label, group in zip(labels, groups, strict=True):
        values[f"τ[{label}]"], values[f"h[{label}]"] = tau[group][:, None], h[group][:, None]
    out = evaluate(step_table(m, "forward_dynamics", base="joint").equations(within), values)
    got = np.concatenate([out[f"{ddq}[{label}]"].ravel() for label in labels])
    assert np.abs(got - a[order]).max() < 1e-8 * np.abs(a).max()


@pytest.mark.parametrize("level", ["link", "module"])
@pytest.mark.parametrize(
    "name", ["gripper", "stanford_arm", "spatial_double_pendulum", "quadruped"]
)
def test_tables_of_robots(name: str, level: str) -> None:
    m = rf.load(name)
    q, v = m.random(3)
    _work_out(m, q, v, np.linspace(-1.0, 1.0, m.nv), level)


@pytest.mark.parametrize("level", ["link", "module"])
def test_tables_of_random_trees(level: str) -> None:
    for seed in range(12):
        case = random_case(seed, 1 + seed % 6)
        m = Model("tree", case.bodies, tuple(case.gravity), {})
        _work_out(m, *map(np.array, (case.q, case.v, case.a)), level)


@pytest.mark.parametrize(
    ("kind", "slides"),
    [("revolute", 0), ("cylindrical", 1), ("universal", 0), ("spherical", 0), ("planar", 1)],
)
def test_a_joint_has_one_origin(kind: str, slides: int) -> None:
    """Where the links of a joint turn about one point there is no A between them, wherever the next
    joint is: A stands once per joint and once per slide behind its first freedom.
    """
    pair: dict[str, Any] = {
        "joint": kind,
        "mass": 1.0,
        "com": (0.1, 0.2, -0.3),
        "inertia": (1, 2, 2),
    }
    tree = rf.Builder("pair").link("a", **pair).link("b", parent="a", at=(0.1, 0.2, -0.3), **pair)
    m = tree.link("c", parent="b", at=(0.3, -0.1, 0.2), **pair).model()
    q, v = m.random(4)
    _work_out(m, q, v, np.linspace(-1.0, 1.0, m.nv), "link")
    for name, letters in (("inverse_dynamics", "A Ȧ"), ("forward_dynamics", "A")):
        rows = step_table(m, name).equations()
        for letter in letters.split():
            used = {x for row in rows for x in re.findall(rf"(?<!\S){letter}\[[^\]]*\]", row)}
            assert len(used) == 2 + 3 * slides


# ---- tables 7.1 and 7.2 ----

TABLE_7_1 = (
    "t[0] = P[0] q̇[0]", "t′[0] = Ṗ[0] q̇[0] + ρ[0]", "w*[0] = M[0] t′[0] + Ω[0] M[0] E[0] t[0]",
    "t[2¹] = A[2¹,1¹] t[1¹] + p[2¹] θ̇[2¹]", "A[2¹,0] = A[2¹,1¹] A[1¹,0]",
    "w̃[1¹] = w*[1¹] + A[2¹,1¹]ᵀ w̃[2¹]", "M̃[1¹] = M[1¹] + A[2¹,1¹]ᵀ M̃[2¹] A[2¹,1¹]",
    "h̃[1¹] = p[1¹]ᵀ w̃[1¹]", "κ[1¹] = M̃[1¹] p[1¹]", "κ̃[1¹] = A[1¹,0]ᵀ κ[1¹]",
    "h̃[0] = P[0]ᵀ w̃[0]", "K[0] = M̃[0] P[0]", "I[0,0] = K[0]ᵀ P[0]",
    "q̈[0] = −I[0,0]⁻¹ h̃[0]", "q̃[0] = P[0] q̈[0]", "τ[2¹] = κ̃[2¹]ᵀ q̃[0] + h̃[2¹]",
)  # fmt: skip
"""Rows of table 7.1 for the planar biped, with the sums of its second step put right."""


def test_rows_of_the_floating_base() -> None:
    ours = step_table(rf.load("planar_biped"), "inverse_dynamics").equations()
    assert [row for row in TABLE_7_1 if row not in ours] == []


def floating(m: Model, q: Any, v: Any, level: Any) -> tuple[dict[str, Any], list[str], Any]:
    """The matrices that tables 7.1 and 7.2 name, from the DeNOC matrices with module M0."""
    d, table = floating_denoc(m, q, v, level), step_table(m, "inverse_dynamics")
    higher, lower = (floating_denoc(m, q + s * 1e-6 * v, v, level) for s in (1.0, -1.0))
    if level == "module":
        labels = [str(i) for i in range(len(d.groups))]
    else:
        by_link = [row.link for row in table.sweeps[0].rows]
        order = [k for group in floating_denoc(m, q, v).groups for k in group]
        labels = [by_link[order.index(k)] for k in range(len(d.groups))]
    values: dict[str, Any] = {"τ[0]": np.zeros((6, 1))}
    for g, label in enumerate(labels):
        plain = level == "link" and g > 0
        P, rate = ("p", "θ̇") if plain else ("N" if level == "module" else "P", "q̇")
        for name, symbol in (("M", "M"), ("Omega", "Ω"), ("E", "E")):
            values[f"{symbol}[{label}]"] = d.block(name, g, g)
        values[f"{P}[{label}]"] = d.block("N_d", g, g)
        slope = higher.block("N_d", g, g) - lower.block("N_d", g, g)
        values[f"{'Ṅ' if P == 'N' else 'Ṗ'}[{label}]"] = slope / 2e-6
        values[f"{rate}[{label}]"] = v[list(d.columns[g])][:, None]
        rho = np.concatenate([np.zeros(3), -np.array(m.gravity)])
        values[f"ρ[{label}]"] = np.tile(rho, len(d.groups[g]))[:, None]
        if (h := d.parents[g]) >= 0:
            values[f"A[{label},{labels[h]}]"] = d.block("N_l", g, h)
            slope = higher.block("N_l", g, h) - lower.block("N_l", g, h)
            values[f"Ȧ[{label},{labels[h]}]"] = slope / 2e-6
    return values, labels, d


@pytest.mark.parametrize("level", ["link", "module"])
@pytest.mark.parametrize("name", ["planar_biped", "spatial_biped", "space_3_link", "dual_arm"])
def test_tables_of_floating_robots(name: str, level: str) -> None:
    """Table 7.1 ends at the answers of hybrid_dynamics, table 7.2 at those of forward_dynamics."""
    m = rf.load(name)
    q, v = m.random(5)
    a = np.linspace(-1.0, 1.0, m.nv)
    values, labels, d = floating(m, q, v, level)
    joints = {
        f"{'q̈' if level == 'module' else 'θ̈'}[{label}]": a[list(d.columns[g])][:, None]
        for g, label in enumerate(labels)
        if g
    }
    table = step_table(m, "inverse_dynamics")
    out = evaluate(table.equations(level == "link"), values | joints)
    base, tau = m.hybrid_dynamics(q, v, a[6:])
    np.testing.assert_allclose(out["q̈[0]"].ravel(), base, atol=1e-5 * np.abs(base).max())
    for g, label in enumerate(labels[1:], 1):
        want = np.concatenate([np.zeros(6), tau])[list(d.columns[g])]
        np.testing.assert_allclose(out[f"τ[{label}]"].ravel(), want, atol=1e-5 * np.abs(tau).max())
        values[f"τ[{label}]"] = want[:, None]
    out = evaluate(step_table(m, "forward_dynamics").equations(level == "link"), values)
    found = [out[f"{'θ̈' if level == 'link' and g else 'q̈'}[{x}]"] for g, x in enumerate(labels)]
    order = [k for group in d.columns for k in group]
    expected = np.concatenate([base, a[6:]])[order]
    got = np.concatenate([x.ravel() for x in found])
    np.testing.assert_allclose(got, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["gripper", "planar_biped", "spatial_biped", "space_3_link"])
def test_block_factors(name: str) -> None:
    """I = U D U' (5.32), zero where no module carries the other, B_1 ... B_s = U^-1 (5.39),
    M^_i = M_i + sum A' Phi M^ A (5.36).
    """
    m = rf.load(name)
    q, v = m.random(2)
    d = (
        floating_denoc(m, q, v)
        if m.joints[0].kind == "free_euler"
        else denoc_matrices(m, q, v, "module")
    )
    U, D = d.U, d.D
    np.testing.assert_allclose(U @ D @ U.T, d.I, atol=1e-10 * np.abs(d.I).max())
    product = np.eye(len(U))
    for factor in d.B:
        product = product @ factor
    np.testing.assert_allclose(product @ U, np.eye(len(U)), atol=1e-9)
    for g, own in enumerate(d.columns):
        for h, other in enumerate(d.columns):
            assert U[np.ix_(own, other)].any() == (g == h or carries(d, g, h))
    for g, x in enumerate(d.articulated):
        total = d.block("M", g, g)
        for j, parent in enumerate(d.parents):
            if parent == g:
                A = d.block("N_l", j, g)
                total = total + A.T @ d.Phi[j] @ d.articulated[j] @ A
        np.testing.assert_allclose(x, total, atol=1e-10 * np.abs(total).max())
    assert d.of_each("Psi")[0].symbol == f"Psi_{d.first}"
    np.testing.assert_array_equal(np.asarray(d["U"]), U)
    np.testing.assert_array_equal(d.block("D", 1, 1), D[np.ix_(d.columns[1], d.columns[1])])
    with pytest.raises(rf.ModelError, match="'psi'; choose one of composite"):
        d.of_each("psi")


def carries(d: Any, i: int, j: int) -> bool:
    while (j := d.parents[j]) >= 0:
        if i == j:
            return True
    return False


def test_print() -> None:
    table = step_table(rf.load("gripper"), "inverse_dynamics")
    text = str(table)
    assert text.startswith(
        "gripper: steps of the inverse dynamics\nlinks: 1¹ = palm, 1² = finger1, 2² = finger2, 1³ "
        "= thumb\n"
    )
    assert "Step 2. Backward recursion, eqs. (6.5) and (6.6)" in text
    lines = re.sub("[\u0300-\u036f]", "", text).splitlines()  # marks above letters take no room
    assert {line.index("w*[1") for line in lines if "w*[1²] =" in line} == {
        lines[5].index("within modules")
    }
    tex = table.latex()
    assert r"$\tilde{w}_{1^{2}} = w^*_{1^{2}} + A_{2^{2},1^{2}}^T \tilde{w}_{2^{2}}$" in tex
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") == 2
    assert tex.isascii()
    assert "1¹.3" in str(step_table(rf.load("spatial_double_pendulum"), "forward_dynamics"))


def test_what_is_refused() -> None:
    m = rf.load("gripper")
    with pytest.raises(
        rf.RamifyError,
        match="no step table of 'mass_matrix'; choose one of inverse_dynamics, forward_dynamics",
    ):
        step_table(m, "mass_matrix")
    with pytest.raises(rf.ModelError, match="quaternion"):
        step_table(rf.load("quadruped", base="free"), "inverse_dynamics")
