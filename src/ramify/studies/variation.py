"""How the parameters of a study vary: values, spacings and distributions in a study file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ramify.core.messages import near, shown
from ramify.documents.expression import ExpressionError, evaluate
from ramify.documents.mistakes import Mistakes, Path
from ramify.studies.points import Design, Distribution, Series, Varied, count

MANNERS: Final = ("values", "from", "uniform", "log_uniform", "normal")
"""Keys that say how a parameter varies."""
BESIDES: Final = {"from": ("to", "count", "log"), "normal": ("within",)}
"""Keys that may accompany them."""


@dataclass(frozen=True)
class VariationReader:
    """Reads the entries under ``vary``; ``most``: the largest number of runs."""

    mistakes: Mistakes
    most: int

    def varied(self, path: str, how: Any) -> Varied | None:
        """How one parameter varies; None with its mistakes noted."""
        place = ("vary", path)
        if isinstance(how, list):
            how = {"values": how}
        if not isinstance(how, Mapping):
            self.mistakes.add(
                place,
                f"{shown(how)} must be a list, or a mapping with one of {', '.join(MANNERS)}",
            )
            return None
        manner = [key for key in MANNERS if key in how]
        allowed = [*MANNERS] if not manner else [manner[0], *BESIDES.get(manner[0], ())]
        for key in how:
            if key not in allowed:
                self.mistakes.add((*place, key), f"unknown key{near(key, allowed)}", key=True)
                return None
        if len(manner) != 1:
            self.mistakes.add(place, f"exactly one of {', '.join(MANNERS)} is needed")
            return None
        return (
            self._values(how, place)
            if manner[0] in ("values", "from")
            else self._distribution(manner[0], how, place)
        )

    def _numbers(
        self, raw: Any, place: Path, wanted: str, size: int | None = None
    ) -> list[float] | None:
        if not isinstance(raw, list) or not raw or (size is not None and len(raw) != size):
            self.mistakes.add(place, f"{shown(raw)} must be {wanted}")
            return None
        found: list[float] = []
        for i, one in enumerate(raw):
            x = self._number(one, (*place, i))
            if x is None:
                return None
            found.append(x)
        return found

    def _number(self, raw: Any, place: Path) -> float | None:
        try:
            x = evaluate(raw, {})
            if not math.isfinite(x):
                raise ExpressionError(f"{x} is not finite")
            return x
        except ExpressionError as error:
            self.mistakes.add(place, f"{error}; it must be a finite number")
            return None

    def _values(self, how: Mapping[str, Any], place: Path) -> Series | None:
        if "values" in how:
            found = self._numbers(
                how["values"], (*place, "values") if "values" in how else place, "a list of numbers"
            )
            return None if found is None else Series(tuple(found))
        ends = [self._number(how.get(key), (*place, key)) for key in ("from", "to", "count")]
        low, high, number = ends
        if low is None or high is None or number is None:
            return None
        if number < 1 or number != int(number):
            self.mistakes.add(
                (*place, "count"),
                f"{shown(how['count'])} must be a whole number ≥ 1",
            )
            return None
        if number > 1e9:
            self.mistakes.add((*place, "count"), f"{number:,.0f} values are too many")
            return None
        log = how.get("log", False)
        if log not in (True, False) or (log and not (low > 0.0 and high > 0.0)):
            self.mistakes.add((*place, "log"), "with log: true, both ends must be > 0")
            return None
        if number > self.most:  # refused with the count of all runs, which is not less; not made
            return Series(range(int(number)))
        spaced = (
            np.geomspace(low, high, int(number)) if log else np.linspace(low, high, int(number))
        )
        return Series(spaced)

    def _distribution(self, kind: str, how: Mapping[str, Any], place: Path) -> Distribution | None:
        wanted = (
            "a pair [mean, standard deviation]" if kind == "normal" else "a pair [lowest, highest]"
        )
        pair = self._numbers(how[kind], (*place, kind), wanted, 2)
        if pair is None:
            return None
        a, b = pair
        if kind == "normal":
            if not b > 0.0:
                self.mistakes.add((*place, kind, 1), f"the standard deviation {b} must be > 0")
                return None
            ends = (
                self._numbers(how["within"], (*place, "within"), "a pair [lowest, highest]", 2)
                if "within" in how
                else None
            )
            if ends is not None and not ends[0] < ends[1]:
                self.mistakes.add(
                    (*place, "within"), f"the range from {ends[0]} to {ends[1]} is empty"
                )
                return None
            return Distribution(kind, a, b, (ends[0], ends[1]) if ends else (-math.inf, math.inf))
        if not a < b:
            self.mistakes.add(
                (*place, kind), f"the range from {a} to {b} is empty; the lower end comes first"
            )
            return None
        if kind == "log_uniform" and not a > 0.0:
            self.mistakes.add(
                (*place, kind),
                f"the range from {a} to {b} has no logarithm; both ends must be > 0",
            )
            return None
        return Distribution(kind, a, b)

    def check_count(self, vary: Mapping[str, Varied], design: Design) -> None:
        sizes = {path: len(one.values) for path, one in vary.items() if isinstance(one, Series)}
        if design.combine == "together" and len({n for n in sizes.values() if n}) > 1:
            each = ", ".join(f"{path} has {n}" for path, n in sizes.items())
            self.mistakes.stop(
                ("points", "combine"), f"with combine: together all lists have one length; {each}"
            )
        total = count(vary, design)
        if total > self.most:
            drawn = (
                [str(design.runs)]
                if any(isinstance(one, Distribution) for one in vary.values())
                else []
            )
            listed = (
                [*map(str, sizes.values())]
                if design.combine == "cross"
                else [str(max(sizes.values(), default=1))]
            )
            product = " x ".join([*listed, *drawn])
            text = (
                f"{product} = {total:,} runs; a study has at most {self.most:,}; to allow more, "
                "set the key most_runs"
            )
            self.mistakes.stop(
                ("points", "runs") if drawn and design.runs > self.most else ("vary",), text
            )
