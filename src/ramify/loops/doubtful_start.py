"""Starts of closed robots that are probably not what was meant: the loops leave nothing free there,
or assembly has led far away from the guess.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import Array
from ramify.core.messages import degrees
from ramify.dynamics.closure import closures, reach
from ramify.dynamics.redundancy import near_motions
from ramify.loops.constraints import Constraints, column_sizes, constraints, gap_of_row
from ramify.loops.given_values import ValuesByName, start_of
from ramify.model.robot import Robot

_STILL = 1e-6  # share of a motion by which a joint that stands still takes part
_FAR = 0.5  # rad, or share of the robot's size: more is not near


def lost_freedoms(model: Robot, q: Array) -> str:
    """That the loops at a closed posture q leave nothing free, or less than they nearly do, with
    the remedy; "" for any other posture.
    """
    c = constraints(model, q)
    mobility, locked = int(c.mobility), _locked_loops(model, c)
    loops = np.array([name.rpartition(".")[0] for name in c.names])
    motions = near_motions(model, q) if locked else []
    motions = [x for x in motions if loops[int(np.argmax(x.pull))] in locked]
    has = f"{model.name!r} has {degrees(mobility)} in this posture"
    if not motions:
        return "" if mobility else f"{has}: its loops leave nothing free, and nothing moves"
    motion = max(motions, key=lambda x: float(x.opening.max()))
    row, loop = int(np.argmax(motion.opening)), str(loops[int(np.argmax(motion.pull))])
    return (
        f"{has}, and nearly {mobility + len(motions)}: loop {loop!r} stops a motion along which "
        f"{c.names[row]} would open by no more than "
        f"{gap_of_row(model, row, float(motion.opening[row]))} in {motion.distance:g} rad. If its "
        "sizes and angles are rounded, give more digits (five or more); or take a joint that "
        "leaves more free"
    )


def _locked_loops(model: Robot, c: Constraints) -> set[str]:
    """The loops whose joints cannot move at all."""
    free = np.linalg.svd(c.scaled)[2][c.rank :]  # a basis of the motions that are left
    moving = np.abs(free).max(axis=0, initial=0.0) > _STILL
    return {
        closure.loop.name
        for closure in closures(model)
        if not any(moving[k] for k, _ in closure.moves)
    }


def far_from_guess(model: Robot, q: Array, guess: ArrayLike | ValuesByName = None) -> str:
    """That a closed posture q is far from the guess, by default the robot's, with the coordinate
    that is farthest; "" where it is near, or nothing is guessed.
    """
    start, named = start_of(model, guess)
    if not named:
        return ""
    turns = np.array([bool(step.rho) for joint in model.joints for step in joint.steps])
    moved = model.difference(start, q)
    moved = np.where(turns, np.vectorize(math.remainder)(moved, 2.0 * math.pi), moved)
    shares = np.abs(moved) * column_sizes(model) / reach(model)
    shares[[k for k in range(model.nv) if k not in named]] = 0.0
    k = int(np.argmax(shares))
    if shares[k] <= _FAR:
        return ""
    unit = "rad" if turns[k] else "m"
    return (
        f"assembly has led {model.velocities[k]!r} {abs(moved[k]):.3g} {unit} away from the guess: "
        "none nearer was found at which the loops close. Check their sizes and angles, which may "
        "have too few digits, or give another guess"
    )
