"""What the gate before MuJoCo lets through and what it refuses, on both sides of each limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree

import ramify as rf
from ramify.files import mjcf_gate, xacro_files
from ramify.files.element_table import ElementTable
from ramify.files.import_report import ImportReport
from ramify.files.mjcf_elements import MJCF
from ramify.files.mjcf_gate import check_mjcf


def checked(folder: Path, text: str, name: str = "robot.xml", **files: str) -> list[Any]:
    """What the gate returns for a file of this text; ``files``: others, by name without suffix."""
    for other, inside in files.items():
        (folder / f"{other}.xml").write_text(inside)
    (folder / name).write_text(f"<mujoco>\n{text}\n</mujoco>")
    return check_mjcf(folder / name)


def verdict(folder: Path, text: str, **files: str) -> str:
    """The message of the gate without the name of the file, "" where it lets a text through."""
    try:
        checked(folder, text, **files)
    except rf.ModelError as error:
        return str(error).replace(f"{folder / 'robot.xml'}", "")
    return ""


# ---- attributes ----


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<joint range="1 2"/>', ""),
        ('<joint range="2 1"/>', ":2: range='2 1' of <joint> must have its lower end first"),
        ('<joint range="1 1"/>', ""),
        ('<joint actuatorfrcrange="-1 2"/>', ""),
        ('<joint actuatorfrcrange="0 2"/>', ""),
        ('<joint actuatorfrcrange="-2 0"/>', ""),
        ('<joint actuatorfrcrange="1 2"/>', ":2: actuatorfrcrange='1 2' of <joint> must contain 0: a drive that is off gives no force"),
        ('<joint actuatorfrcrange="-2 -1"/>', ":2: actuatorfrcrange='-2 -1' of <joint> must contain 0: a drive that is off gives no force"),
        ('<fixed actuatorfrcrange="1 2"/>', ""),
        ('<motor forcerange="1 2"/>', ""),
        ('<motor forcerange="2 1"/>', ":2: forcerange='2 1' of <motor> must have its lower end first"),
        ('<general actrange="2 1"/>', ":2: actrange='2 1' of <general> must have its lower end first"),
        ('<spatial range="2 1"/>', ":2: range='2 1' of <spatial> must have its lower end first"),
        ('<camera range="2 1"/>', ""),
        ('<joint stiffness="-1"/>', ":2: stiffness='-1' of <joint> must be ≥ 0"),
        ('<joint stiffness="0"/>', ""),
        ('<joint stiffness="1 -1 0"/>', ""),
        ('<freejoint armature="-1"/>', ":2: armature='-1' of <freejoint> must be ≥ 0"),
        ('<joint damping="1 -2 1"/>', ""),  # 1 - 2 v + v^2 touches 0
        ('<joint damping="1 -2.1 1"/>', ":2: damping='1 -2.1 1' of <joint> would make energy at some speed"),
        ('<joint damping="1 5 1"/>', ""),
        ('<joint damping="1 0 -0.1"/>', ":2: damping='1 0 -0.1' of <joint> would make energy at some speed"),
        ('<joint margin="-1"/>', ""),
        ('<motor gear="0 0 0 0 0 1"/>', ""),
        ('<motor gear="0"/>', ":2: gear='0' of <motor> must not be 0: it would drive nothing"),
        ('<motor gear="-1"/>', ""),
        ('<joint range="a b"/>', ""),  # MuJoCo reports it
        ('<body pos="1 inf 0"/>', ":2: pos='1 inf 0' of <body> is not finite; give finite numbers"),
        ('<body pos="1 -Infinity 0"/>', ":2: pos='1 -Infinity 0' of <body> is not finite; give finite numbers"),
        ('<body pos="NaN 0 0"/>', ":2: pos='NaN 0 0' of <body> is not finite; give finite numbers"),
        ('<body name="nan"/>', ""),
        ('<body pos="infant nano"/>', ""),
        ('<key qpos="1 nan"/>', ":2: qpos='1 nan' of <key> is not finite; give finite numbers"),
        ('<text data="nan"/>', ""),
        ('<size nkey="1000"/>', ""),
        ('<size nkey="1001"/>', ":2: nkey='1001' of <size> is too large; at most 1000"),
        ('<size njmax="10000"/>', ""),
        ('<size njmax="10001"/>', ":2: njmax='10001' of <size> is too large; at most 10000"),
        ('<size nuser_jnt="1000"/>', ""),
        ('<size nuser_jnt="1001"/>', ":2: nuser_jnt='1001' of <size> is too large; at most 1000"),
        ('<size nstack="100000000"/>', ""),
        ('<size nstack="100000001"/>', ":2: nstack='100000001' of <size> is too large; at most 100000000"),
        ('<size memory="1G"/>', ""),
        ('<size memory="1025M"/>', ":2: memory='1025M' of <size> is too large; at most 1073741824"),
        ('<size memory="1048577K"/>', ":2: memory='1048577K' of <size> is too large; at most 1073741824"),
        ('<size memory="1T"/>', ":2: memory='1T' of <size> is too large; at most 1073741824"),
        ('<size njmax="1K"/>', ":2: njmax='1K' must be a whole number"),
        ('<size memory="-1"/>', ""),
        ('<numeric size="1000000"/>', ""),
        ('<numeric size="500000"/><numeric size="500001"/>', ":2: the model has more than 1000000 numbers of <numeric>; make them smaller or fewer"),
        ('<hfield nrow="4096" ncol="4096"/>', ""),
        ('<hfield nrow="4096" ncol="4097"/>', ":2: the model has more than 16777216 cells of height fields; make them smaller or fewer"),
        ('<hfield file="../../secret.png"/>', ""),  # never opened
        ('<mesh params="200 3"/>', ""),
        ('<mesh params="3 200.5"/>', ":2: the model has more than 40000 vertices of built-in meshes; make them smaller or fewer"),
        ('<mesh params="3 x"/>', ":2: 'x' is not a number"),
        ('<compiler meshdir="/etc"/>', ":2: <compiler> names '/etc'; give a path relative to the model's folder"),
        ('<compiler texturedir="~x"/>', ":2: <compiler> names '~x'; give a path relative to the model's folder"),
        (r'<mesh file="\\x\a.stl"/>', None),
        ('<mesh file="a:b.stl"/>', None),
        ('<mesh file="x/a:b.stl"/>', ""),
        (f'<mesh file="{"x" * 1001}"/>', None),
        ('<mesh file="a&#9;b.stl"/>', None),
        ('<mesh file="none.stl"/>', ""),
        ('<mesh file="."/>', ""),  # a folder: MuJoCo reports it
    ],
)  # fmt: skip
def test_attributes(text: str, said: str | None, tmp_path: Path) -> None:
    found = verdict(tmp_path, text)
    if said is None:
        assert found.endswith("; give a path relative to the model's folder"), found
    else:
        assert found == said


# ---- how much a text unfolds into ----

BODY = "<body/>"


@pytest.mark.parametrize(
    ("what", "text", "number"),
    [
        ("elements", "<a/><b><c/></b>", 4),
        ("elements", '<replicate count="3"><b><c/></b></replicate>', 8),
        ("copies of elements", '<replicate count="3"><b><c/></b></replicate>', 4),
        ("copies of elements", '<replicate count="3"><replicate count="2"><c/></replicate></replicate>', 7),
        ("copies of elements", '<replicate count="0"><c/></replicate>', 0),
        ("bodies", f'{BODY}<replicate count="4">{BODY}</replicate>', 5),
        ("keyframes", "<key/><key/><key/>", 3),
        ("points of lattices", '<flexcomp count="3 4 5"/>', 60),
        ("points of lattices", '<composite count="3 0 5"/><composite count="2"/>', 17),
        ("points of lattices", '<flexcomp point="1 2 3 4 5 6"/>', 2),
        ("points of lattices", '<composite vertex="1 2 3 4 5 6 7 8 9" count="2"/>', 3),
        ("points of lattices", '<replicate count="5"><composite count="2"/></replicate>', 10),
    ],
)  # fmt: skip
def test_a_text_is_counted_as_it_unfolds(
    what: str, text: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mjcf_gate._MOST, what, number)  # type: ignore[arg-type]
    assert verdict(tmp_path, text) == ""
    monkeypatch.setitem(mjcf_gate._MOST, what, number - 1)  # type: ignore[arg-type]
    assert (
        verdict(tmp_path, text) == f": the model would have {number} {what}; at most {number - 1}"
    )


def test_attached_and_included_models_are_counted_as_often_as_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bodies here and three there; where one file is attached twice, all count twice."""
    part = f"<mujocoinclude>{BODY * 3}</mujocoinclude>"
    for text, number in (
        (f'{BODY * 2}<include file="part.xml"/>', 5),
        (f'{BODY * 2}<replicate count="4"><include file="part.xml"/></replicate>', 20),
        (f'{BODY * 2}<model file="part.xml"/><frame><attach/></frame>', 5),
        (f'{BODY * 2}<model file="part.xml"/><replicate count="3"><attach/><attach/></replicate>', 30),
    ):  # fmt: skip
        monkeypatch.setitem(mjcf_gate._MOST, "bodies", number)  # type: ignore[arg-type]
        assert verdict(tmp_path, text, part=part) == ""
        monkeypatch.setitem(mjcf_gate._MOST, "bodies", number - 1)  # type: ignore[arg-type]
        assert f"would have {number} bodies" in verdict(tmp_path, text, part=part)


def test_the_limits_of_a_model_are_those_of_the_documentation() -> None:
    assert mjcf_gate._MOST == {
        "copies of elements": 4_000, "points of lattices": 2_000, "bodies": 3_000,
        "keyframes": 1_000, "elements": 15_000,
    }  # fmt: skip
    assert (mjcf_gate.MAX_BYTES, mjcf_gate.MAX_FILES, mjcf_gate.MAX_NAMES) == (8 << 20, 100, 8_000)
    sizes = (mjcf_gate.MAX_ASSET, mjcf_gate.MAX_ASSETS, mjcf_gate.MAX_LATTICE)
    assert sizes == (64 << 20, 512 << 20, 256 << 10)


# ---- files ----


def test_included_files_come_after_the_one_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.xml").write_text('<mujoco><body pos="0 nan 0"/></mujoco>')
    (tmp_path / "sub" / "outer.xml").write_text('<mujoco><include file="inner.xml"/></mujoco>')
    with pytest.raises(rf.ModelError, match=r"inner\.xml:1: pos='0 nan 0'"):
        checked(tmp_path, '<include file="sub/outer.xml"/>')
    (tmp_path / "sub" / "inner.xml").write_text("<mujoco><body/></mujoco>")
    twice = '<include file="sub/outer.xml"/><include file="sub/outer.xml"/>'
    roots = checked(tmp_path, twice)
    assert [Path(name).name for name, _ in roots] == ["robot.xml", "outer.xml", "inner.xml"]
    assert [len(root) for _, root in roots] == [2, 1, 1]
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "a.xml").write_text("<mujoco/>")
    text = '<compiler assetdir="assets"/><include file="a.xml"/>'  # whatever the settings mean
    assert len(checked(tmp_path, text)) == 2


def test_as_many_files_and_names_as_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = "<mujocoinclude/>"
    text = '<include file="a.xml"/><include file="b.xml"/>'
    for most, said in ((3, ""), (2, "b.xml: the model includes more than 2 files")):
        monkeypatch.setattr(mjcf_gate, "MAX_FILES", most)
        assert verdict(tmp_path, text, a=part, b=part).endswith(said)
    monkeypatch.setattr(mjcf_gate, "MAX_FILES", 100)
    meshes = (
        '<compiler meshdir="m"/><mesh file="x.stl"/>'  # two folders for the folder and the mesh
    )
    for most, refused in ((4, False), (3, True)):
        monkeypatch.setattr(mjcf_gate, "MAX_NAMES", most)
        said = f":2: the model names too many files and folders; at most {most} places are searched"
        assert verdict(tmp_path, meshes) == (said if refused else "")


def test_sizes_of_meshes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.stl").write_bytes(b"x" * 1000)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.stl").write_bytes(b"x" * 3000)
    monkeypatch.setattr(mjcf_gate, "MAX_ASSET", 3000)
    monkeypatch.setattr(mjcf_gate, "MAX_ASSETS", 3000)
    monkeypatch.setattr(mjcf_gate, "MAX_LATTICE", 999)
    assert verdict(tmp_path, '<mesh file="a.stl"/>') == ""
    assert verdict(tmp_path, '<mesh file="sub/a.stl"/>') == ""  # a.stl of the folder may be meant
    assert verdict(tmp_path, '<mesh file="a.stl"/>' * 3) == ""
    said = ":2: the model has more than 3000 bytes of meshes; make them smaller or fewer"
    assert verdict(tmp_path, '<mesh file="a.stl"/>' * 4) == said
    lattice = ":2: <flexcomp> names a file of 0.0 MB; at most 0.0 MB"
    assert verdict(tmp_path, '<flexcomp file="a.stl"/>') == lattice
    monkeypatch.setattr(mjcf_gate, "MAX_LATTICE", 1000)
    assert verdict(tmp_path, '<flexcomp file="a.stl"/>') == ""
    monkeypatch.setattr(mjcf_gate, "MAX_ASSET", 2999)
    said = ":2: <mesh> names a file of 0.0 MB; at most 0.0 MB"
    assert verdict(tmp_path, '<mesh file="sub/a.stl"/>') == said
    text = '<compiler meshdir="sub"/><mesh file="a.stl"/>'
    assert verdict(tmp_path, text) == said
    (tmp_path / "b.stl").write_bytes(b"x" * 3000)
    (tmp_path / "sub" / "b.stl").write_bytes(b"x")
    assert (
        verdict(tmp_path, '<mesh file="sub/b.stl"/>') == said
    )  # with strippath it is the other one
    (tmp_path / "sub" / "c.stl").write_bytes(b"x" * 3000)
    outer = '<mujoco><compiler meshdir="."/><mesh file="c.stl"/></mujoco>'
    (tmp_path / "sub" / "outer.xml").write_text(
        outer
    )  # folders of an included file may be meant so
    assert verdict(tmp_path, '<include file="sub/outer.xml"/><mesh file="c.stl"/>').endswith(
        said[3:]
    )


def test_what_may_be_read_outside_the_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("a.stl", "a.obj", "a.msh", "a.STL", "a.skn", "a.png"):
        (tmp_path / name).write_text("x")
    (home / "in.png").write_text("x")
    (home / "hidden.stl").symlink_to(tmp_path / "a.png")
    (home / "shown.stl").symlink_to(tmp_path / "a.obj")
    for text, fine in {
        '<mesh file="../a.stl"/>': True, '<mesh file="../a.obj"/>': True,
        '<mesh file="../a.msh"/>': True, '<mesh file="../a.STL"/>': True,
        '<mesh file="../a.skn"/>': False, '<skin file="../a.skn"/>': True,
        '<skin file="../a.stl"/>': False, '<mesh file="../a.png"/>': False,
        '<mesh file="in.png"/>': True, '<mesh file="hidden.stl"/>': False,
        '<mesh file="shown.stl"/>': True, '<mesh content_type="x" file="../a.stl"/>': False,
        '<mesh content_type="x" file="in.png"/>': True, '<texture file="../a.png"/>': True,
        '<texture fileup="../a.png"/>': True, '<body file="../a.stl"/>': False,
    }.items():  # fmt: skip
        assert (verdict(home, text) == "") == fine, text


# ---- what becomes of elements and attributes ----

FATES = {
    "contact": ["geom condim", "geom friction", "geom solref", "geom margin", "geom adhesion",
                "option cone", "option impratio", "flag multiccd", "pair geom1", "contact x", "hfield size"],
    "softness": ["joint solreffriction", "equality solref", "weld torquescale", "connect solimp",
                 "fixed solreflimit", "composite/joint solreffix"],
    "drawn": ["geom rgba", "geom material", "joint group", "site size", "mesh texcoord", "visual x",
              "camera fovy", "light dir", "texture file", "skin x", "tendon width", "composite/skin x"],
    "harmless": ["option integrator", "option solver", "option iterations", "option magnetic", "flag energy",
                 "flag warmstart", "body user", "joint user", "key mpos", "size njmax", "statistic center",
                 "sensor x", "custom x", "motor group", "general lengthrange", "body sleep", "general ffrange"],
    "carried": ["geom density", "geom mass", "joint ref", "joint springref", "joint armature", "joint margin",
                "joint actuatorgravcomp", "body gravcomp", "body quat", "inertial fullinertia", "option gravity",
                "option timestep", "option actuatorgroupdisable", "flag gravity", "flag clampctrl",
                "flag refsafe", "compiler inertiafromgeom", "compiler settotalmass", "weld relpose",
                "connect anchor", "equality/joint polycoef", "fixed/joint coef", "pulley divisor",
                "spatial/site site", "position kv", "position dampratio", "cylinder area",
                "intvelocity actrange", "general biasprm", "general actearly", "key qvel", "key act",
                "replicate sep", "attach prefix", "freejoint align", "tendon springlength", "site fromto"],
    "moves": ["option density", "option viscosity", "option wind", "flag sleep", "joint springyield",
              "geom fluidcoef", "motor delay", "general delay", "spatial range", "fixed armature", "muscle x",
              "adhesion x", "flexcomp x", "plugin x", "spatial/geom x", "distance x", "key plastic"],
}  # fmt: skip


@pytest.mark.parametrize("fate", FATES)
def test_fates(fate: str) -> None:
    for said in FATES[fate]:
        key, name = said.split()
        assert MJCF.fate(key, name) == fate, said


def left_out(table: ElementTable, text: str, **options: Any) -> list[str]:
    report = ImportReport("robot")
    table.report(etree.fromstring(text), report, **options)
    return [str(entry) for entry in report.entries]


def test_what_a_report_names_of_a_document() -> None:
    assert left_out(MJCF, '<mujoco><option><flag sleep="disable"/></option></mujoco>') == []
    (one,) = left_out(MJCF, '<mujoco>\n<option>\n<flag sleep="enable"/></option></mujoco>')
    assert "line 3" in one
    assert "sleep enable of <flag> is left out" in one
    text = '<mujoco>\n<body knob="1"/>\n<body knob="2"/></mujoco>'
    (one,) = left_out(MJCF, text, file="part.xml")
    assert "part.xml, line 2" in one
    assert "knob of <body> is not known to this version, so it is left out, 2 times" in one
    (one,) = left_out(MJCF, "<mujoco><knob/></mujoco>")
    assert "<knob> is not known" in one
    assert left_out(MJCF, '<mujoco><visual knob="1"><x/></visual></mujoco>') == []


# ---- xacro ----

SPACE = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f'<robot {SPACE}>\n<link name="a"/>\n<link name="${{x}}"/><link name="${{y}}"/></robot>',
         (3, "<link> name='${x}'")),
        (f'<robot {SPACE} name="${{x}}"/>', (1, "<robot> name='${x}'")),
        (f'<robot {SPACE}><link name="a"><visual name="${{x}}"/></link></robot>', None),
        (f'<robot {SPACE}><link name="a"><visual><origin xyz="${{x}}"/></visual></link></robot>', None),
        (f'<robot {SPACE}><gazebo reference="${{x}}"/><transmission name="${{x}}"/></robot>', None),
        (f'<robot {SPACE}><link><collision name="${{x}}"/></link><material name="${{x}}"/></robot>', None),
        (f'<robot {SPACE}><xacro:macro name="m"><link name="${{x}}"/></xacro:macro></robot>', None),
        (f'<robot {SPACE}>\n<joint name="j">\n<limit effort="${{x}}"/></joint></robot>',
         (3, "<limit> effort='${x}'")),
        (f'<robot {SPACE}><link name="$(arg x)"/></robot>', None),
    ],
)  # fmt: skip
def test_expressions_that_xacro_left(text: str, found: Any) -> None:
    assert xacro_files.unexpanded(etree.fromstring(text)) == found


def test_macros_that_xacro_left() -> None:
    text = (
        f'<robot {SPACE}>\n<xacro:camera/>\n<link name="a"><xacro:camera/></link>\n'
        "<xacro:if><xacro:camera/><xacro:lamp/></xacro:if>\n<camera/></robot>"
    )
    root = etree.fromstring(text)
    assert xacro_files.leftover(root) == {"camera": (2, 2), "if": (4, 1)}
    assert [xacro_files.macro_name(one) for one in root] == ["camera", "", "if", ""]
    loose = etree.XML("<robot><xacro:arm/></robot>", etree.XMLParser(recover=True))
    assert xacro_files.macro_name(loose[0]) == "arm"


def test_what_xacro_says_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    asked: list[Any] = []

    def process(file: str) -> Any:
        asked.append(file)
        if isinstance(answer, BaseException):
            raise answer
        return SimpleNamespace(toxml=lambda: answer)

    monkeypatch.setitem(sys.modules, "xacro", SimpleNamespace(process_file=process))
    monkeypatch.setattr(xacro_files, "find_spec", lambda name: name)
    answer: Any = "<robot name='ü'/>"
    path = tmp_path / "a.xacro"
    assert xacro_files.expanded(path) == answer.encode()
    assert asked == [str(path)]
    for answer, said in (
        (ValueError("a  b\nc"), f"{path}: xacro refuses it: a b c"),
        (SystemExit(), f"{path}: xacro refuses it: SystemExit"),
        (KeyError("x" * 400), f"{path}: xacro refuses it: " + ("'" + "x" * 400)[:300]),
        (ValueError("unbound prefix: line 1"), f"{path}: xacro refuses it: unbound prefix: line 1; declare "
         'xmlns:xacro="http://www.ros.org/wiki/xacro" in <robot>, or take the left-over tags out'),
    ):  # fmt: skip
        with pytest.raises(rf.ModelError) as caught:
            xacro_files.expanded(path)
        assert str(caught.value) == said
    monkeypatch.setattr(xacro_files, "find_spec", lambda name: None)
    with pytest.raises(rf.ModelError, match=r"is a xacro file; install xacro \(pip install 'ramify\[xacro\]'\)"):  # fmt: skip
        xacro_files.expanded(path)
