"""rf.optimal: closed forms, independent optima, first-order conditions, controllers, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from optimal_oracle import Oracle
from scipy.linalg import solve_discrete_are
from scipy.optimize import least_squares

import ramify as rf
from ramify.core.scalar import sqrt
from ramify.optimal import Mpc, Problem, solve, weighted
from ramify.optimal.problem import starts


def cart(mass: float = 2.0) -> rf.Model:
    return (
        rf.Builder("cart", gravity=(0, 0, 0))
        .link("cart", joint="prismatic", axis=(1, 0, 0), mass=mass)
        .model()
    )


def pendulum() -> rf.Model:
    return (
        rf.Builder("pendulum")
        .link("rod", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.0, 0.02, 0.02))
        .model()
    )


def cart_pole() -> rf.Model:
    builder = rf.Builder("cart_pole").link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    builder.link(
        "pole",
        parent="cart",
        axis=(0, 1, 0),
        mass=0.1,
        com=(0, 0, 0.5),
        inertia=(0.0, 0.008, 0.008),
        actuated=False,
    )
    return builder.model()


# ---- closed forms ----


def test_linear_quadratic() -> None:
    """A cart is a double integrator: gains and cost are those of the Riccati equation."""
    m, dt, steps = 2.0, 0.05, 400
    problem = Problem(
        cart(m), dt, steps,
        lambda s: weighted(3.0, s.q, "place") + weighted(0.5, s.v, "speed") + weighted(0.1, s.u, "effort"),
        lambda s: weighted(3.0, s.q) + weighted(0.5, s.v),
    )  # fmt: skip
    A, B = np.array([[1.0, dt], [0.0, 1.0]]), np.array([[dt * dt / m], [dt / m]])
    Q, R = np.diag([3.0, 0.5]), np.array([[0.1]])
    V = Q
    for _ in range(steps):
        K = -np.linalg.solve(R + B.T @ V @ B, B.T @ V @ A)
        V = Q + A.T @ V @ (A + B @ K)
    solution = solve(problem, [1.5], [-0.3], regularisation=1e-14)
    assert solution.converged
    assert solution.iterations == 1
    np.testing.assert_allclose(solution.K[0], K, rtol=1e-10)
    x = np.array([1.5, -0.3])
    assert solution.cost == pytest.approx(0.5 * x @ V @ x, rel=1e-10)
    assert sum(solution.costs.values()) == pytest.approx(solution.cost, rel=1e-12)
    P = solve_discrete_are(A, B, Q, R)
    np.testing.assert_allclose(K, -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), rtol=1e-6)


def test_bang_bang() -> None:
    """As far as possible in a time, ending nearly at rest: full force, one knot between, full brake."""
    steps, dt, goal, weights = 40, 0.05, 2.0, (1e3, 1e5)
    problem = Problem(
        cart(1.0), dt, steps, lambda s: weighted(1e-9, s.u),
        lambda s: weighted(weights, [s.q[0] - goal, s.v[0]]), effort=1.0,
    )  # fmt: skip
    solution = solve(problem, [0.0], tolerance=1e-14)
    assert solution.converged
    force = np.repeat([1.0, -1.0], steps // 2)
    reach = (
        dt * dt * np.arange(steps, 0, -1)
    )  # of q at the end by the force of each step; that of v is dt
    free = np.delete(np.arange(steps), steps // 2)
    q, v = reach[free] @ force[free], dt * force[free].sum()
    a, b = reach[steps // 2], dt
    force[steps // 2] = (weights[0] * a * (goal - q) - weights[1] * b * v) / (
        weights[0] * a * a + weights[1] * b * b
    )
    np.testing.assert_allclose(solution.u[:, 0], force, atol=1e-6)
    assert (np.abs(force) <= 1.0).all()


def test_swing_against_fine_integration() -> None:
    """A pendulum's swing with least effort: forces and cost as from least squares over a much finer integration."""
    steps, dt, weight, goal = 80, 0.0125, 200.0, 1.2
    robot = pendulum()
    problem = Problem(
        robot,
        dt,
        steps,
        lambda s: weighted(dt, s.u),
        lambda s: weighted(weight, [s.q[0] - goal, s.v[0]]),
        method="rk4",
    )
    solution = solve(problem, [0.0], tolerance=1e-15)
    assert solution.reason in ("converged", "no descent")
    inertia, torque = 0.02 + 0.25, 9.80665 * 0.5
    gravity = -float(robot.gravity[2])

    def end(u: np.ndarray) -> np.ndarray:
        q, v = np.zeros(u.shape[:-1]), np.zeros(u.shape[:-1])
        h = dt / 2

        def rates(q, v, f):
            return v, (f - gravity / 9.80665 * torque * np.sin(q)) / inertia

        for k in range(steps):
            for _ in range(2):
                a, b = rates(q, v, u[..., k])
                c, d = rates(q + h / 2 * a, v + h / 2 * b, u[..., k])
                e, f = rates(q + h / 2 * c, v + h / 2 * d, u[..., k])
                g, i = rates(q + h * e, v + h * f, u[..., k])
                q, v = q + h / 6 * (a + 2 * c + 2 * e + g), v + h / 6 * (b + 2 * d + 2 * f + i)
        return np.stack([q - goal, v], axis=-1)

    def residuals(u: np.ndarray) -> np.ndarray:
        return np.concatenate([np.sqrt(dt) * u, np.sqrt(weight) * end(u)])

    def jacobian(u: np.ndarray) -> np.ndarray:
        h = 1e-5
        ends = end(np.concatenate([u + h * np.eye(steps), u - h * np.eye(steps)]))
        slopes = (ends[:steps] - ends[steps:]).T / (2.0 * h)
        return np.concatenate([np.sqrt(dt) * np.eye(steps), np.sqrt(weight) * slopes])

    fine = least_squares(residuals, np.zeros(steps), jacobian, xtol=1e-15, ftol=1e-15, gtol=1e-12)
    assert solution.cost == pytest.approx(fine.cost, rel=1e-6)
    np.testing.assert_allclose(solution.u[:, 0], fine.x, atol=1e-5)


def test_free_length_of_steps() -> None:
    """The shortest time from rest to rest with bounded force, 2 sqrt(d m / f)."""
    problem = Problem(
        cart(1.0), (1e-3, 0.2), 40, lambda s: weighted(1.0, [sqrt(s.dt)], "time") + weighted(1e-6, s.u),
        lambda s: weighted(1e4, [s.q[0] - 1.0]) + weighted(1e4, s.v), effort=1.0,
    )  # fmt: skip
    solution = solve(problem, [0.0], iterations=1000)
    assert solution.t[-1] == pytest.approx(2.0, rel=0.03)
    assert solution.q[-1, 0] == pytest.approx(1.0, abs=1e-3)
    assert 2.0 * solution.costs["time"] == pytest.approx(solution.t[-1])


def test_terms_of_equal_residuals() -> None:
    """Grouped otherwise, the same residuals are another program of terms, though all else is the same code."""
    robot = cart()
    costs = (
        lambda s: weighted(1.0, [s.u[0], s.v[0]], "all"),
        lambda s: (
            weighted(1.0, s.u, "force") + weighted(1.0, [], "nothing") + weighted(1.0, s.v, "speed")
        ),
    )
    one, three = (solve(Problem(robot, 0.1, 9, cost), [0.0], [1.0]) for cost in costs)
    assert set(one.costs) == {"all"}
    assert set(three.costs) == {"force", "nothing", "speed"}
    assert one.cost == pytest.approx(three.cost)
    assert three.costs["nothing"] == 0.0
    assert one.cost == pytest.approx(0.5 * ((one.u**2).sum() + (one.v[:-1] ** 2).sum()))


# ---- constraints ----


def conditions(problem: Problem, solution: rf.optimal.Solution, rows: np.ndarray) -> float:
    """The largest violation of the first-order conditions, relative to the gradients: of the plain cost plus multipliers
    times constraints, all gradients by differences.
    """
    oracle, texts = Oracle(problem), problem.texts
    h = 1e-6
    x = np.concatenate([solution.q, solution.v], axis=1)
    u = solution.u
    n, m = oracle.n, oracle.m

    def lagrangian(k: int, d: np.ndarray) -> float:
        at = oracle.shifted(x[k], d[:n]).tolist()
        p = rows[k].tolist()
        if k == len(u):
            terms, values = texts.final_terms(at, p), texts.final_constraint_values(at, p)
            factors = solution.multipliers[k, list(texts.final_constraints)]
        else:
            force = (u[k] + d[n:]).tolist()
            terms, values = texts.terms(at, force, p), texts.constraint_values(at, force, p)
            factors = solution.multipliers[k]
        cost = 0.5 * sum(float(r) ** 2 for term in terms for r in term.residuals)
        return cost + float(np.dot(factors, [float(c) for c in values]))

    def gradient(k: int) -> np.ndarray:
        size = n + (m if k < len(u) else 0)
        steps = h * np.eye(size)
        return np.array([lagrangian(k, d) - lagrangian(k, -d) for d in steps]) / (2.0 * h)

    _, A, B = oracle.slopes(x[:-1], u)
    adjoint, worst, scale = gradient(len(u)), 0.0, 1.0
    for k in reversed(range(len(u))):
        full = gradient(k)
        by_u = full[n:] + B[k].T @ adjoint
        scale = max(scale, np.abs(full[n:]).max(), np.abs(B[k].T @ adjoint).max())
        at_low, at_high = u[k] <= problem.low + 1e-9, u[k] >= problem.high - 1e-9
        left = np.where(
            at_low, np.minimum(by_u, 0.0), np.where(at_high, np.maximum(by_u, 0.0), by_u)
        )
        worst = max(worst, np.abs(left).max())
        adjoint = full[:n] + A[k].T @ adjoint
    values = np.array([
        [float(c) for c in texts.constraint_values(x[k].tolist(), u[k].tolist(), rows[k].tolist())] for k in range(len(u))
    ])  # fmt: skip
    product = np.abs(values * solution.multipliers[:-1]).max()
    assert (solution.multipliers >= 0.0).all()
    assert solution.gradient == pytest.approx(worst / scale, rel=0.1, abs=1e-7)
    return max(worst, product) / scale


def test_constraints_meet_the_first_order_conditions() -> None:
    robot = rf.load("planar_3r")
    tip = robot.bodies[-1].name

    def keep(s):
        return s.speed_limits(2.5) + s.outside_ball(tip, s.ball, 0.15)

    problem = Problem(
        robot, 0.02, 25, lambda s: weighted(1e-1, s.v) + weighted(1e-3, s.u),
        lambda s: weighted(3e3, s.position_error(tip, s.goal)) + weighted(3.0, s.v), keep,
        parameters={"goal": 3, "ball": 3}, effort=60.0,
    )  # fmt: skip
    start, end = np.array([0.2, 0.4, 0.3]), np.array([1.0, 0.5, 0.2])
    goal = robot.pose(end, tip).position
    ball = robot.pose(0.5 * (start + end), tip).position
    free = solve(
        Problem(
            robot,
            0.02,
            25,
            problem.texts._cost,
            problem.texts._final,
            parameters={"goal": 3, "ball": 3},
        ),
        start,
        goal=goal,
        ball=ball,
    )
    nearest = min(np.linalg.norm(robot.pose(q, tip).position - ball) for q in free.q)
    assert nearest < 0.1  # the constraint matters
    solution = solve(problem, start, goal=goal, ball=ball)
    assert solution.converged
    assert solution.violation <= 1e-6
    assert min(np.linalg.norm(robot.pose(q, tip).position - ball) for q in solution.q) > 0.15 - 1e-5
    assert np.abs(solution.v).max() <= 2.5 + 1e-6
    assert (solution.multipliers > 1e-3).any()
    assert (
        conditions(problem, solution, problem.parameter_rows({"goal": goal, "ball": ball})) < 1e-5
    )
    again = solve(problem, start, goal=goal, ball=ball, guess=solution)
    assert again.converged
    assert again.cost == pytest.approx(solution.cost, rel=1e-5)


def test_what_cannot_be_met_is_not_called_converged() -> None:
    problem = Problem(
        cart(),
        0.05,
        20,
        lambda s: weighted(1e-2, s.u),
        lambda s: weighted(1.0, s.q),
        lambda s: [s.v[0] - 0.5, 1.0 - s.v[0]],
    )
    solution = solve(problem, [0.0], iterations=400)
    assert solution.reason in ("infeasible", "iterations")
    assert solution.violation > 0.1


# ---- batches, guesses, controllers ----


def swing_up(**options) -> Problem:
    def cost(s):
        return weighted(1e-2, s.u, "effort") + weighted(1e-2, [s.q[0], *s.v], "state")

    def final(s):
        from ramify.core.scalar import cos, sin

        return weighted(1e3, [sin(s.q[1]), 1.0 - cos(s.q[1])], "upright") + weighted(
            1e2, [s.q[0], *s.v], "at rest"
        )

    return Problem(cart_pole(), 0.02, 100, cost, final, **({"effort": 10.0} | options))


def test_swing_ups_in_a_batch() -> None:
    problem = swing_up()
    rng = np.random.default_rng(0)
    q = np.stack([rng.uniform(-0.5, 0.5, 8), np.pi + rng.uniform(-0.5, 0.5, 8)], axis=1)
    solution = solve(problem, q, iterations=500)
    assert solution.batch == (8,)
    up = np.abs(np.cos(solution.q[:, -1, 1]) - 1.0) < 1e-2
    assert up.sum() >= 7
    assert np.abs(solution.u).max() <= 10.0
    one = solve(problem, q[3], iterations=500)
    np.testing.assert_array_equal(one.q, solution[3].q)
    assert one.cost == solution[3].cost == pytest.approx(solution.cost[3])
    again = solve(problem, q, guess=solution, iterations=500)
    assert (again.iterations <= 2)[solution.converged].all()


def test_the_controller_follows_and_resists() -> None:
    problem = swing_up()
    solution = solve(problem, [0.0, 3.0], iterations=500)
    robot = problem.robot
    exact = rf.simulate(
        robot,
        2.0,
        [0.0, 3.0],
        control=solution.controller(),
        method="semi_implicit_euler",
        step=0.02,
        dt_out=0.02,
    )
    np.testing.assert_allclose(exact.q, solution.q, atol=1e-9)
    fine = rf.simulate(
        robot, 2.0, [0.02, 3.03], control=solution.controller(limits=20.0), dt_out=0.02
    )
    assert fine.audit.passed
    assert np.cos(fine.q[-1, 1]) > 0.9
    rollout = rf.rollout(
        robot,
        np.array([[0.0, 3.0]]),
        np.zeros((1, 2)),
        steps=100,
        dt=0.02,
        control=solution.controller(),
        method="semi_implicit_euler",
    )
    np.testing.assert_allclose(rollout.q[0], solution.q[-1], atol=1e-9)


def test_mpc_holds_the_pole_under_pushes() -> None:
    def cost(s):
        return weighted(1e-3, s.u) + weighted(
            [1.0, 10.0, 0.1, 0.1], [s.q[0] - s.place[0], s.q[1], *s.v]
        )

    problem = Problem(
        cart_pole(),
        0.02,
        30,
        cost,
        lambda s: weighted(9.0, [s.q[0] - s.place[0], s.q[1], *s.v]),
        effort=20.0,
        parameters={"place": 1},
    )
    mpc = Mpc(problem)
    u, K = mpc.step([0.0, 0.1], [0.0, 0.0], place=0.0)
    assert u.shape == (1,)
    assert K.shape == (1, 4)
    heavier = rf.with_parameters(problem.robot, {"pole.mass": 0.13})
    run = rf.simulate(heavier, 3.0, [0.0, 0.15], control=mpc.controller(place=0.3), dt_out=0.02)
    assert np.abs(run.q[:, 1]).max() < 0.5
    np.testing.assert_allclose(run.q[-1], [0.3, 0.0], atol=0.05)


def test_mpc_keeps_constraints() -> None:
    """A cart drives to its place no faster than allowed, by one iteration a step."""
    problem = Problem(
        cart(1.0), 0.05, 25, lambda s: weighted(1e-2, s.u) + weighted(1.0, [s.q[0] - s.place[0]]),
        lambda s: weighted(10.0, [s.q[0] - s.place[0], s.v[0]]), lambda s: s.speed_limits(0.8),
        parameters={"place": 1}, effort=5.0,
    )  # fmt: skip
    run = rf.simulate(
        problem.robot, 4.0, [0.0], control=Mpc(problem).controller(place=2.0), dt_out=0.05
    )
    assert 0.75 < run.v.max() < 0.8 + 5e-3  # one iteration is not a solution
    assert run.q[-1, 0] == pytest.approx(2.0, abs=0.02)


# ---- machines ----


def test_closed_loops() -> None:
    """A four-bar moves its crank to an angle; the loop stays closed in a simulation of the forces."""
    robot = rf.load("four_bar")
    state = robot.assemble({})
    drive = robot.joints[0].name
    problem = Problem(
        robot, 0.005, 60, lambda s: weighted(1e-2, s.u), lambda s: weighted(1e3, [s.q[0] - s.goal[0]]) + weighted(1.0, s.v),
        parameters={"goal": 1}, actuated=[drive],
    )  # fmt: skip
    goal = state.q[0] + 0.3
    solution = solve(problem, state.q, goal=goal)
    assert solution.converged
    assert solution.q[-1, 0] == pytest.approx(goal, abs=0.02)
    run = rf.simulate(robot, 0.3, state.q, control=solution.controller(), dt_out=0.005)
    assert run.audit.passed
    np.testing.assert_allclose(run.q[-1], solution.q[-1], atol=0.02)


def test_friction_and_springs_are_part_of_the_plan() -> None:
    builder = rf.Builder("axis", gravity=(0, 0, 0))
    builder.link(
        "disc",
        axis=(0, 0, 1),
        mass=1.0,
        inertia=(0.1, 0.1, 0.1),
        damping=0.5,
        spring={"stiffness": 2.0},
        effort=4.0,
    )
    robot = builder.model()
    problem = Problem(
        robot,
        0.02,
        60,
        lambda s: weighted(1e-3, s.u),
        lambda s: weighted(1e4, [s.q[0] - 1.0, s.v[0]]),
    )
    assert problem.high.tolist() == [4.0]
    solution = solve(problem, [0.0])
    run = rf.simulate(
        robot,
        1.2,
        [0.0],
        control=solution.controller(),
        method="semi_implicit_euler",
        step=0.02,
        dt_out=0.02,
    )
    np.testing.assert_allclose(run.q, solution.q, atol=1e-9)
    assert solution.q[-1, 0] == pytest.approx(1.0, abs=1e-2)


# ---- what is refused ----


def fine(s):
    return weighted(1.0, s.u)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "empty horizon"),
        ({"dt": 0.0}, "dt is 0.0"),
        ({"dt": (0.2, 0.1)}, "pair"),
        ({"effort": [[3.0, 1.0]]}, "no force is within 3 … 1"),
        ({"effort": [1.0, 2.0, 3.0]}, "effort has shape"),
        ({"cost": lambda s: s.u[0] * s.u[0]}, "must return a list of residuals"),
        ({"cost": lambda s: None}, "it returned None"),
        ({"cost": lambda s: [s.u]}, "must be a scalar"),
        ({"cost": lambda s: [float("nan")]}, "is nan"),
        ({"cost": lambda s: []}, "no residuals"),
        ({"cost": lambda s: [abs(s.u[0]) if s.u[0] > 0.0 else 0.0]}, "cannot be traced"),
        ({"cost": lambda s: weighted(-1.0, s.u)}, "must be finite and not negative"),
        ({"final": lambda s: s.u}, "the last knot has no controls"),
        ({"keep": lambda s: s.v[0]}, "each to be at most 0"),
        ({"parameters": {"q": 3}}, "cannot be the name"),
        ({"cost": 3}, "must be a function"),
    ],
)
def test_nonsense_is_named(change: dict, message: str) -> None:
    arguments = {"dt": 0.1, "horizon": 4, "cost": fine} | change
    with pytest.raises(rf.StateError, match=message):
        Problem(cart(), **arguments)


def test_values_that_do_not_fit() -> None:
    problem = Problem(
        cart(),
        0.1,
        4,
        lambda s: weighted(1.0, [s.u[0], s.goal[0] - s.q[0]]),
        parameters={"goal": 1},
    )
    for arguments, message in (
        ({}, "'goal' needs a value"),
        ({"goal": 1.0, "gaol": 2.0}, "'gaol' is not a parameter"),
        ({"goal": np.nan}, "goal must be finite"),
        ({"goal": [1.0, 2.0]}, "goal has shape"),
        ({"goal": 1.0, "guess": {"q": np.zeros((3, 1))}}, "guess q has shape"),
        ({"goal": 1.0, "tolerance": -1.0}, "tolerance"),
    ):
        with pytest.raises(rf.StateError, match=message):
            solve(problem, [0.0], **arguments)
    with pytest.raises(AttributeError, match="parameters of this problem"):
        Problem(cart(), 0.1, 4, lambda s: [s.target[0]])
    bad = Problem(
        cart(), 0.1, 4, lambda s: weighted(1.0, [sqrt(s.q[0] - 1.0)], "root") + weighted(1.0, s.u)
    )
    with pytest.raises(rf.SimulationError, match="'root' is nan at knot 0"):
        solve(bad, [0.0])


def test_interruption_keeps_the_best() -> None:
    problem = swing_up()

    def stop(iterations: int, cost: float, gap: float) -> None:
        raise KeyboardInterrupt

    solution = solve(problem, [0.0, 3.0], progress=stop)
    assert solution.reason == "interrupted"
    assert solution.iterations == 20
    assert solution.cost < solve(problem, [0.0, 3.0], iterations=1).cost


def test_start_of_bristles() -> None:
    problem = swing_up()
    assert starts(problem, [[0.0, 1.0]], [0.5, 0.0]).tolist() == [[0.0, 1.0, 0.5, 0.0]]
