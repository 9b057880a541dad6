"""What collides with what in MJCF: geoms of the world, ``<pair>`` and ``<exclude>``, from MuJoCo's
compiled arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ramify.files.import_report import ImportReport
from ramify.files.mjcf_geoms import Geoms
from ramify.model.collisions import WORLD, Collisions, DeclaredPair
from ramify.model.robot import Robot
from ramify.model.shape import Shape


class CollisionReader:
    """Reads the collisions of a compiled model ``m`` whose bodies, with these names, are built;
    ``shaped``: names of geoms that have a shape here.
    """

    def __init__(
        self, m: Any, geoms: Geoms, bodies: Sequence[str], robot: Robot, report: ImportReport
    ) -> None:
        self.m, self.geoms, self.bodies, self.robot, self.report = m, geoms, bodies, robot, report
        self.shaped: set[str] = set()

    def collisions(self, world: Sequence[Shape], off: frozenset[str]) -> Collisions:
        """``world``: the shapes of its geoms; ``off``: see ``switched_off``."""
        if "contact" in off:
            return Collisions()
        touching = (shape for shape in world if shape.name or shape.collides)
        shapes = (*self.robot.collisions.world, *touching)
        self.shaped = {shape.name for shape in shapes}
        self.shaped |= {shape.name for body in self.robot.bodies for shape in body.shapes}
        return Collisions(shapes, self.pairs(), self.excludes(), "filterparent" in off)

    def pairs(self) -> tuple[DeclaredPair, ...]:
        m, pairs = self.m, []
        for i, (first, second) in enumerate(zip(m.pair_geom1, m.pair_geom2, strict=True)):
            two = self.geoms.names[int(first)], self.geoms.names[int(second)]
            if not self.shaped.issuperset(two):
                continue  # of meshes and the like, which the report names
            mu, other = (float(x) for x in m.pair_friction[i][:2])
            if mu != other and m.pair_dim[i] > 1:
                text = f"friction {other:g} along the second direction; it is {mu:g} along both"
                self.report.ignored(f"pair of {two[0]} and {two[1]}", text, moves=True)
            pairs.append(DeclaredPair(*two, mu if m.pair_dim[i] > 1 else 0.0))
        return tuple(pairs)

    def excludes(self) -> tuple[tuple[str, str], ...]:
        """By the names of bodies, or of shapes where others are welded to a body."""
        excludes = []
        for signature in self.m.exclude_signature:
            firsts, seconds = (
                self.names_of(b) for b in (int(signature) >> 16, int(signature) & 0xFFFF)
            )
            excludes += [(first, second) for first in firsts for second in seconds]
        return tuple(excludes)

    def names_of(self, b: int) -> list[str]:
        """Names that mean the shapes of a body and no others."""
        m = self.m
        weld = [
            g for g in range(m.ngeom)
            if m.body_weldid[m.geom_bodyid[g]] == m.body_weldid[b] and self.geoms.touches[g]
        ]  # fmt: skip
        moving = b and self.robot.attached[self.bodies[b]].body >= 0
        name = self.bodies[b] if moving else WORLD
        if all(m.geom_bodyid[g] == b for g in weld) and name not in self.geoms.names:
            return [name] if weld else []
        names = [self.geoms.names[g] for g in weld if m.geom_bodyid[g] == b]
        return [name for name in names if name in self.shaped]
