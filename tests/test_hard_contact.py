"""Hard contact against closed forms: rest, slopes, slides, tips, bounces, stops, dry friction, loops,
and the same numbers in text, compiled code and lanes.
"""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.contact import Hard, HeightField, Slope
from ramify.contact.hard_rows import HardContact
from ramify.integrate.integrators import HARD
from ramify.integrate.text_steps import text_step
from ramify.plant.make_field import PlantOptions, make_field

G = 9.81
STEPS = [2e-3, 5e-3]


def box(size: tuple[float, float, float] = (0.2, 0.2, 0.2), mass: float = 2.0) -> rf.Model:
    """A free block with a contact point in each corner."""
    a, b, c = (0.5 * x for x in size)
    corners = {
        f"corner{i}": ((-1) ** i * a, (-1) ** (i // 2) * b, (-1) ** (i // 4) * c) for i in range(8)
    }
    x, y, z = (s * s for s in size)
    inertia = [mass / 12.0 * s for s in (y + z, x + z, x + y)]
    made = rf.Builder("box")
    return made.link("box", joint="free", mass=mass, inertia=inertia, points=corners).model()


def on_slope(angle: float, height: float) -> list[float]:
    """q of a block that stands ``height`` above a plane that rises ahead by this angle."""
    normal = np.array([-math.sin(angle), 0.0, math.cos(angle)])
    return [*(height * normal), math.cos(0.5 * angle), 0.0, -math.sin(0.5 * angle), 0.0]


@pytest.mark.parametrize("step", STEPS)
def test_no_creep_below_the_friction_angle(step: float) -> None:
    angle = math.atan(0.5) - math.radians(1.0)
    law = Hard(friction=0.5, terrain=Slope(angle=angle))
    r = rf.simulate(box(), 1.0, on_slope(angle, 0.1), contact=law, step=step)
    assert np.abs(r.v[-1]).max() < 1e-9
    assert np.abs(r.q[-1] - r.q[0]).max() < 1e-8
    assert r.contacts.penetration.max() < 1e-9
    assert (r.contacts.mode[-1] == np.array([0, 0, 0, 0, 1, 1, 1, 1])).all()
    load = 2.0 * G * np.array([math.cos(angle), math.sin(angle)])
    assert r.contacts.normal_load[-1].sum() == pytest.approx(load[0], rel=1e-9)
    assert r.contacts.force[-1].sum(axis=0) == pytest.approx([0.0, 0.0, 2.0 * G], abs=1e-7)


@pytest.mark.parametrize("step", STEPS)
def test_acceleration_above_the_friction_angle(step: float) -> None:
    angle = math.atan(0.5) + math.radians(5.0)
    law = Hard(friction=0.5, terrain=Slope(angle=angle))
    r = rf.simulate(box(), 0.5, on_slope(angle, 0.1), contact=law, step=step)
    speed = np.linalg.norm(r.v[-1, :3])
    assert speed == pytest.approx(0.5 * G * (math.sin(angle) - 0.5 * math.cos(angle)), rel=1e-9)
    normal = np.array([-math.sin(angle), 0.0, math.cos(angle)])
    assert r.q[-1, :3] @ normal == pytest.approx(0.1, abs=1e-9)  # no gap opens while it slides
    assert (r.contacts.mode[-1][4:] == 2.0).all()


@pytest.mark.parametrize("step", STEPS)
def test_sliding_block_stops(step: float) -> None:
    """Friction takes mu g h from the speed in each step, in the direction of the slip."""
    v0 = np.array([0.8, 0.6, 0.0, 0.0, 0.0, 0.0])
    r = rf.simulate(
        box(), 0.5, [0, 0, 0.1, 1, 0, 0, 0], v0, contact=Hard(friction=0.4), step=step, dt_out=0.1
    )
    assert r.v[1, :3] == pytest.approx(v0[:3] * (1.0 - 0.4 * G * 0.1), abs=1e-8)
    assert np.abs(r.v[3:]).max() < 1e-9
    assert r.audit.passed
    assert np.abs(r.energy_balance.error).max() < 1e-13
    stats = r.stats["hard_losses"]
    assert stats["contact friction"] == pytest.approx(0.5 * 2.0, rel=2e-2)
    assert abs(stats["contact impact"]) < 1e-9


@pytest.mark.parametrize("step", STEPS)
def test_block_tips_where_its_weight_leaves_the_base(step: float) -> None:
    """A block twice as high as wide tips at atan(1/2), however rough the slope."""
    for degrees, tips in ((26.0, False), (27.2, True)):
        angle = math.radians(degrees)
        law = Hard(friction=2.0, terrain=Slope(angle=angle))
        r = rf.simulate(
            box((0.1, 0.1, 0.2)), 1.0, on_slope(angle, 0.1), contact=law, step=step, dt_out=0.5
        )
        moved = np.abs(r.q[-1] - r.q[0]).max()
        assert (moved > 0.01) == tips
        if not tips:
            assert moved < 1e-8


@pytest.mark.parametrize(("step", "restitution"), [(2e-3, 0.0), (1e-3, 0.7)])
def test_point_bounces(step: float, restitution: float) -> None:
    """From 0.5 m the first bounce reaches e^2 of that height, to the length of a step."""
    made = rf.Builder("ball")
    ball = made.link("ball", joint="free", mass=1.0, inertia=(0.1,) * 3, points={"p": (0, 0, 0)})
    q0 = [0, 0, 0.5, 1, 0, 0, 0]
    r = rf.simulate(
        ball.model(), 0.7, q0, contact=Hard(restitution=restitution), step=step, dt_out=step
    )
    after = r.t > math.sqrt(1.0 / G) + 2 * step
    assert r.q[after, 2].max() == pytest.approx(0.5 * restitution**2, abs=0.006)
    assert r.q[:, 2].min() > -4.5 * step * restitution - 1e-7
    assert np.abs(r.energy_balance.error).max() < 1e-12


@pytest.mark.parametrize(
    ("step", "dt_out", "t_end", "taken"),
    [(3e-3, 1e-2, 0.4, 2.5e-3), (5e-3, 2e-3, 0.4, 2e-3), (1e-2, 1e-2, 0.4037, 1e-2), (0.05, 1.0, 0.37, 0.37 / 8)],
)  # fmt: skip
def test_rows_are_ends_of_steps(step: float, dt_out: float, t_end: float, taken: float) -> None:
    """A ball lands within a step: its rows keep the balance whatever the step, also where the end
    of the run or of a push is no multiple of it.
    """
    made = rf.Builder("ball").link(
        "ball", joint="free", mass=1.0, inertia=(0.004,) * 3,
        shapes=[{"sphere": 0.1, "collides": True}],
    )  # fmt: skip
    push = [(0.0, 0.1234, {"ball": [0, 0.01, 0, 0.3, 0, 0]})]
    r = rf.simulate(
        made.model(), t_end, [0, 0, 0.6, 1, 0, 0, 0], [0, 0, 0, 0, 3, 0], contact="hard",
        step=step, dt_out=dt_out, wrenches=push,
    )  # fmt: skip
    assert r.options["step"] == pytest.approx(taken, rel=1e-12)
    assert r.t == pytest.approx([*np.arange(0.0, t_end - 1e-9, dt_out), t_end], abs=1e-12)
    assert np.abs(r.energy_balance.error).max() < 1e-12


def pendulum(**machine: Any) -> rf.Model:
    made = rf.Builder("pendulum")
    return made.link(
        "rod", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.02,) * 3, **machine
    ).model()


@pytest.mark.parametrize("step", STEPS)
def test_dry_friction_sticks(step: float) -> None:
    level = G * 0.5 * math.sin(0.3)
    for friction, moves in ((1.001 * level, False), (0.9 * level, True)):
        r = rf.simulate(pendulum(friction=friction), 1.0, [0.3], contact="hard", step=step)
        assert (abs(r.q[-1, 0] - 0.3) < 1e-8) != moves
    assert np.abs(r.energy_balance.error).max() < 1e-12


@pytest.mark.parametrize("step", STEPS)
def test_stops_do_not_give_way(step: float) -> None:
    arm = pendulum(limits=(-0.4, 0.2))
    r = rf.simulate(arm, 1.5, [-0.35], contact="hard", step=step, dt_out=step)
    assert r.q.max() < 0.2 + 1e-8
    assert r.q.min() > -0.4 - 1e-8
    assert r.q[-1, 0] == pytest.approx(0.0, abs=0.2)
    held = rf.simulate(pendulum(limits=(0.3, 1.0)), 0.5, [0.3], contact="hard", step=step)
    assert np.abs(held.v[-1]).max() < 1e-10
    free = rf.simulate(arm, 1.5, [-0.35], contact="hard", step=step, stops=False)
    assert free.q.max() > 0.3


def test_loops_stay_closed() -> None:
    """A four-bar mechanism under gravity: hard steps hold its loop, and converge to the exact run as
    a method of first order does.
    """
    m = rf.load("four_bar")
    start = m.assemble(independent={m.joints[0].name: 0.7}).q
    exact = rf.simulate(m, 0.2, start).q[-1]
    errors = []
    for step in (4e-4, 2e-4):
        hard = rf.simulate(m, 0.2, start, contact="hard", step=step)
        assert np.abs(hard.loops.gap).max() < 1e-12
        assert np.abs(hard.energy_balance.error).max() < 1e-11
        errors.append(np.abs(hard.q[-1] - exact).max())
    assert 1.8 < errors[0] / errors[1] < 2.2
    assert errors[1] < 0.02


def closed_biped() -> rf.Model:
    """A trunk on two legs that are four-bar linkages, with brakes and flat feet."""
    made = rf.Builder("biped").link("trunk", joint="free", mass=10.0, inertia=(0.3, 0.3, 0.2))
    for s, y in (("l", 0.1), ("r", -0.1)):
        sole = {f"{s}{i}": (0.09 * (-1) ** i, 0.03 * (-1) ** (i // 2), -0.03) for i in range(4)}
        for name, parent, at, mass, more in (
            ("thigh", "trunk", (0, y, -0.1), 1.0, {"friction": 60.0}),
            ("shank", f"{s}thigh", (0, 0, -0.3), 0.8, {}),
            ("rod", "trunk", (0.1, y, -0.1), 0.3, {}),
            ("foot", f"{s}shank", (0, 0, -0.3), 0.5, {"friction": 60.0, "points": sole}),
        ):
            made.link(
                f"{s}{name}", parent, axis=(0, 1, 0), at=at, mass=mass, inertia=(0.005,) * 3, **more
            )
        ends = (f"{s}rod", (0, 0, -0.3)), (f"{s}shank", (0.1, 0, 0))
        made.loop(f"{s}tie", "revolute", *ends, axis=(0, 1, 0))
    return made.model()


@pytest.mark.parametrize("step", STEPS)
def test_closed_biped_stands_on_a_slope(step: float) -> None:
    angle, m = math.radians(10.0), closed_biped()
    law = Hard(friction=0.8, terrain=Slope(angle=angle))
    q = m.neutral()
    for name in ("lfoot", "rfoot"):
        q[m.coordinates.index(name)] = -angle
    gap = min(float(t.gap) for t in HardContact(m, law).touches(q.tolist()))  # type: ignore[arg-type]
    q[2] -= gap / math.cos(angle)
    r = rf.simulate(m, 1.0, q, contact=law, step=step)
    assert np.abs(r.loops.gap).max() < 1e-12
    assert np.abs(r.v[-1]).max() < 1e-9
    assert np.abs(r.q[-1] - r.q[50]).max() < 1e-9
    assert r.contacts.penetration.max() < 1e-9
    assert r.contacts.iterations[50:].mean() < 2.0
    assert (r.contacts.mode[-1] == 1.0).all()


# ---- the same numbers on every way ----


def falling() -> tuple[rf.Model, Any, Any]:
    m = rf.load("planar_biped")
    rng = np.random.default_rng(3)
    q = np.tile(m.neutral(), (19, 1))
    q[:, 6:] += 0.3 * rng.normal(size=(19, m.nq - 6))
    gaps = [touch.gap for touch in HardContact(m, Hard()).touches(list(q.T))]
    q[:, 2] += 0.02 - np.min(gaps, axis=0)
    return m, q, 0.5 * rng.normal(size=(19, m.nv))


def test_a_state_does_not_depend_on_its_neighbours() -> None:
    m, q, v = falling()
    options: dict[str, Any] = {"steps": 150, "dt": 2e-3, "contact": Hard(friction=0.6)}
    together = rf.rollout(m, q, v, **options)
    order = np.random.default_rng(0).permutation(len(q))
    permuted = rf.rollout(m, q[order], v[order], **options)
    assert (permuted.q == together.q[order]).all()
    assert (permuted.v == together.v[order]).all()
    alone = rf.rollout(m, q[4], v[4], **options)
    assert (alone.q == together.q[4]).all()
    run = rf.simulate(m, 0.3, q[4], v[4], contact=Hard(friction=0.6), step=2e-3)
    assert (run.q[-1] == together.q[4]).all()


def test_text_and_compiled_steps_agree() -> None:
    m, q, v = falling()
    field = make_field(
        m, None, PlantOptions(contact=Hard(friction=0.6, restitution=0.2), counted=False)
    )
    y = field.start(q[:3], v[:3])
    for k in range(40):
        y = text_step(field, HARD.method, None, k * 2e-3, y, np.zeros((3, m.nv)), 2e-3)
    law = Hard(friction=0.6, restitution=0.2)
    r = rf.rollout(m, q[:3], v[:3], steps=40, dt=2e-3, contact=law)
    assert np.abs(r.q - y[:, : m.nq]).max() < 1e-9
    assert np.abs(r.v - y[:, m.nq : m.nq + m.nv]).max() < 1e-6


def test_terrain_of_heights() -> None:
    hills = [[0.05 * math.sin(1.1 * i + 0.4 * j) for j in range(6)] for i in range(6)]
    law = Hard(terrain=HeightField(heights=hills, spacing=0.3, origin=(-0.7, -0.7), kind="cubic"))
    r = rf.simulate(box(), 1.5, [0, 0, 0.25, 1, 0, 0, 0], contact=law, step=2e-3)
    assert np.abs(r.v[-1]).max() < 1e-6
    assert r.contacts.penetration[-1].max() < 1e-6
    assert (r.contacts.mode[-1] == 1.0).sum() >= 3
    assert np.abs(r.energy_balance.error).max() < 1e-12


# ---- interfaces ----


def test_what_hard_contact_cannot_do_is_refused() -> None:
    m, q = box(), [0.0, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0]
    v = [0.0] * 6
    cases: dict[str, Any] = {
        "give step=": lambda: rf.simulate(m, 1.0, q, contact="hard"),
        "cannot be combined with hard contact": lambda: rf.simulate(
            m, 1.0, q, contact="hard", method="rk4", step=2e-3
        ),
        "two models": lambda: rf.simulate(m, 1.0, q, contact="hard", ground="firm", step=2e-3),
        "no contact is called 'soft'": lambda: rf.simulate(m, 1.0, q, contact="soft", step=2e-3),
        "contact must be": lambda: rf.simulate(m, 1.0, q, contact=3, step=2e-3),
        "starts 0.3 m inside the ground": lambda: rf.simulate(
            m, 1.0, [0, 0, -0.2, 1, 0, 0, 0], contact="hard", step=2e-3
        ),
        "0.2 rad beyond its stop": lambda: rf.rollout(
            pendulum(limits=(-1, 0.3)), [[0.0], [0.5]], [[0.0], [0.0]], steps=1, dt=2e-3,
            contact="hard",
        ),
        "does not take parameters yet": lambda: rf.rollout(
            m, q, v, steps=1, dt=2e-3, contact="hard", parameters={"box.mass": [1.0, 2.0]}
        ),
        "fall through any ground": lambda: rf.simulate(
            rf.Builder("bare").link("body", joint="free", mass=1.0, inertia=(1, 1, 1)).model(),
            1.0, contact="hard", step=2e-3,
        ),
    }  # fmt: skip
    for message, call in cases.items():
        with pytest.raises(rf.RamifyError, match=message):
            call()
    assert repr(Hard(iterations=7.0).described()["iterations"]) == "7"  # type: ignore[arg-type]
    for keys in ({"friction": -1.0}, {"friction": math.nan}, {"restitution": 1.5}, {"terrain": 1}):
        with pytest.raises(rf.RamifyError):
            Hard(**keys)


@pytest.mark.parametrize(("depth", "speed"), [(1e-3, 0.5), (2e-4, 0.1)])
def test_start_inside_the_ground_says_how_fast_it_leaves(depth: float, speed: float) -> None:
    q = [0, 0, 0.1 - depth, 1, 0, 0, 0]
    with pytest.warns(
        RuntimeWarning, match=rf"'corner[4-7]'.* {depth:g} m inside .* {speed:g} m/s"
    ):
        r = rf.simulate(box(), 0.002, q, contact="hard", step=2e-3, dt_out=2e-3)
    assert r.v[-1, 2] == pytest.approx(speed, rel=1e-6)
    with pytest.warns(RuntimeWarning, match=f"leaves with {speed:g} m/s"):
        rf.rollout(box(), q, np.zeros(6), steps=1, dt=2e-3, contact="hard")
    q[2] = 0.1 - 0.9e-4
    rf.simulate(box(), 0.002, q, contact="hard", step=2e-3)  # no warning


@pytest.mark.parametrize("force", [1e155, 1e300])
def test_overflow_is_a_failure(force: float) -> None:
    """The state does not stay where it was."""
    q, push = [0, 0, 0.1, 1, 0, 0, 0], [0.0, 0.0, 0.0, force, 0.0, 0.0]
    with pytest.raises(rf.RamifyError, match="runs away"):
        rf.simulate(box(), 0.1, q, contact="hard", step=2e-3, wrenches={"box": push})
    pushes = np.array([push, [0.0] * 6])[:, None].repeat(3, 1)
    with pytest.warns(RuntimeWarning, match="1 of 2 states failed"):
        r = rf.rollout(
            box(),
            [q] * 2,
            np.zeros((2, 6)),
            steps=3,
            dt=2e-3,
            contact="hard",
            wrenches={"box": pushes},
        )
    assert r.status.failed.tolist() == [True, False]
    assert np.isnan(r.v[0]).all()
    assert np.abs(r.v[1]).max() < 1e-6


def test_steps_that_do_not_converge_are_reported() -> None:
    with pytest.warns(RuntimeWarning, match=r"did not converge in \d+ of 50 steps"):
        r = rf.simulate(
            box(), 0.1, [0, 0, 0.16, 0.9, 0.3, 0.1, 0.3], contact=Hard(iterations=1), step=2e-3
        )
    assert r.stats["unconverged_steps"] > 0
    assert np.abs(r.energy_balance.error).max() < 1e-12  # the account closes nevertheless


def test_shapes_touch_the_ground_and_each_other(tmp_path: Path) -> None:
    """Two balls on top of each other: who touches whom, loads, and the record in a file."""
    made = rf.Builder("pair")
    for name, mass in (("low", 1.0), ("high", 2.0)):
        made.link(
            name, joint="free", mass=mass, inertia=(0.004 * mass,) * 3,
            shapes=[{"sphere": 0.1, "collides": True, "friction": 0.3}],
        )  # fmt: skip
    m = made.model()
    q = [0, 0, 0.1, 1, 0, 0, 0, 0, 0, 0.3, 1, 0, 0, 0]
    r = rf.simulate(m, 0.4, q, contact="hard", step=2e-3)
    loads = dict(zip(r.contacts.names, r.contacts.normal_load[-1], strict=True))
    assert r.contacts.others == ("", "", "high")
    assert list(loads.values()) == pytest.approx([3.0 * G, 0.0, 2.0 * G], rel=1e-4)
    assert r.contacts["high"][-1] == pytest.approx([0.0, 0.0, 2.0 * G], rel=1e-4, abs=1e-3)
    assert r.contacts["low"][-1] == pytest.approx([0.0, 0.0, 1.0 * G], rel=1e-3, abs=1e-3)
    assert r.contacts.total_force[-1, 2] == pytest.approx(3.0 * G, rel=1e-4)
    assert r.contacts.penetration.max() < 1e-6
    r.save(tmp_path / "run.nc")
    again = rf.Result.open(tmp_path / "run.nc")
    assert (again.contacts.mode == r.contacts.mode).all()
    assert (again.scheme_work == r.scheme_work).all()


def foot_and_ball(folder: Path, world: str) -> rf.Model:
    """A foot with three contact points, and a ball with a shape that collides."""
    text = """
    version: 2
    name: both
    links:
      - {name: foot, joint: free, frame: {}, mass: 1, inertia: [0.01, 0.01, 0.01],
         points: {a: [0.1, 0, -0.1], b: [-0.1, 0.1, -0.1], c: [-0.1, -0.1, -0.1]},
         shapes: [{sphere: 0.12, name: hull, collides: world}]}
      - {name: ball, joint: free, frame: {}, mass: 1, inertia: [0.004, 0.004, 0.004],
         shapes: [{sphere: 0.1, name: a, collides: true}]}
    """
    file = folder / "both.yaml"
    file.write_text(textwrap.dedent(text) + world)
    return rf.load(file)


@pytest.mark.parametrize("world", ["", "world: [{plane: true, name: floor}]"])
def test_each_link_touches_with_its_points_or_else_its_shapes(tmp_path: Path, world: str) -> None:
    """Points of one link do not let another one fall; its own shapes do not lift it."""
    m, q = foot_and_ball(tmp_path, world), [0, 0, 0.1, 1, 0, 0, 0, 1, 0, 0.1, 1, 0, 0, 0]
    for law in (Hard(), Hard(pairs=False)):
        r = rf.simulate(m, 0.1, q, contact=law, step=2e-3)
        assert np.abs(r.q[-1] - q).max() < 1e-8
        assert sum(name.startswith("ball.a") for name in r.contacts.names) == (not world)
    if not world:
        soft = rf.simulate(m, 0.1, q, ground="hunt_crossley")
        assert soft.contacts.names == ("a", "b", "c", "ball.a")
        assert np.abs(soft.q[-1] - q).max() < 0.01
        assert np.abs(soft.contacts.normal_load[-1]).min() > 0.0
    alone = rf.simulate(m, 0.1, q, contact=Hard(points=["a", "b", "c"]), step=2e-3)
    assert alone.q[-1, 9] == pytest.approx(0.1 - 0.5 * G * 0.01, abs=2e-3)
    none = rf.simulate(m, 0.1, q, contact=Hard(points=[]), step=2e-3)
    assert none.q[-1, [2, 9]] == pytest.approx(0.1 - 0.5 * G * 0.01, abs=2e-3)


def test_audit_judges_the_work_of_the_steps() -> None:
    """A body that tumbles freely gains energy where steps are too long; momentum is checked where
    nothing touches.
    """

    def made(gravity: float) -> rf.Model:
        return rf.Builder("top", gravity=(0, 0, -gravity)).link(
            "top", joint="free", mass=1.0, inertia=(0.01, 0.02, 0.03),
            shapes=[{"sphere": 0.1, "collides": True}],
        ).model()  # fmt: skip

    options: dict[str, Any] = {"contact": "hard", "v0": [0.2, 0, 0, 0.5, 30, 0.5]}
    long = rf.simulate(made(0.0), 1.0, [0, 0, 10, 1, 0, 0, 0], step=5e-3, **options)
    assert long.energy.kinetic[-1] > 1.1 * long.energy.kinetic[0]
    assert not long.audit.passed
    assert long.audit.energy.passed
    assert "the steps themselves added" in long.audit.verdict
    assert "shorten the step" in str(long.audit)
    short = rf.simulate(made(0.0), 0.2, [0, 0, 10, 1, 0, 0, 0], step=2e-5, **options)
    assert short.audit.passed
    assert [check.name for check in short.audit.momentum] == ["linear momentum", "angular momentum"]
    # it lands, and bounces back without loss, between two rows
    bounced = rf.simulate(
        made(G),
        0.4,
        [0, 0, 0.3, 1, 0, 0, 0],
        contact=Hard(restitution=1.0, friction=0.0),
        step=2e-3,
    )
    assert bounced.v[-1, 2] != pytest.approx(-G * 0.4, abs=1.0)
    assert not bounced.audit.momentum
    assert rf.simulate(
        made(G), 0.2, [0, 0, 9, 1, 0, 0, 0], contact="hard", step=1e-3
    ).audit.momentum


@pytest.mark.parametrize("step", STEPS)
def test_a_ball_rolls(step: float) -> None:
    """Backspin: friction slows the slip until v = w r, with 5/7 of v - 2/5 w r."""
    made = rf.Builder("ball")
    ball = made.link(
        "ball", joint="free", mass=1.0, inertia=(0.004,) * 3,
        shapes=[{"sphere": 0.1, "collides": True}],
    ).model()  # fmt: skip
    q = [0, 0, 0.1, 1, 0, 0, 0]
    r = rf.simulate(ball, 1.0, q, [0.5, 0, 0, 0, -20, 0], contact=Hard(friction=0.2), step=step)
    assert r.v[-1, 0] == pytest.approx(5.0 / 7.0 * (0.5 - 0.8), abs=1e-8)
    assert r.v[-1, 4] * 0.1 == pytest.approx(r.v[-1, 0], abs=1e-8)
    assert r.contacts.mode[-1, 0] == 1.0


def test_environments_take_hard_contact() -> None:
    from ramify.envs.vector_env import RobotVectorEnv

    m = rf.load("quadruped")
    home = m.neutral()
    home[2] = 0.61
    env = RobotVectorEnv(
        m, 4, reward=lambda a, b: b.q[:, 0], start=lambda rng, n: (np.tile(home, (n, 1)), np.zeros((n, m.nv))),
        contact="hard", kp=200.0, kd=5.0, home=home,
    )  # fmt: skip
    env.reset(seed=0)
    for _ in range(10):
        env.step(np.zeros((4, 12)))
    assert env.method == "hard_contact"
    assert np.abs(env.states.q[:, 2] - 0.6).max() < 0.01
