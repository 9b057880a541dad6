"""The player of a run for notebooks: the report's, in a frame."""

from __future__ import annotations

from html import escape
from typing import Final

from ramify.sim.run_record import Run
from ramify.view.report import report_page

MOST_CHARACTERS: Final = 4_000_000
"""Of a player: a notebook keeps it in its file."""


def player(run: Run, plots: bool = True) -> str:
    """The animation and the plots of a run as an HTML element, whose scripts see nothing of the
    notebook.
    """
    page = report_page(run, inline=True, plots=plots)
    if len(page) > MOST_CHARACTERS:
        return "<p>This run is too large to be played here; write a page with .report(path).</p>"
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" loading="lazy" '
        f'title="{escape(run.model.name)}" style="width:100%;height:27rem;border:0"></iframe>'
    )
