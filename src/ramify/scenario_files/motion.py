"""Coordinates and motions of scenario files: from validated parts to arrays and trajectories."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ramify import motion as rm
from ramify.api.model import Model
from ramify.core.arrays import Array
from ramify.core.errors import RamifyError
from ramify.core.messages import near, shown
from ramify.documents.mistakes import Mistakes, Path
from ramify.documents.schema import Part, validate
from ramify.model.drives import Driven, driven
from ramify.scenario_files.schema import MOTIONS

RIGHT: Final = np.pi / 180.0


class Coordinates:
    """Reads keys that hold coordinates of a robot. ``start`` (nq) is where the run starts, NaN
    where that is not said.
    """

    def __init__(self, model: Model, mistakes: Mistakes, start: Array | None = None) -> None:
        self.model, self.mistakes = model, mistakes
        self.start = np.full(model.nq, np.nan) if start is None else start

    @property
    def driven(self) -> Driven:
        return driven(self.model)

    @property
    def rest(self) -> Array:
        """Where the driven coordinates start, (k,)."""
        q = np.where(np.isnan(self.start), self.model.neutral(), self.start)
        return np.array([q[i] if i >= 0 else 0.0 for i in self.driven.q])

    def part(self, kind: type[Part], raw: object, path: Path) -> Any:
        made, wrong = validate(kind, raw, {})
        for where, text, key in wrong:
            self.mistakes.add((*path, *where), text, key=key)
        return made

    def _turns(self, of_q: bool) -> list[bool]:
        """Whether each coordinate is an angle."""
        steps = [step for joint in self.model.joints for step in joint.steps]
        if of_q:
            return [step.unit == "rad" and not step.ball for step in steps for _ in step.positions]
        return [step.unit == "rad" for step in steps]

    def all(self, part: Part | None, key: str, path: Path, of_q: bool) -> Array:
        """(nq) or (nv): a key of a part and its ``_deg`` twin; NaN where neither says anything."""
        names = self.model.coordinates if of_q else self.model.velocities
        places = {name: [i] for i, name in enumerate(names)}
        for joint in self.model.joints:
            places[joint.name] = list(
                range(len(names))[self.model.joint_slice(joint.name, of="q" if of_q else "v")]
            )
        return self._fill(part, key, path, len(names), places, self._turns(of_q))

    def chosen(self, part: Part, key: str, path: Path, default: Array) -> Array:
        """A key of a motion over the driven coordinates: a number, a list as it stands, or by
        joints with ``default`` elsewhere.
        """
        chosen = self.driven
        for name in (key, f"{key}_deg"):
            value = getattr(part, name, None)
            if isinstance(value, list):
                sizes = sorted({len(chosen), self.model.nv})
                if len(value) not in sizes:
                    wanted = " or ".join(map(str, sizes))
                    self.mistakes.add(
                        (*path, name), f"{len(value)} entries; {self.model.name} takes {wanted}"
                    )
                    return default
        places: dict[str, list[int]] = {name: [i] for i, name in enumerate(chosen.names)}
        for joint in self.model.joints:
            own = [
                chosen.v.index(j)
                for j in range(self.model.nv)[self.model.joint_slice(joint.name)]
                if j in chosen.v
            ]
            if own:
                places[joint.name] = own
        values = [getattr(part, name, None) for name in (key, f"{key}_deg")]
        full = next((value for value in values if isinstance(value, list)), None)
        turns = self._turns(of_q=False)
        if full is not None and len(full) == self.model.nv:
            return self._fill(part, key, path, self.model.nv, places, turns)
        found = self._fill(part, key, path, len(chosen), places, [turns[j] for j in chosen.v])
        return np.where(np.isnan(found), default, found)

    def _fill(
        self,
        part: Part | None,
        key: str,
        path: Path,
        size: int,
        places: Mapping[str, list[int]],
        turns: list[bool],
    ) -> Array:
        out = np.full(size, np.nan)
        given = [name for name in (key, f"{key}_deg") if getattr(part, name, None) is not None]
        values = {name: getattr(part, name) for name in given}
        if len(given) == 2 and not all(isinstance(value, Mapping) for value in values.values()):
            self.mistakes.add(
                (*path, given[1]),
                f"{' and '.join(given)} exclude each other, unless both go by joints",
            )
            return out
        for name, value in values.items():
            scale, degrees = (RIGHT, True) if name.endswith("_deg") else (1.0, False)
            if isinstance(value, Mapping):
                self._by_joint(out, value, (*path, name), places, turns, degrees)
                continue
            if isinstance(value, list) and len(value) != size:
                self.mistakes.add((*path, name), f"{len(value)} entries; {size} belong here")
                continue
            if degrees and not all(turns):
                self.mistakes.add(
                    (*path, name),
                    "not all coordinates are angles; give the angles by joint, and slides without "
                    "_deg",
                )
                continue
            out[:] = np.asarray(value) * scale
        return out

    def _by_joint(
        self, out: Array, value: Mapping[str, list[float]], path: Path, places: Mapping[str, list[int]], turns: list[bool],
        degrees: bool,
    ) -> None:  # fmt: skip
        for joint, numbers in value.items():
            at = places.get(joint)
            if at is None:
                self.mistakes.add(
                    (*path, joint),
                    f"no joint or coordinate has this name{near(joint, list(places))}",
                    key=True,
                )
            elif len(numbers) != len(at):
                self.mistakes.add(
                    (*path, joint), f"{len(numbers)} numbers; the joint has {len(at)} coordinates"
                )
            elif degrees and not all(turns[i] for i in at):
                self.mistakes.add(
                    (*path, joint), "is no angle; give it under the key without _deg", key=True
                )
            elif not np.isnan(out[at]).all():
                self.mistakes.add((*path, joint), "is given twice", key=True)
            else:
                out[at] = np.array(numbers) * (RIGHT if degrees else 1.0)


def kind_of(
    read: Coordinates, raw: Mapping[str, Any], path: Path, what: str, known: Mapping[str, Any]
) -> str | None:
    """The ``type`` of a part, or None with the mistake noted: what it is called, and what there is."""
    kind = raw.get("type")
    if isinstance(kind, str) and kind in known:
        return kind
    text = "type is missing" if kind is None else f"no {what} is called {shown(kind)}"
    hint = near(str(kind), list(known)) if kind is not None else f"; there are {', '.join(known)}"
    read.mistakes.add((*path, "type"), f"{text}{hint}")
    return None


def motion(read: Coordinates, raw: object, path: Path) -> rm.Trajectory | None:
    """The trajectory that a part describes, or None with its mistakes noted."""
    if isinstance(raw, str):
        raw = {"type": raw}
    if not isinstance(raw, Mapping):
        read.mistakes.add(path, f"{shown(raw)} will not do; a mapping with a type belongs here")
        return None
    kind = kind_of(read, raw, path, "motion", MOTIONS)
    if kind is None:
        return None
    part = read.part(MOTIONS[kind], raw, path)
    if part is None:
        return None
    try:
        return _BUILD[kind](read, part, path)
    except RamifyError as error:
        read.mistakes.add(path, str(error))
        return None


# ---- one function per kind ----

Build = Callable[[Coordinates, Any, Path], "rm.Trajectory | None"]


def _cycloid(read: Coordinates, part: Any, path: Path) -> rm.Trajectory:
    start, end = _ends(read, part, path)
    return rm.Cycloid(start, end, part.duration, part.begin)


def _ends(read: Coordinates, part: Any, path: Path) -> tuple[Any, Any]:
    start = read.chosen(part, "start", path, read.rest)
    if part.end is None and part.end_deg is None:
        read.mistakes.add(path, "one of end, end_deg is missing")
    return start, read.chosen(part, "end", path, np.asarray(start))


def _quintic(read: Coordinates, part: Any, path: Path) -> rm.Trajectory:
    start, end = _ends(read, part, path)
    still = np.zeros(len(read.driven))
    names = ("start_rate", "end_rate", "start_acceleration", "end_acceleration")
    others = {name: read.chosen(part, name, path, still) for name in names}
    return rm.Quintic(start, end, part.duration, part.begin, **others)


def _harmonic(read: Coordinates, part: Any, path: Path) -> rm.Trajectory:
    still = np.zeros(len(read.driven))
    offset = read.chosen(part, "offset", path, read.rest)
    amplitude, frequency, phase = (
        read.chosen(part, name, path, still) for name in ("amplitude", "frequency", "phase")
    )
    return rm.Harmonic(offset, amplitude, frequency, phase, part.duration, part.begin)


def _hold(read: Coordinates, part: Any, path: Path) -> rm.Trajectory:
    return rm.Hold(read.chosen(part, "q", path, read.rest), part.duration, part.begin)


def _rows(read: Coordinates, part: Any, key: str, path: Path) -> Any:
    """A table of coordinates, in rad or m, or None with the mistake noted."""
    given = [name for name in (key, f"{key}_deg") if getattr(part, name) is not None]
    if len(given) != 1:
        read.mistakes.add(path, f"one of {key}, {key}_deg belongs here; there are {len(given)}")
        return None
    table = getattr(part, given[0])
    bad = next((i for i, row in enumerate(table) if len(row) != len(table[0])), None)
    if bad is not None:
        read.mistakes.add(
            (*path, given[0], bad), f"{len(table[bad])} numbers; the first row has {len(table[0])}"
        )
        return None
    if len(table) != len(part.times):
        read.mistakes.add((*path, given[0]), f"{len(table)} rows for {len(part.times)} times")
        return None
    return np.array(table) * (RIGHT if given[0].endswith("_deg") else 1.0)


def _spline(read: Coordinates, part: Any, path: Path) -> rm.Trajectory | None:
    rows = _rows(read, part, "points", path)
    return (
        None
        if rows is None
        else rm.Spline(part.times, rows, part.ends, part.start_rate, part.end_rate)
    )


def _table(read: Coordinates, part: Any, path: Path) -> rm.Trajectory | None:
    rows = _rows(read, part, "values", path)
    return None if rows is None else rm.Table(part.times, rows)


def _line(read: Coordinates, part: Any, path: Path) -> rm.Trajectory:
    return rm.PlanarLine(part.start, part.end, part.lengths, part.duration, part.begin, part.elbow)


def _gait(read: Coordinates, part: Any, path: Path) -> rm.Trajectory:
    numbers = {
        name: getattr(part, name)
        for name in ("height", "period", "stride", "lift", "sway", "support", "begin")
    }
    return rm.Gait.of(read.model, **numbers, steps=math.inf if part.steps is None else part.steps)


def _per_joint(read: Coordinates, part: Any, path: Path) -> rm.Trajectory | None:
    made = {
        name: motion(_of_joint(read, name), raw, (*path, "joints", name))
        for name, raw in part.joints.items()
    }
    if any(one is None for one in made.values()):
        return None
    return rm.PerJoint.named(read.model, made, rest=read.rest)  # type: ignore[arg-type]


class _JointCoordinates(Coordinates):
    """The coordinates of one joint."""

    def __init__(self, read: Coordinates, joint: str) -> None:
        super().__init__(read.model, read.mistakes, read.start)
        self.joint = joint

    @property
    def driven(self) -> Driven:
        return driven(self.model, (self.joint,))


def _of_joint(read: Coordinates, joint: str) -> Coordinates:
    known = {one.name for one in read.model.joints}
    return _JointCoordinates(read, joint) if joint in known else read


def _sequence(read: Coordinates, part: Any, path: Path) -> rm.Trajectory | None:
    made: list[rm.Trajectory] = []
    for i, raw in enumerate(part.parts):
        one = motion(read, raw, (*path, "parts", i))
        if one is None:
            return None
        made.append(one)
    return rm.Sequence(made, part.begin)


_BUILD: Final[Mapping[str, Build]] = {
    "cycloid": _cycloid, "quintic": _quintic, "harmonic": _harmonic, "hold": _hold, "spline": _spline, "table": _table,
    "planar_line": _line, "per_joint": _per_joint, "sequence": _sequence, "gait": _gait,
}  # fmt: skip
