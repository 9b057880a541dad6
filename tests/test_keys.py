"""Keys of compiled code: all that a kernel depends on changes its key, and names do not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.emit.cpu_target import CpuTarget
from ramify.kernels import layouts
from ramify.kernels.columns import extra_columns
from ramify.kernels.make import algorithm_of
from ramify.kernels.robot_keys import kernel_key, robot_key
from ramify.model.frame import Frame, rotation_about
from ramify.model.loop import Loop, LoopEnd
from ramify.runtime import cache_keys as object_keys
from ramify.runtime.cache_keys import _python_files, digest, object_key, tree_digest

PACKAGE = Path(rf.__file__).parent
LINK: dict[str, Any] = {"mass": 1.0, "com": (0.3, 0.1, 0.0), "inertia": (0.1, 0.2, 0.3)}


def arm(
    name: str = "arm",
    prefix: str = "",
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    joint: str = "revolute",
    last_parent: str = "b",
    base: tuple[float, float, float] = (0.0, 0.0, 0.0),
    **changed: Any,
) -> rf.Model:
    """Three links along x, all axes up; ``changed`` belongs to the last."""
    robot = rf.Builder(name, gravity=gravity)
    for link, parent, at in (("a", None, base), ("b", "a", (0.5, 0.0, 0.0))):
        parent = None if parent is None else prefix + parent
        robot.link(prefix + link, parent, "revolute", at=at, **LINK)
    more = {"at": (0.5, 0.0, 0.0), **LINK, **changed}
    robot.link(prefix + "c", prefix + last_parent, joint, **more)
    return robot.model()


CHANGES: dict[str, dict[str, Any]] = {
    "mass": {"mass": 1.0 + 1e-15},
    "centre of mass": {"com": (0.3, 0.1, 1e-9)},
    "inertia": {"inertia": (0.1, 0.2, 0.3 + 1e-12)},
    "placement": {"at": (0.5, 0.0, 1e-12)},
    "axis": {"axis": (0.0, 1.0, 0.0)},
    "type of joint": {"joint": "prismatic"},
    "quaternion": {"joint": "ball"},
    "parent": {"last_parent": "a"},
    "gravity": {"gravity": (0.0, 0.0, -9.80665)},
    "gravity's direction": {"gravity": (0.0, -9.81, 0.0)},
}


@pytest.mark.parametrize("part", CHANGES)
def test_a_changed_robot_has_another_key(part: str) -> None:
    assert kernel_key(arm(**CHANGES[part]), "bias") != kernel_key(arm(), "bias")


def test_the_parents_alone_make_another_key() -> None:
    chain, fork = arm(), arm(last_parent="a")
    assert chain.skeleton.links == fork.skeleton.links
    assert robot_key(chain) != robot_key(fork)


def test_the_root_alone_makes_another_key() -> None:
    low, high = (_tilted(height) for height in (0.0, 0.7))
    assert low.skeleton.links == high.skeleton.links
    assert robot_key(low) != robot_key(high)


def _tilted(height: float) -> rf.Model:
    """A pendulum on a tilted axis that passes through (0, 0, height)."""
    robot = rf.Builder("tilted", gravity=(0.0, 0.0, 0.0))
    robot.link("a", None, "revolute", at=(0.0, 0.0, height), axis=(0.0, 1.0, 1.0), **LINK)
    return robot.model()


def test_names_make_no_other_key() -> None:
    assert robot_key(arm("another", "left_")) == robot_key(arm())


def test_the_body_and_the_joints_meant_make_another_key() -> None:
    model = arm()

    def key(name: str, which: Any) -> str:
        return kernel_key(model, name, extra_columns(model, algorithm_of(model, name), which))

    assert len({key("jacobian", body) for body in range(3)}) == 3
    assert len({key("hybrid_dynamics", joints) for joints in (("b",), ("c",), ("b", "c"))}) == 3
    assert len({kernel_key(model, name) for name in ("bias", "gravity_forces")}) == 2


def test_the_order_of_the_results_makes_another_key() -> None:
    """Which link is which body is not seen in the links, but in where the results stand."""
    model = arm()
    rotation, position = layouts.body_pose_layouts(model)
    swapped = replace(rotation, places=rotation.places[::-1])
    orders = [(), (rotation, position), (position, rotation), (swapped, position), (rotation,)]
    assert len({kernel_key(model, "kinematics", (), order) for order in orders}) == len(orders)


def closed(**changed: Any) -> rf.Model:
    """The arm with a loop from its last link to the base."""
    driven = changed.pop("driven", ("a",))
    robot = rf.Builder("closed")
    for link, parent in (("a", None), ("b", "a"), ("c", "b")):
        robot.link(link, parent, "revolute", at=(0.5, 0.0, 0.0), actuated=link in driven, **LINK)
    at = Frame(np.eye(3), np.array([0.5, 0.0, 0.0]))
    given = {"kind": "revolute", "first": LoopEnd("c", at), "second": LoopEnd(None), **changed}
    return replace(robot.model(), loops=(Loop("loop", **given),))


TURNED = Frame(rotation_about((1.0, 0.0, 0.0), 0.1), np.zeros(3))
GEAR: dict[str, Any] = {"kind": "gear", "first": LoopEnd(None), "joints": ("a", "b")}
LOOPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "first frame": ({}, {"first": LoopEnd("c")}),
    "second frame": ({}, {"second": LoopEnd(None, TURNED)}),
    "link": ({}, {"first": LoopEnd("b", Frame(np.eye(3), np.array([0.5, 0.0, 0.0])))}),
    "kind": ({}, {"kind": "spherical"}),
    "axis": ({}, {"axis": (0.0, 1.0, 0.0)}),
    "planar": ({}, {"planar": True}),
    "drives": ({}, {"driven": ("b",)}),
    "length": ({"kind": "distance", "length": 1.0}, {"kind": "distance", "length": 1.5}),
    "ratio": (GEAR, GEAR | {"ratio": -2.0}),
    "offset": (GEAR, GEAR | {"offset": 0.1}),
    "geared joints": (GEAR, GEAR | {"joints": ("a", "c")}),
}


@pytest.mark.parametrize("part", LOOPS)
def test_a_changed_loop_has_another_key(part: str) -> None:
    one, other = (robot_key(closed(**given)) for given in LOOPS[part])
    assert one != other


def test_a_loop_makes_another_key_than_none() -> None:
    assert robot_key(closed()) != robot_key(closed().tree)


HOST = CpuTarget(8, True, "icelake-server", "+avx512f,+fma")
TARGETS = {
    "width": replace(HOST, width=4),
    "multiply-add": replace(HOST, fma=False),
    "CPU": replace(HOST, cpu="skylake-avx512"),
    "features": replace(HOST, features="+avx2,+fma"),
}


@pytest.mark.parametrize("part", TARGETS)
def test_another_machine_has_another_key(part: str) -> None:
    assert object_key("bias", TARGETS[part], "arm", 2) != object_key("bias", HOST, "arm", 2)


def test_name_contents_and_optimisation_make_other_keys() -> None:
    asked = [("bias", "arm", 2), ("bias", "leg", 2), ("udu", "arm", 2), ("bias", "arm", 1)]
    assert len({object_key(name, HOST, what, level) for name, what, level in asked}) == len(asked)


def test_another_llvm_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for version in ((20, 1, 8), (20, 1, 9), (22, 0, 0)):
        monkeypatch.setattr(
            object_keys, "llvm", lambda v=version: SimpleNamespace(llvm_version_info=v)
        )
        found.add(object_key("bias", HOST, "arm", 2))
    assert len(found) == 3


def test_parts_do_not_run_into_each_other() -> None:
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", "")}) == 4


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package."""
    folder = tmp_path / "ramify"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_every_source_file_counts(copy: Path) -> None:
    """All files of all packages are read; an edit in any package and a new file change the digest."""
    first = tree_digest(copy)
    assert first == tree_digest(PACKAGE)
    files = sorted(copy.rglob("*.py"))
    assert sorted(_python_files(str(copy), "")) == [x.relative_to(copy).as_posix() for x in files]
    one_of_each = {file.parent: file for file in files}
    assert len(one_of_each) > 20
    for file in one_of_each.values():
        raw = file.read_bytes()
        file.write_bytes(raw + b"#")
        assert tree_digest(copy) != first, file
        file.write_bytes(raw)
    assert tree_digest(copy) == first
    (copy / "core" / "more.py").write_bytes(b"")
    assert tree_digest(copy) != first


ASK = """
import numpy as np, ramify as rf
from ramify.kernels.make import kernel
m = rf.from_dh([(0.3, 0.1, 0.0, 0.0)] * 2, [1.0, 2.0], [(0.1, 0, 0)] * 2, [(0.01, 0.02, 0.02)] * 2)
print(kernel(m, "gravity_forces", "unrolled")(np.ones(2))[1])
"""


def test_an_edited_algorithm_is_compiled_anew(copy: Path, tmp_path: Path) -> None:
    """The answer follows the text: a kernel of the text before is not used again."""
    place = tmp_path / "cache"
    env = {**os.environ, "PYTHONPATH": str(copy.parent), "RAMIFY_CACHE_DIR": str(place)}

    def ask() -> tuple[float, int]:
        done = subprocess.run(
            [sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=True
        )
        return float(done.stdout), len(list(place.glob("*.o")))

    first, objects = ask()
    assert ask() == (first, objects)
    file = copy / "kernels" / "algorithms.py"
    text, old = file.read_text(), "_single_result(gravity.gravity_forces)"
    assert text.count(old) == 1
    file.write_text(
        text.replace(old, "lambda *x: ([3.0 * f for f in gravity.gravity_forces(*x)],)")
    )
    second, more = ask()
    assert second == pytest.approx(3.0 * first, rel=1e-15)
    assert more > objects


def test_the_rate_of_stabilisation_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run with another rate does not meet the compiled right-hand side of the first."""
    model = rf.load("four_bar")
    q = model.assemble().q + np.array([0.0, 1e-4, 0.0])

    def end(rate: float) -> np.ndarray:
        run = rf.rollout(model, q, np.zeros(3), steps=40, dt=1e-3, stabilisation=rate)
        return np.asarray(run.q)[-1]

    def fresh(rate: float) -> np.ndarray:
        monkeypatch.setenv("RAMIFY_CACHE_DIR", "off")
        return end(rate)

    expected = {rate: fresh(rate) for rate in (20.0, 40.0)}
    assert np.abs(expected[20.0] - expected[40.0]).max() > 1e-9
    monkeypatch.setenv("RAMIFY_CACHE_DIR", str(tmp_path))
    for rate in (20.0, 40.0):
        model = rf.load("four_bar")  # nothing is remembered but the cache on disk
        np.testing.assert_array_equal(end(rate), expected[rate])


UPGRADE = """
import pathlib, sys, numpy as np, ramify as rf
from ramify.kernels.make import kernel
def ask():
    m = rf.from_dh([(0.3, 0.1, 0, 0)] * 2, [1.0, 2.0], [(0.1, 0, 0)] * 2, [(0.01, 0.02, 0.02)] * 2)
    return kernel(m, {name!r}, "unrolled")(np.ones(2))[1]
if {late}:
    rf.load
else:
    import ramify.kernels.make
print("ready", flush=True)
sys.stdin.readline()
if {late}:
    import ramify.runs.simulate  # a module of the new version in a session of the old one
print(ask())
"""


@pytest.mark.parametrize("late", [False, True])
def test_an_upgrade_under_a_running_session_leaves_no_old_kernel(
    copy: Path, tmp_path: Path, late: bool
) -> None:
    """The old session imports its code, the files are exchanged, then it compiles: a process of the
    new version must not meet that kernel, nor the next process of the old version a kernel of a
    session that has imported from both (``late``). Keys made from the files found at the first
    compile failed the first of these.
    """
    place = tmp_path / "cache"
    env = {**os.environ, "PYTHONPATH": str(copy.parent), "RAMIFY_CACHE_DIR": str(place)}
    code = UPGRADE.format(name="gravity_forces", late=late)
    command = [sys.executable, "-c", code]
    old = subprocess.Popen(command, env=env, stdin=-1, stdout=-1, text=True)
    assert old.stdout is not None
    assert old.stdout.readline() == "ready\n"
    file = copy / "kernels" / "algorithms.py"
    text, was = file.read_text(), "_single_result(gravity.gravity_forces)"
    file.write_text(
        text.replace(was, "lambda *x: ([3.0 * f for f in gravity.gravity_forces(*x)],)")
    )
    first = float(old.communicate("\n")[0])
    stored = len(list(place.glob("*.o")))
    new = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, check=True)
    assert float(new.stdout) == pytest.approx(3.0 * first, rel=1e-15)
    assert len(list(place.glob("*.o"))) > stored
    file.write_text(text)  # and back again
    again = subprocess.run([sys.executable, "-c", ASK], env=env, capture_output=True, check=True)
    assert float(again.stdout) == first


REGISTERED = """
import sys, numpy as np, ramify as rf
from ramify.dynamics.gravity import gravity_forces
from ramify.kernels.algorithms import ALGORITHMS, Algorithm
from ramify.kernels.make import kernel
from ramify.trace.rolled_program import Argument

def text(tree, q):
    return (tree.total(lambda link, f: {factor} * f, 0.0, gravity_forces(tree, q)),)

ALGORITHMS["load"] = Algorithm(
    "load", (Argument("q", "coordinate", 1),), (Argument("sum", "state", 1),), text
)
m = rf.load("planar_3r")
print(*(float(kernel(m, "load", tier)(np.ones(3))) for tier in ("unrolled", "rolled")))
"""


def test_an_edited_algorithm_of_a_user_is_compiled_anew(tmp_path: Path) -> None:
    """The sources of the package do not tell that a user's own text has changed."""
    env = {**os.environ, "RAMIFY_CACHE_DIR": str(tmp_path)}

    def ask(factor: float) -> np.ndarray:
        command = [sys.executable, "-c", REGISTERED.format(factor=factor)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return np.array(done.stdout.split(), dtype=float)

    np.testing.assert_allclose(ask(3.0), 3.0 * ask(1.0), rtol=1e-14)
