"""The elements of single coordinates (springs, damping, friction, stops) as one step per joint, and
the algorithms made of it, for rolled code of every robot and straight-line code of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ramify.core.records import flatten, rebuild
from ramify.core.scalar import Scalar, may_be_nonzero, select
from ramify.drives import element_laws as laws
from ramify.drives.element_laws import Answer, BristleLaw, DryLaw, StopLaw
from ramify.dynamics.forward import bias_wrenches, solve_accelerations
from ramify.dynamics.inverse import inverse_dynamics
from ramify.dynamics.motion import displacements, motions
from ramify.kernels.algorithms import ALGORITHMS, Algorithm, no_wrenches
from ramify.model.elements import NONE, Cubic
from ramify.trace.rolled_program import Argument

JOINT_PARTS: Final = ("spring", "damping", "friction", "stop")
"""Passive forces of a single coordinate."""


@dataclass(frozen=True)
class JointLaw:
    """The elements of one coordinate as numbers; missing ones exert no force.
    ``has_bristles`` is 1 where friction has bristles.
    """

    damping: Cubic = NONE
    spring: Cubic = NONE
    rest: Scalar = 0.0
    friction: DryLaw = field(default_factory=DryLaw)
    stop: StopLaw = field(default_factory=StopLaw)
    has_bristles: Scalar = 0.0
    bristles: BristleLaw = field(default_factory=BristleLaw)


def at_joint(law: JointLaw, q: Scalar, v: Scalar, z: Scalar | None = None) -> dict[str, Answer]:
    """The parts that act at coordinate q and rate v; z: the deflection of the bristles, None for a
    joint that slides steadily.
    """
    parts = {}
    if any(map(may_be_nonzero, law.spring)):
        parts["spring"] = laws.spring(law.spring, q - law.rest)
    if any(map(may_be_nonzero, law.damping)):
        parts["damping"] = laws.damping(law.damping, v)
    if z is not None and may_be_nonzero(law.has_bristles):
        with_bristles = laws.bristles(law.bristles, v, z)
        parts["friction"] = _either(law.has_bristles, with_bristles, laws.friction(law.friction, v))
    elif may_be_nonzero(law.friction.sliding):
        parts["friction"] = laws.friction(law.friction, v)
    if may_be_nonzero(law.stop.stiffness):
        parts["stop"] = laws.stop(law.stop, q, v)
    return parts


def _either(which: Scalar, one: Answer, other: Answer) -> Answer:
    pairs = zip(flatten(one), flatten(other), strict=True)
    return rebuild(one, iter([select(which > 0.5, a, b) for a, b in pairs]))


def law_columns(joint_laws: Sequence[Any]) -> list[tuple[float, ...]]:
    """The numbers of the laws, a column each."""
    return list(zip(*(map(float, flatten(law)) for law in joint_laws), strict=True))  # type: ignore[arg-type]


_LAW: Final = JointLaw()
_EXTRAS: Final = tuple(f"element {i}" for i in range(len(flatten(_LAW))))


def own_coordinate(q: Any) -> Scalar:
    """The coordinate of a link: the first of those that robots with quaternions have."""
    return q[0] if isinstance(q, (tuple, list)) else q


def _step(link: Any, q: Any, v: Scalar, *rest: Scalar) -> tuple[Scalar, ...]:
    """All parts of a joint: force, stored, loss by part, and the rate of the bristles."""
    z, numbers = (rest[0], rest[1:]) if len(rest) > len(_EXTRAS) else (None, rest)
    acting = at_joint(rebuild(_LAW, iter(numbers)), own_coordinate(q), v, z)
    parts = [acting.get(part, Answer(0.0)) for part in JOINT_PARTS]
    return (
        *(part.force for part in parts),
        *(part.stored for part in parts),
        *(part.loss for part in parts),
        parts[2].rate,
    )


def element_forces(tree: Any, q: Any, v: Any, *rest: Any) -> tuple[Any, ...]:
    """Total and parts (nv), energy stored and power lost by part; given the deflections z (nv),
    also their rates (nv).
    """
    n = len(JOINT_PARTS)
    answers = tree.each(_step, q, v, *rest)
    total = tree.each(lambda link, x: x[0] + x[1] + x[2] + x[3], answers)
    parts = [tree.each(lambda link, x, i=i: x[i], answers) for i in range(n)]
    stored, loss = (
        tree.total(lambda link, x, a=a: tuple(x[a : a + n]), (0.0,) * n, answers)
        for a in (n, 2 * n)
    )
    rates = [tree.each(lambda link, x: x[-1], answers)] if len(rest) > len(_EXTRAS) else []
    return (total, *parts, stored, loss, *rates)


def _with_stops(tree: Any, force: Any, q: Any, v: Any, law: Sequence[Any]) -> Any:
    """Forces of the joints and those of their stops."""

    def step(link: Any, total: Scalar, q: Any, v: Scalar, *numbers: Scalar) -> Scalar:
        stop = rebuild(_LAW, iter(numbers)).stop
        if not may_be_nonzero(stop.stiffness):
            return total
        return laws.stopped(stop, own_coordinate(q), v, total)

    return tree.each(step, force, q, v, *law)


def _with_elements(tree: Any, force: Any, q: Any, v: Any, law: Sequence[Any]) -> Any:
    """Forces of the joints and, added one by one, those of their springs, damping and friction."""

    def step(link: Any, total: Scalar, q: Any, v: Scalar, *numbers: Scalar) -> Scalar:
        law = replace(rebuild(_LAW, iter(numbers)), stop=StopLaw())
        for part in at_joint(law, own_coordinate(q), v).values():
            total = total + part.force
        return total

    return tree.each(step, force, q, v, *law)


def _machine_inverse(tree: Any, q: Any, v: Any, a: Any, *law: Any) -> tuple[Any, ...]:
    none = tree.each(lambda link: 0.0)
    passive = _with_elements(tree, _with_stops(tree, none, q, v, law), q, v, law)
    tau = inverse_dynamics(tree, q, v, a, no_wrenches(tree))
    return (tree.each(lambda link, f, p: f - p, tau, passive),)


def _machine_forward(tree: Any, q: Any, v: Any, tau: Any, *law: Any) -> tuple[Any, ...]:
    """Stops come first, because they branch; the others where their forces are needed."""
    acting = _with_stops(tree, tau, q, v, law)
    x = displacements(tree, q)
    moving = motions(tree, x, v, tree.each(lambda link: 0.0))
    bias = bias_wrenches(tree, moving, no_wrenches(tree))
    return (solve_accelerations(tree, x, bias, _with_elements(tree, acting, q, v, law)),)


def _dynamics(name: str, text: Callable[..., tuple[Any, ...]]) -> Algorithm:
    """Inverse or forward dynamics of a machine: passive forces of the joints are part of it."""
    plain = ALGORITHMS[name]
    return replace(plain, name=f"machine_{name}", text=text, extras=_EXTRAS, on_trunk=None)


DYNAMICS: Final = {
    "inverse_dynamics": _dynamics("inverse_dynamics", _machine_inverse),
    "forward_dynamics": _dynamics("forward_dynamics", _machine_forward),
}


def _elements(*state: Argument) -> Algorithm:
    forces = (Argument(part, "link", 1) for part in ("total", *JOINT_PARTS))
    sums = (Argument(name, "state", len(JOINT_PARTS)) for name in ("stored", "loss"))
    rates = (Argument("bristle_rates", "link", 1) for _ in state)
    q, v = Argument("q", "coordinate", 1), Argument("v", "link", 1)
    name = "bristle_forces" if state else "element_forces"
    return Algorithm(name, (q, v, *state), (*forces, *sums, *rates), element_forces, _EXTRAS)


ELEMENTS: Final = _elements()
BRISTLES: Final = _elements(Argument("bristles", "link", 1))
