"""The ways to run an algorithm on a batch: straight-line code, loops, plain NumPy. All take and
give rows of numbers.
"""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.core.forks import LOCK
from ramify.emit.cpu_target import CpuTarget
from ramify.emit.rolled_code import RolledWriter, scratch_doubles
from ramify.emit.unrolled import unrolled_ir
from ramify.runtime.compile import Compiled, Compute, aligned, compiled, is_cached
from ramify.runtime.target import host
from ramify.trace.program import Program
from ramify.trace.rolled_program import RolledProgram

Blocks = Sequence[NDArray[np.int64]] | None


class Backend(ABC):
    """Fills outputs (states, size) from inputs (states, size), C-contiguous."""

    tier: str

    @abstractmethod
    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        """Compute some states; gives the flags of ``ramify.emit.guards``."""

    def llvm_ir(self, width: int) -> str:
        """LLVM text for a number of lanes."""
        raise RamifyError("a kernel that runs on plain NumPy has no LLVM text")

    def function(self, width: int) -> Compute | None:
        """The function for so many lanes, where there is one that takes the inputs as they are."""
        return None

    def fills(self, states: int) -> bool:
        """Whether ``fill`` takes so many states of this algorithm."""
        return False

    def fill(
        self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int,
        blocks: Blocks,
    ) -> int:  # fmt: skip
        """As ``run``, into rows that may stand further apart. ``blocks``: for each output how many
        blocks of as many numbers as there are lanes are written, and where these begin; the rest
        holds its zeros already. None: all.
        """
        raise NotImplementedError


def pointers(arrays: Sequence[NDArray[Any]], start: int) -> Any:
    """A table of the addresses of rows."""
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data + a.strides[0] * start for a in arrays))


def function_of(address: int, arguments: int) -> Any:
    """A kernel's function: the number of states, then so many pointers."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * arguments)(address)


class Scratch(threading.local):
    """Memory of each thread."""

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def of(self, doubles: int) -> int:
        """The address of so many doubles, on a 64-byte boundary."""
        if self._memory.size < doubles + 8:
            self._memory = np.empty(doubles + 8)
        return aligned(self._memory)


class _Widths:
    """One function per width, compiled when it is first needed."""

    def __init__(
        self, text: Callable[[CpuTarget], str], name: str, key: Callable[[], str], arguments: int
    ) -> None:
        self._text, self._name, self._key, self._arguments = text, name, key, arguments
        self._known: dict[int, tuple[Compiled, Any]] = {}

    def __getitem__(self, width: int) -> Any:
        return self.entry(width)[1]

    def entry(self, width: int) -> tuple[Compiled, Any]:
        found = self._known.get(width)
        if found is None:
            with LOCK:
                if width not in self._known:
                    target = host().with_width(width)
                    made = compiled(lambda: self._text(target), self._name, target, self._key())
                    self._known[width] = made, function_of(made.address, self._arguments)
                found = self._known[width]
        return found


def width_for(states: int) -> int:
    """The lanes with which so many states are computed."""
    width = host().width
    return width if states >= width else 1


class Unrolled(Backend):
    """Straight-line code for one robot. ``program`` is traced only where the cache has no object
    for the fingerprint.
    """

    tier = "unrolled"

    def __init__(
        self,
        program: Callable[[], Program],
        fingerprint: Callable[[], str],
        name: str,
        quaternions: Sequence[int] = (),
    ) -> None:
        self._program, self._print, self._quaternions = program, fingerprint, quaternions
        self._name = f"kernel_{name}"
        self._functions = _Widths(self._text, self._name, lambda: self._fingerprint, 2)
        self._fills: dict[tuple[int, ...], _Widths] = {}

    @cached_property
    def program(self) -> Program:
        return self._program()

    @cached_property
    def _fingerprint(self) -> str:
        return f"unrolled {self._print()}"

    def _text(self, target: CpuTarget) -> str:
        return unrolled_ir(self.program, target, self._name, self._quaternions)

    def llvm_ir(self, width: int) -> str:
        return self._text(host().with_width(width))

    def cached(self) -> bool:
        """Whether an earlier run has left both widths in the cache."""
        targets = (host().with_width(w) for w in {1, host().width})
        return all(is_cached(self._name, target, self._fingerprint) for target in targets)

    def ready(self) -> None:
        """Compile what one state and batches need."""
        for width in (1, host().width):
            self._functions.entry(width)

    def function(self, width: int = 1) -> Compute:
        """The function for one state, or for batches."""
        made = self._functions.entry(width)[0]
        return Compute(made.address, keep=made)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        if stop == start:
            return 0
        function = self._functions[width_for(stop - start)]
        return int(function(stop - start, pointers(inputs, start), pointers(outputs, start)))

    def fills(self, states: int) -> bool:
        return states >= host().width

    def fill(
        self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int,
        blocks: Blocks,
    ) -> int:  # fmt: skip
        preset, strides = blocks is not None, tuple(a.strides[0] // 8 for a in outputs)
        key, name = (preset, *strides), f"{self._name}_fill"
        if key not in self._fills:
            self._fills[key] = _Widths(
                lambda target: unrolled_ir(
                    self.program, target, name, self._quaternions, strides, preset
                ),
                name,
                lambda: f"fill {preset} {strides} {self._fingerprint}",
                2,
            )
        function = self._fills[key][host().width]
        return int(function(stop - start, pointers(inputs, start), pointers(outputs, start)))


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
        """A place for the base and every link, given the last child of those that have one."""
        places: list[int] = []
        until: list[int] = []  # for every place, the link that is done with it
        for k in range(-1, len(parents)):
            place = next((i for i, end in enumerate(until) if end <= k), len(until))
            until[place : place + 1] = [last.get(k, k)]
            places.append(place)
        return places


class Spread:
    """How a row, or the entries ``taken`` of it, fills a longer row that has the same number of
    entries for every link.
    """

    def __init__(
        self, rest: Array, places: Iterable[int], taken: Iterable[int] | None = None
    ) -> None:
        self._rest, self._places = rest, list(places)
        self._taken: slice | list[int] = slice(None) if taken is None else list(taken)

    def of(self, rows: Array) -> Array:
        out = np.empty((rows.shape[0], self._rest.size))
        out[:] = self._rest
        out[:, self._places] = rows[:, self._taken]
        return out


class RolledKernels:
    """The compiled loops of one algorithm, shared by all robots."""

    def __init__(self, program: Callable[[], RolledProgram], name: str, variant: str = "") -> None:
        self._program, self.name, self._variant = program, name, variant
        self.functions, self.fills, self.in_lanes = map(self._widths, ("", "fill", "lanes"))

    @cached_property
    def program(self) -> RolledProgram:
        return self._program()

    def _widths(self, kind: str) -> _Widths:
        name = f"{self.name}_{kind}" if kind else self.name
        key = " ".join(["rolled", *([kind] if kind else []), self.name, self._variant])

        def text(target: CpuTarget) -> str:
            return RolledWriter(self.program, target, kind == "fill", kind == "lanes").text(name)

        return _Widths(text, name, lambda: key, 4)

    def llvm_ir(self, width: int) -> str:
        """LLVM text for a number of lanes."""
        return RolledWriter(self.program, host().with_width(width)).text(self.name)


class Rolled(Backend):
    """Loops over one robot's links."""

    tier = "rolled"

    def __init__(
        self, kernels: RolledKernels, robot: RobotTable, spread: Sequence[Spread | None] = ()
    ) -> None:
        self._kernels, self._robot, self._spread = kernels, robot, spread
        self._table, self._scratch = int(robot.table.ctypes.data), Scratch()

    def llvm_ir(self, width: int) -> str:
        return self._kernels.llvm_ir(width)

    def function(self, width: int) -> Compute | None:
        return None if self.spreads else self.compute(width)

    def compute(self, width: int, in_lanes: bool = False) -> Compute:
        """The function for so many lanes, or the one that leaves matrices in lanes (see
        ``RolledWriter``).
        """
        functions = self._kernels.in_lanes if in_lanes else self._kernels.functions
        made = functions.entry(width)[0]
        return Compute(made.address, self._table, self._doubles(width), (made, self._robot))

    def _doubles(self, width: int) -> int:
        robot = self._robot
        return scratch_doubles(self._kernels.program, robot.links, robot.places, width)

    @property
    def spreads(self) -> bool:
        """Whether inputs are spread over longer rows first."""
        return any(self._spread)

    def spread(self, inputs: Sequence[Array]) -> list[Array]:
        """Inputs as the loops read them."""
        return [a if s is None else s.of(a) for a, s in zip(inputs, self._spread, strict=True)]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        width = width_for(stop - start)
        function = self._kernels.functions[width]
        if self.spreads:
            inputs = self.spread([a[start:stop] for a in inputs])
            outputs, start, stop = [a[start:stop] for a in outputs], 0, stop - start
        rows = pointers(inputs, start), pointers(outputs, start)
        scratch = self._scratch.of(self._doubles(width))
        return int(function(stop - start, *rows, self._table, scratch))

    def fills(self, states: int) -> bool:
        matrices = all(port.per == "pair" for port in self._kernels.program.outputs)
        return states >= host().width > 1 and matrices and not self.spreads

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


class Rearranged(Backend):
    """Another backend whose outputs, of some sizes, make the results: for each result an output and
    the places of its numbers there, -1 for a zero.
    """

    def __init__(
        self,
        backend: Backend,
        sizes: Sequence[int],
        results: Sequence[tuple[int, Sequence[int]]],
    ) -> None:
        self._backend, self._sizes = backend, sizes
        self.tier, self.llvm_ir = backend.tier, backend.llvm_ir  # type: ignore[method-assign]
        self._results: list[tuple[int, NDArray[np.intp], NDArray[np.intp]]] = []
        for source, places in results:
            taken = np.array(places, dtype=np.intp)
            filled = np.flatnonzero(taken >= 0)
            self._results.append((source, filled, taken[filled]))

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        states = stop - start
        found = [np.empty((states, size)) for size in self._sizes]
        flags = self._backend.run([a[start:stop] for a in inputs], found, 0, states)
        for out, (source, filled, places) in zip(outputs, self._results, strict=True):
            if len(filled) == out.shape[1]:
                np.take(found[source], places, axis=1, out=out[start:stop])
            else:
                out[start:stop] = 0.0
                out[start:stop, filled] = found[source][:, places]
        return flags


class Summed(Backend):
    """Two backends whose outputs are added."""

    def __init__(self, backend: Backend, other: Backend) -> None:
        self._backend, self._other = backend, other
        self.tier, self.llvm_ir = backend.tier, backend.llvm_ir  # type: ignore[method-assign]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        flags = self._backend.run(inputs, outputs, start, stop)
        more = [np.zeros((stop - start, out.shape[1])) for out in outputs]
        flags |= self._other.run([a[start:stop] for a in inputs], more, 0, stop - start)
        for out, extra in zip(outputs, more, strict=True):
            out[start:stop] += extra
        return flags


class PlainNumpy(Backend):
    """The algorithm's text run on arrays, a batch per scalar; needs no compiler."""

    tier = "numpy"

    def __init__(self, text: Callable[..., list[list[Any]]]) -> None:
        self.text = text

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        columns = [[a[start:stop, j] for j in range(a.shape[1])] for a in inputs]
        with np.errstate(all="ignore"):
            results = self.text(*columns)
        for out, result in zip(outputs, results, strict=True):
            for j, value in enumerate(result):
                out[start:stop, j] = value
        finite = all(np.isfinite(a[start:stop]).all() for a in (*inputs, *outputs))
        return 0 if finite else 1
