"""Warnings that point at the user's line, not into this package."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Final

_HERE: Final = str(Path(__file__).parents[1])


class LeftOutWarning(UserWarning):
    """A file says something that changes the motion, and the model does not have it: the warning of
    ``rf.load`` and the importers. ``m.check()`` lists the same as findings. Also: a file that is
    written cannot say something of the model that changes the motion.
    """


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the first line of the call that is outside of the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
