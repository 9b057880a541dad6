"""A model as a robot file. Numbers are written so that they read back to the last bit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from ramify.core.errors import ModelError
from ramify.core.names import fresh
from ramify.documents.writing import write_whole
from ramify.files.import_report import ImportReport
from ramify.files.machine_writer import machine_entries, machine_lines, number, numbers
from ramify.model.body import Body, Shape
from ramify.model.dh import dh_frames
from ramify.model.frame import Frame
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.robot import Robot

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:[-.][A-Za-z_0-9]+)*")
_TAKEN: Final = frozenset(["null", "true", "false"])


def save(model: Robot, path: str | os.PathLike[str]) -> None:
    """Write a model as a robot file, whole or not at all. Raises ModelError where the file cannot
    be written.
    """
    write_whole(path, to_yaml(model), ModelError)


def to_yaml(model: Robot) -> str:
    """The text of a robot file that gives this model again: the same bodies, joints, shapes, points
    and modules, bit for bit.

    Links that were merged into a body by a fixed joint come back as massless links, so that their
    names and frames stay known.
    """
    return "\n".join(_lines(model)) + "\n"


def _lines(model: Robot) -> Iterator[str]:
    yield f"name: {_text(model.name)}"
    for key in ("description", "source"):
        if isinstance(model.metadata.get(key), str):
            yield f"{key}: {_text(model.metadata[key])}"
    report = model.metadata.get("report")
    if isinstance(report, ImportReport) and report.lost:
        yield "left_out:"
        yield from (f"  - {_text(text)}" for text in report.lost)
    yield f"gravity: {numbers(model.gravity)}"
    yield "links:"
    for body in model.bodies:
        yield from _body(body, model)
    own = {body.name for body in model.bodies}
    moving = {joint.name for joint in model.joints}
    taken = moving | set(model.attached)
    for name, (carrier, frame) in model.attached.items():
        if name not in own:
            yield f"  - name: {_text(name)}"
            if carrier >= 0:
                yield f"    parent: {_text(model.bodies[carrier].name)}"
            if name in moving:  # a fixed joint is named like its link by default
                taken.add(joint := fresh(f"{name}_fixed", taken))
                yield f"    joint: {{type: fixed, name: {_text(joint)}}}"
            else:
                yield "    joint: fixed"
            yield f"    frame: {_frame(frame)}"
    if model.module_groups is not None:
        groups = (
            f"[{', '.join(_text(model.bodies[b].name) for b in group)}]"
            for group in model.module_groups
        )
        yield f"modules: [{', '.join(groups)}]"
    if model.loops:
        yield "loops:"
        for loop in model.loops:
            yield from _loop(loop)
    yield from machine_lines(model, _text, lambda frame: list(_frame_entries(frame)))
    if model.guess:
        near = (f"{_text(name)}: {number(value)}" for name, value in model.guess.items())
        yield f"guess: {{{', '.join(near)}}}"


def _loop(loop: Loop) -> Iterator[str]:
    entries = [f"type: {loop.kind}"]
    if loop.axis != (0.0, 0.0, 1.0):
        entries.append(f"axis: {numbers(loop.axis)}")
    if loop.sequence:
        entries.append(f"sequence: {loop.sequence}")
    if loop.planar:
        entries.append("planar: true")
    if loop.length:
        entries.append(f"length: {number(loop.length)}")
    if loop.joints:
        entries.append(f"joints: [{', '.join(map(_text, loop.joints))}]")
        entries.append(f"ratio: {number(loop.ratio)}, offset: {number(loop.offset)}")
    yield f"  - name: {_text(loop.name)}"
    yield f"    joint: {{{', '.join(entries)}}}"
    for side, end in () if loop.joints else (("first", loop.first), ("second", loop.second)):
        link = [] if end.link is None else [f"link: {_text(end.link)}"]
        yield f"    {side}: {{{', '.join([*link, *_frame_entries(end.frame)])}}}"


def _body(body: Body, model: Robot) -> Iterator[str]:
    yield f"  - name: {_text(body.name)}"
    if body.parent >= 0:
        yield f"    parent: {_text(model.bodies[body.parent].name)}"
    yield f"    joint: {_joint(body.joint, body.name)}"
    placement = _placement(body, model)
    yield f"    {placement}"
    if not body.joint.outlet.is_identity and not placement.startswith("classical_dh"):
        yield f"    outlet: {_frame(body.joint.outlet)}"
    yield f"    mass: {number(body.mass)}"
    if body.com.any():
        yield f"    com: {numbers(body.com)}"
    if body.inertia.any():
        principal = np.diag(body.inertia)
        short = (np.diag(principal) == body.inertia).all() and (principal >= 0.0).all()
        yield f"    inertia: {numbers(principal) if short else _rows(body.inertia)}"
    if body.shapes:
        yield "    shapes:"
        yield from (f"      - {_shape(shape)}" for shape in body.shapes)
    if body.lift[0]:
        mass, com = body.lift
        yield f"    gravity_compensation: {{mass: {number(mass)}, com: {numbers(com)}}}"
    if body.points:
        yield (
            "    points: "
            f"{{{', '.join(f'{_text(name)}: {numbers(point)}' for name, point in body.points)}}}"
        )


def _placement(body: Body, model: Robot) -> str:
    """Where the joint is: the DH row that the body came with, if that is still where it is."""
    joint, simple = body.joint, body.joint.kind in ("revolute", "prismatic")
    for key, convention in (("dh", "modified"), ("classical_dh", "classical")):
        row = model.metadata.get(key, {}).get(body.name)
        if row is None or not simple or joint.axis != (0.0, 0.0, 1.0):
            continue
        alpha, a, b, theta = row
        placement, outlet = dh_frames(convention, a, alpha, b, theta)
        if placement == joint.placement and (key == "dh" or outlet == joint.outlet):
            columns = zip(("alpha", "a", "b", "theta"), row, strict=True)
            return f"{key}: {{{', '.join(f'{name}: {number(x)}' for name, x in columns)}}}"
    return f"frame: {_frame(body.joint.placement)}"


def _joint(joint: Joint, link: str) -> str:
    entries = [f"type: {joint.kind}"]
    if joint.name != link:
        entries.append(f"name: {_text(joint.name)}")
    if joint.steps != replace(joint, axis=(0.0, 0.0, 1.0)).steps:
        entries.append(f"axis: {numbers(joint.axis)}")
    if joint.sequence:
        entries.append(f"sequence: {joint.sequence}")
    if joint.pitch:
        entries.append(f"pitch: {number(joint.pitch)}")
    if joint.limits:
        entries.append(f"limits: {_rows(joint.limits)}")
    if not joint.actuated:
        entries.append("actuated: false")
    entries += machine_entries(joint.elements)
    return f"{{{', '.join(entries)}}}"


def _frame(frame: Frame) -> str:
    return f"{{{', '.join(_frame_entries(frame))}}}"


def _frame_entries(frame: Frame) -> Iterator[str]:
    if frame.position.any():
        yield f"xyz: {numbers(frame.position)}"
    if not Frame(frame.rotation).is_identity:
        yield f"rotation: {_rows(frame.rotation)}"


def _shape(shape: Shape) -> str:
    size = number(shape.size[0]) if shape.kind == "sphere" else numbers(shape.size)
    return f"{{{', '.join([f'{shape.kind}: {size}', *_frame_entries(shape.frame)])}}}"


def _rows(rows: Iterable[Iterable[float]]) -> str:
    return f"[{', '.join(map(numbers, rows))}]"


def _text(text: str) -> str:
    """A text as it is where that is safe, else in double quotes with escapes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _TAKEN:
        return text
    escaped = (
        f"\\{c}" if c in '"\\' else c if c.isprintable() else f"\\U{ord(c):08x}" for c in text
    )
    return f'"{"".join(escaped)}"'
