"""Runs made by SciPy's DOP853 from a model's own forward dynamics: what a simulator should give,
without a simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import ramify as rf
from ramify.api.result import Result
from ramify.model.configuration import unit_rates
from ramify.motion import Motion
from ramify.runs.run_record import Work

Control = Callable[[float, Any, Any], Any]

NAMES = ("base <script>alert(1)</script>", "Gelenk \"ü\" & 'ß', $x$", "关节 🦾")


def pendulum(length: float = 1.0, mass: float = 2.0) -> rf.Model:
    """A point mass on a rod that turns about y; at q = 0 it hangs."""
    return (
        rf.Builder("pendulum")
        .link("rod", joint="revolute", axis=(0, 1, 0), mass=mass, com=(0, 0, -length))
        .model()
    )


def strange() -> rf.Model:
    """Three links, turning, sliding, turning, with names that a careless writer trips over."""
    builder = rf.Builder("robot <b>&</b> 🤖")
    for i, name in enumerate(NAMES):
        builder = builder.link(
            name,
            parent=NAMES[i - 1] if i else None,
            joint="prismatic" if i == 1 else "revolute",
            axis=(0, 1, 0),
            at=(0.3, 0, 0),
            mass=1.0,
            com=(0.2, 0, 0),
            inertia=(0.01, 0.02, 0.03),
        )
    return builder.model()


def run(
    model: rf.Model,
    q0: Any,
    v0: Any,
    t_end: float,
    *,
    control: Control | None = None,
    damping: float = 0.0,
    rtol: float = 1e-9,
    rows: int = 101,
    desired: Motion | None = None,
) -> Result:
    """Simulate, with the work of the joint forces and the losses of viscous friction integrated
    along.
    """
    nq, nv = model.nq, model.nv
    force: Control = control or (lambda t, q, v: np.zeros(nv))

    def unit(q: Any) -> Any:
        q = np.array(q)
        for i, _ in model.layout.balls:
            q[..., i : i + 4] /= np.linalg.norm(q[..., i : i + 4], axis=-1, keepdims=True)
        return q

    def rates(t: float, y: Any) -> Any:
        q, v = unit(y[:nq]), y[nq : nq + nv]
        tau = force(t, q, v)
        a = model.forward_dynamics(q, v, tau - damping * v)
        return np.concatenate([v @ unit_rates(model, q), a, [tau @ v, damping * v @ v]])

    t = np.linspace(0.0, t_end, rows)
    start = np.concatenate([q0, v0, [0.0, 0.0]])
    found = solve_ivp(
        rates, (0.0, t_end), start, method="DOP853", rtol=rtol, atol=1e-2 * rtol, t_eval=t
    )
    y = found.y.T
    q, v = unit(y[:, :nq]), y[:, nq : nq + nv]
    tau = np.array([force(*row) for row in zip(t, q, v, strict=True)])
    a = model.forward_dynamics(q, v, tau - damping * v)
    options = {"method": "DOP853", "rtol": rtol, "atol": 1e-2 * rtol} | (
        {"damping": damping} if damping else {}
    )
    stats = {"evaluations": int(found.nfev), "steps": int(found.nfev) // 12}
    return Result(model, t, q, v, a, tau, Work(y[:, -2], y[:, -1]), options, stats, desired=desired)


def changed(result: Result, **arrays: Any) -> Result:
    """The same run with other arrays."""
    return replace(result, **arrays)
