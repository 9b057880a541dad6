"""Loops over the links: what plain links compute, and the memory that records take."""

from __future__ import annotations

from itertools import product

import pytest

from ramify.emit.rolled_code import rolled_scratch_doubles
from ramify.kernels.algorithms import ALGORITHMS
from ramify.kernels.rolled_tier import rolled_kernels
from ramify.trace.graph import Graph, symbols
from ramify.trace.rolled_program import LinkSteps, RolledProgram, Sweep, plain_steps


def programs(name: str) -> list[RolledProgram]:
    """The loops of an algorithm: with and without quaternions and, where it has one, a trunk."""
    trunks = (False, True) if ALGORITHMS[name].on_trunk else (False,)
    return [
        rolled_kernels(ALGORITHMS[name], balls, trunk).program
        for balls, trunk in product((False, True), trunks)
    ]


def inputs_read(graph: Graph, roots: list[int]) -> set[tuple[object, ...]]:
    return {name for _, name in symbols(graph, graph.reachable(roots)) if name[0] == "in"}


def work(program: RolledProgram) -> tuple[int, int]:
    """Operations at a link of any kind and at a plain one, all passes together."""
    every = plain = 0
    for one, steps in zip(program.passes, plain_steps(program), strict=True):
        if isinstance(one, Sweep):
            all_work = LinkSteps(program.graph, {node: node for node in one.link_needs}).work
            every, plain = every + all_work, plain + (steps.work if steps else all_work)
    return every, plain


@pytest.mark.parametrize(
    ("name", "share"), [("forward_dynamics", 0.67), ("inverse_dynamics", 0.8), ("udu", 0.6)]
)
def test_plain_links_compute_less(name: str, share: float) -> None:
    """A quaternion that is not there costs them nothing either."""
    counts = [work(program) for program in programs(name)]
    assert all(plain <= share * every for every, plain in counts)
    assert len({plain for _, plain in counts}) == 1


@pytest.mark.parametrize("name", [name for name, a in ALGORITHMS.items() if a.rolled_as == "text"])
def test_plain_links_read_every_input(name: str) -> None:
    """Numbers that are not finite are found while they are read."""
    for program in programs(name):
        every, plain = set(program.plain), set(program.plain)
        for one, steps in zip(program.passes, plain_steps(program), strict=True):
            roots = one.link_needs if isinstance(one, Sweep) else one.needs
            read = inputs_read(program.graph, roots)
            every |= read
            plain |= inputs_read(steps.graph, list(steps.nodes.values())) if steps else read
        assert plain == every


@pytest.mark.parametrize("name", [name for name, a in ALGORITHMS.items() if a.on_trunk])
def test_a_trunk_takes_no_memory_per_link(name: str) -> None:
    def per_link(program: RolledProgram) -> int:
        small, large = (rolled_scratch_doubles(program, links, 2, 1) for links in (10, 20))
        return large - small

    without, with_trunk = programs(name)[:2]
    assert per_link(with_trunk) == per_link(without)


def test_records_take_over_memory() -> None:
    """Forward dynamics keeps ten numbers per link: where the joint stands (3) and a wrench, whose
    place its row of the factors (7) takes.
    """
    for program in programs("forward_dynamics")[:2]:
        assert (
            rolled_scratch_doubles(program, 21, 2, 1) - rolled_scratch_doubles(program, 20, 2, 1)
            == 10
        )
