"""Units of a study's parameters and of the numbers it keeps, as far as they are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ramify.control import CONTROLLERS
from ramify.model.driven import driven
from ramify.model.robot import Robot
from ramify.studies.outputs import METRICS, WHOLE

_BY_KEY: Final = {
    "mass": "kg",
    "inertia": "kg m^2",
    "gravity": "m/s^2",
    "rate_hz": "Hz",
    "stiffness": "N/m",
    **dict.fromkeys(("com", "xyz", "a", "b", "d"), "m"),
    **dict.fromkeys(("alpha", "theta", "rpy"), "rad"),
    **dict.fromkeys(("t_end", "step", "max_step", "dt_out", "duration"), "s"),
}


def parameter_unit(path: str, robot: Robot, control: str = "") -> str:
    """The unit of a parameter, by its path; empty where it has none or it is not known. control:
    the type of the controller in the scenario file.
    """
    head, *rest = path.split(".")
    if head == "control" and rest:
        keys = CONTROLLERS.keys_of(control).values() if control in CONTROLLERS else ()
        unit = next((one.unit for one in keys if one.name == rest[0]), "")
        names = driven(robot).names
        entry = rest[1] if len(rest) > 1 else ""
        own = [entry] if entry in names else names
        own = [names[int(entry)]] if entry.isdecimal() and int(entry) < len(names) else own
        return _of_kinds(unit, own, robot)
    if head == "initial" and len(rest) > 1:
        unit = joint_unit(".".join(rest[1:]), robot)
        if rest[0].endswith("_deg"):
            unit = unit.replace("rad", "deg")
        return unit + ("/s" if unit and rest[0].startswith("v") else "")
    if path == "damping":
        kinds = {joint_unit(name, robot) for name in robot.velocities}
        both = {"rad": "N m s/rad", "m": "N s/m"}
        return " or ".join(unit for kind, unit in both.items() if kind in kinds)
    for key in reversed([head, *rest]):
        if key in ("x", "y", "z") or key.isdecimal():
            continue
        return "deg" if key.endswith("_deg") else _BY_KEY.get(key, "")
    return ""


def column_unit(column: str, robot: Robot) -> str:
    """The unit of a kept number; "rad or m" where it covers joints of both kinds."""
    stem, _, rest = column.partition(".")
    if stem == "final":
        kind, _, name = rest.partition(".")
        unit = joint_unit(name, robot)
        return unit + ("/s" if unit and kind == "v" else "")
    if stem == "position":
        return "m"
    unit = (METRICS.get(stem) or WHOLE.get(stem) or ("",))[0]
    return _of_kinds(unit, [rest] if rest else robot.velocities, robot)


def _of_kinds(unit: str, joints: Sequence[str], robot: Robot) -> str:
    """Of a unit such as "rad or m" the one that fits, where all joints turn or all slide."""
    turning, _, sliding = unit.partition(" or ")
    kinds = {joint_unit(name, robot) for name in joints} if sliding else set()
    return turning if kinds == {"rad"} else sliding if kinds == {"m"} else unit


def joint_unit(name: str, robot: Robot) -> str:
    """ "rad" or "m" of a coordinate or velocity; empty for an entry of a quaternion."""
    steps = [step for joint in robot.joints for step in joint.steps]
    units = {name: step.unit for name, step in zip(robot.velocities, steps, strict=True)}
    columns = ["" if step.ball else step.unit for step in steps for _ in step.positions]
    return dict(zip(robot.coordinates, columns, strict=True)).get(name, units.get(name, ""))
