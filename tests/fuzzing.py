"""A fuzzer: damaged robot files, scenarios, studies, results and ledgers, odd arrays and
options, C of random robots. Every case must give an answer or a RamifyError, in bounded time.

``tests/test_fuzz.py`` runs a bounded number of cases. ``python tests/fuzzing.py --hours 2`` (``make
fuzz``) goes on for hours and prints a line for each failure, with the numbers that repeat it:
``python tests/fuzzing.py --only urdf --seed 1234 --cases 1``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

import numpy as np
from crafted_ledgers import crafted_ledger, first_format, small_study
from crafted_results import changed_anywhere, changed_arrays, crafted, parts_of
from fuzzing_files import FILE_TARGETS
from fuzzing_options import environments, inverse_kinematics, mock_up_units, scenario_keys
from public_calls import ODD, calls
from random_trees import random_bodies
from sample_files import FULL
from test_mjcf import ARM as MJCF
from test_sdf import SDF
from test_study_files import TEXT as STUDY
from test_urdf import ARM as URDF
from test_urdf import XACRO

import ramify as rf
from ramify.api.model import Model
from ramify.emit.c99 import c_library, identifier
from ramify.scenario_files.shipped import scenarios, shipped_text

Rng = np.random.Generator
SECONDS: Final = 60
"""No case may take longer."""

TOKENS: Final = (
    b"0", b"-1", b"1e308", b"1e-320", b"nan", b".inf", b"-0.0", b"999999999", b"''", b"null", b"[]", b"{}", b"*a", b"&a", b"<", b"/>", b'"',
    b"\x00", b"\xff", b"\xe2\x80\xae", b"true", b"..", b"/", b"${x}", b"1" * 400, b"\n", b"- ", b": ", b"<!DOCTYPE x>", b"%", b"name", b"link",
)  # fmt: skip
"""What is put into files."""


def damaged(data: bytes, rng: Rng) -> bytes:
    """Bytes changed, cut out, doubled, moved, and words put in; now and then nothing."""
    out = bytearray(data)
    for _ in range(int(rng.integers(0, 6))):
        i, n = int(rng.integers(len(out) + 1)), int(rng.integers(1, 40))
        match int(rng.integers(6)):
            case 0:
                out[i : i + 1] = bytes([int(rng.integers(256))])
            case 1:
                del out[i : i + n]
            case 2:
                out[i:i] = out[i : i + n]
            case 3:
                j = int(rng.integers(len(out) + 1))
                out[i:i] = out[j : j + n]
            case 4:
                out[i : i + n] = TOKENS[int(rng.integers(len(TOKENS)))]
            case _:
                out[i:i] = TOKENS[int(rng.integers(len(TOKENS)))]
    return bytes(out)


@contextmanager
def file(data: bytes, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        yield path


def robot_file(text: str, suffix: str) -> Callable[[Rng], None]:
    def case(rng: Rng) -> None:
        with file(damaged(text.encode(), rng), f"robot{suffix}") as path:
            model = rf.load(path)
            model.check()
            q, v = model.random(0)
            with np.errstate(all="ignore"):  # robots of 1e30 kg may overflow, and are told so
                model.kernel("inverse_dynamics", "numpy")(q, v, v)

    return case


def scenario(rng: Rng) -> None:
    names = scenarios()
    text = shipped_text(names[int(rng.integers(len(names)))])
    with file(damaged(text.encode(), rng), "scenario.yaml") as path:
        rf.scenario(path)


def study(rng: Rng) -> None:
    with file(damaged(STUDY.encode(), rng), "study.yaml") as path:
        rf.study(path)


@cache
def result_bytes() -> bytes:
    run = rf.simulate(rf.load("planar_3r"), t_end=0.05, q0=[0.3, 0.2, 0.1], dt_out=0.01)
    with tempfile.TemporaryDirectory() as folder:
        run.save(Path(folder) / "run.nc")
        return (Path(folder) / "run.nc").read_bytes()


def result(rng: Rng) -> None:
    with file(damaged(result_bytes(), rng), "run.nc") as path:
        _ = rf.Result.open(path).energy


def crafted_result(rng: Rng) -> None:
    """A result whose digest fits: what opens also has an audit, and saves."""
    with file(result_bytes(), "run.nc") as path:
        robot, meta, own = parts_of(path)
        new = changed_anywhere(meta, rng) if rng.random() < 0.7 else meta
        own = own if new is not meta else changed_arrays(own, rng)
        with np.errstate(all="ignore"):  # numbers of 1e308 may overflow
            made = rf.Result.open(crafted(path, robot, json.dumps(new), own))
            str(made.audit), made.limits_reached, repr(made), made._repr_html_()
        made.save(path)
        rf.Result.open(path)


@cache
def ledger_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.ledger"
        small_study(path)
        return path.read_bytes()


def look_through(path: Path) -> None:
    """Ask a ledger whatever it can be asked without computing a run."""
    study = rf.Study.open(path)
    study.status(), study.errors(), study.table(), study.other_versions(), repr(study)
    study.export(path.with_suffix(".csv"))
    if study.recipe.keep.history:
        study.history(0)


def ledger(rng: Rng) -> None:
    with file(damaged(ledger_bytes(), rng), "study.ledger") as path:
        look_through(path)


def made_up_ledger(rng: Rng) -> None:
    """A ledger with odd rows whose digests mostly fit: what opens can also be run again."""
    with file(ledger_bytes(), "study.ledger") as path:
        made = crafted_ledger(path, path.with_name("crafted.ledger"), rng)
        if rng.random() < 0.3:
            made = first_format(made, path.with_name("first.ledger"))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*without digests", UserWarning)
            look_through(made)
            if rng.random() < 0.3:
                rf.Study.open(made).run(engine="serial", again=("damaged",))
                look_through(made)


@cache
def arm() -> Model:
    return rf.load("kuka_kr5")


def odd_array(rng: Rng, size: int) -> Any:
    """An array as users pass them by mistake."""
    shape = [(size,), (3, size), (size + 1,), (), (0, size), (2, 1, size), (size, 1)]
    x: Any = rng.normal(size=shape[int(rng.integers(len(shape)))])
    match int(rng.integers(14)):
        case 0:
            x = x.astype([np.float32, np.int8, complex, object, str, bool][int(rng.integers(6))])
        case 1:
            x = np.where(
                rng.random(x.shape) < 0.2, [np.nan, np.inf, 1e300][int(rng.integers(3))], x
            )
        case 2:
            x = np.ma.masked_array(x, mask=rng.random(x.shape) < 0.3)
        case 3:
            x = x.tolist()
        case 4:
            x = [None, "abc", b"abc", {}, object(), [[1], [2, 3]], [1, "a"]][int(rng.integers(7))]
        case 5:
            x = np.flip(x)
        case 6:
            x = np.asfortranarray(x)
        case 7:
            x = x * 10.0 ** float(rng.integers(-320, 300))
        case 8:
            x = x.astype(">f8")
        case _:
            x = rng.normal(size=size)
    return x


def arrays(rng: Rng) -> None:
    model = arm()
    names = ("inverse_dynamics", "forward_dynamics", "integrate", "mass_matrix", "energy", "bias")
    name = names[int(rng.integers(len(names)))]
    count = {"mass_matrix": 1, "energy": 2, "bias": 2}.get(name, 3)
    given = [odd_array(rng, model.nv) for _ in range(count)]
    if name == "integrate":
        given[2] = 0.1
    with np.errstate(all="ignore"):
        getattr(model, name)(*given)


def public_call(rng: Rng) -> None:
    """Any public call with an argument, now and then two, that users pass by mistake."""
    table = list(calls().values())
    call = table[int(rng.integers(len(table)))]
    given, odd = dict(call.right), list(ODD.values())
    for _ in range(1 if rng.random() < 0.8 else 2):
        if call.names:
            name = call.names[int(rng.integers(len(call.names)))]
            given[name] = odd[int(rng.integers(len(odd)))]
    with np.errstate(all="ignore"), warnings.catch_warnings(), elsewhere():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # half of a number is lost
        call.function(**given)


@contextmanager
def elsewhere() -> Iterator[None]:
    """In a folder of its own: a word is a path in some calls."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def c_code(rng: Rng) -> None:
    """C of a random robot, compiled with the sanitizer for undefined behaviour, agrees."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler is not None, "no C compiler: install one"
    bodies = random_bodies(rng, int(rng.integers(1, 5)))
    model = Model("fuzz", bodies, (0.0, 0.0, -9.81), {})
    kernel = model.kernel("forward_dynamics", "numpy")
    header, source = c_library([kernel.program], model.name, "robot")
    q, v = model.random(int(rng.integers(2**31)))
    try:
        want = kernel(q, v, 0 * v)
    except rf.StateError:  # a singular inertia matrix
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "robot.h").write_text(header)
        (Path(folder) / "robot.c").write_text(source)
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off"]
        flags += ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC"]
        subprocess.run(
            [compiler, *flags, "robot.c", "-o", "robot.so", "-lm"], cwd=folder, check=True
        )
        found = np.empty(model.nv)
        call = getattr(
            ctypes.CDLL(f"{folder}/robot.so"), f"{identifier(model.name)}_forward_dynamics"
        )
        call(*(ctypes.c_void_p(a.ctypes.data) for a in (q, v, 0 * v, found)))
    assert np.abs(found - want).max() <= 1e-8 * max(1.0, np.abs(want).max())


TARGETS: Final[dict[str, tuple[Callable[[Rng], None], int]]] = {
    "yaml": (robot_file(FULL, ".yaml"), 40),
    "urdf": (robot_file(URDF, ".urdf"), 150),
    "mjcf": (robot_file(MJCF, ".xml"), 120),
    "sdf": (robot_file(SDF, ".sdf"), 150),
    "xacro": (robot_file(XACRO, ".xacro"), 60),
    **FILE_TARGETS,
    "ik": (inverse_kinematics, 150),
    "envs": (environments, 40),
    "fmu": (mock_up_units, 10),
    "keys": (scenario_keys, 100),
    "scenario": (scenario, 50),
    "study": (study, 40),
    "result": (result, 200),
    "crafted": (crafted_result, 100),
    "ledger": (ledger, 100),
    "made_up_ledger": (made_up_ledger, 60),
    "arrays": (arrays, 1500),
    "calls": (public_call, 150),
    "c": (c_code, 2),
}
"""What is fuzzed, and how many cases the test suite runs."""


def prepare() -> None:
    """Make what the cases damage, where a failure is ours."""
    result_bytes()
    ledger_bytes()


def run(target: str, seed: int) -> str:
    """One case: "answer" or "refused". Raises what is a defect."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"{target} {seed}: no answer within {SECONDS} s")

    alarmed = hasattr(signal, "SIGALRM")  # not on Windows, where a hang is the runner's to end
    if alarmed:
        before = signal.signal(signal.SIGALRM, late)
        signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings(
                "ignore", "(?s).*(left out, which changes|check the file)", UserWarning
            )
            TARGETS[target][0](np.random.default_rng([seed, *target.encode()]))
        return "answer"
    except rf.RamifyError as error:
        if not 0 < len(str(error)) < 20_000:
            raise AssertionError("a message of no bearable length") from error
        return "refused"
    finally:
        if alarmed:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--hours", type=float, default=1.0)
    options.add_argument("--only", choices=list(TARGETS), action="append")
    options.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    options.add_argument("--cases", type=int, default=sys.maxsize)
    given = options.parse_args()
    prepare()
    end = time.monotonic() + 3600 * given.hours
    counts: dict[tuple[str, str], int] = {}
    seed, failures, slowest = given.seed, 0, (0.0, "", 0)
    while seed - given.seed < given.cases and time.monotonic() < end:
        for target in given.only or TARGETS:
            if target == "c" and seed % 50 and not given.only:
                continue  # a compiler takes as long as a thousand other cases
            started = time.process_time()
            try:
                outcome = run(target, seed)
            except Exception:
                outcome, failures = "failed", failures + 1
                print(f"--only {target} --seed {seed} --cases 1", flush=True)
                traceback.print_exc()
            slowest = max(slowest, (time.process_time() - started, target, seed))
            counts[target, outcome] = counts.get((target, outcome), 0) + 1
        seed += 1
    for (target, outcome), n in sorted(counts.items()):
        print(f"{target:14s} {outcome:8s} {n}")
    print(f"{sum(counts.values())} cases, {failures} failures, seeds {given.seed} to {seed - 1}")
    print("slowest: {:.1f} s of computing, --only {} --seed {}".format(*slowest))
    if resource is not None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"peak memory {peak / 1024:.0f} MiB")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
