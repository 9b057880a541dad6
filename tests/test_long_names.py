"""Texts of 100,000 characters where a name is wanted: refused, in a message that can be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_files import FULL
from test_mjcf import ARM as MJCF
from test_sdf import SDF
from test_study_files import TEXT as STUDY
from test_urdf import ARM as URDF

import ramify as rf
from ramify.cli import main
from ramify.core.errors import LONGEST_LINE
from ramify.scenario_files.shipped import shipped_text

ARM = rf.load("planar_3r")
BAR = rf.load("four_bar")
STEWART = rf.load("stewart_platform")
Z = np.zeros(3)
LONG = "x" * 100_000
WORDS = "far too long " * 2_000
RUN = rf.simulate(ARM, 0.01)
M, C = rf.motion, rf.control
HOLD = M.Hold([0.0] * 3)


def written(text: str, suffix: str, old: str) -> Callable[[str, Path], Any]:
    """A robot, scenario or study file in which ``old`` is replaced."""

    def read(name: str, folder: Path) -> Any:
        assert old in text
        path = folder / f"file{suffix}"
        path.write_text(text.replace(old, old.replace("NAME", "").replace("?", "") + name, 1))
        reader = {".scenario.yaml": rf.scenario, ".study.yaml": rf.study}.get(suffix, rf.load)
        return reader(path)  # type: ignore[operator]

    return read


ENTRIES: dict[str, Callable[[str, Path], Any]] = {
    "load": lambda s, p: rf.load(s),
    "load a path": lambda s, p: rf.load(f"{s}.urdf"),
    "load base": lambda s, p: rf.load("planar_3r", base=s),
    "load parameter": lambda s, p: rf.load("planar_3r", **{s: 1.0}),
    "scenario": lambda s, p: rf.scenario(s),
    "scenario robot": lambda s, p: rf.scenario("kuka_free_fall", robot=s),
    "study": lambda s, p: rf.study(s),
    "study scenario": lambda s, p: rf.study(scenario=s, vary={"payload.link6.mass": [0, 1]}),
    "study path": lambda s, p: rf.study(scenario="kuka_free_fall", vary={s: [0, 1]}),
    "study part": lambda s, p: rf.study(scenario="kuka_free_fall", **{s: 1}),
    "study open": lambda s, p: rf.Study.open(s),
    "result open": lambda s, p: rf.Result.open(s),
    "joint": lambda s, p: ARM.joint(s),
    "joint_slice": lambda s, p: ARM.joint_slice(s),
    "joint_slice of": lambda s, p: ARM.joint_slice("joint1", s),  # type: ignore[arg-type]
    "body": lambda s, p: ARM.body(s),
    "body_index": lambda s, p: ARM.body_index(s),
    "attachment": lambda s, p: ARM.attachment(s),
    "jacobian": lambda s, p: ARM.jacobian(Z, s),
    "pose": lambda s, p: ARM.pose(Z, s),
    "kernel": lambda s, p: ARM.kernel(s),
    "tier": lambda s, p: ARM.kernel("bias", s),  # type: ignore[arg-type]
    "op_count": lambda s, p: ARM.op_count(s),
    "op_count how": lambda s, p: ARM.op_count("bias", s),  # type: ignore[arg-type]
    "udu": lambda s, p: ARM.udu(Z, s),  # type: ignore[arg-type]
    "derivatives": lambda s, p: ARM.derivatives(s, Z),
    "wrenches": lambda s, p: ARM.inverse_dynamics(Z, Z, Z, {s: np.zeros(6)}),
    "hybrid": lambda s, p: ARM.hybrid_dynamics(Z, Z, Z, [s]),
    "order": lambda s, p: ARM.to_pinocchio(Z, order=[s]),
    "forms": lambda s, p: ARM.to_pinocchio(Z, forms={s: "free"}),
    "array": lambda s, p: ARM.bias([s, s, s], Z),
    "assemble": lambda s, p: BAR.assemble({s: 1.0}),
    "assemble value": lambda s, p: BAR.assemble({BAR.coordinates[0]: s}),
    "assemble rates": lambda s, p: BAR.assemble({BAR.coordinates[0]: 0.1}, {s: 1.0}),
    "assemble guess": lambda s, p: BAR.assemble(guess={s: 1.0}),
    "assemble orientation": lambda s, p: STEWART.assemble({"platform": s}),
    "with_payload": lambda s, p: rf.with_payload(ARM, s, 1.0),
    "with_payload com": lambda s, p: rf.with_payload(ARM, "link1", 1.0, com=s),
    "with_tool": lambda s, p: rf.with_tool(ARM, s, "tool"),
    "with_tool name": lambda s, p: rf.with_tool(ARM, "link1", s),
    "with_tool frame": lambda s, p: rf.with_tool(ARM, "link1", "t", s),
    "with_locked": lambda s, p: rf.with_locked(ARM, s),
    "with_loop": lambda s, p: rf.with_loop(ARM, s, first=("link1", Z)),
    "with_loop joint": lambda s, p: rf.with_loop(ARM, "l", s, first=("link1", Z)),
    "with_loop link": lambda s, p: rf.with_loop(ARM, "l", first=(s, Z)),
    "with_loop guess": lambda s, p: rf.with_loop(ARM, "l", first=("link3", Z), guess={s: 1.0}),
    "with_contact_points": lambda s, p: rf.with_contact_points(ARM, {s: {"p": Z}}),
    "contact point": lambda s, p: rf.with_contact_points(ARM, {"link1": {s: Z}}),
    "robot name": lambda s, p: rf.Builder(s).link("a", mass=1.0).model(),
    "link name": lambda s, p: rf.Builder("r").link(s, mass=1.0).model(),
    "link parent": lambda s, p: rf.Builder("r").link("a", parent=s, mass=1.0).model(),
    "link joint": lambda s, p: rf.Builder("r").link("a", joint=s),
    "link sequence": lambda s, p: rf.Builder("r").link("a", joint="euler", sequence=s),
    "link axis": lambda s, p: rf.Builder("r").link("a", axis=s),  # type: ignore[arg-type]
    "link machine": lambda s, p: rf.Builder("r").link("a", **{s: 1.0}),  # type: ignore[arg-type]
    "mechanism joint": lambda s, p: rf.Mechanism("r").joint("j", s, None).model(),
    "mechanism cut": lambda s, p: rf.Mechanism("r").body("b").joint("j", "b", None).model([s]),
    "convention": lambda s, p: rf.from_dh([], [], [], [], convention=s),
    "dh column": lambda s, p: rf.from_dh([{s: 1.0}], [1.0], [Z], [Z]),
    "euler_joint": lambda s, p: rf.euler_joint(s),
    "method": lambda s, p: rf.simulate(ARM, 0.01, method=s),
    "stabilisation": lambda s, p: rf.simulate(BAR, 0.01, stabilisation=s),
    "at_singularity": lambda s, p: rf.simulate(BAR, 0.01, at_singularity=s),
    "ground": lambda s, p: rf.simulate(ARM, 0.01, ground=s),
    "ground key": lambda s, p: rf.simulate(ARM, 0.01, ground={"law": "firm", s: 1.0}),
    "t_end": lambda s, p: rf.simulate(ARM, s),  # type: ignore[arg-type]
    "damping": lambda s, p: rf.simulate(ARM, 0.01, damping=s),
    "event": lambda s, p: rf.simulate(ARM, 0.01, events={s: lambda *_: np.nan}),
    "control": lambda s, p: rf.simulate(ARM, 0.01, control=s),  # type: ignore[arg-type]
    "rollout method": lambda s, p: rf.rollout(ARM, Z, Z, steps=1, dt=1e-3, method=s),
    "on_failure": lambda s, p: rf.rollout(ARM, Z, Z, steps=1, dt=1e-3, on_failure=s),  # type: ignore[arg-type]
    "linearize": lambda s, p: rf.linearize(ARM, Z, Z, Z, dt=1e-3, method=s),
    "actuated": lambda s, p: rf.simulate(ARM, 0.01, control=C.PD(HOLD, actuated=[s])),
    "interpolate": lambda s, p: C.TorqueTable([0.0], [[0.0]], s),
    "commands": lambda s, p: rf.simulate(ARM, 0.01, control=C.Commands({s: 1.0})),
    "gains": lambda s, p: C.PD(HOLD, kp=s),
    "height field": lambda s, p: rf.contact.HeightField(heights=np.eye(2), spacing=1.0, kind=s),  # type: ignore[arg-type]
    "target": lambda s, p: M.inverse_kinematics(ARM, {s: Z}),
    "joints that move": lambda s, p: M.inverse_kinematics(ARM, {"link3": Z}, joints=[s]),
    "plot": lambda s, p: RUN.plot(s),  # type: ignore[arg-type]
    "plot joints": lambda s, p: RUN.plot("q", joints=[s]),
    "plot theme": lambda s, p: RUN.plot("q", theme=s),  # type: ignore[arg-type]
    "animate": lambda s, p: RUN.animate(p / "film.gif", trail=s),
    "save": lambda s, p: RUN.save(p / s),
    "threads": lambda s, p: rf.threads(s),  # type: ignore[arg-type]
    "yaml parent": written(FULL, ".yaml", "parent: "),
    "yaml joint": written(FULL, ".yaml", "type: "),
    "yaml mass": written(FULL, ".yaml", "mass: "),
    "urdf link": written(URDF, ".urdf", 'link name="'),
    "urdf parent": written(URDF, ".urdf", 'parent link="'),
    "urdf type": written(URDF, ".urdf", 'type="'),
    "urdf mass": written(URDF, ".urdf", 'mass value="'),
    "urdf tag": written(URDF, ".urdf", "<link"),
    "sdf link": written(SDF, ".sdf", 'link name="'),
    "sdf joint type": written(SDF, ".sdf", 'type="'),
    "mjcf body": written(MJCF, ".xml", 'body name="'),
    "mjcf tag": written(MJCF, ".xml", "<body"),
    "scenario key": written(shipped_text("kuka_free_fall"), ".scenario.yaml", "\n"),
    "study key": written(STUDY, ".study.yaml", "\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_messages_stay_short(name: str, tmp_path: Path) -> None:
    for long in (LONG, WORDS):
        with pytest.raises(rf.RamifyError) as caught:
            ENTRIES[name](long, tmp_path)
        text = str(caught.value)
        assert text
        assert max(map(len, text.splitlines())) <= LONGEST_LINE
        assert len(text) < 20_000


@pytest.mark.parametrize("words", [("simulate",), ("info",), ("id",)])
def test_the_command_line(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*words, LONG])
    assert 0 < len(capsys.readouterr().err) < LONGEST_LINE
