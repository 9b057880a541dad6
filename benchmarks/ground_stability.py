"""Every scenario of the library in implicit steps of 2 ms, on every ground law: the largest rate,
and the energy that the steps themselves dissipate. ``python ground_stability.py [SCENARIO …]``
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from report import Table
from rich.console import Console

import ramify as rf
from ramify.contact import LAWS

STEP, LONGEST = 2e-3, 1.0  # s
METHOD = "implicit_extrapolation"


def stability(names: list[str]) -> Table:
    """The table; a run that fails is WRONG."""
    table = Table(
        f"All scenarios in steps of {STEP * 1e3:g} ms, {METHOD}",
        ("scenario, ground", "largest rate", "dissipated by the steps", "of the energy moved"),
    )
    for name in names:
        s = rf.scenario(name)
        laws = list(LAWS) if s.options.get("ground") is not None else [None]
        for law in laws:
            title = name if law is None else f"{name}, {law}"
            length = min(float(s.options.get("t_end", LONGEST)), LONGEST)
            try:
                r = rf.simulate(
                    s.robot, length, s.q0, s.v0, s.control, law, METHOD, step=STEP, dt_out=0.02
                )
            except rf.SimulationError as error:
                table.add(title, f"{error} WRONG", "", "")
                continue
            taken = r.audit.own_dissipation or 0.0
            share = taken / r.audit.energy.scale if r.audit.energy.scale else 0.0
            table.add(title, f"{np.abs(r.v).max():.3g}", f"{taken:.3g} J", f"{share:.1%}")
    return table


if __name__ == "__main__":
    warnings.simplefilter("ignore", RuntimeWarning)
    stability(sys.argv[1:] or list(rf.scenarios())).show(Console(width=110))
