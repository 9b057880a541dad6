"""NaN in, NaN out: states of a batch that are not known, such as those a rollout lost, are NaN in
every answer, and leave the others as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.core.arrays import Array


def machine() -> rf.Model:
    """A floating base, a ball, a hinge with friction, spring and limits, and an actuator."""
    b = rf.Builder("machine")
    solid = {"mass": 2.0, "com": (0.1, 0.0, 0.2), "inertia": (0.1, 0.2, 0.15)}
    b.link("base", joint="free", **solid)
    b.link("ball", "base", "ball", at=(0.2, 0, 0), **solid)
    b.link(
        "arm", "ball", at=(0, 0, 0.3), axis=(0, 1, 0), limits=[(-2.0, 2.0)], damping=0.3,
        friction=0.2, spring={"stiffness": 3.0}, armature=0.1, **solid,
    )  # fmt: skip
    b.actuator("motor", joint="arm")
    b.frame("tool", "arm", (0.1, 0.2, 0.3))
    b.frame("floor", None, (0.0, 0.0, -1.0))
    return b.model()


ROBOTS: dict[str, Callable[[], rf.Model]] = {
    "machine": machine,
    "puma_560": lambda: rf.load("puma_560"),
    "four_bar": lambda: rf.load("four_bar"),
    "free_euler": lambda: rf.load("space_3_link"),
}


def _rows(found: Any) -> tuple[Array, ...]:
    return found.residual, found.J, found.Jdot_v, found.margin, found.scaled


QUERIES: dict[str, Callable[..., Any]] = {
    "pose": lambda m, q, v, a: m.pose(q, m.bodies[-1].name),
    "pose_of_base": lambda m, q, v, a: m.pose(q, "floor"),
    "kinematics": lambda m, q, v, a: m.kinematics(q),
    "jacobian": lambda m, q, v, a: m.jacobian(q, m.bodies[-1].name),
    "jacobian_at": lambda m, q, v, a: m.jacobian(q, m.bodies[-1].name, (0.1, 0.2, 0.3)),
    "jacobian_rate": lambda m, q, v, a: m.jacobian_rate(q, v, m.bodies[-1].name),
    "frame_motion": lambda m, q, v, a: m.frame_motion(q, v, a, m.bodies[-1].name),
    "inverse_dynamics": lambda m, q, v, a: m.inverse_dynamics(q, v, a),
    "inverse_passive": lambda m, q, v, a: m.inverse_dynamics(q, v, a, passive=True),
    "inverse_pushed": lambda m, q, v, a: m.inverse_dynamics(
        q, v, a, {m.bodies[-1].name: np.arange(6.0)}
    ),
    "forward_dynamics": lambda m, q, v, a: m.forward_dynamics(q, v, a),
    "forward_passive": lambda m, q, v, a: m.forward_dynamics(q, v, a, passive=True),
    "forward_varied": lambda m, q, v, a: m.forward_dynamics(
        q, v, a, parameters={f"{m.bodies[-1].name}.mass": np.linspace(1.0, 2.0, len(q))}
    ),
    "inverse_derivatives": lambda m, q, v, a: m.inverse_dynamics_derivatives(q, v, a),
    "forward_derivatives": lambda m, q, v, a: m.forward_dynamics_derivatives(q, v, a, passive=True),
    "derivatives": lambda m, q, v, a: m.derivatives("energy", q, v)[0],
    "derivative_along": lambda m, q, v, a: m.derivative_along("energy", (q, v), (v, a)),
    "passive_forces": lambda m, q, v, a: m.passive_forces(q, v).total,
    "mass_matrix": lambda m, q, v, a: m.mass_matrix(q),
    "mass_matrix_inverse": lambda m, q, v, a: m.mass_matrix_inverse(q),
    "udu": lambda m, q, v, a: m.udu(q),
    "udu_of_modules": lambda m, q, v, a: m.udu(q, "module"),
    "bias": lambda m, q, v, a: m.bias(q, v),
    "coriolis_matrix": lambda m, q, v, a: m.coriolis_matrix(q, v),
    "gravity_forces": lambda m, q, v, a: m.gravity_forces(q),
    "energy": lambda m, q, v, a: m.energy(q, v),
    "momentum": lambda m, q, v, a: m.momentum(q, v),
    "center_of_mass": lambda m, q, v, a: m.center_of_mass(q),
    "centroidal": lambda m, q, v, a: m.centroidal_momentum_matrix(q),
    "reactions": lambda m, q, v, a: m.reactions(q, v, a),
    "bearing_forces": lambda m, q, v, a: tuple(m.bearing_forces(q, v, a).values()),
    "regressor": lambda m, q, v, a: m.regressor(q, v, a),
    "integrate": lambda m, q, v, a: m.integrate(q, v, 0.1),
    "difference": lambda m, q, v, a: m.difference(q, q[:1]),
    "constraints": lambda m, q, v, a: _rows(m.constraints(q, v)),
    "hybrid": lambda m, q, v, a: m.hybrid_dynamics(q, v, a[:, m.joints[0].dof :]),
    "pinocchio": lambda m, q, v, a: m.to_pinocchio(q, v, a)[:3],
    "actuator_forces": lambda m, q, v, a: m.actuator_forces(q, v, np.ones(len(m.actuators)))[:2],
    "single": lambda m, q, v, a: m.kernel("forward_dynamics", dtype="float32")(q, v, a),
}


QUERIES |= {
    "linearize": lambda m, q, v, a: tuple(rf.linearize(m, q, v, a, friction=False)),
    "linearize_over_a_step": lambda m, q, v, a: tuple(
        rf.linearize(m, q, v, a, dt=1e-3, method="semi_implicit_euler", friction=False)
    ),
}


def states(m: rf.Model, count: int = 20) -> tuple[Array, Array, Array]:
    if m.loops:
        crank = m.velocities[0]
        angle = np.linspace(0.3, 1.2, count)
        path = m.assemble({crank: angle}, {crank: 1.0 + angle}, None, {crank: angle})
        return path.q, path.v, path.a
    q, v = (np.array(x) for x in zip(*(m.random(seed) for seed in range(count)), strict=True))
    return q, v, np.random.default_rng(0).normal(size=v.shape)


def known(m: rf.Model, query: str) -> bool:
    """Whether a robot answers a query at all."""
    only = {
        "pose_of_base": "floor" in m.frames, "constraints": bool(m.loops), "actuator_forces": bool(m.actuators),
        "pinocchio": m.joints[0].kind != "free_euler",
        "single": not m.loops, "hybrid": len(m.joints) > 1 and not m.loops,
        "bearing_forces": m.joints[0].kind not in ("free", "free_euler"),
        "mass_matrix_inverse": not m.loops, "udu_of_modules": not m.loops,
        "derivative_along": not m.loops, "forward_varied": not m.loops,
    }  # fmt: skip
    return only.get(query, True)


def listed(found: Any) -> Iterator[Array]:
    if isinstance(found, tuple):
        for part in found:
            yield from listed(part)
    else:
        yield np.asarray(found)


CASES = [(r, x) for r, make in ROBOTS.items() for m in [make()] for x in QUERIES if known(m, x)]


@pytest.mark.parametrize(("robot", "query"), CASES)
def test_nan_in_nan_out(robot: str, query: str) -> None:
    m = ROBOTS[robot]()
    q, v, a = states(m)
    ask = QUERIES[query]
    whole = list(listed(ask(m, q, v, a)))
    for lost in ([1], [0, 7, 19], list(range(1, 20))):
        q2, v2, a2 = q.copy(), v.copy(), a.copy()
        q2[lost], v2[lost], a2[lost] = np.nan, np.nan, np.nan
        rest = [i for i in range(20) if i not in lost]
        if query == "difference":
            q2[0], rest = q[0], [0, *rest]
            lost = [i for i in lost if i]
        for expected, found in zip(whole, listed(ask(m, q2, v2, a2)), strict=True):
            assert found.shape == expected.shape
            assert np.isnan(found[lost]).all(), f"{query}: a lost state has an answer"
            assert np.array_equal(found[rest], expected[rest]), f"{query}: the others changed"


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("tier", ["numpy", "rolled", "unrolled"])
def test_one_nan_loses_the_whole_state_in_every_tier(robot: str, tier: Any) -> None:
    """Also numbers that do not depend on the lost one, such as the pose of the first body."""
    m = ROBOTS[robot]()
    q, v, _ = states(m)
    for name, inputs in (("kinematics", [q]), ("energy", [q, v])):
        kernel = m.kernel(name, tier)
        whole = kernel(*inputs)
        for i, given in enumerate(inputs):
            changed = given.copy()
            changed[2, -1] = np.nan
            inputs = [changed if k == i else x for k, x in enumerate(inputs)]
            for expected, found in zip(whole, kernel(*inputs), strict=True):
                assert np.isnan(found[2]).all()
                assert np.array_equal(np.delete(found, 2, 0), np.delete(expected, 2, 0))
            inputs = [given if k == i else x for k, x in enumerate(inputs)]


def test_what_remains_an_error() -> None:
    m = machine()
    q, v, a = states(m)
    lost = np.full(m.nv, np.nan)
    for call in (
        lambda: m.inverse_dynamics(q[0], v[0], lost),  # one state
        lambda: m.inverse_dynamics(q, v, lost),  # shared by all states
        lambda: m.inverse_dynamics(q, v, np.where(np.arange(20)[:, None] == 3, np.inf, a)),
        lambda: m.kernel("bias", dtype="float32")(q[0], lost),
        lambda: m.integrate(q[0], lost, 0.1),
        lambda: m.derivatives("energy", q, lost),
        lambda: m.pose(np.full(m.nq, np.nan), "tool"),
        lambda: m.pose(np.full(m.nq, np.nan), "floor"),
        lambda: m.passive_forces(q[0], lost),
    ):
        with pytest.raises(rf.StateError, match="finite"):
            call()


def test_other_mistakes_beside_a_lost_state_are_errors() -> None:
    m = machine()
    q, v, a = states(m)
    q[1] = np.nan
    q[5, 3:7] *= 1.5
    for ask in (m.mass_matrix, m.kinematics, lambda x: m.integrate(x, v, 0.1)):
        with pytest.raises(rf.StateError, match=r"of state 5\) has length 1\.5"):
            ask(q)
    linkage = rf.load("four_bar")
    q, v, a = states(linkage)
    q[1] = np.nan
    q[5] += 0.3
    for ask in (linkage.forward_dynamics, linkage.inverse_dynamics):
        with pytest.raises(rf.LoopError, match="are open at q"):
            ask(q, 0 * v, 0 * a)
    for bad, match in ((1.0, "do not keep the loops"), (np.nan, "")):
        q, v, a = states(linkage)
        q[1] = v[1] = a[1] = np.nan
        a[5] += bad
        if match:
            with pytest.raises(rf.LoopError, match=match):
                linkage.inverse_dynamics(q, v, a)
        else:
            assert np.isnan(linkage.inverse_dynamics(q, v, a)[[1, 5]]).all()


def test_rows_that_a_rollout_lost() -> None:
    """Two of four states run away; poses of the others are those of a batch without them."""
    m = rf.load("planar_3r")
    tau = np.zeros((4, 1, 3))
    tau[1], tau[3] = 1e9, -1e9
    with pytest.warns(RuntimeWarning, match="2 of 4 states failed"):
        run = rf.rollout(m, np.zeros((4, 3)), np.zeros((4, 3)), dt=1e-3, steps=200, tau=tau)
    assert np.isnan(run.q[[1, 3]]).all()
    found = m.pose(run.q, m.bodies[-1].name)
    kept = m.pose(run.q[[0, 2]], m.bodies[-1].name)
    assert np.isnan(found.position[[1, 3]]).all()
    assert np.array_equal(found.position[[0, 2]], kept.position)


GROUNDS = {
    "firm": rf.contact.Firm(),
    "hunt_crossley": rf.contact.HuntCrossley(friction=0.5),
    "hills": rf.contact.HuntCrossley(
        terrain=rf.contact.HeightField(
            heights=[[0.0, 0.1, 0.0], [0.1, 0.3, 0.1], [0.0, 0.2, 0.1]],
            spacing=0.5,
            origin=(-0.5, -0.5),
        )
    ),
}


@pytest.mark.parametrize("ground", GROUNDS)
def test_forces_of_a_ground_beside_a_lost_state(ground: str) -> None:
    b = rf.Builder("foot").link("base", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1),
        points={"heel": (-0.1, 0, -0.01), "toe": (0.1, 0, -0.01)})  # fmt: skip
    m = b.model()
    q = np.tile(m.neutral(), (4, 1))
    v = np.random.default_rng(0).normal(size=(4, m.nv))
    whole = rf.contact.forces(m, GROUNDS[ground], q, v)
    q[2, 1] = np.nan
    seen = rf.contact.forces(m, GROUNDS[ground], q, v)
    for name in ("force", "normal_load", "position", "penetration", "slip", "stored"):
        expected, array = getattr(whole, name), getattr(seen, name)
        assert np.isnan(array[2]).all(), name
        assert np.array_equal(np.delete(array, 2, 0), np.delete(expected, 2, 0)), name
    with pytest.raises(rf.StateError, match="finite"):
        rf.contact.forces(m, GROUNDS[ground], q[2], v[2])


def test_lists_and_texts_beside_a_lost_state() -> None:
    """A lost state is nowhere near gimbal lock, and entries explain themselves without values."""
    m = ROBOTS["free_euler"]()
    q = np.array([m.random(seed)[0] for seed in range(4)])
    q[:, m.coordinates.index("base.x2")] = np.pi / 2 - 1e-4 * np.arange(1, 5)
    near = m.singularities(q)
    q[2] = np.nan
    assert near
    assert m.singularities(q) == [one for one in near if one.state != (2,)]
    assert str(m.explain(q)) == str(m.explain(q[:2]))
    for ask in (m.singularities, m.explain):
        with pytest.raises(rf.StateError, match="finite"):
            ask(q[2])


LAWS: dict[str, Callable[[rf.Model], Any]] = {
    "pd": lambda m: rf.control.PD(rf.motion.Hold([0.1] * 3), kp=3.0, kd=0.2),
    "pid": lambda m: rf.control.PID(rf.motion.Hold([0.1] * 3), kp=3.0, ki=1.0),
    "computed_torque": lambda m: rf.control.ComputedTorque(rf.motion.Hold([0.1] * 3)),
    "python": lambda m: rf.control.Function(lambda t, q, v: [-float(x) for x in v]),
}


@pytest.mark.parametrize("law", LAWS)
def test_torques_of_laws_beside_a_lost_state(law: str) -> None:
    """As the text on NumPy, which answers first, and compiled, after some calls."""
    m = rf.load("planar_3r")
    control = LAWS[law](m)
    rng = np.random.default_rng(3)
    q, v, t = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), np.linspace(0.0, 1.0, 6)
    z = control.initial_states(m, q, v)
    for _ in range(40):
        whole = control.torque(m, t, q, v)
        for i, lost in enumerate((q, v)):
            rows = lost.copy()
            rows[2, 1] = np.nan
            state = (rows, v) if i == 0 else (q, rows)
            tau = control.torque(m, t, *state)
            assert np.isnan(tau[2]).all()
            np.testing.assert_allclose(np.delete(tau, 2, 0), np.delete(whole, 2, 0), rtol=1e-14)
            start = control.initial_states(m, *state)
            assert start.shape == z.shape
            assert np.isnan(start[2]).all()
            assert np.array_equal(np.delete(start, 2, 0), np.delete(z, 2, 0))
    assert np.isnan(control.torque(m, 0.0, np.full((2, 3), np.nan), v[:2])).all()
    for bad in (np.nan, np.inf):
        with pytest.raises(rf.StateError, match="finite"):
            control.torque(m, 0.0, [0.0, bad, 0.0], [0.0] * 3)  # one state
        with pytest.raises(rf.StateError, match="finite"):
            control.torque(m, bad, q, v)  # shared by all states
    with pytest.raises(rf.StateError, match="finite"):
        control.torque(m, 0.0, np.where(np.arange(6)[:, None] == 3, np.inf, q), v)


def test_what_remains_an_error_of_linearize() -> None:
    m = rf.load("planar_3r")
    o = np.zeros((4, 3))
    for q, v in ((np.full(3, np.nan), o), (np.where(np.arange(4)[:, None] == 1, np.inf, o), o)):
        with pytest.raises(rf.StateError, match="finite"):
            rf.linearize(m, q, v, o)
    A, B = rf.linearize(
        m, np.full((4, 3), np.nan), o, o, control=rf.control.PID(rf.motion.Hold([0.0] * 3))
    )
    assert A.shape == (4, 9, 9)
    assert B.shape == (4, 9, 3)
    assert np.isnan(A).all()
    assert np.isnan(B).all()
