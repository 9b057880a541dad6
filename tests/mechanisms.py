"""Closed mechanisms for the tests: states that fit their loops, and the same loops in Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from peers import pinocchio_of

import ramify as rf
from ramify.core.arrays import Array
from ramify.model.loop import LoopEnd

MECHANISMS = (
    "four_bar", "hoeken_four_bar", "redysim_four_bar", "robotic_leg", "slider_crank", "spatial_four_bar", "stewart_platform",
    "three_rrr",
)  # fmt: skip


def consistent(model: rf.Model, seed: int = 0, scale: float = 1.0) -> tuple[Array, Array, Array]:
    """(q, v, a) near the model's own posture that keep the loops closed, found by numbers alone:
    projection and least squares.
    """
    rng = np.random.default_rng(seed)
    q = model.assemble().q
    J = model.constraints(q).J
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J) :].T
    q = model.assemble(guess=model.integrate(q, free @ rng.normal(size=free.shape[1]) * 0.1, 1.0)).q
    J = model.constraints(q).J
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J) :].T
    v = free @ rng.normal(size=free.shape[1]) * scale
    a = (
        free @ rng.normal(size=free.shape[1]) * scale
        - np.linalg.pinv(J) @ model.constraints(q, v).Jdot_v
    )
    return q, v, a


class Peer:
    """A mechanism of planar pins and ball joints in Pinocchio: its open tree, and the relative
    motion of the pins' two sides.
    """

    def __init__(self, model: rf.Model) -> None:
        self.model, self.pin = model, pinocchio_of(model)
        self.data = self.pin.createData()

    def at(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Pinocchio's own q, v, a."""
        return self.model.tree.to_pinocchio(q, v, a)[:3]

    def torques(self, q: Array, v: Array, a: Array) -> Array:
        """Forces of the open tree, in Pinocchio's coordinates."""
        return pin.rnea(self.pin, self.data, *self.at(q, v, a))

    def closure(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """(gap, J, J' v) of all pins, world axes; two rows for a planar pin, three for a ball."""
        qp, vp, _ = self.at(q, v, np.zeros(self.model.nv))
        pin.computeJointJacobians(self.pin, self.data, qp)
        pin.forwardKinematics(self.pin, self.data, qp, vp, np.zeros(self.pin.nv))
        pin.updateFramePlacements(self.pin, self.data)
        parts = []
        for loop in self.model.loops:
            rows = 2 if loop.planar else 3
            (r1, J1, a1), (r2, J2, a2) = (self._end(end) for end in (loop.first, loop.second))
            parts.append(((r2 - r1)[:rows], (J2 - J1)[:rows], (a2 - a1)[:rows]))
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]

    def _end(self, end: LoopEnd) -> tuple[Array, Array, Array]:
        if end.link is None:
            return end.frame.position, np.zeros((3, self.pin.nv)), np.zeros(3)
        frame = self.pin.getFrameId(end.link)
        place = self.data.oMf[frame]
        arm = place.rotation @ end.frame.position
        J = pin.getFrameJacobian(self.pin, self.data, frame, pin.LOCAL_WORLD_ALIGNED)
        rate = pin.getFrameClassicalAcceleration(
            self.pin, self.data, frame, pin.LOCAL_WORLD_ALIGNED
        )
        w = pin.getFrameVelocity(self.pin, self.data, frame, pin.LOCAL_WORLD_ALIGNED).angular
        bias = rate.linear + np.cross(rate.angular, arm) + np.cross(w, np.cross(w, arm))
        return place.translation + arm, J[:3] - pin.skew(arm) @ J[3:], bias

    def inverse(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """(tau of the driven joints, multipliers in world axes) of eq. (8.4)."""
        J = self.closure(q, v)[1]
        driven = [i for i, joint in enumerate(_drives(self.model)) if joint]
        F = np.hstack([np.eye(self.pin.nv)[:, driven], J.T])
        found, *_ = np.linalg.lstsq(F, self.torques(q, v, a), rcond=None)
        np.testing.assert_allclose(F @ found, self.torques(q, v, a), atol=1e-9)
        return found[: len(driven)], found[len(driven) :]

    def forward(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """(a, multipliers) of the system (8.5), in Pinocchio's coordinates; tau on one-DOF joints."""
        qp, vp, _ = self.at(q, v, np.zeros(self.model.nv))
        _, J, bias = self.closure(q, v)
        M = pin.crba(self.pin, self.data, qp)
        M = np.triu(M) + np.triu(M, 1).T
        h = pin.nonLinearEffects(self.pin, self.data, qp, vp)
        n, nc = len(h), len(J)
        K = np.block([[M, J.T], [J, np.zeros((nc, nc))]])
        found = np.linalg.solve(K, np.concatenate([tau - h, -bias]))
        return found[:n], -found[n:]

    def in_world(self, q: Array, multipliers: Array) -> Array:
        """Our multipliers, which stand in the axes of each loop's first end, in the axes of the
        world.
        """
        pose = self.model.tree.kinematics(q)
        out, k = [], 0
        for loop in self.model.loops:
            rows = len(loop.rows)
            assert loop.first.link is not None
            body, place = self.model.attachment(loop.first.link)
            R = pose.rotation[body] @ place.rotation @ loop.frames[0].rotation
            out.append((R[:, :rows] @ multipliers[k : k + rows])[:rows])
            k += rows
        return np.concatenate(out)


def _drives(model: rf.Model) -> list[Any]:
    return [joint.actuated for joint in model.joints for _ in range(joint.dof)]
