"""Proximal policy optimisation (Schulman et al. 2017) for ramify's environments, in PyTorch.

    pip install 'ramify[gym,torch,plot]'
    python examples/training/ppo.py CartPole     swings up
    python examples/training/ppo.py Quadruped    learns to walk forward

Writes ENV.npz (learning curve and policy), ENV.png (learning curve, and pictures of an episode) and
ENV.gif (its first two seconds).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ramify import envs


@dataclass(frozen=True)
class Settings:
    """num_envs robots step for ``horizon`` steps between updates, each of ``epochs`` passes over
    what they met, in ``minibatches`` pieces; ``steps`` of all robots together.
    """

    steps: float = 2e6
    num_envs: int = 256
    horizon: int = 32
    epochs: int = 5
    minibatches: int = 4
    rate: float = 1e-3
    discount: float = 0.98
    smoothing: float = 0.95
    clip: float = 0.2
    spread: float = 0.5


PRESETS = {
    "CartPole": Settings(steps=1e6, num_envs=64, horizon=64, epochs=8, discount=0.99),
    "Quadruped": Settings(),
}


MOMENTS = {
    "CartPole": (0.0, 0.6, 1.2, 1.8, 5.0),
    "Quadruped": (5.0, 5.04, 5.08, 5.12, 5.16),
}
"""When pictures of an episode are taken, s."""


class Policy(nn.Module):
    """Normal actions around a small network's, and the value of a state; observations are scaled by
    what was met so far.
    """

    def __init__(self, observations: int, actions: int, spread: float) -> None:
        super().__init__()
        self.act, self.value = _network(observations, actions, 0.01), _network(observations, 1, 1.0)
        self.log_spread = nn.Parameter(torch.full((actions,), float(np.log(spread))))
        self.register_buffer("mean", torch.zeros(observations))
        self.register_buffer("square", torch.ones(observations))
        self.register_buffer("met", torch.zeros(()))

    def meet(self, seen: Tensor) -> None:
        """Count observations (n, k) in the running mean and mean square."""
        self.met += len(seen)
        share = len(seen) / self.met
        self.mean += share * (seen.mean(0) - self.mean)
        self.square += share * ((seen**2).mean(0) - self.square)

    def scaled(self, seen: Tensor) -> Tensor:
        deviation = (self.square - self.mean**2).clamp_min(1e-6).sqrt()
        return ((seen - self.mean) / deviation).clamp(-10.0, 10.0)

    def actions(self, seen: Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.act(self.scaled(seen)), self.log_spread.exp())

    def values(self, seen: Tensor) -> Tensor:
        return self.value(self.scaled(seen))[..., 0]


def _network(inputs: int, outputs: int, gain: float) -> nn.Sequential:
    layers = [
        nn.Linear(inputs, 64),
        nn.Tanh(),
        nn.Linear(64, 64),
        nn.Tanh(),
        nn.Linear(64, outputs),
    ]
    for layer, size in zip(layers[::2], (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, size)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def train(
    name: str, s: Settings, seed: int = 0, quiet: bool = False
) -> tuple[Policy, np.ndarray[Any, Any]]:
    """The policy, and rows (environment steps, seconds of the processor, mean return of the
    episodes that ended).
    """
    torch.manual_seed(seed)
    env = envs.EXAMPLES[name](s.num_envs)
    seen = _tensor(env.reset(seed=seed)[0])
    policy = Policy(seen.shape[1], env.single_action_space.shape[0], s.spread)
    optimiser = torch.optim.Adam(policy.parameters(), lr=s.rate, eps=1e-5)
    updates = max(1, int(s.steps) // (s.num_envs * s.horizon))
    running, ended_returns, curve, begin = np.zeros(s.num_envs), [], [], process_time()
    for update in range(updates):
        optimiser.param_groups[0]["lr"] = s.rate * (1.0 - update / updates)
        met, acts, logs, rewards, values, after, stops, cuts = ([] for _ in range(8))
        with torch.no_grad():
            for _ in range(s.horizon):
                chosen = policy.actions(seen)
                action = chosen.sample()
                following, reward, ended, cut, info = env.step(action.double().numpy())
                met.append(seen)
                acts.append(action)
                logs.append(chosen.log_prob(action).sum(-1))
                rewards.append((1.0 - s.discount) * _tensor(reward))  # values stay near one
                values.append(policy.values(seen))
                after.append(policy.values(_tensor(info.get("final_obs", following))))
                stops.append(_tensor(ended))
                cuts.append(_tensor(ended | cut))
                running += reward
                ended_returns += running[ended | cut].tolist()
                running[ended | cut] = 0.0
                seen = _tensor(following)
            gains = advantages(rewards, values, after, stops, cuts, s)
        batch = [torch.cat(part) for part in (met, acts, logs)] + [gains, gains + torch.cat(values)]
        improve(policy, optimiser, batch, s)
        policy.meet(batch[0])
        done = (update + 1) * s.num_envs * s.horizon
        if ended_returns:
            ended_returns = ended_returns[-s.num_envs :]
            curve.append((done, process_time() - begin, float(np.mean(ended_returns))))
            if not quiet and update % 20 == 19:
                print("{:9d} steps {:6.0f} s   return {:8.2f}".format(*curve[-1]), flush=True)
    return policy, np.array(curve)


def advantages(
    rewards: list[Tensor],
    values: list[Tensor],
    after: list[Tensor],
    stops: list[Tensor],
    cuts: list[Tensor],
    s: Settings,
) -> Tensor:
    """How much better the actions were than expected (horizon * num_envs), by generalised advantage
    estimation. After an end nothing follows; after a cut what would have followed is the value.
    """
    gain, found = torch.zeros_like(values[0]), []
    for r, v, w, stop, cut in reversed(list(zip(rewards, values, after, stops, cuts, strict=True))):
        delta = r + s.discount * (1.0 - stop) * w - v
        gain = delta + s.discount * s.smoothing * (1.0 - cut) * gain
        found.append(gain)
    return torch.cat(found[::-1])


def improve(
    policy: Policy, optimiser: torch.optim.Optimizer, batch: list[Tensor], s: Settings
) -> None:
    """Some epochs of the clipped surrogate, and of the squared error of the values."""
    for _ in range(s.epochs):
        for piece in torch.randperm(len(batch[0])).chunk(s.minibatches):
            seen, action, log, gain, value = (part[piece] for part in batch)
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            ratio = (policy.actions(seen).log_prob(action).sum(-1) - log).exp()
            surrogate = torch.min(ratio * gain, ratio.clamp(1.0 - s.clip, 1.0 + s.clip) * gain)
            loss = -surrogate.mean() + 0.5 * ((policy.values(seen) - value) ** 2).mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimiser.step()


def _tensor(x: Any) -> Tensor:
    return torch.as_tensor(np.asarray(x), dtype=torch.float32)


def episode(policy: Policy, name: str, seed: int = 1) -> tuple[Any, np.ndarray[Any, Any], float]:
    """(environment, q of an episode, its return) without chance in the actions."""
    env = envs.EXAMPLES[name](1)
    seen, rows, total = env.reset(seed=seed)[0], [], 0.0
    for _ in range(env.max_steps):
        rows.append(env.states.q[0].copy())
        with torch.no_grad():
            action = policy.actions(_tensor(seen)).mean
        seen, reward, ended, cut, _ = env.step(action.double().numpy())
        total += float(reward[0])
        if ended[0] or cut[0]:
            break
    return env, np.array(rows), total


def draw(name: str, curve: np.ndarray[Any, Any], env: Any, q: np.ndarray[Any, Any]) -> None:
    """ENV.png: the learning curve, and moments of an episode; ENV.gif: its first two seconds."""
    from matplotlib.figure import Figure
    from PIL import Image

    from ramify.view.film import Studio, still

    every = env.dt * env.substeps

    def picture(t: float, width: int) -> Any:
        row = q[min(round(t / every), len(q) - 1)]
        return Studio(still(env.model, row), width, width * 9 // 16).shoot(0, words=False)

    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    grid = figure.add_gridspec(2, 5, height_ratios=(1.4, 1.0))
    axes = figure.add_subplot(grid[0, :])
    axes.plot(curve[:, 0] / 1e6, curve[:, 2])
    axes.set(xlabel="environment steps, millions", ylabel="return of an episode")
    for k, t in enumerate(MOMENTS.get(name, (0.0, 0.5, 1.0, 1.5, 2.0))):
        panel = figure.add_subplot(grid[1, k])
        panel.imshow(picture(t, 480))
        panel.set_title(f"{t:.2f} s", fontsize="small")
        panel.axis("off")
    figure.savefig(f"{name}.png", dpi=100)
    film = [Image.fromarray(picture(t, 320)) for t in np.arange(0.0, 2.0, 0.04)]
    film[0].save(f"{name}.gif", save_all=True, append_images=film[1:], duration=40, loop=0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a policy for one of ramify's environments")
    parser.add_argument("name", choices=envs.EXAMPLES)
    parser.add_argument("--steps", type=float, help="environment steps; 1e6 for CartPole, or 2e6")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)  # the networks are too small for more
    settings = PRESETS.get(given.name, Settings())
    settings = replace(settings, steps=given.steps or settings.steps)
    policy, curve = train(given.name, settings, given.seed)
    env, q, total = episode(policy, given.name)
    print(f"without chance: {len(q)} steps, return {total:.2f}, ends at q {np.round(q[-1], 3)}")
    weights = {key: value.numpy() for key, value in policy.state_dict().items()}
    np.savez(f"{given.name}.npz", curve=curve, q=q, **weights)
    draw(given.name, curve, env, q)


if __name__ == "__main__":
    main()
