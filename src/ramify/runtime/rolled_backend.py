"""Rolled code: one compiled traversal per algorithm, and the robot's numbers that it reads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.rolled_code import RolledWriter, rolled_scratch_doubles
from ramify.runtime import backend
from ramify.runtime.backend import Arrangement, Backend, Blocks, Scratch, pointers
from ramify.runtime.compile import FunctionPointer
from ramify.runtime.compiled_widths import CompiledWidths
from ramify.runtime.target import host
from ramify.trace.rolled_program import RolledProgram


class RobotTable:
    """A tree's numbers as the loops read them.

    Marks: bit 0 for a link whose parent has no child with a higher number (coming inward, it is the
    first to hand something over), bit 1 for a link without children, bit 2 for a plain one (see
    RolledProgram). Places: memory for records that pass between parent and child, one per link and
    one (the first) for the base; a link takes over the place of one whose last child is done.
    """

    def __init__(
        self,
        parents: Sequence[int],
        constants: Array,
        extras: Array,
        shared: Array,
        plain: Sequence[bool],
    ) -> None:
        self.links = len(parents)
        last = {parent: k for k, parent in enumerate(parents)}
        marks = [
            int(last[parent] == k) | 2 * (k not in last) | 4 * plain[k]
            for k, parent in enumerate(parents)
        ]
        self._keep = (
            np.array(parents, dtype=np.int64),
            *(np.ascontiguousarray(a, dtype=np.float64) for a in (constants, extras, shared)),
            np.array(marks, dtype=np.int64),
            np.array(self._take_places(parents, last), dtype=np.int64),
        )
        self.places = 1 + int(self._keep[-1].max())
        addresses = [a.ctypes.data for a in self._keep]
        self.table = np.array([self.links, *addresses, self.places], dtype=np.int64)

    @staticmethod
    def _take_places(parents: Sequence[int], last: dict[int, int]) -> list[int]:
        """A place for the base and every link, from the last child of those that have one."""
        places: list[int] = []
        until: list[int] = []  # for every place, the link that is done with it
        for k in range(-1, len(parents)):
            place = next((i for i, end in enumerate(until) if end <= k), len(until))
            until[place : place + 1] = [last.get(k, k)]
            places.append(place)
        return places


class RolledKernels:
    """The rolled code of one algorithm, shared by all robots."""

    def __init__(self, program: Callable[[], RolledProgram], name: str, variant: str = "") -> None:
        self._program, self.name, self._variant = program, name, variant
        self.functions, self.fills, self.in_lanes = map(self._widths, ("", "fill", "lanes"))

    @cached_property
    def program(self) -> RolledProgram:
        return self._program()

    def _widths(self, kind: str) -> CompiledWidths:
        name = f"{self.name}_{kind}" if kind else self.name
        key = " ".join(["rolled", *([kind] if kind else []), self.name, self._variant])

        def text(target: CpuTarget) -> str:
            return RolledWriter(self.program, target, kind == "fill", kind == "lanes").text(name)

        return CompiledWidths(text, name, lambda: key, 4)

    def llvm_ir(self, width: int) -> str:
        """LLVM text for a number of lanes."""
        return RolledWriter(self.program, host().with_width(width)).text(self.name)


class Rolled(Backend):
    """Rolled code with the table of one robot. ``arranged``: for every input, how it becomes rows
    with equally many numbers per link, or None where it has these.
    """

    tier = "rolled"

    def __init__(
        self,
        kernels: RolledKernels,
        robot: RobotTable,
        arranged: Sequence[Arrangement | None] = (),
    ) -> None:
        self._kernels, self._robot, self._arranged = kernels, robot, arranged
        self._table, self._scratch = int(robot.table.ctypes.data), Scratch()

    def llvm_ir(self, width: int) -> str:
        return self._kernels.llvm_ir(width)

    def function(self, width: int) -> FunctionPointer | None:
        return None if self.arranges else self.compute(width)

    def compute(self, width: int, in_lanes: bool = False) -> FunctionPointer:
        """The function for ``width`` lanes; ``in_lanes``: the one that leaves matrices in lanes
        (see ``RolledWriter``).
        """
        functions = self._kernels.in_lanes if in_lanes else self._kernels.functions
        code = functions.entry(width)[0]
        return FunctionPointer(code.address, self._table, self._doubles(width), (code, self._robot))

    def _doubles(self, width: int) -> int:
        robot = self._robot
        return rolled_scratch_doubles(self._kernels.program, robot.links, robot.places, width)

    @property
    def arranges(self) -> bool:
        """Whether inputs are arranged first."""
        return any(x is not None for x in self._arranged)

    def arrange(self, inputs: Sequence[Array]) -> list[Array]:
        """Inputs as rolled code reads them."""
        return [a if x is None else x.of(a) for a, x in zip(inputs, self._arranged, strict=True)]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        width = backend.width_for(stop - start)
        function = self._kernels.functions[width]
        if self.arranges:
            inputs = self.arrange([a[start:stop] for a in inputs])
            outputs, start, stop = [a[start:stop] for a in outputs], 0, stop - start
        rows = pointers(inputs, start), pointers(outputs, start)
        scratch = self._scratch.of(self._doubles(width))
        return int(function(stop - start, *rows, self._table, scratch))

    def fills(self, states: int) -> bool:
        matrices = all(port.per == "pair" for port in self._kernels.program.outputs)
        return states >= host().width > 1 and matrices and not self.arranges

    def fill(
        self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int,
        blocks: Blocks,
    ) -> int:  # fmt: skip
        width = host().width
        if blocks is None:
            blocks = [np.arange(-1, a.shape[1] // width) * width for a in outputs]
            for listed in blocks:
                listed[0] = len(listed) - 1
        table = (ctypes.c_int64 * (3 * len(outputs)))(
            *(a.ctypes.data + a.strides[0] * start for a in outputs),
            *(a.strides[0] // 8 for a in outputs),
            *(x.ctypes.data for x in blocks),
        )
        function, scratch = self._kernels.fills[width], self._scratch.of(self._doubles(width))
        return int(function(stop - start, pointers(inputs, start), table, self._table, scratch))
