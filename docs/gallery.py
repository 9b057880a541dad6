"""An animation of every built-in robot, made when the site is built."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

import ramify as rf
from ramify.model.joint import Step
from ramify.runs.run_record import Work
from ramify.view.film import picture

FRAMES = 30
SECONDS = 3.0
SIZE = (320, 240)


def swing(robot: rf.Model) -> rf.Result:
    """A gentle swing of all joints, or of the driven ones where loops tie the others to them."""
    t = np.linspace(0.0, SECONDS, FRAMES, endpoint=False)
    if robot.loops:
        q = _closed(robot, t)
    else:
        start = robot.neutral()
        first = robot.bodies[0].joint
        still = first.dof if first.kind in ("free", "free_euler") or not first.actuated else 0
        reach = [
            0.0 if k < still else (0.35 if step.unit == "rad" else 0.1)
            for k, step in enumerate(_steps(robot))
        ]
        phase = np.sin(2.0 * np.pi * (t[:, None] / SECONDS + np.linspace(0.0, 0.5, robot.nv)))
        q = np.stack([robot.integrate(start, row * np.array(reach), 1.0) for row in phase])
    nothing = np.zeros((len(t), robot.nv))
    return rf.Result(robot, t, q, nothing, nothing, nothing, Work(0.0 * t, 0.0 * t))


def _closed(robot: rf.Model, t: np.ndarray) -> np.ndarray:
    from ramify.model.driven import driven

    state = robot.assemble()
    chosen = driven(robot)
    steps = _steps(robot)
    reach = [(0.3 if steps[j].unit == "rad" else 0.1) / len(chosen) for j in chosen.v]
    found, near = [], state.q
    for now in t:
        phases = [2.0 * np.pi * now / SECONDS + k for k in range(len(chosen))]
        wanted = {
            n: state.q[i] + r * np.sin(p)
            for n, i, r, p in zip(chosen.names, chosen.q, reach, phases, strict=True)
        }
        near = robot.assemble(wanted, guess=near).q
        found.append(near)
    return np.stack(found)


def _steps(robot: rf.Model) -> list[Step]:
    return [step for joint in robot.joints for step in joint.steps]


def write(folder: Path, robots: Sequence[str]) -> None:
    """``<robot>.gif`` and ``<robot>.png`` for each, and ``robots.md``, the grid that shows them:
    the still ones to readers who ask their system for less motion.
    """
    folder.mkdir(exist_ok=True)
    cells = []
    for name in robots:
        robot = rf.load(name)
        film, still = folder / f"{name}.gif", folder / f"{name}.png"
        if not (film.exists() and still.exists()):
            run = swing(robot)
            run.animate(film, size=SIZE, fps=FRAMES / SECONDS, progress=False)
            picture(run, still, time=0.0, size=SIZE)
        about = escape(str(robot.metadata.get("description", "")).rstrip("."))
        free = robot.degrees_of_freedom
        size = f"{free} degree{'s' if free > 1 else ''} of freedom, {robot.mass:.4g} kg"
        cells.append(
            f'<figure><picture><source srcset="_static/{name}.png" '
            f'media="(prefers-reduced-motion: reduce)"><img src="_static/{name}.gif" '
            f'alt="{name}" loading="lazy" width="320" height="240"></picture>'
            f"<figcaption><code>{name}</code> {about}. {size}.</figcaption></figure>"
        )
    page = ["```{raw} html", '<div class="gallery">', *cells, "</div>", "```", ""]
    (folder / "robots.md").write_text("\n".join(page), encoding="utf-8")
