"""Optimal control on the command line: optimise."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import AsJson, app
from ramify.cli.output import print_json, print_line


@app.command
def optimise(
    problem: Annotated[Path, Parameter(help="A Python file that makes a problem.")],
    *,
    report: Path | None = None,
    out: Path | None = None,
    iterations: int = 1000,
    tolerance: float = 1e-9,
    json: AsJson = False,
) -> None:
    """Solve a problem of optimal control.

    The file sets ``problem`` (an rf.optimal.Problem), ``start`` (q, or a pair of q and v) and, for
    a problem with parameters, ``parameters`` (a mapping); perhaps ``guess``. Ctrl-C keeps the best
    trajectory so far.

    Parameters
    ----------
    report
        Page of the solution: an .html file with animation, costs, limits and progress.
    out
        File of the trajectory: .npz with t, q, v, u, K, dt and cost.
    iterations
        The most iterations.
    tolerance
        The share of the cost that a further step may still win.
    """
    from ramify.core.bar import Bar
    from ramify.view.folders import must_have_folder

    for path, suffixes in ((report, (".html", ".htm")), (out, (".npz",))):
        if path is not None:
            if path.suffix.lower() not in suffixes:
                raise rf.RamifyError(f"{path}: the file must end in {' or '.join(suffixes)}")
            must_have_folder(path)
    setting = _read(problem)
    q, v = _start(setting["start"])
    bar = None if json else Bar(problem.stem, float(iterations), transient=True)

    def show(done: int, cost: float, gap: float) -> None:
        if bar is not None:
            bar.update(float(done), f"cost {cost:.6g}, gap {gap:.2g}")

    try:
        solution = rf.optimal.solve(
            setting["problem"], q, v, guess=setting.get("guess"), iterations=iterations,
            tolerance=tolerance, progress=show, **setting.get("parameters", {}),
        )  # fmt: skip
    finally:
        if bar is not None:
            bar.close()
    files: dict[str, str] = {}
    if report is not None:
        files["report"] = str(solution.report(report))
    if out is not None:
        import numpy as np

        np.savez(
            out, t=solution.t, q=solution.q, v=solution.v, u=solution.u, K=solution.K,
            dt=solution.dt, cost=solution.cost,
        )  # fmt: skip
        files["trajectory"] = str(out)
    _print(solution, files, json)


def _read(path: Path) -> dict[str, Any]:
    """The names that a problem file sets."""
    if not path.is_file():
        raise rf.RamifyError(f"{path} does not exist; give the Python file of a problem")
    setting = runpy.run_path(str(path), run_name="__problem__")
    if not isinstance(setting.get("problem"), rf.optimal.Problem):
        raise rf.RamifyError(f"{path} must set problem = rf.optimal.Problem(…)")
    if "start" not in setting:
        raise rf.RamifyError(f"{path} must set start: q, or a pair of q and v")
    return setting


def _start(start: Any) -> tuple[Any, Any]:
    """q and v, or None for rest."""
    return start if isinstance(start, tuple) else (start, None)


def _print(solution: Any, files: dict[str, str], json: bool) -> None:
    if json:
        numbers = {
            name: getattr(solution, name)
            for name in ("reason", "iterations", "cost", "gap", "violation", "gradient", "costs")
        }
        print_json({**numbers, "duration": float(solution.t[-1]), "files": files})
        return
    print_line(f"{solution.reason}: {rf.optimal.REASONS[solution.reason]}")
    print_line(
        f"cost {solution.cost:.6g} after {solution.iterations} iterations, {solution.t[-1]:.4g} s, "
        f"gap {solution.gap:.2g}, violation {solution.violation:.2g}, gradient "
        f"{solution.gradient:.2g}"
    )
    for name, cost in solution.costs.items():
        print_line(f"  {name:24} {cost:.6g}")
    for what, path in files.items():
        print_line(f"{what}: {path}")
