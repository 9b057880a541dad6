"""The cache of compiled code: private, atomic, and never trusted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ramify as rf
from ramify.runtime import cache, compile


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RAMIFY_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels LLVM was asked to build (not their entries, which are kept beside them)."""
    seen: list[str] = []
    build = compile._build

    def counted(text: str, *rest: object) -> bytes:
        if "@kernel_bias" in text:
            seen.append(text)
        return build(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compile, "_build", counted)
    return seen


def arm() -> rf.Model:
    return rf.from_dh(
        [(0.3, 0.1, 0.0, 0.0)] * 2, [1.0, 2.0], [(0.1, 0.0, 0.0)] * 2, [(0.01, 0.02, 0.02)] * 2
    )


def answer() -> np.ndarray:
    """A batch through freshly made kernels."""
    return arm().kernel("bias", "unrolled")(np.ones((8, 2)), np.ones((8, 2)))


def test_a_second_robot_of_the_same_numbers_is_loaded_not_built(
    place: Path, builds: list[str]
) -> None:
    first = answer()
    assert len(builds) == 1
    np.testing.assert_array_equal(answer(), first)
    assert len(builds) == 1
    assert oct(place.stat().st_mode & 0o777) == "0o700"
    assert {oct(f.stat().st_mode & 0o777) for f in place.iterdir()} == {"0o600"}


def _kernel_in(place: Path) -> Path:
    """The file of the kernel."""
    (file,) = (f for f in place.glob("*.o") if b"kernel_bias" in f.read_bytes())
    return file


def _damage(kind: str, file: Path) -> None:
    raw = file.read_bytes()
    if kind == "truncated":
        file.write_bytes(raw[: len(raw) // 2])
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "tampered":
        middle = len(raw) // 2
        file.write_bytes(raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :])
    elif kind == "another key's":
        file.write_bytes(cache._MAGIC + cache._digest("0" * 64, b"code") + b"code")
    elif kind == "open to others":
        file.chmod(0o666)
    elif kind == "a link":
        target = file.with_suffix(".elsewhere")
        file.rename(target)
        file.symlink_to(target)
    elif kind == "a directory":
        file.unlink()
        file.mkdir()
    elif kind == "another user's":
        os.chown(file, 12345, 12345)


@pytest.mark.parametrize(
    "kind",
    [
        "truncated",
        "empty",
        "tampered",
        "another key's",
        "open to others",
        "a link",
        "a directory",
        "another user's",
    ],
)
def test_an_entry_that_is_not_sound_is_rebuilt(kind: str, place: Path, builds: list[str]) -> None:
    if kind == "another user's" and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    first = answer()
    file = _kernel_in(place)
    _damage(kind, file)
    np.testing.assert_array_equal(answer(), first)
    assert len(builds) == 2
    if kind != "a directory":  # which cannot be replaced by a file
        np.testing.assert_array_equal(answer(), first)
        assert len(builds) == 2


def test_a_directory_open_to_others_is_closed_or_not_used(place: Path, builds: list[str]) -> None:
    answer()
    place.chmod(0o777)
    answer()
    assert place.stat().st_mode & 0o077 == 0 or len(builds) == 2


def test_a_directory_that_cannot_be_written_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, builds: list[str]
) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("RAMIFY_CACHE_DIR", str(tmp_path / "file"))
    np.testing.assert_array_equal(answer(), answer())
    assert len(builds) == 2


def test_killed_at_any_moment_the_cache_stays_usable(place: Path) -> None:
    """SIGKILL while kernels are compiled and stored, again and again; then everything still
    answers.
    """
    code = (
        "import numpy as np, ramify as rf\n"
        "print('go', flush=True)\n"
        "for i in range(100):\n"
        "    m = rf.from_dh([(0.3, 0.1, 0.0, 0.0)] * 2, [1.0, 2.0 + i], [(0.1, 0, 0)] * 2, [(0.01, "
        "0.02, 0.02)] * 2)\n"
        "    m.kernel('bias', 'unrolled')(np.ones((8, 2)), np.ones((8, 2)))\n"
    )
    rng = random.Random(1)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0.05, 0.6))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    for file in place.glob("*.o"):
        assert cache.load_object(file.stem) is not None
    expected = arm().kernel("bias", "numpy")(np.ones((8, 2)), np.ones((8, 2)))
    np.testing.assert_allclose(answer(), expected, rtol=1e-13)


def test_an_existing_directory_is_left_as_it_is(place: Path) -> None:
    place.mkdir(mode=0o755)
    place.chmod(0o755)
    answer()
    assert place.stat().st_mode & 0o777 == 0o755
    assert (place / "ramify").stat().st_mode & 0o777 == 0o700
    assert _kernel_in(place / "ramify").is_file()


def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(place: Path, builds: list[str]) -> None:
    first = answer()
    file = _kernel_in(place)
    file.unlink()
    os.mkfifo(file, 0o600)
    np.testing.assert_array_equal(answer(), first)
    assert len(builds) == 2


def test_children_forked_while_the_compiler_works_answer_too() -> None:
    """Whoever forks waits for the compiler; the child compiles for itself."""
    code = (
        "import os, sys, numpy as np, ramify as rf\n"
        "m = rf.load('spatial_biped_fixed')\n"
        "x = np.full((600, m.nv), 0.1)\n"
        "m.forward_dynamics(x, x, x)\n"  # starts the background compiler
        "bad = 0\n"
        "for _ in range(6):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        k = rf.load('planar_3r').kernel('bias', 'unrolled')\n"
        "        os._exit(0 if np.isfinite(k(np.ones((20, 3)), np.ones((20, 3)))).all() else 1)\n"
        "    bad |= os.waitpid(pid, 0)[1]\n"
        "print('children', bad)\n"
    )
    env = {**os.environ, "RAMIFY_CACHE_DIR": "off"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout.split() == ["children", "0"]


def test_a_fork_never_meets_llvm_at_work() -> None:
    """While another thread builds code and lets it go, LLVM's lock is never inherited locked."""
    code = """
import os, signal, threading
os.environ["RAMIFY_CACHE_DIR"] = "off"
from ramify.runtime.compile import compiled
from ramify.runtime.target import host

def build():
    text = "define i64 @f() {\\n  ret i64 7\\n}\\n"
    return compiled(lambda: text, "f", host().with_width(1), "f")

done = threading.Event()

def work():
    while not done.is_set():
        [build() for _ in range(3)]

thread = threading.Thread(target=work)
thread.start()
bad = 0
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        build()
        os._exit(0)
    bad |= os.waitpid(pid, 0)[1]
    if bad:
        break
done.set()
thread.join()
print("children", bad)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout.split() == ["children", "0"]


def test_a_kernel_that_waited_for_the_compiler_is_compiled_in_the_child() -> None:
    """The background thread does not survive a fork; its work is not lost."""
    code = """
import os, time, numpy as np, ramify as rf
m = rf.load("spatial_biped_fixed")
k = m.kernel("forward_dynamics")
x = np.full((600, m.nv), 0.1)
k(x, x, x)  # starts the background compiler
pid = os.fork()
if pid == 0:
    for _ in range(400):
        k(x, x, x)
        if k.tier == "unrolled":
            os._exit(0)
        time.sleep(0.1)
    os._exit(1)
print("child", os.waitpid(pid, 0)[1])
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "RAMIFY_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout.split() == ["child", "0"]


LITTLE_ROOM = """
import ctypes, mmap
import numpy as np
import ramify as rf

m = rf.load("kuka_kr5")
q, v = m.random(seed=0)
tau = m.inverse_dynamics(q, v, v)
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
take = lambda size: c.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
wall, pages = take(1 << 33), []
while (page := take(mmap.PAGESIZE)) > wall:
    pages.append(page)
c.munmap(pages[0], mmap.PAGESIZE)
print(np.abs(m.kernel("forward_dynamics", "unrolled")(q, v, tau) - v).max())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the layout of a process is Linux's")
def test_code_and_constants_stay_within_reach_where_there_is_little_room(place: Path) -> None:
    """One free page above 8 GB that are taken: code that fits there, with its constants below, would
    be too far from them for the 32 bits of its instructions.
    """
    done = subprocess.run([sys.executable, "-c", LITTLE_ROOM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    assert float(done.stdout) < 1e-12


FORKS = """
import os, signal, sys, threading, numpy as np
{first}
import ramify as rf
x, done = np.full((4000, 6), 0.1), threading.Event()
names = "bias", "mass_matrix", "forward_dynamics", "inverse_dynamics", "energy", "udu"

def work(seconds=None):
    i = 0
    while not done.is_set():
        i += 1
        m = rf.from_dh(
            [(0.3, 0.1, 0.2, 0.4)] * 6, [1.0 + i] * 6, [(0.1, 0, 0)] * 6, [(0.01, 0.02, 0.02)] * 6
        )
        m.coordinates, m.energy(x, x), m.bias(x, x), m.forward_dynamics(x, x, x), m.mass
        m.kernel(names[i % 6]).program
        if seconds is not None:
            return

threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
hung = wrong = 0
for i in range({forks}):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        done.clear()
        work(0)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    hung += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM
    wrong += status != 0
    if hung:
        break
done.set()
print("hung", hung, "wrong", wrong, flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(
    ("first", "forks"), [("import ramify.api.builders", 25), ("", 1)], ids=["working", "importing"]
)
def test_a_child_forked_while_threads_make_kernels_does_not_hang(first: str, forks: int) -> None:
    """The lock of ``functools.cached_property`` (Python 3.11), the locks of modules that are being
    imported, the pool of compiled threads: a child inherits none of them locked.
    """
    code = FORKS.format(first=first, forks=forks)
    for _ in range(1 if forks > 1 else 3):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env={**os.environ, "RAMIFY_CACHE_DIR": "off"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.stdout.split() == ["hung", "0", "wrong", "0"], done.stderr[-800:]
