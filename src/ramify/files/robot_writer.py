"""A model as a robot file. Numbers are written so that they read back to the last bit."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, repeat
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError, RamifyError
from ramify.core.names import fresh
from ramify.documents.file_version import KEY, VERSION
from ramify.documents.writing import write_whole
from ramify.documents.yaml_text import MAX_BYTES, MAX_NODES
from ramify.files.import_report import ImportReport
from ramify.files.number_bounds import refuse_out_of_bounds
from ramify.files.shape_schema import EVERYTHING, shape_document
from ramify.model.body import Body
from ramify.model.collisions import Collisions
from ramify.model.dh import dh_frames
from ramify.model.elements import Element, Friction, Spring
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.machine import Actuator, Keyframe, Tendon
from ramify.model.robot import Robot

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:[-.][A-Za-z_0-9]+)*")
_TAKEN: Final = frozenset(["null", "true", "false"])
_LISTS: Final = (
    "left_out", "links", "world", "pairs", "excludes", "loops", "frames", "tendons", "actuators",
    "keyframes",
)  # fmt: skip
_LONG: Final = ("links", "loops")
"""Lists with a line for each entry, and those of them with a line for each key."""
_Z: Final = (0.0, 0.0, 1.0)

Part = dict[str, Any]
"""Values by key; None: the key is left out."""


def save(model: Robot, path: str | os.PathLike[str]) -> None:
    """Write a model as a robot file, whole or not at all. Raises ModelError where the file cannot
    be written, or would be larger than a robot file may be.
    """
    text = robot_file(model)
    refuse_large(text, model, path, "Save it as .urdf, or write", ModelError)
    write_whole(path, text, ModelError)


def refuse_large(
    text: str, model: Robot, path: str | os.PathLike[str], remedy: str, error: type[RamifyError]
) -> None:
    """Raise ``error`` where the text of a model's robot file, for a file at ``path``, is larger
    than a robot file may be, so that no reader would take it; ``remedy`` begins its last sentence.
    """
    for what, size, most in (
        ("bytes", len(text.encode()), MAX_BYTES),
        ("values", 2 + _values(_document(model)), MAX_NODES),
    ):
        if size > most:
            raise error(
                f"{os.fspath(path)}: {model.name} needs {size} {what}; a robot file has at most "
                f"{most}. {remedy} a file with a template for parts that repeat"
            )


def robot_file(model: Robot) -> str:
    """The text of a robot file with its version, to be kept. Raises ModelError as ``to_yaml``."""
    return f"{KEY}: {VERSION}\n{to_yaml(model)}"


def _values(part: Any) -> int:
    """How many values a part has, as the reader counts them: scalars, keys and collections."""
    if isinstance(part, Mapping):
        return 1 + sum(1 + _values(x) for x in part.values() if x is not None)
    if isinstance(part, str | int | float):
        return 1
    return 1 + sum(map(_values, part))


def to_yaml(model: Robot) -> str:
    """The text of a robot file that gives this model again: the same bodies, joints, shapes, points
    and modules, bit for bit. Digests of robots are of this text, so it does not have the version.

    Links that were merged into a body by a fixed joint come back as massless links, so that their
    names and frames stay known. Raises ModelError for numbers that no robot file may have.
    """
    refuse_out_of_bounds(model, model.name)
    return "\n".join(_lines(_document(model))) + "\n"


def _lines(document: Part) -> Iterator[str]:
    for key, value in document.items():
        if key not in _LISTS:
            yield f"{key}: {_flow(value)}"
            continue
        yield f"{key}:"
        for entry in value:
            if key not in _LONG:
                yield f"  - {_flow(entry)}"
                continue
            given = ((name, x) for name, x in entry.items() if x is not None)
            for indent, (name, x) in zip(chain(["  - "], repeat("    ")), given, strict=False):
                if name == "shapes":
                    yield f"{indent}shapes:"
                    yield from (f"      - {_flow(shape)}" for shape in x)
                else:
                    yield f"{indent}{name}: {_flow(x)}"


def _flow(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, Mapping):
        entries = (f"{_flow(key)}: {_flow(x)}" for key, x in value.items() if x is not None)
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(float(value)).replace("inf", ".inf")
    if not isinstance(value, str):
        return f"[{', '.join(map(_flow, value))}]"
    if _PLAIN.fullmatch(value) and value.lower() not in _TAKEN:
        return value
    escaped = (
        f"\\{c}" if c in '"\\' else c if c.isprintable() else f"\\U{ord(c):08x}" for c in value
    )
    return f'"{"".join(escaped)}"'


def _document(model: Robot) -> Part:
    report, texts = model.metadata.get("report"), ("description", "source")
    document: Part = {
        "name": model.name,
        **{key: x for key in texts if isinstance(x := model.metadata.get(key), str)},
        "left_out": report.left_out if isinstance(report, ImportReport) else [],
        "gravity": model.gravity,
        "links": [*(_body(body, model) for body in model.bodies), *_merged(model)],
        "modules": model.module_groups
        and [[model.bodies[b].name for b in group] for group in model.module_groups],
        **_collisions(model.collisions),
        "loops": [_loop(loop) for loop in model.loops],
        "frames": [
            {"name": name, "link": model.bodies[b].name if b >= 0 else None, **_frame(frame)}
            for name, (b, frame) in model.machine.frames.items()
        ],
        "tendons": [_tendon(tendon) for tendon in model.tendons],
        "actuators": [_changed(actuator) for actuator in model.actuators],
        "keyframes": [_changed(key) for key in model.keyframes],
        "guess": model.guess,
    }
    return {key: value for key, value in document.items() if value not in (None, (), [], {}, "")}


def _collisions(collisions: Collisions) -> Part:
    world = [{**shape_document(s, EVERYTHING), **_frame(s.frame)} for s in collisions.world]
    pairs = [
        {"between": (p.first, p.second), "friction": p.friction, "restitution": p.restitution}
        for p in collisions.pairs
    ]
    together = {"neighbours_collide": True} if collisions.neighbours else {}
    return {"world": world, "pairs": pairs, "excludes": collisions.excludes, **together}


def _merged(model: Robot) -> Iterator[Part]:
    """Links on fixed joints, whose joint is named like the link by default."""
    own = {body.name for body in model.bodies}
    moving = {joint.name for joint in model.joints}
    taken = moving | set(model.attached)
    for name, (carrier, frame) in model.attached.items():
        if name not in own:
            joint: Any = "fixed"
            if name in moving:
                taken.add(other := fresh(f"{name}_fixed", taken))
                joint = {"type": "fixed", "name": other}
            parent = model.bodies[carrier].name if carrier >= 0 else None
            yield {"name": name, "parent": parent, "joint": joint, "frame": _frame(frame)}


def _loop(loop: Loop) -> Part:
    joint = {
        "type": loop.kind,
        "axis": loop.axis if loop.axis != _Z else None,
        "sequence": loop.sequence or None,
        "planar": loop.planar or None,
        "length": loop.length or None,
    }
    if loop.kind == "gear":
        gear = {"joints": loop.joints, "ratio": loop.ratio, "offset": loop.offset}
        return {"name": loop.name, "joint": joint | gear}
    if loop.couples:
        related = "joints" if loop.joints else "tendons"
        return {"name": loop.name, "joint": joint | {related: loop.related, "curve": loop.curve}}
    first, second = ({"link": end.link, **_frame(end.frame)} for end in (loop.first, loop.second))
    return {"name": loop.name, "joint": joint, "first": first, "second": second}


def _body(body: Body, model: Robot) -> Part:
    principal, (lift, lifted_at) = np.diag(body.inertia), body.lift
    short = (np.diag(principal) == body.inertia).all() and (principal >= 0.0).all()
    placement, outlet = _placement(body, model), body.joint.outlet
    no_outlet = outlet.is_identity or "classical_dh" in placement
    return {
        "name": body.name,
        "parent": model.bodies[body.parent].name if body.parent >= 0 else None,
        "joint": _joint(body.joint, body.name),
        **placement,
        "outlet": None if no_outlet else _frame(outlet),
        "mass": body.mass,
        "com": _unless_zero(body.com),
        "inertia": (principal if short else body.inertia) if body.inertia.any() else None,
        "shapes": [{**shape_document(s), **_frame(s.frame)} for s in body.shapes] or None,
        "gravity_compensation": {"mass": lift, "com": lifted_at} if lift else None,
        "points": dict(body.points) or None,
    }


def _placement(body: Body, model: Robot) -> Part:
    """Where the joint is: the DH row that the body came with, if that is still where it is."""
    joint = body.joint
    plain = joint.kind in ("revolute", "prismatic") and joint.axis == _Z
    for key, convention in (("dh", "modified"), ("classical_dh", "classical")):
        row = model.metadata.get(key, {}).get(body.name)
        if row is not None and plain:
            alpha, a, b, theta = row
            placement, outlet = dh_frames(convention, a, alpha, b, theta)
            if placement == joint.placement and (key == "dh" or outlet == joint.outlet):
                return {key: {"alpha": alpha, "a": a, "b": b, "theta": theta}}
    return {"frame": _frame(body.joint.placement)}


def _joint(joint: Joint, link: str) -> Part:
    return {
        "type": joint.kind,
        "name": joint.name if joint.name != link else None,
        "axis": joint.axis if joint.steps != replace(joint, axis=_Z).steps else None,
        "sequence": joint.sequence or None,
        "pitch": joint.pitch or None,
        "limits": joint.limits or None,
        "actuated": None if joint.actuated else False,
        "backwards": joint.backwards or None,
        **_machine(joint.elements),
    }


def _unless_zero(point: Array) -> Array | None:
    """A point that is not the default, zeros without a sign."""
    return point if point.any() or np.signbit(point).any() else None


def _frame(frame: Frame) -> Part:
    return {
        "xyz": _unless_zero(frame.position),
        "rotation": None if Frame(frame.rotation).is_identity else frame.rotation,
    }


# ---- the machine ----


def _damping(element: Element) -> float | Part:
    linear, quadratic, cubic = element.damping
    if quadratic or cubic:
        return {"linear": linear, "quadratic": quadratic, "cubic": cubic}
    return linear


def _spring(element: Element) -> Part:
    spring = element.spring or Spring((0.0, 0.0, 0.0))
    rest = spring.rest[0] if len(spring.rest) == 1 else spring.rest
    a, b, c = spring.stiffness
    return {"stiffness": (a, b, c) if b or c else a, "rest": rest}


def _friction(element: Element) -> Part:
    f = element.friction or Friction(0.0, 0.0)
    sides = {"forward": f.forward, "backward": f.backward}
    return {
        "coulomb": f.forward if f.forward == f.backward else sides,
        "static": f.static or None,
        "stribeck_speed": f.stribeck_speed or None,
        "stribeck": f.stribeck if f.stribeck != "rational" else None,
        "slip_speed": f.slip_speed,
        "lugre": f.bristles and vars(f.bristles),
    }


def _stop(element: Element) -> Part:
    s = element.stop
    if s.stiffness is not None:
        return {"stiffness": s.stiffness, "damping": s.damping}
    return {"time": s.time, "ratio": s.ratio}


_MACHINE: Final[Mapping[str, Callable[[Element], Any]]] = {
    "armature": lambda e: e.armature,
    "damping": _damping,
    "spring": _spring,
    "friction": _friction,
    "stop": _stop,
    "effort": lambda e: e.effort,
    "velocity": lambda e: e.velocity,
    "gear": lambda e: e.gear,
    "backward_effort": lambda e: -e.efforts[0],
    "lifts": lambda e: e.lifts,
}


def _machine(elements: Sequence[Element]) -> Part:
    """The keys of a joint's machine: one value where all coordinates agree, else a list."""
    keys: Part = {}
    for key, said in _MACHINE.items():
        values = [said(element) for element in elements]
        plain = all(value == said(Element()) for value in values)
        if key == "backward_effort":
            plain = all(element.backward_effort is None for element in elements)
        if not plain:
            keys[key] = values[0] if all(value == values[0] for value in values) else values
    if elements and elements[-1].cone < math.inf:
        keys["cone"] = elements[-1].cone
    return keys


def _tendon(tendon: Tendon) -> Part:
    runs = [{"divisor": d, "frames": names} for d, names in tendon.branches]
    path = {"branches": runs} if runs else {"joints": dict(tendon.joints)}
    keys = ("stiffness", "damping", "rest", "effort")
    return {"name": tendon.name, **path, **{key: getattr(tendon, key) for key in keys}}


def _changed(record: Actuator | Keyframe) -> Part:
    """The fields of a record that differ from their defaults."""
    values = {f.name: (getattr(record, f.name), f.default) for f in fields(record)}
    kept = ("name", "q")
    return {key: x for key, (x, default) in values.items() if key in kept or x != default}
