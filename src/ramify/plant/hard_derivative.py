"""A step of hard contact near its solution, as a text that can be differentiated.

With the modes that the solver has found, a step is the zero w of a smooth F(w; x), and

    w(x) = w - H^-1 (F(w; x) - F(w; x0)),    H = dF/dw at x0,

has at x = x0 the value w and the derivatives of the step. Contacts that stick or press and loops
are held by a compliance some million times smaller than that of the mechanism; a contact that
slides turns with its slip and grows with its load, so that H is not symmetric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ramify.contact.hard_solver import residual, row_rate
from ramify.contact.hard_system import ContactRows, SingleRow, Sparse, System
from ramify.core.cached import cached_property
from ramify.core.scalar import Scalar, Scalars, select, sqrt
from ramify.dynamics.tree_factor import TreeLu, symmetric_times
from ramify.plant.hard_step import HardStep
from ramify.plant.plant import Plant
from ramify.trace.program import Port, Program, trace

_RIGID: Final = 2e5
"""How many times stiffer rows are held than the solver's compliances."""
_SLIP: Final = 1e-9
"""m/s: slower slip has no direction."""


@dataclass(frozen=True)
class SolvedStep:
    """Of a step: velocities w (nv), impulses of all rows, modes of the contacts."""

    w: Sequence[Scalar]
    impulses: Sequence[Scalar]
    modes: Sequence[Scalar]


class HardDerivative:
    """The differentiable step of a plant: (times [t, h], x, u, x0, u0, solution) -> x after it."""

    def __init__(self, plant: Plant) -> None:
        self.step, self.plant = HardStep(plant), plant

    @property
    def size(self) -> int:
        """The size of x = [q, v, z]."""
        return self.plant.state_slices[2].stop

    @cached_property
    def program(self) -> Program:
        plant, solver = self.plant, self.step.solver
        sizes = {
            "times": 2, "x": self.size, "u": plant.input_size, "x0": self.size,
            "u0": plant.input_size, "w": solver.n, "impulses": solver.rows,
            "modes": solver.contacts,
        }  # fmt: skip

        def text(times: Any, x: Any, u: Any, x0: Any, u0: Any, *of_step: Any) -> list[list[Scalar]]:
            return [self.text(times, x, u, x0, u0, SolvedStep(*of_step))]

        ports = [Port(name, (n,)) for name, n in sizes.items()]
        return trace("hard_derivative", text, ports, (Port("end", (self.size,)),))

    def text(
        self, times: Scalars, x: Scalars, u: Scalars, x0: Scalars, u0: Scalars, solution: SolvedStep
    ) -> list[Scalar]:
        """x after the step; what the step records stays as it is in x0."""
        t, h = times
        padded = [0.0] * (self.plant.size - self.size)
        now = self.step.system(t, [*x, *padded], u, h)
        base = self.step.system(t, [*x0, *padded], u0, h)
        law = _Law(self.step, base, solution)
        F = [a - b for a, b in zip(law.forces(now), law.forces(base), strict=True)]
        moved = TreeLu(self.step.solver.n, law.slopes()).solve(F)
        w = [a - b for a, b in zip(solution.w, moved, strict=True)]
        end = self.step.moved_states(t, [*x, *padded], h, w)
        return [*end, *x0[len(end) :]]


class _Law:
    """Impulses near a solution, in its modes."""

    def __init__(self, step: HardStep, base: System, solution: SolvedStep) -> None:
        self.base, self.solution = base, solution
        self.stiff = [_RIGID / r for r in step.weights(1.0).R]
        self.u = [row_rate(row, solution.w) for row in base.rows]

    def _slip(self, u: Sequence[Scalar]) -> tuple[Scalar, Scalar, Scalar]:
        """The direction against a slip, and 1 / its speed."""
        inverse = 1.0 / sqrt(u[0] * u[0] + u[1] * u[1] + _SLIP * _SLIP)
        return -u[0] * inverse, -u[1] * inverse, inverse

    def forces(self, system: System) -> list[Scalar]:
        """F = A w - r - J' g at the solution's w."""
        w = self.solution.w
        momentum = [a - b for a, b in zip(symmetric_times(system.A, w), system.r, strict=True)]
        g: list[Scalar] = []
        for c, contact in enumerate(system.contacts):
            g += self._contact(c, contact)
        for s, row in enumerate(system.singles):
            g.append(self._single(s, row))
        return residual(system.rows, momentum, g)

    def _contact(self, c: int, contact: ContactRows) -> list[Scalar]:
        w, k, mode = self.solution.w, self.stiff[c], self.solution.modes[c]
        normal, x, y = self.solution.impulses[3 * c : 3 * c + 3]
        u = [row_rate(row, w) for row in contact.rows]
        start = self.base.contacts[c].least - self.u[3 * c]
        load = normal + k * (contact.least - u[0] - start)
        ex, ey, _ = self._slip(u[1:])
        pressed, sticks = mode > 0.5, mode < 1.5
        along = [
            select(sticks, g - k * (now - then), contact.friction * load * e)
            for g, now, then, e in zip((x, y), u[1:], self.u[3 * c + 1 :], (ex, ey), strict=False)
        ]
        return [select(pressed, g, 0.0) for g in (load, *along)]

    def _at_bound(self, s: int) -> tuple[Any, Any]:
        """Whether a single row is at its lower and at its upper bound."""
        row, g = self.base.singles[s], self.solution.impulses[3 * len(self.base.contacts) + s]
        if row.low is None:
            return False, False
        if row.high is None:
            return g <= row.low, False
        margin = 1e-9 * (row.high - row.low)
        return g < row.low + margin, g > row.high - margin

    def _single(self, s: int, row: SingleRow) -> Scalar:
        place = 3 * len(self.base.contacts) + s
        k = self.stiff[len(self.base.contacts) + s]
        miss = row.target - row_rate(row.entries, self.solution.w)
        start = self.base.singles[s].target - self.u[place]
        low, high = self._at_bound(s)
        g = self.solution.impulses[place] + k * (miss - start)
        g = g if row.low is None else select(low, row.low, g)
        return g if row.high is None else select(high, row.high, g)

    def slopes(self) -> dict[tuple[int, int], Scalar]:
        """H = A - J' dg/du J at the base."""
        H: dict[tuple[int, int], Scalar] = {}
        for (i, j), x in self.base.A.items():
            H[i, j] = H[j, i] = x

        def add(first: Sparse, second: Sparse, slope: Scalar) -> None:
            for i, x in first.items():
                for j, y in second.items():
                    H[i, j] = H.get((i, j), 0.0) + x * slope * y

        for c, contact in enumerate(self.base.contacts):
            k, mode = self.stiff[c], self.solution.modes[c]
            pressed, sticks = mode > 0.5, mode < 1.5
            ex, ey, inverse = self._slip(self.u[3 * c + 1 : 3 * c + 3])
            n, (s, t) = contact.normal, contact.tangents
            grip = contact.friction * self.solution.impulses[3 * c] * inverse
            add(n, n, select(pressed, k, 0.0))
            for rows, stick, slide in (
                ((s, s), k, grip * (1.0 - ex * ex)), ((t, t), k, grip * (1.0 - ey * ey)),
                ((s, t), 0.0, -grip * (ex * ey)), ((t, s), 0.0, -grip * (ex * ey)),
                ((s, n), 0.0, contact.friction * k * ex), ((t, n), 0.0, contact.friction * k * ey),
            ):  # fmt: skip
                add(*rows, select(pressed, select(sticks, stick, slide), 0.0))
        for i, row in enumerate(self.base.singles):
            low, high = self._at_bound(i)
            k = self.stiff[len(self.base.contacts) + i]
            add(row.entries, row.entries, select(low, 0.0, select(high, 0.0, k)))
        return H
