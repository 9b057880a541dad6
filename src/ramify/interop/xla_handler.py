"""A compiled function as a handler of XLA's foreign function interface: called without Python.

XLA hands over a frame with the buffers of arguments and results; the handler reads their addresses,
calls the kernel and returns null, or an error that XLA raises in Python. The frame's layout is that
of XLA's stable C interface, version 0.x; ``ramify.interop.jax_functions`` tries it once on a known
function and otherwise calls through Python.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from ramify.emit.guards import HUGE_ANGLE
from ramify.emit.writer import Lines
from ramify.interop.differentiable import TOO_LARGE, Differentiable
from ramify.runtime.compile import Compiled, Compute, compile_text
from ramify.runtime.target import host

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


class _HandlerWriter(Lines):
    def read(self, base: str, offset: int, kind: str = "ptr") -> str:
        return self.put(f"load {kind}, ptr {self.at(base, offset, 'i8')}")

    def write(self, base: str, offset: int, value: int | str, kind: str = "i32") -> None:
        self.do(f"store {kind} {value}, ptr {self.at(base, offset, 'i8')}")

    def end(self, value: str = "null") -> None:
        self.do(f"ret ptr {value}")


def handler_ir(function: Differentiable, single: Compute, wide: Compute, width: int) -> str:
    """LLVM text of the handler: batches of at least ``width`` states go to the wide kernel."""
    n_in, n_out = len(function.inputs), len(function.outputs)
    messages = {
        "shapes": f"the arguments are not {n_in} arrays of float64",
        "angle": TOO_LARGE,
    }
    w = _HandlerWriter()
    w.do(f"%inputs = alloca ptr, i64 {max(n_in, 1)}")
    w.do(f"%outputs = alloca ptr, i64 {max(n_out, 1)}")
    w.do("%problem = alloca { i64, ptr, ptr, i32 }")
    w.do("%states.at = alloca i64")
    extension = w.read("%frame", _EXTENSION)
    w.leave_if(w.equal(extension, "null", "ptr"), "stage")
    w.leave_unless(w.equal(w.read(extension, 8, "i32"), 1, "i32"), "stage")
    data = w.read(extension, 24)  # what it is to say about itself: its version, and no traits
    for offset, value in ((24, _VERSION[0]), (28, _VERSION[1]), (32, 0)):
        w.write(data, offset, value)
    w.write(data, 40, 0, "i64")
    w.end()
    w.label("stage")
    w.fork(w.equal(w.read("%frame", _STAGE, "i32"), _EXECUTE, "i32"), "execute", "done")
    w.label("done")
    w.end()
    w.label("execute")
    for table, count in ((_ARGS, n_in), (_RETS, n_out)):
        w.leave_unless(w.equal(w.read("%frame", table + _COUNT, "i64"), count), "shapes")
    buffers: list[str] = []
    for table, count, to in ((_ARGS, n_in, "%inputs"), (_RETS, n_out, "%outputs")):
        listed = w.read("%frame", table + _LIST)
        for i in range(count):
            buffers.append(w.read(listed, 8 * i))
            w.leave_unless(w.equal(w.read(buffers[-1], _DTYPE, "i32"), _F64, "i32"), "shapes")
            w.write(to, 8 * i, w.read(buffers[-1], _DATA), "ptr")
    # the states are the product of the leading dimensions of the first argument
    dims = w.read(buffers[0], _DIMS)
    lead = w.sub(w.read(buffers[0], _RANK, "i64"), len(function.inputs[0].shape))
    w.write("%states.at", 0, 1, "i64")

    def times(k: str) -> None:
        states = w.mul(w.read("%states.at", 0, "i64"), w.item(dims, k, "i64"))
        w.write("%states.at", 0, states, "i64")

    w.count(times, "0", lead)
    states = w.read("%states.at", 0, "i64")
    w.leave_if(w.equal(states, 0), "done")
    address = w.choose(w.test("sge", states, width), wide.address, single.address)
    kernel = w.put(f"inttoptr i64 {address} to ptr")
    flags = w.put(f"call i64 {kernel}(i64 {states}, ptr %inputs, ptr %outputs)")
    huge = w.test("ne", w.put(f"and i64 {flags}, {HUGE_ANGLE}"), 0)
    w.fork(huge, "angle", "done")
    for label in messages:
        w.label(label)
        w.write("%problem", 0, 32, "i64")
        w.write("%problem", 8, "null", "ptr")
        w.write("%problem", 16, f"@{label}", "ptr")
        w.write("%problem", 24, _INVALID_ARGUMENT)
        create = w.read(w.read("%frame", _API), _ERROR_CREATE)
        w.end(w.put(f"call ptr {create}(ptr %problem)"))
    texts = {key: f"ramify {function.name}: {text}" for key, text in messages.items()}
    constants = [
        f'@{key} = private constant [{len(text.encode()) + 1} x i8] c"{_quoted(text)}\\00"'
        for key, text in texts.items()
    ]
    head = "define ptr @handler(ptr %frame) {"
    return "\n".join([*constants, head, "entry:", *w.lines, "}", ""])


def _quoted(text: str) -> str:
    return "".join(
        chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02x}" for b in text.encode()
    )
