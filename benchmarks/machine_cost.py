"""What the elements of a machine cost the kernels of its tree: rotors, damping, friction, springs
and stops at every joint of an arm, one by one and all at once.

Run: python benchmarks/machine_cost.py [seconds]

All times are of one run, the minima of samples taken in turn. The last columns are counted: what
the elements add in operations, and the least that these cost on this machine, each kind at the
pace of independent ones in a compiled loop. Stops count as their test for touch; what a stop does
when it is touched is behind a branch.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from timing import Call, fastest, lane_time

import ramify as rf
from ramify.drives.machine_forces import machine_dynamics
from ramify.model.elements import Element, Friction, Spring
from ramify.runtime.kernel import Kernel
from ramify.trace.op_count import op_count

STATES: Final = 4096
ELEMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "rotors": {"armature": 0.1},
    "damping": {"damping": (0.3, 0.0, 0.0)},
    "friction": {"friction": Friction(0.4, 0.4)},
    "springs": {"spring": Spring((2.0, 0.0, 0.0), (0.1,))},
    "stops": {},
}


def machine(m: rf.Model, *names: str) -> rf.Model:
    """The arm with these elements at every joint, and no others; stops beyond all postures."""
    keys = {key: value for name in names for key, value in ELEMENTS[name].items()}
    ends = ((-6.0, 7.0),) if "stops" in names else ()
    bodies = (
        replace(b, joint=replace(b.joint, elements=(Element(**keys),), limits=ends))
        for b in m.bodies
    )
    return replace(m, bodies=tuple(bodies))


KINDS: Final = {"fdiv": "fdiv", "sqrt": "sqrt", "select": "fma"} | dict.fromkeys(
    ("fmul", "fadd", "fsub", "fma"), "fma"
)
"""The pace of an instruction: a comparison and its choice are one, as is a product and its sum."""


def operations(kernel: Kernel) -> Counter[str]:
    """Instructions on lanes of a kernel, outside of its branches for rare cases."""
    found, rare = Counter[str](), False
    for line in kernel.llvm_ir.splitlines():
        if line.endswith(":"):
            rare = line.startswith("rare")
        word = re.match(r"\s+%\w+ = (?:call .*?@llvm\.)?(\w+)", line)
        if word and not rare and word[1] in KINDS:
            found[KINDS[word[1]]] += 1
    return found


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    rf.threads(1)
    arm, rng = rf.load("kuka_kr5"), np.random.default_rng(0)
    pace = {op: lane_time(op) for op in ("fma", "fdiv", "sqrt")}
    print(f"{STATES} states, one thread, load {os.getloadavg()[0]:.1f}; ", end="")
    print(", ".join(f"{1.0 / x:.2f} {kind} per ns" for kind, x in pace.items()))
    cases = {"none": (), **{name: (name,) for name in ELEMENTS}, "all": tuple(ELEMENTS)}
    q = rng.uniform(-1.0, 1.0, (STATES, arm.nv))
    v, x = rng.normal(size=(2, STATES, arm.nv))
    out = np.empty_like(v)
    given = {"q": q, "v": v, "x": x, "out": out}
    for name in ("inverse_dynamics", "forward_dynamics"):
        kernels = {}
        for case, elements in cases.items():
            found = machine_dynamics(machine(arm, *elements), name, "unrolled")
            assert found is not None
            kernels[case] = found
        calls = {
            case: Call("k(q, v, x, out=out)", {"k": k, **given}, lambda: out)
            for case, k in kernels.items()
        }
        took = {case: t / STATES * 1e9 for case, t in fastest(calls, seconds).items()}
        bare, counted = took["none"], operations(kernels["none"])
        print(
            f"{name}: {bare:.1f} ns per state without elements; {op_count(kernels['none'].program)}"
        )
        for case in list(cases)[1:]:
            more = operations(kernels[case])
            more.subtract(counted)
            least = sum(n * pace[kind] for kind, n in more.items())
            counts = op_count(kernels[case].program)
            print(
                f"  {case:9} {took[case]:6.1f} ns  {took[case] / bare - 1.0:+6.1%}   "
                f"least {least / bare:+6.1%}   {counts}   {dict(more)}"
            )


if __name__ == "__main__":
    main()
