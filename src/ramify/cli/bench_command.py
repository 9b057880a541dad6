"""How fast: bench."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import AsJson, RobotName, Settings, app, load
from ramify.cli.output import print_json, print_line, print_table


@app.command
def bench(
    robot: RobotName,
    *,
    algorithm: Annotated[
        list[str] | None,
        Parameter(consume_multiple=True, negative="", help="Which algorithms to time."),
    ] = None,
    states: Annotated[int, Parameter(help="States in a batch.")] = 4096,
    threads: Annotated[int | None, Parameter(help="Threads for batches.")] = None,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Time a robot's kernels on this machine: one call, and a state of a batch."""
    from ramify.kernels.algorithms import ALGORITHMS
    from ramify.kernels.timing import MEASURED, measure

    if states < 1:
        raise rf.StateError(f"--states {states}: a batch has at least one state")
    possible = [
        name
        for name, row in ALGORITHMS.items()
        if not row.extras and {p.name for p in row.inputs} <= {"q", "v", "a", "tau"}
    ]
    for name in algorithm or ():
        if name not in possible:
            raise rf.RamifyError(f"--algorithm {name}: choose among {', '.join(possible)}")
    m = load(robot, settings)
    if threads is not None:
        rf.threads(threads)
    found = measure(m, algorithm or MEASURED, states)
    if json:
        rows = [asdict(timing) for timing in found]
        print_json(
            {
                "robot": m.name,
                "nv": m.nv,
                "states": states,
                "threads": rf.threads(),
                "timings": rows,
            }
        )
        return
    rows_shown = [
        (t.algorithm, t.tier, t.prepare, 1e6 * t.single, 1e6 * t.batch, f"{1.0 / t.batch:,.0f}")
        for t in found
    ]
    columns = (
        "algorithm",
        "tier",
        "ready after, s",
        "one call, us",
        "in a batch, us",
        "states a second",
    )
    from ramify.loops.mobility import freedom_text

    print_table(f"{m.name}: {freedom_text(m)}, batches of {states}", columns, rows_shown)
    print_line(
        "Minimum of repeats. Against Pinocchio and MuJoCo: benchmarks/run.py of the source, "
        "docs/benchmarks.md."
    )
