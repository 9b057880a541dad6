"""Result files that fit their digest and yet are no run: each is refused with a reason that names
the file, and nothing that is missing becomes a number.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crafted_results import crafted, parts_of

import ramify as rf

Parts = tuple[str, Any, dict[str, Any]]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """Robot, metadata and arrays of a run with ground, wrenches and a desired motion."""
    push = {"link6": [0, 0, 0, 0, 0, 1.0]}
    with pytest.warns(RuntimeWarning, match="starts inside the ground"):
        r = rf.simulate(rf.load("kuka_kr5"), 0.03, ground="firm", wrenches=push)
    path = tmp_path_factory.mktemp("whole") / "run.nc"
    r.save(path)
    robot, meta, arrays = parts_of(path)
    return robot, meta, arrays | {f"{name}_desired": arrays[name] for name in "qva"}


def refusal(path: Path, robot: str, metadata: str, arrays: dict[str, Any]) -> str:
    with pytest.raises(rf.SimulationError) as caught:
        rf.Result.open(crafted(path, robot, metadata, arrays))
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_the_crafted_file_itself_opens(parts: Parts, tmp_path: Path) -> None:
    robot, meta, arrays = parts
    r = rf.Result.open(crafted(tmp_path / "x.nc", robot, json.dumps(meta), arrays))
    for name, values in (("q", r.q), ("tau", r.tau), ("wrench_work", r.wrenches.work)):
        np.testing.assert_array_equal(values, arrays[name])
    r.save(tmp_path / "y.nc")
    assert parts_of(tmp_path / "y.nc")[1] == meta


def test_a_missing_variable_is_missed(parts: Parts, tmp_path: Path) -> None:
    """A missing q, v, a or tau used to become zeros, a missing time was a KeyError."""
    robot, meta, arrays = parts
    assert len(arrays) == 19
    for name in set(arrays) - {"contact_normal_load"}:
        rest = {key: x for key, x in arrays.items() if key != name}
        said = refusal(tmp_path / "x.nc", robot, json.dumps(meta), rest)
        assert f"the variable {name!r} is missing" in said
    rest = {key: x for key, x in arrays.items() if key != "contact_normal_load"}
    path = crafted(tmp_path / "x.nc", robot, json.dumps(meta), rest)  # as in the first releases
    contacts = rf.Result.open(path).contacts
    assert contacts is not None
    assert np.isnan(contacts.normal_load).all()


def test_variables_of_another_shape_or_of_no_part_are_refused(parts: Parts, tmp_path: Path) -> None:
    robot, meta, arrays = parts
    for name, values in arrays.items():
        for other in (values[:-1], values[..., None], np.repeat(values, 2, axis=-1)):
            said = refusal(tmp_path / "x.nc", robot, json.dumps(meta), arrays | {name: other})
            assert "needs" in said or "does not belong" in said
    for extra in ("foreign", "loop_gap", "bristles"):
        said = refusal(tmp_path / "x.nc", robot, json.dumps(meta), arrays | {extra: np.ones(3)})
        assert extra in said


WRONG: list[tuple[tuple[str, ...], Any]] = [
    ((), []), ((), 3), ((), None), (("status",), 3), (("options",), None), (("options",), [1]),
    (("stats",), "x"), (("contacts",), [1]), (("contacts", "names"), "foot"),
    (("contacts", "names"), ["foot", "foot"]), (("contacts", "bodies"), [3]),
    (("contacts", "up"), [0, 1]), (("wrenches",), 3), (("wrenches", "names"), None),
    (("options", "events"), 3), (("options", "damping"), {"a": 1}), (("options", "passive"), "no"),
    (("options", "scenario"), {"name": 1}), (("stats", "saturated"), [[1]]),
    (("stats", "machine_losses"), [1]), (("stats", "steps"), -1), (("stats", "steps"), 10**40),
]  # fmt: skip


@pytest.mark.parametrize(("where", "value"), WRONG, ids=[str(w) for w in WRONG])
def test_metadata_of_the_wrong_kind_are_refused(
    where: tuple[str, ...], value: Any, parts: Parts, tmp_path: Path
) -> None:
    robot, meta, arrays = parts
    new = json.loads(json.dumps(meta))
    inner = new
    for key in where[:-1]:
        inner = inner[key]
    if where:
        inner[where[-1]] = value
    said = refusal(tmp_path / "x.nc", robot, json.dumps(new if where else value), arrays)
    assert not where or where[-1] in said or "contact" in said


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, '{"a":' * 500 + "1" + "}" * 500, "nul", "1" * 5000],
    ids=["empty", "cut", "brackets", "deep", "word", "digits"],
)
def test_metadata_that_are_no_json_are_refused(text: str, parts: Parts, tmp_path: Path) -> None:
    """These were JSONDecodeError, RecursionError and TypeError."""
    refusal(tmp_path / "x.nc", parts[0], text, parts[2])


@pytest.mark.parametrize("value", ["NaN", "1e999", '"\\ud800"', "-Infinity"])
def test_what_opens_can_be_saved(value: str, parts: Parts, tmp_path: Path) -> None:
    """JSON that Python reads and cannot write would break the next save."""
    text = json.dumps(parts[1] | {"more": "?"}).replace('"?"', value)
    assert "not JSON" in refusal(tmp_path / "x.nc", parts[0], text, parts[2])


def patched(data: bytes, name: bytes, offset: int, number: int) -> bytes:
    """A file whose header has another number so many bytes after a name in it."""
    padded = name + b"\0" * (-len(name) % 4)  # the metadata have some of these words too
    (place,) = (m.end() for m in re.finditer(re.escape(padded), data))
    at = place + offset
    return data[:at] + struct.pack(">i", number) + data[at + 4 :]


def test_lengths_beyond_the_file_are_refused_unread(parts: Parts, tmp_path: Path) -> None:
    """No length in the header is believed: the file has 30 kB."""
    path = tmp_path / "x.nc"
    good = crafted(path, parts[0], json.dumps(parts[1]), parts[2]).read_bytes()
    for number in (2**31 - 1, -1, 0, 2**27):
        for name in (b"q_desired_time", b"sha256"):
            path.write_bytes(patched(good, name, 0 if name != b"sha256" else 4, number))
            with pytest.raises(rf.SimulationError):
                rf.Result.open(path)
