"""Digests of Python functions: the same for the same code and the same data, in whatever process;
another for any change.

A metric's numbers depend on its code, on what it closes over, on its defaults, on the state of the
object it belongs to, and on the globals it reads. All of that goes into its digest, function by
function. Modules, and what belongs to installed libraries, go in by name.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import sys
import sysconfig
import types
from typing import Any, Final

from ramify.core.errors import ModelError

_PLAIN: Final = (
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
)
_WANTED: Final = "numbers, texts, arrays, functions, and objects of them can be told apart"


def digest(function: Any) -> str:
    """The digest of a callable. Raises ModelError where it holds something that no stable digest
    can be made of.
    """
    try:
        return _Digest().of(function, "it")
    except RecursionError:
        raise ModelError(
            f"it holds data that are nested too deeply for a digest; {_WANTED}"
        ) from None


class _Digest:
    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._alive: list[Any] = []  # what is numbered by its id must not be let go of

    def of(self, what: Any, where: str) -> str:
        """The digest of a value; ``where`` says in a message where it was met."""
        if type(what) in _PLAIN:
            return _hashed(type(what).__name__, repr(what))
        if id(what) in self._known:
            return self._known[id(what)]
        self._known[id(what)] = f"within itself, {type(what).__name__}"
        self._alive.append(what)
        self._known[id(what)] = found = _hashed(*self._parts(what, where))
        return found

    def _all(self, many: Any, where: str) -> list[str]:
        return [self.of(one, where) for one in many]

    def _parts(self, what: Any, where: str) -> list[str]:
        import numpy as np

        kind = f"{type(what).__module__}.{type(what).__qualname__}"
        if isinstance(what, types.ModuleType):
            return ["module", what.__name__]
        if isinstance(what, type | types.FunctionType | types.BuiltinFunctionType) and _of_library(
            what
        ):
            return ["library", str(what.__module__), what.__qualname__]
        if isinstance(what, types.CodeType):
            return [
                kind,
                what.co_code.hex(),
                repr((what.co_names, what.co_varnames)),
                *self._all(what.co_consts, where),
            ]
        if isinstance(what, types.FunctionType):
            return [kind, *self._function(what)]
        if isinstance(what, type):
            members = {k: v for k, v in vars(what).items() if k not in _NO_MATTER}
            return [
                kind,
                what.__qualname__,
                *self._all(what.__bases__, where),
                *self._named(members, f"class {what.__qualname__}"),
            ]
        if type(what) in (tuple, list, types.MappingProxyType, dict):
            pairs = what.items() if hasattr(what, "items") else what
            return [kind, *(self.of(one, where) for one in pairs)]
        if type(what) in (set, frozenset):
            return [kind, *sorted(self._all(what, where))]
        if isinstance(what, np.ndarray | np.generic) and not what.dtype.hasobject:
            return [kind, str(what.dtype), str(what.shape), what.tobytes().hex()]
        if isinstance(what, types.MethodType):
            return [kind, self.of(what.__func__, where), self.of(what.__self__, where)]
        if isinstance(what, functools.partial):
            return [kind, *self._all((what.func, what.args, what.keywords), where)]
        if isinstance(what, property | staticmethod | classmethod | functools.cached_property):
            names = ("fget", "fset", "fdel", "__func__", "func")
            return [kind, *self._all([getattr(what, name, None) for name in names], where)]
        return [kind, *self._object(what, where)]

    def _function(self, what: types.FunctionType) -> list[str]:
        name = what.__qualname__
        cells = {
            n: cell.cell_contents
            for n, cell in zip(what.__code__.co_freevars, what.__closure__ or (), strict=True)
            if _full(cell)
        }
        read = sorted(_globals(what.__code__))
        used = {n: what.__globals__[n] for n in read if n in what.__globals__}
        given = [
            self.of(what.__defaults__, f"the defaults of {name}"),
            self.of(what.__kwdefaults__, f"the defaults of {name}"),
        ]
        return [
            name,
            self.of(what.__code__, name),
            *given,
            *self._named(cells, name),
            *self._named(used, name),
        ]

    def _named(self, values: dict[str, Any], owner: str) -> list[str]:
        return [
            part
            for name, value in sorted(values.items())
            for part in (name, self.of(value, f"{name!r} of {owner}"))
        ]

    def _object(self, what: Any, where: str) -> list[str]:
        """Any other object, by what it is made of when it is copied; what it has worked out and
        remembers is left out.
        """
        known = copyreg.dispatch_table.get(type(what))
        try:
            made: Any = known(what) if known is not None else what.__reduce_ex__(2)
        except Exception:  # whatever its class raises: it cannot be taken apart
            text = f"{where} is a {type(what).__name__}, of which no digest can be made; {_WANTED}"
            raise ModelError(text) from None
        if isinstance(made, str):
            return ["global", made]
        maker, given, state, items, pairs = (*made, None, None, None)[:5]
        if isinstance(state, dict):
            cached = {
                n
                for c in type(what).__mro__
                for n, v in vars(c).items()
                if isinstance(v, functools.cached_property)
            }
            said = self._named(
                {str(n): v for n, v in state.items() if n not in cached}, f"a {type(what).__name__}"
            )
        else:
            said = [self.of(state, where)]
        rest = [
            list(items) if items is not None else None,
            list(pairs) if pairs is not None else None,
        ]
        return [self.of(type(what), where), *self._all((maker, given, *rest), where), *said]


_NO_MATTER: Final = (
    *(
        "__dict__",
        "__weakref__",
        "__doc__",
        "__module__",
        "__firstlineno__",
        "__static_attributes__",
        "__slots__",
    ),
    *("__annotations__", "_abc_impl"),
)
"""Members of a class that say nothing about what it does."""


def _hashed(*parts: str) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _full(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # a name that is given its value later on
        return False
    return True


def _globals(code: types.CodeType) -> set[str]:
    """Names that some code, or code within it, looks up among the globals."""
    found = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    return found.union(
        *(_globals(inner) for inner in code.co_consts if isinstance(inner, types.CodeType))
    )


def _of_library(what: Any) -> bool:
    """Whether something belongs to Python, to ramify or to an installed library."""
    module = str(getattr(what, "__module__", None) or "builtins")
    if module.partition(".")[0] == "ramify" or module == "builtins":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module in sys.builtin_module_names or module.partition(".")[
            0
        ] in sys.stdlib_module_names - {"__main__"}
    paths = sysconfig.get_paths()
    return any(
        file.startswith(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    )
