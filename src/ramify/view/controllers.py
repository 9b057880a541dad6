"""The controller and the ground of a run as tables: what, its value, its unit.

A run records both as documents. Units are those of the keys of their kinds; what a document has
beyond these is shown as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ramify.contact.ground import LAWS
from ramify.control import CONTROLLERS
from ramify.documents.forms import PYTHON, ByName, Form
from ramify.documents.kinds import NONE, Key, OneOf, PartForm, Registry, keys_of
from ramify.runs.run_record import Run

Row = tuple[str, str, str]
FEW: Final = 8
"""Numbers that a row shows one by one."""
_INDENT: Final = "\N{EN SPACE}\N{EN SPACE}"


def controller_rows(result: Run) -> list[Row]:
    """The controller of a run; no rows where it had none. Results of the first format have it as a
    text.
    """
    document = result.options.get("control")
    if document in (None, NONE):
        return []
    if not isinstance(document, Mapping):
        return [("controller", str(document), "")]
    kinds = set(result.units["q"])
    rows = _part_rows("controller", document, CONTROLLERS, "")
    return [(name, value, _unit_of(unit, kinds)) for name, value, unit in rows]


def ground_rows(ground: Mapping[str, object], laws: Registry[Any] = LAWS) -> list[Row]:
    """The ground or hard contact of a run, law and terrain; ``chosen`` names what followed from the
    robot.
    """
    chosen = ground.get("chosen")
    followed = chosen if isinstance(chosen, (list, tuple)) else ()
    keys = _keys(laws, ground)
    rows: list[Row] = []
    for name, value in ground.items():
        if isinstance(value, Mapping):
            own = _keys(_registry(keys[name].form) if name in keys else None, value)
            rows += [(f"{name}: {k}", _shown(x), _unit(own, k)) for k, x in value.items()]
        elif name != "chosen" and value is not None:
            note = " (follows from the robot)" if name in followed else ""
            unit = _unit(keys, name).replace("^n", f"^{ground.get('exponent')}")
            rows.append((_words(name), f"{_shown(value)}{note}", unit))
    return rows


def _part_rows(
    name: str, part: Mapping[str, Any], registry: Registry[Any] | None, indent: str,
    record: type | None = None,
) -> Iterator[Row]:  # fmt: skip
    """A row with the kind of a part, and below it a row for each of its keys."""
    word = registry.key if registry is not None else "type"
    yield indent + _words(name), _kind(part, word), ""
    keys = _keys(registry, part) if record is None else _by_name(record)
    for key, value in part.items():
        if key not in (word, "object" if part.get(word) == PYTHON else word):
            yield from _rows(key, value, keys.get(key), indent + _INDENT)


def _rows(name: str, value: Any, key: Key | None, indent: str) -> Iterator[Row]:
    """A row for a value, or the rows of a part, or of a few parts."""
    form = key.form if key is not None else None
    if key is not None and isinstance(form, ByName) and isinstance(value, Mapping):
        yield indent + _words(name), "", ""
        for entry, item in value.items():
            yield from _rows(str(entry), item, replace(key, form=form.of), indent + _INDENT)
        return
    registry = _registry(form) if form is not None else None
    record = _record(form) if form is not None else None
    parts = value if isinstance(value, list | tuple) else [value]
    if not parts or not all(isinstance(part, Mapping) for part in parts):
        if value != "inf":
            yield indent + _words(name), _shown(value), key.unit if key is not None else ""
        return
    word = registry.key if registry is not None else "type"
    names = [str(part["name"]) for part in parts if "name" in part]
    if len(parts) > 2 or (len(parts) > 1 and names):
        kinds = dict.fromkeys(_kind(part, word) for part in parts)
        text = f"{len(parts)} {', '.join(kinds)}".strip()
        yield indent + _words(name), text + (f": {', '.join(names)}" if names else ""), ""
        return
    for i, part in enumerate(parts, 1):
        label = f"{name} {i}" if len(parts) > 1 else name
        yield from _part_rows(label, part, registry, indent, record)


def _kind(part: Mapping[str, Any], word: str) -> str:
    kind = str(part.get(word, ""))
    return f"{part.get('object')} (Python)" if kind == PYTHON else kind


def _keys(registry: Registry[Any] | None, part: Mapping[str, Any]) -> Mapping[str, Key]:
    """The keys of a part by their names; where its kind is not registered, those that all kinds
    have.
    """
    if registry is None:
        return {}
    kind = registry.get(str(part.get(registry.key)))
    if kind is not None:
        return _by_name(kind)
    first, *others = map(_by_name, registry.values())
    return {name: one for name, one in first.items() if all(one == x.get(name) for x in others)}


def _by_name(kind: type) -> Mapping[str, Key]:
    return {one.name: one for one in keys_of(kind).values()}


def _inner(form: Form) -> Iterator[Form]:
    """A form and those that it is made of."""
    yield form
    for name in ("of", "part"):
        if isinstance(below := getattr(form, name, None), Form):
            yield from _inner(below)


def _registry(form: Form) -> Registry[Any] | None:
    """The registry that reads a value or its entries, if one does."""
    return next((one.registry for one in _inner(form) if isinstance(one, OneOf)), None)


def _record(form: Form) -> type | None:
    """The dataclass that a value or its entries are, if they are of one."""
    return next((one.kind for one in _inner(form) if isinstance(one, PartForm)), None)


def _shown(value: object) -> str:
    """A number to four digits; of many their count and range."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float, list, tuple)):
        return str(value)
    if isinstance(value, (int, float)):
        return f"{value:.4g}"
    flat = list(_flat(value))
    if not flat or not all(isinstance(x, (int, float)) for x in flat):
        return ", ".join(map(str, flat))
    if len(set(flat)) == 1:
        return f"{flat[0]:.4g}" + (f", all {len(flat)}" if len(flat) > 1 else "")
    if len(flat) <= FEW:
        return ", ".join(f"{x:.4g}" for x in flat)
    return f"{len(flat)} numbers, {min(flat):.4g} … {max(flat):.4g}"


def _flat(values: Sequence[object]) -> Iterator[float]:
    for x in values:
        if isinstance(x, (list, tuple)):
            yield from _flat(x)
        else:
            yield x  # type: ignore[misc]


def _words(name: str) -> str:
    return "rate" if name == "rate_hz" else name.replace("_", " ")


def _unit(keys: Mapping[str, Key], name: str) -> str:
    return keys[name].unit.replace("^2", "²") if name in keys else ""


def _unit_of(unit: str, kinds: set[str]) -> str:
    """Of a unit such as "rad or m" the one that fits, where all coordinates turn or all slide."""
    turning, _, sliding = unit.partition(" or ")
    one = {"rad": turning, "m": sliding}.get(next(iter(kinds))) if len(kinds) == 1 else None
    return (one or unit if sliding else unit).replace("^2", "²")
