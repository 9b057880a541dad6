"""Parts of documents: the types of their values, and how a value that is wrong is explained.

Numbers may be arithmetic; its names are looked up in the validation context, a mapping of
parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Tag,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from ramify.core.messages import near, shown
from ramify.documents.expression import ExpressionError
from ramify.documents.forms import Name, Number
from ramify.documents.mistakes import Mistakes, Path


def wrong(text: str) -> PydanticCustomError:
    return PydanticCustomError("ramify", "{text}", {"text": text})


def number(form: Number) -> BeforeValidator:
    """A number as a form of files has it; names of its arithmetic are those of the context."""

    def check(value: object, info: ValidationInfo) -> float:
        try:
            return form.evaluated(value, info.context or {})
        except ExpressionError as error:
            raise wrong(str(error)) from None

    return BeforeValidator(check)


def text(form: Name) -> BeforeValidator:
    """A text as a form of files has it."""

    def check(value: object) -> object:
        if said := form.wrong(value):
            raise wrong(said)
        return value

    return BeforeValidator(check)


def list_of(count: int, what: str) -> BeforeValidator:
    def check(value: object) -> object:
        if not isinstance(value, list | tuple) or len(value) != count:
            listed = isinstance(value, list | tuple)
            got = f"{len(value)} entries" if listed else shown(value)  # type: ignore[arg-type]
            raise wrong(f"{got} given; it must be {what}")
        return value

    return BeforeValidator(check)


Finite = Annotated[float, number(Number())]
Bound = Annotated[float, number(Number(endless=True))]
Positive = Annotated[float, number(Number(above=0.0))]
NotNegative = Annotated[float, number(Number(least=0.0))]
Whole = Annotated[float, number(Number(least=1.0, whole=True))]
NameStr = Annotated[str, text(Name())]
Prose = Annotated[str, text(Name(prose=True))]
Vector = Annotated[tuple[Finite, Finite, Finite], list_of(3, "a list of three numbers")]
Matrix3 = Annotated[
    tuple[Vector, Vector, Vector], list_of(3, "a list of three rows of three numbers")
]


class Part(BaseModel):
    """A part of a document; unknown keys are mistakes. ``inner`` are the parts under its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    inner: ClassVar[Mapping[str, type[Part]]] = {}


_FORMS: Final = ("<elements>", "<rows>", "<principal>", "<number>", "<list>", "<joints>")
_SAID: Final = {"<number>": "a number", "<list>": "a list", "<joints>": "a mapping"}


def choice(
    part: object, path: Path, keys: tuple[str, ...], needed: bool = False
) -> Iterator[tuple[Path, str]]:
    if isinstance(part, Mapping):
        given = [key for key in keys if key in part]
        if len(given) > 1:
            yield (
                (*path, given[1]),
                f"{' and '.join(given)} exclude each other; give one of {', '.join(keys)}",
            )
        elif needed and not given:
            yield path, f"one of {', '.join(keys)} is missing"


def explain(error: ErrorDetails, part: type[Part]) -> tuple[Path, str, bool]:
    """Path within the part, message, and whether the key itself (not its value) is wrong."""
    path = tuple(step for step in error["loc"] if step not in _FORMS)
    match error["type"]:
        case "extra_forbidden":
            return path, f"unknown key{near(str(path[-1]), _keys(part, path[:-1]))}", True
        case "missing":
            return path, "is missing", False
        case "literal_error":
            return (
                path,
                f"{shown(error['input'])} must be {error['ctx']['expected']}",
                False,
            )
        case "model_type" | "dict_type" | "model_attributes_type":
            return path, f"{shown(error['input'])} must be a mapping", False
        case "list_type" | "too_short":
            least = error.get("ctx", {}).get("min_length", 1)
            entries = "one entry" if least == 1 else f"{least} entries"
            given = shown(error["input"])
            return path, f"{given} must be a list with at least {entries}", False
        case "union_tag_invalid":
            forms = [text for form, text in _SAID.items() if form in error["ctx"]["expected_tags"]]
            return path, f"{shown(error['input'])} must be {' or '.join(forms)}", False
        case "bool_type":
            return path, f"{shown(error['input'])} must be true or false", False
        case _:
            return path, error["msg"], False


def _keys(part: type[Part], path: Path) -> list[str]:
    """The keys known at a path of a part."""
    known = part
    for step in path:
        known = known.inner.get(str(step), known)
    return [field.alias or name for name, field in known.model_fields.items()]


P = TypeVar("P", bound=Part)


def validate(
    part: type[P],
    raw: object,
    path: Path,
    names: Mapping[str, float],
    mistakes: Mistakes,
    link: str = "",
) -> P | None:
    """The part at a path of a document; None with its mistakes noted. ``names``: numbers that its
    arithmetic may use.
    """
    try:
        return part.model_validate(raw, context=names)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            where, text, key = explain(detail, part)
            mistakes.add((*path, *where), text, link=link, key=key)
        return None


def form_of(value: object) -> str:
    if isinstance(value, Mapping):
        return "<joints>"
    return "<list>" if isinstance(value, list | tuple) else "<number>"


def as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


Row = Annotated[
    Annotated[Finite, Tag("<number>")] | Annotated[list[Finite], Tag("<list>")],
    Discriminator(form_of),
]
"""A number, or a list of numbers."""


OneOrMoreNames = Annotated[list[NameStr], BeforeValidator(as_list)]
"""Names, or a single one."""


class Late(Part):
    """A part whose validator is made when it is first needed: a file uses few of them."""

    model_config = ConfigDict(defer_build=True)
