"""The traversals of a tree of links: the only loops an algorithm of this folder knows.

An algorithm hands a *step*, a function of one link's constants and records, to a traversal. Here a
traversal runs over plain lists, so it works on any scalar and a traced algorithm comes out
unrolled; ``ramify.trace.rolled_tree`` runs the same step once, on symbols, and so writes a loop. A
*column* holds one record per link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.core.records import add
from ramify.core.scalar import Scalar
from ramify.core.spatial import Vec3
from ramify.model.link import Link, Pose
from ramify.model.robot import Robot, once
from ramify.model.skeleton import as_pose

Column = Sequence[Any]
TreeStep = Callable[..., Any]


@dataclass(frozen=True)
class Tree:
    """Links, parents first; ``parents[k]`` is -1 where link k hangs on the base.

    ``root`` is the links' base frame in the world, ``gravity`` an acceleration in the root frame.
    ``balls`` says whether some joint has a quaternion.
    """

    links: Sequence[Link]
    parents: Sequence[int]
    root: Pose
    gravity: Vec3
    balls: bool = False

    def each(self, step: TreeStep, *columns: Column) -> Column:
        """``step(link, ...)`` for every link by itself."""
        return [step(link, *items) for link, *items in zip(self.links, *columns, strict=True)]

    def outward(self, step: TreeStep, root: Any, *columns: Column) -> Column:
        """``step(link, parent's record, ...)`` from the base to the leaves (the book's forward
        recursion).
        """
        out: list[Any] = []
        for k, link in enumerate(self.links):
            parent = root if self.parents[k] < 0 else out[self.parents[k]]
            out.append(step(link, parent, *(column[k] for column in columns)))
        return out

    def inward(self, step: TreeStep, zero: Any, *columns: Column) -> Column:
        """``step(link, sum over children, ...)`` from the leaves to the base (the book's backward
        recursion).

        The step gives its own record and what it hands to its parent.
        """
        return self.inward_to_base(step, zero, *columns)[0]

    def inward_to_base(self, step: TreeStep, zero: Any, *columns: Column) -> tuple[Column, Any]:
        """``inward``, with the sum of what is handed to the base."""
        n = len(self.links)
        sums: list[Any] = [zero] * (n + 1)  # the base's is the last
        out: list[Any] = [None] * n
        for k in reversed(range(n)):
            out[k], handed = step(self.links[k], sums[k], *(column[k] for column in columns))
            sums[self.parents[k]] = add(sums[self.parents[k]], handed)
        return out, sums[-1]

    def climb(self, step: TreeStep, start: Column, *columns: Column) -> Matrix:
        """From every link k to the base: ``step(carried, child's link and records, parent's link
        and records)``.

        The child is k at first. A step gives the pair of entries (k, j) and (j, k) for the parent
        j, and what it carries on.
        """

        def one(carried: Any, below: Any, above: Any) -> Any:
            pair, carried = step(carried, below, above)
            return (pair,), carried

        return self.climbs(1, one, start, *columns)[0]

    def climbs(self, count: int, step: TreeStep, start: Column, *columns: Column) -> list[Matrix]:
        """``climb`` for several matrices at once: a step gives a pair of entries for each."""
        entries: list[dict[tuple[int, int], Scalar]] = [{} for _ in range(count)]
        for k in range(len(self.links)):
            carried, i, j = start[k], k, self.parents[k]
            while j >= 0:
                own = (self.links[i], *(column[i] for column in columns))
                above = (self.links[j], *(column[j] for column in columns))
                pairs, carried = step(carried, own, above)
                for found, pair in zip(entries, pairs, strict=True):
                    found[k, j], found[j, k] = pair
                i, j = j, self.parents[j]
        return [Matrix(len(self.links), found) for found in entries]

    def hoisted(self, record: Any) -> Any:
        """A record of the whole tree that several steps read: loops compute it once."""
        return record

    def preceded(self, head: Column, column: Column) -> Column:
        """A column with numbers of what carries the tree before it."""
        return [*head, *column]

    def bordered(self, matrix: Matrix, sides: Column, corner: Sequence[Column]) -> Matrix:
        """A matrix with rows and columns of what carries the tree before it.

        ``sides``: for every link two tuples, its entries in these columns and in these rows;
        ``corner``: the rows' own block.
        """
        m = len(corner)
        entries = {(i, j): corner[i][j] for i in range(m) for j in range(m)}
        entries |= {(m + i, m + j): x for (i, j), x in matrix.entries.items()}
        for k, (beside, above) in enumerate(sides):
            entries |= {(m + k, j): x for j, x in enumerate(beside)}
            entries |= {(j, m + k): x for j, x in enumerate(above)}
        return Matrix(m + matrix.n, entries)

    def total(self, step: TreeStep, zero: Any, *columns: Column) -> Any:
        """The sum of ``step(link, ...)`` over all links."""
        total = zero
        for link, *items in zip(self.links, *columns, strict=True):
            total = add(total, step(link, *items))
        return total


@dataclass(frozen=True)
class Matrix:
    """A square matrix over the links; entries that are not stored are zero."""

    n: int
    entries: dict[tuple[int, int], Scalar]

    def with_diagonal(self, diagonal: Column) -> Matrix:
        """A copy of the matrix with its diagonal set."""
        return Matrix(self.n, self.entries | {(k, k): diagonal[k] for k in range(self.n)})

    def row_major(self) -> list[Scalar]:
        return [self.entries.get((i, j), 0.0) for i in range(self.n) for j in range(self.n)]


@once
def tree_of(model: Robot) -> Tree:
    """The tree of a model's links, as numbers (see ``ramify.dynamics.parameters`` for others)."""
    skeleton = model.skeleton
    gravity = Vec3(*(float(g) for g in skeleton.root.rotation.T @ np.array(model.gravity)))
    return Tree(skeleton.links, skeleton.parents, as_pose(skeleton.root), gravity, skeleton.balls)
