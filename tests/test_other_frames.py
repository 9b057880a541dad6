"""Audits, exports, files and reports in frames that are not the usual ones: a tilted placement, an
axis that is not z, y up, another Euler sequence, a quaternion with w < 0. Answers follow the frame.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close, same
from peers import random_model
from reference_runs import run
from test_report import data_of, unpacked
from test_run_plots import sled
from test_sdf import SDF, URDF, parse_sdf, parse_urdf

import ramify as rf
from ramify.model.frame import Frame, rotation_about
from ramify.model.joint import SPHERICAL_SEQUENCES
from ramify.runs import run_export
from ramify.runs.energy_blame import shares_of
from ramify.runs.limits_reached import limits_reached

TILT = Frame(rotation_about((0.6, -0.48, 0.64), 1.1), np.array([0.2, -0.1, 0.3]))


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.48, -0.6, 0.64)])
def test_momentum_of_a_planar_base_on_a_tilted_placement(axis: tuple[float, ...]) -> None:
    """The plane is that of the placed joint: across it the rail takes momentum, along it none."""
    builder = rf.Builder("sled").link("base", joint="planar", axis=axis, at=TILT, actuated=False, mass=2.0, inertia=(0.1, 0.2, 0.3))  # fmt: skip
    builder.link("arm", parent="base", axis=(0, 1, 1), mass=1.0, com=(0.3, 0.1, 0), inertia=(0.01, 0.02, 0.02))  # fmt: skip
    r = run(builder.model(), np.zeros(4), np.array([0.3, -0.1, 0.5, 1.0]), 1.0)
    assert len(r.audit.momentum) == 2
    assert r.audit.passed, str(r.audit)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_energy_of_bodies_that_turn_about_every_axis(seed: int) -> None:
    """Each body's energy changes by the work of the forces on it, however its frame lies; each
    alone, so that no error hides in another's.
    """
    model = random_model(seed, ("revolute", "spherical", "helical"), most=4, root="free")
    q, v = model.random(seed)
    r = run(model, q, v, 0.3, rows=301, rtol=1e-11)
    shares, _ = shares_of(r, len(r) - 1)
    close(shares, 0.0, atol=1e-6 * r.audit.energy.scale, of="share of the energy error")


@pytest.mark.parametrize("sequence", SPHERICAL_SEQUENCES)
def test_rates_of_exported_angles_in_any_sequence(sequence: str) -> None:
    """ReDySim's angles are the same attitude, their rates the slopes of the angles."""
    model = rf.Builder("plate").link("plate", joint="free_euler", sequence=sequence, actuated=False, mass=1.0, inertia=(1, 2, 2.5)).model()  # fmt: skip
    rest = 0.4 if sequence[0] == sequence[2] else 0.1
    q0, v0 = np.array([0.0, 0.0, 0.0, 0.2, rest, 0.3]), np.array([0.1, 0.2, 0.3, 0.7, 0.5, -0.6])
    r = run(model, q0, v0, 0.02, rows=21)
    q, v = run_export._with_angles(r)
    close(v[1:-1], np.gradient(q, 1e-3, axis=0, edge_order=2)[1:-1], atol=2e-4, of="rate")
    phi, theta, psi = q[:, 3:].T
    R = r.model.kinematics(r.q)[0][:, 0]
    close(R[:, 2, 1], np.sin(theta), atol=1e-12, of="R[2, 1]")
    close(R[:, 1, 1], np.cos(phi) * np.cos(theta), atol=1e-12, of="R[1, 1]")
    close(R[:, 2, 2], np.cos(theta) * np.cos(psi), atol=1e-12, of="R[2, 2]")


def test_a_quaternion_and_its_negative_are_one_attitude() -> None:
    """Limits, energies and angles of a run do not depend on the sign of its quaternions."""
    builder = rf.Builder("arm").link("arm", joint="ball", cone=0.6, mass=1.0, com=(0, 0.1, -0.4), inertia=(0.1, 0.1, 0.02))  # fmt: skip
    model = builder.model()
    angle = np.linspace(0.1, 0.9, 9)
    q = np.stack([np.cos(angle / 2), 0 * angle, np.sin(angle / 2), 0 * angle], axis=1)
    t, still = np.linspace(0.0, 0.8, 9), np.zeros((9, 3))
    reached = [limits_reached(model, t, sign * q, still, still) for sign in (1.0, -1.0)]
    assert [(x.name, x.what) for x in reached[0]] == [("arm", "cone")]
    close(reached[0][0].most, 0.3, rtol=1e-12, of="angle beyond the cone")
    same(reached[1], reached[0], "limits reached")


@pytest.mark.parametrize("turn", [1, 2])
def test_reports_show_the_same_paths_whatever_axis_is_up(turn: int, tmp_path: Path) -> None:
    """The page draws z up: the paths of a turned world are those of the upright one."""

    def shown(k: int) -> dict[str, list[Any]]:
        data = data_of(sled(k).report(tmp_path / f"{k}.html").read_text(encoding="utf-8"))
        arrays = [unpacked(text, "<f4") for text in data["arrays"]]
        return {
            plot["title"]: [arrays[curve["y"]] for curve in plot["curves"]]
            for plot in data["plots"]
            if plot["title"].startswith(("Positions of points", "Paths", "Upward", "Penetration"))
        }

    upright, turned = shown(0), shown(turn)
    assert upright.keys() == turned.keys()
    assert len(upright) >= 4
    heights = [
        curve for title, curves in upright.items() if title.endswith("z") for curve in curves
    ]
    assert max(float(curve.max()) for curve in heights) > 0.05
    for title, curves in upright.items():
        if not title.endswith((", x", ", y")):  # the horizontal axes may be named the other way
            close(turned[title], curves, rtol=1e-4, atol=1e-5, of=title)


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_what_a_run_on_the_ground_felt_survives_its_file(turn: int, tmp_path: Path) -> None:
    r = sled(turn)
    assert r.contacts is not None
    close(r.contacts.up, np.roll((0.0, 0.0, 1.0), -turn), of="up")
    r.save(tmp_path / "run.nc")
    opened = rf.Result.open(tmp_path / "run.nc")
    assert opened.contacts is not None
    same(opened.contacts, r.contacts, "contacts")
    same(opened.contacts.load, r.contacts.load, "load")


@pytest.mark.parametrize("version", ["1.3", "1.4", "1.5", "1.6", "1.7"])
def test_axes_of_sdf_files_are_in_the_frame_of_their_version(version: str) -> None:
    """In the model's frame up to 1.4, from 1.5 on in the joint's."""
    model = parse_urdf(URDF)
    text = SDF.replace('version="1.9"', f'version="{version}"')
    if version < "1.5":
        frames = [model.joint("shoulder").placement.rotation]
        frames.append(frames[0] @ model.joint("slide").placement.rotation)
        for axis, R in (("0 0.6 0.8", frames[0]), ("1 0 0", frames[1])):
            turned = R @ np.array([float(x) for x in axis.split()])
            text = text.replace(f"<xyz>{axis}</xyz>", f"<xyz>{' '.join(map(repr, turned.tolist()))}</xyz>")  # fmt: skip
    found = parse_sdf(text, base="fixed")
    q, v = model.random(1)
    close(found.inverse_dynamics(q, v, v), model.inverse_dynamics(q, v, v), 1e-12, 1e-12, "torque")
