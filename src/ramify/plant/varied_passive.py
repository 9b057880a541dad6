"""Passive forces where constants of the machine have one value a state, and the derivatives of
inverse and forward dynamics with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, real, together
from ramify.core.errors import LoopError, ModelError
from ramify.core.scalar import Scalar
from ramify.drives.machine_forces import passive_text
from ramify.dynamics.parameters import Parameter, by_name, chosen, packed, rigid_parameters
from ramify.kernels.derivative_kernels import derivatives, text_derivatives
from ramify.model.configuration import checked
from ramify.model.robot import Robot
from ramify.plant.varied_field import machine_parameters, robot_with
from ramify.trace.program import Port, Program, trace


def _packed(
    model: Robot, parameters: Mapping[str, ArrayLike]
) -> tuple[list[Parameter], Array, dict[str, ArrayLike]]:
    """(varied, values (..., size in all), those of the rigid bodies)."""
    rigid = rigid_parameters(model)
    table = {**rigid, **machine_parameters(model)}
    names, values = packed(table, parameters, model.name)
    for actuator in model.actuators:
        if f"{actuator.name}.gain" in names:
            raise ModelError(
                f"'{actuator.name}.gain' is that of an actuator, not of a passive force; "
                "rf.rollout and rf.with_parameters take it"
            )
    rest = {name: value for name, value in parameters.items() if name in rigid}
    return chosen(table, names, model.name), values, rest


def _total(
    model: Robot, varied: Sequence[Parameter], q: list[Any], v: list[Any], values: list[Any],
    stops: bool, rest: bool,
) -> list[Any]:  # fmt: skip
    """The passive forces (nv) over any scalar."""
    text = passive_text(robot_with(model, by_name(varied, values)), stops, rest)
    return text(q, v).total if text else [0.0] * model.nv


def varied_passive_forces(
    model: Robot,
    q: ArrayLike,
    v: ArrayLike,
    parameters: Mapping[str, ArrayLike],
    stops: bool = True,
    rest: bool = True,
) -> tuple[Array, dict[str, ArrayLike]]:
    """(forces (..., nv), rigid): passive forces of a robot with these constants, and those of the
    constants that its rigid bodies have.
    """
    varied, values, rigid = _packed(model, parameters)
    sizes = {"q": (q, model.nq), "v": (v, model.nv)}
    rows = [*(checked(model, key, x, n, True) for key, (x, n) in sizes.items()), values]
    lead = together(
        **dict(zip(("q", "v", "parameters"), (x.shape[:-1] for x in rows), strict=True))
    )
    of_q, of_v, of_values = ([*np.moveaxis(x, -1, 0)] for x in rows)
    total = _total(model, varied, of_q, of_v, of_values, stops, rest)
    forces = np.stack([np.broadcast_to(np.asarray(f, dtype=np.float64), lead) for f in total], -1)
    return forces, rigid


def varied_passive_derivatives(
    model: Robot, name: str, parameters: Mapping[str, ArrayLike],
    q: ArrayLike, v: ArrayLike, x: ArrayLike, stops: bool = True, rest: bool = True,
) -> tuple[Array, Array, Array, dict[str, Array]]:  # fmt: skip
    """The derivatives of inverse or forward dynamics with passive forces: by q, v, x (a or tau) and
    by each parameter.

    With the passive forces f, inverse dynamics is tau = ID(q, v, a) - f(q, v), and forward dynamics
    a = FD(q, v, tau + f(q, v)): the chain rule.
    """
    forward = name == "forward_dynamics"
    if model.loops and not forward:
        raise LoopError(
            f"{model.name} has loops: derivatives of {name} take passive=True or parameters, "
            "not both; rf.with_parameters gives a model with other constants"
        )
    varied, values, _ = _packed(model, parameters)
    passive, rigid = varied_passive_forces(model, q, v, parameters, stops, rest)

    def text(q: list[Scalar], v: list[Scalar], p: list[Scalar]) -> list[list[Scalar]]:
        return [_total(model, varied, q, v, p, stops, rest)]

    def program() -> Program:
        sizes = {"q": model.nq, "v": model.nv, "parameters": values.shape[-1]}
        ports = [Port(key, (n,)) for key, n in sizes.items()]
        return trace("passive_forces", text, ports, [Port("total", (model.nv,))])

    key = f"{passive_text(model, stops, rest).fingerprint} {[p.name for p in varied]}"
    ((f_q, f_v, f_p),) = text_derivatives(model, "passive_forces", program, key, (q, v, values))
    x = real("tau", x) + passive if forward else real("a", x) + 0.0 * passive  # of the whole batch
    by_q, by_v, by_x, *others = derivatives(model, name, (q, v, x), parameters=rigid or None)[0]

    def beside(direct: Array, slope: Array) -> Array:
        return direct + by_x @ slope if forward else direct - slope

    ends = np.cumsum([p.size for p in varied])[:-1].tolist()
    by: dict[str, Array] = dict(others[0]) if others else {}
    for parameter, slope in zip(varied, np.split(f_p, ends, axis=-1), strict=True):
        none = np.zeros((*by_q.shape[:-1], parameter.size))
        by[parameter.name] = beside(by.get(parameter.name, none), slope)
    return beside(by_q, f_q), beside(by_v, f_v), by_x, {p.name: by[p.name] for p in varied}
