"""Scenario files: a robot, its start, a motion, a controller and the options of a run, in one YAML
document.

All mistakes are reported at once, each with file, line and column.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ramify.api.builders import load_named
from ramify.api.model import Model
from ramify.api.result import Result, simulate
from ramify.contact.grounds import ground_of
from ramify.contact.hard_rows import contact_of
from ramify.control.controller import Controller
from ramify.control.prescribed import Prescribed
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.messages import near, shown
from ramify.documents.file_version import Version, refuse_newer
from ramify.documents.forms import (
    Anything,
    ByName,
    Name,
    NotedError,
    Number,
    Numbers,
    Reading,
    read_items,
)
from ramify.documents.kinds import Keys, PartForm, key, read_part
from ramify.documents.mistakes import Map, Mistakes, Path
from ramify.integrate.integrators import AUTO, HARD, find_integrator, method_names
from ramify.model.driven import driven
from ramify.model.edits import with_gravity
from ramify.motion.coordinate_reader import RobotReading, WholeState
from ramify.motion.gait import Gait
from ramify.motion.trajectory import MOTIONS, Trajectory
from ramify.runs.run_options import OPTIONS
from ramify.scenario_files.scenario_control import controller_of

WANTED: Final = "a scenario file is a mapping with the keys name, robot and t_end"


@dataclass(frozen=True)
class Head:
    """The keys of a scenario file besides the options of a run; the parts with a choice of kinds
    are read one by one.
    """

    version: Version = field(default=1, kw_only=True)
    name: str
    robot: Any
    description: str = field(default="", metadata=key(Name(prose=True)))
    source: str = field(default="", metadata=key(Name(prose=True)))
    initial: Any = None
    motion: Any = None
    controls: Any = field(default=None, metadata=key(ByName(Anything())))


def head_of(document: Map, reading: Reading) -> Head:
    """The head of a scenario file. Raises NotedError once its mistakes are noted."""
    options = [name for name, row in OPTIONS.items() if row.in_files]
    return read_part(Head, document, (), reading, besides=options)


def options_of(document: Map, reading: Reading) -> dict[str, Any]:
    """The options of a run that a scenario file gives, but for its parts. Raises NotedError once
    their mistakes are noted.
    """
    rows = {name: row for name, row in OPTIONS.items() if row.in_files and not row.part}
    form = Keys(
        {name: row.form for name, row in rows.items()},
        tuple(name for name, row in rows.items() if row.required),
    )
    return form.read({name: x for name, x in document.items() if name in rows}, (), reading)


@dataclass(frozen=True)
class RobotOf:
    """Which robot: a built-in name or a path beside the scenario, parameters of its file, its base,
    its gravity in m/s^2.
    """

    name: str
    parameters: dict[str, float] = field(default_factory=dict)
    base: str | None = None
    gravity: Any = field(default=None, metadata=key(Numbers(3), unit="m/s^2"))


@dataclass(frozen=True)
class Initial:
    """The start: coordinates q (nq) and rates v (nv), NaN where the file does not say."""

    q: Any = field(default=None, metadata=key(WholeState("q")))
    v: Any = field(default=None, metadata=key(WholeState("v")))


class Parts(NamedTuple):
    """What a scenario file says, ready to run."""

    name: str
    robot: Model
    q0: Array
    v0: Array
    motion: Trajectory | None
    control: Controller | None
    options: dict[str, Any]
    description: str
    source: str


def read_document(
    document: Map, mistakes: Mistakes, folder: FilePath | None, robot: Model | None
) -> Parts:
    """The parts of a scenario; ``robot`` in place of the one that it names, whose path may be
    relative to ``folder``. Raises ModelError with all mistakes.
    """
    refuse_newer(document, mistakes)
    reading = Reading(mistakes)
    head: Head | None = None
    options: dict[str, Any] = {}
    with suppress(NotedError):  # the other parts may have mistakes, too
        head = head_of(document, reading)
    with suppress(NotedError):
        options = options_of(document, reading)
    _check_method(document, mistakes)
    model = robot or _load(document.get("robot"), reading, folder)
    if model is None:  # nothing else can be judged without the robot
        mistakes.raise_if_any()
        raise AssertionError
    q, v = _initial(document.get("initial"), mistakes, model)
    moved = _motion(document, RobotReading(mistakes, model, q))
    about = RobotReading(mistakes, model, q, context={"motion": moved})
    motion = moved if isinstance(moved, Trajectory) else None
    ground = ground_of(document.get("ground"), ("ground",), about, model)
    q0, v0 = _start(model, q, v, motion)
    options |= {"ground": ground} if ground is not None else {}
    contact = contact_of(document.get("contact"), ("contact",), about, model)
    options |= {"contact": contact} if contact is not None else {}
    wrenches = _wrenches(document.get("wrenches"), about, model)
    options |= {"wrenches": wrenches} if wrenches else {}

    def inverse(motion: Trajectory, rows: int) -> Result:
        """The forces of a motion on a floating base: the same run with its joints prescribed."""
        mistakes.raise_if_any()
        run = {**options, "dt_out": options["t_end"] / max(1, rows - 1)}
        control = Prescribed(motion)
        q, v = start_on_motion(model, control, None, q0, v0)
        return simulate(model, q0=q, v0=v, control=control, **run)

    control = controller_of(document, about, inverse)
    damping = document.get("damping")
    if isinstance(damping, list) and len(damping) != model.nv:
        mistakes.add(("damping",), f"{len(damping)} entries; give one number, or {model.nv}")
    mistakes.raise_if_any()
    assert head is not None
    if model.loops:
        q0, v0 = _assembled(model, q0, v0, ~np.isnan(q), motion, mistakes)
    return Parts(head.name, model, q0, v0, motion, control, options, head.description, head.source)


def _check_method(document: Map, mistakes: Mistakes) -> None:
    method = document.get("method", AUTO)
    hard = document.get("contact") not in (None, "none")
    if not isinstance(method, str) or method.lower() in (AUTO, *([HARD.name] if hard else [])):
        return
    if method.lower() not in method_names():
        text = f"no method is called {shown(method)}{near(method.lower(), list(method_names()))}"
        mistakes.add(("method",), text)
    elif find_integrator(method).fixed and "step" not in document:
        mistakes.add(("method",), f"{method} needs a fixed step: add the key step, in s")


def _load(raw: object, reading: Reading, folder: FilePath | None) -> Model | None:
    """The robot, or None with its mistakes noted."""
    if raw is None:
        return None
    try:
        spec: RobotOf = PartForm(RobotOf, "name").read(raw, ("robot",), reading)
    except NotedError:
        return None
    name = spec.name
    if folder is not None and not FilePath(name).is_absolute() and (folder / name).is_file():
        name = os.fspath(folder / name)
    try:
        model = load_named(name, base=spec.base, **spec.parameters)
        return model if spec.gravity is None else with_gravity(model, spec.gravity)
    except RamifyError as error:
        where = ("robot",) if isinstance(raw, str) else ("robot", "name")
        for line in str(error).splitlines():
            reading.mistakes.add(where, line)
        return None


def _initial(raw: object, mistakes: Mistakes, model: Model) -> tuple[Array, Array]:
    """q (nq) and v (nv) as the file gives them, NaN where it says nothing."""
    nothing = np.full(model.nq, np.nan), np.full(model.nv, np.nan)
    if raw is None:
        return nothing
    try:
        start = read_part(Initial, raw, ("initial",), RobotReading(mistakes, model, nothing[0]))
    except NotedError:
        return nothing
    return start.q, start.v


def _motion(document: Map, reading: RobotReading) -> Trajectory | type[NotedError] | None:
    """The motion; NotedError where it has mistakes."""
    raw = document.get("motion")
    try:
        return None if raw is None else cast(Trajectory, MOTIONS.read(raw, ("motion",), reading))
    except NotedError:
        return NotedError


_PUSH: Final = "[start, end, {link: [moment; force]}] with start < end, in s"
_WRENCHES: Final = f"a mapping from links to 6 numbers, or a list of pushes {_PUSH}"


def _wrenches(raw: object, reading: Reading, model: Model) -> Any:
    """External wrenches as ``rf.simulate`` takes them; None where there are none, or mistakes."""
    where: Path = ("wrenches",)
    try:
        if raw is None or isinstance(raw, Mapping):
            return None if raw is None else _on_links(raw, where, reading, model)
        pushes = []
        for i, push in enumerate(read_items(raw, where, reading, Anything(), _WRENCHES)):
            start, end, on = read_items(push, (*where, i), reading, Anything(), _PUSH, 3)
            times = [Number().read(x, (*where, i, k), reading) for k, x in enumerate((start, end))]
            if times[0] >= times[1]:
                raise reading.refuse((*where, i), f"must be {_PUSH}")
            pushes.append((*times, _on_links(on, (*where, i, 2), reading, model)))
        return pushes
    except NotedError:
        return None


def _on_links(
    raw: object, path: Path, reading: Reading, model: Model
) -> dict[str, tuple[float, ...]]:
    forces: dict[str, tuple[float, ...]] = ByName(Numbers(6)).read(raw, path, reading)
    for name in forces:
        try:
            model.attachment(name)
        except RamifyError as error:
            raise reading.refuse((*path, name), str(error)) from None
    return forces


def _assembled(
    model: Model, q: Array, v: Array, is_given: Any, motion: Trajectory | None, mistakes: Mistakes
) -> tuple[Array, Array]:
    """A start that closes the loops: the driven coordinates and their rates as they are, the
    others found near those given, or near the model's guess.
    """
    chosen = driven(model)
    places = list(zip(chosen.names, chosen.q, chosen.v, strict=True))
    if motion is None and not is_given.any() and not v.any():
        places = []  # m.assemble() decides
    entries = [i for i in model.layout.plain_q if is_given[i] and i not in chosen.q]
    others = {model.coordinates[i]: float(q[i]) for i in entries}
    independent = {name: float(q[i]) for name, i, _ in places}
    rates = {name: float(v[j]) for name, _, j in places}
    loose = [model.velocities[j] for j in range(model.nv) if v[j] and j not in chosen.v]
    if loose:
        text = f"{loose[0]!r} is not driven: its rate follows from the loops"
        driven_ones = ", ".join(chosen.names)
        mistakes.stop(("initial", "v"), f"{text}; give the rates of {driven_ones}")
    try:
        state = model.assemble(independent, rates=rates, guess=others or None)
    except RamifyError as error:
        mistakes.stop(("initial",), str(error))
    return state.q, state.v


def _start(model: Model, q: Array, v: Array, moved: Trajectory | None) -> tuple[Array, Array]:
    """The start: what ``initial`` says, elsewhere what the motion says, elsewhere neutral (or a
    closed model's guess), at rest.
    """
    q0, v0 = model.neutral(), np.zeros(model.nv)
    for name, value in model.guess.items():
        q0[model.coordinates.index(name)] = value
    if moved is not None:
        first = moved.at(0.0)
        if moved.n == model.nv == model.nq:
            q0, v0 = first.q.copy(), first.v.copy()
        elif isinstance(moved, Gait):
            q0, v0 = moved.start(model)
        else:
            chosen = driven(model)
            if len(chosen) == moved.n and -1 not in chosen.q:
                q0[list(chosen.q)], v0[list(chosen.v)] = first.q, first.v
    return np.where(np.isnan(q), q0, q), np.where(np.isnan(v), v0, v)


def start_on_motion(
    model: Model, control: Controller | None, initial: object, q0: Array, v0: Array
) -> tuple[Array, Array]:
    """q0 and v0, where ``initial`` says nothing of them at the start of a prescribed motion: so
    only what a scenario says of its start can differ from the motion. Robots with loops stay as
    they were assembled.
    """
    if not isinstance(control, Prescribed) or model.loops:
        return q0, v0
    said = _initial(initial, Mistakes("initial"), model)
    q, v, _ = control.apply_prescribed_motion(RobotText(model), 0.0, list(q0), list(v0))
    moved = [np.array(x, dtype=np.float64) for x in (q, v)]
    return (
        np.where(np.isnan(said[0]), moved[0], q0),
        np.where(np.isnan(said[1]), moved[1], v0),
    )
