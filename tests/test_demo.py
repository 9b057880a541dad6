"""The page of the demonstration: five panels that run the code they show."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from browsing import chromium, keep, looked_at, until, visit

import ramify as rf
from ramify.cli.demo_page import PANELS, herd_frames, write_demo
from ramify.kernels.timing import arithmetic_rate


class Balanced(HTMLParser):
    """Every element that opens is closed, in order; nothing is loaded from elsewhere."""

    void = frozenset({"meta", "br", "hr", "img", "link", "input", "source"})

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.folder = folder

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {"script", "link", "iframe"}
        for name, value in attrs:
            if name in {"src", "href", "srcset"}:  # its own pictures, and the reports beside it
                assert value is not None
                own = value.startswith("data:image/webp;")
                assert own or (self.folder / value.removesuffix("#play")).exists()
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    told: list[str] = []
    path = write_demo(tmp_path_factory.mktemp("demo") / "out", progress=told.append, frames=2)
    assert told == [*(panel.title for panel in PANELS), "How fast"]
    return path


def test_the_page_tells_what_was_computed(index: Path) -> None:
    page = index.read_text(encoding="utf-8")
    parser = Balanced(index.parent)
    parser.feed(page)
    assert parser.open == []
    assert page.count("audit of the energy: passed") == 4
    assert "18 degrees of freedom; 9" in page  # more than 90 % of the herd stand
    assert page.count("rf.simulate(") + page.count("rf.scenario(") == 4
    assert page.count("rf.rollout(") == 1
    assert "$" not in page


def test_the_page_in_a_browser(index: Path) -> None:
    with chromium() as browser:
        looked_at(browser, index.as_uri(), "demo")
        with visit(browser, index.as_uri()) as page:
            assert page.evaluate(
                "[...document.querySelectorAll('.panel img')].map((image) => image.complete && "
                "image.naturalWidth)"
            ) == [480] * len(PANELS)
            page.locator("summary").nth(1).click()
            assert page.locator("details[open] pre").is_visible()
            keep(page, "demo-code")
            page.locator(".panel a").nth(0).click()
            until(page, "window.report && report.scene")
            until(page, "report.page.now.time > 0.02")  # it starts to play


def test_a_herd_is_drawn_as_it_stands() -> None:
    """A robot that stands higher is drawn higher, in its own cell."""
    m = rf.load("quadruped", base="free")
    q = np.tile(m.neutral(), (2, 2, 1))
    q[:, :, 2] = [[0.5, 0.8], [0.5, 0.5]]
    run = rf.Rollout(np.array([0.0, 1.0]), q, np.zeros((2, 2, m.nv)))
    first, last = (frame.astype(int) for frame in herd_frames(m, run, "light", 2))
    assert (first[:50, 40:80] == last[:50, 40:80]).all()
    moved = np.abs(first[:50, :40] - last[:50, :40]).sum(axis=(1, 2)).nonzero()[0]
    drawn = (first[:50, :40] != first[0, 0]).any(axis=(1, 2)).nonzero()[0]
    assert moved.min() < drawn.min()


def test_arithmetic_has_a_rate() -> None:
    assert 1e6 < arithmetic_rate(0.01) < 1e15
