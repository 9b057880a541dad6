"""The elements and attributes of SDF up to 1.11, and what becomes of each."""

from __future__ import annotations

from typing import Final

from ramify.files.element_table import ElementRow, ElementTable, whole_element

_OFF: Final = "false 0"
_AXIS: Final = ElementRow(
    "xyz use_parent_model_frame dynamics limit mimic", harmless="initial_position"
)
_ODE: Final = ElementRow(moves={"cfm": "0", "erp": "0.2"})
_ROWS: Final = {
    "sdf": ElementRow("version model world", drawn="light", harmless="actor"),
    "world": ElementRow(
        "name gravity model physics", drawn="light scene",
        harmless="audio wind magnetic_field atmosphere gui actor road spherical_coordinates state "
        "population plugin frame include",
        moves={"joint": ""},
    ),
    "world/physics": ElementRow("gravity", harmless=(
        "name default type max_step_size real_time_factor real_time_update_rate max_contacts dart "
        "simbody bullet ode magnetic_field"
    )),
    "model": ElementRow(
        "name static pose link joint frame canonical_link placement_frame self_collide",
        harmless="allow_auto_disable plugin gripper namespace include model",
        moves={"enable_wind": _OFF},
    ),
    "model/pose": ElementRow(
        "rotation_format degrees", moves={"relative_to": "world", "frame": ""}
    ),
    "pose": ElementRow("relative_to rotation_format degrees", moves={"frame": ""}),
    "frame": ElementRow("name attached_to pose"),
    "link": ElementRow(
        "name pose inertial gravity velocity_decay collision self_collide", drawn="visual light",
        harmless="sensor projector audio_sink audio_source battery particle_emitter plugin "
        "must_be_base_link",
        contact="contact", moves={"enable_wind": _OFF, "kinematic": _OFF},
    ),
    "collision": whole_element("carried"),
    "velocity_decay": ElementRow(moves={"linear": "0", "angular": "0"}),
    "inertial": ElementRow(
        "mass pose inertia", harmless="density auto_inertia_params frame",
        moves={"auto": _OFF, "fluid_added_mass": ""},
    ),
    "inertia": ElementRow("ixx iyy izz ixy ixz iyz"),
    "joint": ElementRow(
        "name type parent child pose axis axis2 screw_thread_pitch thread_pitch physics",
        harmless="sensor frame gearbox_ratio gearbox_reference_body",
    ),
    "axis": _AXIS,
    "axis2": _AXIS,
    "xyz": ElementRow("expressed_in"),
    "dynamics": ElementRow("damping friction spring_reference spring_stiffness"),
    "limit": ElementRow(  # engines differ in what the last two mean
        "lower upper effort velocity", moves={"stiffness": "100000000", "dissipation": "1"}
    ),
    "mimic": ElementRow("joint axis multiplier offset reference"),
    "joint/physics": ElementRow("ode", harmless="simbody provide_feedback"),
    "joint/physics/ode": ElementRow(
        "limit suspension", harmless="implicit_spring_damper provide_feedback cfm_damping",
        softness="fudge_factor erp",
        moves={"max_force": "0", "velocity": "0", "cfm": "0", "bounce": "0"},
    ),
    "joint/physics/ode/limit": _ODE,
    "joint/physics/ode/suspension": _ODE,
}  # fmt: skip
SDF: Final = ElementTable(_ROWS, children=True)
