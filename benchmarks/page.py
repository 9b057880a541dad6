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

- **Small robots: the way into the kernel.** A batched call spends 50 to 70 µs in Python (shapes, broadcasting, addresses) around
  the kernel. For the KUKA arm and 4096 states that is about two fifths of the inverse dynamics. Of the kernel's instructions
  there a tenth transposes rows to lanes and back and about a sixth is sine and cosine. Two blocks of states in flight (16 lanes)
  gain nothing measurable, so latency does not seem to limit.
- **Large robots.** The humanoid's forward dynamics is 107 kB of code per eight states, three times the instruction cache. A fifth
  more instructions that do nothing cost its inverse dynamics 12 to 20 % in four runs, but its forward dynamics only 1 to 8 %: the
  one waits for instructions, the other mostly for something else. Its spilled values take 44 kB, which with the states overflow
  the data cache; that this is the cause is likely but not shown.
- **Long chains.** The loops keep 58 numbers per link and lane. With eight lanes they outgrow the second-level cache between 256
  and 512 links, and the cost per link rises there; with four lanes the rise comes one doubling later, with two there is none.
- **First answers.** For a thousand links most of the call's time is Python preparing the links, not compilation.
- **The machine.** From run to run the figures of the large robots vary by a quarter, and so do the ratios. Figures for two threads
  mean something only where both cores are idle.
"""


def page(tables: Sequence[Table], seconds: float) -> str:
    """The whole text."""
    programs = ", ".join(f"{name} {value}" for name, value in machine().items())
    stamp = f"{date.today().isoformat()}, {os.cpu_count()} cores, a run of {seconds:.0f} s; {programs}.\n"
    return "\n".join([HEAD, stamp, *(table.markdown() for table in tables), LIMITS])
