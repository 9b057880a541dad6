"""Compliances R of the rows of hard contact, from the inertia that they meet at one posture.

They decide how fast a solution converges, not what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ramify.contact.hard_system import System
from ramify.core.arrays import Array
from ramify.core.scalar import number

_SHARE: Final = 0.1
_EPSILON: Final = 1e-3
"""Of a link's mean inverse inertia, added where its contacts depend on each other."""
_EPSILON_OF_PAIR: Final = 1e-6
_JOINT: Final = 1e-3
_LOOP: Final = 1e-4
_LEAST: Final = 1e-12


def compliances(
    system: System, links: Sequence[tuple[int, int]], loops: Sequence[bool]
) -> tuple[list[float], float]:
    """(R of every slot, largest inverse inertia of one): R = 0.1 sqrt(w w') of a contact, w being
    the mean of its inverse inertias and w' the harmonic one, as seen through the other contacts of
    its link; 1e-3 w of a stop and of dry friction, 1e-4 w of a loop. system: of numbers; links: of
    the contacts; loops: which single rows are of loops.
    """
    n, nc = len(system.r), len(system.contacts)
    A = np.zeros((n, n))
    for (i, j), x in system.A.items():
        A[i, j] = A[j, i] = number(x)
    rows = np.zeros((len(system.rows), n))
    for k, row in enumerate(system.rows):
        rows[k, list(row)] = [number(x) for x in row.values()]
    singles = rows[3 * nc :]
    A_inverse = _inverse(A)
    w_single = np.maximum(np.einsum("ki,ij,kj->k", singles, A_inverse, singles), _LEAST)
    R_single = np.where(list(loops), _LOOP, _JOINT) * w_single
    stiff = A.copy()
    for k, (row, of_loop) in enumerate(zip(singles, loops, strict=True)):
        bounded = system.singles[k].high is not None
        if of_loop or bounded:  # contacts act through loops and brakes as if they were rigid
            stiff += np.outer(row, row) / R_single[k]
    W = rows[: 3 * nc] @ _inverse(stiff) @ rows[: 3 * nc].T
    R = []
    for c in range(nc):
        block = slice(3 * c, 3 * c + 3)
        w = max(float(np.trace(W[block, block])) / 3.0, _LEAST)
        pair = links[c][1] >= 0
        near = [
            d for d in range(nc) if (_shared(links[c], links[d]) if pair else links[d] == links[c])
        ]
        same = [3 * d + i for d in near for i in range(3)]
        of_link = W[np.ix_(same, same)]
        least = _EPSILON_OF_PAIR if pair else _EPSILON
        of_link = of_link + least * np.trace(of_link) / len(same) * np.eye(len(same))
        at = same.index(3 * c)
        eff = 3.0 / float(np.trace(np.linalg.inv(of_link)[at : at + 3, at : at + 3]))
        R.append(_SHARE * (eff if pair else float(np.sqrt(w * eff))))
    diagonal = [float(W[3 * c : 3 * c + 3, 3 * c : 3 * c + 3].diagonal().max()) for c in range(nc)]
    return [*R, *R_single.tolist()], max([*diagonal, *w_single.tolist()], default=1.0)


def _shared(first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether two contacts act on one body."""
    return bool({*first} & {*second} - {-1})


def _inverse(A: Array) -> Array:
    """The inverse of an inertia matrix; that on its range where it is singular."""
    try:
        return np.asarray(np.linalg.inv(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A), dtype=np.float64)
