"""The options of a run, in one table.

``simulate``, scenario files, ``Scenario.run``, the command line, the record of a result, "Repeat
it" in reports and studies read it. A new option is a parameter of ``simulate`` with its row here,
and the lines where it acts. Nothing heavy is imported: the command line reads the table at its
start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

from ramify.core.errors import SimulationError
from ramify.core.messages import shown
from ramify.core.names import one_of
from ramify.documents.forms import Anything, Choice, Flag, Form, Name, Number, Numbers, Reading
from ramify.documents.mistakes import Path
from ramify.plant.stabilisation import STABILISATIONS

_ANYTHING: Final = Anything()


def _unchanged(value: Any) -> Any:
    return value


def _or_none(value: float | None) -> float | None:
    """A bound, None where there is none."""
    return value if value is not None and math.isfinite(value) else None


def _names(value: Iterable[str] | None) -> list[str]:
    return list(value or ())


def _number(value: object) -> float:
    """A number as it is, NaN for anything else."""
    try:
        real = isinstance(value, Real) and not isinstance(value, bool)
        return float(value) if real else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return math.nan


@dataclass(frozen=True)
class RunOption:
    """An option of a run.

    about: what it does, as the help of the command line says it; form: what a file may give;
    default: its value otherwise; required: it has no default. part: scenario files give it as a
    part with a reader of its own (a controller, a ground); in_files: they give it at all.
    command_line: its type there, None where it is not offered. record: how a result records it,
    from where "Repeat it" lists it; None where it is not recorded. of_machine: it is a part of the
    equations of motion, not of how they are solved. in_lanes: studies with fixed steps honour it
    where runs share compiled steps; runs with any other option are made one by one.
    """

    about: str
    form: Form = _ANYTHING
    default: object = None
    unit: str = ""
    required: bool = False
    part: bool = False
    in_files: bool = True
    command_line: Any = None
    record: Callable[[Any], Any] | None = _unchanged
    of_machine: bool = False
    in_lanes: bool = False

    def check(self, name: str, value: object) -> None:
        """Refuse a number, word or switch that the form does not take. Values of other forms are
        checked where they act.
        """
        form = self.form
        if isinstance(form, Choice):
            one_of(name, value, [str(x) for x in form.values], SimulationError)
        open_ended = value is None and self.default is None and not self.required
        if isinstance(form, Number) and not open_ended and not form.accepts(_number(value)):
            unit = f", in {self.unit}" if self.unit else ""
            raise SimulationError(f"{name} {shown(value)} must be {form.wanted}{unit}")


@dataclass(frozen=True)
class WordOrNumber(Form):
    """One of some words, or a number."""

    words: tuple[str, ...]
    number: Number

    @property
    def wanted(self) -> str:
        return f"{', '.join(map(repr, self.words))}, or {self.number.wanted}"

    def read(self, raw: object, path: Path, reading: Reading) -> Any:
        if isinstance(raw, str) and raw in self.words:
            return raw
        if isinstance(raw, (str, bool)):
            raise reading.refuse(path, f"{shown(raw)} must be {self.wanted}")
        return self.number.read(raw, path, reading)


_POSITIVE: Final = Number(above=0.0)
_SWITCH: Final[Mapping[str, Any]] = {
    "form": Flag(), "default": True, "command_line": bool, "of_machine": True, "in_lanes": True,
}  # fmt: skip

OPTIONS: Final[dict[str, RunOption]] = {
    "t_end": RunOption(
        "Seconds to simulate; 1 for a robot, as the scenario says otherwise.",
        _POSITIVE, unit="s", required=True, command_line=float, in_lanes=True,
    ),
    "q0": RunOption("The start: coordinates (nq).", unit="rad or m", in_files=False),
    "v0": RunOption("The start: rates (nv).", unit="rad/s or m/s", in_files=False),
    "control": RunOption(
        'The controller: a word such as computed_torque, or "{type: pd, kp: 100}".',
        part=True, command_line=str, of_machine=True,
    ),
    "ground": RunOption(
        'The ground: firm, none, "{law: firm, terrain: {slope_deg: 10}}"; see ramify kinds.',
        part=True, command_line=str, of_machine=True,
    ),
    "method": RunOption(
        "auto, dop853, ode45, radau, ode15s, lsoda, rk4, ode5, ab4, energy, ...",
        Name(), "auto", command_line=str, in_lanes=True,
    ),
    "rtol": RunOption(
        "Relative tolerance of an adaptive method.",
        _POSITIVE, 1e-8, command_line=float, in_lanes=True,
    ),
    "atol": RunOption(
        "Absolute tolerance of an adaptive method.",
        _POSITIVE, 1e-10, command_line=float, in_lanes=True,
    ),
    "dt_out": RunOption(
        "Seconds between rows of output.", _POSITIVE, 0.01, "s", command_line=float, in_lanes=True,
    ),
    "step": RunOption(
        "Step of a fixed-step method, s.", _POSITIVE, None, "s", command_line=float, in_lanes=True,
    ),
    "max_step": RunOption(
        "Longest step of an adaptive method, s; over a ground 0.01 by default.",
        Number(above=0.0, endless=True), math.inf, "s", command_line=float, record=_or_none,
        in_lanes=True,
    ),
    "damping": RunOption(
        "Viscous friction in the joints, not of a floating base: N m s/rad, N s/m.",
        Numbers(single=True, of=Number(least=0.0)), 0.0, "N m s/rad or N s/m",
        command_line=float, of_machine=True, in_lanes=True,
    ),
    "events": RunOption(
        "Functions (t, q, v) by name that end the run.", in_files=False, record=_names
    ),
    "progress": RunOption(
        "A bar that shows how far the run is.", Flag(), False, in_files=False, record=None
    ),
    "stabilisation": RunOption(
        "How loops stay closed: projection, none, or Baumgarte's rate in 1/s.",
        WordOrNumber(STABILISATIONS, _POSITIVE), "projection", "1/s", command_line=float | str,
        of_machine=True,
    ),
    "at_singularity": RunOption(
        "Where loops pass a singular posture: stop or pass.",
        Choice(("stop", "pass")), "stop", command_line=str,
    ),
    "passive": RunOption("Springs, damping, friction and tendons of the machine act.", **_SWITCH),
    "stops": RunOption("Joints stop at their limits.", **_SWITCH),
    "efforts": RunOption("Drives give no more than their effort.", **_SWITCH),
    "wrenches": RunOption(
        'Wrenches, N m and N: "{link6: [0, 0, 0, 0, 0, -9]}"; pushes: '
        '"[[0.4, 0.5, {link6: ...}]]".',
        part=True, command_line=str, of_machine=True,
    ),
    "contact": RunOption(
        'Hard contact, solved in fixed steps: hard, none, "{law: hard, friction: 0.6}".',
        part=True, command_line=str, of_machine=True,
    ),
}  # fmt: skip
"""The options of ``simulate`` by name, in the order of its parameters."""


def checked_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options among the arguments of a function, by name. Raises SimulationError for a value
    that cannot be right.
    """
    options = {name: arguments[name] for name in OPTIONS if name in arguments}
    for name, value in options.items():
        OPTIONS[name].check(name, value)
    return options


def recorded_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The record of options and of notes on them: every option of the table that is recorded, with
    its default where it is missing.
    """
    record: dict[str, Any] = {}
    for name, row in OPTIONS.items():
        if row.record is not None:
            record[name] = row.record(options.get(name, row.default))
    return record | {name: value for name, value in options.items() if name not in OPTIONS}
