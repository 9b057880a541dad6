"""Functions of a robot for PyTorch, on the CPU and without copies.

An ``autograd.Function`` differentiates by calling the adjoint (or tangent) program, which is a
function of the same kind, so that there are derivatives of any order. ``torch.compile`` traces it
down to calls of one operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from ramify.core.errors import StateError
from ramify.interop.differentiable import Differentiable, foreign

_known: Final[dict[str, Differentiable]] = {}
"""Functions that compiled code calls, by key; kept as long as the process lives."""


def make(function: Differentiable) -> Callable[..., Any]:
    """f(*inputs) for PyTorch: CPU tensors (..., shape of the input), whose batches broadcast;
    others than float64 are converted.
    """
    name, answer = function.name, function.answer
    shapes = [(port.name, port.shape) for port in function.inputs]
    key = _register(function)

    def call(*inputs: Any) -> Any:
        if len(inputs) != len(shapes):
            names = ", ".join(port for port, _ in shapes)
            raise StateError(
                f"{name} takes {len(shapes)} tensors ({names}); it was given {len(inputs)}"
            )
        tensors, leads = [], []
        for x, (port, shape) in zip(inputs, shapes, strict=True):
            x = torch.as_tensor(foreign(f"{name}: {port}", x, Tensor))
            if x.is_complex():
                raise StateError(f"{name}: {port} must be real; it holds {x.dtype}")
            if x.device.type != "cpu":
                raise StateError(f"{name}: {port} is on {x.device}; move it to the CPU")
            at = x.dim() - len(shape)
            if at < 0 or tuple(x.shape[at:]) != shape:
                want = ", ".join(["...", *map(str, shape)])
                raise StateError(f"{name}: {port} has shape {tuple(x.shape)}; needed: ({want})")
            tensors.append(x.to(torch.float64))
            leads.append(x.shape[:at])
        try:
            lead = torch.broadcast_shapes(*leads)
        except RuntimeError:
            fit = ", ".join(str(tuple(one)) for one in leads)
            raise StateError(f"{name}: the batches do not fit together: {fit}") from None
        tensors = [x.expand((*lead, *shape)) for x, (_, shape) in zip(tensors, shapes, strict=True)]
        if torch.compiler.is_compiling():
            found = _in_graph(key, *tensors)
        else:
            found = TorchCall.apply(function, *tensors)
        return found[0] if len(found) == 1 else tuple.__new__(answer, found)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.doc
    return call


def _register(function: Differentiable) -> str:
    _known.setdefault(function.key, function)
    return function.key


def _computed(function: Differentiable, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The kernel's answer: the memory of the tensors is read and written as it is."""
    lead = _lead(function, tensors)
    states = math.prod(lead)
    rows = [
        np.ascontiguousarray(x.detach().numpy()).reshape(states, p.size)
        for x, p in zip(tensors, function.inputs, strict=True)
    ]
    found = function.rows(rows)
    return tuple(
        torch.from_numpy(a).reshape((*lead, *p.shape))
        for a, p in zip(found, function.outputs, strict=True)
    )


def _lead(function: Differentiable, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    x = tensors[0]
    return tuple(x.shape[: x.dim() - len(function.inputs[0].shape)])


class TorchCall(torch.autograd.Function):
    """The kernel for eager code and ``torch.func``."""

    @staticmethod
    def forward(function: Differentiable, *tensors: Tensor) -> tuple[Tensor, ...]:
        if all(type(x) is Tensor for x in tensors):
            return _computed(function, tensors)
        return tuple(_operator(_register(function), list(tensors)))  # traced, without numbers

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *weights: Tensor) -> Any:
        by = tuple(i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed)
        found = TorchCall.apply(ctx.function.adjoint(by), *ctx.saved_tensors, *weights)
        return None, *_in_place(found, by, len(ctx.function.inputs))

    @staticmethod
    def jvp(ctx: Any, _: None, *directions: Tensor | None) -> Any:
        along = tuple(i for i, d in enumerate(directions) if d is not None)
        ways = [directions[i] for i in along]
        return TorchCall.apply(ctx.function.tangent(along), *ctx.saved_tensors, *ways)

    @staticmethod
    def vmap(info: Any, in_dims: Any, function: Differentiable, *tensors: Tensor) -> Any:
        moved = [
            x.unsqueeze(0).expand(info.batch_size, *x.shape) if k is None else x.movedim(k, 0)
            for x, k in zip(tensors, in_dims[1:], strict=True)
        ]
        found = TorchCall.apply(function, *moved)
        return found, (0,) * len(found)


def _in_place(slopes: Sequence[Any], by: Sequence[int], count: int) -> list[Any]:
    out: list[Any] = [None] * count
    for i, slope in zip(by, slopes, strict=True):
        out[i] = slope
    return out


# ---- for torch.compile ----


@torch.compiler.allow_in_graph
def _in_graph(key: str, *tensors: Tensor) -> tuple[Tensor, ...]:
    """A call that the compiler looks into only after the transforms of ``torch.func``."""
    return TorchCall.apply(_known[key], *tensors)


@torch.library.custom_op("ramify::call", mutates_args=())
def _operator(key: str, tensors: list[Tensor]) -> list[Tensor]:
    return list(_computed(_known[key], tensors))


@_operator.register_fake
def _fake(key: str, tensors: list[Tensor]) -> list[Tensor]:
    function = _known[key]
    lead = _lead(function, tensors)
    return [torch.empty((*lead, *p.shape), dtype=torch.float64) for p in function.outputs]
