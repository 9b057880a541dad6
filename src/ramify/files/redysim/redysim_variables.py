"""ReDySim's variables, each read by its name and checked then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from ramify.core.arrays import Array
from ramify.core.bounds import LARGEST
from ramify.core.errors import ModelError
from ramify.files.import_report import ImportReport
from ramify.files.redysim.matlab_constants import InitialState, initial_state

MAX_LINKS: Final = 5000
_NEEDED: Final = ("alp", "a", "b", "bt", "dx", "dy", "dz", "m")
MOMENTS: Final = ("Icxx", "Icyy", "Iczz", "Icxy", "Icyz", "Iczx")
VARIABLES: Final = frozenset(
    ("n", *_NEEDED, *MOMENTS, "g", "th", "r", "aj", "type", "dof", "nq", "g_prop", "n_l", "n_j")
)
"""Names that a model means something by."""


def dialect(variables: Mapping[str, Any]) -> Literal["fixed", "floating", "legged"]:
    """Which of ReDySim's three programs a model is written for, seen from the names of its
    variables; the book's files (tables 10.1 and 10.10) have n_j, 6 for a floating base.
    """
    if "g_prop" in variables:
        return "legged"
    free = "n_j" in variables and np.ravel(variables["n_j"])[:1].tolist() == [6]
    return "floating" if free or "nq" in variables else "fixed"


class RedysimVariables:
    """The variables of one robot, in any dialect."""

    def __init__(self, values: Mapping[str, Any], report: ImportReport) -> None:
        self.values, self.report, kind = values, report, dialect(values)
        self.floating, self.legged = kind != "fixed", kind == "legged"
        self.longer: set[str] = set()
        self.initial: InitialState | None = None  # of initials.m
        self.n = 0
        size = self.number("n_l" if "n_l" in values else "n")
        if not 1 <= size <= MAX_LINKS or size != int(size):
            text = f"n = {size:g} must be a whole number of links from 1 to {MAX_LINKS}"
            raise ModelError(f"{report.file}: {text}")
        self.n = int(size)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def fail(self, name: str, text: str) -> ModelError:
        return ModelError(f"{self.report.file}: {name} {text}")

    def numbers(self, name: str) -> Array:
        if name not in self.values:
            listed = f"n, {', '.join(_NEEDED)}, g and {', '.join(MOMENTS)}"
            raise self.fail(name, f"is missing; a ReDySim model has {listed}")
        try:
            a = np.asarray(self.values[name], dtype=np.float64).ravel(order="F")
        except (TypeError, ValueError):
            raise self.fail(name, "is not numeric") from None
        for k, x in enumerate(a.tolist(), 1):
            if not np.isfinite(x):
                raise self.fail(f"{name}({k})", "is not finite")
            if abs(x) > LARGEST:
                raise self.fail(f"{name}({k})", f"is {x:g}; numbers here stay below {LARGEST:.0e}")
        return a

    def number(self, name: str) -> float:
        a = self.numbers(name)
        if a.size != 1:
            raise self.fail(name, f"has {a.size} numbers; it must have one")
        return float(a[0])

    def vector(self, name: str, default: float | None = None) -> list[float]:
        """One number per link."""
        if default is not None and name not in self:
            return [default] * self.n
        a = self.numbers(name)
        if a.size < self.n:
            raise self.fail(name, f"has {a.size} numbers for {self.n} links")
        if a.size > self.n and name not in self.longer:
            self.longer.add(name)
            text = f"has {a.size} numbers for {self.n} links; those beyond are left out"
            self.report.ignored(name, text)
        return [float(x) for x in a[: self.n]]

    def choices(self, name: str, default: float) -> list[bool]:
        values = self.vector(name, default)
        for k, x in enumerate(values):
            if x not in (0.0, 1.0):
                raise self.fail(f"{name}({k + 1})", f"is {x:g}; it must be 0 or 1")
        return [x == 1.0 for x in values]

    def rows(self) -> list[tuple[float, float, float, float]]:
        """alpha, a, b and theta of every link; theta is 0 where there is none."""
        th = [0.0] * self.n if self.floating else self.vector("th", 0.0)
        return list(zip(self.vector("alp"), self.vector("a"), self.vector("b"), th, strict=True))

    def coordinates(self) -> list[float]:
        """Where a fixed robot starts: as initials.m says, else th where a joint turns, b where it
        slides.
        """
        if self.initial is not None:
            return list(self.initial.q)
        columns = zip(self.turns(), self.vector("th", 0.0), self.vector("b"), strict=True)
        return [th if turns else b for turns, th, b in columns]

    @property
    def constants(self) -> dict[str, Array]:
        """The variables as columns, as other files of the same folder get them from inputs()."""
        return {
            name: np.asarray(value, dtype=np.float64).reshape(-1, 1)
            for name, value in self.values.items()
            if not isinstance(value, str)
        }

    def read_initials(self, text: str) -> None:
        """The state at which a run starts, from ``initials.m``."""
        base = 6 if self.floating else 0
        variables = self.n + 5 if self.floating else self.n
        try:
            self.initial = initial_state(text, self.constants, variables, base)
        except (ModelError, TypeError, ValueError) as error:
            self.report.ignored("initials.m", str(error))
        if self.initial is None:
            return
        said = "it starts where m.keyframes[0].q and .v say"
        if "tf" in self.initial.run:
            said += f" and ends at {self.initial.run['tf']:g} s"
        self.report.note("initials.m", f"the state of a run is read: {said}")

    @property
    def closed(self) -> bool:
        """Whether ``type`` says that the robot has loops."""
        kind = self.number("type") if "type" in self else 0.0
        if kind not in (0.0, 1.0):
            raise self.fail("type", f"is {kind!r}; it must be 0 (open) or 1 (closed)")
        return kind == 1.0

    def check_freedom(self, possible: Sequence[int], how: str) -> None:
        """Report a doubt where ``dof`` is not one of the possible numbers."""
        dof = self.number("dof") if "dof" in self else possible[0]
        if dof not in possible:
            degrees = f"{possible[0]} degree{'s' * (possible[0] != 1)} of freedom"
            text = f"the file says dof = {dof:g}; {how} the robot has {degrees}"
            self.report.note("dof", text, doubt=True)

    def turns(self) -> list[bool]:
        return [True] * self.n if self.floating else self.choices("r", 1.0)

    def actuated(self) -> list[bool]:
        """Which links are driven. Of a floating robot aj may leave out the base, which never is, or
        have its six variables.
        """
        if "aj" in self and self.floating:
            aj = self.numbers("aj")
            base = aj.size - self.n + 1
            if base not in (0, 1, 6):
                text = f"has {aj.size} numbers for a base and {self.n - 1} joints"
                raise self.fail("aj", f"{text}; the base has one, six or none of them")
            if aj[:base].any():
                self.report.ignored("aj", "its entries for the base: a floating base has no drive")
            self.values = {**self.values, "aj": [0.0, *aj[base:]]}
        return self.choices("aj", 1.0)

    def check_joints(self) -> None:
        """n_j of the book: one variable per joint, six of a floating base."""
        for k, x in enumerate(self.vector("n_j", 1.0)):
            if x != (6.0 if self.floating and k == 0 and "n_j" in self else 1.0):
                raise self.fail(
                    f"n_j({k + 1})",
                    f"is {x:g}, but link {k + 1} has one DH row, which is one axis; write a row "
                    "for each variable of the joint, all but the last of them without mass",
                )

    def parents(self) -> list[int]:
        """Zero-based parents, -1 for the ground. Parents come first, and a floating robot has one
        base.
        """
        out = []
        for k, x in enumerate(self.vector("bt")):
            if x != int(x) or not 0 <= x <= k:
                text = f"the parent of link {k + 1} is 0 (the ground) or a link before it"
                raise self.fail(f"bt({k + 1})", f"is {x:g}; {text}")
            if self.floating and (x == 0) != (k == 0):
                text = "of a floating robot link 1 is the base, and only it has the parent 0"
                raise self.fail(f"bt({k + 1})", f"is {x:g}; {text}")
            out.append(int(x) - 1)
        return out

    def gravity(self) -> list[float]:
        a = self.numbers("g")
        if a.size != 3:
            raise self.fail("g", f"has {a.size} numbers; an acceleration has three, in m/s^2")
        return [float(x) for x in a]
