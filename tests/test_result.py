"""Results: names, units, metadata, files that read back bit for bit, tables, plots."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from redysim_data import published, times, variables
from reference_runs import NAMES, changed, pendulum, run, strange
from scipy.io import netcdf_file

import ramify as rf
from ramify.api.model import Model
from ramify.api.result import Result
from ramify.files.redysim.redysim_robot import from_variables
from ramify.files.robot_writer import to_yaml
from ramify.model.shape import Shape
from ramify.motion import Motion, cycloid
from ramify.runs import run_export
from ramify.runs.run_record import Work


@pytest.fixture(scope="module")
def result() -> Result:
    model = strange()
    desired = cycloid(np.zeros(3), [0.5, 0.1, 0.5], 0.5, 26)
    found = run(
        model,
        [0.3, 0.0, -0.2],
        [0.0, 0.1, 0.5],
        0.5,
        control=lambda t, q, v: -2.0 * v,
        rows=26,
        desired=desired,
    )
    options = {
        **found.options,
        "limits": np.array([1.0, np.inf]),
        "control": "PD <i>",
        "n": np.int64(3),
        "seed": None,
        "pair": (1, 2.5),
    }
    return changed(found, options=options)


@pytest.fixture(scope="module")
def free() -> Result:
    model = rf.load("space_3_link", base="free")
    v = 0.4 * np.cos(np.arange(model.nv))
    return run(
        model,
        model.neutral(),
        v,
        1.0,
        rows=21,
        control=lambda t, q, v: np.r_[np.zeros(6), -0.1 * v[6:]],
    )


def same(a: Result, b: Result) -> bool:
    arrays = all(
        np.array_equal(getattr(a, n), getattr(b, n), equal_nan=True)
        for n in ("t", "q", "v", "a", "tau")
    )
    works = all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a.work, b.work, strict=True))
    return arrays and works and to_yaml(a.model) == to_yaml(b.model) and a.status == b.status


# ---- what it holds ----


def test_names_and_units(result: Result) -> None:
    assert result.columns["q"] == result.columns["tau"] == NAMES
    assert result.units["q"] == ("rad", "m", "rad")
    assert result.units["v"] == ("rad/s", "m/s", "rad/s")
    assert result.units["a"] == ("rad/s^2", "m/s^2", "rad/s^2")
    assert result.units["tau"] == ("N m", "N", "N m")
    assert len(result) == 26
    np.testing.assert_array_equal(result[NAMES[1]], result.q[:, 1])
    with pytest.raises(rf.ModelError, match="no joint or coordinate 'nonsense'"):
        _ = result["nonsense"]
    with pytest.raises(rf.ModelError, match="name of a joint"):
        _ = result[3]  # type: ignore[index]


def test_quaternions_have_names_and_the_unit_one(free: Result) -> None:
    assert free.units["q"][:7] == ("m", "m", "m", "1", "1", "1", "1")
    assert free[free.model.joints[0].name].shape == (21, 7)
    np.testing.assert_array_equal(free[free.model.coordinates[3]], free.q[:, 3])


def test_energy_and_momentum_follow_once(free: Result) -> None:
    e = free.model.energy(free.q, free.v)
    np.testing.assert_array_equal(free.energy.total, e.kinetic + e.potential)
    np.testing.assert_array_equal(free.momentum.linear, free.model.momentum(free.q, free.v).linear)
    assert free.energy is free.energy
    assert free.audit is free.audit


def test_arrays_are_copies_and_read_only() -> None:
    model, t, x = pendulum(), np.linspace(0, 1, 3), np.zeros((3, 1))
    r = Result(model, t, x, x, x, x, Work(t * 0, t * 0))
    x[:] = 7.0
    assert not r.q.any()
    for array in (r.t, r.q, r.tau, r.work.actuator, r.energy.kinetic):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_bad_arrays_are_refused() -> None:
    model, t, x = pendulum(), np.linspace(0, 1, 3), np.zeros((3, 1))
    work = Work(t * 0, t * 0)
    bad = np.array(x)
    bad[1] = np.nan
    with pytest.raises(rf.StateError, match=r"v has shape \(3, 2\)"):
        Result(model, t, x, np.zeros((3, 2)), x, x, work)
    with pytest.raises(rf.StateError, match=r"rod at t = 0.5 s"):
        Result(model, t, bad, x, x, x, work)
    with pytest.raises(rf.StateError, match="increase"):
        Result(model, t[::-1], x, x, x, x, work)
    with pytest.raises(rf.StateError, match="at least one time"):
        Result(model, [], x, x, x, x, work)  # type: ignore[arg-type]
    with pytest.raises(rf.StateError, match=r"work\.dissipated"):
        Result(model, t, x, x, x, x, Work(t, t[:2]))
    with pytest.raises(rf.StateError, match=r"desired\.q"):
        Result(model, t, x, x, x, x, work, desired=Motion(t, x[:2], x, x))


def test_metadata_suffice_to_repeat_the_run(result: Result) -> None:
    meta = json.loads(json.dumps(dict(result.metadata), allow_nan=False))
    assert meta["robot"] == result.model.name
    assert meta["robot_sha256"] == hashlib.sha256(to_yaml(result.model).encode()).hexdigest()
    assert {"ramify", "numpy", "scipy", "python"} <= set(meta["versions"])
    assert meta["options"]["rtol"] == 1e-9
    assert meta["options"]["limits"] == [1.0, "inf"]
    assert meta["status"] == "finished"


def test_how_it_shows(result: Result) -> None:
    shown = changed(result)
    assert "rows" in repr(shown)
    assert "audit" not in repr(shown)
    assert shown.audit.passed
    assert "audit passed" in repr(shown)
    page = changed(result, status="failed: <script>")._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page


def test_a_pickle_is_the_run(result: Result) -> None:
    other = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(other.q, result.q)
    assert other.metadata == result.metadata
    assert not other.q.flags.writeable


# ---- files ----


def test_a_file_gives_the_run_again_bit_for_bit(
    result: Result, free: Result, tmp_path: Path
) -> None:
    tau = np.array(free.tau)
    tau[-1] = [np.nan, -0.0, 5e-324, np.inf, *tau[-1, 4:]]
    for k, r in enumerate((result, free, changed(free, tau=tau, status="failed: NaN"))):
        path = tmp_path / f"run {k} ü.nc"
        r.save(path)
        back = Result.open(path)
        assert same(r, back)
        assert dict(back.metadata) == json.loads(json.dumps(dict(r.metadata)))
        assert dict(back.options) == r.metadata["options"]
        np.testing.assert_array_equal(np.signbit(back.tau), np.signbit(r.tau))
        back.save(path)
        assert same(Result.open(path), r)
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".nc"] * 3


def test_the_desired_motion_is_kept(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "run.nc")
    back = Result.open(tmp_path / "run.nc").desired
    assert back is not None
    assert result.desired is not None
    for a, b in zip(back, result.desired, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_file_describes_itself(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes()[:4] == b"CDF\x02"
    with netcdf_file(tmp_path / "run.nc", "r", mmap=False) as file:
        assert set(file.dimensions) >= {"time", "coordinate", "velocity"}
        assert file.variables["time"].units == b"s"
        assert file.variables["tau"].column_units == b"N m, N, N m"
        assert file.variables["q"].long_name == b"joint coordinates"
        names = [b"".join(row).rstrip(b"\0").decode() for row in file.variables["coordinate"][:]]
        assert tuple(names) == NAMES
        assert json.loads(file.metadata)["robot"] == result.model.name


def test_damage_is_noticed(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "run.nc")
    good = (tmp_path / "run.nc").read_bytes()
    rng = random.Random(1)
    broken = [
        b"",
        b"CDF\x02",
        b"CDF\x01" + bytes(200),
        b"hello",
        b"\x89HDF\r\n\x1a\n" + bytes(99),
        os.urandom(5000),
        b"CDF\x02" + os.urandom(5000),
    ]
    broken += [good[: rng.randrange(len(good))] for _ in range(25)]
    for k in range(300):  # most of them in the header
        data = bytearray(good)
        at = rng.randrange(len(good) if k % 3 else good.index(b"sha256") + 80)
        data[at] ^= 1 << rng.randrange(8)
        broken.append(bytes(data))
    broken += [good[:-1], good[:-8], good + b"\0", good + bytes(4), good + good]
    words = (
        b"N m, N, N m",
        b"joint coordinates",
        b"simulation of",
        b"velocity_name_length",
        b"rad/s",
    )
    for word in words:  # units, meanings, the title, a dimension: each one letter off
        assert word in good
        broken.append(good.replace(word, word[:-1] + b"x", 1))
    path = tmp_path / "bad.nc"
    for data in broken:
        path.write_bytes(data)
        with pytest.raises(rf.SimulationError, match=r"bad\.nc"):
            Result.open(path)


def test_what_is_no_result_is_refused(result: Result, tmp_path: Path) -> None:
    with pytest.raises(rf.RamifyError, match="no such file"):
        Result.open(tmp_path / "absent.nc")
    with pytest.raises(rf.RamifyError, match=rf"^{re.escape(str(tmp_path))} is a directory"):
        Result.open(tmp_path)
    with netcdf_file(tmp_path / "foreign.nc", "w") as file:
        file.createDimension("x", 3)
        file.createVariable("x", "d", ("x",))[:] = [1.0, 2.0, 3.0]
    with pytest.raises(rf.RamifyError, match=r"^\S+foreign\.nc: a NetCDF file, but not one"):
        Result.open(tmp_path / "foreign.nc")
    result.save(tmp_path / "run.nc")
    with pytest.raises(rf.RamifyError, match="another robot than 'pendulum'"):
        Result.open(tmp_path / "run.nc", model=pendulum())
    assert Result.open(tmp_path / "run.nc", model=result.model).model is result.model
    for target in (tmp_path, tmp_path / "absent" / "run.nc"):
        with pytest.raises(rf.RamifyError):
            result.save(target)


def test_a_robot_that_could_not_be_read_again_is_refused(tmp_path: Path) -> None:
    arm = pendulum()
    shape = Shape("box", (0.1, 0.2, 0.3))
    body = arm.bodies[0]
    large = replace(arm, bodies=(replace(body, shapes=(shape,) * 20_000), *arm.bodies[1:]))
    path = tmp_path / "run.nc"
    with pytest.raises(rf.SimulationError, match=r"a robot file has at most 100000.*to_csv"):
        run(large, [0.1], [0.0], 0.01).save(path)
    assert not path.exists()
    some = replace(arm, bodies=(replace(body, shapes=(shape,) * 100), *arm.bodies[1:]))
    run(some, [0.1], [0.0], 0.01).save(path)
    assert to_yaml(Result.open(path).model) == to_yaml(some)


def test_a_failed_save_leaves_the_old_file(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.nc"
    result.save(path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(rf.RamifyError, match="No space left"):
        changed(result, status="interrupted").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


SAVER = """
import sys
import numpy as np
import ramify as rf
from ramify.api.result import Result
from ramify.runs.run_record import Work
model = rf.Builder("pendulum").link("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1.0)).model()
runs = []
for rows in (3, 60_000):
    t, x = np.arange(float(rows)), np.full((rows, 1), float(rows))
    runs.append(Result(model, t, x, x, x, x, Work(t, t)))
runs[0].save(sys.argv[1])
print("ready", flush=True)
while True:
    for r in runs:
        r.save(sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a POSIX signal")
def test_a_killed_save_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    path, rng, seen = tmp_path / "run.nc", random.Random(2), set()
    for _ in range(4):
        saver = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert saver.stdout is not None
        assert saver.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.08))
        saver.send_signal(signal.SIGKILL)
        saver.wait()
        saver.stdout.close()
        r = Result.open(path)
        assert len(r) in (3, 60_000)
        assert (r.q == len(r)).all()
        seen.add(len(r))
    assert seen


# ---- tables ----


def test_csv(result: Result, tmp_path: Path) -> None:
    result.to_csv(tmp_path / "run.csv")
    rows = list(csv.reader(io.StringIO((tmp_path / "run.csv").read_text(encoding="utf-8"))))
    assert rows[0][0] == "time [s]"
    assert rows[0][1:4] == [
        f"q {name} [{unit}]" for name, unit in zip(NAMES, result.units["q"], strict=True)
    ]
    numbers = np.array([[float(x) for x in row] for row in rows[1:]])
    np.testing.assert_array_equal(numbers[:, 0], result.t)
    np.testing.assert_array_equal(numbers[:, 1:4], result.q)
    np.testing.assert_array_equal(numbers[:, -1], result.energy.total)


def test_xarray(result: Result, tmp_path: Path) -> None:
    import xarray

    data = result.to_xarray()
    np.testing.assert_array_equal(data.q.sel(coordinate=NAMES[1]), result.q[:, 1])
    assert data.time.attrs["units"] == "s"
    assert data.tau.attrs["column_units"] == "N m, N, N m"
    assert data.kinetic.dims == ("time",)
    assert json.loads(data.attrs["metadata"])["status"] == "finished"
    result.save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="scipy") as file:
        np.testing.assert_array_equal(file.q.sel(coordinate=NAMES[2]), result.q[:, 2])


def test_pandas(result: Result) -> None:
    frame = result.to_pandas()
    np.testing.assert_array_equal(frame["tau"][NAMES[0]], result.tau[:, 0])
    np.testing.assert_array_equal(frame.index, result.t)
    assert frame.attrs["units"][f"q {NAMES[1]}"] == "m"


@pytest.mark.parametrize("package", ["xarray", "pandas"])
def test_a_missing_extra_is_named(
    result: Result, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(rf.RamifyError, match=rf"{package} is not installed.*ramify\[data\]"):
        getattr(result, f"to_{package}")()


def test_redysim_layout(result: Result, tmp_path: Path) -> None:
    result.to_redysim(tmp_path / "out")
    read = {p.name: np.loadtxt(p) for p in (tmp_path / "out").iterdir()}
    assert set(read) == {"statevar.dat", "timevar.dat", "tor.dat", "envar.dat", "mtvar.dat"}
    state = np.concatenate([result.q, result.v, -result.work.actuator[:, None]], axis=1)
    np.testing.assert_allclose(read["statevar.dat"], state, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(read["timevar.dat"], result.t, rtol=1e-6)
    np.testing.assert_allclose(read["tor.dat"], result.tau, rtol=1e-6, atol=1e-15)
    pe, ke, ae, te = read["envar.dat"].T
    np.testing.assert_allclose(te, pe + ke + ae, atol=1e-5)
    assert np.ptp(te) < 1e-5
    assert (tmp_path / "out" / "envar.dat").read_text().splitlines()[0].endswith("e+00 ")


def test_redysim_floating_base_as_redysim_prints_it(tmp_path: Path) -> None:
    """A real run of ReDySim, read as a quaternion base, comes out as the file it came from."""
    name = "floating_3_link_fordyn"
    t, state, tabled = times(name), published(name, "statevar"), published(name, "envar")
    euler, free = (
        Model.of(from_variables(variables(name), base=b)) for b in ("free_euler", "free")
    )
    q, v = state[:, :9], state[:, 9:18]
    phi, theta, psi = q[:, 3:6].T
    half = [
        np.stack([np.cos(0.5 * x), *(np.sin(0.5 * x) * (a == k) for a in range(3))], axis=1)
        for x, k in ((phi, 2), (theta, 0), (psi, 1))
    ]
    from ramify.model.configuration import multiply

    quaternion = multiply(multiply(half[0], half[1]), half[2])
    dphi, dtheta, dpsi = v[:, 3:6].T
    s, c = np.sin(psi), np.cos(psi)
    w = np.stack(
        [
            dtheta * c - dphi * np.cos(theta) * s,
            dpsi + dphi * np.sin(theta),
            dtheta * s + dphi * np.cos(theta) * c,
        ],
        axis=1,
    )
    assert free.nq == 10
    assert euler.nv == 9
    none = np.zeros((len(t), 9))
    work = Work(-tabled[:, 2], np.zeros(len(t)))
    made = Result(
        free,
        t,
        np.concatenate([q[:, :3], quaternion, q[:, 6:]], axis=1),
        np.concatenate([v[:, :3], w, v[:, 6:]], axis=1),
        none,
        none,
        work,
    )
    made.to_redysim(tmp_path)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "statevar.dat"), state, atol=1e-6)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "envar.dat"), tabled, atol=3e-6)
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "mtvar.dat"), published(name, "mtvar"), atol=5e-6
    )
    assert np.loadtxt(tmp_path / "tor.dat").shape == (len(t), 3)


def test_redysim_state_of_inverse_dynamics_as_redysim_prints_it(tmp_path: Path) -> None:
    """A prescribed motion on a fixed base has q, v and a in its rows, as those of runinv."""
    name = "kuka_kr5_invdyn"
    kuka = Model.of(from_variables(variables("kuka_kr5")))
    motion = rf.motion.Cycloid(np.zeros(6), np.pi / 3, duration=1.0)
    r = rf.simulate(kuka, 1.0, control=rf.control.Prescribed(motion), dt_out=0.1)
    r.to_redysim(tmp_path)
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "statevar.dat"), published(name, "statevar"), atol=2e-6
    )
    np.testing.assert_allclose(np.loadtxt(tmp_path / "tor.dat"), published(name, "tor"), atol=2e-4)


def test_redysim_rows_of_a_base_in_a_plane(tmp_path: Path) -> None:
    """The files are those of the same motion with all six coordinates of the base."""
    q0, v0 = np.array([0.1, 0.2, 4.0, *range(6)]), 0.1 * np.arange(9.0)
    files: dict[str, list[np.ndarray]] = {}
    for base, at in (("planar", [*range(9)]), ("free_euler", [0, 1, 3, *range(6, 12)])):
        m = Model.of(from_variables(variables("floating_dual_arm"), base=base))
        q, v = np.zeros(m.nq), np.zeros(m.nv)
        q[at], v[at] = q0, v0
        written = rf.simulate(m, 0.2, q, v, dt_out=0.1).to_redysim(tmp_path / base)
        files[base] = [np.loadtxt(path) for path in written]
    assert [x.shape for x in files["planar"]] == [(3, 25), (3,), (3, 6), (3, 4), (3, 6)]
    for found, expected in zip(*files.values(), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-5)


def test_redysim_angles_of_a_base_in_a_tilted_plane() -> None:
    """Place and R = Rz Rx Ry are those of the base."""
    axis = (0.0, -0.6, 0.8)
    m = (
        rf.Builder("plate")
        .link("plate", joint="planar", axis=axis, actuated=False, mass=1.0, inertia=(1, 1, 1))
        .model()
    )
    r = run(m, np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]), 0.2, rows=201)
    q, v = run_export._with_angles(r)
    R, place = m.kinematics(r.q)
    np.testing.assert_allclose(q[:, :3], place[:, 0], atol=1e-12)
    c, s = np.cos(q[:, 3:]), np.sin(q[:, 3:])
    expected = [-s[:, 0] * c[:, 1], c[:, 0] * c[:, 1], s[:, 1], -c[:, 1] * s[:, 2]]
    found = R[:, 0, [0, 1, 2, 2], [1, 1, 1, 0]]
    np.testing.assert_allclose(found, np.stack(expected, axis=1), atol=1e-12)
    np.testing.assert_allclose(np.gradient(q, 1e-3, axis=0)[1:-1], v[1:-1], atol=1e-4)


def test_redysim_momentum_is_about_the_origin(free: Result, tmp_path: Path) -> None:
    """Body by body from its Jacobian at its mass centre: L = sum (R I R' w + c x m v)."""
    free.to_redysim(tmp_path)
    rows = np.loadtxt(tmp_path / "mtvar.dat")
    model, expected = free.model, np.zeros((len(free.t), 6))
    R, r = model.kinematics(free.q)
    for b, body in enumerate(model.bodies):
        J = model.jacobian(free.q, body.name, body.com)
        w, v = np.split(np.einsum("tij,tj->ti", J, free.v), 2, axis=1)
        centre = r[:, b] + R[:, b] @ body.com
        spin = np.einsum("tij,jk,tlk,tl->ti", R[:, b], body.inertia, R[:, b], w)
        expected += np.concatenate([body.mass * v, spin + np.cross(centre, body.mass * v)], axis=1)
    np.testing.assert_allclose(rows, expected, atol=1e-5 * np.abs(expected).max())
    assert np.abs(rows[:, 3:] - free.momentum.angular).max() > 0.1
    assert np.ptp(rows[:, 3:], axis=0).max() < 1e-5  # no outer force: about the origin it stays


def test_redysim_rows_of_a_run_on_the_ground(tmp_path: Path) -> None:
    """PE, KE, AE, TE, GE, as ReDySim plots them, and GE, AE after the state, as its energy.m takes
    them; GE is what the ground took, so TE stays. Catches columns in another order.
    """
    r = rf.scenario("quadruped_trot").run(t_end=0.1)
    r.to_redysim(tmp_path)
    rows, state = (np.loadtxt(tmp_path / f"{name}.dat") for name in ("envar", "statevar"))
    pe, ke, ae, te, ge = rows.T
    assert r.contacts is not None
    assert ge.max() > 0.3
    np.testing.assert_allclose(te, pe + ke + ae + ge, atol=1e-4)
    assert np.ptp(te) < 1e-3 * np.ptp(pe)
    assert np.abs(ae - ge).max() > 0.1
    np.testing.assert_array_equal(state[:, -2:], rows[:, [4, 2]])


def test_redysim_rows_of_a_closed_robot(tmp_path: Path) -> None:
    """tor.dat holds the driving torque and the multipliers of the cut joint (8.4)."""
    r = rf.scenario("four_bar_turn").run(t_end=0.1)
    r.to_redysim(tmp_path)
    tor = np.loadtxt(tmp_path / "tor.dat")
    driven = r.model.joint_slice(next(j.name for j in r.model.joints if j.actuated))
    assert r.loops is not None
    expected = np.concatenate([r.tau[:, driven], r.loops.multipliers], axis=1)
    np.testing.assert_allclose(tor, expected, rtol=1e-6)
    J = np.array([r.model.constraints(q, v).J for q, v in zip(r.q, r.v, strict=True)])
    felt = r.model.tree.inverse_dynamics(r.q, r.v, r.a)  # (8.2): tau + J' lambda
    pushed = np.einsum("tij,ti->tj", J, tor[:, 1:])
    pushed[:, driven] += tor[:, :1]
    np.testing.assert_allclose(pushed, felt, atol=1e-4 * np.abs(felt).max())


def test_angles_of_any_base_are_the_same_attitude(free: Result) -> None:
    """Rates of the angles are the derivatives of the angles."""
    q, v = run_export._with_angles(run(free.model, free.q[0], free.v[0], 0.2, rows=2001))
    slope = np.gradient(q[:, 3:6], 1e-4, axis=0)
    np.testing.assert_allclose(slope[1:-1], v[1:-1, 3:6], atol=1e-6)


def test_ball_joints_and_gimbal_lock_are_refused(free: Result, tmp_path: Path) -> None:
    ball = (
        rf.Builder("ball")
        .link("rod", joint="ball", mass=1.0, com=(0, 0, -1), inertia=(1, 1, 1))
        .model()
    )
    with pytest.raises(rf.RamifyError, match="'rod' is a ball joint"):
        run(ball, ball.neutral(), np.zeros(3), 0.1, rows=3).to_redysim(tmp_path)
    q = np.array(free.q)
    q[5, 3:7] = [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]
    with pytest.raises(rf.RamifyError, match="gimbal lock"):
        changed(free, q=q).to_redysim(tmp_path)
