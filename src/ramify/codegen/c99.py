"""C99 for traced programs: one header and one source per robot, no dependency but math.h."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from ramify.core.lookup import LookupTable
from ramify.trace.program import Program

_C: Final = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}",
    "recip": "1.0 / {0}", "sqrt": "sqrt({0})",
    "floor": "floor({0})", "sin": "sin({0})", "cos": "cos({0})", "atan2": "atan2({0}, {1})",
    "lt": "{0} < {1}", "le": "{0} <= {1}", "select": "{0} ? {1} : {2}",
}  # fmt: skip


def identifier(text: str) -> str:
    """A C name from any text."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII) or "robot"
    return f"_{name}" if name[0].isdigit() else name


def _text(x: float) -> str:
    return repr(x) if x >= 0.0 else f"({x!r})"


def _arguments(program: Program) -> tuple[list[str], list[str]]:
    """C names of the inputs and outputs; an output that shares its name with an input gets a
    suffix.
    """
    taken = [p.name for p in program.inputs]
    return taken, [p.name if p.name not in taken else f"{p.name}_out" for p in program.outputs]


def signature(program: Program, robot: str) -> str:
    """The C declaration of a program, without semicolon. Arrays are flat, matrices row by row."""
    inputs, outputs = _arguments(program)
    arguments = [
        f"const double {name}[{p.size}]" for name, p in zip(inputs, program.inputs, strict=True)
    ]
    arguments += [
        f"double {name}[{p.size}]" for name, p in zip(outputs, program.outputs, strict=True)
    ]
    return f"void {identifier(robot)}_{identifier(program.name)}({', '.join(arguments)})"


def c_function(program: Program, robot: str) -> str:
    """One C function."""
    graph = program.graph
    inputs, outputs = _arguments(program)
    value: dict[int, str] = {}
    lines = [f"    (void){name};" for name in inputs]
    for node in program.order:
        op = graph.ops[node]
        if op == "const":
            value[node] = _text(graph.payload[node])
        elif op == "symbol":
            port, position = graph.payload[node]
            value[node] = f"{inputs[port]}[{position}]"
        elif op == "lookup":
            value[node] = f"t{node}"
            place, last = value[graph.args[node][0]], len(graph.payload[node]) - 1
            within = f"{place} > 0.0 ? ({place} < {last}.0 ? {place} : {last}.0) : 0.0"
            name = _table_name(graph.payload[node])
            lines.append(f"    const double t{node} = {name}[(long)({within})];")
        else:
            value[node] = f"t{node}"
            kind = "int" if op in ("lt", "le") else "double"
            lines.append(
                f"    const {kind} t{node} = "
                f"{_C[op].format(*(value[arg] for arg in graph.args[node]))};"
            )
    for name, nodes in zip(outputs, program.results, strict=True):
        lines += [f"    {name}[{i}] = {value[node]};" for i, node in enumerate(nodes)]
    return "\n".join([signature(program, robot), "{", *lines, "}"])


def c_library(programs: Sequence[Program], robot: str, name: str) -> tuple[str, str]:
    """(header, source) of several functions of one robot; ``name`` is the files' stem."""
    guard = f"{identifier(name).upper()}_H"
    declarations = "\n".join(f"{signature(program, robot)};" for program in programs)
    header = "\n".join(
        [
            f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {',
            "#endif", "",
            "/* SI units, radians; arrays are flat, matrices row by row. */", declarations, "",
            "#ifdef __cplusplus", "}", "#endif", "", "#endif", "",
        ]
    )  # fmt: skip
    functions = "\n\n".join(c_function(program, robot) for program in programs)
    tables = "".join(f"{_c_table(table)}\n\n" for table in _tables(programs))
    return header, f'#include "{name}.h"\n\n#include <math.h>\n\n{tables}{functions}\n'


def _tables(programs: Sequence[Program]) -> list[LookupTable]:
    """The tables that some programs look up, each once."""
    nodes = [(p.graph, i) for p in programs for i in p.order if p.graph.ops[i] == "lookup"]
    return list({graph.payload[i].digest: graph.payload[i] for graph, i in nodes}.values())


def _table_name(table: LookupTable) -> str:
    return f"table_{table.digest[:16]}"


def _c_table(table: LookupTable) -> str:
    finite = [repr(x) if math.isfinite(x) else "HUGE_VAL" for x in table.values.tolist()]
    rows = [f"    {', '.join(finite[i : i + 8])}," for i in range(0, len(finite), 8)]
    head = f"static const double {_table_name(table)}[{len(finite)}] = {{"
    return "\n".join([head, *rows, "};"])
