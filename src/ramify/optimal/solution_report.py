"""The page of a solution."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_report(solution: Any, path: Path, title: str) -> Path:
    """Write the page."""
    raise NotImplementedError
