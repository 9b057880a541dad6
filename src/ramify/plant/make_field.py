"""The right-hand side of a robot with its controller, ground and friction: checked, and remembered
with the robot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ramify.contact.ground import Ground
from ramify.contact.grounds import as_ground
from ramify.contact.hard import Hard, as_contact
from ramify.control.controller import Controller
from ramify.control.function_controller import as_controller
from ramify.control.robot_text import RobotText
from ramify.core.arrays import Array, flag, real
from ramify.core.cached import Memo
from ramify.core.errors import SimulationError, StateError
from ramify.core.records import ships_with_ramify
from ramify.model.robot import Robot
from ramify.plant.field import Field
from ramify.plant.joint_loads import loads_on
from ramify.plant.stabilisation import stabilisation_rate

ControlLike = Controller | Callable[[float, Array, Array], ArrayLike] | None
"""A controller of rf.control, a function (t, q, v) -> tau, or None."""
GroundLike = Ground | str | Mapping[str, Any] | None
"""A ground of rf.contact, a word such as "firm", a mapping as in scenario files, or None."""
ContactLike = Hard | str | Mapping[str, Any] | None
"""rf.contact.Hard(…), the word "hard", a mapping as in scenario files, or None."""

_MOST = 16  # right-hand sides that a robot remembers


class PlantOptions(NamedTuple):
    """What belongs to a machine beside robot and controller, as users set it, and how its
    right-hand side is used: see ``Plant``. damping: (nv), or one number for all joints but floating
    bases.
    """

    damping: ArrayLike = 0.0
    ground: GroundLike = None
    stabilisation: str | float = "projection"
    passive: bool = True
    stops: bool = True
    efforts: bool = True
    implicit: bool = False
    counted: bool = True
    pushed: tuple[str, ...] = ()
    contact: ContactLike = None


DEFAULTS: Final = PlantOptions()


def make_field(
    model: Robot, control: ControlLike = None, options: PlantOptions = DEFAULTS
) -> Field:
    """The right-hand side; StateError and others name what does not fit.

    Equal parts give one and the same object, so that its compiled code need not be looked up.
    """
    damping, ground, stabilisation, *flags, implicit, counted, pushed, contact = options
    for name, switch in zip(("passive", "stops", "efforts"), flags, strict=True):
        flag(name, switch, SimulationError)
    passive, stops, efforts = map(bool, flags)
    rate = stabilisation_rate(stabilisation) * bool(model.loops)
    friction = _friction(model, damping)
    fields = model.memo.remember("fields", lambda: Memo(_MOST))
    switches = rate, passive, stops, efforts, implicit, counted, pushed
    loads = loads_on(model)
    parts = tuple(x if isinstance(x, str) else id(x) for x in (ground, contact))
    key = id(control), parts, friction, switches, loads
    if key in fields:
        equal: Field = fields[key]
        return equal
    law = as_controller(control, model)
    drives = law.driven(RobotText(model)).v if counted and law is not None else ()
    if ground is not None and contact is not None:
        raise SimulationError("ground and contact are two models of the same ground; give one")
    field = Field(
        model, law, friction, as_ground(ground, model), *switches, drives, loads,
        as_contact(contact),
    )  # fmt: skip
    _ = field.contact, field.hard_slots  # raise for what does not fit the robot
    if field.hard is not None and field.prescribed is not None:
        raise SimulationError(
            "hard contact cannot be combined with a prescribed motion; let a controller such as "
            "rf.control.PD follow the motion, or take ground="
        )
    same_parts = (field.ground is ground or isinstance(ground, str)) and (
        field.hard is contact or isinstance(contact, str)
    )
    reusable = law is control and same_parts
    if reusable and ships_with_ramify(law) and ships_with_ramify(field.ground):
        fields.keep(key, field)  # it refers to its parts, so that their ids stay valid
    return field


def _friction(model: Robot, damping: ArrayLike) -> tuple[float, ...]:
    """Viscous friction (nv)."""
    if isinstance(damping, float) and damping == 0.0:
        return (0.0,) * model.nv
    coefficients = real("damping", damping)
    fits = coefficients.shape in ((), (1,), (model.nv,))
    friction = np.broadcast_to(coefficients if fits else np.nan, (model.nv,)).copy()
    if not np.isfinite(friction).all() or (friction < 0.0).any():
        raise StateError(
            f"damping must be a number or ({model.nv},), finite and ≥ 0; got {damping!r}"
        )
    if coefficients.size < model.nv:  # one number: not for floating bases
        for joint in model.joints:
            if joint.floating:
                friction[model.joint_slice(joint.name)] = 0.0
    return tuple(friction.tolist())
