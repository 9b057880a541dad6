"""Robots as users make them: every way ends in a ``Model``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec

from ramify.api.model import Model
from ramify.files import load as files
from ramify.model import build, mechanism
from ramify.model.robot import Robot

P = ParamSpec("P")


def as_model(make: Callable[P, Robot]) -> Callable[P, Model]:
    """The same function, whose robot can be asked everything."""

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> Model:
        return Model.of(make(*args, **options))

    made.__annotations__ = {**made.__annotations__, "return": "Model"}
    return made


load = as_model(files.load)
from_dh = as_model(build.from_dh)


class Builder(build.Builder):
    __doc__ = build.Builder.__doc__

    def model(self) -> Model:
        """The finished, checked model."""
        return Model.of(self.robot())


class Mechanism(mechanism.Mechanism):
    __doc__ = mechanism.Mechanism.__doc__

    def model(self, cut: Sequence[str] | None = None) -> Model:
        """The finished, checked model; cut names the joints to cut, by default those of minimum
        cumulative degree of freedom.
        """
        return Model.of(self.robot(cut))
