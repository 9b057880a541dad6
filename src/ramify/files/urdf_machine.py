"""What a URDF joint says about its machine: ``<dynamics>`` and the ratings of ``<limit>``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lxml import etree

from ramify.core.errors import ModelError
from ramify.files.xml_reader import UNLIMITED, XmlValues
from ramify.model.elements import Element, Friction, Stop, elements
from ramify.model.joint import Joint
from ramify.model.robot import Robot

_DYNAMICS: Final = {"damping": "damping", "friction": "friction", "rotor_inertia": "armature"}


def joint_elements(
    values: XmlValues, parts: Mapping[str, etree._Element], dof: int, who: str
) -> tuple[Element, ...]:
    """The elements of a joint, one per rate; () where it says nothing. An effort or velocity of 0
    is not given.
    """
    given: dict[str, object] = {}
    dynamics, limit = parts.get("dynamics"), parts.get("limit")
    for key, ours in _DYNAMICS.items() if dynamics is not None else ():
        if x := values.number(dynamics, key, who, 0.0):
            given[ours] = x
    for key in ("effort", "velocity") if limit is not None else ():
        x = values.number(limit, key, who, 0.0, endless=True)
        if x and x < UNLIMITED:
            given[key] = x
    try:
        return elements(dof, given)
    except ModelError as error:
        at = limit if error.key[0] in ("effort", "velocity") else dynamics
        assert at is not None
        values.wrong(at, f"{who}: {error}")
        return ()


def limit_text(joint: Joint, no_limit: float) -> Iterator[str]:
    """``<limit>`` and ``<dynamics>`` of a joint with an axis; ``rotor_inertia`` is not in URDF's
    standard: programs that do not know it pass over it.
    """
    own = joint.machine[0]
    effort = max(map(abs, own.efforts))
    ratings = f'effort="{min(effort, no_limit)!r}" velocity="{min(own.velocity, no_limit)!r}"'
    if joint.limits or joint.kind == "prismatic":
        low, high = joint.limits[0] if joint.limits else (-no_limit, no_limit)
        ends = f'lower="{max(low, -no_limit)!r}" upper="{min(high, no_limit)!r}"'
        yield f"<limit {ends} {ratings}/>"
    elif min(effort, own.velocity) < no_limit:
        yield f"<limit {ratings}/>"
    coulomb = own.friction.sliding if own.friction else 0.0
    if own.damping[0] or coulomb or own.armature:
        rotor = f' rotor_inertia="{own.armature!r}"' if own.armature else ""
        yield f'<dynamics damping="{own.damping[0]!r}" friction="{coulomb!r}"{rotor}/>'


def unsaid(robot: Robot) -> Iterator[str]:
    """What of a robot's machine URDF cannot say."""
    found: dict[str, list[str]] = {}
    for joint in robot.joints:
        for element in joint.elements:
            friction = element.friction
            plain = Friction(friction.sliding, friction.sliding) if friction else None
            for what, there in (
                ("rotor inertia", element.armature and joint.dof > 1),
                ("spring", element.spring),
                ("damping beyond the linear", any(element.damping[1:])),
                ("friction by direction or speed", friction and friction != plain),
                ("stop", element.stop != Stop()),
                ("effort by direction", element.backward_effort is not None),
            ):  # fmt: skip
                if there and joint.name not in found.setdefault(what, []):
                    found[what].append(joint.name)
    for what, names in found.items():
        if names:
            yield f"left out: {what} of {', '.join(names)}"
    for what, names in (
        ("tendons", [tendon.name for tendon in robot.tendons]),
        ("actuators", [actuator.name for actuator in robot.actuators]),
        ("keyframes", [key.name for key in robot.keyframes]),
        ("gravity compensation of", [body.name for body in robot.bodies if body.lift[0]]),
    ):
        if names:
            yield f"left out: {what} {', '.join(names)}"
