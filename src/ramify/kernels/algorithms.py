"""The algorithms by name: what goes in, what comes out, and the text that says how.

A text takes a tree and one column (or list of numbers) per input. It runs on floats and arrays as
it is, on symbols it gives straight-line code for one robot, and on a ``RolledTree`` the loops that
serve every robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ramify.core.spatial import NO_WRENCH, Vec3, Wrench
from ramify.dynamics import (
    centroidal,
    coriolis,
    derivatives,
    energy,
    factor,
    forward,
    gravity,
    hybrid,
    inertia_matrix,
    inverse,
    jacobian,
    kinematics,
    regressor,
    wrenches,
)
from ramify.kernels import layouts
from ramify.kernels.layouts import LayoutOf
from ramify.model.answers import UDU, Energy, FrameMotion, FramePose, Kinematics, Momentum
from ramify.trace.rolled_program import Argument
from ramify.trace.tangent import TangentTree


@dataclass(frozen=True)
class Algorithm:
    """``text(tree, *inputs, *extras)`` gives a tuple, one item per output: a column, a matrix, or
    numbers of the whole tree.

    ``extras`` name columns of ones and zeros known beforehand that say which body or which joints
    are meant. ``rolls`` is False for a text that only runs written out; ``divides`` is True for one
    that divides by the inertia of the joints. ``on_trunk`` is the text for limbs that a free trunk
    carries (``ramify.dynamics.trunk``): it takes the trunk and its coordinates after the tree.
    ``most``: links beyond which loops are faster than straight-line code.
    ``layout`` says how users get the results, by default as they are; ``answer`` is the tuple that
    several make.
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    text: Callable[..., tuple[Any, ...]]
    extras: tuple[str, ...] = ()
    rolls: bool = True
    divides: bool = False
    on_trunk: Callable[..., tuple[Any, ...]] | None = None
    most: int = 1000
    layout: LayoutOf | None = None
    answer: type[tuple[Any, ...]] = tuple


_PER = {"q": "coordinate", "dq": "rate"}


def _in(*names: str) -> tuple[Argument, ...]:
    """Inputs with a number per link; q and its rate have their own layout where there are
    quaternions.
    """
    return tuple(Argument(name, _PER.get(name, "link"), 1) for name in names)


_WRENCHES = Argument("wrenches", "link", 6)
_POINT = Argument("point", "state", 3)


def no_wrenches(tree: Any) -> Any:
    """External wrenches, all zero."""
    return tree.each(lambda link: NO_WRENCH)


def as_wrenches(tree: Any, column: Any) -> Any:
    """External wrenches from six numbers per link."""
    return tree.each(lambda link, w: Wrench(Vec3(*w[:3]), Vec3(*w[3:])), column)


def _tangent(text: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """The derivative of a text of three columns along three directions."""

    def directional(tree: Any, *columns: Any) -> tuple[Any, ...]:
        tangent = TangentTree(tree)
        pairs = [tangent.pair(x, dx) for x, dx in zip(columns[:3], columns[3:], strict=True)]
        return (tangent.rates(text(tangent, *pairs, no_wrenches(tangent))),)

    return directional


def _derivatives(
    text: Callable[..., derivatives.Derivatives], *parts: str
) -> Callable[..., tuple[Any, ...]]:
    """Some parts of what a text of derivatives gives."""

    def chosen(*columns: Any) -> tuple[Any, ...]:
        found = text(*columns)
        return tuple(getattr(found, part) for part in parts)

    return chosen


def _pairs(*names: str) -> tuple[Argument, ...]:
    return tuple(Argument(name, "pair", 1) for name in names)


_ROWS: Final = (
    Algorithm(
        "inverse_dynamics",
        _in("q", "v", "a"),
        (Argument("tau", "link", 1),),
        lambda tree, q, v, a: (inverse.inverse_dynamics(tree, q, v, a, no_wrenches(tree)),),
        on_trunk=lambda *given: (inverse.trunk_inverse_dynamics(*given),),
    ),
    Algorithm(
        "forward_dynamics",
        _in("q", "v", "tau"),
        (Argument("a", "link", 1),),
        lambda tree, q, v, tau: (forward.forward_dynamics(tree, q, v, tau, no_wrenches(tree)),),
        divides=True,
        on_trunk=lambda *given: (forward.trunk_forward_dynamics(*given),),
    ),
    Algorithm(
        "inverse_dynamics_wrenches",
        (*_in("q", "v", "a"), _WRENCHES),
        (Argument("tau", "link", 1),),
        lambda tree, q, v, a, w: (
            wrenches.inverse_dynamics_wrenches(tree, q, v, a, as_wrenches(tree, w)),
        ),
    ),
    Algorithm(
        "forward_dynamics_wrenches",
        (*_in("q", "v", "tau"), _WRENCHES),
        (Argument("a", "link", 1),),
        lambda tree, q, v, tau, w: (
            wrenches.forward_dynamics_wrenches(tree, q, v, tau, as_wrenches(tree, w)),
        ),
        divides=True,
    ),
    Algorithm(
        "inverse_dynamics_tangent",
        _in("q", "v", "a", "dq", "dv", "da"),
        (Argument("dtau", "link", 1),),
        _tangent(inverse.inverse_dynamics),
    ),
    Algorithm(
        "forward_dynamics_tangent",
        _in("q", "v", "tau", "dq", "dv", "dtau"),
        (Argument("da", "link", 1),),
        _tangent(forward.forward_dynamics),
        divides=True,
    ),
    Algorithm(
        "inverse_dynamics_derivatives",
        _in("q", "v", "a"),
        _pairs("by_q", "by_v", "by_a"),
        _derivatives(derivatives.inverse_dynamics_derivatives, "by_q", "by_v", "by_a"),
        on_trunk=_derivatives(derivatives.trunk_derivatives, "by_q", "by_v", "by_a"),
        most=18,
    ),
    Algorithm(
        "inverse_dynamics_slopes",
        _in("q", "v", "a"),
        _pairs("by_q", "by_v"),
        _derivatives(derivatives.inverse_dynamics_derivatives, "by_q", "by_v"),
        on_trunk=_derivatives(derivatives.trunk_derivatives, "by_q", "by_v"),
        most=18,
    ),
    Algorithm(
        "inertia_and_bias",
        _in("q", "v"),
        (*_pairs("I"), Argument("h", "link", 1)),
        _derivatives(derivatives.inertia_and_bias, "by_a", "tau"),
        on_trunk=_derivatives(derivatives.trunk_inertia_and_bias, "by_a", "tau"),
    ),
    Algorithm(
        "forward_dynamics_derivatives",
        _in("q", "v", "tau"),
        _pairs("by_q", "by_v", "by_tau"),
        _derivatives(derivatives.forward_dynamics_derivatives, "by_q", "by_v", "by_a"),
        rolls=False,
        divides=True,
        most=18,
    ),
    Algorithm(
        "hybrid_dynamics",
        _in("q", "v", "x"),
        (Argument("y", "link", 1),),
        lambda tree, q, v, x, s: (hybrid.hybrid_dynamics(tree, q, v, x, s),),
        extras=("prescribed",),
        divides=True,
    ),
    Algorithm(
        "hybrid_dynamics_wrenches",
        (*_in("q", "v", "x"), _WRENCHES),
        (Argument("y", "link", 1),),
        lambda tree, q, v, x, w, s: (
            hybrid.hybrid_dynamics(tree, q, v, x, s, as_wrenches(tree, w)),
        ),
        extras=("prescribed",),
        divides=True,
    ),
    Algorithm(
        "bias",
        _in("q", "v"),
        (Argument("h", "link", 1),),
        lambda tree, q, v: (inverse.bias(tree, q, v),),
    ),
    Algorithm(
        "gravity_forces",
        _in("q"),
        (Argument("g", "link", 1),),
        lambda tree, q: (gravity.gravity_forces(tree, q),),
    ),
    Algorithm(
        "mass_matrix",
        _in("q"),
        (Argument("I", "pair", 1),),
        lambda tree, q: (inertia_matrix.mass_matrix(tree, q),),
    ),
    Algorithm(
        "mass_matrix_packed",
        _in("q"),
        (Argument("I", "pair", 1),),
        lambda tree, q: (inertia_matrix.mass_matrix(tree, q),),
        layout=layouts.triangle("I"),
    ),
    Algorithm(
        "udu",
        _in("q"),
        (Argument("U", "pair", 1), Argument("D", "link", 1)),
        lambda tree, q: factor.udu(tree, q),
        divides=True,
        layout=layouts.factors("U", "D"),
        answer=UDU,
    ),
    Algorithm(
        "udu_inverse",
        _in("q"),
        (Argument("U_inverse", "pair", 1), Argument("D_inverse", "link", 1)),
        lambda tree, q: factor.udu_inverse(tree, q),
        divides=True,
        layout=layouts.factors("U_inverse", "D_inverse"),
        answer=UDU,
    ),
    Algorithm(
        "mass_matrix_inverse",
        _in("q"),
        (Argument("I_inverse", "pair", 1),),
        lambda tree, q: (factor.mass_matrix_inverse(tree, q),),
        rolls=False,
        divides=True,
    ),
    Algorithm(
        "coriolis_matrix",
        _in("q", "v"),
        (Argument("C", "pair", 1),),
        lambda tree, q, v: (coriolis.coriolis_matrix(tree, q, v),),
    ),
    Algorithm(
        "kinematics",
        _in("q"),
        (Argument("poses", "link", 12),),
        lambda tree, q: (kinematics.body_poses(tree, q),),
        layout=layouts.body_poses,
        answer=Kinematics,
    ),
    Algorithm(
        "frame_pose",
        (*_in("q"), Argument("frame", "state", 12)),
        (Argument("pose", "state", 12),),
        lambda tree, q, frame, target: (
            kinematics.frame_pose(tree, q, target, layouts.as_pose(frame)),
        ),
        extras=("target",),
        layout=layouts.frame_pose,
        answer=FramePose,
    ),
    Algorithm(
        "jacobian",
        (*_in("q"), _POINT),
        (Argument("J", "link", 6),),
        lambda tree, q, point, target, support: (
            jacobian.jacobian(tree, q, target, support, Vec3(*point)),
        ),
        extras=("target", "support"),
        layout=layouts.columns("J", 6),
    ),
    Algorithm(
        "jacobian_rate",
        (*_in("q", "v"), _POINT),
        (Argument("dJv", "state", 6),),
        lambda tree, q, v, point, target, support: (
            jacobian.jacobian_rate(tree, q, v, target, Vec3(*point)),
        ),
        extras=("target", "support"),
    ),
    Algorithm(
        "frame_motion",
        (*_in("q", "v", "a"), _POINT),
        (Argument("velocity", "state", 6), Argument("acceleration", "state", 6)),
        lambda tree, q, v, a, point, target: jacobian.point_motion(
            tree, q, v, a, target, Vec3(*point)
        ),
        extras=("target",),
        answer=FrameMotion,
    ),
    Algorithm(
        "energy",
        _in("q", "v"),
        (Argument("kinetic", "state", 1), Argument("potential", "state", 1)),
        lambda tree, q, v: energy.energy(tree, q, v),
        answer=Energy,
    ),
    Algorithm(
        "center_of_mass",
        _in("q"),
        (Argument("com", "state", 3),),
        lambda tree, q: (energy.center_of_mass(tree, q),),
    ),
    Algorithm(
        "momentum",
        _in("q", "v"),
        (Argument("linear", "state", 3), Argument("angular", "state", 3)),
        lambda tree, q, v: energy.momentum(tree, q, v),
        answer=Momentum,
    ),
    Algorithm(
        "centroidal_momentum_matrix",
        _in("q"),
        (Argument("A", "link", 6),),
        lambda tree, q: (centroidal.centroidal_momentum_matrix(tree, q),),
        layout=layouts.columns("A", 6),
    ),
    Algorithm(
        "required_wrench",
        _in("q", "v", "a"),
        (Argument("wrench", "state", 6),),
        lambda tree, q, v, a: (centroidal.required_wrench(tree, q, v, a),),
    ),
    Algorithm(
        "reactions",
        (*_in("q", "v", "a"), _WRENCHES),
        (Argument("reactions", "link", 6),),
        lambda tree, q, v, a, w: (wrenches.reactions(tree, q, v, a, as_wrenches(tree, w)),),
        layout=layouts.of_bodies("reactions", 6),
    ),
    Algorithm(
        "regressor",
        _in("q", "v", "a"),
        (Argument("Y", "pair", len(regressor.PARAMETERS)),),
        lambda tree, *columns: (regressor.regressor(tree, *columns),),
        on_trunk=lambda *given: (regressor.trunk_regressor(*given),),
        most=18,
        layout=layouts.body_columns("Y", len(regressor.PARAMETERS)),
    ),
)

ALGORITHMS: Final = {row.name: row for row in _ROWS}
