"""More of what the pages promise: bounds, equal bits, refusals. See test_promises.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import ROOT
from test_promises import Check, arm, refused

import ramify as rf

PROMISES: list[tuple[str, str, Check]] = []


def promise(page: str, words: str) -> Any:
    """The check below keeps this sentence of a page."""
    return lambda check: PROMISES.append((page, words, check))


@promise("derivatives.md", "`rf.rollout` refuses a larger one")
def _(folder: Path) -> None:
    m, o = arm(), np.zeros((2, 1))
    options: dict[str, Any] = {"steps": 2, "dt": 1e-3}
    for masses in ([1.0, 2.0, 3.0], [[1.0], [2.0]]):
        refused(
            lambda x=masses: rf.rollout(m, o, o, parameters={"rod.mass": x}, **options),
            "parameters|rod.mass",
        )
    grid = rf.rollout(
        m, o[:, None], o[:, None], parameters={"rod.mass": np.ones((2, 3))}, **options
    )
    assert grid.q.shape == (2, 3, 1)


@promise("urdf.md", "at most 8 MB, nested at most 256 levels deep")
def _(folder: Path) -> None:
    def loaded(levels: int = 3, size: int = 0) -> rf.Model:
        inner = "<x>" * (levels - 3) + "</x>" * (levels - 3)
        text = f'<robot name="r"><link name="a"/><gazebo><plugin>{inner}</plugin></gazebo></robot>'
        (folder / "r.urdf").write_text(text + " " * (size - len(text)), encoding="utf-8")
        return rf.load(folder / "r.urdf", base="free")

    assert loaded(256).name == "r"
    refused(lambda: loaded(257), "r.urdf.*depth", rf.ModelError)
    assert loaded(size=8_000_000).name == "r"
    refused(lambda: loaded(size=8_500_000), "r.urdf.*MB", rf.ModelError)


@promise("conventions.md", "a state gives the same answer **bit for bit**, alone or in a batch")
def _(folder: Path) -> None:
    m = rf.load("puma_560")
    q, v = (np.array(x) for x in zip(*(m.random(seed) for seed in range(300)), strict=True))
    for tier in ("unrolled", "rolled", "numpy"):
        kernel = m.kernel("forward_dynamics", tier)
        whole = kernel(q, v, 0.3 * v, threads=1)
        assert np.array_equal(kernel(q, v, 0.3 * v, threads=3), whole)
        for i in (0, 7, 299):
            assert np.array_equal(kernel(q[i], v[i], 0.3 * v[i]), whole[i])
            assert np.array_equal(
                kernel(q[i : i + 3], v[i : i + 3], 0.3 * v[i : i + 3]), whole[i : i + 3]
            )


@promise("conventions.md", "accurate to the last bit or two for angles up to a million radians")
def _(folder: Path) -> None:
    """The pose of a link on a hinge; beyond a million NumPy's own."""
    m = rf.Builder("r").link("a", axis=(0, 0, 1), mass=1.0, inertia=(1, 1, 1)).model()
    angles = np.random.default_rng(0).uniform(-1e6, 1e6, 20_000)
    for turned in (angles, 1e7 * angles[:200]):
        R = m.kinematics(turned[:, None]).rotation[:, 0]
        for entries, exact in ((R[:, 0, 0], np.cos(turned)), (R[:, 1, 0], np.sin(turned))):
            assert np.abs(entries - exact).max() <= 2.0 * 2.0**-53


@promise("scalars.md", "branch with `select` of `ramify.core.scalar`: a symbol has no truth value")
def _(folder: Path) -> None:
    from ramify.trace.program import Port, trace

    def text(x: Any) -> Any:
        return [[x[0] if x[0] > 0.0 else -x[0]]]

    with pytest.raises(TypeError, match="select"):
        trace("absolute", text, (Port("x", (1,)),), (Port("y", (1,)),))


@promise("simulation.md", "Wrong arguments are refused before anything runs")
def _(folder: Path) -> None:
    calls = []

    def control(t: float, q: Any, v: Any) -> Any:
        calls.append(t)
        return 0.0 * v

    wrong: tuple[dict[str, Any], ...] = (
        {"v0": [np.nan]}, {"dt_out": -1.0}, {"method": "magic"}, {"rtol": 0.0}, {"ground": "lava"},
        {"wrenches": {"nobody": np.zeros(6)}}, {"damping": [1.0, 2.0]}, {"events": 3},
    )  # fmt: skip
    for options in wrong:
        refused(lambda x=options: rf.simulate(arm(), 0.1, control=control, **x), ".")
    assert not calls


@promise(
    "machines.md", "`law.torque` does not, `m.forward_dynamics` and `m.inverse_dynamics` only with"
)
def _(folder: Path) -> None:
    m, law, o = arm(effort=2.0), rf.control.Torque([5.0]), [0.0]
    assert law.torque(m, 0.0, o, o)[0] == 5.0
    free, clamped = (m.forward_dynamics(o, o, [5.0], efforts=x) for x in (False, True))
    np.testing.assert_allclose(clamped, m.forward_dynamics(o, o, [2.0]))
    assert free[0] - clamped[0] > 1.0
    assert np.abs(rf.simulate(m, 0.02, control=law).tau).max() == 2.0
    assert np.abs(rf.simulate(m, 0.02, control=law, efforts=False).tau).max() == 5.0


@promise("machines.md", "(nv) are arrays, infinite where nothing is given")
def _(folder: Path) -> None:
    m = arm()
    assert list(m.upper) == list(m.effort) == list(m.rated_velocity) == [np.inf]
    assert list(m.lower) == [-np.inf]


@promise(
    "machines.md",
    "`limits=` of a *controller* bounds its forces; `limits` of a *joint* is its range",
)
def _(folder: Path) -> None:
    law = rf.control.PD(rf.motion.Hold([1.0]), kp=100.0, kd=0.0, limits=3.0)
    assert law.torque(arm(limits=[(-0.5, 0.5)]), 0.0, [0.0], [0.0])[0] == 3.0


@promise("simulation.md", "The history begins after the first `every` steps")
def _(folder: Path) -> None:
    m, o = arm(), np.zeros(1)
    run, first = (rf.rollout(m, o, o, steps=n, dt=1e-3, every=5) for n in (20, 5))
    np.testing.assert_allclose(run.t, [5e-3, 1e-2, 1.5e-2, 2e-2])
    assert np.array_equal(run.q[0], first.q[-1])
    assert run.q[0, 0] != 0.0


@promise("hybrid-dynamics.md", "the same as `m.momentum(q, v)` in the other order")
def _(folder: Path) -> None:
    m = rf.load("quadruped", base="free")
    q, v = m.random(seed=4)
    h, momentum = m.centroidal_momentum_matrix(q) @ v, m.momentum(q, v)
    np.testing.assert_allclose(
        h, np.concatenate([momentum.angular, momentum.linear]), rtol=1e-9, atol=1e-9
    )


@promise("loops.md", "and then from other postures, always the same ones")
def _(folder: Path) -> None:
    """From a guess that closes nowhere: the same posture, whatever random numbers the user takes."""
    m = rf.load("stewart_platform")
    guess = np.array(m.neutral())
    guess[:3] = 40.0, -30.0, 20.0
    answers = []
    for seed in (1, 2):
        np.random.seed(seed)
        answers.append(m.assemble(guess=guess).q)
    assert np.array_equal(*answers)


@promise("simulation.md", 'on_failure="raise"` makes it an error')
def _(folder: Path) -> None:
    m, o = rf.load("planar_3r"), np.zeros((3, 3))
    v = np.array([o[0], [1e6, 0, 0], o[0]])
    options: dict[str, Any] = {"steps": 20, "dt": 0.02, "method": "euler"}
    refused(lambda: rf.rollout(m, o, v, on_failure="raise", **options), "1 of 3 states failed")
    with pytest.warns(RuntimeWarning, match="1 of 3 states failed"):
        lost = rf.rollout(m, o, v, **options)
    again = rf.rollout(m, lost.q, lost.v, **options)  # the NaN rows are passed on
    assert again.status.failed.tolist() == [False, True, False]
    assert np.isnan(again.q[1]).all()
    assert np.isfinite(again.q[[0, 2]]).all()


@pytest.mark.parametrize(
    ("page", "words", "check"), PROMISES, ids=[f"{page}: {words[:50]}" for page, words, _ in PROMISES]
)  # fmt: skip
def test_the_promise_is_kept(page: str, words: str, check: Check, tmp_path: Path) -> None:
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert " ".join(words.split()) in text, f"docs/{page} no longer says {words!r}"
    check(tmp_path)
