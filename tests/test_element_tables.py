"""The tables of elements: they know all of the formats, and what they say changes the motion is a
warning at load and a finding.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import mujoco
import pytest
from lxml import etree
from packages import files, package

import ramify as rf
from ramify.documents.xml_text import parse_xml
from ramify.files.element_table import FATES, ElementTable
from ramify.files.import_report import ImportReport
from ramify.files.mjcf_elements import MJCF
from ramify.files.sdf_elements import SDF
from ramify.files.urdf_elements import URDF

# ---- MJCF: MuJoCo's own schema ----


def schema() -> dict[tuple[str, ...], list[str]]:
    """Attributes by the path of an element, as the installed MuJoCo prints them."""
    found: dict[tuple[str, ...], list[str]] = {}
    path: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head = re.match(r"( {0,15})(\S+) \([!?*R]\) *(.*)", line)
        if head:
            path[len(head[1]) // 3 :] = [head[2].removeprefix("(world)")]
            found[tuple(path)] = head[3].split()
        else:
            found[tuple(path)] += line.split()
    return found


def key_of(path: tuple[str, ...]) -> str | None:
    """The key of an element's row; None inside an element of one fate."""
    key, above = path[0], etree.Element(path[0])
    for tag in path[1:]:
        if "*" in MJCF.rows[key].fates:
            return None
        above = etree.SubElement(above, tag)
        key = MJCF.key(key, above)
    return key


def test_the_table_of_mjcf_knows_mujocos_schema() -> None:
    rows = schema()
    assert len(rows) > 150
    assert sum(map(len, rows.values())) > 1000
    unknown = []
    for path, attributes in rows.items():
        key = key_of(path)
        if key is None:
            continue
        if key not in MJCF.rows:
            unknown.append("/".join(path))
        else:
            names = [name for name in attributes if MJCF.fate(key, name) is None]
            unknown += [f"{'/'.join(path)} {name}" for name in names]
    assert not unknown, f"MuJoCo {mujoco.__version__}: give a fate to {unknown}"


@pytest.mark.parametrize("table", [MJCF, URDF, SDF])
def test_a_name_has_one_fate(table: ElementTable) -> None:
    for key, row in table.rows.items():
        said = [name for fate in FATES for name in row.fates if row.fates[name] == fate]
        listed = " ".join(getattr(row, fate) for fate in FATES[:-1]).split()
        assert len(said) == len(listed) + len(row.moves), key


JOINT = '<joint name="j" axis="0 1 0" {}/>'
WORLD = (
    '<mujoco>{option}<worldbody><site name="o"/><body name="a">{joint}<geom name="g" size="0.1" '
    'contype="0" conaffinity="0" {geom}/><site name="s" pos="0.3 0 0"/>{body}</body>{world}</worldbody>'
    "{more}</mujoco>"
)
PLAIN = {"option": "", "joint": JOINT.format(""), "geom": "", "body": "", "world": "", "more": ""}
CLOTH = '<flexcomp name="f" type="grid" count="2 2 1" dim="2" mass="1"/>'
FIXED = '<tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon>'
SPATIAL = '<tendon><spatial name="t" {}><site site="o"/>{}<site site="s"/></spatial></tendon>'
DRIVE = "<actuator><{} {}/></actuator>"
GENERAL = 'name="d" joint="j"'
FLUID = '<option density="1000"/>'


def _tendons(tag: str) -> Iterator[tuple[tuple[str, str], dict[str, str]]]:
    for name, said in {
        "limited": 'limited="true" range="0 1"', "range": 'range="0 1"', "margin": 'margin="0.1" range="0 1"',
        "frictionloss": 'frictionloss="1"', "armature": 'armature="1"', "springyield": 'springyield="0.1"',
    }.items():  # fmt: skip
        text = FIXED.format(said) if tag == "fixed" else SPATIAL.format(said, "")
        if tag == "tendon":
            text = f"<default><tendon {said}/></default>" + FIXED.format("")
        yield (tag, name), {"more": text}


SAMPLES: dict[tuple[str, str], dict[str, str]] = {
    ("option", "density"): {"option": FLUID},
    ("option", "viscosity"): {"option": '<option viscosity="1"/>'},
    ("option", "wind"): {"option": '<option wind="1 0 0" density="1"/>'},
    ("flag", "sleep"): {"option": '<option><flag sleep="enable"/></option>'},
    ("joint", "springyield"): {"joint": JOINT.format('stiffness="1" springyield="0.1"')},
    ("geom", "fluidshape"): {"geom": 'fluidshape="ellipsoid"', "option": FLUID},
    ("geom", "fluidcoef"): {"geom": 'fluidcoef="1 1 1 1 1"', "option": FLUID},
    ("geom", "adhesion"): {"geom": 'adhesion="1"'},
    ("geom", "surfacevel"): {"geom": 'surfacevel="1 0 0"'},
    ("pair", "adhesion"): {
        "world": '<geom name="floor" type="plane" size="1 1 1"/>',
        "more": '<contact><pair geom1="g" geom2="floor" adhesion="1"/></contact>',
    },
    ("flexcomp", "*"): {"world": CLOTH},
    ("flex", "*"): {
        "more": '<deformable><flex name="f" dim="1" body="a world" element="0 1"/></deformable>'
    },
    **dict(item for tag in ("tendon", "fixed", "spatial") for item in _tendons(tag)),
    ("spatial/geom", "*"): {"more": SPATIAL.format("", '<geom geom="g"/>')},
    ("equality/flex", "*"): {
        "world": CLOTH,
        "more": '<equality><flex flex="f"/></equality>',
    },
    ("general", "delay"): {"more": DRIVE.format("general", f'{GENERAL} nsample="2" delay="0.01"')},
    **{
        (tag, "delay"): {"more": DRIVE.format(tag, f'{GENERAL} nsample="2" delay="0.01"{more}')}
        for tag, more in {
            "motor": "", "position": "", "velocity": "", "intvelocity": ' actrange="0 1"',
            "damper": ' ctrlrange="0 1"', "cylinder": "",
        }.items()
    },
    ("pid", "*"): {"more": DRIVE.format("pid", f'{GENERAL} kp="1" ki="1"')},
    ("muscle", "*"): {"more": DRIVE.format("muscle", f'{GENERAL} lengthrange="0 1"')},
    ("adhesion", "*"): {"more": DRIVE.format("adhesion", 'name="d" body="a" ctrlrange="0 1"')},
    ("dcmotor", "*"): {
        "more": DRIVE.format("dcmotor", f'{GENERAL} motorconst="0.1" resistance="1"')
    },
}  # fmt: skip
ELSEWHERE = {
    ("flexvert", "*"), ("flexstrain", "*"), ("distance", "*"), ("orientation", "*"),
    ("plugin", "*"), ("key", "plastic"),
}  # fmt: skip
"""Rows whose elements need another one that is in the list, another release of MuJoCo, or a library
of its plugins.
"""


def test_every_row_of_mjcf_that_moves_has_a_sample() -> None:
    rows = {(key, name) for key, row in MJCF.rows.items() for name in row.moves}
    assert rows == {*SAMPLES, *ELSEWHERE}


@pytest.mark.parametrize("row", [row for row in SAMPLES if row not in ELSEWHERE], ids=str)
def test_what_mjcf_says_and_we_leave_out_is_a_warning_and_a_finding(
    row: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "robot.xml"
    path.write_text(WORLD.format(**PLAIN))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rf.load(path)
    path.write_text(WORLD.format(**PLAIN | SAMPLES[row]))
    with pytest.warns(rf.LeftOutWarning, match="changes the motion"):
        m = rf.load(path)
    assert "left-out" in {finding.code for finding in m.check()}


def test_what_a_table_does_not_know_is_a_warning(tmp_path: Path) -> None:
    report = ImportReport("robot.xml")
    text = b'<mujoco><option gravity="0 0 -1" magnetism="3"/><fields/><worldbody/></mujoco>'
    MJCF.report(parse_xml(text, "robot.xml"), report)
    said = [entry.message for entry in report if entry.moves]
    assert said == [
        "magnetism of <option> is not known to this version, so it is left out",
        "<fields> is not known to this version, so it is left out",
    ]


def test_files_of_the_world_have_nothing_that_the_tables_do_not_know() -> None:
    """A table that knew too little would warn of files that are read in full."""
    unknown: dict[str, str] = {}
    for path in [
        *Path(package("example-robot-data")).rglob("*.urdf"), *files("pybullet", ".urdf"),
        *files("gymnasium", ".xml"), *files("pybullet", ".sdf"),
    ]:  # fmt: skip
        try:
            root = parse_xml(path.read_bytes(), str(path), lambda line, text: None)
        except rf.ModelError:
            continue
        table = {"robot": URDF, "mujoco": MJCF, "mujocoinclude": MJCF, "sdf": SDF}.get(
            str(root.tag)
        )
        if table is None:
            continue
        report = ImportReport(str(path))
        table.report(root, report)
        unknown |= {x.message: str(path) for x in report if "not known" in x.message}
    assert not unknown


# ---- URDF and SDF: what their specifications list ----

URDF_LIST = """
robot: name version link joint material transmission gazebo
link: name type inertial visual collision
inertial: origin mass inertia
origin: xyz rpy
mass: value
inertia: ixx ixy ixz iyy iyz izz
joint: name type origin parent child axis calibration dynamics limit mimic safety_controller
axis: xyz
parent: link
child: link
dynamics: damping friction
limit: lower upper effort velocity acceleration deceleration jerk
mimic: joint multiplier offset
"""
SDF_LIST = """
sdf: version world model actor light
world: name audio wind include gravity magnetic_field atmosphere gui physics scene light frame joint model actor plugin road spherical_coordinates state population
model: name namespace canonical_link placement_frame static self_collide allow_auto_disable frame pose link joint plugin gripper include model enable_wind
link: name gravity enable_wind self_collide kinematic must_be_base_link velocity_decay pose inertial collision visual sensor projector audio_sink audio_source battery light particle_emitter
velocity_decay: linear angular
inertial: auto mass density auto_inertia_params pose inertia fluid_added_mass
inertia: ixx ixy ixz iyy iyz izz
pose: relative_to rotation_format degrees
frame: name attached_to pose
joint: name type parent child gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch axis axis2 physics pose sensor
axis: xyz dynamics limit mimic initial_position use_parent_model_frame
axis2: xyz dynamics limit mimic initial_position use_parent_model_frame
xyz: expressed_in
dynamics: damping friction spring_reference spring_stiffness
limit: lower upper effort velocity stiffness dissipation
mimic: joint axis multiplier offset reference
joint/physics: simbody ode provide_feedback
joint/physics/ode: cfm_damping implicit_spring_damper fudge_factor cfm erp bounce max_force velocity limit suspension
joint/physics/ode/limit: cfm erp
joint/physics/ode/suspension: cfm erp
"""


@pytest.mark.parametrize(("table", "listed"), [(URDF, URDF_LIST), (SDF, SDF_LIST)])
def test_the_tables_know_what_the_specifications_list(table: ElementTable, listed: str) -> None:
    for line in listed.strip().splitlines():
        key, _, names = line.partition(": ")
        unknown = [name for name in names.split() if table.fate(key, name) is None]
        assert not unknown, f"{key}: {unknown}"


ARM = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous">
<parent link="base"/><child link="a"/><axis xyz="0 1 0"/><dynamics damping="0.1"/></joint><gazebo reference="a"/></robot>"""
BOX = """<sdf version="1.11"><world name="w"><physics/><model name="m"><pose>0 0 0 0 0 0</pose><link name="a"><pose/>
<inertial><mass>1</mass><inertia/></inertial><velocity_decay/></link><joint name="j" type="revolute"><parent>world</parent>
<child>a</child><physics><ode><limit/><suspension/></ode></physics><axis><xyz>0 1 0</xyz><limit/></axis></joint>
</model></world></sdf>"""
CASES = [
    *(
        ("urdf", ARM, key, name, unmoved)
        for key, row in URDF.rows.items()
        for name, unmoved in row.moves.items()
    ),
    *(
        ("sdf", BOX, key, name, unmoved)
        for key, row in SDF.rows.items()
        for name, unmoved in row.moves.items()
    ),
]


@pytest.mark.parametrize(("suffix", "text", "key", "name", "unmoved"), CASES)
def test_what_urdf_and_sdf_say_and_we_leave_out_is_a_warning_and_a_finding(
    suffix: str, text: str, key: str, name: str, unmoved: str, tmp_path: Path
) -> None:
    """With a value that changes the motion it is; with one that does not, it is not."""
    attribute = name in ("auto", "relative_to", "frame")
    for value, moves in [("0.7", True), *((word, False) for word in unmoved.split()[:1])]:
        root = etree.fromstring(text)
        if name == "relative_to":
            value = "frame_a" if moves else "world"
        *_, at = (
            element for element in root.iter(key.rpartition("/")[2])
            if "/" not in key or str(element.getparent().tag) == key.split("/")[-2]
        )  # fmt: skip
        if attribute:
            at.set(name, value)
        else:
            etree.SubElement(at, name).text = value
        path = tmp_path / f"robot.{suffix}"
        path.write_bytes(etree.tostring(root))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            m = rf.load(path)
        said = [str(w.message) for w in caught if w.category is rf.LeftOutWarning]
        assert any(name in text for text in said) == moves, (said, value)
        assert ("left-out" in {finding.code for finding in m.check()}) == moves
