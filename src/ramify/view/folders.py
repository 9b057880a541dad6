"""Folders that files are written to must exist."""

from __future__ import annotations

from pathlib import Path

from ramify.core.errors import RamifyError


def must_have_folder(path: Path) -> None:
    """Raises RamifyError where the directory of a file does not exist; called before the work, so
    that none is lost.
    """
    if not path.parent.is_dir():
        raise RamifyError(f"{path}: there is no directory {str(path.parent)!r}; make it first")
