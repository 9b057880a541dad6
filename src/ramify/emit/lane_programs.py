"""Programs that work on one memory in lanes, and repeat while some lane is not done.

A ``Workspace`` is memory of named arrays; a number of an array is a vector, one lane a state. A
``LaneStep`` is a program that reads and writes arrays by the names of its inputs and outputs; a
``Repeat`` runs steps again while a flag, an array of one number, exceeds a half in some lane. What
a lane that is done must keep, the program itself keeps, by ``select``: a state then does not depend
on its neighbours.

Long programs are cut into segments, a function each, as the time of the compiler grows faster than
the length of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ramify.emit.cpu_target import CpuTarget
from ramify.emit.segments import ResultBlock, SegmentPlan, SegmentWriter
from ramify.emit.writer import Writer
from ramify.trace.graph import Graph, as_node
from ramify.trace.program import Port, Program

SEGMENT = 1500
"""Operations of a function."""


@dataclass(frozen=True)
class LaneStep:
    """A program whose inputs and outputs are arrays of the workspace."""

    program: Program


@dataclass(frozen=True)
class Repeat:
    """Statements that are repeated while a flag exceeds a half in some lane."""

    flag: str
    body: tuple[LaneStatement, ...]


LaneStatement = LaneStep | Repeat


Arrays = dict[str, list[Any]]
"""Arrays of a workspace by name."""


def lane_step(name: str, text: Callable[[Arrays], Arrays], inputs: Mapping[str, int]) -> LaneStep:
    """A step from a text on arrays, over any scalar, whose inputs have these sizes."""
    graph = Graph()
    arrays = {
        key: [graph.symbol((i, j)) for j in range(size)]
        for i, (key, size) in enumerate(inputs.items())
    }
    written = text(arrays)
    results = tuple(tuple(as_node(graph, x) for x in values) for values in written.values())
    ports = [Port(key, (size,)) for key, size in inputs.items()]
    outputs = [Port(key, (len(values),)) for key, values in written.items()]
    return LaneStep(Program(name, graph, tuple(ports), tuple(outputs), results))


def programs(statements: Sequence[LaneStatement]) -> Iterator[Program]:
    """All programs, in their order."""
    for statement in statements:
        if isinstance(statement, LaneStep):
            yield statement.program
        else:
            yield from programs(statement.body)


class Workspace:
    """Where the arrays of some statements are in memory, in vectors: some have
    ``fixed_places``, the others follow from ``start`` on.
    """

    def __init__(
        self, statements: Sequence[LaneStatement], start: int, fixed_places: Mapping[str, int]
    ) -> None:
        self.places, end = dict(fixed_places), start
        self.plans: dict[int, SegmentPlan] = {}
        waiting = 0
        for program in programs(statements):
            for port in (*program.inputs, *program.outputs):
                if port.name not in self.places:
                    self.places[port.name] = end
                    end += port.size
            plan = self.plans[id(program)] = SegmentPlan(program, 1, False, SEGMENT)
            replaced = sum(p.size for p in replaced_ports(program))
            waiting = max(waiting, plan.size + replaced)
        self.waiting, self.end = end, end + waiting


def replaced_ports(program: Program) -> list[Port]:
    """Outputs that are inputs too: they are written when all has been read."""
    names = {port.name for port in program.inputs}
    return [port for port in program.outputs if port.name in names]


class LaneSegment(SegmentWriter):
    """Writes a segment of a program on a workspace."""

    def __init__(self, plan: SegmentPlan, target: CpuTarget, space: Workspace) -> None:
        super().__init__(plan, target, (), set())
        self.space = space
        self.w.do(f"%live = getelementptr {self.w.vector}, ptr %space, i64 {space.waiting}")
        later = space.waiting + plan.size
        self._later: dict[str, int] = {}
        for port in replaced_ports(plan.program):
            self._later[port.name] = later
            later += port.size

    def column(self, port: int, column: int) -> str:
        if (port, column) not in self._columns:
            place = self.space.places[self.plan.program.inputs[port].name] + column
            self._columns[port, column] = self.w.load(self._address(place))
        return self._columns[port, column]

    def store(self, item: ResultBlock, values: list[str]) -> None:
        name = self.plan.program.outputs[item.port].name
        place = self._later.get(name, self.space.places[name]) + item.start
        for i, value in enumerate(values):
            self.w.store(value, self._address(place + i))

    def replace(self) -> None:
        """Write the outputs that are inputs too."""
        for port in replaced_ports(self.plan.program):
            for i in range(port.size):
                value = self.w.load(self._address(self._later[port.name] + i))
                self.w.store(value, self._address(self.space.places[port.name] + i))

    def _address(self, place: int) -> str:
        return self.w.at("%space", place, self.w.vector)

    def _check(self, what: int | tuple[int, int], value: str) -> None:
        """The state at the end of a run is checked instead."""

    def function(self, name: str) -> str:
        """Its text: ``int64 NAME(double *space)``."""
        self.w.do(f"ret i64 {self.guard.flags()}")
        head = f'define internal i64 @{name}(ptr %space) noinline "stackrealign" {{'
        return "\n".join([head, "entry:", *self.w.lines, "}"])


class LaneStatements:
    """Writes statements into a function, and the functions of their programs."""

    def __init__(self, statements: Sequence[LaneStatement], space: Workspace) -> None:
        self.statements, self.space = statements, space
        self.functions: list[str] = []

    def write(self, w: Writer, base: str, flags: str) -> None:
        """Run all statements on the workspace at ``base``; the flags of their guards are added to
        the number at ``flags``.
        """
        self._write(w, self.statements, base, flags)

    def _write(self, w: Writer, statements: Sequence[LaneStatement], base: str, flags: str) -> None:
        for statement in statements:
            if isinstance(statement, LaneStep):
                self._run(w, statement.program, base, flags)
            else:
                self._repeat(w, statement, base, flags)

    def _run(self, w: Writer, program: Program, base: str, flags: str) -> None:
        for name in self._compiled(w, program):
            result = w.put(f"call i64 @{name}(ptr {base})")
            before = w.put(f"load i64, ptr {flags}")
            w.do(f"store i64 {w.put(f'or i64 {before}, {result}')}, ptr {flags}")

    def _compiled(self, w: Writer, program: Program) -> list[str]:
        """The names of the functions of a program's segments."""
        plan, names = self.space.plans[id(program)], []
        for k, items in enumerate(plan.segments):
            segment = LaneSegment(plan, w.target, self.space)
            for item in items:
                segment.write(item)
            if k == len(plan.segments) - 1:
                segment.replace()
            names.append(f"{program.name}.{k}")
            self.functions.append(segment.function(names[-1]))
            w.intrinsics |= segment.w.intrinsics
        return names

    def _repeat(self, w: Writer, statement: Repeat, base: str, flags: str) -> None:
        label = w.name()[1:]
        w.enter(f"{label}.test")
        place = w.at(base, self.space.places[statement.flag], w.vector)
        some = w.any(w.compare("ogt", w.load(place), w.const(0.5)))
        w.fork(some, f"{label}.body", f"{label}.exit")
        w.label(f"{label}.body")
        self._write(w, statement.body, base, flags)
        w.go(f"{label}.test")
        w.label(f"{label}.exit")
