"""A kernel as a real CPython builtin: a single call costs tens of nanoseconds.

The entry (``ramify.codegen.entry``) is compiled for the kernel: it checks that every argument is a
plain float64 array of the right shape, makes the result, calls the kernel and returns. Anything
else (a batch, a list, an option, a number that is not finite) goes to the Python path, which
converts or raises. The entry leans on the memory layout of CPython's and NumPy's objects; it is
tried once on a known function, and where that fails, or on an interpreter we do not know, the
Python path is used for everything.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ramify.codegen.compile import compile_text
from ramify.codegen.entry import PLAIN, Batch, Compute, Locks, Python, entry_ir
from ramify.codegen.target import host
from ramify.trace.program import Port

_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
_ARRAY_NEW = 93  # PyArray_New in NumPy's table of functions

_definitions: list[Any] = []


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@cache
def _python() -> Python:
    """Where the interpreter and NumPy keep what the entry calls."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(_multiarray_umath._ARRAY_API, None)
    new = int(ctypes.cast(table + 8 * _ARRAY_NEW, ctypes.POINTER(ctypes.c_void_p))[0] or 0)
    api = ctypes.pythonapi
    calls = (
        api.PyObject_Vectorcall,
        api.Py_DecRef,
        api.PyEval_SaveThread,
        api.PyEval_RestoreThread,
    )
    return Python(id(np.ndarray), id(np.dtype(np.float64)), new, *map(_address, calls))


class _Holder:
    """The Python path of a builtin, holding everything its code needs."""

    def __init__(self, fallback: Callable[..., Any], keep: tuple[Any, ...]) -> None:
        self._fallback = fallback
        self.keep: list[Any] = [keep]

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._fallback(*args, **options)


def _builtin(
    single: Compute | None,
    batch: Batch | None,
    sizes: Sequence[int],
    shape: Sequence[int],
    fallback: Callable[..., Any],
    locks: Locks,
) -> Callable[..., Any]:
    text = entry_ir(single, batch, sizes, shape, locks, _python())
    entry = compile_text(text, "entry", host().with_width(1))
    definition = _MethodDef(b"kernel", entry.address, _METH_FASTCALL_KEYWORDS, None)
    _definitions.append(definition)  # a builtin may outlive everything else that knows it
    holder = _Holder(fallback, (single, batch, entry))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p],
    )
    found: Callable[..., Any] = make(ctypes.addressof(definition), holder, None)
    return found


@cache
def layout_is_known() -> bool:
    """Whether objects lie in memory as the entry expects: known interpreter, and a trial call that
    copies numbers.
    """
    if (
        sys.implementation.name != "cpython"
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or object.__basicsize__ != 16
    ):
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
    if (
        ctypes.c_int.from_address(id(x) + 24).value != 1
        or ctypes.c_int.from_address(id(x) + 64).value & PLAIN != PLAIN
    ):
        return False
    text = (
        "define i64 @copy(i64 %n, ptr %i, ptr %o) {\n  %a = load ptr, ptr %i\n  %b = load ptr, ptr "
        "%o\n"
        "  %v = load <2 x double>, ptr %a, align 8\n  store <2 x double> %v, ptr %b, align 8\n  "
        "ret i64 0\n}\n"
    )
    copy = compile_text(text, "copy", host().with_width(1))
    compute = Compute(copy.address, (), copy)
    limit = ctypes.c_int64(1)
    batch = Batch(compute, 1, ctypes.addressof(limit))
    entry = _builtin(compute, batch, (2,), (2,), lambda *args, **options: (args, options), ())
    before = sys.getrefcount(x)
    y, row = entry(x), entry(x[None])
    sound = (
        isinstance(y, np.ndarray)
        and y.dtype == np.float64
        and y.shape == (2,)
        and (y == x).all()
        and sys.getrefcount(y) == 2
    )
    sound = sound and isinstance(row, np.ndarray) and row.shape == (1, 2) and (row == x).all()
    refused = [
        entry(x[None, None]),
        entry(np.stack([x, x])),
        entry(x.astype(np.float32)),
        entry([1.5, -2.5]),
        entry(x, x),
        entry(x[::-1]),
    ]
    refused.append(entry(np.empty((0, 2))))
    return (
        bool(sound)
        and all(isinstance(r, tuple) for r in refused)
        and entry(x, out=1)[1] == {"out": 1}
        and sys.getrefcount(x) <= before + 5
    )


def builtin_entry(
    single: Compute | None,
    batch: Batch | None,
    inputs: Sequence[Port],
    output: Port,
    fallback: Callable[..., Any],
    locks: Locks,
) -> Callable[..., Any]:
    """The fastest way to call a kernel with plain arrays, one state or a batch; ``fallback`` takes
    what it does not.
    """
    if any(len(p.shape) != 1 for p in inputs) or not output.shape or not layout_is_known():
        return fallback
    if locks:
        batch = None  # their check is written for one state
    return _builtin(single, batch, [p.size for p in inputs], output.shape, fallback, locks)
