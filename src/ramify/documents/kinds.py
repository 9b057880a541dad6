"""Kinds of things that files call by a word, and their keys, read off the fields of a dataclass.

A kind (a ground law, a terrain, a controller, a motion) is a frozen dataclass. Its registry knows
it by a word; its fields are the keys under which a file gives its numbers. What a field takes
follows from its type (``Annotated[float, Number(above=0.0)]`` names a form), or from ``key(form)``
in its metadata::

    @LAWS.add("spring")
    @dataclass(frozen=True, kw_only=True)
    class Spring(Ground):
        stiffness: float = field(default=1e4, metadata=key(Number(above=0.0), unit="N/m"))
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ramify.core.arrays import one_number
from ramify.core.errors import RamifyError, StateError
from ramify.core.messages import near, shown
from ramify.core.records import settle
from ramify.documents.forms import (
    PYTHON,
    UNSET,
    Anything,
    ByName,
    Choice,
    Flag,
    Form,
    GivenPart,
    Listed,
    Name,
    NotedError,
    Number,
    Numbers,
    Reading,
    python_document,
)
from ramify.documents.mistakes import Mistakes, Path

T = TypeVar("T")
K = TypeVar("K")
_METADATA: Final = "ramify"
NONE: Final = "none"
"""The word for nothing of a kind, where that is possible."""
Alternatives = Mapping[tuple[str, ...], bool]
"""Keys that exclude each other, and whether one of them is needed."""


@dataclass(frozen=True)
class Key:
    """A field as files give it: its ``form``, the ``name`` of its key, its ``unit``, whether it
    must be given, and its default.
    """

    form: Form
    name: str
    unit: str = ""
    needed: bool = False
    default: object = None

    @property
    def names(self) -> tuple[str, ...]:
        """All keys that it reads."""
        return self.form.names(self.name)

    @property
    def about(self) -> str:
        """What it takes, for lists of keys."""
        unit = f", {self.unit}" if self.unit else ""
        default = self.form.absent or ("" if self.default is None else f"{self.default}")
        if default:
            return f"{self.form.wanted}{unit}; by default {default}"
        return f"{self.form.wanted}{unit}{'; required' if self.needed else ''}"


def key(form: Form, *, unit: str = "", name: str = "") -> dict[str, Any]:
    """Metadata of a dataclass field: its form in files, its unit, its key if that differs."""
    return {_METADATA: (form, unit, name)}


def keys_of(kind: type) -> Mapping[str, Key]:
    """The keys of a dataclass by the names of its fields."""
    return _keys_of(kind)


@cache
def _keys_of(kind: Any) -> Mapping[str, Key]:
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:  # types that only a checker sees
        hints = {}
    keys: dict[str, Key] = {}
    for f in fields(kind):
        said = f.metadata.get(_METADATA, UNSET)
        if said is None or not f.init:
            continue
        form, unit, name = (form_of(hints.get(f.name)), "", "") if said is UNSET else said
        needed = f.default is MISSING and f.default_factory is MISSING
        default = None if f.default is MISSING else f.default
        keys[f.name] = Key(form, name or f.name, unit, needed, default)
    return keys


def form_of(hint: Any) -> Form:
    """The form of a field without metadata, from its type: of ``Annotated`` the one given there."""
    of, inner = get_origin(hint), get_args(hint)
    if of is Annotated:
        form: Form = inner[1]
        return form
    if of in (Union, types.UnionType):
        some = [one for one in inner if one is not types.NoneType]
        return form_of(some[0]) if len(some) == 1 else Anything()
    if of is Literal:
        return Choice(inner)
    if of in (tuple, list, Sequence) and float in inner:
        return Numbers(single=True)
    if of is list:
        return Listed(form_of(inner[0]), least=0)
    if of is dict:
        return ByName(form_of(inner[1]))
    if isinstance(hint, type) and is_dataclass(hint):
        return PartForm(hint)
    forms: dict[Any, Form] = {float: Number(), int: Number(whole=True), str: Name(), bool: Flag()}
    return forms.get(hint, Anything())


def read_part(
    kind: type[T], raw: object, path: Path, reading: Reading, besides: Sequence[str] = ()
) -> T:
    """A dataclass from a mapping of a document; ``besides`` are keys that are read elsewhere. The
    ``alternatives`` of the class, where it has some, are checked.

    Raises NotedError once all its mistakes are noted.
    """
    groups: Alternatives = getattr(kind, "alternatives", {})
    found = _read_keys(keys_of(kind), raw, path, reading, besides, groups)
    try:
        return kind(**found)
    except RamifyError as error:
        raise reading.refuse(path, str(error)) from error


def write_part(record: Any) -> dict[str, Any]:
    """The mapping from which ``read_part`` makes an equal record. Fields that are None are left
    out.
    """
    values = {name: getattr(record, name) for name in keys_of(type(record))}
    return {
        one.name: one.form.write(values[name])
        for name, one in keys_of(type(record)).items()
        if values[name] is not None
    }


def _is_written_whole(record: Any) -> bool:
    """Whether the keys of a record say all of it: no other field has been set, and none is None
    where reading would give its default.
    """
    keys = keys_of(type(record))
    for f in fields(record):
        value = getattr(record, f.name)
        if f.name in keys:
            if value is None and keys[f.name].default is not None:
                return False
        elif f.init and (f.default is MISSING or value != f.default):
            return False
    return True


def _read_keys(
    keys: Mapping[str, Key],
    raw: object,
    path: Path,
    reading: Reading,
    besides: Sequence[str] = (),
    groups: Alternatives = types.MappingProxyType({}),
) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise reading.refuse(path, f"{shown(raw)} must be a mapping")
    names = [name for one in keys.values() for name in one.names] + list(besides)
    section = GivenPart(raw, path, reading)
    failed: NotedError | None = None
    for name in raw:
        if name not in names:
            text = f"unknown key{near(str(name), names)}"
            failed = reading.refuse((*path, str(name)), text, key=True)
    for group, needed in groups.items():
        failed = section.one_of(group, needed) or failed
    for name, one in keys.items():
        try:
            value = one.form.take(one.name, section)
            if value is UNSET and one.needed:
                raise section.refuse("is missing", one.name)
        except NotedError as error:
            failed = error
            continue
        if value is not UNSET:
            section.done[name] = value
    if failed is not None:
        raise failed
    return section.done


@dataclass(frozen=True)
class PartForm(Form):
    """A mapping with the keys of a dataclass; what is neither a mapping nor a list is the value of
    the key ``short``.
    """

    kind: type
    short: str = ""
    wanted: ClassVar[str] = "a mapping"

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        return read_part(self.kind, _long(raw, self.short), path, reading)

    def write(self, value: Any) -> dict[str, Any]:
        return write_part(value)


@dataclass(frozen=True)
class Keys(Form):
    """A mapping with some keys, each of its own form, as a dictionary of those that are given."""

    forms: Mapping[str, Form]
    needed: tuple[str, ...] = ()
    short: str = ""
    wanted: ClassVar[str] = "a mapping"

    def read(self, raw: object, path: Path, reading: Reading) -> dict[str, Any]:
        keys = {k: Key(form, k, needed=k in self.needed) for k, form in self.forms.items()}
        return _read_keys(keys, _long(raw, self.short), path, reading)


def _long(raw: object, short: str) -> object:
    return raw if not short or isinstance(raw, Mapping | list) else {short: raw}


def check_numbers(record: Any) -> None:
    """Floats in the number fields of a record, whole numbers where these are of whole numbers, None
    where they are left open.

    Raises StateError for a value that the form of its field does not accept.
    """
    for name, one in keys_of(type(record)).items():
        value, form = getattr(record, name), one.form
        may_be_open = getattr(type(record), name, 0.0) is None
        if not isinstance(form, Number) or (value is None and may_be_open):
            continue
        number = one_number(value)
        if number != number or not form.accepts(number):
            raise StateError(
                f"{type(record).__name__}: {name} is {value!r}; it must be {form.wanted}"
            )
        whole = form.whole and not form.endless
        settle(record, **{name: int(number) if whole else number})


class Registry(dict[str, type[T]], Generic[T]):
    """The kinds of one thing by their words. A mapping from words to classes.

    what: how messages call the thing; key: the key that holds the word; guessed: whether a part
    without that key is of the kind that has most of its keys; optional: whether the word "none"
    means none; besides: keys that are ignored.
    """

    def __init__(
        self,
        what: str,
        key: str = "type",
        *,
        guessed: bool = False,
        optional: bool = False,
        besides: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.what, self.key, self.guessed, self.optional = what, key, guessed, optional
        self.besides = (key, *besides)

    def add(self, word: str) -> Callable[[type[K]], type[K]]:
        """A decorator: the dataclass becomes the kind with this word, in files, on the command line
        and wherever a word is taken.

        Its fields are its keys. A class whose instances have ``build(reading)`` is replaced by what
        that gives; where the class names what it ``builds`` and has ``recipe(thing)``, which gives
        the instance for such a thing, the thing can be written, too.
        """

        def register(kind: type[K]) -> type[K]:
            if not is_dataclass(kind) or "__dataclass_fields__" not in vars(kind):
                text = f"{kind.__name__} must be a dataclass to be a {self.what}"
                raise RamifyError(f"{text}; put @dataclass below the line that adds it")
            if word in (NONE, PYTHON):
                raise RamifyError(f"the word {word!r} has a meaning already; choose another word")
            name, old = _full_name(kind), _full_name(self.get(word, kind))
            if old != name:
                text = f"the {self.what} {word!r} exists already: {old}"
                raise RamifyError(f"{text}; choose another word")
            self[word] = kind  # type: ignore[assignment]
            return kind

        return register

    def remove(self, word: str) -> None:
        """Forget a kind."""
        del self[word]

    def word_of(self, kind: type) -> str:
        """The word of a class; its own name where it has none."""
        return next((word for word, one in self.items() if one is kind), kind.__name__)

    def keys_of(self, word: str) -> Mapping[str, Key]:
        """The keys of a kind by the names of its fields."""
        return keys_of(self[word])

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        """The thing that a word or a mapping describes, None for none. Raises NotedError once all
        mistakes are noted.
        """
        part: object = {self.key: raw} if isinstance(raw, str) else raw
        if not isinstance(part, Mapping):
            words = ", ".join(self)
            text = f"{shown(raw)} must be a word ({words}) or a mapping with a {self.key}"
            raise reading.refuse(path, text)
        word = part.get(self.key)
        if word is None and self.guessed:
            word = self._guess(part, path, reading)
        if word == NONE and self.optional:
            return None
        if word == PYTHON:
            name = shown(part.get("object"))
            text = f"the {self.what} {name} is an object of Python, which a document cannot hold"
            raise reading.refuse(path, f"{text}; give the object itself")
        if not isinstance(word, str) or word not in self:
            known = [*self, *[NONE] * self.optional]
            text = f"no {self.what} is called {shown(word)}{near(str(word), known)}"
            if word is None:
                text = f"{self.key} is missing; there are {', '.join(known)}"
            raise reading.refuse((*path, self.key), text)
        made: Any = read_part(self[word], part, path, reading, self.besides)
        if not hasattr(made, "build"):
            return made
        try:
            return made.build(reading)
        except RamifyError as error:
            raise reading.refuse(path, str(error)) from error

    def write(self, thing: T | None) -> Any:
        """The document of a thing: a mapping of words, numbers, lists and texts from which ``read``
        makes an equal one, or the word "none".

        Of a thing that is not of a registered kind, the mapping says that it is an object of
        Python, and ``read`` refuses it.
        """
        if thing is None and self.optional:
            return NONE
        for word, kind in self.items():
            record: Any = None
            if kind is type(thing):
                record = thing
            elif getattr(kind, "builds", None) is type(thing):
                record = kind.recipe(thing)  # type: ignore[attr-defined]
            if record is not None and _is_written_whole(record):
                return {self.key: word, **write_part(record)}
        known = write_part(thing) if is_dataclass(thing) else {}
        return {**python_document(thing, self.key), **known}

    def from_document(self, document: object) -> Any:
        """What ``write`` has written. Raises ModelError with what is wrong with a document."""
        mistakes = Mistakes(self.what)
        mistakes.with_positions, mistakes.root = False, document
        try:
            return self.read(document, (), Reading(mistakes))
        except NotedError:
            mistakes.raise_if_any()
            raise

    def _guess(self, part: Mapping[str, object], path: Path, reading: Reading) -> str:
        """The first of the kinds that have most keys of a part."""
        found = {word: self.keys_of(word).values() for word in self}
        keys = {word: {name for one in ones for name in one.names} for word, ones in found.items()}
        every = list(dict.fromkeys(name for names in keys.values() for name in sorted(names)))
        strange = [str(name) for name in part if name not in every]
        for name in strange:
            text = f"no {self.what} has this key{near(name, every)}"
            reading.mistakes.add((*path, name), text, key=True)
        if strange:
            raise NotedError
        return max(keys, key=lambda word: len(keys[word] & set(part)))


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@dataclass(frozen=True)
class OneOf(Form):
    """A word or a mapping that a registry reads."""

    registry: Registry[Any]

    @property
    def wanted(self) -> str:
        return f"a {self.registry.what}"

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        return self.registry.read(raw, path, reading)

    def write(self, value: Any) -> Any:
        return self.registry.write(value)
