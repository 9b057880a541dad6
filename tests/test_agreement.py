"""All formulations give one answer: inertia matrix, bias, joint forces, accelerations; on serial
robots and on trees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_trees import random_case
from test_formulations import serial_robot

from ramify.api.model import Model
from ramify.formulations import denoc_matrices, equations, lin, quasi, renaud, saha
from ramify.formulations.counting import book_fixed
from ramify.formulations.counting.book_tree import tree_of

Answer = dict[str, Any]
"""``M``, ``bias``, ``tau`` of the accelerations a, and ``a`` of the forces tau, as far as a
formulation has them.
"""


def _array(x: Any) -> Any:
    return np.array(x, dtype=np.float64)


def by_matrices(M: Any, bias: Any, a: Any, tau: Any) -> Answer:
    """The answers of a formulation that has the matrix and the bias."""
    M, bias = _array(M), _array(bias)
    return {"M": M, "bias": bias, "tau": M @ a + bias, "a": np.linalg.solve(M, tau - bias)}


def by_recursion(
    inverse: Callable[..., Any], forward: Callable[..., Any], q: Any, v: Any, a: Any, tau: Any
) -> Answer:
    """The answers of one that has the recursions: the columns of M are forces of unit
    accelerations, less those at rest.
    """
    n = len(q)
    still = np.zeros(n)
    rest = _array(inverse(q, still, still))
    M = np.column_stack([_array(inverse(q, still, unit)) - rest for unit in np.eye(n)])
    return {
        "M": M,
        "bias": _array(inverse(q, v, still)),
        "tau": _array(inverse(q, v, a)),
        "a": _array(forward(q, v, tau)),
    }


def _denoc(m: Model, q: Any, v: Any, a: Any, tau: Any, level: Any) -> Answer:
    d = denoc_matrices(m, q, v, level)
    return by_matrices(d.I, d.C @ v + d.gravity, a, tau) | {"tau": d.forces(a)}


def _lin(m: Model, q: Any, v: Any, a: Any, tau: Any) -> Answer:
    return by_matrices(lin.mass_matrix(m, q), lin.bias_forces(m, q, v), a, tau)


def _saha(m: Model, q: Any, v: Any, a: Any, tau: Any) -> Answer:
    return by_recursion(
        lambda *x: saha.inverse_dynamics(m, *x),
        lambda *x: saha.forward_dynamics(m, *x),
        q,
        v,
        a,
        tau,
    )


def _quasi(m: Model, q: Any, v: Any, a: Any, tau: Any) -> Answer:
    return {
        "M": quasi.mass_matrix(m, q),
        "bias": quasi.bias_forces(m, q, v),
        "tau": quasi.inverse_dynamics(m, q, v, a),
        "a": quasi.forward_dynamics(m, q, v, tau),
    }


def _quasi_relative(m: Model, q: Any, v: Any, a: Any, tau: Any) -> Answer:
    return by_recursion(
        lambda *x: quasi.inverse_dynamics(m, *x, "relative"),
        lambda *x: quasi.forward_dynamics(m, *x),
        q,
        v,
        a,
        tau,
    )


def _book(m: Model, q: Any, v: Any, a: Any, tau: Any) -> Answer:
    tree = tree_of(m)
    return by_recursion(
        lambda *x: book_fixed.inverse_dynamics(tree, *x),
        lambda q, v, tau: book_fixed.accelerations_from(tree, q, tau - m.bias(q, v)), q, v, a, tau,
    )  # fmt: skip


SERIAL: dict[str, Callable[..., Answer]] = {
    "denoc, links": lambda *x: _denoc(*x, "link"),
    "denoc, modules": lambda *x: _denoc(*x, "module"),
    "lin": _lin,
    "renaud": lambda m, q, v, a, tau: {"M": renaud.mass_matrix(m, q)},
    "saha": _saha,
    "quasi, inertial": _quasi,
    "quasi, relative": _quasi_relative,
}


def check(name: str, got: Answer, right: Answer) -> None:
    """Agreement to 1e-11 of the largest entry; bias forces may vanish, so they are measured against
    the forces.
    """
    for what, value in got.items():
        scale = max(
            np.abs(right[what]).max(), np.abs(right["tau"]).max() if what == "bias" else 0.0
        )
        assert np.abs(_array(value) - right[what]).max() <= 1e-11 * scale, f"{name}: {what}"


def kernels(m: Model, q: Any, v: Any, a: Any) -> Answer:
    return {"M": m.mass_matrix(q), "bias": m.bias(q, v), "tau": m.inverse_dynamics(q, v, a), "a": a}


@pytest.mark.parametrize("block", range(4))
def test_serial_robots(block: int) -> None:
    """60 arms of 1 to 8 turning and sliding joints; where all turn, the book's tables too."""
    for seed in range(15 * block, 15 * block + 15):
        m, q, v, a = serial_robot(seed)
        right = kernels(m, q, v, a)
        ways = dict(SERIAL)
        if all(link.p.eta == 0.0 for link in m.skeleton.links):
            ways["book"] = _book
        for name, way in ways.items():
            check(name, way(m, q, v, a, right["tau"]), right)


@pytest.mark.parametrize("block", range(4))
def test_trees(block: int) -> None:
    """48 trees of all joints without quaternions, links and modules; accelerations where M is
    well-conditioned.
    """
    judged = 0
    for seed in range(12 * block, 12 * block + 12):
        case = random_case(seed, 1 + seed % 7)
        m = Model("tree", case.bodies, tuple(case.gravity), {})
        q, v, a = map(np.array, (case.q, case.v, case.a))
        right = kernels(m, q, v, a)
        well = np.linalg.cond(right["M"]) < 1e4
        judged += well
        for level in ("link", "module"):
            got = _denoc(m, q, v, a, right["tau"], level)
            check(level, got if well else {k: x for k, x in got.items() if k != "a"}, right)
    assert judged >= 8


def test_closed_forms() -> None:
    """Closed forms of small random arms, by SymPy, give the same."""
    for seed in range(8):
        m, q, v, a = serial_robot(seed, ("R", "RP", "RR", "PR")[seed % 4])
        found = equations(m)
        values = dict(zip([*found.q, *found.v], [*q, *v], strict=True))
        M, C, g = (_array(x.subs(values)) for x in (found.M, found.C, found.g))
        right = kernels(m, q, v, a)
        check("closed", by_matrices(M, C @ v + g.ravel(), a, right["tau"]), right)
        inverse = _array(found.inverse.subs(values))
        check("closed inverse", {"a": inverse @ (right["tau"] - right["bias"])}, right)
