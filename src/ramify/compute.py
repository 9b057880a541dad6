"""Where algorithms, tracing and code generation meet: every question a model answers becomes a kernel here."""

from __future__ import annotations

import difflib
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ramify.algorithms import ALGORITHMS, Algorithm
from ramify.choices import Which, extra_columns, watched_locks
from ramify.codegen.backend import Backend, LoopKernels, PlainNumpy, RobotTable, Rolled, Spread, Unrolled
from ramify.codegen.kernel import Kernel, Plan
from ramify.codegen.target import llvm_available
from ramify.dynamics.tree import Matrix, Tree
from ramify.errors import LoopError, RamifyError, StateError
from ramify.model.body import Body
from ramify.model.configuration import check_quaternions, checked, configuration, coordinate_rates, numbers, together
from ramify.model.frame import Array, Frame
from ramify.model.joint import Joint
from ramify.model.link import BallLink
from ramify.model.locks import check_locks, suspect
from ramify.model.model import UDU, Kinematics
from ramify.model.skeleton import as_ball, as_pose, build_skeleton
from ramify.records import flatten
from ramify.spatial import Vec3
from ramify.trace.count import OpCount
from ramify.trace.loops import LoopPort, LoopProgram, LoopTree
from ramify.trace.program import Port, Program, trace

if TYPE_CHECKING:
    from ramify.model.model import Model

_MOST_LINKS = 72  # up to here straight-line code is compiled in the background
_MOST_PAIRS = 1200
_REFUSED_PAIRS = 40_000


def tree_of(model: Model) -> Tree:
    """The tree of a model's links, as numbers."""
    skeleton = model.skeleton
    gravity = Vec3(*(float(g) for g in skeleton.root.rotation.T @ np.array(model.gravity)))
    return Tree(skeleton.links, skeleton.parents, as_pose(skeleton.root), gravity, skeleton.balls)


# ---- one algorithm, three ways ----


def _flat(value: Any) -> list[Any]:
    return value.row_major() if isinstance(value, Matrix) else flatten(value)


def plain_text(
    algorithm: Algorithm, model: Model, extras: Sequence[Sequence[float]], tree: Tree | None = None
) -> Callable[..., list[list[Any]]]:
    """The algorithm over flat lists of scalars of any kind, for one robot; ``tree`` may have other constants than the model."""
    tree = tree or tree_of(model)

    def column(port: LoopPort, scalars: list[Any]) -> list[Any]:
        if port.per in _QUATERNION:
            return model.skeleton.coordinates(scalars, _QUATERNION[port.per])
        if port.per in ("state", "row") or port.count == 1:
            return scalars
        return [tuple(scalars[i : i + port.count]) for i in range(0, len(scalars), port.count)]

    def run(*inputs: list[Any]) -> list[list[Any]]:
        columns = [column(port, scalars) for port, scalars in zip(algorithm.inputs, inputs, strict=True)]
        return [_flat(value) for value in algorithm.text(tree, *columns, *extras)]

    return run


_QUATERNION = {"coordinate": (1.0, 0.0, 0.0, 0.0), "rate": (0.0, 0.0, 0.0, 0.0)}
"""What stands for the quaternion, and for its rate, at a link that has none."""


@cache
def loop_kernels(name: str, balls: bool) -> LoopKernels:
    """The loops of an algorithm, for every robot with or without quaternions."""
    return LoopKernels(lambda: _loop_program(name, balls), name, "balls" if balls else "")


def _loop_program(name: str, balls: bool) -> LoopProgram:
    algorithm = ALGORITHMS[name]
    skeleton = build_skeleton(
        (Body("any", -1, Joint("any", "ball" if balls else "revolute")),)
    )  # only the shape of its records matters
    tree = LoopTree(skeleton.links[0], as_pose(skeleton.root), Vec3(0.0, 0.0, 0.0), balls)
    columns: list[Any] = []
    ports = [LoopPort(p.name, "link", 5 if balls else 1) if p.per in _QUATERNION else p for p in algorithm.inputs]
    for i, port in enumerate(ports):
        if port.per == "state":
            columns.append([tree.graph.symbol(("lane", i, j)) for j in range(port.count)])
        else:
            template = 0.0 if port.count == 1 else (0.0,) * port.count
            columns.append(tree.column(template, [("in", i, j) for j in range(port.count)]))
    extras = [tree.column(0.0, [("extra", i)]) for i in range(len(algorithm.extras))]
    for i, value in enumerate(algorithm.text(tree, *columns, *extras)):
        tree.output(i, value)
    return tree.program(name, ports, algorithm.outputs, len(algorithm.extras))


class _RolledInverse:
    """The inverse of the inertia matrix from the loops of its factors: U^-T D^-1 U^-1 (eq. 5.38)."""

    tier = "rolled"

    def __init__(self, factors: Rolled, links: int) -> None:
        self._factors = factors
        self._links = links

    def llvm_ir(self, width: int) -> str:
        """LLVM text of the factors."""
        return self._factors.llvm_ir(width)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        n, states = self._links, stop - start
        rows, d = np.empty((states, n * n)), np.empty((states, n))
        flags = self._factors.run([a[start:stop] for a in inputs], [rows, d], 0, states)
        U = rows.reshape(states, n, n)
        with np.errstate(all="ignore"):  # what is not finite has been flagged
            np.matmul(U.transpose(0, 2, 1), U * d[:, :, None], out=outputs[0][start:stop].reshape(states, n, n))
        return flags


# ---- kernels ----


def algorithm_of(model: Model, name: str) -> Algorithm:
    """The algorithm of that name: of the tree, or, for a model with loops, the one that honours them."""
    if isinstance(name, str) and name in ALGORITHMS and not (model.loops and name.startswith(_CONCERNED)):
        return ALGORITHMS[name]
    known = {**ALGORITHMS, **model.closed_algorithms}
    if not isinstance(name, str) or name not in known:
        near = difflib.get_close_matches(str(name), known, 3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose one of {', '.join(known)}"
        raise RamifyError(f"there is no algorithm {name!r}; {hint}")
    if model.loops and name in _OPEN_ONLY:
        raise LoopError(f"{name} does not know loops, and {model.name!r} has {len(model.loops)}; ask model.tree, its loops opened")
    return known[name]


_CONCERNED = ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics")
"""Algorithms that loops change; the others are about the tree alone."""
_OPEN_ONLY = ("inverse_dynamics_tangent", "forward_dynamics_tangent")
"""Algorithms of trees that would give wrong numbers for a closed system."""


def make_kernel(model: Model, name: str, tier: str | None, which: Which = None) -> Kernel:
    """A kernel of a model. ``tier`` None: loops at once, straight-line code when the kernel is in demand.

    ``which``: for an algorithm that belongs to one body its index, for one that belongs to some joints their names.
    """
    algorithm = algorithm_of(model, name)
    if tier not in (None, "unrolled", "rolled", "numpy"):
        raise RamifyError(f"tier {tier!r} must be 'unrolled', 'rolled' or 'numpy'")
    tree = tree_of(model)
    links = len(tree.links)
    extras = extra_columns(model, algorithm, which)
    text = plain_text(algorithm, model, extras)
    inputs, outputs = (tuple(Port(p.name, _shape(p, model)) for p in ports) for ports in (algorithm.inputs, algorithm.outputs))

    def answered(*columns: list[Any]) -> list[list[Any]]:
        try:
            return text(*columns)
        except ZeroDivisionError:  # a pivot that is zero whatever the posture
            raise StateError(
                f"{name}: some joint of {model.name!r} moves no mass, its inertia matrix is singular; see model.check()"
            ) from None

    plain = PlainNumpy(answered)

    def program() -> Program:
        return trace(name, answered, inputs, outputs)

    starts = tuple(i for i, _ in model.layout.balls)
    unrolled = Unrolled(program, lambda: f"{_fingerprint(tree, extras, name)}{_loop_fingerprint(model)}", name, starts)
    closed = algorithm is not ALGORITHMS.get(name)
    size = links if all(p.per != "pair" for p in algorithm.outputs) else _pairs(tree) // (_MOST_PAIRS // _MOST_LINKS)
    first: Backend
    better: Unrolled | None = None
    if tier == "numpy" or (tier is None and not _compiler()):
        first = plain
    elif not llvm_available():
        raise RamifyError(f"tier={tier!r} needs llvmlite, which is not installed; tier='numpy' does without")
    elif tier == "unrolled":
        if _pairs(tree) > _REFUSED_PAIRS:
            raise RamifyError(f"{model.name!r} has {links} links: too many for straight-line code; use tier='rolled'")
        first = unrolled
    elif closed:
        if tier == "rolled":
            raise RamifyError(f"{name} of a robot with loops is straight-line code; leave out tier='rolled'")
        first = unrolled if links <= _MOST_LINKS and unrolled.cached() else plain
        better = unrolled if first is plain and links <= _MOST_LINKS else None
    else:
        first = _rolled(algorithm, model, tree, extras)
        if tier is None and size <= _MOST_LINKS:
            if unrolled.cached():
                first = unrolled
            else:
                better = unrolled
    watched = watched_locks(model, algorithm, which)

    def check(q: Array) -> None:
        check_quaternions(list(starts), model.coordinates, q)
        check_locks(watched, model.coordinates, q)

    return Kernel(
        Plan(
            name, model.name, inputs, outputs, program, plain, first, better,
            lambda port, i: _explain(model, algorithm, port, i), 12.0 * links,
            starts, tuple((lock.place, lock.half_turns) for lock in watched), check,
            lambda q: suspect(watched, model.coordinates, q),
        )
    )  # fmt: skip


def _rolled(algorithm: Algorithm, model: Model, tree: Tree, extras: Sequence[Sequence[float]]) -> Backend:
    links = [link if not tree.balls or isinstance(link, BallLink) else as_ball(link, 0.0, Frame()) for link in tree.links]
    constants = np.array([flatten(link) for link in links])
    shared = np.array([*flatten(tree.root), *flatten(tree.gravity)])
    columns = np.array(extras, dtype=np.float64).T if len(extras) else np.zeros((1, 1))
    robot = RobotTable(tree.parents, constants, columns, shared)
    spread = [_spread(model, p) if tree.balls and p.per in _QUATERNION else None for p in algorithm.inputs]
    if algorithm.loops:
        return Rolled(loop_kernels(algorithm.name, tree.balls), robot, spread)
    return _RolledInverse(Rolled(loop_kernels("udu_inverse", tree.balls), robot, spread), len(links))


def _spread(model: Model, port: LoopPort) -> Spread:
    """Five entries per link for the loops of robots with quaternions: see BallLink."""
    rest = np.tile([0.0, *_QUATERNION[port.per]], len(model.skeleton.links))
    places: list[int] = []
    for k, ball in enumerate(model.skeleton.ball):
        places += [5 * k] if ball == 0 else range(5 * k + 1, 5 * k + 5) if ball == 1 else []
    return Spread(rest, places)


def _shape(port: LoopPort, model: Model) -> tuple[int, ...]:
    if port.per in _QUATERNION:
        return (model.nq,)
    if port.per == "pair":
        return (model.nv, model.nv)
    if port.per == "link":
        return (model.nv,) if port.count == 1 else (model.nv, port.count)
    if port.per == "row":
        return (port.count,)
    return () if port.count == 1 else (port.count,)


def _pairs(tree: Tree) -> int:
    """Pairs of a link and one that carries it."""
    depth: list[int] = []
    for parent in tree.parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return sum(depth)


def _fingerprint(tree: Tree, extras: Sequence[Sequence[float]], name: str) -> str:
    h = hashlib.sha256(name.encode())
    numbers = [
        *flatten(tree.root),
        *flatten(tree.gravity),
        *(x for link in tree.links for x in flatten(link)),
        *flatten(list(extras)),
    ]
    h.update(np.array(numbers, dtype=np.float64).tobytes())
    h.update(np.array(tree.parents, dtype=np.int64).tobytes())
    h.update(" ".join(type(link).__name__ for link in tree.links).encode())
    return h.hexdigest()


@cache
def _compiler() -> bool:
    """Whether LLVM is there; its absence is said once."""
    if not llvm_available():
        warnings.warn("llvmlite is not installed: ramify computes with plain NumPy, which is slower", RuntimeWarning, stacklevel=2)
        return False
    return True


def _explain(model: Model, algorithm: Algorithm, port: Port, position: int) -> str:
    """What a number of a port is, in words."""
    ports = {p.name: p for p in (*algorithm.inputs, *algorithm.outputs)}
    kind = ports[port.name]
    if kind.per in _QUATERNION:
        return f"coordinate {model.coordinates[position]!r}"
    if kind.per == "link":
        return f"joint {model.velocities[position // kind.count]!r}"
    if kind.per == "pair":
        return f"row {model.velocities[position // model.nv]!r}, column {model.velocities[position % model.nv]!r}"
    return f"number {position}"


# ---- questions that need more than one call of a kernel ----


def kernel_for(model: Model, name: str, which: Which) -> Kernel:
    """The kernel of an algorithm that belongs to one body, or to some joints."""
    key = f"{name}:{which}"
    found = model._kernels.get(key)
    return found if found is not None else model._kernels.setdefault(key, make_kernel(model, name, None, which))


def _point_of(model: Model, link: str, point: ArrayLike) -> tuple[int, Array]:
    """Body and point in its frame for a point of a link, which may be merged into its body."""
    body, frame = model.attachment(link)
    at = np.asarray(point, dtype=np.float64)
    if at.shape[-1:] != (3,):
        raise StateError(f"point has shape {at.shape}; it must be (..., 3), in m, in the frame of {link!r}")
    return body, at @ frame.rotation.T + frame.position


def jacobian(model: Model, q: ArrayLike, link: str, point: ArrayLike) -> Array:
    """See Model.jacobian."""
    body, at = _point_of(model, link, point)
    if body < 0:
        lead = together(q=configuration(model, "q", q).shape[:-1], point=at.shape[:-1])
        return np.zeros((*lead, 6, model.nv))
    return np.swapaxes(kernel_for(model, "jacobian", body)(q, at), -1, -2)


def jacobian_rate(model: Model, q: ArrayLike, v: ArrayLike, link: str, point: ArrayLike) -> Array:
    """See Model.jacobian_rate."""
    body, at = _point_of(model, link, point)
    if body < 0:
        lead = together(q=configuration(model, "q", q).shape[:-1], v=checked(model, "v", v, model.nv).shape[:-1])
        return np.zeros((*lead, 6))
    found: Array = kernel_for(model, "jacobian_rate", body)(q, v, at)
    return found


def kinematics(model: Model, q: ArrayLike) -> Kinematics:
    """See Model.kinematics."""
    poses = model.kernel("kinematics")(q)[..., list(model.skeleton.last), :]
    return Kinematics(poses[..., :9].reshape(*poses.shape[:-1], 3, 3), poses[..., 9:])


def applied_wrenches(model: Model, wrenches: Mapping[str, ArrayLike], q: ArrayLike) -> Array:
    """External wrenches by link (..., links, 6) from wrenches by name; one on a merged link is moved to its body's origin."""
    if not isinstance(wrenches, Mapping):
        raise StateError(f"wrenches must map body names to arrays (..., 6); it is a {type(wrenches).__name__}")
    given: list[tuple[int, Array]] = []
    for name, value in wrenches.items():
        body, frame = model.attachment(name)
        w = numbers(f"the wrench on {name!r}", value, 6, "[moment; force]")
        if body < 0:
            continue  # the base does not move
        if frame.position.any():
            arm = kinematics(model, q).rotation[..., body, :, :] @ frame.position
            n, f = np.broadcast_arrays(w[..., :3] + np.cross(arm, w[..., 3:]), w[..., 3:])
            w = np.concatenate([n, f], axis=-1)
        given.append((model.skeleton.last[body], w))
    batch = together(**{f"wrench {i}": w.shape[:-1] for i, (_, w) in enumerate(given)})
    out = np.zeros((*batch, len(model.skeleton.links), 6))
    for link, w in given:
        out[..., link, :] += w
    return out


def reactions(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Mapping[str, ArrayLike] | None) -> Array:
    """See Model.reactions."""
    found: Array = model.kernel("reactions")(q, v, a, applied_wrenches(model, wrenches or {}, q))
    return found[..., list(model.skeleton.last), :]


def derivatives(model: Model, name: str, q: ArrayLike, v: ArrayLike, x: ArrayLike) -> tuple[Array, Array, Array]:
    """Partial derivatives of inverse or forward dynamics by its three arguments: directional ones along every axis, one batch."""
    kernel = model.kernel(f"{name}_tangent")
    given = [
        configuration(model, "q", q),
        *(checked(model, n, a, model.nv) for n, a in (("v", v), (ALGORITHMS[name].inputs[2].name, x))),
    ]
    still, at_rest = np.zeros((1, model.nv)), np.zeros((1, model.nq))
    base = [a[..., None, :] for a in given]
    by_q = np.swapaxes(kernel(*base, coordinate_rates(model, given[0]), still, still), -1, -2)
    by_v = np.swapaxes(kernel(*base, at_rest, np.eye(model.nv), still), -1, -2)
    by_x = model.mass_matrix(q) if name == "inverse_dynamics" else model.mass_matrix_inverse(q)
    return by_q, by_v, np.array(np.broadcast_to(by_x, by_q.shape))


def udu(model: Model, q: ArrayLike, level: Literal["joint", "module"]) -> UDU:
    """See Model.udu."""
    U, d = model.kernel("udu")(q)
    if _level(level) == "joint":
        return UDU(U, _diagonal(d))
    blocks = _module_blocks(model)
    within = U * blocks  # the part of U inside the modules: block D is within D within', block U is U within^-1
    return UDU(
        np.linalg.solve(np.swapaxes(within, -1, -2), np.swapaxes(U, -1, -2)).swapaxes(-1, -2),
        (within * d[..., None, :]) @ within.swapaxes(-1, -2),
    )


def udu_inverse(model: Model, q: ArrayLike, level: Literal["joint", "module"]) -> UDU:
    """See Model.udu_inverse."""
    U, d = model.kernel("udu_inverse")(q)
    if _level(level) == "joint":
        return UDU(U, _diagonal(d))
    within = U * _module_blocks(model)
    return UDU(np.linalg.solve(within, U), (within.swapaxes(-1, -2) * d[..., None, :]) @ within)


def _level(level: str) -> str:
    if level not in ("joint", "module"):
        raise RamifyError(f"level {level!r} must be 'joint' or 'module'")
    return level


def _diagonal(d: Array) -> Array:
    return d[..., :, None] * np.eye(d.shape[-1])


def _module_blocks(model: Model) -> Array:
    """(nv, nv): one where two coordinates belong to the same module."""
    of_body = {b: module.index for module in model.modules for b in module.bodies}
    index = np.array([of_body[b] for b, body in enumerate(model.bodies) for _ in range(body.joint.dof)])
    return (index[:, None] == index[None, :]).astype(np.float64)


def op_count(model: Model, name: str, how: str) -> OpCount:
    """See Model.op_count."""
    from ramify.formulations.written import compilable, written_count

    if how == "written":
        return written_count(model, name)
    if how != "compiled":
        raise RamifyError(f"how={how!r} must be 'compiled' or 'written'")
    return model.kernel(compilable(name)).op_count


def fingerprint(model: Model) -> str:
    """A digest of all numbers of a model that its dynamics depend on."""
    return _fingerprint(tree_of(model), (), "") + _loop_fingerprint(model)


def _loop_fingerprint(model: Model) -> str:
    """A digest of the loops and of what drives them; nothing where there are none."""
    if not model.loops:
        return ""
    from ramify.io.yaml_out import to_yaml

    return hashlib.sha256(to_yaml(model).encode()).hexdigest()
