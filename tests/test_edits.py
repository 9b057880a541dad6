"""Changed models: against models built that way, against robots whose joints are held, and the old
model unchanged.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from random_trees import KINDS, random_bodies, random_frame, to_pinocchio, tree_of

import ramify as rf
from ramify.api.builders import as_model
from ramify.api.model import Model
from ramify.core.records import flatten
from ramify.core.spatial import NO_WRENCH
from ramify.dynamics.inverse import inverse_dynamics
from ramify.dynamics.kinematics import body_poses
from ramify.model.answers import Attachment
from ramify.model.build import LinkSpec, build
from ramify.model.frame import Frame, rotation_about
from ramify.model.joint import Joint

build = as_model(build)

seeds = st.integers(0, 10**6)
UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def random_model(
    seed: int, n: int = 6, kinds: Sequence[str] = KINDS
) -> tuple[Model, np.random.Generator]:
    """A random tree, with a frame merged into every body and one into the base."""
    rng = np.random.default_rng(seed)
    bodies = random_bodies(rng, n, kinds=kinds)
    attached = {body.name: Attachment(i, Frame()) for i, body in enumerate(bodies)}
    attached |= {f"tip{i}": Attachment(i, random_frame(rng)) for i in range(-1, n)}
    return Model("robot", bodies, (1.0, -2.0, -9.0), attached), rng


def random_motion(
    model: Model, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(q, v, a); quaternions need not be of unit length."""
    return (
        rng.normal(size=sum(joint.nq for joint in model.joints)),
        rng.normal(size=model.nv),
        rng.normal(size=model.nv),
    )


def torques(model: Model, q: Any, v: Any, a: Any) -> np.ndarray:
    tree, skeleton = tree_of(model.bodies, model.gravity)
    at = skeleton.coordinates([float(x) for x in q], UPRIGHT)
    return np.array(inverse_dynamics(tree, at, list(v), list(a), [NO_WRENCH] * model.nv))


def poses(model: Model, q: Any) -> dict[str, Frame]:
    """World frames of all links, merged ones too."""
    tree, skeleton = tree_of(model.bodies, model.gravity)
    found = body_poses(tree, skeleton.coordinates([float(x) for x in q], UPRIGHT))
    world = {-1: Frame()} | {
        b: Frame(np.array(flatten(found[k].R)), np.array(flatten(found[k].r)))
        for b, k in enumerate(skeleton.last)
    }
    return {name: world[body] @ local for name, (body, local) in model.attached.items()}


def same_poses(ours: dict[str, Frame], theirs: dict[str, Frame]) -> None:
    assert ours.keys() == theirs.keys()
    for name, frame in ours.items():
        assert_allclose(frame.rotation, theirs[name].rotation, rtol=0, atol=1e-11)
        assert_allclose(frame.position, theirs[name].position, rtol=0, atol=1e-11)


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


def some_tensor(rng: np.random.Generator) -> np.ndarray:
    spread = 0.3 * rng.normal(size=(3, 3))
    return np.trace(spread @ spread.T) * np.eye(3) - spread @ spread.T


def snapshot(model: Model) -> bytes:
    """All numbers of a model, for a comparison bit by bit."""
    fields = (
        model.name,
        model.bodies,
        model.gravity,
        dict(model.attached),
        model.module_groups,
        dict(model.metadata),
    )
    return pickle.dumps(fields)


# ---- gravity ----


@given(seeds)
def test_gravity(seed: int) -> None:
    model, rng = random_model(seed, 3)
    g = rng.normal(size=3)
    other = rf.with_gravity(model, g)
    assert other.gravity == tuple(g)
    assert other.bodies is model.bodies
    assert model.gravity == (1.0, -2.0, -9.0)
    q, still = random_motion(model, rng)[0], np.zeros(model.nv)
    pull = torques(other, q, still, still)
    close(torques(rf.with_gravity(model, 2 * g), q, still, still), 2 * pull)
    assert_array_equal(torques(rf.with_gravity(model, (0, 0, 0)), q, still, still), still)


@pytest.mark.parametrize("bad", [(0.0, 0.0), (0.0, 0.0, math.nan), (math.inf, 0.0, 0.0), 9.81])
def test_bad_gravity(bad: Any) -> None:
    with pytest.raises(rf.ModelError, match=r"gravity .* must be three finite numbers"):
        rf.with_gravity(random_model(0)[0], bad)


# ---- payloads and tools ----


@given(seeds)
def test_a_payload_is_a_body_on_a_slide_that_stands_still(seed: int) -> None:
    """On a link of its own or a merged one: the torques of the other joints agree with those of a
    robot with one body more.
    """
    model, rng = random_model(seed)
    link = str(rng.choice([name for name, at in model.attached.items() if at.body >= 0]))
    mass, com, inertia = rng.uniform(0.1, 5.0), rng.normal(size=3), some_tensor(rng)
    before = snapshot(model)
    loaded = rf.with_payload(model, link, mass, com, inertia)
    assert snapshot(model) == before
    assert loaded.mass == pytest.approx(model.mass + mass, rel=1e-14)

    body, frame = model.attachment(link)
    links = [
        LinkSpec(b.name, _parent(model, b.parent), b.joint, b.mass, b.com, b.inertia)
        for b in model.bodies
    ]
    lump = LinkSpec(
        "lump", model.bodies[body].name, Joint("slide", "prismatic", frame), mass, com, inertia
    )
    held = build("held", [*links, lump], model.gravity)
    q, v, a = random_motion(model, rng)
    close(torques(loaded, q, v, a), torques(held, [*q, 0.0], [*v, 0.0], [*a, 0.0])[:-1])
    same_poses(poses(loaded, q), poses(model, q))


def _parent(model: Model, index: int) -> str | None:
    return model.bodies[index].name if index >= 0 else None


def test_a_payload_agrees_with_pinocchio() -> None:
    model, rng = random_model(
        5, kinds=("revolute", "prismatic", "helical", "universal", "spherical", "planar")
    )
    link, mass, com, inertia = "tip3", 2.0, np.array([0.1, 0.2, 0.3]), some_tensor(rng)
    peer = to_pinocchio(model)
    body, frame = model.attachment(link)
    at = peer.frames[peer.getFrameId(model.bodies[body].name)]
    seat = at.placement * pin.SE3(np.array(frame.rotation), np.array(frame.position))
    peer.appendBodyToJoint(at.parentJoint, pin.Inertia(mass, com, inertia), seat)
    q, v, a = random_motion(model, rng)
    close(
        torques(rf.with_payload(model, link, mass, com, inertia), q, v, a),
        pin.rnea(peer, peer.createData(), q, v, a),
    )


def test_inertia_of_a_payload_in_three_ways() -> None:
    model, _ = random_model(1)
    whole = [
        rf.with_payload(model, "body1", 1.0, inertia=way).bodies[1]
        for way in (0.3, (0.3, 0.3, 0.3), 0.3 * np.eye(3))
    ]
    for body in whole[1:]:
        assert_array_equal(body.inertia, whole[0].inertia)


def test_payloads_add_up() -> None:
    model, _ = random_model(2)
    twice = rf.with_payload(
        rf.with_payload(model, "tip2", 1.0, (0.1, 0, 0)), "tip2", 1.0, (-0.1, 0, 0)
    )
    once = rf.with_payload(model, "tip2", 2.0, inertia=(0.0, 0.02, 0.02))
    assert_allclose(twice.bodies[2].inertia, once.bodies[2].inertia, rtol=1e-13)
    assert_allclose(twice.bodies[2].com, once.bodies[2].com, rtol=1e-13)


def test_no_payload_changes_nothing() -> None:
    model, _ = random_model(3)
    assert snapshot(rf.with_payload(model, "body0", 0.0)) == snapshot(model)


@given(seeds)
def test_a_tool_is_a_payload_with_a_name_and_a_frame(seed: int) -> None:
    model, rng = random_model(seed)
    link = str(rng.choice(list(model.attached)))
    frame, mass, com, inertia = (
        random_frame(rng),
        rng.uniform(0.1, 5.0),
        rng.normal(size=3),
        some_tensor(rng),
    )
    before = snapshot(model)
    armed = rf.with_tool(model, link, "tool", frame, mass, com, inertia)
    assert snapshot(model) == before
    q, v, a = random_motion(model, rng)
    found = poses(armed, q)
    same_poses({"tool": found.pop("tool")}, {"tool": found[link] @ frame})
    same_poses(found, poses(model, q))
    if model.attachment(link).body >= 0:
        turned = frame.rotation @ inertia @ frame.rotation.T
        loaded = rf.with_payload(model, link, mass, frame.rotation @ com + frame.position, turned)
        close(torques(armed, q, v, a), torques(loaded, q, v, a))
    else:
        assert armed.bodies is model.bodies


def test_tools_on_tools() -> None:
    model, _ = random_model(4)
    turn = np.eye(4)
    turn[:3, :3], turn[:3, 3] = rotation_about((0, 0, 1), 0.5), (0.1, 0.2, 0.3)
    armed = rf.with_tool(
        rf.with_tool(model, "tip1", "flange", (0.0, 0.0, 0.1)), "flange", "gripper", turn, mass=0.5
    )
    body, frame = armed.attachment("gripper")
    expected = (
        model.attachment("tip1").frame
        @ Frame(position=np.array([0.0, 0.0, 0.1]))
        @ Frame(turn[:3, :3], turn[:3, 3])
    )
    assert body == 1
    assert frame == expected
    loaded = rf.with_payload(armed, "gripper", 1.0)
    assert loaded.mass == pytest.approx(model.mass + 1.5)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"mass": -1.0}, "mass -1.0 kg must be finite and not negative"),
        ({"mass": math.nan}, "mass nan kg"),
        ({"mass": math.inf}, "mass inf kg"),
        ({"com": (0.0, 0.0)}, r"com \[0.0, 0.0\] must be three finite numbers"),
        ({"com": (0.0, math.nan, 0.0)}, "com .* must be three finite numbers"),
        (
            {"inertia": (1.0, 2.0)},
            r"inertia must be one, three or 3 x 3 finite numbers; got \[1.0, 2.0\]",
        ),
        ({"inertia": math.nan}, "inertia must be one, three or 3 x 3 finite numbers; got nan"),
        ({"inertia": -0.1}, "the inertia tensor must be symmetric, without negative moments"),
        (
            {"inertia": np.triu(np.ones((3, 3)))},
            "the inertia tensor must be symmetric, without negative moments",
        ),
    ],
)
def test_bad_payloads_and_tools(what: dict[str, Any], message: str) -> None:
    model, _ = random_model(0)
    with pytest.raises(rf.ModelError, match=f"payload on 'tip2': {message}"):
        rf.with_payload(model, "tip2", **{"mass": 1.0, **what})
    with pytest.raises(rf.ModelError, match=f"tool 'drill': {message}"):
        rf.with_tool(model, "tip2", "drill", **{"mass": 1.0, **what})


def test_bad_places() -> None:
    model, _ = random_model(0)
    with pytest.raises(
        rf.ModelError, match="robot has no link or frame 'hand'; there are body0, body1"
    ):
        rf.with_payload(model, "hand", 1.0)
    with pytest.raises(
        rf.ModelError,
        match=r"link 'tip-1' is part of the base, .* choose a moving link: body0, .*tip5",
    ):
        rf.with_payload(model, "tip-1", 1.0)
    with pytest.raises(rf.ModelError, match="robot has no link or frame 'hand'"):
        rf.with_tool(model, "hand", "drill")
    with pytest.raises(rf.ModelError, match="already has a link 'tip1'"):
        rf.with_tool(model, "body0", "tip1")
    with pytest.raises(rf.ModelError, match="a tool on 'body0' is named ''"):
        rf.with_tool(model, "body0", "")
    with pytest.raises(
        rf.ModelError,
        match="tool 'drill': its frame is not a finite position and a rotation matrix",
    ):
        rf.with_tool(model, "body0", "drill", Frame(2 * np.eye(3)))
    with pytest.raises(rf.ModelError, match="tool 'drill': its frame is not"):
        rf.with_tool(model, "body0", "drill", (0.0, math.nan, 0.0))
    with pytest.raises(rf.ModelError, match="is not a frame"):
        rf.with_tool(model, "body0", "drill", (0.0, 0.0))


# ---- locked joints ----


@given(seeds)
def test_a_locked_joint_is_a_joint_that_stands_still(seed: int) -> None:
    model, rng = random_model(seed)
    joint = model.joints[int(rng.integers(len(model.joints)))]
    at = rng.uniform(-2.0, 2.0, size=joint.nq)
    before = snapshot(model)
    locked = rf.with_locked(model, joint.name, at if joint.nq > 1 else float(at[0]))
    assert snapshot(model) == before
    assert locked.nv == model.nv - joint.dof

    q, v, a = random_motion(model, rng)
    coordinate = np.repeat([j is joint for j in model.joints], [j.nq for j in model.joints])
    rate = np.repeat([j is joint for j in model.joints], [j.dof for j in model.joints])
    q[coordinate], v[rate], a[rate] = at, 0.0, 0.0
    close(torques(locked, q[~coordinate], v[~rate], a[~rate]), torques(model, q, v, a)[~rate])
    same_poses(poses(locked, q[~coordinate]), poses(model, q))
    with pytest.raises(rf.ModelError, match=f"has no joint '{joint.name}'"):
        locked.joint(joint.name)


def test_a_model_locked_is_the_model_built_so() -> None:
    def robot(kind: str, placement: Frame, **more: Any) -> Model:
        links = [
            LinkSpec(
                "arm",
                None,
                Joint("shoulder", "revolute"),
                2.0,
                np.array([0.5, 0.0, 0.0]),
                np.diag([0.1, 0.2, 0.3]),
            ),
            LinkSpec(
                "hand",
                "arm",
                Joint("wrist", kind, placement, **more),
                1.0,
                np.array([0.1, 0.0, 0.0]),
                0.01 * np.eye(3),
            ),
            LinkSpec(
                "tool",
                "hand",
                Joint("weld", "fixed", Frame(position=np.array([0.2, 0.0, 0.0]))),
                0.5,
            ),
            LinkSpec("finger", "tool", Joint("grip", "prismatic", axis=(0, 1, 0)), 0.1),
        ]
        return build("robot", links)

    at = Frame(position=np.array([1.0, 0.0, 0.0]))
    locked = rf.with_locked(robot("revolute", at), "wrist", math.pi / 2)
    built = robot("fixed", at @ Frame(rotation_about((0, 0, 1), math.pi / 2)))
    assert [b.name for b in locked.bodies] == [b.name for b in built.bodies] == ["arm", "finger"]
    assert locked.attached.keys() == built.attached.keys()
    for ours, theirs in zip(locked.bodies, built.bodies, strict=True):
        assert ours.parent == theirs.parent
        assert ours.mass == pytest.approx(theirs.mass, rel=1e-15)
        assert_allclose(ours.com, theirs.com, rtol=0, atol=1e-15)
        assert_allclose(ours.inertia, theirs.inertia, rtol=0, atol=1e-15)
        assert ours.joint.placement == theirs.joint.placement
    for name in built.attached:
        assert locked.attachment(name).body == built.attachment(name).body
        assert locked.attachment(name).frame == built.attachment(name).frame


def test_locking_the_root_joins_it_to_the_base() -> None:
    model, _ = random_model(6)
    roots = [b.name for b in model.bodies if b.parent < 0]
    locked = rf.with_locked(model, "joint0")
    assert locked.attachment("body0").body == locked.attachment("tip0").body == -1
    assert locked.mass == pytest.approx(model.mass - model.bodies[0].mass)
    assert [b.name for b in locked.bodies] == [b.name for b in model.bodies[1:]]
    assert {b.name for b in locked.bodies if b.parent < 0} >= set(roots) - {"body0"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_neutral_posture_is_the_default(kind: str) -> None:
    model, _ = random_model(KINDS.index(kind), 3, kinds=(kind,))
    for joint in model.joints:
        locked = rf.with_locked(model, joint.name)
        same_poses(poses(locked, locked.neutral()), poses(model, model.neutral()))


def test_given_modules_lose_the_body() -> None:
    parents = {"trunk": None, "thigh": "trunk", "shin": "thigh", "foot": "shin", "arm": "trunk"}
    links = [LinkSpec(n, p, Joint(n, "revolute"), 1.0) for n, p in parents.items()]

    def names(model: Model) -> list[list[str]]:
        return [[model.bodies[b].name for b in module.bodies] for module in model.modules]

    given_ = build("robot", links, modules=[["trunk"], ["thigh", "shin"], ["foot"], ["arm"]])
    assert names(rf.with_locked(given_, "shin")) == [["trunk"], ["thigh"], ["foot"], ["arm"]]
    assert names(rf.with_locked(given_, "foot")) == [["trunk"], ["thigh", "shin"], ["arm"]]
    assert names(rf.with_locked(given_, "trunk")) == [["thigh", "shin"], ["foot"], ["arm"]]
    assert names(rf.with_locked(given_, "arm")) == [["trunk"], ["thigh", "shin"], ["foot"]]
    found = build("robot", links)
    assert names(found) == [["trunk"], ["thigh", "shin", "foot"], ["arm"]]
    assert names(rf.with_locked(found, "arm")) == [["trunk", "thigh", "shin", "foot"]]
    assert names(rf.with_payload(given_, "foot", 1.0)) == names(given_)


def test_points_and_metadata_stay() -> None:
    robot = (
        rf.Builder("robot")
        .link("leg", mass=1.0)
        .link("foot", "leg", at=(1, 0, 0), mass=1.0, points={"toe": (0.1, 0, 0)})
    )
    model = robot.model()
    locked = rf.with_locked(model, "foot", math.pi / 2)
    assert locked.bodies[0].points[0][0] == "toe"
    assert_allclose(locked.bodies[0].points[0][1], (1.0, 0.1, 0.0), atol=1e-15)
    assert locked.metadata == model.metadata


@pytest.mark.parametrize(
    ("joint", "at", "message"),
    [
        ("knee", 0.0, "robot has no joint 'knee'; its joints are arm, ball"),
        (
            "ball",
            0.1,
            r"joint 'ball': at = 0.1 must be finite, one number .* \(ball.y1, ball.x2, ball.z3\)",
        ),
        ("ball", (0.1, 0.2), "joint 'ball': at = .* one number for each"),
        ("arm", (0.1, 0.2), "joint 'arm': at = .* one number for each"),
        ("arm", math.nan, "joint 'arm': at = nan must be finite"),
        ("ball", (0.0, math.inf, 0.0), "joint 'ball': at = .* must be finite"),
        ("float", (0.1, 0.2, 0.3), r"joint 'float': at = .* \(float.x, .*, float.qw, .*\)"),
        (
            "float",
            (0, 0, 0, 0, 0, 0, 0),
            "joint 'float': at = .* zero quaternion; the neutral one is",
        ),
    ],
)
def test_bad_locks(joint: str, at: Any, message: str) -> None:
    robot = rf.Builder("robot").link("arm", mass=1.0).link("ball", "arm", "spherical", mass=1.0)
    robot.link("float", None, "free", mass=1.0)
    with pytest.raises(rf.ModelError, match=message):
        rf.with_locked(robot.model(), joint, at)


def test_one_joint_must_move() -> None:
    with pytest.raises(
        rf.ModelError, match="'arm' is the only joint of robot; a model needs one that moves"
    ):
        rf.with_locked(rf.Builder("robot").link("arm", mass=1.0).model(), "arm")


def test_strange_values_are_model_errors() -> None:
    model = rf.load("planar_3r")
    link = model.bodies[-1].name
    for call in (
        lambda: rf.with_gravity(model, "down"),  # type: ignore[arg-type]
        lambda: rf.with_payload(model, link, "x"),  # type: ignore[arg-type]
        lambda: rf.with_payload(model, link, 1.0, com="abc"),  # type: ignore[arg-type]
    ):
        with pytest.raises(rf.ModelError):
            call()


def test_several_joints_are_locked_at_once() -> None:
    m = rf.load("kuka_kr5")
    one = rf.with_locked(rf.with_locked(m, "joint1", 0.3), "joint4", -0.2)
    both = rf.with_locked(m, ["joint1", "joint4"], [0.3, -0.2])
    assert one.coordinates == both.coordinates == ("joint2", "joint3", "joint5", "joint6")
    q = [0.1, 0.2, 0.3, 0.4]
    assert np.array_equal(one.gravity_forces(q), both.gravity_forces(q))
    assert rf.with_locked(m, ("joint1", "joint4")).nv == 4
    with pytest.raises(rf.ModelError, match="got 'joint4': to lock several joints, give a list"):
        rf.with_locked(m, "joint1", "joint4")  # type: ignore[arg-type]
    with pytest.raises(rf.ModelError, match="at has 3 entries for 2 joints"):
        rf.with_locked(m, ["joint1", "joint4"], [0.0, 1.0, 2.0])


def test_geared_joints_may_be_locked_as_a_list() -> None:
    m = rf.with_loop(rf.load("planar_3r"), "gear", "gear", joints=("joint2", "joint3"))
    one = rf.with_locked(m, "joint2")
    both = rf.with_locked(m, ["joint2", "joint3"])
    assert both.coordinates == one.coordinates == ("joint1",)
    with pytest.raises(rf.ModelError, match="'joint3' is locked by its gear already"):
        rf.with_locked(m, ["joint2", "joint3"], [0.1, 0.2])
