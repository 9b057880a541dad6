"""How many digits forward dynamics keeps: stability."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ramify.cli.common import AsJson, app
from ramify.cli.output import print_json, print_line, print_table


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
