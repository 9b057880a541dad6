"""Masked arrays and truth values: whoever takes numbers of a user refuses those that a mask hides,
and lists that mix them with truth values, by name and with the remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ramify as rf
from ramify.model.frame import Frame

ARM = rf.load("planar_3r")
QUADRUPED = rf.load("quadruped", base="free")
BAR = rf.load("four_bar")
STEWART = rf.load("stewart_platform")
Z3, TAU3 = np.zeros(3), np.zeros(3)
M = rf.motion
C = rf.control


def masked(*shape: int) -> Any:
    """0.1 everywhere, with the last entry hidden."""
    hidden = np.zeros(shape, dtype=bool)
    hidden.flat[-1] = True
    return np.ma.MaskedArray(np.full(shape, 0.1), mask=hidden)


def mixed(*shape: int) -> Any:
    """Lists of 0.1 with a truth value at their end."""
    whole = innermost = np.full(shape, 0.1).tolist()
    for _ in shape[1:]:
        innermost = innermost[-1]
    innermost[-1] = True
    return whole


def link(**given: Any) -> Any:
    return rf.Builder("x").link("a", **{"mass": 1.0, "inertia": (1.0, 1.0, 1.0), **given}).model()


def dh(**given: Any) -> Any:
    row, mass = [(0.3, 0.0, 0.0, 0.0)], [1.0]
    args: dict[str, Any] = {
        "rows": row, "mass": mass, "com": [(0.1, 0, 0)], "inertia": [(0.1, 0.1, 0.1)], **given,
    }  # fmt: skip
    return rf.from_dh(**args)


def simulated(**given: Any) -> Any:
    return rf.simulate(ARM, 0.02, **given)


HOLD = M.Hold([0.0, 0.0, 0.0])
ENTRIES: dict[str, Callable[[Any], Any]] = {
    # a robot is built
    "Builder gravity": lambda m: rf.Builder("x", gravity=m(3)).link("a", mass=1.0).model(),
    "link at": lambda m: link(at=m(3)),
    "link at 4x4": lambda m: link(at=m(4, 4)),
    "link outlet": lambda m: link(outlet=m(3)),
    "link axis": lambda m: link(axis=m(3)),
    "link com": lambda m: link(com=m(3)),
    "link inertia": lambda m: link(inertia=m(3)),
    "link inertia tensor": lambda m: link(inertia=m(3, 3)),
    "link limits": lambda m: link(limits=m(1, 2)),
    "link points": lambda m: link(points={"p": m(3)}),
    "loop frame": lambda m: rf.with_loop(ARM, "l", first=("link1", m(3))),
    "loop axis": lambda m: rf.with_loop(ARM, "l", first=("link1", Z3), axis=m(3)),
    "mechanism body": lambda m: rf.Mechanism("x").body("b", com=m(3)),
    "mechanism inertia": lambda m: rf.Mechanism("x").body("b", inertia=m(3)),
    "mechanism joint": lambda m: rf.Mechanism("x").joint("j", ("b", m(3)), None),
    "mechanism axis": lambda m: rf.Mechanism("x").joint("j", "b", None, axis=m(3)),
    "Frame rotation": lambda m: Frame(rotation=m(3, 3)),
    "Frame position": lambda m: Frame(position=m(3)),
    "from_dh rows": lambda m: dh(rows=m(1, 4)),
    "from_dh row": lambda m: dh(rows=[m(4)]),
    "from_dh mass": lambda m: dh(mass=m(1)),
    "from_dh com": lambda m: dh(com=m(1, 3)),
    "from_dh inertia": lambda m: dh(inertia=[m(3)]),
    "from_dh gravity": lambda m: dh(gravity=m(3)),
    "with_gravity": lambda m: rf.with_gravity(ARM, m(3)),
    "with_payload com": lambda m: rf.with_payload(ARM, "link1", 1.0, com=m(3)),
    "with_payload inertia": lambda m: rf.with_payload(ARM, "link1", 1.0, inertia=m(3)),
    "with_tool": lambda m: rf.with_tool(ARM, "link1", "t", m(3)),
    "with_tool com": lambda m: rf.with_tool(ARM, "link1", "t", com=m(3), mass=1.0),
    "with_locked": lambda m: rf.with_locked(QUADRUPED, QUADRUPED.joints[0].name, m(7)),
    "with_contact_points": lambda m: rf.with_contact_points(ARM, {"link1": {"p": m(3)}}),
    # a robot is asked
    "random state": lambda m: ARM.inverse_dynamics(Z3, m(3), Z3),
    "wrenches": lambda m: ARM.inverse_dynamics(Z3, Z3, Z3, {"link1": m(6)}),
    "passive tau": lambda m: ARM.forward_dynamics(Z3, Z3, m(3), passive=True),
    "pose": lambda m: ARM.pose(m(3), "link1"),
    "jacobian": lambda m: ARM.jacobian(m(3), "link1"),
    "jacobian point": lambda m: ARM.jacobian(Z3, "link1", m(3)),
    "regressor": lambda m: ARM.regressor(Z3, m(3), Z3),
    "udu": lambda m: ARM.udu(m(3)),
    "integrate": lambda m: ARM.integrate(Z3, m(3), 0.1),
    "difference": lambda m: ARM.difference(Z3, m(3)),
    "named": lambda m: ARM.named(m(3)),
    "explain": lambda m: ARM.explain(m(3)),
    "singularities": lambda m: BAR.singularities(m(BAR.nq)),
    "derivatives": lambda m: ARM.derivatives("inverse_dynamics", Z3, m(3), Z3),
    "derivative_along": lambda m: ARM.derivative_along("bias", [Z3, Z3], [Z3, m(3)]),
    "hybrid": lambda m: ARM.hybrid_dynamics(Z3, Z3, m(3)),
    "reactions": lambda m: ARM.reactions(Z3, Z3, m(3)),
    "multipliers": lambda m: BAR.loop_forces(BAR.assemble().q, m(len(BAR.loops) * 6)),
    "to_pinocchio": lambda m: ARM.to_pinocchio(m(3)),
    "from_mujoco": lambda m: ARM.from_mujoco(m(3)),
    "constraints": lambda m: BAR.constraints(m(BAR.nq)),
    "zero_moment_point": lambda m: QUADRUPED.zero_moment_point(
        QUADRUPED.neutral(), np.zeros(QUADRUPED.nv), m(QUADRUPED.nv)
    ),
    "assemble rows": lambda m: BAR.assemble({BAR.coordinates[0]: m(3)}),
    "assemble rates": lambda m: BAR.assemble(
        {BAR.coordinates[0]: np.zeros(2)}, {BAR.coordinates[0]: m(2)}
    ),
    "assemble guess": lambda m: BAR.assemble(guess=m(BAR.nq)),
    "assemble orientation": lambda m: STEWART.assemble({"platform": m(3, 3)}),
    "assemble guess by name": lambda m: STEWART.assemble(guess={"platform": m(4)}),
    # motions
    "Cycloid": lambda m: M.Cycloid(m(3), [0.0, 0.0, 0.0], 1.0),
    "Quintic": lambda m: M.Quintic(m(3), [0.0, 0.0, 0.0], 1.0),
    "Harmonic": lambda m: M.Harmonic(m(3), 1.0, 1.0),
    "Hold": lambda m: M.Hold(m(3)),
    "Spline": lambda m: M.Spline(np.arange(4.0), m(4, 2)),
    "Table": lambda m: M.Table(np.arange(4.0), m(4, 2)),
    "motion at": lambda m: HOLD.at(m(3)),
    "motion by functions": lambda m: M.TimeFunction(lambda s: m(2), lambda s: m(2), lambda s: m(2)),
    "support_polygon": lambda m: M.support_polygon(m(4, 2)),
    "support_polygon up": lambda m: M.support_polygon(np.eye(3), m(3)),
    "support_margin": lambda m: M.support_margin(np.eye(3)[:, :2], m(2)),
    "support_margin polygon": lambda m: M.support_margin(m(4, 2), np.zeros(2)),
    "inverse_kinematics start": lambda m: M.inverse_kinematics(ARM, {"link3": Z3}, m(3)),
    "target": lambda m: M.inverse_kinematics(ARM, {"link3": m(3)}),
    "target rotation": lambda m: M.inverse_kinematics(
        ARM, [M.Target("link3", rotation=m(3, 3))]
    ),
    "limits": lambda m: M.inverse_kinematics(ARM, {"link3": Z3}, limits=m(3, 2)),
    "differential_ik": lambda m: rf.differential_ik(ARM, m(3), {"link3": Z3}, 0.01),
    "parameters": lambda m: ARM.inverse_dynamics(Z3, Z3, Z3, parameters={"link1.mass": m(2)}),
    "differential_ik speeds": lambda m: rf.differential_ik(ARM, Z3, {"link3": Z3}, 0.01, speeds=m(3)),
    # controllers
    "PD kp": lambda m: C.PD(HOLD, kp=m(3)),
    "PD kd": lambda m: C.PD(HOLD, kd=m(3)),
    "PID ki": lambda m: C.PID(HOLD, ki=m(3)),
    "ComputedTorque": lambda m: C.ComputedTorque(HOLD, kp=m(3)),
    "limits of forces": lambda m: C.PD(HOLD, limits=m(3)),
    "Torque": lambda m: C.Torque(m(3)),
    "TorqueTable": lambda m: C.TorqueTable(np.arange(3.0), m(3, 3)),
    "TorqueTable times": lambda m: C.TorqueTable(m(3), np.zeros((3, 3))),
    "Commands": lambda m: C.Commands({"a": 1.0}, activation=m(2)),
    "Commands value": lambda m: C.Commands({"a": m(1)}),
    "torque time": lambda m: C.Torque([0.0] * 3).torque(ARM, m(3), Z3, Z3),
    "torque state": lambda m: C.Torque([0.0] * 3).torque(ARM, 0.0, m(3), Z3),
    "torque integral": lambda m: C.PID(HOLD).torque(ARM, 0.0, Z3, Z3, m(3)),
    # runs
    "simulate q0": lambda m: simulated(q0=m(3)),
    "simulate damping": lambda m: simulated(damping=m(3)),
    "simulate function": lambda m: simulated(control=lambda *_: m(3)),
    "simulate vectorized": lambda m: simulated(
        control=C.Function(lambda time, q, v: m(*np.shape(v)), vectorized=True)
    ),
    "rollout": lambda m: rf.rollout(ARM, m(3), Z3, steps=2, dt=1e-3),
    "rollout tau": lambda m: rf.rollout(ARM, Z3, Z3, steps=2, dt=1e-3, tau=m(2, 3)),
    "rollout damping": lambda m: rf.rollout(ARM, Z3, Z3, steps=2, dt=1e-3, damping=m(3)),
    "rollout function": lambda m: rf.rollout(
        ARM, Z3, Z3, steps=2, dt=1e-3, control=lambda *_: m(3)
    ),
    "linearize": lambda m: rf.linearize(ARM, Z3, Z3, m(3)),
    "HeightField": lambda m: rf.contact.HeightField(heights=m(3, 3), spacing=1.0),
    "HeightField spacing": lambda m: rf.contact.HeightField(heights=np.zeros((3, 3)), spacing=m(2)),
    "HeightField origin": lambda m: rf.contact.HeightField(
        heights=np.zeros((3, 3)), spacing=1.0, origin=m(2)
    ),
    "Flat": lambda m: rf.contact.Flat(up=m(3)),
    # formulations
    "denoc_matrices": lambda m: rf.formulations.denoc_matrices(ARM, m(3), Z3),
    "denoc rates": lambda m: rf.formulations.denoc_matrices(ARM, Z3, m(3)),
    "Slope": lambda m: rf.contact.Slope(up=m(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", ENTRIES)
def test_hidden_numbers_are_refused(name: str) -> None:
    with pytest.raises(rf.RamifyError, match=r"masked entries.*filled"):
        ENTRIES[name](masked)


@pytest.mark.parametrize("name", ENTRIES)
def test_truth_values_amid_numbers_are_refused(name: str) -> None:
    with pytest.raises(rf.RamifyError, match=r"entry (\[\d+\])+ is a truth value: write 1.0"):
        ENTRIES[name](mixed)


def test_rows_of_truth_values_amid_rows_of_numbers_are_refused() -> None:
    rows = [np.array([True, False, True]), np.zeros(3)]
    with pytest.raises(rf.StateError, match=r"bias: q must be .* entry \[0\]\[0\] is a truth"):
        ARM.bias(rows, np.zeros((2, 3)))


@pytest.mark.parametrize("value", [True, np.inf, np.nan, [0.1, 0.2], "x"])
def test_a_guess_is_a_number(value: Any) -> None:
    with pytest.raises(rf.StateError, match="of 'crank' must be a finite number"):
        BAR.assemble(guess={"crank": value})


def test_a_hidden_number_alone_is_none() -> None:
    with (
        pytest.warns(UserWarning, match="masked element"),
        pytest.raises(rf.SimulationError, match="'e' gave nan at t = 0"),
    ):
        simulated(events={"e": lambda *_: masked(1)[0]})
