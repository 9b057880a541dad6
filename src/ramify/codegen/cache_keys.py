"""The keys under which compiled objects are kept: a digest of everything that determines them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ramify.codegen.target import CpuTarget, llvm


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
    return digest(fingerprint, name, sources(), version, target.cpu, target.features, numbers)


@cache
def sources() -> str:
    """A digest of all sources of the package: no new version ever meets an old object."""
    return tree_digest(Path(__file__).parent.parent)


def tree_digest(package: Path) -> str:
    """A digest of every Python file below a folder: its place and its contents."""
    parts: list[str | bytes] = []
    for name in sorted(_python_files(os.fspath(package), "")):
        with open(os.path.join(package, name), "rb") as file:
            parts += [name, file.read()]
    return digest(*parts)


def _python_files(folder: str, prefix: str) -> Iterator[str]:
    """Paths with forward slashes; ``os.scandir`` takes half the time of ``Path.rglob``."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _python_files(entry.path, f"{prefix}{entry.name}/")
            elif entry.name.endswith(".py"):
                yield prefix + entry.name
