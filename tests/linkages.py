"""Overconstrained linkages of random size: they move although counting rows says they are locked.

Run as a script, all of ``LINKAGES`` fall for 3 s, each with every cut and with the rows in other
axes: a table of energy errors, as shares of the energy exchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import ramify as rf
from ramify.api.result import Result
from ramify.core.arrays import Array
from ramify.model.frame import Frame, from_rpy

TAU = 2.0 * np.pi


def bar(a: float, alpha: float, rng: np.random.Generator) -> tuple[Array, dict[str, Any]]:
    """The frame (4, 4) of the next hinge on a link (its z axis), a along x and alpha about it; and
    the mass of the link.
    """
    c, s = np.cos(alpha), np.sin(alpha)
    T = np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])
    m = float(rng.uniform(0.5, 2.0))
    thick = m * 0.02**2
    long = m * (a * a / 12.0 + 0.02**2)
    return T, {"mass": m, "com": (0.5 * a, 0.0, 0.0), "inertia": (thick, long, long)}


def ring(
    name: str, bars: Sequence[tuple[float, float]], rng: np.random.Generator, cut: int,
    guess: dict[str, float] | None = None, gravity: Any = (1.0, 2.0, -9.0),
    axes: Any = None,
) -> rf.Model:  # fmt: skip
    """A closed chain of hinges j1 … jn, link 1 on the ground: bars are (length, twist) from hinge
    to hinge. ``cut``: the hinge that closes the loop; ``axes``: rpy of the frame in which the rows
    of its position are written, as three connected points.
    """
    n = len(bars)
    linkage = rf.Mechanism(name, gravity=gravity)
    frames = []
    for i, (a, alpha) in enumerate(bars):
        T, mass = bar(a, alpha, rng)
        frames.append(T)
        if i:
            linkage.body(f"b{i}", **mass)
    for i in range(n):
        here = None if i == 0 else f"b{i}"  # the body before hinge i + 1
        ahead = None if i == n - 1 else f"b{i + 1}"
        T = frames[i]
        place = Frame(T[:3, :3], T[:3, 3])
        linkage.joint(f"j{i + 1}", (here, place), ahead, actuated=False)
    linkage.near(**{f"j{i}": x for i, x in ((int(k[1:]), v) for k, v in (guess or {}).items())})
    model = linkage.model(cut=[f"j{cut}"])
    return model if axes is None else in_axes(model, axes)


def in_axes(model: rf.Model, rpy: Any) -> rf.Model:
    """The same robot, the frames of its closing joints turned, and with them their axes: the rows
    are written in other axes. Hinges also turn about themselves.
    """
    loops = []
    for loop in model.loops:
        turn, spin = from_rpy(*rpy), from_rpy(0.0, 0.0, float(rpy[2]))
        axis = (0.0, 0.0, 1.0)
        if loop.kind == "spherical":
            spin = np.eye(3)
        else:
            axis = tuple(turn.T @ np.array(loop.axis))
        ends = [
            replace(end, frame=Frame(end.frame.rotation @ spin @ turn, end.frame.position))
            for end in (loop.first, loop.second)
        ]
        loops.append(replace(loop, first=ends[0], second=ends[1], axis=axis))
    return replace(model, loops=tuple(loops))


# ---- the linkages ----

Bars = Sequence[tuple[float, float]]


def bennett(rng: np.random.Generator) -> Bars:
    """Opposite bars alike, sin(twist) / length the same for all four."""
    a, alpha, ratio = rng.uniform(0.3, 0.8), rng.uniform(0.4, 0.8), rng.uniform(0.5, 1.2)
    return [(a, alpha), (ratio * a, float(np.arcsin(ratio * np.sin(alpha))))] * 2


def goldberg(rng: np.random.Generator) -> Bars:
    """Two Bennett linkages with a bar in common, which is taken out: five hinges."""
    k = rng.uniform(0.6, 1.0)
    alpha, beta, gamma = rng.uniform(0.3, 1.2, 3)
    a, b, c = (k * np.sin(x) for x in (alpha, beta, gamma))
    return [(b + c, beta + gamma), (a, alpha), (c, gamma), (b, beta), (a, alpha)]


def myard(rng: np.random.Generator) -> Bars:
    """The plane-symmetric linkage of five hinges: two Bennett linkages with right twists."""
    alpha, b = rng.uniform(0.4, 1.2), rng.uniform(0.4, 0.8)
    a, right = b * np.sin(alpha), 0.5 * np.pi
    return [(a, alpha), (b, right), (0.0, np.pi - 2.0 * alpha), (b, right), (a, np.pi - alpha)]


def sarrus(rng: np.random.Generator) -> Bars:
    """Two times three parallel hinges: the plates between them stay parallel."""
    lengths, twist, plates = (
        rng.uniform(0.4, 0.8, 4),
        rng.uniform(0.6, 1.5),
        rng.uniform(0.1, 0.2, 2),
    )
    a, b, c, d = lengths
    return [(a, 0.0), (b, 0.0), (plates[0], twist), (c, 0.0), (d, 0.0), (plates[1], -twist)]


def line_symmetric(rng: np.random.Generator) -> Bars:
    """Bricard's linkage whose opposite bars are alike."""
    return list(zip(rng.uniform(0.3, 0.7, 3), rng.uniform(0.5, 2.0, 3), strict=True)) * 2


def trihedral(rng: np.random.Generator) -> Bars:
    """Bricard's linkage with right twists: squares of every second length have the same sum."""
    a = rng.uniform(0.4, 0.55, 6)
    a[5] = np.sqrt(a[0] ** 2 + a[2] ** 2 + a[4] ** 2 - a[1] ** 2 - a[3] ** 2)
    return list(zip(a, [0.5 * np.pi, 1.5 * np.pi] * 3, strict=True))


def plane_symmetric(rng: np.random.Generator) -> Bars:
    """Bricard's linkage that is its own mirror image."""
    half = list(zip(rng.uniform(0.4, 0.6, 3), rng.uniform(0.5, 1.5, 3), strict=True))
    return [*half, *((a, -twist) for a, twist in reversed(half))]


def plane(rng: np.random.Generator, hinges: int = 4) -> Bars:
    """A plane linkage with spatial pins, its crank the shortest bar."""
    return [(0.5, 0.0), (0.15, 0.0), *((float(x), 0.0) for x in rng.uniform(0.4, 0.55, hinges - 2))]


def five_bar(rng: np.random.Generator) -> Bars:
    """The same with five pins, which is free twice."""
    return plane(rng, 5)


@dataclass(frozen=True)
class Linkage:
    """One of a kind: its bars and masses by ``seed``, and where its first hinge starts."""

    kind: Callable[[np.random.Generator], Bars]
    seed: int
    start: float = 0.8

    def __str__(self) -> str:
        return f"{self.kind.__name__}_{self.seed}"

    def model(self, cut: int, digits: int | None = None) -> rf.Model:
        """Closed by hinge ``cut``, 2 to the last; data rounded to some ``digits``."""
        rng = np.random.default_rng(self.seed)
        bars = self.kind(rng)
        if digits is not None:
            bars = [(round(float(a), digits), round(float(b), digits)) for a, b in bars]
        return ring(str(self), bars, rng, cut)

    @property
    def hinges(self) -> int:
        return len(self.kind(np.random.default_rng(self.seed)))

    def posture(self) -> Array:
        """(hinges,): closed, found with the last hinge cut; its own angle from the poses there."""
        model = self.model(self.hinges)
        q = model.assemble({"j1": self.start}).q
        (loop,) = model.loops
        poses = []
        for end in (loop.first, loop.second):
            place = Frame()
            if end.link is not None:
                R, r = model.pose(q, end.link)
                place = Frame(R, r)
            poses.append(place @ end.frame)
        turn = poses[0].rotation.T @ poses[1].rotation
        return np.append(q, np.arctan2(turn[1, 0], turn[0, 0]))

    def start_of(self, model: rf.Model) -> Array:
        """The same posture of the model with another cut."""
        angles = self.posture()
        return np.array([angles[int(name[1:]) - 1] for name in model.coordinates])


def drift(run: Result) -> float:
    """The largest error of the energy, as a share of the energy exchanged."""
    total = run.energy.kinetic + run.energy.potential
    exchanged = max(float(run.energy.kinetic.max()), float(np.ptp(run.energy.potential)))
    return float(np.abs(total - total[0]).max()) / exchanged


LINKAGES = (
    *(Linkage(bennett, seed) for seed in (0, 1, 2, 3)),
    *(Linkage(goldberg, seed) for seed in (0, 1, 2)),
    *(Linkage(myard, seed) for seed in (0, 1, 2)),
    *(Linkage(sarrus, seed) for seed in (0, 1, 2)),
    Linkage(line_symmetric, 4), Linkage(line_symmetric, 0, 2.0),
    Linkage(trihedral, 0), Linkage(trihedral, 2),
    Linkage(plane_symmetric, 0), Linkage(plane, 0), Linkage(five_bar, 0),
)  # fmt: skip
"""Twenty of them."""


def main(seconds: float = 3.0) -> None:
    rng = np.random.default_rng(1)
    print(f"{'linkage':20} {'cut':>3} {'steps':>5} {'exchanged, J':>12} {'error':>8}  end, rad")
    for linkage in LINKAGES:
        for cut in range(2, linkage.hinges + 1):
            model = in_axes(linkage.model(cut), rng.uniform(-3.0, 3.0, 3))
            q = linkage.start_of(model)
            try:
                run = rf.simulate(model, seconds, q, rtol=1e-10, atol=1e-12)
            except rf.RamifyError as error:
                print(f"{linkage!s:20} {cut:3} {error}")
                continue
            first = run.q[-1, list(model.coordinates).index("j1")]
            print(
                f"{linkage!s:20} {cut:3} {run.stats['steps']:5} {run.energy.kinetic.max():12.4g} "
                f"{drift(run):8.1e} {first:9.6f} {'' if run.audit.passed else 'audit fails'}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
