"""How the parameters of a study vary: values, spacings and distributions in a study file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.core.messages import near, shown
from ramify.documents.forms import GivenPart, NotedError, Number, Reading, read_items
from ramify.documents.mistakes import Mistakes, Path
from ramify.studies.points import Design, Distribution, Series, Varied, cells, run_count

MANNERS: Final = ("values", "from", "uniform", "log_uniform", "normal")
"""Keys that say how a parameter varies."""
BESIDES: Final = {"from": ("to", "count", "log"), "normal": ("within",)}
"""Keys that may accompany them."""
FINITE: Final = Number()


@dataclass(frozen=True)
class VariationReader:
    """Reads the entries under ``vary``; ``most``: the largest number of runs."""

    mistakes: Mistakes
    most: int

    def varied(self, path: str, how: Any) -> Varied | None:
        """How one parameter varies; None with its mistakes noted."""
        try:
            part = self._part(("vary", path), {"values": how} if isinstance(how, list) else how)
            kind = next(key for key in MANNERS if key in part.part)
            return self._values(part) if kind in ("values", "from") else _drawn(kind, part)
        except NotedError:
            return None

    def _part(self, place: Path, how: Any) -> GivenPart:
        reading = Reading(self.mistakes)
        if not isinstance(how, Mapping):
            text = f"{shown(how)} must be a list, or a mapping with one of {', '.join(MANNERS)}"
            raise reading.refuse(place, text)
        manner = [key for key in MANNERS if key in how]
        allowed = [*MANNERS] if not manner else [manner[0], *BESIDES.get(manner[0], ())]
        for key in how:
            if key not in allowed:
                raise reading.refuse((*place, key), f"unknown key{near(key, allowed)}", key=True)
        if len(manner) != 1:
            raise reading.refuse(place, f"exactly one of {', '.join(MANNERS)} is needed")
        return GivenPart(how, place, reading)

    def _values(self, how: GivenPart) -> Series:
        if "values" in how.part:
            return Series(tuple(_numbers(how, "values", "a list of numbers")))
        low, high = (_number(how, key) for key in ("from", "to"))
        number = int(_number(how, "count", Number(least=1, whole=True)))
        if number > 1e9:
            raise how.refuse(f"{number:,} values are too many", "count")
        log = how.part.get("log", False)
        if log not in (True, False) or (log and not (low > 0.0 and high > 0.0)):
            raise how.refuse("with log: true, both ends must be > 0", "log")
        if number > self.most:  # refused with the count of all runs, which is not less; not made
            return Series(range(number))
        return Series((np.geomspace if log else np.linspace)(low, high, number))

    def check_count(self, vary: Mapping[str, Varied], design: Design) -> None:
        sizes = {path: len(one.values) for path, one in vary.items() if isinstance(one, Series)}
        if design.combine == "together" and len({n for n in sizes.values() if n}) > 1:
            each = ", ".join(f"{path} has {n}" for path, n in sizes.items())
            text = f"with combine: together all lists have one length; {each}"
            self.mistakes.stop(("points", "combine"), text)
        total = run_count(vary, design)
        if total > self.most:
            drawn = len(sizes) < len(vary)
            listed = [*sizes.values()] if design.combine == "cross" else [cells(vary, design)]
            product = " x ".join(map(str, [*listed, *([design.runs] if drawn else [])]))
            text = (
                f"{product} = {total:,} runs; a study has at most {self.most:,}; to allow more, "
                "set the key most_runs"
            )
            drawn_too_often = drawn and design.runs > self.most
            self.mistakes.stop(("points", "runs") if drawn_too_often else ("vary",), text)


def _number(how: GivenPart, key: str, form: Number = FINITE) -> float:
    return form.read(how.part.get(key), (*how.path, key), how.reading)


def _numbers(how: GivenPart, key: str, wanted: str, size: int | None = None) -> list[float]:
    return read_items(how.part[key], (*how.path, key), how.reading, FINITE, wanted, size)


def _drawn(kind: str, how: GivenPart) -> Distribution:
    """The distribution that a parameter is drawn from."""
    if kind == "normal":
        mean, spread = _numbers(how, kind, "a pair [mean, standard deviation]", 2)
        if not spread > 0.0:
            raise how.refuse(f"the standard deviation {spread} must be > 0", kind, 1)
        within = (_range(how, "within"),) if "within" in how.part else ()
        return Distribution(kind, mean, spread, *within)
    a, b = _range(how, kind)
    if kind == "log_uniform" and not a > 0.0:
        text = f"the range from {a} to {b} has no logarithm; both ends must be > 0"
        raise how.refuse(text, kind)
    return Distribution(kind, a, b)


def _range(how: GivenPart, key: str) -> tuple[float, float]:
    a, b = _numbers(how, key, "a pair [lowest, highest]", 2)
    if not a < b:
        raise how.refuse(f"the range from {a} to {b} is empty; the lower end comes first", key)
    return a, b
