"""C for a controller's board: freestanding, of one type, and with the numbers of the library."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf

MATHS = {"sin", "cos", "sqrt", "atan2", "floor"}
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wdouble-promotion", "-Werror")


def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert found is not None, "the tests need a C compiler"
    return found


def build(model: rf.Model, folder: Path, dtype: Any = "double", **parts: Any) -> Callable[..., Any]:
    """Write, check that it builds without a system, compile, and give a caller by name."""
    header, source = rf.to_c(model, folder, dtype=dtype, **parts)
    bare = str(folder / "bare.o")
    flags = ("-ffreestanding", "-nostdlib", "-O1", "-c", str(source), "-o", bare)
    subprocess.run([compiler(), *STRICT, *flags], check=True)
    listed = subprocess.run(["nm", "-u", bare], check=True, capture_output=True, text=True).stdout
    needed = {line.split()[-1].lstrip("_") for line in listed.splitlines() if line.strip()}
    assert needed <= {f"{name}{'f' if dtype == 'float' else ''}" for name in MATHS}
    assert [line for line in source.read_text().splitlines() if "#include" in line] == [
        f'#include "{header.name}"',
        "#include <math.h>",
    ]
    library = folder / f"{dtype}.so"
    subprocess.run(
        [compiler(), "-O0", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True
    )
    loaded = ctypes.CDLL(str(library))
    kind = np.float32 if dtype == "float" else np.float64

    def call(name: str, *inputs: Any, out: tuple[int, ...]) -> list[np.ndarray]:
        given = [np.ascontiguousarray(x, dtype=kind) for x in inputs]
        results = [np.empty(n, dtype=kind) for n in out]
        getattr(loaded, f"{model.name}_{name}")(
            *(ctypes.c_void_p(x.ctypes.data) for x in (*given, *results))
        )
        return results

    return call


@pytest.mark.parametrize(("dtype", "error"), [("double", 1e-12), ("float", 2e-5)])
def test_a_controlled_arm(dtype: str, error: float, tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    tip = m.bodies[-1].name
    law = rf.control.PID(rf.motion.Hold([0.1, 0.2, 0.3]), kp=20.0, ki=5.0, kd=2.0)
    call = build(
        m, tmp_path, dtype, control=law, damping=0.1, step="euler", frames=[tip],
        algorithms=["acceleration"],
    )  # fmt: skip
    q, v = m.random(seed=3)
    tau, t, z = np.array([0.3, -0.1, 0.2]), [0.0], np.zeros(3)
    near: Any = {"rtol": error, "atol": error}
    forces, rates = call("control", t, q, v, z, out=(3, 3))
    np.testing.assert_allclose(forces, law.torque(m, 0.0, q, v), **near)
    np.testing.assert_allclose(rates, [0.1, 0.2, 0.3] - q, **near)
    a, _ = call("acceleration", q, v, tau, t, z, out=(3, 3))
    np.testing.assert_allclose(a, m.forward_dynamics(q, v, forces + tau - 0.1 * v), **near)
    after = call("euler_step", [0.0, 1e-2], q, v, z, tau, out=(3, 3, 3))
    np.testing.assert_allclose(after, [q + 1e-2 * v, v + 1e-2 * a, 1e-2 * rates], **near)
    rotation, position = call(f"pose_{tip}", q, out=(9, 3))
    np.testing.assert_allclose(position, m.pose(q, tip).position, **near)
    np.testing.assert_allclose(rotation.reshape(3, 3), m.pose(q, tip).rotation, **near)


def test_derivatives(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    call = build(m, tmp_path, algorithms=["forward_dynamics", "mass_matrix"], derivatives=True)
    q, v = m.random(seed=3)
    tau = np.array([0.3, -0.1, 0.2])
    by = call("forward_dynamics_derivatives", q, v, tau, out=(9, 9, 9))
    for found, want in zip(by, m.forward_dynamics_derivatives(q, v, tau), strict=True):
        np.testing.assert_allclose(found.reshape(3, 3), want, rtol=1e-10, atol=1e-10)
    (slopes,) = call("mass_matrix_derivatives", q, out=(27,))
    for k, e in enumerate(np.eye(3) * 1e-6):
        change = (m.mass_matrix(q + e) - m.mass_matrix(q - e)).ravel() / 2e-6
        np.testing.assert_allclose(slopes.reshape(9, 3)[:, k], change, atol=1e-8)


def test_a_closed_loop_and_the_header(tmp_path: Path) -> None:
    m = rf.load("slider_crank")
    call = build(m, tmp_path, algorithms=["forward_dynamics"], step="euler", derivatives=True)
    state = m.assemble({"crank": 0.3}, {"crank": 1.0})
    after = call("euler_step", [0.0, 1e-3], state.q, state.v, np.zeros(m.nv), out=(m.nq, m.nv))
    one = rf.rollout(m, state.q, state.v, steps=1, dt=1e-3, method="euler")
    np.testing.assert_allclose(after, [one.q, one.v], atol=1e-12)
    tau = np.array([2.0, 0.0, 0.0])
    by = call("forward_dynamics_derivatives", state.q, state.v, tau, out=(9, 9, 9))
    (want,) = m.derivatives("forward_dynamics", state.q, state.v, tau)
    np.testing.assert_allclose(by, [x.ravel() for x in want], rtol=1e-10, atol=1e-10)
    header = (tmp_path / "slider_crank.h").read_text()
    for name in m.coordinates:
        assert name in header
    assert "rad/s" in header
    assert "N m" in header


def test_names_cannot_leave_a_comment(tmp_path: Path) -> None:
    b = rf.Builder("evil")
    b.link("a*/ int x; /*\\", axis=(0, 0, 1), mass=1.0, inertia=(1, 1, 1))
    build(b.model(), tmp_path, algorithms=["gravity_forces"])


def test_what_c_cannot_hold_is_refused(tmp_path: Path) -> None:
    m = rf.load("planar_3r")
    with pytest.raises(rf.SimulationError, match="no law that C could hold"):
        rf.to_c(m, tmp_path, control=lambda t, q, v: np.zeros(3))
    sampled = rf.control.GravityCompensation(rate_hz=100.0)
    with pytest.raises(rf.SimulationError, match="call control at its rate"):
        rf.to_c(m, tmp_path, control=sampled, step="rk4")
    with pytest.raises(rf.RamifyError, match="'half'"):
        rf.to_c(m, tmp_path, dtype="half")  # type: ignore[arg-type]
    with pytest.raises(rf.StateError, match="damping"):
        rf.to_c(m, tmp_path, damping=-1.0)
    (tmp_path / "file").touch()
    with pytest.raises(rf.RamifyError, match="cannot be made"):
        rf.to_c(m, tmp_path / "file")
    rf.to_c(m, tmp_path, control=sampled, algorithms=())
    assert "planar_3r_control(" in (tmp_path / "planar_3r.h").read_text()


def test_the_header_tells_the_sign_of_passive_forces(tmp_path: Path) -> None:
    m = rf.Builder("a").link("x", mass=1.0, inertia=(1, 1, 1), friction=1.0).model()
    header, _ = rf.to_c(m, tmp_path, algorithms=["passive_forces"])
    assert "as they act on the joints" in header.read_text()
