"""Overconstrained linkages: they fall freely, whatever the cut and the axes of the rows."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from closed_systems import four_bar
from comparing import close
from linkages import LINKAGES, Linkage, drift, in_axes

import ramify as rf
from ramify.core.arrays import Array
from ramify.integrate import closed_run
from ramify.integrate.integrators import scheme_of
from ramify.integrate.stepping import stepper
from ramify.loops import closed_dynamics
from ramify.loops.stabilise import projector
from ramify.model.frame import Frame
from ramify.plant.make_field import PlantOptions, make_field

BY_NAME = {str(linkage): linkage for linkage in LINKAGES}
QUICK = (
    ("bennett_0", 2), ("bennett_2", 4), ("goldberg_1", 3), ("myard_0", 5), ("sarrus_0", 4), ("line_symmetric_4", 6),
    ("trihedral_0", 2), ("plane_0", 3),
)  # fmt: skip
AXES = (0.7, -1.1, 2.3)


def turned(linkage: Linkage, cut: int) -> tuple[rf.Model, Array]:
    model = in_axes(linkage.model(cut), AXES)
    return model, linkage.start_of(model)


@pytest.mark.parametrize(("name", "cut"), QUICK)
def test_a_linkage_that_falls_keeps_its_energy(name: str, cut: int) -> None:
    """Rows that vanish where others do not made redundant ones look independent: all energy went
    when a hinge of a Bennett linkage passed zero. ``python tests/linkages.py`` runs all twenty.
    """
    model, q = turned(BY_NAME[name], cut)
    c = model.constraints(q)
    assert c.mobility == 1
    assert c.rank < len(c.names)
    run = rf.simulate(model, 3.0, q, rtol=1e-10, atol=1e-12)
    assert drift(run) < 1e-8  # 1e-9 at most for all twenty with every cut
    assert run.audit.passed, str(run.audit)
    assert run.stats["thrown_by_loops"] == 0


def test_cuts_and_axes_change_nothing() -> None:
    """The same hinge at the end of the same fall."""
    linkage, ends = BY_NAME["goldberg_1"], []
    for cut, axes in ((2, (0.0, 0.0, 0.0)), (4, AXES)):
        model = in_axes(linkage.model(cut), axes)
        run = rf.simulate(model, 1.5, linkage.start_of(model), rtol=1e-11, atol=1e-12)
        ends.append(run.q[-1, list(model.coordinates).index("j1")])
    close(ends[1], ends[0], rtol=0.0, atol=1e-7, of="j1")


def moving(model: rf.Model, q: Array) -> tuple[Array, Array]:
    """Rates (nv) that keep the loops closed, of 2 rad/s at most, and joint forces."""
    c = model.constraints(q)
    v = np.linalg.svd(c.scaled)[2][-1]
    return 2.0 * v / np.abs(v).max(), np.random.default_rng(5).normal(size=model.nv)


def by_null_space(model: rf.Model, q: Array, v: Array, tau: Array) -> Array:
    """Accelerations by the null space of J: N' (M a + h - tau) = 0, J a = -J' v."""
    c = model.constraints(q, v)
    _, _, vt = np.linalg.svd(c.J)
    N = vt[c.rank :].T
    own = -np.linalg.pinv(c.J, rcond=1e-6) @ c.Jdot_v
    M, h = model.tree.mass_matrix(q), model.tree.bias(q, v)
    return own + N @ np.linalg.solve(N.T @ M @ N, N.T @ (tau - h - M @ own))


@pytest.mark.parametrize(("name", "cut"), [("bennett_1", 3), ("myard_1", 2), ("trihedral_2", 4)])
def test_accelerations_and_forces_depend_neither_on_axes_nor_on_1e_10_of_posture(
    name: str, cut: int
) -> None:
    plain = BY_NAME[name].model(cut)
    start = BY_NAME[name].start_of(plain)
    near = plain.assemble({"j1": 1e-5}, guess=start).q  # where rows vanish
    for q in (start, near):
        v, tau = moving(plain, q)
        a, lam = closed_dynamics.multipliers(plain, q, v, tau, None)
        close(a, by_null_space(plain, q, v, tau), rtol=1e-9, atol=1e-9, of="a")
        force = plain.loop_forces(q, lam)
        model = in_axes(plain, AXES)
        other, mu = closed_dynamics.multipliers(model, q, v, tau, None)
        close(other, a, rtol=1e-9, atol=1e-9, of="a in other axes")
        close(model.loop_forces(q, mu), force, rtol=1e-8, atol=1e-8, of="force")
        for seed in range(3):
            off = q + 1e-10 * np.random.default_rng(seed).normal(size=len(q))
            assert model.constraints(off).rank == plain.constraints(q).rank
            other, mu = closed_dynamics.multipliers(model, off, v, tau, None)
            close(other, a, rtol=1e-8, atol=1e-8, of="a nearby")
            close(model.loop_forces(off, mu), force, rtol=1e-7, atol=1e-7, of="force nearby")


@pytest.mark.parametrize("turn", [0.0, 1e-9, 1e-7, 1e-6, 3e-6, 1e-4, 0.3])
def test_ball_joints_of_plane_linkages_may_be_turned(turn: float) -> None:
    """The axes of a ball joint's rows mean nothing, also where a row is almost out of the plane."""
    model = four_bar(kind="spherical")
    state = model.assemble({"crank": 1.0}, rates={"crank": 2.0})
    force = model.inverse_dynamics(*state, multipliers=True)
    a, lam = model.forward_dynamics(state.q, state.v, np.zeros(3), multipliers=True)
    for rpy in ((turn, 0.0, 0.0), (turn, 1.5 + turn, 0.2), (1.0, 2.0 * turn, 3.0)):
        other = in_axes(model, rpy)
        there = other.forward_dynamics(state.q, state.v, np.zeros(3), multipliers=True)
        close(there[0], a, rtol=1e-9, atol=1e-9, of="a")
        close(
            other.loop_forces(state.q, there[1]), model.loop_forces(state.q, lam),
            rtol=1e-8, atol=1e-8, of="force",
        )  # fmt: skip
        tau, mu = other.inverse_dynamics(*state, multipliers=True)
        close(tau, force[0], rtol=1e-8, atol=1e-9, of="tau")
        close(
            other.loop_forces(state.q, mu), model.loop_forces(state.q, force[1]),
            rtol=1e-8, atol=1e-8, of="force of tau",
        )  # fmt: skip


NECK = """<mujoco model="neck"><option gravity="0 0 -9.81"/><worldbody>
  <body name="left" pos="-0.05 0 0"><joint name="left" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.1" size="0.01" density="4000"/>
    <body name="plate" pos="0 0 0.1"><joint name="plate" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.01" density="4000"/>
      <site name="knee" pos="0.1 0 0" euler="{first}"/></body></body>
  <body name="right" pos="0.05 0 0"><joint name="right" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.13" size="0.01" density="4000"/>
    <site name="end" pos="0 0 0.13" euler="{second}"/></body>
</worldbody><equality><connect name="pin" site1="knee" site2="end"/></equality></mujoco>"""


@pytest.mark.filterwarnings("ignore::ramify.core.warning.LeftOutWarning")
def test_sites_of_a_connect_may_be_turned(tmp_path: Path) -> None:
    """A plane linkage of a neck, held by one MJCF connect; how its sites are turned says nothing."""
    runs = []
    for i, turns in enumerate(
        (("0 0 0", "0 0 0"), ("30 50 -20", "-100 15 60"), ("0 90 0", "0 0.001 90"))
    ):
        path = tmp_path / f"neck{i}.xml"
        path.write_text(NECK.format(first=turns[0], second=turns[1]))
        model = rf.load(path)
        start = model.assemble({"left": 0.4}, guess={"left": 0.4, "plate": -0.4, "right": 0.4})
        runs.append(rf.simulate(model, 1.0, start.q, rtol=1e-11, atol=1e-12, dt_out=0.1))
    for run in runs:
        assert (
            np.abs(run.energy.total - run.energy.total[0]).max() < 1e-8 * run.energy.kinetic.max()
        )
        close(run.q, runs[0].q, rtol=0.0, atol=1e-7, of="q")


@pytest.mark.parametrize("name", ["bennett_0", "sarrus_0", "trihedral_0"])
def test_projections_close_the_loops_and_keep_what_is_closed(name: str) -> None:
    model, q = turned(BY_NAME[name], 3)
    settle, (v, _) = projector(model), moving(model, q)
    rng = np.random.default_rng(2)
    closed = settle(np.concatenate([q, v]))
    close(closed, np.concatenate([q, v]), rtol=0.0, atol=1e-9, of="a closed state")
    off = np.concatenate([q + 1e-5 * rng.normal(size=len(q)), v + 1e-3 * rng.normal(size=len(v))])
    assert model.constraints(off[: len(q)]).gap > 1e-6
    y = settle(off)
    c = model.constraints(y[: len(q)])
    assert c.gap < 1e-9
    close(c.J @ y[len(q) :], 0.0, atol=1e-8, of="J v")
    close(y, off, rtol=0.0, atol=0.05, of="the state")


def test_loops_that_come_apart_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the row that is open most."""
    model = rf.load("four_bar")
    state = model.assemble({"crank": 1.0}, rates={"crank": 2.0})

    def torn(y: Array) -> Array:
        return np.append(y[:1] + 2e-5, y[1:])

    monkeypatch.setattr(closed_run, "projector", lambda model: torn)
    with pytest.raises(
        rf.SimulationError, match=r"do not close any more at t = .*: pin\.[xy] is off by"
    ):
        rf.simulate(model, 0.2, state.q, state.v)


def test_a_projection_that_throws_the_linkage_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where closing the loops takes a part of the velocity, the run says how much of which joint."""
    model = rf.load("four_bar")
    sound = closed_run.projector(model)

    def thrown(y: Array) -> Array:
        out = np.array(sound(y))
        if out[0] < 0.8:
            out[model.nq :] *= 0.9
        return out

    state = model.assemble({"crank": 1.0}, rates={"crank": 2.0})
    monkeypatch.setattr(closed_run, "projector", lambda model: thrown)
    with pytest.warns(
        RuntimeWarning, match=r"changed rates .* that of 'crank' by up to 2\.\d+ rad/s, 10 % of"
    ):
        run = rf.simulate(model, 0.2, state.q, state.v)
    assert run.stats["thrown_by_loops"] > 0
    assert not run.audit.passed


@pytest.mark.parametrize("method", ["rk4", "euler", "semi_implicit_euler", "implicit_euler"])
def test_fixed_steps_that_throw_the_linkage_are_reported_like_others(method: str) -> None:
    """Compiled steps close the loops themselves, and said nothing. Beside them, a step without
    closing and the projection, in Python: the same number of steps, the same largest change.
    """
    model = rf.load("four_bar")
    state = model.assemble({"crank": 1.0}, rates={"crank": 20.0})
    dt, steps = (1e-2, 25) if method == "rk4" else (1e-3, 60)
    with pytest.warns(RuntimeWarning, match=r"changed rates .* that of 'crank' by up to") as caught:
        run = rf.simulate(model, steps * dt, state.q, state.v, method=method, step=dt, dt_out=dt)
    text = str(caught[0].message)
    project, scheme = closed_run.projector(model), scheme_of(method)
    field = make_field(model, None, PlantOptions(implicit=scheme.implicit))
    open_steps, inputs = (
        stepper(field, scheme),
        np.append(np.zeros(field.input_size), field.numbers),
    )
    changes, fastest, count = [], 0.0, 0
    for q, v in zip(run.q[:-1], run.v[:-1], strict=True):
        free = open_steps.run(field.start(q[None], v[None]), inputs, 1, dt)[0][
            0, : model.nq + model.nv
        ]
        rates, closed = free[model.nq :], project(free.copy())[model.nq :]
        fastest = max(fastest, float(np.abs(rates).max()))
        changes.append(float(np.abs(closed - rates).max()))
        count += changes[-1] > 1e-3 * fastest
    assert run.stats["thrown_by_loops"] == count > 0
    said = re.search(rf"{count} times: that of 'crank' by up to (\S+) rad/s", text)
    assert said is not None
    np.testing.assert_allclose(float(said[1]), max(changes), rtol=1e-2)
    if method == "rk4":  # in two steps alone, and rollouts look at one in eight
        return
    batch = [np.stack([x, x]) for x in (state.q, state.v)]
    batch[1][1] *= 1e-3
    with pytest.warns(RuntimeWarning, match=r"changed rates .* in 1 of 2 states: that of 'crank'"):
        rf.rollout(model, *batch, steps=steps, dt=dt, method=method)
    with pytest.warns(RuntimeWarning, match=r"changed rates .* in 1 of 2 states: that of 'crank'"):
        rf.rollout(
            model, *batch, steps=steps, dt=dt, method=method, control=lambda t, q, v: 0.0 * v
        )


# ---- rates of the start ----


def beside(model: rf.Model, *others: rf.Model) -> rf.Model:
    """Robots on one base, each with its own loops."""
    bodies, loops, attached = list(model.bodies), list(model.loops), dict(model.attached)
    for i, other in enumerate(others):
        first = len(bodies)
        rename = {body.name: f"{body.name}_{i}" for body in other.bodies}
        for body in other.bodies:
            parent = body.parent if body.parent < 0 else body.parent + first
            joint = replace(body.joint, name=f"{body.joint.name}_{i}")
            bodies.append(replace(body, name=rename[body.name], parent=parent, joint=joint))
        for loop in other.loops:
            ends = [
                replace(end, link=rename.get(end.link or "")) for end in (loop.first, loop.second)
            ]
            loops.append(replace(loop, name=f"{loop.name}_{i}", first=ends[0], second=ends[1]))
        attached |= {
            rename[name]: place._replace(body=place.body + first)
            for name, place in other.attached.items()
        }
    return replace(model, bodies=tuple(bodies), loops=tuple(loops), attached=attached)


def wheel() -> rf.Model:
    return rf.Builder("wheel").link("wheel", mass=1.0, inertia=(0.1, 0.1, 0.1)).model()


def train() -> rf.Model:
    return rf.Builder("train").link("train", joint="prismatic", mass=1e4).model()


@pytest.mark.parametrize("other", ["wheel", "train", "second loop"])
def test_what_moves_elsewhere_does_not_hide_rates_that_open_a_loop(other: str) -> None:
    """The tolerance of v0 was a share of the fastest joint, also of one outside the loop."""
    model = rf.load("four_bar")
    state = model.assemble({"crank": 1.0}, rates={"crank": 2.0})
    added = {"wheel": wheel, "train": train, "second loop": lambda: model}[other]()
    both = beside(model, added)
    q = np.append(state.q, state.q if added.loops else [0.0])
    fast = np.append(state.v, 500.0 * state.v if added.loops else [1000.0])
    assert rf.simulate(both, 1e-3, q, fast).options["start"] == "as given"
    off = fast + np.append([0.0, 0.05, 0.0], np.zeros(added.nv))
    for run in (
        lambda: rf.simulate(both, 0.1, q, off),
        lambda: rf.rollout(both, q, off, steps=3, dt=1e-3),
    ):
        with pytest.raises(rf.LoopError, match=r"v0 of state 0 .* pin\.. by .*model\.assemble"):
            run()


@pytest.mark.parametrize("many", [False, True])
def test_a_small_change_of_v0_is_reported(many: bool) -> None:
    """Rates to four digits are closed, and the change is not silent; those of assembly are kept."""
    model = rf.load("four_bar")
    state = model.assemble({"crank": 1.0}, rates={"crank": 2.0})
    v = np.round(state.v, 4)
    q = np.stack([state.q, state.q]) if many else state.q

    def start(rates: Array) -> object:
        if many:  # the second state is the one
            return rf.rollout(model, q, np.stack([state.v, rates]), steps=2, dt=1e-3)
        return rf.simulate(model, 0.01, q, rates)

    with pytest.warns(
        RuntimeWarning, match=rf"v0 of state {int(many)} .*pin\.. by .* m/s.*model\.assemble"
    ):
        start(v)
    start(state.v)


def test_rates_of_tilts_are_angular() -> None:
    """Two hinges along x tilt what a third holds upright, in rad/s, however large the robot is."""
    b = rf.Builder("gimbal", gravity=(0, 0, 0))
    box = {"mass": 1.0, "com": (0.3, 0, 0), "inertia": (0.1, 0.2, 0.2)}
    b.link("yaw", axis=(0, 0, 1), **box)
    b.link("roll", "yaw", axis=(1, 0, 0), **box).link("back", "roll", axis=(1, 0, 0), **box)
    b.loop("upright", "cylindrical", (None, (0, 0, 0)), ("back", (0, 0, 0)))
    model, q = b.model(), np.zeros(3)
    with pytest.raises(rf.LoopError, match=r"upright\.tilt_x by 0\.3 rad/s;"):
        rf.simulate(model, 0.01, q, [1.0, 0.5, -0.2])
    with pytest.warns(RuntimeWarning, match=r"upright\.tilt_x by 0\.0001 rad/s, of 1 rad/s of"):
        rf.simulate(model, 0.01, q, [1.0, 0.5, -0.4999])
    with pytest.raises(rf.LoopError, match=r"q0 .*upright\.tilt_x by 11\.5 degrees;"):
        rf.simulate(model, 0.01, [0.0, 0.5, -0.3])


def test_the_size_of_a_loop_is_its_own() -> None:
    """Rounding in a small loop is measured by its own size, not by the robot's."""
    model = rf.load("four_bar")
    small = replace(model.loops[0], planar=False)
    raised = Frame(position=small.first.frame.position + np.array([0.0, 0.0, 5e-5]))
    arm = rf.Builder("arm").link("boom", mass=1.0, com=(5.0, 0, 0), inertia=(0.1, 9.0, 9.0)).model()
    crooked = replace(small, first=replace(small.first, frame=raised))
    both = beside(replace(model, loops=(crooked,)), arm)
    with pytest.raises(rf.LoopError, match=r"pin\.z misses by 5e-05 m"):
        both.assemble({"crank": 0.3})
