"""Kernels in single precision, for batches: twice the lanes and half the memory.

The same text, straight-line, in 32-bit numbers. What it flags (a number that is not finite, an
angle beyond its sine's range of a thousand radians, a quaternion that is not of unit length) is
computed again in double precision, which also finds the words for an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ramify.core.arrays import real
from ramify.runtime.backend import function_of, pointers
from ramify.runtime.batch_pool import SharedFunction, can_share_batches
from ramify.runtime.compile import FunctionPointer, compiled
from ramify.runtime.kernel import Kernel
from ramify.runtime.target import host
from ramify.runtime.threads import Cost, thread_count

Singles = NDArray[np.float32]
_NAME: Final = "single"


class SingleKernel:
    """``k(*inputs, out=None, threads=None)``: inputs (..., size) broadcast against each other and
    become float32, results are float32. Use batches: fewer states than lanes take as long as all.
    """

    def __init__(self, exact: Kernel) -> None:
        self.exact, self.name = exact, exact.name
        self._program, self._target = exact._plan.compiled, host().in_single()
        key = f"single {self._program.key}"
        self._code = compiled(lambda: self.llvm_ir, _NAME, self._target, key)
        self._run: Callable[..., int] = function_of(self._code.address, 2)
        self._cost = Cost(exact._plan.cost_ns)
        self._shared_function: SharedFunction | None = None

    @property
    def llvm_ir(self) -> str:
        """LLVM text for this machine's vector width."""
        return self._program.ir(self._target, _NAME)

    def __repr__(self) -> str:
        return f"{self.exact!r}, in single precision"

    def __call__(self, *inputs: ArrayLike, out: Any = None, threads: int | None = None) -> Any:
        exact, plan = self.exact, self.exact._plan
        if len(inputs) != len(plan.inputs):
            return exact(*inputs)  # which says what is missing
        arrays = [
            x if isinstance(x, np.ndarray) and x.dtype == np.float32 else _single(p.name, x)
            for x, p in zip(inputs, plan.inputs, strict=True)
        ]
        for x, p in zip(arrays, plan.inputs, strict=True):
            if x.shape[x.ndim - len(p.shape) :] != p.shape:
                return exact(*inputs)
        lead = exact._arrays.batch(arrays)
        rows: list[Singles] = exact._arrays.rows(arrays, lead)
        states = len(rows[0])
        if plan.diagnosis.locks:
            exact._check(rows[0].astype(np.float64))
        results = exact._arrays.buffers(out, lead, rows, np.float32)
        flat: list[Singles] = exact._arrays.flat(results, states)
        flags = self._fill(rows, flat, threads) if states else 0
        if flags:
            unknown = exact._arrays.unknown(arrays, lead)
            if unknown.any() and not unknown.all():  # the others do not notice them
                known = [np.where(unknown[:, None], r[~unknown][0], r) for r in rows]
                flags = self._fill(known, flat, threads)
            for f in flat:
                f[unknown] = np.nan
        if flags:
            self._exactly(arrays, flat)
        return exact._arrays.answered(results) if out is None else out

    def _fill(self, rows: list[Singles], flat: list[Singles], threads: int | None) -> int:
        """Fill the results; gives the flags."""
        states, lanes = len(rows[0]), self._target.width
        if states >= lanes:
            return self._shared(rows, flat, threads)
        # repeat the first state in the lanes that are left
        padded = [np.concatenate([r, np.repeat(r[:1], lanes - states, axis=0)]) for r in rows]
        padded_results = [np.empty((lanes, f.shape[1]), dtype=np.float32) for f in flat]
        flags = self._run(lanes, pointers(padded, 0), pointers(padded_results, 0))
        for f, part in zip(flat, padded_results, strict=True):
            f[:] = part[:states]
        return flags

    def _shared(self, rows: list[Singles], flat: list[Singles], count: int | None) -> int:
        """The flags of a batch, which threads share where it pays."""
        count, addresses = thread_count(count), (pointers(rows, 0), pointers(flat, 0))
        if not can_share_batches():
            return self._run(len(rows[0]), *addresses)
        if self._shared_function is None:
            function, exact = FunctionPointer(self._code.address, keep=self._code), self.exact
            self._shared_function = SharedFunction(
                function, exact.inputs, exact.outputs, self._cost, self._target
            )
        return self._shared_function.run(*addresses, len(rows[0]), count)

    def _exactly(self, arrays: list[Singles], flat: list[Singles]) -> None:
        """Compute again in double precision, which raises an error where a number is not finite."""
        answer = self.exact(*(a.astype(np.float64) for a in arrays))
        for f, x in zip(flat, answer if isinstance(answer, tuple) else (answer,), strict=True):
            f[:] = np.reshape(x, f.shape)


def _single(name: str, x: ArrayLike) -> Singles:
    return np.asarray(real(name, x), dtype=np.float32)
