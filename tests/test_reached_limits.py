"""Every limit that a run reaches, against NumPy: joints of all kinds in one robot, so that each one's
columns lie between those of others.
"""

from __future__ import annotations

import numpy as np
import pytest
from comparing import close
from scipy.spatial.transform import Rotation

import ramify as rf
from ramify.runs.limits_reached import Reached, limits_reached

T = np.linspace(0.0, 1.0, 41)


def robot() -> rf.Model:
    b = rf.Builder("all")
    solid = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    b.link("turn", limits=(-0.3, 0.5), effort=4.0, velocity=2.0, **solid)
    b.link("ball", "turn", joint="ball", cone=0.6, **solid)
    b.link("slide", "ball", joint="prismatic", limits=(-0.2, 0.4), effort=3.0, **solid)
    b.link("wheel", "slide", velocity=1.0, **solid)
    return b.model()


def run() -> tuple[np.ndarray, ...]:
    """Rows t, q, v, tau that exceed this and that for a while; nothing has to move so."""
    n = len(T)
    turn, slide = 0.8 * np.sin(7.0 * T), 0.7 * np.cos(5.0 * T)
    axes = np.stack([0.9 * np.sin(3.0 * T), 0.1 * T, -0.3 * T], axis=1)
    ball = Rotation.from_rotvec(axes).as_quat(scalar_first=True)
    ball[::3] *= -1.0  # the same rotations
    q = np.column_stack([turn, ball, slide, 9.0 * T])
    v = np.column_stack([2.5 * np.cos(4.0 * T), np.zeros((n, 3)), 3.0 * T, 1.5 - T])
    tau = np.column_stack([6.0 * T - 1.0, np.ones((n, 3)), -4.0 * T, np.zeros(n)])
    return T, q, v, np.clip(tau, [-4, -9, -9, -9, -3, -9], [4, 9, 9, 9, 3, 9])


def expected(end: str) -> dict[tuple[str, str], np.ndarray]:
    """How far each row is beyond each limit."""
    _, q, v, tau = run()
    turned = 2.0 * np.arccos(np.abs(q[:, 1]))
    return {
        ("turn", f"lower {end}"): -0.3 - q[:, 0],
        ("turn", f"upper {end}"): q[:, 0] - 0.5,
        ("ball", "cone"): turned - 0.6,
        ("slide", f"lower {end}"): -0.2 - q[:, 5],
        ("slide", f"upper {end}"): q[:, 5] - 0.4,
        ("turn", "effort"): np.abs(tau[:, 0]) - 4.0,
        ("slide", "effort"): np.abs(tau[:, 4]) - 3.0,
        ("turn", "velocity"): np.abs(v[:, 0]) - 2.0,
        ("wheel", "velocity"): np.abs(v[:, 5]) - 1.0,
    }


@pytest.mark.parametrize("stops", [True, False])
def test_limits_of_joints_of_all_kinds(stops: bool) -> None:
    found = {(r.name, r.what): r for r in limits_reached(robot(), *run(), stops)}
    wanted = expected("stop" if stops else "limit")
    assert {*found} == {*wanted}
    for key, beyond in wanted.items():
        at = beyond >= -1e-9 if key[1] == "effort" else beyond > 0.0
        r = found[key]
        assert at.any()
        close([r.since, r.share], [T[at][0], at.mean()], 0.0, 1e-12, f"{key}: since, share")
        close(r.most, beyond.max(), 1e-9, 1e-9, f"{key}: most")


def test_nothing_is_reported_within_all_limits() -> None:
    m = robot()
    rows = np.zeros((3, m.nv))
    assert limits_reached(m, T[:3], np.tile(m.neutral(), (3, 1)), rows, rows) == []


def test_words() -> None:
    said = str(Reached("turn", "upper stop", 0.25, 0.125, 0.0625))
    assert (
        said
        == "'turn' at its upper stop from t = 0.25 s, 12.5 % of the rows, at most 0.0625 beyond"
    )
    assert str(Reached("turn", "upper limit", 0.25, 0.125, 0.5)).startswith("'turn' beyond its")
    assert str(Reached("turn", "effort", 0.25, 1.0, 0.0)).endswith("100 % of the rows")
