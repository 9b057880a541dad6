"""One process's life, timed from inside: run by ``startup`` in fresh interpreters, prints one line
of JSON.

    python probe.py first ROBOT      import, load, the first forward dynamics of one state
    python probe.py compile ROBOT    straight-line code of the forward dynamics: for one state, for
                                     batches; of the inertia matrix and its inverse for batches
    python probe.py table ROWS       the first run of a UR5 under a table of so many rows
"""

import json
import sys
from time import perf_counter
from typing import Any

START = perf_counter()


def peak_megabytes() -> float:
    """Largest memory this process has held, 10^6 bytes."""
    try:
        with open("/proc/self/status") as status:
            return next(
                int(line.split()[1]) * 1.024e-3 for line in status if line.startswith("VmHWM")
            )
    except (OSError, StopIteration):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used * (1e-6 if sys.platform == "darwin" else 1.024e-3)


def load(robot: str) -> Any:
    import models

    return models.chain(int(robot[5:])) if robot.startswith("chain") else models.real(robot)


def first(robot: str) -> dict[str, float]:
    import ramify  # noqa: F401

    imported = perf_counter()
    model = load(robot)
    loaded = perf_counter()
    q, v = model.random()
    model.forward_dynamics(q, v, v)
    return {
        "import": imported - START,
        "load": loaded - imported,
        "answer": perf_counter() - loaded,
    }


def compile_unrolled(robot: str) -> dict[str, float]:
    import numpy as np

    small = load("chain1")  # brings LLVM up
    small.kernel("forward_dynamics", "unrolled")(*small.random(), [0.0])
    model = load(robot)
    q, v = model.random()
    many = np.tile(q, (64, 1)), np.tile(v, (64, 1)), np.tile(v, (64, 1))
    start = perf_counter()
    kernel = model.kernel("forward_dynamics", "unrolled")
    kernel(q, v, v)
    single = perf_counter()
    kernel(*many, threads=1)
    found = {"single": single - start, "batch": perf_counter() - single}
    for name in ("inverse_dynamics", "mass_matrix", "mass_matrix_inverse"):
        start, kernel = perf_counter(), model.kernel(name, "unrolled")
        kernel(*(many if name == "inverse_dynamics" else many[:1]), threads=1)
        found[name] = perf_counter() - start
    return found


def run_with_table(rows: str) -> dict[str, float]:
    import numpy as np

    import ramify as rf

    model = load("UR5")
    rf.simulate(model, 0.01)
    times = np.linspace(0.0, 1.0, int(rows))
    table = rf.control.TorqueTable(times, np.sin(times)[:, None] * np.ones(model.nv))
    start = perf_counter()
    rf.simulate(model, 0.01, control=table)
    return {"run": perf_counter() - start}


if __name__ == "__main__":
    found = {"first": first, "compile": compile_unrolled, "table": run_with_table}[sys.argv[1]](
        sys.argv[2]
    )
    print(json.dumps({**found, "peak": peak_megabytes()}))
