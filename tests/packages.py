"""Robot files of other projects: packages of PyPI, of which only the files are needed.

A package is installed once, without its dependencies, into a folder of the user's cache; the test
environment stays as it is. ``RAMIFY_TEST_PACKAGES`` names another folder. Without a network and a
filled cache the tests that need them fail with one line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest

VERSIONS: Final = {
    "pybullet": "3.2.7",
    "dm_control": "1.0.50",
    "gymnasium": "1.4.0",
    "gymnasium-robotics": "1.4.2",
    "robosuite": "1.5.2",
}
"""Packages and the versions whose files are counted."""

# pybullet has wheels for few versions of Python; its data are the same in all of them.
_ANY_PYTHON: Final = (
    "--only-binary=:all:",
    "--implementation=cp",
    "--python-version=3.11",
    "--platform=manylinux2014_x86_64",
)


def cache_folder() -> Path:
    """Where packages are kept."""
    named = os.environ.get("RAMIFY_TEST_PACKAGES")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else home / "ramify-tests" / "packages"


@cache
def package(name: str) -> Path:
    """The folder with the files of a package; fails the test where it cannot be installed."""
    if name == "example-robot-data":
        files = distribution(name).locate_file("cmeel.prefix/share/example-robot-data/robots")
        return Path(str(files))
    wanted = f"{name}=={VERSIONS[name]}"
    folder = cache_folder() / wanted.replace("==", "-")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    done = subprocess.run(
        [*command, *_ANY_PYTHON, "--target", str(fresh), wanted], capture_output=True, text=True
    )
    if done.returncode:
        shutil.rmtree(fresh)
        why = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        pytest.fail(f"{wanted} cannot be installed into {folder}: {why}", pytrace=False)
    try:
        fresh.rename(folder)  # whole, or another process was first
    except OSError:
        shutil.rmtree(fresh)
    return folder


def files(name: str, *suffixes: str) -> list[Path]:
    """The files of a package with one of these suffixes, sorted."""
    return sorted(path for path in package(name).rglob("*") if path.suffix in suffixes)
