"""The algorithms by name: what goes in, what comes out, and the text that says how.

A text takes a tree and one column (or list of numbers) per input. It runs on floats and arrays as
it is, on symbols it gives straight-line code for one robot, and on a ``RolledTree`` the loops that
serve every robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from ramify.core.errors import RamifyError
from ramify.core.messages import near
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

AlgorithmText = Callable[..., tuple[Any, ...]]


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
    text: AlgorithmText
    extras: tuple[str, ...] = ()
    rolls: bool = True
    divides: bool = False
    on_trunk: AlgorithmText | None = None
    most: int = 1000
    layout: LayoutOf | None = None
    answer: type[tuple[Any, ...]] = tuple


_NAMES: Final[dict[tuple[str, int], str]] = {
    ("coordinate", 1): "q",
    ("link", 1): "v a tau forces h g D D_inverse x y",
    ("link", 6): "wrenches reactions J A",
    ("link", 12): "poses",
    ("pair", 1): "I I_inverse U U_inverse C by_q by_v by_a by_tau",
    ("pair", len(regressor.PARAMETERS)): "Y",
    ("state", 1): "kinetic potential",
    ("state", 3): "point com linear angular",
    ("state", 6): "wrench dJv velocity acceleration",
    ("state", 12): "frame pose",
}
_KINDS: Final = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""What an array of some name has so many numbers for."""


def arguments(names: str) -> tuple[Argument, ...]:
    """Arrays by their names. Raises RamifyError for a name that none has."""
    for name in names.split():
        if name not in _KINDS:
            raise RamifyError(f"no algorithm has an array {name!r}{near(name, list(_KINDS))}")
    return tuple(Argument(name, *_KINDS[name]) for name in names.split())


def no_wrenches(tree: Any) -> Any:
    """External wrenches, all zero."""
    return tree.each(lambda link: NO_WRENCH)


def as_wrenches(tree: Any, column: Any) -> Any:
    """External wrenches from six numbers per link."""
    return tree.each(lambda link, w: Wrench(Vec3(*w[:3]), Vec3(*w[3:])), column)


def _one(text: Callable[..., Any]) -> AlgorithmText:
    """A text with one result."""
    return lambda *given: (text(*given),)


def _alone(text: Callable[..., Any]) -> AlgorithmText:
    """The same without external wrenches."""
    return lambda tree, *given: (text(tree, *given, no_wrenches(tree)),)


def _pushed(text: Callable[..., Any]) -> AlgorithmText:
    """The same under wrenches."""
    return lambda tree, *given: (text(tree, *given[:-1], as_wrenches(tree, given[-1])),)


def _parts(text: Callable[..., derivatives.Derivatives], parts: str) -> AlgorithmText:
    """Some parts of what a text of derivatives gives."""
    return lambda *columns: attrgetter(*parts.split())(text(*columns))


def _row(name: str, inputs: str, outputs: str, text: AlgorithmText, **more: Any) -> Algorithm:
    return Algorithm(name, arguments(inputs), arguments(outputs), text, **more)


_ROWS: Final = (
    _row(
        "inverse_dynamics", "q v a", "tau", _alone(inverse.inverse_dynamics),
        on_trunk=_one(inverse.trunk_inverse_dynamics),
    ),
    _row(
        "forward_dynamics", "q v tau", "a", _alone(forward.forward_dynamics), divides=True,
        on_trunk=_one(forward.trunk_forward_dynamics),
    ),
    _row(
        "inverse_dynamics_wrenches", "q v a wrenches", "tau",
        _pushed(wrenches.inverse_dynamics_wrenches),
    ),
    _row(
        "forward_dynamics_wrenches", "q v tau wrenches", "a",
        _pushed(wrenches.forward_dynamics_wrenches), divides=True,
    ),
    *(
        _row(
            f"inverse_dynamics_{name}", "q v a", parts,
            _parts(derivatives.inverse_dynamics_derivatives, parts),
            on_trunk=_parts(derivatives.trunk_derivatives, parts), most=18,
        )
        for name, parts in (("derivatives", "by_q by_v by_a"), ("slopes", "by_q by_v"))
    ),
    _row(
        "inertia_and_bias", "q v", "I h", _parts(derivatives.inertia_and_bias, "by_a tau"),
        on_trunk=_parts(derivatives.trunk_inertia_and_bias, "by_a tau"),
    ),
    _row(
        "forward_dynamics_derivatives", "q v tau", "by_q by_v by_tau",
        _parts(derivatives.forward_dynamics_derivatives, "by_q by_v by_a"),
        rolls=False, divides=True, most=18,
    ),
    _row(
        "hybrid_dynamics", "q v x", "y", _one(hybrid.hybrid_dynamics), extras=("prescribed",),
        divides=True,
    ),
    _row(
        "hybrid_dynamics_wrenches", "q v x wrenches", "y",
        lambda tree, q, v, x, w, s: (
            hybrid.hybrid_dynamics(tree, q, v, x, s, as_wrenches(tree, w)),
        ),
        extras=("prescribed",), divides=True,
    ),
    _row("bias", "q v", "h", _one(inverse.bias)),
    _row("gravity_forces", "q", "g", _one(gravity.gravity_forces)),
    _row("mass_matrix", "q", "I", _one(inertia_matrix.mass_matrix)),
    _row(
        "mass_matrix_packed", "q", "I", _one(inertia_matrix.mass_matrix),
        layout=layouts.triangle("I"),
    ),
    _row(
        "udu", "q", "U D", factor.udu, divides=True, layout=layouts.factors("U", "D"), answer=UDU
    ),
    _row(
        "udu_inverse", "q", "U_inverse D_inverse", factor.udu_inverse, divides=True,
        layout=layouts.factors("U_inverse", "D_inverse"), answer=UDU,
    ),
    _row(
        "mass_matrix_inverse", "q", "I_inverse", _one(factor.mass_matrix_inverse), rolls=False,
        divides=True,
    ),
    _row("coriolis_matrix", "q v", "C", _one(coriolis.coriolis_matrix)),
    _row(
        "kinematics", "q", "poses", _one(kinematics.body_poses), layout=layouts.body_poses,
        answer=Kinematics,
    ),
    _row(
        "frame_pose", "q frame", "pose",
        lambda tree, q, frame, target: (
            kinematics.frame_pose(tree, q, target, layouts.as_pose(frame)),
        ),
        extras=("target",), layout=layouts.frame_pose, answer=FramePose,
    ),
    _row(
        "jacobian", "q point", "J",
        lambda tree, q, point, target, support: (
            jacobian.jacobian(tree, q, target, support, Vec3(*point)),
        ),
        extras=("target", "support"), layout=layouts.columns("J", 6),
    ),
    _row(
        "jacobian_rate", "q v point", "dJv",
        lambda tree, q, v, point, target, support: (
            jacobian.jacobian_rate(tree, q, v, target, Vec3(*point)),
        ),
        extras=("target", "support"),
    ),
    _row(
        "frame_motion", "q v a point", "velocity acceleration",
        lambda tree, q, v, a, point, target: jacobian.point_motion(
            tree, q, v, a, target, Vec3(*point)
        ),
        extras=("target",), answer=FrameMotion,
    ),
    _row("energy", "q v", "kinetic potential", energy.energy, answer=Energy),
    _row("center_of_mass", "q", "com", _one(energy.center_of_mass)),
    _row("momentum", "q v", "linear angular", energy.momentum, answer=Momentum),
    _row(
        "centroidal_momentum_matrix", "q", "A", _one(centroidal.centroidal_momentum_matrix),
        layout=layouts.columns("A", 6),
    ),
    _row("required_wrench", "q v a", "wrench", _one(centroidal.required_wrench)),
    _row(
        "reactions", "q v a wrenches", "reactions", _pushed(wrenches.reactions),
        layout=layouts.of_bodies("reactions", 6),
    ),
    _row(
        "regressor", "q v a", "Y", _one(regressor.regressor),
        on_trunk=_one(regressor.trunk_regressor), most=18,
        layout=layouts.body_columns("Y", len(regressor.PARAMETERS)),
    ),
)  # fmt: skip

ALGORITHMS: Final = {row.name: row for row in _ROWS}
