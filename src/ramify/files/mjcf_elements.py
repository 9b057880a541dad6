"""The elements and attributes of MJCF, and what becomes of each (the releases 3 and 4 of MuJoCo).

Most of what changes the motion is found in the compiled model, where defaults, includes and
attached models are written out: :mod:`ramify.files.mjcf`, :mod:`ramify.files.mjcf_machine`.
"""

from __future__ import annotations

from typing import Final

from ramify.files.element_table import ElementRow, ElementTable, whole_element

_POSE: Final = "pos quat axisangle xyaxes zaxis euler"
_GIVES_WAY: Final = "solmix solref solimp margin gap"
_SLIDES: Final = {"adhesion": "0", "surfacevel": "0"}
_SOFT: Final = "solreffriction solimpfriction"
_TARGET: Final = (
    "name class joint jointinparent tendon site refsite cranksite slidersite cranklength gear"
)
_DRIVE: Final = f"{_TARGET} ctrllimited ctrlrange forcelimited forcerange armature damping"
_QUIET: Final = "group user nsample interp lengthrange"
_DELAY: Final = {"delay": None}


def _actuator(attributes: str) -> ElementRow:
    return ElementRow(f"{_DRIVE} {attributes}", harmless=_QUIET, moves=_DELAY)


def _tendon(drawn: str) -> ElementRow:
    unread = ("limited", "range", "margin", "frictionloss", "armature", "springyield")
    return ElementRow(
        "name class stiffness damping springlength actuatorfrclimited actuatorfrcrange",
        drawn=drawn, harmless="user", softness=f"{_SOFT} solreflimit solimplimit",
        moves=dict.fromkeys(unread),
    )  # fmt: skip


def _equality(attributes: str) -> ElementRow:
    return ElementRow(f"name class active {attributes}", softness="solref solimp torquescale")


_ROWS: Final = {
    "mujoco": ElementRow("model"),
    "mujocoinclude": ElementRow(),
    "include": ElementRow("file prefix"),
    # ---- settings ----
    "compiler": ElementRow(
        "alignfree angle assetdir autolimits balanceinertia boundinertia boundmass conflict "
        "convexhull coordinate discardvisual eulerseq exactmeshinertia fitaabb fusestatic "
        "inertiafromgeom inertiagrouprange meshdir passthrough savecanonical savecompiled "
        "saveinertial settotalmass strippath texturedir usethread"
    ),
    "lengthrange": whole_element("harmless"),
    "option": ElementRow(
        "gravity actuatorgroupdisable timestep",
        harmless="integrator solver iterations tolerance ls_iterations ls_tolerance "
        "noslip_iterations noslip_tolerance ccd_iterations ccd_tolerance sdf_iterations "
        "sdf_initpoints jacobian magnetic apirate sleep_tolerance",
        contact="cone impratio collision o_friction o_margin o_solimp o_solref",
        moves={"density": None, "viscosity": None, "wind": None},
    ),
    "flag": ElementRow(
        "actuation clampctrl constraint contact damper equality filterparent frictionloss gravity "
        "limit passive refsafe spring",
        harmless="autoreset diagexact energy eulerdamp fwdinv invdiscrete island sensor warmstart",
        contact="ipc midphase multiccd nativeccd override speculative",
        moves={"sleep": "disable"},
    ),
    "size": whole_element("harmless"),
    "statistic": whole_element("harmless"),
    "visual": whole_element("drawn"),
    "default": ElementRow("class"),
    "custom": whole_element("harmless"),
    "sensor": whole_element("harmless"),
    # ---- assets ----
    "asset": ElementRow(),
    "mesh": ElementRow(
        "builtin class content_type face file inertia maxhullvert name normal octree_maxdepth "
        "params refpos refquat scale vertex",
        drawn="material smoothnormal texcoord",
    ),
    "hfield": ElementRow("name nrow ncol size elevation file content_type"),
    "skin": whole_element("drawn"),
    "texture": whole_element("drawn"),
    "material": whole_element("drawn"),
    "model": ElementRow("content_type file name"),
    # ---- bodies ----
    "worldbody": ElementRow(),
    "body": ElementRow(
        f"name childclass gravcomp mocap fuse simple {_POSE}", harmless="user sleep"
    ),
    "frame": ElementRow(f"name childclass {_POSE}"),
    "replicate": ElementRow("count sep offset euler childclass"),
    "attach": ElementRow("body frame model prefix"),
    "inertial": ElementRow(f"mass diaginertia fullinertia {_POSE}"),
    "joint": ElementRow(
        "name class type pos axis ref range limited margin armature damping frictionloss stiffness "
        "springref springdamper solreflimit solimplimit actuatorfrclimited actuatorfrcrange "
        "actuatorgravcomp",
        drawn="group", harmless="user", softness=_SOFT, moves={"springyield": None},
    ),
    "freejoint": ElementRow("name align", drawn="group"),
    "geom": ElementRow(
        f"name class type size fromto mass density shellinertia mesh hfield fitscale {_POSE} "
        "contype conaffinity condim priority friction",
        drawn="material rgba group castshadow", harmless="user", softness=_GIVES_WAY,
        moves=dict.fromkeys(("fluidshape", "fluidcoef")) | _SLIDES,
    ),
    "site": ElementRow(
        f"name class {_POSE} fromto", drawn="type size rgba material group mesh", harmless="user"
    ),
    "camera": whole_element("drawn"),
    "light": whole_element("drawn"),
    "composite": ElementRow("prefix type count offset vertex initial curve size quat"),
    "composite/joint": ElementRow(
        "kind type axis range limited margin armature damping frictionloss stiffness solreflimit "
        "solimplimit",
        drawn="group", softness=f"{_SOFT} solreffix solimpfix",
    ),
    "composite/skin": whole_element("drawn"),
    "flexcomp": whole_element("moves"),
    "deformable": ElementRow(),
    "flex": whole_element("moves"),
    "extension": ElementRow(),
    "plugin": whole_element("moves"),
    # ---- contacts, tendons, constraints ----
    "contact": ElementRow(),
    "pair": ElementRow(
        "name class geom1 geom2 condim friction", softness=f"{_GIVES_WAY} solreffriction",
        moves={"adhesion": "0"},
    ),
    "exclude": ElementRow("name body1 body2"),
    "tendon": _tendon("group material rgba width"),
    "mujoco/tendon": ElementRow(),
    "spatial": _tendon("group material rgba width"),
    "spatial/site": ElementRow("site"),
    "spatial/geom": whole_element("moves"),
    "pulley": ElementRow("divisor"),
    "fixed": _tendon("group"),
    "fixed/joint": ElementRow("joint coef"),
    "equality": ElementRow("active class", softness="solref solimp"),
    "connect": _equality("body1 body2 anchor site1 site2"),
    "weld": _equality("body1 body2 anchor relpose site1 site2"),
    "equality/joint": _equality("joint1 joint2 polycoef"),
    "equality/tendon": _equality("tendon1 tendon2 polycoef"),
    "equality/flex": whole_element("moves"),
    "flexvert": whole_element("moves"),
    "flexstrain": whole_element("moves"),
    "distance": whole_element("moves"),
    # ---- drives ----
    "actuator": ElementRow(),
    "general": ElementRow(
        f"{_DRIVE} actdim actearly actlimited actrange biasprm biastype body dynprm dyntype "
        "gainprm gaintype inheritrange",
        harmless=f"{_QUIET} input ffrange velrange",  # of gains that we do not read
        moves=_DELAY,
    ),
    "motor": _actuator(""),
    "position": _actuator("kp kv dampratio timeconst inheritrange"),
    "velocity": _actuator("kv"),
    "intvelocity": _actuator("kp kv dampratio inheritrange actlimited actrange"),
    "damper": _actuator("kv"),
    "cylinder": _actuator("area diameter bias timeconst"),
    **dict.fromkeys(
        ("orientation", "pid", "muscle", "adhesion", "dcmotor"), whole_element("moves")
    ),
    "keyframe": ElementRow(),
    "key": ElementRow(
        "name time qpos qvel act ctrl", harmless="mpos mquat", moves={"plastic": None}
    ),
}  # fmt: skip
MJCF: Final = ElementTable(_ROWS, children=False, stand_ins=("mujocoinclude",))
