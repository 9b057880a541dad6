"""Straight-line Python from a traced program."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from ramify.trace.ops import OPS
from ramify.trace.program import Program


def python_source(program: Program) -> tuple[str, dict[str, Any]]:
    """The function ``compute(inputs)`` over flat lists, as text, and the names it uses.

    A node that is used once is written where it is used: fewer names are faster.
    """
    graph, order = program.graph, program.order
    names: dict[str, Any] = {op.name: op.on_floats for op in OPS.values() if op.on_floats}
    uses = Counter(arg for node in order for arg in graph.args[node])
    for port in program.results:
        uses.update([*port, *port])  # results keep their names
    texts: dict[int, tuple[str, int]] = {}  # with the depth of nesting
    lines = ["def compute(inputs):"]
    given = [[f"i{p}_{j}" for j in range(port.size)] for p, port in enumerate(program.inputs)]
    lines += [f" {','.join(xs)}, = inputs[{p}]" for p, xs in enumerate(given) if xs]
    for node in order:
        op, args = graph.op(node), [texts[arg] for arg in graph.args[node]]
        if op.name == "const":
            value = graph.payload[node]
            texts[node] = (f"({value!r})" if math.isfinite(value) else f"float('{value}')"), 0
        elif op.name == "symbol":
            port, position = graph.payload[node]
            texts[node] = given[port][position], 0
        else:
            depth = 1 + max(level for _, level in args)
            if op.has_table:
                names[f"table{node}"] = graph.payload[node]
            text = op.python.format(*(text for text, _ in args), table=f"table{node}")
            if uses[node] == 1 and depth < 40:
                texts[node] = f"({text})", depth
            else:
                lines.append(f" x{node}={text}")
                texts[node] = f"x{node}", 0
    results = [f"({''.join(texts[node][0] + ',' for node in port)})" for port in program.results]
    lines.append(f" return {''.join(text + ',' for text in results)}")
    return "\n".join(lines), names
