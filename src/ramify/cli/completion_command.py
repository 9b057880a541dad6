"""Completion of commands, options and names by the shell: --install-completion."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cyclopts.completion.detect import ShellDetectionError

import ramify as rf
from ramify.cli.common import app
from ramify.cli.output import print_line


@app.command(name="--install-completion")
def install_completion(
    *,
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None,
    out: Path | None = None,
) -> None:
    """Let the shell complete commands, options, and names of robots and scenarios. Where the shell
    needs a line in its start-up file, it is added.

    Args:
        shell: By default the shell that runs this command.
        out: Only write the script to this file; by default where the shell finds it.
    """
    try:
        written = app.install_completion(shell=shell, output=out, add_to_startup=out is None)
    except ShellDetectionError:
        raise rf.RamifyError(
            "the shell was not recognised; name it with --shell bash, zsh, fish or powershell"
        ) from None
    print_line(f"written: {written}")
    if out is None:
        print_line("open a new shell to use it")
        if written.name.startswith("_"):
            print_line("zsh completes if ~/.zshrc has the line: autoload -Uz compinit && compinit")
