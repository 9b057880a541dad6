"""What looks wrong in the machine of a robot: friction, rotors, springs, ratings."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ramify.kernels.make import kernel
from ramify.lint.finding import Finding
from ramify.model.elements import Spring
from ramify.model.joint import Joint
from ramify.model.robot import Robot

_DWARFS = 100.0
_SEEDS = range(6)
_ROUNDED = 1e-4  # rad or m: a keyframe is often written with a few digits


def machine_findings(model: Robot) -> Iterator[Finding]:
    """Friction beyond the effort, rotors that dwarf their links, springs, keyframes and the
    neutral posture outside limits.
    """
    yield from _posture_findings(model)
    if not any(joint.elements for joint in model.joints):
        return
    q = np.array([model.tree.random(seed)[0] for seed in _SEEDS])
    whole = np.diagonal(kernel(model.tree, "mass_matrix")(q), axis1=1, axis2=2).max(axis=0)
    start = 0
    for joint in model.joints:
        for k, element in enumerate(joint.elements):
            yield from _element_findings(joint, k, whole[start + k] - element.armature)
        start += joint.dof


def _posture_findings(model: Robot) -> Iterator[Finding]:
    """Keyframes and the neutral posture outside the limits."""
    limits = list(zip(model.lower, model.upper, strict=True))
    for key in model.keyframes:
        for name, x, (low, high) in zip(model.coordinates, key.q, limits, strict=True):
            if not low - _ROUNDED <= x <= high + _ROUNDED:
                text = f"keyframe {key.name!r} puts {name} at {x:g}, outside the limits ({low:g}, {high:g})"  # noqa: E501
                yield Finding("warning", key.name, "keyframe-outside", text)
    outside = [
        name
        for name, x, (low, high) in zip(model.coordinates, model.neutral(), limits, strict=True)
        if low < high and not low - _ROUNDED <= x <= high + _ROUNDED
    ]
    if outside:
        text = f"neutral() is outside the limits of {', '.join(outside)}: start elsewhere, as at {'m.assemble().q' if model.loops else 'a keyframe or m.random(0)[0]'}"  # noqa: E501
        yield Finding("note", model.name, "neutral-outside", text)


def _element_findings(joint: Joint, k: int, inertia: float) -> Iterator[Finding]:
    """Findings on the k-th element of a joint; inertia: the largest it moves, without its rotor."""
    element, name = joint.elements[k], joint.velocities[k]
    friction = element.friction
    most = max(friction.forward, friction.backward, friction.static) if friction else 0.0
    if most > element.effort:
        text = f"friction {most:g} of {name} exceeds its effort {element.effort:g}: the drive cannot move it"  # noqa: E501
        yield Finding("warning", joint.name, "friction-effort", text)
    if element.armature > _DWARFS * inertia:
        text = f"armature {element.armature:g} of {name} is {element.armature / max(inertia, 1e-300):.3g} times the inertia it moves, {inertia:.3g}; check gear and unit (kg m^2 at the joint)"  # noqa: E501
        yield Finding("note", joint.name, "armature-large", text)
    if element.spring is not None:
        yield from _spring_findings(joint, k, element.spring)
    if math.isfinite(element.effort) and element.effort == 0.0:
        text = f"effort 0 of {name}: its drive gives nothing"
        yield Finding("warning", joint.name, "no-effort", text)


def _spring_findings(joint: Joint, k: int, spring: Spring) -> Iterator[Finding]:
    name, ranges = joint.velocities[k], joint.limits if joint.nq == joint.dof else ()
    if ranges and len(spring.rest) == 1:
        low, high = ranges[k]
        if not low <= spring.rest[0] <= high:
            text = f"the spring of {name} rests at {spring.rest[0]:g}, outside the limits ({low:g}, {high:g})"  # noqa: E501
            yield Finding("warning", joint.name, "rest-outside", text)
    a, b, c = spring.stiffness
    if (b * b > 4.0 * a * c and b) or min(a, c) < 0.0:
        text = f"the spring of {name} pushes away from its rest at some deflection"
        yield Finding("note", joint.name, "spring-sign", text)
