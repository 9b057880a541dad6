"""A robot file with every key, and how the tests read and refuse files."""

from __future__ import annotations

from typing import Any

import pytest

import ramify as rf
from ramify.api.builders import as_model
from ramify.files.load import read_yaml

read_yaml = as_model(read_yaml)

FULL = """
name: sample  # every key once
description: a sample
source: these tests
gravity: [0, 0, -9.81]
parameters: {length: 0.4, payload: 1.5}
templates:
  finger:
    parameters: {size: 0.02, spread_deg: 10}
    links:
      - name: proximal
        joint: {type: revolute, axis: y, limits_deg: [-5, 90]}
        frame: {xyz: [0, 0, size], rpy_deg: [0, spread_deg, 0]}
        mass: 0.1
        com: [0, 0, size/2]
        inertia: {xx: 1e-5, yy: 1e-5, zz: 2e-6}
        points: {pad: [0.01, 0, size]}
      - name: distal
        parent: proximal
        joint: {axis: y, actuated: false}
        frame: {xyz: [0, 0, 2*size]}
        mass: 0.05
        inertia: [1e-5, 1e-5, 1e-5]
links:
  - name: column
    joint: {type: cylindrical, limits: [[-1, 1], [0, .inf]]}
    dh: {a: 0, alpha: 0}
    mass: 10
    com: [0, 0, 0.1]
    inertia: [[1, 0.1, 0], [0.1, 2, 0], [0, 0, 1.5]]
    shapes:
      - {cylinder: [0.1, 0.5], xyz: [0, 0, 0.25]}
      - {box: [0.1, 0.1, 0.1], rpy_deg: [0, 0, 45]}
  - name: arm
    parent: column
    dh: {a: length, alpha_deg: 90, b: 0.1}
    mass: payload*2
    com: [length/2, 0, 0]
    inertia: [0.1, 0.5, 0.5]
    inertia_about: origin
    shapes: [{capsule: [0.03, length]}, {sphere: 0.05}]
  - name: wrist
    parent: arm
    joint: {type: spherical, sequence: ZYZ, name: ball}
    classical_dh: {a: 0.1, alpha_deg: -90, b: 0.2, theta: pi/2}
    mass: 1e-1
  - name: camera
    parent: wrist
    joint: fixed
    frame: {xyz: [0, 0, 0.1], rotation: [[0, -1, 0], [1, 0, 0], [0, 0, 1]]}
    mass: 0.2
  - {use: finger, prefix: left_, parent: wrist, frame: {xyz: [0, 0.03, 0]}}
  - {use: finger, prefix: right_, parent: wrist, frame: {xyz: [0, -0.03, 0]}, mirror: y, with: {size: 0.03}}
modules: [[column, arm, wrist], [left_proximal, left_distal], [right_proximal, right_distal]]
"""
ONE = "name: one\nlinks:\n  - {{name: a, frame: {{}}, {}}}\n"


def one(keys: str) -> Any:
    """The only body of a robot with these keys."""
    return read_yaml(ONE.format(keys)).bodies[0]


def refused(text: str, **parameters: Any) -> list[str]:
    """The mistakes of a file, without its name."""
    with pytest.raises(rf.ModelError) as caught:
        read_yaml(text, "r.yaml", **parameters)
    lines = str(caught.value).splitlines()
    assert all(line.startswith("r.yaml:") for line in lines)
    return [line.removeprefix("r.yaml:") for line in lines]
