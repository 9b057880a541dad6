"""What runs an algorithm on a batch: it takes and gives rows of numbers. Compiled code is in
``compiled_program`` (unrolled) and ``rolled_backend`` (rolled); here are NumPy and combinations.
"""

from __future__ import annotations

import ctypes
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.runtime.compile import FunctionPointer, aligned_address
from ramify.runtime.target import host

Blocks = Sequence[NDArray[np.int64]] | None


class Backend(ABC):
    """Fills outputs (states, size) from inputs (states, size), C-contiguous."""

    tier: str

    @abstractmethod
    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        """Compute states ``start`` to ``stop``; returns the flags of ``ramify.emit.guards``."""

    def llvm_ir(self, width: int) -> str:
        """LLVM text for a number of lanes."""
        raise RamifyError("a kernel that runs on plain NumPy has no LLVM text")

    def function(self, width: int) -> FunctionPointer | None:
        """The function for ``width`` lanes; None if inputs must be rearranged first."""
        return None

    def fills(self, states: int) -> bool:
        """Whether ``fill`` can compute this number of states."""
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
    """A kernel's function: it takes the number of states and ``arguments`` pointers."""
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * arguments)(address)


class Scratch(threading.local):
    """Scratch memory, one piece per thread."""

    def __init__(self) -> None:
        self._memory = np.empty(0)

    def of(self, doubles: int) -> int:
        """The address of memory for ``doubles`` doubles, on a 64-byte boundary."""
        if self._memory.size < doubles + 8:
            self._memory = np.empty(doubles + 8)
        return aligned_address(self._memory)


def width_for(states: int) -> int:
    """The number of lanes for a number of states."""
    width = host().width
    return width if states >= width else 1


class Arrangement:
    """Rows that have the numbers of other rows in another order: entry i is number ``places[i]`` of
    these, or, where that is -1, entry i of the row ``rest``, by default zero.
    """

    def __init__(self, places: Sequence[int], rest: Array | None = None) -> None:
        taken = np.array(places, dtype=np.intp)
        self._size, self._filled = len(taken), np.flatnonzero(taken >= 0)
        self._taken, self._rest = taken[self._filled], 0.0 if rest is None else rest

    def fill(self, rows: Array, out: Array) -> None:
        """Write the arranged rows into ``out``."""
        if len(self._filled) == self._size:
            np.take(rows, self._taken, axis=1, out=out)
        else:
            out[:] = self._rest
            out[:, self._filled] = rows[:, self._taken]

    def of(self, rows: Array) -> Array:
        """The arranged rows."""
        out = np.empty((len(rows), self._size))
        self.fill(rows, out)
        return out


def scattered(size: int, sources: Mapping[int, int], rest: Array | None = None) -> Arrangement:
    """The arrangement of longer rows, of which some entries have a source: {entry: source}."""
    return Arrangement([sources.get(i, -1) for i in range(size)], rest)


class ArrangedOutputs(Backend):
    """Results arranged from the outputs of another backend: for each result an output, and the
    places of its numbers there, as in ``Arrangement``.
    """

    def __init__(
        self,
        backend: Backend,
        sizes: Sequence[int],
        results: Sequence[tuple[int, Sequence[int]]],
    ) -> None:
        self._backend, self._sizes = backend, sizes
        self.tier, self.llvm_ir = backend.tier, backend.llvm_ir  # type: ignore[method-assign]
        self._results = [(source, Arrangement(places)) for source, places in results]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        states = stop - start
        raw = [np.empty((states, size)) for size in self._sizes]
        flags = self._backend.run([a[start:stop] for a in inputs], raw, 0, states)
        for out, (source, arrangement) in zip(outputs, self._results, strict=True):
            arrangement.fill(raw[source], out[start:stop])
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
