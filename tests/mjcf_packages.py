"""The MJCF files of packages that we need for their files alone, installed once into a cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("dm_control==1.0.*", "gymnasium==1.*", "gymnasium-robotics==1.4.*")


def packages() -> Path:
    """The folder they are installed in, without dependencies; RuntimeError without network."""
    home = os.environ.get("RAMIFY_TEST_CACHE") or Path.home() / ".cache" / "ramify-tests"
    folder = Path(home) / "mjcf-packages"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        options = ["install", "--quiet", "--no-deps", "--target", str(folder), *PACKAGES]
        tries = [[sys.executable, "-m", "pip"], ["uv", "pip"]]
        for command in tries:
            try:
                subprocess.run([*command, *options], check=True, capture_output=True, timeout=600)
                break
            except (OSError, subprocess.SubprocessError):
                continue
        else:
            raise RuntimeError(f"cannot install {', '.join(PACKAGES)}: is there a network?")
        (folder / "complete").touch()
    return folder
