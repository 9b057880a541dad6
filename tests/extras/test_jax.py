"""Functions for JAX, in an environment that has it: ``make test-jax``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pages import ROOT, Page
from test_docs import test_code_runs as run_blocks
from test_interop import floating, machine, rows_of

import ramify as rf
from ramify.api.model import Model
from ramify.interop import jax_functions
from ramify.interop.named_functions import named_function
from ramify.model.configuration import unit_rates

jax.config.update("jax_enable_x64", True)


@cache
def case(kind: str) -> tuple[Model, str, dict[str, Any], list[Any]]:
    """A model, a function's name and options, and inputs of four states."""
    name, options = "forward_dynamics", {}
    if kind == "four_bar":
        m = rf.load("four_bar")
        states = [m.assemble({"crank": 0.3 * i}, {"crank": 1.0}) for i in range(4)]
        q, v = (np.stack(x) for x in zip(*((s.q, s.v) for s in states), strict=True))
        return m, name, options, [q, v, np.ones_like(v)]
    m = {"floating": floating, "machine": machine}.get(kind, lambda: rf.load("kuka_kr5"))()
    if kind == "machine":
        name = "acceleration"
    if kind == "step":
        name, options = "step", {"dt": 1e-3, "method": "semi_implicit_euler"}
    return m, name, options, rows_of(named_function(m, name, options), m, 4)


def close(found: Any, own: Any, share: float = 1e-12) -> None:
    own = np.asarray(own)
    assert np.abs(np.asarray(found) - own).max() <= share * max(1.0, np.abs(own).max())


KINDS = ["tree", "floating", "four_bar", "machine", "step"]


@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_ours(kind: str) -> None:
    """Eager, jit, vmap; reverse and forward mode against the adjoint and tangent programs."""
    m, name, options, inputs = case(kind)
    f, own = m.jax(name, **options), named_function(m, name, options)
    values = own.rows(inputs)
    for call in (f, jax.jit(f), jax.vmap(f), jax.jit(jax.vmap(f, in_axes=(0, 0, 0)))):
        found = call(*inputs)
        for a, b in zip(found if isinstance(found, tuple) else [found], values, strict=True):
            close(a, b, 1e-14)
    single = [x[0] for x in inputs]
    assert np.allclose(jax.tree.leaves(f(*single))[0], values[0][0], rtol=1e-12)
    w, d = ([np.random.default_rng(3).normal(size=x.shape) for x in xs] for xs in (values, inputs))
    back = own.adjoint((0, 1, 2)).rows([*inputs, *w])
    along = own.tangent((0, 1, 2)).rows([*inputs, *d])

    def cost(*x: Any) -> Any:
        return sum((a * b).sum() for a, b in zip(jax.tree.leaves(f(*x)), w, strict=True))

    for a, b in zip(jax.jit(jax.grad(cost, argnums=(0, 1, 2)))(*inputs), back, strict=True):
        close(a, b)
    _, rates = jax.jvp(f, tuple(inputs), tuple(d))
    for a, b in zip(jax.tree.leaves(rates), along, strict=True):
        close(a, b)
    close(jax.grad(cost, argnums=1)(*inputs), back[1])  # by one input alone


def test_jacobians_are_the_model_s_own() -> None:
    m, name, _, inputs = case("floating")
    f = m.jax(name)
    q, v, tau = inputs
    own = m.forward_dynamics_derivatives(q, v, tau)
    for mode in (jax.jacfwd, jax.jacrev):
        by_q, by_v, by_tau = jax.vmap(mode(f, argnums=(0, 1, 2)))(q, v, tau)
        close(by_q @ np.swapaxes(unit_rates(m, q), 1, 2), own[0], 1e-11)
        close(by_v, own[1], 1e-11)
        close(by_tau, own[2], 1e-11)


def test_second_derivatives_of_every_mixture() -> None:
    m = machine()
    f = m.jax("acceleration")
    q, v, tau = (x[0] for x in case("machine")[3])

    def cost(q: Any) -> Any:
        return (f(q, v, tau) ** 2).sum()

    hessians = [a(b(cost))(q) for a in (jax.jacfwd, jax.jacrev) for b in (jax.jacfwd, jax.jacrev)]
    step = 1e-5
    slope = jax.grad(cost)
    columns = [(slope(q + step * e) - slope(q - step * e)) / (2 * step) for e in np.eye(m.nq)]
    for found in hessians:
        assert np.allclose(found, hessians[0], rtol=1e-10)
        assert np.allclose(found, np.stack(columns), rtol=1e-5, atol=1e-4)


def test_a_batch_is_one_call() -> None:
    """vmap of vmap makes one call of the kernel, whatever is mapped."""
    m = rf.load("two_link")
    f = m.jax("bias")
    text = str(
        jax.make_jaxpr(jax.vmap(jax.vmap(f, (0, None)), (0, None)))(np.zeros((5, 3, 2)), np.ones(2))
    )
    assert text.count("ramify[") == 1
    assert "f64[5,3,2]" in text
    q = np.random.default_rng(0).normal(size=(5, 3, 2))
    close(jax.vmap(jax.vmap(f, (0, None)), (0, None))(q, np.ones(2)), m.bias(q, np.ones(2)))
    assert f(np.zeros((0, 2)), np.ones(2)).shape == (0, 2)
    close(jax.vmap(f, (2, None))(np.moveaxis(q, 0, 2), np.ones(2)), m.bias(q, np.ones(2)))


@pytest.mark.parametrize("name", ["energy", "kinematics", "mass_matrix", "jacobian", "pose"])
def test_results_have_the_shapes_of_the_model_s(name: str) -> None:
    m = rf.load("two_link")
    options = {"body": m.bodies[-1].name} if name in ("jacobian", "pose") else {}
    q, v = m.random(seed=1)
    given = (q, v) if name == "energy" else (q,)
    own, found = getattr(m, name)(*given, *options.values()), m.jax(name, **options)(*given)
    assert type(own) is type(found) or not isinstance(own, tuple)
    for a, b in zip(jax.tree.leaves(found), own if isinstance(own, tuple) else [own], strict=True):
        assert a.shape == np.shape(b)
        close(a, b)


def test_a_rollout_by_scan_is_differentiated() -> None:
    """The gradient of where a run of steps ends, by its torques, against differences."""
    m = rf.load("two_link")
    step = m.jax("step", dt=5e-3, method="rk4")

    @jax.jit
    def end(forces: Any) -> Any:
        start = (jnp.zeros(2), jnp.zeros(2))
        (q, _), _ = jax.lax.scan(lambda x, u: (tuple(step(*x, u)), None), start, forces)
        return (q**2).sum()

    forces = np.random.default_rng(0).normal(size=(20, 2))
    run = rf.rollout(m, np.zeros(2), np.zeros(2), steps=20, dt=5e-3, tau=forces)
    assert np.isclose(end(forces), (run.q**2).sum(), rtol=1e-10)
    slope, e = jax.grad(end)(forces), np.zeros((20, 2))
    e[3, 1] = 1e-4
    assert np.isclose(slope[3, 1], (end(forces + e) - end(forces - e)) / 2e-4, rtol=1e-6)


def test_traced_functions_need_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """trace=True: JAX does all itself, also with float32."""
    m = rf.Builder("rod").link("rod", axis=(0, 1, 0), mass=1.0, com=(0.5, 0, 0)).model()
    f, g = m.jax("forward_dynamics", trace=True), m.jax("forward_dynamics")
    x = [np.array([0.4]), np.array([1.0]), np.array([0.2])]
    assert "ramify" not in str(jax.make_jaxpr(f)(*x))
    close(f(*x), g(*x))
    close(jax.jacrev(f)(*x), jax.jacrev(g)(*x))
    jax.config.update("jax_enable_x64", False)
    try:
        assert f(*x).dtype == np.float32
        with pytest.raises(rf.RamifyError, match="jax_enable_x64"):
            g(*x)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_without_handlers_python_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jax_functions._handlers_work()
    monkeypatch.setattr(jax_functions, "_handlers_work", lambda: False)
    m = rf.load("redysim_2_link")
    f = jax.jit(jax.vmap(jax.grad(lambda q, v: m.jax("bias")(q, v).sum())))
    q, v = np.random.default_rng(0).normal(size=(2, 3, 2))
    by_q = m.derivatives("bias", q, v)[0][0]
    close(f(q, v), by_q.sum(1))
    assert "callback" in f.lower(q, v).as_text()


def test_bad_input_is_refused() -> None:
    m = rf.load("two_link")
    f = m.jax("bias")
    with pytest.raises(rf.StateError, match=r"bias: q has shape \(3,\)"):
        f(np.zeros(3), np.zeros(2))
    for bad in (
        np.ma.masked_array(np.zeros(2), [0, 1]),
        np.zeros(2, complex),
        jax.numpy.zeros(2, complex),
        "a",
        None,
    ):
        with pytest.raises(rf.StateError, match=r"bias: q (has masked|must be)"):
            f(bad, np.zeros(2))
    with pytest.raises(rf.StateError, match="takes 2 arrays"):
        f(np.zeros(2))
    with pytest.raises(rf.StateError, match="do not fit together"):
        f(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(Exception, match="angle is beyond"):
        jax.block_until_ready(jax.jit(f)(np.full(2, 1e8), np.zeros(2)))
    assert np.isnan(f(np.full(2, np.nan), np.zeros(2))).any()


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run: Callable[..., None] = run_blocks
    run(Page(ROOT / "docs" / "jax.md"), tmp_path, monkeypatch)
