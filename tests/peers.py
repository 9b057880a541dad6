"""Our robots in Pinocchio, joint types kept: a free joint is a free flyer, a ball joint spherical,
a planar one planar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from random_trees import random_bodies, se3

from ramify.api.model import Model
from ramify.core.arrays import Array
from ramify.model.answers import Attachment
from ramify.model.body import Body
from ramify.model.frame import Frame, align_z
from ramify.model.joint import Joint
from ramify.model.locks import locks


def _whole(joint: Joint, form: str) -> Any:
    """The joint as one of Pinocchio's own, or None: then it is a run of screws there."""
    match joint.kind, form:
        case ("free", _) | ("free_euler", "quaternion"):
            return pin.JointModelFreeFlyer()
        case ("ball", _) | ("spherical", "quaternion"):
            return pin.JointModelSpherical()
        case "revolute", "cos_sin":
            return pin.JointModelRUBZ()
        case "planar", "" | "cos_sin":
            return pin.JointModelPlanar()
    return None


def _screw(axis: tuple[float, float, float], rho: float, eta: float) -> Any:
    u = np.array(axis)
    if rho and eta:
        return pin.JointModelHelicalUnaligned(u, eta)
    return pin.JointModelRevoluteUnaligned(u) if rho else pin.JointModelPrismaticUnaligned(u)


def pinocchio_of(
    model: Model, forms: Mapping[str, str] | None = None, order: Sequence[int] | None = None
) -> pin.Model:
    """The robot in Pinocchio, its bodies added in an order of their own (parents first) where one
    is given.
    """
    peer = pin.Model()
    peer.gravity.linear = np.array(model.gravity)
    ends: dict[int, tuple[int, pin.SE3]] = {-1: (0, pin.SE3.Identity())}
    for b in order if order is not None else range(len(model.bodies)):
        body = model.bodies[b]
        at, place = ends[body.parent]
        place = place * se3(body.joint.placement)
        whole = _whole(body.joint, (forms or {}).get(body.joint.name, ""))
        if whole is not None:
            about_z = whole.shortname() in ("JointModelPlanar", "JointModelRUBZ")
            turned = (
                pin.SE3(align_z(body.joint.axis), np.zeros(3)) if about_z else pin.SE3.Identity()
            )
            at = peer.addJoint(at, whole, place * turned, body.joint.name)
            place = turned.inverse()
        else:
            for i, step in enumerate(body.joint.steps):
                at = peer.addJoint(
                    at,
                    _screw(step.axis, step.rho, step.eta),
                    place,
                    body.joint.name if i == 0 else f"{body.joint.name}.{i}",
                )
                place = pin.SE3.Identity()
        place = place * se3(body.joint.outlet)
        peer.appendBodyToJoint(
            at, pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia)), place
        )
        peer.addFrame(pin.Frame(body.name, at, 0, place, pin.FrameType.OP_FRAME))
        ends[b] = at, place
    return peer


def model_of(bodies: tuple[Body, ...], gravity: Any, name: str = "random") -> Model:
    x, y, z = (float(g) for g in gravity)
    return Model(
        name,
        bodies,
        (x, y, z),
        {body.name: Attachment(i, Frame()) for i, body in enumerate(bodies)},
    )


def random_model(seed: int, kinds: Sequence[str], most: int = 10, root: str = "") -> Model:
    """A repeatable random tree of some kinds of joints, every subtree numbered in one run; ``root``
    is the first joint's kind.
    """
    rng = np.random.default_rng(seed)
    bodies = random_bodies(rng, int(rng.integers(2, most + 1)), True, kinds)
    if root:
        bodies = (random_bodies(rng, 1, True, [root])[0], *bodies[1:])
        bodies = tuple(
            body if body.parent >= 0 or i == 0 else _moved(body) for i, body in enumerate(bodies)
        )
    return model_of(bodies, 6.0 * rng.normal(size=3))


def _moved(body: Body) -> Body:
    """The body on the first one instead of the base."""
    return Body(body.name, 0, body.joint, body.mass, body.com, body.inertia)


def states(model: Model, number: int, seed: int) -> tuple[Array, Array, Array]:
    """Random q, v, a (number, ...); Euler angles stay away from gimbal lock."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random(seed=1000 * seed + i)[0] for i in range(number)])
    for lock in locks(model):
        q[:, lock.place] = (0.0 if lock.half_turns else 0.5 * np.pi) + rng.uniform(
            -0.9, 0.9, size=number
        )
    v, a = rng.normal(size=(2, number, model.nv))
    return q, v, a


def worst(found: Any, wanted: Any) -> float:
    """Largest error relative to the largest entry."""
    f, w = np.asarray(found), np.asarray(wanted)
    return float(np.abs(f - w).max() / max(1.0, float(np.abs(w).max())))
