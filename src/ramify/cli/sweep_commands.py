"""Studies: sweep, and its status, resume, export, plot, report."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

import ramify as rf
from ramify.cli.common import AsJson, Switch, Words, app
from ramify.cli.output import print_error, print_json, print_line, print_table

if TYPE_CHECKING:
    from ramify.studies.ledger import Count
    from ramify.studies.study import Study

sweep = App(
    name="sweep",
    help="Run a study: one scenario, many runs, kept in a ledger from which it can be resumed.",
)
app.command(sweep)

PICTURES = (".svg", ".png", ".pdf")
StudyFile = Annotated[Path, Parameter(name="STUDY.yaml", help="A study file.")]
LedgerPath = Annotated[Path, Parameter(name="LEDGER.db", help="The ledger of a study.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Computing:
    """Where the runs are computed."""

    jobs: int | None = None
    """Local processes; by default all cores."""
    engine: str = "processes"
    """processes, serial, dask or ray."""
    scheduler: str | None = None
    """Address of the cluster, such as tcp://127.0.0.1:8786."""
    keep_going: Switch = False
    """Go on where the first runs all fail for one reason."""


@sweep.default
def run(
    study: StudyFile,
    /,
    *,
    ledger: Path | None = None,
    computing: Computing = Computing(),
    check: Switch = False,
    json: AsJson = False,
) -> int:
    """Run a study. Runs that are in its ledger already are not repeated: a changed or longer study
    only adds what is new.

    Args:
        ledger: The ledger; by default beside the study file.
        check: Only read the study and report its number of runs.
    """
    planned = rf.study(study, ledger=ledger)
    if check:
        if json:
            said = {"study": planned.name, "runs": len(planned)}
            said |= {"parameters": list(planned.parameters), "columns": planned.columns}
            print_json(said)
        else:
            print_line(f"{planned.name}: {len(planned)} runs over {', '.join(planned.parameters)}")
        return 0
    return _go(planned, computing, ("killed",), json)


@sweep.command
def resume(
    ledger: LedgerPath,
    /,
    *,
    computing: Computing = Computing(),
    failed: Switch = False,
    damaged: Switch = False,
    json: AsJson = False,
) -> int:
    """Go on with a study, from its ledger alone.

    Args:
        failed: Try those that failed once more.
        damaged: Check all runs, and compute those again that are not as they were written.
    """
    chosen = {"killed": True, "failed": failed, "damaged": damaged}
    again = tuple(status for status, wanted in chosen.items() if wanted)
    return _go(rf.Study.open(ledger), computing, again, json)


@sweep.command
def status(ledger: LedgerPath, /, *, check: Switch = False, json: AsJson = False) -> int:
    """How far a study is, and what was set aside. --check: check the file of the ledger as well."""
    from ramify.studies.ledger import Ledger

    study = rf.Study.open(ledger)
    with Ledger(ledger) if check else nullcontext() as opened:
        integrity = None if opened is None else opened.check()
    if json:
        said = study.status()._asdict() | {"study": study.name, "errors": study.errors()}
        print_json(said | ({"integrity": integrity} if check else {}))
    else:
        _tell(study, study.status())
        if check:
            print_line(f"ledger: {integrity}")
    return int(integrity not in (None, "ok"))


@sweep.command
def export(ledger: LedgerPath, /, out: Path) -> None:
    """Write all runs as one table.

    Args:
        out: .csv, .parquet, .zarr or .nc
    """
    rf.Study.open(ledger).export(out)
    print_line(f"written: {out}")


@sweep.command
def plot(
    ledger: LedgerPath,
    /,
    out: Path,
    *,
    columns: Words = None,
    reports: Annotated[list[int] | None, Parameter(consume_multiple=True, negative="")] = None,
) -> None:
    """Draw a summary: the distribution of each number, and how it depends on each parameter.

    Args:
        out: .html (summary in one file), .svg, .png or .pdf
        columns: Numbers to draw; the metrics.
        reports: Runs whose pages are made too.
    """
    study = rf.Study.open(ledger)
    if out.suffix == ".html":
        study.page(out, reports or [])
    elif out.suffix.lower() in PICTURES:
        from ramify.view.figures import save_picture

        save_picture(study.plot(columns), out)
    else:
        raise rf.SimulationError(f"{out}: a summary is written as .html, {', '.join(PICTURES)}")
    print_line(f"written: {out}")


@sweep.command
def report(
    ledger: LedgerPath,
    number: Annotated[int, Parameter(name="RUN", help="The number of a run.")],
    /,
    out: Path | None = None,
) -> None:
    """Make one run once more from its row, bit for bit, and write its report.

    Args:
        out: .html, .nc, .csv, .svg or .png; the page that the summary links to.
    """
    from ramify.studies.page import report_path, write_run_of_study

    target = out if out is not None else report_path(ledger, number)
    write_run_of_study(ledger, number, target)
    print_line(f"written: {target}")


@sweep.command
def serve(ledger: LedgerPath, /, *, port: int = 0) -> None:
    """Show the summary at an address of this machine, with the report of any run made when it is
    asked for. Ctrl-C ends it.

    Args:
        port: Port; by default any free one.
    """
    from ramify.studies.serve import server

    with server(ledger, port) as made:
        print_line(f"http://127.0.0.1:{made.server_port}/  (Ctrl-C ends it)")
        sys.stdout.flush()
        made.serve_forever()


def _go(study: Study, computing: Computing, again: tuple[str, ...], json: bool) -> int:
    if study.ledger.is_file():
        _tell_versions(study)
    try:
        shown = sys.stderr.isatty() and not json
        count = study.run(**asdict(computing), progress=shown, again=again)
    except KeyboardInterrupt:
        made = study.status()
        print_error(f"interrupted; {made.done} of {made.planned} runs are in {study.ledger}")
        return 130
    if json:
        print_json(count._asdict() | {"study": study.name, "ledger": str(study.ledger)})
    else:
        _tell(study, count)
    return int(count.done != count.planned)


def _tell_versions(study: Study) -> None:
    try:
        others = study.other_versions()
    except rf.SimulationError:
        return  # no study in it yet, or nothing that can be read: the run itself says what is wrong
    if others:
        made = ", ".join(f"{name} {before} (now {now})" for name, (before, now) in others.items())
        text = "results may differ in the last bits, so its runs are computed again"
        print_error(f"{study.ledger} was made with {made}; {text}")


def _tell(study: Study, count: Count) -> None:
    done = f"{count.done} of {count.planned} runs done"
    print_line(f"{study.name}: {done}, {count.failed} failed, {count.killed} killed")
    took = f"{count.seconds:.1f} s of computing so far"
    print_line(f"{count.waiting} to do; {took}; ledger {study.ledger}")
    errors: list[Any] = study.errors(10)
    if errors:
        print_table("Set aside", ("run", "status", "error"), errors)
