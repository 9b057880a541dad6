"""The rolled tier: one compiled traversal per algorithm serves every robot, whose numbers it reads
from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ramify.codegen.backend import Backend, RobotTable, Rolled, RolledKernels, Spread
from ramify.core.arrays import Array
from ramify.core.records import flatten
from ramify.core.spatial import Vec3
from ramify.dynamics.tree import Tree
from ramify.kernels.algorithms import ALGORITHMS, Algorithm
from ramify.kernels.text import QUATERNION
from ramify.model.body import Body
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.link import BallLink
from ramify.model.robot import Robot
from ramify.model.skeleton import as_ball, as_pose, build_skeleton
from ramify.trace.rolled import Argument, RolledProgram, RolledTree


def rolled(
    algorithm: Algorithm, model: Robot, tree: Tree, extras: Sequence[Sequence[float]]
) -> Backend:
    links = [
        link if not tree.balls or isinstance(link, BallLink) else as_ball(link, 0.0, Frame())
        for link in tree.links
    ]
    constants = np.array([flatten(link) for link in links])
    shared = np.array([*flatten(tree.root), *flatten(tree.gravity)])
    columns = np.array(extras, dtype=np.float64).T if len(extras) else np.zeros((1, 1))
    robot = RobotTable(tree.parents, constants, columns, shared)
    spread = [
        _spread(model, p) if tree.balls and p.per in QUATERNION else None for p in algorithm.inputs
    ]
    if algorithm.rolls:
        return Rolled(rolled_kernels(algorithm.name, tree.balls), robot, spread)
    return _RolledInverse(
        Rolled(rolled_kernels("udu_inverse", tree.balls), robot, spread), len(links)
    )


def _spread(model: Robot, port: Argument) -> Spread:
    """Five entries per link for the loops of robots with quaternions: see BallLink."""
    rest = np.tile([0.0, *QUATERNION[port.per]], len(model.skeleton.links))
    places: list[int] = []
    for k, ball in enumerate(model.skeleton.ball):
        places += [5 * k] if ball == 0 else range(5 * k + 1, 5 * k + 5) if ball == 1 else []
    return Spread(rest, places)


@cache
def rolled_kernels(name: str, balls: bool) -> RolledKernels:
    """The loops of an algorithm, for every robot with or without quaternions."""
    return RolledKernels(lambda: _loop_program(name, balls), name, "balls" if balls else "")


def _loop_program(name: str, balls: bool) -> RolledProgram:
    algorithm = ALGORITHMS[name]
    skeleton = build_skeleton(
        (Body("any", -1, Joint("any", "ball" if balls else "revolute")),)
    )  # only the shape of its records matters
    tree = RolledTree(skeleton.links[0], as_pose(skeleton.root), Vec3(0.0, 0.0, 0.0), balls)
    columns: list[Any] = []
    ports = [
        Argument(p.name, "link", 5 if balls else 1) if p.per in QUATERNION else p
        for p in algorithm.inputs
    ]
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
            np.matmul(
                U.transpose(0, 2, 1),
                U * d[:, :, None],
                out=outputs[0][start:stop].reshape(states, n, n),
            )
        return flags
