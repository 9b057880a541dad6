"""Every example of ReDySim, from its files to its files: loaded, closed, run, exported, saved again.

Beside the variables stand texts of the shape that ReDySim's own repository has: hinges in
``for_kine.m``, rows of closure in ``jacobian.m``, the state in ``initials.m``.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redysim_data import ROBOTS, numbers, published, times, variables
from test_redysim_closed import BARS, INITIALS, LEG, OWN_HINGES, RRR, SLIDER, folder

import ramify as rf
from ramify.files.robot_writer import save

RRR_HINGES = "so(:,4)=[1;0;0];\nso(:,6)=[0.5;0.866;0];"
CLOSED = {
    "3_rrr_parallel_robot": (RRR, RRR_HINGES, 2),
    "3_rrr_parallel_robot_fordyn": (RRR, RRR_HINGES, 2),
    "fourbar_mechanism": (BARS, "so(:,2)=[al(4);0;0];", 1),
    "hoken_fourbar": (BARS, "so(:,2)=[-al(4);0;0];", 1),
    "robotic_leg": (LEG, "so(:,2)=[0.050;0;0];\nso(:,4)=[0.070;-0.030;0];", 3),
    "slider_crank": (SLIDER, "% one hinge", 1),
}
"""jacobian.m, the hinges of for_kine.m, and the number of loops."""
GAPING = {"fourbar_mechanism", "3_rrr_parallel_robot_fordyn"}
"""Examples whose own start leaves a loop open by millimetres."""
GAITS: dict[str, dict[str, Any]] = {
    "legged_biped": {
        "height": 0.96,
        "period": 1.0,
        "stride": 0.3,
        "lift": 0.1,
        "attitude": (-np.pi / 2, 0.0, 0.0),
    },
    "legged_quadruped": {"height": 0.5, "period": 1.0, "stride": 0.3, "lift": 0.09},
    "legged_hexapod": {"height": 0.55, "period": 0.5, "stride": 0.4, "lift": 0.08},
}


def loaded(path: Path, name: str) -> rf.Model:
    """An example from a folder as ReDySim has them; only what gapes is warned of."""
    J, hinges, _ = CLOSED.get(name, ("", "", 0))
    file = folder(path, name, J, hinges, OWN_HINGES)
    data = variables(name)
    if data["kind"] == "fixed":
        q = [b if not r else th for th, b, r in zip(data["th"], data["b"], data["r"], strict=True)]
        state = f"q=[{'; '.join(map(repr, q))}];\ndq=zeros(n,1);"
        (path / "initials.m").write_text(INITIALS.format(state, "y0=[q; dq; act_en];"))
    with warnings.catch_warnings(record=True, action="always") as told:
        model = rf.load(file)
    assert all("does not close there" in str(warning.message) for warning in told)
    assert bool(told) == (name in GAPING)
    return model


def run_of(model: rf.Model, name: str) -> rf.Result:
    options: dict[str, Any] = {"dt_out": 0.01}
    if name in GAITS:
        gait = rf.motion.Gait.of(model, **GAITS[name])
        options |= {"ground": rf.contact.Firm.of_redysim(model)}
        options |= {"control": rf.control.Prescribed(gait)}
        return rf.simulate(model, 0.02, *gait.start(model), **options)
    q0: Any = model.keyframes[0].q if model.keyframes else None
    if name in GAPING:
        q0 = model.assemble(guess=np.array(q0)).q
    return rf.simulate(model, 0.02, q0, **options)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_example_from_its_files_to_its_files(name: str, tmp_path: Path) -> None:
    data, model = variables(name), loaded(tmp_path, name)
    loops = CLOSED.get(name, ("", "", 0))[2]
    assert len(model.loops) == loops
    assert (data.get("type") == 1) == bool(loops)
    r = run_of(model, name)
    assert r.status == "finished"
    assert r.audit.passed
    read = {path.name: np.loadtxt(path, ndmin=2) for path in r.to_redysim(tmp_path / "out")}
    legged, n = name in GAITS, data["n"] + (0 if data["kind"] == "fixed" else 5)
    wanted = {"statevar.dat": 2 * n + 1 + legged, "timevar.dat": 1, "envar.dat": 4 + legged}
    wanted |= {"mtvar.dat": 6, "tor.dat": sum(data.get("aj", [1] * (data["n"] - 1))) + 2 * loops}
    wanted |= {"base.dat": 13} if legged else {}
    assert {file: rows.shape[1] for file, rows in read.items()} == wanted
    state, energies = read["statevar.dat"], read["envar.dat"]
    np.testing.assert_allclose(state[:, n : 2 * n], r.v, atol=1e-6 * (1 + np.abs(r.v).max()))
    scale = 1.0 + np.abs(energies).max()
    sums = energies[:, :3].sum(axis=1) + (energies[:, 4] if legged else 0.0)
    np.testing.assert_allclose(energies[:, 3], sums, atol=1e-5 * scale)
    np.testing.assert_array_equal(state[:, -1], energies[:, 2])  # AE is last in both
    if legged:
        np.testing.assert_array_equal(state[:, -2], energies[:, 4])  # GE
        np.testing.assert_array_equal(read["base.dat"][:, 0], read["timevar.dat"][:, 0])
        np.testing.assert_array_equal(read["base.dat"][:, 1:7], state[:, :6])
        np.testing.assert_array_equal(read["base.dat"][:, 7:], state[:, n : n + 6])
    save(model, tmp_path / "again.yaml")
    again = rf.load(tmp_path / "again.yaml")
    assert again.skeleton == model.skeleton
    assert again.loops == model.loops
    assert again.keyframes == model.keyframes


def test_the_five_mechanisms_have_the_loops_that_they_have() -> None:
    order = ("3_rrr_parallel_robot", "fourbar_mechanism", "hoken_fourbar", "robotic_leg")
    assert [CLOSED[name][2] for name in (*order, "slider_crank")] == [2, 1, 1, 3, 1]
    assert set(CLOSED) == {name for name in ROBOTS if numbers(name).get("type") == 1}


# ---- stored runs ----

START = np.array([0.3803, -0.6198, 1.2867])


@pytest.mark.parametrize("kind", ["invdyn", "fordyn"])
def test_files_of_a_run_are_those_that_redysim_stored(kind: str, tmp_path: Path) -> None:
    """A free-flying base with three links: runinv with prescribed joints, runfor under PD. Every
    number of every file, with its sign, to what ReDySim's tolerances leave.
    """
    run = f"floating_3_link_{kind}"
    name = "floating_3_link" if kind == "invdyn" else run
    t_end = float(times(run)[-1])
    motion = rf.motion.Cycloid(START, -np.pi / 2, duration=t_end)
    laws = {"invdyn": rf.control.Prescribed(motion), "fordyn": rf.control.PD(motion, 49, 14)}
    q0 = np.r_[np.zeros(6), START]
    options: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "dt_out": t_end / 10}
    r = rf.simulate(loaded(tmp_path, name), t_end, q0, control=laws[kind], **options)
    read = {path.stem: np.loadtxt(path) for path in r.to_redysim(tmp_path / "out")}
    tolerances: dict[str, Any] = {"envar": 1e-5, "mtvar": 5e-5, "tor": 2e-6}
    # the stored momentum of runinv drifts by 4e-5; it should stay zero
    tolerances["statevar"] = np.r_[np.full(18, 3e-6), 1e-5]  # AE, in J, is last
    for table in ("statevar", "envar", "mtvar", *(["tor"] if kind == "invdyn" else [])):
        apart = np.abs(read[table] - published(run, table)).max(axis=0)
        assert (apart < tolerances[table]).all(), (table, apart)
    np.testing.assert_allclose(read["timevar"], times(run), atol=1e-5)
    assert ("base" in read) == (kind == "invdyn")
    if kind == "invdyn":  # ReDySim's base.dat: t, and the base's columns of statevar
        stored = published(run, "statevar")[:, [*range(6), *range(9, 15)]]
        np.testing.assert_allclose(read["base"], np.c_[times(run), stored], atol=3e-6)
        lines = (tmp_path / "out" / "timevar.dat").read_text().splitlines()
        assert lines[1] == "2.000000e+00"


def test_energies_are_where_redysim_stores_them(tmp_path: Path) -> None:
    """The last row of a stored walk, a quadruped under computed torque for 2 s: envar is PE, KE, AE,
    TE, GE, and GE, AE follow the state, unlike the book's E_act, E_gr. Ours is that row.
    """
    stored = (39.04637, 1.494089, -6.1821, 40.86834, 6.509987)
    assert stored[3] == pytest.approx(sum(stored[:3]) + stored[4], abs=2e-5)
    model = loaded(tmp_path, "legged_quadruped")
    gait = rf.motion.Gait.of(model, **GAITS["legged_quadruped"])
    ground = rf.contact.Firm.of_redysim(model)
    law = rf.control.ComputedTorque(gait, 49, 14)
    r = rf.simulate(model, 2.0, *gait.start(model), control=law, ground=ground, dt_out=0.5)
    read = {path.stem: np.loadtxt(path) for path in r.to_redysim(tmp_path / "out")}
    np.testing.assert_allclose(read["envar"][-1], stored, atol=0.01)
    np.testing.assert_allclose(read["statevar"][-1, -2:], [6.509987, -6.1821], atol=0.01)
