"""A study as one self-contained HTML file, and the reports of single runs, made on request."""

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

from ramify.api.result import Result
from ramify.core.arrays import whole
from ramify.core.errors import SimulationError
from ramify.documents.writing import write_whole
from ramify.studies.ledger import Ledger
from ramify.studies.sensitivity_indices import FEW, first_order_index, rank_correlation
from ramify.studies.study_plots import Drawn, drawn, plot_study, trade_offs
from ramify.studies.work import run_row
from ramify.view.figures import save_picture

MOST_ROWS: Final = 500
"""Runs in the table of a page; the export has them all."""
MARK: Final = 12
"""Digits of a run's key in an address."""

STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 "
    "1rem;color:#1a2b3c;background:#fff}"
    "h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;font-size:.85rem}"
    "th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid "
    "#dfe6ee}td{white-space:nowrap}th:first-child,td:first-child{text-align:left}"
    ".wide{overflow-x:auto}img{max-width:100%;min-width:40rem}pre{background:#f4f6f9;padding:.8rem;overflow-x:auto;font-size:.8rem}"
    "@media(prefers-color-scheme:dark){body{background:#14191f;color:#dfe6ee}pre{background:#1d242c}"
    "img{filter:invert(.91) hue-rotate(180deg);background:#fff;border-radius:6px}"
    "a{color:#6cb2f5}th,td{border-color:#333d48}}"
    "@media print{body{max-width:none;margin:0;padding:0;font-size:10pt}pre,td,th{font-size:8pt}"
    "img{min-width:0}pre{white-space:pre-wrap}h2,img{break-inside:avoid}}"
)


def report_path(path: Path, number: int) -> Path:
    """Where the summary looks for the report of a run. Raises SimulationError if it is unknown."""
    with Ledger(path) as ledger:
        return _report_path(path, number, ledger.row(number).key.hex()[:MARK])


def _report_path(path: Path, number: int, mark: str) -> Path:
    """``mark``, the beginning of its key: runs of other plans have the same numbers."""
    return path.with_name(f"{path.stem}_runs") / f"run_{number}_{mark}.html"


def write_run_of_study(path: Path, number: int, target: Path) -> None:
    """Compute a run of a ledger again and write its report (.html), the run itself (.nc, .csv) or a
    plot (.svg, .png, .pdf).
    """
    known = (".html", ".nc", ".csv", ".svg", ".png", ".pdf")
    if target.suffix not in known:
        raise SimulationError(f"{target}: the suffix must be one of {', '.join(known)}")
    with Ledger(path) as ledger:
        recipe, row = ledger.recipe(), ledger.row(number)
    try:
        result = run_row(recipe, row.values.tolist())
    except SimulationError as error:
        if not isinstance(error.result, Result):
            raise
        result = error.result  # what was computed until it failed
    target.parent.mkdir(parents=True, exist_ok=True)
    writers: dict[str, Callable[[Path], object]]
    writers = {".html": result.report, ".nc": result.save, ".csv": result.to_csv}
    if target.suffix in writers:
        writers[target.suffix](target)
    else:
        save_picture(result.plot("q"), target)


def write_page(path: Path, target: Path, reports: Sequence[int] = ()) -> None:
    """Write the summary of a ledger; reports: runs whose reports are written too."""
    for number in _numbers(reports):
        write_run_of_study(path, number, report_path(path, number))

    def link(number: int, mark: str) -> str | None:
        page = _report_path(path, number, mark)
        return os.path.relpath(page, target.parent).replace(os.sep, "/") if page.exists() else None

    write_whole(target, page(path, link), SimulationError)


def _numbers(reports: object) -> list[int]:
    try:
        listed = list(reports)  # type: ignore[call-overload]
    except TypeError:
        listed = [reports]
    return [whole("the number of a report's run", number, 0, SimulationError) for number in listed]


RunLink = Callable[[int, str], str | None]
"""The address of the report of a run, by number and beginning of its key; None without one."""


def page(path: Path, link: RunLink) -> str:
    """The summary of a ledger."""
    shown = drawn(path)
    with Ledger(path) as ledger:
        about, count, failures = ledger.fact("study"), ledger.count(), ledger.errors(100)
        versions, robot = ledger.fact("versions"), ledger.recipe().robot
        broken = [ledger.row(number).key.hex()[:MARK] for number, _, _ in failures]
        marks = [row.key.hex()[:MARK] for row in islice(ledger.rows(), MOST_ROWS)]
    made_with = ", ".join(f"{name} {version}" for name, version in versions.items())
    file = escape(path.name)
    parts = [
        f"<h1>{escape(about['name'])}</h1>",
        f"<p>{escape(about['description'])}</p>" if about["description"] else "",
        f"<p>{count.done} of {count.planned} runs done, {count.failed} failed, {count.killed} "
        f"killed, {count.waiting} waiting; {count.seconds:.1f} s of computing. "
        f"Robot: {escape(robot.name)}. Made with {escape(made_with)}.</p>",
        _summary(shown),
    ]
    if shown.done.any() and shown.names:
        text = "distribution of each number and its dependence on each parameter"
        parts.append(_picture("Distributions and dependence", text, plot_study(path)))
        parts.append(_sensitivity(shown))
        figure = trade_offs(shown)
        text = (
            "every run as a line over its parameters and numbers; the Pareto front of the first two"
        )
        if figure is not None:
            parts.append(_picture("Trade-offs", text, figure))
    if failures:
        rows = [
            (_linked(number, link(number, mark)), escape(status), escape(text))
            for (number, status, text), mark in zip(failures, broken, strict=True)
        ]
        parts += ["<h2>Failed runs</h2>", _table("Failed runs", ("run", "status", "error"), rows)]
    parts += [
        "<h2>Runs</h2><p>The number of a run links to its report, if it has been written. "
        f"<code>ramify sweep report {file} RUN</code> computes any run again, bit for bit, and "
        f"writes its report; <code>ramify sweep serve {file}</code> shows this page with reports "
        "on request.</p>",
        _runs(shown, marks, link),
        f"<h2>The study</h2><pre tabindex='0'>{escape(about['text'])}</pre>",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(about['name'])}</title><style>{STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _table(name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are HTML. It has a place in the order of the keys, as it may scroll."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{escape(name)}'>"
        f"<table><thead><tr>{top}</tr></thead>"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _summary(shown: Drawn) -> str:
    rows: list[list[str]] = []
    for name in shown.names:
        values = shown.table[name][shown.done]
        values = values[np.isfinite(values)]
        if values.size:
            numbers = (values.min(), np.median(values), values.mean(), values.max(), values.std())
            rows.append([escape(shown.label(name)), *(f"{x:.5g}" for x in numbers)])
    head = ("number", "minimum", "median", "mean", "maximum", "standard deviation")
    return _table("Summary", head, rows) if rows else ""


def _linked(number: int, address: str | None) -> str:
    return f"<a href='{escape(address)}'>{number}</a>" if address is not None else str(number)


def _sensitivity(shown: Drawn) -> str:
    """A table: of each number, the first-order index and the rank correlation of each parameter."""
    table, varied = shown.table, shown.varied
    rows: list[list[str]] = []
    for name in shown.names:
        fine = np.isfinite(table[name]) & shown.done
        if fine.sum() < FEW:
            continue
        cells = [escape(shown.label(name))]
        for parameter in varied:
            x, y = table[parameter][fine], table[name][fine]
            share, trend = first_order_index(x, y), rank_correlation(x, y)
            defined = np.isfinite(share) and np.isfinite(trend)
            cells.append(f"{share:.2f} ({trend:+.2f})" if defined else "–")
        rows.append(cells)
    if not rows or not varied:
        return ""
    text = (
        "<h2>Sensitivity</h2><p>The share of a number's variance that a parameter alone explains "
        "(first-order index, 0 to 1), and in brackets the rank correlation (−1 to 1). Shares that "
        "add up to less than 1 leave the rest to combinations of parameters.</p>"
    )
    return text + _table("Sensitivity", ("number", *varied), rows)


def _runs(shown: Drawn, marks: Sequence[str], link: RunLink) -> str:
    table, columns = shown.table, [*shown.parameters, *shown.names]
    rows = []
    for i, (number, mark) in enumerate(zip(table["run"].tolist(), marks, strict=False)):
        numbers = [f"{table[name][i]:.6g}" for name in columns]
        status = escape(str(table["status"][i]))
        rows.append([_linked(number, link(number, mark)), status, *numbers])
    more = len(table["run"]) - MOST_ROWS
    rest = f"<p>and {more} more: see <code>ramify sweep export</code>.</p>" if more > 0 else ""
    return _table("Runs", ("run", "status", *map(shown.label, columns)), rows) + rest


def _picture(title: str, text: str, figure: Any) -> str:
    """A figure under its title; on a narrow screen it scrolls."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", dpi=120)
    data = base64.b64encode(buffer.getvalue()).decode()
    picture = f"<img alt='{text}' src='data:image/svg+xml;base64,{data}'>"
    region = f"class='wide' tabindex='0' role='region' aria-label='{title}'"
    return f"<h2>{title}</h2><div {region}>{picture}</div>"
