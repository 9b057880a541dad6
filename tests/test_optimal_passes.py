"""The compiled passes of rf.optimal against plain NumPy, and the derivatives they use against differences."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from optimal_oracle import Oracle, dense_slopes

import ramify as rf
from ramify.optimal import Problem, weighted
from ramify.optimal.problem import starts
from ramify.optimal.solver import KnotSolver, SolverSettings
from ramify.trace.interpret import replay
from ramify.trace.jacobian_program import rates_along


def arm() -> rf.Model:
    builder = rf.Builder("arm")
    builder.link("upper", axis=(0, 1, 0), mass=1.0, com=(0.25, 0, 0), inertia=(0.001, 0.02, 0.02))
    builder.link(
        "lower",
        parent="upper",
        axis=(0, 1, 0),
        at=(0.5, 0, 0),
        mass=0.7,
        com=(0.2, 0, 0),
        inertia=(0.001, 0.01, 0.01),
    )
    return builder.model()


def flyer() -> rf.Model:
    """A free body with a link on a ball joint and one on a hinge."""
    builder = rf.Builder("flyer", gravity=(0, 0, -1.0))
    builder.link("trunk", joint="free", mass=2.0, inertia=(0.1, 0.2, 0.15), com=(0.02, 0, 0))
    builder.link(
        "head",
        parent="trunk",
        joint="ball",
        at=(0, 0, 0.2),
        mass=0.5,
        com=(0, 0.05, 0.1),
        inertia=(0.01, 0.012, 0.008),
    )
    builder.link(
        "tail",
        parent="trunk",
        axis=(0, 1, 0),
        at=(-0.3, 0, 0),
        mass=0.3,
        com=(-0.1, 0, 0),
        inertia=(0.002, 0.003, 0.003),
    )
    return builder.model()


def reach(s):
    return (
        weighted(0.3, s.v, "speed")
        + weighted(0.02, s.u, "effort")
        + weighted(0.1, [s.u[0] * s.q[1] + s.v[0]], "mixed")
    )


def at_goal(s):
    return weighted(50.0, s.posture_error(s.goal), "goal") + weighted(2.0, s.v, "speed")


def problems() -> dict[str, tuple[Problem, np.ndarray, np.ndarray]]:
    two, free = arm(), flyer()
    q, _ = free.random(seed=3)
    goal, _ = free.random(seed=4)
    options = {"cost": reach, "final": at_goal}
    return {
        "arm": (Problem(two, 0.02, 12, **options, parameters={"goal": 2}), np.array([0.2, 0.3]), np.array([0.6, -0.4])),
        "arm within bounds": (
            Problem(two, 0.02, 12, **options, parameters={"goal": 2}, effort=[6.0, 1.5]),
            np.array([0.2, 0.3]), np.array([0.6, -0.4]),
        ),
        "steps of free length": (
            Problem(two, (0.01, 0.03), 9, lambda s: reach(s) + weighted(3.0, [s.dt * 30.0]), at_goal, parameters={"goal": 2}, effort=9.0),
            np.array([0.2, 0.3]), np.array([0.6, -0.4]),
        ),
        "rotations": (Problem(free, 0.03, 10, **options, parameters={"goal": free.nq}), q, goal),
        "runge-kutta": (Problem(free, 0.03, 4, **options, parameters={"goal": free.nq}, method="euler"), q, goal),
    }  # fmt: skip


PROBLEMS = problems()


@pytest.mark.parametrize("name", PROBLEMS)
def test_passes_are_those_of_plain_numpy(name: str) -> None:
    problem, q, goal = PROBLEMS[name]
    solver = KnotSolver(problem, SolverSettings(1e-10, 6, 1e-3, gradient=np.inf))
    rows = problem.parameter_rows({"goal": goal})
    start = starts(problem, q, 0.1 * np.ones(problem.robot.nv))
    solver.load(start, rows, None)
    outcome = solver.run()
    arrays = solver.workspace.arrays
    oracle = Oracle(problem)
    x, u = (
        np.tile(start, (problem.horizon + 1, 1)),
        np.tile(np.clip(np.zeros(problem.nu), problem.low, problem.high), (problem.horizon, 1)),
    )
    if problem.dt is None:
        u[:, -1] = 0.5 * (problem.low[-1] + problem.high[-1])
    x, u, gains, history = oracle.iterate(x, u, rows, 1e-3, 1e-10, 6)
    assert len(history) == outcome.iterations >= 3
    np.testing.assert_allclose(outcome.history, history, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(outcome.x, x, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(arrays["u"], u, rtol=1e-6, atol=1e-6)
    if outcome.reason == "converged":
        np.testing.assert_allclose(outcome.K, [K for _, K in gains], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_slopes_of_a_step(name: str) -> None:
    problem, q, _ = PROBLEMS[name]
    differences(problem, q, 1.0)


def differences(problem: Problem, q: np.ndarray, speed: float) -> None:
    """Central differences along every deviation."""
    step, oracle, h = problem.step, Oracle(problem), 1e-6
    rng = np.random.default_rng(5)
    x = starts(problem, q, speed * rng.normal(size=problem.robot.nv))
    u = rng.normal(size=problem.nu)
    u[-1] = abs(u[-1]) * 0.02 if problem.dt is None else u[-1]
    _, A, B = dense_slopes(problem)(x[None], u[None])
    slopes = np.concatenate([A[0], B[0]], axis=1)
    for j in range(slopes.shape[1]):
        d = np.zeros(slopes.shape[1])
        d[j] = h
        ends = [
            oracle.next(
                oracle.shifted(x, sign * d[: step.deviations]), u + sign * d[step.deviations :]
            )
            for sign in (-1.0, 1.0)
        ]
        scale = 1.0 + np.abs(slopes[:, j]).max()
        np.testing.assert_allclose(
            oracle.difference(*ends) / (2.0 * h), slopes[:, j], atol=2e-8 * scale
        )


def machines() -> dict[str, tuple[Problem, np.ndarray]]:
    """Machines with forces of their own, and a state in which these act."""

    def cost(s):
        return weighted(1.0, s.u)

    joint = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.2, 0, 0), "inertia": (0.01, 0.02, 0.02)}
    builder = rf.Builder("machine")
    builder.link(
        "a", **joint, damping=0.7, spring={"stiffness": 3.0}, friction=0.4, limits=(-0.5, 0.5)
    )
    builder.link("b", parent="a", at=(0.4, 0, 0), **joint, armature=0.05)
    machine = builder.model()
    hopper = rf.Builder("hopper").link("trunk", joint="free", mass=2.0, inertia=(0.02, 0.03, 0.04))
    hopper.link(
        "leg",
        parent="trunk",
        axis=(0, 1, 0),
        mass=0.4,
        com=(0, 0, -0.1),
        inertia=(0.002, 0.002, 1e-4),
        points={"foot": (0.02, 0, -0.3)},
    )
    hopper = hopper.model()
    q = np.array([0.1, 0.2, 0.29, 0.99, 0.05, 0.08, 0.1, 0.1])
    q[3:7] /= np.linalg.norm(q[3:7])
    bar = rf.load("four_bar")
    return {
        "springs, friction, stops": (Problem(machine, 0.01, 2, cost), np.array([0.51, -0.3])),
        "on the ground": (Problem(hopper, 0.002, 2, cost, ground="hunt_crossley"), q),
        "implicit steps on the ground": (Problem(hopper, 0.002, 2, cost, ground="hunt_crossley", method="implicit_euler"), q),
        "closed loop": (Problem(bar, 0.01, 2, cost), bar.assemble({}).q),
    }  # fmt: skip


MACHINES = machines()


@pytest.mark.parametrize("name", MACHINES)
def test_slopes_of_machines(name: str) -> None:
    problem, q = MACHINES[name]
    differences(problem, q, 0.3)
    still = Problem(
        problem.robot, 0.01, 2, lambda s: weighted(1.0, s.u), passive=False, stops=False
    )
    x = starts(problem, q, 0.3 * np.ones(problem.robot.nv))
    if name != "closed loop":  # the forces act in this state
        u = np.zeros(problem.nu)
        assert np.abs(Oracle(problem).next(x, u) - Oracle(still).next(x, u)).max() > 1e-4


HELPERS = {
    "pose_error": lambda s: s.pose_error("head", s.goal),
    "position_error": lambda s: s.position_error("tail", s.goal[:3]),
    "posture_error": lambda s: s.posture_error(s.posture),
    "velocity": lambda s: s.velocity("head"),
    "center_of_mass": lambda s: s.center_of_mass(),
    "speed_limits": lambda s: s.speed_limits(2.0),
    "outside_ball": lambda s: s.outside_ball("tail", s.goal[3:6], 0.3),
    "weighted": lambda s: [r for term in weighted(s.goal[0] + 2.0, [s.v[0] * s.u[1], s.q[0]]) for r in term.residuals],
}  # fmt: skip


@pytest.mark.parametrize("name", HELPERS)
def test_derivatives_of_helpers(name: str) -> None:
    """Against differences in sixty digits."""
    robot = flyer()
    helper = HELPERS[name]
    problem = Problem(
        robot, 0.01, 2, lambda s: helper(s), parameters={"goal": 12, "posture": robot.nq}
    )
    q, v = robot.random(seed=8)
    other, _ = robot.random(seed=9)
    pose = robot.pose(other, "head")
    p = [*pose.rotation.ravel(), *pose.position, *other]
    x, u = [*q, *v], [0.3 * i for i in range(problem.nu)]
    program = problem.programs.residuals
    values = replay(program, [x, u, p])
    directions = problem.step.directions(x)
    nodes = program.results[0]
    assert any(values[node] for node in nodes)
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -25
        exact = [mpmath.mpf(y) for y in (*x, *u)]
        for i in robot.layout.balls:  # of unit length in sixty digits
            parts = exact[i[0] : i[0] + 4]
            length = mpmath.sqrt(sum(y * y for y in parts))
            exact[i[0] : i[0] + 4] = [y / length for y in parts]
        wide = [mpmath.mpf(y) for y in p]
        for j, along in enumerate(directions):
            rates = rates_along(program, values, along)
            ends = []
            for sign in (-1, 1):
                d = [sign * h if k == j else mpmath.mpf(0) for k in range(len(directions))]
                n = problem.step.deviations
                moved = problem.step.shifted(exact[: len(x)], d[:n])
                controls = [a + b for a, b in zip(exact[len(x) :], d[n:], strict=True)]
                ends.append(problem.texts.residuals(moved, controls, wide))
            for node, a, b in zip(nodes, *ends, strict=True):
                assert float((b - a) / (2 * h)) == pytest.approx(
                    float(rates.get(node, 0.0)), abs=1e-10
                )
