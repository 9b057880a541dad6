"""Functions of a robot for CasADi: symbolic ones, which CasADi differentiates and prints as C, and
ones that call a compiled kernel for a whole horizon, with exact sparse Jacobians.

CasADi's matrix (n, N) has a state in each column, one after the other in memory: our rows (N, n).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import casadi
import numpy as np

from ramify.core.arrays import Array, real, whole
from ramify.core.errors import RamifyError, StateError
from ramify.interop.differentiable import Differentiable
from ramify.trace.interpret import replay
from ramify.trace.jacobian_program import JacobianBlock
from ramify.trace.program import Port


def make(function: Differentiable, horizon: int | None = None) -> Any:
    """A casadi.Function: of SX, or of the kernel for a horizon."""
    return symbolic(function) if horizon is None else of_kernel(function, horizon)


def symbolic(function: Differentiable) -> Any:
    """A casadi.Function of SX: the folded program, node by node."""
    inputs = [casadi.SX.sym(p.name, *_matrix(p)) for p in function.inputs]
    columns = [_scalars(x, p) for x, p in zip(inputs, function.inputs, strict=True)]
    values = replay(function.program, columns)
    outputs = [
        _shaped([values[node] for node in nodes], port)
        for port, nodes in zip(function.outputs, function.program.results, strict=True)
    ]
    return SymbolicFunction(function.name, inputs, outputs, *_names(function))


class SymbolicFunction(casadi.Function):
    """A function of SX."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        refuse_misread(self, args, named)
        return super().__call__(*args, **named)


_OWN: Final = (casadi.SX, casadi.MX, casadi.DM)


def refuse_misread(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse what CasADi would read otherwise than meant, or refuse without saying why: arrays with
    masked entries, empty ones, others than (rows, N), too few.
    """
    names = function.name_in()
    if args and len(args) != len(names):
        listed = ", ".join(names)
        raise StateError(
            f"{function.name()} takes {len(names)} matrices ({listed}); it was given {len(args)}"
        )
    for key, x in {**dict(zip(names, args, strict=False)), **named}.items():
        if isinstance(x, _OWN) or key not in names or _holds_own(x):
            continue
        a, (rows, columns) = real(f"{function.name()}: {key}", x), function.size_in(key)
        if a.size != 1 and a.shape != (1, rows) and (a.ndim > 2 or a.shape[:1] != (rows,)):
            raise StateError(
                f"{function.name()}: {key} has shape {a.shape}; needed: ({rows}, {columns}), one "
                "state in each column"
            )
        if not a.size:
            raise StateError(f"{function.name()}: {key} has shape {a.shape}, which is empty")


def _holds_own(x: Any) -> bool:
    return isinstance(x, (list, tuple)) and any(isinstance(y, _OWN) or _holds_own(y) for y in x)


def _matrix(port: Port) -> tuple[int, int]:
    """The shape of a port as a matrix; leading axes are stacked."""
    rows = port.size // port.shape[-1] if len(port.shape) > 1 else port.size
    return rows, port.size // rows


def _scalars(x: Any, port: Port) -> list[Any]:
    return casadi.vertsplit(casadi.vec(x.T)) if len(port.shape) > 1 else casadi.vertsplit(x)


def _shaped(scalars: Sequence[Any], port: Port) -> Any:
    rows, columns = _matrix(port)
    return (
        casadi.reshape(casadi.vertcat(*scalars), columns, rows).T
        if columns > 1
        else (casadi.vertcat(*scalars))
    )


def _names(function: Differentiable) -> tuple[list[str], list[str]]:
    """Names of inputs and outputs; an output that is also an input is the next one."""
    inputs = [p.name for p in function.inputs]
    return inputs, [f"{p.name}_next" if p.name in inputs else p.name for p in function.outputs]


def of_kernel(function: Differentiable, horizon: int) -> Any:
    """A casadi.Function that calls the kernel: inputs (n, horizon), a column for each state;
    matrices side by side, as in casadi's ``map``.
    """
    horizon = whole("horizon", horizon, 1, RamifyError, 10**7)
    function = _by_columns(function)
    takes, gives = (
        [CallbackMatrix(_dense(port, horizon), i) for i, port in enumerate(ports)]
        for ports in (function.inputs, function.outputs)
    )
    return KernelCallback(function.name, function, horizon, takes, gives, *_names(function))


def _by_columns(function: Differentiable) -> Differentiable:
    """The function with its matrices column by column."""
    if all(len(p.shape) < 2 for p in (*function.inputs, *function.outputs)):
        return function
    return function.arranged(
        [_column_order(p) for p in function.inputs], [_column_order(p) for p in function.outputs]
    )


def _column_order(port: Port) -> list[int]:
    """Places, row by row, of the entries of a matrix column by column."""
    return np.arange(port.size).reshape(_matrix(port)).T.ravel().tolist()


class CallbackMatrix(NamedTuple):
    """An input or output of CasADi: its pattern, and which of the function's it is; None for an
    input that is not read (CasADi hands results to derivatives) and for a result that is zero.
    """

    pattern: Any
    port: int | None


def _dense(port: Port, horizon: int) -> Any:
    rows, columns = _matrix(port)
    return casadi.Sparsity.dense(rows, columns * horizon)


class KernelCallback(casadi.Callback):
    """A function of rows as CasADi calls it, for ``horizon`` states."""

    def __init__(
        self,
        name: str,
        function: Differentiable,
        horizon: int,
        takes: Sequence[CallbackMatrix],
        gives: Sequence[CallbackMatrix],
        inames: Sequence[str],
        onames: Sequence[str],
    ) -> None:
        casadi.Callback.__init__(self)
        self._function, self._horizon = function, horizon
        self._takes, self._gives, self._inames, self._onames = takes, gives, inames, onames
        self._reads = [
            (i, function.inputs[x.port]) for i, x in enumerate(takes) if x.port is not None
        ]
        self._writes = [
            (i, function.outputs[x.port]) for i, x in enumerate(gives) if x.port is not None
        ]
        self._derived: list[Any] = []  # CasADi does not keep them
        self.construct(name, {})

    def __call__(self, *args: Any, **named: Any) -> Any:
        refuse_misread(self, args, named)
        return super().__call__(*args, **named)

    def get_n_in(self) -> int:
        return len(self._takes)

    def get_n_out(self) -> int:
        return len(self._gives)

    def get_name_in(self, i: int) -> str:
        return self._inames[i]

    def get_name_out(self, i: int) -> str:
        return self._onames[i]

    def get_sparsity_in(self, i: int) -> Any:
        return self._takes[i].pattern

    def get_sparsity_out(self, i: int) -> Any:
        return self._gives[i].pattern

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arg: Any, res: Any) -> int:
        self._function.fill(
            [self._rows(arg[i], port) for i, port in self._reads],
            [self._rows(res[i], port) for i, port in self._writes],
        )
        return 0

    def _rows(self, buffer: Any, port: Port) -> Array:
        if not buffer:  # a zero that CasADi did not write, or a result that it does not want
            return np.zeros((self._horizon, port.size))
        return np.frombuffer(buffer).reshape(self._horizon, port.size)

    # ---- derivatives ----

    def _derivative(
        self, name: str, function: Differentiable, takes: Sequence[CallbackMatrix],
        gives: Sequence[CallbackMatrix], inames: Sequence[str], onames: Sequence[str],
    ) -> Any:  # fmt: skip
        made = KernelCallback(name, function, self._horizon, takes, gives, inames, onames)
        self._derived.append(made)
        return made

    def _results(self) -> list[CallbackMatrix]:
        """The results as inputs of a derivative, which does not need them."""
        return [CallbackMatrix(x.pattern, None) for x in self._gives]

    @property
    def _plain(self) -> bool:
        return all(x.pattern.is_dense() and x.port is not None for x in self._gives)

    def has_jacobian(self) -> bool:
        return self._plain

    def get_jacobian(
        self, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any
    ) -> Any:
        by = tuple(range(len(self._function.inputs)))
        function, blocks = self._function.jacobian(by)
        gives: list[CallbackMatrix] = []
        for out in self._gives:
            for x in self._takes:
                if x.port is None:
                    zero = casadi.Sparsity(out.pattern.numel(), x.pattern.numel())
                    gives.append(CallbackMatrix(zero, None))
                else:
                    assert out.port is not None
                    pattern = _repeated(blocks[out.port][x.port], self._horizon)
                    gives.append(CallbackMatrix(pattern, out.port * len(by) + x.port))
        takes = [*self._takes, *self._results()]
        return self._derivative(name, function, takes, gives, inames, onames)

    def has_jac_sparsity(self, oind: int, iind: int) -> bool:
        return self._plain

    def get_jac_sparsity(self, oind: int, iind: int, symmetric: bool) -> Any:
        out, x = self._gives[oind], self._takes[iind]
        if x.port is None or out.port is None:
            return casadi.Sparsity(out.pattern.numel(), x.pattern.numel())
        blocks = self._function.jacobian(tuple(range(len(self._function.inputs))))[1]
        return _repeated(blocks[out.port][x.port], self._horizon)

    def _first_order(self, count: int) -> bool:
        return count == 1 and all(x.port is not None for x in (*self._takes, *self._gives))

    def has_reverse(self, nadj: int) -> bool:
        return self._plain and self._first_order(nadj)

    def get_reverse(
        self, nadj: int, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any
    ) -> Any:
        count = len(self._takes)
        weights = [CallbackMatrix(x.pattern, count + i) for i, x in enumerate(self._gives)]
        function = self._function.adjoint(tuple(range(count)))
        takes = [*self._takes, *self._results(), *weights]
        return self._derivative(name, function, takes, self._takes, inames, onames)

    def has_forward(self, nfwd: int) -> bool:
        return self._plain and self._first_order(nfwd)

    def get_forward(
        self, nfwd: int, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any
    ) -> Any:
        count = len(self._takes)
        ways = [CallbackMatrix(x.pattern, count + i) for i, x in enumerate(self._takes)]
        function = self._function.tangent(tuple(range(count)))
        takes = [*self._takes, *self._results(), *ways]
        return self._derivative(name, function, takes, self._gives, inames, onames)


def _repeated(block: JacobianBlock, horizon: int) -> Any:
    """The pattern of a block, once for each state along the diagonal."""
    lengths = [len(rows) for rows in block.pattern]
    starts = np.concatenate([[0], np.cumsum(lengths * horizon)]).astype(int).tolist()
    own = np.array([k for rows in block.pattern for k in rows], dtype=int)
    rows = (own[None, :] + block.rows * np.arange(horizon)[:, None]).ravel().tolist()
    return casadi.Sparsity(block.rows * horizon, len(lengths) * horizon, starts, rows)
