"""Derivatives of inverse and forward dynamics: against complex steps on random trees, against
Pinocchio's on real robots, in every tier.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from peers import model_of, random_model, states, worst
from random_trees import random_bodies
from test_machines_rotors import with_rotors
from test_real_robots import Pair, State, pair, translate

import ramify as rf
from ramify.core.arrays import Array
from ramify.core.spatial import NO_WRENCH
from ramify.dynamics.derivatives import (
    Derivatives,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from ramify.dynamics.inverse import inverse_dynamics
from ramify.dynamics.tree import tree_of
from ramify.kernels import rolled_tier
from ramify.model.configuration import unit_rates
from ramify.runtime import backend, compile

KINDS = (
    "revolute",
    "prismatic",
    "helical",
    "universal",
    "spherical",
    "cylindrical",
    "planar",
    "free_euler",
    "ball",
    "free",
)
H = 1e-30  # a complex step: no cancellation
UNIT = (1.0, 0.0, 0.0, 0.0)
REAL = (
    "ur5",
    "panda",
    "kinova",
    "anymal_b",
    "solo12",
    "a1",
    "hyq",
    "bolt",
    "talos",
    "g1",
    "simple_humanoid",
    "baxter",
)


def robot(seed: int) -> rf.Model:
    """Every third stands on a free joint, every third is any tree, every third has no ball; half of
    them have rotors.
    """
    kinds, root = KINDS[:-2] if seed % 3 == 2 else KINDS, "" if seed % 3 else "free"
    model = random_model(seed, kinds, 9, root)
    return with_rotors(model, seed) if seed % 2 else model


def dense(found: Derivatives) -> list[Array]:
    n = found.by_q.n
    return [np.array(m.row_major()).reshape(n, n) for m in (found.by_q, found.by_v, found.by_a)]


def by_complex_steps(model: rf.Model, q: Array, v: Array, a: Array) -> list[Array]:
    """Columns of the derivatives, all directions of an argument at once."""
    n, tree = model.nv, tree_of(model)

    def along(rates: Array, place: int) -> Array:
        given = [np.broadcast_to(x + 0j, (n, x.size)).copy() for x in (q, v, a)]
        given[place] = given[place] + 1j * H * rates
        qs, vs, accelerations = (list(x.T) for x in given)
        coordinates = model.skeleton.coordinates(qs, UNIT)
        tau = inverse_dynamics(tree, coordinates, vs, accelerations, [NO_WRENCH] * n)
        return np.array([np.broadcast_to(x, n) for x in tau]).imag / H

    return [along(unit_rates(model, q), 0), along(np.eye(n), 1), along(np.eye(n), 2)]


@pytest.mark.parametrize("first", range(0, 108, 9))
def test_complex_steps(first: int) -> None:
    for seed in range(first, first + 9):
        _against_complex_steps(robot(seed), seed)


def _against_complex_steps(model: rf.Model, seed: int) -> None:
    q, v, a = (x[0] for x in states(model, 1, seed))
    coordinates = model.skeleton.coordinates(q.tolist(), UNIT)
    found = inverse_dynamics_derivatives(tree_of(model), coordinates, v.tolist(), a.tolist())
    assert worst(found.tau, model.inverse_dynamics(q, v, a)) < 1e-12
    wanted = by_complex_steps(model, q, v, a)
    for ours, theirs in zip(dense(found), wanted, strict=True):
        assert worst(ours, theirs) < 1e-12
    back = forward_dynamics_derivatives(tree_of(model), coordinates, v.tolist(), list(found.tau))
    assert worst(back.tau, a) < 1e-8
    inverse = np.linalg.inv(wanted[2])
    for ours, theirs in zip(
        dense(back), (-inverse @ wanted[0], -inverse @ wanted[1], inverse), strict=True
    ):
        assert worst(ours, theirs) < 1e-8


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_tiers_agree(name: str, seed: int) -> None:
    """Single states, a batch shorter than a vector, and one longer than a piece of the stages."""
    model = robot(seed) if seed < 6 else random_model(seed, KINDS, 2)
    q, v, a = states(model, 75, seed)
    names = ("numpy", "rolled", "unrolled") if model.nv < 9 else ("numpy", "rolled")
    tiers = [model.kernel(f"{name}_derivatives", tier) for tier in names]
    wanted, *others = [kernel(q, v, a) for kernel in tiers]
    for found in others:
        for ours, theirs in zip(found, wanted, strict=True):
            assert worst(ours, theirs) < 1e-9
    for kernel, all_states in zip(tiers, (wanted, *others), strict=True):
        for few in (slice(5, 6), slice(3, 6), slice(0, 20)):
            for ours, theirs in zip(kernel(q[few], v[few], a[few]), all_states, strict=True):
                assert np.array_equal(ours, theirs[few])


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_every_width_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    free = random_model(2, ["revolute"], 2, root="free")
    for model, tier in ((free, "rolled"), (random_model(8, KINDS, 2), "unrolled")):
        q, v, a = states(model, 40, 1)
        kernel = model.kernel(f"{name}_derivatives", tier)
        found = []
        for width in (1, 2, 4, 8):
            monkeypatch.setattr(backend, "width_for", lambda states, width=width: width)
            found.append(kernel(q, v, a))
        for other in found[1:]:
            for one, first in zip(other, found[0], strict=True):
                assert np.array_equal(one, first)


def test_arrays_to_fill() -> None:
    model = rf.load("kuka_kr5")
    q, v, a = states(model, 5, 1)
    for method in (model.inverse_dynamics_derivatives, model.forward_dynamics_derivatives):
        out = tuple(np.full((5, 6, 6), np.nan) for _ in range(3))
        assert method(q, v, a, out=out) is out
        for filled, fresh in zip(out, method(q, v, a), strict=True):
            assert np.array_equal(filled, fresh)


@pytest.mark.parametrize(
    ("name", "tier", "root"),
    [
        ("regressor", "unrolled", ""),
        ("regressor", "rolled", "free"),
        ("inverse_dynamics_derivatives", "rolled", "free"),
    ],
)
def test_arrays_whose_states_stand_apart(name: str, tier: Any, root: str) -> None:
    """Nothing between the states is touched, and with preset zeros no block of zeros is."""
    model = random_model(4, ["revolute"], 3 if tier == "unrolled" else 6, root)
    q, v, a = states(model, 37, 2)
    kernel = model.kernel(name, tier)
    found = kernel(q, v, a)
    wanted = found if isinstance(found, tuple) else (found,)
    memory = [np.full((37, x[0].size + 5), 7.0) for x in wanted]
    out = [m[:, :-5].reshape(x.shape) for m, x in zip(memory, wanted, strict=True)]
    kernel.fill(q, v, a, out=out)
    for m, x, y in zip(memory, out, wanted, strict=True):
        assert np.array_equal(x, y)
        assert (m[:, -5:] == 7.0).all()
        x[y == 0.0] = 7.0
    kernel.fill(q[::-1], v[::-1], a[::-1], out=out, preset=True)
    for x, y in zip(out, wanted, strict=True):
        assert np.array_equal(x[::-1][y != 0.0], y[y != 0.0])
    assert name != "regressor" or (out[0] == 7.0).any()
    turned = [np.zeros((37, *x.shape[:0:-1])).swapaxes(1, 2) for x in out]
    with pytest.raises(rf.StateError, match="side by side"):
        kernel.fill(q, v, a, out=turned)


def test_what_cannot_be_filled() -> None:
    model = rf.load("kuka_kr5")
    kernel = model.kernel("inverse_dynamics_derivatives")
    q, v, a = states(model, 16, 2)
    out = [np.zeros((16, 6, 6)) for _ in range(3)]
    for inputs, arrays, says in (
        ((q, v), out, "takes 3 arrays"),
        ((q[:3], v[:3], a[:3]), out, "out is for 16 states"),
        ((q, v, a), None, "out must hold 3 arrays"),
        ((q, v, a), [out[0]] * 3, "shares memory"),
        ((out[0][:, 0], v, a), out, "shares memory"),
    ):
        with pytest.raises(rf.StateError, match=says):
            kernel.fill(*inputs, out=arrays)
    side_by_side = np.zeros((16, 3, 6, 6))
    kernel.fill(q, v, a, out=[side_by_side[:, i] for i in range(3)])
    for i, wanted in enumerate(kernel(q, v, a)):
        assert np.array_equal(side_by_side[:, i], wanted)
    empty = np.zeros((0, 6))
    kernel.fill(empty, empty, empty, out=[np.zeros((0, 6, 6)) for _ in range(3)])


def test_far_away() -> None:
    """A free robot 10 km from the origin and at 100 m/s keeps its digits: forces do not depend on
    either.
    """
    model = random_model(7, KINDS[:3], 3, root="free")
    q, v, a = (x[0] for x in states(model, 1, 7))
    here = model.inverse_dynamics_derivatives(q, v, a)
    far, fast = q.copy(), v.copy()
    far[:3] += 1e4
    fast[:3] += 100.0
    for name in ("inverse_dynamics", "forward_dynamics"):
        loops = model.kernel(name, "rolled")
        assert np.array_equal(loops(far, fast, a), loops(q, v, a))
    for tier in ("rolled", "unrolled"):
        for ours, wanted in zip(
            model.kernel("inverse_dynamics_derivatives", tier)(far, fast, a), here, strict=True
        ):
            assert worst(ours, wanted) < 1e-13


def test_a_forest_on_the_base_has_no_trunk() -> None:
    """A second body on the base beside a free one: the general sweeps, not the trunk's."""
    rng = np.random.default_rng(3)
    first, second = random_bodies(rng, 2, True, ["free"]), random_bodies(rng, 1, True, ["helical"])
    bodies = (first[0], second[0])
    bodies = (bodies[0], type(second[0])("other", -1, *_rest(second[0])))
    model = model_of(bodies, (0.0, 0.0, -9.81))
    q, v, a = (x[0] for x in states(model, 1, 3))
    for ours, theirs in zip(
        model.inverse_dynamics_derivatives(q, v, a), by_complex_steps(model, q, v, a), strict=True
    ):
        assert worst(ours, theirs) < 1e-12


def _rest(body: Any) -> tuple[Any, ...]:
    return body.joint, body.mass, body.com, body.inertia


def pinocchio_derivatives(robot: Pair, state: State, a: Array) -> list[Array]:
    """Pinocchio's, taken to our coordinates: its velocity v' = X v and its acceleration
    a' = X a + c, forces tau = X' tau'; X and c turn with the base.
    """
    peer, data, X = robot.peer, robot.data, state.X
    pa = X @ a + state.c
    by_q, by_v, M = pin.computeRNEADerivatives(peer, data, state.peer_q, state.peer_v, pa)
    M = np.triu(M) + np.triu(M, 1).T
    tau = data.tau.copy()
    n = peer.nv
    dv_q, da_q, da_v, turned = (np.zeros((n, n)) for _ in range(4))
    if peer.joints[1].nq == 7:
        R = X[:3, :3].T
        w, u, b = state.v[3:6], R.T @ state.v[:3], R.T @ a[:3]
        dv_q[:3, 3:6] = pin.skew(u)
        da_q[:3, 3:6] = pin.skew(b) - pin.skew(w) @ pin.skew(u)
        da_v[:3, :3], da_v[:3, 3:6] = -pin.skew(w) @ R.T, pin.skew(u)
        turned[:3, 3:6] = -R @ pin.skew(tau[:3])
    return [
        X.T @ (by_q @ X + by_v @ dv_q + M @ da_q) + turned,
        X.T @ (by_v @ X + M @ da_v),
        X.T @ M @ X,
    ]


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("name", REAL)
def test_pinocchio(name: str, base: str) -> None:
    robot = pair(name, base)
    rng = np.random.default_rng(1)
    for seed in range(2):
        q, v = robot.ours.random(seed)
        a = 3.0 * rng.normal(size=robot.ours.nv)
        wanted = pinocchio_derivatives(robot, translate(robot, q, v, a), a)
        kernel = robot.ours.kernel("inverse_dynamics_derivatives", "rolled")
        for ours, theirs in zip(kernel(q, v, a), wanted, strict=True):
            assert worst(ours, theirs) < 1e-10
        tau = robot.ours.inverse_dynamics(q, v, a)
        found = robot.ours.kernel("forward_dynamics_derivatives", "rolled")(q, v, tau)
        limit = 1e-15 * np.linalg.cond(wanted[2]) + 1e-10
        for ours, theirs in zip(found[:2], wanted[:2], strict=True):
            assert worst(ours, -np.linalg.solve(wanted[2], theirs)) < limit


def test_large_robots_run_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Straight-line code would be too long: it is not made, however often the kernel is used; no
    object exceeds 100 kB.
    """
    sizes: list[int] = []

    class Seen(compile.Compiled):
        def __init__(self, payload: bytes, name: str) -> None:
            sizes.append(len(payload))
            super().__init__(payload, name)

    monkeypatch.setattr(compile, "Compiled", Seen)
    monkeypatch.setattr(
        rolled_tier, "rolled_kernels", cache(rolled_tier.rolled_kernels.__wrapped__)
    )
    model = random_model(7, ["revolute"], 24, root="free")
    q, v, a = states(model, 600, 1)
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives", "regressor"):
        kernel = model.kernel(name)
        kernel(q, v, a)
        kernel(q[0], v[0], a[0])
        assert kernel._plan.better is None
        assert kernel.tier == "rolled"
    assert len(sizes) >= 6
    assert max(sizes) < 100_000


OTHERS = [
    "bias",
    "gravity_forces",
    "energy",
    "center_of_mass",
    "momentum",
    "kinematics",
    "mass_matrix",
    "centroidal_momentum_matrix",
    "hybrid_dynamics",
]


@pytest.mark.parametrize("name", OTHERS)
def test_every_algorithm_has_derivatives(name: str) -> None:
    """Against differences of high order, on a free robot with a ball joint."""
    model = random_model(3, ["revolute", "ball"], 3, root="free")
    q, v, a = states(model, 2, 3)
    function = model.kernel(name)
    ports = function._plan.inputs
    given = [q, v, a][: len(ports)]
    rng = np.random.default_rng(0)
    along = [rng.normal(size=v.shape) for _ in ports]

    def ahead(h: float) -> list[Array]:
        moved = [model.integrate(q, h * along[0], 1.0)]
        moved += [x + h * d for x, d in zip(given[1:], along[1:], strict=True)]
        found = function(*moved)
        return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]

    h = 1e-3
    weights = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
    rates = model.derivative_along(name, given, along)
    for i, (rate, by) in enumerate(zip(rates, model.derivatives(name, *given), strict=True)):
        wanted = sum(w * (ahead(k * h)[i] - ahead(-k * h)[i]) for k, w in weights) / h
        assert worst(rate, wanted) < 1e-9
        added = [np.einsum("n...k,nk->n...", m, d) for m, d in zip(by, along, strict=True)]
        assert worst(sum(added), rate) < 1e-12
        one = model.derivative_along(name, [x[1] for x in given], [d[1] for d in along])[i]
        assert one.shape == rate.shape[1:]
        assert worst(one, rate[1]) < 1e-12
        for _ in range(20):  # nothing is written beyond empty arrays
            assert len(model.derivatives(name, *(x[:0] for x in given))[i][0]) == 0


def test_motion_of_a_frame_and_its_derivatives() -> None:
    """The velocity is J v and the acceleration J a + dJ/dt v, of a point of a merged link too;
    derivatives against differences.
    """
    model = random_model(3, ["revolute", "ball"], 3, root="free")
    model = rf.with_tool(model, model.bodies[-1].name, "tip", (0.1, -0.2, 0.3))
    q, v, a = states(model, 2, 3)
    point = (0.2, 0.1, -0.3)
    moving = model.frame_motion(q, v, a, "tip", point)
    J, rest = model.jacobian(q, "tip", point), model.jacobian_rate(q, v, "tip", point)
    assert worst(moving.velocity, np.einsum("nij,nj->ni", J, v)) < 1e-12
    assert worst(moving.acceleration, np.einsum("nij,nj->ni", J, a) + rest) < 1e-12
    found = model.frame_motion_derivatives(q, v, a, "tip", point)
    assert worst(found.velocity_by_v, J) < 1e-12
    assert worst(found.acceleration_by_a, J) < 1e-12
    h = 1e-5
    for k, e in enumerate(np.eye(model.nv) * h):
        moved = [
            model.frame_motion(model.integrate(q, s * e, 1.0), v, a, "tip", point) for s in (1, -1)
        ]
        faster = [model.frame_motion(q, v + s * e, a, "tip", point) for s in (1, -1)]
        slopes = [(x - y) / (2 * h) for x, y in zip(*moved, strict=True)]
        assert np.abs(found.velocity_by_q[..., k] - slopes[0]).max() < 1e-7
        assert np.abs(found.acceleration_by_q[..., k] - slopes[1]).max() < 1e-6
        slope = (faster[0].acceleration - faster[1].acceleration) / (2 * h)
        assert np.abs(found.acceleration_by_v[..., k] - slope).max() < 1e-7


def test_second_derivatives_along_a_direction() -> None:
    """d/ds of the matrices, against differences of the analytic ones and the symmetry of second
    derivatives: (d/dx_i dtau/dx_j) = (d/dx_j dtau/dx_i).
    """
    model = rf.load("two_link")
    n = model.nv
    q, v, a = (x[0] for x in states(model, 1, 1))
    zero = np.zeros(n)
    second = np.array(
        [
            model.derivative_along("inverse_dynamics_derivatives", (q, v, a), (e, zero, zero))[0]
            for e in np.eye(n)
        ]
    )  # [i, tau, j]
    assert worst(second, np.swapaxes(second, 0, 2)) < 1e-12
    assert np.abs(second).max() > 1e-3
    step = 1e-5
    for i, e in enumerate(np.eye(n) * step):
        up, down = (model.inverse_dynamics_derivatives(q + s * e, v, a)[0] for s in (1, -1))
        assert worst(second[i], (up - down) / (2 * step)) < 1e-8


def test_what_derivatives_refuse() -> None:
    model = rf.load("two_link")
    with pytest.raises(rf.StateError, match="takes 2 arrays"):
        model.derivatives("bias", np.zeros(2))
    with pytest.raises(rf.StateError, match="dq has shape"):
        model.derivative_along("gravity_forces", [np.zeros(2)], [np.zeros(3)])
    with pytest.raises(rf.RamifyError, match="no algorithm"):
        model.derivatives("biass", np.zeros(2))


@pytest.mark.parametrize("name", ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"])
def test_threads_do_not_share_memory(name: str) -> None:
    """Batches run outside Python's lock; loops have one piece of memory, which only one may use."""
    model = random_model(3, ["revolute", "helical"], 8, root="free")
    q, v, a = states(model, 200, 1)
    kernel = model.kernel(name, "rolled")
    kernel(q, v, a)
    wanted = kernel(q, v, a)

    def differs(_: int) -> bool:
        return any(not np.array_equal(x, y) for x, y in zip(kernel(q, v, a), wanted, strict=True))

    with ThreadPoolExecutor(3) as pool:
        assert not any(pool.map(differs, range(150)))
