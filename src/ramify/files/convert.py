"""One robot file into another: whatever ``load`` reads, as a robot file of ramify or as URDF."""

from __future__ import annotations

import os
from pathlib import Path

from ramify.core.errors import ModelError
from ramify.files.load import YAML_SUFFIXES, load
from ramify.files.robot_writer import save
from ramify.files.urdf_writer import save as save_urdf
from ramify.model.robot import Robot


def convert(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, base: str | None = None
) -> Robot:
    """Read a robot (a file or a built-in name) and write it as ``target``, a ``.yaml`` or ``.urdf``
    file. Returns the model.

    Raises ModelError where the source cannot be read, or the target's format cannot say what the
    model is.
    """
    suffix = Path(target).suffix.lower()
    if suffix not in (*YAML_SUFFIXES, ".urdf"):
        raise ModelError(
            f"{target}: robots are written as .yaml or .urdf, not as "
            f"{suffix or 'a file without a suffix'}"
        )
    model = load(source) if base is None else load(source, base=base)
    if suffix == ".urdf":
        save_urdf(model, target)
    else:
        save(model, target)
    return model
