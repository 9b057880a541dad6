"""The pages of README and docs as readers use them: code blocks, the files they name, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"`([\w.-]+\.\w+)`[^`\n]*:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")


@dataclass(frozen=True)
class Page:
    """A Markdown page. A block that follows a line ending in ``a file's name:`` is that file."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        """The code blocks of a language, in order."""
        return [body for kind, body in _FENCE.findall(self.text) if kind == language]

    @property
    def files(self) -> dict[str, str]:
        """Files that the page shows, by name."""
        return dict(_NAMED.findall(self.text))

    @property
    def commands(self) -> list[str]:
        """Lines of shell blocks that call ramify."""
        lines = [
            line
            for kind in ("sh", "console", "bash")
            for block in self.blocks(kind)
            for line in block.splitlines()
        ]
        return [
            line.removeprefix("$ ").strip()
            for line in lines
            if line.removeprefix("$ ").startswith("ramify ")
        ]

    @property
    def links(self) -> list[str]:
        """Targets inside the project."""
        return _LINK.findall(_FENCE.sub("", self.text))

    @property
    def anchors(self) -> set[str]:
        """The headings as links name them."""
        heads = re.findall(r"^#{1,4} (.+)$", _FENCE.sub("", self.text), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


PAGES = [
    Page(ROOT / "README.md"),
    *(Page(ROOT / f"{name}.md") for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *(
        Page(path)
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if path.parent.name != "_gallery"
    ),
]
