"""Links that carry one another in a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def cycles(parent_of: Mapping[str, str | None]) -> Iterable[list[str]]:
    """Each cycle of parents, once."""
    done: set[str] = set()
    for start in parent_of:
        path: dict[str, None] = {}
        name: str | None = start
        while name is not None and name in parent_of and name not in done and name not in path:
            path[name] = None
            name = parent_of[name]
        if name is not None and name in path:
            order = list(path)
            yield order[order.index(name) :]
        done.update(path)
