"""Vectors, tensors and six-dimensional inertias against dense NumPy matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ramify.core.records import flatten, rebuild
from ramify.core.spatial import (
    NO_ARTICULATED,
    ArticulatedInertia,
    Mat3,
    RigidInertia,
    Sym3,
    Twist,
    Vec3,
    Wrench,
    acceleration_field,
)
from ramify.model.frame import rotation_about
from ramify.model.link import Propagation, Screw, Turn

X, Z = (1, 0, 0), (0, 0, 1)
number = st.floats(-3.0, 3.0)
angle = st.floats(-7.0, 7.0)


def records(template: Any) -> st.SearchStrategy[Any]:
    n = len(flatten(template))
    return st.lists(number, min_size=n, max_size=n).map(lambda xs: rebuild(template, iter(xs)))


vectors = records(Vec3(0.0, 0.0, 0.0))
symmetric = records(Sym3(*[0.0] * 6))
general = records(Mat3(*[0.0] * 9))
rigid = records(RigidInertia(0.0, Vec3(0.0, 0.0, 0.0), Sym3(*[0.0] * 6)))
articulated = records(NO_ARTICULATED)
twists = records(Twist(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)))
wrenches = records(Wrench(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0)))


def dense(x: Any) -> np.ndarray:
    """The usual matrix or column of a record."""
    match x:
        case Sym3():
            return np.array([[x.xx, x.xy, x.xz], [x.xy, x.yy, x.yz], [x.xz, x.yz, x.zz]])
        case Mat3():
            return np.array(flatten(x)).reshape(3, 3)
        case RigidInertia():
            h = cross(dense(x.h))
            return np.block([[dense(x.I), h], [h.T, x.m * np.eye(3)]])
        case ArticulatedInertia():
            return np.block([[dense(x.A), dense(x.B)], [dense(x.B).T, dense(x.C)]])
        case _:
            return np.array(flatten(x))


def cross(u: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])


def shifted(r: Vec3) -> np.ndarray:
    """The twist of a body's point r from that of its origin: v + w x r."""
    return np.block([[np.eye(3), np.zeros((3, 3))], [-cross(dense(r)), np.eye(3)]])


def close(ours: Any, theirs: np.ndarray) -> None:
    assert_allclose(dense(ours), theirs, rtol=0, atol=1e-13 * max(1.0, float(np.abs(theirs).max())))


@given(vectors, vectors, number)
def test_vectors(u: Vec3, w: Vec3, k: float) -> None:
    a, b = dense(u), dense(w)
    close(u + w, a + b)
    close(u - w, a - b)
    close(-u, -a)
    close(u * k, a * k)
    close(u.cross(w), np.cross(a, b))
    assert u.dot(w) == pytest.approx(a @ b, abs=1e-13)


@given(symmetric, general, vectors, vectors)
def test_tensors_times_vectors(s: Sym3, t: Mat3, u: Vec3, r: Vec3) -> None:
    close(s @ u, dense(s) @ dense(u))
    close(t @ u, dense(t) @ dense(u))
    close(t.transposed_times(u), dense(t).T @ dense(u))
    close(t.crossed_by(r), cross(dense(r)) @ dense(t))
    close(Mat3.cross_tensor(r), cross(dense(r)))
    close(t + t, 2 * dense(t))
    close(s + s, 2 * dense(s))


@given(angle, vectors, symmetric, general)
def test_rotations(q: float, u: Vec3, s: Sym3, t: Mat3) -> None:
    c, n = math.cos(q), math.sin(q)
    for axis, turn in ((X, "rotate_x"), (Z, "rotate_z")):
        R = rotation_about(axis, q)
        close(getattr(u, turn)(c, n), R @ dense(u))
        close(getattr(s, turn)(c, n), R @ dense(s) @ R.T)
        close(getattr(t, turn)(c, n), R @ dense(t) @ R.T)


@given(st.integers(-4, 4), vectors, symmetric, general, articulated)
def test_quarter_turns_only_permute(
    k: int, u: Vec3, t: Sym3, T: Mat3, N: ArticulatedInertia
) -> None:
    c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[k % 4]
    for x in (u, t, T, N):
        for turn in ("rotate_x", "rotate_z"):
            turned = getattr(x, turn)(c, s)
            assert sorted(map(abs, flatten(turned))) == sorted(map(abs, flatten(x)))
            assert flatten(getattr(turned, turn)(c, -s)) == flatten(x)


@given(angle, st.floats(0.1, 5.0))
def test_an_isotropic_tensor_does_not_change(q: float, moment: float) -> None:
    ball = Sym3(moment, moment, moment, 0.0, 0.0, 0.0)
    for turned in (
        ball.rotate_x(math.cos(q), math.sin(q)),
        ball.rotate_z(math.cos(q), math.sin(q)),
    ):
        assert turned == ball


@given(twists, twists)
def test_acceleration_field(t: Twist, dt: Twist) -> None:
    w, dw = dense(t.w), dense(dt.w)
    close(acceleration_field(t.w, dt.w), cross(dw) + cross(w) @ cross(w))


@given(rigid, twists, twists, wrenches)
def test_wrench_of_a_moving_body(M: RigidInertia, t: Twist, dt: Twist, w: Wrench) -> None:
    close(M @ t, dense(M) @ dense(t))
    # Newton and Euler about a moving origin; the velocity of the origin does not enter.
    turning = np.r_[dense(t.w), 0, 0, 0]
    momentum = dense(M) @ turning
    omega = np.kron(np.eye(2), cross(dense(t.w)))
    close(M.wrench(t, dt), dense(M) @ dense(dt) + omega @ momentum)
    assert t.dot(w) == pytest.approx(dense(t) @ dense(w), abs=1e-12)
    close(w + w, 2 * dense(w))
    close(w - w, 0 * dense(w))
    close(w * 2.0, 2 * dense(w))


@given(rigid, articulated, vectors, twists)
def test_inertias_shift_by_congruence(
    M: RigidInertia, N: ArticulatedInertia, r: Vec3, t: Twist
) -> None:
    shift = shifted(r)
    for inertia in (M, N):
        close(inertia.shift(r), shift.T @ dense(inertia) @ shift)
        close(inertia + inertia, 2 * dense(inertia))
    close(M.articulated(), dense(M))
    close(N @ t, dense(N) @ dense(t))


@given(articulated, wrenches, number)
def test_minus_outer(N: ArticulatedInertia, a: Wrench, k: float) -> None:
    close(N.minus_outer(a, a * k), dense(N) - k * np.outer(dense(a), dense(a)))


@given(angle, angle, angle, vectors, twists, twists, wrenches, rigid, articulated)
def test_propagation_is_the_matrix_A(
    gamma: float,
    alpha: float,
    theta: float,
    r: Vec3,
    t: Twist,
    dt: Twist,
    w: Wrench,
    M: RigidInertia,
    N: ArticulatedInertia,
) -> None:
    turns = [Turn(math.cos(q), math.sin(q)) for q in (gamma, alpha, theta)]
    A = Propagation(*turns, r)
    R = rotation_about(Z, gamma) @ rotation_about(X, alpha) @ rotation_about(Z, theta)
    matrix = np.kron(np.eye(2), R.T) @ shifted(r)
    close(A @ t, matrix @ dense(t))
    close(A.transposed(w), matrix.T @ dense(w))
    close(A.inward(t.v), R @ dense(t.v))
    close(A.outward(t.v), R.T @ dense(t.v))
    for inertia in (M, N):
        close(A.congruence(inertia), matrix.T @ dense(inertia) @ matrix)
    drift = np.cross(dense(t.w), np.cross(dense(t.w), dense(r)))
    close(A.rate(t, dt), matrix @ dense(dt) + np.r_[0, 0, 0, R.T @ drift])
    # Power does not depend on where it is measured.
    assert (A @ t).dot(w) == pytest.approx(t.dot(A.transposed(w)), abs=1e-11)


@given(number, number, number, vectors, wrenches)
def test_screw(rho: float, eta: float, rate: float, turning: Vec3, w: Wrench) -> None:
    p = Screw(rho, eta)
    column = np.array([0.0, 0.0, rho, 0.0, 0.0, eta])
    close(p.column, column)
    close(p * rate, column * rate)
    assert p.dot(w) == pytest.approx(column @ dense(w), abs=1e-13)
    close(p.rate(turning), np.kron(np.eye(2), cross(dense(turning))) @ column)


def test_a_batch_per_scalar() -> None:
    rng = np.random.default_rng(0)
    q, values = rng.normal(size=5), rng.normal(size=(27, 5))
    batch = (
        rebuild(NO_ARTICULATED, iter(values[:21]))
        .rotate_z(np.cos(q), np.sin(q))
        .shift(Vec3(*values[21:24]))
    )
    for k in range(5):
        one = rebuild(NO_ARTICULATED, iter(values[:21, k].tolist()))
        one = one.rotate_z(math.cos(q[k]), math.sin(q[k])).shift(Vec3(*values[21:24, k].tolist()))
        assert_allclose([x[k] for x in flatten(batch)], flatten(one), rtol=1e-13, atol=1e-14)
