"""Files that mean harm or are broken: a ModelError (or a model) within a second and within bounds
of memory, whatever they hold.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

import ramify as rf
from ramify.api.builders import as_model
from ramify.files.urdf import parse_urdf, read_urdf

read_urdf, parse_urdf = as_model(read_urdf), as_model(parse_urdf)

MEGABYTES = 400

LINK = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
GOOD = f"""<?xml version="1.0"?>
<robot name="two">
  <link name="base"/>
  <link name="arm">{LINK}<visual><geometry><mesh filename="package://two/arm.stl"/></geometry></visual></link>
  <link name="hand">{LINK}<visual><origin xyz="0 0 1" rpy="0 0 1"/><geometry><box size="1 1 1"/></geometry></visual></link>
  <joint name="a" type="revolute">
    <parent link="base"/><child link="arm"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="h" type="continuous"><parent link="arm"/><child link="hand"/><origin xyz="1 0 0"/><axis xyz="0 1 0"/></joint>
</robot>
"""


def chain(n: int) -> str:
    links = "".join(f'<link name="l{i}">{LINK if i else ""}</link>' for i in range(n))
    ends = '<parent link="l{1}"/><child link="l{0}"/>'
    joint = f'<joint name="j{{0}}" type="continuous">{ends}<origin xyz="0 0 1"/><axis xyz="0 1 0"/></joint>'
    return (
        f'<robot name="chain">{links}{"".join(joint.format(i, i - 1) for i in range(1, n))}</robot>'
    )


def ring(n: int) -> str:
    joint = '<joint name="j{0}" type="continuous"><parent link="l{0}"/><child link="l{1}"/></joint>'
    return chain(n).replace("</robot>", joint.format(n - 1, 0).replace('"j', '"k') + "</robot>")


def billion_laughs(where: str) -> str:
    entities = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 20))
    return f'<!DOCTYPE robot [<!ENTITY a0 "ha">{entities}]>' + where


DOCTYPES = {
    "bomb in a text": billion_laughs('<robot name="r">&a19;</robot>'),
    "bomb in an attribute": billion_laughs('<robot name="&a19;"/>'),
    "bomb behind comments": "<!-- > -->\n<?pi <!x?>\n" + billion_laughs('<robot name="&a19;"/>'),
    "external entity": '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r">&x;</robot>',
    "external entity in a parameter": '<!DOCTYPE robot [<!ENTITY % x SYSTEM "http://localhost:9/x"> %x;]><robot name="r"/>',
    "external DTD": '<!DOCTYPE robot SYSTEM "http://localhost:9/robot.dtd"><robot name="r"/>',
    "quadratic blowup": f'<!DOCTYPE r [<!ENTITY x "{"x" * 100_000}">]><robot name="{"&x;" * 10_000}"/>',
}
BROKEN = {
    "empty": b"",
    "blank": b" \n" * 1000,
    "zeros": b"\0" * 100_000,
    "binary": bytes(range(256)) * 1000,
    "UTF-16": GOOD.encode("utf-16"),
    "UTF-16 bomb": DOCTYPES["bomb in a text"].encode("utf-16"),
    "UTF-7 declared": b'<?xml version="1.0" encoding="utf-7"?>+ADw-robot/+AD4-',
    "an unknown encoding": b'<?xml version="1.0" encoding="klingon"?><robot/>',
    "truncated": GOOD.encode()[: len(GOOD) // 2],
    "two roots": b"<robot/><robot/>",
    "100000 levels": b"<robot>" + b"<link>" * 100_000,
    "100000 levels, closed": b"<robot>" + b"<link>" * 100_000 + b"</link>" * 100_000 + b"</robot>",
    "a tag of a megabyte": b"<" + b"x" * 1_000_000 + b"/>",
    "a million attributes": b"<robot " + b" ".join(b'a%d=""' % i for i in range(500_000)) + b"/>",
    "an unknown entity": GOOD.replace('name="two"', 'name="&two;"').encode(),
    "characters that XML has not": GOOD.replace('name="two"', 'name="&#0;&#8;"').encode(),
    "a number of a megabyte": GOOD.replace('value="1"', f'value="{"9" * 1_000_000}"').encode(),
    "a million numbers": GOOD.replace('xyz="1 0 0"', f'xyz="{"1 " * 1_000_000}"').encode(),
    "NaN": GOOD.replace('value="1"', 'value="NaN"').encode(),
    "infinite": GOOD.replace('ixx="1"', 'ixx="inf"').encode(),
    "1e400": GOOD.replace('value="1"', 'value="1e400"').encode(),
    "1e300": GOOD.replace('xyz="1 0 0"', 'xyz="1e300 0 0"').encode(),
    "a cycle": ring(2000).encode(),
    "many roots": b'<robot name="r">'
    + b"".join(b'<link name="l%d"/>' % i for i in range(20_000))
    + b"</robot>",
    "one name for all": b'<robot name="r">' + b'<link name="l"/>' * 50_000 + b"</robot>",
    "a million elements": b'<robot name="r">' + b"<x/>" * 1_000_000 + b"</robot>",
    "a chain without end": chain(25_000).encode(),
    "visuals without end": GOOD.replace(
        "</robot>", f'<link name="v">{"<visual/>" * 100_000}</link></robot>'
    ).encode(),
    "unknown parents": chain(2000).replace('parent link="', 'parent link="x').encode(),
}


def refused(data: bytes | str) -> str:
    """The message of a file that is not accepted."""
    with pytest.raises(rf.ModelError) as caught:
        parse_urdf(data, "evil.urdf")
    return str(caught.value)


@pytest.mark.parametrize("name", DOCTYPES)
def test_document_types_are_refused(name: str) -> None:
    said = refused(DOCTYPES[name])
    assert "document type declaration" in said
    assert "root:" not in said


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused(name: str) -> None:
    said = refused(BROKEN[name])
    assert "evil.urdf" in said
    assert len(said) < 20_000


def test_large_files_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.urdf"
    with open(path, "wb") as file:
        file.write(b"<robot>")
        file.truncate(50_000_000)
    with pytest.raises(rf.ModelError, match=r"50\.0 MB"):
        rf.load(path)


def test_a_long_chain_loads() -> None:
    model = parse_urdf(chain(5001))
    assert model.nv == 5000


def test_special_files_are_not_read() -> None:
    with pytest.raises(rf.ModelError, match="not a regular file"):
        read_urdf("/dev/zero")


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """All hostile files in one process of limited address space beyond what the imports take."""
    for i, data in enumerate([*BROKEN.values(), *(text.encode() for text in DOCTYPES.values())]):
        (tmp_path / f"{i}.urdf").write_bytes(data)
    code = """
import resource, sys
from pathlib import Path
import ramify as rf
import ramify.files.urdf
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
for path in Path(sys.argv[1]).iterdir():
    try:
        rf.load(path)
    except rf.ModelError:
        pass
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < MEGABYTES


# ---- fuzzing ----


def accepts(data: bytes | str) -> bool:
    """Whether it is a model; anything but a model or a ModelError fails the test."""
    try:
        model = parse_urdf(data)
    except rf.ModelError:
        return False
    assert model.nv > 0
    str(model.metadata["report"])
    return True


def test_the_seed_of_the_fuzz_is_good() -> None:
    assert accepts(GOOD)


@settings(max_examples=120)
@given(st.data())
def test_fuzzed_bytes(data: st.DataObject) -> None:
    text = bytearray(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(text) - 1))
        stop = at + data.draw(st.sampled_from([0, 1, 1, 5, 50]))
        text[at:stop] = data.draw(
            st.binary(max_size=3)
            | st.sampled_from([b"<", b">", b'"', b"&", b"<!--", b"\xff", b"]]>", b"0", b"-"])
        )
    accepts(bytes(text))


WORDS = st.sampled_from(
    ["", "0", "-1", "nan", "inf", "-inf", "1e400", "1e-400", "1e30", "-0", "0 0 0", "1 2 3", "1e29 1e29 0", "x", "base", "arm",
     "hand", "a", "h", "fixed", "floating", "planar", "prismatic", "../../x", "package://..", "\u0661", "1_0", "0x10", " 1 "]
)  # fmt: skip


@settings(max_examples=120)
@given(st.data())
def test_fuzzed_structure(data: st.DataObject) -> None:
    root = etree.fromstring(GOOD.encode())
    for _ in range(data.draw(st.integers(1, 6))):
        elements = list(root.iter())
        element = elements[data.draw(st.integers(0, len(elements) - 1))]
        other = elements[data.draw(st.integers(0, len(elements) - 1))]
        match data.draw(st.integers(0, 4)):
            case 0 if element.attrib:
                key = data.draw(st.sampled_from(sorted(element.attrib)))
                element.set(key, data.draw(WORDS))
            case 1 if element.attrib:
                del element.attrib[data.draw(st.sampled_from(sorted(element.attrib)))]
            case 2 if element is not root:
                element.getparent().remove(element)
            case 3 if len(elements) < 200:
                other.append(etree.fromstring(etree.tostring(element)))
            case 4:
                element.tag = data.draw(
                    st.sampled_from(
                        ["link", "joint", "inertial", "origin", "mass", "robot", "visual", "y"]
                    )
                )
    accepts(etree.tostring(root))
