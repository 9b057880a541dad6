"""Study files: points, places, and what is refused before anything starts."""

from __future__ import annotations

import pickle
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import ramify as rf
from ramify.studies.paths import NoPlaceError, path_steps
from ramify.studies.points import Design, Distribution, Series, points, run_count
from ramify.studies.spec import Spec, read_spec

TEXT = """name: payloads
scenario: kuka_free_fall
vary:
  payload.link6.mass: {uniform: [0, 5]}
  robot.links.link3.mass: {normal: [13, 1], within: [10, 16]}
  initial.q_deg.joint2: [0, 30]
points: {runs: 8, seed: 3}
keep: {metrics: [max_speed, position.link6], history: {of: q, every: 10}}
"""


def read(text: str) -> Spec:
    return read_spec(text, "study.yaml", None)


def test_a_study_file() -> None:
    spec = read(TEXT)
    assert spec.recipe.paths == (
        "payload.link6.mass",
        "robot.links.link3.mass",
        "initial.q_deg.joint2",
    )
    assert spec.points.shape == (16, 3)
    assert (spec.points.min(axis=0) >= [0, 10, 0]).all()
    assert (spec.points.max(axis=0) <= [5, 16, 30]).all()
    scenario = spec.recipe.scenario([2.5, 11.0, 30.0])
    kuka = rf.load("kuka_kr5")
    assert scenario.robot.mass == pytest.approx(kuka.mass + 2.5 + 11.0 - 12.973)
    assert np.array_equal(scenario.q0, np.deg2rad([0, 30, 0, 0, 0, 0]))


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("link3.mass", "link3.mas", "study.yaml:5:3", "did you mean 'mass'"),
        ("links.link3", "links.lnk3", "study.yaml:5:3", "did you mean 'robot.links.link3.mass'"),
        ("links.link3.mass", "links.link3.com", "study.yaml:5:3", "robot.links.link3.com.0"),
        ("joint2", "jiont2", "study.yaml:6:3", "did you mean 'joint2'"),
        ("payload.link6", "payload.link66", "study.yaml:4:3", "did you mean 'payload.link6.mass'"),
        ("robot.links.link3.mass", "control.kp", "study.yaml:5:3", "no 'control'"),
        ("robot.links.link3.mass", "dampng", "study.yaml:5:3", "did you mean 'damping'"),
        ("robot.links.link3.mass", "robot.name", "study.yaml:5:3", "not a number"),
        (
            "uniform: [0, 5]",
            "uniform: [-3, 5]",
            "study.yaml:4:23",
            "must be finite and not negative",
        ),
        (
            "uniform: [0, 5]",
            "uniform: [5, 3]",
            "study.yaml:4:33",
            "the range from 5.0 to 3.0 is empty",
        ),
        ("uniform: [0, 5]", "log_uniform: [0, 5]", "study.yaml:4:37", "no logarithm"),
        ("uniform: [0, 5]", "unifrm: [0, 5]", "study.yaml:4:24", "did you mean 'uniform'"),
        (
            "uniform: [0, 5]",
            "uniform: [0, heavy]",
            "study.yaml:4:37",
            "no parameter is named 'heavy'",
        ),
        ("normal: [13, 1]", "normal: [13, 0]", "study.yaml:5:41", "standard deviation"),
        ("within: [10, 16]", "within: [16, 10]", "study.yaml:5:53", "is empty"),
        ("[0, 30]", "7", "study.yaml:6:25", "7 must be a list, or a mapping with one of values"),
        ("[0, 30]", "{from: 0, to: 1, count: 1.5}", "study.yaml:6:49", "a whole number"),
        (
            "runs: 8",
            "runs: 1000000000",
            "study.yaml:7:16",
            "2 x 1000000000 = 2,000,000,000 runs; a study has at most 1,000,000",
        ),
        ("[0, 30]", "{from: 0, to: 1, count: 1000000000}", "study.yaml:4:3", "8,000,000,000 runs"),
        ("seed: 3", "seed: -1", "study.yaml:7:25", "-1 must be a whole number ≥ 0"),
        ("seed: 3", "seed: 1.5", "study.yaml:7:25", "1.5 must be a whole number ≥ 0"),
        ("uniform: [0, 5]", "uniform: [-1.0e-9, 5]", "study.yaml:4:23", "-1e-09 is impossible"),
        ("within: [10, 16]", "within: [-1, 16]", "study.yaml:5:27", "-1 is impossible"),
        (
            "robot.links.link3.mass",
            "initial.q.joint2",
            "study.yaml:6:3",
            "initial.q.joint2 is the same coordinate",
        ),
        ("seed: 3", "seeds: 3", "study.yaml:7:19", "did you mean 'seed'"),
        ("max_speed", "max_sped", "study.yaml:8:18", "did you mean 'max_speed'"),
        (
            "max_speed",
            "initial.q_deg.joint2",
            "study.yaml:8:18",
            "name of a parameter; leave out one of them",
        ),
        ("position.link6", "max_speed", "study.yaml:8:29", "duplicate; leave out one of them"),
        ("position.link6", "position.link7", "study.yaml:8:29", "link7"),
        ("of: q", "of: p", "study.yaml:8:60", "there is no history 'p'"),
        ("kuka_free_fall", "kuka_fall", "study.yaml:2:11", "did you mean 'kuka_free_fall'"),
        ("vary:", "vayr:", "study.yaml:3:1", "did you mean 'vary'"),
    ],
)
def test_mistakes_are_refused_with_their_place(old: str, new: str, place: str, said: str) -> None:
    with pytest.raises(rf.ModelError) as caught:
        read(TEXT.replace(old, new, 1))
    lines = str(caught.value).splitlines()
    assert [line for line in lines if line.startswith(place) and said in line], lines


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(rf.ModelError) as caught:
        read(
            TEXT.replace("link3.mass", "link9.mass")
            .replace("joint2", "joint9")
            .replace("max_speed", "fastest")
        )
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["5", "6", "8"]


def test_links_of_templates_can_be_named() -> None:
    text = "name: s\nscenario: planar_3r_free_fall\nvary:\n  robot.links.link2.mass: [1.5]\n"
    name = rf.load("planar_3r").bodies[1].name
    spec = read(text.replace("link2", name))
    assert spec.recipe.scenario([1.5]).robot.bodies[1].mass == 1.5


def test_paths_into_every_part() -> None:
    text = """name: s
scenario: kuka_motion
set: {t_end: 0.3}
vary:
  control.kp: [10]
  motion.duration: [2]
  damping: [0.5]
  robot.gravity.z: [-1.6]
  robot.links.link2.com.x: [0.2]
  payload.link6.com.z: [0.1]
  payload.link6.mass: [3]
  initial.v.joint1: [0.25]
"""
    s = read(text).recipe.scenario([10, 2, 0.5, -1.6, 0.2, 0.1, 3, 0.25])
    assert s.control.kp == (10.0,)  # type: ignore[union-attr]
    assert s.motion.duration == 2.0  # type: ignore[union-attr]
    assert s.options["damping"] == 0.5
    assert s.options["t_end"] == 0.3
    assert s.robot.gravity == (0.0, 0.0, -1.6)
    assert s.robot.bodies[1].com[0] == 0.2
    assert s.v0.tolist() == [0.25, 0, 0, 0, 0, 0]


def test_grids_and_draws() -> None:
    vary = {
        "a": Series((1.0, 2.0)),
        "b": Distribution("uniform", 0.0, 1.0),
        "c": Series((5.0, 6.0, 7.0)),
    }
    design = Design(runs=4, seed=1)
    rows = points(vary, design)
    assert run_count(vary, design) == len(rows) == 24
    assert len({tuple(row) for row in rows[:, [0, 2]]}) == 6
    assert len(np.unique(rows[:, 1])) == 4
    together = points(
        {"a": Series((1.0, 2.0)), "c": Series((5.0, 6.0))}, Design(combine="together")
    )
    assert together.tolist() == [[1, 5], [2, 6]]


@pytest.mark.parametrize("design", ["random", "sobol"])
def test_more_runs_keep_the_points_there_are(design: str) -> None:
    vary = {
        "a": Distribution("uniform", 0.0, 1.0),
        "b": Distribution("normal", 0.0, 1.0),
        "c": Series((1.0, 2.0)),
    }
    few, many = (points(vary, Design(design, runs, 7)) for runs in (8, 16))
    assert np.array_equal(many[: len(few)], few)
    assert not np.array_equal(points(vary, Design(design, 8, 8)), few)


def test_designs_fill_the_range() -> None:
    vary = {"a": Distribution("uniform", 0.0, 1.0), "b": Distribution("uniform", 0.0, 1.0)}
    for design in ("latin_hypercube", "sobol"):
        rows = points(vary, Design(design, 64, 0))
        for column in rows.T:  # one point in each of 64 strata
            assert sorted(np.floor(column * 64).astype(int)) == list(range(64))


def test_distributions() -> None:
    share = (np.arange(20_000) + 0.5) / 20_000
    normal = Distribution("normal", 3.0, 2.0).at(share)
    assert normal.mean() == pytest.approx(3.0, abs=1e-6)
    assert normal.std() == pytest.approx(2.0, rel=1e-3)
    cut = Distribution("normal", 0.0, 1.0, (-1.0, 0.5)).at(share)
    assert cut.min() >= -1.0
    assert cut.max() <= 0.5
    bell = NormalDist()
    assert np.median(cut) == pytest.approx(
        bell.inv_cdf((bell.cdf(-1.0) + bell.cdf(0.5)) / 2), abs=1e-4
    )
    assert np.median(Distribution("log_uniform", 1e-2, 1e2).at(share)) == pytest.approx(
        1.0, rel=1e-3
    )


@pytest.mark.parametrize(
    ("low", "high"), [(9.0, 10.0), (-10.0, -9.0), (40.0, 41.0), (3.0, np.inf), (-np.inf, -2.0)]
)
def test_normal_tails(low: float, high: float) -> None:
    """Cut to a tail, against SciPy's truncated normal distribution."""
    from scipy.stats import truncnorm

    share = np.linspace(0.01, 0.99, 25)
    assert Distribution("normal", 5.0, 2.0, (5.0 + 2.0 * low, 5.0 + 2.0 * high)).at(
        share
    ) == pytest.approx(truncnorm.ppf(share, low, high, loc=5.0, scale=2.0), rel=1e-9)


def test_long_spacings_have_their_values() -> None:
    text = """name: n
scenario: {robot: two_link, t_end: 0.1}
vary: {damping: {from: 0, to: 1, count: 1500001}}
"""
    with pytest.raises(
        rf.ModelError, match="1500001 = 1,500,001 runs; a study has at most 1,000,000"
    ):
        read(text)
    found = read(text + "most_runs: 2000000").points[:, 0]
    assert np.array_equal(found, np.linspace(0.0, 1.0, 1500001))


def test_python_and_file_are_the_same_study(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(TEXT, encoding="utf-8")
    a = rf.study(tmp_path / "s.yaml")
    vary = {
        "payload.link6.mass": {"uniform": [0, 5]},
        "robot.links.link3.mass": {"normal": [13, 1], "within": [10, 16]},
        "initial.q_deg.joint2": np.array([0, 30]),
    }
    keep = {"metrics": ["max_speed", "position.link6"], "history": {"of": "q", "every": 10}}
    b = rf.study(
        scenario="kuka_free_fall",
        vary=vary,
        points={"runs": 8, "seed": 3},
        keep=keep,
        ledger=tmp_path / "b.db",
    )
    assert np.array_equal(a.points, b.points)
    assert [a.recipe.key(row) for row in a.points] == [b.recipe.key(row) for row in b.points]
    assert a.ledger == tmp_path / "s.db"


def test_keys_change_with_everything_that_matters() -> None:
    base = read(TEXT)
    row = [1.0, 13.0, 0.0]
    assert base.recipe.key(row) == read(
        TEXT.replace("payloads", "others").replace("seed: 3", "seed: 4")
    ).recipe.key(row)
    for old, new in (
        ("max_speed", "steps"),
        ("every: 10", "every: 5"),
        ("points:", "set: {rtol: 1e-9}\npoints:"),
    ):
        assert read(TEXT.replace(old, new)).recipe.key(row) != base.recipe.key(row)
    assert base.recipe.key([1.0, 13.0, np.nextafter(0.0, 1.0)]) != base.recipe.key(row)


def test_recipes_travel_light() -> None:
    recipe = read(TEXT).recipe
    text = pickle.dumps(recipe)
    assert len(text) < len(recipe.robot_text) + len(recipe.scenario_text) + 2000
    again = pickle.loads(text)
    assert again.key([1.0, 13.0, 0.0]) == recipe.key([1.0, 13.0, 0.0])


def test_a_metric_of_rates_has_no_entries_of_quaternions() -> None:
    """A quaternion has four coordinates and three rates: speeds and torques are of the rates."""
    scenario = {"robot": {"name": "quadruped", "base": "free"}, "t_end": 0.01}
    for name, sound in (("max_abs_q.base.qw", True), ("max_speed.base.qw", False)):
        parts = {"scenario": scenario, "vary": {"t_end": [0.01]}, "keep": {"metrics": [name]}}
        if sound:
            assert name in rf.study(**parts).columns
        else:
            with pytest.raises(rf.ModelError, match=f"there is no metric '{name}'"):
                rf.study(**parts)


def test_numbers_of_templates_may_be_arithmetic(tmp_path: Path) -> None:
    """A mass that the template computes from its own parameter, and from one of the file."""
    (tmp_path / "r.yaml").write_text(
        "name: r\nparameters: {share: 0.5}\ntemplates:\n  arm:\n    parameters: {size: 0.4}\n    links:\n"
        "      - {name: a, frame: {}, mass: 2*size + share, com: [size/2, 0, 0]}\n"
        "links:\n  - {use: arm}\n"
    )
    for path, masses in (
        ("robot.templates.arm.links.a.mass", [3.0, 5.0]),
        ("robot.templates.arm.parameters.size", [2 * 3.0 + 0.5, 2 * 5.0 + 0.5]),
    ):
        study = rf.study(
            name="s",
            scenario={"robot": str(tmp_path / "r.yaml"), "t_end": 0.01},
            vary={path: [3.0, 5.0]},
            ledger=tmp_path / "s.db",
        )
        assert [study.recipe.scenario([x]).robot.mass for x in (3.0, 5.0)] == pytest.approx(masses)


def test_letters_are_for_the_three_numbers_of_a_vector() -> None:
    """x, y and z name nothing in a pair, in four numbers, or in three parts or rows."""
    assert [path_steps({"at": [1, 2, 3]}, f"at.{x}", f"at.{x}") for x in "xyz"] == [("at", 0), ("at", 1), ("at", 2)]  # fmt: skip
    row = [1.0, 0.0, 0.0]
    for node in ([1, 2], [1, 2, 3, 4], [row, row, row], [{"name": n} for n in "abc"], [1.0, 2.0, row]):  # fmt: skip
        with pytest.raises(NoPlaceError, match=r"no number is found at 'at\.x'"):
            path_steps({"at": node}, "at.x", "at.x", new_key=False)
