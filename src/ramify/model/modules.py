"""Kinematic modules (section 4.1): serial runs of bodies, each starting at the last body of its
parent module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ramify.core.errors import ModelError


@dataclass(frozen=True)
class Module:
    """Module M_i: its ``bodies`` (indices, base first) and the index of its ``parent`` module, -1
    for the base M_0.
    """

    index: int
    parent: int
    bodies: tuple[int, ...]


def find_modules(parents: Sequence[int]) -> tuple[Module, ...]:
    """The longest modules there are: a run ends where the tree branches."""
    children: dict[int, list[int]] = {}
    for body, parent in enumerate(parents):
        children.setdefault(parent, []).append(body)
    modules: list[Module] = []
    module_of: dict[int, int] = {-1: -1}
    for body, parent in enumerate(parents):
        if body in module_of:
            continue
        run = [body]
        while len(children.get(run[-1], ())) == 1:
            run.append(children[run[-1]][0])
        module_of.update(dict.fromkeys(run, len(modules)))
        modules.append(Module(len(modules), module_of[parent], tuple(run)))
    return tuple(modules)


def check_modules(
    groups: Sequence[Sequence[int]], parents: Sequence[int], names: Sequence[str]
) -> tuple[Module, ...]:
    """Modules given by the user, checked against the two conditions of section 4.1."""
    module_of: dict[int, int] = {-1: -1}
    modules: list[Module] = []
    for index, group in enumerate(groups):
        where = f"module {index + 1} ({', '.join(names[b] for b in group)})"
        if not group:
            raise ModelError(f"module {index + 1} is empty; give it at least one link")
        for body in group:
            if body in module_of:
                raise ModelError(f"{where}: link {names[body]!r} is in two modules")
        for body, before in zip(group[1:], group, strict=False):
            if parents[body] != before:
                raise ModelError(
                    f"{where} is not serial: {names[body]!r} does not hang on {names[before]!r}"
                )
        root = parents[group[0]]
        if root not in module_of:
            raise ModelError(
                f"{where} starts on {names[root]!r}, which no earlier module holds; list parent "
                "modules first"
            )
        if root >= 0 and modules[module_of[root]].bodies[-1] != root:
            raise ModelError(
                f"{where} does not start at the last link of its parent module; split that one at "
                f"{names[root]!r}"
            )
        module_of.update(dict.fromkeys(group, index))
        modules.append(Module(index, module_of[root], tuple(group)))
    missing = [names[b] for b in range(len(parents)) if b not in module_of]
    if missing:
        raise ModelError(
            f"modules leave out {', '.join(map(repr, missing))}; every moving link belongs to one"
        )
    return tuple(modules)
