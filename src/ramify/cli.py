"""The command line. Each command calls one public function of the library and prints what it returns.

Heavy modules are imported by the commands that need them, so that ``ramify --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

import ramify as rf

if TYPE_CHECKING:
    from ramify.model.joint import Joint
    from ramify.model.model import Model

app = App(name="ramify", version=rf.__version__, help="Dynamics of tree-type robots, compiled for the robot at hand.")

Robot = Annotated[str, Parameter(help="A built-in robot's name, or the path of a robot file.")]
Settings = Annotated[
    list[str] | None, Parameter(name="--set", consume_multiple=True, negative="", help="Parameters of the robot, such as n=7.")
]
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for programs to read.")]
Numbers = Annotated[list[float] | None, Parameter(consume_multiple=True, negative="")]

COUNTED = ["inverse_dynamics", "forward_dynamics", "mass_matrix", "bias"]


@app.command
def robots(*, json: AsJson = False) -> None:
    """List the built-in robots."""
    listed = [_load(name) for name in rf.robots()]
    data = [_summary(m) for m in listed]
    if json:
        _print_json(data)
        return
    columns = ("robot", "bodies", "degrees of freedom", "mass, kg", "")
    _print_table("Built-in robots", columns, [(d["name"], d["bodies"], d["nv"], d["mass"], d["description"]) for d in data])


@app.command
def info(robot: Robot, *, settings: Settings = None, json: AsJson = False) -> None:
    """Show a robot's bodies, joints, modules, masses and coordinates."""
    m = _load(robot, settings)
    module_of = {b: module.index + 1 for module in m.modules for b in module.bodies}
    bodies = [
        {
            "name": body.name,
            "parent": m.bodies[body.parent].name if body.parent >= 0 else None,
            "joint": body.joint.name,
            "type": " ".join((body.joint.kind, body.joint.sequence)).strip(),
            "coordinates": _with_units(body.joint.coordinates, _coordinate_units(body.joint)),
            "velocities": _with_units(body.joint.velocities, [f"{step.unit}/s" for step in body.joint.steps]),
            "actuated": body.joint.actuated,
            "module": module_of[i],
            "mass": body.mass,
            "com": body.com.tolist(),
            "inertia": body.inertia.tolist(),
        }
        for i, body in enumerate(m.bodies)
    ]
    if json:
        _print_json(_summary(m) | {"gravity": list(m.gravity), "bodies": bodies, "links": list(m.attached)})
        return
    parts = f"{_several(len(m.bodies), 'body', 'bodies')} in {_several(len(m.modules), 'module')}"
    _print_line(f"{m.name}: {parts}, {_several(m.nv, 'degree')} of freedom, {m.mass:.6g} kg")
    _print_line(f"gravity {_vector(m.gravity)} m/s^2")
    rows = [
        (
            i + 1, b["name"], b["parent"] or "(base)", b["module"], b["joint"], b["type"],
            ", ".join(f"{c['name']} [{c['unit']}]".replace(" []", "") for c in b["coordinates"]), b["mass"], _vector(b["com"]),
        )
        for i, b in enumerate(bodies)
    ]  # fmt: skip
    _print_table("", ("", "body", "parent", "module", "joint", "type", "coordinates", "mass, kg", "mass centre, m"), rows)
    merged = [name for name, place in m.attached.items() if place.body < 0 or m.bodies[place.body].name != name]
    if merged:
        _print_line(f"links merged into others by fixed joints: {', '.join(merged)}")


@app.command
def check(robot: Robot, *, settings: Settings = None, json: AsJson = False) -> int:
    """Look for mistakes in a robot. Exit code 1 where there is an error among the findings."""
    m = _load(robot, settings)
    findings = m.check()
    if json:
        _print_json([{"level": f.level, "where": f.where, "code": f.code, "message": f.message} for f in findings])
    elif findings:
        rows = [(f.level, f.where, f.code, f.message) for f in findings]
        _print_table(f"{m.name}: findings", ("level", "where", "code", "what"), rows)
    else:
        _print_line(f"{m.name}: nothing to complain about")
    return int(any(f.level == "error" for f in findings))


@app.command(name="id")
def inverse_dynamics(
    robot: Robot,
    *,
    start: Annotated[Numbers, Parameter(name="--from", help="Coordinates at the start, rad or m: one, or one each.")] = None,
    end: Annotated[Numbers, Parameter(name="--to", help="Coordinates at the end; 60 degrees or 0.1 m on unless given.")] = None,
    duration: Annotated[float, Parameter(help="Seconds from start to end.")] = 1.0,
    steps: Annotated[int, Parameter(help="Time steps; one row more is written.")] = 1000,
    out: Annotated[Path, Parameter(help="CSV file of the torques.")] = Path("{robot}_torques.csv"),
    plot: Annotated[Path | None, Parameter(help="Plot of the torques, {robot}_torques.svg unless given; or .png, .pdf.")] = None,
    no_plot: Annotated[bool, Parameter(negative="", help="Write no plot.")] = False,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Inverse dynamics along a cycloidal motion (eq. 6.14): writes the joint torques as CSV and as a plot."""
    import numpy as np

    from ramify.motion import cycloid, example_ends

    m = _load(robot, settings)
    first, last = example_ends(m)
    q0 = _fill("--from", start, first)
    q1 = _fill("--to", end, q0 + (last - first))
    motion = cycloid(q0, q1, duration, steps + 1)
    tau = m.inverse_dynamics(motion.q, motion.v, motion.a)
    units = ["N m" if step.unit == "rad" else "N" for joint in m.joints for step in joint.steps]
    files = {"csv": _named(out, m)}
    _write_csv(files["csv"], ["t [s]", *map("{} [{}]".format, m.velocities, units)], np.column_stack([motion.t, tau]))
    if not no_plot and (plot or _plots_are_possible()):
        from ramify.view.plots import plot_torques

        files["plot"] = _named(plot or Path("{robot}_torques.svg"), m)
        plot_torques(motion.t, tau, m.coordinates, units, files["plot"], title=f"{m.name}: joint torques")
    peak = np.abs(tau).argmax(axis=0)
    data = [
        {"name": name, "unit": unit, "start": a, "end": b, "max": abs(float(tau[i, k])), "time": float(motion.t[i])}
        for k, (name, unit, a, b, i) in enumerate(zip(m.coordinates, units, motion.q[0], motion.q[-1], peak, strict=True))
    ]
    if json:
        named = {key: str(path) for key, path in files.items()}
        _print_json({"robot": m.name, "duration": duration, "rows": len(motion.t), "coordinates": data, "files": named})
        return
    rows = [(d["name"], d["start"], d["end"], d["max"], d["unit"], d["time"]) for d in data]
    _print_table(f"{m.name}: cycloidal motion in {duration:g} s", ("coordinate", "from", "to", "max |tau|", "", "at t, s"), rows)
    for path in files.values():
        _print_line(f"written: {path}")


@app.command(name="fd")
def forward_dynamics(
    robot: Robot, *, q: Numbers = None, v: Numbers = None, tau: Numbers = None, settings: Settings = None, json: AsJson = False
) -> None:
    """Accelerations at a state under joint forces; what is not given is zero.

    Parameters
    ----------
    q
        Coordinates, rad or m: one for all, or one each.
    v
        Rates, rad/s or m/s.
    tau
        Joint torques and forces, N m or N.
    """
    import numpy as np

    m = _load(robot, settings)
    still = np.zeros(m.nv)
    state = [_fill("--q", q, m.neutral()), _fill("--v", v, still), _fill("--tau", tau, still)]
    values = [_list(x) for x in (*state, m.forward_dynamics(*state))]
    if json:
        names = {"robot": m.name, "coordinates": list(m.coordinates), "velocities": list(m.velocities)}
        _print_json(names | dict(zip(("q", "v", "tau", "a"), values, strict=True)))
        return
    units = [step.unit for joint in m.joints for step in joint.steps]
    columns = ["coordinate", "unit", "q", "v", "tau", "acceleration"]
    if m.nq != m.nv:
        _print_table(f"{m.name}: configuration", ("coordinate", "q"), zip(m.coordinates, values[0], strict=True))
        del columns[2], values[0]
    rows = zip(m.velocities, units, *values, strict=True)
    _print_table(f"{m.name}: forward dynamics, SI units", columns, rows)


@app.command
def count(
    *robots: Annotated[str, Parameter(help="Built-in names or robot files; all built-in robots unless given.")],
    algorithm: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="", help="Which algorithms to count.")] = None,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Count the operations of the algorithms, after folding and sharing, for each robot."""
    data = []
    for m in (_load(robot, settings) for robot in robots or rf.robots()):
        for name in algorithm or COUNTED:
            c = m.op_count(name)
            counts = {"mul": c.mul, "add": c.add, "div": c.div, "sqrt": c.sqrt, "sincos": c.sincos}
            data.append({"robot": m.name, "nv": m.nv, "algorithm": name} | counts)
    if json:
        _print_json(data)
        return
    columns = ("robot", "dof", "algorithm", "x", "+", "/", "sqrt", "sin & cos")
    _print_table("Operations", columns, [tuple(row.values()) for row in data])


@app.command
def export(
    robot: Robot,
    *,
    format: Annotated[Literal["yaml", "c"], Parameter(help="A robot file, or C99 code without dependencies.")] = "yaml",
    algorithm: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="", help="Algorithms to write as C.")] = None,
    out: Annotated[Path, Parameter(help="Directory to write to.")] = Path("."),
    force: Annotated[bool, Parameter(negative="", help="Replace files that exist.")] = False,
    settings: Settings = None,
    json: AsJson = False,
) -> None:
    """Write a robot as a YAML file, or its algorithms as C99 header and source files."""
    m = _load(robot, settings)
    texts: dict[Path, str] = {}
    if format == "yaml":
        from ramify.io.yaml_out import to_yaml

        texts[out / f"{_file_name(m)}.yaml"] = to_yaml(m)
    else:
        from ramify.codegen.c99 import identifier

        for name in algorithm or COUNTED[:2]:
            header, source = m.kernel(name).c_source()
            stem = f"{identifier(m.name)}_{identifier(name)}"
            texts |= {out / f"{stem}.h": header, out / f"{stem}.c": source}
    present = [str(path) for path in texts if path.exists()]
    if present and not force:
        raise FileExistsError(f"{', '.join(present)}: already there; --force replaces it")
    out.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    if json:
        _print_json({"robot": m.name, "files": [str(path) for path in texts]})
        return
    for path in texts:
        _print_line(f"written: {path}")


@app.command
def convert(
    source: Robot,
    target: Annotated[Path, Parameter(help="The file to write: .yaml, or .urdf where it can express the robot.")],
    *,
    base: Annotated[str | None, Parameter(help="fixed, free, free_euler or planar; as the file says unless given.")] = None,
    force: Annotated[bool, Parameter(negative="", help="Replace a file that exists.")] = False,
    json: AsJson = False,
) -> None:
    """Convert a robot file (URDF, MJCF, ReDySim's inputs.mat or inputs.m, YAML) and say what was ignored or assumed."""
    from ramify.io.convert import convert as converted

    if target.exists() and not force:
        raise FileExistsError(f"{target}: already there; --force replaces it")
    m = converted(source, target, base=base)
    remarks = [str(entry) for entry in m.metadata.get("report", ())]
    if json:
        _print_json({"robot": m.name, "files": [str(target)], "report": remarks})
        return
    for line in (*remarks, f"written: {target}"):
        _print_line(line)


@app.command
def demo(*, out: Annotated[Path, Parameter(help="Directory to write to.")] = Path("out"), json: AsJson = False) -> None:
    """Write a page that shows what ramify does: out/index.html."""
    from ramify.view.page import write_demo

    page = write_demo(out)
    if json:
        _print_json({"page": str(page)})
    else:
        _print_line(f"written: {page}")
        _print_line(f"open it in a browser: {page.resolve().as_uri()}")


# ---- reading the arguments ----


def _load(robot: str, settings: Sequence[str] | None = None) -> Model:
    parameters: dict[str, Any] = {}
    for setting in settings or ():
        name, _, value = setting.partition("=")
        try:
            parameters[name] = float(value)
        except ValueError:
            raise rf.ModelError(f"--set {setting}: NAME=NUMBER belongs here, such as n=7") from None
    return rf.load(robot, **parameters)


def _fill(option: str, given: Sequence[float] | None, default: Any) -> Any:
    """One number per entry of the default: the default, the number given for all, or the numbers given."""
    import numpy as np

    values = default if given is None else np.asarray(given, dtype=np.float64)
    if values.size not in (1, default.size):
        raise rf.StateError(f"{option} has {values.size} numbers; give {default.size}, or one for all")
    return np.broadcast_to(values, default.shape).copy()


def _file_name(m: Model) -> str:
    """The robot's name as part of a file's name."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in m.name)


def _named(path: Path, m: Model) -> Path:
    return path.with_name(path.name.replace("{robot}", _file_name(m)))


def _plots_are_possible() -> bool:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        print("ramify: no plot, for want of Matplotlib; install it with: pip install 'ramify[plot]'", file=sys.stderr)
        return False
    return True


def _coordinate_units(joint: Joint) -> list[str]:
    """A unit per entry of q; quaternions have none."""
    return ["" if step.ball else step.unit for step in joint.steps for _ in step.positions]


def _with_units(names: Iterable[str], units: Iterable[str]) -> list[dict[str, str]]:
    return [{"name": name, "unit": unit} for name, unit in zip(names, units, strict=True)]


# ---- writing and printing ----


def _write_csv(path: Path, header: Sequence[str], rows: Any) -> None:
    from csv import writer

    with path.open("w", newline="", encoding="utf-8") as file:
        out = writer(file, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows.tolist())


def _summary(m: Model) -> dict[str, Any]:
    description = str(m.metadata.get("description", ""))
    return {"name": m.name, "bodies": len(m.bodies), "nv": m.nv, "nq": m.nq, "mass": m.mass, "description": description}


def _list(values: Any) -> list[float]:
    return [float(x) for x in values]


def _vector(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{x + 0.0:.6g}" for x in values) + ")"


def _several(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _print_json(data: Any) -> None:
    from json import dumps

    print(dumps(_finite(data), indent=1, allow_nan=False))


def _finite(data: Any) -> Any:
    """The same data with null for numbers that JSON does not have."""
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and data - data != 0.0 else data


def _print_line(text: str) -> None:
    print(_printable(text))


def _printable(text: str) -> str:
    """Text from a robot file may hold anything; a terminal must not obey it."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [tuple(row) for row in rows]
    numeric = [all(isinstance(row[k], (int, float)) for row in rows) for k in range(len(columns))]
    table = Table(title=Text(_printable(title)) if title else None, title_justify="left", box=SIMPLE_HEAD)
    for column, right in zip(columns, numeric, strict=True):
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(f"{cell + 0.0:.6g}" if isinstance(cell, float) else _printable(str(cell))) for cell in row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """The ``ramify`` command: runs, and exits with 0, or with another code and a message on stderr."""
    try:
        sys.exit(_run(arguments))
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (rf.RamifyError, OSError) as error:
        print(f"ramify: {_printable(str(error))}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _run(arguments: Sequence[str] | None) -> Any:
    try:
        return app(arguments)
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
