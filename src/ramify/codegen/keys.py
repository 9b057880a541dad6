"""The keys under which compiled objects are kept: a digest of everything that determines them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from ramify.codegen.target import Target, llvm


def digest(*parts: str | bytes) -> str:
    """A name for some parts, each counted with its length so that none runs into the next."""
    h = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        h.update(len(raw).to_bytes(8, "little"))
        h.update(raw)
    return h.hexdigest()


def object_key(name: str, target: Target, fingerprint: str, optimise: int) -> str:
    """The key of the function ``name`` as compiled for a target; ``fingerprint`` says what it
    computes.
    """
    version = ".".join(map(str, llvm().llvm_version_info))
    numbers = str((target.width, target.fma, optimise))
    return digest(fingerprint, name, sources(), version, target.cpu, target.features, numbers)


@cache
def sources() -> str:
    """A digest of all sources of the package: no new version ever meets an old object."""
    package = Path(__file__).parent.parent
    files = sorted(package.rglob("*.py"))
    return digest(
        *(
            part
            for path in files
            for part in (path.relative_to(package).as_posix(), path.read_bytes())
        )
    )
