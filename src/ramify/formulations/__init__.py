"""Other ways to the equations of motion, as the source documents present them, and what each costs as written."""

from __future__ import annotations

from ramify.formulations.denoc import Denoc, denoc_matrices
from ramify.formulations.general import FORMULATIONS, Formulation, general_count, published_count

__all__ = ["FORMULATIONS", "Denoc", "Formulation", "denoc_matrices", "general_count", "published_count"]
