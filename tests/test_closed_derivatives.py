"""Derivatives of closed systems: of accelerations, forces and multipliers, against differences with
fifty digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closed_systems import KINDS, four_bar, tangent, two_arms
from mechanisms import MECHANISMS, consistent
from mpmath import mp, mpf
from peers import worst

import ramify as rf
from ramify.core.arrays import Array
from ramify.kernels.make import algorithm_of, kernel
from ramify.kernels.text import plain_text
from ramify.model.configuration import unit_rates
from ramify.trace import differentiate
from ramify.trace.interpret import interpret

ARMS = ("revolute", "spherical", "distance", "cylindrical")


def system(name: str) -> tuple[rf.Model, Array, Array, Array]:
    """A closed robot and a state that keeps its loops closed."""
    if name not in ARMS:
        model = rf.load(name)
        return model, *consistent(model, 1)
    kind, options = next(k for k in KINDS if k[0] == name)
    model, q = two_arms(5, kind, options, base=None)
    v = tangent(model, q)
    c = model.constraints(q, v)
    return model, q, v, tangent(model, q, 1) - np.linalg.pinv(c.J) @ c.Jdot_v


@pytest.mark.parametrize("name", [m for m in MECHANISMS if m != "stewart_platform"] + list(ARMS))
def test_fifty_digits(name: str) -> None:
    """Along a direction in all inputs, loops opened or not, every result changes as the text's
    own difference says.
    """
    model, q, v, a = system(name)
    rng = np.random.default_rng(3)
    dq, dv, dx = rng.normal(size=(3, model.nv))
    for algorithm, x in (("forward_dynamics_multipliers", rng.normal(size=model.nv)),
                         ("inverse_dynamics", a)):  # fmt: skip
        directions = (dq @ unit_rates(model, q), dv, dx)
        program = differentiate.tangent(kernel(model, algorithm).program, (0, 1, 2))
        found = interpret(program, [row[None] for row in (q, v, x, *directions)])
        text = plain_text(algorithm_of(model, algorithm), model, ())
        with mp.workdps(50):
            h = mpf(10) ** -18

            def ahead(
                s: Any,
                given: Any = (q, v, x),
                along: Any = directions,
                h: Any = h,
                text: Any = text,
            ) -> list[list[Any]]:
                return text(
                    *(
                        [mpf(float(b)) + s * h * mpf(float(d)) for b, d in zip(*pair, strict=True)]
                        for pair in zip(given, along, strict=True)
                    )
                )

            up, down = ahead(1), ahead(-1)
            slopes = [
                np.array([float((b - c) / (2 * h)) for b, c in zip(*pair, strict=True)])
                for pair in zip(up[:2], down[:2], strict=True)
            ]
        for ours, wanted in zip(found, slopes, strict=False):
            assert worst(ours[0], wanted) < 1e-8


@pytest.mark.parametrize("planar", [True, False])
def test_along_the_motion(planar: bool) -> None:
    """Columns combined to a motion that keeps the loops closed, against differences of assembled
    states; also where the rows of a loop are redundant.
    """
    model = four_bar(planar=planar)
    tau = np.array([0.3, 0.0, 0.0])

    def at(angle: float) -> tuple[Array, Array]:
        state = model.assemble({"crank": angle}, {"crank": 2.0})
        return state.q, state.v

    q, v = at(0.4)
    h = 1e-5
    ends = [at(0.4 + s * h) for s in (1, -1)]
    dq, dv = ((b - c) / (2 * h) for b, c in zip(*ends, strict=True))
    by_q, by_v, by_tau = model.forward_dynamics_derivatives(q, v, tau)
    up, down = (model.forward_dynamics(*end, tau) for end in ends)
    assert worst(by_q @ dq + by_v @ dv, (up - down) / (2 * h)) < 1e-6
    more = model.forward_dynamics(q, v, tau + np.array([1.0, 0, 0])) - model.forward_dynamics(
        q, v, tau
    )
    assert worst(by_tau[:, 0], more) < 1e-9
    out = [np.empty((3, 3)) for _ in range(3)]
    model.forward_dynamics_derivatives(q, v, tau, out=out)
    assert np.array_equal(out[0], by_q)


def test_open_loops_are_refused() -> None:
    model = rf.load("four_bar")
    q, v = model.tree.random(0)
    for method in (model.inverse_dynamics_derivatives, model.forward_dynamics_derivatives):
        with pytest.raises(rf.LoopError, match="open at q"):
            method(q, v, v)
    for name in ("inverse_dynamics", "forward_dynamics"):
        with pytest.raises(rf.LoopError, match="open at q"):
            model.derivatives(name, q, v, v)
        with pytest.raises(rf.LoopError, match="open at q"):
            model.derivative_along(name, (q, v, v), (v, v, v))
