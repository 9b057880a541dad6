"""C99 for traced programs: one header and one source per robot, no dependency but math.h, no memory
but the stack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, Literal

from ramify.core.lookup import LookupTable
from ramify.trace.program import Program

Real = Literal["double", "float"]
"""The type of all numbers."""

_SUFFIX: Final = {"double": "", "float": "f"}
_LEAST, _MOST = 1.17549435e-38, 3.4028234e38  # of a normal float


def identifier(text: str) -> str:
    """A C name from any text."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII) or "robot"
    return f"_{name}" if name[0].isdigit() else name


def _literal(x: float, real: Real) -> str:
    """A number as C writes it; one outside the range of a float becomes its nearest but zero."""
    if not math.isfinite(x):
        return "HUGE_VALF" if real == "float" else "HUGE_VAL"
    if real == "float" and x:
        x = math.copysign(min(max(abs(x), _LEAST), _MOST), x)
    text = f"{x!r}{_SUFFIX[real]}"
    return text if x >= 0.0 else f"({text})"


def _arguments(program: Program) -> tuple[list[str], list[str]]:
    """C names of the inputs and outputs; an output that shares its name with an input gets a
    suffix.
    """
    taken = [p.name for p in program.inputs]
    return taken, [p.name if p.name not in taken else f"{p.name}_out" for p in program.outputs]


def signature(program: Program, robot: str, real: Real = "double") -> str:
    """The C declaration of a program, without semicolon. Arrays are flat, matrices row by row."""
    inputs, outputs = _arguments(program)
    arguments = [
        f"const {real} {name}[{p.size}]" for name, p in zip(inputs, program.inputs, strict=True)
    ]
    arguments += [
        f"{real} {name}[{p.size}]" for name, p in zip(outputs, program.outputs, strict=True)
    ]
    return f"void {identifier(robot)}_{identifier(program.name)}({', '.join(arguments)})"


def c_function(program: Program, robot: str, real: Real = "double") -> str:
    """One C function."""
    graph, f = program.graph, _SUFFIX[real]
    inputs, outputs = _arguments(program)
    value: dict[int, str] = {}
    lines = [f"    (void){name};" for name in inputs]
    for node in program.order:
        op = graph.op(node)
        if op.name == "const":
            value[node] = _literal(graph.payload[node], real)
        elif op.name == "symbol":
            port, position = graph.payload[node]
            value[node] = f"{inputs[port]}[{position}]"
        else:
            value[node] = f"t{node}"
            words = {"f": f}
            if op.has_table:
                table = graph.payload[node]
                words |= {"table": _table_name(table), "last": f"{len(table) - 1}.0{f}"}
            text = op.c.format(*(value[arg] for arg in graph.args[node]), **words)
            lines.append(f"    const {'int' if op.is_truth else real} t{node} = {text};")
    for name, nodes in zip(outputs, program.results, strict=True):
        lines += [f"    {name}[{i}] = {value[node]};" for i, node in enumerate(nodes)]
    return "\n".join([signature(program, robot, real), "{", *lines, "}"])


def c_library(
    programs: Sequence[Program],
    robot: str,
    name: str,
    real: Real = "double",
    about: Sequence[str] = (),
    remarks: Sequence[Sequence[str]] = (),
) -> tuple[str, str]:
    """(header, source) of several functions of one robot; ``name`` is the files' stem. Of the
    header's comments, ``about`` are the lines of the first, ``remarks`` those of each function.
    """
    guard = f"{identifier(name).upper()}_H"
    said = ["SI units, radians; arrays are flat, matrices row by row.", *about]
    declarations: list[str] = []
    for k, program in enumerate(programs):
        declarations += ["", *(_comment(remarks[k]) if remarks else [])]
        declarations.append(f"{signature(program, robot, real)};")
    header = "\n".join(
        [
            f"#ifndef {guard}", f"#define {guard}", "", *_comment(said), "",
            "#ifdef __cplusplus", 'extern "C" {', "#endif", *declarations, "",
            "#ifdef __cplusplus", "}", "#endif", "", "#endif", "",
        ]
    )  # fmt: skip
    functions = "\n\n".join(c_function(program, robot, real) for program in programs)
    tables = "".join(f"{_c_table(table, real)}\n\n" for table in _tables(programs))
    return header, f'#include "{name}.h"\n\n#include <math.h>\n\n{tables}{functions}\n'


def _comment(lines: Sequence[str]) -> list[str]:
    """A comment that no text in it can end."""
    safe = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]
    safe = [line.replace("*/", "* /").replace("/*", "/ *").rstrip("\\") for line in safe]
    if len(safe) == 1:
        return [f"/* {safe[0]} */"]
    return [f"/* {safe[0]}", *(f" * {line}".rstrip() for line in safe[1:]), " */"]


def _tables(programs: Sequence[Program]) -> list[LookupTable]:
    """The tables that some programs look up, each once."""
    nodes = [(p.graph, i) for p in programs for i in p.order if p.graph.op(i).has_table]
    return list({graph.payload[i].digest: graph.payload[i] for graph, i in nodes}.values())


def _table_name(table: LookupTable) -> str:
    return f"table_{table.digest[:16]}"


def _c_table(table: LookupTable, real: Real) -> str:
    entries = [_literal(x, real) for x in table.values.tolist()]
    rows = [f"    {', '.join(entries[i : i + 8])}," for i in range(0, len(entries), 8)]
    head = f"static const {real} {_table_name(table)}[{len(entries)}] = {{"
    return "\n".join([head, *rows, "};"])
