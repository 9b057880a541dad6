"""What other programs, and other parts of this one, call the questions to a model: where a name is
missing, the error says what to write.
"""

from __future__ import annotations

from typing import Final

FUNCTIONS: Final = (
    "simulate", "rollout", "ik", "differential_ik", "linearize", "study", "to_c", "to_fmu", "view",
    "with_contact_points", "with_gravity", "with_locked", "with_loop", "with_parameters",
    "with_payload", "with_tool",
)  # fmt: skip
"""Functions of the package whose first argument is a model."""

METHODS: Final = {
    "kinematics(q) or model.pose(q, name)": "forward_kinematics fk fkine frame_pose",
    "inverse_dynamics(q, v, a)": "rnea rne id torque torques",
    "forward_dynamics(q, v, tau)": "aba fd accel acceleration accelerations",
    "mass_matrix(q)": "crba M inertia inertia_matrix",
    "mass_matrix_inverse(q)": "minv inverse_mass_matrix",
    "bias(q, v)": "nonlinear_effects coriolis_forces rnea_bias",
    "coriolis_matrix(q, v)": "coriolis C",
    "gravity_forces(q)": "gravload gravity_torques generalized_gravity G",
    "jacobian(q, name)": "frame_jacobian body_jacobian jacob0 J",
    "center_of_mass(q)": "com centre_of_mass",
    "degrees_of_freedom or model.nv": "dof ndof n_dof",
    "check()": "lint validate",
}


def advice(name: str) -> str:
    """What to write for a name that a model does not have, or nothing."""
    if name in FUNCTIONS:
        return f"; it is a function: rf.{name}(model, ...)"
    for ours, theirs in METHODS.items():
        if name in theirs.split():
            return f"; write model.{ours}"
    return ""
