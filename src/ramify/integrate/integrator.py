"""What an integrator is: a table of a Runge-Kutta scheme, a way to march in fixed steps, or a
solver that chooses its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ramify.core.arrays import Array
from ramify.emit.stepper import Scheme, explicit
from ramify.plant.field import Field

RatesLike = Callable[..., Array]
"""(t, y) -> y', of an implicit scheme (t, y, h) -> y'."""
Correction = Callable[[Array], Array]
"""A correction of a state, which puts it back on the loops."""


class Solver(Protocol):
    """An adaptive method at work: ``step`` while ``status`` is "running"; it returns a message
    where no step is possible. ``f`` is y' at (t, y), of methods that can be corrected between
    steps.
    """

    t: float
    y: Array
    nfev: int
    status: str

    def step(self) -> str | None: ...

    def dense_output(self) -> Callable[[float], Array]: ...


@dataclass(frozen=True)
class Adaptive:
    """A method that chooses its own steps. ``one_step``: it remembers nothing but the last state,
    which may be corrected between its steps.
    """

    start: Callable[..., Solver]
    """(rates, t0, y0, t_end, *, rtol, atol, max_step) -> a solver at (t0, y0)."""
    one_step: bool = True


March = Callable[[Field, RatesLike, float, Array, float, Correction], Callable[[], Array]]
"""(field, rates, t, y, dt, correct) -> a function that makes one step of ``dt`` seconds each time
it is called, from (t, y) on, and gives the state after it.
"""


@dataclass(frozen=True)
class Marching:
    """A method of fixed steps that is not an explicit Runge-Kutta scheme. ``stability``: the
    largest step times rate of decay at which it damps, None where that is unlimited.
    """

    march: March
    stability: float | None = None
    stages: int = 1


@dataclass(frozen=True)
class Integrator:
    """A method by its name. ``doc`` is one line, ``order`` that of the error of a whole run."""

    name: str
    doc: str
    order: int
    method: Scheme | Marching | Adaptive
    aliases: tuple[str, ...] = ()

    @property
    def fixed(self) -> bool:
        """Whether it needs a fixed step."""
        return not isinstance(self.method, Adaptive)


def tableau(
    name: str, a: list[list[float]], b: list[float], *, order: int, doc: str = "",
    aliases: tuple[str, ...] = (),
) -> Integrator:  # fmt: skip
    """An explicit Runge-Kutta scheme from its table: a row of ``a`` per stage (the first is empty)
    and the weights ``b``.
    """
    return Integrator(name, doc, order, explicit(name, a, b), aliases)


def runge_kutta_step(rates: RatesLike, scheme: Scheme, t: float, y: Array, dt: float) -> Array:
    """y (..., size) after one step. Stages are evaluated within the step: see ``slack``."""
    inside = slack(t, t + dt)
    stages: list[Array] = []
    for row, c, length in zip(scheme.a, scheme.c, scheme.lengths or scheme.c, strict=True):
        at = y.copy()
        for k, a in zip(stages, row, strict=False):
            at += dt * a * k
        lengths = (length * dt,) if scheme.implicit else ()
        stages.append(rates(max(t + inside, min(t + c * dt, t + dt - inside)), at, *lengths))
    out = y.copy()
    for k, b in zip(stages, scheme.b, strict=True):
        out += dt * b * k
    return out


def slack(t0: float, t1: float) -> float:
    """s: some roundings of the times of a run. Stages stay this far inside their step, so that a
    motion that ends with a step is not evaluated after its end.
    """
    return 2.0**-50 * max(abs(t0), abs(t1))
