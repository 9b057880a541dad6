"""C99 for a traced program: a header and a source, no dependency but math.h."""

from __future__ import annotations

import re
from typing import Final

from ramify.trace.program import Program

_C: Final = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}", "recip": "1.0 / {0}", "sqrt": "sqrt({0})",
    "sin": "sin({0})", "cos": "cos({0})", "atan2": "atan2({0}, {1})", "lt": "{0} < {1}", "le": "{0} <= {1}", "select": "{0} ? {1} : {2}",
}  # fmt: skip


def identifier(text: str) -> str:
    """A C name from any text."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII) or "robot"
    return f"_{name}" if name[0].isdigit() else name


def _text(x: float) -> str:
    return repr(x) if x >= 0.0 else f"({x!r})"


def signature(program: Program, robot: str) -> str:
    """The C declaration of a program, without the semicolon."""
    arguments = [f"const double {p.name}[{p.size}]" for p in program.inputs]
    taken = {p.name for p in program.inputs}
    arguments += [f"double {p.name if p.name not in taken else p.name + '_out'}[{p.size}]" for p in program.outputs]
    return f"void {identifier(robot)}_{identifier(program.name)}({', '.join(arguments)})"


def c_source(program: Program, robot: str) -> tuple[str, str]:
    """(header, source) of one function. Arrays are flat, matrices row by row."""
    graph, name = program.graph, f"{identifier(robot)}_{identifier(program.name)}"
    declared = signature(program, robot)
    guard = f"{name.upper()}_H"
    header = f'#ifndef {guard}\n#define {guard}\n\n#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{declared};\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n'
    value: dict[int, str] = {}
    lines = []
    for node in program.order:
        op = graph.ops[node]
        if op == "const":
            value[node] = _text(graph.payload[node])
        elif op == "symbol":
            port, position = graph.payload[node]
            value[node] = f"{program.inputs[port].name}[{position}]"
        else:
            value[node] = f"t{node}"
            kind = "int" if op in ("lt", "le") else "double"
            lines.append(f"    const {kind} t{node} = {_C[op].format(*(value[arg] for arg in graph.args[node]))};")
    taken = {p.name for p in program.inputs}
    for port, nodes in zip(program.outputs, program.results, strict=True):
        out = port.name if port.name not in taken else f"{port.name}_out"
        lines += [f"    {out}[{i}] = {value[node]};" for i, node in enumerate(nodes)]
    unused = [p.name for p in program.inputs]
    silence = "\n".join(f"    (void){name};" for name in unused)
    source = f'#include "{name}.h"\n\n#include <math.h>\n\n{declared}\n{{\n{silence}\n' + "\n".join(lines) + "\n}\n"
    return header, source
