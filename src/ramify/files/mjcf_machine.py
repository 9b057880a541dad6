"""The machine of an MJCF robot, from MuJoCo's compiled arrays: elements of its joints, frames,
tendons, actuators, keyframes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ramify.core.errors import ModelError
from ramify.core.names import fresh, is_name
from ramify.files.import_report import ImportReport
from ramify.files.mjcf_geoms import frame_of
from ramify.files.mjcf_stops import stop_of
from ramify.model.answers import Attachment
from ramify.model.elements import NONE, Cubic, Element, Friction, Spring, Stop
from ramify.model.machine import (
    ANY,
    Activation,
    Actuator,
    Keyframe,
    Machine,
    Range,
    Tendon,
    dead_actuator,
)

_RATES: Final = (6, 3, 1, 1)  # of mjtJoint free, ball, slide, hinge
_JOINT, _IN_PARENT, _CRANK, _TENDON, _SITE = range(5)  # mjtTrn
_ACTIVATIONS: Final[tuple[Activation, ...]] = ("", "integrator", "filter", "filterexact")
_FLAGS: Final = (
    "gravity", "spring", "damper", "frictionloss", "limit", "equality", "actuation", "clampctrl",
    "contact", "filterparent", "refsafe",
)  # fmt: skip
_SEVERAL: Final = {
    "passive": {"spring", "damper"},
    "constraint": {"frictionloss", "limit", "equality", "contact"},
}
"""Flags that switch off several kinds of forces."""


def mjcf_joint_elements(m: Any, j: int, off: frozenset[str]) -> tuple[Element, ...]:
    """The elements of joint j, one per rate; () for an ideal joint. ``off``: kinds of forces that
    the file switches off.
    """
    kind, start, at = int(m.jnt_type[j]), int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
    stop = stop_of(m, j, "refsafe" not in off) if m.jnt_limited[j] else None
    out = []
    for i in range(start, start + _RATES[kind]):
        loss = float(m.dof_frictionloss[i])
        low, high = _range(m.jnt_actfrclimited, m.jnt_actfrcrange, j) if kind > 1 else ANY
        out.append(
            Element(
                float(m.dof_armature[i]) + _of_actuators(m, "joint", j, "actuator_armature"),
                _damping(m, i, j) if "damper" not in off else NONE,
                _spring(m, kind, j, at, i - start) if "spring" not in off else None,
                Friction(loss, loss) if loss and "frictionloss" not in off else None,
                stop or Stop(),
                high,
                cone=stop_range(m, j)[1]
                if kind == 1 and m.jnt_limited[j] and "limit" not in off
                else np.inf,
                lifts=bool(m.jnt_actgravcomp[j]),
                backward_effort=None if low == -high else 0.0 - low,
            )
        )
    return tuple(out) if any(element != Element() for element in out) else ()


def stop_range(m: Any, j: int) -> Range:
    """The limits of joint j: MuJoCo's stops push from ``margin`` before the end of the range on, as
    if they were there. The range itself where a margin leaves nothing of it.
    """
    low, high, margin = (float(x) for x in (*m.jnt_range[j], m.jnt_margin[j]))
    first = 0.0 if int(m.jnt_type[j]) == 1 else low + margin  # of a ball the angle from its rest
    return (first, high - margin) if first < high - margin else (low, high)


def _spring(m: Any, kind: int, j: int, at: int, k: int) -> Spring | None:
    law = _cubic(m, "jnt_stiffness", "jnt_stiffnesspoly", j)
    if not any(law):
        return None
    first = {0: (0, 3) if k < 3 else (3, 4), 1: (0, 4)}.get(kind, (0, 1))
    rest = m.qpos_spring[at + first[0] : at + sum(first)]
    return Spring(law, tuple(float(x) for x in rest))


def _damping(m: Any, i: int, j: int) -> Cubic:
    return _with_actuators(m, _cubic(m, "dof_damping", "dof_dampingpoly", i), "joint", j)


def _with_actuators(m: Any, law: Cubic, target: str, t: int) -> Cubic:
    """A damping with that of the actuators of a joint or tendon."""
    a = _of_actuators(m, target, t, "actuator_damping")
    b, c = (_of_actuators(m, target, t, "actuator_dampingpoly", k) for k in (0, 1))
    return law[0] + a, law[1] + b, law[2] + c


def _cubic(m: Any, first: str, rest: str, i: int) -> Cubic:
    more = np.ravel(getattr(m, rest)[i]) if hasattr(m, rest) else (0.0, 0.0)
    return float(np.ravel(getattr(m, first)[i])[0]), float(more[0]), float(more[1])


def _of_actuators(m: Any, target: str, t: int, what: str, k: int = 0) -> float:
    """What the actuators of a joint or tendon bring along, times the square of their gears."""
    given = getattr(m, what, None)
    if given is None:
        return 0.0
    kinds = (_JOINT, _IN_PARENT) if target == "joint" else (_TENDON,)
    return sum(
        float(np.ravel(given[i])[k]) * float(m.actuator_gear[i][0]) * float(m.actuator_gear[i][0])
        for i in range(len(m.actuator_trntype))
        if int(m.actuator_trntype[i]) in kinds and int(m.actuator_trnid[i][0]) == t
    )


def _range(limited: Any, ranges: Any, i: int) -> Range:
    return (float(ranges[i][0]), float(ranges[i][1])) if limited[i] else ANY


def switched_off(m: Any, bits: Any) -> frozenset[str]:
    """The kinds of forces that the options of a file disable."""
    found = set()
    for name in (*_FLAGS, *_SEVERAL):
        bit = getattr(bits, f"mjDSBL_{name.upper()}", None)
        if bit is not None and m.opt.disableflags & int(bit):
            found |= _SEVERAL.get(name, {name})
    return frozenset(found)


class MachineReader:
    """Frames, tendons, actuators and keyframes of a compiled model whose bodies and joints have
    names and places already.
    """

    def __init__(
        self,
        m: Any,
        joints: Sequence[str],
        attached: Mapping[int, Attachment],
        report: ImportReport,
        off: frozenset[str],
        links: Iterable[str],
    ) -> None:
        self.m, self.joints, self.report, self.off = m, joints, report, off
        self.attached = attached
        self.sites = self._names("site", m.nsite, links)
        self.tendon_names = self._names("tendon", m.ntendon)
        self.tendons_read: dict[int, str] = {}  # names by their numbers
        self.driving: list[int] = []  # actuators that give forces

    def _names(self, kind: str, number: int, body_names: Iterable[str] = ()) -> list[str]:
        taken = set(body_names)
        out = []
        for i in range(number):
            label = str(getattr(self.m, kind)(i).name)
            out.append(fresh(label if is_name(label) else f"{kind}{i}", taken))
            taken.add(out[-1])
            if label in body_names:
                self.report.note(f"{kind} {label!r}", f"a body has this name; it is {out[-1]!r}")
        return out

    def machine(self) -> Machine:
        frames = dict(self.frames())
        tendons = tuple(self.tendons())
        actuators = tuple(self.actuators())
        return Machine(frames, tendons, actuators, tuple(self.keyframes()))

    def frames(self) -> Iterator[tuple[str, Attachment]]:
        m = self.m
        for s, name in enumerate(self.sites):
            body, frame = self.attached[int(m.site_bodyid[s])]
            yield name, Attachment(body, frame @ frame_of(m.site_pos[s], m.site_quat[s]))

    def tendons(self) -> Iterator[Tendon]:
        m, off = self.m, self.off
        armatures, yields = (
            getattr(m, f"tendon_{what}", np.zeros(m.ntendon))
            for what in ("armature", "springyield")
        )
        for t, name in enumerate(self.tendon_names):
            who, path = f"tendon {name!r}", self._path(t)
            if path is None:
                self._leave_out(who, "it wraps around a geom, or moves nothing")
                continue
            armature = armatures[t] or _of_actuators(m, "tendon", t, "actuator_armature")
            for what, there in (
                ("limits", m.tendon_limited[t] and "limit" not in off),
                ("dry friction", m.tendon_frictionloss[t] and "frictionloss" not in off),
                ("armature", armature),
                ("plastic yield", np.any(yields[t])),
            ):
                if there:
                    self._leave_out(who, f"its {what}")
            stiffness = damping = NONE
            if "spring" not in off:
                stiffness = _cubic(m, "tendon_stiffness", "tendon_stiffnesspoly", t)
            if "damper" not in off:
                law = _cubic(m, "tendon_damping", "tendon_dampingpoly", t)
                damping = _with_actuators(m, law, "tendon", t)
            low, high = (float(x) for x in m.tendon_lengthspring[t])
            effort = _range(m.tendon_actfrclimited, m.tendon_actfrcrange, t)
            self.tendons_read[t] = name
            yield Tendon(name, *path, stiffness, damping, (low, high), effort)

    def _path(self, t: int) -> tuple[Any, Any] | None:
        """(joints, branches); None where it is neither linear nor straight."""
        m, start = self.m, int(self.m.tendon_adr[t])
        pieces = range(start, start + int(m.tendon_num[t]))
        kinds = {int(m.wrap_type[i]) for i in pieces}
        if kinds == {1}:
            over = [(int(m.wrap_objid[i]), float(m.wrap_prm[i])) for i in pieces if m.wrap_prm[i]]
            plain = all(self.joints[j] and int(m.jnt_type[j]) > 1 for j, _ in over)
            return (tuple((self.joints[j], x) for j, x in over), ()) if plain and over else None
        if not kinds <= {2, 3}:
            return None
        branches: list[tuple[float, tuple[str, ...]]] = [(1.0, ())]
        for i in pieces:
            if int(m.wrap_type[i]) == 2:
                branches.append((float(m.wrap_prm[i]), ()))
            else:
                divisor, names = branches[-1]
                branches[-1] = divisor, (*names, self.sites[int(m.wrap_objid[i])])
        found = tuple(b for b in branches if len(b[1]) > 1)
        return ((), found) if found else None

    def actuators(self) -> Iterator[Actuator]:
        """The actuators in MuJoCo's order; those of unknown kinds are there without a force."""
        names = self._names("actuator", len(self.m.actuator_trntype))
        for i, name in enumerate(names):
            why = self._unusual(i)
            if not why:
                try:
                    actuator = self._actuator(i, name)
                    if "clampctrl" in self.off:
                        actuator = replace(actuator, command=ANY)
                    if disabled := self._disabled(i):
                        actuator = replace(actuator, force=(0.0, 0.0))
                        self.report.note(f"actuator {name!r}", f"{disabled}: it gives no force")
                    self.driving.append(i)
                    yield actuator
                    continue
                except ModelError as error:
                    why = str(error)
            self._leave_out(f"actuator {name!r}", f"{why}; its commands keep their place")
            yield dead_actuator(name)
            for k in range(2, self._commands(i) + 1):
                yield dead_actuator(fresh(f"{name}_{k}", names))

    def _disabled(self, i: int) -> str:
        """What in the options of the file switches off an actuator; "" where nothing does."""
        if "actuation" in self.off:
            return "actuation is disabled"
        group, bits = int(self.m.actuator_group[i]), int(getattr(self.m.opt, "disableactuator", 0))
        return f"its group {group} is disabled" if 0 <= group < 31 and bits >> group & 1 else ""

    def _commands(self, i: int) -> int:
        """How many commands an actuator takes."""
        return int(np.ravel(getattr(self.m, "actuator_ctrlnum", np.ones(i + 1)))[i])

    def _unusual(self, i: int) -> str:
        """Why an actuator cannot be one of ours."""
        m, target = self.m, int(self.m.actuator_trnid[i][0])
        kind = int(m.actuator_trntype[i])
        delay = np.ravel(getattr(m, "actuator_delay", np.zeros(len(m.actuator_trntype))))[i]
        if m.nplugin and int(m.actuator_plugin[i]) >= 0:
            return "its force comes from a plugin"
        if int(m.actuator_gaintype[i]) > 1 or int(m.actuator_biastype[i]) > 1:
            return "its gain or bias is neither fixed nor affine (a muscle, PID …)"
        if int(m.actuator_dyntype[i]) > 3:
            return "its activation is neither an integrator nor a filter"
        if kind > _SITE or kind < 0:
            return "its transmission (adhesion and others)"
        if delay or self._commands(i) != 1:
            return "its delay, or several commands"
        if kind in (_JOINT, _IN_PARENT) and self.joints[target] == "":
            return "its joint is fixed here"
        if kind == _TENDON and target not in self.tendons_read:
            return "its tendon is left out"
        return ""

    def _actuator(self, i: int, name: str) -> Actuator:
        m, (target, other) = self.m, (int(x) for x in self.m.actuator_trnid[i])
        kind = int(m.actuator_trntype[i])
        gain, bias = (
            [float(x) for x in p[i][:3]] for p in (m.actuator_gainprm, m.actuator_biasprm)
        )
        if int(m.actuator_gaintype[i]) == 0:
            gain[1:] = [0.0, 0.0]
        if int(m.actuator_biastype[i]) == 0:
            bias = [0.0, 0.0, 0.0]
        activation = _ACTIVATIONS[int(m.actuator_dyntype[i])]
        where = {"site": self.sites[target]} if kind in (_CRANK, _SITE) else {}
        if kind in (_JOINT, _IN_PARENT):
            where = {"joint": self.joints[target]}
        elif kind == _TENDON:
            where = {"tendon": self.tendon_names[target]}
        if kind == _CRANK:
            where["slider"] = self.sites[other]
        elif kind == _SITE and other >= 0:
            where["reference"] = self.sites[other]
        return Actuator(
            name, **where,
            rod=float(m.actuator_cranklength[i]) if kind == _CRANK else 0.0,
            gear=tuple(float(x) for x in m.actuator_gear[i]),
            in_parent=kind == _IN_PARENT,
            gain=(gain[0], gain[1], gain[2]), bias=(bias[0], bias[1], bias[2]),
            command=_range(m.actuator_ctrllimited, m.actuator_ctrlrange, i),
            force=_range(m.actuator_forcelimited, m.actuator_forcerange, i),
            activation=activation,
            time=max(float(m.actuator_dynprm[i][0]), 1e-15) if activation else 0.0,
            activations=_range(m.actuator_actlimited, m.actuator_actrange, i),
            early=bool(m.actuator_actearly[i]),
            step=float(m.opt.timestep) if m.actuator_actearly[i] else 0.0,
        )  # fmt: skip

    def keyframes(self) -> Iterator[Keyframe]:
        m = self.m
        states = [int(m.actuator_actadr[i]) for i in self.driving]
        states = [at for at in states if at >= 0]
        for k, name in enumerate(self._names("key", m.nkey)):
            u, w = m.key_ctrl[k], m.key_act[k][states]
            q, v, u, w = (
                tuple(float(x) for x in row) for row in (m.key_qpos[k], m.key_qvel[k], u, w)
            )
            yield Keyframe(name, q, v, u, w, float(m.key_time[k]))

    def _leave_out(self, where: str, what: str) -> None:
        self.report.ignored(where, what, moves=True)
