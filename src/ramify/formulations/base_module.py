"""The DeNOC matrices of a floating robot with its base as module M0, in the sizes of the book.

Elsewhere a floating base is a run of six links on one axis each, like any other joint of several
degrees of freedom. The book (sections 4.3, 7.1) takes it as one body with the rates of its angles
and of its origin: t_0 = P_0 q'_0, P_0 = [[L_0, 0], [0, 1]]. The matrices are the same but for the
five massless links in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.formulations.denoc import Denoc, Groups, Level
from ramify.formulations.denoc_assembly import assembled, cross_tensor, link_groups
from ramify.formulations.steps import floats
from ramify.kernels.queries import kinematics
from ramify.model.robot import Robot

_BETWEEN = 5
"""Massless links of the base before its body."""


@dataclass(frozen=True, eq=False)
class FloatingDenoc(Denoc):
    """The matrices at one state, all vectors along the world's axes; l links, the base being the
    first, with six of the n rates.

    N_l, M, Omega, E, M_tilde (6 l, 6 l); N_d, N, N_dot (6 l, n); t (6 l); I, C (n, n). Columns are
    in the order of the robot's v, places of the base before its angles; ``P_0`` has the book's
    order.
    """

    @property
    def first(self) -> int:
        return 0

    @property
    def modules(self) -> Groups:
        """The links of each module, M0 = (0,) first."""
        return self.groups

    @property
    def P_0(self) -> Array:
        """(6, 6), [[L_0, 0], [0, 1]]: from the rates of angles and place to the base's twist."""
        return np.concatenate([self.N_d[:6, 3:6], self.N_d[:6, :3]], axis=1)

    @property
    def L_0(self) -> Array:
        """(3, 3): from the rates of the base's Euler angles to its angular velocity."""
        return self.N_d[:3, 3:6]


def floating_denoc(
    model: Robot, q: ArrayLike, v: ArrayLike, level: Level = "module"
) -> FloatingDenoc:
    """The matrices of a robot on one ``free_euler`` base at q (n), v (n).

    Raises ModelError for any other base, for quaternions and for closed loops; StateError for wrong
    shapes.
    """
    if not floats(model):
        root = model.bodies[0].joint
        raise ModelError(
            f"{model.name}: joint {root.name!r} is {root.kind}; module M0 is a base on one "
            "free_euler joint: rf.load(robot, base='free_euler')"
        )
    columns = link_groups(model, level, floating=True)
    d = assembled(model, q, v, level, columns)
    rows = slice(6 * _BETWEEN, None)
    groups = tuple(tuple(k - _BETWEEN for k in group if k >= _BETWEEN) for group in columns)
    W = np.kron(np.eye(len(d.M) // 3 - 2 * _BETWEEN), model.skeleton.root.rotation)
    ground = model.skeleton.root
    origins = d.origins[_BETWEEN:] @ ground.rotation.T + ground.position
    c = origins[0] - kinematics(model, q).position[0]
    T, T_dot = np.eye(len(W)), np.zeros_like(W)  # twists of the base at its own origin
    T[3:6, :3] = cross_tensor(c)
    T_dot[3:6, :3] = cross_tensor(np.cross((W @ d.t[rows])[:3], c))
    back = 2.0 * np.eye(len(W)) - T  # the inverse of T
    N_l = T @ W @ d.N_l[rows, rows] @ W.T @ back
    M = back.T @ W @ d.M[rows, rows] @ W.T @ back
    changed = {
        "groups": groups,
        "N_l": N_l,
        "N_dot": T @ W @ d.N_dot[rows] + T_dot @ W @ d.N[rows],
        "M": M,
        "Omega": W @ d.Omega[rows, rows] @ W.T,
        "E": d.E[rows, rows],
        "M_tilde": N_l.T @ M @ N_l,
        "origins": np.concatenate([origins[:1] - c, origins[1:]]),
    } | {name: T @ W @ getattr(d, name)[rows] for name in ("N_d", "N", "t")}
    return FloatingDenoc(**(vars(d) | changed))
