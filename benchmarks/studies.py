"""Studies under load: throughput and memory on two workers, and fifty kills.

    python benchmarks/studies.py throughput [RUNS]     on one worker, then on two: ratio, memory
    python benchmarks/studies.py kills [RUNS] [KILLS]  SIGKILL of workers and parent, resumed

The study is ``kuka_free_fall`` with random payloads at the flange.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ramify as rf
from ramify.studies.ledger import Ledger

TEXT = """name: payloads
scenario: kuka_free_fall
vary:
  payload.link6.mass: {{uniform: [0.1, 5]}}
  payload.link6.com.z: {{uniform: [0.05, 0.2]}}
points: {{runs: {runs}, seed: 1}}
keep: {{metrics: [max_speed, energy_error, position.link6]}}
"""


def study_in(folder: Path, runs: int, name: str) -> rf.Study:
    """The study, its file and ledger in a folder."""
    file = folder / f"{name}.yaml"
    file.write_text(TEXT.format(runs=runs), encoding="utf-8")
    return rf.study(file)


def children(pid: int) -> list[int]:
    """Processes below a process, as far as the system knows, without helpers that only watch."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (
                (entry / "stat").read_text().rpartition(")")[2].split()
                if entry.name.isdigit()
                else []
            )
            if (
                fields
                and int(fields[1]) == pid
                and b"resource_tracker" not in (entry / "cmdline").read_bytes()
            ):
                found += [int(entry.name), *children(int(entry.name))]
        except OSError:
            continue
    return found


def memory(pid: int) -> float:
    """Resident memory of a process, MB."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
    except (OSError, IndexError):
        return 0.0


def same(a: rf.Study, b: rf.Study) -> bool:
    """Whether two studies have the same runs, bit for bit."""
    with Ledger(a.ledger) as one, Ledger(b.ledger) as other:
        pairs = list(zip(one.rows(), other.rows(), strict=True))
    return all(
        x.key == y.key
        and x.status == y.status == "done"
        and x.numbers.tobytes() == y.numbers.tobytes()
        for x, y in pairs
    )


def once(study: rf.Study) -> bool:
    """Whether every run of the plan is in the ledger exactly once, and nothing else is."""
    import sqlite3

    db = sqlite3.connect(study.ledger)
    runs, distinct, planned = (db.execute(f"SELECT {what}").fetchone()[0] for what in (
        "count(*) FROM runs", "count(DISTINCT key) FROM runs", "count(*) FROM plan"))  # fmt: skip
    db.close()
    return bool(runs == distinct == planned == len(study))


def done(study: rf.Study) -> int:
    """Runs in the ledger so far."""
    if not study.ledger.exists():
        return 0
    try:
        return study.status().done
    except rf.SimulationError:  # it was killed before it had written its first page
        return 0


def resumed(study: rf.Study, jobs: int) -> subprocess.Popen[bytes]:
    """A process of its own that goes on with a study."""
    words = ["sweep", str(study.ledger.with_suffix(".yaml")), "--jobs", str(jobs), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "ramify", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def throughput(runs: int) -> None:
    """One worker process, then two; processor time tells how busy the two were on a machine that
    others use as well.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        serial = study_in(folder, runs, "serial")
        started, cpu = time.perf_counter(), time.process_time()
        serial.run(engine="serial")
        wall_1, cpu_1 = time.perf_counter() - started, time.process_time() - cpu
        print(
            f"one worker:  {runs / wall_1:7.1f} runs/s, {wall_1:.1f} s, processor {cpu_1:.1f} s",
            flush=True,
        )
        two = study_in(folder, runs, "two")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        process = resumed(two, 2)
        peak: dict[str, float] = {}
        while process.poll() is None:
            peak["parent"] = max(peak.get("parent", 0.0), memory(process.pid))
            workers = [memory(pid) for pid in children(process.pid)]
            peak["largest worker"] = max(peak.get("largest worker", 0.0), max(workers, default=0.0))
            time.sleep(0.2)
        wall_2 = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_2 = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"two workers: {runs / wall_2:7.1f} runs/s, {wall_2:.1f} s, processor {cpu_2:.1f} s "
            "(start of the processes included)"
        )
        busy = two.status().seconds / wall_2 / 2
        print(
            f"of two perfect workers: {wall_1 / wall_2 / 2:.1%} by the clock; workers at work "
            f"{busy:.1%} of it, start included"
        )
        print(
            f"processor time of one worker over that of two and their parent: {cpu_1 / cpu_2:.1%}"
        )
        print("peak memory: " + ", ".join(f"{what} {mb:.0f} MB" for what, mb in peak.items()))
        print(
            f"ledger: {two.ledger.stat().st_size / 1e6:.1f} MB; bit for bit the same: "
            f"{same(serial, two)}"
        )
        print(f"load average: {os.getloadavg()}")


def kills(runs: int, wanted: int, seed: int = 0) -> None:
    """Kill workers and parents at random moments; the ledger is checked after each, and compared
    with an undisturbed study.
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        calm, wild = study_in(folder, runs, "calm"), study_in(folder, runs, "wild")
        calm.run(2)
        count = {"worker": 0, "parent": 0}
        checks = 0
        process = resumed(wild, 2)
        while sum(count.values()) < wanted:
            early, before = (
                chance.random() < 0.15,
                done(wild),
            )  # now and then before it has really started
            while not early and process.poll() is None and done(wild) == before:
                time.sleep(0.05)
            time.sleep(chance.uniform(0.0, 1.0))
            if process.poll() is not None:
                if wild.status().waiting == 0:
                    sys.exit(f"the study was finished after {count}: give it more runs")
                process = resumed(wild, 2)
                continue
            below = children(process.pid)
            what = "parent" if not below or chance.random() < 0.5 else "worker"
            try:
                os.kill(process.pid if what == "parent" else chance.choice(below), signal.SIGKILL)
            except ProcessLookupError:
                continue
            count[what] += 1
            if what == "parent":
                process.wait()
            if done(wild):
                with Ledger(wild.ledger) as ledger:
                    assert ledger.check() == "ok", ledger.check()
                    checks += 1
                    print(f"kill {sum(count.values())} ({what}): {ledger.count()}", flush=True)
            if what == "parent":
                process = resumed(wild, 2)
        process.wait()
        last = wild.run(2)
        print(f"{count}, {checks} integrity checks ok; {last}")
        print(
            f"every run exactly once: {once(wild)}; equal to the undisturbed study: "
            f"{same(calm, wild)}"
        )


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[2:]]
    if sys.argv[1:2] == ["throughput"]:
        throughput(*(numbers or [10_000]))
    elif sys.argv[1:2] == ["kills"]:
        kills(*(numbers or [2_000, 50]))
    else:
        sys.exit(__doc__)
