"""Equations of motion in closed form: the textbook's planar arm, the kernels' numbers, the formats,
what takes too long.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from random_trees import random_bodies
from test_cli import Run, good, run  # noqa: F401  the fixture

import ramify as rf
from ramify.api.model import Model
from ramify.core.scalar import cos, sin
from ramify.formulations import Equations, equations
from ramify.formulations.symbolic.waves import Space, determinant, exact, quotient, waves


def named(text: str) -> Any:
    """Real symbols, by the names that the equations give them."""
    return [sp.Symbol(name, real=True) for name in text.split()]


def same(a: Any, b: Any) -> bool:
    """Whether two matrices are identical, waves being compared as exponentials."""
    return all(
        sp.expand(sp.expand_trig(x).rewrite(sp.exp)) == 0 for x in sp.Matrix(a) - sp.Matrix(b)
    )


def planar_arm() -> tuple[Any, dict[str, Any]]:
    """(43) of Saha's paper on the decomposition of the inertia matrix, and what it is written in."""
    l1, l2, l3, m1, m2, m3, a, b, c = named("l1 l2 l3 m1 m2 m3 theta1 theta2 theta3")
    third, half = sp.Rational(1, 3), sp.Rational(1, 2)
    c2, c3, c23 = sp.cos(b), sp.cos(c), sp.cos(b + c)
    i11 = (
        third * m1 * l1**2
        + m2 * (l1**2 + third * l2**2 + l1 * l2 * c2)
        + m3 * (l1**2 + l2**2 + third * l3**2 + 2 * l1 * l2 * c2 + l1 * l3 * c23 + l2 * l3 * c3)
    )
    i21 = m2 * (third * l2**2 + half * l1 * l2 * c2) + m3 * (
        l1 * l2 * c2 + l2**2 + l2 * l3 * c3 + half * l1 * l3 * c23 + third * l3**2
    )
    i22 = third * m2 * l2**2 + m3 * (l2**2 + third * l3**2 + l2 * l3 * c3)
    i31 = m3 * (half * l1 * l3 * c23 + half * l2 * l3 * c3 + third * l3**2)
    i32, i33 = m3 * (half * l2 * l3 * c3 + third * l3**2), third * m3 * l3**2
    matrix = sp.Matrix([[i11, i21, i31], [i21, i22, i32], [i31, i32, i33]])
    return matrix, {"l": (l1, l2, l3), "m": (m1, m2, m3), "theta": (a, b, c)}


@pytest.fixture(scope="module")
def arm() -> Equations:
    return equations(rf.load("planar_3r"), symbols=True)


# ---- the planar arm of the paper ----


def test_inertia_matrix_of_the_paper(arm: Equations) -> None:
    right, _ = planar_arm()
    assert same(arm.M, right)
    assert sorted(arm.parameters) == ["g", "l1", "l2", "l3", "m1", "m2", "m3"]


def test_factors_of_the_paper(arm: Equations) -> None:
    """(45) with the paper's vectors, rho23 with theta12; U D U' = M (46)."""
    _, given = planar_arm()
    l, m, (a, b, c) = given["l"], given["m"], given["theta"]  # noqa: E741
    along = [sp.Matrix([sp.cos(x), sp.sin(x)]) for x in (a, a + b, a + b + c)]
    d = [length * u / 2 for length, u in zip(l, along, strict=True)]
    rho12, rho23 = l[0] * along[0] + d[1], l[1] * along[1] + d[2]
    rho13 = l[0] * along[0] + l[1] * along[1] + d[2]
    I = [mass * length**2 / 12 for mass, length in zip(m, l, strict=True)]  # noqa: E741
    m3 = I[2] + m[2] * d[2].dot(d[2])
    a13, a23 = (I[2] + m[2] * d[2].dot(rho13)) / m3, (I[2] + m[2] * d[2].dot(rho23)) / m3
    m2 = I[1] + m[1] * d[1].dot(d[1]) + I[2] + m[2] * rho23.dot(rho23) - m3 * a23**2
    a12 = (I[1] + m[1] * d[1].dot(rho12) + I[2] + m[2] * rho13.dot(rho23) - m3 * a13 * a23) / m2
    values = dict(
        zip((*l, *m, a, b, c), (0.7, 1.1, 0.4, 2.0, 1.3, 0.6, 0.3, -0.8, 1.9), strict=True)
    )
    for got, right in (
        (arm.U[0, 1], a12),
        (arm.U[0, 2], a13),
        (arm.U[1, 2], a23),
        (arm.D[1, 1], m2),
        (arm.D[2, 2], m3),
    ):
        assert float(got.subs(values)) == pytest.approx(float(right.subs(values)), rel=1e-13)
    for got, rho in ((arm.U[0, 2], rho13), (arm.U[1, 2], rho23)):
        assert same([got * m[2] * l[2] ** 2 / 3], [I[2] + m[2] * d[2].dot(rho)])
    U, D, M, inverse = (
        np.array(x.subs(values), dtype=np.float64) for x in (arm.U, arm.D, arm.M, arm.inverse)
    )
    np.testing.assert_allclose(U @ D @ U.T, M, rtol=1e-13)
    np.testing.assert_allclose(inverse @ M, np.eye(3), atol=1e-13)
    assert arm.U[1, 0] == arm.U[2, 0] == arm.U[2, 1] == 0


def test_coriolis_and_gravity(arm: Equations) -> None:
    """C from the Christoffel symbols of M, g from the potential, by differentiation."""
    q, v = list(arm.q), list(arm.v)
    M = arm.M

    def christoffel(i: int, j: int) -> Any:
        return sum(
            (M[i, j].diff(q[k]) + M[i, k].diff(q[j]) - M[j, k].diff(q[i])) * v[k] / 2
            for k in range(3)
        )

    assert same(arm.C, sp.Matrix(3, 3, christoffel))
    l1, l2, l3, m1, m2, m3, g = named("l1 l2 l3 m1 m2 m3 g")
    s1, s12, s123 = sp.sin(q[0]), sp.sin(q[0] + q[1]), sp.sin(q[0] + q[1] + q[2])
    potential = g * (
        m1 * l1 * s1 / 2 + m2 * (l1 * s1 + l2 * s12 / 2) + m3 * (l1 * s1 + l2 * s12 + l3 * s123 / 2)
    )
    assert same(arm.g, sp.Matrix([potential.diff(x) for x in q]))


def test_text_reads_as_the_paper(arm: Equations) -> None:
    text = arm.text()
    for line in (
        "M11 = m1 l1²/3 + m2 (l1² + l2²/3 + l1 l2 c2) + m3 (l1² + l2² + l3²/3 + 2 l1 l2 c2 + l2 l3 "
        "c3 + l1 l3 c23)",
        "M12 = M21 = m2 (l2²/3 + l1 l2 c2/2) + m3 (l2² + l3²/3 + l1 l2 c2 + l2 l3 c3 + l1 l3 "
        "c23/2)",
        "M33 = m3 l3²/3",
        "C22 = -m3 l2 l3 s3 θ̇3/2",
        "g3 = m3 g l3 c123/2",
        "U23 = (2 l3 + 3 l2 c3) / (2 l3)",
        "D2 = l2² δ1 / 24",
        "W11 = 6 δ1 / (l1² δ2)",
        "δ1 = 8 m2 + m3 (15 - 9 cos(2 θ3))",
        "c23 = cos(θ2 + θ3)",
    ):
        assert line in text
    numbers = equations(rf.load("planar_3r")).text(("M", "g"))
    assert "M11 = 4 + 3 c2 + c3 + c23\n" in numbers
    assert "g1 = 24.525 c1 + 14.715 c12 + 4.905 c123\n" in numbers
    tex = arm.latex(("M", "U"))
    assert r"M_{33} &= \tfrac{1}{3} m_{3} l_{3}^{2}" in tex
    assert r"U_{23} &= \frac{2 l_{3} + 3 l_{2} c_{3}}{2 l_{3}}" in tex
    assert tex.count("{") == tex.count("}")
    assert str(arm) == arm.text(("M", "C", "g"))
    assert repr(arm) == "<Equations of 'planar_3r': 3 degrees of freedom, 7 named parameters>"


# ---- every format gives the kernels' numbers ----

FUNCTIONS = {
    "M": "mass_matrix", "C": "coriolis_matrix", "g": "gravity_forces", "U": "upper_factor", "D": "diagonal_factor",
    "inverse": "mass_matrix_inverse",
}  # fmt: skip


def check_python(m: Model, found: Equations, parts: tuple[str, ...] = tuple(FUNCTIONS)) -> None:
    names: dict[str, Any] = {}
    exec(compile(found.python(parts), "equations", "exec"), names)
    q, v = m.random(4)
    factors = m.udu(q)
    right = {
        "M": m.mass_matrix(q), "C": m.coriolis_matrix(q, v), "g": m.gravity_forces(q), "U": factors.U, "D": np.diag(factors.D),
        "inverse": m.mass_matrix_inverse(q),
    }  # fmt: skip
    for part in parts:
        got = names[FUNCTIONS[part]](q, v) if part == "C" else names[FUNCTIONS[part]](q)
        assert got.shape == right[part].shape
        assert np.abs(got - right[part]).max() <= 1e-12 * max(1.0, np.abs(right[part]).max()), part


def robots() -> list[Model]:
    screw = rf.Builder("jack").link("arm", mass=2.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.3))
    screw = screw.link(
        "nut",
        "arm",
        joint="helical",
        pitch=0.1,
        at=(1, 0, 0),
        mass=1.0,
        com=(0.2, 0, 0.1),
        inertia=(0.1, 0.1, 0.1),
    )
    unit = rf.Builder("unit").link(
        "nut", joint="helical", pitch=1.0, mass=1.0, com=(0.2, 0, 0.1), inertia=(0.1, 0.1, 0.1)
    )
    odd = rf.from_dh(
        [(0.1, 0.3, 0.2, 0.4), (0.3, 1.1, -0.2, 0.7), (0.2, -0.6, 0.1, 0.0)], [1.0, 0.7, 0.4],
        [(0.1, 0.05, 0.02), (0.2, 0.0, 0.1), (0.1, 0.1, 0.1)], [(0.1, 0.2, 0.25)] * 3, joints="RPR", gravity=(1.0, 2.0, -9.0),
    )  # fmt: skip
    shipped = (
        "two_link",
        "gripper",
        "planar_3r",
        "redysim_rp",
        "redysim_pppr",
        "spatial_double_pendulum",
    )
    return [*(rf.load(name) for name in shipped), screw.model(), unit.model(), odd]


@pytest.mark.parametrize("symbols", [False, True])
@pytest.mark.parametrize("m", robots(), ids=lambda m: m.name)
def test_python_equals_the_kernels(m: Model, symbols: bool) -> None:
    parts = ("M", "C", "g") if m.nv > 4 else tuple(FUNCTIONS)
    check_python(m, equations(m, symbols=symbols), parts)


def test_larger_robots() -> None:
    """An arm of six joints, and one on a floating base."""
    for name, parts in (("stanford_arm", ("M", "g", "D")), ("space_3_link", ("M", "g"))):
        m = rf.load(name)
        check_python(m, equations(m), parts)


def test_sympy_equals_the_kernels() -> None:
    m = rf.load("gripper")
    found = equations(m)
    q, v = m.random(1)
    values = dict(zip([*found.q, *found.v], [*q, *v], strict=True))
    for got, right in (
        (found.M, m.mass_matrix(q)), (found.C, m.coriolis_matrix(q, v)), (found.g, m.gravity_forces(q)[:, None]),
        (found.U, m.udu(q).U), (found.D, m.udu(q).D), (found.inverse, m.mass_matrix_inverse(q)),
    ):  # fmt: skip
        np.testing.assert_allclose(
            np.array(got.subs(values), dtype=np.float64), right, rtol=1e-11, atol=1e-12
        )


def test_sympy_as_text() -> None:
    """The module for SymPy makes the same matrices, numbers exact."""
    for symbols in (False, True):
        found = equations(rf.load("planar_3r"), symbols=symbols)
        names: dict[str, Any] = {}
        exec(compile(found.sympy(), "equations", "exec"), names)
        for part, right in (
            ("M", found.M),
            ("C", found.C),
            ("g", found.g),
            ("U", found.U),
            ("D", found.D),
            ("W", found.inverse),
        ):
            assert not names[part].atoms(sp.Float)
            values = {x: 0.1 * i + 0.3 for i, x in enumerate(sorted(right.free_symbols, key=str))}
            np.testing.assert_allclose(
                *(np.array(x.subs(values), dtype=np.float64) for x in (names[part], right)),
                atol=1e-12,
            )
        assert same(names["M"], found.M)
    one = rf.Builder("one").link("rod", mass=1.0, com=(0.5, 0, 0)).model()
    exec(compile(equations(one).sympy(("M",)), "equations", "exec"), names)
    assert names["M"] == sp.Matrix([[sp.Rational(1, 4)]])


def test_without_sympy(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sympy", None)
    found = equations(rf.load("two_link"))
    assert found.text() and found.latex() and found.python()  # noqa: PT018
    with pytest.raises(
        rf.RamifyError, match=r"SymPy is not installed: pip install 'ramify\[symbolic\]'"
    ):
        _ = found.M


def test_random_trees() -> None:
    """Branches, all joints but quaternions, axes at right angles and nearly parallel; numbers and
    names.
    """
    done = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        bodies = random_bodies(
            rng, int(rng.integers(1, 4)), styles=("right angles", "nearly parallel")
        )
        m = Model("tree", bodies, tuple(6.0 * rng.normal(size=3)), {})
        if m.nv > 3:
            continue
        done += 1
        for symbols in (False, True):
            check_python(m, equations(m, symbols=symbols), ("M", "C", "g"))
    assert done >= 12


def test_a_mass_centre_on_an_axis_is_named_by_its_distance() -> None:
    """On the negative side of the axis too; the formulas carry the sign."""
    inertia = (0.08, 0.08, 0.01)
    for side in (1.0, -1.0):
        rod = rf.Builder("rod").link(
            "rod", axis=(0, 1, 0), mass=1.0, com=(0, 0, side * 0.5), inertia=inertia
        )
        eq = equations(rod.model(), symbols=True)
        assert eq.parameters == {"I1": 0.08, "g": 9.81, "m1": 1.0, "r1": 0.5}  # no rounding dust
        assert f"g1 = {'-' if side > 0 else ''}m1 g r1 s1" in eq.text()


def test_parameters_may_change() -> None:
    """The named robot is a family: other numbers give another member."""
    names: dict[str, Any] = {}
    exec(
        compile(equations(rf.load("planar_3r"), symbols=True).python(("M",)), "equations", "exec"),
        names,
    )
    other = rf.load("planar_3r", length=0.4, mass=2.5)
    q, _ = other.random(0)
    got = names["mass_matrix"](q, l1=0.4, l2=0.4, l3=0.4, m1=2.5, m2=2.5, m3=2.5)
    np.testing.assert_allclose(got, other.mass_matrix(q), rtol=1e-12)


def test_textbook_forms() -> None:
    """Squares of cosines, the only moment of inertia that matters, slides, gravity along several
    axes.
    """
    swing = rf.Builder("swing").link(
        "arm",
        joint="universal",
        sequence="ZY",
        mass=1.0,
        com=(0.5, 0, 0),
        inertia=(0, 1 / 12, 1 / 12),
    )
    assert "M11 = m1 l1² c2²/3\n" in equations(swing.model(), symbols=True).text(("M",))
    lump = rf.Builder("lump").link("arm", mass=2.0, com=(0.3, 0, 0), inertia=(0.1, 0.2, 0.3))
    text = equations(lump.model(), symbols=True).text(("M",))
    assert "M11 = m1 r1² + I1" in text
    assert "I1 = 0.3" in text
    slide = equations(rf.load("redysim_rp"), symbols=True).text(("M", "C"))
    assert "M11 = m1 l1²/3 + m2 (l1² + l2²/3 - d2 l2 + d2²)" in slide
    assert "C12 = m2 (-l2 θ̇1/2 + d2 θ̇1)" in slide
    tilted = rf.with_gravity(rf.load("two_link"), (1.0, -9.0, 0.0))
    assert "g2 = m2 (-gy l2 c12/2 + gx l2 s12/2)" in equations(tilted, symbols=True).text(("g",))


# ---- the arithmetic below ----


def test_waves() -> None:
    space = Space(2)
    x, y, k = space.angle(0, "x"), space.angle(1, "y"), space.variable("k")
    assert (sin(x) * sin(x) + cos(x) * cos(x)).terms == space.number(1).terms
    assert (sin(x) * cos(y) + cos(x) * sin(y)).terms == {((1, 1), True, ()): 1}
    assert (cos(x) * cos(y) + sin(x) * sin(y)).terms == {((1, -1), False, ()): 1}
    assert (sin(y) * cos(x) - cos(y) * sin(x)).terms == {((1, -1), True, ()): -1}
    assert ((k + 1.0) * (k - 1.0) - k * k).terms == space.number(-1).terms
    assert (2.0 * k - k - k).terms == {}
    assert (1.0 - k).terms == (-(k - 1.0)).terms
    assert (k / 4.0).terms == {((0, 0), False, (2,)): Fraction(1, 4)}
    assert x * 1.0 is x
    assert k * 0.0 == 0.0
    assert exact(1 / 12) == Fraction(1, 12)
    assert exact(0.1 + 0.2) == Fraction(3, 10)
    assert exact(2**0.5) == 2**0.5
    assert isinstance(exact(2**0.5), float)
    with pytest.raises(TypeError, match="must not branch"):
        bool(k)
    with pytest.raises(rf.RamifyError, match="divided as pairs"):
        _ = k / k
    near = cos(x) * 2**0.5 - cos(x) * (2**0.5 * (1 + 1e-15))
    assert len(near.terms) == 1
    assert (near + k).tidy(k.largest).terms == k.terms
    assert [len(entry.terms) for entry in waves(space, [near, k, 0.0])] == [0, 1, 0]


def test_determinants_and_quotients() -> None:
    space = Space(1)
    a, b = space.variable("a"), space.variable("b")
    M = [[a, b, space.number(0)], [b, a, b], [space.number(0), b, a]]
    assert determinant(M, (0, 1, 2), (0, 1, 2), {}).terms == (a * a * a - 2.0 * (a * b * b)).terms
    assert determinant(M, (), (), {}).terms == space.number(1).terms
    whole = quotient(a * b + a * a, (a * b + a * a) * 2.0)
    assert whole.numerator.terms == space.number(1).terms
    assert whole.denominator.terms == space.number(2).terms
    part = quotient(a * b, a * a)
    assert (part.numerator.terms, part.denominator.terms) == (b.terms, a.terms)


# ---- what is refused, what takes too long ----


def test_what_is_refused() -> None:
    with pytest.raises(rf.ModelError, match="quaternion"):
        equations(rf.load("quadruped", base="free"))
    four_bar = rf.load("four_bar")
    with pytest.raises(rf.ModelError, match=r"four_bar has closed loops.* m\.tree"):
        equations(four_bar)
    assert equations(four_bar.tree).n == four_bar.nv
    with pytest.raises(rf.RamifyError, match="seconds is 0"):
        equations(rf.load("two_link"), seconds=0.0)
    with pytest.raises(
        rf.RamifyError,
        match="no part of the equations is called 'K'; choose one of M, C, g, U, D, inverse",
    ):
        equations(rf.load("two_link")).part("K")
    light = (
        rf.Builder("arm")
        .link("rod", mass=1.0, com=(1, 0, 0))
        .link("tip", "rod", at=(1, 0, 0))
        .model()
    )
    with pytest.raises(rf.ModelError, match="tip moves no inertia"):
        _ = equations(light).U


def test_time_is_limited() -> None:
    found = equations(rf.load("hexapod"), seconds=0.05)
    with pytest.raises(
        rf.RamifyError,
        match=r"C of hexapod in closed form takes longer than 0\.05 s; give it more with seconds=",
    ):
        _ = found.coriolis_forms
    with pytest.raises(rf.RamifyError, match="longer"):
        _ = found.coriolis_forms  # and at once the second time
    text = found.text()  # goes on with what is ready
    assert "name the parts that you need" in text
    with pytest.raises(rf.RamifyError, match="C of hexapod"):
        found.text(("C",))


def test_room_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramify.formulations.symbolic.waves._MOST_TERMS", 20)
    with pytest.raises(
        rf.RamifyError, match="C of stanford_arm in closed form has an entry of more than 20 terms"
    ):
        _ = equations(rf.load("stanford_arm")).coriolis_forms


# ---- the command ----


def test_command(run: Run) -> None:  # noqa: F811
    answer = good(run("equations", "planar_3r", "--symbols", "--part", "M"))
    assert "M33 = m3 l3²/3" in answer.out
    everything = good(run("equations", "two_link")).out
    assert all(
        f"\n  {entry} = " in everything for entry in ("M11", "C12", "g2", "U12", "D1", "W22", "δ1")
    )
    assert r"\begin{align*}" in good(run("equations", "two_link", "--format", "latex")).out
    assert "from sympy import" in good(run("equations", "two_link", "--format", "sympy")).out
    names: dict[str, Any] = {}
    exec(
        compile(good(run("equations", "two_link", "--format", "python")).out, "equations", "exec"),
        names,
    )
    m = rf.load("two_link")
    np.testing.assert_allclose(
        names["mass_matrix_inverse"]([0.3, 0.4]), m.mass_matrix_inverse([0.3, 0.4]), rtol=1e-12
    )
    data = good(run("equations", "two_link", "--json", "--symbols", "--part", "M", "g")).json
    assert data["parts"] == ["M", "g"]
    assert data["parameters"]["m1"] == 1.754


def test_command_for_steps(run: Run) -> None:  # noqa: F811
    out = good(run("equations", "gripper", "--steps", "inverse_dynamics")).out
    assert re.search(
        r"^1 +w̃\[1\] = w\*\[1\] \+ A\[2,1\]ᵀ w̃\[2\] \+ A\[3,1\]ᵀ w̃\[3\] +1¹ ", out, re.MULTILINE
    )
    assert (
        r"\begin{tabular}"
        in good(run("equations", "gripper", "--steps", "forward_dynamics", "--format", "latex")).out
    )
    data = json.loads(
        good(run("equations", "gripper", "--steps", "forward_dynamics", "--json")).out
    )
    assert len(data["steps"]) == 4
    assert data["steps"][3]["rows"][0]["intra"] == ["θ̈[1¹] = φ̃[1¹]", "μ[1¹] = p[1¹] θ̈[1¹]"]
    bad = run("equations", "gripper", "--steps", "forward_dynamics", "--format", "python")
    assert bad.code == 1
    assert "text or LaTeX" in bad.err


def test_command_leaves_out_what_takes_long(run: Run) -> None:  # noqa: F811
    answer = run("equations", "kuka_kr5", "--seconds", "0.3", "--part", "g", "D", "inverse")
    assert answer.code == 1
    assert "g1 = " in answer.out
    assert (
        "D is left out: D of kuka_kr5 in closed form takes longer than 0.3 s; give it more with "
        "--seconds" in answer.err
    )
    assert "inverse is left out" in answer.err
    opened = run("equations", "four_bar", "--part", "g")
    assert (opened.code, opened.err) == (
        0,
        "ramify: the loops of four_bar are opened: what follows is of its tree\n",
    )
    large = run("equations", "hexapod")
    assert large.code == 1
    assert "18 degrees of freedom: its closed forms fill megabytes" in large.err
