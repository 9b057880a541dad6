"""Simulations as users start them: their runs are ``Result``s."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from ramify.api.result import Result
from ramify.core.errors import SimulationError
from ramify.sim import simulate as running
from ramify.sim.run_record import Run

P = ParamSpec("P")


def as_result(make: Callable[P, Run]) -> Callable[P, Result]:
    """The same function, whose run can be asked everything, also the one that an error carries."""

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> Result:
        try:
            return Result.of(make(*args, **options))
        except SimulationError as error:
            if isinstance(error.result, Run):
                error.result = Result.of(error.result)
            raise

    made.__annotations__ = {**made.__annotations__, "return": "Result"}
    return made


simulate = as_result(running.simulate)
