"""The errors ramify raises. Each message names the culprit and what would be right."""

from __future__ import annotations


class RamifyError(ValueError):
    """Anything ramify refuses to do."""


class ModelError(RamifyError):
    """A robot that cannot be built: a bad file, an impossible inertia, a cycle, an unknown name."""


class StateError(RamifyError):
    """Coordinates, rates, accelerations or torques that a model cannot take: wrong shape, NaN,
    infinity.
    """


class LoopError(RamifyError):
    """A closed loop that cannot be assembled or moved."""


class SimulationError(RamifyError):
    """A simulation that cannot go on. ``result`` holds what was computed until then, where there is
    something.
    """

    result: object | None = None
