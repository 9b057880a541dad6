"""Calls that cannot be meant as they stand: one of our errors names the culprit and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.core.names import disguise
from ramify.kernels.algorithms import ALGORITHMS, arguments

ARM = rf.load("planar_3r")
FOUR_BAR = rf.load("four_bar")
Z = np.zeros(3)


@pytest.mark.parametrize(
    "mask", [np.array([True, False, True]), [True, False, True], np.array([True, 1.0, 2.0], object)]
)
def test_truth_values_are_not_coordinates(mask: Any) -> None:
    """A mask in the place of q would be read as ones and zeros."""
    calls: list[Callable[[], Any]] = [
        lambda: ARM.mass_matrix(mask),
        lambda: ARM.inverse_dynamics(Z, mask, Z),
        lambda: ARM.kernel("mass_matrix", "numpy")(mask),
        lambda: ARM.kernel("mass_matrix", dtype="float32")(mask),
        lambda: rf.simulate(ARM, 0.1, q0=mask),
        lambda: rf.rollout(ARM, mask, Z, steps=2, dt=0.01),
        lambda: ARM.integrate(mask, Z, 0.1),
    ]
    for _ in range(2):  # also where the kernel has been called before
        assert ARM.mass_matrix(Z).shape == (3, 3)
        for call in calls:
            with pytest.raises(rf.StateError, match="must be an array of real numbers"):
                call()


def test_samples_that_no_computer_holds_are_refused_before_they_are_made() -> None:
    q = np.zeros((1000, 3))
    with pytest.raises(rf.SimulationError, match=r"would take 44,703 GiB.*larger every"):
        rf.rollout(ARM, q, q, steps=10**9, dt=1e-3, every=1)
    with pytest.raises(rf.SimulationError, match=r"rows of output.*give a larger dt_out"):
        rf.simulate(rf.load("chain", n=600), 4e7, dt_out=1.0)


@pytest.mark.parametrize("odd", [np.ones(3), "yes", 1, None, []])
def test_flags_of_dynamics_are_true_or_false(odd: Any) -> None:
    for call in (ARM.inverse_dynamics, ARM.forward_dynamics):
        for name in ("multipliers", "passive"):
            with pytest.raises(rf.StateError, match=f"{name} must be True or False"):
                call(Z, Z, Z, **{name: odd})


def test_arrays_of_algorithms_have_known_names() -> None:
    """A misspelt name would have one number per link."""
    with pytest.raises(rf.RamifyError, match="'wrenchs'; did you mean 'wrenches'"):
        arguments("q wrenchs")
    assert {p.name for a in ALGORITHMS.values() for p in a.inputs} >= {"q", "v", "tau"}


@pytest.mark.parametrize(
    ("q", "says"),
    [(np.zeros(7), "q has shape"), ("a", "real numbers"), (None, "real numbers")],
)
def test_hybrid_dynamics_of_closed_robots(q: Any, says: str) -> None:
    with pytest.raises(rf.StateError, match=says):
        FOUR_BAR.hybrid_dynamics(q, Z, [0.0], ["crank"])
    with pytest.raises(rf.RamifyError, match="prescribed must be names"):
        FOUR_BAR.hybrid_dynamics(Z, Z, [0.0], 5)
    none = np.zeros((0, 3))
    assert FOUR_BAR.hybrid_dynamics(none, none, [0.0], ["crank"]).tau.shape == (0, 1)


def robot(path: Path, *links: str) -> Path:
    parts = [
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
        f'ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name in ("base", *links)
    ] + [
        f'<joint name="j{i}" type="continuous"><parent link="base"/><child link="{name}"/>'
        '<axis xyz="0 0 1"/></joint>'
        for i, name in enumerate(links)
    ]
    path.write_text(f'<robot name="r">{"".join(parts)}</robot>', encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("arm", "\u0430rm"),
        ("r\u00e9sum\u00e9", "re\u0301sume\u0301"),
        ("arm", "arm "),
        ("O", "\u039f"),
        ("arm", "\uff41rm"),  # full width
        ("link1", "link\uff11"),
        ("finger", "\ufb01nger"),  # a ligature
        ("x1", "\U0001d4651"),  # a letter of mathematics
        ("\u30ad1", "\uff771"),  # Katakana of half width
    ],
)
def test_names_that_look_the_same_are_refused(tmp_path: Path, a: str, b: str) -> None:
    with pytest.raises(rf.ModelError, match=r"two links are named .* look the same"):
        rf.load(robot(tmp_path / "r.urdf", a, b))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("\u0430rm", "CYRILLIC SMALL LETTER A"),
        ("arm ", "begins or ends with a blank"),
        ("\uff41rm", "FULLWIDTH LATIN SMALL LETTER A, in place of 'a'"),
    ],
)
def test_names_that_are_not_what_they_look_like_are_warned_of(
    tmp_path: Path, name: str, says: str
) -> None:
    with pytest.warns(UserWarning, match=says):
        m = rf.load(robot(tmp_path / "r.urdf", name))
    finding = next(f for f in m.check() if f.code == "disguised-name")
    assert (finding.level, finding.where) == ("warning", name)
    assert says in finding.message


@pytest.mark.parametrize(
    "name", ["θ1", "база_left", "Δx", "café", "link 1", "α_tip", "手首", "x²", "µm"]
)
def test_names_of_other_alphabets_pass(name: str) -> None:
    assert disguise(name) == ""


def test_loops_points_and_drives_have_no_twins() -> None:
    plain, wide = "p1", "p\uff11"
    b = rf.Builder("r").link("a", mass=1.0, points={plain: (0, 0, 0)})
    with pytest.raises(
        rf.ModelError, match=r"two contact points of 'b' are named .* look the same"
    ):
        b.link("b", parent="a", mass=1.0, points={plain: (0, 0, 0), wide: (0, 0, 0)}).model()
    for name in (plain, wide):
        b = b.loop(name, "distance", ("a", (1, 0, 0)), (None, (2, 0, 0)), length=1.0)
    with pytest.raises(rf.ModelError, match=r"two loops are named .* look the same"):
        b.model()
    driven = rf.Builder("r").link("a", joint="revolute", mass=1.0)
    driven = driven.actuator(plain, joint="a").actuator(wide, joint="a")
    with pytest.raises(rf.ModelError, match=r"actuators.1: its name looks like 'p1'"):
        driven.model()
    for first in (rf.Builder("r").link(plain, mass=1.0), one().frame(plain)):
        with pytest.raises(rf.ModelError, match=r"frames.\d: its name looks like 'p1'"):
            first.frame(wide, at=(0, 0, 1)).model()
    with pytest.raises(rf.ModelError, match=r"keyframes.1: its name looks like 'p1'"):
        one().keyframe(plain, [0.0]).keyframe(wide, [0.0]).model()


def one() -> rf.Builder:
    return rf.Builder("r").link("a", mass=1.0)


def test_names_that_a_reader_tells_apart_pass(tmp_path: Path) -> None:
    names = ("x2", "x²", "x₂", "\u2460", "1")  # raised, lowered, in a circle
    assert [b.name for b in rf.load(robot(tmp_path / "r.urdf", *names)).bodies] == list(names)


def test_no_end_and_pairs_that_are_none_are_refused() -> None:
    m = rf.load("kuka_kr5")
    for call in (
        lambda: rf.simulate(m, None),
        lambda: rf.scenario("kuka_free_fall").run(t_end=None),
    ):  # type: ignore[arg-type]
        with pytest.raises(rf.SimulationError, match="t_end nothing must be a finite number"):
            call()
    with pytest.raises(rf.StateError, match="commands must map names of actuators"):
        rf.control.Commands((1, 2))


@pytest.mark.parametrize("odd", [True, np.True_, 10**400, 10**5000, "1", np.ones(2)], ids=type)
def test_lengths_ratios_and_curves_of_loops_are_numbers(odd: Any) -> None:
    b = one().link("b", "a", mass=1.0)
    with pytest.raises(rf.ModelError, match=r"loop 'l': length .* is wrong"):
        b.loop("l", "distance", ("a", (1, 0, 0)), (None, (2, 0, 0)), length=odd)
    for options in ({"ratio": odd}, {"offset": odd}):
        with pytest.raises(rf.ModelError, match=r"ratio .* and offset .* must be finite numbers"):
            b.loop("l", "gear", joints=("a", "b"), **options)
    with pytest.raises(rf.ModelError, match=r"curve .* must be finite coefficients"):
        b.loop("l", "coupling", joints=("a", "b"), curve=(0.0, odd))


@pytest.mark.parametrize("huge", [10**400, 10**5000], ids=["400", "5000"])
def test_whole_numbers_beyond_all_floats_are_refused(huge: int) -> None:
    push = {"link3": np.ones(6)}
    with pytest.raises(rf.SimulationError, match=r"stabilisation .* must be 'projection'"):
        rf.simulate(FOUR_BAR, 0.01, stabilisation=huge)
    with pytest.raises(rf.StateError, match=r"a push must be .* got \(0, "):
        rf.simulate(ARM, 0.01, wrenches=[(0, huge, push)])
    with pytest.raises(rf.SimulationError, match="t_end"):
        rf.simulate(ARM, huge)


def test_results_beyond_all_numbers_are_refused() -> None:
    with pytest.raises(rf.StateError, match=r"duration 1e\+308 s must be at most 1e\+30 s"):
        rf.motion.Quintic([0.0], [1.0], 1e308)
    with pytest.raises(rf.StateError, match="coordinate 1 of the quintic moves beyond"):
        rf.motion.Quintic([0.0, 0.0], [1.0, 1.0], 1e20, start_rate=[0.0, 1e300])
    for dt in (1e200, 1e308):
        with pytest.raises(rf.SimulationError, match=rf"over a step dt = {re.escape(str(dt))} s"):
            rf.linearize(ARM, Z, Z, Z, dt=dt)


def test_batches_of_too_many_axes_are_refused() -> None:
    for axes in (29, 60):
        with pytest.raises(rf.StateError, match=rf"inverse_dynamics: q is a batch of {axes} axes"):
            ARM.inverse_dynamics(np.zeros((1,) * axes + (3,)), Z, Z)
    q = np.zeros((1,) * 28 + (3,))
    assert ARM.inverse_dynamics(q, Z, Z).shape == q.shape
    assert ARM.mass_matrix(q).shape == (*q.shape, 3)
    with pytest.raises(rf.StateError, match="q is a batch of 63 axes"):
        ARM.mass_matrix(np.zeros((1,) * 63 + (3,)))
