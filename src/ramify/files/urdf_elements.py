"""The elements and attributes of URDF, with those of the programs that extend it, and what becomes
of each.
"""

from __future__ import annotations

from typing import Final

from ramify.files.element_table import ElementRow, ElementTable, whole_element

_OFF: Final = "false 0"
_ROWS: Final = {
    "robot": ElementRow(
        "name link joint transmission gazebo", drawn="material",
        harmless="version sensor camera ray map ros2_control verbose plugin gripper",
        moves={"deformable": ""},
    ),
    "link": ElementRow(
        "name inertial collision contact", drawn="visual",
        harmless="type sensor audio_source origin",
        contact="collision_checking self_collision_checking self_collide self_filter surface "
        "concave",
        moves={"kinematic": _OFF, "gravity": "true 1"},
    ),
    "collision": whole_element("carried"),
    "contact": ElementRow(
        "lateral_friction restitution",
        contact="rolling_friction spinning_friction friction_anchor inertia_scaling stiffness "
        "damping contact_cfm contact_erp",
    ),
    "inertial": ElementRow("origin mass inertia"),
    "origin": ElementRow("xyz rpy"),
    "mass": ElementRow("value"),
    "inertia": ElementRow("ixx iyy izz ixy ixz iyz"),
    "joint": ElementRow(
        "name type origin parent child axis limit dynamics mimic",
        harmless="calibration safety_controller hardwareInterface dont_collapse",
        moves={"joint_properties": ""},
    ),
    "axis": ElementRow("xyz", harmless="rpy"),
    "parent": ElementRow("link"),
    "child": ElementRow("link"),
    "limit": ElementRow("lower upper effort velocity", harmless=(
        "acceleration deceleration jerk command_effort current gear_velocity twist"
    )),
    "dynamics": ElementRow("damping friction rotor_inertia", harmless="D K mu_coulomb mu_viscous"),
    "mimic": ElementRow("joint multiplier offset"),
    "transmission": whole_element("carried"),
    "gazebo": ElementRow(
        "reference mu1", drawn="material visual light",
        harmless="plugin sensor implicitSpringDamper provideFeedback cfmDamping preserveFixedJoint "
        "disableFixedJointLumping initialJointPosition initial_joint_position laserRetro "
        "robotNamespace canonicalBody ray camera gazebo_ros_controller_manager "
        "gazebo_ros_power_monitor gazebo_ros_p3d gazebo_ros_imu gazebo_ros_f3d",
        softness="fudgeFactor",
        contact="mu mu2 kp kd fdir1 maxVel minDepth maxContacts selfCollide self_collide "
        "collision contact",
        moves={
            "turnGravityOff": _OFF, "gravity": "true 1", "static": _OFF, "kinematic": _OFF,
            "dampingFactor": "0", "springStiffness": "0", "springReference": "0",
            "enable_wind": _OFF, "velocity_decay": "", "hinge": "", "slider": "",
            "stopCfm": "0", "stopErp": "0.2", "stopKp": "100000000", "stopKd": "1",
        },
    ),
}  # fmt: skip
URDF: Final = ElementTable(_ROWS, children=True)
