"""The questions of a model, one state per call, beside Pinocchio's functions that answer them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, sleep
from types import MethodType
from typing import Any, Final

import numpy as np
import pinocchio as pin
from programs import Pinocchio, random_states
from timing import Array, Call

import ramify as rf
from ramify.runtime.kernel import Kernel


@dataclass(frozen=True)
class Asked:
    """A robot in both programs at one state; ``B`` maps our velocities to Pinocchio's."""

    robot: rf.Model
    model: pin.Model
    data: pin.Data
    q: Array
    v: Array
    theirs: tuple[Array, Array]
    B: Array

    @property
    def names(self) -> dict[str, Any]:
        """What the statements of ramify use."""
        return {"m": self.robot, "q": self.q, "v": self.v, "body": self.robot.bodies[-1].name}

    @property
    def peer_names(self) -> dict[str, Any]:
        """What the statements of Pinocchio use."""
        q, v = self.theirs
        last = len(self.robot.bodies)
        return {"pin": pin, "model": self.model, "data": self.data, "q": q, "v": v, "last": last}


def asked(robot: rf.Model, seed: int = 0) -> Asked:
    """A robot at a random state."""
    peer = Pinocchio(robot)
    q, v = (rows[0].copy() for rows in random_states(robot, 1, seed)[:2])
    found = robot.to_pinocchio(q, v)
    axes = robot.to_pinocchio(np.tile(q, (robot.nv, 1)), np.eye(robot.nv)).v
    return Asked(robot, peer.model, peer.data, q, v, (found.q, found.v), axes.T)


def _origins(a: Asked) -> Array:
    outlets = [body.joint.outlet for body in a.robot.bodies]
    return np.array([a.data.oMi[i + 1].act(outlet.position) for i, outlet in enumerate(outlets)])


def _angular_first(J: Array) -> Array:
    return np.vstack([J[3:], J[:3]])


def _jacobian(a: Asked) -> Array:
    J = pin.computeJointJacobian(a.model, a.data, a.theirs[0], len(a.robot.bodies))
    pin.forwardKinematics(a.model, a.data, a.theirs[0])
    outlet = a.robot.bodies[-1].joint.outlet.position
    R = a.data.oMi[len(a.robot.bodies)].rotation
    moved = J[:3] + np.cross(J[3:], outlet, axis=0)
    return np.vstack([R @ J[3:], R @ moved]) @ a.B


def _symmetric(upper: Array) -> Array:
    return np.triu(upper) + np.triu(upper, 1).T


def _inertia(a: Asked) -> Array:
    return a.B.T @ _symmetric(a.data.M) @ a.B


def _inverse(a: Asked) -> Array:
    back = np.linalg.inv(a.B)
    return back @ _symmetric(a.data.Minv) @ back.T


@dataclass(frozen=True)
class Question:
    """Statements of both programs and their answers in our terms; the part of Pinocchio's time that
    ramify may take. ``any_base`` is False where a free base has other terms in Pinocchio.
    """

    text: str
    peer: str
    ours: Callable[[Asked], Array]
    theirs: Callable[[Asked], Array]
    most: float
    any_base: bool = True

    def calls(self, a: Asked) -> dict[str, Call]:
        return {
            "ramify": Call(self.text, a.names, lambda: self.ours(a).ravel()),
            Pinocchio.name: Call(self.peer, a.peer_names, lambda: self.theirs(a).ravel()),
        }


QUESTIONS: Final = {
    "kinematics": Question(
        "m.kinematics(q)",
        "pin.forwardKinematics(model, data, q)",
        lambda a: a.robot.kinematics(a.q).position,
        _origins,
        0.9,
    ),
    "Jacobian": Question(
        "m.jacobian(q, body)",
        "pin.computeJointJacobian(model, data, q, last)",
        lambda a: a.robot.jacobian(a.q, a.robot.bodies[-1].name),
        _jacobian,
        0.5,
    ),
    "energy": Question(
        "m.energy(q, v)",
        "pin.computeKineticEnergy(model, data, q, v); pin.computePotentialEnergy(model, data, q)",
        lambda a: np.array(a.robot.energy(a.q, a.v)),
        lambda a: np.array([a.data.kinetic_energy, a.data.potential_energy]),
        0.5,
    ),
    "momentum": Question(
        "m.momentum(q, v)",
        "pin.computeCentroidalMomentum(model, data, q, v)",
        lambda a: np.concatenate(a.robot.momentum(a.q, a.v)),
        lambda a: np.array(a.data.hg),
        0.5,
    ),
    "centroidal matrix": Question(
        "m.centroidal_momentum_matrix(q)",
        "pin.computeCentroidalMap(model, data, q)",
        lambda a: a.robot.centroidal_momentum_matrix(a.q),
        lambda a: _angular_first(a.data.Ag) @ a.B,
        0.5,
    ),
    "inertia matrix": Question(
        "m.mass_matrix(q)",
        "pin.crba(model, data, q)",
        lambda a: a.robot.mass_matrix(a.q),
        _inertia,
        0.5,
    ),
    "its inverse": Question(
        "m.mass_matrix_inverse(q)",
        "pin.computeMinverse(model, data, q)",
        lambda a: a.robot.mass_matrix_inverse(a.q),
        _inverse,
        0.5,
    ),
    "Coriolis matrix": Question(
        "m.coriolis_matrix(q, v)",
        "pin.computeCoriolisMatrix(model, data, q, v)",
        lambda a: a.robot.coriolis_matrix(a.q, a.v) @ a.v,
        lambda a: a.data.C @ a.theirs[1],
        0.5,
        any_base=False,
    ),
    "UDUᵀ (crba)": Question(
        "m.udu(q)",
        "pin.crba(model, data, q)",
        lambda a: a.robot.udu(a.q).U @ a.robot.udu(a.q).D @ a.robot.udu(a.q).U.T,
        _inertia,
        0.5,
    ),
}


def of(robot: rf.Model) -> dict[str, Question]:
    """The questions that have the same answer in both programs."""
    free = bool(robot.layout.balls)
    return {name: row for name, row in QUESTIONS.items() if row.any_base or not free}


def settle(a: Asked, question: Question, patience: float = 60.0) -> None:
    """Ask until the straight-line code is ready, as a program that runs for a while finds it."""
    start = perf_counter()
    while perf_counter() - start < patience:
        question.ours(a)
        kernels = [k for k in a.robot.memo.values() if isinstance(k, Kernel)]
        if all(k.tier == "unrolled" and not isinstance(k.call, MethodType) for k in kernels):
            return  # each has its straight-line code and its builtin entry
        sleep(0.01)
