"""The parts of a study by themselves, against what is written out here: points, distributions, paths
into documents, tasks, failures alike, kept rows and the look of its plots.
"""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import close
from scipy import stats
from scipy.stats import qmc

import ramify as rf
from ramify.studies import paths, work
from ramify.studies.outputs import Keep, metric
from ramify.studies.points import Design, Distribution, Series, cells, points, run_count
from ramify.studies.sensitivity_indices import first_order_index, pareto, rank_correlation
from ramify.studies.study_plots import MANY, _dependence, _dot, _histogram

SHARES = np.array([0.001, 0.2, 0.5, 0.77, 0.999])


@pytest.mark.parametrize(
    ("one", "law"),
    [
        (Distribution("uniform", -1.5, 4.0), stats.uniform(-1.5, 5.5)),
        (Distribution("log_uniform", 0.2, 30.0), stats.loguniform(0.2, 30.0)),
        (Distribution("normal", 3.0, 0.7), stats.norm(3.0, 0.7)),
        (Distribution("normal", 3.0, 0.7, (2.5, 4.5)), stats.truncnorm(-0.5 / 0.7, 1.5 / 0.7, 3.0, 0.7)),
        (Distribution("normal", 3.0, 0.7, (3.7, 4.5)), stats.truncnorm(1.0, 1.5 / 0.7, 3.0, 0.7)),
        (Distribution("normal", 3.0, 0.7, (1.0, 2.3)), stats.truncnorm(-2 / 0.7, -1.0, 3.0, 0.7)),
    ],
)  # fmt: skip
def test_distributions_are_those_of_scipy(one: Distribution, law: Any) -> None:
    close(one.at(SHARES), law.ppf(SHARES), 1e-7)
    assert one.ends == (one.within if one.kind == "normal" else (one.a, one.b))


VARY: dict[str, Any] = {
    "a": Series((1.0, 2.0, 4.0)), "x": Distribution("uniform", 0.0, 10.0),
    "b": Series((5.0, 7.0)), "y": Distribution("log_uniform", 1.0, 100.0),
}  # fmt: skip


def test_points_of_a_grid_and_of_draws() -> None:
    """The same draws in each cell, runs of one draw beside one another."""
    design = Design("random", 4, 9)
    found = points(VARY, design)
    assert (cells(VARY, design), run_count(VARY, design), found.shape) == (6, 24, (24, 4))
    draws = [np.random.default_rng([9, zlib.crc32(name.encode())]).random(4) for name in "xy"]
    expected = [
        (a, 10.0 * draws[0][k], b, 100.0 ** draws[1][k])
        for k in range(4)
        for a, b in itertools.product((1.0, 2.0, 4.0), (5.0, 7.0))
    ]
    close(found, expected, 1e-12)
    assert Design() == Design("random", 1, 0, "cross")
    for kind, source in (("sobol", qmc.Sobol), ("latin", qmc.LatinHypercube)):
        shares = source(2, seed=np.random.default_rng(9)).random(4)
        close(
            points({k: VARY[k] for k in "xy"}, Design(kind, 4, 9))[:, 0], 10.0 * shares[:, 0], 1e-12
        )


def test_points_one_beside_the_other() -> None:
    vary = {"a": Series((1.0, 2.0, 4.0)), "b": Series((5.0, 7.0, 8.0)), "x": Distribution("uniform", 0.0, 1.0)}  # fmt: skip
    design = Design("random", 2, 1, "together")
    assert (cells(vary, design), run_count(vary, design)) == (3, 6)
    close(points(vary, design)[:3, :2], [(1, 5), (2, 7), (4, 8)], 0)
    close(points(vary, design)[3:, :2], [(1, 5), (2, 7), (4, 8)], 0)
    assert points({}, Design()).shape == (1, 0)
    assert run_count({"a": Series((1.0, 2.0))}, Design(runs=7)) == 2


DOCUMENT = {
    "name": "x", "t_end": 2.0, "source": {"year": 1990},
    "links": [{"name": "arm", "mass": 3.0, "com": [0.1, 0.2, 0.3]}, {"name": "arm.tip", "mass": 4.0}],
    "table": [5.0, 6.0], "rows": [[1.0, 2.0, 3.0]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("t_end", ("t_end",)),
        ("links.arm.mass", ("links", 0, "mass")),
        ("links.arm.com.y", ("links", 0, "com", 1)),
        ("links.arm.com.z", ("links", 0, "com", 2)),
        ("links.arm.com.x", ("links", 0, "com", 0)),
        ("links.arm.com.1", ("links", 0, "com", 1)),
        ("links.arm.tip.mass", ("links", 1, "mass")),  # the longest name that fits
        ("links.1.mass", ("links", 1, "mass")),
        ("table.1", ("table", 1)),
        ("rows.0.y", ("rows", 0, 1)),
        ("new", ("new",)),
    ],
)
def test_paths_lead_to_their_number(text: str, steps: tuple[Any, ...]) -> None:
    assert paths.path_steps(DOCUMENT, text, text) == steps
    changed = paths.with_value(DOCUMENT, steps, 9.5)
    node = changed
    for step in steps:
        node = node[step]
    assert node == 9.5
    before, after = paths.number_paths(DOCUMENT), paths.number_paths(changed)
    assert [x for x in after if x != "new"] == before


@pytest.mark.parametrize("text", ["table.x", "table.2", "links.leg.mass", "links.arm.com.w", "a.b"])
def test_paths_that_lead_nowhere(text: str) -> None:
    with pytest.raises(rf.ModelError, match=f"no number is found at {text!r}"):
        paths.path_steps(DOCUMENT, text, text)
    with pytest.raises(rf.ModelError, match="not a number"):
        paths.path_steps(DOCUMENT, "links.arm", "links.arm")
    with pytest.raises(rf.ModelError, match="no number is found"):
        paths.path_steps(DOCUMENT, "new", "new", new_key=False)


def test_the_numbers_of_a_document() -> None:
    assert paths.number_paths(DOCUMENT) == [
        "t_end", "links.arm.mass", "links.arm.com.0", "links.arm.com.1", "links.arm.com.2",
        "links.arm.tip.mass", "table.0", "table.1", "rows.0.0", "rows.0.1", "rows.0.2",
    ]  # fmt: skip
    less = paths.document_without(DOCUMENT, ("links", 0, "mass"))
    assert less["links"][0] == {"name": "arm", "com": [0.1, 0.2, 0.3]}
    assert DOCUMENT["links"][0]["mass"] == 3.0  # type: ignore[index]


def outcome(number: int, status: str, error: str = "", seconds: float = 0.1, size: int = 8) -> Any:
    return work.Outcome(number, status, error, b"n" * size, b"h" * size, seconds, "here")


def test_tasks_grow_and_shrink() -> None:
    rows = [(10 + k, b"", np.array([k, 2.0 * k]).tobytes()) for k in range(1000)]
    tasks = work.Tasks(rows, 2, "token")
    tasks.lanes = 2
    first = next(tasks)
    assert (len(first.numbers), first.token) == (work.ALIKE // 2, "token")
    assert first.numbers == (10, 11, 12, 13)
    close(first.values, [(0, 0), (1, 2), (2, 4), (3, 6)], 0)
    tasks.learn([outcome(k, "done", seconds=0.01) for k in range(4)])
    second = next(tasks)
    assert second.numbers[0] == 14
    assert len(second.numbers) == 50  # half a second
    tasks.learn([outcome(k, "done", seconds=10.0) for k in range(50)])
    assert len(next(tasks).numbers) == 1
    sizes = [len(task.numbers) for task in tasks]
    assert sum(sizes) == 1000 - 4 - 50 - 1
    large = work.Tasks(rows, 2, "token")
    large.learn([outcome(0, "done", seconds=1e-9, size=1 << 20)])
    assert len(next(large).numbers) == 2  # four megabytes
    quick = work.Tasks(rows, 2, "token")
    quick.learn([outcome(0, "done", seconds=1e-9)])
    assert [len(task.numbers) for task in quick][:2] == [256, 256]
    assert [len(t.numbers) for t in work.Tasks(rows[:3], 2, "x")] == [1, 1, 1]


def test_failures_that_are_alike() -> None:
    """The same message but for its numbers, in all of the first eight runs."""
    bad = [outcome(k, "failed", f"mass {-1.5 * k} at step {k}") for k in range(8)]
    alike = work.CommonFailure()
    assert alike.reason(bad[:7]) == ""
    assert alike.reason(bad[7:]) == bad[0].error
    other = work.CommonFailure()
    assert other.reason([*bad[:4], outcome(4, "failed", "another reason"), *bad[4:]]) == ""
    done = work.CommonFailure()
    assert done.reason([*bad[:4], outcome(4, "done"), *bad[4:]]) == ""
    killed = work.CommonFailure()
    assert killed.reason([*bad[:4], outcome(4, "killed", bad[0].error), *bad[4:]]) == ""


def bob() -> rf.Model:
    b = rf.Builder("bob").link("ball", joint="ball", mass=1.5, com=(0.1, 0.2, -1), inertia=(0.1, 0.2, 0.25))  # fmt: skip
    return b.link("tip", "ball", at=(0, 0, -1), axis=(1, 0, 0), mass=0.5, com=(0, 0.1, -0.2), inertia=(0.1, 0.1, 0.1)).model()  # fmt: skip


def test_what_is_kept_of_a_run() -> None:
    m = bob()
    r = rf.simulate(m, 0.07, [1, 0, 0, 0, 0.3], [0.5, -0.4, 0.3, 0.2], dt_out=0.01)
    keep = Keep(True, ("max_speed.tip", "work"), ("q", "v", "a", "tau", "energy"), 3, {"mine": lambda r: 4.5})  # fmt: skip
    heads = [f"q.{n}" for n in m.coordinates]
    for what in ("v", "a", "tau"):
        heads += [f"{what}.{n}" for n in m.velocities]
    assert keep.history_columns(m) == ["t", *heads, "energy.kinetic", "energy.potential"]
    rows = [0, 3, 6, 7]
    parts = [r.t, r.q, r.v, r.a, r.tau, r.energy.kinetic, r.energy.potential]
    close(keep.rows(r), np.column_stack([part[rows] for part in parts]), 1e-9, 1e-12)
    names = [f"final.q.{n}" for n in m.coordinates] + [f"final.v.{n}" for n in m.velocities]
    assert keep.columns(m) == [*names, "max_speed.tip", "work", "mine"]
    close(keep.numbers(r), [*r.q[-1], *r.v[-1], np.abs(r.v[:, 3]).max(), r.work.actuator[-1], 4.5], 1e-12)  # fmt: skip
    nothing = Keep(final=False)
    assert (nothing.columns(m), nothing.history_columns(m), nothing.rows(r).size) == ([], [], 0)
    assert np.isnan(metric("max_error", m)[1](r)[0])
    close(metric("max_abs_q.tip", m)[1](r), np.abs(r.q[:, 4]).max(), 0)
    assert metric("position.tip", m)[0] == ["position.tip.x", "position.tip.y", "position.tip.z"]


def test_indices_and_fronts() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=40).round(1), rng.normal(size=40).round(1)
    close(rank_correlation(x, y), stats.spearmanr(x, y).statistic, 1e-12)
    assert np.isnan(rank_correlation(x, np.ones(40)))
    groups = np.repeat([1.0, 2.0, 5.0], [10, 20, 10])
    z = groups**2 + y
    means = np.array([z[groups == g].mean() for g in (1.0, 2.0, 5.0)])
    between = float(np.array([10, 20, 10]) @ (means - z.mean()) ** 2)
    within = 40 * z.var() - between
    close(first_order_index(groups, z), (between - within * 2 / 37) / (40 * z.var()), 1e-12)
    assert np.isnan(first_order_index(groups, np.full(40, 3.0)))
    cloud = rng.random((60, 2))
    best = [i for i in range(60) if not any((cloud[j] <= cloud[i]).all() and (cloud[j] < cloud[i]).any() for j in range(60))]  # fmt: skip
    found = pareto(cloud)
    assert sorted(found.tolist()) == best
    assert (np.diff(cloud[found, 0]) > 0).all()


@pytest.mark.parametrize("size", [30, 70, MANY - 1, MANY, 400])
def test_dots_and_medians_of_a_plot(size: int) -> None:
    from matplotlib.figure import Figure

    rng = np.random.default_rng(size)
    x, y = rng.random(size), rng.random(size)
    panel = Figure().subplots()
    _dependence(panel, x, y)
    dots, *median = panel.lines
    many = size >= MANY
    assert (dots.get_alpha(), bool(dots.get_rasterized())) == (
        (0.25, True) if many else (0.6, False)
    )
    assert dots.get_markersize() == _dot(size) == (2.0 if many else 3.0 if size >= 60 else 6.0)
    assert bool(median) == (size >= 50)
    if median:
        edges = np.quantile(x, np.linspace(0, 1, 11))
        part = np.minimum(np.searchsorted(edges, x, side="right") - 1, 9)
        middle = [(np.median(x[part == k]), np.median(y[part == k])) for k in range(10)]
        close(median[0].get_xydata(), middle, 1e-12)
    few = Figure().subplots()
    _dependence(few, np.round(x, 1), y)
    values = np.unique(np.round(x, 1))
    close(
        few.lines[1].get_xydata(), [(v, np.median(y[np.round(x, 1) == v])) for v in values], 1e-12
    )


@pytest.mark.parametrize(("size", "bins"), [(9, 5), (64, 8), (2500, 40)])
def test_histograms_of_a_plot(size: int, bins: int) -> None:
    from matplotlib.figure import Figure

    values = np.random.default_rng(size).random(size)
    panel = Figure().subplots()
    _histogram(panel, values, "work [J]")
    assert len(panel.patches) == bins
    assert sum(p.get_height() for p in panel.patches) == size
    assert (panel.get_title(loc="left"), panel.get_ylabel()) == ("work [J]", "runs")
    same = Figure().subplots()
    _histogram(same, np.full(size, 2.5), "work [J]")
    assert same.texts[0].get_text() == "2.5 in all runs"
    assert not same.patches


def test_units_of_places_without_one() -> None:
    from ramify.studies.study_units import column_unit, parameter_unit

    m = bob()
    assert column_unit(f"final.q.{m.coordinates[0]}", m) == ""
    assert column_unit(f"final.v.{m.velocities[0]}", m) == "rad/s"
    assert column_unit("position.tip.x", m) == "m"
    assert column_unit("mine", m) == ""
    for path, unit in (
        ("links.tip.mass", "kg"), ("links.tip.com.x", "m"), ("links.tip.inertia.0", "kg m^2"),
        ("gravity.z", "m/s^2"), ("links.tip.dh.alpha_deg", "deg"), ("links.tip.dh.alpha", "rad"),
        ("initial.v.tip", "rad/s"), ("initial.q_deg.tip", "deg"), ("t_end", "s"), ("dt_out", "s"),
        ("damping", "N m s/rad"), ("links.tip.colour", ""), ("0", ""),
    ):  # fmt: skip
        assert parameter_unit(path, m) == unit, path


def test_pages_of_runs_are_refused_by_their_suffix(tmp_path: Path) -> None:
    from ramify.studies.page import write_run_of_study

    study = rf.study(
        name="one", scenario={"robot": "two_link", "t_end": 0.02}, vary={"initial.q.joint1": [0.1, 0.3]},
        ledger=tmp_path / "x.db",
    )  # fmt: skip
    study.run(engine="serial")
    with pytest.raises(rf.SimulationError, match=r"x\.doc: the suffix must be one of"):
        write_run_of_study(tmp_path / "x.db", 1, tmp_path / "x.doc")
    for suffix, head in ((".svg", b"<?xml"), (".csv", b"t"), (".nc", b"CDF"), (".html", b"<!")):
        write_run_of_study(tmp_path / "x.db", 1, tmp_path / f"x{suffix}")
        assert (tmp_path / f"x{suffix}").read_bytes().lower().startswith(head.lower())
    close(rf.Result.open(tmp_path / "x.nc").q[0], [0.3, 0.0], 0)
    with pytest.raises(rf.SimulationError, match="keeps no histories"):
        study.history(0)
    with pytest.raises(rf.SimulationError, match=r"no column 'wrk'"):
        study.plot(["wrk"])
