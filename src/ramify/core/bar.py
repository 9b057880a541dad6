"""A progress bar, on a terminal (by rich) or in a notebook (as HTML that is replaced)."""

from __future__ import annotations

import sys
from html import escape
from typing import Any


def in_notebook() -> bool:
    """Whether this is a kernel of Jupyter."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Bar:
    """A bar with a title and a text; ``close`` takes it away if it is ``transient``."""

    def __init__(self, title: str, total: float, transient: bool = False) -> None:
        self._title, self._total, self._transient = title, total, transient
        self._handle: Any = None
        self._rich: Any = None
        if in_notebook():
            from IPython.display import display

            self._handle = display(self._html(0.0, ""), display_id=True)
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        title_column, state = TextColumn("{task.description}"), TextColumn("{task.fields[state]}")
        columns = title_column, BarColumn(), state, TimeRemainingColumn()
        self._rich = Progress(*columns, console=Console(stderr=True), transient=transient)
        self._task = self._rich.add_task(title, total=total, state="")
        self._rich.start()

    def _html(self, done: float, text: str) -> Any:
        from IPython.display import HTML

        share = min(1.0, done / self._total) if self._total > 0.0 else 1.0
        bar = f'<progress value="{share:.3f}"></progress>'
        return HTML(f"<div>{escape(self._title)} {bar} {escape(text)}</div>")

    def update(self, done: float, text: str) -> None:
        """Show how much of the total is done."""
        if self._rich is not None:
            self._rich.update(self._task, completed=done, state=text)
        else:
            self._handle.update(self._html(done, text))

    def close(self) -> None:
        """End it."""
        if self._rich is not None:
            self._rich.stop()
        elif self._transient:
            from IPython.display import HTML

            self._handle.update(HTML(""))
