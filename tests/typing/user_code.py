"""Typical user code, checked by mypy in strict mode: see test_user_code.py. It is not run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import ramify as rf

Floats = NDArray[np.float64]


def torques(path: str) -> Floats:
    """Dynamics of one state and of a batch."""
    m = rf.load(path, base="free")
    q, v = m.random(seed=0)
    tau = m.inverse_dynamics(q, v, np.zeros(m.nv), {"hand": [0.0, 0.0, 0.0, 0.0, 0.0, -9.81]})
    a = m.forward_dynamics(q, v, tau)
    M, h = m.mass_matrix(q), m.bias(q, v)
    assert np.allclose(M @ a + h, tau)
    U, D = m.udu(q)
    energy = m.energy(q, v)
    total = float(energy.kinetic + energy.potential)
    poses = m.kinematics(q)
    first: Floats = poses.position[0]
    names: tuple[str, ...] = m.coordinates
    print(total, first, names, [body.mass for body in m.bodies], U @ D @ U.T)
    many = m.inverse_dynamics(np.tile(q, (8, 1)), v, 0 * v)
    return many


def closed() -> tuple[Floats, Floats]:
    """A closed loop, with multipliers."""
    m = rf.load("four_bar")
    state = m.assemble({"crank": 0.0}, rates={"crank": 1.0})
    tau, forces = m.inverse_dynamics(state.q, state.v, state.a, multipliers=True)
    print(m.constraints(state.q, state.v).mobility, [loop.name for loop in m.loops])
    return tau, forces


def build() -> rf.Model:
    """Robots in Python."""
    builder = rf.Builder("arm").link("upper", axis=(0, 1, 0), mass=2.0, com=(0.2, 0, 0))
    arm = builder.link("lower", parent="upper", at=(0.4, 0, 0), mass=1.0).model()
    table = rf.from_dh([(0.0, 0.0, 0.0, 0.0)], [1.0], [(0.5, 0.0, 0.0)], [(0.0, 0.1, 0.1)])
    for finding in table.check():
        print(finding.code, finding.where)
    return rf.with_payload(arm, "lower", 1.5, (0.3, 0.0, 0.0))


def simulate(m: rf.Model) -> rf.Result:
    """Simulation, controllers, results."""
    motion = rf.motion.Cycloid(np.zeros(m.nv), np.ones(m.nv), duration=1.0)
    law = rf.control.ComputedTorque(motion, kp=100.0, kd=20.0)
    r = rf.simulate(m, 1.0, control=law, rtol=1e-9)
    if not r.audit.passed:
        raise rf.SimulationError(str(r.audit))

    def push(t: float, q: Floats, v: Floats) -> Floats:
        return -2.0 * v

    pushed = rf.simulate(m, t_end=0.5, q0=r.q[-1], control=push, ground="firm")
    last: float = float(pushed.t[-1])
    r.save("run.nc")
    r.report("run.html")
    print(last, rf.Result.open("run.nc").energy.total.max())
    return pushed


def batches(m: rf.Model) -> Floats:
    """Rollouts, kernels and scenarios."""
    end = rf.rollout(m, np.zeros((64, m.nq)), np.zeros(m.nv), steps=100, dt=1e-3, method="rk4")
    kernel = m.kernel("forward_dynamics", "unrolled")
    print(kernel.op_count, kernel.tier, len(kernel.c_source()))
    walk = rf.scenario("planar_biped_walk").run(t_end=0.1)
    print(walk.status, rf.robots(), rf.scenarios())
    return end.q


def study() -> dict[str, NDArray[np.generic]]:
    """Many runs, with a custom metric."""

    def reach(result: rf.Result) -> float:
        return float(result.q[:, 0].max())

    s = rf.study(
        scenario="kuka_free_fall",
        vary={"payload.link6.mass": [1.0, 2.0]},
        metrics={"reach": reach},
        metrics_version="1",
        ledger="s.db",
    )
    count = s.run(2, progress=True)
    print(count.done, s.result(0).audit.verdict, s.parameters, s.columns)
    return dict(rf.Study.open("s.db", {"reach": reach}, "1").table())


def failing() -> str:
    """Errors."""
    try:
        rf.load("no_such_robot")
    except rf.ModelError as error:
        return str(error)
    except rf.RamifyError:
        raise
    return ""
