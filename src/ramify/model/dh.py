"""Serial arms from Denavit-Hartenberg tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ramify.core.arrays import real, refuse_masks
from ramify.core.errors import ModelError
from ramify.core.messages import shown
from ramify.core.names import one_of
from ramify.model.build import EARTH, LinkSpec, build, tensor_of, understood
from ramify.model.elements import elements_of
from ramify.model.frame import Frame, classical_dh, modified_dh
from ramify.model.joint import Joint
from ramify.model.robot import Robot

DH_COLUMNS = ("a", "alpha", "b", "theta")
DH_ALIASES = {"d": ("b", 1.0)} | {
    f"{angle}_deg": (angle, math.pi / 180.0) for angle in ("alpha", "theta")
}
"""Other names of the columns, each with its factor."""
CONVENTIONS = {"modified": "modified", "classical": "classical", "standard": "classical"}


def from_dh(
    rows: Sequence[Sequence[float] | Mapping[str, float]],
    mass: Sequence[float] | None = None,
    com: Sequence[Sequence[float]] | None = None,
    inertia: Sequence[Any] | None = None,
    *,
    joints: str | Sequence[str] = "",
    convention: str = "modified",
    gravity: Sequence[float] = EARTH,
    name: str = "arm",
    machine: Sequence[Mapping[str, object]] = (),
) -> Robot:
    """A serial arm from its Denavit-Hartenberg table, in one call.

    rows: (a, alpha, b, theta) per link, in m and rad, or mappings with those keys; ``d`` is another
    name of b, and ``alpha_deg``, ``theta_deg`` take degrees. The joint's own variable (theta of a
    revolute, b of a prismatic joint) is its value at q = 0; a mapping may leave it out.
    joints: "R" or "P" per link ("RRP"), or a list of "revolute" and "prismatic"; all revolute by
    default. convention: "modified" (the book:
    frame k on link k at joint k) or "classical", also called "standard" (frame k on link k at joint
    k + 1). mass (n) in kg; com (n, 3) in m and inertia (n; 3 moments, 3 x 3, or {xx, yy, zz, xy,
    xz, yz}) about it in kg m^2, in the link's frame. Without the three, the arm has
    kinematics only. gravity (3) in m/s^2.

    machine: per link what its joint has besides, by the keys of robot files, such as
    {"rotor": {"inertia": 2e-4, "gear": 100}, "damping": 0.1, "limits": (-2, 2)}; ``limits_deg``
    takes degrees.

    Raises ModelError naming the row and column that is missing or not finite.
    """
    with understood("from_dh"):
        n = len(rows)
        bare = [key for key, x in (("mass", mass), ("com", com), ("inertia", inertia)) if x is None]
        if 0 < len(bare) < 3:
            raise ModelError(
                f"from_dh: {' and '.join(bare)} missing; give mass, com and inertia together, or "
                "none of them for kinematics only"
            )
        if mass is None or com is None or inertia is None:
            mass, com, inertia = [0.0] * n, [(0.0, 0.0, 0.0)] * n, [(0.0, 0.0, 0.0)] * n
        kinds = {"R": "revolute", "P": "prismatic"}
        letters = [_letter(joint) for joint in joints] or ["R"] * n
        convention = convention.lower() if isinstance(convention, str) else convention
        one_of("convention", convention, ("modified", "classical", "standard"), ModelError)
        if not isinstance(machine, Sequence):
            raise ModelError(
                f"machine must be a list with a mapping per DH row; got {shown(machine)}"
            )
        lists = {"joints": letters, "mass": mass, "com": com, "inertia": inertia}
        for what, values in (lists | {"machine": machine or [{}] * n}).items():
            refuse_masks(what, values, ModelError)
            if len(values) != n:
                raise ModelError(f"{what} has {len(values)} entries for {n} DH rows")
        links = []
        table = {}
        for k, row in enumerate(rows):
            a, alpha, b, theta = _dh_row(k, row, letters[k])
            if letters[k] not in kinds:
                raise ModelError(f"joints[{k}] is {shown(joints[k])}; it must be 'R' or 'P'")
            placement, outlet = dh_frames(CONVENTIONS[convention], a, alpha, b, theta)
            own = _machine(k, machine[k]) if machine else {}
            limits = _limits(k, letters[k], own)
            elements = elements_of(f"machine[{k}]", 1, own, ("limits", "limits_deg"))
            kind, parent = kinds[letters[k]], f"link{k}" if k else None
            joint = Joint(
                f"joint{k + 1}", kind, placement, outlet, limits=limits, elements=elements
            )
            table[f"link{k + 1}"] = alpha, a, b, theta
            solid = (
                _number(f"mass[{k}]", mass[k]),
                real("com", com[k], ModelError),
                tensor_of(inertia[k]),
            )
            links.append(LinkSpec(f"link{k + 1}", parent, joint, *solid))
    kept = "dh" if CONVENTIONS[convention] == "modified" else "classical_dh"
    return build(name, links, gravity, metadata={kept: table})


def dh_frames(
    convention: str, a: float, alpha: float, b: float, theta: float
) -> tuple[Frame, Frame]:
    """Placement of the joint and outlet of the link for a DH row."""
    if convention == "modified":
        return modified_dh(alpha, a, b, theta), Frame()
    return Frame(), classical_dh(theta, b, a, alpha)


def _letter(joint: Any) -> Any:
    """R or P for a joint in other words: r, revolute, prismatic."""
    word = str(joint).lower()
    return word[0].upper() if word in ("r", "p", "revolute", "prismatic") else joint


def _machine(k: int, machine: Any) -> dict[str, Any]:
    if not isinstance(machine, Mapping | None):
        raise ModelError(
            f"machine[{k}] must be a mapping by the keys of a joint; got {shown(machine)}"
        )
    return dict(machine or {})


def _limits(k: int, letter: str, keys: dict[str, Any]) -> tuple[tuple[float, float], ...]:
    """The limits of a joint in rad or m, taken out of the keys of its machine."""
    limits = {key: keys.pop(key) for key in ("limits", "limits_deg") if keys.get(key) is not None}
    if len(limits) > 1:
        raise ModelError(f"machine[{k}]: limits and limits_deg exclude each other; give one")
    if "limits_deg" in limits and letter == "P":
        raise ModelError(f"machine[{k}]: a slide has no degrees; give its limits in m, as limits")
    for key, value in limits.items():
        pair = real(f"machine[{k}]: {key}", value, ModelError).ravel()
        if len(pair) != 2:
            raise ModelError(f"machine[{k}]: {key} must be one pair (lower, upper)")
        low, high = (np.deg2rad(pair) if key == "limits_deg" else pair).tolist()
        return ((low, high),)
    return ()


def _dh_row(k: int, row: Sequence[float] | Mapping[str, float], letter: str) -> list[float]:
    if isinstance(row, Mapping):
        columns: dict[str, float] = {}
        variable = "b" if letter == "P" else "theta"
        for name, value in row.items():
            column, factor = DH_ALIASES.get(name, (name, 1.0))
            if column not in DH_COLUMNS:
                raise ModelError(
                    f"DH row {k + 1}: unknown column {shown(name)}; columns are a, alpha, b, theta "
                    "or d, alpha_deg, theta_deg; types of joints are given as joints='RRP'"
                )
            if column in columns:
                raise ModelError(f"DH row {k + 1}: {column} is given twice; leave out {name}")
            columns[column] = factor * _number(f"DH row {k + 1}: {name}", value)
        columns.setdefault(variable, 0.0)
        missing = [column for column in DH_COLUMNS if column not in columns]
        if missing:
            raise ModelError(
                f"DH row {k + 1} lacks {', '.join(missing)}; a row has a, alpha, b, theta, of "
                f"which {variable} may be left out"
            )
        row = [columns[column] for column in DH_COLUMNS]
    if len(row) != 4:
        raise ModelError(f"DH row {k + 1} has {len(row)} columns; a row has a, alpha, b, theta")
    refuse_masks(f"DH row {k + 1}", row, ModelError)
    values = [
        _number(f"DH row {k + 1}: {column}", x) for column, x in zip(DH_COLUMNS, row, strict=True)
    ]
    for column, value in zip(DH_COLUMNS, values, strict=True):
        if not math.isfinite(value):
            raise ModelError(f"DH row {k + 1}: {column} is {value}; it must be finite")
    return values


def _number(name: str, value: Any) -> float:
    """A number; truth values are refused."""
    if isinstance(value, bool | np.bool_):
        raise ModelError(f"{name} is {value}; it must be a number")
    return float(value)
