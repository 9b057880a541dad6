"""The report of a run: one HTML file with an animation, plots and tables, which needs nothing but
itself.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.version import __version__
from ramify.documents.writing import write_whole
from ramify.loops.mobility import freedom_text
from ramify.runs.audit import audited
from ramify.runs.run_record import Run
from ramify.view.comparison import Comparison, compared
from ramify.view.curves import Chart, charts, paths
from ramify.view.folders import must_have_folder
from ramify.view.geometry import Triangles, arrow, unit_quaternions
from ramify.view.html_tables import card, cards
from ramify.view.robot_solids import is_unattached
from ramify.view.scene import Point, Scene, make_scene
from ramify.view.surroundings import LONGEST, Arrows, arrow_scale, camera, contact_arrows, grounded
from ramify.view.torque_speed import drive_charts

MOST_FRAMES: Final = 2000
MOST_ROWS: Final = 4000
"""Times of the animation and rows of the plots; a longer run shows every second, third … of its
own.
"""
MOST_POSES: Final = 20_000
"""Times of the animation by bodies and contact points: a robot of many has fewer times."""
MOST_NUMBERS: Final = 200_000
"""Rows of the plots by their curves, roughly; with the poses this keeps a file below 2 MB."""
MOST_CURVES: Final = 60
"""Curves of a chart; of more only the first are drawn."""
INLINE_FRAMES: Final = 240
INLINE_ROWS: Final = 400
"""Times of the animation and rows of the plots of a player inside another page."""
MOST_CHARACTERS: Final = 4_000_000
"""Of a player: a notebook keeps it in its file."""
SCRIPTS: Final = ("scene.js", "plot.js", "report.js")


def write_report(
    result: Run, path: str | Path, title: str | None = None, compare: Run | None = None
) -> Path:
    """See Result.report."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise RamifyError(f"{path}: a report is an HTML file; let its name end in .html")
    if title is not None and not isinstance(title, str):
        raise RamifyError(f"title {title!r} is not a text")
    must_have_folder(path)
    write_whole(path, report_page(result, title, compare))
    return path


def report_page(
    result: Run,
    title: str | None = None,
    compare: Run | None = None,
    inline: bool = False,
    plots: bool = True,
    lead: Sequence[str] = (),
    badges: str | None = None,
) -> str:
    """The page as a text. compare: another run, shown as a ghost and by its differences; inline:
    only the player and the plots (if wanted), small, for a frame in another page; lead: cards
    before those of the run; badges: others than those of the audit.
    """
    beside = None if compare is None else compared(result, compare)
    name = title if title is not None else _name(result)
    scene = make_scene(result.model)
    script = "\n".join(_text(file) for file in SCRIPTS)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_text("report.html")).substitute(
        version=escape(__version__),
        title=escape(f"{name}: a run of {result.model.name}"),
        heading=escape(name),
        subtitle=escape(_subtitle(result)),
        badges="" if inline else _badges(result) if badges is None else badges,
        style=_text("report.css") + (_text("inline.css") if inline else ""),
        cards="" if inline else "\n".join([*lead, *_all_cards(result, scene, beside)]),
        data=embedded(report_data(result, scene, beside, inline, plots)),
        digest=f"sha256-{digest}",
        script=script,
    )


def player(run: Run, plots: bool = True) -> str:
    """The animation and the plots of a run as an HTML element for a notebook, whose scripts see
    nothing of the notebook.
    """
    page = report_page(run, inline=True, plots=plots)
    if len(page) > MOST_CHARACTERS:
        return "<p>This run is too large to be played here; write a page with .report(path).</p>"
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" loading="lazy" '
        f'title="{escape(run.model.name)}" style="width:100%;height:27rem;border:0"></iframe>'
    )


def embedded(data: Any) -> str:
    """JSON for a script element: no text in it can end the element or open a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "&<>\u2028\u2029"})


def _all_cards(result: Run, scene: Scene, beside: Comparison | None) -> list[str]:
    tables = cards(result, scene, _thinning(result))
    if beside is None:
        return tables
    other = beside.second
    words = (
        f"The ghost is the second run, {_name(other)}, {other.t[0]:.6g} … {other.t[-1]:.6g} s. "
        "Differences are first minus second, over the time that both cover."
    )
    content = f'<p class="soft">{escape(words)}</p>{beside._repr_html_()}'
    return [card("Differences", content, wide=True), *tables]


def report_data(
    result: Run,
    scene: Scene,
    beside: Comparison | None = None,
    inline: bool = False,
    plots: bool = True,
) -> dict[str, Any]:
    """What the page's script draws: arrays as base 64, poses at no more than MOST_FRAMES times, z
    up.
    """
    most = INLINE_FRAMES if inline else MOST_FRAMES
    rows = _picked(len(result), min(INLINE_ROWS if inline else MOST_ROWS, _most_rows(result)))
    shots = _picked(len(result), min(most, _most_frames(result)))
    arrays: dict[str, int] = {}
    every = [*charts(result), *drive_charts(result)] if plots else []
    every += [] if inline else paths(result, _tips(scene), scene.up)
    every += [] if beside is None else beside.charts()
    R, r = scene.poses(result.q[shots])
    forces = contact_arrows(result.contacts, scene.up)
    low, high = scene.corners(R, r)
    ghost = None if beside is None else scene.poses(beside.ghost(result.t[shots]))
    if ghost is not None:  # both robots are in the picture
        lows, highs = scene.corners(*ghost)
        low, high = np.minimum(low, lows), np.maximum(high, highs)
    scene, ground = grounded(scene, result, low, high)
    world = np.eye(4)
    world[:3, :3] = scene.up
    return {
        "t": base64_numbers(result.t[rows], "<f8"),
        "frames": {
            "t": base64_numbers(result.t[shots], "<f8"),
            "bodies": len(result.model.bodies),
            **_packed_poses(R, r),
        },
        "ghost": None if ghost is None else _packed_poses(*ghost),
        "parts": [
            {
                "body": part.body,
                "kind": part.kind,
                "colour": scene.colour(part),
                "module": scene.module_colour(part),
                **triangles(part.triangles),
            }
            for part in scene.parts
        ],
        "painted": scene.painted,
        "arrow": triangles(arrow()),
        "points": [asdict(point) for point in scene.points],
        "world": world.T.ravel().tolist(),
        "floats": is_unattached(scene.model),
        "view": asdict(camera(scene, low, high, ground)) | {"level": ground is not None},
        "forces": None if forces is None else _packed_forces(scene, forces, shots),
        "plots": [_chart(chart, rows, arrays) for chart in every],
        "arrays": list(arrays),
    }


def _tips(scene: Scene) -> list[Point]:
    """The points of bodies whose paths matter: the named ones, and the ends of chains."""
    bodies = {body.name for body in scene.model.bodies}
    return [point for point in scene.points if point.name not in bodies]


def _packed_poses(R: Array, r: Array) -> dict[str, str]:
    turn = base64_numbers(np.round(32767.0 * quaternions(R)), "<i2")
    return {"place": base64_numbers(r, "<f4"), "turn": turn}


def _packed_forces(scene: Scene, forces: Arrows, shots: NDArray[np.intp]) -> dict[str, Any]:
    return {
        "count": len(forces.names),
        "place": base64_numbers(forces.position[shots], "<f4"),
        "force": base64_numbers(np.nan_to_num(forces.force[shots]), "<f4"),
        "scale": arrow_scale(scene, forces.force),
        "longest": LONGEST * scene.size,
    }


# ---- numbers as text ----


def base64_numbers(values: Any, kind: str) -> str:
    """Numbers of a kind such as "<f4", in base 64."""
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def triangles(surface: Triangles) -> dict[str, Any]:
    """Points to 16 bits in their own box, normals to 8."""
    corners = surface.points if len(surface.points) else np.zeros((1, 3))
    low, high = corners.min(axis=0), corners.max(axis=0)
    centre, scale = (low + high) / 2, max(float((high - low).max()) / 2, 1e-9) / 32767.0
    wide = len(surface.points) > 65535
    return {
        # graphics cards want four numbers at a time
        "points": base64_numbers(
            np.pad(np.round((surface.points - centre) / scale), ((0, 0), (0, 1))), "<i2"
        ),
        "normals": base64_numbers(
            np.pad(np.round(127.0 * surface.normals), ((0, 0), (0, 1))), "i1"
        ),
        "faces": base64_numbers(surface.faces, "<u4" if wide else "<u2"),
        "wide": wide,
        "scale": [scale, *centre.tolist()],
    }


def quaternions(R: Array) -> Array:
    """Unit quaternions (T, n, 4), w first, of rotations (T, n, 3, 3), without jumps of sign."""
    q = unit_quaternions(R.reshape(-1, 3, 3)).reshape(*R.shape[:2], 4)
    turns = np.sign((q[1:] * q[:-1]).sum(axis=2))
    q[1:] *= np.cumprod(np.where(turns == 0.0, 1.0, turns), axis=0)[..., None]
    found: Array = q
    return found


def _picked(count: int, most: int) -> NDArray[np.intp]:
    """Rows to keep: all, or every k-th and the last."""
    step = -(-count // most)
    return np.unique([*range(0, count, step), count - 1])


def _chart(chart: Chart, rows: NDArray[np.intp], arrays: dict[str, int]) -> dict[str, Any]:
    """A chart as the page has it. Its numbers go into ``arrays``, each once: a phase plane shows
    what other charts show.
    """
    curves = []
    for curve in chart.curves[:MOST_CURVES]:
        row: dict[str, Any] = {"name": curve.name}
        parts = {"y": curve.y, "x": curve.x, "wanted": curve.wanted, "wantedX": curve.wanted_x}
        for key, values in parts.items():
            if values is not None:
                row[key] = arrays.setdefault(base64_numbers(values[rows], "<f4"), len(arrays))
        curves.append(row | ({"dashed": True} if curve.dashed else {}))
    data: dict[str, Any] = {"title": chart.title, "unit": chart.unit, "groups": chart.groups}
    data["curves"] = curves
    if chart.log:
        data |= {"log": True, "limit": chart.limit if np.isfinite(chart.limit) else 0.0}
    if chart.fit:
        data["fit"] = chart.fit
    if chart.across:
        data["x"] = dict(zip(("name", "unit"), chart.across, strict=True))
    return data


# ---- words ----


def _text(file: str) -> str:
    return files("ramify.view").joinpath(file).read_text(encoding="utf-8")


def _name(result: Run) -> str:
    record = result.options.get("scenario")
    return (
        str(record.get("name", result.model.name))
        if isinstance(record, Mapping)
        else result.model.name
    )


def _subtitle(result: Run) -> str:
    m, took = result.model, f"{result.t[-1] - result.t[0]:.4g} s"
    return " · ".join(
        [m.name, f"{len(m.bodies)} bodies", freedom_text(m), f"{m.mass:.4g} kg", took]
    )


def _badges(result: Run) -> str:
    audit = audited(result)
    kind = "good" if audit.passed else "bad"
    found = [f'<span class="badge {kind}">audit {escape(audit.verdict)}</span>']
    if result.status != "finished":
        kind = "bad" if result.status.startswith("failed") else ""
        found.append(f'<span class="badge {kind}">{escape(result.status)}</span>')
    return "".join(found)


def _thinning(result: Run) -> Sequence[str]:
    count, remarks = len(result), []
    shown = [len(_picked(count, most)) for most in (_most_rows(result), _most_frames(result))]
    if min(shown) < count:
        remarks.append(
            f"Of {count} rows the plots show {shown[0]} and the animation {shown[1]}, evenly "
            "spaced; the tables are of all."
        )
    if result.model.nq > MOST_CURVES:
        remarks.append(f"Plots show no more than {MOST_CURVES} curves each, the first ones.")
    return remarks


def _most_frames(result: Run) -> int:
    points = 0 if result.contacts is None else len(result.contacts.names)
    return max(30, min(MOST_FRAMES, MOST_POSES // max(1, len(result.model.bodies) + points)))


def _most_rows(result: Run) -> int:
    return min(MOST_ROWS, MOST_NUMBERS // (20 + 8 * min(result.model.nv, MOST_CURVES)))
