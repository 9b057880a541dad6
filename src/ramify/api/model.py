"""A robot as users hold it: one method per question that it answers. Its data are those of
``ramify.model.robot.Robot``.

Conventions: SI units, radians; rotation matrices map the body's frame to the world's; six-vectors
are angular first. Arrays are batch-first: ``(nv,)`` or ``(..., nv)``; inputs broadcast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ramify.api.other_names import advice
from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import RamifyError
from ramify.core.messages import degrees, shown
from ramify.drives.machine_forces import (
    ActuatorForces,
    Passive,
    actuator_forces,
    machine_derivatives,
    passive_forces,
)
from ramify.files.load import write_robot
from ramify.interop.libraries import library_function
from ramify.kernels import derivative_kernels, floating, make, queries
from ramify.kernels.queries import ORIGIN
from ramify.kernels.tier_policy import Tier
from ramify.lint.finding import Finding
from ramify.lint.robot_checks import check
from ramify.loops import bearings
from ramify.loops import closed_dynamics as closed
from ramify.loops.assemble import State, assemble
from ramify.loops.constraints import Constraints, constraints
from ramify.loops.mobility import degrees_of_freedom
from ramify.model import locks
from ramify.model.answers import UDU, Energy, FrameMotion, FramePose, Hybrid, Kinematics, Momentum
from ramify.model.dynamic_parameters import dynamic_parameters, inertial_parameters
from ramify.model.explain import Explanation, explain
from ramify.model.foreign_coordinates import Coordinates, converter
from ramify.model.locks import Singularity
from ramify.model.robot import Robot
from ramify.plant import machine_dynamics
from ramify.plant.impact import TOUCHING, Impact, impact
from ramify.plant.machine_dynamics import acting
from ramify.plant.make_field import ContactLike
from ramify.runtime.kernel import Kernel
from ramify.runtime.single_kernel import SingleKernel
from ramify.trace.op_count import OpCount
from ramify.view.named import NamedArray, model_html, model_text, named

if TYPE_CHECKING:
    import casadi as ca

Named = Mapping[str, ArrayLike] | None
Wrenches = Named
Maybe = ArrayLike | None


class _Alone(TypedDict, total=False):
    """Options of inverse and forward dynamics whose answer is one array."""

    multipliers: Literal[False]
    passive: bool
    stops: bool | None
    efforts: bool
    parameters: Named


class _Paired(TypedDict, total=False):
    """Options with which the answer is a pair: it and the multipliers."""

    multipliers: Required[Literal[True]]
    passive: bool
    stops: bool | None
    efforts: bool
    parameters: Named


def _kernel(name: str) -> cached_property[Kernel]:
    return cached_property(lambda model: make.kernel(model, name))


@dataclass(frozen=True, eq=False, repr=False)
class Model(Robot):
    """A robot. Made by ``rf.load``, ``rf.from_dh``, ``rf.Builder``; changed only by functions that
    return a new one.
    """

    # kernels that a question calls directly, made when they are first asked for
    _bias = _kernel("bias")
    _center_of_mass = _kernel("center_of_mass")
    _centroidal_momentum_matrix = _kernel("centroidal_momentum_matrix")
    _coriolis_matrix = _kernel("coriolis_matrix")
    _energy = _kernel("energy")
    _forward_dynamics = _kernel("forward_dynamics")
    _forward_dynamics_derivatives = _kernel("forward_dynamics_derivatives")
    _gravity_forces = _kernel("gravity_forces")
    _inverse_dynamics = _kernel("inverse_dynamics")
    _inverse_dynamics_derivatives = _kernel("inverse_dynamics_derivatives")
    _kinematics = _kernel("kinematics")
    _mass_matrix = _kernel("mass_matrix")
    _mass_matrix_inverse = _kernel("mass_matrix_inverse")
    _momentum = _kernel("momentum")
    _udu = _kernel("udu")
    _udu_inverse = _kernel("udu_inverse")

    def __repr__(self) -> str:
        free = f"{self.nv} joint coordinates in closed loops" if self.loops else degrees(self.nv)
        return f"<ramify.Model {self.name!r}: {len(self.bodies)} bodies, {free}>"

    if not TYPE_CHECKING:  # a checker would take any name for one of the model's

        def __getattr__(self, name: str) -> object:
            said = f"a model has no attribute {name!r}{advice(name)}"
            raise AttributeError(said, name=name, obj=self)

    def __str__(self) -> str:
        """A table of its bodies."""
        return model_text(self)

    def _repr_html_(self) -> str:
        return model_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the robot as a file that ``rf.load`` reads, in the format of its suffix: .yaml or
        .urdf. Raises ModelError where that format cannot say what the robot is.
        """
        write_robot(self, path)

    @property
    def degrees_of_freedom(self) -> int:
        """How many coordinates may be chosen freely: nv, less what closed loops take from them."""
        return degrees_of_freedom(self)

    # ---- dynamics ----

    @overload
    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Named = None,
        **how: Unpack[_Alone]) -> Array: ...  # fmt: skip
    @overload
    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Named = None,
        **how: Unpack[_Paired]) -> tuple[Array, Array]: ...  # fmt: skip
    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, wrenches: Wrenches = None, *,
        multipliers: bool = False, passive: bool = False, stops: bool | None = None,
        efforts: bool = False, parameters: Named = None,
    ) -> Array | tuple[Array, Array]:  # fmt: skip
        """tau (..., nv): generalized forces that give the accelerations a (table 6.1).

        wrenches: external wrenches {body: (..., 6)}, [moment; force] at the body's origin,
        world-aligned, in N m and N. With loops (eq. 8.4) tau is zero where nothing drives, and the
        shortest of several; with ``multipliers`` (tau, multipliers (..., nc)). With ``passive`` tau
        is what drives must give beside springs, damping, friction and stops; ``stops`` switches
        the last on or off by themselves (as ``passive`` by default; a RuntimeWarning names a
        posture beyond a limit). ``efforts``: tau within what the drives can give.
        ``parameters``: constants of the robot by name (``rf.parameters(model)``) with one value a
        state, e.g. {"link3.mass": (N,)}; with ``passive`` also those of the machine, such as
        "joint2.damping".
        """
        if (
            multipliers is False and passive is False and stops is None and efforts is False
            and parameters is None
        ):  # fmt: skip
            if self.loops:
                return closed.closed_forces(self, q, v, a, wrenches)
            if wrenches is None:
                return self._inverse_dynamics.call(q, v, a)
        how = acting(passive, stops, efforts)
        return machine_dynamics.machine_inverse_dynamics(
            self, q, v, a, wrenches, multipliers, how, parameters
        )

    @overload
    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: Named = None,
        **how: Unpack[_Alone]) -> Array: ...  # fmt: skip
    @overload
    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: Named = None,
        **how: Unpack[_Paired]) -> tuple[Array, Array]: ...  # fmt: skip
    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, wrenches: Wrenches = None, *,
        multipliers: bool = False, passive: bool = False, stops: bool | None = None,
        efforts: bool = False, parameters: Named = None,
    ) -> Array | tuple[Array, Array]:  # fmt: skip
        """a (..., nv): accelerations under the generalized forces tau (table 6.2; with loops eqs.
        8.6, 8.7). wrenches, multipliers, ``passive``, ``stops`` and ``parameters`` as in
        ``inverse_dynamics``; ``efforts``: drives give no more of tau than they can.
        """
        if (
            multipliers is False and passive is False and stops is None and efforts is False
            and parameters is None
        ):  # fmt: skip
            if self.loops:
                return closed.closed_accelerations(self, q, v, tau, wrenches)
            if wrenches is None:
                return self._forward_dynamics.call(q, v, tau)
        how = acting(passive, stops, efforts)
        return machine_dynamics.machine_forward_dynamics(
            self, q, v, tau, wrenches, multipliers, how, parameters
        )

    def passive_forces(self, q: ArrayLike, v: ArrayLike, bristles: Maybe = None) -> Passive:
        """Passive(total, parts, stored, loss, bristle_rate): joint forces (..., nv) of springs,
        damping, friction, stops, tendons and gravity compensation, in all and by part; energy
        stored (J) and power lost (W) by part.

        bristles (..., n): deflections of the joints with LuGre friction; by default these slide
        steadily.
        """
        return passive_forces(self, q, v, bristles=bristles)

    def actuator_forces(
        self, q: ArrayLike, v: ArrayLike, command: ArrayLike, activation: Maybe = None
    ) -> ActuatorForces:
        """ActuatorForces(tau, force, activation_rate): joint forces (..., nv) of the actuators
        under the command (..., na), the force of each (..., na), and the rates of their
        activations.
        activation (..., states): of the actuators that have one, zero by default.
        """
        return actuator_forces(self, q, v, command, activation)

    def hybrid_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a_joints: ArrayLike,
        prescribed: Sequence[str] | None = None,
        tau: Maybe = None,
        wrenches: Wrenches = None,
    ) -> Hybrid:
        """Hybrid(acceleration, tau): what moves freely and what the driven joints must give (table
        7.1).

        prescribed: names of the joints whose accelerations are given, all but the first (the
        floating base) by default; a_joints (..., p) are these, in the order of v. tau (..., nv -
        p): forces on the free coordinates, zero by default. wrenches as in ``inverse_dynamics``.
        The result has the accelerations of the free coordinates and the forces of the prescribed
        ones.
        """
        if self.loops:
            closed.refuse_overdriven(self, q, floating.prescribed_coordinates(self, prescribed))
        return floating.hybrid_dynamics(self, q, v, a_joints, prescribed, tau, wrenches)

    def mass_matrix(self, q: ArrayLike, parameters: Named = None) -> Array:
        """Generalized inertia matrix (..., nv, nv) by composite bodies (eqs. 5.18-5.21)."""
        if parameters is not None:
            return queries.varied(self, "mass_matrix", parameters, q)
        return self._mass_matrix.call(q)

    def mass_matrix_inverse(self, q: ArrayLike, parameters: Named = None) -> Array:
        """Inverse of the generalized inertia matrix (..., nv, nv), analytically (eq. 5.38)."""
        if parameters is not None:
            return queries.varied(self, "mass_matrix_inverse", parameters, q)
        return self._mass_matrix_inverse.call(q)

    def udu(self, q: ArrayLike, level: Literal["joint", "module"] = "joint") -> UDU:
        """Factors with I = U D U' (eqs. 5.30-5.37); level: per joint coordinate or per module."""
        if isinstance(level, str) and level == "joint":
            return self._udu.call(q)
        return queries.udu(self, q, level)

    def udu_inverse(self, q: ArrayLike, level: Literal["joint", "module"] = "joint") -> UDU:
        """(U^-1, D^-1) of the same factors (eqs. 5.39-5.46); level as in ``udu``."""
        if isinstance(level, str) and level == "joint":
            return self._udu_inverse.call(q)
        return queries.udu_inverse(self, q, level)

    def bias(self, q: ArrayLike, v: ArrayLike, parameters: Named = None) -> Array:
        """h (..., nv): the forces that hold the accelerations at zero: Coriolis, centrifugal and
        gravity.
        """
        if parameters is not None:
            return queries.varied(self, "bias", parameters, q, v)
        return self._bias.call(q, v)

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, parameters: Named = None) -> Array:
        """C (..., nv, nv) with C v the velocity part of the bias and dI/dt - 2 C skew-symmetric."""
        if parameters is not None:
            return queries.varied(self, "coriolis_matrix", parameters, q, v)
        return self._coriolis_matrix.call(q, v)

    def gravity_forces(self, q: ArrayLike, parameters: Named = None) -> Array:
        """g (..., nv): the forces that hold the robot at rest."""
        if parameters is not None:
            return queries.varied(self, "gravity_forces", parameters, q)
        return self._gravity_forces.call(q)

    # ---- loops ----

    def constraints(self, q: ArrayLike, v: Maybe = None) -> Constraints:
        """Constraints(residual, J, Jdot_v, names, rank, mobility, …) of the loops at q (and v, at
        rest by default).
        """
        return constraints(self, q, v)

    def assemble(
        self,
        independent: Named = None,
        rates: Named = None,
        guess: Maybe | Mapping[str, float] = None,
        accelerations: Named = None,
    ) -> State:
        """A consistent State(q, v, a): the loops closed with these values, rates and accelerations
        of some coordinates, by name.

        independent: values, rad or m; rates and accelerations in these per s and s^2. Values may be
        rows (T,): a path, followed from row to row. guess: q (nq), or some coordinates by name; the
        model's own by default. Where nothing is given, the driven coordinates stay at their guess
        (without a guess at zero) if the loops close there. Limits of joints are not looked at;
        ``rf.ik`` keeps them. Raises LoopError with the gap that remains where the loops cannot be
        closed, and at dead centres.
        """
        return assemble(self, independent, rates, guess, accelerations)

    def loop_forces(self, q: ArrayLike, multipliers: ArrayLike) -> Array:
        """(..., loops, 6): the wrench [moment; force] of each loop's joint on its second link, at
        that end, world-aligned, N m and N; from the multipliers (..., nc) that dynamics gives.
        Where constraints are redundant, these are one of many solutions: see ``bearing_forces``.
        """
        return closed.loop_forces(self._closed(), q, multipliers)

    # ---- kinematics ----

    def kinematics(self, q: ArrayLike, parameters: Named = None) -> Kinematics:
        """World poses of all bodies."""
        if parameters is not None:
            return queries.varied(self, "kinematics", parameters, q)
        return self._kinematics.call(q)

    def pose(self, q: ArrayLike, name: str) -> FramePose:
        """FramePose(rotation, position) in the world of a link, a merged link or a named frame
        (``frames``).
        """
        try:
            found = self._frame_poses[name]
        except TypeError:  # no key at all, such as a list of names
            self.attachment(name)
            raise
        if found is not None:
            kernel, frame = found
            return kernel.call(q, frame)
        return queries.pose(self, q, name)

    def jacobian(
        self, q: ArrayLike, body: str, point: ArrayLike = ORIGIN, parameters: Named = None
    ) -> Array:
        """J (..., 6, nv): twist of a point of a body (in its frame, m), angular first,
        world-aligned, is J v. parameters as in ``inverse_dynamics``.
        """
        if parameters is None and point is ORIGIN:
            try:
                found = self._jacobians[body]
            except TypeError:  # no key at all, such as a list of names
                self.attachment(body)
                raise
            if found is not None:
                kernel, origin = found
                call = kernel.call  # looked up and called in one go it takes longer
                return call(q, origin)
        return queries.jacobian(self, q, body, point, parameters)

    def jacobian_rate(
        self, q: ArrayLike, v: ArrayLike, body: str, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> Array:
        """dJ/dt v (..., 6), world-aligned: acceleration of the point at zero joint
        accelerations.
        """
        return queries.jacobian_rate(self, q, v, body, point)

    def frame_motion(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        name: str,
        point: ArrayLike = ORIGIN,
    ) -> FrameMotion:
        """FrameMotion(velocity, acceleration), each (..., 6), of a point of a link or frame:
        J v and J a + dJ/dt v.
        """
        return queries.frame_motion(self, q, v, a, name, point)

    # ---- energy, momentum, reactions ----

    def energy(self, q: ArrayLike, v: ArrayLike, parameters: Named = None) -> Energy:
        """Energy(kinetic, potential), each (...), in J."""
        if parameters is not None:
            return queries.varied(self, "energy", parameters, q, v)
        return self._energy.call(q, v)

    def momentum(self, q: ArrayLike, v: ArrayLike, parameters: Named = None) -> Momentum:
        """Momentum(linear, angular) of the whole robot, each (..., 3); angular about the centre of
        mass.
        """
        if parameters is not None:
            return queries.varied(self, "momentum", parameters, q, v)
        call = self._momentum.call
        return call(q, v)

    def impact(
        self, q: ArrayLike, v: ArrayLike, contact: ContactLike = "hard", within: float = TOUCHING
    ) -> Impact:
        """The impact of contacts, stops and loops that close at once at q (nq), v (nv):
        Impact(v, impulses, loops, stops, energy_lost, mode).

        The posture stays; M (v+ - v) = J' g with Coulomb's and Newton's laws for impulses. contact:
        as in ``simulate``, None for the loops alone; within: gaps in m (rad) that count as closed.
        Raises SimulationError where there is no solution.
        """
        return impact(self, q, v, contact, within)

    def center_of_mass(self, q: ArrayLike, parameters: Named = None) -> Array:
        """Centre of mass (..., 3) of the moving bodies, world frame, m."""
        if parameters is not None:
            return queries.varied(self, "center_of_mass", parameters, q)
        return self._center_of_mass.call(q)

    def centroidal_momentum_matrix(self, q: ArrayLike) -> Array:
        """A (..., 6, nv) with A v = [angular; linear] momentum about the centre of mass, world
        axes.
        """
        return self._centroidal_momentum_matrix.call(q)

    def zero_moment_point(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, height: float = 0.0
    ) -> Array:
        """(..., 3), world frame, m: where a force alone, with a moment about the plane's normal,
        would carry the motion (eq. B.1).

        The plane is normal to gravity, ``height`` above the world's origin. StateError where the
        ground would have to pull.
        """
        return floating.zero_moment_point(self, q, v, a, height)

    def reactions(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        wrenches: Wrenches = None,
        multipliers: Maybe = None,
    ) -> Array:
        """(..., nb, 6): the whole wrench each joint transmits to its body, at the body's origin,
        world-aligned.

        With loops, their forces act on the bodies: those of the multipliers (..., nc), of inverse
        dynamics by default. Where constraints are redundant, these are one of many solutions: see
        ``bearing_forces``.
        """
        if self.loops or multipliers is not None:
            return closed.closed_reactions(self._closed(), q, v, a, wrenches, multipliers)
        return queries.reactions(self, q, v, a, wrenches)

    def bearing_forces(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        wrenches: Wrenches = None,
        multipliers: Maybe = None,
    ) -> dict[str, Array]:
        """The wrench in every joint by its name, those that close loops too: (..., 6), [moment;
        force], N m and N, world-aligned.

        It acts on the body (of a loop, or a joint of ``Mechanism``, on its second one), at that
        body's end of the joint; the reverse acts on the other. wrenches as in ``inverse_dynamics``,
        multipliers as in ``reactions``. ``r.bearing_forces()`` takes all loads from a run.

        Where rigid bodies do not determine a component that carries load, as in overconstrained
        linkages, a RuntimeWarning names it: it is shared as joints of equal stiffness would.

        Raises StateError where a joint would have to carry a force along a direction in which it
        moves freely: nothing drives it, and its passive forces differ. Then a load is missing.
        """
        if multipliers is not None:
            self._closed()
        passive = passive_forces(self, q, v).total
        return bearings.bearing_forces(self, q, v, a, wrenches, multipliers, passive)

    # ---- derivatives ----

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, out: Sequence[Array] | None = None,
        *, passive: bool = False, stops: bool | None = None, efforts: bool = False,
        parameters: Named = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Partial derivatives of tau by q, v and a, each (..., nv, nv); the last is the inertia
        matrix.

        For a quaternion, a derivative by q is one by a rotation about the body's own axes
        (``integrate``). out: three arrays to fill; passive, stops, efforts and parameters as in
        ``inverse_dynamics``: a force at its limit does not change. With loops, directions that open
        them count like others, and ``derivatives("inverse_dynamics", …)`` has those of the
        multipliers too.
        """
        how = acting(passive, stops, efforts)
        if not (any(how) or self.loops) and parameters is None:
            if out is None:
                return self._inverse_dynamics_derivatives.call(q, v, a)
            return self._inverse_dynamics_derivatives.call(q, v, a, out=out)
        return machine_dynamics.dynamics_derivatives(
            self, "inverse_dynamics", how, parameters, out, q, v, a
        )[:3]

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, out: Sequence[Array] | None = None,
        *, passive: bool = False, stops: bool | None = None, efforts: bool = False,
        parameters: Named = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Partial derivatives of a by q, v and tau, each (..., nv, nv); the last is the inverse of
        the inertia matrix. out: three arrays to fill; passive, stops, efforts and parameters as in
        ``forward_dynamics``. With loops, ``derivatives("forward_dynamics_multipliers", …)`` has
        those of the multipliers too.
        """
        how = acting(passive, stops, efforts)
        if not (any(how) or self.loops) and parameters is None:
            if out is None:
                return self._forward_dynamics_derivatives.call(q, v, tau)
            return self._forward_dynamics_derivatives.call(q, v, tau, out=out)
        return machine_dynamics.dynamics_derivatives(
            self, "forward_dynamics", how, parameters, out, q, v, tau
        )[:3]

    def frame_motion_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        name: str,
        point: ArrayLike = ORIGIN,
    ) -> derivative_kernels.FrameDerivatives:
        """FrameDerivatives: of the velocity of a link or frame by q and v, of its acceleration by
        q, v and a, each (..., 6, nv).
        """
        return derivative_kernels.frame_motion_derivatives(self, q, v, a, name, point)

    def derivatives(
        self, name: str, *inputs: ArrayLike, parameters: Named = None, passive: bool = False,
        stops: bool | None = None, efforts: bool = False,
    ) -> tuple[tuple[Any, ...], ...]:  # fmt: skip
        """Partial derivatives of any algorithm (a name as in ``kernel``): for every result, those
        by each input, of the shape (batch, shape of the result, columns).

        By q there is a column per velocity, as in ``inverse_dynamics_derivatives``. With
        ``parameters`` the last item is a mapping: the derivatives by each of them. Large programs
        are interpreted, not compiled. ``"passive_forces"`` (their total, by q, v and bristles where
        given) and ``"actuator_forces"`` are names, too. ``passive``, ``stops``, ``efforts``: of
        inverse and forward dynamics with springs, damping, friction and stops, whose numbers may be
        parameters then, and limited drives.
        """
        how = acting(passive, stops, efforts)
        if any(how):
            if name not in ("inverse_dynamics", "forward_dynamics"):
                raise RamifyError(
                    "passive=True, stops and efforts are for derivatives of inverse_dynamics and "
                    f"forward_dynamics, not for {name}"
                )
            if len(inputs) != 3:
                raise RamifyError(f"{name} takes 3 arrays; it was given {len(inputs)}")
            return (
                machine_dynamics.dynamics_derivatives(self, name, how, parameters, None, *inputs),
            )
        if str(name) in ("passive_forces", "actuator_forces") and parameters is None:
            return machine_derivatives(self, name, inputs)
        if str(name) == "pose":
            raise RamifyError(
                "the derivative of the pose of a link is its Jacobian, m.jacobian(q, link); "
                "m.derivatives('kinematics', q) has those of all links"
            )
        self._refuse_open(name, inputs)
        return derivative_kernels.derivatives(self, name, inputs, parameters=parameters)

    def derivative_along(
        self, name: str, inputs: Sequence[ArrayLike], directions: Sequence[ArrayLike]
    ) -> tuple[Array, ...]:
        """The rate of every result of an algorithm (a name as in ``kernel``) along directions, one
        for each of its inputs; in q that of a velocity (..., nv).

        With ``"inverse_dynamics_derivatives"`` these are second derivatives times a direction.
        """
        self._refuse_open(name, inputs)
        return derivative_kernels.derivative_along(self, name, inputs, directions)

    def _refuse_open(self, name: str, inputs: Sequence[ArrayLike]) -> None:
        """Raise LoopError where dynamics are asked for at a posture with open loops."""
        if self.loops and inputs and name in ("inverse_dynamics", "forward_dynamics"):
            closed.refuse_open_postures(self._closed(), inputs[0])

    # ---- identification ----

    @cached_property
    def inertial_parameters(self) -> Array:
        """pi (10 nb,): [m, m c (3), Ixx Iyy Izz Ixy Iyz Ixz] of every body, in its own frame and
        about its own origin; on a robot with rotors followed by their inertia at each
        coordinate (nv,).
        """
        return inertial_parameters(self)

    @cached_property
    def dynamic_parameters(self) -> Array:
        """pi (10 nb + 3 nv,) in the layout of ``regressor(..., drives=True)``: ten numbers of every
        body, then armature, viscous damping and Coulomb friction of each coordinate, zero where
        the robot has none.
        """
        return dynamic_parameters(self)

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, drives: bool = False) -> Array:
        """Y (..., nv, 10 nb) with tau = Y pi: inverse dynamics is linear in
        ``inertial_parameters``, [m, m c (3), Ixx Iyy Izz Ixy Iyz Ixz] of one body after the other
        (about the origin of its frame); nv more columns on a robot with rotors.

        With ``drives`` Y is (..., nv, 10 nb + 3 nv) whatever the robot has: after the bodies nv
        columns of armature (a), nv of viscous damping (v) and nv of Coulomb friction (the sign of
        v), in the layout of ``dynamic_parameters``.
        """
        return queries.regressor(self, q, v, a, drives)

    def weighted_derivatives(
        self, name: str, inputs: Sequence[ArrayLike], weights: Sequence[ArrayLike]
    ) -> tuple[Array, ...]:
        """The derivatives of a weighted sum of an algorithm's results (a name as in ``kernel``) by
        each input, (batch, columns), by reverse differentiation: one array of weights per result,
        of its shape. By q there is a column per velocity. Of the regressor it is the
        gradient of sum(W * Y), which costs a few times Y itself.
        """
        return derivative_kernels.weighted_derivatives(self, name, inputs, weights)

    # ---- coordinates ----

    def singularities(self, q: ArrayLike, tolerance: float = 1e-3) -> list[Singularity]:
        """Euler-angle joints within ``tolerance`` rad of gimbal lock at q, nearest first. How far
        closed loops and their drives are from a dead centre is the margin of ``constraints(q)`` and
        of ``assemble``.
        """
        return locks.singularities(self, q, tolerance)

    def explain(self, q: Maybe = None, v: Maybe = None) -> Explanation:
        """Each entry of q (and v) with joint, meaning, frame, unit and value, to print; without
        arrays both, without values.
        """
        return explain(self, q, v)

    def named(self, values: ArrayLike, title: str = "") -> NamedArray:
        """Values (nv,), (nq,), (nv, nv) or (6, nv) with the names of the coordinates and a title,
        to print or to show in a notebook.
        """
        return named(self, values, title)

    def to_pinocchio(
        self, q: ArrayLike, v: Maybe = None, a: Maybe = None, tau: Maybe = None,
        *, order: Iterable[str] | None = None, forms: Mapping[str, str] | None = None,
    ) -> Coordinates:  # fmt: skip
        """Coordinates(q, v, a, tau) as Pinocchio has them; options ``order``, ``forms``: see
        ``ramify.model.foreign_coordinates.converter``.
        """
        return converter(self, "pinocchio", order=order, forms=forms).to(q, v, a, tau)

    def from_pinocchio(
        self, q: ArrayLike, v: Maybe = None, a: Maybe = None, tau: Maybe = None,
        *, order: Iterable[str] | None = None, forms: Mapping[str, str] | None = None,
    ) -> Coordinates:  # fmt: skip
        """The reverse of ``to_pinocchio``."""
        return converter(self, "pinocchio", order=order, forms=forms).back(q, v, a, tau)

    def to_mujoco(
        self, q: ArrayLike, v: Maybe = None, a: Maybe = None, tau: Maybe = None,
        *, order: Iterable[str] | None = None, forms: Mapping[str, str] | None = None,
    ) -> Coordinates:  # fmt: skip
        """Coordinates(q, v, a, tau) as MuJoCo has them (qpos, qvel, qacc, qfrc); options as in
        ``to_pinocchio``.
        """
        return converter(self, "mujoco", order=order, forms=forms).to(q, v, a, tau)

    def from_mujoco(
        self, q: ArrayLike, v: Maybe = None, a: Maybe = None, tau: Maybe = None,
        *, order: Iterable[str] | None = None, forms: Mapping[str, str] | None = None,
    ) -> Coordinates:  # fmt: skip
        """The reverse of ``to_mujoco``."""
        return converter(self, "mujoco", order=order, forms=forms).back(q, v, a, tau)

    # ---- other libraries ----

    def jax(self, name: str, *, trace: bool = False, **options: object) -> Callable[..., Any]:
        """A function for JAX (``jit``, ``vmap``, ``grad``, ``jvp`` …) of any algorithm (a name as
        in ``kernel``), or of "jacobian", "pose", "passive_forces", "actuator_forces",
        "acceleration", "step"; options: see ``ramify.interop.named_functions.named_function``.

        On the CPU it calls the compiled kernel; with ``trace`` JAX computes all itself.
        """
        return library_function(self, "jax", name, options, trace=trace)

    def torch(self, name: str, **options: object) -> Callable[..., Any]:
        """A function for PyTorch (``autograd``, ``torch.func``, ``torch.compile``); names and
        options as in ``jax``. It reads CPU tensors without copies.
        """
        return library_function(self, "torch", name, options)

    def casadi(self, name: str, *, horizon: int | None = None, **options: object) -> ca.Function:
        """A casadi.Function; names and options as in ``jax``. By default an SX function that CasADi
        differentiates; with ``horizon`` one that calls the kernel for this number of states at
        once, a column each, with exact sparse Jacobians.
        """
        return library_function(self, "casadi", name, options, horizon=horizon)

    # ---- kernels and checks ----

    @cached_property
    def _frame_poses(self) -> queries.FramePoses:
        return queries.FramePoses(self)

    @cached_property
    def _jacobians(self) -> queries.Jacobians:
        return queries.Jacobians(self)

    @overload
    def kernel(self, name: str, tier: Tier | None = None) -> Kernel: ...

    @overload
    def kernel(
        self, name: str, *, dtype: Literal["float32"] | type[np.float32]
    ) -> SingleKernel: ...

    def kernel(
        self, name: str, tier: Tier | None = None, *, dtype: DTypeLike = np.float64
    ) -> Kernel | SingleKernel:
        """The compiled function of that name, e.g. ``m.kernel("forward_dynamics")(q, v, tau)``; a
        tier pins it. ``dtype="float32"``: in single precision, for batches.
        """
        try:
            wanted = np.dtype(dtype)
        except (TypeError, ValueError):
            raise RamifyError(f"dtype must be 'float64' or 'float32'; got {shown(dtype)}") from None
        if wanted == np.float64:
            return make.kernel(self, name, tier)
        if wanted != np.float32 or tier is not None:
            raise RamifyError(f"dtype {wanted} must be float64, or float32 without a tier")
        return make.single_kernel(self, name)

    def op_count(self, name: str, how: Literal["compiled", "written"] = "compiled") -> OpCount:
        """Operations of an algorithm: after folding and sharing for this robot, or as its text has
        it, on a general robot like it.

        how: "compiled" or "written". As written, ``mul`` holds × and ÷, and ``name`` may also be a
        formulation's (``denoc_inverse``, ``ridim`` ...).
        """

        from ramify.formulations.counting.written import (
            model_op_count,  # many modules, rarely needed
        )

        return model_op_count(self, name, how)

    def check(self) -> list[Finding]:
        """What looks wrong in this model: the linter's findings, worst first."""
        return check(self)

    def _closed(self) -> Model:
        """The model itself; an error where it has no loops."""
        closed.with_loops(self)
        return self
