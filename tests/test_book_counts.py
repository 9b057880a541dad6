"""The book's recursions as written for counting: right numbers, and the multiplications and additions of its tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_trees import random_body, random_joint

import ramify as rf
from ramify.formulations import book_fixed, book_floating
from ramify.formulations.book_tree import general_tree, general_tree_like, tree_of
from ramify.model.joint import Joint
from ramify.model.model import Model
from ramify.spatial import Vec3, Wrench

KINDS = ("revolute", "universal", "spherical")


def random_robot(seed: int, floating: bool) -> Model:
    """A tree of revolute, universal and spherical joints; every third robot has right angles."""
    rng = np.random.default_rng(seed)
    style = "right angles" if seed % 3 == 0 else "anywhere"
    bodies = [random_body(rng, "base", -1, Joint("root", "free"))] if floating else []
    for k in range(int(rng.integers(1, 6))):
        parent = len(bodies) - 1 if rng.random() < 0.6 else int(rng.integers(0 if floating else -1, max(len(bodies), 1)))
        joint = random_joint(rng, f"joint {k}", str(rng.choice(KINDS)), style)
        bodies.append(random_body(rng, f"body {k}", min(parent, len(bodies) - 1), joint))
    return Model("random", tuple(bodies), 6.0 * rng.normal(size=3), {})


def error(got: Any, right: Any) -> float:
    """Largest difference, relative to the largest entry."""
    right = np.asarray(right)
    return float(np.abs(np.asarray(got, dtype=np.float64) - right).max() / max(np.abs(right).max(), 1e-9))


@pytest.mark.parametrize("block", range(4))
def test_fixed_base(block: int) -> None:
    """100 trees: torques and accelerations of the kernels."""
    for seed in range(25 * block, 25 * block + 25):
        m = random_robot(seed, floating=False)
        tree = tree_of(m)
        q, v, a = np.random.default_rng(seed).normal(size=(3, m.nv))
        tau = m.inverse_dynamics(q, v, a)
        assert error(book_fixed.inverse_dynamics(tree, q, v, a), tau) < 1e-11
        assert error(book_fixed.accelerations_from(tree, q, tau - m.bias(q, v)), a) < 1e-11


@pytest.mark.parametrize("block", range(4))
def test_floating_base(block: int) -> None:
    """100 floating trees: the base's acceleration, torques and accelerations of the kernels, with and without outside wrenches."""
    for seed in range(25 * block, 25 * block + 25):
        m = random_robot(seed, floating=True)
        tree = tree_of(m)
        rng = np.random.default_rng(seed)
        q, v = m.random(seed)
        joints = rng.normal(size=m.nv - 6)
        # the base's own axes: those of its link, turned by ``seat`` from the user's
        seat = m.skeleton.links[5].seat
        assert seat.r == Vec3(0.0, 0.0, 0.0)
        S = np.array([[x.x, x.y, x.z] for x in seat.R.rows])
        R = S @ np.asarray(m.kinematics(q).rotation)[0].T  # world to base axes
        w0, g = Vec3(*(S @ v[3:6])), Vec3(*(R @ np.asarray(m.gravity)))
        outside = [Wrench(Vec3(0.0, 0.0, 0.0), Vec3(0.0, 0.0, 0.0))] * len(m.bodies) if seed % 2 else None

        given = np.concatenate([np.zeros(6), joints])
        base, tau = book_floating.inverse_dynamics(tree, q[7:], w0, g, v[6:], joints, outside)
        a0, right = m.hybrid_dynamics(q, v, joints)
        assert error(base, np.concatenate([S @ a0[3:], R @ a0[:3]])) < 1e-11
        assert error(tau, right) < 1e-11
        base, found = book_floating.forward_dynamics(tree, q[7:], w0, g, v[6:], joints, outside)
        right = m.forward_dynamics(q, v, given)
        assert error(base, np.concatenate([S @ right[3:6], R @ right[:3]])) < 1e-11
        assert error(found, right[6:]) < 1e-11
