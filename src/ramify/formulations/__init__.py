"""Other ways to the equations of motion, as the source documents present them, and what each costs
as written.
"""

from __future__ import annotations

from ramify.formulations.counting.general import (
    FORMULATIONS,
    Formulation,
    crossover,
    general_count,
    published_count,
)
from ramify.formulations.denoc import Denoc
from ramify.formulations.denoc_assembly import FloatingDenoc, denoc_matrices, floating_denoc
from ramify.formulations.mass_centre import MassCentre, mass_centre_matrices
from ramify.formulations.steps import StepTable, step_table
from ramify.formulations.symbolic.equations import Equations, equations

__all__ = [
    "FORMULATIONS",
    "Denoc",
    "Equations",
    "FloatingDenoc",
    "Formulation",
    "MassCentre",
    "StepTable",
    "crossover",
    "denoc_matrices",
    "equations",
    "floating_denoc",
    "general_count",
    "mass_centre_matrices",
    "published_count",
    "step_table",
]
