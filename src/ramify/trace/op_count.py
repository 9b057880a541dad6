"""Operation counts of a traced program, after folding and sharing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ramify.trace.program import Program


@dataclass(frozen=True)
class OpCount:
    """Multiplications, additions and subtractions, divisions, square roots, and angles whose sine
    and cosine are taken.
    """

    mul: int
    add: int
    div: int
    sqrt: int
    sincos: int

    def __str__(self) -> str:
        return f"{self.mul}M {self.add}A {self.div}D {self.sqrt}S {self.sincos} sincos"


def op_count(program: Program) -> OpCount:
    """Count the operations a program executes; negations are free, as they end in subtractions."""
    graph = program.graph
    n = Counter(graph.op(node).cost for node in program.order)
    angles = {graph.args[node] for node in program.order if graph.op(node).turn is not None}
    return OpCount(n["mul"], n["add"], n["div"], n["sqrt"], len(angles))
