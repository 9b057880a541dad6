"""What the commands share: the application, their common options, and how arguments are read."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

import ramify as rf
from ramify.cli.output import print_error

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

    from ramify.api.model import Model

app = App(
    name="ramify",
    version=rf.__version__,
    help="Dynamics of tree-type robots, compiled for the robot at hand.",
)


def _robots(typed: CompletionContext) -> list[str]:
    """What the shell may complete: built-in robots, files and folders."""
    return [*rf.robots(), *_files(typed)]


def _scenarios(typed: CompletionContext) -> list[str]:
    from ramify.scenario_files.shipped import scenarios

    return [*scenarios(), *_files(typed)]


def _robots_and_scenarios(typed: CompletionContext) -> list[str]:
    return [*_scenarios(typed), *rf.robots()]


def _files(typed: CompletionContext) -> list[str]:
    from glob import escape, glob

    paths = map(Path, sorted(glob(f"{escape(typed.incomplete)}*")))
    return [f"{path}/" if path.is_dir() else str(path) for path in paths]


Switch = Annotated[bool, Parameter(negative="")]
Words = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]
NumberList = Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")]
"""An option that is there or not; options that take several words or numbers."""

RobotName = Annotated[
    str,
    Parameter(help="A built-in robot's name, or the path of a robot file.", completer=_robots),
]
RobotOrScenario = Annotated[
    str,
    Parameter(
        name="ROBOT|SCENARIO",
        help="A robot or a scenario: a built-in name, or the path of a file.",
        completer=_robots_and_scenarios,
    ),
]
ScenarioName = Annotated[str | None, Parameter(completer=_scenarios)]
Settings = Annotated[Words, Parameter(name="--set", help="Parameters of the robot, such as n=7.")]
AsJson = Annotated[Switch, Parameter(name="--json", help="Print JSON, for programs to read.")]

COUNTED: Final = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias")
"""Algorithms that are counted and exported by default."""


def load_model(robot: str, settings: Sequence[str] | None = None) -> Model:
    """A robot with the parameters of --set; what its file left out goes to stderr."""
    with warnings_in_a_line():
        return rf.load(robot, **named_numbers(settings))


@contextmanager
def warnings_in_a_line() -> Iterator[None]:
    """Warnings go to stderr, a line each, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        print_error(f"warning: {warning.message}")


def named_numbers(
    words: Sequence[str] | None,
    option: str = "--set",
    example: str = "n=7",
    error: type[rf.RamifyError] = rf.ModelError,
) -> dict[str, Any]:
    """NAME=NUMBER words as a mapping."""
    values: dict[str, Any] = {}
    for word in words or ():
        name, _, value = word.rpartition("=")
        try:
            values[name] = float(value if name else "")
        except ValueError:
            raise error(f"{option} {word}: give NAME=NUMBER, such as {example}") from None
    return values


def fill(option: str, numbers: Sequence[float] | None, default: Any) -> Any:
    """One number per entry of the default: the default, the number given for all, or the numbers
    given.
    """
    import numpy as np

    values = default if numbers is None else np.asarray(numbers, dtype=np.float64)
    if values.size not in (1, default.size):
        text = f"{option} has {values.size} numbers; give {default.size}, or one for all"
        raise rf.StateError(text)
    return np.broadcast_to(values, default.shape).copy()


def file_name(m: Model) -> str:
    """The robot's name as part of a file's name."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in m.name)


def path_with_robot_name(path: Path, m: Model) -> Path:
    return path.with_name(path.name.replace("{robot}", file_name(m)))


def plots_are_possible() -> bool:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        text = "install it with: pip install 'ramify[plot]'"
        print_error(f"no plot, because Matplotlib is missing; {text}")
        return False
    return True


def summary(m: Model) -> dict[str, Any]:
    keys = ("degrees_of_freedom", "nv", "nq", "mass")
    found = {"name": m.name, "bodies": len(m.bodies), **{key: getattr(m, key) for key in keys}}
    return found | {"description": str(m.metadata.get("description", ""))}
