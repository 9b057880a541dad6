"""ReDySim's models and runs: its files are read, its published numbers are met, broken files are
refused at once.
"""

from __future__ import annotations

import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from redysim_data import ROBOTS, mat_bytes, numbers, published, times, variables
from scipy.integrate import DOP853
from test_floating_robots import in_pinocchio, pinocchio_torques

import ramify as rf
from ramify.api.builders import as_model
from ramify.cli import main
from ramify.files.import_report import ImportReport
from ramify.files.load import convert
from ramify.files.redysim.mat_file import read_mat
from ramify.files.redysim.matlab_text import MAX_DEPTH, parse_matlab
from ramify.files.redysim.matlab_values import run_matlab
from ramify.files.redysim.reader import read_redysim, values_of
from ramify.files.redysim.redysim_robot import from_variables
from ramify.files.redysim.redysim_variables import dialect
from ramify.files.robot_writer import to_yaml
from ramify.model.machine import Keyframe

read_redysim, from_variables = as_model(read_redysim), as_model(from_variables)


def read_m(text: str, **options: Any) -> rf.Model:
    """The robot in the text of an ``inputs.m``."""
    report = ImportReport("inputs.m")
    values, _ = values_of(text, "inputs.m", Path(), report)
    return from_variables(values, "redysim", report, **options)


MATS = ("kuka_kr5", "floating_3_link", "floating_3_link_fordyn")
START, END = np.array([0.3803, -0.6198, 1.2867]), -np.pi / 2


@pytest.fixture(scope="module")
def mats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``inputs.mat`` of some examples, as MATLAB writes them."""
    folder = tmp_path_factory.mktemp("mats")
    for name in MATS:
        (folder / f"{name}_inputs.mat").write_bytes(mat_bytes(numbers(name)))
    return folder


def report_of(model: rf.Model) -> ImportReport:
    report = model.metadata["report"]
    assert isinstance(report, ImportReport)
    return report


# ---- every robot ----


@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_loads(name: str) -> None:
    data = variables(name)
    model = from_variables(data)
    assert dialect(data) == data["kind"]
    assert model.name == data["name"]
    assert model.nv == data["n"] + (0 if data["kind"] == "fixed" else 5)
    assert model.mass == pytest.approx(sum(data["m"]))
    assert model.gravity == tuple(map(float, data["g"]))
    if data["kind"] == "fixed":
        assert [joint.actuated for joint in model.joints for _ in range(joint.dof)] == [
            x == 1 for x in data["aj"]
        ]
        np.testing.assert_array_equal(model.metadata["redysim"]["th"], data["th"])
    else:
        assert (model.joints[0].kind, model.joints[0].sequence, model.joints[0].actuated) == (
            "free_euler",
            "ZXY",
            False,
        )
    text = str(report_of(model))
    assert not any(file in text for file in ("torque.m", "trajectory.m", "initials.m"))
    assert ("jacobian.m" in text) == (data.get("type") == 1)
    assert ("ground" in model.metadata) == (data["kind"] == "legged")
    assert any(body.points for body in model.bodies) == (data["kind"] == "legged")


def test_the_linter_names_the_two_impossible_inertias() -> None:
    """The 3-RRR's platform moves in a plane only, so its incomplete tensor is a note; the biped's
    trunk is an error.
    """
    found = {}
    for name in ROBOTS:
        codes = [(f.code, f.where) for f in from_variables(variables(name)).check()]
        found[name] = [
            (code, where)
            for code, where in codes
            if code in ("triangle-inequality", "inertia-incomplete", "inertia-indefinite")
        ]
    assert {name.removesuffix("_fordyn"): where for name, where in found.items() if where} == {
        "3_rrr_parallel_robot": [("inertia-incomplete", "link3")],
        "legged_biped": [("triangle-inequality", "base")],
    }


@pytest.mark.parametrize(
    "name",
    [
        "floating_3_link",
        "floating_7_link",
        "floating_dual_arm",
        "legged_biped",
        "legged_hexapod",
        "legged_quadruped",
    ],
)
def test_floating_robots_agree_with_pinocchio(name: str) -> None:
    model = from_variables(variables(name), base="free", merge=False)
    peer = in_pinocchio(model)
    q, v, a = (
        np.random.default_rng(0).normal(size=model.nq),
        *np.random.default_rng(1).normal(size=(2, model.nv)),
    )
    q[3:7] /= np.linalg.norm(q[3:7])
    expected = pinocchio_torques(peer, model.kinematics(q).rotation[0], q, v, a)
    np.testing.assert_allclose(
        model.inverse_dynamics(q, v, a), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


# ---- massless links ----


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("legged_quadruped", {"universal": 4}),
        ("spatial_biped", {"universal": 2}),
        ("spatial_biped_fordyn", {"universal": 2}),
    ],
)
def test_merged_joints_give_the_torques_of_the_chain(name: str, kinds: dict[str, int]) -> None:
    data = variables(name)
    merged, chain = from_variables(data), from_variables(data, merge=False)
    found = [joint.kind for joint in merged.joints]
    assert {kind: found.count(kind) for kind in kinds} == kinds
    assert merged.nv == chain.nv
    assert len(chain.bodies) - len(merged.bodies) == sum(kinds.values())
    q, v, a = np.random.default_rng(4).normal(size=(3, 5, chain.nv))
    tau = chain.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        merged.inverse_dynamics(q, v, a), tau, rtol=0, atol=1e-11 * np.abs(tau).max()
    )
    assert "merged" in str(report_of(merged))


def test_hips_whose_axes_oppose_each_other_stay_three_joints() -> None:
    model = from_variables(variables("spatial_biped"))
    assert "link4 link5 link6: massless links kept" in str(report_of(model))


def three_links(kinds: str, alp: list[float], **more: Any) -> dict[str, Any]:
    """A carrier, then a run of massless links with one end link, then one more link."""
    n = len(kinds) + 2
    zero = [0.0] * n
    solid = [1.0] + [0.0] * (len(kinds) - 1) + [2.0, 1.5]
    base = {
        "n": n, "alp": [0.3, *alp, 0.4], "a": [0.1, 0.2, *[0.0] * (n - 3), 0.3], "b": [0.05, 0.07, *[0.0] * (n - 3), 0.1],
        "th": zero, "bt": list(range(n)), "r": [1, *(int(k == "R") for k in kinds), 1], "aj": [1] * n, "g": [0.0, -9.81, 1.0],
        "dx": [0.1 * x for x in solid], "dy": [0.05 * x for x in solid], "dz": zero, "m": solid, "Icxx": [0.02 * x for x in solid],
        "Icyy": [0.03 * x for x in solid], "Iczz": [0.04 * x for x in solid], "Icxy": zero, "Icyz": zero, "Iczx": zero,
    }  # fmt: skip
    return base | more


RIGHT = np.pi / 2
RUNS = [
    ("RR", [0.7, RIGHT], "universal", {}),
    ("RR", [0.7, -RIGHT], "universal", {}),
    ("RRR", [0.7, RIGHT, -RIGHT], "spherical", {}),
    ("RRR", [0.7, -RIGHT, RIGHT], "spherical", {}),
    ("RRR", [0.7, RIGHT, RIGHT], None, {}),  # third axis against the first: no Euler sequence
    ("RR", [0.7, 1.0], None, {}),
    ("RR", [0.7, RIGHT], None, {"aj": [1, 1, 0, 1]}),
    ("RR", [0.7, RIGHT], None, {"a": [0.1, 0.2, 0.01, 0.3]}),
    ("RP", [0.7, 0.0], "cylindrical", {"th": [0, 0, 0.6, 0]}),
    ("RP", [0.7, 0.2], None, {}),
    ("PR", [0.7, 0.0], None, {}),
    ("PPR", [0.7, RIGHT, RIGHT], "planar", {"th": [0, 0.4, RIGHT, 0, 0]}),
    ("PPR", [0.7, RIGHT, RIGHT], None, {"th": [0, 0.4, 0.3, 0, 0]}),
    ("PPR", [0.7, RIGHT, -RIGHT], None, {"th": [0, 0.4, RIGHT, 0, 0]}),  # left-handed
    ("PPR", [0.7, -RIGHT, RIGHT], "planar", {"th": [0, 0.4, -RIGHT, 0, 0]}),
]


@pytest.mark.parametrize(("kinds", "alp", "expected", "more"), RUNS)
def test_runs_of_massless_links(
    kinds: str, alp: list[float], expected: str | None, more: dict[str, Any]
) -> None:
    data = three_links(kinds, alp, **more)
    merged, chain = from_variables(data), from_variables(data, merge=False)
    assert [joint.kind for joint in merged.joints] == (
        ["revolute", expected, "revolute"] if expected else [j.kind for j in chain.joints]
    )
    q, v, a = np.random.default_rng(9).normal(size=(3, 4, chain.nv))
    tau = chain.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(
        merged.inverse_dynamics(q, v, a), tau, rtol=0, atol=1e-12 * np.abs(tau).max()
    )


# ---- published runs ----


def test_kuka_meets_its_published_torques(mats: Path) -> None:
    model = rf.load(mats / "kuka_kr5_inputs.mat")
    state, torques = published("kuka_kr5_invdyn", "statevar"), published("kuka_kr5_invdyn", "tor")
    q, v, a = np.split(state, 3, axis=1)
    assert torques.shape == (11, 6)
    np.testing.assert_allclose(model.inverse_dynamics(q, v, a), torques, rtol=0, atol=1e-4)


def cycloid(t: Any, T: float) -> tuple[Any, Any, Any]:
    way, turn = END - START, 2.0 * np.pi * np.asarray(t)[..., None] / T
    return (
        START + way * (turn - np.sin(turn)) / (2.0 * np.pi),
        way / T * (1.0 - np.cos(turn)),
        2.0 * np.pi * way / T**2 * np.sin(turn),
    )


@pytest.mark.parametrize(
    ("run", "mat"), [("invdyn", "floating_3_link"), ("fordyn", "floating_3_link_fordyn")]
)
def test_floating_3_link_energy_and_momenta(run: str, mat: str, mats: Path) -> None:
    """Rows are printed with seven digits; ReDySim's angular momentum is about the world's origin."""
    model = rf.load(mats / f"{mat}_inputs.mat")
    state = published(f"floating_3_link_{run}", "statevar")
    q, v = state[:, :9], state[:, 9:18]
    kinetic = published(f"floating_3_link_{run}", "envar")[:, 1]
    printed = 5e-7 * np.maximum(kinetic, np.abs(v).max(axis=1))
    assert (np.abs(model.energy(q, v).kinetic - kinetic) <= 2.0 * printed + 1e-9).all()
    linear, angular = model.momentum(q, v)
    about_origin = angular + np.cross(model.center_of_mass(q), linear)
    momenta = published(f"floating_3_link_{run}", "mtvar")
    digits = 5e-7 * np.abs(v).max(axis=1)[:, None]  # of the rates, times mass and inertia
    assert (np.abs(linear - momenta[:, :3]) <= 530.0 * digits + 1e-9).all()
    assert (np.abs(about_origin - momenta[:, 3:]) <= 300.0 * digits + 1e-9).all()
    np.testing.assert_allclose(
        np.concatenate([linear, about_origin], axis=1), momenta, rtol=0, atol=2e-5
    )


def test_floating_3_link_meets_its_published_torques(mats: Path) -> None:
    model = rf.load(mats / "floating_3_link_inputs.mat")
    state, torques = (
        published("floating_3_link_invdyn", "statevar"),
        published("floating_3_link_invdyn", "tor"),
    )
    assert torques.shape == (11, 3)
    _, _, a = cycloid(times("floating_3_link_invdyn"), 20.0)
    base, found = model.hybrid_dynamics(state[:, :9], state[:, 9:18], a)
    assert base.shape == (11, 6)
    np.testing.assert_allclose(found, torques, rtol=0, atol=2e-6)


def test_floating_3_link_meets_its_published_motion() -> None:
    """30 s under joint control towards the cycloid, the base left alone."""
    model = from_variables(variables("floating_3_link_fordyn"))
    run = "floating_3_link_fordyn"
    state, when = published(run, "statevar"), times(run)
    assert state.shape == (11, 19)
    tau = np.zeros(9)

    def rate(t: float, y: Any) -> Any:
        q, v = y[:9], y[9:]
        wanted, rates, _ = cycloid(t, 30.0)
        tau[6:] = 49.0 * (wanted - q[6:]) + 14.0 * (rates - v[6:])
        return np.concatenate([v, model.forward_dynamics(q, v, tau)])

    solver = DOP853(
        rate, 0.0, np.concatenate([np.zeros(6), START, np.zeros(9)]), 30.0, rtol=1e-10, atol=1e-12
    )
    rows = [solver.y]
    while solver.status == "running":
        solver.step()
        passed = when[(when > solver.t_old) & (when <= solver.t + 1e-12)]
        rows.extend(np.atleast_2d(solver.dense_output()(np.minimum(passed, solver.t)).T))
    np.testing.assert_allclose(np.array(rows), state[:, :18], rtol=0, atol=2e-6)


# ---- inputs.mat ----


@pytest.mark.parametrize("name", MATS)
def test_files_of_matlab_hold_what_scipy_reads(name: str, mats: Path) -> None:
    path = mats / f"{name}_inputs.mat"
    found = read_mat(path.read_bytes(), path.name)
    expected = {
        key: value for key, value in scipy.io.loadmat(path).items() if not key.startswith("__")
    }
    assert sorted(found) == sorted(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value)
    model, twin = rf.load(path), from_variables(variables(name))
    assert model.skeleton == twin.skeleton
    assert model.name == path.stem.removesuffix("_inputs") + "_inputs"


def saved(data: dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    scipy.io.savemat(file, data, **options)
    return file.getvalue()


@pytest.mark.parametrize("packed", [True, False])
def test_numbers_of_any_type(packed: bool) -> None:
    types = (
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
        np.int32,
        np.uint32,
        np.int64,
        np.uint64,
        np.float32,
        np.float64,
    )
    data: dict[str, Any] = {
        f"x{i}": np.arange(6, dtype=kind).reshape(2, 3) for i, kind in enumerate(types)
    }
    extras = {
        "text": "not a number",
        "cells": np.array([1, "two"], dtype=object),
        "record": {"a": 1.0},
        "z": np.array([1j]),
        "empty": np.zeros((0, 3)),
    }
    found = read_mat(saved(data | extras, do_compression=packed), "x.mat")
    assert sorted(found) == sorted([*data, "empty"])
    for key, value in data.items():
        np.testing.assert_array_equal(found[key], value)


def refused(path: Path, *words: str) -> None:
    with pytest.raises(rf.ModelError) as caught:
        rf.load(path)
    assert path.name in str(caught.value)
    assert all(word in str(caught.value) for word in words), caught.value


def test_broken_mat_files(tmp_path: Path, mats: Path) -> None:
    whole = (mats / "kuka_kr5_inputs.mat").read_bytes()
    path = tmp_path / "broken.mat"
    for size in (0, 5, 127, 128, 130, 200, 1000, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(path)
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(1000))
    refused(path, "-v7")
    path.write_bytes(whole[:128] + struct.pack("<II", 15, 0xFFFFFFF0) + bytes(100))
    refused(path, "beyond the end")
    path.write_bytes(bytes(2 << 20))
    refused(path, "MB")
    path.write_bytes(saved({"n": 10**9, "alp": 0.0}))
    refused(path, "n = 1e+09")
    path.write_bytes(saved({"n": np.nan}))
    refused(path, "n(1)")
    refused(tmp_path / "missing.mat", "no such file")


def test_a_packed_bomb_is_not_unpacked(tmp_path: Path) -> None:
    bomb = zlib.compress(bytes(50 << 20), 9)
    path = tmp_path / "bomb.mat"
    path.write_bytes(saved({"n": 1.0})[:128] + struct.pack("<II", 15, len(bomb)) + bomb)
    refused(path, "unpack")


@given(data=st.data())
def test_any_damage_is_a_model_error(data: st.DataObject, mats: Path) -> None:
    whole = bytearray((mats / "floating_3_link_inputs.mat").read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(rf.ModelError):
        from_variables(read_mat(bytes(whole), "x.mat"))


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "n",
                "nq",
                "alp",
                "a",
                "b",
                "bt",
                "m",
                "g",
                "dx",
                "dy",
                "dz",
                "Icxx",
                "Icyy",
                "Iczz",
                "r",
            ]
        ),
        st.lists(st.floats(), max_size=4),
    )
)
def test_any_variables_are_a_model_or_a_model_error(values: dict[str, list[float]]) -> None:
    with suppress(rf.ModelError):
        from_variables(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bt": [0, 3, 2]}, r"bt\(2\) is 3"),
        ({"bt": [0, 0.5, 2]}, r"bt\(2\)"),
        ({"m": [1, 2]}, "m has 2 numbers for 3 links"),
        ({"m": [1, -2, 1]}, "link2"),
        ({"a": [0, np.inf, 0]}, r"a\(2\) is not finite"),
        ({"g": [0, -9.81]}, "g has 2"),
        ({"r": [1, 2, 1]}, r"r\(2\) is 2"),
        ({"dx": "far"}, "dx is not numeric"),
        ({"n": 0}, "n = 0"),
        ({"nq": 1, "bt": [0, 0, 1]}, r"bt\(2\)"),
        ({"g_prop": [1, 2]}, "g_prop has 2"),
        ({"g_prop": [1, 2, 3, 4, 5, 3, 1, 1], "nq": 1}, r"g_prop\(6:8\) is 3, 1, 1"),
        ({"g_prop": [1, 2, 3, 4, 5, 3, 1, 2.5], "nq": 1}, r"g_prop\(6:8\) is 3, 1, 2\.5"),
        ({"dx": [1e31, 0, 0]}, r"dx\(1\) is 1e\+31; numbers here stay below 1e\+30"),
    ],
)
def test_impossible_variables(change: dict[str, Any], message: str) -> None:
    with pytest.raises(rf.ModelError, match=message):
        from_variables(variables("3_link_robot") | change)


def test_longer_vectors_and_older_files() -> None:
    data = variables("fourbar_mechanism")  # al has one entry more than there are links
    assert "ignored: al: has 4 numbers for 3 links" in str(report_of(from_variables(data)))
    older = {key: value for key, value in data.items() if key not in ("r", "th")}
    assert "assumed: r" in str(report_of(from_variables(older)))


# ---- inputs.m ----

FIXED = """
% a comment, and a blank line

function [n dof type alp a b th bt r dx dy dz m g Icxx Icyy Iczz Icxy Icyz Iczx aj al Tp steps] = inputs() % outputs
n = 3; dof=n; type=0;
l1=0.4; half = l1/2;   %{ not a block }
al = [l1; ...  the others follow
      0.3; 0.2];
alp=[0; pi/2; -(90*pi/180)];
a=[0 al(1), al(2)];  b = [0 -0.1 +0.05]';
th = zeros(1, n);
bt=[0
    1
    2];
r = ones(n,1); r(3)=0;
aj=[1,1,1];
%{
everything = here(is, a, comment);
%}
for i=1:n
  dx(i,1) = al(i)/2; dy(i,1)=0;
  dz(i,1)=0; m(i)=0.5*i^2;
end
Icxx=zeros(n,1); Icyy=zeros(n,1);Iczz=zeros(n,1);
Icxy=zeros(n,1);Icyz = Icxy; Iczx=Icxy;
Icxx(1:n)=1e-3;
Icyy(1)=(1/12)*m(1)*al(1)*al(1); Icyy(2:end)=[1 2]*1.5d-3 .* [1 1];
Iczz(:)=sum(m)/1e3 - 2^-9 * sqrt(4);
g=[0 ; 0; -9.81]; Tp=1; steps=0.01;
end
"""
FLOATING = """
function [n nq alp a b bt dx dy dz al alt m g Icxx Icyy Iczz Icxy Icyz Iczx]=inputs()
n=2; nq=1;
alp=[0;0]; a=[0; 0.5]; b=[0; 0]; bt=[0 1]; al=[1;1]; alt=[0.5; 1];
ax=[0 a(2)]; ay=[0 -b(2)*sin(alp(2))]; az=[0  b(2)*cos(alp(2))];
dx=ax/2; dy=ay/2; dz=az/2;
m=[100; 10]; g=[0; 0; 0];
Icxx=[10 1]; Icyy=Icxx; Iczz=Icxx; Icxy=zeros(n); Icxy=Icxy(:,1); Icyz=Icxy; Iczx=Icxy;
"""
LEGGED = (
    FLOATING.replace("Iczx]", "Iczx g_prop]")
    + """
K=2000; odf=10;
Cv=odf*2*sqrt(K*sum(m)); gr=[2 1 3];
g_prop=[K Cv 4.5 .7 1000 gr];
"""
)


def test_the_fixed_dialect(tmp_path: Path) -> None:
    folder = tmp_path / "bent_arm"
    folder.mkdir()
    path = folder / "inputs.m"
    path.write_text(FIXED)
    model = rf.load(path)
    assert model.name == "bent_arm"
    assert [joint.kind for joint in model.joints] == ["revolute", "revolute", "prismatic"]
    assert model.mass == pytest.approx(0.5 * 14)
    assert [body.com[0] for body in model.bodies] == pytest.approx([0.2, 0.15, 0.1])
    np.testing.assert_allclose(model.joints[1].placement.position, [0.4, 0.1, 0.0], atol=1e-15)
    assert [body.inertia[1, 1] for body in model.bodies] == pytest.approx(
        [0.5 * 0.16 / 12, 1.5e-3, 3e-3]
    )
    assert model.bodies[2].inertia[2, 2] == pytest.approx(7e-3 - 2 / 512)
    assert model.metadata["redysim"] == {
        "dof": 3.0,
        "type": 0.0,
        "Tp": 1.0,
        "steps": 0.01,
        "th": (0.0, 0.0, 0.0),
        "b": (0.0, -0.1, 0.05),
    }
    assert "note: th, b: th of joints that turn and b of those that slide" in str(report_of(model))
    assert "note: Tp, steps: they belong to a run: rf.simulate(m, t_end=1, …)" in str(
        report_of(model)
    )
    (tmp_path / "arm.yaml").write_text(to_yaml(model))
    for robot in (model, rf.load(tmp_path / "arm.yaml")):
        (start,) = robot.keyframes
        assert start == Keyframe("start", (0.0, 0.0, 0.05))  # th, th, b


def test_the_floating_and_the_legged_dialect() -> None:
    space, legs = read_m(FLOATING), read_m(LEGGED)
    assert [joint.kind for joint in space.joints] == ["free_euler", "revolute"]
    assert "ground" not in space.metadata
    assert legs.metadata["ground"] == {
        "stiffness": 2000.0, "damping": pytest.approx(20 * np.sqrt(220000)), "speed_limit": 4.5, "friction": 0.7,
        "horizontal_damping": 1000.0, "axes": (2, 1, 3),
    }  # fmt: skip
    assert dict(legs.bodies[1].points) == {"link2_tip": (1.0, 0.0, 0.0)}


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_written_as_text_is_the_same(name: str) -> None:
    """Rows and columns mixed, numbers to the last digit."""
    data = numbers(name)
    lines = [f"function [{' '.join(data)}]=inputs()"]
    for i, (key, value) in enumerate(data.items()):
        separator = ("; ", " ", ", ")[i % 3]
        lines.append(
            f"{key}={'[' + separator.join(map(repr, value)) + ']' if isinstance(value, list) else repr(value)};"
        )
    again, model = read_m("\n".join(lines)), from_variables(data)
    assert again.skeleton == model.skeleton
    assert again.joints == model.joints


BAD = [
    ("n=3;\nx = system('rm');", 2),
    ("n = 3;\nwhile 1\nend", 2),
    ("if n==1\nend", 1),
    ("x = eval('1')", 1),
    ("x = @sin;", 1),
    ("x = {1, 2};", 1),
    ("model.l1 = 2;", 1),
    ("n = nn + 1;", 1),
    ("\n\nx = [1 2; 3];", 3),
    ("x = zeros(3,1);\ny = x(4);", 2),
    ("x = zeros(1e9,1);", 1),
    ("x = zeros(1e5,1e5);", 1),
    ("x(1e9) = 1;", 1),
    ("x = 1:1e9;", 1),
    ("for i=1:1e9\nend", 1),
    ("for i=1:90000\nfor j=1:90000\nx=1;\nend\nend", 2),
    ("for i=1:90000\nx=ones(300,300);\nend", 2),
    ("for i=1:3\nx=1;", 2),
    ("x = 1/0;", 1),
    ("x = 1e308*10;", 1),
    ("x = 10^10^10;", 1),
    ("x = (-8)^(1/3);", 1),
    ("x = [1 2]*[3 4 5];", 1),
    ("x = [1 2]*[3 4];", 1),
    ("x = [1 2]/[3 4 5];", 1),
    ("x = 2/[3 4];", 1),
    ("x = [1 2; 3 4]^2;", 1),
    ("x = 2^[1 2];", 1),
    ("x = max([]);", 1),
    ("x = ones(300,300);\ny = x*x;", 2),
    ("x = (1 + 2", 1),
    ("x = 'text", 1),
    ("x = 1 2;", 1),
    ("x(0) = 1;", 1),
    ("x(1.5) = 1;", 1),
    ("x = " + "(" * 5000 + "1" + ")" * 5000, 1),
    ("x = " + "-" * 5000 + "1", 1),
    ("x = " + "for " * 5000, 1),
    ("for i=1:2\n" * 5000, MAX_DEPTH + 1),
    ("\x00\x01\x02", 1),
    ("sin(2) = 3;", 1),
    ("x = sqrt(-1);", 1),
    ("x = undefined_function(3);", 1),
    ("x = :;", 1),
    ("x = 1:0:5;", 1),
    ("x = [" + "1 " * 400_000 + "];", 1),
    ("x = " + "1+" * 20_000 + "1;", 1),
    ("'" * 1_000_000, 1),
    ("\n" * 1_000_000 + "x", 1_000_001),
    ("x = 1;\n" * 100_000, 8334),
    ("x = [" + "\n" * 900_000, 900_000),
    ("%" * 1_000_000 + "\nx = ?;", 2),
]


@pytest.mark.parametrize(("text", "line"), BAD, ids=range(len(BAD)))
def test_what_is_no_arithmetic_is_refused_with_its_line(
    text: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "inputs.m"
    path.write_text(text)
    refused(path, f"inputs.m:{line}: ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1 2 3]*[4; 5; 6]", 32.0), ("[4; 5]*[1 2]", [[4, 8], [5, 10]]), ("[1 2; 3 4]*[1; 1]", [[3], [7]]),
        ("[1 2].*[3 4]", [[3, 8]]), ("[2 4]./[1 2]", [[2, 2]]), ("[2 4]/2", [[1, 2]]), ("[2 3].^2", [[4, 9]]),
        ("2*[1 2]", [[2, 4]]), ("2. *[1 2]", [[2, 4]]), ("[1 2...\n3]", [[1, 2, 3]]), ("2.5.*[1 2]", [[2.5, 5]]),
        ("2.^[1 2]", [[2, 4]]), ("2./[1 2]", [[2, 1]]),
        ("sum([1 2; 3 4])", [[4, 6]]), ("max([1 5; 3 4])", [[3, 5]]), ("min([1 5; 3 4])", [[1, 4]]),
        ("atan2(1, [1 0])", [[np.pi / 4, np.pi / 2]]), ("linspace(1, 2, 3)'", [[1], [1.5], [2]]),
        ("repmat([1 2], 2, 1)", [[1, 2], [1, 2]]), ("repmat(3, 2)", [[3, 3], [3, 3]]),
        ("sum([1 2 3])", 6.0), ("max([1; 7])", 7.0), ("sum([])", 0.0), ("sum(sum([1 2; 3 4]))", 10.0),
    ],
)  # fmt: skip
def test_arithmetic_of_matrices_is_that_of_matlab(text: str, value: Any) -> None:
    found = run_matlab(parse_matlab(f"x = {text};", "inputs.m"), "inputs.m")["x"]
    assert np.shape(found) == np.shape(value)
    assert np.asarray(found).tolist() == value


def test_texts_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "inputs.m"
    path.write_bytes(FIXED.encode("utf-8-sig"))
    assert rf.load(path).skeleton == read_m(FIXED).skeleton
    path.write_bytes(FIXED.encode("utf-16"))
    refused(path, "UTF-16", "UTF-8")


def test_missing_outputs_are_named() -> None:
    with pytest.raises(rf.ModelError, match="alp should come out of it"):
        read_m("function [n alp]=inputs()\nn=1;")
    with pytest.raises(rf.ModelError, match="alp is missing"):
        read_m("n=1;")


def test_files_that_save_their_variables() -> None:
    head, body = FIXED.split("= inputs() % outputs")
    names = head.split("[")[1].strip().strip("]")
    text = (
        "function []=Create_matfile()"
        + body.replace("end\n", "", 0).rstrip().removesuffix("end")
        + f"\nsave inputs.mat {names}\nend"
    )
    assert read_m(text).skeleton == read_m(FIXED).skeleton


PIECES = st.sampled_from(
    ["n", "al", "=", "(", ")", "[", "]", ";", ",", " ", "\n", "1", "2", "0.5", "1e9", "+", "-", "*", "/", "^", "'", ":", "end",
     "zeros", "for i=1:3\n", "pi", "...", "%", "function", "\t", ".", "x(2)=", "ones(3,1)", "%{\n", "sum(", "end\n", "'text'",
     "@", "~"]
)  # fmt: skip


@given(
    st.lists(PIECES, max_size=40).map("".join)
    | st.text(max_size=60)
    | st.lists(PIECES, max_size=30).map(lambda p: FIXED + "".join(p))
)
def test_any_text_is_a_model_or_a_model_error(text: str) -> None:
    with suppress(rf.ModelError):
        read_m(text)


# ---- bases and conversion ----


def test_a_planar_robot_may_lose_three_coordinates(mats: Path) -> None:
    path = mats / "floating_3_link_inputs.mat"
    assert "base='planar'), or ramify convert --base planar" in str(report_of(rf.load(path)))
    planar = rf.load(path, base="planar")
    assert planar.coordinates[:3] == ("base.x", "base.y", "base.angle")
    state = published("floating_3_link_invdyn", "statevar")
    keep = [0, 1, 3, 6, 7, 8]
    whole = rf.load(path).energy(state[:, :9], state[:, 9:18]).kinetic
    np.testing.assert_allclose(
        planar.energy(state[:, keep], state[:, [9 + i for i in keep]]).kinetic, whole, rtol=1e-12
    )
    assert "[x y phi]" in str(report_of(planar))
    assert "phi theta psi], R" not in str(report_of(planar))
    assert "quaternion" in str(report_of(rf.load(path, base="free")))
    assert rf.load(path, base="free").nq == 10
    assert rf.load(path, base="fixed").nv == 3


def test_a_fixed_robot_keeps_its_base(mats: Path) -> None:
    path = mats / "kuka_kr5_inputs.mat"
    assert rf.load(path, base="fixed").nv == 6
    with pytest.raises(rf.ModelError, match="base 'free'"):
        rf.load(path, base="free")


@pytest.mark.parametrize("name", ["spatial_biped", "legged_quadruped", "rp_robot"])
def test_conversion_to_a_robot_file(name: str, tmp_path: Path) -> None:
    data = numbers(name)
    source, target = tmp_path / f"{name}.mat", tmp_path / "robot.yaml"
    source.write_bytes(saved(data, oned_as="column"))
    model = convert(source, target)
    again = rf.load(target)
    assert again.skeleton == model.skeleton
    assert again.joints == model.joints
    assert [body.points for body in again.bodies] == [body.points for body in model.bodies]
    with pytest.raises(rf.ModelError, match=r"written as \.yaml, \.yml, \.urdf"):
        convert(source, tmp_path / "robot.xyz")


def test_reading_takes_a_path_object(mats: Path) -> None:
    assert read_redysim(mats / "kuka_kr5_inputs.mat", merge=False).nv == 6


def test_the_command_converts_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "inputs.m", tmp_path / "robot.yaml"
    source.write_text(FIXED)
    (tmp_path / "torque.m").write_text("function tau = torque(t, th, dth)")
    for expected, options in ((0, []), (1, []), (0, ["--force"])):
        with pytest.raises(SystemExit) as stop:
            main(["convert", str(source), str(target), *options])
        assert stop.value.code == expected
    assert "ignored: torque.m" in capsys.readouterr().out
    assert rf.load(target).nv == 3


def test_the_page_for_its_users_runs(root: Path) -> None:
    """The published example of the documentation, as written there."""
    page = (root / "docs" / "coming-from-redysim.md").read_text()
    code = next(
        code
        for block in page.split("```python\n")
        if "r = rf.simulate(" in (code := block.split("```")[0])
    )
    names: dict[str, Any] = {"rf": rf}
    exec(code, names)
    assert names["r"].status == "finished"
    assert names["r"].q.shape == (301, 9)
    assert names["r"].audit.passed


def test_a_colon_of_what_does_not_exist_is_explained() -> None:
    with pytest.raises(rf.ModelError, match="'bt' does not exist yet, so a colon"):
        run_matlab(parse_matlab("bt(:) = [0 1];", "inputs.m"), "inputs.m")


def test_warnings_point_at_the_line_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "inputs.m"
    path.write_text(FIXED.replace("type=0", "type=1"))
    with pytest.warns(UserWarning, match="left out") as found:
        rf.load(path)
    assert found[0].filename == __file__
