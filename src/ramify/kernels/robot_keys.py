"""The keys of compiled code: every number and word of a robot that a kernel depends on, and nothing
else.

The compiler adds what does not depend on the robot: all sources of this package, the CPU and its
features, the width, the version of LLVM (``ramify.runtime.cache_keys``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ramify.core.records import flatten
from ramify.core.scalar import number
from ramify.dynamics.closure import Closure, TendonPiece, closures
from ramify.dynamics.redundancy import redundancy
from ramify.dynamics.tree import tree_of
from ramify.kernels.layouts import OutputLayout
from ramify.model.driven import driven
from ramify.model.robot import Robot, once
from ramify.runtime.cache_keys import digest


def kernel_key(
    robot: Robot,
    name: str,
    extras: Sequence[Sequence[float]] = (),
    layout: Sequence[OutputLayout] = (),
    parameters: Sequence[str] = (),
) -> str:
    """The key of an algorithm's kernel for a robot; ``extras`` are the columns that say which body
    or joints are meant, ``layout`` the order of the results, ``parameters`` the constants that are
    inputs.
    """
    return digest(
        name,
        robot_key(robot),
        _bytes(x for column in extras for x in column),
        *(_bytes([result.source, *result.places]) for result in layout),
        *parameters,
    )


@once
def robot_key(robot: Robot) -> str:
    """A digest of all constants of a robot that its dynamics depend on: links, parents, root,
    gravity, loops, drives.
    """
    tree = tree_of(robot)
    parts: list[str | bytes] = [
        _bytes(number(x) for link in tree.links for x in flatten(link)),
        " ".join(type(link).__name__ for link in tree.links),
        np.array(tree.parents, dtype=np.int64).tobytes(),
        _bytes(number(x) for x in (*flatten(tree.root), *flatten(tree.gravity))),
    ]
    for closure in closures(robot):
        loop = closure.loop
        parts += [" ".join([loop.kind, *loop.rows]), _bytes([*loop.polynomial, loop.length])]
        parts += [_bytes(closure.sizes), *_between(closure)]
        for length in closure.lengths:
            parts.append(_bytes(x for term in length.terms for x in term))
            for piece in length.pieces:
                parts += [*_between(piece), _bytes([piece.factor])]
    if robot.loops:
        parts.append(_bytes(driven(robot).v))
        rank = redundancy(robot)
        parts.append(_bytes([float(rank.redundant), rank.tolerance]))
    return digest(*parts)


def _between(part: Closure | TendonPiece) -> Iterator[bytes]:
    """Two ends, and the links between them."""
    for end in (part.first, part.second):
        yield _bytes([end.link, *map(number, flatten(end.frame))])
    yield _bytes(x for move in part.moves for x in move)


def _bytes(numbers: Iterable[float]) -> bytes:
    return np.array([float(x) for x in numbers], dtype=np.float64).tobytes()
