"""All there is to know about the loops of a robot at a posture: what ``ramify loops`` shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.dynamics.closure import constraint_names
from ramify.dynamics.subsystems import SolutionOrder, plan
from ramify.loops.assemble import assemble
from ramify.loops.constraints import Constraints, constraints, refuse_none
from ramify.loops.drawing import as_svg, spanning_tree_text
from ramify.model.mechanism import edge_of
from ramify.model.mechanism_graph import Edge, SpanningTree, cut_at, least_cdof
from ramify.model.robot import Robot


@dataclass(frozen=True)
class Survey:
    """The loops of a model at ``q``: ``constraints`` there, the spanning ``tree`` with the joints
    it cuts, the ``plan`` of the inverse dynamics. ``least`` are the joints that minimum cumulative
    degree of freedom would cut.
    """

    q: Array
    constraints: Constraints
    tree: SpanningTree
    least: tuple[str, ...]
    plan: SolutionOrder

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The multipliers by name, in the order in which they are found; empty where (8.4) is
        solved as a whole.
        """
        return tuple(
            tuple(self.constraints.names[k] for k in block.unknowns) for block in self.plan.blocks
        )

    @property
    def text(self) -> str:
        """The graph as text."""
        return spanning_tree_text(self.tree)

    @property
    def svg(self) -> str:
        """The graph as SVG."""
        return as_svg(self.tree)


def survey(model: Robot, q: ArrayLike | None = None) -> Survey:
    """The loops of a model at q, or at the posture that ``assemble`` finds from the model's own
    guess.

    Raises LoopError for a model without loops.
    """
    refuse_none(model)
    at = assemble(model).q if q is None else np.asarray(q, dtype=np.float64)
    bodies, edges = graph(model)
    cut = [edge.name for edge in edges[len(model.bodies) :]]
    found = constraints(model, at, None)
    assert found.names == constraint_names(model)
    least = tuple(edge.name for edge in least_cdof(bodies, edges).cut)
    tree = replace(cut_at(bodies, edges, cut), chosen="as in this model")
    return Survey(at, found, tree, least, plan(model))


def graph(model: Robot) -> tuple[list[str], list[Edge]]:
    """Bodies and joints of a model, those that close loops last. A gear or
    coupling joins no bodies and is left out.
    """
    bodies = [body.name for body in model.bodies]
    edges = [
        edge_of(b.joint, bodies[b.parent] if b.parent >= 0 else None, b.name) for b in model.bodies
    ]
    taken = {edge.name for edge in edges}
    for loop in model.loops:
        if loop.couples:
            continue
        ends = []
        for end in (loop.first, loop.second):
            body = -1 if end.link is None else model.attachment(end.link).body
            ends.append(bodies[body] if body >= 0 else None)
        name = loop.name if loop.name not in taken else f"loop {loop.name}"
        edges.append(Edge(name, ends[0], ends[1], loop.kind, loop.freedoms))
    return bodies, edges
