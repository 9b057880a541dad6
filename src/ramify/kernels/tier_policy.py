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
"""The largest number of links for which unrolled code is compiled automatically."""
_MAX_PAIRS: Final = 1200
"""About the same for algorithms that give matrices: pairs of a link and one of its ancestors."""
_REFUSED_PAIRS: Final = 40_000
"""Pairs above which tier="unrolled" is refused."""


def unrolls(model: Robot, pairs: bool = False) -> bool:
    """Whether unrolled code of a robot can be compiled: it is small enough, and a compiler is
    installed. ``pairs``: for an algorithm that gives matrices (nv, nv).
    """
    return llvm_available() and unrolled_fits(tree_of(model), pairs)


def unrolled_fits(tree: Tree, pairs: bool) -> bool:
    """Whether unrolled code is small enough, whether a compiler is installed or not."""
    return _pairs(tree) <= _MAX_PAIRS if pairs else len(tree.links) <= MAX_LINKS


def refuse_too_long_code(model: Robot, tree: Tree) -> None:
    """Raises RamifyError for a robot whose unrolled code would take too long to compile."""
    if _pairs(tree) > _REFUSED_PAIRS:
        raise RamifyError(
            f"{model.name!r} has {len(tree.links)} links: too many for straight-line code; use "
            "tier='rolled'"
        )


def choose_tiers(
    tier: str | None,
    plain: PlainNumpy,
    unrolled: CompiledProgram,
    rolled: Callable[[], Backend] | None,
    *,
    fits: bool = True,
    prefers_rolled: bool = False,
    compile_at_once: bool = False,
) -> Tiers:
    """The tiers of a kernel. ``tier`` pins one. Otherwise the kernel begins with unrolled code if
    that is in the cache, else with rolled code (NumPy if there is none) until unrolled code is
    compiled.

    ``unrolled`` is compiled when it is first needed. ``fits``: it is small enough.
    ``prefers_rolled``: rolled code is faster, where there is some. ``compile_at_once``: a kernel
    without rolled code does not wait for demand.
    """
    if tier == "numpy":
        return Tiers(plain)
    if not llvm_available():
        if tier is not None:
            raise RamifyError(
                f"tier={tier!r} needs llvmlite, which is not installed; tier='numpy' does without"
            )
        _warn_without_compiler()
        return Tiers(StraightPython(lambda: unrolled.program, plain) if fits else plain)
    if tier == "unrolled":
        return Tiers(unrolled)
    if tier == "rolled":
        assert rolled is not None, "refused by the caller, which knows why"
        return Tiers(rolled())
    if rolled is None:
        if fits and (compile_at_once or unrolled.cached()):
            return Tiers(unrolled)
        return Tiers(plain, unrolled if fits else None)
    if not fits or prefers_rolled:
        return Tiers(rolled())
    return Tiers(unrolled) if unrolled.cached() else Tiers(rolled(), unrolled)


def _pairs(tree: Tree) -> int:
    """The number of pairs of a link and one of its ancestors."""
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
