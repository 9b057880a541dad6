"""Steps know what time it is: forces that depend on the time, however a run is cut into pieces; and
what is counted from step to step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.integrate import run_segments
from ramify.integrate.compiled_dop853 import CompiledDop853
from ramify.integrate.dop853 import Dop853
from ramify.integrate.integrators import find_integrator, integrators
from ramify.plant.make_field import make_field
from ramify.plant.rates import Rates

FIXED = [i.name for i in integrators() if i.fixed and i.name != "energy"]
"""Those that take a controller."""
MASS, PER_SECOND, T_END = 2.0, 3.0, 1.5


def slide() -> rf.Model:
    """A mass that slides along x, where no weight pulls it."""
    return rf.Builder("slide").link("cart", joint="prismatic", axis=(1, 0, 0), mass=MASS).model()


def laws() -> dict[str, Any]:
    """A force that grows with the time, F = PER_SECOND t, compiled and as Python."""
    ends = np.array([0.0, 10.0])
    return {
        "table": rf.control.TorqueTable(ends, PER_SECOND * ends[:, None]),
        "function": lambda t, q, v: np.array([PER_SECOND * t]),
        "sum": rf.control.Sum(
            [rf.control.TorqueTable(ends, PER_SECOND * ends[:, None]), rf.control.Torque([0.0])]
        ),
    }


@pytest.mark.parametrize("law", list(laws()))
@pytest.mark.parametrize("method", FIXED)
def test_fixed_steps_in_several_pieces_of_code(
    method: str, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x = k t^3 / 6 m, v = k t^2 / 2 m, a = k t / m. A run in many short pieces is the run in one."""
    step = 1e-2
    whole = rf.simulate(slide(), T_END, method=method, step=step, control=laws()[law])
    monkeypatch.setattr(run_segments, "_CHUNK", 16)
    cut = rf.simulate(slide(), T_END, method=method, step=step, control=laws()[law])
    assert len(cut) > 20
    for r, name in ((whole, "one piece"), (cut, "pieces")):
        k, t = PER_SECOND / MASS, r.t
        held = law == "function" and "implicit" in method  # acts with its force as the step begins
        late = (
            1.01 * k * T_END**2 / 2 * step if held or find_integrator(method).order == 1 else 1e-4
        )
        close(r.q[:, 0], k * t**3 / 6.0, 0.0, late, f"x in {name}")
        close(r.v[:, 0], k * t**2 / 2.0, 0.0, late, f"v in {name}")
        close(r.a[:, 0], k * t, 0.0, 1e-9, f"a in {name}")
        close(r.tau[:, 0], PER_SECOND * t, 0.0, 1e-9, f"tau in {name}")
    close(cut.q, whole.q, 0.0, 1e-12, "x of the pieces")
    close(cut.v, whole.v, 0.0, 1e-12, "v of the pieces")
    assert cut.stats["steps"] == whole.stats["steps"] == round(T_END / step)


@pytest.mark.parametrize("method", [i.name for i in integrators() if not i.fixed])
def test_adaptive_steps_know_the_time(method: str) -> None:
    for name, law in laws().items():
        r = rf.simulate(slide(), T_END, method=method, control=law, rtol=1e-8, atol=1e-10)
        close(r.q[:, 0], PER_SECOND / MASS * r.t**3 / 6.0, 0.0, 1e-6, f"x, {name}")


class Told(Dop853):
    """Told beforehand which steps lie beyond the boundary of stability."""

    def __init__(self, beyond: str) -> None:
        self.boundary, self.within = 0, 0
        self.left = list(beyond)

    @property
    def at_stability(self) -> bool:
        return self.left.pop(0) == "x"


@pytest.mark.parametrize(
    ("beyond", "counted"),
    [
        ("xxx", 3),
        ("xxx.....", 3),  # five steps within are not enough to forget those beyond
        ("xxx......", 0),
        ("xxx.....x", 4),
        ("xxx.....x.....", 4),
        ("x......xx.....", 2),
    ],
)
def test_six_steps_in_a_row_within_the_boundary_of_stability_clear_the_count(
    beyond: str, counted: int
) -> None:
    solver = Told(beyond)
    for _ in beyond:
        solver._count_stability()
    assert solver.boundary == counted


def test_compiled_steps_count_the_boundary_of_stability_alike() -> None:
    """A stiff damper, and steps that are now and then held back by a fast swing."""
    arm = rf.Builder("arm")
    arm.link("heavy", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1.0), inertia=(0.1, 0.1, 0.1))
    arm.link("light", "heavy", axis=(0, 1, 0), at=(0, 0, -1.0), mass=0.01, com=(0, 0, -0.1), inertia=(1e-4, 1e-4, 1e-4), damping=0.2)  # fmt: skip
    rates = Rates(make_field(arm.model()))
    y0 = rates.field.start(np.array([2.0, 0.3]), np.array([0.0, 4.0]))
    given = {"rtol": 1e-6, "atol": 1e-8, "max_step": 0.5}
    ours, plain = (kind(rates, 0.0, y0, 2.0, **given) for kind in (CompiledDop853, Dop853))
    counts = []
    while plain.status == "running":
        assert ours.step() is plain.step() is None
        assert (ours.boundary, ours.within) == (plain.boundary, plain.within), plain.t
        counts.append((plain.boundary, plain.within))
    assert len(counts) > 50
    beyond, within = np.array(counts).T
    assert beyond.max() > 5  # steps beyond the boundary, and steps within it that follow them
    assert ((beyond > 0) & (within > 0)).any()
