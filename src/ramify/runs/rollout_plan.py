"""The plan of a rollout: its options, checked, and its right-hand side, remembered with
the robot.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import NamedTuple

from numpy.typing import ArrayLike

from ramify.contact.hard import as_contact
from ramify.control.controller import Controller
from ramify.core.arrays import one_number, whole
from ramify.core.cached import Memo
from ramify.core.errors import SimulationError
from ramify.core.names import one_of
from ramify.emit.hard_stepper import SOLVED
from ramify.emit.stepper import Scheme
from ramify.integrate.batch_steps import Policy
from ramify.integrate.integrators import AUTO, scheme_of
from ramify.integrate.machine_steps import batch_method, hard_method, refuse_implicit
from ramify.model.robot import Robot
from ramify.plant.field import Field
from ramify.plant.make_field import (
    ContactLike,
    ControlLike,
    GroundLike,
    PlantOptions,
    make_field,
)


class RolloutOptions(NamedTuple):
    """The options of a rollout that do not depend on its states, as the user set them."""

    control: ControlLike
    ground: GroundLike
    steps: int
    dt: float
    method: str
    damping: ArrayLike
    every: int | None
    t0: float
    stabilisation: str | float
    on_failure: str
    passive: bool
    stops: bool
    efforts: bool
    pushed: tuple[str, ...] = ()
    contact: ContactLike = None

    @property
    def key(self) -> object:
        """What tells these options from others: values with their types, and ids of objects."""
        values = self[2:-1]
        grounds = (x if isinstance(x, str) else id(x) for x in (self.ground, self.contact))
        return (*map(type, values), id(self.control), *grounds, *values)


class RolloutPlan(NamedTuple):
    """The part of a rollout that does not depend on its states: checked options and the right-hand
    side. ``sources``: the controller and the ground it was made from, so that their ids stay valid.
    """

    sources: tuple[object, ...]
    equation: Field
    scheme: Scheme
    method: str
    policy: Policy | None
    project: bool
    steps: int
    every: int
    dt: float
    t0: float


def plan_of(model: Robot, options: RolloutOptions) -> RolloutPlan:
    """The plan of these options; that of an earlier call where they are equal."""
    o, key = options, options.key
    plans = model.memo.remember("rollouts", lambda: Memo(16))
    try:
        plan: RolloutPlan | None = plans.get(key)
    except TypeError:  # an array
        plan = key = None
    if plan is not None:
        return plan
    auto = o.method is AUTO or str(o.method).lower() == AUTO
    method = o.method
    hard = as_contact(o.contact) is not None
    if hard:
        method, auto = hard_method(method, o.dt).name, False
    scheme = SOLVED if hard else scheme_of("rk4" if auto else method)
    steps = whole("steps", o.steps, 0, SimulationError)
    every = 0 if o.every is None else whole("every", o.every, 1, SimulationError)
    if every > steps > 0:
        raise SimulationError(
            f"every={every} is more than steps={steps}, so that no state would be kept; leave "
            "every out to get the last one"
        )
    _check_time("dt", o.dt, positive=True)
    _check_time("t0", o.t0, positive=False)
    one_of("on_failure", o.on_failure, ("warn", "raise"), SimulationError)
    policy = o.control if callable(o.control) and not isinstance(o.control, Controller) else None
    machine = PlantOptions(
        o.damping, o.ground, o.stabilisation, o.passive, o.stops, o.efforts, counted=False,
        pushed=o.pushed, contact=o.contact,
    )  # fmt: skip
    equation = make_field(model, None if policy else o.control, machine)
    reusable = key is not None and any(equation is f for f in model.memo["fields"].values())
    if auto:
        method = batch_method(equation, float(o.dt)).name
        scheme = scheme_of(method)
    if scheme.implicit and not hard:
        refuse_implicit(equation)
        equation = equation.implicitly
    project = bool(model.loops) and o.stabilisation == "projection" and not hard
    plan = RolloutPlan(
        (o.control, o.ground, o.contact), equation, scheme, method, policy, project, steps, every,
        float(o.dt), float(o.t0),
    )  # fmt: skip
    if reusable:  # not with parts that may change between calls
        plans.keep(key, plan)
    return plan


def _check_time(name: str, value: object, positive: bool) -> None:
    if type(value) is float and (0.0 if positive else -inf) < value < inf:
        return
    number = one_number(value)
    if not isfinite(number) or (positive and number <= 0.0):
        raise SimulationError(
            f"{name} {value!r} must be a finite{' and positive' if positive else ''} number, in s"
        )
