"""Whether a fixed step is short enough for the damping and friction of a machine."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.drives.machine_slopes import fastest_decay
from ramify.kernels.make import kernel
from ramify.sim.field import Field
from ramify.sim.integrator import Adaptive, Integrator

MARGIN: Final = 0.9
"""Share of a method's limit from which a step counts as too long."""


def step_times_decay(field: Field, q: Array, step: float) -> float:
    """h λ: a step by the fastest decay of the machine at q; 0 where that is not known."""
    viscous = np.array(field.damping)
    if field.model.loops or not (field.machine or viscous.any()):
        return 0.0
    try:
        M = kernel(field.model, "mass_matrix")(q)
        return step * fastest_decay(field.machine, viscous, M, q)
    except (RamifyError, np.linalg.LinAlgError):
        return 0.0


def too_stiff(field: Field, q: Array, integrator: Integrator, step: float) -> bool:
    """Whether the machine makes a step unstable that an implicit method could take."""
    limit = None if isinstance(integrator.method, Adaptive) else integrator.method.stability
    if limit is None or field.model.loops or field.prescribed is not None:
        return False
    return step_times_decay(field, q, step) > MARGIN * limit


def warn_of_stiff_joints(
    field: Field, q: Array, method: str, step: float, limit: float | None
) -> None:
    """Warn, once for a robot, of a step that the machine's damping makes unstable."""
    if not limit or not (field.machine or any(field.damping)):
        return
    warned: set[object] = field.model.memo.setdefault("warned of stiff joints", set())
    key = (field.machine.fingerprint, field.damping, method, float(step))
    if key in warned:
        return
    warned.add(key)
    product = step_times_decay(field, q, step)
    if product > MARGIN * limit:
        safe = step * MARGIN * limit / product
        warnings.warn(
            f"a step of {step:g} s is too long for {method}: damping and friction of "
            f"{field.model.name!r} act at up to {product / step:.3g} 1/s; take at most {safe:.2g} "
            "s, or method='implicit_joints' of rf.simulate",
            RuntimeWarning,
            stacklevel=4,
        )
