"""A study of three runs for every robot at hand, on every local engine:
``python tests/study_matrix.py [PART OF A NAME …]``.

Robots: every URDF file of ``example-robot-data`` with up to 60 rates that ``simulate`` runs, and MJCF
files with joint limits of the packages that ``packages.py`` names. Engines: serial, processes, Dask. The suite
runs a few of them (``test_study_robots.py``); this takes some minutes. It prints a line per robot,
and ends with 1 where a study fails or engines disagree.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from packages import files, package
from test_study_cluster import cluster

import ramify as rf

MOST = 60
"""Rates of the largest robot."""
ARMS = (
    "ur", "panda", "kinova", "xarm", "z1", "so_arm", "allegro", "double_pendulum", "finger",
    "asr_twodof", "baxter",
)  # fmt: skip
"""Beginnings of the folders of robots that stand on a fixed base."""
MJCF = {
    "gymnasium": (
        "half_cheetah.xml", "hopper.xml", "walker2d.xml", "ant.xml", "humanoid.xml", "pusher.xml",
        "reacher.xml", "swimmer.xml",
    ),
    "robosuite": ("panda/robot.xml", "sawyer/robot.xml", "iiwa/robot.xml", "jaco/robot.xml"),
}  # fmt: skip
"""By package, ends of the paths of files whose joints have limits."""


def robots() -> list[tuple[Path, str | None]]:
    """Files and bases."""
    data = package("example-robot-data")
    found: list[tuple[Path, str | None]] = [
        (path, "fixed" if path.relative_to(data).parts[0].startswith(ARMS) else "free")
        for path in files("example-robot-data", ".urdf")
    ]
    for name, ends in MJCF.items():
        found += [
            (path, None) for end in ends for path in files(name, ".xml") if str(path).endswith(end)
        ]
    return found


def study(path: Path, base: str | None, folder: Path, name: str) -> rf.Study:
    """Three payloads of the last link."""
    robot: dict[str, Any] = {"name": str(path)} | ({} if base is None else {"base": base})
    model = rf.load(path, base=base)
    heavy = next(body.name for body in reversed(model.bodies) if body.mass)
    return rf.study(
        name="s", scenario={"name": "s", "robot": robot, "t_end": 0.02, "dt_out": 0.01},
        vary={f"payload.{heavy}.mass": {"uniform": [0.01, 0.1]}}, points={"runs": 3, "seed": 1},
        ledger=folder / f"{name}.db",
    )  # fmt: skip


def numbers(s: rf.Study) -> dict[str, Any]:
    return {name: column for name, column in s.table().items() if name != "seconds"}


def check(path: Path, base: str | None, address: str) -> str:
    """What went wrong; empty where nothing did."""
    try:
        model = rf.load(path, base=base)
        if model.nv > MOST:
            return f"left out: {model.nv} rates"
        rf.simulate(model, 0.002)
    except rf.RamifyError as error:  # a study cannot run what simulate does not
        return f"left out: {error}"
    engines: dict[str, dict[str, Any]] = {
        "serial": {}, "processes": {"jobs": 2}, "dask": {"scheduler": address},
    }  # fmt: skip
    tables = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in engines.items():
            s = study(path, base, Path(folder), name)
            count = s.run(engine=name, **options)
            if count.done != 3:
                return f"FAILED on {name}: {count} {s.errors()}"
            tables[name] = numbers(s)
    for name, table in tables.items():
        for column, values in table.items():
            if not np.array_equal(
                values, tables["serial"][column], equal_nan=values.dtype.kind == "f"
            ):
                return f"FAILED: {name} differs from serial in {column}"
    return ""


def main() -> int:
    warnings.simplefilter("ignore")
    wanted, bad, good = sys.argv[1:], 0, 0
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), 1) as (address, _):
        for path, base in robots():
            if wanted and not any(word in str(path) for word in wanted):
                continue
            began, where = time.perf_counter(), "/".join(path.parts[-3:])
            try:
                said = check(path, base, address)
            except rf.RamifyError as error:
                said = f"FAILED: {error}"
            bad, good = bad + said.startswith("FAILED"), good + (not said)
            print(
                f"{where}, {base}: {said or 'passed'} ({time.perf_counter() - began:.1f} s)",
                flush=True,
            )
    print(f"{good} passed, {bad} failed")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
