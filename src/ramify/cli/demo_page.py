"""The demonstration: one page with five runs, what each computed, how fast, and the program that
did it. The page needs nothing but itself and the reports beside it.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

import ramify as rf
from ramify.core.arrays import Array
from ramify.core.html import html_table
from ramify.documents.writing import write_whole
from ramify.kernels.make import kernel
from ramify.kernels.timing import arithmetic_rate, measure
from ramify.loops.mobility import freedom_text

if TYPE_CHECKING:
    from ramify.api.result import Result

WIDTH, HEIGHT = 480, 300
COLUMNS, ROWS, CELL, FINE = 12, 6, (80, 100), 2
"""Cells of the picture, their size in pixels, and how much finer they are drawn."""
LOOKS: Final = {
    "light": ("#f6f7f9", "#b9c2cc", "#1f6fc4", "#c2571a"),
    "dark": ("#12161b", "#4c5967", "#6db1f5", "#f0a35e"),
}
"""Background, ground, limbs to the left, limbs to the right."""
_Frames = Callable[[str], Iterable[Any]]


@dataclass(frozen=True)
class Panel:
    """A run of the page: ``code`` is what the page shows and what is executed. It leaves a run in
    ``r``: a Result, or the Rollout of a herd.
    """

    name: str
    title: str
    story: str
    code: str


PANELS: Final = (
    Panel(
        "arm",
        "An arm follows a motion",
        "All six joints of a KUKA KR5 turn by 60 degrees in a second. Computed torque drives them: "
        "inverse dynamics of the arm, plus feedback.",
        """\
m = rf.load("kuka_kr5")
motion = rf.motion.Cycloid(np.zeros(6), np.full(6, np.pi / 3), duration=1.0)
law = rf.control.ComputedTorque(motion, kp=100, kd=20)
r = rf.simulate(m, 1.0, control=law)""",
    ),
    Panel(
        "gripper",
        "A gripper with drives and stops",
        "Geared motors with friction close two fingers until the joints hit their stops. The "
        "drives push on with all they have, 0.6 N m, and the stops hold.",
        """\
b = rf.Builder("gripper")
drive = dict(rotor={"inertia": 2e-7, "gear": 80}, friction={"coulomb": 0.02}, effort=0.6)
rod = dict(mass=0.08, com=(0, 0, 0.03), inertia=(3e-5, 3e-5, 2e-6), axis=(0, 1, 0))
b.link("palm", mass=0.4, com=(0, 0, 0.02), inertia=(4e-4, 4e-4, 4e-4), **drive)
for side, x, limits in (("left", -0.05, (-0.3, 0.28)), ("right", 0.05, (-0.28, 0.3))):
    b.link(side, "palm", at=(x, 0, 0.04), limits=[limits], **rod, **drive)
    b.link(f"{side}_tip", side, at=(0, 0, 0.06), limits=[limits], **rod, **drive)
close = rf.motion.Quintic(np.zeros(5), [0.8, 0.5, 0.5, -0.5, -0.5], duration=0.4)
r = rf.simulate(b.model(), 0.6, control=rf.control.PD(close, kp=8, kd=0.3))""",
    ),
    Panel(
        "leg",
        "A leg with closed loops",
        "A motor turns the crank; seven bars in three closed loops turn that into a step. The "
        "loops stay closed to the last digits.",
        """\
r = rf.scenario("robotic_leg_turn").run()""",
    ),
    Panel(
        "quadruped",
        "A quadruped trots",
        "Diagonal legs move together. Motors at the joints follow the gait; the ground pushes only "
        "where feet touch it, and nothing holds the trunk.",
        """\
r = rf.scenario("quadruped_trot").run(control="computed_torque", t_end=2.0)""",
    ),
    Panel(
        "herd",
        "4096 quadrupeds at once",
        "Each is dropped from another height with another push, and tries to stand: one call, one "
        "compiled loop, ground contact and controllers included. The picture shows 72 of them.",
        """\
m = rf.load("quadruped", base="free")
rng, n = np.random.default_rng(0), 4096
stance = np.tile([0.0, 0.5, -1.0], 4)  # two angles of the hip, one of the knee
q0 = np.tile([0, 0, 0, 1, 0, 0, 0, *stance], (n, 1))
q0[:, 2] = rng.uniform(0.6, 1.0, n)
v0 = rng.normal(size=(n, m.nv)) * np.repeat([0.7, 1.0, 0.0], [3, 3, 12])
law = rf.control.PD(rf.motion.Hold(stance), kp=200, kd=8)
r = rf.rollout(m, q0, v0, steps=1000, dt=1e-3, control=law, ground="hunt_crossley",
               method="semi_implicit_euler", every=25)""",
    ),
)


def write_demo(
    directory: str | Path = "out", progress: Callable[[str], None] | None = None, frames: int = 20
) -> Path:
    """Run the panels and write ``index.html``, with a report of every single run beside it, into a
    directory, made where it does not exist.

    progress: called with what is being done. frames: of each moving picture. Returns the path of
    the page.
    """
    page = Path(directory) / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda _: None)
    sections, speeds = [], []
    for panel in PANELS:
        tell(panel.title)
        names: dict[str, Any] = {"rf": rf, "np": np}
        start = perf_counter()
        exec(panel.code, names)
        wall, r = perf_counter() - start, names["r"]
        if isinstance(r, rf.Rollout):
            facts, row = _herd_facts(r, wall)
            shoot: _Frames = partial(herd_frames, names["m"], r, frames=frames)
        else:
            facts, row = _run_facts(r, wall)
            shoot = partial(_run_frames, r, frames=frames)
            r.report(page.parent / f"{panel.name}.html")
        picture = _picture(panel, shoot)
        sections.append(_section(panel, picture, facts, not isinstance(r, rf.Rollout)))
        speeds.append((panel.title, *row))
    tell("How fast")
    template = Template(files("ramify.view").joinpath("demo.html").read_text(encoding="utf-8"))
    runs = ("run", "simulated", "computed in", "against real time")
    kernels = ("kuka_kr5", "measured", "limit", "of the limit")
    text = template.substitute(
        version=escape(rf.__version__),
        panels="\n".join(sections),
        runs=html_table(runs, speeds, right=(1, 2, 3)),
        kernels=html_table(kernels, _limits(), right=(1, 2, 3)),
    )
    write_whole(page, text)
    return page


def _run_facts(r: Result, wall: float) -> tuple[str, tuple[object, ...]]:
    """Words about a run, and its row of the table of speeds."""
    seconds, took = float(r.t[-1]), float(r.stats.get("wall_time", wall))
    words = f"{freedom_text(r.model)}; audit of the energy: {r.audit.verdict}"
    if r.loops is not None:
        words += f"; largest gap of a loop {r.loops.largest_gap:.1e} m"
    return words, (f"{seconds:.3g} s", f"{1e3 * took:.3g} ms", f"{seconds / took:.3g}×")


def _herd_facts(r: rf.Rollout, wall: float) -> tuple[str, tuple[object, ...]]:
    count, seconds = len(r.q), float(r.t[-1])
    standing = float((r.q[:, -1, 2] > 0.4).mean())
    words = f"{count} × {r.q.shape[-1] - 1} degrees of freedom; {standing:.0%} stand at the end"
    simulated = f"{count} × {seconds:.3g} s"
    return words, (simulated, f"{1e3 * wall:.4g} ms", f"{count * seconds / wall:,.0f}×")


def _limits() -> list[tuple[object, ...]]:
    """What calls and batches take on this machine, beside what bounds them."""
    kuka = rf.load("kuka_kr5")
    rows: list[tuple[object, ...]] = []
    most = arithmetic_rate()
    found = measure(kuka, ("inverse_dynamics", "forward_dynamics"))
    most = max(most, arithmetic_rate())  # other programs may have slowed the first
    for timing in found:
        name, took = timing.algorithm.replace("_", " "), f"{1e6 * timing.single:.2f} µs"
        rows.append((f"one {name}", took, "1 ms: a loop at 1 kHz", f"{timing.single / 1e-3:.3%}"))
    for timing in found:
        name, count = timing.algorithm.replace("_", " "), kuka.op_count(timing.algorithm)
        work = count.mul + count.add
        rate, limit = f"{1e-6 / timing.batch:.3g} million a second", f"{1e-6 * most / work:.3g}"
        share = f"{work / timing.batch / most:.0%}"
        rows.append((f"batch, {name}", rate, f"{limit}: its + and × alone", share))
    return rows


def _section(panel: Panel, picture: str, facts: str, report: bool) -> str:
    link = f'<a href="{panel.name}.html#play">Open the report: animation, plots, tables</a>'
    link = f"<p>{link}</p>" if report else ""
    return (
        f'<section class="panel" id="{panel.name}">{picture}<div><h2>{escape(panel.title)}</h2>'
        f'<p>{escape(panel.story)}</p><p class="soft">{escape(facts)}</p>{link}'
        f'<details><summary>Do it yourself</summary><pre tabindex="0">import numpy as np\n'
        f"import ramify as rf\n\n{escape(panel.code)}</pre></details></div></section>"
    )


def _picture(panel: Panel, shoot: _Frames) -> str:
    """A moving picture, light and dark, that stands still where motion is unwanted; nothing where
    Pillow is missing.
    """
    if find_spec("PIL") is None:
        return ""
    sources = []
    for theme, wanted in (("dark", " and (prefers-color-scheme: dark)"), ("light", "")):
        still, moving = _addresses(shoot(theme))
        sources.append((still, f"(prefers-reduced-motion: reduce){wanted}"))
        sources.append((moving, wanted.removeprefix(" and ")))
    lines = [f'<source srcset="{src}" media="{media}">' for src, media in sources if media]
    size = f'width="{WIDTH}" height="{HEIGHT}"'
    image = f'<img src="{sources[-1][0]}" alt="{escape(panel.title)}" {size}>'
    return f"<picture>{''.join(lines)}{image}</picture>"


def _addresses(frames: Iterable[Any]) -> tuple[str, str]:
    """A still and a moving picture as data addresses."""
    from PIL import Image

    first, *rest = (Image.fromarray(frame) for frame in frames)
    addresses = []
    for more in ([], rest):
        file = io.BytesIO()
        first.save(
            file, "WEBP", save_all=True, append_images=more, duration=120, loop=0, quality=60,
            method=1,
        )  # fmt: skip
        addresses.append(f"data:image/webp;base64,{b64encode(file.getvalue()).decode()}")
    return addresses[0], addresses[1]


def _run_frames(r: Result, theme: str, frames: int) -> Iterable[NDArray[np.uint8]]:
    from ramify.view.film import Studio

    studio = Studio(r, WIDTH, HEIGHT, theme)
    for share in np.linspace(0.0, 1.0, frames):
        row = min(int(np.searchsorted(r.t, share * r.t[-1])), len(r) - 1)
        yield studio.shoot(row, words=False)


def herd_frames(
    robot: rf.Model, run: rf.Rollout, theme: str, frames: int
) -> Iterator[NDArray[np.uint8]]:
    """Pictures of the first robots of a rollout with a history, over its samples."""
    from PIL import Image, ImageDraw

    back, ground, *colours = LOOKS[theme]
    shown = COLUMNS * ROWS
    (w, h), samples = CELL, run.q.shape[1]
    for row in np.linspace(0, samples - 1, frames).round().astype(int):
        lines = _lines(robot, run.q[:shown, row])
        picture = Image.new("RGB", (FINE * w * COLUMNS, FINE * h * ROWS), back)
        draw = ImageDraw.Draw(picture)
        for i in range(min(shown, len(run.q))):
            left, base = FINE * w * (i % COLUMNS), FINE * h * (i // COLUMNS + 0.86)
            draw.line([left + 4, base, left + FINE * w - 4, base], fill=ground, width=FINE)
            place = np.array([left + FINE * w / 2, base])
            for line, side in lines:
                ends = place + FINE * w * 0.55 * line[i] * (1.0, -1.0)
                draw.line([*map(tuple, ends)], fill=colours[side], width=3 * FINE)
        yield np.asarray(picture.resize((w * COLUMNS // 2, h * ROWS // 2), Image.Resampling.BOX))


def _lines(robot: rf.Model, q: Array) -> list[tuple[Array, int]]:
    """The links as lines (N, 2, 2) to the right and up, seen from ahead and aside, and their
    colours. A line goes from a body to the next, or to a point of its last one.
    """
    pose: Any = kernel(robot, "kinematics")(q)
    R, r = pose.rotation, pose.position
    middle = r[:, 0, :2].copy()

    def flat(at: Array) -> Array:
        x, y = (at[:, :2] - middle).T
        return np.stack([0.8 * x - 0.45 * y, at[:, 2] - 0.12 * x - 0.2 * y], axis=1)

    lines = []
    for k, body in enumerate(robot.bodies):
        start = r[:, k]
        children = [j for j, other in enumerate(robot.bodies) if other.parent == k]
        ends = [r[:, j] for j in children]
        if not children:
            ends = [start + R[:, k] @ np.array(point) for _, point in body.points[-1:]]
        lines += [(np.stack([flat(start), flat(end)], axis=1), k % 2) for end in ends]
    return lines
