"""Python that runs a simulation again, from what its result has recorded.

A run records its controller as a document. What a document cannot hold, such as a function, stays a
comment, and the listing says that it is not the whole run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from ramify import contact, control, motion
from ramify.contact import CONTACTS, LAWS
from ramify.control import CONTROLLERS
from ramify.core.errors import RamifyError
from ramify.documents.forms import holds_python
from ramify.documents.kinds import NONE, Registry
from ramify.motion import MOTIONS
from ramify.runs.run_options import OPTIONS
from ramify.runs.run_record import Run, json_value

_MOST: Final = 20_000
"""Characters of an argument that are worth repeating."""
_PACKAGES: Final = (control, motion, contact)


def simulate_again(result: Run) -> str:
    """The call of ``rf.simulate``, of the robot in robot.yaml."""
    arguments = list(_arguments(result))
    lines = [x if x.startswith("#") else f"{x}," for x in arguments]
    missing = any(x.startswith("#") for x in arguments)
    head = ["# not the whole run: see the comments"] if missing else []
    body = "\n    ".join(lines)
    load = 'm = rf.load("robot.yaml")  # the file below'
    return "\n".join([*head, "import ramify as rf", "", load, f"r = rf.simulate(m,\n    {body}\n)",
                      "print(r.audit)"])  # fmt: skip


def scenario_again(record: Mapping[str, Any], robot: bool) -> str:
    """The run of the scenario in run.yaml, with its overrides; ``robot``: of the robot in
    robot.yaml.
    """
    arguments, missing = [], []
    for name, value in dict(record.get("overrides", {})).items():
        registry = _REGISTRIES.get(name) if name in record.get("objects", ()) else None
        text = repr(value) if registry is None else object_code(registry, value)
        if text is None or holds_python(value):
            missing.append(f"# {name}: {value}")
        else:
            arguments.append(f"{name}={text}")
    own = ', robot="robot.yaml"' if robot else ""
    head = ["# not the whole run: see the comments", *missing] if missing else []
    return "\n".join([
        *head, "import ramify as rf", "", "# the scenario and the robot are the files below",
        f'r = rf.scenario("run.yaml"{own}).run({", ".join(arguments)})', "print(r.audit)",
    ])  # fmt: skip


def _arguments(result: Run) -> Iterator[str]:
    """The arguments beside the model, and comments on what is missing."""
    options = result.options
    for name, row in OPTIONS.items():
        value = options.get(name)
        if name == "events" or row.record is None or not _worth(name, row.default, value):
            continue
        text: str | None = repr(json_value(value))
        if name == "control" and len(repr(value)) <= _MOST:  # long tables are not even read
            text = object_code(CONTROLLERS, value)
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
    return not (name == "control" and value == NONE)


_REGISTRIES: Final[Mapping[str, Registry[Any]]] = {
    "control": CONTROLLERS, "motion": MOTIONS, "ground": LAWS, "contact": CONTACTS,
}  # fmt: skip


def object_code(registry: Registry[Any], document: object) -> str | None:
    """The call that makes what a document describes; of a kind from outside of ramify the document,
    which ``simulate`` takes as well; None where there is no such thing, as of a function, and for
    the text in an old result.
    """
    if not isinstance(document, Mapping):
        return None
    try:
        thing = registry.from_document(document)
    except RamifyError:
        return None
    try:
        return python_code_of(thing)
    except ValueError:
        return repr(dict(document))


def python_code_of(value: object) -> str:
    """Python that makes a controller, a motion, a ground or a value of their fields: calls of
    ``rf.control``, ``rf.motion`` and ``rf.contact`` without arguments that are None. Raises
    ValueError for an object of another package.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, str | bool | int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        inner = ", ".join(map(python_code_of, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    name = type(value).__qualname__
    package = next((one for one in _PACKAGES if getattr(one, name, 0) is type(value)), None)
    if package is None or not is_dataclass(value):
        raise ValueError(name)
    pairs = [(f.name, getattr(value, f.name)) for f in fields(value) if f.init]
    arguments = ", ".join(f"{name}={python_code_of(x)}" for name, x in pairs if x is not None)
    return f"rf.{package.__name__.rpartition('.')[2]}.{name}({arguments})"
