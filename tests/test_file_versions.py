"""The version of files: absent, older, newest, newer, of robots, scenarios, studies and results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crafted_results import crafted, parts_of

import ramify as rf
from ramify.core.version import __version__
from ramify.documents.file_version import VERSION
from ramify.files.load import read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.runs import store
from ramify.scenario_files.scenario import read_scenario
from ramify.studies.spec import read_spec
from ramify.view.controllers import controller_rows
from ramify.view.repeated_run import simulate_again

ROBOT = "name: bar\nlinks:\n  - {name: bar, frame: {}, mass: 1}\n"
SCENARIO = "name: fall\nrobot: two_link\nt_end: 0.01\n"
STUDY = "name: some\nscenario: {name: fall, robot: two_link, t_end: 0.01}\nvary: {damping: [0.1, 0.2]}\n"
READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "robot": (ROBOT, lambda text: read_yaml(text, "file.yaml")),
    "scenario": (SCENARIO, lambda text: read_scenario(text, "file.yaml")),
    "study": (STUDY, lambda text: read_spec(text, "file.yaml", None)),
}


@pytest.mark.parametrize("kind", READERS)
def test_versions_up_to_the_newest_are_read(kind: str) -> None:
    text, read = READERS[kind]
    names = {read(f"{head}{text}").name for head in ("", *(f"version: {n}\n" for n in range(1, VERSION + 1)))}  # fmt: skip
    assert len(names) == 1


@pytest.mark.parametrize("kind", READERS)
def test_a_newer_version_is_refused_before_all_else(kind: str) -> None:
    """With both versions, and without a word on keys that only the newer one has."""
    text, read = READERS[kind]
    newer = f"{text}version: {VERSION + 1}\nkey_of_tomorrow: 3\n"
    with pytest.raises(rf.ModelError) as caught:
        read(newer)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"file.yaml:{newer.count(chr(10)) - 1}:")
    assert f"this file has version {VERSION + 1}; ramify {__version__} reads versions up to {VERSION}" in line  # fmt: skip


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("version", ["0", "1.5", "two", "true", "[1]"])
def test_other_versions_are_mistakes(kind: str, version: str) -> None:
    text, read = READERS[kind]
    with pytest.raises(rf.ModelError, match="version"):
        read(f"{text}version: {version}\n")


def test_a_saved_robot_says_its_version(tmp_path: Path) -> None:
    model = rf.load("two_link")
    model.save(tmp_path / "robot.yaml")
    text = (tmp_path / "robot.yaml").read_text(encoding="utf-8")
    assert text.startswith(f"version: {VERSION}\n")
    assert to_yaml(rf.load(tmp_path / "robot.yaml")) == to_yaml(model)
    assert "version" not in to_yaml(model)  # a robot's digest does not depend on it


def test_a_result_of_the_first_format_shows_its_controller_as_text(tmp_path: Path) -> None:
    model = rf.load("two_link")
    said = "PD(actuated=None, limits=None, rate_hz=None, motion=Hold(q=(0.1, 0.2)), kp=(9.0,))"
    run = rf.simulate(model, 0.02, control=rf.control.PD(rf.motion.Hold([0.1, 0.2]), kp=9.0))
    old = rf.Result(
        model, run.t, run.q, run.v, run.a, run.tau, run.work, {**run.options, "control": said},
        run.stats, run.status,
    )  # fmt: skip
    old.save(tmp_path / "new.nc")
    robot, metadata, arrays = parts_of(tmp_path / "new.nc")
    crafted(tmp_path / "old.nc", robot, json.dumps(metadata), arrays)  # of the first format
    opened = rf.Result.open(tmp_path / "old.nc")
    assert opened.options["control"] == said
    assert np.array_equal(opened.q, run.q)
    assert controller_rows(opened) == [("controller", said, "")]
    assert f"\n    # control: {said}" in simulate_again(opened)
    opened.report(tmp_path / "old.html")
    assert said in (tmp_path / "old.html").read_text(encoding="utf-8")


def test_a_result_of_a_newer_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = rf.simulate(rf.load("two_link"), 0.02)
    monkeypatch.setattr(store, "VERSION", 3)
    run.save(tmp_path / "new.nc")
    monkeypatch.undo()
    with pytest.raises(rf.SimulationError, match=r"format 3 of a newer ramify.*formats up to 2"):
        rf.Result.open(tmp_path / "new.nc")


def test_a_result_of_the_first_format_is_written_again_as_a_prescribed_one(
    tmp_path: Path,
) -> None:
    """Its text says whether the joints were moved, as the document does."""
    motion = rf.motion.Cycloid([0.0, 0.0], [0.3, 0.2], 0.05)
    model = rf.load("two_link")
    run = rf.simulate(model, 0.05, control=rf.control.Prescribed(motion))
    texts = {}
    for name, control in (("now", run.options["control"]), ("old", "Prescribed(motion=…)"), ("pd", "PD()")):  # fmt: skip
        one = rf.Result(
            model, run.t, run.q, run.v, run.a, run.tau, run.work, {"control": control},
        )  # fmt: skip
        one.to_redysim(tmp_path / name)
        texts[name] = (tmp_path / name / "statevar.dat").read_text()
    assert texts["now"] == texts["old"] != texts["pd"]
