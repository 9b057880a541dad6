"""The page docs/benchmarks.md: a head, the tables, and what limits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date

from report import Table, machine

HEAD = """# Benchmarks

Written by `make bench` (`python benchmarks/run.py`). The figures belong to the machine named below; the ratios travel better. Times
are minima of many short samples, taken in turn between the programs. Every compared pair is checked in the same run: the column
*error* is the largest relative difference of any state.
"""

LIMITS = """## What limits

Found once, on an Ice Lake server core shared with others (two 512-bit ports, 48 kB of first-level data cache, 1.25 MB of
second-level cache), from the emitted objects and by changing one thing at a time; not measured anew by each run.

- **Small robots: the vector ports.** A batch of plain arrays enters through the compiled builtin, with no Python around the kernel.
  The KUKA arm's kernels then run about as fast as two ports can take their vector instructions; a tenth of these transpose rows to
  lanes and back. Only fewer instructions would make them faster.
- **Large robots: spilled values.** The humanoid's forward dynamics spills 44 kB of vectors to the stack, which the compiler leaves
  aligned to 16 bytes: unless the stack of the process happens to start well, every spilled vector straddles two cache lines. With
  the stack aligned to 64 bytes, the same instructions took 15 to 22 % less time in the forward and 25 to 31 % less in the inverse
  dynamics of the quadruped and the humanoid (three processes, both ways in each), and came near what the ports can take.
- **Free bases: the way into the kernel.** Batches of robots with quaternions, or with angles that can lock, still go through
  Python, which looks at every state first: 0.15 to 0.2 ms for 4096 states, as long as a third of the compiled part of the
  quadruped's forward dynamics, or an eighth of the humanoid's. Batches through the loops pay for Python too.
- **Rollouts.** A kept history is fresh memory, written number by number. That costs up to half of a semi-implicit Euler step again,
  and less beside the four stages of RK4.
- **Long chains.** The loops keep 43 numbers per link and lane, 52 where there are quaternions. For 1024 links these are 2.8 MB,
  more than the second-level cache, and a link costs about 1.4 times as much as in a chain of 64 to 256.
- **First answers.** For a thousand links most of the call's time is Python preparing the links, not compilation.
- **The machine.** From run to run the figures of the large robots vary by a quarter, and so do the ratios. Figures for two threads
  mean something only where both cores are idle.
"""


def page(tables: Sequence[Table], seconds: float) -> str:
    """The whole text."""
    programs = ", ".join(f"{name} {value}" for name, value in machine().items())
    stamp = f"{date.today().isoformat()}, {os.cpu_count()} cores, a run of {seconds:.0f} s; {programs}.\n"
    return "\n".join([HEAD, stamp, *(table.markdown() for table in tables), LIMITS])
