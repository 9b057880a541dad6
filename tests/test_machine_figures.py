"""The numbers behind a machine's forces, computed anew: rotations against SciPy, default stops, slip
speeds and bristles from inertia and load, slopes by differences, rates by eigenvalues; and the gains
of implicit steps.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import close
from scipy.spatial.transform import Rotation

import ramify as rf
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array
from ramify.core.spatial import Vec3
from ramify.drives.actuators import within
from ramify.drives.element_laws import BristleLaw, bristles, stop
from ramify.drives.joint_drives import commanded, force_of, law_of
from ramify.drives.machine_forces import actuator_text, passive_text
from ramify.drives.machine_slopes import fastest_rate, fastest_stop, force_slopes
from ramify.drives.passive import joint_inertia, joint_load
from ramify.drives.rotation import between, log
from ramify.integrate.machine_steps import fastest_joint
from ramify.model.machine import Actuator, Tendon
from ramify.plant.joint_gains import drive_gains, machine_gains
from ramify.plant.make_field import PlantOptions, make_field

TURNS = Rotation.from_rotvec([[0.3, -0.2, 0.5], [1.1, 0.7, -2.0], [-0.4, 1.9, 0.6]])
RESTS = Rotation.from_rotvec([[-0.6, 0.4, 0.2], [0.9, -0.3, 0.8], [0.2, 0.5, -1.1]])


def solid(scale: float = 1.0) -> dict[str, Any]:
    return {"mass": 1.3 * scale, "com": (0.2, 0.1, 0.05), "inertia": (0.03 * scale, 0.04, 0.05)}


def vector(v: Vec3) -> Array:
    return np.array([v.x, v.y, v.z], dtype=np.float64)


# ---- rotations ----


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rotation_vectors_are_those_of_scipy(sign: float) -> None:
    quaternions = TURNS.as_quat(scalar_first=True), RESTS.as_quat(scalar_first=True)
    for turn, rest, q, r in zip(TURNS, RESTS, *quaternions, strict=True):
        close(vector(log((sign * q).tolist())), turn.as_rotvec(), 1e-12, 1e-12, "log")
        way = (rest.inv() * turn).as_rotvec()
        close(vector(between(r.tolist(), (sign * q).tolist())), way, 1e-12, 1e-12, "way")


@pytest.mark.parametrize("joint", ["ball", "free"])
def test_springs_of_rotations_pull_back_to_any_rest(joint: str) -> None:
    """-(a + b |r| + c |r|^2) r, r the rotation vector from the rest in the turned frame."""
    a, b, c = 3.0, 0.7, 0.4
    for rest, turn, place in zip(RESTS, TURNS, RESTS.as_rotvec(), strict=True):
        turned = {"stiffness": [a, b, c], "rest": rest.as_quat(scalar_first=True).tolist()}
        placed = {"stiffness": [2.0, 0.3, 0.2], "rest": [0.1, -0.2, 0.4]}
        spring: Any = turned if joint == "ball" else [placed] * 3 + [turned] * 3
        model = rf.Builder("one").link("a", joint=joint, spring=spring, **solid()).model()
        q = turn.as_quat(scalar_first=True)
        q = q if joint == "ball" else np.concatenate([place, q])
        ways = [(rest.inv() * turn).as_rotvec()]
        numbers = [(a, b, c)]
        if joint == "free":
            ways, numbers = [place - [0.1, -0.2, 0.4], *ways], [(2.0, 0.3, 0.2), *numbers]
        sizes = [float(np.linalg.norm(r)) for r in ways]
        rows = list(zip(ways, sizes, numbers, strict=True))
        force = np.concatenate([-(a + b * s + c * s * s) * r for r, s, (a, b, c) in rows])
        stored = sum(a * s**2 / 2 + b * s**3 / 3 + c * s**4 / 4 for _, s, (a, b, c) in rows)
        found = model.passive_forces(q, np.zeros(model.nv))
        close(found.parts["spring"], force, 1e-10, 1e-10, "force")
        close(found.stored["spring"], stored, 1e-10, 1e-10, "stored")


# ---- laws ----


def test_bristles_by_hand() -> None:
    """Creeping, giving way, unbending, and beyond the speed that bends them, in both directions."""
    law = BristleLaw(2.0, 1.5, 3.0, 4.0, 500.0, 6.0, 0.3)
    for v in (-2.0, -0.2, -0.01, 0.01, 0.2, 2.0):
        for z in (-0.008, -0.0045, -0.001, 0.0, 0.001, 0.0045, 0.008):
            sliding = 2.0 if v > 0.0 else 1.5
            height = sliding + (3.0 - sliding) / (1.0 + (4.0 * v) ** 2)
            w = min(max(v, -0.3), 0.3)
            size = 500.0 * abs(z)
            x = min(max((size - 0.7 * sliding) / (height - 0.7 * sliding), 0.0), 1.0)
            share = x * x * (3.0 - 2.0 * x) if z * v > 0.0 else 0.0
            s = 1.0 - share * size / height
            r = w / v if z * v < 0.0 else 1.0
            force, rate = -(r * 500.0 * z + 6.0 * max(s, 0.0) * w), w * s
            found = bristles(law, v, z)
            at = f"at v = {v}, z = {z}"
            close([found.force, found.rate], [force, rate], 1e-12, 1e-12, f"force, rate {at}")
            close(found.stored, 250.0 * z * z, 1e-12, 1e-15, f"stored {at}")
            close(found.loss, -force * v - 500.0 * z * rate, 1e-12, 1e-12, f"loss {at}")


def machine() -> rf.Model:
    """Joints with stops, friction and bristles whose numbers are given, or follow."""
    b = rf.Builder("machine", gravity=(0.0, -9.0, -2.0))
    b.link("given", limits=[(-1.0, 0.8)], stop={"stiffness": 700.0, "damping": 3.0}, **solid())
    b.link("timed", "given", at=(0.3, 0.1, 0.0), axis=(0, 1, 0), limits=[(-0.5, 0.9)],
           stop={"time": 0.02, "ratio": 3.0}, **solid(0.8))  # fmt: skip
    b.link("plain", "timed", at=(0.3, 0.0, 0.1), axis=(1, 0, 0), limits=[(-0.7, 0.6)],
           friction={"coulomb": 0.3, "static": 0.9, "stribeck_speed": 0.2}, **solid(0.6))  # fmt: skip
    b.link("rated", "plain", "prismatic", at=(0.1, 0.0, 0.2), axis=(0, 1, 0), velocity=1.7,
           friction={"coulomb": {"forward": 40.0, "backward": 20.0}}, **solid(0.5))  # fmt: skip
    b.link("sticky", "rated", at=(0.2, 0.0, 0.2), axis=(0, 1, 0), friction={
        "coulomb": {"forward": 0.5, "backward": 0.3}, "static": 0.8, "stribeck_speed": 0.1,
        "lugre": {"time": 0.01}}, **solid(0.4))  # fmt: skip
    b.link("stiff", "sticky", at=(0.2, 0.0, 0.2), axis=(1, 0, 0), friction={
        "coulomb": 0.4, "lugre": {"stiffness": 800.0, "damping": 2.0}}, **solid(0.3))  # fmt: skip
    return b.model()


def test_defaults_of_stops_friction_and_bristles_follow_from_inertia_and_load() -> None:
    model, text = machine(), passive_text(machine())
    q = np.array([model.random(seed)[0] for seed in range(24)])
    inverse = np.linalg.inv(model.mass_matrix(q))
    m = 1.0 / np.array([np.diag(x) for x in inverse]).max(axis=0)
    load = np.abs(model.gravity_forces(q)).max(axis=0)
    close(joint_inertia(model), m, 1e-9, 0.0, "inertia")
    close(joint_load(model), load, 1e-9, 1e-12, "load")
    k = m[1] / 0.02**2
    sagging = max(m[2] / 0.005**2, load[2] / 2e-3)
    assert load[2] / 2e-3 != pytest.approx(m[2] / 0.005**2, rel=0.05)
    rows = [
        (700.0, 3.0, 0.1 * math.sqrt(m[0] / 700.0)),
        (k, 2.0 * 3.0 * math.sqrt(m[1] * k), 0.1 * math.sqrt(m[1] / k)),
        (sagging, 2.0 * math.sqrt(m[2] * sagging), 0.1 * math.sqrt(m[2] / sagging)),
    ]
    close([text.law_of_stop(j) for j in range(3)], rows, 1e-9, 0.0, "stiffness, damping, ramp")
    close(text.slip(2), min(0.9e-3 / m[2], 0.05), 1e-9, 0.0, "slip speed")
    assert 30e-3 / m[3] > 0.017
    close(text.slip(3), 0.017, 1e-9, 0.0, "rated slip speed")
    assert text.bristles == (4, 5)
    law = text.law_of_bristles(4)
    k = m[4] / 0.01**2
    close([law.forward, law.backward, law.static, law.per_speed], [0.5, 0.3, 0.8, 10.0], 1e-12)
    close([law.stiffness, law.damping], [k, 2.0 * math.sqrt(m[4] * k)], 1e-9, 0.0, "bristles")
    close(law.most, 0.4 / (k * 0.01), 1e-9, 0.0, "the speed that bends them")
    law = text.law_of_bristles(5)
    close([law.stiffness, law.damping, law.static], [800.0, 2.0, 0.0], 1e-12, 0.0, "given")
    v = np.array([0.0, 0.0, 0.0, 0.0, -0.3, 0.7])
    steady = model.passive_forces(np.zeros(6), v).parts["friction"]
    deflections = np.array(text.bristles_at_start(v.tolist()), dtype=np.float64)
    stiffness = [text.law_of_bristles(j).stiffness for j in (4, 5)]
    close(-deflections * stiffness, steady[4:], 1e-9, 1e-12, "friction of joints that slide")
    assert steady[4] > 0.0 > steady[5]


def test_a_stop_by_hand_at_both_ends() -> None:
    text = passive_text(machine())
    law = text.joint_laws[0].stop
    k, c, ramp = text.law_of_stop(0)
    assert (law.low, law.high) == (-1.0, 0.8)
    for e, q in ((0.0, 0.3), (0.3 * ramp, 0.8 + 0.3 * ramp), (-0.6 * ramp, -1.0 - 0.6 * ramp), (-0.2, -1.2)):  # fmt: skip
        for v in (-50.0, -0.4, 0.0, 0.4, 50.0):
            x = min(abs(e) / ramp, 1.0)
            push = k * e + c * x * x * (3.0 - 2.0 * x) * v
            force = -push if push * e > 0.0 else 0.0
            found = stop(law, q, v)
            at = f"at {q}, {v}"
            close(found.force, force, 1e-9, 1e-9, f"force {at}")
            close(found.stored, 0.5 * k * e * e, 1e-9, 1e-12, f"stored {at}")
            close(found.loss, -(force + k * e) * v, 1e-9, 1e-9, f"loss {at}")
            assert found.loss >= -1e-9


def test_a_cone_presses_against_the_turn_and_its_rate() -> None:
    b = rf.Builder("ball")
    b.link("a", joint="ball", cone=0.5, stop={"stiffness": 200.0, "damping": 30.0}, **solid())
    model = b.model()
    axis = np.array([0.6, 0.0, 0.8])
    q = Rotation.from_rotvec(0.9 * axis).as_quat(scalar_first=True)
    for rate in (-1.0, 0.0, 0.7):
        v = rate * axis + np.array([0.0, 0.4, 0.0])
        force = -(200.0 * 0.4 + 30.0 * rate) * axis
        close(model.passive_forces(q, v).parts["stop"], force, 1e-9, 1e-9, f"at {rate}")


def test_a_drive_of_the_second_coordinate_alone_has_its_gear() -> None:
    b = rf.Builder("two")
    b.link("a", joint="cylindrical", axis=(0, 0, 1), **solid())
    model = b.model()
    motor = Actuator("m", joint="a", gear=(0.0, 3.0, 0, 0, 0, 0))
    model = replace(model, machine=replace(model.machine, actuators=(motor,)))
    assert actuator_text(model).alone == {1: (0, 3.0)}
    assert actuator_text(model).drive_laws[1].gear == 3.0


# ---- rates ----


@pytest.mark.parametrize("ratio", [0.3, 4.0])
def test_the_fastest_stop_is_that_of_the_larger_root(ratio: float) -> None:
    """Overdamped ones have two decays; the faster one limits the step."""
    b = rf.Builder("two")
    for name, time in (("slow", 0.04), ("fast", 0.02), ("still", 0.03)):
        b.link(name, None, limits=[(-1, 1)], stop={"time": time, "ratio": ratio}, **solid())
    model = b.model()
    inertia = [0.5, 0.7, 0.6]
    text = passive_text(model)
    roots = [np.abs(np.roots([m, text.law_of_stop(j)[1], text.law_of_stop(j)[0]])) for j, m in enumerate(inertia)]  # fmt: skip
    rate, j = fastest_stop(text, inertia)
    assert j == 1
    close(rate, max(x.max() for x in roots), 1e-12, 0.0, "rate")
    if ratio > 1.0:
        assert roots[1].max() > 3.0 * roots[1].min()
    assert fastest_stop(passive_text(model, stops=False), inertia) == (0.0, 0)


def coupled() -> rf.Model:
    """A branching machine with a ball, tendons over several joints and unequal elements."""
    b = rf.Builder("coupled")
    b.link("a", damping=0.4, spring={"stiffness": [5.0, 0.6, 0.2], "rest": 0.3}, **solid())
    b.link("b", "a", "ball", at=(0.2, 0.1, 0.0), damping=0.3,
           spring={"stiffness": 2.0, "rest": [0.8, 0.36, 0.48, 0.0]}, **solid(0.8))  # fmt: skip
    b.link("c", "b", "prismatic", at=(0.1, 0.2, 0.0), axis=(0, 1, 0), damping=0.7, **solid(0.5))
    model = b.model()
    tendons = (
        Tendon("belt", joints=(("a", 0.7), ("c", -1.4)), stiffness=(30.0, 2.0, 1.0),
               damping=(0.5, 0.0, 0.0), rest=(0.1, 0.4)),
    )  # fmt: skip
    return replace(model, machine=replace(model.machine, tendons=tendons))


def moved(model: rf.Model, q: Array, k: int, h: float) -> Array:
    return model.integrate(q, np.eye(model.nv)[k], h)


def test_slopes_and_rates_of_a_coupled_machine() -> None:
    model = coupled()
    q = model.random(seed=4)[0]
    text = passive_text(model).without_slack
    assert [t.rest for t in text.robot.tendons] == [(0.4, 0.4)]
    taut = replace(model, machine=replace(model.machine, tendons=text.robot.tendons))
    h, n, still = 1e-6, model.nv, np.zeros(model.nv)

    def total(x: Array, v: Array) -> Array:
        return taut.passive_forces(x, v).total

    K = -np.stack([(total(moved(model, q, k, h), still) - total(moved(model, q, k, -h), still)) for k in range(n)], 1) / (2 * h)  # fmt: skip
    D = -np.stack([(total(q, h * e) - total(q, -h * e)) for e in np.eye(n)], 1) / (2 * h)
    found = force_slopes(model, lambda x, v: text(x, v).total, q)
    close(found[0], K, 1e-6, 1e-5, "stiffness")
    close(found[1], D, 1e-6, 1e-6, "damping")
    M = model.mass_matrix(q)
    for ways in (np.eye(n), np.linalg.qr(np.random.default_rng(2).normal(size=(n, 3)))[0]):
        m, k, d = (ways.T @ X @ ways for X in (M, K, D))
        A = np.block([[np.zeros_like(m), np.eye(len(m))], [-np.linalg.solve(m, k), -np.linalg.solve(m, d)]])  # fmt: skip
        values, vectors = np.linalg.eig(A)
        worst = int(np.argmax(np.abs(values)))
        rate, j = fastest_rate(M, K, D, ways)
        close(rate, np.abs(values[worst]), 1e-9, 0.0, "rate")
        assert j == int(np.argmax(np.abs(ways @ vectors[len(m) :, worst])))
    field = make_field(model, None, PlantOptions(damping=[0.1, 0.2, 0.3, 0.4, 3.0]))
    rate, j = fastest_joint(field, q)
    assert (rate, j) == pytest.approx(fastest_rate(M, K, D + np.diag(field.damping), np.eye(n)), rel=1e-5)  # fmt: skip


# ---- gains of implicit steps ----


def test_gains_of_the_machine_are_the_slopes_where_it_resists() -> None:
    """Joint by joint; a tendon counts with |J_i| sum |J_j| k."""
    model = coupled()
    text = passive_text(model)
    q, v = model.random(seed=4)
    q[0], q[-1] = 0.9, -0.4  # the belt is taut
    h, n = 1e-6, model.nv

    def parts(x: Array, w: Array) -> Array:
        found = model.passive_forces(x, w).parts
        return sum((f for part, f in found.items() if part != "tendon"), np.zeros(n))

    k = np.array([-(parts(moved(model, q, j, h), v) - parts(moved(model, q, j, -h), v))[j] for j in range(n)]) / (2 * h)  # fmt: skip
    d = np.array([-(parts(q, v + h * e) - parts(q, v - h * e))[j] for j, e in enumerate(np.eye(n))]) / (2 * h)  # fmt: skip
    k, d = np.maximum(k, 0.0), np.maximum(d, 0.0)
    x = 0.7 * 0.9 + 1.4 * 0.4 - 0.4
    slope = 30.0 + 4.0 * x + 3.0 * x * x
    for j, size in ((0, 0.7), (4, 1.4)):
        k[j] += size * 2.1 * slope
        d[j] += size * 2.1 * 0.5
    found = machine_gains(text, q.tolist(), v.tolist(), [])
    close(np.array(found[0], dtype=np.float64), k, 1e-6, 1e-5, "stiffness")
    close(np.array(found[1], dtype=np.float64), d, 1e-6, 1e-6, "damping")


DRIVES = (
    Actuator("servo", joint="a", gear=(2.0, 0, 0, 0, 0, 0), gain=(7.0, 0.0, 0.0), bias=(0.3, -7.0, -0.4), force=(-30.0, 20.0)),
    Actuator("muscle", joint="c", gear=(-1.5, 0, 0, 0, 0, 0), gain=(3.0, -0.8, -0.6), bias=(0.1, -2.0, -0.2), command=(-1.0, 2.0)),
    Actuator("line", tendon="belt", gear=(0.5, 0, 0, 0, 0, 0), gain=(2.0, 0.0, -0.3), bias=(0.0, -4.0, -0.1)),
    Actuator("lag", joint="a", gain=(2.0, 0, 0), activation="filterexact", time=0.05, activations=(-0.5, 1.0), early=True, step=0.02),
    Actuator("sum", joint="c", gain=(1.5, 0, 0), activation="integrator", activations=(-0.2, 0.3)),
)  # fmt: skip


def test_forces_and_gains_of_actuators_by_hand() -> None:
    model = coupled()
    model = replace(model, machine=replace(model.machine, actuators=DRIVES))
    text = actuator_text(model)
    q, v = model.random(seed=5)
    q[0], q[-1] = 0.5, -0.3
    belt = np.array([0.7, 0.0, 0.0, 0.0, -1.4])
    e = np.eye(5)
    for u, w in (([0.9, 1.4, -0.3, 0.6, 0.2], [0.4, 0.1]), ([-9.0, 5.0, 0.8, -3.0, 1.0], [1.0, 0.3]), ([0.2, -2.0, 0.1, 8.0, -1.0], [-0.5, -0.2])):  # fmt: skip
        rows = [2.0 * e[0], -1.5 * e[4], 0.5 * belt, e[0], e[4]]
        lengths = [2.0 * q[0], -1.5 * q[-1], 0.5 * (0.7 * q[0] - 1.4 * q[-1]), q[0], q[-1]]
        rates = [row @ v for row in rows]
        filtered, summed = (u[3] - w[0]) / 0.05, u[4]
        ahead = 0.05 * (1.0 - math.exp(-0.02 / 0.05))
        inputs = [u[0], min(max(u[1], -1.0), 2.0), u[2], min(max(w[0] + ahead * filtered, -0.5), 1.0), min(max(w[1], -0.2), 0.3)]  # fmt: skip
        raw = [
            (a.gain[0] + a.gain[1] * x + a.gain[2] * s) * y + a.bias[0] + a.bias[1] * x + a.bias[2] * s
            for a, x, s, y in zip(DRIVES, lengths, rates, inputs, strict=True)
        ]  # fmt: skip
        force = [min(max(f, a.force[0]), a.force[1]) for f, a in zip(raw, DRIVES, strict=True)]
        found = text(q.tolist(), v.tolist(), u, w)
        close(np.array(found.force, dtype=np.float64), force, 1e-12, 1e-12, "force")
        tau = sum(f * row for f, row in zip(force, rows, strict=True))
        close(np.array(found.tau, dtype=np.float64), tau, 1e-12, 1e-12, "tau")
        stuck = [(w[0] >= 1.0 and filtered > 0.0) or (w[0] <= -0.5 and filtered < 0.0), (w[1] >= 0.3 and summed > 0.0) or (w[1] <= -0.2 and summed < 0.0)]  # fmt: skip
        expected = [0.0 if still else r for r, still in zip((filtered, summed), stuck, strict=True)]
        close(np.array(found.rates, dtype=np.float64), expected, 1e-12, 1e-12, "rates")
        free = [float(a.force[0] < f < a.force[1]) for f, a in zip(raw, DRIVES, strict=True)]
        k = [-s * (a.gain[1] * y + a.bias[1]) for s, a, y in zip(free, DRIVES, inputs, strict=True)]
        d = [-s * (a.gain[2] * y + a.bias[2]) for s, a, y in zip(free, DRIVES, inputs, strict=True)]
        close(np.array(found.stiffness, dtype=np.float64), k, 1e-12, 1e-12, "stiffness")
        close(np.array(found.damping, dtype=np.float64), d, 1e-12, 1e-12, "damping")
        control = rf.control.Commands.to(model, {a.name: x for a, x in zip(DRIVES, u, strict=True)})
        robot = RobotText(model)
        gains = drive_gains(control, robot, 0.0, q.tolist(), v.tolist(), w)
        for of, numbers in zip(gains, (k, d), strict=True):
            wanted = np.zeros(5)
            for row, number in zip(rows, numbers, strict=True):
                size = np.abs(row)
                wanted += max(number, 0.0) * size * size.sum()
            close(np.array(of, dtype=np.float64), wanted, 1e-12, 1e-12, "gains at the joints")


def test_laws_of_single_drives_at_the_ends_of_their_ranges() -> None:
    for x, inside in ((-2.0, 0.0), (-1.0, 0.0), (-0.9, 1.0), (1.9, 1.0), (2.0, 0.0), (3.0, 0.0)):
        assert within(x, (-1.0, 2.0)) == inside
        assert within(x, (-math.inf, 2.0)) == float(x < 2.0)
        assert within(x, (-1.0, math.inf)) == float(x > -1.0)
    plain = law_of(replace(DRIVES[3], activation="filter"))
    assert commanded(plain, 0.7, 0.1) == pytest.approx((0.1 + 0.02 * 12.0, 12.0))
    late = law_of(replace(DRIVES[3], early=False))
    assert commanded(late, 0.7, 0.1) == pytest.approx((0.1, 12.0))
    assert force_of(law_of(DRIVES[1]), 0.5, 0.3, -0.2) == pytest.approx(0.5 * (3.0 - 0.24 + 0.12) + 0.1 - 0.6 + 0.04)  # fmt: skip


@pytest.mark.parametrize("lifts", [False, True])
def test_gravity_compensation_through_joints_and_drives(lifts: bool) -> None:
    """It carries its share of the weight: by forces of its own, or within the effort of a drive."""
    gravity = (1.0, -9.0, -2.0)
    b = rf.Builder("arm", gravity=gravity)
    b.link("a", axis=(0, 1, 0), gravity_compensation=0.7, lifts=lifts, **solid())
    b.link("b", "a", at=(0.3, 0.1, 0.0), axis=(0, 1, 1), gravity_compensation=1.2, **solid(0.8))
    model = b.model()
    states = [model.random(seed=s) for s in range(3)]
    q, v = (np.array([x[k] for x in states]) for k in (0, 1))
    weight, potential = np.zeros((3, 2)), np.zeros(3)
    at = model.kinematics(q)
    for i, share in enumerate((0.7, 1.2)):
        mass, com = model.bodies[i].mass, np.array(model.bodies[i].com)
        place = at.position[:, i] + np.einsum("tij,j->ti", at.rotation[:, i], com)
        J = model.jacobian(q, model.bodies[i].name, com)[:, 3:]
        weight -= share * mass * np.einsum("tij,i->tj", J, gravity)
        potential += share * mass * place @ np.array(gravity)
    found = model.passive_forces(q, v)
    expected = weight * [0.0 if lifts else 1.0, 1.0]
    close(found.parts["gravity_compensation"], expected, 1e-10, 1e-10, "force")
    if lifts:
        close(found.loss["gravity_compensation"], -(expected * v).sum(axis=1), 1e-10, 1e-10, "loss")
        motor = Actuator("m", joint="a")
        for effort in (math.inf, 0.6):
            own = tuple(replace(e, effort=effort) for e in model.bodies[0].joint.machine)
            first = replace(model.bodies[0], joint=replace(model.bodies[0].joint, elements=own))
            driven = replace(model, bodies=(first, model.bodies[1]), machine=replace(model.machine, actuators=(motor,)))  # fmt: skip
            tau = driven.actuator_forces(q, v, np.full((3, 1), 0.4)).tau
            close(tau[:, 0], np.clip(0.4 + weight[:, 0], -effort, effort), 1e-10, 1e-10, "drive")
    else:
        stored = found.stored["gravity_compensation"]
        close(stored - stored[0], potential - potential[0], 1e-10, 1e-10, "stored")
