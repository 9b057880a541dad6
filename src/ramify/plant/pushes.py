"""External wrenches of runs and rollouts: as users write them, as numbers for the compiled
right-hand side, and as a result records them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array, numbers, one_number
from ramify.core.errors import RamifyError, SimulationError, StateError
from ramify.core.memory import refuse_too_large
from ramify.core.messages import shown
from ramify.kernels.queries import applied_wrenches, jacobian
from ramify.model.robot import Robot

WrenchMap = Mapping[str, ArrayLike]
"""{link or frame: [moment; force]}, at its origin, in the axes of the world, N m and N."""
WrenchesLike = (
    WrenchMap | Callable[[float], WrenchMap] | Sequence[tuple[float, float, WrenchMap]] | None
)
"""Constant wrenches, a function of time that gives some, or pushes (start, end, wrenches), s."""

_FORMS = (
    "a mapping {link: [moment; force]}, a function of time that gives one, or a list of pushes "
    "(start, end, mapping)"
)


@dataclass(frozen=True, eq=False, repr=False)
class AppliedWrenches:
    """External wrenches of a run of T rows: names (k,) of the links and frames on which they acted;
    values (T, k, 6), [moment; force] at the origin of each, world-aligned, N m and N; work (T,):
    what they gave the robot since the first row, J.
    """

    names: tuple[str, ...]
    values: Array
    work: Array

    def __post_init__(self) -> None:
        for name, lead in (("values", (len(self.names), 6)), ("work", ())):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (*np.shape(self.work)[:1], *lead):
                raise StateError(
                    f"wrenches.{name} has shape {array.shape}; {len(self.names)} wrenches need "
                    f"(T, {', '.join(map(str, lead))})"
                )
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"<ramify.AppliedWrenches on {', '.join(self.names)}: {len(self.work)} rows>"

    def __getitem__(self, name: str) -> Array:
        """The wrench (T, 6) on a link or frame."""
        if name not in self.names:
            raise SimulationError(
                f"no wrench acted on {shown(name)}; there are wrenches on {', '.join(self.names)}"
            )
        return self.values[:, self.names.index(name)]

    def on_bodies(self, model: Robot, q: Array) -> dict[str, Array]:
        """The wrench (T, 6) on each body, at its origin."""
        by_link = applied_wrenches(
            model, {name: self.values[:, i] for i, name in enumerate(self.names)}, q
        )
        pushed = dict.fromkeys(model.attachment(name).body for name in self.names)
        return {model.bodies[b].name: by_link[:, model.skeleton.last[b]] for b in pushed if b >= 0}


def push_forces(model: Robot, names: Sequence[str], q: Array, wrenches: Array) -> Array:
    """The sum of J' w (..., nv) over wrenches (..., 6 k) on links or frames of these names."""
    out = np.zeros((*q.shape[:-1], model.nv))
    for i, name in enumerate(names):
        J = jacobian(model, q, name)
        out += np.einsum("...ij,...i->...j", J, wrenches[..., 6 * i : 6 * i + 6])
    return out


class _Push(NamedTuple):
    start: float
    end: float
    wrenches: Mapping[str, Array]


class Pushes:
    """The wrenches of one run. ``names`` (k,); ``breaks``: times at which they jump; ``follows``:
    they are a function of the user, called at every evaluation.
    """

    def __init__(self, model: Robot, wrenches: WrenchesLike, times: Array) -> None:
        self.follows = callable(wrenches) and not isinstance(wrenches, Mapping)
        self._model, self._wrenches = model, wrenches
        self._pushes: list[_Push] = []
        if self.follows:
            results = (_called(model, wrenches, float(t)) for t in times)  # type: ignore[arg-type]
            names = [name for one in results for name in one]
        else:
            self._pushes = _pushes(model, wrenches)
            names = [name for push in self._pushes for name in push.wrenches]
        self.names = tuple(dict.fromkeys(names))
        ends = {t for push in self._pushes for t in push[:2] if 0.0 < t < times[-1]}
        self.breaks: Sequence[float] = sorted(ends)

    def at(self, t: float) -> Array:
        """(6 k,) at a time, just after a jump."""
        out = np.zeros((len(self.names), 6))
        active = [push.wrenches for push in self._pushes if push.start <= t < push.end]
        if self.follows:
            active = [_called(self._model, self._wrenches, t)]  # type: ignore[arg-type]
        for wrenches in active:
            for name, w in wrenches.items():
                if name not in self.names:
                    raise SimulationError(
                        f"wrenches gives one on {name!r} at t = {t:g} s, but on no time of output; "
                        "give that link at every time, with zeros where nothing acts, or give "
                        "pushes (start, end, {…})"
                    )
                out[self.names.index(name)] += _single(name, w)
        return out.reshape(-1)

    def until(self, t: float, t_end: float) -> float:
        """The next jump after t, or t_end."""
        return next((x for x in self.breaks if x > t), t_end)

    @property
    def described(self) -> Any:
        """The wrenches as plain data; the name of a function."""
        if self.follows:
            return (
                f"function {getattr(self._wrenches, '__qualname__', type(self._wrenches).__name__)}"
            )
        if isinstance(self._wrenches, Mapping):
            return {name: w.tolist() for name, w in self._pushes[0].wrenches.items()}
        return [[a, b, {name: w.tolist() for name, w in x.items()}] for a, b, x in self._pushes]


def pushes_of(model: Robot, wrenches: WrenchesLike, times: Array) -> Pushes | None:
    """The wrenches of a run with output at these times; None where there are none at all."""
    pushes = Pushes(model, wrenches, times)
    return pushes if pushes.names or pushes.follows else None


def wrench_table(
    model: Robot, wrenches: WrenchesLike, lead: tuple[int, ...], steps: int, dt: float, t0: float
) -> tuple[tuple[str, ...], Array]:
    """(names (k,), table (states or 1, steps or 1, 6 k)) of a rollout of states ``lead``. A push
    that lasts for a part of a step acts with that share of its force, which preserves its impulse;
    a function is called for the middle of each step.
    """
    many = math.prod(lead)
    tables: dict[str, Array] = {}

    def add(name: str, part: Array) -> None:
        tables[name] = tables[name] + part if name in tables else part

    if callable(wrenches) and not isinstance(wrenches, Mapping):
        results = [_called(model, wrenches, t0 + (k + 0.5) * dt) for k in range(steps)]
        for name in dict.fromkeys(name for one in results for name in one):
            rows = [_by_state(name, one.get(name, np.zeros(6)), lead, many) for one in results]
            tables[name] = np.concatenate(np.broadcast_arrays(*rows), axis=1)
    elif isinstance(wrenches, Mapping):
        for name, w in _checked(model, wrenches).items():
            add(name, _by_state_and_step(name, w, lead, many, steps))
    else:
        refuse_too_large("the wrenches of all steps", (steps, 6), "take fewer steps at once")
        begin = t0 + dt * np.arange(steps)
        for start, end, by_name in _pushes(model, wrenches):
            share = np.clip(np.minimum(begin + dt, end) - np.maximum(begin, start), 0.0, dt) / dt
            for name, w in by_name.items():
                add(name, _by_state(name, w, lead, many) * share[:, None])
    if not tables:
        return (), np.zeros((1, 1, 0))
    return tuple(tables), np.concatenate(np.broadcast_arrays(*tables.values()), axis=-1)


def _by_state(name: str, w: Array, lead: tuple[int, ...], many: int) -> Array:
    """(states or 1, 1, 6) of wrenches (6,) or (..., 6)."""
    if w.ndim == 1:
        return w[None, None]
    try:
        return np.broadcast_to(w, (*lead, 6)).reshape(many, 1, 6)
    except ValueError:
        raise StateError(
            f"the wrench on {name!r} has shape {w.shape}; it must be (6,) or {(*lead, 6)}"
        ) from None


def _by_state_and_step(name: str, w: Array, lead: tuple[int, ...], many: int, steps: int) -> Array:
    """(states or 1, steps or 1, 6) of wrenches (6,), (..., 6), (steps, 6) or (..., steps, 6)."""
    lengths = w.shape[:-1]
    of_steps, of_states = lengths == (steps,), _fits(lengths, lead) and len(lengths) <= len(lead)
    if of_steps and of_states and steps > 1:
        raise StateError(
            f"the wrench on {name!r} has shape {w.shape}, which may mean one per state or one per "
            f"step: give {(*lead, 1, 6)} or {(*(1,) * len(lead), steps, 6)}"
        )
    if of_steps:
        return w[None]
    if of_states:
        return _by_state(name, w, lead, many)
    if not _fits(lengths, (*lead, steps)):
        want = dict.fromkeys(((6,), (*lead, 6), (steps, 6), (*lead, steps, 6)))
        raise StateError(
            f"the wrench on {name!r} has shape {w.shape}; it must be one of "
            f"{', '.join(map(str, want))}"
        )
    rows = 1 if lengths[-1] == 1 else steps
    return np.broadcast_to(w, (*lead, rows, 6)).reshape(many, rows, 6)


def _fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array of a shape can be broadcast into another."""
    pairs = zip(reversed(shape), reversed(into), strict=False)
    return len(shape) <= len(into) and all(a in (1, b) for a, b in pairs)


def _single(name: str, w: Array) -> Array:
    if w.ndim != 1:
        raise StateError(
            f"the wrench on {name!r} has shape {w.shape}; simulate runs one state and needs (6,); "
            "for many use rf.rollout, for one that varies with time a function or pushes"
        )
    return w


def _checked(model: Robot, wrenches: object) -> dict[str, Array]:
    """Wrenches by name, each (..., 6); those on the base, which does not move, are left out."""
    if not isinstance(wrenches, Mapping):
        raise StateError(f"wrenches must be {_FORMS}; it is a {type(wrenches).__name__}")
    by_name = {
        name: numbers(f"the wrench on {name!r}", value, 6, "[moment; force]")
        for name, value in wrenches.items()
    }
    return {name: w for name, w in by_name.items() if model.attachment(name).body >= 0}


def _called(model: Robot, function: Callable[[float], WrenchMap], t: float) -> dict[str, Array]:
    """The wrenches of a function at a time."""
    try:
        return _checked(model, function(t))
    except RamifyError as error:
        raise SimulationError(f"{error} (wrenches at t = {t:g} s)") from error
    except Exception as error:
        raise SimulationError(f"wrenches raised {error!r} at t = {t:g} s") from error


def _pushes(model: Robot, wrenches: object) -> list[_Push]:
    if isinstance(wrenches, Mapping):
        return [_Push(-math.inf, math.inf, _checked(model, wrenches))]
    if isinstance(wrenches, str) or not isinstance(wrenches, Sequence):
        raise StateError(f"wrenches must be {_FORMS}; it is {shown(wrenches)}")
    return [_push(model, push) for push in wrenches]


def _push(model: Robot, push: object) -> _Push:
    if isinstance(push, Sequence) and len(push) == 3:
        start, end = map(one_number, push[:2])
        if start < end:
            return _Push(start, end, _checked(model, push[2]))
        listed = f"({shown(push[0])}, {shown(push[1])}, …)"
    else:
        listed = shown(push)
    raise StateError(
        "a push must be (start, end, {link: [moment; force]}) with start < end, in s; got "
        f"{listed}"
    )
