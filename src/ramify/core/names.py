"""Names of robots, links, joints, points and loops: which are allowed, and how a message shows a
text that is not one.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final
from unicodedata import decomposition, normalize
from unicodedata import name as letter

from ramify.core.errors import ModelError, RamifyError
from ramify.core.messages import shown

MAX_NAME: Final = 200
"""Characters in a name."""

NAME: Final = f"a name has 1 to {MAX_NAME} printable characters"


def is_name(text: str) -> bool:
    """Whether a text may be the name of a robot, link or joint."""
    return bool(text.strip()) and len(text) <= MAX_NAME and text.isprintable()


def escaped(text: str, keep: str = "") -> str:
    """A text with control characters, and those that turn the direction of writing, as escapes,
    except those in ``keep``.
    """
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text
    )


_ALIKE: Final = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеосрхуіјѕԁһΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρ",
    "ABESIJKMHOPCTYXaeocpxyijsdhABEZHIKMNOPTYXovp",
)
"""Cyrillic and Greek letters that look like Latin ones."""


_VISIBLE: Final = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>", "<vertical>")
"""Ways of writing a letter that a reader tells from the plain one, as in Unicode's tables."""


def _plain(character: str) -> str:
    """A letter of another width or font, or a ligature, as plain letters (NFKC); any other as it
    is.
    """
    if decomposition(character).startswith(_VISIBLE):
        return character
    return normalize("NFKC", character)


def look(name: str) -> str:
    """What a reader sees of a name: accents as one letter each, letters of other widths and fonts
    as plain ones, look-alike letters as Latin ones, no blanks around it. Names that differ and look
    the same are twins.
    """
    plain = "".join(map(_plain, normalize("NFC", name)))
    return normalize("NFC", plain).translate(_ALIKE).strip()


def disguise(name: str) -> str:
    """What a reader does not see in a name: blanks around it, a letter of another width or font
    that stands for a plain one, or a look-alike letter of another alphabet amid Latin ones. Empty
    for any other name.
    """
    if name != name.strip():
        return "it begins or ends with a blank"
    for c in normalize("NFC", name):
        if _plain(c) != c and _plain(c).isascii():
            return f"its character {c!r} is {letter(c, 'no letter')}, in place of {_plain(c)!r}"
    for word in re.findall(r"[^\W\d_]+", name):
        odd = [c for c in word if ord(c) in _ALIKE]
        if odd and any(c.isascii() for c in word):
            return f"its letter {odd[0]!r} is {letter(odd[0])}, amid Latin letters"
    return ""


def refuse_twins(what: str, names: Iterable[str]) -> None:
    """Refuse names of the same kind ("link", or "point of 'foot'") that differ and look alike."""
    kind, *whose = what.split(" of ", 1)
    of = f" of {whose[0]}" if whose else ""
    for other, name in twins(names):
        raise ModelError(
            f"two {kind}s{of} are named {other!a} and {name!a}, which look the same; "
            "rename one of them"
        )


def twins(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of names that differ and look the same."""
    by_look: dict[str, str] = {}
    for name in names:
        other = by_look.setdefault(look(name), name)
        if other != name:
            yield other, name


def one_of(
    name: str, value: object, choices: Sequence[str], error: type[RamifyError] = RamifyError
) -> None:
    """Refuse a value that is not one of the words, such as an array."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices[:-1])) + " or " if choices[1:] else ""
        raise error(f"{name} must be {listed}{choices[-1]!r}; got {shown(value)}")


def names_of(name: str, value: object, error: type[RamifyError] = RamifyError) -> list[str]:
    """Names: several, or one; ``error`` for what holds others than texts."""
    try:
        found = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    except TypeError:
        found = [None]
    if not all(isinstance(x, str) for x in found):
        raise error(f"{name} must be names, as a list of texts; got {shown(value)}")
    return found


def a_text(name: str, value: object, error: type[RamifyError] = RamifyError) -> None:
    """Refuse what is neither a text nor None."""
    if value is not None and not isinstance(value, str):
        raise error(f"{name} must be a text; got {shown(value)}")


def mapping_of(name: str, value: object) -> Mapping[str, Any]:
    """A mapping from names; nothing is an empty one. Raises RamifyError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise RamifyError(f"{name} must be a mapping from names; got {shown(value)}")
    return value


def fresh(name: str, taken: Container[str]) -> str:
    """A name that is not taken: the given one, or with a number behind it."""
    return next(word for i in count(1) if (word := name if i == 1 else f"{name}_{i}") not in taken)
