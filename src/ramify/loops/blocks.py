"""The order in which a sparse square system falls apart: blocks that can be solved one after another.

A system A x = b is given by its pattern alone: which unknowns appear in which equation. A block is a smallest set of equations
that, once the blocks before it are solved, has as many unknowns as equations: it is *determinate*. The blocks are found by
matching each equation with an unknown of its own (augmenting ways) and gathering equations that depend on each other in a circle
(Tarjan).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """Equations and the unknowns they give; unknowns of earlier blocks may appear in them."""

    equations: tuple[int, ...]
    unknowns: tuple[int, ...]


def blocks(pattern: Sequence[Sequence[int]], unknowns: int) -> tuple[Block, ...] | None:
    """The blocks in the order of solution; ``pattern[i]`` lists the unknowns in equation i.

    None where the system is not square, or where some unknowns cannot all be found whatever the numbers are.
    """
    if len(pattern) != unknowns:
        return None
    owner = _matching(pattern, unknowns)
    if owner is None:
        return None
    unknown_of = {equation: k for k, equation in enumerate(owner)}
    needs = [[owner[k] for k in row if owner[k] != i] for i, row in enumerate(pattern)]
    return tuple(Block(tuple(sorted(group)), tuple(sorted(unknown_of[i] for i in group))) for group in _circles(needs))


def _matching(pattern: Sequence[Sequence[int]], unknowns: int) -> list[int] | None:
    """The equation that owns each unknown, a different one each; None where there are too few."""
    owner: list[int | None] = [None] * unknowns

    def claim(equation: int, tried: set[int]) -> bool:
        for k in pattern[equation]:
            if k in tried:
                continue
            tried.add(k)
            holder = owner[k]
            if holder is None or claim(holder, tried):
                owner[k] = equation
                return True
        return False

    if not all(claim(i, set()) for i in range(len(pattern))):
        return None
    return [i for i in owner if i is not None]


def _circles(needs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected sets of a graph, those needed first (Tarjan 1972)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    out: list[list[int]] = []

    def visit(i: int) -> None:
        index[i] = low[i] = len(index)
        stack.append(i)
        for j in needs[i]:
            if j not in index:
                visit(j)
                low[i] = min(low[i], low[j])
            elif j in stack:
                low[i] = min(low[i], index[j])
        if low[i] == index[i]:
            at = stack.index(i)
            out.append(stack[at:])
            del stack[at:]

    for i in range(len(needs)):
        if i not in index:
            visit(i)
    return out
