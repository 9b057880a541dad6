"""The version of a robot, scenario or study file: which keys it may have, and what they mean.

A file says it under the key ``version``; one without the key is of version 1. A version is raised
when a file that older releases read would mean something else to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from ramify.core.version import __version__
from ramify.documents.forms import Form, Number, Reading
from ramify.documents.mistakes import Mistakes, Path

KEY: Final = "version"
VERSION: Final = 2
"""The newest version that is read, and the one that is written."""
_WHOLE: Final = Number(least=1, whole=True)


@dataclass(frozen=True)
class FileVersion(Form):
    """The version of a file. All versions up to the newest are read."""

    wanted: ClassVar[str] = f"a whole number from 1 to {VERSION}"

    def read(self, raw: object, path: Path, reading: Reading) -> int:
        return int(_WHOLE.read(raw, path, reading))


Version = Annotated[int, FileVersion()]
"""Type of the field of a file's head."""


def refuse_newer(document: Mapping[str, object], mistakes: Mistakes) -> None:
    """Raise ModelError for a file of a newer version, whatever else it has. Versions that are not
    numbers are left to the form.
    """
    version = document.get(KEY)
    if isinstance(version, int | float) and version > VERSION:
        mistakes.stop(
            (KEY,),
            f"this file has version {version}; ramify {__version__} reads versions up to "
            f"{VERSION}. Update ramify to read it",
        )
