"""The record of a simulation: arrays over time with names and units, and all that is needed to
repeat the run.

A result is data: times, states, accelerations, joint forces and work. Energy, momentum and the
audit follow from them and are computed once, on demand.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from ramify.contact.contact_record import Contacts
from ramify.core.arrays import Array
from ramify.core.cached import cached_property
from ramify.core.errors import ModelError, RamifyError, StateError
from ramify.core.messages import shown
from ramify.core.version import __version__
from ramify.drives.machine_forces import Passive, passive_forces, passive_text
from ramify.files.robot_writer import to_yaml
from ramify.kernels.queries import energy, momentum
from ramify.loops.loop_record import Loops
from ramify.model.answers import Momentum
from ramify.model.robot import Robot
from ramify.model.units import robot_units
from ramify.motion.trajectory import Motion
from ramify.plant.pushes import AppliedWrenches
from ramify.runs.energy_balance import EnergyBalance
from ramify.runs.limits_reached import Reached, limits_reached


class Work(NamedTuple):
    """J since the first row, each (T,): work of the joint forces (``actuator``, eq. C.2) and losses
    (``dissipated``, eq. C.3).
    """

    actuator: Array
    dissipated: Array


class Energies(NamedTuple):
    """Energy over time, each (T,), in J: ``kinetic``, ``potential`` (zero at the world's origin)
    and their sum ``total``.
    """

    kinetic: Array
    potential: Array
    total: Array


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A run of T rows. Arrays are ``float64``, contiguous and read-only.

    t (T,) in s, increasing; q (T, nq) and v, a, tau (T, nv) in the model's order, ``tau`` being the
    joint forces that acted, limits applied; ``work`` as integrated with the state. ``options`` and
    ``stats`` are the options of the simulator and what it counted; ``status`` is "finished",
    "event: …", "interrupted" or "failed: …". ``desired`` is the desired motion at the times t,
    where there was one, NaN in columns left free; ``contacts`` are the forces at the contact
    points, where there was a ground; ``loops`` are the gaps and multipliers of closed loops.
    ``recorded`` is the metadata of a run read from a file; ``bristles`` (T, n) are the deflections
    of LuGre friction, where a joint has it; ``wrenches`` are the external wrenches that acted and
    their work; ``drive_work`` (T, nv) is the work of each single joint force, J since the first
    row, integrated with the state: its rows add up to ``work.actuator``. It is None where no force
    acted, and in files of the first releases. ``scheme_work`` (T,) is the energy that steps of hard
    contact themselves have added, J since the first row. Times and states must be finite; an
    unknown force may be NaN.

    Raises StateError where an array has the wrong shape, is not finite, or where time does not
    increase.
    """

    model: Robot
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
    bristles: Array | None = None
    wrenches: AppliedWrenches | None = None
    drive_work: Array | None = None
    scheme_work: Array | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "t", _frozen("t", self.t, (np.shape(self.t)[0] if np.ndim(self.t) else 0,)))
        if not len(self.t):
            raise StateError("a result needs at least one time; t is empty or a single number")
        if not np.isfinite(self.t).all() or not (np.diff(self.t) > 0.0).all():
            raise StateError("t must be finite and increase from row to row")
        sizes = {"q": self.model.nq, "v": self.model.nv, "a": self.model.nv, "tau": self.model.nv}
        if self.bristles is not None:
            sizes["bristles"] = len(self.columns["bristles"])
        if self.drive_work is not None:
            sizes["drive_work"] = self.model.nv
        if self.scheme_work is not None:
            put(self, "scheme_work", _frozen("scheme_work", self.scheme_work, (len(self.t),)))
        for name, size in sizes.items():
            put(self, name, _frozen(name, getattr(self, name), (len(self.t), size)))
        for name in ("q", "v"):
            self._check_finite(name)
        works = zip(Work._fields, self.work, strict=True)
        put(self, "work", Work(*(_frozen(f"work.{n}", x, (len(self.t),)) for n, x in works)))
        for name, over_time in (
            ("contacts", None if self.contacts is None else self.contacts.stored),
            ("wrenches", None if self.wrenches is None else self.wrenches.work),
        ):
            if over_time is not None and over_time.shape != (len(self.t),):
                raise StateError(
                    f"{name} has {over_time.shape} rows; this result needs {(len(self.t),)}"
                )
        put(self, "options", MappingProxyType(dict(self.options)))
        put(self, "stats", MappingProxyType(dict(self.stats)))
        if self.desired is not None:
            for name, size in (("q", self.model.nq), ("v", self.model.nv)):
                _frozen(f"desired.{name}", getattr(self.desired, name), (len(self.t), size))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles contain the run, not what was computed from it."""
        arguments = (getattr(self, f.name) for f in fields(self))
        plain_ones = (dict(x) if isinstance(x, MappingProxyType) else x for x in arguments)
        return type(self), tuple(plain_ones)

    def _check_finite(self, name: str) -> None:
        values: Array = getattr(self, name)
        if not np.isfinite(values).all():
            row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
            raise StateError(
                f"{name}[{row}, {column}] ({self.columns[name][column]} at t = {self.t[row]:.6g} "
                f"s) is {values[row, column]}; the rows of a result must be finite, end it before "
                "that one"
            )

    # ---- names and units ----

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """A name per column of ``t``, ``q``, ``v``, ``a`` and ``tau``."""
        of = self.model.velocities
        more = {"constraint": self.loops.names} if self.loops is not None else {}
        if self.bristles is not None:
            more["bristles"] = tuple(of[j] for j in passive_text(self.model).bristles)
        return MappingProxyType(
            {"t": ("t",), "q": self.model.coordinates, "v": of, "a": of, "tau": of, **more}
        )

    @cached_property
    def units(self) -> Mapping[str, tuple[str, ...]]:
        """A unit per column of ``t``, ``q``, ``v``, ``a`` and ``tau``; entries of quaternions have
        the unit 1.
        """
        return robot_units(self.model)

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, name: str) -> Array:
        """q of a joint: (T,) where it has one coordinate, else (T, k); or of one coordinate, such
        as ``r["hip.y1"]``.
        """
        if not isinstance(name, str):
            raise ModelError(
                f"a result is indexed by the name of a joint or of a coordinate; got {name!r}. "
                "Rows are in r.q, r.v, r.tau"
            )
        if any(joint.name == name for joint in self.model.joints):
            columns = self.q[:, self.model.joint_slice(name, of="q")]
            return columns[:, 0] if columns.shape[1] == 1 else columns
        if name in self.model.coordinates:
            return self.q[:, self.model.coordinates.index(name)]
        some = ", ".join(self.model.coordinates[:20])
        raise ModelError(
            f"{self.model.name} has no joint or coordinate {name!r}; its coordinates are {some}"
        )

    # ---- what follows from the arrays ----

    @cached_property
    def energy(self) -> Energies:
        """Energies(kinetic, potential, total) at every row, in J; what springs, stops and tendons
        store is potential energy, too.
        """
        kinetic, potential = (_fixed(x) for x in energy(self.model, self.q, self.v))
        for stored in self.passive.stored.values():
            potential = _fixed(potential + stored)
        return Energies(kinetic, potential, _fixed(kinetic + potential))

    @cached_property
    def energy_balance(self) -> EnergyBalance:
        """The energy at every row and what changed it, in J; its ``error`` is that of the audit."""
        return energy_balance(self, self.energy.kinetic, self.energy.potential)

    @cached_property
    def passive(self) -> Passive:
        """Passive joint forces of the machine that acted, in all and by part: see
        ``Model.passive_forces``.
        """
        stops, rest = (bool(self.options.get(key, False)) for key in ("stops", "passive"))
        stops = stops and not self.hard  # whose stops store nothing
        return passive_forces(self.model, self.q, self.v, stops, rest, self.bristles)

    @property
    def hard(self) -> bool:
        """Whether contacts, stops and dry friction were hard."""
        return isinstance(self.options.get("contact"), Mapping)

    @cached_property
    def limits_reached(self) -> tuple[Reached, ...]:
        """Stops, efforts, rated speeds and force ranges of actuators that were reached, with joint
        or actuator, time and how far.
        """
        stops = bool(self.options.get("stops", True))
        reached = limits_reached(self.model, self.t, self.q, self.v, self.tau, stops)
        return (*reached, *(Reached(*row) for row in self.stats.get("saturated", ())))

    @cached_property
    def momentum(self) -> Momentum:
        """Momentum(linear, angular) at every row, each (T, 3), world axes; angular about the centre
        of mass.
        """
        return Momentum(*(_fixed(x) for x in momentum(self.model, self.q, self.v)))

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """Robot, its hash, versions, options, statistics and status: plain data, enough to repeat
        the run.
        """
        if self.recorded is not None:
            return MappingProxyType(dict(self.recorded))
        entries = {
            "robot": self.model.name,
            "robot_sha256": hashlib.sha256(to_yaml(self.model).encode()).hexdigest(),
            "versions": library_versions(),
            "platform": f"{platform.system()} {platform.machine()}",
            "status": self.status,
            "options": json_value(self.options),
            "stats": json_value(self.stats),
        }
        if self.contacts is not None:
            entries["contacts"] = {
                name: json_value(getattr(self.contacts, name)) for name in ("names", "bodies", "up")
            }
            if self.contacts.others:
                entries["contacts"]["others"] = json_value(self.contacts.others)
        if self.wrenches is not None:
            entries["wrenches"] = {"names": json_value(self.wrenches.names)}
        return MappingProxyType(entries)


def energy_balance(run: Run, kinetic: Array, potential: Array) -> EnergyBalance:
    """The balance of a run of these energies (T,). The work is NaN where forces are unknown,
    because then nothing can be balanced.
    """
    none = np.zeros(len(run))
    finite = np.isfinite(run.tau).all(axis=1)
    return EnergyBalance(
        kinetic, potential, none if run.contacts is None else run.contacts.stored,
        np.where(finite, run.work.actuator, np.nan),
        none if run.wrenches is None else run.wrenches.work, run.work.dissipated,
        none if run.scheme_work is None else run.scheme_work,
    )  # fmt: skip


_PACKAGES: Final[tuple[str, ...]] = ("numpy", "scipy", "llvmlite")


def library_versions() -> dict[str, str]:
    """Versions of ramify, Python and, where they are loaded, of the libraries that computed."""
    loaded = [name for name in _PACKAGES if name in sys.modules]
    libraries = {name: str(sys.modules[name].__version__) for name in loaded}
    return {"ramify": __version__, "python": platform.python_version(), **libraries}


def json_value(value: Any) -> Any:
    """A value as JSON can hold it: arrays become lists, numbers that are not finite and anything
    unknown become text.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, np.ndarray):
        return json_value(value.tolist())
    if isinstance(value, np.generic):
        return json_value(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
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


def the_run(value: object) -> None:
    """Refuse what is not a run."""
    if not isinstance(value, Run):
        raise RamifyError(f"give a run, such as rf.simulate returns; got {shown(value)}")
