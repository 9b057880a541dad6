"""What a ledger says of its study as a whole: entries of JSON, each checked to be of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ramify.documents.json_text import (
    Kind,
    is_flag,
    is_names,
    is_number,
    is_text,
    is_whole,
    mapping_to,
    optional,
    read_json,
    record,
)
from ramify.studies.outputs import CustomMetric, Keep, Missing, metric_code
from ramify.studies.recipe import Recipe

_TEXTS: Final = mapping_to(is_text)
FACTS: Final[Mapping[str, Kind]] = {
    "recipe": record(
        scenario_text=is_text, scenario_file=is_text, robot_text=is_text, robot_file=is_text,
        base=optional(is_text), paths=is_names, fixed=mapping_to(is_number),
        folder=optional(is_text),
        keep=record(final=is_flag, metrics=is_names, history=is_names, every=is_whole(1)),
    ),
    "functions": _TEXTS,
    "study": record(name=is_text, description=is_text, text=is_text),
    "parameters": is_names,
    "columns": is_names,
    "units": _TEXTS,
    "history": is_names,
    "versions": _TEXTS,
    "planned": is_whole(0),
}  # fmt: skip
"""The entries and their kinds."""


def read_fact(name: str, text: object) -> Any:
    """An entry from its text. Raises ValueError for what is not JSON, or not of the kind."""
    if not isinstance(text, str):
        raise ValueError("is not a text")
    try:
        value = read_json(text)
    except ValueError as error:
        raise ValueError(f"cannot be read as JSON ({error})") from None
    if not FACTS[name](value):
        raise ValueError("has the wrong kind")
    return value


def recipe_of(
    facts: Mapping[str, Any], codes: Mapping[str, str], metrics: Mapping[str, CustomMetric]
) -> Recipe:
    """The recipe of a study; ``codes``: what identifies its custom metrics. One that is not among
    the metrics, or is another one, is Missing.
    """
    functions: dict[str, CustomMetric] = {
        name: metrics[name]
        if name in metrics and metric_code(metrics[name]) == code
        else Missing(code)
        for name, code in codes.items()
    }
    keep = dict(facts["keep"])
    keep |= {"metrics": tuple(keep["metrics"]), "history": tuple(keep["history"])}
    made = {**facts, "paths": tuple(facts["paths"]), "keep": Keep(**keep, functions=functions)}
    return Recipe(**made)
