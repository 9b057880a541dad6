"""Whether a run of a robot that is too large for straight-line code is long enough to compile it
all the same.

Up to so many links the right-hand side is always compiled. Beyond, a run asks Python and the
robot's rolled kernels, which begin at once and take a millisecond per evaluation, implicit steps
even a tenth of a second; straight-line code takes a minute to compile, and runs in microseconds.
"""

from __future__ import annotations

from typing import Final

from ramify.codegen.stepper import Scheme
from ramify.codegen.target import llvm_available
from ramify.sim.field import Field
from ramify.sim.integrator import Adaptive
from ramify.sim.options import Options

MOST: Final = 256
"""Links up to which that is considered."""
_PER_SECOND: Final = 4000.0
"""Evaluations of an adaptive method in a second of motion, as measured on falling arms."""
_EXPLICIT: Final = 1e-3
"""s: an evaluation through kernels and Python."""
_IMPLICIT: Final = 1.4e-3
"""s for each link: an evaluation of an implicit step in Python."""
_COMPILING: Final = 2e-3
"""s for each pair of links; implicit steps take three times that."""


def worth_compiling(field: Field, options: Options) -> bool:
    """Whether compiling is expected to take less time than the run without it."""
    links = len(field.model.skeleton.links)
    if field.model.loops or not field.traceable or links > MOST or not llvm_available():
        return False
    method = options.integrator.method
    implicit = isinstance(method, Scheme) and method.implicit
    if isinstance(method, Adaptive) or options.step is None:
        evaluations = _PER_SECOND * options.t_end
    else:
        evaluations = options.t_end / options.step * method.stages
    slow = evaluations * (_IMPLICIT * links if implicit else _EXPLICIT)
    return slow > _COMPILING * links * links * (3 if implicit else 1)
