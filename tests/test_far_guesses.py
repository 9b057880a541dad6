"""Assembly of legs with closed chains from far guesses, beside plain least squares of the pose error.

The mechanisms have the loops of known legs, with round numbers of our own: a heel spring and a plantar
rod between ball joints (as Cassie has), toe rods that two motors drive (as Digit has), and a
parallel leg of three limbs between a hip plate and a foot (as WL-16 has).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares
from test_saved_robots import frame, full_robot

import ramify as rf
from ramify.loops.assemble import _Assembly
from ramify.loops.far_guess import pose_errors
from ramify.model.loop import Loop, LoopEnd

ROD: dict[str, Any] = {"mass": 0.3, "com": (0.1, 0.0, 0.0), "inertia": (1e-4, 1e-3, 1e-3)}


def knee_and_heel() -> Any:
    """A leg of hip, knee, shin spring and tarsus, with an achilles rod from the hip to the heel."""
    leg = rf.Builder("knee_and_heel")
    leg.link("thigh", axis=(0, 1, 0), at=(0.0, 0.0, 1.0), **ROD)
    leg.link("shin", "thigh", axis=(0, 1, 0), at=(0.12, 0.0, -0.05), **ROD)
    leg.link("tarsus", "shin", axis=(0, 1, 0), at=(0.43, 0.02, 0.0), **ROD)
    leg.link("heel", "tarsus", axis=(0, 1, 0), at=(-0.01, 0.0, -0.03), **ROD)
    leg.link("rod", "thigh", joint="ball", at=(0.0, 0.05, 0.0), **ROD)
    leg.link("crank", "tarsus", axis=(0, 1, 0), at=(0.06, 0.0, 0.0), **ROD)
    leg.link("plantar", "crank", axis=(0, 1, 0), at=(0.05, 0.0, 0.0), **ROD)
    leg.link("foot", "tarsus", axis=(0, 1, 0), at=(0.41, 0.0, 0.0), **ROD)
    leg.loop("achilles", "spherical", ("rod", (0.5, 0.0, 0.0)), ("heel", (0.11, 0.03, 0.0)))
    leg.loop("plantar_pin", "spherical", ("plantar", (0.35, 0.0, 0.0)), ("foot", (0.05, 0.0, 0.0)))
    return leg.model()


def driven_toe() -> Any:
    """A foot on a universal joint, led by two rods from cranks on the shin."""
    leg = rf.Builder("driven_toe")
    leg.link("shin", axis=(0, 1, 0), at=(0.0, 0.0, 0.8), **ROD)
    leg.link("foot", "shin", joint="universal", at=(0.4, 0.0, 0.0), **ROD)
    for side, y in (("left", 0.04), ("right", -0.04)):
        leg.link(f"{side}_crank", "shin", axis=(0, 1, 0), at=(0.1, y, 0.0), **ROD)
        leg.link(f"{side}_rod", f"{side}_crank", joint="ball", at=(0.0, 0.0, 0.06), **ROD)
        leg.loop(
            f"{side}_tip", "spherical",
            (f"{side}_rod", (0.3, 0.0, 0.0)), ("foot", (0.0, y, 0.06)),
        )  # fmt: skip
    return leg.model()


def parallel_leg() -> Any:
    """A foot plate that floats at the ends of three limbs that lengthen."""
    leg = rf.Builder("parallel_leg")
    leg.link("foot", joint="free", mass=1.0, inertia=(0.01, 0.01, 0.01))
    for k in range(3):
        c, s = np.cos(2.0 * np.pi * k / 3.0), np.sin(2.0 * np.pi * k / 3.0)
        leg.link(f"cross{k}", joint="universal", at=(0.2 * c, 0.2 * s, 1.0), **ROD)
        leg.link(f"slide{k}", f"cross{k}", "prismatic", at=(0.0, 0.0, -0.5), **ROD)
        leg.loop(
            f"ankle{k}", "revolute" if k == 0 else "spherical",
            (f"slide{k}", (0.0, 0.0, -0.1)), ("foot", (0.1 * c, 0.1 * s, 0.0)),
        )  # fmt: skip
    return leg.model()


@pytest.mark.parametrize("make", [knee_and_heel, driven_toe, parallel_leg])
def test_at_least_as_good_as_least_squares(make: Any) -> None:
    model = make()
    ours, theirs = 0, 0
    for seed in range(6):
        start = model.tree.random(seed)[0]

        def error(x: Any, start: Any = start) -> Any:
            return pose_errors(model, model.integrate(start, x, 1.0))

        plain = least_squares(error, np.zeros(model.nv), xtol=1e-14, ftol=1e-14, gtol=1e-14)
        theirs += np.abs(plain.fun).max() < 1e-9
        try:
            found = model.assemble(guess=start)
            assert np.abs(model.constraints(found.q).residual).max() < 1e-8
            ours += found.note.startswith("from the guess")  # not from a posture of its own
        except rf.LoopError:
            pass
    assert ours >= theirs > 3


def test_pose_errors_of_a_batch_are_those_of_each_posture() -> None:
    model = full_robot()
    q = np.stack([model.tree.random(seed)[0] for seed in range(5)])
    np.testing.assert_allclose(
        pose_errors(model, q), [pose_errors(model, x) for x in q], atol=1e-13
    )


@pytest.mark.parametrize("driven", [False, True])
def test_loops_that_contradict_each_other_are_refused_after_few_steps(
    driven: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven loops between random places: each search tries a bounded number of steps."""
    rng, robot = np.random.default_rng(1), full_robot()
    kinds = ("revolute", "spherical", "prismatic", "cylindrical", "fixed")
    names = [body.name for body in robot.bodies]
    loops = []
    for i in range(11):
        a, b = rng.choice(len(names), 2, replace=False)
        ends = [LoopEnd(names[k], frame(float(rng.normal()))) for k in (a, b)]
        loops.append(Loop(f"loop {i}", kinds[i % len(kinds)], *ends))
    joints = [replace(body.joint, actuated=driven) for body in robot.bodies]
    bodies = [replace(b, joint=j) for b, j in zip(robot.bodies, joints, strict=True)]
    model = replace(robot, bodies=tuple(bodies), loops=tuple(loops))
    calls, residual = 0, _Assembly.residual

    def counted(work: _Assembly, q: Any) -> Any:
        nonlocal calls
        calls += 1
        return residual(work, q)

    monkeypatch.setattr(_Assembly, "residual", counted)
    (found,) = (finding.message for finding in model.check() if finding.code == "loops-open")
    assert re.search(r"cannot be assembled.*loop \d+\.\w+.*contradict each", found)
    assert calls < 4000
