"""Files that are written: their directory must be there, and what the system refuses is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ramify.core.errors import RamifyError


def must_have_folder(path: Path) -> None:
    """Raises RamifyError where the directory of a file does not exist; called before the work, so
    that none is lost.
    """
    if not path.parent.is_dir():
        raise RamifyError(f"{path}: there is no directory {str(path.parent)!r}; make it first")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A file is being written: RamifyError where the system refuses."""
    try:
        yield
    except OSError as error:
        raise RamifyError(f"{path} cannot be written: {error.strerror or error}") from error
