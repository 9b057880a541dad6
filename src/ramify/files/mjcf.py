"""Robots from MJCF files, read by MuJoCo's own parser (the extra ``ramify[mjcf]``), with a report
of what was ignored or assumed.

q and v are MuJoCo's qpos and qvel, entry by entry. A body with several joints becomes a run of
bodies, massless but for the last. Springs, damping, friction, limits, tendons, actuators, sites and
keyframes come along (:mod:`ramify.files.mjcf_machine`); what does not (contacts, fluid, muscles)
is named in the report.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np

from ramify.core.errors import ModelError
from ramify.core.names import NAME, fresh, is_name
from ramify.files.import_report import ImportReport
from ramify.files.mjcf_gate import check_mjcf
from ramify.files.mjcf_geoms import Geoms, frame_of
from ramify.files.mjcf_loops import equalities
from ramify.files.mjcf_machine import MachineReader, joint_elements, switched_off
from ramify.files.xml_reader import shown, some
from ramify.model.answers import Attachment
from ramify.model.build import LinkSpec, build, point_of
from ramify.model.frame import Frame, from_quaternion, rotation_about
from ramify.model.joint import Joint
from ramify.model.machine import Machine
from ramify.model.robot import Robot

BASES: Final = ("fixed", "free", "free_euler")
_FREE, _BALL, _SLIDE, _HINGE = range(4)  # mjtJoint
_MOST_BODIES: Final = 20_000
_HUGE: Final = 1e12
"""More kilograms, metres or kg m^2 than a robot has."""


def read_mjcf(path: str | os.PathLike[str], base: str | None = None) -> Robot:
    """A robot from an MJCF file, its root as the file has it unless ``base`` says otherwise.

    base: "fixed" welds a free root to the world where the file has it, "free" puts a root that
    stands still on a free joint, "free_euler" puts either on Euler angles. What was ignored or
    assumed is in ``model.metadata["report"]``. Raises ModelError where the file is refused, or
    MuJoCo is not installed.
    """
    if base is not None and base not in BASES:
        hint = "; give the body two slides and a hinge in the file" if base == "planar" else ""
        raise ModelError(f"base {base!r} must be one of {', '.join(BASES)}{hint}")
    file = os.fspath(path)
    check_mjcf(path)
    try:
        import mujoco
    except ImportError:
        raise ModelError(
            f"{file}: MJCF files are read by MuJoCo, which is not installed: pip install "
            "'ramify[mjcf]'"
        ) from None
    report = ImportReport(file)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            spec = mujoco.MjSpec.from_file(file)
            drop_pictures(spec, mujoco)
            compiled = spec.compile()
    except Exception as error:  # MuJoCo raises ValueError, FatalError and others for a bad file
        raise ModelError(
            f"{file}: MuJoCo refuses it: {' '.join(str(error).split())[:500]}"
        ) from None
    if compiled.nbody > _MOST_BODIES:
        raise ModelError(f"{file}: {compiled.nbody} bodies; at most {_MOST_BODIES}")
    for warning in warned:
        report.note("MuJoCo", " ".join(str(warning.message).split())[:500])
    weightless = bool(compiled.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY))
    name, off = spec.modelname or PurePath(file).stem, switched_off(compiled, mujoco.mjtDisableBit)
    reader = _MjcfReader(compiled, name, file, weightless, report, off, spec.meshdir or "")
    made = reader.model(base)
    report.warn()
    return made


def drop_pictures(spec: Any, mujoco: Any) -> None:
    """Have textures of one colour and flat height fields, so that no picture is opened or made."""
    for texture in spec.textures:
        flat = texture.type == mujoco.mjtTexture.mjTEXTURE_2D
        texture.file, texture.builtin = "", mujoco.mjtBuiltin.mjBUILTIN_FLAT
        texture.cubefiles, texture.content_type, texture.nchannel = [""] * 6, "", 3
        texture.width, texture.height = 1, 1 if flat else 6
    for field in spec.hfields:
        field.file, field.content_type, field.userdata = "", "", [0.0] * 4
        field.nrow = field.ncol = 2


class _MjcfReader:
    """Reads the arrays of a compiled model (mjModel)."""

    def __init__(
        self,
        compiled: Any,
        name: str,
        file: str,
        weightless: bool,
        report: ImportReport,
        off: frozenset[str],
        meshes: str,
    ) -> None:
        self.m, self.name, self.file, self.weightless = compiled, name, file, weightless
        self.report, self.off = report, off
        self.bodies = _unique([self.named("body", b) or f"body{b}" for b in range(compiled.nbody)])
        of = compiled.jnt_bodyid
        self.joints = _unique(
            [self.named("jnt", j) or f"{self.bodies[of[j]]}_joint" for j in range(compiled.njnt)]
        )
        self.taken = {*self.bodies, *self.joints}
        self.geoms = Geoms(compiled, Path(file).parent, meshes)

    def named(self, kind: str, index: int) -> str:
        return str(getattr(self.m, kind)(index).name)

    def model(self, base: str | None) -> Robot:
        self.check_numbers()
        specs = [spec for b in range(1, self.m.nbody) for spec in self.body(b)]
        specs = self.with_base(specs, base)
        if all(spec.joint.kind == "fixed" for spec in specs):
            raise ModelError(
                f"{self.file}: no body moves; give one a joint, or a robot with a fixed base "
                'base="free"'
            )
        for name in (self.name, *(name for spec in specs for name in (spec.name, spec.joint.name))):
            if not is_name(name):
                raise ModelError(
                    f"{self.file}: {shown(name)} is the name of a model, body or joint; {NAME}"
                )
        self.remarks()
        notes = {
            "source": f"MJCF file {PurePath(self.file).name}",
            "report": self.report,
            "meshes": {self.bodies[b]: tuple(found) for b, found in self.geoms.meshes.items()},
            "folder": os.path.dirname(os.path.abspath(self.file)),
        }
        closed = "equality" not in self.off
        loops = equalities(self.m, self.bodies, self.joints, self.report) if closed else []
        try:
            gravity = [0.0 if self.weightless else float(g) for g in self.m.opt.gravity]
            made = build(self.name, specs, gravity, None, notes, loops)
            return replace(made, machine=self.machine(made))
        except ModelError as error:
            raise ModelError(f"{self.file}: {error}") from None

    def machine(self, robot: Robot) -> Machine:
        """Frames, tendons, actuators, and keyframes where q is still MuJoCo's."""
        m, moving = self.m, {joint.name for joint in robot.joints}
        joints = [name if name in moving else "" for name in self.joints]
        rates = {
            j: name
            for j, name in enumerate(joints)
            if name and int(m.jnt_type[j]) in (_SLIDE, _HINGE)
        }
        attached = {b: robot.attached[self.bodies[b]] for b in range(1, m.nbody)}
        attached[0] = Attachment(-1, Frame())
        found = MachineReader(m, joints, rates, attached, self.report, robot.attached).machine(
            self.off
        )
        return found if robot.nq == m.nq else replace(found, keyframes=())

    def check_numbers(self) -> None:
        """Refuse what the compiler has let pass: numbers that are not finite or beyond any robot,
        rotations that are none.
        """
        m = self.m
        for what, names, arrays in (
            (
                "body",
                self.bodies,
                ("body_pos", "body_quat", "body_mass", "body_inertia", "body_ipos", "body_iquat"),
            ),
            ("joint", self.joints, ("jnt_pos", "jnt_axis", "jnt_range")),
            ("geom", [], ("geom_pos", "geom_quat", "geom_size")),
            ("coordinate", [], ("qpos0",)),
            ("equality", [], ("eq_data",)),
            ("gravity", [], ("gravity",)),
        ):
            for array in arrays:
                values = np.asarray(
                    getattr(m.opt if array == "gravity" else m, array), dtype=np.float64
                )
                rows = np.atleast_2d(values.T).T
                sound = np.logical_and.reduce(np.abs(rows) < _HUGE, axis=1)  # False for NaN, too
                if array.endswith("quat"):
                    sound[sound] = np.abs((rows[sound] ** 2).sum(axis=1) - 1.0) < 1e-6
                if not sound.all():
                    i = int(np.flatnonzero(~sound)[0])
                    name = repr(names[i]) if names else str(i)
                    row = rows[i].tolist()
                    given = f"{array.partition('_')[2] or array} {row if row[1:] else row[0]}"
                    must = "a quaternion, " if array.endswith("quat") else ""
                    raise ModelError(
                        f"{self.file}: {what} {name}: {given} must be {must}finite and below "
                        f"{_HUGE:g}"
                    )

    # ---- bodies and joints ----

    def body(self, b: int) -> Iterator[LinkSpec]:
        """A body on its joints, in MuJoCo's order: all but the last joint carry a massless body."""
        m, name = self.m, self.bodies[b]
        parent = self.bodies[m.body_parentid[b]] if m.body_parentid[b] else None
        frame = frame_of(m.body_pos[b], m.body_quat[b])
        first, number = int(m.body_jntadr[b]), int(m.body_jntnum[b])
        joints = [
            self.joint(j, frame if j == first else Frame()) for j in range(first, first + number)
        ]
        for joint in joints[:-1]:
            between = self.fresh(f"{name}/{joint.name}")
            yield LinkSpec(between, parent, joint)
            parent = between
        last = joints[-1] if joints else Joint(self.fresh(f"{name}_fixed"), "fixed", frame)
        seat = from_quaternion(*(float(x) for x in m.body_iquat[b]))
        inertia = seat @ np.diag(m.body_inertia[b]) @ seat.T
        yield LinkSpec(
            name,
            parent,
            last,
            float(m.body_mass[b]),
            np.array(m.body_ipos[b]),
            0.5 * (inertia + inertia.T),
            self.geoms.shapes(b),
            lift=(
                float(m.body_gravcomp[b] * m.body_mass[b]),
                point_of(m.body_ipos[b] if m.body_gravcomp[b] else np.zeros(3)),
            ),
        )

    def joint(self, j: int, frame: Frame) -> Joint:
        """A joint that turns or slides about its anchor; q is qpos, so the body stands as drawn at
        qpos0.
        """
        m, kind = self.m, int(self.m.jnt_type[j])
        start = float(m.qpos0[m.jnt_qposadr[j]])
        anchor, own = Frame(position=m.jnt_pos[j]), joint_elements(m, j, self.off)
        if kind == _FREE:
            return Joint(self.joints[j], "free", actuated=False, elements=own)
        if kind == _BALL:
            return Joint(
                self.joints[j],
                "ball",
                frame @ anchor,
                anchor.inverse(),
                actuated=self.actuated(j),
                elements=own,
            )
        axis = np.array(m.jnt_axis[j])
        back = (
            Frame(rotation_about(axis, -start)) if kind == _HINGE else Frame(position=-start * axis)
        )
        limited = m.jnt_limited[j] and "limit" not in self.off
        limits = ((float(m.jnt_range[j][0]), float(m.jnt_range[j][1])),) if limited else ()
        return Joint(
            self.joints[j],
            "revolute" if kind == _HINGE else "prismatic",
            frame @ anchor @ back,
            anchor.inverse(),
            (float(axis[0]), float(axis[1]), float(axis[2])),
            limits=limits,
            actuated=self.actuated(j),
            elements=own,
        )

    def actuated(self, j: int) -> bool:
        """Whether an actuator drives the joint; where some act otherwise than on joints, or none is
        given, all count as driven.
        """
        kinds, targets = self.m.actuator_trntype, self.m.actuator_trnid
        if not len(kinds) or any(
            int(kind) > 1 for kind in kinds
        ):  # mjTRN_JOINT, mjTRN_JOINTINPARENT
            return True
        return any(int(target[0]) == j for target in targets)

    def fresh(self, name: str) -> str:
        """A name that is not taken."""
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    def with_base(self, specs: list[LinkSpec], base: str | None) -> list[LinkSpec]:
        """The root on another base: free roots if there are some, else the one that stands
        still.
        """
        if base is None:
            return specs
        roots = [
            i
            for i, spec in enumerate(specs)
            if spec.parent is None and spec.joint.kind in ("free", "fixed")
        ]
        chosen = [i for i in roots if specs[i].joint.kind == "free"] or (
            [] if base == "fixed" else roots
        )
        if base != "fixed" and (
            not chosen or (len(chosen) > 1 and specs[chosen[0]].joint.kind == "fixed")
        ):
            raise ModelError(
                f"{self.file}: base={base!r} needs one body that is free or fixed to the "
                f"world; there are {len(roots)}"
            )
        for i in chosen:
            joint = specs[i].joint
            name = joint.name if joint.kind == "free" else self.fresh("root_joint")
            b = self.bodies.index(specs[i].name)
            frame = (
                frame_of(self.m.body_pos[b], self.m.body_quat[b]) if base == "fixed" else Frame()
            )
            specs[i] = replace(specs[i], joint=Joint(name, base, frame, actuated=False))
        return specs

    # ---- what is left out ----

    def remarks(self) -> None:
        say, m = self.report, self.m
        yields = getattr(m, "jnt_springyield", np.zeros(m.njnt))
        plastic = [self.joints[j] for j in range(m.njnt) if np.any(yields[j])]
        if plastic:
            say.ignored("joints", f"the plastic yield of springs: {some(plastic)}", moves=True)
        if self.off:
            say.note("option", f"switched off by the file: {', '.join(sorted(self.off))}")
        touching = sum(1 for g in range(m.ngeom) if m.geom_contype[g] or m.geom_conaffinity[g])
        if touching > 1 or m.npair:
            further = [
                f"{n} {what}" for n, what in ((m.npair, "pairs"), (m.nexclude, "exclusions")) if n
            ]
            say.ignored(
                "contacts", ", ".join([f"between {touching} geoms", *further]), moves=bool(m.npair)
            )
        if m.opt.density or m.opt.viscosity or np.any(m.opt.wind):
            say.ignored(
                "option", "the fluid around the robot (density, viscosity, wind)", moves=True
            )
        if m.body_geomnum[0]:
            say.ignored("worldbody", f"{m.body_geomnum[0]} geoms of the surroundings")
        if self.geoms.dropped:
            listed = ", ".join(
                f"{kind} × {n}" if n > 1 else kind for kind, n in self.geoms.dropped.items()
            )
            say.ignored(
                "geoms", f"shapes that are not drawn: {listed} (their mass counts as the file says)"
            )
        for what in ("flex", "skin", "plugin", "sensor"):
            if number := int(getattr(m, f"n{what}")):
                say.ignored(f"{what}s", f"{number} of them", moves=what in ("flex", "plugin"))
        self.assumed_still()

    def assumed_still(self) -> None:
        m = self.m
        mocap = [self.bodies[b] for b in range(m.nbody) if m.body_mocapid[b] >= 0]
        if mocap:
            self.report.assumed("bodies", f"moved by hand (mocap), so fixed here: {some(mocap)}")
        still = sum(float(m.body_mass[b]) for b in range(1, m.nbody) if m.body_weldid[b] == 0)
        if still:
            self.report.note("bodies", f"{still:g} kg are fixed to the world and do not move")


def _unique(names: list[str]) -> list[str]:
    """The names, with a number at those that come again."""
    seen: set[str] = set(names)
    used: set[str] = set()
    out = []
    for name in names:
        if name in used:
            name = next(
                n for n in (f"{name}{i}" for i in count(2)) if n not in seen and n not in used
            )
        used.add(name)
        out.append(name)
    return out
