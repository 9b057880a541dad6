"""Checks of units: degrees for radians, millimetres, grams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.lint.finding import Finding, vector_to_four_digits
from ramify.model.frame import beyond_a_turn
from ramify.model.joint import Joint
from ramify.model.robot import Robot


def angles(model: Robot) -> Iterator[Finding]:
    limits = [(joint, *limit) for joint in model.joints for limit in _limits(joint)]
    ends = [end for _, _, turns, *pair in limits if turns for end in pair]
    # +-10 rad alone is a way to say "no limit"
    in_degrees = any(_whole_degrees(end) and abs(end) > 25.0 for end in ends)
    for joint, name, turns, low, high in limits:
        stated = f"limits ({low:g}, {high:g}) of {name}"
        whole = in_degrees and turns and _whole_degrees(low) and _whole_degrees(high)
        if whole and max(abs(low), abs(high)) > 7.0:
            right = ", ".join(f"{math.radians(x):.4g}" for x in (low, high))
            text = f"{stated} look like degrees; in rad they would be ({right})"
            yield Finding("warning", joint.name, "limits-degrees", text)
        elif low == high:
            remedy = "leave them out, or lock the joint with rf.with_locked"
            yield Finding("note", joint.name, "limits-closed", f"{stated} leave no room; {remedy}")
    yield from _frames_in_degrees(model)
    yield from _guesses_in_degrees(model)
    turns_of = {joint.name: _rounded_angle(joint.placement.rotation) for joint in model.joints}
    rounded = [name for name, angle in turns_of.items() if angle is not None]
    if rounded:
        more = " and more" if len(rounded) > 6 else ""
        others = f"; likewise {', '.join(rounded[1:6])}{more}" if rounded[1:] else ""
        text = f"its frame is turned by {turns_of[rounded[0]]} rad, a rounded multiple of pi/2"
        text = f"{text}; all digits make kernels smaller{others}"
        yield Finding("note", rounded[0], "angle-rounded", text)


def _limits(joint: Joint) -> Iterator[tuple[str, bool, float, float]]:
    """Name, whether it is an angle, lower and upper limit of each coordinate that has limits."""
    turns = [step.rho != 0.0 and not step.ball for step in joint.steps for _ in step.positions]
    for name, turn, (low, high) in zip(joint.coordinates, turns, joint.limits, strict=False):
        yield name, turn, low, high


def _whole_degrees(limit: float) -> bool:
    """Whether a limit could be a number of degrees: half, whole, or with one digit and not a
    rounded multiple of pi; at most two turns.
    """
    if not abs(limit) <= 720.0:
        return False
    tenths = 10.0 * limit == round(10.0 * limit) and abs(math.remainder(limit, math.pi)) > 0.06
    return tenths or 2.0 * limit == round(2.0 * limit)


def _frames_in_degrees(model: Robot) -> Iterator[Finding]:
    """Frames turned by more than a turn, or by a round number of radians, which are most likely
    degrees.
    """
    frames = [
        *((joint.name, f) for joint in model.joints for f in (joint.placement, joint.outlet)),
        *((link, at.frame) for link, at in model.attached.items()),
        *((name, at.frame) for name, at in model.machine.frames.items()),
        *((f"a shape of {body.name}", x.frame) for body in model.bodies for x in body.shapes),
        *((loop.name, end.frame) for loop in model.loops for end in (loop.first, loop.second)),
    ]
    found: dict[str, float] = {}
    for name, frame in frames:
        degrees = frame.angle if beyond_a_turn(frame.angle) else degrees_as_radians(frame.rotation)
        if degrees is not None:
            found.setdefault(name, degrees)
    for name, degrees in found.items():
        right = f"write {math.radians(degrees):.6g} rad, or a key that ends in _deg"
        text = f"its frame is turned by {degrees:g} rad; if these are degrees, {right}"
        yield Finding("warning", name, "frame-degrees", text)


def _guesses_in_degrees(model: Robot) -> Iterator[Finding]:
    """Guesses of angles beyond a whole turn, which make no sense in radians."""
    turning = {
        name
        for joint in model.joints
        for name, step in zip(joint.velocities, joint.steps, strict=True)
        if step.rho and not step.ball
    }
    for name, value in model.guess.items():
        if name in turning and 7.0 < abs(value) <= 720.0:
            right = f"in rad it would be {math.radians(value):.4g}"
            text = f"the guess {name} = {value:g} looks like degrees; {right}"
            yield Finding("warning", model.name, "guess-degrees", text)


def degrees_as_radians(R: Array) -> float | None:
    """The round number of radians, 4 to 360, from 7 on with one digit, by which a rotation about x,
    y, z in turn (as roll, pitch and yaw, or as a DH row) is turned; None where there is none.

    Half a turn can be shifted between the three angles, so each is also sought that far away.
    """
    for angle in (*_roll_pitch_yaw(R), *_roll_pitch_yaw(R.T)):
        for shifted in (angle, angle + math.pi, -angle, -angle + math.pi):
            for degrees in _round_radians().get(round(shifted % (2.0 * math.pi), 6), ()):
                close = 1e-9 if degrees.is_integer() else 1e-12
                if abs(math.remainder(shifted - degrees, 2.0 * math.pi)) < close:
                    return degrees
    return None


@cache
def _round_radians() -> dict[float, list[float]]:
    """Round numbers of radians, whole ones first, by where they end on the circle, to six digits
    and either side.
    """
    by_value: dict[float, list[float]] = {}
    whole = [float(x) for x in range(4, 361)]
    tenths = [x / 10.0 for x in range(70, 3600) if x % 10]
    for degrees in (*whole, *tenths):
        place = round(degrees % (2.0 * math.pi), 6)
        for near in (-1, 0, 1):
            by_value.setdefault(round(place + near * 1e-6, 6), []).append(degrees)
    return by_value


def _roll_pitch_yaw(R: Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw; NaN where they are not determined."""
    flat = math.hypot(R[0, 0], R[1, 0])
    if 0.0 < flat < 1e-7:
        return math.nan, math.nan, math.nan
    return (
        math.atan2(R[2, 1], R[2, 2]),
        math.atan2(-R[2, 0], flat),
        math.atan2(R[1, 0], R[0, 0]),
    )


def _rounded_angle(R: Array) -> float | None:
    """A roll, pitch or yaw that is +-pi/2 or +-pi, rounded or cut to 2-6 decimals, where there is
    one.
    """
    for angle, written in product(_roll_pitch_yaw(R), _SHORT_RIGHT_ANGLES):
        if abs(math.remainder(angle - written, 2.0 * math.pi)) < 1e-9:
            return written
    return None


_SHORT_RIGHT_ANGLES: Final[tuple[float, ...]] = tuple(
    sign * digits / 10**decimals
    for sign, size, decimals in product((1, -1), (math.pi / 2, math.pi), range(2, 7))
    for digits in (round(size * 10**decimals), math.floor(size * 10**decimals))
)


def lengths(model: Robot) -> Iterator[Finding]:
    offsets = [
        float(np.linalg.norm(f.position)) for j in model.joints for f in (j.placement, j.outlet)
    ]
    # The first joint may stand anywhere in the world; with several bodies its placement says
    # nothing about the robot's size.
    placed = zip(offsets[::2], model.bodies, strict=True)
    inner = [*(x for x, body in placed if body.parent >= 0), *offsets[1::2]]
    heavy = [body for body in model.bodies if body.mass > 0.0]
    reach = max(inner or offsets, default=0.0)
    size = max(reach, *(float(np.linalg.norm(body.com)) for body in heavy), 0.0)
    for body in heavy:
        com = float(np.linalg.norm(body.com))
        gyration = math.sqrt(max(0.0, float(np.linalg.eigvalsh(body.inertia)[-1])) / body.mass)
        longest = max(reach, gyration)
        # A slip of a thousand is far above 30; the bounds in metres leave bobs and flywheels on
        # small mounts alone.
        if 0.0 < longest < com / 30.0 and com > 5.0:
            text = (
                f"com {vector_to_four_digits(body.com)} m is {com:.3g} m away, lengths here are "
                f"{longest:.3g} m at most; are these millimetres?"
            )
            yield Finding("warning", body.name, "com-far", text)
        elif 0.0 < size < gyration / 30.0 and gyration > 1.0:
            text = (
                f"radius of gyration {gyration:.3g} m, while lengths here are {size:.3g} m at "
                "most: inertia up to "
                f"{body.inertia.max():.3g} for {body.mass:g} kg; are the units kg m^2 (not kg mm^2 "
                "or g mm^2) and kg?"
            )
            yield Finding("warning", body.name, "inertia-units", text)
        elif size > 0.0 and body.mass > 2e5 * (2.0 * max(size, gyration)) ** 3:
            text = (
                f"mass {body.mass:g} kg within about {size:.3g} m would be ten times denser than "
                "any metal; is it in grams?"
            )
            yield Finding("warning", body.name, "mass-units", text)


def gravity(model: Robot) -> Iterator[Finding]:
    size = math.hypot(*model.gravity)
    if size == 0.0:
        text = "gravity is zero; on Earth it is (0, 0, -9.81) m/s^2 with z up"
        yield Finding("note", model.name, "zero-gravity", text)
    elif size > 100.0:
        text = f"gravity of {size:g} m/s^2; on Earth it is 9.81 (not 9810 mm/s^2)"
        yield Finding("warning", model.name, "gravity-units", text)
