"""A falling pole is caught, also by direct transcription: CasADi and IPOPT on ramify's dynamics.

All states and forces are unknowns, and every step is an equation. Same knots, same costs, same
bounds: the two solvers are compared. Needs CasADi (``pip install casadi``).
"""

import casadi as ca
import numpy as np

import ramify as rf
from ramify.optimal import weighted

robot = (
    rf.Builder("cart_pole")
    .link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    .link("pole", parent="cart", axis=(0, 1, 0), mass=0.1, com=(0, 0, 0.5),
          inertia=(0.008, 0.008, 0), actuated=False)
    .model()
)  # fmt: skip
dt, steps, limit, start = 0.02, 60, 20.0, [0.0, 0.4]


def cost(s):
    """At every knot: little force, near the middle and upright."""
    return weighted(1e-2, s.u) + weighted(1e-1, [*s.q, *s.v])


def final(s):
    """At the end: upright and at rest."""
    return weighted(1e2, [*s.q, *s.v])


problem = rf.optimal.Problem(robot, dt, steps, cost, final, effort=limit)
solution = rf.optimal.solve(problem, start)

accelerations = robot.casadi("forward_dynamics")
optimiser = ca.Opti()
q, v, u = (optimiser.variable(n, k) for n, k in ((2, steps + 1), (2, steps + 1), (1, steps)))
total = 50.0 * (ca.sumsqr(q[:, -1]) + ca.sumsqr(v[:, -1]))
for k in range(steps):
    total += 0.5e-2 * u[0, k] ** 2 + 0.5e-1 * (ca.sumsqr(q[:, k]) + ca.sumsqr(v[:, k]))
    faster = v[:, k] + dt * accelerations(q[:, k], v[:, k], ca.vertcat(u[0, k], 0.0))
    optimiser.subject_to(v[:, k + 1] == faster)
    optimiser.subject_to(q[:, k + 1] == q[:, k] + dt * faster)
optimiser.subject_to(q[:, 0] == start)
optimiser.subject_to(v[:, 0] == 0.0)
optimiser.subject_to(optimiser.bounded(-limit, u, limit))
optimiser.minimize(total)
optimiser.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "tol": 1e-10})
answer = optimiser.solve()

print(f"rf.optimal {solution.cost:.9f}, IPOPT {answer.value(total):.9f}")
assert solution.converged
assert abs(solution.cost - answer.value(total)) < 1e-6 * solution.cost
assert np.abs(solution.u[:, 0] - answer.value(u)).max() < 1e-2
