"""Open chains as Quinn and Chang see them: a frame on each body at its joint, and joints of one,
two or three turning freedoms.

R. D. Quinn and R. Y. K. Chang, Dynamics of open-chained systems of rigid bodies (1991); equation
numbers are theirs. The quasi- coordinates are such that their rates are angular velocities in body
axes: omega of a body itself ("inertial"), Omega of a body as seen from its carrier ("relative").
Beside their turning joints, a joint here may slide along axes of its carrier: the first joint's
slides are the moving base R of (22a), those of later joints are our extension, at no change of the
equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.core.errors import ModelError
from ramify.core.scalar import Scalar, cos, sin
from ramify.core.spatial import Mat3, Sym3, Vec3
from ramify.formulations.chain import ORIGIN, Chain, branches, check_column, refuse_machines
from ramify.model.joint import Step
from ramify.model.robot import Robot
from ramify.model.skeleton import rigid_inertia

ONE = Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class QuasiBody:
    """Constants of body i. Its frame is fixed to it at joint i; at q = 0 it lies at rotation K and
    place L in the carrier's frame.

    ``m`` is its mass, ``S`` its first and ``I`` its second moment about joint i (7).
    """

    K: Mat3
    L: Vec3
    steps: tuple[Step, ...]
    m: float
    S: Vec3
    I: Sym3  # noqa: E741 - the paper's symbol

    @property
    def nq(self) -> int:
        """Coordinates of its joint: one each, four for a quaternion."""
        return sum(len(step.positions) for step in self.steps)


@dataclass(frozen=True)
class QuasiChain:
    """Bodies in series; ``gravity`` is an acceleration in the inertial frame N."""

    bodies: tuple[QuasiBody, ...]
    gravity: Vec3


@dataclass(slots=True)
class JointMotion:
    """Joint i at a state. In the carrier's frame: C_{i-1,i}, place L, slide rate u and its rate du,
    columns E with u = E alpha'.

    In the body's: relative angular velocity Omega and its rate dOmega, columns D with Omega = D
    alpha' (28), (33).
    """

    C: Mat3
    L: Vec3
    u: Vec3
    du: Vec3
    E: list[Vec3]
    Omega: Vec3
    dOmega: Vec3
    D: list[Vec3]


def product(a: Mat3, b: Mat3) -> Mat3:
    """a b."""
    return Mat3.from_columns(*(a @ column for column in b.columns))


def product_transposed(a: Mat3, b: Mat3) -> Mat3:
    """a' b: of two orientations, the one of b as seen from a."""
    return Mat3.from_columns(*(a.transposed_times(column) for column in b.columns))


def turn(axis: Vec3, c: Scalar, s: Scalar) -> Mat3:
    """The rotation about a constant unit axis, cosine c and sine s; exact about x, y and z."""
    x, y, z = axis.x, axis.y, axis.z
    xy, xz, yz = (k * (1.0 - c) if k else 0.0 for k in (x * y, x * z, y * z))
    return Mat3(
        x * x + c * (1.0 - x * x), xy - s * z, xz + s * y,
        xy + s * z, y * y + c * (1.0 - y * y), yz - s * x,
        xz - s * y, yz + s * x, z * z + c * (1.0 - z * z),
    )  # fmt: skip


def turn_by_quaternion(w: Scalar, x: Scalar, y: Scalar, z: Scalar) -> Mat3:
    """The rotation of a quaternion of any length, w first."""
    k = 2.0 / (w * w + x * x + y * y + z * z)
    return Mat3(
        1.0 - k * (y * y + z * z), k * (x * y - w * z), k * (x * z + w * y),
        k * (x * y + w * z), 1.0 - k * (x * x + z * z), k * (y * z - w * x),
        k * (x * z - w * y), k * (y * z + w * x), 1.0 - k * (x * x + y * y),
    )  # fmt: skip


def joint_motion(
    body: QuasiBody, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]
) -> JointMotion:
    """(28), (33): freedom after freedom. A ball joint has D = 1: its rates are the relative
    quasi-velocities themselves.
    """
    C, L, u, du, Omega, dOmega = body.K, body.L, ORIGIN, ORIGIN, ORIGIN, ORIGIN
    D: list[Vec3] = []
    E: list[Vec3] = []
    place = 0
    for step, rate, acceleration in zip(body.steps, v, a, strict=True):
        axis = Vec3(*step.axis)
        x = q[place : place + len(step.positions)]
        place += len(step.positions)
        if step.ball == 1 or (step.rho and not step.ball):
            R = turn_by_quaternion(*x) if step.ball else turn(axis, cos(x[0]), sin(x[0]))
            C, Omega, dOmega = product(C, R), R.transposed_times(Omega), R.transposed_times(dOmega)
            D = [R.transposed_times(column) for column in D]
        if step.rho:
            spin = axis * rate
            if not step.ball:
                dOmega = dOmega + Omega.cross(spin)
            Omega, dOmega = Omega + spin, dOmega + axis * acceleration
        along = body.K @ (axis * step.eta)
        if step.eta:
            L, u, du = L + along * x[0], u + along * rate, du + along * acceleration
        D.append(axis * step.rho)
        E.append(along)
    return JointMotion(C, L, u, du, E, Omega, dOmega, D)


def joint_motions(
    chain: QuasiChain, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]
) -> list[JointMotion]:
    """The motion of every joint, from the coordinates of the whole chain."""
    out: list[JointMotion] = []
    i = k = 0
    for body in chain.bodies:
        n, dof = body.nq, len(body.steps)
        out.append(joint_motion(body, q[i : i + n], v[k : k + dof], a[k : k + dof]))
        i, k = i + n, k + dof
    return out


def quasi_chain_of(model: Robot, **state: Sequence[Scalar]) -> QuasiChain:
    """The chain of a serial model, any of its joints.

    ModelError where it branches or has loops, StateError for columns that are not as many scalars.
    """
    refuse_machines(model)
    bodies = []
    for i, body in enumerate(model.bodies):
        joint, outlet = body.joint, body.joint.outlet
        if body.parent != i - 1:
            raise branches(model, joint.name)
        seat = model.bodies[i - 1].joint.outlet @ joint.placement if i else joint.placement
        _check_slides(model.name, joint.name, joint.steps)
        tensor = outlet.rotation @ body.inertia @ outlet.rotation.T
        M = rigid_inertia(body.mass, outlet.rotation @ body.com + outlet.position, tensor)
        K, L = Mat3(*seat.rotation.ravel().tolist()), Vec3(*seat.position.tolist())
        bodies.append(QuasiBody(K, L, joint.steps, float(body.mass), M.h, M.I))
    for name, column in state.items():
        check_column(name, column, model.nq if name == "q" else model.nv, model.name)
    return QuasiChain(tuple(bodies), Vec3(*map(float, model.gravity)))


def _check_slides(robot: str, name: str, steps: Sequence[Step]) -> None:
    """A slide keeps its direction in the carrier: before any turn, or along the only axis."""
    turned: list[tuple[float, float, float]] = []
    for step in steps:
        if step.eta and any(axis != step.axis for axis in turned):
            raise ModelError(
                f"{robot}: joint {name!r} slides along an axis that it has turned; this "
                "formulation has no such joint"
            )
        if step.rho:
            turned.append(step.axis)


def general_quasi_chain(chain: Chain) -> QuasiChain:
    """A chain of Denavit-Hartenberg links as a quasi-chain: K = Rx(beta) Rz(theta at q = 0), its
    joints turn about or slide along z.
    """
    bodies = []
    for link in chain.links:
        c, s = link.beta.c, link.beta.s
        ct, st = link.theta0.c, link.theta0.s
        K = Mat3(ct, -st, 0.0, c * st, c * ct, -s, s * st, s * ct, c)
        step = Step("q", (0.0, 0.0, 1.0), float(link.rotational), float(not link.rotational))
        h, d = link.c * link.m, link.c
        x = Mat3.steiner(h, d)
        second = link.I + Sym3(x.xx, x.yy, x.zz, x.xy, x.xz, x.yz)
        bodies.append(QuasiBody(K, link.o.rotate_x(c, s), (step,), link.m, h, second))
    return QuasiChain(tuple(bodies), chain.gravity)
