"""Many robots as one vectorised environment of Gymnasium; one robot as a single one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from ramify.control.pd import PD
from ramify.core.arrays import Array, real, whole
from ramify.core.errors import SimulationError, StateError
from ramify.core.names import one_of
from ramify.dynamics.parameters import packed
from ramify.emit.hard_stepper import SOLVED
from ramify.emit.stepper import Scheme
from ramify.envs.env_options import (
    action_factors,
    no_options,
    pair,
    picture_size,
    random_generator,
    ranges,
    refuse_infinite,
    refuse_non_functions,
    time_steps,
)
from ramify.envs.returns import check_returns
from ramify.integrate.closed_start import refuse_open_states
from ramify.integrate.integrators import AUTO, scheme_of
from ramify.integrate.machine_steps import batch_method, hard_method
from ramify.integrate.stepping import stepper
from ramify.loops.assemble import assemble
from ramify.model.configuration import checked
from ramify.model.driven import Driven, driven
from ramify.model.robot import Robot
from ramify.motion.hold import Hold
from ramify.plant.field import Field
from ramify.plant.make_field import ContactLike, GroundLike, PlantOptions, make_field
from ramify.plant.varied_field import VariedField, known_parameters, varied_start
from ramify.runs.step_check import StepCheck
from ramify.view.film import Studio, still

_FAR = 1e6
"""rad, m, rad/s or m/s beyond which a state counts as failed."""
_STATE = ("_rng", "_y", "_count", "_action", "spec")
"""What differs between environments of one recipe."""


class States(NamedTuple):
    """All environments at one moment: coordinates q (N, nq), velocities v (N, nv), the time t (N)
    since their start in s, and the last actions (N, actions).
    """

    q: Array
    v: Array
    t: Array
    action: Array


class RobotVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """``num_envs`` robots that step together in compiled code.

    reward(before, after) -> (N) and terminated(after) -> (N,) bool are functions of ``States``;
    observation(states) -> (N, k), by default [q, v]. start(rng, n) -> (q (n, nq), v (n, nv)).

    Actions in [-1, 1], one per driven joint of the model. By default they are joint forces, scaled
    by ``scale``, or by the efforts of the drives; with ``kp`` and ``kd`` (numbers, or one per
    driven joint) they are targets of position servos, at ``home`` + scale × action; home: (nq,), or
    one per driven joint.

    An environment step is ``substeps`` steps of dt seconds by ``method``. By default it lasts 20
    ms: 10 steps of 2 ms by "semi_implicit_euler", or by "implicit_extrapolation" where joints are
    too stiff for explicit steps; 20 steps of 1 ms by "implicit_extrapolation" on a ground. With a
    dt of yours substeps is 10. ``contact``: "hard" or rf.contact.Hard(…) in place of a ground.
    ``check_step`` tells whether dt is short enough. An episode ends by ``terminated``, where the
    motion diverges, or after ``max_steps`` steps (truncated); its environment then starts anew
    within the same step, and the last observation is in ``info["final_obs"]``. parameters: {name:
    (low, high)}, constants of the machine (``rf.parameters``) that each episode draws anew;
    ``parameters`` of the environment has them, and ``info["final_parameters"]`` those of the
    episodes that end.
    """

    metadata = {  # noqa: RUF012
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
    }

    def __init__(
        self,
        model: Robot,
        num_envs: int,
        *,
        reward: Callable[[States, States], Array],
        terminated: Callable[[States], Any] | None = None,
        observation: Callable[[States], Array] | None = None,
        start: Callable[[np.random.Generator, int], tuple[Array, Array]] | None = None,
        dt: float | None = None,
        substeps: int | None = None,
        method: str | None = None,
        ground: GroundLike = None,
        contact: ContactLike = None,
        damping: ArrayLike = 0.0,
        scale: ArrayLike | None = None,
        kp: ArrayLike | None = None,
        kd: ArrayLike = 0.0,
        home: ArrayLike | None = None,
        max_steps: int = 1000,
        parameters: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
        render_mode: str | None = None,
        size: tuple[int, int] = (480, 270),
    ) -> None:
        refuse_non_functions(
            reward=reward, terminated=terminated, observation=observation, start=start
        )
        self.recipe: Callable[..., RobotVectorEnv] = partial(
            type(self), model, num_envs, reward=reward, terminated=terminated,
            observation=observation, start=start, dt=dt, substeps=substeps, method=method,
            ground=ground, contact=contact, damping=damping, scale=scale, kp=kp, kd=kd, home=home,
            max_steps=max_steps, parameters=parameters, render_mode=render_mode, size=size,
        )  # fmt: skip
        self.model, self.render_mode = model, render_mode
        self.num_envs = whole("num_envs", num_envs, 1)
        self.dt, self.substeps = time_steps(dt, substeps, ground is not None)
        self.max_steps, self.size = whole("max_steps", max_steps, 1), picture_size(size)
        if render_mode is not None:
            one_of("render_mode", render_mode, ("rgb_array",))
        frames = max(1, round(1.0 / (self.dt * self.substeps)))
        self.metadata = {**self.metadata, "render_fps": frames}
        self._reward, self._terminated = reward, terminated or (lambda after: False)
        self._observe = observation or (lambda s: np.concatenate([s.q, s.v], axis=1))
        self._start = start or self._at_rest
        self._ranges = ranges(parameters)
        entries, control = driven(model), None
        if not len(entries) or min(entries.q) < 0:  # one coordinate per rate
            text = f"actions need driven joints of single coordinates; {model.name} has none"
            raise StateError(text)
        self._driven = np.array(entries.v)
        self._drawn_kp = kp is not None and "control.kp" in self._ranges
        self._scale = _scales(model, self._driven, scale, 1.0 if self._drawn_kp else kp)
        if kp is not None:
            control = PD(Hold(_home(model, entries, home)), kp, kd)
        machine = PlantOptions(damping, ground, counted=False, contact=contact)
        field = make_field(model, control, machine)
        self.method, scheme = _scheme(field, method, self.dt)
        hard = field.hard is not None
        self._field: Field = field.implicitly if scheme.implicit and not hard else field
        self._steps: Any = None
        self._varied: VariedField | None = None
        self._scheme = scheme
        self._rng = np.random.default_rng()
        self._y = self._begin(self.num_envs)
        self._count = np.zeros(self.num_envs, dtype=np.int64)
        self._action = np.zeros((self.num_envs, len(self._driven)))
        self._forces = np.zeros((self.num_envs, model.nv))
        first_observation = real("observation", self._observe(self.states))
        if first_observation.ndim < 2 or len(first_observation) != self.num_envs:
            raise StateError(
                f"observation gave {first_observation.shape}; it must give ({self.num_envs}, …)"
            )
        shape, self._observation_shape = first_observation.shape[1:], first_observation.shape
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float64)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(self._driven),), np.float64)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles make the environment anew, in the same state; what ``recipe`` holds
        must be picklable, functions by their names.
        """
        return _remade, (self.recipe, {name: getattr(self, name) for name in _STATE})

    def __deepcopy__(self, memo: dict[int, Any]) -> RobotVectorEnv:
        return _remade(self.recipe, deepcopy(self.__reduce__()[1][1], memo))

    @property
    def states(self) -> States:
        """The states of all environments."""
        nq, n = self.model.nq, self.model.nq + self.model.nv
        seen = self._y.view()
        seen.flags.writeable = False
        time = np.asarray(self._count * (self.dt * self.substeps), dtype=np.float64)
        return States(seen[:, :nq], seen[:, nq:n], time, self._action)

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters that each episode has drawn, by name: (N,), or (N, size)."""
        if self._varied is None:
            return {}
        out, end = {}, self._varied.state_size
        for p in self._varied.varied:
            start, end = end, end + p.size
            out[p.name] = self._y[:, start].copy() if p.size == 1 else self._y[:, start:end].copy()
        return out

    def _at_rest(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        q = assemble(self.model).q if self.model.loops else self.model.neutral()
        return np.tile(q, (n, 1)), np.zeros((n, self.model.nv))

    def _begin(self, n: int) -> Array:
        """Rows of y (n, size) at the start of episodes."""
        m, field = self.model, self._field
        q, v = pair("start must give (q, v); it gave", self._start(self._rng, n))
        q, v = checked(m, "q of start", q, m.nq), checked(m, "v of start", v, m.nv)
        if q.shape != (n, m.nq) or v.shape != (n, m.nv):
            wanted = f"q ({n}, {m.nq}) and v ({n}, {m.nv})"
            raise StateError(f"start must give {wanted}; it gave {q.shape} and {v.shape}")
        if m.loops:
            refuse_open_states(m, q, v)
        if self._ranges:
            drawn = {
                name: self._rng.uniform(low, high, (n, *low.shape))
                for name, (low, high) in self._ranges.items()
            }
            names, values = packed(known_parameters(self._field), drawn, m.name)
            field, y = varied_start(self._field, names, q, v, values)
            self._varied = field
        else:
            y = field.start(q, v)
        if self._steps is None:
            self._steps = stepper(field, self._scheme, bool(m.loops))
        return y

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start all environments anew; there are no options."""
        no_options(options)
        if seed is not None:
            self._rng = random_generator(seed)
        self._restart(np.ones(self.num_envs, dtype=bool))
        return self._observed(), {}

    def _restart(self, chosen: Any) -> None:
        """New episodes in the chosen environments; arrays that were handed out stay as they are."""
        count = int(np.count_nonzero(chosen))
        fresh = self._begin(count)
        if count < self.num_envs:
            every = self._y.copy()
            every[chosen] = fresh
            fresh = every
        self._y = fresh
        self._count = np.where(chosen, 0, self._count)
        self._action = np.where(chosen[:, None], 0.0, self._action)

    def step(self, actions: Any) -> tuple[Array, Array, Any, Any, dict[str, Any]]:
        """(observation, reward, terminated, truncated, info) after ``substeps`` steps of all."""
        wanted = real("actions", actions)
        if wanted.shape != self._action.shape:
            raise StateError(f"actions have shape {wanted.shape}, not {self._action.shape}")
        refuse_infinite("actions", wanted)
        action = np.minimum(np.maximum(wanted, -1.0), 1.0)
        before = self.states
        drawn = self.parameters
        self._forces[:, self._driven] = self._scale * action
        if self._drawn_kp:
            self._forces[:, self._driven] *= drawn["control.kp"].reshape(self.num_envs, -1)
        self._y, _ = self._steps.run(
            self._y, self._forces, self.substeps, self.dt, 0.0, strides=(self.model.nv, 0)
        )
        self._count, self._action = self._count + 1, action
        failed = self._failed()
        if failed is not None:
            self._y[failed] = self._begin(int(failed.sum()))
            if failed.all() and self._count.max() <= 1:
                remedy = "take a shorter dt, smaller actions or method='implicit_extrapolation'"
                raise SimulationError(f"every robot diverged in its first step; {remedy}")
        after = self.states
        reward = self._of_each("reward", self._reward(before, after))
        ended = self._of_each("terminated", self._terminated(after)) != 0.0
        if failed is not None:
            reward, ended = np.where(failed, 0.0, reward), ended | failed
        truncated = (self._count >= self.max_steps) & ~ended
        done = ended | truncated
        observation, info = self._observed(), {}
        if done.any():
            none = np.zeros(self.num_envs, dtype=bool)
            info = {
                "final_obs": observation, "_final_obs": done,
                "failed": none if failed is None else failed,
            }  # fmt: skip
            if drawn:
                info["final_parameters"] = drawn
            self._restart(done)
            observation = self._observed()
        return observation, reward, ended, truncated, info

    def _failed(self) -> Any:
        """Which robots diverged (N,); None where none has."""
        moving = self._y[:, : self.model.nq + self.model.nv]
        if moving.min() > -_FAR and moving.max() < _FAR:
            return None
        with np.errstate(invalid="ignore"):
            return ~(np.abs(moving) < _FAR).all(axis=1)

    def _observed(self) -> Array:
        """What is observed now, in an array of its own."""
        rows = np.array(self._observe(self.states), dtype=np.float64)
        if rows.shape != self._observation_shape:
            raise StateError(
                f"observation gave shape {rows.shape}; it must give {self._observation_shape}"
            )
        refuse_infinite("observation", rows)
        return rows

    def _of_each(self, name: str, value: Any) -> Array:
        """One number or truth value for each environment, from that many or from a single one."""
        truth = np.asarray(value).dtype.kind == "b"
        numbers = real(name, np.multiply(value, 1.0) if truth else value)
        if numbers.shape == ():
            numbers = np.full(self.num_envs, numbers)
        if numbers.shape != (self.num_envs,):
            raise StateError(f"{name} gave shape {numbers.shape}; it must give ({self.num_envs},)")
        refuse_infinite(name, numbers)
        return numbers

    def check_step(
        self,
        policy: Callable[[Array], ArrayLike] | None = None,
        *,
        dt: float | None = None,
        steps: int | None = None,
        tolerance: float = 0.1,
        halvings: int = 3,
        seed: int = 0,
    ) -> StepCheck:
        """Whether dt is short enough: the returns of a policy in steps of dt, dt/2, …,
        dt / 2^halvings, with the same starts. This environment stays as it is.

        policy(observations (N, …)) -> actions (N, actions), by default random ones. dt: the longest
        step that is tried, in s, by default that of the environment. steps: environment steps of an
        episode, by default ``max_steps``; the return is the sum of rewards until then or its end.
        The error is that of the mean return, as a share of the mean absolute return (tolerance: 0.1
        is 10 %); with chaotic motions it is known only up to its standard error, ``noise``: take
        more environments where that is large.
        """
        return check_returns(
            self.recipe, self.dt * self.substeps, policy, self.dt if dt is None else dt,
            self.max_steps if steps is None else steps, tolerance, halvings, seed,
        )  # fmt: skip

    def render(self) -> tuple[Any, ...] | None:
        """Pictures (height, width, 3) of up to 16 environments."""
        if self.render_mode is None:
            return None
        q = self.states.q[:16]
        return tuple(Studio(still(self.model, row), *self.size).shoot(0, words=False) for row in q)


class RobotEnv(gymnasium.Env[Any, Any]):
    """A vectorised environment with one robot, as a single one."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, vector: RobotVectorEnv) -> None:
        self.vector, self.render_mode = vector, vector.render_mode
        self.metadata = {**self.metadata, "render_fps": vector.metadata["render_fps"]}
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start anew."""
        super().reset(seed=seed)
        observation, info = self.vector.reset(seed=seed, options=options)
        return observation[0], info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """(observation, reward, terminated, truncated, info)."""
        observation, reward, ended, cut, info = self.vector.step(real("action", action)[None])
        final = info.get("final_obs", observation)
        return final[0], float(reward[0]), bool(ended[0]), bool(cut[0]), {}

    def render(self) -> Any:
        """A picture (height, width, 3)."""
        found = self.vector.render()
        return None if found is None else found[0]


def _scheme(field: Field, method: str | None, dt: float) -> tuple[str, Scheme]:
    """The method of the steps and its scheme."""
    if field.hard is not None:
        return hard_method(method or AUTO, dt).name, SOLVED
    if method is None:
        method = batch_method(field, dt).name
        method = "semi_implicit_euler" if method == "rk4" else method
    return method, scheme_of(method)


def _remade(recipe: Callable[[], RobotVectorEnv], state: dict[str, Any]) -> RobotVectorEnv:
    """An environment of that recipe in the state of another."""
    made = recipe()
    vars(made).update(state)
    return made


def _home(model: Robot, entries: Driven, home: ArrayLike | None) -> Array:
    """Where servos hold the driven joints without an action."""
    position = real("home", model.neutral() if home is None else home)
    if position.shape == (len(entries),):
        return checked(model, "home", position, len(entries))
    if position.shape != (model.nq,):
        text = f"give one position per driven joint, ({len(entries)},), or all coordinates"
        raise StateError(f"home has shape {position.shape}; {text}, ({model.nq},)")
    return checked(model, "home", position, model.nq)[list(entries.q)]


def _scales(model: Robot, rates: Array, scale: ArrayLike | None, kp: ArrayLike | None) -> Array:
    """Joint forces of actions of one; a servo turns targets into forces by its stiffness."""
    if scale is not None or kp is not None:
        return action_factors(scale, kp, len(rates))
    found = np.array(model.effort)[rates]
    if not np.isfinite(found).all():
        text = f"some drives of {model.name} have no effort to scale actions by"
        raise StateError(f"{text}; give scale=")
    return found
