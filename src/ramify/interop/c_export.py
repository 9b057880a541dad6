"""A machine as C99 for a controller's board: algorithms, frames, controller, accelerations, steps
and derivatives, in one header, which says the order and the units of all arrays, and one source.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from numpy.typing import ArrayLike

from ramify.contact import kernel as contact_kernel
from ramify.core.arrays import flag
from ramify.core.errors import RamifyError, SimulationError
from ramify.core.file_path import path_of
from ramify.core.names import names_of, one_of
from ramify.core.scalar import Scalar
from ramify.core.version import __version__
from ramify.documents.writing import write_together
from ramify.emit.c99 import Real, c_library, identifier
from ramify.integrate.integrators import scheme_of
from ramify.interop.named_functions import named_function
from ramify.interop.step_text import step_program
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.closed import closed_algorithms
from ramify.kernels.make import kernel
from ramify.model.robot import Robot, the_robot
from ramify.model.units import robot_units
from ramify.plant.field import Field
from ramify.plant.make_field import ControlLike, GroundLike, PlantOptions, make_field
from ramify.trace.interpret import replay
from ramify.trace.jacobian_program import jacobian_program
from ramify.trace.program import Port, Program, trace

_MACHINE: Final = ("passive_forces", "actuator_forces")
_MEANING: Final = {
    "q": "coordinates",
    "v": "velocities",
    "a": "accelerations",
    "tau": "joint forces",
    "u": "joint forces beside the controller's, held during the step",
    "z": "states of the controller and of friction",
    "command": "commands of the actuators",
    "activation": "activations of the actuators",
}
"""What arrays hold, by their names without endings such as ``_next``."""
_REMARKS: Final = {
    "passive_forces": " as they act on the joints; a controller that compensates them "
    "subtracts them"
}


def to_c(
    model: Robot,
    folder: str | os.PathLike[str],
    *,
    algorithms: Sequence[str] = ("inverse_dynamics", "forward_dynamics"),
    frames: Sequence[str] = (),
    control: ControlLike = None,
    ground: GroundLike = None,
    damping: ArrayLike = 0.0,
    step: str | None = None,
    derivatives: bool = False,
    dtype: Real = "double",
) -> tuple[Path, Path]:
    """Write a header and a source file in C99 that need math.h alone and no memory but the stack.
    Returns their paths.

    algorithms: any of ``model.kernel``, and "acceleration" of the whole machine,
    "passive_forces", "actuator_forces"; frames: links and frames, for pose_NAME and jacobian_NAME;
    control, ground, damping: as for rf.simulate; a controller adds its law as ``control``, a ground
    contact_forces and contact_dynamics; step: a fixed-step method, whose step of the machine is
    added; derivatives: add all derivatives of each function; dtype: "double" or "float".

    Raises RamifyError for unknown names, and where a controller is not a law over scalars.
    """
    the_robot(model)
    wanted, shown = names_of("algorithms", algorithms), names_of("frames", frames)
    programs = c_programs(model, wanted, shown, control, ground, damping, step)
    texts = c_texts(model, programs, flag("derivatives", derivatives), dtype)
    out = path_of(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RamifyError(f"the folder {str(folder)!r} cannot be made: {error.strerror}") from None
    write_together({out / name: [text.encode()] for name, text in texts.items()})
    header, source = (out / name for name in texts)
    return header, source


def c_texts(
    model: Robot, programs: Sequence[Program], derivatives: bool = False, dtype: Real = "double"
) -> dict[str, str]:
    """The header and the source of some programs by the names of their files."""
    one_of("dtype", dtype, ("double", "float"))
    if derivatives:
        programs = [made for p in programs for made in (p, _derived(model, p))]
    unique = {p.name: p for p in programs}.values()
    stem = identifier(model.name)
    remarks = [_remark(p) for p in unique]
    header, source = c_library(list(unique), model.name, stem, dtype, _about(model, dtype), remarks)
    return {f"{stem}.h": header, f"{stem}.c": source}


def c_programs(
    model: Robot,
    algorithms: Sequence[str],
    frames: Sequence[str] = (),
    control: ControlLike = None,
    ground: GroundLike = None,
    damping: ArrayLike = 0.0,
    step: str | None = None,
) -> list[Program]:
    """The programs of the functions that ``to_c`` writes."""
    machine = {"control": control, "ground": ground, "damping": damping}
    options = PlantOptions(damping, ground, counted=False)
    whole = make_field(model, control, options)
    out: list[Program] = []
    for name in dict.fromkeys([algorithms] if isinstance(algorithms, str) else algorithms):
        if name == "acceleration":
            out.append(named_function(model, name, machine).program)
        elif name in _MACHINE:
            out.append(named_function(model, name, {}).program)
        else:
            out.append(kernel(model, name).program)
    taken = {program.name: program.name for program in out}
    for frame in dict.fromkeys([frames] if isinstance(frames, str) else frames):
        for name in ("pose", "jacobian"):
            program = named_function(model, name, {"body": frame}).program
            symbol = f"{name}_{identifier(frame)}"
            if symbol in taken:
                raise RamifyError(
                    f"{name} of frame {frame!r} and {taken[symbol]!r} have one name in C, "
                    f"{symbol}; "
                    "leave one out, or rename it"
                )
            taken[symbol] = frame
            out.append(replace(program, name=symbol))
    if ground is not None:
        for what in ("contact_forces", "contact_dynamics"):
            out.append(contact_kernel(model, ground, what).program)
    if control is not None:
        out.append(_law(whole))
    if step is not None:
        scheme = scheme_of(step)
        field = make_field(model, control, options._replace(implicit=scheme.implicit))
        if field.sampled or field.prescribed is not None or not field.traceable:
            raise SimulationError(
                f"a step of the machine needs a continuous law, and {type(field.control).__name__} "
                "is none here; leave the step out, call control at its rate and give its forces"
            )
        out.append(step_program(field, scheme))
    return out


def _law(field: Field) -> Program:
    """(t, q, v, z) -> tau and the rates of z, within the limits of the controller."""
    if field.prescribed is not None or not field.traceable:
        raise SimulationError(
            f"{type(field.control).__name__} has no law that C could hold; give a controller of "
            "rf.control such as PD or ComputedTorque"
        )
    model, n = field.model, field.controlled
    inputs = [Port("t", (1,)), Port("q", (model.nq,)), Port("v", (model.nv,))]
    inputs += [Port("z", (n,))] if n else []
    outputs = [Port("tau", (model.nv,)), *([Port("z_rate", (n,))] if n else [])]

    def text(
        t: list[Scalar], q: list[Scalar], v: list[Scalar], z: Sequence[Scalar] = ()
    ) -> list[list[Scalar]]:
        return list(field.torque(t[0], q, v, z))[: len(outputs)]

    return trace("control", text, inputs, outputs)


def _derived(model: Robot, program: Program) -> Program:
    """All derivatives of a function: by the recursion where there is one, or from its program."""
    name = f"{program.name}_derivatives"
    if name in (closed_algorithms(model) if model.loops else ALGORITHMS):
        return kernel(model, name).program
    sparse, blocks = jacobian_program(program, range(len(program.inputs)))
    entries = [block for row in blocks for block in row]

    def text(*inputs: list[Any]) -> list[list[Any]]:
        values, results = replay(sparse, inputs), list[list[Any]]()
        for block, nodes in zip(entries, sparse.results, strict=True):
            rows: list[list[Any]] = [[0.0] * len(block.pattern) for _ in range(block.rows)]
            places = [(i, k) for k, kept in enumerate(block.pattern) for i in kept]
            for (i, k), node in zip(places, nodes, strict=True):
                rows[i][k] = values[node]
            results.append([x for row in rows for x in row])
        return results

    ports = [
        Port(port.name, (block.rows, len(block.pattern)))
        for port, block in zip(sparse.outputs, entries, strict=True)
    ]
    return trace(name, text, program.inputs, ports)


# ---- comments of the header ----


def _about(model: Robot, dtype: Real) -> list[str]:
    """The robot, what the code needs, and the order and units of its arrays."""
    of = robot_units(model)
    lines = [
        f"{model.name}: written by ramify {__version__}. All numbers are of type {dtype}.",
        "The functions keep nothing between calls, allocate nothing and may run at the same time;",
        "inputs and outputs must not overlap. A 6-vector has its angular part first.",
    ]
    if dtype == "float":
        lines.append("Expect errors of 1e-6 of an array's largest entry; accelerations lose that")
        lines.append("times the condition of the inertia matrix.")
    commands = [actuator.name for actuator in model.actuators]
    for title, names, units in (
        ("q (coordinates)", model.coordinates, of["q"]),
        ("v (velocities; accelerations a: the same per s)", model.velocities, of["v"]),
        ("tau (joint forces)", model.velocities, of["tau"]),
        ("command (actuators)", commands, [""] * len(commands)),
    ):
        if names:
            lines += ["", f"{title}:"]
            named = zip(names, units, strict=True)
            lines += [f"  {i:3d}  {name}  {unit}" for i, (name, unit) in enumerate(named)]
    return lines


def _remark(program: Program) -> list[str]:
    """A function's arguments: name, shape, meaning."""
    ports = [("in ", port) for port in program.inputs]
    ports += [("out", port) for port in program.outputs]
    wide = max(len(port.name) for _, port in ports)
    lines = [f"{program.name.replace('_', ' ')}:{_REMARKS.get(program.name, '')}"]
    for way, port in ports:
        shape = f"({', '.join(map(str, port.shape))})" if port.shape else "(1)"
        lines.append(f"  {way} {port.name:{wide}}  {shape}  {_meaning(port)}".rstrip())
    return lines


def _meaning(port: Port) -> str:
    if port.name == "t":
        return "time; length of the step, s" if port.size == 2 else "time, s"
    result, found, by = port.name.partition("by_")
    if found:
        how = "the numbers of " if result else ""
        along = ", along velocities" if by == "q" and not result else ""
        return f"derivatives of {result.rstrip('_') or 'the result'} by {how}{by} (columns){along}"
    base, _, ending = port.name.partition("_")
    known = _MEANING.get(base, "")
    endings = {"next": f"{known} after the step", "rate": f"rates of the {known}"}
    return endings.get(ending, known if not ending else "")
