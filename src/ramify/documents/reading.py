"""Reading untrusted files: regular ones only, up to a size, every failure a
ModelError.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from importlib import resources

from ramify.core.cached import cached_property
from ramify.core.errors import ModelError


@dataclass(frozen=True)
class Shipped:
    """The YAML files in a ``folder`` of the package, by name."""

    folder: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        files = (entry.name for entry in (resources.files("ramify") / self.folder).iterdir())
        return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))

    def text(self, name: str) -> str:
        path = resources.files("ramify") / self.folder / f"{name}.yaml"
        return path.read_text(encoding="utf-8")


def read_bytes(
    path: str | os.PathLike[str],
    most: int,
    kind: str = "a robot file of this kind",
    advice: str = "",
) -> bytes:
    """The bytes of a file of at most ``most`` bytes. Raises ModelError where it is missing, no
    regular file, or larger; ``kind`` and ``advice`` are words of that message.
    """
    try:
        info = os.stat(path)
        if stat.S_ISDIR(info.st_mode):
            raise ModelError(f"{path} is a directory; give the path of a robot file in it")
        if not stat.S_ISREG(info.st_mode):
            raise ModelError(f"{path} is not a regular file")
        if info.st_size > most:
            size = f"{info.st_size / 1e6:.1f} MB; {kind} has at most {most / 1e6:.1f} MB"
            raise ModelError(f"{path}: {size}{advice}")
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: cannot be read: {why}") from None
    if len(data) > most:
        raise ModelError(f"{path}: grew beyond {most / 1e6:.1f} MB while it was read")
    return data
