"""The English of README and docs: house rules, and proselint over the prose without its code.

Run ``python docs/prose.py``; ``make lint`` does.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *sorted(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "_gallery"),
]

INSTEAD = {
    r"(?:is|are) told\b": "is reported",
    r"unless told\b": "by default",
    r"will not do\b": "must be …",
    r"belongs? here\b": "must be …",
    r"stands? twice\b": "duplicate",
    r"of one's own\b": "custom",
    r"nobody (?:writes|asked|tells)\b": "you do not …",
    r"for ever\b": "forever, or how long",
    r"(?:simply|obviously|of course)\b": "nothing: leave it out",
    r"(?:utili[sz]e|in order to)\b": "use, to",
    r"([a-z]{2,}) \1\b": "the word once",
}
"""Phrases that the docs do not use, and what to write instead."""

PASSED_OVER = (
    "typography",  # straight quotes, three dots, (c): the pages are Markdown
    "needless_variants",  # takes "revolute" for a revolt
    "lexical_illusions",  # numbers; doubled words are above
    "spelling.consistency",  # center_of_mass beside centre
    "misc.illogic",
    "industrial_language",
    "dates_times",
)
"""Checks of proselint that do not fit technical pages."""
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`|\$\$.*?\$\$|<[^>\n]+>", re.DOTALL | re.MULTILINE)
_TARGET = re.compile(r"\]\([^)]*\)")
_ROW = re.compile(r"^( {4,}|\||#+ \d).*$", re.MULTILINE)


def prose(text: str) -> str:
    """The words of a page; code, tables, formulas and targets of links are blanks, lines stay."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    return _ROW.sub(blank, _TARGET.sub(blank, _CODE.sub(blank, text)))


def phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and what to write instead, for each phrase that the docs do not use."""
    words = prose(text)
    for rule, advice in INSTEAD.items():
        for found in re.finditer(rf"\b{rule}", words, re.IGNORECASE):
            yield words.count("\n", 0, found.start()) + 1, found[0], advice


def proselint(pages: dict[str, str]) -> list[str]:
    """What proselint says about pages, by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in pages.items():
            (Path(folder) / name.replace("/", "-")).write_text(prose(text), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "proselint", "-o", "compact", "check", folder],
            capture_output=True,
            text=True,
        )
    if "No module" in done.stderr:
        return [done.stderr.strip()]
    lines = (line.replace(f"{folder}/", "") for line in done.stdout.splitlines())
    said = [line for line in lines if re.match(r"\S+:\d+:\d+: ", line)]
    return [line for line in said if not line.split(": ", 1)[1].startswith(PASSED_OVER)]


def main() -> int:
    pages = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in PAGES}
    found = [
        f'{name}:{line}: "{words}"; write {advice}'
        for name, text in pages.items()
        for line, words, advice in phrases(text)
    ]
    said = "\n".join([*found, *proselint(pages)])
    print(said or f"{len(pages)} pages read well")
    return bool(said)


if __name__ == "__main__":
    raise SystemExit(main())
