"""Formulas and defaults of rarely visited corners against closed forms, identities and MuJoCo."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import casadi
import mujoco
import numpy as np
import pytest
from comparing import close
from linkages import LINKAGES
from scipy.interpolate import CubicSpline

import ramify as rf
from ramify.drives.element_laws import BristleLaw, bristles
from ramify.drives.machine_forces import actuator_kernel
from ramify.integrate.machine_steps import open_ways
from ramify.loops.constraints import constraints
from ramify.runtime import piece_workers
from ramify.scenario_files.scenario import read_scenario
from ramify.studies.outputs import METRICS
from ramify.studies.sensitivity_indices import first_order_index

CLOSED = [name for name in rf.robots() if rf.load(name).loops]


def wheel(**machine: Any) -> rf.Model:
    """A wheel of 2 kg m^2 about a vertical axis."""
    made = rf.Builder("wheel").link("rim", axis=(0, 0, 1), mass=1.0, inertia=(2, 2, 2), **machine)
    return made.model()


# ---- friction and steps ----


@pytest.mark.parametrize("static", [0.0, 9.0])
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_bristles_are_elastic_up_to_the_same_force_with_and_without_static_friction(
    static: float, way: float
) -> None:
    """Below 0.7 of the sliding force the deflection follows the joint; above it the bristles give
    way; at the height of the Stribeck curve the deflection stays.
    """
    sliding, speed, k = 4.0, 1e-3, 1e4
    law = BristleLaw(sliding, sliding, static, 1.0 / 0.05, k, 10.0, 1.0)
    x = speed / 0.05
    height = sliding + (static - sliding) / (1.0 + x * x) if static else sliding
    for share, rate in ((0.3, 1.0), (0.7, 1.0), (height / sliding, 0.0)):
        found = bristles(law, way * speed, way * share * sliding / k)
        close(found.rate, way * rate * speed, 1e-12, 1e-15, f"dz/dt at {share:g} of the force")
    for share in (0.71, 0.8, 0.95):
        s = (share * sliding - 0.7 * sliding) / (height - 0.7 * sliding)
        given = way * speed * (1.0 - s * s * (3.0 - 2.0 * s) * share * sliding / height)
        found = bristles(law, way * speed, way * share * sliding / k)
        close(found.rate, given, 1e-12, of=f"dz/dt at {share:g} of the force")
        assert abs(found.rate) < speed, f"the bristles do not give way at {share:g} of the force"


@pytest.mark.parametrize("name", CLOSED)
def test_loops_leave_open_the_ways_on_which_they_stay_closed(name: str) -> None:
    model = rf.load(name)
    q = model.assemble().q
    J, ways = constraints(model, q).J, open_ways(model, q)
    assert ways.shape[1] >= 1
    size = np.abs(J).max() * np.abs(ways).max(axis=0)
    close(J @ ways / size, 0.0, atol=1e-8, of="J times the open ways")


def test_the_margin_of_a_path_is_that_of_its_worst_row() -> None:
    model = rf.load("four_bar")
    angles = np.linspace(0.2, 2.5, 9)
    margins = [model.assemble({"crank": x}).margin for x in angles]
    assert np.ptp(margins) > 0.01
    for path in (angles, angles[::-1]):
        close(model.assemble({"crank": path}).margin, min(margins), 1e-6, of="margin")


def test_the_gap_of_a_path_is_that_of_its_worst_row() -> None:
    """A Bennett linkage with five digits: what it misses by depends on its posture."""
    linkage = LINKAGES[0]
    model = linkage.model(4, digits=5)
    path = np.linspace(0.8, 1.6, 5)
    paths = [
        model.assemble({"j1": way}, guess=linkage.start_of(model)) for way in (path, path[::-1])
    ]
    gaps = [np.abs(model.constraints(q).residual).max() for q in paths[0].q]
    assert max(gaps) > 1.1 * min(gaps) > 1e-8
    for found in paths:
        close(found.gap, max(gaps), 1e-3, of="gap")


@pytest.mark.parametrize("limits", [[(-0.2, 0.5), (-1.0, 0.1)], [(-1.0, 0.1), (0.0, 2.0)]])
def test_limits_of_a_universal_joint_that_the_tree_reaches_from_its_second_body(
    limits: list[tuple[float, float]],
) -> None:
    """The angles are those of the opposite motion: last first and negative, and so are the limits."""
    made = rf.Mechanism("shaft").body("a", mass=1.0, inertia=(1, 1, 1))
    made.body("b", mass=1.0, inertia=(1, 1, 1))
    made.joint("hub", None, "a", "revolute", axis=(0, 0, 1))
    made.joint("cross", "b", "a", "universal", sequence="ZX", limits=limits)
    joint = made.model().joint("cross")
    assert joint.backwards
    assert joint.sequence == "XZ"
    (l0, h0), (l1, h1) = limits
    close(joint.limits, [(-h1, -l1), (-h0, -l0)], of="limits")


def test_elements_of_a_universal_joint_that_the_tree_reaches_from_its_second_body() -> None:
    """The damping of each axis stays with it: both bodies slow down as with the ends in reverse."""
    rates = []
    for ends, sequence, damping in ((("b", "a"), "ZX", [1.0, 5.0]), (("a", "b"), "XZ", [5.0, 1.0])):
        made = rf.Mechanism("shaft", gravity=(0, 0, 0)).body("a", mass=1.0, inertia=(1, 2, 3))
        made.body("b", mass=1.0, inertia=(1, 2, 3))
        made.joint("hub", None, "a", "revolute", axis=(0, 0, 1))
        made.joint("cross", *ends, "universal", sequence=sequence, damping=damping)
        model = made.model()
        found = model.joint("cross")
        assert found.backwards == (ends == ("b", "a"))
        assert found.sequence == "XZ"
        rates.append([element.damping[0] for element in found.machine])
    close(rates[0], rates[1], of="damping of both axes")


# ---- drives ----


@pytest.mark.parametrize("gear", ["1 0 0 0 0 0", "0 0 0.5 0 0 0", "0 0 0 0 2 0", "1 0 0 0 0 3"])
@pytest.mark.parametrize("kind", ["free", "ball"])
def test_position_actuators_on_joints_of_several_freedoms_are_mujocos(
    gear: str, kind: str, tmp_path: Path
) -> None:
    gear = gear if kind == "free" else " ".join(gear.split()[3:])
    if not any(map(float, gear.split())):
        gear = "0 0.4 0"
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody><body name="b" pos="0.1 0.2 0.3">
      <joint name="j" type="{kind}"/><inertial pos="0 0 0" mass="2" diaginertia="1 2 2.5"/></body>
      </worldbody><actuator><position name="p" joint="j" kp="7" kv="0.5" gear="{gear}"/></actuator>
      </mujoco>"""
    peer = mujoco.MjModel.from_xml_string(text)
    (tmp_path / "one.xml").write_text(text)
    data, model = mujoco.MjData(peer), rf.load(tmp_path / "one.xml")
    q, v = model.random(seed=3)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, 0.8
    mujoco.mj_forward(peer, data)
    law = rf.control.Commands({"p": 0.8})
    close(law.torque(model, 0.0, q, v), data.qfrc_actuator, 1e-9, 1e-12, "joint forces")
    for tier in ("numpy", "rolled", "unrolled"):
        tau, _ = actuator_kernel(model, tier)(q, v, [0.8])
        close(tau, data.qfrc_actuator, 1e-9, 1e-12, f"joint forces, {tier}")


# ---- batches ----


@pytest.mark.parametrize("tier", ["numpy", "rolled", "unrolled"])
@pytest.mark.parametrize("angle", [1e12, -1e12])
def test_huge_angles_of_either_sign_at_any_place_of_a_batch(tier: Any, angle: float) -> None:
    model = rf.load("kuka_kr5")
    kernel = model.kernel("gravity_forces", tier)
    for states, place, joint in ((1, 0, 1), (3, 2, 4), (9, 8, 1), (9, 1, 2), (9, 4, 4)):
        q = np.random.default_rng(states).uniform(-1.0, 1.0, (states, 6))
        q[place, joint] = angle
        close(kernel(q), kernel(np.arctan2(np.sin(q), np.cos(q))), 1e-11, 1e-12, "gravity force")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_more_threads_work_than_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Whoever is quick, at most ``count - 1`` threads are ever asked to help."""
    crew = piece_workers._Workers()
    asked: list[int] = []
    monkeypatch.setattr(crew, "call", lambda job, others: asked.append(others))
    monkeypatch.setattr(piece_workers, "_workers", crew)
    names: set[str] = set()

    def work(start: int, stop: int) -> int:
        names.add(threading.current_thread().name)
        return 0

    piece_workers.in_parallel(work, 100, 10, count)
    assert asked == ([count - 1] if count > 1 else [])
    assert len(names) == 1


@pytest.fixture
def two_threads() -> Any:
    before = rf.threads()
    rf.threads(2)
    yield
    rf.threads(before)


@pytest.mark.parametrize("every", [None, 2])
def test_gradients_of_many_states_are_those_of_each(two_threads: None, every: int | None) -> None:
    """A batch that threads share against a part of it that one thread takes."""
    model, rng = rf.load("planar_3r"), np.random.default_rng(4)
    q, v = rng.normal(size=(2, 200, 3))
    tau = rng.normal(size=(200, 6, 3))

    def found(rows: slice) -> Any:
        how: dict[str, Any] = {"steps": 6, "dt": 1e-3, "tau": tau[rows], "every": every}
        run = rf.rollout(model, q[rows], v[rows], **how)
        return run.gradient(np.sin(run.q), np.cos(run.v))

    whole, part = found(slice(None)), found(slice(130, 200))
    for name in ("q0", "v0", "tau"):
        close(getattr(whole, name)[130:], getattr(part, name), 1e-9, 1e-12, f"gradient by {name}")


# ---- scenarios, studies, checks, CasADi ----


@pytest.mark.parametrize("word", ["hold", "linear", "cubic"])
@pytest.mark.parametrize("robot", ["planar_3r", "space_3_link", "four_bar"])
def test_stored_torques_of_any_robot_are_interpolated_as_asked(robot: str, word: str) -> None:
    s = read_scenario(
        f"name: x\nrobot: {robot}\nt_end: 0.4\n"
        "motion: {type: cycloid, end: 0.5, duration: 0.4}\n"
        f"control: {{type: torques_of_motion, rows: 5, interpolate: {word}}}\n"
    )
    table = s.control
    assert isinstance(table, rf.control.TorqueTable)
    rows, t = np.asarray(table.values), np.asarray(table.times)
    expected = {
        "hold": rows[1],
        "linear": 0.25 * rows[1] + 0.75 * rows[2],
        "cubic": CubicSpline(t, rows)(t[1] + 0.75 * (t[2] - t[1])),
    }
    model = rf.load(robot)
    tau = table.torque(model, t[1] + 0.75 * (t[2] - t[1]), model.neutral(), np.zeros(model.nv))
    assert np.abs(rows[2] - rows[1]).max() > 1e-3
    driven = tau[:1] if robot == "four_bar" else tau[-rows.shape[1] :]
    close(driven, expected[word], 1e-9, 1e-9, "tau")


@pytest.mark.parametrize("metric", ["max_error", "rms_error", "final_error"])
def test_errors_count_where_a_motion_is_desired(metric: str) -> None:
    """Nothing is desired of a floating base."""
    model = rf.load("space_3_link")
    law = rf.control.PD(rf.motion.Hold([0.3, -0.2, 0.1]), kp=20.0, kd=5.0)
    r = rf.simulate(model, 0.2, control=law)
    assert r.desired is not None
    assert np.isnan(r.desired.q).any()
    off = np.where(np.isnan(r.desired.q), 0.0, r.q - r.desired.q)
    expected = {
        "max_error": np.abs(off).max(),
        "rms_error": math.sqrt(np.mean(off**2)),
        "final_error": np.abs(off[-1]).max(),
    }
    close(METRICS[metric][1](r, slice(None)), expected[metric], 1e-12, of=metric)


@pytest.mark.parametrize(("arm", "gyration"), [(0.3, 0.03), (0.05, 0.3)])
@pytest.mark.parametrize(("share", "heavy"), [(0.9, False), (1.1, True)])
def test_a_mass_is_too_heavy_from_ten_times_the_density_of_metal_on(
    share: float, heavy: bool, arm: float, gyration: float
) -> None:
    """2e5 kg/m^3 in a cube as wide as twice the longest length or radius of gyration."""
    mass = share * 2e5 * (2.0 * max(arm, gyration)) ** 3
    tensor = mass * gyration**2 * np.ones(3)
    made = rf.Builder("bob").link("bob", axis=(0, 1, 0), mass=mass, com=(arm, 0, 0), inertia=tensor)
    assert ("mass-units" in {f.code for f in made.model().check()}) is heavy


def test_the_share_of_variance_is_without_what_chance_explains() -> None:
    """y = x + noise of the same variance: x explains a half. In the mean over many small studies
    the estimate says so; groups of three runs explain 0.6 by chance.
    """
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(4.0), 3)
    found = [first_order_index(x, x + rng.normal(scale=x.std(), size=x.size)) for _ in range(2000)]
    close(np.mean(found), 0.5, 0.0, 0.04, "mean share")


@pytest.mark.parametrize("method", ["euler", "rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("name", ["planar_3r", "space_3_link"])
def test_a_symbolic_step_is_that_of_a_rollout(name: str, method: str) -> None:
    model = rf.load(name)
    step = model.casadi("step", dt=2e-3, method=method)
    assert isinstance(step, casadi.Function)
    assert step.name_out()[:2] == ["q_next", "v_next"]
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-0.5, 0.5, model.nq), rng.normal(size=model.nv)
    tau = rng.normal(size=model.nv)
    given = {"q": q, "v": v, "tau": tau}
    found = step(**{k: given[k] for k in step.name_in() if k in given})
    run = rf.rollout(model, q, v, dt=2e-3, steps=1, tau=tau[None], method=method)
    close(np.array(found["q_next"]).ravel(), run.q, 1e-10, 1e-12, "q")
    close(np.array(found["v_next"]).ravel(), run.v, 1e-10, 1e-12, "v")
