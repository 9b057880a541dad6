"""The command line. Each command calls one public function of the library and prints what it
returns.

Heavy modules are imported by the commands that need them, so that ``ramify --help`` answers at
once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import ramify as rf
from ramify.cli import (  # noqa: F401  each registers its commands
    cache_command,
    count_command,
    dynamics_commands,
    equations_command,
    file_commands,
    identify_commands,
    look_commands,
    loops_command,
    measure_commands,
    optimise_command,
    simulation_commands,
    sweep_commands,
)
from ramify.cli.common import app
from ramify.cli.examples import show_examples
from ramify.cli.output import print_error
from ramify.core.errors import shortened

__all__ = ["app", "main"]

show_examples(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """The ``ramify`` command: exits with 0, or with another code and a message on stderr."""
    try:
        sys.exit(_run(arguments))
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (rf.RamifyError, OSError) as error:
        print_error(shortened(str(error)))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _run(arguments: Sequence[str] | None) -> Any:
    try:
        return app(arguments)
    finally:
        sys.stdout.flush()
