"""What a machine has at each coordinate of a joint besides rigid links: rotor, spring, damping,
friction, stops, and what its drive can give.

A force of an element is the generalized force it puts on the joint. Units are those of the
coordinate: N m and rad for an angle, N and m for a slide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ramify.core.arrays import refuse_masks
from ramify.core.errors import ModelError
from ramify.core.messages import nearest_name

Cubic = tuple[float, float, float]
"""(a, b, c) of the law (a + b |x| + c x^2) x."""
NONE: Final[Cubic] = (0.0, 0.0, 0.0)
STRIBECK: Final = ("rational", "exponential")
"""The curves by which static friction falls to sliding friction."""


@dataclass(frozen=True)
class Spring:
    """-(a + b x + c x^2) x with x = q - rest; ``stiffness`` (a, b, c) in N m/rad, N m/rad^2, …

    On the three components of a ball, or of the place of a free joint, x is the vector from
    ``rest`` (a unit quaternion, or a place) and |x| its length.
    """

    stiffness: Cubic
    rest: tuple[float, ...] = (0.0,)


@dataclass(frozen=True)
class Bristles:
    """The LuGre law: surfaces stick by bristles that bend, a state of their own, so that a joint at
    rest stays where it is. ``stiffness`` (N m/rad or N/m) and ``damping`` (N m s or N s/m) of the
    bristles; None: those of an oscillation of the joint's own inertia that settles in about
    ``time`` seconds.
    """

    stiffness: float | None = None
    damping: float | None = None
    time: float = 0.005


@dataclass(frozen=True)
class Friction:
    """Dry friction: ``forward`` against positive rates and ``backward`` against negative ones,
    neither below 0, N m or N.

    ``static`` (0: the same as sliding) falls to the sliding force around ``stribeck_speed``, by the
    ``stribeck`` curve g: ``"rational"``, 1 / (1 + (v / v_s)^2), or ``"exponential"``,
    exp(-(v / v_s)^2). The sign of the rate v is smoothed to s = v / sqrt(v^2 + slip_speed^2); None:
    by the joint's own inertia. The force is -(F_c + (static - F_c) g) s (1 + k s), with the mean
    F_c of both directions and k = (forward - backward) / (forward + backward): near rest both take
    part. With ``bristles`` the joint truly sticks, and ``static`` is the same in both directions.
    """

    forward: float
    backward: float
    static: float = 0.0
    stribeck_speed: float = 0.0
    slip_speed: float | None = None
    bristles: Bristles | None = None
    stribeck: str = "rational"

    @property
    def sliding(self) -> float:
        """The mean of both directions."""
        return 0.5 * (self.forward + self.backward)


@dataclass(frozen=True)
class Stop:
    """What holds a coordinate at its limits: ``stiffness`` and ``damping``, or, where None, those
    of a contact that lasts about ``time`` seconds with the damping ratio ``ratio``.
    """

    time: float = 0.005
    ratio: float = 1.0
    stiffness: float | None = None
    damping: float | None = None


@dataclass(frozen=True)
class Element:
    """The machine at one coordinate. ``armature``: reflected inertia of the rotor, kg m^2 or kg.
    ``damping`` (a, b, c): -(a + b |v| + c v^2) v. ``effort``, ``velocity``: what the drive can
    give, infinite where not given. ``cone``: the largest angle of a ball joint, rad. ``lifts``:
    gravity compensation comes through the drive, within its effort. ``backward_effort``: where it
    differs from ``effort``. ``gear``: turns of the rotor per turn (or metre) of the joint; the
    armature contains its square already.
    """

    armature: float = 0.0
    damping: Cubic = NONE
    spring: Spring | None = None
    friction: Friction | None = None
    stop: Stop = Stop()
    effort: float = math.inf
    velocity: float = math.inf
    cone: float = math.inf
    lifts: bool = False
    backward_effort: float | None = None
    gear: float = 1.0

    @property
    def efforts(self) -> tuple[float, float]:
        """What the drive can give backward (negative) and forward."""
        back = self.effort if self.backward_effort is None else self.backward_effort
        return -back, self.effort

    @property
    def idle(self) -> bool:
        """Whether it does nothing at a coordinate without limits."""
        return replace(self, stop=Stop(), gear=1.0) == Element()

    @property
    def turned(self) -> Element:
        """The element at a coordinate of the opposite sign."""
        spring, friction = self.spring, self.friction
        if spring is not None:
            a, b, c = spring.stiffness
            spring = Spring((a, -b, c), tuple(-x for x in spring.rest))
        if friction is not None:
            friction = replace(friction, forward=friction.backward, backward=friction.forward)
        back = self.backward_effort
        effort = self.effort if back is None else back
        own = None if back is None else self.effort
        return replace(self, spring=spring, friction=friction, effort=effort, backward_effort=own)


Given = Mapping[str, object]


def elements(dof: int, keys: Given, beside: tuple[str, ...] = ()) -> tuple[Element, ...]:
    """One element per rate of a joint from values by key; a list has one entry per rate, anything
    else serves all. () where nothing is given. ``beside``: keys that the caller has taken out.

    Raises ModelError whose ``key`` and first word are the key of what is wrong.
    """
    said = {key: _plain(key, value) for key, value in keys.items() if value is not None}
    unknown = [key for key in said if key not in KEYS]
    if unknown:
        known = [*KEYS, *beside]
        meant = nearest_name(str(unknown[0]), known)
        hint = f"did you mean {meant!r}? " if meant else ""
        text = f" is no key of a joint's machine; {hint}keys are {', '.join(known)}"
        raise _wrong(str(unknown[0]), text)
    if not said:
        return ()
    if "armature" in said and "rotor" in said:
        raise _wrong("rotor", ": armature and rotor exclude each other; give one of them")
    if "gear" in said and "rotor" in said:
        raise _wrong("gear", ": a rotor has its own gear; give one of them")
    return tuple(
        _element({key: _entry(key, value, i, dof) for key, value in said.items()})
        for i in range(dof)
    )


def elements_of(
    who: str, dof: int, keys: Given, beside: tuple[str, ...] = ()
) -> tuple[Element, ...]:
    """``elements`` with errors that say whose element is wrong."""
    try:
        return elements(dof, keys, beside)
    except ModelError as error:
        raise ModelError(f"{who}: {error}") from None


def _plain(key: str, value: object) -> object:
    """A value without NumPy's types."""
    if isinstance(value, np.ndarray | np.generic):
        refuse_masks(key, value, ModelError)
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(key, entry) for name, entry in value.items()}
    return [_plain(key, x) for x in value] if isinstance(value, list | tuple) else value


def _entry(key: str, value: object, i: int, dof: int) -> object:
    if isinstance(value, (list, tuple)):
        if len(value) == 1:
            return value[0]
        if len(value) != dof:
            rates = f"{dof} coordinate{'s' * (dof != 1)}"
            raise _wrong(key, f" has {len(value)} entries for {rates} of the joint")
        return value[i]
    if key == "spring" and isinstance(value, Mapping) and dof > 1:
        rest = value.get("rest")
        if isinstance(rest, (list, tuple)) and len(rest) == dof:
            return {**value, "rest": rest[i]}
    return value


def _element(keys: Given) -> Element:
    read: dict[str, Any] = {
        key: _READERS[key](key, value) for key, value in keys.items() if value is not None
    }
    if "rotor" in read:  # inertia · gear^2, and the gear
        inertia, gear = read.pop("rotor")
        read |= {"armature": inertia * gear * gear, "gear": gear}
    element = Element(**read)
    if not max(element.effort, element.backward_effort or 0.0):
        raise _wrong("effort", " is 0; give what the drive can give, or leave it out for no limit")
    if not element.velocity:
        raise _wrong("velocity", " is 0; give the rated speed, or leave it out")
    return element


def _rotor(key: str, value: object) -> tuple[float, float]:
    part = _part(key, value, ("inertia", "gear"))
    gear = _gear("rotor.gear", part.get("gear", 1.0))
    return _number("rotor.inertia", _needed(key, part, "inertia")), gear


def _gear(key: str, value: object) -> float:
    gear = _any(key, value)
    if not gear:
        raise _wrong(key, " is 0; it must be the turns of the rotor per turn of the joint")
    return gear


def _spring(key: str, value: object) -> Spring | None:
    if isinstance(value, Spring):
        return value
    part = _part(key, value, ("stiffness", "rest"))
    rest = part.get("rest", 0.0)
    row = rest if isinstance(rest, (list, tuple)) else (rest,)
    stiffness = _needed("spring", part, "stiffness")
    if isinstance(stiffness, (list, tuple)):
        if len(stiffness) != 3:
            raise _wrong("spring.stiffness", " must be one number or three: (a + b x + c x^2) x")
        a, b, c = (_any("spring.stiffness", x) for x in stiffness)
    else:
        a, b, c = _number("spring.stiffness", stiffness), 0.0, 0.0
    if not (a or b or c):
        return None
    return Spring((a, b, c), tuple(_any("spring.rest", x) for x in row))


def _friction(key: str, value: object) -> Friction | None:
    if isinstance(value, Friction):
        return value
    if not isinstance(value, Mapping):
        value = {"coulomb": value}
    speeds = ("static", "stribeck_speed", "slip_speed")
    part = _part(key, value, ("coulomb", *speeds, "stribeck", "lugre"))
    coulomb = _needed(key, part, "coulomb")
    if isinstance(coulomb, Mapping):
        sides = ("forward", "backward")
        both = _part("friction.coulomb", coulomb, sides)
        forward, backward = (
            _number(f"friction.coulomb.{side}", _needed("friction.coulomb", both, side))
            for side in sides
        )
    else:
        forward = backward = _number("friction.coulomb", coulomb)
    more: dict[str, Any] = {
        name: _number(f"friction.{name}", part[name]) for name in speeds if name in part
    }
    if "stribeck" in part:
        more["stribeck"] = _curve(part["stribeck"])
    friction = Friction(forward, backward, **more, bristles=_bristles(part.get("lugre")))
    most = max(friction.forward, friction.backward)
    if friction.static and friction.static < most:
        text = f" {friction.static:g} is below the sliding friction {most:g}; it must be larger"
        raise _wrong("friction.static", text)
    if friction.static and not friction.stribeck_speed:
        raise _wrong("friction.static", " needs friction.stribeck_speed, the speed where it falls")
    if friction.slip_speed == 0.0:
        raise _wrong("friction.slip_speed", " is 0; it must be above 0: it smooths the sign of v")
    if friction.bristles is not None and not min(friction.forward, friction.backward):
        raise _wrong("friction.lugre", " needs friction.coulomb above 0, in both directions")
    return friction if friction.sliding or friction.static else None


def _curve(value: object) -> str:
    if value not in STRIBECK:
        raise _wrong("friction.stribeck", f" must be {' or '.join(STRIBECK)}; got {value!r}")
    return str(value)


def _bristles(value: object) -> Bristles | None:
    if value is None or value is False:
        return None
    part = _part("friction.lugre", {} if value is True else value, ("stiffness", "damping", "time"))
    made = {key: _number(f"friction.lugre.{key}", x) for key, x in part.items()}
    for key in ("stiffness", "time"):
        if made.get(key) == 0.0:
            raise _wrong(f"friction.lugre.{key}", " is 0; it must be finite and above 0")
    return Bristles(**made)


def _stop(key: str, value: object) -> Stop:
    if isinstance(value, Stop):
        return value
    part = _part(key, value, ("time", "ratio", "stiffness", "damping"))
    read = {name: _number(f"stop.{name}", entry) for name, entry in part.items()}
    by_stiffness = {"stiffness", "damping"} & set(read)
    if by_stiffness and {"time", "ratio"} & set(read):
        raise _wrong("stop", ": time and ratio exclude stiffness and damping; give one pair")
    if by_stiffness and not read.get("stiffness"):
        raise _wrong("stop.stiffness", " must be finite and above 0")
    if read.get("time") == 0.0:
        raise _wrong("stop.time", " must be finite and above 0, in s")
    return Stop(**read | {"damping": read.get("damping", 0.0)}) if by_stiffness else Stop(**read)


def _damping(key: str, value: object) -> Cubic:
    """(a, b, c), refused where the law would make energy."""
    names = ("linear", "quadratic", "cubic")
    if isinstance(value, Mapping):
        part = _part(key, value, names)
        a, b, c = (_any(f"{key}.{name}", part.get(name, 0.0)) for name in names)
    else:
        a, b, c = _number(key, value), 0.0, 0.0
    if a < 0.0 or c < 0.0 or (b < 0.0 and b * b > 4.0 * a * c):
        raise _wrong(key, f" ({a:g}, {b:g}, {c:g}) would make energy at some speed")
    return a, b, c


def _wrong(key: str, text: str) -> ModelError:
    return ModelError(f"{key}{text}", key=tuple(key.split(".")))


def _part(key: str, value: object, names: Sequence[str]) -> Given:
    if not isinstance(value, Mapping):
        raise _wrong(key, f" must be a mapping with {', '.join(names)}; got {value!r}")
    for name in value:
        if name not in names:
            raise _wrong(f"{key}.{name}", f" is unknown; {key} has {', '.join(names)}")
    return {name: entry for name, entry in value.items() if entry is not None}


def _needed(key: str, part: Given, name: str) -> object:
    if name not in part:
        raise _wrong(f"{key}.{name}", " is missing")
    return part[name]


def _any(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _wrong(key, f" {value!r} must be a finite number")
    return float(value)


def _number(key: str, value: object) -> float:
    """A number ≥ 0."""
    if (x := _any(key, value)) < 0.0:
        raise _wrong(key, f" {x:g} must be finite and ≥ 0")
    return x


def _limit(key: str, value: object) -> float:
    """A number ≥ 0; infinity means none."""
    return math.inf if value == math.inf else _number(key, value)


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(key, f" {value!r} must be True or False")
    return value


_READERS: Final[dict[str, Callable[[str, object], object]]] = {
    "armature": _number, "rotor": _rotor, "damping": _damping, "spring": _spring,
    "friction": _friction, "stop": _stop, "effort": _limit, "velocity": _limit, "cone": _limit,
    "backward_effort": _number, "lifts": _flag, "gear": _gear,
}  # fmt: skip
KEYS: Final = tuple(_READERS)
"""What a joint of a file, or of ``Builder.link``, may say about its elements."""
