"""The demonstration: a page that needs nothing but itself, and the reports of the runs it shows."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import numpy as np

import ramify as rf
from ramify.api.model import Model
from ramify.documents.writing import write_whole
from ramify.loops.mobility import freedom_text
from ramify.motion import cycloid, example_ends
from ramify.view.plots import torques_svg

if TYPE_CHECKING:
    from ramify.api.result import Result
    from ramify.scenario_files.scenario import Scenario

EXAMPLE = """\
import ramify as rf

m = rf.load("kuka_kr5")
q, v = m.random(seed=0)
tau = m.inverse_dynamics(q, v, 0 * v)
a = m.forward_dynamics(q, v, tau)  # zero again"""


RUNS: Final = (
    ("planar_biped_walk", "biped_controlled"),
    ("kuka_motion",),
    ("hexapod_tripod", "gripper_free_fall"),
    ("robotic_leg_turn", "stanford_motion"),
)
"""Scenarios of the demonstration: of each row the first that this version has."""


def write_demo(
    directory: str | Path = "out", progress: Callable[[str], None] | None = None
) -> Path:
    """Simulate, and write ``index.html`` with a report of every run into a directory, made where it
    does not exist.

    progress: called with what is being done. Returns the path of the page.
    """
    page = Path(directory) / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda _: None)
    runs = []
    for names in RUNS:
        name = next((name for name in names if name in rf.scenarios()), None)
        if name is not None:
            tell(f"simulating {name}")
            scenario = rf.scenario(name)
            result = scenario.run()
            result.report(page.parent / f"{name}.html")
            runs.append(_run_card(scenario, result))
    tell("counting operations")
    write_whole(page, demo_page(runs))
    return page


def _run_card(scenario: Scenario, result: Result) -> str:
    """A picture and a few words that lead to a report."""
    light, dark = (_thumbnail(result, theme) for theme in ("light", "dark"))
    picture = ""
    if light and dark:
        source = f'<source srcset="{dark}" media="(prefers-color-scheme: dark)">'
        picture = f'<picture>{source}<img src="{light}" alt="" width="480" height="300"></picture>'
    verdict = result.audit.verdict
    seconds = f"{result.t[-1]:.3g} s, computed in {result.stats.get('wall_time', 0.0):.2f} s"
    words = f"{freedom_text(result.model)}, {seconds}"
    facts = f'<span class="soft">{escape(words)}; audit {escape(verdict)}</span>'
    text = f"<b>{escape(scenario.name)}</b><span>{escape(scenario.description)}</span>{facts}"
    return f'<a class="run" href="{quote(scenario.name)}.html#play">{picture}{text}</a>'


def _thumbnail(result: Result, theme: str) -> str:
    """A picture of the robot in the middle of a run as a data address; nothing where Pillow is
    missing.
    """
    from importlib.util import find_spec

    if find_spec("PIL") is None:
        return ""
    from PIL import Image

    from ramify.view.film import Studio

    file = io.BytesIO()
    Image.fromarray(Studio(result, 480, 300, theme).shoot(len(result) // 2, words=False)).save(
        file, "PNG", optimize=True
    )
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}"


def demo_page(runs: Sequence[str] = ()) -> str:
    """The page: the runs, torques of the KUKA KR5 along a cycloid, and the built-in robots with
    their operation counts.
    """
    kuka = rf.load("kuka_kr5")
    motion = cycloid(*example_ends(kuka))
    tau = kuka.inverse_dynamics(motion.q, motion.v, motion.a)
    peak = np.abs(tau).argmax(axis=0)
    peaks = list(
        zip(
            kuka.coordinates, np.abs(tau).max(axis=0).tolist(), motion.t[peak].tolist(), strict=True
        )
    )
    template = Template(files("ramify.view").joinpath("demo.html").read_text(encoding="utf-8"))
    return template.substitute(
        version=escape(rf.__version__),
        example=escape(EXAMPLE),
        runs="\n".join(runs),
        rows=len(motion.t),
        plot=torques_svg(motion.t, tau, kuka.coordinates, ["N m"] * kuka.nv),
        peaks=html_table(("joint", "largest torque, N m", "at t, s"), peaks),
        robots=html_table(
            (
                "robot",
                "bodies",
                "degrees of freedom",
                "modules",
                "mass, kg",
                "inverse dynamics",
                "forward dynamics",
            ),
            [_robot_row(rf.load(name)) for name in rf.robots()],
        ),
    )


def _robot_row(m: Model) -> tuple[object, ...]:
    counts = [m.op_count(name) for name in ("inverse_dynamics", "forward_dynamics")]
    return (
        m.name,
        len(m.bodies),
        m.nv,
        len(m.modules),
        m.mass,
        *(f"{c.mul}M {c.add}A" for c in counts),
    )


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of numbers and names; everything is escaped. Columns but the first are set flush
    right.
    """
    kind = [""] + [' class="number"'] * (len(columns) - 1)
    head = "".join(f"<th{k}>{escape(column)}</th>" for k, column in zip(kind, columns, strict=True))
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{k}>{escape(_text(cell))}</td>" for k, cell in zip(kind, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _text(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
