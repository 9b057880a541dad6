"""Closed loops as data: two frames, and the joint between them that the tree leaves open (section
8.1).

A closing joint is described by what it forbids. Its rows are scalars that vanish where the loop is
closed, taken in the frame of the first end with z along the joint's axis:

    x, y, z          where the second end's origin lies, in m
    tilt_x, tilt_y   components of the second end's z axis (its sine), free about z
    turn_x … turn_z  the whole rotation, as sin(angle) times its axis; like the tilts, beyond a
                     quarter turn 2 - sin(angle), so that half a turn is not closed
    cross            the cosine between the two axes of a universal joint
    distance         (d^2 - length^2) / (2 length), the stretch of a rod in m, to first order
    gear             q_second - ratio q_first - offset
    coupling         y - (c0 + c1 x + c2 x^2 + ...) of two coordinates or two tendons, x and y
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ramify.core.arrays import one_number
from ramify.core.errors import ModelError, about
from ramify.core.messages import shown
from ramify.core.records import settle
from ramify.model.answers import Attachment
from ramify.model.frame import Frame, align_z, is_rigid
from ramify.model.joint import AXES, UNIVERSAL_SEQUENCES, unit_axis

LOOP_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "revolute": ("x", "y", "z", "tilt_x", "tilt_y"),
    "prismatic": ("x", "y", "turn_x", "turn_y", "turn_z"),
    "cylindrical": ("x", "y", "tilt_x", "tilt_y"),
    "universal": ("x", "y", "z", "cross"),
    "spherical": ("x", "y", "z"),
    "fixed": ("x", "y", "z", "turn_x", "turn_y", "turn_z"),
    "point_on_line": ("x", "y"),
    "distance": ("distance",),
    "gear": ("gear",),
    "coupling": ("coupling",),
}
"""Closing joints and the rows they forbid."""

PLANAR: Final = {"revolute": ("x", "y"), "fixed": ("x", "y", "turn_z")}
"""The rows that ``planar`` leaves: those of the plane whose normal is the axis."""

LENGTHS: Final = ("x", "y", "z", "distance")
"""Rows measured in metres; the others are sines, cosines or, for gears and couplings, in the unit
of the second coordinate.
"""

COUPLINGS: Final = ("gear", "coupling")
"""Loops without ends: they relate coordinates, or lengths of tendons."""

_AXIAL: Final = ("revolute", "prismatic", "cylindrical", "point_on_line", "fixed")


@dataclass(frozen=True)
class LoopEnd:
    """One side of a closing joint: a ``frame`` on a ``link``, None for the base."""

    link: str | None
    frame: Frame = field(default_factory=Frame)


@dataclass(frozen=True, repr=False)
class Loop:
    """A joint that closes a loop.

    ``first`` and ``second`` are the frames it joins. ``axis`` is a unit vector of both (revolute,
    prismatic, cylindrical, point_on_line: the line through the first end's origin). ``sequence``
    names the axes of a universal joint: the first letter one of the first frame, the second one of
    the second. ``planar``: a revolute or fixed joint in a mechanism that moves in its plane, normal
    to the axis, anyway.
    ``length`` in m of a distance. A gear has no ends but two coordinates, ``joints``: second =
    ratio * first + offset. Nor has a coupling: of two coordinates, ``joints``, or two ``tendons``,
    the second is a polynomial of the first, with the coefficients ``curve`` (c0, c1, c2, ...) in
    powers of the first; of a single one, it is held at c0.
    """

    name: str
    kind: str
    first: LoopEnd = field(default_factory=lambda: LoopEnd(None))
    second: LoopEnd = field(default_factory=lambda: LoopEnd(None))
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    sequence: str = ""
    planar: bool = False
    length: float = 0.0
    joints: tuple[str, ...] = ()
    ratio: float = 1.0
    offset: float = 0.0
    tendons: tuple[str, ...] = ()
    curve: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ModelError("a loop has no name; give every loop a non-empty one")
        if self.kind not in LOOP_KINDS:
            raise ModelError(
                f"{self}: unknown type {self.kind!r}; choose one of {', '.join(LOOP_KINDS)}"
            )
        settle(self, axis=unit_axis(str(self), self.axis))
        if self.axis != (0.0, 0.0, 1.0) and self.kind not in _AXIAL:
            raise ModelError(
                f"{self}: a {self.kind} joint takes no axis; those of type {', '.join(_AXIAL)} do"
            )
        sequence = (self.sequence or ("YX" if self.kind == "universal" else "")).upper()
        if (self.kind == "universal") != bool(sequence) or (
            sequence and sequence not in UNIVERSAL_SEQUENCES
        ):
            known = f"choose one of {', '.join(UNIVERSAL_SEQUENCES)}"
            what = known if self.kind == "universal" else "a universal joint alone has one"
            raise ModelError(f"{self}: sequence {self.sequence!r} is wrong; {what}")
        settle(self, sequence=sequence)
        if self.planar and self.kind not in PLANAR:
            raise ModelError(
                f"{self}: planar belongs to {' and '.join(PLANAR)} joints, not to {self.kind} ones"
            )
        length = one_number(self.length)
        if (self.kind == "distance") != (length != 0.0) or not 0.0 <= length < math.inf:
            raise ModelError(
                f"{self}: length {shown(self.length)} is wrong; a distance has one above 0 in "
                "m, other joints have none"
            )
        settle(self, length=length)
        self._check_coupling()
        for end in (self.first, self.second):
            if not is_rigid(end.frame):
                raise ModelError(
                    f"{self}: its frame on {end.link or 'the base'!r} is not a finite position and "
                    "a rotation matrix"
                )

    def _check_coupling(self) -> None:
        """Refuse what does not belong to a gear, a coupling, or another loop."""
        ratio, offset = one_number(self.ratio), one_number(self.offset)
        if not (math.isfinite(ratio) and math.isfinite(offset)):
            raise ModelError(
                f"{self}: ratio {shown(self.ratio)} and offset {shown(self.offset)} must be finite "
                "numbers"
            )
        curve = tuple(map(one_number, self.curve))
        settle(self, ratio=ratio, offset=offset)
        if self.kind != "gear" and (ratio, offset) != (1.0, 0.0):
            raise ModelError(f"{self}: ratio and offset belong to gears, not to {self.kind} joints")
        if self.kind == "coupling":
            if bool(self.joints) == bool(self.tendons) or len(self.related) > 2:
                raise ModelError(
                    f"{self}: a coupling relates two coordinates, or two tendons, or holds one; "
                    f"got joints {list(self.joints)} and tendons {list(self.tendons)}"
                )
            if not curve or not all(map(math.isfinite, curve)):
                raise ModelError(
                    f"{self}: curve [{', '.join(map(shown, self.curve))}] must be finite "
                    "coefficients [c0, c1, c2, …] of the second in powers of the first"
                )
            if len(self.related) == 1 and len(self.curve) > 1:
                raise ModelError(f"{self}: what is held alone has a curve of one number, its value")
            settle(self, curve=curve)
            return
        if (self.kind == "gear") != bool(self.joints) or (self.joints and len(self.joints) != 2):
            raise ModelError(
                f"{self}: joints {list(self.joints)} is wrong; a gear couples two coordinates, "
                "other loops have none"
            )
        if self.tendons or self.curve:
            raise ModelError(
                f"{self}: tendons and curve belong to couplings, not to {self.kind} joints"
            )

    def __str__(self) -> str:
        return f"loop {self.name!r}"

    def __repr__(self) -> str:
        if self.couples:
            x, y, (c0, *slopes) = self.related[0], self.related[-1], self.polynomial
            powers = [f"{c:g} {x}{f'^{k}' * (k > 1)}" for k, c in enumerate(slopes, 1) if c]
            return f"<{self}: {self.kind}, {y} = {' + '.join([*powers, f'{c0:g}'])}>"
        ends = " and ".join(end.link or "the base" for end in (self.first, self.second))
        return f"<{self}: {'planar ' * self.planar}{self.kind} between {ends}>"

    @property
    def couples(self) -> bool:
        """Whether it relates coordinates or tendons, and has no ends."""
        return self.kind in COUPLINGS

    @property
    def related(self) -> tuple[str, ...]:
        """What a gear or coupling relates: (first, second), or what it holds alone."""
        return self.joints or self.tendons

    @property
    def polynomial(self) -> tuple[float, ...]:
        """c0, c1, c2, ...: the second of a gear or coupling in powers of the first."""
        return (self.offset, self.ratio) if self.kind == "gear" else self.curve

    @property
    def rows(self) -> tuple[str, ...]:
        """What the joint forbids: see the module's text."""
        return PLANAR[self.kind] if self.planar else LOOP_KINDS[self.kind]

    @property
    def names(self) -> tuple[str, ...]:
        """A name per row: the loop's, and the row's."""
        return tuple(f"{self.name}.{row}" for row in self.rows)

    @property
    def units(self) -> tuple[str, ...]:
        """A unit per row of the residual."""
        return tuple("m" if row in LENGTHS else "1" for row in self.rows)

    @property
    def freedoms(self) -> int:
        """Degrees of freedom that the closing joint leaves: 6 less its rows, in a plane 3."""
        return (3 if self.planar else 6) - len(self.rows)

    @property
    def frames(self) -> tuple[Frame, Frame]:
        """Both frames turned so that the rows are taken along their axes: z along the joint's axis;
        a universal joint's own.
        """
        axes = [AXES[letter] for letter in self.sequence] or [self.axis] * 2
        first, second = (Frame(align_z(axis)) for axis in axes)
        return self.first.frame @ first, self.second.frame @ second


def between_bodies(loops: Iterable[Loop]) -> list[Loop]:
    """The loops that a robot can have before its tendons are there."""
    return [loop for loop in loops if not loop.tendons]


def check_loops(
    robot: str,
    loops: Sequence[Loop],
    guess: Iterable[str],
    coordinates: Sequence[str],
    turns: Sequence[Sequence[str]],
    attached: Mapping[str, Attachment],
    tendons: Mapping[str, Sequence[str]],
) -> None:
    """Refuse loops whose names clash, and loops and guesses that name what the robot does not have.

    coordinates: those that a gear, a coupling or a guess may name; turns: the four entries of each
    quaternion, which a guess names together; attached: the robot's links; tendons: the rates that
    each tendon of the robot adds up.
    """
    some = ", ".join(coordinates[:20])
    named = set(guess)
    for turn in turns:
        joint = turn[0].rpartition(".")[0]
        if 0 < len(named.intersection(turn)) < 4 or joint in named:
            raise ModelError(
                f"{robot}: guess gives part of the orientation of {joint!r}; give all of "
                f"{', '.join(turn)}, or near({joint}=[w, x, y, z]) in Python",
                key=("guess",),
            )
    for name in guess:
        if name not in coordinates and not any(name in turn for turn in turns):
            if turns:
                some += f"; orientations by {', '.join(turns[0])}"
            raise ModelError(
                f"{robot}: guess names {name!r}, which is not a coordinate; choose among {some}",
                key=("guess",),
            )
    for i, loop in enumerate(loops):
        with about("loops", i):
            if loop.name in (other.name for other in loops[:i]):
                raise ModelError(f"two loops are named {loop.name!r}; names must differ")
            if loop.couples:
                _check_coupled(loop, coordinates, some, tendons)
            else:
                _check_ends(loop, attached)


def _check_coupled(
    loop: Loop, coordinates: Sequence[str], some: str, tendons: Mapping[str, Sequence[str]]
) -> None:
    for name in loop.joints:
        if name not in coordinates:
            raise ModelError(
                f"{loop}: there is no coordinate {name!r} to couple; coordinates are {some}"
            )
    for name in loop.tendons:
        if name not in tendons:
            listed = ", ".join(list(tendons)[:20]) or "none"
            raise ModelError(f"{loop}: there is no tendon {name!r} to couple; tendons are {listed}")
        if odd := [rate for rate in tendons[name] if rate not in coordinates]:
            raise ModelError(
                f"{loop}: the tendon {name!r} moves {odd[0]!r}, which has no coordinate of its "
                "own, so that its length is not known"
            )
    if len(loop.related) != len(set(loop.related)):
        raise ModelError(f"{loop}: {loop.related[0]!r} cannot be geared to itself")


def _check_ends(loop: Loop, attached: Mapping[str, Attachment]) -> None:
    ends = [end.link for end in (loop.first, loop.second)]
    for link in ends:
        if link is not None and not (isinstance(link, str) and link in attached):
            listed = ", ".join(sorted(attached)[:20])
            raise ModelError(f"{loop}: no link is named {shown(link)}; links are {listed}")
    if all(link is None or attached[link].body < 0 for link in ends):
        raise ModelError(f"{loop}: both of its ends are on the base, nothing moves between them")
    if ends[0] == ends[1]:
        raise ModelError(f"{loop}: both of its ends are on {ends[0]!r}; it must join two links")
