"""What all tests share: a cache of kernels of their own and Hypothesis' settings."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ramify.runtime import kernel

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile(
    "ramify",
    deadline=None,
    derandomize=True,
    max_examples=40,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ramify")


def needs_unix(path: Path) -> bool:
    """Whether a test file uses Pinocchio, which has no wheel for Windows, or calls of Unix."""
    text = path.read_text(encoding="utf-8")
    helpers = re.findall(r"^from (\w+) import", text, re.MULTILINE)
    wanted = r"\bpinocchio\b|\bos\.(fork|mkfifo|geteuid|killpg)\b|\bSIGKILL\b|\bresource\b"
    return bool(re.search(wanted, text)) or any(
        needs_unix(file) for name in helpers if (file := path.with_name(f"{name}.py")).is_file()
    )


collect_ignore = (
    [path.name for path in sorted(Path(__file__).parent.glob("test_*.py")) if needs_unix(path)]
    if sys.platform == "win32"
    else []
)


def pytest_report_header() -> list[str]:
    left_out = [f"not collected on Windows (Pinocchio, Unix): {' '.join(collect_ignore)}"]
    return left_out if collect_ignore else []


CONTACTS_LEFT_OUT = (
    "ignore:.*left out, which changes the motion. (left_out. )?contacts. between [0-9]+ geoms [(][^;]*$"
    ":ramify.LeftOutWarning"
)
"""Robots of MJCF files come without their contacts. That alone is no error in tests; what else is
left out is, and so is whatever comes with the contacts.
"""


def pytest_configure(config: pytest.Config) -> None:
    """One kernel cache for the session. The workers of xdist inherit it through the environment, so
    they share their work. Python's own cache is used too: without it each program that a test starts
    compiles the whole package, which takes longer than what most of them do. Interrupts reach the
    programs that tests start, also where a shell lets what runs in the background ignore them.
    """
    config.addinivalue_line("filterwarnings", CONTACTS_LEFT_OUT)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        os.environ["RAMIFY_CACHE_DIR"] = tempfile.mkdtemp(prefix="ramify-tests-")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


SLOW = ("study_cluster", "study_crashes", "writing", "docs", "examples", "user_code", "walking")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests first, so that the workers end at the same time."""
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in SLOW)


def pytest_collection_finish() -> None:
    """The modules and tests stay to the end, so the garbage collector need not visit them."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["RAMIFY_CACHE_DIR"], ignore_errors=True)


IMPROVE_LATER = kernel._improve_later
kernel._improve_later = lambda x: IMPROVE_LATER(x) if x.tier == "numpy" else None
"""Tests ask for straight-line code by name or by the fixture below: compiled behind their backs, it
would take a tenth of their time, and what they meet would depend on the machine. Kernels without a
rolled tier, those of loops, are far slower without it.
"""


@pytest.fixture
def background_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels in demand get straight-line code, as they do outside of the tests."""
    monkeypatch.setattr(kernel, "_improve_later", IMPROVE_LATER)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT
