"""Functions for PyTorch, in an environment that has it: ``make test-torch``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pages import ROOT, Page
from test_docs import test_code_runs as run_blocks
from test_interop import floating, machine, rows_of

import ramify as rf
from ramify.api.model import Model
from ramify.interop.named_functions import named_function


@cache
def case(kind: str) -> tuple[Model, str, list[Any]]:
    """A model, a function's name, and inputs of four states."""
    if kind == "four_bar":
        m = rf.load("four_bar")
        states = [m.assemble({"crank": 0.3 * i}, {"crank": 1.0}) for i in range(4)]
        q, v = (np.stack(x) for x in zip(*((s.q, s.v) for s in states), strict=True))
        return m, "forward_dynamics", [q, v, np.ones_like(v)]
    m, name = {
        "tree": (rf.load("redysim_3_link"), "forward_dynamics"),
        "floating": (floating(), "inverse_dynamics"),
        "machine": (machine(), "acceleration"),
    }[kind]
    return m, name, rows_of(named_function(m, name, {}), m, 4)


def close(found: Any, own: Any, share: float = 1e-12) -> None:
    assert np.abs(found.detach().numpy() - own).max() <= share * max(1.0, np.abs(own).max())


@pytest.mark.parametrize("kind", ["tree", "floating", "four_bar", "machine"])
def test_values_and_gradients_are_ours(kind: str) -> None:
    """Eager, ``torch.func`` and ``torch.compile`` against the adjoint and tangent programs."""
    m, name, inputs = case(kind)
    f, own = m.torch(name), named_function(m, name, {})
    (value,) = own.rows(inputs)
    w, *d = (np.random.default_rng(3).normal(size=x.shape) for x in (value, *inputs))
    back = own.adjoint((0, 1, 2)).rows([*inputs, w])
    (along,) = own.tangent((0, 1, 2)).rows([*inputs, *d])
    given = [torch.from_numpy(x) for x in inputs]
    weights, ways = torch.from_numpy(w), tuple(map(torch.from_numpy, d))

    def cost(*x: Any) -> Any:
        return (f(*x) * weights).sum()

    wanted = [x.clone().requires_grad_() for x in given]
    cost(*wanted).backward()
    for x, b in zip(wanted, back, strict=True):
        close(x.grad, b)
    close(f(*given), value, 1e-14)
    close(torch.func.vmap(f)(*given), value, 1e-14)
    close(torch.func.vmap(f, (0, None, 0))(given[0], given[1][0], given[2])[0], value[0], 1e-13)
    slopes = torch.func.vmap(torch.func.grad(lambda w, *x: (f(*x) * w).sum(), (1, 2, 3)))
    for a, b in zip(slopes(weights, *given), back, strict=True):
        close(a, b)
    close(torch.func.jvp(f, tuple(given), ways)[1], along)

    compiled = torch.compile(cost, fullgraph=True, backend="aot_eager")
    wanted = [x.clone().requires_grad_() for x in given]
    compiled(*wanted).backward()
    for x, b in zip(wanted, back, strict=True):
        close(x.grad, b)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def transformed(*x: Any) -> Any:
        return torch.func.jvp(f, x, ways)[1], slopes(weights, *x)

    rate, found = transformed(*given)
    close(rate, along)
    for a, b in zip(found, back, strict=True):
        close(a, b)


def test_second_derivatives() -> None:
    m, name, inputs = case("machine")
    f = m.torch(name)
    q, v, tau = (torch.from_numpy(x[0]) for x in inputs)

    def cost(q: Any) -> Any:
        return (f(q, v, tau) ** 2).sum()

    H = torch.func.hessian(cost)(q)
    assert torch.allclose(H, torch.func.jacrev(torch.func.jacrev(cost))(q), rtol=1e-10)
    assert torch.autograd.gradgradcheck(cost, (q.clone().requires_grad_(),), rtol=1e-4)


def test_memory_is_read_as_it_is() -> None:
    """No copy on the way in, other types are converted, results have the shapes of the model's."""
    m = rf.load("two_link")
    f = m.torch("energy")
    assert f.__doc__ == "energy of q (..., 2), v (..., 2); gives kinetic (), potential ()."
    q, v = torch.rand(5, 2, dtype=torch.float64), torch.ones(2)
    found, own = f(q, v), m.energy(q.numpy(), np.ones(2))
    assert type(found) is type(own)
    for a, b in zip(found, own, strict=True):
        assert a.shape == b.shape
        close(a, b, 1e-14)
    assert f(q[:0], v).kinetic.shape == (0,)
    R, p = m.torch("pose", body=m.bodies[-1].name)(q)
    assert R.shape == (5, 3, 3)
    assert p.shape == (5, 3)


def test_single_numbers_are_inputs_and_results() -> None:
    """One state under a controller, which takes the time; under vmap too."""
    m = rf.load("two_link")
    f = m.torch("acceleration", control=rf.control.PD(rf.motion.Hold([0.1, 0.2]), kp=9.0, kd=1.0))
    q = torch.tensor([0.3, 0.4], dtype=torch.float64)
    times = torch.zeros(3, dtype=torch.float64)
    close(torch.func.vmap(f, (None, None, None, 0))(q, q, q, times)[2], f(q, q, q, 0.0).numpy())
    assert m.torch("energy")(q, q).kinetic.shape == ()


def test_bad_input_is_refused() -> None:
    m = rf.load("two_link")
    f = m.torch("bias")
    with pytest.raises(rf.StateError, match=r"bias: q has shape \(3,\)"):
        f(torch.zeros(3), torch.zeros(2))
    for bad in (
        np.ma.masked_array(np.zeros(2), [0, 1]),
        np.zeros(2, complex),
        torch.zeros(2, dtype=torch.complex128),
        "a",
        None,
    ):
        with pytest.raises(rf.StateError, match=r"bias: q (has masked|must be)"):
            f(bad, torch.zeros(2))
    with pytest.raises(rf.StateError, match="takes 2 tensors"):
        f(torch.zeros(2))
    with pytest.raises(rf.StateError, match="do not fit together"):
        f(torch.zeros(3, 2), torch.zeros(4, 2))
    with pytest.raises(rf.StateError, match="is on meta; move it to the CPU"):
        f(torch.zeros(2, device="meta"), torch.zeros(2))
    assert torch.isnan(f(torch.full((2,), torch.nan), torch.zeros(2))).any()


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run: Callable[..., None] = run_blocks
    run(Page(ROOT / "docs" / "pytorch.md"), tmp_path, monkeypatch)


def test_training_changes_a_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two updates run; the values of cut and ended episodes differ as they must."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "training")
    import ppo

    s = ppo.Settings(steps=2 * 8 * 200, num_envs=8, horizon=200, discount=0.95)
    policy, curve = ppo.train("Pendulum", s, quiet=True)
    assert np.isfinite(curve).all()
    assert policy.act[-1].bias.abs().max() > 0.0  # they begin at zero
    reward, value, after = torch.ones(3), torch.zeros(3), torch.full((3,), 10.0)
    stop, cut = torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 1.0, 1.0])
    found = ppo.advantages([reward], [value], [after], [stop], [cut], s)
    np.testing.assert_allclose(found.numpy(), [10.5, 1.0, 10.5], rtol=1e-6)
