"""Coordinates that move no inertia: where forward dynamics would divide by zero."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError, SimulationError
from ramify.core.records import add
from ramify.core.scalar import number
from ramify.core.spatial import ArticulatedInertia
from ramify.model.robot import Robot

SINGULAR: Final = 1e-12
"""A pivot below this moves no inertia."""

_UPRIGHT: Final = (1.0, 0.0, 0.0, 0.0)


def pivots(model: Robot, q: Array) -> list[float]:
    """Per coordinate the articulated inertia m^ = p' M^ p (eq. 5.35) over the composite inertia's
    size: zero where I is singular.

    A coordinate without inertia is held, so that those nearer to the base are judged by themselves.
    """
    links, parents = model.skeleton.links, model.skeleton.parents
    at = model.skeleton.coordinates(q.tolist(), _UPRIGHT)
    free = [link.M.articulated() for link in links]
    whole = [link.M for link in links]
    ratio = [0.0] * len(links)
    for k in reversed(range(len(links))):
        link, size = links[k], whole[k]
        psi = free[k] @ link.p.column
        pivot = link.p.dot(psi) + link.rotor
        rho, eta = number(link.p.rho), number(link.p.eta)
        scale = rho**2 * (size.I.xx + size.I.yy + size.I.zz) + eta**2 * size.m + link.rotor
        ratio[k] = number(pivot / scale) if scale > 0.0 else 0.0
        handed: ArticulatedInertia = free[k]
        if ratio[k] > SINGULAR:
            handed = handed.minus_outer(psi, psi * (1.0 / pivot))
        if parents[k] >= 0:
            A = link.propagation(link.displacement(at[k]))
            free[parents[k]] = add(free[parents[k]], A.congruence(handed))
            whole[parents[k]] = add(whole[parents[k]], A.congruence(size))
    return ratio


def refuse_massless(model: Robot, what: str) -> None:
    """Raise ModelError where nothing that moves has mass, inertia or a rotor: the answer to
    ``what`` would be zero or undefined.
    """
    if np.any(model.armature) or any(b.mass > 0.0 or b.inertia.any() for b in model.bodies):
        return
    raise ModelError(
        f"{what}: {model.name!r} has no mass, so it has kinematics only; give its links mass, com "
        "and inertia"
    )


@contextmanager
def determined(model: Robot, what: str) -> Iterator[None]:
    """Where a text of accelerations divides by a pivot that is zero whatever the posture: a
    SimulationError that names the joint that moves no mass.
    """
    try:
        yield
    except ZeroDivisionError:  # as where a base of no mass floats
        refuse_massless(model, what)
        raise SimulationError(
            f"{never_moved(model)}, so its acceleration is not determined; give its links mass, or "
            "fix the joint; see model.check()"
        ) from None


def never_moved(model: Robot) -> str:
    """The first coordinate that moves no inertia in any posture, for a message."""
    name = next(iter(_unmoved(model, model.random(1)[0])), "a joint")
    return f"{name!r} of {model.name!r} moves no mass"


def _unmoved(model: Robot, q: Array) -> list[str]:
    found = zip(model.velocities, pivots(model, q), strict=True)
    return [name for name, pivot in found if pivot <= SINGULAR]


def without_inertia(model: Robot, q: Array) -> str:
    """Names the coordinates that move no inertia at q (nq), for a message; "" where there is
    none.
    """
    names = _unmoved(model, q)
    if not names:
        return ""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (
        f"the inertia matrix is singular there: {', '.join(map(repr, names[:5]))}{more} moves no "
        "inertia; give its links mass, or fix the joint; see model.check()"
    )
