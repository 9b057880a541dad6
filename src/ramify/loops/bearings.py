"""Wrenches in all joints of a robot, each at the joint's own point, whether it was cut or not."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import StateError
from ramify.kernels.make import kernel
from ramify.kernels.queries import applied_wrenches, kinematics
from ramify.loops.closed_dynamics import Wrenches, closed_inverse_dynamics, loop_wrenches
from ramify.loops.planar import as_spatial
from ramify.loops.self_stress import Sharing, self_stresses, warn_of_sharing
from ramify.model.driven import driven
from ramify.model.robot import Robot

UNBALANCED: Final = 1e-6
"""Of the wrenches in the joints: a larger force along a free direction is not rounding."""


def bearing_forces(
    model: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches,
    multipliers: ArrayLike | None, passive: Array | None = None,
) -> dict[str, Array]:  # fmt: skip
    """The wrenches in all joints, each at the joint's own point: see Model.bearing_forces.

    passive (..., nv): joint forces that act without a drive; where they are given, StateError names
    a free direction that would have to carry more.
    """
    on_links, of_loops = applied_wrenches(model, {} if wrenches is None else wrenches, q), None
    if model.loops:
        lam = (
            closed_inverse_dynamics(model, q, v, a, wrenches)[1]
            if multipliers is None
            else multipliers
        )
        by_loops, of_loops = loop_wrenches(model, q, lam)
        on_links = on_links + by_loops
    joints = _JointPoints(model, q)
    by_joint = joints.wrenches(kernel(model, "reactions")(q, v, a, on_links), of_loops)
    if passive is not None:
        required = kernel(model.tree, "inverse_dynamics_wrenches")(q, v, a, on_links)
        of_tree = by_joint[..., : len(model.joints), :]
        _refuse_unbalanced(model, required, passive, of_tree, joints.span)
    if model.loops and (S := _stresses(model, q, joints)).shape[-1]:
        sharing = Sharing(S, joints.points, joints.rigid)
        by_joint = sharing.shared(by_joint)
        warn_of_sharing(model, joints.names, sharing, by_joint)
    return dict(zip(joints.names, np.moveaxis(by_joint, -2, 0), strict=True))


class _JointPoints:
    """The joints of a robot at q, those of the tree first, then those that close loops."""

    def __init__(self, model: Robot, q: ArrayLike) -> None:
        self.model = model
        rotation, self.position = kinematics(model.tree, q)
        self.closing = [i for i, loop in enumerate(model.loops) if not loop.couples]
        ends: list[tuple[int, Array]] = []  # the body, -1 for the base, and the place on it
        for b, (body, joint) in enumerate(zip(model.bodies, model.joints, strict=True)):
            on_parent = body.parent, joint.placement.position
            ends.append(on_parent if joint.backwards else (b, joint.outlet.inverse().position))
        self.names = [joint.name for joint in model.joints]
        self.rigid = [joint.kind == "fixed" for joint in model.joints]
        for i in self.closing:
            loop = model.loops[i]
            link, frame = loop.second.link, loop.second.frame
            if link is None:
                ends.append((-1, frame.position))
            else:
                b, place = model.attachment(link)
                ends.append((b, (place @ frame).position))
            taken = loop.name in self.names[: len(model.joints)]
            self.names.append(f"loop {loop.name}" if taken else loop.name)
            self.rigid.append(loop.kind == "fixed")
        states = self.position.shape[:-2]
        self.points = np.stack(
            [
                rotation[..., b, :, :] @ place + self.position[..., b, :]
                if b >= 0
                else np.broadcast_to(place, (*states, 3))
                for b, place in ends
            ],
            axis=-2,
        )

    @property
    def span(self) -> Array:
        """(...), m: the largest distance of a body from the first."""
        far: Array = np.linalg.norm(self.position - self.position[..., :1, :], axis=-1)
        return far.max(axis=-1)

    def wrenches(self, on_bodies: Array, of_loops: Array | None) -> Array:
        """(..., joints, 6), at the joints' own points: from those in the joints of the tree at the
        origins of their bodies (..., bodies, 6), and those of all loops (..., 6 loops).
        """
        force = on_bodies[..., 3:]
        arm = self.position - self.points[..., : len(self.model.joints), :]
        moment = on_bodies[..., :3] + np.cross(arm, force)
        sign = np.array([-1.0 if joint.backwards else 1.0 for joint in self.model.joints])
        of_tree: Array = np.concatenate([moment, force], axis=-1) * sign[:, None]
        if of_loops is None:
            return of_tree
        closing = of_loops.reshape(*of_loops.shape[:-1], -1, 6)[..., self.closing, :]
        shape = np.broadcast_shapes(of_tree.shape[:-2], closing.shape[:-2])
        parts = [np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (of_tree, closing)]
        return np.concatenate(parts, axis=-2)


def _stresses(model: Robot, q: ArrayLike, joints: _JointPoints) -> Array:
    """(..., joints, 6, k): the wrenches of k self-stresses in all joints."""
    rest = np.zeros(model.nv)
    weight = kernel(model, "reactions")(q, rest, rest, applied_wrenches(model, {}, q))
    found = [np.zeros((*joints.points.shape[:-1], 6, 0))]
    for lam in self_stresses(model, q):
        on_links, of_loops = kernel(as_spatial(model), "loop_wrenches")(q, lam)
        on_bodies = kernel(model, "reactions")(q, rest, rest, on_links) - weight
        found.append(joints.wrenches(on_bodies, of_loops)[..., None])
    return np.concatenate(found, axis=-1)


def _refuse_unbalanced(
    model: Robot, required: Array, passive: Array, wrenches: Array, span: Array
) -> None:
    """Refuse joint forces (..., nv) that the motion requires where nothing drives, and that are
    neither zero nor the passive ones; wrenches (..., joints, 6) and the robot's size (...), m,
    tell what is rounding.
    """
    moment, force = (
        np.linalg.norm(wrenches[..., part], axis=-1).max(axis=-1, keepdims=True)
        for part in (slice(0, 3), slice(3, 6))
    )
    arm = span[..., None] + max(float(np.linalg.norm(body.com)) for body in model.bodies)
    turns = np.array([bool(step.rho) for joint in model.joints for step in joint.steps])
    scale = np.where(turns, moment + force * arm, force) + np.abs(passive)
    missing = np.minimum(np.abs(required), np.abs(required - passive))
    missing[..., list(driven(model).v)] = 0.0
    excess = missing - UNBALANCED * scale
    if not (excess > 0.0).any():
        return
    *state, j = (int(i) for i in np.unravel_index(int(np.nanargmax(excess)), excess.shape))
    where = f" of state {state[0] if len(state) == 1 else tuple(state)}" if state else ""
    unit = "N m" if turns[j] else "N"
    raise StateError(
        f"bearing_forces: {model.velocities[j]!r} of {model.name!r} moves freely, but this "
        f"motion{where} takes {missing[(*state, j)]:.4g} {unit} along it, which nothing gives: "
        "wrenches that acted are missing (wrenches=…), the multipliers are those of another "
        "motion, or a is not that of the forces; r.bearing_forces() of a run has all its loads"
    )
