"""Kernels of a robot: an algorithm, its tiers and its key put together, made once and kept with the
robot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from ramify.codegen.backend import Backend, PlainNumpy, Rearranged, Unrolled
from ramify.codegen.cache_keys import text_key
from ramify.codegen.kernel import Kernel, KernelPlan
from ramify.codegen.single_kernel import SingleKernel
from ramify.codegen.straight_python import StraightPython
from ramify.codegen.target import llvm_available
from ramify.core.arrays import Array
from ramify.core.errors import LoopError, RamifyError, StateError
from ramify.core.messages import near
from ramify.core.names import one_of
from ramify.core.warning import warn
from ramify.dynamics.parameters import by_name, chosen, rigid_parameters, tree_with
from ramify.dynamics.tree import Tree, tree_of
from ramify.kernels.algorithms import ALGORITHMS, Algorithm
from ramify.kernels.closed import closed_algorithms
from ramify.kernels.columns import Which, extra_columns, watched_locks
from ramify.kernels.robot_keys import kernel_key
from ramify.kernels.rolled_tier import arranged, rolled
from ramify.kernels.text import QUATERNION, plain_text
from ramify.model.configuration import check_quaternions
from ramify.model.locks import check_locks, suspect
from ramify.model.pivots import never_moved, refuse_massless, without_inertia
from ramify.model.robot import Robot
from ramify.trace.program import Port, Program, trace
from ramify.trace.rolled_program import Argument

MOST_LINKS: Final = 72
"""Links up to which straight-line code is compiled in the background."""
_MOST_PAIRS = 1200
_REFUSED_PAIRS = 40_000

Tier = Literal["unrolled", "rolled", "numpy"]


def kernel(
    robot: Robot,
    name: str,
    tier: Tier | None = None,
    which: Which = None,
    parameters: tuple[str, ...] = (),
) -> Kernel:
    """The kernel of an algorithm, made when it is first asked for; ``which``: of one body, or of
    some joints; ``parameters``: constants of the robot that are its last input, side by side.
    """
    if not isinstance(name, str):
        algorithm_of(robot, name)  # refused there
    plain = tier is None and which is None and not parameters
    key = name if plain else f"{name}/{tier}:{which}{parameters or ''}"
    found: Kernel | None = robot.memo.get(key)
    if found is None:
        found = robot.memo.setdefault(key, make_kernel(robot, name, tier, which, parameters))
    return found


def single_kernel(robot: Robot, name: str) -> SingleKernel:
    """The kernel of an algorithm in single precision."""
    key = f"{name}/single"
    found: SingleKernel | None = robot.memo.get(key)
    if found is not None:
        return found
    exact = kernel(robot, name)
    algorithm = algorithm_of(robot, name)
    reason = ""
    if robot.loops:
        reason = "the robot has loops; ask model.tree, its loops opened"
    elif not unrolls(robot, any(p.per == "pair" for p in algorithm.outputs)):
        reason = "the robot is too large, or there is no compiler"
    if reason:
        raise RamifyError(f"{name} has no kernel in single precision: {reason}")
    layout = algorithm.layout(robot) if algorithm.layout else ()
    starts = tuple(i for i, _ in robot.layout.balls)
    named = f"{name}{text_key(algorithm.text)}"
    made = SingleKernel(exact, kernel_key(robot, named, (), layout), starts)
    return robot.memo.setdefault(key, made)


def algorithm_of(model: Robot, name: str) -> Algorithm:
    """The algorithm of that name: of the tree, or, for a model with loops, the one that honours
    them.
    """
    given = name if isinstance(name, str) else ""
    if given in ALGORITHMS and not (model.loops and given.startswith(_CONCERNED)):
        return ALGORITHMS[given]
    known = {**ALGORITHMS, **closed_algorithms(model)}
    if given not in known:
        asked = sorted(known, key=lambda x: not hasattr(model, x))  # names that users know first
        raise RamifyError(f"there is no algorithm {name!r}{near(str(name), asked)}")
    if model.loops and name in _OPEN_ONLY:
        raise LoopError(
            f"{name} does not know loops, and {model.name!r} has {len(model.loops)}; ask "
            "model.tree, its loops opened"
        )
    return known[name]


_CONCERNED = ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics")
"""Algorithms that loops change; the others are about the tree alone."""
_OPEN_ONLY = (
    "inverse_dynamics_tangent",
    "forward_dynamics_tangent",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_slopes",
    "forward_dynamics_derivatives",
)
"""Algorithms of trees that would give wrong numbers for a closed system."""
_WITHOUT_MASS = (
    "kinematics", "frame_pose", "jacobian", "jacobian_rate", "frame_motion", "regressor",
    "inverse_dynamics_wrenches",
)  # fmt: skip
"""Algorithms with a meaning for robots without mass: statics is one."""


def make_kernel(
    model: Robot,
    question: str | Algorithm,
    tier: str | None,
    which: Which = None,
    parameters: tuple[str, ...] = (),
    columns: Sequence[Sequence[float]] | None = None,
) -> Kernel:
    """A kernel of a model. ``tier`` None: loops at once, straight-line code when the kernel is in
    demand.

    ``which``: for an algorithm that belongs to one body its index, for one that belongs to some
    joints their names. ``parameters`` as in ``kernel``; loops know none. ``columns`` are the extra
    ones of an algorithm that is given itself, a number per link each.
    """
    algorithm = algorithm_of(model, question) if isinstance(question, str) else question
    name = algorithm.name
    closed = isinstance(question, str) and algorithm is not ALGORITHMS.get(name)
    if not parameters and not closed and name not in _WITHOUT_MASS:
        refuse_massless(model, name)
    if tier is not None:
        one_of("tier", tier, ("unrolled", "rolled", "numpy"))
    tree = tree_of(model)
    links = len(tree.links)
    extras = extra_columns(model, algorithm, which) if columns is None else columns
    varied = chosen(rigid_parameters(model), parameters, model.name)
    text: Callable[..., list[list[Any]]] = plain_text(algorithm, model, extras)
    inputs, written = (
        tuple(Port(p.name, _shape(p, model)) for p in ports)
        for ports in (algorithm.inputs, algorithm.outputs)
    )
    if varied:
        inputs += (Port("parameters", (sum(p.size for p in varied),)),)

        def with_values(*columns: list[Any]) -> list[list[Any]]:
            made = tree_with(model, by_name(varied, columns[-1]))
            return plain_text(algorithm, model, extras, made)(*columns[:-1])

        text = with_values
    layout = algorithm.layout(model) if algorithm.layout else ()
    outputs = tuple(result.port for result in layout) or written

    def answered(*columns: list[Any]) -> list[list[Any]]:
        try:
            found = text(*columns)
        except ZeroDivisionError:  # a pivot that is zero whatever the posture
            raise StateError(
                f"{name}: {never_moved(model)}, the inertia matrix is singular; see model.check()"
            ) from None
        return [
            [found[result.source][i] if i >= 0 else 0.0 for i in result.places] for result in layout
        ] or found

    plain = PlainNumpy(answered)

    def program() -> Program:
        return trace(name, answered, inputs, outputs)

    starts = tuple(i for i, _ in model.layout.balls)
    named = f"{name}{text_key(algorithm.text)}"
    unrolled = Unrolled(
        program, lambda: kernel_key(model, named, extras, layout, parameters), name, starts
    )
    size = _size(tree, any(p.per == "pair" for p in algorithm.outputs))
    first: Backend
    better: Unrolled | None = None
    if tier == "numpy":
        first = plain
    elif tier is None and not _compiler():
        first = StraightPython(program, plain) if size <= MOST_LINKS else plain
    elif not llvm_available():
        raise RamifyError(
            f"tier={tier!r} needs llvmlite, which is not installed; tier='numpy' does without"
        )
    elif tier == "unrolled":
        if _pairs(tree) > _REFUSED_PAIRS:
            raise RamifyError(
                f"{model.name!r} has {links} links: too many for straight-line code; use "
                "tier='rolled'"
            )
        first = unrolled
    elif closed or varied:
        if tier == "rolled":
            whose = "with parameters" if varied else "of a robot with loops"
            raise RamifyError(f"{name} {whose} is straight-line code; leave out tier='rolled'")
        fits = (links if closed else size) <= MOST_LINKS
        first = unrolled if fits and unrolled.cached() else plain
        better = unrolled if first is plain and fits else None
    else:
        first = rolled(algorithm, model, tree, extras)
        if layout and not arranged(algorithm, model):
            results = [(result.source, result.places) for result in layout]
            first = Rearranged(first, [port.size for port in written], results)
        if tier is None and size <= MOST_LINKS and links <= algorithm.most:
            if unrolled.cached():
                first = unrolled
            else:
                better = unrolled
    watched = watched_locks(model, algorithm, which)

    def check(q: Array) -> None:
        check_quaternions(list(starts), model.coordinates, q)
        check_locks(watched, model.coordinates, q)

    def pattern() -> list[NDArray[np.bool_]]:
        related = _related(tree)
        found = [
            np.repeat(related, port.count, axis=1).reshape(-1)
            if port.per == "pair"
            else np.ones(made.size, dtype=bool)
            for port, made in zip(algorithm.outputs, written, strict=True)
        ]
        return [
            found[result.source][np.array(result.places)] & (np.array(result.places) >= 0)
            for result in layout
        ] or found

    return Kernel(
        KernelPlan(
            name, model.name, inputs, outputs, program, plain, first, better,
            lambda port, i: _explain(model, algorithm, port, i), 5.0 * links,
            starts, tuple((lock.place, lock.half_turns) for lock in watched), check,
            lambda q: suspect(watched, model.coordinates, q) or without_inertia(model, q),
            algorithm.answer, pattern,
        )
    )  # fmt: skip


def unrolls(model: Robot, pairs: bool = False) -> bool:
    """Whether straight-line code of a robot is small enough to compile; ``pairs``: of a text that
    computes matrices of the joints.
    """
    return llvm_available() and _size(tree_of(model), pairs) <= MOST_LINKS


def _size(tree: Tree, pairs: bool) -> int:
    """How large straight-line code becomes, in links."""
    return _pairs(tree) // (_MOST_PAIRS // MOST_LINKS) if pairs else len(tree.links)


def _shape(port: Argument, model: Robot) -> tuple[int, ...]:
    if port.per in QUATERNION:
        return (model.nq,)
    if port.per == "pair":
        return (model.nv, model.nv * port.count)
    if port.per == "link":
        return (model.nv,) if port.count == 1 else (model.nv, port.count)
    if port.per == "row":
        return (port.count,)
    return () if port.count == 1 else (port.count,)


def _related(tree: Tree) -> NDArray[np.bool_]:
    """(links, links): whether one of two links carries the other."""
    carries = np.eye(len(tree.links), dtype=bool)
    for k, parent in enumerate(tree.parents):
        if parent >= 0:
            carries[k] |= carries[parent]
    return carries | carries.T


def _pairs(tree: Tree) -> int:
    """Pairs of a link and one that carries it."""
    depth: list[int] = []
    for parent in tree.parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return sum(depth)


@cache
def _compiler() -> bool:
    """Whether LLVM is there; its absence is said once."""
    if not llvm_available():
        warn(
            "llvmlite is not installed: ramify computes with Python and NumPy, which is slower",
            RuntimeWarning,
        )
        return False
    return True


def _explain(model: Robot, algorithm: Algorithm, port: Port, position: int) -> str:
    """What a number of a port is, in words."""
    outputs = () if algorithm.layout else algorithm.outputs
    kind = next((p for p in (*algorithm.inputs, *outputs) if p.name == port.name), None)
    if kind is None or kind.per in ("state", "row"):
        return f"number {position}"
    if kind.per in QUATERNION:
        return f"coordinate {model.coordinates[position]!r}"
    if kind.per == "link":
        return f"joint {model.velocities[position // kind.count]!r}"
    row, column = divmod(position, model.nv)
    return f"row {model.velocities[row]!r}, column {model.velocities[column]!r}"
