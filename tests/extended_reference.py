"""Inverse and forward dynamics of URDF robots in extended precision, read and computed without
ramify: Newton-Euler recursions in link frames, numbers of the file to all their digits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from lxml import etree

Wide = np.longdouble
EXTENDED = np.finfo(Wide).eps < 1e-18
"""Whether this machine has a format wider than double."""


def _vector(text: str) -> Any:
    return np.array([Wide(word) for word in text.split()])


def _turn(axis: Any, angle: Any) -> Any:
    """Rotations (..., 3, 3) about a unit axis."""
    x, y, z = axis
    K = np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]])
    c, s = (np.asarray(f(angle))[..., None, None] for f in (np.cos, np.sin))
    return c * np.eye(3, dtype=Wide) + s * K + (1 - c) * np.outer(axis, axis)


def _origin(element: Any) -> tuple[Any, Any]:
    found = element.find("origin") if element is not None else None
    xyz, rpy = (
        _vector(found.get(key, "0 0 0") if found is not None else "0 0 0") for key in ("xyz", "rpy")
    )
    x, y, z = np.eye(3, dtype=Wide)
    return _turn(z, rpy[2]) @ _turn(y, rpy[1]) @ _turn(x, rpy[0]), xyz


def _times(R: Any, u: Any) -> Any:
    return (R @ u[..., None])[..., 0]


class Node(NamedTuple):
    """A link and the joint that carries it."""

    name: str
    parent: str
    R: Any
    p: Any
    axis: Any
    kind: str
    joint: str
    mass: Any
    com: Any
    inertia: Any


def _node(joint: Any, link: Any) -> Node:
    R, p = _origin(joint)
    axis = joint.find("axis")
    u = _vector(axis.get("xyz")) if axis is not None else np.array([1, 0, 0], dtype=Wide)
    u = u / np.sqrt(u @ u) if joint.get("type") != "fixed" else u
    mass, com, tensor = Wide(0), np.zeros(3, dtype=Wide), np.zeros((3, 3), dtype=Wide)
    inertial = link.find("inertial")
    if inertial is not None:
        turn, com = _origin(inertial)
        mass = Wide(inertial.find("mass").get("value"))
        ixx, iyy, izz, ixy, ixz, iyz = (
            Wide(inertial.find("inertia").get(key, "0"))
            for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        )
        tensor = turn @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ turn.T
    ends = joint.find("child").get("link"), joint.find("parent").get("link")
    return Node(*ends, R, p, u, joint.get("type"), joint.get("name"), mass, com, tensor)


class Reference:
    """A robot on a fixed base whose joints turn, slide or are fixed; ``joints`` gives the order."""

    def __init__(self, path: Path, joints: list[str]) -> None:
        root = etree.parse(str(path)).getroot()
        links = {link.get("name"): link for link in root.findall("link")}
        nodes = {}
        for joint in root.findall("joint"):
            node = _node(joint, links[joint.find("child").get("link")])
            nodes[node.name] = node
        self.base = next(name for name in links if name not in nodes)
        self.nodes: list[Node] = []
        known = {self.base}
        while len(self.nodes) < len(nodes):
            ready = [n for n in nodes.values() if n.parent in known and n.name not in known]
            self.nodes += ready
            known |= {node.name for node in ready}
        self.column = {name: i for i, name in enumerate(joints)}

    def inverse(self, q: Any, v: Any, a: Any, gravity: str = "9.81") -> Any:
        """tau (N, nv) under gravity along -z."""
        q, v, a = (np.asarray(x, dtype=Wide) for x in (q, v, a))
        zero = np.zeros((len(q), 3), dtype=Wide)
        moving = {self.base: (zero, zero, zero + np.array([0, 0, Wide(gravity)]))}
        felt: dict[str, tuple[Any, Any]] = {}
        frames: dict[str, tuple[Any, Any]] = {}
        for node in self.nodes:
            w, dw, dv = moving[node.parent]
            i = self.column.get(node.joint)
            x, rate, gain = (
                np.zeros(len(q), dtype=Wide) if i is None else y[:, i] for y in (q, v, a)
            )
            turns = node.kind in ("revolute", "continuous")
            R = node.R @ _turn(node.axis, x if turns else 0 * x)
            p = node.p + zero if turns else node.p + _times(R, node.axis * x[:, None])
            back = np.swapaxes(R, 1, 2)
            dv = _times(back, dv + np.cross(dw, p) + np.cross(w, np.cross(w, p)))
            w, dw = _times(back, w), _times(back, dw)
            along, gain = node.axis * rate[:, None], node.axis * gain[:, None]
            if turns:
                dw = dw + np.cross(w, along) + gain
                w = w + along
            else:
                dv = dv + 2 * np.cross(w, along) + gain
            moving[node.name], frames[node.name] = (w, dw, dv), (R, p)
            centre = dv + np.cross(dw, node.com) + np.cross(w, np.cross(w, node.com))
            force = node.mass * centre
            spin = _times(node.inertia, dw) + np.cross(w, _times(node.inertia, w))
            felt[node.name] = spin + np.cross(node.com + zero, force), force
        tau = np.zeros((len(q), len(self.column)), dtype=Wide)
        for node in reversed(self.nodes):
            n, f = felt[node.name]
            if node.joint in self.column:
                turns = node.kind in ("revolute", "continuous")
                tau[:, self.column[node.joint]] = ((n if turns else f) * node.axis).sum(-1)
            if node.parent in felt:
                R, p = frames[node.name]
                up, force = felt[node.parent], _times(R, f)
                felt[node.parent] = up[0] + _times(R, n) + np.cross(p, force), up[1] + force
        return tau

    def forward(self, q: Any, v: Any, tau: Any) -> Any:
        """a (N, nv), by elimination in the dense inertia matrix."""
        rest = np.zeros_like(v)
        units = np.eye(v.shape[1])
        M = np.stack([self.inverse(q, rest, rest + unit, "0") for unit in units], axis=-1)
        x = tau - self.inverse(q, v, rest)
        for k in range(len(units)):
            for i in range(k + 1, len(units)):
                factor = M[:, i, k] / M[:, k, k]
                M[:, i] -= factor[:, None] * M[:, k]
                x[:, i] -= factor * x[:, k]
        for k in reversed(range(len(units))):
            x[:, k] = (x[:, k] - (M[:, k, k + 1 :] * x[:, k + 1 :]).sum(-1)) / M[:, k, k]
        return x
