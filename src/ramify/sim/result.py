"""What a simulation leaves behind: arrays over time with names and units, and all that is needed to repeat the run.

A result is data: times, states, accelerations, joint forces and work. Energy, momentum and the audit follow from them, once, when
they are asked for.
"""

from __future__ import annotations

import hashlib
import html
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from ramify.errors import ModelError, StateError
from ramify.model.frame import Array
from ramify.model.model import Model, Momentum

if TYPE_CHECKING:
    from ramify.contact.record import Contacts
    from ramify.motion import Motion
    from ramify.sim.audit import Audit
    from ramify.sim.closing import Loops

What = Literal["q", "v", "a", "tau", "energy", "audit", "phase", "contacts", "loops", "walk"]
"""The plots a result offers."""


class Work(NamedTuple):
    """J since the first row, each (T,): work of the joint forces (``actuator``, eq. C.2) and losses (``dissipated``, eq. C.3)."""

    actuator: Array
    dissipated: Array


class Energies(NamedTuple):
    """Energy over time, each (T,), in J: ``kinetic``, ``potential`` (zero at the world's origin) and their sum ``total``."""

    kinetic: Array
    potential: Array
    total: Array


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A run of T rows. Arrays are ``float64``, contiguous and read-only.

    t (T,) in s, increasing; q (T, nq) and v, a, tau (T, nv) in the model's order, ``tau`` being the joint forces that acted,
    limits applied; ``work`` as integrated with the state. ``options`` and ``stats`` are what the simulator was told and what it
    counted; ``status`` is "finished", "event: …", "interrupted" or "failed: …". ``desired`` is the motion asked for at the times t,
    where there was one, NaN in columns left free; ``contacts`` is what the contact points felt, where there was a ground; ``loops``
    are the gaps and multipliers of closed loops.
    ``recorded`` is the metadata of a run read from a file. Times and states must be finite; a force that is not known may be NaN.

    Raises StateError where an array has the wrong shape, is not finite, or where time does not increase.
    """

    model: Model
    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    work: Work
    options: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    status: str = "finished"
    desired: Motion | None = None
    contacts: Contacts | None = None
    loops: Loops | None = None
    recorded: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "t", _frozen("t", self.t, (np.shape(self.t)[0] if np.ndim(self.t) else 0,)))
        if not len(self.t):
            raise StateError("a result needs at least one time; t is empty or a single number")
        if not np.isfinite(self.t).all() or not (np.diff(self.t) > 0.0).all():
            raise StateError("t must be finite and increase from row to row")
        shapes = {"q": self.model.nq, "v": self.model.nv, "a": self.model.nv, "tau": self.model.nv}
        for name, size in shapes.items():
            put(self, name, _frozen(name, getattr(self, name), (len(self.t), size)))
        for name in ("q", "v"):
            self._check_finite(name)
        put(self, "work", Work(*(_frozen(f"work.{n}", x, (len(self.t),)) for n, x in zip(Work._fields, self.work, strict=True))))
        if self.contacts is not None and self.contacts.stored.shape != (len(self.t),):
            raise StateError(f"contacts has {self.contacts.stored.shape} rows; this result needs {(len(self.t),)}")
        put(self, "options", MappingProxyType(dict(self.options)))
        put(self, "stats", MappingProxyType(dict(self.stats)))
        if self.desired is not None:
            for name, size in (("q", self.model.nq), ("v", self.model.nv)):
                _frozen(f"desired.{name}", getattr(self.desired, name), (len(self.t), size))

    def _check_finite(self, name: str) -> None:
        values: Array = getattr(self, name)
        if not np.isfinite(values).all():
            row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
            where = f"{name}[{row}, {column}] ({self.columns[name][column]} at t = {self.t[row]:.6g} s)"
            raise StateError(f"{where} is {values[row, column]}; the rows of a result must be finite, end it before that one")

    # ---- names and units ----

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """A name per column of ``t``, ``q``, ``v``, ``a`` and ``tau``."""
        of = self.model.velocities
        loops = {"constraint": self.loops.names} if self.loops is not None else {}
        return MappingProxyType({"t": ("t",), "q": self.model.coordinates, "v": of, "a": of, "tau": of, **loops})

    @cached_property
    def units(self) -> Mapping[str, tuple[str, ...]]:
        """A unit per column of ``t``, ``q``, ``v``, ``a`` and ``tau``; entries of quaternions have the unit 1."""
        steps = [step for joint in self.model.joints for step in joint.steps]
        positions = tuple("1" if step.ball else step.unit for step in steps for _ in step.positions)
        rates = {suffix: tuple(step.unit + suffix for step in steps) for suffix in ("/s", "/s^2")}
        forces = tuple("N m" if step.unit == "rad" else "N" for step in steps)
        return MappingProxyType({"t": ("s",), "q": positions, "v": rates["/s"], "a": rates["/s^2"], "tau": forces})

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, name: str) -> Array:
        """q of a joint: (T,) where it has one coordinate, else (T, k); or of one coordinate, such as ``r["hip.y1"]``."""
        if not isinstance(name, str):
            raise ModelError(
                f"a result is indexed by the name of a joint or of a coordinate; got {name!r}. Rows are in r.q, r.v, r.tau"
            )
        if any(joint.name == name for joint in self.model.joints):
            found = self.q[:, self.model.joint_slice(name, of="q")]
            return found[:, 0] if found.shape[1] == 1 else found
        if name in self.model.coordinates:
            return self.q[:, self.model.coordinates.index(name)]
        some = ", ".join(self.model.coordinates[:20])
        raise ModelError(f"{self.model.name} has no joint or coordinate {name!r}; its coordinates are {some}")

    # ---- what follows from the arrays ----

    @cached_property
    def energy(self) -> Energies:
        """Energies(kinetic, potential, total) at every row, in J."""
        kinetic, potential = (_fixed(x) for x in self.model.energy(self.q, self.v))
        return Energies(kinetic, potential, _fixed(kinetic + potential))

    @cached_property
    def momentum(self) -> Momentum:
        """Momentum(linear, angular) at every row, each (T, 3), world axes; angular about the centre of mass."""
        return Momentum(*(_fixed(x) for x in self.model.momentum(self.q, self.v)))

    @cached_property
    def audit(self) -> Audit:
        """The audit of appendix C at the tolerance that the run's options give; ``ramify.sim.audit.audit`` takes any other."""
        from ramify.sim.audit import audit

        return audit(self)

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """Robot, its hash, versions, options, statistics and status: plain data, enough to repeat the run."""
        if self.recorded is not None:
            return MappingProxyType(dict(self.recorded))
        from ramify.io.yaml_out import to_yaml

        found = {
            "robot": self.model.name,
            "robot_sha256": hashlib.sha256(to_yaml(self.model).encode()).hexdigest(),
            "versions": versions(),
            "platform": f"{platform.system()} {platform.machine()}",
            "status": self.status,
            "options": plain(self.options),
            "stats": plain(self.stats),
        }
        if self.contacts is not None:
            found["contacts"] = {name: plain(getattr(self.contacts, name)) for name in ("names", "bodies", "up")}
        return MappingProxyType(found)

    # ---- files, tables and plots ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run as a NetCDF-3 file that stands alone, whole or not at all. Raises SimulationError where that fails."""
        from ramify.sim.store import save

        save(self, path)

    @staticmethod
    def open(path: str | os.PathLike[str], model: Model | None = None) -> Result:
        """The run in a file that ``save`` wrote, bit for bit. Raises SimulationError for any other file, and for a damaged one.

        model: the robot, instead of the one in the file; it must be the same to the last bit.
        """
        from ramify.sim.store import open_result

        return open_result(path, model)

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` over time, coordinate and velocity, labelled by name. Needs the extra ``ramify[data]``."""
        from ramify.sim.export import to_xarray

        return to_xarray(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` over time, columns (quantity, name). Needs the extra ``ramify[data]``."""
        from ramify.sim.export import to_pandas

        return to_pandas(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table with a header of names and units; numbers read back to the last bit."""
        from ramify.sim.export import to_csv

        to_csv(self, path)

    def to_redysim(self, directory: str | os.PathLike[str]) -> None:
        """Write statevar.dat, timevar.dat, tor.dat, envar.dat and mtvar.dat as ReDySim's simulations do."""
        from ramify.sim.export import to_redysim

        to_redysim(self, directory)

    def plot(
        self,
        what: What = "q",
        *,
        joints: Sequence[str] | None = None,
        theme: Literal["light", "dark"] = "light",
        title: str | None = None,
    ) -> Any:
        """A Matplotlib figure: "q", "v", "a", "tau", "energy", "audit" over time, "phase" (v over q), "contacts", "loops", "walk".

        joints: names of the joints to draw, all unless told. Where a motion was desired, it is drawn beside what was simulated.
        """
        from ramify.view.run_plots import plot

        return plot(self, what, joints=joints, theme=theme, title=title)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the run as one HTML file that needs nothing else: animation, plots, robot, audit, how to repeat it. Its path.

        title: the heading, the name of the scenario or robot unless told. Raises RamifyError for a name that is no HTML file's.
        """
        from ramify.view.report import write_report

        return write_report(self, Path(path), title)

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
        """Write the run as a film, .mp4 or .gif, drawn without a screen. Its path. Needs the extra ``ramify[video]``.

        size: width and height in pixels; fps: pictures per second, 30 (25 for a GIF) unless told; speed: seconds of the run per
        second of film; trail: name of a point whose path is drawn, such as "flange of link6"; progress: a bar on stderr, where
        that is a terminal unless told. Raises RamifyError for another suffix, a size or speed that will not do, or a missing extra.
        """
        from ramify.view.film import animate

        return animate(self, Path(path), size=size, fps=fps, speed=speed, theme=theme, trail=trail, progress=progress)

    # ---- how it shows ----

    def _facts(self) -> dict[str, str]:
        span = f"{self.t[0]:.6g} … {self.t[-1]:.6g} s, {len(self)} rows"
        facts = {"robot": self.model.name, "time": span, "degrees of freedom": str(self.model.nv), "status": self.status}
        method = self.options.get("method")
        if method is not None:
            facts["method"] = str(method)
        if "audit" in self.__dict__:  # only where it is there already: to show a result computes nothing
            facts["audit"] = self.audit.verdict
        return facts

    def __repr__(self) -> str:
        facts = self._facts()
        audit = [f"audit {facts['audit']}"] if "audit" in facts else []
        rest = ", ".join([facts["time"], f"{self.model.nv} degrees of freedom", self.status, *audit])
        return f"<ramify.Result {self.model.name!r}: {rest}>"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self._facts().items())
        return f"<table>{''.join(rows)}</table>"


_PACKAGES: Final[tuple[str, ...]] = ("numpy", "scipy", "llvmlite")


def versions() -> dict[str, str]:
    """Versions of ramify, Python and, where they are loaded, of the libraries that computed."""
    import ramify

    loaded: dict[str, str] = {name: str(sys.modules[name].__version__) for name in _PACKAGES if name in sys.modules}
    return {"ramify": ramify.__version__, "python": platform.python_version(), **loaded}


def plain(value: Any) -> Any:
    """A value as JSON can hold it: arrays become lists, numbers that are not finite and anything unknown become text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def _frozen(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """A read-only copy of the wanted shape."""
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise StateError(f"{name} must be an array of real numbers; {error}") from None
    if array.shape != shape:
        raise StateError(f"{name} has shape {array.shape}; this result needs {shape}")
    return _fixed(array)


def _fixed(value: Any) -> Array:
    array = np.asarray(value, dtype=np.float64)
    array.flags.writeable = False
    return array
