"""The hips of a walking robot as an inverted pendulum of constant height (appendix B.1.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ramify.core.errors import StateError
from ramify.core.jet import Jet
from ramify.core.scalar import Scalar
from ramify.motion.trajectory import is_one_number


@dataclass(frozen=True)
class InvertedPendulum:
    """A mass at the constant ``height`` z_h (m) over its support, carried on by gravity (m/s^2): dd
    x = w^2 x, w^2 = g / z_h (B.4).

    A step lasts ``period`` seconds and leads ``stride`` metres ahead. The repeatability conditions
    (B.8) leave one solution of (B.7), here written about the middle of the step, where they can be
    seen:

        x_h(u) = x_h(0) sinh(w (T/2 - u)) / sinh(w T/2),   x_h(0) = -stride/2
        y_h(u) = y_h(0) cosh(w (T/2 - u)) / cosh(w T/2),   abs(y_h(0)) = sway

    x_h is odd: x_h(T) = -x_h(0), and the rates at both ends are equal; y_h is even: y_h(T) =
    y_h(0), and the rates are opposite.

    Its rates at the start are those of (B.9) with the minus sign that belongs there. x_h, y_h are
    measured from the support.

    Raises StateError where a number is not finite or not positive (the sway may be zero).
    """

    height: float
    period: float
    stride: float
    sway: float = 0.0
    gravity: float = 9.81

    def __post_init__(self) -> None:
        for name in ("height", "period", "stride", "sway", "gravity"):
            value = getattr(self, name)
            least = "not negative" if name == "sway" else "positive"
            if not (is_one_number(value) and (value > 0.0 or (name == "sway" and value == 0.0))):
                raise StateError(f"{name} {value!r} must be a number, finite and {least}")
            object.__setattr__(self, name, float(value))
        if self._reach > 20.0:
            raise StateError(
                f"a step of {self.period:g} s is {2.0 * self._reach:.0f} times the pendulum's own "
                f"time, {1.0 / self.rate:.3g} s; "
                "take a shorter period or larger height"
            )

    @property
    def rate(self) -> float:
        """w = sqrt(g / z_h), 1/s."""
        return math.sqrt(self.gravity / self.height)

    @property
    def _reach(self) -> float:
        """w T / 2."""
        return 0.5 * self.rate * self.period

    def hip(self, u: Scalar) -> tuple[Jet, Jet]:
        """(x_h, y_h / y_h(0)) with their rates and accelerations at the time u of a step, 0 to
        period, over any scalar.
        """
        w = self.rate
        s, c = sinh_cosh(w * (0.5 * self.period - u), self._reach)
        x = -0.5 * self.stride / math.sinh(self._reach)
        y = 1.0 / math.cosh(self._reach)
        return Jet(x * s, -(x * w) * c, x * (w * w) * s), Jet(y * c, -(y * w) * s, y * (w * w) * c)


def sinh_cosh(x: Scalar, bound: float) -> tuple[Scalar, Scalar]:
    """(sinh x, cosh x) for |x| <= bound, over any scalar: their series, as far as its terms count
    in 64 bits.
    """
    terms = 2
    while bound ** (2 * terms) / math.factorial(2 * terms) > 1e-17:
        terms += 1
    z = x * x
    odd: Scalar = 1.0
    even: Scalar = 1.0
    for k in range(terms, 0, -1):
        odd = 1.0 + z * odd * (1.0 / ((2 * k) * (2 * k + 1)))
        even = 1.0 + z * even * (1.0 / ((2 * k - 1) * (2 * k)))
    return x * odd, even
