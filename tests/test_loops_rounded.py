"""Loops with rounded data: rows that follow from others but for a few digits hold nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from closed_systems import four_bar
from linkages import LINKAGES, ring

import ramify as rf
from ramify.kernels.make import kernel
from ramify.loops.rank import RankWatch
from ramify.model.frame import Frame, from_rpy

MOVING: Any = ({"crank": 1.0}, {"crank": 2.0}, None, {"crank": 3.0})


@pytest.mark.parametrize("off", [1e-12, 1e-8])
@pytest.mark.parametrize("how", ["height", "tilt"])
def test_rounded_data_are_closed_and_the_redundant_rows_named(off: float, how: str) -> None:
    """A plane four-bar with spatial pins, one of them a nanometre out of the plane."""
    exact = rf.load("four_bar")
    pin = exact.loops[0]
    frame = Frame(from_rpy(off, 0.0, 0.0), pin.first.frame.position)
    if how == "height":
        frame = Frame(position=pin.first.frame.position + np.array([0.0, 0.0, off]))
    loop = replace(pin, planar=False, first=replace(pin.first, frame=frame))
    model = replace(exact, loops=(loop,))
    state = model.assemble({"crank": 0.3}, rates={"crank": 1.0})
    wanted = exact.assemble({"crank": 0.3}, rates={"crank": 1.0})
    np.testing.assert_allclose(state.q, wanted.q, atol=1e-9)
    np.testing.assert_allclose(state.v, wanted.v, atol=1e-7)
    if off > 1e-10:
        assert ("pin.z" if how == "height" else "pin.tilt_x") in state.note
        assert "rounded data" in state.note
    assert model.constraints(state.q).mobility == 1
    o = np.zeros(3)
    np.testing.assert_allclose(
        model.forward_dynamics(state.q, o, o), exact.forward_dynamics(wanted.q, o, o), rtol=1e-6
    )
    run, peer = (rf.simulate(m, 0.3, wanted.q) for m in (model, exact))
    np.testing.assert_allclose(run.q[-1], peer.q[-1], atol=1e-6)
    assert run.audit.passed
    far = replace(loop, first=replace(loop.first, frame=Frame(position=[0.038, 0.0, 1e-4])))
    with pytest.raises(rf.LoopError, match=r"pin\.z misses by 0\.0001 m in every posture"):
        replace(model, loops=(far,)).assemble({"crank": 0.3})


@pytest.mark.parametrize(
    ("offset", "tilts"),
    [
        *((0.0, (tilt, 0.0)) for tilt in (1e-10, 1e-9, 3e-9, 1e-8, 3e-8, 1e-7)),
        *((0.0, (0.0, tilt)) for tilt in (1e-10, 1e-9, 3e-9, 1e-8, 3e-8, 1e-7)),
        (1e-8, (1e-8, -2e-8)),
        (0.0, (3e-7, -2e-7)),
    ],
)
def test_rounded_axes_change_neither_forces_nor_reactions(
    offset: float, tilts: tuple[float, float]
) -> None:
    """Rows that the tilts alone make independent must not lock the four-bar."""
    exact, model = four_bar(planar=False), four_bar(planar=False, tilts=tilts, offset=offset)
    wanted, state = exact.assemble(*MOVING), model.assemble(*MOVING)
    for x, y in zip(state, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)
    expected = exact.inverse_dynamics(*wanted, multipliers=True)
    tau, lam = model.inverse_dynamics(*state, multipliers=True)
    assert expected[0][0] > 1.0
    np.testing.assert_allclose(tau, expected[0], rtol=1e-6)
    forces = [model.loop_forces(state.q, lam), exact.loop_forces(wanted.q, expected[1])]
    turned = max(map(abs, tilts)) * np.abs(forces[1]).max()  # the axes of the pin, and so the force
    np.testing.assert_allclose(*forces, rtol=1e-6, atol=1e-6 + turned)
    np.testing.assert_allclose(model.inverse_dynamics(*state), tau, rtol=1e-12)
    whole = kernel(model, "inverse_dynamics_whole")(*state)
    np.testing.assert_allclose(np.concatenate(whole[:2]), [*tau, *lam], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.forward_dynamics(state.q, state.v, tau), state.a, rtol=1e-9)
    np.testing.assert_allclose(
        model.reactions(*state), exact.reactions(*wanted), rtol=1e-5, atol=1e-4
    )


@pytest.mark.parametrize("tilt", [0.0, 3e-9, 1e-7])
def test_rounded_rows_drive_nothing(tilt: float) -> None:
    """A ball joint's third row, tiny but not zero, would make three equations for three
    multipliers of a four-bar without a drive.
    """
    model = four_bar(kind="spherical", actuated=False, tilts=(tilt, 0.0))
    state = model.assemble({"crank": 1.0}, accelerations={"crank": 3.0})
    with pytest.raises(rf.LoopError, match="cannot give this motion"):
        model.inverse_dynamics(*state)


def crooked(height: float = 0.0, tilt: float = 0.0) -> rf.Model:
    """The four-bar with a spatial pin out of its plane; its longest bar is 0.1152 m."""
    exact = rf.load("four_bar")
    pin = exact.loops[0]
    frame = Frame(from_rpy(tilt, 0.0, 0.0), pin.first.frame.position + np.array([0, 0, height]))
    loop = replace(pin, planar=False, first=replace(pin.first, frame=frame))
    return replace(exact, loops=(loop,))


WAYS: dict[str, Any] = {
    "assemble": lambda model, q: model.assemble({"crank": 0.3}),
    "simulate": lambda model, q: rf.simulate(model, 0.01),
    "simulate from q0": lambda model, q: rf.simulate(model, 0.01, q),
    "rollout": lambda model, q: rf.rollout(model, q, 0.0 * q, steps=2, dt=1e-3),
}


@pytest.mark.parametrize("way", WAYS)
def test_one_tolerance_for_gaps_of_rounded_data(way: str) -> None:
    """1e-4 of the largest distance between two joints of a bar, or 1e-4 rad: 3e-7 m was too much
    for assembly, 1e-5 m was not for a run from q0.
    """
    q = rf.load("four_bar").assemble({"crank": 0.3}).q
    for model in (crooked(3e-7), crooked(1.1e-5), crooked(tilt=9e-5)):
        WAYS[way](model, q)
    for model, row in (
        (crooked(1.2e-5), "z"),
        (crooked(3e-5), "z"),
        (crooked(tilt=1.1e-4), "tilt_x"),
    ):
        with pytest.raises(rf.LoopError, match=rf"pin\.{row} misses by \S+ \S+ ") as raised:
            WAYS[way](model, q)
        assert "out of reach" not in str(raised.value)
        assert "guess" not in str(raised.value)


@pytest.mark.parametrize("tilt", [1e-5, 9e-5])
def test_forces_of_a_rounded_four_bar_are_those_of_the_exact_one(tilt: float) -> None:
    """Accelerations may open what holds nothing; a drive counts the same rows."""
    model, exact = crooked(tilt=tilt), crooked()
    moving, wanted = model.assemble(*MOVING), exact.assemble(*MOVING)
    tau = model.inverse_dynamics(*moving)
    np.testing.assert_allclose(tau, exact.inverse_dynamics(*wanted), rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(
        model.forward_dynamics(*(moving.q, moving.v), tau), moving.a, rtol=1e-3
    )
    motion = rf.motion.Cycloid([1.0], [1.5], 0.2)
    law = rf.control.Prescribed(motion, actuated=["crank"])
    run = rf.simulate(model, 0.2, moving.q, control=law)
    assert abs(run.q[-1, 0] - 1.5) < 1e-6


def bars(cut: str, ground: float) -> rf.Model:
    """A four-bar with pins of space, and bars of 0.2, 0.5 and 0.45 m."""
    made = rf.Mechanism("short", gravity=(0, -9.81, 0))
    for name, length in (("a", 0.2), ("c", 0.5), ("b", 0.45)):
        made.body(name, mass=1, com=(length / 2, 0, 0), inertia=(1e-3, 0.02, 0.02))
    made.joint("A", None, "a", actuated=False)
    made.joint("B", ("a", (0.2, 0, 0)), "c", actuated=False)
    made.joint("C", ("c", (0.5, 0, 0)), ("b", (0.45, 0, 0)), actuated=False)
    made.joint("D", (None, (ground, 0, 0)), "b", actuated=False)
    return made.near(A=1.2, D=1.6).model(cut=[cut])


@pytest.mark.parametrize("cut", ["A", "B", "C", "D"])
def test_a_linkage_that_cannot_close_says_by_how_much(cut: str) -> None:
    """The bars do not span 5 m, whatever the axes of the rows."""
    model = bars(cut, 5.0)
    with pytest.raises(rf.LoopError, match=rf"{cut}\.x.* miss(es)? by 3\.85 m in every posture"):
        model.assemble()


@pytest.mark.parametrize("cut", ["B", "C"])
def test_a_posture_out_of_reach_names_the_whole_gap(cut: str) -> None:
    """By Pythagoras, and not by its largest component."""
    crank, rocker = (x * np.exp(1j * angle) for x, angle in ((0.2, 2.0), (0.45, 0.3)))
    gap = abs(0.6 + rocker - crank) - 0.5
    rows = rf"a gap of {gap:.3g} m remains in {cut}\.x"
    with pytest.raises(rf.LoopError, match=rows):
        bars(cut, 0.6).assemble({"A": 2.0, "D": 0.3})


@pytest.mark.parametrize("cut", [2, 3, 4])
def test_a_bar_that_is_too_long_is_not_the_wrong_way_round(cut: int) -> None:
    """Bars of 0.8, 0.5 and 0.8 m leave 0.4 m of 2.5 m open at least, with twists more."""
    bars = [(2.5, 0.6), (0.8, 0.9), (0.5, 0.6), (0.8, 0.9)]
    model = ring("long", bars, np.random.default_rng(0), cut)
    for given in (None, {model.coordinates[0]: 0.5}):
        with pytest.raises(rf.LoopError, match="cannot be assembled") as raised:
            model.assemble(given)
        assert "guess" not in str(raised.value)
        (gap,) = re.findall(rf"of (\S+) m in j{cut}\.x", str(raised.value))
        assert 0.4 <= float(gap) < 0.5


def test_an_axis_that_points_the_wrong_way_is_named() -> None:
    model = four_bar(planar=False)
    (loop,) = model.loops
    over = Frame(from_rpy(np.pi, 0.0, 0.0), loop.second.frame.position)
    turned = replace(model, loops=(replace(loop, second=replace(loop.second, frame=over)),))
    with pytest.raises(rf.LoopError, match=r"'pin' closes only the wrong way round.* frames round"):
        turned.assemble({"crank": 0.4})


def test_gaps_of_rounded_data_are_noted() -> None:
    model = crooked(1e-5)
    told = "pin.z follow from other rows and miss by 1e-05 m: rounded data"
    assert told in model.assemble({"crank": 0.3}).note
    assert told in rf.simulate(model, 0.01).options["start"]
    (found,) = [x for x in model.check() if x.code == "rounded-loops"]
    assert told in found.message
    assert not [x for x in crooked().check() if x.code == "rounded-loops"]


def test_a_posture_out_of_reach_is_said_to_be() -> None:
    """And nothing else is: the loop closes elsewhere."""
    with pytest.raises(rf.LoopError, match="this posture is out of reach"):
        four_bar(planar=False).assemble({"crank": 0.0, "rocker": 2.5})


@pytest.mark.parametrize("name", ["bennett_0", "trihedral_2"])
def test_a_rounded_linkage_moves_as_the_exact_one(name: str) -> None:
    """Lengths and twists to five digits."""
    linkage = next(x for x in LINKAGES if str(x) == name)
    exact, model = linkage.model(3), linkage.model(3, digits=5)
    q = linkage.start_of(exact)
    start, rate = {"j1": linkage.start}, {"j1": 2.0}
    state = model.assemble(start, rate, guess=q, accelerations={"j1": 3.0})
    c = model.constraints(state.q)
    assert c.mobility == 1
    assert RankWatch.at(c.scaled, c.tolerance).rank == c.rank
    run, peer = rf.simulate(model, 0.5, state.q), rf.simulate(exact, 0.5, q)
    assert np.abs(peer.q[-1] - q).max() > 0.1
    np.testing.assert_allclose(run.q[-1], peer.q[-1], atol=1e-4)


def test_a_rounded_linkage_that_closes_exactly_at_home_is_not_locked() -> None:
    """Its last frame is computed from the others there, as programs do that draw machines: six rows
    less one that all count, by 1e-5, but the linkage moves on as the exact one does.
    """
    linkage = next(x for x in LINKAGES if str(x) == "trihedral_2")
    exact, model = linkage.model(3), linkage.model(3, digits=5)
    q = linkage.start_of(exact)
    (loop,) = model.loops
    ends = [
        Frame() if end.link is None else Frame(*model.pose(q, end.link))
        for end in (loop.first, loop.second)
    ]
    second = ends[1].inverse() @ ends[0] @ loop.first.frame
    home = dict(zip(model.coordinates, q.tolist(), strict=True))
    loop = replace(loop, second=replace(loop.second, frame=second))
    model = replace(model, loops=(loop,), guess=home)
    c = model.constraints(q)
    assert c.gap < 1e-12
    assert 1e-6 < np.linalg.svd(c.scaled, compute_uv=False)[-1] < 1e-3
    assert c.mobility == 1
    run, peer = rf.simulate(model, 0.4, q), rf.simulate(exact, 0.4, q)
    assert np.abs(peer.q[-1] - q).max() > 0.1
    np.testing.assert_allclose(run.q[-1], peer.q[-1], atol=1e-3)


@pytest.mark.parametrize("rate", [1e-4, 2.0, 1e3])
def test_rates_that_contradict_each_other_are_refused(rate: float) -> None:
    """What rounded data may miss by is a share of the motion, slow or fast, and no more."""
    model = four_bar(planar=False, tilts=(3e-8, 0.0))
    state = model.assemble({"crank": 1.0}, {"crank": rate})
    both, rates, second = (
        {k: float(x[i]) for i, k in enumerate(("crank", "rocker"))} for x in state
    )
    again = model.assemble(both, rates, accelerations=second)
    np.testing.assert_allclose(again.v, state.v, rtol=1e-6)
    with pytest.raises(rf.LoopError, match="or more is given than can be free"):
        model.assemble(both, {**rates, "rocker": rates["rocker"] * 1.001}, accelerations=second)


def bennett(digits: int | None, near: float = 0.8) -> tuple[rf.Model, Any]:
    """A Bennett linkage whose guess is a posture of the exact one, and that posture."""
    linkage = next(x for x in LINKAGES if str(x) == "bennett_1")
    model = linkage.model(4, digits=digits)
    start = replace(linkage, start=near).start_of(model)
    guess = dict(zip(model.coordinates, map(float, start), strict=True))
    return replace(model, guess=guess), start


def test_a_linkage_that_rounding_locks_says_so_at_the_start_of_a_run() -> None:
    """With two digits the loops close in the folded posture alone, where nothing moves: the run
    stood still there, and its audit passed, without a word.
    """
    model, start = bennett(2)
    with pytest.warns(RuntimeWarning) as caught:
        r = rf.simulate(model, 0.1)
    far, locked = (str(w.message) for w in caught)
    assert re.search(r"'j\d' 0\.8 rad away from the guess: none nearer was found", far)
    assert (
        "at the start 'bennett_1' has 0 degrees of freedom in this posture, and nearly 1" in locked
    )
    assert "loop 'j4' stops a motion" in locked
    assert "more digits" in locked
    assert np.abs(r.q[0] - start).max() > 0.7
    assert np.ptp(r.q, axis=0).max() < 1e-9
    codes = {f.code: f for f in model.check()}
    assert {"locked-loops", "far-from-guess"} <= set(codes)
    assert codes["locked-loops"].level == "warning"
    assert "away from the guess" in model.assemble().note
    assert "away from the guess" in model.assemble(guess=start).note
    folded = model.assemble().q
    with pytest.warns(RuntimeWarning, match="has 0 degrees of freedom .* loop 'j4' stops"):
        rf.simulate(model, 0.01, folded)
    with pytest.warns(RuntimeWarning, match="has 0 degrees of freedom .* loop 'j4' stops"):
        rf.rollout(model, folded, 0.0 * folded, steps=2, dt=1e-3)


@pytest.mark.parametrize("digits", [5, None])
@pytest.mark.parametrize("near", [0.8, 0.1])
def test_a_linkage_with_enough_digits_starts_near_its_guess(
    digits: int | None, near: float
) -> None:
    """Warnings are errors here."""
    model, start = bennett(digits, near)
    r = rf.simulate(model, 0.1)
    np.testing.assert_allclose(r.q[0], start, atol=1e-3)
    assert np.ptp(r.q, axis=0).max() > 1e-4
    assert not {"locked-loops", "far-from-guess"} & {f.code for f in model.check()}


def truss(width: float) -> rf.Model:
    """A triangle of pins, rigid whatever its digits."""
    frame = rf.Mechanism("truss").near(left=1.0 if width < 1.5 else 0.03)
    for name in ("left", "right"):
        frame.body(name, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    frame.joint("left", None, "left", planar=True)
    frame.joint("right", (None, (width, 0, 0)), "right", planar=True)
    frame.joint("top", ("left", (1.0, 0, 0)), ("right", (1.0, 0, 0)), planar=True)
    return frame.model()


def test_a_frame_that_cannot_move_says_so() -> None:
    with pytest.warns(RuntimeWarning, match="'truss' has 0 degrees of freedom .* nothing moves"):
        rf.simulate(truss(1.0), 0.02)


def test_a_start_that_closing_moves_far_says_so() -> None:
    """Nearly stretched, a gap of half a millimetre is 0.02 rad."""
    model = truss(1.999)
    q = model.assemble().q
    loose = np.linalg.svd(model.constraints(q).scaled)[2][-1]
    with pytest.warns(RuntimeWarning) as caught:
        r = rf.simulate(model, 0.01, q + 0.025 * loose)
    np.testing.assert_allclose(r.q[0], q, atol=1e-9)
    text = str(caught[0].message)
    assert "'truss': q0 moved by 0.0204" in text
    assert "(gap 0.0005" in text
    with pytest.warns(RuntimeWarning) as caught:  # of the truss that is locked alone
        rf.simulate(model, 0.01, q + 0.003 * loose)
    assert not any("moved" in str(w.message) for w in caught)


def test_a_stretched_four_bar_that_moves_is_not_called_locked() -> None:
    """Warnings are errors here."""
    bow = rf.Mechanism("bow").near(left=0.05, knee=-0.05)
    for name in ("left", "mid", "right"):
        bow.body(name, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    bow.joint("left", None, "left", planar=True)
    bow.joint("knee", ("left", (1.0, 0, 0)), "mid", planar=True)
    bow.joint("right", (None, (2.995, 0, 0)), "right", planar=True)
    bow.joint("top", ("mid", (1.0, 0, 0)), ("right", (1.0, 0, 0)), planar=True)
    model = bow.model()
    assert model.constraints(model.assemble().q).mobility == 1
    assert "locked-loops" not in {f.code for f in model.check()}
    rf.simulate(model, 0.01)


@pytest.mark.parametrize("share", [1e-15, 1e-8, 1e-6])
def test_rates_are_never_changed_without_a_word(share: float) -> None:
    """Beyond rounding, 1e-9 of the speeds of the loop's joints; in runs and in rollouts."""
    model = rf.load("four_bar")
    state = model.assemble({"crank": 0.4}, rates={"crank": 1.0})
    v0 = state.v + share * np.array([0.0, 1.0, 0.0]) * np.abs(state.v).max()
    runs: tuple[Any, ...] = (
        lambda: rf.simulate(model, 0.01, state.q, v0),
        lambda: rf.rollout(model, state.q, v0, steps=1, dt=1e-3),
    )
    if share < 1e-9:  # as it is; warnings are errors here
        np.testing.assert_allclose(runs[0]().v[0], v0, rtol=0.0, atol=1e-14)
        runs[1]()
        return
    for run in runs:
        with pytest.warns(RuntimeWarning, match=r"opens the loops of 'four_bar' a little: pin\.\w"):
            run()
