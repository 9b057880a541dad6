"""The English of README and docs: house rules, and proselint over the prose without its code. The
docstrings and messages of the source follow the same house rules.

Run ``python docs/prose.py``; ``make lint`` does.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
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
    r"so many\b": "the number, or what counts it",
    r"let pass\b": "accepted",
    r"what of (?:an?|the|its?)\b": "what … of it",
    r"(?<!there\s)(?:is|are) no (?!longer\b|more\b|less\b|\w+er\b)\w+": "is not a …",
    r"(?:simply|obviously|of course)\b": "nothing: leave it out",
    r"(?:utili[sz]e|in order to)\b": "use, to",
    r"([a-z]{2,}) \1\b": "the word once",
}
"""Phrases that pages, docstrings and messages do not use, and what to write instead."""
_SAYING = ("warn", "refuse", "stop", "fail", "wrong")  # functions that take a message

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

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _ROW.sub(blank, _TARGET.sub(blank, _CODE.sub(blank, text)))


def phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and what to write instead, for each phrase that the docs do not use."""
    words = prose(text)
    for rule, advice in INSTEAD.items():
        across_lines = rule.replace(" ", r"(?: |\n *)")
        for match in re.finditer(rf"\b{across_lines}", words, re.IGNORECASE):
            line = words.count("\n", 0, match.start()) + 1
            yield line, " ".join(match[0].split()), advice


def sources() -> list[Path]:
    """The modules whose docstrings and messages are read."""
    return sorted((ROOT / "src" / "ramify").rglob("*.py"))


def source_phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and what to write instead, for each phrase in the docstrings and messages of a
    module.
    """
    for first, words in source_texts(text):
        for line, phrase, advice in phrases(words):
            yield first + line - 1, phrase, advice
        if re.match(r"The same\b", words):
            yield first, "The same", "what it is, without the docstring above it"


def source_texts(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of the docstrings of a module, and of the messages that it raises or warns."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                words = inspect.cleandoc(node.value.value)
                yield node.lineno, re.sub("^ +", "", words, flags=re.MULTILINE)
        elif isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _says(node)):
            yield from _strings(node)


def _says(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else None
    return (call.func.id if isinstance(call.func, ast.Name) else name) in _SAYING


def _strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and words of the strings within a statement; what an f-string fills in is a dash."""
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "–" for part in node.values]
        yield node.lineno, "".join(map(str, parts))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child)


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
    pages, modules = read(PAGES), read(sources())
    remarks = [
        f'{name}:{line}: "{words}"; write {advice}'
        for texts, find in ((pages, phrases), (modules, source_phrases))
        for name, text in texts.items()
        for line, words, advice in find(text)
    ]
    said = "\n".join([*remarks, *proselint(pages)])
    print(said or f"{len(pages)} pages and {len(modules)} modules read well")
    return bool(said)


def read(paths: Iterable[Path]) -> dict[str, str]:
    """The texts of files by their paths in the repository."""
    return {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in paths}


if __name__ == "__main__":
    raise SystemExit(main())
