"""The keys under which compiled objects are kept: a digest of everything that determines them."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from ramify.emit.cpu_target import CpuTarget
from ramify.runtime.target import llvm


def digest(*parts: str | bytes) -> str:
    """A name for some parts, each counted with its length so that none runs into the next."""
    h = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        h.update(len(raw).to_bytes(8, "little"))
        h.update(raw)
    return h.hexdigest()


def object_key(name: str, target: CpuTarget, fingerprint: str, optimise: int) -> str:
    """The key of the function ``name`` as compiled for a target; ``fingerprint`` says what it
    computes.
    """
    version = ".".join(map(str, llvm().llvm_version_info))
    numbers = str((target.width, target.bits, target.fma, optimise))
    return digest(
        fingerprint, name, _running.digest(), version, target.cpu, target.features, numbers
    )


class RunningCode:
    """The sources of a package as they were when this process imported them.

    Keys must name the code that runs, not the files that an upgrade has put in its place. All files
    are read once, when this is made. A module that is imported later is as the digest says only
    while no file has changed since; from then on the session runs a mixture that no digest
    describes, and its keys hold for itself alone.
    """

    def __init__(self, package: Path) -> None:
        self._package = package
        self._files, self._digest = file_states(package), tree_digest(package)
        self._modules = 0
        if not self._files:  # no sources are installed, so nothing tells versions apart
            self._digest = _nobody_else()

    def digest(self) -> str:
        """What tells this code from any other."""
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            if self._files and file_states(self._package) != self._files:
                self._files, self._digest = (), _nobody_else()
        return self._digest


@cache
def _nobody_else() -> str:
    """A digest that no other process has."""
    return os.urandom(32).hex()


def text_key(text: object) -> str:
    """What tells a function from another of the same name: nothing for one of this package, whose
    sources are part of every key. One that a user has registered can be edited without a trace in
    its name, so its kernels are of this process alone.
    """
    function = getattr(text, "func", text)  # of a functools.partial
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    return "" if package == __name__.partition(".")[0] else _nobody_else()


def file_states(package: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Name, time of the last change, size and number of every Python file below a folder."""
    states = []
    for name in sorted(_python_files(os.fspath(package), "")):
        with suppress(OSError):  # it may be exchanged at this moment
            status = os.stat(os.path.join(package, name))
            states.append((name, status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(states)


def tree_digest(package: Path) -> str:
    """A digest of every Python file below a folder: its place and its contents."""
    parts: list[str | bytes] = []
    for name in sorted(_python_files(os.fspath(package), "")):
        with suppress(OSError), open(os.path.join(package, name), "rb") as file:
            parts += [name, file.read()]
    return digest(*parts)


def _python_files(folder: str, prefix: str) -> Iterator[str]:
    """Paths with forward slashes; ``os.scandir`` takes half the time of ``Path.rglob``. None where
    there is no folder: in an archive, or while files are exchanged.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _python_files(entry.path, f"{prefix}{entry.name}/")
            elif entry.name.endswith(".py"):
                yield prefix + entry.name


_running: Final = RunningCode(Path(__file__).parent.parent)
