"""Fixed steps whose equations are solved by repetition, as compiled loops: ``emit.stepper`` with
statements of ``emit.lane_programs`` in the place of stages. The module has a number NAME_doubles,
the size of the scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.lane_programs import LaneStatement, LaneStatements, Workspace, programs
from ramify.emit.stepper import Scheme, StateLayout, StepWriter
from ramify.emit.writer import InOrder

SOLVED = Scheme("solved", ((),), (1.0,), (0.0,), lengths=(1.0,))
"""The scheme of such steps, as far as it is one: a stage of the whole length."""


def workspace(statements: Sequence[LaneStatement], layout: StateLayout) -> Workspace:
    """The memory of a step: y comes first."""
    return Workspace(statements, layout.size, {"y": 0})


class SolvedStepWriter(StepWriter):
    """Writes steps made of statements on the arrays [t, h], y and inputs; y is their result."""

    def __init__(
        self, statements: Sequence[LaneStatement], layout: StateLayout, target: CpuTarget
    ) -> None:
        first = next(programs(statements))
        super().__init__(first, None, layout, SOLVED, target)
        self.space = workspace(statements, layout)
        self.statements = LaneStatements(statements, self.space)
        self.inputs = next(port.size for port in first.inputs if port.name == "inputs")

    def clear(self, what: str, size: int) -> None:
        """Nothing is read before it is written."""

    def end(self, name: str) -> str:
        self.w.end_blocks(self._flags())
        function = self.w.function(name, "inputs outputs run scratch")
        size = f"@{name}_doubles = constant i64 {self.space.end * self.w.width}"
        return InOrder(self.w.module(size, *self.statements.functions, function))

    def _flags(self) -> str:
        found = self.w.put("load i64, ptr %solved.flags")
        return self.w.put(f"or i64 {self.guard.flags()}, {found}")

    def begin(self, run: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> None:
        super().begin(run, inputs, outputs)
        self.w.do("%solved.flags = alloca i64")
        self.w.do("store i64 0, ptr %solved.flags")

    def _step(self, step: str) -> None:
        w, places = self.w, self.space.places
        now = self.time(step) + self.slack
        for i, value in enumerate((w.splat(now), self.dt)):
            w.store(value, w.at("%scratch", (places["times"] + i) * w.width))
        for i in range(self.inputs):
            w.store(self.table(step, i), w.at("%scratch", (places["inputs"] + i) * w.width))
        self.statements.write(w, "%scratch", "%solved.flags")
        self._record(step)
