"""What acts on a run and what watches over it, one observer each: see ``driver``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.integrate.closed_run import LoopMonitor
from ramify.integrate.driver import Observer
from ramify.integrate.integrators import find_integrator
from ramify.integrate.options import RUNAWAY, Event
from ramify.integrate.run_segments import StepChunk
from ramify.integrate.run_steps import RunSteps
from ramify.plant.field import Field
from ramify.plant.kernel_parts import unit
from ramify.plant.pushes import Pushes
from ramify.plant.rates import sample

_DRIFT: Final = 200  # steps of a method of several steps before loops are closed again


class SampledControl(Observer):
    """Sets the forces of a sampled controller; a segment ends at the next sample."""

    def __init__(self, field: Field, rate: float) -> None:
        self.field, self.rate = field, rate

    def before(self, steps: RunSteps) -> None:
        t, t_end, rate = steps.t, steps.options.t_end, self.rate
        until = min(t_end, (math.floor(t * rate + 1e-6) + 1) / rate)
        steps.limit(t_end if t_end - until < 1e-12 * t_end else until)
        if abs(t * rate - round(t * rate)) < 1e-6:
            steps.y = steps.y.copy()  # the controller's states advance
            steps.rates.u[: self.field.model.nv] = sample(self.field, t, steps.y)


class ScheduledPushes(Observer):
    """Sets the external wrenches; a segment ends where they jump."""

    def __init__(self, pushes: Pushes) -> None:
        self.pushes = pushes

    def before(self, steps: RunSteps) -> None:
        steps.rates.push(self.pushes.at(steps.t))
        steps.limit(self.pushes.until(steps.t, steps.options.t_end))


class LoopWatch(Observer):
    """Watches the loops after each step, and closes them anew where the method cannot be corrected
    between its steps.
    """

    def __init__(self, monitor: LoopMonitor) -> None:
        self.monitor, self.since = monitor, 0

    def check(self, steps: RunSteps, chunk: StepChunk) -> None:
        self.monitor.watch_step(chunk, steps.y)

    def after(self, steps: RunSteps, chunk: StepChunk) -> None:
        if self.monitor.project and steps.multistep and steps.counters.steps >= self.since + _DRIFT:
            self.since, steps.restart = steps.counters.steps, True


class Runaway(Observer):
    """Ends a run whose velocities no machine could have, before its steps get ever smaller."""

    def after(self, steps: RunSteps, chunk: StepChunk) -> None:
        field = steps.rates.field
        v = np.abs(steps.y[field.state_slices[1]])
        if not v.max(initial=0.0) < RUNAWAY:
            joint = field.model.velocities[int(np.argmax(v))]
            raise SimulationError(
                f"the motion runs away: the rate of {joint!r} exceeds {RUNAWAY:g} at "
                f"t = {steps.t:g} s"
            )


class StiffSwitch(Observer):
    """Goes on with another method where the motion proves stiff; ``switched`` says so."""

    switched = ""

    def after(self, steps: RunSteps, chunk: StepChunk) -> None:
        if self.switched or not (steps.options.may_switch and steps.counters.stiff):
            return
        steps.integrator, steps.restart = find_integrator("lsoda"), True
        self.switched = f"dop853 until t = {steps.t:.6g} s, then lsoda: the motion is stiff"


class Events(Observer):
    """Ends a run where the function of an event changes its sign."""

    def __init__(self, field: Field, events: Mapping[str, Event]) -> None:
        self.names = list(events)
        self._functions = [partial(_event, field, name, f) for name, f in events.items()]

    def check(self, steps: RunSteps, chunk: StepChunk) -> None:
        crossing = first_event(chunk, self._functions)
        if crossing is not None:
            chunk.reached = crossing[0]
            steps.end(f"event: {self.names[crossing[1]]}")


def first_event(
    chunk: StepChunk, events: Sequence[Callable[[float, Array], float]]
) -> tuple[float, int] | None:
    """(time, index) of the first event that changes its sign within a step: by sampling eighths
    of it, then by bisection. An event that is zero where the step begins has not changed its sign.
    """
    from scipy.optimize import brentq

    times = np.linspace(chunk.start, chunk.end, 9)
    states = [chunk.y(float(t)) for t in times]
    crossings: list[tuple[float, int]] = []
    for i, event in enumerate(events):
        values = [event(float(t), y) for t, y in zip(times, states, strict=True)]
        for k, (a, b) in enumerate(pairwise(values)):
            if a != 0.0 and np.sign(a) != np.sign(b):
                ends = float(times[k]), float(times[k + 1])
                at = brentq(
                    lambda t, event=event: event(t, chunk.y(t)), *ends, xtol=1e-13, rtol=1e-14
                )
                crossings.append((float(at), i))
                break
    return min(crossings) if crossings else None


def _event(field: Field, name: str, f: Event, t: float, y: Array) -> float:
    """The value of an event's function; errors and NaN are reported with name and time."""
    of_q, of_v, _, _ = field.state_slices
    try:
        value = float(f(t, unit(field.model, y)[of_q], y[of_v]))
    except Exception as error:
        raise SimulationError(f"the event {name!r} raised {error!r} at t = {t:g} s") from error
    if np.isnan(value):
        raise SimulationError(f"the event {name!r} gave {value} at t = {t:g} s")
    return value
