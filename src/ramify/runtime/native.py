"""A kernel as a real CPython builtin: a single call costs tens of nanoseconds.

The entry (``ramify.runtime.entry``) is compiled for the kernel: it checks that every argument is a
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

from ramify.runtime.compile import Compute, compiled
from ramify.runtime.entry import PLAIN, EntryWriter, Locks, Python, Signature
from ramify.runtime.target import host
from ramify.trace.program import Port

_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
_METH_VARARGS_KEYWORDS = 0x0001 | 0x0002
_SCALAR, _ARRAY_NEW = 60, 94  # PyArray_Scalar, PyArray_NewFromDescr in NumPy's table

_OUT = sys.intern("out")  # the name of an option, as calls hold it
_NAMES = (_OUT,)
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
    return {
        "array_type": id(np.ndarray),
        "float64": id(np.dtype(np.float64)),
        "array_new": int(table[_ARRAY_NEW] or 0),
        "scalar": int(table[_SCALAR] or 0),
        "vectorcall": _address(api.PyObject_Vectorcall),
        "decref": _address(api.Py_DecRef),
        "incref": _address(api.Py_IncRef),
        "release": _address(api.PyEval_SaveThread),
        "acquire": _address(api.PyEval_RestoreThread),
        "allocate": _address(api.PyType_GenericAlloc),
        "tuple_type": id(tuple),
        "items": tuple.__basicsize__,
        "out": id(_OUT),
        "names": id(_NAMES),
        "float_type": id(float),
        "dict_item": _address(api.PyDict_GetItem),
        "call": _address(api.PyObject_Call),
    }


class _Holder:
    """The Python path of a builtin, holding everything its code needs."""

    def __init__(self, fallback: Callable[..., Any], keep: tuple[Any, ...]) -> None:
        self._fallback = fallback
        self.keep: list[Any] = [keep]

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._fallback(*args, **options)


class Calls(NamedTuple):
    """Two ways to call a kernel: by itself, and as ``__call__`` of an object."""

    call: Callable[..., Any]
    as_object: Callable[..., Any]


def _builtin(
    single: Compute | None,
    batch: Compute | None,
    signature: Signature,
    fallback: Callable[..., Any],
    locks: Locks,
    lanes: int,
) -> Calls:
    writer = EntryWriter(signature, _python(), lanes)
    text = writer.text(single, batch, locks)
    digest = hashlib.sha256(text.encode()).hexdigest()
    entry = compiled(lambda: text, "entry", host().with_width(1), f"entry {digest}", 1)
    entry.fill("addresses", list(writer.addresses.values()))
    holder = _Holder(fallback, (single, batch, entry, signature))
    make, pointer = ctypes.pythonapi.PyCFunction_NewEx, ctypes.c_void_p
    make.restype, make.argtypes = ctypes.py_object, [pointer, ctypes.py_object, pointer]
    made: list[Callable[..., Any]] = []
    for address, flags in (
        (entry.address, _METH_FASTCALL_KEYWORDS),
        (entry.function("object"), _METH_VARARGS_KEYWORDS),
    ):
        definition = _MethodDef(b"kernel", address, flags, None)
        _definitions.append(definition)  # a builtin may outlive everything else that knows it
        made.append(make(ctypes.addressof(definition), holder, None))
    return Calls(*made)


@cache
def layout_is_known() -> bool:
    """Whether objects lie in memory as the entry expects: known interpreter, and a trial call that
    copies numbers.
    """
    if (
        sys.implementation.name != "cpython"
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or (object.__basicsize__, ctypes.sizeof(ctypes.c_void_p)) != (16, 8)
        or sys.platform == "win32"
    ):
        return False
    try:
        return _trial()
    except (AttributeError, ImportError, OSError, RuntimeError, TypeError, ValueError):
        return False


def _trial() -> bool:
    """A builtin that copies two numbers: right results, right refusals, no lost references."""
    x = np.array([1.5, -2.5])
    header = (ctypes.c_int64 * 9).from_address(id(x))
    rank, flags = (ctypes.c_int.from_address(id(x) + offset).value for offset in (24, 64))
    known = header[1] == id(np.ndarray), header[2] == x.ctypes.data, header[7] == id(x.dtype)
    if not all(known) or rank != 1 or flags & PLAIN != PLAIN:
        return False
    text = """
        define i64 @copy(i64 %n, ptr %i, ptr %o) {
          %a = load ptr, ptr %i
          %b = load ptr, ptr %o
          %q = getelementptr ptr, ptr %o, i64 1
          %c = load ptr, ptr %q
          %v = load <2 x double>, ptr %a, align 8
          store <2 x double> %v, ptr %b, align 8
          %r = getelementptr ptr, ptr %i, i64 1
          %d = load ptr, ptr %r
          %x = load double, ptr %d
          store double %x, ptr %c
          ret i64 0
        }
    """
    copy = compiled(lambda: text, "copy", host().with_width(1), f"trial {text}", 1)
    compute, signature = Compute(copy.address, keep=copy), Signature((2, 1), ((2,), ()), _Pair)
    both = _builtin(compute, compute, signature, lambda *args, **options: [args, options], (), 1)
    return all(_sound(entry) for entry in both)


def _sound(entry: Callable[..., Any]) -> bool:
    x, one, half = np.array([1.5, -2.5]), np.array([0.25]), 0.25
    before = sys.getrefcount(x), sys.getrefcount(half)
    room = np.zeros(2), np.zeros(())
    answers = [entry(x, one), entry(x, half), entry(x[None], one[None]), entry(x, half, out=room)]
    sound = [type(answer) for answer in answers] == [_Pair, _Pair, _Pair, tuple]
    for (numbers, last), lead in zip(answers, ((), (), (1,), ()), strict=True):
        sound = sound and type(numbers) is np.ndarray and numbers.dtype == np.float64
        sound = sound and numbers.shape == (*lead, 2) and bool((numbers == x).all())
        sound = sound and np.shape(last) == lead and bool(np.all(last == 0.25))
    sound = sound and type(answers[0][1]) is np.float64 and answers[3] is room
    sound = sound and hash((answers[0][1],)) == hash((0.25,))
    refused = [
        entry(x[None, None], one),
        entry(np.stack([x, x]), one),
        entry(x[None], half),
        entry(x.astype(np.float32), one),
        entry([1.5, -2.5], one),
        entry(x, 1),
        entry(x),
        entry(x[::-1], one),
        entry(np.empty((0, 2)), np.empty((0, 1))),
        entry(x, one, out=(x, room[1])),
        entry(x, one, out=1),
        entry(x, one, further=room),
    ]
    sound = sound and all(isinstance(r, list) for r in refused) and refused[-2][1] == {"out": 1}
    del answers, refused, numbers, last
    kept = sys.getrefcount(x), sys.getrefcount(half)
    return sound and kept == before and sys.getrefcount(room) == 2


class _Pair(NamedTuple):
    numbers: Any
    last: Any


def builtin_calls(
    single: Compute | None,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    fallback: Callable[..., Any],
    batch: Compute | None = None,
    locks: Locks = (),
    answer: type[tuple[Any, ...]] = tuple,
) -> Calls:
    """The fastest ways to call a kernel with plain arrays, one state or a ``batch`` of at least as
    many as there are lanes; ``fallback`` takes what they do not. ``answer`` is the tuple that
    several results make.
    """
    if any(len(p.shape) != 1 for p in inputs) or not layout_is_known():
        return Calls(fallback, fallback)
    if locks:
        batch = None  # their check is written for one state
    signature = Signature(tuple(p.size for p in inputs), tuple(p.shape for p in outputs), answer)
    return _builtin(single, batch, signature, fallback, locks, host().width)
