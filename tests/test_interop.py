"""Functions for other libraries: derivatives of every algorithm, steps as rollouts take them, CasADi,
XLA's handler without XLA, and what is refused.
"""

from __future__ import annotations

import ctypes
from typing import Any

import casadi
import mpmath
import numpy as np
import pytest
import sympy

import ramify as rf
from ramify.api.model import Model
from ramify.core.lookup import LookupTable
from ramify.core.scalar import atan2, cos, floor, lookup, select, sin, sqrt
from ramify.interop import libraries
from ramify.interop.differentiable import Differentiable
from ramify.interop.named_functions import named_function
from ramify.interop.xla_handler import XlaHandler
from ramify.kernels.algorithms import ALGORITHMS
from ramify.model.configuration import unit_rates
from ramify.trace.interpret import interpret

RNG = np.random.default_rng


def floating() -> Model:
    """A free body that carries an arm."""
    made = rf.Builder("floating").link("trunk", joint="free", mass=3.0, inertia=(0.2, 0.3, 0.4))
    made.link("arm", "trunk", axis=(0, 1, 0), at=(0.1, 0.2, 0), mass=1.0, com=(0.3, 0, 0))
    return made.model()


def machine() -> Model:
    """A pendulum with a spring, damping and friction, driven by a slide with a limited drive."""
    made = rf.Builder("machine").link(
        "slide", joint="prismatic", axis=(1, 0, 0), mass=1.0, effort=50.0
    )
    made.link(
        "rod", "slide", axis=(0, 1, 0), mass=0.5, com=(0, 0, -0.4), inertia=(0.01, 0.01, 0.01),
        damping=0.3, spring={"stiffness": 4.0},
    )  # fmt: skip
    return made.model()


def rows_of(function: Differentiable, m: Model, count: int, seed: int = 0) -> list[Any]:
    """Random inputs (count, size); q are postures."""
    rng = RNG(seed)
    rows = [0.5 * rng.normal(size=(count, port.size)) for port in function.inputs]
    rows[0] = np.stack([m.random(seed + i)[0] for i in range(count)])
    return rows


TAKES = {"jacobian": {"body": "arm"}, "jacobian_rate": {"body": "arm", "point": (0.1, 0, 0.2)}}
DERIVED = ("_derivatives", "_slopes")
NAMES = [
    name
    for name, row in ALGORITHMS.items()
    if not name.endswith(DERIVED) and (name in TAKES or "target" not in row.extras)
]


@pytest.mark.parametrize("name", [*NAMES, "step", "acceleration"])
def test_adjoint_and_tangent_of_every_algorithm_fit(name: str) -> None:
    """w' (J d) = (J' w)' d; and along a velocity J d is the model's own derivative."""
    m = floating()
    options = TAKES.get(name, {"dt": 0.01, "method": "euler"} if name == "step" else {})
    f = named_function(m, name, options)
    by, inputs, rng = tuple(range(len(f.inputs))), rows_of(f, m, 3), RNG(1)
    d = [rng.normal(size=x.shape) for x in inputs]
    w = [rng.normal(size=(3, port.size)) for port in f.outputs]
    along = interpret(f.tangent(by).program, [*inputs, *d])
    back = interpret(f.adjoint(by).program, [*inputs, *w])
    left = sum((a * b).sum(1) for a, b in zip(along, w, strict=True))
    right = sum((a * b).sum(1) for a, b in zip(back, d, strict=True))
    size = sum(np.abs(a * b).sum(1) for a, b in zip(along, w, strict=True))
    assert (np.abs(left - right) < 1e-12 * size).all()
    if name in ("inverse_dynamics", "momentum", "kinematics"):
        v = rng.normal(size=(3, m.nv))
        d[0] = np.einsum("nk,nki->ni", v, unit_rates(m, inputs[0]))
        found = interpret(f.tangent(by).program, [*inputs, *d])
        ways, given = (
            [x.reshape(3, *s) for x, s in zip(rows, shapes, strict=True)]
            for rows, shapes in (
                ([v, *d[1:]], [(m.nv,), *(p.shape for p in f.inputs[1:])]),
                (inputs, [p.shape for p in f.inputs]),
            )
        )
        for a, b in zip(found, m.derivative_along(name, given, ways), strict=True):
            assert np.abs(a - b.reshape(a.shape)).max() < 1e-12 * max(1.0, np.abs(b).max())


def test_quaternions_need_no_unit_length() -> None:
    """Values and derivatives are those of the normalised quaternion; along itself there is none."""
    m = floating()
    f = named_function(m, "inverse_dynamics", {})
    q, v, x = rows_of(f, m, 2)
    (a,) = f.rows([q, v, x])
    assert np.allclose(a, m.inverse_dynamics(q, v, x), rtol=1e-13)
    long = q.copy()
    long[:, 3:7] *= 1.7
    assert np.allclose(f.rows([long, v, x])[0], a, rtol=1e-12)
    radial = np.zeros_like(q)
    radial[:, 3:7] = q[:, 3:7]
    (still,) = interpret(f.tangent((0,)).program, [q, v, x, radial])
    assert np.abs(still).max() < 1e-12 * np.abs(a).max()
    slopes, (blocks,) = f.jacobian((0,))
    (jacobian,) = interpret(slopes.program, [q, v, x])
    by_q = np.zeros((2, m.nv, m.nq))
    place = 0
    for j, kept in enumerate(blocks[0].pattern):
        by_q[:, kept, j] = jacobian[:, place : place + len(kept)]
        place += len(kept)
    own = m.inverse_dynamics_derivatives(q, v, x)[0]
    assert np.allclose(by_q @ np.swapaxes(unit_rates(m, q), 1, 2), own, rtol=0, atol=1e-11)


def test_batches_of_any_size_and_odd_numbers() -> None:
    """1, few and many states agree; NaN stays where it is; huge angles are computed all the same."""
    m = rf.load("two_link")
    f = named_function(m, "inverse_dynamics", {})
    rows = rows_of(f, m, 50)
    (whole,) = f.rows(rows)
    for n in (0, 1, 3, 50):
        (few,) = f.rows([np.ascontiguousarray(x[:n]) for x in rows])
        assert few.shape == (n, 2)
        assert np.allclose(few, whole[:n], rtol=1e-14)
    rows[1][4, 0] = np.nan
    (found,) = f.rows(rows)
    assert np.isnan(found[4]).any()
    assert np.array_equal(np.delete(found, 4, 0), np.delete(whole, 4, 0))
    rows[1][4, 0] = 0.0
    rows[0][7, 1] = 2e6
    (found,) = f.rows(rows)
    assert np.allclose(found, m.inverse_dynamics(*rows), rtol=1e-9)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("kind", ["floating", "machine", "four_bar", "controlled"])
def test_a_step_is_that_of_a_rollout(kind: str, method: str) -> None:
    m = {"floating": floating, "machine": machine}.get(kind, lambda: rf.load("two_link"))()
    options: dict[str, Any] = {}
    if kind == "four_bar":
        m = rf.load("four_bar")
        state = m.assemble({"crank": 0.4}, {"crank": 1.0})
        q, v = state.q[None], state.v[None]
    else:
        q, v = (np.stack(x) for x in zip(*(m.random(i) for i in range(3)), strict=True))
    if kind == "controlled":
        options["control"] = rf.control.PID(
            rf.motion.Cycloid(np.zeros(m.nv), np.ones(m.nv), 1.0), kp=30.0, ki=5.0
        )
    f = named_function(m, "step", {"dt": 2e-3, "method": method, **options})
    tau = np.full(v.shape, 0.3)
    more = [np.zeros((len(q), p.size)) for p in f.inputs[3:]]
    after = interpret(f.program, [q, v, tau, *more])
    run = rf.rollout(
        m,
        q,
        v,
        steps=1,
        dt=2e-3,
        method=method,
        tau=np.broadcast_to(tau[:, None], (len(q), 1, m.nv)),
        **options,
    )
    for a, b in zip(after[:2], (run.q, run.v), strict=True):
        assert np.allclose(a, b.reshape(a.shape), rtol=0, atol=1e-12 * max(1.0, np.abs(b).max()))


def test_the_method_of_a_step_is_chosen_as_in_a_rollout() -> None:
    rod: dict[str, Any] = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.2, 0, 0)}
    stiff = rf.Builder("stiff").link("rod", damping=300.0, **rod).model()
    ball = rf.Builder("ball").link(
        "ball", joint="free", mass=1.0, inertia=(0.1, 0.1, 0.1), points={"sole": (0, 0, 0)}
    )
    cases: list[tuple[rf.Model, dict[str, Any]]] = [
        (stiff, {}),
        (stiff, {"control": rf.control.PD(rf.motion.Hold([0.5]), kp=9.0, kd=1.0)}),
        (rf.load("two_link"), {}),
        (ball.model(), {"ground": rf.contact.HuntCrossley()}),
    ]
    for m, options in cases:
        q, v = m.random(seed=3)
        run = rf.rollout(m, q, v, steps=1, dt=2e-3, **options)
        assert (run.method == "rk4") == (m.name == "two_link")
        f = named_function(m, "step", {"dt": 2e-3, **options})
        rows = [x[None] for x in (q, v, np.zeros(m.nv))] + [np.zeros((1, 1))] * (len(f.inputs) - 3)
        after = f.rows(rows)
        assert np.allclose(after[0][0], run.q, rtol=0, atol=1e-12)
        assert np.allclose(after[1][0], run.v, rtol=0, atol=1e-10)


def test_machines_and_parameters_are_inputs_of_functions() -> None:
    m = machine()
    q, v = (np.stack(x) for x in zip(*(m.random(i) for i in range(2)), strict=True))
    tau = np.array([[1.0, 0.0], [900.0, 0.0]])  # the drive gives 50 N
    (a,) = named_function(m, "acceleration", {}).rows([q, v, tau])
    assert np.allclose(a, m.forward_dynamics(q, v, np.clip(tau, -50, 50), passive=True))
    (p,) = named_function(m, "passive_forces", {}).rows([q, v])
    assert np.allclose(p, m.passive_forces(q, v).total)
    f = named_function(m, "forward_dynamics", {"parameters": ("rod.mass",)})
    assert f.inputs[-1].name == "parameters"
    heavy = np.full((2, 1), 2.5)
    assert np.allclose(
        f.rows([q, v, tau, heavy])[0],
        m.forward_dynamics(q, v, tau, parameters={"rod.mass": heavy[:, 0]}),
    )


def test_bristles_are_states_of_functions() -> None:
    rod: dict[str, Any] = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.2, 0, 0)}
    rubs = {"coulomb": 2.0, "lugre": {"time": 0.01}}
    m = rf.Builder("rubs").link("rod", friction=rubs, **rod).link("tip", "rod", **rod).model()
    q, v, tau, z = np.array([0.1, 0.2]), np.array([0.3, -0.4]), np.zeros(2), np.array([1e-3])
    f = named_function(m, "acceleration", {})
    assert [port.name for port in f.inputs] == ["q", "v", "tau", "z"]
    a, _ = f.rows([x[None] for x in (q, v, tau, z)])
    assert np.allclose(a, m.forward_dynamics(q, v, m.passive_forces(q, v, z).total))
    law = rf.control.PID(rf.motion.Hold([0.1, 0.2]), kp=3.0, ki=1.0, kd=0.5)
    b, _ = named_function(m, "acceleration", {"control": law}).rows(
        [x[None] for x in (q, v, tau, np.zeros(()), np.append([0.0, 0.0], z))]
    )
    assert np.allclose(b, m.forward_dynamics(q, v, m.passive_forces(q, v, z).total - 0.5 * v))


def test_open_loops_give_no_number() -> None:
    m = rf.load("four_bar")
    state = m.assemble({"crank": 0.4}, {"crank": 1.0})
    f = named_function(m, "forward_dynamics", {})
    tau = np.ones((1, m.nv))
    assert np.allclose(
        f.rows([state.q[None], state.v[None], tau])[0], m.forward_dynamics(state.q, state.v, tau)
    )
    assert np.isnan(f.rows([state.q[None] + [0, 0.3, 0], state.v[None], tau])[0]).all()


# ---- CasADi ----


@pytest.mark.parametrize(
    "name", ["forward_dynamics", "kinematics", "mass_matrix", "pose", "jacobian"]
)
def test_casadi_functions_agree_with_kernels(name: str) -> None:
    m = floating()
    options = {"body": "arm"} if name in ("pose", "jacobian") else {}
    symbolic, kernel = m.casadi(name, **options), m.casadi(name, horizon=np.int64(3), **options)
    rows = rows_of(named_function(m, name, options), m, 3)
    columns = [np.asfortranarray(x.T) for x in rows]
    by_symbols, by_kernel = (
        [np.array(x) for x in f.call([casadi.DM(c) for c in columns])]
        for f in (symbolic.map(3), kernel)
    )
    own = getattr(m, name)(*rows, *options.values())
    for a, b, c in zip(
        by_symbols, by_kernel, own if isinstance(own, tuple) else [own], strict=True
    ):
        assert np.allclose(a, b, rtol=0, atol=1e-12 * max(1.0, np.abs(a).max()))
        first = c[0].reshape(-1, c.shape[-1] if c.ndim > 2 else 1)
        assert np.allclose(b[:, : first.shape[1]], first, rtol=1e-12, atol=1e-12)


def test_casadi_derivatives_are_exact_and_sparse() -> None:
    """Jacobian of a horizon, and the Hessian of a cost, beside those of CasADi's own symbols."""
    m = machine()
    symbolic, kernel = m.casadi("acceleration").map(3), m.casadi("acceleration", horizon=3)
    q, v, tau = (
        np.asfortranarray(x.T) for x in rows_of(named_function(m, "acceleration", {}), m, 3)
    )
    x = casadi.MX.sym("x", m.nq, 3)
    found, own = (f.jacobian()(q, v, tau, casadi.DM(m.nv, 3)) for f in (kernel, symbolic))
    for a, b in zip(found, own, strict=True):
        assert a.nnz() <= 3 * m.nv**2
        assert np.allclose(np.array(a), np.array(b), rtol=0, atol=1e-11)
    hessians = [
        casadi.Function("h", [x], list(casadi.hessian(casadi.sumsqr(f(x, v, tau)), x)))(q)
        for f in (kernel, symbolic)
    ]
    for a, b in zip(*hessians, strict=True):
        assert np.allclose(np.array(a), np.array(b), rtol=1e-10, atol=1e-9)
    forward = casadi.Function(
        "j", [x], [casadi.jtimes(kernel(x, v, tau), x, casadi.DM.ones(m.nq, 3))]
    )
    assert np.allclose(
        np.array(forward(q)).T.ravel(), np.array(own[0]) @ np.ones(3 * m.nq), atol=1e-10
    )


# ---- XLA's interface, without XLA ----


class _Base(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("next", ctypes.c_void_p))


class _Buffer(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.c_void_p),
    )  # fmt: skip


class _Buffers(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p), ("items", ctypes.c_void_p),
    )  # fmt: skip


class _Frame(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("api", ctypes.c_void_p),
        ("context", ctypes.c_void_p), ("stage", ctypes.c_int), ("args", _Buffers), ("rets", _Buffers),
    )  # fmt: skip


class _Error(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t), ("extension", ctypes.c_void_p), ("message", ctypes.c_char_p),
        ("code", ctypes.c_int),
    )  # fmt: skip


def handed(arrays: list[Any], dtype: int = 12) -> tuple[_Buffers, Any]:
    """Arrays as XLA hands them over, and what keeps them alive."""
    dims = [(ctypes.c_int64 * x.ndim)(*x.shape) for x in arrays]
    made = [
        _Buffer(48, None, dtype, x.ctypes.data, x.ndim, ctypes.addressof(d))
        for x, d in zip(arrays, dims, strict=True)
    ]
    table = (ctypes.c_void_p * len(made))(*(ctypes.addressof(b) for b in made))
    return _Buffers(40, None, len(made), None, ctypes.addressof(table)), (dims, made, table)


def test_the_handler_for_xla_reads_its_frames() -> None:
    m = rf.load("two_link")
    f = named_function(m, "energy", {})
    handler = XlaHandler(f)
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(handler._code.address)
    said: list[bytes] = []
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Error))(
        lambda e: said.append(e.contents.message) or 7
    )
    api = (ctypes.c_void_p * 7)(*[None] * 6, ctypes.cast(create, ctypes.c_void_p).value)

    for lead in ((), (3,), (4, 5)):  # one state, few, a batch of batches for all lanes
        q, v = RNG(0).normal(size=(2, *lead, 2))
        outs = [np.zeros(lead), np.zeros(lead)]
        (args, keep), (rets, kept) = handed([q, v]), handed(outs)
        frame = _Frame(152, None, ctypes.addressof(api), None, 2, args, rets)
        assert call(ctypes.addressof(frame)) is None
        assert not np.any(outs)  # not yet the stage of execution
        frame.stage = 3
        assert call(ctypes.addressof(frame)) is None
        assert np.allclose(outs, m.energy(q, v), rtol=1e-13)

    wrong = handed([q.astype(np.float32), v.astype(np.float32)], dtype=11)
    frame.args = wrong[0]
    assert call(ctypes.addressof(frame)) == 7
    assert b"float64" in said[-1]
    args, keep = handed([q * 1e8, v])
    frame.args = args
    assert call(ctypes.addressof(frame)) == 7
    assert b"angle" in said[-1]

    metadata = (ctypes.c_int32 * 16)(*[-1] * 16)
    extension = (ctypes.c_int64 * 4)(32, 1, 0, ctypes.addressof(metadata))
    frame.extension = ctypes.addressof(extension)
    assert call(ctypes.addressof(frame)) is None
    assert list(metadata[6:12]) == [0, 3, 0, -1, 0, 0]
    del keep, kept, wrong


# ---- what is refused ----


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    m = rf.load("two_link")
    for library in ("jax", "torch", "casadi"):
        with pytest.raises(rf.RamifyError, match=rf"pip install 'ramify\[{library}\]'"):
            getattr(m, library)("bias")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("forward_dynamic", {}, "did you mean 'forward_dynamics'"),
        (3, {}, "there is no function 3"),
        ("pose", {}, "body"),
        ("pose", {"body": "link9"}, "link9"),
        ("bias", {"dt": 1.0}, "dt"),
        ("step", {}, "dt"),
        ("step", {"dt": -1.0}, "must be a finite number of seconds > 0"),
        ("step", {"dt": 0.1, "method": "dop853"}, "not a fixed-step scheme"),
        ("actuator_forces", {}, "no actuators"),
        ("bias", {"horizon": 0}, "horizon .* must be a whole number ≥ 1"),
        ("bias", {"horizon": 2.0}, "horizon .* must be a whole number ≥ 1"),
        ("jacobian", {"body": "link2", "point": (1, 2)}, "three finite numbers"),
        ("step", {"dt": 0.1, "control": lambda t, q, v: 0 * q}, "cannot be differentiated"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(name: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(rf.RamifyError, match=message):
        rf.load("two_link").casadi(name, **options)


# ---- other scalars ----


def test_mpmath_and_sympy_and_object_arrays_are_scalars() -> None:
    """All give what floats give, beside a quaternion too."""
    m = floating()
    text = m.kernel("gravity_forces").text
    (q,) = rows_of(named_function(m, "gravity_forces", {}), m, 2)
    own = m.gravity_forces(q)
    with mpmath.workdps(40):
        columns = [np.array([mpmath.mpf(x) for x in column]) for column in q.T]
        (found,) = text(columns)
        (one,) = text([column[0] for column in columns])
    assert found[3].dtype == object
    for k in range(m.nv):
        assert np.allclose(
            np.broadcast_to(np.array(found[k], dtype=float), 2), own[:, k], atol=1e-12
        )
    assert np.allclose([float(x) for x in one], own[0], atol=1e-12)
    arm = rf.load("two_link")
    names = sympy.symbols("v:2")
    (symbols,) = arm.kernel("forward_dynamics").text([0.3, -0.4], names, [1.0, 2.0])
    values = [float(x.subs(dict(zip(names, (0.5, 1.5), strict=True)))) for x in symbols]
    assert np.allclose(values, arm.forward_dynamics([0.3, -0.4], [0.5, 1.5], [1, 2]), rtol=1e-10)


@pytest.mark.parametrize("kind", ["mpmath", "sympy", "object"])
def test_elementary_functions_of_other_scalars(kind: str) -> None:
    make: Any = {
        "mpmath": mpmath.mpf,
        "sympy": sympy.Float,
        "object": lambda x: np.array([sympy.Float(x), mpmath.mpf(x), x], dtype=object),
    }[kind]
    x, y, table = make(0.7), make(-1.2), LookupTable(np.array([2.0, 5.0, 7.0]))
    for got, want in (
        (sin(x), np.sin(0.7)), (cos(x), np.cos(0.7)), (sqrt(x), np.sqrt(0.7)),
        (floor(y), -2.0), (atan2(y, x), np.arctan2(-1.2, 0.7)), (atan2(y, 1.0), np.arctan2(-1.2, 1)),
        (select(x < y, x, y), -1.2), (select(y <= x, x, y), 0.7), (lookup(table, x + 0.3), 5.0),
    ):  # fmt: skip
        for number in np.atleast_1d(np.asarray(got, dtype=object)):
            assert abs(float(number) - want) < 1e-14
    s = sympy.Symbol("s")
    (chosen,) = select(np.array([s < 1], dtype=object), 2.0, 3.0)
    assert (chosen.subs(s, 0), chosen.subs(s, 5)) == (2.0, 3.0)
