"""Closed systems given whole: which joints are cut, that the choice changes nothing, and what
mistakes look like.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms import consistent

import ramify as rf
from ramify.cli import main
from ramify.dynamics.block_order import Block, blocks
from ramify.loops.drawing import as_svg, spanning_tree_text
from ramify.loops.survey import survey
from ramify.model.mechanism_graph import Edge, cut_at, least_cdof

LEG = [  # section 8.4, figure 8.7: bodies 1 to 7, joints 1 to 10
    (None, "1"), (None, "2"), ("2", "3"), (None, "4"), ("4", "5"), ("4", "6"), ("6", "7"), ("1", "3"), ("3", "5"), ("7", "5"),
]  # fmt: skip
BODIES = list("1234567")


def leg(driven: str = "1") -> list[Edge]:
    return [Edge(f"{k}", *ends, actuated=f"{k}" == driven) for k, ends in enumerate(LEG, start=1)]


# ---- the cut ----


def test_the_leg_is_cut_where_the_book_cuts_it() -> None:
    tree = least_cdof(BODIES, leg())
    assert [edge.name for edge in tree.cut] == ["8", "9", "10"]
    assert {way.body: (way.parent, way.cdof) for way in tree.ways} == {
        "1": (None, 1), "2": (None, 1), "3": ("2", 2), "4": (None, 1), "5": ("4", 2), "6": ("4", 2), "7": ("6", 3),
    }  # fmt: skip


def test_joints_of_many_freedoms_make_a_way_long() -> None:
    """A ball joint counts three: the body hangs on the longer chain of pins."""
    edges = [Edge("ball", None, "a", "ball", 3), Edge("pin1", None, "b"), Edge("pin2", "b", "a")]
    tree = least_cdof(["a", "b"], edges)
    assert [edge.name for edge in tree.cut] == ["ball"]
    assert tree.cdof("a") == 2


def test_driven_joints_are_not_chosen() -> None:
    for k in range(1, 11):
        assert f"{k}" not in [edge.name for edge in least_cdof(BODIES, leg(driven=f"{k}")).cut]
    given = cut_at(BODIES, leg(driven="9"), ["8", "9", "10"])
    assert [edge.name for edge in given.cut] == ["8", "9", "10"]


def test_every_choice_that_leaves_a_tree_is_accepted() -> None:
    from itertools import combinations

    trees = 0
    for cut in combinations([f"{k}" for k in range(2, 11)], 3):
        try:
            tree = cut_at(BODIES, leg(), cut)
        except rf.ModelError:
            continue
        trees += 1
        assert {edge.name for edge in tree.cut} == set(cut)
        assert len(tree.ways) == 7
    laplacian = np.zeros(
        (8, 8)
    )  # Kirchhoff counts the spanning trees that keep joint 1: merge bodies 0 and 1
    merge = {None: 0, "1": 0} | {f"{k}": k - 1 for k in range(2, 8)}
    for a, b in LEG[1:]:
        i, j = merge[a], merge[b]
        laplacian[[i, j], [i, j]] += 1.0
        laplacian[[i, j], [j, i]] -= 1.0
    assert trees == round(np.linalg.det(laplacian[1:7, 1:7]))


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (["8", "9"], "leave a loop closed through '10': this mechanism has 3 independent loops"),
        (["4", "5", "9"], "body '6' hangs on nothing|body '4' hangs on nothing"),
        (["8", "9", "12"], "'12', which is not a joint"),
        (["8", "9", "9"], "twice"),
    ],
)
def test_cuts_that_leave_no_tree_are_refused(cut: list[str], message: str) -> None:
    with pytest.raises(rf.ModelError, match=message):
        cut_at(BODIES, leg(), cut)


def test_graphs_that_are_none() -> None:
    with pytest.raises(rf.ModelError, match="joins 'a' to itself"):
        least_cdof(["a"], [Edge("j", "a", "a")])
    with pytest.raises(rf.ModelError, match="'b', which is not a body"):
        least_cdof(["a"], [Edge("j", None, "b")])
    with pytest.raises(rf.ModelError, match="body 'b' hangs on nothing"):
        least_cdof(["a", "b"], [Edge("j", None, "a")])
    with pytest.raises(rf.ModelError, match="two joints are named 'j'"):
        least_cdof(["a"], [Edge("j", None, "a"), Edge("j", None, "a")])


def test_drawings_show_every_body_and_joint() -> None:
    tree = least_cdof(BODIES, leg())
    text, svg = spanning_tree_text(tree), as_svg(tree)
    assert "6 ✂ 5" not in text
    assert "7 ✂ 5  [10: revolute]" in text
    assert "└─ 7  [7: revolute; CDOF 3]" in text
    assert svg.count("<circle") == 8
    assert svg.count("<line") == 7
    assert svg.count("<path") == 3
    hostile = least_cdof(["<script>"], [Edge("&", None, "<script>")])
    assert "<script>" not in as_svg(hostile)


def test_deep_chains_are_drawn() -> None:
    names = [f"b{k}" for k in range(1500)]
    edges = [Edge(f"j{k}", names[k - 1] if k else None, name) for k, name in enumerate(names[:400])]
    assert spanning_tree_text(least_cdof(names[:400], edges)).count("\n") == 400
    assert as_svg(least_cdof(names[:400], edges)).count("<circle") == 401


# ---- blocks ----


def test_blocks_come_in_the_order_of_solution() -> None:
    pattern = [[2, 3], [2, 3, 4, 5], [4, 5], [4, 5], [0, 1, 2, 3], [0, 1, 2, 3]]
    assert blocks(pattern, 6) == (
        Block((2, 3), (4, 5)),
        Block((0, 1), (2, 3)),
        Block((4, 5), (0, 1)),
    )
    assert blocks([[0, 1]], 2) is None
    assert blocks([[0], [0]], 2) is None
    assert blocks([], 0) == ()


@given(st.integers(0, 10_000))
def test_blocks_solve_a_system_in_their_order(seed: int) -> None:
    """Each block is square, unknowns of later blocks do not appear in it, none could be split."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    pattern = [
        sorted({int(k) for k in rng.integers(0, n, size=int(rng.integers(1, 4)))}) for _ in range(n)
    ]
    A = np.array([[rng.normal() if k in row else 0.0 for k in range(n)] for row in pattern])
    found = blocks(pattern, n)
    assert (found is None) == (np.linalg.matrix_rank(A) < n)
    if found is None:
        return
    b, x, known = rng.normal(size=n), np.zeros(n), set()
    for block in found:
        rows, own = list(block.equations), list(block.unknowns)
        assert {k for i in rows for k in pattern[i]} <= known | set(own)
        x[own] = np.linalg.solve(A[np.ix_(rows, own)], b[rows] - A[rows] @ x)
        known.update(own)
    np.testing.assert_allclose(A @ x, b, atol=1e-6 * np.linalg.cond(A))


def test_long_systems_are_sorted_too() -> None:
    n = 3000
    assert len(blocks([[i, i + 1] if i + 1 < n else [i] for i in range(n)], n) or ()) == n
    ring = blocks([[i, (i + 1) % n] for i in range(n)], n)
    assert ring is not None
    assert len(ring) == 1


# ---- whole mechanisms ----


def three_rrr() -> rf.Mechanism:
    made = rf.Mechanism("whole", gravity=(0, -9.81, 0))
    for k, pivot in enumerate(((0, 0, 0), (1, 0, 0), (0.5, np.sqrt(0.75), 0)), start=1):
        made.body(f"crank{k}", mass=3, com=(0.2, 0, 0), inertia=(2.5e-5, 0.04, 0.04))
        made.body(f"coupler{k}", mass=4, com=(0.3, 0, 0), inertia=(3.3e-5, 0.12, 0.12))
        made.joint(f"crank{k}", (None, pivot), f"crank{k}")
        made.joint(f"coupler{k}", (f"crank{k}", (0.4, 0, 0)), f"coupler{k}", actuated=False)
    made.body("platform", mass=8, com=(0.2, 0.1155, 0), inertia=(0.08, 0.08, 0.16))
    corners = ((0, 0, 0), (0.4, 0, 0), (0.2, 0.2 * np.sqrt(3), 0))
    for k, corner in enumerate(corners, start=1):
        made.joint(
            f"pin{k}",
            (f"coupler{k}", (0.6, 0, 0)),
            ("platform", corner),
            actuated=False,
            planar=True,
        )
    return made


def driving(model: rf.Model, q: Any, v: Any, a: Any) -> dict[str, float]:
    tau = model.kernel("inverse_dynamics")(q, v, a)[0]
    return {name: float(x) for name, x in zip(model.velocities, tau, strict=True) if x}


@pytest.mark.parametrize(
    "cut", [None, ["coupler2", "coupler3"], ["pin1", "coupler3"], ["coupler1", "pin2"]]
)
def test_where_it_is_cut_changes_nothing(cut: list[str] | None) -> None:
    """The same torques from every tree; the second one is the book's (section 8.5)."""
    shipped = rf.load("three_rrr")
    q, v, a = consistent(shipped, 2)
    model = three_rrr().model(cut)
    pose, mine = shipped.tree.kinematics(q), {}
    angle = {
        b.name: np.arctan2(R[1, 0], R[0, 0])
        for b, R in zip(shipped.bodies, pose.rotation, strict=True)
    } | {None: 0.0}
    for body in model.bodies:
        parent = model.bodies[body.parent].name if body.parent >= 0 else None
        turned = (angle[body.name] - angle[parent]) * (1.0 if body.joint.axis[2] > 0.0 else -1.0)
        mine[body.joint.name] = turned
    cranks = {f"crank{k}": float(q[shipped.joint_slice(f"crank{k}")][0]) for k in (1, 2, 3)}
    rates, second = (
        {name: float(x[shipped.joint_slice(name)][0]) for name in cranks} for x in (v, a)
    )
    state = model.assemble(cranks, rates=rates, accelerations=second, guess=mine)
    expected = driving(shipped, q, v, a)
    found = driving(model, *state)
    assert set(found) == set(expected)
    for name in expected:
        assert found[name] == pytest.approx(expected[name], rel=1e-9)


def test_the_choice_of_the_book_makes_the_platform_determinate() -> None:
    found = survey(
        three_rrr().near(crank1=2.0, crank2=-1.6, crank3=0.5).model(["coupler2", "coupler3"])
    )
    assert [
        (s.equations, len(s.torques) + len(s.multipliers), s.determinate)
        for s in found.plan.subsystems
    ] == [
        (5, 5, True),
        (1, 3, False),
        (1, 3, False),
    ]
    assert set(found.least) == {"pin2", "pin3"}


def test_a_joint_may_be_walked_either_way() -> None:
    """Listed from child to parent, a revolute and a prismatic joint keep their coordinates."""
    made = rf.Mechanism("reversed", gravity=(-9.81, 0, 0))
    for name, mass in (("crank", 1.0), ("rod", 1.0), ("slider", 0.5)):
        moment = 0.125 / 12 if name == "slider" else 1 / 12
        made.body(
            name,
            mass=mass,
            com=(0.0 if name == "slider" else 0.5, 0, 0),
            inertia=(1e-5, moment, moment),
        )
    turned = rf.Frame(np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), np.zeros(3))  # Rx(90 deg)
    made.joint("crank", "crank", None)
    made.joint("rod", "rod", ("crank", (1, 0, 0)), actuated=False)
    made.joint("slide", "slider", (None, turned), "prismatic", actuated=False)
    made.joint("pin", ("slider", turned.inverse()), ("rod", (1, 0, 0)), actuated=False, planar=True)
    model = made.near(crank=-1.2, slide=1.8).model(["pin"])
    shipped = rf.load("slider_crank", rod=1.0)
    assert model.velocities == ("crank", "rod", "slide")
    state = shipped.assemble(
        {"crank": -1.2},
        rates={"crank": 0.7},
        accelerations={"crank": -0.4},
        guess={"rod": 0.2, "slider": 1.8},
    )
    mine = model.assemble(
        {"crank": -1.2}, rates={"crank": 0.7}, accelerations={"crank": -0.4}, guess=state.q
    )
    np.testing.assert_allclose(mine.q, state.q, atol=1e-10)
    np.testing.assert_allclose(
        driving(model, *mine)["crank"], driving(shipped, *state)["crank"], rtol=1e-10
    )


# ---- files ----


def whole_file(root: Path) -> str:
    return (root / "src" / "ramify" / "robots" / "hoeken_four_bar.yaml").read_text()


def test_a_file_may_choose_its_cut(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(whole_file(root) + "cut: [coupler]\n")
    model, shipped = rf.load(path), rf.load("hoeken_four_bar")
    assert [loop.name for loop in shipped.loops] == ["pin"]
    assert [loop.name for loop in model.loops] == ["coupler"]
    assert model.velocities == ("crank", "rocker", "pin")
    q, v, a = consistent(shipped, 4)
    guess = {"rocker": q[1], "pin": q[1] + q[2] - q[0]}
    values = [{"crank": float(x[0])} for x in (q, v, a)]
    state = model.assemble(values[0], rates=values[1], accelerations=values[2], guess=guess)
    assert driving(model, *state)["crank"] == pytest.approx(
        driving(shipped, q, v, a)["crank"], rel=1e-9
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cut", "cut: [nothing]", r":\d+:\d+: cut: cut names 'nothing'"),
        (
            "first: {link: rocker",
            "first: {link: rockr",
            r"joints\.2\.first\.link: no link is named 'rockr'",
        ),
        (
            "    first: {link: crank,",
            "    first: {link: coupler,",
            r":\d+:\d+: joints\.3: joint 'pin' joins 'coupler' to itself",
        ),
        (
            "joint: revolute, second",
            "joint: revolut, second",
            r"joints\.0\.joint\.type: no joint type is called 'revolut'",
        ),
        (
            "    mass: 3\n",
            "    mass: 3\n    parent: crank\n",
            r"links\.1\.parent .*does not belong in a link where the file lists joints",
        ),
        (
            "planar: true",
            "planr: true",
            r"joints\.3\.joint\.planr: unknown key; did you mean 'planar'",
        ),
    ],
)
def test_mistakes_are_told_with_their_place(
    old: str, new: str, message: str, tmp_path: Path, root: Path
) -> None:
    text = whole_file(root)
    path = tmp_path / "wrong.yaml"
    path.write_text(text + new + "\n" if old == "cut" else text.replace(old, new))
    with pytest.raises(rf.ModelError, match=message):
        rf.load(path)


# ---- the command ----


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0)


def test_the_command_tells_it_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    drawing = tmp_path / "leg.svg"
    assert run("loops", "robotic_leg", "--svg", str(drawing)) == 0
    said = capsys.readouterr().out
    for words in (
        "3 loops, 6 constraints of rank 6 on 7 velocities: mobility 1",
        "lever ✂ link",
        "then crank_pin.x, crank_pin.y",
    ):
        assert words in said
    assert drawing.read_text().startswith("<svg")


def test_the_command_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("loops", "four_bar", "--at", "crank=0.5", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["rank"], data["mobility"], data["redundant"], data["cut"]) == (2, 1, [], ["pin"])
    assert data["q"]["crank"] == 0.5
    assert data["gap"] < 1e-15
    assert [s["determinate"] for s in data["subsystems"]] == [False, True]
    assert run("loops", "four_bar", "--q", "0", "1", "4.3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["gap"] == pytest.approx(1e-3, rel=2.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gripper",), "has no loops"),
        (("four_bar", "--at", "crank"), "give NAME=NUMBER"),
        (("four_bar", "--q", "0", "1"), "--q has 2 numbers"),
        (("four_bar", "--at", "crank=0", "--q", "0", "1", "2"), "give one of them"),
    ],
)
def test_the_command_refuses(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("loops", *words) == 1
    assert message in capsys.readouterr().err


def test_inverse_and_forward_dynamics_keep_the_loops(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    csv = tmp_path / "tau.csv"
    assert (
        run(
            "id", "four_bar", "--steps", "10", "--to", "1", "--no-plot", "--out", str(csv), "--json"
        )
        == 0
    )
    data, model = json.loads(capsys.readouterr().out), rf.load("four_bar")
    assert [c["end"] for c in data["coordinates"]] == pytest.approx(
        model.assemble({"crank": 1.0}).q.tolist(), abs=1e-12
    )
    assert len(csv.read_text().splitlines()) == 12
    assert run("fd", "four_bar", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["q"] == pytest.approx([0.0, 0.9844, 4.3144], abs=5e-5)
    assert data["a"] == pytest.approx(
        model.forward_dynamics(data["q"], np.zeros(3), np.zeros(3)).tolist()
    )
    assert run("fd", "four_bar", "--q", "0") == 1
    assert "opens the loops of 'four_bar': pin.x by 0.103 m" in capsys.readouterr().err
