"""The arrays of a kernel: inputs checked and broadcast against each other, results to fill; all as
rows, one for each state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import Array, real, refuse_many_axes
from ramify.core.errors import StateError
from ramify.trace.program import Port

Reals = NDArray[Any]
Out = Array | Sequence[Array] | None
"""Arrays to fill: one for one result, several for several."""


@dataclass(frozen=True)
class KernelArrays:
    """The input and output arrays of a kernel; ``answer`` is the tuple type of several results."""

    name: str
    robot: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    answer: type[tuple[Any, ...]] = tuple

    def checked_inputs(self, inputs: Sequence[ArrayLike]) -> tuple[list[Array], tuple[int, ...]]:
        """The inputs as arrays, and the shape of their batch."""
        ports = self.inputs
        if len(inputs) != len(ports):
            names = ", ".join(p.name for p in ports)
            raise StateError(
                f"{self.name} takes {len(ports)} arrays ({names}); it was given {len(inputs)}"
            )
        arrays = [self._checked(port, x) for port, x in zip(ports, inputs, strict=True)]
        return arrays, self.batch(arrays)

    def _checked(self, port: Port, x: ArrayLike) -> Array:
        one = type(x) is float and port.shape == (1,)  # stands for an array of one number
        a = real(f"{self.name}: {port.name}", (x,) if one else x)
        if a.ndim < len(port.shape) or a.shape[a.ndim - len(port.shape) :] != port.shape:
            want = ", ".join(["...", *map(str, port.shape)])
            raise StateError(
                f"{self.name}: {port.name} has shape {a.shape}; {self.robot!r} needs ({want})"
            )
        return a

    def unknown(self, arrays: Sequence[Reals], batch: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which states (N,) of a batch are not known (``ramify.core.arrays``): NaN is in an input
        that has a row for each of them.
        """
        unknown = np.zeros(batch, dtype=bool)
        for a, port in zip(arrays, self.inputs, strict=True):
            lead = a.ndim - len(port.shape)
            if lead:
                unknown |= np.isnan(a).any(axis=tuple(range(lead, a.ndim)))
        return unknown.reshape(-1)

    def rows(self, arrays: Sequence[Reals], batch: tuple[int, ...]) -> list[Reals]:
        """Inputs as C-contiguous rows (states, size)."""
        states, rows = math.prod(batch), []
        for a, port in zip(arrays, self.inputs, strict=True):
            if a.shape != (shape := batch + port.shape):
                a = np.broadcast_to(a, shape)
            rows.append(np.ascontiguousarray(a).reshape(states, port.size))
        return rows

    def flat(self, results: Sequence[Reals], states: int) -> list[Reals]:
        """Results as rows."""
        return [r.reshape(states, p.size) for r, p in zip(results, self.outputs, strict=True)]

    def answered(self, results: Sequence[Reals]) -> Any:
        answers = [r if r.ndim else r[()] for r in results]
        return answers[0] if len(answers) == 1 else tuple.__new__(self.answer, answers)

    def batch(self, arrays: Sequence[Reals]) -> tuple[int, ...]:
        """The shape of the batch of some inputs."""
        ports = self.inputs
        leads = [a.shape[: a.ndim - len(p.shape)] for a, p in zip(arrays, ports, strict=True)]
        for port, lead in zip(ports, leads, strict=True):
            refuse_many_axes(f"{self.name}: {port.name}", lead)
        if all(lead == leads[0] for lead in leads):
            return leads[0]
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            listing = ", ".join(f"{p.name} {lead}" for p, lead in zip(ports, leads, strict=True))
            raise StateError(f"{self.name}: the batches do not fit together: {listing}") from None

    def buffers(
        self, out: Out, batch: tuple[int, ...], rows: Sequence[Reals], dtype: type = np.float64
    ) -> list[Reals]:
        """Arrays for the results: ``out``, or new ones."""
        ports = self.outputs
        if out is None:
            return [np.empty(batch + p.shape, dtype) for p in ports]
        arrays = list_of_outputs(out)
        if len(arrays) != len(ports):
            raise StateError(f"{self.name}: out has {len(arrays)} arrays for {len(ports)} results")
        for p, a in zip(ports, arrays, strict=True):
            shape = batch + p.shape
            if (
                not isinstance(a, np.ndarray)
                or isinstance(a, np.ma.MaskedArray)
                or a.dtype != dtype
                or a.shape != shape
                or not a.flags.carray
            ):
                raise StateError(
                    f"{self.name}: out must be a writable C-contiguous {dtype.__name__} array of "
                    f"shape {shape}, without a mask"
                )
        self.refuse_shared(arrays, rows)
        return arrays

    def apart(self, out: Array | Sequence[Array]) -> list[Array]:
        """Arrays to fill for a batch as rows (states, size), which may stand further apart than
        they are long.
        """
        ports, arrays = self.outputs, list_of_outputs(out)
        if len(arrays) != len(ports) or not all(
            isinstance(a, np.ndarray) and a.ndim for a in arrays
        ):
            raise StateError(
                f"{self.name}: out must hold {len(ports)} arrays for a batch of states"
            )
        states, rows = len(arrays[0]), []
        for port, a in zip(ports, arrays, strict=True):
            wanted, step = (states, *port.shape), a.strides[0]
            fits = a.dtype == np.float64 and a.shape == wanted
            fits = fits and not isinstance(a, np.ma.MaskedArray)
            side_by_side = step % 8 == 0 and step >= 8 * port.size
            if not fits or (states and not (a[0].flags.carray and side_by_side)):
                raise StateError(
                    f"{self.name}: out must hold writable float64 arrays {wanted} without a mask, "
                    "the numbers of each state side by side"
                )
            shape = states, port.size
            strided = np.lib.stride_tricks.as_strided
            rows.append(a.reshape(shape) if a.flags.carray else strided(a, shape, (step, 8)))
        return rows

    def refuse_shared(
        self,
        results: Sequence[Reals],
        inputs: Sequence[Reals],
        shares: Callable[[Reals, Reals], bool] = np.may_share_memory,
    ) -> None:
        """StateError where a result shares memory with an input or another result."""
        for k, a in enumerate(results):
            if any(np.may_share_memory(a, b) and shares(a, b) for b in (*inputs, *results[:k])):
                raise StateError(
                    f"{self.name}: out shares memory with an input or another result; give a "
                    "separate array"
                )


def list_of_outputs(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]
