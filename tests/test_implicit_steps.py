"""Linearly implicit steps: the equation they solve, their order, and that they stay stable where
explicit ones do not.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import ramify as rf
from ramify.cli import main
from ramify.contact.grounds import as_ground
from ramify.contact.robot_on_ground import ContactText
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array
from ramify.core.spatial import Vec3
from ramify.files.robot_writer import to_yaml
from ramify.kernels.queries import jacobian
from ramify.plant.field import Field
from ramify.plant.joint_gains import along, drive_gains
from ramify.plant.make_field import PlantOptions, make_field
from ramify.plant.rates import Rates

LAWS = ("firm", "dusty", "hunt_crossley")
IMPLICIT = ("implicit_euler", "implicit_extrapolation")


def landing() -> tuple[rf.Model, Any, Any, Any]:
    """(robot, q, v, control): a quadruped about to land under stiff servos."""
    s = rf.scenario("quadruped_fall")
    q, v = np.array(s.q0), np.array(s.v0)
    return s.robot, q, v, rf.control.PD(rf.motion.Hold(q[-12:]), kp=200.0, kd=10.0)


# ---- the equation of a step ----


@pytest.mark.parametrize("law", LAWS)
def test_the_step_solves_its_equation(law: str) -> None:
    """(I + J' W J + R) a = tau - bias + J' (f - W J' v), f where the points would be at the end of
    the step and W = h^2 K + h D, against dense matrices; solved again with friction under the
    normal loads at the end of the step.
    """
    model, q, _, _ = landing()
    rng = np.random.default_rng(0)
    ground = as_ground(law, model)
    assert ground is not None
    contact, h, eps = ContactText(model, ground), 4e-3, 1e-6
    v = 0.2 * rng.normal(size=model.nv)
    q = q.copy()
    q[2] -= 0.02 + float(np.min(contact.forces(q, v)[0][:, 2]))  # all feet touch
    tau = np.r_[np.zeros(6), rng.normal(size=12)]
    field = make_field(model, None, PlantOptions(0.3, ground, implicit=True))
    y = field.start(q, v)
    moved = _stepped(field, y, tau, h)[field.state_slices[1]]
    viscous = np.array(field.damping)
    M, free = model.mass_matrix(q) + h * np.diag(viscous), tau - viscous * v - model.bias(q, v)
    loads: list[Any] = [None] * len(contact.bodies)  # friction under the loads of the law at first
    for _ in range(2):
        A, b, ends = M.copy(), free.copy(), []
        for place, body, own, load in zip(
            contact.forces(q, v)[0], contact.bodies, contact.places, loads, strict=True
        ):
            J = jacobian(model, q, body, own)[3:]
            near = [jacobian(model, model.integrate(q, v, s), body, own)[3:] for s in (eps, -eps)]
            u, turned = J @ v, (near[0] - near[1]) @ v / (2.0 * eps)
            ahead = Vec3(*(place + h * u)), Vec3(*u)
            f = contact.ground.reaction(*ahead, load).force
            r = contact.ground.resistance(*ahead, load)
            n = np.array([r.normal.x, r.normal.y, r.normal.z])
            along = h * (h * r.stiffness + r.damping)
            W = along * np.outer(n, n) + h * r.grip * (np.eye(3) - np.outer(n, n))
            A += J.T @ W @ J
            b += J.T @ (np.array([f.x, f.y, f.z]) - W @ turned)
            ends.append((r.force, along * n, J, turned))
        a = np.linalg.solve(A, b)
        loads = [max(0.0, N - w @ (J @ a + turned)) for N, w, J, turned in ends]
    assert np.count_nonzero(loads) >= 1
    np.testing.assert_allclose(moved, v + h * a, rtol=1e-7, atol=1e-8)


def _stepped(field: Any, y: Array, u: Array, h: float) -> Array:
    """The state after one step, by the text on floats."""
    return y + h * np.array(field.text(0.0, y.tolist(), u.tolist(), h))


@pytest.mark.parametrize("law", LAWS)
def test_resistance_is_the_derivative_of_the_force(law: str) -> None:
    model, _, _, _ = landing()
    given = as_ground(law, model)
    assert given is not None
    ground, step = given.fitted(model), 1e-7
    for depth, speed in ((2.3e-3, 0.05), (5.7e-3, 0.3), (1.1e-3, 0.01)):
        place, u = Vec3(0.0, 0.0, -depth), Vec3(0.1, 0.2, -speed)
        r = ground.resistance(place, u)
        by_depth = (ground.normal(depth + step, speed).force
                    - ground.normal(depth - step, speed).force) / (2.0 * step)  # fmt: skip
        by_rate = (ground.normal(depth, speed + step).force
                   - ground.normal(depth, speed - step).force) / (2.0 * step)  # fmt: skip
        assert r.stiffness == pytest.approx(max(by_depth, 0.0), rel=1e-5, abs=1e-3)
        assert r.damping == pytest.approx(max(by_rate, 0.0), rel=1e-5, abs=1e-3)


def test_servos_are_springs_and_dampers_until_they_saturate() -> None:
    model, q, _, control = landing()
    robot, still = RobotText(model), ([0.0] * 18, [])
    k, d = drive_gains(control, robot, 0.0, q.tolist(), *still)
    assert k == [0.0] * 6 + [200.0] * 12
    assert d == [0.0] * 6 + [10.0] * 12
    weak = rf.control.PD(rf.motion.Hold(q[-12:]), kp=1.0, kd=2.0, limits=0.5)
    both = rf.control.Sum([control, weak])
    assert drive_gains(both, robot, 0.0, q.tolist(), *still)[0][-1] == 201.0
    off = (q + np.r_[np.zeros(17), 0.6]).tolist()
    assert drive_gains(both, robot, 0.0, off, *still)[0][-2:] == [201.0, 200.0]
    assert drive_gains(None, robot, 0.0, q.tolist(), *still) == ([0.0] * 18, [0.0] * 18)


def test_coupled_joints_resist_at_least_as_much_as_their_tendon() -> None:
    row, k = {0: 1.0, 1: -2.0, 2: 0.5}, 7.0
    J = np.array(list(row.values()))
    more = np.diag(along(row, k, 0.0, 3)[0]) - k * np.outer(J, J)
    assert np.linalg.eigvalsh(more).min() > -1e-12


# ---- a damped spring, however it is made ----

MASS, K, D = 2.0, 8000.0, 900.0
BLOCK = """
name: block
gravity: [0, 0, 0]
links:
  - {name: block, joint: {type: prismatic, axis: x}, frame: {}, mass: 2.0}
"""
PARTS = {
    "tendon": "tendons:\n  - {name: rope, joints: {block: 1.0}, stiffness: 8000, damping: 900}\n",
    "servo": "actuators:\n  - {name: servo, kind: position, joint: block, kp: 8000, kv: 900}\n",
    "filter": "actuators:\n  - {name: servo, kind: motor, joint: block, activation: filter, "
    "time: 1.0e-4}\n",
}


def block(**keys: Any) -> rf.Model:
    b = rf.Builder("block", gravity=(0, 0, 0))
    return b.link("block", joint="prismatic", axis=(1, 0, 0), mass=MASS, **keys).model()


def made_as(kind: str, folder: Path) -> tuple[rf.Model, dict[str, Any]]:
    """A block on a spring K and damper D: an element of its joint, a servo, a tendon, an actuator;
    or under a filtered actuator.
    """
    if kind == "element":
        return block(spring={"stiffness": K}, damping=D), {}
    if kind == "controller":
        return block(), {"control": rf.control.PD(rf.motion.Hold([0.0]), kp=K, kd=D)}
    (folder / "block.yaml").write_text(BLOCK + PARTS[kind])
    model = rf.load(folder / "block.yaml")
    u = {"servo": 0.0 if kind == "servo" else 6.0}
    return model, {} if kind == "tendon" else {"control": rf.control.Commands.to(model, u)}


@pytest.mark.parametrize("kind", ["element", "controller", "tendon", "servo"])
def test_a_damped_spring_in_closed_form(kind: str, tmp_path: Path) -> None:
    """v+ = (m v - h k x) / (m + h d + h^2 k), x+ = x + h v+; in steps of 20 ms, an explicit scheme
    would grow sixfold a step.
    """
    model, options = made_as(kind, tmp_path)
    h, x, v = 0.02, 0.1, 1.0
    found = {m: rf.rollout(model, [x], [v], steps=3, dt=h, method=m, **options) for m in IMPLICIT}

    def euler(x: float, v: float, h: float) -> Array:
        v = (MASS * v - h * K * x) / (MASS + h * D + h * h * K)
        return np.array([x + h * v, v])

    one = two = np.array([x, v])
    for _ in range(3):
        one = euler(*one, h)
        two = 2.0 * euler(*euler(*two, h / 2), h / 2) - euler(*two, h)
    for method, exact in zip(IMPLICIT, (one, two), strict=True):
        end = np.r_[found[method].q, found[method].v]
        np.testing.assert_allclose(end, exact, rtol=1e-11, atol=1e-13)


def test_activations_decay_by_themselves(tmp_path: Path) -> None:
    """A filter of 0.1 ms in steps of 5 ms."""
    model, options = made_as("filter", tmp_path)
    r = rf.simulate(model, 0.1, method="implicit_extrapolation", step=5e-3, **options)
    assert r.v[-1, 0] == pytest.approx(0.3, rel=0.06)  # 6 N on 2 kg, but for the first step


def test_bristles_stick_and_slide() -> None:
    """LuGre friction of 4 N on a block in steps of 4 ms, where its bristles act at 200 1/s: below
    4 N it stays, above it slides as Coulomb says.
    """
    model = block(friction={"coulomb": 4.0, "lugre": {}})
    for force, speed in ((3.0, 0.0), (8.0, 1.0)):
        tau = np.array([force])
        for method in IMPLICIT:
            end = rf.rollout(model, [0.0], [0.0], steps=125, dt=4e-3, tau=tau, method=method)
            assert end.v[0] == pytest.approx(speed, abs=0.02)
            assert speed or abs(end.q[0]) < 2e-4


# ---- stops ----


@pytest.mark.parametrize("h", [1e-3, 5e-3, 2e-2])
def test_a_stop_takes_energy_and_does_not_stick(h: float) -> None:
    """A block runs into its stop (5 ms): no step gives it energy, it comes to rest or leaves, and
    never with more speed than it brought.
    """
    model = block(limits=[(-0.5, 0.5)])
    for method in IMPLICIT:
        run = rf.simulate(model, 1.0, [0.45], [1.0], method=method, step=h, dt_out=h)
        energy = run.energy.kinetic + run.passive.stored["stop"]
        assert np.diff(energy).max() < 0.05 * energy[0]
        assert energy[-1] < 0.6 * energy[0]
        assert run.q.max() < 0.5 + 1.5 * max(h, 5e-3)
        assert run.v[-1, 0] <= 1e-9  # on its way back or at rest, not inward
    away = rf.rollout(model, [0.502], [-0.3], steps=1, dt=h, method="implicit_euler")
    assert away.v[0] <= -0.3 + 1e-12


def test_stiff_joints_have_their_order() -> None:
    """Joints with damping, springs and a stop that rk4 does not survive at 4 ms."""
    b = rf.Builder("stiff")
    solid = {"com": (0.2, 0.0, 0.0), "inertia": (1e-4, 1e-3, 1e-3), "axis": (0, 1, 0)}
    b.link("a", mass=1.0, damping=1.0, limits=[(-0.4, 0.3)], **solid)
    b.link("b", "a", at=(0.3, 0, 0), mass=0.2, damping=5.0, spring={"stiffness": 900.0}, **solid)
    b.link("c", "b", at=(0.3, 0, 0), mass=0.1, damping=30.0, **solid)
    m = b.model()
    start = {"q0": [-0.1, 0.3, 0.2], "v0": [0.5, 0.0, 0.0]}
    exact = rf.simulate(m, 0.5, method="radau", rtol=1e-10, atol=1e-12, **start).q[-1]
    for method, best in zip(IMPLICIT, (5e-3, 1e-4), strict=True):
        errors = [
            np.abs(rf.simulate(m, 0.5, method=method, step=h, **start).q[-1] - exact).max()
            for h in (4e-3, 1e-3)
        ]
        assert errors[0] < best
        assert errors[1] < errors[0] / 3.0  # the stop has a kink


# ---- the ground ----


def test_long_steps_on_stiff_ground_are_of_their_order() -> None:
    """A landing under stiff servos: explicit steps of 4 ms blow up, implicit ones are millimetres
    off, and the less the shorter they are.
    """
    model, q, v, control = landing()
    options: dict[str, Any] = {"ground": "hunt_crossley", "control": control}
    fine = rf.rollout(model, q, v, steps=30_000, dt=2e-5, method="semi_implicit_euler", **options).q
    for method, best, order in zip(IMPLICIT, (6e-4, 4e-4), (1.0, 2.0), strict=True):
        ends = [
            rf.rollout(model, q, v, steps=round(0.6 / h), dt=h, method=method, **options).q
            for h in (8e-3, 1e-3)
        ]
        off = [float(np.abs(end[:3] - fine[:3]).max()) for end in ends]
        assert off[1] < best
        assert off[0] / off[1] > 3.9**order
    explicit = pytest.raises(rf.SimulationError, match="1 of 1 states failed")
    with pytest.warns(RuntimeWarning, match="too long for semi_implicit_euler"), explicit:
        rf.rollout(model, q, v, steps=150, dt=4e-3, method="semi_implicit_euler", **options)
    run = rf.simulate(model, 0.2, q, v, step=4e-3, dt_out=0.1, **options)
    same = rf.rollout(model, q, v, steps=50, dt=4e-3, **options)
    assert run.options["method"] == "implicit_extrapolation"
    np.testing.assert_allclose(run.q[-1], same.q, atol=1e-9)
    assert "the implicit steps themselves" in str(run.audit)


@pytest.mark.parametrize("law", [rf.contact.Firm, rf.contact.Dusty, rf.contact.HuntCrossley])
@pytest.mark.parametrize("method", IMPLICIT)
def test_friction_of_a_landing_is_that_of_its_normal_impulse(law: Any, method: str) -> None:
    """A sliding ball lands, in the second state of two: it loses friction times the speed that the
    ground took along the normal. Catches: friction under the damper's first force stopped it
    sideways.
    """
    body: dict[str, Any] = {"joint": "free", "mass": 2.0, "inertia": (0.1,) * 3}
    m = rf.Builder("ball").link("ball", **body, points={"sole": (0, 0, 0)}).model()
    q, v = np.tile(m.neutral(), (2, 1)), np.zeros((2, 6))
    q[:, 2], v[1, :3] = (1.0, 1e-4), (6.0, 0.0, -1.0)
    ground, h = law(friction=0.3), 2e-3
    run = rf.rollout(m, q, v, steps=20, dt=h, ground=ground, method=method, every=1)
    fast = run.v[1, :, 0] > 1.0  # it slides
    normal = run.v[1, :, 2] - v[1, 2] + 9.81 * run.t
    lost = v[1, 0] - run.v[1, :, 0]
    assert normal[fast].max() > 0.9
    np.testing.assert_allclose(lost[fast], 0.3 * normal[fast], rtol=0.05, atol=1e-3)


def test_energy_that_the_steps_dissipate_is_the_reason_of_a_failed_audit() -> None:
    rod = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.3, 0, 0), "damping": 0.01}
    m = rf.Builder("pendulum").link("rod", **rod).model()
    options: dict[str, Any] = {"method": "implicit_euler", "dt_out": 0.1}
    audit = rf.simulate(m, 2.0, [0.0], step=1e-2, **options).audit
    lost = audit.own_dissipation
    assert not audit.passed
    assert audit.verdict.startswith(f"failed: the steps dissipated {audit.energy.largest:.3g} J (")
    assert audit.verdict.endswith("shorten the step")
    assert audit.first_break.body is None
    assert f"dissipated {lost:.6g} J" in audit._repr_html_()
    assert "shorten the step" in str(audit)
    assert rf.simulate(m, 0.02, [0.0], step=1e-6, **options).audit.verdict == "passed"


@pytest.mark.parametrize("law", LAWS)
def test_a_walk_in_prescribed_joints(law: str) -> None:
    """The base is free, the joints are prescribed: near the fine solution at 2 ms."""
    s = rf.scenario("planar_biped_walk")
    fine = ("rk4", 1e-4) if law == "hunt_crossley" else ("implicit_extrapolation", 5e-5)
    ends = [
        rf.simulate(s.robot, 0.2, s.q0, s.v0, s.control, law, method=m, step=h, dt_out=0.1).q[-1]
        for m, h in (("implicit_extrapolation", 2e-3), fine)
    ]
    assert np.abs(ends[0] - ends[1]).max() < 2e-3


def test_functions_of_the_user_and_the_text_step_alike() -> None:
    """Compiled, through a Python function, and as text: one step."""
    model, q, v, _ = landing()
    q = q.copy()
    q[2] -= 0.05
    tau = np.r_[np.zeros(6), 0.3 * np.ones(12)]
    options: dict[str, Any] = {"ground": "firm", "method": "implicit_euler"}
    batch = rf.rollout(model, q, v, steps=2, dt=2e-3, tau=tau, **options)
    run = rf.simulate(model, 4e-3, q, v, lambda t, q, v: tau[6:], step=2e-3, dt_out=4e-3, **options)
    np.testing.assert_allclose(run.q[-1], batch.q, atol=1e-12)
    field = make_field(model, None, PlantOptions(ground="firm", implicit=True))
    y = field.start(q, v)
    for _ in range(2):
        y = _stepped(field, y, tau, 2e-3)
    np.testing.assert_allclose(y[field.state_slices[1]], batch.v, atol=1e-9)


# ---- loops ----


def test_loops_with_stiff_joints_have_their_order() -> None:
    """A four-bar with a damper of 3 N m s; with one of 60, rk4 does not survive steps of 10 ms."""
    model = rf.load("four_bar")
    q, still = model.assemble().q, np.zeros(model.nv)
    options: dict[str, Any] = {"damping": [0.0, 3.0, 0.0], "method": "implicit_extrapolation"}
    exact = rf.simulate(model, 0.3, q, damping=options["damping"], rtol=1e-11, atol=1e-13).q[-1]
    errors = []
    for h in (2.5e-3, 1e-3):
        r = rf.simulate(model, 0.3, q, step=h, **options)
        errors.append(np.abs(r.q[-1] - exact).max())
        assert r.loops is not None
        assert r.loops.largest_gap < 1e-6
    assert errors[0] / errors[1] > 4.0
    batch = rf.rollout(model, q, still, steps=300, dt=1e-3, **options)
    np.testing.assert_allclose(batch.q, r.q[-1], atol=1e-9)
    strong: dict[str, Any] = {"damping": [0.0, 60.0, 0.0]}
    exact = rf.simulate(model, 0.3, q, rtol=1e-9, atol=1e-11, **strong).q[-1]
    end = rf.rollout(model, q, still, steps=30, dt=1e-2, method="implicit_euler", **strong).q
    assert np.abs(end - exact).max() < 5e-4


# ---- C ----


def test_the_steps_as_c(tmp_path: Path) -> None:
    """``export --step``: the same steps as those of a rollout, with quaternions and a ground."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler is not None, "the tests need a C compiler"
    b = rf.Builder("ball")
    b.link("ball", joint="free", mass=2.0, inertia=(0.1, 0.2, 0.3), points={"sole": (0.1, 0, -0.2)})
    arm = {"mass": 0.5, "com": (0.1, 0.0, 0.0), "damping": 4.0}
    b.link("arm", "ball", at=(0.1, 0, 0), axis=(0, 1, 0), inertia=(0.01, 0.02, 0.02), **arm)
    (tmp_path / "ball.yaml").write_text(to_yaml(b.model()))
    model = rf.load(tmp_path / "ball.yaml")
    for method in IMPLICIT:
        words = ["export", str(tmp_path / "ball.yaml"), "--format", "c", "--ground", "firm"]
        with pytest.raises(SystemExit, match="0"):
            main([*words, "--step", method, "--out", str(tmp_path), "--force"])
        flags = ["-std=c99", "-O1", "-Wall", "-Werror", "-shared", "-fPIC"]
        library = tmp_path / f"{method}.so"
        files = [str(tmp_path / "ball.c"), "-o", str(library), "-lm"]
        subprocess.run([compiler, *flags, *files], check=True)
        step = getattr(ctypes.CDLL(str(library)), f"ball_{method}_step")
        q, v = np.array([0, 0, 0.195, 1.0, 0, 0, 0, 0.3]), np.array([0.1, 0, -0.5, 1, 2, 0.3, 0.5])
        u, end = (
            np.zeros(7),
            rf.rollout(model, q, v, steps=5, dt=3e-3, ground="firm", method=method),
        )
        for _ in range(5):
            out = np.empty(8), np.empty(7)
            arrays = (np.array([0.0, 3e-3]), q, v, u, *out)
            step(*(ctypes.c_void_p(x.ctypes.data) for x in arrays))
            q, v = out
        np.testing.assert_allclose(q, end.q, atol=1e-10)
        np.testing.assert_allclose(v, end.v, atol=1e-8)


def test_long_runs_of_large_robots_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A robot that counts as large: a short run asks Python, a long one compiles, and both agree."""
    monkeypatch.setattr("ramify.kernels.tier_policy.MAX_LINKS", 1)
    monkeypatch.setattr("ramify.integrate.options._COMPILING", 0.05)
    b = rf.Builder("arm")
    for name, parent in (("a", None), ("b", "a"), ("c", "b")):
        b.link(name, parent, at=(0.3, 0, 0), axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), damping=2.0)
    m = b.model()
    field, implicit = make_field(m), {"method": "implicit_extrapolation", "step": 1e-3}
    assert not field.compiles
    asked: list[bool] = []

    class Watched(Rates):
        def __init__(self, field: Field, compiled: bool = False) -> None:
            super().__init__(field, compiled)
            asked.append(self.entry is not None)

    monkeypatch.setattr("ramify.runs.simulate.Rates", Watched)
    for how in ({}, implicit):
        (short, long) = (rf.simulate(m, t, dt_out=0.01, **how) for t in (0.03, 0.5))
        assert_allclose(short.q, long.q[: len(short.q)], atol=1e-9)
        assert_allclose(short.tau, long.tau[: len(short.q)])
    assert asked == [False, True] * 2
    assert rf.simulate(m, 0.5, control=lambda t, q, v: [0.0] * 3).status == "finished"
    assert not asked[-1]
