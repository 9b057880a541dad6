"""A problem of optimal control: a machine, a horizon, costs, constraints and limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, one_number, real, whole
from ramify.core.cached import cached_property
from ramify.core.errors import StateError
from ramify.core.messages import near, shown
from ramify.core.names import mapping_of
from ramify.integrate.integrators import scheme_of
from ramify.model.driven import Actuated, driven
from ramify.model.robot import Robot, the_robot
from ramify.optimal.knot import Knot
from ramify.optimal.machine_step import MachineStep
from ramify.optimal.problem_code import ProblemCode
from ramify.optimal.programs import ProblemTexts, Programs
from ramify.plant.make_field import GroundLike, PlantOptions, make_field
from ramify.runtime.target import host

_LOOPS: Final = 0.2
"""How much of a loop's error is taken back in a step."""


class Problem:
    """Minimise the sum over the knots of ``cost`` and, at the last one, ``final``.

    robot: the machine as it is: drives, springs, friction, stops, loops. dt: the length of a step,
    s; a pair (least, most) makes it free, one length for each knot. horizon: the number of steps.

    cost, final, keep: functions of a ``Knot``. A cost returns residuals, a list: half the sum of
    their squares is minimised; ``weighted`` gives them weights and names. keep returns a list of
    scalars that must not be positive at any knot; those that do not depend on the controls hold at
    the last knot too, and cannot be changed at the first.

    parameters: names and sizes of numbers that you give when you solve: goals, weights, obstacles.
    effort: the largest force of each drive, N m or N: a number, one for each drive, pairs (least,
    most), or None for what the drives of the machine can give.

    method: a scheme with fixed steps, as for ``simulate``. ground, passive, stops: as there.
    actuated: the driven joints. Loops are drawn together over some steps (Baumgarte).

    Raises StateError where something does not fit.
    """

    def __init__(
        self,
        robot: Robot,
        dt: float | tuple[float, float],
        horizon: int,
        cost: Callable[[Knot], Any],
        final: Callable[[Knot], Any] | None = None,
        keep: Callable[[Knot], Any] | None = None,
        *,
        parameters: Mapping[str, int] | None = None,
        effort: Any = None,
        method: str = "semi_implicit_euler",
        ground: GroundLike = None,
        actuated: Actuated = None,
        passive: bool = True,
        stops: bool = True,
    ) -> None:
        the_robot(robot)
        self.robot = robot
        self.horizon = _horizon(horizon)
        lengths = _lengths(dt)
        self.dt = lengths[0] if lengths[0] == lengths[1] else None
        self._lengths = lengths
        for name, function in (("cost", cost), ("final", final), ("keep", keep)):
            if not callable(function) and (name == "cost" or function is not None):
                raise StateError(f"{name} must be a function of a knot; it is {shown(function)}")
        self.parameters = _sizes(parameters)
        scheme = scheme_of(method)
        options = PlantOptions(
            ground=ground, stabilisation=_LOOPS / max(lengths), passive=passive, stops=stops,
            efforts=False, implicit=scheme.implicit, counted=False,
        )  # fmt: skip
        field = make_field(robot, None, options)
        drives = driven(robot, actuated)
        if not drives.v:
            raise StateError(
                f"{robot.name!r} has no driven joint: nothing can be controlled; name some in "
                "actuated="
            )
        self.step = MachineStep(field, scheme, drives, self.dt)
        self.low, self.high = self._bounds(effort)
        self.texts = ProblemTexts(self.step, cost, final, keep, self.parameters)
        self.programs = Programs(self.texts, max(2, host().width))
        self.boxed = bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())
        _ = self.programs.residuals, self.programs.final_residuals  # errors of the functions

    def __repr__(self) -> str:
        dt = self._lengths if self.dt is None else self.dt
        return f"Problem({self.robot.name!r}, dt={dt}, horizon={self.horizon})"

    @property
    def nu(self) -> int:
        """The number of controls: driven forces, and the length of the step if that is free."""
        return self.step.controls

    @property
    def controls(self) -> tuple[str, ...]:
        """The names of the controls."""
        return (*self.step.driven.names, *(["dt"] if self.dt is None else []))

    @cached_property
    def code(self) -> ProblemCode:
        """The compiled passes."""
        return ProblemCode(self.programs, self.boxed)

    # ---- limits ----

    def _bounds(self, effort: Any) -> tuple[Array, Array]:
        """The least and the largest control, infinite where there is no limit."""
        count, names = len(self.step.driven), self.step.driven.names
        if effort is None:
            ranges = [self.step.field.effort_ranges[j] for j in self.step.driven.v]
            low, high = (np.array(side, dtype=float) for side in zip(*ranges, strict=True))
        else:
            limits = real("effort", effort)
            if limits.shape in ((), (1,), (count,)):
                high = np.broadcast_to(limits, (count,)).copy()
                low = -high
            elif limits.shape == (count, 2):
                low, high = limits[:, 0].copy(), limits[:, 1].copy()
            else:
                raise StateError(
                    f"effort has shape {limits.shape}; give one number, {count} numbers or "
                    f"{count} pairs (least, most), one for each of {', '.join(names[:12])}"
                )
        for name, a, b in zip(names, low, high, strict=True):
            if not a <= b:
                raise StateError(
                    f"effort of {name!r}: no force is within {a:g} … {b:g}; the least must not "
                    "exceed the largest, and neither may be NaN"
                )
        if self.dt is None:
            low, high = (np.append(x, t) for x, t in zip((low, high), self._lengths, strict=True))
        return low, high

    def parameter_rows(self, values: Mapping[str, Any], lead: tuple[int, ...] = ()) -> Array:
        """The parameters (..., horizon + 1, size) of all knots from values by name: (size,) for
        all knots, (horizon + 1, size) for each, with the leading axes of a batch before them. A
        tuple, such as a pose, is one value after the other.
        """
        unknown = [name for name in values if name not in self.parameters]
        if unknown:
            raise StateError(
                f"{unknown[0]!r} is not a parameter of this problem"
                f"{near(unknown[0], list(self.parameters))}; they are: "
                f"{', '.join(self.parameters) or 'none'}"
            )
        missing = [name for name in self.parameters if name not in values]
        if missing:
            raise StateError(f"the parameter {missing[0]!r} needs a value")
        knots = self.horizon + 1
        rows = np.zeros((*lead, knots, self.texts.parameter_size))
        start = 0
        for name, size in self.parameters.items():
            value = values[name]
            if isinstance(value, tuple) and all(np.ndim(part) for part in value):
                value = np.concatenate([np.ravel(part) for part in value])
            numbers = real(name, value)
            if size == 1 and numbers.shape[-1:] != (1,):
                numbers = numbers[..., None]
            if numbers.shape[-1:] != (size,):
                raise StateError(f"{name} has shape {numbers.shape}; it needs (..., {size})")
            if not np.isfinite(numbers).all():
                raise StateError(
                    f"{name} must be finite; it holds {numbers[~np.isfinite(numbers)][0]}"
                )
            if numbers.ndim > 1 and numbers.shape[-2] == knots:
                spread = numbers
            else:
                spread = numbers[..., None, :]
            try:
                rows[..., start : start + size] = spread
            except ValueError:
                raise StateError(
                    f"{name} has shape {numbers.shape}; give ({size},), or ({knots}, {size}) for "
                    "each knot, with the leading axes of the start before them"
                ) from None
            start += size
        return rows


def _horizon(horizon: int) -> int:
    steps = whole("horizon", horizon, 0)
    if steps < 1:
        raise StateError(
            f"horizon is {horizon}: an empty horizon has nothing to optimise; give 1 or more steps"
        )
    return steps


def _lengths(dt: Any) -> tuple[float, float]:
    pair = tuple(dt) if isinstance(dt, (tuple, list)) else (dt, dt)
    if len(pair) != 2 or not all(0.0 < one_number(x) < math.inf for x in pair) or pair[0] > pair[1]:
        raise StateError(
            f"dt is {dt!r}; it must be a finite number of seconds > 0, or a pair (least, most)"
        )
    return float(pair[0]), float(pair[1])


def _sizes(parameters: Mapping[str, int] | None) -> dict[str, int]:
    sizes = {name: whole(f"parameters[{name!r}]", size, 1)
             for name, size in mapping_of("parameters", parameters).items()}  # fmt: skip
    for name in sizes:
        if not name.isidentifier() or hasattr(Knot, name) or name in ("q", "v", "u", "dt", "robot"):
            raise StateError(
                f"parameters: {name!r} cannot be the name of a parameter; choose an identifier "
                "that is not an attribute of a knot"
            )
    return sizes


def starts(problem: Problem, q: ArrayLike, v: ArrayLike | None) -> Array:
    """The states x (..., size) at which problems begin."""
    from ramify.core.arrays import together
    from ramify.model.configuration import checked, configuration

    robot = problem.robot
    at_q = configuration(robot, "q", q)
    at_v = checked(robot, "v", np.zeros(robot.nv) if v is None else v, robot.nv)
    lead = together(q=at_q.shape[:-1], v=at_v.shape[:-1])
    at_q, at_v = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (at_q, at_v))
    return problem.step.field.start(np.ascontiguousarray(at_q), np.ascontiguousarray(at_v))
