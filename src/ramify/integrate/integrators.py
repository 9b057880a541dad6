"""The integrators by name: one registry for ``simulate``, ``rollout``, scenario files and the
command line.

An entry is an ``Integrator``: a row of ``schemes.py`` or a file of its own. To add one from
outside, ``register`` it::

    from ramify.integrate.integrators import register, tableau

    register(tableau("heun", [[], [1.0]], [0.5, 0.5], order=2))
    rf.rollout(model, q0, v0, steps=100, dt=1e-3, method="heun")
"""

from __future__ import annotations

from typing import Final

from ramify.core.errors import SimulationError
from ramify.core.messages import near
from ramify.emit.hard_stepper import SOLVED
from ramify.emit.stepper import Scheme
from ramify.integrate.adams_bashforth import AB4
from ramify.integrate.compiled_dop853 import DOP853
from ramify.integrate.cvode import CVODE
from ramify.integrate.energy_preserving import ENERGY
from ramify.integrate.integrator import Adaptive, Integrator, Marching, tableau
from ramify.integrate.schemes import SCHEMES
from ramify.integrate.scipy_solvers import SOLVERS

AUTO: Final = "auto"
"""dop853, and lsoda from where the motion proves stiff; rk4 where a step is given."""

_BY_NAME: dict[str, Integrator] = {}


def register(integrator: Integrator) -> Integrator:
    """Make an integrator known by its name and its aliases; a duplicate name is refused."""
    for name in (integrator.name, *integrator.aliases):
        if name in _BY_NAME or name == AUTO:
            raise SimulationError(f"an integrator named {name!r} exists already")
    for name in (integrator.name, *integrator.aliases):
        _BY_NAME[name] = integrator
    return integrator


def forget(integrator: Integrator) -> None:
    """Take an integrator out of the registry."""
    for name in (integrator.name, *integrator.aliases):
        _BY_NAME.pop(name, None)


def integrators() -> tuple[Integrator, ...]:
    """All integrators, in the order they were registered."""
    return tuple(dict.fromkeys(_BY_NAME.values()))


def names() -> tuple[str, ...]:
    """What ``method`` may be, aliases and "auto" included."""
    return (AUTO, *_BY_NAME)


def find(method: str) -> Integrator:
    """The integrator of that name; SimulationError where there is none."""
    integrator = _BY_NAME.get(str(method).lower())
    if integrator is None:
        some = ", ".join(names())
        raise SimulationError(
            f"method {method!r} is unknown; choose one of {some}{near(str(method), list(names()))}"
        )
    return integrator


HARD: Final = Integrator(
    "hard_contact",
    "contacts, stops, dry friction and loops solved together in each step",
    1,
    SOLVED,
)
"""The method of every run with hard contact; it has no meaning without one."""


def scheme_of(method: str) -> Scheme:
    """The table of a fixed-step scheme, which rollouts need."""
    integrator = _BY_NAME.get(str(method).lower())
    if integrator is None or not isinstance(integrator.method, Scheme):
        schemes = ", ".join(i.name for i in integrators() if isinstance(i.method, Scheme))
        raise SimulationError(
            f"method {method!r} is not a fixed-step scheme; choose one of {schemes}"
        )
    return integrator.method


for _one in (DOP853, *SOLVERS, CVODE, *SCHEMES, AB4, ENERGY):
    register(_one)

__all__ = [
    "AUTO",
    "HARD",
    "Adaptive",
    "Integrator",
    "Marching",
    "find",
    "forget",
    "integrators",
    "names",
    "register",
    "scheme_of",
    "tableau",
]
