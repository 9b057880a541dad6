"""What a controller sees of the robot: the state itself, or what a sensor makes of it.

A sensor is a text over any scalar, so that it is compiled with its controller. To add one (a delay,
an estimator, another noise), derive from ``Sensor`` and put a word above the dataclass::

    @SENSORS.add("offset")
    @dataclass(frozen=True)
    class Offset(Sensor):
        angle: float = 0.0

        def measured(self, robot, t, q, v):
            return [x + self.angle for x in q], list(v)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Final

from ramify.control.robot_text import RobotText
from ramify.core.errors import StateError
from ramify.core.scalar import Scalar, Scalars, floor
from ramify.documents.forms import Number
from ramify.documents.kinds import Registry, check_numbers, key

SENSORS: Final[Registry[Sensor]] = Registry("sensor", guessed=True)
"""Sensors by their words."""
_BITS: Final = 2.0**26
"""The range of the numbers that are mixed: their squares are exact."""
_STEP: Final = 24_036_583.0
"""An odd number, so that the sums with its multiples run through the whole range."""


@dataclass(frozen=True)
class Sensor(ABC):
    """The state of a robot as it is measured. A kind of sensor is a frozen dataclass that writes
    ``measured``; its repr must say all that the measurement depends on.
    """

    @abstractmethod
    def measured(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars
    ) -> tuple[list[Scalar], list[Scalar]]:
        """(q, v) as the controller sees them at time t (s): q (nq), v (nv), over any scalar."""

    @property
    def needs_samples(self) -> bool:
        """Whether it jumps from one evaluation to the next, so that it suits sampled controllers
        alone.
        """
        return False

    @property
    def rounds(self) -> bool:
        """Whether it is a staircase, whose slope says nothing of the motion."""
        return False


@SENSORS.add("encoder")
@dataclass(frozen=True)
class Encoder(Sensor):
    """Encoders at the joints: coordinates to a ``resolution`` (rad or m), rates to a
    ``rate_resolution`` (rad/s or m/s), 0 for exact; with ``noise`` and ``rate_noise``, standard
    deviations, before they are rounded. Balls and free bases are measured exactly.

    The noise is bounded by 3.5 deviations and follows from ``seed``, time and coordinate, so that
    every tier and every repetition of a run has the same; states of a batch share it. It goes with
    sampled controllers (``rate_hz``) alone. Raises StateError for a number that is negative.
    """

    resolution: float = field(default=0.0, metadata=key(Number(least=0.0), unit="rad or m"))
    rate_resolution: float = field(
        default=0.0, metadata=key(Number(least=0.0), unit="rad/s or m/s")
    )
    noise: float = field(default=0.0, metadata=key(Number(least=0.0), unit="rad or m"))
    rate_noise: float = field(default=0.0, metadata=key(Number(least=0.0), unit="rad/s or m/s"))
    seed: int = field(default=0, metadata=key(Number(least=0, whole=True)))

    def __post_init__(self) -> None:
        check_numbers(self)

    @property
    def needs_samples(self) -> bool:
        return self.noise > 0.0 or self.rate_noise > 0.0

    @property
    def rounds(self) -> bool:
        return self.resolution > 0.0 or self.rate_resolution > 0.0

    def measured(
        self, robot: RobotText, t: Scalar, q: Scalars, v: Scalars
    ) -> tuple[list[Scalar], list[Scalar]]:
        angles, rates, layout = list(q), list(v), robot.model.layout
        for i, j in zip(layout.plain_q, layout.plain_v, strict=True):
            angles[i] = self._read(angles[i], self.resolution, self.noise, t, 2 * j)
            rates[j] = self._read(rates[j], self.rate_resolution, self.rate_noise, t, 2 * j + 1)
        return angles, rates

    def _read(
        self, x: Scalar, resolution: float, deviation: float, t: Scalar, channel: int
    ) -> Scalar:
        if deviation:
            x = x + deviation * noise(t, channel, self.seed)
        return resolution * floor(x / resolution + 0.5) if resolution else x


def noise(t: Scalar, channel: int, seed: int) -> Scalar:
    """A number of mean 0 and variance 1 from a time (to the microsecond), a channel and a seed:
    the sum of four that are spread evenly. Integers in 64-bit floats, exact on every machine.
    """
    sample = floor(1e6 * t + 0.5)
    total: Scalar = -2.0
    for k in range(4):
        x = _wrapped(sample * 12_345.0 + (_STEP * (4 * channel + k) + 7_919.0 * seed))
        for i in range(3):  # the middle of the square, and a constant so that none stays zero
            x = _wrapped(floor(x * x / 2.0**13) + _STEP * (i + 1))
        total = total + x / _BITS
    return 3.0**0.5 * total


def _wrapped(x: Scalar) -> Scalar:
    """A whole number ≥ 0 modulo 2^26."""
    return x - _BITS * floor(x / _BITS)


def check_sensor(sensor: object, rate_hz: float | None) -> None:
    """StateError where it is not a sensor, or needs a sampled controller and that is not one."""
    if not isinstance(sensor, Sensor):
        raise StateError(
            "sensor must be one of rf.control such as Encoder(resolution=1e-3); it is a "
            f"{type(sensor).__name__}"
        )
    if sensor.needs_samples and rate_hz is None:
        raise StateError(
            f"{sensor!r} jumps from one evaluation to the next: give the controller a rate_hz"
        )
