"""The registry of robot file formats: every entry works, and one from outside is a full member."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import ramify as rf
from ramify.cli import main
from ramify.documents.writing import write_whole
from ramify.files.formats import FORMATS, Format, register, written_suffixes
from ramify.files.load import convert, read_yaml
from ramify.files.robot_writer import to_yaml
from ramify.model.robot import Robot


def test_every_reader_refuses_a_missing_file_by_its_name(tmp_path: Path) -> None:
    for suffix in FORMATS:
        with pytest.raises(rf.ModelError, match="nobody"):
            rf.load(tmp_path / f"nobody{suffix}")


@pytest.mark.parametrize("suffix", written_suffixes())
def test_what_a_format_writes_it_reads(suffix: str, tmp_path: Path) -> None:
    model = rf.load("kuka_kr5")
    convert("kuka_kr5", tmp_path / f"arm{suffix}")
    again = rf.load(tmp_path / f"arm{suffix}")
    q, v = model.random(3)
    assert again.inverse_dynamics(q, v, v) == pytest.approx(model.inverse_dynamics(q, v, v))


def read_upside_down(path: str, base: str | None) -> Robot:
    """A robot file whose lines are in reverse order."""
    text = "\n".join(reversed(Path(path).read_text(encoding="utf-8").splitlines()))
    return read_yaml(text, path)


def write_upside_down(robot: Robot, path: str | Path) -> None:
    write_whole(path, "\n".join(reversed(to_yaml(robot).splitlines())))


@pytest.fixture
def upside_down() -> Iterator[Format]:
    entry = Format("flip", (".flip",), "for this test", read_upside_down, write_upside_down)
    yield register(entry)
    del FORMATS[".flip"]


def test_a_format_from_outside(
    upside_down: Format, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "arm.flip"
    with pytest.raises(SystemExit, match="0"):
        main(["convert", "kuka_kr5", str(path), "--json"])
    assert json.loads(capsys.readouterr().out)["files"] == [str(path)]
    assert rf.load(path).skeleton == rf.load("kuka_kr5").skeleton
    with pytest.raises(rf.ModelError, match="a flip file has no parameters to set; got n"):
        rf.load(path, n=3)
    with pytest.raises(rf.ModelError, match=r"ends in .*\.flip"):
        rf.load(tmp_path / "arm.xyz")
    with pytest.raises(rf.ModelError, match=r"suffix '\.flip' exists already"):
        register(upside_down)
    with pytest.raises(rf.ModelError, match="start with a dot"):
        register(replace(upside_down, suffixes=("flip",)))


def test_formats_that_are_only_read_say_what_is_written(tmp_path: Path) -> None:
    with pytest.raises(rf.ModelError, match=r"written as \.yaml"):
        convert("kuka_kr5", tmp_path / "arm.mat")
    with pytest.raises(rf.ModelError, match="read, not written"):
        FORMATS[".mat"].write(rf.load("kuka_kr5"), tmp_path / "arm.mat")
    assert not any(tmp_path.iterdir())


def test_docs_name_every_format() -> None:
    page = (Path(__file__).parents[1] / "docs" / "file-formats.md").read_text(encoding="utf-8")
    missing = [suffix for suffix in FORMATS if f"`{suffix}`" not in page]
    assert not missing
