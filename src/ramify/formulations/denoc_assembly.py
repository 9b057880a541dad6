"""The DeNOC matrices of a robot at a state, written out: for teaching, and as an independent check
on the recursions.

Vectors are taken in the axes of the base frame, twists at the joint origins (the book's
joint-origin form), so that every equation of chapters 4 and 5 holds as printed and a rate is a
plain time derivative. A block of six rows belongs to a link on one screw; a joint of several
degrees of freedom is a run of such links, all but the last massless (chapter 3).

At *link* level N_l holds the twist propagation of every pair of links and N_d the axes. At *module*
level N_l passes a twist from the last link of a module to all links beyond, and N_d holds the
motion of each module as seen from its own base. Their product is the same.

A floating base is a run of six links on one axis each, like any other joint of several degrees of
freedom. The book (sections 4.3, 7.1) takes it as one body, module M0, with the rates of its angles
and of its origin: t_0 = P_0 q'_0, P_0 = [[L_0, 0], [0, 1]]. ``floating_denoc`` does so: its
matrices are the same but for the five massless links in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.core.names import one_of
from ramify.core.spatial import Vec3
from ramify.formulations.chain import refuse_machines, refuse_quaternions
from ramify.formulations.denoc import Denoc, Groups, Level, rows_of, state_column
from ramify.kernels.queries import kinematics
from ramify.model.link import Link
from ramify.model.robot import Robot, the_robot

_BETWEEN = 5
"""Massless links of a floating base before its body."""


def cross_tensor(u: Array) -> Array:
    """The cross-product tensor u x 1 (5.3)."""
    return np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])


@dataclass
class _LinkState:
    """A link in base axes: rotation, joint axis, origin, angular velocity, speed of the origin."""

    R: Array
    e: Array
    o: Array
    w: Array
    v: Array
    s: Array
    """From the origin to that of the link's own frame, which may have slid along the axis."""


def denoc_matrices(model: Robot, q: ArrayLike, v: ArrayLike, level: Level = "link") -> Denoc:
    """The DeNOC matrices at q (n), v (n), for links or for the modules of the model.

    ModelError for joints with quaternions (``ball``, ``free``): use their Euler-angle kin; and for
    closed loops. StateError for wrong shapes and numbers that are not finite.
    """
    return assembled(model, q, v, level, link_groups(model, level))


def assembled(model: Robot, q: ArrayLike, v: ArrayLike, level: Level, groups: Groups) -> Denoc:
    """The DeNOC matrices for any groups of links that each form a chain, in the order of links."""
    refuse_machines(model)
    refuse_quaternions(model)
    skeleton = model.skeleton
    n = len(skeleton.links)
    rates = state_column(v, n, "v")
    links = _sweep(model, state_column(q, n, "q"), rates)
    owner = {k: g for g, group in enumerate(groups) for k in group}
    above = tuple(owner.get(skeleton.parents[group[0]], -1) for group in groups)

    N_l, dN_l, N_d, dN_d = _link_level(skeleton.links, skeleton.parents, links)
    if any(len(group) > 1 for group in groups):
        N_l, dN_l, N_d, dN_d = _module_level(N_l, dN_l, N_d, dN_d, groups, above)
    N, N_dot = N_l @ N_d, dN_l @ N_d + N_l @ dN_d
    M = _diagonal([_mass(link, x) for link, x in zip(skeleton.links, links, strict=True)])
    Omega = _diagonal([cross_tensor(x.w) for x in links for _ in range(2)])
    E = np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0] * n)
    rho = np.tile(np.concatenate([np.zeros(3), -skeleton.root.rotation.T @ model.gravity]), n)
    I, C = N.T @ M @ N, N.T @ (M @ N_dot + Omega @ M @ E @ N)  # noqa: E741
    return Denoc(
        model.name, level, groups, groups, above, tuple(model.velocities),
        N_l, N_d, N, N_dot, N @ rates, M, Omega, E, I, C, N.T @ M @ rho, N_l.T @ M @ N_l,
        rates, np.array([x.o for x in links]),
    )  # fmt: skip


def _diagonal(blocks: Sequence[Array]) -> Array:
    """Square blocks on the diagonal."""
    n, k = len(blocks), len(blocks[0])
    out = np.zeros((n, k, n, k))
    out[range(n), :, range(n)] = blocks
    return out.reshape(n * k, n * k)


def _array(u: Vec3) -> Array:
    return np.array([u.x, u.y, u.z], dtype=np.float64)


def module_bodies(model: Robot, floating: bool = False) -> tuple[list[tuple[int, ...]], list[int]]:
    """Bodies and carrier (-1: none) of every module; with ``floating`` the base is a module of its
    own even where it carries one branch only.
    """
    bodies = [tuple(module.bodies) for module in model.modules]
    carriers = [module.parent for module in model.modules]
    if floating and len(bodies[0]) > 1:
        bodies = [bodies[0][:1], bodies[0][1:], *bodies[1:]]
        carriers = [-1, 0, *(carrier + 1 for carrier in carriers[1:])]
    return bodies, carriers


def link_groups(model: Robot, level: Level, floating: bool = False) -> Groups:
    """The links of each group: one by one, or those of all bodies of a module; with ``floating``
    the six of the base are the first group.
    """
    the_robot(model)
    one_of("level", level, ("link", "module"), ModelError)
    if level == "link":
        base = 6 if floating else 0
        return ((*range(base),),) * floating + tuple((k,) for k in range(base, model.nv))
    ends = np.cumsum([0] + [body.joint.dof for body in model.bodies]).tolist()
    return tuple(
        tuple(k for b in group for k in range(ends[b], ends[b + 1]))
        for group in module_bodies(model, floating)[0]
    )


def shared_origins(model: Robot) -> list[bool]:
    """Of every link, whether it turns about the origin of the link before it in the same joint."""
    turns = [link.p.eta == 0.0 for link in model.skeleton.links]
    first = {0, *np.cumsum([body.joint.dof for body in model.bodies]).tolist()}
    return [turn and k not in first for k, turn in enumerate(turns)]


def _sweep(model: Robot, q: Array, v: Array) -> list[_LinkState]:
    """Where the links are and how they move: twists by (4.2), link after link."""
    out: list[_LinkState] = []
    zero = np.zeros(3)
    base = _LinkState(np.eye(3), zero, zero, zero, zero, zero)
    skeleton, shared = model.skeleton, shared_origins(model)
    for k, (link, parent) in enumerate(zip(skeleton.links, skeleton.parents, strict=True)):
        A = link.propagation(link.displacement(float(q[k])))
        above = base if parent < 0 else out[parent]
        turn = np.column_stack([_array(A.inward(Vec3(*axis))) for axis in np.eye(3).tolist()])
        R, r = above.R @ turn, above.s + above.R @ _array(A.r)
        e = R[:, 2]
        w = above.w + link.p.rho * v[k] * e
        if shared[k]:
            out.append(_LinkState(R, e, above.o, w, above.v, r))
        else:
            speed = above.v + np.cross(above.w, r) + link.p.eta * v[k] * e
            out.append(_LinkState(R, e, above.o + r, w, speed, zero))
    return out


def _mass(link: Link, x: _LinkState) -> Array:
    """M of a link (5.6): inertia tensor about the joint origin, first moment m d, mass."""
    m, I = link.M.m, link.M.I  # noqa: E741
    tensor = np.array([[I.xx, I.xy, I.xz], [I.xy, I.yy, I.yz], [I.xz, I.yz, I.zz]])
    moment = cross_tensor(x.R @ _array(link.M.h))
    own = np.block([[x.R @ tensor @ x.R.T, moment], [-moment, m * np.eye(3)]])
    slid = np.eye(6)
    slid[3:, :3] = -cross_tensor(x.s)
    return np.asarray(slid.T @ own @ slid, dtype=np.float64)


def _link_level(
    constants: Sequence[Link], parents: Sequence[int], links: Sequence[_LinkState]
) -> tuple[Array, Array, Array, Array]:
    """N_l, its rate, N_d, its rate (4.3): A = [[1, 0], [a x 1, 1]], a from a link's origin to its
    carrier's, p = [rho e; eta e].
    """
    n = len(links)
    N_l, N_d = np.eye(6 * n), np.zeros((6 * n, n))
    dN_l, dN_d = np.zeros_like(N_l), np.zeros_like(N_d)
    for k, (link, x) in enumerate(zip(constants, links, strict=True)):
        j, rows = parents[k], slice(6 * k, 6 * k + 6)
        while j >= 0:
            corner = np.s_[6 * k + 3 : 6 * k + 6, 6 * j : 6 * j + 3]
            N_l[rows, 6 * j : 6 * j + 6] = np.eye(6)
            N_l[corner] = cross_tensor(links[j].o - x.o)
            dN_l[corner] = cross_tensor(links[j].v - x.v)
            j = parents[j]
        screw = np.array([link.p.rho, link.p.eta])
        N_d[rows, k], dN_d[rows, k] = np.kron(screw, x.e), np.kron(screw, np.cross(x.w, x.e))
    return N_l, dN_l, N_d, dN_d


def _module_level(
    N_l: Array, dN_l: Array, N_d: Array, dN_d: Array, groups: Groups, parents: Sequence[int]
) -> tuple[Array, Array, Array, Array]:
    """N_l, N_d and their rates for modules: A- has only the column of a module's last link,
    N- is the NOC of each module alone (4.22).
    """
    out_l, rate_l = np.eye(len(N_l)), np.zeros_like(N_l)
    out_d, rate_d = np.zeros_like(N_d), np.zeros_like(N_d)
    for g, group in enumerate(groups):
        rows = rows_of(group)
        own, joints = np.ix_(rows, rows), np.ix_(rows, group)
        out_d[joints] = N_l[own] @ N_d[joints]
        rate_d[joints] = dN_l[own] @ N_d[joints] + N_l[own] @ dN_d[joints]
        h = parents[g]
        while h >= 0:
            last = np.ix_(rows, rows_of(groups[h][-1:]))
            out_l[last], rate_l[last] = N_l[last], dN_l[last]
            h = parents[h]
    return out_l, rate_l, out_d, rate_d


# ---- a floating base as module M0 ----


def has_euler_floating_base(model: Robot) -> bool:
    """Whether a robot is one tree on a floating base with Euler angles."""
    the_robot(model)
    roots = [body for body in model.bodies if body.parent < 0]
    return len(roots) == 1 and roots[0].joint.kind == "free_euler"


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
    if not has_euler_floating_base(model):
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
