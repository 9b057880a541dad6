"""A study read back from its ledger: its recipe, and any of its runs made once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ramify.api.result import Result
from ramify.studies.ledger import Ledger
from ramify.studies.outputs import CustomMetric, Keep, Missing, code_of
from ramify.studies.recipe import Recipe
from ramify.studies.work import run_row


def facts_of(recipe: Recipe) -> dict[str, Any]:
    """The recipe as facts of a ledger, custom metrics as what identifies them."""
    keep = recipe.keep
    kept = {f.name: getattr(keep, f.name) for f in fields(keep) if f.name != "functions"}
    plain = {f.name: getattr(recipe, f.name) for f in fields(recipe) if f.name != "keep"}
    return {
        "recipe": plain | {"keep": kept, "fixed": dict(recipe.fixed)},
        "functions": {name: code_of(function) for name, function in keep.functions.items()},
    }


def recipe_of(ledger: Ledger, metrics: Mapping[str, CustomMetric] | None = None) -> Recipe:
    """The recipe in a ledger. A custom metric that is not given, or is another one, is Missing."""
    facts, codes, given = ledger.fact("recipe"), ledger.fact("functions"), dict(metrics or {})
    functions: dict[str, CustomMetric] = {
        name: given[name] if name in given and code_of(given[name]) == code else Missing(code)
        for name, code in codes.items()
    }
    kept = facts.pop("keep")
    kept |= {"metrics": tuple(kept["metrics"]), "history": tuple(kept["history"])}
    paths = tuple(facts.pop("paths"))
    return Recipe(**facts, paths=paths, keep=Keep(**kept, functions=functions))


def run_again(path: Path, number: int) -> Result:
    """Make a run of a ledger once more, bit for bit. Raises what the run raises."""
    with Ledger(path) as ledger:
        recipe, row = recipe_of(ledger), ledger.row(number)
    return run_row(recipe, row.values.tolist())
