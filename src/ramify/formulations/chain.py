"""Serial chains as the papers of the composite-body methods see them: one frame per joint, its z
axis on the joint's.

Frame i lies in frame i - 1 at the rotation Rx(beta) Rz(theta) with its origin at Rx(beta) [b, y,
d]. These are the modified Denavit-Hartenberg frames (Lin's "normal driving-axis" ones), where y is
zero; it is kept for axes that are nearly parallel, whose common normal is too far away to be used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ramify.core.errors import ModelError, StateError
from ramify.core.records import flatten, rebuild
from ramify.core.scalar import Scalar, cos, number, sin
from ramify.core.spatial import Sym3, Vec3
from ramify.formulations.counting.tally import stored
from ramify.model.link import Link, Turn
from ramify.model.robot import Robot, the_robot

ORIGIN = Vec3(0.0, 0.0, 0.0)
Z = Vec3(0.0, 0.0, 1.0)
Record = TypeVar("Record")


@dataclass(frozen=True)
class ChainLink:
    """Constants of a link: kind of its joint, DH constants, mass m, mass centre c and inertia
    tensor I about it, in its frame.

    ``theta0`` is the joint's angle at q = 0 and ``o`` the origin [b, y, d] at q = 0, seen from the
    parent's frame turned by beta.
    """

    rotational: bool
    beta: Turn
    theta0: Turn
    o: Vec3
    m: float
    c: Vec3
    I: Sym3  # noqa: E741 - the paper's symbol

    def theta(self, q: Scalar) -> Turn:
        """The joint's angle at coordinate q."""
        if not self.rotational:
            return self.theta0
        c, s = cos(q), sin(q)
        c0, s0 = self.theta0.c, self.theta0.s
        return Turn(c * c0 - s * s0, s * c0 + c * s0)

    def offset(self, q: Scalar) -> Vec3:
        """[b, y, d] at coordinate q."""
        return self.o if self.rotational else Vec3(self.o.x, self.o.y, self.o.z + q)


@dataclass(frozen=True)
class Chain:
    """A serial robot of revolute and prismatic joints; ``gravity`` acts in frame 0, at rest."""

    links: tuple[ChainLink, ...]
    gravity: Vec3

    @property
    def first(self) -> int:
        """Index of the first rotational joint, the paper's N_JR - 1; n where there is none."""
        return next((i for i, link in enumerate(self.links) if link.rotational), len(self.links))

    @property
    def composite_masses(self) -> list[float]:
        """m^_j: mass of link j and all it carries (Lin 1991, eq. 28)."""
        return [sum(link.m for link in self.links[j:]) for j in range(len(self.links))]


def refuse_loops(model: Robot) -> None:
    """ModelError for a robot with closed loops, whose equations are not those of its tree alone."""
    the_robot(model)
    if model.loops:
        raise ModelError(
            f"{model.name} has closed loops, which this formulation leaves out; ask for the robot "
            "with its loops opened, m.tree"
        )


def refuse_machines(model: Robot) -> None:
    """ModelError where a model has loops or rotors: the documents' formulations have neither."""
    refuse_loops(model)
    for joint in model.joints:
        if any(joint.armature):
            raise ModelError(
                f"{model.name}: joint {joint.name!r} has a rotor, and this formulation is of rigid "
                "links alone; set its armature to 0, or ask the model itself"
            )


def refuse_quaternions(model: Robot) -> None:
    """ModelError for a robot whose rates are not those of its coordinates."""
    if model.skeleton.balls:
        raise ModelError(
            f"{model.name} has a joint with a quaternion; load it with base='free_euler', or use a "
            "spherical joint"
        )


def branches(model: Robot, joint: str) -> ModelError:
    text = f"{model.name} branches at {joint!r}; this formulation is for serial robots"
    return ModelError(text)


def chain_of(model: Robot, **state: Sequence[Scalar]) -> Chain:
    """The chain of a model; ModelError where it branches, has loops or a joint other than revolute
    and prismatic ones.

    StateError where a column of ``state`` (q, v ...) has not one scalar per joint: see
    ``check_column``.

    A joint of several degrees of freedom that is a run of such joints (universal, spherical,
    ``free_euler`` ...) will do.
    """
    refuse_machines(model)
    skeleton = model.skeleton
    for k, (parent, link) in enumerate(zip(skeleton.parents, skeleton.links, strict=True)):
        name = model.velocities[k]
        if parent != k - 1:
            raise branches(model, name)
        if skeleton.ball[k] or (link.p.rho, link.p.eta) not in ((1.0, 0.0), (0.0, 1.0)):
            raise ModelError(
                f"{model.name}: {name!r} is neither revolute nor prismatic; this formulation has "
                "no other joints"
            )
    for name, column in state.items():
        check_column(name, column, model.nv, model.name)
    gravity = Vec3(*(skeleton.root.rotation.T @ model.gravity).tolist())
    return Chain(tuple(map(chain_link, skeleton.links)), gravity)


def check_column(name: str, column: Sequence[Scalar], n: int, robot: str) -> None:
    """StateError, naming the entry, where a column (q, v ...) of a state is not n scalars.

    A scalar is a finite number, a symbol or any other object that computes (``Expr``, ``Counted``
    ...), or an array that holds one entry for each state of a batch: ``list(q.T)`` for q (batch,
    n). An array (batch, n) by itself would be read row for column.
    """
    if isinstance(column, np.ndarray) and column.ndim != 1:
        batch = f"; for a batch give a list of its columns, list({name}.T)"
        shape = f"{column.shape}; {robot} takes ({n},){batch if column.ndim == 2 else ''}"
        raise StateError(f"{name} has shape {shape}")
    listed = hasattr(column, "__len__") and hasattr(column, "__getitem__")
    if not listed or isinstance(column, (str, bytes, dict)):
        found = "a dictionary" if isinstance(column, dict) else f"{column!r:.60}"
        raise StateError(f"{name} is {found}; {robot} takes a list of {n} scalars")
    if len(column) != n:
        raise StateError(f"{name} has {len(column)} entries; {robot} takes {n}")
    for i, x in enumerate(column):
        if x is None or isinstance(x, (str, bytes, list, tuple, dict, set)):
            raise StateError(f"{name}[{i}] is {x!r:.60}, which is not a scalar")
        if isinstance(x, (float, complex, np.inexact)) and not np.isfinite(x):
            raise StateError(f"{name}[{i}] is {x}, which is not finite")
        if isinstance(x, np.ndarray) and x.dtype != object:
            if x.dtype.kind not in "fiubc":
                raise StateError(f"{name}[{i}] is an array of {x.dtype}, not of numbers")
            for place in np.argwhere(~np.isfinite(x)).tolist():
                at = f"{x[tuple(place)]} at {place} of its batch"
                raise StateError(f"{name}[{i}] is {at}, which is not finite")
    shapes = {x.shape for x in column if isinstance(x, np.ndarray) and x.ndim}
    if len(shapes) > 1:
        different = ", ".join(map(str, sorted(shapes)))
        raise StateError(f"{name} has batches of different shapes: {different}")


def chain_link(link: Link) -> ChainLink:
    """A link of the skeleton as one of a chain: its moments taken about the mass centre."""
    m, h, I = number(link.M.m), link.M.h, link.M.I  # noqa: E741
    c = h * (1.0 / m) if m > 0.0 else ORIGIN
    xx, yy, zz = h.x * c.x, h.y * c.y, h.z * c.z
    products = I.xy + h.x * c.y, I.xz + h.x * c.z, I.yz + h.y * c.z
    central = Sym3(I.xx - (yy + zz), I.yy - (xx + zz), I.zz - (xx + yy), *products)
    o = link.r0.rotate_x(link.alpha.c, -link.alpha.s)
    return ChainLink(link.p.rho == 1.0, link.alpha, link.theta0, o, m, c, central)


def general_chain(n: int, joints: str = "") -> Chain:
    """A chain of n joints ("R" or "P" each, by default all R). No constant is 0 or 1 but y, and the
    angle of a revolute joint at q = 0; that of a prismatic joint is a DH constant like the others.
    """
    links = []
    for i, kind in enumerate(joints or "R" * n):
        k = 0.1 * (i + 1)
        beta, m = Turn(math.cos(0.7 + k), math.sin(0.7 + k)), 1.5 + k
        # steps that meet neither 0 nor 1, however long the chain
        c = Vec3(0.11 + k, 0.07 + 0.021 * k, 0.05 + 0.011 * k)
        I = Sym3(0.31 + k, 0.42 + k, 0.53 + k, 0.011, 0.012, 0.013)  # noqa: E741
        turns = kind == "R"
        theta0 = Turn(1.0, 0.0) if turns else Turn(math.cos(0.4 + k), math.sin(0.4 + k))
        links.append(ChainLink(turns, beta, theta0, Vec3(0.35 + k, 0.0, 0.15 + k), m, c, I))
    return Chain(tuple(links), Vec3(1.7, 2.9, -9.2))


@dataclass(frozen=True)
class Rotation:
    """The rotation between frame i - 1 and frame i: cosines and sines of theta (c, s) and beta, and
    the four products of them.

    Outward, from the parent's frame to the link's, its matrix has the rows [c, cb s, sb s], [-s, cb
    c, sb c], [0, -sb, cb].
    """

    c: Scalar
    s: Scalar
    cb: Scalar
    sb: Scalar
    cb_s: Scalar
    sb_s: Scalar
    cb_c: Scalar
    sb_c: Scalar

    @property
    def axis(self) -> Vec3:
        """The parent's z axis seen from the link's frame."""
        return Vec3(self.sb_s, self.sb_c, self.cb)

    def outward(self, u: Vec3) -> Vec3:
        """A vector of the parent's frame, seen from the link's: 8M 4A."""
        w = self.cb * u.y + self.sb * u.z
        return Vec3(
            self.c * u.x + self.s * w, self.c * w - self.s * u.x, self.cb * u.z - self.sb * u.y
        )

    def outward_flat(self, x: Scalar, y: Scalar) -> Vec3:
        """``outward`` of [x, y, 0]: 5M 2A."""
        return Vec3(self.c * x + self.cb_s * y, self.cb_c * y - self.s * x, -(self.sb * y))

    def inward(self, u: Vec3) -> Vec3:
        """A vector of the link's frame, seen from the parent's: 8M 4A."""
        w = self.s * u.x + self.c * u.y
        return Vec3(
            self.c * u.x - self.s * u.y, self.cb * w - self.sb * u.z, self.sb * w + self.cb * u.z
        )

    def similarity(self, J: Sym3) -> Sym3:
        """A tensor of the link's frame, seen from the parent's: 37M 19A.

        Row by row: k is the first row of R J and w what theta alone makes of the second; beta then
        mixes w with the third row of J.
        """
        c, s, cb, sb = self.c, self.s, self.cb, self.sb
        k = Vec3(c * J.xx - s * J.xy, c * J.xy - s * J.yy, c * J.xz - s * J.yz)
        w = Vec3(s * J.xx + c * J.xy, s * J.xy + c * J.yy, s * J.xz + c * J.yz)
        k2 = Vec3(cb * w.x - sb * J.xz, cb * w.y - sb * J.yz, cb * w.z - sb * J.zz)
        first, second = s * k.x + c * k.y, s * k2.x + c * k2.y
        zz = (sb * sb) * (s * w.x + c * w.y) + (2.0 * sb * cb) * w.z + (cb * cb) * J.zz
        products = cb * first - sb * k.z, sb * first + cb * k.z, sb * second + cb * k2.z
        return Sym3(c * k.x - s * k.y, cb * second - sb * k2.z, zz, *products)

    def corner(self, J: Sym3) -> Scalar:
        """The (3, 3) entry of ``similarity``: 12M 8A."""
        return (J @ self.axis).dot(self.axis)


def rotations(chain: Chain, q: Sequence[Scalar]) -> list[Rotation]:
    """The rotations of all joints: 4M for each rotational one, beside its sine and cosine."""
    out = []
    for link, qi in zip(chain.links, q, strict=True):
        theta, cb, sb = link.theta(qi), link.beta.c, link.beta.s
        c, s = theta.c, theta.s
        out.append(Rotation(c, s, cb, sb, cb * s, sb * s, cb * c, sb * c))
    return out


def axes_seen_outward(chain: Chain, R: Sequence[Rotation]) -> list[list[Vec3]]:
    """u[j][i]: axis of joint j in frame i, for i >= j (Lin 1991, eq. 24)."""
    n = len(chain.links)
    u: list[list[Vec3]] = []
    for j in range(n):
        row = [ORIGIN] * j + [Z]
        for i in range(j + 1, n):
            row.append(in_store(R[i].axis, R[i].c) if i == j + 1 else R[i].outward(row[-1]))
        u.append(row)
    return u


def in_store(record: Record, like: Scalar) -> Record:
    """A record whose constants are kept among run-time numbers such as ``like``, see ``stored``."""
    return rebuild(record, iter([stored(x, like) for x in flatten(record)]))
