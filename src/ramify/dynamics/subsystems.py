"""Determinate and indeterminate subsystems (sections 8.3-8.5): which multipliers follow from which
equations, in what order.

Cut open, a mechanism falls into *subsystems*: the trees that hang on the base. The equations of
motion of a subsystem have as unknowns its driving torques and the multipliers of its cut joints.
With as many equations as unknowns it is determinate and is solved by itself; its multipliers then
act on its neighbours as known wrenches, of which some become determinate in turn.

The same idea goes further. A driving torque appears in the equation of its own joint alone, so only
the *passive* equations, those of joints without an actuator, decide about the multipliers, and they
can be cut finer than by subsystem: into the smallest blocks of equations that give as many
multipliers (:mod:`ramify.dynamics.block_order`). What must be inverted are these blocks, instead
of the whole matrix F of eq. (8.4). Within a block the subsystems are eliminated one after the other
(:mod:`ramify.dynamics.pivoting`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ramify.core.scalar import Scalar, Scalars, number
from ramify.dynamics.block_order import Block, blocks
from ramify.dynamics.closure import closures, constraint_names, reach
from ramify.dynamics.constraint_kinematics import Constraint, loop_constraints
from ramify.dynamics.linear import RANK
from ramify.dynamics.motion import displacements
from ramify.dynamics.pivoting import eliminate
from ramify.dynamics.tree import tree_of
from ramify.model.driven import driven
from ramify.model.robot import Robot

_SEEDS: Final = (1, 2, 3)
_NOTHING: Final = 1e-12
"""Entries of J below this share of the largest are zero at every configuration."""


@dataclass(frozen=True)
class Subsystem:
    """A tree on the base, cut free: ``equations`` of motion, and as unknowns its driving torques
    and multipliers, by name.

    ``determinate``: as many equations as unknowns, so that it is solved by itself. ``after`` is the
    number of the round of the recursion in which it is solved: 1 for what is determinate from the
    start, 2 for what becomes so by that, and so on.
    """

    bodies: tuple[str, ...]
    equations: int
    torques: tuple[str, ...]
    multipliers: tuple[str, ...]
    determinate: bool
    after: int


@dataclass(frozen=True)
class SolutionOrder:
    """How the multipliers are found: ``rows`` are the passive equations (places in v), ``blocks``
    their order of solution.

    ``pattern[k]`` are the links on which row k of J acts at all, ``part[i]`` is the subsystem of
    link i. Pivots up to ``floor`` (m) count as zero: the posture is singular there. ``refused``
    says why the recursion does not apply, if so.
    """

    subsystems: tuple[Subsystem, ...]
    rows: tuple[int, ...]
    driven: tuple[int, ...]
    pattern: tuple[frozenset[int], ...]
    blocks: tuple[Block, ...]
    part: tuple[int, ...]
    floor: float = 0.0
    refused: str = ""


def plan(model: Robot) -> SolutionOrder:
    """The subsystems of a model and the order in which they are solved."""
    driving = tuple(driven(model).v)
    rows = tuple(i for i in range(model.nv) if i not in driving)
    pattern = _pattern(model)
    part = _parts(model.skeleton.parents)
    parts = _subsystems(model, pattern, set(driving), part)
    acting = [k for k, links in enumerate(pattern) if links]  # what acts on nothing carries nothing
    order = blocks(
        [[n for n, k in enumerate(acting) if i in pattern[k]] for i in rows], len(acting)
    )
    if order is not None:
        ordered = tuple(
            Block(tuple(rows[i] for i in b.equations), tuple(acting[n] for n in b.unknowns))
            for b in order
        )
        return SolutionOrder(parts, rows, driving, pattern, ordered, part, RANK * reach(model))
    passive = "no loop holds a passive joint"
    why = f"some constraints depend on each other at every configuration, or {passive}"
    equations, multipliers = f"{len(rows)} passive equations", f"{len(acting)} multipliers"
    if len(rows) > len(acting):
        why = f"{equations} for {multipliers}: fewer actuators than degrees of freedom"
    elif len(rows) < len(acting):
        why = f"{multipliers} for {equations}: redundant constraints, or more actuators than needed"
    return SolutionOrder(parts, rows, driving, pattern, (), part, 0.0, why)


def _pattern(model: Robot) -> tuple[frozenset[int], ...]:
    """The links on which each row of J acts, seen at a few configurations: what vanishes at all of
    them is zero, and so is a row within RANK of its loop's largest, as data are rounded.
    """
    tree, loops = tree_of(model), closures(model)
    acting: list[set[int]] = [set() for _ in constraint_names(model)]
    share = [0.0] * len(acting)
    for seed in _SEEDS:
        q = [float(x) for x in model.tree.random(seed)[0]]
        column = model.skeleton.coordinates(q, (1.0, 0.0, 0.0, 0.0))
        rows = loop_constraints(tree, loops, q, displacements(tree, column), None)
        sizes = [{i: abs(number(x)) for i, x in row.entries.items()} for row in rows]
        tops = [max(size.values(), default=0.0) for size in sizes]
        scaled = [top * row.size for top, row in zip(tops, rows, strict=True)]
        for k, (row, size, most) in enumerate(zip(rows, sizes, tops, strict=True)):
            largest = max(x for x, r in zip(scaled, rows, strict=True) if r.loop == row.loop)
            share[k] = max(share[k], scaled[k] / max(largest, 1e-300))
            acting[k] |= {i for i, x in size.items() if x > _NOTHING * max(most, 1e-3)}
    return tuple(
        frozenset(links if x > RANK else ()) for links, x in zip(acting, share, strict=True)
    )


def _parts(parents: Sequence[int]) -> tuple[int, ...]:
    """The subsystem of each link: the number of its tree on the base."""
    out: list[int] = []
    for parent in parents:
        out.append(out[parent] if parent >= 0 else len(set(out)))
    return tuple(out)


def _subsystems(
    model: Robot, pattern: Sequence[frozenset[int]], driven: set[int], part: Sequence[int]
) -> tuple[Subsystem, ...]:  # fmt: skip
    """The trees on the base, and the rounds of the recursion. Those that no round can solve alone
    are solved together, last.
    """
    skeleton, named = model.skeleton, constraint_names(model)
    roots = sorted(set(part))
    links = {r: {k for k, members in enumerate(part) if members == r} for r in roots}
    unknown = {r: {k for k, acting in enumerate(pattern) if acting & links[r]} for r in roots}
    determined: set[int] = set()
    solved: dict[int, int] = {}
    turn = 0
    while len(solved) < len(roots):
        turn += 1
        ready = [
            r
            for r in roots
            if r not in solved
            and len(links[r]) == len(links[r] & driven) + len(unknown[r] - determined)
        ]
        for r in ready or [r for r in roots if r not in solved]:
            solved[r] = turn
            determined |= unknown[r]
    out = []
    for r in roots:
        members = [b for b, last in enumerate(skeleton.last) if last in links[r]]
        bodies, size = tuple(model.bodies[b].name for b in members), len(links[r])
        torques = tuple(model.velocities[k] for k in sorted(links[r] & driven))
        multipliers = tuple(named[k] for k in sorted(unknown[r]))
        determinate = size == len(torques) + len(multipliers)
        out.append(Subsystem(bodies, size, torques, multipliers, determinate, solved[r]))
    return tuple(out)


# ---- the recursion itself, over any scalar ----


def solve_blocks(
    work: SolutionOrder, rows: Sequence[Constraint], phi: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """(tau, lambda) of J_a' tau_a + J' lambda = phi (eq. 8.3), block by block (eqs. 8.9-8.17).

    phi (nv) are the joint forces of the open tree. tau (nv) is zero at passive joints.
    """
    lam: list[Scalar] = [0.0] * len(rows)
    solved: set[int] = set()
    for block in work.blocks:
        A = [[_entry(work, rows, k, i) for k in block.unknowns] for i in block.equations]
        b = [_remaining(work, rows, phi, lam, solved, i) for i in block.equations]
        for k, value in zip(
            block.unknowns, eliminate(A, b, _groups(work, block), work.floor), strict=True
        ):
            lam[k] = value
        solved.update(block.unknowns)
    tau: list[Scalar] = [0.0] * len(phi)
    for i in work.driven:
        tau[i] = _remaining(work, rows, phi, lam, solved, i)
    return tau, lam


def _groups(work: SolutionOrder, block: Block) -> list[list[int]]:
    """The equations of a block by subsystem, those with the fewest unknowns to spare first."""
    parts = sorted({work.part[i] for i in block.equations})
    groups = [[n for n, i in enumerate(block.equations) if work.part[i] == part] for part in parts]

    def to_spare(group: Sequence[int]) -> int:
        return sum(
            any(block.equations[n] in work.pattern[k] for n in group) for k in block.unknowns
        ) - len(group)

    return sorted(groups, key=to_spare)


def solve_whole(
    work: SolutionOrder, rows: Sequence[Constraint], phi: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """The solution by one elimination of F = [J_a' J'] (eq. 8.4), for comparison."""
    n, driven = len(phi), work.driven
    F = []
    for i in range(n):
        own = [1.0 if i == a else 0.0 for a in driven]
        F.append([*own, *(_entry(work, rows, k, i) for k in range(len(rows)))])
    found = eliminate(F, phi, None, work.floor)
    tau: list[Scalar] = [0.0] * n
    for i, value in zip(driven, found, strict=False):
        tau[i] = value
    return tau, found[len(driven) :]


def _entry(work: SolutionOrder, rows: Sequence[Constraint], k: int, i: int) -> Scalar:
    return rows[k].entries[i] if i in work.pattern[k] else 0.0


def _remaining(
    work: SolutionOrder, rows: Sequence[Constraint], phi: Scalars, lam: Scalars, solved: set[int],
    i: int,
) -> Scalar:  # fmt: skip
    """What of phi the multipliers found so far leave."""
    rest = phi[i]
    for k in sorted(solved):
        if i in work.pattern[k]:
            rest = rest - rows[k].entries[i] * lam[k]
    return rest
