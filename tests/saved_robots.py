"""A robot after a round trip through its file: the same robot and the same text."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from typing import Any

from comparing import same

from ramify.files.load import read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.model.frame import Frame
from ramify.model.robot import Robot


def without_angles(record: Any) -> Any:
    """A record whose frames have forgotten the angles that they were given by."""
    if isinstance(record, Frame):
        return Frame(record.rotation + 0.0, record.position + 0.0)
    if isinstance(record, tuple) and hasattr(record, "_fields"):
        return type(record)(*map(without_angles, record))
    if isinstance(record, list | tuple):
        return type(record)(map(without_angles, record))
    if isinstance(record, dict):
        return {key: without_angles(value) for key, value in record.items()}
    if hasattr(record, "__dataclass_fields__") and not isinstance(record, type):
        values = {f.name: without_angles(getattr(record, f.name)) for f in fields(record)}
        return replace(record, **values)
    return record


def saved(m: Robot, of: str) -> Robot:
    """The robot that its file gives, which must be the same robot, with the same file. Fails with
    the first field that differs.
    """
    text = to_yaml(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = read_yaml(text, f"{of}.yaml")
    for f in fields(m):
        if f.name != "metadata":
            one, other = (without_angles(getattr(x, f.name)) for x in (again, m))
            same(one, other, f"{of}: {f.name}")
    assert to_yaml(again) == text, of
    return again
