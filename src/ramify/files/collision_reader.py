"""Shapes of the world, declared pairs and excludes of a robot file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from ramify.documents.forms import Form, Listed, Name, NotedError, Reading
from ramify.documents.kinds import Keys, PartForm
from ramify.files.frame_schema import NOT_NEGATIVE
from ramify.files.shape_schema import SHARE, WorldShapePart
from ramify.model.collisions import WORLD, Collisions, DeclaredPair, shape_places
from ramify.model.robot import Robot

_TWO: Final = Listed(Name(), size=2, said="two names of links or shapes")
_PAIR: Final = Keys({"between": _TWO, "friction": NOT_NEGATIVE, "restitution": SHARE}, ("between",))


def read_collisions(document: Mapping[str, Any], robot: Robot, reading: Reading) -> Collisions:
    """What collides with what, of a file whose robot is built, beside the shapes of its base; what
    is wrong is noted with its place.
    """
    parts: dict[str, list[Any]] = {}
    forms: dict[str, Form] = {"world": PartForm(WorldShapePart), "pairs": _PAIR, "excludes": _TWO}
    for key, form in forms.items():
        parts[key] = []
        for i, raw in enumerate(document.get(key) or ()):
            with suppress(NotedError):
                part = form.read(raw, (key, i), reading)
                parts[key].append(part.to_shape((key, i), reading) if key == "world" else part)
    base = robot.collisions
    collisions = replace(
        base,
        world=(*parts["world"], *base.world),
        pairs=tuple(
            DeclaredPair(first, second, pair.get("friction"), pair.get("restitution"))
            for pair in parts["pairs"]
            for first, second in [pair["between"]]
        ),
        excludes=(*((a, b) for a, b in parts["excludes"]), *base.excludes),
        neighbours=bool(document.get("neighbours_collide", False)),
    )
    links = [(body.name, body.shapes) for body in robot.bodies]
    named = {x for p in shape_places(links, collisions.world) for x in (p.name, p.shape.name)}
    if not reading.mistakes:
        for key, i, text in collisions.mistakes([*robot.attached, *sorted(named - {""}), WORLD]):
            reading.refuse((key, i), text)
    return collisions
