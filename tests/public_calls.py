"""Every public call with right arguments, by name, found from the signatures: the functions and
classes of ``ramify`` and of its public modules, and their methods. One argument at a time is then
replaced by something odd.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

import ramify as rf

Z: Final = np.zeros(3)


@dataclass(frozen=True)
class Call:
    """A call with right arguments, and the names of all that it takes."""

    function: Callable[..., Any]
    right: dict[str, Any]
    names: tuple[str, ...]


class Used:
    """Make an object, then use it: what is wrong with its arguments may come out there."""

    def __init__(self, kind: type, use: Callable[[Any], Any]) -> None:
        self.__signature__ = inspect.signature(kind)
        self._kind, self._use = kind, use

    def __call__(self, **given: Any) -> Any:
        return self._use(self._kind(**given))


@cache
def folder() -> Path:
    """Where the calls write; removed by the system."""
    return Path(tempfile.mkdtemp(prefix="ramify-calls-"))


@cache
def arm() -> rf.Model:
    return rf.load("planar_3r")


@cache
def closed() -> rf.Model:
    return rf.load("four_bar")


@cache
def walker() -> rf.Model:
    return rf.load("planar_biped", base="free_euler")


@cache
def run() -> rf.Result:
    return rf.simulate(arm(), 0.03, q0=[0.3, 0.2, 0.1])


@cache
def rolled() -> rf.Rollout:
    return rf.rollout(arm(), Z, Z, steps=4, dt=0.01, tau=Z, every=1)


@cache
def study() -> rf.Study:
    made = rf.study(
        scenario={"robot": "two_link", "t_end": 0.02},
        vary={"damping": [0.0, 0.1]},
        keep={"metrics": ["max_speed"], "history": {"of": ["q"]}},
        ledger=folder() / "study.db",
    )
    made.run(engine="serial")
    return made


def motion() -> rf.motion.Trajectory:
    return rf.motion.Cycloid([0, 0, 0], [0.1, 0.2, 0.3])


RIGHT: Final[dict[str, Any]] = {
    "q": Z, "v": Z, "a": Z, "tau": Z, "q0": Z, "v0": Z, "q1": Z, "t": 0.5, "t_end": 0.02, "dt": 0.01,
    "steps": 2, "seed": 3, "height": 0.5, "point": (0.1, 0.0, 0.0), "body": "link2", "link": "link2",
    "command": [], "activation": None, "wrenches": None, "multipliers": None, "parameters": None,
    "name_or_path": "planar_3r", "rate_hz": None, "kp": 10.0, "kd": 1.0, "ki": 1.0, "limits": None,
    "actuated": None, "start": Z, "end": [0.1, 0.2, 0.3], "duration": 1.0, "begin": 0.0, "values": Z,
    "times": [0.0, 0.5, 1.0], "points": np.zeros((3, 3)), "mass": 1.0, "com": (0.0, 0.0, 0.1),
    "inertia": (0.1, 0.1, 0.1), "gravity": (0.0, 0.0, -9.81), "joint": "joint1", "rows": 11,
    "targets": {"link3": (1.0, 0.5, 0.0)}, "tasks": {"link3": (1.0, 0.5, 0.0)}, "position": (1.0, 0.5, 0.0),
    "a_joints": Z, "independent": None, "rates": None, "guess": None, "accelerations": None,
    "sequence": "XYZ", "count": None, "weight": 1.0, "rotation_weight": 1.0, "out": None, "most": 20,
    "number": 1, "progress": None, "title": None, "theme": "light", "what": "q", "order": None,
    "forms": None, "horizon": None, "tolerance": 1e-3, "index": 0, "memory": 1 << 20, "n": 3, "period": 1.0,
    "stride": 0.1, "lift": 0.05, "control": None,
}  # fmt: skip
"""Right values by the names of the parameters; what is not here has its default."""

NOT_CALLED: Final = {
    "LeftOutWarning", "LoopError", "ModelError", "RamifyError", "SimulationError", "StateError",
    # records that calls return, and texts over any scalar, which are not given arrays by users
    "Model", "Result", "Rollout", "Scenario", "Study", "view", "Contacts", "ContactText", "Normal",
    "Reaction", "Desired", "RobotText", "Driven", "Denoc", "Equations", "FloatingDenoc", "Formulation",
    "MassCentre", "StepTable", "Balance", "CoordinateReader", "Gait", "Leg", "Motion", "Posture",
    "legs", "measured_balance", "StepCheck", "Model.jax", "Model.torch", "Model.constraints", "Model.loop_forces",
    "Ground", "Terrain", "Trajectory", "Controller", "InvertedPendulum",
}  # fmt: skip


def _at_joint() -> Any:
    return rf.Builder("r").link("a", mass=1.0, inertia=(1, 1, 1))


class _ThenModel:
    """A method of a builder, and then its model, where the builder's parts are checked."""

    def __init__(self, name: str) -> None:
        method = getattr(rf.Builder, name)
        parameters = list(inspect.signature(method).parameters.values())[1:]
        self.__signature__ = inspect.Signature(parameters)
        self._name = name

    def __call__(self, **given: Any) -> Any:
        return getattr(_at_joint(), self._name)(**given).model()


def _driven() -> Path:
    """A pendulum with a drive."""
    made = _at_joint().actuator("drive", joint="a", kind="motor").model()
    made.save(folder() / "driven.yaml")
    return folder() / "driven.yaml"


def _mechanism() -> Any:
    return rf.Mechanism("m").body("a", mass=1.0, inertia=(1, 1, 1))


def _robot_calls() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Calls whose right arguments are their own."""
    model, loops, legs = arm(), closed(), walker()
    c, m = rf.control, rf.motion
    q3 = np.zeros(loops.nv)
    at = loops.assemble()
    yield "Model.assemble", loops.assemble, {"independent": {"crank": 0.1}, "guess": at.q}
    yield "closed.constraints", loops.constraints, {"q": at.q, "v": at.v}
    yield "closed.forward_dynamics", loops.forward_dynamics, {"q": at.q, "v": at.v, "tau": q3}
    yield "closed.inverse_dynamics", loops.inverse_dynamics, {"q": at.q, "v": at.v, "a": q3}
    yield (
        "closed.hybrid_dynamics",
        loops.hybrid_dynamics,
        {"q": at.q, "v": at.v, "a_joints": [0.0], "prescribed": ["crank"]},
    )
    yield "closed.singularities", loops.singularities, {"q": at.q}
    yield (
        "closed.loop_forces",
        loops.loop_forces,
        {"q": at.q, "multipliers": np.zeros(loops.constraints(at.q).J.shape[0])},
    )
    yield "closed.reactions", loops.reactions, {"q": at.q, "v": at.v, "a": q3}
    yield "closed.simulate", rf.simulate, {"model": loops, "t_end": 0.01, "q0": at.q}
    yield (
        "Model.hybrid_dynamics",
        legs.hybrid_dynamics,
        {"q": legs.neutral(), "v": np.zeros(legs.nv), "a_joints": np.zeros(legs.nv - 6)},
    )
    yield (
        "Model.derivatives",
        lambda name, q, v, tau, **more: model.derivatives(name, q, v, tau, **more),
        {"name": "forward_dynamics", "q": Z, "v": Z, "tau": Z, "passive": False},
    )
    yield (
        "Model.weighted_derivatives",
        model.weighted_derivatives,
        {"name": "inverse_dynamics", "inputs": [Z, Z, Z], "weights": [Z]},
    )
    yield (
        "with_inertial_parameters",
        rf.with_inertial_parameters,
        {"model": model, "parameters": model.dynamic_parameters},
    )
    yield (
        "Model.derivative_along",
        model.derivative_along,
        {"name": "inverse_dynamics", "inputs": [Z, Z, Z], "directions": [Z, Z, Z]},
    )
    yield "Model.named", model.named, {"values": Z}
    yield "Model.udu", model.udu, {"q": Z, "level": "joint"}
    yield "Model.kernel", model.kernel, {"name": "bias", "tier": "numpy", "dtype": "float64"}
    yield "kernel", lambda q, v: model.kernel("bias")(q, v), {"q": Z, "v": Z}
    yield "Model.casadi", model.casadi, {"name": "bias"}
    yield "Model.save", model.save, {"path": folder() / "arm.yaml"}
    yield "Model.of", rf.Model.of, {"robot": model}
    for name in ("op_count", "joint_slice", "joint", "body", "body_index", "pose", "attachment"):
        right = {"op_count": "bias", "joint": "joint1", "joint_slice": "joint1"}.get(name, "link2")
        more = {"q": Z} if name == "pose" else {}
        yield (
            f"Model.{name}",
            getattr(model, name),
            {**more, ("link" if name == "attachment" else "name"): right},
        )
    for name in ("frame_motion", "frame_motion_derivatives"):
        yield f"Model.{name}", getattr(model, name), {"q": Z, "v": Z, "a": Z, "name": "link2"}
    # runs
    result, roll, many = run(), rolled(), study()
    yield (
        "rollout",
        rf.rollout,
        {"model": model, "q0": Z, "v0": Z, "steps": 2, "dt": 0.01, "tau": Z},
    )
    yield "simulate", rf.simulate, {"model": model, "t_end": 0.02, "q0": Z, "v0": Z}
    yield (
        "Result.animate",
        result.animate,
        {"path": folder() / "x.gif", "size": (64, 36), "fps": 5.0, "speed": 0.1},
    )
    yield "Result.compare", result.compare, {"other": result}
    yield "Result.of", rf.Result.of, {"run": result}
    result.save(folder() / "run.nc")
    yield "Result.open", rf.Result.open, {"path": folder() / "run.nc", "model": model}
    yield "Result.plot", result.plot, {"what": "q", "joints": ["joint1"], "title": "x"}
    for name, file in (("report", "r.html"), ("save", "r.nc"), ("to_csv", "r.csv")):
        yield f"Result.{name}", getattr(result, name), {"path": folder() / file}
    yield "Result.to_redysim", result.to_redysim, {"directory": folder() / "redysim"}
    yield "Rollout.gradient", roll.gradient, {"q": np.ones((4, 3)), "v": np.ones((4, 3))}
    yield "Rollout.tangent", roll.tangent, {"q0": np.ones(3), "v0": np.ones(3)}
    yield (
        "Rollout.result",
        lambda **given: rf.rollout(model, np.zeros((2, 3)), Z, steps=2, dt=0.01, every=1).result(
            *given.values()
        ),
        {"index": 1},
    )
    # studies and scenarios
    yield "Study.open", rf.Study.open, {"path": many.ledger, "metrics": {}, "metrics_version": "1"}
    yield "Study.run", many.run, {"engine": "serial", "jobs": 1}
    yield "Study.export", many.export, {"path": folder() / "s.csv"}
    yield "Study.page", many.page, {"path": folder() / "s.html"}
    yield "Study.plot", many.plot, {"columns": ["max_speed"]}
    yield (
        "study",
        rf.study,
        {
            "scenario": {"robot": "two_link", "t_end": 0.02},
            "vary": {"damping": [0.1]},
            "set": {},
            "points": {"runs": 2},
            "keep": {},
            "name": "s",
            "most_runs": 9,
            "ledger": folder() / "t.db",
        },
    )
    yield "scenario", rf.scenario, {"name_or_path": "kuka_free_fall"}
    yield (
        "Scenario.again",
        rf.Scenario.again,
        {"result": rf.scenario("kuka_free_fall").run(t_end=0.01)},
    )
    yield (
        "Scenario.run",
        lambda **given: rf.scenario("kuka_free_fall").run(**given),
        {
            "t_end": 0.01,
            "control": None,
            "ground": None,
            "initial": {"q": [0] * 6},
            "q0": np.zeros(6),
            "damping": 0.1,
            "rtol": 1e-6,
            "dt_out": 0.01,
            "method": "auto",
            "wrenches": None,
        },
    )
    # robots
    yield "Builder", Used(rf.Builder, lambda made: made.link("a", mass=1.0).model()), {"name": "r"}
    yield (
        "Builder.link",
        _ThenModel("link"),
        {"name": "b", "parent": "a", "joint": "revolute", "limits": (-1, 1)},
    )
    yield "Builder.frame", _ThenModel("frame"), {"name": "f", "link": "a"}
    yield "Builder.keyframe", _ThenModel("keyframe"), {"name": "k", "q": [0.1]}
    yield (
        "Builder.loop",
        lambda **given: _at_joint().loop(**given).model(),
        {"name": "l", "joint": "revolute", "first": ("a", (0, 0, 0)), "second": (None, (0, 0, 0))},
    )
    yield "Builder.actuator", _ThenModel("actuator"), {"name": "d", "joint": "a", "kind": "motor"}
    yield "Builder.tendon", _ThenModel("tendon"), {"name": "d", "joints": {"a": 1.0}}
    yield (
        "Mechanism",
        Used(rf.Mechanism, lambda made: made.body("a", mass=1.0).joint("j", None, "a").model()),
        {"name": "r"},
    )
    yield "Mechanism.body", lambda **given: _mechanism().body(**given), {"name": "b"}
    yield (
        "Mechanism.joint",
        lambda **given: _mechanism().joint(**given).model(),
        {"name": "j", "first": (None, (0, 0, 0)), "second": ("a", (0, 0, 0)), "kind": "revolute"},
    )
    yield (
        "Mechanism.model",
        _mechanism().joint("j", (None, (0, 0, 0)), ("a", (0, 0, 0))).model,
        {"cut": None},
    )
    yield (
        "Frame",
        Used(rf.Frame, lambda made: rf.with_tool(model, "link3", "t", made)),
        {"rotation": np.eye(3), "position": Z},
    )
    yield (
        "from_dh",
        rf.from_dh,
        {
            "rows": [(0, 0, 0, 0), (1, 0, 0, 0)],
            "mass": [1, 1],
            "com": np.zeros((2, 3)),
            "inertia": [(1.0, 1.0, 1.0)] * 2,
        },
    )
    yield "with_locked", rf.with_locked, {"model": model, "joint": "joint1", "at": 0.1}
    yield "with_parameters", rf.with_parameters, {"model": model, "parameters": {"link1.mass": 2.0}}
    yield (
        "with_contact_points",
        rf.with_contact_points,
        {"model": model, "points": {"link1": {"p": Z}}},
    )
    yield "with_tool", rf.with_tool, {"model": model, "link": "link3", "name": "t"}
    yield (
        "with_loop",
        rf.with_loop,
        {"model": model, "name": "l", "first": ("link3", (0, 0, 0)), "second": (None, (1, 0, 0))},
    )
    yield "to_c", rf.to_c, {"model": model, "folder": folder() / "c", "algorithms": ["bias"]}
    yield (
        "to_fmu",
        rf.to_fmu,
        {"model": model, "path": folder() / "x.fmu", "platforms": (), "derivatives": False},
    )
    yield "load", rf.load, {"name_or_path": "chain", "n": 3}
    # control, motion, contact: also used
    for name, kind in inspect.getmembers(c, inspect.isclass):
        if name in {*NOT_CALLED, "Commands"} or not issubclass(kind, c.Controller):
            continue
        given: dict[str, Any] = {"motion": motion()}
        given = {
            "Torque": {"tau": Z}, "Sum": {"parts": [c.Torque(Z)]}, "Function": {"f": lambda t, q, v: Z},
            "TorqueTable": {"times": [0.0, 1.0], "values": np.zeros((2, 3))},
            "GravityCompensation": {"kd": 0.1},
        }.get(name, given)  # fmt: skip
        yield (
            f"control.{name}",
            Used(kind, lambda made: rf.simulate(model, 0.01, control=made)),
            given,
        )
    yield "Controller.torque", c.PD(motion()).torque, {"model": model, "t": 0.5, "q": Z, "v": Z}
    drives = rf.load(_driven())
    yield "Commands.to", c.Commands.to, {"model": drives, "commands": {"drive": 0.1}}
    yield (
        "control.Commands",
        Used(c.Commands, lambda made: rf.simulate(drives, 0.01, control=made)),
        {"commands": {"drive": 0.1}},
    )
    yield (
        "Model.actuator_forces",
        drives.actuator_forces,
        {"q": [0.1], "v": [0.0], "command": [0.5]},
    )
    for name, kind in inspect.getmembers(m, inspect.isclass):
        if name in NOT_CALLED or not issubclass(kind, m.Trajectory):
            continue
        given = {
            "PerJoint": {"parts": [m.Hold([0.1])] * 3}, "Sequence": {"parts": [motion(), m.Hold([0.1, 0.2, 0.3])]},
            "Harmonic": {"offset": Z, "amplitude": Z, "frequency": 1.0}, "Hold": {"q": Z},
            "PlanarLine": {"start": (1.0, 0.5), "end": (0.5, 1.0), "lengths": (1.0, 1.0)},
            "Spline": {"times": [0.0, 0.5, 1.0], "points": np.zeros((3, 3))},
            "Table": {"times": [0.0, 0.5, 1.0], "values": np.zeros((3, 3))},
            "TimeFunction": {"q": lambda t: [t, t, t]},
        }.get(name, {"start": Z, "end": [0.1, 0.2, 0.3]})  # fmt: skip
        yield f"motion.{name}", Used(kind, lambda made: made.at([0.1, 0.2])), given
    yield "Trajectory.at", motion().at, {"t": [0.1, 0.2]}
    yield "Trajectory.samples", motion().samples, {"rows": 5}
    yield "PerJoint.named", m.PerJoint.named, {"model": model, "parts": {"joint1": m.Hold([0.1])}}
    yield (
        "Gait.of",
        m.Gait.of,
        {"model": legs, "height": 0.5, "period": 1.0, "stride": 0.1, "lift": 0.05},
    )
    walk = m.Gait.of(legs, height=0.5, period=1.0, stride=0.1, lift=0.05)
    yield "Gait.ankles", walk.ankles, {"t": 0.1}
    yield "planned_balance", m.planned_balance, {"model": legs, "gait": walk, "t": [0.1, 0.2]}
    yield "support_polygon", m.support_polygon, {"points": [[0, 0, 0], [1, 0, 0], [0, 1, 0]]}
    yield (
        "support_margin",
        m.support_margin,
        {"polygon": [[0, 0], [1, 0], [0, 1]], "point": [0.1, 0.1]},
    )
    for name, given in (
        ("Target", {"body": "link3", "position": (1.0, 0.5, 0.0)}),
        ("CenterOfMass", {"position": (0.5, 0.5, 0.0), "axes": "x"}),
        ("KeepPosture", {"q": Z}),
        ("RelativePose", {"body": "link3", "reference": "link1", "position": (1.0, 0.5, 0.0)}),
    ):
        yield (
            f"motion.{name}",
            Used(
                getattr(m, name),
                lambda made: rf.ik(
                    model,
                    [made, m.Target("link3", (1, 0.5, 0))],
                    restarts=1,
                    max_iterations=5,
                    strict=False,
                ),
            ),
            given,
        )
    feet = rf.with_contact_points(model, {"link3": {"p": (0, 0, 0)}})
    for name, kind in inspect.getmembers(rf.contact, inspect.isclass):
        if name in NOT_CALLED:
            continue
        if issubclass(kind, rf.contact.Terrain):
            given = {"heights": np.zeros((3, 3)), "spacing": 0.5} if name == "HeightField" else {}
            yield (
                f"contact.{name}",
                Used(
                    kind,
                    lambda made: rf.contact.forces(
                        feet, rf.contact.HuntCrossley(terrain=made), Z, Z
                    ),
                ),
                given,
            )
        elif issubclass(kind, rf.contact.Ground):
            yield (
                f"contact.{name}",
                Used(kind, lambda made: rf.contact.forces(feet, made, Z, Z)),
                {},
            )
            yield (
                "contact.forces",
                rf.contact.forces,
                {"model": feet, "ground": kind(), "q": Z, "v": Z},
            )
            yield (
                "contact.kernel",
                rf.contact.kernel,
                {"model": feet, "ground": kind(), "tier": "numpy"},
            )
    yield "as_ground", rf.contact.as_ground, {"ground": "firm", "model": feet}
    # formulations
    f = rf.formulations
    yield "crossover", f.crossover, {"cheaper": "denoc_inverse", "dearer": "denoc_forward"}
    for name in ("general_count", "published_count"):
        yield name, getattr(f, name), {"name": "denoc_inverse", "n": 5}
    yield "equations", f.equations, {"model": model, "seconds": 20.0}
    yield "step_table", f.step_table, {"model": model, "name": "forward_dynamics"}
    table = f.denoc_matrices(model, Z, Z)
    yield "Denoc.block", table.block, {"name": "N_l", "i": 1, "j": 0}
    yield "Denoc.forces", table.forces, {"a": Z}
    yield "Denoc.of_each", table.of_each, {"name": "Psi"}
    centre = f.mass_centre_matrices(model, Z, Z)
    for name, given in (
        ("B", {"i": 2, "j": 1}),
        ("E", {"k": 2}),
        ("L", {"k": 2}),
        ("alpha", {"i": 1, "k": 2}),
        ("p", {"i": 1}),
    ):
        yield f"MassCentre.{name}", getattr(centre, name), given
    yield "StepTable.equations", f.step_table(model, "forward_dynamics").equations, {"within": True}
    yield "denoc_matrices", f.denoc_matrices, {"model": model, "q": Z, "v": Z}
    yield "mass_centre_matrices", f.mass_centre_matrices, {"model": model, "q": Z, "v": Z}
    yield (
        "floating_denoc",
        f.floating_denoc,
        {"model": legs, "q": legs.neutral(), "v": np.zeros(legs.nv)},
    )


def _others(known: set[str]) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Functions and methods whose right arguments follow from the names of their parameters."""
    places = [("", rf), ("motion.", rf.motion), ("contact.", rf.contact), ("control.", rf.control)]
    for prefix, place in [*places, ("formulations.", rf.formulations)]:
        for name in getattr(place, "__all__", dir(place)):
            value = getattr(place, name)
            own = getattr(value, "__module__", "").startswith("ramify")
            if name in NOT_CALLED:
                continue
            if own and inspect.isfunction(value) and not known & {name, f"{prefix}{name}"}:
                takes = "model" in inspect.signature(value).parameters
                yield f"{prefix}{name}", value, {"model": arm()} if takes else {}
    of = {"Model": arm(), "Result": run(), "Study": study(), "Rollout": rolled()}
    for name, thing in of.items():
        for method in dir(type(thing)):
            if method.startswith("_") or f"{name}.{method}" in {*known, *NOT_CALLED}:
                continue
            if inspect.isfunction(inspect.getattr_static(type(thing), method)):
                yield f"{name}.{method}", getattr(thing, method), {}


@cache
def calls() -> dict[str, Call]:
    """Every public call with right arguments."""
    found: dict[str, Call] = {}
    for source in (_robot_calls, lambda: _others(set(found))):
        for name, function, own in source():
            listed = inspect.signature(function).parameters.values()
            named = [x for x in listed if x.kind not in (x.VAR_KEYWORD, x.VAR_POSITIONAL)]
            needed = [x.name for x in named if x.default is x.empty]
            missing = [x for x in needed if x not in own and x not in RIGHT]
            assert not missing, f"give right values for {missing} of {name}"
            right = {x: RIGHT[x] for x in needed if x not in own} | own
            names = dict.fromkeys((*right, *(x.name for x in named)))
            found[name] = Call(function, right, tuple(names))
    return found


ODD: Final[dict[str, Any]] = {
    "None": None, "True": True, "-1": -1, "0": 0, "2**70": 2**70, "10**400": 10**400, "1.5": 1.5, "nan": float("nan"), "inf": float("inf"),
    "-1e300": -1e300, "1e-320": 1e-320, "1j": 1j, "text": "a", "empty text": "", "bytes": b"x", "nul": "a\0b", "surrogate": "\ud800",
    "empty list": [], "empty mapping": {}, "[None]": [None], "['a']": ["a"], "{'a': 1}": {"a": 1}, "{1: 2}": {1: 2}, "object": object(), "function": len,
    "class": dict, "set": {1, 2}, "generator": (x for x in ()), "float32": np.float32(0.5), "int8": np.int8(3), "zeros": np.zeros(3),
    "bools": np.array([True, False, True]), "rows": np.zeros((2, 3)), "no rows": np.zeros((0, 3)), "empty": np.zeros(0), "longer": np.zeros(4),
    "nans": np.full(3, np.nan), "huge": np.full(3, 1e200), "complex": np.zeros(3, complex), "objects": np.array([None] * 3),
    "texts": np.array(["a", "b", "c"]), "dates": np.zeros(3, "M8[s]"), "masked": np.ma.masked_array(np.zeros(3), [True] * 3), "masked one": np.ma.masked,
    "eye": np.eye(3), "deep": [[[0.0], [0.0]]], "ragged": [[1.0], [2.0, 3.0]], "nested": [[0.0, 0.0, 0.0]], "strings": ["1", "2", "3"],
    "record": np.zeros(3, [("x", float)]), "model": None, "path": Path("/nonexistent/x.y"),
}  # fmt: skip
"""What users pass by mistake."""
