"""The scales of the errors of an audit: the energy and the momentum that bodies exchanged.

What does not change does not count: the spin of a flywheel, the speed of a train. A body
of mass m and inertia I about its centre of mass, with the velocity u of that and the angular
velocity w in its own axes, has moved

    max(|T - T(0)|, m |u - u(0)|^2 / 2 + (w - w(0)) I (w - w(0)) / 2)

of kinetic energy. The first is the change of its energy; the second counts motion that turns
without a change of speed. Both vanish for a wheel that spins steadily on a base at rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ramify.core.arrays import Array
from ramify.kernels.make import kernel
from ramify.kernels.queries import jacobian, kinematics
from ramify.runs.run_record import Run

ENOUGH: Final = 400
"""Rows from which scales are taken, at most."""
EPS: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """Motion of the bodies at some rows: ``place`` and ``velocity`` (T, nb, 3) of their centres of
    mass and ``origin`` (T, nb, 3), the velocity of their origins, in the world; ``rotation`` (T,
    nb, 3, 3) and the angular velocity ``spin`` (T, nb, 3) in their own axes.
    """

    place: Array
    velocity: Array
    origin: Array
    rotation: Array
    spin: Array


def body_motion(run: Run, rows: Array) -> BodyMotion:
    """The motion of the bodies at some rows of a run."""
    model, q, v = run.model, run.q[rows], run.v[rows]
    R, r = kinematics(model, q)
    J = [np.einsum("tij,tj->ti", jacobian(model, q, body.name), v) for body in model.bodies]
    twists = np.stack(J, axis=1)
    w, origin = twists[..., :3], twists[..., 3:]
    arm = np.einsum("tbij,bj->tbi", R, [body.com for body in model.bodies])
    spin = np.einsum("tbij,tbi->tbj", R, w)
    return BodyMotion(r + arm, origin + np.cross(w, arm), origin, R, spin)


class Scales:
    """The energy and momentum that took part in a run, and what rounding can do to the whole. Axes
    are columns (3, k) in the world.
    """

    def __init__(self, run: Run) -> None:
        some = np.unique(np.linspace(0, len(run) - 1, ENOUGH).astype(int))
        self.run, self.rows, self.motion = run, some, body_motion(run, some)
        self.mass = np.array([body.mass for body in run.model.bodies])
        self.inertia = np.array([body.inertia for body in run.model.bodies]).reshape(-1, 3, 3)
        steps = run.stats.get("steps")
        self.rounding = EPS * (64.0 + float(steps if isinstance(steps, int) else len(run)))

    def kinetic(self, free: Array | None = None) -> float:
        """The kinetic energy that moved, J; with ``free`` axes, without the motion of the centre of
        mass along these.
        """
        m, u, w = self.mass, self.motion.velocity, self.motion.spin
        if free is not None:
            mean = np.einsum("b,tbi->ti", m, u) / m.sum()
            u = u - (mean @ free @ free.T)[:, None]
        change = np.abs(self._energy(u, w) - self._energy(u[:1], w[:1]))
        swing = self._energy(u - u[:1], w - w[:1])
        v, rotor = self.run.v[self.rows], self.run.model.armature
        rotors = 0.5 * np.maximum(np.abs(v * v - v[:1] ** 2), (v - v[:1]) ** 2) @ rotor
        return float((np.maximum(change, swing).sum(axis=1) + rotors).max())

    def _energy(self, u: Array, w: Array) -> Array:
        """(T, nb), J."""
        turning = np.einsum("tbi,bij,tbj->tb", w, self.inertia, w)
        return 0.5 * (self.mass * (u * u).sum(axis=2) + turning)

    def by_errors(self, size: float, free: Array | None = None) -> float:
        """J: what errors of a size in every coordinate and rate can do to the energy,

            dE = g dq + p dv;  p = I (v - v(0))

        with ``free`` axes, to the energy beside the motion of the centre of mass along these. What
        moves steadily is free of errors: it is in p by what its rate changes, and no coordinate or
        rate is off by more than it moves. Without axes, p has all of the rates of floating and
        planar roots: their speed is integrated together with an attitude. I is the opened tree's,
        for loops store no energy.
        """
        model, q, v = self.run.model, self.run.q[self.rows], self.run.v[self.rows]
        tree, steady = model.tree, v[0].copy()
        for body in model.bodies:
            if free is None and body.parent < 0 and body.joint.moves_base:
                steady[model.joint_slice(body.joint.name)] = 0.0
        change = v - steady
        g = kernel(tree, "gravity_forces")(q)
        p = kernel(tree, "inverse_dynamics")(q, np.zeros(model.nv), change) - g
        if free is not None:
            linear = kernel(tree, "centroidal_momentum_matrix")(q)[:, 3:]
            P = np.einsum("tin,ik->tkn", linear, free)  # of linear momentum along the axes, by rate
            p = p - np.einsum("tkn,tkm,tm->tn", P, P, change) / model.mass
            g = g + np.einsum("tkn,k->tn", P, np.array(model.gravity) @ free)
        duration = float(self.run.t[-1] - self.run.t[0])
        dq = np.minimum(size, duration * np.abs(v).max(axis=0))
        dv = np.minimum(size, np.abs(change).max(axis=0))
        return float((np.abs(g) @ dq + np.abs(p) @ dv).max())

    def linear(self, free: Array) -> tuple[float, float]:
        """(scale, rounding) of linear momentum along the axes, kg m/s: what bodies exchanged, and
        what rounding can do to the whole.
        """
        t = self.run.t[self.rows]
        fall = np.outer(t - t[0], self.run.model.gravity)[:, None]
        moved = [
            np.linalg.norm((u - u[:1] - fall) @ free, axis=2)
            for u in (self.motion.velocity, self.motion.origin)
        ]
        whole = (np.linalg.norm(self.motion.velocity, axis=2) @ self.mass).max()
        return float((np.maximum(*moved) @ self.mass).max()), self.rounding * float(whole)

    def angular(self, axes: Array) -> tuple[float, float]:
        """(scale, rounding) of angular momentum about the centre of mass, kg m^2/s. Of bodies on
        the world, whose attitude is integrated, all of their own spin counts.
        """
        m, R = self.mass, self.motion.rotation
        r, u = self.motion.place, self.motion.velocity
        arm, rate = (x - (np.einsum("b,tbi->ti", m, x) / m.sum())[:, None] for x in (r, u))
        spins = np.einsum("tbij,bjk,tbk->tbi", R, self.inertia, self.motion.spin)
        h = spins + m[:, None] * np.cross(arm, rate)
        moved = np.linalg.norm((h - h[:1]) @ axes, axis=2).sum(axis=1)
        roots = [b for b, body in enumerate(self.run.model.bodies) if body.parent < 0]
        turning = np.linalg.norm(spins[:, roots], axis=2).sum(axis=1)
        far = np.linalg.norm(r, axis=2) * np.linalg.norm(u, axis=2)
        size = np.linalg.norm(h, axis=2).sum(axis=1) + far @ m
        return float((moved + turning).max()), self.rounding * float(size.max())

    @property
    def largest_energy(self) -> float:
        """J: of the energies that are added up, by which rounding is measured."""
        kinetic, potential, _ = self.run.energy
        return float(np.max(np.abs(potential) + kinetic))

    def internal_kinetic(self, free: Array) -> Array:
        """(T,), J: the kinetic energy beside the motion of the centre of mass along the axes, where
        the roots can move along these. It is computed in the frame of the centre: as a difference
        of energies, rounding would take from it what a fast train has.
        """
        model, q, v = self.run.model, self.run.q, self.run.v.copy()
        mean = self.run.momentum.linear @ free @ free.T / model.mass
        for body in model.bodies:
            if body.parent < 0:
                columns = model.joint_slice(body.joint.name)
                J = jacobian(model, q, body.name)[..., columns]
                v[:, columns] -= np.einsum("tni,ti->tn", np.linalg.pinv(J)[..., 3:], mean)
        return kernel(model, "energy")(q, v).kinetic

    def carried(self, free: Array) -> float:
        """J: momentum that the bodies exchanged, by the speed of the centre of mass along the axes.
        Rounding of the rates of what travels acts on this.
        """
        speed = np.linalg.norm(self.run.momentum.linear @ free, axis=1).max() / self.mass.sum()
        return self.linear(free)[0] * float(speed)

    def centre(self, free: Array) -> Array:
        """(T, k), m: the centre of mass along the axes."""
        return kernel(self.run.model, "center_of_mass")(self.run.q) @ free
