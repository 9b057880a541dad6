"""Kernels: against Pinocchio on many random trees, and every form of an algorithm against every
other.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_array_equal
from random_trees import random_bodies, to_pinocchio

import ramify as rf
from ramify.api.model import Model
from ramify.emit import unrolled
from ramify.emit.c99 import c_library, identifier
from ramify.kernels import robot_algorithm
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.closed import closed_algorithms
from ramify.kernels.make import make_kernel
from ramify.kernels.tier_policy import choose_tiers
from ramify.runtime import backend
from ramify.runtime.backend import PlainNumpy
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.single_kernel import SingleKernel
from ramify.trace.interpret import interpret
from ramify.trace.program import Port, trace

TREES = 32
FORMS = (1, 3, 32)
"""A chain of joints with several degrees of freedom, a single screw, and a tree that branches."""
BATCH = 11  # a full vector of lanes and an overlapping rest at every width


@cache
def robot(seed: int, most: int = 60) -> Model:
    """A random robot of 1 to ``most`` bodies; every subtree numbered in one run, as Pinocchio's
    matrices need it.
    """
    rng = np.random.default_rng(1000 + seed)
    n = int(np.exp(rng.uniform(0.0, np.log(most + 0.99))))
    bodies = random_bodies(rng, n, depth_first=True)
    return Model(
        f"tree {seed}",
        bodies,
        tuple(6.0 * rng.normal(size=3)),
        {b.name: (i, rf.Frame()) for i, b in enumerate(bodies)},
    )


def states(model: Model, seed: int, count: int, parts: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(parts, count, model.nv))


def worst(ours: Any, theirs: Any) -> float:
    """Largest difference relative to the largest number, or to 0.01 (of quantities of size one)
    where that is smaller.
    """
    return float(np.abs(np.asarray(ours) - theirs).max() / max(1e-2, np.abs(theirs).max()))


@pytest.mark.filterwarnings("ignore:.*gimbal lock:RuntimeWarning")
@pytest.mark.parametrize("seed", range(TREES))
def test_agrees_with_pinocchio(seed: int) -> None:
    """Inverse and forward dynamics, inertia matrix, bias, Coriolis terms, Jacobian and energy to
    1e-10, and the identities between them.
    """
    model = robot(seed)
    peer = to_pinocchio(model)
    data = peer.createData()
    qs, vs, accelerations = states(model, seed, BATCH, 3)
    k = {
        name: model.kernel(name, "rolled")
        for name in (
            "inverse_dynamics",
            "forward_dynamics",
            "mass_matrix",
            "bias",
            "coriolis_matrix",
        )
    }
    taus, M = k["inverse_dynamics"](qs, vs, accelerations), k["mass_matrix"](qs)
    found = k["forward_dynamics"](qs, vs, taus)
    h, C = k["bias"](qs, vs), k["coriolis_matrix"](qs, vs)
    g = model.kernel("gravity_forces", "rolled")(qs)
    kinetic, potential = model.kernel("energy", "rolled")(qs, vs)
    U, D = model.kernel("udu", "rolled")(qs)
    for i in (0, BATCH - 1):
        q, v, a = qs[i], vs[i], accelerations[i]
        assert worst(taus[i], pin.rnea(peer, data, q, v, a)) < 1e-10
        full = np.triu(pin.crba(peer, data, q).reshape(model.nv, -1))
        full = full + np.triu(full, 1).T
        assert worst(M[i], full) < 1e-10
        assert worst(h[i], pin.nonLinearEffects(peer, data, q, v)) < 1e-10
        assert (
            worst(C[i] @ v, pin.computeCoriolisMatrix(peer, data, q, v).reshape(model.nv, -1) @ v)
            < 1e-10
        )
        assert worst(kinetic[i], pin.computeKineticEnergy(peer, data, q, v)) < 1e-10
        assert worst(potential[i], pin.computePotentialEnergy(peer, data, q)) < 1e-10
        exact = 1e-10 + 1e-14 * np.linalg.cond(
            full
        )  # two ways to solve with I agree as far as I allows
        assert worst(found[i], pin.aba(peer, data, q, v, taus[i])) < exact
        assert worst(found[i], a) < exact
        body = model.bodies[-1].name
        frame = peer.getFrameId(body)
        J = pin.computeFrameJacobian(peer, data, q, frame, pin.LOCAL_WORLD_ALIGNED).reshape(6, -1)
        assert worst(model.jacobian(q, body), np.vstack([J[3:], J[:3]])) < 1e-10
    assert worst(U @ D @ U.swapaxes(1, 2), M) < 1e-10
    assert worst(0.5 * np.einsum("ni,nij,nj->n", vs, M, vs), kinetic) < 1e-10
    assert worst(np.einsum("nij,nj->ni", C, vs) + g, h) < 1e-10
    assert worst(np.einsum("nij,nj->ni", M, accelerations) + h, taus) < 1e-10


@pytest.mark.parametrize("seed", range(0, TREES, 8))
def test_inertia_rate_less_twice_coriolis_is_skew(seed: int) -> None:
    model = robot(seed)
    q, v = states(model, seed, 1, 2)[:, 0]
    step = 1e-5
    M = model.kernel("mass_matrix", "rolled")
    rate = (
        8.0 * (M(q + step * v) - M(q - step * v)) - (M(q + 2 * step * v) - M(q - 2 * step * v))
    ) / (12.0 * step)
    skew = rate - 2.0 * model.kernel("coriolis_matrix", "rolled")(q, v)
    assert np.abs(skew + skew.T).max() < 1e-8 * max(1.0, np.abs(rate).max())


# ---- one text, many forms ----


def _body(model: Model, name: str) -> int | None:
    return len(model.bodies) - 1 if ALGORITHMS[name].extras else None


def inputs_of(kernel: Any, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(BATCH, *port.shape)) for port in kernel._plan.inputs]


def tuple_of(x: Any) -> tuple[np.ndarray, ...]:
    return x if isinstance(x, tuple) else (x,)


FORMED = [
    n for n in ALGORITHMS if not n.startswith("hybrid") and ALGORITHMS[n].max_unrolled_links > 100
]
"""Those with much code have their own test (test_derivatives)."""


@pytest.mark.parametrize("name", FORMED)
@pytest.mark.parametrize("seed", FORMS)
def test_all_forms_agree(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats = interpreted graph = NumPy = kernels (unrolled and rolled, 1, 2, 4 and 8 lanes)."""
    model = robot(seed, most=6)
    plain = make_kernel(model, name, "numpy", _body(model, name))
    xs = inputs_of(plain, seed)
    wanted = tuple_of(plain(*xs))
    rows = [x.reshape(BATCH, -1) for x in xs]
    for found, want in zip(interpret(plain.program, rows), wanted, strict=True):
        assert worst(found.reshape(want.shape), want) < 1e-11
    floats = plain._plan.plain.text(*[[float(c) for c in r[0]] for r in rows])
    for found, want in zip(floats, wanted, strict=True):
        assert worst(np.array(found), want[0].ravel()) < 1e-11
    for tier in ("unrolled", "rolled"):
        kernel = make_kernel(model, name, tier, _body(model, name))
        alone = []
        for width in (1, 2, 4, 8):
            monkeypatch.setattr(backend, "width_for", lambda states, width=width: width)
            alone.append(tuple_of(kernel(*xs)))
        for results in alone:
            for found, want, first in zip(results, wanted, alone[0], strict=True):
                assert worst(found, want) < 1e-11
                if name != "mass_matrix_inverse" or tier == "unrolled":
                    assert_array_equal(found, first)  # every width gives the same bits


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "energy"])
def test_bits_do_not_depend_on_batch_or_threads(name: str) -> None:
    model = robot(3, most=6)
    for tier in ("unrolled", "rolled"):
        kernel = make_kernel(model, name, tier)
        xs = [
            np.random.default_rng(i).normal(size=(4096, *p.shape))
            for i, p in enumerate(kernel._plan.inputs)
        ]
        once = tuple_of(kernel(*xs, threads=1))
        for found, want in zip(tuple_of(kernel(*xs, threads=3)), once, strict=True):
            assert_array_equal(found, want)
        for i in (0, 17, 4095):
            for found, want in zip(tuple_of(kernel(*[x[i] for x in xs])), once, strict=True):
                assert_array_equal(found, want[i])


@pytest.mark.parametrize("seed", range(4))
def test_c_source_compiles_and_agrees(seed: int, tmp_path: Path) -> None:
    """One .h/.c pair per robot, strict C99, no warnings, no dependency but math.h."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    model = robot(seed, most=6)
    names = [
        "inverse_dynamics",
        "forward_dynamics",
        "mass_matrix",
        "coriolis_matrix",
        "energy",
        "kinematics",
    ]
    kernels = {name: model.kernel(name, "numpy") for name in names}
    header, source = c_library([k.program for k in kernels.values()], model.name, "robot")
    (tmp_path / "robot.h").write_text(header)
    (tmp_path / "robot.c").write_text(source)
    flags = [
        "-std=c99",
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
    ]
    subprocess.run([compiler, *flags, "robot.c", "-o", "robot.so", "-lm"], cwd=tmp_path, check=True)
    assert source.count("#include") == 2
    library = ctypes.CDLL(str(tmp_path / "robot.so"))
    for name, kernel in kernels.items():
        xs = [x[0] for x in inputs_of(kernel, seed)]
        outs = [np.empty(p.shape or (1,)) for p in kernel._plan.outputs]
        getattr(library, f"{identifier(model.name)}_{name}")(
            *(ctypes.c_void_p(a.ctypes.data) for a in (*xs, *outs))
        )
        for found, want in zip(outs, tuple_of(kernel(*xs)), strict=True):
            assert worst(found.reshape(np.shape(want)), want) < 1e-11


def test_derivatives_are_those_of_the_function() -> None:
    model = robot(5, most=6)
    q, v, a = states(model, 1, 1, 3)[:, 0]
    tau = model.inverse_dynamics(q, v, a)
    step = 1e-6
    for function, x in ((model.inverse_dynamics, a), (model.forward_dynamics, tau)):
        found = getattr(model, f"{function.__name__}_derivatives")(q, v, x)
        for i, part in enumerate(found):
            columns = []
            for e in np.eye(model.nv) * step:
                ahead, behind = (
                    [y + s * e if i == j else y for j, y in enumerate((q, v, x))]
                    for s in (1.0, -1.0)
                )
                columns.append((function(*ahead) - function(*behind)) / (2.0 * step))
            assert worst(part, np.array(columns).T) < 1e-7


def test_kernels_are_private_to_their_robot() -> None:
    """Two robots with other masses do not share straight-line code, in memory or on disk."""
    rows, com, inertia = [(0.0, 0.0, 0.0, 0.0)], [(0.1, 0.0, 0.0)], [(0.0, 0.01, 0.01)]
    light, heavy = (
        rf.from_dh(rows, [m], com, inertia, gravity=(0.0, -9.81, 0.0)) for m in (1.0, 2.0)
    )
    one = light.kernel("gravity_forces", "unrolled")(np.zeros(1))
    two = heavy.kernel("gravity_forces", "unrolled")(np.zeros(1))
    np.testing.assert_allclose(two, 2.0 * one, rtol=1e-15)
    np.testing.assert_allclose(one, [0.981], rtol=1e-15)


@pytest.mark.parametrize(
    ("tier", "has_rolled", "cached", "options", "initial", "upgrades"),
    [
        ("numpy", True, True, {}, "plain", False),
        ("unrolled", True, False, {}, "compiled", False),
        ("rolled", True, True, {}, "rolled", False),
        (None, True, True, {}, "compiled", False),
        (None, True, False, {}, "rolled", True),
        (None, True, True, {"fits": False}, "rolled", False),
        (None, True, True, {"prefers_rolled": True}, "rolled", False),
        (None, False, True, {"prefers_rolled": True}, "compiled", False),
        (None, False, False, {}, "plain", True),
        (None, False, False, {"compile_at_once": True}, "compiled", False),
        (None, False, True, {"fits": False}, "plain", False),
    ],
)
def test_the_tiers_of_a_kernel(
    tier: str | None,
    has_rolled: bool,
    cached: bool,
    options: dict[str, bool],
    initial: str,
    upgrades: bool,
) -> None:
    """What answers at once, and whether unrolled code takes over later."""

    class Code(CompiledProgram):
        def cached(self) -> bool:
            return cached

    x = (Port("x", (1,)),)
    compiled = Code("f", lambda: trace("f", lambda x: [x], x, x), "test")
    plain, rolled = PlainNumpy(lambda x: [x]), PlainNumpy(lambda x: [x])
    named = {"plain": plain, "compiled": compiled, "rolled": rolled}
    tiers = choose_tiers(tier, plain, compiled, (lambda: rolled) if has_rolled else None, **options)
    assert tiers.initial is named[initial]
    assert tiers.upgrade is (compiled if upgrades else None)


def test_algorithms_that_honour_loops_have_a_text_for_them() -> None:
    closed = closed_algorithms(rf.load("four_bar"))
    honoured = {name for name, row in ALGORITHMS.items() if row.loops == "honoured"}
    assert honoured == set(closed) & set(ALGORITHMS)
    assert all(row.rolled_as == "none" for row in closed.values())


def test_a_program_is_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of every width and precision, counts and C come from one program."""
    traced: list[str] = []

    def counted(name: str, *rest: Any) -> Any:
        traced.append(name)
        return trace(name, *rest)

    monkeypatch.setattr(robot_algorithm, "trace", counted)
    model = robot(11, most=4)
    q, v = (np.tile(x, (BATCH, 1)) for x in model.random(seed=1))
    kernel = make_kernel(model, "bias", "unrolled")
    kernel(q[0], v[0])
    kernel(q, v)
    SingleKernel(kernel)(q, v)
    assert kernel.op_count.mul > 0
    assert kernel.c_source()
    assert traced == ["bias"]


@pytest.mark.usefixtures("background_compiler")
def test_a_kernel_in_demand_is_switched_to_straight_line_code() -> None:
    model = robot(7, most=5)
    kernel = model.kernel("forward_dynamics")
    xs = [x[0] for x in inputs_of(kernel, 0)]
    first = kernel(*xs)
    for _ in range(200):
        kernel(*xs)
    from ramify.runtime import kernel as module

    while module._worker is not None:
        module._worker.join(0.05)
    assert kernel.tier == "unrolled"
    assert worst(kernel(*xs), first) < 1e-12


@pytest.mark.parametrize("no_llvm", ["1", ""])
def test_without_llvm_numpy_answers_and_says_so_once(no_llvm: str) -> None:
    code = (
        "import warnings, numpy as np, ramify as rf\n"
        "m = rf.from_dh([(0, 0, 0, 0)] * 2, [1, 1], [(0.5, 0, 0)] * 2, [(0, 0.1, 0.1)] * 2)\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(3): m.mass_matrix(np.zeros(2)); m.bias(np.zeros(2), np.ones(2))\n"
        "print(m.kernel('bias').tier, sum('llvmlite' in str(w.message) for w in seen))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "RAMIFY_NO_LLVM": no_llvm},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == (["numpy", "1"] if no_llvm else ["rolled", "0"])


def test_the_packed_triangle_is_that_of_the_matrix() -> None:
    model = rf.load("planar_biped")
    q = np.stack([model.random(seed)[0] for seed in range(9)])
    low = np.tril_indices(model.nv)
    for tier in ("unrolled", "rolled", "numpy"):
        M = model.kernel("mass_matrix", tier)(q)
        assert np.array_equal(model.kernel("mass_matrix_packed", tier)(q), M[:, *low])


def test_parts_of_long_code_change_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMIFY_CACHE_DIR", "off")
    found = []
    for length in (10**9, 100):
        monkeypatch.setattr(unrolled, "_PART", length)
        model = rf.load("planar_biped")
        q = np.stack([model.random(seed)[0] for seed in range(9)])
        kernel = model.kernel("mass_matrix", "unrolled")
        assert (kernel.llvm_ir.count("label %part") > 3) == (length == 100)
        found.append(kernel(q))
        assert np.array_equal(kernel(q[0]), found[-1][0])
    assert np.array_equal(*found)
