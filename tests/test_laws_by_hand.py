"""Laws of joints, tendons and grounds against their formulas, coefficient by coefficient and on both
sides of every switch; and the defaults that the pages state.
"""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close
from scipy.spatial.transform import Rotation
from test_run_plots import sled

import ramify as rf
from ramify.contact.firm import Dusty, Firm
from ramify.contact.ground import LAWS, Ground
from ramify.contact.hunt_crossley import HuntCrossley
from ramify.contact.terrain import Flat, Slope
from ramify.model.machine import Tendon

COEFFICIENTS = [c for c in itertools.product((0.0, 1.0), repeat=3) if any(c)]
"""Every choice of linear, quadratic and cubic parts."""
SCALE = np.array([3.0, 0.7, 0.4])
STATES = np.array([-1.7, -0.6, 0.0, 0.5, 1.9])


def hinge(joint: str = "revolute", **machine: Any) -> rf.Model:
    b = rf.Builder("one")
    b.link("a", joint=joint, mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1), **machine)
    return b.model()


@pytest.mark.parametrize("joint", ["revolute", "prismatic"])
@pytest.mark.parametrize("chosen", COEFFICIENTS)
def test_damping_and_springs_of_one_coordinate(
    chosen: tuple[float, float, float], joint: str
) -> None:
    a, b, c = (SCALE * chosen).tolist()
    model = hinge(
        joint,
        damping={"linear": a, "quadratic": b, "cubic": c},
        spring={"stiffness": [a, b, c], "rest": 0.2},
    )
    v, x = STATES, STATES - 0.2
    found = model.passive_forces(STATES[:, None], v[:, None])
    damped = -(a + b * np.abs(v) + c * v**2) * v
    close(found.parts["damping"][:, 0], damped, 1e-12, 1e-12, "damping")
    close(found.loss["damping"], -damped * v, 1e-12, 1e-12, "loss")
    close(found.parts["spring"][:, 0], -(a + b * x + c * x**2) * x, 1e-12, 1e-12, "spring")
    stored = a * x**2 / 2 + b * x**3 / 3 + c * x**4 / 4
    close(found.stored["spring"], stored, 1e-12, 1e-12, "stored")


@pytest.mark.parametrize("chosen", COEFFICIENTS)
def test_springs_of_a_place_and_of_a_rotation(chosen: tuple[float, float, float]) -> None:
    """Along the offset r: -(a + b |r| + c |r|^2) r, and what that stores."""
    a, b, c = (SCALE * chosen).tolist()
    place, turn = np.array([0.1, -0.2, 0.3]), Rotation.from_rotvec([0.3, -0.2, 0.5])
    quaternion = turn.as_quat(scalar_first=True)
    spring = {"stiffness": [a, b, c]}
    rests: list[Any] = [{**spring, "rest": [0.0, 0.1, 0.2]}] * 3
    ball = hinge("ball", spring=spring)
    free = hinge("free", spring=[*rests, *[spring] * 3])
    offset = place - [0.0, 0.1, 0.2]
    for model, q, parts in (
        (ball, quaternion, [turn.as_rotvec()]),
        (free, np.concatenate([place, quaternion]), [offset, turn.as_rotvec()]),
    ):
        found = model.passive_forces(q, np.zeros(model.nv))
        size = [np.linalg.norm(r) for r in parts]
        force = [-(a + b * s + c * s * s) * r for r, s in zip(parts, size, strict=True)]
        close(found.parts["spring"], np.concatenate(force), 1e-12, 1e-12, f"force, {model.nv}")
        stored = sum(a * s**2 / 2 + b * s**3 / 3 + c * s**4 / 4 for s in size)
        close(found.stored["spring"], stored, 1e-12, 1e-12, f"stored, {model.nv}")


@pytest.mark.parametrize("chosen", COEFFICIENTS)
@pytest.mark.parametrize("rest", [(0.1, 0.1), (-0.4, 0.6)], ids=["point", "slack"])
def test_tendons(chosen: tuple[float, float, float], rest: tuple[float, float]) -> None:
    """Nothing within the slack range, a spring beyond either end of it."""
    a, b, c = (SCALE * chosen).tolist()
    model = hinge("prismatic")
    line = Tendon("line", joints=(("a", 2.0),), stiffness=(a, b, c), damping=(a, b, c), rest=rest)
    model = replace(model, machine=replace(model.machine, tendons=(line,)))
    length = np.array([-1.3, -0.41, -0.39, 0.0, 0.09, 0.11, 0.59, 0.61, 2.0])
    x = np.maximum(length - rest[1], 0.0) + np.minimum(length - rest[0], 0.0)
    still = np.zeros((len(length), 1))
    found = model.passive_forces(0.5 * length[:, None], still)
    force = -2.0 * (a + b * x + c * x**2) * x
    close(found.parts["tendon"][:, 0], force, 1e-12, 1e-12, "pull")
    stored = a * x**2 / 2 + b * x**3 / 3 + c * x**4 / 4
    close(found.stored["tendon"], stored, 1e-12, 1e-12, "stored")
    rate = np.linspace(-1.0, 1.0, len(length))
    moving = model.passive_forces(0.5 * length[:, None], 0.5 * rate[:, None]).parts["tendon"][:, 0]
    damped = -2.0 * (a + b * np.abs(rate) + c * rate**2) * rate
    close(moving - force, damped, 1e-12, 1e-12, "damping")


# ---- grounds ----

DEPTHS = np.array([-0.3, -1e-9, 0.0, 1e-6, 0.004, 0.006, 0.05, 0.11, 0.16, 0.3])
RATES = np.array([-2.0, -0.1, 0.0, 0.1, 2.0])


def firm(law: Firm, d: float, rate: float) -> float:
    s = min(d / law.full_depth, 1.0)
    c = law.damping if rate > 0.0 else law.damping * (3 * s**2 - 2 * s**3)
    return max(law.stiffness * d + c * rate, 0.0)


def dusty(law: Dusty, d: float, rate: float) -> float:
    return law.stiffness * max(d - law.dust, 0.0) + law.damping * max(rate, 0.0)


def hunt_crossley(law: HuntCrossley, d: float, rate: float) -> float:
    return law.stiffness * d**law.exponent * max(1.0 + law.dissipation * rate, 0.0)


def stored(law: Any, d: float) -> float:
    """The integral of the force of a point at rest, J."""
    if isinstance(law, HuntCrossley):
        return float(law.stiffness * d ** (law.exponent + 1.0) / (law.exponent + 1.0))
    d -= law.dust if isinstance(law, Dusty) else 0.0
    return float(0.5 * law.stiffness * max(d, 0.0) ** 2)


GROUNDS: dict[str, tuple[Any, Any]] = {
    "firm": (Firm(stiffness=2e3, damping=300.0, full_depth=0.1), firm),
    "dusty": (Dusty(stiffness=2e3, damping=300.0), dusty),
    "hunt_crossley": (HuntCrossley(stiffness=5e4), hunt_crossley),
    **{f"exponent {n:g}": (HuntCrossley(stiffness=5e4, exponent=n), hunt_crossley) for n in (1, 2, 2.5, 3)},
}  # fmt: skip


@pytest.mark.parametrize("name", list(GROUNDS))
def test_normal_forces(name: str) -> None:
    """Nothing above the ground; below it the formula, at all depths and rates."""
    law, formula = GROUNDS[name]
    for d, rate in itertools.product(DEPTHS.tolist(), RATES.tolist()):
        found = law.normal(d, rate)
        at = f"force of {name} at {d:g} m, {rate:g} m/s"
        if d <= 0.0:
            assert (found.force, found.stored) == (0.0, 0.0), at
            continue
        close(found.force, formula(law, d, rate), 1e-9, 1e-9, at)
        close(found.stored, stored(law, d), 1e-9, 1e-12, f"stored by {name} at {d:g} m")
        close(found.elastic, law.normal(d, 0.0).force, 1e-9, 1e-12, f"elastic part of {name}")


def test_every_law_of_the_page_has_its_formula_here() -> None:
    ours = {word for word, kind in LAWS.items() if kind.__module__.startswith("ramify.")}
    assert ours == {"firm", "dusty", "hunt_crossley"}
    assert ours <= {*GROUNDS}


def test_defaults_are_those_of_the_page() -> None:
    """The table of docs/ground.md: numbers, and what follows from mass and weight."""
    page = (Path(__file__).parents[1] / "docs/ground.md").read_text()
    for row in ("| `friction` μ | | 0.7 |", "| `dust` | m | 0.005 |", "| –, s/m, m/s | 1.5, 2, 0.01 |"):  # fmt: skip
        assert row in page
    plain: dict[type[Ground], dict[str, float]] = {
        Firm: {"friction": 0.7},
        Dusty: {"friction": 0.7, "dust": 0.005},
        HuntCrossley: {"friction": 0.7, "exponent": 1.5, "dissipation": 2.0, "slip_speed": 0.01},
    }
    for law, numbers in plain.items():
        assert {name: getattr(law(), name) for name in numbers} == numbers
    mass, weight = 3.0, 29.43
    k = weight / 0.05
    for kind in (Firm, Dusty):
        made = kind().scaled(mass, weight)
        damping = 20.0 * np.sqrt(k * mass)
        close([made.stiffness, made.damping, made.horizontal_damping], [k, damping, 0.5 * k], 1e-12)
        if isinstance(made, Firm):
            close(made.full_depth, 4.5 * damping / k, 1e-12, 0.0, "full_depth")
    close(HuntCrossley().scaled(mass, weight).stiffness, weight / 0.005**1.5, 1e-12)
    for terrain in (Flat(), Slope()):  # level, through the origin, and ahead is ahead
        numbers = {f.name: getattr(terrain, f.name) for f in fields(terrain)}
        assert all(numbers.get(name, 0.0) == 0.0 for name in ("angle", "heading", "height"))


def test_forces_of_a_body_are_the_sum_over_its_points() -> None:
    """Over time and at one time."""
    contacts = sled(0).contacts
    assert contacts is not None
    assert [*contacts.bodies] == ["box"] * 4
    close(contacts["box"], contacts.force.sum(axis=1), 1e-12, 1e-12, "box")
    moment = {f.name: getattr(contacts, f.name) for f in fields(contacts)}
    rows = len(contacts.force)
    at = replace(contacts, **{name: x[5] for name, x in moment.items() if isinstance(x, np.ndarray) and len(x) == rows})  # fmt: skip
    close(at["box"], contacts["box"][5], 1e-12, 1e-12, "box at one time")
    for k, name in enumerate(contacts.names):
        close(contacts[name], contacts.force[:, k], 0.0, 0.0, name)
