"""The centre of pressure on slopes: normal loads alone decide it, against statics."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import ramify as rf
from ramify.contact import Firm, HeightField, HuntCrossley, Slope
from ramify.motion.support import measured_balance

HALF, HEIGHT, ANGLE = 0.15, 0.2, math.radians(20.0)


def box(gravity: tuple[float, float, float]) -> rf.Model:
    """A box on four feet, its centre of mass HEIGHT above them."""
    feet = {f"{i}{j}": (i * HALF, j * HALF, 0.0) for i in (-1, 1) for j in (-1, 1)}
    body = {"mass": 8.0, "com": (0, 0, HEIGHT), "inertia": (0.3, 0.3, 0.2), "points": feet}
    return rf.Builder("box", gravity=gravity).link("box", joint="free", **body).model()


def lying(up: str, angle: float) -> tuple[rf.Model, np.ndarray, Slope, np.ndarray]:
    """(model, q on the surface, slope, its normal) with the world's z or y up."""
    gravity = (0.0, 0.0, -9.81) if up == "z" else (0.0, -9.81, 0.0)
    model = box(gravity)
    slope = Slope(angle=angle).fitted(tuple(-g / 9.81 for g in gravity))
    normal = np.array(slope.direction)
    axis = np.cross([0.0, 0.0, 1.0], normal)
    half = 0.5 * math.atan2(float(np.linalg.norm(axis)), float(normal[2]))
    axis = axis / np.linalg.norm(axis)
    q = np.concatenate([[0.0, 0.0, 0.0], [math.cos(half)], math.sin(half) * axis])
    return model, q, slope, normal


@pytest.mark.parametrize("up", ["z", "y"])
@pytest.mark.parametrize("law", [Firm, HuntCrossley])
def test_a_box_at_rest_on_a_slope_presses_below_its_centre_of_mass(up: str, law: type) -> None:
    """Gravity's line through the centre of mass meets the surface there."""
    model, q, slope, normal = lying(up, ANGLE)
    run = rf.simulate(model, 3.0, q, ground=law(friction=0.9, terrain=slope), dt_out=0.5)
    felt = run.contacts
    assert felt is not None
    below = felt.position[-1].mean(axis=0)  # the middle of the feet
    centre = model.center_of_mass(run.q[-1])
    down = np.array(model.gravity) / 9.81
    foot = centre + down * float((below - centre) @ normal) / float(down @ normal)
    sunk = float(np.ptp(felt.penetration[-1]))  # the feet are not in one plane by so much
    off = float(np.linalg.norm(felt.center_of_pressure[-1] - foot))
    assert off < sunk + 1e-4, (off, sunk)
    assert felt.normal_load[-1].sum() == pytest.approx(8.0 * 9.81 * math.cos(ANGLE), rel=1e-4)
    seen = measured_balance(run)
    assert np.allclose(
        seen.point[-1], seen.axes @ felt.center_of_pressure[-1], rtol=0.0, atol=1e-12
    )
    assert seen.margin[-1] > 0.05


def test_about_the_centre_of_pressure_the_ground_has_no_moment_along_the_surface() -> None:
    """All feet equally deep, each with its own slip and load. Weighted by upward forces, friction
    included, the centre was 10 mm off and more.
    """
    model, q, slope, normal = lying("z", ANGLE)
    q[:3] -= 0.002 * normal
    rng = np.random.default_rng(2)
    v = rng.normal(size=(3, 6)) * 0.2
    felt = rf.contact.forces(
        model, HuntCrossley(friction=0.6, terrain=slope), np.tile(q, (3, 1)), v
    )
    for k in range(3):
        arm = felt.position[k] - felt.center_of_pressure[k]
        moment = np.cross(arm, felt.force[k]).sum(axis=0)
        across = moment - (moment @ normal) * normal
        assert np.abs(across).max() < 1e-12 * np.abs(felt.force[k]).max(), across
        assert np.ptp(felt.normal_load[k]) > 1.0
    upward = (felt.load[..., None] * felt.position).sum(axis=1) / felt.load.sum(axis=1)[:, None]
    assert np.linalg.norm(upward - felt.center_of_pressure, axis=1).max() > 0.01


def test_on_hills_each_foot_has_its_own_normal() -> None:
    """N_i of a law without friction is the length of its force."""
    x = np.linspace(-1.0, 1.0, 9)
    heights = 0.2 * np.sin(3.0 * x)[:, None] + 0.1 * np.cos(2.0 * x)[None, :]
    hills = HeightField(heights=heights.tolist(), spacing=0.25, origin=(-1.0, -1.0))
    model = box((0.0, 0.0, -9.81))
    q = model.neutral()
    felt = rf.contact.forces(model, HuntCrossley(friction=0.0, terrain=hills), q, np.zeros(6))
    assert felt.touching.any()
    length = np.linalg.norm(felt.force, axis=-1)
    assert np.allclose(felt.normal_load, length, rtol=1e-12, atol=0.0)
    place = length @ felt.position / length.sum()
    assert np.allclose(felt.center_of_pressure, place, rtol=0.0, atol=1e-12)


def test_normal_loads_are_in_files(tmp_path: Path) -> None:
    model, q, slope, _ = lying("z", ANGLE)
    run = rf.simulate(model, 0.2, q, ground=HuntCrossley(terrain=slope), dt_out=0.05)
    run.save(tmp_path / "run.nc")
    again = rf.Result.open(tmp_path / "run.nc")
    assert run.contacts is not None
    assert again.contacts is not None
    assert np.array_equal(again.contacts.normal_load, run.contacts.normal_load)
    assert np.array_equal(again.contacts.center_of_pressure, run.contacts.center_of_pressure)
