"""The page docs/benchmarks.md: a head, the tables, and what limits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date

from report import Table, machine

HEAD = """# Benchmarks

Written by `make bench` (`python benchmarks/run.py`). The figures belong to the machine named below;
the ratios travel better. Times are minima of many short samples, taken in turn between the
programs. Every compared pair is checked in the same run: the column *error* is the largest relative
difference of any state. Rows below their goal are marked so.

![How many times faster than its peers ramify is](pictures/benchmarks.svg)
"""

LIMITS = """## What limits

Found once, on an Ice Lake server core shared with others (two 512-bit ports, 48 kB of first-level
data cache, 1.25 MB of second-level cache), from the emitted objects and by changing one thing at a
time; not measured anew by each run.

- **Small robots: the vector ports.** A batch of plain arrays enters through the compiled builtin,
  with no Python around the kernel. The KUKA arm's kernels then run about as fast as two ports can
  take their vector instructions; a tenth of these transpose rows to lanes and back. Only fewer
  instructions would make them faster.
- **Large robots: spilled values.** The humanoid's forward dynamics spills 44 kB of vectors to the
  stack. Left to itself the compiler aligns them to 16 bytes, and most straddle two cache lines; the
  kernels ask for an aligned stack, which took 15 to 22 % off the forward and 25 to 31 % off the
  inverse dynamics of the quadruped and the humanoid (three processes, both ways in each).
- **Free bases.** The kernel itself looks at the length of every quaternion, so batches enter
  through the builtin too. Robots with Euler angles that can lock, and batches through the loops,
  still pass through Python once per call.
- **Rollouts.** A kept history is fresh memory; the rows are transposed in registers on their way
  into it.
- **Long chains.** The loops keep 16 numbers per link and lane. Records that only pass between a
  link and its parent or children, 27 more, live in places that are used again as soon as the last
  child is done: for a chain, one place. So 1024 links fit the second-level cache, and a link costs
  the same in a chain of 64 and of 1024.
- **First answers.** For a thousand links most of the call's time is Python preparing the links, not
  compilation.
- **The machine.** From run to run the figures of the large robots vary by a quarter, and so do the
  ratios. Figures for two threads mean something only where both cores are idle.
"""


def page(tables: Sequence[Table], seconds: float) -> str:
    """The whole text."""
    programs = ", ".join(f"{name} {value}" for name, value in machine().items())
    run = f"{os.cpu_count()} cores, a run of {seconds:.0f} s; {programs}"
    stamp = f"{date.today().isoformat()}, {run}.\n"
    return "\n".join([HEAD, stamp, *(table.markdown() for table in tables), LIMITS])
