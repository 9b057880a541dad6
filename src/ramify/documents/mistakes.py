"""All mistakes of a robot file, collected and reported at once, each with its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NoReturn

from ramify.core.errors import ModelError, shortened
from ramify.core.names import escaped

MOST: Final = 50
"""Mistakes that one error lists."""

ENOUGH: Final = 200
"""Mistakes after which reading stops."""

Path = tuple[str | int, ...]


class Position(NamedTuple):
    """Line and column in a file, both from 1; column 0 where only the line is known."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}" if self.column else f"{self.line}"


class Map(dict[str, Any]):
    """A mapping that knows where it, its keys and its values stand."""

    def __init__(self, at: Position) -> None:
        super().__init__()
        self.at = at
        self.keys_at: dict[str, Position] = {}
        self.values_at: dict[str, Position] = {}


class Seq(list[Any]):
    """A list that knows where it and its entries stand."""

    def __init__(self, at: Position) -> None:
        super().__init__()
        self.at = at
        self.values_at: list[Position] = []


def locate_path(root: object, path: Sequence[str | int], key: bool = False) -> Position:
    """Where a path leads in a document, or the nearest place above it; with ``key``, where its last
    key stands.
    """
    node, at = root, getattr(root, "at", Position(1, 1))
    for depth, step in enumerate(path):
        if isinstance(node, Map) and step in node:
            last = depth == len(path) - 1
            at = (node.keys_at if key and last else node.values_at)[str(step)]
            node = node[str(step)]
        elif isinstance(node, Seq) and isinstance(step, int) and step < len(node):
            at, node = node.values_at[step], node[step]
        else:
            break
    return at


class Mistake(NamedTuple):
    """A mistake at a path of a document; ``key``: the key itself is wrong, not its value."""

    path: Path
    text: str
    key: bool
    line: str


class DocumentError(ModelError):
    """A file with mistakes, in the order of the file."""

    mistakes: tuple[Mistake, ...] = ()


class Mistakes:
    """The mistakes of one file. ``root`` is its document, set once it is parsed. ``placed``: lines
    and columns are known, as they are not for what Python code gives.
    """

    def __init__(self, file: str, with_positions: bool = True) -> None:
        self.file, self.with_positions = file, with_positions
        self.root: object = None
        self._mistakes: dict[tuple[Position, Path, str], Mistake] = {}

    def __bool__(self) -> bool:
        return bool(self._mistakes)

    def add(
        self,
        path: Path,
        text: str,
        *,
        link: str = "",
        key: bool = False,
        at: Position | None = None,
    ) -> None:
        """Note a mistake at a path of the document, or at a position. The same one in another copy
        of a template is noted once.
        """
        text = shortened(text)
        place = (at or locate_path(self.root, path, key), path, text)
        where = ".".join(map(str, path)) + (f" (link {link!r})" if link else "")
        line = (
            f"{self.file}{f':{place[0]}' if self.with_positions else ''}: "
            + (f"{escaped(where)}: " if where else "")
            + escaped(text, keep="\n")
        )
        self._mistakes.setdefault(place, Mistake(path, text, key, line))
        if len(self._mistakes) >= ENOUGH:
            self.raise_if_any()

    def raise_if_any(self) -> None:
        """Raise ModelError with one line per mistake, in the order of the file."""
        if self._mistakes:
            in_order = sorted(self._mistakes, key=lambda place: place[0])
            mistakes = [self._mistakes[place] for place in in_order]
            lines = [mistake.line for mistake in mistakes]
            more = f"{len(lines) - MOST} more mistakes" + (
                " at least; reading stopped there" if len(lines) >= ENOUGH else ""
            )
            rest = [f"{self.file}: and {more}"] if len(lines) > MOST else []
            error = DocumentError("\n".join(lines[:MOST] + rest))
            error.mistakes = tuple(mistakes)
            raise error

    def stop(self, path: Path, text: str, *, at: Position | None = None) -> NoReturn:
        """Note a mistake that nothing sensible can follow, and raise."""
        self.add(path, text, at=at)
        self.raise_if_any()
        raise AssertionError
