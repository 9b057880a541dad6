"""Every kind of page in a browser: axe finds nothing, and colours differ for colour-blind readers.

Every kind of page also leaves its screenshots, wide, phone, dark and in print, in out/screenshots.
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
from browsing import chromium, keep, visit
from pages import ROOT

import ramify as rf
from ramify.view.scene import MODULES

PORT = 8560


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def violations(page: Any, context: str = "document") -> list[str]:
    """What axe complains about, and where."""
    import axe_playwright_python

    folder = Path(axe_playwright_python.__file__).parent
    page.evaluate((folder / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate(
        f"axe.run({context}, {{ resultTypes: ['violations'], preload: false }}).then((r) => r.violations.map((v) =>"
        " `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`))"
    )
    return list(found)


def looked_at(browser: Any, address: str, name: str, context: str = "document") -> None:
    """Screenshots in four forms; axe on the wide ones, light and dark; nothing sticks out."""
    for form, width, scheme in (
        ("wide", 1280, "light"),
        ("dark", 1280, "dark"),
        ("phone", 390, "light"),
    ):
        with visit(browser, address, width=width, height=844, scheme=scheme) as page:
            page.wait_for_timeout(100)
            shot = keep(page, f"{name}_{form}", full_page=True)
            assert (shot.mean() < 128) == (scheme == "dark"), form
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), form
            if form != "phone":
                assert violations(page, context) == [], form
                continue
            page.emulate_media(media="print")
            keep(page, f"{name}_print", full_page=True)


def test_a_report(browser: Any, tmp_path: Path) -> None:
    run = rf.scenario("planar_biped_walk").run(t_end=0.2)
    looked_at(browser, run.report(tmp_path / "walk.html").as_uri(), "report")


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


def test_a_page_of_the_docs(browser: Any, tmp_path: Path) -> None:
    """The style sheets of the site, on one page with a bit of everything; what is around it is the
    theme's own.
    """
    source = tmp_path / "docs"
    source.mkdir()
    (source / "index.md").write_text(
        "# Page\n\n[A link](#a-part) and `code`.\n\n## A part\n\n```python\n# a comment\n"
        'for x in range(3):\n    print("text", x)\n```\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n'
    )
    settings = ["html_static_path=" + str(ROOT / "docs" / "_static"), "gallery=planar_3r"]
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-c", str(ROOT / "docs")]
    command += [part for setting in settings for part in ("-D", setting)]
    subprocess.run([*command, str(source), str(tmp_path / "html")], check=True, timeout=300)
    looked_at(browser, (tmp_path / "html" / "index.html").as_uri(), "docs", "'article'")


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
