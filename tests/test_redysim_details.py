"""ReDySim's variables as a robot, entry by entry, against what is computed here from the same numbers:
frames, moments of inertia, contact points, shapes, starts, drives, hinges and the words of the report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.files.import_report import ImportReport
from ramify.files.redysim.redysim_loops import (
    PinClosure,
    PlaneTree,
    by_position,
    freedom,
    jacobian_function,
    loops_of_pins,
    pin_closures,
    unplaced,
)
from ramify.files.redysim.redysim_robot import from_variables
from ramify.files.redysim.redysim_variables import RedysimVariables, dialect

FIXED: dict[str, Any] = {
    "n": 3, "dof": 3, "type": 0, "alp": [0.2, -0.5, 1.1], "a": [0.1, 0.4, 0.3], "b": [0.05, -0.2, 0.15],
    "th": [0.3, 0.7, -0.4], "bt": [0, 1, 1], "r": [1, 0, 1], "aj": [1, 0, 1],
    "dx": [0.11, 0.12, 0.13], "dy": [0.21, 0.22, 0.23], "dz": [0.31, 0.32, 0.33], "m": [2.0, 3.0, 4.0],
    "g": [0.5, -9.0, 1.5], "al": [0.6, 0.7, 0.8],
    "Icxx": [1.1, 1.2, 1.3], "Icyy": [1.4, 1.5, 1.6], "Iczz": [1.7, 1.8, 1.9],
    "Icxy": [0.01, 0.02, 0.03], "Icyz": [0.04, 0.05, 0.06], "Iczx": [0.07, 0.08, 0.09],
}  # fmt: skip
FLOATING = {key: x for key, x in FIXED.items() if key not in ("th", "r", "type", "dof", "aj")} | {
    "nq": 1, "bt": [0, 1, 2], "alt": [0.45, 0.8, 0.5], "alp": [0, -0.5, 1.1], "a": [0, 0.4, 0.3], "b": [0, -0.2, 0.15],
}  # fmt: skip
LEGGED = FLOATING | {"g_prop": [2000.0, 30.0, 4.5, 0.7, 1000.0, 2, 1, 3]}


def words(m: Any) -> str:
    return str(m.metadata["report"])


def row(alpha: float, a: float, b: float, theta: float) -> np.ndarray[Any, Any]:
    """The pose (4, 4) of a row: Rx(alpha), then a along x, then Rz(theta) and b along z."""
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array([
        [ct, -st, 0, a], [ca * st, ca * ct, -sa, -b * sa], [sa * st, sa * ct, ca, b * ca], [0, 0, 0, 1]
    ])  # fmt: skip


def test_the_robot_of_a_fixed_file() -> None:
    m = rf.Model.of(from_variables(FIXED, "mine"))
    assert m.name == "mine"
    close(m.gravity, FIXED["g"], 0.0)
    assert [joint.kind for joint in m.joints] == ["revolute", "prismatic", "revolute"]
    assert [joint.actuated for joint in m.joints] == [True, False, True]
    assert [joint.name for joint in m.joints] == ["joint1", "joint2", "joint3"]
    q = np.array([0.9, -0.6, 0.35])
    poses = [row(0.2, 0.1, 0.05, q[0])]
    poses.append(poses[0] @ row(-0.5, 0.4, q[1], 0.7))
    poses.append(poses[0] @ row(1.1, 0.3, 0.15, q[2]))
    for k, (body, pose) in enumerate(zip(m.bodies, poses, strict=True)):
        assert body.name == f"link{k + 1}"
        found = m.pose(q, body.name)
        close(found.rotation, pose[:3, :3], 1e-12, 1e-14)
        close(found.position, pose[:3, 3], 1e-12, 1e-14)
        assert body.mass == FIXED["m"][k]
        close(body.com, [FIXED[key][k] for key in ("dx", "dy", "dz")], 0.0)
        xx, yy, zz, xy, yz, zx = (
            FIXED[f"Ic{key}"][k] for key in ("xx", "yy", "zz", "xy", "yz", "zx")
        )
        close(body.inertia, [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]], 0.0)
        (shape,) = body.shapes  # a rod from the origin to twice the mass centre
        size = float(np.linalg.norm(body.com))
        close(shape.size, [0.12 * size, 2.0 * size], 1e-12)
        close(shape.frame.position, body.com, 1e-14)
        close(shape.frame.rotation[:, 2], body.com / size, 1e-12)
        assert body.points == ()
    assert m.metadata["dh"] == {
        "link1": (0.2, 0.1, 0.05, 0.0), "link2": (-0.5, 0.4, 0.0, 0.7), "link3": (1.1, 0.3, 0.15, 0.0),
    }  # fmt: skip
    assert m.metadata["redysim"] == {
        "dof": 3.0, "type": 0.0, "th": (0.3, 0.7, -0.4), "b": (0.05, -0.2, 0.15),
    }  # fmt: skip
    (start,) = m.keyframes
    assert (start.name, start.q, start.v) == ("start", (0.3, -0.2, -0.4), ())
    turning = from_variables(FIXED | {"r": [1, 1, 1]})
    assert "b" not in turning.metadata["redysim"]
    plain = rf.Model.of(from_variables(FIXED | {"th": [0, 0, 0], "r": [1, 1, 1]}))
    assert plain.keyframes == ()
    assert "th, b" not in words(plain)


@pytest.mark.parametrize(
    ("com", "length", "direction", "place"),
    [
        ([0.0, 0.0, 0.0], 0.6, [1.0, 0.0, 0.0], [0.3, 0.0, 0.0]),
        ([0.0, -0.2, 0.0], 0.4, [0.0, -1.0, 0.0], [0.0, -0.2, 0.0]),
    ],
)
def test_rods_of_links_with_and_without_an_offset(
    com: list[float], length: float, direction: list[float], place: list[float]
) -> None:
    (dx, dy, dz) = ([x, 0.1, 0.1] for x in com)
    (shape,) = from_variables(FIXED | {"dx": dx, "dy": dy, "dz": dz}).bodies[0].shapes
    close([*shape.size], [0.06 * length, length], 1e-12)
    close(shape.frame.position, place, 1e-12, 1e-15)
    close(shape.frame.rotation[:, 2], direction, 1e-12, 1e-15)


def test_a_link_without_extent_or_mass() -> None:
    nowhere = {key: [0.0, 0.1, 0.1] for key in ("dx", "dy", "dz", "al")}
    (ball,) = from_variables(FIXED | nowhere).bodies[0].shapes
    assert (ball.kind, ball.size) == ("sphere", (0.02,))
    moments = {
        key: [0.0, *FIXED[key][1:]] for key in ("Icxx", "Icyy", "Iczz", "Icxy", "Icyz", "Iczx")
    }
    light = from_variables(FIXED | nowhere | moments | {"m": [0.0, 3.0, 4.0]}, merge=False)
    assert light.bodies[0].shapes == ()


def test_the_robot_of_a_floating_file() -> None:
    m = rf.Model.of(from_variables(FLOATING))
    base = m.joints[0]
    assert (base.kind, base.sequence, base.actuated, base.name) == (
        "free_euler",
        "ZXY",
        False,
        "base",
    )
    assert [body.name for body in m.bodies] == ["base", "link2", "link3"]
    q = np.array([0.1, 0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8])
    cz, sz, cx, sx, cy, sy = (f(x) for x in q[3:6] for f in (np.cos, np.sin))
    Rz = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    Rx = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    Ry = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    trunk = np.eye(4)
    trunk[:3, :3], trunk[:3, 3] = Rz @ Rx @ Ry, q[:3]
    second = trunk @ row(-0.5, 0.4, -0.2, q[6])
    for name, pose in (
        ("base", trunk),
        ("link2", second),
        ("link3", second @ row(1.1, 0.3, 0.15, q[7])),
    ):
        close(m.pose(q, name).position, pose[:3, 3], 1e-12, 1e-14, name)
        close(m.pose(q, name).rotation, pose[:3, :3], 1e-12, 1e-14, name)
    for k, body in enumerate(m.bodies):  # a rod from alt - al to alt
        (shape,) = body.shapes
        close(shape.size, [0.06 * FIXED["al"][k], FIXED["al"][k]], 1e-12)
        close(shape.frame.position, [FLOATING["alt"][k] - 0.5 * FIXED["al"][k], 0, 0], 1e-12, 1e-15)
        close(shape.frame.rotation[:, 2], [1, 0, 0], 1e-12, 1e-15)
        assert body.points == ()
    assert m.keyframes == ()
    assert "assumed: alt" not in words(m)
    assert "the row of the base is not used" not in words(m)
    for key in ("alp", "a", "b"):
        other = from_variables(FLOATING | {key: [0.3, *FLOATING[key][1:]]})
        assert "alp, a, b: the row of the base is not used, as in ReDySim" in words(other)


def test_feet_of_a_legged_file() -> None:
    """Links without children have a tip, and a heel where they reach to both sides of their joint."""
    m = from_variables(LEGGED | {"bt": [0, 1, 1]})
    assert dict(m.bodies[0].points) == {}
    tip, heel = m.bodies[2].points
    assert tip == ("link3_tip", (0.5, 0.0, 0.0))
    assert heel[0] == "link3_heel"
    close(heel[1], (0.5 - 0.8, 0.0, 0.0), 1e-12)
    names = dict(m.bodies[1].points)
    close(names["link2_tip"], (0.8, 0.0, 0.0), 1e-12)
    close(names["link2_heel"], (0.8 - 0.7, 0.0, 0.0), 1e-12)
    one = from_variables(LEGGED | {"alt": [0.45, 0.7, 0.8]})
    assert [dict(body.points) for body in one.bodies] == [{}, {}, {"link3_tip": (0.8, 0.0, 0.0)}]
    book = from_variables({key: x for key, x in LEGGED.items() if key != "alt"})
    close(dict(book.bodies[2].points)["link3_tip"], (0.13 + 0.4, 0, 0), 1e-12)
    assert "assumed: alt: missing: every link reaches as far to both sides" in words(book)
    assert m.metadata["ground"] == {
        "stiffness": 2000.0, "damping": 30.0, "speed_limit": 4.5, "friction": 0.7,
        "horizontal_damping": 1000.0, "axes": (2, 1, 3),
    }  # fmt: skip
    assert "g_prop: the ground is not part of the model" in words(m)
    assert "g_prop" not in words(from_variables(FLOATING))


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (None, "R = Rz(phi) Rx(theta) Ry(psi)"),
        ("free_euler", "R = Rz(phi) Rx(theta) Ry(psi)"),
        ("free", "q starts with x, y, z and a unit quaternion"),
        ("planar", "q starts with [x y phi]"),
        ("fixed", "it is fixed to the world"),
    ],
)
def test_bases_of_a_floating_file(base: str | None, said: str) -> None:
    initials = (
        "function [y0, ti, tf, incr]=initials()\n[n nq]=inputs();\n"
        "q=[1; 2; 3; 0.4; 0.5; 0.6];\ndq=[7; 8; 9; 1.1; 1.2; 1.3];\nth=[0.7; 0.8];\ndth=[0.9; 1.0];\n"
        "ti=0; tf=2.5; incr=.01;\ny0=[q; th; dq; dth; 0];"
    )
    flat = FLOATING | {"nq": 0, "alp": [0, 0, 0], "b": [0, 0, 0]}
    m = rf.Model.of(from_variables(flat, base=base, beside={"initials.m": initials}))
    assert said in words(m)
    assert ("ReDySim integrates all six coordinates" in words(m)) == (base is None)
    assert "ends at 2.5 s" in words(m)
    assert m.metadata["redysim"]["tf"] == 2.5
    if base == "free":
        assert m.keyframes == ()
        assert (
            "initials.m: its state has angles of the base and is not that of base='free'"
            in words(m)
        )
        return
    (start,) = m.keyframes
    of_base = {"planar": [0, 1, 3], "fixed": []}.get(base or "", list(range(6)))
    q, v = [1, 2, 3, 0.4, 0.5, 0.6], [7, 8, 9, 1.1, 1.2, 1.3]
    close(start.q, [*(q[i] for i in of_base), 0.7, 0.8], 1e-14)
    close(start.v, [*(v[i] for i in of_base), 0.9, 1.0], 1e-14)
    assert m.nq == len(start.q)
    assert "nq" in words(from_variables(FLOATING | {"nq": 0}))
    assert "ReDySim integrates all six" not in words(from_variables(FLOATING | {"nq": 1}))


def test_what_the_report_says_of_files_and_settings() -> None:
    m = from_variables(FIXED | {"Tp": 3.0, "steps": 0.1})
    assert "note: Tp, steps: they belong to a run: rf.simulate(m, t_end=3, …)" in words(m)
    assert "Tp, steps" not in words(from_variables(FIXED))
    beside = {"torque.m": "x", "trajectory.m": "x", "inv_kine.m": "x", "initials.m": "x"}
    said = words(from_variables(FIXED, beside=beside))
    for file in beside:
        assert f"ignored: {file}: " in said
    assert 'the values of th are in m.metadata["redysim"]' in said
    without = {key: x for key, x in FIXED.items() if key != "th"}
    assert "q0 and v0 are arrays in Python" in words(from_variables(without, beside=beside))
    assert "torque.m" not in words(m)
    older = {key: x for key, x in FIXED.items() if key != "r"}
    assert "assumed: r: an older file without joint types: all joints turn" in words(
        from_variables(older)
    )
    assert "assumed: r" not in words(m)
    assert "as an open tree the robot has 3 degrees of freedom" in words(
        from_variables(FIXED | {"dof": 2})
    )
    assert "degrees of freedom" not in words(m)
    assert "1 degree of freedom" in words(from_variables(one_link() | {"dof": 2}))


def one_link() -> dict[str, Any]:
    return {key: (x[:1] if isinstance(x, list) and key != "g" else x) for key, x in FIXED.items()} | {"n": 1}  # fmt: skip


# ---- variables ----


def table(**values: Any) -> RedysimVariables:
    return RedysimVariables({"n": 3, **values}, ImportReport("file"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, "fixed"), ({"nq": 0}, "floating"), ({"n_j": [6, 1]}, "floating"), ({"n_j": [1, 6]}, "fixed"),
        ({"n_j": [1, 1]}, "fixed"), ({"g_prop": [1], "nq": 1}, "legged"), ({"n_j": [[6], [1]]}, "floating"),
    ],
)  # fmt: skip
def test_dialects(values: dict[str, Any], kind: str) -> None:
    assert dialect(values) == kind
    t = table(**values)
    assert (t.floating, t.legged) == (kind != "fixed", kind == "legged")


@pytest.mark.parametrize(
    ("values", "read", "found"),
    [
        ({"n": 5000}, lambda t: t.n, 5000),
        ({"n": 5001}, lambda t: t.n, "n = 5001 must be a whole number of links from 1 to 5000"),
        ({"n": 2.5}, lambda t: t.n, "n = 2.5 must be"),
        ({"n": 9, "n_l": 2}, lambda t: t.n, 2),
        ({"n": [1, 2]}, lambda t: t.n, "n has 2 numbers; it must have one"),
        ({"x": [[1, 2], [3, 4]]}, lambda t: t.numbers("x").tolist(), [1, 3, 2, 4]),
        ({"x": [1, 1e30]}, lambda t: t.numbers("x").tolist(), [1, 1e30]),
        ({"x": [1, -2e30]}, lambda t: t.numbers("x"), r"x\(2\) is -2e\+30; numbers here stay below 1e\+30"),
        ({"x": [1, np.nan]}, lambda t: t.numbers("x"), r"x\(2\) is not finite"),
        ({}, lambda t: t.numbers("x"), "x is missing; a ReDySim model has n, alp, a, b, bt"),
        ({}, lambda t: t.vector("x", 0.5), [0.5, 0.5, 0.5]),
        ({"x": [1, 2]}, lambda t: t.vector("x", 0.5), "x has 2 numbers for 3 links"),
        ({"x": [1, 2, 3, 4]}, lambda t: t.vector("x"), [1, 2, 3]),
        ({"x": [1, 0, 1]}, lambda t: t.choices("x", 0.0), [True, False, True]),
        ({"x": [1, 0, -1]}, lambda t: t.choices("x", 0.0), r"x\(3\) is -1; it must be 0 or 1"),
        ({}, lambda t: t.choices("x", 1.0), [True] * 3),
        ({"bt": [0, 1, 2]}, lambda t: t.parents(), [-1, 0, 1]),
        ({"bt": [0, 0, 1]}, lambda t: t.parents(), [-1, -1, 0]),
        ({"bt": [0, 2, 1]}, lambda t: t.parents(), r"bt\(2\) is 2; the parent of link 2 is 0"),
        ({"bt": [0, -1, 1]}, lambda t: t.parents(), r"bt\(2\) is -1"),
        ({"bt": [0, 0.5, 1]}, lambda t: t.parents(), r"bt\(2\) is 0.5"),
        ({"bt": [0, 0, 1], "nq": 1}, lambda t: t.parents(), r"bt\(2\) is 0; of a floating robot link 1 is the base"),
        ({"bt": [0, 1, 1], "nq": 1}, lambda t: t.parents(), [-1, 0, 0]),
        ({"g": [1, 2, 3]}, lambda t: t.gravity(), [1, 2, 3]),
        ({"g": [1, 2, 3, 4]}, lambda t: t.gravity(), "g has 4 numbers; an acceleration has three"),
        ({"type": 1}, lambda t: t.closed, True), ({"type": 0}, lambda t: t.closed, False), ({}, lambda t: t.closed, False),
        ({"type": 2}, lambda t: t.closed, "type is 2.0; it must be 0"),
        ({"aj": [1, 0, 1]}, lambda t: t.actuated(), [True, False, True]),
        ({"aj": [0, 1], "nq": 1}, lambda t: t.actuated(), [False, False, True]),
        ({"aj": [0, 0, 1], "nq": 1}, lambda t: t.actuated(), [False, False, True]),
        ({"aj": [0] * 6 + [1, 0], "nq": 1}, lambda t: t.actuated(), [False, True, False]),
        ({"aj": [0] * 4, "nq": 1}, lambda t: t.actuated(), "aj has 4 numbers for a base and 2 joints"),
        ({"nq": 1}, lambda t: t.actuated(), [True] * 3),
        ({"n_j": [1, 1, 1]}, lambda t: t.check_joints(), None),
        ({"n_j": [6, 1, 1]}, lambda t: t.check_joints(), None),
        ({"n_j": [1, 3, 1]}, lambda t: t.check_joints(), r"n_j\(2\) is 3, but link 2 has one DH row"),
        ({"n_j": [6, 6, 1]}, lambda t: t.check_joints(), r"n_j\(2\) is 6"),
        ({"nq": 1, "n_j": [1, 1, 1]}, lambda t: t.check_joints(), r"n_j\(1\) is 1"),
        ({"nq": 1}, lambda t: t.check_joints(), None),
        ({"r": [1, 0, 1]}, lambda t: t.turns(), [True, False, True]),
        ({"r": [1, 0, 1], "nq": 1}, lambda t: t.turns(), [True] * 3),
        ({"r": [1, 0, 1], "th": [1, 2, 3], "b": [4, 5, 6]}, lambda t: t.coordinates(), [1, 5, 3]),
        ({"alp": [1, 2, 3], "a": [4, 5, 6], "b": [7, 8, 9], "th": [10, 11, 12]}, lambda t: t.rows(),
         [(1, 4, 7, 10), (2, 5, 8, 11), (3, 6, 9, 12)]),
        ({"alp": [1, 2, 3], "a": [4, 5, 6], "b": [7, 8, 9], "th": [10, 11, 12], "nq": 1}, lambda t: t.rows(),
         [(1, 4, 7, 0), (2, 5, 8, 0), (3, 6, 9, 0)]),
    ],
)  # fmt: skip
def test_variables(values: dict[str, Any], read: Any, found: Any) -> None:
    if isinstance(found, str):
        with pytest.raises(rf.ModelError, match=f"file: {found}"):
            read(table(**values))
    else:
        assert read(table(**values)) == found


def test_what_is_reported_of_variables() -> None:
    t = table(x=[1, 2, 3, 4], aj=[1, 0, 1], nq=1, name="robot")
    t.vector("x")
    t.vector("x")
    assert str(t.report).count("x: has 4 numbers for 3 links; those beyond are left out") == 1
    t.actuated()
    assert "aj: its entries for the base: a floating base has no drive" in str(t.report)
    quiet = table(aj=[0, 0, 1], nq=1)
    quiet.actuated()
    assert "aj" not in str(quiet.report)
    close(t.constants["x"], [[1], [2], [3], [4]], 0.0)
    assert "name" not in t.constants
    for dof, said in (
        (2, ""),
        (1, ""),
        (3, "the file says dof = 3; so the robot has 2 degrees of freedom"),
    ):
        t = table(dof=dof)
        t.check_freedom([2, 1], "so")
        assert (said in str(t.report)) if said else ("dof" not in str(t.report))


# ---- loops ----

# Two trees on the ground: 0 - 1 and 2; a slide 3 on the ground along y.
TREE = PlaneTree(
    [(0.0, 0.2, 0.0, 0.0), (0.0, 0.5, 0.1, 0.0), (0.0, 0.0, 0.0, 0.0), (-np.pi / 2, 0.3, 0.0, 0.0)],
    [-1, 0, -1, -1],
    [True, True, True, False],
    {2: np.array([1.1, -0.2, 0.0])},
)
TH = np.array([0.4, -0.9, 0.7, 0.25])


def point(tree: PlaneTree, th: Any, k: int, at: Any) -> Any:
    frame = tree.frames(np.asarray(th))[k]
    return frame.position + frame.rotation @ np.asarray(at)


def closing(tree: PlaneTree, pins: list[Any], quarter: int = 0) -> Any:
    """J of pins [(link, point, link or None, point)], by differences, in axes turned by quarters."""
    c, s = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarter]
    turn = np.array([[c, s], [-s, c]], dtype=float)

    def gaps(th: Any) -> Any:
        out = []
        for first, at, second, there in pins:
            far = np.zeros(3) if second is None else point(tree, th, second, there)
            out += (turn @ (point(tree, th, first, at) - far)[:2]).tolist()
        return np.array(out)

    def J(th: Any) -> Any:
        h, eye = 1e-3, np.eye(len(th))
        rows = [
            (
                8 * (gaps(th + h * e) - gaps(th - h * e))
                - gaps(th + 2 * h * e)
                + gaps(th - 2 * h * e)
            )
            / (12 * h)
            for e in eye
        ]
        return np.stack(rows, axis=1)

    return J


def test_frames_of_a_tree() -> None:
    first = row(0.0, 0.2, 0.0, TH[0])
    second = first @ row(0.0, 0.5, 0.1, TH[1])
    slide = row(-np.pi / 2, 0.3, TH[3], 0.0)
    third = row(0.0, 0.0, 0.0, TH[2])
    third[:3, 3] = [1.1, -0.2, 0.0]
    for frame, pose in zip(TREE.frames(TH), (first, second, third, slide), strict=True):
        close(frame.rotation, pose[:3, :3], 1e-12, 1e-14)
        close(frame.position, pose[:3, 3], 1e-12, 1e-14)
    assert TREE.chain(1) == [1, 0]
    assert TREE.in_plane
    tilted = PlaneTree([(0.3, 0.0, 0.0, 0.0)], [-1], [True], {})
    along = PlaneTree([(0.0, 0.0, 0.0, 0.0)], [-1], [False], {})
    assert not tilted.in_plane
    assert not along.in_plane
    with pytest.raises(rf.ModelError, match="does not move in the plane xy"):
        pin_closures(lambda th: np.zeros((2, 1)), tilted)


def test_links_on_one_pin_of_the_ground() -> None:
    rows = [(0.0, 0.2, 0.0, 0.0), (0.0, 0.2, 0.0, 0.0), (0.0, 0.4, 0.0, 0.0), (0.0, 0.2, 0.0, 0.0)]
    tree = PlaneTree(rows, [-1, -1, -1, 0], [True] * 4, {})
    assert unplaced(tree) == [1]
    assert unplaced(PlaneTree(rows, [-1] * 4, [True] * 4, {})) == [1, 3]
    assert unplaced(PlaneTree(rows, [-1] * 4, [True, False, True, True], {})) == [3]
    assert unplaced(PlaneTree(rows, [-1] * 4, [True] * 4, {1: np.array([0.2, 0, 0])})) == [3]
    assert unplaced(PlaneTree(rows, [-1] * 4, [True] * 4, {1: np.array([0.5, 0, 0])})) == [3]


@pytest.mark.parametrize("quarter", range(4))
def test_pins_are_found_in_their_jacobian(quarter: int) -> None:
    """Between two links, and on the ground; differences of fourth order leave 1e-12."""
    pins = [(1, [0.3, 0.1, 0.0], 2, [0.45, -0.05, 0.0]), (1, [0.15, -0.2, 0.0], None, None)]
    J = closing(TREE, pins, quarter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ramify.files.redysim.redysim_loops._EXACT", 1e-8)
        first, second = pin_closures(lambda th: np.where(np.abs(J(th)) < 1e-9, 0.0, J(th)), TREE)
    assert (first.first, first.second) == (1, 2)
    close(first.at_first[:2], [0.3, 0.1], 1e-7, 1e-8)
    close(first.at_second[:2], [0.45, -0.05], 1e-7, 1e-8)
    assert (second.first, second.second) == (1, None)
    close(second.at_first[:2], [0.15, -0.2], 1e-7, 1e-8)
    with pytest.raises(rf.ModelError, match="J is 3 x 4; a pin in the plane takes two rows"):
        pin_closures(lambda th: np.zeros((3, 4)), TREE)
    with pytest.raises(rf.ModelError, match="J is 2 x 3; a pin"):
        pin_closures(lambda th: np.zeros((2, 3)), TREE)
    with pytest.raises(rf.ModelError, match="rows 1 and 2 of J are not a pin"):
        pin_closures(lambda th: np.ones((2, 4)), TREE)


NAMES = ["link1", "link2", "link3", "link4"]


def test_loops_of_pins_that_close() -> None:
    at = np.array([0.3, 0.1, 0.0])
    place = point(TREE, TH, 1, at)
    frame = TREE.frames(TH)[2]
    there = frame.rotation.T @ (place - frame.position)
    (loop,), moved, gaps = loops_of_pins([PinClosure(1, 2, at, there)], TREE, TH, NAMES)
    assert (loop.name, loop.kind, loop.planar, moved, gaps) == ("pin1", "revolute", True, {}, {})
    assert (loop.first.link, loop.second.link) == ("link2", "link3")
    close(loop.first.frame.position, at, 0.0)
    close(loop.second.frame.position, there, 0.0)
    close(loop.first.frame.rotation, np.eye(3), 0.0)


def test_loops_of_pins_that_gape() -> None:
    """J says nothing of where the ground is: a point of it, or of a slide, moves; else th is doubtful."""
    at = np.array([0.3, 0.1, 0.0])
    place = point(TREE, TH, 1, at)
    (loop,), moved, gaps = loops_of_pins([PinClosure(1, None, at, np.zeros(3))], TREE, TH, NAMES)
    assert (loop.second.link, moved, gaps) == (None, {}, {})
    close(loop.second.frame.position[:2], place[:2], 1e-12)
    for pin in (
        PinClosure(1, 3, at, np.array([0.1, 0.2, 0.0])),
        PinClosure(3, 1, np.array([0.1, 0.2, 0.0]), at),
    ):
        (loop,), moved, gaps = loops_of_pins([pin], TREE, TH, NAMES)
        assert (moved, gaps) == ({}, {})
        ends = {end.link: end.frame.position for end in (loop.first, loop.second)}
        close(ends["link2"], at, 0.0)
        close(point(TREE, TH, 3, ends["link4"])[:2], place[:2], 1e-12)
        turned = loop.second if loop.second.link == "link4" else loop.first  # z along the world's
        close(TREE.frames(TH)[3].rotation @ turned.frame.rotation, np.eye(3), 1e-12, 1e-14)
    there = np.array([0.45, -0.05, 0.0])
    _, moved, gaps = loops_of_pins([PinClosure(1, 2, at, there)], TREE, TH, NAMES)
    gap = (place - point(TREE, TH, 2, there))[:2]
    assert moved == {}
    close(gaps["pin1"], np.linalg.norm(gap), 1e-12)
    free = PlaneTree(TREE.rows, TREE.parents, TREE.turns, {})
    _, moved, gaps = loops_of_pins([PinClosure(1, 2, at, there)], free, TH, NAMES)
    assert gaps == {}
    hinge = (place - point(free, TH, 2, there))[:2]
    close(moved[2][:2], hinge, 1e-12)
    with pytest.raises(rf.ModelError, match="which says where link3 is hinged to the ground"):
        loops_of_pins([PinClosure(1, 2, at, there)] * 2, free, TH, NAMES)


def test_values_of_inputs_by_position() -> None:
    inputs = {name: np.array([[float(k)]]) for k, name in enumerate(("n", "dof", "al", "m"))}
    outputs = ["n", "dof", "al", "m"]
    call = "[{}] = inputs();\nJ = al;"
    assert by_position(call.format("n dof al m"), "f.m", inputs, outputs) is None
    assert (
        by_position(call.format("n dof x"), "f.m", inputs, outputs) is None
    )  # x is no other value
    found = by_position(call.format("n, al, dof"), "f.m", inputs, outputs)
    assert found is not None
    assert {name: float(value[0, 0]) for name, value in found.items()} == {
        "n": 0.0, "al": 1.0, "dof": 2.0, "m": 3.0,
    }  # fmt: skip
    with pytest.raises(rf.ModelError, match="f.m: takes the values of inputs.. in two orders"):
        by_position(call.format("n al") + call.format("al n"), "f.m", inputs, outputs)


def test_freedom_at_a_place_and_elsewhere() -> None:
    """A row that vanishes at th counts only elsewhere."""
    th = np.array([0.3, 0.2, 0.1])

    def J(x: Any) -> Any:
        return np.array([[1.0, 2.0, 0.0], [0.0, 0.0, x[0] - 0.3]])

    assert freedom(J, th) == (2, 1)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("function J = jacobian(th)", None), ("function [J, dJ] = jacobian(th, dth)", None),
        ("function J = jacobian(a, b, c)", "yours has 3 arguments"),
        ("function J = jacobian()", "yours is not of that form"), ("J = 1;", "yours is not of that form"),
    ],
)  # fmt: skip
def test_heads_of_a_jacobian(head: str, said: str | None) -> None:
    name = "th"
    text = f"{head}\nJ = [2*{name}(2) al*{name}(1)];"
    if said:
        with pytest.raises(rf.ModelError, match=f"j.m: its first line must be .*{said}"):
            jacobian_function(text, "j.m", {})
        return
    J = jacobian_function(text, "j.m", {"al": np.array([[3.0]])})
    if "inputs" not in text:
        with pytest.raises(rf.ModelError):
            J(np.array([0.5, 0.7]))  # al comes from inputs()
    J = jacobian_function(
        f"{head}\n[al] = inputs();\nJ = [2*th(2) al*th(1)];", "j.m", {"al": np.array([[3.0]])}
    )
    close(J(np.array([0.5, 0.7])), [[1.4, 1.5]], 1e-14)
    with pytest.raises(rf.ModelError, match="j.m: assigns no J"):
        jacobian_function(f"{head}\nK = 1;", "j.m", {})(np.array([0.5, 0.7]))
