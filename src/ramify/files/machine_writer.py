"""The machine elements of a joint as keys of a robot file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ramify.model.elements import Element, Friction, Spring


def number(value: float) -> str:
    """A number that reads back to the last bit."""
    return repr(float(value)).replace("inf", ".inf")


def numbers(values: Iterable[float]) -> str:
    return f"[{', '.join(map(number, values))}]"


def _mapping(**entries: float | None) -> str:
    return f"{{{', '.join(f'{k}: {number(x)}' for k, x in entries.items() if x is not None)}}}"


def _damping(element: Element) -> str:
    linear, quadratic, cubic = element.damping
    if quadratic or cubic:
        return _mapping(linear=linear, quadratic=quadratic, cubic=cubic)
    return number(linear)


def _spring(element: Element) -> str:
    spring = element.spring or Spring((0.0, 0.0, 0.0))
    a, b, c = spring.stiffness
    rest = number(spring.rest[0]) if len(spring.rest) == 1 else numbers(spring.rest)
    return f"{{stiffness: {numbers((a, b, c)) if b or c else number(a)}, rest: {rest}}}"


def _friction(element: Element) -> str:
    f = element.friction or Friction(0.0, 0.0)
    sides = _mapping(forward=f.forward, backward=f.backward)
    coulomb = number(f.forward) if f.forward == f.backward else sides
    more = _mapping(
        static=f.static or None, stribeck_speed=f.stribeck_speed or None, slip_speed=f.slip_speed
    )[1:-1]
    return f"{{coulomb: {coulomb}{f', {more}' if more else ''}}}"


def _stop(element: Element) -> str:
    s = element.stop
    if s.stiffness is not None:
        return _mapping(stiffness=s.stiffness, damping=s.damping)
    return _mapping(time=s.time, ratio=s.ratio)


_WRITERS: Final[dict[str, Callable[[Element], str]]] = {
    "armature": lambda e: number(e.armature),
    "damping": _damping,
    "spring": _spring,
    "friction": _friction,
    "stop": _stop,
    "effort": lambda e: number(e.effort),
    "velocity": lambda e: number(e.velocity),
}


def machine_entries(elements: Sequence[Element]) -> Iterator[str]:
    """The keys of a joint's machine: one value where all coordinates agree, else a list."""
    for key, written in _WRITERS.items():
        values = [written(element) for element in elements]
        if any(value != written(Element()) for value in values):
            same = len(set(values)) == 1
            yield f"{key}: {values[0] if same else '[' + ', '.join(values) + ']'}"
    if elements and elements[-1].cone < math.inf:
        yield f"cone: {number(elements[-1].cone)}"
