"""A browser without a screen for the tests of pages: Chromium as the system has it, driven by
Playwright.
"""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SWITCHES = [
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-rasterization",  # without a graphics card, drawing in two dimensions by way of
    "--disable-accelerated-2d-canvas",  # one costs ten times as much
]
SCREENSHOTS = Path(__file__).resolve().parent.parent / "out" / "screenshots"


def find_browser() -> str:
    """The path of Chromium; the test fails, rather than being skipped, where there is none."""
    named = os.environ.get("RAMIFY_BROWSER")
    found = named or next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.fail(
            "no browser: install Chromium (apt-get install chromium), or name one in RAMIFY_BROWSER"
        )
    return found


@contextmanager
def chromium(*switches: str) -> Iterator[Any]:
    """A running browser."""
    from playwright.sync_api import sync_playwright

    path = find_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*SWITCHES, *switches])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visit(
    browser: Any,
    address: str,
    *,
    width: int = 1200,
    height: int = 800,
    scheme: str = "light",
    before: str = "",
    home: str = "",
) -> Iterator[Any]:
    """A page that must not complain: errors, warnings of its console and requests to a network fail
    the test.

    before: a script that runs before the page's own; home: where requests may go all the same
    (warnings are let pass then).
    """
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    context.set_default_timeout(120_000)  # ms: machines are busy
    page = context.new_page()
    trouble: list[str] = []
    bad = ("error",) if home else ("error", "warning")
    page.on(
        "console", lambda message: trouble.append(message.text) if message.type in bad else None
    )
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on(
        "dialog", lambda dialog: (trouble.append(f"dialog: {dialog.message}"), dialog.dismiss())
    )
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("file:", "data:", "blob:", home or "file:"))
            else trouble.append(request.url)
        ),
    )
    if before:
        page.add_init_script(before)
    try:
        page.goto(address)
        yield page
        assert trouble == [], trouble
    finally:
        context.close()


def pixels(png: bytes) -> Any:
    """A picture (h, w, 3) from the bytes of a PNG file."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def keep(page: Any, name: str, **options: Any) -> Any:
    """A screenshot, kept in out/screenshots, as an array."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return pixels(page.screenshot(path=SCREENSHOTS / f"{name}.png", **options))


def settled(page: Any) -> None:
    """Wait until the page has drawn what it was asked for."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


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


FORMS = (("wide", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light"))


def looked_at(
    browser: Any,
    address: str,
    name: str,
    context: str = "document",
    home: str = "",
    ready: Callable[[Any], None] = settled,
) -> None:
    """Screenshots in four forms, kept in out/screenshots; axe on the wide ones, light and dark;
    nothing sticks out.
    """
    with visit(browser, address, width=1280, height=844, home=home) as page:
        for form, width, scheme in FORMS:
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            if home:
                page.goto(address)  # it takes the colours of the system as it opens
            ready(page)
            shot = keep(page, f"{name}_{form}", full_page=not home)
            assert (shot.mean() < 128) == (scheme == "dark"), form
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), form
            if form != "phone":
                assert violations(page, context) == [], form
        page.set_viewport_size({"width": 794, "height": 1123})  # A4
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        ready(page)
        keep(page, f"{name}_print", full_page=not home)


def until(page: Any, expression: str, seconds: float = 30.0) -> None:
    """Wait until an expression is true; Playwright's own waiting evaluates text in the page, which
    a report forbids.
    """
    for _ in range(round(seconds / 0.05)):
        if page.evaluate(f"Boolean({expression})"):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"still false after {seconds} s: {expression}")


def wait(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds in this program."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)
