"""Studies run any robot that ``simulate`` runs: robots of other projects, with limits, free bases and
long right-hand sides.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packages import package

import ramify as rf
from ramify.emit.segments import SEGMENT, worth_segments
from ramify.plant.make_field import make_field
from ramify.plant.shared_code import lifted
from ramify.studies.work import ALIKE
from ramify.trace.graph import Graph

pytestmark = pytest.mark.filterwarnings(
    "ignore:(?s).*(left out, which changes the motion|check the file|contact):UserWarning",
    "ignore:.*starts at 0, outside its limits:RuntimeWarning",
)

ROBOTS = {
    "arm": ("example-robot-data", "panda_description/urdf/panda.urdf", None),
    "quadruped": ("example-robot-data", "solo_description/robots/solo12.urdf", "free"),
    "humanoid": (
        "example-robot-data", "simple_humanoid_description/urdf/simple_humanoid.urdf", "free",
    ),
    "mjcf": ("gymnasium", "gymnasium/envs/mujoco/assets/walker2d.xml", None),
}  # fmt: skip
"""Package, file, base; all have joint limits."""


def three_runs(name: str, folder: Path, **options: Any) -> rf.Study:
    where, file, base = ROBOTS[name]
    path = package(where) / file
    robot = {"name": str(path)} | ({} if base is None else {"base": base})
    link = rf.load(path, base=base).bodies[-1].name
    scenario = {"name": name, "robot": robot, "t_end": 0.02, "dt_out": 0.01, **options}
    return rf.study(
        name=name, scenario=scenario, vary={f"payload.{link}.mass": {"uniform": [0.01, 0.1]}},
        points={"runs": 3, "seed": 1}, ledger=folder / f"{name}.db",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [("arm", {}), ("arm", {"step": 1e-3}), ("quadruped", {}), ("humanoid", {}), ("mjcf", {})],
)
def test_studies_of_robots_with_limits(name: str, options: Any, tmp_path: Path) -> None:
    """Catches: numbers that became inputs were unknown to the graph's table of nodes, so that code
    long enough for segments asked for them without end.
    """
    s = three_runs(name, tmp_path, **options)
    assert s.run(engine="serial")[:2] == (3, 3), s.errors()
    alone, table = s.scenario(2).run(), s.table()
    for column, coordinate in enumerate(s.recipe.robot.coordinates):
        found, expected = table[f"final.q.{coordinate}"][2], alone.q[-1, column]
        assert abs(found - expected) < 1e-9, (coordinate, found, expected)


@pytest.mark.filterwarnings("always:.*left out, which changes the motion")
def test_what_a_file_leaves_out_is_warned_of_once(tmp_path: Path) -> None:
    """Catches: every model of a study warned, in the name of a file that does not exist."""
    where, file, _ = ROBOTS["mjcf"]
    robot = str(package(where) / file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s = rf.study(
            name="s", scenario={"name": "s", "robot": robot, "t_end": 0.01}, ledger=tmp_path / "s.db",
            vary={"payload.foot.mass": [0.01, 0.02]},
        )  # fmt: skip
        assert s.run(engine="serial").done == 2
        assert s.scenario(1).robot.metadata["report"].left_out  # runs and reports know it
    said = [str(w.message) for w in caught if issubclass(w.category, rf.LeftOutWarning)]
    assert len(said) == 1
    assert said[0].startswith(robot)


def test_workers_run_them_as_well(tmp_path: Path) -> None:
    serial, other = (three_runs("arm", tmp_path / name) for name in ("serial", "processes"))
    for s, engine in ((serial, "serial"), (other, "processes")):
        s.ledger.parent.mkdir()
        assert s.run(jobs=2, engine=engine).done == 3, s.errors()
    kept = [
        {name: column for name, column in s.table().items() if name != "seconds"}
        for s in (serial, other)
    ]
    np.testing.assert_equal(*kept)


def test_lifted_graphs_know_their_nodes() -> None:
    """The table of nodes of a lifted graph is complete: each node is found again, none is added."""
    program = make_field(rf.load(package("example-robot-data") / ROBOTS["arm"][1])).program
    made, _ = lifted(program)
    assert worth_segments(made, SEGMENT)
    graph: Graph = made.graph
    before = len(graph.ops)
    for node, op in enumerate(graph.ops):
        assert graph.copied(op, graph.args[node], graph.payload.get(node)) == node
    assert len(graph.ops) == before


# ---- a study that cannot succeed ----


def doomed(tmp_path: Path, runs: int, low: float = 2.0) -> rf.Study:
    """Sticks on a hinge whose initial rate is beyond what a run allows."""
    scenario = {"name": "spin", "robot": "two_link", "t_end": 0.1, "initial": {"v": [0.0, 0.0]}}
    return rf.study(
        name="doomed", scenario=scenario, ledger=tmp_path / "doomed.db",
        vary={"initial.v.joint1": {"uniform": [low * 1e5, 3e5]}}, points={"runs": runs, "seed": 0},
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_study_whose_first_runs_fail_alike_stops(engine: str, tmp_path: Path) -> None:
    """Catches: a study of 40 runs made all of them though each failed for the same reason."""
    s = doomed(tmp_path, 40)
    with pytest.raises(rf.SimulationError, match=r"stopped.*runs away.*keep_going") as caught:
        s.run(jobs=2, engine=engine)
    assert ALIKE <= s.status().failed <= 10
    assert str(40 - s.status().failed) in str(caught.value)
    assert s.run(engine="serial", keep_going=True).failed == 40


def test_a_study_with_a_good_run_goes_on(tmp_path: Path) -> None:
    s = doomed(tmp_path, 12, low=-2.0)
    count = s.run(engine="serial")
    assert count.failed > 0
    assert count.done > 0
    assert not count.waiting
