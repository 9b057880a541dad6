"""The controller and the ground of a run as tables: what, its value, its unit.

A run records its controller as Python writes it. That text is parsed, never run; what it holds
beyond names, numbers and texts is shown as it stands.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ramify.core.messages import pretty
from ramify.sim.run_record import Run

Row = tuple[str, str, str]
FEW: Final = 8
"""Numbers that a row shows one by one."""

_FORCE: Final = "N m or N"
_UNITS: Final[Mapping[str, str]] = {
    "ComputedTorque.kp": "1/s²",
    "ComputedTorque.kd": "1/s",
    "kp": "N m/rad or N/m",
    "kd": "N m s/rad or N s/m",
    "ki": "N m/(rad s) or N/(m s)",
    "limits": _FORCE,
    "tau": _FORCE,
    "values": _FORCE,
    "rate_hz": "Hz",
    "frequency": "Hz",
    "phase": "rad",
    "attitude": "rad",
    "InvertedPendulum.gravity": "m/s²",
    "stiffness": "N/m",
    "damping": "N s/m",
    "horizontal_damping": "N s/m",
    "dissipation": "s/m",
    "slip_speed": "m/s",
    **dict.fromkeys(("duration", "begin", "times", "period"), "s"),
    **dict.fromkeys(("height", "stride", "sway", "lift", "thigh", "shank", "sole", "hip"), "m"),
    **dict.fromkeys(("lengths", "full_depth"), "m"),
}
_COORDINATES: Final = ("start", "end", "points", "offset", "amplitude", "Hold.q")


def controller_rows(result: Run) -> list[Row]:
    """The controller of a run; no rows where it had none."""
    text = result.options.get("control")
    if text in (None, "none"):
        return []
    units = dict.fromkeys(result.units["q"])
    place = pretty(next(iter(units))) if len(units) == 1 else "rad or m"
    try:
        parsed = ast.parse(_readable(str(text)), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return [("controller", str(text), "")]
    return list(_rows("controller", parsed, "", place, ""))


def _readable(text: str) -> str:
    """A repr whose functions, objects and long tables are texts."""
    text = re.sub(r"<function (.+?) at 0x[0-9a-f]+>", lambda m: repr(f"{m[1]} (Python)"), text)
    text = re.sub(r"<([\w.]+) object at 0x[0-9a-f]+>", lambda m: repr(m[1]), text)
    return re.sub(r"\bTable\((\d+ numbers), \w+\)", lambda m: repr(m[1]), text)


def ground_rows(ground: Mapping[str, object]) -> list[Row]:
    """The ground of a run, law and terrain; ``chosen`` names what followed from the robot."""
    rows: list[Row] = []
    exponent = ground.get("exponent")
    chosen = ground.get("chosen")
    followed = chosen if isinstance(chosen, (list, tuple)) else ()
    for name, value in ground.items():
        if isinstance(value, Mapping):
            rows += [(f"{name}: {k}", _number(x), _unit("", k, "")) for k, x in value.items()]
        elif name != "chosen" and value is not None:
            note = " (follows from the robot)" if name in followed else ""
            unit = _unit("", name, "")
            if name == "stiffness" and exponent not in (None, 1.0):
                unit = f"N/m^{exponent}"
            rows.append((_words(name), f"{_number(value)}{note}", unit))
    return rows


def _rows(name: str, node: ast.expr, owner: str, place: str, indent: str) -> Iterator[Row]:
    """A row for a value; for an object its name, and below it a row for each of its fields."""
    parts = _objects(node)
    if parts is None:
        value = _value(node)
        if value is not None:
            yield indent + _words(name), value, _unit(owner, name, place)
        return
    if len(parts) > 2 or (len(parts) > 1 and _names(parts)):
        yield indent + _words(name), _several(parts), ""
        return
    for i, part in enumerate(parts, 1):
        kind = part.func.id if isinstance(part.func, ast.Name) else ast.unparse(part.func)
        yield indent + _words(name) + (f" {i}" if len(parts) > 1 else ""), kind, ""
        for k, argument in enumerate(part.args, 1):
            yield from _rows(str(k), argument, kind, place, indent + "\N{EN SPACE}\N{EN SPACE}")
        for field in part.keywords:
            label = field.arg or "…"
            yield from _rows(label, field.value, kind, place, indent + "\N{EN SPACE}\N{EN SPACE}")


def _several(parts: list[ast.Call]) -> str:
    """Objects in one row: how many of which kind, and their names."""
    kinds = ", ".join(dict.fromkeys(ast.unparse(part.func) for part in parts))
    names = _names(parts)
    return f"{len(parts)} {kinds}" + (f": {', '.join(names)}" if names else "")


def _names(parts: list[ast.Call]) -> list[str]:
    return [
        str(field.value.value)
        for part in parts
        for field in part.keywords
        if field.arg == "name" and isinstance(field.value, ast.Constant)
    ]


def _objects(node: ast.expr) -> list[ast.Call] | None:
    """The objects in a value that is one, or a sequence of them; None for anything else."""
    found = node.elts if isinstance(node, (ast.Tuple, ast.List)) and node.elts else [node]
    calls = [part for part in found if isinstance(part, ast.Call)]
    return calls if len(calls) == len(found) else None


def _value(node: ast.expr) -> str | None:
    """A value as text; None where there is none to show."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        text = ast.unparse(node)
        return None if text == "inf" else text
    return None if value is None else _number(value)


def _number(value: object) -> str:
    """A number to four digits; of many their count and range."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float, list, tuple)):
        return str(value)
    if isinstance(value, (int, float)):
        return f"{value:.4g}"
    flat = list(_flat(value))
    if not all(isinstance(x, (int, float)) for x in flat):
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


def _unit(owner: str, name: str, place: str) -> str:
    if name in _COORDINATES or f"{owner}.{name}" in _COORDINATES:
        return place
    return setting_unit(owner, name)


def setting_unit(owner: str, name: str) -> str:
    """The unit of a field of a controller, a motion or a ground, by the name of its class."""
    return _UNITS.get(f"{owner}.{name}", _UNITS.get(name, ""))
