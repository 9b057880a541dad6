"""SDF joints with two axes, screws, mimics, default inertias, clashing names and other frames,
against robots made by hand.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import close

import ramify as rf
from ramify.api.builders import as_model
from ramify.api.model import Model
from ramify.files.sdf import parse_sdf as parse
from ramify.model.frame import Frame, from_rpy, rotation_about

parse_sdf = as_model(parse)

BODY = (
    '<link name="{}">{}<inertial><pose>0.1 0.2 0.3 0 0 0</pose><mass>{}</mass><inertia><ixx>0.1</ixx>'
    "<iyy>0.2</iyy><izz>0.25</izz></inertia></inertial>{}</link>"
)
JOINT = '<joint name="{}" type="{}"><pose>{}</pose><parent>{}</parent><child>{}</child>{}</joint>'
HERE = "0.1 0 0.2 0.3 -0.2 0.4"
THERE = "0.5 0.1 0 0.2 0.1 -0.3"


def axis(xyz: str, tag: str = "axis", more: str = "") -> str:
    return f"<{tag}><xyz>{xyz}</xyz>{more}</{tag}>"


def file(*parts: str, version: str = "1.9", model: str = "", world: str = "") -> str:
    inside = f'<model name="m" {model}>{"".join(parts)}</model>'
    inside = f'<world name="w">{world}{inside}</world>' if world else inside
    return f'<sdf version="{version}">{inside}</sdf>'


def pose(text: str) -> Frame:
    x, y, z, *rpy = map(float, text.split())
    return Frame(from_rpy(*rpy), np.array([x, y, z]))


def built(first: str, second: str | None = None, kind: str = "revolute", **options: float) -> Model:
    """A body on one or two revolute joints at HERE, in a link placed at THERE."""
    b = rf.Builder("m")
    here, body = pose(HERE), {"mass": 2.0, "com": (0.1, 0.2, 0.3), "inertia": (0.1, 0.2, 0.25)}
    start = pose(THERE) @ here
    if second is None:
        b.link(
            "a", None, kind, at=start, axis=vector(first), outlet=here.inverse(), **body, **options
        )
    else:
        b.link("between", None, kind, at=start, axis=vector(first))
        b.link("a", "between", kind, axis=vector(second), outlet=here.inverse(), **body)
    return b.model()


def vector(text: str) -> tuple[float, float, float]:
    u = np.array([float(x) for x in text.split()])
    x, y, z = (u / np.linalg.norm(u)).tolist()
    return x, y, z


def same(ours: Model, theirs: Model, rtol: float = 1e-11) -> None:
    """The same forces and postures at random states, coordinate by coordinate."""
    assert (ours.nq, ours.nv) == (theirs.nq, theirs.nv)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q, v, a = rng.normal(size=(3, ours.nv)) * 0.7
        for which in ("inverse_dynamics", "forward_dynamics"):
            found, want = (getattr(m, which)(q, v, a) for m in (ours, theirs))
            close(found, want, rtol=rtol, atol=1e-11, of=f"{which} {seed}")
        found, want = (m.pose(q, "a") for m in (ours, theirs))
        close(found.rotation, want.rotation, atol=1e-12, of="rotation")
        close(found.position, want.position, atol=1e-12, of="position")


LINK = BODY.format("a", f"<pose>{THERE}</pose>", 2, "")


@pytest.mark.parametrize("kind", ["universal", "revolute2"])
@pytest.mark.parametrize(
    ("first", "second"),
    [("0 0 1", "1 0 0"), ("0 1 0", "1 0 0"), ("0.6 0 0.8", "0 1 0"), ("0 0 1", "0.6 0 0.8")],
)
def test_two_axes(kind: str, first: str, second: str) -> None:
    text = file(
        LINK, JOINT.format("j", kind, HERE, "world", "a", axis(first) + axis(second, "axis2"))
    )
    found = parse_sdf(text)
    same(found, built(first, second))
    square = abs(np.dot(vector(first), vector(second))) < 1e-9
    assert [joint.kind for joint in found.joints] == ["universal"] if square else ["revolute"] * 2


@pytest.mark.parametrize("second", ["1 0 0", "0.6 0 0.8"])
def test_limits_and_machines_of_two_axes(second: str) -> None:
    more = "<limit><lower>-1</lower><upper>2</upper></limit><dynamics><damping>0.5</damping></dynamics>"
    text = axis("0 0 1") + axis(second, "axis2", more)
    m = parse_sdf(file(LINK, JOINT.format("j", "universal", HERE, "world", "a", text)))
    close(m.lower, [-math.inf, -1.0], of="lower")
    close(m.upper, [math.inf, 2.0], of="upper")
    close(m.passive_forces([0, 0], [1.0, 2.0]).parts["damping"], [0.0, -1.0], of="damping")


@pytest.mark.parametrize(
    ("thread", "pitch"),
    [
        ("<screw_thread_pitch>0.4</screw_thread_pitch>", 0.4 / (2 * math.pi)),
        ("<thread_pitch>25</thread_pitch>", -0.04),
        ("", 1.0 / (2 * math.pi)),
        ("<thread_pitch>9</thread_pitch><screw_thread_pitch>-2</screw_thread_pitch>", -1 / math.pi),
    ],
)
def test_screws(thread: str, pitch: float) -> None:
    text = JOINT.format("j", "screw", HERE, "world", "a", thread + axis("0 0.6 0.8"))
    same(parse_sdf(file(LINK, text)), built("0 0.6 0.8", kind="helical", pitch=pitch))
    with pytest.raises(rf.ModelError, match="thread pitch must be finite and not 0"):
        parse_sdf(file(LINK, text.replace(thread, "<thread_pitch>0</thread_pitch>", 1) if thread else
                       text.replace("<axis>", "<thread_pitch>0</thread_pitch><axis>")))  # fmt: skip


def test_a_universal_joint_closes_a_loop() -> None:
    arms = [
        JOINT.format("up", "ball", HERE, "world", "a", ""),
        JOINT.format(
            "down", "universal", HERE, "world", "a", axis("0 0 1") + axis("1 0 0", "axis2")
        ),
    ]
    m = parse_sdf(file(LINK, *arms))
    assert [loop.kind for loop in m.loops] == ["universal"]
    q, v = m.neutral(), np.array([0.3, -0.2, 0.5])
    c = m.constraints(q, v)
    close(c.residual, 0.0, atol=1e-14, of="residual")
    here = (pose(THERE) @ pose(HERE)).rotation
    allowed = np.linalg.svd(c.J)[2][np.linalg.matrix_rank(c.J) :]
    axes = (here.T @ np.array(m.joints[0].placement.rotation) @ allowed.T).T
    close(np.abs(axes @ np.array([0.0, 1.0, 0.0])), 0.0, atol=1e-12, of="turns about y")


def test_a_link_without_inertial_has_the_formats_default() -> None:
    joint = JOINT.format("j", "revolute", HERE, "world", "a", axis("0 0 1"))
    m = parse_sdf(file('<link name="a"/>', joint))
    assert m.mass == 1.0
    close(m.bodies[0].inertia, np.eye(3), of="inertia")
    assert "1 kg, 1 kg m^2, as SDF has it" in str(m.metadata["report"])
    assert parse_sdf(file('<link name="a"/>')).joints[0].kind == "free"
    half = parse_sdf(file('<link name="a"><inertial><mass>3</mass></inertial></link>', joint))
    close(half.bodies[0].inertia, np.eye(3), of="inertia")
    assert half.mass == 3.0


@pytest.mark.parametrize("version", ["1.4", "1.6", "1.9"])
def test_a_joint_that_is_called_like_a_link_gets_another_name(version: str) -> None:
    text = file(
        LINK, BODY.format("a_joint", "", 1, ""),
        JOINT.format("a", "revolute", "0 0 0 0 0 0", "world", "a", axis("0 0 1")),
        JOINT.format("b", "revolute", "0 0 0 0 0 0", "a", "a_joint", axis("0 0 1")),
        version=version,
    )  # fmt: skip
    m = parse_sdf(text)
    assert [body.name for body in m.bodies] == ["a", "a_joint"]
    assert m.joints[0].name not in ("a", "a_joint")
    assert m.joints[0].name.startswith("a_joint")
    assert "joint 'a': a link has this name" in str(m.metadata["report"])
    with pytest.raises(rf.ModelError, match="the name 'b' is taken"):
        parse_sdf(text.replace('<joint name="a"', '<joint name="b"'))


def test_mimics_are_gears() -> None:
    leader = JOINT.format(
        "u", "universal", HERE, "world", "a", axis("0 0 1") + axis("1 0 0", "axis2")
    )
    says = (
        '<mimic joint="u" axis="axis2"><multiplier>-2</multiplier><offset>0.3</offset>'
        "<reference>0.5</reference></mimic>"
    )
    follower = JOINT.format("f", "prismatic", HERE, "a", "b", axis("0 1 0", more=says))
    m = parse_sdf(file(LINK, BODY.format("b", "", 1, ""), leader, follower))
    (gear,) = m.loops
    assert gear.joints == (m.coordinates[1], "f")
    for x in (0.2, -0.4):
        q = m.assemble({m.coordinates[0]: 0.1, m.coordinates[1]: x}).q
        close(q[2], -2.0 * (x - 0.5) + 0.3, atol=1e-12, of="follower")


@pytest.mark.parametrize(
    ("says", "ratio", "start"),
    [
        ("", 1.0, 0.0),
        ("<multiplier>-2</multiplier>", -2.0, 0.0),
        ("<offset>0.3</offset>", 1.0, 0.3),
        ("<reference>0.5</reference>", 1.0, -0.5),
    ],
)
def test_what_a_mimic_does_not_say(says: str, ratio: float, start: float) -> None:
    """By default the follower is the leader."""
    leader = JOINT.format("u", "revolute", HERE, "world", "a", axis("0 0 1"))
    says = f'<mimic joint="u">{says}</mimic>'
    follower = JOINT.format("f", "prismatic", HERE, "a", "b", axis("0 1 0", more=says))
    m = parse_sdf(file(LINK, BODY.format("b", "", 1, ""), leader, follower))
    close(m.assemble({"u": 0.2}).q[1], 0.2 * ratio + start, atol=1e-12, of="follower")


def test_a_link_without_gravity_does_not_fall() -> None:
    joint = JOINT.format("j", "prismatic", "0 0 0 0 0 0", "world", "a", axis("0 0 1"))
    for said, falls in (
        ("<gravity>0</gravity>", 0.0),
        ("<gravity>true</gravity>", -9.81),
        ("", -9.81),
    ):
        m = parse_sdf(file(BODY.format("a", "", 2, said), joint))
        r = rf.simulate(m, 0.1, [0.0], dt_out=0.1)
        close(r.v[-1], [0.1 * falls], atol=1e-10, of=f"speed with {said}")


def test_quaternions_placement_frames_and_old_gravity() -> None:
    x, y, z = 0.5, 0.1, 0.0
    turn = from_rpy(0.2, 0.1, -0.3)
    w = 0.5 * math.sqrt(1.0 + np.trace(turn))
    u = (turn - turn.T)[[2, 0, 1], [1, 2, 0]] / (4.0 * w)
    said = " ".join(map(repr, (x, y, z, *(3.0 * u).tolist(), 3.0 * w)))
    plain = JOINT.format("j", "revolute", HERE, "world", "a", axis("0 0.6 0.8"))
    text = LINK.replace("<pose>" + THERE, f'<pose rotation_format="quat_xyzw">{said}')
    same(parse_sdf(file(text, plain)), built("0 0.6 0.8"))
    # the pose of a model is that of its placement frame: here the link itself
    start = f"<pose>{THERE}</pose>"
    moved = file(
        start, LINK.replace(THERE, "1 2 3 0.5 0.6 0.7"), plain, model='placement_frame="a"'
    )
    same(parse_sdf(moved), built("0 0.6 0.8"))
    old = file(LINK, plain, world="<physics type='ode'><gravity>0 0 -5</gravity></physics>")
    assert parse_sdf(old).gravity == (0.0, 0.0, -5.0)


@pytest.mark.parametrize(("version", "in_model"), [("1.4", True), ("1.5", False), ("1.6", False)])
def test_the_frame_of_axes_by_version(version: str, in_model: bool) -> None:
    """Files before 1.5 give axes in the model's frame, later ones in the joint's."""
    joint = JOINT.format("j", "revolute", HERE, "world", "a", axis("0 0.6 0.8"))
    m = parse_sdf(file(LINK, joint, version=version))
    frame = pose(THERE) @ pose(HERE)
    turned = np.eye(3) if in_model else frame.rotation
    want = rotation_about(turned @ np.array([0.0, 0.6, 0.8]), 0.7) @ pose(THERE).rotation
    close(m.pose([0.7], "a").rotation, want, atol=1e-12, of="rotation")


def test_contacts_with_other_models_are_a_warning(tmp_path: object) -> None:
    touch = '<collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision>'
    robot = file(
        BODY.format("a", "", 2, touch),
        JOINT.format("j", "revolute", HERE, "world", "a", axis("0 0 1")), world="<gravity/>",
    )  # fmt: skip
    alone = parse(robot).metadata["report"]
    assert not [entry for entry in alone if entry.moves]
    floor = (
        f'<model name="floor"><static>1</static><link name="plane">{touch}</link></model></world>'
    )
    report = parse(robot.replace("</world>", floor)).metadata["report"]
    assert [entry.where for entry in report if entry.moves] == ["contacts"]
    own = parse(robot.replace("</model>", "<self_collide>1</self_collide></model>"))
    assert [entry.where for entry in own.metadata["report"] if entry.moves] == ["contacts"]


@pytest.mark.parametrize(
    ("kind", "ours", "rows"),
    [
        ("revolute", "revolute", 5), ("continuous", "revolute", 5), ("prismatic", "prismatic", 5),
        ("ball", "spherical", 3), ("universal", "universal", 4), ("fixed", "fixed", 6),
    ],
)  # fmt: skip
def test_every_kind_of_joint_closes_a_loop(kind: str, ours: str, rows: int) -> None:
    """What the second joint leaves free is free about and along its own axis."""
    axes = {"ball": "", "fixed": "", "universal": axis("0 0 3") + axis("2 0 0", "axis2")}
    arms = [
        JOINT.format("up", "ball", HERE, "world", "a", ""),
        JOINT.format("down", kind, HERE, "world", "a", axes.get(kind, axis("0 0 3"))),
    ]
    m = parse_sdf(file(LINK, *arms))
    (loop,) = m.loops
    assert (loop.kind, len(loop.rows)) == (ours, rows)
    assert np.linalg.norm(loop.axis) == pytest.approx(1.0, rel=1e-15)
    c = m.constraints(m.neutral(), np.zeros(3))
    close(c.residual, 0.0, atol=1e-14, of="residual")
    turns = {"revolute": 1, "spherical": 3, "universal": 2}.get(ours, 0)
    assert 3 - np.linalg.matrix_rank(c.J, tol=1e-9) == turns


@pytest.mark.parametrize("length", [1e-3, 1.0, 7.0])
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_the_length_of_an_axis_does_not_matter(kind: str, length: float) -> None:
    xyz = " ".join(str(length * x) for x in (0.6, 0.0, 0.8))
    m = parse_sdf(file(LINK, JOINT.format("j", kind, HERE, "world", "a", axis(xyz))))
    same(m, built("0.6 0 0.8", kind=kind))
    close(m.joints[0].axis, (0.6, 0.0, 0.8), rtol=1e-15, atol=1e-16, of="axis")
