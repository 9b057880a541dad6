"""Numbers of a document by their paths: ``links.forearm.mass``, ``initial.q_deg.joint2``,
``control.kp``.

A step is a key of a mapping, the name of a list's entry (a link), its index, or x, y, z for the
entries of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from ramify.core.errors import ModelError
from ramify.core.messages import near, shown
from ramify.documents.expression import ExpressionError, UndefinedError, evaluate
from ramify.documents.mistakes import Map, Path, Position, Seq

LETTERS: Final = {"x": 0, "y": 1, "z": 2}
MOST_CHOICES: Final = 5000
NOWHERE: Final = Position(1, 1)


class NoPlaceError(ModelError):
    """A path that leads nowhere; the message names what there is."""


def path_steps(document: Any, text: str, whole: str, new_key: bool = True) -> Path:
    """The steps of a path in a document.

    whole: the path as the user wrote it, for messages; new_key: whether the last step may be a new
    key (the reader of the document then accepts or refuses it). Raises NoPlaceError.
    """
    node, rest, steps = document, text, list[str | int]()
    while rest:
        step, rest = _step(node, rest)
        if step is None:
            if new_key and isinstance(node, dict) and "." not in rest:
                return (*steps, rest)
            prefix = whole[: len(whole) - len(text)]
            choices = [prefix + path for path in number_paths(document)]
            raise NoPlaceError(f"no number is found at {whole!r}{near(whole, choices)}")
        steps.append(step)
        node = node[step]
    _check_number(node, whole, _declared(document))
    return tuple(steps)


def _step(node: Any, rest: str) -> tuple[str | int | None, str]:
    """The first step of a path, the longest name that fits, and the rest; (None, rest) if none."""
    names: dict[str, str | int] = {}
    if isinstance(node, dict):
        names = {key: key for key in node}
    elif isinstance(node, list):
        names = {str(i): i for i in range(len(node))}
        if len(node) == 3 and not any(isinstance(entry, dict | list) for entry in node):
            names |= LETTERS
        names |= {str(_name(entry, i)): i for i, entry in enumerate(node)}
    fitting = [name for name in names if f"{rest}.".startswith(f"{name}.")]
    if not fitting:
        return None, rest
    best = max(fitting, key=len)
    return names[best], rest[len(best) + 1 :]


def _name(entry: Any, i: int) -> Any:
    """The name of a list's entry, or its index."""
    return entry["name"] if isinstance(entry, dict) and "name" in entry else i


def _check_number(node: Any, whole: str, names: set[str]) -> None:
    if isinstance(node, dict | list):
        inside = ", ".join(f"{whole}.{path}" for path in number_paths(node)[:8]) or "none inside"
        raise NoPlaceError(f"{whole!r} is {shown(node)}, not a number; it has {inside}")
    try:
        evaluate(node, dict.fromkeys(names, 1.0))
    except UndefinedError:
        pass  # made-up values of the parameters may have no answer
    except ExpressionError:
        raise NoPlaceError(f"{whole!r} is {shown(node)}, not a number") from None


def _declared(document: Any) -> set[str]:
    """Names that arithmetic in a robot file may use."""
    templates = document.get("templates", {}) if isinstance(document, dict) else {}
    parts = [document, *(templates.values() if isinstance(templates, dict) else [])]
    return {"copy"}.union(*(part.get("parameters", {}) for part in parts if isinstance(part, dict)))


def number_paths(node: Any) -> list[str]:
    """The paths of all numbers of a document, as a user would write them."""
    return list(islice(_paths(node, ""), MOST_CHOICES))


def _paths(node: Any, prefix: str) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in ("shapes", "name", "source", "description"):
                yield from _paths(value, f"{prefix}.{key}" if prefix else key)
    elif isinstance(node, list):
        for i, value in enumerate(node):
            name = _name(value, i)
            yield from _paths(value, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield prefix


def with_value(node: Any, steps: Sequence[str | int], value: Any) -> Any:
    """The document with a value at a place. Parts beside the path are shared with the old one."""
    if not steps:
        return value
    step = steps[0]
    if isinstance(node, list) and isinstance(step, int):
        copied = Seq(getattr(node, "at", NOWHERE))
        copied.extend(node)
        copied.values_at = list(getattr(node, "values_at", [NOWHERE] * len(node)))
        copied[step] = with_value(node[step], steps[1:], value)
        return copied
    changed = copy_map(node if isinstance(node, dict) else {})
    key = str(step)
    changed[key] = with_value(changed.get(key, {}), steps[1:], value)
    changed.keys_at.setdefault(key, changed.at)
    changed.values_at.setdefault(key, changed.at)
    return changed


def document_without(node: Any, steps: Sequence[str | int]) -> Any:
    """The document without a key."""
    inner = node[steps[0]]
    if len(steps) > 1:
        return with_value(node, steps[:1], document_without(inner, steps[1:]))
    changed = copy_map(node)
    del changed[str(steps[0])]
    return changed


def copy_map(node: dict[str, Any]) -> Map:
    """A copy of one level."""
    copied = Map(getattr(node, "at", NOWHERE))
    copied.update(node)
    copied.keys_at = dict(getattr(node, "keys_at", dict.fromkeys(node, NOWHERE)))
    copied.values_at = dict(getattr(node, "values_at", dict.fromkeys(node, NOWHERE)))
    return copied
