"""README and documentation are true: code runs, commands exist, links lead somewhere, the picture
of the layers is the table of the layer test, the site builds without a warning.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, ROOT, Page
from test_architecture import LAYERS

CONTRIBUTING = next(page for page in PAGES if page.name == "CONTRIBUTING.md")
ELSEWHERE = {CONTRIBUTING.name, "docs/jax.md", "docs/pytorch.md"}
"""Pages that run in a process or an environment of their own: see below, and tests/extras."""
WITH_CODE = [page for page in PAGES if page.blocks("python") and page.name not in ELSEWHERE]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_code_runs(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page, one after the other, beside the files that the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for name, text in page.files.items():
        Path(name).write_text(text, encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(page.blocks("python"), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


def test_examples_of_contributing_run(tmp_path: Path) -> None:
    """In a process of their own, since they add entries to the registries."""
    code = "\n\n".join(CONTRIBUTING.blocks("python"))
    kinds = (
        "JOINT_KINDS",
        "ALGORITHMS",
        "INTEGRATORS",
        "LAWS",
        "CONTROLLERS",
        "MOTIONS",
        "Format(",
    )
    kinds += ("OPS",)
    assert all(kind in code for kind in kinds)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_picture_shows_the_layers() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import layers

    assert layers.PICTURE.read_text(encoding="utf-8") == layers.picture(LAYERS), (
        "run: python docs/layers.py"
    )
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert "pictures/layers.svg" in text


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.commands], ids=lambda page: page.name
)
def test_commands_exist(page: Page) -> None:
    from ramify.cli import app

    for line in page.commands:
        words = shlex.split(line, comments=True)
        assert words[1] in app or words[1].startswith("-"), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    for link in page.links:
        target, _, anchor = link.partition("#")
        path = (page.path.parent / target).resolve() if target else page.path
        assert path.exists(), f"{page.name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in Page(path).anchors, f"{page.name} links to {link}"


def test_every_page_is_in_the_contents() -> None:
    listed = {
        (page.path.parent / line.strip()).resolve() for page in PAGES for line in _contents(page)
    }
    for page in PAGES:
        if page.path.parent == ROOT or page.name == "docs/index.md":
            continue
        assert page.path.with_suffix("") in listed, f"{page.name} is in no table of contents"


def _contents(page: Page) -> list[str]:
    blocks = page.text.split("```{toctree}\n")[1:]
    return [
        line
        for block in blocks
        for line in block.split("```")[0].splitlines()
        if line.strip() and not line.startswith(":")
    ]


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        "-d",
        str(tmp_path / "trees"),
        "-D",
        "gallery=planar_3r",
        "-D",
        "html_theme=basic",  # the site's own writes its menu of all pages on each page
    ]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    assert "ramify" in page
    assert "https://cdn" not in page  # the site needs no network
