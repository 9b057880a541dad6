"""The algorithms by name: what goes in, what comes out, and the text that says how.

A text takes a tree and one column (or list of numbers) per input. It runs on floats and arrays as
it is, on symbols it gives straight-line code for one robot, and on a ``RolledTree`` the loops that
serve every robot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal

from ramify.core.errors import RamifyError
from ramify.core.messages import near
from ramify.core.registry import NamedEntries
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

    - ``extras``: names of columns of ones and zeros, known beforehand, that say which body or which
      joints are meant.
    - ``rolled_as``: how the rolled tier computes it. "text": by running the text itself; "factors":
      from the factors of the inertia matrix; "stages": from M, h and the derivatives of inverse
      dynamics; "none": not at all, as for robots with loops.
    - ``divides``: whether it divides by the inertia of the joints.
    - ``on_trunk``: the text for limbs that a free trunk carries (``ramify.dynamics.trunk``): it
      takes the trunk and its coordinates after the tree.
    - ``max_unrolled_links``: links beyond which rolled code is faster than unrolled code.
    - ``layout``: how users get the results, by default as they are; ``answer``: the tuple that
      several make.
    - ``loops``: for a robot with loops, "ignored" (it is about the tree alone), "honoured" (by an
      algorithm of the same name in ``ramify.kernels.closed``) or "refused".
    - ``needs_mass``: whether a robot without mass is refused; statics has a meaning for one.
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    text: AlgorithmText
    extras: tuple[str, ...] = ()
    rolled_as: Literal["text", "factors", "stages", "none"] = "text"
    divides: bool = False
    on_trunk: AlgorithmText | None = None
    max_unrolled_links: int = 1000
    layout: LayoutOf | None = None
    answer: type[tuple[Any, ...]] = tuple
    loops: Literal["ignored", "honoured", "refused"] = "ignored"
    needs_mass: bool = True

    @property
    def gives_pairs(self) -> bool:
        """Whether it gives matrices of the joints."""
        return any(p.per == "pair" for p in self.outputs)


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
"""By the name of an array: what it has numbers for, and how many."""


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


def _single_result(text: Callable[..., Any]) -> AlgorithmText:
    """The text of one result as a tuple."""
    return lambda *inputs: (text(*inputs),)


def _without_wrenches(text: Callable[..., Any]) -> AlgorithmText:
    """A text with one result, without external wrenches."""
    return lambda tree, *inputs: (text(tree, *inputs, no_wrenches(tree)),)


def _with_wrenches(text: Callable[..., Any]) -> AlgorithmText:
    """A text with one result, under wrenches, its last input."""
    return lambda tree, *inputs: (text(tree, *inputs[:-1], as_wrenches(tree, inputs[-1])),)


def _parts(text: Callable[..., derivatives.Derivatives], parts: str) -> AlgorithmText:
    """Some parts of what a text of derivatives gives."""
    return lambda *columns: attrgetter(*parts.split())(text(*columns))


def _row(name: str, inputs: str, outputs: str, text: AlgorithmText, **more: Any) -> Algorithm:
    return Algorithm(name, arguments(inputs), arguments(outputs), text, **more)


_ROWS: Final = (
    _row(
        "inverse_dynamics", "q v a", "tau", _without_wrenches(inverse.inverse_dynamics),
        on_trunk=_single_result(inverse.trunk_inverse_dynamics), loops="honoured",
    ),
    _row(
        "forward_dynamics", "q v tau", "a", _without_wrenches(forward.forward_dynamics),
        divides=True, on_trunk=_single_result(forward.trunk_forward_dynamics), loops="honoured",
    ),
    _row(
        "inverse_dynamics_wrenches", "q v a wrenches", "tau",
        _with_wrenches(wrenches.inverse_dynamics_wrenches), loops="honoured", needs_mass=False,
    ),
    _row(
        "forward_dynamics_wrenches", "q v tau wrenches", "a",
        _with_wrenches(wrenches.forward_dynamics_wrenches), divides=True, loops="honoured",
    ),
    *(
        _row(
            f"inverse_dynamics_{name}", "q v a", parts,
            _parts(derivatives.inverse_dynamics_derivatives, parts),
            on_trunk=_parts(derivatives.trunk_derivatives, parts), max_unrolled_links=18,
            loops="refused",
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
        rolled_as="stages", divides=True, max_unrolled_links=18, loops="refused",
    ),
    _row(
        "hybrid_dynamics", "q v x", "y", _single_result(hybrid.hybrid_dynamics),
        extras=("prescribed",), divides=True, loops="honoured",
    ),
    _row(
        "hybrid_dynamics_wrenches", "q v x wrenches", "y",
        lambda tree, q, v, x, w, s: (
            hybrid.hybrid_dynamics(tree, q, v, x, s, as_wrenches(tree, w)),
        ),
        extras=("prescribed",), divides=True, loops="honoured",
    ),
    _row("bias", "q v", "h", _single_result(inverse.bias)),
    _row("gravity_forces", "q", "g", _single_result(gravity.gravity_forces)),
    _row("mass_matrix", "q", "I", _single_result(inertia_matrix.mass_matrix)),
    _row(
        "mass_matrix_packed", "q", "I", _single_result(inertia_matrix.mass_matrix),
        layout=layouts.triangle("I"),
    ),
    _row(
        "udu", "q", "U D", factor.udu, divides=True,
        layout=layouts.triangle_and_diagonal("U", "D"), answer=UDU,
    ),
    _row(
        "udu_inverse", "q", "U_inverse D_inverse", factor.udu_inverse, divides=True,
        layout=layouts.triangle_and_diagonal("U_inverse", "D_inverse"), answer=UDU,
    ),
    _row(
        "mass_matrix_inverse", "q", "I_inverse", _single_result(factor.mass_matrix_inverse),
        rolled_as="factors", divides=True,
    ),
    _row("coriolis_matrix", "q v", "C", _single_result(coriolis.coriolis_matrix)),
    _row(
        "kinematics", "q", "poses", _single_result(kinematics.body_poses),
        layout=layouts.body_pose_layouts, answer=Kinematics, needs_mass=False,
    ),
    _row(
        "frame_pose", "q frame", "pose",
        lambda tree, q, frame, target: (
            kinematics.frame_pose(tree, q, target, layouts.pose_of_numbers(frame)),
        ),
        extras=("target",), layout=layouts.frame_pose_layouts, answer=FramePose, needs_mass=False,
    ),
    _row(
        "jacobian", "q point", "J",
        lambda tree, q, point, target, support: (
            jacobian.jacobian(tree, q, target, support, Vec3(*point)),
        ),
        extras=("target", "support"), layout=layouts.transposed_rows("J", 6), needs_mass=False,
    ),
    _row(
        "jacobian_rate", "q v point", "dJv",
        lambda tree, q, v, point, target, support: (
            jacobian.jacobian_rate(tree, q, v, target, Vec3(*point)),
        ),
        extras=("target", "support"), needs_mass=False,
    ),
    _row(
        "frame_motion", "q v a point", "velocity acceleration",
        lambda tree, q, v, a, point, target: jacobian.point_motion(
            tree, q, v, a, target, Vec3(*point)
        ),
        extras=("target",), answer=FrameMotion, needs_mass=False,
    ),
    _row("energy", "q v", "kinetic potential", energy.energy, answer=Energy),
    _row("center_of_mass", "q", "com", _single_result(energy.center_of_mass)),
    _row("momentum", "q v", "linear angular", energy.momentum, answer=Momentum),
    _row(
        "centroidal_momentum_matrix", "q", "A",
        _single_result(centroidal.centroidal_momentum_matrix),
        layout=layouts.transposed_rows("A", 6),
    ),
    _row("required_wrench", "q v a", "wrench", _single_result(centroidal.required_wrench)),
    _row(
        "reactions", "q v a wrenches", "reactions", _with_wrenches(wrenches.reactions),
        layout=layouts.of_bodies("reactions", 6),
    ),
    _row(
        "regressor", "q v a", "Y", _single_result(regressor.regressor),
        on_trunk=_single_result(regressor.trunk_regressor), max_unrolled_links=18,
        layout=layouts.body_columns("Y", len(regressor.PARAMETERS)), needs_mass=False,
    ),
)  # fmt: skip

ALGORITHMS: Final = NamedEntries("algorithm", _ROWS)
