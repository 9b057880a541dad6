"""The order in which a sparse square system falls apart: blocks that can be solved one after
another.

A system A x = b is given by its pattern alone: which unknowns appear in which equation. A block is
a smallest set of equations that, once the blocks before it are solved, has as many unknowns as
equations: it is *determinate*. The blocks are found by matching each equation with an unknown of
its own (augmenting ways) and gathering equations that depend on each other in a circle (Tarjan).
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

    None where the system is not square, or where some unknowns cannot all be found whatever the
    numbers are.
    """
    if len(pattern) != unknowns:
        return None
    owner = _matching(pattern, unknowns)
    if owner is None:
        return None
    unknown_of = {equation: k for k, equation in enumerate(owner)}
    needs = [[owner[k] for k in row if owner[k] != i] for i, row in enumerate(pattern)]
    return tuple(
        Block(tuple(sorted(group)), tuple(sorted(unknown_of[i] for i in group)))
        for group in _circles(needs)
    )


def _matching(pattern: Sequence[Sequence[int]], unknowns: int) -> list[int] | None:
    """The equation that owns each unknown, a different one each; None where there are too few."""
    owner: list[int | None] = [None] * unknowns
    unknown_of: dict[int, int] = {}
    for start in range(len(pattern)):
        asked: dict[int, int] = {}  # unknown -> the equation that would take it
        waiting, free = [start], None
        for equation in waiting:
            for k in pattern[equation]:
                if k not in asked:
                    asked[k] = equation
                    holder = owner[k]
                    if holder is None:
                        free = k
                    else:
                        waiting.append(holder)
            if free is not None:
                break
        if free is None:
            return None
        while True:  # everyone on the way moves on by one
            equation = asked[free]
            moves_on = unknown_of.get(equation, -1)
            owner[free], unknown_of[equation] = equation, free
            if equation == start:
                break
            free = moves_on
    return [i for i in owner if i is not None]


def _circles(needs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected sets of a graph, those needed first (Tarjan 1972)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    open_: list[int] = []
    out: list[list[int]] = []
    for start in range(len(needs)):
        if start in index:
            continue
        calls = [(start, iter(needs[start]))]
        index[start] = low[start] = len(index)
        open_.append(start)
        while calls:
            i, rest = calls[-1]
            j = next(rest, None)
            if j is None:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[i])
                if low[i] == index[i]:
                    at = open_.index(i)
                    out.append(open_[at:])
                    del open_[at:]
            elif j not in index:
                index[j] = low[j] = len(index)
                open_.append(j)
                calls.append((j, iter(needs[j])))
            elif j in open_:
                low[i] = min(low[i], index[j])
    return out
