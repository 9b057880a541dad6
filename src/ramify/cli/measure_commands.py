"""How fast, and how many digits: bench, stability."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import ramify as rf
from ramify.cli.common import AsJson, RobotName, Settings, Words, app, load_model
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
    from ramify.loops.mobility import freedom_text

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
    m = load_model(robot, settings)
    if threads is not None:
        rf.threads(threads)
    timings = measure(m, algorithm or MEASURED, states)
    if json:
        head = {"robot": m.name, "nv": m.nv, "states": states, "threads": rf.threads()}
        print_json(head | {"timings": [asdict(timing) for timing in timings]})
        return
    rows = [
        (t.algorithm, t.tier, t.prepare, 1e6 * t.single, 1e6 * t.batch, f"{1.0 / t.batch:,.0f}")
        for t in timings
    ]
    columns = ("algorithm", "tier", "ready after, s", "one call, us", "in a batch, us")
    title = f"{m.name}: {freedom_text(m)}, batches of {states}"
    print_table(title, (*columns, "states a second"), rows)
    others = "Against Pinocchio and MuJoCo: benchmarks/run.py of the source, docs/benchmarks.md."
    print_line(f"Minimum of repeats. {others}")


@app.command
def stability(
    *,
    n: int = 24,
    plot: Path | None = None,
    json: AsJson = False,
) -> None:
    """Show the rounding errors of forward dynamics on chains of rods, by the recursions and by a
    factorised inertia matrix, against 50 digits.

    Args:
        n: Rods of each chain.
        plot: Plot of the errors over the number of rods: .svg, .png or .pdf.
    """
    from ramify.formulations.stability import CASES, chain_errors

    found = [chain_errors(case, n) for case in CASES]
    if json:
        print_json([asdict(row) for row in found])
    else:
        columns = ("chain", "condition", "recursion", "mass centre", "unrolled", "rolled")
        rows = [(CASES[x.case].words, *_digits(x)) for x in found]
        title = f"Forward dynamics of {n} rods: largest error by largest acceleration"
        print_table(title, (*columns, "Cholesky of M"), rows)
    if plot is not None:
        from ramify.view.formulation_plots import plot_stability

        plot_stability(plot, n)
        if not json:
            print_line(f"errors over the number of rods: {plot}")


def _digits(errors: Any) -> list[str]:
    numbers = list(asdict(errors).values())[2:]
    return ["–" if x != x else f"{x:.1e}" for x in numbers]
