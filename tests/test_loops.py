"""Constraint kinematics and dynamics of closed systems: every closing joint, redundant loops,
massless links, all readings.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from closed_systems import KINDS, ROWS, four_bar, tangent, two_arms

import ramify as rf
from ramify.core.arrays import Array
from ramify.files.robot_writer import save
from ramify.kernels.closed import inertia_weight
from ramify.kernels.make import algorithm_of, kernel
from ramify.kernels.text import plain_text
from ramify.loops.far_guess import nearer, rotation_vectors
from ramify.model.frame import Frame, rotation_about
from ramify.trace.interpret import interpret

BASES = ("free", None, "free_euler")
IDS = [f"{kind}{'-axis' if 'axis' in options else ''}" for kind, options in KINDS]


def full_system(
    model: rf.Model, q: Array, v: Array, tau: Array, wrenches: Any = None
) -> tuple[Array, Array]:
    """(a, J' lambda) of (8.5), dense, in the sense of least squares where constraints are
    redundant.
    """
    tree = model.tree
    c = model.constraints(q, v)
    inverse = np.linalg.inv(tree.mass_matrix(q))
    phi = tau - tree.inverse_dynamics(q, v, np.zeros(model.nv), wrenches=wrenches)
    S = c.J @ inverse @ c.J.T
    lam = np.linalg.lstsq(S, -(c.J @ inverse @ phi + c.Jdot_v), rcond=1e-11)[0]
    return inverse @ (phi + c.J.T @ lam), c.J.T @ lam


# ---- kinematics ----


@pytest.mark.parametrize("kind", ["fixed", "prismatic", "revolute", "cylindrical"])
@pytest.mark.parametrize("off", [np.pi, np.pi - 1e-9, 2.0, 1e-3])
def test_half_a_turn_is_not_closed(kind: str, off: float) -> None:
    """A sine vanishes at half a turn; the residual of a loop does not."""
    turning = "x" if kind in ("revolute", "cylindrical") else "z"
    axis = {"x": (1.0, 0.0, 0.0), "z": (0.0, 0.0, 1.0)}[turning]
    robot = rf.Builder("hub").link(
        "a", None, "revolute", axis=axis, mass=1.0, com=(0.1, 0.0, 0.0), inertia=(0.1, 0.1, 0.1)
    )
    robot.link("b", "a", "prismatic", mass=1.0, inertia=(0.1, 0.1, 0.1))
    model = robot.loop("tie", kind, ("b", Frame()), (None, Frame())).model()
    q, o = np.array([off, 0.0]), np.zeros(2)
    residual = np.abs(model.constraints(q).residual)
    assert residual.max() == pytest.approx(
        2.0 - np.sin(off) if off > 1.6 else np.sin(off), abs=1e-8
    )
    for ask in (
        lambda: model.forward_dynamics(q, o, o),
        lambda: model.inverse_dynamics(q, o, o),
        lambda: rf.simulate(model, 0.1, q),
        lambda: rf.rollout(model, q, o, steps=1, dt=1e-3),
    ):
        if off > 1e-2:
            with pytest.raises(rf.LoopError, match=r"tie\.(turn|tilt)"):
                ask()
    assert np.abs(model.assemble(guess={"a": off}).q[0]) < 1e-9


@pytest.mark.parametrize("named", [{"motor": 2.544, "o2": 2.3}, {"motor": 3.0, "o2": 2.4}])
def test_what_a_guess_does_not_name_takes_its_side(named: dict[str, float]) -> None:
    """Two cranks belong to one rocker; the coupler, which is not named, must not choose."""

    def bar(length: float) -> dict[str, Any]:
        return {"mass": 1.0, "com": (length / 2, 0, 0), "inertia": (1e-3, 1e-2, 1e-2)}

    made = rf.Mechanism("four_bar").body("crank", **bar(0.11))
    made.body("coupler", **bar(0.36)).body("rocker", **bar(0.30))
    pin = {"actuated": False, "planar": True}
    made.joint("motor", None, "crank").joint("a", ("crank", (0.11, 0, 0)), "coupler", **pin)
    made.joint("b", ("coupler", (0.36, 0, 0)), ("rocker", (0.30, 0, 0)), **pin)
    made.joint("o2", (None, (0.40, 0.05, 0)), "rocker", **pin)
    found = made.near(**named).model().assemble({"o2": 2.3})
    assert found.q[0] == pytest.approx(2.544, abs=1e-3)


@pytest.mark.parametrize("kind", ["fixed", "revolute", "universal", "prismatic"])
def test_assembly_from_far_guesses_by_the_pose_error(kind: str) -> None:
    """Least squares of the pose errors alone must find the way; random restarts do not count."""
    found = 0
    for seed in range(4):
        model, closed = two_arms(seed, kind, {}, None)
        rng = np.random.default_rng(seed)
        start = model.integrate(closed, rng.normal(size=model.nv), 1.0)
        near, _ = nearer(model, start, range(model.nv))
        found += model.constraints(near).gap < 1e-3
    assert found == 4


def test_rotation_vectors_up_to_half_a_turn() -> None:
    rng = np.random.default_rng(0)
    for angle in (0.0, 1e-9, 1.0, 3.0, np.pi - 1e-5, np.pi - 1e-8, np.pi):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        R = rotation_about(axis, angle)
        turn = rotation_vectors(R)
        assert np.linalg.norm(turn) == pytest.approx(angle, abs=1e-7)
        size = float(np.linalg.norm(turn))
        again = rotation_about(turn / size, size) if size else np.eye(3)
        np.testing.assert_allclose(again, R, atol=2e-7)


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
@pytest.mark.parametrize("base", BASES)
def test_rows_and_their_derivatives(kind: str, options: Any, base: str | None) -> None:
    """Residual, J v and J' v by differences, also where the loop is open."""
    model, closed = two_arms(1, kind, options, base)
    assert model.constraints(closed).gap < 1e-14
    q, v = model.tree.random(5)
    step = 1e-5
    here = model.constraints(q, v)
    ahead, behind = (model.constraints(model.integrate(q, v, s), v) for s in (step, -step))
    scale = 1.0 + np.abs(here.Jdot_v).max()
    np.testing.assert_allclose(
        (ahead.residual - behind.residual) / (2 * step), here.J @ v, atol=1e-8 * scale
    )
    np.testing.assert_allclose(
        (ahead.J @ v - behind.J @ v) / (2 * step), here.Jdot_v, atol=1e-7 * scale
    )
    assert len(here.names) == ROWS[kind]
    assert here.names[0].startswith("tie.")


def test_a_gear_is_linear() -> None:
    robot = (
        rf.Builder("geared")
        .link("a", mass=1.0, com=(1, 0, 0))
        .link("b", "a", "prismatic", mass=1.0)
    )
    model = robot.loop("gear", "gear", joints=("a", "b"), ratio=2.5, offset=0.1).model()
    c = model.constraints([0.4, 1.1], [1.0, 2.0])
    assert (c.J.tolist(), c.Jdot_v.tolist()) == ([[-2.5, 1.0]], [0.0])
    assert abs(c.residual[0]) < 1e-15
    assert (c.rank, c.mobility, c.redundant) == (1, 1, ())
    a, lam = model.forward_dynamics([0.4, 1.1], [1.0, 2.5], [0.3, -0.2], multipliers=True)
    assert a[1] == pytest.approx(2.5 * a[0])
    q, v, tau = np.array([0.4, 1.1]), np.array([1.0, 2.5]), np.array([0.3, -0.2])
    np.testing.assert_allclose(a, full_system(model, q, v, tau)[0], rtol=1e-12)
    assert lam.shape == (1,)


# ---- dynamics ----


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_forward_dynamics_is_the_full_system(
    kind: str, options: Any, base: str | None, twice: bool
) -> None:
    """(8.6), (8.7) by recursion against the dense system; the same loop given twice changes nothing
    and is told by name.
    """
    model, q = two_arms(2, kind, options, base, twice)
    rng = np.random.default_rng(3)
    v, tau, wrenches = tangent(model, q), rng.normal(size=model.nv), {"e": rng.normal(size=6)}
    a, lam = model.forward_dynamics(q, v, tau, wrenches=wrenches, multipliers=True)
    expected, forces = full_system(model, q, v, tau, wrenches)
    c = model.constraints(q, v)
    np.testing.assert_allclose(a, expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(c.J.T @ lam, forces, atol=1e-10 * (1.0 + np.abs(forces).max()))
    np.testing.assert_allclose(c.J @ a, -c.Jdot_v, atol=1e-10 * (1.0 + np.abs(a).max()))
    assert c.redundant == (tuple(f"again.{row}" for row in model.loops[1].rows) if twice else ())
    assert (c.rank, c.mobility) == (ROWS[kind], model.nv - ROWS[kind])


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
def test_inverse_dynamics_undoes_forward_dynamics(kind: str, options: Any) -> None:
    """With all joints driven the shortest forces are found: they give the same motion, and are no
    longer than those given.
    """
    model, q = two_arms(4, kind, options, None)
    v, tau = tangent(model, q), np.random.default_rng(0).normal(size=model.nv)
    a = model.forward_dynamics(q, v, tau)
    found = model.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        model.forward_dynamics(q, v, found), a, atol=1e-10 * (1.0 + np.abs(a).max())
    )
    assert np.linalg.norm(found) <= np.linalg.norm(tau) * (1.0 + 1e-12)
    J = model.constraints(q).J
    np.testing.assert_allclose(
        J @ found, 0.0, atol=1e-10 * (1.0 + np.abs(found).max())
    )  # nothing that the loops would carry alone


@pytest.mark.parametrize(
    "name",
    ["forward_dynamics_multipliers", "inverse_dynamics", "constraints", "inverse_dynamics_whole"],
)
@pytest.mark.parametrize("which", ["arms", "bar", "spatial bar", "massless bar"])
def test_floats_graph_and_kernel_agree(name: str, which: str) -> None:
    if which == "arms":
        model, q = two_arms(1, "revolute", {"axis": (1.0, 2.0, 0.5)})
    else:
        model = four_bar(
            planar=which != "spatial bar",
            turned=True,
            coupler=0.0 if which == "massless bar" else 5.0,
        )
        q = model.assemble({"crank": 0.4}).q
    inputs = [q, tangent(model, q), np.linspace(-1.0, 1.0, model.nv)][
        : 2 if name == "constraints" else 3
    ]
    floats = plain_text(algorithm_of(model, name), model, ())(*(x.tolist() for x in inputs))
    graph = interpret(model.kernel(name).program, [x[None] for x in inputs])
    kernel = model.kernel(name, tier="unrolled")(*inputs)
    arrays = model.kernel(name, tier="numpy")(*(np.stack([x, x]) for x in inputs))
    for a, b, c, d in zip(floats, graph, kernel, arrays, strict=True):
        scale = 1.0 + np.abs(a).max()
        np.testing.assert_allclose(np.ravel(b), a, atol=1e-9 * scale)
        np.testing.assert_allclose(c, a, atol=1e-9 * scale)
        np.testing.assert_allclose(d[1], a, atol=1e-9 * scale)


def test_hybrid_dynamics_honours_loops() -> None:
    model = rf.load("robotic_leg")
    state = model.assemble({"crank": 0.7}, {"crank": 3.0}, accelerations={"crank": -2.0})
    found = model.hybrid_dynamics(state.q, state.v, [-2.0], prescribed=["crank"])
    np.testing.assert_allclose(found.tau, model.inverse_dynamics(*state)[:1], rtol=1e-9)
    np.testing.assert_allclose(found.acceleration, state.a[1:], rtol=1e-8, atol=1e-8)
    with pytest.raises(rf.LoopError, match="1 degree of freedom: the 2 prescribed"):
        model.hybrid_dynamics(state.q, state.v, [0.0, 0.0], prescribed=["crank", "rocker"])


# ---- redundant, massless ----


def test_a_pin_in_space_is_a_pin_in_the_plane() -> None:
    """Out of the plane the rows are zero, or rounding dust: the same accelerations and forces, the
    idle rows by name.
    """
    flat, at = four_bar(), {"crank": 0.3}
    state = flat.assemble(at, {"crank": 2.0})
    expected = flat.forward_dynamics(state.q, state.v, [0.1, 0, 0], multipliers=True)
    for turned in (False, True):
        model = four_bar(planar=False, turned=turned)
        c = model.constraints(state.q)
        assert (c.rank, c.mobility, c.redundant) == (2, 1, ("pin.z", "pin.tilt_x", "pin.tilt_y"))
        a, lam = model.forward_dynamics(state.q, state.v, [0.1, 0, 0], multipliers=True)
        np.testing.assert_allclose(a, expected[0], rtol=1e-10)
        np.testing.assert_allclose(lam, [*expected[1], 0, 0, 0], rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(
            model.inverse_dynamics(state.q, state.v, a), [0.1, 0, 0], atol=1e-9
        )


def test_massless_links_are_carried_by_their_loop() -> None:
    model = four_bar(coupler=0.0)
    assert inertia_weight(model) > 0.0 == inertia_weight(four_bar())
    q, v, _ = model.assemble({"crank": 0.3}, {"crank": 2.0})
    c, tau = model.constraints(q, v), np.array([0.5, 0.0, 0.0])
    M, h = model.tree.mass_matrix(q), model.tree.bias(q, v)
    K = np.block([[M, -c.J.T], [c.J, np.zeros((2, 2))]])
    a, lam = model.forward_dynamics(q, v, tau, multipliers=True)
    np.testing.assert_allclose([*a, *lam], np.linalg.solve(K, [*(tau - h), *-c.Jdot_v]), rtol=1e-11)
    alone = four_bar(coupler=0.0, rocker=0.0)  # only the crank has mass: a pendulum
    expected = (0.5 - 1.5 * 9.81 * 0.019 * np.cos(0.3)) / (1.5 * 0.038**2 / 3)
    assert alone.forward_dynamics(q, v, tau)[0] == pytest.approx(expected, rel=1e-11)
    with pytest.raises(rf.LoopError, match="moves no mass, and no loop holds it"):
        four_bar(coupler=0.0, rocker=0.0, crank=0.0).forward_dynamics(q, v, tau)


def test_loops_that_contradict_each_other_are_named() -> None:
    model, q = two_arms(2, "fixed", {})
    tie = model.loops[0]
    shifted = tie.first.frame @ rf.Frame(position=np.array([0.0, 0.01, 0.0]))
    torn = rf.with_loop(model, "again", "fixed", ("b", shifted), ("f", tie.second.frame))
    c = torn.constraints(q)
    assert c.redundant == tuple(f"again.{row}" for row in tie.rows)
    assert c.conflicting == ("again.y",)
    assert model.constraints(q).conflicting == ()
    same = rf.with_loop(model, "again", "fixed", ("b", tie.first.frame), ("f", tie.second.frame))
    assert same.constraints(q).conflicting == ()
    assert same.constraints(model.tree.random(9)[0]).conflicting == ()  # open, but not in conflict


# ---- forces ----


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
def test_reactions_balance_every_body(kind: str, options: Any) -> None:
    """The joint's wrench, those of the joints it carries, the loop's and gravity give the body its
    momentum's rate.
    """
    model, q = two_arms(3, kind, options, None)
    v = tangent(model, q)
    tau = np.random.default_rng(1).normal(size=model.nv)
    a, lam = model.forward_dynamics(q, v, tau, multipliers=True)
    joints = model.reactions(q, v, a, multipliers=lam)
    loop = model.loop_forces(q, lam)[0]
    pose = model.kinematics(q)
    ends = [
        model.body_index(end.link)
        for end in (model.loops[0].first, model.loops[0].second)
        if end.link
    ]
    place = pose.position[ends[1]] + pose.rotation[ends[1]] @ model.loops[0].second.frame.position
    for b, body in enumerate(model.bodies):
        force, moment = joints[b, 3:].copy(), joints[b, :3].copy()  # about the body's origin
        for k, other in enumerate(model.bodies):
            if other.parent == b:
                force -= joints[k, 3:]
                moment -= joints[k, :3] + np.cross(
                    pose.position[k] - pose.position[b], joints[k, 3:]
                )
        for end, sign in zip(ends, (-1.0, 1.0), strict=True):
            if end == b:
                force += sign * loop[3:]
                moment += sign * (loop[:3] + np.cross(place - pose.position[b], loop[3:]))
        arm = pose.rotation[b] @ body.com
        force += body.mass * np.array(model.gravity)
        moment += np.cross(arm, body.mass * np.array(model.gravity))
        J, rate = (
            model.jacobian(q, body.name, body.com),
            model.jacobian_rate(q, v, body.name, body.com),
        )
        dw, dv = np.split(J @ a + rate, 2)
        w = (J @ v)[:3]
        inertia = pose.rotation[b] @ body.inertia @ pose.rotation[b].T
        turn = inertia @ dw + np.cross(w, inertia @ w) + np.cross(arm, body.mass * dv)
        np.testing.assert_allclose(force, body.mass * dv, atol=1e-9 * (1.0 + np.abs(joints).max()))
        np.testing.assert_allclose(moment, turn, atol=1e-9 * (1.0 + np.abs(joints).max()))


# ---- what is refused ----


def test_what_does_not_fit_is_refused() -> None:
    model = four_bar()
    q, v, a = model.assemble({"crank": 0.3}, {"crank": 2.0})
    with pytest.raises(
        rf.LoopError,
        match=r"loops of 'bar' are open at q: pin\.x is off by 0\.\d+ m; model\.assemble",
    ):
        model.inverse_dynamics([0.3, 0.0, 0.0], v, a)
    with pytest.raises(
        rf.LoopError,
        match=r"accelerations do not keep the loops of 'bar' closed: pin\.[xy] would move with",
    ):
        model.inverse_dynamics(q, v, a + np.array([1.0, 0, 0]))
    free = four_bar()
    idle = rf.Builder("idle", free.gravity)
    idle.links, idle.loops = [], list(free.loops)
    for body in free.bodies:
        parent = free.bodies[body.parent].name if body.parent >= 0 else None
        idle.link(
            body.name,
            parent,
            at=body.joint.placement,
            mass=body.mass,
            com=body.com,
            inertia=body.inertia,
            actuated=False,
        )
    with pytest.raises(
        rf.LoopError, match=r"actuated joints of 'idle' cannot give this motion: .* missing at"
    ):
        idle.model().inverse_dynamics(q, v, a)
    falling = idle.model().forward_dynamics(q, v, np.zeros(3))
    np.testing.assert_allclose(
        idle.model().inverse_dynamics(q, v, falling), 0.0, atol=1e-9
    )  # a motion that needs no drive
    with pytest.raises(
        rf.LoopError, match="open"
    ):  # derivatives, too, are those of closed postures
        model.forward_dynamics_derivatives(q + 0.1, v, np.zeros(3))
    with pytest.raises(rf.LoopError, match="has no loops, and so no multipliers"):
        model.tree.forward_dynamics(q, v, np.zeros(3), multipliers=True)
    with pytest.raises(rf.LoopError, match="has no loops"):
        model.tree.constraints(q)
    with pytest.raises(rf.RamifyError, match="straight-line code"):
        model.kernel("forward_dynamics", tier="rolled")


def test_the_linter_knows_loops() -> None:
    def codes(model: rf.Model) -> set[str]:
        return {finding.code for finding in model.check()}

    assert not codes(four_bar()) & {
        "loops-open",
        "redundant-constraints",
        "actuation",
        "singular-loops",
        "zero-inertia",
    }
    assert "redundant-constraints" in codes(four_bar(planar=False))
    massless = codes(four_bar(coupler=0.0))
    assert "massless-in-loop" in massless
    assert "zero-inertia" not in massless
    long = rf.with_loop(
        four_bar(), "rod", "distance", ("crank", (0.038, 0, 0)), (None, (-0.0895, 0, 0)), length=0.2
    )
    assert "loops-open" in codes(long)
    assert "actuation" in codes(
        rf.with_loop(
            four_bar(),
            "rod",
            "distance",
            ("crank", (0.038, 0, 0)),
            (None, (-0.0895, 0, 0)),
            length=0.1,
        )
    )


# ---- one compiled call ----


def files_passed(ask: Any) -> set[str]:
    """Python files of the package that a call passes."""
    seen: set[str] = set()

    def look(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and "ramify" in frame.f_code.co_filename:
            seen.add(frame.f_code.co_filename)

    sys.setprofile(look)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return seen - {__file__}


@pytest.mark.parametrize("name", ["four_bar", "stewart_platform"])
def test_a_warm_call_looks_at_the_posture_in_the_kernel(name: str) -> None:
    model = rf.load(name)
    rng = np.random.default_rng(0)
    q, o = model.assemble().q, np.zeros(model.nv)
    tau = rng.normal(size=model.nv)
    for what in ("forward_dynamics", "inverse_dynamics"):
        model.memo[f"{what}_if_closed"] = kernel(model, f"{what}_if_closed", "unrolled")
    a = model.forward_dynamics(q, o, tau)
    peer = model.forward_dynamics(q, o, tau, multipliers=True)[0]
    np.testing.assert_allclose(a, peer, atol=1e-12 * np.abs(peer).max())
    forces = model.inverse_dynamics(q, o, a)
    wanted = model.inverse_dynamics(q, o, a, multipliers=True)[0]
    np.testing.assert_allclose(forces, wanted, atol=1e-10)
    assert len(files_passed(lambda: model.forward_dynamics(q, o, tau))) <= 4
    assert len(files_passed(lambda: model.inverse_dynamics(q, o, a))) <= 4
    many = np.stack([q] * 20)
    np.testing.assert_allclose(model.forward_dynamics(many, o, tau), np.stack([a] * 20), atol=1e-9)
    k = model.layout.plain_q[0]
    many[7, k] += 0.3
    with pytest.raises(rf.LoopError, match="are open at q"):
        model.forward_dynamics(many, o, tau)
    with pytest.raises(rf.LoopError, match="are open at q"):
        model.inverse_dynamics(many, o, a)
    with pytest.raises(rf.LoopError, match="do not keep the loops"):
        model.inverse_dynamics(q, o, a + rng.normal(size=model.nv))


def test_missing_actuators_are_reported_by_the_checked_kernel_too() -> None:
    model = rf.load("four_bar")
    passive = replace(
        model,
        bodies=tuple(replace(b, joint=replace(b.joint, actuated=False)) for b in model.bodies),
    )
    q = model.assemble().q
    with pytest.raises(rf.LoopError, match="cannot give this motion"):
        passive.inverse_dynamics(q, np.zeros(3), np.zeros(3))


def test_a_reflection_is_no_orientation() -> None:
    stewart = rf.load("stewart_platform")
    place = {"platform.x": 0.0, "platform.y": 0.0, "platform.z": 0.6}
    with pytest.raises(rf.StateError, match="must be a unit quaternion"):
        stewart.assemble({**place, "platform": np.diag([1.0, 1.0, -1.0])})


def swing() -> rf.Mechanism:
    """A plate that floats, pinned to a leg that stands on a ball joint."""
    return (
        rf.Mechanism("swing")
        .body("plate", mass=2.0, inertia=(0.1, 0.1, 0.1))
        .body("leg", mass=1.0, inertia=(0.1, 0.1, 0.1))
        .joint("pose", None, "plate", "free", actuated=False)
        .joint("hip", None, "leg", "ball", actuated=False)
        .joint("pin", ("leg", (0, 0, 1)), ("plate", (0.3, 0, 0)), "spherical", actuated=False)
    )


def test_a_guess_may_hold_an_orientation(tmp_path: Path) -> None:
    """As a quaternion, as a matrix, in a file, and over that of the robot."""
    turn = rotation_about((1, 0, 0), 2.0)
    w, x = np.cos(1.0), np.sin(1.0)
    m = swing().near(pose=[w, x, 0, 0]).model()
    matrix = swing().near(pose=turn).model()
    expected = swing().model().assemble(guess={"pose": [w, x, 0, 0]}).q
    save(m, tmp_path / "swing.yaml")
    for model in (m, matrix, rf.load(tmp_path / "swing.yaml")):
        np.testing.assert_allclose(model.assemble().q, expected, atol=1e-9)
    other = m.assemble(guess={"pose": [1.0, 0, 0, 0]}).q
    same = swing().model().assemble(guess={"pose": [1.0, 0, 0, 0]}).q
    np.testing.assert_allclose(other, same, atol=1e-9)


@pytest.mark.parametrize("given", [{"pose.qw": 1.0}, {"pose": 1.0}])
def test_part_of_an_orientation_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(rf.ModelError, match=r"part of the orientation of 'pose'.*near\(pose="):
        swing().near(**given).model()


@pytest.mark.parametrize("angle", [np.pi, np.pi - 1e-9, 3.0, 1.0])
def test_an_open_orientation_is_named_with_its_angle(angle: float) -> None:
    """The same at half a turn, where no row of it is the culprit, and next to it."""
    arm = rf.Builder("arm").link("a", mass=1.0, inertia=(1.0, 1.0, 1.0))
    turned = Frame(rotation_about((0, 0, 1), angle))
    model = arm.loop("weld", "fixed", ("a", (0, 0, 0)), (None, turned)).model()
    says = f"weld.turn is off by {np.degrees(angle):.3g} degrees"
    with pytest.raises(rf.LoopError, match=says):
        model.forward_dynamics([0.0], [0.0], [0.0])


@pytest.mark.parametrize("ratio", [2.0, 0.5])
def test_an_open_gear_is_reported_in_its_unit(ratio: float) -> None:
    arm = rf.Builder("arm").link("a", mass=1.0, inertia=(1, 1, 1), com=(0.1, 0, 0))
    arm.link("b", mass=1.0, inertia=(1, 1, 1)).link("c", joint="prismatic", mass=1.0)
    for follower, unit in (("b", "rad"), ("c", "m")):
        model = rf.with_loop(arm.model(), "g", "gear", joints=("a", follower), ratio=ratio)
        with pytest.raises(rf.LoopError, match=f"g.gear is off by 0.1 {unit};"):
            model.forward_dynamics([0.1 / ratio, 0.0, 0.0], [0.0] * 3, [0.0] * 3)


def test_loops_are_printed_in_short() -> None:
    model = rf.load("four_bar")
    assert repr(model.loops) == "(<loop 'pin': planar revolute between crank and coupler>,)"
    (gear,) = (
        rf.Builder("g").link("a").link("b").loop("g", "gear", joints=("a", "b"), ratio=2).loops
    )
    assert repr(gear) == "<loop 'g': gear, b = 2 a + 0>"
    run = rf.simulate(model, 0.1, model.assemble({"crank": 0.0}).q)
    assert re.fullmatch(
        r"<loops over 11 times: gap and multipliers of pin\.x, pin\.y; largest gap .*e-1\d>",
        str(run.loops),
    )
