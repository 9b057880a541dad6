"""ramify, Pinocchio and MuJoCo behind one small interface: the same robot, the same question, each
in its own best way.

Every class gives the statement (a ``Call``) for one state and for a batch. Joints have one degree
of freedom here, or are free; states are ramify's, converted before and after the statement where a
program's coordinates differ.
"""

from __future__ import annotations

from typing import Final, Literal

import models
import mujoco
import numpy as np
import pinocchio as pin
from mujoco.rollout import Rollout
from timing import Array, Call

import ramify as rf
from ramify.contact import Ground
from ramify.model.body import Body

ALGORITHMS: Final = ("forward_dynamics", "inverse_dynamics")
Tier = Literal["unrolled", "rolled"]
Start = tuple[Array, Array]
States = tuple[Array, Array, Array]
"""q, v and the third argument (forces or accelerations), for one state or (N, ...)."""


def random_states(model: rf.Model, count: int, seed: int = 0) -> States:
    """States all over the joints' ranges, as arrays of ``count`` rows."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, size=(count, model.nq))
    for i, _ in model.layout.balls:
        q[:, i : i + 4] = _unit(rng.normal(size=(count, 4)))
    return q, rng.normal(size=(count, model.nv)), rng.normal(size=(count, model.nv))


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Ramify:
    """Arrays of rows in and out: the model's own methods, or a kernel pinned to a tier. One thread
    is what ``rf.threads`` says.
    """

    name = "ramify"

    def __init__(self, model: rf.Model, tier: Tier | None = None) -> None:
        self.model, self.tier = model, tier

    def single(self, algorithm: str, states: States) -> Call:
        q, v, x = states
        if self.tier is None:
            method = getattr(self.model, algorithm)
            return Call(
                f"model.{algorithm}(q, v, x)",
                {"model": self.model, "q": q, "v": v, "x": x},
                lambda: method(q, v, x),
            )
        kernel = self.model.kernel(algorithm, self.tier)
        return Call(
            "kernel(q, v, x)", {"kernel": kernel, "q": q, "v": v, "x": x}, lambda: kernel(q, v, x)
        )

    def batch(self, algorithm: str, states: States, threads: int) -> Call:
        q, v, x = states
        kernel = self.model.kernel(algorithm, self.tier)
        return Call(
            "kernel(q, v, x)",
            {"kernel": kernel, "q": q, "v": v, "x": x, "threads": rf.threads},
            lambda: kernel(q, v, x, threads=threads),
            f"threads({threads})",
        )

    def rollout(
        self,
        method: str,
        start: Start,
        steps: int,
        dt: float,
        every: int | None = None,
        ground: Ground | None = None,
    ) -> Call:
        """Fixed steps, on a ground with the walker's springs, else without joint forces, also those
        of friction and stops; the answer is the last state, ``every=1`` also keeps the way there.
        """
        q, v = start
        control = models.held() if ground is not None else None
        names = {
            "rollout": rf.rollout,
            "model": self.model,
            "q": q,
            "v": v,
            "ground": ground,
            "control": control,
        }
        options = (
            f"steps={steps}, dt={dt!r}, method={method!r}, ground=ground, control=control, "
            "passive=False, stops=False"
        )

        def last() -> Array:
            found = rf.rollout(
                self.model, q, v, steps=steps, dt=dt, method=method, ground=ground, control=control,
                passive=False, stops=False,
            )  # fmt: skip
            return np.hstack([found.q, found.v])

        return Call(f"rollout(model, q, v, {options}, every={every})", names, last)


class Pinocchio:
    """``rnea`` and ``aba``; batches through its own parallel functions, with arrays in its own
    layout and ready results.
    """

    name = "Pinocchio"
    _FUNCTIONS: Final = {
        "forward_dynamics": (pin.aba, pin.abaInParallel),
        "inverse_dynamics": (pin.rnea, pin.rneaInParallel),
    }

    _THIRD: Final = {
        "forward_dynamics": ("tau", "a"),
        "inverse_dynamics": ("a", "tau"),
    }  # the third argument, the answer

    def __init__(self, model: rf.Model) -> None:
        self.robot, self.model = model, to_pinocchio(model)
        self.data = self.model.createData()
        self._pools: dict[int, pin.ModelPool] = {}

    def _theirs(self, algorithm: str, states: States) -> States:
        given, _ = self._THIRD[algorithm]
        q, v, x = states
        found = self.robot.to_pinocchio(q, v, **{given: x})
        return found.q, found.v, getattr(found, given)

    def _ours(self, algorithm: str, theirs: States, answer: Array) -> Array:
        _, found = self._THIRD[algorithm]
        return getattr(self.robot.from_pinocchio(theirs[0], theirs[1], **{found: answer}), found)

    def single(self, algorithm: str, states: States) -> Call:
        function, _ = self._FUNCTIONS[algorithm]
        q, v, x = theirs = self._theirs(algorithm, states)
        names = {
            "function": function,
            "model": self.model,
            "data": self.data,
            "q": q,
            "v": v,
            "x": x,
        }
        return Call(
            "function(model, data, q, v, x)",
            names,
            lambda: self._ours(algorithm, theirs, function(self.model, self.data, q, v, x)),
        )

    def batch(self, algorithm: str, states: States, threads: int) -> Call:
        _, function = self._FUNCTIONS[algorithm]
        if threads not in self._pools:
            self._pools[threads] = pin.ModelPool(self.model, threads)
        theirs = self._theirs(algorithm, states)
        q, v, x = (np.asfortranarray(a.T) for a in theirs)
        out = np.empty_like(x)
        names = {
            "function": function,
            "pool": self._pools[threads],
            "q": q,
            "v": v,
            "x": x,
            "out": out,
        }
        return Call(
            f"function({threads}, pool, q, v, x, out)",
            names,
            lambda: self._ours(algorithm, theirs, out.T),
        )


class MuJoCo:
    """``mj_forward`` and ``mj_inverse`` without contacts and constraints; forward batches as
    rollouts of one step of one second.

    After such a step the velocity is v + a, so a rollout is forward dynamics and one vector
    addition. There is no batched inverse.
    """

    name = "MuJoCo"
    _INTEGRATORS: Final = {
        "rk4": int(mujoco.mjtIntegrator.mjINT_RK4),
        "implicitfast": int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST),
        "semi_implicit_euler": int(
            mujoco.mjtIntegrator.mjINT_EULER
        ),  # velocities first; EULERDAMP is off
    }

    def __init__(self, model: rf.Model, feet: float = 0.0) -> None:
        self.model = to_mujoco(model, feet)
        self.data = mujoco.MjData(self.model)

    def single(self, algorithm: str, states: States) -> Call:
        q, v, x = states
        data, forward = self.data, algorithm == "forward_dynamics"
        function = mujoco.mj_forward if forward else mujoco.mj_inverse
        given, found = (data.qfrc_applied, data.qacc) if forward else (data.qacc, data.qfrc_inverse)
        names = {
            "function": function,
            "model": self.model,
            "data": data,
            "given": given,
            "found": found,
            "q": q,
            "v": v,
            "x": x,
        }
        names |= {"qpos": data.qpos, "qvel": data.qvel}
        return Call(
            "qpos[:] = q; qvel[:] = v; given[:] = x; function(model, data); found.copy()",
            names,
            lambda: found,
        )

    def batch(self, algorithm: str, states: States, threads: int) -> Call | None:
        if algorithm != "forward_dynamics":
            return None
        q, v, x = states
        start = np.hstack([np.zeros((len(q), 1)), q, v])  # time, q, v
        after, sensors = np.empty((len(q), 1, start.shape[1])), np.empty((len(q), 1, 0))
        names = {
            "pool": Rollout(nthread=threads if threads > 1 else 0),
            "data": [mujoco.MjData(self.model) for _ in range(threads)],
            "model": self.model,
            "start": start,
            "forces": np.ascontiguousarray(x[:, None]),
            "after": after,
            "sensors": sensors,
            "spec": int(mujoco.mjtState.mjSTATE_QFRC_APPLIED),
        }
        text = (
            "pool.rollout(model, data, start, forces, control_spec=spec, nstep=1, state=after, "
            "sensordata=sensors)"
        )
        return Call(text, names, lambda: after[:, 0, 1 + q.shape[1] :] - v)

    def rollout(self, method: str, start: Start, steps: int, dt: float) -> Call:
        """Fixed steps without joint forces, on the calling thread; it always keeps the way to the
        last state.
        """
        self.model.opt.timestep, self.model.opt.integrator = dt, self._INTEGRATORS[method]
        first = np.hstack([np.zeros((len(start[0]), 1)), *start])
        after, sensors = (
            np.empty((len(first), steps, first.shape[1])),
            np.empty((len(first), steps, 0)),
        )
        names = {
            "pool": Rollout(nthread=0),
            "model": self.model,
            "data": [self.data],
            "start": first,
        }
        names |= {"after": after, "sensors": sensors}
        text = f"pool.rollout(model, data, start, nstep={steps}, state=after, sensordata=sensors)"
        return Call(text, names, lambda: after[:, -1, 1:])


PEERS: Final = (Pinocchio, MuJoCo)
Peer = Pinocchio | MuJoCo


# ---- the same robot ----


def to_pinocchio(model: rf.Model) -> pin.Model:
    """The robot in Pinocchio, with its fastest type for each joint."""
    made = pin.Model()
    made.gravity.linear = np.array(model.gravity)
    ends = {-1: (0, pin.SE3.Identity())}
    for index, body in enumerate(model.bodies):
        parent, place = ends[body.parent]
        joint = made.addJoint(
            parent, _pinocchio_joint(body), place * _se3(body.joint.placement), body.joint.name
        )
        outlet = _se3(body.joint.outlet)
        made.appendBodyToJoint(
            joint, pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia)), outlet
        )
        ends[index] = joint, outlet
    made.armature = model.armature
    return made


def _se3(frame: rf.Frame) -> pin.SE3:
    return pin.SE3(np.array(frame.rotation), np.array(frame.position))


def _pinocchio_joint(body: Body) -> pin.JointModel:
    if body.joint.kind == "free":
        return pin.JointModelFreeFlyer()
    (step,) = body.joint.steps
    if step.rho and step.eta:
        raise ValueError(f"{body.name}: helical joints are not part of the benchmark")
    kind, unaligned = (
        ("R", pin.JointModelRevoluteUnaligned)
        if step.rho
        else ("P", pin.JointModelPrismaticUnaligned)
    )
    axes = {tuple(row): letter for row, letter in zip(np.eye(3), "XYZ", strict=True)}
    letter = axes.get(step.axis)
    return getattr(pin, f"JointModel{kind}{letter}")() if letter else unaligned(np.array(step.axis))


def to_mujoco(model: rf.Model, feet: float = 0.0) -> mujoco.MjModel:
    """The robot in MuJoCo: bare rigid bodies on frictionless joints, everything else switched off.

    feet: where it is not zero, the contact points are spheres of that radius (m) over a plane, with
    MuJoCo's own contact, and the joints have the walker's springs and dampers.
    """
    spec = mujoco.MjSpec()
    spec.option.gravity = model.gravity
    spec.option.timestep = 1.0
    spec.compiler.degree = False
    for what in (
        "ACTUATION",
        "SENSOR",
        "EULERDAMP",
        "AUTORESET",
        *(() if feet else ("CONSTRAINT", "CONTACT")),
    ):
        spec.option.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}"))
    made = {-1: spec.worldbody}
    if feet:
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], contype=1, conaffinity=0
        )
    for index, body in enumerate(model.bodies):
        # MuJoCo's body frame is ramify's at q = 0; the joint's axis is given in it.
        frame = body.joint.placement @ body.joint.outlet
        inverse = body.joint.outlet.inverse()
        moments, axes = np.linalg.eigh(body.inertia)
        node = made[body.parent].add_body(
            name=body.name,
            pos=frame.position,
            quat=_quaternion(frame.rotation),
            explicitinertial=True,
            mass=body.mass,
            ipos=body.com,
            inertia=moments,
            iquat=_quaternion(axes * np.linalg.det(axes)),
        )
        made[index] = node
        for _, place in body.points if feet else ():
            ball = {
                "type": mujoco.mjtGeom.mjGEOM_SPHERE,
                "size": [feet, 0.0, 0.0],
                "friction": [0.7, 0.005, 0.0001],
            }
            node.add_geom(**ball, pos=place, mass=0.0, contype=0, conaffinity=1)
        if body.joint.kind == "free":
            node.add_freejoint(name=body.joint.name)
            continue
        (step,) = body.joint.steps
        kind = mujoco.mjtJoint.mjJNT_HINGE if step.rho else mujoco.mjtJoint.mjJNT_SLIDE
        sprung = (
            {
                "stiffness": models.SPRING,
                "damping": models.DAMPER,
                "springref": models.STANCE[index - 1],
            }
            if feet
            else {}
        )
        node.add_joint(
            name=body.joint.name,
            type=kind,
            axis=inverse.rotation @ np.array(step.axis),
            pos=inverse.position,
            armature=body.joint.armature[0],
            **sprung,
        )
    return spec.compile()


def _quaternion(rotation: Array) -> Array:
    out = np.empty(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(rotation).ravel())
    return out
