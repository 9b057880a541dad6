"""The scenarios that come with ramify, by name, and how to tell a scenario from a robot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from ramify.core.errors import ModelError
from ramify.documents.forms import Reading
from ramify.documents.mistakes import Mistakes
from ramify.documents.reading import Shipped
from ramify.documents.yaml_text import parse_yaml, read_text
from ramify.scenario_files.scenario_reader import WANTED, head_of, options_of

_SCENARIOS: Final = Shipped("scenarios")
shipped_text = _SCENARIOS.text
"""The file of a scenario that comes with ramify."""


def scenarios() -> list[str]:
    """Names of the scenarios that come with ramify, sorted."""
    return list(_SCENARIOS.names)


def summaries() -> list[dict[str, Any]]:
    """Name, robot, end, description and source of every scenario that comes with ramify; nothing is
    built.
    """
    rows = []
    for name in _SCENARIOS.names:
        mistakes = Mistakes(name)
        reading, document = Reading(mistakes), parse_yaml(shipped_text(name), mistakes, WANTED)
        head, t_end = head_of(document, reading), options_of(document, reading)["t_end"]
        robot = head.robot["name"] if isinstance(head.robot, Mapping) else head.robot
        about = {"description": head.description, "source": head.source}
        rows.append({"name": head.name, "robot": robot, "t_end": t_end, **about})
    return rows


def is_scenario(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether this is a scenario's name or path, not a robot's: by name, or by the keys of a
    file that can be read.
    """
    given = os.fspath(name_or_path)
    path = FilePath(given)
    if given in _SCENARIOS.names or path.suffix.lower() not in (".yaml", ".yml"):
        return given in _SCENARIOS.names
    try:
        document = parse_yaml(read_text(path), Mistakes(given), WANTED)
    except ModelError:
        return False
    return "links" not in document and bool(
        {"robot", "t_end", "motion", "control", "ground", "initial"} & set(document)
    )
