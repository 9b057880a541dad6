"""Dynamics of closed systems as the model's methods give them: kernels called, what they tell
checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array, largest_magnitude, numbers, unknown_states
from ramify.core.errors import LoopError, StateError
from ramify.core.messages import degrees
from ramify.dynamics.closure import constraint_names, reach
from ramify.kernels.closed import OPEN, UNMET
from ramify.kernels.make import kernel
from ramify.kernels.queries import applied_wrenches
from ramify.loops.constraints import constraints, may_open, open_by, rate_of_row, row_sizes
from ramify.model.configuration import configuration
from ramify.model.robot import Robot
from ramify.runtime.kernel import Kernel

Wrenches = Mapping[str, ArrayLike] | None


def with_loops(model: Robot) -> Robot:
    """The robot itself; LoopError where it has no loops."""
    if not model.loops:
        raise LoopError(f"{model.name} has no loops, and so no multipliers")
    return model


def closed_forward_dynamics(
    model: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: Wrenches
) -> tuple[Array, Array]:
    """(a, multipliers); LoopError where q is open."""
    found = multipliers(model, q, v, tau, wrenches)
    refuse_open_postures(model, q)
    return found


def closed_accelerations(
    model: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: Wrenches
) -> Array:
    """a alone; LoopError where q is open."""
    if wrenches is None:
        try:
            return _checked(model, "forward_dynamics_if_closed").call(q, v, tau)
        except StateError:  # open loops are NaN; what else is wrong is said by the other way
            pass
    name, given = ("forward_dynamics", ()) if wrenches is None else _under(model, wrenches, q)
    found: Array = kernel(model, name)(q, v, tau, *given)
    refuse_open_postures(model, q)
    return found


def _checked(model: Robot, name: str) -> Kernel:
    """A kernel that looks at the posture itself, so that one compiled call does."""
    try:
        ready: Kernel = model.memo[name]  # the fastest way to one that has been called before
    except KeyError:
        return kernel(model, name)
    return ready


def closed_forces(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches
) -> Array:
    """tau alone; LoopErrors as in ``closed_inverse_dynamics``."""
    if wrenches is None:
        try:
            return _checked(model, "inverse_dynamics_if_closed").call(q, v, a)
        except StateError:
            pass
    return closed_inverse_dynamics(model, q, v, a, wrenches)[0]


def multipliers(
    model: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: Wrenches
) -> tuple[Array, Array]:
    """(a, multipliers), whether q is closed or not."""
    name, given = ("forward_dynamics", ()) if wrenches is None else _under(model, wrenches, q)
    return kernel(model, f"{name}_multipliers")(q, v, tau, *given)


def _under(
    model: Robot, wrenches: Mapping[str, ArrayLike], q: ArrayLike
) -> tuple[str, tuple[Array, ...]]:
    return "forward_dynamics_wrenches", (applied_wrenches(model, wrenches, q),)


def closed_inverse_dynamics(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches,
    beside: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """(tau, multipliers), with passive joint forces ``beside`` (nv); LoopError where q is
    open, where a would open the loops, and where no actuator gives what a needs.
    """
    name, given = "inverse_dynamics", list[Array]()
    if wrenches is not None:
        name, given = f"{name}_wrenches", [applied_wrenches(model, wrenches, q)]
    if beside is not None:
        name, given = f"{name}_beside", [*given, beside]
    found = kernel(model, name)(q, v, a, *given)
    tau, lam, wanted, unmet, gap, slip = found
    rows = row_sizes(model)
    _refuse_open(model, gap * rows, OPEN * reach(model))
    slipping = np.abs(slip * rows)
    if largest_magnitude(slipping) > may_open(model, a, v):
        worst = _worst(slipping)
        raise LoopError(
            f"inverse_dynamics: the accelerations do not keep the loops of {model.name!r} closed: "
            f"{constraint_names(model)[worst]} would move with "
            f"{rate_of_row(model, worst, largest_magnitude(slipping), 's^2')}; "
            "model.assemble(…, rates, accelerations=…) gives accelerations that fit"
        )
    missing = largest_magnitude(unmet)
    if missing > UNMET * largest_magnitude(wanted):
        worst = _worst(unmet)
        raise LoopError(
            f"inverse_dynamics: the actuated joints of {model.name!r} cannot give this motion: "
            f"{missing:.3g} N or N m are missing at {model.velocities[worst]!r}, of "
            f"{largest_magnitude(wanted):.3g} at most; it is under-actuated, at a "
            "dead centre of its drives, or moved by loads that are not among the "
            "arguments; mark more joints actuated, give the loads as wrenches=…, or ask "
            "for a motion that forward_dynamics gives"
        )
    return tau, lam


def _worst(values: Array) -> int:
    """The last index of the entry of values (..., n) that is largest over all known states."""
    return int(np.argmax(np.fmax.reduce(np.abs(values).reshape(-1, values.shape[-1]), axis=0)))


def refuse_overdriven(model: Robot, q: ArrayLike, prescribed: NDArray[np.bool_]) -> None:
    """Refuse accelerations of coordinates (where ``prescribed``) that depend on each other through
    the loops; the first known state tells.
    """
    states = configuration(model, "q", q, True).reshape(-1, model.nq)
    states = states[~unknown_states(states)]
    if not len(states):
        return
    c = constraints(model, states[0], None)
    count = int(prescribed.sum())
    rank = np.linalg.matrix_rank(
        np.vstack([c.scaled, np.eye(model.nv)[prescribed]]),
        tol=c.tolerance * float(np.linalg.norm(c.scaled, 2)),
    )
    if rank < c.rank + count:
        raise LoopError(
            f"{model.name!r} has {degrees(c.mobility)}: the {count} prescribed "
            "accelerations depend on each other by "
            "the loops; drive fewer joints"
        )


def refuse_open_postures(model: Robot, q: ArrayLike) -> None:
    """Refuse postures (..., nq) at which the loops are open."""
    _refuse_open(model, kernel(model, "loop_gaps")(q), OPEN * reach(model))


def _refuse_open(model: Robot, gap: Array, most: float) -> None:
    """Refuse a posture at which the loops are open by more than ``most`` (m)."""
    if largest_magnitude(gap) > most:
        raise LoopError(
            f"the loops of {model.name!r} are open at q: {open_by(model, gap)}; model.assemble(…) "
            "closes them"
        )


def closed_reactions(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches,
    multipliers: ArrayLike | None,
) -> Array:  # fmt: skip
    """The wrench each joint transmits, the loops' forces among those on its body; multipliers as
    given, or of inverse dynamics.
    """
    lam: Any = (
        closed_inverse_dynamics(model, q, v, a, wrenches)[1] if multipliers is None else multipliers
    )
    on_links, _ = loop_wrenches(model, q, lam)
    applied = applied_wrenches(model, {} if wrenches is None else wrenches, q)
    return kernel(model, "reactions")(q, v, a, on_links + applied)


def loop_wrenches(model: Robot, q: ArrayLike, lam: ArrayLike) -> tuple[Array, Array]:
    """The wrenches of all loops on the links, and the one of each loop on its second link."""
    given = numbers("multipliers", lam, len(constraint_names(model)), model.name, unknown=True)
    return kernel(model, "loop_wrenches")(q, given)


def loop_forces(model: Robot, q: ArrayLike, lam: ArrayLike) -> Array:
    """See Model.loop_forces."""
    _, forces = loop_wrenches(model, q, lam)
    return np.asarray(forces).reshape(*forces.shape[:-1], len(model.loops), 6)
