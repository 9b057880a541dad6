"""A study as one HTML file that needs nothing but itself, and the reports of single runs, made when
they are asked for.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from ramify.core.errors import SimulationError
from ramify.documents.writing import write_whole
from ramify.studies.export import table
from ramify.studies.ledger import Ledger
from ramify.studies.plots import drawn_columns, plot
from ramify.studies.study import Study

MOST_ROWS: Final = 500
"""Runs that a page lists; the export has them all."""
MARK: Final = 12
"""Digits of a run's key that stand in an address."""

STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 "
    "1rem;color:#1a2b3c;background:#fff}"
    "h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;font-size:.85rem}"
    "th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid "
    "#dfe6ee}th:first-child,td:first-child{text-align:left}"
    ".wide{overflow-x:auto}img{max-width:100%}pre{background:#f4f6f9;padding:.8rem;overflow-x:auto;font-size:.8rem}"
    "@media(prefers-color-scheme:dark){body{background:#14191f;color:#dfe6ee}pre{background:#1d242c}img{background:#fff}"
    "a{color:#6cb2f5}th,td{border-color:#333d48}}"
)


def report_path(path: Path, number: int) -> Path:
    """Where the summary beside a ledger looks for the report of a run. Raises SimulationError where
    there is no such run.
    """
    with Ledger(path) as ledger:
        return _report_path(path, number, ledger.row(number).key.hex()[:MARK])


def _report_path(path: Path, number: int, mark: str) -> Path:
    """``mark``, the beginning of the run's key, tells it from a run of the same number in another
    plan.
    """
    return path.with_name(f"{path.stem}_runs") / f"run_{number}_{mark}.html"


def write_report(study: Study, number: int, target: Path) -> None:
    """Make a run once more and write its report (.html), or the run itself (.nc, .csv) or a plot
    (.svg, .png, .pdf).
    """
    known = (".html", ".nc", ".csv", ".svg", ".png", ".pdf")
    if target.suffix not in known:
        raise SimulationError(f"{target}: a report is written as {', '.join(known)}")
    try:
        result: Any = study.result(number)
    except SimulationError as error:
        if error.result is None:
            raise
        result = error.result  # what was computed until it failed
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".html":
        if hasattr(result, "report"):
            result.report(target)
        else:
            write_whole(target, run_page(study, number, result), SimulationError)
    elif target.suffix in (".nc", ".csv"):
        (result.save if target.suffix == ".nc" else result.to_csv)(target)
    else:
        result.plot("q").savefig(target)


def write_page(study: Study, target: Path, reports: Sequence[int] = ()) -> None:
    """Write the summary; reports: runs whose reports are made now."""
    for number in reports:
        write_report(study, number, report_path(study.ledger, number))

    def link(number: int, mark: str) -> str | None:
        page = _report_path(study.ledger, number, mark)
        return os.path.relpath(page, target.parent).replace(os.sep, "/") if page.exists() else None

    write_whole(target, page(study, link), SimulationError)


Link = Callable[[int, str], str | None]
"""The address of the report of a run, by its number and the beginning of its key; None where there
is none yet.
"""


def page(study: Study, link: Link) -> str:
    """The summary of what the ledger holds."""
    study = study.open(study.ledger)  # it may have been run from a changed study since
    found, count, path = table(study.ledger), study.status(), study.ledger
    done = found["status"] == "done"
    columns = drawn_columns(path, found, None)
    with Ledger(path) as ledger:
        said = ledger.fact("versions")
        marks = [row.key.hex()[:MARK] for row in islice(ledger.rows(), MOST_ROWS)]
    command = f"ramify sweep report {path.name} RUN"
    parts = [
        f"<h1>{escape(study.name)}</h1>",
        f"<p>{escape(study.description)}</p>" if study.description else "",
        f"<p>{count.done} of {count.planned} runs done, {count.failed} failed, {count.killed} "
        f"killed, {count.waiting} to do; "
        f"{count.seconds:.1f} s of computing. Robot {escape(study.recipe.robot.name)}; "
        f"{escape(', '.join(f'{name} {version}' for name, version in said.items()))}.</p>",
        _summary(found, columns, done),
        "<h2>Distributions and dependence</h2><img alt='distribution of each number and its "
        "dependence on each parameter' "
        f"src='{_picture(plot(path))}'>" if done.any() and columns else "",
        _aside(study),
        "<h2>Runs</h2><p>A number leads to the run's report where it has been made. Any run is "
        "made once more, bit for bit, with "
        f"<code>{escape(command)}</code>; <code>ramify sweep serve {escape(path.name)}</code> "
        "shows this page with reports made "
        f"when they are asked for.</p>",
        _runs(found, [*study.parameters, *columns], marks, link),
        f"<h2>The study</h2><pre>{escape(study.text)}</pre>",
    ]  # fmt: skip
    return _html(study.name, parts)


def _html(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{escape(title)}</title>"
    return f"<!doctype html>\n<html lang='en'><head>{head}<style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are HTML already."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table></div>"


def _summary(found: dict[str, Any], columns: Sequence[str], done: Any) -> str:
    rows: list[list[str]] = []
    for name in columns:
        values = found[name][done]
        values = values[np.isfinite(values)]
        if values.size:
            numbers = (values.min(), np.median(values), values.mean(), values.max(), values.std())
            rows.append([escape(name), *(f"{x:.5g}" for x in numbers)])
    return (
        _table(("", "least", "median", "mean", "largest", "standard deviation"), rows)
        if rows
        else ""
    )


def _aside(study: Study) -> str:
    rows = [
        (str(number), escape(status), escape(error)) for number, status, error in study.errors(100)
    ]
    return "<h2>Set aside</h2>" + _table(("run", "status", "error"), rows) if rows else ""


def _runs(found: dict[str, Any], columns: Sequence[str], marks: Sequence[str], link: Link) -> str:
    def rows() -> Iterable[list[str]]:
        for i, number in enumerate(found["run"][:MOST_ROWS].tolist()):
            address = link(number, marks[i])
            label = (
                f"<a href='{escape(address)}'>{number}</a>" if address is not None else str(number)
            )
            yield [
                label,
                escape(str(found["status"][i])),
                *(f"{found[name][i]:.6g}" for name in columns),
            ]

    more = len(found["run"]) - MOST_ROWS
    rest = (
        f"<p>and {more} more: <code>ramify sweep export</code> has them all.</p>"
        if more > 0
        else ""
    )
    return _table(("run", "status", *columns), rows()) + rest


def _picture(figure: Any) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", dpi=120)
    return f"data:image/svg+xml;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def run_page(study: Study, number: int, result: Any) -> str:
    """The report of one run: its values, how it went, its plots."""
    with Ledger(study.ledger) as ledger:
        row = ledger.row(number)
    values = [
        (escape(name), f"{value!r}")
        for name, value in zip(study.parameters, row.values.tolist(), strict=True)
    ]
    kept = [
        (escape(name), f"{value:.8g}")
        for name, value in zip(study.columns, row.numbers.tolist(), strict=False)
    ]
    pictures = [
        f"<img alt='{what}' src='{_picture(result.plot(what))}'>"
        for what in ("q", "v", "tau", "energy")
    ]
    facts = f"{result.t[-1]:g} s, {result.status}, {result.options['method']}, {result.stats['steps']} steps"
    parts = [
        f"<h1>{escape(study.name)}, run {number}</h1><p>{escape(facts)}</p>",
        _table(("parameter", "value"), values),
    ]
    return _html(
        f"{study.name}, run {number}", [*parts, _table(("kept", "value"), kept), *pictures]
    )
