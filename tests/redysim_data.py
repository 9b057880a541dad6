"""ReDySim's example robots and rows of its published runs, as the files in ``redysim/`` hold them.

The program and its examples belong to S. V. Shah, S. K. Saha and J. K. Dutt, *Dynamics of Tree-Type
Robotic Systems* (Springer, 2013).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent / "redysim"
WHOLE = {"bt", "r", "aj", "nq", "dof", "type"}
SCALARS = {"n", "nq", "dof", "type", "Tp", "steps"}
RUN_TIMES = {"kuka_kr5_invdyn": 1.0, "floating_3_link_invdyn": 20.0, "floating_3_link_fordyn": 30.0}


def _blocks(file: str) -> Iterator[tuple[list[str], list[str]]]:
    """The words of each block's first line, and its other lines."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            yield lines[0].split(), lines[1:]


@cache
def _models() -> dict[str, dict[str, Any]]:
    models = {}
    for (key, kind, n, *words), lines in _blocks("models.txt"):
        size = int(n)
        zeros, chain = [0.0] * size, list(range(size))
        columns = ("alp", "a", "b", "dx", "dy", "dz", "Icxy", "Icyz", "Iczx")
        data: dict[str, Any] = {"kind": kind, "name": " ".join(words), "n": size}
        data |= dict.fromkeys(columns, zeros) | {"bt": chain, "g": [0.0] * 3}
        if kind == "fixed":
            ones = [1] * size
            data |= {"th": zeros, "r": ones, "aj": ones, "dof": size, "type": 0}
        name = ""
        for line in lines:
            values = line.split()
            if not line.startswith("   "):
                name = values.pop(0)
                data[name] = []
            number = int if name in WHOLE else float
            data[name] = [*data[name], *map(number, values)]
        for name in SCALARS & data.keys():
            data[name] = data[name][0] if isinstance(data[name], list) else data[name]
        models[key] = data
    return models


ROBOTS = tuple(sorted(_models()))


def variables(name: str) -> dict[str, Any]:
    """The variables of ``inputs.m`` of an example, and its ``kind`` (dialect) and ``name``."""
    return {
        key: list(value) if isinstance(value, list) else value
        for key, value in _models()[name].items()
    }


def numbers(name: str) -> dict[str, Any]:
    """The variables that are numbers: what ``inputs.mat`` holds."""
    return {key: value for key, value in variables(name).items() if not isinstance(value, str)}


@cache
def _runs() -> dict[tuple[str, str], np.ndarray]:
    return {
        (run, table): np.array(" ".join(lines).split(), dtype=float).reshape(-1, int(columns))
        for (run, table, columns), lines in _blocks("runs.txt")
    }


def published(run: str, table: str) -> np.ndarray:
    """Eleven rows of a table that a run printed, from its start to its end."""
    return _runs()[run, table].copy()


def times(run: str) -> np.ndarray:
    """The times of these rows [s]."""
    return np.linspace(0.0, RUN_TIMES[run], 11)


def mat_bytes(data: Mapping[str, Any]) -> bytes:
    """A MAT-file as MATLAB writes it: each variable packed for itself, doubles that are small whole
    numbers stored as bytes, up to four bytes of data inside the tag.
    """
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    parts = [zlib.compress(_matrix(name, value)) for name, value in data.items()]
    return head + b"".join(struct.pack("<II", 15, len(part)) + part for part in parts)


def _matrix(name: str, value: Any) -> bytes:
    array = np.asarray(value, dtype=float).reshape(-1, 1)
    small = bool(((array >= 0) & (array < 256) & (array == np.floor(array))).all())
    content = array.astype(np.uint8 if small else np.float64).tobytes()
    parts = [
        _element(6, struct.pack("<II", 6, 0)),  # flags: an array of doubles
        _element(5, struct.pack("<ii", *array.shape)),
        _element(1, name.encode()),
        _element(2 if small else 9, content),
    ]
    return _element(14, b"".join(parts))


def _element(kind: int, content: bytes) -> bytes:
    if len(content) <= 4 and kind != 14:
        return struct.pack("<HH4s", kind, len(content), content)
    padding = b"" if kind == 14 else bytes(-len(content) % 8)
    return struct.pack("<II", kind, len(content)) + content + padding
