"""The stops of MJCF joints: MuJoCo's soft constraints at limits as springs and dampers.

At a limit MuJoCo mixes the acceleration a0 without a stop with the one that it asks for,
a = (1 - d) a0 + d (-B v - K x), at the depth x and the impedance d. In steady contact that is a
spring of the stiffness k = m K d / (1 - d) with a damper c = m B d / (1 - d); m is the inertia
that the joint shows at qpos0. B and K come from ``solref``, d from ``solimp``.
"""

from __future__ import annotations

from typing import Any, Final

from ramify.model.elements import Stop

_SOLREF: Final = (0.02, 1.0)
_SOLIMP: Final = (0.9, 0.95, 0.001)
_IMPEDANCES: Final = 1e-4, 1.0 - 1e-4
"""The smallest and the largest impedance that MuJoCo takes."""


def stop_of(m: Any, j: int, safe: bool = True) -> Stop | None:
    """The stop of joint j: ours by default where the file leaves MuJoCo's softness as it is. None
    where MuJoCo's has no stiffness. ``safe``: a time constant is at least two time steps.

    The impedance is that of depths beyond the width of ``solimp``.
    """
    solref = tuple(float(x) for x in m.jnt_solref[j][:2])
    solimp = tuple(float(x) for x in m.jnt_solimp[j][:3])
    if (solref[0] > 0.0) != (solref[1] > 0.0):
        solref = _SOLREF  # as MuJoCo does with a time constant beside a damping
    if (solref, solimp) == (_SOLREF, _SOLIMP):
        return Stop()
    d = min(max(solimp[1], _IMPEDANCES[0]), _IMPEDANCES[1])
    if solref[0] > 0.0:
        time, ratio = max(solref[0], 2.0 * float(m.opt.timestep) * safe), solref[1]
        K, B = 1.0 / (d * (time * ratio) ** 2), 2.0 / (d * time)
    else:
        K, B = -solref[0] / d, -solref[1] / d
    per_inertia = float(m.dof_invweight0[int(m.jnt_dofadr[j])])
    if not K or not per_inertia > 0.0:
        return None
    share = d / (1.0 - d) / per_inertia
    return Stop(stiffness=share * K, damping=share * B)
