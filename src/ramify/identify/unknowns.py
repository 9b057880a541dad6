"""The unknowns of an identification in a fixed order: ten numbers of every body, then armature,
viscous damping, Coulomb friction, Stribeck excess and offset of each drive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.names import one_of
from ramify.dynamics.parameters import rate_unit
from ramify.kernels.queries import regressor
from ramify.model.driven import driven
from ramify.model.dynamic_parameters import PER_BODY, dynamic_parameters
from ramify.model.robot import Robot

OF_BODY: Final = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz")
"""How the ten numbers of a body are called: mass, first moments m c, inertia about the origin."""
UNITS_OF_BODY: Final = ("kg", "kg m", "kg m", "kg m", *["kg m^2"] * 6)
FRICTION: Final = ("none", "viscous", "coulomb", "asymmetric", "stribeck")
_AXES: Final = (
    (4, (5, 6, 7, 9, 8), (2, 3, 1)),
    (5, (4, 6, 7, 8, 9), (1, 3, 2)),
    (6, (4, 5, 7, 8, 9), (1, 2, 3)),
)
"""By the axis of a body's joint (x, y, z): its inertia about it, the other inertias, the first
moments across it and along it."""


@dataclass(frozen=True)
class Unknowns:
    """What is identified of a robot: its bodies and, by ``friction`` (one of ``FRICTION``),
    ``rotors`` and ``offsets``, what its drives have.
    """

    robot: Robot
    friction: str = "coulomb"
    rotors: bool = True
    offsets: bool = True

    def __post_init__(self) -> None:
        one_of("friction", self.friction, FRICTION)

    @cached_property
    def drives(self) -> tuple[int, ...]:
        """The places in v of the driven coordinates."""
        return driven(self.robot).v

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What is unknown of each drive."""
        asked = {
            "armature": self.rotors,
            "damping": self.friction != "none",
            "coulomb": self.friction in ("coulomb", "asymmetric", "stribeck"),
            "stribeck": self.friction == "stribeck",
            "offset": self.offsets or self.friction == "asymmetric",
        }
        return tuple(kind for kind, wanted in asked.items() if wanted)

    @cached_property
    def bodies(self) -> int:
        """Numbers of all bodies."""
        return PER_BODY * len(self.robot.bodies)

    @property
    def size(self) -> int:
        return self.bodies + len(self.kinds) * len(self.drives)

    def columns_of(self, kind: str) -> range:
        """The columns of a kind, one per drive; none where it is not unknown."""
        if kind not in self.kinds:
            return range(0)
        count = len(self.drives)
        start = self.bodies + self.kinds.index(kind) * count
        return range(start, start + count)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """``Izz[forearm]``, ``coulomb[elbow]``."""
        of_bodies = [f"{key}[{body.name}]" for body in self.robot.bodies for key in OF_BODY]
        rates = [self.robot.velocities[j] for j in self.drives]
        return (*of_bodies, *(f"{kind}[{name}]" for kind in self.kinds for name in rates))

    @cached_property
    def units(self) -> tuple[str, ...]:
        joints = [joint for joint in self.robot.joints for _ in range(joint.dof)]
        units = {
            "armature": ("kg m^2", "kg"),
            "damping": ("N m s", "N s/m"),
            "coulomb": ("N m", "N"),
            "stribeck": ("N m", "N"),
            "offset": ("N m", "N"),
        }
        of_drives = [rate_unit(joints[j], *units[kind]) for kind in self.kinds for j in self.drives]
        return (*UNITS_OF_BODY * len(self.robot.bodies), *of_drives)

    @cached_property
    def nominal(self) -> Array:
        """The values (size,) of the robot as its file has them; friction and rotors that the file
        does not have are zero, offsets too.
        """
        of_robot = dynamic_parameters(self.robot)
        nv, out = self.robot.nv, np.zeros(self.size)
        out[: self.bodies] = of_robot[: self.bodies]
        for i, kind in enumerate(("armature", "damping", "coulomb")):
            if kind in self.kinds:
                start = self.bodies + i * nv
                out[self.columns_of(kind)] = of_robot[[start + j for j in self.drives]]
        return out

    @cached_property
    def order(self) -> list[int]:
        """The order in which columns are taken as base parameters: from the root to the tip, of a
        body its inertia about the joint's axis first and its mass last; then the drives.
        """
        out: list[int] = []
        for b, body in enumerate(self.robot.bodies):
            axis = body.joint.outlet.rotation.T @ np.asarray(body.joint.axis, dtype=np.float64)
            about, others, moments = _AXES[int(np.argmax(np.abs(axis)))]
            out += [PER_BODY * b + i for i in (about, *others, *moments, 0)]
        return [*out, *range(self.bodies, self.size)]

    def rigid_columns(self, q: Array, v: Array, a: Array) -> Array:
        """(T, nv, 10 nb)."""
        return regressor(self.robot, q, v, a, drives=True)[..., : self.bodies]

    def drive_columns(self, v: Array, a: Array, sign: Array, stribeck: Array) -> Array:
        """(T, nv, drives' unknowns) from values (T, drives) at the drives."""
        rows, count = len(v), len(self.drives)
        values = {
            "armature": a, "damping": v, "coulomb": sign, "stribeck": stribeck,
            "offset": np.ones((rows, count)),
        }  # fmt: skip
        out = np.zeros((rows, self.robot.nv, len(self.kinds), count))
        for i, kind in enumerate(self.kinds):
            out[:, self.drives, i, range(count)] = values[kind]
        return out.reshape(rows, self.robot.nv, -1)


def described(names: Sequence[str], coefficients: Array) -> str:
    """A sum of unknowns: ``Izz[a] + 0.612 m[b] - mx[b]``."""
    terms: list[str] = []
    for name, x in zip(names, coefficients.tolist(), strict=True):
        size = "" if abs(abs(x) - 1.0) < 1e-9 else f"{abs(x):.4g} "
        terms.append(f"{'-' if x < 0.0 else '+'} {size}{name}")
    text = " ".join(terms)
    return text.removeprefix("+ ")
