"""Every robot file of widely used packages that a peer loads, ramify loads: counted, package by
package, with the decisions that leave a file out.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import pinocchio
import pytest
from packages import VERSIONS, files

import ramify as rf

pytestmark = pytest.mark.filterwarnings(
    "ignore:(?s).*(left out, which changes the motion|check the file):UserWarning"
)

PACKAGES = ("example-robot-data", *VERSIONS)

LEAST = {
    "example-robot-data": (40, 0),
    "pybullet": (1000, 18),
    "dm_control": (0, 38),
    "gymnasium": (0, 10),
    "gymnasium-robotics": (0, 20),
    "robosuite": (0, 47),
}
"""URDF and MJCF files that a package holds at least, so that an empty folder does not pass."""


def urdf_nv(path: Path) -> int | None:
    """Degrees of freedom that Pinocchio finds; None where it does not load the file."""
    try:
        return int(pinocchio.buildModelFromUrdf(str(path)).nv)
    except Exception:  # its bindings raise ValueError, RuntimeError and others
        return None


def mujoco_model(path: Path) -> mujoco.MjModel | None:
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except Exception:  # ValueError, and FatalError, which is no ValueError
        return None


def is_robot(model: mujoco.MjModel) -> bool:
    """Decision: an MJCF file without a body, or with bodies that all stand still and no single one
    that could float, is a part or a scene, not a robot.
    """
    roots = sum(1 for b in range(1, model.nbody) if model.body_parentid[b] == 0)
    return bool(model.nv) or roots == 1


def refusal(path: Path, nv: int) -> str:
    """Why ramify does not load a file with so many degrees of freedom; "" where it does.

    Decision: a robot without joints is loaded with base="free".
    """
    try:
        model = rf.load(path, base=None if nv else "free")
    except rf.ModelError as error:
        return str(error).splitlines()[0]
    assert not nv or model.nv == nv
    return ""


@pytest.mark.parametrize("name", PACKAGES)
def test_urdf_files(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    found = files(name, ".urdf")
    peers = {path: nv for path in found if (nv := urdf_nv(path)) is not None}
    capfd.readouterr()  # Pinocchio's remarks
    refused = {path.name: why for path, nv in peers.items() if (why := refusal(path, nv))}
    assert len(peers) >= LEAST[name][0]
    assert not refused


@pytest.mark.parametrize("name", PACKAGES)
def test_mjcf_files(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    loaded, refused = 0, {}
    for path in files(name, ".xml"):
        if b"<mujoco" not in path.read_bytes()[:100_000]:
            continue
        try:
            rf.load(path)
            loaded += 1
        except rf.ModelError as error:
            peer = mujoco_model(path)
            if peer is None or not is_robot(peer):
                continue
            if peer.nv or (refusal(path, 0)):
                refused[path.name] = str(error).splitlines()[0]
            loaded += 1
    capfd.readouterr()  # MuJoCo's warnings
    assert loaded >= LEAST[name][1]
    assert not refused
