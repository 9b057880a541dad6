"""Every kind of page in a browser: axe finds nothing, and colours differ for colour-blind readers.

Every kind of page also leaves its screenshots, wide, phone, dark and in print, in out/screenshots.
Those of the demonstration are in its own test.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import chromium, looked_at, settled, until, visit, wait
from pages import ROOT

import ramify as rf
from ramify.view.scene import MODULES

PORT = 8560


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def test_a_report(browser: Any, tmp_path: Path) -> None:
    run = rf.scenario("planar_biped_walk").run(t_end=0.2)
    looked_at(browser, run.report(tmp_path / "walk.html").as_uri(), "report")


def test_a_report_of_two_runs(browser: Any, tmp_path: Path) -> None:
    m = rf.load("two_link")
    first, second = (rf.simulate(m, 0.5, [q, 0.2], dt_out=0.02) for q in (0.4, 0.9))
    path = first.report(tmp_path / "both.html", compare=second)
    looked_at(browser, f"{path.as_uri()}#t=0.3&tab=Differences", "comparison")


def test_the_live_viewer(browser: Any) -> None:
    """With a machine that runs; it is paused once it does, since without a graphics card every
    picture takes its time.
    """

    def ready(page: Any) -> None:
        page.get_by_text("of real time").wait_for()
        until(page, "document.querySelector('#root[role=main] input[aria-label=control]')")
        settled(page)

    with rf.view(rf.load("quadruped", base="free"), port=PORT) as viewer:
        viewer.panels.control.value = "hold this pose: PD"
        viewer.live.start()
        wait(lambda: "of real time" in viewer.live.status.content)
        viewer.live.pause.value = True
        looked_at(browser, viewer.url, "viewer", home=viewer.url, ready=ready)


def test_a_study_page(browser: Any, tmp_path: Path) -> None:
    s = rf.study(
        ledger=tmp_path / "s.db",
        name="swings",
        scenario={"name": "swing", "robot": "two_link", "t_end": 0.05},
        vary={"damping": [0.0, 0.1, 0.2], "rtol": [1e-6, 1e-7]},
        keep={"metrics": ["max_speed", "energy_error"]},
    )
    s.run(engine="serial")
    s.page(tmp_path / "s.html")
    looked_at(browser, (tmp_path / "s.html").as_uri(), "study")


def test_pages_of_the_docs(browser: Any, tmp_path: Path) -> None:
    """Three pages with the site's theme, whose own part around the article is not checked; readers
    who ask for less motion see still pictures.
    """
    docs, source = ROOT / "docs", tmp_path / "docs"
    source.mkdir()
    for folder in ("_gallery", "pictures"):
        (source / folder).symlink_to(docs / folder)
    kinds = {"index": "home", "simulation": "article", "gallery": "gallery"}
    for name in kinds:
        (source / f"{name}.md").write_text((docs / f"{name}.md").read_text("utf-8"), "utf-8")
    command = [sys.executable, "-m", "sphinx", "-Q", "-b", "html", "-c", str(docs)]
    command += ["-D", "gallery=planar_3r", str(source), str(tmp_path / "html")]
    subprocess.run(command, check=True, timeout=300)
    for name, kind in kinds.items():
        address = (tmp_path / "html" / f"{name}.html").as_uri()
        looked_at(browser, address, f"docs_{kind}", "'article'")
    moving = "[...document.images].map((image) => image.currentSrc.split('.').pop()).join()"
    with visit(browser, address) as shown:
        until(shown, f"{moving} == 'gif'")
        shown.emulate_media(reduced_motion="reduce")
        until(shown, f"{moving} == 'png'")


# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as protanopes, deuteranopes and
# tritanopes see it.
VISION = {
    "all cones": np.eye(3),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "tritanopia": np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip


def lab(colour: str, vision: Any) -> Any:
    """CIE L*a*b* of a colour as somebody sees it."""
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ np.clip(vision @ linear, 0.0, 1.0) / to_xyz.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", list(VISION))
def test_colours_differ_for_everybody(vision: str) -> None:
    script = (ROOT / "src" / "ramify" / "view" / "plot.js").read_text(encoding="utf-8")
    line = next(line for line in script.splitlines() if line.startswith("const LINES"))
    for palette in (MODULES, re.findall(r"#[0-9a-f]{6}", line)):
        assert len(palette) == 8
        for a, b in combinations(palette, 2):
            apart = np.linalg.norm(lab(a, VISION[vision]) - lab(b, VISION[vision]))
            assert apart > 15.0, (a, b)
