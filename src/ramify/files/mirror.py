"""The mirror image of a sub-tree: a left leg from a right one.

Reflected in a plane, with S = diag(1, -1, 1) for the plane y = 0, a frame (R, p) becomes (S R S, S
p): the image of its origin and axes, with the axis across the plane turned round so that the frame
stays right-handed. Joints are rebuilt so that, at the same coordinates, the new tree is the image
of the old one: an angle turns the other way, S Rot(u, q) S = Rot(-S u, q), a slide goes along S u.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.model.build import LinkSpec, point_of
from ramify.model.frame import Frame
from ramify.model.joint import Joint

PLANES: Final = {
    "x": np.diag([-1.0, 1.0, 1.0]),
    "y": np.diag([1.0, -1.0, 1.0]),
    "z": np.diag([1.0, 1.0, -1.0]),
}


def mirrored(spec: LinkSpec, plane: str) -> LinkSpec:
    """A link's image in the plane whose normal is named: x, y or z. Raises ModelError for a joint
    that has no image of its type.
    """
    S = PLANES[plane]
    return replace(
        spec,
        joint=_joint(spec.joint, S),
        com=S @ spec.com,
        inertia=S @ spec.inertia @ S,
        shapes=tuple(replace(shape, frame=_frame(shape.frame, S)) for shape in spec.shapes),
        points=tuple((name, point_of(S @ np.array(point))) for name, point in spec.points),
    )


def _frame(frame: Frame, S: Array) -> Frame:
    return Frame(S @ frame.rotation @ S, S @ frame.position)


def _joint(joint: Joint, S: Array) -> Joint:
    image = replace(joint, placement=_frame(joint.placement, S), outlet=_frame(joint.outlet, S))
    n = np.array(joint.axis)
    match joint.kind:
        case "fixed":
            return image
        case "revolute":
            return replace(image, axis=point_of(-S @ n))
        case "prismatic":
            return replace(image, axis=point_of(S @ n))
        case "helical":
            return replace(image, axis=point_of(-S @ n), pitch=-joint.pitch)
        case "universal" | "spherical":
            return _reframed(image, -S)  # takes each axis u to -S u, where its image turns
        case "planar":  # in the plane along S x and S y, about -S n
            return _reframed(image, S @ (np.eye(3) - 2.0 * np.outer(n, n)))
    raise ModelError(
        f"a {joint.kind} joint has no mirror image with the same coordinates; write these links "
        "out without mirror"
    )


def _reframed(joint: Joint, T: Array) -> Joint:
    """A joint of equal motion whose axes are turned by T."""
    return replace(joint, placement=joint.placement @ Frame(T), outlet=Frame(T.T) @ joint.outlet)
