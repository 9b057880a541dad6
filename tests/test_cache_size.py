"""The cache of compiled code has a size limit; what was used last stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

import ramify as rf
from ramify.cli import app
from ramify.runtime import cache


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of 0.01 MB."""
    monkeypatch.setenv("RAMIFY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("RAMIFY_CACHE_SIZE", "0.01")
    monkeypatch.setattr(cache, "_stores", count(1))
    return tmp_path / "cache"


def filled(place: Path, entries: int) -> None:
    """Entries of about 1 kB, the first the oldest."""
    for i in range(entries):
        cache.store_object(f"key{i}", bytes(1000))
        then = time.time() - 10_000 + i
        os.utime(place / f"key{i}.o", (then, then))


def test_the_least_recently_used_entries_go_first(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unlimited cache kept 2237 files of 1200 models."""
    filled(place, 20)
    assert cache.load_object("key3") is not None  # used now, so it outlives the others
    monkeypatch.setattr(cache, "_stores", count())
    cache.store_object("last", bytes(1000))
    left = {file.stem for file in place.glob("*.o")}
    assert {"key3", "last", "key19"} <= left
    assert not left & {"key0", "key1", "key2", "key4"}
    assert cache.state().size <= 10_000
    assert cache.state().entries == len(left)


def test_what_a_killed_process_left_is_removed(place: Path) -> None:
    filled(place, 2)
    (place / ".new-old").write_bytes(bytes(10))
    os.utime(place / ".new-old", (1.0, 1.0))
    (place / ".new-young").write_bytes(bytes(10))  # somebody may be writing it
    (place / "notes.txt").write_text("not ours")
    assert cache.shrink(0).entries == 3
    assert {file.name for file in place.iterdir()} == {".new-young", "notes.txt"}


def test_processes_that_store_and_remove_at_once_do_not_disturb_each_other(place: Path) -> None:
    code = (
        "from ramify.runtime import cache\n"
        "for i in range(400):\n"
        "    key = f'key{i % 60}'\n"
        "    if cache.load_object(key) not in (None, bytes(1000)): raise SystemExit(1)\n"
        "    cache.store_object(key, bytes(1000))\n"
        "    if i % 7 == 0: cache.shrink(5000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert all(cache.load_object(file.stem) == bytes(1000) for file in place.glob("*.o"))


@pytest.mark.parametrize("wrong", ["-1", "nan", "inf", "much"])
def test_a_wrong_limit_is_named(wrong: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMIFY_CACHE_SIZE", wrong)
    with pytest.raises(rf.RamifyError, match="RAMIFY_CACHE_SIZE"):
        cache.state()


def test_the_command_shows_and_clears(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(place, 3)
    app(["cache", "--json"], exit_on_error=False, result_action="return_value")
    said = json.loads(capsys.readouterr().out)
    assert (said["entries"], said["limit_bytes"]) == (3, 10_000)
    assert said["bytes"] == sum(file.stat().st_size for file in place.glob("*.o"))
    app(["cache", "--clear"], exit_on_error=False, result_action="return_value")
    assert "removed 3 entries" in capsys.readouterr().out
    assert not list(place.glob("*.o"))


def test_no_more_threads_than_a_process_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 threads were tried, and the process died."""
    before = rf.threads()
    for many in (100_000, 10**30):
        with pytest.raises(rf.RamifyError, match="1024 threads"):
            rf.threads(many)
    assert rf.threads() == before
    monkeypatch.setenv("RAMIFY_THREADS", "5000")
    monkeypatch.setattr("ramify.runtime.threads._chosen", None)
    with pytest.raises(rf.RamifyError, match="RAMIFY_THREADS"):
        rf.threads()
