"""Forces in joints that balance each other: what rigid bodies do not determine.

Multipliers with J' lam = 0 move nothing: the joints of an overconstrained linkage may carry any
multiple of them. With S (6 joints, k) the wrenches of k such self-stresses in all joints and w
those of some solution, all of w - S c balance the loads. The shortest of them, moments by a length
of the mechanism, is how joints of equal stiffness share a load; it depends neither on the solution
nor on the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.warning import warn
from ramify.dynamics.redundancy import redundancy
from ramify.kernels.make import kernel
from ramify.loops.constraints import row_sizes, scaled_jacobian
from ramify.loops.planar import as_spatial
from ramify.model.robot import Robot

_ZERO: Final = 1e-6  # share of the largest below which a force is rounding
_COMPONENTS: Final = ("mx", "my", "mz", "fx", "fy", "fz")


def self_stresses(model: Robot, q: ArrayLike) -> Array:
    """(k, ..., nc): multipliers with J' lam = 0 at q (..., nq), of the robot whose planar loops
    have all rows (``as_spatial``); zeros at states that have fewer than k.
    """
    whole = as_spatial(model)
    _, flat, _ = kernel(whole, "constraints")(q, np.zeros(model.nv))
    A = scaled_jacobian(whole, flat.reshape(*flat.shape[:-1], -1, model.nv))
    unknown = np.asarray(np.isnan(A).any(axis=(-2, -1)))
    u, counted, _ = np.linalg.svd(np.where(unknown[..., None, None], 0.0, A))
    s = np.zeros(u.shape[:-1])
    s[..., : counted.shape[-1]] = counted
    null = (s <= redundancy(model).tolerance * s[..., :1]) & ~unknown[..., None]
    lam = np.where(null[..., None, :], u, 0.0) * row_sizes(whole)[:, None]
    some = null.reshape(-1, null.shape[-1]).any(axis=0)
    return np.moveaxis(lam[..., some], -1, 0)


class Sharing:
    """How self-stresses S (..., joints, 6, k) share the loads of joints at points (..., joints, 3);
    joints that are ``rigid`` take no part.
    """

    def __init__(self, S: Array, points: Array, rigid: Sequence[bool]) -> None:
        force, moment = (
            np.linalg.norm(S[..., part, :], axis=(-2, -1)) for part in (slice(3, 6), slice(0, 3))
        )
        self.taking = ~np.array(rigid)
        every = np.broadcast_to(self.taking, force.shape)
        strength = moment + force * _spread(points, every)[..., None]
        size = _spread(points, every & (strength > _ZERO * strength.max(axis=-1, keepdims=True)))
        self.weights = np.where(np.arange(6) < 3, 1.0 / size[..., None], 1.0)[..., None, :]
        self.S = np.nan_to_num(S * self.weights[..., None])
        most = np.abs(self.S).max(axis=(-3, -2, -1))
        self.free = np.abs(self.S).max(axis=-1) > _ZERO * most[..., None, None]

    def shared(self, wrenches: Array) -> Array:
        """(..., joints, 6): the shortest of all wrenches that balance the same loads."""
        k = self.S.shape[-1]
        taking = self.S[..., self.taking, :, :]
        w = (wrenches * self.weights)[..., self.taking, :]
        rows = taking.reshape(*taking.shape[:-3], -1, k)
        c = np.linalg.pinv(rows, rcond=_ZERO) @ w.reshape(*w.shape[:-2], -1, 1)
        rest: Array = wrenches - (self.S @ c[..., None, :, :])[..., 0] / self.weights
        return rest

    def loaded(self, wrenches: Array) -> Array:
        """(..., joints), bool: whether a joint carries anything along what is not determined."""
        w = (wrenches * self.weights)[..., None]
        along = self.S @ (np.linalg.pinv(self.S, rcond=_ZERO) @ w)
        size = np.linalg.norm(w, axis=-2).max(axis=-2, keepdims=True)[..., 0]
        return np.asarray(np.linalg.norm(along[..., 0], axis=-1) > _ZERO * size)


def _spread(points: Array, counted: Array) -> Array:
    """(...), m: the largest distance of the counted points from their mean; 1 where all are one."""
    share = counted / np.maximum(counted.sum(axis=-1, keepdims=True), 1)
    mean = (points * share[..., None]).sum(axis=-2, keepdims=True)
    size = np.where(counted, np.linalg.norm(points - mean, axis=-1), 0.0).max(axis=-1)
    return np.where(size > 1e-12, size, 1.0)


def warn_of_sharing(model: Robot, names: Sequence[str], sharing: Sharing, wrenches: Array) -> None:
    """Warn of wrenches (..., joints, 6) with components that rigid bodies do not determine, where
    these are not zero.
    """
    loaded = sharing.loaded(wrenches).reshape(-1, len(names))
    if not loaded.any():
        return
    states = np.flatnonzero(loaded.any(axis=-1))
    free = np.broadcast_to(sharing.free, wrenches.shape).reshape(-1, *wrenches.shape[-2:])
    affected = np.asarray(free[states].any(axis=0))
    listed = [
        f"{name} ({' '.join(c for c, x in zip(_COMPONENTS, row, strict=True) if x)})"
        for name, row in zip(names, affected, strict=True)
        if row.any()
    ]
    more = f" and {len(listed) - 12} more" if len(listed) > 12 else ""
    where = f" at {len(states)} of {len(loaded)} states" if len(loaded) > 1 else ""
    warn(
        f"bearing_forces: {model.name!r} is statically indeterminate{where}: rigid bodies do not "
        f"determine the wrenches in {', '.join(listed[:12])}{more}. These components are shared as "
        "joints of equal stiffness would share them; all others are determined. Planar joints "
        "count as pins of space; joints with more freedom (spherical, cylindrical) can make the "
        "mechanism determinate",
        RuntimeWarning,
    )
