"""Kinds of motions, controllers, grounds and terrains: their words and keys."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from cyclopts import Parameter

import ramify as rf
from ramify.cli.common import AsJson, app
from ramify.cli.output import print_json, print_table

Thing = Literal["motion", "controller", "ground", "terrain"]


@app.command
def kinds(
    of: Annotated[
        Thing | None,
        Parameter(name="THING", help="motion, controller, ground or terrain; all by default."),
    ] = None,
    word: Annotated[
        str | None, Parameter(name="WORD", help="One kind: print its keys and what they take.")
    ] = None,
    /,
    *,
    json: AsJson = False,
) -> None:
    """List the motions, controllers, grounds and terrains that scenario files can name."""
    import ramify.scenario_files.scenario_control  # noqa: F401  adds its controller
    from ramify.core.messages import near

    registries: dict[str, Any] = {
        "motion": rf.motion.MOTIONS,
        "controller": rf.control.CONTROLLERS,
        "ground": rf.contact.LAWS,
        "terrain": rf.contact.TERRAINS,
    }
    if of is not None and word is not None:
        registry = registries[of]
        if word not in registry:
            raise rf.RamifyError(f"no {of} is called {word!r}{near(word, list(registry))}")
        keys = {
            name: one.about for one in registry.keys_of(word).values() for name in one.names[:1]
        }
        if json:
            print_json({"word": word, "about": _about(registry[word]), "keys": keys})
            return
        rows = [(", ".join(one.names), one.about) for one in registry.keys_of(word).values()]
        print_table(
            f"{word}: {_about(registry[word])}", ("key", "takes"), [r for r in rows if r[0]]
        )
        return
    found = [
        {"thing": thing, "word": one, "about": _about(kind)}
        for thing, registry in registries.items()
        if of in (None, thing)
        for one, kind in registry.items()
    ]
    if json:
        print_json(found)
        return
    print_table("Kinds", ("", "word", "what it is"), [tuple(row.values()) for row in found])


def _about(kind: type) -> str:
    """The first sentence of a class's docstring."""
    text = " ".join((kind.__doc__ or "").split())
    return re.split(r"(?<!eq)(?<!eqs)\. ", text)[0].rstrip(".")
