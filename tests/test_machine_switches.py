"""``passive``, ``stops`` and ``efforts`` wherever forces are computed: every combination through
every way, against the parts of the passive forces, differences and each other.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.core.arrays import Array

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

import falling_arms

quiet = pytest.mark.filterwarnings("ignore:.*beyond its limit")


def crane(**more: Any) -> rf.Model:
    """Elements of single coordinates: one kernel has all of it."""
    b = rf.Builder("crane")
    b.link(
        "trolley", joint="prismatic", axis=(1, 0, 0), mass=3.0, friction=0.7, limits=[(-0.5, 0.4)],
        effort=8.0, backward_effort=3.0,
    )  # fmt: skip
    b.link(
        "load", "trolley", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1),
        damping=0.2, limits=[(-1.0, 1.0)], spring={"stiffness": 2.0}, effort=4.0, armature=0.05,
        **more,
    )  # fmt: skip
    return b.model()


def compensated() -> rf.Model:
    """Gravity compensation is more than the force of a coordinate by itself."""
    return crane(gravity_compensation=0.5)


def linkage() -> rf.Model:
    """A closed loop whose rocker has a limit, friction in all pins."""
    m = rf.Mechanism("linkage", gravity=(0, -9.81, 0))
    rod: dict[str, Any] = {"mass": 1.0, "inertia": (0.01, 0.01, 0.01)}
    m.body("crank", com=(0.1, 0, 0), **rod).body("coupler", com=(0.3, 0, 0), **rod)
    m.body("rocker", com=(0.2, 0, 0), **rod)
    pin: dict[str, Any] = {"axis": (0, 0, 1), "damping": 0.1, "actuated": False}
    m.joint("motor", None, "crank", axis=(0, 0, 1), damping=0.1, effort=2.0)
    m.joint("a", ("crank", (0.2, 0, 0)), "coupler", **pin)
    m.joint("b", ("coupler", (0.6, 0, 0)), ("rocker", (0.4, 0, 0)), axis=(0, 0, 1), actuated=False)
    m.joint("ground", (None, (0.5, 0, 0)), "rocker", limits=[(-0.2, 1.2)], **pin)
    return m.near(motor=1.0, ground=1.5).model(cut=["b"])


ROBOTS: dict[str, Callable[[], rf.Model]] = {
    "crane": crane,
    "compensated": compensated,
    "panda": lambda: falling_arms.arm(falling_arms.files("panda")[0]),
    "linkage": linkage,
}
SWITCHES = [
    (False, None, False), (True, None, False), (True, False, False), (False, True, False),
    (True, None, True), (False, False, True),
]  # fmt: skip
"""passive, stops, efforts."""


def states(m: rf.Model, count: int = 5) -> tuple[Array, Array, Array]:
    """States of which some are far beyond limits and ask for more than drives can give."""
    rng = np.random.default_rng(3)
    if m.loops:
        angle = np.linspace(0.4, 2.4, count)
        path = m.assemble({"motor": angle}, {"motor": 1.0 + angle}, None, {"motor": 9.0 * angle})
        return path.q, path.v, path.a
    v, x = rng.normal(size=(2, count, m.nv))
    return 1.5 * rng.normal(size=(count, m.nq)), v, 20.0 * x


def acting(m: rf.Model, q: Array, v: Array, passive: bool, stops: bool | None) -> Array:
    """Forces beside the drives, from the parts of ``passive_forces``."""
    parts = m.passive_forces(q, v).parts
    total = np.zeros_like(v)
    for name, force in parts.items():
        if (passive if stops is None else stops) if name == "stop" else passive:
            total = total + force
    return total


def ends(m: rf.Model) -> tuple[Array, Array]:
    elements = [element for joint in m.joints for element in joint.machine]
    low, high = np.array([e.efforts for e in elements]).T
    return low, high


# ---- answers ----


@quiet
@pytest.mark.parametrize("robot", ["crane", "compensated", "panda"])
@pytest.mark.parametrize(("passive", "stops", "efforts"), SWITCHES)
def test_answers_have_what_is_switched_on(
    robot: str, passive: bool, stops: bool | None, efforts: bool
) -> None:
    m = ROBOTS[robot]()
    q, v, a = states(m)
    how: dict[str, Any] = {"passive": passive, "stops": stops, "efforts": efforts}
    beside = acting(m, q, v, passive, stops)
    if robot == "crane":
        assert np.abs(m.passive_forces(q, v).parts["stop"]).max() > 1e3
    tau = m.inverse_dynamics(q, v, a) - beside
    limited = np.clip(tau, *ends(m)) if efforts else tau
    if efforts and robot != "panda":
        assert (limited != tau).any()
    size = np.abs(tau).max()
    found = m.inverse_dynamics(q, v, a, **how)
    close(found, limited, 1e-10, 1e-11 * size, "tau")
    push = {m.bodies[-1].name: np.arange(6.0)}
    pushed = m.inverse_dynamics(q, v, a, push) - beside
    pushed = np.clip(pushed, *ends(m)) if efforts else pushed
    close(m.inverse_dynamics(q, v, a, push, **how), pushed, 1e-10, 1e-11 * size, "tau, pushed")
    given = 30.0 * np.sin(np.arange(a.size)).reshape(a.shape)
    limited = np.clip(given, *ends(m)) if efforts else given
    wanted = m.forward_dynamics(q, v, limited + beside)
    size = np.abs(wanted).max()
    close(m.forward_dynamics(q, v, given, **how), wanted, 1e-9, 1e-10 * size, "a")
    wanted = m.forward_dynamics(q, v, limited + beside, push)
    close(m.forward_dynamics(q, v, given, push, **how), wanted, 1e-9, 1e-10 * size, "a, pushed")
    masses = {f"{m.bodies[-1].name}.mass": np.full(len(q), m.bodies[-1].mass)}
    close(
        m.forward_dynamics(q, v, given, parameters=masses, **how),
        m.forward_dynamics(q, v, given, **how), 1e-9, 1e-9 * size, "a, with parameters",
    )  # fmt: skip
    close(
        m.inverse_dynamics(q, v, a, parameters=masses, **how), found, 1e-9,
        1e-10 * np.abs(tau).max(), "tau, with parameters",
    )  # fmt: skip


@quiet
@pytest.mark.parametrize(("passive", "stops", "efforts"), SWITCHES)
def test_closed_robots_have_what_is_switched_on(
    passive: bool, stops: bool | None, efforts: bool
) -> None:
    m = linkage()
    q, v, a = states(m)
    how: dict[str, Any] = {"passive": passive, "stops": stops, "efforts": efforts}
    beside = acting(m, q, v, passive, stops)
    tau = m.inverse_dynamics(q, v, a, passive=passive, stops=stops)
    close(m.forward_dynamics(q, v, tau + beside), a, 1e-7, 1e-6, "a of the forces that act")
    low, high = ends(m)
    limited = np.clip(tau, low, high) if efforts else tau
    close(m.inverse_dynamics(q, v, a, **how), limited, 1e-10, 1e-9, "tau")
    found, lam = m.forward_dynamics(q, v, tau, multipliers=True, **how)
    wanted, mu = m.forward_dynamics(q, v, limited + beside, multipliers=True)
    close(found, wanted, 1e-9, 1e-7, "a")
    close(lam, mu, 1e-9, 1e-6, "multipliers")
    if efforts:
        assert (limited != tau).any()
        with pytest.raises(rf.StateError, match="its multipliers are those of efforts=False"):
            m.inverse_dynamics(q, v, a, multipliers=True, **how)


# ---- slopes ----


@quiet
@pytest.mark.parametrize("robot", ["crane", "compensated", "linkage"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize(("passive", "stops", "efforts"), SWITCHES)
def test_slopes_are_those_of_small_changes(
    robot: str, name: str, passive: bool, stops: bool | None, efforts: bool
) -> None:
    m = ROBOTS[robot]()
    q, v, x = (y[:3] for y in states(m))
    how: dict[str, Any] = {"passive": passive, "stops": stops, "efforts": efforts}
    if name == "forward_dynamics":
        x = 10.0 * np.sin(np.arange(x.size)).reshape(x.shape)
    found = getattr(m, f"{name}_derivatives")(q, v, x, **how)
    out = [np.empty_like(y) for y in found]
    getattr(m, f"{name}_derivatives")(q, v, x, out, **how)
    for y, room in zip(found, out, strict=True):
        assert np.array_equal(y, room)
    if m.loops:  # along the motion: other directions open the loops
        _slopes_along_the_motion(m, name, how, found, x)
        return
    ask, h = getattr(m, name), 1e-6
    for i, slope in enumerate(found):
        for k, e in enumerate(np.eye(m.nv)):
            ahead, back = (
                [y + d * h * e if j == i else y for j, y in enumerate((q, v, x))] for d in (1, -1)
            )
            difference = (ask(*ahead, **how) - ask(*back, **how)) / (2 * h)
            size = 1.0 + np.abs(slope).max()
            close(slope[..., k], difference, 1e-6, 2e-5 * size, f"slope {i} along {k}")
    if robot == "crane" and (passive or stops):
        mass = {"load.mass": np.full(3, 1.0)}
        again = getattr(m, f"{name}_derivatives")(q, v, x, parameters=mass, **how)
        for y, other in zip(found, again, strict=True):
            close(other, y, 1e-9, 1e-8 * (1.0 + np.abs(y).max()), "with parameters")
        *_, by = m.derivatives(name, q, v, x, parameters=mass, **how)[0]
        ahead, back = (
            ask(q, v, x, parameters={"load.mass": np.full(3, 1.0 + d * h)}, **how) for d in (1, -1)
        )
        size = 1.0 + np.abs(by["load.mass"]).max()
        close(by["load.mass"][..., 0], (ahead - back) / (2 * h), 1e-5, 1e-5 * size, "by mass")


def _slopes_along_the_motion(
    m: rf.Model, name: str, how: dict[str, Any], found: tuple[Array, ...], x: Array
) -> None:
    h, angle = 1e-6, np.linspace(0.4, 2.4, 5)[:3]
    ends_ = [
        m.assemble({"motor": y}, {"motor": 1.0 + y}, None, {"motor": 9.0 * y})
        for y in (angle + h, angle - h)
    ]
    inputs = [[s.q, s.v, s.a if name == "inverse_dynamics" else x] for s in ends_]
    ask = getattr(m, name)
    difference = (ask(*inputs[0], **how) - ask(*inputs[1], **how)) / (2 * h)
    along = [(y - z) / (2 * h) for y, z in zip(*inputs, strict=True)]
    slope = sum(np.einsum("nij,nj->ni", by, d) for by, d in zip(found, along, strict=True))
    close(slope, difference, 1e-5, 1e-4 * (1.0 + np.abs(difference).max()), "slope")


@quiet
@pytest.mark.parametrize("robot", ["crane", "panda"])
@pytest.mark.parametrize(("passive", "stops", "efforts"), SWITCHES)
def test_linear_systems_have_the_same_slopes(
    robot: str, passive: bool, stops: bool | None, efforts: bool
) -> None:
    m = ROBOTS[robot]()
    q, v, _ = states(m)
    tau = 30.0 * np.sin(np.arange(v.size)).reshape(v.shape)
    how: dict[str, Any] = {"passive": passive, "stops": stops, "efforts": efforts}
    A, B = rf.linearize(m, q, v, tau, **how)
    by_q, by_v, by_tau = m.forward_dynamics_derivatives(q, v, tau, **how)
    n, size = m.nv, np.abs(by_q).max() + np.abs(by_v).max()
    close(A[:, n:, :n], by_q, 1e-8, 1e-9 * size, "by q")
    close(A[:, n:, n:], by_v, 1e-8, 1e-9 * size, "by v")
    close(B[:, n:], by_tau, 1e-8, 1e-9, "by tau")


# ---- warnings ----


def beyond(m: rf.Model, lead: tuple[int, ...] = ()) -> tuple[Array, Array]:
    q = np.zeros((*lead, m.nq))
    return q, np.zeros((*lead, m.nv))


ASKS: dict[str, Callable[..., Any]] = {
    "inverse": lambda m, q, v, **how: m.inverse_dynamics(q, v, v, **how),
    "forward": lambda m, q, v, **how: m.forward_dynamics(q, v, v, **how),
    "pushed": lambda m, q, v, **how: m.forward_dynamics(q, v, v, {"load": np.ones(6)}, **how),
    "inverse_slopes": lambda m, q, v, **how: m.inverse_dynamics_derivatives(q, v, v, **how),
    "forward_slopes": lambda m, q, v, **how: m.forward_dynamics_derivatives(q, v, v, **how),
    "derivatives": lambda m, q, v, **how: m.derivatives("inverse_dynamics", q, v, v, **how),
    "linearize": lambda m, q, v, **how: rf.linearize(m, q, v, v, friction=False, **how),
}


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
def test_a_posture_beyond_a_limit_is_reported(ask: str, lead: tuple[int, ...]) -> None:
    """Where only the last state is, too; once for each joint; not where stops are left out."""
    m = crane()
    q, v = beyond(m, lead)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ASKS[ask](m, q, v, passive=True)
        q[..., 0] = 0.402  # a joint that rests on its stop
        ASKS[ask](m, q, v, passive=True)
        last = (-1,) * len(lead)
        q[(*last, 0)] = 0.6
        ASKS[ask](m, q, v, passive=True, stops=False)
        if ask != "linearize":
            ASKS[ask](m, q, v)
    force = abs(m.passive_forces(q[last], v[last]).parts["stop"][0])
    where = {(): "", (4,): " in state 3", (2, 3): r" in state \(1, 2\)"}[lead]
    said = rf"'trolley' of 'crane' is 0\.2 m beyond its limit{where}.* {force:.4g} N; .*stops=False"
    with pytest.warns(RuntimeWarning, match=said.replace("+", r"\+")):
        ASKS[ask](m, q, v, passive=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ASKS[ask](m, q, v, passive=True)
    q[(*last, 1)] = -1.5
    with pytest.warns(RuntimeWarning, match=rf"'load' of 'crane' is 0\.5 rad beyond .*{where}"):
        ASKS[ask](m, q, v, passive=True)


def test_stops_alone_are_reported_and_several_are_counted() -> None:
    m = crane()
    with pytest.warns(RuntimeWarning, match=r"'load' \(and 1 more\) of 'crane' is 1 rad beyond"):
        m.inverse_dynamics([0.6, 2.0], [0, 0], [0, 0], stops=True)
    ball = rf.Builder("ball")
    solid: dict[str, Any] = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    m = ball.link("a", joint="ball", cone=0.5, **solid).model()
    for sign in (1.0, -1.0):
        q = sign * np.array([np.cos(0.4), np.sin(0.4), 0.0, 0.0])
        m = replace_memo(m)
        with pytest.warns(RuntimeWarning, match=r"'a' of 'ball' is 0\.3 rad beyond its limit"):
            m.inverse_dynamics(q, np.zeros(3), np.zeros(3), passive=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = np.array([np.cos(0.2), np.sin(0.2), 0.0, 0.0])
        replace_memo(m).inverse_dynamics(inside, np.zeros(3), np.zeros(3), passive=True)


def replace_memo(m: rf.Model) -> rf.Model:
    """The same robot, of which nothing was asked."""
    return rf.with_gravity(m, m.gravity)


def test_the_puma_at_a_textbook_posture() -> None:
    """qn is beyond a limit of joint 3: kilonewton metres, unless stops are left out."""
    m, qn = rf.load("puma_560"), [0.0, np.pi / 4, np.pi, 0.0, np.pi / 4, 0.0]
    rest = np.zeros(6)
    plain = m.inverse_dynamics(qn, rest, rest)
    with pytest.warns(RuntimeWarning, match=r"'joint3' of 'puma_560' is 0\.[0-9]+ rad beyond"):
        pressed = m.inverse_dynamics(qn, rest, rest, passive=True)
    assert np.abs(pressed - plain).max() > 1e3
    close(m.inverse_dynamics(qn, rest, rest, passive=True, stops=False), plain, 1e-12, of="tau")


@pytest.mark.parametrize("key", ["passive", "stops", "efforts"])
@pytest.mark.parametrize("value", ["no", 1, 0.0])
def test_switches_are_true_or_false(key: str, value: Any) -> None:
    m = crane()
    q = np.zeros(2)
    for name in ("inverse_dynamics", "forward_dynamics"):
        with pytest.raises(rf.StateError, match=f"{key} must be True or False"):
            getattr(m, name)(q, q, q, **{key: value})
    with pytest.raises(rf.RamifyError, match=f"{key} must be True or False"):
        rf.linearize(m, q, q, q, **{key: value})
