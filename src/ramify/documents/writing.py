"""Writing files whole or not at all.

What is written goes to a hidden file beside the target and takes the target's name once all of it
is on the disk. Where writing fails (a full disk, an error, Ctrl-C) the hidden file is removed and
the old file, if there was one, stays as it was. A process that is killed meanwhile may leave a
hidden ``.part`` file behind.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from ramify.core.errors import RamifyError
from ramify.core.file_path import path_of


@contextmanager
def whole_path(
    path: str | os.PathLike[str], error: type[RamifyError] = RamifyError
) -> Iterator[Path]:
    """The path to write a file (or a folder) to in place of ``path``; it has the same suffix.

    A link is followed; a device or pipe is written to directly. Raises ``error`` naming the path
    where it cannot be written.
    """
    name = str(path_of(path, error))
    try:
        target = Path(os.path.realpath(name))
        if _is_special(target):
            yield target
            return
        passing = target.with_name(
            f".{target.stem[:100]}.{secrets.token_hex(6)}.part{target.suffix[:20]}"
        )
        try:
            yield passing
            if passing.is_dir():
                if target.is_dir():
                    shutil.rmtree(target)
            else:
                if target.is_dir():
                    raise error(f"{name} is a directory; give the name of a file in it")
                _flush(passing)
            os.replace(passing, target)
            _flush(target.parent)
        finally:
            _remove(passing)
    except RamifyError:
        raise
    except (OSError, ValueError) as failure:
        why = getattr(failure, "strerror", None) or failure
        raise error(f"{name!r} cannot be written: {why}") from None


@contextmanager
def whole_file(
    path: str | os.PathLike[str], error: type[RamifyError] = RamifyError
) -> Iterator[IO[bytes]]:
    """A binary file to write in place of ``path``; see ``whole_path``."""
    with whole_path(path, error) as passing, open(passing, "wb") as file:
        yield file


def write_whole(
    path: str | os.PathLike[str], text: str, error: type[RamifyError] = RamifyError
) -> None:
    """Write a text as UTF-8 with Unix line ends; see ``whole_path``."""
    with whole_file(path, error) as file:
        file.write(text.encode())


def write_together(
    parts: Mapping[Path, Iterable[bytes]], error: type[RamifyError] = RamifyError
) -> None:
    """Write several files, all or none: they take their names once the last of them is written."""
    with ExitStack() as stack:
        for path, data in parts.items():
            file = stack.enter_context(whole_file(path, error))
            file.writelines(data)
            file.flush()


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _flush(path: Path) -> None:
    """Have a file, or a folder's new entry, on the disk, on systems that can."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
