"""The same study on clusters: same numbers; a worker killed on the way does not matter."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ramify as rf
from ramify.studies.ledger import Ledger

pytest.importorskip("joblib")

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


def test_dask(calm: rf.Study, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Two worker processes and a scheduler of their own; one worker is killed once the first runs are in the ledger."""
    pytest.importorskip("distributed")
    caplog.set_level(logging.CRITICAL)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    base = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    file = tmp_path / "scheduler.json"
    started: list[subprocess.Popen[bytes]] = []
    try:
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        started.append(subprocess.Popen([*base, *words], cwd=tmp_path, **quiet))  # type: ignore[call-overload]
        address = _address(file)
        for _ in range(2):
            words = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path)]
            started.append(subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", *words], cwd=tmp_path, **quiet))  # type: ignore[call-overload]
        _wait_for_workers(address, 2)
        s = study(tmp_path, "s")
        killer = threading.Thread(target=_kill_when_started, args=(s, started[2]))
        killer.start()
        count = s.run(engine="dask", scheduler=address)
        killer.join()
        assert count.done == RUNS
        assert started[2].wait(10) == -signal.SIGKILL
        assert kept(s) == kept(calm)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


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


def test_no_scheduler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("ramify.studies.engines.PATIENCE", 0.3)
    with pytest.raises(rf.SimulationError, match="no Dask scheduler answers at"):
        study(tmp_path, "s").run(engine="dask", scheduler="tcp://127.0.0.1:9")


def test_ray(calm: rf.Study, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    s = study(tmp_path, "s")
    assert s.run(2, engine="ray").done == RUNS
    assert kept(s) == kept(calm)
