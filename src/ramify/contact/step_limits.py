"""Whether a fixed step is short enough for the damping of a ground on light links, and whether a
start is outside of it.
"""

from __future__ import annotations

import numpy as np

from ramify.contact.robot_on_ground import ContactText
from ramify.contact.touching_points import warn_of_passing_shapes
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.spatial import Vec3
from ramify.core.warning import warn
from ramify.dynamics.closure import reach
from ramify.kernels.make import kernel
from ramify.kernels.queries import jacobian

_FEW = 4
_MANY = 4096  # states whose start is looked at
_SAME_FLOOR = 1e-6  # m


def damping_rate(contact: ContactText, q: Array) -> float:
    """1/s: the fastest decay that the ground's damping causes at the postures q (states, nq), with
    all points in the ground.

    The largest eigenvalue of I^-1 sum c J' J, J being the upward velocity of a point by the joint
    rates. Zero for a law without constant damping.
    """
    model, c = contact.model, contact.ground.constant_damping
    if not c:
        return 0.0
    up = np.array(contact.ground.terrain.axes[2])
    fastest = 0.0
    for row in q[:_FEW]:
        points = zip(contact.bodies, contact.places, strict=True)
        J = np.stack([up @ jacobian(model, row, body, place)[3:] for body, place in points])
        rates = np.linalg.eigvalsh(c * (J @ kernel(model, "mass_matrix_inverse")(row) @ J.T))
        fastest = max(fastest, float(rates[-1]))
    return fastest


def warn_of_long_steps(
    contact: ContactText, q: Array, method: str, step: float, limit: float
) -> None:
    """Warn where a fixed step is too long for the ground: the motion would chatter on it, or blow
    up. ``limit``: the largest step times rate at which the method damps instead of growing (along
    the negative real axis).
    """
    try:
        rate = damping_rate(contact, q)
    except RamifyError:  # a posture that has no answer is reported by the run itself
        return
    if step * rate > limit:
        warn(
            f"{method} in steps of {step:g} s is too coarse for this ground: its damping on the "
            f"links of {contact.model.name!r} "
            f"decays at {rate:.3g} 1/s, which needs steps below {limit / rate:.2g} s, "
            "less damping, or an adaptive method",
            RuntimeWarning,
        )


def warn_of_start_in_ground(contact: ContactText, q: Array) -> None:
    """Warn where a robot starts so deep in the ground, q (states, nq), that its springs would throw
    it up by more than the length of a link; of shapes that pass through the ground; and where the
    robot's world has another floor.
    """
    warn_of_passing_shapes(contact.model)
    _warn_of_another_floor(contact)
    model, rows = contact.model, q[:_MANY]
    weight = model.mass * float(np.linalg.norm(model.gravity))
    if not (len(rows) and contact.size and weight):
        return
    with np.errstate(all="ignore"):
        _, felt, _ = contact.reactions(list(rows.T), [0.0] * model.nv)
    depth, stored = (
        np.array([np.broadcast_to(np.asarray(x, dtype=np.float64), len(rows)) for x in part])
        for part in ([r.depth for r in felt], [r.stored for r in felt])
    )
    height = stored.sum(axis=0) / weight
    worst = int(np.argmax(height))
    if height[worst] > reach(model):
        deepest = int(np.argmax(depth[:, worst]))
        which = f" in state {worst}" if len(rows) > 1 else ""
        warn(
            f"{model.name!r} starts inside the ground{which}: {contact.names[deepest]!r} is "
            f"{depth[deepest, worst]:.3g} m deep, and the ground would throw the robot up by "
            f"{height[worst]:.2g} m; raise its start",
            RuntimeWarning,
        )


def _warn_of_another_floor(contact: ContactText) -> None:
    """Warn where no plane of the robot's world is the ground's."""
    terrain, model = contact.ground.terrain, contact.model
    planes = [shape for shape in model.collisions.world if shape.kind == "plane"]
    for plane in planes:
        across = plane.frame.rotation @ np.diag([1.0, 1.0, 0.0])
        places = plane.frame.position + np.concatenate([np.zeros((1, 3)), across.T, -across.T])
        depths = [terrain.under(Vec3(*place))[0] for place in places.tolist()]
        if max(abs(float(np.asarray(depth))) for depth in depths) < _SAME_FLOOR:
            return
    if planes:
        height = float(planes[0].frame.position @ np.array(terrain.axes[2]))
        warn(
            f"{model.name!r} has a plane in its world, {height:.3g} m high, which is not the "
            "ground of this run: its terrain counts; give terrain=, e.g. "
            f"rf.contact.Flat(height={height:.3g})",
            RuntimeWarning,
        )
