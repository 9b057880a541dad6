"""A run as users start and hold it: its data are those of ``ramify.runs.run_record.Run``; here are
its audit, files, plots and pages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec

from ramify.api.model import Model
from ramify.core.arrays import Array
from ramify.core.errors import SimulationError
from ramify.core.file_path import path_of
from ramify.core.html import facts, scrolled
from ramify.loops.mobility import degrees_of_freedom, freedom_text
from ramify.runs import run_export, store
from ramify.runs import simulate as running
from ramify.runs.audit import Audit, audited
from ramify.runs.drive_table import Drives, drives
from ramify.runs.opened_run import open_result
from ramify.runs.run_loads import bearing_forces_of_run
from ramify.runs.run_record import Run, the_run
from ramify.view.comparison import Comparison, compared
from ramify.view.film import animate
from ramify.view.report import player, write_report
from ramify.view.run_plots import What, plot_run

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

P = ParamSpec("P")


@dataclass(frozen=True, eq=False, repr=False)
class Result(Run):
    __doc__ = Run.__doc__

    model: Model

    @classmethod
    def of(cls, run: Run) -> Result:
        """A run with everything that can be asked of it."""
        the_run(run)
        made = object.__new__(cls)  # whose arrays were checked and frozen with the run's
        vars(made).update({f.name: getattr(run, f.name) for f in fields(run)})
        vars(made)["model"] = Model.of(run.model)
        return made

    @property
    def audit(self) -> Audit:
        """The audit of appendix C at the tolerance that the run's options give;
        ``ramify.runs.audit.audit`` takes any other.
        """
        return audited(self)

    def drives(self, *others: Run) -> Drives:
        """What the run asks of each drive: peak and RMS force, speed, peak driving and braking
        power, energy given and regenerated, gear load; a table to print, or to read by name.

        others: further runs of the same joints, e.g. the phases of a duty cycle: one table over
        all of them, peaks of any, means over their whole time, sums of their energies. A drive is
        a coordinate of an actuated joint, or any other on which a joint force acted. The energies
        are integrated with the run and add up to ``work.actuator``; peaks and means are those of
        the rows: choose ``dt_out`` accordingly. Raises RamifyError where the joints differ.
        """
        return drives(self, *others)

    def bearing_forces(self) -> dict[str, Array]:
        """The wrench in every joint by its name, those that close loops too: (T, 6), [moment;
        force], N m and N, world-aligned; where and on what as in ``Model.bearing_forces``.

        All loads of the run act: drives, passive forces, the ground, external wrenches. Along a
        free direction a joint carries its drive and its passive forces. A RuntimeWarning names
        components that rigid bodies do not determine, as ``Model.bearing_forces`` does. NaN
        in rows whose forces are not known.
        """
        return bearing_forces_of_run(self)

    # ---- files, tables and plots ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a NetCDF-3 file that stands alone, whole or not at all. Raises
        SimulationError where that fails.
        """
        store.save_run(self, path)

    @staticmethod
    def open(path: str | os.PathLike[str], model: Model | None = None) -> Result:
        """The run in a file that ``save`` wrote, bit for bit. Raises SimulationError for any other
        file, and for a damaged one.

        model: the robot, instead of the one in the file; it must be the same to the last bit.
        """
        return Result.of(open_result(path, model))

    def to_xarray(self) -> xarray.Dataset:
        """An ``xarray.Dataset`` over time, coordinate and velocity, labelled by name. Needs the
        extra ``ramify[data]``.
        """
        return run_export.run_dataset(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A ``pandas.DataFrame`` over time, columns (quantity, name). Needs the extra
        ``ramify[data]``.
        """
        return run_export.to_pandas(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table with a header of names and units; numbers read back to the last bit."""
        run_export.to_csv(self, path)

    def to_redysim(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write statevar.dat, timevar.dat, tor.dat, envar.dat and mtvar.dat as ReDySim's
        simulations do; gives their paths.
        """
        return run_export.to_redysim(self, directory)

    def plot(
        self,
        what: What = "q",
        *,
        joints: Sequence[str] | None = None,
        theme: Literal["light", "dark"] = "light",
        title: str | None = None,
    ) -> Figure:
        """A Matplotlib figure: "q", "v", "a", "tau", "energy", "momentum", "audit" over time,
        "phase" (v over q), "contacts", "loops", "walk", "drives" (force over speed within what each
        can give).

        joints: names of the joints to draw, all by default. Where a motion was desired, it is
        drawn beside what was simulated.
        """
        return plot_run(self, what, joints=joints, theme=theme, title=title)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        compare: Run | None = None,
    ) -> Path:
        """Write the run as one HTML file that needs nothing else: animation, plots, robot, audit,
        how to repeat it. Returns its path.

        title: the heading, the name of the scenario or robot by default; compare: a second run of a
        robot with the same coordinates, shown as a ghost and by its differences. Raises RamifyError
        for a path that does not end in .html, and for a second run that cannot be compared.
        """
        return write_report(self, path_of(path), title, compare)

    def compare(self, other: Run) -> Comparison:
        """This run minus the other, of a robot with the same coordinates: the largest difference
        of each column, when it occurs, and the RMS; a table to print. Raises RamifyError for runs
        that cannot be compared.
        """
        return compared(self, other)

    def animate(
        self,
        path: str | os.PathLike[str],
        *,
        size: tuple[int, int] = (960, 540),
        fps: float | None = None,
        speed: float = 1.0,
        theme: Literal["light", "dark"] = "light",
        trail: str | None = None,
        progress: bool | None = None,
    ) -> Path:
        """Write the run as a film, .mp4 or .gif, drawn without a screen. Returns its path. Needs
        the extra ``ramify[video]``.

        size: width and height in pixels; fps: pictures per second, 30 (25 for a GIF) by default;
        speed: seconds of the run per second of film; trail: name of a point whose path is drawn,
        such as "flange of link6"; progress: a bar on stderr, where that is a terminal by default.
        Raises RamifyError for another suffix, a size or speed out of range, or a missing extra.
        """
        return animate(
            self,
            path_of(path),
            size=size,
            fps=fps,
            speed=speed,
            theme=theme,
            trail=trail,
            progress=progress,
        )

    # ---- how it shows ----

    def _facts(self) -> dict[str, str]:
        facts = {
            "robot": self.model.name,
            "time": f"{self.t[0]:.6g} … {self.t[-1]:.6g} s, {len(self)} rows",
            "degrees of freedom": str(degrees_of_freedom(self.model)),
            "status": self.status,
        }
        if (method := self.options.get("method")) is not None:
            facts["method"] = str(method)
        if "audit" in self.__dict__:  # where it is known: to show a result computes nothing
            facts["audit"] = self.audit.verdict
        return facts

    def __repr__(self) -> str:
        facts = self._facts()
        audit = [f"audit {facts['audit']}"] if "audit" in facts else []
        rest = ", ".join([facts["time"], freedom_text(self.model), self.status, *audit])
        return f"<ramify.Result {self.model.name!r}: {rest}>"

    def _repr_html_(self) -> str:
        played = player(self)  # its plots need the audit, so that the facts have it
        return scrolled(facts(self._facts())) + played


def as_result(make: Callable[P, Run]) -> Callable[P, Result]:
    """``make`` with a ``Result`` in place of the run that it returns or that its error carries."""

    @wraps(make)
    def make_result(*args: P.args, **options: P.kwargs) -> Result:
        try:
            return Result.of(make(*args, **options))
        except SimulationError as error:
            if isinstance(error.result, Run):
                error.result = Result.of(error.result)
            raise

    make_result.__annotations__ = {**make_result.__annotations__, "return": "Result"}
    return make_result


simulate = as_result(running.simulate)
