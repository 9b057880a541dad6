"""Actuators as numbers: the law of one, and the algorithm of rolled code for those
that drive a single coordinate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from ramify.core.records import flatten, rebuild
from ramify.core.scalar import Scalar, may_be_nonzero, select
from ramify.drives.element_laws import clamped
from ramify.drives.joint_elements import own_coordinate
from ramify.kernels.algorithms import Algorithm
from ramify.model.machine import ANY, Actuator
from ramify.trace.rolled_program import Argument

Three = tuple[Scalar, Scalar, Scalar]
Two = tuple[Scalar, Scalar]
_NONE: Final = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class DriveLaw:
    """An actuator behind ``gear``: force = gain x + bias within the range ``force``; one without
    numbers gives nothing. x is the command u within ``command``, or, where ``active`` is 1, the
    activation w ``ahead`` s later within ``activations``, dw/dt = (u - fall w) per_time, which
    stops at the ends of that range. The joint's force stays within ``efforts``.
    """

    gear: Scalar = 0.0
    gain: Three = _NONE
    bias: Three = _NONE
    command: Two = ANY
    force: Two = ANY
    active: Scalar = 0.0
    fall: Scalar = 0.0
    per_time: Scalar = 0.0
    ahead: Scalar = 0.0
    activations: Two = ANY
    efforts: Two = ANY


def law_of(a: Actuator, gear: float = 1.0, efforts: Two = ANY) -> DriveLaw:
    """The numbers of an actuator whose transmission has a gear, at a joint with efforts."""
    filters = a.activation.startswith("filter")
    ahead = a.step
    if a.activation == "filterexact":
        ahead = a.time * (1.0 - math.exp(-a.step / a.time))
    return DriveLaw(
        gear, a.gain, a.bias, a.command, a.force,
        float(bool(a.activation)), float(filters), 1.0 / a.time if filters else 1.0,
        ahead if a.early else 0.0, a.activations, efforts,
    )  # fmt: skip


def commanded(law: DriveLaw, u: Scalar, w: Scalar | None) -> tuple[Scalar, Scalar]:
    """(x, dw/dt) under a command u and activation w; None where nothing has one."""
    u = clamped(u, *law.command)
    if w is None or not may_be_nonzero(law.active):
        return u, 0.0
    rate = (u - law.fall * w) * law.per_time
    after = clamped(w + rate * law.ahead, *law.activations)
    return select(law.active > 0.5, after, u), _limited_rate(law, w, rate)


def _limited_rate(law: DriveLaw, w: Scalar, rate: Scalar) -> Scalar:
    """dw/dt, but 0 where it would lead out of the range of activations."""
    low, high = law.activations
    if high != math.inf:
        rate = select(w < high, rate, select(rate < 0.0, rate, 0.0))
    if low != -math.inf:
        rate = select(w > low, rate, select(rate > 0.0, rate, 0.0))
    return rate


def force_of(law: DriveLaw, x: Scalar, length: Scalar, speed: Scalar) -> Scalar:
    """gain x + bias at a length of the transmission and its rate, not yet within its range."""
    return _affine(law.gain, length, speed) * x + _affine(law.bias, length, speed)


def _affine(law: Three, length: Scalar, speed: Scalar) -> Scalar:
    a, b, c = law
    return a + (b * length + c * speed) if may_be_nonzero(b) or may_be_nonzero(c) else a


_LAW: Final = DriveLaw()
_EXTRAS: Final = tuple(f"drive {i}" for i in range(len(flatten(_LAW))))


def _step(link: Any, q: Any, v: Scalar, u: Scalar, *rest: Scalar) -> tuple[Scalar, ...]:
    """Force on the joint, force of the actuator, rate of its activation."""
    w, numbers = (rest[0], rest[1:]) if len(rest) > len(_EXTRAS) else (None, rest)
    law: DriveLaw = rebuild(_LAW, iter(numbers))
    x, rate = commanded(law, u, w)
    force = clamped(force_of(law, x, law.gear * own_coordinate(q), law.gear * v), *law.force)
    return clamped(law.gear * force, *law.efforts), force, rate


def drive_forces(tree: Any, q: Any, v: Any, u: Any, *rest: Any) -> tuple[Any, ...]:
    """tau and the force of the actuator at each coordinate (nv); given the activations (nv), also
    their rates (nv).
    """
    answers = tree.each(_step, q, v, u, *rest)
    results = range(3 if len(rest) > len(_EXTRAS) else 2)
    return tuple(tree.each(lambda link, x, i=i: x[i], answers) for i in results)


def _algorithm(name: str, *state: str) -> Algorithm:
    inputs = (Argument(x, "link", 1) for x in ("v", "command", *state))
    outputs = tuple(Argument(x, "link", 1) for x in ("tau", "force", *(f"{s}_rate" for s in state)))
    q = Argument("q", "coordinate", 1)
    return Algorithm(name, (q, *inputs), outputs, drive_forces, _EXTRAS)


DRIVES: Final = _algorithm("drive_forces")
ACTIVATED: Final = _algorithm("activated_drive_forces", "activation")
