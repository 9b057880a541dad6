"""Python that runs a simulation again, from what its result has recorded.

A run records its controller as Python writes it. That text is parsed, never run. What cannot be
written out, such as a function, stays a comment, and the listing says that it is not the whole run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from ramify import control, motion
from ramify.runs.run_options import OPTIONS
from ramify.runs.run_record import Run, plain

_MOST: Final = 20_000
"""Characters of an argument that are worth repeating."""


def simulate_again(result: Run) -> str:
    """The call of ``rf.simulate``, of the robot in robot.yaml."""
    found = list(_arguments(result))
    lines = [x if x.startswith("#") else f"{x}," for x in found]
    missing = any(x.startswith("#") for x in found)
    head = ["# not the whole run: see the comments"] if missing else []
    body = "\n    ".join(lines)
    load = 'm = rf.load("robot.yaml")  # the file below'
    return "\n".join([*head, "import ramify as rf", "", load, f"r = rf.simulate(m,\n    {body}\n)",
                      "print(r.audit)"])  # fmt: skip


def _arguments(result: Run) -> Iterator[str]:
    """The arguments beside the model, and comments on what is missing."""
    options = result.options
    for name, row in OPTIONS.items():
        value = options.get(name)
        if name == "events" or row.record is None or not _worth(name, row.default, value):
            continue
        text = controller_code(str(value)) if name == "control" else repr(plain(value))
        if name == "wrenches" and not isinstance(value, (Mapping, list, tuple)):
            text = None
        if text is None or len(text) > _MOST:
            said = " ".join(str(value).split())
            yield f"# {name}: {said if len(said) <= 600 else said[:600] + ' …'}"
        else:
            yield f"{name}={text}"
    if "parameters" in options:
        yield f"# parameters: {options['parameters']}"
    if "tau" in options:
        table = "rf.control.TorqueTable(times, tau, interpolate='hold')"
        yield f"# tau: {options['tau']}; with the rollout's own tau, add {table} to the control"
    if result.t[0]:
        yield f"# the run began at t = {result.t[0]:g} s"
    if options.get("events"):
        yield f"# events: {', '.join(map(str, options['events']))}"


def _worth(name: str, default: object, value: Any) -> bool:
    """Whether an option of a run says something: numbers of the method always, whatever the
    defaults will be; all else where it is not the default.
    """
    if value is None or (value == default and not isinstance(default, float)):
        return False
    if name == "method":  # a run that has changed its method tells of it in a sentence
        return " " not in str(value)
    if name == "damping":
        return bool(np.any(np.asarray(value, dtype=np.float64)))
    return not (name == "control" and value == "none")


def controller_code(text: str) -> str | None:
    """A controller's repr with the names that users write; None where it holds what cannot be
    written out.
    """
    try:
        tree = ast.parse(text, mode="eval").body
        return ast.unparse(_named(tree))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _named(node: ast.expr) -> ast.expr:
    """The same with calls of ``rf.control`` and ``rf.motion``, without arguments that are None;
    ValueError for anything but calls by name, tuples and constants.
    """
    if isinstance(node, ast.Constant):
        return node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ast.UnaryOp(ast.USub(), _named(node.operand))
    if isinstance(node, (ast.Tuple, ast.List)):
        return ast.Tuple([_named(x) for x in node.elts], ast.Load())
    if isinstance(node, ast.Name) and node.id == "inf":
        return ast.Call(ast.Name("float"), [ast.Constant("inf")], [])
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError
    where = [x for x in (control, motion) if node.func.id in x.__all__]
    if not where:
        raise ValueError
    given = [ast.keyword(k.arg, _named(k.value)) for k in node.keywords if not _none(k.value)]
    package = ast.Attribute(ast.Name("rf"), where[0].__name__.rpartition(".")[2])
    return ast.Call(ast.Attribute(package, node.func.id), [], given)


def _none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
