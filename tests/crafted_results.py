"""Result files whose digest fits whatever was put into them: what somebody who wants to do harm, or
another program, would write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import netcdf_file

from ramify.runs.store import DIMENSIONS, first_digest


def parts_of(path: Path) -> tuple[str, Any, dict[str, Any]]:
    """The robot's text, the metadata and the arrays of a file."""
    with netcdf_file(path, "r", mmap=False) as data:
        arrays = {
            name: np.array(v[:], dtype=np.float64)
            for name, v in data.variables.items()
            if v.typecode() == "d"
        }
        return data.robot.decode(), json.loads(data.metadata), arrays


def crafted(path: Path, robot: str, metadata: str, arrays: Mapping[str, Any]) -> Path:
    """Write a file of these parts in format 1, with their digest."""
    with netcdf_file(path, "w", version=2) as data:
        texts = {"format": "ramify result", "robot": robot, "metadata": metadata}
        digest = first_digest(robot, metadata, {k: np.asarray(x) for k, x in arrays.items()})
        for name, text in (texts | {"sha256": digest}).items():
            setattr(data, name, text.encode("utf-8", "surrogatepass"))
        data.format_version = np.int32(1)
        for name, values in arrays.items():
            shape, own = np.shape(values), DIMENSIONS.get(name, ())
            names = [f"{name}_{own[k] if k < len(own) else k}" for k in range(len(shape))]
            for dimension, length in zip(names, shape, strict=True):
                data.createDimension(dimension, length)
            data.createVariable(name, "d", tuple(names))[...] = values
    return path


def changed_anywhere(value: Any, rng: np.random.Generator) -> Any:
    """A tree of lists and mappings with one thing in it changed, dropped or put in."""
    odd: list[Callable[[], Any]] = [
        lambda: None, lambda: True, lambda: -1, lambda: 1e300, lambda: 2**70, lambda: "x",
        lambda: "", lambda: [], lambda: {}, lambda: [[1.0]], lambda: {"names": 3}, lambda: [None],
    ]  # fmt: skip
    if isinstance(value, dict) and value and rng.random() < 0.85:
        out = dict(value)
        key = list(out)[int(rng.integers(len(out)))]
        if rng.random() < 0.2:
            del out[key]
        else:
            out[key] = changed_anywhere(out[key], rng)
        return out
    if isinstance(value, list) and value and rng.random() < 0.7:
        out_list = list(value)
        i = int(rng.integers(len(out_list)))
        out_list[i : i + 1] = (
            [] if rng.random() < 0.2 else [changed_anywhere(out_list[i], rng)] * rng.integers(1, 3)
        )
        return out_list
    return odd[int(rng.integers(len(odd)))]()


def changed_arrays(arrays: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Arrays of which one is missing, cut, of another shape, not finite, or new."""
    out = dict(arrays)
    name = list(out)[int(rng.integers(len(out)))]
    match int(rng.integers(6)):
        case 0:
            del out[name]
        case 1:
            out[name] = out[name][: int(rng.integers(1, len(out[name]) + 1))]
        case 2:
            out[name] = out[name].reshape(-1)
        case 3:
            out[name] = np.array(out[name])
            out[name].reshape(-1)[int(rng.integers(out[name].size))] = rng.choice([np.nan, 1e308])
        case 4:
            out[name] = out[name][..., None]
        case _:
            out["foreign"] = np.ones(3)
    return out
