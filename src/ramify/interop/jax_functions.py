"""Functions of a robot for JAX.

One primitive calls a compiled program; its derivatives are calls of the tangent program, whose
transpose is the adjoint program. On the CPU XLA calls the kernel without Python in between; on
other platforms, or with ``trace=True``, JAX computes what the program says, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ramify.core.errors import RamifyError, StateError
from ramify.interop.differentiable import Differentiable, foreign
from ramify.interop.xla_handler import XlaHandler
from ramify.runtime.target import llvm_available
from ramify.trace.interpret import replay
from ramify.trace.program import Port, trace

_call: Final = Primitive("ramify")
_call.multiple_results = True
_handlers: Final[dict[str, XlaHandler]] = {}
"""Handlers by the names under which XLA knows them, kept as long as the process lives."""


def make(function: Differentiable, trace: bool = False) -> Callable[..., Any]:
    """f(*inputs) for JAX: arrays (..., shape of the input), whose batches broadcast."""

    def call(*inputs: Any) -> Any:
        arrays = _arrays(function, inputs, exact=not trace)
        found = _replayed(function, arrays) if trace else _call.bind(*arrays, function=function)
        return found[0] if len(found) == 1 else tuple.__new__(function.answer, found)

    call.__name__ = call.__qualname__ = function.name
    call.__doc__ = function.doc
    return call


def _arrays(function: Differentiable, inputs: Sequence[Any], exact: bool) -> list[Any]:
    """The inputs as arrays of one batch."""
    if exact and not jax.config.jax_enable_x64:
        raise RamifyError(
            f"{function.name}: kernels compute with float64, which JAX has switched off; call "
            'jax.config.update("jax_enable_x64", True) first, or ask with trace=True'
        )
    if len(inputs) != len(function.inputs):
        names = ", ".join(p.name for p in function.inputs)
        raise StateError(
            f"{function.name} takes {len(function.inputs)} arrays ({names}); it was given "
            f"{len(inputs)}"
        )
    arrays = []
    for x, port in zip(inputs, function.inputs, strict=True):
        a = jnp.asarray(foreign(f"{function.name}: {port.name}", x, jax.Array))
        if jnp.iscomplexobj(a):
            raise StateError(f"{function.name}: {port.name} must be real; it holds {a.dtype}")
        a = a.astype(float)
        arrays.append(a)
        if a.shape[a.ndim - len(port.shape) :] != port.shape or a.ndim < len(port.shape):
            want = ", ".join(["...", *map(str, port.shape)])
            raise StateError(f"{function.name}: {port.name} has shape {a.shape}; needed: ({want})")
    leads = [_lead(a, p) for a, p in zip(arrays, function.inputs, strict=True)]
    if all(lead == leads[0] for lead in leads):
        return arrays
    try:
        lead = np.broadcast_shapes(*leads)
    except ValueError:
        raise StateError(f"{function.name}: the batches do not fit together: {leads}") from None
    return [
        jnp.broadcast_to(a, (*lead, *p.shape)) for a, p in zip(arrays, function.inputs, strict=True)
    ]


def _lead(a: Any, port: Port) -> tuple[int, ...]:
    return tuple(a.shape[: a.ndim - len(port.shape)])


def _replayed(function: Differentiable, arrays: Sequence[Any]) -> list[Any]:
    """What the program says, in operations of JAX."""
    lead = _lead(arrays[0], function.inputs[0])
    flat = [jnp.reshape(a, (*lead, p.size)) for a, p in zip(arrays, function.inputs, strict=True)]
    values = replay(function.program, [[x[..., j] for j in range(x.shape[-1])] for x in flat])
    found = []
    for port, nodes in zip(function.outputs, function.program.results, strict=True):
        columns = [jnp.broadcast_to(jnp.asarray(values[node], dtype=float), lead) for node in nodes]
        found.append(jnp.reshape(jnp.stack(columns, axis=-1), (*lead, *port.shape)))
    return found


# ---- the rules of the primitive ----


@_call.def_abstract_eval
def _shapes(*avals: Any, function: Differentiable) -> list[Any]:
    lead = _lead(avals[0], function.inputs[0])
    return [jax.core.ShapedArray((*lead, *p.shape), np.dtype(float)) for p in function.outputs]


@cache
def _jitted(function: Differentiable) -> Callable[..., Any]:
    return jax.jit(lambda *arrays: _call.bind(*arrays, function=function))


@_call.def_impl
def _eager(*arrays: Any, function: Differentiable) -> Any:
    return _jitted(function)(*arrays)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], function: Differentiable) -> Any:
    along = tuple(i for i, t in enumerate(tangents) if type(t) is not ad.Zero)
    values = _call.bind(*primals, function=function)
    ways = [ad.instantiate_zeros(tangents[i]) for i in along]
    return values, _call.bind(*primals, *ways, function=function.tangent(along))


def _transpose(weights: Sequence[Any], *args: Any, function: Differentiable) -> list[Any]:
    """A tangent is linear in its directions; its transpose is the adjoint."""
    if function.tangent_of is None:
        raise NotImplementedError(f"{function.name} is not linear in its inputs")
    of, along = function.tangent_of
    inputs = args[: len(of.inputs)]
    wanted = [i for i, x in enumerate(args[len(of.inputs) :]) if ad.is_undefined_primal(x)]
    lead = _lead(inputs[0], of.inputs[0])
    seeds = [
        jnp.zeros((*lead, *p.shape)) if type(w) is ad.Zero else w
        for w, p in zip(weights, of.outputs, strict=True)
    ]
    found = _call.bind(*inputs, *seeds, function=of.adjoint(tuple(along[i] for i in wanted)))
    out: list[Any] = [None] * len(args)
    for i, slope in zip(wanted, found, strict=True):
        out[len(of.inputs) + i] = slope
    return out


def _batched(args: Sequence[Any], axes: Sequence[Any], function: Differentiable) -> Any:
    """A batch of batches is a batch: the new axis leads."""
    size = next(a.shape[k] for a, k in zip(args, axes, strict=True) if k is not None)
    moved = [
        jnp.broadcast_to(a, (size, *a.shape)) if k is None else jnp.moveaxis(a, k, 0)
        for a, k in zip(args, axes, strict=True)
    ]
    found = _call.bind(*moved, function=function)
    return found, [0] * len(found)


def _lower_on_cpu(context: Any, *operands: Any, function: Differentiable) -> Any:
    if not llvm_available() or not _handlers_work():
        return _lower_through_python(context, *operands, function=function)
    return jax.ffi.ffi_lowering(_target(function))(context, *operands)


def _target(function: Differentiable) -> str:
    """The name under which XLA knows the handler of a function."""
    name = f"ramify_{function.name}_{function.key}"
    if name not in _handlers:
        handler = XlaHandler(function)
        jax.ffi.register_ffi_target(name, handler.capsule, platform="cpu", api_version=1)
        _handlers[name] = handler
    return name


def _through_python(*arrays: Any, function: Differentiable) -> Any:
    lead = _lead(arrays[0], function.inputs[0])

    def host(*given: Any) -> list[Any]:
        rows = [
            np.ascontiguousarray(x, dtype=np.float64).reshape(-1, p.size)
            for x, p in zip(given, function.inputs, strict=True)
        ]
        found = function.rows(rows)
        return [a.reshape(*lead, *p.shape) for a, p in zip(found, function.outputs, strict=True)]

    shapes = [jax.ShapeDtypeStruct((*lead, *p.shape), float) for p in function.outputs]
    return jax.pure_callback(host, shapes, *arrays)


_lower_through_python: Final = mlir.lower_fun(_through_python, multiple_results=True)

ad.primitive_jvps[_call] = _jvp
ad.primitive_transposes[_call] = _transpose
batching.primitive_batchers[_call] = _batched
mlir.register_lowering(_call, _lower_on_cpu, platform="cpu")
mlir.register_lowering(
    _call,
    mlir.lower_fun(lambda *arrays, function: _replayed(function, arrays), multiple_results=True),
)


@cache
def _handlers_work() -> bool:
    """Whether XLA's frames are as we read them: a trial with a function that is known."""
    ports = [Port("x", (2,)), Port("y", ())], [Port("a", (2,)), Port("b", ())]
    made = trace("trial", lambda x, y: [[x[0] * y[0], x[1] + y[0]], [x[0] - x[1]]], *ports)
    function = Differentiable("trial", lambda: made, lambda: made.digest, *ports)
    try:
        call = jax.jit(jax.ffi.ffi_call(_target(function), _shapes_of(function, (3,))))
        a, b = call(np.array([[1.0, 2.0], [3.0, 5.0], [7.0, 4.0]]), np.array([2.0, 3.0, 4.0]))
        return np.asarray(a).tolist() == [[2.0, 4.0], [9.0, 8.0], [28.0, 8.0]] and np.asarray(
            b
        ).tolist() == [-1.0, -2.0, 3.0]
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return False


def _shapes_of(function: Differentiable, lead: tuple[int, ...]) -> list[Any]:
    return [jax.ShapeDtypeStruct((*lead, *p.shape), float) for p in function.outputs]
