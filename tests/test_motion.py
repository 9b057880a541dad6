"""Trajectories: ends, continuity, exact derivatives, one text in every reading, and what they
refuse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from redysim_data import published
from scipy.interpolate import CubicSpline

import ramify as rf
from ramify.core.scalar import atan2, cos, select, sin, sqrt
from ramify.motion import (
    Cycloid,
    Harmonic,
    Hold,
    PerJoint,
    Quintic,
    Sequence,
    Spline,
    Table,
    TimeFunction,
    Trajectory,
    cycloid,
    example_ends,
)
from ramify.runtime.compiled_program import CompiledProgram
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace

RNG = np.random.default_rng(4)
POINTS = RNG.normal(size=(7, 2))
TIMES = np.array([0.1, 0.3, 0.75, 0.8, 1.2, 1.5, 1.9])


def formula(t: Any) -> list[Any]:
    """Everything a text may use but atan2, which kernels do not have."""
    u = 1.0 / (1.0 + t * t)
    return [
        sin(t**2 + 1.0) * u - 0.5 * cos(3.0 * t),
        select(t < 1.0, t**3, 3.0 * t * t - 3.0 * t + 1.0) + sqrt(2.0 + t),
    ]


TRAJECTORIES: dict[str, Trajectory] = {
    "cycloid": Cycloid([0.2, -0.4], [1.3, 2.0], 1.7, begin=0.1),
    "quintic": Quintic([0.2, -0.4], [1.3, 2.0], 1.7),
    "quintic with rates": Quintic(0.2, [1.3, 2.0], 1.7, 0.2, [0.3, 0.0], -0.5, 1.0, [2.0, 3.0]),
    "natural spline": Spline(TIMES, POINTS),
    "clamped spline": Spline(TIMES, POINTS, "clamped", 0.7, [0.1, -0.2]),
    "not-a-knot spline": Spline(TIMES, POINTS, "not_a_knot"),
    "line": Spline([0.1, 1.9], [[0.0, 1.0], [2.0, -1.0]]),
    "harmonic": Harmonic([0.1, 0.2], 0.5, [1.0, 2.5], [0.0, 1.0]),
    "table": Table(TIMES, POINTS),
    "function": TimeFunction(formula),
    "function with rates": TimeFunction(
        lambda t: [t, t * t], lambda t: [1.0, 2.0 * t], lambda t: (0.0, 2.0), duration=1.5
    ),
    "hold": Hold([0.3, 0.4]),
    "per joint": PerJoint(
        [Cycloid(0.0, 1.0, 0.8), Harmonic(0.0, 1.0, 2.0, begin=0.3, duration=1.0)]
    ),
    "sequence": Sequence(
        [
            Hold([1.0, 2.0], 0.3),
            Quintic([1.0, 2.0], [0.0, 3.0], 0.9, begin=5.0),
            Cycloid([0.0, 3.0], 1.0, 0.5),
        ],
        0.2,
    ),
}
CASES = pytest.mark.parametrize("name", TRAJECTORIES)
GRID = np.linspace(-0.4, 2.4, 57)  # misses the knots


def program_of(motion: Trajectory) -> Any:
    ports = tuple(Port(x, (motion.n,)) for x in ("q", "v", "a"))
    return trace("motion", lambda t: list(motion.text(t[0])), (Port("t", (1,)),), ports)


@CASES
def test_one_text_in_every_reading(name: str) -> None:
    """Floats, arrays, the interpreted graph and compiled code agree."""
    motion = TRAJECTORIES[name]
    by_array = motion.at(GRID)
    by_float = [motion.at(float(t)) for t in GRID]
    program = program_of(motion)
    interpreted = interpret(program, [GRID[:, None]])
    compiled = [np.empty((GRID.size, motion.n)) for _ in range(3)]
    CompiledProgram("motion", program, f"test {motion!r}").run(
        [GRID[:, None].copy()], compiled, 0, GRID.size
    )
    for i in range(3):
        assert np.abs(np.array([m[i + 1] for m in by_float]) - by_array[i + 1]).max() < 1e-13
        assert np.abs(interpreted[i] - by_array[i + 1]).max() < 1e-12
        assert np.abs(compiled[i] - by_array[i + 1]).max() < 1e-12
    assert by_array.q.shape == by_array.v.shape == by_array.a.shape == (57, 2)
    assert by_float[0].q.shape == (2,)
    assert motion.at(GRID.reshape(19, 3)).q.shape == (19, 3, 2)
    assert motion.traceable


@CASES
def test_rates_are_the_derivatives(name: str) -> None:
    motion = TRAJECTORIES[name]
    jumps = np.array([motion.begin, motion.until, *TIMES, 0.2, 0.3, 0.5, 0.8, 1.0, 1.3, 1.4, 1.9])
    t = np.array([x for x in np.linspace(-0.3, 2.3, 201) if np.abs(x - jumps).min() > 1e-3])
    h = 1e-5
    before, now, after = motion.at(t - h), motion.at(t), motion.at(t + h)
    scale = max(1.0, np.abs(now.a).max())
    assert np.abs((after.q - before.q) / (2.0 * h) - now.v).max() < 1e-7 * scale
    assert np.abs((after.v - before.v) / (2.0 * h) - now.a).max() < 1e-6 * scale


@pytest.mark.parametrize(
    "name", ["cycloid", "quintic", "quintic with rates", "function", "harmonic"]
)
def test_rates_by_complex_steps(name: str) -> None:
    """Inside its time a smooth motion takes complex numbers: the imaginary part of a tiny step is
    an exact derivative.
    """
    motion = TRAJECTORIES[name]
    h = 1e-200
    for t in (0.31, 0.77, 1.33):
        if name == "function":  # its select compares: only the first branch there
            steps = [
                np.imag(
                    np.sin((t + 1j * h) ** 2 + 1.0) / (1.0 + (t + 1j * h) ** 2)
                    - 0.5 * np.cos(3.0 * (t + 1j * h))
                )
                / h
            ]
            assert abs(motion.at(t).v[0] - steps[0]) < 1e-14
            continue
        q, v, _ = motion.inside(np.complex128(t + 1j * h))
        assert np.abs(np.imag(q) / h - motion.at(t).v).max() < 1e-14
        assert np.abs(np.imag(v) / h - motion.at(t).a).max() < 1e-13


@CASES
def test_held_outside(name: str) -> None:
    motion = TRAJECTORIES[name]
    first, early = motion.at(motion.begin), motion.at(motion.begin - np.array([1e-9, 1.0, 1e6]))
    assert np.array_equal(early.q, np.tile(first.q, (3, 1)))
    assert not early.v.any()
    assert not early.a.any()
    if np.isfinite(motion.duration):
        last, late = motion.at(motion.until), motion.at(motion.until + np.array([1e-9, 1.0, 1e6]))
        assert np.abs(late.q - last.q).max() < 1e-14
        assert not late.v.any()
        assert not late.a.any()


@pytest.mark.parametrize("name", ["natural spline", "clamped spline", "not-a-knot spline", "table"])
def test_splines_agree_with_scipy(name: str) -> None:
    motion = TRAJECTORIES[name]
    kinds: dict[str, Any] = {
        "natural spline": "natural", "clamped spline": ((1, [0.7, 0.7]), (1, [0.1, -0.2])),
        "not-a-knot spline": "not-a-knot", "table": "not-a-knot",
    }  # fmt: skip
    peer = CubicSpline(TIMES, POINTS, bc_type=kinds[name])
    t = np.linspace(TIMES[0], TIMES[-1], 101)
    found = motion.at(t)
    for i, part in enumerate((found.q, found.v, found.a)):
        assert np.abs(part - peer(t, i)).max() < 1e-11
    assert np.abs(motion.at(TIMES).q - POINTS).max() < 1e-13


@pytest.mark.parametrize("rows", [2, 3, 4, 60])
def test_a_table_meets_polynomials(rows: int) -> None:
    """A line, a parabola and a cubic from as few rows as they need; from many all the same."""
    t = np.sort(RNG.uniform(0.0, 2.0, size=rows))
    p = np.poly1d([0.5, -1.0, 2.0, 0.3][-min(rows, 4) :])
    motion, inner = Table(t, p(t)), np.linspace(t[0], t[-1], 40)
    found = motion.at(inner)
    assert np.abs(found.q[:, 0] - p(inner)).max() < 1e-11
    assert np.abs(found.v[:, 0] - p.deriv()(inner)).max() < 1e-9


def test_quintic_meets_its_ends() -> None:
    motion = TRAJECTORIES["quintic with rates"]
    first, last = motion.at(0.2), motion.at(1.9)
    for found, expected in (
        (first.q, [0.2, 0.2]), (first.v, [0.3, 0.0]), (first.a, [1.0, 1.0]),
        (last.q, [1.3, 2.0]), (last.v, [-0.5, -0.5]), (last.a, [2.0, 3.0]),
    ):  # fmt: skip
        assert np.allclose(found, expected, rtol=0, atol=1e-13)


def test_atan2_in_a_function() -> None:
    motion = TimeFunction(lambda t: atan2(sin(3.0 * t) + 2.0, cos(t) - 2.0))
    h = 1e-5
    before, now, after = (motion.at(0.7 + d) for d in (-h, 0.0, h))
    assert abs((after.q - before.q)[0] / (2 * h) - now.v[0]) < 1e-9
    assert abs((after.v - before.v)[0] / (2 * h) - now.a[0]) < 1e-8


def test_functions_are_known_by_what_they_compute() -> None:
    """Compiled code is kept under the repr: equal formulas share it, different ones never do."""
    one, same, other = (
        TimeFunction(f) for f in (lambda t: 2.0 * t, lambda t: t * 2.0, lambda t: 3.0 * t)
    )
    assert repr(one).replace("<lambda>", "") == repr(same).replace("<lambda>", "")
    assert repr(one) != repr(other)
    free = TimeFunction(lambda t: float(np.interp(t, [0, 1], [0, 1])), lambda t: 1.0, lambda t: 0.0)
    assert not free.traceable
    assert not Sequence([Hold(0.0, 1.0), PerJoint([free])]).traceable
    assert free.at(0.25).q.tolist() == [0.25]


def test_numbers_are_kept_exactly_in_the_repr() -> None:
    x = 0.1 + 0.2
    assert repr(x) in repr(Hold(np.full(200, x)))
    assert Hold([x, 1]) == Hold((x, 1.0))


def test_sequence_runs_its_parts_in_turn() -> None:
    motion = TRAJECTORIES["sequence"]
    assert motion.duration == pytest.approx(1.7)
    assert motion.at(0.4).q.tolist() == [1.0, 2.0]
    middle = Quintic([1.0, 2.0], [0.0, 3.0], 0.9).at(0.45)
    found = motion.at(0.95)
    for ours, theirs in zip(found[1:], middle[1:], strict=True):
        assert np.allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "cycloid",
        "quintic",
        "natural spline",
        "clamped spline",
        "not-a-knot spline",
        "table",
        "sequence",
    ],
)
def test_smooth_across_joins(name: str) -> None:
    """No jump of q, v, a at inner knots; none at the ends either where a motion goes from rest to
    rest.
    """
    motion, h = TRAJECTORIES[name], 1e-9
    at_rest = name in ("cycloid", "quintic", "sequence")
    joins = [motion.begin, motion.until, 0.5, 1.4] if at_rest else TIMES[1:-1]
    for t in joins:
        left, right = motion.at(t - h), motion.at(t + h)
        for a, b in zip(left[1:], right[1:], strict=True):
            assert np.abs(a - b).max() < 1e-5


def test_per_joint_by_name() -> None:
    robot = rf.load("planar_biped")
    names = [joint.name for joint in robot.joints if joint.actuated]
    motion = PerJoint.named(robot, {names[2]: Cycloid(0.0, 1.0)}, rest=np.arange(len(names)) * 0.1)
    assert motion.n == len(names) == robot.nv - 6
    assert motion.duration == 1.0
    found = motion.at(1.0).q
    assert found[2] == pytest.approx(1.0)
    assert np.allclose(np.delete(found, 2), np.delete(np.arange(len(names)) * 0.1, 2))
    for parts, rest, message in (
        ({"nose": Hold(0.0)}, None, "no driven joint 'nose'"),
        ({names[0]: Hold([0.0, 1.0])}, None, "has 2 coordinates"),
        ({names[0]: 3.0}, None, "float, not a trajectory"),
        ({}, [0.0], "rest has 1 entries"),
    ):
        with pytest.raises(rf.StateError, match=message):
            PerJoint.named(robot, parts, rest)  # type: ignore[arg-type]


# ---- the cycloid of eq. (6.14) as arrays ----


def test_from_rest_to_rest() -> None:
    start, end = np.array([0.0, -1.0, 3.0]), np.array([1.0, -1.0, -2.0])
    motion = cycloid(start, end, duration=2.5, rows=11)
    assert motion.t.shape == (11,)
    assert motion.q.shape == motion.v.shape == motion.a.shape == (11, 3)
    assert motion.t[[0, -1]].tolist() == [0.0, 2.5]
    assert np.array_equal(motion.q[0], start)
    assert np.allclose(motion.q[-1], end, rtol=0, atol=1e-15)
    assert np.abs(motion.v[[0, -1]]).max() == 0.0
    assert np.abs(motion.a[[0, -1]]).max() < 1e-14
    assert np.abs(motion.v[:, 1]).max() == 0.0


def test_a_number_serves_all() -> None:
    assert np.array_equal(
        cycloid(0.0, [1.0, 2.0], rows=3).q, cycloid([0.0, 0.0], [1.0, 2.0], rows=3).q
    )


def test_published_motion() -> None:
    state = published("kuka_kr5_invdyn", "statevar")
    motion = cycloid(np.zeros(6), np.full(6, np.pi / 3))
    assert np.abs(np.hstack([motion.q, motion.v, motion.a])[::100] - state).max() < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 0.0], [1.0, 1.0, 1.0]), "start has 2 coordinates, end has 3"),
        (([0.0, np.nan], [1.0, 1.0]), r"start\[1\] is nan"),
        (([0.0], [np.inf]), r"end\[0\] is inf"),
        (([[0.0]], [1.0]), "shape"),
        (("rest", 1.0), "start must be an array of real numbers"),
        ((0.0, 1.0, 0.0), "duration 0.0 s"),
        ((0.0, 1.0, np.inf), "duration inf s"),
        ((0.0, 1.0, 1.0, 1), "at least 2 rows"),
    ],
)
def test_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(rf.StateError, match=message):
        cycloid(*arguments)  # type: ignore[arg-type]


def mistaken(t: Any) -> Any:
    return 1.0 if t < 1.0 else 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cycloid(0.0, 1.0, begin=np.nan), "begin nan s"),
        (lambda: Quintic(0.0, 1.0, start_rate=np.inf), r"start_rate\[0\] is inf"),
        (
            lambda: Quintic([0.0, 0.0], 1.0, end_acceleration=[1.0, 2.0, 3.0]),
            "end_acceleration has 3",
        ),
        (lambda: Spline([0.0, 1.0, 1.0], [1.0, 2.0, 3.0]), r"times\[2\] is 1.0 s, not after"),
        (lambda: Spline([0.0, 1.0], [[1.0, 2.0]]), r"points has shape \(1, 2\)"),
        (lambda: Spline([0.0], [1.0]), "at least 2"),
        (lambda: Spline([0.0, 1.0], [1.0, 2.0], "loose"), "ends must be .* got 'loose'"),
        (lambda: Spline([0.0, 1.0], [1.0, 2.0], start_rate=1.0), "belongs to ends='clamped'"),
        (lambda: Spline([0.0, 1.0], [1.0, 2.0], "clamped", [1.0, 2.0]), "start_rate has 2"),
        (lambda: Table([0.0, 1.0], [[1.0, 2.0], [np.nan, 1.0]]), r"values\[1, 0\] is nan"),
        (lambda: Harmonic(0.0, 1.0, 1.0, duration=-1.0), "duration -1.0 s"),
        (lambda: Hold([]), "shape"),
        (lambda: TimeFunction(lambda t: np.interp(t, [0, 1], [0, 1])), "cannot be differentiated"),
        (lambda: TimeFunction(mistaken), "no truth value"),
        (lambda: TimeFunction(lambda t: t**0.5), "whole number"),
        (lambda: TimeFunction(lambda t: t, v=lambda t: 1.0), "a is missing"),
        (
            lambda: TimeFunction(lambda t: t, lambda t: [1.0, 1.0], lambda t: 0.0),
            "q gives 1 numbers, v 2",
        ),
        (lambda: TimeFunction(lambda t: []), "gives no number"),
        (lambda: PerJoint([]), "at least one"),
        (lambda: PerJoint([3.0]), "part 0 is a float"),
        (lambda: Sequence([Hold(0.0), Hold(0.0)]), "part 0 of the sequence does not end"),
        (lambda: Sequence([Hold(0.0, 1.0), Hold([0.0, 0.0])]), "part 1 has 2"),
        (lambda: Sequence([Hold(0.0, 1.0), Hold(1.0)]), "the sequence jumps"),
        (lambda: Sequence([Hold(0.0)], begin=np.inf), "begin inf"),
        (lambda: Hold(0.0).samples(), "does not end"),
        (lambda: Hold(0.0).at([0.0, np.nan]), "t must be finite"),
    ],
)
def test_refused_families(make: Any, message: str) -> None:
    with pytest.raises(rf.StateError, match=message):
        make()


def test_examples_end_where_the_joints_can_go() -> None:
    robot = (
        rf.Builder("rp")
        .link("turn", mass=1, com=(1, 0, 0))
        .link("slide", parent="turn", joint="prismatic", mass=1)
    )
    start, end = example_ends(robot.model())
    assert start.tolist() == [0.0, 0.0]
    assert end.tolist() == [np.pi / 3, 0.1]


def test_the_former_name_of_functions_of_time_warns() -> None:
    with pytest.warns(DeprecationWarning, match="motion.TimeFunction"):
        assert rf.motion.Function is TimeFunction
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = rf.motion.nonsense
