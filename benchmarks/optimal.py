"""Optimal control beside Crocoddyl: the same problems, steps, stop and start, one thread each.

    python benchmarks/optimal.py --crocoddyl ENVIRONMENT/bin/python [--rounds 5] [--batch 1000]

Crocoddyl needs an environment of its own: ``pip install crocoddyl==3.2.1 pin==4.0.0
example-robot-data`` (with a newer pin it aborts). Its wheel is built for SSE2, ramify compiles for
the processor at hand.

An iteration is the sum of the least times of its parts, taken in turn between the programs, less
that of an empty call. There: calcDiff, backwardPass and forwardPass with one step length; here:
derivatives, backward pass, linear step and eight step lengths. Both joints of the cart-pole are
driven, since Crocoddyl drives single ones only through Python. Whole solutions are measured in time
of the processor. Regularisation begins with 1e-9, here with limits 0.1 (there absolute, here
relative to the curvature). A batch is the sum of the least times of its parts of 50 problems.
Without --crocoddyl only ramify is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np

KNOTS, DT, STOP = 100, 0.01, 1e-9
FIRST = (1e-9, 0.1)  # regularisation at the start, without and with limits
PART = 50
FILES = {
    "UR5": "ur_description/urdf/ur5_robot.urdf",
    "Panda": "panda_description/urdf/panda.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
}
FRAMES = {"UR5": "tool0", "Panda": "panda_hand"}
EFFORTS = {
    "UR5": [60.0, 60.0, 60.0, 10.0, 10.0, 10.0],
    "Panda": [40.0, 40.0, 40.0, 40.0, 6.0, 6.0, 6.0],
}
WEIGHTS = {
    "pose": (1.0, 1e3),
    "speed": (3e-2, 1.0),
    "force": 1e-4,
    "posture": (1e-1, 1e2),
    "drift": (1e-2, 1.0),
}
CART = (1.0, 0.1, 0.5, 0.008)  # masses of cart and pole, half the pole, its inertia


def urdf(name: str) -> Path:
    data = distribution("example-robot-data").locate_file(
        "cmeel.prefix/share/example-robot-data/robots"
    )
    return Path(str(data)) / FILES[name]


def reaches(name: str, count: int, seed: int) -> list[dict[str, list[float]]]:
    """Random starts and ends of reaches, as configurations."""
    rng, n = np.random.default_rng(seed), 6 if name == "UR5" else 7
    low, high = (-1.2, 1.2) if name == "UR5" else (-0.5, 0.5)
    centre = np.zeros(n) if name == "UR5" else np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
    out = []
    for _ in range(count):
        start = centre + rng.uniform(low, high, n)
        out.append({"start": start.tolist(), "end": (start + rng.uniform(-0.5, 0.5, n)).tolist()})
    return out


# ---- ramify ----


class Ours:
    """Problems of ramify by name."""

    def __init__(self) -> None:
        self._problems: dict[Any, Any] = {}

    def problem(self, name: str, boxed: bool = False) -> Any:
        import ramify as rf
        from ramify.optimal import Problem, weighted

        key = name, boxed
        if key in self._problems:
            return self._problems[key]
        running, final = (
            {k: np.atleast_1d(w)[i if np.ndim(w) else 0] for k, w in WEIGHTS.items()}
            for i in (0, 1)
        )
        if name == "cart-pole":
            a, b, half, inertia = CART
            robot = rf.Builder("cart_pole").link("cart", joint="prismatic", axis=(1, 0, 0), mass=a)
            robot = robot.link("pole", parent="cart", axis=(0, 1, 0), mass=b, com=(0, 0, half),
                               inertia=(0, inertia, 0)).model()  # fmt: skip

            def cost(s: Any) -> Any:
                return weighted(1e-2, s.u) + weighted(1e-2, [*s.q, *s.v])

            def last(s: Any) -> Any:
                return weighted(1e2, [*s.q, *s.v])

            problem = Problem(robot, DT, KNOTS, cost, last, effort=np.inf)
        elif name == "solo12":
            robot = rf.load(urdf(name), base="free")

            def cost(s: Any) -> Any:
                state = weighted(running["posture"], s.posture_error(s.goal)) + weighted(
                    running["drift"], s.v
                )
                return state + weighted(running["force"], s.u)

            def last(s: Any) -> Any:
                return weighted(final["posture"], s.posture_error(s.goal)) + weighted(
                    final["drift"], s.v
                )

            problem = Problem(
                robot,
                DT,
                KNOTS,
                cost,
                last,
                parameters={"goal": robot.nq},
                effort=np.inf,
                passive=False,
                stops=False,
            )
        else:
            robot, frame = rf.load(urdf(name)), FRAMES[name]
            if name == "Panda":
                robot = rf.with_locked(robot, "panda_finger_joint1", 0.0)

            def cost(s: Any) -> Any:
                state = weighted(running["pose"], s.pose_error(frame, s.goal)) + weighted(
                    running["speed"], s.v
                )
                return state + weighted(running["force"], s.u)

            def last(s: Any) -> Any:
                return weighted(final["pose"], s.pose_error(frame, s.goal)) + weighted(
                    final["speed"], s.v
                )

            problem = Problem(
                robot, DT, KNOTS, cost, last, parameters={"goal": 12},
                effort=EFFORTS[name] if boxed else np.inf, passive=False, stops=False,
            )  # fmt: skip
        self._problems[key] = problem
        return problem

    def start(
        self, name: str, reach: dict[str, list[float]] | None, boxed: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        """q, and the goal as the parameters of the problem."""
        robot = self.problem(name, boxed).robot
        if name == "cart-pole":
            return np.array([0.5, 0.8]), {}
        if name == "solo12":
            goal = robot.neutral()
            goal[7:] += 0.4
            return robot.neutral(), {"goal": goal}
        assert reach is not None
        pose = robot.pose(np.array(reach["end"]), FRAMES[name])
        return np.array(reach["start"]), {"goal": (pose.rotation, pose.position)}

    def parts(self, name: str) -> dict[str, float]:
        """Least times of the parts of an iteration, us."""
        from ramify.optimal.problem import starts
        from ramify.optimal.solver import KnotSolver, SolverSettings

        problem = self.problem(name)
        q, parameters = self.start(name, reaches(name, 1, 1)[0] if name in FRAMES else None)
        solver = KnotSolver(problem, SolverSettings(STOP, 3, gradient=np.inf))
        solver.load(starts(problem, q, None), problem.parameter_rows(parameters), None)
        solver.run()
        space, code = solver.workspace, problem.code
        out = {}
        accept = code.part("accept")
        empty = _least(lambda: accept(space.pointer))  # a call that does next to nothing
        names = {"derivatives": "evaluate", "backward": "backward", "linear": "linear"}
        for name, part in {**names, "forward": "forward"}.items():
            function = code.part(part)
            out[name] = _least(lambda function=function: function(space.pointer)) - empty
        return out

    def solved(
        self, name: str, items: list[Any], boxed: bool, repeats: int
    ) -> list[dict[str, float]]:
        """Cost, iterations and least time (us) of each problem."""
        from ramify.optimal.problem import starts
        from ramify.optimal.solver import KnotSolver, SolverSettings

        problem = self.problem(name, boxed)
        solver = KnotSolver(problem, SolverSettings(STOP, 500, FIRST[boxed], gradient=np.inf))
        out = []
        for item in items:
            q, parameters = self.start(name, item, boxed)
            x, rows = starts(problem, q, None), problem.parameter_rows(parameters)
            least = np.inf
            for _ in range(repeats):
                begun = time.process_time()
                solver.load(x, rows, None)
                outcome = solver.run()
                least = min(least, time.process_time() - begun)
            out.append({
                "cost": solver.workspace["J"], "iterations": outcome.iterations, "us": 1e6 * least,
                "converged": outcome.reason == "converged",
            })  # fmt: skip
        return out

    def batch(self, name: str, items: list[Any], boxed: bool) -> float:
        """us for each problem of a batch, everything included."""
        from ramify.optimal import solve

        problem = self.problem(name, boxed)
        pairs = [self.start(name, item, boxed) for item in items]
        q = np.array([pair[0] for pair in pairs])
        goal = np.array(
            [np.concatenate([np.ravel(part) for part in pair[1]["goal"]]) for pair in pairs]
        )
        total = 0.0
        for i in range(0, len(items), PART):
            least = np.inf
            for _ in range(5):
                begun = time.process_time()
                solve(
                    problem, q[i : i + PART], goal=goal[i : i + PART], tolerance=STOP,
                    regularisation=FIRST[boxed], gradient=1e15,
                )  # fmt: skip
                least = min(least, time.process_time() - begun)
            total += least
        return 1e6 * total / len(items)


def _least(call: Any, count: int = 200) -> float:
    least = np.inf
    for _ in range(count):
        begun = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - begun)
    return 1e6 * least


# ---- Crocoddyl, in its own environment ----


class Theirs:
    """The same problems of Crocoddyl."""

    def shooting(
        self, name: str, reach: dict[str, list[float]] | None, boxed: bool
    ) -> tuple[Any, Any]:
        import crocoddyl
        import pinocchio as pin

        if name == "cart-pole":
            model = self._cart_pole(pin)
        elif name == "solo12":
            model = pin.buildModelFromUrdf(str(urdf(name)), pin.JointModelFreeFlyer())
        else:
            model = pin.buildModelFromUrdf(str(urdf(name)))
            if name == "Panda":
                fingers = [model.getJointId(f"panda_finger_joint{i}") for i in (1, 2)]
                model = pin.buildReducedModel(model, fingers, pin.neutral(model))
        state = crocoddyl.StateMultibody(model)
        floating = name == "solo12"
        kind = crocoddyl.ActuationModelFloatingBase if floating else crocoddyl.ActuationModelFull
        actuation = kind(state)
        nu = actuation.nu
        running, last = (crocoddyl.CostModelSum(state, nu) for _ in range(2))

        def add(costs: Any, key: str, residual: Any, weights: Any, scale: float) -> None:
            activation = (
                ()
                if weights is None
                else (crocoddyl.ActivationModelWeightedQuad(np.array(weights)),)
            )
            costs.addCost(key, crocoddyl.CostModelResidual(state, *activation, residual), scale)

        nv = model.nv
        if name == "cart-pole":
            q, goal = np.array([0.5, 0.8]), np.zeros(2)
            for costs, weight in ((running, 1e-2 / DT), (last, 1e2)):
                add(costs, "x", crocoddyl.ResidualModelState(state, np.zeros(4), nu), None, weight)
            force = 1e-2
        elif name == "solo12":
            q = pin.neutral(model)
            goal = q.copy()
            goal[7:] += 0.4
            x = np.concatenate([goal, np.zeros(nv)])
            for i, costs in enumerate((running, last)):
                weights = [WEIGHTS["posture"][i]] * nv + [WEIGHTS["drift"][i]] * nv
                add(
                    costs,
                    "x",
                    crocoddyl.ResidualModelState(state, x, nu),
                    weights,
                    1.0 if i else 1.0 / DT,
                )
            force = WEIGHTS["force"]
        else:
            assert reach is not None
            q, data = np.array(reach["start"]), model.createData()
            frame = model.getFrameId(FRAMES[name])
            pin.framesForwardKinematics(model, data, np.array(reach["end"]))
            pose = data.oMf[frame].copy()
            rest = np.concatenate([q, np.zeros(nv)])
            for i, costs in enumerate((running, last)):
                scale = 1.0 if i else 1.0 / DT
                add(
                    costs,
                    "p",
                    crocoddyl.ResidualModelFrameTranslation(state, frame, pose.translation, nu),
                    None,
                    scale * WEIGHTS["pose"][i],
                )
                add(
                    costs,
                    "r",
                    crocoddyl.ResidualModelFrameRotation(state, frame, pose.rotation, nu),
                    None,
                    scale * WEIGHTS["pose"][i],
                )
                add(
                    costs,
                    "v",
                    crocoddyl.ResidualModelState(state, rest, nu),
                    [0.0] * nv + [WEIGHTS["speed"][i]] * nv,
                    scale,
                )
            force = WEIGHTS["force"]
        add(running, "u", crocoddyl.ResidualModelControl(state, nu), None, force / DT)
        models = [
            crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
            for costs in (running, last)
        ]
        knot, end = (
            crocoddyl.IntegratedActionModelEuler(m, dt)
            for m, dt in zip(models, (DT, 0.0), strict=True)
        )
        if boxed:
            limit = np.array(EFFORTS[name])
            knot.u_lb, knot.u_ub = -limit, limit
        x0 = np.concatenate([q, np.zeros(nv)])
        problem = crocoddyl.ShootingProblem(x0, [knot] * KNOTS, end)
        problem.nthreads = 1
        solver = (crocoddyl.SolverBoxFDDP if boxed else crocoddyl.SolverFDDP)(problem)
        self._alive = models, knot, end, actuation
        return solver, x0

    def _cart_pole(self, pin: Any) -> Any:
        a, b, half, inertia = CART
        model = pin.Model()
        cart = model.addJoint(0, pin.JointModelPX(), pin.SE3.Identity(), "cart")
        model.appendBodyToJoint(
            cart, pin.Inertia(a, np.zeros(3), np.zeros((3, 3))), pin.SE3.Identity()
        )
        pole = model.addJoint(cart, pin.JointModelRY(), pin.SE3.Identity(), "pole")
        tensor = np.diag([1e-9, inertia, 1e-9])
        model.appendBodyToJoint(
            pole, pin.Inertia(b, np.array([0.0, 0.0, half]), tensor), pin.SE3.Identity()
        )
        return model

    def parts(self, name: str) -> dict[str, float]:
        solver, x0 = self.shooting(name, reaches(name, 1, 1)[0] if name in FRAMES else None, False)
        problem = solver.problem
        nu = problem.runningModels[0].nu
        solver.th_stop = 1e-30
        solver.solve([x0] * (KNOTS + 1), [np.zeros(nu)] * KNOTS, 3, False, 1e-9)
        empty = _least(lambda: solver.stoppingCriteria())
        xs, us = solver.xs, solver.us
        return {
            "calcDiff": _least(lambda: problem.calcDiff(xs, us)) - empty,
            "backwardPass": _least(lambda: solver.backwardPass()) - empty,
            "forwardPass": _least(lambda: solver.forwardPass(1.0)) - empty,
        }

    def solved(
        self, name: str, items: list[Any], boxed: bool, repeats: int, stops: list[float]
    ) -> list[dict[str, float]]:
        out = []
        for item, stop in zip(items, stops, strict=True):
            solver, x0 = self.shooting(name, item, boxed)
            nu, least = solver.problem.runningModels[0].nu, np.inf
            solver.th_stop = stop
            for _ in range(repeats):
                xs, us = [x0] * (KNOTS + 1), [np.zeros(nu)] * KNOTS
                begun = time.process_time()
                done = solver.solve(xs, us, 500, False, FIRST[0])
                least = min(least, time.process_time() - begun)
            out.append(
                {
                    "cost": solver.cost,
                    "iterations": solver.iter,
                    "us": 1e6 * least,
                    "converged": bool(done),
                }
            )
        return out


def peer() -> None:
    """Answer requests, a line of JSON each."""
    theirs = Theirs()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(getattr(theirs, name)(*arguments)), flush=True)


class Peer:
    """The other process."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, __file__, "--peer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
        )  # fmt: skip

    def ask(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit("the process with Crocoddyl has ended; see its message above")
            if line.startswith(("[", "{")):
                return json.loads(line)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--crocoddyl", help="Python of an environment with crocoddyl==3.2.1 and pin==4.0.0"
    )
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--batch", type=int, default=200)
    options.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.peer:
        peer()
        return
    ours, theirs = Ours(), Peer(chosen.crocoddyl) if chosen.crocoddyl else None
    print("| an iteration | ramify, µs | Crocoddyl, µs | ratio | parts here | parts there |")
    print("| :-- | --: | --: | --: | :-- | :-- |")
    for name in ("cart-pole", "UR5", "Panda", "solo12"):
        here: dict[str, float] = {}
        there: dict[str, float] = {}
        for _ in range(chosen.rounds):
            for least, new in (
                (here, ours.parts(name)),
                (there, theirs.ask("parts", name) if theirs else {}),
            ):
                for part, value in new.items():
                    least[part] = min(value, least.get(part, np.inf))
        a, b = sum(here.values()), sum(there.values())
        cells = (" / ".join(f"{k} {v:.1f}" for k, v in x.items()) for x in (here, there))
        print(
            f"| {name} | {a:.1f} | {b:.0f} | {b / a:.1f} | " + " | ".join(cells) + " |", flush=True
        )
    print("\n| 12 reaches, medians | ramify, µs | Crocoddyl, µs | ratio | cost equal or lower |")
    print("| :-- | --: | --: | --: | --: |")
    for name in ("UR5", "Panda"):
        for boxed in (False, True):
            items = reaches(name, 12, 7)
            here_all = ours.solved(name, items, boxed, 5)
            words = f"{name}{', limits' if boxed else ''}"
            if theirs is None:
                print(f"| {words} | {np.median([x['us'] for x in here_all]):.0f} | | | |")
                continue
            stops = [STOP * (1.0 + x["cost"]) for x in here_all]
            there_all = theirs.ask("solved", name, items, boxed, 5, stops)
            ratios = [b["us"] / a["us"] for a, b in zip(here_all, there_all, strict=True)]
            lower = sum(
                a["cost"] <= b["cost"] * (1.0 + 1e-6)
                for a, b in zip(here_all, there_all, strict=True)
            )
            middles = [np.median([x["us"] for x in one]) for one in (here_all, there_all)]
            cells = f"{middles[0]:.0f} | {middles[1]:.0f} | {np.median(ratios):.1f}"
            print(f"| {words} | {cells} | {lower} of 12 |", flush=True)
    print("\n| batch, a problem | ramify, µs | Crocoddyl one by one, µs | ratio |")
    print("| :-- | --: | --: | --: |")
    for name, boxed in (("UR5", False), ("Panda", True)):
        items = reaches(name, chosen.batch, 11)
        each = ours.batch(name, items, boxed)
        few = items[: min(60, len(items))]
        costs = ours.solved(name, few, boxed, 1)
        other = 0.0
        if theirs is not None:
            stops = [STOP * (1.0 + x["cost"]) for x in costs]
            other = float(
                np.mean([x["us"] for x in theirs.ask("solved", name, few, boxed, 2, stops)])
            )
        words = f"{name}{', limits' if boxed else ''}, {len(items)}"
        print(f"| {words} | {each:.0f} | {other:.0f} | {other / each:.1f} |", flush=True)
    print("\n| Mpc.step from Python, horizon 30 | median, µs | 90 % | 99 % | kHz |")
    print("| :-- | --: | --: | --: | --: |")
    for name in ("UR5", "Panda", "solo12"):
        print(mpc_row(ours, name), flush=True)


def mpc_row(ours: Ours, name: str) -> str:
    """Times of 2000 steps while the state moves."""
    from ramify.optimal import Mpc

    problem = ours.problem(name)
    problem.horizon = 30
    mpc = Mpc(problem)
    problem.horizon = KNOTS
    q, parameters = ours.start(name, reaches(name, 1, 1)[0] if name in FRAMES else None)
    knots = {
        key: np.concatenate([np.ravel(x) for x in value]) if isinstance(value, tuple) else value
        for key, value in parameters.items()
    }
    problem.horizon = 30
    v, times = np.zeros(problem.robot.nv), []
    mpc.step(q, v, **knots)
    for k in range(2000):
        now = q.copy()
        now[-3:] += 1e-3 * np.sin(0.1 * k)
        begun = time.perf_counter()
        mpc.step(now, v)
        times.append(1e6 * (time.perf_counter() - begun))
    problem.horizon = KNOTS
    middle, most, worst = np.percentile(times, [50, 90, 99])
    return f"| {name} | {middle:.1f} | {most:.1f} | {worst:.1f} | {1e3 / middle:.1f} |"


if __name__ == "__main__":
    main()
