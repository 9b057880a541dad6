"""The book's recursions as written for counting: right numbers, and the multiplications and
additions of its tables.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_trees import random_body, random_joint

import ramify as rf
from ramify.api.model import Model
from ramify.core.spatial import Mat3, RigidInertia, Sym3, Vec3, Wrench
from ramify.formulations import FORMULATIONS, general_count
from ramify.formulations.counting import book_fixed, book_floating
from ramify.formulations.counting.appendix import (
    Hat,
    articulated_x,
    articulated_z,
    composite_x,
    composite_z,
    solve_symmetric,
)
from ramify.formulations.counting.book import book_step_table, run
from ramify.formulations.counting.book_tree import general_tree, tree_of
from ramify.formulations.counting.literature import (
    BOOK,
    PUBLISHED,
    SEED_ROBOTS,
    compare,
    why_not_comparable,
)
from ramify.formulations.counting.tally import Tally
from ramify.kernels.algorithms import ALGORITHMS
from ramify.model.joint import Joint
from ramify.model.link import Turn

KINDS = ("revolute", "universal", "spherical")


def random_robot(seed: int, floating: bool) -> Model:
    """A tree of revolute, universal and spherical joints; every third robot has right angles."""
    rng = np.random.default_rng(seed)
    style = "right angles" if seed % 3 == 0 else "anywhere"
    bodies = [random_body(rng, "base", -1, Joint("root", "free"))] if floating else []
    for k in range(int(rng.integers(1, 6))):
        parent = (
            len(bodies) - 1
            if rng.random() < 0.6
            else int(rng.integers(0 if floating else -1, max(len(bodies), 1)))
        )
        joint = random_joint(rng, f"joint {k}", str(rng.choice(KINDS)), style)
        bodies.append(random_body(rng, f"body {k}", min(parent, len(bodies) - 1), joint))
    return Model("random", tuple(bodies), 6.0 * rng.normal(size=3), {})


def error(got: Any, right: Any) -> float:
    """Largest difference, relative to the largest entry."""
    right = np.asarray(right)
    return float(
        np.abs(np.asarray(got, dtype=np.float64) - right).max() / max(np.abs(right).max(), 1e-9)
    )


@pytest.mark.parametrize("block", range(4))
def test_fixed_base(block: int) -> None:
    """100 trees: torques and accelerations of the kernels."""
    for seed in range(25 * block, 25 * block + 25):
        m = random_robot(seed, floating=False)
        tree = tree_of(m)
        q, v, a = np.random.default_rng(seed).normal(size=(3, m.nv))
        tau = m.inverse_dynamics(q, v, a)
        assert error(book_fixed.inverse_dynamics(tree, q, v, a), tau) < 1e-11
        assert error(book_fixed.accelerations_from(tree, q, tau - m.bias(q, v)), a) < 1e-11


@pytest.mark.parametrize("block", range(4))
def test_floating_base(block: int) -> None:
    """100 floating trees: the base's acceleration, torques and accelerations of the kernels, with
    and without outside wrenches.
    """
    for seed in range(25 * block, 25 * block + 25):
        m = random_robot(seed, floating=True)
        tree = tree_of(m)
        rng = np.random.default_rng(seed)
        q, v = m.random(seed)
        joints = rng.normal(size=m.nv - 6)
        # the base's own axes: those of its link, turned by ``seat`` from the user's
        seat = m.skeleton.links[5].seat
        assert seat.r == Vec3(0.0, 0.0, 0.0)
        S = np.array([[x.x, x.y, x.z] for x in seat.R.rows])
        R = S @ np.asarray(m.kinematics(q).rotation)[0].T  # world to base axes
        w0, g = Vec3(*(S @ v[3:6])), Vec3(*(R @ np.asarray(m.gravity)))
        outside = (
            [Wrench(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))] * len(m.bodies) if seed % 2 else None
        )

        given = np.concatenate([np.zeros(6), joints])
        base, tau = book_floating.inverse_dynamics(tree, q[7:], w0, g, v[6:], joints, outside)
        a0, right = m.hybrid_dynamics(q, v, joints)
        assert error(base, np.concatenate([S @ a0[3:], R @ a0[:3]])) < 1e-11
        assert error(tau, right) < 1e-11
        base, found = book_floating.forward_dynamics(tree, q[7:], w0, g, v[6:], joints, outside)
        right = m.forward_dynamics(q, v, given)
        assert error(base, np.concatenate([S @ right[3:6], R @ right[:3]])) < 1e-11
        assert error(found, right[6:]) < 1e-11


def test_outside_wrenches() -> None:
    """A moment on the base, against the kernels."""
    m = rf.load("quadruped", base="free")
    tree, rng = tree_of(m), np.random.default_rng(1)
    q, v = m.random(4)
    joints = rng.normal(size=m.nv - 6)
    S = np.array([[x.x, x.y, x.z] for x in m.skeleton.links[5].seat.R.rows])
    R = S @ np.asarray(m.kinematics(q).rotation)[0].T
    w0, g = Vec3(*(S @ v[3:6])), Vec3(*(R @ np.asarray(m.gravity)))
    moment = rng.normal(size=3)
    outside = [Wrench(Vec3(*(R @ moment)), Vec3(0.0, 0.0, 0.0))]
    outside += [Wrench(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))] * len(tree.links)
    acting = {m.bodies[0].name: np.concatenate([moment, np.zeros(3)])}
    base, tau = book_floating.inverse_dynamics(tree, q[7:], w0, g, v[6:], joints, outside)
    right = m.hybrid_dynamics(q, v, joints, wrenches=acting)
    assert error(base, np.concatenate([S @ right[0][3:], R @ right[0][:3]])) < 1e-11
    assert error(tau, right[1]) < 1e-11


def test_robots_without_a_place_in_the_tables() -> None:
    with pytest.raises(rf.ModelError, match="'joint3' does not turn about its axis only"):
        tree_of(rf.load("stanford_arm"))
    with pytest.raises(rf.ModelError, match="the base is fixed"):
        book_floating.inverse_dynamics(
            general_tree([1]), [0.0], Vec3(0, 0, 0), Vec3(0, 0, 0), [0.0], [0.0]
        )
    with pytest.raises(rf.StateError, match="v has 2 entries; the robot takes 1"):
        book_fixed.inverse_dynamics(general_tree([1]), [0.0], [0.0, 1.0], [0.0])
    with pytest.raises(rf.RamifyError, match="joints of 4 axes"):
        general_tree([4])
    with pytest.raises(rf.ModelError, match="quadruped has a floating base"):
        rf.load("quadruped").op_count("denoc_inverse", how="written")


def test_solving_a_symmetric_system() -> None:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(6, 6))
    A = A @ A.T
    b = rng.normal(size=6)
    np.testing.assert_allclose(
        solve_symmetric(A.tolist(), b.tolist()), np.linalg.solve(A, b), rtol=1e-9
    )


# ---- counts ----


def cost(axes: list[int], name: Any) -> Any:
    count = run(general_tree(axes, floating="floating" in name), name)[0]
    return np.array([count.mul, count.add])


def test_counts_per_joint() -> None:
    """Tables 6.10 and 7.5: a link on one axis, and each further axis of its joint."""
    right = {
        "denoc_inverse": ((94, 82), (22, 14)),  # as published
        "denoc_forward": ((135, 131), (63, 53)),  # as published
        "denoc_floating_inverse": ((164, 155), (62, 42)),  # published: 164M 156A, 62M 46A
        "denoc_floating_forward": ((209, 201), (77, 62)),  # published: 209M 201A, 70M 59A
    }
    for name, (link, axis) in right.items():
        chain = cost([1, 1, 1, 1], name)
        assert tuple(cost([1, 1, 1, 1, 1], name) - chain) == link
        for more in ([1, 2, 1, 1], [1, 1, 1, 2]):
            assert tuple(cost(more, name) - chain) == axis
        assert tuple(cost([1, 1, 3, 1], name) - chain) == tuple(2 * np.array(axis))


@pytest.mark.parametrize(
    ("slides", "composite", "articulated"),
    [(False, (34, 31), (64, 63)), (True, (31, 30), (60, 62))],
)
def test_mass_matrices_seen_from_the_carrier(
    slides: bool, composite: tuple[int, int], articulated: tuple[int, int]
) -> None:
    """A.6 and A.7 for a joint that turns, and for one that slides: theta is a constant then, m b is
    not, and what the free joint leaves of the articulated mass matrix has other zeros.
    """

    def numbers() -> tuple[Tally, Any]:
        tally = Tally()
        return tally, lambda: tally.number(0.37)

    def symmetric(n: Any, flat: bool = False) -> Sym3:
        return Sym3(
            n(), n(), *((0.0,) if flat else (n(),)), n(), *((0.0,) * 2 if flat else (n(), n()))
        )

    alpha, still = Turn(math.cos(0.7), math.sin(0.7)), Turn(math.cos(0.4), math.sin(0.4))
    tally, n = numbers()
    joint = (still, n()) if slides else (Turn(n(), n()), 0.3)
    body = RigidInertia(2.0, Vec3(n(), n(), n()), symmetric(n))
    composite_x(composite_z(body, *joint), alpha, 0.25)
    assert (tally.mul, tally.add) == composite
    tally, n = numbers()
    joint = (still, n()) if slides else (Turn(n(), n()), 0.3)
    rows = [n() for _ in range(6)]
    F = (
        Mat3(*rows, 0.0, 0.0, 0.0)
        if slides
        else Mat3(*rows[:2], 0.0, *rows[2:4], 0.0, *rows[4:], 0.0)
    )
    left = Hat(symmetric(n, not slides), F, symmetric(n, slides))
    articulated_x(articulated_z(left, *joint), alpha, 0.25)
    assert (tally.mul, tally.add) == articulated


def test_the_steps_add_up_and_differences_have_reasons() -> None:
    for name in (
        "denoc_inverse",
        "denoc_forward",
        "denoc_floating_inverse",
        "denoc_floating_forward",
    ):
        steps = book_step_table(name)  # type: ignore[arg-type]
        ends = [i for i, x in enumerate(steps) if x.step.startswith("**")]
        for start, end in ((0, ends[0]), (ends[0] + 1, ends[1])):
            assert (
                tuple(sum(x.counted[i] for x in steps[start:end]) for i in (0, 1))
                == steps[end].counted
            )
        for x in steps:
            assert x.why or x.published in (None, x.counted), x
        boundary = [sum(x.counted[i] for x in steps[ends[1] + 1 :]) for i in (0, 1)]
        links = 5 if "floating" in name else 4
        assert tuple(cost([1] * 5, name)) == tuple(
            links * np.array(steps[ends[0]].counted) + boundary
        )


def test_no_choice_of_rows_gives_the_published_first_link() -> None:
    """The page says that 19M 8A is not a sum of rows of table 6.9, and 11M 8A is."""
    steps = book_step_table("denoc_forward")
    rows = [x.counted for x in steps[: [x.step for x in steps].index("**a link**")]]
    sums = {
        (sum(x[0] for x in some), sum(x[1] for x in some))
        for k in range(14)
        for some in itertools.combinations(rows, k)
    }
    assert (19, 8) not in sums
    assert (11, 8) in sums


def test_published_totals() -> None:
    """The totals of tables 6.11, 6.12, 7.6 and 7.7, mended."""
    totals = {
        ("inverse", (4, 0, 0)): (295, 253), ("inverse", (6, 0, 0)): (483, 417), ("inverse", (2, 4, 6)): (615, 501),
        ("forward", (4, 0, 0)): (424, 401), ("forward", (6, 0, 0)): (694, 663), ("forward", (2, 4, 6)): (1072, 981),
        ("floating inverse", (2, 4, 6)): (1416, 1278), ("floating inverse", (4, 8, 0)): (1620, 1498),
        ("floating inverse", (12, 0, 0)): (2028, 1938),
        ("floating forward", (2, 4, 6)): (1734, 1632), ("floating forward", (4, 8, 0)): (2012, 1916),
        ("floating forward", (12, 0, 0)): (2568, 2484),
    }  # fmt: skip
    for (task, joints), right in totals.items():
        (row,) = (x for x in PUBLISHED if x.task == task and x.who == BOOK)
        assert row.at(joints) == right
    other = {  # tables I and II of Lin for two, six and eight joints
        ("inertia matrix", "Walker, Orin, in Lin 1991"): ((76, 74), (640, 538), (1054, 866)),
        ("inertia matrix", "Renaud, in Lin 1991"): ((31, 24), (553, 416), (976, 720)),
        ("inertia matrix", "Lin 1988"): ((23, 19), (651, 545), (1387, 1162)),
        ("inertia matrix", "Fijany, Bejczy 1989"): ((74, 58), (680, 538), (1037, 826)),
        ("inertia matrix", "Lin 1991"): ((34, 32), (524, 380), (895, 626)),
        ("bias vector", "Khalil, Kleinfinger 1987"): ((73, 62), (477, 422), (679, 602)),
        ("bias vector", "Balafoutis et al. 1988"): ((117, 96), (489, 420), (675, 582)),
        ("bias vector", "Lin 1991, beside the matrix"): ((64, 38), (486, 330), (847, 584)),
    }
    for (task, who), figures in other.items():
        (row,) = (x for x in PUBLISHED if x.task == task and x.who == who)
        assert tuple(row.at((n, 0, 0)) for n in (2, 6, 8)) == figures
    others = {
        "Lilly, Orin 1991": (2377, 1855),
        "Featherstone 1983": (2190, 1915),
        "Saha 1999": (2077, 1955),
    }
    for who, right in others.items():
        (row,) = (x for x in PUBLISHED if x.task == "forward" and x.who == who)
        assert row.at((12, 0, 0)) == right


def test_compiled_counts_are_below_all_that_is_published() -> None:
    for robot, joints in SEED_ROBOTS:
        for row in compare(rf.load(robot), joints=joints):
            assert row.below_all
            assert row.saved > 0.1


def test_formulas_as_they_are_printed() -> None:
    printed = {(x.task, x.who): (str(x.mul), str(x.add)) for x in PUBLISHED}
    assert printed["bias vector", "Lin 1991, beside the matrix"] == ("12½n² + 5½n + 3", "9n² + n")
    assert printed["inertia matrix", "Lin 1988"] == (
        "1⅙n³ + 16½n² − 35⅔n + 19",
        "n³ + 13½n² − 28½n + 14",
    )


def test_robots_that_published_formulas_are_not_for() -> None:
    reasons = {
        "four_bar": "closed loops",
        "stanford_arm": "'joint3' is prismatic",
        "gripper": "",
        "quadruped": "",
        "redysim_rp": "turn",
    }
    for robot, reason in reasons.items():
        why = why_not_comparable(rf.load(robot))
        assert reason in why
        assert bool(reason) == bool(why)
    with pytest.raises(rf.ModelError, match="four_bar: closed loops"):
        compare(rf.load("four_bar"))


def test_written_counts_of_every_algorithm() -> None:
    """On any robot; a general robot costs more than the same text compiled for the robot at hand,
    and does not know its numbers.
    """
    for robot in ("planar_3r", "stanford_arm", "quadruped"):
        m = rf.load(robot)
        for name in ALGORITHMS:
            if ALGORITHMS[name].extras[:1] == ("target",):  # those of one body
                continue
            written, compiled = m.op_count(name, how="written"), m.op_count(name)
            assert written.mul + written.add > compiled.mul + compiled.add + compiled.div, name
            assert written.div == 0
    three, arm = rf.load("planar_3r"), rf.load("redysim_3_link")
    assert three.op_count("inverse_dynamics", how="written") == arm.op_count(
        "inverse_dynamics", how="written"
    )
    ball = rf.load("quadruped", base="free")
    assert ball.op_count("energy", how="written").mul > 0


def test_written_counts_of_formulations_by_robot() -> None:
    m = rf.load("kuka_kr5")
    for name, row in FORMULATIONS.items():
        if row.of is not None and "floating" not in name:
            assert m.op_count(name, how="written") == general_count(name, 6)
    with pytest.raises(rf.RamifyError, match="nothing is called 'kane'"):
        m.op_count("kane", how="written")
    with pytest.raises(rf.RamifyError, match="'compiled' or 'written'"):
        m.op_count("bias", how="guessed")  # type: ignore[arg-type]


def test_growth(tmp_path: Path) -> None:
    from ramify.view.formulation_plots import chains, growth, plot_growth

    assert chains((1, 2, 3)) == [(k, 2 * k, 3 * k) for k in range(1, 6)]
    n, counted = growth("denoc_inverse", (1, 2, 3))
    assert n == [6, 12, 18, 24, 30]
    assert np.ptp(np.diff(counted)) == 0  # linear in n
    plot_growth(tmp_path / "growth.svg")
    with pytest.raises(rf.RamifyError, match=r"nowhere.g\.svg: there is no directory"):
        plot_growth(tmp_path / "nowhere" / "g.svg")
    assert "counted here" in (tmp_path / "growth.svg").read_text(encoding="utf-8")
