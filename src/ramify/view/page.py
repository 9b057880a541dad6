"""The demonstration page: one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

import ramify as rf
from ramify.model.model import Model
from ramify.motion import cycloid, example_ends
from ramify.view.plots import torques_svg

EXAMPLE = """\
import ramify as rf

m = rf.load("kuka_kr5")
q, v = m.random(seed=0)
tau = m.inverse_dynamics(q, v, 0 * v)
a = m.forward_dynamics(q, v, tau)  # zero again"""


def write_demo(directory: str | Path = "out") -> Path:
    """Write ``index.html`` into a directory, which is made where it does not exist. Returns the path of the page."""
    page = Path(directory) / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(demo_page(), encoding="utf-8")
    return page


def demo_page() -> str:
    """The page: torques of the KUKA KR5 along a cycloid, and the built-in robots with their operation counts."""
    kuka = rf.load("kuka_kr5")
    motion = cycloid(*example_ends(kuka))
    tau = kuka.inverse_dynamics(motion.q, motion.v, motion.a)
    peak = np.abs(tau).argmax(axis=0)
    peaks = list(zip(kuka.coordinates, np.abs(tau).max(axis=0).tolist(), motion.t[peak].tolist(), strict=True))
    template = Template(files("ramify.view").joinpath("demo.html").read_text(encoding="utf-8"))
    return template.substitute(
        version=escape(rf.__version__),
        example=escape(EXAMPLE),
        rows=len(motion.t),
        plot=torques_svg(motion.t, tau, kuka.coordinates, ["N m"] * kuka.nv),
        peaks=html_table(("joint", "largest torque, N m", "at t, s"), peaks),
        robots=html_table(
            ("robot", "bodies", "degrees of freedom", "modules", "mass, kg", "inverse dynamics", "forward dynamics"),
            [_robot_row(rf.load(name)) for name in rf.robots()],
        ),
    )


def _robot_row(m: Model) -> tuple[object, ...]:
    counts = [m.op_count(name) for name in ("inverse_dynamics", "forward_dynamics")]
    return m.name, len(m.bodies), m.nv, len(m.modules), m.mass, *(f"{c.mul}M {c.add}A" for c in counts)


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of numbers and names; everything is escaped. Columns but the first are set flush right."""
    kind = [""] + [' class="number"'] * (len(columns) - 1)
    head = "".join(f"<th{k}>{escape(column)}</th>" for k, column in zip(kind, columns, strict=True))
    body = "\n".join(
        "<tr>" + "".join(f"<td{k}>{escape(_text(cell))}</td>" for k, cell in zip(kind, row, strict=True)) + "</tr>" for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _text(cell: object) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
