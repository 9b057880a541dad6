"""Joint types. Each is a run of screws: one degree of freedom after the other, along axes of the
moved frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Final

import numpy as np

from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.core.records import settle
from ramify.core.registry import NamedEntries
from ramify.model.elements import Element
from ramify.model.frame import Frame, align_z

AXES: Final = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
UNIVERSAL_SEQUENCES: Final = tuple(a + b for a in "XYZ" for b in "XYZ" if a != b)
SPHERICAL_SEQUENCES: Final = tuple(
    ab + c for ab in UNIVERSAL_SEQUENCES for c in "XYZ" if ab[1] != c
)


@dataclass(frozen=True)
class Step:
    """One degree of freedom: angle rate ``rho`` and slide rate ``eta`` along ``axis`` per unit of
    its rate.

    ``ball`` is 1, 2, 3 for the components of a ball joint's angular velocity; the first of them
    brings the quaternion.
    """

    name: str
    axis: tuple[float, float, float]
    rho: float
    eta: float
    ball: int = 0

    @property
    def positions(self) -> tuple[str, ...]:
        """Names of the coordinates it brings: its own, a quaternion, or none."""
        return ((self.name,), ("qw", "qx", "qy", "qz"), (), ())[self.ball]

    @property
    def unit(self) -> str:
        return "rad" if self.rho else "m"


def limit_pairs(limits: Sequence[Any]) -> tuple[tuple[float, float], ...]:
    """Limits as (lower, upper) per coordinate; a plain pair belongs to the only one."""
    try:
        plain = len(limits) == 2 and all(isinstance(x, Real) for x in limits)
        return tuple((low, high) for low, high in ([limits] if plain else limits))
    except (TypeError, ValueError):
        raise ValueError(
            "limits must be a pair (lower, upper), or a list with one per coordinate; got "
            f"{shown(limits)}"
        ) from None


def unit_axis(who: str, axis: Sequence[float]) -> tuple[float, ...]:
    """An axis made a unit vector; one that is a unit vector stays as it is."""
    length = math.sqrt(sum(float(x) ** 2 for x in axis)) if len(axis) == 3 else math.nan
    if not (math.isfinite(length) and length > 1e-9):
        text = f"axis {list(axis)} must be three finite numbers, not all zero"
        raise ModelError(f"{who}: {text}", key=("axis",))
    return tuple(float(x) / (length if abs(length - 1.0) > 1e-15 else 1.0) for x in axis)


@dataclass(frozen=True)
class Joint:
    """How a body hangs on its parent.

    ``free`` has q = [x y z, qw qx qy qz] and v = [velocity of the origin along the axes of the
    joint's frame; angular velocity in the body's frame]; ``ball`` has the rotational part of that;
    ``free_euler`` has q = [x y z, three Euler angles] and v = dq/dt. ``placement`` is the joint's
    frame in the parent body's frame; the joint moves that frame, and ``outlet`` is the body's frame
    in the moved one. ``axis`` is a unit vector of the joint's frame (for ``planar`` the normal of
    the plane). ``sequence`` names the Euler angles of ``universal`` and ``spherical`` joints;
    ``pitch`` is the metres a ``helical`` joint moves per radian. ``limits`` are (lower, upper) per
    coordinate, in rad or m. ``elements`` are what the machine has at each rate: rotor, spring,
    damping, friction, stops, drive; () for an ideal joint. ``backwards``: a closed system lists it
    from its body to the parent.
    """

    name: str
    kind: str
    placement: Frame = field(default_factory=Frame)
    outlet: Frame = field(default_factory=Frame)
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    sequence: str = ""
    pitch: float = 0.0
    limits: tuple[tuple[float, float], ...] = ()
    actuated: bool = True
    elements: tuple[Element, ...] = ()
    backwards: bool = False

    def __post_init__(self) -> None:
        if self.kind not in JOINT_KINDS:
            raise ModelError(
                f"joint {self.name!r}: unknown type {self.kind!r}; choose one of "
                f"{', '.join(JOINT_KINDS)}"
            )
        settle(self, axis=unit_axis(f"joint {self.name!r}", self.axis))
        default, allowed = _SEQUENCES.get(self.kind, ("", ("",)))
        sequence = (self.sequence or default).upper()
        if sequence not in allowed:
            raise ModelError(
                f"joint {self.name!r}: sequence {self.sequence!r} does not suit a {self.kind} joint"
                + (f"; choose one of {', '.join(allowed)}" if default else ", which takes none"),
                key=("sequence",),
            )
        settle(self, sequence=sequence)
        if self.kind == "helical" and not (math.isfinite(self.pitch) and self.pitch != 0.0):
            raise ModelError(
                f"joint {self.name!r}: pitch {self.pitch} must be a finite, non-zero number of "
                "metres per radian",
                key=("pitch",),
            )
        if self.kind != "helical" and self.pitch:
            raise ModelError(
                f"joint {self.name!r}: a pitch belongs to helical joints, not to {self.kind} ones",
                key=("pitch",),
            )
        if self.limits and len(self.limits) != self.nq:
            raise ModelError(
                f"joint {self.name!r}: {len(self.limits)} limits for {self.nq} coordinates; give "
                "one (lower, upper) per coordinate",
                key=("limits",),
            )
        if self.elements and len(self.elements) != self.dof:
            raise ModelError(
                f"joint {self.name!r}: {len(self.elements)} machine elements for {self.dof} rates"
            )
        if self.elements:
            settle(self, elements=self._with_rests())
        for low, high in self.limits:
            if not low <= high:
                raise ModelError(
                    f"joint {self.name!r}: lower limit {low} exceeds upper limit {high}",
                    key=("limits",),
                )

    def _with_rests(self) -> tuple[Element, ...]:
        """The elements with springs that rest at one coordinate, a quaternion at a unit one (by
        default neutral), the place of a free joint at three as well.
        """
        out = list(self.elements)
        for j, (element, step) in enumerate(zip(out, self.steps, strict=True)):
            if element.cone < math.inf and self.kind != "ball":
                raise ModelError(
                    f"cone of joint {self.name!r}: it limits ball joints; a {self.kind} joint has "
                    "limits",
                    key=("cone",),
                )
            if element.spring is None:
                continue
            rest = element.spring.rest
            if step.ball:
                if not any(rest):
                    rest = (1.0, 0.0, 0.0, 0.0)
                    out[j] = replace(element, spring=replace(element.spring, rest=rest))
                wanted = len(rest) == 4 and abs(math.hypot(*rest) - 1.0) < 1e-4
            else:
                wanted = len(rest) == 1 or (self.kind == "free" and j < 3 and len(rest) == 3)
            if not wanted:
                right = "a unit quaternion, w first" if step.ball else "one number per coordinate"
                raise ModelError(
                    f"spring.rest of joint {self.name!r} is {list(rest)}; it must be {right}",
                    key=("spring", "rest"),
                )
        return tuple(out)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The joint's screws, in order; each axis is in the frame that the ones before it have
        moved.
        """
        return JOINT_KINDS[self.kind](self)

    @property
    def dof(self) -> int:
        return len(self.steps)

    @property
    def floating(self) -> bool:
        """Whether the body moves freely in space, in all six directions."""
        return self.dof == 6

    @property
    def moves_base(self) -> bool:
        """Whether a root joint of this kind is a moving base: free in space or in a plane."""
        return self.floating or self.kind == "planar"

    @property
    def machine(self) -> tuple[Element, ...]:
        """One element per rate, ideal ones where the joint has none."""
        return self.elements or (Element(),) * self.dof

    @property
    def armature(self) -> tuple[float, ...]:
        """Reflected rotor inertia per rate, kg m^2 or kg."""
        return tuple(element.armature for element in self.machine)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """A name per entry of q: the joint's own, or with a suffix where it has several."""
        return self._named([name for step in self.steps for name in step.positions])

    @property
    def velocities(self) -> tuple[str, ...]:
        """A name per entry of v."""
        return self._named([step.name for step in self.steps])

    def _named(self, parts: list[str]) -> tuple[str, ...]:
        return (self.name,) if len(parts) == 1 else tuple(f"{self.name}.{part}" for part in parts)

    @property
    def nq(self) -> int:
        return len(self.coordinates)


def _euler(joint: Joint) -> tuple[Step, ...]:
    steps = enumerate(joint.sequence, start=1)
    return tuple(Step(f"{a.lower()}{i}", AXES[a], 1.0, 0.0) for i, a in steps)


def _planar(joint: Joint) -> tuple[Step, ...]:
    x, y, _ = (tuple(column) for column in align_z(np.array(joint.axis)).T.tolist())
    return Step("x", x, 0.0, 1.0), Step("y", y, 0.0, 1.0), Step("angle", joint.axis, 1.0, 0.0)


_PLACE: Final = tuple(Step(a.lower(), AXES[a], 0.0, 1.0) for a in "XYZ")
_BALL: Final = tuple(Step(f"w{a.lower()}", AXES[a], 1.0, 0.0, i) for i, a in enumerate(AXES, 1))
_SEQUENCES: Final = {
    "universal": ("YX", UNIVERSAL_SEQUENCES),
    "spherical": ("YXZ", SPHERICAL_SEQUENCES),
    "free_euler": ("YXZ", SPHERICAL_SEQUENCES),
}

JOINT_KINDS: Final[NamedEntries[Callable[[Joint], tuple[Step, ...]]]] = NamedEntries("joint type")
"""Joint types and their screws."""
for _kind, _steps in {
    "fixed": lambda joint: (),
    "revolute": lambda joint: (Step("angle", joint.axis, 1.0, 0.0),),
    "prismatic": lambda joint: (Step("slide", joint.axis, 0.0, 1.0),),
    "helical": lambda joint: (Step("angle", joint.axis, 1.0, joint.pitch),),
    "cylindrical": lambda joint: (
        Step("angle", joint.axis, 1.0, 0.0),
        Step("slide", joint.axis, 0.0, 1.0),
    ),
    "universal": _euler,
    "spherical": _euler,
    "planar": _planar,
    "ball": lambda joint: _BALL,
    "free": lambda joint: (*_PLACE, *_BALL),
    "free_euler": lambda joint: (*_PLACE, *_euler(joint)),
}.items():
    JOINT_KINDS.add(_steps, _kind)
