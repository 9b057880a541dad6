"""What identifies a custom metric: a digest of its code and of the data it reads.

The digest covers the code of a function, its defaults, what it closes over and the globals it
reads, functions among them included. It is the same in every process, and another one after any
change. Modules, and functions and classes of installed libraries, count by their names. Anything
else, such as an object of a class of yours, has no digest: you give a version instead.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from ramify.core.errors import ModelError

_PLAIN: Final = (type(None), type(Ellipsis), bool, int, float, complex, str, bytes)
_LOOKUPS: Final = ("LOAD_GLOBAL", "LOAD_NAME")
_REMEDY: Final = 'give your metrics a version, metrics_version="1", and change it when they change'


def function_digest(function: object) -> str:
    """The digest of a function. Raises ModelError where it reads data that have no digest."""
    try:
        return _of(function, "it", ())
    except RecursionError:
        raise ModelError(f"its data are nested too deeply for a digest; {_REMEDY}") from None


def _of(what: Any, where: str, within: tuple[int, ...]) -> str:
    """The digest of a value, ``where`` it is in messages, ``within`` the functions around it."""
    inner = (*within, id(what)) if isinstance(what, types.FunctionType) else within

    def all_of(many: Iterable[Any]) -> list[str]:
        return [_of(one, where, inner) for one in many]

    def named(values: Mapping[str, Any]) -> list[str]:
        return [f"{k} {_of(v, f'{k!r}', inner)}" for k, v in sorted(values.items())]

    match what:
        case _ if type(what) in _PLAIN:
            parts = [repr(what)]
        case types.FunctionType() if id(what) in within:
            parts = [what.__qualname__]  # it calls itself
        case types.ModuleType():
            parts = [what.__name__]
        case type() | types.FunctionType() | types.BuiltinFunctionType() if _installed(what):
            parts = [str(what.__module__), what.__qualname__]
        case types.CodeType():
            names = repr((what.co_names, what.co_varnames))
            parts = [what.co_code.hex(), names, *all_of(what.co_consts)]
        case types.FunctionType():
            given = (what.__code__, what.__defaults__, what.__kwdefaults__)
            cells = zip(what.__code__.co_freevars, what.__closure__ or (), strict=True)
            parts = [
                *all_of(given),
                *named({name: cell.cell_contents for name, cell in cells if _filled(cell)}),
                *named({n: what.__globals__[n] for n in _read(what) if n in what.__globals__}),
            ]
        case functools.partial():
            parts = all_of((what.func, what.args, what.keywords))
        case list() | tuple():
            parts = all_of(what)
        case dict():
            parts = all_of(what.items())
        case set() | frozenset():
            parts = sorted(all_of(what))
        case np.ndarray() | np.generic() if not what.dtype.hasobject:
            parts = [str(what.dtype), str(what.shape), what.tobytes().hex()]
        case _:
            raise ModelError(f"{where} is a {type(what).__name__}, which has no digest; {_REMEDY}")
    return hashlib.sha256(repr((type(what).__name__, parts)).encode()).hexdigest()


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # a name that gets its value later
        return False
    return True


def _read(function: types.FunctionType) -> set[str]:
    """Names that a function, or code within it, looks up among the globals."""
    codes, found = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        found |= {str(i.argval) for i in dis.get_instructions(code) if i.opname in _LOOKUPS}
    return found


def _installed(what: Any) -> bool:
    """Whether something belongs to Python, to ramify or to an installed library."""
    module = str(getattr(what, "__module__", None) or "builtins")
    top = module.partition(".")[0]
    if top in ("ramify", "builtins"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return top in sys.stdlib_module_names - {"__main__"}
    paths = sysconfig.get_paths()
    return file.startswith(tuple(paths[x] for x in ("stdlib", "platstdlib", "purelib", "platlib")))
