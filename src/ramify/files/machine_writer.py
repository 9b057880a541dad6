"""The machine of a robot as keys of its file: elements of joints, frames, tendons, actuators,
keyframes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Final

from ramify.model.elements import Element, Friction, Spring
from ramify.model.frame import Frame
from ramify.model.machine import Actuator, Keyframe
from ramify.model.robot import Robot


def number(value: float) -> str:
    """A number that reads back to the last bit; zeros go without their sign."""
    return repr(float(value) + 0.0).replace("inf", ".inf")


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
    if (b := f.bristles) is not None:
        own = _mapping(stiffness=b.stiffness, damping=b.damping, time=b.time)
        more = ", ".join(filter(None, (more, f"lugre: {own}")))
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
    "gear": lambda e: number(e.gear),
}


def machine_entries(elements: Sequence[Element]) -> Iterator[str]:
    """The keys of a joint's machine: one value where all coordinates agree, else a list."""
    for key, written in _WRITERS.items():
        values = [written(element) for element in elements]
        if any(value != written(Element()) for value in values):
            same = len(set(values)) == 1
            yield f"{key}: {values[0] if same else '[' + ', '.join(values) + ']'}"
    for key in ("backward_effort", "lifts"):
        given = [getattr(element, key) for element in elements]
        if any(x is not None and x is not False for x in given):
            words = [str(x).lower() if isinstance(x, bool) else number(e.effort if x is None else x)
                     for x, e in zip(given, elements, strict=True)]  # fmt: skip
            yield f"{key}: {words[0] if len(set(words)) == 1 else '[' + ', '.join(words) + ']'}"
    if elements and elements[-1].cone < math.inf:
        yield f"cone: {number(elements[-1].cone)}"


def machine_lines(
    robot: Robot, text: Callable[[str], str], frame: Callable[[Frame], list[str]]
) -> Iterator[str]:
    """The lines of a robot file for a machine."""
    if robot.machine.frames:
        yield "frames:"
        for name, (b, local) in robot.machine.frames.items():
            link = [f"link: {text(robot.bodies[b].name)}"] if b >= 0 else []
            yield f"  - {{{', '.join([f'name: {text(name)}', *link, *frame(local)])}}}"
    if robot.tendons:
        yield "tendons:"
    for t in robot.tendons:
        entries = [f"name: {text(t.name)}"]
        if t.branches:
            runs = (
                f"{{divisor: {number(d)}, frames: [{', '.join(map(text, names))}]}}"
                for d, names in t.branches
            )
            entries.append(f"branches: [{', '.join(runs)}]")
        else:
            pairs = ", ".join(f"{text(name)}: {number(c)}" for name, c in t.joints)
            entries.append(f"joints: {{{pairs}}}")
        entries += [f"stiffness: {numbers(t.stiffness)}", f"damping: {numbers(t.damping)}"]
        entries += [f"rest: {numbers(t.rest)}", f"effort: {numbers(t.effort)}"]
        yield f"  - {{{', '.join(entries)}}}"
    if robot.actuators:
        yield "actuators:"
    for a in robot.actuators:
        yield f"  - {{{', '.join(_entries(a, text))}}}"
    if robot.keyframes:
        yield "keyframes:"
    for k in robot.keyframes:
        yield f"  - {{{', '.join(_entries(k, text))}}}"


def _entries(record: Actuator | Keyframe, text: Callable[[str], str]) -> Iterator[str]:
    """The fields of a record that differ from their defaults."""
    for f in fields(record):
        value = getattr(record, f.name)
        if value == f.default and f.name not in ("name", "q"):
            continue
        if isinstance(value, bool):
            yield f"{f.name}: {str(value).lower()}"
        elif isinstance(value, str):
            yield f"{f.name}: {text(value)}"
        elif isinstance(value, Sequence):
            yield f"{f.name}: {numbers(value)}"
        else:
            yield f"{f.name}: {number(value)}"
