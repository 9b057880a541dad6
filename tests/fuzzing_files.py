"""Robot files of every format, changed in their structure and numbers: what loads also saves, and
loads again equal.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from lxml import etree
from sample_files import FULL
from saved_robots import saved
from test_couplings import EQUALITIES
from test_couplings import WORLD as COUPLED
from test_machines_mjcf import CHAIN, ROWS
from test_mjcf import ARM as MJCF
from test_redysim import FIXED, FLOATING
from test_saved_robots import full_robot
from test_sdf import SDF
from test_urdf import ARM as URDF

import ramify as rf
from ramify.core.errors import ModelError
from ramify.files.robot_writer import to_yaml

Rng = np.random.Generator
NUMBERS: Final = (
    "0", "1", "-1", "-0.0", "0.5", "2", "1e-8", "1e-320", "1e12", "1e30", "1.1e30", "1e200", "1e308",
    "-1e308", "3.15", "1e-17", "100", "inf", "nan", "360", "1.5707963267948966", "999999999",
)  # fmt: skip
WORDS: Final = (
    "true",
    "false",
    "",
    "world",
    "a",
    "x",
    "0 0 0",
    "1 0 0",
    "0.1 0.2 0.3",
    "hinge",
    "fixed",
    "ball",
)
_NUMBER: Final = re.compile(r"(?<![\w.#])[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?(?![\w.])")

MACHINE: Final = f"<mujoco><worldbody>{CHAIN}</worldbody>{ROWS}</mujoco>"
COUPLINGS: Final = COUPLED.format("".join(x.format("") for x in EQUALITIES.values()))
SDF_JOINTS: Final = SDF.replace(
    "<plugin",
    """<link name="e"><gravity>0</gravity><pose relative_to="lower">0 0 1 0 0 0</pose></link>
  <joint name="e" type="universal"><parent>lower</parent><child>e</child><axis><xyz>0 0 1</xyz></axis>
  <axis2><xyz>0.6 0.8 0</xyz><mimic joint="slide"><multiplier>2</multiplier></mimic></axis2></joint>
  <link name="f"/><joint name="turn" type="screw"><parent>e</parent><child>f</child><axis><xyz>0 1 0</xyz>
  <dynamics><spring_stiffness>2</spring_stiffness></dynamics></axis></joint><plugin""",
)  # fmt: skip


def one_of(rng: Rng, items: tuple[str, ...] | list[str]) -> str:
    return items[int(rng.integers(len(items)))]


def changed_number(text: str, rng: Rng) -> str:
    """One number of a text replaced, or changed a little."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    at = found[int(rng.integers(len(found)))]
    new = one_of(rng, NUMBERS) if rng.random() < 0.6 else repr(float(at[0]) * float(rng.normal()))
    return text[: at.start()] + new + text[at.end() :]


def changed_xml(text: str, rng: Rng) -> bytes:
    """Attributes and texts changed, exchanged and removed; elements removed, doubled, moved and
    renamed. The document stays well-formed.
    """
    root = etree.fromstring(text.encode())
    for _ in range(int(rng.integers(1, 5))):
        every = list(root.iter(etree.Element))[1:]
        if not every:
            break
        e = every[int(rng.integers(len(every)))]
        above = e.getparent()
        other = every[int(rng.integers(len(every)))]
        match int(rng.integers(9)):
            case 0 | 1 | 2 | 3 if e.attrib:
                key = one_of(rng, sorted(map(str, e.attrib)))
                e.set(key, changed_number(str(e.get(key)), rng))
            case 0 | 1 | 2 | 3:
                e.text = changed_number(e.text or "", rng)
            case 4 if e.attrib:
                key = one_of(rng, sorted(map(str, e.attrib)))
                e.set(key, one_of(rng, WORDS)) if rng.random() < 0.5 else e.attrib.pop(key)
            case 5:
                above.remove(e)
            case 6:
                above.append(etree.fromstring(etree.tostring(e)))
            case 7 if other not in [e, *e.iterdescendants(), above]:
                other.append(e)
            case _:
                for key, value in other.attrib.items():
                    e.set(key, value)
    return etree.tostring(root)


def changed_lines(text: str, rng: Rng) -> bytes:
    """Numbers changed; lines removed, doubled and exchanged."""
    for _ in range(int(rng.integers(1, 5))):
        lines = text.split("\n")
        i, j = (int(k) for k in rng.integers(len(lines), size=2))
        match int(rng.integers(8)):
            case 0:
                del lines[i]
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case _:
                lines[i] = changed_number(lines[i], rng)
        text = "\n".join(lines)
    return text.encode()


def round_trip(
    seeds: tuple[str, ...], suffix: str, change: Callable[[str, Rng], bytes]
) -> Callable[[Rng], None]:
    """A case: a changed file is refused, or its robot is checked, saved, and the same when read
    again; a few runs are saved, too.
    """

    def case(rng: Rng) -> None:
        data = change(one_of(rng, seeds), rng)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"robot{suffix}"
            path.write_bytes(data)
            model = rf.load(path)
            try:
                saved(model, "robot")
            except ModelError as error:
                raise AssertionError(f"what loads does not save: {error}") from error
            with np.errstate(all="ignore"):
                model.check()
            if rng.random() < 0.01 and not model.loops and model.nv < 5:
                run = rf.simulate(model, 1e-6, method="euler", step=1e-6)
                run.save(Path(folder) / "run.nc")
                assert to_yaml(rf.Result.open(Path(folder) / "run.nc").model) == to_yaml(model)

    return case


FILE_TARGETS: Final[dict[str, tuple[Callable[[Rng], None], int]]] = {
    "saved_yaml": (round_trip((FULL, to_yaml(full_robot())), ".yaml", changed_lines), 40),
    "saved_urdf": (round_trip((URDF,), ".urdf", changed_xml), 60),
    "saved_mjcf": (round_trip((MJCF, MACHINE, COUPLINGS), ".xml", changed_xml), 60),
    "saved_sdf": (round_trip((SDF, SDF_JOINTS), ".sdf", changed_xml), 60),
    "saved_redysim": (round_trip((FIXED, FLOATING), ".m", changed_lines), 40),
}
"""Formats, and how many cases the test suite runs."""
