"""Grounds of scenario files: a word, or a mapping with the law, its numbers and the terrain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from ramify.contact.ground import Ground
from ramify.contact.laws import LAWS, TERRAINS
from ramify.contact.robot_on_ground import ContactText
from ramify.contact.schema import GROUNDS, TERRAIN_PARTS
from ramify.contact.terrain import Terrain
from ramify.core.errors import RamifyError
from ramify.core.messages import near, shown
from ramify.documents.mistakes import Mistakes, Path
from ramify.documents.schema import validate
from ramify.documents.yaml_text import parse
from ramify.model.robot import Robot

NONE: Final = "none"
"""The word for no ground."""
_MARKS: Final[Mapping[str, set[str]]] = {
    "height_field": {"heights", "spacing", "origin", "interpolate"},
    "slope": {"slope_deg", "slope", "heading_deg", "heading", "normal"},
}
"""Keys that tell which terrain is meant where no kind is given."""


def read_ground(raw: object, model: Robot) -> Ground | None:
    """A ground from a word, a mapping or YAML text. Raises ModelError with all mistakes."""
    mistakes = Mistakes("ground")
    if isinstance(raw, str) and (raw.lstrip().startswith("{") or ":" in raw):
        raw = parse(raw, mistakes, "a ground is a word or a mapping such as {law: firm}")
    mistakes.root = raw
    found = ground_of(raw, (), mistakes, model)
    mistakes.raise_if_any()
    return found


def ground_of(raw: object, path: Path, mistakes: Mistakes, model: Robot) -> Ground | None:
    """The ground that a part describes; None where it says none, and where there are mistakes,
    which are noted.
    """
    if raw is None or raw == NONE:
        return None
    if isinstance(raw, str):
        raw = {"law": raw}
    if not isinstance(raw, Mapping):
        mistakes.add(
            path,
            f"{shown(raw)} will not do; a word ({', '.join(LAWS)}) or a mapping with a law belongs "
            "here",
        )
        return None
    law = raw.get("law")
    if not isinstance(law, str) or law not in GROUNDS:
        text = "law is missing" if law is None else f"no ground is called {shown(law)}"
        hint = (
            near(str(law), [*GROUNDS, NONE])
            if law is not None
            else f"; there are {', '.join(GROUNDS)}"
        )
        mistakes.add((*path, "law"), f"{text}{hint}")
        return None
    numbers = _part(GROUNDS[law], raw, path, mistakes)
    terrain = (
        _terrain(raw["terrain"], (*path, "terrain"), mistakes)
        if raw.get("terrain") is not None
        else None
    )
    if numbers is None or (terrain is None and raw.get("terrain") is not None):
        return None
    given: dict[str, Any] = {
        key: value for key, value in numbers.items() if key not in ("law", "terrain", "chosen")
    }
    try:
        made = LAWS[law](**given) if terrain is None else LAWS[law](**given, terrain=terrain)
        ContactText(model, made)
        return made
    except RamifyError as error:
        mistakes.add(path, str(error))
        return None


def _terrain(raw: object, path: Path, mistakes: Mistakes) -> Terrain | None:
    """A word, a mapping with a kind, or with nothing but a height, a slope in degrees or radians."""
    if isinstance(raw, str):
        raw = {"kind": raw}
    if isinstance(raw, Mapping) and "kind" not in raw:
        kind = next((word for word, marks in _MARKS.items() if marks & set(raw)), "flat")
        part = raw
        every = list(
            dict.fromkeys(key for one in TERRAIN_PARTS.values() for key in one.model_fields)
        )
        strange = [key for key in raw if key not in every]
        for key in strange:
            mistakes.add(
                (*path, str(key)), f"no terrain has this key{near(str(key), every)}", key=True
            )
        if strange:
            return None
    elif isinstance(raw, Mapping):
        kind, part = raw["kind"], raw
    else:
        mistakes.add(
            path,
            f"{shown(raw)} will not do; a word ({', '.join(TERRAINS)}) or a mapping belongs here",
        )
        return None
    if not isinstance(kind, str) or kind not in TERRAIN_PARTS:
        mistakes.add(
            (*path, "kind"),
            f"no terrain is called {shown(kind)}{near(str(kind), list(TERRAIN_PARTS))}",
        )
        return None
    given = _part(TERRAIN_PARTS[kind], part, path, mistakes)
    if given is None:
        return None
    given.pop("kind", None)
    for name, target in (("slope", "angle"), ("heading", "heading")):
        if f"{name}_deg" in given:
            if name in given:
                mistakes.add((*path, name), f"{name} and {name}_deg say the same; give one")
                return None
            given[target] = math.radians(given.pop(f"{name}_deg"))
        elif name in given:
            given[target] = given.pop(name)
    if "interpolate" in given:
        given["kind"] = given.pop("interpolate")
    try:
        return TERRAINS[kind](**given)
    except RamifyError as error:
        mistakes.add(path, str(error))
        return None


def _part(kind: Any, raw: Any, path: Path, mistakes: Mistakes) -> dict[str, Any] | None:
    """What a part says, its numbers read; None with its mistakes noted."""
    made, wrong = validate(kind, raw, {})
    for where, text, key in wrong:
        mistakes.add((*path, *where), text, key=key)
    return (
        None
        if made is None
        else {
            name: getattr(made, name)
            for name in made.model_fields_set
            if getattr(made, name) is not None
        }
    )
