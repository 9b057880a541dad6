"""Files are written whole or not at all: on a full disk, after errors, through links."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import ramify as rf
from ramify.documents.writing import whole_file, whole_path, write_together, write_whole


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


def test_several_files_are_written_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a.h", tmp_path / "a.c"
    write_together({first: [b"1"], second: [b"2"]})

    def torn() -> Iterator[bytes]:
        yield b"4"
        raise OSError(28, "No space left on device")

    with pytest.raises(rf.ModelError, match=r"a\.c' cannot be written: No space left"):
        write_together({first: [b"3"], second: torn()}, rf.ModelError)
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    assert len(list(tmp_path.iterdir())) == 2


WRITERS = {
    "run.html": ("run.report('run.html')", 2000),
    "run.mp4": ("run.animate('run.mp4', size=(320, 240), progress=False)", 1500),
    "run.gif": ("run.animate('run.gif', size=(320, 240), progress=False)", 1500),
    "run.nc": ("run.save('run.nc')", 500),
    "run.csv": ("run.to_csv('run.csv')", 200),
    "statevar.dat": ("run.to_redysim('.')", 500),
    "arm.yaml": ("convert('kuka_kr5', 'arm.yaml')", 300),
    "arm.urdf": ("convert('kuka_kr5', 'arm.urdf')", 300),
    "run.svg": ("command('simulate', 'planar_3r', '--t-end', '0.1', '--plot', 'run.svg')", 2000),
    "id.svg": ("plot_torques([0, 1], [[0], [1]], ['a'], ['N m'], 'id.svg')", 2000),
    "study.svg": ("save_picture(study.plot(), 'study.svg')", 2000),
    "study.html": ("study.page('study.html')", 2000),
    "study.csv": ("study.export('study.csv')", 20),
    "kuka_kr5.c": (
        "command('export', 'kuka_kr5', '--format', 'c', '--out', '.', '--algorithm', 'gravity_forces')",
        2000,
    ),  # the header is shorter than that
}
FULL = """
    import io, os, resource, sys, tempfile
    sys.dont_write_bytecode = True  # Python would leave torn modules in its own cache
    from contextlib import redirect_stderr, redirect_stdout
    import ramify as rf
    from ramify.cli import main
    from ramify.files.load import convert
    from ramify.view.figures import save_picture
    from ramify.view.run_plots import plot_torques

    def command(*words):
        said = io.StringIO()
        try:
            with redirect_stderr(said), redirect_stdout(said):
                main(words)
        except SystemExit as end:
            if end.code:
                raise rf.RamifyError(said.getvalue())

    run = rf.simulate(rf.load("planar_3r"), t_end=0.3, q0=[0.3, 0.2, 0.1], dt_out=0.05)
    ledger = tempfile.mkdtemp() + "/study.ledger"
    given = {"scenario": "kuka_free_fall", "set": {"t_end": 0.01}}
    study = rf.study(**given, vary={"payload.link6.mass": [0, 1]}, ledger=ledger)
    study.run(progress=False)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    for name, (write, limit) in WRITERS.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
        try:
            exec(write)
            print("no error:", name)
        except rf.RamifyError as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            if name not in str(error):
                print("another error:", name, error)
        left = os.listdir()
        if left:
            print("left by", name, left)
            [os.unlink(file) for file in left if os.path.isfile(file)]
"""


def test_a_full_disk_leaves_no_torn_file(tmp_path: Path) -> None:
    """A limit on the size of files acts like a full disk: writing fails part of the way."""
    program = f"WRITERS = {WRITERS!r}\n{textwrap.dedent(FULL)}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr
