"""The machine of an MJCF robot, from MuJoCo's compiled arrays: what its joints have besides rigid
links.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ramify.model.elements import Element

_JOINTS = (0, 1)  # mjTRN_JOINT, mjTRN_JOINTINPARENT
_RATES = (6, 3, 1, 1)  # of mjtJoint free, ball, slide, hinge


def joint_elements(m: Any, j: int) -> tuple[Element, ...]:
    """The elements of joint j, one per rate; () for an ideal joint."""
    start = int(m.jnt_dofadr[j])
    own = tuple(
        Element(armature=float(m.dof_armature[i]) + _of_actuators(m, j, "actuator_armature"))
        for i in range(start, start + _RATES[int(m.jnt_type[j])])
    )
    return own if any(element != Element() for element in own) else ()


def _of_actuators(m: Any, j: int, what: str) -> float:
    """What the actuators of a joint bring along, reflected by their gears."""
    given = getattr(m, what, None)
    if given is None:
        return 0.0
    kinds, targets, gears = m.actuator_trntype, m.actuator_trnid, m.actuator_gear
    return float(
        sum(
            np.ravel(given[i])[0] * gears[i][0] ** 2
            for i in range(len(kinds))
            if int(kinds[i]) in _JOINTS and int(targets[i][0]) == j
        )
    )
