"""Laws of contact as users give them to a call, and as parts of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ramify.core.errors import RamifyError
from ramify.documents.forms import NotedError, Reading
from ramify.documents.kinds import Registry
from ramify.documents.mistakes import Mistakes, Path

L = TypeVar("L")


def law_of_argument(
    part: str, value: str | Mapping[str, Any], example: str, read: Callable[[object, Reading], L]
) -> L:
    """What ``read`` makes of a word, a mapping as in scenario files, or its text. ``part`` names
    the argument, ``example`` is such a mapping, for messages. Raises ModelError with all mistakes.
    """
    mistakes = Mistakes(part)
    raw: object = value
    if isinstance(value, str) and (value.lstrip().startswith("{") or ":" in value):
        from ramify.documents.yaml_text import parse_yaml  # the YAML library is heavy

        raw = parse_yaml(value, mistakes, f"a {part} is a word or a mapping such as {example}")
    else:
        mistakes.with_positions = False
    mistakes.root = raw
    law = read(raw, Reading(mistakes))
    mistakes.raise_if_any()
    return law


def law_of_part(
    registry: Registry[L], raw: object, path: Path, reading: Reading,
    fit: Callable[[L], object] = lambda law: None,
) -> L | None:  # fmt: skip
    """The law that a part of a file describes, None for none; None too where there are mistakes,
    which are noted. So are the errors of ``fit``, which tries it on a robot.
    """
    try:
        law: L | None = None if raw is None else registry.read(raw, path, reading)
    except NotedError:
        return None
    if law is None:
        return None
    try:
        fit(law)
    except RamifyError as error:
        reading.mistakes.add(path, str(error))
    return law
