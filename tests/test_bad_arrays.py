"""Arrays that make no sense: an error that names the culprit, never a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ramify as rf
from ramify.kernels.algorithms import ALGORITHMS


def arm(tier: str | None = None) -> Any:
    return rf.from_dh(
        [(0.3, 0.1, 0.0, 0.0)] * 3, [1.0, 2.0, 1.0], [(0.1, 0.0, 0.0)] * 3, [(0.01, 0.02, 0.02)] * 3
    )


ARM = arm()
GOOD = np.full(3, 0.3)
SINGLE_STATE = [
    name for name, a in ALGORITHMS.items() if not a.extras and all(p.count == 1 for p in a.inputs)
]


@pytest.mark.parametrize("tier", ["numpy", "rolled", "unrolled"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "energy"])
def test_a_number_that_is_not_finite_is_named(name: str, bad: float, tier: str) -> None:
    kernel = ARM.kernel(name, tier)
    ports = [p.name for p in ALGORITHMS[name].inputs]
    for i, port in enumerate(ports):
        for batch in ((), (20,)):
            xs = [np.tile(GOOD, (*batch, 1)) for _ in ports]
            xs[i][..., 2] = np.where(
                np.arange(xs[i][..., 2].size).reshape(xs[i][..., 2].shape)
                == max(0, xs[i][..., 2].size - 3),
                bad,
                0.3,
            )
            if batch and np.isnan(bad):  # a state that is not known: tests/test_unknown_states.py
                continue
            with pytest.raises(
                rf.StateError, match=rf"{port}\[2\].*joint3.*{'nan' if np.isnan(bad) else 'inf'}"
            ):
                kernel(*xs)


@pytest.mark.parametrize(
    ("q", "says"),
    [
        (np.zeros(2), r"q has shape \(2,\); 'arm' needs \(\.\.\., 3\)"),
        (np.zeros((3, 2)), r"shape \(3, 2\)"),
        (0.0, r"shape \(\)"),
        (np.zeros(3, dtype=complex), "real numbers"),
        (["a", "b", "c"], "real numbers"),
        ([None, 1.0, 2.0], "real numbers"),
        ([[0.0], [0.0, 1.0]], "real numbers"),
        (np.array([0.0, 1.0, object()], dtype=object), "real numbers"),
    ],
)
def test_shapes_and_types(q: Any, says: str) -> None:
    with pytest.raises(rf.StateError, match=says):
        ARM.mass_matrix(q)
    with pytest.raises(rf.StateError, match=says):
        ARM.inverse_dynamics(q, GOOD, GOOD)


def test_batches_that_do_not_fit() -> None:
    with pytest.raises(rf.StateError, match=r"do not fit together: q \(4,\), v \(5,\), a \(\)"):
        ARM.inverse_dynamics(np.zeros((4, 3)), np.zeros((5, 3)), GOOD)
    with pytest.raises(rf.StateError, match="takes 2 arrays"):
        ARM.kernel("bias")(GOOD)


def test_broadcasting_empty_batches_and_other_layouts() -> None:
    q, v = np.random.default_rng(0).normal(size=(2, 5, 3))
    one = ARM.bias(q, v)
    np.testing.assert_array_equal(ARM.bias(np.asfortranarray(q), v[::-1][::-1]), one)
    np.testing.assert_array_equal(ARM.bias(q.tolist(), v), one)
    np.testing.assert_array_equal(ARM.bias(q[:, None], v)[2, 3], ARM.bias(q[2], v[3]))
    assert ARM.bias(np.zeros((0, 3)), GOOD).shape == (0, 3)
    assert ARM.mass_matrix(np.zeros((2, 0, 3))).shape == (2, 0, 3, 3)
    assert ARM.bias(np.zeros(3, dtype=np.int32), np.float32([1, 2, 3])).shape == (3,)


def test_out() -> None:
    q = np.random.default_rng(0).normal(size=(20, 3))
    k = ARM.kernel("bias")
    out = np.empty((20, 3))
    assert k(q, q, out=out) is out
    np.testing.assert_array_equal(out, k(q, q))
    for wrong in (
        np.empty((20, 2)),
        np.empty((20, 3), dtype=np.float32),
        np.empty((3, 20)).T,
        np.ma.zeros((20, 3)),
        [0.0],
    ):
        with pytest.raises(rf.StateError, match="out"):
            k(q, q, out=wrong)
    with pytest.raises(rf.StateError, match="without a mask"):
        k.fill(q, q, out=np.ma.zeros((20, 3)))
    with pytest.raises(rf.StateError, match="shares memory"):
        k(q, q, out=q)


def test_singular_inertia_is_diagnosed() -> None:
    massless = rf.from_dh(
        [(0.0, 0.0, 0.0, 0.0)] * 2,
        [1.0, 0.0],
        [(0.1, 0.0, 0.0)] * 2,
        [(0.0, 0.1, 0.1), (0.0, 0.0, 0.0)],
    )
    for tier in ("numpy", "rolled", "unrolled"):
        with pytest.raises(rf.StateError, match=r"singular.*check"):
            massless.kernel("forward_dynamics", tier)(np.zeros(2), np.zeros(2), np.ones(2))
    assert np.isfinite(massless.inverse_dynamics(np.zeros(2), np.ones(2), np.ones(2))).all()


def test_overflow_is_diagnosed() -> None:
    with pytest.raises(rf.StateError, match="overflow"):
        ARM.inverse_dynamics(GOOD, np.full(3, 1e200), GOOD)


@pytest.mark.parametrize("tier", ["rolled", "unrolled"])
@pytest.mark.parametrize("name", ["mass_matrix", "gravity_forces", "kinematics"])
def test_huge_angles_are_reduced_exactly(name: str, tier: str) -> None:
    """Beyond the range of the kernels' own sine NumPy's is used; the answer is that of the same
    angle near zero, also among states within the range.
    """
    robot = rf.load("kuka_kr5")
    q = np.random.default_rng(0).uniform(-1.0, 1.0, size=(12, 6))
    q[[1, 2, 5, 9], [1, 2, 3, 4]] = [1.1e6, -1e15, 1e17, 1e20]
    near = np.arctan2(np.sin(q), np.cos(q))
    made = robot.kernel(name, tier)
    k = (lambda x: made(x).rotation) if name == "kinematics" else made
    size = np.abs(k(near)).max()
    for state, joint in ((1, 1), (2, 2), (5, 3), (9, 4)):
        turned = near[state] + 1e-3 * np.eye(6)[joint]
        assert np.abs(k(turned) - k(near[state])).max() > 1e-7 * size  # it depends on this angle
        np.testing.assert_allclose(k(q[state]), k(near[state]), rtol=0, atol=1e-13 * size)
    np.testing.assert_allclose(k(q), k(near), rtol=0, atol=1e-13 * size)
    others = np.setdiff1d(np.arange(12), [1, 2, 5, 9])
    np.testing.assert_array_equal(k(q)[others], k(q[others]))


@pytest.mark.parametrize("tier", [None, "numpy", "rolled", "unrolled"])
def test_masked_entries_are_refused(tier: Any) -> None:
    """A mask hides numbers that must not be computed with; one that hides nothing is no matter."""
    kernel = ARM.kernel("bias", tier)
    kernel(GOOD, GOOD)  # from now on plain arrays take the short way
    masked = np.ma.MaskedArray(GOOD, mask=[False, True, False])
    for hidden in (masked, [masked, masked]):
        with pytest.raises(rf.StateError, match=r"bias: v has masked entries.*filled"):
            kernel(GOOD, hidden)
    bare = np.ma.MaskedArray(GOOD)
    np.testing.assert_allclose(kernel(GOOD, bare), kernel(GOOD, GOOD), rtol=1e-13)
    with pytest.raises(rf.StateError, match="q has masked entries"):
        ARM.inverse_dynamics_derivatives(masked, GOOD, GOOD)


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 100.0, 1e4, 9.9e5])
def test_sine_and_cosine_to_the_last_digit(scale: float) -> None:
    """The kernels' own sine and cosine, seen through a pendulum's pose, against NumPy's."""
    pendulum = rf.from_dh([(0.0, 0.0, 0.0, 0.0)], [1.0], [(1.0, 0.0, 0.0)], [(0.0, 0.0, 0.0)])
    x = np.random.default_rng(0).uniform(-scale, scale, size=(2000, 1))
    x[:4, 0] = [0.0, scale, -scale, scale / 3]
    for tier in ("rolled", "unrolled"):
        R = pendulum.kernel("kinematics", tier)(x).rotation[:, 0]
        np.testing.assert_allclose(R[:, 0, 0], np.cos(x[:, 0]), rtol=0, atol=2.3e-16)
        np.testing.assert_allclose(
            R[:, 1, 0], np.sin(x[:, 0]), rtol=4e-16, atol=2.3e-16 if scale > 1.0 else 0.0
        )


@given(
    q=st.one_of(
        hnp.arrays(
            dtype=st.sampled_from([np.float64, np.float32, np.int64, np.complex128, np.bool_]),
            shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        st.none(), st.text(max_size=3), st.lists(st.floats(), max_size=4),
        st.dictionaries(st.text(max_size=1), st.floats(), max_size=2),
    )
)  # fmt: skip
def test_any_object_gives_finite_numbers_or_an_error(q: Any) -> None:
    for tier in ("numpy", "rolled", "unrolled"):
        try:
            found = ARM.kernel("forward_dynamics", tier)(q, GOOD, GOOD)
        except rf.StateError:
            continue
        assert np.isfinite(found).all()
        assert found.shape[-1] == 3


@pytest.mark.parametrize("name", SINGLE_STATE)
def test_wrong_names_and_tiers(name: str) -> None:
    with pytest.raises(rf.RamifyError, match="did you mean"):
        ARM.kernel(name[:-1])
    with pytest.raises(rf.RamifyError, match="tier"):
        ARM.kernel(name, "fast")


def test_unknown_names() -> None:
    for call in (
        lambda: ARM.jacobian(GOOD, "hand"),
        lambda: ARM.body("hand"),
        lambda: ARM.joint("elbow"),
        lambda: ARM.inverse_dynamics(GOOD, GOOD, GOOD, {"hand": np.zeros(6)}),
    ):
        with pytest.raises(rf.ModelError, match=r"hand|elbow"):
            call()
    with pytest.raises(rf.StateError, match=r"\.\.\., 6"):
        ARM.inverse_dynamics(GOOD, GOOD, GOOD, {"link1": np.zeros(3)})
    with pytest.raises(rf.StateError, match="point"):
        ARM.jacobian(GOOD, "link1", (0.0, 1.0))


@pytest.mark.parametrize("count", [0, -1, "two", 1.5, True, None])
def test_threads(count: Any) -> None:
    before = rf.threads()
    if count is None:
        assert before >= 1
        return
    if count == 1.5:
        assert rf.threads(2) == 2
        rf.threads(before)
        return
    with pytest.raises(rf.RamifyError, match="threads"):
        rf.threads(count)


def test_wrenches_on_the_base_do_nothing_and_those_on_merged_links_are_moved() -> None:
    robot = rf.Builder("robot")
    robot.link("base", joint="fixed")
    robot.link("arm", "base", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    robot.link("tip", "arm", joint="fixed", at=(0.5, 0.0, 0.0))
    m = robot.model()
    q, z = np.array([0.4]), np.zeros(1)
    free = m.inverse_dynamics(q, z, z)
    np.testing.assert_array_equal(m.inverse_dynamics(q, z, z, {"base": [0, 9, 0, 9, 9, 9]}), free)
    w = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    J = m.jacobian(q, "tip")
    np.testing.assert_allclose(m.inverse_dynamics(q, z, z, {"tip": w}), free - J.T @ w, rtol=1e-13)


@pytest.mark.parametrize("count", [0, -1, "two", 1.5, np.inf])
def test_threads_of_a_call(count: Any) -> None:
    with pytest.raises(rf.RamifyError, match="threads"):
        ARM.kernel("bias")(np.zeros((50, 3)), np.zeros((50, 3)), threads=count)


def test_one_array_for_two_results() -> None:
    x = np.empty((2, 3))
    with pytest.raises(rf.StateError, match="shares memory"):
        ARM.kernel("momentum")(np.zeros((2, 3)), np.zeros((2, 3)), out=(x, x))


def test_moving_on_the_manifold_takes_only_what_it_understands() -> None:
    free = rf.load("quadruped", base="free")
    q, v = free.random(0)
    long = q.copy()
    long[3:7] *= 1.1
    for call in (
        lambda: free.integrate(long, v, 0.1),
        lambda: free.difference(q, long),
        lambda: free.integrate(q, v, np.nan),
        lambda: free.integrate(q, v, "a"),
        lambda: free.integrate(q + 1j, v, 0.1),
        lambda: free.difference(np.tile(q, (3, 1)), np.tile(q, (4, 1))),
        lambda: free.inverse_dynamics_derivatives(1.0, v, v),
        lambda: free.zero_moment_point(q, 0 * v, free.forward_dynamics(q, 0 * v, 0 * v)),
        lambda: free.zero_moment_point(q, 0 * v, 0 * v, height=np.nan),
    ):
        with pytest.raises(rf.StateError):
            call()


def test_links_without_a_name() -> None:
    with pytest.raises(rf.ModelError, match="name"):
        rf.Builder("x").link(None).model()  # type: ignore[arg-type]
