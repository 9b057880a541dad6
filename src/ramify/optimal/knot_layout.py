"""Where the numbers of a knot are in memory.

Quadratic forms are written in [1, dx, du]: row and column 0 hold the gradient. Rows are padded to
whole blocks of as many numbers as there are lanes. Of a Hessian only the blocks that change with
the state are computed; the others are constants of the compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.core.cached import cached_property
from ramify.core.scalar import Scalar, number
from ramify.optimal.machine_step import MachineStep


@dataclass(frozen=True)
class KnotLayout:
    """Sizes of a problem: ``width`` lanes, n deviations of the state, of which the first ``moved``
    follow from the others (0: none do), and m controls.
    """

    width: int
    n: int
    moved: int
    m: int
    balls: tuple[int, ...]
    """Places in dq where the rotations of ball joints begin; empty where nothing is split."""

    @staticmethod
    def of(step: MachineStep, width: int) -> KnotLayout:
        split = step.split
        balls = tuple(j for _, j in step.robot.layout.balls) if split else ()
        return KnotLayout(
            width, step.deviations, step.robot.nv if split else 0, step.controls, balls
        )

    @property
    def rows(self) -> int:
        """The rows of F: deviations that have slopes of their own."""
        return self.n - self.moved

    @property
    def state_blocks(self) -> int:
        """Blocks of a row over [1, dx]."""
        return -(-(1 + self.n) // self.width)

    @property
    def blocks(self) -> int:
        """Blocks of a row over [1, dx, du]."""
        return -(-(1 + self.n + self.m) // self.width)

    @property
    def stride(self) -> int:
        """Numbers of a row over [1, dx, du]."""
        return self.blocks * self.width

    @property
    def state_stride(self) -> int:
        """Numbers of a row over [1, dx]."""
        return self.state_blocks * self.width

    @cached_property
    def turn_blocks(self) -> dict[int, tuple[int, ...]]:
        """For each ball the blocks of a row over [1, dx] that its rotation changes."""
        out = {}
        for j in self.balls:
            places = [*range(1 + j, 4 + j), *range(1 + self.moved + j, 4 + self.moved + j)]
            out[j] = tuple(sorted({place // self.width for place in places}))
        return out

    @property
    def turn_size(self) -> int:
        return sum(3 * self.width * len(blocks) for blocks in self.turn_blocks.values())


@dataclass(frozen=True)
class HessianBlocks:
    """The blocks of a Hessian in [1, dx, du] that the backward pass reads: None for zeros, numbers,
    or the place of the first number among those that are computed.
    """

    blocks: dict[tuple[int, int], tuple[float, ...] | int | None]
    size: int
    places: tuple[tuple[int, int], ...]
    """Row and column of each number that is computed."""

    @staticmethod
    def of(layout: KnotLayout, matrix: Sequence[Sequence[Scalar]]) -> HessianBlocks:
        """The blocks of a symmetric matrix over [1, dx, du]."""
        w, n, size = layout.width, layout.n, 1 + layout.n + layout.m
        blocks: dict[tuple[int, int], tuple[float, ...] | int | None] = {}
        places: list[tuple[int, int]] = []
        for i in range(size):
            first = i // w if 0 < i <= n else 0
            last = layout.state_blocks if 0 < i <= n else layout.blocks
            for b in range(first, last):
                columns = range(b * w, (b + 1) * w)
                row = [matrix[i][j] if j < size else 0.0 for j in columns]
                if all(isinstance(x, (float, int)) for x in row):
                    values = tuple(float(number(x)) for x in row)
                    blocks[i, b] = values if any(values) else None
                else:
                    blocks[i, b] = len(places)
                    places += [(i, j) for j in columns]
        return HessianBlocks(blocks, len(places), tuple(places))

    def computed(self, matrix: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """The numbers of the blocks that change."""
        size = len(matrix)
        return [matrix[i][j] if j < size else 0.0 for i, j in self.places]
