"""A pole on a cart swings up with a bounded force: solve, replay with feedback, and hold by MPC.

``ramify optimise examples/swing_up.py --report swing_up.html`` solves the same problem.
"""

import numpy as np

import ramify as rf
from ramify.core.scalar import cos, sin
from ramify.optimal import weighted

robot = (
    rf.Builder("cart_pole")
    .link("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0, shapes=[{"box": [0.3, 0.2, 0.1]}])
    .link(
        "pole", parent="cart", axis=(0, 1, 0), mass=0.1, com=(0, 0, 0.5), inertia=(0.008, 0.008, 0),
        actuated=False, shapes=[{"capsule": [0.02, 1.0], "xyz": [0, 0, 0.5]}],
    )
    .model()
)  # fmt: skip


def cost(s):
    """At every knot: little force, slow, near the middle."""
    return (
        weighted(1e-2, s.u, "force")
        + weighted(1e-1, s.v, "speed")
        + weighted(1e-2, [s.q[0]], "place")
    )


def final(s):
    """At the end: upright and at rest."""
    return weighted(1e3, [sin(s.q[1]), 1.0 - cos(s.q[1])], "upright") + weighted(
        1e2, [s.q[0], *s.v], "rest"
    )


problem = rf.optimal.Problem(robot, dt=0.02, horizon=125, cost=cost, final=final, effort=10.0)
start = np.array([0.0, 3.0])

if __name__ == "__main__":
    solution = rf.optimal.solve(problem, start)
    print(solution)
    for name, value in solution.costs.items():
        print(f"  {name:16} {value:8.3f}")
    assert solution.converged
    assert np.cos(solution.q[-1, 1]) > 0.99

    # The gains make a controller; it swings up a machine that starts elsewhere and is heavier.
    heavier = rf.with_parameters(robot, {"pole.mass": 0.11})
    run = rf.simulate(
        heavier, 2.5, [0.05, 2.95], control=solution.controller(limits=20.0), dt_out=0.02
    )
    print(
        "replayed with another mass: cos", np.cos(run.q[-1, 1]).round(4), "audit", run.audit.passed
    )
    solution.report("swing_up.html")
