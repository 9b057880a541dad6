"""ReDySim's variables as a model: modified DH rows, masses and gravity, in any of the three
dialects.

fixed: ``n dof type alp a b th bt r dx dy dz m g Icxx ... Iczx aj al Tp steps``; a row is Rx(alp)
Rz(th) with its origin at [a, -b sin(alp), b cos(alp)] in the parent, and its joint's own column (th
where r = 1, b where r = 0) is the coordinate. floating: ``n nq alp a b bt dx dy dz al alt m g Icxx
... Iczx``; link 1 is the base, with the state [x y z, phi theta psi] and the rotation Rz(phi)
Rx(theta) Ry(psi); all other joints turn. legged: the same and the ground, ``g_prop``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ramify.core.arrays import Array
from ramify.core.errors import ModelError
from ramify.files.import_report import ImportReport, open_loops
from ramify.files.redysim import matlab_constants, redysim_loops
from ramify.files.redysim.merge import merge as merged
from ramify.files.redysim.redysim_variables import MOMENTS, RedysimVariables
from ramify.files.xml_reader import symmetric
from ramify.model.build import LinkSpec, build
from ramify.model.floating_base import with_base
from ramify.model.frame import Frame, align_z, modified_dh
from ramify.model.joint import Joint
from ramify.model.loop import Loop
from ramify.model.machine import Keyframe, Machine
from ramify.model.robot import Robot
from ramify.model.shape import Shape

BASE_SEQUENCE: Final = "ZXY"
"""Euler angles of a floating base in ReDySim."""

_SETTINGS: Final = ("dof", "type", "nq", "Tp", "steps")
BESIDE: Final = (
    "for_kine.m", "jacobian.m", "initials.m", "inv_kine.m", "torque.m", "trajectory.m"
)  # fmt: skip
"""The files beside ``inputs`` that the report may name."""
_GROUND: Final = ("stiffness", "damping", "speed_limit", "friction", "horizontal_damping")


def from_variables(
    variables: Mapping[str, Any],
    name: str = "",
    report: ImportReport | None = None,
    *,
    base: str | None = None,
    merge: bool = True,
    beside: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
) -> Robot:
    """The model that ReDySim's variables describe, whatever their dialect; vectors may be rows or
    columns, and longer than n.

    base: None for the base that ReDySim has (fixed, or free_euler with the sequence ZXY), or
    "free", "free_euler", "planar" (a floating base that stays in the x-y plane: q = [x y phi,
    ...]), "fixed". merge: whether massless links become joints of several degrees of freedom.
    beside: texts of the files of BESIDE that are there; ``initials.m`` is read, of a closed model
    also ``for_kine.m`` and ``jacobian.m`` (:mod:`ramify.files.redysim.redysim_loops`),
    ``outputs`` the names that ``inputs.m`` returns, in their order.

    Raises ModelError naming the variable and entry that is missing, not finite or impossible.
    """
    report = ImportReport(name or "ReDySim") if report is None else report
    table = RedysimVariables(variables, report)
    table.read_initials((beside or {}).get("initials.m", ""))
    closed = table.closed
    loops, hinges = _closed(table, beside or {}, outputs) if closed else ((), {})
    if not closed and not table.floating:
        table.check_freedom([table.n], "as an open tree")
    links = _links(table, hinges)
    if merge and not loops:
        links = merged(links, report)
    settings: dict[str, Any] = {key: table.number(key) for key in _SETTINGS if key in table}
    if "th" in table:
        settings["th"] = tuple(table.vector("th"))
    if not all(table.turns()):
        settings["b"] = tuple(table.vector("b"))
    start = _start(table, base)
    if table.initial is not None:
        settings |= table.initial.run
    elif any(start.q):
        text = "th of joints that turn and b of those that slide are the coordinates, 0 in"
        kept_in = "the values of the file, where ReDySim starts, are m.keyframes[0].q"
        report.note("th, b", f"{text} m.neutral(); {kept_in}")
    if "Tp" in settings and "tf" not in settings:
        call = f"rf.simulate(m, t_end={settings['Tp']:g}, …)"
        report.note("Tp, steps", f"they belong to a run: {call}")
    metadata: dict[str, Any] = {"source": "ReDySim", "redysim": settings, "report": report}
    rows = enumerate(zip(table.rows(), table.turns(), strict=True), 1)
    metadata["dh"] = {
        f"link{k}": (alpha, a, b, 0.0) if turning else (alpha, a, 0.0, theta)
        for k, ((alpha, a, b, theta), turning) in rows
    }
    guess = None
    if loops:
        guess = {link.joint.name: x for link, x in zip(links, table.coordinates(), strict=True)}
    if table.legged:
        metadata["ground"] = _ground(table)
    _tell(table, settings, beside or {}, base)
    title = name or str(variables.get("name") or "redysim")
    try:
        model = build(title, links, table.gravity(), metadata=metadata, loops=loops, guess=guess)
    except ModelError as error:
        raise ModelError(f"{report.file}: {error}") from None
    if base is not None and (base != "fixed" or table.floating):
        model = with_base(model, base)
    if start.q and (table.initial is not None or any(start.q)):
        model = replace(model, machine=Machine(keyframes=(start,)))
    return model


_OF_BASE: Final = {None: range(6), "free_euler": range(6), "planar": (0, 1, 3), "fixed": ()}
"""Which of ReDySim's variables of a floating base another base has as well."""


def _start(table: RedysimVariables, base: str | None) -> Keyframe:
    """The state at which ReDySim starts a run; empty where that is not known."""
    if not table.floating and base in (None, "fixed"):
        rates = () if table.initial is None else table.initial.rates
        return Keyframe("start", tuple(table.coordinates()), rates)
    if table.initial is None or not table.floating:
        return Keyframe("start", ())
    if base not in _OF_BASE:
        text = f"its state has angles of the base and is not that of base={base!r}"
        table.report.ignored("initials.m", f"{text}; m.keyframes is empty")
        return Keyframe("start", ())
    q, v = (
        tuple(x[i] for i in (*_OF_BASE[base], *range(6, len(x))))
        for x in (table.initial.q, table.initial.rates)
    )
    return Keyframe("start", q, v)


def _closed(
    table: RedysimVariables, beside: Mapping[str, str], outputs: Sequence[str]
) -> tuple[tuple[Loop, ...], dict[int, Array]]:
    """The loops of a closed model and where its links hang on the ground, from the texts of the
    files ``beside`` its variables; the report says what could not be read.
    """
    report = table.report
    hinges, unread = _hinges(table, beside.get("for_kine.m", ""), outputs)
    tree = redysim_loops.PlaneTree(table.rows(), table.parents(), table.turns(), hinges)
    try:
        if reason := _obstacle(table, beside, unread):
            raise ModelError(reason)
        pins, J = _pins(beside["jacobian.m"], table.constants, outputs, tree, report)
        names = [f"link{k + 1}" for k in range(table.n)]
        th = np.array(table.coordinates())
        loops, moved, gaps = redysim_loops.loops_of_pins(pins, tree, th, names)
    except ModelError as error:
        plane = tree.in_plane
        dof = table.number("dof") if "dof" in table else table.n - 1
        text = open_loops(math.ceil((table.n - dof) / (2 if plane else 5)), plane)
        if not table.floating and (links := redysim_loops.unplaced(tree)):
            text = f"{text}; {_hinges_first(links)}"
        report.ignored("jacobian.m", f"{text} ({error})", moves=True)
        return (), hinges
    if moved and "for_kine.m" in beside:
        text = "its hinges are not understood; they are assumed from th"
        report.ignored("for_kine.m", text, moves=True)
    for k, place in moved.items():
        where = ", ".join(f"{x:.6g}" for x in place)
        text = f"link{k + 1} hangs on the ground at ({where}) m, so that th closes the loop"
        report.assumed("for_kine.m", text)
    for name, gap in gaps.items():
        text = f"{name} does not close there: its ends are {gap:.3g} m apart"
        remedy = "check th and the hinges of for_kine.m; m.assemble() closes it"
        where = "th" if table.initial is None else "initials.m"
        report.note(where, f"{text}; {remedy}", doubt=True)
    table.check_freedom(redysim_loops.freedom(J, th), "with its loops closed")
    for loop in loops:
        ends = " and ".join(end.link or "the ground" for end in (loop.first, loop.second))
        report.note("jacobian.m", f"{loop.name} closes {ends}: its rows are their velocities")
    return loops, hinges | moved


def _hinges(
    table: RedysimVariables, text: str, outputs: Sequence[str]
) -> tuple[dict[int, Array], list[str]]:
    """Where links hang on the ground by ``for_kine.m``, and its lines that are not understood; both
    are in the report.
    """
    report, hinges = table.report, dict[int, Array]()
    parents = table.parents()
    ground = [k for k, parent in enumerate(parents) if parent < 0 and not table.floating]
    try:
        values = redysim_loops.by_position(text, "for_kine.m", table.constants, outputs)
        if values is not None:
            report.note("for_kine.m", redysim_loops.OTHER_ORDER, doubt=True)
        inputs = values or table.constants
        hinges, unread = matlab_constants.hinges(text, inputs, ground, table.n)
    except ModelError as error:
        unread = [str(error)]
    for k, place in hinges.items():
        where = ", ".join(f"{x:g}" for x in place)
        report.note("for_kine.m", f"link{k + 1} hangs on the ground at ({where}) m")
    for line in unread:
        report.ignored("for_kine.m", f"not a constant hinge: {line[:60]}")
    return hinges, unread


def _obstacle(table: RedysimVariables, beside: Mapping[str, str], unread: Sequence[str]) -> str:
    """Why the loops cannot be read from ``jacobian.m``; empty where they can."""
    if table.floating:
        return "the rows of a floating base are not understood"
    if unread:
        return "for_kine.m gives hinges that are not constants"
    if "jacobian.m" not in beside:
        return "there is no jacobian.m beside it"
    if "th" not in table and table.initial is None:
        text = "th, the angles at which they close, is missing"
        return f"{text}; it is read from initials.m, too"
    return ""


def _hinges_first(links: Sequence[int]) -> str:
    """What to do about links whose hinges on the ground no file has, before loops are closed."""
    names = ", ".join(f"link{k + 1}" for k in links)
    columns = ", ".join(f"so(:,{k + 1})=[x;y;z]" for k in links)
    verb = "hang" if len(links) > 1 else "hangs"
    return (
        f"but first say where {names} {verb} on the ground, else the ground link has the length 0: "
        f"ReDySim has it in for_kine.m, {columns}, which is read beside the file; in the robot "
        "file, frame: {xyz: [x, y, z]} in place of dh:"
    )


def _pins(
    text: str,
    constants: Mapping[str, Array],
    outputs: Sequence[str],
    tree: redysim_loops.PlaneTree,
    report: ImportReport,
) -> tuple[list[redysim_loops.PinClosure], redysim_loops.Jacobian]:
    """The pins of a ``jacobian.m`` and its J. ``[n dof ...] = inputs()`` goes by position, as in
    MATLAB; by name, with a warning, where only that gives pins (the book's table 10.9).
    """
    values = redysim_loops.by_position(text, "jacobian.m", constants, outputs)
    if values is not None:
        try:
            J = redysim_loops.jacobian_function(text, "jacobian.m", values)
            return redysim_loops.pin_closures(J, tree), J
        except ModelError:
            order = f"{redysim_loops.OTHER_ORDER}; here they go by name"
            report.note("jacobian.m", order, doubt=True)
    J = redysim_loops.jacobian_function(text, "jacobian.m", constants)
    return redysim_loops.pin_closures(J, tree), J


def _links(table: RedysimVariables, hinges: Mapping[int, Array]) -> list[LinkSpec]:
    floating = table.floating
    rows, turns, actuated = table.rows(), table.turns(), table.actuated()
    dx, dy, dz, mass = (table.vector(key) for key in ("dx", "dy", "dz", "m"))
    table.check_joints()
    xx, yy, zz = (table.vector(key) for key in MOMENTS[:3])
    xy, yz, zx = (table.vector(key, 0.0) for key in MOMENTS[3:])
    parents = table.parents()
    lengths = table.vector("al", 0.0)
    tips = table.vector("alt", 0.0) if floating and "alt" in table else lengths
    if floating and "al" in table and "alt" not in table:  # the book's table 10.10
        tips = [x + length / 2.0 for x, length in zip(dx, lengths, strict=True)]
        text = "missing: every link reaches as far to both sides of its mass centre"
        table.report.assumed("alt", text)
    leaves = set(range(table.n)) - set(parents)
    links = []
    names = ["base" if floating and k == 0 else f"link{k + 1}" for k in range(table.n)]
    for k, (alpha, a, b, theta) in enumerate(rows):
        if floating and k == 0:
            joint = Joint("base", "free_euler", sequence=BASE_SEQUENCE, actuated=False)
        else:
            placement = modified_dh(alpha, a, *((b, 0.0) if turns[k] else (0.0, theta)))
            if k in hinges:
                placement = Frame(placement.rotation, hinges[k])
            kind = "revolute" if turns[k] else "prismatic"
            joint = Joint(f"joint{k + 1}", kind, placement, actuated=actuated[k])
        com = np.array([dx[k], dy[k], dz[k]])
        tensor = symmetric((xx[k], yy[k], zz[k], xy[k], zx[k], yz[k]))
        heel, tip = (tips[k] - lengths[k], tips[k]) if floating else (0.0, lengths[k])
        points = _contact(f"link{k + 1}", heel, tip) if table.legged and k in leaves else ()
        shapes = _shapes(com, heel, tip, floating) if mass[k] > 0.0 else ()
        parent = names[parents[k]] if parents[k] >= 0 else None
        links.append(LinkSpec(names[k], parent, joint, mass[k], com, tensor, shapes, points))
    return links


def _contact(
    link: str, heel: float, tip: float
) -> tuple[tuple[str, tuple[float, float, float]], ...]:
    """Points that may touch the ground: the tip, and the other end of a foot that reaches to both
    sides of its joint.
    """
    found = [(f"{link}_tip", (tip, 0.0, 0.0))]
    return tuple(found if abs(heel) < 1e-9 else [*found, (f"{link}_heel", (heel, 0.0, 0.0))])


def _shapes(com: Array, heel: float, tip: float, floating: bool) -> tuple[Shape, ...]:
    """A rod: between heel and tip along x where ReDySim says so, else from the origin to twice the
    mass centre.
    """
    size, x = float(np.linalg.norm(com)), np.array([1.0, 0.0, 0.0])
    if floating and tip > heel:
        centre, length, direction = (heel + tip) / 2.0 * x, tip - heel, x
    elif size > 0.0:
        centre, length, direction = com, 2.0 * size, com / size
    elif tip > 0.0:
        centre, length, direction = tip / 2.0 * x, tip, x
    else:
        return (Shape("sphere", (0.02,)),)
    return (Shape("capsule", (0.06 * length, length), Frame(align_z(direction), centre)),)


def _ground(table: RedysimVariables) -> dict[str, Any]:
    """Ground parameters by name; ``axes`` are the world axes [vertical, along, across], 1 for x."""
    values = table.numbers("g_prop").tolist()
    if len(values) < 8:
        text = f"has {len(values)} numbers; it must have K, Cv, vz_max, mu, Ch and three axes"
        raise table.fail("g_prop", text)
    axes = values[5:8]
    if sorted(axes) != [1.0, 2.0, 3.0]:
        listed = ", ".join(f"{x:g}" for x in axes)
        text = "the axes [vertical, along, across] are 1, 2 and 3 in some order"
        raise table.fail("g_prop(6:8)", f"is {listed}; {text}")
    return dict(zip(_GROUND, values, strict=False)) | {"axes": tuple(map(int, axes))}


_USER_CODE: Final = {
    "torque.m": "a control law is user code; write a function (t, q, v) -> tau and give it to "
    "rf.simulate(m, t_end, control=…)",
    "trajectory.m": "a motion is user code; rf.motion has ReDySim's cycloid and others, for "
    "rf.control and rf.simulate",
    "initials.m": "it has no constant state of all variables; {start}",
    "inv_kine.m": "the dependent joints follow from the loops: m.assemble()",
}
"""What the report says of files beside ``inputs`` that are not read, where they are there."""


def _tell(
    table: RedysimVariables,
    settings: Mapping[str, Any],
    beside: Mapping[str, str],
    base: str | None,
) -> None:
    """What the report says of the dialect."""
    report, start = table.report, "q0 and v0 are arrays in Python"
    if "th" in settings:
        start = 'the values of th are in m.metadata["redysim"]'
    for file, text in _USER_CODE.items():
        if file in beside and not (file == "initials.m" and table.initial is not None):
            report.ignored(file, text.format(start=start))
    if table.legged:
        text = "the ground is not part of the model"
        report.note("g_prop", f"{text}; give ground=rf.contact.Firm.of_redysim(m) to rf.simulate")
    if not table.floating and "r" not in table:
        report.assumed("r", "an older file without joint types: all joints turn")
    if table.floating:
        _tell_base(table, base)


_BASES: Final = {
    "free_euler": "q starts with [x y z, phi theta psi], R = Rz(phi) Rx(theta) Ry(psi), v with "
    "their rates, as in statevar",
    "free": "as asked for, q starts with x, y, z and a unit quaternion, w first, in place of the "
    "angles phi theta psi",
    "planar": "as asked for, it stays in the x-y plane: q starts with [x y phi], v with their "
    "rates",
    "fixed": "as asked for, it is fixed to the world: q has the joints alone",
}


def _tell_base(table: RedysimVariables, base: str | None) -> None:
    report = table.report
    if any(x != 0.0 for key in ("alp", "a", "b") for x in table.vector(key)[:1]):
        text = "the row of the base is not used, as in ReDySim"
        report.ignored("alp, a, b", f"{text}: its frame is the one that the state moves")
    report.note("base", _BASES.get(base or "free_euler", ""))
    if base is None and "nq" in table and table.number("nq") == 0.0:
        text = (
            "a planar robot, but ReDySim integrates all six coordinates of its base, so they stay; "
            "rf.load(path, base='planar'), or ramify convert --base planar, leaves x, y, phi"
        )
        report.note("nq", text)
