"""The base of a robot whose root joint is free: as a quaternion, as Euler angles, in a plane, or
held.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ramify.core.errors import ModelError
from ramify.model.edits import R, with_locked

BASES: Final = ("fixed", "free", "free_euler", "planar")
"""Ways to give a robot's base."""


def with_base(model: R, base: str) -> R:
    """The model with another joint between the world and its one root.

    base: "free" (unit quaternion), "free_euler" (three Euler angles, YXZ where the file names
    none), "planar" (x, y and the angle about z), or "fixed" (held at the neutral posture). Raises
    ModelError for any other word, and for a robot whose root joint is none of the first three.
    """
    if base not in BASES:
        raise ModelError(f"base {base!r} is not known; choose one of {', '.join(map(repr, BASES))}")
    roots = [body for body in model.bodies if body.parent < 0]
    root = roots[0].joint
    if len(roots) != 1 or root.kind not in BASES[1:]:
        if base == "fixed":
            return model
        what = (
            f"stands on a {root.kind} joint {root.name!r}"
            if len(roots) == 1
            else f"has {len(roots)} roots"
        )
        raise ModelError(
            f"base {base!r}: {model.name} {what}; only a root joint that is free, free_euler or "
            "planar can be changed"
        )
    if base == root.kind:
        return model
    if base == "fixed":
        return with_locked(model, root.name)
    joint = replace(root, kind=base, sequence="", limits=(), elements=(), axis=(0.0, 0.0, 1.0))
    return replace(
        model,
        bodies=tuple(
            replace(body, joint=joint) if body.joint is root else body for body in model.bodies
        ),
    )
