"""What all tests share: a cache of kernels of their own and Hypothesis' settings."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile(
    "ramify",
    deadline=None,
    derandomize=True,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ramify")


def pytest_configure(config: pytest.Config) -> None:
    """One kernel cache for the session. The workers of xdist inherit it through the environment, so
    they share their work.
    """
    if not hasattr(config, "workerinput"):
        os.environ["RAMIFY_CACHE_DIR"] = tempfile.mkdtemp(prefix="ramify-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["RAMIFY_CACHE_DIR"], ignore_errors=True)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT
