"""What looks wrong in the shapes of a robot that collide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from ramify.contact.closest import closest, ground_points, pose_of
from ramify.contact.collision_pairs import (
    MANY_PAIRS,
    CollisionPair,
    all_pairs,
    passing_pairs,
    some_pairs,
)
from ramify.contact.touching_points import touching_shapes
from ramify.core.errors import ModelError
from ramify.kernels.queries import kinematics
from ramify.lint.finding import Finding
from ramify.model.frame import Frame
from ramify.model.robot import Robot

_DEEP: Final = 1e-3
"""m: shapes that overlap by less may only be rounded."""
_LOOKED_AT: Final = 512


def shape_findings(model: Robot) -> Iterator[Finding]:
    """Shapes and pairs without a contact, many pairs, and shapes that overlap at rest."""
    try:
        pairs = all_pairs(model)
    except ModelError as error:
        yield Finding("error", model.name, "too-many-pairs", str(error))
        return
    passing = Counter(
        place.shape.kind for place in touching_shapes(model) if not ground_points(place.shape)
    )
    if passing:
        kinds = ", ".join(f"{kind} × {n}" for kind, n in passing.items())
        text = f"{kinds} pass through the ground: use spheres, capsules, boxes or contact points"
        yield Finding("warning", model.name, "no-contact", text)
    between = [pair for pair in pairs if not pair.on_surface]
    missing = [pair for pair in between if not pair.contacts]
    if missing:
        text = f"{passing_pairs(missing)} through each other: {some_pairs(missing)}"
        remedy = "use spheres and capsules, or exclude them"
        yield Finding("warning", model.name, "no-contact", f"{text}; {remedy}")
    if len(between) > MANY_PAIRS:
        text = f"{len(between)} pairs of shapes collide; steps take longer beyond {MANY_PAIRS}"
        yield Finding("note", model.name, "many-pairs", text)
    yield from _overlaps(model, [pair for pair in between if pair.contacts])


def _overlaps(model: Robot, pairs: list[CollisionPair]) -> Iterator[Finding]:
    """Shapes that overlap at the neutral posture."""
    if not pairs or model.loops:
        return
    R, r = kinematics(model, model.neutral())
    poses = [pose_of(Frame(R[b], r[b])) for b in range(len(model.bodies))]
    poses.append(pose_of(Frame()))
    deep = []
    for pair in pairs[:_LOOKED_AT]:
        first, second = poses[pair.body], poses[pair.other]
        contacts = closest(pair.shape, first, pair.other_shape, second)
        gap = min(float(np.asarray(c.gap)) for c in contacts)
        if gap < -_DEEP:
            deep.append((gap, pair.name))
    if deep:
        gap, name = min(deep)
        others = f", and {len(deep) - 1} more pair{'s' * (len(deep) > 2)}" if len(deep) > 1 else ""
        text = f"at the neutral posture the shapes {name} overlap by {-gap:.3g} m{others}"
        remedy = "exclude pairs that always touch, or start elsewhere"
        yield Finding("note", model.name, "shapes-overlap", f"{text}; {remedy}")
