"""A kernel as a real CPython builtin: a single call costs tens of nanoseconds.

The entry is compiled for the kernel: it checks that every argument is a plain float64 vector of the right length, makes the result,
calls the kernel and returns. Anything else (a batch, a list, an option, a number that is not finite) goes to the Python path, which
converts or raises. The entry leans on the memory layout of CPython's and NumPy's objects; it is tried once on a known function,
and where that fails, or on an interpreter we do not know, the Python path is used for everything.
"""

from __future__ import annotations

import ctypes
import math
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ramify.codegen.compile import compile_text
from ramify.codegen.target import host
from ramify.codegen.vector import number
from ramify.trace.program import Port

_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
_PLAIN = 0x0001 | 0x0100  # C-contiguous, aligned
_ARRAY_NEW = 93  # PyArray_New in NumPy's table of functions
_DOUBLE = 12
UNIT_TOLERANCE = 1e-4  # of a quaternion's squared length; beyond it the Python path looks closer
LOCK_TOLERANCE = 1e-9  # half turns from a lock; within it the Python path looks closer
_ROUND = 1.5 * 2.0**52  # added and taken away again, it rounds to a whole number


_definitions: list[Any] = []


class _MethodDef(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@cache
def _numpy_new() -> int:
    """Address of PyArray_New."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(_multiarray_umath._ARRAY_API, None)
    return int(ctypes.cast(table + 8 * _ARRAY_NEW, ctypes.POINTER(ctypes.c_void_p))[0] or 0)


@dataclass(frozen=True)
class Single:
    """A kernel's function for one state: its address, what it takes after inputs and outputs, and what keeps these alive."""

    address: int
    arguments: tuple[int, ...]
    keep: Any


class Watched(NamedTuple):
    """What a kernel's first input holds: places of quaternions, and angles that lock (place, half turns from zero)."""

    quaternions: Sequence[int] = ()
    locks: Sequence[tuple[int, float]] = ()


def entry_ir(kernel: Single, sizes: Sequence[int], shape: Sequence[int], watched: Watched = Watched()) -> str:
    """LLVM text of the entry for a kernel with inputs of these sizes and one output of this shape.

    A quaternion that is not of unit length, or an angle at a lock, goes to the Python path.
    """
    quaternions = watched.quaternions
    lines: list[str] = []
    add = lines.append
    n = len(sizes)
    dims = ", ".join(f"i64 {d}" for d in shape)
    add(f"@dims = private constant [{len(shape)} x i64] [{dims}]")
    add("define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {")
    add("start:")
    add(f"  %inputs = alloca [{n} x ptr]")
    add("  %outputs = alloca [1 x ptr]")
    add("  %plain = icmp eq ptr %kwnames, null")
    add(f"  %count = icmp eq i64 %nargs, {n}")
    add("  %ok = and i1 %plain, %count")
    add("  br i1 %ok, label %arg0, label %fallback")
    for i, size in enumerate(sizes):

        def field(offset: int, kind: str, what: str, i: int = i) -> str:
            add(f"  %{what}p{i} = getelementptr i8, ptr %a{i}, i64 {offset}")
            add(f"  %{what}{i} = load {kind}, ptr %{what}p{i}")
            return f"%{what}{i}"

        add(f"arg{i}:")
        add(f"  %place{i} = getelementptr ptr, ptr %args, i64 {i}")
        add(f"  %a{i} = load ptr, ptr %place{i}")
        kind = field(8, "i64", "type")
        add(f"  %isarray{i} = icmp eq i64 {kind}, {id(np.ndarray)}")
        add(f"  br i1 %isarray{i}, label %look{i}, label %fallback")
        add(f"look{i}:")
        dimensions, extents = field(24, "i32", "nd"), field(32, "ptr", "dims")
        descriptor, flags = field(56, "i64", "descr"), field(64, "i32", "flags")
        add(f"  %c0{i} = icmp eq i32 {dimensions}, 1")
        add(f"  %c1{i} = icmp eq i64 {descriptor}, {id(np.dtype(np.float64))}")
        add(f"  %masked{i} = and i32 {flags}, {_PLAIN}")
        add(f"  %c2{i} = icmp eq i32 %masked{i}, {_PLAIN}")
        add(f"  %c01{i} = and i1 %c0{i}, %c1{i}")
        add(f"  %c012{i} = and i1 %c01{i}, %c2{i}")
        add(f"  br i1 %c012{i}, label %size{i}, label %fallback")
        add(f"size{i}:")
        add(f"  %extent{i} = load i64, ptr {extents}")
        add(f"  %fits{i} = icmp eq i64 %extent{i}, {size}")
        data = field(16, "ptr", "data")
        add(f"  %slot{i} = getelementptr ptr, ptr %inputs, i64 {i}")
        add(f"  store ptr {data}, ptr %slot{i}")
        add(f"  br i1 %fits{i}, label %{f'arg{i + 1}' if i + 1 < n else 'quaternion0'}, label %fallback")
    for i, place in enumerate(quaternions):
        add(f"quaternion{i}:")
        total = "0.0"
        for c in range(4):
            add(f"  %qp{i}{c} = getelementptr double, ptr %data0, i64 {place + c}")
            add(f"  %q{i}{c} = load double, ptr %qp{i}{c}")
            add(f"  %qq{i}{c} = fmul double %q{i}{c}, %q{i}{c}")
            add(f"  %qs{i}{c} = fadd double {total}, %qq{i}{c}")
            total = f"%qs{i}{c}"
        add(f"  %above{i} = fcmp ogt double {total}, {number(1.0 - UNIT_TOLERANCE)}")
        add(f"  %below{i} = fcmp olt double {total}, {number(1.0 + UNIT_TOLERANCE)}")
        add(f"  %unit{i} = and i1 %above{i}, %below{i}")
        add(f"  br i1 %unit{i}, label %quaternion{i + 1}, label %fallback")
    add(f"quaternion{len(quaternions)}:")
    add("  br label %lock0")
    for i, (place, half_turns) in enumerate(watched.locks):
        add(f"lock{i}:")
        add(f"  %lp{i} = getelementptr double, ptr %data0, i64 {place}")
        add(f"  %angle{i} = load double, ptr %lp{i}")
        add(f"  %scaled{i} = fmul double %angle{i}, {number(1.0 / math.pi)}")
        add(f"  %turns{i} = fsub double %scaled{i}, {number(half_turns)}")
        add(f"  %raised{i} = fadd double %turns{i}, {number(_ROUND)}")
        add(f"  %whole{i} = fsub double %raised{i}, {number(_ROUND)}")
        add(f"  %left{i} = fsub double %turns{i}, %whole{i}")
        add(f"  %over{i} = fcmp ogt double %left{i}, {number(LOCK_TOLERANCE)}")
        add(f"  %under{i} = fcmp olt double %left{i}, {number(-LOCK_TOLERANCE)}")
        add(f"  %apart{i} = or i1 %over{i}, %under{i}")
        add(f"  br i1 %apart{i}, label %lock{i + 1}, label %fallback")
    add(f"lock{len(watched.locks)}:")
    add("  br label %make")
    new, decref = _numpy_new(), _address(ctypes.pythonapi.Py_DecRef)
    vectorcall = _address(ctypes.pythonapi.PyObject_Vectorcall)
    add("make:")
    add(
        f"  %out = call ptr inttoptr (i64 {new} to ptr)(ptr inttoptr (i64 {id(np.ndarray)} to ptr), i32 {len(shape)}, ptr @dims, "
        f"i32 {_DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)"
    )
    add("  %failed = icmp eq ptr %out, null")
    add("  br i1 %failed, label %give, label %compute")
    add("compute:")
    add("  %outdata = getelementptr i8, ptr %out, i64 16")
    add("  %memory = load ptr, ptr %outdata")
    add("  store ptr %memory, ptr %outputs")
    further = "".join(f", ptr inttoptr (i64 {x} to ptr)" for x in kernel.arguments)
    add(f"  %found = call i64 inttoptr (i64 {kernel.address} to ptr)(i64 1, ptr %inputs, ptr %outputs{further})")
    add("  %clean = icmp eq i64 %found, 0")
    add("  br i1 %clean, label %give, label %drop")
    add("give:")
    add("  ret ptr %out")
    add("drop:")
    add(f"  call void inttoptr (i64 {decref} to ptr)(ptr %out)")
    add("  br label %fallback")
    add("fallback:")
    add(f"  %answer = call ptr inttoptr (i64 {vectorcall} to ptr)(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)")
    add("  ret ptr %answer")
    add("}")
    return "\n".join(lines)


class _Holder:
    """The Python path of a builtin, holding everything its code needs."""

    def __init__(self, fallback: Callable[..., Any], keep: tuple[Any, ...]) -> None:
        self._fallback = fallback
        self.keep: list[Any] = [keep]

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._fallback(*args, **options)


def _builtin(
    kernel: Single, sizes: Sequence[int], shape: Sequence[int], fallback: Callable[..., Any], watched: Watched = Watched()
) -> Callable[..., Any]:
    entry = compile_text(entry_ir(kernel, sizes, shape, watched), "entry", host().with_width(1))
    definition = _MethodDef(b"kernel", entry.address, _METH_FASTCALL_KEYWORDS, None)
    _definitions.append(definition)  # a builtin may outlive everything else that knows it
    holder = _Holder(fallback, (kernel, entry))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), holder, None)  # type: ignore[no-any-return]


@cache
def layout_is_known() -> bool:
    """Whether objects lie in memory as the entry expects: known interpreter, and a trial call that copies numbers."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED") or object.__basicsize__ != 16:
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.platform == "win32":
        return False
    try:
        return _trial()
    except (AttributeError, ImportError, OSError, RuntimeError, TypeError, ValueError):
        return False


def _trial() -> bool:
    """A builtin that copies two numbers: right results, right refusals, no lost references."""
    x = np.array([1.5, -2.5])
    header = (ctypes.c_int64 * 9).from_address(id(x))
    if header[1] != id(np.ndarray) or header[2] != x.ctypes.data or header[7] != id(x.dtype):
        return False
    if ctypes.c_int.from_address(id(x) + 24).value != 1 or ctypes.c_int.from_address(id(x) + 64).value & _PLAIN != _PLAIN:
        return False
    text = (
        "define i64 @copy(i64 %n, ptr %i, ptr %o) {\n  %a = load ptr, ptr %i\n  %b = load ptr, ptr %o\n"
        "  %v = load <2 x double>, ptr %a, align 8\n  store <2 x double> %v, ptr %b, align 8\n  ret i64 0\n}\n"
    )
    copy = compile_text(text, "copy", host().with_width(1))
    entry = _builtin(Single(copy.address, (), copy), (2,), (2,), lambda *args, **options: (args, options))
    before = sys.getrefcount(x)
    y = entry(x)
    sound = isinstance(y, np.ndarray) and y.dtype == np.float64 and y.shape == (2,) and (y == x).all() and sys.getrefcount(y) == 2
    refused = [entry(x[None]), entry(x.astype(np.float32)), entry([1.5, -2.5]), entry(x, x), entry(x[::-1])]
    return (
        bool(sound)
        and all(isinstance(r, tuple) for r in refused)
        and entry(x, out=1)[1] == {"out": 1}
        and sys.getrefcount(x) <= before + 4
    )


def builtin_entry(
    kernel: Single, inputs: Sequence[Port], output: Port, fallback: Callable[..., Any], watched: Watched = Watched()
) -> Callable[..., Any]:
    """The fastest way to call a kernel with single states; ``fallback`` takes what it does not."""
    if any(len(p.shape) != 1 for p in inputs) or not output.shape or not layout_is_known():
        return fallback
    return _builtin(kernel, [p.size for p in inputs], output.shape, fallback, watched)
