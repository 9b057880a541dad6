"""What a model holds goes with it: compiled code, LLVM's own records of it, and the model itself."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

import ramify as rf

GROWTH = """
import gc
from ramify.runtime import compile as c
from ramify.runtime.target import host
from ramify.core.forks import LOCK

def memory():
    gc.collect()
    with open("/proc/self/statm") as file:
        return 4.096 * int(file.read().split()[1])

def build(i):
    sums = "".join(
        f"  %a{j} = fadd double %{'x' if j == 0 else f'a{j - 1}'}, {1000.0 * i + j + 0.123}\\n"
        for j in range(200)
    )
    text = "define double @k(double %x) {\\n" + sums + "  ret double %a199\\n}\\n"
    with LOCK:
        return c._build(text, host().with_width(1), 1)

def load(i):
    with LOCK:
        c.Compiled(payload, "k")

payload = build(0)
for act, count in ((build, 120), (load, 1600)):
    for i in range(count // 2):
        act(i)
    before = memory()
    for i in range(count // 2, count):
        act(i)
    print((memory() - before) / (count // 2))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="Linux says how large it is")
def test_code_that_is_dropped_is_freed() -> None:
    """LLVM kept every constant of every robot, and 10 kB of every object that it had loaded: 61 and
    9 kB for each of these.
    """
    env = {**os.environ, "RAMIFY_CACHE_DIR": "off"}
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], env=env, capture_output=True, text=True, check=True
    )
    built, loaded = map(float, done.stdout.split())
    assert built < 8.0
    assert loaded < 2.0


def test_models_with_compiled_kernels_are_collected() -> None:
    """Steps of rollouts are used again for equal robots, and hold the last 64 of them."""
    dropped = []
    for i in range(3):
        rows = [(0.3, 0.1, 0.2, 0.4)] * 4
        model = rf.from_dh(rows, [1.0 + i] * 4, [(0.1, 0, 0)] * 4, [(0.01, 0.02, 0.02)] * 4)
        q = np.full(4, 0.1)
        kernel = model.kernel("forward_dynamics", "unrolled")
        kernel(q, q, q), kernel(np.tile(q, (9, 1)), q, q), model.inverse_dynamics(q, q, q)
        rf.simulate(model, 0.01, q)
        dropped += [weakref.ref(model), weakref.ref(kernel)]
        del model, kernel
    gc.collect()
    assert [one() for one in dropped] == [None] * 6
