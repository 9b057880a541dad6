"""Cases of the fuzzer with odd options instead of damaged files: inverse kinematics, environments,
mock-up units, keys of scenarios.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

import ramify as rf
from ramify.contact import LAWS
from ramify.control import CONTROLLERS
from ramify.motion import MOTIONS
from ramify.runs.run_options import OPTIONS
from ramify.scenario_files.scenario_reader import Head

Rng = np.random.Generator


def pick(rng: Rng, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


def odd(rng: Rng, right: Any, size: int = 3) -> Any:
    """The right value, or one of those that users pass by mistake."""
    if rng.random() < 0.85:
        return right
    return pick(
        rng,
        (
            None, -1, 0, 1, 1.5, 7, float("nan"), float("inf"), -1e300, 1e300, 1e-320, 2**70, "a", "", b"x", True, 1j,
            [], {}, [None], ["a"], {"a": 1}, object(), np.float32(0.5), np.int8(3), np.zeros(size), np.zeros((2, size)),
            np.zeros((0, size)), np.zeros(size + 1), np.full(size, np.nan), np.full(size, 1e200), np.zeros(size, complex),
            np.array([None] * size), np.ma.masked_array(np.zeros(size), [True] * size), np.eye(3), -np.eye(3), len, np.ma.masked,
        ),
    )  # fmt: skip


def some(rng: Rng, options: dict[str, Any]) -> dict[str, Any]:
    """A few of the options, each right or odd."""
    names = [name for name in options if rng.random() < 0.4]
    return {name: odd(rng, options[name]) for name in names}


@cache
def arm() -> rf.Model:
    return rf.load("planar_3r")


def _task(rng: Rng) -> Any:
    model = arm()
    tip, q = model.bodies[-1].name, np.array([0.3, 0.4, 0.5])
    pose, M = model.pose(q, tip), rf.motion
    body, place, turn = (odd(rng, x) for x in (tip, pose.position, pose.rotation))
    weights = some(rng, {"weight": 2.0})
    match int(rng.integers(6)):
        case 0:
            return M.Target(body, place, **some(rng, {"rotation": turn, "point": [0.1, 0, 0]}))
        case 1:
            return M.CenterOfMass(place, axes=odd(rng, "xy"), **weights)
        case 2:
            return M.RelativePose(body, odd(rng, model.bodies[0].name), place, **weights)
        case 3:
            return M.KeepPosture(odd(rng, q), **some(rng, {"joints": [model.joints[0].name]}))
        case 4:
            return M.Target(body, rotation=turn, **weights)
        case _:
            return odd(rng, M.Target(tip, pose.position))


def inverse_kinematics(rng: Rng) -> None:
    model = arm()
    q = np.array([0.4, 0.3, 0.6])
    tasks = [_task(rng) for _ in range(int(rng.integers(1, 3)))]
    targets = odd(rng, tasks if rng.random() < 0.5 else tasks[0])
    joints = [joint.name for joint in model.joints]
    if rng.random() < 0.5:
        more = {"tolerance": 1e-8, "restarts": 1, "max_iterations": 5, "joints": joints,
                "limits": False, "strict": False}  # fmt: skip
        found = rf.ik(model, targets, odd(rng, q), **{"restarts": 1, **some(rng, more)})
        assert found.q.shape[-1] == 3
        assert np.isfinite(found.q).all()
    else:
        more = {
            "gain": 0.5,
            "damping": 1e-3,
            "joints": joints,
            "limits": True,
            "speeds": np.ones(3),
        }
        v = rf.differential_ik(model, odd(rng, q), targets, odd(rng, 0.01), **some(rng, more))
        assert v.shape[-1] == 3
        assert np.isfinite(v).all()


@cache
def sound_env() -> Any:
    from ramify.envs import RobotVectorEnv

    return RobotVectorEnv(arm(), 2, reward=lambda a, b: np.zeros(2), scale=1.0)


def environments(rng: Rng) -> None:
    from ramify.envs import RobotVectorEnv

    if rng.random() < 0.3:
        options = some(
            rng,
            {"dt": 0.002, "substeps": 2, "max_steps": 5, "render_mode": None, "home": np.zeros(3),
             "damping": 0.0, "kp": None, "kd": 0.0, "method": None, "ground": None, "parameters": None,
             "size": (48, 27)},
        )  # fmt: skip
        given = {"reward": lambda a, b: 0.0, "scale": odd(rng, 1.0), **options}
        env = RobotVectorEnv(arm(), odd(rng, 2), **given)
    else:
        env = sound_env()
    n = env.num_envs
    env.reset(**some(rng, {"seed": 3, "options": None}))
    for _ in range(2):
        observation, reward, *_ = env.step(odd(rng, np.zeros((n, 3))))
        assert np.isfinite(observation).all()
        assert reward.shape == (n,)


def mock_up_units(rng: Rng) -> None:
    model = arm()
    q, tip = np.zeros(3), model.bodies[-1].name
    options = {"version": "2.0", "inputs": "forces", "frames": [tip], "q0": q, "v0": q,
               "damping": 0.1, "control": None, "ground": None}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        given = {**some(rng, options), "platforms": odd(rng, ()) if rng.random() < 0.3 else ()}
        rf.to_fmu(model, Path(folder) / "arm.fmu", **given)


_WORDS: Final = ("0", "-1", "1e308", ".nan", ".inf", "true", "''", "null", "[]", "{}", "a", "[1, 2, 3]", "[a, b]", "{a: 1}", "9" * 400,
                 "[[1, 2], [3]]", "2 * pi", "1 / 0", "${x}", "planar_3r", "!!python/none x", "*a", "&a 1", "[0, 0, 0]", "0.5")  # fmt: skip


@cache
def _keys() -> dict[str, tuple[str, ...]]:
    kinds = {"motion": MOTIONS, "control": CONTROLLERS, "ground": LAWS}
    options = [name for name, row in OPTIONS.items() if row.in_files]
    head = (*(f.name for f in fields(Head)), *options)
    found = {"": head, "initial": ("q", "v", "keyframe", "height")}
    for part, registry in kinds.items():
        classes = [registry[name] for name in registry]
        found[part] = ("kind", *sorted({f.name for c in classes for f in fields(c)}))
    return found


def scenario_keys(rng: Rng) -> None:
    """Known keys with values that may not fit."""
    lines = {"name": "x", "robot": "planar_3r", "t_end": "0.1"}
    for _ in range(int(rng.integers(1, 4))):
        part = pick(rng, tuple(_keys()))
        names = _keys()[part]
        if part:
            kinds = {"motion": MOTIONS, "control": CONTROLLERS, "ground": LAWS}.get(part, ())
            own = {pick(rng, names): pick(rng, _WORDS) for _ in range(int(rng.integers(0, 4)))}
            own |= {"kind": pick(rng, tuple(kinds))} if kinds and rng.random() < 0.9 else {}
            lines[part] = "{" + ", ".join(f"{k}: {v}" for k, v in own.items()) + "}"
        else:
            lines[pick(rng, names)] = pick(rng, _WORDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text("".join(f"{k}: {v}\n" for k, v in lines.items()), encoding="utf-8")
        rf.scenario(path)
