"""Mistakes in robot files: each is named with its place, all at once, and nothing but a model or a
ModelError comes out.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_files import FULL, ONE, refused

import ramify as rf
from ramify.api.builders import as_model
from ramify.documents.yaml_text import MAX_BYTES
from ramify.files.load import read_yaml

read_yaml = as_model(read_yaml)

# ---- mistakes ----

IN = "    "  # within a link
F = "    frame: {}\n"
TWO = "name: r\nlinks:\n  - name: a\n    frame: {}\n  - name: b\n    parent: a\n"
B = TWO + F


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (TWO, "5:5: links.1 (link 'b'): one of dh, classical_dh, frame is missing"),
        (B + IN + "mass: -2\n", "8:11: links.1.mass (link 'b'): -2 must be"),
        (B + IN + "mas: 2\n", "8:5: links.1.mas (link 'b'): unknown key; did you mean 'mass'?"),
        (
            B + IN + "mass: 1\n    mass: 2\n",
            "9:5: links.1.mass: duplicate key, first in line 8",
        ),
        (
            B + IN + "dh: {a: 0, alpha: 0, b: 0}\n",
            "7:12: links.1.frame (link 'b'): dh and frame exclude each other",
        ),
        (
            TWO + IN + "dh: {a: 0, b: 0}\n",
            "7:9: links.1.dh (link 'b'): one of alpha, alpha_deg is missing",
        ),
        (
            TWO + IN + "dh: {alpha: 0, b: 0}\n",
            "7:9: links.1.dh.a (link 'b'): is missing; a row has a, alpha, b, theta",
        ),
        (
            TWO + IN + "dh: {a: 0, alpha: 0, b: 0, d: 0}\n",
            "7:35: links.1.dh.d (link 'b'): b and d exclude each other; give one of b, d",
        ),
        (
            TWO + IN + "dh: {a: 0, alpha: 0, b: 0, e: 0}\n",
            "7:32: links.1.dh.e (link 'b'): unknown key; there are a, b, d, alpha",
        ),
        (
            TWO + IN + "dh: {a: 0, alpha: 0, b: 0}\n    joint: {axis: x}\n",
            "8:19: links.1.joint.axis (link 'b'): a dh row has its joint along z",
        ),
        (
            B + IN + "joint: {type: hinge}\n",
            "8:19: links.1.joint.type (link 'b'): no joint type is called 'hinge'",
        ),
        (
            B + IN + "joint: revolte\n",
            "8:12: links.1.joint.type (link 'b'): no joint type is called 'revolte'; did you mean "
            "'revolute'?",
        ),
        (
            B + IN + "joint: {type: universal, sequence: XX}\n",
            "8:40: links.1.joint.sequence (link 'b'): sequence 'XX' does not suit",
        ),
        (B + IN + "joint: helical\n", "8:12: links.1.joint.pitch (link 'b'): pitch 0.0 must be"),
        (
            B + IN + "joint: {limits: [2, 1]}\n",
            "8:21: links.1.joint.limits (link 'b'): lower limit 2.0 exceeds",
        ),
        (
            B + IN + "joint: {axis: [0, 0, 0]}\n",
            "8:19: links.1.joint.axis (link 'b'): axis [0.0, 0.0, 0.0] must be",
        ),
        (
            B + IN + "joint: {actuated: 1}\n",
            "8:23: links.1.joint.actuated (link 'b'): 1 must be true or false",
        ),
        (
            TWO + IN + "frame: {rotation: [[1, 0, 0], [0, 1, 0], [0, 0, 2]]}\n",
            "7:23: links.1.frame.rotation (link 'b'): no rotation matrix",
        ),
        (
            TWO + IN + "frame: {rpy: [0, 0, 0], rpy_deg: [0, 0, 0]}\n",
            "7:38: links.1.frame.rpy_deg (link 'b'): rpy and rpy_deg exclude",
        ),
        (
            B + IN + "com: [0, .nan, 0]\n",
            "8:14: links.1.com.1 (link 'b'): nan is not a real number",
        ),
        (
            B + IN + "mass: .inf\n",
            "8:11: links.1.mass (link 'b'): inf must be a finite number ≥ 0",
        ),
        (
            B + IN + "com: [0, 0]\n",
            "8:10: links.1.com (link 'b'): 2 entries; it must be a list of 3 numbers",
        ),
        (
            B + IN + "com: 3\n",
            "8:10: links.1.com (link 'b'): 3 must be a list of 3 numbers",
        ),
        (
            B + IN + "inertia: [1, 1, -1]\n",
            "8:14: links.1.inertia (link 'b'): moments of inertia 1, 1, -1 kg m^2; none may be negative",
        ),
        (
            B + IN + "inertia: [[1, 2, 0], [0, 1, 0], [0, 0, 1]]\n",
            "8:14: links.1.inertia (link 'b'): the tensor is not symm",
        ),
        (B + IN + "inertia: {xx: 1, yy: 1}\n", "8:14: links.1.inertia.zz (link 'b'): is missing"),
        (
            B + IN + "shapes: [{box: [1, 1, 0]}]\n",
            "8:27: links.1.shapes.0.box.2 (link 'b'): 0 must be a finite number > 0",
        ),
        (
            B + IN + "shapes: [{xyz: [1, 1, 0]}]\n",
            "8:14: links.1.shapes.0 (link 'b'): one of box, cylinder, capsule, sphere is",
        ),
        (B + IN + "mass:\n", "links.1.mass: has no value"),
        (
            B + IN + "mass: !!float 1\n",
            "8:11: links.1.mass: the tag 'tag:yaml.org,2002:float' has no meaning",
        ),
        (
            TWO.replace("parent: a", "parent: c") + F,
            "6:13: links.1.parent (link 'b'): no link is named 'c'",
        ),
        (
            TWO.replace("name: b", "name: a") + F,
            "5:11: links.1.name (link 'a'): two links are named 'a'",
        ),
        (
            TWO.replace("name: b", "name: 7") + F,
            "5:11: links.1.name (link '7'): 7 is not a text; put it in quotes",
        ),
        (
            TWO.replace("parent: a", "parent: b") + F,
            "6:13: links.1.parent (link 'b'): the parents b -> b form a cycle",
        ),
        (B + "gravity: [0, 0]\n", "8:10: gravity: 2 entries; it must be"),
        (B + "modules: [[a], [c]]\n", "8:17: modules.1.0: no link is named 'c'; there are a, b"),
        (B + "modules: [[b]]\n", "8:10: modules: "),
        (B + "parameters: {pi: 3}\n", "8:14: parameters.pi: this name is taken"),
        (
            B + "parameters: {m: 3, 2x: n}\n",
            "8:20: parameters.2x: this name must be made of letters",
        ),
        (B + "  - use: leg\n", "8:10: links.2.use: no template is named 'leg'"),
        (B + "  - 5\n", "8:5: links.2: must be a mapping"),
        (
            "links: []\n",
            "1:8: links: an empty list must be a list with at least one entry",
        ),
        ("links: []\n", "1:1: name: is missing"),
        (
            "name: r\nlinks: [{name: a, frame: {}, joint: fixed}]\n",
            "2:8: links: robot 'r' has no moving link",
        ),
        (
            "name: module\nlinks: [{name: a, frame: {}, joint: fixed}]\n",
            "2:8: links: robot 'module' has no moving link",
        ),
        ("- 1\n", "1:1: a robot file is a mapping"),
        ("name: [\n", "not YAML: "),
        ("name: r\n---\nname: s\n", "2:1: a second document starts here"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, mistake: str) -> None:
    assert any(mistake in line for line in refused(text)), refused(text)


def test_all_mistakes_at_once_in_the_order_of_the_file() -> None:
    changes = [("mass: 10", "mass: -10"), ("parent: column", "parent: column_"), ("gravity", "gravty"), ("size/2", "sized/2"),
               ("sequence: ZYZ", "sequence: ZZY"), ("use: finger, prefix: left_", "use: fingr, prefix: left_")]  # fmt: skip
    text = FULL
    for change in changes:
        text = text.replace(*change)
    lines = refused(text)
    assert [line.split(": ")[1].split(" ")[0] for line in lines] == [
        "gravty", "templates.finger.links.0.com.2", "links.0.mass", "links.1.parent", "links.2.joint.sequence", "links.4.use",
    ]  # fmt: skip
    assert [int(line.split(":")[0]) for line in lines] == sorted(
        int(line.split(":")[0]) for line in lines
    )
    assert (
        sum("sized/2" in line or "'sized'" in line for line in lines) == 1
    )  # once, though the template is used twice


@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        (
            ("links: [{use: t}]", "links: [{use: t, with: {sizes: 2}}]"),
            "links.0.with.sizes: the template 't' has no such parameter",
        ),
        (
            ("links: [{use: t}]", "links: [{use: t, repeat: 2, series: 3}]"),
            "repeat and series exclude each other",
        ),
        (("links: [{use: t}]", "links: [{use: t, repeat: 2}]"), "two links are named 'a'"),
        (
            ("links: [{use: t}]", "links: [{use: t, repeat: 1e9}]"),
            "1000000000 copies; a robot has at most",
        ),
        (("links: [{use: t}]", "links: [{use: t, mirror: w}]"), "must be 'x', 'y' or 'z'"),
        (
            ("links: [{use: t}]", "links: [{use: t, parent: q}]"),
            "links.0.parent (link 'a'): no link is named 'q'",
        ),
        (
            ("links: [{use: t}]", "links: [{use: t, prefx: q}]"),
            "links.0.prefx: unknown key; did you mean 'prefix'?",
        ),
        (("joint: revolute", "joint: cylindrical"), "a cylindrical joint has no mirror image"),
        (
            ("links: [{use: t}]", "links: [{name: q, frame: {}}]"),
            "templates.t.links.0.mass (link 'a'): no parameter is named 'sze'",
        ),
        (
            ("- name: a", "- use: t\n      - name: a"),
            "templates use each other without end: t -> t",
        ),
    ],
)
def test_mistakes_in_templates(change: tuple[str, str], mistake: str) -> None:
    text = """
name: r
templates:
  t:
    parameters: {size: 1}
    links:
      - name: a
        joint: revolute
        frame: {}
        mass: size
links: [{use: t}]
"""
    if "cylindrical" in mistake:
        text = text.replace("{use: t}", "{use: t, mirror: x}")
    if "sze" in mistake:
        text = text.replace("mass: size", "mass: sze")
    assert any(mistake in line for line in refused(text.replace(*change))), refused(
        text.replace(*change)
    )


# ---- bad input ----

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in itertools.pairwise("abcdefghijklm")
)
BOMB = "name: x\ntemplates:\n  a: {links: [{use: nothing}]}\n" + "".join(
    f"  {name}: {{links: [{{use: {before}, repeat: 20, prefix: p$}}]}}\n"
    for before, name in itertools.pairwise("abcdefghijklm")
)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"# nothing\n",
        b"\x00" * 100,
        bytes(range(256)),
        "name: x".encode("utf-16"),
        b"name: \xff",
        b"x" * (MAX_BYTES + 1),
        b"[" * 100_000,
        b"{a: " * 50_000,
        b"- " * 50_000,
        b"? " * 50_000,
        b"name: &a [*a]",
        b"name: *a",
        b'"' * 1000,
        LAUGHS.encode(),
        BOMB.encode() + b"links: [{use: m}]",
        (ONE.format("mass: " + "9" * 50_000)).encode(),
        (ONE.format("mass: '" + "9**" * 60 + "9'")).encode(),
        b"name: x\nlinks: *l\n",
        b"name: {1: 2}\nlinks: {3: 4}\ntemplates: [5]\nparameters: 6\nmodules: 7\ngravity: {}\n",
        b"? [a]\n: b\n",
        b"<<: {name: x}\n",
    ],
    ids=lambda data: repr(data[:16]),
)
def test_bad_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(data)
    with pytest.raises(rf.ModelError, match=r"bad\.yaml"):
        rf.load(path)


@pytest.mark.parametrize("links", ["[{use: t5}]", "[{name: q, frame: {}}]"])
def test_templates_within_templates_are_counted_before_they_are_written_out(links: str) -> None:
    nested = "".join(
        f"  t{i}: {{links: [{{use: t{i - 1}, repeat: 100, prefix: p$}}]}}\n" for i in range(1, 6)
    )
    text = f"name: x\ntemplates:\n  t0: {{links: [{{name: a, frame: {{}}}}]}}\n{nested}links: {links}\n"
    assert "too many links; a robot has at most 20000" in "".join(refused(text))


def test_templates_nest_so_deep() -> None:
    nested = "".join(f"  t{i}: {{links: [{{use: t{i - 1}}}]}}\n" for i in range(1, 2000))
    text = f"name: x\ntemplates:\n  t0: {{links: [{{name: a, frame: {{}}}}]}}\n{nested}links: [{{use: t1999}}]\n"
    assert "more than 32 levels deep" in "".join(refused(text))


@pytest.mark.parametrize("name", ["", b"chain", None, 3])
def test_what_is_no_name(name: Any) -> None:
    with pytest.raises(rf.ModelError, match="name of a built-in robot or the path"):
        rf.load(name)


def test_paths_that_are_no_robot_files(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(rf.ModelError, match=r"folder\.yaml is a directory"):
        rf.load(tmp_path / "folder.yaml")
    with pytest.raises(rf.ModelError, match=r"none\.yaml: there is no such file"):
        rf.load(tmp_path / "none.yaml")
    with pytest.raises(rf.ModelError, match="is a directory"):
        rf.load(tmp_path)
    with pytest.raises(rf.ModelError, match=r"has the suffix '\.txt'"):
        rf.load("robot.txt")
    with pytest.raises(rf.ModelError, match="cannot be read or written: no path holds a NUL"):
        rf.load("a\0b.yaml")


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(
        rf.ModelError, match="no built-in robot is named 'kuka_kr6'; did you mean 'kuka_kr5'"
    ):
        rf.load("kuka_kr6")


def test_importing_ramify_reads_no_yaml_library() -> None:
    probe = "import sys, ramify; ramify.robots(); print([m for m in ('pydantic', 'ruamel.yaml') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def loads_or_refuses(text: str | bytes) -> None:
    with contextlib.suppress(rf.ModelError):
        model = read_yaml(text if isinstance(text, str) else text.decode("utf-8", errors="replace"))
        assert all(np.isfinite(link.M.m) for link in model.skeleton.links)


@settings(max_examples=150)
@given(st.data())
def test_random_changes_of_bytes(data: st.DataObject) -> None:
    raw = bytearray(FULL.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        cut = data.draw(st.integers(0, 12))
        raw[at : at + cut] = data.draw(
            st.binary(max_size=6)
            | st.sampled_from([b": ", b"\n  - ", b"{", b"]", b"&a", b"*a", b"'"])
        )
    loads_or_refuses(bytes(raw))


VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["a", "b", "length", "pi", "x", "1e400"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["name", "xx", "type", "a", "use"]), inner, max_size=3)
    ),
    max_leaves=6,
)
DOCUMENT: Any = {
    "name": "d",
    "gravity": [0, 0, -9.81],
    "parameters": {"length": 0.4},
    "templates": {"t": {"parameters": {"s": 1}, "links": [{"name": "c", "frame": {"xyz": [0, 0, "s"]}, "mass": 1}]}},
    "links": [
        {"name": "a", "joint": {"type": "revolute", "axis": [0, 1, 0]}, "frame": {"xyz": [0, 0, 1], "rpy": [0, 0, 1]},
         "mass": 1, "com": [0, 0, 1], "inertia": {"xx": 1, "yy": 1, "zz": 1}, "shapes": [{"box": [1, 1, 1]}],
         "points": {"p": [0, 0, 0]}},
        {"name": "b", "parent": "a", "dh": {"a": "length", "alpha": 0, "b": 0}, "inertia": [1, 1, 1]},
        {"use": "t", "prefix": "p_", "parent": "b", "repeat": 1, "mirror": "x", "with": {"s": 2}},
    ],
    "modules": [["a", "b", "p_c"]],
}  # fmt: skip


def written(value: Any) -> str:
    """Any nested value as YAML in flow style."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{written(str(key))}: {written(entry)}" for key, entry in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return (
            '"'
            + "".join(
                f"\\U{ord(c):08x}" if not 32 <= ord(c) < 127 or c in '"\\' else c for c in value
            )
            + '"'
        )
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value).replace("inf", ".inf").replace("nan", ".nan")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a nested value."""
    entries = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [place for key, entry in entries for place in [(value, key), *places(entry)]]


@settings(max_examples=80)
@given(st.data())
def test_random_changes_of_structure(data: st.DataObject) -> None:
    document = copy.deepcopy(DOCUMENT)
    for _ in range(data.draw(st.integers(1, 3))):
        spots = places(document)
        if not spots:
            break
        container, key = data.draw(st.sampled_from(spots))
        if data.draw(st.booleans()):
            container[key] = data.draw(VALUES)
        else:
            del container[key]
    loads_or_refuses(written(document))


def test_the_document_of_the_random_tests_is_sound() -> None:
    assert read_yaml(written(DOCUMENT)).nv == 3


@pytest.mark.parametrize(
    "text",
    [
        "approximately as in the manufacturer's datasheet",
        "a" * 199 + "'",
        "1" * 199 + "'",
        "1 + " * 49 + "'",
        "(" * 199 + "'",
    ],
)
def test_a_sentence_is_refused_as_a_number_at_once(text: str) -> None:
    """In a process of its own, so that a reader that hangs fails instead of hanging the tests."""
    program = f"from ramify.documents.expression import evaluate\nevaluate({text!r}, {{}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert "ExpressionError" in done.stderr
    assert "is not a number" in done.stderr


@pytest.mark.parametrize(
    ("line", "column", "what"),
    [
        ("links: [{use: t, with: {size: 1, sizes: 2}}]", "sizes", "has no such parameter"),
        ("links: [{use: t, prefx: q}]", "prefx", "unknown key"),
        ("links: [{use: tt}]", "tt", "no template is named"),
        ("links: [{use: t, mirror: w}]", "w}", "must be"),
        ("links: [{use: t, parent: q}]", "q}", "no link is named"),
    ],
)
def test_mistakes_point_at_the_key_or_at_the_value(line: str, column: str, what: str) -> None:
    """Whichever of them is wrong."""
    text = "name: r\ntemplates: {t: {parameters: {size: 1}, links: [{name: a, frame: {}, mass: size}]}}\n"
    (said,) = (x for x in refused(text + line) if what in x)
    assert f"3:{line.index(column) + 1}:" in said
