"""Whatever loads also saves, and loads again equal: robots of all formats, and robots whose every
field is off its default.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import same
from packages import files, package
from saved_robots import saved

import ramify as rf
from ramify.api.model import Model
from ramify.core.bounds import LARGEST
from ramify.documents.mistakes import Mistakes
from ramify.documents.yaml_text import parse_yaml
from ramify.files.load import read_yaml
from ramify.files.robot_writer import _document, _values, to_yaml
from ramify.model.answers import Attachment
from ramify.model.body import Body
from ramify.model.collisions import Collisions, DeclaredPair
from ramify.model.elements import Bristles, Element, Friction, Spring, Stop
from ramify.model.frame import Frame, from_rpy
from ramify.model.joint import Joint
from ramify.model.loop import LOOP_KINDS, Loop, LoopEnd
from ramify.model.machine import Actuator, Keyframe, Machine, Tendon
from ramify.model.shape import Shape


def loaded(path: Path) -> Model | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return rf.load(path)
        except rf.ModelError:
            return None


@pytest.mark.parametrize("name", rf.robots())
def test_built_in_robots(name: str) -> None:
    saved(rf.load(name), name)


def some_urdf() -> Iterator[Path]:
    yield from Path(package("example-robot-data")).rglob("*.urdf")
    yield from list(files("pybullet", ".urdf"))[::30]


def test_urdf_robots_of_two_packages() -> None:
    count = 0
    for path in some_urdf():
        m = loaded(path)
        if m is not None:
            saved(m, str(path))
            count += 1
    assert count > 60


def test_sdf_robots_of_a_package() -> None:
    found = [m for path in files("pybullet", ".sdf") if (m := loaded(path)) is not None]
    for m in found:
        saved(m, m.name)
    assert found


def test_mjcf_robots_of_four_packages() -> None:
    count = 0
    for name in ("dm_control", "gymnasium", "gymnasium-robotics", "robosuite"):
        for path in list(files(name, ".xml"))[::4]:
            m = loaded(path)
            if m is not None:
                saved(m, str(path))
                count += 1
    assert count > 20


@pytest.mark.parametrize("name", ["planar_3r", "hexapod", "slider_crank"])
def test_a_run_keeps_the_robot(name: str, tmp_path: Path) -> None:
    m = rf.load(name)
    q = m.assemble().q if m.loops else m.neutral()
    r = rf.simulate(m, 0.002, q, dt_out=0.001)
    r.save(tmp_path / "run.nc")
    again = rf.Result.open(tmp_path / "run.nc")
    assert to_yaml(again.model) == to_yaml(m)
    same(again.q, r.q, "q")
    again.save(tmp_path / "second.nc")
    same(rf.Result.open(tmp_path / "second.nc").v, r.v, "v")


# ---- robots with every field off its default ----


def off_default(kind: type, own: dict[str, Any]) -> Any:
    """A record of which no field has its default; ``own`` has a value for every field with one."""
    made = kind(**own)
    for f in fields(kind):
        if f.name in _UNSAVED.get(kind, ()):
            continue
        assert f.name in own, f"{kind.__name__}.{f.name} is new: give it a value off its default"
        with_default = f.default is not MISSING or f.default_factory is not MISSING
        if with_default:
            assert not _equal(getattr(made, f.name), default_of(f)), f"{kind.__name__}.{f.name}"
    return made


_UNSAVED: dict[type, tuple[str, ...]] = {Frame: ("angle",), Body: ("parent",)}


def default_of(f: Field[Any]) -> Any:
    return f.default if f.default is not MISSING else f.default_factory()  # type: ignore[misc]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


def frame(k: float) -> Frame:
    turn = from_rpy(0.1 * k, -0.2, 0.3 + k)
    return off_default(Frame, {"rotation": turn, "position": np.array([0.1, -0.2 * k, 0.3])})


def element(k: float, **changes: Any) -> Element:
    friction = off_default(Friction, {
        "forward": 0.3, "backward": 0.2 + k, "static": 2.0 + k, "stribeck_speed": 0.05 + k,
        "slip_speed": 0.01, "stribeck": "exponential",
        "bristles": off_default(Bristles, {"stiffness": 100.0, "damping": 2.0, "time": 0.01}),
    })  # fmt: skip
    own = {
        "armature": 0.02 + k, "damping": (0.1, 0.2 + k, 0.3), "friction": friction,
        "spring": Spring((1.5, 0.2, 0.1 + k), (0.4,)), "stop": Stop(0.01 + k, 0.7), "effort": 5.0,
        "velocity": 7.0 + k, "cone": 0.9, "lifts": True, "backward_effort": 3.0 + k, "gear": 20.0,
    }  # fmt: skip
    made = off_default(Element, own)
    return replace(made, **changes)


def full_robot() -> Model:
    """A robot of all joint types and records, with no field at its default."""
    hills = off_default(Shape, {
        "kind": "height_field", "size": (0.1, 0.2), "frame": frame(1), "colour": "#12ab34",
        "name": "hills", "drawn": False, "group": 6, "mask": 2**31 + 1, "friction": 0.3,
        "restitution": 0.25, "priority": -2, "slippery": True,
        "heights": ((0.1, 0.2, -0.3), (0.4, 0.5, 0.6)),
    })  # fmt: skip
    shape = replace(hills, kind="box", size=(0.1, 0.2, 0.3), heights=(), name="block")
    again = replace(shape, kind="plane", size=(), name="", drawn=True, group=1, mask=0)
    world = (
        hills, again, replace(again, kind="capsule", size=(0.1, 0.2), mask=1),
        replace(again, kind="sphere", size=(0.1,), group=0),
    )  # fmt: skip
    pair = off_default(DeclaredPair, {
        "first": "body 1", "second": "hills", "friction": 0.1, "restitution": 0.75,
    })  # fmt: skip
    collisions = off_default(Collisions, {
        "world": world, "pairs": (pair, DeclaredPair("body 0", "body 2")),
        "excludes": (("body 3", "hills"), ("world", "plate")), "neighbours": True,
    })  # fmt: skip
    bodies: list[Body] = []
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("revolute", {"axis": (0.6, 0.0, 0.8), "limits": ((-1.0, 2.0),)}),
        ("helical", {"axis": (0.0, 0.6, 0.8), "pitch": 0.3, "limits": ((-math.inf, 2.0),)}),
        ("prismatic", {"axis": (0.8, 0.6, 0.0), "limits": ((-0.1, math.inf),)}),
        ("universal", {"sequence": "ZX", "limits": ((-1.0, 1.0), (-2.0, 2.0))}),
        ("spherical", {"sequence": "XYX", "limits": ((-1.0, 1.0), (0.1, 2.0), (-3.0, 3.0))}),
        ("cylindrical", {"axis": (0.6, 0.8, 0.0)}),
        ("planar", {"axis": (0.0, 0.8, 0.6)}),
        ("ball", {}),
    ]
    for i, (kind, more) in enumerate(kinds):
        dof = Joint("x", kind, **{k: x for k, x in more.items() if k != "limits"}).dof
        free = {} if kind == "ball" else {"cone": math.inf}
        machine = [element(0.1 * k, **free) for k in range(dof)]
        if kind == "ball":
            spring = Spring((1.5, 0.2, 0.1), (0.5, 0.5, 0.5, 0.5))
            machine = [element(0.0, spring=spring, gear=1.0 + k) for k in range(dof)]
        joint = Joint(
            f"joint {i}", kind, frame(i), frame(-i), **more, actuated=False,
            elements=tuple(machine), backwards=i % 2 == 0,
        )  # fmt: skip
        bodies.append(off_default(Body, {
            "name": f"body {i}", "parent": i - 1, "joint": joint, "mass": 1.0 + i,
            "com": np.array([0.1, 0.2, 0.3]), "inertia": np.diag([0.1, 0.2, 0.25]) + 0.01,
            "shapes": (replace(shape, name=f"block {i}"), Shape("sphere", (0.2,))), "points": ((f"toe {i}", (0.1, 0.0, -1.0)),),
            "lift": (0.5, (0.1, 0.2, 0.3)),
        }))  # fmt: skip
    attached = {body.name: Attachment(i, Frame()) for i, body in enumerate(bodies)}
    attached |= {"plate": Attachment(2, frame(2)), "ground plate": Attachment(-1, frame(3))}
    frames = {"eye": Attachment(1, frame(4)), "wall": Attachment(-1, frame(5))}
    tendon = {
        "stiffness": (1.0, 0.2, 0.3), "damping": (0.1, 0.2, 0.3), "rest": (0.1, 0.2),
        "effort": (-3.0, 4.0),
    }  # fmt: skip
    tendons = (
        Tendon("line", (("joint 0", 0.5), ("joint 2", -2.0)), **tendon),
        Tendon("rope", (), ((2.0, ("eye", "wall")), (1.0, ("plate", "eye", "wall"))), **tendon),
    )
    assert {f.name for f in fields(Tendon)} == {"name", "joints", "branches", *tendon}
    common = {
        "gear": (2.0, 0.1, 0.2, 0.3, 0.4, 0.5), "gain": (2.0, 0.1, 0.2), "bias": (0.1, -2.0, -0.3),
        "command": (-1.0, 2.0), "force": (-3.0, 4.0), "activation": "filter", "time": 0.1,
        "activations": (-0.5, 0.6), "early": True, "step": 0.002,
    }  # fmt: skip
    targets: dict[str, dict[str, Any]] = {
        "drive": {"joint": "joint 0", "in_parent": True}, "pull": {"tendon": "rope"},
        "push": {"site": "eye", "reference": "wall"},
        "crank": {"site": "eye", "slider": "wall", "rod": 0.7},
    }  # fmt: skip
    actuators = [Actuator(name, **where, **common) for name, where in targets.items()]
    said = {"name", *common, *(key for where in targets.values() for key in where)}
    assert {f.name for f in fields(Actuator)} == said
    model = Model("full robot", tuple(bodies), (0.1, -0.2, -9.0), attached)
    q, v = model.random(3)
    key = off_default(Keyframe, {
        "name": "home", "q": tuple(q.tolist()), "v": tuple(v.tolist()),
        "command": (0.1, 0.2, 0.3, 0.4), "activation": (0.4, 0.3, 0.2, 0.1), "time": 0.5,
    })  # fmt: skip
    machine = off_default(Machine, {
        "frames": frames, "tendons": tendons, "actuators": tuple(actuators), "keyframes": (key,),
    })  # fmt: skip
    return replace(
        model, machine=machine, loops=tuple(all_loops()), guess={"joint 0": 0.5},
        module_groups=tuple((i,) for i in range(len(bodies))), collisions=collisions,
    )  # fmt: skip


def all_loops() -> Iterator[Loop]:
    options: dict[str, dict[str, Any]] = {
        "revolute": {"axis": (0.6, 0.8, 0.0), "planar": True}, "universal": {"sequence": "ZY"},
        "distance": {"length": 0.7},
        "gear": {"joints": ("joint 0", "joint 1"), "ratio": -2.0, "offset": 0.3},
        "coupling": {"tendons": ("line", "rope"), "curve": (0.1, 0.2, 0.3)},
    }  # fmt: skip
    said = {"name", "kind", "first", "second", *(key for own in options.values() for key in own)}
    assert {f.name for f in fields(Loop)} == said
    for i, kind in enumerate(LOOP_KINDS):
        ends = {"first": LoopEnd("plate", frame(i)), "second": LoopEnd("body 5", frame(-i))}
        ends = {} if kind in ("gear", "coupling") else ends
        yield Loop(f"loop {kind}", kind, **ends, **options.get(kind, {}))


def test_a_robot_with_every_field_off_its_default() -> None:
    saved(full_robot(), "full robot")


def test_gravity_compensation_of_nothing_has_no_place() -> None:
    """A mass of zero at some place is saved as none, and is the same robot when it is read."""
    text = "name: m\nlinks:\n  - {name: a, frame: {xyz: [0, 0, 0]}, joint: {type: revolute, axis: y}, mass: 1, inertia: [1, 1, 1],"
    given = "gravity_compensation: {mass: 0, com: [0.1, 0.2, 0.3]}"
    saved(read_yaml(f"{text} {given}}}\n"), "m")


# ---- bounds ----

MJCF = """<mujoco model="m"><worldbody><body name="a"><joint name="j" axis="0 1 0" {joint}/>
<geom size="0.1" pos="0.1 0 0"/></body></worldbody>
<actuator><motor name="drive" joint="j" {motor}/></actuator></mujoco>"""
SDF = """<sdf version="1.7"><model name="m"><link name="a"><inertial><mass>1</mass><inertia>
<ixx>{ixx}</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link><joint name="j" type="revolute">
<parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz><dynamics>{dynamics}</dynamics>
<limit><lower>-1e308</lower><upper>1e308</upper><effort>1e308</effort></limit></axis></joint></model></sdf>"""
FINE = {"joint": "", "motor": "", "ixx": "1", "dynamics": ""}


@pytest.mark.parametrize(
    ("suffix", "text", "changes", "where"),
    [
        (".xml", MJCF, {"motor": 'ctrlrange="-1e308 1e308"'}, "actuators.*command"),
        (".xml", MJCF, {"motor": 'gear="1e40"'}, "actuators.*gear"),
        (".xml", MJCF, {"motor": 'gear="1e200" armature="1"'}, "armature: inf"),
        (".xml", MJCF, {"joint": 'actuatorfrcrange="1e-8 2"'}, "must contain 0"),
        (".xml", MJCF, {"joint": 'stiffness="1e300"'}, "spring.stiffness"),
        (".xml", MJCF, {"joint": 'damping="1e300"'}, "damping"),
        (".xml", MJCF, {"joint": 'armature="1e300"'}, "armature"),
        (".sdf", SDF, {"dynamics": "<spring_stiffness>1e308</spring_stiffness>"}, "too large"),
        (".sdf", SDF, {"dynamics": "<damping>inf</damping>"}, "not finite"),
        (".sdf", SDF, {"ixx": "2.5e46"}, "too large"),
    ],
)
def test_numbers_that_no_file_may_have_are_refused_at_load(
    suffix: str, text: str, changes: dict[str, str], where: str, tmp_path: Path
) -> None:
    path = tmp_path / f"robot{suffix}"
    path.write_text(text.format(**FINE))
    m = rf.load(path)
    saved(m, suffix)
    path.write_text(text.format(**FINE | changes))
    with pytest.raises(rf.ModelError, match=f"(?s){where}.*stay below 1e[+]30|{where}"):
        rf.load(path)


def test_a_robot_that_is_too_large_for_a_robot_file_is_not_written(tmp_path: Path) -> None:
    long = rf.load("chain", n=3000)
    with pytest.raises(rf.ModelError, match="values; a robot file has at most 100000"):
        long.save(tmp_path / "long.yaml")
    assert not (tmp_path / "long.yaml").exists()
    parsed = parse_yaml(to_yaml(full_robot()), Mistakes("robot.yaml"))
    assert _values(_document(full_robot())) == _values(parsed)  # as many as the reader has


def test_a_robot_from_python_beyond_the_bounds_is_not_written(tmp_path: Path) -> None:
    heavy = rf.Builder("heavy").link("a", mass=1.1 * LARGEST, inertia=(1, 1, 1)).model()
    with pytest.raises(rf.ModelError, match=r"bodies.*mass: 1.1e\+30 is too large"):
        heavy.save(tmp_path / "heavy.yaml")
    assert not (tmp_path / "heavy.yaml").exists()
    with pytest.raises(rf.ModelError, match="too large"):
        heavy.save(tmp_path / "heavy.urdf")
