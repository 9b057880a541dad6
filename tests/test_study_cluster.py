"""The same study on clusters: same numbers; a worker killed on the way does not matter."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ramify as rf
from ramify.studies.engines import KILLED, engine
from ramify.studies.ledger import Ledger
from ramify.studies.work import Task

RUNS = 120
TEXT = f"""name: swings
scenario: {{name: swing, robot: two_link, t_end: 0.5, rtol: 1.0e-9, atol: 1.0e-11}}
vary:
  robot.links.link1.mass: {{uniform: [0.5, 2]}}
  initial.q_deg.joint1: {{uniform: [-40, 40]}}
points: {{runs: {RUNS}, seed: 2}}
"""


def study(folder: Path, name: str) -> rf.Study:
    (folder / f"{name}.yaml").write_text(TEXT, encoding="utf-8")
    return rf.study(folder / f"{name}.yaml")


def kept(s: rf.Study) -> list[bytes]:
    with Ledger(s.ledger) as ledger:
        return [row.key + row.numbers.tobytes() for row in ledger.rows()]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> rf.Study:
    s = study(tmp_path_factory.mktemp("calm"), "s")
    s.run(engine="serial")
    return s


@contextmanager
def cluster(
    folder: Path, workers: int, *options: str
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and worker processes: its address, and the processes of the workers."""
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    quiet["env"] = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    file = folder / "scheduler.json"
    started: list[subprocess.Popen[bytes]] = []
    try:
        words = [
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        ]
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_scheduler", *words], **quiet
            )
        )
        address = _address(file)
        for _ in range(workers):
            words = [
                address,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--local-directory",
                str(folder),
                *options,
            ]
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "distributed.cli.dask_worker", *words], **quiet
                )
            )
        _wait_for_workers(address, workers)
        yield address, started[1:]
    finally:
        for process in reversed(started):
            process.terminate()  # a nanny takes its worker along
        for process in reversed(started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_dask(calm: rf.Study, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two worker processes and a scheduler of their own; one worker is killed once the first runs
    are in the ledger.
    """
    caplog.set_level(logging.CRITICAL)
    with cluster(tmp_path, 2, "--no-nanny") as (address, workers):
        s = study(tmp_path, "s")
        killer = threading.Thread(target=_kill_when_started, args=(s, workers[1]))
        killer.start()
        count = s.run(engine="dask", scheduler=address)
        killer.join()
        assert count.done == RUNS
        assert workers[1].wait(10) == -signal.SIGKILL
        assert kept(s) == kept(calm)


def test_dask_records_a_run_that_kills_its_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that kills its worker, a task that cannot be done, and a cluster whose workers are
    gone: all of them end.
    """
    caplog.set_level(logging.CRITICAL)

    def deadly(result: rf.Result) -> float:
        if result.q[0, 0] > 0.6:
            os.kill(os.getpid(), signal.SIGKILL)
        return float(result.q[0, 0])

    parts: dict[str, Any] = {
        "scenario": {"robot": "two_link", "t_end": 0.02},
        "vary": {"initial.q.joint1": [0.1, 0.7, 0.3, 0.4]},
    }
    s = rf.study(**parts, metrics={"deadly": deadly}, ledger=tmp_path / "s.db")
    with cluster(tmp_path, 1) as (address, workers):
        count = s.run(engine="dask", scheduler=address)
        assert (count.done, count.killed, count.waiting) == (3, 1, 0)
        assert s.errors() == [(1, "killed", KILLED)]
        assert s.table()["deadly"][[0, 2, 3]].tolist() == [0.1, 0.3, 0.4]

        by = engine("dask", scheduler=address)
        with pytest.raises(
            rf.SimulationError, match="a worker could not compute its task: AttributeError"
        ):
            list(by.run(s.recipe, iter([None])))  # type: ignore[list-item]
        monkeypatch.setattr("ramify.studies.engines.BEREFT", 0.5)
        workers[0].terminate()
        workers[0].wait(20)
        with pytest.raises(
            rf.SimulationError, match=r"has had no workers for 0.5 s.* then resume the study"
        ):
            list(by.run(s.recipe, iter([Task("u", (0,), s.points[:1])])))
        by.close()


def _address(file: Path) -> str:
    import json

    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return str(json.loads(file.read_text())["address"])
        except (OSError, ValueError, KeyError):
            time.sleep(0.05)
    raise AssertionError("the scheduler did not start")


def _wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, timeout="30s", set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def _kill_when_started(s: rf.Study, worker: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if s.status().done:
                break
        except rf.SimulationError:
            pass
        time.sleep(0.01)
    os.kill(worker.pid, signal.SIGKILL)


def test_no_scheduler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramify.studies.engines.PATIENCE", 0.3)
    with pytest.raises(rf.SimulationError, match="no Dask scheduler answers at"):
        study(tmp_path, "s").run(engine="dask", scheduler="tcp://127.0.0.1:9")


def test_ray(calm: rf.Study, tmp_path: Path) -> None:
    s = study(tmp_path, "s")
    assert s.run(2, engine="ray").done == RUNS
    assert kept(s) == kept(calm)
