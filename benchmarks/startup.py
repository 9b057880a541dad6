"""What the first seconds cost: import, first answer, compilation; in fresh interpreters with a cold
or a warm kernel cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

_PROBE = str(Path(__file__).with_name("probe.py"))


def _python(arguments: Sequence[str], cache: str) -> tuple[float, str]:
    """Wall time of a fresh interpreter and what it printed."""
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "RAMIFY_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return perf_counter() - start, done.stdout


def import_times(repeats: int) -> dict[str, float]:
    """Seconds that an import adds to a bare interpreter's start."""
    texts = {"": "pass", "numpy": "import numpy", "ramify": "import ramify"}
    best = dict.fromkeys(texts, float("inf"))
    for _ in range(repeats):
        for name, text in texts.items():
            best[name] = min(best[name], _python(["-c", text], "off")[0])
    return {name: max(0.0, best[name] - best[""]) for name in texts if name}


def cold_and_warm(what: str, robot: str, repeats: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A probe with an empty cache, and again with the cache it has left; each the best of several
    by its total.
    """
    cold, warm = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="ramify-bench-") as cache:
            for runs in (cold, warm):
                total, printed = _python([_PROBE, what, robot], cache)
                runs.append({**json.loads(printed), "total": total})
    return _best(cold), _best(warm)


def _best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The smallest of each number."""
    return {key: min(run[key] for run in runs) for key in runs[0]}
