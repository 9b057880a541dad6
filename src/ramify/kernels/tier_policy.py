"""Which tier computes a kernel: unrolled code where it is small enough, rolled code or NumPy until
it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, Literal

from ramify.core.errors import RamifyError
from ramify.core.warning import warn
from ramify.dynamics.tree import Tree, tree_of
from ramify.model.robot import Robot
from ramify.runtime.backend import Backend, PlainNumpy
from ramify.runtime.compiled_program import CompiledProgram
from ramify.runtime.kernel import Tiers
from ramify.runtime.straight_python import StraightPython
from ramify.runtime.target import llvm_available

Tier = Literal["unrolled", "rolled", "numpy"]

MAX_LINKS: Final = 72
"""Links up to which unrolled code is compiled without being asked for."""
_MAX_PAIRS: Final = 1200
_REFUSED_PAIRS: Final = 40_000


def unrolls(model: Robot, pairs: bool = False) -> bool:
    """Whether unrolled code of a robot is small enough to compile; ``pairs``: of a text that
    computes matrices of the joints.
    """
    return llvm_available() and unrolled_fits(tree_of(model), pairs)


def unrolled_fits(tree: Tree, pairs: bool) -> bool:
    """Whether unrolled code is small enough, with a compiler or without."""
    size = _pairs(tree) // (_MAX_PAIRS // MAX_LINKS) if pairs else len(tree.links)
    return size <= MAX_LINKS


def refuse_too_long_code(model: Robot, tree: Tree) -> None:
    """Raises RamifyError for a robot whose unrolled code could not be compiled in any time."""
    if _pairs(tree) > _REFUSED_PAIRS:
        raise RamifyError(
            f"{model.name!r} has {len(tree.links)} links: too many for straight-line code; use "
            "tier='rolled'"
        )


def choose_tiers(
    tier: str | None,
    plain: PlainNumpy,
    compiled: CompiledProgram,
    rolled: Callable[[], Backend] | None,
    *,
    fits: bool = True,
    prefers_rolled: bool = False,
    compile_at_once: bool = False,
) -> Tiers:
    """The tiers of a kernel. ``tier`` pins one. Otherwise the kernel begins with unrolled code if
    that is in the cache, else with rolled code (NumPy if there is none) until unrolled code is
    compiled.

    ``fits``: unrolled code is small enough. ``prefers_rolled``: rolled code is faster, where there
    is some. ``compile_at_once``: a kernel without rolled code does not wait for demand.
    """
    if tier == "numpy":
        return Tiers(plain)
    if not llvm_available():
        if tier is not None:
            raise RamifyError(
                f"tier={tier!r} needs llvmlite, which is not installed; tier='numpy' does without"
            )
        _warn_without_compiler()
        return Tiers(StraightPython(lambda: compiled.program, plain) if fits else plain)
    if tier == "unrolled":
        return Tiers(compiled)
    if tier == "rolled":
        assert rolled is not None, "refused by the caller, which knows why"
        return Tiers(rolled())
    if rolled is None:
        if fits and (compile_at_once or compiled.cached()):
            return Tiers(compiled)
        return Tiers(plain, compiled if fits else None)
    if not fits or prefers_rolled:
        return Tiers(rolled())
    return Tiers(compiled) if compiled.cached() else Tiers(rolled(), compiled)


def _pairs(tree: Tree) -> int:
    """Pairs of a link and one that carries it."""
    depth: list[int] = []
    for parent in tree.parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return sum(depth)


@cache
def _warn_without_compiler() -> None:
    """Warn of the absence of LLVM, once."""
    warn(
        "llvmlite is not installed: ramify computes with Python and NumPy, which is slower",
        RuntimeWarning,
    )
