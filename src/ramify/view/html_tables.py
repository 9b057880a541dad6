"""Tables of a model, a run and an audit in HTML; every name and number is escaped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import numpy as np

from ramify.contact import CONTACTS
from ramify.core.html import facts, html_table, text
from ramify.core.messages import pretty
from ramify.files.robot_writer import to_yaml
from ramify.model.robot import Robot
from ramify.runs.audit import audit_table, audited
from ramify.runs.drive_table import drives
from ramify.runs.run_record import Run
from ramify.view.controllers import controller_rows, ground_rows
from ramify.view.named import model_table
from ramify.view.repeated_run import scenario_again, simulate_again
from ramify.view.scene import MODULES, Scene

LONGEST: Final = 120_000
"""Characters of a robot's file that a report repeats."""


def cards(result: Run, scene: Scene, remarks: Sequence[str]) -> list[str]:
    """The sections under the plots, each an element."""
    tables = [
        card("Audit", audit_table(audited(result))),
        card("The run", facts(_run(result))),
        *_settings(result),
        *([card("Drives", drives(result)._repr_html_(), wide=True)] if result.tau.any() else []),
        card("Robot", _about(result.model) + model_table(result.model, MODULES), wide=True),
        card("Repeat it", _repeat(result), wide=True),
    ]
    notes = "".join(f"<li>{escape(note)}</li>" for note in (*remarks, *scene.notes))
    return [*tables, card("Notes", f"<ul>{notes}</ul>", wide=True)] if notes else tables


def _settings(result: Run) -> list[str]:
    """Tables of the controller and of the ground, where the run had them."""
    ground = result.options.get("ground")
    tables = {"Controller": controller_rows(result)}
    tables["Ground"] = ground_rows(ground) if isinstance(ground, Mapping) else []
    contact = result.options.get("contact")
    tables["Contact"] = ground_rows(contact, CONTACTS) if isinstance(contact, Mapping) else []
    columns = ("setting", "value", "unit")
    return [
        card(title, f'<div class="settings">{html_table(columns, rows)}</div>')
        for title, rows in tables.items()
        if rows
    ]


def card(title: str, content: str, wide: bool = False) -> str:
    kind = "card wide" if wide else "card"
    name = escape(title)  # with a place in the order of the keys: a wide table scrolls
    head = f'<section class="{kind}" tabindex="0" aria-label="{name}">'
    return f"{head}<h2>{name}</h2>{content}</section>"


def _about(model: Robot) -> str:
    found = (model.metadata.get(key) for key in ("description", "source"))
    words = [str(text) for text in found if text]
    return f'<p class="soft">{escape(". ".join(words))}</p>' if words else ""


def _run(result: Run) -> dict[str, object]:
    meta = result.metadata
    options, stats = meta.get("options", {}), meta.get("stats", {})
    counts = ("step",) if options.get("step") else ("rtol", "atol")
    settings = [f"{k} {options[k]:g}" for k in counts if options.get(k)]
    rows: dict[str, object] = {
        "time": f"{result.t[0]:.6g} … {result.t[-1]:.6g} s, {len(result)} rows",
        "status": result.status,
        "method": ", ".join([str(options.get("method", "?")), *settings]),
    }
    if np.any(np.asarray(options.get("damping", 0.0), dtype=np.float64)):
        rows["damping"] = json.dumps(options["damping"])
    rows["steps"] = ", ".join(
        f"{k.replace('_', ' ')} {text(v)}{' s' if k == 'wall_time' else ''}"
        for k, v in stats.items()
        if isinstance(v, (int, float))
    )
    if result.desired is not None:
        off = np.abs(result.q - result.desired.q)
        if np.isfinite(off).any():
            worst = int(np.nanargmax(np.nanmax(np.where(np.isfinite(off), off, -1.0), axis=0)))
            unit = pretty(result.units["q"][worst])
            rows["largest error from the desired motion"] = (
                f"{np.nanmax(off[:, worst]):.3g} {unit}, {result.columns['q'][worst]}"
            )
    versions = ", ".join(f"{k} {v}" for k, v in meta.get("versions", {}).items())
    rows["computed by"] = f"{versions} on {meta.get('platform', '?')}"
    rows["robot's SHA-256"] = str(meta.get("robot_sha256", "?"))[:16] + " …"
    return rows


def _repeat(result: Run) -> str:
    """Python that runs it again, and the files that this takes."""
    options = result.metadata.get("options", {})
    record = options.get("scenario")
    robot = to_yaml(result.model)
    parts = []
    if isinstance(record, Mapping):
        # a robot that is cut below is left to the scenario's own word
        code = scenario_again(record, robot=len(robot) < LONGEST)
        parts.append(_file("scenario, run.yaml", str(record.get("text", "")), "scenario"))
    else:
        code = simulate_again(result)
    kept_robot = robot if len(robot) < LONGEST else robot[:LONGEST] + "\n# … cut here"
    parts = [_code(code, "again"), *parts]
    return "".join([*parts, _file("robot, robot.yaml", kept_robot, "robot")])


def _code(code: str, key: str) -> str:
    button = f'<button type="button" class="copy" data-copy="{key}">copy</button>'
    return f'<div class="code">{button}<pre id="{key}">{escape(code)}</pre></div>'


def _file(title: str, content: str, key: str) -> str:
    head = f"<details><summary>{escape(title)}</summary>"
    return f"{head}{_code(content, key)}</details>" if content else ""
