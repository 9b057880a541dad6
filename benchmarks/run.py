"""ramify against Pinocchio and MuJoCo, in one run on this machine.

    python benchmarks/run.py            the whole run, about ten minutes; writes docs/benchmarks.md
    python benchmarks/run.py --quick    about forty seconds; only prints

Every ratio compares two figures of the same run, and every compared pair is checked to give the
same numbers; the exit code is 1 where they do not.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from time import perf_counter

import calls
import runs
from measure import QUICK, WHOLE, Bench
from page import page
from picture import svg
from rich.console import Console

import ramify as rf

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
PICTURE = DOCUMENT.parent / "pictures" / "benchmarks.svg"


def main() -> int:
    parser = argparse.ArgumentParser(
        description="ramify against Pinocchio and MuJoCo on this machine"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a run of about forty seconds that only prints"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="where to write the page (default: docs/benchmarks.md; nowhere with --quick)",
    )
    options = parser.parse_args()
    output = options.output or (None if options.quick else DOCUMENT)
    start = perf_counter()
    console = Console(width=None if Console().is_terminal else 160)
    bench = Bench(QUICK if options.quick else WHOLE, console)
    with tempfile.TemporaryDirectory(prefix="ramify-bench-") as cache:
        os.environ["RAMIFY_CACHE_DIR"] = cache
        rf.threads(1)
        bench.robots()
        bench.questions()
        for part in (calls.controllers, calls.filled, calls.loops, calls.matrices):
            part(bench)
        for part in (calls.lighter, calls.shared):
            part(bench)
        for part in (runs.fixed_steps, runs.adaptive, runs.fixed_costs, runs.policies):
            part(bench)
        bench.rollouts()
        bench.ground()
        bench.chains()
        bench.first_seconds()
    bench.floors.show(console)
    seconds = perf_counter() - start
    if output:
        output.write_text(page([bench.floors, *bench.tables], seconds), encoding="utf-8")
        PICTURE.write_text(svg(bench.gains), encoding="utf-8")
    console.print(f"{seconds:.0f} s{f', written to {output.name}' if output else ''}")
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
