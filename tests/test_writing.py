"""Files are written whole or not at all: on a full disk, after errors, through links."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import ramify as rf
from ramify.documents.writing import whole_file, whole_path, write_whole


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_whole(target, "old\n")

    def broken() -> None:
        with whole_file(target) as file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert target.read_text() == "old\n"


def test_the_new_file_takes_the_name_and_the_usual_rights(tmp_path: Path) -> None:
    target, beside = tmp_path / "a.txt", tmp_path / "b.txt"
    beside.write_text("")
    write_whole(target, "one\n")
    write_whole(target, "two ü\n")
    assert target.read_bytes() == "two ü\n".encode()
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(beside.stat().st_mode)


def test_links_stay_links_and_pipes_are_written_to(tmp_path: Path) -> None:
    target, link = tmp_path / "a.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    write_whole(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_folders_are_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "data.zarr"
    for name in ("first", "second"):
        with whole_path(target) as passing:
            passing.mkdir()
            (passing / name).write_text("")
    assert [p.name for p in target.iterdir()] == ["second"]
    with pytest.raises(rf.RamifyError, match=r"data\.zarr is a directory"):
        write_whole(target, "")


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(rf.ModelError, match=r"nowhere.*cannot be written: No such file"):
        write_whole(tmp_path / "nowhere" / "a.txt", "", rf.ModelError)


FULL = """
    import resource, sys
    import ramify as rf
    from ramify.files.convert import convert
    run = rf.simulate(rf.load("planar_3r"), t_end=0.3, q0=[0.3, 0.2, 0.1], dt_out=0.05)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    try:
        {write}
    except rf.RamifyError as error:
        print(error)
        sys.exit(3)
"""


@pytest.mark.parametrize(
    ("name", "write", "limit"),
    [
        ("run.html", "run.report('run.html')", 2000),
        ("run.mp4", "run.animate('run.mp4', size=(320, 240), progress=False)", 1500),
        ("run.gif", "run.animate('run.gif', size=(320, 240), progress=False)", 1500),
        ("run.nc", "run.save('run.nc')", 500),
        ("run.csv", "run.to_csv('run.csv')", 200),
        ("arm.yaml", "convert('kuka_kr5', 'arm.yaml')", 300),
        ("arm.urdf", "convert('kuka_kr5', 'arm.urdf')", 300),
    ],
)
def test_a_full_disk_leaves_no_torn_file(name: str, write: str, limit: int, tmp_path: Path) -> None:
    """A limit on the size of files acts like a full disk: writing fails part of the way."""
    program = textwrap.dedent(FULL).format(limit=limit, write=write)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert name in done.stdout
    assert not any(tmp_path.iterdir())
