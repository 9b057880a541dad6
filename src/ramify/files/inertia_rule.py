"""One rule for the inertias of all robot files: which are refused, and which are doubted."""

from __future__ import annotations

import math

import numpy as np

from ramify.core.arrays import Array


def fault_of(mass: float, inertia: Array, rows: bool = False) -> str:
    """Why a mass (kg) and an inertia (3, 3) about the mass centre (kg m^2) are refused: numbers
    that are not finite, a negative mass, or a moment that is negative beyond rounding. "" where
    they are not. ``rows``: the tensor is given as a matrix, which may be a turned one, so that its
    diagonal alone says nothing: see ``doubt_about``.
    """
    if not math.isfinite(mass) or mass < 0.0:
        return f"mass {mass:g} kg must be finite and ≥ 0"
    if not np.isfinite(inertia).all():
        return "moments of inertia must be finite"
    moments = np.diag(inertia)
    if moments.min() < -dust(mass, inertia) and not rows:
        listed = ", ".join(f"{x:g}" for x in moments)
        return f"moments of inertia {listed} kg m^2; none may be negative"
    return ""


def doubt_about(mass: float, inertia: Array) -> str:
    """What no matter has, though robots with it are in use: a tensor with products of inertia so
    large that a principal moment is negative beyond rounding. "" where there is nothing to doubt.
    """
    least = float(np.linalg.eigvalsh(inertia)[0])
    if least >= -dust(mass, inertia):
        return ""
    text = f"the inertia has a negative principal moment, {least:.4g} kg m^2, as no matter can"
    return f"{text}; taken as it is: check the signs of its products"


def dust(mass: float, inertia: Array) -> float:
    """A moment of inertia above minus this counts as rounded zero, in kg m^2."""
    return 1e-12 * mass + 1e-9 * float(np.abs(inertia).max())
