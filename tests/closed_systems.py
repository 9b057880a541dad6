"""Robots with loops for the tests: any closing joint between two arms of any joints, and a four-bar
in any plane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import ramify as rf
from ramify.core.arrays import Array
from ramify.model.frame import Frame, from_rpy, rotation_about

KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("revolute", {}),
    ("revolute", {"axis": (1.0, 2.0, 0.5)}),
    ("prismatic", {}),
    ("cylindrical", {"axis": (1.0, 0.0, 0.0)}),
    ("universal", {"sequence": "XZ"}),
    ("spherical", {}),
    ("fixed", {}),
    ("point_on_line", {"axis": (0.0, 1.0, 1.0)}),
    ("distance", {}),
)
"""Every joint that closes a loop between two frames."""

ROWS = {
    "revolute": 5, "prismatic": 5, "cylindrical": 4, "universal": 4, "spherical": 3, "fixed": 6, "point_on_line": 2, "distance": 1,
}  # fmt: skip


def random_frame(rng: np.random.Generator) -> Frame:
    return Frame(from_rpy(*rng.normal(size=3)), rng.normal(size=3) * 0.5)


def two_arms(
    seed: int, kind: str, options: dict[str, Any], base: str | None = "free", twice: bool = False
) -> tuple[rf.Model, Array]:
    """(model, q): two arms of many kinds of joints on one base, their ends joined so that the loop
    is closed at q.
    """
    rng = np.random.default_rng(seed)
    robot = rf.Builder("arms", gravity=(1.0, 2.0, -9.0))
    root = None
    if base is not None:
        robot.link(
            "base", None, base, mass=2.0, inertia=tuple(rng.uniform(0.1, 0.2, 3)), actuated=False
        )
        root = "base"
    for name, parent, joint in (
        ("a", root, "revolute"), ("b", "a", "ball"),
        ("c", root, "prismatic"), ("d", "c", "universal"), ("e", "d", "revolute"), ("f", "e", "revolute"),
    ):  # fmt: skip
        com = rng.normal(size=3) * 0.1
        inertia = tuple(rng.uniform(0.1, 0.2, 3))
        robot.link(
            name,
            parent,
            joint,
            at=random_frame(rng),
            mass=1.0,
            com=tuple(com),
            inertia=inertia,
            pitch=0.0,
        )
    tree = robot.model()
    q = tree.random(seed)[0]
    pose = tree.kinematics(q)
    ends = [
        Frame(pose.rotation[i], pose.position[i])
        for i in (tree.body_index("b"), tree.body_index("f"))
    ]
    first = random_frame(rng)
    at = ends[0] @ first
    second = ends[1].inverse() @ at
    if kind == "distance":
        second = random_frame(rng)
        options = {"length": float(np.linalg.norm((ends[1] @ second).position - at.position))}
    elif kind == "universal":  # turned about both of its axes
        second = (
            ends[1].inverse()
            @ at
            @ Frame(rotation_about((1, 0, 0), 0.4))
            @ Frame(rotation_about((0, 0, 1), 0.7))
        )
    robot.loop("tie", kind, ("b", first), ("f", second), **options)
    if twice:
        robot.loop("again", kind, ("b", first), ("f", second), **options)
    return robot.model(), q


def tangent(model: rf.Model, q: Array, seed: int = 0) -> Array:
    """A velocity that keeps the loops closed."""
    c = model.constraints(q)
    free = np.linalg.svd(c.J)[2][c.rank :]
    return np.random.default_rng(seed).normal(size=len(free)) @ free


def four_bar(
    planar: bool = True,
    turned: bool = False,
    coupler: float = 5.0,
    rocker: float = 3.0,
    crank: float = 1.5,
    tilts: tuple[float, float] = (0.0, 0.0),
    offset: float = 0.0,
    kind: str = "revolute",
    actuated: bool = True,
    **options: Any,
) -> rf.Model:
    """The book's four-bar, in the plane z = 0 or in some other one; masses in kg. Rounded data:
    ``tilts`` (rad) of the axes of crank and rocker, ``offset`` (m) of the pin out of the plane.
    """
    tilted = [Frame(from_rpy(angle, 0.0, 0.0)) for angle in tilts]
    place = Frame(from_rpy(0.3, -0.7, 1.1)) if turned else Frame()
    robot = rf.Builder("bar", gravity=tuple(place.rotation @ np.array([0.0, -9.81, 0.0])))

    def rod(mass: float, length: float) -> dict[str, Any]:
        return {
            "mass": mass,
            "com": (length / 2 if mass else 0.0, 0, 0),
            "inertia": (0, mass * length**2 / 12, mass * length**2 / 12),
        }

    robot.link("crank", at=place @ tilted[0], actuated=actuated, **rod(crank, 0.038))
    robot.link(
        "rocker",
        at=place @ Frame(position=np.array([-0.0895, 0, 0])) @ tilted[1],
        actuated=False,
        **rod(rocker, 0.1152),
    )
    robot.link("coupler", "rocker", at=(0.1152, 0, 0), actuated=False, **rod(coupler, 0.1152))
    robot.loop(
        "pin",
        kind,
        ("crank", (0.038, 0, offset)),
        ("coupler", (0.1152, 0, 0)),
        **({"planar": planar} if kind == "revolute" else {}),
        **options,
    )
    return robot.near(crank=0.0, rocker=0.9844, coupler=4.3144).model()


def parallelogram() -> rf.Model:
    """Two equal cranks: at 0 and pi all links lie on one line, and the loop has two ways to go on."""
    robot = rf.Builder("parallelogram", gravity=(0, 0, 0))
    robot.link("crank", mass=1.0, com=(0.05, 0, 0), inertia=(0, 1e-3, 1e-3))
    robot.link(
        "coupler",
        "crank",
        at=(0.1, 0, 0),
        mass=1.0,
        com=(0.1, 0, 0),
        inertia=(0, 1e-3, 1e-3),
        actuated=False,
    )
    robot.link(
        "rocker",
        at=(0.2, 0, 0),
        mass=1.0,
        com=(0.05, 0, 0),
        inertia=(0, 1e-3, 1e-3),
        actuated=False,
    )
    robot.loop("pin", "revolute", ("coupler", (0.2, 0, 0)), ("rocker", (0.1, 0, 0)), planar=True)
    return robot.near(crank=1.0, coupler=-1.0, rocker=1.0).model()


def folding_twins() -> rf.Model:
    """Two slider-cranks in one model, not connected, their rods as long as their cranks: both fold
    at the same moment.
    """
    one = rf.load("slider_crank", rod=1.0)
    robot = rf.Builder("twins", gravity=one.gravity)
    for side in "ab":
        for body in one.bodies:
            joint, parent = (
                body.joint,
                one.bodies[body.parent].name + side if body.parent >= 0 else None,
            )
            robot.link(
                body.name + side, parent, joint.kind, at=joint.placement, mass=body.mass, com=body.com, inertia=body.inertia,
                actuated=joint.actuated,
            )  # fmt: skip
        (pin,) = one.loops
        robot.loop(
            f"pin{side}",
            "revolute",
            (f"slider{side}", pin.first.frame),
            (f"rod{side}", pin.second.frame),
            planar=True,
        )
    return robot.near(
        **{name + side: value for side in "ab" for name, value in one.guess.items()}
    ).model()
