"""Optimal control of a machine: trajectories of least cost, and controllers from them.

``Problem`` says what is to be minimised, ``solve`` finds a trajectory, ``Mpc`` solves again and
again while the machine moves.
"""

from ramify.optimal.knot import Knot
from ramify.optimal.mpc import Mpc
from ramify.optimal.problem import Problem
from ramify.optimal.solution import REASONS, Solution
from ramify.optimal.solve import solve
from ramify.optimal.terms import Term, weighted
from ramify.optimal.tracking import Tracking

__all__ = [
    "REASONS",
    "Knot",
    "Mpc",
    "Problem",
    "Solution",
    "Term",
    "Tracking",
    "solve",
    "weighted",
]
