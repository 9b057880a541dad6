"""Checks of the options of an environment and of what its functions return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, positive, real, whole
from ramify.core.errors import StateError
from ramify.core.messages import shown

Range = tuple[Array, Array]

STEP, GROUND_STEP = 2e-3, 1e-3
"""s: of the compiled steps by default, without a ground and on one."""
PERIOD = 0.02
"""s: of an environment step by default."""


def time_steps(dt: float | None, substeps: int | None, ground: bool) -> tuple[float, int]:
    """(dt, substeps) of an environment step, with defaults for what is None."""
    if dt is None:
        dt = GROUND_STEP if ground else STEP
        substeps = round(PERIOD / dt) if substeps is None else substeps
    return positive("dt", dt), whole("substeps", 10 if substeps is None else substeps, 1)


def picture_size(size: Any) -> tuple[int, int]:
    """Width and height of pictures."""
    width, height = pair("size must be (width, height) in pixels; got", size)
    return whole("width", width, 1), whole("height", height, 1)


def refuse_non_functions(**given: Any) -> None:
    """Refuse what is not a function where one is expected."""
    for name, f in given.items():
        if f is not None and not callable(f):
            raise StateError(f"{name} must be a function; got {shown(f)}")


def pair(must: str, value: Any) -> tuple[Any, Any]:
    """Two values; ``must`` begins the message where there are not two."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise StateError(f"{must} {shown(value)}")
    return value[0], value[1]


def ranges(parameters: Any) -> dict[str, Range]:
    """The ends between which parameters are drawn."""
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise StateError(f"parameters must be {{name: (low, high)}}; got {shown(parameters)}")
    ranges_by_name = {}
    for name, value in parameters.items():
        who = f"parameters: {shown(name)}"
        ends = list(value) if isinstance(value, np.ndarray) else value
        low, high = (real(who, end) for end in pair(f"{who} must be (low, high); got", ends))
        if low.shape != high.shape or not (np.isfinite(low) & np.isfinite(high)).all():
            raise StateError(f"{who} must have two finite ends of one shape")
        if (low > high).any():
            raise StateError(f"parameters: low of {shown(name)} exceeds high")
        ranges_by_name[name] = low, high
    return ranges_by_name


def action_factors(scale: ArrayLike | None, kp: ArrayLike | None, count: int) -> Array:
    """What actions are multiplied by: the scale times the stiffness of servos, each one number or
    one for each.
    """
    stiffness = real("kp", 1.0 if kp is None else kp)
    if stiffness.shape not in ((), (count,)):
        raise StateError(f"kp must be a number or {count} of them; got {stiffness.shape}")
    if not ((stiffness >= 0.0) & (stiffness < np.inf)).all():
        raise StateError(f"kp must be finite and ≥ 0; got {shown(kp)}")
    found = real("scale", 1.0 if scale is None else scale)
    if found.shape not in ((), (count,)) or not np.isfinite(found).all():
        raise StateError(f"scale must be a finite number or {count} of them; got {found.shape}")
    return np.broadcast_to(found * stiffness, (count,))


def random_generator(seed: Any) -> np.random.Generator:
    """Random numbers from a seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        text = f"seed must be a whole number ≥ 0, or several; got {shown(seed)}"
        raise StateError(text) from None


def no_options(options: Any) -> None:
    """Refuse options of reset: there are none."""
    if options is not None and not (isinstance(options, Mapping) and not options):
        text = f"reset takes no options; got {shown(options)}"
        raise StateError(f"{text}. start= gives the states to begin with")


def refuse_infinite(name: str, values: Array) -> None:
    """Refuse numbers that are not finite; the sum shows at once that all are."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
    raise StateError(f"{name} must be finite; {name}{list(place)} is {values[place]}")
