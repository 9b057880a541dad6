"""The integrators by name: one registry for ``simulate``, ``rollout``, scenario files and the
command line.

An entry is an ``Integrator``: a row of ``schemes.py`` or a file of its own. To add one from
outside, add it::

    from ramify.integrate.integrators import INTEGRATORS, tableau

    INTEGRATORS.add(tableau("heun", [[], [1.0]], [0.5, 0.5], order=2))
    rf.rollout(model, q0, v0, steps=100, dt=1e-3, method="heun")
"""

from __future__ import annotations

from typing import Final

from ramify.core.errors import SimulationError
from ramify.core.messages import near
from ramify.core.registry import NamedEntries
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


def _names_of(integrator: Integrator) -> tuple[str, ...]:
    names = (integrator.name, *integrator.aliases)
    if AUTO in names:
        raise SimulationError(f"the integrator {AUTO!r} exists already; choose another name")
    return names


INTEGRATORS: Final = NamedEntries(
    "integrator", (DOP853, *SOLVERS, CVODE, *SCHEMES, AB4, ENERGY), _names_of, SimulationError
)
"""The integrators by their names and aliases."""
register: Final = INTEGRATORS.add
forget: Final = INTEGRATORS.remove


def integrators() -> tuple[Integrator, ...]:
    """All integrators, in the order they were added."""
    return tuple(dict.fromkeys(INTEGRATORS.values()))


def method_names() -> tuple[str, ...]:
    """What ``method`` may be, aliases and "auto" included."""
    return (AUTO, *INTEGRATORS)


def find_integrator(method: str) -> Integrator:
    """The integrator of that name; SimulationError where there is none."""
    integrator = INTEGRATORS.get(str(method).lower())
    if integrator is None:
        names = method_names()
        raise SimulationError(
            f"method {method!r} is unknown; choose one of {', '.join(names)}"
            f"{near(str(method), list(names))}"
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
    integrator = INTEGRATORS.get(str(method).lower())
    if integrator is None or not isinstance(integrator.method, Scheme):
        schemes = ", ".join(i.name for i in integrators() if isinstance(i.method, Scheme))
        raise SimulationError(
            f"method {method!r} is not a fixed-step scheme; choose one of {schemes}"
        )
    return integrator.method


__all__ = [
    "AUTO",
    "HARD",
    "INTEGRATORS",
    "Adaptive",
    "Integrator",
    "Marching",
    "find_integrator",
    "forget",
    "integrators",
    "method_names",
    "register",
    "scheme_of",
    "tableau",
]
