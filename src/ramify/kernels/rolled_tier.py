"""The rolled tier: one compiled traversal per algorithm serves every robot, whose numbers it reads
from memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ramify.core.arrays import Array
from ramify.core.records import flatten, rebuild
from ramify.core.scalar import number
from ramify.core.spatial import Vec3
from ramify.dynamics.tree import Tree, tree_of
from ramify.dynamics.trunk import FREE, Trunk, split_trunk
from ramify.kernels.algorithms import ALGORITHMS, Algorithm
from ramify.kernels.text import IDENTITY
from ramify.model.body import Body
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.link import BallLink, Screw, Turn
from ramify.model.robot import Robot
from ramify.model.skeleton import Skeleton, as_ball, as_pose, build_skeleton
from ramify.runtime.backend import Arrangement, Backend, scattered
from ramify.runtime.cache_keys import text_key
from ramify.runtime.rolled_backend import RobotTable, Rolled, RolledKernels
from ramify.runtime.staged import Staged
from ramify.trace.rolled_program import Argument, RolledProgram
from ramify.trace.rolled_tree import RolledTree


def rolled(
    algorithm: Algorithm,
    model: Robot,
    tree: Tree,
    extras: Sequence[Sequence[float]],
    arrangements: Mapping[str, Arrangement] = MappingProxyType({}),
) -> Backend:
    """The rolled code of an algorithm with one robot's numbers. ``extras``: the extra columns of
    the algorithm. ``arrangements``: where the entries of an input go that only some links have.
    """
    if algorithm.rolled_as == "stages":
        inertia, slopes = (
            _rolled_text(ALGORITHMS[name], model, tree, (), {})
            for name in ("inertia_and_bias", "inverse_dynamics_slopes")
        )
        return Staged(inertia, slopes, tree.parents, model.nq)
    if algorithm.rolled_as == "factors":
        factors = _rolled_text(ALGORITHMS["udu_inverse"], model, tree, extras, arrangements)
        return _RolledInverse(factors, len(tree.links))
    return _rolled_text(algorithm, model, tree, extras, arrangements)


def _rolled_text(
    algorithm: Algorithm,
    model: Robot,
    tree: Tree,
    extras: Sequence[Sequence[float]],
    arrangements: Mapping[str, Arrangement],
) -> Rolled:
    """The rolled code of the algorithm's text. Where the algorithm has a separate text for a free
    trunk (``on_trunk``) and the robot has one, the loops run over the limbs alone.
    """
    parts = split_trunk(tree) if _has_text_for_trunk(algorithm, tree) else None
    trunk, tree = parts or (None, tree)
    ball_places = model.skeleton.ball[0 if trunk is None else FREE :]
    inputs = [
        _quaternion_arrangement(ball_places, trunk is not None)
        if tree.balls and p.per == "coordinate"
        else arrangements.get(p.name)
        for p in algorithm.inputs
    ]
    code = rolled_kernels(
        algorithm, tree.balls, trunk is not None, columns_are_bodies(algorithm, model)
    )
    return Rolled(code, _robot_table(tree, trunk, ball_places, extras), inputs)


def _robot_table(
    tree: Tree, trunk: Trunk | None, ball_places: Sequence[int], extras: Sequence[Sequence[float]]
) -> RobotTable:
    """The numbers of one robot that rolled code reads. ``ball_places``: see ``Skeleton.ball``."""
    links = [
        link if not tree.balls or isinstance(link, BallLink) else as_ball(link, 0.0, Frame())
        for link in tree.links
    ]
    constants = np.array([flatten(link) for link in links])
    columns = np.array(extras, dtype=np.float64).T if len(extras) else np.zeros((1, 1))
    shared = (tree.root, tree.gravity, *(() if trunk is None else (trunk,)))
    plain_constants = _plain_constants(tree.balls)
    plain = [
        ball == 0 and all(link[i] == x for i, x in plain_constants.items())
        for link, ball in zip(constants, ball_places, strict=True)
    ]
    return RobotTable(tree.parents, constants, columns, np.array(flatten(shared)), plain)


def columns_are_bodies(algorithm: Algorithm, model: Robot) -> bool:
    """Whether rolled code writes a matrix with one column per body in the layout that users get:
    it does where every link (of the limbs, if there is a trunk) is a body.
    """
    if not any(p.per == "pair" and p.count > 1 for p in algorithm.outputs):
        return False
    links, bodies = len(model.skeleton.links), len(model.bodies)
    return links == bodies or (
        links == bodies + FREE - 1 and _has_text_for_trunk(algorithm, tree_of(model))
    )


def _has_text_for_trunk(algorithm: Algorithm, tree: Tree) -> bool:
    """Whether the algorithm has a text for limbs on a free trunk, and the tree is such a robot."""
    return (
        algorithm.on_trunk is not None and len(tree.links) > FREE and split_trunk(tree) is not None
    )


def _quaternion_arrangement(ball_places: Sequence[int], trunk: bool) -> Arrangement:
    """Where the entries of q go: after those of a trunk, five per link, an angle and a quaternion
    (see BallLink). ``ball_places``: see ``Skeleton.ball``.
    """
    lead = FREE + 1 if trunk else 0
    rest = np.concatenate([np.zeros(lead), np.tile([0.0, *IDENTITY], len(ball_places))])
    places = list(range(lead))
    for k, ball in enumerate(ball_places):
        first = lead + 5 * k
        places += [first] if ball == 0 else range(first + 1, first + 5) if ball == 1 else []
    return scattered(len(rest), {place: k for k, place in enumerate(places)}, rest)


@cache
def rolled_kernels(
    algorithm: Algorithm, balls: bool, trunk: bool = False, by_body: bool = False
) -> RolledKernels:
    """The rolled code of an algorithm, for every robot with or without quaternions or a trunk.
    ``by_body``: a trunk has one column, not six, in a matrix with several numbers per pair.
    """
    variant = f"balls {balls} trunk {trunk} by body {by_body}{text_key(algorithm.text)}"
    return RolledKernels(
        lambda: _rolled_program(algorithm, balls, trunk, by_body), algorithm.name, variant
    )


@cache
def _plain_constants(balls: bool) -> dict[int, float]:
    """The constants that all plain links share, by place. A plain link is revolute, without rotor
    inertia, its axis turned about the parent's x axis alone, as in nearly all real robots; rolled
    code has a shorter variant for these.
    """
    link = _sample("ball" if balls else "revolute").links[0]
    unknown = rebuild(link, iter([math.nan] * len(flatten(link))))
    plain = replace(unknown, gamma=Turn(1.0, 0.0), p=Screw(1.0, 0.0), rotor=0.0)
    if isinstance(plain, BallLink):
        plain = replace(plain, coupled=0.0)
    return {i: number(x) for i, x in enumerate(flatten(plain)) if x == x}


def _sample(*kinds: str) -> Skeleton:
    """A chain of joints: only the shape of its records matters."""
    return build_skeleton(
        tuple(Body(f"any{i}", i - 1, Joint(f"any{i}", kind)) for i, kind in enumerate(kinds))
    )


def _rolled_program(algorithm: Algorithm, balls: bool, trunk: bool, by_body: bool) -> RolledProgram:
    skeleton = _sample("ball" if balls else "revolute")
    tree = RolledTree(skeleton.links[0], as_pose(skeleton.root), Vec3(0.0, 0.0, 0.0), balls)
    ports = [_rolled_port(p, balls, trunk) for p in algorithm.inputs]
    trunk_entries, columns = _symbolic_inputs(tree, ports)
    extras = [tree.column(0.0, [("extra", i)]) for i in range(len(algorithm.extras))]
    outputs = list(algorithm.outputs)
    if trunk:
        assert algorithm.on_trunk is not None
        shared = tree.shared(_sample_trunk())
        results = algorithm.on_trunk(tree, shared, *trunk_entries, *columns, *extras)
        columns_of_base = 1 if by_body else None
        outputs = [
            p if p.per == "state" else replace(p, base_rows=FREE, base_columns=columns_of_base)
            for p in outputs
        ]
    else:
        results = algorithm.text(tree, *columns, *extras)
    for i, value in enumerate(results):
        tree.output(i, value)
    program = tree.program(algorithm.name, ports, outputs, len(algorithm.extras))
    quaternions = (FREE // 2,) if trunk else ()
    return replace(program, quaternions=quaternions, plain=_known_at_plain_links(algorithm, balls))


def _symbolic_inputs(tree: RolledTree, ports: Sequence[Argument]) -> tuple[list[Any], list[Any]]:
    """(trunk entries, columns): for each input the symbols of the trunk's entries, and the column
    of the links, or the symbols of an input that belongs to the whole state.
    """
    trunk_entries: list[Any] = []
    columns: list[Any] = []
    for i, port in enumerate(ports):
        trunk_entries.append([tree.graph.symbol(("lane", i, j)) for j in range(port.base_rows)])
        if port.per == "state":
            columns.append([tree.graph.symbol(("lane", i, j)) for j in range(port.count)])
        else:
            template = 0.0 if port.count == 1 else (0.0,) * port.count
            columns.append(tree.column(template, [("in", i, j) for j in range(port.count)]))
    return trunk_entries, columns


def _sample_trunk() -> Trunk:
    """A trunk: only the shape of its record matters."""
    free = _sample("free")
    gravity = Vec3(0.0, 0.0, 0.0)
    parts = split_trunk(Tree(free.links, free.parents, as_pose(free.root), gravity, True))
    assert parts is not None
    return parts[0]


def _known_at_plain_links(algorithm: Algorithm, balls: bool) -> dict[Any, float]:
    """Symbols whose values are known at plain links."""
    known: dict[Any, float] = {("link", i, "k"): x for i, x in _plain_constants(balls).items()}
    if balls:
        for i, port in enumerate(algorithm.inputs):
            if port.per == "coordinate":
                known |= {("in", i, j, "k"): x for j, x in enumerate(IDENTITY, 1)}
    return known


def _rolled_port(port: Argument, balls: bool, trunk: bool) -> Argument:
    """An input as rolled code reads it."""
    if port.per == "coordinate":
        return Argument(port.name, "link", 5 if balls else 1, FREE + 1 if trunk else 0)
    return replace(port, base_rows=FREE * port.count) if trunk and port.per == "link" else port


class _RolledInverse(Backend):
    """The inverse of the inertia matrix, U^-T D^-1 U^-1 (eq. 5.38), from rolled code
    of U^-1 and D^-1.
    """

    tier = "rolled"

    def __init__(self, factors: Rolled, links: int) -> None:
        self._factors, self._links = factors, links
        self.llvm_ir = factors.llvm_ir  # type: ignore[method-assign]

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], start: int, stop: int) -> int:
        n, states = self._links, stop - start
        rows, D_inverse = np.empty((states, n * n)), np.empty((states, n))
        flags = self._factors.run([a[start:stop] for a in inputs], [rows, D_inverse], 0, states)
        U_inverse = rows.reshape(states, n, n)
        with np.errstate(all="ignore"):  # what is not finite has been flagged
            np.matmul(
                U_inverse.transpose(0, 2, 1),
                U_inverse * D_inverse[:, :, None],
                out=outputs[0][start:stop].reshape(states, n, n),
            )
        return flags
