"""Runs with fixed steps, side by side in the lanes of one compiled loop; the numbers of robot and
controller may differ from lane to lane.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.api.result import Result
from ramify.core.arrays import Array
from ramify.emit.stepper import Scheme
from ramify.integrate.integrators import AUTO, find_integrator
from ramify.integrate.machine_steps import too_stiff
from ramify.integrate.options import RUNAWAY
from ramify.integrate.stepping import stepper
from ramify.kernels.tier_policy import unrolls
from ramify.plant.field import Field
from ramify.plant.kernel_parts import unit
from ramify.plant.make_field import PlantOptions, make_field
from ramify.plant.shared_code import SharedField, shared
from ramify.runs.recorder import record_run
from ramify.runs.run_options import OPTIONS
from ramify.runtime.target import host
from ramify.scenario_files.scenario import Scenario

LANES: Final = 64
"""Runs in the compiled loop at a time: enough to fill it, few enough to store their histories."""


@dataclass(frozen=True)
class Steps:
    """The steps of a run: how many, how long, every how many a row of output."""

    scheme: Scheme
    count: int
    dt: float
    every: int


def steps_of(scenario: Scenario) -> Steps | None:
    """The steps of a run with fixed steps that can go into a lane; None for any other."""
    options, control = scenario.options, scenario.control
    method, step = str(options.get("method", AUTO)).lower(), options.get("step")
    if step is None or not unrolls(scenario.robot):
        return None
    scheme = find_integrator("rk4" if method == AUTO else method).method
    if not isinstance(scheme, Scheme) or scheme.implicit:
        return None
    plain = control is None or (
        control.traceable and control.rate_hz is None and not control.prescribes
    )
    if not plain or scenario.robot.loops:
        return None
    if not all(name in OPTIONS and OPTIONS[name].in_lanes for name in options):
        return None
    q0 = np.asarray(scenario.q0)
    if method == AUTO and too_stiff(_field(scenario), q0, find_integrator("rk4"), step):
        return None  # an implicit method runs it
    count = max(1, int(np.ceil(options["t_end"] / step - 1e-9)))
    dt, dt_out = options["t_end"] / count, options.get("dt_out", 0.01)
    every = round(dt_out / dt)
    if every < 1 or abs(every * dt - dt_out) > 1e-9 * dt * every or count % every:
        return None
    return Steps(scheme, count, dt, every)


def _field(scenario: Scenario) -> Field:
    """The right-hand side of a scenario whose options are all in lanes."""
    parts = {name: x for name, x in scenario.options.items() if OPTIONS[name].of_machine}
    return make_field(scenario.robot, scenario.control, PlantOptions(**parts))


def run_batch(scenarios: Sequence[Scenario], steps: Steps) -> list[Result | None]:
    """The results of scenarios with the same steps; None for a run that diverges, which
    ``Scenario.run`` then reports.

    The numbers of a run do not depend on those beside it: all go through the same full lanes.
    """
    groups: dict[int, list[tuple[int, Scenario, SharedField]]] = {}
    for i, scenario in enumerate(scenarios):
        field = shared(_field(scenario))
        assert isinstance(field, SharedField)
        groups.setdefault(id(field.shared[0]), []).append((i, scenario, field))
    out: list[Result | None] = [None] * len(scenarios)
    for group in groups.values():
        for first in range(0, len(group), LANES):
            places, some, fields = zip(*group[first : first + LANES], strict=True)
            for i, result in zip(places, _lanes(some, fields, steps), strict=True):
                out[i] = result
    return out


def _lanes(
    scenarios: Sequence[Scenario], fields: Sequence[SharedField], steps: Steps
) -> list[Result | None]:
    started = time.perf_counter()
    nv, pairs = fields[0].model.nv, [*zip(scenarios, fields, strict=True)]
    y = np.stack([field.start(np.asarray(s.q0), np.asarray(s.v0)) for s, field in pairs])
    table = np.stack([np.concatenate([np.zeros(nv), field.shared[1]]) for field in fields])
    spare = -len(y) % host().width
    padded, filled = (
        np.ascontiguousarray(np.concatenate([x, x[-1:].repeat(spare, axis=0)])) for x in (y, table)
    )
    samples = steps.count // steps.every
    history = np.empty((len(padded), samples, y.shape[1]))
    _, flags = stepper(fields[0], steps.scheme).run(
        padded, filled, steps.count, steps.dt, strides=(table.shape[1], 0),
        history=history, every=steps.every,
    )  # fmt: skip
    if flags:  # some run has left the range of the kernel: each by itself, so it hurts no other
        alone = len(pairs) == 1
        return [None] if alone else [_lanes([s], [field], steps)[0] for s, field in pairs]
    wall = (time.perf_counter() - started) / len(scenarios)
    return [
        _result(*pair, np.concatenate([y0[None], rows]), steps, wall)
        for pair, y0, rows in zip(pairs, y, history, strict=False)
    ]


def _result(
    scenario: Scenario, field: SharedField, y: Array, steps: Steps, wall: float
) -> Result | None:
    if not np.isfinite(y).all() or np.abs(y[:, field.state_slices[1]]).max(initial=0.0) >= RUNAWAY:
        return None
    t = np.asarray(np.arange(len(y)) * (steps.every * steps.dt), dtype=np.float64)
    evaluations = steps.count * steps.scheme.stages
    run = record_run(
        field, t, unit(field.model, y), np.zeros((len(t), field.model.nv)),
        options={**scenario.options, "q0": scenario.q0, "v0": scenario.v0},
        actual={"method": steps.scheme.name},
        stats={"steps": steps.count, "evaluations": evaluations, "wall_time": wall},
    )  # fmt: skip
    return scenario.with_record(Result.of(run))
