"""Robots from MJCF files, read by MuJoCo's own parser (the extra ``ramify[mjcf]``), with a report
of what was ignored or assumed.

q and v are MuJoCo's qpos and qvel, entry by entry. A body with several joints becomes a run of
bodies, massless but for the last. Springs, damping, friction, limits, tendons, actuators, sites and
keyframes come along (:mod:`ramify.files.mjcf_machine`), and so do geoms that collide
(:mod:`ramify.files.mjcf_collisions`); what does not (fluid, muscles) is named in the report.
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

from ramify.core.bounds import LARGEST
from ramify.core.errors import ModelError
from ramify.core.names import NAME, fresh, is_name
from ramify.files.import_report import ImportReport, counted, without_contact
from ramify.files.mjcf_collisions import CollisionReader
from ramify.files.mjcf_elements import MJCF
from ramify.files.mjcf_gate import check_mjcf
from ramify.files.mjcf_geoms import Geoms, frame_of
from ramify.files.mjcf_loops import equalities
from ramify.files.mjcf_machine import MachineReader, mjcf_joint_elements, stop_range, switched_off
from ramify.files.mjcf_stops import stop_of
from ramify.files.xml_reader import quoted_text, some, tensor_in_outer_frame
from ramify.model.answers import Attachment
from ramify.model.build import LinkSpec, build, point_of
from ramify.model.frame import Frame, rotation_about
from ramify.model.joint import Joint
from ramify.model.robot import Robot

BASES: Final = ("fixed", "free", "free_euler")
_FREE, _BALL, _, _HINGE = range(4)  # mjtJoint
_MOST_BODIES: Final = 20_000
_CHECKED: Final = {
    "body": ("body_pos", "body_quat", "body_mass", "body_inertia", "body_ipos", "body_iquat"),
    "joint": ("jnt_pos", "jnt_axis", "jnt_range"),
    "geom": ("geom_pos", "geom_quat", "geom_size"),
    "coordinate": ("qpos0",),
    "equality": ("eq_data",),
    "gravity": ("gravity",),
}
"""Arrays whose numbers are checked, by what they belong to."""


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
    roots = check_mjcf(path)
    try:
        import mujoco
    except ImportError:
        text = "MJCF files are read by MuJoCo, which is not installed"
        raise ModelError(f"{file}: {text}: pip install 'ramify[mjcf]'") from None
    report = ImportReport(file)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            spec = mujoco.MjSpec.from_file(file)
            unread = drop_pictures(spec, mujoco)
            compiled = spec.compile()
    except Exception as error:  # MuJoCo raises ValueError, FatalError and others for a bad file
        said = " ".join(str(error).split())[:500]
        raise ModelError(f"{file}: MuJoCo refuses it: {said}") from None
    if compiled.nbody > _MOST_BODIES:
        raise ModelError(f"{file}: {compiled.nbody} bodies; at most {_MOST_BODIES}")
    for warning in warned:
        report.note("MuJoCo", " ".join(str(warning.message).split())[:500])
    name, off = spec.modelname or PurePath(file).stem, switched_off(compiled, mujoco.mjtDisableBit)
    meshes = spec.meshdir or ""
    made = _MjcfReader(compiled, name, file, report, off, meshes, unread).model(base)
    for i, (part, root) in enumerate(roots):
        MJCF.report(root, report, PurePath(part).name if i else "")
    report.warn()
    return made


def drop_pictures(spec: Any, mujoco: Any) -> list[int]:
    """Make textures plain, and height fields flat whose heights are in a file, so that no picture
    is opened or made. Gives the numbers of these height fields.
    """
    for texture in spec.textures:
        flat = texture.type == mujoco.mjtTexture.mjTEXTURE_2D
        texture.file, texture.builtin = "", mujoco.mjtBuiltin.mjBUILTIN_FLAT
        texture.cubefiles, texture.content_type, texture.nchannel = [""] * 6, "", 3
        texture.width, texture.height = 1, 1 if flat else 6
    unread = [i for i, field in enumerate(spec.hfields) if field.file]
    for i in unread:
        field = spec.hfields[i]
        field.file, field.content_type, field.userdata = "", "", [0.0] * 4
        field.nrow = field.ncol = 2
    return unread


class _MjcfReader:
    """Reads the arrays of a compiled model (mjModel)."""

    def __init__(
        self,
        compiled: Any,
        name: str,
        file: str,
        report: ImportReport,
        off: frozenset[str],
        meshes: str,
        unread: list[int],
    ) -> None:
        self.m, self.name, self.file, self.report, self.off = compiled, name, file, report, off
        bodies = [compiled.body(b).name or f"body{b}" for b in range(compiled.nbody)]
        self.bodies = _unique(bodies)
        on = [self.bodies[b] for b in compiled.jnt_bodyid]
        self.joints = _unique([compiled.jnt(j).name or f"{b}_joint" for j, b in enumerate(on)])
        self.taken = {*self.bodies, *self.joints}
        self.geoms = Geoms(compiled, Path(file).parent, meshes, off, self.taken, unread)

    def model(self, base: str | None) -> Robot:
        self.check_numbers()
        specs = [spec for b in range(1, self.m.nbody) for spec in self.body(b)]
        specs = self.with_base(specs, base)
        if all(spec.joint.kind == "fixed" for spec in specs):
            text = 'give one a joint, or a robot with a fixed base base="free"'
            raise ModelError(f"{self.file}: no body moves; {text}")
        for name in (self.name, *(name for spec in specs for name in (spec.name, spec.joint.name))):
            if not is_name(name):
                text = f"{quoted_text(name)} is the name of a model, body or joint"
                raise ModelError(f"{self.file}: {text}; {NAME}")
        world = self.geoms.shapes(0)
        self.remarks()
        notes = {
            "source": f"MJCF file {PurePath(self.file).name}",
            "report": self.report,
            "meshes": {self.bodies[b]: tuple(found) for b, found in self.geoms.meshes.items()},
            "folder": os.path.dirname(os.path.abspath(self.file)),
        }
        try:
            gravity = [0.0 if "gravity" in self.off else float(g) for g in self.m.opt.gravity]
            robot = build(self.name, specs, gravity, None, notes)
            reader = self.machine_reader(robot)
            machine = reader.machine()
            if robot.nq != self.m.nq:
                machine = replace(machine, keyframes=())
            named = self.bodies, self.joints, reader.tendons_read
            closed = "equality" not in self.off
            loops = equalities(self.m, *named, self.report) if closed else []
            bodies = CollisionReader(self.m, self.geoms, self.bodies, robot, self.report)
            touching = bodies.collisions(world, self.off)
            return replace(robot, machine=machine, loops=tuple(loops), collisions=touching)
        except ModelError as error:
            raise ModelError(f"{self.file}: {error}") from None

    def machine_reader(self, robot: Robot) -> MachineReader:
        """Reads frames, tendons, actuators and keyframes onto the bodies of a robot."""
        m, moving = self.m, {joint.name for joint in robot.joints}
        joints = [name if name in moving else "" for name in self.joints]
        attached = {b: robot.attached[self.bodies[b]] for b in range(1, m.nbody)}
        attached[0] = Attachment(-1, Frame())
        return MachineReader(m, joints, attached, self.report, self.off, robot.attached)

    def check_numbers(self) -> None:
        """Refuse what the compiler accepts: numbers that are not finite or beyond any robot, and
        quaternions that are not rotations.
        """
        names = {"body": self.bodies, "joint": self.joints}
        for what, arrays in _CHECKED.items():
            for array in arrays:
                values = getattr(self.m.opt if array == "gravity" else self.m, array)
                rows = np.atleast_2d(np.asarray(values, dtype=np.float64).T).T
                sound = np.logical_and.reduce(np.abs(rows) <= LARGEST, axis=1)  # False for NaN, too
                if array.endswith("quat"):
                    sound[sound] = np.abs((rows[sound] ** 2).sum(axis=1) - 1.0) < 1e-6
                if not sound.all():
                    i = int(np.flatnonzero(~sound)[0])
                    name = repr(names[what][i]) if what in names else str(i)
                    row = rows[i].tolist()
                    given = f"{array.partition('_')[2] or array} {row if row[1:] else row[0]}"
                    must = "a quaternion, " if array.endswith("quat") else ""
                    text = f"{given} must be {must}finite and below {LARGEST:g}"
                    raise ModelError(f"{self.file}: {what} {name}: {text}")

    # ---- bodies and joints ----

    def body(self, b: int) -> Iterator[LinkSpec]:
        """A body on its joints, in MuJoCo's order: all but the last joint carry a massless body."""
        m, name = self.m, self.bodies[b]
        parent = self.bodies[m.body_parentid[b]] if m.body_parentid[b] else None
        frame = frame_of(m.body_pos[b], m.body_quat[b])
        first, number = int(m.body_jntadr[b]), int(m.body_jntnum[b])
        own = range(first, first + number)
        joints = [self.joint(j, frame if j == first else Frame()) for j in own]
        for joint in joints[:-1]:
            between = self.fresh(f"{name}/{joint.name}")
            yield LinkSpec(between, parent, joint)
            parent = between
        last = joints[-1] if joints else Joint(self.fresh(f"{name}_fixed"), "fixed", frame)
        seat = frame_of(m.body_ipos[b], m.body_iquat[b])
        inertia = tensor_in_outer_frame(np.diag(m.body_inertia[b]), seat)
        mass, shapes = float(m.body_mass[b]), self.geoms.shapes(b)
        share = float(m.body_gravcomp[b])
        lift = float(share * mass), point_of(seat.position if share else np.zeros(3))
        yield LinkSpec(name, parent, last, mass, seat.position, inertia, shapes, lift=lift)

    def joint(self, j: int, frame: Frame) -> Joint:
        """A joint that turns or slides about its anchor; q is qpos, so the body stands as drawn at
        qpos0.
        """
        m, name, kind = self.m, self.joints[j], int(self.m.jnt_type[j])
        start = float(m.qpos0[m.jnt_qposadr[j]])
        anchor = Frame(position=m.jnt_pos[j])
        if kind == _FREE:
            own = mjcf_joint_elements(m, j, self.off)
            return Joint(name, "free", actuated=False, elements=own)
        said: Any = {"actuated": self.actuated(j), "elements": mjcf_joint_elements(m, j, self.off)}
        if kind == _BALL:
            return Joint(name, "ball", frame @ anchor, anchor.inverse(), **said)
        axis = np.array(m.jnt_axis[j])
        back = Frame(position=-start * axis)
        if kind == _HINGE:
            back = Frame(rotation_about(axis, -start))
        if m.jnt_limited[j] and "limit" not in self.off:
            said["limits"] = (stop_range(m, j),)
        place, outlet = frame @ anchor @ back, anchor.inverse()
        turns = "revolute" if kind == _HINGE else "prismatic"
        return Joint(name, turns, place, outlet, point_of(axis), **said)

    def actuated(self, j: int) -> bool:
        """Whether an actuator drives the joint; where some act otherwise than on joints, or none is
        given, all count as driven.
        """
        kinds, targets = self.m.actuator_trntype, self.m.actuator_trnid
        on_joints = len(kinds) and all(int(kind) <= 1 for kind in kinds)  # mjTRN_JOINT(INPARENT)
        return not on_joints or any(int(target[0]) == j for target in targets)

    def stops_early(self, j: int) -> bool:
        """Whether the limits of a joint have a margin."""
        limited = self.m.jnt_limited[j] and "limit" not in self.off
        return bool(limited and self.m.jnt_margin[j])

    def fresh(self, name: str) -> str:
        """A name that is not taken."""
        unused = fresh(name, self.taken)
        self.taken.add(unused)
        return unused

    def with_base(self, specs: list[LinkSpec], base: str | None) -> list[LinkSpec]:
        """The root on another base: free roots if there are some, else the one that stands
        still.
        """
        if base is None:
            return specs
        free, fixed = (
            [i for i, spec in enumerate(specs) if spec.parent is None and spec.joint.kind == kind]
            for kind in ("free", "fixed")
        )
        if base != "fixed" and not free and len(fixed) != 1:
            text = f"base={base!r} needs one body that is free or fixed to the world"
            raise ModelError(f"{self.file}: {text}; there are {len(fixed)}")
        for i in free or (fixed if base != "fixed" else []):
            name = specs[i].joint.name if free else self.fresh("root_joint")
            b, frame = self.bodies.index(specs[i].name), Frame()
            if base == "fixed":
                frame = frame_of(self.m.body_pos[b], self.m.body_quat[b])
            specs[i] = replace(specs[i], joint=Joint(name, base, frame, actuated=False))
        return specs

    # ---- what is left out ----

    def joint_remarks(self) -> None:
        """What is left out of the joints."""
        say, m = self.report, self.m
        yields = getattr(m, "jnt_springyield", np.zeros(m.njnt))
        plastic = [self.joints[j] for j in range(m.njnt) if np.any(yields[j])]
        if plastic:
            say.ignored("joints", f"the plastic yield of springs: {some(plastic)}", moves=True)
        narrowed = [(j, stop_range(m, j)) for j in range(m.njnt) if self.stops_early(j)]
        for j, (low, high) in narrowed:
            who, early = f"joint {self.joints[j]!r}", f"its limits act {m.jnt_margin[j]:g} early"
            if (low, high) == tuple(m.jnt_range[j]):
                say.ignored(who, f"{early} (margin), which leaves no range", moves=True)
            else:
                say.note(who, f"{early} (margin): they are {low:.6g} and {high:.6g} here")
        for j in range(m.njnt):
            if m.jnt_limited[j] and "limit" not in self.off and stop_of(m, j) is None:
                text = "its limits have no stiffness (solreflimit): they have the usual one here"
                say.ignored(f"joint {self.joints[j]!r}", text, moves=True)

    def remarks(self) -> None:
        """What the model leaves out, assumes or shows otherwise than the file."""
        say, m = self.report, self.m
        self.joint_remarks()
        if self.off:
            say.note("option", f"switched off by the file: {', '.join(sorted(self.off))}")
        if number := int(self.geoms.touches.sum()):
            text = f"between {number} geoms ({without_contact(self.geoms.passing)})"
            say.ignored("contacts", text, moves=True)
        if m.opt.density or m.opt.viscosity or np.any(m.opt.wind):
            text = "the fluid around the robot (density, viscosity, wind)"
            say.ignored("option", text, moves=True)
        if unmoved := sum(not self.geoms.touches[g] for g in self.geoms.of_body(0)):
            say.ignored("worldbody", f"{unmoved} geoms of the surroundings that touch nothing")
        if self.geoms.dropped.total():
            kinds = counted(self.geoms.dropped)
            text = f"shapes that are not drawn: {kinds} (their mass counts as the file says)"
            say.ignored("geoms", text)
        for what in ("flex", "skin", "plugin", "sensor"):
            if number := int(getattr(m, f"n{what}")):
                say.ignored(f"{what}s", f"{number} of them", moves=what in ("flex", "plugin"))
        mocap = [self.bodies[b] for b in range(m.nbody) if m.body_mocapid[b] >= 0]
        if mocap:
            say.assumed("bodies", f"moved by hand (mocap), so fixed here: {some(mocap)}")
        still = sum(float(m.body_mass[b]) for b in range(1, m.nbody) if m.body_weldid[b] == 0)
        if still:
            say.note("bodies", f"{still:g} kg are fixed to the world and do not move")


def _unique(names: list[str]) -> list[str]:
    """The names, with a number at those that come again."""
    out: dict[str, None] = {}
    for name in names:
        if name in out:
            numbered = (f"{name}{i}" for i in count(2))
            name = next(n for n in numbered if n not in names and n not in out)
        out[name] = None
    return list(out)
