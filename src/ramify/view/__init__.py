"""Seeing robots and runs: plots, reports, films, and the live viewer. ``ramify.view(robot)`` opens
the viewer.

The package is itself what one calls, since its name is the public one; see
``ramify.view.live.view`` for the arguments.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ramify.view.live import Viewer


class _Callable(ModuleType):
    def __call__(self, robot: Any, **options: Any) -> Viewer:
        """Show a robot or a run in the browser; see ``ramify.view.live.view``."""
        from ramify.view.live import view

        return view(robot, **options)


sys.modules[__name__].__class__ = _Callable
