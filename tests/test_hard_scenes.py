"""Steps of hard contact on random mechanisms against a solver that shares nothing with ours but the
equations: projected fixed-point iteration on dense matrices. ``python tests/test_hard_scenes.py 500``
runs many of them.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.contact import Hard
from ramify.contact.hard_solver import HardSolver, Rules
from ramify.contact.hard_system import System
from ramify.plant.hard_step import HardStep
from ramify.plant.make_field import PlantOptions, make_field

Array = np.ndarray[Any, np.dtype[np.float64]]


def mechanism(seed: int) -> tuple[rf.Model, Array, Array]:
    """(model, q, v): a floating tree with contact points, limits and dry friction, in every third
    seed with a loop that is closed at q.
    """
    rng = np.random.default_rng(seed)

    def tree() -> rf.Builder:
        made = rf.Builder("scene")
        made.link("trunk", joint="free", mass=2.0, inertia=(0.03, 0.04, 0.05), points=points(2))
        return made

    def points(n: int) -> dict[str, Any]:
        return {f"p{i}": 0.2 * rng.normal(size=3) for i in range(n)}

    made, links = tree(), ["trunk"]
    for i in range(rng.integers(2, 6)):
        parent = links[rng.integers(len(links))]
        kind = rng.choice(["revolute", "revolute", "prismatic", "ball"])
        more: dict[str, Any] = {}
        if kind != "ball" and rng.random() < 0.5:
            more["friction"] = float(rng.uniform(0.5, 3.0))
        if kind != "ball" and rng.random() < 0.5:
            more["limits"] = (-0.3, 0.3)
        made.link(
            f"l{i}", parent, str(kind), at=0.3 * rng.normal(size=3), axis=rng.normal(size=3),
            mass=float(rng.uniform(0.3, 1.5)), com=0.1 * rng.normal(size=3),
            inertia=rng.uniform(0.01, 0.02, 3), points=points(int(rng.integers(1, 3))), **more,
        )  # fmt: skip
        links.append(f"l{i}")
    m = made.model()
    q, v = m.random(seed)
    for i, j in zip(m.layout.plain_q, m.layout.plain_v, strict=True):
        if j >= 6:
            q[i] = rng.choice([-0.3, 0.3, rng.uniform(-0.3, 0.3)])
    if seed % 3 == 0 and len(links) > 3:
        pose = m.kinematics(q)
        a, b = m.body_index(links[-1]), m.body_index(links[-2])
        at = 0.5 * (pose.position[a] + pose.position[b])
        ends = [(m.bodies[k].name, pose.rotation[k].T @ (at - pose.position[k])) for k in (a, b)]
        m = made.loop("tie", "spherical", *ends).model()
    return m, q, v


def dense(system: System) -> tuple[Array, Array, Array]:
    n = len(system.r)
    A = np.zeros((n, n))
    for (i, j), x in system.A.items():
        A[i, j] = A[j, i] = x  # type: ignore[call-overload]
    J = np.zeros((len(system.rows), n))
    for k, row in enumerate(system.rows):
        J[k, list(row)] = list(row.values())  # type: ignore[assignment]
    return A, J, np.array(system.r, dtype=np.float64)


def reference(system: System) -> tuple[Array, float]:
    """(w, error): velocities by projected Gauss-Seidel, block by block, and how far the last sweep
    still moved them.
    """
    A, J, r = dense(system)
    inverse = np.linalg.inv(A)
    B = inverse @ J.T
    w, g = inverse @ r, np.zeros(len(J))
    diagonal = np.einsum("ki,ik->k", J, B)
    moved = math.inf
    for _ in range(60000):
        before = w.copy()
        for c, contact in enumerate(system.contacts):
            k = 3 * c
            new = max(0.0, g[k] + (float(contact.least) - J[k] @ w) / diagonal[k])  # type: ignore[arg-type]
            w, g[k] = w + B[:, k] * (new - g[k]), new
            step = 1.0 / max(diagonal[k + 1], diagonal[k + 2])
            at = g[k + 1 : k + 3] - step * (J[k + 1 : k + 3] @ w)
            size = float(np.linalg.norm(at))
            limit = contact.friction * g[k]
            at = at if size <= limit else at * (limit / size)
            w, g[k + 1 : k + 3] = w + B[:, k + 1 : k + 3] @ (at - g[k + 1 : k + 3]), at
        for s, row in enumerate(system.singles, 3 * len(system.contacts)):
            if diagonal[s] < 1e-14:
                continue
            new = g[s] + (float(row.target) - J[s] @ w) / diagonal[s]  # type: ignore[arg-type]
            new = new if row.low is None else max(new, float(row.low))  # type: ignore[arg-type]
            new = new if row.high is None else min(new, float(row.high))  # type: ignore[arg-type]
            w, g[s] = w + B[:, s] * (new - g[s]), new
        moved = float(np.abs(w - before).max())
        if moved < 1e-13:
            break
    return w, moved


def compare(seed: int) -> tuple[float, float, float, float]:
    """(largest difference of velocities, passes, 1 where ours failed, movement of the reference)."""
    m, q, v = mechanism(seed)
    law = Hard(friction=float(np.random.default_rng(seed).uniform(0.1, 1.0)))
    field = make_field(m, None, PlantOptions(contact=law, counted=False))
    step, h = HardStep(field), 2e-3
    gaps = [float(t.gap) for t in step.slots.contact.touches(q.tolist())]  # type: ignore[arg-type]
    q[2] -= np.sort(gaps)[min(2, len(gaps) - 1)] - 1e-3  # some points at the ground or in it
    y = field.start(q, v).tolist()
    system = step.system(0.0, y, [0.0] * m.nv, h)
    rules = Rules(speed=1e-9, impulse=1e-8, passes=400.0, updates=200.0, final=True)
    old = step.solver
    solver = HardSolver(old.n, old.frictions, old.singles, rules)
    state = solver.solve(system, step.weights(h), step.begin(y, h))
    w, moved = reference(system)
    off = float(np.abs(np.array(state["w"]) - w).max())
    return off, state["passes"][0], state["failed"][0], moved


@pytest.mark.parametrize("seed", range(12))
def test_a_step_is_that_of_a_dense_solver(seed: int) -> None:
    off, _, failed, moved = compare(seed)
    assert moved < 1e-9
    assert not failed
    assert off < 1e-6


if __name__ == "__main__":
    rows = []
    for seed in range(int(sys.argv[1])):
        rows.append((seed, *compare(seed)))
        if rows[-1][1] > 1e-6 or rows[-1][3]:
            print(rows[-1], flush=True)
    table = np.array(rows)
    print("median", np.median(table[:, 1]), "worst", table[:, 1].max(), "failed", table[:, 3].sum())
    print(
        "passes", table[:, 2].mean(), "beyond 1e-6:", (table[:, 1] > 1e-6).sum(), "of", len(table)
    )
