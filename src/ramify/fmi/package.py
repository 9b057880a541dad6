"""Functional mock-up units as files: description, C sources and libraries in one archive."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from ramify.core.arrays import flag
from ramify.core.errors import RamifyError, StateError
from ramify.core.html import text as escape
from ramify.core.messages import near
from ramify.core.names import names_of, one_of
from ramify.documents.writing import whole_file
from ramify.drives.machine_forces import actuator_text
from ramify.emit.c99 import c_library, identifier
from ramify.fmi.description import SOURCES, Version, build_description, model_description
from ramify.fmi.machine_unit import Inputs, MachineUnit
from ramify.integrate.closed_start import closed_start
from ramify.model.configuration import checked
from ramify.model.robot import Robot, the_robot
from ramify.plant.make_field import ControlLike, GroundLike, PlantOptions, make_field
from ramify.runtime.cache import directory
from ramify.runtime.cache_keys import digest

PLATFORMS: Final = {
    "x86_64-linux": ("linux64", ".so", "x86_64-linux-gnu"),
    "aarch64-linux": ("aarch64-linux", ".so", "aarch64-linux-gnu"),
    "x86_64-windows": ("win64", ".dll", "x86_64-windows-gnu"),
    "x86_64-darwin": ("darwin64", ".dylib", "x86_64-macos"),
    "aarch64-darwin": ("aarch64-darwin", ".dylib", "aarch64-macos"),
}
"""Platforms by their names in FMI 3.0: the name in FMI 2.0, the suffix of a library, and zig's
name.
"""
_QUICKLY: Final = (
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    '#pragma GCC optimize("O1") /* -O2 takes three times as long to compile */\n'
    "#endif\n\n"
)
_ARCHIVED = (1980, 1, 1, 0, 0, 0)  # one date for all entries: the same unit gives the same bytes


def to_fmu(
    model: Robot,
    path: str | os.PathLike[str],
    *,
    version: Version = "3.0",
    inputs: Inputs | Literal["auto"] = "auto",
    frames: Sequence[str] | None = None,
    control: ControlLike = None,
    ground: GroundLike = None,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    damping: ArrayLike = 0.0,
    derivatives: bool = True,
    platforms: Sequence[str] | Literal["auto"] = "auto",
) -> Path:
    """Write the whole machine as a functional mock-up unit for model exchange and co-simulation.

    version: of FMI, "3.0" or "2.0". inputs: "forces" of the joints (nv), "commands" of the
    actuators, or "none"; "auto" takes commands where the robot has actuators and no controller.
    frames: links and frames whose pose is an output, by default the named frames of the robot.
    control, ground, damping, q0, v0: as for rf.simulate; a controller must be continuous.
    derivatives: whether the unit gives directional derivatives, whose code is three times that of
    the machine. platforms: for which to compile, of "x86_64-linux", "aarch64-linux",
    "x86_64-windows", "x86_64-darwin", "aarch64-darwin"; () for sources alone. "auto" compiles for
    this platform if there is a C compiler: cc, or the one of the ``ziglang`` package, which serves
    all platforms.

    The sources are always inside. Raises ModelError, StateError or SimulationError for parts that
    do not fit, RamifyError where a library cannot be compiled.
    """
    the_robot(model)
    one_of("version", version, ("2.0", "3.0"))
    one_of("inputs", inputs, ("auto", "forces", "commands", "none"))
    chosen = names_of("platforms", platforms)
    field = make_field(model, control, PlantOptions(damping, ground))
    commanded = bool(model.actuators) and field.control is None
    driven: Inputs = inputs if inputs != "auto" else "commands" if commanded else "forces"
    q = model.neutral() if q0 is None else checked(model, "q0", q0, model.nq)
    v = np.zeros(model.nv) if v0 is None else checked(model, "v0", v0, model.nv)
    if q.ndim != 1 or v.ndim != 1:
        raise StateError("a unit starts from one state: q0 and v0 must be one row each")
    if model.loops:
        q, v, _ = closed_start(model, q0, q, v)
    start = field.start(q, v)[: field.state_slices[2].stop]
    if driven == "commands":
        start = np.append(start, [0.0] * actuator_text(model).states)
    shown = (
        tuple(model.frames) if frames is None else tuple(dict.fromkeys(names_of("frames", frames)))
    )
    unit = MachineUnit(field, start, driven, shown, flag("derivatives", derivatives))
    with whole_file(path) as file:
        entries = _entries(unit, version, chosen)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in entries.items():
                archive.writestr(zipfile.ZipInfo(name, _ARCHIVED), content, zipfile.ZIP_DEFLATED)
    return Path(path)


def _entries(unit: MachineUnit, version: Version, platforms: Sequence[str]) -> dict[str, bytes]:
    """The files of the archive by their names."""
    name = identifier(unit.field.model.name)
    sources = _sources(unit, version)
    token = digest(*sources.values(), version)[:32]
    sources["sizes.h"] += f'#define TOKEN "{token}"\n'
    out = {"modelDescription.xml": model_description(unit, name, token, version)}
    if version == "3.0":
        out["sources/buildDescription.xml"] = build_description(name)
    out |= {f"sources/{key}": text for key, text in sources.items()}
    out["documentation/index.html"] = _documentation(unit)
    entries = {key: text.encode() for key, text in out.items()}
    for platform, library in _libraries(sources, platforms).items():
        older, suffix, _ = PLATFORMS[platform]
        folder = platform if version == "3.0" else older
        entries[f"binaries/{folder}/{name}{suffix}"] = library
    return entries


def _sources(unit: MachineUnit, version: Version) -> dict[str, str]:
    """The C files: the programs of the machine, its sizes, the integrator and FMI's functions."""
    header, source = c_library(unit.programs, "machine", "machine")
    slopes, slopes_source = c_library(unit.tangents, "machine", "derivatives")
    start = ", ".join(repr(float(x)) for x in unit.start)
    sizes = (
        f"#define NQ {unit.field.model.nq}\n#define NV {unit.field.model.nv}\n"
        f"#define NX {unit.states}\n#define NU {unit.inputs}\n#define NW {unit.shown}\n"
        f"#define NE {len(unit.points)}\n#define START {{{start}}}\n"
        f"#define DERIVATIVES {int(unit.derivatives)}\n"
    )
    here = files("ramify.fmi")
    return {
        "machine.h": header,
        "machine.c": source,
        "derivatives.h": slopes,
        "derivatives.c": _QUICKLY + slopes_source,
        "sizes.h": sizes,
        "solver.h": here.joinpath("solver.h").read_text("utf-8"),
        "shared.h": here.joinpath("shared.h").read_text("utf-8"),
        "unit.c": here.joinpath(f"unit{version[0]}.c").read_text("utf-8"),
    }


def _documentation(unit: MachineUnit) -> str:
    rows = "".join(
        f"<tr><td>{escape(x.name)}<td>{x.causality}<td>{escape(x.unit)}<td>{escape(x.description)}"
        for x in unit.variables
    )
    title = escape(unit.field.model.name)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<h1>{title}</h1><p>SI units, radians. Co-simulation steps with an adaptive method of "
        "order 5 and holds the inputs during a communication step. Loops are closed after each "
        "of its steps; in model exchange they are not.</p>"
        f"<table><tr><th>Variable<th>Causality<th>Unit<th>Meaning{rows}</table></html>\n"
    )


# ---- compiling ----


def this_platform() -> str | None:
    """This platform as FMI 3.0 names it, if units can be compiled for it."""
    machine = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
    tag = sysconfig.get_platform().replace("-", "_").lower()
    system = {"linux": "linux", "win": "windows", "mac": "darwin"}
    own = next((name for key, name in system.items() if tag.startswith(key)), None)
    chip = next((name for key, name in machine.items() if tag.endswith(key)), None)
    found = f"{chip}-{own}"
    return found if found in PLATFORMS else None


def _libraries(sources: dict[str, str], platforms: Sequence[str]) -> dict[str, bytes]:
    host = this_platform()
    if platforms == ["auto"]:
        wanted = [host] if host and _compiler(host, host) else []
    else:
        wanted = list(dict.fromkeys(platforms))
    for platform in wanted:
        if platform not in PLATFORMS:
            raise RamifyError(f"no platform is named {platform!r}{near(platform, [*PLATFORMS])}")
        if _compiler(platform, host) is None:
            raise RamifyError(
                f"no C compiler for {platform} was found; install one with: "
                "pip install 'ramify[fmi]'"
            )
    return {platform: _compiled(sources, platform, host) for platform in wanted}


def _compiler(platform: str, host: str | None) -> list[str] | None:
    cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if platform == host and cc:
        return [cc]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[platform][2]]
    return None


def _compiled(sources: dict[str, str], platform: str, host: str | None) -> bytes:
    compiler = _compiler(platform, host)
    assert compiler is not None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            Path(folder, name).write_text(text, "utf-8")
        target = Path(folder, f"unit{PLATFORMS[platform][1]}")
        # -ffp-contract=off: the same numbers on every platform
        command = [*compiler, "-std=c99", "-O2", "-ffp-contract=off", "-shared"]
        command += [] if "windows" in platform else ["-fPIC", "-fvisibility=hidden"]
        command += ["-o", str(target), *(str(Path(folder, name)) for name in SOURCES)]
        command += [] if "windows" in platform else ["-lm"]
        kept = directory()
        own_cache = {"ZIG_GLOBAL_CACHE_DIR": str(kept / "zig")} if kept else {}
        environment = {**own_cache, **os.environ}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RamifyError(
                f"the unit could not be compiled for {platform}: {done.stderr.strip()[-800:]}"
            )
        return target.read_bytes()
