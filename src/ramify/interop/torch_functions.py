"""Functions of a robot for PyTorch, on the CPU and without copies.

Two ways lead to a kernel: an ``autograd.Function`` for eager code and ``torch.func``, and an
operator that ``torch.compile`` takes as it is. Both differentiate by calling the adjoint (or
tangent) program, which is a function of the same kind, so that there are derivatives of any order.
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
        tensors = [x.expand(*lead, *shape) for x, (_, shape) in zip(tensors, shapes, strict=True)]
        if torch.compiler.is_compiling():
            found = _operator(key, tensors)
        else:
            found = TorchCall.apply(function, *tensors)
        return found[0] if len(found) == 1 else tuple.__new__(answer, found)

    call.__name__ = call.__qualname__ = name
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
        torch.from_numpy(a).reshape(*lead, *p.shape)
        for a, p in zip(found, function.outputs, strict=True)
    )


def _lead(function: Differentiable, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    x = tensors[0]
    return tuple(x.shape[: x.dim() - len(function.inputs[0].shape)])


def _zeros(function: Differentiable, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors of the shapes of the results."""
    lead = _lead(function, tensors)
    return [torch.zeros((*lead, *p.shape), dtype=torch.float64) for p in function.outputs]


class TorchCall(torch.autograd.Function):
    """The kernel for eager code and ``torch.func``."""

    @staticmethod
    def forward(function: Differentiable, *tensors: Tensor) -> tuple[Tensor, ...]:
        return _computed(function, tensors)

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


def _in_place(found: Sequence[Any], by: Sequence[int], count: int) -> list[Any]:
    out: list[Any] = [None] * count
    for i, slope in zip(by, found, strict=True):
        out[i] = slope
    return out


# ---- for torch.compile ----


@torch.library.custom_op("ramify::call", mutates_args=())
def _operator(key: str, tensors: list[Tensor]) -> list[Tensor]:
    return list(_computed(_known[key], tensors))


@_operator.register_fake
def _fake(key: str, tensors: list[Tensor]) -> list[Tensor]:
    return _zeros(_known[key], tensors)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.key, tensors = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, weights: Sequence[Tensor | None]) -> Any:
    function, tensors = _known[ctx.key], list(ctx.saved_tensors)
    by = tuple(range(len(tensors)))
    given = [
        zero if w is None else w for w, zero in zip(weights, _zeros(function, tensors), strict=True)
    ]
    return None, _operator(_register(function.adjoint(by)), [*tensors, *given])


_operator.register_autograd(_backward, setup_context=_save)
