"""What an importer left out, assumed or found worth saying: the report that comes with a robot from
a foreign file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from ramify.core.warning import LeftOutWarning, warn

Level = Literal["ignored", "assumed", "note"]
LEVELS: Final[tuple[Level, ...]] = ("ignored", "assumed", "note")
_OPEN: Final = re.compile(r"loops are open here \(to close: (\d+)\)")

_LINE: Final = re.compile(r"(^|, )line \d+$")


def open_loops(number: int, planar: bool) -> str:
    """The remark on a closed mechanism that was read without its loops; files keep it."""
    joint, plane = ("'revolute'", ", planar=True") if planar else ("joint", "")
    return (
        f"a closed mechanism whose loops are open here (to close: {max(1, number)}): close each "
        f"with rf.with_loop(model, name, {joint}, (link, offset), (link, offset){plane}), or under "
        "loops: of its robot file"
    )


def counted(kinds: Mapping[str, int]) -> str:
    """Kinds with their numbers."""
    return ", ".join(f"{kind} × {n}" if n > 1 else kind for kind, n in kinds.items() if n)


def without_contact(passing: Mapping[str, int]) -> str:
    """The remark on shapes that collide in other programs; ``passing``: how many of a kind have no
    contact here.
    """
    kinds = counted(passing)
    even_then = f", with {kinds} even then" if kinds else ""
    passes = "the robot passes through floors, obstacles and itself"
    return f'{passes} until you give a ground or contact="hard"{even_then}'


@dataclass(frozen=True)
class Remark:
    """One thing an importer has to say: its ``level``, ``where`` (file and line, link or joint) and
    the ``message``.

    ``ignored``: the file says it, the model does not have it. ``assumed``: the file does not say
    it, the model needs it. ``note``: all is as the file says, but may surprise. ``moves``: the
    robot moves otherwise without it. ``doubt``: the file is probably wrong there.
    """

    level: Level
    where: str
    message: str
    moves: bool = False
    doubt: bool = False

    def __str__(self) -> str:
        return (
            f"{self.level}: {self.where}: {self.message}"
            if self.where
            else f"{self.level}: {self.message}"
        )


@dataclass
class ImportReport:
    """What happened on the way from a file to a model. Importers fill it and leave it in
    ``model.metadata["report"]``.

    ``print(report)`` shows one line per entry, what was ignored first; it iterates over its entries
    and counts them with ``len``.
    """

    file: str
    entries: list[Remark] = field(default_factory=list)

    def ignored(self, where: str, message: str, moves: bool = False, doubt: bool = False) -> None:
        """The file says something that the model does not have; ``moves``: it changes the motion;
        ``doubt``: it is probably wrong.
        """
        self.entries.append(Remark("ignored", where, message, moves, doubt))

    def warn(self) -> None:
        """Warn, in one line each, of all that was left out and changes the motion, and of all that
        is probably wrong in the file.
        """
        doubts = [x for x in self.entries if x.doubt and not x.moves]
        moving = [x for x in self.entries if x.moves]
        for what, entries, category in (
            ("left out, which changes the motion", moving, LeftOutWarning),
            ("check the file", doubts, UserWarning),
        ):
            listed = "; ".join(f"{entry.where}: {entry.message}" for entry in entries[:3])
            more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
            if entries:
                warn(f'{self.file}: {what}: {listed}{more} (see metadata["report"])', category)

    @property
    def left_out(self) -> list[str]:
        """What was left out and changes the motion, as a robot file keeps it under ``left_out``:
        without lines, which are those of another file.
        """
        moving = [(_LINE.sub("", x.where), x.message) for x in self.entries if x.moves]
        return [
            message if where in ("", "left_out") else f"{where}: {message}"
            for where, message in moving
        ]

    def after(self, loops: int) -> ImportReport:
        """The report of a robot that has this number of loops by now; once all are closed, it does
        not say that they are open.
        """
        numbers = [(entry, _OPEN.search(entry.message)) for entry in self.entries]
        entries = [entry for entry, match in numbers if not match or int(match[1]) > loops]
        return ImportReport(self.file, entries)

    def assumed(self, where: str, message: str) -> None:
        """The file does not say something that the model needs."""
        self.entries.append(Remark("assumed", where, message))

    def note(self, where: str, message: str, doubt: bool = False) -> None:
        """Something as the file says it that may surprise; ``doubt``: it is probably wrong."""
        self.entries.append(Remark("note", where, message, doubt=doubt))

    def __iter__(self) -> Iterator[Remark]:
        return iter(sorted(self.entries, key=lambda entry: LEVELS.index(entry.level)))

    def __len__(self) -> int:
        return len(self.entries)

    def __str__(self) -> str:
        head = f"{self.file}: " + (
            "imported with remarks" if self.entries else "nothing was ignored or assumed"
        )
        return "\n".join([head, *map(str, self)])
