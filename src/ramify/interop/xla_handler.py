"""A compiled function as a handler of XLA's foreign function interface: called without Python.

XLA hands over a frame with the buffers of arguments and results; the handler reads their addresses,
calls the kernel and returns null, or an error that XLA raises in Python. The frame's layout is that
of XLA's stable C interface, version 0.x; ``ramify.interop.jax_functions`` tries it once on a known
function and otherwise calls through Python.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from ramify.codegen.compile import Compiled, Compute, compile_text
from ramify.codegen.guards import HUGE_ANGLE
from ramify.codegen.target import host
from ramify.interop.differentiable import TOO_LARGE, Differentiable

_VERSION: Final = (0, 3)
_EXECUTE: Final = 3
_F64: Final = 12
_INVALID_ARGUMENT: Final = 3
# offsets: in a frame, in its arguments and results, in a buffer, in the table of functions
_EXTENSION, _API, _STAGE, _ARGS, _RETS = 8, 16, 32, 40, 80
_COUNT, _LIST = 16, 32
_DTYPE, _DATA, _RANK, _DIMS = 16, 24, 32, 40
_ERROR_CREATE: Final = 48


class XlaHandler:
    """The handler of a function; ``capsule`` is what JAX registers."""

    def __init__(self, function: Differentiable) -> None:
        width = host().width
        single, wide = (function.code.function(w) for w in (1, width))
        self._code: Compiled = compile_text(
            handler_ir(function, single, wide, width), "handler", host().with_width(1)
        )
        self._keep = single, wide
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule: Any = new(self._code.address, b"xla._CUSTOM_CALL_TARGET", None)


def handler_ir(function: Differentiable, single: Compute, wide: Compute, width: int) -> str:
    """LLVM text of the handler: batches of at least ``width`` states go to the wide kernel."""
    n_in, n_out = len(function.inputs), len(function.outputs)
    what = f"ramify {function.name}"
    messages = {
        "shapes": f"{what}: the arguments are not {n_in} arrays of float64",
        "angle": f"{what}: {TOO_LARGE}",
    }
    out = [
        f'@{key} = private constant [{len(text.encode()) + 1} x i8] c"{_quoted(text)}\\00"'
        for key, text in messages.items()
    ]
    lead_rank = len(function.inputs[0].shape)
    out += [
        "define ptr @handler(ptr %frame) {",
        "entry:",
        f"  %inputs = alloca ptr, i64 {max(n_in, 1)}",
        f"  %outputs = alloca ptr, i64 {max(n_out, 1)}",
        "  %problem = alloca { i64, ptr, ptr, i32 }",
        *_load("extension", "ptr", "%frame", _EXTENSION),
        "  %asked = icmp ne ptr %extension, null",
        "  br i1 %asked, label %metadata, label %stage",
        "metadata:",
        *_load("kind", "i32", "%extension", 8),
        "  %about = icmp eq i32 %kind, 1",
        "  br i1 %about, label %version, label %stage",
        "version:",
        *_load("data", "ptr", "%extension", 24),
        *_store("i32", str(_VERSION[0]), "%data", 24),
        *_store("i32", str(_VERSION[1]), "%data", 28),
        *_store("i32", "0", "%data", 32),
        *_store("i64", "0", "%data", 40),
        "  ret ptr null",
        "stage:",
        *_load("now", "i32", "%frame", _STAGE),
        f"  %work = icmp eq i32 %now, {_EXECUTE}",
        "  br i1 %work, label %execute, label %done",
        "done:",
        "  ret ptr null",
        "execute:",
        *_load("given", "i64", "%frame", _ARGS + _COUNT),
        *_load("wanted", "i64", "%frame", _RETS + _COUNT),
        f"  %count_in = icmp eq i64 %given, {n_in}",
        f"  %count_out = icmp eq i64 %wanted, {n_out}",
        "  %counts = and i1 %count_in, %count_out",
        "  br i1 %counts, label %buffers, label %bad_shapes",
        "buffers:",
        *_load("args", "ptr", "%frame", _ARGS + _LIST),
        *_load("rets", "ptr", "%frame", _RETS + _LIST),
    ]
    right = []
    for kind, count, table in (("args", n_in, "inputs"), ("rets", n_out, "outputs")):
        for i in range(count):
            b = f"{kind}{i}"
            out += [
                *_load(b, "ptr", f"%{kind}", 8 * i),
                *_load(f"{b}.type", "i32", f"%{b}", _DTYPE),
                f"  %{b}.right = icmp eq i32 %{b}.type, {_F64}",
                *_load(f"{b}.data", "ptr", f"%{b}", _DATA),
                *_store("ptr", f"%{b}.data", f"%{table}", 8 * i),
            ]
            right.append(f"%{b}.right")
    total = right[0]
    for k, flag in enumerate(right[1:]):
        out.append(f"  %all{k} = and i1 {total}, {flag}")
        total = f"%all{k}"
    out += [
        f"  br i1 {total}, label %sizes, label %bad_shapes",
        "sizes:",  # the states are the product of the leading dimensions of the first argument
        *_load("rank", "i64", "%args0", _RANK),
        *_load("dims", "ptr", "%args0", _DIMS),
        f"  %lead = sub i64 %rank, {lead_rank}",
        "  br label %product",
        "product:",
        "  %k = phi i64 [0, %sizes], [%k.next, %factor]",
        "  %states = phi i64 [1, %sizes], [%states.next, %factor]",
        "  %left = icmp slt i64 %k, %lead",
        "  br i1 %left, label %factor, label %known",
        "factor:",
        "  %dim.at = getelementptr i64, ptr %dims, i64 %k",
        "  %dim = load i64, ptr %dim.at",
        "  %states.next = mul i64 %states, %dim",
        "  %k.next = add i64 %k, 1",
        "  br label %product",
        "known:",
        "  %none = icmp eq i64 %states, 0",
        "  br i1 %none, label %done, label %some",
        "some:",
        f"  %many = icmp sge i64 %states, {width}",
        f"  %address = select i1 %many, i64 {wide.address}, i64 {single.address}",
        "  %kernel = inttoptr i64 %address to ptr",
        "  %flags = call i64 %kernel(i64 %states, ptr %inputs, ptr %outputs)",
        f"  %angle.bit = and i64 %flags, {HUGE_ANGLE}",
        "  %huge = icmp ne i64 %angle.bit, 0",
        "  br i1 %huge, label %bad_angle, label %done",
        *(f"bad_{key}:\n  br label %fail" for key in messages),
        "fail:",
        f"  %text = phi ptr {', '.join(f'[@{key}, %bad_{key}]' for key in messages)}",
        *_store("i64", "32", "%problem", 0),
        *_store("ptr", "null", "%problem", 8),
        *_store("ptr", "%text", "%problem", 16),
        *_store("i32", str(_INVALID_ARGUMENT), "%problem", 24),
        *_load("api", "ptr", "%frame", _API),
        *_load("create", "ptr", "%api", _ERROR_CREATE),
        "  %error = call ptr %create(ptr %problem)",
        "  ret ptr %error",
        "}",
    ]
    return "\n".join([*out, ""])


def _load(name: str, kind: str, base: str, offset: int) -> list[str]:
    return [
        f"  %{name}.at = getelementptr i8, ptr {base}, i64 {offset}",
        f"  %{name} = load {kind}, ptr %{name}.at",
    ]


_stores = iter(range(1 << 62))


def _store(kind: str, value: str, base: str, offset: int) -> list[str]:
    place = f"%to{next(_stores)}"
    return [
        f"  {place} = getelementptr i8, ptr {base}, i64 {offset}",
        f"  store {kind} {value}, ptr {place}",
    ]


def _quoted(text: str) -> str:
    return "".join(
        chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02x}" for b in text.encode()
    )
