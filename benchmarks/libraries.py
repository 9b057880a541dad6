"""ramify called from other libraries: ``python benchmarks/libraries.py``, for those installed.

JAX: a jitted call of one state beside a trivial jitted function, and ``jit(vmap(grad))`` of 4096
states beside our own kernel and adjoint, one thread each (``taskset -c 0`` binds JAX to one).
CasADi: a horizon of 100 states, values and Jacobians, by its virtual machine, by our kernel, and by
the C code that it generates. A figure is the least of many calls, in time of the processor, the
programs in turn.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import ramify as rf
from ramify.interop.named_functions import named_function

STATES, HORIZON, SECONDS = 4096, 100, 2.0


def robots() -> dict[str, Any]:
    """Six, twelve and more degrees of freedom."""
    return {name: rf.load(name) for name in ("kuka_kr5", "dual_arm", "quadruped")}


def least(*calls: Callable[[], Any]) -> list[float]:
    """Seconds of the processor for each call, taken in turn."""
    found = [np.inf] * len(calls)
    end = perf_counter() + SECONDS * len(calls)
    while perf_counter() < end:
        for i, call in enumerate(calls):
            for _ in range(3):
                start = process_time()
                call()
                found[i] = min(found[i], process_time() - start)
    return found


def states_of(m: Any, count: int) -> list[Any]:
    rng = np.random.default_rng(0)
    q = np.stack([m.random(seed)[0] for seed in range(count)])
    return [q, *rng.normal(size=(2, count, m.nv))]


def with_jax(name: str, m: Any) -> None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    own, f = named_function(m, "forward_dynamics", {}), m.jax("forward_dynamics")
    rows = states_of(m, STATES)
    arrays = [jnp.asarray(x) for x in rows]
    one = [x[0] for x in arrays]
    value, trivial = jax.jit(f), jax.jit(lambda q, v, tau: q + v + tau)
    slope = jax.jit(
        jax.vmap(jax.grad(lambda q, v, tau: (f(q, v, tau) ** 2).sum(), argnums=(0, 1, 2)))
    )
    back = own.adjoint((0, 1, 2))

    def ours() -> list[Any]:
        (a,) = own.rows(rows)
        return back.rows([*rows, 2.0 * a])

    worst = max(
        np.abs(x - y).max() / np.abs(y).max() for x, y in zip(slope(*arrays), ours(), strict=True)
    )
    single, little = least(
        lambda: value(*one).block_until_ready(), lambda: trivial(*one).block_until_ready()
    )
    batch, direct = least(lambda: jax.block_until_ready(slope(*arrays)), ours)
    print(
        f"JAX, {name}, {m.nv} DOF: one call {1e6 * single:.1f} us (trivial {1e6 * little:.1f}); "
        f"jit(vmap(grad)) {1e6 * batch:.0f} us, ours {1e6 * direct:.0f}, "
        f"ratio {batch / direct:.2f}; gradients differ by {worst:.0e}",
        flush=True,
    )


def buffered(f: Any, given: list[Any]) -> tuple[Callable[[], Any], Any]:
    """A call of a casadi.Function without conversions, and what it writes."""
    buffer, run = f.buffer()
    arrays = [np.ascontiguousarray(x) for x in given]
    arrays += [np.zeros(f.nnz_in(i)) for i in range(len(given), f.n_in())]
    results = [np.zeros(f.nnz_out(i)) for i in range(f.n_out())]
    for i, x in enumerate(arrays):
        buffer.set_arg(i, memoryview(x))
    for i, x in enumerate(results):
        buffer.set_res(i, memoryview(x))
    return run, (results, buffer, arrays)


def generated(f: Any, folder: str) -> tuple[Any, float]:
    """A function as CasADi's own C code, and how long that takes to make."""
    import casadi

    start, name = perf_counter(), f.name()
    here = os.getcwd()
    os.chdir(folder)
    try:
        f.generate(f"{name}.c")
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c"], check=True
        )
    finally:
        os.chdir(here)
    return casadi.external(name, str(Path(folder) / f"{name}.so")), perf_counter() - start


def with_casadi(name: str, m: Any) -> None:
    symbolic = m.casadi("forward_dynamics")
    start = perf_counter()
    kernel = m.casadi("forward_dynamics", horizon=HORIZON)
    rows = states_of(m, HORIZON)
    values = [symbolic.map(HORIZON), kernel]
    slopes = [f.jacobian() for f in values]
    runs = [buffered(f, rows) for f in (*values, *slopes)]
    for run, _ in runs:
        run()
    made = perf_counter() - start
    worst = max(
        np.abs(x - y).max() / np.abs(y).max()
        for i in (0, 2)
        for x, y in zip(runs[i + 1][1][0], runs[i][1][0], strict=True)
    )
    machine, ours, machine_slope, our_slope = least(*(run for run, _ in runs))
    print(
        f"CasADi, {name}, {m.nv} DOF, {HORIZON} states: values {1e6 * machine:.0f} us, ours "
        f"{1e6 * ours:.0f} ({machine / ours:.0f}x); Jacobians {1e6 * machine_slope:.0f}, ours "
        f"{1e6 * our_slope:.0f} ({machine_slope / our_slope:.0f}x); they differ by {worst:.0e}; "
        f"all made in {made:.1f} s",
        flush=True,
    )
    if not shutil.which("cc"):
        return
    with tempfile.TemporaryDirectory() as folder:
        made_ones = [generated(f, folder) for f in (symbolic, symbolic.jacobian())]
        ones = [buffered(f, [x[:1] for x in rows]) for f, _ in made_ones]
        value, slope = least(*(run for run, _ in ones))
    print(
        f"  its C code, a state: value {1e6 * value:.2f} us, Jacobian {1e6 * slope:.2f}, made in "
        f"{made_ones[0][1]:.1f} and {made_ones[1][1]:.1f} s; ours in the horizon "
        f"{1e6 * ours / HORIZON:.2f}, {1e6 * our_slope / HORIZON:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    rf.threads(1)
    for library, show in (("jax", with_jax), ("casadi", with_casadi)):
        if find_spec(library) is None:
            print(f"{library} is not installed: pip install 'ramify[{library}]'", file=sys.stderr)
        elif len(sys.argv) < 2 or library in sys.argv[1:]:
            for name, m in robots().items():
                show(name, m)
