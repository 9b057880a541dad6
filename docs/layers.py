"""The picture of the layers (docs/pictures/layers.svg) of the table in tests/test_architecture.py.

Run ``python docs/layers.py`` after a change of the table; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "layers.svg"

CONTENTS = {
    "core": "scalars, spatial types, errors",
    "trace": "expressions, derivatives, counts",
    "model": "the robot as data",
    "documents": "YAML, XML, arithmetic, mistakes",
    "dynamics": "one algorithm per file",
    "emit": "graph to LLVM, C, Python",
    "runtime": "compiler, cache, calls, threads",
    "files": "robot files of all formats",
    "kernels": "algorithm + robot = kernel",
    "loops": "closed kinematic chains",
    "contact": "ground laws, terrains",
    "drives": "springs, friction, actuators",
    "formulations": "the literature's formulations",
    "motion": "desired motions, gaits",
    "lint": "findings about a robot",
    "control": "controllers",
    "plant": "the machine as one right-hand side",
    "integrate": "integrators, compiled steps",
    "sensitivity": "tangents, adjoints, linearize",
    "runs": "simulate, rollout, record, audit",
    "view": "plots, reports, films, viewer",
    "optimal": "optimal control: problems, solver, MPC",
    "identify": "parameters from logs of motion",
    "interop": "JAX, PyTorch, CasADi",
    "fmi": "functional mock-up units",
    "api": "Model, Result, load, simulate",
    "scenario_files": "scenarios",
    "studies": "many runs",
    "envs": "Gymnasium environments",
    "cli": "the command ramify",
}
"""What each package contains."""

WIDTH, HEIGHT, GAP, BOX = 880, 44, 10, 210


def picture(layers: Sequence[set[str]]) -> str:
    """The layers as SVG, the lowest at the bottom."""
    step = HEIGHT + GAP
    total = len(layers) * step + GAP
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" '
        'font-family="sans-serif" text-anchor="middle">',
        "<title>Layers of ramify: each package imports only from the rows below it</title>",
        f'<rect width="{WIDTH}" height="{total}" fill="#ffffff"/>',
    ]
    for level, packages in enumerate(reversed(layers)):
        y = GAP + level * step
        names = sorted(packages)
        start = (WIDTH - len(names) * BOX - (len(names) - 1) * GAP) / 2
        for i, name in enumerate(names):
            x = start + i * (BOX + GAP)
            middle = x + BOX / 2
            out += [
                f'<rect x="{x:g}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6" '
                'fill="#eaf2fb" stroke="#2f7fd1"/>',
                f'<text x="{middle:g}" y="{y + 18}" font-size="14" font-weight="bold" '
                f'fill="#12304f">{name}</text>',
                f'<text x="{middle:g}" y="{y + 35}" font-size="11" fill="#40566d">'
                f"{escape(CONTENTS[name])}</text>",
            ]
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    from test_architecture import LAYERS

    PICTURE.write_text(picture(LAYERS), encoding="utf-8")
    print(PICTURE)
