"""Whatever kills a study: workers, the parent, a full disk, a second writer. Nothing committed is
lost, nothing is run twice.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.studies.engines import KILLED, WorkerDiedError, survivors
from ramify.studies.ledger import Ledger
from ramify.studies.work import Outcome, Task

RUNS = 150
TEXT = """name: swings
scenario: {name: swing, robot: two_link, t_end: 0.5, rtol: 1.0e-9, atol: 1.0e-11}
vary:
  robot.links.link1.mass: {uniform: [0.5, 2]}
  initial.q_deg.joint1: {uniform: [-40, 40]}
points: {runs: RUNS, seed: 2}
keep: {metrics: [max_speed]}
"""


def study(folder: Path, runs: int, name: str = "s") -> rf.Study:
    (folder / f"{name}.yaml").write_text(TEXT.replace("RUNS", str(runs)), encoding="utf-8")
    return rf.study(folder / f"{name}.yaml")


def kept(s: rf.Study) -> list[tuple[bytes, str | None, bytes]]:
    with Ledger(s.ledger) as ledger:
        assert ledger.check() == "ok"
        return [(row.key, row.status, row.numbers.tobytes()) for row in ledger.rows()]


def done(s: rf.Study) -> int:
    """Runs that are done; none before there is a ledger."""
    try:
        return s.status().done
    except rf.SimulationError:
        return 0


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> rf.Study:
    s = study(tmp_path_factory.mktemp("calm"), RUNS)
    assert s.run(engine="serial").done == RUNS
    return s


def test_processes_compute_what_one_computes(calm: rf.Study, tmp_path: Path) -> None:
    s = study(tmp_path, RUNS)
    assert s.run(2).done == RUNS
    assert kept(s) == kept(calm)


def test_order_does_not_matter(calm: rf.Study, tmp_path: Path) -> None:
    """The runs one by one, the last one first."""
    s = study(tmp_path, RUNS)
    with Ledger(s.ledger, writer=True) as ledger:
        keys = [s.recipe.key(row) for row in s.points]
        ledger.replan(s._facts(), keys, s.points)
        from ramify.studies.work import work

        for number in reversed(range(RUNS - 20, RUNS)):
            outcomes = work(s.recipe, Task("t", (number,), s.points[number : number + 1]))
            ledger.record((keys[o.number], o) for o in outcomes)
    assert kept(s)[-20:] == kept(calm)[-20:]


def test_a_run_that_kills_its_worker_is_set_aside(tmp_path: Path) -> None:
    def deadly(result: rf.Result) -> float:
        if result.q[0, 0] > 0.6:
            os.kill(os.getpid(), signal.SIGKILL)
        return float(result.q[0, 0])

    parts: dict[str, Any] = {
        "scenario": {"robot": "two_link", "t_end": 0.02},
        "vary": {"initial.q.joint1": [0.1, 0.7, 0.3]},
    }
    s = rf.study(**parts, metrics={"deadly": deadly}, ledger=tmp_path / "s.db")
    count = s.run(2)
    assert (count.done, count.killed, count.waiting) == (2, 1, 0)
    assert s.errors() == [(1, "killed", KILLED)]
    assert s.table()["deadly"][[0, 2]].tolist() == [0.1, 0.3]


def test_kills_of_workers_and_parents(calm: rf.Study, tmp_path: Path) -> None:
    """SIGKILL of a worker, then of the parent; what was committed is there, and the next call goes
    on.
    """
    s = study(tmp_path, RUNS)

    def started() -> subprocess.Popen[bytes]:
        code = "import sys, ramify as rf\nif __name__ == '__main__': rf.study(sys.argv[1]).run(2)"
        (tmp_path / "go.py").write_text(code, encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, str(tmp_path / "go.py"), str(tmp_path / "s.yaml")],
            stderr=subprocess.DEVNULL,
        )

    def wait(more: int) -> None:
        end = time.monotonic() + 60
        while done(s) < more and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)

    process = started()
    wait(1)
    below = workers(process.pid)
    if below:  # on a very fast machine all is done by now
        os.kill(below[0], signal.SIGKILL)
    wait(RUNS // 3)
    below = workers(process.pid)
    process.kill()
    process.wait()
    end = time.monotonic() + 30
    while any(map(alive, below)) and time.monotonic() < end:  # orphans do not stay
        time.sleep(0.05)
    assert not any(map(alive, below))
    before = kept(s)
    process = started()
    assert process.wait(timeout=120) == 0
    assert kept(s) == kept(calm)
    assert all(new == old for new, old in zip(kept(s), before, strict=True) if old[1] == "done")
    with Ledger(s.ledger) as ledger:
        assert ledger._file.db.execute(
            "SELECT count(*), count(DISTINCT key) FROM runs"
        ).fetchone() == (
            RUNS,
            RUNS,
        )


def workers(pid: int) -> list[int]:
    """Processes of a pool below a process."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if (
                parent == pid
                and b"loky" in (entry / "cmdline").read_bytes()
                and b"tracker" not in (entry / "cmdline").read_bytes()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_interrupted_study_says_what_it_has(tmp_path: Path) -> None:
    s = study(tmp_path, 3000)
    words = [sys.executable, "-m", "ramify", "sweep", str(tmp_path / "s.yaml"), "--jobs", "2"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.02)
        if done(s):
            break
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    try:
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130
    assert f"ramify: interrupted; {s.status().done} of 3000 runs are in".encode() in said


class _Fragile:
    """An engine in one process whose "workers" die of chosen runs, and of bad luck at chosen
    moments.
    """

    lanes = 2

    def __init__(self, deadly: set[int], moments: set[int]) -> None:
        self.deadly, self.moments, self.calls, self.made = deadly, moments, 0, list[int]()

    def run(self, recipe: Any, tasks: Any) -> Any:
        ahead: list[Task] = []
        for task in tasks:
            ahead.append(task)
            if len(ahead) < 4:  # tasks are handed out before results come back
                continue
            yield self._one(ahead.pop(0))
        while ahead:
            yield self._one(ahead.pop(0))

    def _one(self, task: Task) -> list[Outcome]:
        self.calls += 1
        if self.calls in self.moments or self.deadly & set(task.numbers):
            raise WorkerDiedError
        self.made.extend(task.numbers)
        return [Outcome(number, "done", "", b"", b"", 0.0, "") for number in task.numbers]

    def close(self) -> None: ...


@pytest.mark.parametrize("seed", range(20))
def test_deaths_at_any_moment_lose_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    deadly = set(rng.choice(60, rng.integers(0, 4), replace=False).tolist())
    by = _Fragile(deadly, set(rng.choice(40, 4).tolist()))
    cuts = np.sort(rng.choice(np.arange(1, 60), 12, replace=False))
    parts = np.split(np.arange(60), cuts)
    tasks = (Task("t", tuple(part.tolist()), np.zeros((len(part), 1))) for part in parts)
    found = [o for outcomes in survivors(by, None, tasks) for o in outcomes]  # type: ignore[arg-type]
    assert sorted(o.number for o in found) == list(range(60))
    killed = {o.number for o in found if o.status == "killed"}
    assert deadly <= killed
    assert (
        len(killed) <= len(deadly) + 4
    )  # bad luck may strike a run that is alone; a resumed study tries it again


# ---- the ledger ----


def test_a_full_disk_is_told_and_loses_nothing(
    calm: rf.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = study(tmp_path, RUNS)
    original = Ledger.replan

    def small(self: Ledger, *given: Any) -> None:
        original(self, *given)
        pages = self._file.db.execute("PRAGMA page_count").fetchone()[0]
        self._file.db.execute(
            f"PRAGMA max_page_count = {pages + 4}"
        )  # SQLite then answers as on a disk without room

    monkeypatch.setattr(Ledger, "replan", small)
    with pytest.raises(
        rf.SimulationError,
        match=r"the disk is full .* every run committed so far is safe: make room, then resume",
    ):
        s.run(engine="serial")
    monkeypatch.undo()
    before = [row for row in kept(s) if row[1] is not None]
    assert before
    assert s.run(engine="serial").done == RUNS
    assert kept(s) == kept(calm)
    assert set(before) <= set(kept(s))


def test_a_ledger_has_one_writer(calm: rf.Study, tmp_path: Path) -> None:
    s = study(tmp_path, 3)
    with (
        Ledger(s.ledger, writer=True),
        pytest.raises(rf.SimulationError, match="another process is writing"),
    ):
        s.run(engine="serial")
    assert s.run(engine="serial").done == 3
    with Ledger(s.ledger, writer=True):
        assert s.status().done == 3  # readers are welcome meanwhile


def test_what_is_no_ledger_is_refused(calm: rf.Study, tmp_path: Path) -> None:
    with pytest.raises(rf.SimulationError, match="there is no such ledger"):
        rf.Study.open(tmp_path / "no.db")
    (tmp_path / "text.db").write_text("not a database " * 100, encoding="utf-8")
    with pytest.raises(rf.SimulationError, match="not the ledger of a study, or is damaged"):
        rf.Study.open(tmp_path / "text.db")
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    for act in (
        lambda: rf.Study.open(tmp_path / "other.db"),
        lambda: Ledger(tmp_path / "other.db", writer=True),
    ):
        with pytest.raises(rf.SimulationError, match="of another program"):
            act()
    shutil.copy(calm.ledger, tmp_path / "cut.db")
    with open(tmp_path / "cut.db", "r+b") as file:
        file.truncate(20_000)
    with pytest.raises(rf.SimulationError, match="damaged"):
        rf.Study.open(tmp_path / "cut.db").table()


def test_a_done_run_is_never_overwritten(calm: rf.Study, tmp_path: Path) -> None:
    shutil.copy(calm.ledger, tmp_path / "s.db")
    before = kept(calm)
    with Ledger(tmp_path / "s.db", writer=True) as ledger:
        ledger.record([(before[0][0], Outcome(0, "killed", "x", b"", b"", 0.0, ""))])
        ledger.record([(before[1][0], Outcome(0, "done", "", b"\0" * 8, b"", 0.0, ""))])
    with Ledger(tmp_path / "s.db") as ledger:
        assert [(row.key, row.status, row.numbers.tobytes()) for row in ledger.rows()] == before


def test_a_ledger_in_a_folder_that_cannot_be_written_is_read(calm: rf.Study) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(calm.ledger, folder / "s.db")
        wanted = calm.table()["max_speed"].tolist()
        folder.chmod(0o555)
        with plain_user():
            s = rf.Study.open(folder / "s.db")
            assert s.status().done == RUNS
            assert s.table()["max_speed"].tolist() == wanted
            with pytest.raises(
                rf.SimulationError, match=rf"the folder {name} or the file itself cannot be written"
            ):
                s.run(engine="serial")
        folder.chmod(0o755)
        (folder / "s.db-wal").write_bytes(b"something")
        folder.chmod(0o555)
        with (
            plain_user(),
            pytest.raises(
                rf.SimulationError, match=r"its last runs are still in s.db-wal .* copy both files"
            ),
        ):
            rf.Study.open(folder / "s.db")
        folder.chmod(0o755)
    with pytest.raises(rf.SimulationError, match=rf"the folder {name} does not exist"):
        Ledger(Path(name) / "s.db", writer=True)


@contextmanager
def plain_user() -> Iterator[None]:
    """Folders that cannot be written can be written by root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_ledger_that_is_refused_is_not_held(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "s.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    held: list[rf.SimulationError] = []
    for _ in range(2):  # the second one is not told of another writer
        with pytest.raises(rf.SimulationError, match="of another program") as caught:
            Ledger(tmp_path / "s.db", writer=True)
        held.append(caught.value)  # with its traceback, and so with the ledger
    lock = sqlite3.connect(tmp_path / "s.db.lock", timeout=0.0)
    lock.execute("BEGIN EXCLUSIVE")
    lock.close()
