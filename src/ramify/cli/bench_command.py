"""How fast: bench."""

from __future__ import annotations

from dataclasses import asdict

import ramify as rf
from ramify.cli.common import AsJson, RobotName, Settings, Words, app, load
from ramify.cli.output import print_json, print_line, print_table


@app.command
def bench(
    robot: RobotName,
    *,
    algorithm: Words = None,
    states: int = 4096,
    threads: int | None = None,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Time a robot's kernels on this machine: one call, and a state of a batch.

    Args:
        algorithm: Which algorithms to time.
        states: States in a batch.
        threads: Threads for batches.
    """
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
        head = {"robot": m.name, "nv": m.nv, "states": states, "threads": rf.threads()}
        print_json(head | {"timings": [asdict(timing) for timing in found]})
        return
    rows = [
        (t.algorithm, t.tier, t.prepare, 1e6 * t.single, 1e6 * t.batch, f"{1.0 / t.batch:,.0f}")
        for t in found
    ]
    columns = ("algorithm", "tier", "ready after, s", "one call, us", "in a batch, us")
    from ramify.loops.mobility import freedom_text

    print_table(
        f"{m.name}: {freedom_text(m)}, batches of {states}", (*columns, "states a second"), rows
    )
    print_line(
        "Minimum of repeats. Against Pinocchio and MuJoCo: benchmarks/run.py of the source, "
        "docs/benchmarks.md."
    )
