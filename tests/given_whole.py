"""Mechanisms given whole, for the tests: plane linkages and one in space."""

from __future__ import annotations

from typing import Any

import numpy as np

import ramify as rf

PIN: dict[str, Any] = {"actuated": False, "planar": True}


def bar(length: float, mass: float) -> dict[str, Any]:
    i = mass * length**2 / 12
    return {"mass": mass, "com": (length / 2, 0, 0), "inertia": (1e-6, i, i)}


def four_bar(**options: dict[str, Any]) -> rf.Mechanism:
    """A four-bar whose joints have these options, by name; A is cut where all are plain."""
    made = rf.Mechanism("four_bar", gravity=(0, -9.81, 0))
    made.body("crank", **bar(0.08, 0.4)).body("coupler", **bar(0.25, 1.0))
    made.body("rocker", **bar(0.22, 0.8))
    for name, first, second in (
        ("motor", None, "crank"),
        ("A", ("crank", (0.08, 0, 0)), "coupler"),
        ("B", ("coupler", (0.25, 0, 0)), ("rocker", (0.22, 0, 0))),
        ("O2", (None, (0.28, 0, 0)), "rocker"),
    ):
        plain = {} if name == "motor" else PIN
        made.joint(name, first, second, **{**plain, **options.get(name, {})})
    return made.near(motor=1.0, O2=1.4)


def six_bar(**options: Any) -> rf.Mechanism:
    """Watt's linkage; the rocker has three joints. All pins have these options."""
    made = rf.Mechanism("watt", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.1), ("coupler", 0.3), ("rocker", 0.25)):
        made.body(name, **bar(length, 1.0))
    made.body("coupler2", **bar(0.3, 1.0)).body("rocker2", **bar(0.25, 1.0))
    made.joint("motor", None, "crank")
    for name, first, second in (
        ("a", ("crank", (0.10, 0, 0)), "coupler"),
        ("b", ("coupler", (0.30, 0, 0)), ("rocker", (0.25, 0, 0))),
        ("o2", (None, (0.30, 0, 0)), "rocker"),
        ("c", ("coupler2", (0, 0, 0)), ("rocker", (0.20, 0.05, 0))),
        ("d", ("coupler2", (0.30, 0, 0)), ("rocker2", (0.25, 0, 0))),
        ("o3", (None, (0.60, 0, 0)), "rocker2"),
    ):
        made.joint(name, first, second, **PIN, **options)
    return made.near(motor=1.0, o2=1.5, o3=1.5)


def spatial(**ball: Any) -> rf.Mechanism:
    """Revolute, ball, universal, revolute."""
    made = rf.Mechanism("rsur")
    box = {"mass": 1.0, "inertia": (2e-3, 3e-3, 4e-3)}
    made.body("crank", com=(0.05, 0.01, 0), **box).body("rocker", com=(0.1, 0, 0.02), **box)
    made.body("coupler", com=(0.15, 0.02, 0.01), **box)
    made.joint("motor", None, "crank")
    turned = np.array([[1.0, 0, 0, 0.25], [0, 0, 1.0, 0], [0, -1.0, 0, 0], [0, 0, 0, 1.0]])
    made.joint("pivot", (None, turned), "rocker", actuated=False)
    made.joint("ball", ("crank", (0.1, 0, 0)), "coupler", "ball", actuated=False, **ball)
    made.joint(
        "cross", ("coupler", (0.3, 0, 0)), ("rocker", (0.2, 0, 0)), "universal",
        sequence="YZ", actuated=False,
    )  # fmt: skip
    side = np.array([0.59, -0.67, 0.0, -0.45])  # the coupler one way round, not the other
    return made.near(motor=0.5, pivot=-1.2, ball=side / np.linalg.norm(side))
