"""A kernel as a real CPython builtin: a single call costs tens of nanoseconds.

The entry (``ramify.codegen.entry``) is compiled for the kernel: it checks that every argument is a
plain float64 array of the right shape, makes the results, calls the kernel and returns. Anything
else (a list, an option, a number that is not finite) goes to the Python path, which converts or
raises. The entry leans on the memory layout of CPython's and NumPy's objects; it is tried once on a
known function, and where that fails, or on an interpreter we do not know, the Python path is used
for everything.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ramify.codegen.compile import compiled
from ramify.codegen.entry import PLAIN, Batch, Compute, Locks, Python, Signature, entry_ir
from ramify.codegen.target import host
from ramify.trace.program import Port

_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
_SCALAR, _ARRAY_NEW = 60, 93  # PyArray_Scalar, PyArray_New in NumPy's table of functions

_OUT = sys.intern("out")  # the name of an option, as calls hold it
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
    table = ctypes.cast(get(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    api = ctypes.pythonapi
    return Python(
        array_type=id(np.ndarray),
        float64=id(np.dtype(np.float64)),
        array_new=int(table[_ARRAY_NEW] or 0),
        scalar=int(table[_SCALAR] or 0),
        vectorcall=_address(api.PyObject_Vectorcall),
        decref=_address(api.Py_DecRef),
        incref=_address(api.Py_IncRef),
        release=_address(api.PyEval_SaveThread),
        acquire=_address(api.PyEval_RestoreThread),
        allocate=_address(api.PyType_GenericAlloc),
        tuple_type=id(tuple),
        items=tuple.__basicsize__,
        out=id(_OUT),
    )


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
    signature: Signature,
    fallback: Callable[..., Any],
    locks: Locks,
) -> Callable[..., Any]:
    text, addresses = entry_ir(single, batch, signature, locks, _python())
    digest = hashlib.sha256(text.encode()).hexdigest()
    entry = compiled(lambda: text, "entry", host().with_width(1), f"entry {digest}", 1)
    entry.fill("addresses", addresses)
    definition = _MethodDef(b"kernel", entry.address, _METH_FASTCALL_KEYWORDS, None)
    _definitions.append(definition)  # a builtin may outlive everything else that knows it
    holder = _Holder(fallback, (single, batch, entry, signature))
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
    text = """
        define i64 @copy(i64 %n, ptr %i, ptr %o) {
          %a = load ptr, ptr %i
          %b = load ptr, ptr %o
          %q = getelementptr ptr, ptr %o, i64 1
          %c = load ptr, ptr %q
          %v = load <2 x double>, ptr %a, align 8
          store <2 x double> %v, ptr %b, align 8
          %x = extractelement <2 x double> %v, i64 0
          store double %x, ptr %c
          ret i64 0
        }
    """
    copy = compiled(lambda: text, "copy", host().with_width(1), "copy of a trial", 1)
    compute = Compute(copy.address, (), copy)
    limit = ctypes.c_int64(1)
    batch = Batch(compute, 1, ctypes.addressof(limit))
    signature = Signature((2,), ((2,), ()), _Pair)
    entry = _builtin(compute, batch, signature, lambda *args, **options: [args, options], ())
    before = sys.getrefcount(x)
    room = np.zeros(2), np.zeros(())
    answers = [entry(x), entry(x[None]), entry(x, out=room)]
    sound = [type(answer) for answer in answers] == [_Pair, _Pair, tuple]
    for (numbers, first), lead in zip(answers, ((), (1,), ()), strict=True):
        sound = sound and type(numbers) is np.ndarray and numbers.dtype == np.float64
        sound = sound and numbers.shape == (*lead, 2) and bool((numbers == x).all())
        sound = sound and np.shape(first) == lead and bool(np.all(first == x[0]))
    sound = sound and type(answers[0][1]) is np.float64 and answers[2] is room
    sound = sound and hash((answers[0][1],)) == hash((1.5,))
    refused = [
        entry(x[None, None]),
        entry(np.stack([x, x])),
        entry(x.astype(np.float32)),
        entry([1.5, -2.5]),
        entry(x, x),
        entry(x[::-1]),
        entry(np.empty((0, 2))),
        entry(x, out=(x, room[1])),
        entry(x, out=1),
        entry(x, further=room),
    ]
    sound = sound and all(isinstance(r, list) for r in refused) and refused[-2][1] == {"out": 1}
    del answers, refused, numbers, first
    return sound and sys.getrefcount(x) == before and sys.getrefcount(room) == 2


class _Pair(NamedTuple):
    numbers: Any
    first: Any


def builtin_entry(
    single: Compute | None,
    batch: Batch | None,
    inputs: Sequence[Port],
    outputs: Port | Sequence[Port],
    fallback: Callable[..., Any],
    locks: Locks,
    answer: type[tuple[Any, ...]] = tuple,
) -> Callable[..., Any]:
    """The fastest way to call a kernel with plain arrays, one state or a batch; ``fallback`` takes
    what it does not. ``answer`` is the tuple that several results make.
    """
    if any(len(p.shape) != 1 for p in inputs) or not layout_is_known():
        return fallback
    if locks:
        batch = None  # their check is written for one state
    results = [outputs] if isinstance(outputs, Port) else outputs
    signature = Signature(tuple(p.size for p in inputs), tuple(p.shape for p in results), answer)
    return _builtin(single, batch, signature, fallback, locks)
