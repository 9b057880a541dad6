"""Counts of ``ramify``'s algorithms as written, on a general robot with the joints of a model."""

from __future__ import annotations

import math
from dataclasses import replace

from ramify.core.errors import RamifyError
from ramify.core.names import one_of
from ramify.core.spatial import Mat3, RigidInertia, Sym3, Vec3
from ramify.dynamics.tree import Tree, tree_of
from ramify.formulations.chain import refuse_loops
from ramify.formulations.counting.general import FORMULATIONS
from ramify.formulations.counting.tally import Tally
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.columns import extra_columns
from ramify.kernels.make import kernel
from ramify.kernels.text import plain_text
from ramify.model.frame import cos_sin
from ramify.model.link import Link, Pose, Turn
from ramify.model.robot import Robot
from ramify.trace.op_count import OpCount


def general_links(model: Robot) -> Tree:
    """The tree of a model with constants that are neither 0 nor 1 wherever a robot of its kind may
    have any.

    What a good choice of frames makes zero stays so: the turn towards a link's first child, the
    angle of a turning joint at q = 0, and what lies between the axes of one joint. The angle of a
    sliding joint is a constant that no choice of frames removes.
    """
    tree = tree_of(model)
    joint_of = [b for b, body in enumerate(model.bodies) for _ in range(body.joint.dof)]
    branched: set[int] = set()
    links: list[Link] = []
    for k, (link, parent) in enumerate(zip(tree.links, tree.parents, strict=True)):
        within = k > 0 and joint_of[k] == joint_of[k - 1]
        links.append(link if within else _general_placement(link, k, parent in branched))
        if k + 1 == len(joint_of) or joint_of[k + 1] != joint_of[k]:
            links[k] = replace(links[k], M=_general_body(k), seat=_general_pose(k))
        branched.add(parent)
    return replace(tree, links=links, gravity=Vec3(1.7, 2.9, -9.2), root=_general_pose(0))


def _general_placement(link: Link, k: int, later_child: bool) -> Link:
    x = 0.1 * (k + 1)
    gamma = Turn(*cos_sin(0.3 + x)) if later_child else Turn(1.0, 0.0)
    theta0 = Turn(1.0, 0.0) if link.p.rho else Turn(*cos_sin(0.4 + x))
    alpha, r0 = Turn(*cos_sin(0.7 + x)), Vec3(0.35 + x, 0.15 + x, 0.25 + x)
    return replace(link, gamma=gamma, alpha=alpha, theta0=theta0, r0=r0)


def _general_body(k: int) -> RigidInertia:
    x = 0.1 * (k + 1)
    I = Sym3(2.31 + x, 2.42 + x, 2.53 + x, 0.011, 0.012, 0.013)  # noqa: E741
    return RigidInertia(1.5 + x, Vec3(0.11 + x, 0.07 + x, 0.05 + x), I)


def _general_pose(k: int) -> Pose:
    (c, s), (d, t) = cos_sin(0.4 + 0.1 * k), cos_sin(0.9 + 0.1 * k)
    return Pose(Mat3(c * d, -s * d, t, s, c, 0.12, -c * t, s * t, d), Vec3(0.21, 0.32, 0.43))


def written_count(model: Robot, name: str) -> OpCount:
    """Operations that the text of an algorithm or of a formulation executes on a general robot with
    the joints of a model.

    ``mul`` holds × and ÷. RamifyError for an unknown name; ModelError where a formulation has no
    place for the robot, or its loops.
    """
    refuse_loops(model)
    if name in FORMULATIONS:
        return FORMULATIONS[name].of(model)
    if name not in ALGORITHMS:
        raise RamifyError(
            f"nothing is called {name!r}; choose one of {', '.join([*ALGORITHMS, *FORMULATIONS])}"
        )
    algorithm, tally = ALGORITHMS[name], Tally()
    text = plain_text(algorithm, model, extra_columns(model, algorithm, None), general_links(model))
    lengths = (math.prod(port.shape(model.nq, model.nv)) for port in algorithm.inputs)
    text(*([tally.number(0.3 + 0.1 * i) for i in range(length)] for length in lengths))
    return tally.count()


def model_op_count(model: Robot, name: str, how: str) -> OpCount:
    """See Model.op_count."""
    one_of("how", how, ("compiled", "written"))
    if how == "written":
        return written_count(model, name)
    if isinstance(name, str) and name in FORMULATIONS and name not in ALGORITHMS:
        remedy = "how='written' (on the command line: --how written)"
        raise RamifyError(
            f"{name} is a formulation, which is not compiled; count it as written: {remedy}"
        )
    return kernel(model, name).op_count
